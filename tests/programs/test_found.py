"""What random programs have found, each as the smallest call that shows it, on every platform and with the value
that it must have.
"""

import ml_dtypes
import numpy as np
import pytest
from platforms import on, under_test
from programs.targets import TARGETS

import weft
import weft.numpy as jnp
from weft import lax
from weft.core.interpret import interpret
from weft.experimental import io_callback
from weft.experimental import pallas as pl
from weft.primitives.random_bits import threefry2x32_p
from weft.primitives.window import select_and_scatter_add_p


@pytest.fixture(params=under_test("cpu", "reference", "wasm", "webgpu"), autouse=True)
def platform(request):
    with on(request.param):
        yield request.param


def narrow(values, name: str) -> np.ndarray:
    return np.array(values).astype(getattr(ml_dtypes, name))


@pytest.mark.parametrize(
    "f, want",
    [
        (lax.abs, [-2, 1, 0, 1]),
        (lax.neg, [-2, 1, 0, -1]),
        (lax.population_count, [1, -2, 0, 1]),
        (lax.clz, [0, 0, -2, 1]),
    ],
)
def test_a_result_of_two_bits_that_does_not_fit_wraps(f, want):
    got = np.asarray(weft.jit(f)(narrow([-2, -1, 0, 1], "int2")))
    np.testing.assert_array_equal(got.astype(int), want)
    np.testing.assert_array_equal(
        np.asarray(weft.jit(lambda x: f(x).astype("float32"))(narrow([-2, -1, 0, 1], "int2"))), want
    )


@pytest.mark.parametrize("name, bits", [("int2", 2), ("uint2", 2), ("int4", 4), ("uint4", 4)])
def test_shifts_of_few_bits(name, bits):
    low = -(1 << bits - 1) if name.startswith("i") else 0
    codes = np.arange(1 << bits)
    x, y = (v.ravel() for v in np.meshgrid(codes, codes))
    signed = lambda v: np.where(v >> bits - 1 & 1, v - (1 << bits), v)  # what the bits say with a sign
    back = lambda v: narrow(np.where(low < 0, signed(v & (1 << bits) - 1), v & (1 << bits) - 1), name).astype(int)
    over = y >= bits
    wants = [
        np.where(over, 0, x << np.minimum(y, bits)),
        np.where(over, 0, x >> np.minimum(y, bits)),
        signed(x) >> np.minimum(y, bits - 1),
    ]
    a, b = (narrow(back(v), name) for v in (x, y))
    for f, want in zip((lax.shift_left, lax.shift_right_logical, lax.shift_right_arithmetic), wants):
        np.testing.assert_array_equal(np.asarray(weft.jit(f)(a, b)).astype(int), back(want), err_msg=f.__name__)


def test_conversions_between_types_of_few_bits():
    x = narrow([-2, -1, 0, 1], "int2")
    np.testing.assert_array_equal(np.asarray(weft.jit(lambda v: v.astype("uint2"))(x)).astype(int), [2, 3, 0, 1])
    np.testing.assert_array_equal(np.asarray(weft.jit(lambda v: v.astype("uint4"))(x)).astype(int), [14, 15, 0, 1])
    np.testing.assert_array_equal(
        np.asarray(weft.jit(lambda v: v.astype("int2"))(narrow([7, 2, 1, 12], "uint4"))).astype(int), [-1, -2, 1, 0]
    )


@pytest.mark.parametrize("name", ["int4", "uint4", "int2", "uint2"])
def test_products_of_few_bits_wrap(name):
    info = ml_dtypes.iinfo(getattr(ml_dtypes, name))
    x, y = (np.random.default_rng(k).integers(info.min, info.max, (3, 3), endpoint=True) for k in range(2))
    np.testing.assert_array_equal(
        np.asarray(weft.jit(jnp.dot)(narrow(x, name), narrow(y, name))).astype(int), narrow(x @ y, name).astype(int)
    )
    got = weft.jit(lambda a, b: lax.conv(a, b, (1,), "VALID"))(narrow(x[None], name), narrow(y[None], name))
    np.testing.assert_array_equal(np.asarray(got).astype(int), narrow([[[(x * y).sum()]]], name).astype(int))


def test_products_and_sums_over_no_elements_of_a_view():
    """Of an array that the compiler has fused away: no index of it can be made."""
    x = np.arange(6, dtype=np.uint32).reshape(2, 3)

    def f(v):
        empty = lax.rev(lax.slice(v, (2, 2), (2, 3)), (0, 1))
        return (
            lax.dot_general(jnp.zeros((0, 3, 1), jnp.uint32), empty, (((0,), (0,)), ((), ()))),
            jnp.sum(empty, 0),
            jnp.prod(empty + 1, 0),
            jnp.max(empty, 0, initial=3),
        )

    product, total, one, most = weft.jit(f)(x)
    np.testing.assert_array_equal(product, np.zeros((3, 1, 1)))
    assert [int(total[0]), int(one[0]), int(most[0])] == [0, 1, 3]
    got = weft.jit(
        lambda v: lax.dot_general(
            jnp.broadcast_to(v[:, None, None, None], (2, 0, 7, 7)), jnp.zeros((1, 7, 0)), (((1,), (2,)), ((3,), (1,)))
        )
    )(np.ones(2, np.float32))
    np.testing.assert_array_equal(got, np.zeros((7, 2, 7, 1)))


