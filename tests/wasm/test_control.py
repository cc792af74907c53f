"""Loops and branches inside the program: values, and where carries live."""

import numpy as np
import pytest
from wasm_harness import check, compiled, run, values
from weft import lax
from weft_wasm.ir import nodes, traversal

rng = np.random.default_rng(3)
F = lambda *shape: values(rng, "float32", shape)


def statements(fun, *args, kind=None):
    program = compiled(fun, *args)[0].program
    return [s for s in traversal.walk(program.body) if kind is None or type(s) is kind]


def loop_of(fun, *args) -> list:
    """The statements inside the first program-level loop."""
    program = compiled(fun, *args)[0].program
    return next(s for s in program.body if type(s) in (nodes.For, nodes.While)).body


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 1, 5])
def test_scan(length, reverse):
    def f(c, xs):
        return lax.scan(lambda c, x: (lax.add(lax.mul(c, np.float32(0.5)), x), lax.sin(c)), c, xs, reverse=reverse)

    check(lambda c, xs: list(f(c, xs)), F(4), F(length, 4))


def test_scan_with_pytrees_constants_and_unused_results():
    def f(a, b, xs):
        def body(carry, x):
            i, (u, v) = carry
            return (lax.add(i, 1), (lax.add(u, b), v)), {"y": lax.mul(u, x), "i": i}

        (i, (u, _)), ys = lax.scan(body, (0, (a, b)), xs)
        return [i, u, ys["y"], ys["i"]]

    check(f, F(3), F(3), F(6, 3))


def test_scan_over_matrices():
    def f(x, w):
        return lax.scan(lambda c, w: (lax.tanh(lax.dot(c, w)), lax.reduce_sum(c, (1,))), x, w)

    check(lambda x, w: list(f(x, w)), F(5, 8), F(4, 8, 8), tolerance=1e-4)
    check(lambda x, w: list(f(x, w)), F(30, 40), F(3, 40, 40), tolerance=1e-3)


def test_results_and_carry_in_wide_and_narrow_dtypes():
    for dtype in ("int8", "bfloat16", "float64", "bool", "uint16"):
        x = values(rng, dtype, (4, 3))
        check(lambda x: list(lax.scan(lambda c, a: (a, c), lax.reshape(lax.slice(x, (0, 0), (1, 3)), (3,)), x)), x)


def test_fori_loop_counts_without_memory():
    def f(x):
        return lax.fori_loop(
            2,
            7,
            lambda i, x: lax.dynamic_update_slice(x, lax.reshape(lax.convert_element_type(i, np.float32), (1,)), (i,)),
            x,
        )

    check(f, F(9))
    body = loop_of(f, F(9))
    assert [type(s) for s in body] == [nodes.Kernel], "the counter is the loop variable and the update is in place"


def test_the_counters_last_value():
    check(lambda x: lax.fori_loop(3, 8, lambda i, v: (lax.add(v[0], x), i), (x, 0)), F(3))

    def f(x):
        return lax.scan(
            lambda c, _: ((lax.sub(c[0], 3), lax.add(c[1], lax.convert_element_type(c[0], np.float32))), c[0]),
            (10, x),
            None,
            length=4,
        )

    check(lambda x: [*f(x)[0], f(x)[1]], np.float32(1))


def test_nested_loops():
    def f(x):
        return lax.fori_loop(
            0,
            3,
            lambda i, x: lax.fori_loop(
                0, 4, lambda j, x: lax.add(x, lax.convert_element_type(lax.mul(i, j), np.float32)), x
            ),
            x,
        )

    check(f, F(4))
    assert not statements(f, F(4), kind=nodes.Copy)[1:], "one copy of the argument, none in the loops"

    def g(x):
        return lax.scan(lambda c, x: lax.scan(lambda d, y: (lax.add(d, y), lax.mul(d, y)), c, x), np.float32(0), x)

    check(lambda x: list(g(x)), F(4, 5))


def test_the_levels_of_loops():
    """Loops of the program have names of their own, and what is inside them is shown so."""
    f = lambda x: lax.scan(
        lambda c, row: lax.scan(lambda d, y: (lax.add(d, y), lax.sin(lax.mul(d, y))), c, row), np.float32(0), x
    )
    made = compiled(lambda x: list(f(x)), F(4, 5))[0]
    nest = [
        s
        for s in traversal.walk(made.program.body)
        if type(s) is nodes.For and s.body and type(s.body[-1]) in (nodes.For, nodes.Kernel)
    ]
    assert [loop.var.name for loop in nest] == ["t", "t1"]
    indents = [
        len(line) - len(line.lstrip())
        for line in made.as_text("groups").splitlines()
        if line.lstrip().startswith("group")
    ]
    assert indents == sorted(indents) and set(indents) == {0, 4, 8}

    def after(x):  # the second loop is as deep as the first
        y = lax.fori_loop(0, 3, lambda i, y: lax.sin(y), x)
        return lax.fori_loop(0, 3, lambda i, y: lax.add(y, x), y)

    assert [s.var.name for s in compiled(after, F(4))[0].program.body if type(s) is nodes.For] == ["t", "t"]


