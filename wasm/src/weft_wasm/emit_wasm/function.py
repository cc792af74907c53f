"""A WebAssembly function under construction: its code, its locals, and arithmetic on addresses."""

from __future__ import annotations

from collections.abc import Sequence

from weft_wasm.binary import encode
from weft_wasm.binary.encode import I32, I64, OP, Module, unsigned
from weft_wasm.ir.addresses import STOP
from weft_wasm.ir.nodes import wrap

# Instructions by the number of the local: most instructions of a function.
_GET, _SET, _TEE = ([OP[f"local.{op}"] + unsigned(k) for k in range(256)] for op in ("get", "set", "tee"))
_ADD, _MUL, _SHL = ({I32: OP[f"i32.{op}"], I64: OP[f"i64.{op}"]} for op in ("add", "mul", "shl"))


def pointer_type(features: frozenset[str]) -> int:
    """The type of addresses."""
    return I64 if "memory64" in features else I32


class Function:
    """Code that grows, and locals that are given out and taken back by type. Parameters are the first locals.

    pointer: the type of addresses.

    >>> fn = Function([I32])
    >>> x = fn.new_local(I32)
    >>> fn.get(0), fn.add_bytes(8), fn.set(x)
    (None, None, None)
    >>> fn.code.hex(" ")
    '20 00 41 08 6a 21 01'
    """

    __slots__ = ("code", "params", "local_types", "pointer", "_free")

    def __init__(self, params: Sequence[int], pointer: int = I32):
        self.code = bytearray()
        self.params = list(params)
        self.local_types: list[int] = []
        self.pointer = pointer
        self._free: dict[int, list[int]] = {}

    def end(self, module: Module, name: str, results: Sequence[int] = ()) -> int:
        """The number of the finished function in a module."""
        return module.function(self.params, list(results), self.local_types, bytes(self.code), name)

    # ---- locals

    def new_local(self, kind: int) -> int:
        """A local of a type; a released one if there is any."""
        free = self._free.get(kind)
        if free:
            return free.pop()
        self.local_types.append(kind)
        return len(self.params) + len(self.local_types) - 1

    def release(self, kind: int, local: int) -> None:
        """Gives a local back."""
        self._free.setdefault(kind, []).append(local)

    def get(self, local: int) -> None:
        self.code += _GET[local] if local < 256 else OP["local.get"] + unsigned(local)

    def set(self, local: int) -> None:
        self.code += _SET[local] if local < 256 else OP["local.set"] + unsigned(local)

    def tee(self, local: int) -> None:
        self.code += _TEE[local] if local < 256 else OP["local.tee"] + unsigned(local)

    def const(self, value: int) -> None:
        """Pushes an i32."""
        self.code += encode.i32_const(value)

    def poll(self) -> None:
        """Traps if the host has written into its word. The load is atomic: engines must not move it out of a loop."""
        self.bytes_const(STOP)
        self.code += encode.POLL

    # ---- numbers of the size of an address

    def bytes_const(self, value: int) -> None:
        self.code += (
            encode.i32_const(wrap(value, "i32")) if self.pointer == I32 else OP["i64.const"] + encode.signed(value)
        )

    def as_bytes(self) -> None:
        """The i32 on the stack as a number of that size."""
        if self.pointer == I64:
            self.code += OP["i64.extend_i32_s"]

    def add(self) -> None:
        """Adds up two numbers of that size."""
        self.code += _ADD[self.pointer]

    def add_bytes(self, amount: int) -> None:
        self.bytes_const(amount)
        self.add()

    def scale(self, factor: int) -> None:
        """Multiplies the number of that size on the stack."""
        if factor == 1:
            return
        shift = factor > 0 and factor & (factor - 1) == 0
        self.bytes_const(factor.bit_length() - 1 if shift else factor)
        self.code += (_SHL if shift else _MUL)[self.pointer]