def test_derivatives_of_sorting_nothing():
    x = jnp.zeros((0, 3))
    outs, slopes = weft.jvp(lambda a, b: lax.sort((a, b), dimension=1, num_keys=1), (x, x), (x, x))
    assert [o.shape for o in (*outs, *slopes)] == [(0, 3)] * 4
    assert weft.grad(lambda a: jnp.sum(lax.sort(a, dimension=1)))(x).shape == (0, 3)


@pytest.mark.parametrize(
    "largest", [lambda x: lax.top_k(x, 2)[0], lambda x: lax.approx_max_k(x, 2)[0], lambda x: lax.approx_min_k(x, 2)[0]]
)
def test_derivatives_of_the_largest_of_no_rows(largest):
    """A tangent had as many columns as the argument, and its function's rule, or what came next, was told so."""
    x = jnp.zeros((0, 7))
    out, slope = weft.jvp(largest, (x,), (x,))
    assert out.shape == slope.shape == (0, 2)
    assert weft.grad(lambda v: jnp.sum(largest(v) * jnp.ones((0, 2))))(x).shape == (0, 7)


def test_a_reduction_with_a_function_of_its_own_over_no_elements():
    got = weft.jit(lambda x: lax.reduce(x, np.float32(-1), lambda a, b: lax.select(a > b, a, b), (0, 3)))(
        np.ones((3, 0, 17, 1), np.float32)
    )
    assert got.shape == (0, 17)
    got = weft.jit(lambda x: lax.reduce(x, np.float32(-1), lambda a, b: lax.select(a > b, a, b), (1,)))(
        np.ones((3, 0), np.float32)
    )
    np.testing.assert_array_equal(got, [-1, -1, -1])


def test_map_in_batches_over_no_rows():
    """Also of a function that has no batched form of no elements, such as a convolution with as many groups."""
    x = jnp.zeros((0, 3, 3, 2))
    assert lax.map(lambda v: lax.conv(v, v, (1,), "SAME"), x, batch_size=2).shape == (0, 3, 3, 2)
    assert weft.grad(lambda v: jnp.sum(lax.map(lambda r: r * 2, v, batch_size=2)))(jnp.zeros((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0)])
def test_convolutions_batched_over_no_elements(axes):
    args = [jnp.zeros((3, 3, 2) if a is None else (0, 3, 3, 2)) for a in axes]
    assert weft.vmap(lambda a, b: lax.conv(a, b, (1,), "SAME"), in_axes=axes)(*args).shape == (0, 3, 3, 2)


def test_a_reverse_derivative_of_what_has_none_before_it():
    """The tangent that reaches the function is zero, although it stands as an array."""

    @weft.custom_vjp
    def f(x):
        return x * 2

    f.defvjp(lambda x: (x * 2, x), lambda x, ct: (ct * x,))
    x = jnp.arange(3.0)

    @weft.custom_jvp
    def one(x):
        return x * 0 + 1

    one.defjvp(lambda primals, tangents: (one(*primals), jnp.zeros_like(primals[0])))
    np.testing.assert_array_equal(weft.grad(lambda v: jnp.sum(f(lax.integer_pow(v, 0))))(x), [0, 0, 0])
    np.testing.assert_array_equal(
        weft.grad(lambda v: jnp.sum(lax.cond(v[0] > -1, lambda y: f(lax.integer_pow(y, 0)), lambda y: y * 3, v)))(x),
        [0, 0, 0],
    )
    np.testing.assert_array_equal(weft.grad(lambda v: jnp.sum(f(one(v)) * v))(x), [2, 2, 2])
    out, linear = weft.linearize(lambda v: jnp.sum(f(lax.integer_pow(v, 0))), x)
    assert float(out) == 6 and float(linear(x)) == 0
    with pytest.raises(TypeError, match="forward-mode"):  # where the tangent is what the user gave
        weft.jvp(lambda v: f(lax.integer_pow(v, 1)), (x,), (x,))
    with pytest.raises(TypeError, match="forward-mode"):
        weft.grad(lambda v: jnp.sum(weft.jvp(f, (v,), (jnp.ones(3),))[1]))(x)


@pytest.mark.parametrize("wrap", [weft.jit, weft.checkpoint])
def test_the_way_back_of_a_batched_function_may_close_over_its_cotangent(wrap):
    """In a function that is traced when the way back runs, after the batching has ended."""

    @weft.custom_vjp
    def f(x):
        return x

    f.defvjp(lambda x: (x, None), lambda kept, ct: (wrap(lambda: ct * 2)(),))
    np.testing.assert_array_equal(weft.grad(lambda x: jnp.sum(weft.vmap(f)(x)))(jnp.ones((3, 1))), 2 * np.ones((3, 1)))


def test_constants_of_64_bits_inside_functions():
    """NumPy's own integers have 64 bits, where programs have 32."""
    x = jnp.arange(6, dtype="int32").reshape(2, 3)
    rows = lambda p: lax.cond(p, lambda: x.at[np.array([1], np.int64)].set(7), lambda: x)
    closed = weft.make_jaxpr(rows)(True)
    assert {str(c.dtype) for c in closed.consts} == {"int32"}
    np.testing.assert_array_equal(
        lax.map(lambda k: weft.jit(rows)(k > 0), jnp.arange(2)), [[[0, 1, 2], [3, 4, 5]], [[0, 1, 2], [7, 7, 7]]]
    )


