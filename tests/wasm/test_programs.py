"""Whole programs: random ones against the reference interpreter, training against XLA's numbers, donation, calls,
NumPy absent.
"""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import weft
import weft.numpy as jnp
from hypothesis import given, settings
from hypothesis import strategies as st
from wasm_harness import backend, check, values
from weft import lax
from weft.core.interpret import interpret
from weft.core.jaxpr import ClosedJaxpr, eval_jaxpr
from weft.transforms.physical import lower_types

UNARY = [lax.sin, lax.tanh, lax.neg, lax.abs, lax.square, lambda x: lax.exp(lax.neg(lax.abs(x)))]
BINARY = [lax.add, lax.sub, lax.mul, lax.max, lax.min]


@st.composite
def programs(draw):
    """A list of steps; each names earlier values."""
    return [
        (draw(st.integers(0, 9)), draw(st.integers(0, 100)), draw(st.integers(0, 100)), draw(st.integers(0, 5)))
        for _ in range(draw(st.integers(3, 25)))
    ]


def build(steps, count):
    """A function of two arrays that runs the steps; the last `count` values are its results."""

    def run(x, y):
        pool = [x, y]
        for kind, a, b, how in steps:
            u, v = pool[a % len(pool)], pool[b % len(pool)]
            shape = u.shape
            if kind <= 2:
                out = UNARY[how](u)
            elif kind <= 5:
                if v.shape != shape:
                    v = lax.broadcast_in_dim(lax.reduce_sum(v, tuple(range(len(v.shape)))), shape, ())
                out = BINARY[how % 5](u, lax.mul(v, np.float32(0.5)))
            elif kind == 6 and shape:
                out = (lax.reduce_max, lax.reduce_min, lax.reduce_sum)[how % 3](u, (how % len(shape),))
                out = lax.mul(out, np.float32(0.1))
            elif kind == 7 and len(shape) == 2:
                out = lax.transpose(u, (1, 0))
            elif kind == 8 and shape:
                d = how % len(shape)
                out = (
                    lax.concatenate([u, lax.rev(u, (d,))], d)
                    if u.size < 200
                    else lax.slice_in_dim(u, 0, shape[d] - shape[d] // 2, axis=d)
                )
            elif kind == 9 and len(shape) == 2:
                out = lax.tanh(lax.dot_general(u, u, (((1,), (1,)), ((), ()))))
            else:
                out = lax.mul(u, np.float32(1.5))
            pool.append(out)
        return pool[-count:]

    return run


@settings(max_examples=60, deadline=None)
@given(programs(), st.integers(1, 6), st.integers(0, 2**31))
def test_random_programs(steps, count, seed):
    rng = np.random.default_rng(seed)
    check(build(steps, count), values(rng, "float32", (5, 8)), values(rng, "float32", (7,)), tolerance=2e-3)


@settings(max_examples=25, deadline=None)
@given(programs(), st.integers(0, 2**31))
def test_random_loops(steps, seed):
    """A random body whose carry shapes are put right at the end; carries change places."""
    rng = np.random.default_rng(seed)

    def body(i, carry):
        x, y, z = carry
        # so that rounding errors do not grow
        out = [lax.tanh(lax.mul(v, np.float32(0.2))) for v in build(steps, 3)(x, y)]

        def to(v, like):
            if v.shape == like.shape:
                return v
            total = lax.tanh(lax.reduce_sum(v, tuple(range(len(v.shape)))))
            return lax.add(like, lax.broadcast_in_dim(total, like.shape, ()))

        z2 = lax.dynamic_update_slice(z, lax.reshape(lax.reduce_max(to(out[0], x), (0, 1)), (1,)), (i,))
        return to(out[0], x), to(out[1], y), z2

    check(
        lambda x, y, z: list(lax.fori_loop(0, 3, body, (x, y, z))),
        values(rng, "float32", (3, 4)),
        values(rng, "float32", (6,)),
        values(rng, "float32", (5,)),
        tolerance=2e-2,
    )


# training ------------------------------------------------------------------------------------------------------------


def mlp_loss(params, x, y):
    for w, b in params[:-1]:
        x = jnp.maximum(x @ w + b, 0.0)
    logits = x @ params[-1][0] + params[-1][1]
    return -(weft.nn.log_softmax(logits) * y).sum(axis=-1).mean()


def test_gradients_of_an_mlp():
    rng = np.random.default_rng(0)
    sizes = (20, 33, 17, 10)
    with weft.enable_x64(False):
        params = [
            (rng.normal(size=(n, m)).astype(np.float32) / 4, rng.normal(size=m).astype(np.float32))
            for n, m in zip(sizes, sizes[1:])
        ]
        x, y = rng.normal(size=(32, 20)).astype(np.float32), np.eye(10, dtype=np.float32)[rng.integers(0, 10, 32)]
        step = weft.value_and_grad(mlp_loss)
        leaves, tree = weft.tree_util.tree_flatten((params, x, y))
        closed = weft.make_jaxpr(lambda *xs: weft.tree_util.tree_leaves(step(*tree.unflatten(xs))))(*leaves)
        want = interpret(lower_types(closed), leaves)
        got = weft.tree_util.tree_leaves(weft.jit(step)(params, x, y))
        for g, w in zip(got, want):
            np.testing.assert_allclose(np.asarray(g), w, rtol=1e-5, atol=1e-6)


def test_training_in_one_scan():
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(size=(64, 3)).astype(np.float32))
    w = np.float32([1, -2, 3])
    y = x @ w

    @weft.jit
    def train(w0):
        def step(w, _):
            value, g = weft.value_and_grad(lambda w: ((x @ w - y) ** 2).mean())(w)
            return w - 0.1 * g, value

        return lax.scan(step, w0, None, length=200)

    found, losses = train(jnp.zeros(3, "float32"))
    np.testing.assert_allclose(np.asarray(found), w, atol=1e-3)
    assert losses.shape == (200,) and float(losses[-1]) < 1e-5 < float(losses[0])


