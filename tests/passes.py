"""Every pass of the compiler for itself: the loop IR is verified after it, and gives in the interpreter what it gave
before it. What fails names the pass.

`check` takes a program through all passes; `watching` does so with whatever a Wasm backend compiles; `small_sizes` lets
passes at small programs.

What may differ: a pass that is not `exact` may add up float sums in another order, and a result may be off by TOLERANCE
of the largest number of its array (where a result hangs on one that may be so, as an index of the largest does, tests
choose inputs without ties). Nothing else may differ, in any bit but those of NaNs.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import zlib
from collections.abc import Iterator, Sequence
from unittest import mock

import ml_dtypes
import numpy as np
from weft_wasm.interpreter import interpret
from weft_wasm.ir import nodes, traversal
from weft_wasm.backends.wasm import WasmBackend
from weft_wasm.passes.pipeline import AFTER_PLANNING, BEFORE_PLANNING, LOWERING, Pass, run_passes, verify_after
from weft_wasm.ir.nodes import Program
from weft_wasm.ir.text import describe

NUMPY = {
    "bool": np.bool_,
    "i8": np.int8,
    "u8": np.uint8,
    "i16": np.int16,
    "u16": np.uint16,
    "i32": np.int32,
    "u32": np.uint32,
    "i64": np.int64,
    "u64": np.uint64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
}
TOLERANCE = {"f16": 4e-3, "bf16": 3e-2, "f32": 1e-5, "f64": 1e-12}
# one in so many programs is compared in every run
SHARE = 1 if os.environ.get("WEFT_COMPARE_PASSES") == "all" else 8
# nodes that the interpreter visits in a run, about 10 ms; of longer programs only the verifier is asked
MOST = 5_000
STEPS = 20_000  # statements and iterations of a run; what takes more, because it does not end, is not compared
FUNCTION = 30  # nodes of a function that is written out
UNKNOWN = 4  # iterations that a loop is taken to have whose extent is computed
# Sizes from which passes do something, in their modules, and what `small_sizes` makes of them.
SMALL = [
    ("passes.threads", "WORTH", 0),
    ("passes.threads", "GRAIN", 1),
    ("passes.threads", "UNIT", 2),
    ("passes.kernel_fusion", "WORTH", 0),
    ("passes.kernel_fusion", "SHORTEST", 2),
    ("passes.accumulators", "FROM_MEMORY", 0),
    ("passes.accumulators", "SUM_BLOCK", 8),
    ("passes.column_reductions", "COLUMNS", 4),
    ("passes.column_reductions", "ROWS", 2),
    ("passes.column_reductions", "PARTS", (8, 4)),
    ("passes.column_reductions", "FAR", 0),
    ("passes.prefetch", "LARGE", 0),
    ("passes.prefetch", "SHORT", 4),
    ("passes.polls", "LONG", 20),
    ("passes.polls", "SHORT", 10),
    ("passes.polls", "RUN", 20),
    ("passes.polls", "UNIT", 2),
    ("routines.gemm", "SMALL", 0),
    ("routines.gemm", "WORTH", 0),
    ("routines.gemm", "PACKING_WORTH", 0),
    ("routines.gemm", "SHARED_COLUMNS", 1),
    ("lower.dots", "SMALL", 0),
    ("lower.fuse", "LARGE", 4),
]


class PassError(AssertionError):
    """A pass has changed what a program computes."""


class Checker:
    """An `after` hook for one program: `after(LOWERING, program)`, then each pass. inputs: bytes for each; None: the
    programs are verified only.
    """

    def __init__(self, inputs: Sequence[bytes] | None):
        self.inputs = inputs
        self.last: list[bytes] | str | None = None
        self.compared = 0

    def __call__(self, step: Pass, program: Program) -> None:
        verify_after(step, program)
        if self.inputs is None:
            return
        new = self.results(program)
        if step is not LOWERING and self.last is not None and new is not None:
            compare(step, program, self.last, new)
            self.compared += 1
        self.last = new

    def results(self, program: Program) -> list[bytes] | str | None:
        """What the program gives: bytes of its outputs, or how it fails; None where that takes too long to find out."""
        try:
            return interpret.run(program, self.inputs, STEPS, strict=True)
        except interpret.TooLong:
            return None
        except interpret.InterpretError as e:
            return str(e).partition(": ")[0]  # without the expression, in which passes rename variables


def compare(step: Pass, program: Program, old: list[bytes] | str, new: list[bytes] | str) -> None:
    """PassError where a pass has changed results more than it may."""
    if isinstance(old, str) or isinstance(new, str):
        if old != new:
            raise PassError(
                f"{step.name} has changed {program.name}: it gave {_short(old)}, and gives"
                f" {_short(new)}\n{describe(program)}"
            )
        return
    allowed = {} if step.exact else tolerances(program)
    for buffer, a, b in zip(program.outputs, old, new, strict=True):
        x, y = (np.frombuffer(data, NUMPY[buffer.dtype]) for data in (a, b))
        wrong = differing(x, y, allowed.get(buffer, 0.0))
        if wrong.any():
            k = int(np.argmax(wrong))
            raise PassError(
                f"{step.name} has changed {program.name}: element {k} of {buffer!r} was {x[k]!r} and is {y[k]!r}"
                f" ({wrong.sum()} of {len(x)} differ)\n{describe(program)}"
            )


def tolerances(program: Program) -> dict[nodes.Buffer, float]:
    """By how much each buffer may be off: as the narrowest float type that it is computed from, which may be another
    than its own.
    """
    found: dict[nodes.Buffer, float] = {}
    for statement in program.body:
        read, wrote = traversal.touched([statement])
        nodes = [
            node
            for s in traversal.walk([statement])
            for e in traversal.expressions(s)
            for node in traversal.walk_expr(e)
        ]
        most = max(
            [*[TOLERANCE.get(node.dtype, 0.0) for node in nodes], *[found.get(b, 0.0) for b in read]], default=0.0
        )
        for b in wrote:
            found[b] = max(found.get(b, 0.0), most, TOLERANCE.get(b.dtype, 0.0))
    return found


def differing(x: np.ndarray, y: np.ndarray, tolerance: float) -> np.ndarray:
    """Where two arrays differ: in any bit, or, with a tolerance, by more than that of the largest number; all NaNs
    are alike.
    """
    if x.dtype.kind in "biu":
        return x != y
    a, b = x.astype(np.float64), y.astype(np.float64)
    same = ((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))
    if tolerance:
        finite = np.abs(a[np.isfinite(a)])
        with np.errstate(invalid="ignore"):
            same |= np.abs(a - b) <= tolerance * finite.max(initial=0.0)
    return ~same


def _short(result: list[bytes] | str) -> str:
    return f"the error {result!r}" if isinstance(result, str) else "results"


def inputs_for(program: Program, seed: int) -> list[bytes]:
    """Random inputs: small numbers, so that loops that count to them end."""
    rng = np.random.default_rng(seed)
    out = []
    for b in program.inputs:
        if b.dtype == "bool":
            x = rng.random(b.size) < 0.5
        elif b.dtype in nodes.INTEGERS:
            x = rng.integers(-3 if b.dtype in nodes.SIGNED else 0, 10, size=b.size)
        else:
            x = rng.normal(size=b.size) * 1.5
        out.append(x.astype(NUMPY[b.dtype]).tobytes())
    return out


def work(program: Program) -> float:
    """About how many nodes of expressions a run of the program visits."""
    sizes: dict[nodes.Expr, int] = {}

    def size(e: nodes.Expr) -> int:
        return sum(FUNCTION if type(node) is nodes.Call else 1 for node in traversal.walk_expr(e))

    def cost(body: Sequence[nodes.Stmt]) -> float:
        total = 0.0
        for s in body:
            for e in traversal.expressions(s):
                if e not in sizes:
                    sizes[e] = size(e)
                total += sizes[e]
            times = (
                (s.extent if isinstance(s.extent, int) else UNKNOWN)
                if type(s) is nodes.For
                else UNKNOWN
                if type(s) is nodes.While
                else 1
            )
            inside = (s.kernel.body,) if type(s) is nodes.Instance else traversal.blocks(s)
            total += 1 + times * sum(map(cost, inside))
        return total

    return cost(program.body)


def runs(program: Program, most: float) -> bool:
    """Whether the interpreter can run the program, in not too much time."""
    return not program.calls and work(program) <= most


@contextlib.contextmanager
def small_sizes() -> Iterator[None]:
    """However small a program is, the passes, and what packs products, do with it what they do with large ones."""
    with contextlib.ExitStack() as stack:
        for module, name, value in SMALL:
            stack.enter_context(mock.patch.object(importlib.import_module(f"weft_wasm.{module}"), name, value))
        yield


def check(program: Program, inputs: Sequence[bytes] | None = None, most: float = MOST) -> int:
    """Takes a program through all passes, verifies and compares; returns how many passes were compared. VerifyError or
    PassError name the pass.

    inputs: random ones if None. most: nodes that the interpreter may visit; of a program that takes more, the verifier
        alone is asked.
    """
    if inputs is None:
        inputs = inputs_for(program, zlib.crc32(program.name.encode()))
    checker = Checker(inputs if runs(program, most) else None)
    checker(LOWERING, program)
    run_passes(BEFORE_PLANNING + AFTER_PLANNING, program, checker)
    return checker.compared


class Watcher:
    """The `after` hook of a Wasm backend: every program that it compiles is verified after each pass; one in `share`,
    always the same ones, is interpreted as well, on random inputs. compared: how many passes were, of each program.
    """

    def __init__(self, share: int = 1, most: float = MOST):
        self.share, self.most = share, most
        self.compared: list[int] = []
        self._checker = Checker(None)

    def __call__(self, step: Pass, program: Program) -> None:
        if step is LOWERING:
            seed = zlib.crc32(describe(program).encode())
            chosen = seed % self.share == 0 and runs(program, self.most)
            self._checker = Checker(inputs_for(program, seed) if chosen else None)
            self.compared.append(0)
        self._checker(step, program)
        self.compared[-1] = self._checker.compared


@contextlib.contextmanager
def watching(backend: WasmBackend, share: int = 1, most: float = MOST) -> Iterator[Watcher]:
    """A backend with a watcher."""
    outer, backend.after = backend.after, (watcher := Watcher(share, most))
    try:
        yield watcher
    finally:
        backend.after = outer
