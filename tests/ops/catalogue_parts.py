"""Rows of the catalogue for functions of lax that say briefly what others do at length, and for those over named
axes.
"""

import weft
from weft.base import dtypes
from weft import lax
from weft.base.host import from_flat


def _const(values, shape=None):
    return from_flat(values, shape or (len(values),), dtypes.int32)


def _over(f):
    """`f` of the rows of an array, which are the elements of the mapped axis "i"."""
    return lambda x: weft.vmap(f, axis_name="i")(x)


def rows(Row):
    yield Row("broadcast", lambda x: lax.broadcast(x, (2, 3)), ("f32[4]",))
    yield Row("collapse", lambda x: lax.collapse(x, 1, 3), ("f32[2,3,4]",))
    yield Row("expand_dims", lambda x: lax.expand_dims(x, (0, 2)), ("f32[2,3]",))
    yield Row("reciprocal", lax.reciprocal, ("f32[3]:0.5..2",))
    yield Row("full", lambda x: lax.full((2, 3), 1.5) * x, ("f32[]",))
    yield Row("full_like", lambda x: lax.full_like(x, 2.5) * x, ("f32[2,3]",))
    yield Row("iota", lambda x: lax.iota("int32", 4) * x, ("i32[4]",), grad=False)
    yield Row("select", lax.select, ("bool[2,3]", "f32[2,3]", "f32[2,3]"))
    yield Row("stop_gradient", lambda x: lax.stop_gradient(x) + 0.0, ("f32[3]",), grad=False)
    yield Row("batch_matmul", lax.batch_matmul, ("f32[2,3,4]", "f32[2,4,2]"), rtol=5e-5)
    yield Row(
        "conv_with_general_padding",
        lambda x, k: lax.conv_with_general_padding(x, k, (1,), [(1, 2)], None, (2,)),
        ("f32[1,2,6]", "f32[3,2,2]"),
        rtol=1e-4,
    )
    # along one axis
    yield Row("index_in_dim", lambda x: lax.index_in_dim(x, -1, 1, keepdims=False), ("f32[2,3]",))
    yield Row("slice_in_dim", lambda x: lax.slice_in_dim(x, 1, 5, 2, axis=1), ("f32[2,6]",))
    yield Row("dynamic_slice_in_dim", lambda x, i: lax.dynamic_slice_in_dim(x, i, 2, 1), ("f32[2,5]", "i32[]:-7..7"))
    yield Row(
        "dynamic_index_in_dim",
        lambda x, i: lax.dynamic_index_in_dim(x, i, 0, keepdims=False),
        ("f32[4,3]", "i32[]:-4..3"),
    )
    yield Row(
        "dynamic_update_slice_in_dim",
        lambda x, u, i: lax.dynamic_update_slice_in_dim(x, u, i, 1),
        ("f32[2,5]", "f32[2,2]", "i32[]:-5..5"),
    )
    yield Row(
        "dynamic_update_index_in_dim",
        lambda x, u, i: lax.dynamic_update_index_in_dim(x, u, i, 0),
        ("f32[4,3]", "f32[3]", "i32[]:0..3"),
    )
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    yield Row(
        "scatter_sub", lambda x, u: lax.scatter_sub(x, _const([1, 1, 2], (3, 1)), u, numbers), ("f32[4]", "f32[3]")
    )
    yield Row(
        "scatter_apply",
        lambda x: lax.scatter_apply(x, _const([1, 2], (2, 1)), lax.sin, numbers, unique_indices=True),
        ("f32[4]",),
    )
    yield Row(
        "rng_uniform_shape",
        lambda x: lax.convert_element_type(lax.rng_uniform(0.0, 1.0, (2,)) >= 0.0, "int32"),
        ("f32[]",),
        grad=False,
    )
    # control flow
    yield Row("map", lambda x: lax.map(lambda v: lax.sin(v) * v, x), ("f32[4]",))
    yield Row("map_batches", lambda x: lax.map(lambda v: lax.cos(v) * v[0], x, batch_size=2), ("f32[5,2]",))
    for reverse in (False, True):
        yield Row(
            f"associative_scan{reverse}",
            lambda x, reverse=reverse: lax.associative_scan(lambda a, b: a * 0.5 + b, x, reverse=reverse, axis=1),
            ("f32[2,5]",),
        )
    # over a named axis
    for name in ("psum", "pmean", "pmax", "pmin"):
        yield Row(name, _over(lambda v, f=getattr(lax, name): v * f(v, "i")), ("f32[4,3]",), rtol=5e-5)
    yield Row("all_gather", _over(lambda v: lax.all_gather(v, "i") * v), ("f32[3,2]",))
    yield Row("all_gather_tiled", _over(lambda v: lax.all_gather(v, "i", axis=0, tiled=True)), ("f32[3,2]",))
    yield Row("ppermute", _over(lambda v: lax.ppermute(v, "i", [(0, 1), (1, 2)])), ("f32[3,2]",))
    yield Row("pshuffle", _over(lambda v: lax.pshuffle(v, "i", [2, 0, 1])), ("f32[3,2]",))
    yield Row("all_to_all", _over(lambda v: lax.all_to_all(v, "i", 0, 0)), ("f32[3,3,2]",))
    yield Row("pswapaxes", _over(lambda v: lax.pswapaxes(v, "i", 1)), ("f32[3,2,3]",))
    yield Row("psum_scatter", _over(lambda v: lax.psum_scatter(v, "i")), ("f32[3,3]",), rtol=5e-5)
    yield Row(
        "axis_index",
        _over(lambda v: v * lax.convert_element_type(lax.axis_index("i") + lax.axis_size("i"), "float32")),
        ("f32[3,2]",),
    )
