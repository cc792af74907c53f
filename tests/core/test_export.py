"""Exported programs: calls, files, derivatives, platforms, errors, and files that are damaged or hostile. And stages
of ahead-of-time compilation.
"""

import collections
import hashlib
import random

import numpy as np
import pytest
from platforms import on
import weft
import weft.numpy as jnp
from weft import export, lax, stages
from weft.serialization.binary import DeserializationError
from weft.serialization.portable import NotPortable
from weft.errors import BackendError, InconclusiveDimensionOperation
from weft.runtime import aot

F = np.float32
PLATFORM = weft.devices()[0].platform
EVERYWHERE = ("cpu", "cuda", "wasm", "webgpu", "reference", "remote")
W = np.linspace(-1, 1, 12, dtype=F).reshape(4, 3)


def spec(text, dtype=F, **kw):
    return weft.ShapeDtypeStruct(export.symbolic_shape(text, **kw), dtype)


@weft.jit
def model(params, x, *, scale):
    h = jnp.tanh(x @ params["w"] + params["b"])
    return {"out": h * scale, "mean": h.mean(axis=0) / x.shape[0]}


PARAMS = {"w": W, "b": np.ones(3, F)}
X = np.linspace(0, 1, 20, dtype=F).reshape(5, 4)


def exported_model(**kw):
    return export.export(model, **kw)(PARAMS, spec("n, 4"), scale=2.0)


def same(got, want):
    got, want = weft.tree.leaves(got), weft.tree.leaves(want)
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert g.shape == w.shape and g.dtype == w.dtype
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=1e-5, atol=1e-6)


def test_fields():
    e = exported_model(platforms=("cpu", "wasm"), disabled_checks=[export.DisabledSafetyCheck.custom_call("foo")])
    assert (
        repr(e) == "Exported(fun_name=model, ...)"
        and e.fun_name == "model"
        and e.platforms == ("cpu", "wasm")
        and e.nr_devices == 1
    )
    assert [str(a.shape) for a in e.in_avals] == ["(3,)", "(4, 3)", "(n, 4)", "()"] and [
        str(a.shape) for a in e.out_avals
    ] == ["(3,)", "(n, 3)"]
    assert e.in_tree == weft.tree.structure(((PARAMS, 0), {"scale": 0})) and e.out_tree == weft.tree.structure(
        {"out": 0, "mean": 0}
    )
    assert (
        e.uses_global_constants
        and e.module_kept_var_idx == (0, 1, 2, 3)
        and e.in_shardings_hlo == (None,) * 4
        and e.ordered_effects == e.unordered_effects == ()
    )
    assert (
        export.minimum_supported_calling_convention_version
        <= e.calling_convention_version
        <= export.maximum_supported_calling_convention_version
    )
    assert (
        str(e.disabled_safety_checks) == "(custom_call:foo,)" and e.disabled_safety_checks[0].is_custom_call() == "foo"
    )
    assert (
        export.export(weft.jit(lambda x, y: y))(1.0, 2.0).module_kept_var_idx == (1,)
        and export.default_export_platform() in EVERYWHERE
    )


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_file_computes_what_the_function_does(n):
    e = export.deserialize(exported_model().serialize())
    assert type(exported_model().serialize()) is bytearray and e.fun_name == "model"
    same(e.call(PARAMS, X[:n], scale=3.0), model(PARAMS, X[:n], scale=3.0))
    same(weft.jit(e.call)(PARAMS, X[:n], scale=3.0), model(PARAMS, X[:n], scale=3.0))


def test_constants_custom_rules_and_control_flow_travel():
    table = jnp.asarray(W)

    @weft.custom_jvp
    def double(x):
        return 2 * x

    double.defjvp(lambda p, t: (double(*p), 7 * t[0]))

    @weft.jit
    def f(x):
        y = lax.scan(lambda c, r: (c + r @ table, r.sum()), jnp.zeros(3), x)[1]
        return lax.cond(y.sum() > 0, lambda v: double(v), lambda v: -v, y) + lax.fori_loop(
            0, x.shape[0], lambda i, c: c + i, 0
        )

    e = export.export(f)(spec("n, 4"))
    d = export.deserialize(e.serialize(vjp_order=1))
    for n in (1, 5):
        same(d.call(X[:n]), f(X[:n]))
        want = weft.grad(lambda x: f(x).sum())(X[:n])
        same(weft.grad(lambda x: d.call(x).sum())(X[:n]), want)
        same(weft.jit(weft.grad(lambda x: e.call(x).sum()))(X[:n]), want)  # the custom rule: 7, not 2


