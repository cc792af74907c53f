"""Parts of a program in which types say nothing of how values lie, so that the compiler decides."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from ..base.annotations import override
from ..base.config import config
from ..base.mesh import (
    AbstractMesh,
    AxisType,
    Mesh,
    NamedSharding,
    PartitionSpec,
    get_mesh,
    retyped,
    use_abstract_mesh,
)
from ..base.spec import named_axes
from ..core.primitive import Primitive
from ..core.trace import InnerTrace, Trace, current_trace, is_array_like, tracing
from ..primitives.placement import constrain, reshard, to_types

if TYPE_CHECKING:
    from ..core.types import Params, Value


Function = TypeVar("Function", bound=Callable[..., Any])


class AutoTrace(InnerTrace):
    """Passes each operation on with operands whose types speak only of axes that are explicit in `mesh`."""

    def __init__(self, parent: Trace, mesh: AbstractMesh):
        self.parent, self.mesh = parent, mesh

    @override
    def process(self, primitive: Primitive, args: tuple[Value, ...], params: Params) -> Any:
        with tracing(self.parent):
            known = tuple([to_types(x, self.mesh) if is_array_like(x) else x for x in args])
            return self.parent.process(primitive, known, params)


def divided(fun: Callable[[], Value], where: NamedSharding) -> Value:
    """What `fun` computes, divided along explicit axes as `where` says; the compiler decides how it is computed."""
    mesh = where.mesh.abstract_mesh
    if not mesh.typed_axes:
        return constrained(fun(), where)
    auto = retyped(where.mesh, {n: AxisType.Auto for n in mesh.typed_axes})
    with tracing(AutoTrace(current_trace(), auto.abstract_mesh)), use_abstract_mesh(auto):
        out = fun()
    return reshard(out, where)


def constrained(x: Value, where: NamedSharding) -> Value:
    """`x` as a sharding along axes that are not explicit says; it may say nothing, as that of a type without a mesh."""
    if not isinstance(where.mesh, Mesh):
        found = get_mesh()
        if found.shape_tuple != where.mesh.shape_tuple or not named_axes(where.spec):
            return x
        where = where.update(mesh=found)
    return constrain(x, where)


def named_sharding(name: str, where: Any) -> NamedSharding:
    """The argument `out_sharding` of a function, with its mesh."""
    if not isinstance(where, (NamedSharding, PartitionSpec)):
        raise TypeError(f"{name}: out_sharding must be a NamedSharding or a PartitionSpec, got {where!r}.")
    if isinstance(where, NamedSharding):
        return where
    mesh = config.context_mesh
    if not mesh:
        raise ValueError(
            f"{name}: {where} needs a mesh: set one with weft.set_mesh(mesh), or give a weft.NamedSharding(mesh,"
            f" {where})."
        )
    return NamedSharding(mesh, where)


def with_out_sharding(name: str, out_sharding: Any, fun: Callable[[NamedSharding | None], Value]) -> Value:
    """The result of a function that takes `out_sharding`: `fun(sharding)` gives a result whose type says it; along axes
    that are not explicit it is a constraint.
    """
    if out_sharding is None or isinstance(out_sharding, NamedSharding) and out_sharding.mesh.empty:
        return fun(None)
    where = named_sharding(name, out_sharding)
    if where.mesh.typed_axes:
        return fun(where)
    return constrained(fun(None), where)


def takes_out_sharding(fun: Function) -> Function:
    """A function whose argument `out_sharding` says how its result is divided. It is called without it, in a part of
    the program in which the compiler decides.
    """

    @functools.wraps(fun)
    def run(*args: Any, out_sharding: Any = None, **kwargs: Any) -> Any:
        if out_sharding is None:
            return fun(*args, **kwargs)
        return divided(lambda: fun(*args, **kwargs), named_sharding(fun.__name__, out_sharding))

    return run  # type: ignore[return-value]
