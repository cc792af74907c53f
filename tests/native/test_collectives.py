"""Collectives under vmap, pmap and shard_map, against what they mean in NumPy."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.sharding import AxisType

pytestmark = pytest.mark.slow

N = 4
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, N, 8, 3)).astype(np.float32)  # one (4, 8, 3) for each member
GROUPS = [[0, 2], [3, 1]]


def by_vmap(f):
    return weft.vmap(f, axis_name="i")


def by_pmap(f):
    return weft.pmap(f, axis_name="i")


def by_shard_map(f):
    mesh = weft.make_mesh((N,), ("i",), axis_types=(AxisType.Auto,))
    one = lambda x: weft.tree_util.tree_map(lambda y: jnp.asarray(y)[None], f(x[0]))
    return weft.shard_map(one, mesh=mesh, in_specs=weft.P("i"), out_specs=weft.P("i"))


def by_part_of_a_mesh(f):
    """The axis is one of two; along the other one values are the compiler's."""
    mesh = weft.make_mesh((2, N), ("other", "i"), axis_types=(AxisType.Auto,) * 2)
    one = lambda x: weft.tree_util.tree_map(lambda y: jnp.asarray(y)[None], f(x[0]))
    return weft.jit(weft.shard_map(one, mesh=mesh, in_specs=weft.P("i"), out_specs=weft.P("i"), axis_names={"i"}))


WAYS = [by_vmap, by_pmap, by_shard_map, by_part_of_a_mesh]


def groups_of(groups):
    return [list(range(N))] if groups is None else groups


def for_groups(groups, f):
    """f(values of a group) -> values, for each group."""
    out = [None] * N
    for group in groups_of(groups):
        for member, value in zip(group, f(X[group])):
            out[member] = value
    return np.stack(out)


def all_to_all(rows, split, concat, tiled):
    n, out = len(rows), []
    for i in range(n):
        parts = [np.split(x, n, split)[i] for x in rows]
        out.append(np.concatenate(parts, concat) if tiled else np.stack([p.squeeze(split) for p in parts], concat))
    return np.stack(out)


def scattered(rows, d, tiled):
    parts = np.split(rows.sum(0), len(rows), d)
    return np.stack(parts if tiled else [p.squeeze(d) for p in parts])


