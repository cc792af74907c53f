"""Derivatives inside shard_map, where types say along which devices values vary, against frozen results of jax."""

import json
import pathlib

import numpy as np
import pytest
from varying_cases import cases, leaves

import weft
from weft import lax
from weft.sharding import AxisType

EXPECTED = json.loads(pathlib.Path(__file__).with_name("varying_expected.json").read_text())["values"]
CASES = cases(weft)


@pytest.mark.parametrize("name", CASES)
def test_as_jax_has_it(name):
    for got, want in zip(leaves(CASES[name]()), EXPECTED[name], strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=1e-5)


def test_types_say_where_values_vary():
    seen = {}

    def body(x, w):
        same = lax.psum(x, "x")
        seen.update(
            x=x,
            w=w,
            same=same,
            product=x * w,
            gathered=lax.all_gather(x, "x"),
            index=lax.axis_index("y"),
            cast=lax.pcast(w, ("x", "y"), to="varying"),
        )
        seen["scanned"] = lax.scan(lambda c, t: (c + t * lax.axis_index("x"), c), 0.0, x)[0]
        seen["chosen"], seen["constant"] = lax.cond(lax.axis_index("y") > 0, lambda v: (v, 1.0), lambda v: (-v, 2.0), x)
        seen["chosen alike"], seen["one varies"] = lax.switch(
            lax.convert_element_type(w, "int32"), [lambda v: (w, v)] * 2 + [lambda v: (w, v + lax.axis_index("y"))], x
        )
        return same

    mesh = weft.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    out = weft.make_jaxpr(weft.shard_map(body, mesh=mesh, in_specs=(weft.P("x"), weft.P()), out_specs=weft.P()))(
        np.ones(8, np.float32), 2.0
    )
    vary = {name: set(value.aval.vma) for name, value in seen.items()}
    assert vary == {
        "x": {"x"},
        "w": set(),
        "same": set(),
        "product": {"x"},
        "gathered": {"x"},
        "index": {"y"},
        "cast": {"x", "y"},
        "scanned": {"x"},
        "chosen": {"x", "y"},
        "constant": {"y"},
        "chosen alike": set(),
        "one varies": {"x", "y"},
    }
    assert "f32[2]{V:x}" in str(out) and not out.out_avals[0].vma


@pytest.mark.parametrize(
    "checked,to,out,gradient",
    [
        (True, "varying", "x", 4),
        (True, "invarying", None, 1),
        (False, "varying", "x", 4),
        (False, "varying", None, 1),
        (False, "invarying", None, 0.25),
    ],
)
def test_gathered_values_may_be_the_same_everywhere(checked, to, out, gradient):
    """Derivatives as jax 0.10.2 has them, also where nobody checks what varies."""
    n = np.arange(8, dtype=np.float32)
    seen = []

    def body(x):
        seen.append(lax.all_gather(x, "x", tiled=True, to=to))
        return seen[-1] * n

    f = weft.shard_map(
        body,
        mesh=weft.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,)),
        in_specs=weft.P("x"),
        out_specs=weft.P(out),
        check_vma=checked,
    )
    np.testing.assert_array_equal(np.asarray(weft.grad(lambda x: f(x).sum())(n)), n * np.float32(gradient))
    np.testing.assert_array_equal(np.asarray(weft.jvp(f, (n,), (n,))[1])[:8], n * n)
    assert set(seen[0].aval.vma) == ({"x"} if checked and to == "varying" else set())


def test_gathered_values_that_are_the_same_everywhere():
    two = weft.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    over = lambda f, mesh, given, out: weft.jit(
        weft.shard_map(f, mesh=mesh, in_specs=weft.P(given), out_specs=weft.P(out))
    )
    gather = lambda names, **more: lambda x: lax.all_gather(x, names, to="invarying", **more)
    x = np.array([-0.0, 0, np.inf, np.nan, 1, 2, 3, 4], np.float32)
    for got in (
        over(gather(("x", "y"), tiled=True), two, ("x", "y"), None)(x),
        over(gather("y", tiled=True), two, ("x", "y"), "x")(x),
    ):
        np.testing.assert_array_equal(np.asarray(got).view("int32"), x.view("int32"))
    four = weft.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
    assert np.asarray(over(gather("x", axis=-1), four, "x", None)(x > 0)).tolist() == (x > 0).reshape(4, 2).T.tolist()
    rows = np.arange(16, dtype=np.int32).reshape(8, 2)
    assert (
        np.asarray(over(weft.vmap(gather("x", tiled=True), in_axes=1), four, "x", None)(rows)).tolist()
        == rows.T.tolist()
    )
    with pytest.raises(NotImplementedError, match="groups gather different results"):
        over(gather("x", axis_index_groups=[[0, 1], [2, 3]]), four, "x", None)(x)
    with pytest.raises(NotImplementedError, match="no types that say 'reduced'"):
        over(lambda x: lax.all_gather(x, "x", to="reduced"), four, "x", None)(x)


def test_pcast_takes_axes_in_scope():
    with pytest.raises(ValueError, match="'varying'"):
        lax.pcast(1.0, "x", to="reduced")
    with pytest.raises(NameError, match="unbound"):
        lax.pcast(1.0, "x", to="varying")
