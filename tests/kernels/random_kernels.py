"""Random programs of the loop IR, also of what no lowering makes: kernels with branches, conditional loops and loops of
lengths that only the device knows, memory that a workgroup shares, and the same between kernels. All numbers are of 32
bits and exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from weft_wasm.ir import nodes
from weft_wasm.ir.nodes import (
    Assign,
    Barrier,
    Buffer,
    Const,
    Copy,
    Declare,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Local,
    Program,
    Stmt,
    Store,
    Switch,
    Var,
    While,
    i32,
    lt,
)

ROWS, WIDTH = 6, 4
LONG = 300  # terms that a workgroup shares


class Statements:
    """Random statements of a kernel: bindings, locals, memory that changes, branches and loops within each other.

    conditional: whether loops may have lengths that only the device knows. longest: how long the others may be."""

    def __init__(self, seed: int, conditional: bool = False, longest: int = 5):
        self.rng, self.conditional, self.longest = np.random.default_rng(seed), conditional, longest
        self.x = Buffer("x", "i32", (16,), "input")
        self.state, self.out = Buffer("state", "i32", (ROWS, WIDTH)), Buffer("out", "i32", (ROWS, WIDTH), "output")
        self.point = Var("i")

    def pick(self, items: Sequence):
        return items[self.rng.integers(len(items))]

    def value(self, names: Sequence[Expr]) -> Expr:
        a = self.pick(
            [
                *names,
                i32(int(self.rng.integers(-3, 9))),
                self.x[self.at(names, 16)],
                self.state[self.point * WIDTH + self.at(names, WIDTH)],
            ]
        )
        return self.pick([a, a + self.pick(names), a * 3 - self.pick(names)])

    def at(self, names: Sequence[Expr], n: int) -> Expr:
        return nodes.Binary("and", self.pick(names), i32(n - 1))

    def block(self, names: Sequence[Expr], locals_: Sequence[Local], depth: int) -> list[Stmt]:
        out: list[Stmt] = []
        names, locals_ = list(names), list(locals_)
        for _ in range(self.rng.integers(1, 4)):
            choice = self.rng.random()
            if choice < 0.2:
                out.append(Let(v := Var("v"), self.value(names)))
                names.append(v)
            elif choice < 0.35:
                out.append(Declare(a := Local("a", "i32"), self.value(names)))
                names.append(a)
                locals_.append(a)
            elif choice < 0.5 and locals_:
                out.append(Assign(self.pick(locals_), self.value(names)))
            elif choice < 0.6 or not depth:
                place = self.point * WIDTH + self.at(names, WIDTH)
                out.append(Store(self.pick([self.state, self.out]), place, self.value(names)))
            elif choice < 0.85:
                out += self.loop(names, locals_, depth)
            elif choice < 0.93:
                then = self.block(names, locals_, depth - 1)
                orelse = self.pick([[], self.block(names, locals_, depth - 1)])
                out.append(If(lt(self.value(names), 4), then, orelse))
            else:
                out.append(Switch(self.value(names), [self.block(names, locals_, depth - 1) for _ in range(3)]))
        return out

    def loop(self, names: list[Expr], locals_: list[Local], depth: int) -> list[Stmt]:
        v, count = Var("t"), int(self.rng.integers(1, self.longest + 1))
        form = self.rng.random() if self.conditional else 1.0
        if form < 0.25:
            left = Local("left", "i32")
            body = [*self.block([*names, left], locals_, depth - 1), Assign(left, left - 1)]
            return [Declare(left, self.at(names, 4)), While([], nodes.gt(left, 0), body)]
        if form < 0.5:
            length = self.pick([self.at(names, 4), nodes.minimum(self.value(names), i32(count))])
            return [For(v, length, self.block([*names, v], locals_, depth - 1))]
        return [For(v, count, self.block([*names, v], locals_, depth - 1))]

    def zero(self) -> Kernel:
        return Kernel(
            "zero",
            [For(z := Var("z"), ROWS * WIDTH, [Store(b, z, z)], "parallel") for b in (self.state, self.out)],
        )

    def program(self) -> Program:
        loops = For(self.point, ROWS, self.block([self.point], [], 3), "parallel")
        return Program("p", [self.x], [self.out], [self.state], [self.zero(), Kernel("k", [loops])])

    def data(self) -> list[np.ndarray]:
        return [self.rng.integers(-9, 9, 16).astype(np.int32)]


class Kernels(Statements):
    """Whole programs: kernels of several forms, in loops and branches between them."""

    def __init__(self, seed: int, longest: int = 5):
        super().__init__(seed, True, longest)
        self.temps = [self.state]

    def temp(self, name: str, dtype: str, shape: tuple[int, ...]) -> Buffer:
        self.temps.append(b := Buffer(name, dtype, shape))
        return b

    def of_points(self, names: list[Expr]) -> list[Stmt]:
        """A grid, of a length that only the device may know, and bindings that it may need."""
        before: list[Stmt] = []
        source = self.pick([self.x, self.state])
        if self.rng.random() < 0.5:
            value = source[i32(int(self.rng.integers(16)))] + self.pick([i32(1), *names])
            before.append(Let(v := Var("before"), value))
            names = [*names, v]
        length = nodes.minimum(nodes.maximum(self.pick([self.x[0], *names[-1:]]), 0), i32(ROWS))
        count = self.pick([ROWS, ROWS, length])
        self.point = point = Var("i")
        return [*before, For(point, count, self.block([*names, point], [], 2), "parallel")]

    def of_one(self, names: list[Expr]) -> list[Stmt]:
        """Statements of one invocation, a local of which a grid reads."""
        sum_, t = Local("sum", "i32"), Var("t")
        self.point = point = Var("i")
        body = Store(self.out, point * WIDTH, sum_ + self.value([*names, point]))
        return [
            Declare(sum_, self.pick([i32(1), *names])),
            For(t, 5, [Assign(sum_, sum_ + self.x[t])]),
            For(point, ROWS, [body], "parallel"),
        ]

    def of_workgroups(self, names: list[Expr]) -> list[Stmt]:
        """Long sums, which a workgroup shares, and what it does with them."""
        acc, k, v = Local("acc", "i32"), Var("k"), Var("sum")
        self.point = i = Var("i")
        names = [*names, i]
        term = self.x[nodes.Binary("and", k, i32(15))] * self.pick([k, *names])
        body: list[Stmt] = [
            Declare(acc, self.pick(names)),
            For(k, self.pick([LONG, LONG * self.longest // 5]), [Assign(acc, acc + term)], "reduce"),
            Let(v, acc),
        ]
        t, u = Var("t"), Var("u")
        row = i * WIDTH
        forms: list[Callable[[], Stmt]] = [
            lambda: Store(self.state, row, v),
            lambda: For(t, 2, [For(u, 2, [Store(self.state, row + t * 2 + u, v + t - u)], "parallel")], "parallel"),
            lambda: If(lt(v, 9), [Store(self.out, row + 1, v)], [Store(self.out, row + 2, v)]),
            lambda: Store(self.out, row + 3, self.state[row + 1] + v),
            lambda: Assign(acc, acc + self.state[row]),
        ]
        body += [self.pick(forms)() for _ in range(self.rng.integers(1, 5))]
        return [For(i, ROWS, [*body, Store(self.out, row, acc)], "parallel")]

    def kernel(self, names: list[Expr]) -> Kernel:
        form = self.rng.random()
        if form < 0.1:
            self.point = i32(int(self.rng.integers(ROWS)))
            shared, v = Buffer("shared", "i32", (WIDTH,), "workgroup"), Var("v")
            first = [Store(shared, i32(k), self.value([i32(1), *names])) for k in range(WIDTH)]
            last = [Let(v, shared[self.at([i32(1), *names], WIDTH)]), *self.block([v], [], 1)]
            return Kernel("shared", [*first, Barrier(), *last], [shared])
        make = self.pick([self.of_points, self.of_points, self.of_one, self.of_workgroups])
        return Kernel("k", [s for _ in range(self.rng.integers(1, 3)) for s in make(names)])

    def statement(self, names: list[Expr], depth: int) -> list[Stmt]:
        choice = self.rng.random() if depth else 0.0
        t = Var("round")
        if choice < 0.4:
            return [self.kernel(names)]
        if choice < 0.5:
            to, at = (int(self.rng.integers(0, ROWS * WIDTH - 5)) for _ in range(2))
            where: Expr | int = self.pick([to, *[nodes.Binary("and", n, i32(7)) for n in names]])
            return [Copy(self.pick([self.state, self.out]), self.state, 5, where, at)]
        if choice < 0.65:
            count = self.pick([0, 2, 3, nodes.Binary("and", self.x[1], i32(3))])
            return [For(t, count, self.body([*names, t], depth - 1))]
        if choice < 0.75:
            left, test = self.temp("left", "i32", ()), self.temp("test", "bool", ())
            start = Kernel("start", [Store(left, i32(0), i32(int(self.rng.integers(3))))])
            check = Kernel("check", [Store(test, i32(0), nodes.gt(left[0], 0))])
            again = self.pick([[], [Store(test, i32(0), Const(True, "bool"))]])  # which the check writes over
            step = Kernel("step", [Store(left, i32(0), left[0] - 1), *again])
            return [start, While([check], test[0], [*self.body(names, depth - 1), step])]
        if choice < 0.83:
            then, orelse = self.body(names, depth - 1), self.pick([[], self.body(names, depth - 1)])
            return [If(lt(self.state[3], 9), then, orelse)]
        if choice < 0.9:
            return self.grid(names)
        branches = [self.body(names, depth - 1) for _ in range(3)]
        if self.rng.random() < 0.5:
            return [Switch(self.state[2], branches)]
        index = self.temp("index", "i32", ())  # a branch may write over it
        branches[1] += self.pick([[], [Kernel("later", [Store(index, i32(0), i32(2))])]])
        return [Kernel("choose", [Store(index, i32(0), self.at([self.state[2]], 4))]), Switch(index[0], branches)]

    def grid(self, names: list[Expr]) -> list[Stmt]:
        """Kernels in a parallel loop, which is to become one kernel. Each iteration has a row of its own."""
        rows, columns = Var("row"), Var("column")
        if self.rng.random() < 0.3:
            self.point = rows * 2 + columns
            inner = For(columns, 2, self.of_row([*names, self.point], 2), "parallel")
            return [For(rows, ROWS // 2, [inner], "parallel")]
        self.point = rows
        count = self.pick([ROWS, ROWS, nodes.Binary("and", self.x[1], i32(3))])
        return [For(rows, count, self.of_row([*names, rows], 2), "parallel")]

    def of_row(self, names: list[Expr], depth: int) -> list[Stmt]:
        """Statements of the program level that use one row, and temps that hold nothing between iterations."""
        out: list[Stmt] = []
        row, k = self.point * WIDTH, Var("k")
        inner = lambda *more: self.of_row([*names, *more], depth - 1)
        for _ in range(self.rng.integers(1, 4)):
            choice = self.rng.random() if depth else 0.0
            if choice < 0.45:
                out.append(Kernel("own", self.block(names, [], 1)))
            elif choice < 0.6:
                out.append(Copy(self.pick([self.state, self.out, self.out]), self.state, 2, row, row + 1))
            elif choice < 0.7:
                out.append(For(k, self.pick([2, nodes.Binary("and", self.state[row], i32(1))]), inner(k)))
            elif choice < 0.8:
                out.append(If(lt(self.state[row], 4), inner(), self.pick([[], inner()])))
            elif choice < 0.9:
                out.append(Switch(self.state[row + 1], [inner() for _ in range(2)]))
            else:
                left, test = self.temp("left", "i32", ()), self.temp("test", "bool", ())
                out.append(Kernel("start", [Store(left, i32(0), self.at(names, 4))]))
                check = Kernel("check", [Store(test, i32(0), nodes.gt(left[0], 0))])
                step = Kernel("step", [Store(left, i32(0), left[0] - 1)])
                out.append(While([check], test[0], [*inner(), step]))
        if self.rng.random() < 0.1:
            shared = Buffer("shared", "i32", (1,), "workgroup")
            store = Store(self.out, row, shared[0] + 1)
            out.append(Kernel("shared", [Store(shared, i32(0), self.value(names)), Barrier(), store], [shared]))
        return out

    def body(self, names: list[Expr], depth: int) -> list[Stmt]:
        return [s for _ in range(self.rng.integers(1, 3)) for s in self.statement(names, depth)]

    def program(self) -> Program:
        body = [self.zero(), *self.body([], 2), *self.body([], 2)]
        return Program("p", [self.x], [self.out], self.temps, body)
