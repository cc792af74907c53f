"""What the doctor asks of a machine. Tests ask another one."""

from __future__ import annotations

import glob
import importlib.metadata
import importlib.util
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import NamedTuple, Protocol


class Ran(NamedTuple):
    """The end of a command."""

    status: int | None  # negative: minus the signal that ended it; None: it was ended because its time was over
    out: str
    err: str


class Machine(Protocol):
    """A machine, and the Python on it."""

    system: str  # as sys.platform
    processor: str  # as platform.machine()
    cores: int
    python: str  # its version
    executable: str
    environment: Mapping[str, str]

    def version(self, distribution: str) -> str | None:
        """The version of an installed distribution."""

    def has(self, module: str) -> bool:
        """Whether Python would find a module; it is not imported."""

    def read(self, path: str) -> str | None:
        """The text of a file, or None."""

    def matching(self, pattern: str) -> list[str]:
        """The files that match a pattern of `glob`."""

    def run(self, *command: str, seconds: float) -> Ran | None:
        """Runs a command to its end, or ends it and what it has started after this time. None: there is none."""


class Here:
    """The machine on which this runs."""

    def __init__(self) -> None:
        self.system, self.processor = sys.platform, platform.machine()
        self.cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.python, self.executable = platform.python_version(), sys.executable
        self.environment: Mapping[str, str] = os.environ

    def version(self, distribution: str) -> str | None:
        try:
            return importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            return None

    def has(self, module: str) -> bool:
        try:
            return importlib.util.find_spec(module) is not None
        except (ImportError, ValueError):  # its package is not there, or broken
            return False

    def read(self, path: str) -> str | None:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                return file.read(1 << 16)
        except OSError:
            return None

    def matching(self, pattern: str) -> list[str]:
        return sorted(glob.glob(pattern))

    def run(self, *command: str, seconds: float) -> Ran | None:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,  # so that what it starts ends with it
            )
        except OSError:
            return None
        try:
            out, err = process.communicate(timeout=seconds)
            return Ran(process.returncode, out, err)
        except subprocess.TimeoutExpired:
            return Ran(None, *_ended(process))
        except BaseException:  # Ctrl-C
            _ended(process)
            raise


def _ended(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Ends a process with those that it has started; what it had printed."""
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    return process.communicate()
