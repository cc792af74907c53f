"""The driver: verify, the passes that change the loop IR, plan, emit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from weft_wasm import rows, schedule, tasks
from weft_wasm.artifact import ABI_VERSION, Artifact
from weft_wasm.contents import abi_of
from weft_wasm.emit_wasm import emit_module
from weft_wasm.emit_wasm.module import frame_bytes, lay_out_constants
from weft_wasm.encode import custom_section, shared_memory_flag
from weft_wasm.ir import Buffer, Program
from weft_wasm.traversal import constants_of
from weft_wasm.plan import plan
from weft_wasm.read_ahead import read_ahead
from weft_wasm.verify import VerifyError, verify
from weft_wasm.wasm_module import ABI

DEFAULT_FEATURES = frozenset(("simd128",))
KNOWN_FEATURES = frozenset(("simd128", "relaxed-simd", "memory64"))


@dataclass(frozen=True, slots=True)
class Pass:
    """A step from loop IR to loop IR, which leaves what a program computes as it is, bit for bit, or (exact=False) but for the rounding of float sums."""

    name: str
    run: Callable[[Program, frozenset[str]], Program]
    exact: bool = True


After: TypeAlias = Callable[[Pass, Program], None]

LOWERING = Pass("lowering", lambda program, features: program)  # what the first pass is given
BEFORE_PLANNING = (
    Pass("rows.merge", lambda program, features: rows.merge(program)),
    Pass("schedule.auto", schedule.auto, exact=False),
    Pass("rows.by_batches", lambda program, features: rows.by_batches(program)),
    Pass("tasks.share", lambda program, features: tasks.share(program)),
)
AFTER_PLANNING = (Pass("read_ahead", lambda program, features: read_ahead(program)),)


def compile_program(
    program: Program,
    features: Iterable[str] = DEFAULT_FEATURES,
    *,
    schedule: bool = True,
    check: bool = True,
    after: After | None = None,
) -> Artifact:
    """One artifact of kind "wasm" for a program.

    features: what the engine has, of KNOWN_FEATURES. schedule: let the passes choose vector loops and more (False: as written).
    check: verify the program first. after: is shown the program and what each pass made of it. Raises VerifyError for malformed programs.
    """
    features = frozenset(features)
    if not features <= KNOWN_FEATURES:
        raise ValueError(f"unknown features {sorted(features - KNOWN_FEATURES)}; known are {sorted(KNOWN_FEATURES)}")
    if check:
        verify(program)
    if after is not None:
        after(LOWERING, program)
    if schedule:
        program = run_passes(BEFORE_PLANNING, program, features, after)
    placed = plan(program)
    if schedule:
        program = run_passes(AFTER_PLANNING, program, features, after)
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


def run_passes(passes: Iterable[Pass], program: Program, features: frozenset[str], after: After | None = None) -> Program:
    """The program that the passes, one after the other, make of a program."""
    for step in passes:
        program = step.run(program, features)
        if after is not None:
            after(step, program)
    return program


def verify_after(step: Pass, program: Program) -> None:
    """Verifies what a pass has made, and names the pass."""
    try:
        verify(program)
    except VerifyError as e:
        raise VerifyError(f"after {step.name}: {e}") from None


def _spec(buffer: Buffer) -> dict[str, Any]:
    return {"dtype": buffer.label, "shape": list(buffer.shape), "bytes": buffer.nbytes}
