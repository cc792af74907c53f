"""Carries, flags, counts and indices that loops change, on every backend: each iteration sees what the one before
has left.
"""

import collections

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.compat import core, mlir
from weft.runtime.device import devices

PLATFORMS = ["reference", "cpu", "wasm", "webgpu"]


@pytest.fixture(params=PLATFORMS, autouse=True)
def platform(request):
    with weft.default_device(devices(request.param)[0]):
        yield request.param


def agree(got, want) -> None:
    for a, b in zip(weft.tree_util.tree_leaves(got), want, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)


def test_a_flag_that_is_a_carry():
    """A while loop inside a scan, which ends by a flag that its own body computes."""

    def body(c, x):
        def more(s):
            _, n, t = s
            n = n + 1
            return (n < x, n, t + n)

        _, n, t = lax.while_loop(lambda s: s[0], more, (jnp.bool_(True), jnp.int32(0), c))
        return t, n

    total, counts = weft.jit(lambda c, xs: lax.scan(body, c, xs))(jnp.int32(1), jnp.array([3, 4, 5, 2]))
    agree((total, counts), (35, [3, 4, 5, 2]))


def test_a_flag_that_is_a_carry_of_the_outer_loop():
    def body(s, x):
        on, n = s
        inner = lax.while_loop(lambda v: (v[0] < x) & on, lambda v: (v[0] + 1, v[1] * 2 + 1), (jnp.int32(0), n))
        return (~on, inner[1]), inner[0]

    (on, n), steps = weft.jit(lambda xs: lax.scan(body, (jnp.bool_(True), jnp.int32(0)), xs))(
        jnp.array([2, 3, 1, 4, 2])
    )
    agree((on, n, steps), (False, 2**5 - 1, [2, 0, 1, 0, 2]))


