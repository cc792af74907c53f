"""Who may use a host: tokens, what each is for, and how often a stranger may guess one.

A file keeps several tokens, as hashes: `weft-host token new` shows a token once. It is read again when it has changed,
so that a token can be revoked while the host runs.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import logging
import os
import pathlib
import re
import secrets
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import limits
from weft.base.errors import BackendError

from .grants import INNER, NAME, PROGRAMS, SESSIONS, Denied, Grant, check
from .issuer import GUESSES, Issuer
from .rates import Rates

log = logging.getLogger("weft.host")
LOOK_SECONDS = 0.5  # between two looks at the file
LOCK_SECONDS = 5.0  # for which a command waits for another one that changes it
_TOKEN = re.compile(rb"weft_([0-9a-f]{8})_[A-Za-z0-9_-]{43}")


class AccessError(BackendError):
    """The file of tokens is not one, or the command for it can't be carried out."""


class Gate:
    """Checks tokens.

    Args:
        token: one that is for everything; None if only those of the file count.
        file: where `weft-host token` keeps tokens.
        guesses: wrong tokens that one address may send in a minute.
        issuer: signs tokens that count too.
        rates: how often a token may be used.
    """

    def __init__(
        self,
        token: str | None = None,
        file: pathlib.Path | None = None,
        guesses: int = 10,
        issuer: Issuer | None = None,
        rates: Rates | None = None,
    ):
        if not token and file is None and issuer is None:
            raise ValueError("a host needs a token, a file of tokens, or somebody who signs them")
        self.issuer = issuer
        self.rates = Rates() if rates is None else rates
        self.own = None if token is None else token.encode()
        self.inner = secrets.token_urlsafe(32)  # the host's, for the session in which it runs programs by name
        self.file = None if file is None else TokenFile(file)
        self.allowed = limits.RateLimitItemPerMinute(guesses)
        self.guesses = limits.strategies.MovingWindowRateLimiter(limits.storage.MemoryStorage())

    async def enter(self, token: bytes | None, address: str) -> Grant:
        """What a token is for, as `admit` says; the issuer's keys are read first if that needs it."""
        if self.issuer is not None and token is not None and self.guesses.test(self.allowed, address):
            await self.issuer.prepare(token)
        return self.admit(token, address)

    def admit(self, token: bytes | None, address: str) -> Grant:
        """What a token is for. Raises Denied for one that is unknown, expired or revoked, and for every
        one from an address that has guessed too often.
        """
        if not self.guesses.test(self.allowed, address):
            raise Denied("guesses", "too many wrong tokens came from this address. Try again in a minute.")
        if token is not None:
            if self.own is not None and hmac.compare_digest(token, self.own):
                return Grant("", "")
            if hmac.compare_digest(token, self.inner.encode()):
                return INNER
            if self.issuer is not None and self.issuer.is_meant(token):
                try:
                    return self.issuer.admit(token)
                except Denied as e:
                    if e.cause in GUESSES:
                        self.guesses.hit(self.allowed, address)
                    raise
            try:
                found = None if self.file is None else self.file.find(token)
            except AccessError as e:
                log.error("%s", e)
                raise Denied("damaged", "the host can't read its tokens; its operator has to mend them.") from None
            if found is not None and not found.expired:
                return found
            if found is not None:
                raise Denied("expired", "this token has expired. Ask the host's operator for another one.")
        self.guesses.hit(self.allowed, address)
        raise Denied(
            "token",
            "the host does not know this token. Take the one that weft-host printed or was started with.",
        )

    def holds(self, grant: Grant) -> bool:
        """Whether a grant is still good: not expired, and not revoked."""
        if not grant.id:
            return True
        if grant.signed:
            return self.issuer is not None and not grant.expired
        return self.file is not None and not grant.expired and grant.id in self.file.grants()


