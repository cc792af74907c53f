"""What the front tells the process that starts workers."""

from __future__ import annotations

import dataclasses
import json

from .limits import Limits


@dataclasses.dataclass(frozen=True)
class Options:
    """What workers are started with."""

    platform: str | None
    limits: Limits
    sandbox: bool
    log_level: str
    executables: bool = False  # the host stores them
    coordinator: str | None = None  # where workers of several hosts join each other
    processes: int = 1
    process: int = 0

    def dump(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @staticmethod
    def load(text: str) -> Options:
        found = json.loads(text)
        return Options(**{**found, "limits": Limits(**found["limits"])})
