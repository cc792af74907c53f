"""weft.numpy follows the array API standard (2025.12): wherever array-api-strict, which refuses all that the standard
does not ask for, gives a result, weft.numpy gives the same: value, shape, dtype, and the type of what holds several.
"""

import itertools
import sys
import warnings

import array_api_compat
import array_api_strict as strict
import numpy as np
import pytest
from platforms import on

import weft
import weft.numpy as jnp

pytestmark = pytest.mark.slow

DTYPES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "complex64",
    "complex128",
)
OTHERS = {
    "ArrayAPIStrictFlags",
    "Device",
    "__version__",
    "get_array_api_strict_flags",
    "reset_array_api_strict_flags",
    "set_array_api_strict_flags",
    "linalg",
    "fft",
}
NAMES = [n for n in strict.__all__ if n not in OTHERS]
PARTS = [("linalg", n) for n in strict.linalg.__all__] + [("fft", n) for n in strict.fft.__all__]
RTOL = {"float32": 3e-6, "complex64": 3e-6, "float64": 1e-13, "complex128": 1e-13}


@pytest.fixture(autouse=True)
def wide():
    # the reference interpreter compiles nothing, and every primitive is compared with it on every backend elsewhere
    with weft.enable_x64(True), weft.default_device(weft.devices("reference")[0]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def values(dtype: str, k: int = 0) -> np.ndarray:
    """A 2 by 3 array without what the standard leaves undefined (overflow, shifts by too much)."""
    if dtype == "bool":
        return np.array([[True, False, True], [False, True, True]]) ^ bool(k)
    if dtype.startswith(("int", "uint")):
        return np.array([[[3, 1, 2], [4, 1, 5]], [[1, 2, 3], [1, 4, 1]]][k], dtype) * (
            -1 if dtype[0] == "i" and not k else 1
        )
    real = np.array([[[0.5, -0.25, 0.75], [1.0, -0.125, 1.5]], [[0.25, 0.5, -0.75], [2.0, 0.5, -1.0]]][k])
    return (real + 1j * real[::-1, ::-1] if dtype[0] == "c" else real).astype(dtype)


def same(got, want, path: str) -> None:
    if isinstance(want, (tuple, list)):
        assert isinstance(got, tuple if type(want) is tuple else type(want).__mro__[1]) and len(got) == len(want), (
            path,
            type(got),
            type(want),
        )
        assert getattr(got, "_fields", None) == getattr(want, "_fields", None), path
        for g, w in zip(got, want):
            same(g, w, path)
    elif isinstance(want, strict._array_object.Array):
        mine, theirs = np.asarray(got), want._array
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape, (
            path,
            mine.dtype,
            theirs.dtype,
            mine.shape,
            theirs.shape,
        )
        rtol = RTOL.get(theirs.dtype.name, 0)
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=rtol, err_msg=path)
    elif isinstance(want, strict._dtypes.DType):
        assert np.dtype(got) == want._np_dtype, path
    else:
        assert got == want, (path, got, want)


# What JAX answers otherwise, and weft with it: the standard wants default integers of cumulative_prod and searchsorted,
# tuples of meshgrid and broadcast_arrays (lists until 2024.12), and no promotion between kinds in can_cast.
AS_JAX = ("cumulative_prod", "xp.searchsorted", "xp.meshgrid", "xp.broadcast_arrays", "xp.can_cast(x.dtype")


def agree(f, dtypes, path: str, shape=lambda a: a) -> bool:
    """Whether the standard defines f(namespace, *arrays) for arrays of these dtypes; then weft gives the same."""
    arrays = [shape(values(d, k % 2)) for k, d in enumerate(dtypes)]
    try:
        want = f(strict, *map(strict.asarray, arrays))
    except (TypeError, ValueError):
        return False
    got, path = f(jnp, *map(jnp.asarray, arrays)), f"{path} {dtypes}"
    if path.startswith("xp.can_cast"):
        return got or not want
    if path.startswith(AS_JAX) and "dtype" not in path:
        got = tuple(got) if isinstance(want, tuple) else got.astype(want._array.dtype)
    same(got, want, path)
    return True


