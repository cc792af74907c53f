"""Accelerator hosts in processes of their own."""

from __future__ import annotations

import asyncio
import contextlib
import re
import subprocess
import sys
import threading

import pytest
import weft
import weft.remote

TOKEN = "sesame"


class RunningHost:
    def __init__(self, process, url: str, log):
        self.process, self.url, self.log = process, url, log

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
                *platform,
                *options,
            ],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
        try:
            line = process.stdout.readline()
            found = re.search(r"ws://[\d.:]+", line)
            assert found, (line, log.read_text())
            yield RunningHost(process, found[0], log)
            assert process.poll() is None, f"the host has ended: {log.read_text()}"
        finally:
            process.terminate()
            process.wait(20)
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
    """A host in this process: for what a test must reach into."""
    from weft_native.host.limits import Limits
    from weft_native.host.server import Host

    made = Host(weft.devices(platform), TOKEN, Limits(**limits))
    ready, loop = threading.Event(), asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve():
        server = await made.serve("127.0.0.1", 0)
        watcher = asyncio.ensure_future(made.watch())
        made.url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ready.set()
        await stop.wait()
        watcher.cancel()
        await made.stop(server)

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    assert ready.wait(20)
    try:
        yield made
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)
        loop.close()
