"""Hooks: functions that a lower module calls and a higher module defines.

The lower module declares the hook, with its type, beside the call. The higher module defines it, once.
"""

from __future__ import annotations

from typing import Callable, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Hook(Generic[P, R]):
    """A function to be defined by a higher module.

    Args:
        name: what it does, for the error where nothing has defined it.
        default: what is called until then, where there is something sensible to do.

    Example:
        >>> from weft.base.hooks import Hook
        >>> show: Hook[[int], str] = Hook("showing a number")
        >>> @show.define
        ... def hexadecimal(n: int) -> str:
        ...     return hex(n)
        >>> show(255)
        '0xff'
    """

    __slots__ = ("name", "_function", "_defined")

    def __init__(self, name: str, default: Callable[P, R] | None = None):
        self.name, self._defined = name, False
        self._function: Callable[P, R] = self._undefined if default is None else default

    def define(self, function: Callable[P, R]) -> Callable[P, R]:
        """Makes `function` the definition of the hook, and returns it, so that this can be a decorator.

        Raises:
            RuntimeError: if the hook has a definition already.
        """
        if self._defined:
            raise RuntimeError(f"{self.name} is defined already, by {self._function}")
        self._function, self._defined = function, True
        return function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(*args, **kwargs)

    def _undefined(self, *args: P.args, **kwargs: P.kwargs) -> R:
        raise RuntimeError(f"the module that defines {self.name} has not been imported. Import weft first.")
