"""Statistics of compilation: how long tracing, lowering and compiling take, and how the persistent cache is used.

There are four kinds of listeners: for durations (seconds), time spans (start and end, as `time.time()` counts), plain
events, and scalars. Each phase records a scalar when it starts (the time), and a duration and a time span when it ends,
with the function's name as `fun_name=`.

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
from typing import Any, Callable, TypeVar

from . import source_info
from .config import config, logger

TRACE = "/jax/core/compile/jaxpr_trace_duration"
LOWER = "/jax/core/compile/jaxpr_to_mlir_module_duration"
COMPILE = "/jax/core/compile/backend_compile_duration"
ON_HOST = "/weft/compile/on_host"  # a span and a duration: an accelerator host has compiled a program
LOAD = "/weft/compile/load"  # a span: a compiled program goes to its device
TRANSFER = "/weft/transfer"  # a span: bytes=, to= "device" or "host"
MISS = "/weft/compile/cache_miss"  # an event: why a function was traced or compiled; phase=, where=, why=
_VERBS = {TRACE: "tracing", LOWER: "lowering", COMPILE: "compiling"}

R = TypeVar("R")

_events: list[Callable] = []
_durations: list[Callable] = []
_spans: list[Callable] = []
_scalars: list[Callable] = []


def register_event_listener(callback: Callable) -> None:
    """Registers a function that is called for every event.

    Args:
        callback: function: `callback(event, **about)`.

    Returns:
        None.

    Example:
        >>> from weft import monitoring
        >>> monitoring.register_event_listener(print)
        >>> monitoring.record_event("/mine/started")
        /mine/started
        >>> monitoring.unregister_event_listener(print)
    """
    _events.append(callback)


def register_event_duration_secs_listener(callback: Callable) -> None:
    """Registers a function that is called for every duration. The durations of nested traces overlap.

    Args:
        callback: function: `callback(event, seconds, **about)`.

    Returns:
        None.

    Example:
        >>> from weft import monitoring
        >>> monitoring.register_event_duration_secs_listener(print)
        >>> monitoring.record_event_duration_secs("/mine/step", 0.5)
        /mine/step 0.5
        >>> monitoring.unregister_event_duration_listener(print)
    """
    _durations.append(callback)


def register_event_time_span_listener(callback: Callable) -> None:
    """Registers a function that is called for every time span.

    Args:
        callback: function: `callback(event, start, end, **about)`; times in seconds, as `time.time()` counts.

    Returns:
        None.

    Example:
        >>> from weft import monitoring
        >>> monitoring.register_event_time_span_listener(print)
        >>> monitoring.record_event_time_span("/mine/step", 1.0, 1.5)
        /mine/step 1.0 1.5
        >>> monitoring.unregister_event_time_span_listener(print)
    """
    _spans.append(callback)


def register_scalar_listener(callback: Callable) -> None:
    """Registers a function that is called for every scalar.

    Args:
        callback: function: `callback(event, value, **about)`.

    Returns:
        None.

    Example:
        >>> from weft import monitoring
        >>> monitoring.register_scalar_listener(print)
        >>> monitoring.record_scalar("/mine/loss", 0.25)
        /mine/loss 0.25
        >>> monitoring.unregister_scalar_listener(print)
    """
    _scalars.append(callback)


def _remove(callback: Callable, listeners: list) -> None:
    if callback not in listeners:
        raise ValueError(
            f"{callback!r} is not registered for this kind of event; register it first, and unregister it once."
        )
    listeners.remove(callback)


def unregister_event_listener(callback: Callable) -> None:
    """Removes a listener that `register_event_listener` registered.

    Args:
        callback: the function.

    Returns:
        None.

    Raises:
        ValueError: if it is not registered.

    Example:
        >>> from weft import monitoring
        >>> monitoring.register_event_listener(print)
        >>> monitoring.unregister_event_listener(print)
    """
    _remove(callback, _events)


def unregister_event_duration_listener(callback: Callable) -> None:
    """Removes a listener that `register_event_duration_secs_listener` registered.

    Args:
        callback: the function.

    Returns:
        None.

    Raises:
        ValueError: if it is not registered.

    Example:
        >>> from weft import monitoring
        >>> monitoring.register_event_duration_secs_listener(print)
        >>> monitoring.unregister_event_duration_listener(print)
    """
    _remove(callback, _durations)


def unregister_event_time_span_listener(callback: Callable) -> None:
    """Removes a listener that `register_event_time_span_listener` registered.

    Args:
        callback: the function.

    Returns:
        None.

    Raises:
        ValueError: if it is not registered.

    Example:
        >>> from weft import monitoring
        >>> monitoring.register_event_time_span_listener(print)
        >>> monitoring.unregister_event_time_span_listener(print)
    """
    _remove(callback, _spans)


def unregister_scalar_listener(callback: Callable) -> None:
    """Removes a listener that `register_scalar_listener` registered.

    Args:
        callback: the function.

    Returns:
        None.

    Raises:
        ValueError: if it is not registered.

    Example:
        >>> from weft import monitoring
        >>> monitoring.register_scalar_listener(print)
        >>> monitoring.unregister_scalar_listener(print)
    """
    _remove(callback, _scalars)


def record_event(event: str, **kwargs: str | int) -> None:
    """Calls the listeners of events.

    Args:
        event: str: the name of the event.
        **kwargs: facts about it, passed on.

    Returns:
        None.

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
    """Calls the listeners of durations.

    Args:
        event: str: the name of the event.
        duration: float: seconds.
        **kwargs: facts about it, passed on.

    Returns:
        None.

    Example:
        >>> from weft import monitoring
        >>> monitoring.register_event_duration_secs_listener(print)
        >>> monitoring.record_event_duration_secs("/mine/step", 0.5)
        /mine/step 0.5
        >>> monitoring.unregister_event_duration_listener(print)
    """
    for callback in list(_durations):
        callback(event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: str | int) -> None:
    """Calls the listeners of time spans.

    Args:
        event: str: the name of the event.
        start_time: float: seconds, as `time.time()` counts.
        end_time: float: the same.
        **kwargs: facts about it, passed on.

    Returns:
        None.

    Example:
        >>> from weft import monitoring
        >>> monitoring.register_event_time_span_listener(print)
        >>> monitoring.record_event_time_span("/mine/step", 1.0, 1.5)
        /mine/step 1.0 1.5
        >>> monitoring.unregister_event_time_span_listener(print)
    """
    for callback in list(_spans):
        callback(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Calls the listeners of scalars.

    Args:
        event: str: the name of the event.
        value: float or int.
        **kwargs: facts about it, passed on.

    Returns:
        None.

    Example:
        >>> from weft import monitoring
        >>> monitoring.register_scalar_listener(print)
        >>> monitoring.record_scalar("/mine/loss", 0.25)
        /mine/loss 0.25
        >>> monitoring.unregister_scalar_listener(print)
    """
    for callback in list(_scalars):
        callback(event, value, **kwargs)


def clear_event_listeners() -> None:
    """Removes all listeners, of every kind.

    Returns:
        None.

    Example:
        >>> from weft import monitoring
        >>> monitoring.register_scalar_listener(print)
        >>> monitoring.clear_event_listeners()
        >>> monitoring.record_scalar("/mine/loss", 0.25)
    """
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


def recorded(event: str, function: Callable[..., R], *args: Any, **about: str | int) -> R:
    """`function(*args)`, which is recorded as a time span if anybody listens to those."""
    if not _spans:
        return function(*args)
    start, begin = time.time(), time.perf_counter()
    result = function(*args)
    record_event_time_span(event, start, start + time.perf_counter() - begin, **about)
    return result
