"""Arrays of float0, the tangents of integers, which hold no data. Programs take, carry and return them on every
platform; no backend sees them.
"""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from platforms import on, under_test
from weft import export, lax
from weft.core.jaxpr import Jaxpr, Var
from weft.serialization.portable import NotPortable
from weft.serialization.programs import serialize
from weft.base.avals import shaped
from weft.runtime.dispatch import program_for

FLOAT0 = weft.dtypes.float0


def nothing(*shape):
    return np.zeros(shape, FLOAT0)


def twice(x):
    return x * 2.0


@weft.custom_vjp
def power(x, n):
    return x**n


power.defvjp(lambda x, n: (x**n, (x, n)), lambda kept, ct: (ct * kept[1] * kept[0] ** (kept[1] - 1), nothing()))
derivative = weft.grad(twice, allow_int=True)

# name: (function, arguments, results), flat; float0 results are compared by their shapes
PROGRAMS = {
    "derivative by an integer": (derivative, [3], [nothing()]),
    "identity": (lambda z: z, [nothing(3)], [nothing(3)]),
    "taken and not used": (lambda z, x: x * 2, [nothing(3), 3.0], [6.0]),
    "between other arguments": (lambda x, z, y: (y, z, x), [1.0, nothing(2), 2.0], [2.0, nothing(2), 1.0]),
    "closed over": (lambda x, z=nothing(2): (x, z), [1.0], [1.0, nothing(2)]),
    "made": (
        lambda x: (jnp.zeros_like(x, FLOAT0), lax.convert_element_type(x, FLOAT0)),
        [jnp.arange(3)],
        [nothing(3)] * 2,
    ),
    "converted": (lambda z: lax.convert_element_type(z, jnp.int32), [nothing(3)], [np.zeros(3, np.int32)]),
    "moved about": (
        lambda z: (
            z[0],
            z.reshape(3, 2),
            z.T,
            jnp.stack([z, z]),
            jnp.flip(z),
            lax.select(True, z, z),
            z[jnp.array([1, 0])],
        ),
        [nothing(2, 3)],
        [nothing(3), nothing(3, 2), nothing(3, 2), nothing(2, 2, 3), nothing(2, 3), nothing(2, 3), nothing(2, 3)],
    ),
    "scanned over": (lambda z: lax.scan(lambda c, x: (c + 1.0, x), 1.0, z), [nothing(3)], [4.0, nothing(3)]),
    "carried by scan": (
        lambda z: lax.scan(lambda c, x: (c, x), z, jnp.arange(3.0)),
        [nothing(2)],
        [nothing(2), np.arange(3.0)],
    ),
    "made in scan": (lambda ns: lax.scan(lambda c, n: (c + n, derivative(n)), 0, ns), [jnp.arange(3)], [3, nothing(3)]),
    "carried by while": (
        lambda z: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1]), (0, z)),
        [nothing(2)],
        [3, nothing(2)],
    ),
    "chosen by cond": (
        lambda p, n, z: lax.cond(p, lambda n, z: (derivative(n), z), lambda n, z: (nothing(), z), n, z),
        [True, 3, nothing(2)],
        [nothing(), nothing(2)],
    ),
    "batched": (
        weft.vmap(lambda n, z, x: (derivative(n), z, x), in_axes=(0, None, 0)),
        [jnp.arange(3), nothing(2), jnp.arange(3.0)],
        [nothing(3), nothing(3, 2), np.arange(3.0)],
    ),
    "rematerialised": (weft.checkpoint(lambda n, z: (derivative(n), z)), [3, nothing(2)], [nothing(), nothing(2)]),
    "pushed forward": (
        lambda n, t: weft.jvp(lambda n: (n * 2.0, n), (n,), (t,)),
        [3, nothing()],
        [6.0, 3, 0.0, nothing()],
    ),
    "linearized": (lambda n, t: weft.linearize(twice, n)[1](t), [3, nothing()], [0.0]),
    "pulled back": (lambda x, n: weft.vjp(lambda x, n: x * n, x, n)[1](2.0), [3.0, 4], [8.0, nothing()]),
    "given by a rule": (weft.grad(power, argnums=(0, 1), allow_int=True), [2.0, 3], [12.0, nothing()]),
    "of a key": (weft.grad(weft.random.normal, allow_int=True), [weft.random.key(0)], [nothing()]),
    "through an inner jit": (
        weft.grad(weft.jit(lambda n, x: x * n), argnums=(0, 1), allow_int=True),
        [3, 2.0],
        [nothing(), 3.0],
    ),
    "nothing else": (lambda a, b: (b, a), [nothing(2), nothing()], [nothing(), nothing(2)]),
}


