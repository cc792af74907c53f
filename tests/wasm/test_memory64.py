"""Memories of 64-bit addresses: what lies beyond 4 GiB is computed as what lies below."""

import numpy as np
import pytest
import weft
import weft.numpy as jnp
from test_memory import F32, compiled
from weft.core.trace import get_aval
from weft_wasm.passes import threads
from weft_wasm.backends.wasm import WasmBackend
from weft_wasm.runtimes.desktop import DesktopRuntime
from weft_wasm.lower.types import LoweringError
from weft_wasm.runtimes.memory import DeviceMemoryError

HIGH = 5 << 30  # reserved, never touched
rng = np.random.default_rng(0)
X, I = rng.normal(size=(40, 30)).astype(F32), rng.integers(0, 40, 17).astype(np.int32)

PROGRAMS = {
    "products": (lambda x: (x @ x.T, x.T @ x, jnp.tanh(x) * 2 + 1), [X]),
    "sums": (lambda x: (x.sum(), x.sum(0), x.max(1), jnp.cumsum(x, 0)), [rng.normal(size=(300, 70)).astype(F32)]),
    "indices": (lambda x, i: (x[i], x.at[i].add(1.0), jnp.take_along_axis(x, jnp.argsort(x, 1), 1)), [X, I]),
    "loops": (lambda x: weft.lax.scan(lambda c, r: (c * 0.5 + r, jnp.where(c.sum() > 0, c, r)), x[0], x), [X]),
    "windows": (
        lambda x: weft.lax.conv_general_dilated(
            x[None, :, :, None], jnp.ones((3, 3, 1, 5), F32), (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        ),
        [X],
    ),
    "factors": (lambda x: jnp.linalg.cholesky(x.T @ x), [X]),
    "transforms": (lambda x: jnp.fft.fft(x).real, [X]),
    "branches": (lambda x, n: weft.lax.switch(n, [jnp.sin, jnp.cos, lambda x: x[::-1]], x), [X, np.int32(2)]),
    "callbacks": (
        lambda x: weft.pure_callback(lambda a: np.asarray(a) * 2, weft.ShapeDtypeStruct(X.shape, X.dtype), x) + 1,
        [X],
    ),
    "callbacks of many arrays": (
        lambda x: weft.pure_callback(
            lambda *xs: [np.asarray(a) + k for k, a in enumerate(xs)],
            [weft.ShapeDtypeStruct((), F32)] * 9,
            *[x[k, 0] * 2 for k in range(9)],
        ),
        [X],
    ),
}


def results(backend, fun, args) -> list:
    run, device = compiled(backend, fun, *args), backend.devices()[0]
    return [np.asarray(out._host()) for out in run.execute([backend.put(x, get_aval(x), device, False) for x in args])]


@pytest.mark.parametrize("name", PROGRAMS)
def test_beyond_four_gib_as_below(name, monkeypatch):
    fun, args = PROGRAMS[name]
    want = results(WasmBackend(DesktopRuntime()), fun, args)
    for count in (1, 3):
        backend = WasmBackend(DesktopRuntime(threads=count, memory64=True))
        backend.runtime.alloc(HIGH)
        got = results(backend, fun, args)
        assert len(got) == len(want)
        for a, b in zip(got, want):
            np.testing.assert_array_equal(a, b)
        with monkeypatch.context() as patch:  # and where every loop is shared
            patch.setattr(threads, "WORTH", 0)
            for a, b in zip(results(backend, fun, args), want):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_a_device_has_64_bit_addresses_only_where_asked():
    assert "memory64" not in DesktopRuntime().features
    assert "memory64" in DesktopRuntime(memory64=True).features


def test_callbacks_in_the_upper_half_of_four_gib():
    """Addresses of 32 bits come from a module with a sign."""
    fun, args = PROGRAMS["callbacks"]
    backend = WasmBackend(DesktopRuntime())
    backend.runtime.alloc(5 << 29)
    np.testing.assert_array_equal(results(backend, fun, args)[0], X * 2 + 1)


def test_more_than_four_gib_of_arrays():
    backend = WasmBackend(DesktopRuntime(memory64=True))
    held = [backend.runtime.alloc(3 << 30) for _ in range(3)]
    assert held[-1] >= 6 << 30 and backend.runtime.stats()["allocated"] >= 9 << 30
    with pytest.raises(DeviceMemoryError, match=r"no room for 8589934592 bytes: .* of the 17179869184 (?!.*MEMORY64)"):
        backend.runtime.alloc(8 << 30)
    for p in held:
        backend.runtime.free(p)
    assert backend.runtime.stats()["allocated"] == 0


def test_what_needs_it_says_so():
    grow = lambda x: (x[:, None] * x[None, :]).astype("int8")
    with pytest.raises(LoweringError, match="addresses 4 GiB.*WEFT_WASM_MEMORY64=1.*memory64=1"):
        compiled(WasmBackend(DesktopRuntime()), lambda x: x[:, None] * x[None, :], np.ones(40_000, F32))
    with pytest.raises(LoweringError, match="addresses 16 GiB, and indexes up to 2.31 elements") as told:
        compiled(WasmBackend(DesktopRuntime(memory64=True)), grow, np.ones(50_000, F32))
    assert "MEMORY64" not in str(told.value)
    compiled(WasmBackend(DesktopRuntime(memory64=True)), lambda x: x[:, None] * x[None, :], np.ones(40_000, F32))
    with pytest.raises(DeviceMemoryError, match="WEFT_WASM_MEMORY64=1"):
        DesktopRuntime().alloc(1 << 33)
