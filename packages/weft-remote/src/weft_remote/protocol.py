"""The wire protocol: how a client logs in, and the messages of a session.

**Login** is part of the websocket's HTTP handshake, so that a host reads no frame of a stranger. The path is `/session`
for a new session (`?name=…` names the client in the host's log) or `/session/ID` to resume one. The client offers the
subprotocols `weft.6` (this version of the protocol), `weft-token.T` and, to resume, `weft-resume.S`: T is the token and
S the session's secret, in base64url without padding. A client that can set headers may send `Authorization: Bearer`
with the token instead. The host's first frame is a `Welcome`, or an `End` that says why not: a browser shows a page
nothing of a handshake that is refused. A host that is full sends `Waiting` before, once and whenever it changes.

**Frames.** A frame is one binary websocket message and holds one or more messages, each a code byte and its fields in
order.

Every message from a client with a field `op` is an operation. Operations are numbered 1, 2, 3, … over the whole
session, across its connections. The host acknowledges operations with `Received` from time to time, so that the client
knows what to send again on a new connection. The client acknowledges complete replies with `Settled`, so that the host
knows what it need not send again.

Clients choose the handles of arrays and programs, so they never wait for one. An operation that fails gives its results
the failure; whoever reads one of them, directly or through others, gets it. Uploads flow as fast as the host reads its
socket; downloads stop when `window` bytes are under way without a `Credit`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import TypeAlias, get_args

from weft.base.avals import ShapedArray

from .codec import Bools as Bools
from .codec import Bulk as Bulk
from .codec import Copied as Copied
from .codec import Ints as Ints
from .codec import Language as Language
from .codec import Message as Message
from .codec import Strings as Strings
from .codec import encode as encode
from .codec import message as message

VERSION = 6
SUBPROTOCOL = f"weft.{VERSION}"
CHUNK = 1 << 20  # bytes of bulk data in one message
HEADER = 4096  # room in a frame beside bulk data

_TOKEN, _RESUME = "weft-token.", "weft-resume."
LANGUAGE = Language()
decode = LANGUAGE.decode


def offered(token: str, secret: bytes) -> list[str]:
    """The subprotocols by which a client logs in; `secret` is empty for a new session."""
    made = [SUBPROTOCOL, _TOKEN + _text(token.encode("utf-8", "surrogatepass"))]
    return [*made, _RESUME + _text(secret)] if secret else made


def credentials(protocols: Sequence[str]) -> tuple[bytes | None, bytes]:
    """The token and the secret among the subprotocols that a client offers; None and b"" for what is not there."""
    return _given(protocols, _TOKEN), _given(protocols, _RESUME) or b""


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _given(protocols: Sequence[str], prefix: str) -> bytes | None:
    for offer in protocols:
        if offer.startswith(prefix):
            text = offer[len(prefix) :]
            try:
                return base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
            except (binascii.Error, ValueError):
                return None
    return None


# a session ----------------------------------------------------------------------------------------------------------


@message(LANGUAGE, 2)
class Welcome(Message):
    """The connection carries the session `id`, which whoever knows `secret` may resume. `received` operations of it are
    known; `devices` holds the platform and kind of each device in turn. Those whose platform is empty are devices of
    hosts that this one has joined: programs may run on them too, and their arrays are there.
    """

    id: str
    secret: bytes
    received: int
    grace_ms: int
    frame: int
    window: int
    devices: Strings


@message(LANGUAGE, 3)
class End(Message):
    """The host ends the session, for this reason; nothing of it is left."""

    error: str
    message: str


@message(LANGUAGE, 4)
class Bye(Message):
    """The client ends the session."""


@message(LANGUAGE, 5)
class Received(Message):
    """The host has received all operations up to this one."""

    op: int


@message(LANGUAGE, 6)
class Settled(Message):
    """The client has the complete replies of these operations."""

    ops: Ints


@message(LANGUAGE, 7)
class Credit(Message):
    """The client has this many bytes of the reply of an operation."""

    fetch: int
    received: int


@message(LANGUAGE, 8)
class Beat(Message):
    """The client is alive; the host answers with the same message at once, even while it computes."""


@message(LANGUAGE, 9)
class Cancel(Message):
    """The client does not need the results of the operations up to this one: those that have not begun fail, and those
    that are under way are stopped where the host can do so.
    """

    through: int


@message(LANGUAGE, 10)
class Reported(Message):
    """The client has the reports up to this one."""

    through: int


@message(LANGUAGE, 11)
class Waiting(Message):
    """The host has no room for the session at the moment: its client is at `place` of the `of` that wait. It is sent
    first, and again when that changes. `Welcome` follows, or `End`.
    """

    place: int
    of: int


# operations -----------------------------------------------------------------------------------------------------------


@message(LANGUAGE, 16)
class Put(Message):
    """An array from the client, in row-major order; data that does not fit into `data` follows in `Part`s."""

    op: int
    handle: int
    aval: ShapedArray
    device: int
    data: Copied


@message(LANGUAGE, 17)
class Part(Message):
    """More bytes of a `Put`."""

    op: int
    handle: int
    data: Copied


@message(LANGUAGE, 18)
class Program(Message):
    """A serialized jaxpr of `size` bytes, known by its hash from now on; bytes that do not fit follow in
    `ProgramPart`s.
    """

    op: int
    hash: bytes
    size: int
    data: bytes


@message(LANGUAGE, 19)
class ProgramPart(Message):
    """More bytes of a `Program`."""

    op: int
    hash: bytes
    data: bytes


@message(LANGUAGE, 20)
class Compile(Message):
    """Compiles a program for a device; `handle` names the result. A failure is reported at once, by an `Error` of this
    operation.
    """

    op: int
    handle: int
    program: bytes
    device: int
    name: str
    donated: Bools


@message(LANGUAGE, 21)
class Execute(Message):
    """Runs a compiled program on arrays; `results` are the handles of its results."""

    op: int
    program: int
    arguments: Ints
    results: Ints


@message(LANGUAGE, 22)
class Fetch(Message):
    """Asks for the bytes of an array: `Data`."""

    op: int
    handle: int


@message(LANGUAGE, 23)
class Wait(Message):
    """Asks for a `Ready` as soon as an array is computed."""

    op: int
    handle: int


@message(LANGUAGE, 24)
class Free(Message):
    """Forgets arrays and compiled programs."""

    op: int
    handles: Ints


@message(LANGUAGE, 25)
class Inspect(Message):
    """Requests a `Text` about a compiled program: what = "text" (of a stage, or ""), "cost", "memory" or
    "shardings" (as JSON).
    """

    op: int
    program: int
    what: str
    stage: str


@message(LANGUAGE, 26)
class Ping(Message):
    """Asks for a `Ready`."""

    op: int


@message(LANGUAGE, 27)
class ExecuteReporting(Message):
    """`Execute` of a program that reports values, or calls functions of the client, while it runs. `Ready` follows its
    last `Report`.
    """

    op: int
    program: int
    arguments: Ints
    results: Ints


@message(LANGUAGE, 28)
class Result(Message):
    """What the client's function returned for report `report`: its results one after another, in parts of which one is
    the last. The host takes it at once, also while it performs other operations.
    """

    op: int
    report: int
    last: bool
    data: bytes


@message(LANGUAGE, 29)
class Raised(Message):
    """The client's function for report `report` has no result, since it raised an error. That stays with the client."""

    op: int
    report: int


