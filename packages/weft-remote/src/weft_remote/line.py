"""The line to a host: how fast it is, and which arrays of this process are at its other end already."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from weft.base.avals import shaped
from weft.core.trace import get_aval, is_array
from weft.runtime.array import BufferArray, KeyArray
from weft.runtime.dispatch import put, to_backend

from . import protocol as p
from .backend import RemoteDevice
from .errors import LimitError

PROBES = (64 << 10, 512 << 10, 4 << 20)  # bytes that are sent and read to measure it; a slow line gets no more
ENOUGH = 0.02  # seconds beyond a round trip that tell how fast it is
TELLING = 256 << 10  # bytes of an upload that tell it again


class Speed(NamedTuple):
    """A round trip in seconds, and bytes a second in each direction."""

    round_trip: float
    up: float
    down: float


class Line:
    """The line to one device of a host."""

    def __init__(self, device: RemoteDevice):
        self.device = device
        self.measured: Speed | None = None
        self.twins: dict[int, tuple[weakref.ref[Any], BufferArray]] = {}  # by the id of the array here

    @property
    def speed(self) -> Speed:
        """Measured at the first use."""
        if self.measured is None:
            self.measured = self._measure()
        return self.measured

    def _measure(self) -> Speed:
        trip = min([seconds(self.device.session.ping) for _ in range(3)])
        speed: Speed | None = None
        for size in PROBES:
            try:
                sending, reading = self._probe(size)
            except LimitError:  # of a host that allows little, what it has taken tells
                if speed is None:
                    raise
                return speed
            up, down = (size / max(took - trip, 1e-5) for took in (sending, reading))
            speed = Speed(trip, up, down)
            if sending + reading - 2 * trip > ENOUGH:
                break
        assert speed is not None
        return speed

    def _probe(self, size: int) -> tuple[float, float]:
        """The seconds that so many bytes take up and down, each with a round trip."""
        session, data, aval = self.device.session, bytes(size), shaped((size,), "uint8")
        began = time.perf_counter()
        handle = session.put(data, aval, self.device.index)
        session.ping()
        sending = time.perf_counter() - began
        read = lambda: session.wait(session.request(lambda op: p.Fetch(op, handle)))
        reading = min(seconds(read), seconds(read))  # the first may start a thread at the host
        session.release(handle)
        return sending, reading

    def sent(self, size: int, took: float) -> None:
        """Learns from an upload, with its round trip."""
        if size >= TELLING:
            speed = self.speed
            self.measured = speed._replace(up=size / max(took - speed.round_trip, 1e-5))

    def is_there(self, x: object) -> bool:
        """Whether an array is at the other end."""
        if isinstance(x, KeyArray):
            return self.is_there(x.raw)
        if isinstance(x, BufferArray) and x.device_ is self.device:
            return True
        found = self.twins.get(id(x))
        return found is not None and found[0]() is x

    def only_there(self, x: object) -> bool:
        """Whether its value was not fetched yet."""
        x = x.raw if isinstance(x, KeyArray) else x
        return isinstance(x, BufferArray) and x.device_ is self.device and x._cache is None

    def there(self, x: Any, donated: bool) -> Any:
        """An argument as an array of the host. One that was sent before, and can't have changed, is not sent again;
        one that is donated is nobody else's.
        """
        if isinstance(x, KeyArray):
            return KeyArray(x.aval, self.there(x.raw, donated))
        if not is_array(x):
            return put(x, None, self.device, False)
        if isinstance(x, BufferArray) and x.device_ is self.device:
            return x
        key = id(x)
        found = self.twins.pop(key, None) if donated else self.twins.get(key)
        if found is not None and found[0]() is x and not found[1].is_deleted():
            return found[1]
        made = to_backend(x, get_aval(x), self.device)
        if not donated:
            self.twins[key] = weakref.ref(x, self._forget(key)), made
        return made

    def _forget(self, key: int) -> Callable[[object], None]:
        this = weakref.ref(self)

        def forget(gone: object) -> None:
            line = this()
            if line is not None and line.twins.get(key, (None,))[0] is gone:
                del line.twins[key]

        return forget


def seconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
