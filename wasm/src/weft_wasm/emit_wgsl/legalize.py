"""Loop IR → loop IR that WebGPU can run: elements of a word each, but in what a program is given and gives, loop
variables of the program in buffers, copies and loops that only the device can count as kernels, no more buffers in a
kernel than a shader stage binds, and conditions that kernels test themselves.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import assert_never

from weft_wasm.emit_wgsl.chunks import chunked
from weft_wasm.emit_wgsl.dispatches import free, split
from weft_wasm.emit_wgsl.packing import is_narrow, pack, packed_bytes, packed_where_computed, words_of
from weft_wasm.emit_wgsl.shader import TYPES, WORD, WgslError, is_packed
from weft_wasm.ir.nodes import (
    Assign,
    Barrier,
    Buffer,
    Convert,
    Copy,
    Declare,
    Expr,
    Fail,
    For,
    HostCall,
    If,
    Instance,
    Kernel,
    Let,
    Load,
    Poll,
    Program,
    Select,
    Stmt,
    Store,
    Switch,
    Var,
    While,
    i32,
    lt,
)
from weft_wasm.ir.rewriting import assigned, expanded
from weft_wasm.ir.traversal import constants_of, operands, rebuild, touched, walk, walk_expr, written

MOST_GATES = 2  # conditions that a kernel tests: each takes a binding
MOST_KERNELS = 128  # launched for a branch, perhaps in vain


@dataclass(slots=True)
class Legal:
    """The program, and its buffers outside the arena: the counter of each loop that is encoded (None: not read), the
    flag of each While and Switch. Gated are those whose kernels test the flag themselves, so that the host need not
    know it before it launches them.
    """

    program: Program
    counters: dict[Var, Buffer | None] = field(default_factory=dict)
    flags: dict[While | Switch, Buffer] = field(default_factory=dict)
    gated: set[While | Switch] = field(default_factory=set)


def legalize(program: Program, max_bindings: int) -> Legal:
    """A program whose statements all have a step of the plan. Its temps have one word for each element; its inputs and
    constants as many bytes as elsewhere, and at its end narrow outputs are packed into words.
    """
    return _Legalizer(program, max_bindings).run()


class _Legalizer:
    def __init__(self, program: Program, max_bindings: int):
        self.program, self.max_bindings = program, max_bindings
        self.buffers: dict[Buffer, Buffer] = {}
        self.temps: list[Buffer] = []
        self.cells: dict[Var, Buffer] = {}  # variables of the program's loops, in buffers
        self.counters: dict[Var, Buffer | None] = {}
        self.flags: dict[While | Switch, Buffer] = {}
        self.own_flags: dict[While | Switch, Buffer] = {}  # of the program, that the host or a kernel reads as they are
        self.gated: set[While | Switch] = set()
        self.gates = 0  # conditions around the statement at hand that its kernels may test

    def run(self) -> Legal:
        p = self.program
        of_flags: dict[Buffer, While | Switch] = {}
        for depends, b in conditions_in_buffers(p.body):
            of_flags.setdefault(b, depends)  # where several depend on it, the others copy it
        self.own_flags = {depends: b for b, depends in of_flags.items()}
        for b in (*p.inputs, *constants_of(p)):
            self.buffers[b] = self.word_sized(b)
            self.buffers[b].nbytes = packed_bytes(b)
        given = {b: words_of(b) for b in p.outputs if is_narrow(b)}
        source, in_words = packed_where_computed(p, given)
        for b in p.outputs:
            if b in in_words:
                self.buffers[given[b]] = given[b]
            else:
                self.buffers[b] = self.temp(b.name, b.dtype, b.shape) if b in given else self.word_sized(b)
        for b in p.temps:
            self.buffers[b] = self.word_sized(b, "flag" if b in of_flags else None)
        for s in walk(p.body):
            if type(s) is Kernel:
                for b in s.workgroup:
                    self.buffers[b] = self.word_sized(b, "temp")
                    self.temps.append(self.buffers[b])
        self.temps += [self.buffers[b] for b in p.temps if b not in of_flags]
        body = self.body(source)
        body += [pack(words, self.buffers[b]) for b, words in given.items() if b not in in_words]
        new = Program(
            p.name,
            [self.buffers[b] for b in p.inputs],
            [given.get(b) or self.buffers[b] for b in p.outputs],
            self.temps,
            body,
            [self.buffers[b] for b in constants_of(p)],
            p.donated,
            p.errors,
        )
        return Legal(new, self.counters, self.flags, self.gated)

    def word_sized(self, b: Buffer, role: str | None = None) -> Buffer:
        if b.dtype not in TYPES:
            raise WgslError(
                f"{self.program.name}: {b!r} has dtype {b.dtype}, which WebGPU devices do not have; "
                "use 32-bit dtypes, or the wasm or cpu backend"
            )
        if b.role == "private":
            raise WgslError(
                f"{self.program.name}: {b!r} is each thread's own, which a WebGPU program can't have; lower the program"
                " for WebGPU, with plain=True"
            )
        new = Buffer(b.name, b.dtype, b.shape, role or b.role, b.data, b.label)
        new.nbytes = WORD * b.size
        return new

    def temp(self, name: str, dtype: str, shape: tuple[int, ...] = (), role: str = "temp") -> Buffer:
        b = self.word_sized(Buffer(name, dtype, shape, role))
        if role == "temp":
            self.temps.append(b)
        return b

    def source_temp(self, name: str, dtype: str, shape: tuple[int, ...]) -> Buffer:
        """A temp of the program as it was before it is made legal."""
        b = Buffer(name, dtype, shape)
        self.buffers[b] = self.word_sized(b)
        self.temps.append(self.buffers[b])
        return b

    # ---- statements of the program

    def body(self, body: Sequence[Stmt]) -> list[Stmt]:
        return [new for s in body for new in self.statement(s)]

    def statement(self, s: Stmt) -> list[Stmt]:
        match s:
            case Kernel():
                return self.kernel(s)
            case Instance():
                return self.kernel(expanded(s))
            case Copy():
                return self.copy(s)
            case For():
                return self.loop(s)
            case While():
                return self.loop_while(s)
            case If():
                return self.choice(s, Select(s.test, i32(0), i32(1)), [s.then, s.orelse])
            case Switch():
                return self.choice(s, s.index, s.branches)
            case Fail():
                text = self.program.errors.get(s.code, "")
                raise WgslError(
                    f"{self.program.name}: a WebGPU program can't end with an error ({text!r}); run it on the wasm or"
                    " cpu backend"
                )
            case HostCall():
                return self.host_call(s)
            case Poll():
                return []  # a host that waits for a plan checks between its submits
            case Let() | Declare() | Assign() | Store() | Barrier():
                raise TypeError(f"{type(s).__name__} is not a statement of the program level")
            case _:
                assert_never(s)

    def kernel(self, s: Kernel) -> list[Stmt]:
        parts = chunked(s, self.source_temp)
        if parts is not None:
            return self.body(parts)
        body = Rewriter(self.buffers).block(s.body)
        cells = [Let(v, self.read_cell(v)) for v in free(body) if type(v) is Var and v in self.cells]
        return self.bound(Kernel(s.name, [*cells, *body], [self.buffers[b] for b in s.workgroup]))

    def read_cell(self, v: Var) -> Load:
        if v in self.counters:
            self.counters[v] = self.cells[v]
        return Load(self.cells[v], i32(0))

    def in_cells(self, e: Expr, cells: list[Let]) -> Expr:
        """A program-level expression inside a kernel; bindings of loop variables go to `cells`."""
        for v in walk_expr(e):
            if type(v) is Var and v in self.cells and all(let.var is not v for let in cells):
                cells.append(Let(v, self.read_cell(v)))
        return Rewriter(self.buffers).expr(e)

    def bound(self, kernel: Kernel) -> list[Stmt]:
        """The kernel with arguments that exceed the bindings of a stage copied to and from temps, which share one
        binding.
        """
        before: list[Stmt] = []
        after: list[Stmt] = []
        moved: dict[Buffer, Buffer] = {}
        for d in split(kernel):
            reads, writes = touched(d.statements())
            mine = [moved.get(b, b) for b in dict.fromkeys((*reads, *writes))]
            own = [b for b in mine if b.role not in ("temp", "constant")]
            shared = any(b.role == "constant" for b in mine) + 1
            excess = len(own) + shared - (self.max_bindings - self.gates)
            movable = sorted((b for b in own if b.role in ("input", "output", "flag")), key=lambda b: b.nbytes)
            for b in movable[: max(excess, 0)]:
                moved[b] = self.temp(b.name, b.dtype, b.shape)
        changed = written(kernel.body) if moved else []
        for b, temp in moved.items():
            before.append(self.whole(temp, b))
            if b in changed:
                after.append(self.whole(b, temp))
        if moved:
            kernel = Kernel(kernel.name, Rewriter(moved).block(kernel.body), kernel.workgroup)
        return [*before, kernel, *after]

    def whole(self, dst: Buffer, src: Buffer) -> Stmt:
        if self.gates or is_packed(src):
            return self.copying(dst, i32(0), src, i32(0), src.size, [])
        return Copy(dst, src, src.size)

    def host_call(self, s: HostCall) -> list[Stmt]:
        """Functions of the host take elements of a word each."""
        before: list[Stmt] = []
        arguments: list[Buffer] = []
        for b in (self.buffers[b] for b in s.arguments):
            if is_packed(b):
                before.append(self.whole(wide := self.temp(b.name, b.dtype, b.shape), b))
                b = wide
            arguments.append(b)
        return [*before, HostCall(s.number, self.buffers[s.table], arguments, [self.buffers[b] for b in s.results])]

    def copy(self, s: Copy) -> list[Stmt]:
        dst, src = self.buffers[s.dst], self.buffers[s.src]
        fixed = isinstance(s.dst_index, int) and isinstance(s.src_index, int)
        if s.count == 0:
            return []
        plain = not (self.gates or is_packed(src))
        if fixed and dst is not src and not dst.role == src.role == "temp" and plain:
            return [Copy(dst, src, s.count, s.dst_index, s.src_index)]
        cells: list[Let] = []
        to, at = (i32(x) if isinstance(x, int) else self.in_cells(x, cells) for x in (s.dst_index, s.src_index))
        if dst is not src:
            return self.bound(self.copying(dst, to, src, at, s.count, cells))
        between = self.temp(f"{src.name}.copy", src.dtype, (s.count,))  # the two ranges may overlap
        return [
            *self.bound(self.copying(between, i32(0), src, at, s.count, cells)),
            *self.bound(self.copying(dst, to, between, i32(0), s.count, cells)),
        ]

    def copying(self, dst: Buffer, to: Expr, src: Buffer, at: Expr, count: int, cells: Sequence[Stmt]) -> Kernel:
        k = Var("k")
        return Kernel("copy", [*cells, For(k, count, [Store(dst, to + k, Load(src, at + k))], "parallel")])

    def loop(self, s: For) -> list[Stmt]:
        if isinstance(s.extent, Expr):
            return self.counted_on_device(s, s.extent)
        if s.extent <= 0:
            return []
        self.cells[s.var] = self.temp(f"{s.var.name}.counter", "i32", role="counter")
        self.counters[s.var] = None
        return [For(s.var, s.extent, self.body(s.body), s.kind)]

    def counted_on_device(self, s: For, extent: Expr) -> list[Stmt]:
        """For with an extent that is computed: a While that counts in a temp."""
        at, end = self.temp(s.var.name, "i32"), self.temp(f"{s.var.name}.end", "i32")
        cells: list[Let] = []
        counted = self.in_cells(extent, cells)
        start = Kernel("start", [*cells, Store(at, i32(0), i32(0)), Store(end, i32(0), counted)])
        self.cells[s.var] = at
        count = Kernel("count", [Store(at, i32(0), Load(at, i32(0)) + 1)])
        test = lt(Load(at, i32(0)), Load(end, i32(0)))
        with self.gate(conditions(s.body) < MOST_GATES):
            loop = While([], test, [*self.body(s.body), count])
        loop.cond.append(self.flag(loop, Convert(test, "u32"), []))
        self.settle(loop, loop.body)
        return [start, loop]

    def loop_while(self, s: While) -> list[Stmt]:
        cond = self.body(s.cond)
        with self.gate(conditions(s.body) < MOST_GATES):
            body = self.body(s.body)
        cells: list[Let] = []
        test = self.in_cells(s.test, cells)
        new = While(cond, test, body)
        cond += self.flag_of(s, new, Convert(test, "u32"), cells)
        self.settle(new, [*cond, *body])
        return [new]

    def choice(self, s: Switch | If, index: Expr, branches: Sequence[Sequence[Stmt]]) -> list[Stmt]:
        cells: list[Let] = []
        chosen = self.in_cells(index, cells)
        few = sum(map(launches, branches)) <= MOST_KERNELS
        with self.gate(few and max(map(conditions, branches)) < MOST_GATES):
            new = Switch(chosen, [self.body(b) for b in branches])
        before = self.flag_of(s, new, chosen, cells)
        if few:
            self.settle(new, [s for b in new.branches for s in b])
        return [*before, new]

    @contextmanager
    def gate(self, can: bool) -> Iterator[None]:
        """Around the statements that a condition is for, if their kernels can test it."""
        self.gates += can
        yield
        self.gates -= can

    def settle(self, s: While | Switch, inner: Sequence[Stmt]) -> None:
        """Gates a statement if nothing in it waits for the host."""
        if conditions(inner, self.gated) < MOST_GATES:
            self.gated.add(s)

    def flag_of(self, old: Stmt, new: While | Switch, value: Expr, cells: Sequence[Stmt]) -> list[Stmt]:
        """What has to run so that there is a flag."""
        own = self.own_flags.get(old) if isinstance(old, (While, Switch)) else None
        if own is None:
            return [self.flag(new, value, cells)]
        self.flags[new] = self.buffers[own]
        return []

    def flag(self, s: While | Switch, value: Expr, cells: Sequence[Stmt]) -> Kernel:
        """A kernel that copies the values that the host must read back into a separate buffer."""
        flag = self.flags[s] = self.temp("flag", value.dtype, role="flag")
        return Kernel("flag", [*cells, Store(flag, i32(0), value)])


def conditions_in_buffers(body: Sequence[Stmt]) -> Iterator[tuple[While | Switch, Buffer]]:
    """The statements of a program whose condition is a temp that stays as it is while what depends on it runs."""
    for s in body:
        inner: list[list[Stmt]] = []
        match s:
            case For():
                inner = [s.body]
            case If():
                inner = [s.then, s.orelse]
            case While(test=Load(buffer=b)) if b.role == "temp" and b.size == 1 and b not in written(s.body):
                yield s, b
                inner = [s.cond, s.body]
            case While():
                inner = [s.cond, s.body]
            case Switch(index=Load(buffer=b)) if b.role == "temp" and b.size == 1:
                if all(b not in written(branch) for branch in s.branches):
                    yield s, b
                inner = s.branches
            case Switch():
                inner = s.branches
        for each in inner:
            yield from conditions_in_buffers(each)


def conditions(body: Sequence[Stmt], gated: Container[Stmt] | None = None) -> float:
    """How many conditions, one in another, kernels of these statements depend on; infinite if the host has to read a
    value back between them. gated: the conditions that kernels test, once that is known.
    """
    return max((_conditions(s, gated) for s in body), default=0)


def _conditions(s: Stmt, gated: Container[Stmt] | None) -> float:
    match s:
        case For():
            return math.inf if isinstance(s.extent, Expr) else conditions(s.body, gated)
        case If():
            return 1 + max(conditions(s.then, gated), conditions(s.orelse, gated))
        case Switch() if gated is None or s in gated:
            return 1 + max(conditions(b, gated) for b in s.branches)
        case Switch() | While() | HostCall() | Fail():
            return math.inf
        case _:
            return 0


def launches(body: Sequence[Stmt]) -> int:
    """About how many kernels these statements launch."""
    count = 0
    for s in body:
        match s:
            case For():
                count += (s.extent if isinstance(s.extent, int) else 1) * launches(s.body)
            case If():
                count += launches(s.then) + launches(s.orelse)
            case Switch():
                count += sum(map(launches, s.branches))
            case _:
                count += 1
    return count


class Rewriter:
    """Statements and expressions on other buffers."""

    def __init__(self, buffers: Mapping[Buffer, Buffer]):
        self.buffers = buffers
        self.memo: dict[Expr, Expr] = {}

    def expr(self, root: Expr) -> Expr:
        memo = self.memo
        for e in walk_expr(root, set(memo)) if memo else walk_expr(root):
            old = operands(e)
            if type(e) is Load:
                buffer, index = self.buffers.get(e.buffer, e.buffer), memo[e.index]
                memo[e] = e if buffer is e.buffer and index is e.index else Load(buffer, index)
            elif not old or all(memo[x] is x for x in old):
                memo[e] = e
            else:
                memo[e] = rebuild(e, [memo[x] for x in old])
        return memo[root]

    def block(self, body: Sequence[Stmt]) -> list[Stmt]:
        return [self.statement(s) for s in body]

    def statement(self, s: Stmt) -> Stmt:
        match s:
            case For():
                return For(
                    s.var, self.expr(s.extent) if isinstance(s.extent, Expr) else s.extent, self.block(s.body), s.kind
                )
            case While():
                return While(self.block(s.cond), self.expr(s.test), self.block(s.body))
            case If():
                return If(self.expr(s.test), self.block(s.then), self.block(s.orelse))
            case Switch():
                return Switch(self.expr(s.index), [self.block(b) for b in s.branches])
            case Let():
                return Let(s.var, self.expr(s.value))
            case Declare():
                return Declare(s.local, self.expr(s.init))
            case Assign():
                return Assign(s.local, assigned(s, self.expr))
            case Store():
                return Store(self.buffers.get(s.buffer, s.buffer), self.expr(s.index), self.expr(s.value))
            case Barrier() | Poll():
                return s
            case Kernel() | Instance() | Copy() | HostCall() | Fail():
                raise TypeError(f"{type(s).__name__} is not a statement of a kernel")
            case _:
                assert_never(s)
