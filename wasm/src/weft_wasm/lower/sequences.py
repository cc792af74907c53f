"""Running reductions along an axis, and the positions of extrema."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from weft.base.annotations import override

from weft_wasm.ir import nodes
from weft_wasm.ir.nodes import (
    Assign,
    Binary,
    Call,
    Const,
    Declare,
    Expr,
    For,
    Kernel,
    Let,
    Local,
    Select,
    Stmt,
    Unary,
    Var,
    convert,
    sub,
)
from weft_wasm.lower.blocks import Blocks, Shape
from weft_wasm.lower.loop_nests import GraphLowering, Place, Reader, opaque, wrap
from weft_wasm.lower.graph import Node
from weft_wasm.lower.reductions import CUMULATIVE, REDUCERS
from weft_wasm.lower.types import lowest, scalar_dtype

PART = 64  # elements of a running sum that are added one after the other
LONG = 1 << 14  # elements that one invocation of a shader goes through
Combine: TypeAlias = Callable[[Expr, Expr], Expr]
Read: TypeAlias = Callable[[Expr, Expr, Expr], Expr]
Write: TypeAlias = Callable[[Expr, Expr, Expr, Expr], Stmt]
Step: TypeAlias = Callable[[Expr, "Accumulator", Expr | None], list[Stmt]]
Sizes: TypeAlias = tuple[int, int, int]  # outside of an axis, along it, inside of it


def around(shape: Shape, axis: int) -> Sizes:
    """(elements outside the axis, along it, inside it)."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def blocks_of(*parts: tuple[int, Expr]) -> Blocks:
    return tuple(p for p in parts if p[0] > 1)


class Accumulator:
    """Combines elements, one after the other, in a local."""

    def __init__(self, initial: Const, combine: Combine):
        self.initial, self.combine = initial, combine
        self.local = Local("acc", initial.dtype)

    @property
    def value(self) -> Expr:
        return self.local

    def start(self) -> list[Stmt]:
        return [Declare(self.local, self.initial)]

    def add(self, x: Expr) -> list[Stmt]:
        return [Assign(self.local, self.combine(self.local, x))]


class LogSum(Accumulator):
    """log(Σ exp(x)) as a number near the largest element, and the sum of the exponentials of the elements relative to
    it. That sum uses W. Kahan's method: the rounding error of each addition goes into the next addend. It starts from
    one, which has no effect beside -inf.
    """

    def __init__(self, initial: Const):
        super().__init__(initial, log_add_exp)
        kind = initial.dtype
        self.top, self.sum, self.lost = self.local, Local("sum", kind), Local("lost", kind)
        self.zero, self.one = Const(0.0, kind), Const(1.0, kind)

    @property
    @override
    def value(self) -> Expr:
        return nodes.add(self.top, Call("log", self.sum))

    @override
    def start(self) -> list[Stmt]:
        return [Declare(self.top, self.initial), Declare(self.sum, self.one), Declare(self.lost, self.zero)]

    @override
    def add(self, x: Expr) -> list[Stmt]:
        kind, top = self.initial.dtype, self.top
        # The number changes only for an element that is larger by more than one: then the sum is divided by at least e,
        # and so are its errors
        above, up, e = Var("above", kind), Var("up", "bool"), Var("e", kind)
        shrunk = nodes.mul(self.sum, Select(up, e, self.one))
        addend = sub(Select(up, self.one, e), nodes.mul(self.lost, Select(up, e, self.one)))
        total, rest = Var("total", kind), Var("rest", kind)
        grown = nodes.add(shrunk, addend)
        return [
            Let(above, Select(nodes.eq(x, top), self.zero, sub(x, top))),
            Let(up, nodes.gt(above, self.one)),
            Let(e, Call("exp", Select(up, Unary("neg", above), above))),
            Let(total, grown),
            Let(rest, sub(sub(grown, shrunk), addend)),
            Assign(self.sum, total),
            Assign(self.lost, rest),
            Assign(top, Select(up, x, top)),
        ]


