"""Sparse arrays against dense ones: every layout, derivatives, vmap, jit, WebAssembly, and bad input."""

import itertools

import numpy as np
import pytest
import scipy.sparse

import weft
import weft.numpy as jnp
from weft.experimental import sparse
from weft.experimental.sparse import BCOO, BCSR, COO, CSC, CSR
from weft.scipy.sparse.linalg import cg

LAYOUTS = [(b, d) for b, d in itertools.product(range(3), range(3)) if b + d <= 3]


def dense(shape, seed=0, dtype="float32"):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape) * (rng.uniform(size=shape) < 0.5)
    return jnp.asarray((x + 1j * x[::-1] if "complex" in dtype else x * 4).astype(dtype))


def same(got, want, tol=1e-5):
    got = got.todense() if hasattr(got, "todense") else got
    np.testing.assert_allclose(np.asarray(got, "complex128"), np.asarray(want, "complex128"), rtol=tol, atol=tol)


OPERATIONS = {
    "sum": lambda x: x.sum(0),
    "sums": lambda x: x.sum((0, 2)),
    "total": lambda x: x.sum(),
    "last sum": lambda x: x.sum(-1),
    "times": lambda x: x * 2,
    "minus": lambda x: -x,
    "row": lambda x: x[1],
    "rows": lambda x: x[:, 1:],
    "every": lambda x: x[..., ::2],
    "new": lambda x: x[None],
    "sine": lambda x: jnp.sin(x),
    "twice": lambda x: x + x,
    "square": lambda x: x**2,
    "half": lambda x: x / 2,
    "mask": lambda x: x * jnp.arange(4.0),
    "over": lambda x: x / (1 + jnp.arange(4.0)),
    "wide": lambda x: jnp.broadcast_to(x, (2, *x.shape)),
    "both": lambda x: jnp.concatenate([x, x]),
    "stacked": lambda x: jnp.stack([x, x]),
    "dot": lambda x: x @ jnp.ones((4, 2)),
    "dot left": lambda x: jnp.ones((5, 3)) @ x,
    "own": lambda x: x * x,
    "contract": lambda x: jnp.einsum("ijk,lj->ilk", x, jnp.arange(6.0).reshape(2, 3)),
    "reverse": lambda x: jnp.flip(x, (0, 1)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_in_every_layout(name):
    x, f = dense((2, 3, 4)), OPERATIONS[name]
    want = f(x)
    for n_batch, n_dense in ((0, 0), (1, 1)):
        m = BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense)
        try:
            got = sparse.sparsify(f)(m)
        except NotImplementedError as e:
            assert name in ("both", "stacked"), e  # dense axes can't be concatenated
            continue
        same(got, want)


@pytest.mark.slow
@pytest.mark.parametrize("old,new", [(a, LAYOUTS[(3 * k + 1) % len(LAYOUTS)]) for k, a in enumerate(LAYOUTS)])
def test_layouts_are_one_array(old, new):
    x = dense((2, 3, 4), 1)
    m = BCOO.fromdense(x, n_batch=old[0], n_dense=old[1], nse=7 if sum(old) == 0 else None)
    changed = m.update_layout(n_batch=new[0], n_dense=new[1], on_inefficient=None)
    assert (changed.n_batch, changed.n_dense) == new
    same(changed, m.todense())


@pytest.mark.slow
@pytest.mark.parametrize(
    "dimension_numbers",
    [
        (((2,), (2,)), ((), ())),
        (((1, 2), (1, 2)), ((), ())),
        (((2,), (2,)), ((0,), (0,))),
        (((2,), (2,)), ((1,), (1,))),
        (((0,), (0,)), ((2, 1), (2, 1))),
        (((), ()), ((), ())),
    ],
)
def test_products(dimension_numbers):
    x, y = dense((2, 3, 4), 2), dense((2, 3, 4), 3)
    want = weft.lax.dot_general(x, y, dimension_numbers)
    for n_batch, n_dense in ((0, 0), (1, 1), (2, 0)):
        a = BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense)
        same(sparse.bcoo_dot_general(a, y, dimension_numbers=dimension_numbers), want)
        same(
            sparse.bcoo_dot_general(
                x, BCOO.fromdense(y, n_batch=n_batch, n_dense=n_dense), dimension_numbers=dimension_numbers
            ),
            want,
        )
        same(sparse.bcoo_dot_general(a, BCOO.fromdense(y, n_batch=n_batch), dimension_numbers=dimension_numbers), want)


