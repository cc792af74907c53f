"""The passes over the loop IR, in the order in which they run. Each maps a program to an equivalent program."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from weft_wasm.ir.nodes import Program
from weft_wasm.ir.attributes import VerifyError
from weft_wasm.ir.verify import verify
from weft_wasm.passes import grids, kernel_fusion, polls, prefetch, schedule, threads


@dataclass(frozen=True, slots=True)
class Pass:
    """A step from loop IR to loop IR that preserves the results of a program, bit for bit, or (exact=False) except for
    the rounding of float sums.

    needs: conditions on its input, besides those that the verifier checks.
    """

    name: str
    run: Callable[[Program], Program]
    needs: str = ""
    exact: bool = True


After: TypeAlias = Callable[[Pass, Program], None]

LOWERING = Pass("lowering", lambda program: program)  # the input of the first pass
# Before the buffers of a program get their places (`buffers.py`),
BEFORE_PLANNING = (
    Pass(
        "kernel_fusion.fuse_kernels",
        kernel_fusion.fuse_kernels,
        "loops are as they were lowered: a kernel's rows are read from its loops",
    ),
    Pass(
        "schedule.schedule_loops",
        schedule.schedule_loops,
        "kernels are final but for products, since a fused kernel is scheduled as one",
        exact=False,
    ),
    Pass(
        "kernel_fusion.fuse_batches",
        kernel_fusion.fuse_batches,
        "products are scheduled: their blocks of rows are what is fused",
    ),
    Pass("grids.join", grids.join, "loops and products are scheduled: what is inside a grid runs as it stands"),
    Pass("threads.share", threads.share, "loops are scheduled: vector loops are cut at multiples of their vectors"),
)
# and after.
AFTER_PLANNING = (
    Pass(
        "prefetch.fetch_ahead",
        prefetch.fetch_ahead,
        "buffers have their places: rows are loaded that another buffer may take over, which planning must not see",
    ),
    Pass("polls.place", polls.place, "loops are as they will run: what takes long is found by their cost"),
)


def run_passes(passes: Iterable[Pass], program: Program, after: After | None = None) -> Program:
    """The result of running the passes, one after the other, on a program."""
    for step in passes:
        program = step.run(program)
        if after is not None:
            after(step, program)
    return program


def verify_after(step: Pass, program: Program) -> None:
    """Verifies the output of a pass; an error names the pass."""
    try:
        verify(program)
    except VerifyError as e:
        raise VerifyError(f"after {step.name}: {e}") from None


def verifying() -> After:
    """An `after` that verifies what passes have changed. A pass makes new statements, and changes none in place."""
    verified: Program | None = None

    def after(step: Pass, program: Program) -> None:
        nonlocal verified
        if verified is None or not _same(verified, program):
            verify_after(step, program)
        verified = program

    return after


def _same(given: Program, made: Program) -> bool:
    """Whether all statements and buffers of a program are those of another."""
    for name in ("inputs", "outputs", "temps", "constants", "body", "calls"):
        old, new = getattr(given, name), getattr(made, name)
        if len(old) != len(new) or any(a is not b for a, b in zip(old, new)):
            return False
    return (given.name, given.donated, given.errors) == (made.name, made.donated, made.errors)
