"""The workers of a host, as the front sees them: started ahead, watched, and ended."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol, TypeAlias

from weft.base.errors import BackendError, WeftError
from weft.runtime.backend import Device
from weft_remote.codec import Message

from . import processor
from .control import Answered, Channel, Chosen, Closed, Exited, Fork, Forked, Up
from .limits import Limits
from .memory import of_host
from .worker import Worker
from .options import Options

log = logging.getLogger("weft.host")
SPARES = 2  # workers that wait for a session
START_SECONDS = 60.0  # in which the first worker must be there
EXIT_SECONDS = 3.0  # in which a worker's process must end after its last session
PAUSE_SECONDS = 1.0  # after a worker that did not come up


# Platforms whose devices each process can have for itself, and whose libraries need nothing that a sandbox refuses.
ENCLOSED = ("cpu", "reference", "")

Exit: TypeAlias = Callable[[int, int, int, str, float], None]


class Peer:
    """A worker, from outside."""

    def __init__(self, number: int, channel: Channel):
        self.number, self.channel = number, channel
        self.pid = 0
        self.sessions: set[str] = set()
        self.silent = 0  # looks of the front since the worker spoke
        self.granted = 0  # bytes that its sessions may use
        self.processor: float | None = None  # seconds of processor time that were counted, once it has had a session
        self.total = 0.0  # of all that it has taken, once it has ended
        self.guest = ""  # the session that it was for, if it was for one alone
        self.up = self.killed = False
        self.broke = False  # it said what no worker says
        self.finished_at: float | None = None  # when its last session ended
        self.answer: asyncio.Future[None] | None = None  # of its device, if it was asked
        self.patience = EXIT_SECONDS  # in which its process must end after that

    def send(self, message: Message, descriptor: int | None = None) -> bool:
        """Whether it could be said: not to a worker that has ended, or does not listen."""
        try:
            self.channel.send(message, descriptor)
            return True
        except (Closed, BlockingIOError):
            return False

    def answered(self) -> None:
        """Its device has answered."""
        if self.answer is not None and not self.answer.done():
            self.answer.set_result(None)

    def lost(self) -> None:
        """It will not answer any more."""
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(BackendError(f"worker {self.number} has ended"))
            self.answer.exception()  # nobody may be waiting


def yield_to_others(process: int, nice: int) -> None:
    """Gives all threads of a process, and those that they start, less of the processors than this process has."""
    least = os.getpriority(os.PRIO_PROCESS, 0) + nice  # 19 at most, as the system has it
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
        for thread in os.listdir(f"/proc/{process}/task"):
            os.setpriority(os.PRIO_PROCESS, int(thread), least)


class Launcher(Protocol):
    """Starts the processes of workers."""

    async def start(self, exited: Exit, forked: Callable[[int, int], None], broken: Callable[[], None]) -> str:
        """Workers can be started after this; `exited(number, code, signal, words, seconds)` and
        `forked(number, pid)` are called, and `broken()` when no more can be started. The platform of the devices.
        """

    def launch(self, number: int, alone: bool, end: Channel) -> None:
        """Starts a worker with this end of a channel, for one session or for all."""

    def stop(self) -> None:
        """Ends all workers."""


class ForkLauncher:
    """Forks workers from a process that has imported what they need."""

    def __init__(self, options: Options):
        self.options = options
        self.process: subprocess.Popen[bytes] | None = None

    async def start(self, exited: Exit, forked: Callable[[int, int], None], broken: Callable[[], None]) -> str:
        self.exited, self.forked, self.broken = exited, forked, broken
        self.loop = asyncio.get_running_loop()
        self.chosen: asyncio.Future[str] = self.loop.create_future()
        self.channel, other = Channel.pair()
        command = [sys.executable, "-P", "-m", "weft_native.host.zygote", str(other.socket.fileno())]
        # Threads of a linear algebra library would outlive no fork.
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [*command, self.options.dump()], pass_fds=[other.socket.fileno()], env=environment, stdin=subprocess.DEVNULL
        )
        other.close()
        self.channel.socket.setblocking(False)
        self.loop.add_reader(self.channel.socket, self._read)
        try:
            async with asyncio.timeout(START_SECONDS):
                self.platform = await self.chosen
        except TimeoutError:
            raise BackendError(f"the process that starts workers was not ready in {START_SECONDS:g} s.") from None
        return self.platform

    def _read(self) -> None:
        try:
            for message in self.channel.receive():
                if isinstance(message, Exited):
                    seconds = message.processor_us / 1e6
                    self.exited(message.number, message.status, message.signal, message.words, seconds)
                elif isinstance(message, Forked):
                    self.forked(message.number, message.pid)
                elif isinstance(message, Chosen):
                    self.chosen.set_result(message.platform)
        except Closed:
            self.loop.remove_reader(self.channel.socket)
            if not self.chosen.done():
                self.chosen.set_exception(BackendError("the process that starts workers has ended; see above."))
            self.broken()

    def launch(self, number: int, alone: bool, end: Channel) -> None:
        enclosed = alone and self.options.sandbox and self.platform in ENCLOSED
        try:
            self.channel.send(Fork(number, alone, enclosed), end.socket.fileno())
        except (Closed, BlockingIOError):
            self.broken()
        end.close()

    def stop(self) -> None:
        if self.process is not None:
            self.loop.remove_reader(self.channel.socket)
            self.channel.close()
            self.process.kill()
            self.process.wait()


class ThreadLauncher:
    """One worker, in a thread of the host's own process: for systems without `fork`, and for tests that reach in."""

    def __init__(self, devices: list[Device], limits: Limits, executables: bool = False):
        self.devices, self.limits, self.executables = devices, limits, executables
        self.worker: Worker | None = None
        self.thread: threading.Thread | None = None

    async def start(self, exited: Exit, forked: Callable[[int, int], None], broken: Callable[[], None]) -> str:
        return str(self.devices[0].platform)

    def launch(self, number: int, alone: bool, end: Channel) -> None:
        memory = of_host(self.limits.total_bytes)
        self.worker = Worker(end, self.devices, self.limits, memory, executables=self.executables)
        self.thread = threading.Thread(target=self.worker.run, name="weft worker", daemon=True)
        self.thread.start()

    def stop(self) -> None:
        if self.thread is not None:
            self.thread.join(5)


