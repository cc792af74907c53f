"""The abstract class of devices."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Device(Protocol):
    """One device. `repr` and `str` are for people; devices of one backend differ in `id`."""

    id: int
    platform: str
    process_index: int
    device_kind: str

    @property
    def backend(self) -> Any:
        """The Backend that it belongs to."""
