"""Lists of statements: each statement is emitted by the part for its kind, and its bindings end with its list."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from weft_wasm.emit_wasm.interleave import Interleaved, Interleaving
from weft_wasm.emit_wasm.scope import Name, Scope
from weft_wasm.ir.nodes import Stmt

# Emits a statement of one kind (see `kinds.of`); returns its bindings, if there are any.
Emit: TypeAlias = Callable[[Any], Name | None]


class BlockEmitter(Protocol):
    """The interface to statements for loops and branches, which are statements too."""

    def block(self, body: Sequence[Stmt]) -> None:
        """Emits statements in order; their bindings end with them."""


class Blocks:
    """Emits lists of statements by the kinds that `add` has registered. interleaving: groups stores in vector loops, if
    there are such loops.
    """

    def __init__(self, scope: Scope, interleaving: Interleaving | None = None):
        self.scope, self.interleaving = scope, interleaving
        self._emit: dict[type, Emit] = {}

    def add(self, kinds: Mapping[type, Emit]) -> None:
        """Who emits statements of which kinds."""
        self._emit.update(kinds)

    def block(self, body: Sequence[Stmt]) -> None:
        """Emits statements in order; their bindings end with them."""
        self.scope.end(self.open_block(body))

    def open_block(self, body: Sequence[Stmt]) -> list[Name]:
        """Emits statements in order; the caller ends their bindings."""
        statements: Sequence[Stmt | Interleaved] = body
        if self.interleaving is not None and self.scope.lanes is not None:
            statements = self.interleaving.grouped(body)
        emit = self._emit
        return [name for s in statements if (name := emit[type(s)](s)) is not None]
