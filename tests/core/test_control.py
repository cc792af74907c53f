"""scan, while_loop, fori_loop, cond, switch: values, derivatives, batching, and what they refuse."""

import numpy as np
import pytest

import weft
from weft.higher_order.cond import _bind_cond, cond, switch
from weft.higher_order.while_loop import fori_loop, while_loop
from weft.higher_order.scan import scan
from weft.higher_order.prefix import associative_scan, map_
from weft.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, eval_jaxpr
from weft.transforms.platforms import depends_on_platform, for_platform
from weft import lax, numpy as jnp

from .helpers import check_grads, close, value

XS = np.linspace(0.1, 0.8, 4)


def f32(x):
    return np.float32(x)


def step(c, x):
    return lax.add(lax.sin(c), x), lax.mul(c, x)


def loop_in_python(c, xs, reverse=False):
    ys = []
    for x in xs[::-1] if reverse else xs:
        ys.append(c * x)
        c = np.sin(c) + x
    return c, np.array(ys[::-1] if reverse else ys)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [1, 2, True])
def test_scan_value(reverse, unroll):
    out = weft.jit(lambda xs: scan(step, f32(0.5), xs, reverse=reverse, unroll=unroll))(XS.astype(np.float32))
    close(out, loop_in_python(0.5, XS, reverse))


def test_a_scan_of_the_reference_takes_no_room_for_steps_that_it_has_not_made():
    """A stranger's program may say any length, and stop in its first step."""

    def stop(x):
        raise RuntimeError("the first step")

    def body(c, _):
        weft.debug.callback(stop, c)
        return c, None

    with pytest.raises(RuntimeError, match="the first step"):
        weft.jit(lambda c: lax.scan(body, c, None, length=1 << 50)[0], backend="reference")(np.float32(1))
        weft.effects_barrier()


def test_scan_derivatives():
    check_grads(lambda c, xs: scan(step, c, xs), 0.5, XS)
    check_grads(lambda c, xs: scan(step, c, xs, reverse=True), 0.5, XS)
    # a closure
    check_grads(lambda w, xs: scan(lambda c, x: (lax.tanh(lax.add(lax.mul(w, c), x)), c), np.zeros(()), xs)[0], 0.7, XS)
    check_grads(
        lambda xs: scan(lambda c, x: ((lax.mul(c[0], x), c[1]), None), (np.ones(()), np.ones(())), xs)[0][0], XS
    )
    f = lambda c: scan(step, c, XS.astype(np.float32))[0]
    close(weft.grad(weft.grad(f))(f32(0.5)), weft.jit(weft.grad(weft.jit(weft.grad(f))))(f32(0.5)))
    close(weft.jvp(weft.grad(f), (f32(0.5),), (f32(1.0),))[1], weft.grad(weft.grad(f))(f32(0.5)))


def test_scan_under_vmap():
    f = lambda c, xs: scan(step, c, xs)
    cs, xs = np.array([0.1, 0.5], np.float32), np.stack([XS, XS[::-1]]).astype(np.float32)
    for axes in [(0, 0), (0, None), (None, 0), (None, 1)]:
        c_in, x_in = cs if axes[0] == 0 else cs[0], xs if axes[1] == 0 else xs.T if axes[1] == 1 else xs[0]
        got = weft.vmap(f, in_axes=axes)(c_in, x_in)
        want = [f(c_in[i] if axes[0] == 0 else c_in, xs[i] if axes[1] is not None else xs[0]) for i in range(2)]
        close(got[0], np.stack([value(w[0]) for w in want])), close(got[1], np.stack([value(w[1]) for w in want]))


def test_scan_keeps_loop_constants_out_of_its_residuals():
    """The weights of a recurrence are handed to the way back once, not stacked for every iteration."""

    def loss(w, c, xs):
        return lax.reduce_sum(scan(lambda c, x: (lax.tanh(lax.dot(c, w)), None), c, None, length=7)[0], (0,))

    text = str(weft.make_jaxpr(weft.grad(loss))(np.eye(3, dtype=np.float32), np.ones(3, np.float32), None))
    assert "f32[7,3,3]" not in text and "f32[7,3]" in text


def test_scan_pytrees_and_weak_types():
    out, ys = scan(
        lambda c, x: ({"n": lax.add(c["n"], 1), "s": lax.add(c["s"], x["v"])}, c["n"]),
        {"n": 0, "s": 0.0},
        {"v": np.ones(3, np.float32)},
    )
    assert value(out["n"]) == 3 and value(ys).tolist() == [0, 1, 2]
    close(scan(lambda c, _: (lax.mul(c, 2.0), None), 1.0, None, length=5)[0], 32.0)
    assert value(scan(lambda c, x: (c, x), 0.0, np.zeros((0, 2), np.float32))[1]).shape == (0, 2)
    assert value(map_(lambda x: lax.mul(x, 2.0), XS.astype(np.float32))).shape == (4,)
    with weft.disable_jit():
        close(scan(step, f32(0.5), XS.astype(np.float32)), loop_in_python(0.5, XS))