def test_a_trip_count_that_changes():
    def body(n, _):
        total = lax.fori_loop(0, n, lambda i, t: t + i, jnp.int32(0))
        return (n * 2) % 7, total

    n, totals = weft.jit(lambda n: lax.scan(body, n, None, length=5))(jnp.int32(3))
    trips = [3, 6, 5, 3, 6]
    agree((n, totals), (5, [k * (k - 1) // 2 for k in trips]))


def test_a_branch_that_changes():
    def body(k, x):
        out = lax.switch(k, [lambda v: v + 1, lambda v: v * 10, lambda v: -v], x)
        return (k + out) % 3, out

    k, outs = weft.jit(lambda xs: lax.scan(body, jnp.int32(1), xs))(jnp.arange(8, dtype="int32"))
    want, at = [], 1
    for x in range(8):
        want.append([x + 1, x * 10, -x][at])
        at = (at + want[-1]) % 3
    agree((k, outs), (at, want))


def test_a_while_inside_a_while_inside_a_cond():
    def inner(s):
        return lax.while_loop(lambda v: v[0], lambda v: (v[1] % 4 != 0, v[1] + 1), s)

    def outer(s):
        n, total = s
        on, m = lax.cond(n % 2 == 0, lambda s: inner(s), lambda s: (s[0], s[1] - 1), (jnp.bool_(True), n))
        return n + 1, total * 3 + m + on

    n, total = weft.jit(lambda: lax.while_loop(lambda s: s[0] < 6, outer, (jnp.int32(0), jnp.int32(0))))()
    want = 0
    for k in range(6):
        on, m = True, k
        if k % 2 == 0:
            while on:
                on, m = m % 4 != 0, m + 1
        else:
            m -= 1
        want = want * 3 + m + on
    agree((n, total), (6, want))


@pytest.mark.parametrize("loop", ["scan", "while", "fori"])
def test_carries_change_places(loop):
    def swap(s):
        a, b, c = s
        return b + 1, c, a * 2

    start = (jnp.arange(5.0), jnp.ones(5), jnp.full(5, 7.0))

    def run(s):
        if loop == "scan":
            return lax.scan(lambda s, _: (swap(s), None), s, None, length=4)[0]
        if loop == "while":
            return lax.while_loop(lambda v: v[0] < 4, lambda v: (v[0] + 1, swap(v[1])), (jnp.int32(0), s))[1]
        return lax.fori_loop(0, 4, lambda i, s: swap(s), s)

    want = [np.asarray(x) for x in start]
    for _ in range(4):
        want = [want[1] + 1, want[2], want[0] * 2]
    agree(weft.jit(run)(start), want)


def test_a_history_that_is_read_while_it_is_written():
    """Row t is made of those before it, forwards and backwards through the array."""

    def step(t, h):
        h = lax.dynamic_update_index_in_dim(h, h[t - 1] + h[t - 2] + t, t, 0)
        return lax.dynamic_update_index_in_dim(h, h[t] - h[0], 11 - t, 0)

    def host(h):
        h = h.copy()
        for t in range(2, 9):
            h[t] = h[t - 1] + h[t - 2] + t
            h[11 - t] = h[t] - h[0]
        return h

    h = np.arange(12, dtype="float32") % 5
    agree(weft.jit(lambda h: lax.fori_loop(2, 9, step, h))(h), [host(h)])


def test_updates_of_an_array_that_is_read_before_and_after():
    def f(x, i):
        before = x[i] + x[0]
        y = x.at[i].set(before * 2)
        z = y.at[0].add(y[i] + x[i])
        return before, y.sum(), z, x

    x, i = np.arange(6, dtype="float32") + 1, 3
    y = x.copy()
    y[i] = (x[i] + x[0]) * 2
    z = y.copy()
    z[0] += y[i] + x[i]
    agree(weft.jit(f)(x, i), (x[i] + x[0], y.sum(), z, x))


def test_a_donated_argument_that_is_read_again(platform):
    """What may lie in the storage of an argument is written only after that was read for the last time."""

    def f(x, y):
        a = x * 2 + y
        b = jnp.flip(x) + a
        return a, b, x.sum() + b[0]

    x, y = np.arange(70, dtype="float32"), np.ones(70, "float32")
    a = x * 2 + y
    b = x[::-1] + a
    agree(weft.jit(f, donate_argnums=0)(jnp.array(x), jnp.array(y)), (a, b, x.sum() + b[0]))


def test_the_same_array_as_two_arguments():
    f = weft.jit(lambda x, y: (x + 1, y * 2, jnp.flip(x) - y))
    x = jnp.arange(37.0)
    agree(f(x, x), (np.arange(37) + 1, np.arange(37) * 2, np.arange(36, -1, -1) - np.arange(37)))


def test_one_compiled_program_on_new_data():
    """Whatever a program keeps from one call to the next must not be seen in the next."""

    def body(c, x):
        return jnp.where(x > 2, c + x, c), c * x

    f = weft.jit(lambda xs: lax.scan(body, jnp.float32(0), xs))
    for xs in ([1, 5, 2, 7], [0, 0, 3, 1], [9, 9, 9, 9]):
        c, ys = 0.0, []
        for x in xs:
            c, y = (c + x if x > 2 else c), c * x
            ys.append(y)
        agree(f(jnp.array(xs, "float32")), (c, ys))


def test_the_sign_of_a_zero_that_fills():
    """Operations alike but for the sign of a zero among their parameters are not one."""
    x, at = np.arange(3, dtype="float32"), np.array([5, 1])

    def fill(x, i, value):
        return x.at[i].get(mode="fill", fill_value=value)

    a, b = weft.jit(lambda x, i: (fill(x, i, 0.0), fill(x, i, -0.0)))(x, at)
    assert not np.signbit(np.asarray(a))[0] and np.signbit(np.asarray(b))[0]
    assert not np.signbit(np.asarray(fill(jnp.array(x), jnp.array(at), 0.0)))[0]
    assert np.signbit(np.asarray(fill(jnp.array(x), jnp.array(at), -0.0)))[0]


def test_parameters_that_are_equal_but_not_the_same():
    """Nor are they the same by another name: a library's own primitive may be called with its parameters in any
    order.
    """
    line = core.Primitive("line_of_a_library")
    line.def_abstract_eval(lambda x, *, slope, start: x)
    mlir.register_lowering(line, mlir.lower_fun(lambda x, *, slope, start: x * slope + start, multiple_results=False))
    calls = [
        {"slope": 2.0, "start": 3.0},
        {"start": 2.0, "slope": 3.0},
        {"slope": 0.0, "start": -0.0},
        {"slope": -0.0, "start": -0.0},
    ]
    got = weft.jit(lambda x: [line.bind(x, **call) for call in calls])(jnp.float32(2))
    assert [str(np.asarray(x)) for x in got] == ["7.0", "8.0", "0.0", "-0.0"]


def test_operations_by_themselves_with_parameters_that_are_equal_but_not_the_same():
    numbers = lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))
    fill = lambda value: lax.gather(jnp.arange(3.0), jnp.array([[5]]), numbers, (1,), mode="fill", fill_value=value)
    assert [str(np.asarray(fill(value))[0]) for value in (0.0, -0.0, 0.0, 1, True)] == [
        "0.0",
        "-0.0",
        "0.0",
        "1.0",
        "1.0",
    ]


def test_tuples_of_parameters_that_are_equal_but_not_the_same():
    """Numbers inside of tuples, and NumPy's, are told apart as well."""
    line = core.Primitive("line_by_coefficients")
    line.def_abstract_eval(lambda x, *, by: x)
    mlir.register_lowering(line, mlir.lower_fun(lambda x, *, by: x * by[0][0] + by[1], multiple_results=False))
    calls = [((0.0,), -0.0), ((-0.0,), -0.0), ((0.0,), 0.0), ((np.float32(-0.0),), -0.0), ((np.float32(0.0),), -0.0)]
    named = collections.namedtuple("named", "slope constant")
    calls += [named((0.0,), -0.0), named((-0.0,), -0.0), named((np.float32(0.0),), -0.0)]
    got = weft.jit(lambda x: [line.bind(x, by=by) for by in calls])(jnp.float32(2))
    assert [str(np.asarray(x)) for x in got] == ["0.0", "-0.0", "0.0", "-0.0", "0.0", "0.0", "-0.0", "0.0"]
