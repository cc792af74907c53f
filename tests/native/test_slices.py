"""Slices of slices, and updates of arrays that they read, on XLA with its optimiser: what it makes one of several."""

import itertools

import numpy as np
import pytest
from platforms import need

import weft

need("cpu")
import weft.numpy as jnp
from weft import lax
from weft.base import dtypes
from weft.base.config import enable_x64
from weft_native.lower import aliasing


def part(x: np.ndarray, start: int, size: int) -> np.ndarray:
    """The rows that a dynamic slice has: a start out of bounds is moved within them."""
    start = max(0, min(start, len(x) - size))
    return x[start : start + size]


INTEGERS = ["int8", "uint8", "int16", "uint32", "int32", "int64", "uint64"]


@pytest.mark.parametrize("kinds", list(itertools.product(INTEGERS, INTEGERS)), ids="-".join)
def test_a_slice_of_a_slice_begins_within_it(kinds):
    """XLA adds the starts of both before it moves them within bounds."""
    x = np.arange(20, dtype="float32").reshape(10, 2)
    with enable_x64(True):
        twice = weft.jit(lambda x, i, j: lax.dynamic_slice(lax.dynamic_slice(x, (i, 0), (5, 2)), (j, 0), (2, 2)))
        for i, j in itertools.product([0, 2, 7, 100], [0, 1, 4, 90]):
            got = twice(x, np.asarray(i, kinds[0]), np.asarray(j, kinds[1]))
            np.testing.assert_array_equal(got, part(part(x, i, 5), j, 2))


def test_a_static_slice_of_a_slice_begins_within_it():
    x = np.arange(10, dtype="float32")
    cut = weft.jit(lambda x, i: lax.dynamic_slice(x, (i,), (5,))[:2])
    for i in (0, 3, 8, 100):
        np.testing.assert_array_equal(cut(x, i), part(x, i, 5)[:2])


def test_a_slice_of_what_a_gather_has_begins_within_it():
    x = np.arange(10, dtype="float32")
    numbers = lax.GatherDimensionNumbers((0,), (), (0,))
    rows = lambda x, i, n: lax.gather(x, jnp.stack([i]), numbers, (n,), mode="clip")
    twice = weft.jit(lambda x, i, j: rows(rows(x, i, 5), j, 2))
    mapped = weft.jit(weft.vmap(lambda x, i, j: lax.dynamic_slice(lax.dynamic_slice(x, (i,), (5,)), (j,), (2,))))
    for i, j in itertools.product([0, 2, 7, 100], [0, 1, 4, 90]):
        want = part(part(x, i, 5), j, 2)
        np.testing.assert_array_equal(twice(x, jnp.int32(i), jnp.int32(j)), want)
        np.testing.assert_array_equal(mapped(x[None], np.array([i]), np.array([j]))[0], want)


def updated(x, update, *starts):
    return lax.dynamic_update_slice(x, update, starts)


def scattered(x, update, *starts):
    numbers = lax.ScatterDimensionNumbers(tuple(range(x.ndim)), (), tuple(range(x.ndim)))
    return lax.scatter(x, jnp.stack([jnp.asarray(k, "int32") for k in starts]), update, numbers, mode="clip")


