"""The persistent compile cache: what is kept, what is found again, and what happens to files that are not as they
should be.
"""

import os
import subprocess
import sys
import textwrap
import time
import warnings

import numpy as np
import pytest
from platforms import need

import weft
import weft.numpy as jnp
from weft import monitoring
from weft.base.config import config
from weft import lax
from weft.errors import BackendError
from weft_native import compat

need("cpu")
OPTIONS = (
    "compilation_cache_dir",
    "persistent_cache_min_compile_time_secs",
    "persistent_cache_min_entry_size_bytes",
    "compilation_cache_max_size",
    "enable_compilation_cache",
    "raise_persistent_cache_errors",
    "compilation_cache_include_metadata_in_key",
)


@pytest.fixture
def folder(tmp_path):
    before = {name: config.read(name) for name in OPTIONS}
    config.update("jax_compilation_cache_dir", str(tmp_path / "cache"))
    config.update("jax_persistent_cache_min_compile_time_secs", 0)
    yield tmp_path / "cache"
    for name, value in before.items():
        config.update(name, value)


@pytest.fixture
def hits():
    seen = []
    listener = lambda event, **_: (
        seen.append(event.rsplit("/", 1)[-1]) if event.endswith(("cache_hits", "cache_misses")) else None
    )
    monitoring.register_event_listener(listener)
    yield seen
    monitoring.unregister_event_listener(listener)


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def run(scale=2.0, x=X):
    """A fresh program each time, so that only the folder can know it."""
    with weft.default_device(weft.devices("cpu")[0]):
        return np.asarray(weft.jit(lambda x: jnp.sin(x) * scale + jnp.sum(x))(x))


def files(folder):
    return sorted(folder.glob("jit_*-cache"))


def test_a_program_is_found_again(folder, hits):
    first = run()
    assert hits == ["cache_misses"] and len(files(folder)) == 1
    np.testing.assert_array_equal(first, run())
    assert hits == ["cache_misses", "cache_hits"]
    np.testing.assert_allclose(first, np.sin(X) * 2 + X.sum(), rtol=1e-6)


def test_what_a_function_ran_last_is_read_while_it_is_traced(folder, hits, monkeypatch):
    from weft_native import cache

    first = run()
    monkeypatch.setattr(cache, "_WORTH", 0)
    with monkeypatch.context() as m:
        m.setattr(cache, "_read_now", None)  # what was read ahead is all there is
        np.testing.assert_array_equal(first, run())
    assert hits == ["cache_misses", "cache_hits"]
    # another program of the same name was read
    np.testing.assert_allclose(run(3.0), np.sin(X) * 3 + X.sum(), rtol=1e-6)
    assert hits == ["cache_misses", "cache_hits", "cache_misses"] and not cache._ahead
    for file in files(folder):
        file.write_bytes(file.read_bytes()[:-1])
    with pytest.warns(UserWarning, match="is ignored: it should hold"):
        np.testing.assert_array_equal(first, run())


def test_another_program_is_another_entry(folder, hits):
    run(), run(3.0), run(x=X[:1]), run(x=X.astype(np.int32))
    assert hits == ["cache_misses"] * 4 and len(files(folder)) == 4


def test_another_place_in_the_source_is_the_same_program_unless_asked(folder, hits):
    f, g = weft.jit(lambda x: x * 3), weft.jit(lambda x: x * 3)
    f(X), g(X)
    assert hits == ["cache_misses", "cache_hits"]
    config.update("jax_compilation_cache_include_metadata_in_key", True)
    weft.jit(lambda x: x * 3)(X)
    assert hits[-1] == "cache_misses"


def test_what_is_small_fast_or_switched_off_is_not_kept(folder, hits):
    config.update("jax_persistent_cache_min_compile_time_secs", 1e6)
    run()
    config.update("jax_persistent_cache_min_compile_time_secs", 0)
    config.update("jax_persistent_cache_min_entry_size_bytes", 10**9)
    run()
    assert not folder.exists()
    config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    config.update("jax_enable_compilation_cache", False)
    run()
    config.update("jax_enable_compilation_cache", True)
    config.update("jax_compilation_cache_max_size", 0)
    run()
    assert not folder.exists() and hits == ["cache_misses"] * 2


def test_programs_with_callbacks_are_not_kept(folder):
    seen = []
    weft.jit(lambda x: (weft.debug.callback(lambda v: seen.append(float(v)), x), x)[1])(1.0).block_until_ready()
    weft.effects_barrier()
    assert seen == [1.0] and not folder.exists()


