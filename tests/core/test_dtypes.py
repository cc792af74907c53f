"""Promotion: against the table that the oracle gave (make_promotions.py prints it)."""

import itertools
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from weft.base import dtypes, promotion
from weft.base.avals import shaped
from weft.base.config import enable_x64, numpy_dtype_promotion
from weft.errors import TypePromotionError
from weft.base.host import pack, unpack
from weft.primitives.rules import check_kind

NAMES = [
    "bool",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "int8",
    "int16",
    "int32",
    "int64",
    "bfloat16",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
TABLE = json.loads((pathlib.Path(__file__).parent / "promotions.json").read_text())


def test_promotion_table():
    with enable_x64(True):
        for a, b in itertools.product([(n, w) for n in NAMES for w in (False, True)], repeat=2):
            if (a[1] and a[0] not in ("int64", "float64", "complex128")) or (
                b[1] and b[0] not in ("int64", "float64", "complex128")
            ):
                continue
            dt, weak = promotion.promote((dtypes.dtype(a[0]), a[1]), (dtypes.dtype(b[0]), b[1]))
            assert [dtypes.name(dt), weak] == TABLE[f"{a[0]}{'*' * a[1]} {b[0]}{'*' * b[1]}"], (a, b)


def test_strict_promotion():
    f32, i32 = dtypes.float32, dtypes.int32
    with numpy_dtype_promotion("strict"):
        assert promotion.promote((f32, False), (dtypes.int64, True)) == (f32, False)
        with pytest.raises(TypePromotionError, match="strict"):
            promotion.promote((f32, False), (i32, False))
        with pytest.raises(TypePromotionError):
            promotion.promote((i32, False), (dtypes.float64, True))


def test_float8_never_promotes():
    with pytest.raises(TypePromotionError, match="astype"):
        promotion.promote((dtypes.dtype("float8_e5m2"), False), (dtypes.float32, False))


def test_canonical():
    assert dtypes.canonicalize(float) == dtypes.float32 and dtypes.canonicalize("int64") == dtypes.int32
    with enable_x64(True):
        assert dtypes.canonicalize(float) == dtypes.float64
    with pytest.raises(TypeError, match="not a dtype"):
        dtypes.dtype("float31")


@pytest.mark.parametrize("name", NAMES)
def test_pack_and_unpack_agree_with_numpy(name):
    dt = dtypes.dtype(name)
    values = np.array([0, 1, 2, 3, 100]).astype(dt)
    assert bytes(pack(values.tolist(), name)) == values.tobytes()
    assert unpack(values.tobytes(), name) == values.astype(complex if "complex" in name else float).tolist()


def test_bfloat16_rounding():
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [rng.normal(size=1000) * 10.0 ** rng.integers(-40, 39, 1000), [np.inf, -np.inf, 3.4e38, 1e-45, 0.0, -0.0]]
    )
    assert bytes(pack(x.tolist(), "bfloat16")) == x.astype(np.float32).astype(dtypes.bfloat16).tobytes()
    assert np.isnan(unpack(pack([float("nan")], "bfloat16"), "bfloat16")[0])


def test_overflow_gives_infinity_and_wraps():
    assert unpack(pack([1e300, -1e300], "float32"), "float32") == [float("inf"), float("-inf")]
    assert unpack(pack([300, -1], "uint8"), "uint8") == [44, 255]


def test_issubdtype():
    import weft.numpy as jnp

    assert jnp.issubdtype(dtypes.bfloat16, jnp.floating) and not jnp.issubdtype(jnp.int32, jnp.floating)
    assert jnp.issubdtype(np.int8, np.signedinteger) and jnp.issubdtype(jnp.float32, np.inexact)
    assert jnp.float32 == np.dtype("float32") and jnp.bfloat16.dtype == dtypes.bfloat16


@pytest.mark.parametrize(
    "kinds,words",
    [("b", "bool"), ("iu", "int, uint"), ("fc", "float, complex"), ("biufc", "bool, int, uint, float, complex")],
)
def test_an_operation_says_which_dtypes_it_takes(kinds, words):
    examples = {"b": "bool", "i": "int8", "u": "uint16", "f": "bfloat16", "c": "complex64"}
    for kind, name in examples.items():
        if kind in kinds:
            check_kind("f", shaped((2,), dtypes.dtype(name)), kinds)
        else:
            with pytest.raises(TypeError, match=f"^f does not accept dtype {name}: it takes {words}[.]\n"):
                check_kind("f", shaped((2,), dtypes.dtype(name)), kinds)
    with pytest.raises(TypeError, match=f"^f does not accept dtype float0: it takes {words}[.]\n"):
        check_kind("f", shaped((2,), dtypes.float0), kinds)


def test_without_numpy():
    """The same table and packing where NumPy is blocked."""
    code = (
        "import weft.base.dtypes as d\n"
        "from weft.base.limits import finfo, iinfo\n"
        "from weft.base.promotion import promote\n"
        "assert d.np is None\n"
        "assert promote((d.dtype('bfloat16'), False), (d.dtype('float16'), False))[0].name == 'float32'\n"
        "assert d.dtype('float32') == 'float32' and d.issubdtype('bfloat16', d.floating)\n"
        "assert finfo('float32').eps == 2.0 ** -23 and iinfo('int8').max == 127"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=dict(os.environ, WEFT_NUMPY="0"))


def test_bfloat16_is_the_class_of_its_host_scalars():
    import weft.numpy as jnp

    assert isinstance(np.asarray(jnp.ones(1, jnp.bfloat16))[0], dtypes.bfloat16) and not isinstance(
        1.0, dtypes.bfloat16
    )
    assert (
        jnp.zeros(2, dtypes.bfloat16).dtype == jnp.bfloat16
        and np.zeros(2, "V2").view(dtypes.bfloat16).dtype == jnp.bfloat16
    )
