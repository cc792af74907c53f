"""Fusion: the tests compare plans, which are data."""

import functools

import numpy as np
import pytest
import weft
import weft.numpy as jnp
from wasm_harness import check, compiled, flat, jaxpr_of, run, values
from weft import lax
from weft.primitives.random_bits import threefry2x32_p
from weft_wasm.ir import nodes, traversal
from weft_wasm.ir.verify import verify
from weft_wasm.lower.fuse import Planner
from weft_wasm.lower import graph
from weft_wasm.lower.blocks import IDENTITY, broadcast_view, choose, linear, regroup, slice_view, transpose_view
from weft_wasm.lower.program import lower

rng = np.random.default_rng(5)
F = lambda *shape: values(rng, "float32", shape)


def program(fun, *args) -> nodes.Program:
    return compiled(fun, *args)[0].program


def kernels(fun, *args) -> list:
    return [s for s in traversal.walk(program(fun, *args).body) if type(s) is nodes.Kernel]


def groups(fun, *args) -> list:
    return Planner(graph.build(jaxpr_of(fun, args)[0])).plan().groups


def loops(kernel) -> list:
    return [s for s in traversal.walk(kernel.body) if type(s) is nodes.For]


def calls(kernels, name: str) -> int:
    seen: set = set()
    found = [
        e
        for k in kernels
        for s in traversal.walk(k.body)
        for root in traversal.expressions(s)
        for e in traversal.walk_expr(root, seen)
    ]
    return sum(1 for e in found if type(e) is nodes.Call and e.fn == name)


def test_an_elementwise_chain_is_one_flat_loop():
    (kernel,) = kernels(lambda x, y: lax.reshape(lax.tanh(lax.add(lax.mul(x, y), x)), (20, 6)), F(4, 5, 6), F(4, 5, 6))
    assert [loop.extent for loop in loops(kernel)] == [120]


def test_an_adam_update_is_one_kernel_with_three_stores():
    def adam(p, m, v, g):
        m = lax.add(lax.mul(m, np.float32(0.9)), lax.mul(g, np.float32(0.1)))
        v = lax.add(lax.mul(v, np.float32(0.99)), lax.mul(lax.mul(g, g), np.float32(0.01)))
        return [lax.sub(p, lax.div(m, lax.add(lax.sqrt(v), np.float32(1e-8)))), m, v]

    (kernel,) = kernels(adam, *[F(16, 8)] * 4)
    assert [loop.extent for loop in loops(kernel)] == [128] and sum(
        type(s) is nodes.Store for s in traversal.walk(kernel.body)
    ) == 3


def test_broadcasting_splits_loops_where_it_must_only():
    (kernel,) = kernels(lambda x, b: lax.add(x, lax.broadcast_in_dim(b, (3, 4, 5, 6), (2, 3))), F(3, 4, 5, 6), F(5, 6))
    assert [loop.extent for loop in loops(kernel)] == [12, 30]


def test_softmax_computes_the_exponential_once():
    made = kernels(lambda x: weft.nn.softmax(x, axis=-1), F(6, 40))
    assert calls(made, "exp") == 1


def test_a_product_keeps_bias_and_activation_in_its_store():
    made = program(
        lambda x, w, b: lax.max(lax.add(lax.dot(x, w), lax.broadcast_in_dim(b, (60, 70), (1,))), np.float32(0)),
        F(60, 50),
        F(50, 70),
        F(70),
    )
    assert sum(type(s) is nodes.Kernel for s in made.body) == 1 and not any(t.shape == (60, 70) for t in made.temps)


def test_what_several_kernels_make_of_a_product_is_stored_in_its_place():
    def fun(x, w, mask):
        masked = (x @ w) * mask
        return masked.sum(axis=0), masked @ w

    x, w, mask = F(24, 24), F(24, 24) / 8, F(24, 24)
    first, *rest = groups(fun, x, w, mask)
    assert first.kind == "dot" and len(first.members) == 2 and {g.kind for g in rest} == {"reduce", "dot"}
    assert all(v in first.members[1:] for g in rest for v in g.reads if v.node is not None)
    check(fun, x, w, mask)


