"""The driver: verify, run the passes, plan the buffers, emit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from weft_wasm.artifact import ABI_VERSION, Artifact
from weft_wasm.contents import abi_of
from weft_wasm.emit_wasm import emit_module
from weft_wasm.emit_wasm.module import frame_bytes, lay_out_constants
from weft_wasm.binary.encode import custom_section, shared_memory_flag
from weft_wasm.ir.nodes import Buffer, Program
from weft_wasm.ir.traversal import constants_of
from weft_wasm.passes.buffers import Slot, plan
from weft_wasm.passes.pipeline import AFTER_PLANNING, BEFORE_PLANNING, LOWERING, After, run_passes
from weft_wasm.ir.verify import verify
from weft_wasm.binary.decode import ABI

DEFAULT_FEATURES = frozenset(("simd128",))
KNOWN_FEATURES = frozenset(("simd128", "relaxed-simd", "memory64"))


def compile_program(
    program: Program,
    features: Iterable[str] = DEFAULT_FEATURES,
    *,
    schedule: bool = True,
    check: bool = True,
    after: After | None = None,
    instrument: Callable[[Program], Program] | None = None,
) -> Artifact:
    """One artifact of kind "wasm" for a program.

    features: what the engine has, of KNOWN_FEATURES. schedule: let the passes choose vector loops and more (False: as
        written).
    check: verify the program first. after: is shown the program and what each pass made of it. Raises VerifyError for
        malformed programs.
    instrument: changes the scheduled program before its buffers get their places.
    """
    features = frozenset(features)
    if not features <= KNOWN_FEATURES:
        raise ValueError(f"unknown features {sorted(features - KNOWN_FEATURES)}; known are {sorted(KNOWN_FEATURES)}")
    if check:
        verify(program)
    if after is not None:
        after(LOWERING, program)
    if schedule:
        program = run_passes(BEFORE_PLANNING, program, after)
    if instrument is not None:
        program = instrument(program)
    placed = plan(program)
    if schedule:
        program = run_passes(AFTER_PLANNING, program, after)
    offsets, constants = lay_out_constants(constants_of(program))
    code, shared = emit_module(program, placed, offsets, features)
    aliases = program.donated
    metadata: dict[str, Any] = {
        "abi": ABI_VERSION,
        "kind": "wasm",
        "name": program.name,
        "inputs": [_spec(b) for b in program.inputs],
        "outputs": [_spec(b) | {"alias": aliases.get(k)} for k, b in enumerate(program.outputs)],
        "scratch": placed.size + frame_bytes(program) + placed.private_size,
        "memory": shared_memory_flag(code),
        "features": sorted(features),
        **({"tasks": {"count": shared, "private": placed.private_size}} if shared else {}),
        **({"calls": [len(c.ins) + len(c.outs) for c in program.calls]} if program.calls else {}),
        "errors": {str(code): text for code, text in program.errors.items()},
    }
    said = json.dumps(abi_of(metadata, len(constants)), separators=(",", ":")).encode()
    return Artifact(metadata, code + custom_section(ABI, said), constants)


def _spec(buffer: Buffer) -> dict[str, Any]:
    return {"dtype": buffer.label, "shape": list(buffer.shape), "bytes": buffer.nbytes}


def memory_plan(program: Program) -> list[Slot]:
    """The places of a lowered program's temporary buffers, by offset and first use. Those of kernels are left out."""
    return plan(run_passes(BEFORE_PLANNING, program, None)).slots()
