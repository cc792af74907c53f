"""GFLOP/s of the f32 matrix product in Chromium, one thread.

python bench/browser/gemm.py [SIZE …]     a size is n, MxNxK, or MxNxKxBATCH
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
        for size in sys.argv[1:] or ("512", "1024"):
            m, n, k, batch = ([*map(int, size.split("x")), 0, 0, 0])[:4]
            flops = 2 * m * (n or m) * (k or m) * (batch or 1)
            paths = []
            for features in (frozenset(("simd128",)), frozenset(("simd128", "relaxed-simd"))):
                paths.append(Path(folder) / f"gemm-{size}-{'-'.join(sorted(features))}.weft")
                paths[-1].write_bytes(
                    compile_program(matmul_program(m, features, n, k, batch or 1), features).to_bytes()
                )
            calls = max(15, 15 * 2 * 1024**3 // flops)
            subprocess.run(
                ["node", str(SCRIPT), "--calls", str(calls), "--flops", str(flops), *map(str, paths)], check=True
            )


if __name__ == "__main__":
    main()
