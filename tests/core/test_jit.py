"""jit: when functions are traced, static and donated arguments, and errors."""

import functools

import numpy as np
import pytest
from platforms import need

import weft
import weft.numpy as jnp
from weft import lax
from weft.errors import ConcretizationTypeError, TracerBoolConversionError

from .helpers import close, value

F = np.float32


def counted(f):
    calls = []

    @functools.wraps(f)
    def g(*args, **kw):
        calls.append(1)
        return f(*args, **kw)

    return g, calls


def test_traces_once_for_each_type():
    f, calls = counted(lambda x: lax.mul(x, x))
    g = weft.jit(f)
    for x in (np.ones(3, F), np.zeros(3, F), np.ones(4, F), np.ones(3, np.int32), 1.0, 2.0, 3):
        close(g(x), x * x)
    assert len(calls) == 5 and g._cache_size() == 5
    with weft.enable_x64(True):
        assert g(np.ones(3)).dtype == np.float64
    assert len(calls) == 6
    g.clear_cache()
    g(1.0)
    assert len(calls) == 7


def test_static_arguments():
    f, calls = counted(lambda x, n, flag=True: lax.mul(x, F(n)) if flag else x)
    g = weft.jit(f, static_argnums=1, static_argnames="flag")
    close([g(2.0, 3), g(2.0, 3), g(2.0, 4), g(2.0, 3, flag=False)], [6.0, 6.0, 8.0, 2.0])
    assert len(calls) == 3
    close(weft.jit(f, static_argnums=1)(2.0, n=3), 6.0)  # its name follows from its number where no names are given
    with pytest.raises(ValueError, match="(?s)Non-hashable.*list.*test_jit.py"):
        g(2.0, [3])
    with pytest.raises(ValueError, match="only accepts 1"):
        weft.jit(lambda x: x, static_argnums=3)
    with pytest.raises(ValueError, match="argnames"):
        weft.jit(lambda x: x, static_argnames="y")


def test_pytrees_in_and_out():
    g = weft.jit(lambda p, *rest, **kw: {"out": (p["a"], [lax.add(p["b"], kw["c"])]), "n": rest[0]})
    out = g({"a": 1.0, "b": 2.0}, 5, c=3.0)
    close(out["out"][1][0], 5.0)
    assert value(out["n"]) == 5 and weft.jit(lambda: {})() == {} and weft.jit(lambda x: None)(1) is None


def test_arguments_that_are_no_arrays():
    with pytest.raises(TypeError, match=r"(?s)argument y\['w'\] of f .*str.*static_argnums"):

        def f(x, y):
            return x

        weft.jit(f)(1.0, {"w": "text"})
    with pytest.raises(TypeError, match="returned a value of type builtins.str"):
        weft.jit(lambda x: "text")(1.0)


def test_branching_on_a_traced_value():
    with pytest.raises(TracerBoolConversionError, match=r"(?s)bool\[\].*test_jit.py:\d+"):
        weft.jit(lambda x: x if lax.gt(x, 0.0) else -x)(1.0)
    with pytest.raises(TracerBoolConversionError):
        weft.jit(lambda x: not x)(True)
    with pytest.raises(ConcretizationTypeError):
        weft.jit(lambda x: float(x))(1.0)


def test_shape_errors_name_the_line_and_both_shapes():
    with pytest.raises(TypeError, match=r"(?s)\(3,\), \(4,\).*test_jit.py:\d+"):
        weft.jit(lambda x, y: lax.add(x, y))(np.ones(3, F), np.ones(4, F))
    with pytest.raises(TypeError, match=r"(?s)float32, int32.*test_jit.py:\d+"):
        lax.add(np.ones(3, F), np.ones(3, np.int32))


def test_donation():
    x = weft.device_put(np.ones((64, 64), F))
    y = weft.jit(lambda x: lax.add(x, F(1)), donate_argnums=0)(x)
    close(y, np.full((64, 64), 2.0))
    assert x.is_deleted()
    with pytest.raises(RuntimeError, match="deleted"):
        lax.add(x, F(1))


def test_nested_jits_and_closures():
    inner = weft.jit(lambda x: lax.mul(x, F(2)))
    outer = weft.jit(lambda x: inner(inner(x)))
    close(outer(F(3)), 12.0)
    close(weft.grad(lambda a: weft.jit(lambda x: lax.mul(x, a))(F(3)))(F(2)), 3.0)
    close(weft.vmap(lambda a: weft.jit(lambda x: lax.mul(x, a))(F(3)))(np.arange(3, dtype=F)), [0, 3, 6])
    big = weft.device_put(np.arange(1000, dtype=F))
    close(weft.jit(lambda i: lax.dynamic_slice(big, (i,), (2,)))(5), [5, 6])


