"""Signatures as they read in source, for the editor: those of the build's index, and those of objects in a program.

Nothing here runs code of the objects that it describes: neither `repr` of defaults nor that of annotations.
"""

from __future__ import annotations

import enum
import inspect
import re
import types
from typing import Any

SCALARS = (bool, int, float, complex, str, bytes, type(None))


def signature_of(value: Any) -> str | None:
    """The signature as one reads it in source: annotations without quotes; None where there is none to be found.

    Functions written in C may have theirs as the first line of their docstring alone.
    """
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        if not issubclass(type(value), (type, types.BuiltinFunctionType, types.MethodDescriptorType)):
            name, doc = getattr(type(value), "__name__", ""), ""
        else:
            name, doc = value.__name__, value.__doc__ or ""
        found = re.match(rf"{re.escape(name)}(\(.*\))$", doc.partition("\n")[0]) if isinstance(doc, str) else None
        return found and found[1]
    parts: list[str] = []
    positional_only = False
    for parameter in signature.parameters.values():
        if positional_only and parameter.kind is not parameter.POSITIONAL_ONLY:
            parts.append("/")
        positional_only = parameter.kind is parameter.POSITIONAL_ONLY
        if parameter.kind is parameter.KEYWORD_ONLY and not any(part.startswith("*") for part in parts):
            parts.append("*")
        parts.append(_parameter(parameter))
    if positional_only:
        parts.append("/")
    returns = signature.return_annotation
    arrow = "" if returns is signature.empty else f" -> {annotation(returns)}"
    return f"({', '.join(parts)}){arrow}"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    text = stars + parameter.name
    annotated = parameter.annotation is not parameter.empty
    if annotated:
        text += f": {annotation(parameter.annotation)}"
    if parameter.default is not parameter.empty:
        text += f" = {default(parameter.default)}" if annotated else f"={default(parameter.default)}"
    return text


def annotation(value: Any) -> str:
    """An annotation as it reads in source. For objects that are not types it is the name of their class."""
    if issubclass(type(value), str):
        return value.strip("'\"")
    if type(value).__module__ in ("typing", "annotationlib") and hasattr(value, "__forward_arg__"):
        return value.__forward_arg__
    known = issubclass(type(value), type) or type(value).__module__ in ("typing", "types", "builtins")
    return inspect.formatannotation(value) if known else type(value).__name__


def default(value: Any) -> str:
    """A default as it reads in source; `...` for values without such a form."""
    if type(value) in SCALARS:
        return text if len(text := repr(value)) <= 60 else "..."
    if issubclass(type(value), (types.FunctionType, types.BuiltinFunctionType, type)):
        return value.__name__
    if type(value) in (tuple, list) and len(value) <= 8:
        inner = ", ".join(map(default, value))
        left, right = "()" if type(value) is tuple else "[]"
        return f"{left}{inner}{',' if type(value) is tuple and len(value) == 1 else ''}{right}"
    if type(value) is dict and not value:
        return "{}"
    if issubclass(type(value), enum.Enum):
        return f"{type(value).__name__}.{value._name_}"
    return "..."
