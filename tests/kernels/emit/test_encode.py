"""Opcodes by name: what an assembler makes of the names. Modules use what their features allow, and no more."""

import pytest
import wasmtime
from weft_wasm.compile import KNOWN_FEATURES, compile_program
from weft_wasm.binary import decode
from weft_wasm.binary.encode import I32, I64, OP, Module, i32_const
from weft_wasm.ir.nodes import Buffer, For, Kernel, Program, Store, Var

ZEROS = " 0" * 16
IMMEDIATES = {
    "block": "end",
    "loop": "end",
    "if": "end",
    "br": "0",
    "br_if": "0",
    "br_table": "0",
    "call": "0",
    "v128.const": "i8x16" + ZEROS,
    "i8x16.shuffle": ZEROS,
    **{f"local.{op}": "0" for op in ("get", "set", "tee")},
    **{f"global.{op}": "0" for op in ("get", "set")},
    **{f"{t}.const": "0" for t in ("i32", "i64", "f32", "f64")},
    **{name: "0" for name in OP if name.endswith("_lane")},
}


def assembled(instructions: str) -> bytes:
    """The code of a function without locals, and without its end."""
    code = bytes(wasmtime.wat2wasm(f"(module (memory 1) (global (mut i32) (i32.const 0)) (func {instructions}))"))
    at = 8
    while code[at] != 10:  # sections of less than 128 bytes
        at += 2 + code[at + 1]
    assert code[at + 2] == 1 and code[at + 4] == 0 and code[-1] == 0x0B, "one function, no locals"
    return code[at + 5 : -1]


@pytest.mark.parametrize("name", [name for name in OP if name not in ("else", "end")])
def test_opcodes(name):
    assert assembled(f"{name} {IMMEDIATES.get(name, '')}").startswith(OP[name])


def test_ends_of_blocks():
    assert assembled("if else end") == OP["if"] + b"\x40" + OP["else"] + OP["end"]


@pytest.mark.parametrize(
    "features", [(), ("simd128",), ("simd128", "relaxed-simd"), ("memory64",), ("simd128", "memory64")], ids=str
)
def test_modules_use_the_instructions_that_their_features_allow(features):
    """An engine that has just these runs them; one with less refuses them."""
    n, i, j = 64, Var("i"), Var("j")
    x, out = Buffer("x", "f32", (n,), "input"), Buffer("out", "f32", (n, n), "output")
    body = [For(i, n, [For(j, n, [Store(out, i * n + j, x[j] / x[i])], "parallel")], "parallel")]
    code = compile_program(Program("p", [x], [out], [], [Kernel("k", body)]), frozenset(features)).code

    def valid(allowed) -> bool:
        config = wasmtime.Config()
        config.wasm_relaxed_simd = "relaxed-simd" in allowed
        config.wasm_simd = "simd128" in allowed
        config.wasm_memory64 = "memory64" in allowed
        try:
            wasmtime.Module.validate(wasmtime.Engine(config), code)
        except wasmtime.WasmtimeError:
            return False
        return True

    assert set(features) <= set(KNOWN_FEATURES)
    assert valid(features)
    for k, dropped in enumerate(features):
        # the engine has relaxed instructions only beside the others
        if dropped != "simd128" or "relaxed-simd" not in features:
            assert not valid(features[:k] + features[k + 1 :]), dropped


@pytest.mark.parametrize("pointer", [I32, I64])
@pytest.mark.parametrize("imports", [(), ("call",), ("share", "call"), ("call", "share")])
def test_what_a_module_imports_has_the_types_of_hosts(imports, pointer):
    """Also where no function of its own has the same type."""
    module = Module(imports, pointer)
    module.export("main", module.function([pointer], [I32], (), i32_const(0)))
    assert decode.parts(module.to_bytes()).imports == list(imports)