first = lambda v: jnp.transpose(v, (2, 0, 1))
rows = weft.jit(lambda v: (jnp.flip(v), v.reshape(4, 3)))
change = weft.jit(lambda op, x, v, i: op(x, jnp.flip(v)[:4].reshape(2, 2), i, i), static_argnums=0)
# The shape of v, and the update of a view of v by what is computed from v.
VIEWS = {
    "v": ((4, 3), lambda op, v, i: op(v, v.ravel()[:4].reshape(2, 2), i, i)),
    "a matrix": ((12,), lambda op, v, i: op(v.reshape(4, 3), v[:4].reshape(2, 2), i, i)),
    "a vector": ((3, 4), lambda op, v, i: op(v.reshape(12), v.T[:2].reshape(6), i)),
    "a column": ((12,), lambda op, v, i: op(v.reshape(12, 1), jnp.flip(v[1:6]).reshape(5, 1), i, 0)),
    "an axis more": ((4, 3), lambda op, v, i: op(v.reshape(1, 4, 3), v.ravel()[:4].reshape(1, 2, 2), 0, i, i)),
    "an axis less": ((4, 3, 1), lambda op, v, i: op(v[..., 0], v.ravel()[:4].reshape(2, 2), i, i)),
    "transposed": ((4, 3, 1), lambda op, v, i: op(first(v), first(v).reshape(1, 12)[:, :4].reshape(1, 2, 2), 0, i, i)),
    "itself": ((12,), lambda op, v, i: op(v.reshape(4, 3), v.reshape(4, 3)[1:3, 1:].T, i, i)),
    "no start": ((12,), lambda op, v, i: op(v.reshape(4, 3), v[:4].reshape(2, 2), 1, 0)),
    "the same twice": ((12,), lambda op, v, i: op((-v).reshape(4, 3), (-v)[:4].reshape(2, 2), i, i)),
    "of a function": ((12,), lambda op, v, i: op(rows(v)[1], rows(v)[0][:4].reshape(2, 2), i, i)),
    "in a function": ((12,), lambda op, v, i: change(op, v.reshape(4, 3), v, i)),
    "twice": ((12,), lambda op, v, i: op(op(v.reshape(4, 3), v[:4].reshape(2, 2), i, i), v[3:7].reshape(2, 2), 0, i)),
    "in a loop": (
        (12,),
        lambda op, v, i: lax.fori_loop(
            0, 3, lambda k, c: op(c.reshape(4, 3), c[:4].reshape(2, 2), i, i).reshape(12), v
        ),
    ),
}


@pytest.mark.parametrize("op", [updated, scattered])
@pytest.mark.parametrize("dtype", ["float32", "int8", "uint64", "complex64"])
@pytest.mark.parametrize("name", VIEWS)
def test_an_update_reads_what_was_there_before(name, dtype, op):
    """XLA updates in place what is read in another shape by the fusion of the update."""
    shape, change = VIEWS[name]
    numbers = np.random.RandomState(0)
    v = numbers.normal(0, 9, shape).astype(dtype)
    compiled = weft.jit(lambda v, i: change(op, v, i))
    mapped = weft.jit(weft.vmap(lambda v, i: change(op, v, i), in_axes=(-1, 0)))
    for i in range(3):
        with enable_x64(True), weft.default_device(weft.devices("reference")[0]):
            want = np.asarray(change(op, jnp.asarray(v), jnp.int32(i)))
        with enable_x64(True):
            np.testing.assert_array_equal(compiled(v, jnp.int32(i)), want)
            np.testing.assert_array_equal(mapped(v[..., None], jnp.array([i]))[0], want)


def test_functions_that_call_another_twice_are_looked_through_once(monkeypatch):
    seen = []
    elements = aliasing._elements
    monkeypatch.setattr(aliasing, "_elements", lambda value: seen.append(value) or elements(value))

    def doubled(f):
        return weft.jit(lambda v: f(f(v)))

    view = lambda v: v.reshape(3, 4).T.reshape(12)
    for _ in range(10):
        view = doubled(view)
    change = weft.jit(lambda v: lax.dynamic_update_slice(view(v).reshape(4, 3), v[:4].reshape(2, 2), (0, 0)))
    assert "call @" in change.lower(jnp.arange(12.0)).as_text()
    assert 0 < len(seen) < 200  # there are 2 ** 10 paths


def test_long_computations_are_compared_without_recursion():
    def long(v):
        for _ in range(1500):
            v = jnp.sin(v)
        return v

    change = lambda v: lax.dynamic_update_slice(long(v).reshape(4, 3), long(v)[:4].reshape(2, 2), (1, 0))
    assert "stablehlo.select" in weft.jit(change).lower(jnp.arange(12.0)).as_text()


@pytest.mark.parametrize("dtype", sorted(set(dtypes.names) - {"int1", "uint1", "float6_e2m3fn", "float6_e3m2fn"}))
def test_values_made_from_equal_constants_are_the_same(dtype):
    """Each of the two is an operation of its own, of which XLA makes one."""

    def change(v):
        made = [jnp.concatenate([v, lax.full((4,), 1, v.dtype)]) for _ in range(2)]
        return lax.dynamic_update_slice(made[0].reshape(4, 3), made[1][:4].reshape(2, 2), (1, 0))

    with enable_x64(True):
        v = np.array([1, 0.5, 1, 1] * 2, dtypes.dtype(dtype))
        with weft.disable_jit(), weft.default_device(weft.devices("reference")[0]):
            want = change(jnp.asarray(v))
        assert "stablehlo.select" in weft.jit(change).lower(v).as_text()
        np.testing.assert_array_equal(np.asarray(weft.jit(change)(v)), np.asarray(want))
