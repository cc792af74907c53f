"""What a compiler may take to stay as it is, in programs where it changes: WebGPU computes what the interpreter
does.
"""

import changing_functions
import pytest
import wasm_harness
from changing_programs import CASES, check
from weft import tree
from webgpu_harness import kernels, run_webgpu
from weft_wasm.emit_wgsl.legalize import legalize
from weft_wasm.emit_wgsl.shader import WgslError
from weft_wasm.passes.buffers import plan


@pytest.mark.parametrize("name", CASES)
def test_webgpu(name, device):
    if any(b.role == "private" for b in CASES[name][0].temps):
        with pytest.raises(WgslError, match="is each thread's own, which a WebGPU program can't have"):
            run_webgpu(CASES[name][0], *CASES[name][1])
    else:
        check(name, run_webgpu)


@pytest.mark.parametrize("name", changing_functions.CASES)
def test_functions(name, backend, monkeypatch):
    """Lowered for WebGPU they are other programs, and arguments are donated."""
    monkeypatch.setattr(wasm_harness, "backend", lambda: backend)
    fun, args = changing_functions.CASES[name]
    wasm_harness.check(lambda *xs: tree.leaves(fun(*xs)), *args, donated=(True,) * len(args))


def test_a_barrier_stands_between_uses_of_the_same_storage():
    """The second loop of a row writes where the first has read, in another array: no invocation may begin it before
    all have read.
    """
    program, _ = CASES["rows_shared_by_a_workgroup"]
    a, _, c = program.temps
    legal = legalize(program, 8)
    where = {b.name: b for b in legal.program.temps}
    assert plan(legal.program).overlap(where[a.name], where[c.name]), "else the case shows nothing"
    text = next(text for text in kernels(program) if "workgroupBarrier" in text)
    assert text.index("storageBarrier();") < text.index("* 2.0f")
