"""What mutated programs have found (`mutants.py`), each as the smallest case that shows it."""

import hashlib
import io
import json
import os
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from hosts import host_here
from platforms import on, under_test
from raw import Raw
from test_hostile import F32, I32, LINE, careless, one_equation

import weft
import weft.numpy as jnp
from weft.base import dtypes, host
from weft import export, lax
from weft.base.avals import shaped, token
from weft.serialization import programs as s
from weft.serialization.binary import DeserializationError
from weft.core.interpret import interpret
from weft.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, eval_jaxpr
from weft.core.primitive import registry
from weft.errors import BackendError
from weft.runtime.device import backend_of
from weft.runtime.dispatch import run_jaxpr
from weft.numpy import files
from weft_native.host.values import host_array, host_bytes
from weft_remote import protocol as p

BF16, BOOL = shaped((), "bfloat16"), shaped((), "bool")


def vector(dtype: str, *shape: int):
    return shaped(shape or (3,), dtype)


DOT = dict(dimension_numbers=(((0,), (0,)), ((), ())), precision=None, preferred_element_type=None, out_sharding=None)
SOLVE = dict(left_side=True, lower=True, transpose_a=False, conjugate_a=True, unit_diagonal=False)
GATHER = dict(
    dimension_numbers=lax.GatherDimensionNumbers((), (0,), (0,)),
    slice_sizes=(1,),
    indices_are_sorted=False,
    unique_indices=False,
    mode=lax.GatherScatterMode.FILL_OR_DROP,
)
SCATTER = dict(
    dimension_numbers=lax.ScatterDimensionNumbers((), (0,), (0,)),
    indices_are_sorted=False,
    unique_indices=False,
    mode=lax.GatherScatterMode.FILL_OR_DROP,
    update_jaxpr=None,
    update_consts=(),
)
SQUARE = vector("float32", 2, 2)


