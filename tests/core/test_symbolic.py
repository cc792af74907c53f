"""Symbolic dimensions: their arithmetic and comparisons as JAX has them, and programs traced with them against
programs traced with numbers.
"""

import itertools
import json
import pathlib
import random

import numpy as np
import pytest
import weft
import weft.numpy as jnp
from weft import core, export, lax
from weft.symbolic.bounds import bounds
from weft.symbolic.dims import Dim, Factor
from weft.symbolic.parser import parse_dimension
from weft.core.interpret import interpret
from weft.core.jaxpr import ClosedJaxpr
from weft.symbolic.specialize import solve, specialize
from weft.core.verify import verify
from weft.errors import InconclusiveDimensionOperation
from weft.transforms.physical import lower_types

from .symbolic_cases import outcomes
from .symbolic_programs import PROGRAMS

EXPECTED = json.loads((pathlib.Path(__file__).parent / "symbolic_expected.json").read_text())["cases"]
SIZES = ({"a": 3, "b": 4, "c": 2, "n": 2, "h": 3, "w": 5}, {"a": 5, "b": 2, "c": 3, "n": 1, "h": 8, "w": 4})


@pytest.fixture(scope="module")
def found():
    return outcomes(export.symbolic_shape, export.SymbolicScope, core.max_dim, core.min_dim)


@pytest.mark.parametrize("group", list(EXPECTED))
def test_expressions_are_those_of_jax(found, group):
    assert found[group] == EXPECTED[group]


def random_expression(rng, names, depth):
    """(text over names, in which max and min are functions)."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice([*names, str(rng.randint(1, 5))])
    op = rng.choice(["+", "-", "*", "//", "%", "max", "min"])
    x = random_expression(rng, names, depth - 1)
    if op in ("//", "%"):
        return f"(({x}) {op} {rng.choice([2, 3, 'b', -2])})"
    y = random_expression(rng, names, depth - 1)
    return f"{op}_({x}, {y})" if op in ("max", "min") else f"({x} {op} {y})"


def test_arithmetic_is_that_of_integers_and_bounds_are_sound():
    rng = random.Random(0)
    pool = ["a >= 3", "b <= 4", "a <= 2*b", "mod(a, 2) == 0", "a + b <= 7", "b >= 2"]
    for _ in range(300):
        constraints = rng.sample(pool, rng.randint(0, 3))
        scope = export.SymbolicScope(constraints)
        a, b = export.symbolic_shape("a, b", scope=scope)
        text = random_expression(rng, "ab", 3)
        x = eval(text, {"a": a, "b": b, "max_": core.max_dim, "min_": core.min_dim})
        if isinstance(x, Dim):  # what is printed is read again as the same
            assert parse_dimension(str(x), scope) == x and hash(parse_dimension(str(x), scope)) == hash(x)
        low, high = bounds(x)
        for va, vb in itertools.product(range(1, 8), repeat=2):
            if all(eval(c, {"a": va, "b": vb, "mod": lambda p, q: p % q}) for c in constraints):
                want = eval(text, {"a": va, "b": vb, "max_": max, "min_": min})
                assert (x.substitute({"a": va, "b": vb}) if isinstance(x, Dim) else x) == want, (
                    text,
                    constraints,
                    va,
                    vb,
                )
                assert low <= want <= high, (text, constraints, va, vb, low, high)


def test_scopes_do_not_mix():
    (a,), (b,) = export.symbolic_shape("a"), export.symbolic_shape("a")
    assert a != b and a == a and hash(a) == hash(a + 0)
    for op in (lambda: a + b, lambda: a * b, lambda: a // b, lambda: a >= b, lambda: core.max_dim(a, b)):
        with pytest.raises(ValueError, match="mixing of symbolic scopes"):
            op()
    with pytest.raises(ValueError, match="both a `scope` and `constraints`"):
        export.symbolic_shape("a", scope=a.scope, constraints=["a >= 2"])


def test_both_sides_of_an_equality_bound_each_other():
    """Of one that can't replace its left side everywhere: half of an odd number is no size."""
    a, b = export.symbolic_shape("a, b", constraints=["2*a == b", "b >= 8"])
    assert a >= 4 and a + b >= 12
    a, b = export.symbolic_shape("a, b", constraints=["2*a == b", "b <= 8"])
    assert a <= 4 and a + b <= 12


def test_a_division_without_a_remainder_can_be_undone():
    (a,) = export.symbolic_shape("a", constraints=["mod(a, 4) == 0"])
    assert a // 4 * 4 == a and 4 * (a // 4) + 1 == a + 1


