"""How near sums and layer norm come to the bandwidth of memory, in Chromium, one thread.

    python bench/browser/bandwidth.py [--calls 30]

Bandwidth is measured beside them: a bitwise or over as many bytes as a sum reads, in one stream or several, and
`memory.copy` and x + 1, which read and write as many bytes as layer norm.
Prints GB/s (bytes of arguments and results by the least time of a call) and the part that this is of the most that any
loop over as many bytes reached.
"""

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "peers"))

import weft  # noqa: E402
import weft.numpy as jnp  # noqa: E402
from artifacts import FEATURES, least_times  # noqa: E402
from weft_wasm.ir.nodes import (  # noqa: E402
    Assign,
    Binary,
    Bitcast,
    Buffer,
    Const,
    Copy,
    Declare,
    For,
    Kernel,
    Local,
    Program,
    Store,
    Var,
    i32,
)  # noqa: E402
from weft_wasm.lower.program import lower  # noqa: E402
from workloads import layer_norm  # noqa: E402

SQUARE, ROWS = (4096, 4096), (4096, 1024)


def reading(count: int, streams: int = 1) -> Program:
    """Reads `count` words, from so many places at a time, and does as little as can be with them."""
    x, out, j = Buffer("x", "f32", (count,), "input"), Buffer("out", "i32", (streams,), "output"), Var("j")
    accumulators = [Local(f"acc{k}", "i32") for k in range(streams)]
    steps = [
        Assign(acc, Binary("or", acc, Bitcast(x[j + k * (count // streams)], "i32")))
        for k, acc in enumerate(accumulators)
    ]
    body = [
        *(Declare(acc, Const(0, "i32")) for acc in accumulators),
        For(j, count // streams, steps, "reduce"),
        *(Store(out, i32(k), acc) for k, acc in enumerate(accumulators)),
    ]
    return Program("read", [x], [out], [], [Kernel("read", body)])


def copying(count: int) -> Program:
    x, out = Buffer("x", "f32", (count,), "input"), Buffer("out", "f32", (count,), "output")
    return Program("copy", [x], [out], [], [Copy(out, x, count)])


def of(fun, shape) -> Program:
    return lower(weft.make_jaxpr(fun)(weft.ShapeDtypeStruct(shape, jnp.float32)).jaxpr, "program", (), FEATURES)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", default="30")
    options = parser.parse_args()
    words, elements = SQUARE[0] * SQUARE[1], ROWS[0] * ROWS[1]
    cases = {  # name: (program, bytes)
        **{f"read 64 MB, {n} at a time": (reading(words, n), 4 * words) for n in (1, 2, 4, 8)},
        "sum of 4096², axis 0": (of(lambda x: x.sum(0), SQUARE), 4 * words),
        "sum of 4096², axis 1": (of(lambda x: x.sum(1), SQUARE), 4 * words),
        "sum of 4096²": (of(lambda x: x.sum(), SQUARE), 4 * words),
        "copy 16 MB": (copying(elements), 8 * elements),
        "add 1 to 16 MB": (of(lambda x: x + 1, ROWS), 8 * elements),
        "layer norm 4096×1024": (of(layer_norm, ROWS), 8 * elements),
    }
    best = least_times([program for program, _ in cases.values()], options.calls)
    rates = {name: nbytes / ms / 1e6 for (name, (_, nbytes)), ms in zip(cases.items(), best, strict=True)}
    print("| | ms | GB/s | of the bandwidth |\n|---|---:|---:|---:|")
    for (name, (_, nbytes)), ms in zip(cases.items(), best, strict=True):
        most = max(rates[other] for other, case in cases.items() if case[1] == nbytes)
        print(f"| {name} | {ms:.2f} | {rates[name]:.1f} | {rates[name] / most:.0%} |")


if __name__ == "__main__":
    main()
