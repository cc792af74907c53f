"""Every elementwise primitive against its reference rule, over dtypes, shapes and special values."""

import numpy as np
import pytest
from wasm_harness import FLOATS, INTS, check, numpy_dtype, run, values
from weft import lax
from weft.core.primitive import registry

UNARY_FLOAT = [
    "exp",
    "exp2",
    "expm1",
    "sin",
    "cos",
    "tan",
    "tanh",
    "logistic",
    "sinh",
    "cosh",
    "asinh",
    "atan",
    "erf",
    "erfc",
    "cbrt",
    "floor",
    "ceil",
    "neg",
    "abs",
    "sign",
    "square",
    "is_finite",
]
POSITIVE = ["log", "log1p", "sqrt", "rsqrt", "lgamma", "digamma"]
UNIT = ["asin", "acos", "atanh", "erf_inv"]
BINARY = ["add", "sub", "mul", "div", "max", "min", "rem", "eq", "ne", "lt", "le", "gt", "ge"]
SHAPES = [(), (1,), (7,), (3, 5), (2, 1, 9), (0, 4), (130,)]
rng = np.random.default_rng(1)


def bind(name, **params):
    return lambda *xs: registry[name].bind(*xs, **params)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", UNARY_FLOAT + POSITIVE + UNIT + ["acosh"])
def test_functions(name, dtype):
    low, high = (
        (0.1, 5.0)
        if name in POSITIVE
        else (-0.9, 0.9)
        if name in UNIT
        else (1.1, 9.0)
        if name == "acosh"
        else (-3.0, 3.0)
    )
    for shape in SHAPES:
        check(bind(name), values(rng, dtype, shape, low, high))


@pytest.mark.parametrize(
    "name", ["exp", "log", "sin", "tanh", "sqrt", "abs", "floor", "sign", "is_finite", "neg", "logistic"]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values(name, dtype):
    check(bind(name), np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.5, -2.5], dtype))


@pytest.mark.parametrize("dtype", FLOATS + INTS)
@pytest.mark.parametrize("name", BINARY)
def test_binary(name, dtype):
    for shape in SHAPES[name == "div" :]:  # the reference rule of div takes no integer scalars
        x, y = values(rng, dtype, shape), values(rng, dtype, shape)
        if name in ("rem", "div"):
            y = np.where(np.abs(y.astype(np.float64)) < 0.2, np.array(1, y.dtype), y)
        check(bind(name), x, y, tolerance=6e-2 if dtype == "bfloat16" else None)


@pytest.mark.parametrize("name", ["add", "mul", "atan2", "pow"])
def test_broadcasting(name):
    for a, b in [((3, 1), (1, 4)), ((), (5,)), ((2, 3, 4), ()), ((2, 1, 4), (2, 3, 1)), ((1, 6), (5, 6))]:
        check(bind(name), values(rng, "float32", a, 0.5, 2.0), values(rng, "float32", b))


@pytest.mark.parametrize("name", ["and", "or", "xor", "max", "min", "eq", "ne", "lt", "ge"])
def test_bool(name):
    for shape in [(), (5,), (64,), (3, 7)]:
        check(bind(name), values(rng, "bool", shape), values(rng, "bool", shape))


@pytest.mark.parametrize("dtype", INTS)
def test_integers(dtype):
    info = np.iinfo(dtype)
    x = np.array([0, 1, 5, 37, info.max, info.min, info.max - 1, 90], dtype)
    amount = np.array([0, 1, 3, 7, 8, 31, 64 if info.bits > 32 else 33, 5], dtype)
    for name in (
        "and",
        "or",
        "xor",
        "add",
        "sub",
        "mul",
        "div",
        "rem",
        "shift_left",
        "shift_right_logical",
        "shift_right_arithmetic",
    ):
        check(bind(name), x, amount)
        check(bind(name), amount, x)
    for name in ("not", "neg", "abs", "sign", "population_count", "clz", "square"):
        check(bind(name), x)


@pytest.mark.parametrize("y", [0, 1, 2, 3, 7, -1, -2, -5])
def test_integer_pow(y):
    check(bind("integer_pow", y=y), values(rng, "float32", (9,), 0.5, 2.0), tolerance=1e-4)
    if y >= 0:
        check(bind("integer_pow", y=y), values(rng, "int32", (9,)))


def test_pow_of_integers():
    check(bind("pow"), values(rng, "float32", (9,), 0.5, 2.0), values(rng, "int32", (9,)) % 5)


@pytest.mark.parametrize("dtype", FLOATS)
def test_rounding(dtype):
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.49, 7.0, -3.7, 1e4], numpy_dtype(dtype))
    for method in (0, 1):
        check(bind("round", rounding_method=method), x)
    check(bind("nextafter"), x, x[::-1].copy(), tolerance=0)