CASES = {
    "psum": (lambda x: lax.psum(x, "i"), lambda: np.stack([X.sum(0)] * N)),
    "psum of a named and a numbered axis": (lambda x: lax.psum(x, ("i", 1)), lambda: np.stack([X.sum((0, 2))] * N)),
    "psum in groups": (
        lambda x: lax.psum(x, "i", axis_index_groups=GROUPS),
        lambda: for_groups(GROUPS, lambda r: [r.sum(0)] * len(r)),
    ),
    "pmean": (lambda x: lax.pmean(x, "i"), lambda: np.stack([X.mean(0)] * N)),
    "pmean in groups": (
        lambda x: lax.pmean(x, "i", axis_index_groups=GROUPS),
        lambda: for_groups(GROUPS, lambda r: [r.mean(0)] * len(r)),
    ),
    "pmax": (lambda x: lax.pmax(x, "i"), lambda: np.stack([X.max(0)] * N)),
    "pmin in groups": (
        lambda x: lax.pmin(x, "i", axis_index_groups=GROUPS),
        lambda: for_groups(GROUPS, lambda r: [r.min(0)] * len(r)),
    ),
    "all_gather": (lambda x: lax.all_gather(x, "i"), lambda: np.stack([X] * N)),
    "all_gather along 1": (lambda x: lax.all_gather(x, "i", axis=1), lambda: np.stack([np.moveaxis(X, 0, 1)] * N)),
    "all_gather tiled": (
        lambda x: lax.all_gather(x, "i", axis=-1, tiled=True),
        lambda: np.stack([np.concatenate(list(X), -1)] * N),
    ),
    "all_gather in groups": (
        lambda x: lax.all_gather(x, "i", axis_index_groups=GROUPS),
        lambda: for_groups(GROUPS, lambda r: [r] * len(r)),
    ),
    "psum_scatter": (lambda x: lax.psum_scatter(x, "i"), lambda: scattered(X, 0, False)),
    "psum_scatter tiled": (
        lambda x: lax.psum_scatter(x, "i", scatter_dimension=1, tiled=True),
        lambda: scattered(X, 1, True),
    ),
    "psum_scatter in groups": (
        lambda x: lax.psum_scatter(x, "i", scatter_dimension=1, tiled=True, axis_index_groups=GROUPS),
        lambda: for_groups(GROUPS, lambda r: scattered(r, 1, True)),
    ),
    "all_to_all": (lambda x: lax.all_to_all(x, "i", 0, 0), lambda: all_to_all(X, 0, 0, False)),
    "all_to_all forwards": (lambda x: lax.all_to_all(x, "i", 0, 2), lambda: all_to_all(X, 0, 2, False)),
    "all_to_all tiled": (lambda x: lax.all_to_all(x, "i", 1, 2, tiled=True), lambda: all_to_all(X, 1, 2, True)),
    "all_to_all tiled backwards": (
        lambda x: lax.all_to_all(x, "i", 1, 0, tiled=True),
        lambda: all_to_all(X, 1, 0, True),
    ),
    "all_to_all in groups": (
        lambda x: lax.all_to_all(x, "i", 1, 0, tiled=True, axis_index_groups=GROUPS),
        lambda: for_groups(GROUPS, lambda r: all_to_all(r, 1, 0, True)),
    ),
    "ppermute": (lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2), (2, 3), (3, 0)]), lambda: X[[3, 0, 1, 2]]),
    "ppermute with holes": (
        lambda x: lax.ppermute(x, "i", [(3, 0), (1, 2)]),
        lambda: np.stack([X[3], 0 * X[0], X[1], 0 * X[0]]),
    ),
    "pshuffle": (lambda x: lax.pshuffle(x, "i", [2, 0, 3, 1]), lambda: X[[2, 0, 3, 1]]),
    "pswapaxes": (lambda x: lax.pswapaxes(x, "i", 0), lambda: np.swapaxes(X, 0, 1)),
    "pbroadcast": (lambda x: lax.pbroadcast(x, "i", 2), lambda: np.stack([X[2]] * N)),
    "axis_index": (lambda x: lax.axis_index("i"), lambda: np.arange(N)),
    "axis_size": (lambda x: x[0, 0, 0] * lax.axis_size("i"), lambda: X[:, 0, 0, 0] * N),
}


@pytest.mark.parametrize("way", WAYS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", CASES)
def test_values(name, way):
    f, want = CASES[name]
    got = way(f)(X)
    want = want()
    assert got.shape == want.shape
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-6)


LINEAR = [name for name in CASES if name.startswith(("psum", "all_", "pp", "ps", "pb", "pmean"))]


def directional(f, x, v):
    """The derivative of a linear function is itself."""
    return np.asarray(f(v), np.float64)


