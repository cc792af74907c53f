"""The verifier of the loop IR: attributes (`attributes.py`), types, scopes, roles, known bounds, and the rules of each
kind of loop. Errors name the statement and the kernel and loops around it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

from weft_wasm.ir import nodes
from weft_wasm.ir.affine import linear
from weft_wasm.ir.attributes import LABELS, VerifyError, check_attributes
from weft_wasm.ir.checks import brief
from weft_wasm.ir.nodes import (
    FLOATS,
    INTEGERS,
    ITEMSIZE,
    MATH_BINARY,
    REDUCE_OPS,
    STORAGE_FLOATS,
    Assign,
    Barrier,
    Binary,
    Bitcast,
    Buffer,
    Call,
    Compare,
    Const,
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
    Local,
    MulAdd,
    Node,
    Poll,
    Program,
    Select,
    Stmt,
    Store,
    Switch,
    Unary,
    Var,
    While,
)
from weft_wasm.ir.traversal import blocks, expressions, may_end, operands, touched, walk, walk_expr
from weft_wasm.ir.kinds import covering, method, of, same

from weft_wasm.ir.reductions import assigned_outside, reduction
from weft_wasm.ir.rewriting import expanded
from weft_wasm.ir.text import lines, show

_Name = TypeVar("_Name", Var, Local)
ADDRESS = 8  # bytes of an address in a table, as wide as there are
MOST_COPIES = 1 << 20  # of all statements, where unrolled loops are written out


def verify(program: Program) -> None:
    """Raises VerifyError if the program is malformed."""
    _Verifier(program).run()


class _Verifier:
    def __init__(self, program: Program):
        self.program = program
        self.path: list[str] = []  # the kernel and the loops around
        self.scope: set[Expr] = set()
        self.buffers: set[Buffer] = set()
        self.checked: set[Expr] = set()  # expressions whose types are right (types do not depend on scope)
        self.vector: For | None = None
        self.lane_locals: set[Expr] = set()
        self.kernel_level = False
        # how many copies of the current statement are emitted; how many statements are
        self.copies, self.written = 1, 0
        # of all surrounding loops; None if it is uncertain that a statement runs
        self.extents: dict[Expr, int] | None = {}

    def fail(self, message: str, s: Stmt | None = None) -> NoReturn:
        at = f"\n  in: {next(line for line in lines([s], 0) if line[0] != '%')[:400]}" if s is not None else ""
        raise VerifyError(f"{', '.join([self.program.name, *(self.path or ['program'])])}: {message}{at}")

    @contextmanager
    def inside(self, name: str) -> Iterator[None]:
        """The current statement is in a kernel, loop or branch."""
        self.path.append(name)
        yield
        self.path.pop()

    def run(self) -> None:
        check_attributes(self.program)
        p = self.program
        for group, role in ((p.inputs, "input"), (p.outputs, "output"), (p.temps, "temp"), (p.constants, "constant")):
            for b in group:
                self.buffer(b, "private" if role == "temp" and b.role == "private" else role)
        for out, inp in p.donated.items():
            if not (0 <= out < len(p.outputs) and 0 <= inp < len(p.inputs)):
                self.fail(f"donated names output {out} and input {inp}, which don't exist")
            if p.outputs[out].nbytes != p.inputs[inp].nbytes:
                self.fail(f"donated output {p.outputs[out]!r} and input {p.inputs[inp]!r} differ in size")
        if len(set(p.donated.values())) != len(p.donated):
            self.fail("one input is donated to two outputs")
        self.block(p.body, top=True)

    def buffer(self, b: Buffer, role: str) -> None:
        if b.role != role:
            self.fail(f"buffer {b!r} is listed as {role} but its role is {b.role}")
        if LABELS[b.label] != b.dtype or b.label in ("c64", "c128") and b.shape[-1:] != (2,):
            self.fail(f"buffer {b!r} can't hold elements of {b.label}")
        if b in self.buffers:
            self.fail(f"buffer {b!r} is listed twice")
        if role == "constant" and (b.data is None or len(b.data) != b.nbytes):
            self.fail(f"constant {b!r} needs {b.nbytes} bytes of data")
        if role != "constant" and b.data is not None:
            self.fail(f"{role} {b!r} has data, which only constants have")
        self.buffers.add(b)

    # ---- statements

    def block(self, body: list[Stmt], top: bool) -> None:
        bound = [name for s in body if (name := self.statement(s, top)) is not None]
        self.scope.difference_update(bound)

    def statement(self, s: Stmt, top: bool) -> Var | Local | None:
        """Checks a statement; adds its bindings for those after it, if it has any."""
        kind = type(s)
        if kind not in (_TOP if top else _INNER):
            level = "the program level" if top else "a kernel"
            self.fail(
                f"{kind.__name__} is not a statement of {level}" if kind in _CHECKS else f"{s!r} is not a statement"
            )
        if kind is not While:  # whose test may use bindings of its condition
            for e in expressions(s):
                self.expr(e, s)
        self.written += self.copies
        if self.written > MOST_COPIES:
            self.fail(f"unrolled loops make more than {MOST_COPIES} statements of the program", s)
        bound = _CHECKS[kind](self, s, top)
        if may_end(s):
            self.extents = None
        return bound

    def perhaps(self, body: list[Stmt], top: bool, name: str) -> None:
        """A block that may not run."""
        extents, self.extents = self.extents, None
        with self.inside(name):
            self.block(body, top)
        self.extents = extents

    def expect(self, e: Expr, dtype: str, s: Stmt, what: str) -> None:
        if e.dtype != dtype:
            self.fail(f"{what} is {e.dtype}, must be {dtype}", s)

    def kernel(self, s: Kernel, top: bool) -> None:
        extents = self.extents
        with self.inside(f"kernel {s.name}"):
            self.kernel_level = True
            for b in s.workgroup:
                self.buffer(b, "workgroup")
            self.block(s.body, top=False)
            self.private(s)
            if s.plain:
                with self.inside("plain"):
                    self.block(s.plain, top=False)
            if s.plain or s.parts or s.depth > 1:
                self.rows(s)
            self.buffers.difference_update(s.workgroup)
            self.kernel_level = False
        self.extents = extents

    def instance(self, s: Instance, top: bool) -> None:
        """The kernel on other buffers must be a kernel, and each buffer as large as the one whose place it takes."""
        everything = [x for kernel in (s.kernel, *s.kernel.parts) for x in (*kernel.body, *kernel.plain)]
        for x in walk(everything):
            if type(x) not in _INNER:
                self.fail(f"{type(x).__name__} is not a statement of a kernel", s)
        if s.kernel.workgroup:
            self.fail("its kernel has workgroup buffers, in whose place others can't stand", s)
        for old, new in s.buffers.items():
            if (old.dtype, old.size, old.role == "private") != (new.dtype, new.size, new.role == "private"):
                self.fail(f"{new!r} can't take the place of {old!r}", s)
        used = [s.buffers.get(b, b) for b in dict.fromkeys(b for group in touched(everything) for b in group)]
        if len(set(used)) < len(used):
            twice = next(b for b in used if used.count(b) > 1)
            self.fail(f"{twice!r} takes the place of two buffers", s)
        self.kernel(expanded(s), top)

    def rows(self, s: Kernel) -> None:
        """A kernel's declarations to passes must be true."""
        counts = [self.counts(body, s) for body in (s.body, s.plain or s.body)]
        if counts[0] != counts[-1]:
            self.fail(f"the loops over rows run {counts[0]} times in the body, {counts[1]} times in plain")
        if s.plain:
            for same, reads_or_writes in zip(self.visible(s.body), self.visible(s.plain)):
                if differ := same ^ reads_or_writes:
                    self.fail(f"body and plain don't use the same: {min(b.name for b in differ)}")
            left_out = {b for b in touched(s.plain)[1] if b.role != "private"}.difference(touched(s.body)[1])
            if left_out:
                self.fail(f"plain writes what its body does not: {min(b.name for b in left_out)}")
        for part in s.parts:
            self.rows(part)
        if s.parts:
            own = [self.visible(part.plain or part.body) for part in s.parts]
            for k, same in enumerate(self.visible(s.body)):
                if differ := same ^ set[Buffer]().union(*(group[k] for group in own)):
                    self.fail(f"it and its parts don't use the same: {min(b.name for b in differ)}")

    def counts(self, body: list[Stmt], s: Kernel) -> list[int]:
        """The extents of the loops over rows: each is the last statement of the surrounding one."""
        found: list[int] = []
        while len(found) < s.depth:
            last = body[-1] if body else None
            if type(last) is not For or type(last.extent) is not int:
                self.fail(f"its depth is {s.depth}, and {len(found)} loops over rows are there")
            found.append(last.extent)
            body = last.body
        return found

    def visible(self, body: list[Stmt]) -> tuple[set[Buffer], set[Buffer]]:
        """The reads and writes by statements of buffers that are visible outside of the program."""
        reads, writes = ({b for b in group if b.role in ("input", "output", "constant")} for group in touched(body))
        return reads, writes

    def private(self, s: Kernel) -> None:
        """A thread's private values must not be used on both sides of the border of a loop that threads share."""
        inside: set[Buffer] = set()
        outside: set[Buffer] = set()

        def visit(body: list[Stmt], where: set[Buffer]) -> None:
            for x in body:
                where.update(b for group in touched([x] if not blocks(x) else []) for b in group if b.role == "private")
                for block in blocks(x):
                    visit(block, inside if type(x) is For and x.tasks else where)

        visit(s.body, outside)
        for b in inside & outside:
            self.fail(f"private {b!r} is used inside and outside of a loop that threads share")

    def copy(self, s: Copy, top: bool) -> None:
        self.readable(s.src, s)
        self.writable(s.dst, s)
        if s.dst.dtype != s.src.dtype:
            self.fail(f"copies {s.src.dtype} to {s.dst.dtype}", s)
        for b, index in ((s.dst, s.dst_index), (s.src, s.src_index)):
            if isinstance(index, Node):
                self.expect(index, "i32", s, "the index")
                self.within(b, index, s, s.count)
            elif not 0 <= index <= b.size - s.count:
                self.fail(f"{s.count} elements at {index} exceed {b!r}", s)

    def barrier(self, s: Barrier, top: bool) -> None:
        if self.vector:
            self.fail("a barrier in a vector loop", s)

    def poll(self, s: Poll, top: bool) -> None:
        if self.vector:
            self.fail("a poll in a vector loop", s)

    def failure(self, s: Fail, top: bool) -> None:
        if s.code not in self.program.errors:
            self.fail(f"fail {s.code} has no text in errors")

    def host_call(self, s: HostCall, top: bool) -> None:
        for b in s.arguments:
            self.readable(b, s)
        for b in (s.table, *s.results):
            self.writable(b, s)
        if s.number >= len(self.program.calls):
            self.fail(f"there is no function {s.number} among {len(self.program.calls)} of the host", s)
        count, call = len(s.arguments) + len(s.results), self.program.calls[s.number]
        if (len(s.arguments), len(s.results)) != (len(call.ins), len(call.outs)):
            self.fail(f"function {s.number} takes {len(call.ins)} arrays and gives {len(call.outs)}", s)
        if s.table.dtype != "i32" or s.table.role != "temp" or s.table.nbytes < ADDRESS * count:
            self.fail(f"{s.table!r} has no room for {count} addresses of {ADDRESS} bytes", s)
        if s.table in (*s.arguments, *s.results) or len({*s.results}) != len(s.results):
            self.fail("the table and the results must be buffers of their own", s)

    def loop(self, s: For, top: bool) -> None:
        if top and (s.kind == "reduce" or s.vector):
            self.fail("a loop of the program level is sequential or parallel, and has no lanes", s)
        if isinstance(s.extent, Node):
            self.expect(s.extent, "i32", s, "the extent")
            self.uniform(s.extent, s, "the extent")
        self.expect(s.var, "i32", s, "the loop variable")
        self.bind(s.var, s)
        if s.tasks and (s.kind != "parallel" or top):
            self.fail("only a parallel loop of a kernel has tasks", s)
        if s.outline and top:
            self.fail("only a loop of a kernel can be outlined", s)
        if s.outline and (outside := assigned_outside(s)):
            self.fail(f"an outlined loop assigns {outside[0].name}, which is declared outside it", s)
        if s.kind != "sequential":
            self.loop_promise(s)
        if s.vector and s.kind == "sequential":
            self.fail("only parallel and reduce loops can be vector loops", s)
        lanes = bool(s.vector) and self.vector is None
        if lanes:
            self.vector, self.lane_locals = s, {s.var}
        extent = s.extent.value if type(s.extent) is Const else s.extent
        extents, copies = self.extents, self.copies
        if extents is not None:
            self.extents = {**extents, s.var: extent} if isinstance(extent, int) and extent > 0 else None
        if isinstance(extent, int) and not top:
            whole = max(1, min(s.unroll, extent))
            self.copies *= whole + (extent % whole > 0) + (s.vector + 2 if lanes else 0)
        with self.inside(f"loop {s.var.name}"):
            self.block(s.body, top)
        self.extents, self.copies = extents, copies
        if lanes:
            self.vector, self.lane_locals = None, set()
        self.scope.discard(s.var)

    def loop_promise(self, s: For) -> None:
        accumulators: dict[Local, str] = {}
        outside = set(assigned_outside(s))
        assigns = [inner for inner in walk(s.body) if type(inner) is Assign and inner.local in outside]
        for inner in assigns:
            if s.kind == "parallel":
                self.fail(f"a parallel loop assigns {inner.local.name}, which is declared outside it", s)
            op, rest = reduction(inner)
            if op not in REDUCE_OPS or accumulators.setdefault(inner.local, op) != op:
                self.fail(
                    f"a reduce loop changes {inner.local.name} by something else than one of {sorted(REDUCE_OPS)}",
                    inner,
                )
            if any(node is inner.local for e in rest for node in walk_expr(e)):
                self.fail(f"a reduce loop reads its accumulator {inner.local.name}", inner)
        if not accumulators:
            return
        for x in walk(s.body):
            for e in reduction(x)[1] if type(x) is Assign and x.local in outside else expressions(x):
                for node in walk_expr(e):
                    if type(node) is Local and node in accumulators:
                        self.fail(f"a reduce loop reads its accumulator {node.name}", x)

    def loop_while(self, s: While, top: bool) -> None:
        with self.inside("while"):
            bound = [name for inner in s.cond if (name := self.statement(inner, top)) is not None]
            self.expr(s.test, s)
            self.expect(s.test, "bool", s, "the test")
            self.uniform(s.test, s, "the test")
            self.scope.difference_update(bound)
        self.perhaps(s.body, top, "while")

    def branch(self, s: If, top: bool) -> None:
        self.expect(s.test, "bool", s, "the test")
        self.uniform(s.test, s, "the test")
        self.perhaps(s.then, top, "if")
        self.perhaps(s.orelse, top, "else")

    def switch(self, s: Switch, top: bool) -> None:
        self.expect(s.index, "i32", s, "the index")
        self.uniform(s.index, s, "the index")
        if not s.branches:
            self.fail("a switch needs a branch", s)
        for k, branch in enumerate(s.branches):
            self.perhaps(branch, top, f"case {k}")

    def bind(self, name: _Name, s: Stmt) -> _Name:
        if name in self.scope:
            self.fail(f"{name.name} is bound twice", s)
        self.scope.add(name)
        return name

    def let(self, s: Let, top: bool) -> Var:
        self.expect(s.value, s.var.dtype, s, "the value")
        if self.vector and self.lane_dependent(s.value):
            self.lane_locals.add(s.var)
        return self.bind(s.var, s)

    def declare(self, s: Declare, top: bool) -> Local:
        self.expect(s.init, s.local.dtype, s, "the initial value")
        if self.vector:
            self.lane_locals.add(s.local)
        return self.bind(s.local, s)

    def assign(self, s: Assign, top: bool) -> None:
        if s.local not in self.scope:
            self.fail(f"{s.local.name} is assigned but not declared here", s)
        self.expect(s.value, s.local.dtype, s, "the value")

    def store(self, s: Store, top: bool) -> None:
        self.writable(s.buffer, s)
        self.expect(s.index, "i32", s, "the index")
        self.expect(s.value, s.buffer.dtype, s, "the value")
        self.within(s.buffer, s.index, s)
        if self.vector and not self.lane_dependent(s.index):
            self.fail(f"every iteration of a {self.vector.kind} vector loop stores to the same element", s)

    # ---- lanes

    def lane_dependent(self, e: Expr) -> bool:
        return any(node in self.lane_locals for node in walk_expr(e))

    def uniform(self, e: Expr, s: Stmt, what: str) -> None:
        if self.vector and self.lane_dependent(e):
            self.fail(f"{what} depends on the lane of the vector loop {self.vector.var.name}", s)

    # ---- expressions

    def readable(self, b: Buffer, s: Stmt) -> None:
        self.kernels_own(b, s)
        if b not in self.buffers and not (b.role == "constant" and b.data is not None and not self.program.constants):
            self.fail(f"buffer {b!r} is not declared", s)
        if b.role == "constant" and (b.data is None or len(b.data) != b.nbytes):
            self.fail(f"constant {b!r} needs {b.nbytes} bytes of data", s)

    def kernels_own(self, b: Buffer, s: Stmt) -> None:
        if b.role == "private" and not self.kernel_level:
            self.fail(f"private {b!r} is used outside of a kernel", s)

    def writable(self, b: Buffer, s: Stmt) -> None:
        self.kernels_own(b, s)
        if b not in self.buffers:
            self.fail(f"buffer {b!r} is not declared", s)
        if b.role in ("input", "constant"):
            self.fail(f"{b.role} {b!r} is read-only", s)

    def within(self, b: Buffer, index: Expr, s: Stmt, count: int = 1) -> None:
        """Whether an index is outside of a buffer for certain: it is linear in loops of known extents, which surely
        run.
        """
        if type(index) is Const:
            if not 0 <= index.value <= b.size - count:
                self.fail(f"index {index.value} is outside {b!r}", s)
            return
        if self.extents is None:
            return
        terms, low = linear(index)
        high = low
        for var, step in terms.items():
            extent = self.extents.get(var)
            if extent is None:
                return
            reach = step * (extent - 1)
            low, high = low + min(reach, 0), high + max(reach, 0)
        if low < 0 or high > b.size - count:
            self.fail(f"the index runs from {low} to {high}, outside {b!r}", s)

    def expr(self, root: Expr, s: Stmt) -> None:
        """Scope of every leaf, types of every node not seen before."""
        pending: list[Expr] = [root]
        seen: set[Expr] = set()
        loads: list[Load] = []
        while pending:
            e = pending.pop()
            if e in seen:
                continue
            seen.add(e)
            if type(e) is Var or type(e) is Local:
                if e not in self.scope:
                    self.fail(f"{e.name} is used but not bound here", s)
            elif type(e) is Load:
                self.readable(e.buffer, s)
                if self.extents is not None or type(e.index) is Const:
                    loads.append(e)
            if e not in self.checked:
                if problem := _TYPES[type(e)](e):
                    self.fail(f"{problem} in {_short(e)}", s)
                of = _SAME.get(type(e))
                if of is not None and of(e).dtype != e.dtype:
                    self.fail(f"what is computed of {of(e).dtype} is said to be {e.dtype} in {_short(e)}", s)
                self.checked.add(e)
            pending.extend(operands(e))
        for load in loads:
            self.within(load.buffer, load.index, s)


