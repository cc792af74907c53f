"""conv_general_dilated as products with windows: its operand is padded once, in its own order of axes, and read where it lies.

Whatever the layout, rows (images, places of windows) and terms (features, places in a window) run through axes of the operand, and
groups through one of the two that are no space: all are strides.
"""

from __future__ import annotations

import math

from weft_wasm import fuse, ir
from weft_wasm.ir import Expr, convert, i32, row_major
from weft_wasm.lower import graph
from weft_wasm.lower.accuracy import in_float64
from weft_wasm.lower.dots import TILED, accumulator, results
from weft_wasm.lower.emit import OPAQUE, Body, Reader
from weft_wasm.lower.graph import Builder, Value
from weft_wasm.lower.types import scalar_dtype, storage_dtype
from weft_wasm.routines.windows import Product, windows

graph.known.add("convolution")


def _convolution(b: Builder, eqn, ins):
    """A node `convolution` of the padded operand and the kernel in the order (terms…, features), between transposes; None where its
    decomposition is better (nothing to compute, one matrix product) or more exact."""
    x, kernel = ins
    p, out = eqn.params, eqn.outvars[0].aval
    lhs, rhs, to = p["dimension_numbers"]
    dtype = storage_dtype(out.dtype, "conv_general_dilated", eqn.source_info)
    kind = accumulator(dtype, x.dtype)
    config = [(0, 0, 0)] * len(lhs)
    for d, (low, high), dilation in zip(lhs[2:], p["padding"], p["lhs_dilation"]):
        config[d] = (low, high, dilation - 1)
    plain = all(n == 1 for n in (*[kernel.shape[d] for d in rhs[2:]], *p["window_strides"], p["feature_group_count"], p["batch_group_count"]))
    if x.constant is not None or 0 in (*out.shape, x.size, kernel.size) or plain or in_float64(p["precision"]) and kind != "f64":
        return None
    if x.dtype != kind:
        x = b.add("convert_element_type", [x], [(x.shape, kind)])[0]
    shape = tuple(n and (n - 1) * (gap + 1) + 1 + low + high for n, (low, high, gap) in zip(x.shape, config))
    if any(map(any, config)):
        x = b.add("pad", [x, b.literal(0, (), kind)], [(shape, kind)], {"padding_config": tuple(config)}, eqn.source_info)[0]
    while x.node is not None and x.node.op == "reshape":
        x = x.node.inputs[0]
    strides = [row_major(shape)[d] for d in lhs]  # of images, features, space; and so are these:
    sizes, window = [out.shape[d] for d in to], [kernel.shape[d] for d in rhs]
    rows = [(sizes[d], strides[d] * (p["window_strides"][d - 2] if d > 1 else 1)) for d in range(len(lhs))]
    terms = [(window[d], strides[d] * (p["rhs_dilation"][d - 2] if d > 1 else 1)) for d in range(len(lhs))]
    group = p["feature_group_count"], window[1] * strides[1]
    if p["batch_group_count"] > 1:
        group = p["batch_group_count"], sizes[0] * strides[0]
    order = sorted(range(len(lhs)), key=lhs.__getitem__)  # as they lie in memory
    row_order, term_order = [d for d in order if d != 1], [d for d in order if d != 0]
    kernel = b.transpose(kernel, (*[rhs[d] for d in term_order], rhs[0]))
    (made,) = b.add("convolution", [x, kernel], [((*[sizes[d] for d in row_order], sizes[1]), dtype)], {
        "rows": _long([rows[d] for d in row_order]), "terms": _long([terms[d] for d in term_order]), "group": group, "kind": kind,
    }, eqn.source_info)  # fmt: skip
    labels = [*row_order, 1]
    return [b.transpose(made, tuple(labels.index(to.index(d)) for d in range(len(to))))]


def _long(axes: list) -> tuple:
    """The axes of more than one element, or one of them."""
    return tuple(axis for axis in axes if axis[0] > 1) or ((1, 0),)


graph.rewrites["conv_general_dilated"] = _convolution


def emit_convolution(body: Body, group: fuse.Group) -> list:
    """The product and, in its innermost store, the elementwise members of the group."""
    node, module = group.node, body.module
    x, kernel = node.inputs
    rows, terms, groups, kind = (node.params[key] for key in ("rows", "terms", "group", "kind"))
    m, n = math.prod(size for size, _ in rows), kernel.shape[-1] // groups[0]
    place = body.place_of(x)

    def weight(g: Expr, t, j: Expr) -> Expr:
        at = (*((size, e) for (size, _), e in zip(terms, t)), (groups[0], g), (n, j))
        return convert(Reader(body).element(kernel, tuple(part for part in at if part[0] > 1)), kind)

    def store(g: Expr, i: Expr, j: Expr, value: Expr) -> list:
        return results(body, group, tuple(part for part in ((m, i), (groups[0], g), (n, j)) if part[0] > 1), value)

    product = Product(place.buffer, i32(0) if place.offset is None else place.offset, groups, rows, terms, n, weight)
    routine = windows(module.name("conv_"), product, store, dtype=kind, features=module.features, plain=module.plain or kind not in TILED)
    module.temps += routine.temps
    return routine.kernels


OPAQUE["convolution"] = emit_convolution
