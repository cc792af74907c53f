"""Executables on disk, by hashes of what was compiled: a host that starts again does not compile them again.

Who can write to the folder can run code in the host's workers, so it is for the host's user alone. Files are checked
before anything of them is used: XLA trusts what it reads.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import pathlib
import re
import stat
import struct
import threading
import time
from typing import BinaryIO

from weft.base.errors import BackendError
from weft_remote.errors import LimitError

log = logging.getLogger("weft.host")
_MAGIC = b"weftexe1"
_HEADER = struct.Struct("<8sQ32s")  # magic, length, and SHA-256 of the name and what follows
LENGTH = struct.Struct("<Q")  # before an executable that comes from another process
_NAME = re.compile(r"[0-9a-f]{64}")
_PIECE = 1 << 20
_ABANDONED = 3600.0  # seconds after which a file that was never completed is removed


def name_of(what: bytes) -> str:
    """The name of an executable, from all that decides what it is: a message of the protocol."""
    return hashlib.sha256(what).hexdigest()


def unsafe(folder: pathlib.Path) -> str | None:
    """Why a folder can't be believed; None if only this user writes to it."""
    found = folder.stat()
    if found.st_uid not in (os.geteuid(), 0):
        return f"{folder} belongs to another user, who could put code into the host's processes there. Name another."
    if stat.S_IMODE(found.st_mode) & 0o022:
        return f"others may write to {folder}, and so run code in the host's processes. `chmod go-w` it."
    return None


class Executables:
    """A folder of executables, of which the least recently used are removed.

    Args:
        folder: of the host alone, made if it is not there.
        limit: bytes of all of them together.

    Raises BackendError for a folder to which others may write.
    """

    def __init__(self, folder: pathlib.Path, limit: int):
        self.folder, self.limit = folder, limit
        self.changing = threading.Lock()
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            why = unsafe(folder)
            self.size = 0 if why else sum(size for _, size, _ in self._files())
        except OSError as e:
            raise BackendError(f"executables can't be kept in {folder}: {e.strerror or e}. Name another one.") from None
        if why:
            raise BackendError(why)
        for path in folder.glob("*.part"):  # of a host that was killed; others may share the folder
            with contextlib.suppress(OSError):
                if _NAME.fullmatch(path.stem) and time.time() - path.stat().st_mtime > _ABANDONED:
                    path.unlink()

    def open(self, name: str) -> BinaryIO | None:
        """An executable as a file that is read from where it stands; None if there is none. One that is damaged is
        removed.
        """
        path = self.folder / name
        try:
            file = open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb", buffering=0)
        except FileNotFoundError:
            return None
        except OSError as e:
            log.warning("the executable %s can't be read: %s", path, e.strerror or e)
            return None
        try:
            damage = _damage(file, name)
            file.seek(_HEADER.size)
        except OSError as e:
            damage = str(e.strerror or e)
        if damage is not None:
            file.close()
            log.warning("the executable %s is removed: %s. Its program is compiled again.", path, damage)
            self._remove(path)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # the one that was used last is removed last
        return file

    def has(self, name: str) -> bool:
        return (self.folder / name).is_file()

    def write(self, name: str, source: BinaryIO) -> int:
        """Reads an executable, which comes after its length; its size. Raises EOFError if it is not whole, LimitError
        if there is no room for it, and OSError if the disk does not take it; then nothing is left of it here.
        """
        size: int
        (size,) = LENGTH.unpack(_exactly(source, LENGTH.size))
        if _HEADER.size + size > self.limit:
            raise LimitError(f"it takes {size} bytes, and all together may have {self.limit}")
        path, part = self.folder / name, self.folder / f"{name}.part"
        digest = hashlib.sha256(name.encode())
        try:
            with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as file:
                file.write(bytes(_HEADER.size))
                left = size
                while left:
                    piece = _exactly(source, min(left, _PIECE))
                    digest.update(piece)
                    file.write(piece)
                    left -= len(piece)
                file.seek(0)
                file.write(_HEADER.pack(_MAGIC, size, digest.digest()))
            self._remove(path)  # counted once
            self._make_room(_HEADER.size + size)
            with self.changing:
                os.replace(part, path)
                self.size += _HEADER.size + size
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        return _HEADER.size + size

    def _files(self) -> list[tuple[int, int, str]]:
        """When each was used, its size and its path."""
        found = []
        with os.scandir(self.folder) as entries:
            for entry in entries:
                if _NAME.fullmatch(entry.name):
                    with contextlib.suppress(FileNotFoundError):
                        about = entry.stat(follow_symlinks=False)
                        found.append((about.st_mtime_ns, about.st_size, entry.path))
        return found

    def _make_room(self, size: int) -> None:
        if self.size + size <= self.limit:
            return
        found = sorted(self._files())
        with self.changing:
            self.size = sum(had for _, had, _ in found)  # another host may share the folder
        for _, _, path in found:
            if self.size + size <= self.limit:
                return
            self._remove(pathlib.Path(path))

    def _remove(self, path: pathlib.Path) -> None:
        with self.changing, contextlib.suppress(FileNotFoundError):
            size = path.lstat().st_size
            path.unlink()
            self.size = max(0, self.size - size)


def _damage(file: BinaryIO, name: str) -> str | None:
    """What is wrong with a file; None if it is whole, and this program's."""
    head = file.read(_HEADER.size)
    if len(head) < _HEADER.size or head[: len(_MAGIC)] != _MAGIC:
        return "it is no executable of this version"
    _, size, wanted = _HEADER.unpack(head)
    digest, found = hashlib.sha256(name.encode()), 0
    while piece := file.read(_PIECE):
        digest.update(piece)
        found += len(piece)
    if found != size:
        return f"it should hold {size} bytes, and has {found}"
    return None if digest.digest() == wanted else "its checksum is wrong"


def _exactly(source: BinaryIO, size: int) -> bytes:
    data = source.read(size)
    if len(data) < size:
        raise EOFError("it ends too early")
    return data