@pytest.mark.parametrize(
    "ins,outs,primitive,params,message",
    [
        ([F32], [F32], "add", {}, "add takes 2 operands, got 1"),
        ([F32, F32], [F32], "transpose", dict(permutation=()), "has 2 operands; its primitive takes 1"),
        ([], [F32], "neg", {}, "neg takes 1 operand, got 0"),
        ([vector("uint32")] * 3, [vector("uint32")] * 2, "threefry2x32", {}, "has 3 operands; its primitive takes 4"),
        ([token], [F32], "neg", {}, "neg takes arrays, and one of its operands is an order token"),
        ([token], [token], "reshape", dict(new_sizes=(), dimensions=None, sharding=None), "reshape takes arrays"),
        ([vector("float32")], [F32], "reduce_sum", dict(axes=(0,)), "reduce_sum has no parameter out_sharding"),
        (
            [vector("float32")],
            [F32],
            "reduce_prod",
            dict(axes=(0,), out_sharding=None),
            "reduce_prod has no parameter 'out_sharding'",
        ),
        (
            [vector("float32")],
            [F32],
            "squeeze",
            dict(dimensions=(1,)),
            r"squeeze: dimensions \(1,\) must be different axes",
        ),
        (
            [vector("float32")],
            [BOOL],
            "argmax",
            dict(axes=(0,), index_dtype=np.dtype("bool")),
            "index_dtype must be an integer dtype, got bool",
        ),
        ([SQUARE], [F32], "argmax", dict(axes=(0, 1), index_dtype=np.dtype("int32")), "argmax goes along one axis"),
        (
            [BF16, BF16],
            [shaped((), "complex64")],
            "complex",
            {},
            "complex does not accept dtype bfloat16: it takes float32, float64",
        ),
        (
            [shaped((), "complex64")],
            [shaped((2,), "float32")],
            "bitcast_convert_type",
            dict(new_dtype=np.dtype("float32")),
            "does not convert between complex64 and float32",
        ),
        ([SQUARE, SQUARE], [SQUARE], "triangular_solve", SOLVE, "conjugate_a goes with transpose_a"),
        (
            [SQUARE],
            [SQUARE, SQUARE],
            "schur",
            dict(compute_schur_vectors=True, sort_eig_vals=True, select_callable=None),
            "sort_eig_vals.*False",
        ),
        (
            [vector("int32")] * 2,
            [shaped((), "int8")],
            "dot_general",
            {**DOT, "preferred_element_type": np.dtype("int8")},
            "must not be narrower",
        ),
        (
            [BF16],
            [shaped((), "complex64")],
            "conj",
            dict(input_dtype=np.dtype(ml_dtypes.bfloat16)),
            "conj does not accept dtype bfloat16",
        ),
        ([I32], [I32], "integer_pow", dict(y=-1), "integer_pow of integers can't be negative, got y=-1"),
        (
            [F32],
            [F32],
            "round",
            dict(rounding_method=5),
            r"round rounds halves away from zero \(0\) or to even \(1\), got 5",
        ),
        (
            [F32],
            [F32],
            "reduce_precision",
            dict(exponent_bits=0, mantissa_bits=3),
            "exponent_bits must be positive and mantissa_bits not negative, got 0 and 3",
        ),
        ([], [], "sort", dict(dimension=0, is_stable=True, num_keys=1), "sort takes at least one operand"),
        (
            [vector("float32", 2), vector("float32", 1)],
            [vector("float32", 2)],
            "add_any",
            {},
            r"the operands must have one type, got f32\[2\] and f32\[1\]",
        ),
        (
            [vector("complex64")] * 2,
            [shaped((), "complex64")],
            "dot_general",
            {**DOT, "precision": lax.DotAlgorithmPreset.F32_F32_F32},
            "F32_F32_F32 is for real numbers",
        ),
        (
            [SQUARE, vector("int32", 2, 1)],
            [vector("float32", 2)],
            "gather",
            {
                **GATHER,
                "dimension_numbers": lax.GatherDimensionNumbers((), (0,), (1,), (1,), (0,)),
                "slice_sizes": (1, 1),
                "fill_value": None,
            },
            r"start_index_map \(1,\) and operand_batching_dims \(1,\) must have no axis in common",
        ),
        (
            [vector("uint8"), vector("int32", 2, 1)],
            [vector("uint8", 2)],
            "gather",
            {**GATHER, "fill_value": -1},
            "the fill_value -1 is not a value of dtype uint8",
        ),
        (
            [vector("float32", 4), vector("int32", 2, 1)],
            [vector("float32", 2)],
            "gather",
            {**GATHER, "slice_sizes": (0,), "fill_value": None},
            r"slice_sizes \(0,\) must be 1, or 0 of an empty axis, along collapsed_slice_dims \(0,\)",
        ),
        (
            [vector("float32", 3, 2), vector("int32", 1), vector("float32", 4)],
            [vector("float32", 3, 2)],
            "scatter-add",
            {**SCATTER, "dimension_numbers": lax.ScatterDimensionNumbers((0,), (0,), (0,))},
            r"updates of shape \(4,\).*must not exceed the operand's shape \(3, 2\)",
        ),
        *[
            (
                [vector("bool"), vector("int32", 1, 1), vector("bool", 1)],
                [vector("bool")],
                name,
                SCATTER,
                f"{name} does not accept dtype bool: it takes int, uint, float, complex",
            )
            for name in ("scatter-add", "scatter-sub", "scatter-mul")
        ],
        ([], [I32], "platform_index", dict(platforms=()), "platform_index takes at least one platform"),
    ],
)
def test_refused(ins, outs, primitive, params, message):
    """By the primitive's own rule, in its words; and the error names the client's line and none of the host's."""
    with pytest.raises(DeserializationError, match=rf"client.py:7.*{message}") as e:
        s.deserialize(one_equation(primitive, ins, outs, **params))
    assert "\n" not in str(e.value) and __file__ not in str(e.value)


@pytest.mark.parametrize(
    "value,aval,message",
    [
        (1e300j, shaped((), "complex64"), "is no complex64; the nearest is infj"),
        (3.3, BF16, "3.3 is no bfloat16; the nearest is 3.296875"),
        (0.0, shaped((), "float8_e8m0fnu"), "0.0 is no float8_e8m0fnu"),
        (1e300, F32, "is no float32; the nearest is inf"),
    ],
)
def test_literals_are_values_of_their_types(value, aval, message):
    with pytest.raises(DeserializationError, match=message):
        s.deserialize(careless(Jaxpr([], [], [Literal(value, aval)], [])))


def test_precisions_beyond_any_format():
    x = np.array([1.7, -3e38, 1e-40], np.float32)
    keep = lambda v: lax.reduce_precision(v, 1 << 30, 1 << 30)
    np.testing.assert_array_equal(interpret(weft.make_jaxpr(keep)(x).jaxpr, [x])[0], x)


def test_weak_literals_keep_their_dtype():
    """A weakly typed bfloat16 is no Python number."""
    x = Var(shaped((3,), "bfloat16"))
    out = Var(shaped((3,), "bfloat16"))
    jaxpr = Jaxpr(
        [],
        [x],
        [out, literal := Literal(0.5, shaped((), "bfloat16", True))],
        [JaxprEqn([x, literal], [out], registry["mul"], {}, frozenset(), LINE)],
    )
    got = interpret(jaxpr, [np.ones(3, ml_dtypes.bfloat16)])
    assert [g.dtype.name for g in got] == ["bfloat16", "bfloat16"] and float(got[0][0]) == 0.5 == float(got[1])


