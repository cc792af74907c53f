"""Function state and addresses: locals, linear forms of indices, pointers that loops increment.

The address of `buffer[index]` is `pointer + Σ rest·scale + offset`. When a loop is entered, every access in its body gets a pointer
that already holds the part of its index which is linear in variables known there; the loop adds a constant to it per iteration.
Accesses whose indices differ by a constant share the pointer and differ in the instruction's offset immediate. Indices are i32; addresses are
too, or, with "memory64", i64.
"""

from __future__ import annotations

from weft_wasm import encode
from weft_wasm.affine import linear
from weft_wasm.encode import I32, I64, OP, unsigned
from weft_wasm.ir import ITEMSIZE, Buffer, Const, Expr, Load, Local, Store, Var, blocks, expressions, operands, wrap

_GET, _SET, _TEE = OP["local.get"], OP["local.set"], OP["local.tee"]
_ADD, _MUL, _SHL = ({I32: OP[f"i32.{op}"], I64: OP[f"i64.{op}"]} for op in ("add", "mul", "shl"))
# An offset immediate is added without wrapping, so a pointer that may lie before its buffer must not carry one that is
# larger than the lowest address a host hands out.
SAFE_OFFSET = 64


def pointer_type(features: frozenset[str]) -> int:
    """The type of addresses."""
    return I64 if "memory64" in features else I32


class Lanes:
    """The vector loop being emitted: its variable, lanes per vector, vectors per iteration."""

    __slots__ = ("var", "lanes", "vectors", "varying")

    def __init__(self, var: Var, lanes: int, vectors: int):
        self.var, self.lanes, self.vectors = var, lanes, vectors
        self.varying: dict[Expr, bool] = {}


class Access:
    """How to reach buffer[index] inside the current loop: pointer local, terms still to add, constant already included."""

    __slots__ = ("pointer", "rest", "base", "positive")

    def __init__(self, pointer: int, rest: tuple, base: int, positive: bool):
        self.pointer, self.rest, self.base, self.positive = pointer, rest, base, positive