def test_errors_say_what_is_known_and_what_to_do():
    a, b = export.symbolic_shape("a, b", constraints=["a >= 4"])
    with pytest.raises(
        InconclusiveDimensionOperation, match=r"'a' > 'b' is inconclusive(.|\n)*a >= 4(.|\n)*constraints="
    ) as e:
        bool(a > b)
    assert len(str(e.value).splitlines()) <= 10
    with pytest.raises(InconclusiveDimensionOperation, match="no value outside a traced program"):
        jnp.arange(3) + a
    with pytest.raises(InconclusiveDimensionOperation, match="'a \\+ 1' has no value outside a traced program"):
        np.asarray(a + 1)
    with pytest.raises(ValueError, match="too large|more than 500 terms"):
        (sum(export.symbolic_shape(", ".join(f"v{i}" for i in range(12)))) + 1) ** 9


@pytest.mark.parametrize(
    "text",
    [
        "(" * 50,
        "max(" * 50 + "a",
        "a^100000",
        "9" * 30,
        "a" * 5000,
        "a b",
        "floordiv(a, 0)",
        "\x00",
        "a +",
        "é",
        "max(a,",
        "a,",
    ],
)
def test_bad_text_is_refused(text):
    with pytest.raises(ValueError):
        parse_dimension(text, export.SymbolicScope())


def test_shapes_and_types_with_symbolic_sizes():
    b, n = export.symbolic_shape("b, 2*n")
    spec = weft.ShapeDtypeStruct((b, n, 3), jnp.float32)
    assert (
        repr(spec) == "ShapeDtypeStruct(shape=(b, 2*n, 3), dtype=float32)"
        and str(spec.size) == "6*b*n"
        and hash(spec) == hash(spec)
    )
    assert core.ShapedArray((b, 2), jnp.float32).str_short(short_dtypes=True) == "f32[b,2]"
    assert core.ShapedArray((b,), "int32") == core.ShapedArray((b,), "int32")
    out = weft.eval_shape(lambda x: (x.reshape(x.shape[0], -1), x.sum(0), x.shape[1] * 1.5), spec)
    assert [str(o.shape) for o in out] == ["(b, 6*n)", "(2*n, 3)", "()"] and export.is_symbolic_dim(out[0].shape[0])
    assert str(weft.make_jaxpr(lambda x: x[1:, ::2].mean())(spec)).count("dim_as_value") == 1
    assert core.is_constant_shape((2, 3)) and not core.is_constant_shape((2, b))


def test_specs_of_arguments():
    args = {"x": np.ones((3, 4), np.float32), "y": np.ones(4, np.int32)}
    specs = export.symbolic_args_specs((args, 1.0), ({"x": "b, ...", "y": "_"}, None), constraints=["b >= 2"])
    assert (
        str(specs[0]["x"].shape) == "(b, 4)"
        and specs[0]["y"].shape == (4,)
        and specs[1].shape == ()
        and specs[0]["x"].shape[0] >= 2
    )
    same = export.symbolic_args_specs([args["y"]] * 2, "b")
    assert same[0].shape == same[1].shape
    with pytest.raises(ValueError, match="both"):
        export.symbolic_args_specs(args, None, ["b >= 2"], export.SymbolicScope())


def specs_of(shapes):
    scope = export.SymbolicScope()
    pairs = [s.partition(":")[::2] for s in shapes]
    return [weft.ShapeDtypeStruct(export.symbolic_shape(s, scope=scope), d or "float32") for s, d in pairs]


def values_for(specs, sizes, rng):
    shapes = [tuple(n.substitute(sizes) if isinstance(n, Dim) else n for n in s.shape) for s in specs]
    return [
        rng.integers(0, 2, s).astype(np.int32) if spec.dtype == np.int32 else rng.random(s, np.float32)
        for s, spec in zip(shapes, specs)
    ]


def run(closed, args):
    return interpret(lower_types(closed), args)


@pytest.mark.parametrize("name,fun,shapes", [pytest.param(*p, id=p[0]) for p in PROGRAMS])
def test_specialised_programs_equal_concrete_ones(name, fun, shapes):
    specs = specs_of(shapes)
    symbolic = weft.make_jaxpr(fun)(*specs)
    verify(symbolic)
    rng = np.random.default_rng(0)
    for sizes in SIZES:
        args = values_for(specs, sizes, rng)
        special = ClosedJaxpr(specialize(symbolic.jaxpr, sizes), symbolic.consts)
        verify(special)
        concrete = weft.make_jaxpr(fun)(*args)
        assert [(a.shape, a.dtype) for a in special.out_avals] == [(a.shape, a.dtype) for a in concrete.out_avals]
        for got, want in zip(run(special, args), run(concrete, args), strict=True):
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