def test_scatter_mul_of_complex_numbers_with_batch_axes():
    numbers = lax.ScatterDimensionNumbers((), (1,), (1,), (0,), (0,))
    x, u = (np.arange(6).reshape(2, 3) + 1j * (k + 1) for k in range(2))
    got = weft.jit(lambda a, i, b: lax.scatter_mul(a, i, b, numbers))(
        x.astype(np.complex64), np.array([[[1], [1]], [[2], [9]]], np.int8), u[:, :2].astype(np.complex64)
    )
    want = x.copy()
    want[0, 1] *= u[0, 0] * u[0, 1]
    want[1, 2] *= u[1, 0]
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_padding_of_nothing_by_less_than_nothing():
    got = weft.jit(lambda x: lax.pad(x, np.float32(3), [(2, -1, 0), (0, 0, 0)]))(np.zeros((0, 2), np.float32))
    np.testing.assert_array_equal(got, [[3, 3]])
    got = weft.jit(lambda x: lax.pad(x, np.float32(3), [(-3, 4, 0)]))(np.arange(2, dtype=np.float32))
    np.testing.assert_array_equal(got, [3, 3, 3])


def test_products_without_elements_of_odd_axes():
    f = lambda: lax.dot_general(
        jnp.ones((4, 0, 7, 1), jnp.uint32), jnp.ones((7, 0, 4, 1), jnp.uint32), (([1, 0], [1, 2]), ([3, 2], [3, 0]))
    )
    np.testing.assert_array_equal(weft.jit(f)(), np.zeros((1, 7)))
    f = lambda: lax.dot_general(
        jnp.ones((0, 2, 5, 3), jnp.int16), jnp.ones((9, 3, 2, 0), jnp.int16), (([3, 0], [1, 3]), ([1], [2]))
    )
    np.testing.assert_array_equal(weft.jit(f)(), np.zeros((2, 5, 9)))


def test_high_words_of_products_inside_branches():
    """XLA has an operation for it that it can't put into loops."""
    f = lambda p, x, y: lax.cond(p, lambda: lax.mulhi(x, y.astype("int32")), lambda: x)
    np.testing.assert_array_equal(
        weft.jit(f)(True, np.full(5, 1 << 30, np.int32), np.arange(5, dtype=np.int16)), [0, 0, 0, 0, 1]
    )


def test_a_window_reduction_from_an_array_inside_a_traced_function():
    """Whether the beginning is the operation's identity is asked of its value, not by an operation of the program."""
    f = weft.jit(lambda x: lax.reduce_window(x, jnp.asarray(-9, "float32"), lax.max, (2,), (1,), "VALID"))
    np.testing.assert_array_equal(f(np.float32([-20, -10, 3])), [-9, 3])
    f = weft.jit(lambda x: lax.reduce_window(x, jnp.asarray(0, "float32"), lax.add, (2,), (1,), "VALID"))
    np.testing.assert_array_equal(weft.grad(lambda x: jnp.sum(f(x)))(np.float32([1, 2, 4])), [1, 2, 1])


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_random_bits_of_no_keys(impl):
    key = weft.random.key(1, impl=impl)
    draw = weft.vmap(lambda i: weft.random.normal(weft.random.fold_in(key, i), (3,)))
    assert draw(jnp.zeros(0, "int32")).shape == (0, 3)


def test_a_generator_of_no_states():
    f = lambda state: lax.rng_bit_generator(state, (2, 3), "uint32", lax.RandomAlgorithm.RNG_PHILOX)
    assert [o.shape for o in weft.vmap(f)(jnp.zeros((0, 4), "uint32"))] == [(0, 4), (0, 2, 3)]


def test_derivatives_of_updates_in_a_batch_of_none():
    f = weft.vmap(lambda x, i: x.at[i].set(2.0 * x[0], mode="clip"))
    x, i = jnp.zeros((0, 3)), jnp.zeros(0, "int32")
    assert weft.jvp(lambda v: f(v, i), (x,), (x,))[1].shape == (0, 3)
    assert weft.grad(lambda v: jnp.sum(f(v, i)))(x).shape == (0, 3)


