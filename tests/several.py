"""Programs that tests start as several processes on this machine."""

import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time

from weft_native import run

# Libraries of C++ write to the descriptor of stdout, and not always whole lines: gloo's threads say how many peers they
# found. That goes to stderr here, so that what a program prints is what a test reads.
STDOUT = """
import os, sys
sys.stdout = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)
"""

JOIN = (
    STDOUT
    + """
import numpy as np
import weft
weft.distributed.initialize(initialization_timeout=60, shutdown_timeout_seconds=60)
import weft.numpy as jnp
from weft.experimental import multihost_utils as mhu
me, count = weft.process_index(), weft.process_count()
mesh = weft.make_mesh((weft.device_count(),), ("x",))
spread, copied = weft.NamedSharding(mesh, weft.P("x")), weft.NamedSharding(mesh, weft.P())

def fails(error, match, f):
    try:
        f()
    except error as e:
        assert match in str(e), e
    else:
        raise AssertionError(f"nothing raised {match!r}")
"""
)


def written(folder: pathlib.Path, source: str, before: str = JOIN) -> pathlib.Path:
    """A program in a file: `source` after what joins the processes."""
    path = folder / "program.py"
    path.write_text(before + textwrap.dedent(source))
    return path


def weft_run(*arguments, timeout: float = 240, **variables: str) -> subprocess.CompletedProcess:
    """`weft-run` with these arguments, to its end."""
    return subprocess.run(
        [sys.executable, "-m", "weft_native.run", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **variables},
    )


def succeeds(processes: int, path: pathlib.Path, *arguments, devices: int = 2) -> list[list[str]]:
    """The lines that each process of a program printed."""
    done = weft_run("-n", processes, "--devices", devices, path, *arguments)
    assert done.returncode == 0, done.stderr[-4000:]
    return [[line[4:] for line in done.stdout.splitlines() if line.startswith(f"[{i}]")] for i in range(processes)]


class Alone:
    """Processes that nobody watches: as on several machines."""

    def __init__(self, processes: int, path: pathlib.Path, *arguments):
        port = run.free_port()
        environments = [run.environment(os.environ, i, processes, port, 1, "cpu") for i in range(processes)]
        self.started = [
            subprocess.Popen(
                [sys.executable, str(path), *map(str, arguments)],
                env=env,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for env in environments
        ]

    def __enter__(self) -> "Alone":
        return self

    def __exit__(self, *exc) -> None:
        for process in self.started:
            process.kill()
            process.communicate()

    def wait_for(self, i: int, text: str) -> None:
        """Waits until a process has printed a line."""
        for line in self.started[i].stdout:
            if line.strip() == text:
                return
        raise AssertionError(f"process {i} ended: {self.started[i].stderr.read()[-2000:]}")

    def kill(self, i: int) -> None:
        self.started[i].send_signal(signal.SIGKILL)

    def end_of(self, i: int, seconds: float) -> tuple[int, str, float]:
        """(exit code, what it wrote to stderr, after how many seconds) of a process that ends by itself."""
        before = time.monotonic()
        _, err = self.started[i].communicate(timeout=seconds)
        return self.started[i].returncode, err, time.monotonic() - before
