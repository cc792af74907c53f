"""Kernels on every backend give what real JAX gave (pallas_expected.json, written by make_pallas_expected.py), and
kernels that are not well-formed say so.
"""

import functools
import importlib
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from platforms import on, under_test

import weft
import weft.numpy as jnp
from weft import lax
from weft.core.primitive import registry
from weft.experimental import pallas as pl
from weft.higher_order.pallas_call import pallas_call_p

HERE = pathlib.Path(__file__).parent
sys.path.append(str(HERE))
from pallas_cases import cases  # noqa: E402

EXPECTED = json.loads((HERE / "pallas_expected.json").read_text())
CASES = cases(weft, pl, pl.pallas_call)
WHOLE = pl.no_block_spec
f32 = jnp.float32


def out(*shape, dtype=f32):
    return weft.ShapeDtypeStruct(shape, dtype)


def check(name, found):
    """Compares with the recorded arrays, or with NumPy where real JAX has no result."""
    found = [np.asarray(x) for x in weft.tree.leaves(found)]
    if name in EXPECTED:
        want = [np.array(v, np.float64).reshape(s) for _, s, v in EXPECTED[name]]
        assert [(str(x.dtype), list(x.shape)) for x in found] == [(d, s) for d, s, _ in EXPECTED[name]]
    else:
        want = [np.asarray(x, np.float64) for x in BY_HAND[name](*CASES[name][1])]
    for x, y in zip(found, want, strict=True):
        np.testing.assert_allclose(x.astype(np.float64), y, rtol=2e-5, atol=2e-6)


