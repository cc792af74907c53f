"""What a program from outside may hold: its primitives, and what each of their parameters may be.

Bytes from a client or a file name primitives. Those of `PORTABLE` are accepted, with exactly these parameters, each of
its kind; the rules of a primitive can then rely on what they are given, as they rely on the functions that bind it.
`REFUSED` says why the others can't come that way. A primitive that stands in neither table is refused, so a new one
stays at home until someone has decided (tests/remote/test_hostile.py asks).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ..base import dtypes
from ..base.avals import ShapedArray, SymbolicSize
from ..base.errors import VerificationError
from ..core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn
from ..core.primitive import param_types


class Kind(NamedTuple):
    """What a parameter may be, in words and as a check."""

    words: str
    holds: Callable[[Any], bool]
    required: bool = True


def _integer(value: Any) -> bool:
    return type(value) is int and -1 << 63 <= value < 1 << 63


def _dtype(value: Any) -> bool:
    try:
        return value is dtypes.dtype(dtypes.name(value))
    except (TypeError, AttributeError, KeyError):
        return False


INTEGER = Kind("an integer of 64 bits", _integer)
COUNT = Kind("an integer that is not negative", lambda v: _integer(v) and v >= 0)
SIZE = Kind("a size", lambda v: _integer(v) or isinstance(v, SymbolicSize))
FLAG = Kind("a bool", lambda v: type(v) is bool)
FLOAT = Kind("a finite number", lambda v: type(v) in (int, float) and math.isfinite(v))
SCALAR = Kind("a number", lambda v: type(v) in (int, float, complex, bool))
TEXT = Kind("a string", lambda v: type(v) is str)
FALSE = Kind("False", lambda v: v is False)
NOTHING = Kind("None", lambda v: v is None)
DTYPE = Kind("a dtype of numbers", _dtype)
PROGRAM = Kind("a program", lambda v: isinstance(v, ClosedJaxpr))
OPEN_PROGRAM = Kind("a program", lambda v: isinstance(v, Jaxpr))


def either(*kinds: Kind) -> Kind:
    """What is of one of some kinds."""
    return Kind(" or ".join(k.words for k in kinds), lambda v: any([k.holds(v) for k in kinds]))


def many(kind: Kind) -> Kind:
    """A tuple of any length."""
    return Kind(f"a tuple, each entry {kind.words}", lambda v: type(v) is tuple and all([kind.holds(x) for x in v]))


def row(*kinds: Kind) -> Kind:
    """A tuple with an entry of each kind."""
    return Kind(
        f"a tuple of {len(kinds)}: {', '.join(k.words for k in kinds)}",
        lambda v: type(v) is tuple and len(v) == len(kinds) and all([k.holds(x) for k, x in zip(kinds, v)]),
    )


def member(name: str) -> Kind:
    """A member of an enumeration, which the modules above this one define."""
    return Kind(f"a {name}", lambda v: type(v) is param_types.get(name))


def record(name: str, *kinds: Kind) -> Kind:
    """A named tuple, with fields of these kinds."""
    return Kind(
        f"a {name} of {', '.join(k.words for k in kinds)}",
        lambda v: type(v) is param_types.get(name) and all([k.holds(x) for k, x in zip(kinds, v)]),
    )


def word(*words: str) -> Kind:
    """One of a few strings."""
    return Kind(f"one of {', '.join(map(repr, words))}", lambda v: type(v) is str and v in words)


def optional(kind: Kind) -> Kind:
    """A parameter that may be missing."""
    return kind._replace(required=False)


AXES = many(INTEGER)
SIZES = many(SIZE)
PAIRS = many(row(SIZE, SIZE))
DTYPE_OR_NONE = either(NOTHING, DTYPE)
ACCURACY = {"accuracy": optional(either(NOTHING, member("AccuracyMode"), record("Tolerance", FLOAT, FLOAT, COUNT)))}
ALONG = {"axis": INTEGER, "reverse": FLAG}
REDUCED = {"axes": AXES, "out_sharding": NOTHING}
_LEVEL = either(
    NOTHING,
    member("Precision"),
    word("default", "fastest", "high", "highest", "bfloat16", "bfloat16_3x", "tensorfloat32", "float32"),
)
_OPERAND_TYPE = either(DTYPE, word("tf32", *dtypes.names))
PRECISION = either(
    _LEVEL,
    row(_LEVEL, _LEVEL),
    member("DotAlgorithmPreset"),
    record("DotAlgorithm", _OPERAND_TYPE, _OPERAND_TYPE, _OPERAND_TYPE, COUNT, COUNT, COUNT, FLAG),
)
DOT_NUMBERS = row(row(AXES, AXES), row(AXES, AXES))
PRODUCT = {"precision": PRECISION, "preferred_element_type": DTYPE_OR_NONE, "out_sharding": NOTHING}
WINDOW = {
    "window_dimensions": SIZES,
    "window_strides": SIZES,
    "padding": PAIRS,
    "base_dilation": SIZES,
    "window_dilation": SIZES,
}
SCATTER = {
    "dimension_numbers": record("ScatterDimensionNumbers", AXES, AXES, AXES, AXES, AXES),
    "indices_are_sorted": FLAG,
    "unique_indices": FLAG,
    "mode": member("GatherScatterMode"),
    "update_jaxpr": NOTHING,
    "update_consts": row(),
}
SUBSET = either(NOTHING, row(INTEGER, INTEGER))
MAGMA = either(NOTHING, FLAG)

_WITHOUT_PARAMETERS = (
    "abs acos acosh add add_any after_all and asin asinh atan atan2 atanh bessel_i0e bessel_i1e ceil cholesky"
    " cholesky_update clamp clz complex copy cosh create_token digamma div dynamic_update_slice eq eq_to erf erf_inv"
    " erfc floor ge geqrf gt hessenberg householder_product igamma igamma_grad_a igammac imag is_finite le le_to lgamma"
    " lt lt_to lu max min mul mulhi ne neg nextafter not optimization_barrier or polygamma population_count pow real"
    " regularized_incomplete_beta rem select_n shift_left shift_right_arithmetic shift_right_logical sign sinh square"
    " stage stop_gradient sub threefry2x32 xor zeta asin zeta"
).split()

# primitive -> what its parameters are
PORTABLE: dict[str, dict[str, Kind]] = {
    **{name: {} for name in _WITHOUT_PARAMETERS},
    **{name: ACCURACY for name in "cbrt cos exp exp2 expm1 log log1p logistic rsqrt sin sqrt tan tanh".split()},
    **{name: ALONG for name in "cumlogsumexp cummax cummin cumprod cumsum".split()},
    **{name: REDUCED for name in ("reduce_max", "reduce_min", "reduce_sum")},
    **{name: {"axes": AXES} for name in ("reduce_and", "reduce_or", "reduce_prod", "reduce_xor")},
    **{name: WINDOW for name in "reduce_window_max reduce_window_min reduce_window_sum".split()},
    **{name: SCATTER for name in "scatter scatter-add scatter-max scatter-min scatter-mul scatter-sub".split()},
    **{name: {"axes": AXES, "index_dtype": DTYPE} for name in ("argmax", "argmin")},
    "approx_top_k": {
        "k": SIZE,
        "reduction_dimension": INTEGER,
        "recall_target": FLOAT,
        "is_max_k": FLAG,
        "reduction_input_size_override": INTEGER,
        "aggregate_to_topk": FLAG,
    },
    "bitcast_convert_type": {"new_dtype": DTYPE},
    "broadcast_in_dim": {"shape": SIZES, "broadcast_dimensions": AXES, "sharding": NOTHING},
    "concatenate": {"dimension": INTEGER},
    "cond": {"branches": many(PROGRAM)},
    "conj": {"input_dtype": DTYPE},
    "conv_general_dilated": {
        "window_strides": SIZES,
        "padding": PAIRS,
        "lhs_dilation": SIZES,
        "rhs_dilation": SIZES,
        "dimension_numbers": record("ConvDimensionNumbers", AXES, AXES, AXES),
        "feature_group_count": SIZE,
        "batch_group_count": SIZE,
        **PRODUCT,
    },
    "convert_element_type": {"new_dtype": DTYPE, "weak_type": FLAG, "sharding": NOTHING},
    "device_put": {"memory": word("device", "pinned_host", "unpinned_host")},
    "dim_as_value": {"dim": SIZE},
    "dot_general": {"dimension_numbers": DOT_NUMBERS, **PRODUCT},
    "dynamic_slice": {"slice_sizes": SIZES},
    "eig": {
        "compute_left_eigenvectors": FLAG,
        "compute_right_eigenvectors": FLAG,
        "enable_eigvec_derivs": FLAG,
        "implementation": either(NOTHING, member("EigImplementation")),
    },
    "eigh": {
        "lower": FLAG,
        "sort_eigenvalues": FLAG,
        "subset_by_index": SUBSET,
        "algorithm": either(NOTHING, member("EighImplementation")),
    },
    "fft": {"fft_type": member("FftType"), "fft_lengths": SIZES},
    "gather": {
        "dimension_numbers": record("GatherDimensionNumbers", AXES, AXES, AXES, AXES, AXES),
        "slice_sizes": SIZES,
        "indices_are_sorted": FLAG,
        "unique_indices": FLAG,
        "mode": member("GatherScatterMode"),
        "fill_value": either(NOTHING, SCALAR),
    },
    "geqp3": {"use_magma": MAGMA},
    "integer_pow": {"y": INTEGER},
    "iota": {"dtype": DTYPE, "shape": SIZES, "dimension": INTEGER, "sharding": NOTHING},
    "jit": {"jaxpr": PROGRAM, "name": TEXT, "donated_invars": many(FLAG), "keep_unused": FLAG, "inline": FLAG},
    "lu_pivots_to_permutation": {"permutation_size": SIZE},
    "name": {"name": TEXT},
    "ormqr": {"left": FLAG, "transpose": FLAG},
    "pad": {"padding_config": many(row(SIZE, SIZE, SIZE))},
    "platform_index": {"platforms": many(either(NOTHING, many(TEXT)))},
    "qr": {"pivoting": FLAG, "full_matrices": FLAG, "use_magma": MAGMA},
    "ragged_dot_general": {
        "ragged_dot_dimension_numbers": record("RaggedDotDimensionNumbers", DOT_NUMBERS, AXES, AXES),
        "group_offset": NOTHING,
        **PRODUCT,
    },
    "reduce": {"jaxpr": PROGRAM, "dimensions": AXES},
    "reduce_precision": {"exponent_bits": INTEGER, "mantissa_bits": INTEGER},
    "reduce_window": {"jaxpr": PROGRAM, "consts": row(), **WINDOW},
    "remat2": {
        "jaxpr": OPEN_PROGRAM,
        "prevent_cse": either(FLAG, many(FLAG)),
        "differentiated": FLAG,
        "policy": NOTHING,
    },
    "reshape": {"new_sizes": SIZES, "dimensions": NOTHING, "sharding": NOTHING},
    "rev": {"dimensions": AXES},
    "rng_bit_generator": {
        "shape": SIZES,
        "dtype": DTYPE,
        "algorithm": member("RandomAlgorithm"),
        "out_sharding": NOTHING,
    },
    "rng_uniform": {"shape": SIZES},
    "round": {"rounding_method": either(INTEGER, member("RoundingMethod"))},
    "scan": {
        "jaxpr": PROGRAM,
        "length": SIZE,
        "reverse": FLAG,
        "unroll": either(INTEGER, FLAG),
        "num_consts": COUNT,
        "num_carry": COUNT,
    },
    "schur": {"compute_schur_vectors": FLAG, "sort_eig_vals": FALSE, "select_callable": NOTHING},
    "select_and_gather_add": {"select_prim": word("ge", "le"), **WINDOW},
    "select_and_scatter_add": {
        "select_prim": word("ge", "le"),
        "window_dimensions": SIZES,
        "window_strides": SIZES,
        "padding": PAIRS,
    },
    "slice": {"start_indices": SIZES, "limit_indices": SIZES, "strides": either(NOTHING, SIZES)},
    "sort": {"dimension": INTEGER, "is_stable": FLAG, "num_keys": INTEGER},
    "split": {"sizes": SIZES, "axis": INTEGER},
    "squeeze": {"dimensions": AXES},
    "stack": {"axis": INTEGER},
    "svd": {
        "full_matrices": FLAG,
        "compute_uv": FLAG,
        "subset_by_index": SUBSET,
        "algorithm": either(NOTHING, member("SvdAlgorithm")),
    },
    "symmetric_product": {"alpha": FLOAT, "beta": FLOAT},
    "tile": {"reps": SIZES},
    "top_k": {"k": SIZE, "axis": INTEGER},
    "transpose": {"permutation": AXES},
    "triangular_solve": {
        "left_side": FLAG,
        "lower": FLAG,
        "transpose_a": FLAG,
        "conjugate_a": FLAG,
        "unit_diagonal": FLAG,
    },
    "tridiagonal": {"lower": FLAG},
    "tridiagonal_solve": {"perturb_singular": FLAG},
    "unstack": {"axis": INTEGER},
    "while": {"cond_jaxpr": PROGRAM, "body_jaxpr": PROGRAM, "cond_nconsts": COUNT, "body_nconsts": COUNT},
}

_PYTHON = "it calls a Python function, which exists in one process only"
_REFERENCE = "it works on a mutable reference; a compiled program has values alone"
_COLLECTIVE = "it talks to other members of a mapped axis, and a program that leaves the process runs on one device"
_KEY = "it works on random keys, which leave the process as their words"
_CALL = "transformations see it; before a program leaves, what it calls stands in its place"
_PLACE = "it names devices of this process"

# primitive -> why no program from outside may hold it
REFUSED: dict[str, str] = {
    **{name: _PYTHON for name in ("debug_callback", "io_callback", "pure_callback")},
    **{name: _REFERENCE for name in ("addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "swap")},
    **{
        name: _COLLECTIVE
        for name in (
            "all_gather",
            "all_gather_invariant",
            "all_to_all",
            "axis_index",
            "pbroadcast",
            "pmax",
            "pmin",
            "ppermute",
            "psum",
            "pvary",
            "reduce_scatter",
            "shard_map",
        )
    },
    **{
        name: _KEY
        for name in (
            "random_bits",
            "random_clone",
            "random_fold_in",
            "random_gamma",
            "random_seed",
            "random_split",
            "random_unwrap",
            "random_wrap",
        )
    },
    **{
        name: _CALL
        for name in (
            "call_exported",
            "custom_jvp_call",
            "custom_lin",
            "custom_linear_solve",
            "custom_vjp_call",
            "custom_vmap_call",
            "linear_call",
            "remat_opt",
        )
    },
    **{name: _PLACE for name in ("inspect_sharding", "sharding_constraint", "transfer")},
    "check": (
        "its message is built in this process; weft.experimental.checkify.checkify makes it a result of the program"
    ),
    "composite": "it stands for an operation that a compiler knows by name",
    "dce_sink": "it is an effect, and a program from outside has none",
    "ffi_call": "it calls compiled code by its name, and says itself which results that writes",
    "todense": "it works on sparse arrays, which leave the process as their parts",
}


def why_refused(name: str) -> str | None:
    """Why a program from outside may not hold a primitive; None if it may."""
    return None if name in PORTABLE else REFUSED.get(name, "nobody has said yet that it may")


# What order tokens go through; all other primitives take arrays.
_TAKE_TOKENS = frozenset("after_all optimization_barrier cond jit remat2 scan while".split())


def check_parameters(eqn: JaxprEqn) -> None:
    """VerificationError unless an equation is one that a program from outside may hold, with operands and parameters
    of the right kinds.
    """
    name, params = eqn.primitive.name, eqn.params
    kinds = PORTABLE.get(name)
    if kinds is None or eqn.primitive.foreign:
        raise VerificationError(
            f"a program from outside can't hold the primitive {name!r}:"
            f" {why_refused(name) or 'it belongs to a library'}. Leave it out of the program, or run the program in the"
            " process that traced it"
        )
    if name not in _TAKE_TOKENS and any([not isinstance(a.aval, ShapedArray) for a in eqn.invars]):
        raise VerificationError(f"{name} takes arrays, and one of its operands is an order token")
    for key, kind in kinds.items():
        if key in params:
            if not kind.holds(params[key]):
                raise VerificationError(
                    f"the parameter {key} of {name} must be {kind.words}; got {str(params[key])[:80]!r}"
                )
        elif kind.required:
            raise VerificationError(f"{name} has no parameter {key}")
    unknown = [key for key in params if key not in kinds]
    if unknown:
        raise VerificationError(f"{name} has no parameter {unknown[0]!r}; it has {', '.join(kinds) or 'none'}")
