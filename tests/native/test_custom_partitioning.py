"""custom_partitioning: what partition is told, what each device computes, and what is refused."""

import numpy as np
import pytest
from platforms import need, on, under_test

need("cpu")

import weft
import weft.numpy as jnp
from weft import lax
from weft.errors import BackendError
from weft.experimental.custom_partitioning import (
    BATCHING,
    ArrayMapping,
    CompoundFactor,
    SdyShardingRule,
    custom_partitioning,
)
from weft.higher_order.sharding_rule import parse_rule, rule_text
from weft.sharding import AxisType, NamedSharding
from weft.sharding import PartitionSpec as P

X = np.arange(64.0, dtype=np.float32).reshape(8, 8)
W = np.arange(32.0, dtype=np.float32).reshape(8, 4)


@pytest.fixture(scope="module")
def mesh():
    return weft.make_mesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2, devices=weft.devices("cpu")[:8])


def made(fun, rule, part=None, **options):
    """`fun` on each device, and what partition was told."""
    told, function = [], custom_partitioning(fun)

    def partition(mesh, args, results):
        told.append((args, results))
        ins, outs = [weft.tree.map(lambda a: a.sharding, side) for side in (args, results)]
        return mesh, part or fun, outs, ins

    function.def_partition(partition, sharding_rule=rule, **options)
    return function, told


def product(mesh, args, results):
    rows, inner = args[0].sharding.spec

    def local(a, b):
        return lax.psum(a @ b, inner) if inner is not None else a @ b

    places = NamedSharding(mesh, P(rows, inner)), NamedSharding(mesh, P(inner, None))
    return mesh, local, NamedSharding(mesh, P(rows, None)), places


@pytest.mark.parametrize("spec", [P(), P("x"), P("x", "y"), P(None, "y"), P(None, ("x", "y")), P("y", "x")], ids=str)
def test_devices_sum_over_what_is_divided(mesh, spec):
    matmul = custom_partitioning(lambda a, b: a @ b)
    matmul.def_partition(product, sharding_rule="i k, k j -> i j", reduction_factors=("k",))
    a, b = weft.device_put(X, NamedSharding(mesh, spec)), weft.device_put(W, NamedSharding(mesh, P()))
    np.testing.assert_array_equal(weft.jit(matmul)(a, b), X @ W)
    both = weft.jit(lambda a, b: matmul(a, b) + matmul(2 * a, b) + (a @ b).sum())
    np.testing.assert_array_equal(both(a, b), 3 * (X @ W) + (X @ W).sum())
    np.testing.assert_array_equal(matmul(a, b), X @ W)


def test_partition_is_told_shapes_and_shardings(mesh):
    double, told = made(lambda x: x * 2, "i j -> i j")
    x = weft.device_put(X, NamedSharding(mesh, P("y")))
    y = weft.jit(double)(x)
    ((args, result),) = told
    assert args[0].shape == result.shape == (8, 8) and args[0].dtype == np.float32
    assert args[0].sharding.spec == result.sharding.spec == P("y", None) and y.sharding.spec == P("y")
    np.testing.assert_array_equal(y, 2 * X)


def test_trees_and_static_arguments(mesh):
    told = []
    scaled = custom_partitioning(lambda d, n, y: {"a": d["a"] * n, "b": (y,)}, static_argnums=1)

    def partition(n, mesh, args, results):
        told.append((n, weft.tree.structure(args), weft.tree.structure(results)))
        ins, outs = [weft.tree.map(lambda a: a.sharding, side) for side in (args, results)]
        return mesh, lambda d, y: {"a": d["a"] * n, "b": (y,)}, outs, ins

    scaled.def_partition(partition, sharding_rule="i j, k -> i j, k")
    x = weft.device_put(X, NamedSharding(mesh, P("x")))
    out = weft.jit(scaled, static_argnums=1)({"a": x}, 3, X[0])
    np.testing.assert_array_equal(out["a"], 3 * X)
    np.testing.assert_array_equal(out["b"][0], X[0])
    structure = weft.tree.structure
    assert told == [(3, structure(({"a": 0}, 0)), structure({"a": 0, "b": (0,)}))]


RULES = {
    "leading axes": ("... i -> ... i", lambda x: x * 2, P("x", "y")),
    "a compound axis": ("i j -> (i j)", lambda x: x.reshape(-1), P("x")),
    "a rule that is made": (SdyShardingRule((ArrayMapping(BATCHING),), (ArrayMapping(BATCHING),)), jnp.sin, P("x")),
    "a function": (lambda mesh, args, result: "i j -> i j", jnp.sin, P("x")),
    "no rule": (None, jnp.sin, P()),
}


@pytest.mark.parametrize("name", RULES)
def test_rules(mesh, name):
    rule, fun, spec = RULES[name]
    function, told = made(fun, rule)
    got = weft.jit(function)(weft.device_put(X, NamedSharding(mesh, spec)))
    np.testing.assert_allclose(got, fun(X), rtol=1e-6)
    assert len(told) == 1 and got.sharding.shard_shape(got.shape) == told[0][1].sharding.shard_shape(got.shape)


def test_shardings_as_xla_has_them(mesh):
    seen = []
    plus = custom_partitioning(lambda x: x + 1)
    rows = NamedSharding(mesh, P("x"))
    plus.def_partition(
        lambda mesh, args, result: (seen.append(args[0].sharding), (mesh, lambda x: x + 1, rows, (rows,)))[1],
        sharding_rule="i j -> i j",
        decode_shardings=False,
    )
    np.testing.assert_array_equal(weft.jit(plus)(weft.device_put(X, rows)), X + 1)
    assert seen[0].is_tiled()


