"""The modules of weft.compat: traces, wrapped functions, partial evaluation, generators of keys, values that aren't
arrays.
"""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft.compat import (
    api_util,
    backend,
    batching,
    core,
    linear_util as lu,
    partial_eval as pe,
    random as generators,
    sharding,
    source_info_util,
    traceback_util,
)
from weft.experimental import hijax
from weft.test_util import check_grads, check_jvp, check_vjp


def test_traces():
    state = core.get_opaque_trace_state()
    assert state == core.get_opaque_trace_state("any") and core.trace_state_clean()
    inside = []
    weft.jit(
        lambda x: (
            inside.append(
                (core.get_opaque_trace_state(), core.unsafe_am_i_under_a_jit_DO_NOT_USE(), core.trace_state_clean())
            )
            or x
        )
    )(1.0)
    assert inside[0][0] != state and inside[0][1:] == (True, False)
    weft.vmap(
        lambda x: (
            inside.append((core.unsafe_am_i_under_a_vmap_DO_NOT_USE(), core.unsafe_get_axis_names_DO_NOT_USE())) or x
        ),
        axis_name="i",
    )(jnp.ones(2))
    assert inside[1] == (True, ["i"])

    def f(x):
        assert x._trace.main is core.find_top_trace([x]).main
        with core.take_current_trace() as trace:
            assert core.trace_state_clean() and trace is x._trace
            with core.set_current_trace(trace):
                y = x * 2
        with core.eval_context():
            assert jnp.ones(2).sum() == 2
        return y

    assert weft.jvp(f, (3.0,), (1.0,)) == (6, 2)
    with pytest.raises(weft.errors.ConcretizationTypeError, match="an axis"):
        weft.jit(lambda n: core.concrete_or_error(int, n, "an axis"))(1)
    assert core.concrete_or_error(int, 1.5) == 1 and core.valid_jaxtype(1.0) and not core.valid_jaxtype("a")


def test_avals_and_programs():
    aval = core.ShapedArray((2, 3), "float32")
    assert core.mapped_aval(3, 1, aval).shape == (2,) and core.unmapped_aval(4, 0, aval).shape == (4, 2, 3)
    assert core.mapped_aval(3, None, aval) is core.unmapped_aval(3, None, aval) is aval
    closed = weft.make_jaxpr(lambda x: weft.jit(jnp.sin)(x))(1.0)
    assert [str(j) for j in core.subjaxprs(closed.jaxpr)] == [str(closed.eqns[0].params["jaxpr"].jaxpr)]
    core.check_jaxpr(closed.jaxpr)
    var = core.gensym()(aval)
    eqn = core.new_jaxpr_eqn([var], [core.gensym()(aval)], core.Primitive("p"), {"k": 1})
    assert (
        eqn.params == {"k": 1}
        and list in core._registry
        and int not in core._registry
        and weft.tree_util.Partial in core._registry
    )
    with pytest.raises(AttributeError, match="weft, which replaces jax"):
        core.no_such_name
    sharding = weft.typeof(jnp.ones((2, 3))).sharding
    assert sharding.spec == weft.P(None, None) and not sharding.mesh.axis_names
    assert weft.random.bernoulli(weft.random.key(0), 0.5, (2, 3), out_sharding=sharding).shape == (2, 3)


def test_wrapped_functions():
    @lu.transformation
    def doubled(times, *xs):
        out = yield [x * times for x in xs], {}
        yield [2 * y for y in out]

    @lu.transformation_with_aux
    def counted(*xs):
        out = yield xs, {}
        yield out, len(xs)

    f = lu.wrap_init(lambda x, y, *, z=0: [x + y + z], {"z": 5})
    g, count = counted(doubled(f, 10))
    with pytest.raises(lu.StoreException):
        count()
    assert g.call_wrapped(1, 2) == [70] and count() == 2 and doubled(f, 10) == doubled(f, 10) != doubled(f, 11)
    calls = []
    cached = lu.cache(lambda fun, *args: calls.append(args) or fun.call_wrapped(*args))
    h, count = counted(f)
    assert cached(h, 1, 2) == cached(h, 1, 2) == [8] and calls == [(1, 2)] and count() == 2
    assert lu.merge_linear_aux(count, lambda: lu.Store().val) == (True, 2)

    @lu.transformation
    def guarded(*xs):
        try:
            yield xs, {}
        finally:
            calls.append("closed")

    with pytest.raises(ZeroDivisionError):
        guarded(lu.wrap_init(lambda x: 1 / x)).call_wrapped(0)
    assert calls[-1] == "closed"
    leaves, tree = weft.tree.flatten((({"a": 1},), {"b": 2}))
    flat, out_tree = api_util.flatten_fun(lu.wrap_init(lambda d, b: {"sum": d["a"] + b}), tree)
    assert flat.call_wrapped(*leaves) == [3] and weft.tree.unflatten(out_tree(), [3]) == {"sum": 3}
    some, dynamic = api_util.argnums_partial(lu.wrap_init(lambda a, b, c: (a, b, c)), (0, 2), (1, 2, 3))
    assert (
        dynamic == (1, 3)
        and some.call_wrapped(7, 9) == (7, 2, 9)
        and api_util.rebase_donate_argnums((2,), (0,)) == (1,)
    )
    with pytest.raises(ValueError, match="Non-hashable"):
        api_util.argnums_partial(lu.wrap_init(print), 0, (1, []))


