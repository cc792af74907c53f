"""Tokens that an identity provider signs: JSON Web Tokens, which PyJWT checks with the provider's public keys."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import math
import pathlib
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from weft.base.errors import BackendError

from .grants import NAME, SIGNED, Denied, Grant, check

log = logging.getLogger("weft.host")
LONGEST = 5120  # bytes of a token: as a subprotocol, a third longer, it must leave room in 8 KiB
FILE_SECONDS = 0.5  # between two looks at a file of keys
FETCH_SECONDS = 5.0  # without a byte from the server of the keys
OLD_SECONDS = 600.0  # after which keys are fetched again, since some may have been withdrawn
PATIENCE = 86_400.0  # for which keys count while their server does not answer
RSA_BITS = 2048
LATEST = 1e11  # a moment in seconds since 1970 that no token reaches
WORDS = 40  # characters of a token's that the operator is told
MESSAGE = (
    "the host refuses this token. Get a new one from its issuer; the host's operator finds the reason in the audit log."
)
RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
CURVES = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512", "Ed25519": "EdDSA"}
ALGORITHMS = (*RSA, *CURVES.values())  # all of them have a public key: with a shared secret the host could sign too
QUOTAS = ("sessions", "nice", "rate", "connections")
# What a stranger can send too; the others had a token that was once good, or did nothing wrong.
GUESSES = ("jwt-size", "jwt-form", "jwt-algorithm", "jwt-key", "jwt-signature", "jwt-issuer", "jwt-audience")


class KeysError(BackendError):
    """The keys of an issuer can't be had."""


class Key(NamedTuple):
    """A public key."""

    id: str | None
    algorithms: tuple[str, ...]  # for which it may be used
    value: Any


class Keys:
    """The public keys of an issuer, from a JSON Web Key Set.

    Args:
        source: the path of a file, or a URL that begins with https.
        refresh: seconds between two fetches at least.
    """

    def __init__(self, source: str, refresh: float = 30.0):
        self.source = source
        self.client: jwt.PyJWKClient | None = None
        self.refresh, self.old, self.patience = FILE_SECONDS, FILE_SECONDS, 0.0
        if is_url(source):
            self.client = jwt.PyJWKClient(source, cache_jwk_set=False, timeout=FETCH_SECONDS)
            self.refresh, self.old, self.patience = refresh, max(OLD_SECONDS, refresh), PATIENCE
        self.found: list[Key] = []
        self.useless: list[str] = []  # why other keys of the set are not used
        self.failure: str | None = None  # of the last reading
        self.tried_at = self.read_at = -math.inf

    def find(self, id: str | None) -> Key | None:
        """The key of a token, which need not say so if there is one alone."""
        if id is None:
            return self.found[0] if len(self.found) == 1 else None
        return next((key for key in self.found if key.id == id), None)

    def due(self, id: str | None) -> bool:
        """Whether to read the set before a token with this key is judged."""
        now = time.monotonic()
        wanted = self.find(id) is None or now - self.read_at >= self.old
        return wanted and now - self.tried_at >= self.refresh

    def read(self) -> None:
        """Reads the set, which may take seconds. Raises KeysError."""
        self.tried_at = time.monotonic()
        try:
            self.found, self.useless = _usable(self._data())
        except (OSError, ValueError, RecursionError, jwt.PyJWTError) as e:
            self.failure = f"the keys of {self.source} can't be read: {str(e) or type(e).__name__}"
            if self.tried_at - self.read_at >= self.patience:
                self.found = []
            raise KeysError(f"{self.failure}.") from None
        self.failure, self.read_at = None, self.tried_at

    def _data(self) -> Any:
        return json.loads(pathlib.Path(self.source).read_bytes()) if self.client is None else self.client.fetch_data()


