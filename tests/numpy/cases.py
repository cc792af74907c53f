"""Expressions over `jnp`, `lax`, `nn`, `jax` and `np` whose results (or error classes) must be those of real JAX."""

SETUP = """
x = jnp.arange(12.).reshape(3, 4) - 5
y = jnp.array([[3., -1., 2., 0.5]])
v = jnp.array([3., 1., 2.])
i = jnp.array([2, 0, 1])
n = jnp.array([5, -5, 7, 0])
u = jnp.array([5, 3, 200], 'uint8')
b = jnp.array([True, False, True])
c = jnp.array([1 + 2j, -3j, 2.])
w = jnp.array([jnp.nan, 1., jnp.inf, -jnp.inf, -0.0])
t = jnp.arange(24.).reshape(2, 3, 4)
h = jnp.array([1.5, -2.25], 'bfloat16')
"""

CASES = """
jnp.array([1, 2.5]); jnp.array(3.); jnp.array([True, 2]); jnp.array([[1, 2], [3, 4]], 'float32'); jnp.array([]); jnp.array(1j); jnp.array(range(3))
jnp.array([x[0, 0], 1]); jnp.array([v, v]); jnp.array(np.arange(3)); jnp.array(np.float64(2)); jnp.array([np.int8(3), np.int8(4)]); jnp.array(2, ndmin=2)
jnp.array([[1, 2], [3]]); jnp.array('a'); jnp.array(None); jnp.array(2**40); jnp.array([2**33]); jnp.asarray(3); jnp.asarray([1, 2.]); jnp.array(1.7, int)
jnp.zeros(3); jnp.zeros((2, 0)); jnp.ones((2, 3), int); jnp.full((2,), 7); jnp.full((2, 2), v[:2]); jnp.zeros_like(1.); jnp.ones_like(i); jnp.full_like(x, 3)
jnp.zeros('a'); jnp.zeros(2.5); jnp.zeros(-1); jnp.arange(5); jnp.arange(2, 10, 3); jnp.arange(0., 1., 0.25); jnp.arange(5, 0, -2); jnp.arange(3, dtype='bfloat16')
jnp.linspace(0, 1, 5); jnp.linspace(0, 1, 4, endpoint=False); jnp.linspace(v, 10, 3); jnp.linspace(0, 10, 5, dtype=int); jnp.linspace(1, 2, 1); jnp.logspace(0, 2, 3)
jnp.geomspace(1., 100., 3); jnp.eye(3); jnp.eye(2, 3, k=1); jnp.identity(2); jnp.tri(3); jnp.meshgrid(v, i)[0]; jnp.meshgrid(v, i[:2], indexing='ij')[1]; jnp.indices((2, 3))
jnp.sin(i); jnp.sin(1.); jnp.sin([1.]); jnp.exp(x); jnp.log(v); jnp.sqrt(i); jnp.log2(v); jnp.log10(v); jnp.tanh(h); jnp.sinc(x); jnp.cbrt(x); jnp.exp2(v); jnp.log1p(v)
jnp.arcsin(v / 4); jnp.arccosh(v); jnp.deg2rad(v); jnp.expm1(h); jnp.sin(c); jnp.exp(c); jnp.log(c); jnp.sqrt(c); jnp.tanh(True)
x + y; x + 1; x + i[0]; i + 1.5; i + True; u + 1; u + 300; u * i; h + 1; h + v[:2]; h * x[:2, :2]; b + b; b * b; b + 1; c + x[0, :3]; x + v; x + v[:, None]; i / 2; n // 2; n // 0
n % 3; n % 0; x % 3; x % -3; x // 2; x // y; i / i; divmod(n, 3)[0]; divmod(n, 3)[1]; jnp.fmod(n, 3); jnp.fmod(x, 3.); -b; -u; abs(n); abs(c); x ** 2; x ** 3.; i ** 2; i ** 2.; i ** -1; 2 ** i; 2. ** i
v ** i; v ** 0; jnp.power(2, 3); jnp.power(v, 0.5); jnp.float_power(2, i); u ** 2; b ** 2; x @ x.T; x @ y.T; v @ x; x @ v; v @ v; t @ x.T; t @ t; v @ 2.
x < 0; x == x; n >= 0; c == c; jnp.less(c, 1.); n & 3; n | 1; n ^ 5; ~n; ~b; b & b; x & 1; n << 2; n >> 1; u >> 1; ~x; x == None; x < None; x + 'a'; x + [1]; 1 - x; 2 / v; 7 // i[1:]; 1 << i
jnp.maximum(x, 0); jnp.minimum(w, 1); jnp.fmax(w, 0.); jnp.fmin(w, 0.); jnp.maximum(i, 1.5); jnp.clip(x, -1, 2); jnp.clip(i, 0, 1.5); jnp.clip(x, max=1); jnp.clip(u, 4, 10); jnp.clip(x, y, None)
jnp.sign(w); jnp.signbit(w); jnp.floor(i); jnp.floor(x / 2); jnp.ceil(x / 3); jnp.trunc(x / 3); jnp.rint(x / 2); jnp.round(x / 3, 2); jnp.round(v * 123, -1); jnp.round(i); jnp.isnan(w); jnp.isinf(w); jnp.isfinite(w); jnp.isnan(i)
jnp.nan_to_num(w); jnp.nan_to_num(w, nan=1., posinf=2.); jnp.isposinf(w); jnp.isneginf(w); jnp.reciprocal(v); jnp.conj(c); jnp.real(c); jnp.imag(c); jnp.imag(v); jnp.angle(c); jnp.logical_not(n); jnp.logical_and(n, 1); jnp.logical_xor(b, True)
jnp.arctan2(v, 1.); jnp.hypot(v, 4); jnp.logaddexp(w, w); jnp.logaddexp(v, -jnp.inf); jnp.logaddexp2(v, 1.); jnp.copysign(v, -1); jnp.heaviside(x[0], 0.5); jnp.ldexp(v, i); jnp.frexp(v)[0]; jnp.frexp(v * 100)[1]; jnp.modf(x / 3)[0]; jnp.gcd(n, 15); jnp.lcm(n, 4)
jnp.nextafter(v, 0.); jnp.bitwise_count(n); jnp.square(i); jnp.positive(x); jnp.invert(b); jnp.left_shift(i, 1); jnp.left_shift(1., 2); jnp.iscomplex(c); jnp.isreal(c); jnp.fabs(n); jnp.remainder(-7, 3); jnp.float_power(v, 2); x.at[True].set(0.); x[jnp.array(False)]; jnp.sum(1.); jnp.max(2.); jnp.mean(1.); str(jnp.float32(1e6)); repr(jnp.array([1234567.])); repr(jnp.array([0.1, 1.], 'bfloat16')); str(jnp.float16(2048))
x.sum(); i.sum(); b.sum(); u.sum(); h.sum(); x.sum(0); x.sum((0, 1), keepdims=True); x.sum(-1, keepdims=True); jnp.sum(x, axis=2); jnp.sum(x, where=x > 0); jnp.sum(x, initial=10.); jnp.sum(i, dtype=float); jnp.prod(i + 1); jnp.prod(u); jnp.sum(jnp.zeros((0, 3)), 0); jnp.sum(3); jnp.sum(x, ())
x.max(); x.min(1); n.max(); w.max(); jnp.max(jnp.array([])); jnp.max(x, initial=100.); jnp.max(x, 0, initial=0., where=x > 2); b.max(); jnp.any(x > 5, 1); jnp.all(x); b.all(); jnp.any(w); x.mean(); x.mean(0); i.mean(); h.mean(); jnp.mean(x, where=x > 0)
jnp.var(x); jnp.var(i); jnp.std(x, 0); jnp.var(x, ddof=1); jnp.var(x, 1, keepdims=True); jnp.std(h); jnp.var(c); jnp.var(v, ddof=3); jnp.ptp(x, 0); jnp.count_nonzero(n); jnp.average(x, 0); jnp.average(v, weights=i); jnp.average(x, 1, weights=y[0]); jnp.cumsum(x); jnp.cumsum(x, 1); jnp.cumprod(i + 1); jnp.cumsum(b); jnp.cumsum(u)
x.argmax(); x.argmin(1); w.argmax(); jnp.argmax(x, 0, keepdims=True); jnp.argmax(jnp.array([])); jnp.nansum(w[:2]); jnp.nanmean(w[:2]); jnp.nanmax(w); jnp.nanmin(w); jnp.nanargmax(w); jnp.nanvar(w[:2]); jnp.nanstd(w[:2]); jnp.nanprod(w[:2]); jnp.nancumsum(w[:2]); jnp.cumulative_sum(v, include_initial=True)
x.reshape(-1); x.reshape(2, 6); x.reshape((4, -1)); x.reshape(5); x.reshape(5, -1); jnp.reshape(x, (4, 3), order='F'); x.ravel(); x.flatten(); x.T; t.T; t.mT; t.transpose(1, 0, 2); jnp.transpose(t, (0, 0, 1)); jnp.swapaxes(t, 0, 2); jnp.moveaxis(t, 0, -1); jnp.moveaxis(t, (0, 1), (-1, -2)); jnp.rollaxis(t, 2)
jnp.expand_dims(v, 0); jnp.expand_dims(v, (0, 2)); jnp.expand_dims(v, 5); y.squeeze(); jnp.squeeze(v, 0); jnp.broadcast_to(v, (2, 3)); jnp.broadcast_to(v, (2, 4)); jnp.broadcast_arrays(v, y.T)[0]; jnp.concatenate([x, y]); jnp.concatenate([x, x], 1); jnp.concatenate([v, i]); jnp.concatenate([]); jnp.concatenate([x, v]); jnp.concatenate([x, y], None)
jnp.stack([v, v]); jnp.stack([v, i], 1); jnp.stack([v, y]); jnp.stack([1., 2.]); jnp.vstack([v, v]); jnp.hstack([x, x]); jnp.dstack([v, v]); jnp.column_stack([v, i]); jnp.block([[x, x], [x, x]]); jnp.atleast_2d(v); jnp.atleast_3d(x); jnp.split(v, 3)[1]; jnp.split(jnp.arange(5), 2); jnp.array_split(jnp.arange(5), 2)[0]; jnp.split(x, [1, 3], 1)[1]; jnp.unstack(x)[1]
jnp.flip(x); jnp.flip(x, 1); jnp.flipud(x); jnp.rot90(x); jnp.rot90(x, 3); jnp.roll(v, 1); jnp.roll(x, 2); jnp.roll(x, (1, -1), (0, 1)); jnp.tile(v, 2); jnp.tile(x, (2, 1)); jnp.repeat(v, 2); jnp.repeat(x, 2, 1); jnp.repeat(v, i); jnp.repeat(v, jnp.array([1, 2, 0]), total_repeat_length=3); jnp.append(v, 5.)
jnp.pad(v, 1); jnp.pad(x, ((1, 0), (0, 2)), constant_values=9); jnp.pad(v, 2, mode='edge'); jnp.pad(v, 2, mode='reflect'); jnp.pad(v, 2, mode='wrap'); jnp.pad(v, 2, mode='symmetric'); jnp.pad(v, 2, mode='linear_ramp'); jnp.pad(v, 1, mode='mean'); jnp.pad(v, (1, 2), constant_values=(4, 5)); jnp.pad(v, -1); jnp.resize(v, (2, 2))
x[0]; x[-1]; x[1, 2]; x[1:]; x[:, ::2]; x[::-1]; x[::-2, 1:3]; x[None]; x[..., 0]; x[None, 1, ..., None]; x[5]; x[-9]; x[10:]; x[2:1]; x[i]; x[i, 0]; x[0, i]; x[:, i]; x[i[:, None], i]; x[i, :2]; x[i, None]; t[0, :, i]; t[:, i, 1]; t[i[:2], ..., 0]; t[:, i, ::2]; t[0, i, ::-1]; x[jnp.array(1)]; x[jnp.array(-1), 1:]
x[jnp.array([5, -9])]; x[b]; x[x > 0]; x[b, 1]; x[:, jnp.array([True, False, True, False])]; t[jnp.array([True, False])]; x[0, 0, 0]; x[1.5]; x['a']; x[[0, 1]]; x[(0, 1),]; x[jnp.array([True, False])]; x[True]; x[np.array([0, 2])]; x[np.int64(1)]; x[()]; x[..., ...]; v[jnp.array(10)]; x[jnp.zeros((0,), int)]
x.at[0].set(1); x.at[0, 1].add(5.); x.at[i].add(1.); x.at[jnp.array([0, 0])].add(1.); x.at[1:].set(0.); x.at[:, ::2].multiply(2.); x.at[::-1].set(x); x.at[x > 0].set(-1.); x.at[b].set(y); x.at[5].set(9.); x.at[-9].set(9.); x.at[i, i].min(-4.); x.at[i, i].max(4.); x.at[0].divide(2.); x.at[0].power(2); x.at[1].apply(jnp.sin); x.at[..., None].set(2.)
x.at[5].get(mode='fill'); x.at[5].get(mode='clip'); x.at[jnp.array([5, -1])].get(mode='fill', fill_value=7.); x.at[5].set(1., mode='clip'); i.at[0].set(5); i.at[0].add(u[0]); x.at[1].set(v); x.at[0].subtract(1.); t.at[:, i, 0].set(1.); t.at[0, :, i].set(y[0]); u.at[0].set(7); x.at[jnp.array(1)].set(3.); c.at[0].set(2j); x.at[0:2, 1].set(jnp.array([8., 9.])); x.at[None, 0].set(4.)
jnp.dot(v, v); jnp.dot(x, x.T); jnp.dot(2., v); jnp.dot(v, jnp.ones(4)); jnp.dot(t, x.T); jnp.vdot(c, c); jnp.inner(x, y); jnp.outer(v, i); jnp.tensordot(t, x, 1); jnp.tensordot(t, t, ((0, 1), (0, 1))); jnp.kron(v, x); jnp.cross(v, i); jnp.cross(x[:, :2], x[:, 1:3]); jnp.matmul(t, t.mT); jnp.matmul(x, x); jnp.vecdot(x, y); jnp.matmul(i, i); jnp.matmul(b, b)
jnp.matmul(jnp.ones((2, 1, 3, 4)), jnp.ones((5, 4, 2))); jnp.matmul(jnp.ones((4, 3)), jnp.ones((2, 3, 5))); jnp.matmul(t, x[0]); jnp.matmul(v, jnp.ones((2, 3, 4))); jnp.matmul(jnp.ones((1, 2, 3)), jnp.arange(30.).reshape(5, 3, 2))
jnp.einsum('ij,kj->ik', x, x); jnp.einsum('ii->i', x[:, :3]); jnp.einsum('ii', x[:, :3]); jnp.einsum('ij->j', x); jnp.einsum('i,j', v, i); jnp.einsum('...j,j->...', t, y[0]); jnp.einsum('bij,bkj->bik', t, t); jnp.einsum('ij,jk,kl->il', x, x.T, x); jnp.einsum('i,i,i->', v, v, v); jnp.einsum('ij,jk', jnp.ones((2, 3)), jnp.ones((2, 3))); jnp.einsum('ij->ji', x); jnp.einsum(x, [0, 1], v, [0], [1]); jnp.einsum('ijk->', t); jnp.einsum('i...,i...->...', t, t)
jnp.sort(x, 0); jnp.sort(w); jnp.argsort(-v); jnp.sort(v, descending=True); jnp.argsort(jnp.array([1, 0, 1, 0]), descending=True); jnp.sort(x, None); jnp.lexsort((v, i)); jnp.partition(v, 1)[1]; jnp.searchsorted(jnp.array([1., 2., 3.]), v); jnp.searchsorted(jnp.array([1., 2., 2., 3.]), 2., side='right'); jnp.digitize(v, jnp.array([0., 1.5, 2.5])); jnp.unique(jnp.array([3, 1, 3])); jnp.unique(jnp.array([3, 1, 3]), return_inverse=True)[1]; jnp.unique(jnp.array([3, 1, 3]), return_counts=True)[1]; jnp.unique(jnp.array([3, 1, 3]), size=3); jnp.unique(jnp.array([3, 1, 3]), size=3, fill_value=9); jnp.unique(jnp.array([[1, 2], [1, 2], [0, 3]]), axis=0); jnp.unique(w)
jnp.isin(i, jnp.array([1, 2])); jnp.union1d(i, n); jnp.intersect1d(i, jnp.array([1, 2, 9])); jnp.setdiff1d(i, jnp.array([1])); jnp.setxor1d(i, jnp.array([1, 9])); jnp.nonzero(n)[0]; jnp.nonzero(x > 3)[1]; jnp.nonzero(n, size=5)[0]; jnp.nonzero(n, size=5, fill_value=-1)[0]; jnp.argwhere(x > 4); jnp.flatnonzero(n); jnp.where(x > 0, x, 0); jnp.where(True, 1., 2.); jnp.where(b, i, 1.5); jnp.where(n)[0]; jnp.where(b, v, y.T)
jnp.take(v, i); jnp.take(x, 5, 0); jnp.take(x, i, axis=1); jnp.take(i, 5); jnp.take(v, jnp.array([-1, 7]), mode='wrap'); jnp.take(v, 7, mode='clip'); jnp.take_along_axis(x, i[:, None], 1); jnp.take_along_axis(x, jnp.argsort(x, 1), 1); jnp.choose(i, [v, v * 2, v * 3]); jnp.compress(b, v); jnp.extract(b, v); jnp.select([v > 2, v > 1], [v, -v], 9); jnp.diag(v); jnp.diag(v, 1); jnp.diag(v, -1); jnp.diag(x); jnp.diagonal(t, 0, 1, 2); jnp.trace(x); jnp.trace(i[None]); jnp.tril(x); jnp.triu(x, 1); jnp.tril(t); jnp.tril_indices(3)[1]
jnp.delete(v, 1); jnp.delete(x, jnp.array([0, 2]), 1); jnp.insert(v, 1, 9.); jnp.insert(v, jnp.array([0, 2]), jnp.array([7., 8.])); jnp.unravel_index(7, (3, 4))[1]; jnp.ravel_multi_index((i, i), (3, 4)); jnp.apply_along_axis(jnp.sum, 1, x); jnp.put_along_axis(x, i[:, None], 9., 1, inplace=False); jnp.fill_diagonal(x, 7., inplace=False)
jnp.median(v); jnp.median(x, 0); jnp.median(w); jnp.quantile(x, 0.3); jnp.quantile(x, jnp.array([0.1, 0.5]), axis=1); jnp.percentile(v, 40, method='lower'); jnp.nanmedian(w[:2]); jnp.nanquantile(jnp.array([jnp.nan, 1., 3.]), 0.25); jnp.quantile(x, 0.4, method='nearest'); jnp.quantile(x, 0.45, axis=0, keepdims=True); jnp.cov(x); jnp.corrcoef(x + jnp.sin(x)); jnp.bincount(i); jnp.bincount(i, weights=v, minlength=5); jnp.histogram(v, 4)[0]; jnp.histogram(v, 4)[1]; jnp.histogram(v, bins=jnp.array([0., 1., 2., 3.]))[0]; jnp.histogram(x, 5, density=True)[0]
jnp.diff(x); jnp.diff(v, 2); jnp.diff(v, prepend=0.); jnp.ediff1d(v); jnp.gradient(v); jnp.gradient(x)[1]; jnp.interp(1.5, jnp.array([1., 2., 3.]), v); jnp.interp(x[0], jnp.array([-4., 2.]), jnp.array([0., 1.]), left=-9.); jnp.interp(5., jnp.array([0., 1.]), jnp.array([0., 1.]), period=3); jnp.trapezoid(v); jnp.trapezoid(x, dx=0.5, axis=0); jnp.trapezoid(v, x=jnp.array([0., 1., 3.])); jnp.convolve(v, jnp.array([1., 2.])); jnp.convolve(v, jnp.array([1., 2.]), mode='same'); jnp.convolve(v, jnp.array([1., 2., 3., 4.]), mode='valid'); jnp.convolve(v, jnp.array([1., 2., 3., 4.]), mode='same'); jnp.correlate(v, jnp.array([1., 2.])); jnp.correlate(v, jnp.array([1., 2.]), mode='full'); jnp.correlate(v, jnp.array([1., 2.]), mode='same'); jnp.correlate(v[:2], v, mode='full'); jnp.correlate(v, jnp.array([1., 2., 3., 4.]), mode='same'); jnp.unwrap(jnp.array([0., 3., 6., 9.5])); jnp.polyval(v, 2.); jnp.vander(v); jnp.vander(v, 2, increasing=True)
jnp.allclose(v, v + 1e-9); jnp.isclose(w, w, equal_nan=True); jnp.isclose(v, 2.); jnp.array_equal(v, v); jnp.array_equal(v, i); jnp.array_equiv(v, v[None]); jnp.linalg.norm(v); jnp.linalg.norm(x, axis=1); jnp.linalg.norm(x, 1); jnp.linalg.norm(v, 3); jnp.linalg.norm(x, jnp.inf); jnp.linalg.norm(v, jnp.inf); jnp.linalg.matrix_power(x[:, :3], 3); jnp.linalg.vector_norm(x); jnp.float32(3); jnp.int8([1, 2]); jnp.bool_(2); jnp.complex64(1)
x.astype(int); w.astype(int); x.astype('bfloat16'); b.astype(float); c.astype('complex64'); v.view('int32'); x.item(); v[0].item(); v.tolist(); float(v[0]); int(i[0]); bool(v); bool(v[0]); float(v); len(x); len(v[0]); list(i); iter(v[0]); hash(v); [1, 2, 3][i[0]]; range(i[0]); [1, 2][v[0]]; complex(v[0]); x.round(1); x.at[0]; v in v; 2. in v; x.nbytes; x.itemsize; x.T.shape; v.copy(); x.trace(); x.dot(x.T); v.sort(); v.argsort(); v.conj(); c.real; c.imag; x.clip(0, 1); x.std(); x.take(i); v.repeat(2); x.diagonal(); i.nonzero()[0]; x.ptp(); x.cumsum(0)
v.dtype; jnp.result_type(i, 1.5); jnp.result_type('int8', 'uint8'); jnp.promote_types('int16', 'bfloat16'); jnp.can_cast('int32', 'float32'); jnp.issubdtype(jnp.bfloat16, jnp.floating); jnp.issubdtype(i.dtype, jnp.integer); jnp.isdtype(v.dtype, 'real floating'); jnp.finfo('float32').eps; jnp.iinfo('int8').max; jnp.finfo(jnp.bfloat16).bits; jnp.ndim(x); jnp.shape(x); jnp.size(x); jnp.size(x, 1); jnp.isscalar(2.); jnp.pi; jnp.broadcast_shapes((2, 1), (3,))
repr(x); repr(v); repr(i); repr(b); repr(c); repr(w); repr(h); repr(u); repr(jnp.array(1.)); repr(jnp.array(1e-5)); repr(jnp.array([1e-5, 2.5])); repr(jnp.array([1e10, 1.])); repr(jnp.zeros((0, 3))); repr(jnp.zeros(0)); repr(jnp.arange(2000)); repr(jnp.ones((40, 40))); repr(t); repr(jnp.arange(30.)); repr(jnp.linspace(0, 1, 17)); repr(jnp.array([0.1, 123.456])); repr(jnp.array([[1e-3, 1e3]])); repr(jnp.float16(0.1)); repr(jnp.array([1.5, jnp.nan, -jnp.inf])); repr(jnp.arange(-50, 50)); repr(jnp.array([1e20, 1e-20])); repr(jnp.sin(jnp.arange(12.)).reshape(3, 4)); repr(jnp.int8(5)); repr(jnp.array([123456789])); repr(jnp.array([1e7, 1.])); repr(jnp.array([16777216.])); repr(jnp.array([1/3, 2/3])); repr(jnp.array(123456.789)); repr(2. ** jnp.arange(20.) + 1/3)
str(x); str(v); str(v[0]); str(jnp.array(1e-5)); str(jnp.array(1e20)); str(b[0]); str(c); str(c[0]); str(jnp.array(1.)); f'{v[0]:.3f}'; f'{v}'; f'{v[0]}'; f'{i[0]:03d}'; str(jnp.arange(2000.)); str(jnp.array(123456.789)); str(t); str(h); str(jnp.array(0.1, 'float16')); str(jnp.array([])); str(jnp.array(100.)); str(jnp.float32(16777216.)); str(jnp.array(jnp.nan)); str(jnp.array(2e16))
lax.add(1., 2.); lax.add(v, 1); lax.add(v, i); lax.add(v, 1.); lax.sin(i); lax.mul(v, v); lax.max(v, 2.); lax.dot(x, x.T); lax.dot_general(t, t, (((2,), (2,)), ((0,), (0,)))); lax.broadcast(v, (2,)); lax.broadcast_in_dim(v, (3, 2), (0,)); lax.reshape(x, (4, 3)); lax.transpose(x, (1, 0)); lax.slice(x, (0, 1), (2, 4), (1, 2)); lax.slice_in_dim(x, 1, None, axis=1); lax.index_in_dim(x, -1, 1); lax.dynamic_slice(x, (5, -1), (2, 2)); lax.dynamic_slice_in_dim(x, 1, 2, 1); lax.dynamic_update_slice(x, y, (1, 0)); lax.dynamic_index_in_dim(x, 1, 0, False); lax.dynamic_update_index_in_dim(v, 9., 1, 0); lax.pad(v, 0., ((1, 2, 1),)); lax.concatenate([v, v], 0); lax.rev(x, (0,))
lax.sort(v); lax.sort_key_val(i, v)[1]; lax.top_k(v, 2)[0]; lax.top_k(x, 2)[1]; lax.argmax(v, 0, 'int32'); lax.reduce_sum(x, (0,)); lax.reduce_max(x, (1,)); lax.cumsum(x, 1); lax.cumprod(v, 0, True); lax.cummax(v); lax.cumlogsumexp(v); lax.iota('int32', 3); lax.broadcasted_iota('float32', (2, 3), 1); lax.full((2,), 7); lax.full_like(x, 3); lax.select(b, v, -v); lax.select_n(i, v, v * 2, v * 3); lax.clamp(1., v, 2.); lax.convert_element_type(v, int); lax.bitcast_convert_type(v, 'int32'); lax.stop_gradient(v); lax.expand_dims(v, (0,)); lax.squeeze(y, (0,)); lax.collapse(t, 0, 2); lax.erf(v); lax.erf_inv(v / 4); lax.lgamma(v); lax.digamma(v); lax.is_finite(w); lax.nextafter(v, 0.); lax.round(x / 2); lax.rsqrt(v); lax.integer_pow(v, 3); lax.pow(v, 2); lax.reduce(x, 0., lax.add, (0,)); lax.reduce(v, -1., lambda a, b: lax.max(a, b) + 0., (0,)); lax.population_count(i); lax.clz(i); lax.complex(v, v); lax.conj(c); lax.reduce_precision(v / 3, 8, 3); lax.rem(n, 3); lax.shift_right_logical(n, 1); lax.square(v); lax.tan(v); lax.logistic(v); lax.reciprocal(v); lax.batch_matmul(t, t.mT); lax.split(v, (1, 2))[1]; lax.broadcast_shapes((2, 1), (1, 3)); lax.gather(v, i[:, None], lax.GatherDimensionNumbers((), (0,), (0,)), (1,)); lax.scatter_add(v, i[:, None], v, lax.ScatterDimensionNumbers((), (0,), (0,)))
nn.relu(x); nn.relu6(x); nn.sigmoid(x); nn.softplus(x); nn.silu(x); nn.gelu(x); nn.gelu(x, False); nn.elu(x); nn.selu(x); nn.celu(x); nn.leaky_relu(x); nn.softmax(x); nn.softmax(x, 0); nn.softmax(x, where=x > -3); nn.log_softmax(x); nn.logsumexp(x); nn.logsumexp(x, 1); nn.one_hot(i, 4); nn.one_hot(i, 4, axis=0); nn.standardize(x); nn.glu(x); nn.hard_tanh(x); nn.hard_sigmoid(x); nn.hard_silu(x); nn.log_sigmoid(x); nn.soft_sign(x); nn.squareplus(x); nn.mish(x); nn.sparse_plus(x); nn.relu(i); nn.softmax(i); nn.tanh(1.); nn.logmeanexp(x, 1); nn.dot_product_attention(t[None], t[None], t[None], is_causal=True); nn.log1mexp(v); nn.identity(x)
nn.initializers.glorot_uniform()(jax.random.key(0), (3, 4)); nn.initializers.he_normal()(jax.random.key(0), (3, 4)); nn.initializers.lecun_normal()(jax.random.key(0), (3, 4)); nn.initializers.normal()(jax.random.key(0), (3,)); nn.initializers.truncated_normal()(jax.random.key(0), (3,)); nn.initializers.uniform()(jax.random.key(0), (3,)); nn.initializers.constant(2.)(jax.random.key(0), (2,)); nn.initializers.xavier_normal()(jax.random.key(0), (2, 2))
jax.grad(lambda x: jnp.sum(nn.relu(x)))(v - 2); jax.grad(nn.softplus)(0.); jax.grad(lambda v: jnp.logaddexp(v[0], v[1]))(v); jax.grad(lambda x: nn.logsumexp(x))(x); jax.grad(lambda x: x[i].sum())(x); jax.grad(lambda x: x.at[0].set(x[1] ** 2).sum())(x); jax.grad(lambda x: jnp.sort(x)[0])(v); jax.grad(lambda x: x.max())(v); jax.grad(lambda x: jnp.prod(x))(v); jax.grad(lambda x: jnp.var(x))(v); jax.grad(lambda x: jnp.linalg.norm(x))(v); jax.grad(lambda x: jnp.where(x > 1, x ** 2, 0.).sum())(v); jax.grad(lambda x: jnp.einsum('i,i->', x, x))(v); jax.grad(lambda x: (x @ x.T).sum())(x); jax.grad(lambda x: jnp.cumsum(x)[1])(v); jax.grad(lambda x: jnp.median(x))(v); jax.grad(lambda x: nn.gelu(x).sum())(v); jax.grad(lambda x: jnp.take(x, i).sum())(v); jax.grad(lambda x: jnp.max(x, 1).sum())(x); jax.vmap(lambda r, k: r[k])(x, i); jax.vmap(lambda r, k: r.at[k].set(0.))(x, i); jax.jit(lambda x, k: x[k])(x, 1); jax.jit(lambda x: x.at[x > 0].set(v))(x)
jax.jit(lambda x: x[x > 0])(x); jax.jit(lambda x: jnp.nonzero(x))(x); jax.jit(lambda n: jnp.arange(n))(3); jax.jit(lambda n: jnp.zeros(n))(3); jax.jit(lambda n: v[:n])(2); jax.jit(lambda x: int(x))(1); jax.jit(lambda x: bool(x))(1); jax.jit(lambda x: range(x))(1); jax.jit(lambda x: np.asarray(x))(1.); jax.jit(lambda x: x.item())(1.); jax.jit(lambda x: x.tolist())(1.); jax.jit(lambda x: float(x))(1.); jax.jit(lambda x: f'{x:.2f}')(1.); jax.jit(lambda x: jnp.unique(x))(i); jax.jit(lambda x: jnp.repeat(v, x))(i)
"""


