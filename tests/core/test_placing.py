"""Placing arrays: on devices, by shardings, from single-device arrays, on every platform."""

import gc

import numpy as np
import pytest
import weft
import weft.numpy as jnp
from platforms import on, under_test
from weft.errors import BackendError
from weft.sharding import Mesh, NamedSharding, P, SingleDeviceSharding

X = np.arange(8, dtype=np.float32).reshape(4, 2)


@pytest.fixture(params=under_test())
def device(request):
    with on(request.param) as device:
        yield device


@pytest.fixture
def whole(device):
    """Shardings of which each puts all of X on the one device."""
    mesh = Mesh([device], ("x",))
    return [
        SingleDeviceSharding(device),
        NamedSharding(mesh, P()),
        NamedSharding(mesh, P("x")),
        NamedSharding(Mesh([[device]], ("x", "y")), P("y", "x")),
    ]


@pytest.fixture
def several(device):
    """A sharding over two devices; on platforms of one device, over that one twice would be no mesh, so over
    something like it.
    """

    class Other:
        id, platform, process_index, device_kind, backend = 99, device.platform, 0, device.device_kind, device.backend

    others = [d for d in weft.devices(device.platform) if d != device]
    return NamedSharding(Mesh([device, (others or [Other()])[0]], ("x",)), P("x"))


def spreads(device):
    return device.backend.capabilities.spread is not None


def lies_on(x, device):
    return x.committed and x.devices() == {device} and [s.device for s in x.addressable_shards] == [device]


def test_device_put_to_a_sharding_of_one_device(device, whole):
    for value in (X, jnp.asarray(X), weft.device_put(X, device), weft.device_put(X, weft.devices("reference")[0])):
        for sharding in whole:
            y = weft.device_put(value, sharding)
            assert lies_on(y, device) and y.sharding.is_equivalent_to(sharding, 2) and y.tolist() == X.tolist()
            assert (y + 1).tolist() == (X + 1).tolist() and (y + 1).devices() == {device}
    assert weft.device_put(3, whole[0]).tolist() == 3


def test_device_put_keeps_keys_and_trees(device, whole):
    key = weft.random.key(3)
    for sharding in whole[:2]:
        tree = weft.device_put({"x": X, "key": key}, sharding)
        assert lies_on(tree["x"], device) and tree["key"].devices() == {device} and tree["key"].committed
        assert weft.random.key_data(tree["key"]).tolist() == weft.random.key_data(key).tolist()


def test_device_put_inside_jit(device, whole):
    for sharding in whole:
        y = weft.jit(lambda x: weft.device_put(x * 2, sharding) + 1)(X)
        assert y.devices() == {device} and y.tolist() == (X * 2 + 1).tolist()
        y = weft.jit(lambda x: weft.lax.with_sharding_constraint(x, sharding) * 2, out_shardings=sharding)(X)
        assert y.devices() == {device} and y.tolist() == (X * 2).tolist()


def test_placements_on_one_device_are_exported(device, whole):
    """They name devices of this process, and say no more than that a value lies where the program runs."""
    for sharding in (device, *whole):
        exported = weft.export.export(
            weft.jit(lambda x: weft.device_put(x * 2, sharding)), platforms=[device.platform]
        )(X)
        assert weft.export.deserialize(exported.serialize()).call(X).tolist() == (X * 2).tolist()


def test_an_array_from_single_device_arrays(device, whole):
    for part in (weft.device_put(X, device), jnp.asarray(X)):
        for sharding in whole:
            y = weft.make_array_from_single_device_arrays((4, 2), sharding, [part])
            assert lies_on(y, device) and y.sharding.is_equivalent_to(sharding, 2) and y.tolist() == X.tolist()
            assert weft.jit(jnp.sum)(y) == 28 and y.addressable_shards[0].data.tolist() == X.tolist()


def test_what_is_computed_from_committed_arrays_stays_with_them(device):
    elsewhere = weft.devices("reference" if device.platform != "reference" else "cpu")[0]
    x = weft.device_put(X, device)
    with weft.default_device(elsewhere):
        for f in (lambda v: v + 1, weft.jit(lambda v: v * 2), lambda v: v[0], lambda v: jnp.sort(v, axis=0)):
            for _ in range(3):  # at first, and as calls that are known
                y = f(x)
                assert y.committed and y.devices() == {device} and f(y).devices() == {device}
        assert (jnp.ones(2) + 1).devices() == {elsewhere}


def test_keys_from_single_device_keys(device, whole):
    keys = weft.random.split(weft.random.key(0), 3)
    for sharding in whole[:3]:
        y = weft.make_array_from_single_device_arrays((3,), sharding, [keys])
        assert (
            y.dtype == keys.dtype
            and y.devices() == {device}
            and weft.random.key_data(y).tolist() == weft.random.key_data(keys).tolist()
        )


def test_other_ways_to_make_arrays(device, whole):
    for sharding in whole:
        assert lies_on(weft.make_array_from_callback((4, 2), sharding, lambda index: X[index]), device)
        y = weft.make_array_from_process_local_data(sharding, X)
        assert lies_on(y, device) and y.tolist() == X.tolist()
    y = weft.device_put_sharded([X], [device])
    assert y.shape == (1, 4, 2) and y.devices() == {device} and y[0].tolist() == X.tolist()
    assert weft.device_put_replicated(X, [device]).tolist() == [X.tolist()]


def test_bad_parts_are_named(device, whole):
    elsewhere = weft.device_put(X, weft.devices("reference")[0])
    with pytest.raises(ValueError, match="Expected 1 per-device arrays .* got 2"):
        weft.make_array_from_single_device_arrays((4, 2), whole[1], [jnp.asarray(X)] * 2)
    with pytest.raises(ValueError, match=r"Expected shard shape \(4, 3\)"):
        weft.make_array_from_single_device_arrays((4, 3), whole[1], [jnp.asarray(X)])
    if device.platform != "reference":
        with pytest.raises(ValueError, match="must lie on the devices of the sharding"):
            weft.make_array_from_single_device_arrays((4, 2), whole[1], [elsewhere])


def test_several_devices(device, several):
    if not spreads(device):
        says = f"{device.backend.name} backend.*one device.*this (sharding|program) asks for 2"
        for make in (
            lambda: weft.device_put(X, several),
            lambda: weft.device_put(jnp.asarray(X), several),
            lambda: weft.make_array_from_callback((4, 2), several, lambda index: X[index]),
            lambda: weft.make_array_from_process_local_data(several, X),
            lambda: weft.jit(lambda x: x + 1, in_shardings=several)(X),
        ):
            with pytest.raises(BackendError, match=says) as e:
                make()
            assert "test_placing.py" in str(e.value)
    elif len(weft.devices(device.platform)) > 1:
        y = weft.device_put(X, several)
        assert y.devices() == set(several._devices()) and y.tolist() == X.tolist()


def test_kinds_of_memory(device):
    kinds = device.backend.capabilities.memory_kinds(device)
    assert SingleDeviceSharding(device, memory_kind=kinds[0]).memory_kind == kinds[0]
    with pytest.raises(ValueError, match="has no memory of kind 'attic'; it has 'device'"):
        SingleDeviceSharding(device, memory_kind="attic")
    with pytest.raises(ValueError, match="has no memory of kind 'attic'"):
        NamedSharding(Mesh([device], ("x",)), P(), memory_kind="attic")


def test_live_arrays(device):
    x = jnp.arange(12345) + 1
    assert any(y is x for y in weft.live_arrays(device.platform))
    x.delete()
    assert not any(y.shape == (12345,) for y in weft.live_arrays(device.platform))
    del x
    gc.collect()
