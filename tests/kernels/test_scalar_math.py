"""Accuracy of the elementary functions, evaluated through the emitted module, against mpmath-grade references."""

import mpmath
import numpy as np
import pytest
import scipy.special as special
from kernel_harness import NUMPY, RELAXED, assert_same, run_wasm
from weft_wasm.elementary.double_double import Pair, polynomial
from weft_wasm.ir.nodes import Buffer, Call, For, Kernel, Program, Store, Var

N = 100_000
SPECIAL = np.array(
    [0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 0.5, -0.5, 2, 3, -3, 1e-30, -1e-30, 1e30, -1e30, 355.0, 1e5, -1e7]
)


def evaluate(fn: str, *xs: np.ndarray, vector: int = 1, features=("simd128",)) -> np.ndarray:
    dtype = "f32" if xs[0].dtype == np.float32 else "f64"
    inputs = [Buffer(f"x{k}", dtype, x.shape, "input") for k, x in enumerate(xs)]
    out, i = Buffer("out", dtype, xs[0].shape, "output"), Var("i")
    loop = For(i, len(xs[0]), [Store(out, i, Call(fn, *(b[i] for b in inputs)))], "parallel", vector)
    return run_wasm(Program(fn, inputs, [out], [], [Kernel(fn, [loop])]), *xs, features=features, schedule=False)[0]


def uniform(lo, hi):
    return lambda rng: rng.uniform(lo, hi, N)


def positive(rng):
    return np.exp(rng.uniform(-60, 60, N))


def both_signs(rng):
    return positive(rng) * rng.choice([-1, 1], N)