def test_what_waits_for_a_later_value_is_not_stored_in_place_of_a_product():
    def fun(x, w):
        product = x @ w
        scaled = product * x.max()
        return scaled.sum(axis=0), scaled.sum(axis=1)

    assert "loop" not in [g.kind for g in groups(fun, F(24, 24), F(24, 24))]
    check(fun, F(24, 24), F(24, 24))


@pytest.mark.parametrize(
    "a,b,numbers",
    [
        ((50, 60), (50, 70), (((0,), (0,)), ((), ()))),
        ((60, 50), (70, 50), (((1,), (1,)), ((), ()))),
        ((4, 60, 50), (4, 50, 30), (((2,), (1,)), ((0,), (0,)))),
    ],
)
def test_products_read_transposed_operands_in_place(a, b, numbers):
    assert len(kernels(lambda x, y: lax.dot_general(x, y, numbers), F(*a), F(*b))) == 1


def test_a_transposed_product_is_computed_transposed():
    f = lambda x, y: lax.transpose(lax.dot(x, y), (1, 0))
    assert len(kernels(f, F(20, 30), F(30, 40))) == 1
    check(f, F(20, 30), F(30, 40), tolerance=1e-4)
    g = lambda x, y: lax.transpose(lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))), (0, 2, 1))
    assert len(kernels(g, F(3, 20, 30), F(3, 30, 40))) == 1
    check(g, F(3, 20, 30), F(3, 30, 40), tolerance=1e-4)
    both = lambda x, y: (lambda p: [lax.transpose(p, (1, 0)), p])(lax.dot(x, y))
    check(both, F(20, 30), F(30, 40), tolerance=1e-4)


def test_reductions_share_a_loop_and_keep_their_followers():
    (kernel,) = kernels(
        lambda x: [
            lax.div(lax.reduce_sum(x, (1,)), np.float32(9)),
            lax.reduce_sum(lax.mul(x, x), (1,)),
            lax.reduce_max(x, (1,)),
        ],
        F(7, 9),
    )
    assert sum(loop.kind == "reduce" for loop in loops(kernel)) == 1


def test_reductions_read_through_views():
    assert len(kernels(lambda x: lax.reduce_sum(lax.transpose(lax.exp(x), (2, 0, 1)), (0,)), F(3, 4, 5))) == 1
    (kernel,) = kernels(lambda x: lax.reduce_sum(x, (0, 1)), F(30, 40))
    assert [loop.extent for loop in loops(kernel)] == [1200]


def test_bindings_of_a_reduction_loop_end_with_it():
    """One element that the loop reads and so do its followers, alone and in a scalar shared by both, is bound where
    both see it.
    """

    def alone(x):
        less = (shifted := abs(x) + 0.5) - 1.0
        top = lax.reduce_max(shifted * less[0] - shifted[0], (0,))
        return top * 2.0, top + less[0] * less[0]

    def shared(x):
        shifted = abs(x) + 0.5
        first = shifted[0] - 1.0
        top = lax.reduce_max(shifted * shifted[0] * first, (0,))
        return top * first, top + first

    for fun in (alone, shared):
        assert len(kernels(fun, F(7))) == 1
        check(fun, F(7))


def test_dear_values_are_stored_and_cheap_ones_computed_again():
    dear = groups(lambda x: (lambda e: [lax.reduce_sum(e, (0,)), lax.reduce_max(e, (1,))])(lax.exp(x)), F(8, 8))
    cheap = groups(lambda x: (lambda e: [lax.reduce_sum(e, (0,)), lax.reduce_max(e, (1,))])(lax.neg(x)), F(8, 8))
    assert [g.kind for g in dear] == ["loop", "reduce", "reduce"] and [g.kind for g in cheap] == ["reduce", "reduce"]
    assert len(kernels(lambda x: lax.broadcast_in_dim(lax.exp(x), (100, 8), (1,)), F(8))) == 2, (
        "not an exponential for each row"
    )


