"""debug_key_reuse: arrays of keys remember which of their keys were consumed, and operations on consumed keys raise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..base.config import debug_key_reuse
from ..core.jaxpr import ClosedJaxpr
from ..core.trace import get_aval
from ..base.errors import KeyReuseError, at_user_line
from ..base.source_info import current
from ..transforms.key_reuse import Signature, called, join, overlap, signature, signature_of
from .array import KeyArray
from .nans import run_checked

if TYPE_CHECKING:
    from ..core.primitive import Primitive

watching: Callable[[], bool] = debug_key_reuse.option.get


def check_program(closed: ClosedJaxpr) -> None:
    """Raises KeyReuseError if a program that was traced consumes a key twice."""
    signature(closed)


def run_consuming(sig: Signature, args: Sequence[Any], name: str, run: Callable[[], Any]) -> Any:
    """The result of `run`, after its arguments were checked for consumed keys. The keys among them are then
    consumed.
    """
    given = [(f"argument {i}", args[i], part) for i, part in sig.sinks.items()] + [
        ("a key that it closes over", x, part) for x, part in sig.consts
    ]
    for what, x, part in given:
        if isinstance(x, KeyArray) and overlap(x.consumed, part):
            raise KeyReuseError(
                at_user_line(
                    f"Previously-consumed key passed to {name}: {what} was consumed {x.consumed_at}. Split it before"
                    " its first use (weft.random.split) and use each half once; if the same numbers are meant, pass"
                    " weft.random.clone(key)."
                )
            )
    outs = run()
    for _, x, part in given:
        if isinstance(x, KeyArray):
            x.consumed, x.consumed_at = join(x.consumed, part), f"by {name} at {current()}"
    for o, out in enumerate(outs if isinstance(outs, (list, tuple)) else [outs]):
        if isinstance(out, KeyArray):
            source = args[sig.forwards[o]] if o in sig.forwards else None
            if isinstance(source, KeyArray) and source is not out:
                same = source.size == out.size
                out.consumed, out.consumed_at = source.consumed if same else bool(source.consumed), source.consumed_at
            elif o in sig.spent:
                out.consumed, out.consumed_at = True, f"inside {name} at {current()}"
    return outs


def run_program(closed: ClosedJaxpr, args: Sequence[Any], name: str, run: Callable[[], Any]) -> Any:
    """Runs a compiled program that takes keys."""
    return run_consuming(signature(closed), args, name.lstrip("_"), run)


def run_watched(primitive: Primitive, args: tuple[Any, ...], params: dict[Any, Any]) -> Any:
    """`run_primitive` that checks keys if the option requires it."""
    if not watching():
        return run_checked(primitive, args, params)
    sig = signature_of(primitive, params, [get_aval(x) for x in args], eager=True)
    return run_consuming(sig, args, called(primitive, params), lambda: run_checked(primitive, args, params))
