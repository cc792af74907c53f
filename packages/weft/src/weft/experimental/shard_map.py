"""`shard_map` under its old name and with its old arguments; new programs use `weft.shard_map`."""

from __future__ import annotations

from typing import Any, Callable

from ..api import parallel
from ..base.mesh import Mesh


def shard_map(
    f: Callable, mesh: Mesh, in_specs: Any, out_specs: Any, check_rep: bool = True, auto: frozenset = frozenset()
):
    """`weft.shard_map` under its former name and with its former arguments.

    Args:
        f: a function of arrays of any dtypes, which computes what one device does.
        mesh: the mesh.
        in_specs, out_specs: how arguments and results are split over the mesh, as for `weft.shard_map`.
        check_rep: passed on as `check_vma`; bool.
        auto: the names of the axes of the mesh that `f` does not see.

    Returns:
        a function of arrays of global shapes.

    Raises:
        ValueError: specs or shapes do not fit the mesh.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.experimental.shard_map import shard_map
        >>> shard_map(lambda x: x + 1, weft.make_mesh((1,), ("x",)), weft.P("x"), weft.P("x"))(jnp.zeros(2))
        Array([1., 1.], dtype=float32)
    """
    return parallel.shard_map(
        f,
        mesh=mesh,
        in_specs=in_specs,
        out_specs=out_specs,
        check_vma=check_rep,
        axis_names=set(mesh.axis_names) - set(auto),
    )
