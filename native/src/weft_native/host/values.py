"""The values of a session: arrays, failures in place of arrays, and incomplete uploads and replies."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from weft.base import dtypes
from weft.base.avals import ShapedArray
from weft.core.trace import is_array
from weft.runtime.backend import Device
from weft_remote import protocol as p
from weft_remote.errors import ProtocolError

from .memory import Charge

M = TypeVar("M", bound=p.Message)


class Stored:
    """An array, for as long as a handle or an unread reply needs it."""

    __slots__ = ("array", "aval", "device", "index", "charge", "reads")

    def __init__(self, array: Any, aval: ShapedArray, device: Device, index: int, charge: Charge):
        self.array, self.aval, self.device, self.charge = array, aval, device, charge
        self.index = index  # of the device among the session's
        self.reads = 0  # fetches that have not read it yet


class Failed(NamedTuple):
    """Takes the place of a result: the failure of operation `origin`, as text. (An exception would keep alive the
    values in its frames.)
    """

    origin: int
    error: str
    message: str

    def reply(self, op: int) -> Answer:
        """What `op`, which needed the result, is answered."""
        return Answer(p.Error(op, self.origin, self.error, self.message))


class Incoming(Generic[M]):
    """An array or program whose bytes have not all arrived. Memory is taken for those that have."""

    __slots__ = ("message", "size", "data", "charge")

    def __init__(self, message: M, size: int, charge: Charge):
        self.message: M = message
        self.size, self.charge = size, charge
        self.data = bytearray()

    def take(self, part: p.Bulk) -> bool:
        """Adds a part; whether all bytes are here now. LimitError if the host has no room for it."""
        if len(self.data) + len(part) > self.size:
            raise ProtocolError(f"{len(self.data) + len(part)} bytes came where {self.size} were announced.")
        self.charge.grow(len(part))
        self.data += part
        return len(self.data) == self.size


class Transfer:
    """A long reply on its way to the client. Its array is kept, and counts, until the client has received it."""

    __slots__ = ("stored", "data", "charge", "sent", "credited")

    def __init__(self, stored: Stored | None, data: memoryview, charge: Charge):
        self.stored, self.data, self.charge, self.sent, self.credited = stored, data, charge, 0, 0


class Answer(NamedTuple):
    """A reply in one message."""

    message: p.Message
    charge: Charge | None = None


def finished(array: Any) -> bool:
    """Whether an array is computed, or given away since."""
    try:
        return not is_array(array) or array.is_deleted() or array.is_ready()
    except Exception:  # it failed; whoever reads it gets the error
        return True


def is_gone(array: Any) -> bool:
    """Whether an array was given away: its memory is a result's now."""
    return is_array(array) and array.is_deleted()


def host_array(data: bytearray, aval: ShapedArray) -> np.ndarray[Any, Any]:
    """A client's bytes as an array. Whatever the bytes are, the elements are values of its dtype."""
    if dtypes.is_bool(aval.dtype):
        return np.not_equal(np.frombuffer(data, np.uint8), 0).reshape(aval.shape)
    width = dtypes.bits(aval.dtype)
    if width < 8:
        low = np.frombuffer(data, np.uint8) & np.uint8((1 << width) - 1)
        if dtypes.is_float(aval.dtype):  # the bits are the number; a conversion would read them as an integer
            return low.view(aval.dtype).reshape(aval.shape)
        return low.astype(aval.dtype).reshape(aval.shape)  # a conversion takes the lowest bits
    return np.frombuffer(data, aval.dtype).reshape(aval.shape)


def host_bytes(array: Any) -> memoryview:
    """The elements of an array."""
    host = np.ascontiguousarray(array._host() if is_array(array) else array)
    return host.reshape(-1).view(np.uint8).data if host.size and host.itemsize else memoryview(b"")
