"""GFLOP/s of the f32 matrix product in Chromium, one thread.

python bench/browser/gemm.py [n …]
"""

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gemm import matmul_program  # noqa: E402
from weft_wasm.compile import compile_program  # noqa: E402

SCRIPT = Path(__file__).with_name("artifact.mjs")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for n in map(int, sys.argv[1:] or (512, 1024)):
            paths = []
            for features in (frozenset(("simd128",)), frozenset(("simd128", "relaxed-simd"))):
                paths.append(Path(folder) / f"gemm-{n}-{'-'.join(sorted(features))}.weft")
                paths[-1].write_bytes(compile_program(matmul_program(n, features), features).to_bytes())
            calls = max(15, 15 * 1024**3 // n**3)
            subprocess.run(["node", str(SCRIPT), "--calls", str(calls), "--flops", str(2 * n**3), *map(str, paths)], check=True)


if __name__ == "__main__":
    main()
