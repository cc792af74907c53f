"""A function that is given once more is neither traced nor compiled once more."""

import functools
import gc

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from platforms import need, on
from weft import lax
from weft.core import traces
from weft.core.traces import traces_of

X = np.arange(5, dtype=np.float32)


class Counted:
    """A function that counts how often it is traced."""

    def __init__(self, fun):
        self.fun, self.times = fun, 0
        functools.update_wrapper(self, fun)

    def __call__(self, *args):
        self.times += 1
        return self.fun(*args)


TWICE = Counted(lambda x: x * 2)
STEP = Counted(lambda c, x: (c + x, c))
GROW = Counted(lambda i, x: x + i)
USES = {
    "jit": (TWICE, lambda f: weft.jit(f)(X)),
    "scan": (STEP, lambda f: lax.scan(f, jnp.float32(0), X)),
    "cond": (TWICE, lambda f: lax.cond(jnp.array(True), f, lambda x: x, X)),
    "switch": (TWICE, lambda f: lax.switch(jnp.array(1), [lambda x: x, f], X)),
    "while_loop": (TWICE, lambda f: lax.while_loop(lambda x: x[1] < 9, f, jnp.array(X))),
    "fori_loop": (GROW, lambda f: lax.fori_loop(0, 3, f, X)),
    "fori_loop, bounds unknown": (GROW, lambda f: weft.jit(lambda n: lax.fori_loop(0, n, f, X))(3)),
    "a derivative": (STEP, lambda f: weft.grad(lambda c: lax.scan(f, c, X)[0])(1.0)),
    "a batch": (STEP, lambda f: weft.vmap(lambda c: lax.scan(f, c, X)[0])(X)),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("platform", ["reference", "cpu", "wasm"])
def test_given_again(use, platform):
    need(platform)
    template, run = USES[use]
    function = Counted(template.fun)
    with on(platform):
        first = run(function)
        times = function.times
        again = run(function)
    assert 1 <= times == function.times
    np.testing.assert_array_equal(*[np.concatenate([np.ravel(x) for x in weft.tree.leaves(r)]) for r in (first, again)])


def test_other_types_and_options_are_traced():
    f = Counted(lambda c, x: (c + x, c))
    dtypes = []
    for xs in (X, X[:3], X.astype(np.int32)):
        dtypes.append(str(lax.scan(f, jnp.zeros((), xs.dtype), xs)[0].dtype))
    assert f.times == 2 and dtypes == ["float32", "float32", "int32"]  # the length is no part of the types
    with weft.enable_x64(True):
        assert str(lax.scan(f, jnp.zeros((), "float64"), X.astype(np.float64))[0].dtype) == "float64"
    assert f.times == 3


def test_what_closes_over_tracers_is_traced_each_time():
    def f(scale):
        body = lambda c, x: (c + scale * x, None)
        once = lax.scan(body, 0.0, X)[0]
        return once + lax.scan(body, 0.0, X)[0]

    assert float(weft.jit(f)(2.0)) == 40 and float(weft.grad(f)(2.0)) == 20
    np.testing.assert_array_equal(weft.vmap(f)(X), 20 * X)

    seen = []  # one function, which finds another tracer each time

    def late(c, x):
        return c + seen[-1] * x, None

    def g(scale):
        seen.append(scale)
        return lax.scan(late, 0.0, X)[0]

    assert float(weft.jit(g)(2.0)) == 20 and float(weft.jit(lambda s: g(s + 1))(2.0)) == 30


def test_one_function_has_a_table_for_each_use():
    f = Counted(lambda x: x * 2)
    assert float(weft.jit(f)(1.0)) == 2 and float(weft.jit(f, static_argnums=0)(3)) == 6
    assert float(lax.cond(True, f, lambda x: x, 1.0)) == 2
    assert f.times == 3

    def body(*values):  # of a loop that counts, and of one that carries the counter and its end
        return values[1] + 1 if len(values) == 2 else (values[0][0] + 1, values[0][1], values[0][2] * 2)

    count = weft.jit(lambda n: lax.fori_loop(0, n, body, 0))
    carry = weft.jit(lambda n: lax.while_loop(lambda v: v[0] < v[1], body, (0, n, 1)))
    assert int(count(3)) == 3 and [int(v) for v in carry(3)] == [3, 3, 8]


def test_a_function_that_is_gone_leaves_nothing():
    before = len(traces._tables)
    for k in range(20):
        lax.scan(lambda c, x, k=k: (c + k * x, None), 0.0, X)
        lax.cond(True, lambda x, k=k: x + k, lambda x: x, X)
    gc.collect()
    assert len(traces._tables) <= before


def test_few_functions_are_kept():
    functions = [functools.partial(int) for _ in range(traces.MOST + 10)]
    tables = [traces_of(f, "here") for f in functions]
    assert len(traces._tables) == traces.MOST
    assert traces_of(functions[-1], "here") is tables[-1] and traces_of(functions[0], "here") is not tables[0]


def test_what_has_no_hash_is_traced_each_time():
    class Unhashable(Counted):
        __hash__ = None

    f = Unhashable(lambda x: x * 2)
    for _ in range(2):
        assert float(lax.cond(True, f, lambda x: x, 1.0)) == 2
    assert f.times == 2


def test_cleared():
    f = Counted(lambda x: x * 2)
    for times in (1, 1):
        lax.cond(True, f, lambda x: x, 1.0)
        assert f.times == times
    weft.clear_caches()
    lax.cond(True, f, lambda x: x, 1.0)
    assert f.times == 2


def test_a_function_may_ask_for_devices():
    """Which there are changes with the platform, and with sessions that begin and end."""
    need("wasm")
    found = []

    def f(x):
        found.append(weft.devices()[0].platform)
        return x + 1

    before = weft.config.jax_platforms
    try:
        for platform in ("reference", "wasm", "reference"):
            weft.config.update("jax_platforms", platform)
            assert float(weft.jit(f)(1.0)) == 2 and float(lax.cond(True, f, lambda x: x, 1.0)) == 2
    finally:
        weft.config.update("jax_platforms", before)
    assert found == [*["reference"] * 2, *["wasm"] * 2, *["reference"] * 2]


# what every branch hands on -------------------------------------------------------------------------------------------


def test_what_every_branch_hands_on_is_no_result():
    f = lambda p, a, b: lax.cond(p, lambda a, b: (a, b + 1, a), lambda a, b: (a, b - 1, b), a, b)
    (eqn,) = [e for e in weft.make_jaxpr(f)(True, 1.0, 2.0).eqns if e.primitive.name == "cond"]
    assert len(eqn.outvars) == 2
    assert [float(v) for v in f(True, 1.0, 2.0)] == [1, 3, 1] and [float(v) for v in f(False, 1.0, 2.0)] == [1, 1, 2]
    # so it has no batch axis where the choice has one
    one, two = jnp.float32(1), jnp.float32(2)
    a, b = weft.vmap(lambda p: f(p, one, two)[:2], out_axes=(None, 0))(jnp.array([True, False]))
    assert float(a) == 1 and b.tolist() == [3, 1]


def test_a_number_that_is_handed_on_becomes_an_array():
    for out in lax.cond(True, lambda x, y: (x, y), lambda x, y: (x, y), 1, X):
        assert isinstance(out, weft.Array)
    swapped = lax.cond(False, lambda x, y: (x, y), lambda x, y: (y, x), 1.0, 2.0)
    assert [float(v) for v in swapped] == [2, 1]


def test_constants_of_branches_are_shared():
    f = lambda p, a, b: lax.cond(p, lambda: a + b, lambda: a - b)
    (eqn,) = [e for e in weft.make_jaxpr(f)(True, 1.0, 2.0).eqns if e.primitive.name == "cond"]
    assert len(eqn.invars) == 3
    assert [float(f(p, 1.0, 2.0)) for p in (True, False)] == [3, -1]
    assert float(weft.grad(f, 2)(False, 1.0, 2.0)) == -1
    one = lambda p, a, b: lax.cond(p, lambda: a, lambda: b)
    assert [float(one(p, 1.0, 2.0)) for p in (True, False)] == [1, 2]


def test_a_function_may_be_an_operand_no_more_than_in_name():
    """Four callables are two functions with two operands, which are objects of the user's that are pytrees too."""

    @weft.tree_util.register_pytree_node_class
    class Scale:
        def __init__(self, by):
            self.by = by

        def __call__(self, x):
            return x * self.by

        def tree_flatten(self):
            return (self.by,), None

        @classmethod
        def tree_unflatten(cls, _, children):
            return cls(*children)

    out = lax.cond(True, lambda f, g: f(g(1.0)), lambda f, g: f(1.0), Scale(2.0), Scale(3.0))
    assert float(out) == 6
    assert float(lax.cond(True, 2.0, lambda x: x + 1, 3.0, lambda x: x - 1)) == 3  # the old form
