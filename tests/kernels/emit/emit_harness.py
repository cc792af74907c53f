"""Runs functions made by single parts of the emitter of WebAssembly, and stands in for the parts that they are made
without.
"""

import struct

import wasmtime
from weft_wasm.emit_wasm.function import Function
from weft_wasm.emit_wasm.scope import Lanes, Scope
from weft_wasm.emit_wasm.storage import Storage
from weft_wasm.emit_wasm.tables import SCALAR
from weft_wasm.emit_wasm.values import Expansions, Held, Shared
from weft_wasm.binary.encode import I32, I64, OP, V128, Module, memarg
from weft_wasm.ir.nodes import ITEMSIZE, Const, Var
from weft_wasm.interpreter.interpret import from_bits, to_bits

_ENGINE = wasmtime.Engine()
PAGE = 1 << 16


def run(fn: Function, *args, results=(), memory: bytes = b"") -> tuple:
    """(what the function returns, the memory afterwards)."""
    module = Module(pointer=fn.pointer)
    module.export("f", fn.end(module, "f", results))
    store = wasmtime.Store(_ENGINE)
    limits = wasmtime.Limits(1, 1 << 16)
    room = wasmtime.Memory(store, wasmtime.MemoryType(limits, is_64=fn.pointer == I64))
    room.write(store, memory, 0)
    instance = wasmtime.Instance(store, wasmtime.Module(_ENGINE, module.to_bytes()), [room])
    value = instance.exports(store)["f"](store, *args)
    return value, bytes(room.read(store, 0, PAGE))


class Base:
    """The parts that all others stand on. Parameters of the function are the addresses of buffers, then variables."""

    def __init__(self, buffers=(), variables=(), overlap=lambda a, b: a is b, pointer=I32):
        self.fn = Function([pointer] * len(buffers) + [SCALAR[v.dtype] for v in variables], pointer)
        self.scope, self.storage, self.held = Scope(self.fn), Storage(overlap), Held()
        self.expansions = Expansions(self.storage)
        self.shared = Shared(self.fn, self.expansions, self.held)
        self.storage.at.update((b, k) for k, b in enumerate(buffers))
        self.scope.env.update((v, k) for k, v in enumerate(variables, len(buffers)))

    def in_lanes(self, lanes: int, vectors: int = 1) -> Var:
        """The variable of a vector loop around."""
        self.scope.lanes = Lanes(Var("i"), lanes, vectors)
        return self.scope.lanes.var


class NoFunctions:
    """Functions of a module without any."""

    def large(self, fn, dtype, lanes=0):
        raise AssertionError(f"{fn} is called")


class Constants:
    """An `Evaluator` that knows numbers for expressions, and remembers what it was asked."""

    def __init__(self, fn: Function, values):
        self.fn, self.values, self.asked = fn, values, []

    def push(self, e, at=None):
        self.asked.append((e, at))
        self.fn.const(e.value if type(e) is Const else self.values[e])


def put(fn: Function, address: int, dtype: str) -> None:
    """Stores the value on the stack at an address."""
    local = fn.new_local(SCALAR[dtype])
    fn.set(local)
    fn.bytes_const(address)
    fn.get(local)
    fn.code += OP[{I32: "i32", I64: "i64"}.get(SCALAR[dtype], dtype if dtype[0] == "f" else "i32") + ".store"]
    fn.code += memarg(max(4, ITEMSIZE[dtype]), 0)


def put_vector(fn: Function, address: int) -> None:
    """Stores the vector on the stack at an address."""
    local = fn.new_local(V128)
    fn.set(local)
    fn.bytes_const(address)
    fn.get(local)
    fn.code += OP["v128.store"] + memarg(16, 0)


def lane_bytes(value, dtype: str, lanes: int) -> bytes:
    """A lane of a vector: narrow integers and bools as wide as the lane."""
    width = 16 // lanes
    if dtype == "bool":
        return (b"\xff" if value else b"\0") * width
    if ITEMSIZE[dtype] == 8 or dtype == "f32":
        return to_bits(value, dtype)
    return struct.pack("<i" if dtype[0] == "i" else "<I", value)


def lane_value(data: bytes, dtype: str):
    """The same the other way round."""
    if dtype == "bool":
        assert data in (bytes(len(data)), b"\xff" * len(data)), "a mask is all zeros or all ones"
        return data[0] != 0
    if ITEMSIZE[dtype] == 8 or dtype == "f32":
        return from_bits(data, dtype)
    return struct.unpack("<i" if dtype[0] == "i" else "<I", data)[0]
