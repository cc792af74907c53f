"""Guards against transfers, traces and runs that the configuration forbids. XLA's runtime guards its own transfers;
this module guards those of other backends.
"""

from __future__ import annotations

import re
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Callable, ContextManager, Iterator

from ..base.scoped import scoped
from ..base import config as options, errors
from ..base.config import logger
from ..core.trace import is_array
from ..base.errors import at_user_line

if TYPE_CHECKING:
    from ..core.types import Value

DIRECTIONS = ("host_to_device", "device_to_host", "device_to_device")
_all = options.transfer_guard.option
_each = {
    "host_to_device": options.transfer_guard_host_to_device.option,
    "device_to_host": options.transfer_guard_device_to_host.option,
    "device_to_device": options.transfer_guard_device_to_device.option,
}
_no_execution, _no_tracing = options.no_execution.option.get, options.no_tracing.option.get
_explicit: ContextVar[bool] = ContextVar("explicit_transfer", default=False)
_watchers: list[Callable[..., Any]] = []
_explainers: list[Callable[[Exception], Exception]] = []
_NOTHING = nullcontext()
_OBJECTS = r", (?:dst_)?sharding=<[^>]*>"  # in the runtime's messages; of no use to a reader
_HINT = (
    "Move the array explicitly with weft.device_put or weft.device_get before this line, or allow it: with"
    " weft.transfer_guard('allow'): …"
)


def level(direction: str, default: bool = False) -> str | None:
    """The value of the options for a direction, in this thread or by default; None if it is not set."""
    one, each = _each[direction], _all
    return (one.default or each.default) if default else (one.get() or each.get())


def watch(callback: Callable[..., Any]) -> None:
    """Calls `callback(whether transfers are explicit now)` in the thread where that changes, while a guard is set."""
    _watchers.append(callback)


def explicit() -> ContextManager[None]:
    """A block in which transfers are the user's explicit wish."""
    return _explicitly() if any([level(d) for d in DIRECTIONS]) else _NOTHING


@contextmanager
def _explicitly() -> Iterator[None]:
    try:
        with scoped(_explicit, True):
            for callback in _watchers:
                callback(True)
            yield
    finally:
        for callback in _watchers:
            callback(_explicit.get())


def check_transfer(direction: str, what: Callable[[], str]) -> None:
    """Logs or refuses a transfer, as the options say."""
    found = level(direction)
    if found is None or found == "allow":
        return
    wished = _explicit.get()
    if found in ("log", "log_explicit"):
        if found == "log_explicit" or not wished:
            logger("weft.compile").warning(at_user_line(f"{direction.replace('_', '-')} transfer: {what()}"))
    elif found == "disallow_explicit" or not wished:
        raise errors.JaxRuntimeError(
            at_user_line(f"Disallowed {direction.replace('_', '-')} transfer: {what()}.\n{_HINT}")
        )


DELETED = "x.delete()"


def deleted(x: Value, name: str = "an array") -> RuntimeError:
    """The error of using an array whose memory is gone. `x.gone` says to whom it was given, where that is known."""
    how = getattr(x, "gone", None) or "donated to a jitted function (donate_argnums or donate_argnames)"
    step = (
        "Delete it after its last use"
        if how.startswith(DELETED)
        else "Use the result of that function, or do not donate the array"
    )
    return RuntimeError(
        at_user_line(
            f"{name} of type {x.aval.str_short(short_dtypes=False)} has been deleted: "
            f"{'by' if how.startswith(DELETED) else 'it was'} {how}. {step}; x.copy() before that is another array."
        )
    )


def explain_with(explainer: Callable[[Exception], Exception]) -> None:
    """Has a function look at errors of a runtime first; it returns the error, or one that says more."""
    _explainers.append(explainer)


def explained(error: Exception, arguments: Callable[..., Any] = tuple) -> Exception:
    """An error of a runtime. If a user can do something about it, the line and the remedy are added. `arguments`
    returns (name, array) pairs.
    """
    for explainer in _explainers:
        told = explainer(error)
        if told is not error:
            return told
    text = str(error)
    if "Disallowed" in text and "transfer" in text and _HINT not in text:
        return type(error)(at_user_line(f"{re.sub(_OBJECTS, '', text)}\n{_HINT}"))
    if "deleted or donated" in text or "execute_sharded_on_local_devices" in text:
        for name, x in arguments():
            if is_array(x) and x.is_deleted():
                return deleted(x, name)
        if "deleted" in text:
            return RuntimeError(
                at_user_line(
                    "an array that this computation uses has been deleted, or donated to a jitted function. Use the"
                    " result of that function, copy the array before (x.copy()), or do not donate it."
                )
            )
    return error


def check_execution(name: str) -> None:
    """Raises where `jax_no_execution` forbids to run a program."""
    if _no_execution():
        raise RuntimeError(
            at_user_line(
                f"jit({name}) would run, but the config option jax_no_execution is set. Trace it without running it"
                " (weft.make_jaxpr, weft.eval_shape, f.lower(…)), or leave the block of weft.no_execution()."
            )
        )


def check_tracing(name: str, why: str) -> None:
    """Raises where `jax_no_tracing` forbids to trace a function."""
    if _no_tracing():
        raise RuntimeError(
            at_user_line(
                f"re-tracing the function {name} for jit, but the config option jax_no_tracing is set. Why it is"
                f" traced: {why}. Call it with the same types as before, or leave the block of weft.no_tracing()."
            )
        )
