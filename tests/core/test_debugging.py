"""Tools that find mistakes: explanations of recompilation, guards, leak checks, NaN checks, live arrays, what the
environment is.
"""

import gzip
import json
import logging
import os
import socket
import subprocess
import sys
import types

import numpy as np
import pytest
from platforms import need, on, under_test

import weft
import weft.numpy as jnp
from weft.runtime import guards


def reasons(f):
    return [(r.phase, r.why) for r in f.explain()]


def test_explain_names_the_argument_that_differed():
    @weft.jit
    def f(params, *rest, flag=None):
        return params["w"][0] + 1

    f({"w": [jnp.ones(3)]})
    f({"w": [jnp.ones(4)]})
    f({"w": [jnp.ones(4)]})
    f({"w": [jnp.ones(4, jnp.int32)]})
    f({"w": [jnp.ones((4, 2), jnp.int32)]})
    f({"w": [1.0]})
    f({"w": [jnp.float32(1)]})
    f({"w": (jnp.ones(3),)})
    f({"w": [jnp.ones(3), 2]})
    f({"w": [jnp.ones(3)]}, flag=1)
    assert reasons(f) == [
        ("traced", (why,))
        for why in (
            "the first call",
            "the shape of params['w'][0] changed: it is f32[4] and was f32[3]",
            "the dtype of params['w'][0] changed: it is i32[4] and was f32[4]",
            "the shape of params['w'][0] changed: it is i32[4,2] and was i32[4]",
            "the shape and dtype of params['w'][0] changed: it is f32[] and was i32[4,2]",
            "params['w'][0] (f32[]) is not weakly typed (an array) and was weakly typed (a Python number)",
            "the structure of params is PyTreeDef({'w': (*,)}) and was PyTreeDef({'w': [*]})",
            "params['w'][1] is there and was not",
            "flag is there and was not",
        )
    ]
    text = str(f.explain())
    assert (
        text.startswith("f was not found in its caches 9 times:\n1. traced at ")
        and text.count("test_debugging.py:") == 9
    )


def test_explain_names_static_arguments_options_and_places():
    class Thing:
        def __repr__(self):
            return "Thing()"

    f = weft.jit(lambda x, n, thing=None: x * n, static_argnums=1, static_argnames="thing")
    f(1.0, 2), f(1.0, 3), f(1.0, 3, thing=Thing()), f(1.0, 3, thing=Thing())
    with weft.numpy_rank_promotion("raise"):
        f(1.0, 3)
    assert [why[0] for _, why in reasons(f)[1:]] == [
        "the static argument n is 3 and was 2",
        "the static argument thing is given and was not",
        "the static argument thing is Thing() and was Thing(); they are unequal Thing objects that look the same",
        "the config option jax_numpy_rank_promotion is 'raise' and was 'allow'",
    ]
    f.clear_cache()
    f(1.0, 2)
    assert reasons(f)[-1] == ("traced", ("nothing that is kept: clear_cache or clear_caches was called",))


def test_explain_says_that_a_function_is_jitted_again_and_again():
    made = [weft.jit(lambda x: x * 3) for _ in range(2)]
    for f in made:
        f(1.0)
    assert reasons(made[0]) == [("traced", ("the first call",))]
    assert (
        "another with the same code was traced at" in reasons(made[1])[0][1][0]
        and "test_debugging.py" in reasons(made[1])[0][1][0]
    )


def test_explain_says_where_a_program_was_compiled_again():
    first, second = weft.devices("reference")[0], weft.devices("wasm")[0]
    f = weft.jit(lambda x: x + 1)
    f(weft.device_put(np.ones(2, np.float32), first)), f(weft.device_put(np.ones(2, np.float32), second))
    ((phase, (why,)),) = reasons(f)[1:]
    assert phase == "compiled" and str(first) in why and str(second) in why


def test_explain_cache_misses_logs_the_same(caplog):
    def scale(x):
        return x * 2

    f = weft.jit(scale)
    with caplog.at_level(logging.WARNING), weft.explain_cache_misses():
        f(1), f(1.0)
    assert "scale was traced at" in caplog.text and "the dtype of x changed: it is f32[] and was i32[]" in caplog.text
    caplog.clear()
    f(np.ones(3))
    assert not caplog.text


# leaks ---------------------------------------------------------------------------------------------------------------

