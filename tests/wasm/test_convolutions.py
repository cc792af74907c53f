"""Convolutions on the Wasm backend: no patches, whatever the layout; phases of gaps; what is fused; derivatives."""

import random

import numpy as np
import pytest
import weft
import weft.numpy as jnp
from test_fusion import groups, program
from wasm_harness import check, numpy_dtype, run, values
from weft import lax
from weft_wasm.interpreter import interpret
from weft_wasm.lower.convolutions import Phase, phases
from weft_wasm.routines import implicit_gemm

rng = np.random.default_rng(17)
F = lambda *shape: values(rng, "float32", shape)
NHWC = ("NHWC", "HWIO", "NHWC")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Tiles also where there is little to compute."""
    monkeypatch.setattr(implicit_gemm, "SMALL", 200)
    monkeypatch.setattr(implicit_gemm, "TERMS", 40)


def conv(strides=(1, 1), padding=None, numbers=NHWC, **more):
    padding = padding or ([(1, 1), (1, 2)] if "lhs_dilation" in more else "SAME")
    return lambda x, w: lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=numbers, **more)


def pulled(f):
    """f's value and cotangents, for a cotangent that is no constant."""

    def g(x, w):
        y, pull = weft.vjp(f, x, w)
        return [y, *pull(jnp.sin(y))]

    return g


@pytest.mark.slow
@pytest.mark.parametrize("size", [3, 17])
@pytest.mark.parametrize(
    "lhs, rhs, out", [NHWC, ("NCHW", "OIHW", "NCHW"), ("CHWN", "IHWO", "HWNC"), ("HNCW", "WOHI", "CWNH")]
)
def test_layouts(lhs, rhs, out, size):
    x, w = dict(N=2, C=6, H=9, W=7), dict(O=size, I=6, H=3, W=2)
    check(
        pulled(conv(numbers=(lhs, rhs, out), padding=[(1, 2), (0, 1)])),
        F(*[x[c] for c in lhs]),
        F(*[w[c] for c in rhs]),
        tolerance=2e-4,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [
        dict(strides=(2, 3)),
        dict(strides=(2, 1), rhs_dilation=(1, 2)),
        dict(lhs_dilation=(2, 3)),
        dict(lhs_dilation=(4, 2), rhs_dilation=(2, 3), strides=(3, 2)),
        dict(lhs_dilation=(5, 4)),
        dict(padding=[(-2, 3), (4, -1)]),
        dict(padding=[(5, 6), (0, 7)], strides=(2, 2)),
        dict(feature_group_count=2),
        dict(feature_group_count=2, strides=(2, 2)),
        dict(batch_group_count=4),
        dict(feature_group_count=8),
        dict(padding=[(-3, -3), (-4, -2)], lhs_dilation=(2, 2)),
    ],
    ids=str,
)
def test_geometry(more):
    features = 8 // more.get("feature_group_count", 1)
    check(pulled(conv(**more)), F(4, 9, 10, 8), F(3, 4, features, 8), tolerance=5e-4)


