"""The audit log: who came in, who did not, and what was done to whom. A file of JSON lines that is only appended to."""

from __future__ import annotations

import json
import logging
import os
import pathlib
import time
from collections.abc import Callable
from typing import Any

from .access import belong_to_the_folder
from .logs import moment

log = logging.getLogger("weft.host")


class Audit:
    """Appends entries to a file, which only its owner may read.

    Args:
        path: of the file. If it is renamed, the next entry begins another one.
        hide: takes tokens out of a text.
    """

    def __init__(self, path: str | pathlib.Path, hide: Callable[[str], str]):
        self.path, self.hide = pathlib.Path(path), hide

    def write(self, event: str, **fields: Any) -> None:
        """Adds an entry. The host goes on if that fails, and says so in its log."""
        entry = {"time": moment(time.time()), "event": event}
        entry |= {k: self.hide(v) if isinstance(v, str) else v for k, v in fields.items() if v is not None and v != ""}
        line = json.dumps(entry) + "\n"
        try:
            # Root follows no link that the host's user may have put there.
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            try:
                if not os.fstat(descriptor).st_size:
                    belong_to_the_folder(descriptor, self.path)
                os.write(descriptor, line.encode())  # at once: other processes append to it too
            finally:
                os.close(descriptor)
        except OSError as e:
            log.error("the audit log %s can't be written: %s. Lost: %s", self.path, e.strerror, line.rstrip())
