"""Whether results agree: exactly where nothing was rounded, elsewhere as far as roundings carry."""

from __future__ import annotations

import functools
from typing import Any
from unittest import mock

import numpy as np

from weft.core.interpret import ReferenceTrace, interpret
from weft.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, subjaxprs
from weft.higher_order.pallas_call import Kernel
from weft.numpy import finfo

from .types import EPSILON

# Primitives that platforms round each in its own way. Also a product: one adds to it before it is rounded.
ROUNDED = frozenset(
    """
    abs acos acosh add add_any asin asinh atan atan2 atanh bessel_i0e bessel_i1e cbrt cholesky cholesky_update
    complex conv_general_dilated convert_element_type cos cosh cumlogsumexp cumprod cumsum digamma div dot_general
    eig eigh erf erf_inv erfc erfcx exp exp2 expm1 fft geqp3 geqrf hessenberg householder_product igamma
    igamma_grad_a igammac integer_pow lgamma log log1p logistic lu mul ormqr polygamma pow psum qr
    ragged_dot_general random_gamma reduce reduce_precision reduce_prod reduce_scatter reduce_sum reduce_window
    reduce_window_sum regularized_incomplete_beta rem rsqrt scatter-add scatter-mul scatter-sub schur
    select_and_scatter_add sign sin sinh sqrt square sub svd symmetric_product tan tanh triangular_solve tridiagonal
    tridiagonal_solve zeta
    """.split()
)
# All others: they move elements, compare, count or choose, or hold programs, whose equations tell.
EXACT = frozenset(
    """
    addupdate after_all all_gather all_gather_invariant all_to_all and approx_top_k argmax argmin axis_index
    bitcast_convert_type broadcast_in_dim call_exported ceil check clamp clz composite concatenate cond conj copy
    create_token cummax cummin custom_jvp_call custom_lin custom_linear_solve custom_partitioning custom_vjp_call
    custom_vmap_call dce_sink debug_callback debug_report device_put dim_as_value dynamic_slice dynamic_update_slice
    empty_ref eq eq_to ffi_call floor free_ref freeze gather ge get gt imag inspect_sharding io_callback iota
    is_finite jit layout_constraint le le_to linear_call lt lt_to lu_pivots_to_permutation max min mulhi name ne neg
    new_ref nextafter not optimization_barrier or pad pallas_call pbroadcast platform_index pmax pmin
    population_count ppermute pure_callback pvary random_bits random_clone random_fold_in random_seed random_split
    random_unwrap random_wrap real reduce_and reduce_max reduce_min reduce_or reduce_window_max reduce_window_min
    reduce_xor remat2 remat_opt remote_callback reshape reshard rev rng_bit_generator rng_uniform round scan scatter
    scatter-max scatter-min select_and_gather_add select_n shard_alike shard_map sharding_constraint shift_left
    shift_right_arithmetic shift_right_logical slice sort split squeeze stack stage stop_gradient swap threefry2x32
    tile todense top_k transfer transpose unstack while xla_metadata_value xor
    """.split()
)
# Their zeros have either sign: a platform begins with zero, or with the first term.
SUMS = frozenset(
    """dot_general ragged_dot_general conv_general_dilated reduce_sum cumsum reduce_window_sum scatter-add
    select_and_scatter_add""".split()
)
# Those of them that only complex numbers and numbers of 16 bits make inexact: one computes with more bits than the
# other before it rounds.
IN_PART = frozenset(("add", "sub", "add_any", "sign", "abs", "complex", "convert_element_type"))
SLACK = {
    "float32": 2e-5,
    "complex64": 4e-5,
    "float64": 1e-11,
    "complex128": 1e-11,
    "bfloat16": 2.0**-5,
    "float16": 2.0**-8,
}
# each way and its opposite, so that what is cut off changes in one of them
ROUNDS, TIMES = (1.0, -1.0, 4.0, -4.0, 16.0, -16.0, 64.0, -64.0), 20.0
FLUSHED = len(ROUNDS)  # one more way: where platforms make zeros of numbers too small to be normal
# Platforms multiply in any order. On the way there a product may leave the dtype and not come back.
PRODUCTS = {"reduce_prod": ("axes", np.prod), "cumprod": ("axis", np.cumprod)}


def is_rounded(eqn: Any) -> bool:
    """Whether what an equation computes may differ between platforms by rounding."""
    dtypes = [str(v.aval.dtype) for v in (*eqn.invars, *eqn.outvars) if hasattr(v.aval, "dtype")]
    if eqn.primitive.name in ROUNDED and any(d in EPSILON for d in dtypes):
        return eqn.primitive.name not in IN_PART or any(d not in ("float32", "float64") for d in dtypes if d in EPSILON)
    return any(map(rounds, inside(eqn)))


