"""GFLOP/s of the f32 GEMM under wasmtime, beside NumPy on one thread, in turn, in one process.

OPENBLAS_NUM_THREADS=1 python bench/gemm.py [n …]
"""

import os
import sys
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402
from weft_wasm.compile import compile_program  # noqa: E402
from weft_wasm.ir.nodes import Buffer, Program, Store  # noqa: E402
from weft_wasm.routines.gemm import gemm  # noqa: E402
from weft_wasm.runtimes.wasmtime_device import WasmtimeDevice  # noqa: E402


def matmul_program(m: int, features: frozenset[str], n: int = 0, k: int = 0, batch: int = 1, **options) -> Program:
    """out = x @ y for `batch` matrices m × k and k × n, which are m where not given."""
    n, k = n or m, k or m
    x, y = Buffer("x", "f32", (batch, m, k), "input"), Buffer("y", "f32", (batch, k, n), "input")
    out = Buffer("out", "f32", (batch, m, n), "output")
    routine = gemm(
        "matmul",
        m,
        n,
        k,
        lambda b, i, q: x[b * (m * k) + i * k + q],
        lambda b, q, j: y[b * (k * n) + q * n + j],
        lambda b, i, j, value: [Store(out, b * (m * n) + i * n + j, value)],
        batch=batch,
        features=features,
        **options,
    )
    return Program("matmul", [x, y], [out], routine.temps, routine.kernels)


def main() -> None:
    device, rng = WasmtimeDevice(), np.random.default_rng(0)
    print("n      wasm +relaxed   wasm simd128   numpy 1 thread   (GFLOP/s, best of 7)")
    for n in map(int, sys.argv[1:] or (256, 512, 768, 1024)):
        a, b = (rng.standard_normal((n, n), dtype=np.float32) for _ in range(2))
        pointers = [device.alloc(a.nbytes), device.alloc(b.nbytes)]
        device.write(pointers[0], a)
        device.write(pointers[1], b)
        loaded = [
            device.load(compile_program(matmul_program(n, f), f))
            for f in (frozenset(("simd128", "relaxed-simd")), frozenset(("simd128",)))
        ]
        best = [1e9, 1e9, 1e9]
        for _ in range(7):
            for k, program in enumerate(loaded):
                start = time.perf_counter()
                (out,) = device.run(program, pointers)
                best[k] = min(best[k], time.perf_counter() - start)
                result = np.frombuffer(device.read(out, a.nbytes), np.float32).reshape(n, n)
                device.free(out)
            start = time.perf_counter()
            expected = a @ b
            best[2] = min(best[2], time.perf_counter() - start)
        assert np.allclose(result, expected, atol=1e-3), "wrong result"
        print(f"{n:<6} {'   '.join(f'{2e-9 * n**3 / t:12.1f}' for t in best)}")
        for pointer in pointers:
            device.free(pointer)


if __name__ == "__main__":
    main()
