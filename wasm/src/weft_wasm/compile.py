"""The driver: verify, schedule, plan, emit."""

from __future__ import annotations

from collections.abc import Iterable

from weft_wasm import schedule as schedules
from weft_wasm import rows, tasks
from weft_wasm.artifact import ABI_VERSION, Artifact
from weft_wasm.emit_wasm import emit_module
from weft_wasm.emit_wasm.module import frame_bytes, lay_out_constants
from weft_wasm.encode import shared_memory_flag
from weft_wasm.ir import Buffer, Program, constants_of
from weft_wasm.plan import plan
from weft_wasm.read_ahead import read_ahead
from weft_wasm.verify import verify

DEFAULT_FEATURES = frozenset(("simd128",))
KNOWN_FEATURES = frozenset(("simd128", "relaxed-simd", "memory64"))


def compile_program(
    program: Program, features: Iterable[str] = DEFAULT_FEATURES, *, schedule: bool = True, check: bool = True
) -> Artifact:
    """One artifact of kind "wasm" for a program.

    features: what the engine has, of KNOWN_FEATURES. schedule: let `schedule.auto` choose vector loops (False: as written).
    check: verify the program first. Raises VerifyError for malformed programs.
    """
    features = frozenset(features)
    if not features <= KNOWN_FEATURES:
        raise ValueError(f"unknown features {sorted(features - KNOWN_FEATURES)}; known are {sorted(KNOWN_FEATURES)}")
    if check:
        verify(program)
    if schedule:
        program = tasks.share(rows.by_batches(schedules.auto(rows.merge(program), features)))
    placed = plan(program)
    if schedule:
        program = read_ahead(program)
    offsets, constants = lay_out_constants(constants_of(program))
    code, shared = emit_module(program, placed, offsets, features)
    aliases = program.donated
    metadata = {
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
    return Artifact(metadata, code, constants)


def _spec(buffer: Buffer) -> dict:
    return {"dtype": buffer.label, "shape": list(buffer.shape), "bytes": buffer.nbytes}
