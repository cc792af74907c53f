"""Explicit axes of a mesh: moving values along them, and parts of programs in which the compiler decides instead.

Example:
    >>> import weft, weft.numpy as jnp
    >>> mesh = weft.make_mesh((1,), ("x",), axis_types=(weft.sharding.AxisType.Explicit,))
    >>> with weft.set_mesh(mesh):
    ...     print(weft.sharding.reshard(jnp.arange(4.0), weft.P("x")))
    [0. 1. 2. 3.]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Hashable

from ..base.annotations import like
from ..base.config import config
from ..base.errors import at_user_line
from ..base.mesh import (
    AbstractMesh,
    AxisType,
    Mesh,
    NamedSharding,
    PartitionSpec,
    get_abstract_mesh,
    retyped,
    use_abstract_mesh,
)
from ..base.source_info import api_boundary
from ..base.spec import named_axes
from ..base.tree import broadcast_prefix, tree_flatten, tree_map
from ..core.shardings import placed_of
from ..core.trace import get_aval, is_array_like
from ..primitives.placement import reshard as _reshard, to_types
from ..runtime.dispatch import put

if TYPE_CHECKING:
    from ..base.annotations import PyTree, Tree


@api_boundary
def reshard(xs: Tree, out_shardings: NamedSharding | PartitionSpec | PyTree) -> Tree:
    """The arrays of a pytree, divided among devices as `out_shardings` says, inside a program and outside.

    What it says of explicit axes of the mesh becomes part of the result's type. A spec can't name axes of other types:
    along these the compiler decides (see `weft.lax.with_sharding_constraint`).

    Args:
        xs: pytree of arrays, of any dtype and shape.
        out_shardings: pytree prefix of `weft.NamedSharding`s or `weft.P`s: how each array is divided.

    Returns:
        pytree like xs, of the same dtypes and shapes.

    Raises:
        ValueError: for a spec without a mesh, one that names an axis that is not explicit, or one that does not divide
            a shape evenly.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.reshard(jnp.ones(2), weft.NamedSharding(weft.make_mesh((1,), ("x",)), weft.P("x"))).shape
        (2,)
    """
    leaves, tree = tree_flatten(xs)
    wanted = broadcast_prefix(out_shardings, xs, is_leaf=lambda s: s is None)
    return tree.unflatten([_reshard(_array(x), _checked(s, get_aval(x))) for x, s in zip(leaves, wanted)])


def _array(x: Any) -> Any:
    if not is_array_like(x):
        raise TypeError(at_user_line(f"reshard takes arrays, got a {type(x).__name__}: {str(x)[:80]}."))
    return put(x) if type(x) in (bool, int, float, complex) else x


def _checked(where: Any, aval: Any) -> NamedSharding:
    """A user's sharding for a value, with its mesh."""
    if isinstance(where, PartitionSpec):
        mesh = get_abstract_mesh()
        if mesh.empty:
            raise ValueError(
                at_user_line(
                    f"reshard: {where} needs a mesh: set one with weft.set_mesh(mesh), or give a"
                    f" weft.NamedSharding(mesh, {where})."
                )
            )
        where = NamedSharding(mesh, where)
    if not isinstance(where, NamedSharding) or where.mesh.empty:
        raise ValueError(at_user_line(f"reshard takes a weft.P or a weft.NamedSharding for each array, got {where!r}."))
    _only_explicit(where)
    if len(where.spec) > len(aval.shape):
        raise ValueError(
            at_user_line(
                f"reshard: {where.spec} has more entries than {aval.str_short()} has axes ({len(aval.shape)})."
            )
        )
    return where


def _only_explicit(where: NamedSharding) -> None:
    types = dict(zip(where.mesh.axis_names, where.mesh.axis_types))
    for name in (*named_axes(where.spec), *where.spec.unreduced, *where.spec.reduced):
        if types[name] is not AxisType.Explicit:
            raise ValueError(
                at_user_line(
                    f"reshard: {where.spec} names the axis {name!r}, whose type is {types[name]}; a type speaks of"
                    " explicit axes alone. Leave it out, or use weft.lax.with_sharding_constraint for axes of type"
                    " Auto."
                )
            )