TRANSFORMATIONS = {
    "jit": lambda f: weft.jit(f)(3.0),
    "grad": lambda f: weft.grad(f)(3.0),
    "vmap": lambda f: weft.vmap(f)(jnp.ones(3)),
    "jvp": lambda f: weft.jvp(f, (1.0,), (1.0,)),
    "vjp": lambda f: weft.vjp(f, 1.0)[1](1.0),
    "make_jaxpr": lambda f: weft.make_jaxpr(f)(1.0),
    "scan": lambda f: weft.lax.scan(lambda c, x: (f(c), None), 1.0, None, length=3),
    "cond": lambda f: weft.lax.cond(True, f, f, 1.0),
    "fori_loop": lambda f: weft.lax.fori_loop(0, 3, lambda i, x: f(x), 1.0),
    "checkpoint": lambda f: weft.grad(weft.checkpoint(f))(1.0),
    "eval_shape": lambda f: weft.eval_shape(f, 1.0),
    "jit of grad of vmap": lambda f: weft.jit(weft.grad(lambda x: weft.vmap(f)(x).sum()))(jnp.ones(3)),
}


@pytest.fixture
def keeping():
    """A module with a global KEPT, a list. It is made after the tests are collected: the garbage collector has been
    told to forget what was there then (`conftest.py`).
    """
    module = types.ModuleType("keeping")
    exec("KEPT = []", vars(module))
    return module


@pytest.mark.slow
@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_a_leaked_tracer_is_found_with_its_line_and_its_keeper(name, keeping):
    run = TRANSFORMATIONS[name]

    def leaky(x):
        y = x * 2.0  # the line
        keeping.KEPT.append(y)
        return y

    with weft.checking_leaks():
        with pytest.raises(
            weft.errors.LeakedTracerError,
            match=(
                r"(?s)made at .*test_debugging.py:\d+ \(leaky\).*a list, at 0, which is kept by the global KEPT of the"
                r" module"
            ),
        ):
            run(leaky)
        keeping.KEPT.clear()
        run(lambda x: x * 2.0)
    run(leaky)
    keeping.KEPT.clear()


def test_a_leak_into_an_object_names_the_attribute():
    class Model:
        pass

    model = Model()

    def leaky(x):
        model.hidden = x + 1
        return x

    with weft.checking_leaks(), pytest.raises(weft.errors.LeakedTracerError, match="the attribute hidden of a .*Model"):
        weft.jit(leaky)(1.0)
    assert issubclass(weft.errors.LeakedTracerError, weft.errors.UnexpectedTracerError)


def test_looking_for_leaks_asks_no_object_of_others():
    class Touchy:
        def __getattr__(self, name):
            raise RuntimeError(f"somebody asks for {name}")

    held = Touchy()
    with weft.checking_leaks():
        assert weft.jit(lambda x: x + 1)(1.0) == 2.0
    assert type(held) is Touchy


@pytest.mark.parametrize("lists", [1, 2, 3, 4])
def test_keepers_are_told_as_far_as_a_name(lists, keeping):
    """Three at most; where the name is further away, only what keeps the value itself."""

    def leaky(x):
        nest = x + 1
        for _ in range(lists - 1):
            nest = [nest]
        keeping.KEPT.append(nest)
        return x

    with weft.checking_leaks(), pytest.raises(weft.errors.LeakedTracerError) as e:
        weft.jit(leaky)(1.0)
    keeping.KEPT.clear()
    told = (
        "a list, at 0, which is kept by " * lists + "the global KEPT of the module keeping"
        if lists < 3
        else "a list, at 0"
    )
    assert str(e.value).splitlines()[1].endswith(f" (leaky), kept by {told}")


def test_the_first_that_knows_more_explains_an_error(monkeypatch):
    error, better = ValueError("what a runtime says"), ValueError("what it means")
    monkeypatch.setattr(guards, "_explainers", [lambda e: e, lambda e: better, lambda e: TypeError("not asked")])
    assert guards.explained(error) is better
    monkeypatch.setattr(guards, "_explainers", [lambda e: e])
    assert guards.explained(error) is error


# guards --------------------------------------------------------------------------------------------------------------

X = np.ones(3, np.float32)


def arrays(platform):
    return weft.device_put(X, weft.devices(platform)[0])


