"""Elementwise primitives."""

from __future__ import annotations

from weft.base import dtypes, limits
from weft.base.avals import shaped
from weft.primitives.transcendental import AccuracyMode

from .registry import elementwise, rule

# Primitives with an operation of the same meaning.
_DIRECT = {
    "neg": "stablehlo.negate",
    "floor": "stablehlo.floor",
    "ceil": "stablehlo.ceil",
    "is_finite": "stablehlo.is_finite",
    "exp": "stablehlo.exponential",
    "log": "stablehlo.log",
    "expm1": "stablehlo.exponential_minus_one",
    "log1p": "stablehlo.log_plus_one",
    "tanh": "stablehlo.tanh",
    "logistic": "stablehlo.logistic",
    "sin": "stablehlo.sine",
    "cos": "stablehlo.cosine",
    "tan": "stablehlo.tan",
    "sqrt": "stablehlo.sqrt",
    "rsqrt": "stablehlo.rsqrt",
    "cbrt": "stablehlo.cbrt",
    "asin": "chlo.asin",
    "acos": "chlo.acos",
    "atan": "chlo.atan",
    "sinh": "chlo.sinh",
    "cosh": "chlo.cosh",
    "asinh": "chlo.asinh",
    "acosh": "chlo.acosh",
    "atanh": "chlo.atanh",
    "erf": "chlo.erf",
    "erfc": "chlo.erfc",
    "erf_inv": "chlo.erf_inv",
    "lgamma": "chlo.lgamma",
    "digamma": "chlo.digamma",
    "polygamma": "chlo.polygamma",
    "zeta": "chlo.zeta",
    "bessel_i1e": "chlo.bessel_i1e",
    "real": "stablehlo.real",
    "imag": "stablehlo.imag",
    "not": "stablehlo.not",
    "add": "stablehlo.add",
    "add_any": "stablehlo.add",
    "sub": "stablehlo.subtract",
    "mul": "stablehlo.multiply",
    "and": "stablehlo.and",
    "or": "stablehlo.or",
    "xor": "stablehlo.xor",
    "shift_left": "stablehlo.shift_left",
    "shift_right_logical": "stablehlo.shift_right_logical",
    "shift_right_arithmetic": "stablehlo.shift_right_arithmetic",
    "atan2": "stablehlo.atan2",
    "nextafter": "chlo.next_after",
    "complex": "stablehlo.complex",
}


def _direct(op: str):
    def lower(b, ins, outs, *operands, accuracy=None, **params):
        return b.op(op, operands, b.type(outs[0]), _accuracy(b, accuracy))

    return in_float32(lower) if op.startswith("chlo.") and op != "chlo.next_after" else lower


def in_float32(lower):
    """A rule that computes in float32 for floats of 8 bits and fewer: CHLO lacks some of these functions, and is too
    inaccurate for others.
    """

    def wider(b, ins, outs, *operands, **params):
        out = outs[0]
        if not dtypes.is_float(out.dtype) or dtypes.bits(out.dtype) > 8:
            return lower(b, ins, outs, *operands, **params)
        wide = [a.update(shape=tuple(v.type.shape), dtype=dtypes.float32) for a, v in zip(ins, operands)]
        made = lower(
            b,
            wide,
            [out.update(dtype=dtypes.float32)],
            *[b.convert(v, a.shape, dtypes.float32) for v, a in zip(operands, wide)],
            **params,
        )
        return b.convert(made, out.shape, out.dtype)

    return wider


