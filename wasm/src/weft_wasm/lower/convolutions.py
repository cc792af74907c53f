"""conv_general_dilated as products with windows: its operand is padded once, in its own order of axes, and read in
place.

Whatever the layout, rows (images, places of windows) and terms (features, places in a window) run through axes of the
operand, and groups through one of the two that are no space: all are strides. Gaps between the operand's elements are
not filled with zeros: windows that begin at the same distance from an element meet elements at the same places, so that
each such *phase* is a convolution without gaps.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from weft.core.jaxpr import JaxprEqn

from weft_wasm.ir.affine import row_major
from weft_wasm.ir.nodes import Expr, Stmt, convert, i32
from weft_wasm.lower import fuse, graph
from weft_wasm.lower.accuracy import in_float64
from weft_wasm.lower.dots import TILED, accumulator, results
from weft_wasm.lower.loop_nests import GraphLowering, Reader, opaque
from weft_wasm.lower.graph import Builder, Node, Value
from weft_wasm.lower.types import array_type, storage_dtype
from weft_wasm.routines.implicit_gemm import Product, implicit_gemm
from weft_wasm.routines.register_tiles import tiled_windows

graph.known.add("convolution")
MOST_PHASES = 16  # the gaps of operands that have more are filled


def phases(n: int, count: int, window: int, stride: int, low: int, gap: int, dilation: int) -> list[Phase]:
    """The phases along an axis of n elements `gap` apart: window r begins at r·stride - low, and its place q is
    q·dilation further on.
    """
    period, step = gap // math.gcd(stride, gap), gap // math.gcd(dilation, gap)
    out = []
    for f in range(min(period, count)):
        tap = next((q for q in range(min(step, window)) if (f * stride + q * dilation - low) % gap == 0), window)
        start = (f * stride + tap * dilation - low) // gap
        rows, taps = -(-(count - f) // period), -(-(window - tap) // step)
        out.append(
            Phase(
                f,
                period,
                rows,
                period * stride // gap,
                start if taps else 0,
                tap if taps else 0,
                step,
                taps,
                step * dilation // gap,
            )
        )
    return out


class Phase(NamedTuple):
    """Windows first, first + period, …: the k-th begins at element start + k · stride; its places tap, tap + step, …
    lie `apart` elements apart.
    """

    first: int
    period: int
    windows: int
    stride: int
    start: int
    tap: int
    step: int
    taps: int
    apart: int

    @property
    def end(self) -> int:
        """The last element that is met."""
        return self.start + ((self.windows - 1) * self.stride + (self.taps - 1) * self.apart if self.taps else 0)


@graph.rewrite("conv_general_dilated")
def _convolution(b: Builder, eqn: JaxprEqn, ins: list[Value]) -> list[Value] | None:
    """A node `convolution` of the padded operand and the kernel in the order (terms…, features); None if its
    decomposition is better (nothing to compute, one matrix product) or more accurate.
    """
    x, kernel = ins
    p, out = eqn.params, array_type(eqn.outvars[0])
    lhs, rhs, to = p["dimension_numbers"]
    groups = p["feature_group_count"], p["batch_group_count"]
    dtype = storage_dtype(out.dtype, "conv_general_dilated", eqn.source_info)
    kind = accumulator(dtype, x.dtype)
    simple = all(
        n == 1 for n in (*[kernel.shape[d] for d in rhs[2:]], *p["window_strides"], *p["lhs_dilation"], *groups)
    )
    if (
        x.constant is not None
        or 0 in (*out.shape, x.size, kernel.size)
        or simple
        or in_float64(p["precision"])
        and kind != "f64"
    ):
        return None
    sizes, window = [out.shape[d] for d in to], [kernel.shape[d] for d in rhs]
    gaps = p["lhs_dilation"] if math.prod(p["lhs_dilation"]) <= MOST_PHASES else [1] * len(lhs[2:])
    config, axes = [(0, 0, 0)] * len(lhs), []
    for k, d in enumerate(lhs[2:]):
        fill = p["lhs_dilation"][k] // gaps[k]  # 1: the gaps stay
        n = (x.shape[d] - 1) * fill + 1
        found = phases(
            n, sizes[2 + k], window[2 + k], p["window_strides"][k], p["padding"][k][0], gaps[k], p["rhs_dilation"][k]
        )
        low = max(0, -min(f.start for f in found))
        config[d] = (low, max(0, max(f.end for f in found) + 1 - n), fill - 1)
        axes.append([f._replace(start=f.start + low) for f in found])
    shape = tuple((n - 1) * (gap + 1) + 1 + low + high for n, (low, high, gap) in zip(x.shape, config))
    if x.dtype != kind:
        x = b.add("convert_element_type", [x], [(x.shape, kind)])[0]
    if any(map(any, config)):
        x = b.add(
            "pad", [x, b.literal(0, (), kind)], [(shape, kind)], {"padding_config": tuple(config)}, eqn.source_info
        )[0]
    while x.node is not None and x.node.op == "reshape":
        x = x.node.inputs[0]
    order = sorted(range(len(lhs)), key=lhs.__getitem__)  # images, features, space in the order of memory
    rows, terms = [d for d in order if d != 1], [d for d in order if d != 0]
    strides = [row_major(shape)[d] for d in lhs]
    group = (groups[1], sizes[0] * strides[0]) if groups[1] > 1 else (groups[0], window[1] * strides[1])
    kernel = b.transpose(kernel, (*[rhs[d] for d in terms], rhs[0]))
    return b.add(
        "convolution",
        [x, kernel],
        [(out.shape, dtype)],
        {
            "kind": kind,
            "strides": tuple(strides),
            "rows": tuple(rows),
            "terms": tuple(terms),
            "group": group,
            "space": tuple(map(tuple, axes)),
            "to": tuple(to),
        },
        eqn.source_info,
    )


@opaque("convolution")
def emit_convolution(body: GraphLowering, group: fuse.Group) -> list[Stmt]:
    """A product for each phase and, in its innermost store, the elementwise members of the group."""
    node, module = group.origin, body.module
    x, kernel = node.inputs
    out, feature = node.outputs[0].shape, node.params["to"][1]
    groups, kind = node.params["group"], node.params["kind"]
    n = out[feature] // groups[0]
    before, after = math.prod(out[:feature]), math.prod(out[feature + 1 :])
    place = body.placed(x)

    def store(g: Expr, at: Sequence[Expr], j: Expr, value: Expr) -> list[Stmt]:
        return results(body, group, _long((before, at[0]), (groups[0], g), (n, j), (after, at[1])), value)

    kernels: list[Stmt] = []
    for phase in itertools.product(*node.params["space"]):
        start, rows, terms, places, indices = geometry(node, phase)

        def weight(g: Expr, t: Sequence[Expr], j: Expr, places: Sequence[Axis] = places) -> Expr:
            inner = iter(t)
            at = [(size, next(inner) * step + tap if taps != 1 else i32(tap)) for size, taps, tap, step in places]
            return convert(Reader(body).element(kernel, _long(*at, (groups[0], g), (n, j))), kind)

        begin = i32(start) if place.offset is None else place.offset + start
        product = Product(place.buffer, begin, groups, rows, terms, n, weight, indices)
        name = module.name("conv_")
        if module.plain:
            routine = tiled_windows(name, product, store, dtype=kind)
        else:
            routine = implicit_gemm(name, product, store, dtype=kind, features=module.features, plain=kind not in TILED)
        module.temps += routine.temps
        kernels += routine.kernels
    return kernels


Axis = tuple[int, int, int, int]  # of the kernel: (size, taps, first tap, step)


def geometry(
    node: Node, phase: Sequence[Phase]
) -> tuple[int, list[tuple[int, int]], tuple[tuple[int, int], ...], list[Axis], list[tuple[int, list[int]]]]:
    """(where x begins, axes of rows, axes of terms, (size, taps, first tap, step) of the kernel's axes, indices of
    rows) of a phase. The indices are those in the axes of the result before and behind its features.
    """
    strides, to, out, kernel = node.params["strides"], node.params["to"], node.outputs[0].shape, node.inputs[1].shape
    steps = row_major(out)
    inside = steps[to[1]]
    rows: list[tuple[int, int]] = []
    terms: list[tuple[int, int]] = []
    places: list[Axis] = []
    first = [0, 0]
    apart: list[tuple[int, int]] = []
    for d in node.params["rows"]:
        f = phase[d - 2] if d else Phase(0, 1, out[to[0]], 1, 0, 0, 1, 1, 1)
        behind = to[d] > to[1]
        step = steps[to[d]] if behind else steps[to[d]] // (inside * out[to[1]])
        first[behind] += f.first * step
        if f.windows != 1:
            rows.append((f.windows, f.stride * strides[d]))
            apart.append((0, f.period * step) if behind else (f.period * step, 0))
    for d, size in zip(node.params["terms"], kernel):
        f = phase[d - 2] if d > 1 else Phase(0, 1, 1, 1, 0, 0, 1, size, 1)
        terms.append((f.taps, f.apart * strides[d]))
        places.append((size, f.taps, f.tap, f.step))
    start = sum(f.start * s for f, s in zip(phase, strides[2:]))
    indices = [(first[k], [a[k] for a in apart] or [0]) for k in range(2)]
    return start, rows or [(1, 0)], _long(*terms) or ((1, 0),), places, indices


_Extent = TypeVar("_Extent", bound=int | Expr)


def _long(*axes: tuple[int, _Extent]) -> tuple[tuple[int, _Extent], ...]:
    """The axes with more than one element."""
    return tuple(axis for axis in axes if axis[0] != 1)
