"""Callbacks and printing: eagerly, compiled, in loops and branches, under every transformation."""

import collections
import time

import numpy as np
import pytest
from platforms import need, under_test

import weft
import weft.debug
import weft.numpy as jnp
from weft import lax
from weft.experimental import io_callback
from weft.runtime import effects


def lines(capfd):
    weft.effects_barrier()
    return capfd.readouterr().out.splitlines()


def scalar(x=np.float32):
    return weft.ShapeDtypeStruct((), x)


def sin_callback(vmap_method=None, seen=None):
    def host(x):
        if seen is not None:
            seen.append(np.shape(x))
        return np.sin(x)

    return lambda x: weft.pure_callback(
        host, weft.ShapeDtypeStruct(np.shape(x), np.float32), x, vmap_method=vmap_method
    )


# debug ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [lambda f: f, weft.jit, weft.checkpoint], ids=["eager", "jit", "checkpoint"])
def test_print_formats_values(capfd, wrap):
    def f(x):
        weft.debug.print("{} and {x:.2f} of {all}", x + 1, x=x, all=jnp.arange(3))
        return x

    wrap(f)(2.0)
    assert lines(capfd) == ["3.0 and 2.00 of [0 1 2]"]


def test_print_in_transformations_shows_primals(capfd):
    def f(x):
        weft.debug.print("x {}", x)
        return x * x

    assert float(weft.grad(f)(3.0)) == 6.0
    assert float(weft.jit(weft.grad(f))(4.0)) == 8.0
    assert float(weft.jvp(f, (5.0,), (1.0,))[1]) == 10.0
    assert lines(capfd) == ["x 3.0", "x 4.0", "x 5.0"]
    weft.vmap(f)(jnp.arange(3.0))
    assert lines(capfd) == ["x 0.0", "x 1.0", "x 2.0"]
    weft.jit(weft.vmap(weft.grad(f)))(jnp.arange(2.0))
    assert sorted(lines(capfd)) == ["x 0.0", "x 1.0"]


def test_checkpoint_prints_again_where_it_computes_again(capfd):
    def f(x):
        weft.debug.print("x {}", x)
        return jnp.sin(x)

    weft.grad(weft.checkpoint(f))(1.0)
    assert lines(capfd) == ["x 1.0"] * 2


def test_custom_derivatives_keep_prints(capfd):
    @weft.custom_jvp
    def f(x):
        weft.debug.print("f {}", x)
        return x

    @f.defjvp
    def _(primals, tangents):
        weft.debug.print("tangent {}", tangents[0])
        return f(*primals), tangents[0]

    weft.jit(f)(1.0)
    assert lines(capfd) == ["f 1.0"]
    weft.jvp(f, (2.0,), (3.0,))
    assert lines(capfd) == ["tangent 3.0", "f 2.0"]


def test_ordered_prints_go_through_loops_branches_and_calls(capfd):
    inner = weft.jit(lambda x: weft.debug.print("inner {}", x, ordered=True))

    def step(carry, x):
        weft.debug.print("step {}", x, ordered=True)
        lax.cond(x > 1, lambda: weft.debug.print("big", ordered=True), lambda: weft.debug.print("small", ordered=True))
        inner(x)
        return carry, x

    def round_(i):
        weft.debug.print("round {}", i, ordered=True)
        return i + 1

    @weft.jit
    def f(xs):
        weft.debug.print("start", ordered=True)
        lax.scan(step, 0, xs)
        lax.while_loop(lambda i: i < 2, round_, 0)
        lax.switch(xs[1], [lambda: None, lambda: weft.debug.print("one", ordered=True)])
        weft.debug.print("end", ordered=True)
        return xs

    once = [
        "start",
        "step 0",
        "small",
        "inner 0",
        "step 1",
        "small",
        "inner 1",
        "step 2",
        "big",
        "inner 2",
        "round 0",
        "round 1",
        "one",
        "end",
    ]
    for _ in range(3):
        f(jnp.arange(3))
    assert lines(capfd) == once * 3


