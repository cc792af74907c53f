"""Primitives that no host knows are sent as their decomposition. One without a decomposition is refused by name."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from declared import PORTABLE
from weft import export, lax
from weft.higher_order.composite import composite
from weft.core.jaxpr import subjaxprs
from weft.core.primitive import Primitive
from weft.experimental import checkify, sparse
from weft.runtime.dispatch import program_for
from weft.serialization.portable import NotPortable
from weft.transforms.portable import portable

X = np.array([0.5, 2.0, -1.0], np.float32)


def shared(x):
    mesh = weft.make_mesh((1,), ("i",), devices=weft.devices()[:1])
    return weft.shard_map(
        lambda x: x * 2 + lax.psum(x.sum(), "i") + lax.axis_index("i"),
        mesh=mesh,
        in_specs=weft.P("i"),
        out_specs=weft.P("i"),
    )(x)


def checked(x):
    checkify.debug_check(x[0] > 0, "{x} must be positive", x=x[0])
    return x + 1


PROGRAMS = {
    "composite": (lambda x: composite(lambda x: x * 2 + jnp.arange(3), "my.double")(x), X * 2 + np.arange(3)),
    "shard_map": (shared, X * 2 + X.sum()),
    "todense": (lambda x: sparse.todense(x * 2), X * 2),
    "dce_sink": (lambda x: (lax.dce_sink(x + 1), x * 2)[1], X * 2),
    "debug_check": (checked, X + 1),
}
INSIDE = {
    "by itself": lambda f: f,
    "in scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0],
    "in cond": lambda f: lambda x: lax.cond(x[0] > 0, f, lambda x: x, x),
    "in checkpoint": weft.checkpoint,
    "in jit": weft.jit,
}


def primitives(jaxpr):
    return {e.primitive.name for e in jaxpr.eqns}.union(
        *[primitives(sub) for e in jaxpr.eqns for sub in subjaxprs(e.params)]
    )


@pytest.mark.parametrize("where", INSIDE)
@pytest.mark.parametrize("name", PROGRAMS)
def test_on_a_host(name, where, session):
    fun, want = PROGRAMS[name]
    fun = INSIDE[where](fun)
    np.testing.assert_allclose(weft.jit(fun)(X), want, rtol=1e-6)
    program, _ = portable(program_for(weft.make_jaxpr(fun)(X))[0])
    assert primitives(program) <= set(PORTABLE)


@pytest.mark.parametrize("name", PROGRAMS)
def test_in_a_file(name):
    fun, want = PROGRAMS[name]
    saved = export.deserialize(export.export(weft.jit(fun))(weft.ShapeDtypeStruct((3,), "float32")).serialize())
    np.testing.assert_allclose(saved.call(X), want, rtol=1e-6)


def test_a_primitive_of_a_library_is_not_taken_for_ours_of_the_same_name():
    p = Primitive("sin", foreign=True)
    p.abstract, p.decompose = (lambda x: x), (lambda x: x * 2)
    program, _ = portable(program_for(weft.make_jaxpr(p.bind)(X))[0])
    assert primitives(program) == {"mul"}


def test_what_has_no_parts(session):
    calls = weft.make_jaxpr(lambda x: weft.pure_callback(lambda v: v, weft.ShapeDtypeStruct((3,), "float32"), x))(X)
    with pytest.raises(
        NotPortable,
        match="pure_callback calls a Python function, which only a backend of this process can do",
    ):
        portable(program_for(calls)[0])
    with pytest.raises(
        ValueError, match=r"the check .* must be positive.* is in a program .* that was not functionalized"
    ):
        weft.jit(lambda x: (checkify.check(x[0] > 0, "{x} must be positive", x=x[0]), x)[1])(X)