def test_random_bits_are_threefrys():
    """Known values: jax.random.bits of PRNGKey(0) with partitionable counters."""
    key = weft.random.PRNGKey(42)
    closed = weft.make_jaxpr(
        lambda k: [
            weft.random.bits(k, (5,), "uint32"),
            weft.random.uniform(k, (3, 2), "float32"),
            weft.random.normal(k, (7,), "float32"),
        ]
    )(key)
    want = interpret(lower_types(closed), [np.asarray(key)])
    got = weft.jit(
        lambda k: [
            weft.random.bits(k, (5,), "uint32"),
            weft.random.uniform(k, (3, 2), "float32"),
            weft.random.normal(k, (7,), "float32"),
        ]
    )(key)
    for g, w in zip(got, want):
        np.testing.assert_allclose(np.asarray(g), w, rtol=1e-5)


# calls ---------------------------------------------------------------------------------------------------------------


def test_donation_reuses_storage():
    f = weft.jit(lambda x, y: ((x * y).sum(), x + y)[::-1], donate_argnums=0)
    x, y = jnp.arange(8, dtype="float32"), jnp.ones(8, "float32")
    address = x.handle
    out, total = f(x, y)
    assert x.is_deleted() and out.handle == address and out.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert float(total) == 28.0, "the sum reads the argument before it is written over"
    with pytest.raises(RuntimeError, match="deleted"):
        x + 1
    with pytest.raises(ValueError, match="donated"):
        f(y, y)


def test_donation_where_the_argument_is_read_out_of_order():
    f = weft.jit(lambda x: (x[::-1] + x, x.sum()), donate_argnums=0)
    for _ in range(3):
        out, total = f(jnp.arange(5, dtype="float32"))
        assert out.tolist() == [4.0] * 5 and float(total) == 10.0


