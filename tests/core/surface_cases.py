"""Programs over `jax` about its public surface beyond transformations: what they give, or the class of their error,
must be what real JAX gives. Each line is an expression; `SETUP` defines what several lines need.
"""

SETUP = """
import functools
import jax.scipy.special as special
import jax.scipy.cluster.vq
import jax.scipy.fft
import jax.scipy.linalg
import jax.scipy.signal
import jax.experimental.checkify
import jax.experimental.sparse
import jax.test_util as test_util
x = jnp.ones((2, 3))
b, n, c, v = x > 0, jnp.ones((2, 3), int), jnp.ones((2, 3), 'complex64'), jnp.ones(3)
z5 = jnp.array([1 + 2j, 3 - 1j, -1j, 5j, -300 + 1j])
key, f0 = jax.random.key(0), jax.float0
aliases = ('absolute acos acosh amax amin around asin asinh atan atan2 atanh bitwise_invert bitwise_left_shift'
           ' bitwise_not bitwise_right_shift conj degrees mod pow radians true_divide').split()

def as_custom(kind):
    f = kind(lambda p, q: (p, q, [p]))
    if kind is jax.custom_jvp:
        f.defjvp(lambda p, t: (f(*p), f(*t)))
    else:
        f.defvjp(lambda p, q: (f(p, q), None), lambda _, g: g[:2])
    return f

def strictly(f):
    with jax.numpy_rank_promotion('raise'), jax.numpy_dtype_promotion('strict'):
        return f()

def checked(f, *args, **kwargs):
    try:
        test_util.check_grads(f, args, 1, **kwargs)
    except AssertionError:
        return 'differs'

def wide(f, *args):
    with jax.enable_x64(True):
        return f(*args)

def kinds(tree):
    # Python's types, where JAX may keep a value as a class of its own that says its dtype
    def kind(v):
        name = {'TypedFloat': 'float', 'TypedInt': 'int', 'TypedComplex': 'complex', 'TypedNdArray': 'ndarray'}.get(
            type(v).__name__, type(v).__name__)
        return 'ndarray' if isinstance(v, np.generic) else name
    return str(jax.tree.map(kind, tree))

def slopes(f, points):
    return [jax.grad(f, (0, 1))(p, q) for p in points for q in points]
"""

