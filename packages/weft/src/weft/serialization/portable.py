"""Checks of the equations of programs from outside: their operands must fit the jaxprs that they carry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..base.errors import BackendError, VerificationError, WeftError
from ..core.carries import CARRY, Carries, Program, Runs, get
from ..core.jaxpr import ClosedJaxpr, JaxprEqn

if TYPE_CHECKING:
    from ..base.avals import Size


class NotPortable(WeftError, BackendError):
    """A program holds something that exists in this process only, such as a Python function. Make it part of the traced
    program, or run it on a backend of this process (`weft.config.update('jax_platforms', 'cpu')`).

    `pure_callback` and `io_callback` are the usual cause, in a program that is exported or sent to a host; in one that
    is exported, `debug.print` too.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft import export
        >>> like = weft.ShapeDtypeStruct((), jnp.float32)
        >>> f = weft.jit(lambda x: weft.pure_callback(lambda v: v + 1, like, x))
        >>> export.export(f)(like).serialize()  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft.serialization.portable.NotPortable: …
        >>> len(export.export(weft.jit(lambda x: x + 1))(like).serialize()) > 0
        True
    """


def check_operands(eqn: JaxprEqn) -> None:
    """Raises VerificationError unless an equation's operands and results fit the jaxprs that it carries;
    `check_parameters` has checked its parameters.
    """
    name, params, avals, carries = eqn.primitive.name, eqn.params, [a.aval for a in eqn.invars], eqn.primitive.carries
    assert carries is not None
    for key in carries.each:
        if type(params[key]) is tuple and len(params[key]) != len(avals):
            raise VerificationError(f"{name} has {len(params[key])} entries of {key} for {len(avals)} operands")
    if not carries.jaxprs(params):
        raise VerificationError(f"{name} carries no program")
    counts = {path: get(params, path) for path in carries.counts}
    length = None if carries.counted is None else params[carries.counted.length]
    numbers = counts if carries.counted is None else {**counts, carries.counted.length: length}
    if any(v < 0 for v in numbers.values()):
        raise VerificationError(f"{name} has numbers that count nothing: {numbers}")
    if any(v < 0 for v in carries.sizes(params, len(avals)).values()):
        raise VerificationError(f"{name} has {len(avals)} operands and counts more: {numbers}")
    if carries.runs is Runs.COMBINING:
        return _check_fold(eqn, carries.jaxprs(params)[0])
    programs = carries.programs(params, len(avals))
    for program in programs:
        whole = len(program.operands) - program.rows
        have = [_type(avals[i]) if k < whole else _row(avals[i], length, name) for k, i in enumerate(program.operands)]
        want = [_type(a) for a in program.closed.in_avals]
        if have != want:
            raise VerificationError(f"{name} passes {_show(have)} to a program that takes {_show(want)}")
    _check_results(name, carries, [avals[i] for i in carries.split(params, range(len(avals))).get(CARRY, ())], programs)


def _check_fold(eqn: JaxprEqn, combine: ClosedJaxpr) -> None:
    """Two scalars of each operand are reduced to one, and each operand has an initial value."""
    avals = [a.aval for a in eqn.invars]
    xs, inits = avals[: len(avals) // 2], avals[len(avals) // 2 :]
    want = [((), _type(x)[1]) for x in xs]
    if (
        len(avals) % 2
        or [_type(a) for a in combine.in_avals] != [*want, *want]
        or [_type(a) for a in combine.out_avals] != want
        or [_type(v.aval)[1] for v in eqn.outvars] != [dtype for _, dtype in want]
        or any(a.shape for a in inits)
    ):
        raise VerificationError(f"{eqn.primitive.name} and its function disagree about types")


def _check_results(name: str, carries: Carries, carry: Sequence[Any], programs: Sequence[Program]) -> None:
    """The carry of a loop keeps its type, and branches return the same types."""
    *tests, outs = [[_type(a) for a in p.closed.out_avals] for p in programs]
    if carries.runs is Runs.CHOSEN and any(o != outs for o in tests):
        raise VerificationError(f"the branches of {name} give different types")
    if carries.runs is Runs.REPEATED:
        kept = outs if carries.has_condition else outs[: len(carry)]
        if kept != [_type(a) for a in carry]:
            raise VerificationError(f"the carry of {name} changes its type")
        if any(len(o) != 1 or o[0][1] != "bool" for o in tests):
            raise VerificationError(f"the condition of {name} is not a truth value")


def _type(aval: Any) -> tuple[Any, ...]:
    return aval.shape, getattr(getattr(aval, "dtype", None), "name", "token")


def _row(aval: Any, length: Size, name: str) -> tuple[Any, ...]:
    if not aval.shape or aval.shape[0] != length:
        raise VerificationError(f"{name} of length {length} goes through an operand of shape {aval.shape}")
    return aval.shape[1:], aval.dtype.name


def _show(types: Sequence[tuple[Any, ...]]) -> str:
    return "(" + ", ".join(f"{name}[{','.join(map(str, shape))}]" for shape, name in types) + ")"
