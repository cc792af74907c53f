"""Compiles random programs, and runs those that call functions of the host: what reaches the compiler. What it gives is
compared by `make test-random`.

PYTHONPATH=tests:tests/kernels python tools/random_coverage/compiling.py wasm START COUNT
"""

from __future__ import annotations

import os
import sys
import warnings

os.environ["WEFT_VERIFY_JAXPRS"] = "0"

import weft
from programs.check import compiled_for, run
from programs.forms import form_of
from programs.maker import THEMED, make
from programs.steps.host import FAMILIES as OF_HOST
from programs.targets import Target, target_for
from programs.tree import Program
from random_kernels import Kernels
from weft.base.config import enable_x64
from weft_wasm.compile import compile_program
from weft_wasm.emit_wgsl import compile_webgpu


def main(platform: str, start: int, count: int) -> None:
    refused: list[str] = []
    for seed in range(start, start + count):
        try:
            if platform == "kernels":
                compile_kernels(seed)
            else:
                target = target_for("wasm" if platform == "themed" else platform, seed)
                compile_for(target, make(seed + THEMED * (platform == "themed"), target.settings))
        except Exception as e:  # `make test-random` says why
            refused.append(f"{seed} ({type(e).__name__})")
        if seed % 200 == 199:
            weft.clear_caches()
    print(
        f"{platform}: programs {start} to {start + count - 1}"
        + (f", not compiled: {', '.join(refused)}" if refused else "")
    )


def compile_kernels(seed: int) -> None:
    """Every other program has loops that are too long for a dispatch."""
    longest = 1 << 16 if seed % 2 else 5
    compile_program(Kernels(seed, longest).program(), frozenset(("simd128",)))
    compile_webgpu(Kernels(seed, longest).program())


def compile_for(target: Target, program: Program) -> None:
    with enable_x64(program.x64), warnings.catch_warnings(), target.here() as device, weft.default_device(device):
        warnings.filterwarnings("ignore", message="Some donated buffers")
        device.backend.after = None  # no need to look at each pass
        form = form_of(program, [])
        data = form.draw(program.seed)
        compiled = compiled_for(program, weft.make_jaxpr(form.call)(*data), target)
        if program.families & OF_HOST.keys():
            run(compiled, data, device)
        else:
            compiled.lower(*data).compile()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
