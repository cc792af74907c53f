"""The functions of a module: one for each kernel, and for loops that are outlined or shared by threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from weft_wasm.emit_wasm.function import Function, pointer_type
from weft_wasm.emit_wasm.large import large_code
from weft_wasm.emit_wasm.loops import Register
from weft_wasm.emit_wasm.parts import Parts
from weft_wasm.emit_wasm.scope import Name
from weft_wasm.emit_wasm.storage import Overlap
from weft_wasm.emit_wasm.tables import SCALAR
from weft_wasm.binary.encode import F32, F64, I32, I64, OP, V128, VOID, Module, memarg, unsigned
from weft_wasm.ir.nodes import Buffer, Declare, Expr, For, Let, Local, Node, Stmt, Var
from weft_wasm.ir.traversal import expressions, touched, walk, walk_expr
from weft_wasm.passes.buffers import MemoryPlan

FRAME_BYTES = 8192  # a loop that uses more than a thousand buffers and variables from outside stays on one thread
TYPE = {I32: "i32", I64: "i64", F32: "f32", F64: "f64"}


@dataclass(frozen=True)
class Target:
    """Shared by all functions of a module. overlap(a, b): whether two buffers may share memory."""

    module: Module
    plan: MemoryPlan
    features: frozenset[str]
    overlap: Overlap
    # those of MATH_LARGE, by name, dtype and lanes
    large_functions: dict[tuple[str, str, int], int] = field(default_factory=dict)

    @property
    def pointer(self) -> int:
        """The type of addresses."""
        return pointer_type(self.features)

    def large(self, fn: str, dtype: str, lanes: int = 0) -> int:
        """The number of a function of MATH_LARGE, which is in the module once it is asked for: of one value, or of a
        vector of so many.
        """
        number = self.large_functions.get((fn, dtype, lanes))
        if number is None:
            kind = V128 if lanes else SCALAR[dtype]
            local_types, code = large_code(fn, dtype, lanes, bool(lanes) and "relaxed-simd" in self.features)
            number = self.module.function([kind], [kind], local_types, code, f"{fn}.{dtype}")
            self.large_functions[fn, dtype, lanes] = number
        return number


@dataclass(frozen=True)
class Uses:
    """The buffers and variables that statements use from outside, in order of first use."""

    buffers: list[Buffer]
    variables: list[Name]

    def __len__(self) -> int:
        return len(self.buffers) + len(self.variables)


@dataclass(frozen=True)
class Callee:
    """A function whose parameters are the addresses of buffers, variables, and, where it shares loops, the frame."""

    number: int
    shares: bool


def uses(body: Sequence[Stmt]) -> Uses:
    """The buffers, free variables and locals of statements."""
    reads, writes = touched(body)
    bound: set[Name] = set()
    used: dict[Name, None] = {}
    seen: set[Expr] = set()
    for s in walk(body):
        if type(s) is For or type(s) is Let:
            bound.add(s.var)
        elif type(s) is Declare:
            bound.add(s.local)
        for e in expressions(s):
            for node in walk_expr(e, seen):
                if type(node) is Var or type(node) is Local:
                    used[node] = None
    return Uses(list(dict.fromkeys(reads + writes)), [v for v in used if v not in bound])


def shared_loops(body: Sequence[Stmt]) -> list[For]:
    """The loops that threads share."""
    return [s for s in walk(body) if type(s) is For and s.tasks]


class Caller:
    """Emits calls, and the functions that they call, in the function around them.

    parts: of the surrounding function. frame: the local with the address of the frame, if loops are shared. sharing:
    whether this code runs on one of several threads already.
    """

    def __init__(
        self,
        target: Target,
        fn: Function,
        name: str,
        frame: int | None,
        sharing: bool = False,
        within: For | None = None,
        in_kernel: bool = True,
    ):
        self.target, self.name, self.frame, self.sharing, self.within = target, name, frame, sharing, within
        self.parts = Parts(fn, target.overlap, target.features, self, in_kernel)

    def large(self, fn: str, dtype: str, lanes: int = 0) -> int:
        """The number of a function of MATH_LARGE."""
        return self.target.large(fn, dtype, lanes)

    def takes(self, s: For) -> bool:
        """Emits a loop that threads share, or one that is to be outlined, as a function and its call; False for
        other loops.
        """
        if s.tasks and not self.sharing:
            self._share(s)
        elif s.outline and self.within is not s:
            outside = uses([s])
            self.call(self.function([s], outside, f"{self.name}.{s.var.name}", within=s), outside)
        else:
            return False
        return True

    def function(self, body: Sequence[Stmt], outside: Uses, name: str, within: For | None = None) -> Callee:
        """Emits statements as a function. within: the outlined loop, which is the function's body and not another
        function's.
        """
        shares = not self.sharing and bool(shared_loops(body))
        pointer = self.target.pointer
        params = [pointer] * len(outside.buffers) + [SCALAR[v.dtype] for v in outside.variables] + [pointer] * shares
        fn = Function(params, pointer)
        inner = Caller(self.target, fn, name, len(outside) if shares else None, self.sharing, within).parts
        inner.storage.at.update((buffer, k) for k, buffer in enumerate(outside.buffers))
        inner.scope.env.update((var, k) for k, var in enumerate(outside.variables, len(outside.buffers)))
        inner.scope.loop_vars |= self.parts.scope.loop_vars.intersection(outside.variables)
        inner.blocks.block(body)
        return Callee(fn.end(self.target.module, name), shares)

    def call(self, callee: Callee, outside: Uses) -> None:
        """Emits the call of such a function on buffers and variables of this one."""
        for buffer in outside.buffers:
            self.parts.fn.get(self.parts.storage.at[buffer])
        for var in outside.variables:
            self.parts.scalars.push(var)
        if callee.shares:
            self.parts.fn.get(self._frame)
        self.parts.fn.code += OP["call"] + unsigned(callee.number)

    @property
    def _frame(self) -> int:
        if self.frame is None:
            raise RuntimeError(f"{self.name} shares a loop but has no frame")
        return self.frame

    # ---- loops that threads share

    def _share(self, s: For) -> None:
        """A function task(frame, thread, begin, end), and the loop, run by the host where there are several threads.
        The frame holds, 8 bytes each, the addresses of the buffers and the variables from outside that the loop uses.
        """
        outside, parts, module = uses([s]), self.parts, self.target.module
        if 8 * len(outside) > FRAME_BYTES:
            self.sharing = True
            parts.blocks.block([s])
            self.sharing = False
            return
        task = self._task(s, outside)
        number = module.task(task)
        fn, frame = parts.fn, self._frame
        for k, name in enumerate((*outside.buffers, *outside.variables)):
            kind = self._kind(name)
            fn.get(frame)
            if isinstance(name, Buffer):
                fn.get(parts.storage.at[name])
            else:
                parts.scalars.push(name)
            fn.code += OP[f"{TYPE[kind]}.store"] + memarg(8 if kind in (I64, F64) else 4, 8 * k)
        extent = fn.new_local(I32)
        if isinstance(s.extent, Node):
            parts.scalars.alone(s.extent)
        else:
            fn.const(s.extent)
        fn.set(extent)
        fn.code += OP["global.get"] + b"\0"
        fn.const(1)
        fn.code += OP["i32.gt_s"]
        if isinstance(s.extent, Node):  # which may be negative: then no iteration runs
            fn.get(extent)
            fn.const(0)
            fn.code += OP["i32.gt_s"] + OP["i32.and"]
        fn.code += OP["if"] + bytes((VOID,))
        fn.const(number)
        fn.get(frame)
        fn.get(extent)
        fn.const(s.tasks)
        fn.code += OP["call"] + unsigned(module.imports.index("share")) + OP["else"]
        fn.get(frame)
        fn.const(0)
        fn.const(0)
        fn.get(extent)
        fn.code += OP["call"] + unsigned(task) + OP["end"]
        fn.release(I32, extent)

    def _task(self, s: For, outside: Uses) -> int:
        """The number of the function that runs iterations from begin below end."""
        plan, name = self.target.plan, f"{self.name}.{s.var.name}"
        frame, thread, begin, end = range(4)
        fn = Function([self.target.pointer, I32, I32, I32], self.target.pointer)
        inner = Caller(self.target, fn, name, None, sharing=True).parts
        inner.scope.loop_vars |= self.parts.scope.loop_vars.intersection(outside.variables)
        for k, used in enumerate((*outside.buffers, *outside.variables)):
            kind = self._kind(used)
            local = fn.new_local(kind)
            fn.get(frame)
            fn.code += OP[f"{TYPE[kind]}.load"] + memarg(8 if kind in (I64, F64) else 4, 8 * k)
            if isinstance(used, Buffer):
                if used in plan.private:
                    fn.get(thread)
                    fn.as_bytes()
                    fn.scale(plan.private_size)
                    fn.add()
                inner.storage.at[used] = local
            else:
                inner.scope.env[used] = local
            fn.set(local)
        inner.scope.loop_vars.add(s.var)
        inner.counted.emit(s.var, Register(begin), Register(end), 1, 1, s.body)
        return fn.end(self.target.module, name)

    def _kind(self, name: Buffer | Name) -> int:
        """The type of an entry of the frame: an address or a variable."""
        return self.target.pointer if isinstance(name, Buffer) else SCALAR[name.dtype]
