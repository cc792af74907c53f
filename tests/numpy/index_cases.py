"""Indexing and `.at[]` in full, and what every family says of bad input: expressions whose results or error classes
must be those of real JAX.
"""

import re

from frozen import split

SETUP = """
x = jnp.arange(12.).reshape(3, 4) - 5
t = jnp.arange(24.).reshape(2, 3, 4)
v = jnp.array([3., 1., 2.])
i = jnp.array([2, 0, 1])
n = jnp.array([5, -5, 7, 0])
b = jnp.array([True, False, True])
far = jnp.array([5, -9, 1])
w = jnp.cos(jnp.arange(12.)).reshape(3, 4)
e = jnp.zeros((0, 3))
c = jnp.array([1 + 2j, -3j, 2.])
u = jnp.array([5, 3, 200], 'uint8')
"""

INDICES = """0; -1; 1, 2; (..., 0); None, 1; slice(1, None), slice(None, None, 2); slice(None, None, -1); :, ::-2; 1:1
10:; -2:; ::-1, 1:3; i; i, 0; 0, i; :, i; i[:, None], i; None, i
i, None, i; b; b, 1; x > 0; jnp.array(1); jnp.array(-1), 1:; np.array([0, 2]); np.int64(1); True; False; None, True
..., i; 1:, i; i, ::2; i, ::-1; i[:2], -1; jnp.zeros((0,), int); (); ...
np.array([True, False, True]); :, np.array([True, False, True, True]); jnp.array([[0, 1], [2, 2]]), 1
jnp.array([0, 0, 0]); i.astype('uint8'), i; -i; 1, None, ::-1; 0, jnp.array([3, 1]), None"""
DEEP = (
    "0, :, i; :, i, 1; i[:2], ..., 0; :, i, ::2; 0, i, ::-1; i[:2], :, i[:2]; i[:2, None], None, i; None, :, i, i; 1,"
    " ..., i; b[:2]; b[:2], :, i[:2]; t > 5; :, b; :, :, -1; ..., None, i, i; :, x > 0; 0, b, None, i[:2]"
)
CALLS = (
    "set(2.)",
    "add(2.)",
    "multiply(3.)",
    "divide(4.)",
    "power(2.)",
    "min(-1.)",
    "max(1.)",
    "subtract(1.)",
    "apply(jnp.sin)",
    "get()",
)
FAR = "far; 7; -9; far, 0; i, far; far[:, None], far; 3:9; jnp.array(9); 0, jnp.array([4, -5])"
MODES = (
    "None",
    "'drop'",
    "'fill'",
    "'clip'",
    "'wrap'",
    "'promise'",
    "'promise_in_bounds'",
    "jax.lax.GatherScatterMode.CLIP",
    "3",
)
INTS = ("int8", "int16", "int32", "uint8", "uint16", "uint32", "int4", "uint4")

