"""How long tracing and compiling take, told to whoever registers for it.

Example:
    >>> import weft
    >>> from weft import monitoring
    >>> monitoring.register_event_duration_secs_listener(lambda event, seconds, **_: print(event))
    >>> float(weft.jit(lambda x: x + 1)(1.0))
    /jax/core/compile/jaxpr_trace_duration
    /jax/core/compile/backend_compile_duration
    2.0
    >>> monitoring.clear_event_listeners()
"""
from __future__ import annotations

import time
from contextlib import contextmanager
from typing import Callable

TRACE = "/jax/core/compile/jaxpr_trace_duration"
COMPILE = "/jax/core/compile/backend_compile_duration"

_listeners: list[Callable] = []


def register_event_duration_secs_listener(callback: Callable) -> None:
    """Calls `callback(event, seconds)` at the end of every trace of a jitted function and of every compilation. A trace may hold others."""
    _listeners.append(callback)


def record_event_duration_secs(event: str, duration: float, **kwargs) -> None:
    """Tells all listeners that something took `duration` seconds."""
    for callback in _listeners:
        callback(event, duration, **kwargs)


def clear_event_listeners() -> None:
    """Forgets all listeners."""
    _listeners.clear()


@contextmanager
def timed(event: str):
    """Records how long the block takes, unless it fails."""
    start = time.perf_counter()
    yield
    record_event_duration_secs(event, time.perf_counter() - start)
