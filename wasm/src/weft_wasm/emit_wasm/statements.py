"""Bindings, stores and branches."""

from __future__ import annotations

from collections.abc import Mapping

from weft_wasm.binary import encode
from weft_wasm.elementary import expansion
from weft_wasm.emit_wasm.blocks import Blocks, Emit
from weft_wasm.emit_wasm.function import Function
from weft_wasm.emit_wasm.scalars import Scalars
from weft_wasm.emit_wasm.scope import Name, Scope
from weft_wasm.emit_wasm.storage import Storage
from weft_wasm.emit_wasm.tables import SCALAR, STORE
from weft_wasm.emit_wasm.values import Shared
from weft_wasm.emit_wasm.vectors import Vectors
from weft_wasm.binary.encode import I32, OP, V128, memarg, unsigned
from weft_wasm.ir.nodes import ITEMSIZE, STORAGE_FLOATS, Assign, Declare, Expr, If, Let, Store, Switch, While
from weft_wasm.ir.kinds import of

VOID = bytes((encode.VOID,))


class Simple:
    """Statements without blocks: their results are stored in locals and memory."""

    def __init__(
        self, fn: Function, scope: Scope, storage: Storage, shared: Shared, scalars: Scalars, vectors: Vectors
    ):
        self.fn, self.scope, self.storage, self.shared, self.scalars, self.vectors = (
            fn,
            scope,
            storage,
            shared,
            scalars,
            vectors,
        )

    @property
    def kinds(self) -> Mapping[type, Emit]:
        """The emitters for `Blocks.add`."""
        return {**of(Let, self.let), **of(Declare, self.declare), **of(Assign, self.assign), **of(Store, self.store)}

    def let(self, s: Let) -> Name:
        return self._bind(s.var, s.value, self.scope.lanes is not None and self.scope.varying(s.value))

    def declare(self, s: Declare) -> Name:
        return self._bind(s.local, s.init, self.scope.lanes is not None)

    def _bind(self, name: Name, value: Expr, in_lanes: bool) -> Name:
        self.shared.open(value)
        if in_lanes:
            locals_ = [self.fn.new_local(V128) for _ in range(self.scope.vector.vectors)]
            self._vectors(value, locals_)
            self.scope.env[name] = locals_
        else:
            local = self.fn.new_local(SCALAR[name.dtype])
            self.scalars.push(value)
            self.fn.set(local)
            self.scope.env[name] = local
        self.shared.close()
        return name

    def assign(self, s: Assign) -> None:
        where = self.scope.env[s.local]
        self.shared.open(s.value)
        if type(where) is list:
            self._vectors(s.value, where)
        else:
            self.scalars.push(s.value)
            self.fn.set(self.scope.local(s.local))
        self.shared.close()

    def _vectors(self, value: Expr, locals_: list[int]) -> None:
        for u, local in enumerate(locals_):
            self.vectors.push(value, u)
            self.fn.set(local)

    def store(self, s: Store) -> None:
        buffer, value = s.buffer, s.value
        if buffer.dtype in STORAGE_FLOATS:
            value = expansion.encode(value)
            buffer = self.storage.bits(buffer)
        self.shared.open(s.index, value)
        if self.scope.lanes is not None:
            for u in range(self.scope.lanes.vectors):
                self.vectors.store(buffer, s.index, value, u)
        else:
            offset = self.scalars.address(buffer, s.index)
            self.scalars.push(value)
            self.fn.code += STORE[buffer.dtype] + memarg(ITEMSIZE[buffer.dtype], offset)
        self.shared.close()


class Branches:
    """If, Switch and While."""

    def __init__(self, fn: Function, scope: Scope, scalars: Scalars, blocks: Blocks):
        self.fn, self.scope, self.scalars, self.blocks = fn, scope, scalars, blocks

    @property
    def kinds(self) -> Mapping[type, Emit]:
        """The emitters for `Blocks.add`."""
        return {**of(If, self.choose), **of(Switch, self.switch), **of(While, self.repeat)}

    def choose(self, s: If) -> None:
        self.scalars.alone(s.test)
        self.fn.code += OP["if"] + VOID
        self.blocks.block(s.then)
        if s.orelse:
            self.fn.code += OP["else"]
            self.blocks.block(s.orelse)
        self.fn.code += OP["end"]

    def switch(self, s: Switch) -> None:
        fn, n = self.fn, len(s.branches)
        self.scalars.alone(s.index)
        index = fn.new_local(I32)
        fn.set(index)
        # clamp below: a negative index is a large unsigned number, for which br_table takes the default (the last
        # branch)
        fn.code += OP["block"] + VOID
        for _ in range(n):
            fn.code += OP["block"] + VOID
        fn.const(0)
        fn.get(index)
        fn.get(index)
        fn.const(0)
        fn.code += OP["i32.lt_s"] + OP["select"]
        fn.code += OP["br_table"] + unsigned(n - 1) + b"".join(unsigned(k) for k in range(n - 1)) + unsigned(n - 1)
        fn.release(I32, index)
        for k, branch in enumerate(s.branches):
            fn.code += OP["end"]
            self.blocks.block(branch)
            if k < n - 1:
                fn.code += OP["br"] + unsigned(n - 1 - k)
        fn.code += OP["end"]

    def repeat(self, s: While) -> None:
        fn = self.fn
        fn.code += OP["block"] + VOID + OP["loop"] + VOID
        self.scope.depth += 1
        bound = self.blocks.open_block(s.cond)  # its bindings are visible in the test
        self.scalars.alone(s.test)
        self.scope.end(bound)
        fn.code += OP["i32.eqz"] + OP["br_if"] + b"\1"
        self.blocks.block(s.body)
        fn.code += OP["br"] + b"\0" + OP["end"] + OP["end"]
        self.scope.depth -= 1