@message(LANGUAGE, 30)
class Keep(Message):
    """The session outlives its connection for so many seconds, and computes on meanwhile; 0 takes that back."""

    op: int
    seconds: int


@message(LANGUAGE, 31)
class Forget(Message):
    """The client names a program's hash no more, or sends the program again before it does."""

    op: int
    hash: bytes


@message(LANGUAGE, 40)
class CompileSpread(Message):
    """`Compile` for several devices. `grids` has the number of axes and the sizes of each grid that the devices make;
    `specs` has for each argument and then for each result 0, if the host chooses how a result is divided, or 1 + the
    number of a grid, the number of entries, and for each entry the number of axes of the grid that cut this axis of the
    array, and these. Arguments and results of the program are their parts, one for each device in turn.
    """

    op: int
    handle: int
    program: bytes
    devices: Ints
    grids: Ints
    specs: Ints
    name: str
    donated: Bools


@message(LANGUAGE, 41)
class Copy(Message):
    """Copies an array to another device; `handle` names the copy."""

    op: int
    handle: int
    source: int
    device: int


@message(LANGUAGE, 42)
class ExecuteFetching(Message):
    """`Execute`, and a `Fetch` of some results at once: `Data` has the bytes of those at the places `fetched`, one
    after another.
    """

    op: int
    program: int
    arguments: Ints
    results: Ints
    fetched: Ints


# replies --------------------------------------------------------------------------------------------------------------


@message(LANGUAGE, 32)
class Data(Message):
    """`data` at `offset` of an array of `size` bytes."""

    op: int
    size: int
    offset: int
    data: Bulk


@message(LANGUAGE, 33)
class Ready(Message):
    """The operation is done."""

    op: int


@message(LANGUAGE, 34)
class Text(Message):
    """A text."""

    op: int
    text: str


@message(LANGUAGE, 35)
class Error(Message):
    """The operation has no result, because operation `origin` failed."""

    op: int
    origin: int
    error: str
    message: str


@message(LANGUAGE, 36)
class Report(Message):
    """Values for callback `function` of the program of operation `op`: its operands one after another, in parts of
    which one is the last. Reports are numbered 1, 2, 3, … over the whole session. If the program waits for results, the
    client answers the last part with `Result` or `Raised`.
    """

    number: int
    op: int
    function: int
    last: bool
    data: Bulk


@message(LANGUAGE, 37)
class Compiled(Message):
    """The program of a `Compile` is compiled, which took this many microseconds."""

    op: int
    microseconds: int


@message(LANGUAGE, 39)
class Progress(Message):
    """What the host does for the session at the moment, told a few times a second if it takes long: operation `op`, of
    a program called `name`, is `stage` ("queued" behind other sessions, "compiling" or "running") for some time, and so
    many operations wait behind it.
    """

    op: int
    name: str
    stage: str
    milliseconds: int
    waiting: int


@message(LANGUAGE, 38)
class Kept(Message):
    """The session is kept for so many seconds, which may be fewer than were asked for."""

    op: int
    seconds: int


Operation: TypeAlias = (
    Put
    | Part
    | Program
    | ProgramPart
    | Compile
    | Execute
    | Fetch
    | Wait
    | Free
    | Inspect
    | Ping
    | ExecuteReporting
    | Keep
    | Forget
    | CompileSpread
    | Copy
    | ExecuteFetching
)
OPERATIONS: tuple[type[Operation], ...] = get_args(Operation)
Execution: TypeAlias = Execute | ExecuteReporting | ExecuteFetching  # of a compiled program
# numbered as operations, and not performed in their order
NUMBERED: tuple[type[Operation | Result | Raised], ...] = (*OPERATIONS, Result, Raised)