@pytest.mark.parametrize(
    "damage, says",
    [
        (lambda data: data[: len(data) // 2], "after its header"),
        (lambda data: data[:20], "fewer than its header"),
        (lambda data: b"", "has 0 bytes"),
        (lambda data: data + b"x", "after its header"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "checksum"),
        (lambda data: b"\x7fELF" + data[4:], "not a file of this cache"),
        (lambda data: data[:8] + bytes(32) + data[40:], "another program's"),
    ],
    ids=["half", "header", "empty", "longer", "bit", "foreign", "renamed"],
)
def test_a_damaged_file_is_ignored_with_a_warning_that_names_it(folder, hits, damage, says):
    first = run()
    (path,) = files(folder)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.warns(UserWarning, match=says) as caught:
        np.testing.assert_array_equal(first, run())
    assert str(path) in str(caught[0].message)
    with warnings.catch_warnings():  # it was replaced by a good one
        warnings.simplefilter("error")
        run()
    assert hits == ["cache_misses", "cache_misses", "cache_hits"]


def test_what_xla_refuses_is_compiled(folder):
    from weft_native import cache

    run()
    (path,) = files(folder)
    data = path.read_bytes()
    magic, key, seconds, _, _ = cache._HEADER.unpack_from(data)
    body = b"no executable"
    path.write_bytes(cache._HEADER.pack(magic, key, seconds, len(body), cache.hashlib.sha256(body).digest()) + body)
    with pytest.warns(UserWarning, match="XLA does not take"):
        run()


def test_errors_raise_where_asked(folder):
    run()
    files(folder)[0].write_bytes(b"")
    config.update("jax_raise_persistent_cache_errors", True)
    with pytest.raises(BackendError, match="has 0 bytes"):
        run()


def test_a_folder_that_cannot_be_written_warns(folder, tmp_path):
    (tmp_path / "file").write_text("")
    config.update("jax_compilation_cache_dir", str(tmp_path / "file" / "cache"))
    with pytest.warns(UserWarning, match="choose another folder|can't be read"):
        run()


def test_what_was_not_used_for_longest_is_evicted(folder, hits):
    run(1.0)
    (first,) = files(folder)
    size = first.stat().st_size
    config.update("jax_compilation_cache_max_size", int(2.5 * size))
    run(2.0)
    (second,) = [p for p in files(folder) if p != first]
    old = time.time_ns() - 10**12
    os.utime(first, ns=(old, old))
    os.utime(second, ns=(old + 10**9, old + 10**9))
    run(1.0)  # used: now the second is the oldest
    assert hits[-1] == "cache_hits"
    run(3.0)
    assert first in files(folder) and second not in files(folder) and len(files(folder)) == 2
    config.update("jax_compilation_cache_max_size", 10)
    with pytest.warns(UserWarning, match="not kept"):
        run(4.0)


def test_another_process_finds_programs_linear_algebra_among_them(folder):
    program = textwrap.dedent("""
        import sys, weft, weft.numpy as jnp, numpy as np
        hits = []
        count = lambda event, **_: hits.append(event) if event.endswith("cache_hits") else None
        weft.monitoring.register_event_listener(count)
        a = np.arange(9, dtype=np.float32).reshape(3, 3)
        f = weft.jit(lambda a: jnp.linalg.cholesky(a @ a.T + 30 * jnp.eye(3)))
        l = np.asarray(f(a))
        np.testing.assert_allclose(l @ l.T, a @ a.T + 30 * np.eye(3), rtol=1e-4)
        print(len(hits) > 0)
    """)
    env = dict(
        os.environ,
        JAX_COMPILATION_CACHE_DIR=str(folder),
        JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0",
        JAX_PLATFORMS="cpu",
    )
    out = [
        subprocess.run(
            [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True
        ).stdout.strip()
        for _ in range(2)
    ]
    assert out == ["False", "True"]


def test_the_module_of_the_cache(folder, tmp_path):
    from weft.experimental.compilation_cache import compilation_cache

    other = tmp_path / "other"
    compilation_cache.set_cache_dir(other)
    assert config.jax_compilation_cache_dir == str(other)
    run()
    assert len(files(other)) == 1
    compilation_cache.reset_cache()
    run()
    assert len(files(other)) == 1


def test_donation_shardings_and_keys_survive(folder, hits):
    devices = weft.devices("cpu")
    mesh = weft.make_mesh((min(2, len(devices)),), ("a",), devices=devices[: min(2, len(devices))])
    seen = []
    weft.clear_caches()  # what other tests have compiled
    with weft.default_device(devices[0]):
        for _ in range(2):
            x = jnp.arange(4.0)
            y = weft.jit(lambda x: x + 1, donate_argnums=0)(x)
            z = weft.device_put(np.arange(16, dtype=np.float32).reshape(4, 4), weft.NamedSharding(mesh, weft.P("a")))
            product = weft.jit(lambda z: z @ z, out_shardings=weft.NamedSharding(mesh, weft.P(None, "a")))(z)
            drawn = weft.jit(lambda key: weft.random.normal(key, (2,)))(weft.random.key(0))
            seen.append(
                (
                    np.asarray(y).tolist(),
                    x.is_deleted(),
                    np.asarray(product).tolist(),
                    product.sharding.spec,
                    np.asarray(drawn).tolist(),
                )
            )
            weft.clear_caches()
    assert seen[0] == seen[1] and seen[0][1]
    half = len(hits) // 2
    assert hits[:half] == ["cache_misses"] * half and hits[half:] == ["cache_hits"] * half and half >= 3


@pytest.mark.slow
def test_a_script_begins_to_read_its_slowest_program_with_its_first_device(folder, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import weft, weft.numpy as jnp
        from weft_native import cache
        cache._WORTH = 0
        weft.devices()
        reads = [thread.name for *_, thread, _ in cache._ahead.values()]
        slow = weft.jit(lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(3)) @ jnp.sort(x), inline=False)
        print(reads, float(slow(jnp.eye(3))[0, 2]), len(cache._ahead))
    """)
    )
    env = dict(
        os.environ,
        JAX_COMPILATION_CACHE_DIR=str(folder),
        JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0",
        JAX_PLATFORMS="cpu",
    )
    run_script = lambda: subprocess.run(
        [sys.executable, str(script)], env=env, capture_output=True, text=True, check=True
    ).stdout.strip()
    first, second = run_script(), run_script()
    (note,) = folder.glob("script-*")
    slowest = note.read_bytes().decode()
    assert (
        first.startswith("[]")
        and second == f"['weft reads {slowest}']" + first.removeprefix("[]")
        and first.endswith(" 0")
    )
    for hostile in ("../" + slowest, "jit_x-" + 64 * "0" + "-cache", "", "\udcff"):
        note.write_bytes(hostile.encode(errors="surrogateescape"))
        assert run_script() == first
        assert note.read_bytes().decode() == slowest  # and written again


# in memory ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def compiled(monkeypatch):
    """The programs that XLA compiles."""
    seen = []
    compile_module = compat.compile_module
    monkeypatch.setattr(compat, "compile_module", lambda *args, **more: seen.append(args) or compile_module(*args))
    weft.clear_caches()
    with weft.default_device(weft.devices("cpu")[0]):
        yield seen


def step(carry, x):
    return jnp.tanh(carry * x) + x, carry


TRACED_AGAIN = {
    "jitted lambdas": lambda w, xs: weft.jit(lambda w, xs: jnp.sin(w) * xs)(w, xs),
    "scan": weft.grad(lambda w, xs: lax.scan(step, w, xs)[0]),
    "cond": weft.grad(lambda w, xs: lax.cond(xs[0] > 0, jnp.sin, jnp.cos, w)),
    "while": lambda w, xs: weft.jvp(lambda w: lax.while_loop(lambda c: c < 9, lambda c: c * 2, w), (w,), (w,)),
    "map": lambda w, xs: lax.map(lambda x: x * w, xs),
}


@pytest.mark.parametrize("name", TRACED_AGAIN)
def test_what_is_traced_again_is_not_compiled_again(name, compiled):
    f, xs = TRACED_AGAIN[name], np.arange(1, 4, dtype=np.float32) / 4
    first = weft.tree.leaves(f(jnp.float32(1.5), xs))
    count = len(compiled)
    assert count > 0
    other = weft.tree.leaves(f(jnp.float32(2.5), xs + 1))
    assert len(compiled) == count and not np.array_equal(first[0], other[0])
    again = weft.tree.leaves(f(jnp.float32(1.5), xs))
    assert len(compiled) == count
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)


def test_programs_in_memory_differ_by_all_that_they_do(compiled):
    x = np.arange(3, dtype=np.float32)
    for k in (1.0, 2.0):
        assert weft.jit(lambda x: x * k)(x).tolist() == (x * k).tolist()
        assert weft.jit(lambda x: weft.pure_callback(lambda v: v * np.float32(k), x, x))(x).tolist() == (x * k).tolist()
        y = jnp.asarray(x)
        weft.jit(lambda x: x + 5.0, donate_argnums=0 if k == 2.0 else ())(y)
        assert y.is_deleted() == (k == 2.0)


def test_a_function_that_is_cleared_is_compiled_again(compiled):
    f = weft.jit(lambda x: x * 7)
    f(1.0)
    count = len(compiled)
    f.clear_cache()
    f(1.0)
    assert len(compiled) == count + 1
