"""A program → one module: a function per kernel, and `main`, which runs them and all control flow between them."""

from __future__ import annotations

from weft_wasm.emit_wasm.statements import _STATEMENT, Statements
from weft_wasm.emit_wasm.tables import SCALAR
from weft_wasm.encode import I32, OP, VOID, Module, memarg, unsigned
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

_ADD = OP["i32.add"]


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
        params = [I32] * len(self.buffers) + [SCALAR[v.dtype] for v in self.variables]
        super().__init__(params, outer.features, outer.overlap)
        self.module, self.name = module, name
        for k, buffer in enumerate(self.buffers):
            self.buffer_at[buffer] = k
        for k, var in enumerate(self.variables, len(self.buffers)):
            self.env[var] = k
        self.loop_vars |= outer.loop_vars.intersection(self.variables)

    def call_from(self, outer: Statements) -> None:
        """Ends the function and emits the call in the function around it."""
        index = self.module.function(self.params, [], self.local_types, bytes(self.code), self.name)
        for buffer in self.buffers:
            outer.get(outer.buffer_at[buffer])
        for var in self.variables:
            outer.scalar(var)
        outer.code += OP["call"] + unsigned(index)

    def outline(self, s: For) -> None:
        inner = KernelEmitter([s], self, self.module, f"{self.name}.{s.var.name}")
        inner.outlining = s
        inner.block([s])
        inner.call_from(self)


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
        super().__init__([I32], features, overlap)
        self.module = module
        self.plan = plan
        self.simd = False  # nothing at the program level is a vector loop
        table = [*program.inputs, *program.outputs]
        scratch, constant = self.new_local(I32), self.new_local(I32)
        for k, local in ((len(table), scratch), (len(table) + 1, constant)):
            self._table_entry(k, local)
        for k, buffer in enumerate(table):
            self.buffer_at[buffer] = self.new_local(I32)
            self._table_entry(k, self.buffer_at[buffer])
        for base, offsets in ((scratch, plan.offsets), (constant, constants)):
            for buffer, offset in offsets.items():
                self.buffer_at[buffer] = local = self.new_local(I32)
                self.get(base)
                if offset:
                    self.const(offset)
                    self.code += _ADD
                self.set(local)

    def _table_entry(self, k: int, local: int) -> None:
        self.get(0)
        self.code += OP["i32.load"] + memarg(4, 4 * k)
        self.set(local)

    def kernel(self, s: Kernel) -> None:
        inner = KernelEmitter(s.body, self, self.module, s.name)
        inner.block(s.body)
        inner.call_from(self)

    def copy(self, s: Copy) -> None:
        size = ITEMSIZE[s.dst.dtype]
        for buffer, index in ((s.dst, s.dst_index), (s.src, s.src_index)):
            self.get(self.buffer_at[buffer])
            if isinstance(index, int):
                if index:
                    self.const(index * size)
                    self.code += _ADD
            else:
                self.open(index)
                self.scalar(index)
                self.close()
                self.const(size)
                self.code += OP["i32.mul"] + _ADD
        self.const(s.count * size)
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
            self.code += OP["i32.store"] + memarg(4, 4 * k)
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

    def _hoist(self, body, var):
        return []  # kernels in the body may write anything


_STATEMENT |= {Kernel: MainEmitter.kernel, Copy: MainEmitter.copy, Fail: MainEmitter.fail, HostCall: MainEmitter.host_call}


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


def emit_module(program: Program, plan: Plan, constants: dict[Buffer, int], features: frozenset[str]) -> bytes:
    """The module's bytes; `plan` and `constants` place temps and constants."""
    storage = {program.outputs[o]: program.inputs[i] for o, i in program.donated.items()}

    def overlap(a: Buffer, b: Buffer) -> bool:
        a, b = storage.get(a, a), storage.get(b, b)
        return a is b or plan.overlap(a, b)

    module = Module(host_calls=any(type(s) is HostCall for s in walk(program.body)))
    main = MainEmitter(program, plan, constants, features, module, overlap)
    main.block(program.body)
    main.const(0)
    module.export("main", module.function(main.params, [I32], main.local_types, bytes(main.code), program.name))
    return module.to_bytes()
