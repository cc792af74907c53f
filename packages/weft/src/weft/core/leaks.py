"""Finding traced values that outlive their trace, where `jax_check_tracer_leaks` asks for it."""

from __future__ import annotations

import gc
from types import CellType, FrameType, GeneratorType
from typing import TYPE_CHECKING, Any, Iterable

from ..base import source_info
from ..base.config import check_tracer_leaks
from ..base.errors import LeakedTracerError
from .trace import Trace, Tracer

if TYPE_CHECKING:
    from .types import Value

_wanted = check_tracer_leaks.option.get
_SHOWN, _KEPT_BY = 3, ", which is kept by "
# objects that hold values briefly
_PASSING: tuple[type[Any], ...] = (FrameType, GeneratorType, type(iter([])), type(iter(())), enumerate)


def watch_origins(trace: Trace) -> None:
    """Makes a trace whose tracers don't know their lines take note of them, where leaks are looked for."""
    if _wanted():
        make, origins = trace.join, {}  # type: ignore[attr-defined]

        def join(*args: Any) -> Any:
            made = make(*args)
            origins[id(made)] = source_info.current(2)
            return made

        trace.join, trace.origins = join, origins  # type: ignore[attr-defined]


def check_leaks(trace: Trace, what: str) -> None:
    """Raises LeakedTracerError if a value of a trace that has ended is still referenced. The caller must have dropped
    its own references.
    """
    if not _wanted():
        return
    gc.collect()
    kept = [x for x in gc.get_objects() if isinstance(x, Tracer) and getattr(x, "_trace", None) is trace]
    if not kept:
        return
    lines = [f"{len(kept)} traced value{'s are' if len(kept) > 1 else ' is'} still kept after {what} was traced:"]
    shown = kept[:_SHOWN]
    for tracer in shown:
        name = getattr(trace, "arg_names", {}).get(getattr(tracer, "_var", None))
        origin = getattr(tracer, "origin", None) or getattr(trace, "origins", {}).get(id(tracer))
        made = (
            f"the argument {name}"
            if name
            else f"made at {origin}"
            if origin is not None
            else "made by the transformation"
        )
        lines.append(f"  {tracer.aval.str_short(short_dtypes=False)}, {made}, kept by {_keeper(tracer, [kept, shown])}")
    lines.append("Return such values from the function instead of storing them.")
    raise LeakedTracerError("\n".join(lines))


def _keeper(value: Value, ignored: list[Any], depth: int = 3) -> str:
    """Describes which object refers to a value, which object refers to that one, and so on up to one with a name."""
    referrers = gc.get_referrers(value)
    ignored = [*ignored, value, referrers]
    for holder in referrers:
        if isinstance(holder, _PASSING) or _place(enumerate(ignored), holder) != "?":
            continue
        if isinstance(holder, dict):
            key = _place(holder.items(), value)
            if "__name__" in holder and "__builtins__" in holder:
                return f"the global {key} of the module {holder['__name__']}"
            for owner in gc.get_referrers(holder):
                if getattr(owner, "__dict__", None) is holder:
                    return f"the attribute {key} of a {type(owner).__qualname__}"
            kind = f"a dict, at {key!r}"
        elif isinstance(holder, (list, tuple)):
            kind = f"a {type(holder).__name__}, at {_place(enumerate(holder), value)}"
        elif type(holder).__name__ == "cell":
            kind = "the closure of a function"
        else:
            key = _place(getattr(holder, "__dict__", {}).items(), value)
            if key != "?":
                return f"the attribute {key} of a {type(holder).__qualname__}"
            kind = f"a {type(holder).__qualname__}"
        further = _keeper(holder, ignored, depth - 1) if depth > 1 and not isinstance(holder, CellType) else ""
        named = further.split(_KEPT_BY)[-1].startswith("the ")
        return f"{kind}{_KEPT_BY}{further}" if named else kind
    return "a local variable"


def _place(items: Iterable[tuple[Any, Any]], value: Any) -> Any:
    for key, item in list(items):
        if item is value:
            return key
    return "?"
