"""From a program with symbolic dimensions to one with integers: solving for the variables, and substituting them
everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..base.avals import ShapedArray, array_aval, shaped
from .dims import Dim, dim_as_value_p
from ..core.jaxpr import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var
from ..core.memo import Memo, inner_jaxprs, memoized

if TYPE_CHECKING:
    from ..core.types import Size, Value
    from .dims import Scope

_KEPT = 64  # specialised forms that are stored for one program; sizes that do not recur must not accumulate
_SPECIALIZED: Memo[frozenset[Any], Jaxpr] = Memo()  # by the sizes


def scope_in(value: Value) -> Scope | None:
    """The scope of the first symbolic dimension in a shape, an aval or a parameter; None if there is no such
    dimension.
    """
    if isinstance(value, Dim):
        return value.scope
    items = value.shape if isinstance(value, ShapedArray) else value if isinstance(value, (tuple, list)) else ()
    for item in items:
        found = scope_in(item)
        if found is not None:
            return found
    return None


@memoized
def symbolic_scope(jaxpr: Jaxpr) -> Scope | None:
    """The scope of a program's symbolic dimensions; None for a program without symbolic dimensions."""
    for var in (*jaxpr.constvars, *jaxpr.invars):
        if (found := scope_in(var.aval)) is not None:
            return found
    for eqn in jaxpr.eqns:
        for value in (*[v.aval for v in eqn.outvars], *eqn.params.values()):
            if (found := scope_in(value)) is not None:
                return found
    return next(filter(None, map(symbolic_scope, inner_jaxprs(jaxpr))), None)