@pytest.mark.parametrize(
    "op, start", [(lax.min, 9), (lax.max, 0), (lax.add, 0), (lambda a, b: lax.select(a < b, a, b), 9)]
)
def test_windows_of_one_element_with_less_than_no_padding(op, start):
    """XLA's simplifier forgot the padding, and ended the process by a failed check of its own."""
    window = lambda padding, gaps: weft.jit(
        lambda x: lax.reduce_window(x, jnp.asarray(start, "uint8"), op, (1,), (1,), padding, gaps)
    )
    x = np.arange(1, 4, dtype=np.uint8)
    np.testing.assert_array_equal(window([(0, -1)], (1,))(x), [1, 2])
    np.testing.assert_array_equal(window([(-2, 0)], (1,))(x), [3])
    np.testing.assert_array_equal(window([(-4, 2)], (2,))(x), [3, start, start])
    f = lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 1), (1, 1), [(0, -1), (-1, 0)])
    y = np.float32([[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(weft.jit(weft.grad(lambda v: jnp.sum(f(v) * f(v))))(y), [[0, 4, 6], [0, 0, 0]])
    np.testing.assert_array_equal(weft.jit(lambda v: weft.jvp(f, (v,), (v,))[1])(y), [[2, 3]])


@pytest.mark.parametrize("policy", ["everything_saveable", "nothing_saveable", "dots_saveable"])
@pytest.mark.parametrize("branch", [False, True])
def test_references_inside_a_checkpoint_are_not_saved(policy, branch):
    """They are made and written again, once, on the way back, also in a branch."""

    def f(x):
        ref = weft.new_ref(jnp.sin(x))
        weft.ref.addupdate(ref, 1, x[0] * 2.0)
        y = ref[...] * x
        ref[0] = y[1]
        return jnp.sum(weft.freeze(ref) * y)

    g = (lambda x: lax.cond(x[0] > 0, f, lambda v: jnp.sum(v), x)) if branch else f
    x = jnp.array([0.5, -1.0, 2.0])
    want_value, want = weft.value_and_grad(g)(x)
    value, got = weft.jit(weft.value_and_grad(weft.checkpoint(g, policy=getattr(weft.checkpoint_policies, policy))))(x)
    np.testing.assert_allclose(value, want_value, rtol=1e-5)
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_high_words_of_products_of_one_number_and_none():
    f = lambda x: lax.mulhi(np.int32(1 << 30), x)
    for x in (np.zeros(0, np.int32), np.arange(6, dtype=np.int32)):
        want = (x.astype(np.int64) << 30) >> 32
        np.testing.assert_array_equal(weft.jit(f)(x), want)
        np.testing.assert_array_equal(interpret(weft.make_jaxpr(f)(x), [x])[0], want)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: io_callback(np.array, weft.ShapeDtypeStruct((2,), "uint32"), x),
        lambda x: weft.pure_callback(np.array, weft.ShapeDtypeStruct((2,), "uint32"), x, vmap_method="sequential"),
        lambda x: weft.pure_callback(
            np.array, weft.ShapeDtypeStruct((2,), "uint32"), x, vmap_method="sequential_unrolled"
        ),
    ],
)
def test_a_function_of_the_host_in_a_batch_of_none(call):
    """An io_callback gave no results at all, and a pure one was called with a batch although it takes single
    elements.
    """
    x = jnp.zeros((0, 2), "uint32")
    assert weft.vmap(call)(x).shape == weft.jit(weft.vmap(call))(x).shape == (0, 2)


def with_vjp(fun, keep, back, **more):
    fun = weft.custom_vjp(fun)
    fun.defvjp(lambda x: (fun.fun(x), keep(x)), back, **more)
    return fun


def test_a_function_that_stands_in_for_its_forward_rule_may_use_random_keys():
    """It was hidden from what rewrites keys into words, and compiled with keys in it."""
    f = with_vjp(
        lambda x: x * weft.random.uniform(weft.random.key(3), (3,)),
        jnp.sin,
        lambda kept, ct: (ct * kept,),
        optimize_remat=True,
    )
    x = jnp.arange(3.0)
    np.testing.assert_allclose(weft.jit(lambda v: weft.vjp(f, v)[0])(x), f.fun(x), rtol=1e-6)
    np.testing.assert_allclose(
        weft.jit(weft.grad(lambda v: jnp.sum(jnp.cos(weft.checkpoint(f)(v)))))(x),
        np.sin(x) * -np.sin(f.fun(x)),
        rtol=1e-5,
    )


def test_a_forward_rule_with_effects_runs_as_it_is():
    """Where nothing needed what it keeps, its prints were lost."""
    seen = []
    f = with_vjp(
        lambda x: x * 2,
        lambda x: (weft.debug.callback(lambda v: seen.append(float(v)), x), x)[1],
        lambda kept, ct: (ct * kept,),
        optimize_remat=True,
    )
    weft.jit(lambda v: weft.vjp(weft.vmap(f), v)[0])(jnp.arange(3.0))
    weft.effects_barrier()
    assert sorted(seen) == [0, 1, 2]


def test_random_keys_that_a_branch_hands_to_the_way_back():
    """The other branches hand over keys of zeros in their place."""
    f = with_vjp(lambda x: x * 2, lambda x: weft.random.key(7), lambda key, ct: (ct * weft.random.uniform(key),))
    either = lambda x: lax.cond(x > 0, f, lambda v: v * 3, x)
    want = float(weft.random.uniform(weft.random.key(7)))
    for g in (either, weft.checkpoint(either, policy=weft.checkpoint_policies.everything_saveable)):
        assert [float(weft.jit(weft.grad(g))(x)) for x in (1.0, -1.0)] == [pytest.approx(want), 3]


def test_branches_may_save_random_keys():
    def f(x, n):
        drawn = lambda v: v * weft.random.uniform(weft.random.fold_in(weft.random.key(1), n))
        return lax.switch(n, [drawn, jnp.sin, lambda v: drawn(jnp.cos(v))], x)

    saved = weft.checkpoint(f, policy=weft.checkpoint_policies.everything_saveable)
    for n in range(3):
        np.testing.assert_allclose(weft.jit(weft.grad(saved))(0.5, n), weft.grad(f)(0.5, n), rtol=1e-6)


def doubled(x):
    room = weft.new_ref(x)
    room[...] = room[...] * 2
    return weft.freeze(room)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: weft.custom_batching.sequential_vmap(doubled)(x),
        lambda x: weft.vjp(with_vjp(doubled, lambda v: v, lambda kept, ct: (ct,), optimize_remat=True), x)[0],
        lambda x: weft.vjp(with_vjp(doubled, doubled, lambda kept, ct: (ct,), optimize_remat=True), x)[1](x)[0] * 2,
        lambda x: lax.custom_linear_solve(lambda v: doubled(v) / 2, x, lambda matvec, b: doubled(b)),
        lambda x: weft.custom_derivatives.linear_call(lambda p, v: doubled(v), lambda p, v: v * 2, (), x),
    ],
)
def test_references_that_live_in_a_function_of_a_call(call):
    """Only some of the primitives that hold programs could be rid of references; the others refused them."""
    x = np.float32([1, 2, 3])
    np.testing.assert_array_equal(weft.jit(call)(x), 2 * x)
    np.testing.assert_array_equal(weft.jit(weft.checkpoint(call))(x), 2 * x)


