"""What checkpoint keeps, moves and computes again: counted in jaxprs and programs, and always the same derivatives."""

import functools

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.api.residuals import checkpoint_name, print_saved_residuals, saved_residuals

from .helpers import close

P = weft.checkpoint_policies
W = np.eye(3, dtype=np.float32) * 0.5 + 0.1
X = np.ones(3, np.float32)
OFFLOAD = P.save_and_offload_only_these_names(
    names_which_can_be_saved=[], names_which_can_be_offloaded=["a"], offload_src="device", offload_dst="pinned_host"
)


def layers(w, x):
    step = lambda c, t: (jnp.sin(checkpoint_name(jnp.tanh(w @ c), "a") * t), None)
    return lax.scan(step, x, jnp.arange(1.0, 6.0))[0].sum()


def plain(w, x):
    return jnp.sin(checkpoint_name(weft.jit(lambda w, x: jnp.tanh(w @ x))(w, x), "a")).sum()


@pytest.mark.parametrize("f", [layers, plain])
@pytest.mark.parametrize(
    "policy",
    [
        None,
        P.dots_saveable,
        P.dots_with_no_batch_dims_saveable,
        P.save_only_these_names("a"),
        P.save_any_names_but_these("b"),
        P.save_anything_except_these_names("a"),
        P.everything_saveable,
        P.nothing_saveable,
        OFFLOAD,
    ],
)
def test_policies_change_no_derivative(f, policy):
    close(
        weft.jit(derivatives, static_argnums=0)(weft.checkpoint(f, policy=policy), W, X),
        wanted(f),
        rtol=2e-5,
        atol=1e-6,
    )


def derivatives(g, w, x):
    return (
        weft.grad(g)(w, x),
        weft.grad(weft.jit(g))(w, x),
        weft.jvp(g, (w, x), (w, x)),
        weft.grad(lambda w, x: (weft.grad(g)(w, x) ** 2).sum())(w, x),
        weft.vmap(weft.grad(g), (None, 0))(w, jnp.stack([x, 2 * x])),
    )


@functools.cache
def wanted(f):
    return weft.jit(derivatives, static_argnums=0)(f, W, X)


def count(f, policy, word):
    return str(weft.make_jaxpr(weft.grad(weft.checkpoint(f, policy=policy)))(W, X)).count(word)


def test_policies_reach_into_calls_and_loops():
    for f in (layers, plain):
        again = count(f, None, "dot_general")
        assert count(f, P.dots_saveable, "dot_general") == again - 1
        assert count(f, P.everything_saveable, " = tanh") == 1
    named = lambda w, x: jnp.sin(checkpoint_name(w @ x, "a")).sum()
    assert (
        count(named, P.save_only_these_names("a"), "dot_general")
        == count(named, P.save_any_names_but_these("a"), "dot_general") - 1
    )
    kept = [a.shape for a, _ in saved_residuals(weft.checkpoint(layers, policy=P.dots_saveable), W, X)]
    assert (5, 3) in kept and (5, 3, 3) not in kept


def test_offloading_moves_values_on_devices_with_a_memory_of_their_own():
    f = weft.jit(weft.grad(weft.checkpoint(plain, policy=OFFLOAD)))
    text = f.trace(W, X).lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("annotate_device_placement") == 2 and '"pinned_host"' in text and '"device"' in text
    products = P.offload_dot_with_no_batch_dims("device", "pinned_host")
    text = weft.jit(weft.grad(weft.checkpoint(plain, policy=products))).trace(W, X).lower(lowering_platforms=("cuda",))
    assert 0 < text.as_text().find('"pinned_host"') < text.as_text().find('"device"')
    assert "annotate_device_placement" not in f.lower(W, X).as_text()  # the host's memory is all there is
    with pytest.raises(ValueError, match="pinned_host"):
        weft.grad(weft.checkpoint(plain, policy=P.offload_dot_with_no_batch_dims("device", "moon")))(W, X)


