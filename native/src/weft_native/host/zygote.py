"""The process from which workers are forked: it has imported what they need, and has one thread.

The front starts it as `python -P -m weft_native.host.zygote DESCRIPTOR OPTIONS`.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import selectors
import signal
import socket
import sys
import threading

# What workers would import at their first program: it is shared, and under the sandbox there is less to read.
import jaxlib.lapack  # noqa: F401
import scipy.linalg  # noqa: F401
import weft.export  # noqa: F401
import weft.numpy.fft  # noqa: F401
import weft_native.backend  # noqa: F401
import weft_native.lower.module  # noqa: F401
from jaxlib.mlir.dialects import stablehlo as _stablehlo  # noqa: F401
from jaxlib.mlir.passmanager import PassManager as _PassManager  # noqa: F401
from weft.effects import debug as _debug  # noqa: F401
from weft.base import source_info
from weft.base.config import config
from weft.base.errors import BackendError
from weft.runtime import distributed
from weft.runtime.device import backend_for, get_backend

from .. import cache
from .control import Channel, Chosen, Closed, Exited, Fork, Forked
from .options import Options
from .worker import ForkedWorker

JOIN_SECONDS = 50  # for which a worker waits for those of other hosts
WORDS = 2000  # the last bytes that a worker wrote to stderr


class Zygote:
    """Forks workers on request, and tells how they ended."""

    def __init__(self, channel: Channel, options: Options):
        self.channel, self.options = channel, options
        self.workers: dict[int, tuple[int, int]] = {}  # by process: the worker's number, and where its stderr goes

    def serve(self) -> None:
        """Until the front is gone; its workers are killed with this process."""
        reader, writer = socket.socketpair()
        for end in (reader, writer):
            end.setblocking(False)
        signal.set_wakeup_fd(writer.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # Ctrl-C in a terminal and the stop of a service manager are for the front, which tells the clients first.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        gc.freeze()  # what is here now is shared with the workers, as long as nothing writes to it
        with selectors.DefaultSelector() as selector:
            selector.register(self.channel.socket, selectors.EVENT_READ)
            selector.register(reader, selectors.EVENT_READ)
            try:
                while True:
                    for key, _ in selector.select():
                        if key.fileobj is reader:
                            reader.recv(4096)
                        else:
                            for message in self.channel.receive(take_descriptors=True):
                                if isinstance(message, Fork):
                                    self._fork(message, self.channel.descriptors.pop(0))
                    self._reap()
            except Closed:
                pass
        signal.set_wakeup_fd(-1)  # workers end after this, and their signals find the socket closed

    def _fork(self, message: Fork, descriptor: int) -> None:
        words = os.memfd_create("stderr")
        process = os.fork()
        if not process:
            os.dup2(words, 2)
            os.close(words)
            self.channel.close()
            run(descriptor, self.options, message)
        os.close(descriptor)
        self.workers[process] = message.number, words
        self.channel.send(Forked(message.number, process))

    def _reap(self) -> None:
        while self.workers:
            process, status, used = os.wait4(-1, os.WNOHANG)
            if not process:
                return
            number, words = self.workers.pop(process)
            size = os.fstat(words).st_size
            said = os.pread(words, WORDS, max(0, size - WORDS)).decode("utf-8", "replace")
            os.close(words)
            code = os.waitstatus_to_exitcode(status)
            processor = int(1e6 * (used.ru_utime + used.ru_stime))
            self.channel.send(Exited(number, max(code, 0), max(-code, 0), said, processor))


def run(descriptor: int, options: Options, message: Fork) -> None:
    """The life of a worker's process."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if message.enclosed:
            _enclose(options)
        if options.coordinator is not None:
            distributed.initialize(
                options.coordinator, options.processes, options.process, initialization_timeout=JOIN_SECONDS
            )
        backend, platform = get_backend(options.platform)
        channel = Channel(socket.socket(fileno=descriptor))
        devices = list(backend.devices(platform))
        ForkedWorker(channel, devices, options.limits, message.alone, options.executables).run()
        code = 0
    except BaseException as e:
        print(f"{type(e).__name__}: {e}", file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def main(arguments: list[str]) -> int:
    descriptor, text = int(arguments[0]), arguments[1]
    options = Options.load(text)
    logging.basicConfig(level=options.log_level.upper())
    if options.platform is not None:
        config.update("jax_platforms", options.platform)
    config.update("jax_enable_compilation_cache", False)  # a worker that is taken over can't change what others run
    source_info.register_exclusion("")  # no line of this process is a user's
    for name in ("cpu", "reference") if options.platform is None else (options.platform,):
        with contextlib.suppress(BackendError):  # the worker will say so
            backend_for(name)
    cache.processor()  # found out once, with what a sandbox refuses
    threads = len(os.listdir("/proc/self/task"))
    if threads > 1 or threading.active_count() > 1:
        raise BackendError(f"a module has started {threads - 1} threads; workers can't be forked from such a process.")
    channel = Channel(socket.socket(fileno=descriptor))
    channel.send(Chosen(options.platform or _best()))
    Zygote(channel, options).serve()
    return 0


def _enclose(options: Options) -> None:
    try:
        from . import sandbox  # its libraries are Linux's

        sandbox.enclose(options.limits.session_bytes + options.limits.compile_bytes)
    except (OSError, RuntimeError, ImportError) as e:
        raise BackendError(
            f"the processes of sessions can't be enclosed on this system: {e}. Install libseccomp 2 on a kernel with"
            " Landlock (5.13), or add --no-sandbox."
        ) from e


def _best() -> str:
    """The platform that a worker would choose; found out in a process of its own, since it makes the devices."""
    reader, writer = os.pipe()
    process = os.fork()
    if not process:
        try:
            backend, platform = get_backend(None)
            os.write(writer, list(backend.devices(platform))[0].platform.encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, encoding="utf-8") as file:
        found = file.read()
    os.waitpid(process, 0)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
