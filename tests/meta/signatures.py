"""Signatures as plain text, so that those of two libraries can be compared: `["x", "/", "axis=None", "*",
"where=None", "**rest"]`.
"""

from __future__ import annotations

import enum
import inspect
from typing import Any

UNSET = "..."  # a default that only says that nothing was given


def default(value: Any) -> str:
    """A default as text that does not depend on which library it belongs to."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, (tuple, list)):
        opening, closing = "()" if isinstance(value, tuple) else "[]"
        return opening + ", ".join(map(default, value)) + closing
    if isinstance(value, frozenset):
        return "{" + ", ".join(sorted(map(default, value))) + "}"
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, dict, type(...))):
        return repr(value)
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():  # a scalar
        return repr(value.item())
    name = getattr(value, "__name__", None) or getattr(value, "name", None)  # a function or a class, a dtype
    return name if isinstance(name, str) else UNSET


def parameters(value: Any) -> list[str] | None:
    """The public parameters of a function or of a class's constructor, with their kinds and defaults; None where
    Python can't tell.
    """
    try:
        found = [p for p in inspect.signature(value).parameters.values() if not p.name.startswith("_")]
    except (TypeError, ValueError):
        return None
    text: list[str] = []
    kinds = inspect.Parameter
    for at, p in enumerate(found):
        before = found[at - 1].kind if at else None
        if before == kinds.POSITIONAL_ONLY != p.kind:
            text.append("/")
        if p.kind == kinds.KEYWORD_ONLY and before not in (kinds.KEYWORD_ONLY, kinds.VAR_POSITIONAL):
            text.append("*")
        stars = {kinds.VAR_POSITIONAL: "*", kinds.VAR_KEYWORD: "**"}.get(p.kind, "")
        text.append(stars + p.name + ("" if p.default is p.empty else "=" + default(p.default)))
    return text + ["/"] if found and found[-1].kind == kinds.POSITIONAL_ONLY else text


def methods(kind: type) -> dict[str, list[str] | None]:
    """The public methods that a class and its bases define, by name, without `self`."""
    found: dict[str, list[str] | None] = {}
    for name in sorted(dir(kind)):
        value = inspect.getattr_static(kind, name, None)
        if (
            name.startswith("_")
            or not (callable(value) or isinstance(value, (classmethod, staticmethod)))
            or isinstance(value, type)
        ):
            continue
        known = parameters(getattr(kind, name))
        found[name] = (
            known
            if isinstance(value, (classmethod, staticmethod)) or not known
            else known[2 if known[1:2] == ["/"] else 1 :]
        )
    return found