def test_hessenberg_of_no_matrices():
    closed = weft.make_jaxpr(lax.linalg.hessenberg)(jnp.zeros((0, 2, 2)))
    assert [o.shape for o in interpret(closed, [np.zeros((0, 2, 2), np.float32)])] == [(0, 2, 2), (0, 1)]


def test_random_keys_in_a_solution_without_a_transpose():
    """What stands in the place of a program that was not given is no program."""
    x = np.float32([1, 2, 3])
    draw = lambda v: v * weft.random.uniform(weft.random.key(3), (3,))
    got = weft.jit(lambda b: lax.custom_linear_solve(lambda v: v / 2, b, lambda matvec, c: draw(c)))(x)
    np.testing.assert_allclose(got, draw(x), rtol=1e-6)


@pytest.mark.parametrize(
    "around",
    [
        lambda f, x: lax.cond(x > 0, f, lambda v: v * 3, x),
        lambda f, x: lax.scan(lambda c, _: (f(c), ()), x, length=2)[0],
        lambda f, x: weft.jit(f)(x),
    ],
)
def test_tokens_are_not_saved(around):
    """There is nothing in them that a branch or a step could hand over."""
    ordered = lambda v: (lax.after_all(lax.create_token(v)), jnp.sin(v))[1]
    f = weft.checkpoint(lambda x: around(ordered, x), policy=weft.checkpoint_policies.everything_saveable)
    np.testing.assert_allclose(weft.jit(weft.grad(f))(0.5), weft.grad(lambda x: around(jnp.sin, x))(0.5), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("preferred", ["float32", "complex64"])
def test_products_of_which_one_side_is_complex(dtype, preferred):
    """And whose result is not: the derivative with respect to a real operand is the real part of one."""
    x = np.array([1 + 2j, -3 + 0.5j, 0.25 - 1j], "complex64")
    y = np.array([[1, 2], [0.5, -1], [4, 3]]).astype(dtype)
    product = weft.jit(lambda a, b: lax.dot_general(a, b, (((0,), (0,)), ((), ())), preferred_element_type=preferred))
    for a, b in ((x, y), (y, x), (y, y)):
        want = np.tensordot(a.astype("complex64"), b.astype("complex64"), (0, 0))
        got = np.asarray(product(a, b))
        assert got.dtype == preferred
        np.testing.assert_allclose(got, want if preferred == "complex64" else want.real, rtol=1e-5)
    slope = weft.jit(weft.grad(lambda y: jnp.sum(jnp.real(lax.dot_general(x, y, (((0,), (0,)), ((), ())))))))
    np.testing.assert_allclose(np.asarray(slope(np.ones((3, 2), "float32"))), np.stack([x.real, x.real], 1), rtol=1e-5)


@pytest.mark.parametrize(
    "f, factor", [(jnp.hypot, 1.25**0.5), (lambda a, b: jnp.maximum(a, b), 1), (lambda a, b: jnp.minimum(a, b), 0.5)]
)
def test_derivatives_of_extrema_whose_operands_are_computed_twice(platform, f, factor):
    """XLA, told not to optimise, rounds the copies differently: neither operand was equal to the result, and the
    derivative was lost.
    """
    options = {
        "xla_backend_optimization_level": 0,
        "xla_llvm_disable_expensive_passes": True,
        "xla_cpu_use_fusion_emitters": False,
    }
    x = np.clip(np.random.default_rng(0).normal(size=500), -4, 4).astype(np.float32)
    g = weft.grad(lambda v: jnp.sum(f((v * v + 0.5) * 0.5, v * v + 0.5)))
    np.testing.assert_allclose(
        weft.jit(g, compiler_options=options if platform == "cpu" else {})(x), factor * 2 * x, rtol=1e-5
    )


def test_derivatives_of_extrema_of_complex_numbers():
    """By real part, then by imaginary part; equal ones share."""
    x, y = np.complex64([1 + 2j, 1 + 2j, 3 - 1j, 2j]), np.complex64([1 + 3j, 1 + 2j, 2 + 9j, 1 - 1j])
    for f, want in ((lax.max, [0, 0.5, 1, 0]), (lax.min, [1, 0.5, 0, 1])):
        np.testing.assert_array_equal(weft.jvp(f, (x, y), (np.ones_like(x), np.zeros_like(x)))[1], want)
        np.testing.assert_array_equal(weft.jvp(f, (x, y), (np.zeros_like(x), np.ones_like(x)))[1], 1 - np.array(want))


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("within", ["jit", "map", "cond", "while"])
def test_a_forward_derivative_of_a_custom_vjp_that_nobody_reads_is_none(platform, within, dtype):
    """Its rule raises where a result needs it; what only decides between numbers needs none."""
    double = weft.custom_vjp(lambda v: v * 2)
    double.defvjp(lambda v: (v * 2, None), lambda _, ct: (ct,))
    positive = lambda v: double(v).real > 0
    functions = {
        "jit": weft.jit(positive),
        "map": lambda v: lax.map(positive, v),
        "cond": lambda v: lax.cond(v[0].real < 0, positive, lambda v: v.real < 0, v),
        "while": lambda v: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, positive(v)), (0, v.real < 0))[1],
    }
    x = np.arange(-1, 2).astype(dtype)
    derivative = weft.jit(lambda x, t: weft.jvp(functions[within], (x,), (t,)))
    if platform == "reference":  # it runs every equation
        with pytest.raises(TypeError, match="forward-mode differentiation"):
            derivative(x, x)
        return
    out, _ = derivative(x, x)
    np.testing.assert_array_equal(out, [False, False, True])


