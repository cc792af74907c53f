"""Artifacts compiled by an earlier visit to the page: see docs/decisions/018-programs-kept-by-pages.md."""

from __future__ import annotations

import hashlib
import importlib.metadata
from functools import lru_cache
from typing import Any, Iterable, Sequence

from weft.base import monitoring
from weft.base.config import config
from weft.core.jaxpr import Jaxpr
from weft.core.memo import inner_jaxprs
from weft.serialization.portable import NotPortable
from weft.serialization.programs import serialize
from weft.transforms.portable import portable

from weft_wasm.artifact import Artifact, ArtifactError

# The packages on which a module depends besides the program: primitives' rules, their decompositions, the compiler.
PARTS = ("weft", "weft-wasm")


@lru_cache
def compiler() -> str | None:
    """A hash of the compiler's sources; None if their installation does not list them (an installation in place does
    not).
    """
    digest = hashlib.sha256()
    for name in PARTS:
        try:
            record = importlib.metadata.distribution(name).read_text("RECORD") or ""
        except importlib.metadata.PackageNotFoundError:
            return None
        if "/__init__.py" not in record:
            return None
        digest.update(record.encode())
    return digest.hexdigest()


def own(jaxpr: Jaxpr) -> bool:
    """Whether all rules that compile a program belong to `PARTS`. A library's own primitives, if any are left after
    decomposition, may have another meaning tomorrow.
    """
    for eqn in jaxpr.eqns:
        p = eqn.primitive
        if p.foreign or not all(
            rule is None or getattr(rule, "__module__", "").startswith("weft.") for rule in (p.abstract, p.decompose)
        ):
            return False
    return all(map(own, inner_jaxprs(jaxpr)))


class Programs:
    """The artifacts in a store of bytes by key (`get`, `put`, `delete`), such as the page's. The stored bytes begin
    with their key, since an artifact under the wrong key would be valid, and the wrong program.
    """

    def __init__(self, store: Any, version: str):
        self.store, self.version = store, version

    def key(self, jaxpr: Jaxpr, name: str, donated: Sequence[bool], features: Iterable[str]) -> str | None:
        """A hash of everything that the module of a program depends on; None for programs that are not stored: those of
        one operation, and those that contain values or functions.
        """
        if not config.enable_compilation_cache or (len(jaxpr.eqns) < 2 and not inner_jaxprs(jaxpr)):
            return None
        try:
            opened, values = portable(jaxpr)
            program = serialize(opened, lines=False) if not values and own(opened) else None
        except NotPortable:
            return None
        if program is None:
            return None
        rest = "\0".join([self.version, name, "".join("01"[bool(d)] for d in donated), *sorted(features)])
        return hashlib.sha256(rest.encode() + b"\0" + program).hexdigest()

    def get(self, key: str) -> Artifact | None:
        """The artifact stored under a key."""
        monitoring.record_event("/jax/compilation_cache/compile_requests_use_cache")
        found = self.store.get(key)
        if found is not None:
            try:
                if not found.startswith(key.encode()):
                    raise ArtifactError("the stored artifact is another program")
                artifact = Artifact.from_bytes(found[len(key) :])
                monitoring.record_event("/jax/compilation_cache/cache_hits")
                return artifact
            except ArtifactError:
                self.store.delete(key)
        monitoring.record_event("/jax/compilation_cache/cache_misses")
        return None

    def put(self, key: str, artifact: Artifact) -> None:
        """Keeps an artifact for later visits."""
        self.store.put(key, key.encode() + artifact.to_bytes())


def programs_of(runtime: Any) -> Programs | None:
    """The artifacts of earlier visits, if the runtime has a store for them."""
    store = getattr(runtime, "store", None)
    version = compiler() if store is not None else None
    return Programs(store, version) if version is not None else None