def test_the_interpreter_keeps_64_bits_of_a_program_that_has_them():
    """Also where 64-bit types are off: a program may have been given such arrays. So must what its primitives are
    made of.
    """
    with weft.enable_x64(True):
        jaxpr = weft.make_jaxpr(lambda x: (lax.cummax(x, 0), lax.cumlogsumexp(x.astype("float64"), 0)))(
            np.arange(3)
        ).jaxpr
    got = interpret(jaxpr, [np.array([1 << 40, 0, 1 << 41])])
    assert got[0].dtype == np.int64 and got[0].tolist() == [1 << 40, 1 << 40, 1 << 41] and got[1].dtype == np.float64


@pytest.mark.parametrize("platform", under_test("cpu", "reference", "wasm", "remote"))
@pytest.mark.parametrize("dt", ["int64", "uint64"])
def test_what_is_made_of_simpler_operations_keeps_64_bits(platform, dt):
    """Where 64-bit types are off, and a program has them all the same."""
    sizes, lhs, rhs = np.array([1, 2], dt), np.arange(6, dtype=np.float32).reshape(3, 2), np.ones((2, 2, 2), np.float32)
    with weft.enable_x64(True):
        closed = weft.make_jaxpr(lax.ragged_dot)(lhs, rhs, sizes)
    with on(platform) as device:
        put = [backend_of(device).put(a, v.aval, device, True) for a, v in zip((lhs, rhs, sizes), closed.jaxpr.invars)]
        got = run_jaxpr(closed, put, "f", device=device)
    np.testing.assert_array_equal(np.asarray(got[0]), (lhs @ rhs[0]))


def test_tokens_are_interpreted():
    t, x, out = Var(token), Var(F32), Var(F32)
    made = Var(token)
    eqns = [
        JaxprEqn([], [t], registry["create_token"], {}),
        JaxprEqn([t], [made], registry["after_all"], {}),
        JaxprEqn([x], [out], registry["neg"], {}),
    ]
    assert interpret(Jaxpr([], [x], [out], eqns), [np.float32(2)])[0] == -2


@pytest.mark.parametrize(
    "x,y,preferred,want",
    [
        ("float16", "bfloat16", None, "bfloat16"),
        ("int8", "uint8", None, "int8"),
        ("uint32", "int32", None, "int32"),
        ("float8_e4m3fn", "float8_e5m2", None, "float8_e5m2"),
        ("float8_e4m3fn", "float32", None, "float32"),
        ("bfloat16", "bfloat16", "int32", "int32"),
        ("float32", "float32", "bool", "bool"),
        ("int4", "int8", "int32", "int32"),
        ("complex64", "complex64", "float32", "float32"),
        ("int2", "float32", None, "float32"),
        ("float32", "float32", "uint2", "uint2"),
        ("int2", "int8", None, "int8"),
    ],
)
def test_products_of_two_types(x, y, preferred, want):
    """The wider type wins, as jax has it; the interpreter rounds what XLA rounds, at the end."""
    a, b = (
        jnp.asarray(
            np.array([[0.5, -0.5], [1.0, 1.0]])
            if "float" in n or "complex" in n
            else np.array([[1, -1 if n[0] == "i" else 0], [0, 1]])
        ).astype(n)
        for n in (x, y)
    )
    product = lambda a, b: lax.dot(a, b, preferred_element_type=preferred)
    got = weft.jit(product)(a, b)
    wanted = interpret(weft.make_jaxpr(product)(a, b).jaxpr, [np.asarray(a), np.asarray(b)])[0]
    assert got.dtype.name == want == wanted.dtype.name
    np.testing.assert_array_equal(np.asarray(got).astype(complex), wanted.astype(complex))


@pytest.mark.parametrize("sizes,dtype", [([-5, 5], "int32"), ([2, -1], "int8"), ([9, 9], "int64"), ([3, 2], "uint2")])
def test_groups_of_sizes_that_no_matrix_has(sizes, dtype):
    x, y, sizes = (
        np.arange(8, dtype=np.float32).reshape(4, 2),
        np.ones((2, 2, 3), np.float32),
        np.array(sizes).astype(dtypes.dtype(dtype)),
    )
    want = interpret(weft.make_jaxpr(lax.ragged_dot)(x, y, sizes).jaxpr, [x, y, sizes])[0]
    np.testing.assert_array_equal(weft.jit(lax.ragged_dot)(x, y, sizes), want)


