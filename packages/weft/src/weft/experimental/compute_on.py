"""Which processor computes a part of a program: the device, or the host beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from ..base.source_info import COMPUTE_TYPE, named_scope

__all__ = ["compute_on"]

_STREAM = re.compile(r"gpu_stream:\d+")


@contextmanager
def compute_on(compute_type: str) -> Iterator[None]:
    """Context manager, and decorator of functions, for operations that XLA is to run on the host ("device_host") inside
    of a program for an accelerator. Their operands should be moved to the host's memory before
    (`weft.device_put(x, weft.memory.Space.Host)`). On the CPU, and on backends without such a choice, it changes
    nothing; it never changes values.

    Args:
        compute_type: str: "device_host", "device", "tpu_sparsecore", or "gpu_stream:" and a number.

    Returns:
        context manager.

    Raises:
        ValueError: for another type.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.experimental.compute_on import compute_on
        >>> @weft.jit
        ... def f(x):
        ...     with compute_on("device_host"):
        ...         return jnp.sin(x)
        >>> f(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    if compute_type not in ("device_host", "device", "tpu_sparsecore") and not _STREAM.fullmatch(str(compute_type)):
        raise ValueError(
            f"compute_on takes 'device_host', 'device', 'tpu_sparsecore' or 'gpu_stream:' and a number; got"
            f" {compute_type!r}."
        )
    with named_scope(COMPUTE_TYPE + compute_type):
        yield


def __dir__() -> list[str]:
    return list(__all__)