def _short(e: Expr) -> str:
    """The first operations of an expression: nodes that it shares would be written again and again."""
    level: list[Expr] = [e]
    for _ in range(3):
        level = [x for node in level for x in operands(node)]
    return show(e, {x: "…" for x in level if operands(x)})


def _const(e: Const) -> str | None:
    if e.dtype in STORAGE_FLOATS:
        return f"a constant of dtype {e.dtype!r}"
    if e.dtype in INTEGERS:
        bits = 8 * ITEMSIZE[e.dtype]
        lo, hi = (-(1 << (bits - 1)), 1 << (bits - 1)) if e.dtype in nodes.SIGNED else (0, 1 << bits)
        good = type(e.value) is int and lo <= e.value < hi
    elif e.dtype == "bool":
        good = not isinstance(e.value, float) and e.value in (0, 1)
    else:
        good = not isinstance(e.value, bool) and _fits(e.value, e.dtype)
    return None if good else f"{brief(e.value)} is not of dtype {e.dtype}"


def _fits(value: float, dtype: str) -> bool:
    """Whether a number has a nearest number of a float dtype."""
    try:
        struct.pack("<f" if dtype == "f32" else "<d", value)
    except (OverflowError, struct.error):  # of an int beyond all floats
        return False
    return True


def _unary(e: Unary) -> str | None:
    if e.op in ("neg", "abs"):
        good = e.x.dtype in INTEGERS or e.x.dtype in FLOATS
    elif e.op == "not":
        good = e.x.dtype in INTEGERS or e.x.dtype == "bool"
    else:
        good = e.x.dtype in (INTEGERS if e.op in ("popcount", "clz") else FLOATS)
    return None if good else f"{e.op} of {e.x.dtype}"


