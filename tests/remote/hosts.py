"""Accelerator hosts in processes of their own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest
import weft
import weft.remote

TOKEN = "sesame"


class RunningHost:
    def __init__(self, process, url: str, log):
        self.process, self.url, self.log = process, url, log
        self.may_end = False  # before its test does

    port = property(lambda self: int(self.url.rsplit(":", 1)[1]))

    def connect(self, **options):
        return weft.remote.connect(self.url, **{"token": TOKEN, **options})


@contextlib.contextmanager
def run_host(tmp_path, *options: str):
    """A host on a free port of loopback, with the reference backend unless `options` name another platform."""
    log = tmp_path / "host.log"
    platform = () if "--platform" in options else ("--platform", "reference")
    with open(log, "w") as stderr:
        process = subprocess.Popen(
            [
                sys.executable,
                "-W",
                "ignore",
                "-m",
                "weft_native.host",
                "--port",
                "0",
                "--token",
                TOKEN,
                "--guesses",
                "1000000",
                *platform,
                *options,
            ],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
        try:
            line = process.stdout.readline()
            found = re.search(r"wss?://[\d.:]+", line)
            assert found, (line, log.read_text())
            running = RunningHost(process, found[0], log)
            yield running
            assert running.may_end or process.poll() is None, f"the host has ended: {log.read_text()}"
        finally:
            process.terminate()
            process.wait(60)
            process.stdout.close()


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    with run_host(tmp_path_factory.mktemp("host")) as running:
        yield running


@pytest.fixture
def session(host):
    """A session on the module's host, which is the default platform meanwhile."""
    with host.connect(default=True) as opened:
        yield opened


@contextlib.contextmanager
def host_here(platform: str = "reference", **limits):
    """A host in this process, with its worker in a thread: for what a test must reach into."""
    from weft_native.host.access import Gate
    from weft_native.host.front import Front
    from weft_native.host.limits import Limits
    from weft_native.host.workers import ThreadLauncher

    granted = Limits(**limits)
    launcher = ThreadLauncher(weft.devices(platform), granted)
    ready, loop = threading.Event(), asyncio.new_event_loop()
    stop, urls = asyncio.Event(), []

    async def serve():
        front = Front(Gate(TOKEN, guesses=10**6), launcher, "thread", granted)
        address, port = await front.start("127.0.0.1", 0)
        urls.append(f"ws://{address}:{port}")
        ready.set()
        await stop.wait()
        await front.stop()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    assert ready.wait(60)
    made = launcher.worker
    made.url = urls[0]
    try:
        yield made
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)
        loop.close()


def lives(process: int) -> bool:
    """Whether a process has not ended."""
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@contextlib.contextmanager
def interruptible():
    """SIGINT raises KeyboardInterrupt, also in a process that was started in the background, where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def becomes(true, seconds: float = 20) -> bool:
    """Whether `true()` holds within so many seconds."""
    until = time.monotonic() + seconds
    while not (held := bool(true())) and time.monotonic() < until:
        time.sleep(0.01)
    return held


def resident(process: int) -> int:
    """The bytes of a process that are in memory."""
    with open(f"/proc/{process}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
