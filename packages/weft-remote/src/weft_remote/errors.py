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
    """The host can't be reached, or it has forgotten the session; its arrays are gone.

    Check that the host runs (`weft-host`), that address and port are right, and that the network lets a websocket
    through. A connection that breaks for a moment is taken up again by itself, with its arrays. After this error
    connect again, and compute what you need of the arrays anew.

    Example:
        >>> import weft
        >>> weft.remote.connect("ws://127.0.0.1:9", token="…")  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft_remote.errors.ConnectionLost: no connection to ws://127.0.0.1:9
        >>> with weft.remote.connect(URL, token=TOKEN) as session:  # those that `weft-host` printed
        ...     print(len(session.devices()))
        1
    """


def lost(url: str, why: str) -> ConnectionLost:
    """The error of a session whose host has not returned."""
    return ConnectionLost(
        f"the connection to {url} is lost ({why}), and nothing answers there any more: the host has ended, or the"
        " network to it. The session's arrays are gone. Start the host (`weft-host`) again, or check the network; then"
        " connect with weft.remote.connect, and compute what you need of the arrays anew."
    )


def full(url: str, seconds: float) -> LimitError:
    """The error of a client that has waited in vain for its place."""
    return LimitError(
        f"{url} is full, and had no place in {seconds:g} s. Try again later, or wait for longer (`wait=`)."
    )


class AuthenticationError(BackendError):
    """The host does not know the token.

    `weft-host` prints its token when it starts, and takes one of your own as `--token`. Copy all of it; a host that was
    started again has another one.

    Example:
        >>> import weft
        >>> weft.remote.connect(URL, token="guessed")  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft_remote.errors.AuthenticationError: …
        >>> weft.remote.connect(URL, token=TOKEN).close()  # the one that `weft-host` printed
    """


class ProtocolError(BackendError):
    """A message that the protocol does not have at this place, or another version of it.

    Use the same release of weft on both sides. If they are the same, something between them changes messages, such as a
    proxy, or what listens at the address is no host of weft.

    Example:
        >>> import weft, weft_remote
        >>> weft_remote.__version__ == weft.__version__  # and the same as the host's: `pip show weft-remote`
        True
    """


class LimitError(BackendError):
    """A limit of the host: bytes, handles, the size of a program or of a message, the time of a computation.

    Free arrays (`del x`, or `x.delete()`) or do less at once: smaller batches, fewer steps in one call. The host's
    operator can raise the limit; `weft-host --help` lists all of them.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> session = weft.remote.connect(URL, token=TOKEN)  # of a host with `--session-bytes 1000000`
        >>> held = [weft.device_put(jnp.ones(100_000), session.devices()[0]) for _ in range(3)]
        >>> held[2].sum().tolist()  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft_remote.errors.LimitError: an array takes 400000 bytes; the session has 800000 of the 1000000
        >>> del held
        >>> weft.device_put(jnp.ones(100_000), session.devices()[0]).sum().tolist()
        100000.0
        >>> session.close()
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


def is_known(name: str) -> bool:
    """Whether the table has a class of this name."""
    return name in _NAMES


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
