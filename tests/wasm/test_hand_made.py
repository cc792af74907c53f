"""Modules that no compiler of ours made: what a host bounds while they run. What they may import, export and have is
for their reader (test_artifact_mutations.py).
"""

from __future__ import annotations

import json

import pytest
import wasmtime
from weft_wasm.artifact import Artifact
from weft_wasm.contents import abi_of
from weft_wasm.binary.encode import unsigned
from weft_wasm.binary.decode import parts
from weft_wasm.runtimes.wasmtime_device import ProgramError, WasmtimeDevice


def hand_made(instructions: str) -> Artifact:
    """A module whose main stores what the instructions leave, an i32, as its only result."""
    code = bytes(
        wasmtime.wat2wasm(
            '(module (import "weft" "memory" (memory 1 65536)) (func $main (export "main") (param $table i32) (result'
            f" i32)(i32.store (i32.load (local.get $table)) {instructions}) (i32.const 0)))"
        )
    )
    metadata = {
        "abi": 1,
        "kind": "wasm",
        "name": "hand made",
        "inputs": [],
        "outputs": [{"dtype": "i32", "shape": [], "bytes": 4, "alias": None}],
        "scratch": 0,
        "features": [],
        "errors": {},
        "memory": parts(code).memory,
    }
    name = b"weft.abi"
    content = unsigned(len(name)) + name + json.dumps(abi_of(metadata, 0), separators=(",", ":")).encode()
    return Artifact(metadata, code + b"\0" + unsigned(len(content)) + content)


def run(device: WasmtimeDevice, instructions: str) -> int:
    loaded = device.load(Artifact.from_bytes(hand_made(instructions).to_bytes()))
    (out,) = device.run(loaded, [])
    found = int.from_bytes(device.read(out, 4), "little", signed=True)
    device.free(out)
    return found


def test_memory_ends_where_the_device_ends():
    """However often a module asks for more."""
    device = WasmtimeDevice(limit=4 << 20)
    assert run(device, "(i32.const 7)") == 7
    assert run(device, "(memory.grow (i32.const 65535))") == -1 == run(device, "(memory.grow (i32.const 64))")
    assert run(device, "(memory.grow (i32.const 1))") > 0
    with pytest.raises(ProgramError, match="(?s)trapped.*out of bounds"):
        run(device, "(i32.load (i32.const 4194304))")
    assert run(device, "(memory.size)") <= 64
    device.free(device.alloc(1 << 20))


@pytest.mark.parametrize(
    "instructions, said",
    [("(loop $again (br $again)) (i32.const 1)", "interrupt"), ("(call $main (i32.const 0))", "stack")],
)
def test_time_ends_where_a_host_says_so_and_stacks_in_any_case(instructions, said):
    device = WasmtimeDevice(limit=4 << 20, patience=0.1)
    with pytest.raises(ProgramError, match=f"(?s)trapped.*{said}"):
        run(device, f"(block (result i32) {instructions})")
    assert run(device, "(i32.const 7)") == 7
