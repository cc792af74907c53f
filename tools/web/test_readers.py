"""The page's reader of artifacts takes and refuses what the compiler's does, at the same place.
WEFT_HOSTILE_ARTIFACTS sets how many are compared.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from weft_wasm.artifact import Artifact, ArtifactError

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "wasm"))
from artifact_mutations import Mutant, originals  # noqa: E402

COUNT = int(os.environ.get("WEFT_HOSTILE_ARTIFACTS", "2000"))
START = int(os.environ.get("WEFT_HOSTILE_START", "0"))
CHUNK = 2000


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """A function from containers to what the page's reader says of each."""
    folder = tmp_path_factory.mktemp("reader")
    command = [
        ROOT / "node_modules/.bin/esbuild",
        ROOT / "tools/web/read_artifacts.ts",
        "--bundle",
        "--platform=node",
        "--format=esm",
        f"--outfile={folder}/read.mjs",
        "--log-level=warning",
    ]
    subprocess.run(command, check=True)

    def read(artifacts: list[bytes]) -> list[str | None]:
        (folder / "artifacts").write_bytes(b"".join(struct.pack("<I", len(data)) + data for data in artifacts))
        done = subprocess.run(
            ["node", folder / "read.mjs", folder / "artifacts"], capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return read


def said(data: bytes) -> str | None:
    try:
        Artifact.from_bytes(data)
    except ArtifactError as e:
        return str(e)
    return None


def place(message: str) -> str:
    """The part of a message that both have: what is wrong, not in which words the value is shown."""
    for end in (
        " must be ",
        "; got ",
        " has '",
        ' has "',
        "not JSON",
        "which no host has",
        "it begins",
        "it does not begin",
        "it exports",
        "it imports",
        ", which is not a known member",
        "errors must",
    ):
        message = message.split(end)[0]
    return message


def test_both_read_what_is_whole(reader):
    assert reader([artifact.to_bytes() for artifact, _ in originals()]) == [None] * len(originals())


@pytest.mark.parametrize("first", range(START, START + COUNT, CHUNK))
def test_both_refuse_the_same(reader, first):
    mutants = [Mutant(seed) for seed in range(first, min(first + CHUNK, START + COUNT))]
    for k, (mutant, theirs) in enumerate(zip(mutants, reader([m.data for m in mutants]), strict=True)):
        ours, context = said(mutant.data), f"seed {first + k}, {mutant.what}"
        assert "a bug of the reader" not in (theirs or ""), f"{context}: {theirs}"
        assert (ours is None) == (theirs is None), f"{context}: Python says {ours!r}, the page {theirs!r}"
        if ours is not None and theirs is not None and not mutant.bytes_only:
            assert place(ours) == place(theirs), f"{context}: Python says {ours!r}, the page {theirs!r}"
