"""The memories of devices: which there are, by kinds and by spaces."""

from __future__ import annotations

import enum

from .annotations import override

# The memory in which arrays are unless somebody says otherwise, whatever it is made of.
DEVICE = "device"
# The host's memory that a device reads by itself.
HOST = "pinned_host"


class MemorySpace(enum.Enum):
    """Where a value lies as seen from its device: in the device's own memory, or in the host's that the device reaches
    (the kind `pinned_host`); `Any` leaves it where it is.

    Example:
        >>> import weft
        >>> weft.memory.Space.Host
        MemorySpace.Host
    """

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()

    @override
    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"

    @property
    def kind(self) -> str | None:
        """The kind of memory, as shardings name it; None for `Any`."""
        return {"Device": DEVICE, "Host": HOST}.get(self.name)
