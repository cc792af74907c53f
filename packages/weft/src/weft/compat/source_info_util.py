"""jax.extend.source_info_util: lines and scopes of the user's code."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from ..base.annotations import override
from ..base.scoped import scoped
from ..base.source_info import (  # noqa: F401
    UNKNOWN,
    SourceInfo as SourceInfo,
    current as _current,
    name_stack as _names,
    named_scope as extend_name_stack,
    register_exclusion as register_exclusion,
    subject as _subject,
)


class NameStack(NamedTuple):
    """The names of the scopes in which an operation is traced, the outermost first."""

    stack: tuple[str, ...] = ()

    def extend(self, name: str) -> NameStack:
        """The stack inside of one scope more."""
        return NameStack((*self.stack, name))

    @override
    def __add__(self, other: Any) -> NameStack:
        return NameStack((*self.stack, *other.stack))

    @override
    def __str__(self) -> str:
        return "/".join(self.stack)


def new_name_stack(name: str = "") -> NameStack:
    """A stack of one name, or of none."""
    return NameStack((name,) if name else ())


def current_name_stack() -> NameStack:
    """The scopes in which operations are traced now."""
    return NameStack(_names.get())


def set_name_stack(name_stack: NameStack) -> AbstractContextManager[None]:
    """A block in which operations are traced in the scopes of `name_stack`, whatever is around it."""
    return scoped(_names, tuple(name_stack.stack))


def reset_name_stack() -> AbstractContextManager[None]:
    """A block in which operations are traced in no scope."""
    return scoped(_names, ())


def transform_name_stack(name: str) -> AbstractContextManager[Any]:
    """A block whose operations a transformation of that name makes."""
    return extend_name_stack(f"{name}()")


def current() -> SourceInfo:
    """The line of the user's that is running."""
    return _current(2)


def new_source_info() -> SourceInfo:
    """A line that is not known, in no scope."""
    return UNKNOWN


def user_context(traceback: Any, *, name_stack: NameStack | None = None) -> AbstractContextManager[Any]:
    """A block whose errors are about the line `traceback`, a `SourceInfo` (None: the caller's)."""
    if name_stack is not None:
        return set_name_stack(name_stack)
    return _subject(traceback) if isinstance(traceback, SourceInfo) else nullcontext()


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """The line that an equation comes from."""
    return str(source_info)
