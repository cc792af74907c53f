"""Plans that were damaged and still are plans run on a device, or it refuses a kernel in clear words; nothing ends
the process. WEFT_HOSTILE_PLANS sets from how many.
"""

from __future__ import annotations

import collections
import os

from artifact_mutations import Mutant
from weft_wasm.artifact import Artifact, ArtifactError
from weft_wasm.runtimes.memory import DeviceMemoryError

COUNT = int(os.environ.get("WEFT_HOSTILE_PLANS", "1500"))


def outcome(device, mutant: Mutant, artifact: Artifact) -> str:
    try:
        loaded = device.load(artifact)
    except RuntimeError as e:
        assert "the WebGPU device refused a kernel" in str(e), mutant.what
        return "kernel refused"
    except (ArtifactError, DeviceMemoryError):
        return "too large"
    inputs = [device.alloc(spec["bytes"]) for spec in artifact.metadata["inputs"]]
    for handle, spec, data in zip(inputs, artifact.metadata["inputs"], mutant.inputs):
        device.write(handle, data[: spec["bytes"]])
    outputs = device.run(loaded, inputs)
    found = [device.read(handle, spec["bytes"]) for handle, spec in zip(outputs, artifact.metadata["outputs"])]
    for handle in inputs + outputs:
        device.free(handle)
    device.unload(loaded)
    return "ran" if len(found) == len(artifact.metadata["outputs"]) else "lost outputs"


def test_damaged_plans(device):
    found = collections.Counter()
    for seed in range(COUNT):
        mutant = Mutant(seed)
        if mutant.bytes_only or mutant.artifact.kind != "webgpu":
            continue
        try:
            artifact = Artifact.from_bytes(mutant.data)
        except ArtifactError:
            found["refused"] += 1
            continue
        if artifact.kind != "webgpu" or "count" in mutant.what:  # loops that were made longer would take that long
            continue
        found[outcome(device, mutant, artifact)] += 1
    assert found["refused"] > found["ran"] > 0 and found["kernel refused"] and not found["lost outputs"], found
