"""The WebGPU backend as a user meets it: jit programs, the digits example, memory, errors, NumPy absent."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from platforms import need
import weft
import weft.numpy as jnp
from weft import lax
from weft.core.interpret import interpret
from weft.errors import BackendError
from weft.transforms.physical import lower_types
from weft_wasm.artifact import Artifact
from weft_wasm.backends.cache import Programs
from weft_wasm.backends.webgpu import check_dtypes

DIGITS = Path(__file__).parents[2] / "examples" / "digits"


@pytest.fixture(autouse=True)
def on_webgpu(backend):
    before = weft.config.platforms
    weft.config.update("jax_platforms", "webgpu")
    yield
    weft.config.update("jax_platforms", before)


def submits(backend, call) -> int:
    before = backend.runtime.device.submits
    call()
    return backend.runtime.device.submits - before


def by_reference(fun, *args) -> list:
    """Results by the primitives' reference rules."""
    leaves, tree = weft.tree_util.tree_flatten(args)
    closed = weft.make_jaxpr(lambda *xs: weft.tree_util.tree_leaves(fun(*tree.unflatten(xs))))(*leaves)
    return interpret(lower_types(closed), [np.asarray(x) for x in leaves])


def agree(fun, *args, rtol=1e-5, atol=1e-6) -> None:
    want = by_reference(fun, *args)
    got = weft.tree_util.tree_leaves(weft.jit(fun)(*args))
    assert len(got) == len(want)
    for g, w in zip(got, want):
        np.testing.assert_allclose(np.asarray(g), w, rtol=rtol, atol=atol)


# ---- programs


@pytest.fixture
def digits(monkeypatch):
    assert (DIGITS / "digits.bin").exists(), "examples/digits/digits.bin is made by `make examples/digits/digits.bin`"
    monkeypatch.syspath_prepend(str(DIGITS))
    sys.modules.pop("digits", None)
    import digits

    yield digits
    sys.modules.pop("digits", None)


def test_a_step_of_the_digits_program(digits, backend):
    key = weft.random.PRNGKey(0)
    rng = np.random.default_rng(0)
    images = jnp.asarray(rng.random((digits.TRAIN, 64), np.float32))
    labels = jnp.asarray(rng.integers(0, 10, digits.TRAIN).astype(np.int32))
    params = digits.init(key)
    zeros = weft.tree.map(jnp.zeros_like, params)
    state = params, zeros, zeros, jnp.int32(0)
    agree(digits.step, state, key, images, labels)
    assert submits(backend, lambda: digits.step(state, key, images, labels)) == 1


@pytest.mark.slow
def test_losses_of_the_digits_program_are_those_of_xla(digits):
    need("cpu")

    def losses(platform: str) -> list[float]:
        weft.config.update("jax_platforms", platform)
        seen: list = []
        digits.train(50, lambda i, value, seconds: seen.append(value))
        return [float(x) for x in seen]

    np.testing.assert_allclose(losses("webgpu"), losses("cpu"), rtol=1e-5)


def test_random_numbers_are_the_same_bits():
    key = weft.random.PRNGKey(7)
    agree(
        lambda k: [weft.random.bits(k, (33,)), weft.random.permutation(k, 100), weft.random.randint(k, (20,), -5, 90)],
        key,
        rtol=0,
        atol=0,
    )
    agree(lambda k: [weft.random.normal(k, (50,)), weft.random.uniform(k, (3, 4))], key)


def test_training_in_one_scan_is_one_submit(backend):
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(size=(64, 3)).astype(np.float32))
    y = x @ jnp.asarray([1.0, -2.0, 3.0])

    @weft.jit
    def train(w):
        def step(w, _):
            value, g = weft.value_and_grad(lambda w: ((x @ w - y) ** 2).mean())(w)
            return w - 0.1 * g, value

        return lax.scan(step, w, None, length=100)

    start = jnp.zeros(3)
    found, losses = train(start)
    np.testing.assert_allclose(np.asarray(found), [1, -2, 3], atol=1e-3)
    assert float(losses[-1]) < 1e-5 < float(losses[0])
    assert submits(backend, lambda: train(start)) == 1


