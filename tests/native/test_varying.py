"""Derivatives inside shard_map, where types say along which devices values vary, against frozen results of jax."""
import json
import pathlib

import numpy as np
import pytest
from varying_cases import cases, leaves

import weft
from weft import lax

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
        seen.update(x=x, w=w, same=same, product=x * w, gathered=lax.all_gather(x, "x"), index=lax.axis_index("y"), cast=lax.pcast(w, ("x", "y"), to="varying"))
        seen["scanned"] = lax.scan(lambda c, t: (c + t * lax.axis_index("x"), c), 0.0, x)[0]
        seen["chosen"], seen["constant"] = lax.cond(lax.axis_index("y") > 0, lambda v: (v, 1.0), lambda v: (-v, 2.0), x)
        seen["chosen alike"], seen["one varies"] = lax.switch(lax.convert_element_type(w, "int32"), [lambda v: (w, v)] * 2 + [lambda v: (w, v + lax.axis_index("y"))], x)
        return same
    mesh = weft.make_mesh((4, 2), ("x", "y"))
    out = weft.make_jaxpr(weft.shard_map(body, mesh=mesh, in_specs=(weft.P("x"), weft.P()), out_specs=weft.P()))(np.ones(8, np.float32), 2.0)
    vary = {name: set(value.aval.vma) for name, value in seen.items()}
    assert vary == {"x": {"x"}, "w": set(), "same": set(), "product": {"x"}, "gathered": {"x"}, "index": {"y"}, "cast": {"x", "y"}, "scanned": {"x"},
                    "chosen": {"x", "y"}, "constant": {"y"}, "chosen alike": set(), "one varies": {"x", "y"}}
    assert "f32[2]{V:x}" in str(out) and not out.out_avals[0].vma


def test_pcast_takes_axes_in_scope():
    with pytest.raises(ValueError, match="'varying'"):
        lax.pcast(1.0, "x", to="reduced")
    with pytest.raises(NameError, match="unbound"):
        lax.pcast(1.0, "x", to="varying")