# what real JAX can't differentiate
BY_HAND = {
    "derivative_of_one": lambda x, y: (x + y, 2 * x),
    "forward_jacobian": lambda x: [
        np.array([[2 * x[j] * (j <= i and j // 4 == i // 4) for j in range(8)] for i in range(8)])
    ],
}


@pytest.mark.parametrize("platform", under_test())
@pytest.mark.parametrize("name", CASES)
def test_cases(name, platform):
    f, args = CASES[name]
    with on(platform):
        check(name, weft.jit(f)(*weft.tree.map(jnp.asarray, args)))


@pytest.mark.parametrize("platform", under_test("wasm", "webgpu"))
@pytest.mark.parametrize("name", ["matmul_in_scratch", "attention", "mapped_matmul", "alias", "beyond_two_edges"])
def test_as_a_loop(name, platform):
    """interpret=True: the loop of ordinary operations."""
    f, args = cases(weft, pl, functools.partial(pl.pallas_call, interpret=True))[name]
    with on(platform):
        check(name, weft.jit(f)(*args))


def test_one_by_one():
    f, args = CASES["attention"]
    check("attention", f(*args))


def test_every_case_has_a_value():
    assert CASES.keys() == EXPECTED.keys() | BY_HAND.keys()


# masks ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("platform", under_test())
def test_masked_parts(platform):
    """Parts that reach beyond the end of a reference, as a block beyond the edge of an array does."""

    def kernel(x_ref, o_ref):
        at = 4 * pl.program_id(0) + jnp.arange(4)
        x = pl.load(x_ref, pl.ds(4 * pl.program_id(0), 4), mask=at < 10, other=-1.0)
        pl.store(o_ref, pl.ds(4 * pl.program_id(0), 4), x * 2, mask=at < 9)

    with on(platform):
        x = jnp.arange(10.0)
        found = np.asarray(weft.jit(pl.pallas_call(kernel, out(11), grid=3))(x))
    np.testing.assert_array_equal(found, [*range(0, 18, 2), np.nan, np.nan])


@pytest.mark.parametrize("platform", under_test("cpu", "reference"))
def test_masked_parts_of_two_axes(platform):
    def kernel(x_ref, o_ref):
        i = pl.program_id(0)
        rows, columns = 2 * i + jnp.arange(2), 3 + jnp.arange(4)
        inside = (rows[:, None] < 3) & (columns < 5)
        o_ref[...] = pl.load(x_ref, (pl.ds(2 * i, 2), pl.ds(i + 3 - i, 4)), mask=inside, other=7)
        pl.store(x_ref, (0, slice(None)), jnp.zeros(5), mask=jnp.arange(5) > 2)
        pl.store(x_ref, (..., 0), 9.0, mask=jnp.arange(3) == i)

    x = np.arange(15.0, dtype=np.float32).reshape(3, 5)
    with on(platform):
        found = pl.pallas_call(kernel, out(4, 4), grid=2, out_specs=pl.BlockSpec((2, 4), lambda i: (i, 0)))(x)
    want = np.full((4, 4), 7.0)
    want[:3, :2] = x[:, 3:]
    np.testing.assert_array_equal(found, want)


def test_without_masks():
    def kernel(x_ref, o_ref):
        pl.store(o_ref, (), pl.load(x_ref, 1) + pl.load(x_ref.at[2:], 0) + pl.load(x_ref)[0])

    assert pl.pallas_call(kernel, out())(jnp.arange(4.0)) == 3


# transformations -----------------------------------------------------------------------------------------------------


def product(x, y, **more):
    """A product of matrices in blocks."""
    f, _ = cases(weft, pl, functools.partial(pl.pallas_call, **more))["matmul"]
    return f(x, y)


def matrices():
    rng = np.random.RandomState(1)
    return [rng.randn(*s).astype(np.float32) for s in ((32, 24), (24, 16), (32, 24), (24, 16))]


@pytest.mark.parametrize("platform", under_test())
def test_derivative_of_a_product(platform):
    """Indices of the grid in a kernel that is differentiated, in which real JAX fails."""
    x, y, dx, dy = matrices()
    with on(platform):
        value, tangent = weft.jit(lambda *args: weft.jvp(product, args[:2], args[2:]))(x, y, dx, dy)
    np.testing.assert_allclose(value, x @ y, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(tangent, dx @ y + x @ dy, rtol=1e-4, atol=1e-4)


def test_no_derivative_in_reverse():
    x, y, *_ = matrices()
    with pytest.raises(
        ValueError, match="matmul_kernel has no derivative in reverse mode.*weft.custom_vjp.*\n  at .*test_pallas"
    ):
        weft.grad(lambda x: product(x, y).sum())(x)
    with pytest.raises(ValueError, match="reverse mode"):
        weft.linearize(lambda x: product(x, y), x)
    weft.grad(lambda z: (product(x, y) * z).sum())(jnp.ones((32, 16)))  # a kernel of what is not differentiated

    @weft.custom_vjp
    def f(x, y):
        return product(x, y)

    f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda saved, g: (g @ saved[1].T, saved[0].T @ g))
    np.testing.assert_allclose(weft.grad(lambda x: f(x, y).sum())(x), np.ones((32, 16)) @ y.T, rtol=1e-4)


def test_no_derivative_of_shared_memory():
    f, (x,) = CASES["alias"]
    with pytest.raises(NotImplementedError, match="shares the memory of a result"):
        weft.jvp(f, (x,), (x,))


def test_programs_show_the_kernel():
    text = str(weft.make_jaxpr(product)(*matrices()[:2]))
    for part in (
        "pallas_call[",
        "blocks=(Block(16, 8), Block(8, 8), Block(16, 8))",
        "grid=(2, 2, 3)",
        "Ref{f32[16,8]}",
    ):
        assert part in text
    mapped = str(weft.make_jaxpr(weft.vmap(product, (0, None)))(np.zeros((5, 32, 24), np.float32), matrices()[1]))
    assert "grid=(5, 2, 2, 3)" in mapped and "Block(squeezed, 16, 8), Block(8, 8)" in mapped


def test_an_equal_call_is_traced_once():
    count = []

    def kernel(x_ref, o_ref):
        count.append(1)
        o_ref[...] = x_ref[...]

    f = pl.pallas_call(kernel, out(4))
    f(jnp.arange(4.0)), f(jnp.ones(4)), f([jnp.ones(())] and jnp.ones(4))
    assert len(count) == 1


def test_calls_in_kernels():
    """Functions that are compiled on their own, which ask for the index."""

    @weft.jit
    def shifted(x):
        return x + pl.program_id(0)

    def kernel(x_ref, o_ref):
        o_ref[...] = shifted(shifted(x_ref[...]))

    part = pl.BlockSpec((1,), lambda i: i)
    f = pl.pallas_call(kernel, out(4), grid=4, in_specs=[part], out_specs=part)
    assert f(jnp.zeros(4)).tolist() == [0, 2, 4, 6] == f(jnp.zeros(4)).tolist()


def test_in_loops():
    f, (x, y) = CASES["add"]
    found, _ = lax.scan(lambda c, _: (f(c, y), None), jnp.asarray(x), None, length=3)
    np.testing.assert_array_equal(found, x + 3 * y)


@pytest.mark.parametrize("platform", under_test("cpu", "wasm"))
def test_exported(platform):
    f, (x, y) = CASES["matmul"]
    with on(platform):
        exported = weft.export.export(weft.jit(f), platforms=[platform])(x, y)
        found = weft.export.deserialize(exported.serialize()).call(x, y)
    np.testing.assert_allclose(found, x @ y, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("platform", under_test("cpu", "wasm"))
def test_printing(platform, capfd):
    def kernel(x_ref, o_ref):
        pl.debug_print("point {} has {}", pl.program_id(0), x_ref[0])
        o_ref[...] = x_ref[...] + 1

    part = pl.BlockSpec((2,), lambda i: i)
    with on(platform):
        found = weft.jit(pl.pallas_call(kernel, out(4), grid=2, in_specs=[part], out_specs=part))(jnp.arange(4.0))
        weft.effects_barrier()
    assert found.tolist() == [1, 2, 3, 4]
    assert sorted(capfd.readouterr().out.splitlines()) == ["point 0 has 0.0", "point 1 has 2.0"]


def test_debug_shows_the_kernel(capsys):
    pl.pallas_call(lambda x_ref, o_ref: None, out(2), grid=3, debug=True, name="nothing")(jnp.ones(2))
    assert capsys.readouterr().out.startswith("kernel nothing, grid (3,):\n{ lambda ; a:i32[] b:Ref{f32[2]}")


# bad input -----------------------------------------------------------------------------------------------------------

X = jnp.arange(8.0)
HALF = pl.BlockSpec((4,), lambda i: i)


def run(kernel, *args, shape=out(8), **more):
    return pl.pallas_call(kernel, shape, **more)(*args)


def copies(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def reading(index):
    return lambda x_ref, o_ref: o_ref.__setitem__(0, jnp.sum(x_ref[index]))


BAD = {
    "reads outside": (
        lambda: run(reading(5), X, grid=2, in_specs=[HALF]),
        ValueError,
        r"reads or writes outside of its block: index 5 on axis 0, and its block of args\[0\] has the shape \(4,\)",
    ),
    "slice outside": (
        lambda: run(reading(pl.ds(2, 3)), X, grid=2, in_specs=[HALF]),
        ValueError,
        r"outside of its block: Slice\(start=2, size=3, stride=1\) on axis 0.*Give larger blocks",
    ),
    "writes outside": (
        lambda: run(lambda x_ref, o_ref: o_ref.__setitem__(4, 1.0), X, grid=2, out_specs=HALF),
        ValueError,
        r"outside of its block: index 4 on axis 0, and its block of out_shape has the shape \(4,\)",
    ),
    "scratch outside": (
        lambda: run(lambda x, o, s: s.__setitem__(4, 1.0), X, scratch_shapes=[pl.ANY((4,), f32)]),
        ValueError,
        r"index 4 on axis 0, and the reference has the shape \(4,\)",
    ),
    "axes of a block": (
        lambda: run(copies, X, grid=2, in_specs=[pl.BlockSpec((4, 4), lambda i: (i, 0))]),
        ValueError,
        r"the blocks of args\[0\] have the shape \(4, 4\), and the array is f32\[8\], with 1 axes",
    ),
    "size of a block": (
        lambda: run(copies, X, grid=2, in_specs=[pl.BlockSpec((0,), lambda i: i)]),
        ValueError,
        "entry 0. Give a positive int",
    ),
    "size of a block is a float": (
        lambda: run(copies, X, grid=2, in_specs=[pl.BlockSpec((4.0,), lambda i: i)]),
        ValueError,
        "entry 4.0. Give a positive int",
    ),
    "order of arguments": (lambda: pl.BlockSpec(lambda i: i, (4,)), TypeError, "shape of a block comes first"),
    "results of an index map": (
        lambda: run(copies, X, grid=2, in_specs=[pl.BlockSpec((4,), lambda i: (i, 0))]),
        ValueError,
        r"the index map <lambda> of args\[0\] returns 2 values, and its blocks have 1 axes",
    ),
    "arguments of an index map": (
        lambda: run(copies, X, grid=2, in_specs=[pl.BlockSpec((4,), lambda i, j: i)]),
        TypeError,
        r"with an index for each of the 1 axes of the grid \(2,\), and does not take that",
    ),
    "type of an index": (
        lambda: run(copies, X, grid=2, in_specs=[pl.BlockSpec((4,), lambda i: i * 1.0)]),
        TypeError,
        "where an integer belongs",
    ),
    "index map closes over an array": (
        lambda: run(copies, X, grid=2, in_specs=[pl.BlockSpec((4,), lambda i: jnp.array([0, 1])[i])]),
        ValueError,
        r"closes over i32\[2\]",
    ),
    "spec": (lambda: run(copies, X, in_specs=[4]), TypeError, r"the spec of args\[0\] is 4"),
    "number of specs": (
        lambda: run(copies, X, grid=2, in_specs=[HALF, HALF]),
        ValueError,
        r"in_specs has the structure PyTreeDef\(\(\*, \*\)\)",
    ),
    "parameters of the kernel": (
        lambda: run(copies, X, X),
        TypeError,
        "called with references to 2 operands, 1 results and 0 pieces of scratch memory.*too many",
    ),
    "kernel returns": (lambda: run(lambda x_ref, o_ref: x_ref[...], X), ValueError, "A kernel returns nothing"),
    "kernel closes over": (
        lambda: run(lambda x_ref, o_ref: o_ref.__setitem__(..., X), X),
        ValueError,
        r"closes over arrays \(f32\[8\]\)",
    ),
    "kernel closes over a tracer": (
        lambda: weft.jit(lambda y: run(lambda x_ref, o_ref: o_ref.__setitem__(..., x_ref[...] * y), X))(2.0),
        ValueError,
        r"closes over arrays \(f32\[\]\)",
    ),
    "dtype": (
        lambda: run(lambda x_ref, o_ref: o_ref.__setitem__(..., x_ref[...].astype(int)), X),
        ValueError,
        "value of dtype int32 can't be written",
    ),
    "shape": (lambda: run(lambda x_ref, o_ref: o_ref.__setitem__(..., x_ref[:4]), X), ValueError, "is not the shape"),
    "kernel": (lambda: pl.pallas_call(3, out(8)), TypeError, "kernel is a int"),
    "operand": (lambda: run(copies, "x"), TypeError, "Give arrays"),
    "out_shape": (lambda: run(copies, X, shape=(8,)), TypeError, "out_shape has 8"),
    "grid below zero": (lambda: run(copies, X, grid=-1), ValueError, "has an entry -1"),
    "grid is a float": (lambda: run(copies, X, grid=(2, 1.5)), ValueError, "has an entry 1.5"),
    "grid is traced": (lambda: weft.jit(lambda n: run(copies, X, grid=(n,)))(2), TypeError, "traced size.*pl.when"),
    "grid twice": (lambda: run(copies, X, grid=2, grid_spec=pl.GridSpec(grid=2)), ValueError, "Give either it, or"),
    "scratch": (lambda: run(copies, X, scratch_shapes=[out(4)]), TypeError, "Give pl.ANY"),
    "alias of nothing": (lambda: run(copies, X, input_output_aliases={1: 0}), ValueError, "there are 1 operands"),
    "alias of another type": (
        lambda: run(copies, jnp.arange(8), input_output_aliases={0: 0}),
        ValueError,
        r"operand 0 is i32\[8\] and result 0 is f32\[8\]",
    ),
    "alias of other blocks": (
        lambda: run(copies, X, grid=1, in_specs=[pl.BlockSpec((3,), lambda i: i)], input_output_aliases={0: 0}),
        ValueError,
        "reach beyond the array differently",
    ),
    "two aliases": (
        lambda: run(lambda *refs: None, X, X, input_output_aliases={0: 0, 1: 0}),
        ValueError,
        "gives a result two operands",
    ),
    "program_id outside": (lambda: pl.program_id(0), ValueError, "belongs in a kernel"),
    "num_programs outside": (lambda: pl.num_programs(0), ValueError, "belongs in a kernel"),
    "axis of program_id": (
        lambda: run(lambda x_ref, o_ref: pl.program_id(1), X, grid=2),
        ValueError,
        r"program_id\(1\): the grid \(2,\) has 1 axes",
    ),
    "semantics": (
        lambda: run(copies, X, grid=2, compiler_params=pl.CompilerParams(("parallel", "arbitrary"))),
        ValueError,
        "Give 'parallel' or 'arbitrary' for each axis",
    ),
    "step": (lambda: pl.loop(0, 4, step=0), ValueError, "positive int"),
    "run_scoped": (lambda: run(lambda x, o: pl.run_scoped(print, 3), X), TypeError, "pl.ANY"),
    "collective": (lambda: pl.run_scoped(print, collective_axes="x"), ValueError, "points of the grid share"),
    "indices of a masked part": (
        lambda: run(lambda x, o: o.__setitem__(0, pl.load(x, (0, 0), mask=True)), X),
        ValueError,
        "2 indices for a reference of shape",
    ),
    "stride of a masked part": (
        lambda: run(lambda x, o: pl.store(o, pl.ds(pl.program_id(0), 4, 2), x[::2], mask=True), X, grid=1),
        ValueError,
        "has a stride",
    ),
    "random keys": (lambda: run(lambda k, o: None, weft.random.key(0)), TypeError, r"args\[0\] is key<fry>.*key_data"),
    "random keys of its own": (
        lambda: run(lambda x, o, k: None, X, scratch_shapes=[pl.ANY((), weft.random.key(0).dtype)]),
        TypeError,
        "scratch_shapes is key<fry>.*wrap_key_data",
    ),
    "power of two": (lambda: pl.next_power_of_2(-1), ValueError, "not negative"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case):
    f, error, message = BAD[case]
    with pytest.raises(error, match=message):
        f()


def test_errors_name_the_line():
    with pytest.raises(ValueError) as caught:
        run(reading(5), X, grid=2, in_specs=[HALF])
    text = str(caught.value)
    assert "test_pallas.py" in text and "<lambda>" in text and len(text.splitlines()) <= 10


def test_it_can_not_be_transposed():
    with pytest.raises(ValueError, match="custom_vjp"):
        pallas_call_p.transpose([], X)
    assert registry["pallas_call"] is pallas_call_p


# names ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", pl.ABSENT)
def test_names_that_are_not_there_say_why(name):
    with pytest.raises(AttributeError, match=rf"has no attribute '{name}': .*\. (Use|Leave|Pass) "):
        getattr(pl, name)


@pytest.mark.parametrize("name", ["tpu", "triton", "mosaic_gpu"])
def test_modules_of_other_devices_say_why(name):
    with pytest.raises(ImportError, match=f"pallas.{name} is not in weft: .*pl.ANY"):
        importlib.import_module(f"weft.experimental.pallas.{name}")
    with pytest.raises(ImportError, match="Mosaic"):
        exec(f"from weft.experimental.pallas import {name}")
    assert not hasattr(pl, name)


def test_under_the_name_of_jax():
    program = (
        "import weft.as_jax\nimport jax\nfrom jax.experimental import pallas as pl\nprint(pl.cdiv(9, 4))\n"
        "try:\n    from jax.experimental.pallas import tpu as pltpu\nexcept ImportError as e:\n    print(e)\n"
    )
    lines = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    assert lines[0] == "3" and "pallas.tpu is not in weft" in lines[1] and "Mosaic" in lines[1]


# sizes ---------------------------------------------------------------------------------------------------------------


def test_sizes():
    assert [pl.cdiv(n, 4) for n in (0, 1, 4, 5)] == [0, 1, 1, 2]
    assert [pl.align_to(n, 4) for n in (0, 1, 4, 5)] == [0, 4, 4, 8]
    assert [pl.next_power_of_2(n) for n in (0, 1, 2, 3, 1025)] == [1, 1, 2, 4, 2048]
    assert pl.strides_from_shape(()) == () and pl.strides_from_shape((2, 3, 4)) == (12, 4, 1)
    assert pl.ds(3) == pl.dslice(0, 3) and pl.dslice is pl.ds
    assert weft.jit(lambda n: pl.cdiv(n, 4))(9) == 3
    assert pl.empty((2, 3), jnp.int8).dtype == jnp.int8 and pl.empty_like(out(2, 3)).shape == (2, 3)


def test_costs():
    """As real JAX counts them."""
    f = lambda a, b: jnp.exp(a @ b) + 1
    cost = pl.estimate_cost(f, out(4, 5), out(5, 6))
    assert (cost.flops, cost.transcendentals, cost.bytes_accessed) == (264, 24, 296)
    loop = pl.estimate_cost(lambda x: lax.fori_loop(0, 10, lambda i, x: jnp.sin(x), x), out(3))
    assert loop.transcendentals == 30
    assert pl.estimate_cost(lambda: jnp.zeros(3)).bytes_accessed == 12
    assert pl.estimate_cost(jnp.sum, out(7)).flops == 7


def test_what_does_not_change_values():
    part = pl.BlockSpec((4,), lambda i: i, pl.Buffered(2), memory_space=pl.MemorySpace.ANY)
    cost = pl.CostEstimate(1, 2, 3)
    more = dict(cost_estimate=cost, metadata={"a": "b"}, compiler_params=pl.CompilerParams(("parallel",)))
    f = pl.pallas_call(copies, out(8), grid=2, in_specs=[part], out_specs=part, **more)
    assert f(X).tolist() == X.tolist() and f.__name__ == "copies"
    assert pl.multiple_of(8, 4) == 8 and str(pl.ANY) == "any"
    assert repr(pl.GridSpec(grid=2)).startswith("GridSpec(grid=(2,), in_specs=no_block_spec")
    assert pl.reciprocal(jnp.float32(2), approx=True) == 0.5 and pl.broadcast_to(1, [2]).tolist() == [1, 1]
