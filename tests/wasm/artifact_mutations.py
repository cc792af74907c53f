"""Artifacts that were damaged: their bytes, as files are on the way; or their parts, with everything put together
again as if they were good.
"""

from __future__ import annotations

import copy
import functools
import json
import random
import sys
from pathlib import Path
from typing import Any

from weft.base.config import enable_x64
from weft_wasm.artifact import Artifact
from weft_wasm.compile import compile_program
from weft_wasm.emit_wgsl import compile_webgpu
from weft_wasm.binary.encode import unsigned

sys.path[:0] = [str(Path(__file__).parents[1] / "kernels"), str(Path(__file__).parents[1])]
from test_passes import SHAPES, lowered  # noqa: E402
import passes  # noqa: E402

NAMES = [
    "softmax",
    "sum",
    "steps",
    "branches",
    "loop in a loop",
    "gather and scatter",
    "complex",
    "bytes",
    "shared storage",
    "product",
]
SIMD, WIDE = frozenset(("simd128",)), frozenset(("simd128", "memory64"))
VALUES = [
    0,
    1,
    2,
    3,
    4,
    7,
    64,
    65536,
    -1,
    1 << 31,
    1 << 32,
    1 << 34,
    (1 << 53) - 1,
    1 << 53,
    1 << 64,
    0.5,
    True,
    None,
    "",
    "x",
    "f32",
    "c64",
    "webgpu",
    "wasm",
    "\u2028",
    "a\nb",
    "__proto__",
    "x" * 2000,
    [],
    [1],
    {},
    {"a": 1},
    [[]],
    "input",
    "output",
    "memory64",
]
KEYS = [
    "abi",
    "kind",
    "calls",
    "tasks",
    "memory",
    "id",
    "alias",
    "offset",
    "bytes",
    "dtype",
    "__proto__",
    "constructor",
    "op",
    "0",
    "-1",
    "12",
]


@functools.cache
def originals() -> list[tuple[Artifact, list[bytes]]]:
    """Artifacts of both kinds, with inputs."""
    found = []
    with passes.small_sizes():  # so that some have loops for threads
        for k, name in enumerate(NAMES):
            fun, args = SHAPES[name]
            for features in (SIMD, WIDE if k % 3 == 0 else SIMD):
                program, inputs = lowered(fun, args, features, (True,) * len(args) if name == "shared storage" else ())
                found.append((compile_program(program, features), inputs))
    for name in NAMES:
        fun, args = SHAPES[name]
        with enable_x64(False):
            program, inputs = lowered(fun, args, frozenset())
        found.append((compile_webgpu(program), inputs))
    return found


