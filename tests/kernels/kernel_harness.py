"""Runs loop-IR programs on NumPy arrays: compiled (wasmtime) or interpreted."""

import functools

import ml_dtypes
import numpy as np
from weft_wasm.interpreter import interpret
from weft_wasm.compile import compile_program
from weft_wasm.ir.nodes import Program
from weft_wasm.passes.schedule import schedule_loops
from weft_wasm.ir.verify import verify
from weft_wasm.runtimes.wasmtime_device import WasmtimeDevice

NUMPY = {
    "bool": np.bool_,
    "i8": np.int8,
    "u8": np.uint8,
    "i16": np.int16,
    "u16": np.uint16,
    "i32": np.int32,
    "u32": np.uint32,
    "i64": np.int64,
    "u64": np.uint64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
}
RELAXED = frozenset(("simd128", "relaxed-simd"))


@functools.cache
def device() -> WasmtimeDevice:
    return WasmtimeDevice()


def arrays(program: Program, parts: list[bytes]) -> list[np.ndarray]:
    return [
        np.frombuffer(data, NUMPY[b.dtype]).reshape(b.shape) for data, b in zip(parts, program.outputs, strict=True)
    ]


def run_wasm(program: Program, *inputs: np.ndarray, features=("simd128",), schedule: bool = True) -> list[np.ndarray]:
    """Outputs of the compiled program; all its memory is given back."""
    d = device()
    before = d.stats()["allocated"]
    if schedule:
        verify(schedule_loops(program))
    loaded = d.load(compile_program(program, features, schedule=schedule))
    pointers = []
    for b, x in zip(program.inputs, inputs, strict=True):
        data = np.ascontiguousarray(x, NUMPY[b.dtype]).tobytes()
        assert len(data) == b.nbytes
        pointers.append(d.alloc(len(data)))
        d.write(pointers[-1], data)
    outputs = d.run(loaded, pointers)
    result = [d.read(p, b.nbytes) for p, b in zip(outputs, program.outputs, strict=True)]
    for p in pointers + outputs:
        d.free(p)
    d.unload(loaded)
    assert d.stats()["allocated"] == before
    return arrays(program, result)


def run_interpreted(program: Program, *inputs: np.ndarray) -> list[np.ndarray]:
    data = [np.ascontiguousarray(x, NUMPY[b.dtype]).tobytes() for b, x in zip(program.inputs, inputs, strict=True)]
    return arrays(program, interpret.run(program, data))


def random_array(rng: np.random.Generator, dtype: str, shape) -> np.ndarray:
    """Values of every kind: small and extreme integers, special floats."""
    kind = NUMPY[dtype]
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype in ("f16", "bf16", "f32", "f64"):
        x = rng.normal(size=shape) * 10.0 ** rng.integers(-3, 4, size=shape)
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 2.5, -2.5, 1e9])
        x = np.where(rng.random(shape) < 0.2, rng.choice(special, size=shape), x)
        with np.errstate(all="ignore"):
            return x.astype(kind)
    info = np.iinfo(kind)
    x = rng.integers(-5, 40, size=shape)
    extreme = np.array([info.min, info.max, 0, 1, info.max // 2], dtype=object)
    return np.where(rng.random(shape) < 0.3, rng.choice(extreme, size=shape), x.clip(info.min, info.max)).astype(kind)


def assert_same(a: np.ndarray, b: np.ndarray, context: str = "") -> None:
    """Equal bits, all NaNs alike, -0.0 and 0.0 distinct."""
    if a.dtype.kind not in "biu":
        a, b = a.astype(np.float64), b.astype(np.float64)
        good = (np.isnan(a) & np.isnan(b)) | ((a == b) & (np.signbit(a) == np.signbit(b)))
    else:
        good = a == b
    where = np.argwhere(~good)
    assert good.all(), (
        f"{context}\nat {where[0]}: {a[tuple(where[0])]} and {b[tuple(where[0])]}; {len(where)} of {a.size} differ"
    )
