"""Products of arrays: dot_general and convolution."""

from __future__ import annotations

import math
from typing import NamedTuple

from jaxlib.mlir import ir
from weft.base import dtypes
from weft.primitives.dot import DotAlgorithm, DotAlgorithmPreset, factor_dtype

from .registry import rule


def precision_config(b, precision):
    """A precision (None, a name, an enum with a name, or a pair) as the attribute that contains both operands'
    entries.
    """
    pair = precision if isinstance(precision, (tuple, list)) else (precision, precision)
    return ir.ArrayAttr.get([b.attr(f"#stablehlo<precision {_level(p)}>") for p in pair])


_LEVELS = {
    "DEFAULT": "DEFAULT",
    "HIGH": "HIGH",
    "HIGHEST": "HIGHEST",
    "FASTEST": "DEFAULT",
    "BFLOAT16": "DEFAULT",
    "BFLOAT16_3X": "HIGH",
    "TENSORFLOAT32": "HIGH",
    "FLOAT32": "HIGHEST",
}


def _level(precision) -> str:
    if precision is None:
        return "DEFAULT"
    name = str(getattr(precision, "name", precision)).upper()
    if name not in _LEVELS:
        raise ValueError(f"unknown precision {precision!r}; precisions are {', '.join(n.lower() for n in _LEVELS)}.")
    return _LEVELS[name]


class _Algorithm(NamedTuple):
    """A preset in XLA's form: the types that factors may have (others are converted to the first), those of results,
    the attribute.
    """

    factors: tuple
    results: tuple
    attribute: str


def _algorithm(
    types: str, count: int = 1, factors: tuple = ("float32",), results: tuple = ("float32",), imprecise: bool = False
) -> _Algorithm:
    lhs, rhs, accumulation = types.split()
    return _Algorithm(
        factors,
        results,
        f"#stablehlo.dot_algorithm<lhs_precision_type = {lhs}, rhs_precision_type = {rhs}, accumulation_type ="
        f" {accumulation}, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = {count},"
        f" allow_imprecise_accumulation = {str(imprecise).lower()}>",
    )


