"""Loop-IR programs timed in Chromium by artifact.mjs, for the benchmarks beside it."""

import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from weft_wasm.compile import compile_program
from weft_wasm.ir.nodes import Program

FEATURES = frozenset(("simd128", "relaxed-simd"))


def least_times(programs: Sequence[Program], calls: int | str) -> list[float]:
    """The least time of a call of each program, in ms; they are measured in turn, on one thread."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{k}.weft" for k in range(len(programs))]
        for path, program in zip(paths, programs):
            path.write_bytes(compile_program(program, FEATURES).to_bytes())
        script = Path(__file__).with_name("artifact.mjs")
        done = subprocess.run(
            ["node", str(script), "--calls", str(calls), *map(str, paths)],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
    return [float(ms) for ms in re.findall(r"best ([\d.]+) ms", done.stdout)]