@pytest.mark.parametrize(
    "gap, low, stride, dilation, window",
    [
        (1, 1, 1, 1, 3),
        (2, 1, 1, 1, 3),
        (2, 0, 1, 1, 1),
        (3, -2, 2, 2, 2),
        (4, 5, 6, 1, 3),
        (6, 1, 4, 9, 4),
        (2, 3, 2, 2, 3),
    ],
)
def test_phases_meet_every_element_once(gap, low, stride, dilation, window):
    n, count = 5, 9
    want = {
        (r, q, at // gap)
        for r in range(count)
        for q in range(window)
        if (at := r * stride + q * dilation - low) % gap == 0
    }
    got = []
    for f in phases(n, count, window, stride, low, gap, dilation):
        assert isinstance(f, Phase)
        got += [
            (f.first + k * f.period, f.tap + t * f.step, f.start + k * f.stride + t * f.apart)
            for k in range(f.windows)
            for t in range(f.taps)
        ]
        assert f.taps == 0 or f.end == max(at for *_, at in got[-f.windows * f.taps :])
    assert len(got) == len(want) and set(got) == want


@pytest.mark.parametrize(
    "numbers, x, w",
    [
        (("NWC", "WIO", "NWC"), (2, 40, 5), (4, 5, 9)),
        (("NDHWC", "DHWIO", "NDHWC"), (2, 5, 6, 4, 3), (2, 3, 2, 3, 10)),
        (("NC", "IO", "NC"), (5, 8), (8, 9)),
    ],
)
def test_other_ranks(numbers, x, w):
    check(pulled(conv((2,) * (len(x) - 2), numbers=numbers)), F(*x), F(*w), tolerance=2e-4)


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "int32", "uint8", "int64", "bool"])
def test_dtypes(dtype):
    draw = lambda *s: values(rng, dtype, s) if "float" in dtype else rng.integers(0, 9, s).astype(numpy_dtype(dtype))
    check(conv((2, 1)), draw(2, 8, 9, 4), draw(3, 3, 4, 9), tolerance=None if dtype == "float64" else 0.2)
    if dtype != "bool":
        check(
            conv(lhs_dilation=(2, 1), preferred_element_type=jnp.float64 if dtype == "float64" else jnp.float32),
            draw(1, 8, 9, 4),
            draw(3, 3, 4, 9),
            tolerance=1e-3,
        )


def test_sums_of_float64_where_they_are_asked_for():
    f = conv(precision=lax.DotAlgorithmPreset.F64_F64_F64)
    x, w = F(1, 6, 6, 40), F(3, 3, 40, 8)
    x[..., 0], w[:, :, 0], x[..., 39], w[:, :, 39] = 1e8, 1, -1e8, 1  # what float32 loses
    exact = run(f, x.astype("f8"), w.astype("f8"))[0]
    np.testing.assert_allclose(run(f, x, w)[0], exact, rtol=1e-5, atol=1e-5)


def test_nothing_is_copied_but_for_padding_and_kernels(monkeypatch):
    monkeypatch.setattr(implicit_gemm, "TERMS", 400)  # no partial sums
    for numbers in (NHWC, ("NCHW", "OIHW", "NHWC")):
        x = F(2, 16, 16, 12) if numbers is NHWC else F(2, 12, 16, 16)
        w = F(3, 3, 12, 16) if numbers is NHWC else F(16, 12, 3, 3)
        made = program(conv(numbers=numbers), x, w)
        assert all(t.size <= 2 * 18 * 18 * 12 for t in made.temps)
        assert sum(t.size >= x.size for t in made.temps) == 1
        assert not any(t.size >= x.size for t in program(conv(padding="VALID", numbers=numbers), x, w).temps)


def test_gaps_are_not_filled():
    x, w = F(1, 30, 30, 4), F(3, 3, 4, 8)
    for dilation in (2, 4):
        temps = program(conv(lhs_dilation=(dilation, dilation)), x, w).temps
        assert max(t.size for t in temps) < 2 * x.size
    check(conv(lhs_dilation=(5, 5)), F(1, 4, 4, 4), w, tolerance=1e-4)  # too many phases


def test_what_follows_is_computed_in_the_innermost_store():
    bias, f = F(16), conv((2, 2))
    g = lambda x, w: jnp.maximum(f(x, w) + bias, 0) * 2
    found = groups(g, F(2, 10, 9, 5), F(3, 3, 5, 16))
    assert [group.kind for group in found] == ["loop", "dot"] and len(found[1].members) >= 2
    check(g, F(2, 10, 9, 5), F(3, 3, 5, 16), tolerance=1e-4)
    check(lambda x, w: jnp.tanh(conv(lhs_dilation=(2, 2))(x, w) + bias), F(2, 5, 9, 5), F(3, 3, 5, 16), tolerance=1e-4)
    check(
        lambda x, w: [f(x, w), f(x, w).sum(axis=(1, 2)), f(x, w).transpose(0, 3, 1, 2) + 1],
        F(2, 10, 9, 5),
        F(3, 3, 5, 16),
        tolerance=1e-4,
    )