@pytest.mark.parametrize(
    "f",
    [
        lambda x: jnp.fft.rfft(x).real,
        lambda x: jnp.fft.irfft(x + 1j),
        lambda x: jnp.linalg.inv(x[:, :2]),
        lambda x: jnp.linalg.qr(x)[1],
        lambda x: weft.scipy.special.gammaln(x + 1),
        lambda x: jnp.cumsum(x, 1) ** 3.0,
        lambda x: weft.random.normal(weft.random.key(0), x.shape, x.dtype) + x,
        lambda x: weft.random.gamma(weft.random.key(0), abs(x) + 1),
        lambda x: jnp.argsort(x, 1).astype("int64") << 33,
    ],
)
def test_programs_of_64_bits_run_where_new_ones_have_32(f):
    """A program that was traced, or came from, where numbers of 64 bits are kept is compiled with such numbers."""
    x = jnp.asarray(np.random.default_rng(0).normal(size=(2, 4)))
    closed = weft.make_jaxpr(f)(x)
    with weft.enable_x64(False):  # the first to compile it
        got = np.asarray(weft.jit(lambda x: eval_jaxpr(closed.jaxpr, closed.consts, x)[0])(x))
    want = np.asarray(weft.jit(f)(x))
    assert want.dtype.itemsize >= 8
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_memory_is_given_back(only_own_memory):
    f = weft.jit(lambda x: [x + i for i in range(5)])
    x = jnp.ones(1000)
    f(x)
    before = backend().runtime.stats()["allocated"]
    for _ in range(20):
        f(x)
    assert backend().runtime.stats()["allocated"] == before


def test_what_keeps_equations_from_being_dropped_computes_nothing():
    def f(x):
        lax.dce_sink(jnp.sin(x))
        return x * x

    assert "dce_sink" in str(weft.make_jaxpr(weft.jit(f))(3.0))
    assert (
        weft.jit(f)(3.0) == 9
        and weft.jit(weft.grad(f))(3.0) == 6
        and weft.vmap(f)(jnp.arange(3.0)).tolist() == [0, 1, 4]
    )


def test_cached_calls_follow_the_configuration():
    f = weft.jit(lambda x: x * 2)
    x = jnp.arange(3, dtype="int32")
    assert [f(x).tolist() for _ in range(3)] == [[0, 2, 4]] * 3
    g = weft.jit(lambda p, s: p["a"] * s)
    assert [g({"a": x}, 3).tolist() for _ in range(3)] == [[0, 3, 6]] * 3
    assert g({"a": x}, 2.5).tolist() == [0.0, 2.5, 5.0]
    assert weft.grad(lambda v: f(v).sum())(jnp.ones(2)).tolist() == [2.0, 2.0]
    with weft.disable_jit():
        assert f(x).tolist() == [0, 2, 4]


def test_text_of_a_program():
    compiled = weft.jit(lambda x: jnp.tanh(x).sum()).lower(jnp.ones((4, 5), "float32")).compile()
    assert "group 0: reduce" in compiled.as_text("groups") and "reduce r < 20" in compiled.as_text("ir")
    assert "(func (;0 " in compiled.as_text("wat") and compiled.cost_analysis()["kernels"] == 1
    with pytest.raises(ValueError, match="groups"):
        compiled.as_text("hlo")


def test_runs_without_numpy():
    program = """
    import sys
    import weft, weft.numpy as jnp
    from weft import lax
    weft.config.update("jax_platforms", "wasm")
    assert "numpy" not in sys.modules, "NumPy was imported"
    x = jnp.arange(6, dtype="float32").reshape(2, 3)
    sums = lambda x: lax.scan(lambda c, v: (c + v, c), jnp.zeros(3), x)
    f = weft.jit(lambda x: (jnp.tanh(x) @ x.T, jnp.sort(-x, axis=1), sums(x)))
    out = f(x)
    assert out[1].tolist() == [[-2.0, -1.0, -0.0], [-5.0, -4.0, -3.0]], out[1].tolist()
    assert out[2][0].tolist() == [3.0, 5.0, 7.0]
    assert weft.grad(lambda x: (x ** 2).sum())(x).tolist() == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]
    key = weft.random.PRNGKey(0)
    assert len(weft.random.normal(key, (5,)).tolist()) == 5
    assert x[1, 2] == 5.0 and float(x.sum()) == 15.0
    print("fine")
    """
    env = {**os.environ, "WEFT_NUMPY": "0", "WEFT_PLATFORMS": "wasm"}
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], env=env, capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0 and "fine" in result.stdout, result.stderr[-3000:]


def test_a_closed_program_with_constants():
    table = jnp.arange(5, dtype="float32")
    assert isinstance(weft.make_jaxpr(lambda x: x + table)(table), ClosedJaxpr)
    assert weft.jit(lambda x: x + table)(table).tolist() == [0, 2, 4, 6, 8]