def test_sampled_products():
    a, b = dense((3, 5), 4), dense((5, 4), 5)
    indices = jnp.array([[0, 1], [2, 3], [1, 1], [3, 0], [0, 4]])  # two of them outside
    got = sparse.bcoo_dot_general_sampled(a, b, indices, dimension_numbers=(([1], [0]), ([], [])))
    want = np.asarray(a) @ np.asarray(b)
    same(got, [want[0, 1], want[2, 3], want[1, 1], 0, 0])
    batched = sparse.bcoo_dot_general_sampled(
        a, b, jnp.array([[[1]], [[0]], [[2]]]), dimension_numbers=(([1], [0]), ([], []))
    )
    same(batched[:, 0], [want[0, 1], want[1, 0], want[2, 2]])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "float16", "bfloat16", "float32", "complex64"])
def test_dtypes(dtype):
    x = dense((3, 4), 6, "complex64" if dtype == "complex64" else "float32").astype(dtype)
    for cls in (BCOO, BCSR, COO, CSR, CSC):
        m = cls.fromdense(x, nse=12)
        assert m.dtype == x.dtype and m.shape == x.shape
        same(m, x)
        if dtype != "bool":
            v = jnp.arange(4).astype(dtype)
            out = m @ v
            assert out.dtype == x.dtype
            same(out, x @ v, 1e-2)


@pytest.mark.slow
def test_scipy_s_matrices():
    x = np.asarray(dense((3, 4), 7))
    for make in (scipy.sparse.csr_matrix, scipy.sparse.coo_matrix, scipy.sparse.csc_matrix):
        same(BCOO.from_scipy_sparse(make(x)), x)
        same(BCSR.from_scipy_sparse(make(x), index_dtype="int16"), x)
    m = CSR.fromdense(x)
    want = scipy.sparse.csr_matrix(x)
    same(m.indices, want.indices), same(m.indptr, want.indptr), same(m.data, want.data)
    same(CSC.fromdense(x).indptr, scipy.sparse.csc_matrix(x).indptr)


@pytest.mark.slow
def test_duplicates_and_padding():
    m = BCOO((jnp.array([1.0, 2.0, 3.0, 4.0]), jnp.array([[1, 1], [0, 9], [1, 1], [0, 2]])), shape=(2, 3))
    want = [[0, 0, 4], [0, 4, 0]]
    same(m, want)
    summed = m.sum_duplicates()
    assert summed.nse == 2 and summed.indices.tolist() == [[0, 2], [1, 1]]
    assert m.sum_duplicates(nse=3).indices.tolist() == [[0, 2], [1, 1], [2, 3]]
    for f in (
        lambda x: x.sum(0),
        lambda x: x.T,
        lambda x: x.reshape(6),
        lambda x: x[1:],
        lambda x: x @ jnp.ones(3),
        lambda x: x**2,
        lambda x: x * x,
    ):
        same(f(m), f(jnp.array(want)) if f(jnp.ones((2, 3))).ndim else 0)


def loss(data, m, x):
    return jnp.sum(jnp.sin(BCOO((data, m.indices), shape=m.shape) @ x))


@pytest.mark.slow
def test_derivatives():
    m, x = BCOO.fromdense(dense((3, 4), 8)), dense((4, 2), 9)
    grad = sparse.grad(lambda m, x: jnp.sum(jnp.sin(m @ x)), argnums=(0, 1))(m, x)
    whole = weft.grad(lambda m, x: jnp.sum(jnp.sin(m @ x)), argnums=(0, 1))(m.todense(), x)
    assert grad[0].indices is m.indices
    same(grad[0].data, whole[0][tuple(m.indices.T)]), same(grad[1], whole[1])
    step, t = 1e-2, jnp.cos(jnp.arange(m.nse))
    _, got = weft.jvp(lambda d: loss(d, m, x), (m.data,), (t,))
    same(got, (loss(m.data + step * t, m, x) - loss(m.data - step * t, m, x)) / (2 * step), 1e-2)
    for transform in (sparse.jacfwd, sparse.jacrev):
        same(
            transform(lambda m: m @ x)(m).todense(),
            jnp.where(m.todense() != 0, weft.jacfwd(lambda m: m @ x)(m.todense()), 0),
        )
    value, (g, aux) = (
        sparse.value_and_grad(lambda a: ((a["m"] * 2).sum(), 7), has_aux=True)({"m": m})[0],
        sparse.grad(lambda a: ((a["m"] * 2).sum(), 7), has_aux=True)({"m": m}),
    )
    assert aux == 7 and value[1] == 7
    same(g["m"].data, [2.0] * m.nse)