def test_operands_that_are_expressions():
    x, w = F(2, 9, 8, 6), F(3, 3, 6, 9)
    f = conv(padding="VALID")
    check(lambda x, w: f(jnp.sin(x) * 2, w[::-1] * 0.5), x, w, tolerance=1e-4)
    check(lambda x, w: f(x.reshape(2, 8, 9, 6), w), x, w, tolerance=1e-4)
    check(lambda x, w: f(f(x, w)[..., :6], w), x, w, tolerance=1e-3)
    check(lambda w: f(jnp.ones((1, 9, 9, 6), "float32"), w), w, tolerance=1e-4)
    check(lambda x: f(x, jnp.ones((3, 3, 6, 9), "float32")), x, tolerance=1e-4)


def test_in_loops_and_batches():
    x, w = F(3, 2, 8, 8, 6), F(3, 3, 6, 6)
    f = conv()
    check(lambda x, w: lax.scan(lambda c, v: (jnp.tanh(f(c + v, w)), c.sum()), x[0], x), x, w, tolerance=1e-3)
    check(lambda x, w: lax.scan(lambda c, v: (c + 1, conv(padding="VALID")(v, w)), 0.0, x), x, w, tolerance=1e-3)
    check(lambda x, w: weft.vmap(f, (0, None))(x, w), x, w, tolerance=1e-4)
    check(lambda x, w: weft.vmap(f)(x, jnp.stack([w, w * 2, w + 1])), x, w, tolerance=1e-4)


@pytest.mark.parametrize(
    "numbers, shape, kernel",
    [(NHWC, (1, 7, 5, 4), (3, 2, 4, 9)), (("NCHW", "OIHW", "NCHW"), (2, 3, 5, 4), (5, 3, 3, 2))],
)
def test_no_index_is_out_of_bounds(numbers, shape, kernel):
    """The interpreter checks each: strides, gaps, negative padding, edges of tiles."""
    f = conv((2, 1), [(-1, 2), (3, -2)], numbers, lhs_dilation=(1, 3), rhs_dilation=(2, 1))
    x, w = F(*shape), F(*kernel)
    made = program(f, x, w)
    assert sum(t.name.endswith(".rows") for t in made.temps) == 2  # tiles; one phase has no terms
    (got,) = interpret.run(made, [x.tobytes(), w.tobytes()])
    want = run(f, x, w)[0]
    np.testing.assert_allclose(np.frombuffer(got, "f4").reshape(want.shape), want, rtol=0, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_random(seed, monkeypatch):
    """Any layout, stride, gap, dilation, padding and groups; tiles and slices of any size; a value, a cotangent, or
    something after it.
    """
    pick = random.Random(seed)
    for name, sizes in dict(SMALL=(0, 0, 500), TERMS=(1, 5, 16, 60), ROWS=(6, 12, 96)).items():
        monkeypatch.setattr(implicit_gemm, name, pick.choice(sizes))
    rank, groups, images = pick.choice((1, 2, 2, 3)), pick.choice((1, 1, 2, 3)), pick.random() < 0.4
    space, some = "DHW"[-rank:], lambda *of: [pick.choice(of) for _ in range(rank)]
    inner = pick.randint(1, 5)
    x = dict(
        N=pick.randint(1, 3) * (groups if images else 1),
        C=inner * (1 if images else groups),
        **{d: pick.randint(3, 9) for d in space},
    )
    w = dict(O=groups * pick.choice((1, 2, 3, 4, 8, 9, 17)), I=inner, **{d: pick.randint(1, 3) for d in space})
    specs = ["".join(pick.sample(s + space, 2 + rank)) for s in ("NC", "OI", "NC")]
    padding = [(pick.randint(-1, 5), pick.randint(-1, 5)) for _ in space]
    f = conv(
        some(1, 1, 2, 3),
        padding,
        tuple(specs),
        lhs_dilation=some(1, 1, 2, 3, 5),
        rhs_dilation=some(1, 1, 2),
        **{"batch_group_count" if images else "feature_group_count": groups},
    )
    operands = F(*[x[c] for c in specs[0]]), F(*[w[c] for c in specs[1]])
    after = lambda x, w: jnp.maximum(f(x, w) * 2 - 1, 0)
    check(pick.choice((f, pulled(f), after)), *operands, tolerance=1e-3)