SINGLE = """
x.at[far].get(mode='fill', fill_value=7.); x.at[far].get(mode='fill', fill_value=jnp.nan); n.at[far].get(mode='fill')
n.at[far].get(mode='fill', fill_value=-1); u.at[far].get(mode='fill'); b.at[far].get(mode='fill')
c.at[far].get(mode='fill'); n.at[far].get(fill_value=3); x.at[i].get(indices_are_sorted=True)
x.at[jnp.array([0, 1])].set(1., indices_are_sorted=True, unique_indices=True)
x.at[-1].get(wrap_negative_indices=False, mode='fill'); x.at[-i].set(9., wrap_negative_indices=False)
x.at[jnp.array([-1])].get(wrap_negative_indices=False, mode='clip')
x.at[0].mul(2.); n.at[0].add(1.7); n.at[0].set(2.9); n.at[1].divide(2); n.at[1].power(2); u.at[0].add(255)
u.at[0].set(-1); b.at[0].set(0); b.at[0].add(True); b.at[:].multiply(False)
c.at[0].add(1.); x.at[0].set(1j); x.at[0].set(True); x.at[0].set(np.float64(1)); x.at[i, i].add(v); x.at[i].set(x[::-1])
x.at[:, 0].set(v); x.at[0].set(jnp.arange(4)); x.at[jnp.array([1, 1])].add(jnp.arange(8.).reshape(2, 4))
jnp.float32(3).at[()].set(2.); jnp.float32(3).at[...].add(2.); e.at[0].set(1.); e[i]; e[:, i]; e.at[:, 0].add(1.)
jnp.zeros((3, 0)).at[i].get(); v.at[jnp.array([], int)].set(1.); x.at[1].apply(lambda r: r * 2)
x.at[jnp.array([0, 0])].apply(lambda r: r + 1)
jax.jit(lambda a, k: a[k])(x, 1); jax.jit(lambda a, k: a[k])(x, i); jax.jit(lambda a, k: a[:, k, None])(x, -1)
jax.jit(lambda a, k: a[k:])(x, 1); jax.jit(lambda a, k: a[k:k + 2])(x, 1)
jax.jit(lambda a: a[np.array([True, False, True])])(x)
jax.jit(lambda a, m: a[m])(x, x > 0); jax.jit(lambda a, m: a.at[m].set(0.))(x, x > 0)
jax.jit(lambda a, m: a.at[m].add(1.))(x, b); jax.jit(lambda a, m: a.at[m].set(a))(x, x > 0)
jax.jit(lambda a, m: a.at[m, 0].set(1.))(x, b); jax.jit(lambda a, m: a.at[0, m].set(1.))(x.T, b)
jax.jit(lambda a, m: a.at[m].get())(x, b); jax.jit(lambda a, m: a[m, 0])(x, b)
jax.jit(lambda a, k: a.at[k].set(5.))(x, 7); jax.jit(lambda a, k: a.at[k, ::-1].min(0.))(x, i)
jax.jit(lambda a: a.at[jnp.nonzero(a > 0, size=3)].set(0.))(x)
jax.jit(lambda a: a[jnp.where(jnp.array([True, False, True]))])(x); jax.jit(lambda a: a[a.shape[0] - 1])(x)
jax.jit(lambda a, k: a[(k, k)])(x, 1); jax.jit(lambda a, m: a[m])(v, True)
jax.jit(lambda a, m: a.at[m].max(1.))(x, x < 0); jax.jit(lambda a, m: a.at[m].multiply(2.))(x, b)
jax.vmap(lambda a, k: a[k])(x, i); jax.vmap(lambda a, k: a.at[k].set(0.))(x, i); jax.vmap(lambda k: x[k, 1:])(i)
jax.vmap(lambda k: x.at[k].add(1.))(i); jax.vmap(lambda a: a[i], 1)(x)
jax.vmap(lambda a, k: a[k][::-1], (0, None))(t, jnp.array(1))
jax.grad(lambda a: (a[i] ** 2).sum())(x); jax.grad(lambda a: (a[i, ::-1] * w).sum())(x)
jax.grad(lambda a: (a[x > 0] ** 2).sum())(x); jax.grad(lambda a: a[jnp.array([0, 0, 1])].sum())(x)
jax.grad(lambda a: a.at[far].get(mode='fill', fill_value=0.).sum())(x)
jax.grad(lambda a: a[far].sum())(x); jax.grad(lambda a: a[1, 2])(x); jax.grad(lambda a: a[None, 1:, ..., 0].sum())(x)
jax.grad(lambda a: a.at[far].get(mode='clip').sum())(x)
x[[0, 1]]; x[[True, False, True]]; x[([0, 1],)]; x[[0, 1], 0]; x[[[0, 1]]]; x[1.]; x[1, 2.5]; x[jnp.array(1.)]
x[jnp.array([1., 2.])]; x['a']; x['a', 0]; x[{0}]; x[{}]; x[object()]; x[None, None, 0, 0, 0]; x[0, 0, 0]; x[..., ...]
x[1j]; x[b'a']; x[range(2)]
x[1.:]; x['a':]; x[jnp.array(1):]; x[jnp.array([1, 2]):]; x[::0]; x[jnp.array([True, False])]; x[x[:2] > 0]
x[jnp.array([True] * 4)]; x[i, jnp.array([0, 1])]; x[np.array([1.5])]; x[np.array(['a'])]; x[jnp.ones((3, 4, 1), bool)]
jnp.float32(1)[0]; v[0, 0]
x.at[[0, 1]].set(1.); x.at[1.].set(1.); x.at['a'].set(1.); x.at[0, 0, 0].set(1.); x.at[0].set(jnp.ones(3))
x.at[i].add(jnp.ones((2, 4))); x.at[0].set('a'); x.at[0].set(None); x.at[0].set([1, 2, 3, 4]); x.at[0].set([1, 2])
x.at[0].set(1., mode='foo'); x.at[0].get(mode='foo')
x.at[0].set(); x.at[0].foo(1); x.at[0].set(1., bar=2); x.at[0].get(fill_value='a', mode='fill'); x.at[0] + 1
x.at.set(1.); x.at[jnp.array([True, False])].set(0.); x.at[x[:2] > 0].set(0.); x.at[::0].set(1.)
x.at[0].set(jnp.ones((2, 1, 4)))
b.at[0].min(True); b.at[0].multiply(True); b.at[0].subtract(True); b.at[0].add(1); x.at[0].add(None); x[v:]
x[jnp.array([1]):]; x[1j:]; e[0]; x.at[0].get(out_sharding=None); x.at[0].get(out_sharding=3)
x.at[0].set(0., out_sharding=3); x.at[0].get(out_sharding=jax.P('a')); x.at[0].divide(2., out_sharding=jax.P())
x.at[i].apply(jnp.sin, out_sharding=jax.P())
x.at[0].set(2., out_sharding=jax.NamedSharding(jax.make_mesh((1,), ('a',)), jax.P()))
x.__setitem__(0, 1.); x.__delitem__(0); x.__iadd__(1.); exec('x[0] = 1', {'x': x}); exec('del x[0]', {'x': x})
"""