# name: (reference, ranges, ulp for f32, relative error for f64)
CASES = {
    "exp": (np.exp, [uniform(-80, 88)], 2, 1e-15),
    "exp2": (np.exp2, [uniform(-120, 127)], 2, 1e-15),
    "expm1": (np.expm1, [uniform(-3, 3), uniform(-30, 80)], 2, 1e-15),
    "log": (np.log, [positive, uniform(0.5, 2)], 2, 1e-15),
    "log2": (np.log2, [positive, uniform(0.5, 2)], 3, 1e-15),
    "log1p": (np.log1p, [uniform(-0.9999, 3), positive], 2, 1e-15),
    "sin": (np.sin, [uniform(-10, 10), uniform(-9000, 9000), both_signs], 4, 1e-15),
    "cos": (np.cos, [uniform(-10, 10), uniform(-9000, 9000), both_signs], 4, 1e-15),
    "tan": (np.tan, [uniform(-10, 10), uniform(-9000, 9000), both_signs], 4, 1e-15),
    "sinh": (np.sinh, [uniform(-3, 3), uniform(-88, 88)], 3, 1e-15),
    "cosh": (np.cosh, [uniform(-3, 3), uniform(-88, 88)], 3, 1e-15),
    "tanh": (np.tanh, [uniform(-3, 3), uniform(-20, 20)], 3, 1e-15),
    "asin": (np.arcsin, [uniform(-1, 1)], 3, 1e-15),
    "acos": (np.arccos, [uniform(-1, 1)], 2, 1e-15),
    "atan": (np.arctan, [uniform(-3, 3), both_signs], 3, 1e-15),
    "asinh": (np.arcsinh, [uniform(-3, 3), both_signs], 3, 1e-15),
    "acosh": (np.arccosh, [uniform(1, 5), lambda r: 1 + positive(r)], 3, 1e-15),
    "atanh": (np.arctanh, [uniform(-1, 1)], 3, 1e-15),
    "rsqrt": (lambda x: 1 / np.sqrt(x), [positive], 2, 1e-15),
    "cbrt": (np.cbrt, [both_signs], 1, 1e-15),
    "sign": (np.sign, [both_signs], 0, 0),
    "erf": (special.erf, [uniform(-4, 4), uniform(-0.1, 0.1)], 2, 2e-15),
    "erfc": (special.erfc, [uniform(-4, 4)], 4, 2e-15),
    "erf_inv": (special.erfinv, [uniform(-1, 1), lambda r: 1 - np.exp(r.uniform(-14, -1, N))], 4, 1e-14),
    "erfcx": (special.erfcx, [uniform(-5, 5), lambda r: np.exp(r.uniform(0, 60, N))], 6, 4e-15),
    "logistic": (special.expit, [uniform(-80, 80)], 4, 2e-15),
    "lgamma": (special.gammaln, [uniform(0.1, 100), uniform(0.6, 3)], 2, 1e-14),
    "digamma": (special.digamma, [uniform(2, 100)], 2, 1e-14),
}


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("fn", CASES)
def test_accuracy(fn, dtype):
    reference, ranges, ulps, relative = CASES[fn]
    rng = np.random.default_rng(0)
    x = np.concatenate([r(rng) for r in ranges]).astype(NUMPY[dtype])
    got = evaluate(fn, x)
    with np.errstate(all="ignore"):
        extended = fn not in ("erf", "erfc", "erf_inv", "erfcx", "logistic", "lgamma", "digamma")
        expected = reference(x.astype(np.longdouble if extended else np.float64))
        rounded = expected.astype(NUMPY[dtype])
    kept = np.isfinite(rounded) & (np.abs(rounded) > np.finfo(NUMPY[dtype]).tiny)
    assert kept.sum() > 0.8 * len(x)
    error = np.abs(got[kept].astype(np.longdouble) - expected[kept])
    if dtype == "f32":
        worst = error / np.spacing(np.abs(rounded[kept]))
        limit = ulps
    else:
        # SciPy's own lgamma is only absolutely exact around its zeros; the next test looks there
        scale = np.maximum(np.abs(expected[kept]), 1) if fn == "lgamma" else np.abs(expected[kept])
        worst = error / scale
        limit = relative
    k = np.argmax(worst)
    assert worst[k] <= limit, f"{fn}({x[kept][k]!r}) = {got[kept][k]!r}, not {expected[kept][k]!r}: {worst[k]}"


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("fn", CASES)
def test_special_values_and_both_paths(fn, dtype):
    x = SPECIAL.astype(NUMPY[dtype])
    lanes, scalars = evaluate(fn, x), evaluate(fn, x, vector=0)
    assert_same(lanes, scalars, fn)
    with np.errstate(all="ignore"):
        expected = CASES[fn][0](x.astype(np.float64)).astype(NUMPY[dtype])
    if fn == "erf_inv":
        expected[np.abs(x) > 1] = np.nan
    if fn in ("erf_inv", "sign"):
        expected[1] = -0.0  # odd functions, which SciPy and NumPy forget
    if fn == "digamma":
        expected[:2] = np.nan  # its pole has values of either sign beside it: NaN in XLA, infinite in SciPy
    flushed = np.abs(expected) < np.finfo(NUMPY[dtype]).tiny
    same_nan = np.isnan(expected) & np.isnan(lanes)
    with np.errstate(invalid="ignore"):
        close = np.abs(lanes - expected) <= 1e-5 * np.abs(expected)
        zero_signs = (expected != 0) | (lanes != 0) | (np.signbit(expected) == np.signbit(lanes))
    good = same_nan | (lanes == expected) & zero_signs | close & zero_signs | flushed & (expected != 0)
    assert good.all(), [(a, b, c) for a, b, c, g in zip(x, lanes, expected, good) if not g]


