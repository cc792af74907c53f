"""Sessions that outlive their connections and clients: as texts, which clients in JavaScript read and write too."""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from weft.base import dtypes
from weft.base.avals import shaped
from weft.base.tree import tree_leaves
from weft.runtime.array import BufferArray

from .backend import RemoteDevice, carrier, register
from .handles import Handle
from .errors import LimitError
from .session import Progress, Session

KIND = "weft session 1"
HANDLES = 1 << 20  # that an operation takes at most


class _Ticket(NamedTuple):
    id: str
    secret: bytes


def keep(tree: Any, *, seconds: float = 0.0) -> str:
    """Keeps a session on its host for another program: what it computes goes on without a client, and what it holds
    waits on disk.

    Args:
        tree: the arrays of one session that the other program will find, in dicts and lists, beside numbers, texts and
            None. Tuples become lists.
        seconds: float: for how long the session outlives its connection. 0 leaves it with the time after which a lost
            connection ends a session, 60 s if the host's operator says nothing else.

    Returns:
        str: whoever has it has the session: `resume` takes it up. `Session.leave` closes the connection.

    Raises:
        LimitError: if the host keeps no sessions (`weft-host --jobs FOLDER` lets it), or not for so long.
        TypeError: for leaves of other kinds.
        ValueError: if the arrays are not of one session.

    Example:
        >>> import weft
        >>> text = weft.remote.keep({"weights": weights}, seconds=86400)                 # doctest: +SKIP
        >>> session.leave()                                                              # doctest: +SKIP
    """
    sessions = {x.handle.session for x in tree_leaves(tree) if _is_remote(x)}
    if len(sessions) != 1:
        raise ValueError(
            f"keep takes arrays of one session, and these are of {len(sessions)}. Put them on one host with"
            " `weft.device_put(x, session.devices()[0])`."
        )
    if not (math.isfinite(seconds) and seconds >= 0):
        raise ValueError(f"seconds is a number from 0 on, not {seconds}.")
    (session,) = sessions
    plain = _plain(tree)
    session.ping()  # what has not reached the host would be lost with this process
    if seconds:
        granted = session.keep(math.ceil(seconds))
        if granted < seconds:
            raise LimitError(f"the host keeps sessions for {granted} s at most. Ask for less.")
    session.hold(tree)
    welcome = session.welcome
    ticket = {"id": welcome.id, "secret": base64.urlsafe_b64encode(welcome.secret).decode().rstrip("=")}
    return json.dumps({"kind": KIND, "ticket": ticket, "tree": plain})


