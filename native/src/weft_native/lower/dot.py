"""Products of arrays: dot_general and convolution."""
from __future__ import annotations

from jaxlib.mlir import ir
from weft import dtypes

from .registry import rule


def precision_config(b, precision):
    """A precision (None, a name, an enum with a name, or a pair) as the attribute that both operands' entries stand in."""
    pair = precision if isinstance(precision, (tuple, list)) else (precision, precision)
    return ir.ArrayAttr.get([b.attr(f"#stablehlo<precision {_level(p)}>") for p in pair])


_LEVELS = {"DEFAULT": "DEFAULT", "HIGH": "HIGH", "HIGHEST": "HIGHEST", "FASTEST": "DEFAULT", "BFLOAT16": "DEFAULT",
           "BFLOAT16_3X": "HIGH", "TENSORFLOAT32": "HIGH", "FLOAT32": "HIGHEST"}


def _level(precision) -> str:
    if precision is None:
        return "DEFAULT"
    name = str(getattr(precision, "name", precision)).upper()
    if name not in _LEVELS:
        raise ValueError(f"unknown precision {precision!r}; precisions are {', '.join(n.lower() for n in _LEVELS)}.")
    return _LEVELS[name]


def _list(values) -> str:
    return "[" + ", ".join(map(str, values)) + "]"


@rule("dot_general")
def _dot_general(b, ins, outs, x, y, *, dimension_numbers, precision=None, preferred_element_type=None, out_sharding=None):
    (xc, yc), (xb, yb) = dimension_numbers
    out = outs[0]
    if ins[0].dtype != ins[1].dtype and (dtypes.is_complex(out.dtype) or not (dtypes.is_float(ins[0].dtype) and dtypes.is_float(ins[1].dtype))):
        # only products of two float types are XLA's own; the rest is converted first
        x = x if ins[0].dtype == out.dtype else b.convert(x, ins[0].shape, out.dtype)
        y = y if ins[1].dtype == out.dtype else b.convert(y, ins[1].shape, out.dtype)
    numbers = b.attr(f"#stablehlo.dot<lhs_batching_dimensions = {_list(xb)}, rhs_batching_dimensions = {_list(yb)}, "
                     f"lhs_contracting_dimensions = {_list(xc)}, rhs_contracting_dimensions = {_list(yc)}>")
    attributes = {"dot_dimension_numbers": numbers, "precision_config": precision_config(b, precision)}
    if dtypes.is_bool(out.dtype):      # XLA multiplies no booleans: any(x and y)
        from_wide = b.tensor(out.shape, dtypes.int32)
        product = b.op("stablehlo.dot_general", [b.convert(x, ins[0].shape, dtypes.int32), b.convert(y, ins[1].shape, dtypes.int32)],
                       from_wide, attributes)
        return b.compare("NE", product, b.splat(0, dtypes.int32, out.shape), out.update(dtype=dtypes.int32))
    return b.op("stablehlo.dot_general", [x, y], b.type(out), attributes)


def _axes(spec, batch: str, feature: str) -> str:
    """A convolution's (batch, feature, spatial…) axes as StableHLO writes them: what each axis of the array is."""
    letters: dict = {spec[0]: batch, spec[1]: feature}
    letters.update({axis: str(i) for i, axis in enumerate(spec[2:])})
    return "[" + ", ".join(letters[i] for i in range(len(spec))) + "]"


@rule("conv_general_dilated")
def _conv(b, ins, outs, x, kernel, *, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, feature_group_count=1,
          batch_group_count=1, precision=None, preferred_element_type=None, out_sharding=None):
    x_spec, k_spec, out_spec = dimension_numbers
    spatial = len(x_spec) - 2
    numbers = b.attr(f"#stablehlo.conv<{_axes(x_spec, 'b', 'f')}x{_axes(k_spec, 'o', 'i')}->{_axes(out_spec, 'b', 'f')}>")
    return b.op("stablehlo.convolution", [x, kernel], b.type(outs[0]), {
        "dimension_numbers": numbers, "feature_group_count": b.int_attr(feature_group_count),
        "batch_group_count": b.int_attr(batch_group_count), "window_strides": b.i64s(window_strides),
        "padding": b.pairs([v for pair in padding for v in pair]), "lhs_dilation": b.i64s(lhs_dilation),
        "rhs_dilation": b.i64s(rhs_dilation), "window_reversal": ir.DenseBoolArrayAttr.get([False] * spatial),
        "precision_config": precision_config(b, precision)})