@pytest.mark.slow
def test_vmap_is_the_loop_and_jit_changes_nothing():
    xs = dense((3, 4, 5), 10)
    m = BCOO.fromdense(xs, n_batch=1)
    f = lambda m, v: (m * 3) @ v
    v = dense((3, 5), 11)
    want = jnp.stack([f(x, w) for x, w in zip(xs, v)])
    same(weft.vmap(f)(m, v), want)
    same(weft.jit(weft.vmap(f))(m, v), want)
    same(weft.vmap(lambda m: f(m, v[0]))(m), jnp.stack([f(x, v[0]) for x in xs]))
    made = weft.jit(weft.vmap(lambda x: BCOO.fromdense(x, nse=20)))(xs)
    assert made.shape == (3, 4, 5) and made.n_batch == 1
    same(made, xs)
    csr = BCSR.fromdense(xs, n_batch=1)
    same(weft.vmap(lambda m, v: m @ v)(csr, v), jnp.stack([x @ w for x, w in zip(xs, v)]))


@pytest.mark.slow
def test_sparsify_in_control_flow():
    m = BCOO.fromdense(dense((3, 3), 12))
    x = m.todense()
    for use_tracer in (False, True):
        s = lambda f: sparse.sparsify(f, use_tracer)
        same(s(lambda a: weft.lax.fori_loop(0, 3, lambda i, c: c * 2, a))(m), x * 8)
        same(s(lambda a: weft.lax.cond(a.sum() > 1e9, lambda a: a, lambda a: a * 3, a))(m), x * 3)
        same(s(lambda a: weft.lax.scan(lambda c, v: (c, a @ v), a, jnp.eye(3))[1])(m), x.T)
        same(s(weft.jit(lambda a, b: {"out": jnp.tanh(a) @ b}))(m, m)["out"], jnp.tanh(x) @ x)
        same(s(lambda a: sparse.todense(a) + 1)(m), x + 1)
        same(s(weft.checkpoint(lambda a: a * 2))(m), x * 2)
    f = weft.custom_jvp(lambda a: a * 2)
    f.defjvp(lambda p, t: (f(*p), t[0] * 2))
    same(sparse.sparsify(f)(m), x * 2)


@pytest.mark.slow
def test_solvers_take_sparse_matrices():
    m = BCOO.fromdense(jnp.array([[4.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 2.0]]))
    b = jnp.array([1.0, 2.0, 3.0])
    want = np.linalg.solve(np.asarray(m.todense()), np.asarray(b))
    same(cg(m, b)[0], want)
    csr = CSR.fromdense(m.todense())
    same(sparse.linalg.spsolve(csr.data, csr.indices, csr.indptr, b), want)


@pytest.mark.parametrize("platform", ["reference", "wasm"])
def test_other_backends(platform):
    with weft.default_device(weft.devices(platform)[0]):
        x = dense((3, 4), 13)
        m = BCOO.fromdense(x)
        same(m @ x.T, np.asarray(x) @ np.asarray(x).T)
        same((m @ m.T), np.asarray(x) @ np.asarray(x).T)
        same((m.T + m.T).sum_duplicates(nse=8).sum(0), 2 * np.asarray(x).sum(1))
        same(weft.jit(lambda m: m[1:] * 2)(m), 2 * np.asarray(x)[1:])
        same(CSR.fromdense(x) @ jnp.ones(4), np.asarray(x).sum(1))
        same(sparse.grad(lambda m: (m @ x.T).sum())(m).data, np.asarray(x).sum(0)[np.asarray(m.indices)[:, 1]], 1e-4)