@pytest.mark.parametrize("bits", [(8, 7), (5, 10), (8, 23), (4, 3), (11, 52)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_reduce_precision(bits, dtype):
    x = np.concatenate([values(rng, dtype, (50,)), np.array([1e30, -1e-30, np.inf, 0.0, 65519.9, 1e-7], dtype)])
    check(bind("reduce_precision", exponent_bits=bits[0], mantissa_bits=bits[1]), x, tolerance=0)


@pytest.mark.parametrize("new", FLOATS + INTS + ("bool",))
@pytest.mark.parametrize("old", FLOATS + INTS + ("bool",))
def test_convert(old, new):
    x = values(rng, old, (33,), -300, 300)
    if new in INTS and new[0] == "u" and old not in INTS + ("bool",):
        x = abs(x)
    check(bind("convert_element_type", new_dtype=numpy_dtype(new), weak_type=False, sharding=None), x)


@pytest.mark.parametrize(
    "old,new",
    [
        ("float32", "int32"),
        ("uint32", "float32"),
        ("float64", "uint64"),
        ("bfloat16", "uint16"),
        ("int16", "float16"),
        ("float32", "uint8"),
        ("uint32", "uint16"),
        ("int64", "int32"),
        ("float64", "bfloat16"),
    ],
)
def test_bitcast(old, new):
    x = values(rng, old, (5, 8))
    check(bind("bitcast_convert_type", new_dtype=numpy_dtype(new)), x, tolerance=0)
    if numpy_dtype(old).itemsize > numpy_dtype(new).itemsize:
        wide = numpy_dtype(old)
        ratio = wide.itemsize // numpy_dtype(new).itemsize
        check(
            bind("bitcast_convert_type", new_dtype=wide),
            values(rng, new, (6, ratio)) if new != "uint8" else values(rng, "uint8", (6, ratio)),
            tolerance=0,
        )


def test_select_and_clamp():
    x, y, z = (values(rng, "float32", (4, 9)) for _ in range(3))
    check(bind("select_n"), x > 0, y, z)
    check(bind("select_n"), np.array(True), y, z)
    check(bind("select_n"), values(rng, "int32", (4, 9)) % 3, x, y, z)
    check(bind("clamp"), np.float32(-1), x, np.float32(0.5))
    check(bind("clamp"), y, x, z)
    check(bind("clamp"), np.int8(3), values(rng, "int8", (9,)), np.int8(20))


def test_a_long_chain_is_cut():
    def chain(x):
        for _ in range(300):
            x = registry["sin"].bind(registry["mul"].bind(x, x))
        return x

    check(chain, values(rng, "float32", (40,)))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_is_rounded_after_every_operation(dtype):
    """However much is fused: a value that is computed twice, or loaded in one place and computed in another, is the
    same everywhere.
    """

    def arithmetic(x, y):
        return lax.add(lax.mul(lax.sub(x, y), y), lax.div(lax.max(x, lax.neg(y)), lax.sqrt(lax.abs(y))))

    def largest(x, y):
        a, b = lax.mul(x, y), lax.sub(x, y)
        largest = lax.max(a, b)
        return lax.eq(largest, a), lax.eq(largest, b), lax.reduce_sum(largest, (0,)), arithmetic(largest, b)

    for shape in [(3,), (67,), (5, 40)]:
        x, y = values(rng, dtype, shape), values(rng, dtype, shape, 0.5, 2.0)
        check(arithmetic, x, y, tolerance=0)
        check(largest, x, y, tolerance=0)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_product_of_half_precision_is_rounded_before_it_is_used(dtype):
    x, y = values(rng, dtype, (9, 33)), values(rng, dtype, (33, 20))
    factor = numpy_dtype(dtype).type(1.7)
    product, scaled = run(lambda x, y: (lax.dot(x, y), lax.mul(lax.dot(x, y), lax.full((9, 20), factor))), x, y)
    np.testing.assert_array_equal(product * factor, scaled)


@pytest.mark.parametrize("dtype,kept", [("bfloat16", 16), ("float16", 13)])
def test_every_float_is_rounded_to_the_nearest(dtype, kept):
    """Each value of the upper bits with what lies at and beside a tie below them, both signs, subnormals, infinities
    and NaN.
    """
    tie = 1 << (kept - 1)
    bits = (np.arange(1 << (32 - kept), dtype=np.uint32)[:, None] << kept) + np.array(
        [0, 1, tie - 1, tie, tie + 1, 2 * tie - 1], np.uint32
    )
    x = bits.ravel().view(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        want = x.astype(numpy_dtype(dtype)).astype(np.float32)
        got, stored = run(
            lambda x: (
                lax.neg(lax.convert_element_type(lax.convert_element_type(x, dtype), "float32")),
                lax.convert_element_type(x, dtype),
            ),
            x,
        )
        for y in (-got, stored.astype(np.float32)):
            np.testing.assert_array_equal(y, want)
            np.testing.assert_array_equal(np.signbit(y), np.signbit(want))
