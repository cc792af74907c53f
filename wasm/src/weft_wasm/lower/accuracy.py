"""The accuracy that a program requires of its functions and products, and the accuracy of this compiler.

Elementary functions have one implementation (bounds: elementary/__init__.py). An `accuracy=` that it meets has no
effect. If it does not meet one, a float32 (or narrower) function is computed in float64 and rounded, and the program is
refused if that is not enough. Products of float32 are summed in float32, which is at least as accurate as every
algorithm of narrower types; algorithms of float64 are computed in float64. So a float32 result is never less accurate
than required, and often more. Devices without float64 (WebGPU) refuse programs that need it.
"""

from __future__ import annotations

from typing import Any

from weft.base import dtypes
from weft.core.jaxpr import ClosedJaxpr, JaxprEqn
from weft.primitives.dot import DotAlgorithm, DotAlgorithmPreset, factor_dtype, has_algorithm, narrow_factor
from weft.primitives.transcendental import Tolerance
from weft.primitives.linear import convert
from weft.transforms.stage import stage_closed

from weft_wasm.lower.graph import Builder, Value, rewrite
from weft_wasm.lower.types import LoweringError, array_type

FUNCTIONS = ("exp", "exp2", "log", "expm1", "log1p", "tanh", "logistic", "sin", "cos", "tan", "sqrt", "rsqrt", "cbrt")
BOUNDED = ("sin", "cos", "tanh", "logistic")
WIDE = 2e-15  # the relative error of float64 functions
_EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}


def _meets(accuracy: Tolerance, function: str, dtype: str, error: float) -> bool:
    """Whether a relative error of a function's results is within a tolerance. An absolute tolerance is valid for
    functions that are bounded by 1.
    """
    return (
        accuracy.ulps * _EPSILON[dtype] >= error
        or accuracy.rtol >= error
        or function in BOUNDED
        and accuracy.atol >= error
    )


@rewrite(*FUNCTIONS)
def _function(b: Builder, eqn: JaxprEqn, ins: list[Value]) -> list[Value] | None:
    accuracy, aval = eqn.params.get("accuracy"), array_type(eqn.outvars[0])
    function, dtype = eqn.primitive.name, dtypes.name(aval.dtype)
    if not isinstance(accuracy, Tolerance) or dtype not in _EPSILON:  # AccuracyMode: there is one implementation
        return None
    rounding = 0.505 * _EPSILON[dtype]
    narrow = dtype != "float64"
    if _meets(
        accuracy,
        function,
        dtype,
        max(rounding, (5 if function == "tan" else 4) * _EPSILON["float32"]) if narrow else WIDE,
    ):
        return None
    best = rounding if narrow else WIDE
    if not _meets(accuracy, function, dtype, best):
        raise LoweringError(
            f"{function}: the wasm and webgpu backends compute {dtype} with a relative error of {best:.1e} at best, and"
            f" {accuracy} asks for a smaller one. Ask for a larger tolerance, or use the cpu backend. At"
            f" {eqn.source_info}"
        )
    params = dict(eqn.params, accuracy=None)
    wide = stage_closed(
        lambda x: [convert(eqn.primitive.bind(convert(x, dtypes.float64), **params), aval.dtype)], [eqn.invars[0].aval]
    )
    return b.closed(wide, ins)


def in_float64(precision: Any) -> bool:
    """Whether a product asks for sums of float64."""
    if isinstance(precision, DotAlgorithmPreset):
        return precision is DotAlgorithmPreset.F64_F64_F64
    return isinstance(precision, DotAlgorithm) and any(
        t != "tf32" and dtypes.bits(dtypes.dtype(t)) > 32 for t in precision[:3]
    )


@rewrite("dot_general")
def _product(b: Builder, eqn: JaxprEqn, ins: list[Value]) -> list[Value] | None:
    """A product whose factors are of one dtype and, where it asks for sums of float64, of that; one of integers whose
    algorithm adds floats is a product of floats, which is converted.
    """
    avals, out = [array_type(a) for a in eqn.invars], array_type(eqn.outvars[0])
    precision = eqn.params["precision"]
    if in_float64(precision) and any(dtypes.name(a.dtype) != "float64" for a in (*avals, out)):
        factor, params = dtypes.float64, dict(eqn.params, precision=None, preferred_element_type=dtypes.float64)
    elif has_algorithm(precision) and not all(dtypes.is_float(a.dtype) for a in (*avals, out)):
        factor = narrow_factor(precision) or dtypes.float32
        params = dict(eqn.params, precision=None, preferred_element_type=dtypes.float32)
    else:
        factor, params = factor_dtype(avals[0].dtype, avals[1].dtype, out.dtype, precision), eqn.params
        floats = [a.dtype for a in avals if dtypes.is_float(a.dtype)]
        if factor is None and not (floats and dtypes.is_int(out.dtype) and dtypes.bits(out.dtype) < 8):
            return None
        if factor is None:  # loops store bytes, so what is out of range has to be brought into it before
            params = dict(params, preferred_element_type=max([dtypes.float32, *floats], key=dtypes.bits))
    as_factor = lambda x: x if factor is None else convert(x, factor)
    made: ClosedJaxpr = stage_closed(
        lambda *xs: [convert(eqn.primitive.bind(*map(as_factor, xs), **params), out.dtype)], avals
    )
    return b.closed(made, ins)
