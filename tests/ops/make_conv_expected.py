"""Writes conv_expected.json next to this file: what real JAX gives for the cases of conv_cases.py.

<a Python with jax 0.10.2> tests/ops/make_conv_expected.py
"""

import json
import pathlib
import sys

import jax

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
from conv_cases import evaluate  # noqa: E402

rounded = lambda v: v if v != v or v in (float("inf"), float("-inf")) else float(f"{v:.6g}")
results = {
    name: [[dtype, shape, [rounded(x) for x in flat]] for dtype, shape, flat in values]
    for name, values in evaluate(jax, jax.lax).items()
}
(HERE / "conv_expected.json").write_text(
    "{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in results.items()) + "\n}\n"
)
print(len(results), "results")
