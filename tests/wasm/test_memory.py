"""Memory: nothing grows over many calls, and what does not fit is refused and loses nothing."""

import numpy as np
import pytest
import weft
import weft.numpy as jnp
from wasm_harness import jaxpr_of
from weft.core.trace import get_aval
from weft.runtime.backend import CompileOptions
from weft_wasm.backends.wasm import WasmBackend
from weft_wasm.runtimes.desktop import DesktopRuntime
from weft_wasm.lower.types import LoweringError
from weft_wasm.runtimes.memory import DeviceMemoryError

F32 = np.float32


def compiled(backend, fun, *args, **options):
    jaxpr, consts = jaxpr_of(fun, args)
    assert not consts
    return backend.compile(jaxpr, backend.devices()[0], CompileOptions(**options))


def test_ten_thousand_calls_grow_nothing():
    backend = WasmBackend(DesktopRuntime())
    put = lambda x: backend.put(x, get_aval(x), backend.devices()[0], False)

    def step(x, n):
        carry, rows = weft.lax.scan(lambda c, k: (c * 0.5 + k, c.sum()), x, jnp.arange(4, dtype="float32"))
        return carry.at[n].set(1.0), rows, weft.lax.cond(n > 2, lambda c: c + 1, lambda c: jnp.sort(c), carry)

    x, n = np.arange(6, dtype=F32), np.int32(3)
    run = compiled(backend, step, x, n, donated=(True, False))
    x, n = put(x), put(n)
    x = run.execute([x, n])[0]
    before, pages = backend.runtime.stats()["allocated"], backend.runtime.device.pages
    for _ in range(10_000):
        x = run.execute([x, n])[0]
    assert backend.runtime.stats()["allocated"] == before
    assert backend.runtime.device.pages == pages
    assert np.isfinite(np.asarray(x._host())).all()


def test_a_full_memory_raises_and_the_next_call_works():
    backend = WasmBackend(DesktopRuntime(limit=1 << 22))
    put = lambda x: backend.put(x, get_aval(x), backend.devices()[0], False)
    x = np.arange(1 << 18, dtype=F32)
    outer = compiled(backend, lambda a: jnp.stack([a, a + 1, a + 2, a + 3, a + 4]), x)
    small = compiled(backend, lambda a: a + 1, x)
    on_device = put(x)
    before = backend.runtime.stats()["allocated"]
    with pytest.raises(DeviceMemoryError, match="5242880 bytes"):
        outer.execute([on_device])
    assert backend.runtime.stats()["allocated"] == before
    np.testing.assert_array_equal(np.asarray(small.execute([on_device])[0]._host()), x + 1)
    np.testing.assert_array_equal(np.asarray(on_device._host()), x)


@pytest.mark.parametrize(
    "fun, size, what",
    [
        (lambda x: x[:, None] * x[None, :], 1 << 16, r"mul is f32\[65536,65536\], 17179869184 bytes.*test_memory.py"),
        (
            lambda x: jnp.sort(x[:, None] * x[None, :], axis=1).sum(),
            1 << 16,
            r"\[65536,65536\], 17179869184 bytes.*test_memory.py",
        ),
        (
            lambda x: jnp.full((3_000_000_000,), x[0].astype("int8")),
            4,
            r"broadcast_in_dim is i8\[3000000000\].*test_memory.py",
        ),
        (
            lambda x: weft.lax.sort([x[:, None] * (x[None, :] + k) for k in range(5)])[4].sum(),
            16_384,
            "main needs .* for what it computes on the way",
        ),
        (
            lambda x: weft.lax.reduce_max(weft.lax.iota("int32", 1 << 31), (0,)),
            1,
            "reduce_max is a loop of 2147483648 iterations.*test_memory.py",
        ),
        (
            lambda x: (x[:, None] + x[None, :]).argmax(),
            1 << 16,
            "argmax is a loop of 4294967296 iterations.*test_memory.py",
        ),
        (
            lambda x: weft.lax.scan(lambda c, _: (c * 2 + 1, None), x[0], None, length=1 << 31)[0],
            1,
            "scan is a loop of 2147483648 iterations.*test_memory.py",
        ),
    ],
    ids=[
        "result",
        "intermediate",
        "elements",
        "together",
        "numbers that are not stored",
        "indices of a product",
        "a long loop",
    ],
)
def test_what_cannot_fit_is_refused_when_it_is_compiled(fun, size, what):
    with pytest.raises(LoweringError, match=what):
        compiled(WasmBackend(DesktopRuntime()), fun, np.ones(size, F32))
