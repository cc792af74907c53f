"""Sessions that rest on disk: their clients have asked for that, and are away."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import pathlib
import time
from typing import BinaryIO, NamedTuple

from .ids import ID
from .memory import Tally
from .state import END

_PIECE = 1 << 20


class Job(NamedTuple):
    """A session on disk."""

    id: str
    secret: str  # the SHA-256 of what its client knows
    name: str
    client: str
    grant: str  # the id of the token that it came with, and its name
    grant_name: str
    until: float  # seconds since 1970

    def is_of(self, secret: bytes) -> bool:
        """Whether a client knows the session's secret."""
        return hmac.compare_digest(self.secret, hashlib.sha256(secret).hexdigest())


class Jobs:
    """A folder of sessions. Each is two files, its state and what is known about it; the second one comes last and
    makes it valid.

    Args:
        folder: of the host alone, made if it is not there.
        limit: bytes of all of them together.
    """

    def __init__(self, folder: pathlib.Path, limit: int):
        self.folder = folder
        self.bytes = Tally(limit, "{what} takes {size} bytes; all sessions on disk have {used} of {limit}.")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def known(self) -> list[Job]:
        """The sessions that an earlier host has left here; what is damaged or too old is removed."""
        found = []
        for path in self.folder.iterdir():
            job = None
            if path.suffix == ".json" and ID.fullmatch(path.stem):
                with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
                    about = json.loads(path.read_text())
                    texts = {name: str(about[name]) for name in Job._fields if name != "until"}
                    job = Job(**texts, until=float(about["until"]))
            if job is not None and job.id == path.stem and job.until > time.time() and self._state(job.id).is_file():
                found.append(job)
        ids = {job.id for job in found}
        for path in self.folder.iterdir():
            if ID.fullmatch(path.name.partition(".")[0]) and path.name.partition(".")[0] not in ids:
                path.unlink(missing_ok=True)
        self.bytes.count = sum(self._state(job.id).stat().st_size for job in found)
        return found

    def write(self, job: Job, source: BinaryIO) -> None:
        """Reads a session to its end. Raises LimitError if there is no room, OSError if the disk does not take it, and
        EOFError if it is not whole; then nothing is left of it here.
        """
        size, tail = 0, b""
        path = self._state(job.id)
        try:
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                while piece := source.read(_PIECE):
                    tail = (tail + piece[-len(END) :])[-len(END) :]
                    self.bytes.take(len(piece), "a session")
                    size += len(piece)
                    file.write(piece)
                if tail != END:
                    raise EOFError("the session's process has ended before it was saved")
                file.flush()
                os.fsync(file.fileno())
            about = path.with_suffix(".json")
            part = path.with_suffix(".part")
            with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as text:
                json.dump(job._asdict(), text)
                text.flush()
                os.fsync(text.fileno())
            os.replace(part, about)
        except BaseException:
            self.bytes.give(size)
            path.unlink(missing_ok=True)
            raise

    def open(self, id: str) -> BinaryIO:
        """The state of a session. Raises OSError if it can't be read."""
        return open(self._state(id), "rb")

    def remove(self, id: str) -> None:
        path = self._state(id)
        path.with_suffix(".json").unlink(missing_ok=True)
        with contextlib.suppress(FileNotFoundError):
            size = path.stat().st_size
            path.unlink()
            self.bytes.give(size)

    def _state(self, id: str) -> pathlib.Path:
        return self.folder / f"{id}.session"