def test_what_many_cheap_operations_make_is_stored():
    """The cost of a chain is that of all that it computes anew: beyond some, two kernels share it, and one is cut."""

    def chain(x, length):
        for k in range(length):
            x = lax.add(lax.mul(x, x), x) if k % 2 else lax.neg(x)
        return x

    def twice(x, length):
        e = chain(x, length)
        return [lax.reduce_sum(e, (0,)), lax.reduce_max(e, (1,))]

    assert [g.kind for g in groups(lambda x: twice(x, 1), F(8, 8))] == ["reduce", "reduce"]
    assert [g.kind for g in groups(lambda x: twice(x, 4), F(8, 8))] == ["loop", "reduce", "reduce"]
    dear = lambda x, length: lax.reduce_sum(functools.reduce(lambda x, _: lax.tanh(x), range(length), x), (0,))
    assert [g.kind for g in groups(lambda x: dear(x, 3), F(8, 8))] == ["reduce"]
    cut = groups(lambda x: dear(x, 50), F(8, 8))
    assert [g.kind for g in cut][-1] == "reduce" and len(cut) > 1 and max(g.cost for g in cut) < 500
    check(lambda x: dear(x, 50), F(8, 8))


def test_views_that_change_nothing_are_none():
    assert slice_view((2, 5), (2, 5), (0, 0), (1, 1)) is IDENTITY and slice_view((1,), (1,), (0,), (1,)) is IDENTITY
    assert broadcast_view((3, 1, 4), (3, 4), (0, 2)) is IDENTITY and broadcast_view((1, 4), (4,), (1,)) is IDENTITY
    assert (
        slice_view((2, 5), (3, 5), (1, 0), (1, 1)) is not IDENTITY
        and broadcast_view((2, 4), (4,), (1,)) is not IDENTITY
    )
    # through one, a value is read at its own element: what follows a product stays in its kernel
    (kernel,) = kernels(
        lambda x, w: lax.add(lax.broadcast_in_dim(lax.dot(x, w), (20, 1, 30), (0, 2)), np.float32(1)),
        F(20, 10),
        F(10, 30),
    )
    (kernel,) = kernels(
        lambda x: lax.add(lax.broadcast_in_dim(lax.reduce_sum(x, (1,)), (20, 1), (0,)), np.float32(1)), F(20, 10)
    )


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "bfloat16", "int8", "uint16", "int32", "int64", "uint64", "bool"]
)
def test_large_products_are_packed(dtype):
    """But for booleans, where it takes longer."""
    x = values(rng, dtype, (40, 50)), values(rng, dtype, (50, 60))
    made = program(lambda x, y: lax.dot(x, y), *x)
    assert (made.temps == []) == (dtype == "bool")
    check(lambda x, y: lax.dot(x, y), *x, tolerance=0.3 if dtype == "bfloat16" else 1e-4)
    assert not program(lambda x, y: lax.dot(x, y), x[0][:20], x[1][:, :20]).temps, "small ones are not"


def test_sorts_write_right_into_their_results():
    def copies(fun, *args):
        return [s for s in traversal.walk(program(fun, *args).body) if type(s) is nodes.Copy]

    assert not copies(lambda x, y: lax.sort((x, y), num_keys=2), F(3, 50), F(3, 50))
    assert not copies(lambda x: lax.add(lax.sort(x), np.float32(1)), F(3, 50))
    into_rows = lambda x: lax.scan(lambda c, row: (c, lax.sort(row)), np.float32(0), x)[1]
    assert len(copies(into_rows, F(3, 50))) == 1, "a row of a result is a part of a buffer"
    check(into_rows, F(3, 50))


def test_ways_to_sort():
    """Long rows go by the digits of their one key, others are merged, and targets with many invocations exchange
    pairs.
    """

    def way(fun, *args, plain=False):
        made, _ = lower(jaxpr_of(fun, args)[0], plain=plain)
        names = [b.name.split(".")[-1] for b in made.temps]
        return "digits" if "count" in names else "pairs" if "order" in names else "merged"

    one, two = lambda x: lax.sort(x), lambda x, y: lax.sort((x, y), num_keys=2)
    assert [way(one, F(n)) for n in (5, 1000, 3071, 3072, 9000)] == ["merged", "merged", "merged", "digits", "digits"]
    assert way(one, np.zeros(300, np.int8)) == "digits", "of one digit of 8 bits"
    assert (
        way(two, F(9000), F(9000)) == "merged"
        and way(lambda x, y: lax.sort((x, y), num_keys=1), F(9000), F(9000)) == "digits"
    )
    assert way(one, F(9000), plain=True) == way(two, F(5), F(5), plain=True) == "pairs"
    assert not lower(jaxpr_of(one, [F(0)])[0])[0].body and not lower(jaxpr_of(one, [F(0, 4)])[0])[0].body


