"""Checks that the equations of a program from outside contain what their primitives declare (see core.wire)."""

from __future__ import annotations

from ..base.avals import ShapedArray
from ..base.errors import VerificationError
from ..core.jaxpr import JaxprEqn
from ..core.primitive import Primitive
from ..core.wire import UNDECIDED


def may_leave(primitive: Primitive) -> bool:
    """Whether a program from outside may hold a primitive."""
    return why_refused(primitive) is None


def why_refused(primitive: Primitive) -> str | None:
    """The reason why a program from outside may not contain a primitive; None if it may."""
    if primitive.foreign:
        return "it belongs to a library"
    wire = primitive.wire
    return None if wire.parameters is not None else wire.why_not or UNDECIDED.why_not


def check_parameters(eqn: JaxprEqn) -> None:
    """Raises VerificationError unless a program from outside may contain the equation, with operands and parameters of
    the right kinds.
    """
    name, params, wire = eqn.primitive.name, eqn.params, eqn.primitive.wire
    why, kinds = why_refused(eqn.primitive), wire.parameters
    if why is not None or kinds is None:
        raise VerificationError(
            f"a program from outside can't hold the primitive {name!r}: {why}. Leave it out of the program, or run the"
            " program in the process that traced it"
        )
    if not wire.tokens and any([not isinstance(a.aval, ShapedArray) for a in eqn.invars]):
        raise VerificationError(f"{name} takes arrays, and one of its operands is an order token")
    for key, kind in kinds.items():
        if key in params:
            if not kind.holds(params[key]):
                raise VerificationError(
                    f"the parameter {key} of {name} must be {kind.words}; got {str(params[key])[:80]!r}"
                )
        elif kind.required:
            raise VerificationError(f"{name} has no parameter {key}")
    unknown = [key for key in params if key not in kinds]
    if unknown:
        raise VerificationError(f"{name} has no parameter {unknown[0]!r}; it has {', '.join(kinds) or 'none'}")