def test_loop_with_traced_bounds():
    check(lambda n, x: lax.fori_loop(0, n, lambda i, x: lax.mul(x, np.float32(1.5)), x), np.int32(5), F(3))


def test_while():
    def f(x):
        return lax.while_loop(
            lambda v: lax.lt(v[0], np.float32(10)),
            lambda v: (lax.add(v[0], v[1]), lax.mul(v[1], np.float32(1.5))),
            (x, x),
        )

    check(f, np.float32(1))
    check(f, np.float32(100))
    check(
        lambda x, limit: lax.while_loop(lambda v: lax.reduce_and(lax.lt(v, limit), (0,)), lambda v: lax.mul(v, v), x),
        np.float32([1.1, 1.5]),
        np.float32([50, 60]),
    )


def test_swapped_and_rotated_carries():
    check(lambda x, y, z: list(lax.fori_loop(0, 4, lambda i, v: (v[1], v[2], v[0]), (x, y, z))), F(3), F(3), F(3))
    check(lambda x, y: list(lax.fori_loop(0, 3, lambda i, v: (lax.add(v[1], v[0]), v[0]), (x, y))), F(3), F(3))
    check(lambda x: list(lax.fori_loop(0, 3, lambda i, v: (v[0], v[0]), (x, lax.neg(x)))), F(3))
    check(
        lambda x, y: list(lax.fori_loop(0, 3, lambda i, v: (lax.rev(v[1], (0,)), lax.rev(v[0], (0,))), (x, y))),
        F(3),
        F(3),
    )
    check(lambda x, y: [*lax.fori_loop(0, 3, lambda i, v: (v[1], v[0]), (y, x)), x], F(3), F(3))


def test_carry_that_is_read_elsewhere_while_written():
    check(lambda x: lax.fori_loop(0, 3, lambda i, x: lax.add(lax.rev(x, (0,)), x), x), F(5))
    check(
        lambda x: lax.fori_loop(
            0, 3, lambda i, x: lax.sub(x, lax.broadcast_in_dim(lax.reduce_sum(x, (0,)), (5,), ())), x
        ),
        F(5),
        tolerance=1e-3,
    )
    check(
        lambda x: lax.fori_loop(0, 3, lambda i, x: lax.dynamic_update_slice(x, lax.slice(x, (1,), (4,)), (i,)), x), F(8)
    )
    check(
        lambda x: list(
            lax.fori_loop(
                0,
                3,
                lambda i, v: (lax.dynamic_update_slice(v[0], lax.slice(v[1], (0,), (2,)), (i,)), lax.add(v[0], v[1])),
                (x, x),
            )
        ),
        F(8),
    )


def test_scatter_into_a_carry_is_in_place():
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))

    def f(x, index):
        return lax.scan(
            lambda c, i: (lax.scatter_add(c, lax.reshape(i, (1, 1)), lax.full((1,), np.float32(1)), numbers), None),
            x,
            index,
        )[0]

    index = rng.integers(0, 6, size=20).astype(np.int32)
    check(f, F(6), index)
    assert not [s for s in traversal.walk(loop_of(f, F(6), index)) if type(s) is nodes.Copy]


def rotated(x, i, j):
    """x with rows i and j replaced by combinations of both, put back one after the other."""
    at = lambda x, i: lax.dynamic_slice(x, (i, 0), (1, x.shape[1]))
    p, q = at(x, i), at(x, j)
    x = lax.dynamic_update_slice(x, lax.add(lax.mul(p, np.float32(0.6)), lax.mul(q, np.float32(0.8))), (i, 0))
    return lax.dynamic_update_slice(x, lax.sub(lax.mul(p, np.float32(-0.8)), lax.mul(q, np.float32(-0.6))), (j, 0))