def _binary(e: Binary) -> str | None:
    if e.a.dtype != e.b.dtype:
        return f"{e.op} of {e.a.dtype} and {e.b.dtype}"
    if e.op in ("and", "or", "xor"):
        good = e.dtype in INTEGERS or e.dtype == "bool"
    elif e.op in ("shl", "shr"):
        good = e.dtype in INTEGERS
    else:
        good = e.dtype in INTEGERS or e.dtype in FLOATS
    return None if good else f"{e.op} of {e.dtype}"


def _compare(e: Compare) -> str | None:
    if e.a.dtype != e.b.dtype:
        return f"{e.op} of {e.a.dtype} and {e.b.dtype}"
    return f"{e.op} of {e.a.dtype}" if e.a.dtype in STORAGE_FLOATS else None


def _select(e: Select) -> str | None:
    if e.cond.dtype != "bool":
        return f"a condition of dtype {e.cond.dtype}"
    return None if e.a.dtype == e.b.dtype else f"select of {e.a.dtype} and {e.b.dtype}"


def _bitcast(e: Bitcast) -> str | None:
    if "bool" in (e.dtype, e.x.dtype) or ITEMSIZE[e.dtype] != ITEMSIZE[e.x.dtype]:
        return f"bitcast of {e.x.dtype} to {e.dtype}"
    return None