class TokenFile:
    """Tokens as a file of JSON keeps them: each with the SHA-256 of its text, which is random and so can't be guessed
    from it.
    """

    def __init__(self, path: pathlib.Path):
        self.path = path
        self._entries: dict[str, tuple[Grant, bytes]] = {}
        self._state: tuple[int, int] | None = None
        self._failure: str | None = None  # why the file could not be read at the last look
        self._looked = 0.0

    def grants(self) -> dict[str, Grant]:
        return {id: grant for id, (grant, _) in self._read().items()}

    def find(self, token: bytes) -> Grant | None:
        match = _TOKEN.fullmatch(token)
        entry = None if match is None else self._read().get(match[1].decode())
        given = hashlib.sha256(token).digest()
        known = entry is not None and hmac.compare_digest(entry[1], given)
        return entry[0] if entry is not None and known else None

    def add(
        self,
        name: str,
        scopes: tuple[str, ...] = (SESSIONS, PROGRAMS),
        days: float | None = None,
        sessions: int | None = None,
        nice: int = 0,
        rate: int | None = None,
        connections: int | None = None,
    ) -> str:
        """Makes a token, and returns its text, which is kept nowhere."""
        if not NAME.fullmatch(name):
            raise AccessError("the name of a token is a text of 1 to 60 printable characters.")
        if not scopes:
            raise AccessError("a token has a scope at least.")
        if days is not None and not 0 < days < 36525:
            raise AccessError("a token lasts for more than 0 and less than 36525 days.")
        try:
            check(scopes, sessions, nice, rate, connections)
        except ValueError as e:
            raise AccessError(str(e)) from None
        id = secrets.token_hex(4)
        text = f"weft_{id}_{secrets.token_urlsafe(32)}"
        now = time.time()
        expires = None if days is None else now + 86400 * days
        grant = Grant(id, name, scopes, now, expires, sessions, nice, rate, connections)
        with self._changing() as entries:
            entries[id] = grant, hashlib.sha256(text.encode()).digest()
        return text

    def revoke(self, id: str) -> Grant:
        """Removes a token by its id, or by its name if that names one alone."""
        with self._changing() as entries:
            found = [key for key, (grant, _) in entries.items() if id in (key, grant.name)]
            if len(found) != 1:
                many = f"{len(found)} tokens have" if found else "no token has"
                raise AccessError(f"{many} the id or name {id!r}: `weft-host token list` shows them.")
            return entries.pop(found[0])[0]

    def _read(self) -> dict[str, tuple[Grant, bytes]]:
        """The entries; the file is read if it has changed. One that is damaged lets nobody in."""
        if time.monotonic() - self._looked >= LOOK_SECONDS:
            self._looked, self._failure = time.monotonic(), None
            try:
                found = self.path.stat()
                state = (found.st_mtime_ns, found.st_ino)
                if state != self._state:
                    self._entries, self._state = self._load(), state
            except FileNotFoundError:
                self._entries, self._state = {}, None
            except AccessError as e:
                self._entries, self._state, self._failure = {}, None, str(e)
        if self._failure is not None:
            raise AccessError(self._failure)
        return self._entries

    def _load(self) -> dict[str, tuple[Grant, bytes]]:
        try:
            entries = json.loads(self.path.read_text())["tokens"]
            return {e["id"]: (_grant(e), bytes.fromhex(e["sha256"])) for e in entries}
        except (OSError, ValueError, KeyError, TypeError) as e:
            raise AccessError(f"{self.path} is no file of tokens: {type(e).__name__}: {e}.") from None

    @contextlib.contextmanager
    def _changing(self) -> Iterator[dict[str, tuple[Grant, bytes]]]:
        """The entries, to be changed; nobody else changes them meanwhile, and readers see all of it or nothing."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(self.path.with_suffix(".lock")):
            entries = self._load() if self.path.exists() else {}
            yield entries
            made = [{**grant._asdict(), "sha256": digest.hex()} for grant, digest in entries.values()]
            descriptor, name = tempfile.mkstemp(dir=self.path.parent)  # which only its owner may read
            with open(descriptor, "w") as file:
                json.dump({"tokens": made}, file, indent=1)
                belong_to_the_folder(file.fileno(), self.path)
            os.replace(name, self.path)
        self._looked = 0.0


def belong_to_the_folder(descriptor: int, path: pathlib.Path) -> None:
    """Gives a file that root has made to the owner of its folder, who is to read it: the host's user."""
    if os.geteuid() == 0:
        owner = path.parent.stat()
        os.fchown(descriptor, owner.st_uid, owner.st_gid)


@contextlib.contextmanager
def _alone(lock: pathlib.Path) -> Iterator[None]:
    """One process at a time has a lock file."""
    until = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
            break
        except FileExistsError:
            if time.monotonic() > until:
                raise AccessError(f"another command changes the tokens. If none does, remove {lock}.") from None
            time.sleep(0.05)
    try:
        yield
    finally:
        os.unlink(lock)


def _grant(entry: dict[str, Any]) -> Grant:
    scopes, made = tuple(entry["scopes"]), float(entry["created"])
    expires = None if entry["expires"] is None else float(entry["expires"])
    sessions = None if entry["sessions"] is None else int(entry["sessions"])
    nice = int(entry.get("nice", 0))  # the file may be older
    rate, connections = (None if entry.get(k) is None else int(entry[k]) for k in ("rate", "connections"))
    check(scopes, sessions, nice, rate, connections)
    return Grant(str(entry["id"]), str(entry["name"]), scopes, made, expires, sessions, nice, rate, connections)