def test_scan_refuses():
    xs = XS.astype(np.float32)
    with pytest.raises(TypeError, match=r"carry.*f32\[2\].*f32\[\]"):
        scan(lambda c, x: (np.ones(2, np.float32), None), f32(0), xs)
    with pytest.raises(TypeError, match="pair"):
        scan(lambda c, x: c, f32(0), xs)
    with pytest.raises(TypeError, match="structure"):
        scan(lambda c, x: ((c, c), None), f32(0), xs)
    with pytest.raises(ValueError, match="different leading axis sizes"):
        scan(lambda c, x: (c, None), 0.0, (xs, xs[:2]))
    with pytest.raises(ValueError, match="disagrees"):
        scan(lambda c, x: (c, None), 0.0, xs, length=3)
    with pytest.raises(ValueError, match="no leading axis"):
        scan(lambda c, x: (c, None), 0.0, f32(1))
    with pytest.raises(ValueError, match="length"):
        scan(lambda c, x: (c, None), 0.0, None)


def test_while_loop():
    double = lambda x: while_loop(lambda c: lax.lt(c, f32(10)), lambda c: lax.mul(c, f32(2)), x)
    close(double(f32(1)), 16.0), close(weft.jit(double)(f32(3)), 12.0)
    close(weft.jvp(double, (f32(1),), (f32(1),))[1], 16.0)
    close(weft.vmap(double)(np.array([1, 3, 11], np.float32)), [16, 12, 11])
    close(
        weft.vmap(
            weft.jit(
                lambda x, n: while_loop(
                    lambda s: lax.lt(s[0], n), lambda s: (lax.add(s[0], 1), lax.mul(s[1], f32(2))), (0, x)
                )[1]
            ),
            in_axes=(None, 0),
        )(f32(1), np.array([0, 3])),
        [1, 8],
    )
    nested = lambda x: while_loop(
        lambda c: lax.lt(c, f32(100)),
        lambda c: while_loop(lambda d: lax.lt(d, f32(50)), lambda d: lax.add(d, f32(7)), lax.mul(c, f32(3))),
        x,
    )
    close(weft.jit(nested)(f32(1)), 156.0)  # 3, 10, …, 52; then 156


def test_while_loop_refuses():
    with pytest.raises((NotImplementedError, ValueError), match="(?i)reverse-mode"):
        weft.grad(lambda x: while_loop(lambda c: lax.lt(c, f32(10)), lambda c: lax.mul(c, f32(2)), x))(f32(1))
    with pytest.raises(TypeError, match="boolean scalar"):
        while_loop(lambda c: c, lambda c: c, f32(1))
    with pytest.raises(TypeError, match="equal types"):
        while_loop(lambda c: lax.lt(c, f32(1)), lambda c: np.int32(1), f32(1))


def test_fori_loop():
    close(fori_loop(0, 4, lambda i, x: lax.add(x, lax.convert_element_type(i, np.float32)), f32(0)), 6.0)
    close(weft.jit(lambda n: fori_loop(0, n, lambda i, x: lax.mul(x, f32(2)), f32(1)))(5), 32.0)
    close(weft.grad(lambda x: fori_loop(0, 3, lambda i, c: lax.mul(c, x), x))(f32(2)), 32.0)
    close(fori_loop(3, 1, lambda i, x: lax.mul(x, f32(2)), f32(1)), 1.0)
    with pytest.raises(TypeError, match="integer"):
        fori_loop(0.0, 1, lambda i, x: x, 0)


def test_cond_and_switch():
    f = lambda p, x: cond(p, lambda x: lax.sin(x), lambda x: lax.mul(x, f32(3)), x)
    close(f(True, f32(1)), np.sin(1)), close(weft.jit(f)(False, f32(1)), 3.0)
    close(cond(True, f32(1), lambda x: lax.neg(x), f32(2), lambda x: x), -1.0)  # the old form
    g = weft.jit(lambda i, x: switch(i, [lambda x: x, lambda x: lax.neg(x), lambda x: lax.mul(x, x)], x))
    close([g(i, f32(3)) for i in (-5, 0, 1, 2, 99)], [3.0, 3.0, -3.0, 9.0, 9.0])
    close(weft.vmap(g)(np.array([0, 1, 2]), np.full(3, 3, np.float32)), [3, -3, 9])
    close(weft.vmap(g, in_axes=(None, 0))(2, np.full(3, 3, np.float32)), [9, 9, 9])
    close(weft.vmap(f, in_axes=(0, None))(np.array([True, False]), f32(1)), [np.sin(1), 3])