class Addresses:
    """State of one function under construction, and address arithmetic."""

    def __init__(self, params: list[int], features: frozenset[str]):
        self.code = bytearray()
        self.params = params
        self.local_types: list[int] = []
        self.free: dict[int, list[int]] = {}
        self.features = features
        self.pointer = pointer_type(features)
        self.env: dict[Expr, int | list[int] | None] = {}  # a local, a local per vector, or None: 0 (plus offset)
        self.offset: dict[Expr, int] = {}  # constant part of an unrolled or constant loop variable
        self.loop_vars: set[Expr] = set()
        self.buffer_at: dict[Buffer, int] = {}
        self.view_of: dict[Buffer, Buffer] = {}
        self.access: dict[tuple[Buffer, Expr], Access] = {}
        self.linear_forms: dict[Expr, tuple[dict[Expr, int], int]] = {}
        self.body_accesses: dict[int, list[tuple[Buffer, Expr]]] = {}
        self.loop_pointers: list[list[int]] = []
        self.vec: Lanes | None = None

    # ---- locals

    def new_local(self, kind: int) -> int:
        free = self.free.get(kind)
        if free:
            return free.pop()
        self.local_types.append(kind)
        return len(self.params) + len(self.local_types) - 1

    def release(self, kind: int, local: int) -> None:
        self.free.setdefault(kind, []).append(local)

    def get(self, local: int) -> None:
        self.code += _GET
        self.code += unsigned(local)

    def set(self, local: int) -> None:
        self.code += _SET
        self.code += unsigned(local)

    def tee(self, local: int) -> None:
        self.code += _TEE
        self.code += unsigned(local)

    def const(self, value: int) -> None:
        self.code += encode.i32_const(value)

    # ---- numbers of the size of an address

    def bytes_const(self, value: int) -> None:
        self.code += encode.i32_const(wrap(value, "i32")) if self.pointer == I32 else OP["i64.const"] + encode.signed(value)

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

    # ---- linear forms

    def linear(self, e: Expr) -> tuple[dict[Expr, int], int]:
        """The linear form of an index, remembered."""
        return linear(e, self.linear_forms)

    # ---- which values change inside the vector loop

    def varying(self, e: Expr) -> bool:
        """Whether lanes of the current vector loop may see different values."""
        memo = self.vec.varying
        hit = memo.get(e)
        if hit is None:
            kind = type(e)
            if kind is Var or kind is Local:
                return e is self.vec.var or type(self.env.get(e)) is list
            if kind is Const:
                return False
            hit = memo[e] = any(map(self.varying, operands(e)))
        return hit

    def available(self, e: Expr, memo: dict[Expr, bool]) -> bool:
        """Whether e has one scalar value that is known now and doesn't change until its variables do."""
        hit = memo.get(e)
        if hit is None:
            kind = type(e)
            if kind is Var:
                hit = e in self.env and type(self.env[e]) is not list and not (self.vec and e is self.vec.var)
            elif kind is Local or kind is Load:
                hit = False
            else:
                hit = all([self.available(x, memo) for x in operands(e)])
            memo[e] = hit
        return hit

    # ---- pointers

    def accesses(self, body: list) -> list[tuple[Buffer, Expr]]:
        """Every distinct buffer[index] in body."""
        hit = self.body_accesses.get(id(body))
        if hit is None:
            found: dict[tuple[Buffer, Expr], None] = {}
            seen: set[Expr] = set()

            def visit(e: Expr) -> None:
                if e not in seen:
                    seen.add(e)
                    for x in operands(e):
                        visit(x)
                    if type(e) is Load:
                        found[(e.buffer, e.index)] = None

            for s in body:
                for e in expressions(s):
                    visit(e)
                if type(s) is Store:
                    found[(s.buffer, s.index)] = None
                for block in blocks(s):
                    for key in self.accesses(block):
                        found[key] = None
            hit = self.body_accesses[id(body)] = list(found)
        return hit

    def positive(self, terms) -> bool:
        return all(c >= 0 and (t in self.loop_vars) for t, c in terms)

    def enter_pointers(self, body: list, var: Var, step: int) -> list[tuple[int, int]]:
        """Makes pointers for a loop about to run (its variable is set); returns (pointer, bytes per iteration)."""
        groups: dict[tuple, list] = {}
        memo: dict[Expr, bool] = {var: False}  # as part of a term that isn't linear
        for buffer, index in self.accesses(body):
            terms, const = self.linear(index)
            known = self.access.get((buffer, index))
            if known is None:
                known = Access(
                    self.buffer_at[self.view_of.get(buffer, buffer)],
                    tuple(terms.items()),
                    0,
                    self.positive(terms.items()),
                )
            taken = tuple(
                (t, c) for t, c in known.rest if t is var or self.available(t, memo) or (self.vec and t is self.vec.var)
            )
            if not taken:
                continue
            rest = tuple(item for item in known.rest if item not in taken)
            groups.setdefault((known.pointer, taken, rest, ITEMSIZE[buffer.dtype]), []).append(
                (buffer, index, const, known)
            )
        increments = []
        fresh = []
        self.open()  # terms that aren't linear are computed here, between statements
        for (pointer, taken, rest, size), members in groups.items():
            steps = sum(c for t, c in taken if t is var) * step * size
            smallest = min(const - known.base for _, _, const, known in members)
            shift = smallest if smallest < 0 or not members[0][3].positive else 0
            local = self.new_local(self.pointer)
            fresh.append(local)
            self.get(pointer)
            for t, c in taken:
                self._add_term(t, c * size)
            if shift:
                self.add_bytes(shift * size)
            self.set(local)
            if steps:
                increments.append((local, steps))
            for buffer, index, _, known in members:
                self.access[(buffer, index)] = Access(local, rest, known.base + shift, known.positive)
        self.close()
        self.loop_pointers.append(fresh)
        return increments

    def leave_pointers(self) -> None:
        for local in self.loop_pointers.pop():
            self.release(self.pointer, local)

    def _add_term(self, t: Expr, scale: int, at=None) -> None:
        """Adds t · scale to the address on the stack; of an unrolled variable its base value."""
        if type(t) is Var and type(self.env[t]) is not list:
            local = self.env[t]
            if local is None:
                return
            self.get(local)
        else:
            self.scalar(t, at)
        self.as_bytes()
        self.scale(scale)
        self.add()

    def address(self, buffer: Buffer, index: Expr, extra: int = 0, at=None) -> int:
        """Pushes an address of buffer[index + extra] and returns the offset immediate that goes with it."""
        terms, const = self.linear(index)
        size = ITEMSIZE[buffer.dtype]
        buffer = self.view_of.get(buffer, buffer)
        known = self.access.get((buffer, index))
        if known is None:
            pointer, rest, base, positive = self.buffer_at[buffer], terms.items(), 0, self.positive(terms.items())
        else:
            pointer, rest, base, positive = known.pointer, known.rest, known.base, known.positive
        const += extra - base
        for t, c in terms.items():
            if t in self.offset:
                const += c * self.offset[t]
        self.get(pointer)
        for t, c in rest:
            self._add_term(t, c * size, at)
        offset = const * size
        if offset < 0 or offset >= 1 << 30 or (offset > SAFE_OFFSET and not positive):
            self.add_bytes(offset)
            return 0
        return offset