def test_prevent_cse_of_each_argument():
    f = lambda x, y: jnp.sin(jnp.sin(x * y["a"])).sum()
    protected = lambda flags: (
        weft.jit(weft.grad(weft.checkpoint(f, prevent_cse=flags), (0, 1)))
        .lower(X, {"a": X})
        .as_text()
        .split("optimization_barrier")
    )
    assert len(protected(False)) == 1 and len(protected(True)) == 2
    assert (
        "%arg0" in protected((True, False))[1].split(":")[0]
        and "%arg1" not in protected((True, False))[1].split(":")[0]
    )
    close(
        weft.vmap(weft.grad(weft.checkpoint(f, prevent_cse=(True, False))))(
            np.stack([X, X]), {"a": np.stack([X, 2 * X])}
        ),
        weft.vmap(weft.grad(f))(np.stack([X, X]), {"a": np.stack([X, 2 * X])}),
    )
    with pytest.raises(ValueError, match="prevent_cse"):
        weft.checkpoint(f, prevent_cse=(True,))(X, {"a": X})


def test_static_arguments():
    f = weft.checkpoint(lambda x, n, *, m: x**n * m, static_argnums=-1, static_argnames="m")
    close(weft.grad(f)(2.0, 3, m=2.0), 24.0)
    for nums in (2, -2, (0, 1), (0, -2)):  # each of them is looked at
        with pytest.raises(ValueError, match="static_argnums.* with 1 positional arguments lacks"):
            weft.checkpoint(lambda x: x, static_argnums=nums)(1.0)


def test_what_is_kept_is_listed(capsys):
    print_saved_residuals(lambda p, x: jnp.sin(p["w"] @ x).sum(), {"w": W}, X)
    lines = capsys.readouterr().out.splitlines()
    assert any("from the argument x" in line for line in lines) and any(
        "output of cos from" in line and __file__ in line for line in lines
    )
    print_saved_residuals(weft.checkpoint(plain, policy=P.save_only_these_names("a")), W, X)
    out = capsys.readouterr().out
    assert "f32[3,3] from the argument w" in out and "f32[3] named 'a'" in out


# how deep policies reach: the shapes of what is saved, as real jax saves them (jax.ad_checkpoint.print_saved_residuals)


def nested(w, x):
    inner = lambda c, t: (jnp.sin(jnp.tanh(w @ c) * t), None)
    return lax.scan(lambda c, t: (lax.scan(inner, c, jnp.arange(4.0) * t)[0], None), x, jnp.arange(1.0, 6.0))[0].sum()


def choosing(w, x):
    return lax.cond(x.sum() > 0, lambda x: jnp.sin(jnp.tanh(w @ x)), lambda x: jnp.cos(w @ x * 2), x).sum()


def deep(w, x):
    inner = lambda c, t: (jnp.sin(checkpoint_name(jnp.tanh(w @ c), "a") * t), None)
    outer = lambda c, t: (
        lax.cond(t > 2, lambda c: lax.scan(inner, c, jnp.arange(4.0) * t)[0], lambda c: checkpoint_name(w @ c, "a"), c),
        None,
    )
    return lax.scan(outer, x, jnp.arange(1.0, 6.0))[0].sum()


def checkpoint_inside(w, x):
    return jnp.cos(w @ weft.checkpoint(lambda w, x: jnp.sin(jnp.tanh(w @ x)))(w, x)).sum()


def checkpoint_in_a_loop(w, x):
    g = weft.checkpoint(lambda w, x: jnp.sin(checkpoint_name(jnp.tanh(w @ x), "a")), policy=P.dots_saveable)
    return lax.scan(lambda c, t: (g(w, c) * t, None), x, jnp.arange(1.0, 6.0))[0].sum()


def known_parts(w, x):
    v, y = lax.stop_gradient((w, x))
    y = lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.tanh(v @ c[1])), (0, y))[1]
    y, ys = lax.scan(lambda c, t: (jnp.tanh(v @ c), jnp.tanh(v @ v)), y, jnp.arange(3.0))
    return jnp.sin(w @ (y * x) * ys.sum()).sum()