class Issuer:
    """Checks tokens of an issuer.

    Args:
        name: the claim `iss` of its tokens.
        audience: one of these must be in the claim `aud`.
        keys: its public keys.
        algorithms: those that count.
        leeway: seconds by which its clock and the host's may differ.
        claims: the names of the claims "name", "scope" and "quotas".
        prefix: of scopes that are meant for the host; the others are left out.
    """

    def __init__(
        self,
        name: str,
        audience: Sequence[str],
        keys: Keys,
        algorithms: Sequence[str] = ("RS256", "ES256"),
        leeway: float = 30.0,
        claims: Mapping[str, str] = {"name": "sub", "scope": "scope", "quotas": "weft"},
        prefix: str = "weft:",
    ):
        self.name, self.audience, self.keys = name, list(audience), keys
        self.algorithms, self.leeway, self.claims, self.prefix = tuple(algorithms), leeway, claims, prefix
        self.reading = asyncio.Lock()

    @staticmethod
    def is_meant(token: bytes) -> bool:
        """Whether a token is to be checked here: it has the form of a JSON Web Token."""
        return token.count(b".") == 2

    async def prepare(self, token: bytes) -> None:
        """Reads the keys if this token needs it, but not too often. `admit` tells what comes of it."""
        if not self.is_meant(token):
            return
        try:
            id = _header(token).get("kid")
        except Denied:
            return
        if self.keys.due(id) or self.keys.find(id) is None:  # which others may be reading now
            async with self.reading:
                if self.keys.due(id):
                    try:
                        await asyncio.to_thread(self.keys.read)
                    except KeysError as e:
                        log.error("%s", e)

    def admit(self, token: bytes) -> Grant:
        """What a token is for. Raises Denied."""
        id = _header(token).get("kid")
        key = self.keys.find(id)
        if key is None:
            if self.keys.failure is not None:
                raise _denied("jwt-keys", self.keys.failure)
            raise _denied("jwt-key", f"the issuer has no key {_shown(id)}")
        allowed = [a for a in key.algorithms if a in self.algorithms]
        if not allowed:
            raise _denied("jwt-algorithm", f"the key {_shown(id)} is for {' '.join(key.algorithms)}")
        try:
            claims = jwt.decode(
                token,
                key.value,
                algorithms=allowed,
                audience=self.audience,
                issuer=self.name,
                leeway=self.leeway,
                options={"require": ["iss", "aud", "exp", "sub"], "enforce_minimum_key_length": True},
            )
        except jwt.InvalidAlgorithmError:
            raise _denied("jwt-algorithm", f"it is not signed with {' or '.join(allowed)}") from None
        except jwt.InvalidSignatureError:
            raise _denied("jwt-signature", f"the key {_shown(id)} has not signed it") from None
        except jwt.ExpiredSignatureError:
            raise _denied("jwt-expired", "it has expired") from None
        except jwt.ImmatureSignatureError:
            raise _denied("jwt-early", "it is not valid yet") from None
        except jwt.InvalidIssuerError:
            raise _denied("jwt-issuer", f"it is not of {self.name}") from None
        except jwt.InvalidAudienceError:
            raise _denied("jwt-audience", f"it is not for {' or '.join(self.audience)}") from None
        except jwt.DecodeError as e:
            raise _denied("jwt-form", str(e)) from None
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as e:  # it is signed, and unusual
            raise _denied("jwt-claims", str(e)) from None
        try:
            return self._granted(claims)
        except (ValueError, TypeError, OverflowError) as e:
            raise _denied("jwt-claims", str(e)) from None

    def _granted(self, claims: dict[str, Any]) -> Grant:
        """Raises ValueError or TypeError if the claims can't be used."""
        subject = claims["sub"]
        if not subject:
            raise ValueError("the claim 'sub' is empty")
        name = claims.get(self.claims["name"])
        if not isinstance(name, str) or not NAME.fullmatch(name[:60]):
            raise ValueError(f"the claim {self.claims['name']!r} is no name in printable characters")
        expires = int(claims["exp"])
        if expires > LATEST:
            raise ValueError("the claim 'exp' is too late")
        quotas = claims.get(self.claims["quotas"], {})
        if not isinstance(quotas, dict) or not all(type(v) is int for v in quotas.values()):
            raise ValueError(f"the claim {self.claims['quotas']!r} is no object of whole numbers")
        if unknown := set(quotas) - set(QUOTAS):  # a limit that is misspelt would be none
            raise ValueError(f"the claim {self.claims['quotas']!r} has {_shown(min(unknown))}; known are {QUOTAS}")
        scopes = self._scopes(claims.get(self.claims["scope"], ""))
        sessions, nice = quotas.get("sessions"), quotas.get("nice", 0)
        rate, connections = quotas.get("rate"), quotas.get("connections")
        check(scopes, sessions, nice, rate, connections)
        id = SIGNED + hashlib.sha256(f"{self.name}\0{subject}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return Grant(id, name[:60], scopes, 0.0, expires + self.leeway, sessions, nice, rate, connections)

    def _scopes(self, claim: Any) -> tuple[str, ...]:
        found = claim.split() if isinstance(claim, str) else claim
        if not isinstance(found, list) or not all(isinstance(s, str) for s in found):
            raise ValueError(f"the claim {self.claims['scope']!r} is neither a text nor a list of texts")
        return tuple(s.removeprefix(self.prefix) for s in found if s.startswith(self.prefix))


def is_url(source: str) -> bool:
    return source.startswith("https://")


def _header(token: bytes) -> dict[str, Any]:
    if len(token) > LONGEST:
        raise _denied("jwt-size", f"it has {len(token)} of {LONGEST} bytes")
    try:
        return jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError) as e:
        raise _denied("jwt-form", str(e)) from None


