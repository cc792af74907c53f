"""A program → one module: a function per kernel, and `main`, which runs them and all control flow between them."""

from __future__ import annotations

from weft_wasm.emit_wasm.statements import _STATEMENT, Register, Statements
from weft_wasm.emit_wasm.tables import SCALAR
from weft_wasm.emit_wasm.address import pointer_type
from weft_wasm.encode import F32, F64, I32, I64, OP, VOID, Module, memarg, unsigned
from weft_wasm.fingerprint import fingerprint
from weft_wasm.ir import (
    ITEMSIZE,
    Assign,
    Buffer,
    Copy,
    Expr,
    Fail,
    For,
    HostCall,
    Kernel,
    Local,
    Program,
    Var,
    expressions,
    touched,
    walk,
    walk_expr,
)
from weft_wasm.plan import Plan, padded

FRAME_BYTES = 8192  # a loop that uses more than a thousand buffers and variables from outside stays on one thread


def uses(body: list) -> tuple[list[Buffer], list[Expr]]:
    """(buffers, free variables and locals) of statements in order of first use."""
    reads, writes = touched(body)
    buffers = list(dict.fromkeys(reads + writes))
    bound: set[Expr] = set()
    used: dict[Expr, None] = {}
    seen: set = set()
    for s in walk(body):
        name = getattr(s, "var", None) or getattr(s, "local", None)
        if name is not None and type(s) is not Assign:
            bound.add(name)
        for e in expressions(s):
            for node in walk_expr(e, seen):
                if type(node) is Var or type(node) is Local:
                    used[node] = None
    return buffers, [v for v in used if v not in bound]


class KernelEmitter(Statements):
    """One function: parameters are the addresses of its buffers, then the variables from outside that it uses."""

    def __init__(self, body: list, outer: Statements, module: Module, name: str):
        self.buffers, self.variables = uses(body)
        self.shares = not outer.sharing and bool(shared_loops(body))
        pointer = pointer_type(outer.features)
        params = [pointer] * len(self.buffers) + [SCALAR[v.dtype] for v in self.variables] + [pointer] * self.shares
        super().__init__(params, outer.features, outer.overlap)
        self.module, self.plan, self.name = module, outer.plan, name
        self.frame = len(params) - 1  # where it shares loops
        self.sharing = outer.sharing
        for k, buffer in enumerate(self.buffers):
            self.buffer_at[buffer] = k
        for k, var in enumerate(self.variables, len(self.buffers)):
            self.env[var] = k
        self.loop_vars |= outer.loop_vars.intersection(self.variables)

    def end(self) -> int:
        """The number of the function."""
        return self.module.function(self.params, [], self.local_types, bytes(self.code), self.name)

    def outline(self, s: For) -> None:
        inner = KernelEmitter([s], self, self.module, f"{self.name}.{s.var.name}")
        inner.outlining = s
        inner.block([s])
        call(self, inner.end(), inner.buffers, inner.variables, inner.shares)

    def share(self, s: For) -> None:
        if 8 * sum(map(len, uses([s]))) > FRAME_BYTES:
            self.sharing = True
            self.block([s])
            self.sharing = False
        else:
            TaskEmitter(s, self).share_from(self, s)


def call(outer: Statements, function: int, buffers: list[Buffer], variables: list[Expr], shares: bool) -> None:
    """The call of a KernelEmitter's function in the function around it."""
    for buffer in buffers:
        outer.get(outer.buffer_at[buffer])
    for var in variables:
        outer.scalar(var)
    if shares:
        outer.get(outer.frame)
    outer.code += OP["call"] + unsigned(function)


