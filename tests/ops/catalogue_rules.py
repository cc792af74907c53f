"""Rows of the catalogue for primitives that no function of lax is about: what derivatives, batching, keys,
references, callbacks, exports and meshes are made of.
"""

import functools

import weft
import weft.numpy as jnp
from weft import lax
from weft.experimental.custom_partitioning import custom_partitioning
from weft.experimental.layout import Layout, with_layout_constraint
from weft.experimental.shard_alike import shard_alike
from weft.experimental.xla_metadata import set_xla_metadata
from weft.primitives.placement import to_memory_p
from weft.experimental import checkify, io_callback, pallas as pl, sparse
from weft.export import DisabledSafetyCheck, export, symbolic_shape
from weft.primitives.linalg import geqp3_p, geqrf_p
from weft.primitives.linear import copy_p
from weft.primitives.random_bits import threefry2x32_p
from weft.runtime.device import default_device
from weft.sharding import AxisType, Mesh, NamedSharding, P

# Rows whose vmap is not the loop, and why.
NO_LOOP = {"rng_bit_generator": "one generator makes the numbers of all, that of the first key, as in JAX"}


def rows(Row):
    yield from _derivatives(Row)
    yield from _calls(Row)
    yield from _placement(Row)
    yield from _collectives(Row)
    yield from _random(Row)
    yield Row("geqrf", lambda x: geqrf_p.bind(x)[1], ("f32[2,4,3]",), grad=False, rtol=2e-4)
    yield Row(
        "geqp3",
        lambda x: geqp3_p.bind(x * lax.broadcasted_iota("float32", (4, 3), 1) + x, use_magma=None)[2],
        ("f32[4,3]",),
        grad=False,
    )
    yield Row("todense", lambda x: sparse.todense(x * 2.0), ("f32[3]",))


def _derivatives(Row):
    """Whose primitives only derivatives hold, so that second ones meet their rules."""
    pool = lambda x: lax.reduce_window(x, -float("inf"), lax.max, (2,), (2,))
    yield Row("select_and_gather_add", lambda x, t: weft.jvp(pool, (x,), (t,))[1], ("f32[6]", "f32[6]"))
    yield Row("select_and_scatter_add", lambda x, ct: weft.vjp(pool, x)[1](ct)[0], ("f32[6]", "f32[3]"))
    yield Row("add_any", lambda x: weft.grad(lambda v: (lax.sin(v) * v).sum())(x), ("f32[3]",))
    yield Row("integer_pow_twice", lambda x: weft.hessian(lambda v: (v**3).sum())(x), ("f32[2]",), rtol=5e-5)
    yield Row("copy", copy_p.bind, ("f32[3]",))
    yield Row("custom_jvp_call", lambda x: _cube()(x), ("f32[3]:0.5..2",))
    yield Row(
        "custom_jvp_call_linear",
        lambda x, ct: _double()(x) * weft.linear_transpose(_double(), x)(ct)[0],
        ("f32[2]", "f32[2]"),
    )
    for optimize_remat in (False, True):  # whose derivative is known in reverse only
        yield Row(
            f"custom_vjp_call{optimize_remat:d}", lambda x, r=optimize_remat: _square(r)(x), ("f32[3]",), grad=False
        )
        yield Row(
            f"custom_vjp_call_grad{optimize_remat:d}",
            lambda x, r=optimize_remat: weft.vmap(weft.grad(_square(r)))(x),
            ("f32[3]",),
            grad=False,
        )
        yield Row(
            f"custom_vjp_call_remat{optimize_remat:d}",
            lambda x, r=optimize_remat: weft.grad(lambda v: weft.checkpoint(lambda u: lax.sin(_square(r)(u)))(v).sum())(
                x
            ),
            ("f32[3]",),
            grad=False,
        )
    yield Row(
        "linear_call", lambda p, x: weft.custom_derivatives.linear_call(_chosen, _chosen, p, x), ("bool[3]", "f32[3]")
    )
    marked = lambda v: sparse.todense(lax.stage(weft.ad_checkpoint.checkpoint_name(lax.rev(v, (0,)), "reversed"))) * 2.0
    yield Row("linear_transpose", lambda x, ct: weft.linear_transpose(marked, x)(ct)[0], ("f32[3]", "f32[3]"))
    tangent = weft.vmap(lambda x, t: weft.jvp(_square(False), (x,), (t,))[1])
    yield Row(
        "custom_lin",
        lambda x, ct: weft.linear_transpose(lambda t: tangent(x, t), x)(ct)[0],
        ("f32[3]", "f32[3]"),
        grad=False,
    )
    yield Row("remat2", lambda x: weft.checkpoint(lambda v: lax.sin(lax.sin(v)))(x), ("f32[3]",))
    yield Row(
        "remat2_twice",
        lambda x: weft.jvp(lambda v: weft.grad(weft.checkpoint(lambda u: lax.sin(u) * u))(v), (x,), (x,))[1],
        ("f32[]",),
    )


