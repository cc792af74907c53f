"""weft.scipy.cluster.vq: assigns observations to their nearest codes."""

from __future__ import annotations

from ... import numpy as jnp
from ...numpy.util import promote_inexact, in_own_terms
from ...base.source_info import api_boundary

__all__ = ["vq"]


@api_boundary
@in_own_terms
def vq(obs, code_book, check_finite: bool = True) -> tuple:
    """Assigns to each observation the nearest code of a code book, by Euclidean distance.

    Args:
        obs: the observations, of shape (n, d), or (n,) for numbers.
        code_book: the codes, of shape (k, d), or (k,) for numbers.
        check_finite: has no effect, since values are not known while a function is traced.

    Returns:
        The index of the nearest code of each observation, int32 of shape (n,), and the distance to it,
        floating-point of shape (n,).

    Raises:
        ValueError: for other ranks, ranks that differ, and an empty code_book.
        TypeError: for sizes that differ.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy.cluster.vq import vq
        >>> vq(jnp.array([0.1, 0.9]), jnp.array([0., 1.]))[0].tolist()
        [0, 1]
    """
    obs, codes = (jnp.asarray(x) for x in promote_inexact("vq", obs, code_book))
    if obs.ndim != codes.ndim:
        raise ValueError(f"vq: obs and code_book must have the same rank, got shapes {obs.shape} and {codes.shape}.")
    if obs.ndim not in (1, 2):
        raise ValueError(f"vq: obs and code_book must be of rank 1 or 2, got shape {obs.shape}.")
    if obs.ndim == 1:
        obs, codes = obs[:, None], codes[:, None]
    if obs.shape[1] != codes.shape[1]:
        raise TypeError(
            f"vq: observations and codes must have the same size, got shapes {obs.shape} and {codes.shape}."
        )
    if not codes.shape[0]:
        raise ValueError("vq: code_book is empty; give at least one code.")
    distances = jnp.linalg.norm(obs[:, None] - codes, axis=-1)
    nearest = jnp.argmin(distances, -1)
    return nearest, jnp.min(distances, -1)


def __dir__() -> list[str]:
    return sorted(__all__)
