"""Statistics of the phases of compiling: how long tracing, lowering and compiling take, and what the persistent cache
does.

Listeners of four kinds are told: durations (seconds), time spans (start and end, as `time.time()` counts), plain events
and scalars. Each phase gives a scalar when it starts (the time), and a duration and a time span when it ends, with
`fun_name=` the function's name.

Example:
    >>> import weft
    >>> from weft import monitoring
    >>> show = lambda event, seconds, **about: print(event, about["fun_name"])
    >>> monitoring.register_event_duration_secs_listener(show)
    >>> y = weft.jit(lambda x: x + 1)(1.0)
    /jax/core/compile/jaxpr_trace_duration <lambda>
    /jax/core/compile/jaxpr_to_mlir_module_duration jit(<lambda>)
    /jax/core/compile/backend_compile_duration jit(<lambda>)
    >>> monitoring.unregister_event_duration_listener(show)
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import Callable

from . import source_info
from .config import config, logger

TRACE = "/jax/core/compile/jaxpr_trace_duration"
LOWER = "/jax/core/compile/jaxpr_to_mlir_module_duration"
COMPILE = "/jax/core/compile/backend_compile_duration"
_VERBS = {TRACE: "tracing", LOWER: "lowering", COMPILE: "compiling"}

_events: list[Callable] = []
_durations: list[Callable] = []
_spans: list[Callable] = []
_scalars: list[Callable] = []


def register_event_listener(callback: Callable) -> None:
    """Calls `callback(event, **about)` for every event."""
    _events.append(callback)


def register_event_duration_secs_listener(callback: Callable) -> None:
    """Calls `callback(event, seconds, **about)` for every duration. A trace may hold others."""
    _durations.append(callback)


def register_event_time_span_listener(callback: Callable) -> None:
    """Calls `callback(event, start, end, **about)` for every time span."""
    _spans.append(callback)


def register_scalar_listener(callback: Callable) -> None:
    """Calls `callback(event, value, **about)` for every scalar."""
    _scalars.append(callback)


def _remove(callback: Callable, listeners: list) -> None:
    if callback not in listeners:
        raise ValueError(
            f"{callback!r} is not registered for this kind of event; register it first, and unregister it once."
        )
    listeners.remove(callback)


def unregister_event_listener(callback: Callable) -> None:
    """Forgets a listener; ValueError if it is not registered."""
    _remove(callback, _events)


def unregister_event_duration_listener(callback: Callable) -> None:
    """Forgets a listener; ValueError if it is not registered."""
    _remove(callback, _durations)


def unregister_event_time_span_listener(callback: Callable) -> None:
    """Forgets a listener; ValueError if it is not registered."""
    _remove(callback, _spans)


def unregister_scalar_listener(callback: Callable) -> None:
    """Forgets a listener; ValueError if it is not registered."""
    _remove(callback, _scalars)


def record_event(event: str, **kwargs: str | int) -> None:
    """Tells the listeners that something happened.

    Example:
        >>> from weft import monitoring
        >>> monitoring.register_event_listener(print)
        >>> monitoring.record_event("/mine/started")
        /mine/started
        >>> monitoring.unregister_event_listener(print)
    """
    for callback in list(_events):
        callback(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Tells the listeners that something took `duration` seconds."""
    for callback in list(_durations):
        callback(event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: str | int) -> None:
    """Tells the listeners that something went on from one time to another."""
    for callback in list(_spans):
        callback(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Tells the listeners a number."""
    for callback in list(_scalars):
        callback(event, value, **kwargs)


def clear_event_listeners() -> None:
    """Forgets all listeners."""
    for listeners in (_events, _durations, _spans, _scalars):
        listeners.clear()


@contextmanager
def timed(event: str, fun_name: str = "<unnamed>"):
    """Records a phase of compiling, unless it fails; `jax_log_compiles` logs it with the user's line."""
    start = time.time()
    record_scalar(event, start, fun_name=fun_name)
    begin = time.perf_counter()
    yield
    seconds = time.perf_counter() - begin
    record_event_duration_secs(event, seconds, fun_name=fun_name)
    record_event_time_span(event, start, start + seconds, fun_name=fun_name)
    if config.log_compiles:
        logger("weft.compile").warning(
            "Finished %s %s in %.6f s\n  at %s", _VERBS.get(event, event), fun_name, seconds, source_info.current(3)
        )
