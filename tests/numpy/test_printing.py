"""Arrays print as NumPy prints the same numbers under the same options, and without NumPy as with it."""

import os
import random
import subprocess
import sys

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft.base import dtypes
from weft.numpy.printing import array_text

NAMES = (
    "float32",
    "float64",
    "float16",
    "int32",
    "int8",
    "uint8",
    "bool",
    "complex64",
    "complex128",
    "bfloat16",
    "int4",
)
SHAPES = ((), (1,), (5,), (0,), (30,), (3, 4), (2, 3, 4), (7, 1), (1200,), (40, 40), (1, 2, 2, 3))
OPTIONS = {
    "precision": (8, 0, 3, 12),
    "threshold": (1000, 5, 0),
    "edgeitems": (3, 1, 2),
    "linewidth": (75, 20, 100, 5),
    "suppress": (False, True),
    "nanstr": ("nan", "none at all"),
    "infstr": ("inf", "infinite"),
    "sign": "- +",
    "floatmode": ("maxprec", "fixed", "unique", "maxprec_equal"),
}


def numbers(rng, kind: int, n: int):
    return [
        lambda: rng.normal(size=n),
        lambda: rng.integers(-5, 50, n).astype(float),
        lambda: np.exp(rng.normal(size=n) * 8) * rng.choice([-1, 1], n),
        lambda: np.round(rng.normal(size=n) * 10, 2),
        lambda: rng.choice([0.0, -0.0, 1.0, np.nan, np.inf, -np.inf, 2.5], n),
        lambda: rng.normal(size=n) * 10.0 ** rng.integers(-12, 12),
    ][kind]()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(250))
def test_arrays_print_as_numpy_s(seed):
    rng, choose = np.random.default_rng(seed), random.Random(seed)
    name, shape, kind = choose.choice(NAMES), choose.choice(SHAPES), choose.randrange(6)
    n = int(np.prod(shape))
    values = numbers(rng, kind, n) + (1j * numbers(rng, kind, n) if name.startswith("complex") else 0)
    if not name.startswith(("float", "complex", "bfloat")):
        values = rng.integers(-100 if name[0] == "i" else 0, 120, n)
    array = values.astype(dtypes.dtype(name)).reshape(shape)
    options = {k: choose.choice(v) for k, v in OPTIONS.items()} if seed % 3 else {}
    prefix, separator, suffix = choose.choice([("", " ", ""), ("Array(", ", ", ","), ("x", ",", ")")])
    with np.printoptions(**options):
        want = np.array2string(array, prefix=prefix, separator=separator, suffix=suffix)
        assert array_text(array.tolist(), shape, array.dtype, prefix, separator, suffix) == want


def test_options_hold_for_repr_and_str():
    x = jnp.arange(3.0) / 3
    with jnp.printoptions(precision=3, floatmode="fixed") as options:
        assert options["precision"] == 3
        assert repr(x) == "Array([0.000, 0.333, 0.667], dtype=float32)" and str(x) == "[0.000 0.333 0.667]"
        assert str(x[1]) == "0.33333334"  # numbers print by themselves
    assert repr(x) == "Array([0.        , 0.33333334, 0.6666667 ], dtype=float32)"
    with np.printoptions(formatter={"float": "<{:.1f}>".format}):
        assert str(x) == "[<0.0> <0.3> <0.7>]"
    with np.printoptions(legacy="1.13"):
        assert str(jnp.array([1.0, 2.0])) == "[ 1.  2.]"


def test_array_repr_and_str():
    x = jnp.arange(6.0).reshape(2, 3) / 3
    name = type(x).__name__
    assert (
        jnp.array_repr(x, precision=2)
        == f"{name}([[0.  , 0.33, 0.67],\n{' ' * len(name)}  [1.  , 1.33, 1.67]], dtype=float32)"
    )
    assert (
        jnp.array_repr(jnp.arange(3), max_line_width=len(name) + 11)
        == f"{name}([0, 1, 2],\n{' ' * len(name)} dtype=int32)"
    )
    assert jnp.array_repr(jnp.zeros((0, 2))) == f"{name}([], shape=(0, 2), dtype=float32)"
    assert jnp.array_repr(jnp.ones(2) > 0) == f"{name}([ True,  True])"
    assert jnp.array_repr(np.arange(2)) == "array([0, 1])"
    assert (
        jnp.array_str(x * 1e-9, suppress_small=True) == "[[0. 0. 0.]\n [0. 0. 0.]]"
        and jnp.array_str(jnp.float32(2)) == "2.0"
    )
    with pytest.raises(TypeError, match="array_str"):
        jnp.array_str([1, 2])
    with pytest.raises(weft.errors.TracerArrayConversionError, match="array_repr"):
        weft.jit(lambda x: jnp.array_repr(x))(x)


WITHOUT_NUMPY = """
import io
import weft.numpy as jnp
x = jnp.arange(6.).reshape(2, 3) / 3
print(repr(x), jnp.array_repr(jnp.arange(2)).partition("(")[2])
with jnp.printoptions(precision=3, floatmode="fixed", sign="+", linewidth=30):
    print(repr(x))
jnp.set_printoptions(threshold=2, edgeitems=1)
print(x)
wrong = {"floatmode": "x", "sign": "x", "threshold": "x", "precision": 1.5, "foo": 1, "legacy": "1.13"}
for name, value in wrong.items():
    try:
        jnp.set_printoptions(**{name: value})
    except Exception as e:
        print(type(e).__name__)
jnp.set_printoptions(threshold=1000, edgeitems=3)
small, flag, short = jnp.array([1, 2.5], "bfloat16"), jnp.array(True), jnp.arange(3).astype("int8")
for a in (x, small, flag, short, jnp.array([1 + 2j]), jnp.zeros((0, 2))):
    f, g = io.BytesIO(), io.BytesIO()
    jnp.save(f, a), jnp.savez(g, a, name=a), f.seek(0), g.seek(0)
    archive = jnp.load(g)
    for b in (jnp.load(f), archive["arr_0"], archive["name"]):
        b = jnp.asarray(b).astype(a.dtype) if str(b.dtype) == "|V2" else jnp.asarray(b)
        assert b.dtype == a.dtype and b.shape == a.shape and b.tolist() == a.tolist(), (a, b)
print(jnp.fromstring("1, 2.5", sep=","))
"""


def test_without_numpy_as_with_it():
    def run(**env):
        return subprocess.run(
            [sys.executable, "-c", WITHOUT_NUMPY],
            env={**os.environ, "JAX_PLATFORMS": "wasm", **env},
            capture_output=True,
            text=True,
        )

    without = run(WEFT_NUMPY="0")
    assert without.returncode == 0, without.stderr
    lines = without.stdout.splitlines()
    assert lines[:5] == [
        "Array([[0.        , 0.33333334, 0.6666667 ],",
        "       [1.        , 1.3333334 , 1.6666666 ]], dtype=float32) [0, 1], dtype=int32)",
        "Array([[+0.000, +0.333,",
        "        +0.667],",
        "       [+1.000, +1.333,",
    ]
    assert "[[0.        ... 0.6666667]" in without.stdout and lines[-1] == "[1.  2.5]"
    assert lines[-7:-1] == ["ValueError", "ValueError", "TypeError", "TypeError", "TypeError", "NotImplementedError"]
