"""Barriers, sinks, tokens, and composite operations."""

from __future__ import annotations

import re

import numpy as np
from jaxlib.mlir import ir
from weft.base import dtypes

from .builder import dense, dense_ints
from .registry import rule


@rule("optimization_barrier")
def _optimization_barrier(b, ins, outs, *operands):
    return b.ops("stablehlo.optimization_barrier", operands, [b.type(a) for a in outs]) if operands else []


@rule("dce_sink")
def _dce_sink(b, ins, outs, *operands, prevent_mlir_dce):
    if not prevent_mlir_dce:
        return []
    layouts = [
        dense_ints(np.arange(len(a.shape) - 1, -1, -1), ir.RankedTensorType.get((len(a.shape),), ir.IndexType.get()))
        for a in ins
    ]
    b.ops(
        "stablehlo.custom_call",
        operands,
        [],
        {
            "call_target_name": ir.StringAttr.get("dce_sink"),
            "has_side_effect": b.bool_attr(True),
            "backend_config": ir.StringAttr.get(""),
            "operand_layouts": ir.ArrayAttr.get(layouts),
            "result_layouts": ir.ArrayAttr.get([]),
        },
    )
    return []


@rule("layout_constraint")
def _layout_constraint(b, ins, outs, x, *, layout):
    order = np.array(layout.major_to_minor[::-1], np.int64)
    stored = dense_ints(order, ir.RankedTensorType.get((len(order),), ir.IndexType.get()))
    return b.op(
        "stablehlo.custom_call",
        [x],
        b.type(outs[0]),
        {
            "call_target_name": ir.StringAttr.get("LayoutConstraint"),
            "backend_config": ir.StringAttr.get(""),
            "operand_layouts": ir.ArrayAttr.get([stored]),
            "result_layouts": ir.ArrayAttr.get([stored]),
        },
    )


@rule("create_token")
def _create_token(b, ins, outs):
    return b.op("stablehlo.create_token", [], b.type(outs[0]))


@rule("after_all")
def _after_all(b, ins, outs, *tokens):
    return b.op("stablehlo.after_all", tokens, b.type(outs[0]))


@rule("composite")
def _composite(b, ins, outs, *operands, name, attributes, version, jaxpr):
    """A call of its decomposition that keeps its name; in a program of several devices the decomposition itself."""
    if b.members is not None and b.members.indices:
        return b.inline(jaxpr, operands)
    if not re.fullmatch(r"[a-zA-Z]\w*([.][\w$]+)+", name):
        raise ValueError(
            f"composite: the name {name!r} must consist of a namespace and a name, as in 'my_library.my_op', to be"
            " compiled."
        )
    symbol = b.symbol_of(jaxpr, name)
    values = {a.name: _attribute(b, a) for a in attributes if a.structure != "PyTreeDef(None)"}
    return b.ops(
        "stablehlo.composite",
        operands,
        [b.type(a) for a in outs],
        {
            "name": ir.StringAttr.get(name),
            "version": b.int_attr(version, 32),
            "decomposition": ir.FlatSymbolRefAttr.get(symbol),
            "composite_attributes": ir.DictAttr.get(values),
        },
    )


def _attribute(b, attribute):
    leaves = [_leaf(b, v) for v in attribute.leaves]
    return leaves[0] if attribute.structure == "PyTreeDef(*)" else ir.ArrayAttr.get(leaves)


def _leaf(b, value):
    if isinstance(value, bool):
        return b.bool_attr(value)
    if isinstance(value, int):
        return b.int_attr(value)
    if isinstance(value, float):
        return ir.FloatAttr.get(ir.F64Type.get(), value)
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    if isinstance(value, tuple) and len(value) == 3 and isinstance(value[2], bytes):  # an array
        dtype, shape, data = value
        return dense(np.frombuffer(data, np.uint8), b.tensor(shape, dtypes.dtype(dtype)))
    raise ValueError(
        f"composite: the attribute value {value!r} of type {type(value).__name__} has no place in StableHLO; attributes"
        " are numbers, strings, booleans, arrays, and sequences of them."
    )
