"""Programs that take long look whether they are to stop; the device is as usable afterwards as before."""

import gc
import os
import signal
import socket
import threading

import numpy as np
import pytest
import weft
import weft.numpy as jnp
from wasm_harness import backend
from weft import lax
from weft_wasm.compile import compile_program
from weft_wasm.ir.nodes import Copy, For, Kernel, Poll, Program, While
from weft_wasm.ir.traversal import blocks, walk
from weft_wasm.passes import polls, threads
from weft_wasm.runtimes import interrupts
from weft_wasm.runtimes.wasmtime_device import ProgramError, WasmtimeDevice

ones = lambda *shape: np.ones(shape, np.float32)  # noqa: E731
LONG = {
    "while": (lambda n: lax.while_loop(lambda i: i >= 0, lambda i: (i + 1) % 7, n), np.int32(0)),
    "fori_loop": (lambda n: lax.fori_loop(0, 10**5, lambda k, i: (i + k) % 7, n), np.int32(0)),
    "scan": (
        lambda c: lax.scan(lambda c, x: (jnp.sin(c) + x, c.sum()), c, jnp.arange(3e3, dtype=jnp.float32)),
        ones(1000),
    ),
    "products": (lambda a: a @ a @ a @ a, ones(500, 500)),
    "one product": (lambda a: a @ a, ones(900, 900)),
    "batches of products": (lambda a: jnp.einsum("bij,bjk->bik", a, a), ones(100, 150, 150)),
    "convolution": (
        lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
        ones(8, 64, 64, 64),
        ones(3, 3, 64, 64),
    ),
    "elementwise": (lambda x: jnp.sin(jnp.exp(jnp.sin(x))), ones(1_000_000)),
    "cumulative sum": (lambda x: jnp.cumsum(x), ones(8_000_000)),
    "sort": (lambda x: jnp.sort(x), -np.arange(250_000, dtype=np.float32)),
    "sort by two keys": (lambda x: lax.sort((x, x), num_keys=2), ones(100_000)),
    "eigenvalues": (lambda x: jnp.linalg.eigvalsh(x), ones(60, 60)),
    "fft": (lambda x: jnp.fft.fft(x), ones(1 << 19).astype(np.complex64)),
    "maximum": (lambda x: jnp.max(x[:, None] * x[None, :]), ones(6_000)),
    "many small ones": (lambda x: [x := jnp.sort(x * k) for k in range(10)], ones(60_000)),
}
SHORT = {
    "sum": (lambda x: x.sum(), ones(1000)),
    "product": (lambda a: a @ a, ones(64, 64)),
    "layer": (lambda a: jnp.tanh(a @ a).mean(0), ones(128, 128)),
}


def final(fun, *args) -> Program:
    """The program as it is emitted."""
    seen = []
    before, backend().after = backend().after, lambda step, program: seen.append(program)
    try:
        weft.jit(fun).lower(*args).compile()
    finally:
        backend().after = before
    return seen[-1]


def stretch(body, most) -> float:
    """The longest time, in ns by estimate, that passes without a poll."""
    longest = passed = 0.0
    for s in body:
        if type(s) is Kernel:
            most = polls._Most(s.body)
        if type(s) is Poll:
            passed = 0.0
        elif any(type(x) is Poll for x in walk([s])):
            inner = max(stretch(block, most) for block in blocks(s))
            longest, passed = max(longest, passed + inner), inner
        elif type(s) is not Copy:
            passed += threads.Costs(most).of([s])
        longest = max(longest, passed)
    return longest


@pytest.mark.parametrize("case", LONG)
def test_nothing_runs_long_without_a_poll(case):
    program = final(*LONG[case])
    assert any(type(s) is Poll for s in walk(program.body))
    assert stretch(program.body, None) <= 5 * polls.LONG


@pytest.mark.parametrize("case", SHORT)
def test_short_programs_have_no_polls(case):
    assert not any(type(s) is Poll for s in walk(final(*SHORT[case]).body))


def test_every_loop_around_kernels_begins_with_a_poll():
    program = final(
        lambda n: lax.fori_loop(0, n, lambda k, i: lax.while_loop(lambda i: i < 5, lambda i: i + k, i), n), np.int32(0)
    )
    loops = [s for s in walk(program.body) if type(s) is While or type(s) is For]
    assert len(loops) == 2 and all(type(s.body[0]) is Poll for s in loops)


def stopped(compiled, *args):
    """A call of a program that finds its word set when it first looks."""
    device = backend().runtime.device
    device.stopped, device._stop_word.value = True, 1
    with pytest.raises(KeyboardInterrupt):
        compiled(*args)


