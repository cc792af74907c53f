"""Results derived from a program are stored with it, for as long as it exists: its derivative, its batched form, its
executables. Each kind of result has its own typed table.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Concatenate, Generic, ParamSpec, TypeVar, final

from .jaxpr import ClosedJaxpr, Jaxpr, subjaxprs

K = TypeVar("K")
P = ParamSpec("P")
R = TypeVar("R")


@final
class Memo(Generic[K, R]):
    """A table on each jaxpr: results derived from it, by a key.

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


@memoized
def inner_jaxprs(jaxpr: Jaxpr) -> list[Jaxpr]:
    """The jaxprs among the parameters of a program's equations, in order; not those inside of these."""
    return [inner for eqn in jaxpr.eqns for inner in subjaxprs(eqn.params)]


def memoized_closed(f: Callable[Concatenate[ClosedJaxpr, P], R]) -> Callable[Concatenate[ClosedJaxpr, P], R]:
    """Decorator for a function of a closed jaxpr and hashable arguments: computes it once for each jaxpr, constants and
    arguments.
    """
    memo: Memo[Any, tuple[list[Any], R]] = Memo()

    @functools.wraps(f)
    def wrapper(closed: ClosedJaxpr, /, *args: P.args, **kwargs: P.kwargs) -> R:
        table = memo.of(closed.jaxpr)
        key = (args, tuple(kwargs.items()), tuple(map(id, closed.consts)))
        found = table.get(key)
        if found is None:
            # The constants are stored too, so that no other object gets the id of one while its entry exists.
            found = table[key] = [*closed.consts], f(closed, *args, **kwargs)
        return found[1]

    return wrapper
