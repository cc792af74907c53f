"""Every function of jax.numpy, jax.numpy.linalg and jax.numpy.fft over dtypes and shapes: one row for functions that
take the same arguments.

A row is a list of names and calls, in which F is the function and the others are what `arguments` makes for each dtype.
"""

import re

from frozen import describe, expected_class, split

WORDS_ARE = "weft.numpy"  # to tools/coverage.py
DTYPES = ("bool", "int8", "uint8", "int32", "float16", "bfloat16", "float32", "float64", "complex64")

ROWS = """
abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh bitwise_count \
bitwise_invert bitwise_not cbrt ceil conj conjugate cos cosh deg2rad degrees exp exp2 expm1 fabs floor imag \
invert iscomplex isfinite isinf isnan isneginf isposinf isreal log log10 log1p log2 logical_not negative \
positive rad2deg radians real reciprocal rint sign signbit sin sinc sinh sqrt square tan tanh trunc nan_to_num \
frexp modf around round spacing i0: F(x)
    F(s); F(e); F(n)
add arctan2 atan2 bitwise_and bitwise_or bitwise_xor copysign divide divmod equal float_power floor_divide fmax \
fmin fmod greater greater_equal heaviside hypot less less_equal logaddexp logaddexp2 logical_and logical_or \
logical_xor maximum minimum mod multiply nextafter not_equal remainder subtract true_divide isclose: F(x, y)
    F(x, 2); F(s, x); F(n, n[::-1]); F(x, i); F(1.5, x); F(e, y)
gcd lcm: F(x, y); F(x, 2); F(s, x); F(x, i); F(1.5, x); F(e, y)
pow power: F(x, 2); F(x, y); F(x, 2.); F(2, x); F(e, y); F(x, i)
bitwise_left_shift bitwise_right_shift left_shift right_shift: F(x, 1); F(y, i); F(e, y)
ldexp: F(x, 2); F(x, i); F(n, 1)
sum prod max min amax amin mean std var all any count_nonzero nansum nanprod nanmax nanmin nanmean nanvar nanstd \
ptp: F(x)
    F(x, axis=-1); F(x, axis=(0, -1), keepdims=True); F(s); F(n); F(e, axis=1); F(e, axis=0); F(x, axis=2)
sum prod max min mean std var all any nansum nanmean nanstd: F(x, axis=0, where=mask, **initial)
median nanmedian: F(x); F(x, axis=-1); F(x, axis=0, keepdims=True); F(n); F(e, axis=1); F(s)
quantile nanquantile: F(x, .3); F(x, jnp.array([.25, .5]), axis=-1); F(x, .4, axis=0, keepdims=True, method='nearest')
    F(x, .6, method='midpoint'); F(n, .5); F(x, .9, method='higher')
percentile nanpercentile: F(x, 30); F(x, jnp.array([25, 50]), axis=-1); F(x, 40., axis=0, method='lower')
argmax argmin nanargmax nanargmin: F(x); F(x, axis=-1); F(x, axis=0, keepdims=True); F(n); F(s); F(e)
cumsum cumprod nancumsum nancumprod: F(x); F(x, axis=-1); F(x, axis=0); F(n); F(s); F(e); F(x, dtype='float32')
cumulative_sum cumulative_prod: F(v); F(x, axis=-1); F(x, axis=0, include_initial=True); F(x)
average: F(x); F(x, axis=-1); F(x, axis=1, weights=y); F(x, axis=0, returned=True, keepdims=True)
sort argsort: F(x); F(x, axis=0); F(x, axis=None, descending=True); F(n); F(e); F(s)
lexsort: F((v, y)); F((x[0], x[1]), axis=-1)
partition argpartition: F(x, 1).shape; F(x, 0, axis=0)
unique: F(x); F(x, return_index=True, return_inverse=True, return_counts=True); F(n); F(x, axis=0); F(e); F(x, size=8)
unique_all unique_counts unique_inverse unique_values: F(x); F(x, size=3); F(e)
sort_complex: F(v); F(x)
searchsorted: F(jnp.sort(v), x); F(jnp.sort(v), y, side='right'); F(e[:, 0], v)
digitize: F(x, jnp.sort(v)); F(x, y, right=True)
isin union1d setdiff1d setxor1d intersect1d: F(x, y); F(v, v[:1]); F(e, y)
nonzero argwhere flatnonzero: F(x); F(x, size=3); F(e); F(n); F(s)
append: F(x, y); F(x, x, axis=-1); F(v, 1.5)
concatenate concat stack hstack vstack dstack column_stack: F([x, x]); F([x, y]); F((v, y)); F([s, s])
    F([x, x.astype('int8')])
concatenate concat stack: F([x, x], axis=-1); F([v, v], axis=0); F([e, x], axis=0); F([x, x], axis=5)
block: F([x, x]); F([[x, x], [x, x]]); F([v, y]); F(s)
split array_split hsplit vsplit: F(x, 2); F(x, [1], 1) if 'hv'.find('F'[4]) < 0 else F(x, [1]); F(e, 1)
dsplit: F(x[None], 3); F(x, 3)
unstack: F(x); F(x, axis=-1); F(s)
atleast_1d atleast_2d atleast_3d ravel transpose flip squeeze fliplr flipud rot90 ndim shape size isscalar \
iscomplexobj isrealobj matrix_transpose copy asarray array zeros_like ones_like: F(x)
    F(s); F(e); F(n)
empty_like: F(x).shape; F(s).dtype
full_like: F(x, 2); F(x, 2.5); F(s, True); F(e, 1)
astype: F(x, 'float32'); F(x, 'int32'); F(x, 'bool'); F(x, 'uint8'); F(x, 'complex64'); F(y, 'bfloat16'); F(e, 'int8')
reshape: F(x, -1); F(x, (3, 2)); F(x, (3, 2), order='F'); F(e, (3, 0)); F(x, 5); F(s, (1, 1))
expand_dims: F(x, 0); F(x, -1); F(x, (0, -1)); F(x, 5)
swapaxes moveaxis rollaxis: F(x, 0, 1); F(x, -1, 0); F(x, 0, 3)
permute_dims transpose: F(x, (1, 0)); F(x, (0, -1)); F(x, (0, 0))
flip: F(x, axis=-1); F(x, axis=(0, 1))
rot90: F(x, 3); F(x, axes=(1, 0))
roll: F(x, 1); F(x, -1, axis=-1); F(x, (1, 2), axis=(0, 1)); F(e, 1)
tile: F(x, 2); F(x, (2, 1, 1)); F(s, 3)
repeat: F(x, 2); F(x, 2, axis=-1); F(x, jnp.array([1, 2]), axis=0); F(v, jnp.array([1, 2, 0]), total_repeat_length=4)
broadcast_to: F(x, (2, 2, 3)); F(s, (2,)); F(x, (3, 3))
broadcast_arrays: F(x, y); F(s, e); F(x, v[:2])
resize: F(x, (4, 2)); F(x, 3); F(e, (2,))
pad: F(x, 1); F(x, ((1, 0), (0, 2)), constant_values=1); F(x, 1, mode='edge'); F(v, 2, mode='reflect')
    F(v, 2, mode='symmetric'); F(v, 2, mode='wrap'); F(v, 2, mode='linear_ramp'); F(v, 1, mode='mean')
    F(v, 1, mode='median'); F(v, 1, mode='maximum'); F(v, 1, mode='empty').shape; F(v, 1, mode='odd')
trim_zeros: F(jnp.concatenate([0 * v, v, 0 * v]))
diag diagflat: F(x); F(v); F(v, -1); F(x, 1)
diagonal trace: F(x); F(x, offset=-1); F(m, 1, -1, -2); F(m, dtype='float32') if 'F'.endswith('ce') else F(x, 5)
tril triu: F(x); F(x, -1); F(x, k=1); F(m[None])
fill_diagonal: F(m, 1, inplace=False); F(x, y, inplace=False)
take: F(x, i); F(x, i[:2], axis=-1); F(x, jnp.array([-1, 9]), axis=1); F(x, 9, mode='clip')
    F(x, jnp.array([4, -5]), axis=1, mode='wrap'); F(x, i, axis=2); F(x, 9, fill_value=1)
take_along_axis: F(x, i[None], 1); F(x, i[None], axis=-1); F(v, i, None)
put_along_axis: F(x, i[None], y, 1, inplace=False)
put: F(x, i, y, inplace=False); F(x, 9, 1, inplace=False, mode='wrap')
place: F(x, mask, y, inplace=False)
choose: F(i, [v, y, v]); F(x, [1, 2, 3], mode='clip'); F(x, [y, v], mode='wrap')
compress: F(mask[0], x, axis=1); F(mask[:, 0], x, axis=0); F(mask[0], x)
extract: F(mask, x)
select: F([mask, x == y], [x, y]); F([mask], [x], 9)
where: F(mask, x, y); F(mask, x, 1); F(x, 1.5, y); F(mask, x, 0.); F(x)
delete: F(x, 1); F(x, 0, axis=-1); F(x, jnp.array([0, 1]), axis=1)
insert: F(v, 1, 9); F(x, 1, y, axis=0); F(v, jnp.array([0, 2]), y[:2])
apply_along_axis: F(jnp.sum, -1, x); F(lambda r: r[::-1], 0, x)
apply_over_axes: F(jnp.sum, x, [0, 1])
piecewise: F(x, [x == y, mask], [1, lambda t: -t, 0]) if x.dtype != bool else 0
unravel_index: F(i, (2, 3)); F(5, (2, 3)); F(x, (3, 4))
ravel_multi_index: F((i, i), (3, 4)); F((i, 9), (3, 4), mode='clip'); F((i, i), (3, 3), order='F')
dot vdot inner matmul: F(m, m); F(v, y); F(m, v); F(v, m); F(x, 2); F(x, x); F(e, m); F(jnp.stack([m, m]), x.T)
outer kron: F(v, y); F(x, v); F(s, v)
tensordot: F(m, m); F(x, m, 1); F(x, x, ((0, 1), (0, 1))); F(m, x, axes=(1, -1)); F(m, v, 5)
vecdot: F(x, y); F(x, x, axis=0); F(x, v[:2])
matvec: F(m, v); F(x, y); F(jnp.stack([m, m]), x); F(v, v)
vecmat: F(v, m); F(x, m); F(v, v)
cross: F(v, y); F(x, y); F(x[:, :2], x[:, 1:]); F(m, m, axis=0); F(v[:1], v)
einsum: F('ij,j', x, y); F('ij,kj->ik', x, m); F('ii->i', m); F('ij->', x); F('...j,j->...', x, y)
    F('ij,jk,k->i', x, m, v); F('i,i,i', v, y, v); F('ij,ij->ij', x, x); F('ab,b->ba', x, y)
cov: F(x); F(x, y[None]); F(x, rowvar=False); F(v); F(x, ddof=0)
corrcoef: F(x); F(x, rowvar=False)
convolve correlate: F(v, y); F(v, y[:2], 'same'); F(y, v, mode='valid'); F(v, x)
diff: F(x); F(x, axis=0); F(v, n=2); F(x, prepend=1); F(x, append=x[:, :1])
ediff1d: F(x); F(v, to_begin=0, to_end=y)
gradient: F(v); F(x); F(x, axis=0); F(v, 2.); F(v, jnp.array([0., 1., 3.]))
trapezoid: F(x); F(x, dx=.5, axis=0); F(v, jnp.array([0., 1., 3.]))
interp: F(x, jnp.array([0., 1., 2.]), y); F(v, jnp.array([0., 1., 2.]), y, left=-1, right=1.)
    F(v, jnp.array([0., 1., 2.]), y, period=2)
unwrap: F(x); F(x, axis=0, period=1); F(v * 4, discont=2)
bincount: F(i); F(i, weights=v); F(x); F(i, length=2); F(v, minlength=7)
histogram: F(x, 3); F(v, y); F(x, 3, density=True); F(x, 2, range=(0, 2), weights=x)
histogram_bin_edges: F(x, 3); F(v, bins=jnp.array([0., 1.])); F(x, 2, range=(0., 4.))
histogram2d: F(v, y, 2); F(v, y, bins=[2, 3])
histogramdd: F(x.T, 2)
clip: F(x, 0, 2); F(x, y, None); F(x, max=1); F(x, 0.5, 1.5); F(n, -1, 1); F(x)
allclose array_equal array_equiv: F(x, x); F(x, y); F(n, n); F(s, s); F(e, e)
array_equal allclose: F(n, n, equal_nan=True)
can_cast: F(x.dtype, 'float32'); F('int8', x.dtype)
promote_types result_type: F(x.dtype, 'int8'); F(x.dtype, 'float16'); F(x.dtype, 'complex64'); F(x.dtype, 'uint8')
    F(x.dtype, 'bfloat16')
result_type: F(x, 1); F(x, 1.5); F(x, 1j); F(x, True, y)
isdtype: F(x.dtype, 'integral'); F(x.dtype, ('bool', 'real floating')); F(x.dtype, 'float32')
issubdtype: F(x.dtype, jnp.integer); F(x.dtype, jnp.floating); F(x.dtype, jnp.inexact); F(x.dtype, 'int8')
broadcast_shapes: F((2, 1), (3,)); F((2,), (3,)); F()
arange: F(3, dtype=x.dtype); F(1, 6, 2, dtype=x.dtype); F(s); F(5., 0., -2.)
linspace: F(0, s, 4); F(v, 3, 3); F(0, 9, 4, dtype=x.dtype); F(0, 1, 3, endpoint=False, retstep=True)
    F(v, y, 2, axis=-1)
logspace geomspace: F(1, 3, 3, dtype=x.dtype); F(y, 4, 2); F(1, 2, 3, endpoint=False)
zeros ones: F((2, 1), x.dtype); F(3); F(()); F((0, 2), x.dtype)
empty: F((2,), x.dtype).shape
full: F((2,), 1, x.dtype); F((2, 2), v[:2]); F((), s); F((2,), 1.5)
eye identity: F(2, dtype=x.dtype)
eye: F(2, 3, 1, x.dtype)
tri: F(2, 3, dtype=x.dtype); F(3, k=-1)
meshgrid: F(v, y); F(v, y[:2], indexing='ij'); F(v, y, sparse=True); F(x, y)
indices: F((2, 2)); F((2, 3), x.dtype, sparse=True)
diag_indices tril_indices triu_indices: F(3)
tril_indices triu_indices: F(3, 1, 4)
diag_indices_from tril_indices_from triu_indices_from: F(m)
mask_indices: F(3, jnp.triu); F(3, jnp.tril, -1)
ix_: F(i, i[:2]); F(mask[0], i)
vander: F(v); F(v, 2, increasing=True); F(x)
polyval: F(v, x); F(v, 2); F(m, 2.)
poly: F(v); F(m)
polyadd polysub polymul: F(v, y); F(v, v[:2]); F(v, 2)
polydiv: F(v, y[:2])
polyder: F(v); F(v, 2); F(v[:1])
polyint: F(v); F(v, 2, k=1)
polyfit: F(y, v, 1) if x.dtype.itemsize >= 4 else 0
roots: F(v).shape; F(jnp.array([1, -3, 2], x.dtype)).shape
bartlett blackman hamming hanning: F(4); F(1); F(0)
kaiser: F(4, 3.); F(1, 2.)
packbits: F(x, axis=-1); F(x); F(x, bitorder='little')
unpackbits: F(x, axis=-1); F(x, count=5)
fromfunction: F(lambda i, j: i + j, (2, 2), dtype=x.dtype)
frombuffer: F(b'abcdefgh', 'int32'); F(b'abcd', 'uint8', count=2, offset=1)
vectorize: F(lambda a: a + 1)(x); F(lambda a: a.sum(), signature='(n)->()')(x)
frompyfunc: F(lambda a, b: a + b, 2, 1)(x, y)
linalg.norm: F(x); F(x, axis=-1); F(x, 1); F(x, jnp.inf); F(v, 3); F(v, 0); F(v, -jnp.inf)
    F(x, 'fro', axis=(0, 1), keepdims=True); F(x, 'nuc'); F(x, 2); F(v, 'foo'); F(x, axis=3); F(n)
linalg.vector_norm: F(x); F(x, axis=-1, ord=1); F(v, ord=jnp.inf, keepdims=True); F(v, ord=.5)
linalg.matrix_norm: F(x); F(m, ord=1); F(x, ord='nuc'); F(x, ord=-jnp.inf, keepdims=True); F(v)
linalg.det linalg.inv linalg.pinv linalg.svdvals linalg.cond linalg.matrix_rank: F(m); F(m[None]); F(x); F(v)
linalg.slogdet: F(m); F(m[None]); F(x)
linalg.eigvalsh linalg.cholesky: F(m @ jnp.conj(m.T) + jnp.eye(3, dtype=m.dtype)); F(x)
linalg.eigvals: jnp.sort(F(m).real); F(x)
linalg.eigh linalg.eig linalg.svd linalg.qr: F(m)[0].shape; F(x)[0].dtype; F(v)
linalg.qr: jnp.abs(F(x, 'r')); F(x, 'full')
linalg.svd: F(x, full_matrices=False)[1]; F(x, compute_uv=False)
linalg.solve: F(m, v); F(m, x.T); F(m[None], x.T[None]); F(m, s); F(x, v)
linalg.lstsq: F(x, x[:, 0])[0]; F(x.T, y)[2]
linalg.matrix_power: F(m, 3); F(m, 0); F(m, -1); F(x, 2); F(m, 1.5)
linalg.multi_dot: F([x, m, v]); F([v, m, v]); F([x, m, m]); F([x])
linalg.cross linalg.outer: F(v, y); F(x, y)
linalg.matmul linalg.tensordot linalg.vecdot: F(m, m); F(m, v)
linalg.trace linalg.diagonal linalg.matrix_transpose: F(m); F(x); F(v)
linalg.tensorinv: F(m, 1); F(m)
linalg.tensorsolve: F(m, v); F(m, x)
fft.fft fft.ifft fft.rfft fft.irfft fft.hfft fft.ihfft: F(x); F(x, 4, axis=0, norm='ortho'); F(v, 2, norm='forward')
    F(v, norm='foo'); F(e, axis=0); F(s); F(x, axis=2)
fft.fft2 fft.ifft2 fft.fftn fft.ifftn fft.rfft2 fft.irfft2 fft.rfftn fft.irfftn: F(x)
    F(x, (2, 4), axes=(0, -1), norm='ortho'); F(v); F(x, norm='backward')
fft.fftfreq fft.rfftfreq: F(4); F(5, .5); F(4, dtype=x.dtype); F(0)
fft.fftshift fft.ifftshift: F(x); F(x, axes=-1); F(v)
"""