@pytest.mark.parametrize("platform", under_test("cpu", "wasm", "webgpu"))
def test_ordered_calls_wait_for_the_programs_before_them(platform):
    """Each program's calls end before an ordered call begins that is made by itself, and before the next program's."""
    need(platform)
    seen = []

    def note(what, slow=0.0):
        def call(x):
            time.sleep(slow)
            seen.append((what, int(x)))
            return np.asarray(x)

        return call

    def ordered(call, x):
        return io_callback(call, weft.ShapeDtypeStruct((), np.int32), x, ordered=True)

    with weft.default_device(weft.devices(platform)[0]):
        slow = weft.jit(lambda x: ordered(note("program", 0.05), x))
        for k in range(3):
            slow(jnp.int32(k))
            ordered(note("eager"), jnp.int32(k))
    weft.effects_barrier()
    assert seen == [(what, k) for k in range(3) for what in ("program", "eager")]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: io_callback(lambda v: v, weft.ShapeDtypeStruct((), np.int32), x, ordered=True),
        lambda x: weft.debug.callback(lambda v: None, x, ordered=True),
    ],
    ids=["io_callback", "debug.callback"],
)
def test_an_ordered_call_waits_for_what_runs(call, monkeypatch):
    """Also for a program that a device has not ended: here one that ends when it is waited for."""

    class Running:
        ended = False

        def block_until_ready(self):
            self.ended = True

    running = Running()
    monkeypatch.setattr(effects._running, "tokens", collections.deque([running]))
    call(jnp.int32(1))
    assert running.ended and not effects._running.tokens


def test_ordered_prints_of_several_programs_and_eager_ones(capfd):
    f = weft.jit(lambda x: weft.debug.print("f {}", x, ordered=True))
    for i in range(5):
        f(i)
        weft.debug.print("eager {}", i, ordered=True)
    assert lines(capfd) == [line for i in range(5) for line in (f"f {i}", f"eager {i}")]


def test_unordered_prints_in_loops(capfd):
    @weft.jit
    def f(n):
        lax.fori_loop(0, n, lambda i, _: weft.debug.print("i={i}", i=i), None)
        lax.scan(lambda c, x: (c, weft.debug.print("x={}", x)), 0, jnp.arange(2))

    f(3)
    assert sorted(lines(capfd)) == ["i=0", "i=1", "i=2", "x=0", "x=1"]


def test_ordered_prints_in_a_condition(capfd):
    def going(i):
        weft.debug.print("is {} less", i, ordered=True)
        return i < 2

    def body(i):
        weft.debug.print("body {}", i, ordered=True)
        return i + 1

    assert weft.jit(lambda: lax.while_loop(going, body, 0))() == 2
    assert lines(capfd) == ["is 0 less", "body 0", "is 1 less", "body 1", "is 2 less"]


def test_callback_passes_structures_keys_and_statics():
    seen = []

    def host(tree, key, *, name):
        seen.append(
            (
                float(tree["a"]),
                np.asarray(weft.random.key_data(key)).tolist(),
                name,
                type(tree["a"]) is type(jnp.ones(())),
            )
        )

    f = lambda x, key: weft.debug.callback(host, {"a": x}, key, name="n")
    for g in (f, weft.jit(f)):
        g(1.5, weft.random.key(7))
        weft.effects_barrier()
    assert seen == [(1.5, [0, 7], "n", True)] * 2


def test_equal_prints_are_one_program():
    traces = []

    def f(x):
        traces.append(x)
        weft.debug.print("{}", x, ordered=False)
        return x

    jaxprs = {str(weft.make_jaxpr(f)(1.0)) for _ in range(2)}
    assert len(jaxprs) == 1 and "debug_callback[callback=<print> effect=Debug] a" in jaxprs.pop()
    assert {str(e) for e in weft.make_jaxpr(f)(1.0).effects} == {"Debug"}
    called = lambda text: weft.make_jaxpr(lambda x: weft.debug.print(text, x))(1.0).eqns[0].params["callback"]
    assert len({called(text) for text in ("x {}", "x {}", "y {}")}) == 2  # programs are found by these
    assert len({hash(called(text)) for text in ("x {}", "x {}", "y {}")}) == 2