def test_rows_that_are_computed_from_each_other_are_put_back_in_place():
    f = lambda x: lax.fori_loop(0, 5, lambda i, x: rotated(x, i, lax.add(i, 1)), x)
    check(f, F(6, 4), tolerance=1e-5)
    assert not [s for s in traversal.walk(loop_of(f, F(6, 4))) if type(s) is nodes.Copy]

    def swapped(v, k):  # one entry of each of two vectors, read after the first was put back
        x, y = v
        a, b = lax.dynamic_slice(x, (k,), (1,)), lax.dynamic_slice(y, (k,), (1,))
        x = lax.dynamic_update_slice(x, b, (k,))
        return x, lax.dynamic_update_slice(y, lax.mul(lax.mul(a, a), lax.sin(a)), (k,))

    g = lambda x, y: list(lax.fori_loop(0, 3, lambda k, v: swapped(v, k), (x, y)))
    check(g, F(5), F(5))
    assert not [s for s in traversal.walk(loop_of(g, F(5), F(5))) if type(s) is nodes.Copy]


def test_updates_whose_results_are_read_come_first():
    def f(x, i):
        y = rotated(x, i, lax.add(i, np.int32(1)))
        z = lax.dynamic_update_slice(y, lax.slice(y, (0, 0), (1, 4)), (i, 0))
        return [lax.add(x, lax.mul(y, z)), rotated(z, lax.sub(i, np.int32(1)), i), lax.reduce_sum(lax.mul(y, x), (0,))]

    check(f, F(6, 4), np.int32(2), tolerance=1e-4)
    g = lambda x, i: list(lax.fori_loop(0, 3, lambda k, v: tuple(f(lax.add(v[0], v[1]), i)[:2]), (x, lax.neg(x))))
    check(g, F(6, 4) / 8, np.int32(3), tolerance=1e-3)


def test_cond_and_switch():
    f = lambda p, x: lax.cond(p, lambda x: lax.sin(x), lambda x: lax.add(x, np.float32(1)), x)
    for p in (np.bool_(True), np.bool_(False)):
        check(f, p, F(4))
    branches = [lambda x: (x, lax.neg(x)), lambda x: (lax.exp(x), x), lambda x: (lax.mul(x, x), lax.dot(x, x))]
    for i in (-5, 0, 1, 2, 9):
        check(lambda i, x: lax.switch(i, branches, x), np.int32(i), F(3, 3))
    check(lambda x: lax.switch(1, branches[:2], x), F(3, 3))


def test_cond_in_a_loop():
    def f(x):
        return lax.fori_loop(
            0,
            6,
            lambda i, x: lax.cond(lax.eq(lax.rem(i, 2), 0), lambda x: lax.add(x, np.float32(1)), lambda x: x, x),
            x,
        )

    check(f, F(4))
    assert not [s for s in traversal.walk(loop_of(f, F(4))) if type(s) is nodes.Copy], (
        "both branches work on the carry itself"
    )
    check(
        lambda x: lax.fori_loop(
            0,
            6,
            lambda i, v: lax.cond(lax.lt(i, 3), lambda v: (v[1], v[0]), lambda v: (v[0], lax.add(v[0], v[1])), v),
            (x, lax.neg(x)),
        ),
        F(4),
    )
    check(
        lambda x: lax.fori_loop(
            0, 3, lambda i, x: lax.switch(i, [lambda x: lax.rev(x, (0,)), lambda x: x, lambda x: lax.sort(x)], x), x
        ),
        F(6),
    )


def test_cond_of_loops():
    check(
        lambda p, x: lax.cond(
            p,
            lambda x: lax.fori_loop(0, 3, lambda i, x: lax.add(x, x), x),
            lambda x: lax.while_loop(
                lambda x: lax.lt(lax.reduce_max(x, (0,)), np.float32(50)),
                lambda x: lax.add(lax.abs(x), np.float32(1)),
                x,
            ),
            x,
        ),
        np.bool_(False),
        F(4),
    )


def test_results_that_are_arguments_or_constants():
    assert [o.tolist() for o in run(lambda x: [x, x, lax.full((2,), np.float32(3)), x], np.float32([1, 2]))] == [
        [1, 2],
        [1, 2],
        [3, 3],
        [1, 2],
    ]
    check(lambda x: [lax.mul(x, x), lax.mul(x, x)], F(3))


def test_ys_are_written_into_their_rows():
    f = lambda x: lax.scan(lambda c, _: (lax.mul(c, np.float32(2)), c), x, None, length=5)
    body = loop_of(lambda x: list(f(x)), F(64))
    assert [type(s) for s in body] == [nodes.Copy, nodes.Kernel], (
        "the old carry goes to its row, then the carry changes in place"
    )
    g = lambda x: lax.scan(lambda c, _: (lax.mul(c, np.float32(2)), lax.sin(c)), x, None, length=5)
    assert [type(s) for s in loop_of(lambda x: list(g(x)), F(64))] == [nodes.Kernel]
    check(lambda x: list(f(x)), F(64))