def test_every_name_is_there_with_the_standard_s_parameters():
    import inspect

    variadic = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    for part, name in [("", n) for n in NAMES] + PARTS:
        theirs, mine = (getattr(getattr(space, part) if part else space, name) for space in (strict, jnp))
        if not inspect.isfunction(theirs):
            continue
        have, want = inspect.signature(mine).parameters, inspect.signature(theirs).parameters
        for p in want.values():
            assert p.kind in (p.POSITIONAL_ONLY, *variadic) or p.name in have, f"{name} lacks {p.name}"
        positional = [
            sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in ps.values()) for ps in (have, want)
        ]
        assert positional[0] >= positional[1] or any(p.kind in variadic for p in have.values()), (
            f"{name} takes {positional[0]} positional arguments"
        )
    operators = {
        n
        for n in vars(strict._array_object.Array)
        if n.startswith("__") and callable(getattr(strict._array_object.Array, n))
    }
    # immutable arrays have none: x += y makes a new one
    in_place = {n for n in operators if n.replace("__i", "__", 1) in operators}
    missing = operators - in_place - {"__buffer__"} - set(dir(type(jnp.ones(2))))
    assert not missing


UNARY = """
    abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf isnan log
    log10 log1p log2 logical_not negative positive real reciprocal round sign signbit sin sinh sqrt square tan tanh
    trunc
""".split()
BINARY = """
    add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal
    floor_divide greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum
    minimum multiply nextafter not_equal pow remainder subtract
""".split()
REDUCTIONS = "all any argmax argmin count_nonzero cumulative_prod cumulative_sum max mean min prod std sum var".split()


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_array(name):
    assert any([agree(lambda xp, x: getattr(xp, name)(x), [d], name) for d in DTYPES])


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_arrays_for_every_pair_of_dtypes(name):
    """The promotion table, and that scalars take the dtype of the array."""
    f = lambda xp, *xs: getattr(xp, name)(*xs)
    assert any([agree(f, pair, name) for pair in itertools.product(DTYPES, DTYPES)])
    for d in DTYPES:
        for scalar in (True, 1, 0.5, 1j):
            agree(lambda xp, x: getattr(xp, name)(x, scalar), [d], f"{name} and {scalar}")
            agree(lambda xp, x: getattr(xp, name)(scalar, x), [d], f"{scalar} {name}")


OPERATORS = [
    "x + y",
    "x - y",
    "x * y",
    "x / y",
    "x // y",
    "x % y",
    "x ** y",
    "x @ y.T",
    "x & y",
    "x | y",
    "x ^ y",
    "x << y",
    "x >> y",
    "x == y",
    "x != y",
    "x < y",
    "x <= y",
    "x > y",
    "x >= y",
    "-x",
    "+x",
    "~x",
    "abs(x)",
    "x + 1",
    "2 * x",
    "1.5 * x",
    "True & x",
    "x[1, ...]",
    "x[:, ::-1]",
    "x[None, 0, ...]",
    "float(x[0, 0])",
    "int(x[0, 0])",
    "bool(x[0, 0])",
    "complex(x[0, 0])",
    "x.T",
    "x.mT",
    "x.shape",
    "x.ndim",
    "x.size",
]


@pytest.mark.parametrize("text", OPERATORS)
def test_operators(text):
    pairs = itertools.product(DTYPES, DTYPES) if "y" in text else [(d, d) for d in DTYPES]
    assert any([agree(lambda xp, x, y: eval(text, {"x": x, "y": y, "xp": xp}), pair, text) for pair in pairs])


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name):
    for d in DTYPES:
        for kw in (
            {},
            {"axis": 0},
            {"axis": -1},
            {"axis": (0, 1)},
            {"axis": -1, "keepdims": True},
            {"axis": 0, "include_initial": True},
            {"axis": 0, "dtype": "float64"},
            {"axis": 0, "dtype": "int8"},
            {"correction": 1},
        ):

            def f(xp, x):
                return getattr(xp, name)(x, **{k: getattr(xp, v) if k == "dtype" else v for k, v in kw.items()})

            agree(f, [d], f"{name} {kw}")
        if not name.startswith("cumulative"):
            agree(lambda xp, x: getattr(xp, name)(x[0, 0]), [d], f"{name} of a scalar")
        agree(lambda xp, x: getattr(xp, name)(x[:0, :], axis=0), [d], f"{name} of nothing")


