"""The first-order primitives, each with all its rules in one place.

Order: linear (what rules of others are written with) → elementwise → shape, reduce, dot, index, sort, … .

Users know this name for four functions, `weft.ops.segment_sum` and its siblings, which are written with the array library and load when they are
first asked for (`docs/decisions/008-what-users-find-in-ops.md`).
"""
from importlib import import_module as _import_module
from typing import Any as _Any

_SEGMENTS = ("segment_max", "segment_min", "segment_prod", "segment_sum")


def __getattr__(name: str) -> _Any:
    if name in _SEGMENTS:
        return getattr(_import_module("weft.segments"), name)
    raise AttributeError(f"module 'weft.ops' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_SEGMENTS])
