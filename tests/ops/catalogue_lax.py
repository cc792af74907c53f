"""Rows of the catalogue for the functions of lax that other families do not hold: accuracies, total orders, pieces,
products with groups, …
"""

from weft.base import dtypes
from weft import lax
from weft.base.host import from_flat


def _const(values, dtype="int32"):
    return from_flat(values, (len(values),), dtypes.dtype(dtype))


def rows(Row):
    yield Row("accuracy_mode", lambda x: lax.sin(x, accuracy=lax.AccuracyMode.HIGHEST), ("f32[3]",), rtol=5e-5)
    yield Row(
        "accuracy_tolerance",
        lambda x: lax.exp2(x, accuracy=lax.Tolerance(ulps=4)) + lax.tanh(x, accuracy=lax.Tolerance(rtol=1e-5)),
        ("f32[2,3]",),
        rtol=5e-5,
    )
    for name in ("eq_to", "lt_to", "le_to"):
        yield Row(
            name,
            lambda x, y, p=getattr(lax, name + "_p"): p.bind(x / 0.0 * lax.sign(y), y),
            ("f32[6]", "f32[6]"),
            grad=False,
        )
        yield Row(name, getattr(lax, name + "_p").bind, ("i32[4]:0..3", "i32[4]:0..3"), grad=False)
    for kind, top in (("i32", 10**9), ("u32", 4 * 10**9), ("u8", 255), ("i8", 127)):
        yield Row(
            "mulhi",
            lambda x, y: lax.mulhi(x, y),
            (f"{kind}[2,3]:{0 if kind[0] == 'u' else -top}..{top}",) * 2,
            grad=False,
        )
    yield Row("mul_wide", lambda x, y: lax.mul(x, y, out_dtype="int32"), ("i8[5]:-99..99", "i8[5]:-99..99"), grad=False)
    yield Row("nextafter", lambda x, y: lax.nextafter(x1=x, x2=y), ("f32[4]", "f32[]"), grad=False)
    # pieces
    yield Row("split", lambda x: lax.split(x, (1, 0, 3), 1)[2], ("f32[2,4]",))
    yield Row("unstack", lambda x: lax.unstack(x, -1)[1], ("f32[2,3,4]",))
    yield Row("stack", lambda x, y: lax.stack([x, y, x], 1), ("f32[2,3]", "f32[2,3]"))
    yield Row("tile", lambda x: lax.tile(x, (2, 1, 3)), ("f32[2,3,2]",))
    yield Row("broadcast_like", lambda x, y: lax.broadcast_like(x, y) * y, ("f32[3]", "f32[2,3]"))
    yield Row("broadcast_to_rank", lambda x: lax.broadcast_to_rank(x, 3), ("f32[3]",))
    yield Row("shape_as_value", lambda x: lax.shape_as_value(x.shape) + 0, ("f32[2,3]",), grad=False)
    yield Row("empty", lambda x: lax.empty((2,), "int32") * 0, ("f32[]",), grad=False)
    # identities
    yield Row(
        "optimization_barrier", lambda x, y: lax.optimization_barrier((x * y, lax.sin(x)))[0], ("f32[3]", "f32[3]")
    )
    yield Row("stage", lambda x: lax.stage(x) * lax.stage(2.0), ("f32[3]",))
    yield Row("platform_dependent", lambda x: lax.platform_dependent(x, tpu=lax.cos, default=lax.sin), ("f32[3]",))
    # selection
    for name in ("approx_max_k", "approx_min_k"):
        for part in (0, 1):
            yield Row(
                f"{name}{part}", lambda x, f=getattr(lax, name), part=part: f(x, 2)[part], ("f32[3,5]",), grad=part == 0
            )
        yield Row(
            f"{name}_first",
            lambda x, f=getattr(lax, name): f(x, 2, reduction_dimension=0, aggregate_to_topk=False)[0],
            ("f32[4,3]",),
        )
    yield Row("top_k_axis", lambda x: lax.top_k(x, 2, axis=0)[0], ("f32[4,3]",))
    yield Row("sort_two_keys", lambda k, x: lax.sort((k, x, -x), 0, num_keys=2)[2], ("i32[7]:0..2", "f32[7]"))
    yield Row("sort_many", lambda k, x: lax.sort([k, x], dimension=1, num_keys=1)[1], ("u8[2,6]:0..2", "f32[2,6]"))
    yield Row(
        "index_take", lambda x: lax.index_take(x, (_const([3, -1, 0]), _const([1, 5, 2])), (0, 2)), ("f32[4,2,3]",)
    )
    # gather and scatter with batching dimensions, in every mode
    for mode in ("clip", "fill", "promise_in_bounds"):
        within = "0..3" if mode == "promise_in_bounds" else "-2..6"
        gathers = lax.GatherDimensionNumbers((), (1,), (1,), (0,), (0,))
        scatters = lax.ScatterDimensionNumbers((), (1,), (1,), (0,), (0,))
        index = f"i32[2,3,1]:{within}"
        yield Row(
            f"gather_batched_{mode}",
            lambda x, i, mode=mode, n=gathers: lax.gather(x, i, n, (1, 1), mode=mode, fill_value=7),
            ("f32[2,4]", index),
        )
        yield Row(
            f"scatter_add_batched_{mode}",
            lambda x, u, i, mode=mode, n=scatters: lax.scatter_add(x, i, u, n, mode=mode),
            ("f32[2,4]", "f32[2,3]", index),
        )
        yield Row(
            f"scatter_sub_{mode}",
            lambda x, u, i, mode=mode, n=scatters: lax.scatter_sub(x, i, u, n, mode=mode),
            ("f32[2,4]", "f32[2,3]", index),
        )
    yield Row(
        "dynamic_slice_static",
        lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 2), allow_negative_indices=(False, True)),
        ("f32[4,3]", "i32[]:0..4"),
    )
    yield Row(
        "dynamic_update_static",
        lambda x, u, i: lax.dynamic_update_slice_in_dim(x, u, i, 0, allow_negative_indices=False),
        ("f32[4,3]", "f32[2,3]", "i32[]:0..4"),
    )
    # reductions with any function
    for axes in ((0,), (1, 2)):
        yield Row(
            f"reduce{axes}",
            lambda x, i, axes=axes: lax.reduce(x, i, lambda a, b: a * b + a + b, axes),
            ("f32[2,3,5]:-0.5..0.5", "f32[]:0.1..0.2"),
            rtol=2e-4,
        )
    yield Row(
        "reduce_two",
        lambda x, k: lax.reduce((x, k), (_scalar(-9.0), _scalar(0, "int32")), _larger, (1,))[0],
        ("f32[3,4]", "i32[3,4]"),
    )
    yield Row(
        "reduce_two_index",
        lambda x, k: lax.reduce((x, k), (_scalar(-9.0), _scalar(0, "int32")), _larger, (1,))[1],
        ("f32[3,4]", "i32[3,4]"),
        grad=False,
    )
    # products
    for name, lhs, rhs, sizes, numbers in (
        ("free", "f32[6,3]", "f32[2,3,4]", (2, 3), ((((1,), (1,)), ((), ())), (0,), (0,))),
        ("free_inner", "f32[2,5,3]", "f32[3,2,4]", (2, 3), ((((2,), (0,)), ((), ())), (1,), (1,))),
        ("batched", "f32[2,5,3]", "f32[3,2,3,4]", (0, 4, 1), ((((2,), (2,)), ((0,), (1,))), (1,), (0,))),
        ("contracted", "f32[2,6]", "f32[6,3]", (1, 4), ((((1,), (0,)), ((), ())), (1,), ())),
        ("batch", "f32[4,2,3]", "f32[4,3,2]", (1, 2), ((((2,), (1,)), ((0,), (0,))), (0,), ())),
    ):
        numbers = lax.RaggedDotDimensionNumbers(*numbers)
        yield Row(
            f"ragged_dot_{name}",
            lambda x, y, sizes=sizes, numbers=numbers: lax.ragged_dot_general(x, y, _const(sizes), numbers),
            (lhs, rhs),
            rtol=1e-4,
        )
    yield Row(
        "ragged_dot", lambda x, y, g: lax.ragged_dot(x, y, g), ("f32[7,3]", "f32[3,3,2]", "i32[3]:0..3"), rtol=1e-4
    )
    yield Row(
        "scaled_dot",
        lambda x, y, s: lax.scaled_dot(x, y, lhs_scale=s, preferred_element_type="float32"),
        ("f32[2,6]", "f32[6,3]", "f32[2,3]"),
        rtol=1e-4,
    )
    for precision in ("DEFAULT", "F32_F32_F32", "highest", ("high", "default")):
        yield Row(
            f"dot_{precision}",
            lambda x, y, precision=precision: lax.dot(x, y, precision=precision),
            ("f32[2,3]", "f32[3,4]"),
            rtol=1e-4,
        )
    yield Row(
        "dot_bf16_to_f32",
        lambda x, y: lax.dot(x, y, preferred_element_type="float32"),
        ("bf16[2,3]", "bf16[3,4]"),
        grad=False,
        rtol=1e-4,
    )
    yield Row(
        "dot_i8_to_i32", lambda x, y: lax.dot(x, y, preferred_element_type="int32"), ("i8[2,3]", "i8[3,4]"), grad=False
    )
    yield Row("dot_bool", lambda x, y: lax.dot(x, y), ("bool[2,3]", "bool[3,4]"), grad=False)
    yield Row("conv_bool", lambda x, y: lax.conv(x, y, (1,), "SAME"), ("bool[1,2,5]", "bool[3,2,2]"), grad=False)
    # the narrowest dtypes, on XLA and the reference (test_lax_against_jax.py has every function for each of them)
    for kind in ("i4", "u4", "f4", "f8e4fn", "f8e5nz"):
        integer, bounds = kind[0] in "iu", ":0..1" if kind[0] in "iu" else ":0.5..2"
        for name in ("add", "mul", "max", "lt"):
            yield Row(name, getattr(lax, name), (f"{kind}[2,3]{bounds}", f"{kind}[2,3]{bounds}"), grad=False, rtol=0.3)
        for name in ("neg", "square", *(() if integer else ("exp",))):
            yield Row(name, getattr(lax, name), (f"{kind}[2,3]{bounds}",), grad=False, rtol=0.3)
        for name in ("reduce_max", "reduce_sum"):
            yield Row(name, lambda x, f=getattr(lax, name): f(x, (1,)), (f"{kind}[2,3]{bounds}",), grad=False, rtol=0.3)
        yield Row(
            "convert_float32", lambda x: lax.convert_element_type(x, "float32"), (f"{kind}[4]{bounds}",), grad=False
        )
    for new in (
        "int4",
        "uint4",
        "int2",
        "uint2",
        "float4_e2m1fn",
        "float8_e3m4",
        "float8_e4m3",
        "float8_e4m3fn",
        "float8_e4m3b11fnuz",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
    ):
        for old in ("i32[6]:-9..9",) if "int" in new else ("i32[6]:-9..9", "f32[6]"):
            yield Row(
                f"narrow_{new}",
                lambda x, new=new: lax.convert_element_type(lax.convert_element_type(x, new), "float32"),
                (old,),
                grad=False,
            )
    # random bits: a key makes the same ones everywhere
    for algorithm in lax.RandomAlgorithm:
        for dtype, shape in (("uint8", (5,)), ("uint16", (3, 3)), ("uint32", (2, 5)), ("uint32", ()), ("uint32", (0,))):
            for part in (0, 1):
                yield Row(
                    f"rng_{algorithm.name}_{dtype}{shape}{part}",
                    lambda x, a=algorithm, d=dtype, s=shape, part=part: (
                        lax.rng_bit_generator(_const([1, 2, 2**32 - 1, 2**32 - 1], "uint32"), s, d, a)[part]
                        + lax.convert_element_type(x, (d if part else "uint32"))
                    ),
                    ("u8[]",),
                    grad=False,
                )


def _scalar(value, dtype="float32"):
    return from_flat([value], (), dtypes.dtype(dtype))


def _larger(a, b):
    wins = lax.gt(a[0], b[0])
    return lax.select(wins, a[0], b[0]), lax.select(wins, a[1], b[1])