def test_loops_that_depend_on_data_read_back(backend):
    collatz = weft.jit(
        lambda n: lax.while_loop(
            lambda v: v[0] != 1, lambda v: (jnp.where(v[0] % 2 == 0, v[0] // 2, 3 * v[0] + 1), v[1] + 1), (n, 0)
        )
    )
    assert [int(collatz(n)[1]) for n in (1, 6, 7)] == [0, 8, 16]
    six = jnp.int32(6)
    assert submits(backend, lambda: collatz(six)) > 1


def test_a_long_sort_and_a_long_sum():
    x = jnp.asarray(np.random.default_rng(0).permutation(20_000).astype(np.float32))
    assert np.array_equal(np.asarray(jnp.sort(x)), np.arange(20_000))
    assert float(jnp.ones(300_000).sum()) == 300_000


def test_special_numbers():
    x = jnp.asarray([np.nan, np.inf, -np.inf, -0.0, 1.0])
    assert jnp.isnan(x).tolist() == [True, False, False, False, False]
    assert jnp.isnan(x - x).tolist() == [True, True, True, False, False]
    assert jnp.isnan(x * 0.0).tolist() == [True, True, True, False, False]
    assert jnp.isfinite(x).tolist() == [False, False, False, True, True]
    assert np.isnan(float(x.max())) and float(x[1:].max()) == np.inf


# ---- arrays


def test_arrays_of_every_dtype_come_back():
    for dtype in ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "float32", "float16", "bfloat16"):
        x = jnp.asarray([0, 1, 1, 0, 1], dtype)
        assert x.dtype == dtype and [float(v) for v in x.tolist()] == [0, 1, 1, 0, 1], dtype
        assert [float(v) for v in x[::-1].tolist()] == [1, 0, 1, 1, 0], dtype
    assert jnp.zeros((0, 3)).tolist() == [] and float(jnp.zeros((0, 3)).sum()) == 0


def test_donated_arguments_are_gone():
    f = weft.jit(lambda x, y: x + y, donate_argnums=0)
    x, y = jnp.arange(4, dtype="bfloat16"), jnp.ones(4, "bfloat16")
    assert f(x, y).tolist() == [1, 2, 3, 4] and x.is_deleted()
    with pytest.raises(RuntimeError, match="deleted"):
        x + 1
    with pytest.raises(ValueError, match="donated"):
        f(y, y)


def test_bind_groups_are_made_once_for_the_same_buffers(backend, monkeypatch):
    device = backend.runtime.device.device
    made, make = [], device.create_bind_group
    monkeypatch.setattr(device, "create_bind_group", lambda **given: made.append(1) or make(**given))
    f = weft.jit(lambda x: lax.cumsum(x + 1))
    x = jnp.zeros(3)
    for _ in range(20):
        x = f(x) - x
    assert x.tolist() == [1, 3, 7]
    assert 0 < len(made) < 30


def test_a_new_buffer_is_never_taken_for_one_that_is_gone(backend, monkeypatch):
    monkeypatch.setattr("weft_wasm.runtimes.wgpu_device.KEEP", 0)  # destroyed when it is free
    f = weft.jit(lambda x: x * 2)
    for k in range(40):
        assert f(jnp.full(5, k, "int32")).tolist() == [2 * k] * 5


def test_an_error_of_a_command_is_raised_at_the_submit_and_the_next_goes_on(backend):
    import wgpu
    from weft_wasm.runtimes.wgpu_commands import Commands

    device = backend.runtime.device
    handles = [device.alloc(64) for _ in range(2)]
    a, b = (device._buffer(handle) for handle in handles)
    commands = Commands(device.device)
    device.write(handles[0], bytes(range(64)))
    commands.copy(a.gpu, 0, b.gpu, 0, 128)
    with pytest.raises(wgpu.GPUError, match="(?i)copy"):
        commands.submit()
    commands.copy(a.gpu, 0, b.gpu, 0, 64)
    commands.submit()
    commands.copy(b.gpu, 0, a.gpu, 32, 32)
    commands.drop()
    commands.submit()
    assert device.read(handles[1], 64) == device.read(handles[0], 64) == bytes(range(64))
    for handle in handles:
        device.free(handle)


def test_memory_is_given_back(backend, only_own_memory):
    f = weft.jit(lambda x: [(x + i).sum() for i in range(5)])
    x = jnp.ones(1000)
    f(x)
    before = backend.runtime.stats()["allocated"]
    for _ in range(20):
        f(x)
    assert backend.runtime.stats()["allocated"] == before


def test_waiting():
    x = weft.jit(lambda x: x * 2)(jnp.ones(8))
    assert x.block_until_ready() is x and x.is_ready()


# ---- what is shown and what is refused


def test_text_of_a_program():
    compiled = weft.jit(lambda x: jnp.tanh(x).sum()).lower(jnp.ones((4, 5))).compile()
    assert "@compute" in compiled.as_text("wgsl") and "weft_tanh" in compiled.as_text("wgsl")
    assert '"op": "dispatch"' in compiled.as_text("plan") and "reduce r < 20" in compiled.as_text("ir")
    assert compiled.cost_analysis()["kernels"] == 1
    with pytest.raises(ValueError, match="wgsl"):
        compiled.as_text("hlo")


@pytest.mark.parametrize(
    ("wide", "narrow"), [("float64", "float32"), ("int64", "int32"), ("uint64", "uint32"), ("complex128", "complex64")]
)
def test_what_to_convert_a_wide_dtype_to(wide, narrow):
    with weft.enable_x64(True):
        for given, made in ((wide, "bool"), (narrow, wide)):
            jaxpr = weft.make_jaxpr(lambda x: (x != 0).astype(made) if made == "bool" else x.astype(made))(
                weft.ShapeDtypeStruct((3,), given)
            ).jaxpr
            with pytest.raises(
                BackendError, match=rf"has dtype {wide} .*convert to a 32-bit dtype \(x.astype\('{narrow}'\)\)"
            ):
                check_dtypes(jaxpr)
        check_dtypes(weft.make_jaxpr(lambda x: x * 2)(weft.ShapeDtypeStruct((3,), narrow)).jaxpr)


def test_a_wide_dtype_names_the_primitive_and_the_line():
    with weft.enable_x64(True):
        with pytest.raises(BackendError, match=r"convert_element_type has dtype float64 .*float32.*test_backend"):
            weft.jit(lambda x: x.astype("float64"))(jnp.ones(3, "float32"))
        with pytest.raises(BackendError, match="int64"):
            jnp.asarray(np.arange(3, dtype=np.int64))


def test_runs_without_numpy():
    program = """
    import sys
    import weft, weft.numpy as jnp
    from weft import lax
    weft.config.update("jax_platforms", "webgpu")
    x = jnp.arange(6, dtype="float32").reshape(2, 3)
    sums = lambda x: lax.scan(lambda c, v: (c + v, c), jnp.zeros(3), x)
    f = weft.jit(lambda x: (jnp.tanh(x) @ x.T, jnp.sort(-x, axis=1), sums(x), x > 2))
    out = f(x)
    assert out[1].tolist() == [[-2.0, -1.0, -0.0], [-5.0, -4.0, -3.0]], out[1].tolist()
    assert out[2][0].tolist() == [3.0, 5.0, 7.0] and out[3].tolist() == [[False] * 3, [True] * 3]
    assert weft.grad(lambda x: (x ** 2).sum())(x).tolist() == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]
    assert len(weft.random.normal(weft.random.PRNGKey(0), (5,)).tolist()) == 5
    assert "numpy" not in sys.modules, "NumPy was imported"
    print("fine")
    """
    env = {**os.environ, "WEFT_NUMPY": "0"}
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], env=env, capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0 and "fine" in result.stdout, result.stderr[-3000:]