def test_methods_and_decorators():
    class Model:
        def __init__(self):
            self.w = F(3)

        @weft.jit
        def plain(x):
            return lax.mul(x, F(2))

        from functools import partial

        @partial(weft.jit, static_argnums=0)
        def apply(self, x):
            return lax.mul(x, self.w)

    close(Model().apply(F(2)), 6.0)


def test_disable_jit_and_inline():
    seen = []
    g = weft.jit(lambda x: seen.append(x) or x)
    with weft.disable_jit():
        g(1.0)
    assert seen == [1.0]
    text = str(weft.make_jaxpr(lambda x: weft.jit(lambda y: lax.sin(y), inline=True)(x))(1.0))
    assert "jit" not in text and "sin" in text


def test_ahead_of_time():
    g = weft.jit(lambda x, n: lax.mul(x, F(n)), static_argnums=1)
    lowered = g.lower(weft.ShapeDtypeStruct((3,), "float32"), 2)
    assert lowered.out_info.shape == (3,) and "module" in lowered.as_text() or "lambda" in lowered.as_text()
    compiled = lowered.compile()
    close(compiled(np.ones(3, F)), np.full(3, 2.0))  # static arguments are part of the program
    assert compiled.as_text()
    with pytest.raises(TypeError, match=r"f32\[3\].*f32\[4\]"):
        compiled(np.ones(4, F))
    assert g.trace(np.ones(3, F), 2).jaxpr.out_avals[0].shape == (3,)
    assert g.eval_shape(np.ones(3, F), 2).shape == (3,)


def test_results_that_are_constants_or_arguments():
    out = weft.jit(lambda x, y: (x, 1.0, y, x))(F(2), np.ones(2, F))
    close(out, (2.0, 1.0, np.ones(2), 2.0))


def test_tracebacks_show_the_users_frames():
    import traceback

    def inner(x):
        return lax.add(x, np.ones(4, F))

    def loss(x):
        return weft.lax.scan(lambda c, _: (inner(c), None), x, None, length=2)[0].sum()

    for f in (weft.jit(weft.vmap(weft.grad(loss))), lambda x: weft.make_jaxpr(loss)(x[0])):
        with pytest.raises(TypeError, match="incompatible shapes") as e:
            f(np.ones((2, 3), F))
        names = [frame.name for frame in traceback.extract_tb(e.value.__traceback__)]
        assert "inner" in names and "process" not in names and "stage" not in names
    from weft.base.config import traceback_filtering

    with traceback_filtering("off"), pytest.raises(TypeError) as e:
        weft.jit(loss)(np.ones(3, F))
    assert "process" in [frame.name for frame in traceback.extract_tb(e.value.__traceback__)]


def test_the_dispatch_follows_the_platform():
    f = weft.jit(lambda x: lax.mul(x, F(2)))
    before = weft.config.platforms
    try:
        for name in ("reference", before, "reference"):
            weft.config.update("jax_platforms", name)
            (device,) = f(F(3)).devices()
            assert device == weft.devices()[0]
    finally:
        weft.config.update("jax_platforms", before)


# arrays whose memory is gone -----------------------------------------------------------------------------------------

USES = [
    lambda x: x + 1,
    lambda x: x == x,
    lambda x: -x,
    lambda x: x[0],
    lambda x: jnp.sin(x),
    weft.jit(lambda a: a * 2),
    lambda x: np.asarray(x),
    lambda x: x.tolist(),
    lambda x: x.block_until_ready(),
    lambda x: weft.device_put(x) + 1,
    weft.grad(lambda y: (y**2).sum()),
    lambda x: weft.jit(lambda y: y + x)(1.0),
    lambda x: weft.vmap(lambda a: a + 1)(x),
    lambda x: lax.scan(lambda c, t: (c, t), 0.0, x),
    lambda x: x.copy(),
    lambda x: weft.device_get(x),
]
increment = weft.jit(lambda a: a + 1, donate_argnums=0)


def test_using_a_deleted_array_says_who_deleted_it():
    for use in USES:
        for _ in range(2):  # the second time from the caches
            use(jnp.ones(3))
            for gone, who in ((jnp.ones(3) * 2, r"by x\.delete\(\) at .*test_jit.py"), (jnp.ones(3) * 2, "donated to")):
                gone.delete() if "delete" in who else increment(gone)
                assert gone.is_deleted() and gone.shape == (3,)
                with pytest.raises(
                    RuntimeError, match=rf"of type float32\[3\] has been deleted: (it was )?{who}"
                ) as info:
                    use(gone)
                assert "test_jit.py" in str(info.value).splitlines()[-1] and len(str(info.value).splitlines()) < 5
    gone.delete()  # again: nothing