@opaque(*CUMULATIVE, "cumlogsumexp")
def emit_cumulative(body: GraphLowering, node: Node) -> list[Stmt]:
    (x,) = node.inputs
    out = node.outputs[0]
    if out.size == 0:
        return []
    outer, n, inner = around(x.shape, node.params["axis"])
    kind = scalar_dtype(out.dtype)
    # in f64, so that errors do not grow along the axis
    wide = node.op in ("cumsum", "cumprod") and kind == "f32" and not body.module.plain

    def accumulator() -> Accumulator:
        if node.op == "cumlogsumexp":
            return LogSum(lowest(out.dtype))
        start, combine = REDUCERS[CUMULATIVE[node.op]]
        initial = start(out.dtype)
        return Accumulator(Const(initial.value, "f64") if wide else initial, combine)

    along = lambda t: sub(nodes.i32(n - 1), t) if node.params["reverse"] else t  # noqa: E731

    def read(o: Expr, t: Expr, i: Expr) -> Expr:
        return convert(
            Reader(body).element(x, blocks_of((outer, o), (n, along(t)), (inner, i))), "f64" if wide else kind
        )

    def write(o: Expr, t: Expr, i: Expr, value: Expr) -> Stmt:
        return body.places[out].store(
            blocks_of((outer, o), (n, along(t)), (inner, i)), convert(value, scalar_dtype(out.dtype))
        )

    scan = Running(body, node.op, accumulator, PART if node.op == "cumsum" and kind in nodes.FLOATS and not wide else n)
    # in products, a part may be infinite although the value before it is zero
    if body.module.plain and n > LONG and node.op != "cumprod":
        return scan.at_once((outer, n, inner), read, write)
    return [scan.kernel((outer, n, inner), read, write)]