def substitute(value: Any, sizes: dict[Any, Any]) -> Any:
    """A shape, an aval, a parameter or a program with dimension variables replaced by `sizes` (integers, or
    dimensions of another scope).
    """
    if isinstance(value, Dim):
        return value.substitute(sizes)
    if isinstance(value, ShapedArray):
        return (
            shaped(tuple([substitute(n, sizes) for n in value.shape]), value.dtype, value.weak_type)
            if scope_in(value)
            else value
        )
    if isinstance(value, Jaxpr):
        return specialize(value, sizes)
    if isinstance(value, ClosedJaxpr):
        return ClosedJaxpr(specialize(value.jaxpr, sizes), value.consts)
    if isinstance(value, tuple):
        items = [substitute(x, sizes) for x in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return [substitute(x, sizes) for x in value]
    return value


def specialize(jaxpr: Jaxpr, sizes: dict[Any, Any]) -> Jaxpr:
    """The same program for given sizes of its dimension variables."""
    if symbolic_scope(jaxpr) is None:
        return jaxpr
    known = _SPECIALIZED.of(jaxpr)
    key = frozenset(sizes.items())
    if key not in known:
        if len(known) >= _KEPT:
            known.pop(next(iter(known)))
        known[key] = _specialize(jaxpr, sizes)
    return known[key]


def _specialize(jaxpr: Jaxpr, sizes: dict[Any, Any]) -> Jaxpr:
    env: dict[Any, Any] = {}

    def new(var: Var) -> Var:
        made = env[var] = (DropVar if type(var) is DropVar else Var)(substitute(var.aval, sizes))
        return made

    read = lambda a: a if type(a) is Literal else env[a]
    constvars, invars = [new(v) for v in jaxpr.constvars], [new(v) for v in jaxpr.invars]
    eqns = []
    for eqn in jaxpr.eqns:
        if eqn.primitive is dim_as_value_p:
            size = substitute(eqn.params["dim"], sizes)
            if not isinstance(size, Dim):  # a size that is known is a number
                env[eqn.outvars[0]] = Literal(size, array_aval(eqn.outvars[0].aval))
                continue
        params = {k: substitute(v, sizes) for k, v in eqn.params.items()}
        eqns.append(
            JaxprEqn(
                [read(a) for a in eqn.invars],
                [new(v) for v in eqn.outvars],
                eqn.primitive,
                params,
                eqn.effects,
                eqn.source_info,
            )
        )
    return Jaxpr(constvars, invars, [read(a) for a in jaxpr.outvars], eqns, jaxpr.effects, jaxpr.debug_info)


class Unsolvable(ValueError):
    """The shapes of arguments do not determine the dimension variables."""


def solve(equations: Sequence[tuple[Any, Any, str]], variables: frozenset[Any]) -> dict[Any, Any]:
    """The values of dimension variables for which each `expression == size`; `where` of an equation names its place in
    the call.

    A variable is found from an equation in which it alone is unknown and occurs as `k * variable + c`; the others are
    then checked.

    Raises:
        Unsolvable: if no equation determines a variable.
        ValueError: if sizes contradict the expressions.
    """
    values: dict[Any, Any] = {}
    origin: dict[Any, Any] = {}
    waiting = [e for e in equations if isinstance(e[0], Dim)]
    while True:
        rest, before = [], len(values)
        for expression, size, where in waiting:
            unknown = sorted(expression.variables() - values.keys())
            if not unknown:
                continue  # checked below
            if len(unknown) > 1 or not _solve_for(unknown[0], expression, size, where, values, origin):
                rest.append((expression, size, where))
        waiting = rest
        if len(values) == before:
            break
    missing = sorted(variables - values.keys())
    if missing:
        told = (
            "; ".join(f"{where} = {expression}" for expression, _, where in equations if isinstance(expression, Dim))
            or "none of the arguments' shapes is symbolic"
        )
        raise Unsolvable(
            f"Cannot solve for values of dimension variables {set(missing)}: they don't follow from the arguments'"
            f" shapes ({told}). A variable is found from a dimension of the form 'k*variable + c' in which it alone is"
            " unknown; add an argument, or a dimension, that has it in that form."
        )
    for expression, size, where in equations:
        have = expression.substitute(values) if isinstance(expression, Dim) else expression
        if have != size:
            used = expression.variables() if isinstance(expression, Dim) else ()
            why = (
                f", which is {have} since {', '.join(f'{v} = {values[v]} (from {origin[v]})' for v in sorted(used))}"
                if used
                else ""
            )
            raise ValueError(f"Shape mismatch for {where}: expected '{expression}'{why}, and called with {size}.")
    return values


def _solve_for(
    name: str, expression: Dim, size: Size, where: str, values: dict[Any, Any], origin: dict[Any, Any]
) -> bool:
    """Finds one variable from one equation, if it is linear in it."""
    slope, rest = 0, 0
    for monomial, c in expression.terms:
        product: Any = c
        linear = False
        for f, n in monomial:
            if f.name == name and not f.operands and n == 1 and not linear:
                linear = True
                continue
            one = Dim((((((f, n),)), 1),), expression.scope)
            if name in one.variables():
                return False
            product = product * one.substitute(values)
        slope, rest = (slope + product, rest) if linear else (slope, rest + product)
    if not isinstance(slope, int) or slope == 0:
        return False
    value, left = divmod(size - rest, slope)
    if left != 0:
        raise ValueError(
            f"Shape mismatch for {where}: expected '{expression}', and called with {size}, for which {name} would not"
            f" be an integer."
        )
    if value < 1:
        raise ValueError(
            f"Shape mismatch for {where}: expected '{expression}', and called with {size}, for which {name} = {value}; "
            "dimension variables are at least 1."
        )
    values[name], origin[name] = value, where
    return True


def check_constraints(scope: Scope, values: dict[Any, Any], name: str) -> None:
    """Raises ValueError where sizes break a constraint of the scope."""
    for text, expression, op in scope.checks:
        if not expression.variables() <= values.keys():
            continue
        have = expression.substitute(values)
        if have < 0 or op == "==" and have != 0:
            known = ", ".join(f"{v} = {values[v]}" for v in sorted(expression.variables()))
            raise ValueError(
                f"The arguments of {name} break the constraint '{text}' under which it was traced: {known}."
            )
