"""Runs a program on a target, several times on new data, and says how its results differ from the reference
interpreter's.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import weft
from weft.base.config import enable_x64
from weft.core.jaxpr import ClosedJaxpr, Jaxpr, eval_jaxpr, map_jaxprs, subjaxprs
from weft.transforms.dce import live
from weft.transforms.discharge import discharge, has_refs
from weft.transforms.physical import lower_types

from .compare import mismatch, reference, ways
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
    try:
        _check(program, target, calls)
    except Failure:
        if target.decided_by is None:
            raise
        check(program, target.decided_by, calls)


def _check(program: Program, target: Target, calls: int) -> None:
    stage, log = "trace", list[tuple[bool, np.ndarray]]()
    try:
        with enable_x64(program.x64), warnings.catch_warnings(), target.here() as device, weft.default_device(device):
            warnings.filterwarnings("ignore", message="Some donated buffers")
            form = form_of(program, log)
            data = [form.draw(program.seed + k) for k in range(calls)]
            closed = weft.make_jaxpr(form.call)(*data[0])
            plain = lower_types(discharge(closed) if has_refs(closed.jaxpr) else closed)
            if has_forward_error(plain.jaxpr):
                plain = without_unread(plain)
            interpreted = lambda args, way: logged(log, lambda: reference(plain, args, way))
            stage = "reference"
            wants = [interpreted(args, None) for args in data]
            stage = "run"
            compiled = compiled_for(program, closed, target)
            for args, (want, told) in zip(data, wants):
                got, heard = logged(log, lambda: run(compiled, args, device))
                target.check(device)
                problem = mismatch(plain, args, got, want, target.flushes)
                if not problem and heard != told:
                    problem = difference(args, heard, told, interpreted, target.flushes)
                if problem:
                    raise Failure("mismatch", problem)
    except Failure:
        raise
    except Exception as e:
        raise Failure(f"{stage} {type(e).__name__}", f"it can't be run: {stage}: {type(e).__name__}: {e}") from e


def has_forward_error(jaxpr: Jaxpr) -> bool:
    """Whether a jaxpr takes a forward derivative of a custom_vjp: an error where its result is read, and only there."""
    return any(
        eqn.primitive.name == "custom_lin" or any(map(has_forward_error, subjaxprs(eqn.params))) for eqn in jaxpr.eqns
    )


def without_unread(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A jaxpr without what none of its results needs, as jit runs it, in the jaxprs within as well."""
    jaxpr = live(closed.jaxpr)
    eqns = [eqn.replace(params={k: map_jaxprs(v, without_unread) for k, v in eqn.params.items()}) for eqn in jaxpr.eqns]
    return ClosedJaxpr(jaxpr.replace(eqns=eqns), closed.consts)


def compiled_for(program: Program, closed: Any, target: Target) -> Any:
    return weft.jit(
        lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs),
        donate_argnums=program.donated,
        compiler_options=target.options,
    )


def run(compiled: Any, args: list[np.ndarray], device: Any) -> list[np.ndarray]:
    """What a compiled program gives; an argument that is passed twice is one array."""
    put: dict[int, Any] = {}
    for a in args:
        if id(a) not in put:
            put[id(a)] = weft.device_put(a, device)
    out = [np.asarray(r) for r in compiled(*[put[id(a)] for a in args])]
    weft.effects_barrier()
    return out


def logged(log: list[tuple[bool, np.ndarray]], compute: Any) -> tuple[list[np.ndarray], list[str]]:
    """Results, and what functions of the host have seen meanwhile: in order what has one, the rest sorted."""
    log.clear()
    results = compute()
    lines = [(ordered, f"{x.dtype}{list(x.shape)} {x.tolist() if x.dtype.kind in 'iub' else ''}") for ordered, x in log]
    return results, [text for ordered, text in lines if ordered] + sorted(
        text for ordered, text in lines if not ordered
    )


def difference(
    args: list[np.ndarray], heard: list[str], told: list[str], interpreted: Any, flushes: bool
) -> str | None:
    """How the calls of functions of the host differ, unless they hang on roundings."""
    if any(interpreted(args, k)[1] != told for k in ways(flushes)):
        return None
    return f"functions of the host have seen\n{heard}\nin the reference\n{told}"