# Each takes arrays of shape (a, b) and returns one.
STEPS = [
    lambda x: x * 2 + x.shape[0],
    lambda x: x - x.mean(0),
    lambda x: x / x.shape[1],
    lambda x: x.T @ x @ x.T if x.shape[0] is x.shape[1] else x @ x.T @ x,
    lambda x: x.reshape(-1).reshape(x.shape),
    lambda x: jnp.concatenate([x[1:], x[:1]]),
    lambda x: jnp.concatenate([x, x])[: x.shape[0]],
    lambda x: x[::-1],
    lambda x: jnp.pad(x, 1)[1:-1, 1:-1],
    lambda x: jnp.cumsum(x, 1),
    lambda x: x + jnp.arange(x.shape[1]),
    lambda x: x[jnp.arange(x.shape[0])[::-1]],
    lambda x: jnp.where(x > x.sum() / x.size, x, -x),
    lambda x: lax.scan(lambda c, r: (c + r, c), x[0], x)[1],
    lambda x: weft.vmap(jnp.sin)(x),
    lambda x: weft.grad(lambda y: (y**2).mean())(x),
    lambda x: jnp.sort(x, 1),
    lambda x: x.at[0].add(x.shape[0]),
    lambda x: weft.jit(lambda y: jnp.tanh(y) * y.shape[1])(x),
    lambda x: jnp.broadcast_to(x[:, :1], x.shape),
    lambda x: x * jnp.tri(*x.shape),
    lambda x: jnp.repeat(x, 2, axis=0)[::2],
    lambda x: jnp.roll(x, 1, axis=1),
    lambda x: x.max(1, keepdims=True) + x,
    lambda x: jnp.stack([x, -x]).sum(0) + x,
    lambda x: jnp.flip(x, 1)[:, : x.shape[1] // 2 + 1].sum(1, keepdims=True) + x,
]


@pytest.mark.parametrize("seed", range(24))
def test_random_programs_equal_concrete_ones(seed):
    steps = random.Random(seed).choices(STEPS, k=7)

    def fun(x):
        for step in steps:
            x = step(x)
            x = x / (1 + jnp.abs(x).max())
        return x, x.sum()

    test_specialised_programs_equal_concrete_ones("random", fun, ["a, b"])


def test_solving():
    a, b, c = export.symbolic_shape("a, b, c")
    every = frozenset("abc")
    eqs = [(2 * a + 1, 7, "x[0]"), (a * b, 12, "x[1]"), (b + c, 9, "x[2]"), (a // 2, 1, "x[3]")]
    assert solve(eqs, every) == {"a": 3, "b": 4, "c": 5}
    for bad, match in [
        ([(2 * a, 7, "x[0]")], "not be an integer"),
        ([(a + 3, 3, "x[0]")], "at least 1"),
        ([(a, 3, "x[0]"), (a + 1, 5, "x[1]")], r"x\[1\]: expected 'a \+ 1', which is 4 since a = 3"),
        ([(a * b, 12, "x[0]")], "Cannot solve"),
    ]:
        with pytest.raises(ValueError, match=match):
            solve(bad, frozenset("ab" if match == "Cannot solve" else "a"))


def test_arrays_outside_of_traced_programs_have_numbers():
    (b,) = export.symbolic_shape("b")
    for make in (
        lambda: jnp.zeros(b),
        lambda: jnp.arange(b),
        lambda: weft.jit(lambda: jnp.zeros(b).sum())(),
        lambda: weft.jit(lambda x: (x + 1, x * 2, jnp.zeros(b).sum()))(1.0),
        lambda: weft.jit(lambda x: x + b)(1),
        lambda: weft.jit(lambda x: x)(b),
    ):
        with pytest.raises(InconclusiveDimensionOperation, match="symbolic dimension"):
            make()
    with pytest.raises(ValueError, match="compiler needs numbers"):
        weft.jit(lambda x: x).lower(weft.ShapeDtypeStruct((b,), "float32")).compile()
    with pytest.raises(ValueError, match="Unsatisfiable constraints: a >= 4, a <= 3"):
        export.symbolic_shape("a", constraints=["a >= 4", "a <= 3"])


def test_a_size_is_found_beside_a_product_of_others():
    a, b, c = export.symbolic_shape("a, b, c")
    shapes = [weft.ShapeDtypeStruct(shape, "float32") for shape in ((a * b + c,), (a, b))]
    f = export.export(weft.jit(lambda x, y: x[y.size :]))(*shapes)
    assert f.call(np.arange(10.0, dtype=np.float32), np.ones((2, 3), np.float32)).tolist() == [6, 7, 8, 9]
    with pytest.raises(ValueError, match="for which c = 0; dimension variables are at least 1"):
        f.call(np.ones(6, np.float32), np.ones((2, 3), np.float32))


def test_a_factor_equals_factors_alone():
    factor, other = Factor("n"), Factor("n")
    assert factor == other and factor != Factor("m") and factor != "n" and factor != other.key
