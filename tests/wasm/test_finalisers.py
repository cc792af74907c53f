"""Arrays and programs that are collected in any thread give their memory back, and never wait for a device in use."""

import contextlib
import gc
import threading

import numpy as np
import pytest
from platforms import need, under_test

import weft
from weft.runtime.device import backend_for
from weft_wasm.runtimes.memory import Turns, exclusive


@pytest.fixture(params=under_test("wasm", "webgpu"))
def runtime(request):
    need(request.param)
    return backend_for(request.param).runtime


@contextlib.contextmanager
def held_by_us(turns: Turns):
    turns.acquire()
    try:
        yield
    finally:
        turns.release()


def in_another_thread(function) -> bool:
    """Whether a function ends in a thread of its own."""
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    thread.join(timeout=20)
    return not thread.is_alive()


def collected(objects: list) -> bool:
    return in_another_thread(objects.clear)


def test_an_array_is_collected_while_its_device_is_in_use(runtime, request, only_own_memory):
    """A reader holds the device and waits for a thread of the driver, in which garbage may be collected."""
    device = weft.devices(request.node.callspec.params["runtime"])[0]
    x = weft.device_put(np.arange(2000.0, dtype=np.float32), device)
    arrays = [weft.jit(lambda x: x + k)(x).block_until_ready() for k in range(3)]
    before = runtime.stats()["allocated"]
    with held_by_us(runtime.device.lock):
        assert collected(arrays)
    assert runtime.stats()["allocated"] <= before - 3 * 8000


def test_a_program_is_collected_while_its_device_is_in_use(runtime, request, only_own_memory):
    device = weft.devices(request.node.callspec.params["runtime"])[0]
    constant = np.random.default_rng(0).normal(size=5000).astype(np.float32)
    x = weft.device_put(np.ones(5000, np.float32), device)
    programs = [weft.jit(lambda x: x + constant)]
    programs[0](x).block_until_ready()
    weft.clear_caches()
    gc.collect()
    start = runtime.stats()["allocated"]
    programs[0](x).block_until_ready()
    held = runtime.stats()["allocated"]
    assert held >= start + 20000
    with held_by_us(runtime.device.lock):
        assert in_another_thread(lambda: (programs.clear(), weft.clear_caches(), gc.collect()))
    assert runtime.stats()["allocated"] < held - 20000 + 64


def test_what_finalisers_leave_is_done_at_the_next_turn():
    class Device:
        lock, done = Turns(), list[int]()

        @exclusive
        def now(self) -> list[int]:
            return list(self.done)

    device = Device()
    with held_by_us(device.lock):
        assert in_another_thread(lambda: device.lock.later(device.done.append, 1))
        device.lock.later(device.done.append, 2)
    assert device.done == [] and device.now() == [1, 2]
    for _ in range(3000):  # more than Python's stack has room for
        device.lock.later(lambda d: d.now(), device)
    assert device.now() == [1, 2] and not device.lock.left
    device.lock.later({}.pop, "missing")
    device.lock.later(device.done.append, 3)
    with pytest.raises(KeyError):
        device.now()
    assert in_another_thread(device.now) and device.done == [1, 2, 3], "an error has kept the turn"
