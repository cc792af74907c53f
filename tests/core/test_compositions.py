"""Every pair of transformations, nested in both orders, against numbers.

Each transformation is a function of functions of one vector that keeps them so, and is paired with what it means of
values: `meaning(f)` is a plain NumPy function, with derivatives taken by complex steps, which are exact to rounding.
"""

import itertools

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.base.config import enable_x64
from weft.custom_batching import custom_vmap

pytestmark = pytest.mark.slow

X = np.array([0.3, -0.7, 1.1])
T = np.array([0.5, 1.0, -0.25])


def base(x):
    return jnp.sin(x) * x[::-1] + x**2


def plain_base(x):
    return np.sin(x) * x[::-1] + x**2


def directional(f, x, t):
    """The derivative of a function that is analytic, and whose own derivatives are, by central differences of high
    order.
    """
    h = 0.02
    weights = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}  # of eighth order
    return sum(w * (f(x + k * h * t) - f(x - k * h * t)) for k, w in weights.items()) / h


def gradient(f, x):
    return np.array([directional(f, x, e) for e in np.eye(len(x))])


def with_custom_jvp(f):
    wrapped = weft.custom_jvp(f)
    wrapped.defjvp(lambda primals, tangents: weft.jvp(f, primals, tangents))
    return wrapped


def with_custom_vjp(f):
    wrapped = weft.custom_vjp(f)
    wrapped.defvjp(lambda x: weft.vjp(f, x), lambda pull, ct: pull(ct))
    return wrapped


def with_custom_vmap(f):
    wrapped = custom_vmap(f)
    wrapped.def_vmap(lambda size, batched, x: (weft.vmap(f)(x), True))
    return wrapped


def over_rows(f):
    """vmap over a batch of one function's arguments, weighted and summed so that a vector comes out."""
    return lambda x: (weft.vmap(f)(jnp.stack([x, 2 * x])) * jnp.array([[1.0], [0.5]])).sum(0)


def plain_rows(f):
    return lambda x: f(x) + 0.5 * f(2 * x)


def scanned(f):
    return lambda x: lax.scan(lambda c, s: (0.5 * f(c) * s, None), x, jnp.array([1.0, 0.7]))[0]


def plain_scanned(f):
    return lambda x: 0.5 * f(0.5 * f(x)) * 0.7


def counted(f):
    return lambda x: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, 0.5 * f(c[1])), (0, x))[1]


def chosen(f):
    return lambda x: (
        lax.cond(x[0] > -100.0, f, lambda y: 0.0 * y, x) + lax.switch(1, [lambda y: y, lambda y: 2.0 * f(y)], x)
    )


# name -> (the transformation, what it means)
TRANSFORMATIONS = {
    "jit": (weft.jit, lambda f: f),
    "grad": (
        lambda f: weft.grad(lambda x: (f(x) ** 2).sum()),
        lambda f: lambda x: gradient(lambda y: (f(y) ** 2).sum(), x),
    ),
    "jvp": (lambda f: lambda x: weft.jvp(f, (x,), (jnp.asarray(T),))[1], lambda f: lambda x: directional(f, x, T)),
    "vjp": (
        lambda f: lambda x: weft.vjp(f, x)[1](jnp.asarray(T))[0],
        lambda f: lambda x: gradient(lambda y: (f(y) * T).sum(), x),
    ),
    "linearize": (
        lambda f: lambda x: weft.linearize(f, x)[1](jnp.asarray(T)),
        lambda f: lambda x: directional(f, x, T),
    ),
    "vmap": (over_rows, plain_rows),
    "checkpoint": (weft.checkpoint, lambda f: f),
    "custom_jvp": (with_custom_jvp, lambda f: f),
    "custom_vjp": (with_custom_vjp, lambda f: f),
    "custom_vmap": (with_custom_vmap, lambda f: f),
    "scan": (scanned, plain_scanned),
    "while": (counted, lambda f: lambda x: 0.5 * f(0.5 * f(x))),
    "cond": (chosen, lambda f: lambda x: 3.0 * f(x)),
}
REVERSE, FORWARD = ("grad", "vjp"), ("jvp", "linearize")


def refused(outer: str, inner: str):
    """What the language does not do, and how it says so."""
    if outer in (*REVERSE, "linearize") and inner == "custom_vmap":
        return ValueError, "custom_vmap"
    if outer in REVERSE and inner == "while":
        return ValueError, "Reverse-mode differentiation does not work for while_loop"
    if outer in FORWARD and inner == "custom_vjp":
        return TypeError, "forward-mode"
    return None


@pytest.fixture(autouse=True)
def double():
    with enable_x64(True):
        yield


@pytest.mark.parametrize("outer,inner", list(itertools.product(TRANSFORMATIONS, repeat=2)))
def test_pairs(outer, inner):
    (out, out_meaning), (inn, inn_meaning) = TRANSFORMATIONS[outer], TRANSFORMATIONS[inner]
    f = out(inn(base))
    error = refused(outer, inner)
    if error is not None:
        with pytest.raises(error[0], match=error[1]):
            f(jnp.asarray(X))
        return
    np.testing.assert_allclose(
        np.asarray(f(jnp.asarray(X))), out_meaning(inn_meaning(plain_base))(X), rtol=1e-7, atol=1e-7
    )