CALLS = """
xp.astype(x, xp.float32); xp.astype(x, xp.bool); xp.astype(x, xp.complex128); xp.can_cast(x.dtype, xp.float64)
xp.isdtype(x.dtype, 'real floating')
xp.isdtype(x.dtype, ('bool', 'integral')); xp.isdtype(x.dtype, 'numeric'); xp.isdtype(x.dtype, xp.int8)
xp.result_type(x, y); xp.result_type(x, 1)
xp.result_type(x, 1.5); xp.result_type(x.dtype, y); xp.finfo(x.dtype).eps; xp.finfo(x.dtype).bits; xp.finfo(x).max
xp.finfo(x.dtype).smallest_normal
xp.finfo(x.dtype).dtype; xp.iinfo(x.dtype).max; xp.iinfo(x).min; xp.iinfo(x.dtype).bits; xp.iinfo(x.dtype).dtype
xp.broadcast_shapes((2, 1), (3,), ())
xp.asarray([[1, 2], [3, 4]], dtype=x.dtype); xp.asarray(x, copy=True); xp.asarray([1., 2]); xp.asarray(3)
xp.asarray(True); xp.asarray(1j); xp.asarray([True, 1.])
xp.arange(3); xp.arange(1, 7, 2); xp.arange(0., 1., .25); xp.arange(5, dtype=x.dtype); xp.zeros((2, 0), dtype=x.dtype)
xp.ones(3); xp.ones((), dtype=x.dtype)
xp.empty((2,), dtype=x.dtype).shape; xp.empty_like(x).dtype; xp.zeros_like(x); xp.ones_like(x); xp.full((2,), 3)
xp.full((2,), True); xp.full((), 1.5)
xp.full((2,), 1j); xp.full(2, 1, dtype=x.dtype); xp.full_like(x, 1); xp.eye(3); xp.eye(2, 3, k=1, dtype=x.dtype)
xp.linspace(0, 1, 5); xp.linspace(0., 9., 3, dtype=xp.float32)
xp.linspace(0, 1, 4, endpoint=False); xp.linspace(0, 1j, 3); xp.meshgrid(x[0, :], y[:, 0])
xp.meshgrid(x[0, :], x[0, :2], indexing='ij'); xp.tril(x); xp.triu(x, k=1)
xp.broadcast_arrays(x, x[:1, :]); xp.broadcast_to(x, (4, 2, 3)); xp.concat([x, y]); xp.concat([x, x], axis=1)
xp.concat((x, x), axis=None); xp.concat([x, x], axis=-1)
xp.expand_dims(x, axis=1); xp.expand_dims(x, axis=-1); xp.expand_dims(x, axis=(0, -1)); xp.flip(x); xp.flip(x, axis=-1)
xp.moveaxis(x, 0, -1); xp.permute_dims(x, (1, 0))
xp.repeat(x, 2); xp.repeat(x, 2, axis=1); xp.repeat(x, xp.asarray([1, 2]), axis=0); xp.reshape(x, (3, -1))
xp.reshape(x, (6,), copy=True); xp.roll(x, 1)
xp.roll(x, (1, -1), axis=(0, 1)); xp.squeeze(x[:1, :], 0); xp.squeeze(x[:1, :], axis=(0,)); xp.stack([x, y])
xp.stack([x, x], axis=-1); xp.tile(x, (2, 1)); xp.tile(x, (2, 1, 2))
xp.unstack(x); xp.unstack(x, axis=1); xp.nonzero(x); xp.searchsorted(xp.asarray([0., .5, 2.]), xp.astype(x, xp.float64))
xp.searchsorted(xp.sort(x[0, :]), y[0, :], side='right')
xp.searchsorted(xp.sort(x[0, :]), y[0, :], sorter=xp.argsort(xp.sort(x[0, :])))
xp.searchsorted(xp.asarray([1., 2.]), 1.5); xp.where(x == x, x, y); xp.where(x != x, x, 1); xp.where(x == x, 0, x)
xp.unique_all(x); xp.unique_counts(x); xp.unique_inverse(x); xp.unique_values(x); xp.isin(x, y); xp.isin(x, 1)
xp.isin(1, x)
xp.sort(x); xp.sort(x, axis=0); xp.sort(x, descending=True, stable=True); xp.argsort(x)
xp.argsort(x, axis=0, descending=True); xp.argsort(x, stable=True)
xp.diff(x); xp.diff(x, axis=0, n=1); xp.diff(x, n=2); xp.diff(x, prepend=x[:, :1]); xp.diff(x, append=x[:, :1])
xp.clip(x, 0, 2); xp.clip(x, y, None); xp.clip(x, max=1); xp.clip(x, 0.5, 1.)
xp.take(x, xp.asarray([1, 0]), axis=1); xp.take(x[0, :], xp.asarray([2, 0, -1])); xp.take(x, xp.asarray([0]), axis=0)
xp.take_along_axis(x, xp.asarray([[0, 1], [2, 0]]), axis=1)
xp.take_along_axis(x, xp.asarray([[0, 1, 1]]), axis=0); xp.matmul(x, y.T); xp.matmul(x, y[0, :]); xp.matrix_transpose(x)
xp.tensordot(x, y, axes=2); xp.tensordot(x, y.T, axes=1)
xp.tensordot(x, y, axes=((0,), (0,))); xp.vecdot(x, y); xp.vecdot(x, y, axis=-2); xp.vecdot(x, y[0, :])
x.to_device(x.device) is not None; x.__array_namespace__() is xp
x.__array_namespace__(api_version='2025.12') is xp; xp.asarray(x, device=x.device); xp.zeros(2, device=x.device)
x.device is not None
xp.pi; xp.e; xp.inf; xp.isnan(xp.asarray(xp.nan)); xp.newaxis; xp.__array_api_version__; xp.max(x, axis=())
xp.sum(x, axis=()); xp.std(x, correction=1.); xp.var(x, axis=0, correction=.5)
xp.linalg.cholesky(x @ xp.conj(x).mT + 4 * xp.eye(2, dtype=x.dtype)); xp.linalg.cross(x, y)
xp.linalg.cross(x.mT, y.mT, axis=-2); xp.linalg.det(x[:, :2]); xp.linalg.slogdet(x[:, :2])
xp.linalg.diagonal(x); xp.linalg.diagonal(x, offset=1); xp.linalg.eigvalsh(x @ xp.conj(x).mT)
xp.linalg.eigh(x @ xp.conj(x).mT).eigenvalues; xp.linalg.inv(x[:, :2]); xp.linalg.matmul(x, y.T)
xp.linalg.matrix_norm(x); xp.linalg.matrix_norm(x, ord=1, keepdims=True); xp.linalg.matrix_norm(x, ord='nuc')
xp.linalg.matrix_norm(x, ord=-xp.inf); xp.linalg.matrix_power(x[:, :2], 3)
xp.linalg.matrix_power(x[:, :2], -1); xp.linalg.matrix_power(x[:, :2], 0); xp.linalg.matrix_rank(x)
xp.linalg.matrix_rank(x, rtol=.5); xp.linalg.matrix_transpose(x); xp.linalg.outer(x[0, :], y[1, :])
xp.linalg.pinv(x); xp.linalg.pinv(x, rtol=.1); xp.linalg.solve(x[:, :2], y); xp.linalg.solve(x[:, :2], y[:, 0])
xp.linalg.svdvals(x); xp.linalg.svd(x, full_matrices=False).S
[u.shape for u in xp.linalg.svd(x)]; [q.shape for q in xp.linalg.qr(x, mode='complete')]
xp.linalg.qr(x)[0] @ xp.linalg.qr(x)[1]; xp.linalg.tensordot(x, y, axes=2); xp.linalg.trace(x)
xp.linalg.trace(x, offset=1, dtype=xp.float64); xp.linalg.vecdot(x, y); xp.linalg.vector_norm(x)
xp.linalg.vector_norm(x, axis=0, ord=1); xp.linalg.vector_norm(x, axis=(0, 1), keepdims=True)
xp.linalg.vector_norm(x, axis=1, ord=xp.inf); xp.linalg.vector_norm(x, ord=3); xp.linalg.vector_norm(x, axis=1, ord=0)
xp.sort(xp.real(xp.linalg.eigvals(x[:, :2]))); xp.linalg.eig(x[:, :2])[1].dtype
xp.fft.fft(x); xp.fft.fft(x, n=4, axis=0, norm='ortho'); xp.fft.ifft(x); xp.fft.fftn(x)
xp.fft.fftn(x, s=(2, 4), axes=(0, 1), norm='forward'); xp.fft.ifftn(x); xp.fft.rfft(x)
xp.fft.irfft(x); xp.fft.rfft(x, n=5); xp.fft.irfft(x, n=5); xp.fft.rfftn(x); xp.fft.irfftn(x)
xp.fft.irfftn(x, s=(2, 5), axes=(0, 1)); xp.fft.hfft(x); xp.fft.ihfft(x); xp.fft.fftfreq(5, d=.5)
xp.fft.rfftfreq(5); xp.fft.fftfreq(4, dtype=xp.float32); xp.fft.fftshift(x); xp.fft.fftshift(x, axes=1)
xp.fft.ifftshift(x)
"""