def _denied(cause: str, reason: str) -> Denied:
    return Denied(cause, MESSAGE, reason)


def _shown(word: object) -> str:
    return "without a name" if word is None else repr(str(word)[:WORDS])


def _usable(data: Any) -> tuple[list[Key], list[str]]:
    """The keys of a set that can check signatures, and why others can't. Raises ValueError if there is none."""
    entries = data.get("keys") if isinstance(data, dict) else None
    if not isinstance(entries, list):
        raise ValueError("it is no JSON Web Key Set: an object with a list 'keys'")
    found, useless = [], []
    for entry in entries:
        try:
            found.append(_key(entry))
        except (ValueError, TypeError, AttributeError, jwt.PyJWTError) as e:
            name = _shown(entry.get("kid")) if isinstance(entry, dict) else "without a name"
            # The library's words for a key may have all of it in them.
            useless.append(f"the key {name} {e if isinstance(e, _Useless) else 'is damaged'}")
    if not found:
        raise ValueError("; ".join(["it has no key for signatures", *useless]))
    return found, useless


class _Useless(ValueError):
    """A key is not what a host needs."""


def _key(entry: dict[str, Any]) -> Key:
    kind = entry.get("kty")
    if entry.get("use", "sig") != "sig" or "verify" not in entry.get("key_ops", ["verify"]):
        raise _Useless("is not for signatures")
    if "d" in entry or kind == "oct":
        raise _Useless("is secret, and whoever reads it could sign tokens: publish the public key")
    curve = CURVES.get(entry.get("crv", "")) if kind in ("EC", "OKP") else None
    possible = RSA if kind == "RSA" else () if curve is None else (curve,)
    declared = entry.get("alg")
    algorithms = tuple(a for a in possible if declared in (None, a))
    if not algorithms:
        raise _Useless(f"is for none of {', '.join(ALGORITHMS)}")
    value = jwt.PyJWK(entry, algorithms[0]).key
    if isinstance(value, RSAPublicKey) and value.key_size < RSA_BITS:
        raise _Useless(f"has {value.key_size} bits, fewer than {RSA_BITS}")
    return Key(entry.get("kid"), algorithms, value)