@pytest.mark.parametrize("features", [("simd128",), RELAXED], ids=["plain", "relaxed"])
@pytest.mark.parametrize("vector", [0, 2])
def test_where_exp_ends(features, vector):
    x = np.array(
        [88.72283172607422, 88.72283935546875, 88.72284698486328, 89, 1e30, -87.3365, -87.34, -105, -1e30, 0, 1],
        np.float32,
    )
    flushed = lambda y: np.where(y < np.finfo(np.float32).tiny, 0, y)  # noqa: E731
    expected = np.exp(x.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(
        flushed(evaluate("exp", x, vector=vector, features=features)), flushed(expected), rtol=5e-7
    )
    whole = np.array([128, 127, 126, 1, 0, -1, -126, -128, -150], np.float32)
    expected = np.array([np.inf, *(2.0**k for k in (127, 126, 1, 0, -1, -126)), 0, 0], np.float32)
    np.testing.assert_array_equal(evaluate("exp2", whole, vector=vector, features=features), expected)
    payloads = np.array([0x7FC00001, 0xFFC12345, 0x7F800001, 0xFFFFFFFF, 0x7FC00000], np.uint32).view(np.float32)
    for fn in ("exp", "exp2"):
        assert np.isnan(evaluate(fn, payloads, vector=vector, features=features)).all()


def test_erf_inv_next_to_one():
    """Between where numbers of f32 end and 1, which the first guess must reach."""
    x = 1 - np.concatenate([np.exp(np.random.default_rng(0).uniform(-36, -14, 2000)), 2.0 ** -np.arange(20, 54)])
    np.testing.assert_allclose(evaluate("erf_inv", x), special.erfinv(x), rtol=2e-15)
    np.testing.assert_array_equal(evaluate("erf_inv", -x), -evaluate("erf_inv", x))


GAMMA = {"lgamma": lambda x: mpmath.log(abs(mpmath.gamma(x))), "digamma": mpmath.digamma}


def ulps(got: np.ndarray, want: list) -> list[float]:
    return [
        float(abs(mpmath.mpf(float(g)) - w) / mpmath.mpf(float(np.spacing(abs(float(w)))))) for g, w in zip(got, want)
    ]


@pytest.mark.parametrize("fn", GAMMA)
def test_gamma_functions_where_they_cancel(fn):
    """Of negative f64, and next to poles."""
    rng = np.random.default_rng(0)
    near_poles = -rng.integers(0, 40, 1500) + rng.choice([-1, 1], 1500) * 2.0 ** rng.uniform(-52, 0, 1500)
    x = np.concatenate(
        [
            rng.uniform(-40, 3, 1500),
            near_poles,
            -np.exp(rng.uniform(0, 35, 300)),
            [2.235, 2.2368256015373857, 1e-310, -2.5e-302],
        ]
    )
    with mpmath.workprec(250):
        x = np.array([v for v in x if v != np.floor(v) and np.isfinite(float(GAMMA[fn](float(v))))])
        errors = ulps(evaluate(fn, x), [GAMMA[fn](float(v)) for v in x])
    assert len(errors) > 3200 and max(errors) <= 4, max(errors)


@pytest.mark.parametrize("fn", GAMMA)
def test_gamma_functions_next_to_their_zeros(fn):
    """The floats on both sides of each zero, where all of the leading bits cancel."""
    exact, x = GAMMA[fn], []
    with mpmath.workprec(400):
        for n in range(0 if fn == "digamma" else 2, 18):
            left, right = (mpmath.mpf(-n - k) + (2 * k - 1) * mpmath.mpf(2) ** -90 for k in (1, 0))
            least = bisect(mpmath.digamma, left, right)
            places = [least] if fn == "digamma" else [bisect(exact, left, least), bisect(exact, least, right)]
            x += [
                beside
                for p in places
                for beside in (float(p), np.nextafter(float(p), -np.inf), np.nextafter(float(p), 0.0))
            ]
        x = np.array([v for v in x if v != np.floor(v)])
        errors = ulps(evaluate(fn, x), [exact(float(v)) for v in x])
    assert len(errors) > 50 and max(errors) <= 4, max(errors)


def bisect(f, a, b):
    """Where f changes its sign between a and b."""
    above = f(a) > 0
    assert above != (f(b) > 0)
    for _ in range(200):
        middle = (a + b) / 2
        a, b = (middle, b) if (f(middle) > 0) == above else (a, middle)
    return a


def test_numbers_of_twice_the_precision():
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=N) for _ in range(2)]
    inputs = [Buffer(f"x{k}", "f64", (N,), "input") for k in range(4)]
    i = Var("i")
    args = [p for x in parts for p in (x, x * rng.uniform(-(2.0**-54), 2.0**-54, N))]
    x, y = (Pair(*(b[i] for b in inputs[k : k + 2])) for k in (0, 2))
    cases = {
        "sum": x + y,
        "product": x * y,
        "reciprocal": x.reciprocal(),
        "polynomial": polynomial([(0.1, 1e-18), (1.5, -2e-17), 0.125], x),
    }
    outputs = [Buffer(f"{name}{k}", "f64", (N,), "output") for name in cases for k in range(2)]
    stores = [Store(b, i, e) for b, e in zip(outputs, (e for p in cases.values() for e in (p.hi, p.lo)))]
    got = run_wasm(
        Program("pairs", inputs, outputs, [], [Kernel("pairs", [For(i, N, stores, "parallel", 1)])]),
        *args,
        features=RELAXED,
        schedule=False,
    )
    with mpmath.workprec(300):
        exact = lambda k, n: mpmath.mpf(float(args[k][n])) + mpmath.mpf(float(args[k + 1][n]))  # noqa: E731
        for n in range(0, N, 97):
            a, b = exact(0, n), exact(2, n)
            c = [mpmath.mpf(0.1) + mpmath.mpf(1e-18), mpmath.mpf(1.5) - mpmath.mpf(2e-17), mpmath.mpf(0.125)]
            terms = [c[0], c[1] * a, c[2] * a * a]
            for k, (want, size) in enumerate(
                [(a + b, abs(a) + abs(b)), (a * b, abs(a * b)), (1 / a, abs(1 / a)), (sum(terms), sum(map(abs, terms)))]
            ):
                value = mpmath.mpf(float(got[2 * k][n])) + mpmath.mpf(float(got[2 * k + 1][n]))
                assert abs(value - want) <= 8 * mpmath.mpf(2) ** -106 * size, (list(cases)[k], n)


