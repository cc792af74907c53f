"""Runs a program on a target, several times on new data, and says how its results differ from the reference interpreter's."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import weft
from weft.config import enable_x64
from weft.core.jaxpr import eval_jaxpr
from weft.transforms.discharge import discharge, has_refs
from weft.transforms.physical import lower_types

from .compare import mismatch, reference
from .forms import form_of
from .targets import Target
from .tree import Program


class Failure(Exception):
    """A program's results are wrong, or it can't be run. kind: what the shrinker has to keep."""

    def __init__(self, kind: str, text: str):
        super().__init__(text)
        self.kind = kind


def check(program: Program, target: Target, calls: int = 2) -> None:
    """Raises Failure. calls: how often the compiled program is called, each time on other numbers."""
    stage = "trace"
    try:
        with enable_x64(program.x64), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Some donated buffers")
            form = form_of(program)
            data = [form.draw(program.seed + k) for k in range(calls)]
            closed = weft.make_jaxpr(form.call)(*data[0])
            plain = lower_types(discharge(closed) if has_refs(closed.jaxpr) else closed)
            stage = "reference"
            wants = [reference(plain, args) for args in data]
            stage = "run"
            for args, want, got in zip(data, wants, run(program, closed, data, target)):
                problem = mismatch(plain, args, got, want)
                if problem:
                    raise Failure("mismatch", problem)
    except Failure:
        raise
    except Exception as e:
        raise Failure(f"{stage} {type(e).__name__}", f"it can't be run: {stage}: {type(e).__name__}: {e}") from e


def run(program: Program, closed: Any, data: list[list[np.ndarray]], target: Target) -> list[list[np.ndarray]]:
    """What one compiled program gives for each set of arguments."""
    with target.here() as device, weft.default_device(device):
        fun = weft.jit(
            lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs),
            donate_argnums=program.donated,
            compiler_options=target.options,
        )
        out = []
        for args in data:
            put: dict[int, Any] = {}
            for a in args:
                if id(a) not in put:
                    put[id(a)] = weft.device_put(a, device)
            results = fun(*[put[id(a)] for a in args])
            out.append([np.asarray(r) for r in results])
        del put, results
        target.check(device)
    return out
