"""Programs whose structure was changed, as somebody could send them: each is refused in clear words, or runs on XLA and gives what the interpreter gives.

They run in a process of their own, whose end or silence is a failure. WEFT_HOSTILE_PROGRAMS sets how many; WEFT_HOSTILE_START where the seeds begin.
`python tests/remote/mutant_worker.py SEED 1` judges one again.
"""
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import threading

import pytest
from platforms import need

need("cpu")

WORKER = pathlib.Path(__file__).with_name("mutant_worker.py")
COUNT = int(os.environ.get("WEFT_HOSTILE_PROGRAMS", "200"))
START = int(os.environ.get("WEFT_HOSTILE_START", "0"))
CHUNK = 2_000        # mutants of one process: XLA keeps memory of each program
SILENCE = 120        # seconds that a process may take for its start or for one mutant


def judge(first: int, count: int) -> tuple[list[str], dict]:
    """What is wrong with how these mutants are treated, and how many were refused and run."""
    problems, counts, at = [], {}, first
    process = subprocess.Popen([sys.executable, str(WORKER), str(first), str(count)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "JAX_NUM_CPU_DEVICES": "1"})
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
        problems.append(f"{at}: the process ended with {process.returncode}, or was ended after {SILENCE} s without a word\n{''.join(noise)[-3000:]}")
    return problems, counts


@pytest.mark.parametrize("first", range(START, START + COUNT, CHUNK))
def test_mutants_are_refused_or_right(first):
    problems, counts = judge(first, min(CHUNK, START + COUNT - first))
    assert not problems, "\n\n".join(problems[:10])
    assert counts["refused"] > 0 and counts["ran"] > 0      # the mutations are neither all nonsense nor all harmless