def test_partial_evaluation():
    f = lu.wrap_init(lambda x, y: [jnp.sin(x), x * y])
    jaxpr, (known, unknown), consts = pe.trace_to_jaxpr_nounits(
        f, [pe.PartialVal.known(jnp.ones(2)), pe.PartialVal.unknown(core.ShapedArray((2,), "float32"))]
    )
    assert (
        known[0] is None
        and jnp.allclose(known[1], jnp.sin(1.0))
        and unknown.get_aval().shape == (2,)
        and not unknown.is_known()
    )
    assert [e.primitive.name for e in jaxpr.eqns] == ["mul"]
    assert core.eval_jaxpr(jaxpr, consts, jnp.full(2, 3.0))[0].tolist() == [3, 3]
    jaxpr, avals, _ = pe.trace_to_jaxpr_dynamic(lu.wrap_init(lambda x: [x, x + 1]), [core.ShapedArray((), "int32")])
    shorter, used = pe.dce_jaxpr(jaxpr, [True, False])
    assert len(avals) == 2 and not shorter.eqns and used == [True]
    assert batching.broadcast(jnp.ones(2), 3, 1).shape == (2, 3) and batching.bdim_at_front(
        jnp.ones((2, 3)), 1, 3
    ).shape == (3, 2)


def test_a_generator_of_the_users(monkeypatch):
    monkeypatch.setitem(generators.generators, "counter", None)  # removes it afterwards
    del generators.generators["counter"]
    impl = generators.define_prng_impl(
        key_shape=(1,),
        seed=lambda s: jnp.asarray(s).astype("uint32").reshape(1),
        name="counter",
        tag="cnt",
        split=lambda k, shape: k + jnp.arange(1 + sum(shape) - 1, dtype="uint32").reshape(*shape, 1),
        random_bits=lambda k, width, shape: jnp.full(shape, k[0]).astype(f"uint{width}"),
        fold_in=lambda k, data: k * 100 + data.astype("uint32"),
    )
    key = weft.random.key(5, impl=impl)
    assert weft.random.bits(key, (2,)).tolist() == [5, 5] and weft.random.key_data(
        weft.random.split(key, 3)
    ).tolist() == [[5], [6], [7]]
    assert weft.random.key_data(weft.random.fold_in(key, 2)).tolist() == [502] and str(key.dtype) == "key<cnt>"
    assert weft.vmap(lambda k: weft.random.bits(k, ()))(weft.random.split(key, 3)).tolist() == [5, 6, 7]
    with pytest.raises(ValueError, match="'counter' already"):
        generators.define_prng_impl(
            key_shape=(1,), seed=None, split=None, random_bits=None, fold_in=None, name="counter"
        )
    pair = generators.threefry_2x32(jnp.array([1, 2], "uint32"), jnp.arange(4, dtype="uint32"))
    assert pair.shape == (4,) and pair.dtype == jnp.uint32