def _by_parts(name: str, lower):
    """The rule of a function, complex numbers by their parts: XLA makes sines and cosines of exponentials, of which
    next to zeros nothing is left.
    """

    def rule(b, ins, outs, x, **params):
        out = outs[0]
        if not dtypes.is_complex(out.dtype):
            return lower(b, ins, outs, x, **params)
        part = shaped(out.shape, dtypes.real_of(out.dtype))
        of = lambda op, *operands: b.op(op, list(operands), b.type(part))
        re, im = of("stablehlo.real", x), of("stablehlo.imag", x)
        turned = name in ("sin", "cos")
        angle, size = (re, im) if turned else (im, re)
        sine, cosine, zero = (
            of("stablehlo.sine", angle),
            of("stablehlo.cosine", angle),
            b.splat(0, part.dtype, part.shape),
        )
        sinh, cosh, scale = _hyperbolic(b, size, part)

        def product(x, y):
            """Multiplies by the scale. For zero and infinity the product is zero, with the product of the signs."""
            pick = lambda which, v, w: b.select(which, v, w, part.shape, part.dtype)
            plain = of("stablehlo.multiply", x, y)
            none = pick(
                b.compare("EQ", y, zero, part),
                plain,
                pick(b.compare("LT", y, zero, part), of("stablehlo.negate", x), x),
            )
            return pick(b.compare("EQ", x, zero, part), none, of("stablehlo.multiply", plain, scale))

        if name in ("sin", "sinh"):
            parts = (
                (product(sine, cosh), product(sinh, cosine)) if turned else (product(sinh, cosine), product(sine, cosh))
            )
        else:
            second = product(sine, sinh)
            parts = (product(cosine, cosh), of("stablehlo.negate", second) if turned else second)
        return b.op("stablehlo.complex", list(parts), b.type(out))

    return rule


def _hyperbolic(b, x, aval):
    """(sinh x, cosh x) of real numbers, and a common factor, which alone may be infinite. CHLO's functions lose up to
    24 ulp in the exponent.
    """
    of = lambda op, *operands: b.op(f"stablehlo.{op}", list(operands), b.type(aval))
    pick = lambda which, v, w: b.select(which, v, w, aval.shape, aval.dtype)
    number = lambda value: b.splat(value, aval.dtype, aval.shape)
    one, half, size = number(1), number(0.5), of("abs", x)
    far = b.compare("GT", size, number(40.0), aval)  # there both are half of an exponential
    root = of("exponential", of("multiply", size, half))
    less = of("exponential_minus_one", pick(far, one, size))
    more = of("add", less, one)
    sinh = of("multiply", of("add", less, of("divide", less, more)), half)
    cosh = of("multiply", of("add", more, of("divide", one, more)), half)
    sinh, cosh = [pick(far, of("multiply", root, half), v) for v in (sinh, cosh)]
    negative, nothing = b.compare("LT", x, number(0), aval), b.compare("EQ", x, number(0), aval)
    return pick(nothing, x, pick(negative, of("negate", sinh), sinh)), cosh, pick(far, root, one)


def larger(b, x, y, aval, direction: str):
    """The complex number with the larger (smaller) real part, or, if those are equal, imaginary part."""
    part = shaped(aval.shape, dtypes.real_of(aval.dtype))
    (xr, yr), (xi, yi) = [[b.op(f"stablehlo.{name}", [v], b.type(part)) for v in (x, y)] for name in ("real", "imag")]
    boolean = b.tensor(aval.shape, dtypes.bool_)
    tie = b.op("stablehlo.and", [b.compare("EQ", xr, yr, part), b.compare(direction, xi, yi, part)], boolean)
    wins = b.op("stablehlo.or", [b.compare(direction, xr, yr, part), tie], boolean)
    return b.select(wins, x, y, aval.shape, aval.dtype)


def _extremum(op: str, direction: str):
    def lower(b, ins, outs, x, y):
        return (
            larger(b, x, y, outs[0], direction)
            if dtypes.is_complex(outs[0].dtype)
            else b.op(op, [x, y], b.type(outs[0]))
        )

    return lower


elementwise("max")(_extremum("stablehlo.maximum", "GT"))
elementwise("min")(_extremum("stablehlo.minimum", "LT"))


def _accuracy(b, accuracy) -> dict | None:
    """The accuracy for XLA: a mode, or a tolerance."""
    if accuracy is None:
        return None
    if isinstance(accuracy, AccuracyMode):
        return {
            "result_accuracy": b.attr(
                f"#stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<{accuracy.name}>>"
            )
        }
    atol, rtol = (f"{v:.16e}" for v in (accuracy.atol, accuracy.rtol))
    return {
        "result_accuracy": b.attr(
            f"#stablehlo.result_accuracy<atol = {atol}, rtol = {rtol}, ulps = {accuracy.ulps}, "
            "mode = #stablehlo.result_accuracy_mode<TOLERANCE>>"
        )
    }


for _name, _op in _DIRECT.items():
    elementwise(_name)(_by_parts(_name, _direct(_op)) if _name in ("sin", "cos", "sinh", "cosh") else _direct(_op))


