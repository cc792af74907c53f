"""Complex numbers: functions against NumPy, everything that moves, reduces, multiplies, sorts and loops against the
reference rules, transforms of any length.
"""

import numpy as np
import pytest
import weft
import weft.numpy as jnp
from wasm_harness import assert_close, run, reference
from weft import lax
from weft.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from weft_wasm.lower.complexes import planes

rng = np.random.default_rng(0)
UNARY = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "expm1": np.expm1,
    "log1p": np.log1p,
    "abs": np.abs,
    "conj": np.conj,
    "real": np.real,
    "imag": np.imag,
    "square": np.square,
    "exp2": np.exp2,
    "sign": lambda z: z / abs(z),
    "rsqrt": lambda z: 1 / np.sqrt(z),
    "logistic": lambda z: 1 / (1 + np.exp(-z)),
    "neg": np.negative,
}


def numbers(*shape, dtype="complex64", scale=1.0):
    return (scale * (rng.normal(size=shape) + 1j * rng.normal(size=shape))).astype(dtype)


@pytest.mark.parametrize("dtype,bound", [("complex64", 3e-6), ("complex128", 1e-14)])
def test_functions(dtype, bound):
    """In value, relative to |f(z)|, for arguments small and large."""
    z = np.concatenate([numbers(300, dtype=dtype, scale=s) for s in (1e-3, 0.3, 1, 5)])
    outs = weft.jit(lambda z: {name: getattr(lax, name)(z) for name in UNARY})(z)
    for name, f in UNARY.items():
        want, got = f(z.astype("complex128")), np.asarray(outs[name])
        assert got.dtype == (dtype if np.iscomplexobj(want) else z.real.dtype), name
        # of which NumPy knows fewer digits
        assert np.max(np.abs(got - want) / np.abs(want)) < (
            bound if name not in ("log1p", "expm1") else max(20 * bound, 1e-11)
        ), name
    w = numbers(1200, dtype=dtype)
    for name, got, want in zip(
        ("div", "mul", "pow"),
        weft.jit(lambda z, w: (z / w, z * w, z**w))(z, w),
        (z / w, z * w, z.astype("complex128") ** w),
    ):
        assert np.max(np.abs(np.asarray(got) - want) / np.abs(want)) < 10 * bound, name


@pytest.mark.parametrize(
    "f,points,wants",
    [
        (
            lax.abs,
            [complex(3e38, 3e38), complex(1e-30, 1e-30), complex(np.inf, 1), 0],
            [np.inf, 1.4142135e-30, np.inf, 0],
        ),
        (lax.log, [0, complex(0, -1), complex(1, 1e-20), -1], [-np.inf, -1j * np.pi / 2, 1e-20j, 1j * np.pi]),
        (
            lax.sqrt,
            [-4, complex(-np.inf, 1), complex(1, np.inf), complex(3e38, 3e38), 0],
            [2j, complex(0, np.inf), complex(np.inf, np.inf), complex(1.902977e19, 7.882389e18), 0],
        ),
        (lax.exp, [complex(-np.inf, 3), complex(88.8, 1.5)], [0, 3.7159e38 * np.exp(1.5j)]),
        (
            lambda z: 1 / z,
            [0, complex(np.inf, 0), complex(1e30, 1e30), complex(1e-30, 0)],
            [complex(np.inf, np.nan), 0, complex(5e-31, -5e-31), 1e30],
        ),
    ],
)
def test_where_formulas_overflow(f, points, wants):
    got = np.asarray(weft.jit(f)(np.array(points, np.complex64)))
    for g, w in zip(got, np.array(wants, got.dtype)):
        for a, b in ((g.real, w.real), (g.imag, w.imag)):
            assert np.isnan(a) and np.isnan(b) or a == b or abs(a - b) <= 1e-4 * abs(w), (g, w)


def check(f, *args, tolerance=2e-5):
    for g, w in zip(run(f, *args), reference(f, *args), strict=True):
        for part in (np.real, np.imag) if np.iscomplexobj(w) else (np.asarray,):
            assert_close(part(g), part(w), tolerance)


def test_structure():
    x, u, v = numbers(4, 5), numbers(2, 3), numbers(4, 5)
    i = np.int32([[3], [0], [9]])
    row = lax.GatherDimensionNumbers((1,), (0,), (0,))
    put = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    check(
        lambda x, u, v, i: [
            x + v,
            x * 2.5,
            -x,
            x.T,
            x[1:, ::2],
            lax.rev(x, (0,)),
            lax.pad(x, u[0, 0], ((1, 0, 2), (-1, 1, 0))),
            lax.concatenate([x, v], 1),
            lax.dynamic_slice(x, (i[0, 0], 1), (2, 3)),
            lax.dynamic_update_slice(x, u, (1, i[1, 0])),
            jnp.where(x.real > 0, x, v),
            x == v,
            x != v,
            lax.gather(x, i, row, (1, 5), mode="clip"),
            lax.scatter_add(x, i, v[:3], put),
            lax.scatter(x, i, v[:3], put),
            lax.scatter_mul(x, jnp.concatenate([i, i]), jnp.concatenate([v[:3], v[:3]]), put),
            x.sum(0),
            x.mean(),
            jnp.prod(x, 1),
            lax.reduce_max(x, (0,)),
            lax.reduce_min(x, (0, 1)),
            lax.cumsum(x, 0),
            lax.cumprod(x, 1),
            lax.integer_pow(x, 3),
            lax.integer_pow(x, -2),
            x.astype("complex128"),
            x.real.astype("complex64"),
            lax.complex(x.real, v.imag),
            jnp.tile(x, 2),
            lax.max(x, v),
            lax.min(x, v),
        ],
        x,
        u,
        v,
        i,
    )


