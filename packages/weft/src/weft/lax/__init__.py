"""weft.lax: the functions that map one to one onto primitives. Strict about dtypes and shapes, where `weft.numpy` is lenient."""
from importlib import import_module as _import_module

from ..control.cond import cond, switch
from ..control.loops import fori_loop, scan, while_loop
from ..control.prefix import associative_scan, map_ as map
from .collectives import (all_gather, all_to_all, axis_index, axis_size, pbroadcast, pmax, pmean, pmin, ppermute, pshuffle, pswapaxes, psum,
                          psum_scatter)
from .dots import DotAlgorithm, DotAlgorithmPreset, DotDimensionNumbers, Precision, PrecisionLike, batch_matmul, dot, dot_general
from .elementwise import (AccuracyMode, RoundingMethod, Tolerance, abs, acos, acosh, add, asin, asinh, atan, atan2, atanh, bitcast_convert_type, bitwise_and,
                          bitwise_not, bitwise_or, bitwise_xor, cbrt, ceil, clamp, clz, complex, conj, convert_element_type, cos, cosh, digamma, div, eq,
                          erf, erf_inv, erfc, exp, exp2, expm1, floor, ge, gt, imag, integer_pow, is_finite, le, lgamma, log, log1p,
                          logistic, lt, max, min, mul, mulhi, ne, neg, nextafter, population_count, pow, real, reciprocal, reduce_precision, rem,
                          round, rsqrt, select, select_n, shift_left, shift_right_arithmetic, shift_right_logical, sign, sin, sinh, sqrt,
                          square, stop_gradient, sub, tan, tanh)
from .fft import FftType, fft
from .indexing import (GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers, dynamic_index_in_dim, dynamic_slice,
                       dynamic_slice_in_dim, dynamic_update_index_in_dim, dynamic_update_slice, dynamic_update_slice_in_dim, gather,
                       scatter, scatter_add, scatter_apply, scatter_max, scatter_min, scatter_mul, scatter_sub)
from .reductions import (argmax, argmin, cumlogsumexp, cummax, cummin, cumprod, cumsum, reduce, reduce_and, reduce_max, reduce_min,
                         reduce_or, reduce_prod, reduce_sum, reduce_xor, sort, sort_key_val, top_k)
from .shape import (broadcast, broadcast_in_dim, broadcast_like, broadcast_shapes, broadcast_to_rank, broadcasted_iota, collapse, concatenate, dtype,
                    empty, expand_dims, full, full_like, index_in_dim, iota, pad, reshape, rev, shape_as_value, slice, slice_in_dim, split,
                    squeeze, stack, tile, transpose, unstack)

# families that a program may never need load when they are first used
_LAZY = {name: "convolution" for name in (
    "ConvDimensionNumbers", "ConvGeneralDilatedDimensionNumbers", "conv", "conv_dimension_numbers", "conv_general_dilated", "conv_general_dilated_local",
    "conv_general_dilated_patches", "conv_general_permutations", "conv_general_shape_tuple", "conv_shape_tuple", "conv_transpose",
    "conv_transpose_shape_tuple", "conv_with_general_padding")}
_LAZY |= {name: "special" for name in (
    "bessel_i0e", "bessel_i0e_p", "bessel_i1e", "bessel_i1e_p", "betainc", "igamma", "igamma_grad_a", "igamma_grad_a_p", "igamma_p", "igammac", "igammac_p",
    "polygamma", "polygamma_p", "random_gamma_grad", "regularized_incomplete_beta_p", "zeta", "zeta_p")}
_LAZY |= {"composite": "composites", "platform_dependent": "platforms"}
_LAZY |= {name: "approximate" for name in ("approx_max_k", "approx_min_k")}
_LAZY |= {name: "barriers" for name in ("after_all", "create_token", "dce_sink", "optimization_barrier", "stage")}
_LAZY |= {name: "ragged" for name in ("RaggedDotDimensionNumbers", "ragged_dot", "ragged_dot_general", "scaled_dot")}
_LAZY |= {name: "generator" for name in ("RandomAlgorithm", "rng_bit_generator", "rng_uniform")}
_LAZY |= {name: "solving" for name in ("custom_linear_solve", "custom_root")}
_LAZY["with_sharding_constraint"] = "placement"
_LAZY |= {name: "windows" for name in ("padtype_to_pads", "reduce_window", "reduce_window_shape_tuple")}

__all__ = [*[name for name in dir() if not name.startswith("_")], *_LAZY, "linalg"]


def __getattr__(name: str):
    if name == "linalg":
        return _import_module("weft.lax.linalg")
    if name in _LAZY:
        return getattr(_import_module(f"weft.lax.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'weft.lax' has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
