"""Threads that lower, compile and print programs at once: each has an MLIR context of its own meanwhile."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import textwrap
import threading

import numpy as np
from platforms import need

need("cpu")
import weft
from weft_native import compat
from weft_native.lower import builder
from weft_native.lower.builder import Dialects, dialects

THREADS = 3


def in_threads(work):
    """`work(k)` in threads; what the first one raises."""
    raised = []

    def run(k):
        try:
            work(k)
        except BaseException as e:
            raised.append(e)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    if raised:
        raise raised[0]


def test_threads_compile_in_contexts_of_their_own(monkeypatch):
    compile_module, at_once, contexts = compat.compile_module, threading.Barrier(THREADS, timeout=60), []

    def together(client, module, *rest):
        contexts.append(module.context)
        at_once.wait()
        return compile_module(client, module, *rest)

    monkeypatch.setattr(compat, "compile_module", together)
    results = {}

    def work(k):
        results[k] = weft.jit(lambda x: x * (k + 0.25))(np.float32(4)).item()

    in_threads(work)
    assert results == {k: 4 * k + 1.0 for k in range(THREADS)}
    assert all(a is not b for i, a in enumerate(contexts) for b in contexts[:i]) and len(contexts) == THREADS


def test_a_thread_builds_elsewhere_while_another_compiles(monkeypatch):
    compile_module, texts = compat.compile_module, []

    def while_compiling(client, module, *rest):
        def other(k):
            with dialects() as home:
                assert home.context is not module.context
            texts.append(weft.jit(lambda x: x - k).lower(np.float32(1)).as_text())

        in_threads(other)
        return compile_module(client, module, *rest)

    monkeypatch.setattr(compat, "compile_module", while_compiling)
    assert weft.jit(lambda x: x * 7.5)(np.float32(2)) == 15
    assert len(texts) >= THREADS and all("subtract" in text for text in texts)


def test_a_context_is_used_again_and_left_in_time(monkeypatch):
    monkeypatch.setattr(builder, "_known", [])
    monkeypatch.setattr(Dialects, "MODULES", 3)
    seen = []
    for _ in range(6):
        with dialects() as home:
            seen.append(home)
    assert [seen.index(home) for home in seen] == [0, 0, 0, 3, 3, 3]
    monkeypatch.setattr(Dialects, "MODULES", 9)
    with dialects() as outer, dialects() as inner:
        assert inner is outer and outer not in seen
    (last,) = builder._known
    with contextlib.suppress(ZeroDivisionError), dialects():
        1 / 0

    def work(k):
        with dialects() as home:
            found.append(home)

    found = []
    thread = threading.Thread(target=work, args=(0,))
    thread.start()
    thread.join(60)
    assert found == [last]  # the error has left no lock behind


def test_modules_that_are_given_away_have_a_context_of_their_own():
    lowered = weft.jit(lambda x: x + 1).lower(np.float32(1))
    module = lowered.compiler_ir()
    with dialects() as home:
        assert home.context is not module.context
    assert "stablehlo.add" in str(module)


def test_many_threads_end_no_process():
    """XLA loaded dialects into a context in which another thread was building, and the process ended."""
    program = """
        import threading, time
        import numpy as np, weft
        from weft_native.lower.builder import Dialects
        Dialects.MODULES = 6
        end = time.time() + 6
        def work(k, n=0):
            while time.time() < end:
                n += 1
                weft.jit(lambda x: x * (k * 1000 + n) + 1)(np.arange(3, dtype=np.float32))
        threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
        for t in threads: t.start()
        for t in threads: t.join()
        print("ended well")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout == "ended well\n", done.stderr[-2000:]
