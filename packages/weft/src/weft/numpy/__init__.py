"""weft.numpy: NumPy's functions on immutable arrays that trace, differentiate, vectorise and compile.

Families load when they are first used.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

from ..base import dtypes as _dtypes
from ..base.dtypes import (
    ComplexWarning as ComplexWarning,
    character as character,
    complexfloating as complexfloating,
    flexible as flexible,
    floating as floating,
    generic as generic,
    inexact as inexact,
    integer as integer,
    number as number,
    object_ as object_,
    signedinteger as signedinteger,
    unsignedinteger as unsignedinteger,
)
from ..base.limits import finfo as finfo, iinfo as iinfo
from ..base.host import has_numpy as _has_numpy
from ..base.lazy import LazyNames as _LazyNames
from ..runtime.array import Array as _Array
from . import array_methods as _array_methods
from . import creation as _creation

if TYPE_CHECKING:  # loaded on first use
    from . import fft, linalg
    from .comparisons import *
    from .complex_parts import *
    from .creation import *
    from .cumulative import *
    from .diagonals import *
    from .differences import *
    from .einsum import *
    from .elementary import *
    from .files import *
    from .grids import *
    from .histograms import *
    from .joining import *
    from .nan_reductions import *
    from .floating_point import *
    from .padding import *
    from .packing import *
    from .conditional import *
    from .polynomials import *
    from .printing import *
    from .products import *
    from .quantiles import *
    from .ranges import *
    from .reductions import *
    from .rounding import *
    from .selecting import *
    from .sets import *
    from .shapes import *
    from .sorting import *
    from .splitting import *
    from .stacking import *
    from .standard import *
    from .statistics import *
    from .taking import *
    from .testing import *
    from .ufuncs import *
    from .universal import *
    from .gufuncs import *
    from .window_functions import *

ndarray = _Array

_lazy = _LazyNames(
    globals(),
    {
        "creation": (
            "array asarray copy empty empty_like eye frombuffer from_dlpack full full_like identity ones ones_like"
            " tri zeros zeros_like"
        ),
        "ranges": "arange fromfunction geomspace indices linspace logspace meshgrid",
        "elementary": (
            "acos acosh arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh cbrt cos cosh deg2rad"
            " degrees exp exp2 expm1 log log10 log1p log2 rad2deg radians sin sinc sinh sqrt tan tanh"
        ),
        "rounding": "around ceil fix floor modf rint round trunc",
        "comparisons": (
            "equal greater greater_equal isfinite isinf isnan less less_equal logical_not not_equal signbit"
        ),
        "ufuncs": (
            "abs absolute arctan2 atan2 bitwise_count bitwise_invert bitwise_left_shift bitwise_not"
            " bitwise_right_shift clip divide divmod fabs float_power floor_divide fmax fmin fmod hypot"
            " invert left_shift mod nextafter positive pow power reciprocal remainder right_shift sign"
            " square true_divide"
        ),
        "complex_parts": "angle conj conjugate imag real",
        "universal": (
            "add bitwise_and bitwise_or bitwise_xor logaddexp logaddexp2 logical_and logical_or logical_xor maximum"
            " minimum multiply negative subtract frompyfunc ufunc"
        ),
        "floating_point": (
            "copysign frexp gcd heaviside iscomplex iscomplexobj isneginf isposinf isreal isrealobj lcm ldexp"
            " nan_to_num spacing"
        ),
        "padding": "pad",
        "reductions": ("all amax amin any argmax argmin average count_nonzero max mean min prod ptp std sum var"),
        "cumulative": "cumprod cumsum cumulative_prod cumulative_sum",
        "nan_reductions": (
            "nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd nansum nanvar"
        ),
        "shapes": (
            "astype broadcast_arrays broadcast_shapes broadcast_to expand_dims flip fliplr flipud isscalar"
            " matrix_transpose moveaxis ndim permute_dims ravel reshape roll rollaxis rot90 shape size squeeze"
            " swapaxes transpose unstack"
        ),
        "joining": "append concat concatenate repeat resize stack tile",
        "stacking": "atleast_1d atleast_2d atleast_3d block column_stack dstack hstack vstack",
        "splitting": "array_split dsplit hsplit split vsplit",
        "selecting": (
            "apply_along_axis argwhere compress delete extract flatnonzero insert nonzero ravel_multi_index select"
            " unravel_index where"
        ),
        "taking": "choose put put_along_axis take take_along_axis",
        "diagonals": (
            "diag diag_indices diag_indices_from diagflat diagonal fill_diagonal trace tril tril_indices"
            " tril_indices_from triu triu_indices triu_indices_from"
        ),
        "products": "cross dot inner kron matmul matvec outer tensordot vdot vecdot vecmat",
        "einsum": "einsum einsum_path",
        "sorting": ("argpartition argsort digitize lexsort partition searchsorted sort sort_complex"),
        "sets": (
            "intersect1d isin setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse unique_values"
        ),
        "statistics": "convolve corrcoef correlate cov",
        "quantiles": "median nanmedian nanpercentile nanquantile percentile quantile",
        "differences": "diff ediff1d gradient interp trapezoid unwrap",
        "testing": "allclose array_equal array_equiv can_cast isclose isdtype issubdtype promote_types result_type",
        "standard": "__array_namespace_info__",
        "gufuncs": "vectorize",
        "grids": "c_ index_exp iterable ix_ mask_indices mgrid ogrid r_ s_",
        "histograms": "bincount histogram histogram2d histogram_bin_edges histogramdd",
        "files": "fromfile fromiter fromstring load save savez",
        "printing": "array_repr array_str get_printoptions printoptions set_printoptions",
        "packing": "packbits unpackbits",
        "conditional": "apply_over_axes piecewise place trim_zeros",
        "polynomials": "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots vander",
        "window_functions": "bartlett blackman hamming hanning i0 kaiser",
    },
    modules="fft linalg",
)


if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts every name
    __getattr__ = _lazy.find

    def __dir__():
        own = {n for n in globals() if not n.startswith("_")} - {
            "TYPE_CHECKING",
            "annotations",
            "math",
            "sys",
        }
        return sorted({*own, *_lazy.names()})


# the function einsum and its module have the same name; users mean the function
from .einsum import einsum as einsum, einsum_path as einsum_path  # noqa: E402

__array_api_version__ = "2025.12"
pi, e, euler_gamma, inf, nan, newaxis = math.pi, math.e, 0.5772156649015329, math.inf, math.nan, None
bool_ = _dtypes.scalar_type("bool")
bool = bool_
int1, int2, int4, int8, int16, int32, int64 = map(
    _dtypes.scalar_type, ("int1", "int2", "int4", "int8", "int16", "int32", "int64")
)
uint1, uint2, uint4, uint8, uint16, uint32, uint64 = map(
    _dtypes.scalar_type, ("uint1", "uint2", "uint4", "uint8", "uint16", "uint32", "uint64")
)
float4_e2m1fn, float6_e2m3fn, float6_e3m2fn = map(
    _dtypes.scalar_type, ("float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn")
)
float8_e3m4, float8_e4m3, float8_e4m3fn, float8_e5m2 = map(
    _dtypes.scalar_type, ("float8_e3m4", "float8_e4m3", "float8_e4m3fn", "float8_e5m2")
)
float8_e4m3b11fnuz, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu = map(
    _dtypes.scalar_type, ("float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
)
bfloat16, float16, float32, float64 = map(_dtypes.scalar_type, ("bfloat16", "float16", "float32", "float64"))
complex64, complex128 = map(_dtypes.scalar_type, ("complex64", "complex128"))
single, double, csingle, cdouble, int_, uint, float_, complex_ = (
    float32,
    float64,
    complex64,
    complex128,
    int64,
    uint64,
    float64,
    complex128,
)

if TYPE_CHECKING or _has_numpy:
    from numpy import dtype as dtype
else:

    def dtype(spec, *args, **kwargs):
        """The dtype that a name, a type or an array stands for (a `numpy.dtype` where NumPy is installed).

        Example:
            >>> import weft.numpy as jnp
            >>> jnp.dtype('float32') == jnp.float32
            True
        """
        return _dtypes.dtype(spec)


_dtypes.make_array.define(lambda value, dt: _creation.array(value, dt))
_array_methods.namespace.define(lambda: sys.modules[__name__])
