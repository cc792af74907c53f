"""Loop IR → WebAssembly: tables of instructions, addresses, expressions, statements, the module."""

from weft_wasm.emit_wasm.module import emit_module

__all__ = ["emit_module"]
