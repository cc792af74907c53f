"""Expressions over `linalg`, `fft`, `special`, `jnp`, `jax` and `np`, with 64-bit types on, whose results (or error classes) must be those of real JAX."""

SETUP = """
A = jnp.array([[1., 2., .5], [.3, 3., 1.], [.1, .2, 2.]])
B = jnp.array([[2., 1.], [.5, 1.]])
C = jnp.ones((3, 2))
R = jnp.array([[0., 1., .5], [-2., .3, .1], [.2, .4, 3.]])
v = jnp.array([1., 2., 3.])
i = jnp.array([1, 2, 3])
bat = jnp.arange(6.).reshape(2, 3) + 1
both = jnp.stack([A, 2 * A])
x = jnp.sin(jnp.arange(24.)).reshape(2, 3, 4)
"""

CASES = """
linalg.circulant(v); linalg.circulant(bat); linalg.circulant(1.); linalg.circulant([1., 2.]); linalg.circulant(jnp.array([])); linalg.circulant(i); linalg.circulant(v.astype('float16'))
linalg.companion(v); linalg.companion(bat); linalg.companion(jnp.array([1.])); linalg.companion(i); linalg.companion(jnp.array([0., 1.])); linalg.companion(1.); linalg.companion(v + 1j)
linalg.convolution_matrix(v, 4); linalg.convolution_matrix(v, 4, 'same'); linalg.convolution_matrix(v, 4, 'valid'); linalg.convolution_matrix(v, 2, 'valid'); linalg.convolution_matrix(v, 2, 'same')
linalg.convolution_matrix(v, 0); linalg.convolution_matrix(v, 2, 'x'); linalg.convolution_matrix(bat, 2); linalg.convolution_matrix(jnp.array([]), 2); linalg.convolution_matrix(v, 2.)
linalg.convolution_matrix(1., 2); linalg.convolution_matrix(i, 5, 'same'); linalg.convolution_matrix(v, n=1); linalg.convolution_matrix(v, 7, mode='valid')
linalg.dft(3); linalg.dft(3, 'sqrtn'); linalg.dft(3, 'n'); linalg.dft(3, 'x'); linalg.dft(0); linalg.dft(-1); linalg.dft(3.); linalg.dft(2, dtype='complex64'); linalg.dft(2, dtype='float32'); linalg.dft(2, dtype=int)
linalg.expm_frechet(A, A); linalg.expm_frechet(A, R, compute_expm=False); linalg.expm_frechet(A, R, method='SPS'); linalg.expm_frechet(A, R, method='blockEnlarge')
linalg.expm_frechet(A, B); linalg.expm_frechet(C, C); linalg.expm_frechet(both, both);
linalg.fiedler(v); linalg.fiedler(bat); linalg.fiedler(1.); linalg.fiedler(i); linalg.fiedler(jnp.array([])); linalg.fiedler(v * 1j); linalg.fiedler_companion(v); linalg.fiedler_companion(jnp.arange(1., 6))
linalg.fiedler_companion(jnp.arange(1., 5)); linalg.fiedler_companion(jnp.arange(1., 9)); linalg.fiedler_companion(jnp.array([1.])); linalg.fiedler_companion(jnp.array([])); linalg.fiedler_companion(jnp.array([1., 2.]))
linalg.fiedler_companion(jnp.array([0., 2., 3.])); linalg.fiedler_companion(bat); linalg.fiedler_companion(i); linalg.fiedler_companion('a')
linalg.funm(A, jnp.sin); linalg.funm(C, jnp.sin); linalg.funm(both, jnp.sin); linalg.funm(R, lambda x: x); linalg.funm(A + 0j, jnp.exp); linalg.funm(jnp.eye(2), jnp.sin); linalg.funm(A, 3)
linalg.funm(A, jnp.cos, disp=False)[0]; linalg.hadamard(2); linalg.hadamard(4, float); linalg.hadamard(3); linalg.hadamard(0); linalg.hadamard(1); linalg.hadamard(2.); linalg.hadamard(2, dtype='int8'); linalg.hadamard(8)
linalg.hankel(v); linalg.hankel(v, v); linalg.hankel(v, jnp.array([9., 8.])); linalg.hankel(bat); linalg.hankel(bat, bat); linalg.hankel(bat, v); linalg.hankel(1.); linalg.hankel([1., 2.]); linalg.hankel(i, v)
linalg.helmert(3); linalg.helmert(3, True); linalg.helmert(0); linalg.helmert(1); linalg.helmert(2.); linalg.helmert(6); linalg.hilbert(3); linalg.hilbert(0); linalg.hilbert(-1); linalg.hilbert(2.)
linalg.invhilbert(3); linalg.invhilbert(8); linalg.invhilbert(0); linalg.invhilbert(-1); linalg.invhilbert(2.); linalg.invpascal(3); linalg.invpascal(3, 'lower'); linalg.invpascal(3, 'upper'); linalg.invpascal(3, 'x')
linalg.invpascal(0); linalg.invpascal(7); linalg.pascal(3, 'x');
linalg.leslie(v, v[:2]); linalg.leslie(v, v); linalg.leslie(bat, bat[:, :2]); linalg.leslie(v, bat[:, :2]); linalg.leslie(v, i[:2]); linalg.leslie(jnp.ones(1), jnp.ones(0)); linalg.leslie(i[:2], i[:1]); linalg.leslie(1., 2.)
linalg.rsf2csf(A, C); linalg.rsf2csf(C, C); linalg.rsf2csf(v, v); linalg.rsf2csf(jnp.triu(A), A); linalg.rsf2csf(A[:2, :2], A)
linalg.solve_sylvester(A, B, C); linalg.solve_sylvester(A, B, C, method='eigen'); linalg.solve_sylvester(A, B, C, method='x'); linalg.solve_sylvester(A, B, C.T); linalg.solve_sylvester(A, -A, A)
linalg.solve_sylvester(A, B, C, tol=10.); linalg.solve_sylvester(both, B, C); linalg.solve_sylvester(A + 0j, B, C + 1j); linalg.solve_sylvester(C, B, C); linalg.solve_sylvester(A, B, v); linalg.solve_sylvester(R, R, A)
linalg.solve_sylvester(R, R, A, method='eigen'); linalg.sqrtm(A); linalg.sqrtm(-A); linalg.sqrtm(R); linalg.sqrtm(C); linalg.sqrtm(A, blocksize=2); linalg.sqrtm(A + 1j); linalg.sqrtm(jnp.arange(4).reshape(2, 2))
linalg.sqrtm(jnp.zeros((2, 2))); linalg.sqrtm(jnp.eye(3));
linalg.toeplitz(v); linalg.toeplitz(v, jnp.array([9., 8.])); linalg.toeplitz(bat); linalg.toeplitz(bat, bat); linalg.toeplitz(bat, v); linalg.toeplitz(v + 1j); linalg.toeplitz([1., 2.])
linalg.toeplitz(i, v); linalg.toeplitz(jnp.array([])); linalg.toeplitz(v, bat); linalg.toeplitz(i > 1)
jax.grad(lambda a: linalg.sqrtm(a).real.sum())(A); jax.grad(lambda a: linalg.funm(a, jnp.exp).real.sum())(A); jax.grad(lambda a: linalg.solve_sylvester(a, B, C).sum())(A)
jax.grad(lambda a: linalg.expm_frechet(a, A)[1].sum())(A); jax.grad(lambda c: (linalg.toeplitz(c, v) ** 2).sum())(v); jax.grad(lambda c: (linalg.companion(c) ** 2).sum())(v)
jax.grad(lambda c: (linalg.fiedler_companion(c) ** 2).sum())(v); jax.vmap(linalg.sqrtm)(both); jax.vmap(lambda a: linalg.solve_sylvester(a, B, C))(both); jax.vmap(lambda a: linalg.funm(a, jnp.sin))(both)
fft.dct(v); fft.dct(i); fft.dct(x); fft.dct(x, axis=1); fft.dct(x, n=7); fft.dct(x, 2, 2, 0); fft.dct(x, norm='ortho'); fft.dct(x, norm='backward'); fft.dct(x, norm='forward'); fft.dct(x, norm='x'); fft.dct(v, type=1)
fft.dct(v, type=3); fft.dct(v, type=4); fft.dct(v, n=0); fft.dct(v, axis=1); fft.dct([1., 2.]); fft.dct(v.astype('float16')); fft.dct(v.astype('float32')); fft.dct(1.); fft.dct(jnp.ones((0, 3)))
fft.idct(v); fft.idct(i); fft.idct(x, norm='ortho'); fft.idct(x, axis=0); fft.idct(x, n=7); fft.idct(x, n=3, norm='ortho'); fft.idct(v, type=3); fft.idct(v, norm='forward');
fft.dctn(x); fft.dctn(bat); fft.dctn(bat, norm='ortho'); fft.dctn(x, s=(3, 2)); fft.dctn(x, axes=(0,)); fft.dctn(x, axes=0); fft.dctn(bat, s=(3,), axes=(0,)); fft.dctn(bat, type=1); fft.dctn(bat, axes=(0, 0)); fft.dctn(bat, norm='x')
fft.dctn(x, axes=(2, 0)); fft.idctn(x); fft.idctn(bat); fft.idctn(bat, norm='ortho'); fft.idctn(bat, s=(3, 2), axes=(1, 0)); fft.idctn(x, axes=(-1, 0)); fft.idctn(bat, axes=(2,)); fft.idctn(bat, 3)
jax.grad(lambda x: (fft.dct(x) ** 2).sum())(v); jax.grad(lambda x: (fft.idctn(x, norm='ortho') ** 3).sum())(bat); jax.vmap(fft.dct)(bat); jax.jit(fft.idct)(v)
special.wofz([1.]); special.dawsn(v + 1j); special.erfcx([1.]); special.exp1(v + 1j); special.expi(v + 1j); special.fresnel(v + 1j); special.gammasgn(v + 1j); special.hyp1f1(v + 1j, 1., 1.)
special.log_ndtr(1); special.log_ndtr(v, -1); special.log_ndtr(v, 31); special.log_ndtr(v, 1.5); special.log_ndtr(v.astype('float16')); special.log_ndtr(v + 1j); special.spence(2); special.spence(v + 1j)
special.spence(v.astype('float16')); special.sici(v + 1j); special.poch(v + 1j, 1.); special.comb([5], 2); special.comb(5, 2, exact=True); special.bernoulli(-1); special.bernoulli(2.); special.bessel_jn(v, v=2.)
special.multigammaln(4., i); special.sph_harm_y(2, 1, .3, .4); special.sph_harm_y(i, i, v, v, 1); special.sph_harm_y(v, i, v, v); jax.jit(special.sph_harm_y)(i, i, v, v); special.hyp2f1(1., 2., jnp.ones(2), jnp.ones(3))
special.sph_harm_y(i, i, v, v); special.sph_harm_y(i, -i, v, v, n_max=3); special.sph_harm_y(i[:2], i[:1], v[:1], v[:1]);
special.dawsn(v.astype('float16')); special.erfcx(v.astype('bfloat16')); special.exp1(i); special.expi(v.astype('float32')); special.expn(i[:, None], v); special.wofz(v.astype('float32')); special.wofz(v.astype('float16'))
special.wofz(v + 1j); special.fresnel(v.astype('float16')); special.sici(v.astype('float16')); special.loggamma(v + 2j); special.loggamma(v.astype('float16')); special.multigammaln(v + 3, 2); special.multigammaln(i + 3, 2.)
special.boxcox(v, i); special.boxcox1p(v, bat); special.comb(i, 1); special.comb(v, bat, repetition=True); special.poch(v.astype('float16'), 1); special.owens_t(v, bat); special.gammasgn(i)
"""


def expressions() -> list[str]:
    """Every expression, once."""
    from frozen import split
    return list(dict.fromkeys(split(CASES)))
