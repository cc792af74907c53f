"""Programs over `jax`, `jnp`, `lax` and `np` about transformations: their results, jaxprs or error classes must be
those of real JAX.
"""

SETUP = """
from jax.custom_derivatives import (SymbolicZero, CustomVJPPrimal, custom_vjp_primal_tree_values, zero_from_primal,
                                    linear_call)
from jax.custom_batching import custom_vmap, sequential_vmap
from jax.experimental.jet import jet
f0 = jax.float0
x3 = jnp.arange(3.)
A = jnp.array([[2., 1.], [1., 3.]])
b2 = jnp.array([1., 2.])
y3 = x3 + 1
W = jnp.eye(3) * 2 + .1

def solve2(A, b):
    return lax.custom_linear_solve(lambda x: A @ x, b, lambda mv, b: jnp.linalg.inv(A) @ b,
                                   lambda vm, b: jnp.linalg.inv(A).T @ b)

def solve_tree(A, b):
    return lax.custom_linear_solve(lambda t: {'u': 2. * t['u'], 'v': A @ t['v']}, {'u': b[0], 'v': b},
                                   lambda mv, b: ({'u': b['u'] / 2., 'v': jnp.linalg.inv(A) @ b['v']}, b['u'] * 7.),
                                   symmetric=True, has_aux=True)

def newton(f, x):
    return lax.fori_loop(0, 20, lambda _, x: x - f(x) / jax.jvp(f, (x,), (1.,))[1], x)

def root(a):
    return lax.custom_root(lambda x: x ** 2 - a, 1.0, newton, lambda g, y: y / g(1.0))

def root_aux(a):
    return lax.custom_root(lambda t: {'x': t['x'] ** 2 - a}, {'x': 1.0},
                           lambda f, t: ({'x': newton(lambda x: f({'x': x})['x'], t['x'])}, 3),
                           lambda g, y: {'x': y['x'] / g({'x': 1.0})['x']}, has_aux=True)

@custom_vmap
def cv(x, y):
    return x + y

@cv.def_vmap
def cv_rule(axis_size, in_batched, x, y):
    return x + 2 * y, in_batched[0] or in_batched[1]

@custom_vmap
def cv_tree(d, n):
    return {'s': d['a'] * n, 'n': d['b']}

@cv_tree.def_vmap
def cv_tree_rule(axis_size, in_batched, d, n):
    return {'s': d['a'] * n * 10., 'n': d['b']}, {'s': True, 'n': in_batched[0]['b']}

def vmapped(rule):
    f = custom_vmap(lambda x, y: x + y)
    f.def_vmap(rule)
    return jax.vmap(f)(x3, x3)

def zeros_seen(f, *args):
    seen = []
    @jax.custom_jvp
    def g(x, y):
        return x * y
    def rule(primals, tangents):
        seen.append([type(t).__name__ == 'SymbolicZero' for t in tangents])
        return g(*primals), tangents[0] * primals[1]
    g.defjvp(rule, symbolic_zeros=True)
    return f(g)(*args), seen

def perturbed_seen(f, *args):
    seen = []
    @jax.custom_vjp
    def g(x, y):
        return x * y, x
    def fwd(x, y):
        seen.append([x.perturbed, y.perturbed])
        return (x.value * y.value, x.value), (x.value, y.value)
    def bwd(res, cts):
        seen.append([type(ct).__name__ == 'SymbolicZero' for ct in cts])
        return cts[0] * res[1], cts[0] * res[0]
    g.defvjp(fwd, bwd, symbolic_zeros=True)
    return f(g)(*args), seen

@jax.custom_jvp
def times(x, n):
    return x * n
times.defjvps(lambda t, out, x, n: 5. * t, None)

@jax.custom_vjp
def remat_sin(x):
    return jnp.sin(x)
remat_sin.defvjp(lambda x: (jnp.sin(x), (x, jnp.cos(x))), lambda res, g: (10. * g * res[1],), optimize_remat=True)

def close_over_vjp(y):
    @jax.custom_vjp
    def f(x):
        return x * y
    f.defvjp(lambda x: (f(x), x), lambda r, g: (g,))
    return f(1.0)

@jax.custom_gradient
def graded(x, y):
    return jnp.sin(x) * y, lambda g: (g * 100. * y, g)

def scale(r, x):
    return linear_call(lambda r, x: x * r, lambda r, t: 10. * t * r, r, x)

def fb(has_aux, jitted, argnums):
    fun = (lambda x, y: (x ** 2 * y, {'a': x})) if has_aux else (lambda x, y: x ** 2 * y)
    fwd, bwd = jax.fwd_and_bwd(fun, argnums, has_aux=has_aux, jitted=jitted)
    out = fwd(2., 3.)
    return out[0], out[2:], bwd(out[1], 1.)

def static(x):
    with jax.ensure_compile_time_eval():
        y = jnp.sin(2.0)
        return x * 2 if y > 0 else x

def eager_add(x):
    with jax.ensure_compile_time_eval():
        return x + 1

def off(f, *args):
    with jax.disable_jit():
        return f(*args)

def named(x):
    a = checkpoint_name(jnp.sin(x), 'a')
    b = checkpoint_name(jnp.sin(a), 'b')
    return jnp.sin(b).sum()

def saves(policy):
    text = str(jax.make_jaxpr(jax.grad(jax.checkpoint(named, policy=policy)))(x3))
    return text.count('= sin'), text.count('device_put')

def dots(policy):
    f = lambda w: jnp.sin(jax.jit(lambda w: jnp.sin(w @ w) @ w)(w)).sum()
    text = str(jax.make_jaxpr(jax.grad(jax.checkpoint(f, policy=policy)))(A))
    return text.count('dot_general')

def residuals_of(f, *args):
    jaxpr = jax.make_jaxpr(lambda *xs: jax.tree_util.tree_leaves(jax.vjp(f, *xs)[1]))(*args).jaxpr
    return sorted((v.aval.shape for v in jaxpr.outvars))
from jax.ad_checkpoint import checkpoint_name, Offloadable, Recompute, Saveable
P = jax.checkpoint_policies
"""