TRIPLES = [
    ("jit", "vmap", "grad"),
    ("grad", "vmap", "scan"),
    ("vmap", "grad", "cond"),
    ("grad", "checkpoint", "scan"),
    ("grad", "scan", "checkpoint"),
    ("jvp", "grad", "scan"),
    ("grad", "grad", "cond"),
    ("vmap", "jvp", "while"),
    ("jit", "grad", "custom_vjp"),
    ("grad", "vmap", "custom_vjp"),
    ("grad", "vmap", "custom_vmap"),
    ("vmap", "vmap", "custom_vmap"),
    ("scan", "grad", "custom_jvp"),
    ("while", "grad", "scan"),
    ("grad", "jit", "checkpoint"),
    ("cond", "vjp", "scan"),
    ("grad", "cond", "scan"),
    ("linearize", "jit", "cond"),
    ("vjp", "scan", "cond"),
    ("grad", "linearize", "scan"),
]


@pytest.mark.parametrize("names", TRIPLES, ids="-".join)
def test_triples(names):
    f, meaning = base, plain_base
    for name in reversed(names):
        make, mean = TRANSFORMATIONS[name]
        f, meaning = make(f), mean(meaning)
    np.testing.assert_allclose(np.asarray(weft.jit(f)(jnp.asarray(X))), meaning(X), rtol=1e-6, atol=1e-6)


def test_batched_predicates_of_every_loop():
    xs = jnp.asarray(np.array([0.5, 1.5, 2.5]))
    f = lambda x: lax.while_loop(lambda c: c < 20.0, lambda c: c * (x + 1.0), x)
    g = lambda x: lax.cond(x > 1.0, lambda y: jnp.sin(y) * y, lambda y: y**3, x)
    h = lambda x: lax.switch(x.astype(int), [jnp.sin, jnp.cos, jnp.exp], x)
    for fun in (f, g, h):
        want = np.stack([np.asarray(fun(x)) for x in xs])
        np.testing.assert_allclose(np.asarray(weft.vmap(fun)(xs)), want, rtol=1e-12)
        slopes = np.stack([np.asarray(weft.jvp(fun, (x,), (1.0,))[1]) for x in xs])
        np.testing.assert_allclose(
            np.asarray(weft.vmap(lambda x: weft.jvp(fun, (x,), (1.0,))[1])(xs)), slopes, rtol=1e-12
        )
        np.testing.assert_allclose(np.asarray(weft.jvp(weft.vmap(fun), (xs,), (jnp.ones(3),))[1]), slopes, rtol=1e-12)
        if fun is not f:
            np.testing.assert_allclose(np.asarray(weft.vmap(weft.grad(fun))(xs)), slopes, rtol=1e-12)
            np.testing.assert_allclose(
                np.asarray(weft.grad(lambda xs: weft.vmap(fun)(xs).sum())(xs)), slopes, rtol=1e-12
            )


def stacked(f, *args):
    """The shapes of the values that reverse mode keeps."""
    jaxpr = weft.make_jaxpr(lambda *xs: weft.tree.leaves(weft.vjp(f, *xs)[1]))(*args)
    return sorted(v.aval.shape for v in jaxpr.jaxpr.outvars)


def test_loops_keep_what_they_must():
    w, x, steps = jnp.ones((4, 4)), jnp.ones(4), 100
    run = lambda body: lambda w, x: lax.scan(lambda c, _: (body(w, c), None), x, None, length=steps)[0]
    # the matrix is kept once
    assert stacked(run(lambda w, c: w @ c), w, x) == [(4, 4), (steps, 4)]
    # and so is what follows from it
    assert stacked(run(lambda w, c: jnp.sin(w) @ c), w, x) == [(4, 4), (4, 4), (steps, 4)]
    assert stacked(run(lambda w, c: weft.jit(lambda w, c: jnp.sin(w) @ c)(w, c)), w, x) == [(4, 4), (4, 4), (steps, 4)]
    assert stacked(run(weft.checkpoint(lambda w, c: jnp.sin(jnp.tanh(w @ c)))), w, x) == [(4, 4), (steps, 4)]
    # nothing, where nothing is needed
    assert stacked(lambda x: lax.fori_loop(0, steps, lambda i, c: 2.0 * c, x), x) == []
    assert stacked(
        lambda w, x: lax.scan(lambda c, _: ((c[0], c[0] @ c[1]), None), (w, x), None, length=steps)[0][1], w, x
    ) == [(4, 4), (steps, 4)]
    reverse = weft.make_jaxpr(weft.grad(lambda w: run(lambda w, c: jnp.sin(w) @ c)(w, x).sum()))(w)
    scans = [e for e in reverse.jaxpr.eqns if e.primitive.name == "scan"]
    assert len(scans) == 2 and all(v.aval.size <= steps * 4 for e in scans for v in [*e.invars, *e.outvars])


def test_hoisted_values_are_right():
    rng = np.random.default_rng(0)
    w, x = jnp.asarray(rng.normal(size=(3, 3)) / 2), jnp.asarray(rng.normal(size=3))

    def loss(w, scale):
        def body(c, t):
            noise = jnp.cos(jnp.asarray(X))  # depends on nothing
            return jnp.tanh(jnp.exp(w * scale) @ c + noise) * t, c

        c, ys = lax.scan(body, x, jnp.arange(1.0, 4.0))
        return c.sum() + (ys**2).sum()

    compiled = weft.jit(loss)
    plain = lambda w: np.asarray(compiled(jnp.asarray(w), 0.3))
    got = np.asarray(weft.grad(loss)(w, 0.3))
    want = np.array(
        [[directional(plain, np.asarray(w), np.eye(9)[3 * i + j].reshape(3, 3)) for j in range(3)] for i in range(3)]
    )
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(
        np.asarray(weft.jit(weft.vmap(weft.grad(loss), (None, 0)))(w, jnp.array([0.3]))[0]), got, rtol=1e-12
    )