GRADIENTS = ("set(y)", "add(y)", "multiply(y)", "divide(2 + y ** 2)", "min(y)", "max(y)", "apply(jnp.sin)")

BAD = """
jnp.sin([1.]); jnp.add([1], 2); jnp.sum([1, 2]); jnp.max((1, 2)); jnp.mean('a'); jnp.dot([1], [2])
jnp.matmul([1.], [2.]); jnp.reshape([1, 2], 2); jnp.transpose([[1]]); jnp.concatenate([[1], [2]]); jnp.stack([[1], [2]])
jnp.concatenate(v); jnp.concatenate(1.); jnp.where([True], 1, 2)
jnp.sort([2, 1]); jnp.argmax([1]); jnp.cumsum([1]); jnp.clip([1], 0, 1); jnp.take([1], 0); jnp.take(v, [0, 1])
jnp.expand_dims([1], 0); jnp.squeeze([[1]]); jnp.ravel([1]); jnp.flip([1]); jnp.roll([1], 1); jnp.tile([1], 2)
jnp.repeat([1], 2); jnp.pad([1], 1); jnp.split([1, 2], 2)
jnp.linalg.norm([1.]); jnp.linalg.inv([[1.]]); jnp.linalg.solve([[1.]], [1.]); jnp.fft.fft([1.]); jnp.einsum('i', [1.])
jnp.isnan([1.]); jnp.real([1.]); jnp.median([1.]); jnp.quantile([1.], .5); jnp.unique([1]); jnp.nonzero([1])
jnp.diag([1]); jnp.trace([[1]]); jnp.tril([[1]])
jnp.interp([1.], v, v); jnp.histogram([1.]); jnp.bincount([1]); jnp.convolve([1.], v); jnp.outer([1], v)
jnp.cross([1, 2, 3], v); jnp.kron([1], v); jnp.searchsorted([1., 2.], 1.); jnp.searchsorted(v, [1.])
jnp.digitize([1.], v); jnp.isin([1], v); jnp.broadcast_to([1], (2,)); jnp.moveaxis([[1]], 0, 1)
jnp.zeros_like([1]); jnp.full_like([1], 2); jnp.array_equal([1], [1]); jnp.allclose([1.], [1.])
jnp.linspace([0], [1], 2); jnp.gradient([1., 2.]); jnp.diff([1, 2]); jnp.polyval([1, 2], 3); jnp.select([[True]], [v])
jnp.average([1.]); jnp.var([1.]); jnp.cov([1.]); jnp.nan_to_num([1.]); jnp.any([1]); jnp.vdot([1], [1])
jnp.sin('a'); jnp.sin(None); jnp.add(None, 1); jnp.sum(None); jnp.sum({}); jnp.add('a', v); x + None; x @ 'a'
jnp.array([object()]); jnp.asarray({}); jnp.array([1, 'a']); jnp.array([[1], [2, 3]]); jnp.array(1, 'foo')
jnp.array(1, dtype=object); jnp.zeros(2, 'foo'); jnp.zeros(2, str); jnp.array([None])
jnp.bitwise_and(v, v); jnp.invert(v); jnp.left_shift(v, 1); jnp.gcd(v, v); jnp.lcm(1.5, 2); v & 1; v << 1; ~v
jnp.bitwise_count(v); jnp.maximum(c, 'a'); jnp.floor(c); jnp.arctan2(c, c); c % 2; c // 2; c < 1; jnp.max(c)
jnp.argmax(c); jnp.sort(c); jnp.median(c); jnp.mod(c, 1); jnp.heaviside(c, 1.); jnp.hypot(c, c); jnp.nextafter(c, c)
jnp.logaddexp(c, c); jnp.cbrt(c); jnp.trunc(c); jnp.rint(c); jnp.deg2rad(c); jnp.fmod(c, c); jnp.copysign(c, 1.)
jnp.signbit(c); jnp.ldexp(c, 1); jnp.ldexp(v, v); jnp.frexp(c); jnp.modf(c); jnp.spacing(n); jnp.isposinf(c)
jnp.unwrap(c); jnp.histogram(c); jnp.interp(c, v, v); jnp.quantile(c, .5); jnp.digitize(c, v); jnp.bincount(v)
jnp.packbits(v)
jnp.subtract(b, b); -b; b - b; jnp.negative(b); jnp.positive(b); jnp.diff(b); jnp.linalg.inv(n.reshape(2, 2))
jnp.linalg.det(b[:1, None]); jnp.fft.rfft(c); jnp.linalg.matrix_power(x[:, :3], 1.5); jnp.repeat(v, 1.5)
jnp.tile(v, 1.5); jnp.roll(v, 1.5); jnp.eye(2.5); jnp.zeros(1.5); jnp.arange(c); jnp.linspace(0, 1, 2.5)
jnp.linspace(0, 1, -1); jnp.tri(2.5); jnp.identity('a')
x + jnp.ones(3); x * jnp.ones((2, 4)); jnp.add(v, jnp.ones(2)); jnp.where(b, x, 1.); jnp.where(b, v, jnp.ones(2))
jnp.dot(x, x); jnp.matmul(x, x); x @ v; v @ x.T; jnp.matmul(v, 2.); jnp.matmul(2., 3.); jnp.vdot(v, jnp.ones(2))
jnp.inner(v, jnp.ones(2)); jnp.tensordot(x, x, 1); jnp.tensordot(x, x, 3); jnp.tensordot(x, x, ((0,), (0, 1)))
jnp.tensordot(x, x, ((5,), (0,))); jnp.cross(v, jnp.ones(4))
jnp.concatenate([x, v]); jnp.concatenate([x, x[:, :2]]); jnp.concatenate([]); jnp.concatenate([1., 2.])
jnp.concatenate([x, x], axis=2); jnp.stack([x, v]); jnp.stack([]); jnp.stack([x, x], axis=4); jnp.vstack([x, v])
jnp.hstack([x, v]); jnp.block([[x], [v]]); jnp.append(x, v, axis=0); jnp.broadcast_to(x, (2, 2))
jnp.broadcast_arrays(v, jnp.ones(2)); jnp.broadcast_shapes((2,), (3,)); jnp.reshape(x, (5, 2)); jnp.reshape(x, (-1, -1))
jnp.reshape(x, (-1, 5)); x.reshape(0, -1)
jnp.split(x, 5); jnp.split(x, 2, axis=4); jnp.array_split(x, 0); jnp.hsplit(jnp.float32(1), 1); jnp.vsplit(v, 3)
jnp.dsplit(x, 2); jnp.take_along_axis(x, i, 1); jnp.take_along_axis(x, v[None], 1); jnp.take(x, v)
jnp.take(x, i, axis=3); jnp.take(x, i, mode='foo'); jnp.choose(far, [v, v]); jnp.compress(b, v, axis=2)
jnp.select([b], [v, v]); jnp.select([], []); jnp.select([v], [v]); jnp.extract(b, jnp.ones(2)); jnp.put(v, 0, 1.)
jnp.place(v, b, 1.); jnp.fill_diagonal(x, 1.); jnp.put_along_axis(x, i[None], 1., 1)
jnp.sum(x, axis=2); jnp.sum(x, axis=-3); jnp.sum(x, axis=(0, 0)); jnp.sum(x, axis=(0, -2)); jnp.sum(x, axis=1.5)
jnp.sum(x, axis='a'); jnp.sum(x, axis=[0]); jnp.max(x, axis=5); jnp.mean(x, axis=(0, 3)); jnp.argmax(x, axis=2)
jnp.argmax(x, axis=(0, 1)); jnp.cumsum(x, axis=2); jnp.sort(x, axis=2); jnp.argsort(x, axis=-3); jnp.flip(x, axis=2)
jnp.roll(x, 1, axis=2); jnp.roll(x, (1, 2), axis=0); jnp.repeat(x, 2, axis=2); jnp.diff(x, axis=2); jnp.diff(x, n=-1)
jnp.diff(jnp.float32(1))
jnp.transpose(x, (0,)); jnp.transpose(x, (0, 2)); jnp.transpose(x, (0, 0)); jnp.swapaxes(x, 0, 2); jnp.moveaxis(x, 0, 2)
jnp.moveaxis(x, (0, 1), (0,)); jnp.rollaxis(x, 2); jnp.expand_dims(x, 4); jnp.expand_dims(x, (0, 0)); jnp.squeeze(x, 0)
jnp.squeeze(x, 3); jnp.rot90(v); jnp.rot90(x, axes=(0, 0)); jnp.fliplr(v); jnp.flipud(jnp.float32(1))
jnp.matrix_transpose(v); v.mT; jnp.diagonal(v); jnp.trace(v); jnp.diag(t); jnp.tril(v); jnp.linalg.inv(x)
jnp.linalg.inv(v); jnp.linalg.det(x); jnp.linalg.solve(x, v); jnp.linalg.cholesky(x)
jnp.linalg.eigh(x); jnp.linalg.eigh(x[:, :3], UPLO='A'); jnp.linalg.norm(x, 'foo'); jnp.linalg.norm(t, 2)
jnp.linalg.norm(x, 3); jnp.linalg.norm(v, axis=1); jnp.linalg.qr(v); jnp.linalg.qr(x, mode='foo'); jnp.linalg.svd(v)
jnp.linalg.matrix_power(x, 2); jnp.linalg.multi_dot([x]); jnp.linalg.tensorsolve(x, v); jnp.linalg.matrix_rank(v)
jnp.linalg.lstsq(x, jnp.ones(2)); jnp.linalg.cond(x, 'foo'); jnp.linalg.pinv(v); jnp.linalg.vector_norm(x, axis=2)
jnp.linalg.cross(v[:2], v[:2])
jnp.fft.fft(v, axis=1); jnp.fft.fft(v, -1); jnp.fft.fft(v, 0); jnp.fft.fft(v, norm='foo'); jnp.fft.fft2(v)
jnp.fft.fftn(x, (2,)); jnp.fft.fftn(x, (2, 2, 2)); jnp.fft.fftn(x, axes=(0, 0)); jnp.fft.fftfreq(v)
jnp.fft.fftfreq(2.5); jnp.fft.irfft(v, 2.5); jnp.fft.fft('a'); jnp.fft.fftshift(x, axes=2)
jnp.einsum('ij,jk', x, x); jnp.einsum('ij', v); jnp.einsum('ij->ik', x); jnp.einsum('ij,jk->i', x)
jnp.einsum('ij', x, x); jnp.einsum('i->ii', v); jnp.einsum('i+j', v, v); jnp.einsum('ij->', v); jnp.einsum('...->i', v)
jnp.einsum('i..->i', v); jnp.einsum('i->i->i', v); jnp.einsum('', v); jnp.einsum(x, x); jnp.einsum(v, [0], [1])
jnp.einsum('i,i', v, jnp.ones(2)); jnp.einsum(3, v); jnp.einsum('i'); jnp.einsum('ii', x); jnp.einsum('i', 'a')
jnp.einsum('i,j->ij', v, v, optimize='foo'); jnp.einsum('1', v); jnp.einsum('i->', v, precision='foo')
jnp.pad(v, -1); jnp.pad(v, (1, 2, 3)); jnp.pad(v, 1, mode='foo'); jnp.pad(v, 1, mode='edge', constant_values=1)
jnp.pad(v, 1.5); jnp.pad(x, ((1, 1), (1, 1), (1, 1))); jnp.unravel_index(i, (2,)); jnp.unravel_index(v, (2, 2))
jnp.ravel_multi_index((i,), (2, 2)); jnp.ravel_multi_index((far, i), (3, 3)); jnp.interp(v, v, x)
jnp.interp(v, v, jnp.ones(2)); jnp.histogram(v, bins=-1); jnp.histogram(v, range=(2, 1)); jnp.bincount(x)
jnp.convolve(x, v); jnp.convolve(v, v, mode='foo'); jnp.convolve(v[:0], v); jnp.correlate(v, x); jnp.quantile(v, 'a')
jnp.quantile(v, .5, method='foo'); jnp.quantile(v, i); jnp.percentile(v, 50, axis=1); jnp.median(v, axis=1)
jnp.searchsorted(x, v); jnp.searchsorted(v, v, side='foo'); jnp.digitize(v, x); jnp.unique(v, axis=1)
jnp.unique(v, size=-1); jnp.unique(v, size=1.5); jnp.lexsort(()); jnp.partition(v, 5); jnp.argpartition(v, -5)
jnp.insert(v, 9, 1.); jnp.delete(v, 9); jnp.cov(t); jnp.cov(x, aweights=v); jnp.gradient(x, axis=2)
jnp.gradient(jnp.float32(1)); jnp.trapezoid(x, v); jnp.vander(x); jnp.polyval(x, 'a'); jnp.average(x, weights=v)
jnp.average(x, axis=0, weights=jnp.ones(2)); jnp.apply_along_axis(jnp.sum, 2, x)
jnp.vectorize(jnp.sum, signature='(i)->')(v); jnp.vectorize(jnp.sum, signature='(i,j)->()')(v); jnp.meshgrid(x, v)
jnp.meshgrid(v, indexing='foo'); jnp.indices(2.5)
jnp.max(e); jnp.min(e, axis=0); jnp.argmax(e); jnp.argmin(e, axis=0); jnp.ptp(e); jnp.max(x, where=x > 0)
jnp.min(x, where=x > 0); jnp.median(e); jnp.nanmax(e); jnp.nanargmax(e, axis=0); jnp.sum(x, where=v)
jnp.sum(x, where=jnp.ones((2, 2), bool)); jnp.sum(x, initial='a'); jnp.sum(x, out=x); jnp.add(x, x, out=x)
jnp.sum(x, dtype='foo'); jnp.cumsum(x, out=x); jnp.var(x, ddof='a'); jnp.var(x, ddof=1, correction=1)
jnp.dot(x, x.T, precision='foo'); jnp.sort(x, order='a'); jnp.sort(x, kind='foo'); jnp.argsort(x, kind='foo')
jnp.cumulative_sum(x); jnp.astype(x, 'foo'); jnp.round(x, 1.5); jnp.round(n, -20); jnp.clip(c, 0, 1)
jax.jit(lambda k: jnp.zeros(k))(3); jax.jit(lambda k: jnp.arange(k))(3); jax.jit(lambda k: v[:k])(2)
jax.jit(lambda k: x.reshape(k, -1))(3); jax.jit(lambda k: jnp.broadcast_to(1., (k,)))(2)
jax.jit(lambda k: jnp.eye(k))(2); jax.jit(lambda k: jnp.linspace(0, 1, k))(2); jax.jit(lambda k: jnp.repeat(v, k))(2)
jax.jit(lambda k: jnp.tile(v, k))(2); jax.jit(lambda k: jnp.pad(v, k))(2); jax.jit(lambda k: jnp.split(v, k))(3)
jax.jit(lambda k: jnp.sum(x, axis=k))(0); jax.jit(lambda k: jnp.full((k, 2), 1.))(2)
jax.jit(lambda k: jnp.expand_dims(v, k))(0); jax.jit(lambda k: jnp.transpose(x, (k, 0)))(1)
jax.jit(lambda k: jnp.moveaxis(x, k, 0))(1); jax.jit(lambda k: jnp.diag(v, k))(1); jax.jit(lambda k: jnp.tril(x, k))(1)
jax.jit(lambda k: jnp.unique(k))(v); jax.jit(lambda k: jnp.nonzero(k))(v); jax.jit(lambda k: jnp.where(k))(b)
jax.jit(lambda k: v[k])(b); jax.jit(lambda k: jnp.argwhere(k))(v); jax.jit(lambda k: jnp.flatnonzero(k))(v)
jax.jit(lambda k: jnp.bincount(k))(i); jax.jit(lambda k: jnp.unique(v, size=k))(2)
jax.jit(lambda k: jnp.union1d(k, k))(v); jax.jit(lambda k: jnp.intersect1d(k, k))(v)
jax.jit(lambda k: jnp.setdiff1d(k, k))(v); jax.jit(lambda k: jnp.setxor1d(k, k))(v)
jax.jit(lambda k: jnp.compress(k, v))(b); jax.jit(lambda k: jnp.extract(k, v))(b)
jax.jit(lambda k: jnp.delete(v, k))(1); jax.jit(lambda k: jnp.insert(v, k, 1.))(1)
jax.jit(lambda k: jnp.trim_zeros(k))(v); jax.jit(lambda k: jnp.ix_(k))(b); jax.jit(lambda k: jnp.indices((k,)))(2)
jax.jit(lambda k: jnp.tri(k))(2); jax.jit(lambda k: jnp.hanning(k))(3); jax.jit(lambda k: jnp.fft.fft(v, k))(2)
jax.jit(lambda k: jnp.fft.fftfreq(k))(2); jax.jit(lambda k: jnp.linalg.matrix_power(x[:, :3], k))(2)
jax.jit(lambda k: jnp.histogram(v, k))(2); jax.jit(lambda k: jnp.roll(v, k))(1); jax.jit(lambda k: jnp.rot90(x, k))(1)
jax.jit(lambda k: jnp.array_split(v, k))(2); jax.jit(lambda k: jnp.resize(v, (k,)))(2)
jnp.fft.fftfreq(4, .1, dtype=int); jnp.fft.fftfreq(4, .1, dtype='uint8'); jnp.fft.fftfreq(5, .3, dtype='float16')
jnp.fft.fftfreq(4, 2, dtype=bool); jnp.fft.rfftfreq(5, 2, dtype=int); jnp.fft.rfftfreq(2.5); jnp.fft.fftfreq(-1)
jnp.fft.rfftfreq(0); jnp.fft.rfftfreq(-3); jnp.fft.fftfreq(3, v)
jnp.fft.rfftfreq(4, v); jnp.fft.fftfreq(3, 1j); jnp.fft.fftfreq('a'); jnp.fft.fftfreq([1]); jnp.fft.fftfreq(3, [1.])
jnp.fft.rfftfreq(v); jnp.fft.fftfreq(3, 0); jnp.fft.fftfreq(3, dtype=complex)
jax.jit(lambda d: jnp.fft.fftfreq(3, d))(2.); jax.jit(lambda d: jnp.fft.rfftfreq(3, d))(2.)
jnp.fft.rfftfreq(4, dtype='int8'); jnp.fft.fftfreq(True)
jnp.einsum('12,32->13', x, x); jnp.einsum('...1,...2->...12', x, x); jnp.einsum('...0,0', x, v[:1]); jnp.einsum('i_', x)
jnp.einsum('i-', x); jnp.einsum('ij->?i', x); jnp.roll(v, -1.5); jnp.roll(x, (1.5, 1), (0, 1)); jnp.arange(v)
jnp.arange('a'); jnp.expand_dims(v, jnp.array(0)); jax.jit(lambda k: jnp.expand_dims(v, (k,)))(0); jnp.median(e, axis=1)
jnp.insert(v, -9, 1.); jnp.insert(v, jnp.array([9, -9, 1]), 1.); jnp.insert(v, slice(0, 2), 9.); jnp.insert(v, b, 9.)
jnp.insert(x, 1, v, axis=1); jnp.insert(x, jnp.array([1]), v, axis=1)
jnp.insert(x, jnp.array([3, 1]), jnp.ones((3, 2)), axis=1); jnp.insert(v, 1.5, 1.)
jnp.insert(v, -1, jnp.array([5., 6.])); jnp.insert(x, 1, jnp.arange(6.).reshape(3, 2), axis=1)
jnp.insert(x, 1, jnp.arange(6.).reshape(2, 3), axis=1)
jnp.insert(x, jnp.array(1), jnp.arange(8.).reshape(2, 4), axis=0); jax.jit(lambda k: jnp.insert(v, k, v))(-9)
jax.jit(lambda k: jnp.insert(v, k, v))(i); jnp.delete(v, -9); jnp.delete(v, jnp.array([9, 0])); jnp.delete(v, 1.5)
jnp.delete(v, b); jnp.delete(x, 9, axis=1)
jnp.compress(jnp.array([1, 0, 0, 2]), v); jnp.compress(jnp.array([1, 0, 0, 0]), v)
jnp.compress(jnp.array([1, 0, 0, 2]), x, axis=1); jnp.compress(jnp.ones((1, 2)), v)
jax.jit(lambda k: jnp.compress(k, v, size=2))(jnp.ones(5, bool)); jnp.trace(x, -7); jnp.trace(x, 1.5)
jnp.trace(x, True); jax.jit(lambda k: jnp.trace(x.astype(int), k, dtype='int8'))(1)
jnp.unravel_index(7, (0, 2)); jnp.unravel_index(i, ()); jnp.unravel_index(i, 5)
jnp.unravel_index(i.astype('uint8'), (2, 2)); jnp.unravel_index(i, i + 1); jnp.unravel_index(True, (2, 2))
jax.jit(lambda k: jnp.unravel_index(2, k))(i); jax.jit(lambda k: jnp.unravel_index(i.astype('int8'), (k, 2)))(2)
jnp.unravel_index(far, (2, 2))
jax.jit(lambda k: jnp.diff(v, n=k))(1); jax.jit(lambda k: jnp.cumsum(x, axis=k))(1)
jax.jit(lambda k: jnp.sort(x, axis=k))(1); jax.jit(lambda k: jnp.concatenate([x, x], axis=k))(1)
jax.jit(lambda k: jnp.stack([x, x], axis=k))(1); jax.jit(lambda k: jnp.take(x, i, axis=k))(1)
jax.jit(lambda k: jnp.squeeze(x[None], k))(0); jax.jit(lambda k: jnp.swapaxes(x, k, 0))(1)
jax.jit(lambda k: jnp.flip(x, k))(1); jax.jit(lambda k: jnp.vander(v, k))(2); jax.jit(lambda k: jnp.partition(v, k))(1)
jax.jit(lambda k: jnp.unravel_index(2, (k, 2)))(2); jax.jit(lambda k: jnp.trace(x, k))(1)
jax.jit(lambda k: jnp.quantile(v, k))(.5); jax.jit(lambda k: bool(k))(1); jax.jit(lambda k: int(k))(1)
jax.jit(lambda k: float(k))(1.); jax.jit(lambda k: [1, 2][k])(1); jax.jit(lambda k: np.asarray(k))(v)
jax.jit(lambda k: range(k))(2); jax.jit(lambda k: 1 if k else 2)(True)
"""