class TaskEmitter(KernelEmitter):
    """A loop that threads share, task(frame, thread, begin, end): the frame holds, 8 bytes each, the addresses of its buffers and the variables
    from outside that it uses."""

    def __init__(self, s: For, outer: KernelEmitter):
        Statements.__init__(self, [pointer_type(outer.features), I32, I32, I32], outer.features, outer.overlap)
        self.module, self.plan, self.name = outer.module, outer.plan, f"{outer.name}.{s.var.name}"
        self.sharing = True
        self.buffers, self.variables = uses([s])
        self.loop_vars |= outer.loop_vars.intersection(self.variables)
        frame, thread, begin, end = range(4)
        for k, name in enumerate((*self.buffers, *self.variables)):
            kind = self.kind(name)
            local = self.new_local(kind)
            self.get(frame)
            self.code += OP[f"{_TYPE[kind]}.load"] + memarg(8 if kind in (I64, F64) else 4, 8 * k)
            if name in self.plan.private:
                self.get(thread)
                self.as_bytes()
                self.scale(self.plan.private_size)
                self.add()
            self.set(local)
            (self.buffer_at if type(name) is Buffer else self.env)[name] = local
        self.loop_vars.add(s.var)
        self._counted(s.var, Register(begin), Register(end), 1, 1, s.body)

    def share_from(self, outer: KernelEmitter, s: For) -> None:
        """Ends the function; in the function around it: fills the frame, and runs the loop, by the host where there are several threads."""
        task = self.module.function(self.params, [], self.local_types, bytes(self.code), self.name)
        number = self.module.task(task)
        for k, name in enumerate((*self.buffers, *self.variables)):
            kind = self.kind(name)
            outer.get(outer.frame)
            if type(name) is Buffer:
                outer.get(outer.buffer_at[name])
            else:
                outer.scalar(name)
            outer.code += OP[f"{_TYPE[kind]}.store"] + memarg(8 if kind in (I64, F64) else 4, 8 * k)
        extent = outer.new_local(I32)
        if isinstance(s.extent, Expr):
            outer._test(s.extent)
        else:
            outer.const(s.extent)
        outer.set(extent)
        outer.code += OP["global.get"] + b"\0"
        outer.const(1)
        outer.code += OP["i32.gt_s"] + OP["if"] + bytes((VOID,))
        outer.const(number)
        outer.get(outer.frame)
        outer.get(extent)
        outer.const(s.tasks)
        outer.code += OP["call"] + unsigned(self.module.imports.index("share")) + OP["else"]
        outer.get(outer.frame)
        outer.const(0)
        outer.const(0)
        outer.get(extent)
        outer.code += OP["call"] + unsigned(task) + OP["end"]
        outer.release(I32, extent)

    def kind(self, name: Buffer | Expr) -> int:
        """The type of what the frame holds: an address or a variable."""
        return self.pointer if type(name) is Buffer else SCALAR[name.dtype]


_TYPE = {I32: "i32", I64: "i64", F32: "f32", F64: "f64"}


def shared_loops(body: list) -> list[For]:
    """The loops that threads share."""
    return [s for s in walk(body) if type(s) is For and s.tasks]