def expressions() -> list[str]:
    """Every expression, once."""
    return list(dict.fromkeys(e.strip() for line in CASES.strip().splitlines() for e in _split(line) if e.strip()))


def _split(line: str):
    """Splits at semicolons outside of brackets."""
    depth, start = 0, 0
    for k, ch in enumerate(line):
        depth += (ch in "([{") - (ch in ")]}")
        if ch == ";" and depth == 0:
            yield line[start:k]
            start = k + 1
    yield line[start:]


def evaluate(names: dict) -> dict:
    """Each expression's result as plain data: [dtype, shape, weak type, value] for arrays, the value's repr otherwise, or its error class."""
    scope = dict(names)
    exec(SETUP, scope)
    np, results = scope["np"], {}
    for text in expressions():
        try:
            value = eval(text, scope)
        except Exception as e:
            results[text] = ["error", [c.__name__ for c in type(e).__mro__ if c.__module__ in ("builtins",) or "Error" in c.__name__]]
            continue
        results[text] = describe(value, np)
    return results


def describe(value, np) -> list:
    if hasattr(value, "dtype") and hasattr(value, "weak_type"):
        if str(value.dtype).startswith("key"):
            return ["key", list(value.shape)]
        plain = np.asarray(value)
        plain = plain.astype("float32") if value.dtype == "bfloat16" else plain
        parts = [plain.real, plain.imag] if plain.dtype.kind == "c" else [plain]
        return ["array", str(value.dtype), list(value.shape), bool(value.weak_type), [_words(p) for p in parts]]
    if isinstance(value, (list, tuple)) and any(hasattr(v, "weak_type") for v in value):
        return ["sequence", [describe(v, np) for v in value]]
    return ["value", repr(value).replace("jax.numpy", "jnp").replace("weft.numpy", "jnp")[:4000]]


def _words(plain) -> list:
    return [("nan" if v != v else "inf" if v > 0 else "-inf") if isinstance(v, float) and not (v - v == 0) else v for v in plain.reshape(-1).tolist()]