@pytest.mark.parametrize("way", [by_vmap, by_pmap, by_shard_map], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", LINEAR)
def test_derivatives_of_linear_ones(name, way):
    """jvp is the function itself, and <f(v), c> = <v, transpose(c)>."""
    f = way(CASES[name][0])
    v = RNG.normal(size=X.shape).astype(np.float32)
    out, moved = weft.jvp(f, (X,), (v,))
    np.testing.assert_allclose(np.asarray(moved), np.asarray(f(v)), rtol=1e-5, atol=1e-6)
    c = RNG.normal(size=out.shape).astype(np.float32)
    (back,) = weft.vjp(f, X)[1](c)
    assert back.shape == X.shape
    np.testing.assert_allclose(
        np.vdot(np.asarray(back, np.float64), v), np.vdot(np.asarray(moved, np.float64), c), rtol=1e-3, atol=1e-3
    )


TWO = {
    "psum": lambda x: lax.psum(x, ("i", "j")),
    "psum of one": lambda x: (lax.psum(x, "i"), lax.psum(x, "j")),
    "pmax": lambda x: lax.pmax(x, ("j", "i")),
    "all_gather": lambda x: lax.all_gather(x, ("i", "j"), axis=1),
    "all_gather, other order": lambda x: lax.all_gather(x, ("j", "i"), tiled=True),
    "psum_scatter": lambda x: lax.psum_scatter(x, ("i", "j"), scatter_dimension=1),
    "all_to_all": lambda x: lax.all_to_all(x, ("i", "j"), 1, 0, tiled=True),
    "ppermute": lambda x: lax.ppermute(x, ("i", "j"), [(0, 7), (7, 3), (3, 0)]),
    "ppermute along one": lambda x: lax.ppermute(x, "j", [(0, 3), (3, 1)]),
    "pbroadcast": lambda x: lax.pbroadcast(x, ("j", "i"), 5),
    "axis_index": lambda x: lax.axis_index(("j", "i")),
    "groups": lambda x: lax.psum(x, "j", axis_index_groups=GROUPS),
}


@pytest.mark.parametrize("name", TWO)
def test_two_axes_agree(name):
    """Nested vmap, nested pmap, pmap of vmap, vmap of pmap and shard_map over a mesh of two axes say the same."""
    f = TWO[name]
    x = RNG.normal(size=(2, N, 3, 8)).astype(np.float32)
    mesh = weft.make_mesh((2, N), ("i", "j"), axis_types=(AxisType.Auto,) * 2)
    over_both = weft.shard_map(
        lambda x: weft.tree_util.tree_map(lambda y: jnp.asarray(y)[None, None], f(x[0, 0])),
        mesh=mesh,
        in_specs=weft.P("i", "j"),
        out_specs=weft.P("i", "j"),
    )
    want = weft.tree_util.tree_leaves(over_both(x))
    for outer, inner in (
        (weft.vmap, weft.vmap),
        (weft.pmap, weft.pmap),
        (weft.pmap, weft.vmap),
        (weft.vmap, weft.pmap),
    ):
        got = weft.tree_util.tree_leaves(outer(inner(f, axis_name="j"), axis_name="i")(x))
        for g, w in zip(got, want):
            np.testing.assert_allclose(
                np.asarray(g), np.asarray(w), rtol=1e-5, atol=1e-6, err_msg=f"{outer.__name__} of {inner.__name__}"
            )


def test_two_axes_mean_what_numpy_says():
    x = RNG.normal(size=(2, N, 3, 8)).astype(np.float32)
    f = weft.pmap(
        weft.pmap(
            lambda x: (lax.psum(x, ("i", "j")), lax.all_gather(x, ("i", "j")), lax.axis_index(("i", "j"))),
            axis_name="j",
        ),
        axis_name="i",
    )
    total, everything, index = f(x)
    np.testing.assert_allclose(np.asarray(total), np.broadcast_to(x.sum((0, 1)), x.shape), rtol=1e-5)
    np.testing.assert_array_equal(np.asarray(everything)[1, 2], x.reshape(8, 3, 8))
    np.testing.assert_array_equal(np.asarray(index), np.arange(8).reshape(2, 4))


def test_numbers_and_trees():
    out = weft.pmap(lambda x: lax.psum({"a": x, "b": 2}, "i"), axis_name="i")(np.arange(4.0, dtype=np.float32))
    assert out["a"].tolist() == [6.0] * 4 and out["b"].tolist() == [8] * 4
    assert weft.pmap(lambda x: lax.psum(x > 1, "i"), axis_name="i")(np.arange(4)).tolist() == [2] * 4


def test_reductions_inside_loops_and_branches():
    def f(x):
        y, _ = lax.scan(lambda c, t: (c + lax.psum(x, "i") * t, c), x, jnp.arange(3.0))
        return lax.cond(lax.axis_index("i") > 1, lambda: y, lambda: -y)

    x = np.arange(4.0, dtype=np.float32)
    want = (x + x.sum() * 3) * np.array([-1, -1, 1, 1])
    np.testing.assert_allclose(np.asarray(weft.pmap(f, axis_name="i")(x)), want)
    np.testing.assert_allclose(np.asarray(weft.vmap(f, axis_name="i")(x)), want)


@pytest.mark.parametrize(
    "f,error,match",
    [
        (lambda x: lax.psum(x, "nobody"), NameError, "unbound axis name: 'nobody'"),
        (lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1], [2]]), ValueError, "each of the 4 members"),
        (lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1, 2], [3]]), ValueError, "one size"),
        (lambda x: lax.ppermute(x, "i", [(0, 1), (0, 2)]), ValueError, "distinct"),
        (lambda x: lax.ppermute(x, "i", [(0, 4)]), ValueError, "members of 'i', 0 to 3"),
        (lambda x: lax.pshuffle(x, "i", [0, 0, 1, 2]), ValueError, "permutation"),
        (lambda x: lax.all_to_all(x, "i", 1, 0), TypeError, "axis 1 of f32.4,8,3. has size 8"),
        (
            lambda x: lax.psum_scatter(x, "i", scatter_dimension=2, tiled=True),
            TypeError,
            "multiple of the number of members|multiple of",
        ),
        (lambda x: lax.pbroadcast(x, "i", 4), ValueError, "not a member"),
    ],
)
def test_mistakes(f, error, match):
    for way in (by_vmap, by_pmap):
        with pytest.raises(error, match=match):
            way(f)(X)