def test_lgamma_around_its_zeros():
    x = np.array([1 - 3e-6, 1 + 1e-9, 2 - 1e-7, 2 + 1e-12, 1.0000001, 0.75, 2.25])
    with mpmath.workdps(30):
        for value, got in zip(x, evaluate("lgamma", x)):
            expected = mpmath.loggamma(float(value))
            assert abs(mpmath.mpf(float(got)) - expected) < 5e-14 * abs(expected)


@pytest.mark.parametrize("fn", ["exp", "sin", "log", "tanh", "erf"])
def test_relaxed_madd_keeps_the_bounds(fn):
    x = np.random.default_rng(1).uniform(-8, 8, N).astype(np.float32)
    x = np.abs(x) if fn == "log" else x
    expected = CASES[fn][0](x.astype(np.float64))
    got = evaluate(fn, x, features=RELAXED)
    assert (np.abs(got - expected) / np.spacing(np.abs(expected).astype(np.float32))).max() <= 4


def next_to_right_angles(bits: int, exponents) -> list[float]:
    """For each exponent the number of so many bits that comes nearest to a multiple of π/2: a denominator of the
    continued fraction of 2^e·2/π.
    """
    found = []
    with mpmath.workprec(1400):
        for e in exponents:
            rest, last, m = mpmath.frac(mpmath.mpf(2) ** (e + 1) / mpmath.pi), 0, 1
            while rest:
                rest = 1 / rest
                whole = int(rest)
                rest -= whole
                if whole * m + last >= 1 << bits:
                    break
                last, m = m, whole * m + last
            found.append(m * 2.0**e)
    return found


@pytest.mark.parametrize("dtype,bits,exponents", [("f32", 24, range(0, 104)), ("f64", 53, range(0, 970, 7))])
def test_arguments_next_to_multiples_of_a_right_angle(dtype, bits, exponents):
    """Where nearly all bits of the reduced angle cancel, each result has all of its bits still."""
    x = np.array(next_to_right_angles(bits, exponents), NUMPY[dtype])
    with mpmath.workprec(1400):
        for fn, reference in (("sin", mpmath.sin), ("cos", mpmath.cos), ("tan", mpmath.tan)):
            for value, got in zip(x, evaluate(fn, x)):
                expected = reference(mpmath.mpf(float(value)))
                assert abs(mpmath.mpf(float(got)) - expected) <= 4 * float(
                    np.spacing(np.abs(NUMPY[dtype](expected)))
                ), (fn, value)


@pytest.mark.parametrize("dtype,digits", [("f32", 6.5), ("f64", 14)])
def test_huge_arguments(dtype, digits):
    """Payne-Hanek reduction against 400 digits, up to the largest float."""
    limit = np.finfo(NUMPY[dtype]).max
    x = np.array([1e4, 1e7, 1e9, 1e22, limit, limit / 3, 16367173.0, 6381956970095103 * 2.0**797 % limit], NUMPY[dtype])
    x = x[np.isfinite(x)]
    with mpmath.workdps(400):
        for fn, reference in (("sin", mpmath.sin), ("cos", mpmath.cos), ("tan", mpmath.tan)):
            for value, got in zip(x, evaluate(fn, x)):
                expected = reference(mpmath.mpf(float(value)))
                assert abs(mpmath.mpf(float(got)) - expected) < abs(expected) * mpmath.mpf(10) ** -digits, (fn, value)