CASES = """
jax.grad(lambda x: x.sum() * 1.0, allow_int=True)(jnp.arange(3)).dtype == f0
jax.grad(lambda d: d['a'] * d['b'], allow_int=True)({'a': 2., 'b': 3})['a']
jax.grad(lambda x: x * 1.0)(3)
jax.grad(lambda z: z ** 2, holomorphic=True)(1 + 2j)
jax.grad(lambda z: z ** 2, holomorphic=True)(1.)
jax.grad(lambda z: z ** 2)(1 + 2j)
jax.grad(lambda z: jnp.real(z), holomorphic=True)(1 + 2j)
jax.grad(lambda z: jnp.abs(z) ** 2)(1 + 2j)
jax.grad(lambda x: 3)(1.)
jax.grad(lambda x: x * 1j)(1.)
jax.grad(lambda x: (x, x))(1.)
jax.grad(lambda x: None)(1.)
jax.grad(lambda x: x)(x3)
jax.grad(lambda x: x, has_aux=True)(1.)
jax.grad(lambda x: (x, 1, 2), has_aux=True)(1.)
jax.value_and_grad(lambda x: (x ** 2, {'k': x, 's': 'text'}), has_aux=True)(1.)
jax.grad(lambda x, y, z: x * y * z, argnums=(0, -1))(1., 2., 3.)
jax.grad(lambda x, y, z: x * y * z, argnums=-2)(1., 2., 3.)
jax.grad(lambda x, y, z: x * y * z, argnums=[0])(1., 2., 3.)
jax.grad(lambda x: x, argnums=1)(1.)
jax.grad(lambda x, y: x * y, argnums='x')(1., 2.)
jax.grad(lambda x, y: x * y)(1., y=2.)
jax.grad(lambda x, y: x * y)(x=1., y=2.)
jax.grad(lambda x, y: x * y, argnums=())(1., 2.)
jax.grad(lambda x: x, reduce_axes=('i',))
jax.vjp(lambda x: x, 1., reduce_axes=('i',))
jax.linear_transpose(lambda x: x, 1., reduce_axes=('i',))
jax.grad(3)
jax.grad(lambda x: 1.)('s')
jax.jvp(lambda x: x ** 2, [2.], [1.])
jax.jvp(lambda x: x ** 2, 2., 1.)
jax.jvp(lambda x: x ** 2, (2.,), (1., 2.))
jax.jvp(lambda x: (x ** 2, x), (2.,), (1.,), has_aux=True)
jax.jvp(lambda x, n: x ** 2 * n, (2., 3), (1., np.zeros((), f0)))
jax.jvp(lambda x, n: x ** 2 * n, (2., 3), (1., 1))
jax.jvp(lambda x: x ** 2, (jnp.float32(2.),), (jnp.float16(1.),))
jax.jvp(lambda x: x ** 2, (x3,), (jnp.ones(2),))
(lambda r: (r[0], r[1](1.), r[2]))(jax.vjp(lambda x: (x ** 2, x), 2., has_aux=True))
jax.vjp(lambda x: (x ** 2, 3), 2.)[1]((1., np.zeros((), f0)))
jax.vjp(lambda x, n: x ** 2 * n, 2., 3)[1](x3)
jax.vjp(lambda x, n: x ** 2 * n, 2., 3)[1](jnp.float16(1))
jax.vjp(lambda x, n: x ** 2 * n, 2., 3)[1]((1.,))
jax.vjp(lambda x, n: x ** 2 * n, 2., 3)[1](1)
jax.vjp(lambda x, n: x ** 2 * n, 2., 3)[1](1.)[0]
jax.linearize(lambda x, y: x * y, 2., 3.)[1](1., 1.)
jax.linearize(lambda x: x * 2, x3)[1](1.)
jax.linearize(lambda x: x * 2, x3)[1](x3.astype(jnp.float16))
jax.linearize(lambda x: x * 2, x3)[1](1., 1.)
(lambda r: (r[0], r[1](1.), r[2]))(jax.linearize(lambda x: (x * 2, x), 3., has_aux=True))
jax.linear_transpose(lambda x: 3 * x, 1.)(2.)
jax.linear_transpose(lambda x: 3., 1.)(2.)
jax.linear_transpose(lambda x: x + 1, 1.)(2.)
jax.linear_transpose(lambda x: x * 2, 1)(2)
jax.linear_transpose(lambda x: 3 * x, jax.ShapeDtypeStruct((2,), jnp.float32))(jnp.ones(2))
jax.linear_transpose(lambda x: {'a': 3 * x}, 1.)(2.)
jax.linear_transpose(lambda x: 3 * x, 1.)(jnp.ones(2))
fb(False, True, 0)
fb(False, False, (0, 1))
fb(True, True, (1,))
jax.jacfwd(lambda d: {'s': d['a'] * d['b'], 't': d['a']})({'a': x3, 'b': 2.})
jax.jacrev(lambda d: {'s': d['a'] * d['b'], 't': d['a']})({'a': x3, 'b': 2.})
jax.jacfwd(lambda a, b: a * b, argnums=(0, 1))(x3, 2.)
jax.jacrev(lambda a, b: a * b, argnums=(1,))(x3, 2.)
jax.jacfwd(lambda a: (a * 2, {'x': a}), has_aux=True)(x3)
jax.jacrev(lambda a: (a * 2, {'x': a, 's': 'text'}), has_aux=True)(x3)
jax.jacfwd(lambda z: z ** 2, holomorphic=True)(jnp.array([1 + 1j, 2.]))
jax.jacrev(lambda z: z ** 2, holomorphic=True)(jnp.array([1 + 1j, 2.]))
jax.jacfwd(lambda z: z ** 2)(jnp.array([1 + 1j, 2.]))
jax.jacrev(lambda z: z ** 2)(jnp.array([1 + 1j, 2.]))
jax.jacrev(lambda z: jnp.abs(z) ** 2)(jnp.array([1 + 1j, 2.]))
jax.jacfwd(lambda z: z * 1j)(x3)
jax.jacrev(lambda z: z * 1j)(x3)
jax.jacrev(lambda z: z * 1.)(jnp.arange(3))
jax.jacrev(lambda z: z * 1., allow_int=True)(jnp.arange(3))
jax.jacfwd(lambda z: z * 1.)(jnp.arange(3))
jax.jacfwd(lambda z: z * 1., holomorphic=True)(x3)
jax.jacfwd(lambda z: jnp.real(z), holomorphic=True)(x3 * 1j)
jax.jacrev(lambda z: jnp.int32(3))(x3)
jax.jacfwd(lambda z: jnp.int32(3))(x3)
jax.hessian(lambda d: (d['a'] * d['a'] * d['b']).sum())({'a': x3, 'b': 2.})
jax.hessian(lambda a, b: (a * a * b).sum(), argnums=(0, 1))(x3, 2.)
jax.hessian(lambda a: ((a * a).sum(), a), has_aux=True)(x3)
jax.hessian(lambda z: (z ** 3).sum(), holomorphic=True)(x3 * 1j)
jax.jacobian(lambda a: jnp.ones(2))(x3)
jax.jacfwd(lambda a: a)(jnp.zeros((0,)))
jax.jacfwd(lambda a, b: a * b, argnums=(0, 1))(x3.astype(jnp.float16), 2.)
jax.vmap(lambda: jnp.ones(2), axis_size=3)()
jax.vmap(lambda x: x, axis_size=4)(x3)
jax.vmap(lambda x: x, in_axes=None)(x3)
jax.vmap(lambda x: x, in_axes=None, axis_size=2)(x3)
jax.vmap(lambda x: x, out_axes=None)(x3)
jax.vmap(lambda x: 3., out_axes=None)(x3)
jax.vmap(lambda x: {'a': x, 'b': 2.}, out_axes={'a': 0, 'b': None})(x3)
jax.vmap(lambda x: {'a': x, 'b': 2.}, out_axes=(0, 0))(x3)
jax.vmap(lambda x: x, out_axes=-1)(jnp.ones((2, 3)))
jax.vmap(lambda x: x, out_axes=2)(jnp.ones((2, 3)))
jax.vmap(lambda x: x['a'] + x['b'], in_axes=({'a': 0, 'b': None},))({'a': x3, 'b': x3})
jax.vmap(lambda x: x, in_axes=(0, 0))(x3)
jax.vmap(lambda x: x, in_axes=((0, 0),))(x3)
jax.vmap(lambda x: x, in_axes=1.5)(x3)
jax.vmap(lambda x: x, in_axes=True)(x3)
jax.vmap(lambda x: x, in_axes=1)(x3)
jax.vmap(lambda x: x)(1.)
jax.vmap(lambda x, y: x)(x3, jnp.ones(2))
jax.vmap(lambda x, y: x + y, in_axes=1)(jnp.ones((2, 3)), y=jnp.ones((3, 2)))
jax.vmap(lambda: 1.)()
jax.vmap(lambda x: 1.)('s')
jax.vmap(lambda x: 's')(x3)
jax.vmap(lambda x: lax.psum(x, 'i'), axis_name='i')(x3)
jax.vmap(lambda x: x * 2, sum_match=True, out_axes=None)(x3)
jax.vmap(lambda x: lax.psum(x, 'j'), axis_name='i')(x3)
jax.make_jaxpr(lambda n, x: x * n, static_argnums=0)(3, 2.)
jax.make_jaxpr(lambda x: {'a': x}, return_shape=True)(x3)
jax.make_jaxpr(lambda x: x)('s')
jax.make_jaxpr(lambda x: x, static_argnums=3)(1.)
jax.make_jaxpr(lambda x, y: x, static_argnums=1)(1., [1])
jax.make_jaxpr(jnp.sin).__name__
jax.eval_shape(lambda x: {'a': x * 2}, x3)['a'].shape
jax.eval_shape(lambda x: x, 's')
jax.eval_shape(lambda x: 's', 2.)
jax.make_jaxpr(static)(2.)
jax.make_jaxpr(eager_add)(2.)
jax.grad(static)(2.)
jax.vmap(eager_add)(x3)
jax.jit(eager_add)(x3)
jax.named_call(lambda x: x * 2, name='twice')(2.)
off(lambda x: lax.scan(lambda c, y: (c + y, c), 0., x), x3)
off(lambda x: lax.scan(lambda c, y: (c + y, c), 0., x), jnp.zeros(0))
off(jax.vmap(lambda x: lax.cond(x > 1, lambda: x, lambda: -x)), x3)
off(jax.vmap(lambda x: lax.while_loop(lambda c: c < 5, lambda c: c + x + 1, x)), x3)
off(jax.vmap(lambda x: lax.switch(x.astype(int), [lambda: x, lambda: -x])), x3)
off(jax.grad(lambda x: lax.cond(x > 1, lambda: x, lambda: -x)), 2.)
off(jax.grad(jax.checkpoint(jnp.sin)), 2.)
off(lambda x: lax.map(lambda y: y * 2, x), x3)
solve2(A, b2)
jax.jacfwd(solve2, (0, 1))(A, b2)
jax.jacrev(solve2, (0, 1))(A, b2)
jax.vmap(solve2, (0, None))(jnp.stack([A, 2 * A]), b2)
jax.vmap(jax.jacrev(solve2), (None, 0))(A, jnp.stack([b2, 3 * b2]))
jax.jit(jax.hessian(lambda b: (solve2(A, b) ** 3).sum()))(b2)
jax.jvp(solve_tree, (A, b2), (A, b2))
jax.vmap(solve_tree, (None, 0))(A, jnp.stack([b2, 3 * b2]))
lax.custom_linear_solve(lambda x: x[:1], b2, lambda mv, b: b)
lax.custom_linear_solve(lambda x: x, b2, lambda mv, b: b[:1])
jax.grad(lambda b: lax.custom_linear_solve(lambda x: 2. * x, b, lambda mv, b: b / 2.).sum())(b2)
jax.grad(lambda b: lax.custom_linear_solve(lambda x: 2. * x, b, lambda mv, b: b / 2., symmetric=True).sum())(b2)
root(4.), jax.grad(root)(4.), jax.grad(jax.grad(root))(4.), jax.jvp(root, (4.,), (1.,))
jax.jit(jax.vmap(jax.value_and_grad(root)))(jnp.array([1., 4., 9.]))
root_aux(4.)
lax.custom_root(lambda x: (x, x), 1., newton, lambda g, y: y)
cv(1., 2.), jax.vmap(cv)(x3, x3), jax.vmap(cv, (0, None))(x3, 2.)
cv(1., y=2.)
jax.jit(jax.vmap(jax.vmap(cv)))(A, A)
jax.vmap(lambda a: jax.jvp(cv, (a, a), (a, a)))(x3)
jax.grad(times)(2., 3)
jax.jvp(jax.vmap(cv), (x3, x3), (x3, x3))
jax.grad(lambda a: jax.vmap(cv)(a, a).sum())(x3)
jax.grad(cv)(1., 2.)
jax.vmap(cv_tree, ({'a': 0, 'b': None}, None))({'a': x3, 'b': 2.}, 3.)
vmapped(lambda n, b, x, y: (x + y, (True,)))
vmapped(lambda n, b, x, y: ((x + y,), (True,)))
vmapped(lambda n, b, x, y: (1., False))
custom_vmap(lambda x: x)(1.)
jax.vmap(sequential_vmap(lambda x, y: {'a': x * y}), (0, None))(x3, 2.)
jax.vmap(jax.vmap(sequential_vmap(jnp.sin)))(A)
jax.make_jaxpr(jax.vmap(cv))(x3, x3)
zeros_seen(lambda g: lambda x: jax.jvp(lambda x: g(x, 3.), (x,), (1.,)), 2.)
zeros_seen(lambda g: jax.grad(lambda x: g(x, 3.)), 2.)
zeros_seen(lambda g: jax.vmap(jax.grad(lambda x: g(x, 3.))), x3)
zeros_seen(lambda g: jax.grad(lambda x: jax.vmap(lambda x: g(x, 3.))(x).sum()), x3)
zeros_seen(lambda g: jax.grad(jax.jit(lambda x: g(x, 3))), 2.)
perturbed_seen(lambda g: jax.grad(lambda x: g(x, 3.)[0]), 2.)
perturbed_seen(lambda g: jax.vmap(jax.grad(lambda x: g(x, 3.)[0])), x3)
perturbed_seen(lambda g: jax.grad(lambda x: jax.vmap(lambda x: g(x, 3.)[0])(x).sum()), x3)
perturbed_seen(lambda g: jax.grad(jax.jit(lambda x: g(x, 3)[0])), 2.)
jax.grad(remat_sin)(1.), jax.vmap(jax.grad(remat_sin))(x3), \
jax.grad(jax.checkpoint(lambda x: jnp.exp(remat_sin(x))))(1.)
jax.grad(jax.jit(close_over_vjp))(2.)
jax.grad(close_over_vjp)(2.)
graded(1., 2.), jax.grad(graded, (0, 1))(1., 2.), jax.vmap(jax.grad(graded))(x3, x3)
jax.jvp(graded, (1., 2.), (1., 1.))
scale(2., 3.), jax.jvp(lambda x: scale(2., x), (3.,), (1.,)), jax.grad(lambda x: scale(2., x))(3.)
jax.linear_transpose(lambda x: scale(2., x), 3.)(1.)
jax.linear_transpose(lambda x: linear_call(lambda r, x: x * r, lambda r, t: (t, t), 2., x), 3.)(1.)
zero_from_primal(2.), zero_from_primal(x3), repr(zero_from_primal(2., symbolic_zeros=True))
custom_vjp_primal_tree_values({'a': CustomVJPPrimal(1., True), 'b': (CustomVJPPrimal(2., False),)})
jax.jit(lambda x: len(jax.closure_convert(lambda y: y * x * x3, x)[1]) * x)(2.), \
len(jax.closure_convert(lambda y: y * 2. * x3, 1.)[1])
jax.make_jaxpr(jax.checkpoint(jnp.sin))(1.)
jax.make_jaxpr(jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))))(1.)
saves(None), saves(P.everything_saveable), saves(P.nothing_saveable), saves(P.save_only_these_names('a')), \
saves(P.save_only_these_names('a', 'b'))
saves(P.save_any_names_but_these('a')), saves(P.save_anything_except_these_names('a', 'b'))
saves(P.save_from_both_policies(P.save_only_these_names('a'), P.save_only_these_names('b'))), \
saves(lambda *a, **k: Recompute)
saves(P.save_and_offload_only_these_names(names_which_can_be_saved=['a'], names_which_can_be_offloaded=['b'], \
offload_src='device', offload_dst='pinned_host'))
P.save_and_offload_only_these_names(names_which_can_be_saved=['a'], names_which_can_be_offloaded=['a'], \
offload_src='device', offload_dst='pinned_host')
dots(None), dots(P.checkpoint_dots), dots(P.dots_with_no_batch_dims_saveable), dots(P.everything_saveable)
jax.grad(jax.checkpoint(named, policy=lambda *a, **k: 3))(x3)
jax.grad(jax.checkpoint(lambda x, n, *, m=1: x ** n * m, static_argnums=(1,), static_argnames=('m',)))(2., 3, m=4)
jax.checkpoint(lambda x: x, concrete=True)
jax.checkpoint(lambda x: x if x > 0 else -x)(2.)
jax.jit(jax.grad(jax.checkpoint(lambda x: jnp.sin(x @ x).sum(), \
policy=P.offload_dot_with_no_batch_dims('device', 'pinned_host'))))(A)
jet(jnp.sin, (0.5,), ((1., 0., 0.),))
jet(lambda x, y: x * y / (1 + x), (0.5, 2.), ((1., 0., 0.), (1., 1., 1.)))
jet(lambda x, y: x * y, (0.5, 2.), ((1., 0., 0.), (1., 1.)))
jet(lambda d: d['a'], ({'a': 0.5},), ({'a': [1., 0.]},))
jet(jnp.exp, (0.5,), ((1., 0., 0.),), factorial_scaled=False)
jet(lambda x: (x, 2. * x), (0.5,), ((1., 0.),))
jet(lambda x: 3., (0.5,), ((1., 0.),))
jet(jnp.max, (jnp.array([2., 1.]),), ((jnp.array([1., 3.]), jnp.array([1., 3.])),))
jet(lambda x: jnp.tanh(x) ** 2.5 + jnp.log(x) * jax.nn.sigmoid(x), (0.5,), ((1., 2., -1., 0.5),))
jet(lambda x: (jnp.sin(x) @ x, jnp.cumsum(x)), (x3,), ((x3 + 1, x3 * 2, x3),))
jax.vmap(lambda x: jet(jnp.sin, (x,), ((1., 0.),)))(x3)
jax.grad(lambda x: jet(jnp.sin, (x,), ((1., 0.),))[1][1])(1.)
residuals_of(lambda x: lax.scan(lambda c, _: (jnp.sin(W@c), None), x, None, length=7)[0], y3)
residuals_of(lambda W, x: lax.scan(lambda c, _: (jnp.sin(W@c), None), x, None, length=7)[0], W, y3)
residuals_of(lambda W, x: lax.scan(lambda c, _: (jnp.sin(W)@c, None), x, None, length=7)[0], W, y3)
residuals_of(lambda a, x: lax.scan(lambda c, _: (c*jnp.exp(a), None), x, None, length=7)[0], 2., y3)
residuals_of(lambda x: lax.fori_loop(0, 7, lambda i, c: jnp.sin(c), x), y3)
residuals_of(lambda x: lax.fori_loop(0, 7, lambda i, c: 2*c, x), y3)
residuals_of(lambda x: lax.scan(jax.checkpoint(lambda c, _: (jnp.sin(jnp.sin(c)), None)), x, None, length=7)[0], y3)
residuals_of(lambda W, x: lax.scan(jax.checkpoint(lambda c, _: (jnp.sin(jnp.sin(W@c)), None)), x, None, \
length=7)[0], W, y3)
residuals_of(lambda W, x: lax.scan(lambda c, _: (jax.jit(lambda c: jnp.sin(jnp.sin(W)@c))(c), None), x, None, \
length=7)[0], W, y3)
jax.linear_transpose(lambda x: lax.fori_loop(0, 3, lambda i, c: c*2., x), 1.)(1.)
jax.linear_transpose(lambda x: lax.fori_loop(0, 3, lambda i, c: c*i, x), 1.)(1.)
jax.linear_transpose(lambda x: lax.cond(True, lambda y: 2*y, lambda y: 3*y, x), 1.)(1.)
jax.linear_transpose(lambda x: lax.while_loop(lambda c: c[0]<3, lambda c: (c[0]+1, c[1]*2.), (0, x))[1], 1.)(1.)
jax.grad(lambda x: lax.while_loop(lambda c: c<3, lambda c: c*2, x))(1.)
jax.grad(lambda x: lax.while_loop(lambda c: c[0]<3, lambda c: (c[0]+1, c[1]), (0, x))[1])(1.)
jax.grad(lambda x: x*lax.while_loop(lambda c: c<3, lambda c: c*2, 1.))(1.)
jax.jvp(lambda x: lax.while_loop(lambda c: c<3, lambda c: c*x, x), (1.5,), (1.,))
jax.grad(lambda x, n: lax.fori_loop(0, n, lambda i, c: c*2., x))(1., 3)
jax.jit(jax.grad(lambda x, n: lax.fori_loop(0, n, lambda i, c: c*2., x)))(1., 3)
jax.hessian(lambda x: lax.scan(lambda c, y: (jnp.sin(c*y), c*c), x[0], x)[1].sum())(y3)
jax.grad(lambda x: lax.cond(x>1, jnp.sin, jnp.cos, x))(2.)
lax.cond(True, lambda x: x+1, lambda x: x-1, operand=3.)
lax.cond(True, lambda x: 1, lambda x: 2, operand=None)
lax.cond(True, lambda x: (x is None)*1., lambda x: 2., operand=None)
lax.cond(True, lambda: 1, lambda: 2)
lax.cond(pred=True, true_fun=lambda x: x+1, false_fun=lambda x: x-1, operand=1.)
lax.cond(True, lambda x: x+1, lambda x: x-1, 1., operand=3.)
lax.cond(True, lambda x: x, lambda x: (x, x), 1.)
lax.cond(True, lambda x: x, lambda x: x.astype(int), jnp.float32(1.))
lax.cond(True, lambda x: x, lambda x: jnp.ones(3), jnp.float32(1.))
lax.cond(True, lambda x: 1., lambda x: x, jnp.float32(1.))
lax.cond(3, lambda x: 1., lambda x: x, jnp.float32(1.))
lax.cond(jnp.array([True]), lambda x: 1., lambda x: x, jnp.float32(1.))
lax.cond("s", lambda x: 1., lambda x: x, jnp.float32(1.))
lax.cond(True, 1, lambda x: x, jnp.float32(1.))
lax.cond(True, lambda x: 1., lambda x: 2., "s")
lax.cond(True, lambda x: 1., lambda x: 2., None)
lax.switch(5, [lambda x: x, lambda x: -x], 1.)
lax.switch(-5, [lambda x: x, lambda x: -x], 1.)
lax.switch(1, [lambda x: x, lambda x: -x], operand=1.)
lax.switch(1, [lambda x: 1., lambda x: 2.], operand=None)
lax.switch(1, [], 1.)
lax.switch(1., [lambda x: x], 1.)
lax.switch(1, [lambda x: x], 1.)
lax.switch(True, [lambda x: x, lambda x: -x], 1.)
lax.switch(jnp.array([1]), [lambda x: x, lambda x: -x], 1.)
jax.vmap(lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x))(jnp.array([True, False, True]), y3)
jax.vmap(jax.grad(lambda x: lax.cond(x>1.5, lambda y: y*y, lambda y: 3*y, x)))(y3)
jax.vmap(lambda p, x: lax.switch(p, [jnp.sin, jnp.cos, jnp.tan], x))(jnp.arange(3), y3)
jax.vmap(lambda p, x: lax.switch(p, [jnp.sin, jnp.cos], x))(jnp.array([-3, 0, 9]), y3)
jax.vmap(lambda x: lax.while_loop(lambda c: c<20, lambda c: c*2, x))(y3)
jax.vmap(lambda x: jax.jvp(lambda x: lax.while_loop(lambda c: c<20, lambda c: c*(x+1), x+1), (x,), (1.,)))(y3)
jax.vmap(lambda n, x: lax.fori_loop(0, n, lambda i, c: c*2, x))(jnp.arange(3), y3)
lax.scan(lambda c, x: ((c, c), x), 1., y3)
lax.scan(lambda c, x: (c.astype(int), x), jnp.float32(1), y3)
lax.scan(lambda c, x: (jnp.ones(2), x), jnp.float32(1), y3)
lax.scan(lambda c, x: c, 1., y3)
lax.scan(lambda c, x: (c, c), 1., y3, length=4)
lax.scan(lambda c, x: (c, c), 1., None)
lax.scan(lambda c, x: (c, c), 1., (y3, jnp.ones(2)))
lax.scan(lambda c, x: (c, c), 1., 1.)
lax.scan(lambda c, x: (c+x, c), 0., jnp.arange(7.), unroll=3)
lax.scan(lambda c, x: (c+x, c), 0., jnp.arange(7.), unroll=0)
lax.scan(lambda c, x: (c+x, c), 0., jnp.arange(7.), unroll=-1)
lax.scan(lambda c, x: (c+x, c), 0., jnp.arange(4.), reverse=True)
lax.scan(lambda c, x: (c+x, c), 0., jnp.zeros((0,)))
jax.grad(lambda x: lax.scan(lambda c, y: (c*y, c), 1., x, _split_transpose=True)[0])(y3)
lax.while_loop(lambda c: c<3, lambda c: (c, c), 1.)
lax.while_loop(lambda c: c, lambda c: c, 1.)
lax.while_loop(lambda c: c<3, lambda c: c, jnp.ones(3))
lax.while_loop(lambda c: (c<3,), lambda c: c, 1.)
lax.while_loop(lambda c: c<3, lambda c: c+jnp.float32(1), 1)
lax.fori_loop(0., 3, lambda i, c: c, 1.)
lax.fori_loop(jnp.int8(0), jnp.int32(3), lambda i, c: c, 1.)
lax.fori_loop(0, 5, lambda i, c: c+i, 0, unroll=2)
jax.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c+i, 0, unroll=2))(3)
jax.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c+i, 0, unroll=True))(3)
lax.fori_loop(5, 0, lambda i, c: c+i, 0)
lax.map(lambda x: {'a': x*2}, jnp.arange(7.), batch_size=3)
lax.map(lambda x: x*2, jnp.arange(3.), batch_size=10)
lax.map(lambda t: t[0]+t[1], (jnp.arange(3.), jnp.ones(3)), batch_size=2)
jax.grad(lambda x: lax.map(jnp.sin, x, batch_size=2).sum())(y3)
lax.map(lambda x: x*2, jnp.zeros(0))
lax.associative_scan(jnp.add, jnp.arange(5.), reverse=True)
lax.associative_scan(jnp.maximum, jnp.arange(6.).reshape(2, 3)[:, :: -1], axis=1)
lax.associative_scan(lambda a, b: a@b, jnp.stack([W]*5))[-1]
jax.grad(lambda x: (lax.associative_scan(jnp.multiply, x)**2).sum())(y3)
jax.vmap(lambda x: lax.associative_scan(jnp.add, x))(jnp.ones((2, 3)))
lax.associative_scan(jnp.add, (jnp.ones(3), jnp.ones(2)))
jax.vmap(lambda x: (lax.cumsum(x), lax.cumprod(x, reverse=True), lax.cummax(x), \
lax.cummin(x), lax.cumlogsumexp(x)))(jnp.arange(6.).reshape(2, 3))
jax.vmap(lambda x: (lax.cumsum(x), lax.cumlogsumexp(x, reverse=True)), in_axes=1, \
out_axes=1)(jnp.arange(6.).reshape(2, 3))
jax.make_jaxpr(lambda x, n: lax.fori_loop(0, n, lambda i, c: c * 2., x))(1., 3)
jax.make_jaxpr(lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1]), (0, x)))(1.)
jax.make_jaxpr(lambda W, x: lax.scan(lambda c, _: ((c[0], c[0] @ c[1]), None), (W, x), None, length=3))(W, y3)
residuals_of(lambda W, x: lax.scan(lambda c, _: ((c[0], jnp.sin(c[0]) @ c[1]), None), (W, x), None, \
length=7)[0][1], W, y3)
jax.experimental.ode.odeint(lambda y, t, a: {'p': y['v'], 'v': -a * jnp.sin(y['p'])}, {'p': 1., 'v': 0.}, \
jnp.linspace(0., 2., 4), 2.)
jax.grad(lambda a, y0, ts: jax.experimental.ode.odeint(lambda y, t: -a * y * t, y0, ts)[1:].sum(), \
(0, 1, 2))(2., 1., x3 / 2)
jax.experimental.ode.odeint(lambda y, t: -y, 's', x3)
jax.jvp(lambda a: jax.experimental.ode.odeint(lambda y, t: -a * y, 1., x3), (1.,), (1.,))
"""


def expressions() -> list[str]:
    return CASES.strip().splitlines()