@pytest.mark.parametrize("index", ["no axis", "a window", "a scalar", "a batch"])
def test_scattering_without_indices_takes_every_update(index):
    """XLA took one of them: each index of no elements means the beginning, and updates there come together."""
    numbers, shapes = {
        "no axis": (lax.ScatterDimensionNumbers((), (0,), ()), ((1,), (3, 0), (3,))),
        "a window": (lax.ScatterDimensionNumbers((1,), (), ()), ((2,), (3, 0), (3, 2))),
        "a scalar": (lax.ScatterDimensionNumbers((), (), ()), ((), (3, 0), (3,))),
        "a batch": (lax.ScatterDimensionNumbers((), (), (), (0,), (0,)), ((2,), (2, 3, 0), (2, 3))),
    }[index]
    x, i, u = (np.arange(1.0, 1 + np.prod(s)).reshape(s).astype(np.float32) for s in shapes)
    axis = 1 if index == "a batch" else 0
    for f, want in (
        (lax.scatter_add, x + u.sum(axis)),
        (lax.scatter_mul, x * u.prod(axis)),
        (lax.scatter_min, np.minimum(x, u.min(axis))),
        (lax.scatter_max, np.maximum(x, u.max(axis))),
    ):
        got = weft.jit(lambda x, u, f=f: f(x, np.zeros(shapes[1], np.int32), u, numbers))(x, u)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or"])
def test_bits_of_integers_that_become_narrower(platform, name, x64):
    """XLA's CPU compiler crashed, and with it the process, where these read what was only cut off, and it optimised."""
    if x64 and platform == "webgpu":
        x64 = False  # it has no integers of 64 bits
    wide, f = ("int64", "int32", "int16") if x64 else ("int32", "int16"), getattr(lax, name)
    options = TARGETS["cpu"][0].options if platform == "cpu" else {}
    with weft.enable_x64(x64):
        for source in wide:
            for narrow in ("int8", "int16", "int32")[: ("int16", "int32", "int64").index(source) + 1]:
                x, y = (np.arange(7) * 37 + 5).astype(source), (np.arange(7) * 11 + 2).astype(narrow)
                for g in (lambda v: v, lambda v: lax.sort(v)):
                    cut = lambda x, y, g=g, narrow=narrow: f(y, lax.convert_element_type(g(x), narrow))
                    got = weft.jit(cut, compiler_options=options)(x, y)
                    want = getattr(np, name)(y, x.astype(narrow))
                    assert got.dtype == want.dtype
                    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("end", [3, 0])
def test_ordered_callbacks_in_the_condition_of_a_loop(end, batch):
    """XLA refused them: a condition hands on no token. The condition is asked once more than the body runs."""
    heard = []
    note = lambda what: lambda x: heard.append((what, int(x)))

    def going(s):
        weft.debug.callback(note("going"), s[0], ordered=True)
        return s[0] < end

    def body(s):
        weft.debug.callback(note("body"), s[0], ordered=True)
        return s[0] + 1, s[1] * 2

    def f(x):
        i, x = lax.while_loop(going, body, (jnp.int32(0), x))
        weft.debug.callback(note("after"), i, ordered=True)
        return x

    got = weft.jit(weft.vmap(f) if batch else f)(np.arange(3, dtype=np.float32))
    weft.effects_barrier()
    np.testing.assert_array_equal(got, np.arange(3) * 2**end)
    steps = [(what, k) for k in range(end) for what in ("going", "body")]
    assert heard == [*steps, ("going", end), ("after", end)]


