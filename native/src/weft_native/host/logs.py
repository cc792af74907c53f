"""The host's log, as text or JSON, without tokens."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Iterable
from typing import Any

from weft.base.annotations import override

from .messages import LogFormatter
from .settings import Settings

FIELDS = ("event", "session", "client", "token", "address")  # that an entry may have beside its message
SHORTEST = 6  # characters of a token of the command line that is looked for: a shorter one is part of other words
_TOKEN = re.compile(r"weft_([0-9a-f]{8})_[A-Za-z0-9_-]+")  # a name may have cut it
_SIGNED = re.compile(r"eyJ[A-Za-z0-9_-]{8,}(\.[A-Za-z0-9_-]*){0,2}")  # so does a header in JSON begin in base64


def hiding(tokens: Iterable[str]) -> Callable[[str], str]:
    """A function that takes tokens out of a text: those of files and signed ones by their form, and the given ones."""
    given = [t for t in tokens if len(t) >= SHORTEST]

    def hide(text: str) -> str:
        for token in given:
            text = text.replace(token, "[token]")
        return _SIGNED.sub("[token]", _TOKEN.sub(r"[token \1]", text))

    return hide


def moment(seconds: float) -> str:
    """A time as RFC 3339 has it."""
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{int(seconds % 1 * 1000):03}Z"


class TextFormatter(LogFormatter):
    """A line for each entry."""

    def __init__(self, hide: Callable[[str], str]):
        super().__init__("%(asctime)s %(name)s %(levelname)s %(message)s")
        self.hide = hide

    @override
    def format(self, record: logging.LogRecord) -> str:
        return self.hide(super().format(record))


class JsonFormatter(logging.Formatter):
    """A JSON object on one line for each entry."""

    def __init__(self, hide: Callable[[str], str]):
        super().__init__()
        self.hide = hide

    @override
    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {"time": moment(record.created), "level": record.levelname.lower(), "from": record.name}
        entry |= {name: value for name in FIELDS if (value := vars(record).get(name))}
        entry["message"] = record.getMessage()
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)
        return json.dumps({name: self.hide(str(value)) for name, value in entry.items()})


def begin(settings: Settings, hide: Callable[[str], str]) -> None:
    """Has the process log as it is told."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter(hide) if settings.log == "json" else TextFormatter(hide))
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler])
    logging.getLogger("aiohttp").setLevel(logging.ERROR)  # refused handshakes are logged here, with the reason