def over_devices(w, x):
    mesh, spec = weft.make_mesh((1,), ("i",)), weft.sharding.PartitionSpec
    f = lambda w, x: jnp.sin(jnp.tanh(checkpoint_name(w @ lax.psum(x, "i"), "a")))
    return weft.shard_map(f, mesh=mesh, in_specs=(spec(), spec("i")), out_specs=spec())(w, x).sum()


TANH = lambda primitive, *_, **__: primitive.name == "tanh"
NAMED = P.save_only_these_names("a")
SAVED = [  # what a policy saves, and how often an operation is then computed
    (nested, None, [], ("dot_general", 4)),
    (nested, P.dots_saveable, [(5, 4, 3)], ("dot_general", 3)),
    (nested, TANH, [(5, 4, 3)], ("tanh", 1)),
    (nested, P.everything_saveable, [(5, 4), *[(5, 4, 3)] * 4], ("sin", 1)),
    (choosing, None, [], ("dot_general", 8)),
    (choosing, P.dots_saveable, [(3,)], ("dot_general", 6)),
    (choosing, TANH, [(3,)], ("dot_general", 7)),
    (deep, P.dots_saveable, [(5, 3), (5, 4, 3)], ("dot_general", 6)),
    (deep, NAMED, [(5, 3), (5, 4, 3)], ("dot_general", 7)),
    (deep, TANH, [(5, 4, 3)], ("tanh", 1)),
    (checkpoint_inside, None, [], ("dot_general", 9)),
    (checkpoint_inside, P.dots_saveable, [(3,), (3,)], ("dot_general", 6)),
    (checkpoint_inside, TANH, [(3,)], ("tanh", 1)),
    (checkpoint_in_a_loop, None, [], ("dot_general", 4)),
    (checkpoint_in_a_loop, P.dots_saveable, [(5, 3)], ("dot_general", 3)),
    (checkpoint_in_a_loop, NAMED, [(5, 3)], ("tanh", 2)),
    (checkpoint_in_a_loop, TANH, [(5, 3)], ("tanh", 1)),
    (known_parts, lambda primitive, *_, **__: primitive.name == "while", [], ("while", 2)),
    (known_parts, P.dots_saveable, [(3,), (3, 3), (3, 3)], ("while", 2)),
    (over_devices, None, [], ("dot_general", 4)),
    (over_devices, P.dots_saveable, [(1, 3)], ("dot_general", 3)),
    (over_devices, NAMED, [(1, 3)], ("dot_general", 3)),
]


@pytest.mark.parametrize("f, policy, shapes, counted", SAVED)
def test_policies_reach_every_depth(f, policy, shapes, counted):
    g, (word, times) = weft.checkpoint(f, policy=policy), counted
    assert (
        sorted(a.shape for a, where in saved_residuals(g, W, X) if "argument" not in where and "constant" not in where)
        == shapes
    )
    assert str(weft.make_jaxpr(weft.grad(g, (0, 1)))(W, X)).count(f" = {word}") == times
    close(weft.grad(g, (0, 1))(W, X), weft.grad(f, (0, 1))(W, X), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("policy", [P.everything_saveable, P.dots_saveable, NAMED, OFFLOAD])
@pytest.mark.parametrize("f", [nested, choosing, deep, checkpoint_inside, checkpoint_in_a_loop, over_devices])
def test_policies_at_depth_change_no_derivative(f, policy):
    close(
        weft.jit(derivatives, static_argnums=0)(weft.checkpoint(f, policy=policy), W, X),
        wanted(f),
        rtol=5e-5,
        atol=1e-5,
    )


def test_another_program_in_its_place_brings_its_constants():
    """As when a transformation rebuilds the equation: constants of an open jaxpr lead the operands."""
    x, constant = np.arange(3.0, dtype=np.float32), jnp.array([5.0, 7.0, 9.0], "float32")
    (eqn,) = weft.make_jaxpr(weft.checkpoint(lambda x: x * 2))(x).jaxpr.eqns
    other = weft.make_jaxpr(lambda x: x + constant)(x)
    assert len(other.consts) == 1
    params, operands = eqn.primitive.carries.rebuilt(eqn.params, [x], [other])
    (got,) = eqn.primitive.bind(*operands, **params)
    np.testing.assert_array_equal(got, x + np.asarray(constant))