def test_where_a_pytree_is_no_prefix():
    whole = {"a": (1, [2, 3]), "b": None, "c": weft.tree_util.Partial(max, 1)}
    assert api_util.prefix_errors({"a": (0, [1, 2]), "b": None, "c": 1}, whole) == []
    assert api_util.prefix_errors({"a": (0, [1]), "b": None, "c": 1}, whole, lambda x: type(x) is list) == []
    first, second, third = api_util.prefix_errors(
        {"a": (0, (1, 2)), "b": [0], "c": weft.tree_util.Partial(min, 1)}, whole
    )
    assert str(first("in_axes")) == (
        "in_axes['a'][1] is no prefix of the value: it has PyTreeDef((*, *)) where the value has PyTreeDef([*, *])"
    )
    assert str(second("x")).startswith("x['b'] is no prefix of the value: it has PyTreeDef([*]) where the value has")
    assert str(third("x")) == (
        "x['c'] is no prefix of the value: both have a Partial there, with different data beside its children"
    )
    (other,) = api_util.prefix_errors({"x": 1}, {"y": 1})
    assert isinstance(other("x"), ValueError)


def test_values_that_are_no_arrays():
    class Box:
        pass

    class BoxType(hijax.HiType):
        pass

    class Put(hijax.HiPrimitive):
        def impl(self, x):
            box = Box()
            box.x = x
            return box

    hijax.register_hitype(Box, lambda box: BoxType())
    put_p = Put("put")
    assert put_p.bind(3).x == 3 and isinstance(weft.typeof(put_p.bind(3)), BoxType)
    with pytest.raises(NotImplementedError, match="put works on values that aren't arrays"):
        weft.jit(lambda x: put_p.bind(x) and x)(1.0)


def test_checks_of_derivatives():
    check_grads(
        lambda x, y: {"a": jnp.sin(x) * y, "b": y @ y}, (jnp.ones((2, 2)), jnp.arange(4.0).reshape(2, 2)), order=1
    )
    check_grads(jnp.sin, (1.5,), order=2)
    check_grads(lambda z: jnp.exp(z) * z, (1 + 2j,), order=1)
    check_grads(lambda x, n: x * n, (2.0, 3), order=1)

    @weft.custom_jvp
    def wrong(x):
        return x * x

    wrong.defjvp(lambda xs, ts: (wrong(*xs), ts[0]))
    for mode, what in (("fwd", "JVP tangent"), ("rev", "VJP cotangent")):
        with pytest.raises(AssertionError, match=what):
            check_grads(wrong, (1.5,), order=1, modes=[mode])
    for check, transform in ((check_jvp, weft.jvp), (check_vjp, weft.vjp)):
        with pytest.raises(AssertionError, match="primal"):
            check(jnp.sin, lambda *xs, f=transform: f(jnp.cos, *xs), (1.0,), eps=1e-2)


def test_paths_that_are_left_out():
    paths = traceback_util._exclude_paths
    paths.append("/no/such/library")
    assert "/no/such/library" in paths
    paths.remove("/no/such/library")
    assert "/no/such/library" not in list(paths)


def test_what_libraries_rely_on():
    struct = weft.ShapeDtypeStruct((2,), "float32")
    assert weft.eval_shape(lambda: struct) == struct and jnp.ndim(struct) == 1 and not jnp.iscomplexobj(struct)
    with pytest.raises(TypeError, match="does not have a value"):
        weft.jit(lambda: struct)()
    a, b = weft.custom_derivatives.zero_from_primal((1.0, jnp.ones(2)))
    assert a == 0 and b.tolist() == [0, 0]

    @weft.custom_vjp
    def f(x):
        return x

    f.defvjp(lambda x: (x, (x, True)), lambda res, ct: (ct * 3 if res[1] else ct,))  # a bool stays one, for Python
    assert weft.jit(weft.grad(lambda x: weft.lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]))(1.0) == 9

    @weft.custom_jvp
    def triple(x):
        return 3 * x

    triple.defjvp(lambda xs, ts: (triple(*xs), 3 * ts[0]))
    assert weft.linear_transpose(triple, 1.0)(2.0) == (6,) and jnp.expand_dims(jnp.ones(2), range(1)).shape == (1, 2)

    class Node:
        def __init__(self, x):
            self.x = x

    weft.tree_util.register_pytree_node(Node, lambda n: ((n.x,), ["no", "hash"]), lambda aux, xs: Node(*xs))
    assert (
        hash(weft.tree.structure(Node(1))) == hash(weft.tree.structure(Node(2)))
        and weft.jit(lambda n: n.x + 1)(Node(1)) == 2
    )