def inside(eqn: Any) -> list[Jaxpr]:
    """The jaxprs that an equation holds, and those of kernels."""
    kernels = [p.on_values.jaxpr for p in eqn.params.values() if isinstance(p, Kernel)]
    return [*subjaxprs(eqn.params), *kernels]


def rounds(jaxpr: Jaxpr) -> bool:
    return any(map(is_rounded, jaxpr.eqns))


def slack_of(eqn: Any) -> float:
    """The largest of the allowances for the dtypes in which an equation rounds."""
    inner = [e for jaxpr in inside(eqn) for e in jaxpr.eqns if is_rounded(e)]
    if inner:
        return max(map(slack_of, inner))
    dtypes = [v.aval.dtype.name for v in (*eqn.invars, *eqn.outvars) if hasattr(v.aval, "dtype")]
    return max((SLACK.get(d, 0.0) for d in dtypes), default=0.0)


def allowances(jaxpr: Jaxpr) -> list[float | None]:
    """For each result the allowance for the coarsest dtype in which something it depends on was rounded: a result of
    64 bits may have gone through 32. None where nothing was.
    """
    rounded: dict[Any, float] = {}
    for eqn in jaxpr.eqns:
        slacks = [rounded[v] for v in eqn.invars if type(v) is not Literal and v in rounded]
        if is_rounded(eqn):
            slacks.append(slack_of(eqn))
        if slacks:
            rounded.update(dict.fromkeys(eqn.outvars, max(slacks)))
    return [None if type(v) is Literal else rounded.get(v) for v in jaxpr.outvars]