class Running:
    """A running reduction. An axis longer than `part` is processed in parts, and the parts in the same way, so that an
    element is rounded `part` times on each of log(n) / log(part) levels. read and write take the positions outside of
    the axis, along it and inside of it.
    """

    def __init__(self, body: GraphLowering, name: str, accumulator: Callable[[], Accumulator], part: int):
        self.body, self.name, self.accumulator, self.part = body, name, accumulator, part

    def kernel(self, sizes: Sizes, read: Read, write: Write) -> Kernel:
        """One element after the other along the axis."""
        outer, n, inner = sizes
        o, i = Var("o"), Var("i")

        def step(t: Expr, acc: Accumulator, before: Expr | None) -> list[Stmt]:
            x = Var("x", acc.initial.dtype)
            return [
                Let(x, read(o, t, i)),
                *acc.add(x),
                write(o, t, i, acc.value if before is None else acc.combine(before, acc.value)),
            ]

        loops = [(v, m) for v, m in ((o, outer), (i, inner)) if m > 1]
        return self.body.kernel(self.name, wrap(loops, self._level(n, nodes.i32(0), None, step)[1]))

    def _level(self, size: int, at: Expr, before: Expr | None, step: Step) -> tuple[Accumulator, list[Stmt]]:
        """(the accumulator, the reduction) of `size` elements from `at` on. step(t, acc, before): the effect of element
        t; before is the result of earlier parts.
        """
        acc = self.accumulator()
        if size <= self.part:
            t = Var("t")
            return acc, [*acc.start(), For(t, size, step(nodes.add(at, t), acc, before), "sequential")]

        def several(size: int, at: Expr) -> list[Stmt]:
            base = Var("before", acc.initial.dtype)
            inner, body = self._level(size, at, base, step)
            return [
                Let(base, acc.value if before is None else acc.combine(before, acc.value)),
                *body,
                *acc.add(inner.value),
            ]

        inside = self.part
        while inside * self.part < size:
            inside *= self.part
        k = Var("k")
        whole, rest = divmod(size, inside)
        last = several(rest, nodes.add(at, nodes.i32(whole * inside))) if rest else []
        return acc, [
            *acc.start(),
            For(k, whole, several(inside, nodes.add(at, nodes.mul(k, inside))), "sequential"),
            *last,
        ]

    def at_once(self, sizes: Sizes, read: Read, write: Write) -> list[Stmt]:
        """The parts in parallel: the result of each, running reductions of these, then the elements."""
        outer, n, inner = sizes
        if n <= LONG:
            return [self.kernel(sizes, read, write)]
        acc = self.accumulator()
        kind, count = acc.initial.dtype, -(-n // PART)
        sums = Place(self.body.module.temp(kind, (outer, count, inner)))
        o, p, i, t, x = Var("o"), Var("p"), Var("i"), Var("t"), Var("x", kind)
        where = lambda o, p, i: blocks_of((outer, o), (count, p), (inner, i))  # noqa: E731
        at = nodes.add(nodes.mul(p, PART), t)
        step = [Let(x, read(o, at, i)), *acc.add(x)]
        extent = nodes.minimum(nodes.i32(PART), sub(nodes.i32(n), nodes.mul(p, PART))) if n % PART else PART
        loops = [(v, m) for v, m in ((o, outer), (p, count), (i, inner)) if m > 1]
        first = [*acc.start(), For(t, extent, step, "sequential"), sums.store(where(o, p, i), acc.value)]
        between = self.at_once(
            (outer, count, inner),
            lambda o, t, i: sums.load(where(o, t, i)),
            lambda o, t, i, e: sums.store(where(o, t, i), e),
        )
        base = Var("before", kind)
        second: list[Stmt] = [
            Let(base, Select(nodes.eq(p, 0), acc.initial, sums.load(where(o, nodes.maximum(sub(p, 1), 0), i)))),
            *acc.start(),
            For(t, extent, [*step, write(o, at, i, acc.combine(base, acc.value))], "sequential"),
        ]
        return [
            self.body.kernel(self.name, wrap(loops, first)),
            *between,
            self.body.kernel(self.name, wrap(loops, second)),
        ]


def log_add_exp(a: Expr, b: Expr) -> Expr:
    """log(exp(a) + exp(b)) without overflow."""
    top, low = Binary("max", a, b), Binary("min", a, b)
    grown = nodes.add(top, Call("log1p", Call("exp", nodes.sub(low, top))))
    return Select(
        nodes.eq(low, Const(-math.inf, a.dtype)), top, Select(nodes.eq(top, Const(math.inf, a.dtype)), top, grown)
    )


@opaque("argmax", "argmin")
def emit_extremum_position(body: GraphLowering, node: Node) -> list[Stmt]:
    """The extremum, then the least index that holds it; NaN is an extremum. Both loops vectorise."""
    (x,) = node.inputs
    out = node.outputs[0]
    if out.size == 0:
        return []
    (axis,) = node.params["axes"]
    outer, n, inner = around(x.shape, axis)
    start, combine = REDUCERS["reduce_max" if node.op == "argmax" else "reduce_min"]
    o, i, t, u = Var("o"), Var("i"), Var("t"), Var("u")
    initial = start(x.dtype)
    best, index = Local("best", initial.dtype), Local("index", "i32")
    here = Reader(body).element(x, blocks_of((outer, o), (n, t), (inner, i)))
    again = Reader(body).element(x, blocks_of((outer, o), (n, u), (inner, i)))
    top = Var("top", initial.dtype)
    if initial.dtype == "bool":
        hit: Expr = Unary("not", Binary("xor", again, top))
    else:
        hit = nodes.eq(again, top)
    if initial.dtype in nodes.FLOATS:
        hit = Binary("or", hit, nodes.ne(again, again))
    inside: list[Stmt] = [
        Declare(best, initial),
        For(t, n, [Assign(best, combine(best, here))], "reduce"),
        Let(top, best),
        Declare(index, nodes.i32(n)),
        For(u, n, [Assign(index, Binary("min", index, Select(hit, u, nodes.i32(n))))], "reduce"),
        body.places[out].store(blocks_of((outer, o), (inner, i)), convert(index, scalar_dtype(out.dtype))),
    ]
    loops = [(v, m) for v, m in ((o, outer), (i, inner)) if m > 1]
    return [body.kernel(node.op, wrap(loops, inside))]