@pytest.mark.parametrize("platform", ["cpu", "reference"])
def test_transfers_to_the_device(platform):
    with on(platform):
        implicit = [lambda: weft.jit(lambda x: x + 1)(X), lambda: jnp.sin(X), lambda: jnp.array([1.0, 2.0])]
        for run in implicit:
            for option in (weft.transfer_guard, weft.transfer_guard_host_to_device):
                with (
                    option("disallow"),
                    pytest.raises(
                        weft.errors.JaxRuntimeError,
                        match="(?s)Disallowed host-to-device transfer.*device_put.*test_debugging.py",
                    ),
                ):
                    run()
            with weft.transfer_guard("disallow"), weft.transfer_guard("allow"):
                run()
        with weft.transfer_guard("disallow"):
            x = weft.device_put(X)
            assert (weft.device_get(weft.jit(lambda x: x + x)(x)) == 2).all()
        with weft.transfer_guard("disallow_explicit"), pytest.raises(weft.errors.JaxRuntimeError, match="Disallowed"):
            weft.device_put(X)


def test_transfers_from_the_device_and_their_log(caplog):
    x = arrays("reference")
    with weft.transfer_guard_device_to_host("disallow"):
        with pytest.raises(weft.errors.JaxRuntimeError, match="(?s)Disallowed device-to-host.*test_debugging.py"):
            np.asarray(x)
        assert (weft.device_get(x) == 1).all()
    with weft.transfer_guard("log"), caplog.at_level(logging.WARNING):
        np.asarray(arrays("reference"))
    assert "device-to-host transfer: float32[3]" in caplog.text and "test_debugging.py" in caplog.text


def test_transfers_between_devices():
    need("cpu")
    first, second = weft.devices("cpu")[:2]
    with weft.transfer_guard("disallow"):
        x = weft.device_put(weft.device_put(X, first), second)
        with pytest.raises(weft.errors.JaxRuntimeError, match="Disallowed device-to-device"):
            weft.jit(lambda x: x, device=first)(x)


def test_no_tracing_and_no_execution():
    f = weft.jit(lambda x: x + 1)
    assert f(1.0) == 2
    with weft.no_tracing():
        assert f(2.0) == 3
        with pytest.raises(
            RuntimeError, match="(?s)re-tracing.*the shape of x changed: it is f32.3. and was.*test_debugging.py"
        ):
            f(X)
    with weft.no_execution():
        for run in (lambda: f(1.0), lambda: jnp.ones(3), lambda: weft.jit(lambda x: x)(X)):
            with pytest.raises(RuntimeError, match="(?s)jax_no_execution is set.*test_debugging.py"):
                run()
        assert weft.eval_shape(f, X).shape == (3,)
    assert f(1.0) == 2


def test_clear_caches_and_live_arrays():
    f = weft.jit(lambda x: x + 1)
    f(1.0)
    weft.clear_caches()
    assert f._cache_size() == 0 and f(1.0) == 2
    for platform in ("reference", "cpu"):
        x = weft.device_put(np.zeros((7, 11, 13), np.float32), weft.devices(platform)[0])
        assert sum(y.shape == x.shape for y in weft.live_arrays(platform)) == 1
        x.delete()
        assert sum(y.shape == (7, 11, 13) for y in weft.live_arrays(platform)) == 0
    assert "jaxlib:" in weft.print_environment_info(return_string=True)


def test_clear_caches_has_functions_traced_anew():
    seen = []

    def f(x):
        seen.append(x)
        return x + 1

    step = lambda c, x: (f(c), x)
    for run in (lambda: weft.jit(f)(1.0), lambda: weft.lax.scan(step, 0.0, jnp.ones(2))):
        run()
        count = len(seen)
        run()
        assert len(seen) == count
        weft.clear_caches()
        run()
        assert len(seen) > count


@pytest.mark.slow
def test_a_program_may_end_while_the_device_computes():
    need("cpu")
    code = (
        "import weft, weft.numpy as jnp; f = weft.jit(lambda x: weft.lax.fori_loop(0, 200, lambda i, x: x @ x / 1000,"
        " x)); y = f(jnp.ones((1000, 1000))); del y"
    )
    for _ in range(2):
        assert subprocess.run([sys.executable, "-c", code], env={**os.environ, "JAX_PLATFORMS": "cpu"}).returncode == 0


# profiles ------------------------------------------------------------------------------------------------------------


def layer(x):
    with weft.named_scope("my_scope"):
        return jnp.sin(x @ x)


