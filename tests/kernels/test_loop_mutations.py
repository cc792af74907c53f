"""Damaged loop IR is refused by the verifier, with the place named; or it is another program, and then its module
computes what the interpreter does.

WEFT_HOSTILE_LOOPS sets how many, WEFT_HOSTILE_START where the seeds begin. `python tests/kernels/test_loop_mutations.py
SEED` shows one.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import os
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from weft_wasm.interpreter import interpret
from weft_wasm.ir import nodes
from weft_wasm.compile import compile_program
from weft_wasm.passes.pipeline import AFTER_PLANNING, BEFORE_PLANNING, run_passes, verify_after
from weft_wasm.ir.nodes import (
    Assign,
    Barrier,
    Bitcast,
    Buffer,
    Call,
    Compare,
    Convert,
    Copy,
    Declare,
    Fail,
    For,
    If,
    Instance,
    Kernel,
    Let,
    Local,
    MulAdd,
    Poll,
    Program,
    Select,
    Store,
    Switch,
    Unary,
    Var,
    While,
    f32,
    i32,
)
from weft_wasm.ir.verify import VerifyError, verify
from weft_wasm.runtimes.wasmtime_device import ProgramError

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
import passes  # noqa: E402
from guarded import GuardedRuntime  # noqa: E402
from loop_mutations import Mutator  # noqa: E402
from programs.compare import nudge  # noqa: E402
from test_passes import SHAPES, lowered  # noqa: E402

COUNT = int(os.environ.get("WEFT_HOSTILE_LOOPS", "300"))
START = int(os.environ.get("WEFT_HOSTILE_START", "0"))
CHUNK = 100
WORK, STEPS = 100_000, 30_000  # how long a program may take in the interpreter
FEATURES = [frozenset(), frozenset(("simd128",)), frozenset(("simd128", "relaxed-simd"))]
# Of what no mutant may hang on the rounding of: sums in another order change them by more than a little.
NAMES = [
    "softmax",
    "sum",
    "sums of rows",
    "columns of integers",
    "product",
    "branches",
    "steps",
    "gather and scatter",
    "pairs and quads",
    "bytes",
    "loop in a loop",
    "normalised rows",
    "halves",
    "complex",
    "shared storage",
    "products of batches",
    "attention",
    "largest of rows",
    "transform",
    "every kind",
]


def every_kind() -> tuple[Program, list[bytes]]:
    """A program with all statements and expressions that the interpreter runs."""
    x, out, flag, count = (
        Buffer("x", "f32", (8,), "input"),
        Buffer("out", "f32", (8,), "output"),
        Buffer("flag", "bool", ()),
        Buffer("count", "i32", ()),
    )
    whole, half = Buffer("whole", "i32", (8,), "output"), Buffer("half", "bf16", (8,))
    more = Buffer("more", "i32", (8,), "output")
    ones = Buffer("ones", "f32", (8,), "constant", np.arange(8, dtype=np.float32).tobytes())
    i, j, k, n, t, v, acc = Var("i"), Var("j"), Var("k"), Var("n"), Var("t"), Var("v", "f32"), Local("acc", "f32")
    value = MulAdd(
        Select(Compare("lt", x[i], f32(0.5)), Unary("abs", x[i]), Call("logistic", x[i])),
        ones[i],
        nodes.add(v, Convert(i, "f32")),
    )
    first = Kernel(
        "first",
        [
            Let(v, f32(2.0)),
            Declare(acc, f32(0.0)),
            Barrier(),
            For(j, 8, [Assign(acc, nodes.maximum(acc, x[j]))], "reduce"),
            For(i, 8, [Store(out, i, value), Store(half, i, Convert(x[i], "bf16"))], "parallel", 1),
            If(
                Compare("lt", acc, f32(1.0)),
                [Store(out, i32(0), acc)],
                [Switch(Convert(acc, "i32"), [[], [Store(out, i32(1), acc)]])],
            ),
            Store(flag, i32(0), Compare("gt", acc, f32(100.0))),
            Store(count, i32(0), i32(0)),
        ],
    )
    zero = Kernel("zero", [For(n, 8, [Store(whole, n, Bitcast(nodes.convert(half[n], "f32"), "i32"))], "parallel")])
    step = Kernel("step", [Store(flag, i32(0), nodes.lt(count[0], 3)), Store(count, i32(0), count[0] + 1)])
    inner = Kernel("inner", [For(k, 4, [Store(whole, t * 4 + k, whole[t * 4 + k] + 1)], "parallel")])
    program = Program(
        "every kind",
        [x],
        [out, whole, more],
        [flag, count, half],
        [
            first,
            If(flag[0], [Fail(7)]),
            Poll(),
            zero,
            While([step], flag[0], [For(t, 2, [inner])]),
            Copy(out, x, 2, 4, 1),
            Instance("again", zero, {whole: more}),
        ],
        constants=[ones],
        errors={7: "too large"},
    )
    return program, passes.inputs_for(program, 1)


@functools.cache
def original(name: str, features: frozenset[str], scheduled: bool) -> Program:
    if name == "every kind":
        return every_kind()[0]
    fun, args = SHAPES[name]
    small = [a[(slice(5 if name == "product" else 9),) * a.ndim] for a in args]
    with passes.small_sizes() if scheduled else contextlib.nullcontext():
        program = lowered(fun, small, features, (True,) * len(args) if name == "shared storage" else ())[0]
        return run_passes(BEFORE_PLANNING + AFTER_PLANNING, program) if scheduled else program


def choices(seed: int) -> tuple[str, frozenset[str], bool, Program]:
    name, features, scheduled = (
        NAMES[seed % len(NAMES)],
        FEATURES[seed // len(NAMES) % 3],
        seed // len(NAMES) // 3 % 2 == 1,
    )
    return name, features, scheduled, original(name, features, scheduled)


def outcome(seed: int, runtime: GuardedRuntime) -> str:
    """What became of one damaged program; an assertion fails where it must not."""
    name, features, scheduled, program = choices(seed)
    mutator = Mutator(program, seed)
    mutant, context = mutator.program, f"seed {seed}, {name}: {mutator.what}"
    try:
        verify(mutant)
    except VerifyError as e:
        lines = str(e).splitlines()
        assert len(lines) <= 10 and all(len(line) < 2000 for line in lines), context
        assert ": " in lines[0] and (", " in lines[0].split(": ")[0]), f"{context}: {e}"
        return "refused"
    except Exception as e:
        raise AssertionError(f"{context}: the verifier ends with {type(e).__name__}: {e}") from e
    try:
        artifact = compile_program(mutant, features, schedule=not scheduled, after=verify_after)
    except Exception as e:
        raise AssertionError(f"{context}: verified, and can't be compiled: {type(e).__name__}: {e}") from e
    inputs = passes.inputs_for(mutant, zlib.crc32(name.encode()))
    if not passes.runs(mutant, WORK):
        return "too long"
    try:
        want: list[bytes] | str = interpret.run(mutant, inputs, STEPS, strict=True)
    except interpret.TooLong:
        return "too long"
    except interpret.InterpretError as e:
        if not str(e).startswith("fail "):
            return "undefined"
        want = str(e)
    compare(mutant, runtime, artifact, inputs, want, context)
    return "fails" if isinstance(want, str) else "same"


def within_reach(mutant: Program, inputs: list[bytes], output: int, want: bytes, got: bytes) -> np.ndarray:
    """Where a result is off by no more than it moves when the last bits of the inputs change: a mutant may take the
    remainder of a sum, say, of which rounding in another order leaves nothing.
    """
    kind = passes.NUMPY[mutant.outputs[output].dtype]
    rng, reach = np.random.default_rng(0), np.zeros(len(want) // np.dtype(kind).itemsize)
    for _ in range(4):
        nudged = [
            data
            if np.dtype(passes.NUMPY[b.dtype]).kind != "f"
            else nudge(rng, np.frombuffer(data, passes.NUMPY[b.dtype]), 4).tobytes()
            for b, data in zip(mutant.inputs, inputs)
        ]
        try:
            moved = interpret.run(mutant, nudged, STEPS, strict=True)[output]
        except (interpret.TooLong, interpret.InterpretError):
            return np.ones(len(reach), bool)
        step = np.abs(np.frombuffer(moved, kind).astype(np.float64) - np.frombuffer(want, kind).astype(np.float64))
        reach = np.fmax(reach, step)
    off = np.abs(np.frombuffer(got, kind).astype(np.float64) - np.frombuffer(want, kind).astype(np.float64))
    return off <= 16 * reach


def compare(
    mutant: Program, runtime: GuardedRuntime, artifact, inputs: list[bytes], want: list[bytes] | str, context: str
) -> None:
    device = runtime.device
    pointers, outputs = [], []
    loaded = device.load(artifact)
    try:
        for b, data in zip(mutant.inputs, inputs, strict=True):
            pointers.append(device.alloc(b.nbytes))
            device.write(pointers[-1], data)
        outputs = device.run(loaded, pointers)
        got: list[bytes] | str = [device.read(p, b.nbytes) for p, b in zip(outputs, mutant.outputs, strict=True)]
    except ProgramError as e:
        assert "trapped" not in str(e), f"{context}: {e}"
        got = str(e)
    finally:
        for p in pointers + outputs:
            device.free(p)
        device.unload(loaded)
    try:
        runtime.check()
    except AssertionError as e:
        raise AssertionError(f"{context}: {e}") from None
    if isinstance(want, str) or isinstance(got, str):
        assert isinstance(want, str) and isinstance(got, str) and f"error {want.removeprefix('fail ')}:" in got, (
            f"{context}: {got} for {want}"
        )
        return
    for b, x, y in zip(mutant.outputs, want, got, strict=True):
        kind = passes.NUMPY[b.dtype]
        wrong = passes.differing(np.frombuffer(x, kind), np.frombuffer(y, kind), 4 * passes.TOLERANCE.get(b.dtype, 0.0))
        if wrong.any() and np.dtype(kind).kind == "f":
            wrong &= ~within_reach(mutant, inputs, mutant.outputs.index(b), x, y)
        assert not wrong.any(), (
            f"{context}: {b!r} is {np.frombuffer(y, kind)}, the interpreter says {np.frombuffer(x, kind)}"
        )


@pytest.mark.parametrize("first", range(START, START + COUNT, CHUNK))
def test_damaged_programs(first):
    runtime = GuardedRuntime(threads=3)
    found = collections.Counter(outcome(seed, runtime) for seed in range(first, min(first + CHUNK, START + COUNT)))
    print(first, dict(found))
    assert found["refused"] and found["same"]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_damaged_was_whole(name):
    for scheduled in (False, True):
        features = FEATURES[len(name) % 3]
        program = original(name, features, scheduled)
        verify(program)
        inputs = passes.inputs_for(program, zlib.crc32(name.encode()))
        assert passes.runs(program, WORK)
        runtime = GuardedRuntime(threads=3)
        artifact = compile_program(program, features, schedule=not scheduled)
        compare(program, runtime, artifact, inputs, interpret.run(program, inputs, STEPS, strict=True), name)


if __name__ == "__main__":
    for seed in map(int, sys.argv[1:]):
        mutator = Mutator(choices(seed)[3], seed)
        print(seed, choices(seed)[:3], mutator.what)
        try:
            print(repr(mutator.program))
        except Exception as e:
            print(type(e).__name__, e)
        print(outcome(seed, GuardedRuntime(threads=3)))