def distance(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """By how much numbers differ; infinite where one is a number and the other is not."""
    if got.dtype.kind in "iu" and got.dtype.itemsize == 8:
        return np.where(got == want, 0.0, np.abs(got.astype(np.float64) - want.astype(np.float64)) + 1.0)
    if got.dtype.kind == "c":
        return np.maximum(distance(got.real, want.real), distance(got.imag, want.imag))
    a, b = got.astype(np.float64), want.astype(np.float64)
    with np.errstate(all="ignore"):
        same = (a == b) | np.isnan(a) & np.isnan(b)
        out = np.where(same, 0.0, np.abs(a - b))
    return np.where(np.isnan(out), np.inf, out)


def size(want: np.ndarray) -> np.ndarray:
    """Of what results are: the unit of rounding errors."""
    with np.errstate(all="ignore"):
        a = np.abs(want.astype(np.complex128 if want.dtype.kind == "c" else np.float64))
    return np.where(np.isfinite(a), a, 0)


def ways(flushes: bool) -> range:
    """In how many ways a platform may round. flushes: whether it may make zeros of subnormal numbers."""
    return range(len(ROUNDS) + flushes)


def reference(closed: ClosedJaxpr, args: list[np.ndarray], way: int | None = None) -> list[np.ndarray]:
    """What the reference rules give. way: with other roundings, of so many ways that one."""
    with np.errstate(all="ignore"):
        if way is None:
            return [np.asarray(x) for x in interpret(closed, args)]
        if way == FLUSHED:
            trace, args = FlushingTrace(), [flushed(a) for a in args]
        else:
            rng, amount = np.random.default_rng(way // 2), ROUNDS[way]
            trace, args = RoundingTrace(rng, amount), [nudge(rng, a, amount) if way // 2 % 2 else a for a in args]
        with mock.patch("weft.core.interpret._trace", trace):
            return [np.asarray(x) for x in interpret(closed, args)]


def mismatch(
    closed: ClosedJaxpr, args: list[np.ndarray], got: list[np.ndarray], want: list[np.ndarray], flushes: bool = False
) -> str | None:
    """How results differ from the reference's, None if they agree. closed: what the reference ran, without random
    keys. flushes: whether the platform may make zeros of subnormal numbers.
    """
    allowed = [a if a is None else max(a, SLACK.get(w.dtype.name, 0.0)) for a, w in zip(allowances(closed.jaxpr), want)]
    suspects, zeros = [], list[np.ndarray]()
    for k, (g, w) in enumerate(zip(got, want, strict=True)):
        if g.shape != w.shape or g.dtype != w.dtype:
            return f"result {k} is {g.dtype}{list(g.shape)}, in the reference {w.dtype}{list(w.shape)}"
        allowance = allowed[k]
        far = distance(g, w) > (allowance or 0.0) * (1 + size(w))
        if far.any() and allowance is None and flushes:
            zeros = zeros or reference(closed, args, FLUSHED)
            far &= distance(g, zeros[k]) > 0
        if far.any():
            if allowance is None:
                return f"result {k}, which nothing rounds, is\n{g!r}, in the reference\n{w!r}"
            suspects.append(k)
    if not suspects:
        return None
    moved = spread(closed, args, want, flushes)
    for k in suspects:
        g, w = got[k], want[k]
        far = distance(g, w) > moved[k] * TIMES + (allowed[k] or 0.0) * (1 + size(w))
        if far.any():
            return (
                f"result {k} is\n{g!r}, in the reference\n{w!r}\nwhere roundings move it by\n{moved[k]!r}\nfirst at"
                f" {np.argwhere(far)[0].tolist()}"
            )
    return None


def spread(
    closed: ClosedJaxpr, args: list[np.ndarray], want: list[np.ndarray], flushes: bool = False
) -> list[np.ndarray]:
    """How far rounding errors in the arguments and in what is computed carry: a program may compare, round or sort
    it, and compute a thing twice.
    """
    most = [np.zeros(w.shape) for w in want]
    for k in ways(flushes):
        most = [np.maximum(m, distance(n, w)) for m, n, w in zip(most, reference(closed, args, k), want)]
    return most


def nudge(rng: np.random.Generator, a: np.ndarray, amount: float, mixed: bool = False) -> np.ndarray:
    """Rounded a little otherwise. mixed: each element is computed from all, so it is off by a share of the largest."""
    epsilon = EPSILON.get(a.dtype.name)
    if epsilon is None or not a.size:
        return a
    with np.errstate(all="ignore"):
        if a.dtype.kind == "c":
            of = np.broadcast_to(np.abs(a).max(), a.shape) if mixed else np.abs(a)
            noise = of * (rng.normal(size=a.shape) + 1j * rng.normal(size=a.shape))
        elif mixed:
            of = np.abs(a).max().astype(np.float64)
            noise = of * rng.normal(size=a.shape)
        else:
            return np.asarray(a.astype(np.float64) * (1 + epsilon * amount * rng.normal(size=a.shape))).astype(a.dtype)
        if mixed and amount == ROUNDS[-1]:  # terms that cancel do so wholly
            noise = np.where(np.abs(a) < of * epsilon * -amount, a / (epsilon * -amount), noise)
        return np.asarray(a + np.where(np.isfinite(noise), noise, 0) * epsilon * amount).astype(a.dtype)


class RoundingTrace(ReferenceTrace):
    """The reference rules, with other roundings where platforms differ in them."""

    def __init__(self, rng: np.random.Generator, amount: float):
        self.rng, self.amount = rng, amount

    def process(self, primitive: Any, args: Any, params: Any) -> Any:
        out = super().process(primitive, args, params)
        if primitive.name not in ROUNDED:
            return out
        if primitive.name in PRODUCTS and self.amount == ROUNDS[0]:
            return self.lost(primitive, args[0], params, out)
        plain = primitive.name in IN_PART
        change: Any = functools.partial(self.changed, plain, primitive.name in SUMS, primitive.name == "fft")
        return [change(o) for o in out] if primitive.multiple_results else change(out)

    def changed(self, plain: bool, is_sum: bool, mixed: bool, o: Any) -> Any:
        o = np.asarray(o)
        if is_sum and o.dtype.name in ("float16", "bfloat16", "float32", "float64"):
            o = np.where(o == 0, np.copysign(np.zeros((), o.dtype), np.asarray(self.amount, o.dtype)), o)
        if plain and o.dtype.name in ("float32", "float64"):
            return o
        return nudge(self.rng, o, self.amount, mixed)

    @staticmethod
    def lost(primitive: Any, x: Any, params: Any, out: Any) -> Any:
        """A product, or NaN where one of some of its factors is too large or too small for the dtype."""
        x, out = np.asarray(x), np.asarray(out)
        if out.dtype.name not in EPSILON:
            return out
        limits, (axis, product) = finfo(out.dtype), PRODUCTS[primitive.name]
        factors, over = np.abs(x.astype(np.complex128)), params[axis]
        turned = (lambda v: np.flip(v, over)) if params.get("reverse") else lambda v: v
        large, small = [turned(product(turned(f(factors, 1)), axis=over)) for f in (np.maximum, np.minimum)]
        beyond = (large > float(limits.max)) | (small < float(limits.smallest_normal))
        return np.where(beyond & np.isfinite(out), np.asarray(np.nan, out.dtype), out)


def flushed(o: Any) -> Any:
    """With zeros in place of subnormal numbers. Those of float16 are normal in the floats it is computed in."""
    if not isinstance(o, np.ndarray | np.generic) or o.dtype.name not in EPSILON or o.dtype.name == "float16":
        return o
    if o.dtype.kind == "c":
        return np.asarray(flushed(o.real) + 1j * flushed(o.imag), o.dtype)
    least = float(finfo(o.dtype).smallest_normal)
    return np.where(np.abs(o.astype(np.float64)) < least, np.copysign(np.zeros((), o.dtype), o), o)


class FlushingTrace(ReferenceTrace):
    """The reference rules, of whose results subnormal numbers become zeros."""

    def process(self, primitive: Any, args: Any, params: Any) -> Any:
        out = super().process(primitive, args, params)
        return [flushed(o) for o in out] if primitive.multiple_results else flushed(out)