# not in the table: they print, read or write files, or are modules' classes; test files of their own have them
ELSEWHERE = """
array_repr array_str fromfile fromiter fromstring from_dlpack get_printoptions set_printoptions printoptions load save
savez iterable einsum_path
""".split()


def arguments(jnp, np, dtype: str) -> dict:
    """What the calls of the table name, in one dtype (i and mask aside)."""
    if dtype == "bool":
        x, y, n = [[True, False, True], [False, True, True]], [True, True, False], [True, False]
    elif dtype.startswith(("int", "uint")):
        info = np.iinfo(dtype)
        x, y, n = [[3, 1, 2], [0, 4, 5]], [1, 2, 3], [info.min, info.max, 0, 1]
        x = x if dtype[0] == "u" else [[-3, 1, 2], [0, -4, 5]]
    else:
        x, y, n = [[0.5, -0.25, 0.75], [1.5, -1.0, 2.0]], [0.25, 0.5, 2.0], [np.nan, np.inf, -np.inf, -0.0, 1.5]
        if dtype == "complex64":
            x, y, n = (
                (np.array(x) + 1j * np.array(x)[::-1, ::-1]).tolist(),
                (np.array(y) + 0.5j).tolist(),
                [1 + 1j, -0.5j, 2.0, -1.0],
            )
    x, y, n = (jnp.array(a, dtype) for a in (x, y, n))
    m = jnp.array([[2, 1, 0], [1, 3, 1], [0, 1, 4]], dtype)
    return {
        "x": x,
        "y": y,
        "n": n,
        "m": m,
        "s": x[0, 0],
        "v": x[0],
        "e": x[:0],
        "i": jnp.array([2, 0, 1]),
        "jnp": jnp,
        "np": np,
        "mask": jnp.array([[True, False, True], [True, True, False]]),
    }


