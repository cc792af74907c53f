"""Finding traced values that outlive their trace, where `jax_check_tracer_leaks` asks for it."""
from __future__ import annotations

import gc
from types import FrameType, ModuleType

from ..config import config
from ..errors import LeakedTracerError
from .trace import Trace, Tracer

_wanted = config._options["check_tracer_leaks"].get
_SHOWN = 3


def check_leaks(trace: Trace, what: str) -> None:
    """Raises LeakedTracerError if a value of a trace that has ended is still kept somewhere. The caller must have let go of those it had."""
    if not _wanted():
        return
    gc.collect()
    kept = [x for x in gc.get_objects() if isinstance(x, Tracer) and getattr(x, "_trace", None) is trace]
    if not kept:
        return
    lines = [f"{len(kept)} traced value{'s are' if len(kept) > 1 else ' is'} still kept after {what} was traced:"]
    for tracer in kept[:_SHOWN]:
        name = getattr(trace, "arg_names", {}).get(getattr(tracer, "_var", None))
        origin = getattr(tracer, "origin", None)
        made = f"the argument {name}" if name else f"made at {origin}" if origin is not None else "made by the transformation"
        lines.append(f"  {tracer.aval.str_short(short_dtypes=False)}, {made}, kept by {_keeper(tracer, [kept])}")
    lines.append("Return such values from the function instead of storing them.")
    raise LeakedTracerError("\n".join(lines))


def _keeper(value, ignored: list, depth: int = 3) -> str:
    """Who refers to a value, in words."""
    for holder in gc.get_referrers(value):
        if any(holder is other for other in ignored) or isinstance(holder, FrameType):
            continue
        if isinstance(holder, dict):
            key = next((k for k, v in holder.items() if v is value), None)
            if isinstance(holder.get("__name__"), str) and "__builtins__" in holder or "__loader__" in holder:
                return f"the global {key!r} of the module {holder['__name__']}"
            owner = next((o for o in gc.get_referrers(holder) if getattr(o, "__dict__", None) is holder), None)
            if owner is not None:
                return f"the global {key!r} of the module {owner.__name__}" if isinstance(owner, ModuleType) else f"the attribute {key!r} of a {type(owner).__qualname__}"
            kind = f"a dict, at {key!r}"
        elif isinstance(holder, (list, tuple)):
            kind = f"a {type(holder).__name__}, at {next((i for i, v in enumerate(holder) if v is value), '?')}"
        elif type(holder).__name__ == "cell":
            kind = "the closure of a function"
        else:
            kind = f"a {type(holder).__qualname__}"
        further = _keeper(holder, [*ignored, value], depth - 1) if depth > 1 else ""
        return kind + (f", which is kept by {further}" if further and further != "a local variable" else "")
    return "a local variable"
