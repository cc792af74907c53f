"""Modules as text: an assembler makes the same sections of it, for programs of many kinds."""

import struct

import pytest
import wasmtime
import weft
import weft.numpy as jnp
from weft_wasm.binary.decode import CODE, HEAD, ModuleError, Reader
from weft_wasm.binary.encode import I32, Module, f32_const, f64_const, i32_const, i64_const
from weft_wasm.binary.text import float_text, module_text

wasm = pytest.fixture(lambda: weft.devices("wasm")[0])


def sections(code: bytes) -> dict[int, bytes]:
    """All but custom sections; the assembler writes none of an empty list."""
    whole, found = Reader(code, len(HEAD), len(code)), {}
    while whole.at < whole.end:
        number, size = whole.byte(), whole.unsigned()
        content = whole.take(size)
        if number and content != b"\0":
            found[number] = content
    return found


def softmax(x):
    z = jnp.exp(x - jnp.max(x, axis=1, keepdims=True))
    return z / z.sum(1, keepdims=True)


PROGRAMS = {
    "softmax of a product": (lambda x: softmax(jnp.sin(x) @ x.T), jnp.ones((16, 33))),
    "integers": (lambda x: (x * 7 // 3 % 5, x << 2, x ^ 123456789), jnp.arange(100, dtype="int32")),
    "bytes": (lambda x: jnp.where(x > 3, x, 0).astype("float32"), jnp.arange(40, dtype="uint8")),
    "loops": (lambda x: weft.lax.fori_loop(0, 5, lambda i, c: jnp.cos(c) + i, x), jnp.ones(7)),
    "branches": (lambda x: weft.lax.switch(jnp.int32(2), [jnp.sin, jnp.cos, jnp.tan], x), jnp.ones(5)),
    "sorting": (lambda x: jnp.sort(x), jnp.arange(100.0)),
    "half precision": (lambda x: (x @ x).astype("bfloat16") + 1, jnp.ones((16, 16), "float16")),
    "complex": (lambda x: jnp.fft.fft(x), jnp.ones(16)),
    "long loops that threads share": (lambda x: jnp.tanh(x).sum(), jnp.ones((512, 512))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_assembler_gives_the_module_back(wasm, name):
    function, x = PROGRAMS[name]
    with weft.default_device(wasm):
        compiled = weft.jit(function).lower(x).compile()
    text = compiled.as_text("wat")
    assert sections(wasmtime.wat2wasm(text)) == sections(compiled.executable.artifact.code)
    assert text.count("\n  (func ") == Reader(sections(compiled.executable.artifact.code)[CODE], 0, 9).unsigned()


def test_memory_of_64_bits():
    module = Module(pointer=0x7E)
    module.export("main", module.function([0x7E], [I32], [], i32_const(0)))
    assert '(import "weft" "memory" (memory i64 1 262144))' in module_text(module.to_bytes())


@pytest.mark.parametrize("value", [0.0, -0.0, 1.5, -1e-45, 3.4e38, float("inf"), float("-inf"), float("nan")])
def test_constants_are_exact(value):
    module = Module()
    drop = b"\x1a"
    code = f32_const(value) + drop + f64_const(value) + drop + i64_const(-(1 << 63)) + drop + i32_const(-1)
    module.export("main", module.function([I32], [I32], [], code, "constants"))
    data = module.to_bytes()
    text = module_text(data)
    assert "(func (;0 constants;)" in text and sections(wasmtime.wat2wasm(text)) == sections(data)


def test_the_payload_of_a_nan_is_kept():
    assert float_text(struct.pack("<I", 0xFFC00001)) == "-nan:0x400001"


def test_what_is_no_module_is_refused():
    with pytest.raises(ModuleError, match="begins with b'nothing'"):
        module_text(b"nothing")
    module = Module()
    module.export("main", module.function([I32], [I32], [], b"\xd0\x70\x1a" + i32_const(0)))
    with pytest.raises(ModuleError, match="instruction d0"):
        module_text(module.to_bytes())
    with pytest.raises(ModuleError, match="breaks off"):
        module_text(Module().to_bytes()[:-3])


def test_a_plan_keeps_what_lives_at_the_same_time_apart(wasm):
    function, x = PROGRAMS["softmax of a product"]
    with weft.default_device(wasm):
        executable = weft.jit(function).lower(x).compile().executable
    slots = executable.memory_plan()
    assert slots and executable.as_text("plan").splitlines() == [str(slot) for slot in slots]
    for a in slots:
        assert a.offset + a.nbytes <= executable.artifact.metadata["scratch"]
        for b in slots:
            if a is not b and a.first <= b.last and b.first <= a.last and a.last != b.first and b.last != a.first:
                assert a.offset + a.nbytes <= b.offset or b.offset + b.nbytes <= a.offset
