"""Elementary functions as straight-line loop IR, for f32 and f64.

Bounds (`make test-math`, against mpmath): 4 ulp, subnormal results may flush to zero.
pow, lgamma and digamma of f32 are computed in f64; on a target without f64 (`f64=False`) they are f32 throughout: pow then has a
relative error of 1e-7 · (1 + |y·log x|), lgamma and digamma an absolute one of 4e-6.
"""

from weft_wasm.elementary import polynomials
from weft_wasm.elementary.functions import Float
from weft_wasm.ir import Call, Convert, Expr

FLOAT = {"f32": Float("f32", polynomials.F32), "f64": Float("f64", polynomials.F64)}
_IN_F64: dict[str, dict] = {"pow": {}, "lgamma": {"zeros": False}, "digamma": {"zeros": False}}


def function(e: Call, f64: bool = True) -> Expr:
    """A call as arithmetic. f64: whether the target has that dtype."""
    if f64 and e.dtype == "f32" and e.fn in _IN_F64:
        return Convert(getattr(FLOAT["f64"], e.fn)(*(Convert(x, "f64") for x in e.args), **_IN_F64[e.fn]), "f32")
    return getattr(FLOAT[e.dtype], e.fn)(*e.args)