def test_print_says_what_is_wrong_with_its_text():
    for text, args, kwargs, error, message in [
        ("{", (), {}, ValueError, "Single '{'"),
        ("{x}", (1,), {}, KeyError, "mentions 'x'"),
        ("{}", (1,), {"y": 2}, ValueError, "mentions no y"),
        ("{} {}", (1,), {}, IndexError, "mentions"),
    ]:
        with pytest.raises(error, match=message):
            weft.debug.print(text, *args, **kwargs)
    for args in (("none", 1), ("{}", 1, 2), ("{1}", 1, 2)):  # a value without a place would not be printed
        with pytest.raises(ValueError, match=r"no place for the positional argument"):
            weft.debug.print(*args)
    with pytest.raises(TypeError, match="format string"):
        weft.debug.print(1.0)


def test_texts_that_are_not_checked_are_followed_by_their_values(capfd):
    weft.debug.print("a", 1, 2.0, skip_format_check=True)
    weft.debug.print("{}", 1, 2.0, skip_format_check=True)
    weft.effects_barrier()
    assert lines(capfd) == ["a 1 2.0", "1"]


def test_options_first_and_then_values(capfd, caplog):
    seen = []

    @weft.jit
    def f(x):
        weft.debug.print(ordered=True)("{} {ordered}", x, ordered=x + 1)
        weft.debug.callback(ordered=True)(
            lambda x, partitioned: seen.append((int(x), int(partitioned))), x, partitioned=2
        )

    f(1)
    with caplog.at_level("INFO", logger="weft.debug"):
        weft.debug.log()("logged {}", 3)
    weft.effects_barrier()
    assert lines(capfd) == ["1 2"] and seen == [(1, 2)] and caplog.messages == ["logged 3"]
    for function, values in ((weft.debug.print, {"x": 3}), (weft.debug.log, {"x": 3}), (weft.debug.callback, {"x": 3})):
        with pytest.raises(TypeError, match="got the values x=3 and nothing to do with them"):
            function(**values)


