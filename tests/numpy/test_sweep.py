"""Every function of weft.numpy, weft.numpy.linalg and weft.numpy.fft over dtypes, shapes and special values gives what
real JAX gave (sweep_expected.json, written by make_sweep_expected.py), errors included; is the same under jit and vmap;
and has the derivative that differences show.
"""

import json
import pathlib
import re
import sys
import warnings

import numpy as np
import pytest
from frozen import close, split

import weft
import weft.numpy as jnp

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
import sweep_parameters  # noqa: E402
from sweep_cases import arguments, calls, evaluate, outcome  # noqa: E402

pytestmark = pytest.mark.slow

CALLS = calls()
EXPECTED = json.loads((HERE / "sweep_expected.json").read_text())
PARAMETERS = json.loads((HERE / "sweep_parameters.json").read_text())
# why -> call -> the dtypes in which weft differs from JAX
KNOWN = json.loads((HERE / "sweep_known.json").read_text())
KNOWN = {text: dtypes for calls_ in KNOWN.values() for text, dtypes in calls_.items()}
# frozen with seven digits
TOLERANCE = {"float16": 4e-3, "bfloat16": 2e-2, "float32": 1e-5, "float64": 1e-6, "complex64": 1e-5, "complex128": 1e-6}


@pytest.fixture(autouse=True)
def reference():
    """The reference interpreter compiles nothing, and every primitive is compared with it on every backend
    elsewhere.
    """
    with weft.default_device(weft.devices("reference")[0]), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def matches(got, want) -> bool:
    if isinstance(want, list):
        return isinstance(got, list) and len(got) == len(want) and all(map(matches, got, want))
    if want.startswith("!"):
        return isinstance(got, str) and got.startswith("!") and bool({*got[1:].split("|")} & {*want[1:].split("|")})
    if got == want or want.startswith("="):
        return got == want
    if not isinstance(got, str) or got.partition(":")[0] != want.partition(":")[0]:
        return False
    rtol = TOLERANCE.get(want.partition("[")[0], 0)
    for g, w in zip(got.partition(":")[2].split(";"), want.partition(":")[2].split(";"), strict=True):
        numbers = [[v if v in ("nan", "inf", "-inf") else float(v) for v in part.split(",") if v] for part in (g, w)]
        scale = max([abs(v) for v in numbers[1] if isinstance(v, float)], default=1.0)
        if len(numbers[0]) != len(numbers[1]) or not all(close(a, b, rtol, scale) for a, b in zip(*numbers)):
            return False
    return True


@pytest.mark.parametrize("dtype", EXPECTED)
@pytest.mark.parametrize("name", CALLS)
def test_values(name, dtype):
    """All calls but those that are known to differ, which still do (take them off the list when they no longer do)."""
    wrong, mended = [], []
    with weft.enable_x64(dtype == "float64"):
        scope = arguments(jnp, np, dtype)
        for text, want in zip(CALLS[name], EXPECTED[dtype][name], strict=True):
            same, known = matches(got := outcome(text, scope), want), dtype in KNOWN.get(text, ())
            if not same and not known:
                wrong.append(f"{text}\n    gives {got}\n    jax   {want}")
            if same and known:
                mended.append(text)
    assert not wrong, "\n".join(wrong)
    assert not mended, f"as JAX again: take off sweep_known.json for {dtype}: {mended}"


@pytest.fixture(scope="module")
def scope():
    names = {"jax": weft, "jnp": jnp, "lax": weft.lax, "np": np}
    exec(sweep_parameters.SETUP, names)
    return names


@pytest.mark.parametrize("text", list(split(sweep_parameters.CALLS)))
def test_parameters(text, scope):
    assert matches(got := outcome(text, scope), PARAMETERS[text]), f"gives {got}\njax   {PARAMETERS[text]}"


