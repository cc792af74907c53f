"""The line of the user's code that an operation comes from."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from types import FrameType, TracebackType
from typing import Callable, Iterator

from .scoped import scoped
from .annotations import Args, Result, override
from .hooks import Hook

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # the package weft
_STANDARD = (contextlib.__file__, functools.__file__)  # modules whose frames are hidden between ours
_internal_paths = [_ROOT, *_STANDARD]
# a file's name -> whether it belongs to us (or to a library that asked to be left out); the hash of a name, unlike that
# of a code object, is computed once
_internal: dict[str, bool] = {}
_subject: ContextVar = ContextVar("subject", default=None)
name_stack: ContextVar[tuple] = ContextVar("name_stack", default=())
# The option jax_traceback_filtering; the configuration defines it.
filtering: Hook[[], str] = Hook("the option traceback_filtering", lambda: "auto")


def register_exclusion(path: str) -> None:
    """Leaves frames of files under `path` out of error messages and source lines."""
    _internal_paths.append(path)
    _internal.clear()


def is_internal(file: str) -> bool:
    try:
        return _internal[file]
    except KeyError:
        result = _internal[file] = file.startswith(tuple(_internal_paths)) or file.startswith("<frozen")
        return result


class UnfilteredStackTrace(Exception):
    """The cause of an error whose traceback shows the user's frames alone (`jax_traceback_filtering` is
    'remove_frames'): its own traceback has weft's frames too.
    """

    shown: TracebackType | None = None  # where the traceback of the error starts


_NOTE = (
    "--------------------\nFor simplicity, weft has removed its internal frames from the traceback of this error. Set"
    " JAX_TRACEBACK_FILTERING=off to include these."
)


def hide_internal_frames(error: BaseException) -> None:
    """Leaves our own frames out of an error's traceback, or marks them, as `jax_traceback_filtering` says: 'off',
    'tracebackhide' (IPython and pytest leave marked frames out), 'remove_frames' (the error's cause has all frames),
    'quiet_remove_frames' (a note says so), or 'auto', which is 'tracebackhide' in IPython and else the last.
    """
    mode = filtering()
    if mode == "auto":
        mode = "tracebackhide" if "IPython" in sys.modules and _in_ipython() else "quiet_remove_frames"
    if mode == "off":
        return
    every, kept, tb = [], [], error.__traceback__
    while tb is not None:
        every.append(tb)
        if not is_internal(tb.tb_frame.f_code.co_filename):
            kept.append(tb)
        elif mode == "tracebackhide":
            tb.tb_frame.f_locals["__tracebackhide__"] = True
        tb = tb.tb_next
    if mode == "tracebackhide" or len(kept) == len(every):
        return
    new = None
    for tb in reversed(kept):
        new = TracebackType(new, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)
    if mode == "remove_frames":
        _keep_all(error, every, new)
    elif _NOTE not in getattr(error, "__notes__", ()):
        error.add_note(_NOTE)
    error.__traceback__ = new


def _in_ipython() -> bool:
    shell = getattr(sys.modules["IPython"], "get_ipython", None)
    return shell is not None and shell() is not None


def _keep_all(error: BaseException, every: list[TracebackType], shown: TracebackType | None) -> None:
    """Makes all frames those of the error's cause. Where an inner boundary has done so, the frames outside of it are
    put before its.
    """
    cause, inner = error.__cause__, None
    if isinstance(cause, UnfilteredStackTrace):
        places = [id(tb) for tb in every]
        every = every[: places.index(id(cause.shown))] if id(cause.shown) in places else []
        inner = cause.__traceback__
    else:
        before, cause = cause, UnfilteredStackTrace("The stack trace of this error includes weft's internal frames.")
        cause.__cause__ = before
    for tb in reversed(every):
        inner = TracebackType(inner, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)
    cause.shown = shown
    error.__cause__ = cause.with_traceback(inner)


def filter_uncaught() -> None:
    """Makes Python show uncaught errors without weft's own frames, wherever in the library they were raised."""
    shown = sys.excepthook

    def show(kind, error, tb):
        frame = tb
        while frame is not None and not (
            is_internal(file := frame.tb_frame.f_code.co_filename) and file not in _STANDARD
        ):
            frame = frame.tb_next
        if frame is not None:  # an error that went through the library
            hide_internal_frames(error)
        shown(kind, error, error.__traceback__)

    sys.excepthook = show


def api_boundary(fun: Callable[Args, Result]) -> Callable[Args, Result]:
    """Decorator of functions that users call: errors that leave them show the user's frames."""

    @wraps(fun)
    def at_boundary(*args: Args.args, **kwargs: Args.kwargs) -> Result:
        try:
            return fun(*args, **kwargs)
        except Exception as e:
            hide_internal_frames(e)
            raise

    return at_boundary


class SourceInfo:
    """A user's frame, kept as code object and instruction offset; the line is looked up only when it is needed."""

    __slots__ = ("code", "lasti", "names")

    def __init__(self, code, lasti: int, names: tuple = ()):
        self.code, self.lasti, self.names = code, lasti, names

    @property
    def file(self) -> str:
        return self.code.co_filename if self.code else "<unknown>"

    @property
    def function(self) -> str:
        return self.code.co_name if self.code else "<unknown>"

    @property
    def line(self) -> int:
        if self.code is None:
            return 0
        for start, end, line in self.code.co_lines():
            if start <= self.lasti < end:
                return line or 0
        return self.code.co_firstlineno

    @override
    def __str__(self):
        return f"{self.file}:{self.line} ({self.function})" if self.code else "<unknown>"


UNKNOWN = SourceInfo(None, 0)


@contextmanager
def subject(info: SourceInfo) -> Iterator[None]:
    """The line that errors are about inside the block, where it is not the caller's: a program's that is being
    checked.
    """
    with scoped(_subject, info):
        yield


def to_blame(depth: int = 1) -> SourceInfo:
    """The line that an error names: that of `subject`, or the innermost frame of the user's."""
    return _subject.get() or current(depth + 1)


def current(depth: int = 1) -> SourceInfo:
    """The innermost frame that is the user's, at least `depth` calls up."""
    frame: FrameType | None = sys._getframe(depth)
    known = _internal
    while frame is not None:
        code = frame.f_code
        file = code.co_filename
        if not (known[file] if file in known else is_internal(file)):
            return SourceInfo(code, frame.f_lasti, name_stack.get())
        frame = frame.f_back
    return UNKNOWN


# Begins the name of a scope whose operations a certain processor computes (weft.experimental.compute_on).
COMPUTE_TYPE = "compute_on:"
# Begins the name of a scope that has words for XLA about its operations, as JSON (weft.experimental.xla_metadata).
XLA_METADATA = "xla_metadata:"


@contextmanager
def named_scope(name: str) -> Iterator[str]:
    """Context manager that adds a name to the scope in which operations are traced. Compiled programs and profiles show
    it.

    Args:
        name: str.

    Returns:
        context manager.

    Raises:
        TypeError: if `name` is not a string.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> with weft.named_scope("encoder"):
        ...     x = jnp.ones(3)
    """
    if not isinstance(name, str):
        raise TypeError(f"named_scope takes a string; got {type(name).__name__}.")
    with scoped(name_stack, (*name_stack.get(), name)):
        yield name