def test_clearing_frees_compiled_programs():
    need("cpu")
    with weft.default_device(weft.devices("cpu")[0]):
        f = weft.jit(lambda x: x * 7 + 1)
        f(1.0)
        live = weft.devices("cpu")[0].client.live_executables
        before = len(live())
        f.clear_cache()
        assert len(live()) < before
        assert f(1.0) == 8


def test_a_known_call_is_traced_after_a_computation_while_tracing():
    """XLA's calls of known programs don't come to Python, and must be told that a trace goes on."""
    need("cpu")
    with weft.default_device(weft.devices("cpu")[0]):
        f, c = weft.jit(lambda x: x + 1), jnp.ones(3)
        f(c), f(c)

        def g(x):
            with weft.ensure_compile_time_eval():
                assert (c * 2).tolist() == [2, 2, 2]
            return f(c) + x

        assert [e.primitive.name for e in weft.make_jaxpr(g)(np.ones(3, np.float32)).jaxpr.eqns] == ["jit", "add"]


# calls that only repeat what a call before them did, on backends in Python -------------------------------------------


@pytest.fixture
def repeated():
    """A jitted function that has run on the reference backend, how often it was traced, and an argument."""
    here, traced = weft.devices("reference")[0], []

    @weft.jit
    def f(x):
        traced.append(x)
        return jnp.log(x), x + 1

    x = weft.device_put(np.float32(2), here)
    f(x), f(x)
    assert f.again and len(traced) == 1
    return f, traced, x


def test_a_repeated_call_heeds_what_has_changed(repeated):
    f, traced, x = repeated
    with weft.debug_nans(True), pytest.raises(FloatingPointError):
        f(-x)
    with weft.no_execution(), pytest.raises(RuntimeError, match="no_execution"):
        f(x)
    with weft.disable_jit():
        f(x)
        assert len(traced) == 2
    assert float(f(x)[1]) == 3 and len(traced) == 2
    with weft.enable_x64(True):
        assert f(x)[1].dtype == np.float32 and len(traced) == 3
    (jaxpr,) = [e.params["jaxpr"] for e in weft.make_jaxpr(f)(x).eqns]
    assert len(jaxpr.eqns) == 2
    np.testing.assert_allclose(weft.grad(lambda x: f(x)[0])(x), 0.5)
    np.testing.assert_allclose(weft.vmap(f)(jnp.stack([x, x]))[1], [3, 3])
    assert np.asarray(f(np.float32(4))[1]) == 5


def test_a_repeated_call_goes_where_its_arguments_are(repeated):
    f, _, x = repeated
    assert f(x)[1].device.platform == "reference"
    loose = f(np.float32(1))[1]
    assert loose.device.platform == weft.devices()[0].platform
    with weft.default_device(weft.devices("reference")[0]):
        loose = f(np.float32(1))[1]
        assert f(loose)[1].device.platform == "reference" and not loose.committed
    # an array that nobody has placed follows the default
    assert f(loose)[1].device.platform == weft.devices()[0].platform


def test_a_repeated_call_forgets_and_gives_away(repeated):
    f, traced, x = repeated
    f.clear_cache()
    assert not f.again
    f(x)
    assert len(traced) == 2
    weft.clear_caches()
    assert not f.again
    give = weft.jit(lambda x: x * 2, donate_argnums=0)
    for _ in range(3):
        y = x + 1
        assert float(give(y)) == 6 and y.is_deleted()
    with pytest.raises(RuntimeError, match="deleted"):
        give(y)
    z = f(x)[1]
    z.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        f(z)


def test_a_repeated_call_with_keys_and_trees(repeated):
    here = weft.devices("reference")[0]
    key = weft.device_put(weft.random.key(0), here)
    f = weft.jit(lambda tree, key: ({"a": tree["b"] * 2}, weft.random.fold_in(key, 1)))
    for _ in range(3):
        tree, new = f({"b": weft.device_put(np.ones(3, np.float32), here)}, key)
        assert tree["a"].tolist() == [2, 2, 2] and weft.random.key_data(new).shape == (2,)
    g = weft.jit(lambda tree: {"a": tree["b"] * 2})
    for k in range(3):
        assert g({"b": weft.device_put(np.full(3, k, np.float32), here)})["a"].tolist() == [2 * k] * 3
    assert g.again
