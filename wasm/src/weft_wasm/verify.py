"""The verifier of the loop IR: types, scopes, roles, and what loop kinds promise. Errors name the statement."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from weft_wasm import ir
from weft_wasm.ir import (
    FLOATS,
    INTEGERS,
    ITEMSIZE,
    LOOP_KINDS,
    MATH_BINARY,
    MATH_UNARY,
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
    Kernel,
    Let,
    Load,
    Local,
    MulAdd,
    Node,
    Program,
    Select,
    Stmt,
    Store,
    Switch,
    Unary,
    Var,
    While,
    blocks,
    covering,
    expressions,
    operands,
    touched,
    walk,
    walk_expr,
)  # fmt: skip

from weft_wasm.reduce_loops import assigned_outside, reduction
from weft_wasm.text import lines

_Name = TypeVar("_Name", Var, Local)
VECTOR_COUNTS = (0, 1, 2, 4, 8)


class VerifyError(ValueError):
    """A loop-IR program breaks a rule of docs/loop-ir.md. The message names the kernel, the statement and the rule; the pass that
    built the statement is at fault."""


def verify(program: Program) -> None:
    """Raises VerifyError if the program is malformed."""
    _Verifier(program).run()


class _Verifier:
    def __init__(self, program: Program):
        self.program = program
        self.where = "program"
        self.scope: set[Expr] = set()
        self.buffers: set[Buffer] = set()
        self.checked: set[Expr] = set()  # expressions whose types are right (types do not depend on scope)
        self.vector: For | None = None
        self.lane_locals: set[Expr] = set()

    def fail(self, message: str, s: Stmt | None = None) -> NoReturn:
        at = f"\n  in: {next(line for line in lines([s], 0) if line[0] != '%')}" if s is not None else ""
        raise VerifyError(f"{self.program.name}, {self.where}: {message}{at}")

    def run(self) -> None:
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
        for s in walk(p.body):
            if type(s) is Fail and s.code not in p.errors:
                self.fail(f"fail {s.code} has no text in errors")
        self.block(p.body, top=True)

    def buffer(self, b: Buffer, role: str) -> None:
        if b.dtype not in ITEMSIZE:
            self.fail(f"buffer {b.name} has the unknown dtype {b.dtype!r}")
        if b.role != role:
            self.fail(f"buffer {b!r} is listed as {role} but its role is {b.role}")
        if any(type(n) is not int or n < 0 for n in b.shape) or b.size != math.prod(b.shape) or b.nbytes != b.size * ITEMSIZE[b.dtype]:
            self.fail(f"buffer {b!r} is said to have {b.size} elements in {b.nbytes} bytes")
        if b.size >= ir.MOST_ELEMENTS:
            self.fail(f"buffer {b!r} has more elements than an i32 can number")
        if b in self.buffers:
            self.fail(f"buffer {b!r} is listed twice")
        if role == "constant" and (b.data is None or len(b.data) != b.nbytes):
            self.fail(f"constant {b!r} needs {b.nbytes} bytes of data")
        self.buffers.add(b)

    # ---- statements

    def block(self, body: list[Stmt], top: bool) -> None:
        bound = [name for s in body if (name := self.statement(s, top)) is not None]
        self.scope.difference_update(bound)

    def statement(self, s: Stmt, top: bool) -> Var | Local | None:
        """Checks a statement; what it binds for those after it, if it does."""
        kind = type(s)
        if kind not in (_TOP if top else _INNER):
            level = "the program level" if top else "a kernel"
            self.fail(f"{kind.__name__} is not a statement of {level}" if kind in _CHECKS else f"{s!r} is not a statement")
        if kind is not While:  # whose test may use what its condition binds
            for e in expressions(s):
                self.expr(e, s)
        return _CHECKS[kind](self, s, top)

    def expect(self, e: Expr, dtype: str, s: Stmt, what: str) -> None:
        if e.dtype != dtype:
            self.fail(f"{what} is {e.dtype}, must be {dtype}", s)

    def kernel(self, s: Kernel, top: bool) -> None:
        outer, self.where = self.where, f"kernel {s.name}"
        for b in s.workgroup:
            self.buffer(b, "workgroup")
        self.block(s.body, top=False)
        self.private(s)
        self.buffers.difference_update(s.workgroup)
        self.where = outer

    def private(self, s: Kernel) -> None:
        """What a thread keeps for itself must not be used on both sides of the border of a loop that threads share."""
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
            elif not 0 <= index <= b.size - s.count:
                self.fail(f"{s.count} elements at {index} exceed {b!r}", s)

    def host_call(self, s: HostCall, top: bool) -> None:
        for b in s.arguments:
            self.readable(b, s)
        for b in (s.table, *s.results):
            self.writable(b, s)
        if s.table.dtype != "i32" or s.table.size < len(s.arguments) + len(s.results):
            self.fail(f"{s.table!r} has no room for {len(s.arguments) + len(s.results)} addresses", s)

    def loop(self, s: For, top: bool) -> None:
        if s.kind not in LOOP_KINDS:
            self.fail(f"unknown loop kind {s.kind!r}; one of {sorted(LOOP_KINDS)}", s)
        if top and s.kind != "sequential":
            self.fail("a loop of the program level is sequential", s)
        if isinstance(s.extent, Node):
            self.expect(s.extent, "i32", s, "the extent")
            self.uniform(s.extent, s, "the extent")
        elif type(s.extent) is not int or s.extent >= 1 << 31:
            self.fail("the extent is not an int below 2^31", s)
        self.expect(s.var, "i32", s, "the loop variable")
        self.bind(s.var, s)
        if type(s.unroll) is not int or s.unroll < 1:
            self.fail("unroll must be a positive int", s)
        if s.vector not in VECTOR_COUNTS:
            self.fail(f"vector must be one of {VECTOR_COUNTS}", s)
        if s.tasks and (type(s.tasks) is not int or s.tasks < 0 or s.kind != "parallel" or top):
            self.fail("tasks must be a positive int, on a parallel loop of a kernel", s)
        if s.outline and top:
            self.fail("only a loop of a kernel can be outlined", s)
        if s.outline and (outside := assigned_outside(s)):
            self.fail(f"an outlined loop assigns {outside[0].name}, which is declared outside it", s)
        if s.kind != "sequential":
            self.loop_promise(s)
        if s.vector:
            if s.kind == "sequential":
                self.fail("only parallel and reduce loops can be vector loops", s)
            if self.vector is None:
                self.vector, self.lane_locals = s, {s.var}
                self.block(s.body, top)
                self.vector, self.lane_locals = None, set()
                self.scope.discard(s.var)
                return
        self.block(s.body, top)
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
        bound = [name for inner in s.cond if (name := self.statement(inner, top)) is not None]
        self.expr(s.test, s)
        self.expect(s.test, "bool", s, "the test")
        self.uniform(s.test, s, "the test")
        self.scope.difference_update(bound)
        self.block(s.body, top)

    def branch(self, s: If, top: bool) -> None:
        self.expect(s.test, "bool", s, "the test")
        self.uniform(s.test, s, "the test")
        self.block(s.then, top)
        self.block(s.orelse, top)

    def switch(self, s: Switch, top: bool) -> None:
        self.expect(s.index, "i32", s, "the index")
        self.uniform(s.index, s, "the index")
        if not s.branches:
            self.fail("a switch needs a branch", s)
        for branch in s.branches:
            self.block(branch, top)

    def bind(self, name: _Name, s: Stmt) -> _Name:
        if name.dtype not in ITEMSIZE:
            self.fail(f"{name.name} has the unknown dtype {name.dtype!r}", s)
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
        if type(s.local) is not Local or s.local not in self.scope:
            self.fail(f"{show_name(s.local)} is assigned but not declared here", s)
        self.expect(s.value, s.local.dtype, s, "the value")

    def store(self, s: Store, top: bool) -> None:
        self.writable(s.buffer, s)
        self.expect(s.index, "i32", s, "the index")
        self.expect(s.value, s.buffer.dtype, s, "the value")
        self.constant_index(s.buffer, s.index, s)
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
        if b not in self.buffers and not (b.role == "constant" and b.data is not None and not self.program.constants):
            self.fail(f"buffer {b!r} is not declared", s)
        if b.role == "constant" and (b.data is None or len(b.data) != b.nbytes):
            self.fail(f"constant {b!r} needs {b.nbytes} bytes of data", s)

    def writable(self, b: Buffer, s: Stmt) -> None:
        if b not in self.buffers:
            self.fail(f"buffer {b!r} is not declared", s)
        if b.role in ("input", "constant"):
            self.fail(f"{b.role} {b!r} is read-only", s)

    def constant_index(self, b: Buffer, index: Expr, s: Stmt) -> None:
        if type(index) is Const and not 0 <= index.value < b.size:
            self.fail(f"index {index.value} is outside {b!r}", s)

    def expr(self, root: Expr, s: Stmt) -> None:
        """Scope of every leaf, types of every node not seen before."""
        pending: list[Expr] = [root]
        seen: set[Expr] = set()
        while pending:
            e = pending.pop()
            if e in seen:
                continue
            seen.add(e)
            if not isinstance(e, Node):
                self.fail(f"{e!r} is not an expression", s)
            if type(e) is Var or type(e) is Local:
                if e not in self.scope:
                    self.fail(f"{e.name} is used but not bound here", s)
            elif type(e) is Load:
                self.readable(e.buffer, s)
            if e not in self.checked:
                if problem := _TYPES[type(e)](e):
                    self.fail(f"{problem} in {e!r}", s)
                of = _SAME.get(type(e))
                if of is not None and of(e).dtype != e.dtype:
                    self.fail(f"what is computed of {of(e).dtype} is said to be {e.dtype} in {e!r}", s)
                if type(e) is Load:
                    self.constant_index(e.buffer, e.index, s)
                self.checked.add(e)
            pending.extend(operands(e))


def show_name(e: object) -> str:
    return getattr(e, "name", repr(e))


def _const(e: Const) -> str | None:
    if e.dtype not in ITEMSIZE or e.dtype in STORAGE_FLOATS:
        return f"a constant of dtype {e.dtype!r}"
    if e.dtype in INTEGERS:
        bits = 8 * ITEMSIZE[e.dtype]
        lo, hi = (-(1 << (bits - 1)), 1 << (bits - 1)) if e.dtype in ir.SIGNED else (0, 1 << bits)
        if type(e.value) is not int or not lo <= e.value < hi:
            return f"{e.value!r} is not of dtype {e.dtype}"
    elif e.dtype == "bool":
        return None if e.value in (0, 1) else f"{e.value!r} is not a bool"
    elif not isinstance(e.value, (int, float)):
        return f"{e.value!r} is not a number"
    return None


def _unary(e: Unary) -> str | None:
    if e.op not in ir.UNARY_OPS:
        return f"unknown operation {e.op!r}"
    if e.op in ("neg", "abs"):
        good = e.x.dtype in INTEGERS or e.x.dtype in FLOATS
    elif e.op == "not":
        good = e.x.dtype in INTEGERS or e.x.dtype == "bool"
    else:
        good = e.x.dtype in (INTEGERS if e.op in ("popcount", "clz") else FLOATS)
    return None if good else f"{e.op} of {e.x.dtype}"


def _binary(e: Binary) -> str | None:
    if e.op not in ir.BINARY_OPS:
        return f"unknown operation {e.op!r}"
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
    if e.op not in ir.COMPARE_OPS:
        return f"unknown comparison {e.op!r}"
    if e.a.dtype != e.b.dtype:
        return f"{e.op} of {e.a.dtype} and {e.b.dtype}"
    return f"{e.op} of {e.a.dtype}" if e.a.dtype in STORAGE_FLOATS else None


def _select(e: Select) -> str | None:
    if e.cond.dtype != "bool":
        return f"a condition of dtype {e.cond.dtype}"
    return None if e.a.dtype == e.b.dtype else f"select of {e.a.dtype} and {e.b.dtype}"


def _bitcast(e: Bitcast) -> str | None:
    if "bool" in (e.dtype, e.x.dtype) or e.dtype not in ITEMSIZE or ITEMSIZE[e.dtype] != ITEMSIZE[e.x.dtype]:
        return f"bitcast of {e.x.dtype} to {e.dtype}"
    return None


def _call(e: Call) -> str | None:
    arity = 1 if e.fn in MATH_UNARY else 2 if e.fn in MATH_BINARY else 0
    if not arity:
        return f"unknown function {e.fn!r}"
    if len(e.args) != arity or e.dtype not in FLOATS or any(x.dtype != e.dtype for x in e.args):
        return f"{e.fn} of ({', '.join(x.dtype for x in e.args)})"
    return None


_TYPES: dict[type, Callable[[Any], str | None]] = covering(Expr, {
    Const: _const, Unary: _unary, Binary: _binary, Compare: _compare, Select: _select, Bitcast: _bitcast, Call: _call,
    Var: lambda e: None, Local: lambda e: None,
    Load: lambda e: None if e.index.dtype == "i32" else f"an index of dtype {e.index.dtype}",
    Convert: lambda e: None if e.dtype in ITEMSIZE else f"unknown dtype {e.dtype!r}",
    MulAdd: lambda e: None if e.dtype in FLOATS and e.a.dtype == e.b.dtype == e.c.dtype else
        f"muladd of {e.a.dtype}, {e.b.dtype} and {e.c.dtype}",
})  # fmt: skip
# What an expression has the dtype of.
_SAME: dict[type, Callable[[Any], Expr | Buffer]] = {
    Load: lambda e: e.buffer, Unary: lambda e: e.x, Binary: lambda e: e.a, Select: lambda e: e.a, MulAdd: lambda e: e.a, Call: lambda e: e.args[0],
}  # fmt: skip
_CHECKS: dict[type, Callable[[_Verifier, Any, bool], Var | Local | None]] = covering(Stmt, {
    Kernel: _Verifier.kernel, Copy: _Verifier.copy, For: _Verifier.loop, While: _Verifier.loop_while, If: _Verifier.branch, Switch: _Verifier.switch,
    Let: _Verifier.let, Declare: _Verifier.declare, Assign: _Verifier.assign, Store: _Verifier.store,
    Barrier: lambda self, s, top: self.fail("a barrier in a vector loop", s) if self.vector else None,
    Fail: lambda self, s, top: None, HostCall: _Verifier.host_call,
})  # fmt: skip
_TOP = (Kernel, Copy, HostCall, Fail, For, While, If, Switch)
_INNER = (For, While, If, Switch, Let, Declare, Assign, Store, Barrier)
