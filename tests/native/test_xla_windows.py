"""Lowering rules of convolutions, windows and generators, each against a plain loop.

The equations are made by hand, so that the rules are tested by their parameters alone.
"""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from platforms import need

need("cpu")
from conftest_native import values
import weft
from weft import lax
from weft.base import dtypes
from weft.base.avals import shaped
from weft.core.jaxpr import Jaxpr, JaxprEqn, Var
from weft.core.trace import get_aval
from weft.primitives import elementwise as e, transcendental
from weft.transforms.stage import stage_closed


def run(backend, name, args, outs, multiple=False, **params):
    """One equation of a primitive known by its name alone, on XLA."""
    primitive = SimpleNamespace(
        carries=None, name=name, multiple_results=multiple, decompose=None, dce=None, lowerings={}, foreign=False
    )
    invars, outvars = [Var(get_aval(a)) for a in args], [Var(shaped(s, dtypes.dtype(d))) for s, d in outs]
    cpu = backend.devices("cpu")[0]
    exe = backend.compile(Jaxpr([], invars, outvars, [JaxprEqn(invars, outvars, primitive, params)]), cpu)
    return [o._host() for o in exe.execute([backend.put(a, get_aval(a), cpu, False) for a in args])]


class ConvDimensionNumbers(NamedTuple):
    lhs_spec: tuple
    rhs_spec: tuple
    out_spec: tuple


def dilate(x, steps, axes):
    for axis, s in zip(axes, steps):
        shape = list(x.shape)
        shape[axis] = (shape[axis] - 1) * s + 1
        wide = np.zeros(shape, x.dtype)
        wide[tuple(slice(None, None, s) if d == axis else slice(None) for d in range(x.ndim))] = x
        x = wide
    return x