def test_derivatives_are_those_that_were_written():
    f = weft.jit(lambda x, n: (jnp.sin(x) ** 3, n + 1))
    e = export.export(f)(spec("k"), spec("k", np.int32))
    assert e.has_vjp() and not export.deserialize(e.serialize()).has_vjp()
    x, n = np.linspace(0, 1, 3, dtype=F), np.arange(3, dtype=np.int32)
    d = export.deserialize(e.serialize(vjp_order=2))
    back = d.vjp()
    assert (
        d.has_vjp()
        and back.has_vjp()
        and not back.vjp().has_vjp()
        and str(back.out_avals[1].dtype) == str(back.in_avals[3].dtype) != "float32"
    )
    loss = lambda g: lambda x: g(x, n)[0].sum()
    same(weft.grad(loss(d.call))(x), weft.grad(loss(f))(x))
    same(weft.grad(lambda x: weft.grad(loss(d.call))(x).sum())(x), weft.grad(lambda x: weft.grad(loss(f))(x).sum())(x))
    with pytest.raises(ValueError, match="No VJP is available"):
        weft.grad(loss(export.deserialize(e.serialize()).call))(x)
    with pytest.raises(ValueError, match="vjp_order"):
        e.serialize(vjp_order=-1)
    with pytest.raises(TypeError, match="forward-mode"):
        weft.jvp(lambda x: e.call(x, n)[0], (x,), (x,))


def test_calls_compose():
    e = export.export(weft.jit(lambda x: x.sum() * x))(spec("m"))
    x = np.arange(6, dtype=F).reshape(2, 3)
    same(weft.vmap(e.call)(x), weft.vmap(lambda v: v.sum() * v)(x))
    outer = export.export(weft.jit(lambda y: e.call(jnp.concatenate([y, y])) + 1))(spec("k"))  # m becomes 2*k
    assert str(outer.out_avals[0].shape) == "(2*k,)"
    same(export.deserialize(outer.serialize()).call(x[0]), np.concatenate([x[0], x[0]]) * 6 + 1)
    assert "call_exported" in str(weft.make_jaxpr(e.call)(x[0]))


def test_keys_empty_results_and_64_bits():
    k = export.deserialize(
        export.export(weft.jit(lambda k, x: (weft.random.split(k), weft.random.normal(k, x.shape))))(
            weft.random.key(0), spec("n")
        ).serialize()
    )
    keys, normal = k.call(weft.random.key(3), np.zeros(4, F))
    same(
        (weft.random.key_data(keys), normal),
        (weft.random.key_data(weft.random.split(weft.random.key(3))), weft.random.normal(weft.random.key(3), (4,))),
    )
    none = export.deserialize(export.export(weft.jit(lambda: ()))().serialize())
    assert none.call() == () and none.in_avals == ()
    if PLATFORM in ("cpu", "reference"):
        with weft.enable_x64(True):
            wide = export.export(weft.jit(lambda x: x * x.shape[0] + np.arange(2.0)))(
                spec("n, 2", np.float64)
            ).serialize()
        out = export.deserialize(wide).call(np.ones((3, 2)))
        assert out.dtype == np.float64 and out[0].tolist() == [3.0, 4.0]


def test_wrong_arguments_are_named():
    e = exported_model()
    for args, kw, match in [
        ((PARAMS,), {"scale": 1.0}, "pytree structure"),
        ((PARAMS, X), {}, "pytree structure"),
        ((PARAMS, X.astype(np.int32)), {"scale": 1.0}, r"args\[1\]: expected float32 and called with int32"),
        ((PARAMS, X[0]), {"scale": 1.0}, r"Rank mismatch for args\[1\]: expected \(n, 4\)"),
        ((PARAMS, X[:, :3]), {"scale": 1.0}, r"args\[1\].shape\[1\]"),
        (({**PARAMS, "w": W[:2]}, X), {"scale": 1.0}, r"args\[0\]\['w'\].shape\[0\]"),
        ((PARAMS, X), {"scale": X[0]}, r"Rank mismatch for kwargs\['scale'\]"),
    ]:
        with pytest.raises(ValueError, match=match) as error:
            e.call(*args, **kw)
        assert len(str(error.value).splitlines()) <= 10


