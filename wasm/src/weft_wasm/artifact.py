"""The artifact of one compiled program and its container file: what every host loads (docs/artifact.md is the ABI).

b"weft\\x01\\0\\0\\0", three little-endian u32 lengths, then metadata (JSON), code, constants
"""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass
from functools import cached_property
from typing import Any

MAGIC = b"weft\x01\0\0\0"
ABI_VERSION = 1


class ArtifactError(ValueError):
    """Bytes that are not a weft artifact of a version this runtime knows. Compile the program again with this weft."""


@dataclass(frozen=True)
class Artifact:
    """metadata: a JSON-able dict ("abi", "kind", "name", "inputs", "outputs", "scratch", "features", "errors");
    code: a Wasm module or the UTF-8 JSON of a WebGPU plan; constants: bytes copied to the device once.

    >>> artifact = Artifact({"abi": 1, "kind": "wasm", "name": "f", "inputs": [], "outputs": []}, b"\\0asm", b"")
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
        return hashlib.blake2b(self.to_bytes(), digest_size=16).hexdigest()

    def to_bytes(self) -> bytes:
        """The container file."""
        meta = json.dumps(self.metadata, separators=(",", ":")).encode()
        lengths = struct.pack("<III", len(meta), len(self.code), len(self.constants))
        return b"".join((MAGIC, lengths, meta, self.code, self.constants))

    @classmethod
    def from_bytes(cls, data: bytes) -> Artifact:
        """Reads a container file; ArtifactError if it isn't one."""
        data = bytes(data)
        if data[:5] != MAGIC[:5] or len(data) < 20:
            raise ArtifactError(f"not a weft artifact of version {MAGIC[4]}: it begins with {data[:8]!r}")
        n_meta, n_code, n_constants = struct.unpack_from("<III", data, 8)
        if 20 + n_meta + n_code + n_constants != len(data):
            raise ArtifactError(
                f"a truncated artifact: its parts need {20 + n_meta + n_code + n_constants} bytes, {len(data)} are there"
            )
        try:
            metadata = json.loads(data[20 : 20 + n_meta])
        except ValueError as e:
            raise ArtifactError(f"the artifact's metadata is not JSON: {e}") from None
        if not isinstance(metadata, dict) or metadata.get("abi") != ABI_VERSION:
            found = metadata.get("abi") if isinstance(metadata, dict) else metadata
            raise ArtifactError(f"artifact ABI {found!r}, this runtime has {ABI_VERSION}: compile the program again")
        at = 20 + n_meta
        return cls(metadata, data[at : at + n_code], data[at + n_code :])
