"""Elementary functions as straight-line loop IR, for f32 and f64.

Bounds (`make test-math`, against mpmath): 4 ulp, subnormal results may flush to zero.
pow, lgamma and digamma of f32 are computed in f64; on a target without f64 (`f64=False`) they are f32 throughout:
lgamma and digamma then have an absolute error of 4e-6.
"""

from __future__ import annotations

from collections.abc import Callable

from weft_wasm.elementary import polynomials, remainders
from weft_wasm.elementary.functions import Float
from weft_wasm.elementary.gamma import Gamma
from weft_wasm.ir.nodes import MATH_BINARY, MATH_LARGE, MATH_UNARY, Binary, Call, Convert, Expr

FLOAT = {"f32": Float("f32", polynomials.F32), "f64": Float("f64", polynomials.F64)}
_IN_F64: dict[str, Callable[..., Expr]] = {
    "pow": FLOAT["f64"].pow,
    "lgamma": Gamma(FLOAT["f64"], zeros=False).lgamma,
    "digamma": Gamma(FLOAT["f64"], zeros=False).digamma,
}


def function(e: Call, f64: bool = True) -> Expr:
    """A call as arithmetic. f64: whether the target has that dtype."""
    if f64 and e.dtype == "f32" and e.fn in _IN_F64:
        return Convert(_IN_F64[e.fn](*(Convert(x, "f64") for x in e.args)), "f32")
    return _FUNCTIONS[e.dtype][e.fn](*e.args)


def _functions(float: Float) -> dict[str, Callable[..., Expr]]:
    gamma = {"lgamma": Gamma(float).lgamma, "digamma": Gamma(float).digamma}
    names = MATH_UNARY | MATH_LARGE | MATH_BINARY
    return {name: gamma[name] if name in gamma else getattr(float, name) for name in names}


_FUNCTIONS = {dtype: _functions(float) for dtype, float in FLOAT.items()}


def remainder(e: Binary) -> Expr:
    """C's fmod of floats as arithmetic, exact. On a target with f64."""
    return remainders.remainder(e.a, e.b, FLOAT["f64"], FLOAT["f32"])