def test_cond_derivatives():
    for p in (True, False):
        check_grads(
            lambda x, y: cond(p, lambda x, y: lax.mul(lax.sin(x), y), lambda x, y: lax.tanh(lax.mul(x, x)), x, y),
            0.3,
            0.8,
        )
        check_grads(
            weft.jit(
                lambda x, y: cond(
                    lax.gt(x, 0.0) if p else lax.lt(x, 0.0), lambda: lax.mul(lax.exp(x), y), lambda: lax.mul(x, y)
                )
            ),
            0.3,
            0.8,
        )
    check_grads(
        lambda xs: scan(
            lambda c, x: (cond(lax.gt(x, 0.4), lambda c: lax.sin(c), lambda c: lax.mul(c, x), c), c),
            np.float64(0.9),
            xs,
        ),
        XS,
    )
    close(
        weft.vmap(weft.grad(lambda x: cond(lax.gt(x, f32(0)), lambda x: lax.sin(x), lambda x: lax.mul(x, x), x)))(
            np.array([1, -1], np.float32)
        ),
        [np.cos(1), -2],
    )


def test_cond_under_vmap_keeps_infinite_derivatives_to_those_that_chose_them():
    f = lambda x: cond(lax.gt(x, f32(3)), lambda x: lax.log(x), lambda x: lax.mul(x, x), x)
    close(weft.vmap(weft.grad(f))(np.array([0, 5], np.float32)), [0, 0.2])
    g = lambda i, x: switch(i, [lambda x: lax.log(x), lambda x: lax.sqrt(x), lambda x: x], x)
    close(
        weft.grad(lambda x: lax.reduce_sum(weft.vmap(g)(np.array([-1, 1, 2, 7], np.int32), x), (0,)))(
            np.array([2, 4, 0, 0], np.float32)
        ),
        [0.5, 0.25, 1, 1],
    )


def test_a_program_is_cut_to_its_platform():
    """What is chosen by platform is settled, at every depth; what is chosen by value stays a choice."""

    def f(i, x):
        double = lax.platform_dependent(x, tpu=lambda v: lax.mul(v, f32(2)), default=lambda v: lax.mul(v, f32(3)))
        signed = lambda v: lax.platform_dependent(v, tpu=lambda v: lax.neg(v), default=lambda v: v)
        return switch(i, [lambda v: v, lambda v: lax.mul(v, v), signed], double)

    program = weft.make_jaxpr(f)(np.int32(0), f32(5))
    for platform, (first, square, last) in {"tpu": (10, 100, -10), "cpu": (15, 225, 15)}.items():
        mine = for_platform(program, platform)
        assert depends_on_platform(program.jaxpr) and not depends_on_platform(mine.jaxpr)
        assert [e.primitive.name for e in mine.jaxpr.eqns].count("cond") == 1
        close(
            [eval_jaxpr(mine.jaxpr, mine.consts, np.int32(i), f32(5))[0] for i in (-1, 0, 1, 2, 3)],
            [first, first, square, last, last],
        )


@pytest.mark.parametrize("index,want", [(-(2**31), 1), (-1, 1), (0, 1), (1, 2), (2, 4), (3, 4), (2**31 - 1, 4)])
def test_a_known_index_beyond_the_branches_takes_the_nearest(index, want):
    """No function makes such a program; a file or another program may."""
    by_value = weft.make_jaxpr(
        lambda i, x: _bind_cond(
            i,
            x,
            branches=tuple(weft.make_jaxpr(lambda x, k=k: lax.mul(x, k))(f32(0)) for k in (f32(1), f32(2), f32(4))),
        )
    )(np.int32(0), f32(0))
    (eqn,), (_, x) = by_value.jaxpr.eqns, by_value.jaxpr.invars
    asked = weft.make_jaxpr(lambda: lax.platform_dependent(tpu=lambda: f32(0), default=lambda: f32(0)))().jaxpr.eqns[0]
    known = Jaxpr(
        [],
        [x],
        eqn.outvars,
        [asked, JaxprEqn([Literal(index, eqn.invars[0].aval), x], eqn.outvars, eqn.primitive, eqn.params)],
    )
    mine = for_platform(ClosedJaxpr(known, []), "cpu")
    assert [e.primitive.name for e in mine.jaxpr.eqns] == ["mul"]
    close(eval_jaxpr(mine.jaxpr, mine.consts, f32(1)), [want])


def test_cond_refuses():
    with pytest.raises(TypeError, match="branch 1.*i32"):
        cond(True, lambda: np.int32(1), lambda: np.float32(1))
    with pytest.raises(TypeError, match="scalar"):
        cond(np.ones(2, bool), lambda: 1, lambda: 2)
    with pytest.raises(TypeError, match="structure"):
        cond(True, lambda: (1, 1), lambda: 1)
    with pytest.raises(ValueError, match="Empty"):
        switch(0, [])
    with pytest.raises(TypeError, match="integer"):
        switch(0.5, [lambda: 1, lambda: 2])


