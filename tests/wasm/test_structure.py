"""Moving, reducing, contracting, indexing, sorting: against the reference rules."""

import numpy as np
import pytest
from wasm_harness import FLOATS, INTS, check, numpy_dtype, run, values
from weft import lax

rng = np.random.default_rng(2)
F = lambda *shape: values(rng, "float32", shape)


@pytest.mark.parametrize(
    "shape,permutation",
    [
        ((3, 4), (1, 0)),
        ((2, 3, 4), (2, 0, 1)),
        ((2, 1, 4, 3), (3, 1, 0, 2)),
        ((5,), (0,)),
        ((0, 3), (1, 0)),
        ((2, 3, 4, 5), (0, 1, 3, 2)),
    ],
)
def test_transpose(shape, permutation):
    check(lambda x: lax.transpose(x, permutation), F(*shape))
    check(lambda x: lax.sin(lax.transpose(lax.mul(x, x), permutation)), F(*shape))


def test_reshape_between_computations():
    check(lambda x: lax.reshape(lax.transpose(lax.reshape(lax.exp(x), (6, 4)), (1, 0)), (3, 8)), F(2, 3, 4))
    check(
        lambda x: lax.add(
            lax.reshape(x, (8, 3)), lax.broadcast_in_dim(lax.slice(lax.reshape(x, (24,)), (0,), (3,)), (8, 3), (1,))
        ),
        F(6, 4),
    )
    check(lambda x: lax.squeeze(lax.expand_dims(x, (1, 3)), (1,)), F(4, 5))


def test_broadcast():
    for shape, target, dims in [
        ((3,), (2, 3), (1,)),
        ((3,), (3, 2), (0,)),
        ((1, 4), (5, 4), (0, 1)),
        ((), (2, 2), ()),
        ((2, 3), (2, 4, 3, 5), (0, 2)),
    ]:
        check(lambda x: lax.exp(lax.broadcast_in_dim(x, target, dims)), F(*shape))
        check(lambda x: lax.broadcast_in_dim(x, target, dims), F(*shape))


def test_slices():
    check(lambda x: lax.slice(x, (1, 0, 2), (3, 4, 5), (1, 2, 1)), F(3, 4, 5))
    check(lambda x: lax.rev(x, (0, 2)), F(3, 4, 5))
    check(lambda x: lax.slice(x, (2, 0), (2, 4)), F(3, 4))
    check(lambda x: lax.slice(lax.mul(x, x), (1, 0), (3, 4)), F(3, 4))


@pytest.mark.parametrize(
    "config",
    [
        ((1, 2, 0), (0, 0, 0)),
        ((0, 0, 1), (2, 0, 3)),
        ((-1, 2, 0), (1, -2, 0)),
        ((0, 0, 0), (0, 0, 0)),
        ((2, 1, 2), (-1, -1, 1)),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
def test_pad(config, dtype):
    x = values(rng, dtype, (4, 5))
    check(lambda x, v: lax.pad(x, v, config), x, x[0, 0])


def test_pad_of_nothing():
    check(lambda x: lax.pad(x, np.float32(2), ((1, 2, 0),)), F(0))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_concatenate(axis):
    shapes = [[3, 4, 5], [3, 4, 5], [3, 4, 5]]
    shapes[0][axis], shapes[1][axis] = 2, 0
    check(lambda *xs: lax.concatenate([lax.neg(x) for x in xs], axis), *[F(*s) for s in shapes])
    check(lambda *xs: lax.concatenate(list(xs), axis), *[values(rng, "bfloat16", s) for s in shapes])


@pytest.mark.parametrize("dimension", [0, 1])
@pytest.mark.parametrize("dtype", ["int32", "float32", "uint8", "bfloat16", "int64"])
def test_iota(dtype, dimension):
    check(lambda: lax.broadcasted_iota(numpy_dtype(dtype), (5, 7), dimension))
    check(lambda x: lax.add(x, lax.broadcasted_iota(np.float32, (5, 7), dimension)), F(5, 7))


REDUCE = [
    ((7,), (0,)),
    ((5, 9), (0,)),
    ((5, 9), (1,)),
    ((5, 9), (0, 1)),
    ((3, 4, 5), (1,)),
    ((3, 4, 5), (0, 2)),
    ((2, 3, 4, 5), (1, 3)),
    ((0, 3), (0,)),
    ((3, 0), (0,)),
    ((130, 70), (1,)),
    ((130, 70), (0,)),
    ((1, 6), (0,)),
    ((5000,), (0,)),
]


@pytest.mark.parametrize("shape,axes", REDUCE)
@pytest.mark.parametrize("name", ["reduce_sum", "reduce_max", "reduce_min"])
def test_reduce(name, shape, axes):
    check(lambda x: getattr(lax, name)(x, axes), F(*shape), tolerance=1e-4)
    check(lambda x: getattr(lax, name)(lax.exp(x), axes), F(*shape), tolerance=1e-3)


@pytest.mark.parametrize("dtype", FLOATS + INTS)
def test_reduce_dtypes(dtype):
    x = values(rng, dtype, (4, 33), 0.5, 1.5)
    for f in (lax.reduce_max, lax.reduce_min, lax.reduce_sum):
        check(lambda x: f(x, (1,)), x)
    check(lambda x: lax.reduce_prod(x, (1,)), x[:, :4], tolerance=5e-2 if dtype == "bfloat16" else None)


def test_reduce_bits():
    for dtype in ("bool", "int32", "uint8"):
        x = values(rng, dtype, (4, 33))
        for f in (lax.reduce_and, lax.reduce_or, lax.reduce_xor, lax.reduce_max, lax.reduce_min):
            check(lambda x: f(x, (0,)), x)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "uint16", "int32"])