def agree(got, want):
    got = weft.tree.leaves(got)
    assert len(got) == len(want)
    for g, w in zip(got, want):
        g, w = (g if hasattr(g, "dtype") else np.asarray(g)), np.asarray(w)
        assert g.shape == w.shape and (g.dtype == FLOAT0) == (w.dtype == FLOAT0)
        if w.dtype != FLOAT0:
            np.testing.assert_allclose(np.asarray(g), w)


@pytest.mark.parametrize("platform", under_test())
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, platform):
    """At once, compiled, called again, and ahead of time."""
    fun, args, want = PROGRAMS[name]
    with on(platform):
        agree(fun(*args), want)
        compiled = weft.jit(fun)
        agree(compiled(*args), want), agree(compiled(*args), want)
        agree(compiled.lower(*args).compile()(*args), want)
        assert compiled.lower(*args).as_text("jaxpr" if platform == "reference" else None)


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n != "of a key"])
def test_exported(name):
    fun, args, want = PROGRAMS[name]
    types = [
        weft.ShapeDtypeStruct(np.shape(a), jnp.result_type(a) if getattr(a, "dtype", None) != FLOAT0 else FLOAT0)
        for a in args
    ]
    saved = export.deserialize(export.export(weft.jit(fun))(*types).serialize())
    agree(
        saved.call(
            *[a if getattr(a, "dtype", None) == FLOAT0 else jnp.asarray(a, t.dtype) for a, t in zip(args, types)]
        ),
        want,
    )


@pytest.mark.parametrize("platform", under_test())
def test_donated_and_placed(platform):
    with on(platform):
        x = jnp.ones(2)
        agree(weft.jit(lambda z, x: (x + 1, z), donate_argnums=(0, 1))(nothing(2), x), [np.full(2, 2.0), nothing(2)])
        assert x.is_deleted()
        here = weft.NamedSharding(weft.make_mesh((1,), ("i",), devices=weft.devices()[:1]), weft.P("i"))
        agree(
            weft.jit(lambda z, x: (x + 1, z), in_shardings=here, out_shardings=here)(nothing(2), jnp.ones(2)),
            [np.full(2, 2.0), nothing(2)],
        )
        agree(
            [weft.device_put(nothing(2)), jnp.asarray(nothing(2)), jnp.zeros(2, FLOAT0), weft.device_get(nothing(2))],
            [nothing(2)] * 4,
        )


def test_spread_over_devices():
    mesh = weft.make_mesh((2,), ("i",), devices=weft.devices("cpu")[:2], axis_types=(weft.sharding.AxisType.Auto,))
    cut = weft.NamedSharding(mesh, weft.P("i"))
    z, x = nothing(4), np.arange(4.0, dtype=np.float32)
    agree(weft.jit(lambda z, x: (x + 1, z), in_shardings=cut, out_shardings=cut)(z, x), [x + 1, z])
    agree(
        weft.jit(weft.shard_map(lambda z, x: (x + 1, z), mesh=mesh, in_specs=weft.P("i"), out_specs=weft.P("i")))(z, x),
        [x + 1, z],
    )


def test_bad_values_are_found_beside_nothing():
    with weft.debug_nans(True):
        agree(weft.jit(lambda z, x: (z, x * 2))(nothing(3), 1.0), [nothing(3), 2.0])
        with pytest.raises(FloatingPointError, match="sub"):
            weft.jit(lambda z, x: (z, x - x))(nothing(3), np.float32(np.inf))


@pytest.mark.parametrize(
    "fun", [lax.neg, jnp.sum, lambda z: lax.add(z, z), lambda z: jnp.equal(z, z), lambda z: jnp.dot(z, z)]
)
def test_nothing_is_computed_with(fun):
    for f in (fun, weft.jit(fun)):
        with pytest.raises(TypeError, match="does not accept dtype float0"):
            f(nothing(3))


def test_no_derivative_by_nothing():
    with pytest.raises(TypeError, match="grad requires numerical-valued inputs: one has dtype float0"):
        weft.grad(lambda z: 2.0, allow_int=True)(nothing(3))


def test_backends_see_no_float0():
    closed = weft.make_jaxpr(lambda z, x: (lax.scan(lambda c, _: (c, z), x, None, length=2), z[0]))(nothing(3), 1.0)
    program, consts = program_for(closed)
    assert not consts and "float0" not in str(program) and "float0" in str(closed)
    assert [a.str_short() for a in program.in_avals] == [a.str_short() for a in program.out_avals] == ["f32[]"]


def test_no_program_that_leaves_the_process_has_them():
    z = Var(shaped((3,), FLOAT0))
    with pytest.raises(NotPortable, match=r"float0\[3\]"):
        serialize(Jaxpr([], [z], [z], []))
