"""What the process of a session may not do, tried in a process that is enclosed."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is Linux's")

REFUSED = {
    "a file of the machine": "open('/etc/passwd')",
    "a file for writing": "open('/tmp/weft-sandbox', 'w')",
    "a folder": "os.listdir('/tmp')",
    "a new folder": "os.mkdir('/tmp/weft-sandbox')",
    "removing a file": "os.unlink('/etc/hostname')",
    "a module that is changed": "open(os.__file__, 'r+')",
    "a socket": "socket.socket()",
    "a local socket": "socket.socket(socket.AF_UNIX)",
    "a process": "os.fork()",
    "a program": "os.execv('/bin/true', ['true'])",
    "a signal to another process": "os.kill(os.getppid(), 0)",
    "a higher limit": "resource.setrlimit(resource.RLIMIT_DATA, (1 << 40, 1 << 40))",
    "another user": "os.setuid(0)",
    "the memory of another": "open(f'/proc/{os.getppid()}/mem', 'rb')",
    "the environment of another": "open(f'/proc/{os.getppid()}/environ', 'rb')",
}
ALLOWED = {
    "a module": "import wave, colorsys",
    "a thread": "threading.Thread(target=print).start()",
    "a local pair of sockets": "socket.socketpair()",
    "memory": "bytearray(32 << 20)",
    "ending by itself": "os.kill(os.getpid(), 0)",
}


def enclosed(line: str, before: str = "") -> str:
    code = f"""
import os, resource, socket, sys, threading
from weft_native.host import sandbox
{before}
sandbox.enclose(64 << 20)
try:
    {line}
    print("done")
except (OSError, MemoryError, ValueError, ImportError) as e:
    print("refused", type(e).__name__, e)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().split("\n")[-1]


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    assert enclosed(REFUSED[case]).startswith("refused")


@pytest.mark.parametrize("case", ALLOWED)
def test_what_is_allowed(case):
    assert enclosed(ALLOWED[case]) == "done"


def test_memory_has_a_limit():
    assert enclosed("bytearray(1 << 30)").startswith("refused MemoryError")


def test_what_was_there_before_takes_nothing_of_the_limit():
    before = "kept = bytearray(700 << 20)"
    assert enclosed("bytearray(32 << 20)", before) == "done"
    assert enclosed("bytearray(1 << 30)", before).startswith("refused MemoryError")
