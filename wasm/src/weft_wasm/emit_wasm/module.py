"""A program → one module: a function per kernel, and `main`, which runs them and all control flow between them."""

from __future__ import annotations

from collections.abc import Hashable

from weft_wasm.emit_wasm.function import Function, pointer_type
from weft_wasm.emit_wasm.functions import FRAME_BYTES, TYPE, Callee, Caller, Target, Uses, shared_loops, uses
from weft_wasm.binary.encode import I32, OP, VOID, Module, memarg, unsigned
from weft_wasm.ir.fingerprint import fingerprint
from weft_wasm.ir.instances import Run, given, model_of, models, statements
from weft_wasm.ir.nodes import padded, ITEMSIZE, Buffer, Copy, Fail, HostCall, Instance, Kernel, Program
from weft_wasm.ir.rewriting import expanded
from weft_wasm.passes.buffers import MemoryPlan


class Main:
    """`main(table)`: loads the table, then statements of the program level."""

    def __init__(self, program: Program, target: Target, constants: dict[Buffer, int]):
        self.target, self.kernels = target, dict[Hashable, Callee]()
        self.models: dict[Kernel, tuple[Uses, Hashable]] = {}
        self.address_bytes = 4 if target.pointer == I32 else 8  # in tables
        self.fn = fn = Function([target.pointer], target.pointer)
        table = [*program.inputs, *program.outputs]
        scratch, constant = fn.new_local(target.pointer), fn.new_local(target.pointer)
        at: dict[Buffer, int] = {}
        for k, local in ((len(table), scratch), (len(table) + 1, constant)):
            self._table_entry(k, local)
        for k, buffer in enumerate(table):
            at[buffer] = fn.new_local(target.pointer)
            self._table_entry(k, at[buffer])
        frame = fn.new_local(target.pointer)
        if "share" in target.module.imports:
            fn.get(scratch)
            fn.add_bytes(target.plan.size)
            fn.set(frame)
        own = target.plan.size + frame_bytes(program)
        private = {b: own + offset for b, offset in target.plan.private.items()}
        for base, offsets in ((scratch, target.plan.offsets | private), (constant, constants)):
            for buffer, offset in offsets.items():
                at[buffer] = local = fn.new_local(target.pointer)
                fn.get(base)
                if offset:
                    fn.add_bytes(offset)
                fn.set(local)
        self.caller = Caller(target, fn, program.name, frame, in_kernel=False)
        self.scope, self.shared, self.scalars = (
            self.caller.parts.scope,
            self.caller.parts.shared,
            self.caller.parts.scalars,
        )
        self.at = self.caller.parts.storage.at
        self.at.update(at)
        self.blocks = self.caller.parts.blocks
        self.blocks.add(
            {Kernel: self.kernel, Instance: self.kernel, Copy: self.copy, Fail: self.fail, HostCall: self.host_call}
        )

    def _table_entry(self, k: int, local: int) -> None:
        self.fn.get(0)
        self.fn.code += OP[f"{TYPE[self.fn.pointer]}.load"] + memarg(self.address_bytes, self.address_bytes * k)
        self.fn.set(local)

    def kernel(self, s: Run) -> None:
        """Emits a kernel once: a program's layers are the same kernels on other buffers."""
        model = model_of(s)
        if model not in self.models:
            used = uses(model.body)
            self.models[model] = used, fingerprint(model.body, used.buffers, used.variables)
        used, text = self.models[model]
        outside = Uses([given(s, b) for b in used.buffers], used.variables)
        buffers, variables = outside.buffers, outside.variables
        shared = tuple(self.target.overlap(a, b) for k, a in enumerate(buffers) for b in buffers[:k])
        key = text, shared, tuple(v in self.scope.loop_vars for v in variables)
        if key not in self.kernels:
            kernel = s if type(s) is Kernel else expanded(s)
            self.kernels[key] = self.caller.function(kernel.body, outside, s.name)
        self.caller.call(self.kernels[key], outside)

    def copy(self, s: Copy) -> None:
        size = ITEMSIZE[s.dst.dtype]
        for buffer, index in ((s.dst, s.dst_index), (s.src, s.src_index)):
            self.fn.get(self.at[buffer])
            if isinstance(index, int):
                if index:
                    self.fn.add_bytes(index * size)
            else:
                self.scalars.alone(index)
                self.fn.as_bytes()
                self.fn.scale(size)
                self.fn.add()
        self.fn.bytes_const(s.count * size)
        self.fn.code += OP["memory.copy"]

    def fail(self, s: Fail) -> None:
        self.fn.const(s.code)
        self.fn.code += OP["return"]

    def host_call(self, s: HostCall) -> None:
        """call(number, table of addresses); a result other than 0 ends the program."""
        fn, table = self.fn, self.at[s.table]
        for k, buffer in enumerate((*s.arguments, *s.results)):
            fn.get(table)
            fn.get(self.at[buffer])
            fn.code += OP[f"{TYPE[fn.pointer]}.store"] + memarg(self.address_bytes, self.address_bytes * k)
        code = fn.new_local(I32)
        fn.const(s.number)
        fn.get(table)
        fn.code += OP["call"] + unsigned(0)
        fn.set(code)
        fn.get(code)
        fn.code += OP["if"] + bytes((VOID,))
        fn.get(code)
        fn.code += OP["return"] + OP["end"]


def frame_bytes(program: Program) -> int:
    """Room for the frame of any loop that threads share."""
    return FRAME_BYTES if _shares(program) else 0


def _shares(program: Program) -> bool:
    """Whether threads share a loop of the program."""
    return any(shared_loops(kernel.body) for kernel in models(program.body))


def lay_out_constants(buffers: list[Buffer]) -> tuple[dict[Buffer, int], bytes]:
    """Offsets and bytes of the constant section, equal constants once."""
    offsets: dict[Buffer, int] = {}
    known: dict[bytes, int] = {}
    data = bytearray()
    for buffer in buffers:
        content = bytes(buffer.content)
        if content not in known:
            known[content] = len(data)
            data += content
            data += bytes(padded(len(content)) - len(content))
        offsets[buffer] = known[content]
    return offsets, bytes(data)


def emit_module(
    program: Program, plan: MemoryPlan, constants: dict[Buffer, int], features: frozenset[str]
) -> tuple[bytes, int]:
    """The module's bytes, and how many tasks it has; `plan` and `constants` place temps and constants."""
    storage = {program.outputs[o]: program.inputs[i] for o, i in program.donated.items()}

    def overlap(a: Buffer, b: Buffer) -> bool:
        a, b = storage.get(a, a), storage.get(b, b)
        return a is b or plan.overlap(a, b)

    asks = {"call": any(type(s) is HostCall for s in statements(program.body)), "share": _shares(program)}
    module = Module([name for name, asked in asks.items() if asked], pointer_type(features))
    main = Main(program, Target(module, plan, features, overlap), constants)
    main.blocks.block(program.body)
    main.fn.const(0)
    module.export("main", main.fn.end(module, program.name, [I32]))
    return module.to_bytes(), len(module.tasks)
