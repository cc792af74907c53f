"""Programs, files, frames and arrays whose structure was changed, as somebody could send them: each is refused in clear
words, or is a program that runs on XLA, Wasm and WebGPU and gives what the interpreter gives, or an array with the
values that its bytes say.

They are read in a process of their own, whose end or silence is a failure. WEFT_HOSTILE_PROGRAMS and WEFT_HOSTILE_FILES
set how many; WEFT_HOSTILE_START where the seeds begin; a fourth of the programs run on Wasm and a tenth on WebGPU. A
failure names its seed; `python tests/remote/mutant_worker.py SEED 1` (or `… SEED 1 wasm`, `webgpu`, `files`, or
mutant_arrays.py) judges it again.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import threading

import pytest
from platforms import need, under_test

need("cpu")

HERE = pathlib.Path(__file__).parent
PROGRAMS = int(os.environ.get("WEFT_HOSTILE_PROGRAMS", "200"))
FILES = int(os.environ.get("WEFT_HOSTILE_FILES", "1000"))
START = int(os.environ.get("WEFT_HOSTILE_START", "0"))
SHARES = {"wasm": 4, "webgpu": 10}  # of how many programs one runs there
CHUNK = 2_000  # mutants of one process: XLA keeps memory of each program
SILENCE = 120  # seconds that a process may take for its start or for one mutant


def judge(first: int, count: int, worker: str = "mutant_worker.py", *options: str, **environment: str) -> dict:
    """How many mutants were refused, read and run; fails with what is wrong with how they are treated."""
    problems, counts, at = [], {}, first
    process = subprocess.Popen(
        [sys.executable, str(HERE / worker), str(first), str(count), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # XLA as a host runs it
        env={**os.environ, "JAX_NUM_CPU_DEVICES": "1", "XLA_FLAGS": "", **environment},
    )
    noise: list[str] = []
    reader = threading.Thread(target=lambda: noise.append(process.stderr.read()), daemon=True)
    reader.start()
    watchdog = threading.Timer(SILENCE, process.kill)
    watchdog.start()
    for line in process.stdout:
        watchdog.cancel()
        watchdog = threading.Timer(SILENCE, process.kill)
        watchdog.start()
        if line.strip().isdigit():
            at = int(line)
        elif "counts" in (found := json.loads(line)):
            counts = found["counts"]
        else:
            problems.append(f"{found.pop('seed')}: {found.pop('kind')}: " + "\n".join(map(str, found.values())))
    watchdog.cancel()
    if process.wait() or not counts:
        reader.join(10)
        problems.append(
            f"{at}: the process ended with {process.returncode}, or was ended after {SILENCE} s without a"
            f" word\n{''.join(noise)[-3000:]}"
        )
    assert not problems, "\n\n".join(problems[:10])
    return counts


def chunks(most: int) -> list[tuple[int, int]]:
    return [(first, min(CHUNK, START + most - first)) for first in range(START, START + most, CHUNK)]


@pytest.mark.parametrize("first,count", chunks(PROGRAMS))
def test_programs_are_refused_or_right(first, count):
    counts = judge(first, count)
    assert counts["refused"] > 0 and counts["ran"] > 0  # the mutations are neither all nonsense nor all harmless


@pytest.mark.parametrize(
    "platform,first,count",
    [(name, *chunk) for name in under_test(*SHARES) for chunk in chunks(PROGRAMS // SHARES[name])],
)
def test_programs_that_pages_read_are_refused_or_right(platform, first, count):
    """Compiled by ourselves: nothing traps, writes beside its buffers or computes another number."""
    need(platform)
    counts = judge(first, count, "mutant_worker.py", platform)
    assert counts["refused"] > 0 and counts["ran"] > 0


@pytest.mark.parametrize("first,count", chunks(FILES))
def test_files_and_frames_are_refused_or_right(first, count):
    """Of exported programs, with a check sum that fits, and of the wire."""
    counts = judge(first, count, "mutant_worker.py", "files")
    assert counts["refused"] > 0 and counts["read"] > 0 and counts["ran"] > 0


def test_arrays_are_refused_or_right():
    """Files of arrays where NumPy is not there to read them."""
    counts = judge(START, FILES, "mutant_arrays.py", WEFT_NUMPY="0")
    assert counts["refused"] > 0 and counts["read"] > 0