def test_long_reductions_begin_with_what_changes_nothing(dtype):
    x = rng.integers(1, 100, (2, 5000)).astype(dtype)
    for f in (
        lax.reduce_max,
        lax.reduce_min,
        lax.reduce_sum,
        lax.reduce_prod,
        lax.reduce_and,
        lax.reduce_or,
        lax.reduce_xor,
    ):
        if dtype != "bool" or f not in (lax.reduce_sum, lax.reduce_prod):
            check(lambda x: [f(x, (1,)), f(x, (0, 1))], x)


def test_nan_wins_extrema():
    x = F(4, 20)
    x[1, 3] = np.nan
    check(
        lambda x: [
            lax.reduce_max(x, (1,)),
            lax.reduce_min(x, (0,)),
            lax.argmax(x, 1, np.int32),
            lax.argmin(x, 0, np.int32),
        ],
        x,
    )


def test_reduce_with_a_function():
    check(
        lambda x: lax.reduce(x, np.float32(1), lambda a, b: lax.mul(a, b), (1,)),
        values(rng, "float32", (3, 11), 0.5, 1.5),
    )


@pytest.mark.parametrize("dtype", ["float32", "int16", "bool", "bfloat16", "float64", "uint32"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_arg_extrema(axis, dtype):
    x = values(rng, dtype, (3, 17, 6))
    check(lambda x: [lax.argmax(x, axis, np.int32), lax.argmin(x, axis, np.uint8)], x)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumulative(name, reverse):
    for shape, axis in [((9,), 0), ((4, 7), 1), ((4, 7), 0), ((2, 5, 3), 1), ((0, 3), 0)]:
        check(lambda x: getattr(lax, name)(x, axis, reverse), F(*shape), tolerance=1e-4)


DOTS = [
    ((5, 7), (7, 3), (((1,), (0,)), ((), ()))),
    ((7, 5), (7, 3), (((0,), (0,)), ((), ()))),
    ((5, 7), (3, 7), (((1,), (1,)), ((), ()))),
    ((2, 5, 7), (2, 7, 3), (((2,), (1,)), ((0,), (0,)))),
    ((5, 2, 7), (7, 3, 2), (((2,), (0,)), ((1,), (2,)))),
    ((4, 6, 5), (6, 5, 3), (((1, 2), (0, 1)), ((), ()))),
    ((4, 6, 5), (5, 6, 3), (((1, 2), (1, 0)), ((), ()))),
    ((7,), (7,), (((0,), (0,)), ((), ()))),
    ((7,), (7, 40), (((0,), (0,)), ((), ()))),
    ((40, 7), (7,), (((1,), (0,)), ((), ()))),
    ((3,), (4,), (((), ()), ((), ()))),
    ((65, 300), (300, 70), (((1,), (0,)), ((), ()))),
    ((300, 65), (70, 300), (((0,), (1,)), ((), ()))),
    ((3, 40, 50), (3, 50, 30), (((2,), (1,)), ((0,), (0,)))),
    ((2, 3, 16, 20), (20, 33), (((3,), (0,)), ((), ()))),
    ((3, 0), (0, 4), (((1,), (0,)), ((), ()))),
]


@pytest.mark.parametrize("a,b,numbers", DOTS)
def test_dot_general(a, b, numbers):
    check(lambda x, y: lax.dot_general(x, y, numbers), F(*a), F(*b), tolerance=1e-4)


@pytest.mark.parametrize("dtype", FLOATS + INTS)
def test_dot_dtypes(dtype):
    for a, b in [((5, 9), (9, 6)), ((40, 30), (30, 50))]:
        check(
            lambda x, y: lax.dot(x, y),
            values(rng, dtype, a),
            values(rng, dtype, b),
            tolerance={"bfloat16": 0.1, "float16": 2e-2}.get(dtype, 1e-4),
        )


def test_dot_with_preferred_type():
    check(
        lambda x, y: lax.dot(x, y, preferred_element_type=np.dtype(np.int32)),
        values(rng, "int8", (30, 40)),
        values(rng, "int8", (40, 30)),
    )
    check(
        lambda x, y: lax.dot(x, y, preferred_element_type=np.dtype(np.float32)),
        values(rng, "bfloat16", (30, 40)),
        values(rng, "bfloat16", (40, 30)),
        tolerance=1e-3,
    )


def test_dot_with_epilogue_and_prologue():
    def layer(x, w, b):
        return lax.max(
            lax.add(
                lax.dot(lax.mul(x, np.float32(2)), lax.transpose(w, (1, 0))), lax.broadcast_in_dim(b, (40, 50), (1,))
            ),
            np.float32(0),
        )

    check(layer, F(40, 30), F(50, 30), F(50), tolerance=1e-4)


def test_dynamic_slices():
    x, u = F(6, 7), F(2, 3)
    for dtype in ("int8", "int32", "uint32", "int64", "uint64"):
        for i, j in [(0, 0), (2, 3), (100, 5)] + ([(-3, 2)] if dtype[0] == "i" else []):
            i, j = np.array(i, dtype), np.array(j, dtype)
            check(lambda x, i, j: lax.dynamic_slice(x, (i, j), (2, 3)), x, i, j)
            check(lambda x, i, j: lax.dynamic_slice(lax.exp(x), (i, j), (6, 3)), x, i, j)
            check(lambda x, u, i, j: lax.dynamic_update_slice(x, u, (i, j)), x, u, i, j)
            check(lambda x, u, i, j: lax.dynamic_update_slice(lax.mul(x, x), lax.neg(u), (i, j)), x, u, i, j)


def test_update_that_reads_what_it_overwrites():
    def shift(x, i):
        y = lax.mul(x, np.float32(1))
        return lax.dynamic_update_slice(y, lax.slice(lax.rev(y, (0,)), (0,), (4,)), (i,))

    check(shift, F(8), np.int32(2))


GATHERS = [
    ((10, 4), (5, 1), lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 4)),
    ((10, 4), (3, 2, 1), lax.GatherDimensionNumbers((2,), (0,), (0,)), (1, 4)),
    ((10, 4), (5, 2), lax.GatherDimensionNumbers((), (0, 1), (0, 1)), (1, 1)),
    ((10, 6), (5, 1), lax.GatherDimensionNumbers((0, 2), (), (1,)), (10, 2)),
    ((3, 8, 4), (3, 5, 1), lax.GatherDimensionNumbers((2,), (1,), (1,), (0,), (0,)), (1, 1, 4)),
]


@pytest.mark.parametrize("mode", ["clip", "fill", "promise_in_bounds"])
@pytest.mark.parametrize("shape,indices,numbers,sizes", GATHERS)
def test_gather(shape, indices, numbers, sizes, mode):
    top = 3 if mode == "promise_in_bounds" else 12
    index = rng.integers(-2 if mode != "promise_in_bounds" else 0, top, size=indices).astype(np.int32)
    for dtype in ("float32", "int8", "uint16", "bool"):
        check(lambda x, i: lax.gather(x, i, numbers, sizes, mode=mode), values(rng, dtype, shape), index)
    check(
        lambda x, i: lax.gather(
            lax.exp(x),
            lax.max(i, np.int32(0)),
            numbers,
            sizes,
            mode=mode,
            **({"fill_value": 7} if mode == "fill" else {}),
        ),
        F(*shape),
        index,
    )


SCATTERS = [
    ((10, 4), (5, 1), (5, 4), lax.ScatterDimensionNumbers((1,), (0,), (0,))),
    ((10,), (6, 1), (6,), lax.ScatterDimensionNumbers((), (0,), (0,))),
    ((10, 4), (5, 2), (5,), lax.ScatterDimensionNumbers((), (0, 1), (0, 1))),
    ((8, 6), (3, 1), (3, 8, 2), lax.ScatterDimensionNumbers((1, 2), (), (1,))),
    ((3, 8, 4), (3, 5, 1), (3, 5, 4), lax.ScatterDimensionNumbers((2,), (1,), (1,), (0,), (0,))),
]


@pytest.mark.parametrize("mode", ["clip", "drop", "promise_in_bounds"])
@pytest.mark.parametrize("name", ["scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max"])
@pytest.mark.parametrize("shape,indices,updates,numbers", SCATTERS)
def test_scatter(shape, indices, updates, numbers, name, mode):
    top = 4 if mode == "promise_in_bounds" else 12
    index = rng.integers(-2 if mode != "promise_in_bounds" else 0, top, size=indices).astype(np.int32)
    f = getattr(lax, name)
    check(lambda x, i, u: f(x, i, u, numbers, mode=mode), F(*shape), index, F(*updates))
    check(
        lambda x, i, u: f(lax.neg(x), i, lax.mul(u, u), numbers, mode=mode),
        values(rng, "int16", shape),
        index,
        values(rng, "int16", updates),
    )


@pytest.mark.parametrize("name", ["scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max"])
def test_scatter_of_nothing(name):
    """No place, no element at each, or no element at all: the operand stays as it is, in results of their own and in
    place.
    """
    f = getattr(lax, name)
    rows, windows = lax.ScatterDimensionNumbers((1,), (0,), (0,)), lax.ScatterDimensionNumbers((0, 1), (), (0,))
    for shape, indices, updates, numbers in [
        ((5, 4), (0, 1), (0, 4), rows),
        ((5, 4), (1,), (0, 4), windows),
        ((5, 4), (1,), (2, 0), windows),
        ((0, 4), (0, 1), (0, 4), rows),
        ((5, 0), (3, 1), (3, 0), rows),
        ((5, 4), (0, 3, 1), (0, 3, 4), lax.ScatterDimensionNumbers((2,), (0,), (0,))),
    ]:
        args = F(*shape) + 5, np.zeros(indices, np.int32), F(*updates)
        (got,) = check(lambda x, i, u: f(x, i, u, numbers), *args)
        np.testing.assert_array_equal(got, args[0])
        check(lambda x, i, u: f(lax.neg(x), i, lax.add(u, u), numbers), *args)
        check(lambda x, i, u: lax.fori_loop(0, 3, lambda _, x: f(x, i, u, numbers), x), *args)


def test_scatter_apply():
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    check(
        lambda x, i: lax.scatter_apply(x, i, lambda v: lax.sin(v), numbers, update_shape=(4,)),
        F(10),
        np.array([[1], [3], [8], [20]], np.int32),
    )


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "bfloat16", "float64", "int64", "bool"])
@pytest.mark.parametrize("axis", [0, 1])
def test_sort(axis, dtype):
    for shape in [(5, 9), (1, 1), (70, 3), (3, 200), (0, 4)]:
        x = values(rng, dtype, shape)
        check(lambda x: lax.sort(x, dimension=axis), x)
        check(
            lambda x, y: lax.sort((x, y), dimension=axis, num_keys=1),
            x,
            np.arange(x.size, dtype=np.int32).reshape(shape),
        )


def test_sort_with_two_keys_and_nan():
    x = F(50).round()
    x[::7] = np.nan
    check(lambda x, y, z: lax.sort((x, y, z), dimension=0, num_keys=2), x, F(50), np.arange(50, dtype=np.int32))


def test_top_k():
    check(lambda x: lax.top_k(x, 5), F(6, 40))
    check(lambda x: lax.top_k(lax.exp(x), 3), F(7))


def test_constants_of_inner_programs():
    table = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert run(lambda x: lax.add(x, table), np.ones((3, 4), np.float32))[0].tolist() == (table + 1).tolist()
    check(lambda x: lax.scan(lambda c, _: (lax.add(c, table), lax.mul(c, table)), x, None, length=3)[0], F(3, 4))
