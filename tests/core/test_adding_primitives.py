"""What one module says of a primitive is enough: no other names it, and it runs on every backend, differentiated,
batched and inside of loops; analyses look into the program that it carries.
"""

import numpy as np
import pytest
import weft
import weft.numpy as jnp
from platforms import on, under_test
from weft import lax
from weft.base.avals import tangent_aval
from weft.core.carries import Carries, Runs
from weft.core.jaxpr import eval_jaxpr
from weft.core.primitive import AsDecomposed, Primitive, Zero
from weft.transforms.batch import batch_jaxpr, to_front
from weft.transforms.jvp import jvp_jaxpr
from weft.transforms.stage import stage_closed
from weft.core.trace import get_aval

# x / (1 + |x|), which decomposes --------------------------------------------------------------------------------------

softsign_p = Primitive("softsign", foreign=True)
softsign_p.abstract = lambda x: x
softsign_p.decompose = lambda x: lax.div(x, lax.add(lax.full_like(x, 1), lax.abs(x)))
softsign_p.reference = lambda x: x / (1 + np.abs(x))


def _softsign_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    slope = lax.integer_pow(lax.add(lax.full_like(x, 1), lax.abs(x)), -2)
    return softsign_p.bind(x), t if type(t) is Zero else lax.mul(t, slope)


softsign_p.jvp = _softsign_jvp
softsign_p.batch = lambda axis, args, dims: (softsign_p.bind(*args), dims[0])

# a program that runs as it is -----------------------------------------------------------------------------------------

inner_p = Primitive("inner_program", multiple_results=True, foreign=True)
inner_p.carries = Carries(Runs.ONCE, {"program": ("operands",)})
inner_p.abstract = lambda *avals, program: list(program.out_avals)
inner_p.decompose = lambda *args, program: eval_jaxpr(program.jaxpr, program.consts, *args)
inner_p.reference = AsDecomposed(inner_p)


def _inner_jvp(primals, tangents, *, program):
    both, nonzero = jvp_jaxpr(program, [type(t) is not Zero for t in tangents])
    outs = inner_p.bind(*primals, *[t for t in tangents if type(t) is not Zero], program=both)
    n, ts = len(nonzero), iter(outs[len(nonzero) :])
    return outs[:n], [next(ts) if nz else Zero(tangent_aval(a)) for nz, a in zip(nonzero, program.out_avals)]


def _inner_batch(axis, args, dims, *, program):
    new, batched = batch_jaxpr(program, axis, [d is not None for d in dims])
    outs = inner_p.bind(*[x if d is None else to_front(axis, x, d) for x, d in zip(args, dims)], program=new)
    return outs, [0 if b else None for b in batched]


inner_p.jvp, inner_p.batch = _inner_jvp, _inner_batch
inner_p.partial_eval = lambda trace, args, params: inner_p.decompose(*args, **params)


def inner(fun, *args):
    return inner_p.bind(*args, program=stage_closed(lambda *xs: [fun(*xs)], [get_aval(x) for x in args]))[0]


def program(x):
    y = inner(lambda v: softsign_p.bind(v) * 2, x)
    y, _ = lax.scan(lambda c, _: (inner(softsign_p.bind, c) + x, None), y, None, length=2)
    return lax.cond(x[0] > 0, lambda v: inner(lambda w: w * w, v), lambda v: v, y)


def plain(x):
    s = lambda v: v / (1 + jnp.abs(v))
    y = s(x) * 2
    y = s(s(y) + x) + x
    return jnp.where(x[0] > 0, y * y, y)


X = np.array([0.5, -2.0, 3.0], np.float32)
WAYS = {
    "value": lambda f: f,
    "grad": lambda f: weft.grad(lambda x: f(x).sum()),
    "vmap": lambda f: lambda x: weft.vmap(f)(jnp.stack([x, -x])),
    "vmap of grad": lambda f: lambda x: weft.vmap(weft.grad(lambda x: f(x).sum()))(jnp.stack([x, -x])),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("platform", under_test())
def test_it_runs(platform, way):
    want = np.asarray(WAYS[way](plain)(X))
    with on(platform):
        for f in (weft.jit(WAYS[way](program)), WAYS[way](program)):
            np.testing.assert_allclose(np.asarray(f(jnp.asarray(X))), want, rtol=1e-5, atol=1e-6)


def test_a_key_inside_is_consumed():
    draw = lambda k: inner(lambda k: weft.random.uniform(k), k)
    with weft.debug_key_reuse(True), pytest.raises(weft.errors.KeyReuseError):
        weft.jit(lambda k: draw(k) + draw(k))(weft.random.key(0))


def test_a_nan_inside_is_found():
    with weft.debug_nans(True), pytest.raises(FloatingPointError, match="encountered in log"):
        weft.jit(lambda x: inner(lambda v: jnp.log(v), x))(jnp.float32(-1))


@pytest.mark.parametrize("platform", under_test())
def test_numbers_inside_may_be_complex(platform):
    z = np.array([1 + 2j, -0.5j], np.complex64)
    with on(platform):
        got = weft.jit(lambda z: inner(lambda v: v * v + 1, z))(jnp.asarray(z))
        np.testing.assert_allclose(np.asarray(got), z * z + 1, rtol=1e-6)