def test_sizes_must_fit_the_expressions_and_constraints():
    f = export.export(weft.jit(lambda x: x.sum()))(
        spec("2*b + 1, b, _", like=(None, None, 2), constraints=["b >= 3", "mod(b, 3) == 0"])
    )
    f = export.deserialize(f.serialize())
    assert f.call(np.ones((7, 3, 2), F)) == 42 and f.call(np.ones((13, 6, 2), F)) == 156
    for shape, match in [
        ((6, 3, 2), "not be an integer"),
        ((7, 4, 2), r"args\[0\].shape\[1\]: expected 'b', which is 3"),
        ((1, 3, 2), "at least 1"),
        ((3, 1, 2), "constraint 'b >= 3'"),
        ((9, 4, 2), "constraint 'mod"),
        ((7, 3, 3), "same constant"),
    ]:
        with pytest.raises(ValueError, match=match):
            f.call(np.ones(shape, F))
    for shape in ("b*c, 4", "floordiv(b, 2), 4", "b + c, 4"):
        with pytest.raises(ValueError, match=r"Cannot solve for values of dimension variables (.|\n)*args\[0\]"):
            export.export(weft.jit(lambda x: x))(spec(shape))
    with pytest.raises(InconclusiveDimensionOperation, match="inconclusive"):
        export.export(weft.jit(lambda x: x if x.shape[0] > 3 else -x))(spec("b"))
    (b,) = export.symbolic_shape("b")
    with pytest.raises(ValueError, match="Cannot solve"):
        export.export(weft.jit(lambda x: jnp.ones((b,)) * x))(1.0)


def test_platforms():
    other = export.export(weft.jit(lambda x: x + 1), platforms=("tpu",))(1.0)
    for call in (other.call, weft.jit(other.call), weft.jit(lambda x: weft.vmap(other.call)(jnp.stack([x, x])))):
        with pytest.raises(ValueError, match=r"exported for platforms '\('tpu',\)' but it is used on"):
            call(1.0)
    unchecked = export.export(
        weft.jit(lambda x: x + 1), platforms=("tpu",), disabled_checks=[export.DisabledSafetyCheck.platform()]
    )(1.0)
    assert export.deserialize(unchecked.serialize()).call(1.0) == 2.0 and weft.jit(unchecked.call)(1.0) == 2.0
    several = export.export(
        weft.jit(lambda x: lax.platform_dependent(x, tpu=lambda v: v + 100, default=lambda v: v + 1)),
        platforms=(*EVERYWHERE, "tpu"),
    )(1.0)
    assert export.deserialize(several.serialize()).call(1.0) == 2.0
    for bad in ("cpu", (), (1,)):
        with pytest.raises(ValueError, match="platforms must be"):
            export.export(weft.jit(lambda x: x), platforms=bad)
    with pytest.raises(ValueError, match="DisabledSafetyCheck"):
        export.export(weft.jit(lambda x: x), disabled_checks=["platform"])


@pytest.mark.parametrize("platform", ["cpu", "wasm", "reference"])
def test_one_file_runs_on_every_backend(platform):
    data = exported_model(platforms=EVERYWHERE).serialize(vjp_order=1)
    want = model(PARAMS, X, scale=3.0)
    grad = weft.grad(lambda x: model(PARAMS, x, scale=3.0)["out"].sum())(X)
    with weft.default_device(weft.devices(platform)[0]):
        e = export.deserialize(data)
        out = e.call(PARAMS, X, scale=3.0)
        assert out["out"].device.platform == platform
        same(out, want)
        same(weft.grad(lambda x: e.call(PARAMS, x, scale=3.0)["out"].sum())(X), grad)


def test_what_can_not_leave_says_so():
    with pytest.raises(ValueError, match="result of `jit`"):
        export.export(lambda x: x)
    with pytest.raises(NotPortable, match=r"debug_callback calls a Python function(.|\n)*test_export.py"):
        export.export(weft.jit(lambda x: (weft.debug.print("{}", x), x)[1]))(1.0)
    with pytest.raises(NotPortable, match=r"Python function(.|\n)*test_export.py"):
        export.export(weft.jit(lambda x: weft.pure_callback(lambda v: v, x, x)))(1.0)


