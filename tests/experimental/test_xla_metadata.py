"""weft.experimental.xla_metadata and scheduling_groups: words for XLA about operations, which change no value."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft.experimental.compute_on import compute_on
from weft.experimental.scheduling_groups import scheduling_group, xla_metadata_call
from weft.experimental.xla_metadata import set_xla_metadata
from platforms import need

X = jnp.arange(3.0)


def line(f, operation: str) -> str:
    need("cpu")
    text = weft.jit(f).lower(X).as_text()
    (found,) = [part for part in text.splitlines() if f"stablehlo.{operation} " in part]
    return found


def test_operations_of_a_block():
    def f(x):
        with set_xla_metadata(part="encoder", n=1):
            with set_xla_metadata(b=True, n=None), compute_on("device_host"):
                y = jnp.sin(x)
            z = jnp.cos(y)
        return -z

    assert '{_xla_compute_type = "host", b = "true", part = "encoder"}' in line(f, "sine")
    assert '{n = "1", part = "encoder"}' in line(f, "cosine")
    assert "attributes" not in line(f, "negate")


def test_functions():
    named = set_xla_metadata(part="encoder")(jnp.sin)
    assert 'part = "encoder"' in line(named, "sine")
    assert 'scheduling_group = "loads"' in line(scheduling_group("loads")(jnp.sin), "sine")
    assert 'a = "1.5"' in line(xla_metadata_call(a=1.5)(jnp.sin), "sine")


def test_values():
    f = lambda x: set_xla_metadata({"y": jnp.sin(x) * x, "x": x}, part="decoder")
    assert 'part = "decoder"' in line(f, "multiply") and "attributes" not in line(f, "sine")
    np.testing.assert_array_equal(f(X)["x"], X)
    assert "xla_metadata_value" in str(weft.make_jaxpr(f)(X))
    slope = weft.grad(lambda x: set_xla_metadata(jnp.sin(x), part="decoder").sum())
    np.testing.assert_allclose(slope(X), np.cos(X), rtol=1e-6)
    np.testing.assert_allclose(weft.vmap(lambda x: f(x)["y"])(X), np.sin(X) * X, rtol=1e-6)


def test_other_values_are_refused():
    with pytest.raises(TypeError, match="got .1. for 'a'"):
        set_xla_metadata(a=[1])
