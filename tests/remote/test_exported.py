"""Exported programs on a host in another process: specialised here for the sizes of each call, compiled there."""

import numpy as np
import pytest
import weft
import weft.numpy as jnp
from weft import export


def test_a_file_runs_on_a_host(session):
    w = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    f = weft.jit(lambda x: jnp.tanh(x @ w).mean(0) / x.shape[0])
    spec = weft.ShapeDtypeStruct(export.symbolic_shape("b, 4"), np.float32)
    e = export.deserialize(export.export(f, platforms=("cpu", "remote"))(spec).serialize(vjp_order=1))
    for n in (1, 5):
        x = np.linspace(0, 1, 4 * n, dtype=np.float32).reshape(n, 4)
        out = e.call(weft.device_put(x))
        assert out.device.platform == "remote"
        np.testing.assert_allclose(out, np.tanh(x @ w).mean(0) / n, rtol=1e-5)
        want = (1 - np.tanh(x @ w) ** 2) @ w.T / n / n
        np.testing.assert_allclose(weft.jit(weft.grad(lambda x: e.call(x).sum()))(x), want, rtol=1e-4, atol=1e-6)


def test_the_host_s_own_platform_counts(session):
    x = np.float32([0.5, 1.0])
    f = export.export(weft.jit(jnp.sin), platforms=("reference",))(x)
    out = f.call(weft.device_put(x))
    assert out.device.platform == "remote" and out.device.host_platform == "reference"
    np.testing.assert_allclose(out, np.sin(x), rtol=1e-6)
    with pytest.raises(
        ValueError, match=r"exported for platforms '\('tpu',\)' but it is used on 'reference or remote'"
    ):
        export.export(weft.jit(jnp.sin), platforms=("tpu",))(x).call(weft.device_put(x))