OTHERWISE = set(
    split(
        re.sub(
            "#.*",
            "",
            """
# JAX reads one row of three where a scalar True stands beside None: here it is NumPy's new axis of size 1.
x[None, True]; x.at[None, True].set(2.); x.at[None, True].multiply(3.); x.at[None, True].min(-1.)
x.at[None, True].apply(jnp.sin)
# JAX has not implemented these derivatives.
jax.grad(lambda a, y: (a.at[i].apply(jnp.sin) * w).sum(), (0, 1))(x, 1.3)
jax.grad(lambda a, y: (a.at[1, ::-1].apply(jnp.sin) * w).sum(), (0, 1))(x, 1.3)
jax.grad(lambda a, y: (a.at[x > 0].apply(jnp.sin) * w).sum(), (0, 1))(x, 1.3)
jax.grad(lambda a, y: (a.at[far].apply(jnp.sin) * w).sum(), (0, 1))(x, 1.3)
jax.grad(lambda a, y: (a.at[jnp.array([0, 0])].apply(jnp.sin) * w).sum(), (0, 1))(x, 1.3)
jax.grad(lambda a, y: (a.at[:, i].apply(jnp.sin) * w).sum(), (0, 1))(x, 1.3)
# A traced mask with a scalar update has a result of known shape, and what is computed from constants alone is known
# while tracing.
jax.jit(lambda a, m: a.at[m].set(0.))(x, x > 0); jax.jit(lambda a, m: a.at[m].add(1.))(x, b)
jax.jit(lambda a, m: a.at[m].max(1.))(x, x < 0)
jax.jit(lambda a, m: a.at[m].multiply(2.))(x, b); jax.jit(lambda a: a[jnp.where(jnp.array([True, False, True]))])(x)
# Integers are quantiles too: JAX fails at their floor.
jnp.quantile(v, i)
# The size of a quotient by zero, a label that is not there: JAX fails with what its own code stumbles
# on (ZeroDivisionError, KeyError), NumPy and weft with the class of other arguments that do not fit.
x.reshape(0, -1); jnp.array_split(x, 0); jnp.einsum(v, [0], [1])
# No array is a TypeError everywhere; JAX says TracerArrayConversionError of a list in average, which it is under its
# own jit, and ValueError of einsum's shapes.
jnp.average([1.]); jnp.einsum('i', 'a')
# JAX does not look at a precision that no product uses.
jnp.einsum('i->', v, precision='foo')
# JAX finds a traced axis or count not hashable (ValueError), since its own jit has it static;
# here it is a ConcretizationTypeError as everywhere else.
jax.jit(lambda k: jnp.tril(x, k))(1); jax.jit(lambda k: jnp.linalg.matrix_power(x[:, :3], k))(2)
jax.jit(lambda k: jnp.rot90(x, k))(1)
jax.jit(lambda k: jnp.resize(v, (k,)))(2); jax.jit(lambda k: jnp.diff(v, n=k))(1)
jax.jit(lambda k: jnp.cumsum(x, axis=k))(1)
jax.jit(lambda k: jnp.sort(x, axis=k))(1); jax.jit(lambda k: jnp.swapaxes(x, k, 0))(1)
jax.jit(lambda k: jnp.vander(v, k))(2); jax.jit(lambda k: jnp.partition(v, k))(1)
""",
        )
    )
)


