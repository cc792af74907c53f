"""Placement: constraints on the sharding of values inside a program, and moves between devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..core.primitive import Primitive, Zero
from ..core.wire import NAMES_DEVICES
from ..base.mesh import P, Sharding, SingleDeviceSharding
from .rules import linear_jvp

if TYPE_CHECKING:
    from ..base.avals import ShapedArray
    from ..core.trace import Axis
    from ..core.types import Dims, Params, Value

sharding_constraint_p = Primitive("sharding_constraint", basic=False, wire=NAMES_DEVICES)


def _abstract(x: ShapedArray, *, sharding: Any) -> ShapedArray:
    if P.UNCONSTRAINED not in sharding.spec.partitions:
        sharding.shard_shape(x.shape)
    sharding.check_compatible_aval(x.shape)
    return x


def _batch(axis: Axis, args: Sequence[Value], dims: Dims, *, sharding: Any) -> tuple[Value, Any]:
    """The new axis is cut along the mesh axes of `vmap(spmd_axis_name=…)`, or as the compiler chooses."""
    (x,), (dim,) = args, dims
    if dim is None:
        return constrain(x, sharding), None
    lead = P.UNCONSTRAINED if not axis.spmd else axis.spmd if len(axis.spmd) > 1 else axis.spmd[0]
    parts = [*sharding.spec, *[None] * (dim - len(sharding.spec))]
    parts.insert(dim, lead)
    return constrain(x, sharding.update(spec=P(*parts))), dim


def constrain(x: Value, sharding: Sharding | None) -> Value:
    """`x` with the sharding `sharding` (None: any)."""
    if isinstance(sharding, SingleDeviceSharding):
        return transfer_p.bind(x, devices=(sharding,), srcs=(None,))[0]
    return x if sharding is None else sharding_constraint_p.bind(x, sharding=sharding)


sharding_constraint_p.abstract, sharding_constraint_p.batch = _abstract, _batch
sharding_constraint_p.reference = lambda x, *, sharding: x
sharding_constraint_p.jvp = linear_jvp(sharding_constraint_p)
sharding_constraint_p.transpose = lambda ct, x, *, sharding: [ct if type(ct) is Zero else constrain(ct, sharding)]
sharding_constraint_p.decompose = lambda x, *, sharding: x


def _shardings(params: Params) -> tuple[Sequence[Any], Sequence[Any]]:
    given = () if P.UNCONSTRAINED in params["sharding"].spec.partitions else (params["sharding"],)
    return given, given


sharding_constraint_p.asks_shardings = _shardings

transfer_p = Primitive("transfer", multiple_results=True, basic=False, wire=NAMES_DEVICES)


def _put_jvp(primals: Sequence[Value], tangents: Sequence[Value], *, devices: Any, srcs: Any) -> tuple[Value, Value]:
    outs = transfer_p.bind(*primals, devices=devices, srcs=srcs)
    live = [i for i, t in enumerate(tangents) if type(t) is not Zero]
    moved = iter(
        transfer_p.bind(
            *[tangents[i] for i in live], devices=tuple(devices[i] for i in live), srcs=tuple(srcs[i] for i in live)
        )
        if live
        else ()
    )
    return outs, [t if type(t) is Zero else next(moved) for t in tangents]


def _put_transpose(cts: Sequence[Value], *xs: Any, devices: Any, srcs: Any) -> list[Value | None]:
    """Cotangents move back to where the values came from."""
    live = [i for i, ct in enumerate(cts) if type(ct) is not Zero]
    back = iter(
        transfer_p.bind(
            *[cts[i] for i in live], devices=tuple(srcs[i] for i in live), srcs=tuple(devices[i] for i in live)
        )
        if live
        else ()
    )
    return [next(back) if i in live else None for i in range(len(cts))]


transfer_p.abstract = lambda *xs, devices, srcs: list(xs)
transfer_p.reference = lambda *xs, devices, srcs: list(xs)
transfer_p.jvp, transfer_p.transpose = _put_jvp, _put_transpose
transfer_p.batch = lambda axis, args, dims, **params: (transfer_p.bind(*args, **params), dims)
transfer_p.decompose = lambda *xs, devices, srcs: list(xs)