def _chosen(p, v):
    return lax.select(p, v * 2.0, v * 0.5)


@functools.cache
def _cube():
    cube = weft.custom_jvp(lambda x: x * x * x)
    cube.defjvps(lambda t, out, x: 3.0 * x * x * t)
    return cube


@functools.cache
def _double():
    double = weft.custom_jvp(lambda x: x * 2.0)
    double.defjvps(lambda t, out, x: t * 2.0)
    return double


@functools.cache
def _kernel():
    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...] * lax.sin(y_ref[...]) + lax.convert_element_type(pl.program_id(0), jnp.float32)

    part = pl.BlockSpec((2,), lambda i: i)
    shape = weft.ShapeDtypeStruct((4,), jnp.float32)
    return pl.pallas_call(kernel, shape, grid=2, in_specs=[part, part], out_specs=part)


@functools.cache
def _square(optimize_remat):
    square = weft.custom_vjp(lambda x: x * x)
    square.defvjp(lambda x: (x * x, x), lambda x, ct: (2.0 * x * ct,), optimize_remat=optimize_remat)
    return square


def _divided():
    wave = custom_partitioning(lambda v: lax.sin(v) + 1.0)
    wave.def_partition(lambda *given: None, sharding_rule="i -> i")  # which devices alone need
    return wave


def _calls(Row):
    yield Row(
        "composite",
        lambda x: weft.custom_batching.sequential_vmap(
            lambda u: lax.composite(lambda v: lax.sin(v) + 1.0, "my.wave")(u)
        )(x),
        ("f32[3]",),
        grad=False,
    )
    yield Row(
        "custom_partitioning",
        lambda x: weft.custom_batching.sequential_vmap(_divided())(x),
        ("f32[3]",),
        grad=False,
    )
    yield Row("pallas_call", _kernel(), ("f32[4]", "f32[4]"), grad=False)
    yield Row("custom_vmap_call", lambda x: _wave()(x), ("f32[3]",), grad=False)
    yield Row("call_exported", lambda x: _exported().call(x), ("f32[3]",), grad=False)
    yield Row("references", _references, ("f32[3]", "f32[]"))
    yield Row("check", lambda x: (checkify.debug_check(jnp.all(x < 99.0), "large: {x}", x=x), x * 2.0)[1], ("f32[3]",))
    yield Row("dce_sink", lambda x: (lax.dce_sink(x), x * 2.0)[1], ("f32[3]",))
    yield Row("tokens", lambda x: (lax.after_all(lax.create_token(x)), x * 2.0)[1], ("f32[3]",))
    yield Row("name", lambda x: lax.sin(weft.ad_checkpoint.checkpoint_name(x * 2.0, "doubled")), ("f32[3]",))
    yield Row("stage", lambda x: lax.stage(x) * 2.0, ("f32[3]",))
    like = lambda x: weft.ShapeDtypeStruct(x.shape, x.dtype)
    yield Row("debug_callback", lambda x: (weft.debug.callback(lambda v: None, x), x * 2.0)[1], ("f32[3]",))
    yield Row(
        "pure_callback",
        lambda x: weft.pure_callback(lambda v: v, like(x), x, vmap_method="sequential") * 2.0,
        ("f32[3]",),
        grad=False,
    )
    yield Row("io_callback", lambda x: io_callback(lambda v: v, like(x), x) * 2.0, ("f32[3]",), grad=False)


@functools.cache
def _wave():
    wave = weft.custom_batching.custom_vmap(lambda x: lax.sin(x))
    wave.def_vmap(lambda size, batched, x: (lax.sin(x), batched[0]))
    return wave


def _exported():
    """Of any length, which is a factor of the result."""
    spec = weft.ShapeDtypeStruct(symbolic_shape("n"), "float32")
    return export(weft.jit(lambda v: lax.sin(v) * v.shape[0]), disabled_checks=[DisabledSafetyCheck.platform()])(spec)


def _references(x, y):
    ref, other = weft.new_ref(x), weft.new_ref(lax.sin(x))
    ref[0] = y * other[1]
    ref[...] += other[...] * x
    weft.ref.addupdate(other, 2, y)
    room = weft.empty_ref(weft.ShapeDtypeStruct((), "float32"))
    room[...] = y
    y = room[...]
    weft.free_ref(room)
    return y * weft.freeze(ref) * weft.freeze(other)


