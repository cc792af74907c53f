"""Errors of the wire, and the fixed table by which an exception keeps its class on the way from the host to the
client.
"""

from __future__ import annotations

import builtins
import inspect

from weft.base import errors
from weft.serialization.binary import DeserializationError
from weft.serialization.portable import NotPortable
from weft.base.errors import BackendError


class ConnectionLost(BackendError):
    """The host can't be reached, or it has forgotten the session; its arrays are gone. Check that the host runs, and
    connect again with `weft.remote.connect(url, token=…)`.
    """


def lost(url: str, why: str) -> ConnectionLost:
    """The error of a session whose host has not returned."""
    return ConnectionLost(
        f"the connection to {url} is lost ({why}), and nothing answers there any more: the host has ended, or the"
        " network to it. The session's arrays are gone. Start the host (`weft-host`) again, or check the network; then"
        " connect with weft.remote.connect, and compute what you need of the arrays anew."
    )


class AuthenticationError(BackendError):
    """The host does not know the token. Take the one that `weft-host` printed when it started."""


class ProtocolError(BackendError):
    """A message that the protocol does not have at this place, or another version of it. Use the same release of weft
    on both sides.
    """


class LimitError(BackendError):
    """A limit of the host: bytes, handles, the size of a program or of a message, the time of a computation. Free
    arrays or do less at once. The host's operator can raise the limit (`weft-host --help`).
    """


_BUILTINS = (
    "ArithmeticError",
    "AssertionError",
    "AttributeError",
    "FloatingPointError",
    "IndexError",
    "KeyError",
    "LookupError",
    "MemoryError",
    "NotImplementedError",
    "OverflowError",
    "RecursionError",
    "RuntimeError",
    "TimeoutError",
    "TypeError",
    "ValueError",
    "ZeroDivisionError",
)
_OURS = (ConnectionLost, AuthenticationError, ProtocolError, LimitError, DeserializationError, NotPortable)
_NAMES = frozenset(
    [
        *_BUILTINS,
        *[c.__name__ for c in _OURS],
        *[n for n, c in vars(errors).items() if inspect.isclass(c) and issubclass(c, Exception)],
    ]
)


def class_name(error: BaseException) -> str:
    """The name in the table of the nearest class of an exception."""
    for cls in type(error).__mro__:
        if cls.__name__ in _NAMES:
            return cls.__name__
    return "RuntimeError"


def rebuild(name: str, message: str) -> Exception:
    """The exception of a name in the table; a name outside of it gives a RuntimeError."""
    for cls in _OURS:
        if cls.__name__ == name:
            error = cls.__new__(cls)  # some make their message of parts; this is the whole of it
            Exception.__init__(error, message)
            return error
    # a backend may have replaced a class of `errors`, so it is looked up now
    module = builtins if name in _BUILTINS else errors if name in _NAMES else None
    kind: type[Exception] = RuntimeError if module is None else getattr(module, name)
    return kind(message)
