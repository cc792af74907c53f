"""Ctrl-C while a program runs.

Python's handlers of signals run between its own instructions, so not while the main thread is in a compiled program.
But the system's handler writes to the wake-up descriptor at once. A thread waits at its other end and ends the program,
and Python raises KeyboardInterrupt as usual.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


def come_here() -> bool:
    """Whether Ctrl-C raises KeyboardInterrupt in this thread, and not something else of the program's choice."""
    return (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )


def until_one(stop: Callable[[], object], run: Callable[[], _T]) -> _T:
    """run(), during which Ctrl-C calls `stop` in another thread; for the main thread."""
    watcher = _watcher()
    before = signal.set_wakeup_fd(watcher.sender.fileno(), warn_on_full_buffer=False)
    if before not in (-1, watcher.sender.fileno()):  # other code, such as an event loop, waits for signals
        signal.set_wakeup_fd(before)
        return run()
    outer = watcher.replace(stop)
    try:
        return run()
    finally:
        watcher.replace(outer)
        signal.set_wakeup_fd(before)


class _Watcher:
    """The thread that waits for signals, and the function that it calls for an interrupt."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.sender, self.receiver = socket.socketpair()
        self.sender.setblocking(False)
        self.lock = threading.Lock()
        self.stop: Callable[[], object] | None = None
        threading.Thread(target=self._wait, name="weft interrupts", daemon=True).start()

    def replace(self, stop: Callable[[], object] | None) -> Callable[[], object] | None:
        """Sets the function that an interrupt calls, and returns the previous one, which is not called any more."""
        with self.lock:
            self.stop, before = stop, self.stop
        return before

    def _wait(self) -> None:
        while signals := self.receiver.recv(64):
            with self.lock:
                if signal.SIGINT in signals and self.stop is not None:
                    self.stop()


_made: list[_Watcher] = []


def _watcher() -> _Watcher:
    """The watcher of this process; a fork has none of its parent's threads."""
    if not _made or _made[0].process != os.getpid():
        _made[:] = [_Watcher()]
    return _made[0]