def _placement(Row):
    mesh = lambda: Mesh([default_device()], ("i",))
    where = lambda: NamedSharding(mesh(), P("i"))
    yield Row("transfer", lambda x: weft.device_put(x * 2.0, default_device()), ("f32[3]",))
    yield Row("transfer_sharded", lambda x: weft.device_put(x * 2.0, where()), ("f32[3]",))
    yield Row("sharding_constraint", lambda x: lax.with_sharding_constraint(x * 2.0, where()), ("f32[3]",))
    rows = Layout((1, 0))
    yield Row("layout_constraint", lambda x: with_layout_constraint(x * 2.0, rows), ("f32[3,2]",))
    yield Row("xla_metadata_value", lambda x: set_xla_metadata(x * 2.0, part="encoder"), ("f32[3]",))
    yield Row("shard_alike", lambda x, y: sum(shard_alike(x * 2.0, y)), ("f32[3]", "f32[3]"))
    typed = lambda: NamedSharding(Mesh([default_device()], ("i",), (AxisType.Explicit,)), P("i"))
    yield Row("reshard", lambda x: weft.reshard(x * 2.0, typed()), ("f32[3]",))
    yield Row("device_put", lambda x: to_memory_p.bind(x, memory="device") * 2.0, ("f32[3]",))
    yield Row(
        "shard_map",
        lambda x: weft.shard_map(
            lambda v: lax.psum(lax.sin(v), "i") * v, mesh=mesh(), in_specs=P("i"), out_specs=P("i")
        )(x),
        ("f32[3]",),
    )
    yield Row(
        "shard_map_of_the_largest",
        lambda x: weft.shard_map(
            lambda v: lax.pmax(v, "i") - lax.pmin(v, "i") * lax.axis_index("i"),
            mesh=mesh(),
            in_specs=P("i"),
            out_specs=P("i"),
        )(x),
        ("f32[3]",),
        grad=False,
    )
    yield Row(
        "pvary",
        lambda x: weft.shard_map(
            lambda v: lax.pcast(v, ("i",), to="varying") * 2.0, mesh=mesh(), in_specs=P(), out_specs=P("i")
        )(x),
        ("f32[3]",),
    )
    yield Row(
        "inspect_sharding",
        lambda x: (weft.debug.inspect_array_sharding(x, callback=lambda s: None), x * 2.0)[1],
        ("f32[3]",),
    )


def _collectives(Row):
    """Derivatives inside a mapped function, which meet the collectives' own rules."""
    four = functools.partial(weft.vmap, axis_name="i")
    for name, f in {
        "psum": lambda x: lax.psum(x, "i"),
        "all_gather": lambda x: lax.all_gather(x, "i"),
        "all_gather_invariant": lambda x: lax.all_gather(x, "i", to="invarying"),
        "all_to_all": lambda x: lax.all_to_all(x, "i", 0, 0),
        "psum_scatter": lambda x: lax.psum_scatter(x, "i"),
        "ppermute": lambda x: lax.ppermute(x, "i", [(0, 1), (1, 3)]),
        "pbroadcast": lambda x: lax.pbroadcast(x, "i", 2),
    }.items():
        yield Row(
            f"{name}_inside",
            four(lambda x, f=f: weft.vjp(lambda v: lax.sin(f(v)), x)[1](lax.cos(f(x)))[0]),
            ("f32[4,4]",),
            rtol=5e-5,
        )
    for name in ("pmax", "pmin"):
        yield Row(
            f"{name}_inside",
            four(lambda x, f=getattr(lax, name): f(x, "i") * weft.lax.stop_gradient(x)),
            ("f32[4,3]",),
            grad=False,
        )
    yield Row(
        "axis_index_inside",
        four(lambda x: weft.grad(lambda v: (v * lax.axis_index("i")).sum())(x)),
        ("f32[4,3]",),
        grad=False,
    )


def _random(Row):
    random = weft.random
    key = lambda s: random.wrap_key_data(jnp.stack([s, s + 1]))
    yield Row("random_bits", lambda s: random.bits(random.clone(key(s)), (3,)), ("u32[]:0..99",), grad=False)
    yield Row(
        "threefry2x32", lambda a, b: threefry2x32_p.bind(a, b, b, a)[0], ("u32[3]:0..99", "u32[3]:0..99"), grad=False
    )
    yield Row("random_seed", lambda s: random.key_data(random.key(s)), ("u32[]:0..99",), grad=False)
    yield Row("random_split", lambda s: random.key_data(random.split(key(s), 2)), ("u32[]:0..99",), grad=False)
    yield Row(
        "random_fold_in",
        lambda s, i: random.bits(random.fold_in(key(s), i)),
        ("u32[]:0..99", "u32[]:0..99"),
        grad=False,
    )
    yield Row("rng_bit_generator", lambda k: lax.rng_bit_generator(k, (3,))[1], ("u32[4]:0..99",), grad=False)
