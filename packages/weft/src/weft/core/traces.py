"""What was traced of functions, kept for as long as they exist: a function that `jit`, `scan` or `cond` is given once
more is neither traced nor compiled once more.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, Callable, Hashable
from weakref import WeakKeyDictionary

MOST = 1000  # functions; of these, the ones used last
_tables: WeakKeyDictionary[Any, dict[Hashable, dict[Any, Any]]] = WeakKeyDictionary()
_lock = Lock()


def traces_of(fun: Callable[..., Any], use: Hashable) -> dict[Any, Any]:
    """The table of what was traced of a function in one use. It is a new one, which nobody else sees, for a function
    that has no hash or no weak references.
    """
    try:
        with _lock:
            uses = _tables.pop(fun, None)
            if uses is None:
                uses = {}
                while len(_tables) >= MOST:
                    del _tables[next(iter(_tables))]
            _tables[fun] = uses  # as the last one
            return uses.setdefault(use, {})
    except TypeError:
        return {}


def forget_traces() -> None:
    """Has every function traced anew."""
    with _lock:
        _tables.clear()
