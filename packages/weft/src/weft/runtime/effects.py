"""Running callbacks, and waiting for the callbacks of programs that still run."""

from __future__ import annotations

import atexit
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..base.avals import ShapedArray
from ..effects.callback import HostFunction, check_results, debug_callback_p, io_callback_p, pure_callback_p
from ..primitives.inspection import inspect_sharding_p
from ..core.effects import any_ordered
from ..core.trace import get_aval, is_array, root, tracing
from .dispatch import device_of, put, to_backend

if TYPE_CHECKING:
    from ..base.avals import AbstractValue
    from ..core.effects import Effect
    from ..core.types import Value
    from .partition import Where


class _Running(threading.local):
    """The programs with effects that a thread has started: for each, the object that its backend returns to wait for
    it. No thread waits for another one's, which on a host may be another client's.
    """

    def __init__(self) -> None:
        self.tokens: deque[Any] = deque()


_running = _Running()
_MOST = 64


def started(token: Any) -> None:
    """Takes note of a program with effects; `token.block_until_ready()` waits for its end."""
    tokens = _running.tokens
    tokens.append(token)
    while len(tokens) > _MOST:
        tokens.popleft().block_until_ready()


def effects_barrier() -> None:
    """Waits until all programs that this thread has started have made their callbacks and prints; raises an error that
    one of them raised.

    Returns:
        None.

    Example:
        >>> import weft
        >>> weft.jit(lambda x: weft.debug.print("x is {}", x))(1); weft.effects_barrier()
        x is 1
    """
    while _running.tokens:
        _running.tokens.popleft().block_until_ready()


atexit.register(effects_barrier)


def call_host(callback: HostFunction, values: Sequence[Any], avals: Sequence[ShapedArray], device: Where) -> Any:
    """Calls the user's function on host values, which it gets as arrays on `device`. For backends, which call it from
    their own threads.
    """
    with tracing(root):
        return callback(*[put(x, a, device, False) for x, a in zip(values, avals)])


def host_results(
    who: str,
    callback: HostFunction,
    result_avals: Sequence[AbstractValue],
    values: Sequence[Any],
    avals: Sequence[ShapedArray],
    device: Where,
) -> list[Any]:
    """`call_host`, with its results checked and flat."""
    return check_results(call_host(callback, values, avals, device), callback, result_avals, who)


def _arrays(args: Sequence[Any], device: Where) -> list[Any]:
    return [to_backend(x, get_aval(x), device) for x in args]


def _debug_impl(*args: Value, callback: HostFunction, effect: Effect, **_: Any) -> list[Any]:
    if effect.ordered:
        effects_barrier()
    callback(*_arrays(args, device_of(args)))
    return []


def _impl(who: str) -> Callable[..., Any]:
    def impl(
        *args: Value, callback: HostFunction, result_avals: Sequence[AbstractValue], ordered: bool = False, **_: Any
    ) -> list[Any]:
        if ordered:
            effects_barrier()
        device = device_of(args)
        results = check_results(callback(*_arrays(args, device)), callback, result_avals, who)
        return [put(x, a, device, False) for x, a in zip(results, result_avals)]

    return impl


def _reference(who: str) -> Callable[..., Any]:
    def reference(
        *args: Value, callback: HostFunction, result_avals: Sequence[AbstractValue] = (), **_: Any
    ) -> list[Any]:
        with tracing(root):
            out = callback(*[put(x) for x in args])
        return check_results(out, callback, result_avals, who) if who != "debug_callback" else []

    return reference


debug_callback_p.add_rules(impl=_debug_impl, reference=_reference("debug_callback"))
for _p in (pure_callback_p, io_callback_p):
    _p.add_rules(impl=_impl(_p.name), reference=_reference(_p.name))


def _inspect_impl(x: Value, *, callback: HostFunction) -> list[Any]:
    callback((x if is_array(x) else put(x)).sharding)
    return []


inspect_sharding_p.add_rules(impl=_inspect_impl)


def wait_for_ordered(effects: Any) -> None:
    """Lets a program with ordered effects start only when all others have had theirs."""
    if any_ordered(effects):
        effects_barrier()