class Pool:
    """Workers for sessions: one for each (`alone`), or one for all.

    Args:
        launcher: starts them.
        workers: "session" starts one for each session, "" does so if the devices can be had by several processes.
        receive: called with a worker and each message from it.
        ended: called with a worker that has ended, its exit code, the signal that ended it, and its last words.
        broken: called when no more workers can be started.
        launched: called for each that is started.
    """

    def __init__(
        self,
        launcher: Launcher,
        workers: str,
        receive: Callable[[Peer, Message], None],
        ended: Callable[[Peer, int, int, str], None],
        broken: Callable[[], None],
        launched: Callable[[], None] = lambda: None,
    ):
        self.launcher, self.workers, self.receive, self.ended = launcher, workers, receive, ended
        self.broken, self.launched = broken, launched
        self.alone = False
        self.numbers = itertools.count(1)
        self.peers: dict[int, Peer] = {}
        self.spares: deque[Peer] = deque()
        self.devices: tuple[str, ...] = ()
        self.changed = asyncio.Condition()
        self.failure: str | None = None
        self.stopping = False
        self._tasks: set[asyncio.Task[None]] = set()  # a loop holds them weakly

    async def start(self) -> None:
        """Returns when there is a worker. Raises BackendError with the reason if it can't start."""
        self.loop = asyncio.get_running_loop()
        platform = await self.launcher.start(self._exited, self._forked, self._broken)
        self.alone = self.workers == "session" or self.workers == "" and platform in ENCLOSED
        self._launch()
        try:
            async with asyncio.timeout(START_SECONDS), self.changed:
                await self.changed.wait_for(lambda: self.devices or self.failure is not None)
        except TimeoutError:
            raise BackendError(f"no worker was ready within {START_SECONDS:g} s.") from None
        if self.failure is not None:
            raise BackendError(self.failure)
        self._replenish()

    def _launch(self) -> None:
        number = next(self.numbers)
        mine, other = Channel.pair()
        mine.socket.setblocking(False)
        peer = self.peers[number] = Peer(number, mine)
        self.loop.add_reader(mine.socket, self._read, peer)
        self.launcher.launch(number, self.alone, other)
        self.launched()

    def _replenish(self) -> None:
        wanted = SPARES if self.alone else 1
        waiting = sum(not p.sessions and not p.killed and p.finished_at is None for p in self.peers.values())
        have = waiting if self.alone else len(self.peers)
        for _ in range(wanted - have):
            if not self.stopping:
                self._launch()

    async def waiting(self) -> Peer:
        """A worker that could take a session."""
        async with self.changed:
            await self.changed.wait_for(lambda: self.spares)
            return self.spares[0]

    async def take(self, session: str, seconds: float, nice: int = 0) -> Peer:
        """A worker for a session. Raises TimeoutError if there is none in time."""
        async with asyncio.timeout(seconds), self.changed:
            await self.changed.wait_for(lambda: self.spares)
            peer = self.spares.popleft() if self.alone else self.spares[0]
            peer.sessions.add(session)
            peer.silent = 0
            if self.alone:  # what it has taken before, its session has not
                peer.guest, peer.processor = session, processor.seconds(peer.pid) or 0.0
        if nice and self.alone and peer.pid:
            yield_to_others(peer.pid, nice)
        self._replenish()
        return peer

    async def lend(self, seconds: float, patience: float, nice: int) -> Peer:
        """A worker that has never had a session, and gets none: it does one thing, and is killed if it has not ended
        after so many seconds. Raises TimeoutError if there is none in time.
        """
        async with asyncio.timeout(seconds), self.changed:
            await self.changed.wait_for(lambda: self.spares)
            peer = self.spares.popleft()
            peer.finished_at, peer.patience = time.monotonic(), patience
        if peer.pid:
            yield_to_others(peer.pid, nice)
        self._replenish()
        return peer

    def left(self, peer: Peer, session: str, patience: float = EXIT_SECONDS) -> None:
        """A session is not in a worker any more, which ends within so many seconds if it was there for that one."""
        peer.sessions.discard(session)
        if self.alone and not peer.sessions:
            peer.finished_at, peer.patience = time.monotonic(), patience

    def give_up(self, peer: Peer, session: str) -> None:
        """A worker is not needed for a session after all."""
        self.left(peer, session)
        if self.alone:
            self.kill(peer)

    def kill(self, peer: Peer) -> None:
        peer.killed = True
        if peer.pid:
            try:
                os.kill(peer.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    async def stop(self) -> None:
        self.stopping = True
        for peer in self.peers.values():
            self._close(peer)
        await asyncio.to_thread(self.launcher.stop)

    # what comes from the workers --------------------------------------------------------------------------------------

    def _read(self, peer: Peer) -> bool:
        """Whether it said anything."""
        said = False
        try:
            for message in peer.channel.receive():
                peer.silent, said = 0, True
                if isinstance(message, Up):
                    self._up(peer, message)
                elif isinstance(message, Answered):
                    peer.answered()
                else:
                    self.receive(peer, message)
        except Closed:
            self.loop.remove_reader(peer.channel.socket)
        except Exception as e:  # a worker that has been taken over, or is out of its mind; it must not harm the others
            expected = isinstance(e, WeftError)
            log.warning("worker %d is ended: %s", peer.number, e, exc_info=None if expected else e)
            self.loop.remove_reader(peer.channel.socket)
            peer.broke = True
            self.kill(peer)
        return said

    def _up(self, peer: Peer, message: Up) -> None:
        if not peer.up:
            peer.up = True
            self.devices = message.devices
            self.spares.append(peer)
            self._notify()

    def _notify(self) -> None:
        async def notify() -> None:
            async with self.changed:
                self.changed.notify_all()

        task = self.loop.create_task(notify())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _broken(self) -> None:
        self.failure = "the process that starts workers has ended."
        self._notify()
        if not self.stopping:
            self.broken()

    def _forked(self, number: int, pid: int) -> None:
        peer = self.peers.get(number)
        if peer is not None:
            peer.pid = pid
            if peer.killed:
                self.kill(peer)

    def _exited(self, number: int, code: int, by: int, words: str, seconds: float) -> None:
        peer = self.peers.pop(number, None)
        if peer is None:
            return
        peer.total = seconds
        self._read_rest(peer)
        peer.lost()
        self._close(peer)
        if peer in self.spares:
            self.spares.remove(peer)
        self.ended(peer, code, by, words)
        if peer.up:
            self._replenish()
        elif not self.devices:
            self.failure = words.strip().split("\n")[-1] or f"the worker ended with code {code}, signal {by}."
            self._notify()
        elif not self.stopping:
            log.error("a worker did not come up: %s", words.strip())
            self.loop.call_later(PAUSE_SECONDS, self._replenish)

    def _read_rest(self, peer: Peer) -> None:
        """What a worker said before it ended."""
        while peer.channel.socket.fileno() >= 0 and not peer.killed and self._read(peer):
            pass

    def _close(self, peer: Peer) -> None:
        if peer.channel.socket.fileno() >= 0:
            self.loop.remove_reader(peer.channel.socket)
            peer.channel.close()