def test_many_updates_of_rows(backend):
    """Repeated indices add up; rows are added by an invocation for each column, in chunks of updates."""
    rng = np.random.default_rng(0)
    table, index = jnp.zeros((10, 4)), rng.integers(0, 10, 40_000).astype(np.int32)
    rows = rng.integers(0, 5, (40_000, 4)).astype(np.float32)
    want = np.zeros((10, 4), np.float32)
    np.add.at(want, index, rows)
    add = weft.jit(lambda t, i, r: t.at[i].add(r))
    assert np.array_equal(np.asarray(add(table, index, rows)), want)
    got = weft.vmap(lambda t, i, r: t.at[i].add(r))(
        jnp.zeros((3, 10)), jnp.asarray(index[:60].reshape(3, 20)), jnp.asarray(rows[:60, 0].reshape(3, 20))
    )
    for k in range(3):
        each = np.zeros(10, np.float32)
        np.add.at(each, index[20 * k : 20 * k + 20], rows[20 * k : 20 * k + 20, 0])
        assert np.array_equal(np.asarray(got[k]), each)


def test_running_sums_are_exact_where_they_are_long():
    x = jnp.asarray(np.random.default_rng(0).integers(-5, 6, (2, 100_000)).astype(np.int32))
    assert np.array_equal(np.asarray(jnp.cumsum(x, axis=1)), np.asarray(x).cumsum(1))


def test_kept_programs_are_found_again(backend, monkeypatch):
    store = Store()
    monkeypatch.setattr(backend, "programs", Programs(store, "compiler 1"))
    x = np.linspace(-1, 1, 12, dtype="float32").reshape(3, 4)
    make = lambda: weft.jit(lambda a: jnp.tanh(a @ x) + 1)
    first = np.asarray(make()(np.ones((5, 3), "float32")))
    ((key, data),) = store.items()
    assert data.startswith(key.encode()) and Artifact.from_bytes(data[len(key) :]).kind == "webgpu"
    monkeypatch.setattr("weft_wasm.backends.webgpu.compile_webgpu", None)  # nothing is compiled any more
    np.testing.assert_array_equal(np.asarray(make()(np.ones((5, 3), "float32"))), first)
    assert "kernel" in make().lower(np.ones((5, 3), "float32")).compile().as_text("ir") and list(store) == [key]


class Store(dict):
    """The page's cache, as Python sees it."""

    put = dict.__setitem__
    delete = dict.__delitem__