# By family: name -> expressions, one on each line.
CASES = {
    "functions of numbers": """
lax.reciprocal(jnp.arange(3))
lax.reciprocal(2)
lax.reciprocal(b)
lax.reciprocal(v * 4)
jnp.reciprocal(jnp.arange(1, 3))
wide(lambda: lax.select_n(jnp.arange(3, dtype='int64'), jnp.zeros(3), jnp.ones(3), 2 * jnp.ones(3)))
wide(lambda: lax.select_n(jnp.arange(3, dtype='int8'), jnp.zeros(3), jnp.ones(3), 2 * jnp.ones(3)))
lax.cumlogsumexp(z5)
lax.cumlogsumexp(z5, reverse=True)
lax.cumlogsumexp(jnp.stack([z5, z5 * 2j]), 1)
jax.jacfwd(lax.cumlogsumexp, holomorphic=True)(z5[:3])
jax.jacrev(lax.cumlogsumexp, holomorphic=True)(z5[:3])
special.gamma(jnp.array([1 + 2j, 0j, -1 + 0j, -1.5 + 0j, .5 + 3j, -3.2 - 2j]))
jax.grad(special.gamma, holomorphic=True)(1 + 2j)
special.gammaln(1 + 2j)
jax.vmap(jax.grad(special.zeta))(jnp.array([1.5, 3., 8., 3., 1.1, 1., .5, 3.]), jnp.array([.5, 2., 2., 50., 1., \
2., 2., -.5]))
jax.grad(lambda s: jax.grad(special.zeta, 1)(s, v[0]))(v[0] * 3)
jax.jvp(special.zeta, (v * 3, v * 2), (v, v))
slopes(jnp.fmax, (1., 2., jnp.nan))
slopes(jnp.fmin, (1., 2., jnp.nan))
jnp.fmax(jnp.array([jnp.nan, 1., jnp.nan]), jnp.array([2., jnp.nan, jnp.nan]))
jnp.fmin(jnp.array([jnp.nan, 1., 3.]), jnp.array([2., jnp.nan, -0.]))
special.lpmn(3, 3, jnp.array([.1, .5, -.9]))
special.lpmn(2, 2, jnp.array([1., -1.]))
special.lpmn(0, 0, v)
special.lpmn_values(4, 4, jnp.array([-.9, 0., .7, 1.]), True)
special.lpmn_values(4, 4, jnp.array([-.9, 0., .7, 1.]), is_normalized=False)
jax.jit(lambda z: special.lpmn(3, 3, z))(v / 2)
jax.jacfwd(lambda z: special.lpmn_values(2, 2, z, True))(jnp.array([.1, .5]))
special.lpmn(2, 3, v)
special.lpmn(1, 1, jnp.arange(2))
special.lpmn_values(1, 1, x, True)
special.lpmn_values(1, 1, v.astype('float16'), True)
wide(lambda: jax.random.choice(key, 10, (5,), p=jnp.arange(10.) / 45))
wide(lambda: jax.random.choice(key, 10, (5,), replace=False, p=jnp.arange(10.) / 45))
wide(lambda: jax.random.choice(key, 10, (5,), p=jnp.arange(10., dtype='float32') / 45))
wide(lambda: jax.random.choice(key, 10, (0,)))
jnp.tri(3, k=1.5)
""",
    "axes and sizes": "\n".join(
        f"lax.{line}"
        for line in """
reduce_sum(x, (-1,)); reduce_max(x, (-1,)); reduce_min(x, (-1,)); reduce_prod(x, (-1,)); reduce_and(b, (-1,))
reduce_or(b, (-1,)); reduce_xor(n, (-1,)); argmax(x, -1, 'int32'); argmin(x, -1, 'int32'); cumsum(x, -1)
cumprod(x, -1); cummax(x, -1); cummin(x, -1); cumlogsumexp(x, -1); reduce(x, 0., lax.add, (-1,)); sort(x, \
dimension=-1)
top_k(x, 2, axis=-1); concatenate([x, x], -1); expand_dims(x, (-1,)); squeeze(x[:1], (-2,)); rev(x, (-1,))
transpose(x, (-1, 0)); transpose(x, (0, 0)); transpose(x, (0, 2)); dynamic_index_in_dim(x, 0, -1)
slice_in_dim(x, 0, 1, axis=-1); index_in_dim(x, 0, -1); associative_scan(lax.add, x, axis=-1)
split(x, (1, 2), axis=-1); broadcasted_iota('int32', (2, 3), -1); broadcasted_iota('int32', (2, 3), 2)
broadcast_in_dim(v, (2, 3), (-1,)); broadcast_in_dim(n * jnp.arange(3), (3, 2), (1, 0))
broadcast_in_dim(jnp.arange(6).reshape(2, 3), (3, 4, 2), (2, 0)); broadcast_in_dim(x, (2, 2, 3), (0, 0))
broadcast_in_dim(x, (2, 4), (0, 1)); broadcast_in_dim(x, (2, 3), (0,)); broadcast_in_dim(x, (3,), (0, 1))
reduce_sum(x, (0, 0)); reduce_sum(x, (2,)); reduce(x, 0., lax.add, (2,)); reduce(x, 0., lax.add, (0, 0))
argmax(x, 2, 'int32'); cumsum(x, 2); cumsum(jnp.ones(()), 0); rev(x, (0, 0)); rev(x, (2,)); squeeze(x, (0,))
squeeze(x[:1], (0, 0)); squeeze(x[:1], (0, -2)); squeeze(x[:1], (2,)); expand_dims(v, (0, 0)); expand_dims(v, (3,))
concatenate([x, x], 2); sort(x, dimension=2); sort((x, x), dimension=0, num_keys=3); top_k(x, 4); top_k(x, -1)
top_k(x, 2.5); top_k(x, 2, axis=2); reshape(x, (7,)); reshape(x, (6,), dimensions=(1, 0)); reshape(x, (6,), \
dimensions=(0,))
reshape(x, (-1,)); slice(x, (0, 0), (2, 3), (1,)); slice(x, (0, 0), (3, 3)); slice(x, (1, 0), (0, 3))
dynamic_slice(x, (0,), (1,)); dynamic_slice(x, (0, 0, 0), (1, 1, 1)); dynamic_slice(x, (0, 0), (1, 4))
dynamic_update_slice(x, x, (0,)); dynamic_update_slice(x, v, (0, 0)); pad(x, 0., [(0, 0, 0)])
pad(x, 0., [(0, 0, -1), (0, 0, 0)]); pad(x, 0., [(-3, 0, 0), (0, 0, 0)]); pad(x, v, [(0, 0, 0)] * 2)
reduce_window(x, 0., lax.add, (1, 1), (1, 1), [(0, 0)]); reduce_window(x, 0., lax.add, (2,), (1, 1), 'VALID')
dot_general(x, x.T, (((2,), (0,)), ((), ()))); dot_general(x, x.T, (((-1,), (0,)), ((), ())))
dot_general(x, x.T, (((1, 1), (0, 0)), ((), ()))); dot_general(x, x, (((0,), (0,)), ((0,), (0,))))
gather(jnp.ones((3, 4)), jnp.zeros((2, 1), int), lax.GatherDimensionNumbers((1, 0), (), (0,)), (1, 4))
gather(jnp.ones((3, 4)), jnp.zeros((2, 1), int), lax.GatherDimensionNumbers((1, 2), (), (0,)), (1, 4))
gather(jnp.ones((3, 4)), jnp.zeros((2, 1), int), lax.GatherDimensionNumbers((1,), (0, 0), (0,)), (1, 4))
gather(jnp.ones((3, 4)), jnp.zeros((2, 2), int), lax.GatherDimensionNumbers((1,), (0,), (0, 0)), (1, 4))
gather(jnp.ones((3, 4, 5)), jnp.zeros((2, 1), int), lax.GatherDimensionNumbers((1,), (1, 0), (2,)), (1, 1, 5))
scatter(jnp.ones((3, 4)), jnp.zeros((2, 1), int), jnp.ones((2, 4)), lax.ScatterDimensionNumbers((1,), (0,), (2,)))
scatter(jnp.ones((3, 4)), jnp.zeros((2, 1), int), jnp.ones((4, 2)), lax.ScatterDimensionNumbers((1, 0), (0,), (0,)))
scatter_add(x, jnp.zeros((1, 1), int), v[None], lax.ScatterDimensionNumbers((1,), (0, 0), (0,)))
integer_pow(x, 2.5); integer_pow(n, -1)
""".replace("\n", ";").split(";")
        for line in [line.strip()]
        if line
    ),
    "values of Python": """
kinds(jax.grad(lambda p: (p, (1., 2, np.ones(2), True)), has_aux=True)(1.)[1])
kinds(jax.value_and_grad(lambda p: (p, (p, p * 2, 2, np.float32(2))), has_aux=True)(1.)[0])
kinds(jax.value_and_grad(lambda p: p)(1.))
kinds(jax.vjp(lambda p: (p, 3, 1., np.float32(2), np.ones(2), True, p * 2), 1.)[0])
kinds(jax.vjp(lambda p: (p, (1., 2)), 1., has_aux=True)[2])
kinds(jax.jvp(lambda p: (p, 3, 1., np.float32(2), np.ones(2), True, p * 2), (1.,), (1.,))[0])
kinds(jax.jvp(lambda p: (p, (1., 2)), (1.,), (1.,), has_aux=True)[2])
kinds(jax.linearize(lambda p: (p, 3, 1., np.float32(2), np.ones(2), True, p * 2), 1.)[0])
kinds(jax.jacfwd(lambda p: (p, (p, p * 2, 3, np.ones(2))), has_aux=True)(1.))
kinds(jax.jacrev(lambda p: (p, (p, p * 2, 3, np.ones(2))), has_aux=True)(1.))
kinds(jax.hessian(lambda p: (p * p, (p, p * 2, 3, np.ones(2))), has_aux=True)(1.))
kinds(jax.vmap(lambda p: (1., np.ones(2), p), out_axes=(None, None, 0))(v))
kinds(jax.checkpoint(lambda p: (p, 3, 1., p * 2))(1.))
kinds(as_custom(jax.custom_jvp)(2., 3))
kinds(as_custom(jax.custom_vjp)(2., 3))
kinds([as_custom(jax.custom_jvp)(p, 1)[0] for p in (np.ones(2), True, 1, 1j, jnp.ones(2))])
kinds([lax.stop_gradient(p) for p in (1, True, jnp.ones(2))])
jnp.add(np.zeros(3, f0), 1.)
np.zeros(3, f0) * v
jax.device_put(np.zeros(3, f0))
jax.vjp(lambda n, p: lax.scan(lambda c, i: (c * p + i, n), p, jnp.arange(3)), jnp.arange(2), 2.)[1]((1., \
np.zeros((3, 2), f0)))
jax.vjp(lambda n, p: lax.cond(p > 0, lambda: (n, p * 2), lambda: (n, p)), jnp.arange(2), 2.)[1]((np.zeros(2, f0), 1.))
jax.vmap(lambda n, p, t: jax.vjp(lambda n, p: (n, p * n), n, p)[1]((t, 1.)))(jnp.arange(3), v, np.zeros(3, f0))
""",
    "dtypes": """
[jnp.can_cast(p, q) for p in (int, float, bool, complex, jnp.int8, 'float32', jnp.bfloat16, 'float16') for q in \
(int, float, 'int8', 'float32', 'bfloat16', 'float16', 'complex64')]
[jnp.can_cast(p, q, casting='same_kind') for p in ('int32', 'uint8', 'float32', 'complex64') for q in ('int8', \
'uint32', 'float16', 'complex64')]
[str(jnp.result_type(*p)) for p in ((int,), (float, jnp.int8), (jnp.float16,), (bool, complex), (jnp.float16, \
float), ('int8', float))]
[getattr(jnp, name).__name__ for name in aliases]
[getattr(jnp, name).__qualname__ for name in aliases]
lax.map.__name__, jnp.bool_.__name__, jnp.bool.__name__
""",
    "promotion": "\n".join(
        f"strictly(lambda: {line})"
        for line in """
jax.scipy.fft.dct(v); jax.scipy.fft.idct(v); jax.scipy.fft.dctn(x); jax.scipy.fft.idctn(x, norm='ortho')
jnp.fft.fft(v); jnp.fft.fftn(x, norm='forward'); jnp.fft.irfft(v + 0j); jax.vjp(jax.scipy.fft.dct, v)[1](v)
jax.grad(lambda v: jnp.abs(jnp.fft.fft(v)).sum())(v)
special.multigammaln(v + 3, 2); special.sici(v); special.fresnel(v)
special.lpmn_values(2, 2, v / 2, True); jax.scipy.linalg.toeplitz(v); jax.scipy.linalg.hilbert(3)
jax.scipy.linalg.sqrtm(4 * jnp.eye(3)); jax.scipy.signal.welch(jnp.arange(16.), nperseg=8)[1]
jax.scipy.signal.stft(jnp.arange(16.), nperseg=8)[2]; jax.scipy.signal.detrend(jnp.arange(4.) ** 2)
jax.scipy.cluster.vq.vq(x, x[:1])[1]; jnp.polyfit(jnp.arange(4.), jnp.arange(4.), 1); jnp.unwrap(jnp.arange(3.) * 4)
jax.experimental.sparse.BCOO.fromdense(x) @ v; jax.experimental.sparse.BCOO.fromdense(x).sum()
jax.experimental.checkify.checkify(lambda v: v[jnp.arange(2)], errors=jax.experimental.checkify.all_checks)(v)[1]
""".replace("\n", ";").split(";")
        for line in [line.strip()]
        if line
    ),
    "differences": """
checked(jnp.sin, v, atol={'float32': 1e-2})
checked(jnp.sin, v, rtol={np.dtype('float32'): 1e-2, np.dtype('float64'): 1e-6})
checked(jnp.sin, v, rtol={'float32': 1e-12}, atol={'float32': 1e-12})
checked(jnp.sin, v, rtol={}, atol={np.dtype('float64'): 1e-12})
[checked(f, jnp.array([p])) for f in (jnp.sqrt, jnp.log, lambda p: 1 / p, lambda p: p * jnp.nan, lambda p: \
jnp.where(p > 0, p, jnp.inf)) for p in (0., 1., jnp.nan, jnp.inf)]
""",
}


def expressions() -> list[str]:
    return [line for lines in CASES.values() for line in lines.strip().splitlines()]