def test_stablehlo_on_demand():
    e = exported_model(platforms=("cpu", "tpu"))
    assert "tensor<6x4xf32>" in e.mlir_module(sizes={"n": 6})
    with pytest.raises(ValueError, match=r"dimension variables n"):
        e.mlir_module()
    fixed = export.export(weft.jit(lambda x: x + 1))(np.ones(3, F))
    assert (
        "stablehlo.add" in export.deserialize(fixed.serialize()).mlir_module()
        and fixed.mlir_module_serialized[:4] == b"ML\xefR"
    )
    with pytest.raises(ValueError, match="none is XLA's"):
        export.export(weft.jit(lambda x: x), platforms=("wasm",))(1.0).mlir_module()


Point = collections.namedtuple("Point", "x y")


class Pair:
    def __init__(self, a, b, tag):
        self.a, self.b, self.tag = a, b, tag


weft.tree_util.register_pytree_node(Pair, lambda p: ((p.a, p.b), p.tag), lambda tag, ab: Pair(*ab, tag))


def test_pytree_classes_are_registered_for_files():
    e = export.export(weft.jit(lambda p, q: Point(p.x + q.a, [q.b, None, (p.y,)])))(
        Point(1.0, 2.0), Pair(3.0, 4.0, "t")
    )
    with pytest.raises(ValueError, match="unregistered type"):
        e.serialize()
    assert export.register_namedtuple_serialization(Point, serialized_name="test.Point") is Point
    export.register_pytree_node_serialization(
        Pair, serialized_name="test.Pair", serialize_auxdata=str.encode, deserialize_auxdata=lambda b: b.decode("ascii")
    )
    out = export.deserialize(e.serialize()).call(Point(1.0, 2.0), Pair(3.0, 4.0, "t"))
    assert type(out) is Point and out.x == 4 and [float(v) for v in weft.tree.leaves(out.y)] == [4, 2]
    with pytest.raises(ValueError, match="Duplicate"):
        export.register_namedtuple_serialization(Point, serialized_name="other")
    with pytest.raises(ValueError, match="Duplicate"):
        export.register_namedtuple_serialization(collections.namedtuple("Point2", "x"), serialized_name="test.Point")
    with pytest.raises(ValueError, match="other than"):
        export.register_namedtuple_serialization(Pair, serialized_name="x")
    with pytest.raises(ValueError, match="not a pytree node"):
        export.register_pytree_node_serialization(
            object, serialized_name="o", serialize_auxdata=repr, deserialize_auxdata=repr
        )
    with pytest.raises(ValueError, match="string keys"):
        export.export(weft.jit(lambda d: d))({1: 2.0}).serialize()


def signed(body: bytes) -> bytes:
    """A file with this content and a check sum that fits."""
    return b"weftexp\x00\x01" + hashlib.sha256(body).digest() + body


def test_damaged_files_are_refused():
    data = bytes(exported_model().serialize(vjp_order=1))
    assert signed(data[41:]) == data
    for cut in [*range(60), *range(60, len(data), 97)]:
        with pytest.raises(DeserializationError):
            export.deserialize(data[:cut])
        with pytest.raises(DeserializationError):
            export.deserialize(signed(data[41 : max(cut, 42)]))
    rng = random.Random(0)
    for _ in range(60):
        at = rng.randrange(len(data))
        with pytest.raises(DeserializationError):
            export.deserialize(data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :])
    for bad in (b"", b"abc", b"weftexp\x00", data + b"x", data[:8] + b"\x02" + data[9:]):
        with pytest.raises(DeserializationError):
            export.deserialize(bad)
    with pytest.raises(TypeError, match="bytes"):
        export.deserialize("weftexp")


def test_a_file_keeps_only_arguments_that_there_are():
    e = export.export(weft.jit(lambda x, y: y))(1.0, 2.0)
    for kept in (2, 3):
        e.module_kept_var_idx = (kept,)
        with pytest.raises(DeserializationError, match=f"{kept} is more than 1"):
            export.deserialize(e.serialize())