@pytest.mark.parametrize("dtype,limit", [("f32", 1e-7), ("f64", 5e-16)])
def test_pow_and_atan2(dtype, limit):
    rng = np.random.default_rng(2)
    x, y = np.exp(rng.uniform(-20, 20, N)).astype(NUMPY[dtype]), rng.uniform(-4, 4, N).astype(NUMPY[dtype])
    expected = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
    np.testing.assert_allclose(evaluate("pow", x, y), expected.astype(np.float64), rtol=limit)
    y2, x2 = rng.normal(size=(2, N)).astype(NUMPY[dtype])
    expected = np.arctan2(y2.astype(np.longdouble), x2.astype(np.longdouble))
    np.testing.assert_allclose(
        evaluate("atan2", y2, x2), expected.astype(np.float64), rtol=4e-7 if dtype == "f32" else 1e-15
    )


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("fn", ["pow", "atan2", "nextafter"])
def test_two_argument_special_values(fn, dtype):
    values = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 2.0, 3.0, -3.0, -2.0]
    x, y = (a.ravel().astype(NUMPY[dtype]) for a in np.meshgrid(values, values))
    reference = {"pow": np.power, "atan2": np.arctan2, "nextafter": np.nextafter}[fn]
    with np.errstate(all="ignore"):
        expected = reference(x, y)
    got = evaluate(fn, x, y)
    tolerance = 0 if fn == "nextafter" else 4e-7 if dtype == "f32" else 1e-15
    for a, b, e, g in zip(x, y, expected, got):
        same = (
            (np.isnan(e) and np.isnan(g))
            or (g == e and np.signbit(g) == np.signbit(e))
            or abs(g - e) <= tolerance * abs(e)
        )
        assert same, f"{fn}({a}, {b}) = {g}, not {e}"


def remainders(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Operands of all sizes: quotients of any number of bits, whole ones, next to whole ones and a half, of
    subnormal and of the largest numbers.
    """
    rng, info, n = np.random.default_rng(3), np.finfo(NUMPY[dtype]), 8000
    words = {"f32": np.uint32, "f64": np.uint64}[dtype]
    anything = lambda: rng.integers(0, 1 << (8 * info.dtype.itemsize), n, dtype=words).view(NUMPY[dtype])  # noqa: E731
    moderate = lambda: (np.exp(rng.uniform(-9, 9, n)) * rng.choice([-1, 1], n)).astype(NUMPY[dtype])  # noqa: E731
    tiny, huge = (
        (anything() % info.tiny).astype(NUMPY[dtype]),
        rng.uniform(info.max / 8, info.max, n).astype(NUMPY[dtype]),
    )
    divisors = moderate()
    multiples = (divisors * rng.integers(1, 1 << 26, n) / 2).astype(NUMPY[dtype])
    pairs = [
        (anything(), anything()),
        (moderate(), moderate()),
        (huge, tiny),
        (tiny, np.roll(tiny, 1)),
        (huge, np.roll(huge, 1)),
        (anything(), tiny),
        (multiples, divisors),
        (np.nextafter(multiples, 0), divisors),
        (np.nextafter(multiples, np.inf), divisors),
        (moderate(), rng.integers(1, 9, n).astype(NUMPY[dtype])),
    ]
    special = np.array(
        [0.0, -0.0, 1, -1, 5, np.inf, -np.inf, np.nan, info.max, info.tiny, info.smallest_subnormal, -info.max],
        NUMPY[dtype],
    )
    pairs.append(tuple(x.ravel() for x in np.meshgrid(special, special)))
    return np.concatenate([a for a, _ in pairs]), np.concatenate([b for _, b in pairs])


@pytest.mark.parametrize("vector", [0, 1])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_float_remainder(dtype, vector):
    with np.errstate(all="ignore"):
        a, b = remainders(dtype)
        expected = np.fmod(a, b)
    n = len(a)
    x, y, out, i = (
        Buffer("x", dtype, (n,), "input"),
        Buffer("y", dtype, (n,), "input"),
        Buffer("o", dtype, (n,), "output"),
        Var("i"),
    )
    loop = For(i, n, [Store(out, i, x[i] % y[i])], "parallel", vector)
    program = Program("rem", [x, y], [out], [], [Kernel("rem", [loop])])
    assert_same(run_wasm(program, a, b, features=RELAXED, schedule=False)[0], expected)


def test_exp_reaches_the_smallest_normal_number():
    """What is no subnormal number is not taken for zero, however near to one it is."""
    edge = np.log(np.finfo(np.float64).tiny)
    x = edge + np.concatenate([[0.0], np.geomspace(1e-12, 1e-2, 200)])
    expected = np.exp(x)
    assert (expected >= np.finfo(np.float64).tiny).all()
    np.testing.assert_allclose(evaluate("exp", x), expected, rtol=4e-16)
    assert evaluate("exp", np.array([-709.0, -745.0, -800.0, -np.inf])).tolist() == [0, 0, 0, 0]