def expressions() -> list[str]:
    out = [f"x[{i}]" for i in split(INDICES)] + [f"t[{i}]" for i in split(DEEP)]
    out += [
        f"x.at[{i}].{call}"
        for k, i in enumerate(split(INDICES))
        for j, call in enumerate(CALLS)
        if call == "set(2.)" or (j + k) % 3 == 0
    ]
    out += [f"t.at[{i}].{call}" for i in split(DEEP) for call in ("set(2.)", "add(1.)", "get()")]
    out += [
        f"x.at[{i}].{call}mode={mode})"
        for i in split(FAR)
        for mode in MODES
        for call in ("get(", "set(1., ", "add(1., ", "min(-9., ")
        if (not mode.startswith("'promise") or i == "i" or call != "get(")
        and (i, mode) not in (("3:9", "'wrap'"), ("3:9", "3"))
    ]
    out += [f"x[jnp.array([2, 0], '{d}')]" for d in INTS] + [
        f"x.at[jnp.array([2, 0], '{d}'), -1].add(1.)" for d in INTS
    ]
    out += [f"x[jnp.array([-1, -3], '{d}')]" for d in INTS if d[0] == "i"] + [
        f"x[:, jnp.array(1, '{d}'), None]" for d in INTS
    ]
    out += [
        f"jax.grad(lambda a, y: (a.at[{i}].{call} * w).sum(), (0, 1))(x, 1.3)"
        for i in ("i", "1, ::-1", "x > 0", "jnp.array([0, 0])", "far", ":, i")
        for call in GRADIENTS
    ]
    return list(dict.fromkeys([*out, *split(SINGLE), *split(BAD)]))
