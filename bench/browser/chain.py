"""How near the elementwise chain of bench/browser/peers.mjs comes to the SIMD units' peak, in Chromium, one thread.

    python bench/browser/chain.py [--calls 60]

The peaks are measured beside it: loops that do nothing but multiply and add, or divide, in registers. The chain's
arithmetic is what its vector loop computes for four elements, without loads, stores, and what only special values need.
Prints the time of a call, the time that the arithmetic takes at the peaks, and their ratio.
"""

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "peers"))

import weft  # noqa: E402
import weft.numpy as jnp  # noqa: E402
from artifacts import FEATURES, least_times  # noqa: E402
from weft_wasm.elementary import expansion  # noqa: E402
from weft_wasm.passes import schedule  # noqa: E402
from weft_wasm.ir.nodes import (  # noqa: E402
    Assign,
    Binary,
    Bitcast,
    Buffer,
    Compare,
    Const,
    Expr,
    For,
    Kernel,
    Let,
    Load,
    Local,
    MulAdd,
    Program,
    Select,
    Store,
    Var,
)  # noqa: E402
from weft_wasm.ir.traversal import operands, walk  # noqa: E402
from weft_wasm.lower.program import lower  # noqa: E402
from workloads import chain  # noqa: E402

COUNT = 1 << 20
# independent results to work on; operations on each; turns over a few elements
CHAINS, STEPS, TURNS, ELEMENTS = 10, 24, 500, 512


def peak(operation) -> Program:
    """CHAINS·STEPS operations on every element, TURNS times."""
    x, out, j, turn = (
        Buffer("x", "f32", (ELEMENTS,), "input"),
        Buffer("out", "f32", (ELEMENTS,), "output"),
        Var("j"),
        Var("turn"),
    )
    values: list[Expr] = [x[j] + float(k) for k in range(CHAINS)]
    body: list = []
    for _ in range(STEPS):
        steps = [Let(Var("value", "f32"), operation(value, x[j])) for value in values]
        body, values = body + steps, [step.var for step in steps]
    total = values[0]
    for value in values[1:]:
        total = total + value
    return Program(
        "peak",
        [x],
        [out],
        [],
        [Kernel("peak", [For(turn, TURNS, [For(j, ELEMENTS, [*body, Store(out, j, total)], "parallel", 1)])])],
    )


def instructions(program: Program) -> tuple[int, int]:
    """(divisions, other operations) of the one vector loop of a program."""
    scheduled = schedule.schedule_loops(program)
    (loop,) = [s for kernel in scheduled.body for s in walk(kernel.body) if type(s) is For and s.vector]
    seen: set[Expr] = set()
    found = [0, 0]

    def visit(e: Expr) -> None:
        if e in seen:
            return
        seen.add(e)
        if expansion.needs_expansion(e):
            return visit(expansion.expand(e))
        if type(e) in (Const, Load, Var, Local):
            return
        if type(e) is Select and e.rare:
            found[1] += 1  # the test whether a lane needs it
            visit(e.cond)
            return visit(e.b)
        if type(e) is Select and type(e.cond) is Compare and {e.cond.a, e.cond.b} == {e.a, e.b}:
            seen.add(e.cond)  # a minimum or maximum
        found[0 if type(e) is Binary and e.op == "div" else 1] += type(e) is not Bitcast
        for x in operands(e):
            visit(x)

    for s in walk(loop.body):
        if type(s) in (Let, Assign, Store):
            visit(s.value)
    return found[0], found[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", default="60")
    options = parser.parse_args()
    jaxpr = weft.make_jaxpr(chain)(weft.ShapeDtypeStruct((COUNT,), jnp.float32)).jaxpr
    program = lower(jaxpr, "chain", (), FEATURES)[0]
    programs = [program, peak(lambda value, x: MulAdd(x, x, value)), peak(lambda value, x: Binary("div", value, x))]
    took, *peaks = least_times(programs, options.calls)
    operations = CHAINS * STEPS * TURNS * ELEMENTS / 4
    adding, dividing = (operations / ms / 1e6 for ms in peaks)  # 10⁹ vector operations a second
    divisions, others = instructions(program)
    least = COUNT / 4 * (divisions / dividing + others / adding) / 1e6
    print(
        f"peaks: {adding:.2f} · 10⁹ products with a sum of four elements a second ({8 * adding:.1f} GFLOP/s),"
        f" {dividing:.2f} · 10⁹ divisions"
    )
    print(
        f"chain of 2^20: {divisions} division{'s' * (divisions != 1)} and {others} other operations, {least:.2f} ms at"
        f" the peaks; a call takes {took:.2f} ms, {took / least:.2f} times that"
    )


if __name__ == "__main__":
    main()
