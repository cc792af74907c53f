"""Compiled programs that are found again, with a store in memory in the place of the page's. e2e/ has IndexedDB."""

import importlib.metadata
from types import SimpleNamespace

import numpy as np
import pytest
import weft
import weft.numpy as jnp
from wasm_harness import backend
from weft import monitoring
from weft.compat import core, mlir
from weft_wasm.backends import cache
from weft_wasm.backends.cache import Programs


class Store(dict):
    """The page's cache, as Python sees it."""

    put = dict.__setitem__
    delete = dict.__delitem__


@pytest.fixture
def kept(monkeypatch):
    """The store of a backend that keeps programs, and the events since it was made."""
    store, events = Store(), []
    note = lambda event, **_: events.append(event.rsplit("/", 1)[1])
    monkeypatch.setattr(backend(), "programs", Programs(store, "compiler 1"))
    monitoring.register_event_listener(note)
    yield SimpleNamespace(
        store=store, hits=lambda: events.count("cache_hits"), misses=lambda: events.count("cache_misses")
    )
    monitoring.unregister_event_listener(note)


X = np.linspace(-1, 1, 12, dtype="float32").reshape(3, 4)


def make(scale=2.0, **options):
    """A new function each time, of one program."""
    return weft.jit(weft.grad(lambda w: jnp.sum(jnp.tanh(w @ X) * scale)), **options)


def test_equal_programs_are_compiled_once(kept):
    w = jnp.ones((5, 3), "float32")
    first, again = make()(w), make()(w)
    assert (kept.hits(), kept.misses(), len(kept.store)) == (1, 1, 1)
    np.testing.assert_array_equal(np.asarray(first), np.asarray(again))
    compiled = make().lower(w).compile()
    assert kept.hits() == 2 and "kernel" in compiled.as_text("ir") and "group 0" in compiled.as_text("groups")
    assert compiled.cost_analysis()["kernels"] >= 1


def test_what_a_key_depends_on(kept, monkeypatch):
    w = jnp.ones((5, 3), "float32")
    programs = backend().programs
    make()(w), make(scale=3.0)(w), make()(jnp.ones((6, 3), "float32")), make()(jnp.ones((5, 3)))
    make(donate_argnums=0)(w + 0)
    assert (kept.hits(), len(kept.store)) == (0, 5)
    jaxpr = weft.make_jaxpr(lambda x: jnp.sin(x) + 1)(1.0).jaxpr
    keys = {
        programs.key(jaxpr, *args)
        for args in (
            ("f", (False,), ("simd128",)),
            ("f", (False,), ("simd128", "relaxed-simd")),
            ("g", (False,), ("simd128",)),
        )
    }
    keys.add(Programs({}, "compiler 2").key(jaxpr, "f", (False,), ("simd128",)))
    assert len(keys) == 4 and None not in keys


def test_what_is_not_kept(kept):
    jnp.ones(3) + 1  # operations by themselves
    weft.jit(lambda x: weft.pure_callback(np.sin, x, x) + 1)(jnp.ones(3))
    weft.jit(lambda x: [weft.debug.print("{}", x), x * 2 + 1])(jnp.ones(3))
    assert not kept.store and not kept.misses()
    weft.config.update("jax_enable_compilation_cache", False)
    try:
        make()(jnp.ones((5, 3), "float32"))
    finally:
        weft.config.update("jax_enable_compilation_cache", True)
    assert not kept.store


def test_what_a_library_means_by_a_primitive_is_part_of_the_key(kept):
    for power, want in ((3, 9), (4, 17), (3, 9)):
        ours = core.Primitive("power_of_a_library")
        ours.def_abstract_eval(lambda x: x)
        mlir.register_lowering(ours, mlir.lower_fun(lambda x, power=power: x**power, multiple_results=False))
        assert weft.jit(lambda x: ours.bind(x) + 1)(jnp.full(3, 2.0)).tolist() == [want] * 3
    assert (kept.hits(), len(kept.store)) == (1, 2)


def test_a_rule_that_a_library_has_put_in_the_place_of_ours_is_not_kept(monkeypatch):
    """The key names the program and the compiler, but not what the library means by it tomorrow."""
    jaxpr = weft.make_jaxpr(lambda x: weft.lax.erfc(x) + 1)(1.0).jaxpr
    key = lambda: Programs({}, "compiler 1").key(jaxpr, "f", (False,), ("simd128",))
    assert key() is not None
    monkeypatch.setattr(jaxpr.eqns[0].primitive, "decompose", lambda x: x * 2)
    assert key() is None


def test_programs_of_ones_own_primitives_are_known_wherever_the_primitive_stands():
    ours = core.Primitive("unknown_of_a_library")
    ours.def_abstract_eval(lambda x: x)
    for program in (
        lambda x: ours.bind(x) + 1,
        lambda x: ours.bind(jnp.sin(x)),
        lambda x: jnp.sin(x) + weft.jit(lambda x: 1 + ours.bind(x))(x),
        lambda x: weft.lax.cond(x > 0, jnp.sin, lambda x: ours.bind(x) + 1, jnp.cos(x)) + x,
    ):
        assert not cache.own(weft.make_jaxpr(program)(1.0).jaxpr)
    assert cache.own(
        weft.make_jaxpr(lambda x: weft.lax.cond(x > 0, jnp.sin, jnp.cos, x) + weft.jit(jnp.tanh)(x))(1.0).jaxpr
    )


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: b"other" + data,
        lambda data: b"",
        lambda data: data[:-9] + bytes((data[-9] ^ 1,)) + data[-8:],
        lambda data: data[:64] + b"weft\x01" + data[69:],
    ],
)
def test_damaged_programs_are_compiled_again(kept, damage):
    w = jnp.ones((5, 3), "float32")
    want = np.asarray(make()(w))
    ((key, good),) = kept.store.items()
    kept.store[key] = damage(good)
    np.testing.assert_array_equal(np.asarray(make()(w)), want)
    assert kept.hits() == 0 and kept.store == {key: good}


def test_a_program_under_the_key_of_another_is_not_taken_for_it(kept):
    w = jnp.ones((5, 3), "float32")
    doubled, tripled = np.asarray(make()(w)), np.asarray(make(scale=3.0)(w))
    (one, first), (other, second) = kept.store.items()
    kept.store |= {one: second, other: first}
    np.testing.assert_array_equal(np.asarray(make()(w)), doubled)
    np.testing.assert_array_equal(np.asarray(make(scale=3.0)(w)), tripled)
    assert kept.hits() == 0 and kept.store == {one: first, other: second} and not np.array_equal(doubled, tripled)


def test_the_compiler_is_known_by_its_installed_files(monkeypatch):
    records = {name: f"{name.replace('-', '_')}/__init__.py,sha256=1,10\n" for name in cache.PARTS}

    def distribution(name):
        if name not in records:
            raise importlib.metadata.PackageNotFoundError(name)
        return SimpleNamespace(read_text=lambda file: records[name])

    monkeypatch.setattr(cache.importlib.metadata, "distribution", distribution)
    fresh = lambda: cache.compiler.__wrapped__()
    one = fresh()
    records["weft-wasm"] += "weft_wasm/passes/schedule.py,sha256=2,10\n"
    assert one and fresh() not in (None, one)
    records["weft"] = "_weft.pth,sha256=3,10\n"  # installed in place: its files may change
    assert fresh() is None
    del records["weft"]
    assert fresh() is None
