"""What a compiler may take to stay as it is, in programs where it changes: WebGPU computes what the interpreter does."""

import pytest
from changing_programs import CASES, check
from webgpu_harness import run_webgpu
from weft_wasm.emit_wgsl.shader import WgslError

pytestmark = pytest.mark.xdist_group("webgpu")


@pytest.mark.parametrize("name", CASES)
def test_webgpu(name, device):
    if any(b.role == "private" for b in CASES[name][0].temps):
        with pytest.raises(WgslError, match="is each thread's own, which a WebGPU program can't have"):
            run_webgpu(CASES[name][0], *CASES[name][1])
    else:
        check(name, run_webgpu)