@pytest.mark.parametrize("name", ["int2", "uint2", "int4", "uint4"])
def test_operations_on_all_numbers_of_few_bits(name):
    """XLA counted the bits of negative int4 as those of a byte. Whatever an operation gives is cut to its bits."""
    bits, signed = int(name[-1]), name[0] == "i"
    low = -(1 << bits - 1) if signed else 0
    x, y = (v.ravel() for v in np.meshgrid(*[np.arange(low, low + (1 << bits))] * 2))
    mask = (1 << bits) - 1
    cut = lambda v: np.where(signed & (v >> bits - 1 & 1).astype(bool), (v & mask) - (1 << bits), v & mask)
    some = np.where(y == 0, 1, y)
    operations = {
        lax.population_count: np.bitwise_count((x & mask).astype(np.uint8)).astype(int),
        lax.clz: bits - np.array([int(v).bit_length() for v in x & mask]),
        lax.bitwise_not: ~x,
        lax.add: x + y,
        lax.sub: x - y,
        lax.mul: x * y,
        lax.max: np.maximum(x, y),
        lax.min: np.minimum(x, y),
        lax.bitwise_and: x & y,
        lax.bitwise_or: x | y,
        lax.bitwise_xor: x ^ y,
        lax.div: np.trunc(x / some).astype(int),
        lax.rem: np.fmod(x, some),
    }
    unary = (lax.population_count, lax.clz, lax.bitwise_not)
    divisions = (lax.div, lax.rem)
    f = lambda x, y, some: [g(x) if g in unary else g(x, some if g in divisions else y) for g in operations]
    got = weft.jit(f)(narrow(x, name), narrow(y, name), narrow(some, name))
    for g, a, want in zip(operations, got, operations.values(), strict=True):
        np.testing.assert_array_equal(np.asarray(a).astype(int), cut(want), err_msg=g.__name__)


def test_the_bits_of_no_numbers():
    x = narrow(np.zeros((2, 0)), "uint2")
    got = weft.jit(lambda x: lax.bitcast_convert_type(x, "uint2"))(x)
    assert np.asarray(got).shape == (2, 0)


@pytest.mark.parametrize("zero, head", [(0.0, -5.0), (-0.0, 5.0)])
def test_reflections_of_columns_that_begin_with_zero(zero, head):
    """LAPACK's sign: a zero has one too."""
    column = np.array([[zero], [3], [4]], np.float32)
    np.testing.assert_allclose(np.asarray(jnp.linalg.qr(column)[1]), [[head]], rtol=1e-6)
    h = np.zeros((4, 4), np.float32)
    h[1:, :1] = column
    np.testing.assert_allclose(np.asarray(lax.linalg.hessenberg(h)[0])[1, 0], head, rtol=1e-6)


def test_a_kernel_draws_random_numbers():
    """No platform could: only the program around a kernel was one over words, which keys are in memory."""
    draw = lambda k: weft.random.uniform(weft.random.fold_in(weft.random.key(1), k), (2,))

    def kernel(words, o):
        o[...] = draw(pl.program_id(0)) + weft.random.uniform(weft.random.wrap_key_data(words[...]), (2,))

    shape, part = weft.ShapeDtypeStruct((4,), "float32"), pl.BlockSpec((2,), lambda i: i)
    f = pl.pallas_call(kernel, shape, grid=2, in_specs=[pl.BlockSpec()], out_specs=part)
    key = weft.random.key(7)
    want = np.concatenate([draw(k) for k in range(2)]) + np.tile(weft.random.uniform(key, (2,)), 2)
    np.testing.assert_allclose(weft.jit(f)(weft.random.key_data(key)), want, rtol=1e-6)


def test_the_index_of_a_loop_is_an_operand_of_a_kernel():
    """The compiler of kernels took an operand without memory for a number that it knows."""

    def inner(k, o):
        o[...] = 10 * k[...] + lax.iota("int32", 2)

    rows = pl.pallas_call(inner, weft.ShapeDtypeStruct((2,), "int32"))

    def outer(x, o):
        o[...] = x[...] + rows(pl.program_id(0))

    part, shape = pl.BlockSpec((None, 2), lambda i: (i, 0)), weft.ShapeDtypeStruct((3, 2), "int32")
    f = pl.pallas_call(outer, shape, grid=3, in_specs=[part], out_specs=part)
    np.testing.assert_array_equal(weft.jit(f)(np.zeros((3, 2), np.int32)), [[0, 1], [10, 11], [20, 21]])
    stacked = lambda: lax.map(rows, lax.iota("int32", 3))
    np.testing.assert_array_equal(weft.jit(stacked)(), [[0, 1], [10, 11], [20, 21]])


def test_blocks_without_elements():
    """A copy of a block that is no run of memory asked for the indices of an element."""

    def kernel(x, o):
        o[...] = lax.cumsum(x[...])

    part, shape = pl.BlockSpec((2, 2, 1), lambda i: (0, i, 0)), weft.ShapeDtypeStruct((2, 4, 0), "float32")
    f = pl.pallas_call(kernel, shape, grid=2, in_specs=[part], out_specs=part)
    assert np.asarray(weft.jit(f)(np.zeros((2, 4, 0), np.float32))).shape == (2, 4, 0)


def test_a_kernel_asks_for_its_platform():
    """The question stayed in kernels, where no platform has an answer."""

    def kernel(x, o):
        o[...] = lax.platform_dependent(x[...], tpu=lambda x: x * 0, default=lambda x: x + pl.program_id(0))

    part = pl.BlockSpec((2,), lambda i: i)
    f = pl.pallas_call(kernel, weft.ShapeDtypeStruct((4,), "int32"), grid=2, in_specs=[part], out_specs=part)
    assert np.asarray(weft.jit(f)(np.arange(4, dtype=np.int32))).tolist() == [0, 1, 3, 4]


