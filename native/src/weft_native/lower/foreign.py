"""ffi_call: custom calls of functions that the user registered."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np
from jaxlib.mlir import ir
from weft.base import dtypes
from weft.effects.foreign import Attribute

from .builder import dense
from .registry import rule


def attribute(b, value: Any):
    """A parameter of ffi_call as an MLIR attribute."""
    if isinstance(value, Attribute):
        return _dense(b, value.value)
    if isinstance(value, tuple) and value and value[0] == "dict":
        return ir.DictAttr.get({k: attribute(b, v) for k, v in value[1:]})
    if isinstance(value, tuple):
        return ir.ArrayAttr.get([attribute(b, v) for v in value[1:]])
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    if isinstance(value, (bool, np.bool_)):
        return ir.BoolAttr.get(bool(value))
    dt = dtypes.dtype(
        type(value) if isinstance(value, (int, float)) and not isinstance(value, np.generic) else value.dtype
    )
    element = b.element(dt)
    return ir.FloatAttr.get(element, float(value)) if dtypes.is_float(dt) else ir.IntegerAttr.get(element, int(value))


def _dense(b, array: np.ndarray):
    return dense(np.ascontiguousarray(array), b.element(dtypes.dtype(array.dtype)), shape=array.shape)


def layouts(b, orders: Sequence, fastest_first: bool = False):
    """XLA's attribute of layouts, in which axes are ordered from the fastest to the slowest."""
    made = []
    for order in orders:
        axes = list(order) if fastest_first else list(reversed(order))
        made.append(b.attr(f"dense<{axes}> : tensor<{len(axes)}xindex>" if axes else "dense<> : tensor<0xindex>"))
    return ir.ArrayAttr.get(made)


def custom_call(
    b,
    outs,
    operands,
    target: str,
    config,
    version: int,
    in_layouts,
    out_layouts,
    aliases: Sequence = (),
    side_effect: bool = False,
) -> list:
    """A stablehlo.custom_call; `config` is a dict of MLIR attributes, or text for the interfaces before version 4."""
    index = lambda o: f"[{o}]" if len(outs) > 1 else "[]"
    alias = ", ".join(
        f"#stablehlo.output_operand_alias<output_tuple_indices = {index(o)}, operand_index = {i}, operand_tuple_indices"
        " = []>"
        for i, o in aliases
    )
    return b.ops(
        "stablehlo.custom_call",
        operands,
        [b.type(a) for a in outs],
        {
            "call_target_name": ir.StringAttr.get(target),
            "api_version": b.int_attr(version, 32),
            "has_side_effect": b.bool_attr(side_effect),
            "backend_config": (
                ir.StringAttr.get(config or "") if not isinstance(config, dict) else ir.DictAttr.get(config)
            ),
            "operand_layouts": in_layouts,
            "result_layouts": out_layouts,
            "output_operand_aliases": b.attr(f"[{alias}]"),
        },
    )


@rule("ffi_call")
def _ffi_call(
    b,
    ins,
    outs,
    *operands,
    target_name,
    attributes,
    custom_call_api_version,
    legacy_backend_config,
    input_layouts,
    output_layouts,
    input_output_aliases,
    has_side_effect,
    **_,
):
    config = {k: attribute(b, v) for k, v in attributes} if custom_call_api_version >= 4 else legacy_backend_config
    return custom_call(
        b,
        outs,
        operands,
        target_name,
        config,
        custom_call_api_version,
        layouts(b, input_layouts),
        layouts(b, output_layouts),
        input_output_aliases,
        has_side_effect,
    )