@pytest.mark.parametrize("case", LONG)
def test_a_stop_ends_a_program_and_the_device_is_as_before(case, only_own_memory):
    fun, *args = LONG[case]
    compiled, device = weft.jit(fun).lower(*args).compile(), backend().runtime.device
    args = [jnp.asarray(x) for x in args]
    gc.collect()
    before = device.stats()["allocated"]
    stopped(compiled, *args)
    gc.collect()
    assert device.stats()["allocated"] == before
    assert device._stop_word.value == 0
    np.testing.assert_array_equal(np.asarray(weft.jit(lambda x: x * 2)(jnp.arange(3))), [0, 2, 4])
    if case != "while":
        first, second = (weft.tree.leaves(compiled(*args)) for _ in range(2))
        for a, b in zip(first, second):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_donated_arrays_stay_the_callers():
    x = jnp.asarray(ones(1000))
    f = weft.jit(lambda c: lax.fori_loop(0, 10**5, lambda k, c: jnp.sin(c), c), donate_argnums=0)
    compiled = f.lower(x).compile()
    stopped(compiled, x)
    assert not x.is_deleted() and x.shape == (1000,) and np.asarray(x).shape == (1000,)
    compiled(x)
    assert x.is_deleted()


def test_a_program_that_does_not_look_leaves_the_word_for_nobody():
    device = backend().runtime.device
    device.stopped, device._stop_word.value = True, 1
    assert float(weft.jit(lambda x: x.sum())(ones(8))) == 8.0
    assert device._stop_word.value == 0


def test_a_word_that_the_program_wrote_itself_is_no_interrupt():
    """Only who asks for a stop sets `stopped`: a damaged program can write the word, and trap."""
    fun, *args = LONG["scan"]
    compiled, device = weft.jit(fun).lower(*args).compile(), backend().runtime.device
    device._stop_word.value = 1
    with pytest.raises(ProgramError, match="trapped"):
        compiled(*[jnp.asarray(x) for x in args])
    assert not device.stopped and device._stop_word.value == 0


def test_threads_that_share_a_loop_end_too():
    program = final(lambda a: a @ a, ones(1500, 1500))
    device = WasmtimeDevice(threads=3)
    loaded = device.load(compile_program(program, schedule=False, check=False))
    x = device.alloc(program.inputs[0].nbytes)
    before = device.stats()["allocated"]
    device.stopped, device._stop_word.value = True, 1
    with pytest.raises(KeyboardInterrupt):
        device.run(loaded, [x])
    assert device.stats()["allocated"] == before


@pytest.fixture(autouse=True)
def interrupts_are_heard():
    """As in a terminal: a shell has what it starts in the background ignore them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt_soon():
    """Ctrl-C, from another thread."""
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()


def test_ctrl_c_ends_a_loop_that_never_would():
    compiled = weft.jit(LONG["while"][0]).lower(np.int32(0)).compile()
    for _ in range(2):
        interrupt_soon()
        with pytest.raises(KeyboardInterrupt):
            compiled(np.int32(0))
    assert signal.set_wakeup_fd(-1) == -1


def test_ctrl_c_names_the_users_line():
    f = weft.jit(LONG["while"][0])
    interrupt_soon()
    with pytest.raises(KeyboardInterrupt) as caught:
        f(np.int32(0))  # this line
    frames = [entry for entry in caught.traceback if str(entry.path) == __file__]
    assert "# this line" in str(frames[-1].statement)


def test_a_handler_of_the_users_own_decides():
    """Its program goes on if the handler says so."""
    seen = []
    f = weft.jit(lambda n: lax.fori_loop(0, 10**8, lambda k, i: (i + k) % 7, n))
    compiled = f.lower(np.int32(0)).compile()
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        assert not interrupts.come_here()
        interrupt_soon()
        compiled(np.int32(0))
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [1]


def test_other_threads_are_not_watched():
    found = []
    thread = threading.Thread(target=lambda: found.append(interrupts.come_here()))
    thread.start()
    thread.join()
    assert found == [False]


def test_who_waits_for_signals_already_is_not_pushed_aside():
    here, there = socket.socketpair()
    here.setblocking(False)
    before = signal.set_wakeup_fd(here.fileno())
    try:
        assert interrupts.until_one(lambda: None, lambda: 3) == 3
        assert signal.set_wakeup_fd(here.fileno()) == here.fileno()
    finally:
        signal.set_wakeup_fd(before)
        here.close(), there.close()
