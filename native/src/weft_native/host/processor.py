"""Processor time of the processes of sessions."""

from __future__ import annotations

import os
import sys


def seconds(pid: int) -> float | None:
    """The seconds of processor time that a process has taken, all threads together; None for one that has ended, and
    on systems other than Linux.
    """
    if sys.platform != "linux":
        return None
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()  # the name before may hold anything
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