@pytest.mark.parametrize("text", [e for line in CALLS.strip().splitlines() for e in line.split("; ")])
def test_calls(text):
    code = compile(text, "call", "eval")
    assert any([agree(lambda xp, x, y: eval(code, {"xp": xp, "x": x, "y": y}), (d, d), text) for d in DTYPES])


def test_every_function_is_among_the_cases():
    import re

    called = {*UNARY, *BINARY, *REDUCTIONS, *re.findall(r"[a-z_0-9]+", CALLS), *DTYPES, "from_dlpack"}
    assert {*NAMES, *(n for _, n in PARTS)} - called - {"__array_namespace_info__"} == set()


def test_the_namespace_tells_of_itself():
    info, theirs = jnp.__array_namespace_info__(), strict.__array_namespace_info__()
    assert set(info.capabilities()) == set(theirs.capabilities())
    for kind in (
        None,
        "bool",
        "signed integer",
        "unsigned integer",
        "integral",
        "real floating",
        "complex floating",
        "numeric",
        ("bool", "integral"),
        (),
    ):
        assert {k: np.dtype(v) for k, v in info.dtypes(kind=kind).items()} == {
            k: v._np_dtype for k, v in theirs.dtypes(kind=kind).items()
        }
    assert {k: np.dtype(v) for k, v in info.default_dtypes().items()} == {
        k: v._np_dtype for k, v in theirs.default_dtypes().items()
    }
    assert info.default_device() in info.devices()
    with weft.enable_x64(False):
        assert info.default_dtypes() == {
            "real floating": "float32",
            "complex floating": "complex64",
            "integral": "int32",
            "indexing": "int32",
        }
        assert "float64" not in info.dtypes() and "int64" not in info.dtypes(kind="integral")
    with pytest.raises(ValueError, match="kind takes .* got 'floaty'"):
        info.dtypes(kind="floaty")
    for version in ("2022.12", "2023.12", "2024.12", "2025.12"):
        assert jnp.ones(1).__array_namespace__(api_version=version) is jnp
    with pytest.raises(ValueError, match="api_version '2021.12'"):
        jnp.ones(1).__array_namespace__(api_version="2021.12")


