"""Transposition: runs a linear jaxpr backwards, from the cotangents of its results to those of its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..base import dtypes
from ..base.avals import tangent_aval
from ..base.config import config
from ..core.effects import touches
from ..core.jaxpr import ClosedJaxpr, Jaxpr, Literal, literal_value
from ..core.memo import memoized_closed
from ..core.shardings import cotangent_aval
from ..core.primitive import UndefinedPrimal, Zero
from ..core.trace import tracing
from ..primitives.linear import add_any, zeros
from ..primitives.placement import like_primal
from .discharge import discharge
from .jvp import check_type, instantiate
from .stage import JaxprTrace
from .varying_axes import checks_varying_axes, sum_over_varying_axes

if TYPE_CHECKING:
    from ..core.jaxpr import Atom
    from ..core.types import Value


def backward_pass(
    jaxpr: Jaxpr, consts: Sequence[Value], args: Sequence[Value], cotangents: Sequence[Value]
) -> list[Any]:
    """The cotangents of the arguments that are `UndefinedPrimal`; None for the others.

    Equations that do not depend on an undefined argument are evaluated forwards first. Of those known in reverse only
    the results are zero: tangents that depend on no argument, as of constants that went through a reference.
    """
    # it makes references; it uses references of the outer program only in rules from users
    if touches in jaxpr.effects:
        closed = discharge(ClosedJaxpr(jaxpr, consts))
        jaxpr, consts = closed.jaxpr, closed.consts
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, consts))
    linear = set()
    for var, arg in zip(jaxpr.invars, args):
        if type(arg) is UndefinedPrimal:
            linear.add(var)
        else:
            env[var] = arg

    def read(atom: Atom) -> Value:
        if type(atom) is Literal:
            return literal_value(atom)
        return env[atom]

    linear_eqns = []
    for eqn in jaxpr.eqns:
        if any(type(a) is not Literal and a in linear for a in eqn.invars):
            linear_eqns.append(eqn)
            linear.update(eqn.outvars)
        elif eqn.primitive.in_reverse_only:
            env.update((v, zeros(v.aval)) for v in eqn.outvars)
        else:
            outs = eqn.primitive.bind(*[read(a) for a in eqn.invars], **eqn.params)
            env.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs]))

    ct_env: dict[Any, Any] = {}
    typed, checked = checks_varying_axes(), config.verify_jaxprs or config.enable_checks

    def accumulate(atom: Atom, ct: Value) -> None:
        if ct is None or type(ct) is Zero or type(atom) is Literal:
            return
        if checked:
            check_type(ct, atom.aval, "a cotangent")
        if typed:
            ct = sum_over_varying_axes(ct, atom.aval)
        ct = like_primal(ct, atom.aval)
        ct_env[atom] = add_any(ct_env[atom], ct) if atom in ct_env else ct

    for atom, ct in zip(jaxpr.outvars, cotangents):
        if type(atom) is not Literal and atom in linear:
            accumulate(atom, ct)
    wanted: set[Any] = set(ct_env)
    for eqn in reversed(linear_eqns):
        cts = [ct_env.pop(v, None) for v in eqn.outvars]
        unused = wanted.isdisjoint(eqn.outvars)  # else a custom rule runs for zeros too: it need not be linear
        wanted.update([] if unused else [a for a in eqn.invars if type(a) is not Literal])
        if unused or all(ct is None for ct in cts) and not eqn.primitive.in_reverse_only:
            continue
        cts = [Zero(tangent_aval(v.aval)) if ct is None else ct for ct, v in zip(cts, eqn.outvars)]
        operands = [UndefinedPrimal(a.aval) if type(a) is not Literal and a in linear else read(a) for a in eqn.invars]
        rule = eqn.primitive.transpose
        if rule is None:
            raise NotImplementedError(
                f"primitive {eqn.primitive.name} has no transpose rule: it is not linear (at {eqn.source_info})."
            )
        try:
            results = rule(cts if eqn.primitive.multiple_results else cts[0], *operands, **eqn.params)
        except TypeError as e:
            if UndefinedPrimal.__name__ not in str(e):  # a rule computed with an undefined primal
                raise
            raise TypeError(
                f"{eqn.primitive.name} is not linear in these arguments, so it can't be transposed: {eqn} (at"
                f" {eqn.source_info})."
            ) from None
        for atom, operand, ct in zip(eqn.invars, operands, results):
            if type(operand) is UndefinedPrimal:
                accumulate(atom, ct)
    return [
        ct_env.get(v, Zero(tangent_aval(v.aval))) if type(a) is UndefinedPrimal else None
        for v, a in zip(jaxpr.invars, args)
    ]


def transpose_jaxpr(closed: ClosedJaxpr, linear: Sequence[bool], nonzero_cts: Sequence[bool]) -> ClosedJaxpr:
    """The jaxpr (values of the non-linear arguments, nonzero cotangents of the results) -> cotangents of the linear
    arguments, all instantiated except those of dtype float0.
    """
    return _transpose_jaxpr(closed, tuple(linear), tuple(nonzero_cts))


@memoized_closed
def _transpose_jaxpr(closed: ClosedJaxpr, linear: tuple[bool, ...], nonzero_cts: tuple[bool, ...]) -> ClosedJaxpr:
    trace = JaxprTrace("a transposed function")
    args = [UndefinedPrimal(a) if lin else trace.new_arg(a) for a, lin in zip(closed.in_avals, linear)]
    cts = [
        trace.new_arg(cotangent_aval(a)) if nz else Zero(tangent_aval(a))
        for a, nz in zip(closed.out_avals, nonzero_cts)
    ]
    with tracing(trace):
        results = backward_pass(closed.jaxpr, closed.consts, args, cts)
        outs = [instantiate(ct) for ct, lin in zip(results, linear) if lin and not _is_float0(ct)]
    return ClosedJaxpr(*trace.finish(outs))


def _is_float0(ct: Value) -> bool:
    return type(ct) is Zero and ct.aval.dtype == dtypes.float0