def calls() -> dict:
    """function -> its calls."""
    table: dict = {}
    for row in re.sub(r"\n +", "; ", ROWS.strip()).splitlines():  # an indented line goes on with its row
        names, _, forms = row.partition(": ")
        for name in names.split():
            table.setdefault(name, []).extend(
                form.replace("'F'", repr(name)).replace("F(", f"jnp.{name}(") for form in split(forms)
            )
    return table


def evaluate(text: str, scope: dict):
    needs = text.split("(", 1)[0][4:] in ("max", "min")
    return eval(text, {**scope, "initial": {"initial": 1} if needs else {}})


def outcome(text: str, scope: dict, errors=None) -> list | str:
    """What a call gives, in short: "dtype[shape]weak:numbers" for arrays, a list of these, "=repr" for the rest,
    "!classes" for an error (those of which one must be a base of ours; without `errors`, all bases).
    """
    try:
        return short(describe(evaluate(text, scope), scope["np"]))
    except Exception as e:
        names = [c.__name__ for c in type(e).__mro__]
        return "!" + "|".join(expected_class(names, errors) if errors else names)


def short(d: list) -> list | str:
    if d[0] == "sequence":
        return [short(v) for v in d[1]]
    if d[0] == "value":
        return "=" + d[1]
    number = lambda w: w if isinstance(w, str) else f"{w:.7g}" if isinstance(w, float) else str(int(w))
    return f"{d[1]}[{','.join(map(str, d[2]))}]{'w' if d[3] else ''}:" + ";".join(
        ",".join(map(number, part)) for part in d[4]
    )