def test_a_profile_of_xla_has_functions_scopes_and_annotations(tmp_path):
    need("cpu")
    options = weft.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with (
        weft.default_device(weft.devices("cpu")[0]),
        weft.profiler.trace(tmp_path, create_perfetto_trace=True, profiler_options=options),
    ):
        with (
            weft.profiler.TraceAnnotation("my_annotation", batch=3),
            weft.profiler.StepTraceAnnotation("train", step_num=7),
        ):
            weft.profiler.annotate_function(weft.jit(layer), name="my_call")(jnp.ones((64, 64))).block_until_ready()
    (folder,) = (tmp_path / "plugins" / "profile").iterdir()
    (planes,) = folder.glob("*.xplane.pb")
    data = planes.read_bytes()
    assert b"my_scope" in data and b"jit_layer" in data
    names = {
        e.name
        for p in weft.profiler.ProfileData.from_serialized_xspace(data).planes
        for line in p.lines
        for e in line.events
    }
    assert {"my_annotation", "train", "my_call"} <= names
    assert not [name for name in names if name.startswith("$")], (
        "calls of Python functions, which the options leave out"
    )
    events = json.loads(gzip.decompress((folder / "perfetto_trace.json.gz").read_bytes()))["traceEvents"]
    assert any(e.get("name") == "my_annotation" for e in events)


def test_a_profile_of_other_backends_has_phases_and_annotations(tmp_path, monkeypatch):
    before = weft.config.platforms
    weft.config.update("jax_platforms", "reference")
    try:
        with weft.profiler.trace(tmp_path):
            with weft.profiler.TraceAnnotation("my_annotation", batch=3):
                weft.jit(layer)(jnp.ones((8, 8)))
            with pytest.raises(RuntimeError, match="(?s)already been started.*test_debugging.py"):
                weft.profiler.start_trace(tmp_path)
        with pytest.raises(weft.errors.BackendError, match="memory profile"):
            weft.profiler.device_memory_profile()
        with pytest.raises(weft.errors.BackendError, match="profiler server is XLA's"):
            weft.profiler.start_server(9999)
    finally:
        weft.config.update("jax_platforms", before)
    (path,) = tmp_path.rglob("*.trace.json.gz")
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    assert {"jaxpr_trace layer", "backend_compile jit(layer)", "my_annotation"} <= {e["name"] for e in events}
    assert next(e for e in events if e["name"] == "my_annotation")["args"] == {"batch": 3}
    with pytest.raises(RuntimeError, match="No profile started"):
        weft.profiler.stop_trace()


def test_memory_profiles_and_servers(tmp_path):
    need("cpu")
    x = arrays("cpu")
    with pytest.warns(UserWarning, match="(?s)JAX_ARRAY_TRACEBACKS=1.*test_debugging.py") as warned:
        weft.profiler.save_device_memory_profile(tmp_path / "memory.pb.gz", "cpu")
    with pytest.warns(UserWarning, match="JAX_ARRAY_TRACEBACKS=1") as again:
        weft.profiler.device_memory_profile("cpu")
    assert [w.filename for w in (*warned, *again)] == [__file__] * 2
    assert b"bytes" in gzip.decompress((tmp_path / "memory.pb.gz").read_bytes()) and x.shape
    weft.config.update("jax_array_tracebacks", True)
    try:

        def maker_of_arrays():
            return weft.device_put(np.ones(8), weft.devices("cpu")[0])

        x = maker_of_arrays()
        assert b"maker_of_arrays" in gzip.decompress(weft.profiler.device_memory_profile("cpu")) and x.shape
    finally:
        weft.config.update("jax_array_tracebacks", False)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    before = weft.config.platforms
    weft.config.update("jax_platforms", "cpu")
    try:
        weft.profiler.start_server(port)
        with pytest.raises(ValueError, match="Only one"):
            weft.profiler.start_server(port)
        weft.profiler.stop_server()
        with pytest.raises(ValueError, match="No active"):
            weft.profiler.stop_server()
    finally:
        weft.config.update("jax_platforms", before)


# values and where they lie -------------------------------------------------------------------------------------------


def test_debug_log_goes_to_the_logger(caplog, capsys):
    with caplog.at_level(logging.INFO, logger="weft.debug"):
        weft.jit(lambda x: weft.debug.log("x is {}", x))(3)
        weft.jit(lambda x: weft.debug.print("x is {}", x))(4)
        weft.effects_barrier()
        for x in jnp.arange(2):  # eagerly: what is known of the one does not stand for the other
            weft.debug.log("x is {}", x)
            weft.debug.print("x is {}", x)
        weft.effects_barrier()
    assert caplog.messages == ["x is 3", "x is 0", "x is 1"] and capsys.readouterr().out == "x is 4\nx is 0\nx is 1\n"


