"""What a session holds: its arrays and compiled programs by their handles, and how many bytes they take."""

from __future__ import annotations

from typing import TypeAlias

from weft.serialization.programs import Program
from weft_remote import protocol as p
from weft_remote.errors import LimitError, ProtocolError

from .limits import Limits
from .memory import Charge, Tally
from .programs import Executable
from .values import Failed, Incoming, Stored


class Known:
    """A program that the client has sent, as bytes and read."""

    __slots__ = ("program", "data", "charge")

    def __init__(self, program: Program, data: bytearray, charge: Charge):
        self.program, self.data, self.charge = program, data, charge


class Compiled:
    """A program that the client had compiled by `message`. After a session has moved, it is compiled when it is used
    again; until then `executable` is None.
    """

    __slots__ = ("message", "known", "executable")

    def __init__(self, message: p.Compile | p.CompileSpread, known: Known, executable: Executable | None):
        self.message, self.known, self.executable = message, known, executable


Value: TypeAlias = Stored | Compiled


class Store:
    """The values of a session, complete and incomplete.

    Args:
        limits: of the session.
        memory: what all sessions together may use.
    """

    def __init__(self, limits: Limits, memory: Tally):
        self.limits, self.memory = limits, memory
        self.values: dict[int, Value | Failed] = {}
        self.array_bytes = Tally(
            limits.session_bytes,
            "{what} takes {size} bytes; the session has {used} of the {limit} that it may use."
            " Delete arrays that are no longer needed.",
        )
        self.program_bytes = Tally(
            limits.session_bytes,
            "{what} takes about {size} bytes; the session's programs have {used} of the {limit} that they may. "
            "Send fewer or smaller ones, or begin a new session.",
        )
        self.arrays: dict[int, Incoming[p.Put]] = {}
        self.parts: dict[bytes, Incoming[p.Program]] = {}
        self.known: dict[bytes, Known] = {}

    def clear(self) -> None:
        for held in (self.values, self.arrays, self.parts, self.known):
            held.clear()

    def define(self, handle: int, value: Value | Failed) -> None:
        if handle in self.values:
            raise ProtocolError(f"handle {handle} is in use.")
        if len(self.values) >= self.limits.handles:
            raise LimitError(
                f"the session has {self.limits.handles} handles, and no more are allowed. Free some: let go of arrays."
            )
        self.values[handle] = value

    def charge(self, size: int, what: str, present: int | None = None) -> Charge:
        """LimitError unless the session, and all together, may use so many bytes more; `present` of them are in use
        at once.
        """
        return Charge(self.array_bytes, self.memory, size, what, present)

    def forget(self, digest: bytes) -> None:
        """The client does not name this program any more; what it has compiled of it stays."""
        if self.known.pop(digest, None) is None:
            raise ProtocolError("there is no program of this hash to forget.")

    def array(self, handle: int) -> Stored:
        value = self.value(handle)
        if not isinstance(value, Stored):
            raise ProtocolError(f"handle {handle} is a compiled program, not an array.")
        return value

    def compiled(self, handle: int) -> Compiled:
        value = self.value(handle)
        if not isinstance(value, Compiled):
            raise ProtocolError(f"handle {handle} is an array, not a compiled program.")
        return value

    def value(self, handle: int) -> Value:
        """The value of a handle. If it is a failure, raises it."""
        value = self.values.get(handle)
        if value is None:
            raise ProtocolError(f"there is no handle {handle}.")
        if isinstance(value, Failed):
            raise Inherited(value)
        return value

    def free(self, handle: int) -> None:
        if self.values.pop(handle, None) is None:
            raise ProtocolError(f"there is no handle {handle} to free.")


class Inherited(Exception):
    """Records that an operand failed, so that the operation that uses it fails too."""

    def __init__(self, failed: Failed):
        self.failed = failed
