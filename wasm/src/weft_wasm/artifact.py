"""The artifact of one compiled program and its container file, which every host loads (docs/artifact.md is the ABI).

b"weft\\x02\\0\\0\\0", the SHA-256 of all that follows, three little-endian u32 lengths, then metadata (JSON), code,
constants
"""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from weft_wasm.contents import ABI_VERSION, ArtifactError, check_contents, json_of

MAGIC = b"weft\x02\0\0\0"
DIGEST = 32  # bytes
HEADER = len(MAGIC) + DIGEST + 12
FORMER = {b"weft\x01\0\0\0": 1}  # versions that were, by their magic


@dataclass(frozen=True)
class Artifact:
    """metadata: a JSON-able dict ("abi", "kind", "name", "inputs", "outputs", "scratch", "features", "errors");
    code: a Wasm module or the UTF-8 JSON of a WebGPU plan; constants: bytes copied to the device once.

    >>> plan = b'{"kernels":[],"buffers":[],"steps":[]}'
    >>> metadata = {"abi": 1, "kind": "webgpu", "name": "f", "inputs": [], "outputs": [], "scratch": 0, "features": []}
    >>> artifact = Artifact({**metadata, "errors": {}}, plan)
    >>> Artifact.from_bytes(artifact.to_bytes()) == artifact
    True
    """

    metadata: dict[str, Any]
    code: bytes
    constants: bytes = b""

    @property
    def kind(self) -> str:
        """ "wasm" or "webgpu"."""
        return str(self.metadata["kind"])

    @property
    def name(self) -> str:
        return str(self.metadata["name"])

    @cached_property
    def hash(self) -> str:
        """A name for the content (hex)."""
        return self._content[0].hex()

    @property
    def _content(self) -> tuple[bytes, bytes, bytes]:
        """(SHA-256 of the bytes after it, lengths, metadata)."""
        meta = json.dumps(self.metadata, separators=(",", ":")).encode()
        lengths = struct.pack("<III", len(meta), len(self.code), len(self.constants))
        digest = hashlib.sha256(lengths + meta)
        digest.update(self.code)
        digest.update(self.constants)
        return digest.digest(), lengths, meta

    def check(self) -> None:
        """Raises ArtifactError, which names the place, if the parts do not form a valid artifact."""
        check_contents(self.metadata, self.code, self.constants)

    def to_bytes(self) -> bytes:
        """The container file."""
        return b"".join((MAGIC, *self._content, self.code, self.constants))

    @classmethod
    def from_bytes(cls, data: bytes) -> Artifact:
        """Reads a container file. Raises ArtifactError if it is not one, or is damaged."""
        data = bytes(data)
        if (version := FORMER.get(data[: len(MAGIC)])) is not None:
            raise ArtifactError(
                f"an artifact of version {version}, this runtime reads version {MAGIC[4]}: compile the program again"
            )
        if data[: len(MAGIC)] != MAGIC or len(data) < HEADER:
            raise ArtifactError(
                f"not a weft artifact of version {MAGIC[4]}: it has {len(data)} bytes and begins with {data[:8]!r}"
            )
        n_meta, n_code, n_constants = struct.unpack_from("<III", data, HEADER - 12)
        if HEADER + n_meta + n_code + n_constants != len(data):
            raise ArtifactError(
                f"a truncated artifact: its parts need {HEADER + n_meta + n_code + n_constants} bytes, {len(data)} are"
                " there. Compile the program again"
            )
        if hashlib.sha256(data[len(MAGIC) + DIGEST :]).digest() != data[len(MAGIC) : len(MAGIC) + DIGEST]:
            raise ArtifactError(
                "a damaged artifact: its content is not what its checksum says. Copy the file again, or compile the"
                " program again"
            )
        at = HEADER + n_meta
        try:
            metadata = json_of(data[HEADER:at])
        except ValueError as e:
            raise ArtifactError(f"the artifact's metadata is not JSON: {e}. Compile the program again") from None
        artifact = cls(metadata, data[at : at + n_code], data[at + n_code :])
        artifact.check()
        return artifact


__all__ = ["ABI_VERSION", "Artifact", "ArtifactError"]