def test_indices_of_two_bits():
    x, at = np.arange(4, dtype=np.float32), np.array([[1], [-1], [0]]).astype(ml_dtypes.int2)
    numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    read = lambda x, i: lax.gather(x, i, numbers, (1,), mode="clip")
    np.testing.assert_array_equal(weft.jit(read)(x, at), [1, 0, 0])
    wrote = weft.jit(
        lambda x, i: lax.scatter_add(x, i, jnp.ones(3), lax.ScatterDimensionNumbers((), (0,), (0,)), mode="drop")
    )(x, at)
    np.testing.assert_array_equal(wrote, [1, 2, 2, 3])
    np.testing.assert_array_equal(weft.jit(lambda x, i: lax.dynamic_slice(x, (i,), (2,)))(x, at[0, 0]), [1, 2])


def test_reductions_of_two_bits_beside_others():
    def first_of_largest(x, i):
        return lax.reduce(
            (x, i),
            (np.array(-2).astype(ml_dtypes.int2), np.int32(0)),
            lambda p, q: tuple(lax.select(p[0] >= q[0], a, b) for a, b in zip(p, q)),
            (0,),
        )

    value, index = weft.jit(first_of_largest)(np.array([-1, 1, 0]).astype(ml_dtypes.int2), np.arange(3, dtype=np.int32))
    assert int(value) == 1 and int(index) == 1


@pytest.mark.parametrize(
    "x,dtype",
    [
        (np.array([1.5, -2.0], np.float32), "int4"),
        (np.array([[1, -2], [7, 0]]).astype(ml_dtypes.int4), "int8"),
        (np.array([3, -128], np.int8), "uint2"),
        (np.array([1.5, -6.0], np.float32), "float4_e2m1fn"),
    ],
)
def test_bits_of_less_than_a_byte(x, dtype):
    cast = lambda v: lax.bitcast_convert_type(v, dtype)
    want = interpret(weft.make_jaxpr(cast)(x).jaxpr, [x])[0]
    got = np.asarray(weft.jit(cast)(x))
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_array_equal(got.astype(np.float32), want.astype(np.float32))


def test_conversions_between_small_floats():
    convert = lambda v: v.astype("float8_e8m0fnu")
    x = np.array([1, 4, 0.25]).astype(ml_dtypes.float8_e4m3fn)
    want = interpret(weft.make_jaxpr(convert)(jnp.asarray(x)).jaxpr, [x])[0]
    assert (
        want.astype(float).tolist()
        == [1, 4, 0.25]
        == np.asarray(weft.jit(convert)(jnp.asarray(x))).astype(float).tolist()
    )


@pytest.mark.parametrize("pivots", [[5, 1, 0], [-6, 2, 2], [1, 2, 9]])
def test_pivots_that_name_nothing(pivots):
    pivots = np.array(pivots, np.int32)
    permute = lambda p: lax.linalg.lu_pivots_to_permutation(p, 5)
    np.testing.assert_array_equal(
        weft.jit(permute)(pivots), interpret(weft.make_jaxpr(permute)(pivots).jaxpr, [pivots])[0]
    )


@pytest.mark.parametrize("dtype", ["int2", "uint4", "int4"])
def test_high_halves_of_products_of_few_bits(dtype):
    info = ml_dtypes.iinfo(dtype)
    x, y = (v.ravel() for v in np.meshgrid(*[np.arange(info.min, info.max + 1)] * 2))
    got = weft.jit(lax.mulhi)(x.astype(dtypes.dtype(dtype)), y.astype(dtypes.dtype(dtype)))
    np.testing.assert_array_equal(np.asarray(got).astype(int), x * y >> info.bits)


@pytest.mark.parametrize("f", [lax.erfc, lax.bessel_i1e, lax.exp2, lax.asin])
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float4_e2m1fn"])
def test_functions_of_small_floats(f, dtype):
    x = np.array([0.5, 1, 0, -1]).astype(getattr(ml_dtypes, dtype))
    np.testing.assert_array_equal(
        np.asarray(weft.jit(f)(x)).astype(float), np.asarray(f(x.astype(np.float32))).astype(x.dtype).astype(float)
    )


def test_convolutions_with_a_kernel_of_no_elements():
    got = weft.jit(lambda x, k: lax.conv_general_dilated(x, k, (1,), [(2, 1)]))(
        np.ones((1, 2, 3), np.float32), np.ones((4, 2, 0), np.float32)
    )
    np.testing.assert_array_equal(got, np.zeros((1, 4, 7)))


def test_a_tolerance_has_no_sign():
    assert float(weft.jit(lambda x: lax.exp(x, accuracy=lax.Tolerance(-0.0, 0.0, 4)))(0.0)) == 1.0