def test_errors_of_callbacks_come_out_at_the_barrier_or_before():
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        weft.jit(lambda x: weft.debug.callback(lambda _: 1 // 0, x))(1.0)
        weft.effects_barrier()
    weft.effects_barrier()
    with pytest.raises(ZeroDivisionError):
        weft.debug.callback(lambda: 1 // 0)


def test_breakpoint_stops_and_goes_on(monkeypatch, capfd):
    monkeypatch.setattr("sys.stdin", __import__("io").StringIO("p float(x) + 40\nc\n"))

    def f(x):
        name = "not an array"  # noqa: F841
        weft.debug.breakpoint()
        return x

    assert float(f(2.0)) == 2.0
    out = "\n".join(lines(capfd))
    assert "test_effects.py" in out and "42.0" in out
    with pytest.raises(ValueError, match="cli"):
        weft.debug.breakpoint(backend="web")


# pure_callback -------------------------------------------------------------------------------------------------------


def test_pure_callback_eager_and_compiled():
    f = sin_callback()
    for g in (f, weft.jit(f)):
        for x in (1.0, np.arange(4, dtype=np.float32)):
            np.testing.assert_allclose(g(x), np.sin(x), rtol=1e-6)


def test_pure_callback_returns_pytrees():
    types = {"s": scalar(), "n": weft.ShapeDtypeStruct((2,), np.int32)}
    f = lambda x: weft.pure_callback(
        lambda x: {"s": np.float32(x.sum()), "n": np.array(x.shape * 2, np.int32)}, types, x
    )
    for g in (f, weft.jit(f)):
        out = g(jnp.ones(3))
        assert float(out["s"]) == 3.0 and out["n"].tolist() == [3, 3]


@pytest.mark.parametrize(
    "method,shapes",
    [
        ("sequential", [()] * 3),
        ("sequential_unrolled", [()] * 3),
        ("expand_dims", [(3,)]),
        ("broadcast_all", [(3,)]),
        ("legacy_vectorized", [(3,)]),
    ],
)
@pytest.mark.parametrize("compiled", [False, True])
def test_pure_callback_under_vmap(method, shapes, compiled):
    seen = []
    f = weft.vmap(sin_callback(method, seen))
    np.testing.assert_allclose((weft.jit(f) if compiled else f)(jnp.arange(3.0)), np.sin(np.arange(3.0)), rtol=1e-6)
    assert seen == shapes


@pytest.mark.parametrize(
    "method,shape", [("expand_dims", (1, 2)), ("broadcast_all", (3, 2)), ("legacy_vectorized", (2,))]
)
def test_arguments_without_batch_axis(method, shape):
    seen = []

    def host(x, y):
        seen.append(np.shape(y))
        return np.zeros(3, np.float32)

    f = lambda x: weft.pure_callback(host, scalar(), x, jnp.ones(2), vmap_method=method)
    assert weft.vmap(f)(jnp.arange(3.0)).shape == (3,)
    assert seen == [shape]


def test_pure_callback_in_loops_and_branches():
    f = sin_callback()

    @weft.jit
    def g(x):
        x = lax.fori_loop(0, 3, lambda i, c: f(c), x)
        return lax.cond(x > 0, f, lambda y: y, x)

    np.testing.assert_allclose(g(1.0), np.sin(np.sin(np.sin(np.sin(1.0)))), rtol=1e-6)


def test_pure_callback_refuses_what_it_cannot_do():
    f = sin_callback()
    with pytest.raises(ValueError, match=r"do not support JVP(.|\n)*test_effects.py"):
        weft.grad(f)(1.0)
    with pytest.raises(NotImplementedError, match=r"vmap_method(.|\n)*test_effects.py"):
        weft.vmap(f)(jnp.ones(2))
    with pytest.raises(ValueError, match="vmap_method must be"):
        sin_callback("fast")(1.0)
    with pytest.raises(TypeError, match=r"\[0\]\[1\] is a str"):
        weft.pure_callback(lambda x, s: x, scalar(), 1.0, "s")
    with pytest.raises(TypeError, match="takes a function"):
        weft.pure_callback(1, scalar(), 1.0)
    with pytest.raises(TypeError, match="ShapeDtypeStruct"):
        weft.pure_callback(lambda x: x, "float32", 1.0)


@pytest.mark.parametrize(
    "result,message",
    [
        (np.ones(3, np.float32), r"shape \(3,\)"),
        ((np.float32(1), np.float32(1)), "structure"),
        (np.complex64(1j), "dtype complex64"),
    ],
)
def test_results_are_checked(result, message):
    f = lambda x: weft.pure_callback(lambda _: result, scalar(), x)
    with pytest.raises((ValueError, TypeError), match=message):
        f(1.0)
    with pytest.raises(RuntimeError, match=message):
        weft.jit(f)(1.0).block_until_ready()


# io_callback ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compiled", [False, True])
def test_ordered_io_reads_and_writes_in_order(compiled):
    state = [0.0]

    def write(x):
        state.append(float(x))

    def read():
        return np.float32(state[-1])

    def f(x):
        io_callback(write, None, x, ordered=True)
        y = io_callback(read, scalar(), ordered=True)
        io_callback(write, None, y + 1, ordered=True)
        return y

    g = weft.jit(f) if compiled else f
    assert [float(g(x)) for x in (5.0, 7.0)] == [5.0, 7.0]
    weft.effects_barrier()
    assert state == [0.0, 5.0, 6.0, 7.0, 8.0]


def test_io_under_vmap_and_grad():
    seen = []
    f = lambda x: io_callback(lambda v: (seen.append(float(v)), np.float32(v))[1], scalar(), x)
    assert weft.jit(weft.vmap(f))(jnp.arange(3.0)).tolist() == [0.0, 1.0, 2.0]
    assert seen == [0.0, 1.0, 2.0]
    with pytest.raises(ValueError, match="vmap of an ordered io_callback"):
        weft.vmap(lambda x: io_callback(lambda v: None, None, x, ordered=True))(jnp.ones(2))
    with pytest.raises(ValueError, match="IO callbacks do not support JVP"):
        weft.grad(f)(1.0)


def test_io_is_refused_where_it_could_not_happen_as_often_as_the_program_says():
    write = lambda x: (io_callback(lambda v: None, None, x), x)[1]
    with pytest.raises(NotImplementedError, match="vmap-of-cond"):
        weft.vmap(lambda x: lax.cond(x > 0, write, lambda x: x, x))(jnp.arange(2.0))
    with pytest.raises(NotImplementedError, match="vmap of while_loop"):
        weft.vmap(lambda x: lax.while_loop(lambda y: y < 3, lambda y: write(y) + 1, x))(jnp.arange(2.0))
    with pytest.raises(NotImplementedError, match="checkpoint: effects of io_callback"):
        weft.checkpoint(write)(1.0)


def test_prints_under_vmap_of_cond_and_while(capfd):
    shown = lambda x: (weft.debug.print("{}", x), x)[1]
    weft.vmap(lambda x: lax.cond(x > 0, shown, lambda x: x, x))(jnp.arange(2.0))
    assert sorted(lines(capfd)) == ["0.0", "1.0"]  # both branches run, as in JAX
    weft.vmap(lambda x: lax.while_loop(lambda y: y < 2, lambda y: shown(y) + 1, x))(jnp.arange(1.0))
    assert lines(capfd) == ["0.0", "1.0"]


def test_a_pure_callback_that_returns_a_text_is_told_which_dtype_it_must_have():
    scalar = weft.ShapeDtypeStruct((), jnp.float32)
    with pytest.raises(TypeError, match=r"result 0 of .* has dtype <U3 where result_shape_dtypes says f32\[\]"):
        weft.pure_callback(lambda x: "one", scalar, 1.0)


def test_unused_io_still_happens_and_unused_pure_callbacks_need_not():
    seen = []
    f = weft.jit(lambda x: (io_callback(lambda v: np.float32(seen.append(float(v)) or 0), scalar(), x), x)[1])
    f(1.0)
    f(2.0)
    weft.effects_barrier()
    assert sorted(seen) == [1.0, 2.0]


# other backends ------------------------------------------------------------------------------------------------------


def test_reference_backend_calls_the_functions(capfd):
    f = weft.jit(lambda x: (weft.debug.print("x {}", x), sin_callback()(x))[1], backend="reference")
    np.testing.assert_allclose(np.asarray(f(1.0)), np.sin(1.0), rtol=1e-6)
    assert lines(capfd) == ["x 1.0"]


@pytest.mark.parametrize(
    "name,call",
    [
        ("debug_callback", lambda x: (weft.debug.print("{}", x), x)[1]),
        ("pure_callback", sin_callback()),
        ("io_callback", lambda x: io_callback(lambda v: np.float32(v), scalar(), x)),
    ],
)
def test_wasm_calls_the_functions(name, call, capfd):
    need("wasm")
    assert name in str(weft.make_jaxpr(call)(1.0))
    np.testing.assert_allclose(
        np.asarray(weft.jit(call, backend="wasm")(1.0)), np.sin(1.0) if name == "pure_callback" else 1.0, rtol=1e-6
    )
    assert lines(capfd) == (["1.0"] if name == "debug_callback" else [])


def test_programs_with_callbacks_do_not_leave_the_process():
    from weft.serialization.portable import NotPortable
    from weft.transforms.portable import portable

    closed = weft.make_jaxpr(sin_callback())(1.0)
    with pytest.raises(NotPortable, match=r"pure_callback(.|\n)*test_effects.py"):
        portable(closed.jaxpr)


@pytest.mark.parametrize("dtype", ["float32", "int32", "bfloat16", "uint8", "int16"])
def test_rng_uniform_gives_other_numbers_in_each_run(dtype):
    low, high = jnp.array(3, dtype), jnp.array(90, dtype)
    draw = weft.jit(
        lambda: (
            lax.rng_uniform(low, high, (40,)),
            lax.scan(lambda c, _: (c, lax.rng_uniform(low, high, (40,))), 0.0, None, length=2)[1],
        )
    )
    runs = [np.asarray(x, "float32").reshape(-1, 40) for _ in range(2) for x in draw()] + [
        np.asarray(lax.rng_uniform(low, high, (40,)), "float32")[None] for _ in range(2)
    ]
    rows = np.concatenate(runs)
    assert (
        rows.shape == (8, 40)
        and len({row.tobytes() for row in rows}) == 8
        and (rows >= 3).all()
        and (rows < 90.5).all()
        and 30 < rows.mean() < 60
    )
    assert draw()[0].dtype == dtype