def _division(op: str):
    """The rule of `div` or `rem`. jaxlib folds constants before XLA sees them, and a constant integer divisor of zero
    would end the process there. The rule prevents such divisors.
    """

    def lower(b, ins, outs, x, y):
        out = outs[0]
        if not dtypes.is_int(out.dtype) or b.nonzero(y):
            return b.op(op, [x, y], b.type(out))
        number = lambda value: b.splat(value, out.dtype, out.shape)
        none = b.compare("EQ", y, number(0), out)
        made = b.op(op, [x, b.select(none, number(1), y, out.shape, out.dtype)], b.type(out))
        of_none = (
            x
            if op == "stablehlo.remainder"
            else number(-1 if dtypes.is_signed(out.dtype) else limits.iinfo(out.dtype).max)
        )
        return b.select(none, of_none, made, out.shape, out.dtype)

    return lower


elementwise("div")(_division("stablehlo.divide"))
elementwise("rem")(_division("stablehlo.remainder"))


def _comparison(direction: str):
    def lower(b, ins, outs, x, y):
        return b.compare(direction, x, y, shaped(outs[0].shape, ins[0].dtype))

    return lower


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    elementwise(_name)(_comparison(_name.upper()))


@elementwise("exp2")
@in_float32
def _exp2(b, ins, outs, x, *, accuracy=None):
    # exp(x log 2), as XLA has no power of two
    aval = outs[0]
    log2 = b.splat(0.6931471805599453, aval.dtype, aval.shape)
    return b.op(
        "stablehlo.exponential",
        [b.op("stablehlo.multiply", [x, log2], b.type(aval))],
        b.type(aval),
        _accuracy(b, accuracy),
    )


@elementwise("square")
def _square(b, ins, outs, x):
    return b.op("stablehlo.multiply", [x, x], b.type(outs[0]))


@elementwise("abs")
def _abs(b, ins, outs, x):
    return x if dtypes.is_unsigned(ins[0].dtype) else b.op("stablehlo.abs", [x], b.type(outs[0]))


def _of_bits(op: str):
    """A rule on unsigned numbers. For negative numbers, XLA counts leading zeros of constants wrongly, and counts the
    bits of the byte in which it stores an int4.
    """

    def lower(b, ins, outs, x):
        aval = outs[0]
        unsigned = b.type(
            shaped(aval.shape, dtypes.dtype(dtypes.name(aval.dtype).removeprefix("u").replace("int", "uint")))
        )
        count = b.op(op, [b.op("stablehlo.bitcast_convert", [x], unsigned)], unsigned)
        return b.op("stablehlo.bitcast_convert", [count], b.type(aval))

    return lower


elementwise("clz")(_of_bits("stablehlo.count_leading_zeros"))
elementwise("population_count")(_of_bits("stablehlo.popcnt"))


@elementwise("sign")
def _sign(b, ins, outs, x):
    aval = outs[0]
    if not dtypes.is_unsigned(aval.dtype):
        return b.op("stablehlo.sign", [x], b.type(aval))
    zero, one = b.splat(0, aval.dtype, aval.shape), b.splat(1, aval.dtype, aval.shape)
    return b.select(b.compare("EQ", x, zero, aval), zero, one, aval.shape, aval.dtype)


@elementwise("round")
def _round(b, ins, outs, x, *, rounding_method):
    return b.op(
        "stablehlo.round_nearest_even" if int(rounding_method) == 1 else "stablehlo.round_nearest_afz",
        [x],
        b.type(outs[0]),
    )


@elementwise("pow")
def _pow(b, ins, outs, x, y):
    if ins[1].dtype != outs[0].dtype:
        y = b.convert(y, outs[0].shape, outs[0].dtype)
    return b.op("stablehlo.power", [x, y], b.type(outs[0]))


@elementwise("conj")
def _conj(b, ins, outs, x, *, input_dtype=None):
    out = outs[0]
    part = b.tensor(out.shape, dtypes.real_of(out.dtype))
    re, im = x, None
    if dtypes.is_complex(ins[0].dtype):
        re, im = b.op("stablehlo.real", [x], part), b.op("stablehlo.imag", [x], part)
    else:
        im = b.splat(0.0, ins[0].dtype, out.shape)
    return b.op("stablehlo.complex", [re, b.op("stablehlo.negate", [im], part)], b.type(out))


