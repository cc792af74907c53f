"""A value of a context variable for the time of a block."""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class scoped(Generic[T]):
    """Context manager: `var` has `value` inside the block, and afterwards what it had before."""

    __slots__ = ("_var", "_value", "_token")
    _token: Token[Any]

    def __init__(self, var: ContextVar[T], value: T):
        self._var, self._value = var, value

    def __enter__(self) -> None:
        self._token = self._var.set(self._value)

    def __exit__(self, *error: object) -> None:
        self._var.reset(self._token)