def _call(e: Call) -> str | None:
    if (
        len(e.args) != (2 if e.fn in MATH_BINARY else 1)
        or e.dtype not in FLOATS
        or any(x.dtype != e.dtype for x in e.args)
    ):
        return f"{e.fn} of ({', '.join(x.dtype for x in e.args)})"
    return None


_TYPES: dict[type, Callable[[Any], str | None]] = covering(
    Expr,
    {
        **of(Const, _const),
        **of(Unary, _unary),
        **of(Binary, _binary),
        **of(Compare, _compare),
        **of(Select, _select),
        **of(Bitcast, _bitcast),
        **of(Call, _call),
        **same(None, Var, Local, Convert),
        **of(Load, lambda e: None if e.index.dtype == "i32" else f"an index of dtype {e.index.dtype}"),
        **of(
            MulAdd,
            lambda e: (
                None
                if e.dtype in FLOATS and e.a.dtype == e.b.dtype == e.c.dtype
                else f"muladd of {e.a.dtype}, {e.b.dtype} and {e.c.dtype}"
            ),
        ),
    },
)
# The expression whose dtype an expression has.
_SAME: dict[type, Callable[[Any], Expr | Buffer]] = {
    **of(Load, lambda e: e.buffer),
    **of(Unary, lambda e: e.x),
    **of(Binary, Select, MulAdd, lambda e: e.a),
    **of(Call, lambda e: e.args[0]),
}
_CHECKS: dict[type, Callable[[_Verifier, Any, bool], Var | Local | None]] = covering(
    Stmt,
    {
        **method(Kernel, _Verifier.kernel),
        **method(Instance, _Verifier.instance),
        **method(Copy, _Verifier.copy),
        **method(For, _Verifier.loop),
        **method(While, _Verifier.loop_while),
        **method(If, _Verifier.branch),
        **method(Switch, _Verifier.switch),
        **method(Let, _Verifier.let),
        **method(Declare, _Verifier.declare),
        **method(Assign, _Verifier.assign),
        **method(Store, _Verifier.store),
        **method(Barrier, _Verifier.barrier),
        **method(Poll, _Verifier.poll),
        **method(Fail, _Verifier.failure),
        **method(HostCall, _Verifier.host_call),
    },
)
_TOP = (Kernel, Instance, Copy, HostCall, Fail, Poll, For, While, If, Switch)
_INNER = (For, While, If, Switch, Let, Declare, Assign, Store, Barrier, Poll)