def test_a_file_and_its_program_agree_about_64_bits():
    body = bytearray(export.export(weft.jit(lambda x, y: y))(1.0, 2.0).serialize()[41:])
    flags = body.index(b"\x0a\x00") + 1  # after the calling convention, which is 10
    body[flags] |= 1
    with pytest.raises(DeserializationError, match="disagree about 64-bit types"):
        export.deserialize(signed(bytes(body)))


def test_a_file_names_kinds_of_keys_that_there_are():
    body = bytes(export.export(weft.jit(lambda k: k))(weft.random.key(0)).serialize()[41:])
    with pytest.raises(DeserializationError, match=r"^there is no kind 'key<frx>' of random keys.*at byte \d+"):
        export.deserialize(signed(body.replace(b"key<fry>", b"key<frx>", 1)))


def test_mutated_files_with_a_fitting_sum_are_refused_or_well_formed():
    f = weft.jit(
        lambda x, k: (lax.scan(lambda c, r: (c + r, c), x[0], x)[1].reshape(-1) + x.shape[0], weft.random.normal(k))
    )
    body = bytes(export.export(f)(spec("2*n, m", constraints=["n >= 2"]), weft.random.key(0)).serialize())[41:]
    rng = random.Random(0)
    refused = 0
    for _ in range(400):
        damaged = bytearray(body)
        for _ in range(rng.choice([1, 1, 2, 4])):
            damaged[rng.randrange(len(body))] = rng.choice([0, 1, 2, 3, 127, 128, 255, rng.randrange(256)])
        try:
            found = export.deserialize(signed(bytes(damaged)))
        except DeserializationError:
            refused += 1
        else:
            assert isinstance(found, export.Exported)
    assert refused > 150


def test_symbolic_programs_do_not_go_over_the_wire():
    from weft.serialization.programs import deserialize, serialize

    jaxpr = weft.make_jaxpr(lambda x: x * 2)(spec("n")).jaxpr
    with pytest.raises(DeserializationError, match="must be specialised"):
        deserialize(serialize(jaxpr))
    assert str(deserialize(serialize(jaxpr), scope=export.SymbolicScope()).jaxpr) == str(jaxpr)


# ahead of time -------------------------------------------------------------------------------------------------------


def test_stages_know_the_signature():
    f = weft.jit(lambda x, y, *, z: {"o": x * y + z}, donate_argnums=0)
    assert isinstance(f, stages.Wrapped)
    traced = f.trace(np.ones(3, F), 2.0, z=3)
    lowered = traced.lower()
    compiled = lowered.compile()
    assert (type(traced), type(lowered), type(compiled)) == (stages.Traced, stages.Lowered, stages.Compiled)
    for stage in (traced, lowered, compiled):
        assert (
            repr(stage.args_info[0][0]) == "ArgInfo(_aval=ShapedArray(float32[3]), donated=True)"
            and stage.args_info[1]["z"].donated is False
        )
        assert (
            stage.in_tree == weft.tree.structure(((0, 0), {"z": 0}))
            and stage.out_tree == weft.tree.structure({"o": 0})
            and stage.donate_argnums == (0,)
        )
        assert stage.in_avals[0][1].weak_type and stage.out_info["o"].shape == (3,)
    assert traced.fun_name == "<lambda>" and traced.out_avals["o"].shape == (3,) and "mul" in str(traced.jaxpr)
    same(compiled(np.ones(3, F), 2.0, z=3), {"o": np.full(3, 5, F)})
    same(compiled.call(jnp.ones(3), 2.0, z=3), {"o": np.full(3, 5, F)})


def test_wrong_arguments_of_compiled_programs_are_named():
    compiled = weft.jit(lambda p, y: p["w"] * y).lower({"w": np.ones(3, F)}, 2.0).compile()
    with pytest.raises(
        TypeError,
        match=(
            r"argument \"?'?p\['w'\](.|\n)*compiled as f32\[3\] and called with f32\[4\]; argument 'y' compiled as"
            r" f32\[\] and called with i32\[\]"
        ),
    ):
        compiled({"w": np.ones(4, F)}, 2)
    for args in [({"w": np.ones(3, F)},), ({"v": np.ones(3, F)}, 2.0), ([np.ones(3, F)], 2.0)]:
        with pytest.raises(TypeError, match="pytree"):
            compiled(*args)
    for transform in (weft.jit, weft.grad, weft.vmap):
        with pytest.raises(TypeError, match="can't be transformed"):
            transform(lambda w: compiled({"w": w}, 2.0).sum())(np.ones((2, 3), F))


