"""Expressions over sparse arrays whose results (or error classes) must be those of real JAX. Where ours are more
general, or JAX fails by mistake, nothing stands here; test_sparse.py compares with dense arrays.
"""

from frozen import describe, split

SETUP = """
import importlib, warnings
import scipy.sparse
sparse = importlib.import_module(jax.__name__ + '.experimental.sparse')
BCOO, BCSR, COO, CSR, CSC, JAXSparse = (getattr(sparse, n) for n in ('BCOO', 'BCSR', 'COO', 'CSR', 'CSC', 'JAXSparse'))
M = jnp.array([[0., 1., 0., 2.], [3., 0., 0., 0.], [0., 0., 4., 0.]])
M3 = jnp.array([[[0., 1., 0.], [2., 0., 3.]], [[0., 0., 0.], [4., 0., 0.]]])
m, mb, md = BCOO.fromdense(M), BCOO.fromdense(M, n_batch=1), BCOO.fromdense(M, n_dense=1)
h, c, i, b = (BCOO.fromdense(x) for x in (M.astype('bfloat16'), M * (1 + 2j), M.astype(int), M > 0))
"""

CASES = """
m; m.data, m.indices; BCOO.fromdense(M, nse=6).indices; BCOO.fromdense(M, nse=6).data; BCOO.fromdense(M, nse=2).indices
BCOO.fromdense(M, n_batch=1).indices; BCOO.fromdense(M, n_batch=1).data; BCOO.fromdense(M, n_batch=1)
BCOO.fromdense(M, n_dense=1)
BCOO.fromdense(M, n_batch=1, n_dense=1); BCOO.fromdense(M, n_batch=2, n_dense=1)
BCOO.fromdense(M, index_dtype='int16').indices.dtype
jax.jit(BCOO.fromdense)(M); jax.jit(lambda M: BCOO.fromdense(M, nse=5))(M); BCSR.fromdense(M)
BCSR.fromdense(M).indices, BCSR.fromdense(M).indptr
BCSR.fromdense(M, nse=7).indices, BCSR.fromdense(M, nse=7).indptr; COO.fromdense(M); CSR.fromdense(M); CSC.fromdense(M)
m.T; m.T.indices; m @ M.T
M.T @ m; m @ m.T; m @ m; (m @ m.T).todense(); m * 2; 2 * m; m * M; M * m; m * m; (m+m).todense(); m + M; m + 1; -m
m / 2; m / M; m ** 2; abs(m); m == m
m[0]; m[0, 1]; m[1:]; m[:, ::2]; m[None]; m[..., 0]; m[jnp.array([0, 1])]; m[0].todense(); m.sum(); m.sum(0)
m.sum(axis=1); m.sum((0, 1))
m.reshape(4, 3); m.reshape(2, 6); m.astype('int32'); m.astype('int32').data; m.transpose((1, 0)); m.transpose((0, 0))
m.update_layout(n_batch=1)
m.update_layout(n_dense=1); m.update_layout(n_dense=1, on_inefficient='warn')
m.update_layout(n_dense=1, on_inefficient=None); m.sum_duplicates()
m.sum_duplicates(nse=3); m.sum_duplicates(nse=6).indices; (m+m).sum_duplicates()
(m+m).sum_duplicates(remove_zeros=False); m.sort_indices()
BCOO((jnp.array([1., 2.]), jnp.array([[1, 1], [0, 0]])), shape=(2, 2)).sort_indices().indices
BCOO((jnp.array([1., 2.]), jnp.array([[1, 1]])), shape=(2, 2))
BCOO((jnp.array([1., 2.]), jnp.array([[1, 5], [0, 0]])), shape=(2, 2)).todense()
BCOO(([1., 2.], [[1, 1], [0, 0]]), shape=(2, 2)); BCOO.from_scipy_sparse(scipy.sparse.csr_matrix(np.array(M)))
BCOO.from_scipy_sparse(scipy.sparse.csr_matrix(np.array(M)), n_batch=1)
BCSR.from_scipy_sparse(scipy.sparse.coo_matrix(np.array(M)))
CSR.from_scipy_sparse(scipy.sparse.coo_matrix(np.array(M))); CSR._empty((2, 3)); sparse.empty((2, 3))
sparse.empty((2, 3), sparse_format='csr')
sparse.empty((2, 3), sparse_format='csc'); sparse.empty((2, 3), sparse_format='coo')
sparse.empty((2, 3), sparse_format='x')
sparse.empty((2, 3, 4), n_batch=1, n_dense=1); sparse.eye(3); sparse.eye(3).indices; sparse.eye(3, 4, k=1).todense()
sparse.eye(3, 4, k=1, dtype='int32', sparse_format='csr'); sparse.eye(3, 4, k=-1, sparse_format='csc')
sparse.eye(3, 4, k=-1, sparse_format='coo')
sparse.eye(3, n_batch=1); sparse.eye(3, n_dense=1); sparse.random_bcoo(jax.random.key(0), (3, 4))
sparse.random_bcoo(jax.random.key(0), (3, 4), nse=5, dtype='float32').indices
sparse.random_bcoo(jax.random.key(0), (3, 4), nse=5, dtype='float32').data
sparse.random_bcoo(jax.random.key(0), (3, 4), nse=5, n_batch=1).indices
sparse.random_bcoo(jax.random.key(0), (3, 4), nse=5, n_dense=1).indices
sparse.random_bcoo(jax.random.key(0), (3, 4), nse=0.5, sorted_indices=True, unique_indices=False).indices
sparse.todense(m); sparse.todense(M)
sparse.sparsify(lambda a, b: a@b)(m, M.T); sparse.sparsify(lambda a, b: a@b)(m, m.T)
sparse.sparsify(lambda a: jnp.sin(a))(m)
sparse.sparsify(lambda a: jnp.exp(a))(m); sparse.sparsify(lambda a: a+1)(m); sparse.sparsify(lambda a: a.sum())(m)
sparse.sparsify(lambda a: jnp.concatenate([a, a]))(m); sparse.sparsify(lambda a: a*2+a)(m)
sparse.sparsify(lambda a: jnp.where(a>0, a, 0))(m)
sparse.sparsify(lambda a: a.at[0, 0].set(1))(m); sparse.sparsify(lambda a: a[0])(m)
sparse.sparsify(lambda a: jnp.broadcast_to(a, (2, 3, 4)))(m)
sparse.sparsify(lambda a: jax.jit(lambda x: x*2)(a))(m)
sparse.sparsify(lambda a: jax.lax.scan(lambda c, x:(c+x.sum(), x*2), 0., a))(m)
sparse.sparsify(lambda a: jax.lax.while_loop(lambda c: c[0]<3, lambda c:(c[0]+1, c[1]*2), (0, a)))(m)
sparse.sparsify(lambda a: jax.lax.cond(True, lambda x: x*2, lambda x: x*3, a))(m)
sparse.sparsify(lambda a: jnp.max(a))(m)
sparse.sparsify(jnp.sum, use_tracer=True)(m); sparse.sparsify(lambda a: a@a.T, use_tracer=True)(m)
sparse.grad(lambda a: (a@M.T).sum())(m)
sparse.grad(lambda a: (a*M).sum())(m).data; sparse.value_and_grad(lambda a: (a@M.T).sum())(m)
sparse.jacfwd(lambda a: a.sum(1).todense())(m)
sparse.jacrev(lambda a: a.sum(1).todense())(m); sparse.jacrev(lambda a: a*2)(m); jax.grad(lambda a: (a@M.T).sum())(m)
jax.grad(lambda d: (BCOO((d, m.indices), shape=m.shape)@M.T).sum())(m.data); jax.jit(lambda a: a@M.T)(m)
jax.jit(lambda a: a*2)(m)
jax.vmap(lambda a: a.sum())(BCOO.fromdense(M, n_batch=1)); jax.vmap(lambda a: a*2)(BCOO.fromdense(M, n_batch=1))
jax.vmap(lambda a: a@jnp.ones(4))(BCOO.fromdense(M, n_batch=1)); jax.tree.leaves(m)
m.nse, m.n_batch, m.n_dense, m.n_sparse, m.ndim, m.size, m.dtype, m.shape; len(m); bool(m); float(m)
m.block_until_ready()
sparse.bcoo_dot_general_sampled(M, M.T, m.indices, dimension_numbers=(([1], [0]), ([], [])))
sparse.bcoo_extract(m, M).data
sparse.bcoo_multiply_dense(m, M); sparse.bcoo_multiply_sparse(m, m)
sparse.bcoo_broadcast_in_dim(m, shape=(2, 3, 4), broadcast_dimensions=(1, 2))
sparse.bcoo_concatenate([m, m], dimension=0); sparse.bcoo_reshape(m, new_sizes=(4, 3))
sparse.bcoo_rev(m, (0, )).todense()
sparse.bcoo_squeeze(m, dimensions=(0, )); sparse.bcoo_slice(m, start_indices=(0, 0), limit_indices=(2, 2))
sparse.bcoo_dynamic_slice(m, (0, 1), (2, 2)).todense(); BCOO.fromdense(M[None, None])
sparse.bcoo_conv_general_dilated(BCOO.fromdense(M[:1][None]), jnp.ones((1, 1, 2)), window_strides=(1, ), padding='SAME')
BCSR.fromdense(M).to_bcoo()
BCSR.from_bcoo(m); BCSR.fromdense(M) @ M.T; BCSR.fromdense(M).T; BCSR.fromdense(M) * 2
BCSR.fromdense(M) + BCSR.fromdense(M)
BCSR.fromdense(M).sum_duplicates(); CSR.fromdense(M) @ M.T; CSR.fromdense(M) @ jnp.ones(4); CSR.fromdense(M).T
CSR.fromdense(M).T @ M
CSC.fromdense(M) @ jnp.ones(4); CSC.fromdense(M).T; COO.fromdense(M) @ jnp.ones(4); COO.fromdense(M).T
COO.fromdense(M)*2
jnp.ones(3) @ CSR.fromdense(M); jnp.ones(3) @ CSC.fromdense(M)
sparse.csr_matvec(CSR.fromdense(M), jnp.ones(3), transpose=True); m[0]@m[0]; m[0]@M[0]
m@M[0]; sparse.bcoo_concatenate([md, md], dimension=1); sparse.bcoo_concatenate([md, md], dimension=0)
sparse.bcoo_concatenate([m, md], dimension=0)
sparse.bcoo_concatenate([mb, mb], dimension=0); sparse.bcoo_concatenate([mb, mb], dimension=1)
sparse.bcoo_concatenate([], dimension=1)
m[jnp.array([0, 9])].todense(); m[jnp.array([0, 9])]; m[:, jnp.array([0, 1])]; m[jnp.array([0, 1]), jnp.array([0, 1])]
mb.sum(0); mb.sum(1); mb.T; md.T
mb@M.T; mb@mb.T; mb*M; mb*mb; mb+m; md*M; md+m; mb[0]; mb[:, 1]; m*M[0]; m*M[:, :1]; m[:1]*M; m*jnp.ones((2, 3, 4))
m*m[:1]; m+M[0]
mb.update_layout(n_batch=0); md.update_layout(n_dense=0); md.update_layout(n_batch=1); m.update_layout(n_batch=3)
m.update_layout(n_batch=1, on_inefficient='x'); mb.reshape(3, 2, 2); mb.reshape(4, 3); md.reshape(3, 2, 2)
m.reshape(5, 5); m.reshape(-1)
sparse.bcoo_broadcast_in_dim(mb, shape=(2, 3, 4), broadcast_dimensions=(1, 2)); sparse.bcoo_multiply_sparse(m, m[0])
sparse.bcoo_multiply_sparse(m, m[:1]); sparse.bcoo_multiply_dense(m, jnp.ones(5))
sparse.bcoo_dot_general(M, m, dimension_numbers=(((1, ), (1, )), ((), ())))
sparse.bcoo_dot_general(M, M, dimension_numbers=(((1, ), (1, )), ((0, ), (0, )))); m@jnp.ones(4, int)
m.astype(int)@jnp.ones(4)
sparse.bcoo_fromdense(3); sparse.bcoo_fromdense([[1.]]); sparse.bcoo_fromdense(M, n_batch=3)
sparse.bcoo_fromdense(M, nse=-1)
sparse.bcoo_transpose(m, permutation=(0, )); sparse.bcoo_transpose(mb, permutation=(1, 0))
sparse.bcoo_slice(m, start_indices=(0, ), limit_indices=(2, 2))
sparse.bcoo_slice(m, start_indices=(0, 0), limit_indices=(9, 2))
sparse.bcoo_slice(m, start_indices=(0, 0), limit_indices=(3, 4), strides=(2, 2))
sparse.bcoo_dynamic_slice(m, (0, 9), (2, 2))
sparse.bcoo_dynamic_slice(m, (0, ), (2, 2)); sparse.bcoo_dynamic_slice(m, (0, 0), (9, 2)); sparse.bcoo_rev(mb, (0, ))
sparse.bcoo_rev(m, (5, ))
sparse.bcoo_reduce_sum(m, axes=(0, 0)); sparse.bcoo_reduce_sum(m, axes=(0, 1)); sparse.bcoo_sum_duplicates(m, nse=2)
sparse.bcoo_extract(m, M[0])
sparse.bcoo_squeeze(m[:1], dimensions=(0, )); sparse.bcoo_squeeze(m[:1], dimensions=(0, 1))
sparse.sparsify(lambda x: x.reshape(-1))(m)
sparse.sparsify(lambda x: jnp.expand_dims(x, -1))(m); sparse.sparsify(lambda x: jnp.stack([x, x]))(m)
sparse.sparsify(lambda x, y: jnp.concatenate([x, y]))(m, M)
sparse.sparsify(lambda x, y: jnp.einsum('ij, kj->ik', x, y))(m, M)
sparse.sparsify(lambda x: jnp.mean(x))(m); sparse.sparsify(lambda x: jnp.linalg.norm(x))(m)
sparse.sparsify(lambda x: x**0.5)(m)
sparse.sparsify(lambda x: 1/x)(m); sparse.sparsify(lambda x: jnp.flip(x))(m); sparse.sparsify(lambda x: jnp.sqrt(x))(m)
sparse.sparsify(lambda x: jnp.abs(x).astype(int))(m); sparse.sparsify(lambda x: (sparse.todense(x)+1))(m)
sparse.sparsify(lambda x: jax.lax.fori_loop(0, 3, lambda i, c:c*2, x))(m); sparse.sparsify(lambda x: jnp.tanh(x)@x.T)(m)
sparse.sparsify(lambda x: jax.nn.relu(x))(m); sparse.sparsify(lambda x: jax.custom_jvp(lambda y:y*2)(x))(m)
sparse.sparsify(lambda x, y: x@y)(BCSR.fromdense(M), M.T)
sparse.sparsify(lambda x: jax.lax.scan(lambda c, _:(c*2, None), x, None, length=2))(m)
sparse.sparsify(lambda x: {'a':x, 'b':2})({'k':m}['k']); sparse.sparsify(lambda x: x['k']*2)({'k':m})
sparse.grad(lambda x: sparse.sparsify(jnp.sum)(x*x))(m).todense()
sparse.grad(lambda x, y: (x@y).sum(), argnums=(0, 1))(m, M.T)
sparse.grad(lambda x: (x@M.T).sum(), has_aux=True)(m); sparse.grad(lambda d: d['a'].sum())({'a':m})
sparse.grad(lambda x: x.sum())(BCSR.fromdense(M))
sparse.grad(lambda x: (x@jnp.ones(4)).sum())(CSR.fromdense(M)); sparse.jacrev(lambda x: x.sum())(m)
sparse.jacfwd(lambda x: x@M.T)(m)
sparse.jacobian(lambda x: x@M.T)(m).todense().shape
sparse.random_bcoo(jax.random.key(0), (2, 3, 4), nse=2, n_batch=1, dtype='float32').indices
sparse.random_bcoo(jax.random.key(0), (2, 3, 4), nse=2, n_batch=1, dtype='float32').data
sparse.random_bcoo(jax.random.key(0), (2, 3, 4), nse=2, n_dense=1, dtype='float32').data
sparse.random_bcoo(jax.random.key(0), (3, 4), dtype='float32', generator=jax.random.normal).data
sparse.empty((2, 3), n_batch=3)
sparse.eye(3, n_batch=1, n_dense=1); sparse.eye(3, n_batch=2); sparse.eye(3, k=5); BCSR.fromdense(M[0])
BCSR.fromdense(jnp.stack([M, M]), n_batch=1)
BCSR.fromdense(jnp.stack([M, M]), n_batch=1)@jnp.ones((2, 4, 3))
BCSR((jnp.ones(2), jnp.zeros(2, int), jnp.zeros(2, int)), shape=(3, 3))
CSR((jnp.ones(2), jnp.zeros(2, int), jnp.zeros(4, int)), shape=(3, 3))
COO((jnp.ones(2), jnp.zeros(2, int), jnp.zeros(2, int)), shape=(3, 3)).todense()
CSR.fromdense(M)@m; CSR.fromdense(M).todense(); m@m.T@M; M[0]@m.T; m.sum(keepdims=True); m.sum(0, keepdims=True)
m.sum(dtype='int32')
m.astype('float16'); sparse.bcoo_todense(mb); abs(BCSR.fromdense(M)); m//2; m%2; 2**m; m-1; 1-m; m/m; 2/m; +m; m@2
m**0.5; m**0; m**-1; m<1
m.reshape(4, -1); m.reshape((4, 3))
m.indices; mb.indices; mb.data; md.data; m.T.indices; (m + m).sum_duplicates(nse=6).indices
sparse.grad(lambda x: (x @ M.T).sum())(m).indices
sparse.random_bcoo(jax.random.key(0), (2, 3, 4), nse=2, n_batch=1, unique_indices=False, dtype='float32').indices
BCSR.fromdense(M).tree_flatten()[0]; CSC.fromdense(M).tree_flatten()[0]
jax.vmap(lambda a, b: a @ b)(mb, jnp.ones((3, 4, 2)))
jax.vmap(lambda a: a.sum(0))(BCOO.fromdense(jnp.stack([M, M]), n_batch=1))
jax.jit(jax.vmap(lambda a: (a * 2).todense()))(mb)
jax.vmap(lambda r: BCOO.fromdense(r, nse=2))(M); jax.vmap(lambda r: BCOO.fromdense(r, nse=2), out_axes=0)(M).indices
h @ M.T.astype('bfloat16'); c @ c.T; c * c; (i @ i.T).sum_duplicates(); b.astype(int).sum(0)
BCOO.fromdense(M3, n_batch=1, n_dense=1) * M3; BCOO.fromdense(M3, n_dense=1)[0]; BCOO.fromdense(M3)[:, 1]
BCOO.fromdense(M3).transpose((2, 0, 1)); BCOO.fromdense(M3, n_batch=1).transpose((0, 2, 1))
BCOO.fromdense(M3).reshape(4, 3); BCOO.fromdense(M3, n_batch=1).reshape(2, 6); BCOO.fromdense(M3) @ M3[0].T
BCOO.fromdense(M3, n_batch=1) @ M3.transpose(0, 2, 1); M3 @ BCOO.fromdense(M3.transpose(0, 2, 1), n_batch=1)
BCOO.fromdense(M3, n_batch=1) @ BCOO.fromdense(M3.transpose(0, 2, 1), n_batch=1)
BCOO.fromdense(M3, n_batch=1).update_layout(n_batch=0); BCOO.fromdense(M3, n_dense=2).update_layout(n_dense=0)
BCOO.fromdense(M3).update_layout(n_batch=1, on_inefficient=None)
BCOO.fromdense(M3).update_layout(n_dense=2, on_inefficient=None); BCOO.fromdense(M3, n_batch=1).sum_duplicates()
BCOO.fromdense(M3).sum((0, 2)); BCOO.fromdense(M3, n_batch=1).sum((0, 2))
sparse.bcsr_extract(jnp.array([1, 3, 0, 2]), jnp.array([0, 2, 3, 4]), M)
sparse.coo_matvec(COO.fromdense(M), jnp.ones(4)); sparse.coo_matmat(COO.fromdense(M), M.T)
sparse.csr_matmat(CSR.fromdense(M), M.T)
sparse.csr_todense(CSR.fromdense(M)); sparse.coo_todense(COO.fromdense(M)); sparse.bcsr_todense(BCSR.fromdense(M))
sparse.bcsr_concatenate([BCSR.fromdense(M)] * 2, dimension=0); sparse.bcsr_sum_duplicates(BCSR.fromdense(M), 6)
sparse.bcsr_dot_general(BCSR.fromdense(M), M, dimension_numbers=(((1,), (1,)), ((), ())))
sparse.bcsr_broadcast_in_dim(BCSR.fromdense(M), shape=(2, 3, 4), broadcast_dimensions=(1, 2))
sparse.bcoo_sort_indices(m.T).indices
m[jnp.array([1, 2]), 0]; m[-1]; m[5]; m[1:2, None]; m[1, 1:3]; mb[1:]; md[1:]; mb[:, 1:3]; md[:, 1:3]; m[::-1]
m[..., None]; m['a']; m[0, 0, 0]
"""


def expressions() -> list[str]:
    """Every expression, once."""
    return list(dict.fromkeys(split(CASES)))


def description(np):
    """Sparse arrays by what they print and their dense values."""

    def of(value) -> list:
        if hasattr(value, "todense") and hasattr(value, "tree_flatten"):
            return ["sequence", [["value", repr(value)], describe(value.todense(), np)]]
        if isinstance(value, (tuple, list)):
            return ["sequence", [of(v) for v in value]]
        return describe(value, np)

    return of
