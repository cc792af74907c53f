"""The base class of writers of checkpoints, which libraries ask for. Writers of TensorStore's files are not here."""

from __future__ import annotations

import abc
from typing import Any

__all__ = ["GlobalAsyncCheckpointManagerBase"]


class GlobalAsyncCheckpointManagerBase(abc.ABC):
    """What writers of checkpoints in the background have in common. Weft's own is `weft.experimental.checkpoints`.

    Example:
        >>> from weft.experimental.array_serialization.serialization import GlobalAsyncCheckpointManagerBase
        >>> sorted(GlobalAsyncCheckpointManagerBase.__abstractmethods__)
        ['check_for_errors', 'deserialize', 'serialize', 'wait_until_finished']
    """

    @abc.abstractmethod
    def check_for_errors(self) -> None:
        """Raises what has gone wrong in the background."""

    @abc.abstractmethod
    def wait_until_finished(self) -> None:
        """Returns when everything is written."""

    @abc.abstractmethod
    def serialize(self, *args: Any, **kwargs: Any) -> None:
        """Starts to write."""

    @abc.abstractmethod
    def deserialize(self, *args: Any, **kwargs: Any) -> Any:
        """Reads."""


def __dir__() -> list[str]:
    return list(__all__)