def test_loops_inside_loops_inside_jit():
    def f(x):
        def outer(c, _):
            inner = fori_loop(0, 3, lambda i, v: lax.add(v, lax.mul(c, f32(0.5))), c)
            return cond(lax.lt(inner, f32(50)), lambda v: v, lambda v: f32(1), inner), inner

        return scan(outer, x, None, length=6)

    c, want = 1.0, []
    for _ in range(6):
        inner = c + 3 * 0.5 * c
        want.append(inner)
        c = inner if inner < 50 else 1.0
    close(weft.jit(f)(f32(1)), (c, np.array(want)))


@pytest.mark.parametrize(
    "n", [0, 1, 2, 3, 7, pytest.param(8, marks=pytest.mark.slow), pytest.param(13, marks=pytest.mark.slow)]
)
def test_associative_scan(n):
    x = np.arange(2.0 * n, dtype=np.float32).reshape(n, 2) + 1
    close(associative_scan(lax.add, x), np.cumsum(x, 0))
    close(associative_scan(lax.mul, x[:6], reverse=True), np.cumprod(x[:6][::-1], 0)[::-1])
    close(
        weft.vmap(lambda v: associative_scan(lax.max, v), in_axes=1, out_axes=1)(x),
        np.maximum.accumulate(x, 0) if n else x,
    )
    pair = lambda a, b: (lax.mul(a[0], b[0]), lax.add(lax.mul(a[1], b[0]), b[1]))  # affine maps, not commutative
    if n:
        k, b = x[:, 0] / 10, x[:, 1]
        state, want = 0.0, []
        for ki, bi in zip(k, b):
            state = state * ki + bi
            want.append(state)
        close(associative_scan(pair, (k, b))[1], np.array(want))
        check_grads(lambda k: associative_scan(pair, (k, b.astype(np.float64)))[1], k)


def test_associative_scan_refuses():
    with pytest.raises(ValueError, match="same first dimension"):
        associative_scan(lambda a, b: a, (np.ones(3), np.ones(4)))
    with pytest.raises(TypeError, match="structure"):
        associative_scan(lambda a, b: (a, b), np.ones(4, np.float32))
    with pytest.raises(ValueError, match="out of range"):
        associative_scan(lax.add, np.ones(3, np.float32), axis=1)


@pytest.mark.parametrize("batch_size", [None, 1, 2, 3, 5, 7])
def test_map_in_batches(batch_size):
    xs = {"a": np.arange(5, dtype=np.float32), "b": np.ones((5, 2), np.float32)}
    out = map_(lambda x: {"y": lax.add(lax.mul(x["b"], x["a"]), x["b"])}, xs, batch_size=batch_size)
    close(out["y"], xs["b"] * xs["a"][:, None] + 1)


def test_a_weak_carry_takes_the_type_of_the_result_only_where_it_promotes_to_it():
    assert weft.lax.fori_loop(0, 3, lambda i, x: x + jnp.float16(0.5), 1).dtype == jnp.float16
    with pytest.raises(TypeError, match=r"\[1\] has type i32\[\] where f32\[\] is expected"):
        weft.lax.fori_loop(0, 3, lambda i, x: x.astype(jnp.int32), 1.0)


def test_a_linear_solve_in_a_program_that_draws_random_numbers():
    """Its programs come as a named tuple, also where random keys have been lowered to words."""
    d = np.array([2.0, 4.0, 5.0], np.float32)

    def f(key, b):
        noisy = b + weft.random.uniform(key, (3,))
        return lax.custom_linear_solve(lambda x: d * x, noisy, lambda _, b: b / d, symmetric=True)

    key, b = weft.random.key(3), np.array([1.0, -2.0, 0.5], np.float32)
    want = (b + np.asarray(weft.random.uniform(key, (3,)))) / d
    close(weft.jit(f)(key, b), want)
    close(weft.jit(weft.grad(lambda b: f(key, b).sum()))(b), 1 / d)


def test_a_counter_beside_a_linear_carry_is_run_before_the_loop_is_transposed():
    def f(v, ws):
        def step(c, w):
            n, u = c
            return (n + 1, u * 2 + w), u * n

        (_, u), ys = scan(step, (0, v), ws)
        return u, ys

    v, ws = f32(3), np.arange(4, dtype=np.float32)
    (at_v, at_ws), want = weft.linear_transpose(f, v, ws)((f32(1), np.ones(4, np.float32))), weft.vjp(f, v, ws)[1]
    close(at_v, 50.0)
    close(at_ws, [25.0, 12.0, 5.0, 1.0])
    for got, expected in zip((at_v, at_ws), want((f32(1), np.ones(4, np.float32)))):
        close(got, expected)