def test_equations_are_applied_again_with_their_parameters():
    """As interpreters of jaxprs do that libraries write."""

    def evaluate(closed, *args):
        env = dict(zip(closed.jaxpr.constvars, closed.consts)) | dict(zip(closed.jaxpr.invars, args))
        read = lambda a: a.val if isinstance(a, core.Literal) else env[a]
        for eqn in closed.jaxpr.eqns:
            outs = eqn.primitive.bind(*map(read, eqn.invars), **eqn.primitive.get_bind_params(eqn.params))
            env.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs]))
        return read(closed.jaxpr.outvars[0])

    other = weft.custom_vjp(lambda x: x * 2)
    other.defvjp(lambda x: (other(x), None), lambda _, g: (g * 5,))
    for f in (
        weft.nn.relu,
        other,
        weft.jit(jnp.sin),
        weft.checkpoint(jnp.sin),
        lambda x: weft.lax.cond(x > 0, jnp.sin, jnp.cos, x),
        lambda x: weft.lax.scan(lambda c, y: (c * y, None), x, jnp.arange(1.0, 4.0))[0],
        lambda x: weft.lax.custom_linear_solve(lambda y: y * 2, x, lambda mv, b: b / 2, symmetric=True),
    ):
        closed = weft.make_jaxpr(f)(1.5)
        assert evaluate(closed, 1.5) == f(1.5)
        assert weft.grad(lambda x: evaluate(closed, x))(1.5) == weft.grad(f)(1.5)


def test_clients_are_backends_under_jax_s_names():
    client = backend.get_backend("cpu")
    assert client.platform == "cpu" and client == backend.get_backend("cpu")
    assert client.devices() == weft.devices("cpu") and client.device_count() == weft.device_count("cpu")
    assert client.process_index() == weft.process_index() and "weft" in client.platform_version
    assert backend.backends()["cpu"].platform == "cpu" and backend.backend_xla_version() is None
    options = backend.get_compile_options(1, 2, np.array([[0, 1]]), env_options_overrides={"xla_dump_to": ""})
    assert (options.num_replicas, options.num_partitions) == (1, 2)
    assert options.env_option_overrides == [("xla_dump_to", "")]
    with pytest.raises(ValueError, match="rows of 2 devices"):
        backend.get_compile_options(1, 2, np.array([[0]]))


def test_shardings_of_xla_are_read_and_written():
    op = sharding.get_op_sharding_from_serialized_proto(b"")
    hlo = sharding.get_hlo_sharding_from_serialized_proto(op.SerializeToString())
    assert hlo.is_replicated()
    assert sharding.get_hlo_sharding_from_serialized_proto(sharding.get_serialized_proto_from_hlo_sharding(hlo)) == hlo


def test_scopes_of_the_user_s_code():
    with weft.named_scope("outer"), source_info_util.extend_name_stack("inner"):
        here = source_info_util.current_name_stack()
        assert str(here) == "outer/inner" and here.extend("more").stack == ("outer", "inner", "more")
        with source_info_util.reset_name_stack():
            assert source_info_util.current_name_stack().stack == ()
            with source_info_util.set_name_stack(source_info_util.new_name_stack("other")):
                assert str(source_info_util.current_name_stack()) == "other"
    assert "test_compat.py" in source_info_util.summarize(source_info_util.current())


@pytest.mark.parametrize("mode", ["off", "tracebackhide", "remove_frames", "quiet_remove_frames", "auto"])
def test_tracebacks_show_the_user_s_frames(mode):
    def failing(x):
        return jnp.sin(x, 3)

    weft.config.update("jax_traceback_filtering", mode)
    try:
        with pytest.raises(TypeError) as caught:
            weft.jit(lambda x: weft.vmap(failing)(x))(jnp.ones(2))
    finally:
        weft.config.update("jax_traceback_filtering", "auto")
    error, frames, tb = caught.value, [], caught.value.__traceback__
    while tb is not None:
        frames.append(tb.tb_frame)
        tb = tb.tb_next
    own = [f for f in frames if not traceback_util.include_frame(f)]
    assert any(f.f_code.co_name == "failing" for f in frames)
    assert bool(own) == (mode in ("off", "tracebackhide"))
    if mode != "off":
        assert all("__tracebackhide__" in f.f_locals for f in own)
    assert len(getattr(error, "__notes__", ())) == (mode in ("quiet_remove_frames", "auto"))
    cause = error.__cause__
    assert isinstance(cause, traceback_util.UnfilteredStackTrace) == (mode == "remove_frames")
    if mode == "remove_frames":
        every, tb = [], cause.__traceback__
        while tb is not None:
            every.append(tb.tb_frame)
            tb = tb.tb_next
        assert [f for f in every if traceback_util.include_frame(f)] == frames[1:] and len(every) > len(frames)
