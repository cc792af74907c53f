"""weft.lax: the functions that map one to one onto primitives. Strict about dtypes and shapes, where `weft.numpy` is
lenient.
"""

from typing import TYPE_CHECKING

from ..base.lazy import LazyNames as _LazyNames
from ..higher_order.cond import cond as cond, switch as switch
from ..higher_order.while_loop import fori_loop as fori_loop, while_loop as while_loop
from ..higher_order.scan import scan as scan
from ..base.annotations import alias as _alias
from ..higher_order.prefix import associative_scan as associative_scan, map_ as _map
from .collectives import *
from .dots import *
from .elementwise import *
from .fft import *
from .indexing import *
from .reductions import *
from .shape import *
from .transcendental import *
from .unary import *

if TYPE_CHECKING:  # loaded on first use
    from . import linalg
    from .approximate import *
    from .barriers import *
    from .composites import *
    from .convolution import *
    from .exchange import *
    from .generator import *
    from .placement import *
    from .platforms import *
    from .primitive_names import *
    from .ragged import *
    from .solving import *
    from .special import *
    from .window_reductions import *

map = _alias(_map, "map")

# families that many programs never need are loaded on first use; a type checker sees them above
_lazy = _LazyNames(
    globals(),
    {
        "convolution": (
            "ConvDimensionNumbers ConvGeneralDilatedDimensionNumbers conv conv_dimension_numbers conv_general_dilated"
            " conv_general_dilated_local conv_general_dilated_patches conv_general_permutations"
            " conv_general_shape_tuple conv_shape_tuple conv_transpose conv_transpose_shape_tuple"
            " conv_with_general_padding"
        ),
        "special": (
            "bessel_i0e bessel_i0e_p bessel_i1e bessel_i1e_p betainc igamma igamma_grad_a igamma_grad_a_p igamma_p"
            " igammac igammac_p polygamma polygamma_p random_gamma_grad regularized_incomplete_beta_p zeta zeta_p"
        ),
        "composites": "composite",
        "platforms": "platform_dependent",
        "approximate": "approx_max_k approx_min_k",
        "barriers": "after_all create_token dce_sink optimization_barrier stage",
        "ragged": "RaggedDotDimensionNumbers ragged_dot ragged_dot_general scaled_dot",
        "generator": "RandomAlgorithm rng_bit_generator rng_uniform",
        "solving": "custom_linear_solve custom_root",
        "placement": "with_sharding_constraint",
        "exchange": "precv psend ragged_all_to_all",
        "window_reductions": "padtype_to_pads reduce_window reduce_window_shape_tuple",
        # under the names that they have in jax.lax
        "primitives": (
            "abs_p acos_p acosh_p add_p after_all_p all_gather_p all_to_all_p and_p approx_top_k_p argmax_p"
            " argmin_p asin_p asinh_p atan2_p atan_p atanh_p axis_index_p bitcast_convert_type_p"
            " broadcast_in_dim_p cbrt_p ceil_p clamp_p clz_p complex_p concatenate_p cond_p conj_p"
            " conv_general_dilated_p convert_element_type_p copy_p cos_p cosh_p create_token_p cumlogsumexp_p"
            " cummax_p cummin_p cumprod_p cumsum_p dce_sink_p device_put_p digamma_p div_p dot_general_p"
            " dynamic_slice_p dynamic_update_slice_p eq_p eq_to_p erf_inv_p erf_p erfc_p exp2_p exp_p expm1_p"
            " fft_p floor_p gather_p ge_p gt_p imag_p integer_pow_p iota_p is_finite_p le_p le_to_p lgamma_p"
            " linear_solve_p log1p_p log_p logistic_p lt_p lt_to_p max_p min_p mul_p mulhi_p ne_p neg_p"
            " nextafter_p not_p optimization_barrier_p or_p pad_p pmax_p pmin_p population_count_p pow_p"
            " ppermute_p psum_p real_p reduce_and_p reduce_max_p reduce_min_p reduce_or_p reduce_p"
            " reduce_precision_p reduce_prod_p reduce_sum_p reduce_window_max_p reduce_window_min_p"
            " reduce_window_p reduce_window_sum_p reduce_xor_p rem_p reshape_p rev_p rng_bit_generator_p"
            " rng_uniform_p round_p rsqrt_p scan_p scatter_add_p scatter_max_p scatter_min_p scatter_mul_p"
            " scatter_p scatter_sub_p select_and_gather_add_p select_and_scatter_add_p select_n_p"
            " sharding_constraint_p shift_left_p shift_right_arithmetic_p shift_right_logical_p sign_p sin_p"
            " sinh_p slice_p sort_p split_p sqrt_p square_p squeeze_p stack_p stage_p stop_gradient_p sub_p"
            " tan_p tanh_p tile_p top_k_p transpose_p unstack_p while_p xor_p"
        ),
    },
    modules="linalg",
)


if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts every name
    __all__ = [
        *[name for name in dir() if not name.startswith("_") and name != "TYPE_CHECKING"],
        *_lazy.names(),
    ]

    __getattr__ = _lazy.find

    def __dir__():
        return sorted(__all__)