def _with_types(axes: Any, kind: AxisType, who: str) -> Mesh | AbstractMesh:
    """The mesh that is set, with some of its axes (None: all) of another type."""
    mesh = config.context_mesh or get_abstract_mesh()
    if mesh.empty:
        raise ValueError(at_user_line(f"{who} needs a mesh: set one with weft.set_mesh(mesh)."))
    names = mesh.axis_names if axes is None else axes if isinstance(axes, tuple) else (axes,)
    for name in names:
        if name not in mesh.axis_names:
            raise ValueError(
                at_user_line(f"{who}: {name!r} is not an axis of the mesh, whose axes are {mesh.axis_names}.")
            )
    return retyped(mesh, {n: kind for n in names if n not in mesh.manual_axes})


def auto_axes(
    f: Callable[..., Any] | None = None,
    /,
    *,
    axes: Hashable | tuple[Hashable, ...] | None = None,
    out_sharding: Any = None,
) -> Any:
    """A function in which the compiler decides how values lie along some axes of the mesh that are explicit outside.

    Args:
        f: function of pytrees of arrays. Inside, no type speaks of these axes.
        axes: name or tuple of names of axes of the mesh that is set; None for all.
        out_sharding: pytree prefix of `weft.P`s or `weft.NamedSharding`s: how the results are divided.

    Returns:
        function like f, whose results' types say what `out_sharding` says.

    Raises:
        TypeError: without `out_sharding`.
        ValueError: if no mesh is set, or it has no such axis.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> mesh = weft.make_mesh((1,), ("x",), axis_types=(weft.sharding.AxisType.Explicit,))
        >>> with weft.set_mesh(mesh):
        ...     print(weft.sharding.auto_axes(lambda x: x[::2], out_sharding=weft.P("x"))(jnp.arange(4.0)))
        [0. 2.]
    """
    if f is None:
        return lambda g: auto_axes(g, axes=axes, out_sharding=out_sharding)
    fun = f

    @like(fun)
    @api_boundary
    def inside(*args: Any, **kwargs: Any) -> Any:
        if out_sharding is None:
            raise TypeError(
                at_user_line("auto_axes needs out_sharding=…: how the results of the function are divided.")
            )
        mesh = _with_types(axes, AxisType.Auto, "auto_axes")
        with use_abstract_mesh(mesh):
            out = fun(*tree_map(lambda x: _retyped(x, mesh), args), **tree_map(lambda x: _retyped(x, mesh), kwargs))
        return reshard(out, out_sharding)

    return inside


def explicit_axes(
    f: Callable[..., Any] | None = None,
    /,
    *,
    axes: Hashable | tuple[Hashable, ...] | None = None,
    in_sharding: Any = None,
) -> Any:
    """A function in which types say how values lie along some axes of the mesh along which the compiler decides
    outside.

    Args:
        f: function of pytrees of arrays.
        axes: name or tuple of names of axes of the mesh that is set; None for all.
        in_sharding: pytree prefix of `weft.P`s or `weft.NamedSharding`s: how the arguments are divided, inside.

    Returns:
        function like f, whose results' types do not speak of these axes.

    Raises:
        TypeError: without `in_sharding`.
        ValueError: if no mesh is set, or it has no such axis.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> with weft.set_mesh(weft.make_mesh((1,), ("x",), axis_types=(weft.sharding.AxisType.Auto,))):
        ...     print(weft.sharding.explicit_axes(lambda x: x * 2, in_sharding=weft.P("x"))(jnp.arange(2.0)))
        [0. 2.]
    """
    if f is None:
        return lambda g: explicit_axes(g, axes=axes, in_sharding=in_sharding)
    fun = f

    @like(fun)
    @api_boundary
    def inside(*args: Any, **kwargs: Any) -> Any:
        if in_sharding is None:
            raise TypeError(
                at_user_line("explicit_axes needs in_sharding=…: how the function's arguments are divided.")
            )
        outside = config.context_mesh or get_abstract_mesh()
        with use_abstract_mesh(_with_types(axes, AxisType.Explicit, "explicit_axes")):
            out = fun(*reshard(args, in_sharding), **kwargs)
        return tree_map(lambda x: _retyped(x, outside), out)

    return inside


def _retyped(x: Any, mesh: AbstractMesh | Mesh) -> Any:
    """A value for a part of the program in which axes have other types: its type says what it said of axes that are
    explicit there too.
    """
    if not is_array_like(x) or placed_of(get_aval(x)) is None:
        return x
    return to_types(x, mesh.abstract_mesh)