def test_arrays_go_to_other_libraries_and_back():
    with on("cpu"):
        x = jnp.arange(6.0).reshape(2, 3)
        assert x.device in jnp.__array_namespace_info__().devices()
        theirs = strict.from_dlpack(np.from_dlpack(x))
        assert (theirs._array == np.asarray(x)).all() and (jnp.from_dlpack(theirs._array) == x).all()


def test_array_api_compat_recognises_our_arrays():
    def f(x):
        xp = array_api_compat.array_namespace(x, 1.5, api_version="2025.12")
        assert (
            xp is jnp
            and array_api_compat.is_array_api_obj(x)
            and array_api_compat.is_array_api_strict_namespace(xp) is False
        )
        return xp.mean(x, axis=0) + 2 * xp.std(x, axis=0)

    x = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(f(x), weft.jit(f)(x))
    np.testing.assert_allclose(weft.vmap(f, 1)(x), f(x))
    assert (
        array_api_compat.device(x) == x.device
        and array_api_compat.to_device(x, x.device) is not None
        and array_api_compat.size(x) == 6
    )
    for foreign in ("numpy", "cupy", "torch", "dask"):
        assert not getattr(array_api_compat, f"is_{foreign}_array")(x)
    assert array_api_compat.is_jax_array(x) == ("jax" in sys.modules)  # weft.as_jax
    with pytest.raises(TypeError):
        array_api_compat.array_namespace(x, np.ones(2))
