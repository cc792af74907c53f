"""What has been derived from a program is kept with it, for as long as it lives: its derivative, its batched form, its
executables. Each such thing has a table of its own, with a type.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Concatenate, Generic, ParamSpec, TypeVar, final

from .jaxpr import ClosedJaxpr, Jaxpr

K = TypeVar("K")
P = ParamSpec("P")
R = TypeVar("R")


@final
class Memo(Generic[K, R]):
    """A table that each jaxpr has one of: what has been derived from it, by a key.

    Example:
        >>> import weft
        >>> from weft.core.memo import Memo
        >>> sizes: Memo[str, int] = Memo()
        >>> jaxpr = weft.make_jaxpr(lambda x: x + 1)(2.0).jaxpr
        >>> sizes.of(jaxpr)["equations"] = len(jaxpr.eqns)
        >>> sizes.of(jaxpr)
        {'equations': 1}
    """

    __slots__ = ()

    def of(self, jaxpr: Jaxpr) -> dict[K, R]:
        """The table of a jaxpr."""
        found: dict[K, R] | None = jaxpr.derived.get(self)
        if found is None:
            found = jaxpr.derived[self] = {}
        return found


_MISSING: Any = object()


def memoized(f: Callable[[Jaxpr], R]) -> Callable[[Jaxpr], R]:
    """Decorator: a function of a jaxpr is computed once for each."""

    @functools.wraps(f)
    def wrapper(jaxpr: Jaxpr) -> R:
        found: R = jaxpr.derived.get(f, _MISSING)
        if found is _MISSING:
            found = jaxpr.derived[f] = f(jaxpr)
        return found

    return wrapper


def memoized_closed(f: Callable[Concatenate[ClosedJaxpr, P], R]) -> Callable[Concatenate[ClosedJaxpr, P], R]:
    """Decorator: a function of a closed jaxpr and of what can be hashed is computed once for each jaxpr with the same
    constants and the same other arguments.
    """
    memo: Memo[Any, tuple[list[Any], R]] = Memo()

    @functools.wraps(f)
    def wrapper(closed: ClosedJaxpr, /, *args: P.args, **kwargs: P.kwargs) -> R:
        table = memo.of(closed.jaxpr)
        key = (args, tuple(kwargs.items()), tuple(map(id, closed.consts)))
        found = table.get(key)
        if found is None:
            # The constants are kept too: no other object gets the id of one while its entry stands.
            found = table[key] = [*closed.consts], f(closed, *args, **kwargs)
        return found[1]

    return wrapper