def test_donated_state_is_read_before_it_is_overwritten():
    """Three arrays of one shape in one kernel: the parameters' result can't take their own memory, and must not take
    that of a moment which is read after it.
    """

    def adam(state, x):
        p, m, v = state
        g = jnp.sum(jnp.tanh(x + p) * x, axis=0)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return p - 0.01 * m / (jnp.sqrt(v) + 1e-8), m, v

    x = np.random.default_rng(0).normal(size=(16, 40)).astype("float32")
    state = lambda: tuple(jnp.full(40, value, "float32") for value in (1, 0.5, 0.25))
    plain, donating = state(), state()
    for _ in range(3):
        plain, donating = weft.jit(adam)(plain, x), weft.jit(adam, donate_argnums=0)(donating, x)
    assert len(plain) == 3
    for a, b in zip(plain, donating, strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def random_step(seed: int):
    """(a step that maps arrays of one shape to as many, the arrays): elementwise chains, reductions, permutations,
    updates, loops.
    """
    rng = np.random.default_rng(seed)
    count, shape = int(rng.integers(2, 6)), (int(rng.choice([4, 16, 33, 128])),)
    plan = [
        (int(rng.integers(0, 12)), rng.integers(0, 1000, 3), float(rng.normal()))
        for _ in range(int(rng.integers(3, 14)))
    ]
    picks = rng.integers(0, 1000, count)
    x = rng.normal(size=(7, *shape)).astype("float32")

    def step(state):
        values = list(state)
        for op, places, s in plan:
            a, b, c = [values[k % len(values)] for k in places]
            values.append(
                [
                    lambda: a + b,
                    lambda: a * 0.5 + b * s,
                    lambda: jnp.tanh(a) - b,
                    lambda: jnp.where(a > b, a, c),
                    lambda: a[::-1] * 1.5,
                    lambda: jnp.cumsum(a * 0.1),
                    lambda: a - a.mean(),
                    lambda: jnp.sum(jnp.tanh(x + a), axis=0) * 0.1 + b,
                    lambda: a.at[0].set(b[0]),
                    lambda: jnp.sort(a),
                    lambda: lax.fori_loop(0, 3, lambda i, t: t * 0.9 + b, a),
                    lambda: a / (jnp.sqrt(b * b) + 1),
                ][op]()
            )
        made = values[count:]
        return [
            made[k % len(made)] if i % 3 else made[-1 - k % min(3, len(made))] for i, k in enumerate(picks.tolist())
        ]

    return step, [rng.normal(size=shape).astype("float32") for _ in range(count)]


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_donation_changes_no_bit(first):
    for seed in range(first, first + 20):
        step, state = random_step(seed)
        want = weft.jit(step)([jnp.asarray(s) for s in state])
        got = weft.jit(step, donate_argnums=0)([jnp.asarray(s) for s in state])
        for k, (a, b) in enumerate(zip(got, want)):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b), err_msg=f"random_step({seed}), result {k}")


def test_known_calls_see_the_values_that_traces_depend_on():
    backend()
    context = weft.make_user_context(default_value=1.0)
    x = weft.device_put(jnp.arange(3.0), weft.devices("wasm")[0])
    f = weft.jit(lambda x: x * context.value)
    assert f(x).tolist() == f(x).tolist() == [0.0, 1.0, 2.0]
    with context(3.0):
        assert f(x).tolist() == [0.0, 3.0, 6.0]
    assert f(x).tolist() == [0.0, 1.0, 2.0]
    # one more option: what was known before must not be taken for what is new
    weft.make_user_context(default_value=None)
    with context(5.0):
        assert f(x).tolist() == [0.0, 5.0, 10.0]


def test_decompositions_follow_the_configuration():
    """What one program needs of 64 bits, because it was compiled with 64-bit dtypes, is not kept for those that are
    compiled without.
    """
    x = np.arange(12, dtype="float32").reshape(3, 4)
    for wide in (True, False):
        with weft.enable_x64(wide):
            text = weft.jit(lambda x: jnp.linalg.svd(x, compute_uv=False)).lower(x).as_text("ir")
        assert ("i64" in text) == wide