def test_in_loops_and_maps_over_devices_and_on_one_device(mesh):
    double, told = made(lambda x: x * 2, "i j -> i j")
    x = weft.device_put(X, NamedSharding(mesh, P("x")))
    twice = weft.jit(lambda x: lax.scan(lambda c, _: (double(c), None), x, None, length=2)[0])
    np.testing.assert_array_equal(twice(x), 4 * X)
    assert len(told) == 1
    mapped = weft.shard_map(double, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    np.testing.assert_array_equal(weft.jit(mapped)(x), 2 * X)
    np.testing.assert_array_equal(weft.jit(double)(X), 2 * X)
    assert len(told) == 1  # there each device has what it computes


@pytest.mark.parametrize("platform", under_test("wasm", "webgpu", "reference"))
def test_other_backends_run_the_function_itself(platform):
    with on(platform):
        double, told = made(lambda x: x * 2, "i j -> i j")
        np.testing.assert_array_equal(weft.jit(double)(X), 2 * X)
        assert not told


def test_errors_of_partition_are_those_of_its_author(mesh):
    x = weft.device_put(X, NamedSharding(mesh, P("x")))
    for part, error, match in (
        (lambda mesh, args, result: 1 // 0, ZeroDivisionError, "division"),
        (
            lambda mesh, args, result: (mesh, lambda x: x[:1], result.sharding, (args[0].sharding,)),
            ValueError,
            r"part of a result of .* is f32\[2,8\] .* returns f32\[1,8\]",
        ),
        (
            lambda mesh, args, result: (mesh, lambda x: x, result.sharding, args[0].sharding),
            ValueError,
            "returns shardings of the arguments",
        ),
        (
            lambda mesh, args, result: (mesh, lambda x: (x, x), result.sharding, (args[0].sharding,)),
            ValueError,
            "what a device computes of .* has the structure",
        ),
    ):
        function = custom_partitioning(lambda x: x)
        function.def_partition(part, sharding_rule="i j -> i j")
        for _ in range(2):
            with pytest.raises(error, match=match):
                weft.jit(function)(x)
    both = custom_partitioning(lambda x: (x, x))
    part = lambda mesh, args, results: (mesh, lambda x: (x, x[:1]), (args[0].sharding,) * 2, (args[0].sharding,))
    both.def_partition(part, sharding_rule="i j -> i j, i j")
    with pytest.raises(ValueError, match=r"part of a result of .* is f32\[2,8\] .* returns f32\[1,8\]"):
        weft.jit(both)(x)


def test_what_a_user_can_get_wrong(mesh):
    x = weft.device_put(X, NamedSharding(mesh, P("x")))
    bare = custom_partitioning(lambda x: x)
    with pytest.raises(ValueError, match=r"Call .*def_partition\(…\) first"):
        bare(x)
    asks = custom_partitioning(lambda x: x)
    asks.def_partition(lambda *given: None, infer_sharding_from_operands=lambda *given: None)
    np.testing.assert_array_equal(weft.jit(asks)(X), X)
    with pytest.raises(BackendError, match="Give .*def_partition a sharding_rule"):
        weft.jit(asks)(x)
    double, _ = made(lambda x: x * 2, "i j -> i j")
    with pytest.raises(NotImplementedError, match="has no derivative.*custom_jvp"):
        weft.grad(lambda x: double(x).sum())(X)
    with pytest.raises(NotImplementedError, match="can't be batched.*custom_vmap"):
        weft.vmap(double)(X[None])
    for rule, match in (("i j k -> i j", "operand 0 3 axes, and it has 2"), ("i, j -> i j", "has 2 operands")):
        with pytest.raises(ValueError, match=match):
            weft.jit(made(lambda x: x, rule)[0])(x)


@pytest.mark.parametrize(
    "text, match",
    [
        ("i j", "one '->'"),
        ("i -> j -> k", "one '->'"),
        ("(i j -> i", "left open"),
        ("(i) -> i", "at least two factors"),
        ("(i (j k)) -> i", r"can't read '\('"),
        ("i ... -> i", "leading axes"),
        ("i? -> i", r"can't read '\?'"),
    ],
)
def test_text_that_is_no_rule(text, match):
    with pytest.raises(ValueError, match=match):
        parse_rule(text)


def test_rules_are_written_as_the_compiler_reads_them():
    write = lambda text, ins, outs, **options: rule_text(parse_rule(text, **options), ins, outs)
    assert write("i k, k j -> i j", [(2, 3), (3, 4)], [(2, 4)], reduction_factors=("k",)) == (
        "#sdy.op_sharding_rule<([i, j], [j, k])->([i, k]) {i=2, j=3, k=4} reduction={j}, custom>"
    )
    assert write("(a b) -> a b", [(6,)], [(2, 3)], a=2) == (
        "#sdy.op_sharding_rule<([ij])->([i, j]) {i=2, j=3}, custom>"
    )
    assert write("..., a -> ... a", [(2, 3), (4,)], [(2, 3, 4)]) == (
        "#sdy.op_sharding_rule<([i, j], [k])->([i, j, k]) {i=2, j=3, k=4}, custom>"
    )
    with pytest.raises(ValueError, match="sizes of the factors a, b"):
        write("(a b) -> (b a)", [(6,)], [(6,)])
    with pytest.raises(ValueError, match="has 6 elements, and its factors"):
        write("(a b) -> a b", [(6,)], [(2, 3)], a=4)
    with pytest.raises(ValueError, match="no factor 'z'"):
        parse_rule("i -> i", reduction_factors=("z",))
    with pytest.raises(ValueError, match="named twice"):
        parse_rule("i -> i", reduction_factors=("i",), permutation_factors=("i",))
    assert CompoundFactor("a", "b") == ("a", "b") and parse_rule("i -> i") == parse_rule("i->i")