def conv_reference(x, k, strides, padding, lhs_dilation, rhs_dilation, groups, batch_groups):
    """Convolution of x (batch, feature, *space) with k (out, in, *space)."""
    n = x.ndim - 2
    x, k = (
        dilate(x.astype(np.float64), lhs_dilation, range(2, 2 + n)),
        dilate(k.astype(np.float64), rhs_dilation, range(2, 2 + n)),
    )
    x = np.pad(x, [(0, 0), (0, 0), *padding])
    space = [(x.shape[2 + d] - k.shape[2 + d]) // strides[d] + 1 for d in range(n)]
    out = np.zeros((x.shape[0] // batch_groups, k.shape[0], *space))
    per_out, per_batch = k.shape[0] // (groups * batch_groups), x.shape[0] // batch_groups
    for b, o in itertools.product(range(out.shape[0]), range(k.shape[0])):
        group = o // per_out
        image = x[(group if batch_groups > 1 else 0) * per_batch + b]
        features = image[(group if groups > 1 else 0) * k.shape[1] :][: k.shape[1]]
        for at in np.ndindex(*space):
            window = tuple(slice(p * s, p * s + m) for p, s, m in zip(at, strides, k.shape[2:]))
            out[(b, o, *at)] = np.sum(features[(slice(None), *window)] * k[o])
    return out


NCHW = ConvDimensionNumbers((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3))


@pytest.mark.parametrize(
    "strides,padding,lhs,rhs,groups,batch_groups",
    [
        ((1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1), 1, 1),
        ((2, 1), ((1, 1), (0, 2)), (1, 1), (1, 1), 1, 1),
        ((1, 1), ((1, 1), (1, 1)), (2, 1), (1, 2), 1, 1),
        ((1, 2), ((0, 0), (1, 0)), (1, 1), (1, 1), 2, 1),
        ((1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1), 1, 2),
    ],
)
@pytest.mark.parametrize("dt", ["float32", "bfloat16"])
def test_convolution(backend, strides, padding, lhs, rhs, groups, batch_groups, dt):
    x, k = values((2, 4, 6, 5), dt, 1), values((4, 4 // groups, 3, 2), dt, 2)
    want = conv_reference(x, k, strides, padding, lhs, rhs, groups, batch_groups)
    (got,) = run(
        backend,
        "conv_general_dilated",
        [x, k],
        [(want.shape, dt)],
        window_strides=strides,
        padding=padding,
        lhs_dilation=lhs,
        rhs_dilation=rhs,
        dimension_numbers=NCHW,
        feature_group_count=groups,
        batch_group_count=batch_groups,
        precision=None,
        preferred_element_type=None,
        out_sharding=None,
    )
    np.testing.assert_allclose(
        got.astype(np.float64), want, rtol=1e-4 if dt == "float32" else 5e-2, atol=1e-4 if dt == "float32" else 0.5
    )


def test_convolution_layouts(backend):
    x, k = values((1, 6, 5, 3), "float32", 1), values((2, 2, 3, 4), "float32", 2)  # NHWC, HWIO
    numbers = ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    want = conv_reference(
        x.transpose(0, 3, 1, 2), k.transpose(3, 2, 0, 1), (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1), 1, 1
    ).transpose(0, 2, 3, 1)
    (got,) = run(
        backend,
        "conv_general_dilated",
        [x, k],
        [(want.shape, "float32")],
        window_strides=(1, 1),
        padding=((0, 0), (0, 0)),
        lhs_dilation=(1, 1),
        rhs_dilation=(1, 1),
        dimension_numbers=numbers,
        feature_group_count=1,
        batch_group_count=1,
        precision=("high", "highest"),
        preferred_element_type=None,
    )
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


WINDOW = dict(
    window_dimensions=(2, 3),
    window_strides=(1, 2),
    padding=((1, 0), (1, 1)),
    base_dilation=(1, 1),
    window_dilation=(2, 1),
)


def window_reference(x, combine, init, window_dimensions, window_strides, padding, base_dilation, window_dilation):
    x = np.pad(x, padding, constant_values=init)
    sizes = [(m - 1) * s + 1 for m, s in zip(window_dimensions, window_dilation)]
    out = np.zeros([(n - m) // s + 1 for n, m, s in zip(x.shape, sizes, window_strides)], x.dtype)
    for at in np.ndindex(*out.shape):
        acc = init
        for offset in np.ndindex(*window_dimensions):
            acc = combine(
                acc, x[tuple(a * s + o * d for a, s, o, d in zip(at, window_strides, offset, window_dilation))]
            )
        out[at] = acc
    return out


@pytest.mark.parametrize(
    "name,combine,init", [("sum", np.add, 0), ("max", np.maximum, -np.inf), ("min", np.minimum, np.inf)]
)
def test_reduce_window(backend, name, combine, init):
    x = values((5, 7), "float32")
    want = window_reference(x, combine, np.float32(init), **WINDOW)
    (got,) = run(backend, f"reduce_window_{name}", [x], [(want.shape, "float32")], **WINDOW)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_reduce_window_with_a_function(backend):
    x, scalar = values((5, 7), "float32"), shaped((), dtypes.float32)
    jaxpr = stage_closed(lambda a, b: [e.mul(a, b)], [scalar, scalar])
    want = window_reference(x, np.multiply, np.float32(1), **WINDOW)
    (got,) = run(
        backend,
        "reduce_window",
        [x, np.float32(1)],
        [(want.shape, "float32")],
        multiple=True,
        jaxpr=jaxpr,
        consts=(),
        **WINDOW,
    )
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_select_and_scatter_add(backend):
    x, ct = np.random.default_rng(0).permutation(24).reshape(4, 6).astype(np.float32), values((2, 3), "float32")
    want = np.zeros_like(x)
    for i, j in np.ndindex(2, 3):
        block = x[2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
        a, b = np.unravel_index(np.argmax(block), (2, 2))
        want[2 * i + a, 2 * j + b] += ct[i, j]
    (got,) = run(
        backend,
        "select_and_scatter_add",
        [ct, x],
        [(x.shape, "float32")],
        select_prim="ge",
        window_dimensions=(2, 2),
        window_strides=(2, 2),
        padding=((0, 0), (0, 0)),
    )
    np.testing.assert_allclose(got, want)


def test_splitting_and_tiling(backend):
    x = values((6, 3), "float32")
    a, b = run(backend, "split", [x], [((2, 3), "float32"), ((4, 3), "float32")], multiple=True, sizes=(2, 4), axis=0)
    assert np.array_equal(a, x[:2]) and np.array_equal(b, x[2:])
    (tiled,) = run(backend, "tile", [x], [((12, 9), "float32")], reps=(2, 3))
    assert np.array_equal(tiled, np.tile(x, (2, 3)))


def test_barrier_and_remat(backend):
    x = values((3,), "float32")
    jaxpr = stage_closed(lambda a: [transcendental.sin(a)], [shaped((3,), dtypes.float32)]).jaxpr
    for differentiated in (False, True):
        (got,) = run(
            backend,
            "remat2",
            [x],
            [((3,), "float32")],
            multiple=True,
            jaxpr=jaxpr,
            prevent_cse=True,
            differentiated=differentiated,
            policy=None,
        )
        np.testing.assert_allclose(got, np.sin(x), rtol=1e-5)
    same = run(backend, "optimization_barrier", [x, x], [((3,), "float32")] * 2, multiple=True)
    assert all(np.array_equal(s, x) for s in same)


@pytest.mark.parametrize("algorithm", [0, 1, 2])
def test_rng_bit_generator(backend, algorithm):
    key = np.array([1, 2, 3, 4], np.uint32)
    new, bits = run(
        backend,
        "rng_bit_generator",
        [key],
        [((4,), "uint32"), ((1000,), "uint32")],
        multiple=True,
        shape=(1000,),
        dtype=dtypes.uint32,
        algorithm=algorithm,
    )
    assert not np.array_equal(new, key) and len(set(bits.tolist())) > 990
    again = run(
        backend,
        "rng_bit_generator",
        [key],
        [((4,), "uint32"), ((1000,), "uint32")],
        multiple=True,
        shape=(1000,),
        dtype=dtypes.uint32,
        algorithm=algorithm,
    )
    assert np.array_equal(again[1], bits)


@pytest.mark.parametrize(
    "window", [dict(padding=((0, 0), (1, 2))), dict(padding="SAME", base_dilation=(1, 2))], ids=str
)
@pytest.mark.parametrize("init", [0.0, 2.0])
def test_what_padding_is_filled_with_counts(window, init):
    """XLA passes over padding of its own, which shows where the initial value is no identity; and its simplifier makes
    that of a pad before the windows, unless something stands between them (its older emitters drop that).
    """
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    f = lambda x: lax.reduce_window(x, np.float32(init), lambda a, b: a + b + 0.0, (1, 3), (1, 2), **window)
    with weft.default_device(weft.devices("reference")[0]):
        want = np.asarray(weft.jit(f)(x))
    with weft.default_device(weft.devices("cpu")[0]):
        got = weft.jit(f, compiler_options={"xla_cpu_use_fusion_emitters": True})(x)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("extremum,worst", [(lax.max, -np.inf), (lax.min, np.inf)], ids=["max", "min"])
@pytest.mark.parametrize("padding", ["VALID", "SAME"])
def test_windows_of_nothing_but_the_worst_have_a_derivative_too(extremum, worst, padding):
    """Where a window starts is none of its elements: forwards and backwards, the first of them is chosen."""
    x = np.array([worst, worst, worst, 1.0, worst, worst], np.float32)
    f = lambda x: lax.reduce_window(x, np.float32(worst), extremum, (2,), (1,), padding)
    with weft.default_device(weft.devices("reference")[0]):
        want = np.asarray(weft.jacfwd(f)(x))
    with weft.default_device(weft.devices("cpu")[0]):
        np.testing.assert_array_equal(weft.jacfwd(f)(x), want)
        np.testing.assert_array_equal(weft.jacrev(f)(x), want)
    assert want.sum() == len(want)