class Mutant:
    """A damaged artifact: `data` are its bytes, `what` says how. bytes_only: the checksum is that of the good one."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        self.artifact, self.inputs = self.rng.choice(originals())
        self.bytes_only = self.rng.random() < 0.4
        if self.bytes_only:
            self.data, self.what = self.damaged(self.artifact.to_bytes())
            return
        self.metadata, self.code, self.constants = (
            copy.deepcopy(self.artifact.metadata),
            self.artifact.code,
            self.artifact.constants,
        )
        self.what = "; ".join(self.change() for _ in range(self.rng.choice((1, 1, 2))))
        self.data = Artifact(self.metadata, self.code, self.constants).to_bytes()

    def change(self) -> str:
        other = self.rng.choice(originals())[0]
        choice = self.rng.randrange(12)
        if choice < 6 and isinstance(self.metadata, dict):
            self.metadata, what = self.changed(self.metadata)
            return f"metadata {what}"
        if choice < 9:
            if self.artifact.kind == "webgpu":
                try:
                    plan, what = self.changed(json.loads(self.code))
                except ValueError:
                    return "nothing"
                self.code = json.dumps(plan, separators=(",", ":")).encode()
                return f"plan {what}"
            self.code, what = self.sections(self.code, other.code)
            return f"module: {what}"
        if choice == 9:
            self.code, what = self.damaged(self.code)
            return f"code: {what}"
        if choice == 10:
            self.constants, what = self.damaged(self.constants or bytes(64))
            return f"constants: {what}"
        part = self.rng.choice(("metadata", "code", "constants"))
        setattr(self, part, copy.deepcopy(getattr(other, part)))
        return f"{part} of {other.name}, kind {other.kind}"

    def damaged(self, data: bytes) -> tuple[bytes, str]:
        """Bytes with some of them changed, lost, moved or added."""
        rng, out = self.rng, bytearray(data)
        at = rng.randrange(len(out) + 1)
        span = min(rng.choice((1, 1, 2, 4, 8, 32, 512)), len(out) - at)
        choice = rng.randrange(8)
        if choice < 3 and out:
            k = min(at, len(out) - 1)
            out[k] ^= 1 << rng.randrange(8)
            return bytes(out), f"a bit of byte {k} turned"
        if choice == 3:
            out[at : at + span] = rng.randbytes(span)
            return bytes(out), f"{span} bytes at {at} changed"
        if choice == 4:
            del out[at:]
            return bytes(out), f"cut off at {at}"
        if choice == 5:
            del out[at : at + span]
            return bytes(out), f"{span} bytes lost at {at}"
        if choice == 6:
            out[at:at] = rng.randbytes(span or 1)
            return bytes(out), f"{span or 1} bytes put in at {at}"
        to = rng.randrange(len(out) + 1)
        piece = out[at : at + span]
        del out[at : at + span]
        out[to:to] = piece
        return bytes(out), f"{span} bytes moved from {at} to {to}"

    def changed(self, value: Any) -> tuple[Any, str]:
        """JSON with something in it changed."""
        rng, path, node = self.rng, "", value
        while True:
            inside = [
                k
                for k, v in (node.items() if isinstance(node, dict) else enumerate(node))
                if isinstance(v, (dict, list)) and v
            ]
            if not inside or rng.random() < 0.3:
                break
            key = rng.choice(inside)
            node, path = node[key], f"{path}.{key}"
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        choice = rng.randrange(6)
        if not keys or choice == 0:
            if isinstance(node, dict):
                key = rng.choice(KEYS)
                node[key] = rng.choice(VALUES)
                return value, f"{path}.{key} is {node[key]!r}"[:200]
            node.insert(rng.randrange(len(node) + 1), rng.choice([*VALUES, *node]))
            return value, f"{path} has one more"
        key = rng.choice(keys)
        if choice == 1:
            del node[key]
            return value, f"{path}.{key} is gone"
        old = node[key]
        if type(old) is int and rng.random() < 0.7:
            node[key] = rng.choice([old + 1, old - 1, 2 * old, old + 64, -old, old * 65536])
        elif isinstance(old, list) and rng.random() < 0.7:
            node[key] = rng.choice([old[::-1], old[:-1], old + old, [old]])
        else:
            node[key] = copy.deepcopy(rng.choice([*VALUES, *(node[k] for k in keys)]))
        return value, f"{path}.{key}: {old!r} became {node[key]!r}"[:200]

    def sections(self, code: bytes, other: bytes) -> tuple[bytes, str]:
        """A module with its sections changed."""
        rng, parts = self.rng, split(code)
        choice = rng.randrange(6)
        if not parts:
            return code, "no module"
        k = rng.randrange(len(parts))
        number = parts[k][0]
        if choice == 0:
            del parts[k]
            what = f"section {number} gone"
        elif choice == 1:
            parts.insert(rng.randrange(len(parts) + 1), parts[k])
            what = f"section {number} twice"
        elif choice == 2:
            parts.insert(
                rng.randrange(len(parts) + 1),
                rng.choice(
                    [
                        (5, b"\1\0\1"),
                        (8, b"\0"),
                        (4, b"\1\x70\0\x7f"),
                        (9, b"\0"),
                        (11, b"\0"),
                        (6, b"\0"),
                        (0, b"\4junk"),
                        (99, b""),
                    ]
                ),
            )
            what = "one more section"
        elif choice == 3 and (more := [p for p in split(other) if p[0] == number]):
            parts[k] = more[0]
            what = f"section {number} of another"
        else:
            content, how = self.damaged(parts[k][1])
            parts[k] = number, content
            what = f"section {number}: {how}"
        return code[:8] + b"".join(bytes((n,)) + unsigned(len(content)) + content for n, content in parts), what


def split(code: bytes) -> list[tuple[int, bytes]]:
    """The sections of a module that is whole."""
    found, at = [], 8
    while code[:4] == b"\0asm" and at < len(code):
        number, size, shift = code[at], 0, 0
        at += 1
        while at < len(code):
            byte = code[at]
            size |= (byte & 127) << shift
            at, shift = at + 1, shift + 7
            if byte < 128:
                break
        found.append((number, code[at : at + size]))
        at += size
    return found