_PRESETS = {
    "F16_F16_F16": _algorithm("f16 f16 f16", 1, ("float16",), ("float16",)),
    "F16_F16_F32": _algorithm("f16 f16 f32", 1, ("float16",), ("float32", "float16")),
    "BF16_BF16_BF16": _algorithm("bf16 bf16 bf16", 1, ("bfloat16", "float32"), ("bfloat16",)),
    "BF16_BF16_F32": _algorithm("bf16 bf16 f32", 1, ("bfloat16", "float32"), ("float32", "bfloat16")),
    **{f"BF16_BF16_F32_X{n}": _algorithm("bf16 bf16 f32", n) for n in (3, 6, 9)},
    "TF32_TF32_F32": _algorithm("tf32 tf32 f32"),
    "TF32_TF32_F32_X3": _algorithm("tf32 tf32 f32", 3),
    "F32_F32_F32": _algorithm("f32 f32 f32"),
    "F64_F64_F64": _algorithm("f64 f64 f64", 1, ("float64",), ("float64",)),
}
# the algorithms that XLA's CPU backend compiles; the others are for GPUs
_ON_CPU = ("F16_F16_F16", "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "F32_F32_F32", "F64_F64_F64")
_SHORT = {"bfloat16": "bf16", "float16": "f16", "float32": "f32", "float64": "f64", "tf32": "tf32"}


def _chosen(b, precision, x, y, out) -> _Algorithm:
    """The algorithm that a precision names, for operands and a result of these types."""
    name = precision.name if isinstance(precision, DotAlgorithmPreset) else str(precision)
    if b.platform == "cpu" and name not in _ON_CPU:
        raise ValueError(
            f"dot_general: XLA's CPU backend has no algorithm {name}; it has {', '.join(_ON_CPU)}. Or leave the"
            " precision out."
        )
    if name.startswith("ANY_F8"):
        if (
            dtypes.bits(x.dtype) != 8
            or dtypes.bits(y.dtype) != 8
            or not (dtypes.is_float(x.dtype) and dtypes.is_float(y.dtype))
        ):
            raise ValueError(f"dot_general: the algorithm {name} takes float8 operands, got {x} and {y}.")
        lhs, rhs = (str(b.element(a.dtype)) for a in (x, y))
        return _algorithm(
            f"{lhs} {rhs} f32",
            1,
            (dtypes.name(x.dtype), dtypes.name(y.dtype)),
            (dtypes.name(out.dtype),),
            name.endswith("FAST_ACCUM"),
        )
    if name in _PRESETS:
        return _PRESETS[name]
    lhs, rhs, total = (dtypes.name(dtypes.dtype(t)) if t != "tf32" else t for t in precision[:3])
    made = _algorithm(
        " ".join(_SHORT.get(t, t) for t in (lhs, rhs, total)),
        precision.num_primitive_operations,
        (lhs,),
        (total,),
        precision.allow_imprecise_accumulation,
    )
    return made._replace(
        attribute=made.attribute.replace(
            "lhs_component_count = 1, rhs_component_count = 1",
            "lhs_component_count = "
            f"{precision.lhs_component_count}, rhs_component_count = {precision.rhs_component_count}",
        )
    )


def _of_vectors(x: tuple[int, ...], y: tuple[int, ...], dimension_numbers) -> bool:
    """Whether a product scales a vector, or adds up the products of two. XLA's CPU backend compiles those as it does
    elementwise operations, for which it refuses every algorithm but F32_F32_F32. It computes the same without.
    """
    (xc, yc), (xb, yb) = dimension_numbers
    free = lambda shape, summed, batch: math.prod(n for d, n in enumerate(shape) if d not in (*summed, *batch))
    return sum(n != 1 for n in (free(x, xc, xb), free(y, yc, yb), math.prod(x[d] for d in xc))) <= 1


def _list(values) -> str:
    return "[" + ", ".join(map(str, values)) + "]"


@rule("dot_general")
def _dot_general(
    b, ins, outs, x, y, *, dimension_numbers, precision=None, preferred_element_type=None, out_sharding=None
):
    (xc, yc), (xb, yb) = dimension_numbers
    out = outs[0]
    if (
        ins[0].dtype != ins[1].dtype
        and all(dtypes.is_float(a.dtype) for a in ins)
        and any(dtypes.bits(a.dtype) < 8 for a in ins)
    ):
        # XLA multiplies floats of few bits by their like alone
        wide = max((a.dtype for a in ins), key=dtypes.bits)
        x, y = (v if a.dtype == wide else b.convert(v, a.shape, wide) for v, a in zip((x, y), ins))
        ins = [a.update(dtype=wide) for a in ins]
    first = factor_dtype(ins[0].dtype, ins[1].dtype, out.dtype, precision)
    if first is not None:
        x, y = (v if a.dtype == first else b.convert(v, a.shape, first) for v, a in zip((x, y), ins))
        ins = [a.update(dtype=first) for a in ins]
    real = not dtypes.is_complex(out.dtype) and any(dtypes.is_complex(a.dtype) for a in ins)
    numbers = b.attr(
        f"#stablehlo.dot<lhs_batching_dimensions = {_list(xb)}, rhs_batching_dimensions = {_list(yb)}, "
        f"lhs_contracting_dimensions = {_list(xc)}, rhs_contracting_dimensions = {_list(yc)}>"
    )
    if isinstance(precision, (DotAlgorithm, DotAlgorithmPreset)) and precision != DotAlgorithmPreset.DEFAULT:
        chosen = _chosen(b, precision, ins[0], ins[1], out)
        operands = [
            v if dtypes.name(a.dtype) in chosen.factors else b.convert(v, a.shape, dtypes.dtype(chosen.factors[0]))
            for v, a in zip((x, y), ins)
        ]
        result = out.dtype if dtypes.name(out.dtype) in chosen.results else dtypes.dtype(chosen.results[0])
        attributes = {"dot_dimension_numbers": numbers, "precision_config": precision_config(b, None)}
        if b.platform != "cpu" or not _of_vectors(ins[0].shape, ins[1].shape, dimension_numbers):
            attributes["algorithm"] = b.attr(chosen.attribute)
        made = b.op("stablehlo.dot_general", operands, b.tensor(out.shape, result), attributes)
        return made if result == out.dtype else b.convert(made, out.shape, out.dtype)
    attributes = {"dot_dimension_numbers": numbers, "precision_config": precision_config(b, precision)}
    if dtypes.is_bool(out.dtype):  # XLA multiplies no booleans: any(x and y)
        wide = next((a.dtype for a in ins if dtypes.is_inexact(a.dtype)), dtypes.int32)
        product = b.op(
            "stablehlo.dot_general",
            [b.convert(v, a.shape, wide) for v, a in zip((x, y), ins)],
            b.tensor(out.shape, wide),
            attributes,
        )
        return b.compare("NE", product, b.splat(0, wide, out.shape), out.update(dtype=wide))
    if real:  # the real part of the product
        wide = max((a.dtype for a in ins if dtypes.is_complex(a.dtype)), key=dtypes.bits)
        product = b.op(
            "stablehlo.dot_general",
            [b.convert(v, a.shape, wide) for v, a in zip((x, y), ins)],
            b.tensor(out.shape, wide),
            attributes,
        )
        return b.convert(
            b.op("stablehlo.real", [product], b.tensor(out.shape, dtypes.real_of(wide))), out.shape, out.dtype
        )
    # XLA has no products of 2-bit integers, and none of 4-bit integers with wider results
    if any(dtypes.is_int(a.dtype) and dtypes.bits(a.dtype) < 8 for a in (*ins, out)):
        wide = next((a.dtype for a in (*ins, out) if dtypes.is_inexact(a.dtype)), dtypes.int32)
        product = b.op(
            "stablehlo.dot_general",
            [b.convert(v, a.shape, wide) for v, a in zip((x, y), ins)],
            b.tensor(out.shape, wide),
            attributes,
        )
        return b.convert(product, out.shape, out.dtype)
    return _by_wide_floats(b, "stablehlo.dot_general", ins, out, x, y, attributes)


def _by_wide_floats(b, op: str, ins, out, x, y, attributes: dict):
    """A product or convolution. XLA's CPU backend stops at one of floats of few bits whose result has another type, and
    at the reverse: those are computed in wider floats.
    """
    types = [a.dtype for a in (*ins, out)]
    if len(set(types)) == 1 or not any(dtypes.is_float(t) and dtypes.bits(t) < 8 for t in types):
        return b.op(op, [x, y], b.type(out), attributes)
    wide = max((dtypes.float32, *types), key=dtypes.bits)
    operands = [v if a.dtype == wide else b.convert(v, a.shape, wide) for v, a in zip((x, y), ins)]
    made = b.op(op, operands, b.tensor(out.shape, wide), attributes)
    return made if wide == out.dtype else b.convert(made, out.shape, out.dtype)


def _axes(spec, batch: str, feature: str) -> str:
    """The axes (batch, feature, spatial…) of a convolution in StableHLO's form: the meaning of each axis of the
    array.
    """
    letters: dict = {spec[0]: batch, spec[1]: feature}
    letters.update({axis: str(i) for i, axis in enumerate(spec[2:])})
    return "[" + ", ".join(letters[i] for i in range(len(spec))) + "]"


@rule("conv_general_dilated")
def _conv(
    b,
    ins,
    outs,
    x,
    kernel,
    *,
    window_strides,
    padding,
    lhs_dilation,
    rhs_dilation,
    dimension_numbers,
    feature_group_count=1,
    batch_group_count=1,
    precision=None,
    preferred_element_type=None,
    out_sharding=None,
):
    if any(0 in a.shape for a in ins):  # sums of nothing; StableHLO has no windows of size 0
        return b.splat(0, outs[0].dtype, outs[0].shape)
    x_spec, k_spec, out_spec = dimension_numbers
    spatial = len(x_spec) - 2
    numbers = b.attr(
        f"#stablehlo.conv<{_axes(x_spec, 'b', 'f')}x{_axes(k_spec, 'o', 'i')}->{_axes(out_spec, 'b', 'f')}>"
    )
    attributes = {
        "dimension_numbers": numbers,
        "feature_group_count": b.int_attr(feature_group_count),
        "batch_group_count": b.int_attr(batch_group_count),
        "window_strides": b.i64s(window_strides),
        "padding": b.pairs([v for pair in padding for v in pair]),
        "lhs_dilation": b.i64s(lhs_dilation),
        "rhs_dilation": b.i64s(rhs_dilation),
        "window_reversal": ir.DenseBoolArrayAttr.get([False] * spatial),
        "precision_config": precision_config(b, precision),
    }
    if not dtypes.is_bool(ins[0].dtype) and not (dtypes.is_int(ins[0].dtype) and dtypes.bits(ins[0].dtype) < 4):
        return _by_wide_floats(b, "stablehlo.convolution", ins, outs[0], x, kernel, attributes)
    counts = outs[0].update(dtype=dtypes.int32)  # XLA multiplies no booleans (any(x and y)) and nothing of two bits
    made = b.op(
        "stablehlo.convolution",
        [b.convert(v, a.shape, dtypes.int32) for v, a in zip((x, kernel), ins)],
        b.type(counts),
        attributes,
    )
    if dtypes.is_bool(outs[0].dtype):
        return b.compare("NE", made, b.splat(0, dtypes.int32, counts.shape), counts)
    return b.convert(made, counts.shape, outs[0].dtype)
