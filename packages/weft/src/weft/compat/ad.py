"""jax.interpreters.ad: rules for derivatives. Weft uses jax's conventions."""

from __future__ import annotations

from functools import reduce
from typing import Callable

from ..core.primitive import (
    UndefinedPrimal as UndefinedPrimal,
    Zero as Zero,
    is_undefined_primal as is_undefined_primal,
)
from ..core.trace import get_aval
from ..base.avals import tangent_aval
from ..primitives.linear import (  # noqa: F401
    add_any as add_jaxvals,
    add_any_p as add_jaxvals_p,
    zeros as zeros_like_aval,
)
from ..higher_order.custom_jvp import is_zero
from ..base.dtypes import float0, float0_zeros
from ..transforms.jvp import JVPTrace as JVPTrace, JVPTracer as JVPTracer, instantiate as _instantiate, jvp_flat
from ..transforms.linearize import linearize_flat
from .core import RuleTable


def instantiate_zeros(tangent):
    """A tangent as an array: zeros for one that is known to be zero."""
    return (
        float0_zeros(tangent.aval.shape)
        if type(tangent) is Zero and tangent.aval.dtype == float0
        else _instantiate(tangent)
    )


def _symbolic(t):
    """Tangents of integers as symbolic zeros, which is how weft represents them everywhere."""
    return (
        Zero(tangent_aval(get_aval(t) if not is_zero(t) else t.aval))
        if is_zero(t) or getattr(t, "dtype", None) == float0
        else t
    )


def _own_jvp(rule: Callable) -> Callable:
    def jvp(primals, tangents, **params):
        out, out_tangents = rule(tuple(primals), tuple(tangents), **params)
        return out, (
            [_symbolic(t) for t in out_tangents] if isinstance(out_tangents, (list, tuple)) else _symbolic(out_tangents)
        )

    return jvp


def _own_transpose(rule: Callable) -> Callable:
    def transpose(ct, *args, **params):
        return [
            None if x is None or getattr(x, "dtype", None) == float0 else _symbolic(x)
            for x in rule(ct, *args, **params)
        ]

    return transpose


instantiate = instantiate_zeros
primitive_jvps = RuleTable("jvp", _own_jvp, lambda p: p.jvp)
primitive_transposes = RuleTable("transpose", _own_transpose, lambda p: p.transpose)


def get_primitive_transpose(p) -> Callable:
    if p not in primitive_transposes:
        raise NotImplementedError(f"Transpose rule (for reverse-mode differentiation) for {p.name!r} not implemented.")
    return primitive_transposes[p]


def add_tangents(x, y):
    """The sum of two tangents, either of which may be zero."""
    return y if type(x) is Zero else x if type(y) is Zero else add_jaxvals(x, y)


def _sum(tangents, out):
    return reduce(add_tangents, tangents, Zero(tangent_aval(get_aval(out))))


def defjvp(primitive, *jvprules: Callable | None) -> None:
    """The derivative of a primitive with one result as a sum: `rule(tangent, *primals, **params)` for each argument,
    None where it is zero.
    """
    defjvp2(
        primitive,
        *[
            None if rule is None else lambda g, ans, *primals, _rule=rule, **params: _rule(g, *primals, **params)
            for rule in jvprules
        ],
    )


def defjvp2(primitive, *jvprules: Callable | None) -> None:
    """The same for rules that get the result too: `rule(tangent, result, *primals, **params)`."""

    def jvp(primals, tangents, **params):
        out = primitive.bind(*primals, **params)
        return out, _sum(
            [
                rule(t, out, *primals, **params)
                for rule, t in zip(jvprules, tangents)
                if rule is not None and type(t) is not Zero
            ],
            out,
        )

    primitive_jvps[primitive] = jvp


def _linear_jvp(primitive) -> Callable:
    def jvp(primals, tangents, **params):
        out = primitive.bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            zero = lambda o: Zero(tangent_aval(get_aval(o)))
            return out, [zero(o) for o in out] if primitive.multiple_results else zero(out)
        return out, primitive.bind(*map(instantiate_zeros, tangents), **params)

    return jvp


def deflinear(primitive, transpose_rule: Callable) -> None:
    """A primitive that is linear in all arguments: `transpose_rule(cotangent, **params)` gives a cotangent for each."""
    primitive_jvps[primitive] = _linear_jvp(primitive)
    primitive_transposes[primitive] = lambda ct, *args, **params: (
        transpose_rule(ct, **params) if type(ct) is not Zero else [None] * len(args)
    )


def deflinear2(primitive, transpose_rule: Callable) -> None:
    """The same for a rule that gets the arguments too, UndefinedPrimal where they are linear."""
    primitive_jvps[primitive] = _linear_jvp(primitive)
    primitive_transposes[primitive] = lambda ct, *args, **params: (
        transpose_rule(ct, *args, **params) if type(ct) is not Zero else [None] * len(args)
    )


def defbilinear(prim, lhs_rule: Callable, rhs_rule: Callable) -> None:
    """A primitive that is linear in each of two arguments: the cotangent of one from that of the result, `rule(ct,
    lhs, rhs, **params)`.
    """
    defjvp(
        prim, lambda g, x, y, **params: prim.bind(g, y, **params), lambda g, x, y, **params: prim.bind(x, g, **params)
    )

    def transpose(ct, x, y, **params):
        left = is_undefined_primal(x)
        if left and is_undefined_primal(y):
            raise NotImplementedError(
                f"{prim.name} is not linear in both arguments together, so it can't be transposed."
            )
        return [lhs_rule(ct, x, y, **params), None] if left else [None, rhs_rule(ct, x, y, **params)]

    primitive_transposes[prim] = transpose


def jvp(fun: Callable, primals, tangents, has_aux: bool = False, instantiate: bool = True):
    """(results, tangents) of a function from flat arguments to flat results; with `has_aux`, of one that returns
    (results, aux).
    """
    box: list = []

    def flat(*xs):
        out = getattr(fun, "call_wrapped", fun)(*xs)
        if has_aux:
            out, aux = out
            box.append(aux)
        return out

    outs, out_tangents = jvp_flat(flat, primals, tangents)
    out_tangents = [instantiate_zeros(t) for t in out_tangents] if instantiate else out_tangents
    return (outs, out_tangents, *box)


def linearize(traceable: Callable, *primals):
    """(results, which results have a tangent, the linear program, its constants) of a function from flat arguments
    to flat results.
    """
    return linearize_flat(getattr(traceable, "call_wrapped", traceable), primals)