ONES = {
    "elementwise": (lambda x: lax.sin(lax.add(x, x)), (1, 7, 1)),
    "broadcast": (lambda x: lax.exp(lax.broadcast_in_dim(x, (1, 5, 1, 7), (1, 3))), (1, 7)),
    "reduce": (lambda x: lax.reduce_sum(lax.mul(x, x), (1,)), (1, 7, 1)),
    "argmax": (lambda x: lax.argmax(x, 0, np.int32), (7,)),
    "argmin": (lambda x: lax.argmin(x, 1, np.int32), (1, 7, 1)),
    "cumsum": (lambda x: lax.cumsum(x, 1), (1, 7, 1)),
    "cumlogsumexp": (lax.cumlogsumexp, (7, 1)),
    "concatenate": (lambda x: lax.concatenate([lax.sin(x), x], 1), (1, 7, 1)),
    "update": (lambda x: lax.dynamic_update_slice(x, lax.sin(x[:, :2]), (0, 3, 0)), (1, 7, 1)),
    "scatter": (lambda x: x.at[:, np.array([3])].add(np.float32(1)), (1, 7, 1)),
    "transpose": (lambda x: lax.exp(lax.transpose(x, (2, 1, 0))), (1, 7, 5)),
    "reversed": (lambda x: lax.exp(lax.rev(x, (0, 1))), (1, 7)),
    "windows": (lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 3, 1), (1, 1, 1), "VALID"), (1, 7, 1)),
}


@pytest.mark.parametrize("name", ONES)
def test_axes_of_one_element_have_no_loops(name):
    fun, shape = ONES[name]
    made = kernels(lambda x: fun(jnp.asarray(x)), F(*shape))
    assert made and not [loop for kernel in made for loop in loops(kernel) if loop.extent == 1]


def test_dead_equal_and_constant_nodes_go():
    g = graph.build(jaxpr_of(flat(lambda x: (lax.sin(x), lax.add(lax.cos(x), lax.cos(x)))[1]), [F(4)])[0])
    assert [n.op for n in g.nodes] == ["cos", "add"]
    g = graph.build(jaxpr_of(flat(lambda x: lax.mul(x, lax.add(lax.full((), np.float32(2)), np.float32(3)))), [F()])[0])
    assert [n.op for n in g.nodes] == ["mul"] and g.nodes[0].inputs[1].constant == 5.0
    g = graph.build(
        jaxpr_of(flat(lambda x: lax.transpose(lax.transpose(lax.reshape(x, (2, 3)), (1, 0)), (1, 0))), [F(6)])[0]
    )
    assert [n.op for n in g.nodes] == ["reshape"]


def test_calls_are_written_in_place():
    inner = weft.jit(lambda x: jnp.tanh(x) * 2)
    assert len(kernels(lambda x: inner(inner(x)), F(9))) == 1


def test_plans_can_be_read():
    text = str(Planner(graph.build(jaxpr_of(lambda x: lax.reduce_sum(lax.exp(x), (0,)), [F(4, 5)])[0])).plan())
    assert text.startswith("group 0: reduce 5 elements") and "(output)" in text and "reads arg0*" in text


def test_large_transpositions_are_tiled():
    (kernel,) = kernels(lambda x: lax.add(lax.transpose(x, (1, 0)), np.float32(1)), F(256, 192))
    assert [loop.extent for loop in loops(kernel)] == [12, 16, 16, 16]
    check(lambda x: lax.add(lax.transpose(x, (1, 0)), np.float32(1)), F(256, 192))
    check(lambda x: lax.exp(lax.transpose(x, (0, 2, 1))), F(3, 128, 96))


def test_a_program_is_lowered_alike_for_targets_that_schedule_themselves():
    made, _ = lower(jaxpr_of(lambda x: lax.dot(x, x), [F(64, 64)])[0], plain=True)
    assert not made.temps


# blocks --------------------------------------------------------------------------------------------------------------