def test_pmax_has_no_derivative():
    with pytest.raises(NotImplementedError, match="psum"):
        weft.grad(lambda x: weft.pmap(lambda x: lax.pmax(x, "i"), axis_name="i")(x).sum())(np.ones(4, np.float32))


@pytest.mark.parametrize("way", [by_vmap, by_pmap], ids=lambda f: f.__name__)
def test_ragged_all_to_all(way):
    rng = np.random.default_rng(3)
    sizes = rng.integers(0, 3, (N, N))  # what i sends to j
    begins = np.cumsum(sizes, 1) - sizes
    places = np.cumsum(sizes, 0) - sizes
    x, out = rng.normal(size=(N, 9, 2)).astype(np.float32), np.full((N, 10, 2), -1, np.float32)
    want = out.copy()
    for i in range(N):
        for j in range(N):
            want[j, places[i, j] : places[i, j] + sizes[i, j]] = x[i, begins[i, j] : begins[i, j] + sizes[i, j]]
    f = lambda a: lax.ragged_all_to_all(a["x"], a["out"], a["begins"], a["sizes"], a["places"], a["got"], axis_name="i")
    a = dict(
        x=x,
        out=out,
        begins=begins.astype(np.int32),
        sizes=sizes.astype(np.int32),
        places=places.astype(np.int32),
        got=sizes.T.astype(np.int32),
    )
    np.testing.assert_array_equal(np.asarray(way(f)(a)), want)
    with pytest.raises(TypeError, match="vector of 4 integers"):
        way(f)(dict(a, sizes=a["sizes"][:, :2]))


def test_ragged_all_to_all_in_groups():
    one = np.ones(2, np.int32)
    f = lambda x, i: lax.ragged_all_to_all(
        x,
        jnp.zeros(2),
        np.arange(2, dtype=np.int32),
        one,
        jnp.stack([i, i]),
        one,
        axis_name="i",
        axis_index_groups=GROUPS,
    )
    got = weft.vmap(f, axis_name="i")(np.arange(8, dtype=np.float32).reshape(4, 2), np.array([0, 1, 1, 0], np.int32))
    assert got.tolist() == [[0, 4], [7, 3], [1, 5], [6, 2]]


def test_sending_and_receiving():
    pairs = [(0, 1), (1, 2), (2, 3), (3, 0)]
    f = lambda x: lax.precv(lax.psend(x, "i", pairs), weft.ShapeDtypeStruct(x.shape, x.dtype), "i", pairs)
    np.testing.assert_array_equal(np.asarray(by_pmap(f)(X)), X[[3, 0, 1, 2]])
    with pytest.raises(ValueError, match="received along"):
        by_vmap(lambda x: lax.precv(lax.psend(x, "i", pairs), x, "i", pairs[:2]))(X)