@rule("select_n")
def _select_n(b, ins, outs, which, *cases):
    out, kind = outs[0], ins[0]
    if len(cases) == 1:
        return cases[0]
    if dtypes.is_bool(kind.dtype):
        return b.select(which, cases[1], cases[0], out.shape, out.dtype)
    # Halve the cases: an index below the middle picks from the first half.
    if len(cases) == 2:
        below = b.compare("LT", which, b.splat(1, kind.dtype, kind.shape), kind)
        return b.select(below, cases[0], cases[1], out.shape, out.dtype)
    middle = len(cases) // 2
    below = b.compare("LT", which, b.splat(middle, kind.dtype, kind.shape), kind)
    shifted = b.op("stablehlo.subtract", [which, b.splat(middle, kind.dtype, kind.shape)], b.type(kind))
    first = _select_n(b, ins[: 1 + middle], outs, which, *cases[:middle])
    second = _select_n(b, ins[:1] + ins[1 + middle :], outs, shifted, *cases[middle:])
    return b.select(below, first, second, out.shape, out.dtype)


@rule("clamp")
def _clamp(b, ins, outs, lo, x, hi):
    if dtypes.is_bool(outs[0].dtype):  # XLA has no clamp of booleans
        lo, hi = (b.fit(v, a, outs[0].shape) for v, a in ((lo, ins[0]), (hi, ins[2])))
        return b.op("stablehlo.and", [b.op("stablehlo.or", [x, lo], b.type(outs[0])), hi], b.type(outs[0]))
    # by real parts, as docs/decisions/027 says; XLA's own is not in all of its emitters
    if dtypes.is_complex(outs[0].dtype):
        lo, hi = (b.fit(v, a, outs[0].shape) for v, a in ((lo, ins[0]), (hi, ins[2])))
        part = shaped(outs[0].shape, dtypes.real_of(outs[0].dtype))
        real = lambda v: b.op("stablehlo.real", [v], b.type(part))
        raised = b.select(b.compare("GE", real(lo), real(x), part), lo, x, part.shape, outs[0].dtype)
        return b.select(b.compare("LE", real(raised), real(hi), part), raised, hi, part.shape, outs[0].dtype)
    if bool(ins[0].shape) != bool(ins[2].shape):  # both bounds are scalars, or neither is
        lo, hi = (b.fit(v, a, outs[0].shape) for v, a in ((lo, ins[0]), (hi, ins[2])))
    return b.op("stablehlo.clamp", [lo, x, hi], b.type(outs[0]))


@rule("convert_element_type")
def _convert(b, ins, outs, x, *, new_dtype, weak_type=False, sharding=None):
    return convert_value(b, x, ins[0], outs[0].dtype)


def convert_value(b, x, aval, dtype):
    """`x` as `dtype`, with the conversions that StableHLO does not define by itself."""
    if aval.dtype == dtype:
        return x
    if dtypes.is_complex(aval.dtype) and not dtypes.is_complex(dtype):
        real = dtypes.real_of(aval.dtype)
        if dtypes.is_bool(dtype):
            return b.compare("NE", x, b.splat(0, aval.dtype, aval.shape), aval)
        x, aval = b.op("stablehlo.real", [x], b.tensor(aval.shape, real)), shaped(aval.shape, real)
    if dtypes.is_bool(dtype):
        return b.compare("NE", x, b.splat(0, aval.dtype, aval.shape), aval)
    # XLA makes the largest integer of the largest of these
    if dtypes.is_float(aval.dtype) and dtypes.bits(aval.dtype) < 8 and dtypes.is_int(dtype):
        x = b.convert(x, aval.shape, dtypes.float32)
    return x if aval.dtype == dtype else b.convert(x, aval.shape, dtype)


@rule("bitcast_convert_type")
def _bitcast(b, ins, outs, x, *, new_dtype):
    return x if ins[0].dtype == outs[0].dtype else b.op("stablehlo.bitcast_convert", [x], b.type(outs[0]))


@rule("reduce_precision")
def _reduce_precision(b, ins, outs, x, *, exponent_bits, mantissa_bits):
    return b.op(
        "stablehlo.reduce_precision",
        [x],
        b.type(outs[0]),
        {"exponent_bits": b.int_attr(exponent_bits, 32), "mantissa_bits": b.int_attr(mantissa_bits, 32)},
    )


@rule("stop_gradient", "copy")
def _identity(b, ins, outs, x, **params):
    return x