class MainEmitter(Statements):
    """`main(table)`: loads the table, then statements of the program level."""

    def __init__(
        self,
        program: Program,
        plan: Plan,
        constants: dict[Buffer, int],
        features: frozenset[str],
        module: Module,
        overlap,
    ):
        super().__init__([pointer_type(features)], features, overlap)
        self.module = module
        self.plan = plan
        self.kernels: dict[tuple, tuple[int, bool]] = {}
        self.simd = False  # nothing at the program level is a vector loop
        self.address_bytes = 4 if self.pointer == I32 else 8  # in tables
        table = [*program.inputs, *program.outputs]
        scratch, constant = self.new_local(self.pointer), self.new_local(self.pointer)
        for k, local in ((len(table), scratch), (len(table) + 1, constant)):
            self._table_entry(k, local)
        for k, buffer in enumerate(table):
            self.buffer_at[buffer] = self.new_local(self.pointer)
            self._table_entry(k, self.buffer_at[buffer])
        self.frame = self.new_local(self.pointer)
        if any("share" == name for name in module.imports):
            self.get(scratch)
            self.add_bytes(plan.size)
            self.set(self.frame)
        own = plan.size + frame_bytes(program)
        private = {b: own + offset for b, offset in plan.private.items()}
        for base, offsets in ((scratch, plan.offsets | private), (constant, constants)):
            for buffer, offset in offsets.items():
                self.buffer_at[buffer] = local = self.new_local(self.pointer)
                self.get(base)
                if offset:
                    self.add_bytes(offset)
                self.set(local)

    def _table_entry(self, k: int, local: int) -> None:
        self.get(0)
        self.code += OP[f"{_TYPE[self.pointer]}.load"] + memarg(self.address_bytes, self.address_bytes * k)
        self.set(local)

    def kernel(self, s: Kernel) -> None:
        """Emits a kernel once: a program's layers are the same kernels on other buffers."""
        buffers, variables = uses(s.body)
        shared = tuple(self.overlap(a, b) for k, a in enumerate(buffers) for b in buffers[:k])
        key = fingerprint(s.body, buffers, variables), shared, tuple(v in self.loop_vars for v in variables)
        found = self.kernels.get(key)
        if found is None:
            inner = KernelEmitter(s.body, self, self.module, s.name)
            inner.block(s.body)
            found = self.kernels[key] = inner.end(), inner.shares
        function, shares = found
        call(self, function, buffers, variables, shares)

    def copy(self, s: Copy) -> None:
        size = ITEMSIZE[s.dst.dtype]
        for buffer, index in ((s.dst, s.dst_index), (s.src, s.src_index)):
            self.get(self.buffer_at[buffer])
            if isinstance(index, int):
                if index:
                    self.add_bytes(index * size)
            else:
                self.open(index)
                self.scalar(index)
                self.close()
                self.as_bytes()
                self.scale(size)
                self.add()
        self.bytes_const(s.count * size)
        self.code += OP["memory.copy"]

    def fail(self, s: Fail) -> None:
        self.const(s.code)
        self.code += OP["return"]

    def host_call(self, s: HostCall) -> None:
        """call(number, table of addresses); what it returns, if not 0, ends the program."""
        table = self.buffer_at[s.table]
        for k, buffer in enumerate((*s.arguments, *s.results)):
            self.get(table)
            self.get(self.buffer_at[buffer])
            self.code += OP[f"{_TYPE[self.pointer]}.store"] + memarg(self.address_bytes, self.address_bytes * k)
        code = self.new_local(I32)
        self.const(s.number)
        self.get(table)
        self.code += OP["call"] + unsigned(0)
        self.set(code)
        self.get(code)
        self.code += OP["if"] + bytes((VOID,))
        self.get(code)
        self.code += OP["return"] + OP["end"]

    def enter_pointers(self, body, var, step):
        self.loop_pointers.append([])  # the addresses of program-level loads are computed where they are used
        return []


_STATEMENT |= {Kernel: MainEmitter.kernel, Copy: MainEmitter.copy, Fail: MainEmitter.fail, HostCall: MainEmitter.host_call}


def frame_bytes(program: Program) -> int:
    """Room for the frame of any loop that threads share."""
    return FRAME_BYTES if shared_loops(program.body) else 0


def lay_out_constants(buffers: list[Buffer]) -> tuple[dict[Buffer, int], bytes]:
    """Offsets and bytes of the constant section, equal constants once."""
    offsets: dict[Buffer, int] = {}
    known: dict[bytes, int] = {}
    data = bytearray()
    for buffer in buffers:
        content = bytes(buffer.data)
        if content not in known:
            known[content] = len(data)
            data += content
            data += bytes(padded(len(content)) - len(content))
        offsets[buffer] = known[content]
    return offsets, bytes(data)


def emit_module(program: Program, plan: Plan, constants: dict[Buffer, int], features: frozenset[str]) -> tuple[bytes, int]:
    """The module's bytes, and how many tasks it has; `plan` and `constants` place temps and constants."""
    storage = {program.outputs[o]: program.inputs[i] for o, i in program.donated.items()}

    def overlap(a: Buffer, b: Buffer) -> bool:
        a, b = storage.get(a, a), storage.get(b, b)
        return a is b or plan.overlap(a, b)

    asks = {"call": any(type(s) is HostCall for s in walk(program.body)), "share": bool(shared_loops(program.body))}
    module = Module([name for name, asked in asks.items() if asked], pointer_type(features))
    main = MainEmitter(program, plan, constants, features, module, overlap)
    main.block(program.body)
    main.const(0)
    module.export("main", module.function(main.params, [I32], main.local_types, bytes(main.code), program.name))
    return module.to_bytes(), len(module.tasks)
