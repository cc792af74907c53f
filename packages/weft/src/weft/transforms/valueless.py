"""Arguments and results that backends have no values for, tokens and arrays of float0: a program makes its own
instead, and its caller too.
"""

from __future__ import annotations

from typing import Any, Sequence

from ..base import dtypes
from ..base.avals import AbstractToken, AbstractValue, ShapedArray, shaped
from ..core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from ..core.memo import memoized, memoized_closed
from ..primitives.linear import broadcast_in_dim_p
from .tokens import Token, create_token_p


def is_valueless(aval: AbstractValue) -> bool:
    """Whether all values of a type are the same."""
    return isinstance(aval, AbstractToken) or isinstance(aval, ShapedArray) and aval.dtype == dtypes.float0


def the_value(aval: AbstractValue) -> Any:
    """The only value of such a type, as users see it."""
    return Token() if isinstance(aval, AbstractToken) else dtypes.float0_zeros(aval.shape)


def has_valueless(closed: ClosedJaxpr) -> bool:
    """Whether a program takes or returns types without values."""
    return _has_valueless(closed.jaxpr)


@memoized
def _has_valueless(jaxpr: Jaxpr) -> bool:
    return any(map(is_valueless, (*jaxpr.in_avals, *jaxpr.out_avals)))


def without_valueless(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same program without those among its arguments and results."""
    if not has_valueless(closed):
        return closed
    return _without_valueless(closed)


@memoized_closed
def _without_valueless(closed: ClosedJaxpr) -> ClosedJaxpr:
    jaxpr = closed.jaxpr
    made = [_made(v) for v in jaxpr.invars if is_valueless(v.aval)]
    new = jaxpr.replace(
        invars=with_values(jaxpr.invars, closed.in_avals),
        outvars=with_values(jaxpr.outvars, closed.out_avals),
        eqns=[*made, *jaxpr.eqns],
    )
    return ClosedJaxpr(new, closed.consts)


def with_values(items: Sequence[Any], avals: Sequence[AbstractValue]) -> list[Any]:
    """The members of `items` whose types, in the same order, have values."""
    return [x for x, a in zip(items, avals) if not is_valueless(a)]


def _made(var: Var) -> JaxprEqn:
    """The equation that makes the value of a variable inside the program."""
    if isinstance(var.aval, AbstractToken):
        return JaxprEqn([], [var], create_token_p, {})
    return JaxprEqn(
        [Literal(False, shaped((), dtypes.float0))],
        [var],
        broadcast_in_dim_p,
        dict(shape=var.aval.shape, broadcast_dimensions=(), sharding=None),
    )