def value_of(e, env) -> int:
    """An index expression as a number."""
    match e:
        case nodes.Const():
            return e.value
        case nodes.Var():
            return env[e]
    a, b = value_of(e.a, env), value_of(e.b, env)
    return {"add": a + b, "sub": a - b, "mul": a * b, "div": a // b if b else 0, "rem": a % b if b else 0}[e.op]


@pytest.mark.parametrize("extents", [(24,), (4, 6), (2, 12), (2, 2, 6), (8, 3), (3, 8)])
@pytest.mark.parametrize("sizes", [(24,), (4, 6), (2, 3, 4), (3, 8), (6, 4), (1, 24), (2, 1, 12)])
def test_regrouping_names_the_same_element(extents, sizes):
    variables = [nodes.Var(f"i{k}") for k in range(len(extents))]
    blocks = tuple(zip(extents, variables))
    parts = regroup(blocks, sizes)
    for position in range(24):
        index = np.unravel_index(position, extents)
        env = dict(zip(variables, map(int, index)))
        assert tuple(value_of(linear(p), env) for p in parts) == tuple(map(int, np.unravel_index(position, sizes)))


def test_views_and_their_loops():
    view = transpose_view((4, 2, 3), (2, 0, 1))
    assert view.sizes == [4, 6], "axes that stay neighbours stay one"
    assert choose(24, view.splits(frozenset())) == [4, 6]
    i, j = nodes.Var("i"), nodes.Var("j")
    assert value_of(linear(view.apply(((4, i), (6, j)))), {i: 3, j: 5}) == 5 * 4 + 3
    assert slice_view((2, 5), (4, 5), (1, 0), (1, 1)).sources[0].offset == 1


def order(fun, *args) -> list[str]:
    """The products and divisions of a graph, in order."""
    return [node.op for node in graph.build(jaxpr_of(fun, args)[0]).nodes if node.op in ("dot_general", "div")]


def weighed(p, v, dims=(((1,), (0,)), ((), ()))):
    return lax.dot_general(p, v, dims)


@pytest.mark.parametrize(
    "fun,shapes",
    [
        (lambda x, v: weighed(weft.nn.softmax(x), v), [(5, 20), (20, 3)]),
        (lambda x, v: weighed(weft.nn.softmax(jnp.where(x > 0, x, -jnp.inf)), v), [(5, 20), (20, 3)]),
        (lambda x, v: weighed(v, weft.nn.softmax(x, axis=0)), [(20, 5), (3, 20)]),
        (lambda x, v: weighed(v, weft.nn.softmax(x), (((0,), (1,)), ((), ()))), [(5, 20), (20, 3)]),
        (lambda x, v: jnp.einsum("bhqk,bkhd->bqhd", weft.nn.softmax(x), v), [(2, 3, 4, 20), (2, 20, 3, 5)]),
        (
            lambda x, v: (
                jnp.exp(x - x.max()) / 7 @ v
                + (lambda e: (e / e.sum(keepdims=True)) @ v)(jnp.exp(x - x.max(keepdims=True)))
            ),
            [(20,), (20, 3)],
        ),
    ],
    ids=["rows", "masked", "columns first", "rows second", "heads", "vector"],
)
def test_a_softmax_is_divided_after_its_product(fun, shapes):
    fun = lambda x, v, fun=fun: fun(jnp.asarray(x), jnp.asarray(v))
    args = [F(*shape) for shape in shapes]
    assert order(fun, *args)[-1] == "div"
    check(fun, *args)


@pytest.mark.parametrize(
    "fun,shapes",
    [
        (lambda x, v: weighed(weft.nn.softmax(x), v), [(5, 20), (20, 30)]),
        (lambda x, v: (lambda p: (weighed(p, v), p))(weft.nn.softmax(x)), [(5, 20), (20, 3)]),
        (lambda x, v: weighed(jnp.exp(x) / jnp.exp(x).sum(1, keepdims=True), v), [(5, 20), (20, 3)]),
        (lambda x, v: weighed(weft.nn.softmax(x, axis=0), v), [(5, 20), (20, 3)]),
        (
            lambda x, v: (lambda e: weighed(e / e.sum(1, keepdims=True), v))(jnp.exp(x - x.max(0)[:, None])),
            [(20, 20), (20, 3)],
        ),
        (
            lambda x, v: weighed(weft.nn.softmax(x.astype("bfloat16")), v.astype("bfloat16")).astype("float32"),
            [(5, 20), (20, 3)],
        ),
    ],
    ids=[
        "more results than weights",
        "weights wanted",
        "unbounded",
        "another axis",
        "another maximum",
        "narrow results",
    ],
)
def test_what_is_divided_before_its_product(fun, shapes):
    fun = lambda x, v, fun=fun: fun(jnp.asarray(x), jnp.asarray(v))
    args = [F(*shape) for shape in shapes]
    assert order(fun, *args)[-1] == "dot_general"
    check(fun, *args, tolerance=1e-2 if "bfloat16" in str(jaxpr_of(fun, args)[0]) else None)


def sizes_apart(fun, *args) -> list[tuple[int, int]]:
    """(elementary functions, stored values) of each group, where functions of large arrays are apart."""
    planned = Planner(graph.build(jaxpr_of(fun, args)[0]), apart=True).plan()
    return [(g.functions, len(g.members)) for g in planned.groups]


def test_functions_of_large_arrays_have_loops_of_their_own():
    large, small = F(64, 64), F(63, 65)
    assert sizes_apart(lambda x: lax.exp(lax.sin(x)), large) == [(1, 1), (1, 1)]
    assert sizes_apart(lambda x: lax.exp(lax.sin(x)), small) == [(2, 1)]
    assert sizes_apart(lambda x: [lax.exp(x), lax.sin(x)], large) == [(1, 1), (1, 1)]
    assert sizes_apart(lambda x: lax.reduce_sum(lax.exp(lax.sin(x)), (0,)), large) == [(1, 1), (1, 1)]
    assert sizes_apart(lambda x: lax.mul(lax.exp(x), lax.sin(x)), large) == [(2, 1)]  # side by side
    assert len(groups(lambda x: lax.exp(lax.sin(x)), large)) == 1  # on a GPU


def test_functions_apart_give_the_same():
    x = F(80, 64)
    fun = lambda x: lax.log1p(lax.exp(lax.mul(lax.tanh(x), lax.sin(lax.cos(x)))))
    rows = [run(fun, x[k : k + 16])[0] for k in range(0, 80, 16)]
    np.testing.assert_array_equal(run(fun, x)[0], np.concatenate(rows))


KEY = np.arange(4, dtype=np.uint32)


def hashed(x):
    return threefry2x32_p.bind(KEY, KEY, x, KEY)[0]


def widened(x):
    return lax.bitcast_convert_type(lax.bitcast_convert_type(x, "uint8"), "uint32")


DEEP = {  # what nests most operations, with an argument
    "random bits": (hashed, np.arange(4, dtype=np.uint32)),
    "powers": (lambda x: lax.integer_pow(x, 2**28 - 1), np.ones(4, np.float32)),
    "inverses of powers": (lambda x: lax.integer_pow(x, -(2**28)), np.ones(4, np.float32)),
    "precision": (lambda x: lax.reduce_precision(x + 1, 6, 7), np.ones(4, np.float32)),
    "eight bits": (lambda x: (x * 1.5).astype("float8_e5m2").astype("float32"), np.ones(4, np.float32)),
    "signs": (lax.sign, np.arange(4, dtype=np.int32)),
    "shifts": (lambda x: lax.shift_right_logical(x, x), np.arange(4, dtype=np.int16)),
    "bits": (widened, np.arange(4, dtype=np.uint32)),
    "edges": (lambda x: lax.pad(x, np.int32(1), [(-1, 0, 1), (-1, 1, 0), (1, -1, 0)]), np.ones((2, 3, 4), np.int32)),
    "gathered": (lambda x: x[x & 3], np.arange(4, dtype=np.int32)),
    "slices": (lambda x: lax.dynamic_slice(x, (x[0],), (4,)), np.arange(4, dtype=np.int32)),
    "choices": (lambda x: lax.select_n(x & 3, x, x + 1, x + 2, x + 3), np.arange(4, dtype=np.int32)),
}


@pytest.mark.parametrize("name", DEEP)
def test_no_chain_nests_too_many_operations(name):
    """Emitters and passes descend into expressions: an expression that nests deeper than the verifier admits ended in
    a RecursionError.
    """
    step, x = DEEP[name]

    def chain(x):
        for _ in range(40):
            x = step(x)
        return x

    jaxpr = jaxpr_of(chain, (x,))[0]
    verify(lower(jaxpr)[0])
    check(chain, x)
