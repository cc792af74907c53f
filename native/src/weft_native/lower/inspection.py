"""Telling Python how the compiler lays a value over devices."""

from __future__ import annotations

import jaxlib._jax as _jax
from jaxlib.mlir import ir

from .. import sharding as placing
from .registry import rule


@rule("inspect_sharding")
def _inspect(b, ins, outs, x, *, callback):
    if b.partitions is None:
        if b.place is not None:  # the device is not known yet
            callback(b.place)
        return []
    mesh, ndim = b.partitions.mesh, len(ins[0].shape)

    def tell(found):  # XLA calls it while it compiles
        callback(placing.from_hlo(found, mesh, ndim) or found)

    b.home.kept.append(tell)  # C++ holds a bare pointer
    b.ops(
        "stablehlo.custom_call",
        [x],
        [b.type(ins[0])],
        {
            "call_target_name": ir.StringAttr.get("InspectSharding"),
            "has_side_effect": b.bool_attr(True),
            "backend_config": ir.StringAttr.get(_jax.encode_inspect_sharding_callback(tell)),
        },
    )
    return []