@pytest.mark.parametrize("dtype", ["int2", "uint2", "int4", "uint4", "float4_e2m1fn"])
def test_sorts_of_few_bits(dtype):
    x = np.arange(16)[::-1].astype(dtypes.dtype(dtype)).reshape(2, 8)
    for dimension in (0, 1):
        got, places = weft.jit(lambda v: lax.sort((v, lax.broadcasted_iota("int32", v.shape, 1)), dimension=dimension))(
            x
        )
        np.testing.assert_array_equal(np.asarray(got).astype(float), np.sort(x.astype(float), dimension))
        assert got.dtype == x.dtype and sorted(np.asarray(places).ravel()) == sorted([*range(8)] * 2)
    values, places = weft.jit(lambda v: lax.top_k(v, 3))(x)
    np.testing.assert_array_equal(np.asarray(values).astype(float), -np.sort(-x.astype(float), 1)[:, :3])
    np.testing.assert_array_equal(np.take_along_axis(x, np.asarray(places), 1), values)


@pytest.mark.parametrize("platform", under_test())
def test_reductions_over_no_axes(platform):
    """Nothing is combined, with the initial value neither."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    with on(platform):
        for f in (lax.max, lambda a, b: a * b + a):
            np.testing.assert_array_equal(weft.jit(lambda x, f=f: lax.reduce(x, 2.0, f, ()))(x), x)
        both = weft.jit(lambda x: lax.reduce((x, x + 1), (2.0, 3.0), lambda a, b: (a[0] * b[0], a[1] + b[1]), ()))(x)
        np.testing.assert_array_equal(both, [x, x + 1])


@pytest.mark.parametrize("platform", under_test())
def test_complex_numbers_become_the_nearest_integers(platform):
    z = np.array([-0.6 - 0.7j, 1.2, -1.4, 300, -300, 5e9, -5e9, np.nan, np.inf]).astype(np.complex64)
    with on(platform):
        for dtype, want in (
            ("uint8", [0, 1, 0, 255, 0, 255, 0, 0, 255]),
            ("int8", [0, 1, -1, 127, -128, 127, -128, 0, 127]),
            ("uint2", [0, 1, 0, 3, 0, 3, 0, 0, 3]),
        ):
            np.testing.assert_array_equal(
                np.asarray(weft.jit(lambda z, dtype=dtype: lax.convert_element_type(z, dtype))(z)).astype(int), want
            )


@pytest.mark.parametrize("platform", under_test("cpu", "reference", "remote"))
def test_products_of_floats_of_few_bits_with_wider_ones(platform):
    x, few = (
        np.arange(6, dtype=np.float32).reshape(2, 3) / 7,
        np.array([[1, -2], [0.5, 3], [6, 0]]).astype(ml_dtypes.float4_e2m1fn),
    )
    with on(platform):
        np.testing.assert_allclose(weft.jit(lambda x, y: lax.dot(x, y))(x, few), x @ few.astype(np.float32), rtol=1e-6)
        np.testing.assert_allclose(weft.jit(lambda x, y: lax.dot(y, x))(x, few), few.astype(np.float32) @ x, rtol=1e-6)


def test_starts_of_several_dtypes():
    x = Var(vector("float32", 5, 4))
    i, out = Var(I32), Var(vector("float32", 2, 3))
    few = Literal(7, shaped((), "int4"))
    jaxpr = Jaxpr(
        [],
        [x, i],
        [out],
        [JaxprEqn([x, i, few], [out], registry["dynamic_slice"], {"slice_sizes": (2, 3)}, frozenset(), LINE)],
    )
    a = np.arange(20, dtype=np.float32).reshape(5, 4)
    program = weft.jit(lambda x, i: eval_jaxpr(jaxpr, [], x, i)[0])
    for start in (1, 9, -3):
        at = min(max(start, 0), 3)
        np.testing.assert_array_equal(program(a, np.int32(start)), a[at : at + 2, 1:4])


def test_random_bits_of_no_shape():
    draw = lambda k: lax.rng_bit_generator(k, (0, 0))
    key = np.arange(4, dtype=np.uint32)
    assert (
        [v.shape for v in interpret(weft.make_jaxpr(draw)(key).jaxpr, [key])]
        == [(4,), (0, 0)]
        == [v.shape for v in weft.jit(draw)(key)]
    )


def test_eigenvalues_of_nothing():
    w, v = lax.linalg.eigh(np.zeros((2, 0, 0), np.float32))[::-1]
    assert (
        interpret(
            weft.make_jaxpr(lambda x: lax.linalg.eigh(x))(np.zeros((2, 0, 0), np.float32)).jaxpr,
            [np.zeros((2, 0, 0), np.float32)],
        )[1].shape
        == w.shape
        == (2, 0)
    )


def test_a_host_chooses_for_its_own_platform():
    """A program that asks where it runs is asked there."""
    x, out, index = Var(F32), Var(F32), Var(I32)
    branches = []
    for name in ("neg", "exp"):
        v, o = Var(F32), Var(F32)
        branches.append(
            ClosedJaxpr(
                Jaxpr(
                    [],
                    [v],
                    [o],
                    [
                        JaxprEqn(
                            [v], [o], registry[name], {} if name == "neg" else {"accuracy": None}, frozenset(), LINE
                        )
                    ],
                ),
                [],
            )
        )
    jaxpr = Jaxpr(
        [],
        [x],
        [out],
        [
            JaxprEqn([], [index], registry["platform_index"], {"platforms": (("tpu",), ("cpu",))}, frozenset(), LINE),
            JaxprEqn([index, x], [out], registry["cond"], {"branches": tuple(branches)}, frozenset(), LINE),
        ],
    )
    data = s.serialize(jaxpr)
    digest = hashlib.sha256(data).digest()
    with host_here("cpu") as host, Raw(host.url) as raw:
        raw.send(p.Put, 1, F32, 0, np.float32(0).tobytes())
        raw.send(p.Program, digest, len(data), data)
        raw.send(p.Compile, 2, digest, 0, "f", (False,))
        raw.send(p.Execute, 2, (1,), (3,))
        raw.send(p.Fetch, 3)
        answer = raw.receive()
        while not isinstance(answer, (p.Data, p.Error, p.End)):
            answer = raw.receive()
    assert np.frombuffer(answer.data, np.float32).tolist() == [1.0]


@pytest.mark.parametrize(
    "dtype,good,bad",
    [
        ("bool", b"\1\0", b"\2\0"),
        ("int4", b"\x0f\x09", b"\x1f\0"),
        ("uint2", b"\3\0", b"\4\0"),
        ("float4_e2m1fn", b"\x0f\0", b"\x10\0"),
    ],
)
def test_constants_of_files_are_values_of_their_dtypes(dtype, good, bad):
    """A truth value of 2 is neither true nor false to a compiler that was promised a truth value."""
    good, bad = good * 8, bad * 8
    c = host.from_bytes(good, (16,), dtypes.dtype(dtype))
    data = bytes(export.export(weft.jit(lambda: jnp.asarray(c)))().serialize())
    assert data.count(good) == 1 and host.foreign(good, c.dtype) is None and host.foreign(bad, c.dtype) == bad[0]
    body = data[41:].replace(good, bad)
    with pytest.raises(
        DeserializationError,
        match=rf"a constant of dtype {dtype} has an element of the bits {bad[0]:#x} \(at byte \d+\)",
    ):
        export.deserialize(data[:9] + hashlib.sha256(body).digest() + body)


@pytest.mark.parametrize(
    "old,new,message",
    [
        (b"<f4", b">f4", "can't be read without NumPy"),
        (b"<f4", b"<f3", "can't be read without NumPy"),
        (b"(2, 3)", b"(2, 4)", "has 32 bytes, and 24 are there"),
        (b"(2, 3)", b"(-1,6)", "a tuple of sizes"),
        (b"(2, 3)", b"[2, 3]", "a tuple of sizes"),
        (b"False", b"'no' ", "fortran_order must be a bool"),
        (b"'shape'", b"'forms'", "must have"),
        (b"{", b"(", "not a dict of constants"),
        (b"\x01\x00", b"\x09\x00", "its version is 09.00"),
        (b"\x01\x00\x76\x00", b"\x01\x00\xff\xff", "longer than the file"),
        (b"<f4", b"|b1", "an element of dtype bool has the bits"),
    ],
)
def test_files_of_arrays_without_numpy(old, new, message):
    file = io.BytesIO()
    np.save(file, np.arange(6, dtype=np.float32).reshape(2, 3) + 0.1)
    data = file.getvalue()
    assert files._parse(data).shape == (2, 3) and old in data
    with pytest.raises(ValueError, match=message):
        files._parse(data.replace(old, new, 1))


def test_damaged_archives_without_numpy():
    file = io.BytesIO()
    np.savez_compressed(file, a=np.arange(100))
    data = bytearray(file.getvalue())
    data[60:80] = bytes(20)
    with pytest.raises(ValueError, match="'a' of the .npz file can't be read"):
        files._Archive(io.BytesIO(bytes(data)))["a"]
    with pytest.raises(ValueError, match="not a .npz file"):
        files._Archive(io.BytesIO(b"PK" + bytes(30)))


@pytest.mark.parametrize("shape", [(0, 1 << 40, 1 << 40), (1 << 40, 0, 1 << 42), (0, 1 << 31, 1 << 31, 1 << 31)])
def test_arrays_without_elements_have_sizes_that_can_be_counted(shape):
    """XLA ends its process where sizes that are not zero make more than 63 bits count."""
    with pytest.raises(DeserializationError, match="sizes that are not zero make more than 2.63 bytes"):
        s.deserialize(one_equation("neg", [shaped(shape, "float32")], [shaped(shape, "float32")]))
    with pytest.raises(DeserializationError, match=r"an array of type f32\[.* is too large"):
        list(p.decode(p.encode(p.Put(1, 2, shaped(shape, "float32"), 0, b""))))
    with pytest.raises(BackendError, match=r"XLA has no arrays of shape \(.*more than 2.63 bytes"):
        weft.jit(lambda: lax.full(shape, 0.0, "float32").T.reshape(-1))()
    assert s.deserialize(one_equation("neg", [shaped((0, 1 << 40), "float32")] * 1, [shaped((0, 1 << 40), "float32")]))


def test_column_major_files_of_arrays_keep_all_bits():
    """A signalling NaN of a file came back as a quiet one where NumPy did not read it."""
    code = """