def resume(
    url: str,
    kept: str,
    *,
    token: str,
    default: bool = False,
    timeout: float = 20.0,
    name: str = "",
    wait: float | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> tuple[Session, Any]:
    """Takes up a session that `keep`, or a page's `host.keep`, has left on a host.

    Args:
        url: str: the address of the host.
        kept: str: the text of `keep`.
        token: str: the token with which the session began.
        default: bool: make the host the default until the session is closed.
        timeout: float: seconds for connecting.
        name: str: the name of this client in the host's log.
        wait: float | None: seconds for a place on a host that is full, where the session waits before new ones; None
            waits until there is one. It stays on the host's disk meanwhile, and after that.
        on_progress: Callable: called with each `Progress` of the session from now on, as for `connect`.

    Returns:
        tuple: the `Session`, and the tree with its arrays. An array that is still computed is waited for when it is
        read.

    Raises:
        ConnectionLost: if no host answers, or the session is not kept any more.
        AuthenticationError: for a wrong token.
        LimitError: if the host is full, and there was no place in time.
        ValueError: for another text.

    Example:
        >>> import weft
        >>> session, tree = weft.remote.resume("wss://example.org", text, token="…")     # doctest: +SKIP
    """
    ticket, plain = _parsed(kept)
    session = Session(url, token, name, carrier(timeout, wait), on_progress)
    session.take_up(ticket.id, ticket.secret)
    session.transport.open()
    return _resumed(session, plain, default)


async def resume_async(
    url: str,
    kept: str,
    *,
    token: str,
    default: bool = False,
    timeout: float = 20.0,
    name: str = "",
    wait: float | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> tuple[Session, Any]:
    """`resume` as a coroutine. A page without JSPI can't wait in any other way.

    Args:
        url: str: the address of the host.
        kept: str: the text of `keep`.
        token: str: the token with which the session began.
        default: bool: make the host the default until the session is closed.
        timeout: float: seconds for connecting.
        name: str: the name of this client in the host's log.
        wait: float | None: seconds for a place on a host that is full, where the session waits before new ones; None
            waits until there is one. It stays on the host's disk meanwhile, and after that.
        on_progress: Callable: called with each `Progress` of the session from now on, as for `connect`.

    Returns:
        tuple: the `Session`, and the tree with its arrays.

    Raises:
        ConnectionLost: if no host answers, or the session is not kept any more.
        AuthenticationError: for a wrong token.
        LimitError: if the host is full, and there was no place in time.
        ValueError: for another text.

    Example:
        >>> import weft
        >>> session, tree = await weft.remote.resume_async(url, text, token="…")         # doctest: +SKIP
    """
    ticket, plain = _parsed(kept)
    session = Session(url, token, name, carrier(timeout, wait), on_progress)
    session.take_up(ticket.id, ticket.secret)
    await session.transport.open_async()
    return _resumed(session, plain, default)


def _resumed(session: Session, plain: Any, default: bool) -> tuple[Session, Any]:
    session.go_on(HANDLES)
    register(session, default)
    try:
        return session, _made(plain, session)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as e:
        session.leave()
        raise ValueError(f"this is no kept session: {type(e).__name__}: {e}.") from None


def _is_remote(x: object) -> bool:
    return isinstance(x, BufferArray) and isinstance(x.handle, Handle)


def _plain(value: Any) -> dict[str, Any]:
    if isinstance(value, BufferArray) and isinstance(value.handle, Handle):
        aval, device = value.aval, value.device_
        assert isinstance(device, RemoteDevice)
        array = {"handle": value.handle.number, "device": device.index, "dtype": dtypes.name(aval.dtype)}
        return {"array": {**array, "shape": list(aval.shape)}}
    if isinstance(value, (list, tuple)):
        return {"list": [_plain(v) for v in value]}
    if isinstance(value, dict) and all(isinstance(k, str) for k in value):
        return {"object": {k: _plain(v) for k, v in value.items()}}
    if value is None or isinstance(value, (bool, int, float, str)):
        return {"value": value}
    raise TypeError(
        f"a session keeps arrays on its host, numbers, texts, None, lists and dicts with texts as keys; this is a"
        f" {type(value).__name__}. Of a key, keep `weft.random.key_data(key)`."
    )


def _parsed(text: str) -> tuple[_Ticket, Any]:
    try:
        found = json.loads(text)
        if found["kind"] != KIND:
            raise ValueError(f"its kind is {str(found['kind'])[:40]!r}")
        id, secret = found["ticket"]["id"], found["ticket"]["secret"]
        return _Ticket(str(id), base64.urlsafe_b64decode(secret + "=" * (-len(secret) % 4))), found["tree"]
    except (ValueError, KeyError, TypeError, binascii.Error) as e:
        raise ValueError(f"this is no kept session: {type(e).__name__}: {e}. Take the text that `keep` gave.") from None


def _made(node: Any, session: Session) -> Any:
    ((kind, value),) = node.items()
    match kind:
        case "array":
            device = session.devices()[value["device"]]
            assert isinstance(device, RemoteDevice)
            aval = shaped(tuple(map(int, value["shape"])), dtypes.dtype(value["dtype"]))
            return BufferArray(
                aval, Handle(session, int(value["handle"]), aval.size * dtypes.itemsize(aval.dtype)), device, True
            )
        case "list":
            return [_made(v, session) for v in value]
        case "object":
            return {k: _made(v, session) for k, v in value.items()}
        case "value":
            return value
        case "program":
            return None  # a page's; programs are sent again when they are called
    raise ValueError(f"there are no {str(kind)[:40]!r} in it")
