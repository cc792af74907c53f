"""Attention of 8 heads over longer and longer sequences, in Chromium, one thread: time, and memory beside arguments and
results.

python bench/browser/attention.py [512 1024 2048] [--calls 30]
"""

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "peers"))

import weft  # noqa: E402
import weft.numpy as jnp  # noqa: E402
from artifacts import FEATURES, least_times  # noqa: E402
from weft_wasm.compile import compile_program  # noqa: E402
from weft_wasm.ir.nodes import Program  # noqa: E402
from weft_wasm.lower.program import lower  # noqa: E402
from workloads import attention  # noqa: E402

HEADS, WIDTH = 8, 64


def program(length: int) -> Program:
    operand = weft.ShapeDtypeStruct((HEADS, length, WIDTH), jnp.float32)
    return lower(weft.make_jaxpr(attention)(operand, operand, operand).jaxpr, "attention", (), FEATURES)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lengths", nargs="*", type=int, default=[512, 1024, 2048])
    parser.add_argument("--calls", default="30")
    options = parser.parse_args()
    programs = [program(length) for length in options.lengths]
    print(
        "| keys and queries | ms | GFLOP/s | scratch memory, MB | the scores would be, MB |\n|---|---:|---:|---:|---:|"
    )
    for length, p, ms in zip(options.lengths, programs, least_times(programs, options.calls), strict=True):
        scratch, scores = compile_program(p, FEATURES).metadata["scratch"], HEADS * length * length
        print(f"| {length} | {ms:.2f} | {4e-6 * scores * WIDTH / ms:.1f} | {scratch / 1e6:.1f} | {4e-6 * scores:.1f} |")


if __name__ == "__main__":
    main()
