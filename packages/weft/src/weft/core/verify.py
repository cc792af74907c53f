"""The verifier: a jaxpr is well-formed when every variable is defined once before it is used, and every equation's
results have the types that its primitive derives from its operands."""

from __future__ import annotations

import functools
import inspect
import math
from typing import Any

from ..base.avals import AbstractRef, AbstractValue, ShapedArray
from ..base.errors import VerificationError
from ..base.source_info import UNKNOWN, subject
from .jaxpr import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var, subjaxprs
from .primitive import AbstractRule, Unsupported
from .trace import axis_env, mapped_axes


def verify(jaxpr: Jaxpr | ClosedJaxpr) -> None:
    """Raises VerificationError with the offending equation if `jaxpr` (or a jaxpr inside it) is malformed."""
    _verify(jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr, set())


def _verify(jaxpr: Jaxpr, seen: set[Any]) -> None:
    """seen: which jaxprs have been verified, under which axes. A function that many equations call is one jaxpr, and so
    are those that it calls.
    """
    key = id(jaxpr), axis_env()
    if key in seen:
        return
    defined: set[Any] = set()

    def define(var: object, where: str) -> None:
        if not isinstance(var, Var) or not isinstance(var.aval, AbstractValue):
            raise VerificationError(f"{where} binds {var!r}, which is not a variable")
        if var in defined:
            raise VerificationError(f"{where} defines a variable twice: {var!r}")
        defined.add(var)

    def use(atom: Any, where: str) -> None:
        if isinstance(atom, Literal):
            if not isinstance(atom.aval, ShapedArray) or atom.aval.shape:
                raise VerificationError(f"{where} has a literal that is not a scalar: {atom!r}")
        elif atom not in defined:
            raise VerificationError(f"{where} uses a variable before its definition: {atom!r}")

    for var in [*jaxpr.constvars, *jaxpr.invars]:
        define(var, "the head")
    effects: set[Any] = set()
    for i, eqn in enumerate(jaxpr.eqns):
        where = f"equation {i} ({eqn.primitive.name}, from {eqn.source_info})"
        for atom in eqn.invars:
            use(atom, where)
        with mapped_axes(*(eqn.primitive.binds(eqn.params) if eqn.primitive.binds is not None else ())):
            for sub in subjaxprs(eqn.params):
                _verify(sub, seen)
        _check_types(eqn, where)
        effects |= eqn.effects
        for var in eqn.outvars:
            if type(var) is not DropVar:
                define(var, where)
    if not effects <= set(jaxpr.effects):
        raise VerificationError(f"equations have effects {effects} that the jaxpr does not declare")
    for atom in jaxpr.outvars:
        use(atom, "the result")
    seen.add(key)


@functools.lru_cache(4096)
def _operands(rule: AbstractRule) -> tuple[int, float]:
    """The least and the greatest number of operands that a primitive's abstract rule takes."""
    if isinstance(rule, Unsupported):
        return 0, math.inf
    places = inspect.signature(rule).parameters.values()
    named = [p for p in places if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len([p for p in named if p.default is p.empty]), (
        math.inf if any([p.kind is p.VAR_POSITIONAL for p in places]) else len(named)
    )


def _check_types(eqn: JaxprEqn, where: str) -> None:
    least, most = _operands(eqn.primitive.abstract)
    if not least <= len(eqn.invars) <= most:
        raise VerificationError(
            f"{where} has {len(eqn.invars)} operands; its primitive takes {'at least ' if most > least else ''}{least}"
        )
    try:
        with subject(UNKNOWN):  # `where` names the line
            # computed again, not read from the cache
            out = eqn.primitive.result_types(tuple([a.aval for a in eqn.invars]), eqn.params)
    except Exception as e:
        raise VerificationError(f"{where} does not type-check: {e}") from e
    avals = [out] if isinstance(out, AbstractValue) else out
    if len(avals) != len(eqn.outvars):
        raise VerificationError(f"{where} has {len(eqn.outvars)} results; its primitive gives {len(avals)}")
    for var, aval in zip(eqn.outvars, avals):
        if not _same(var.aval, aval):
            raise VerificationError(
                f"{where} declares {_shown(var.aval, aval)} where its primitive gives {_shown(aval, var.aval)}"
            )


def _same(declared: AbstractValue, derived: AbstractValue) -> bool:
    """Whether two types are equal, apart from their varying axes, which do not follow from the operands alone."""
    if type(declared) is not type(derived):
        return False
    if isinstance(declared, AbstractRef) and isinstance(derived, AbstractRef):
        return _same(declared.inner, derived.inner)
    if isinstance(declared, ShapedArray) and isinstance(derived, ShapedArray):
        return (
            declared.shape == derived.shape
            and declared.dtype == derived.dtype
            and declared.weak_type == derived.weak_type
            and declared.placed == derived.placed
        )
    return declared == derived


def _shown(aval: object, other: object) -> str:
    """A description of a type that distinguishes it from another one."""
    text = f"{aval}"
    return text if text != f"{other}" else repr(aval)
