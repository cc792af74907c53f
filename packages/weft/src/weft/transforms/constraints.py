"""Shardings in types as constraints: the same program without them, in which an operation says where its results lie.

Backends compile only such programs. XLA follows the constraints; where all is on one device, they mean nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..base.annotations import override
from ..base.avals import ShapedArray
from ..base.mesh import AbstractMesh, NamedSharding, P
from ..core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, eval_equations, map_jaxprs, subjaxprs
from ..core.memo import inner_jaxprs, memoized, memoized_closed
from ..core.shardings import placed_of, with_placed
from ..core.trace import get_aval, mapped_axes, tracing
from ..primitives.placement import reshard_p, sharding_constraint_p
from .stage import JaxprTrace

if TYPE_CHECKING:
    from ..base.avals import AbstractValue
    from ..core.types import Value

_PARAMETERS = ("sharding", "out_sharding")


@memoized
def mesh_in_types(jaxpr: Jaxpr) -> AbstractMesh | None:
    """The mesh along which types of a program say that values are divided; None if none are. One device has all of
    them.
    """
    for v in (*jaxpr.constvars, *jaxpr.invars, *[v for e in jaxpr.eqns for v in e.outvars]):
        placed = placed_of(v.aval)
        if placed is not None:
            return placed.mesh.abstract_mesh
    for eqn in jaxpr.eqns:
        if eqn.primitive is reshard_p and eqn.params["dst_sharding"].mesh.size > 1:
            return eqn.params["dst_sharding"].mesh.abstract_mesh
    return next((m for m in map(mesh_in_types, inner_jaxprs(jaxpr)) if m is not None), None)


def with_constraints(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same program without shardings in types."""
    return closed if mesh_in_types(closed.jaxpr) is None else _with_constraints(closed)


@memoized_closed
def _with_constraints(closed: ClosedJaxpr) -> ClosedJaxpr:
    trace = _Bare("a program")
    args = [trace.new_arg(bare(a)) for a in closed.in_avals]
    with tracing(trace):
        outs = eval_equations(closed.jaxpr, closed.consts, args, _apply)
    return ClosedJaxpr(*trace.finish(outs))


class _Bare(JaxprTrace):
    """Constants that are divided have types that do not say so."""

    @override
    def type_of(self, x: Value) -> AbstractValue:
        return bare(get_aval(x))


def bare(aval: AbstractValue) -> AbstractValue:
    """The type without its sharding."""
    typed: AbstractValue = with_placed(aval, None)
    return typed


def _apply(eqn: JaxprEqn, values: Sequence[Value]) -> Sequence[Any]:
    primitive, params = eqn.primitive, eqn.params
    if primitive is reshard_p:
        return [_lying(values[0], eqn.outvars[0].aval, params["dst_sharding"].mesh.abstract_mesh)]
    if primitive is not sharding_constraint_p:
        params = {k: None if k in _PARAMETERS and isinstance(v, NamedSharding) else v for k, v in params.items()}
    inner = subjaxprs(params)
    if inner:
        with mapped_axes(*(primitive.binds(params) if primitive.binds is not None else ())):
            params = {k: map_jaxprs(v, with_constraints) for k, v in params.items()}
    outs = primitive.bind(*values, **params)
    outs = list(outs) if primitive.multiple_results else [outs]
    mesh = next(
        (p.mesh.abstract_mesh for a in (*eqn.invars, *eqn.outvars) if (p := placed_of(a.aval)) is not None), None
    )
    if mesh is None or mesh.manual_axes or inner and primitive.carries is not None:
        return outs  # what is inside says it itself
    return [_lying(x, v.aval, mesh) for x, v in zip(outs, eqn.outvars)]


def _lying(x: Value, aval: AbstractValue, mesh: AbstractMesh) -> Value:
    """`x` where a value of type `aval` lies: along the axes of the mesh that are not explicit, where the compiler
    chooses.
    """
    if not isinstance(aval, ShapedArray) or not mesh.typed_axes:
        return x
    parts = (None,) * len(aval.shape) if aval.placed is None else aval.placed.spec.partitions
    if mesh.auto_axes:
        parts = tuple([P.UNCONSTRAINED if part is None else part for part in parts])
    return sharding_constraint_p.bind(x, sharding=NamedSharding(mesh, P(*parts)))
