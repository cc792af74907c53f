"""custom_jvp, custom_vjp and checkpoint, alone and under every transformation."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp

from .helpers import check_grads, close

ONES = np.ones(3, np.float32)


@weft.custom_jvp
def f(x, y):
    return jnp.sin(x) * y


@f.defjvp
def f_jvp(primals, tangents):
    (x, y), (x_dot, y_dot) = primals, tangents
    return f(x, y), jnp.cos(x) * x_dot * y + 7.0 * jnp.sin(x) * y_dot


@weft.custom_vjp
def g(x, y):
    return jnp.sin(x) * y


g.defvjp(lambda x, y: (g(x, y), (jnp.cos(x), jnp.sin(x), y)), lambda res, ct: (5.0 * res[0] * ct * res[2], res[1] * ct))


def test_custom_jvp_under_every_transformation():
    want = 7 * np.sin(0.5)
    for d in (weft.grad(f, 1), weft.jit(weft.grad(f, 1)), weft.grad(weft.jit(f), 1), weft.jacfwd(f, 1)):
        close(d(0.5, 2.0), want)
    close(weft.vmap(weft.grad(f))(ONES, ONES), np.full(3, np.cos(1)))
    close(weft.grad(lambda x: weft.vmap(f)(x, x).sum())(ONES), np.full(3, np.cos(1) + 7 * np.sin(1)))
    close(weft.grad(lambda x: weft.lax.scan(lambda c, _: (f(c, x), None), 1.0, None, length=1)[0])(2.0), 7 * np.sin(1))
    close(weft.grad(weft.grad(f, 1))(0.5, 2.0), 7 * np.cos(0.5))
    close(f(x=0.5, y=2.0), 2 * np.sin(0.5))


def test_custom_jvp_options():
    h = weft.custom_jvp(lambda n, x: x * n, nondiff_argnums=(0,))
    h.defjvp(lambda n, primals, tangents: (h(n, *primals), tangents[0] * n * 100))
    close(weft.grad(lambda x: h(3, x))(1.0), 300.0)
    k = weft.custom_jvp(lambda x, n: x * n)
    k.defjvps(lambda t, out, x, n: t * n, None)
    close(weft.grad(k)(2.0, 3), 3.0)

    @weft.custom_jvp
    def branch(x):  # a concrete value may decide while no transformation asks
        return x if x > 0 else -x

    branch.defjvps(lambda t, out, x: t)
    close(branch(-2.0), 2.0)


def test_custom_vjp_under_every_transformation():
    want = 10 * np.cos(0.5)
    for d in (weft.grad(g), weft.jit(weft.grad(g)), weft.grad(weft.jit(g))):
        close(d(0.5, 2.0), want)
    close(weft.vmap(weft.grad(g))(ONES, ONES), np.full(3, 5 * np.cos(1)))
    close(weft.grad(lambda x, y: weft.vmap(g, (0, None))(x, y).sum(), 1)(ONES, 2.0), 3 * np.sin(1))
    close(
        weft.grad(lambda x: weft.lax.scan(lambda c, _: (g(c, 1.0), None), x, None, length=2)[0])(0.5),
        5 * np.cos(np.sin(0.5)) * 5 * np.cos(0.5),
    )


def test_custom_vjp_options():
    h = weft.custom_vjp(lambda n, x: x * n, nondiff_argnums=(0,))
    h.defvjp(lambda n, x: (x * n, None), lambda n, res, ct: (ct * n * 100,))
    close(weft.grad(lambda x: h(3, x))(1.0), 300.0)
    none = weft.custom_vjp(lambda x, y: x + y)
    none.defvjp(lambda x, y: (x + y, None), lambda res, ct: (ct, None))
    close(weft.grad(none, (0, 1))(1.0, 2.0), (1.0, 0.0))
    tree = weft.custom_vjp(lambda p: p["a"] * p["b"])
    tree.defvjp(lambda p: (p["a"] * p["b"], p), lambda p, ct: ({"a": ct * p["b"], "b": ct * 0.0},))
    close(weft.grad(tree)({"a": 2.0, "b": 3.0}), {"a": 3.0, "b": 0.0})


def test_rules_that_are_wrong():
    with pytest.raises(TypeError, match="forward-mode"):
        weft.jvp(g, (0.5, 2.0), (1.0, 1.0))
    with pytest.raises(AttributeError, match="No JVP"):
        weft.custom_jvp(lambda x: x)(1.0)
    with pytest.raises(AttributeError, match="No VJP"):
        weft.custom_vjp(lambda x: x)(1.0)
    bad = weft.custom_jvp(lambda x: x)
    bad.defjvp(lambda p, t: p[0])
    with pytest.raises(TypeError, match="and this one returned"):
        weft.grad(bad)(1.0)
    bad.defjvp(lambda p, t: (p[0], ONES))
    with pytest.raises(TypeError, match=r"float32\[3\]"):
        weft.grad(bad)(1.0)
    bad_vjp = weft.custom_vjp(lambda x: x)
    bad_vjp.defvjp(lambda x: (x, None), lambda res, ct: (ct, ct))
    with pytest.raises(TypeError, match="length"):
        weft.grad(bad_vjp)(1.0)
    bad_vjp.defvjp(lambda x: (x, None), lambda res, ct: (ONES,))
    with pytest.raises(ValueError, match="shapes must be equal"):
        weft.grad(bad_vjp)(1.0)


def test_checkpoint():
    plain = lambda x: jnp.sin(jnp.cos(jnp.sin(x)) * x)
    for policy in (None, weft.checkpoint_policies.everything_saveable, weft.checkpoint_policies.dots_saveable):
        c = weft.checkpoint(plain, policy=policy)
        check_grads(c, 0.7)
        close(weft.grad(weft.grad(c))(0.7), weft.grad(weft.grad(plain))(0.7))
        close(weft.jit(weft.vmap(weft.grad(weft.jit(c))))(ONES), weft.vmap(weft.grad(plain))(ONES))
    nested = weft.checkpoint(lambda x: jnp.exp(weft.checkpoint(lambda y: jnp.sin(jnp.sin(y)))(x)))
    check_grads(nested, 0.7)
    check_grads(
        lambda x: weft.lax.scan(weft.checkpoint(lambda c, _: (jnp.sin(c) * x, None)), x, None, length=3)[0], 0.7
    )


def test_checkpoint_saves_what_the_policy_says():
    def count(policy):
        loss = lambda w: jnp.sin(weft.checkpoint(lambda w: jnp.sin(w @ w), policy=policy)(w)).sum()
        return str(weft.make_jaxpr(weft.grad(loss))(np.eye(3, dtype=np.float32))).count("dot_general")

    assert count(None) == count(weft.checkpoint_policies.dots_saveable) + 1


def test_linear_functions_with_a_derivative_rule_are_transposed():
    f = weft.custom_jvp(lambda x, y: 2 * x - y[::-1])
    f.defjvp(lambda primals, tangents: (f(*primals), f(*tangents)))
    ct = np.arange(len(ONES), dtype=np.float32)
    for g in (f, weft.jit(f), weft.checkpoint(f)):
        close(weft.linear_transpose(g, ONES, ONES)(ct), (2 * ct, -ct[::-1]))


def test_a_forward_rule_whose_residuals_are_not_needed_is_not_run():
    @weft.custom_vjp
    def f(x):
        return jnp.sin(x)

    f.defvjp(lambda x: (jnp.sin(x), jnp.cos(x)), lambda cos_x, g: (10.0 * g * cos_x,), optimize_remat=True)
    close(weft.grad(f)(1.0), 10 * np.cos(1))
    close(weft.grad(weft.grad(f))(1.0), -10 * np.sin(1))
    close(
        weft.jit(weft.vmap(weft.grad(weft.checkpoint(lambda x: jnp.exp(f(x))))))(ONES),
        10 * np.cos(ONES) * np.exp(np.sin(ONES)),
    )
    forward = str(weft.make_jaxpr(weft.grad(weft.checkpoint(lambda x: jnp.exp(f(x)))))(1.0)).split("remat2")[0]
    # the checkpoint keeps no residual, so it runs the function itself
    assert "sin" in forward and "cos" not in forward
    with pytest.raises(NotImplementedError, match="optimize_remat"):
        f.defvjp(lambda x: (x, x), lambda r, g: (g,), symbolic_zeros=True, optimize_remat=True)


def test_what_a_function_closes_over_has_no_rule():
    def outer(y, wrap, define):
        f = wrap(lambda x: x * y)
        define(f)
        return f(1.0)

    for wrap, define in (
        (weft.custom_jvp, lambda f: f.defjvp(lambda p, t: (f(*p), t[0]))),
        (weft.custom_vjp, lambda f: f.defvjp(lambda x: (f(x), None), lambda r, g: (g,))),
    ):
        with pytest.raises(weft.errors.UnexpectedTracerError, match="closed-over value"):
            weft.grad(weft.jit(lambda y: outer(y, wrap, define)))(2.0)


def test_rules_name_what_is_wrong_in_trees():
    f = weft.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda r, g: ((g, g),))
    with pytest.raises(TypeError, match="another structure"):
        weft.grad(f)(1.0)
    with pytest.raises(ValueError, match="nondiff_argnames.*'q'"):
        weft.custom_jvp(lambda x: x, nondiff_argnames=("q",))


def test_functions_may_close_over_arrays():
    """In a program what the function closes over becomes an argument, of which the rule knows nothing."""
    y, z = jnp.arange(1.0, 4.0), jnp.asarray(2.0)
    f = weft.custom_jvp(lambda x, w: x * y + w * z)
    f.defjvp(lambda primals, tangents: (f(*primals), 10 * tangents[0] * y + 100 * tangents[1]))
    args, tangents = (2.0, 3.0), (1.0, 0.5)
    for wrap in (lambda f: f, weft.jit):
        close(wrap(f)(*args), [8, 10, 12])
        close(weft.jvp(wrap(f), args, tangents), ([8, 10, 12], [60, 70, 80]))
        close(weft.grad(lambda x, w: wrap(f)(x, w).sum(), (0, 1))(*args), (60, 300))
        close(weft.vmap(lambda x: weft.jvp(wrap(f), (x, 3.0), tangents)[1])(ONES), [[60, 70, 80]] * 3)


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
def test_functions_may_close_over_what_is_mapped(kind):
    def scaled(y):
        f = weft.custom_jvp(lambda x: x * y) if kind == "jvp" else weft.custom_vjp(lambda x: x * y)
        if kind == "jvp":
            f.defjvp(lambda p, t: (f(*p), 10.0 * t[0] * y))
        else:
            f.defvjp(lambda x: (f(x), None), lambda _, g: (10.0 * g * y,))
        return f

    ys = np.arange(1.0, 4.0, dtype=np.float32)
    for wrap in (lambda f: f, weft.jit):
        close(wrap(weft.vmap(lambda y: scaled(y)(2.0)))(ys), 2 * ys)
        close(wrap(weft.vmap(lambda y: weft.grad(scaled(y))(2.0)))(ys), 10 * ys)
        close(wrap(weft.vmap(lambda y: weft.vmap(scaled(y))(ys)))(ys), np.outer(ys, ys))
        # the rule, through what is mapped
        close(wrap(weft.grad(lambda x: weft.vmap(lambda y: scaled(y)(x))(ys).sum()))(2.0), 10 * ys.sum())
    constant = weft.custom_jvp(lambda x: 3.0 * x)
    constant.defjvps(lambda t, out, x: t)
    close(weft.vmap(lambda x: (x, constant(2.0)), out_axes=(0, None))(ys), (ys, 6.0))  # what is not mapped stays so


def test_a_batching_rule_must_say_the_truth_of_every_result():
    @weft.custom_batching.custom_vmap
    def f(x):
        return x, x

    with pytest.raises(AttributeError, match="No batching rule defined for custom_vmap function .*f"):
        f(jnp.ones(3))
    assert f.__name__ == "f"
    for said in ((True, True), (True, False), (False, True)):

        @f.def_vmap
        def rule(axis_size, in_batched, x, said=said):
            return tuple(x if b else x.sum() for b in said), said

        outs = weft.vmap(f)(jnp.arange(3.0))
        assert [o.tolist() for o in outs] == [[0, 1, 2] if b else [3, 3, 3] for b in said]
    for wrong in (0, 1):

        @f.def_vmap
        def untrue(axis_size, in_batched, x, wrong=wrong):
            return tuple(x.sum() if i == wrong else x for i in range(2)), (True, True)

        with pytest.raises(ValueError, match=r"an output of shape \(\) is batched; its first axis must have size 3"):
            weft.vmap(f)(jnp.arange(3.0))


def test_barriers_pass_on_the_derivatives_that_there_are():
    barred = lambda x, y, z: weft.lax.optimization_barrier((x * 2, y, z * 3))
    outs, tangents = weft.jvp(lambda x, z: barred(x, 5.0, z), (1.0, 2.0), (10.0, 20.0))
    assert [float(v) for v in outs] == [2, 5, 6] and [float(t) for t in tangents] == [20, 0, 60]
    assert [float(g) for g in weft.grad(lambda x, z: sum(barred(x, 5.0, z)), (0, 1))(1.0, 2.0)] == [2, 3]
    assert float(weft.grad(lambda z: barred(1.0, 5.0, z)[2])(2.0)) == 3


def test_forward_mode_inside_of_a_rule_is_refused():
    """In a rule that ran while its caller was linearized, the derivative was zero, silently."""
    cube = weft.custom_vjp(lambda x: x**3)
    cube.defvjp(lambda x: (x**3, x), lambda x, ct: (3 * x * x * ct,))
    backward = weft.custom_vjp(lambda x: x * 1.0)
    backward.defvjp(lambda x: (x * 1.0, weft.jvp(cube, (x,), (1.0,))[1]), lambda slope, ct: (slope * ct,))
    forward = weft.custom_jvp(lambda x: x)
    forward.defjvp(lambda primals, tangents: (primals[0], weft.jvp(cube, primals, (1.0,))[1] * tangents[0]))
    for fun in (backward, forward):
        with pytest.raises(TypeError, match="forward-mode"):
            weft.grad(fun)(2.0)


def test_a_tangent_that_depends_on_no_input_is_zero_in_a_linearization():
    constant = weft.custom_jvp(lambda x: x * 2)
    constant.defjvp(lambda primals, tangents: (primals[0] * 2, 5.0))
    assert weft.jvp(constant, (2.0,), (1.0,))[1] == 5
    assert weft.linearize(constant, 2.0)[1](1.0) == 0 and weft.linearize(lambda x: constant(x) * x, 2.0)[1](1.0) == 4
    assert weft.grad(constant)(2.0) == 0 and weft.grad(lambda x: constant(x) * x)(2.0) == 4


def test_rules_that_give_zeros_as_arrays_leave_nothing_behind():
    """top_k of no elements did; a custom_vjp of what it gave was then asked for its forward derivative, in a loop."""
    twice = weft.custom_vjp(lambda x: x)
    twice.defvjp(lambda x: (x, x), lambda x, ct: (ct * 2,))

    def program(x):
        none = weft.lax.top_k(jnp.broadcast_to(x, (2, 1, 1)), 0)[0]
        weft.lax.map(lambda i: (twice(none), i)[1], jnp.ones(2), batch_size=2)
        return x * 3

    assert weft.grad(program)(1.0) == 3


def test_a_batching_rule_returns_a_pair_and_has_derivatives():
    @weft.custom_batching.custom_vmap
    def f(x, y):
        return x * y

    @f.def_vmap
    def rule(axis_size, in_batched, x, y):
        return 2.0 * x * y, True

    xs, ys = np.arange(1.0, 4.0, dtype=np.float32), np.float32([5.0, 7.0, 11.0])
    close(weft.vmap(lambda x, y: weft.jvp(f, (x, y), (1.0, 0.0))[1])(xs, ys), 2 * ys)
    close(weft.vmap(lambda x, y: weft.jvp(lambda y: f(x, y), (y,), (1.0,))[1], (0, None))(xs, 5.0), 2 * xs)
    for returned in (3, (xs,), (xs, True, 1), {"value": xs, "batched": True}):
        f.def_vmap(lambda axis_size, in_batched, x, y, returned=returned: returned)
        with pytest.raises(ValueError, match=f"must return a pair .* got {type(returned).__name__}"):
            weft.vmap(f)(xs, ys)


def test_the_transpose_of_a_linear_call_has_the_type_of_its_input():
    with pytest.raises(
        TypeError, match=r"transpose output types must match .*, got f32\[2,3\] for an input of type f32\[3\]"
    ):
        weft.custom_derivatives.linear_call(lambda r, x: x * r, lambda r, t: jnp.stack([t, t]), 2.0, jnp.ones(3))


def test_a_composite_is_documented_as_what_it_is_composed_of():
    def wave(x):
        """A wave."""
        return jnp.sin(x)

    made = weft.lax.composite(wave, "my.wave")
    assert (made.__name__, made.__doc__) == ("wave", "A wave.")


def test_checkpoints_have_the_constants_of_what_they_call():
    table, offsets = jnp.array([1.0, 2.0, 3.0]), jnp.array([0.5, 0.25, 0.125])
    called = weft.jit(lambda x: jnp.sin(x) * table + offsets)
    x = np.float32([0.1, 0.2, 0.3])
    slope = weft.grad(lambda x: called(called(x)).sum())(x)
    for policy in (None, weft.checkpoint_policies.everything_saveable, weft.checkpoint_policies.dots_saveable):
        close(weft.grad(lambda x: weft.checkpoint(lambda x: called(called(x)).sum(), policy=policy)(x))(x), slope)
        close(weft.grad(weft.jit(weft.checkpoint(lambda x: called(called(x)).sum(), policy=policy)))(x), slope)


def test_constants_of_both_functions_are_counted_where_either_may_run():
    a, b = jnp.arange(3.0), jnp.ones(3)
    f = weft.custom_vjp(lambda x: jnp.sin(x) * a)
    f.defvjp(lambda x: (jnp.sin(x) * a + b, x), lambda x, g: (g,), optimize_remat=True)
    jaxpr = weft.make_jaxpr(lambda x: weft.vjp(f, x)[0])(jnp.ones(3)).jaxpr
    (eqn,) = [e for e in jaxpr.eqns if e.primitive.name == "remat_opt"]
    assert eqn.params["num_consts"] == len(eqn.invars) - 1 == 3 and eqn.invars[-1] is jaxpr.invars[0]
