"""Expressions over arrays that are divided along explicit axes of a mesh, run by weft and by jax alike: types, values,
or the class of the error.
"""

from frozen import split

SETUP = """
mesh = jax.make_mesh((2, 4), ("x", "y"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)
put = lambda v, *spec: jax.device_put(v, jax.sharding.NamedSharding(mesh, P(*spec)))
grid = np.arange(32, dtype=np.float32).reshape(8, 4)
a, b = put(grid, "x", "y"), put(grid.reshape(4, 8), "y", None)
v, i, r = put(grid[:, 1], "x"), put(np.arange(8, dtype=np.int32), "x"), put(grid)
y, z = put(grid, None, "y"), put(grid, "x")
images = put(np.ones((2, 4, 8, 8), np.float32), "x")
matrices = put(np.stack([np.eye(4, dtype=np.float32) * k for k in (2, 3)]), "x")
reshard, auto_axes, explicit_axes = jax.sharding.reshard, jax.sharding.auto_axes, jax.sharding.explicit_axes
smap = jax.shard_map
dots = lax.dot_general
"""

CASES = """
a; r; v; a + 1; a + a; a + r; a + a.sum(0); v[:, None] * a; -a; jnp.sin(a); a > 3; a.astype('int32'); a ** 2
jnp.exp(v); a.sum(0); a.sum(1); a.sum(); a.max(0); a.min(); a.prod(1); a.sum(1, keepdims=True); a.mean(0)
jnp.argmax(a, 0); jnp.argmin(v); (a > 0).any(0); jnp.var(a, axis=1); jnp.linalg.norm(a, axis=1); jax.nn.softmax(a)
jax.nn.relu(a); a.T; jnp.moveaxis(a, 0, 1); v[None]; v[None].squeeze(0); a[None, ..., None]
jnp.broadcast_to(v, (3, 8)); jnp.ravel(a); a.reshape(32); a.reshape(2, 4, 4); a.reshape(4, 2, 4); a.reshape(8, 2, 2)
a.reshape(8, 4, 1); a.reshape(1, 8, 4); a.reshape(16, 2); a.reshape(2, 16); v.reshape(2, 4); v.reshape(4, 2)
z.reshape(32); y.reshape(32); r.reshape(2, 16); reshard(v, P('y')).reshape(4, 2); reshard(v, P('y')).reshape(2, 4)
reshard(v, P(('x', 'y'))).reshape(2, 4); reshard(v, P(('x', 'y'))).reshape(4, 2)
a.reshape(8, 2, 2, out_sharding=P('x')); jnp.ravel(a, out_sharding=P('x')); v[::-1]; v[2]; v[i]; r[i]; r[2]; r[:, 2]
a[:, :2]; y[0]; y[jnp.array(0)]; y[jnp.array([1, 2])]; lax.slice(a, (0, 0), (4, 4)); lax.slice(a, (2, 0), (8, 4))
lax.slice(a, (0, 0), (8, 4), (2, 1)); lax.slice(a, (0, 0), (8, 2)); jnp.split(r, 2)[0]
lax.dynamic_slice(r, (0, 0), (8, 2)); lax.dynamic_slice(a, (0, 0), (4, 4)); lax.dynamic_slice(a, (0, 0), (8, 1))
lax.dynamic_update_slice(a, a, (0, 0)); lax.dynamic_update_slice(r, a, (0, 0)); v.at[i].get(out_sharding=P('x'))
r.at[i].get(out_sharding=P('x', None)); a.at[:4].get(out_sharding=P())
r.at[jnp.array([1, 2])].get(out_sharding=P(None, 'y')); a.at[0].set(1.); v.at[i].set(1.); v.at[i].add(v)
r.at[i].add(1.); v.at[i].add(1., out_sharding=P('x')); y.at[0].set(1.); y.at[0].set(jnp.ones(4)); r.at[0].set(1.)
jnp.take(r, i, axis=0); jnp.take(y, jnp.array([1, 2]), axis=0); jnp.take(v, jnp.array([1, 2]))
jnp.concatenate([a, a]); jnp.concatenate([a, a], 1); jnp.concatenate([a, r]); jnp.concatenate([r, r])
jnp.stack([v, v]); jnp.stack([a, a], axis=1); jnp.pad(v, 1); lax.pad(a, 0., ((1, 2, 0), (0, 0, 0))); jnp.pad(r, 1)
jnp.tile(v, 2); jnp.tile(r, 2); jnp.repeat(r, 2, axis=0, total_repeat_length=16)
jnp.repeat(r, 2, axis=0, out_sharding=P('x')); lax.sort(v); lax.sort(a, dimension=0); lax.sort(z); jnp.argsort(r, 0)
lax.top_k(z, 2)[0]; lax.top_k(a, 2)[0]; lax.cumsum(z, axis=1); lax.cumsum(a, axis=0); jnp.cumsum(r, 0)
jnp.where(a > 0, a, 0.); lax.select(a > 0, a, a); lax.clamp(0., a, 1.); jnp.clip(a, 1, 3)
lax.select_n(jnp.bool_(True), a, a); a @ b; r @ b; v @ r; a @ r.T; jnp.dot(r, b, out_sharding=P('x', None))
jnp.dot(a, b, out_sharding=P('x', None)); jnp.dot(a, b, out_sharding=P('x', 'y'))
jnp.matmul(a, b, out_sharding=P(None, 'x')); jnp.outer(v, jnp.ones(3))
jnp.tensordot(a, b, axes=1, out_sharding=P('x')); jnp.einsum('ij,jk->ik', a, b, out_sharding=P('x'))
dots(a, r, (((), ()), ((0,), (0,)))); dots(a, a, (((), ()), ((0, 1), (0, 1)))); dots(v, v, (((), ()), ((), ())))
dots(a, y, (((), ()), ((0,), (0,)))); dots(v, v, (((0,), (0,)), ((), ()))); dots(a, r, (((1,), (1,)), ((), ())))
lax.conv_general_dilated(images, jnp.ones((1, 4, 3, 3)), (1, 1), 'SAME')
lax.conv_general_dilated(reshard(images, P(None, 'y')), jnp.ones((1, 4, 3, 3)), (1, 1), 'SAME')
lax.reduce_window(a, 0., lax.add, (2, 1), (1, 1), 'SAME'); lax.reduce_window(v, 0., lax.add, (2,), (1,), 'VALID')
lax.reduce(a, 0., lax.add, (0,)); jnp.fft.fft(z).real; lax.rev(v, (0,)); lax.bitcast_convert_type(v, 'int32')
jnp.linalg.eigh(matrices)[0]; lax.expand_dims(v, (0,)); lax.optimization_barrier(a); jnp.zeros_like(a)
jnp.ones_like(a); jnp.full_like(v, 2); jnp.zeros((8, 4), out_sharding=P('x')); jnp.ones(8, out_sharding=P('y'))
jnp.full((8,), 3., out_sharding=P('x')); jnp.arange(8, out_sharding=P('x')); jnp.arange(2, 10, out_sharding=P('x'))
jnp.zeros((8, 4)); jnp.zeros((6, 4), out_sharding=P('y')); jnp.eye(8); jax.nn.one_hot(i, 5)
lax.broadcasted_iota('int32', (8, 4), 0, out_sharding=P('x'))
lax.broadcast_in_dim(v, (8, 4), (0,), out_sharding=P('x', 'y'))
lax.broadcast_in_dim(v, (8, 4), (0,), out_sharding=P(None, 'y')); lax.reduce_sum(a, (1,), out_sharding=P('x'))
jax.random.uniform(jax.random.key(0), (8, 4), out_sharding=P('x'))
jax.random.normal(jax.random.key(0), (8,), out_sharding=P('y'))
jax.random.randint(jax.random.key(0), (8,), 0, 9, out_sharding=P('x'))
jax.random.bits(jax.random.key(0), (8,), out_sharding=P('x'))
jax.vmap(lambda k: jax.random.normal(k, (3,)))(reshard(jax.random.split(jax.random.key(0), 8), P('x')))
jax.random.key_data(reshard(jax.random.split(jax.random.key(0), 8), P('x'))); reshard(a, P('y')); reshard(a, P())
reshard(np.ones(8, 'float32'), P('y')); reshard({'k': r}, P('x'))['k']; reshard(v, P('q')); reshard(v, None)
jax.device_put(v, P('y')); jax.device_put(v, jax.sharding.NamedSharding(mesh, P('y')))
lax.with_sharding_constraint(v, P('x')); lax.with_sharding_constraint(a, P('y')); jax.jit(lambda v: a * v[:, None])(v)
jax.jit(lambda a: a.sum(0), out_shardings=P())(a); jax.jit(lambda a: a.T)(a)
jax.jit(lambda x: x * 2, out_shardings=P('y'))(v); jax.jit(lambda x: reshard(x, P('y')))(v); jax.jit(jnp.sin)(a)
jax.checkpoint(jnp.sin)(a); jax.jit(lambda x: jnp.dot(x, b, out_sharding=P('x')))(a)
lax.scan(lambda c, x: (c + x, c), v * 0, jnp.stack([v, v])); lax.scan(lambda c, x: (c + x, c), r[0] * 0, a)
lax.fori_loop(0, 3, lambda i, c: c * 2, a); lax.fori_loop(0, 3, lambda i, c: r, a); lax.map(lambda x: x * 2, r)
lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + 1), (0, a)); lax.associative_scan(jnp.add, r)
lax.cond(True, lambda x: x, lambda x: x * 2, a); lax.cond(True, lambda x: x, lambda x: r, a)
lax.switch(1, [lambda x: x, lambda x: x * 2], v); jax.vmap(lambda x: x * 2)(a); jax.vmap(lambda x: x.sum())(a)
jax.vmap(lambda x: x.sum(), in_axes=1)(a); jax.vmap(lambda x, y: x * y)(a, r); jax.vmap(lambda x, y: x * y)(a, v)
jax.vmap(lambda x: x @ b)(r); jax.vmap(lambda x: jnp.dot(x, r.T, out_sharding=P()))(a)
jax.vmap(lambda x: jnp.ones(4))(v); jax.vmap(lambda x: jnp.zeros(3).at[1].set(x))(v); jax.vmap(jnp.sin, out_axes=1)(a)
jax.grad(lambda a: (a * 2).sum())(a); jax.grad(lambda a: (a.sum(0) ** 2).sum())(a)
jax.grad(lambda a: a.max(0).sum())(a); jax.grad(lambda v: jnp.broadcast_to(v, (4, 8)).sum())(v)
jax.grad(lambda v: (v[:, None] * a).sum())(v); jax.grad(lambda a: (a.reshape(32) ** 2).sum())(a)
jax.grad(lambda r: (reshard(r, P('x')) ** 2).sum())(r)
jax.grad(lambda r: (r.at[i].get(out_sharding=P('x', None)) ** 2).sum())(r)
jax.grad(lambda a, b: (jnp.dot(a, b, out_sharding=P('x', None)) ** 2).sum(), argnums=(0, 1))(a, b)
jax.grad(lambda a: lax.scan(lambda c, _: (c * a, None), a, None, length=3)[0].sum())(a)
jax.grad(lambda r: (jnp.concatenate([r, r]) ** 2).sum())(r); jax.grad(lambda z: jax.nn.softmax(z)[:, 0].sum())(z)
jax.jvp(lambda a: a * a, (a,), (a,))[1]; jax.jacfwd(lambda v: v ** 2)(v); jax.jacrev(lambda v: v ** 2)(v)
jax.hessian(lambda v: (v ** 3).sum())(v); jax.vjp(lambda a: a.sum(0), a)[1](jnp.ones(4, out_sharding=P('y')))[0]
jax.linearize(lambda a: a.sum(0), a)[1](a); auto_axes(lambda x: x[::2], out_sharding=P('x'))(v)
auto_axes(lambda x: x * 2, axes='y', out_sharding=P('x', 'y'))(a)
auto_axes(lambda x, y: x + y, out_sharding=P('x'))(v, 1.); auto_axes(lambda x: x)(v)
jax.jit(auto_axes(jnp.sort, out_sharding=P('x')))(v)
auto_axes(lambda x: explicit_axes(lambda w: w * 2, in_sharding=P('x'))(x), out_sharding=P('x'))(v)
smap(lambda x: x * 2, in_specs=P('x'), out_specs=P('x'))(v)
smap(lambda x: x * 2, in_specs=P('x'), out_specs=P('x'))(a)
smap(lambda x: x * 2, in_specs=P('x'), out_specs=P('x'))(r); smap(lambda x: x * 2, out_specs=P('x', 'y'))(a)
smap(lambda x: x * 2, out_specs=P('x', 'y'))(np.ones((8, 4), 'float32'))
smap(lambda x: x * 2, out_specs=P('x'), axis_names={'x'})(a)
smap(lambda x: lax.psum(x, 'x'), in_specs=P('x'), out_specs=P())(v)
smap(lambda x: x * 2, in_specs=P(None, 'y'), out_specs=P(None, 'y'), axis_names={'y'})(a)
smap(lambda x: lax.psum(x, 'x'), in_specs=P('x'), out_specs=P(), axis_names={'x'})(a)
jax.smap(lambda x: x * 2, in_axes=0, out_axes=0, axis_name='x')(a)
jax.smap(lambda x: x * 2, out_axes=0, axis_name='x')(a)
jax.grad(lambda a: smap(lambda x: lax.psum((x * x).sum(), ('x', 'y')), in_specs=P('x', 'y'), out_specs=P())(a))(a)
reshard(jnp.dot(a, b, out_sharding=P('x', None, unreduced={'y'})), P('x', None))
jax.grad(lambda a, b: reshard(jnp.dot(a, b, out_sharding=P('x', None, unreduced={'y'})), P('x', None)).sum())(a, b)
jnp.where(a > 0, a, r); v[:4]; a[:4]; a.reshape(32, 1); jax.jit(lambda u: u + u)(v); P('x', unreduced={'y'})
P(('x',)) == P('x'); P('x', unreduced={'x'}); P('x') + P('y')
"""


def expressions() -> list[str]:
    return list(split(CASES))


def outcome(text: str, scope: dict, leaves):
    """The type and the value of each array of an expression's result; or the class of its error."""
    np, typeof = scope["np"], scope["jax"].typeof
    try:
        out = eval(text, scope)
        flat = [x for x in leaves(out) if hasattr(x, "sharding")]
        if not flat:
            return repr(out)
        return [[typeof(x).str_short(short_dtypes=True), np.asarray(x, float).tolist()] for x in flat]
    except Exception as e:
        return {"error": [c.__name__ for c in type(e).__mro__ if c.__name__ not in ("object", "BaseException")]}