@pytest.fixture
def on_xla():
    with on("cpu"):
        yield


def test_texts_analyses_and_options_on_xla(on_xla):
    f = weft.jit(lambda x: jnp.sin(x) @ x, donate_argnums=0)
    lowered = f.lower(np.ones((4, 4), F))
    assert (
        "stablehlo.sine" in lowered.as_text() == lowered.as_text("stablehlo")
        and "tf.aliasing_output" in lowered.as_text()
        and "HloModule" in lowered.as_text("hlo")
    )
    assert "test_export.py" in lowered.as_text(debug_info=True) and "test_export.py" not in lowered.as_text()
    assert (
        type(lowered.compiler_ir()).__name__ == "Module"
        and type(lowered.compiler_ir("hlo")).__name__ == "XlaComputation"
    )
    for ask in (lowered.as_text, lowered.compiler_ir):
        with pytest.raises(ValueError, match="unknown dialect"):
            ask("mhlo")
    compiled = lowered.compile(
        compiler_options={"xla_cpu_enable_fast_math": True, "exec_time_optimization_effort": 0.5}
    )
    assert (
        compiled.cost_analysis()["flops"] > 0
        and lowered.cost_analysis()["flops"] > 0
        and compiled.as_text().startswith("HloModule")
    )
    memory = compiled.memory_analysis()
    assert memory.argument_size_in_bytes == memory["argument_size_in_bytes"] == 64
    assert (
        type(compiled.runtime_executable()).__name__ == "LoadedExecutable"
        and compiled.input_shardings[0][0].is_fully_replicated
        and compiled.output_shardings.is_fully_replicated
    )
    with pytest.raises(BackendError, match="No such compile option: 'xla_foo'"):
        lowered.compile({"xla_foo": 1})
    with pytest.raises(BackendError, match="not a valid bool"):
        lowered.compile({"xla_cpu_enable_fast_math": "yes"})
    with pytest.raises(TypeError, match="compiler_options is a dict"):
        lowered.compile([1])
    fast = weft.jit(lambda x: x + 1, compiler_options={"xla_cpu_enable_fast_math": True})
    assert fast(1.0) == 2.0 and fast(1.0) == 2.0 and fast.lower(1.0).compile()(1.0) == 2.0
    with pytest.raises(BackendError, match="No such compile option"):
        weft.jit(lambda x: x + 1, compiler_options={"xla_foo": 1})(1.0)
    with pytest.raises(ValueError, match="top-level `jit`"):
        weft.jit(lambda x: fast(x))(1.0)
    other = f.trace(np.ones((4, 4), F)).lower(lowering_platforms=("tpu",))
    assert "stablehlo.sine" in other.as_text()
    with pytest.raises(ValueError, match="lowered for tpu"):
        other.compile()


def test_options_where_a_compiler_takes_none():
    with weft.default_device(weft.devices("reference")[0]), pytest.raises(BackendError, match="takes no options"):
        weft.jit(lambda x: x + 1, compiler_options={"xla_foo": 1})(1.0)
    with weft.default_device(weft.devices("reference")[0]):
        lowered = weft.jit(lambda x: x + 1).lower(1.0)
        assert "add" in lowered.as_text() and lowered.compile()(1.0) == 2.0
        assert lowered.as_text("jaxpr").startswith("{ lambda")
        assert str(lowered.compiler_ir("jaxpr")) == lowered.as_text("jaxpr")
        with pytest.raises(ValueError, match="unknown dialect"):
            lowered.as_text("wat")


def test_texts_are_stablehlo_where_xla_is_there(monkeypatch):
    with weft.default_device(weft.devices("reference")[0]):
        lowered = weft.jit(lambda x: weft.lax.sin(x)).lower(np.float32(1))
        assert "stablehlo.sine" in lowered.as_text() and "HloModule" in lowered.as_text("hlo")
        real = aot.get_backend

        def without_xla(platform=None):
            if platform == "cpu":
                raise BackendError("no jaxlib here.")
            return real(platform)

        monkeypatch.setattr(aot, "get_backend", without_xla)
        assert lowered.as_text().startswith("{ lambda")
        with pytest.raises(ValueError, match="'stablehlo' is XLA's: no jaxlib here"):
            lowered.as_text("stablehlo")
