"""Kernels of one's own beside naive programs, in Chromium, one thread: the programs of bench/kernels.py that are
compiled as one.

python bench/browser/pallas.py [--calls 20]
"""

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import weft  # noqa: E402
from artifacts import FEATURES, least_times  # noqa: E402
from kernels import programs  # noqa: E402
from weft_wasm.ir.nodes import Program  # noqa: E402
from weft_wasm.lower.program import lower  # noqa: E402


def lowered(f, args) -> Program:
    closed = weft.make_jaxpr(f)(*[weft.ShapeDtypeStruct(x.shape, x.dtype) for x in args])
    return lower(closed.jaxpr, "kernel", (), FEATURES)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", default="20")
    options = parser.parse_args()
    rows = [(title, lowered(f, args)) for title, f, args, whole in programs() if whole]
    print("| program | ms |\n|---|---:|")
    for (title, _), ms in zip(rows, least_times([p for _, p in rows], options.calls), strict=True):
        print(f"| {title} | {ms:.1f} |")


if __name__ == "__main__":
    main()
