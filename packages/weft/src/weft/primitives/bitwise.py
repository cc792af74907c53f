"""Operations on the bits of numbers: shifts, counts, the high word of a product, comparisons in the total order,
bitcasts, and precision that is cut off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..base import dtypes
from ..base.avals import shaped, tangent_aval
from ..core.primitive import Primitive, Zero
from ..core.shardings import parts_of
from ..core.wire import DTYPE, INTEGER, portable
from ..core.trace import get_aval
from ..base.errors import at_user_line, type_error
from ..base.host import np
from .linear import broadcast_to_rank_shape, convert, full, moveaxis
from .rules import dtype_of, scalar_like, shape_of
from .elementwise import Function, INT, _elementwise, _fn, _to_bool, add, and_, eq, le, lt, mul, select, sub, xor

if TYPE_CHECKING:
    from ..base.avals import ShapedArray
    from ..core.types import ElementType, Value


def _shift(f: Callable[..., Any]) -> Callable[..., Any]:
    """XLA's shifts: an amount outside [0, bits) gives 0, or the sign. Numbers of fewer than 8 bits are shifted at
    the top of a byte.
    """

    def reference(x: Value, y: Value) -> Any:
        bits = dtypes.bits(x.dtype)
        spare = max(0, 8 - bits)
        unsigned = np.dtype(f"uint{bits + spare}")
        if not spare:
            amount = y.astype(unsigned)
            return f(x, np.minimum(amount, bits - 1).astype(x.dtype), amount >= bits, unsigned)
        byte = np.dtype("int8" if dtypes.is_signed(x.dtype) else "uint8")
        amount = y.astype(np.int8).view(unsigned) & unsigned.type((1 << bits) - 1)
        moved = f(
            x.astype(byte) << byte.type(spare), np.minimum(amount, bits - 1).astype(byte), amount >= bits, unsigned
        )
        return (moved >> byte.type(spare)).astype(x.dtype)

    return reference


shift_left_p = _elementwise(
    "shift_left", INT, _shift(lambda x, y, over, u: np.where(over, 0, x << y).astype(x.dtype)), arity=2, wire=portable()
)
shift_right_logical_p = _elementwise(
    "shift_right_logical",
    INT,
    _shift(lambda x, y, over, u: np.where(over, 0, x.view(u) >> y.view(u)).astype(u).view(x.dtype)),
    arity=2,
    wire=portable(),
)
shift_right_arithmetic_p = _elementwise(
    "shift_right_arithmetic",
    INT,
    _shift(
        lambda x, y, over, u: (
            x.view(np.dtype(f"int{8 * x.dtype.itemsize}")) >> y.view(np.dtype(f"int{8 * x.dtype.itemsize}"))
        ).view(x.dtype)
    ),
    arity=2,
    wire=portable(),
)
shift_left, shift_right_logical, shift_right_arithmetic = map(
    _fn, (shift_left_p, shift_right_logical_p, shift_right_arithmetic_p)
)


def _popcount(x: Value) -> Value:
    return np.vectorize(lambda v: bin(int(v) & ((1 << dtypes.bits(x.dtype)) - 1)).count("1"), otypes=[x.dtype])(x)


def _clz(x: Value) -> Value:
    bits = dtypes.bits(x.dtype)
    return np.vectorize(lambda v: bits - (int(v) & ((1 << bits) - 1)).bit_length(), otypes=[x.dtype])(x)


population_count_p = _elementwise("population_count", INT, _popcount, wire=portable())
clz_p = _elementwise("clz", INT, _clz, wire=portable())
population_count, clz = _fn(population_count_p), _fn(clz_p)


def _mulhi_reference(x: Value, y: Value) -> Any:
    bits = dtypes.bits(x.dtype)
    x, y = np.broadcast_arrays(x, y)
    wide = np.vectorize(lambda a, b: (int(a) * int(b)) >> bits, otypes=[object])(x, y) if x.size else x
    return np.asarray(wide).astype(x.dtype)


def _mulhi_decompose(x: Value, y: Value) -> Value:
    """The four products of half words; a negative factor of n bits, read as unsigned, is too large by 2**n."""
    dt, bits = dtype_of(x), dtypes.bits(dtype_of(x))
    unsigned = dtypes.dtype(f"uint{bits}")
    u, v = convert(x, unsigned), convert(y, unsigned)
    half, mask = scalar_like(u, bits // 2), scalar_like(u, (1 << bits // 2) - 1)
    (u1, u0), (v1, v0) = [(shift_right_logical(w, half), and_(w, mask)) for w in (u, v)]
    middle = add(mul(u1, v0), shift_right_logical(mul(u0, v0), half))
    cross = add(mul(u0, v1), and_(middle, mask))
    high = convert(add(add(mul(u1, v1), shift_right_logical(middle, half)), shift_right_logical(cross, half)), dt)
    if dtypes.is_unsigned(dt):
        return high
    zero, shape = full((), 0, dt), shape_of(high)
    for a, b in ((x, y), (y, x)):
        high = sub(high, broadcast_to_rank_shape(select(lt(a, zero), broadcast_to_rank_shape(b, shape), zero), shape))
    return high


mulhi_p = _elementwise(
    "mulhi", INT, _mulhi_reference, arity=2, basic=False, decompose=_mulhi_decompose, wire=portable()
)
mulhi: Function = _fn(mulhi_p)


def in_total_order(x: Value) -> Value:
    """A float's bits as the integer that orders as IEEE's total order does: -NaN, -inf, …, -0, 0, …, inf, NaN."""
    if not dtypes.is_float(dtype_of(x)):
        return x
    return _negative_turned(bitcast(x, dtypes.dtype(f"int{dtypes.bits(dtype_of(x))}")))


def from_total_order(x: Value, dtype: ElementType) -> Value:
    """The values of a dtype of which `x` is what `in_total_order` gives."""
    return bitcast(_negative_turned(x), dtype) if dtypes.is_float(dtype) else x


def _negative_turned(word: Value) -> Value:
    """Signed integers, of which negative ones have all bits but the sign turned: its own inverse."""
    bits = dtypes.bits(dtype_of(word))
    largest = scalar_like(word, (1 << (bits - 1)) - 1)
    return xor(word, and_(shift_right_arithmetic(word, scalar_like(word, bits - 1)), largest))


def total_order(x: Value) -> Any:
    """`in_total_order` of a NumPy array."""
    if not dtypes.is_float(x.dtype):
        return x
    bits, stored = dtypes.bits(x.dtype), 8 * x.dtype.itemsize
    word = x.view(np.dtype(f"int{stored}")) << (stored - bits)
    return np.where(word < 0, word ^ np.array((1 << (stored - 1)) - 1, word.dtype), word)


def _total(name: str, reference: Callable[..., Any], compare: Callable[..., Any]) -> Primitive:
    return _elementwise(
        name,
        "biuf",
        lambda x, y: reference(total_order(x), total_order(y)),
        out=_to_bool,
        arity=2,
        basic=False,
        decompose=lambda x, y: compare(in_total_order(x), in_total_order(y)),
        wire=portable(),
    )


eq_to_p = _total("eq_to", lambda x, y: x == y, eq)
lt_to_p = _total("lt_to", lambda x, y: x < y, lt)
le_to_p = _total("le_to", lambda x, y: x <= y, le)


# bitcast, reduce_precision -------------------------------------------------------------------------------------------

bitcast_convert_type_p = Primitive("bitcast_convert_type", wire=portable(new_dtype=DTYPE))


def _bitcast_abstract(x: ShapedArray, *, new_dtype: ElementType) -> ShapedArray:
    if x.dtype == new_dtype:
        return shaped(x.shape, new_dtype)
    for dt in (x.dtype, new_dtype):
        if dtypes.kind(dt) not in "iuf":
            raise type_error(
                f"bitcast_convert_type does not convert between {dtypes.name(x.dtype)} and {dtypes.name(new_dtype)};"
                " use convert_element_type."
            )
    old, new = dtypes.bits(x.dtype), dtypes.bits(new_dtype)
    if old == new:
        return shaped(x.shape, new_dtype)
    if max(old, new) % min(old, new):
        raise type_error(
            f"bitcast_convert_type from {dtypes.name(x.dtype)} to {dtypes.name(new_dtype)}: {old} bits are not a"
            f" multiple of {new}, nor {new} of {old}."
        )
    if old > new:
        return shaped((*x.shape, old // new), new_dtype)
    if not x.shape or x.shape[-1] * old != new:
        raise ValueError(
            f"bitcast_convert_type from {dtypes.name(x.dtype)}{list(x.shape)} to {dtypes.name(new_dtype)} needs a last"
            f" axis of size {new // old}."
        )
    return shaped(x.shape[:-1], new_dtype)


def _bitcast_reference(x: Value, *, new_dtype: ElementType) -> Any:
    shape = _bitcast_abstract(shaped(x.shape, x.dtype), new_dtype=new_dtype).shape
    if min(dtypes.bits(x.dtype), dtypes.bits(new_dtype)) < 8:  # of which the host keeps each in a byte
        return _from_bits(_to_bits(x), new_dtype, shape)
    return np.frombuffer(x.tobytes(), new_dtype).reshape(shape)


def _to_bits(x: Value) -> Any:
    """All bits of an array, the lowest of each element first."""
    return np.unpackbits(np.frombuffer(x.tobytes(), np.uint8).reshape(x.size, x.itemsize), axis=1, bitorder="little")[
        :, : dtypes.bits(x.dtype)
    ].ravel()


def _from_bits(bits: Any, dt: ElementType, shape: Sequence[Any]) -> Any:
    width = dtypes.bits(dt)
    elements = bits.reshape(-1, width)
    if width < 8:
        fill = elements[:, -1:] if dtypes.is_int(dt) and dtypes.is_signed(dt) else np.zeros_like(elements[:, :1])
        elements = np.concatenate([elements, np.repeat(fill, 8 - width, 1)], 1)
    return np.frombuffer(np.packbits(elements, axis=1, bitorder="little").tobytes(), dt).reshape(shape)


def _bitcast_jvp(primals: Sequence[Value], tangents: Sequence[Value], *, new_dtype: ElementType) -> tuple[Value, Value]:
    out = bitcast_convert_type_p.bind(*primals, new_dtype=new_dtype)
    return out, Zero(tangent_aval(get_aval(out)))


bitcast_convert_type_p.abstract, bitcast_convert_type_p.reference, bitcast_convert_type_p.jvp = (
    _bitcast_abstract,
    _bitcast_reference,
    _bitcast_jvp,
)
bitcast_convert_type_p.batch = lambda axis, args, dims, **params: (
    bitcast_convert_type_p.bind(moveaxis(args[0], dims[0], 0), **params),
    0,
)
bitcast_convert_type_p.shard = lambda params, ins, outs: [
    (*parts_of(ins[0]), None)[: len(outs[0].shape)]  # the axis of the parts of a number is whole
]


def bitcast(x: Value, dtype: ElementType) -> Value:
    return bitcast_convert_type_p.bind(x, new_dtype=dtypes.canonicalize(dtype))


def _no_precision(dt: ElementType, *, exponent_bits: int, mantissa_bits: int) -> str | None:
    if not 1 <= exponent_bits < 1 << 31 or not 0 <= mantissa_bits < 1 << 31:
        raise ValueError(
            at_user_line(
                f"reduce_precision: exponent_bits must be positive and mantissa_bits not negative, got {exponent_bits}"
                f" and {mantissa_bits}."
            )
        )
    return None


reduce_precision_p: Primitive = _elementwise(
    "reduce_precision",
    "f",
    None,
    refuse=_no_precision,
    jvp=[lambda t, o, x, **kw: reduce_precision_p.bind(t, **kw)],
    transpose=lambda ct, x, **kw: [reduce_precision_p.bind(ct, **kw)],
    wire=portable(exponent_bits=INTEGER, mantissa_bits=INTEGER),
)


def _reduce_precision_reference(x: Value, *, exponent_bits: int, mantissa_bits: int) -> Any:
    exponent_bits, mantissa_bits = min(exponent_bits, 12), min(mantissa_bits, 60)  # more than float64 has
    with np.errstate(all="ignore"):
        m, e = np.frexp(x.astype(np.float64))
        scaled = np.ldexp(np.rint(np.ldexp(m, mantissa_bits + 1)), e - mantissa_bits - 1)
        bias = (1 << (exponent_bits - 1)) - 1
        big = np.ldexp(2.0 - 2.0**-mantissa_bits, bias)
        scaled = np.where(np.abs(scaled) > big, np.copysign(np.inf, x), scaled)
        scaled = np.where(np.abs(scaled) < np.ldexp(1.0, 1 - bias), np.copysign(0.0, x), scaled)
        return np.where(np.isfinite(x), scaled, x).astype(x.dtype)


reduce_precision_p.reference = _reduce_precision_reference