# jit needs concrete values, or sees Python objects: what these calls give depends on values, or is no array
STATIC = re.compile(
    r"unique|nonzero|argwhere|setdiff|setxor|intersect|union|trim|extract|compress|place|delete|insert|repeat|bincount|"
    r"histogram|choose|ravel_multi|arange|isdtype|issubdtype|can_cast|promote|result_type|iterable|linspace|from|"
    r"printoptions|vectorize|ix_|roots|poly|put|roll|piecewise|resize"
)


def of_arrays() -> dict[str, str]:
    """The first call of each function that gives arrays of numbers, of x."""
    gives_arrays = lambda name, k: str(EXPECTED["float32"][name][k]).lstrip("['").startswith(("float", "complex"))
    found = {
        name: [text for k, text in enumerate(CALLS[name]) if re.search(r"\bx\b", text) and gives_arrays(name, k)]
        for name in CALLS
        if not STATIC.search(name)
    }
    return {name: texts[0] for name, texts in found.items() if texts}


@pytest.mark.parametrize("text", list(of_arrays().values()), ids=list(of_arrays()))
def test_jit_and_vmap(text):
    """The same under jit, and vmap is a loop."""
    scope = arguments(jnp, np, "float32")
    f = lambda x: evaluate(text, {**scope, "x": x, "v": x[0], "s": x[0, 0], "e": x[:0]})
    x = scope["x"]
    want, jitted = weft.tree.leaves(f(x)), weft.tree.leaves(weft.jit(f)(x))
    rows = [weft.tree.leaves(f(row)) for row in (x, x + 1)]
    mapped = weft.tree.leaves(weft.vmap(f)(jnp.stack([x, x + 1])))
    assert want
    for k, (w, j, m) in enumerate(zip(want, jitted, mapped, strict=True)):
        assert w.dtype == j.dtype and w.weak_type == j.weak_type, text
        np.testing.assert_allclose(j, w, rtol=1e-5, atol=1e-6, err_msg=text)
        np.testing.assert_allclose(m, jnp.stack([r[k] for r in rows]), rtol=1e-5, atol=1e-6, err_msg=text)


# constant pieces, integers inside, or a point where the derivative jumps
ROUGH = re.compile(
    r"astype|floor|ceil|trunc|rint|round|fix|sign|heaviside|nextafter|spacing|mod|remainder|fmod|divmod|arg|"
    r"sort_complex|frexp|digitize|searchsorted|count|rank|eig|svd|cond|nuc|pinv|lstsq|equal|less|greater|is|logical|"
    r"all|any|nan_to_num|gcd|lcm|acos|asin|atanh|arccos|arcsin|arctanh|acosh|log|sqrt|unwrap|qr"
)


@pytest.mark.parametrize("name", [n for n in CALLS if not STATIC.search(n) and not ROUGH.search(n)])
def test_derivatives(name):
    """Forward and reverse mode of the first call of x that gives floats, against differences in float64."""
    with weft.enable_x64(True):
        scope = arguments(jnp, np, "float64")
        for text, want in zip(CALLS[name], EXPECTED["float32"][name]):
            if not re.search(r"\bx\b", text) or not isinstance(want, str) or not want.startswith(("float", "complex")):
                continue
            f = lambda x: evaluate(text, {**scope, "x": x})  # noqa: B023
            x = scope["x"] + 0.01
            d = jnp.cos(jnp.arange(x.size, dtype=x.dtype)).reshape(x.shape)
            numeric = (f(x + 1e-6 * d) - f(x - 1e-6 * d)) / 2e-6
            y, forward = weft.jvp(f, (x,), (d,))
            np.testing.assert_allclose(forward, numeric, rtol=1e-5, atol=1e-6, err_msg=text)
            seed = jnp.sin(1.0 + jnp.arange(y.size, dtype=y.dtype)).reshape(y.shape)
            (back,) = weft.vjp(f, x)[1](seed)
            np.testing.assert_allclose(
                (back * d).sum(), (seed * forward).sum().real, rtol=1e-8, atol=1e-9, err_msg=text
            )
            return
