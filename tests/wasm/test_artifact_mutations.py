"""Damaged artifacts are refused in clear words, with the place; those that are another program's after all run in
bounds, and end.

WEFT_HOSTILE_ARTIFACTS sets how many, WEFT_HOSTILE_START where the seeds begin. tools/web/test_readers.py shows them to
the page's reader.
"""

from __future__ import annotations

import collections
import os

import pytest
from artifact_mutations import Mutant, originals
from weft_wasm.artifact import Artifact, ArtifactError
from weft_wasm.runtimes.memory import DeviceMemoryError
from weft_wasm.runtimes.wasmtime_device import ProgramError, WasmtimeDevice

COUNT = int(os.environ.get("WEFT_HOSTILE_ARTIFACTS", "600"))
START = int(os.environ.get("WEFT_HOSTILE_START", "0"))
CHUNK = 200
HARMLESS = ("name", "errors", "features", "memory", "id")  # of the metadata: what decides nothing about results


def results(device: WasmtimeDevice, artifact: Artifact, inputs: list[bytes]) -> list[bytes]:
    loaded = device.load(artifact)
    pointers = []
    for k, spec in enumerate(artifact.metadata["inputs"]):  # another program may take more of them
        pointers.append(device.alloc(spec["bytes"]))
        device.write(pointers[-1], inputs[k][: spec["bytes"]] if k < len(inputs) else bytes(spec["bytes"]))
    outputs = device.run(loaded, pointers)
    found = [device.read(p, spec["bytes"]) for p, spec in zip(outputs, artifact.metadata["outputs"], strict=True)]
    for p in pointers + outputs:
        device.free(p)
    device.unload(loaded)
    return found


def same_computation(a: Artifact, b: Artifact) -> bool:
    """Whether two artifacts differ in nothing that decides about results."""
    same = lambda m: (
        {k: v for k, v in m.items() if k not in HARMLESS}
        | {g: [{k: v for k, v in spec.items() if k != "shape"} for spec in m[g]] for g in ("inputs", "outputs")}
    )
    return a.code == b.code and a.constants == b.constants and same(a.metadata) == same(b.metadata)


def outcome(seed: int, devices: dict[bool, WasmtimeDevice]) -> str:
    """What became of one damaged artifact; an assertion fails where it must not."""
    mutant = Mutant(seed)
    context = f"seed {seed}, {mutant.artifact.name}: {mutant.what}"
    try:
        artifact = Artifact.from_bytes(mutant.data)
    except ArtifactError as e:
        assert len(str(e)) < 800 and len(str(e).splitlines()) == 1, context
        assert mutant.bytes_only or "checksum" not in str(e), context
        return "damaged" if mutant.bytes_only else "refused"
    except Exception as e:
        raise AssertionError(f"{context}: the reader ends with {type(e).__name__}: {e}") from e
    if mutant.bytes_only:
        assert artifact == mutant.artifact, context
        return "whole"
    if artifact.kind == "webgpu":
        return "a plan"
    device = devices["memory64" in artifact.metadata["features"]]
    if artifact.metadata.get("calls"):
        return "calls"
    try:
        got = results(device, artifact, mutant.inputs)
    except ArtifactError as e:
        assert "is not a module that runs here" in str(e) and artifact.code != mutant.artifact.code, f"{context}: {e}"
        return "no module"
    except (ProgramError, DeviceMemoryError) as e:
        assert not same_computation(artifact, mutant.artifact), f"{context}: {e}"
        return "fails"
    except Exception as e:
        raise AssertionError(f"{context}: running it ends with {type(e).__name__}: {e}") from e
    if same_computation(artifact, mutant.artifact):
        assert got == results(device, mutant.artifact, mutant.inputs), context
        return "same"
    return "another program"


@pytest.mark.parametrize("first", range(START, START + COUNT, CHUNK))
def test_damaged_artifacts(first):
    devices = {wide: WasmtimeDevice(limit=1 << 26, threads=3, memory64=wide, patience=1.0) for wide in (False, True)}
    found = collections.Counter(outcome(seed, devices) for seed in range(first, min(first + CHUNK, START + COUNT)))
    print(first, dict(found))
    assert found["damaged"] and found["refused"]


def test_what_is_damaged_was_whole():
    devices = {wide: WasmtimeDevice(threads=3, memory64=wide) for wide in (False, True)}
    for artifact, inputs in originals():
        assert Artifact.from_bytes(artifact.to_bytes()) == artifact
        if artifact.kind == "wasm":
            assert results(devices["memory64" in artifact.metadata["features"]], artifact, inputs)
    assert any(a.metadata.get("tasks") for a, _ in originals())