def test_members_of_mapped_axes_have_scratch_memory_of_their_own():
    """What one member left in it, the next one found: the loop over the grid took the mapped axis for one of the
    grid's.
    """

    def kernel(x, o, seen):
        o[...] = jnp.where(seen[...] > 1, 10.0, x[...])
        seen[...] = x[...]

    room, shape = [pl.ANY((2,), jnp.float32)], weft.ShapeDtypeStruct((2,), "float32")
    f = pl.pallas_call(kernel, shape, grid=2, out_specs=pl.BlockSpec(), scratch_shapes=room)
    x = np.array([[5, 0], [5, 5], [0, 5]], np.float32)
    want = np.where(x > 1, 10, x)  # of the second point
    np.testing.assert_array_equal(np.stack([f(v) for v in x]), want)
    np.testing.assert_array_equal(weft.jit(weft.vmap(f))(x), want)

    def first(x, o, seen):
        o[...] = jnp.where(seen[...] > 1, 10.0, x[...])
        seen[...] = x[...]

    f = pl.pallas_call(first, shape, scratch_shapes=room)
    np.testing.assert_array_equal(weft.jit(weft.vmap(f))(x), x)


def test_a_chain_of_hashes_is_cut():
    """Each nests 72 operations, which counted as one."""
    key, x = np.ones(2, np.uint32), np.arange(2, dtype=np.uint32)

    def f(x):
        for _ in range(6):
            x = threefry2x32_p.bind(key, key, x, key)[0]
        return x

    np.testing.assert_array_equal(weft.jit(f)(x), interpret(weft.make_jaxpr(f)(x), [x])[0])


@pytest.mark.parametrize("name", ["int2", "uint2", "int4", "uint4", "int8"])
@pytest.mark.parametrize("factor", ["float32", "float16"])
def test_products_of_floats_as_integers_of_few_bits_stay_in_their_range(name, factor):
    x = np.array([[3.0, -1.0], [1.0, 2.5], [20.0, -90.0]], factor)
    y = np.array([1.0, 2.0], factor)
    limits = ml_dtypes.iinfo(getattr(ml_dtypes, name)) if name != "int8" else np.iinfo("int8")
    want = np.clip(x.astype(float) @ y.astype(float), limits.min, limits.max).astype(int)
    products = (
        lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type=name),
        lambda x, y: lax.ragged_dot(x, y[None, :, None], jnp.array([3]), preferred_element_type=name)[:, 0],
    )
    for product in products:
        got = weft.jit(product)(jnp.asarray(x), jnp.asarray(y))
        assert got.dtype == jnp.dtype(name)
        np.testing.assert_array_equal(np.asarray(got).astype(int), want)


def test_products_of_floats_and_integers_as_integers_of_few_bits_multiply_those():
    x, y = np.array([[-1.17, 1.79, -1.18]], "float32"), np.array([[2], [3], [6]], "int8")
    got = weft.jit(lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type="int2"))(x, y)
    assert np.asarray(got).astype(int).tolist() == [[-1]]  # of the factors as int2: -1 * -2 + 1 * -1 + -1 * -2 is 3


@pytest.mark.parametrize(
    "dtype", ["complex64", "int4", "uint2", "float8_e4m3fn", "bfloat16", "float16", "bool", "uint8"]
)
def test_numbers_that_only_stand_in_a_program(dtype):
    """Branches, bodies and programs that give a number that they hold, and have no other of its dtype."""
    one, two = (np.array(n).astype(jnp.dtype(dtype))[()] for n in (1, 0))
    x = jnp.float32(1)
    check = lambda got, want: np.testing.assert_array_equal(np.asarray(got), np.asarray(want))
    check(weft.jit(lambda x: lax.cond(x > 2, lambda: one, lambda: two))(x), two)
    check(weft.jit(lambda x: (x, one))(x)[1], one)
    check(weft.jit(lambda x: lax.scan(lambda c, _: (c + 1, one), x, None, length=3))(x)[1], [one] * 3)
    check(
        weft.jit(lambda x: lax.map(lambda i: lax.cond(i > x, lambda: one, lambda: two), jnp.arange(3)))(x),
        [two, two, one],
    )
    check(weft.jit(lambda n: lax.fori_loop(0, n, lambda k, c: one, two))(2), one)


def test_parts_of_a_complex_number_that_only_stands_in_a_program():
    choose = lambda x: lax.cond(x > 0, lambda: lax.imag_p.bind(2j) + x, lambda: x)
    assert float(weft.jit(choose)(jnp.float32(1))) == 3.0


def test_windows_of_booleans_add_whether_any_is_true():
    x, ones = np.random.default_rng(0).integers(0, 2, (5, 6)).astype(bool), np.ones((5, 3), bool)
    window = dict(select_prim="ge", window_dimensions=(2, 2), window_strides=(1, 2), padding=((0, 1), (0, 0)))
    for source in (ones, ones & False):
        got = weft.jit(lambda s, x: select_and_scatter_add_p.bind(s, x, **window))(source, x)
        want = interpret(
            weft.make_jaxpr(lambda s, x: select_and_scatter_add_p.bind(s, x, **window))(source, x), [source, x]
        )
        assert got.dtype == bool
        np.testing.assert_array_equal(np.asarray(got), want[0])
