"""Elementwise primitives. Operands have one dtype and one rank; sizes of 1 and scalars broadcast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence, TypeAlias

from ..base import dtypes
from ..base.avals import shaped, tangent_aval
from ..core.primitive import Primitive, Zero
from ..core.shardings import BILINEAR, elementwise
from ..core.wire import DTYPE, INTEGER, Wire, either, member, portable
from ..core.trace import get_aval
from ..base.errors import type_error
from ..base.host import np
from .linear import add_any, broadcast_to_rank_shape, convert, expand_dims, full, moveaxis, reshape, unbroadcast
from .rules import broadcast_shapes, check_kind, dtype_of, is_linear_arg, same_dtype, scalar_like, shape_of

if TYPE_CHECKING:
    from ..core.primitive import BatchRule, DecomposeRule, ReferenceRule, TransposeRule
    from ..base.avals import ShapedArray
    from ..core.trace import Axis
    from ..core.types import Dims, ElementType, Value

BOOL, INT, FLOAT, NUM = "biu", "iu", "fc", "iufc"
one, half = (lambda x: scalar_like(x, 1)), (lambda x: scalar_like(x, 0.5))


def elementwise_batch(primitive: Primitive) -> BatchRule:
    """Batching of an operation whose operands broadcast as `broadcast_shapes` says."""

    def batch(axis: Axis, args: Sequence[Value], dims: Dims, **params: Any) -> tuple[Value, Any]:
        ranks = [len(shape_of(x)) - (d is not None) for x, d in zip(args, dims)]
        rank = max(ranks)
        known = {d for d in dims if d is not None}
        if len(known) == 1 and all(r == rank if d is not None else r == 0 for r, d in zip(ranks, dims)):
            return primitive.bind(*args, **params), known.pop()
        new = []
        for x, d, r in zip(args, dims, ranks):
            if d is not None:
                x = moveaxis(x, d, 0)
                x = reshape(x, (axis.size,) + (1,) * rank) if r == 0 and rank else x
            elif r:
                x = expand_dims(x, (0,))
            new.append(x)
        return primitive.bind(*new, **params), 0

    return batch


def _elementwise(
    name: str,
    kinds: str,
    reference: ReferenceRule | None,
    *,
    wire: Wire,
    jvp: Sequence[Callable[..., Value] | None] | None = None,
    transpose: TransposeRule | None = None,
    out: Callable[[ElementType], ElementType] | None = None,
    arity: int = 1,
    basic: bool = True,
    decompose: DecomposeRule | None = None,
    refuse: Callable[..., str | None] = lambda dt, **params: None,
    linear: bool | str = False,
) -> Primitive:
    """A new elementwise primitive.

    `wire` says what a program from outside may contain of it (core.wire). `jvp` is None (no derivative) or one function
    for each operand: (tangent, result, *operands) -> term of the result's tangent, None for zero. `out` maps the
    operands' dtype to the result's. `refuse(dtype, **params)` returns what is wrong with an operand's dtype or a
    parameter, for conditions that `kinds` does not express. `linear` says whether sums whose terms lie on several
    devices may be operands (core.shardings).
    """
    primitive = Primitive(name, basic=basic, wire=wire)

    def abstract(*avals: ShapedArray, **params: Any) -> ShapedArray:
        if len(avals) != arity:
            raise type_error(f"{name} takes {arity} operand{'s' * (arity > 1)}, got {len(avals)}.")
        dt = same_dtype(name, avals)
        check_kind(name, avals[0], kinds)
        problem = refuse(dt, **params)
        if problem is not None:
            raise type_error(f"{name} {problem}")
        shape = broadcast_shapes(name, [a.shape for a in avals])
        return shaped(shape, out(dt) if out else dt, all([a.weak_type for a in avals]))

    def jvp_rule(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[Value, Value]:
        result = primitive.bind(*primals, **params)
        aval = tangent_aval(get_aval(result))
        if jvp is None or aval.dtype == dtypes.float0:
            return result, Zero(aval)
        total = None
        for rule, t in zip(jvp, tangents):
            term = None if rule is None or type(t) is Zero else rule(t, result, *primals, **params)
            if term is None:
                continue
            term = broadcast_to_rank_shape(term, aval.shape)
            total = term if total is None else add_any(total, term)
        return result, Zero(aval) if total is None else total

    primitive.abstract, primitive.jvp, primitive.batch, primitive.decompose = (
        abstract,
        jvp_rule,
        elementwise_batch(primitive),
        decompose,
    )
    primitive.shard, primitive.linear_in_sums = elementwise(name), linear
    if reference is not None:
        primitive.reference = reference
    if transpose is not None:
        primitive.transpose = transpose
    return primitive


# Functions that rules of others name before they are made say what they are.
Function: TypeAlias = "Callable[..., Value]"


def _fn(primitive: Primitive) -> Function:
    def f(*args: Any) -> Value:
        return primitive.bind(*args)

    f.__name__ = primitive.name
    return f


_to_bool = lambda dt: dtypes.bool_

# linear ones ---------------------------------------------------------------------------------------------------------

neg_p = _elementwise(
    "neg",
    NUM,
    lambda x: np.negative(x),
    jvp=[lambda t, o, x: neg(t)],
    transpose=lambda ct, x: [neg(ct)],
    wire=portable(),
    linear=True,
)
neg: Function = _fn(neg_p)
add_p = _elementwise(
    "add",
    NUM,
    lambda x, y: x + y,
    arity=2,
    jvp=[lambda t, o, x, y: t, lambda t, o, x, y: t],
    transpose=lambda ct, x, y: [
        unbroadcast(ct, x.aval) if is_linear_arg(x) else None,
        unbroadcast(ct, y.aval) if is_linear_arg(y) else None,
    ],
    wire=portable(),
    linear=True,
)
add: Function = _fn(add_p)
sub_p = _elementwise(
    "sub",
    NUM,
    lambda x, y: x - y,
    arity=2,
    jvp=[lambda t, o, x, y: t, lambda t, o, x, y: neg(t)],
    transpose=lambda ct, x, y: [
        unbroadcast(ct, x.aval) if is_linear_arg(x) else None,
        neg(unbroadcast(ct, y.aval)) if is_linear_arg(y) else None,
    ],
    wire=portable(),
    linear=True,
)
sub: Function = _fn(sub_p)


def _mul_transpose(ct: Value, x: Value, y: Value) -> list[Value | None]:
    if is_linear_arg(x):
        return [unbroadcast(mul(ct, y), x.aval), None]
    return [None, unbroadcast(mul(x, ct), y.aval)]


mul_p = _elementwise(
    "mul",
    NUM,
    lambda x, y: x * y,
    arity=2,
    jvp=[lambda t, o, x, y: mul(t, y), lambda t, o, x, y: mul(x, t)],
    transpose=_mul_transpose,
    wire=portable(),
    linear=BILINEAR,
)
mul: Function = _fn(mul_p)


def _div_reference(x: Value, y: Value) -> Any:
    if dtypes.is_int(x.dtype):  # XLA: x/0 is all ones, INT_MIN/-1 is INT_MIN

        def divide(a: int, b: int) -> int:
            q = abs(a) // abs(b) if b else -1
            return -q if b and (a < 0) != (b < 0) else q

        flat = [divide(int(a), int(b)) & ((1 << 64) - 1) for a, b in np.broadcast(x, y)]
        return np.array(flat, np.uint64).astype(x.dtype).reshape(np.broadcast_shapes(x.shape, y.shape))
    with np.errstate(all="ignore"):
        return x / y


div_p = _elementwise(
    "div",
    NUM,
    _div_reference,
    arity=2,
    jvp=[lambda t, o, x, y: div(t, y), lambda t, o, x, y: mul(mul(neg(t), x), integer_pow(y, -2))],
    transpose=lambda ct, x, y: [unbroadcast(div(ct, y), x.aval), None],
    wire=portable(),
)
div: Function = _fn(div_p)


def _rem_reference(x: Value, y: Value) -> Any:
    with np.errstate(all="ignore"):
        if dtypes.is_int(x.dtype):
            safe = np.where(y == 0, 1, y).astype(x.dtype)
            return np.where(y == 0, x, np.fmod(x, safe)).astype(x.dtype)
        return np.fmod(x, y)


rem_p = _elementwise(
    "rem",
    "iuf",
    _rem_reference,
    arity=2,
    jvp=[lambda t, o, x, y: t, lambda t, o, x, y: mul(neg(t), mul(sign(div(x, y)), floor(abs_(div(x, y)))))],
    wire=portable(),
)
rem: Function = _fn(rem_p)

# rounding, sign, comparisons -----------------------------------------------------------------------------------------


def _sign_reference(x: Value) -> Any:
    return x / np.where(x == 0, 1, np.abs(x)) if dtypes.is_complex(x.dtype) else np.sign(x)


sign_p = _elementwise("sign", NUM, _sign_reference, wire=portable())
sign: Function = _fn(sign_p)
floor_p = _elementwise("floor", "f", lambda x: np.floor(x), wire=portable())
floor: Function = _fn(floor_p)
ceil_p = _elementwise("ceil", "f", lambda x: np.ceil(x), wire=portable())
ceil: Function = _fn(ceil_p)


def _round_reference(x: Value, *, rounding_method: int) -> Any:
    if rounding_method == 1:
        return np.rint(x)
    return np.where(np.isfinite(x), np.sign(x) * np.floor(np.abs(x.astype(np.float64)) + 0.5), x).astype(x.dtype)


round_p = _elementwise(
    "round",
    "f",
    _round_reference,
    refuse=lambda dt, *, rounding_method: (
        None
        if rounding_method in (0, 1)
        else f"rounds halves away from zero (0) or to even (1), got {rounding_method}."
    ),
    wire=portable(rounding_method=either(INTEGER, member("RoundingMethod"))),
)


def round_(x: Value, rounding_method: int = 0) -> Value:
    """Rounds to the nearest integer; halves away from zero (0) or to even (1)."""
    return round_p.bind(x, rounding_method=int(rounding_method))


is_finite_p = _elementwise("is_finite", "f", lambda x: np.isfinite(x), out=_to_bool, wire=portable())
is_finite: Function = _fn(is_finite_p)
eq_p = _elementwise("eq", "biufc", lambda x, y: x == y, out=_to_bool, arity=2, wire=portable())
ne_p = _elementwise("ne", "biufc", lambda x, y: x != y, out=_to_bool, arity=2, wire=portable())
lt_p = _elementwise("lt", "biuf", lambda x, y: x < y, out=_to_bool, arity=2, wire=portable())
le_p = _elementwise("le", "biuf", lambda x, y: x <= y, out=_to_bool, arity=2, wire=portable())
gt_p = _elementwise("gt", "biuf", lambda x, y: x > y, out=_to_bool, arity=2, wire=portable())
ge_p = _elementwise("ge", "biuf", lambda x, y: x >= y, out=_to_bool, arity=2, wire=portable())
eq, ne, lt, le, gt, ge = map(_fn, (eq_p, ne_p, lt_p, le_p, gt_p, ge_p))


def _share(compare: Callable[..., Value], x: Value, y: Value) -> Value:
    """The derivative of max and min with respect to x: 1 if x is chosen, 1/2 if both are equal.

    The operands are compared with each other. A compiler may compute a value twice and round it differently each time;
    then neither operand would equal the result, and both derivatives would be lost.
    """
    if dtypes.is_complex(dtype_of(x)):
        first = or_(compare(real(x), real(y)), and_(eq(real(x), real(y)), compare(imag(x), imag(y))))
    else:
        first = compare(x, y)
    return select(first, one(x), select(eq(x, y), half(x), scalar_like(x, 0)))


def _extremum_jvp(compare: Callable[..., Value]) -> list[Callable[..., Value]]:
    return [lambda t, o, x, y: mul(t, _share(compare, x, y)), lambda t, o, x, y: mul(t, _share(compare, y, x))]


def extremum_reference(ufunc: Callable[..., Any], x: Value, y: Value) -> Any:
    """NumPy's maximum or minimum; of complex numbers the first by real part, then by imaginary part, and NaN is
    nothing special.
    """
    if not dtypes.is_complex(x.dtype):
        return ufunc(x, y)
    before = np.greater if ufunc is np.maximum else np.less
    return np.where(before(x.real, y.real) | (x.real == y.real) & before(x.imag, y.imag), x, y)


max_p = _elementwise(
    "max", "biufc", lambda x, y: extremum_reference(np.maximum, x, y), arity=2, jvp=_extremum_jvp(gt), wire=portable()
)
min_p = _elementwise(
    "min", "biufc", lambda x, y: extremum_reference(np.minimum, x, y), arity=2, jvp=_extremum_jvp(lt), wire=portable()
)
max_, min_ = map(_fn, (max_p, min_p))

# logic ---------------------------------------------------------------------------------------------------------------

not_p = _elementwise("not", BOOL, lambda x: np.invert(x), wire=portable())
and_p = _elementwise("and", BOOL, lambda x, y: x & y, arity=2, wire=portable())
or_p = _elementwise("or", BOOL, lambda x, y: x | y, arity=2, wire=portable())
xor_p = _elementwise("xor", BOOL, lambda x, y: x ^ y, arity=2, wire=portable())
not_, and_, or_, xor = map(_fn, (not_p, and_p, or_p, xor_p))


# powers --------------------------------------------------------------------------------------------------------------


def _integer_pow_reference(x: Value, *, y: Value) -> Any:
    with np.errstate(all="ignore"):
        if dtypes.is_int(x.dtype):  # in integers of any size: the exponent may be none of the dtype's
            count = 1 << dtypes.bits(x.dtype)
            below = count >> 1 if dtypes.is_signed(x.dtype) else 0
            return np.array([(pow(int(v), y, count) + below) % count - below for v in x.ravel()], x.dtype).reshape(
                x.shape
            )
        wide = x.astype(np.complex128 if dtypes.is_complex(x.dtype) else np.float64)
        if abs(y) <= 1 << 53:
            return (wide**y).astype(x.dtype)
        # no float has such an exponent: an odd one would be rounded to an even one, and lose the sign
        result, power, n = np.ones_like(wide), wide, abs(y)
        while n:
            result = result * power if n & 1 else result
            power, n = power * power, n >> 1
        return (1 / result if y < 0 else result).astype(x.dtype)


def _integer_pow_decompose(x: Value, *, y: Value) -> Value:
    """Repeated squaring, as XLA does it."""
    if y == 0:
        return full(shape_of(x), 1, dtype_of(x))
    result, power, n = None, x, abs(y)
    while n:
        if n & 1:
            result = power if result is None else mul(result, power)
        n >>= 1
        if n:
            power = mul(power, power)
    return div(scalar_like(x, 1), result) if y < 0 else result


def _integer_pow_jvp(t: Value, o: Value, x: Value, *, y: Value) -> Value | None:
    if y == 0:
        return None
    return mul(t, mul(scalar_like(x, y), x if y == 2 else integer_pow(x, y - 1)))


def _no_integer_pow(dt: ElementType, *, y: int) -> str | None:
    return (
        f"of integers can't be negative, got y={y}. Convert x to a float first."
        if y < 0 and not dtypes.is_inexact(dt)
        else None
    )


integer_pow_p = _elementwise(
    "integer_pow",
    NUM,
    _integer_pow_reference,
    basic=False,
    jvp=[_integer_pow_jvp],
    decompose=_integer_pow_decompose,
    refuse=_no_integer_pow,
    wire=portable(y=INTEGER),
)


def integer_pow(x: Value, y: int) -> Value:
    """`x` to the static integer power `y`."""
    return x if y == 1 else integer_pow_p.bind(x, y=int(y))


square_p = _elementwise(
    "square",
    NUM,
    lambda x: x * x,
    basic=False,
    jvp=[lambda t, o, x: mul(t, mul(scalar_like(x, 2), x))],
    decompose=lambda x: mul(x, x),
    wire=portable(),
)
square: Function = _fn(square_p)


nextafter_p = _elementwise("nextafter", "f", lambda x, y: np.nextafter(x, y), arity=2, wire=portable())
nextafter: Function = _fn(nextafter_p)

# complex -------------------------------------------------------------------------------------------------------------


def _abs_jvp(t: Value, o: Value, x: Value) -> Value:
    if dtypes.is_complex(dtype_of(x)):
        safe = select(eq(o, scalar_like(o, 0)), full((), 1, dtype_of(o)), o)
        return real(mul(t, div(conj(x), convert(safe, dtype_of(x)))))
    return mul(t, sign(x))


abs_p = _elementwise(
    "abs",
    NUM,
    lambda x: np.abs(x),
    jvp=[_abs_jvp],
    out=lambda dt: dtypes.real_of(dt) if dtypes.is_complex(dt) else dt,
    wire=portable(),
)
abs_: Function = _fn(abs_p)


complex_p = _elementwise(
    "complex",
    "f",
    lambda x, y: x + 1j * y.astype(np.result_type(y.dtype, np.complex64)),
    arity=2,
    out=lambda dt: dtypes.complex_of(dt),
    refuse=lambda dt: (
        None
        if dt in (dtypes.float32, dtypes.float64)
        else f"does not accept dtype {dtypes.name(dt)}: it takes float32, float64."
    ),
    jvp=[
        lambda t, o, x, y: complex_(t, full(shape_of(t), 0, dtype_of(t))),
        lambda t, o, x, y: complex_(full(shape_of(t), 0, dtype_of(t)), t),
    ],
    transpose=lambda ct, x, y: [
        unbroadcast(real(ct), x.aval) if is_linear_arg(x) else None,
        unbroadcast(imag(neg(ct)), y.aval) if is_linear_arg(y) else None,
    ],
    wire=portable(),
)
complex_: Function = _fn(complex_p)
real_p = _elementwise(
    "real",
    "c",
    lambda x: np.real(x),
    out=dtypes.real_of,
    jvp=[lambda t, o, x: real(t)],
    transpose=lambda ct, x: [complex_(ct, full(shape_of(ct), 0, dtype_of(ct)))],
    wire=portable(),
)
imag_p = _elementwise(
    "imag",
    "c",
    lambda x: np.imag(x),
    out=dtypes.real_of,
    jvp=[lambda t, o, x: imag(t)],
    transpose=lambda ct, x: [complex_(full(shape_of(ct), 0, dtype_of(ct)), neg(ct))],
    wire=portable(),
)
real: Function = _fn(real_p)
imag: Function = _fn(imag_p)


def _conj_abstract(x: ShapedArray, *, input_dtype: ElementType) -> ShapedArray:
    check_kind("conj", x, "fc")
    if x.dtype != input_dtype or dtypes.is_float(x.dtype) and x.dtype not in (dtypes.float32, dtypes.float64):
        raise type_error(
            f"conj does not accept dtype {dtypes.name(x.dtype)} as {dtypes.name(input_dtype)}: it takes complex64,"
            " complex128, float32, float64."
        )
    return shaped(x.shape, x.dtype if dtypes.is_complex(x.dtype) else dtypes.complex_of(x.dtype), x.weak_type)


def _conj_transpose(ct: Value, x: Value, *, input_dtype: ElementType) -> list[Value | None]:
    out = conj(ct)
    return [out if dtypes.is_complex(input_dtype) else real(out)]


conj_p = _elementwise(
    "conj",
    "fc",
    lambda x, *, input_dtype: np.conj(x),
    jvp=[lambda t, o, x, *, input_dtype: conj(t)],
    transpose=_conj_transpose,
    wire=portable(input_dtype=DTYPE),
)
conj_p.abstract = _conj_abstract


def conj(x: Value) -> Value:
    """The complex conjugate."""
    return conj_p.bind(x, input_dtype=dtype_of(x))


# select, clamp -------------------------------------------------------------------------------------------------------

select_n_p = Primitive("select_n", wire=portable())


def _select_abstract(which: ShapedArray, *cases: Any) -> ShapedArray:
    if not cases:
        raise type_error("select_n must have at least one case.")
    dt = same_dtype("select_n cases", cases)
    if any(c.shape != cases[0].shape for c in cases):
        raise type_error(f"select_n cases must have the same shapes, got {[c.shape for c in cases]}.")
    if which.shape not in ((), cases[0].shape):
        raise type_error(
            f"select_n `which` must be scalar or have the shape of the cases, got {which.shape} and {cases[0].shape}."
        )
    if not dtypes.is_bool(which.dtype) and which.dtype != dtypes.int32:
        raise type_error(f"select_n `which` must have boolean or int32 type, got {dtypes.name(which.dtype)}.")
    if dtypes.is_bool(which.dtype) and len(cases) > 2:
        raise type_error(f"with boolean `which` select_n takes two cases, got {len(cases)}.")
    return shaped(cases[0].shape, dt, all(c.weak_type for c in cases))


def _select_reference(which: Value, *cases: Any) -> Any:
    which = np.broadcast_to(np.clip(which.astype(np.int32), 0, len(cases) - 1), cases[0].shape)
    out = np.array(cases[0])
    for i, case in enumerate(cases[1:], 1):
        out = np.where(which == i, case, out)
    return out


def _select_jvp(primals: Sequence[Value], tangents: Sequence[Value]) -> tuple[Value, Value]:
    which, *cases = primals
    out = select_n_p.bind(which, *cases)
    ts = tangents[1:]
    if all(type(t) is Zero for t in ts):
        return out, Zero(tangent_aval(get_aval(out)))
    weak = all([get_aval(t).weak_type for t in ts if type(t) is not Zero])
    return out, select_n_p.bind(
        which, *[full(shape_of(c), 0, dtype_of(out), weak) if type(t) is Zero else t for c, t in zip(cases, ts)]
    )


def _select_transpose(ct: Value, which: Value, *cases: Any) -> list[Value | None]:
    zero = full(shape_of(ct), 0, dtype_of(ct), get_aval(ct).weak_type)
    return [None] + [
        select_n_p.bind(which, *[ct if i == j else zero for j in range(len(cases))]) if is_linear_arg(c) else None
        for i, c in enumerate(cases)
    ]


def _select_batch(axis: Axis, args: Sequence[Value], dims: Dims) -> tuple[Value, Any]:
    which, *cases = args
    new = [moveaxis(c, d, 0) if d is not None else None for c, d in zip(cases, dims[1:])]
    shape = (
        axis.size,
        *[
            s
            for c, d in zip(cases, dims[1:])
            for s in [shape_of(c) if d is None else shape_of(c)[:d] + shape_of(c)[d + 1 :]]
        ][0],
    )
    new = [broadcast_to_rank_shape(expand_dims(c, (0,)), shape) if n is None else n for c, n in zip(cases, new)]
    if dims[0] is None:
        which = which if not shape_of(which) else broadcast_to_rank_shape(expand_dims(which, (0,)), shape)
    else:
        which = moveaxis(which, dims[0], 0)
        if len(shape_of(which)) != len(shape):
            which = broadcast_to_rank_shape(reshape(which, (axis.size,) + (1,) * (len(shape) - 1)), shape)
    return select_n_p.bind(which, *new), 0


select_n_p.abstract, select_n_p.reference, select_n_p.jvp = _select_abstract, _select_reference, _select_jvp
select_n_p.transpose, select_n_p.batch = _select_transpose, _select_batch
select_n_p.shard = elementwise("select_n")


def select(which: Value, on_true: Value, on_false: Value) -> Value:
    """`on_true` where `which`, else `on_false`; scalar cases are broadcast to the shape of `which`."""
    shape = broadcast_shapes("select", [shape_of(which), shape_of(on_true), shape_of(on_false)])
    cases = [broadcast_to_rank_shape(c, shape) for c in (on_false, on_true)]
    return select_n_p.bind(which if shape_of(which) == () else broadcast_to_rank_shape(which, shape), *cases)


clamp_p = Primitive("clamp", wire=portable())


def _clamp_abstract(lo: ShapedArray, x: ShapedArray, hi: ShapedArray) -> ShapedArray:
    dt = same_dtype("clamp", [lo, x, hi])
    check_kind("clamp", x, "biufc")
    for name, bound in (("min", lo), ("max", hi)):
        if bound.shape not in ((), x.shape):
            raise type_error(f"clamp requires {name}.shape to be () or operand.shape {x.shape}, got {bound.shape}.")
    return shaped(x.shape, dt, x.weak_type)


def _clamp_jvp(primals: Sequence[Value], tangents: Sequence[Value]) -> tuple[Value, Value]:
    lo, x, hi = primals
    out = clamp_p.bind(lo, x, hi)
    aval = tangent_aval(get_aval(out))
    zero = full(aval.shape, 0, aval.dtype) if aval.dtype != dtypes.float0 else None
    terms = []
    masks = ((lambda: and_(gt(lo, x), lt(lo, hi))), (lambda: and_(gt(x, lo), lt(x, hi))), (lambda: lt(hi, x)))
    for mask, t in zip(masks, tangents):
        if type(t) is not Zero:
            terms.append(
                select(broadcast_to_rank_shape(mask(), aval.shape), broadcast_to_rank_shape(t, aval.shape), zero)
            )
    total = Zero(aval)
    for term in terms:
        total = term if type(total) is Zero else add_any(total, term)
    return out, total


clamp_p.abstract, clamp_p.jvp = _clamp_abstract, _clamp_jvp
clamp_p.reference = lambda lo, x, hi: (  # complex numbers by their real parts: docs/decisions/027
    np.where((m := np.asarray(np.where(lo.real >= x.real, lo, x))).real <= hi.real, m, hi)
    if np.iscomplexobj(x)
    else np.minimum(np.maximum(x, lo), hi)
)


def _clamp_batch(axis: Axis, args: Sequence[Value], dims: Dims) -> tuple[Value, Any]:
    lo, x, hi = args
    rank = len(shape_of(x)) - (dims[1] is not None)
    if dims[1] is not None:
        x = moveaxis(x, dims[1], 0)
    else:
        x = broadcast_to_rank_shape(expand_dims(x, (0,)), (axis.size, *shape_of(x)))
    bounds = []
    for b, d in ((lo, dims[0]), (hi, dims[2])):
        if d is not None:
            b = moveaxis(b, d, 0)
            b = reshape(b, (axis.size,) + (1,) * rank) if len(shape_of(b)) == 1 else b
            b = broadcast_to_rank_shape(b, shape_of(x))
        elif shape_of(b):
            b = broadcast_to_rank_shape(expand_dims(b, (0,)), shape_of(x))
        bounds.append(b)
    return clamp_p.bind(bounds[0], x, bounds[1]), 0


clamp_p.batch = _clamp_batch
clamp_p.shard = elementwise("clamp")


def clamp(lo: Value, x: Value, hi: Value) -> Value:
    return clamp_p.bind(lo, x, hi)