@pytest.mark.parametrize(
    "call,error,words",
    [
        (lambda m: BCOO((m.data, m.indices), shape=(3,)), ValueError, "shape"),
        (lambda m: BCOO((m.data[1:], m.indices), shape=m.shape), ValueError, "data"),
        (lambda m: BCOO((m.data, m.indices * 1.0), shape=m.shape), TypeError, "integers"),
        (lambda m: weft.jit(BCOO.fromdense)(m.todense()), weft.errors.ConcretizationTypeError, "nse"),
        (lambda m: weft.jit(lambda m: m.sum_duplicates())(m), weft.errors.ConcretizationTypeError, "nse"),
        (lambda m: m + 1, NotImplementedError, "todense"),
        (lambda m: sparse.sparsify(jnp.exp)(m), NotImplementedError, "exp"),
        (lambda m: 1 / m, NotImplementedError, "division"),
        (lambda m: m @ jnp.ones(7), TypeError, "7"),
        (lambda m: m.update_layout(n_batch=1), sparse.SparseEfficiencyError, "n_batch"),
        (lambda m: m.update_layout(n_batch=1, on_inefficient="x"), ValueError, "'x'"),
        (lambda m: m.update_layout(n_batch=2, n_dense=2), ValueError, "n_dense=2"),
        (lambda m: sparse.empty((2, 3), sparse_format="x"), ValueError, "'x'"),
        (lambda m: sparse.random_bcoo(weft.random.key(0), (2, 3), nse=7), ValueError, "nse=7"),
        (lambda m: BCSR.fromdense(jnp.ones(3)), ValueError, "two sparse axes"),
        (lambda m: CSR.fromdense(m.todense()) @ m, NotImplementedError, "BCOO"),
        (lambda m: CSR.fromdense(m.todense()) * 2, NotImplementedError, "CSR"),
        (lambda m: sparse.jacfwd(lambda m: m * 2)(m), TypeError, "todense"),
        (lambda m: sparse.bcoo_concatenate([], dimension=0), ValueError, "at least one"),
        (lambda m: sparse.linalg.spsolve(m.data, m.indices[:, 1], jnp.arange(4), jnp.ones(9)), ValueError, "b must be"),
    ],
)
def test_wrong_arguments(call, error, words):
    with pytest.raises(error, match=words):
        call(BCOO.fromdense(jnp.array([[0.0, 1.0, 0.0, 2.0], [3.0, 0.0, 0.0, 0.0], [0.0, 0.0, 4.0, 0.0]])))


def test_inefficient_layouts_warn():
    with pytest.warns(sparse.SparseEfficiencyWarning, match="n_dense"):
        sparse.eye(3).update_layout(n_dense=1, on_inefficient="warn")


@pytest.mark.slow
def test_the_largest_eigenvalues():
    rng = np.random.default_rng(0)
    a = np.diag(np.arange(1.0, 61.0)) + (rng.uniform(size=(60, 60)) < 0.05) * rng.normal(size=(60, 60))
    a = ((a + a.T) / 2).astype("float32")
    guess = jnp.asarray(rng.normal(size=(60, 3)).astype("float32"))
    want = np.linalg.eigvalsh(a)[:-4:-1]
    for matrix in (jnp.asarray(a), BCOO.fromdense(a), lambda v: jnp.asarray(a) @ v):
        theta, u, steps = sparse.linalg.lobpcg_standard(matrix, guess)
        np.testing.assert_allclose(np.asarray(theta), want, rtol=1e-5)
        same(a @ np.asarray(u), np.asarray(u) * want, 2e-2)
        same(np.asarray(u).T @ np.asarray(u), np.eye(3))
        assert 3 < int(steps) < 100
    same(weft.jit(lambda m: sparse.linalg.lobpcg_standard(m, guess, tol=2e-6)[0])(BCOO.fromdense(a)), want, 1e-1)
    assert int(sparse.linalg.lobpcg_standard(a, guess, m=2)[2]) == 2
    # where 0 would be the largest
    negative = sparse.linalg.lobpcg_standard(-jnp.asarray(a) - 70 * jnp.eye(60), guess)[0]
    np.testing.assert_allclose(np.asarray(negative), -np.linalg.eigvalsh(a)[:3] - 70, rtol=1e-5)
    for wrong, error, words in [
        ((a[:5], guess), ValueError, "shape"),
        ((a, guess[:, :0]), ValueError, "at least one"),
        ((a, guess[0]), ValueError, r"\[n, k\]"),
        ((a, jnp.ones((60, 12))), ValueError, "n / 5"),
        ((a, guess.astype(int)), ValueError, "float32"),
        ((a, guess + 0j), TypeError, "complex"),
    ]:
        with pytest.raises(error, match=words):
            sparse.linalg.lobpcg_standard(*wrong)


def test_zeros_are_eliminated():
    stored = BCOO((jnp.array([0.0, 2.0, 3.0]), jnp.array([[0, 1], [1, 0], [1, 0]])), shape=(2, 2))
    for m in (
        sparse.bcoo.bcoo_eliminate_zeros(stored),
        weft.jit(lambda m: sparse.bcoo.bcoo_eliminate_zeros(m, nse=1))(stored),
        sparse.bcsr.bcsr_eliminate_zeros(BCSR.from_bcoo(stored.sort_indices())),
    ):
        assert m.nse == 1
        same(m, [[0, 0], [5, 0]])


def test_operations_are_no_primitives():
    with pytest.raises(AttributeError, match="Call bcoo_todense"):
        sparse.bcoo_todense_p