def test_products():
    x, y, k = numbers(3, 4, 5), numbers(3, 5, 2), numbers(6, 2, 3)
    check(
        lambda x, y, k: [
            lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))),
            lax.dot_general(x, y.real.astype("complex64"), (((2,), (1,)), ((0,), (0,)))),
            lax.conv(lax.concatenate([x, x], 1)[:, :2], k, (1,), "SAME"),
        ],
        x,
        y,
        k,
    )


def test_sorting_is_lexicographic():
    x = np.round(numbers(40)).astype("complex64")
    x[3], x[7] = complex(np.nan, 1), complex(1, np.nan)
    check(lambda x: [lax.sort(x), *lax.sort((x, jnp.arange(40)), num_keys=1), lax.sort((x.real, x), num_keys=2)[1]], x)


def test_loops():
    x = numbers(5)
    check(
        lambda x: [
            *lax.scan(lambda c, v: (c * v + 1.0, (c, v.real)), x[0], x)[1],
            lax.fori_loop(0, 4, lambda i, z: z * z * 0.1 + x, x),
            lax.while_loop(lambda z: jnp.abs(z).sum() < 50, lambda z: z * (1 + 1j), x),
            lax.cond(x[0].real > 0, jnp.conj, jnp.exp, x),
        ],
        x,
    )


def test_derivatives():
    x = numbers(6)
    f = lambda x: jnp.sum(jnp.abs(jnp.fft.fft(jnp.sin(x)) * jnp.exp(x)) ** 2)
    got, want = weft.jit(weft.grad(f))(x), reference(weft.grad(f), x)[0]
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-4)


@pytest.mark.parametrize(
    "n", [1, 2, 7, 30, 37, *[pytest.param(n, marks=pytest.mark.slow) for n in (3, 4, 6, 15, 64, 74, 101, 256, 1 << 14)]]
)
def test_transforms_of_any_length(n):
    for dtype, bound in (("complex64", 8e-7), ("complex128", 3e-15)) if n in (7, 64, 74) else (("complex64", 8e-7),):
        z = numbers(2, n, dtype=dtype)
        half = z[:, : n // 2 + 1]
        transforms = weft.jit(lambda z, h: (jnp.fft.fft(z), jnp.fft.ifft(z), jnp.fft.rfft(z.real), jnp.fft.irfft(h, n)))
        got = transforms(z, half)
        for g, w in zip(got, (np.fft.fft(z), np.fft.ifft(z), np.fft.rfft(z.real), np.fft.irfft(half, n))):
            assert g.shape == w.shape and np.abs(np.asarray(g) - w).max() <= bound * max(np.abs(w).max(), 1e-30)


def test_transforms_of_several_axes():
    z = numbers(2, 6, 5, 8)
    got = weft.jit(
        lambda z: (
            jnp.fft.fftn(z, axes=(1, 2, 3)),
            jnp.fft.ifftn(z, axes=(1, 3)),
            jnp.fft.rfftn(z.real, axes=(1, 2, 3)),
            jnp.fft.irfftn(z, (6, 5, 14), (1, 2, 3)),
        )
    )(z)
    wants = (
        np.fft.fftn(z, axes=(1, 2, 3)),
        np.fft.ifftn(z, axes=(1, 3)),
        np.fft.rfftn(z.real, axes=(1, 2, 3)),
        np.fft.irfftn(z, (6, 5, 14), (1, 2, 3)),
    )
    for g, w in zip(got, wants):
        np.testing.assert_allclose(np.asarray(g), w, rtol=1e-5, atol=2e-6 * np.abs(w).max())


@pytest.mark.slow
def test_linear_algebra():
    a = numbers(2, 5, 5, dtype="complex128")
    spd = a @ a.conj().swapaxes(1, 2) + np.eye(5)
    with weft.enable_x64(True):
        low, (q, r), w, (v, e), (u, s, vt), x = weft.jit(
            lambda a, spd: (
                jnp.linalg.cholesky(spd),
                jnp.linalg.qr(a),
                jnp.linalg.det(a),
                lax.linalg.eigh(spd),
                jnp.linalg.svd(a),
                jnp.linalg.solve(a, spd),
            )
        )(a, spd)
    h = lambda m: np.asarray(m).conj().swapaxes(1, 2)
    close = lambda g, want: np.testing.assert_allclose(np.asarray(g), want, atol=1e-9)
    close(low @ h(low), spd)
    close(q @ r, a)
    close(h(q) @ np.asarray(q), np.broadcast_to(np.eye(5), (2, 5, 5)))
    close(w, np.linalg.det(a))
    close(e, np.linalg.eigvalsh(spd))
    close(np.asarray(v) * np.asarray(e)[:, None] @ h(v), spd)
    close(np.asarray(u) * np.asarray(s)[:, None] @ np.asarray(vt), a)
    close(a @ np.asarray(x), spd)


def test_planes_of_one_jaxpr_with_other_constants_are_others():
    """The real form of a jaxpr is kept by the identity of its constants: one that died must not be taken for another
    that came to lie where it was.
    """
    one, zero = np.ones(3, "float32"), np.zeros(3, "float32")
    factor = jnp.asarray(numbers(3))
    closed = weft.make_jaxpr(lambda x: x * factor)(numbers(3))
    for k in range(1, 20):
        held = np.full(3, k, "complex64")
        form = planes(ClosedJaxpr(closed.jaxpr, [held]))
        assert np.asarray(jaxpr_as_fun(form)(one, zero)[0])[0] == k
        del held, form