def test_shardings_are_told_and_drawn(capsys):
    need("cpu")
    first = weft.devices("cpu")[:4]
    mesh = weft.make_mesh((2, 2), ("a", "b"), (weft.sharding.AxisType.Auto,) * 2, devices=first)
    x = weft.device_put(np.arange(16, dtype=np.float32).reshape(4, 4), weft.NamedSharding(mesh, weft.P("a", "b")))
    seen = []
    weft.jit(lambda x: (weft.debug.inspect_array_sharding({"y": x.T * 2}, callback=seen.append), x)[1])(x)
    weft.debug.inspect_array_sharding([x, weft.device_put(X, first[1])], callback=seen.append)
    assert seen[0].spec == weft.P("b", "a") and seen[1].spec == weft.P("a", "b") and seen[2].device_set == {first[1]}
    seen.clear()
    total = lambda x: (weft.debug.inspect_array_sharding(x, callback=seen.append), x.sum())[1]
    again = weft.grad(weft.checkpoint(lambda x: weft.jit(total)(x) ** 2, policy=weft.checkpoint_policies.dots_saveable))
    for f in (
        weft.vmap(total),
        weft.grad(total),
        lambda x: weft.jvp(total, (x,), (x,)),
        weft.vmap(weft.grad(total)),
        weft.grad(weft.checkpoint(lambda x: jnp.sin(total(x)))),
        again,
    ):
        f(x)
        assert [s.spec for s in seen] == [weft.P("a", "b")]  # once: of the whole batch, and of the value alone
        seen.clear()
    weft.debug.visualize_array_sharding(x, use_color=False)
    assert (
        capsys.readouterr().out == "┌─────────┬─────────┐\n"
        "│  CPU 0  │  CPU 1  │\n"
        "├─────────┼─────────┤\n"
        "│  CPU 2  │  CPU 3  │\n"
        "└─────────┴─────────┘\n"
    )
    weft.jit(lambda x: weft.debug.visualize_array_sharding(x.T[:1].sum(0), min_width=3, scale=0.1))(x)
    assert "CPU 0" in capsys.readouterr().out
    with pytest.raises(ValueError, match=r"1 and 2 dimensions; got \(2, 2, 2\)"):
        weft.debug.visualize_array_sharding(jnp.zeros((2, 2, 2)))


@pytest.mark.parametrize("platform", under_test())
def test_compiling_tells_where_values_of_one_device_lie(platform):
    """Once for each program, also from inside loops and branches, and where the program is not run."""
    seen = []

    def f(x):
        weft.debug.inspect_array_sharding(x * 2, callback=seen.append)
        return x + 1

    with on(platform) as device:
        jitted = weft.jit(f)
        for x in (X, X, X[:2]):
            np.testing.assert_array_equal(jitted(x), x + 1)
        assert [s.device_set for s in seen] == [{device}] * 2
        for g, want in (
            (weft.vmap(f), X + 1),
            (lambda x: weft.lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0], X + 2),
            (lambda x: weft.lax.cond(x.sum() < 1e6, f, lambda x: x, x), X + 1),
            (weft.grad(lambda x: f(x).sum()), np.ones_like(X)),
        ):
            seen.clear()
            np.testing.assert_array_equal(weft.jit(g)(X), want)
            assert [s.device_set for s in seen] == [{device}]
        seen.clear()
        lowered = weft.jit(lambda x: f(x)).lower(X)  # another function: this one has its program
        assert not seen
        np.testing.assert_array_equal(lowered.compile()(X), X + 1)
        assert [s.device_set for s in seen] == [{device}]


def test_compiling_tells_where_values_on_a_mesh_of_one_device_lie():
    need("cpu")
    mesh, seen = weft.make_mesh((1,), ("i",), devices=weft.devices("cpu")[:1]), []
    weft.jit(
        lambda x: (weft.debug.inspect_array_sharding(x, callback=seen.append), x)[1],
        in_shardings=weft.NamedSharding(mesh, weft.P("i")),
    )(X)
    assert [(s.mesh, s.spec) for s in seen] == [(mesh, weft.P())]