import json, sys
from weft.base import host
from weft.numpy.files import _parse
print(json.dumps(host.to_bytes(_parse(sys.stdin.buffer.read())).tolist()))
"""
    values = np.arange(24, dtype=np.uint32).reshape(2, 3, 4) + np.uint32(0x7FA00001)
    for kind in ("<f4", "<u4", "<i2"):
        array = np.asfortranarray(values.astype(kind) if kind == "<i2" else values.view(kind))
        file = io.BytesIO()
        np.save(file, array)
        done = subprocess.run(
            [sys.executable, "-c", code], input=file.getvalue(), env={**os.environ, "WEFT_NUMPY": "0"}, stdout=-1
        )
        assert bytes(json.loads(done.stdout)) == np.ascontiguousarray(array).tobytes(), kind


def test_files_of_arrays_that_are_too_large_without_elements():
    header = b"{'descr': '<f4', 'fortran_order': True, 'shape': (0, 99999999999, 99999999999), }"
    with pytest.raises(ValueError, match="is too large, though it has no elements"):
        files._parse(b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header)


@pytest.mark.parametrize(
    "length,unroll,copies",
    [
        (1 << 40, 1 << 39, 1 << 39),
        (1 << 40, True, 1 << 40),
        (1 << 62, 1 << 62, 1 << 62),
        (10, 3, 4),
        (12, 3, 3),
        (3, 99, 3),
        (5, False, 1),
        (5, 0, 1),
        (0, True, 1),
    ],
)
def test_unrolled_loops_count_as_what_they_become(length, unroll, copies):
    """A few bytes made a host write down a program without end, while all others waited for their turn to compile."""

    def loop(body: Jaxpr) -> Jaxpr:
        c, out = Var(F32), Var(F32)
        params = dict(
            jaxpr=ClosedJaxpr(body, []), length=length, reverse=False, unroll=unroll, num_consts=0, num_carry=1
        )
        return Jaxpr([], [c], [out], [JaxprEqn([c], [out], registry["scan"], params, frozenset(), LINE)])

    c, two = Var(F32), [Var(F32), Var(F32)]
    body = Jaxpr(
        [],
        [c],
        [two[1]],
        [
            JaxprEqn([c], [two[0]], registry["neg"], {}, frozenset(), LINE),
            JaxprEqn([two[0]], [two[1]], registry["neg"], {}, frozenset(), LINE),
        ],
    )
    nothing = Jaxpr([], [c], [c], [])
    for jaxpr, equations in (
        (loop(body), 1 + 2 * copies),
        (loop(loop(body)), 1 + copies * (1 + 2 * copies)),
        (loop(nothing), copies),
    ):
        if equations > 1000:
            with pytest.raises(DeserializationError, match="equations exceeds the limit of 1000"):
                s.deserialize(careless(jaxpr), s.Limits(equations=1000))
        else:
            s.deserialize(careless(jaxpr), s.Limits(equations=equations))


def test_loops_of_more_steps_than_32_bits_count():
    """One of 2^31 steps made none."""
    text = (
        weft.jit(lambda x: lax.scan(lambda c, _: (c * 3 + 1, None), x, None, length=(1 << 31) + 5)[0])
        .lower(np.uint32(0))
        .as_text()
    )
    assert "dense<2147483653> : tensor<i64>" in text and "tensor<i32>" not in text


@pytest.mark.parametrize("platform", under_test())
@pytest.mark.parametrize("select,best", [(lax.max, -np.inf), (lax.min, np.inf)])
@pytest.mark.parametrize(
    "sizes,strides,padding",
    [((2, 2), (1, 1), ((0, 0), (1, 0))), ((3, 2), (2, 1), ((2, 1), (-1, 1))), ((2, 2), (2, 2), ((2, 2), (2, 2)))],
)
def test_the_first_of_equal_elements_has_the_derivative_of_padded_windows(
    platform, select, best, sizes, strides, padding
):
    """XLA goes through windows that it pads in another order, and took a later one."""
    x = np.array([[2, 1, 1, 1], [1, 1, 0, 0], [1, 2, 0, 0], [2, 1, 1, 2]], np.float32)
    pool = lambda v: lax.reduce_window(v, best, select, sizes, strides, padding)
    ct, t = (
        np.arange(1, 1 + pool(x).size, dtype=np.float32).reshape(pool(x).shape),
        np.arange(1, 17, dtype=np.float32).reshape(4, 4),
    )
    programs = (lambda x, ct: weft.vjp(pool, x)[1](ct)[0], ct), (lambda x, t: weft.jvp(pool, (x,), (t,))[1], t)
    with on(platform):
        for program, other in programs:
            np.testing.assert_array_equal(
                weft.jit(program)(x, other), interpret(weft.make_jaxpr(program)(x, other).jaxpr, [x, other])[0]
            )


@pytest.mark.parametrize("dtype", ["int4", "uint4", "int2"])
@pytest.mark.parametrize("wide", ["int32", "int8", "float32"])
def test_products_of_few_bits_with_wide_results(dtype, wide):
    x, y = (np.arange(n).reshape(shape).astype(dtypes.dtype(dtype)) for n, shape in ((12, (2, 2, 3)), (24, (2, 3, 4))))
    got = weft.jit(lambda x, y: lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,))), preferred_element_type=wide))(x, y)
    assert got.dtype.name == wide
    np.testing.assert_array_equal(got, (x.astype(int) @ y.astype(int)).astype(wide))


@pytest.mark.parametrize("dtype", ["int2", "uint2", "int4", "float4_e2m1fn"])
@pytest.mark.parametrize("index", ["int32", "int4"])
def test_places_of_extrema_of_few_bits(dtype, index):
    x = (np.arange(30).reshape(2, 3, 5) * 7 % 4).astype(dtypes.dtype(dtype))
    for axis in range(3):
        for f, want in ((lax.argmin, np.argmin), (lax.argmax, np.argmax)):
            got = np.asarray(weft.jit(lambda v: f(v, axis, index))(x))
            assert got.dtype.name == index
            np.testing.assert_array_equal(got.astype(int), want(x.astype(float), axis))


@pytest.mark.parametrize("platform", under_test())
def test_exponents_that_are_no_numbers_of_the_base(platform):
    x = np.array([1, -2, -1, 0]).astype(ml_dtypes.int4)
    with on(platform):
        assert np.asarray(weft.jit(lambda v: lax.integer_pow(v, 9))(x)).astype(int).tolist() == [1, 0, -1, 0]
        assert np.asarray(weft.jit(lambda v: lax.integer_pow(v, 301))(np.array([3, -1, 2], np.int8))).tolist() == [
            pow(3, 301, 256),
            -1,
            0,
        ]


def test_an_algorithm_keeps_sums_of_integers_in_floats():
    """So a sum that is none of the result's dtype becomes the nearest."""
    x, y = np.array([[1, 1, 1, 1], [-2, 1, 0, 1]]).astype(ml_dtypes.int2), np.ones((4, 2)).astype(ml_dtypes.int2)
    product = lambda x, y: lax.dot(x, y, precision=lax.DotAlgorithmPreset.F32_F32_F32)
    for got in (weft.jit(product)(x, y), interpret(weft.make_jaxpr(product)(x, y).jaxpr, [x, y])[0]):
        assert np.asarray(got).astype(int).tolist() == [[1, 1], [0, 0]]


@pytest.mark.parametrize("name", [n for n in dtypes._TABLE if n == "bool" or dtypes.bits(dtypes.dtype(n)) < 8])
def test_whatever_a_client_s_bytes_are_the_elements_are_of_their_dtype(name):
    kind = dtypes.dtype(name)
    width = 1 if name == "bool" else dtypes.bits(kind)
    read = bytes(host_bytes(host_array(bytearray(range(256)), shaped((256,), kind))))
    assert host.foreign(read, kind) is None and len(set(read)) == 1 << width
    assert host.foreign(bytes([1 << width]), kind) == 1 << width
