"""`weft-run`: starts a program as several processes on this machine, which `weft.distributed.initialize()` joins.

weft-run -n 4 train.py --steps 100
weft-run -n 2 --devices 4 -m package.module
"""

from __future__ import annotations

import argparse
import collections
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import IO, Any, Mapping, Sequence, TextIO

LAST = 10  # lines of a failed process that are shown again


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="weft-run",
        description="Starts a program as several processes on this machine. Each calls weft.distributed.initialize()"
        " before it uses a device; all devices are then one computation's. Each line of output has the number of its"
        " process in front. When a process fails, the others are ended.",
    )
    parser.add_argument("-n", "--processes", type=int, required=True, metavar="N", help="how many processes")
    parser.add_argument(
        "--devices", type=int, metavar="N", help="CPU devices of each process (default: JAX_NUM_CPU_DEVICES, or 1)"
    )
    parser.add_argument(
        "--platform",
        metavar="NAME",
        help="cpu, or cuda: then each process has the GPU of its number (default: JAX_PLATFORMS, or cpu)",
    )
    parser.add_argument("--port", type=int, help="the port of process 0 on 127.0.0.1 (default: a free one)")
    parser.add_argument(
        "--grace", type=float, default=5.0, metavar="S", help="seconds in which processes end (default: 5)"
    )
    parser.add_argument("-m", dest="module", action="store_true", help="the program is the name of a module")
    parser.add_argument("program", help="a file (.py), a module (-m), or a command")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="arguments of the program")
    found = parser.parse_args(argv)
    for name, value in (("-n", found.processes), ("--devices", found.devices)):
        if value is not None and value < 1:
            parser.error(f"{name} must be at least 1; got {value}.")
    if found.program.endswith(".py") and not found.module and not os.path.isfile(found.program):
        parser.error(f"there is no file {found.program}.")
    return found


def command(program: str, args: Sequence[str], module: bool) -> list[str]:
    """What each process runs."""
    if module:
        return [sys.executable, "-m", program, *args]
    return [sys.executable, program, *args] if program.endswith(".py") else [program, *args]


def environment(
    base: Mapping[str, str], process: int, processes: int, port: int, devices: int | None, platform: str | None
) -> dict[str, str]:
    """The variables of one process."""
    made = {
        **base,
        "JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{port}",
        "JAX_COORDINATOR_BIND_ADDRESS": f"127.0.0.1:{port}",
        "JAX_NUM_PROCESSES": str(processes),
        "JAX_PROCESS_ID": str(process),
        "JAX_PLATFORMS": platform or base.get("JAX_PLATFORMS") or "cpu",
        "PYTHONUNBUFFERED": "1",  # lines come when they are printed, and a killed process loses none
    }
    if devices is not None:
        made["JAX_NUM_CPU_DEVICES"] = str(devices)
    if made["JAX_PLATFORMS"] != "cpu" and "JAX_LOCAL_DEVICE_IDS" not in base:
        made["JAX_LOCAL_DEVICE_IDS"] = str(process)
    return made


class Processes:
    """The running processes: their output, line by line, and their ends."""

    def __init__(self, command: Sequence[str], environments: Sequence[Mapping[str, str]], out: TextIO, err: TextIO):
        self.last: list[collections.deque] = [collections.deque(maxlen=LAST) for _ in environments]
        self.ends: queue.SimpleQueue[int] = queue.SimpleQueue()  # processes, in the order in which they end
        self._lock, self._width = threading.Lock(), len(str(len(environments) - 1))
        # a session of its own for each: Ctrl-C reaches them from here alone, once
        self.started: list[subprocess.Popen[bytes]] = []
        try:
            for env in environments:
                self.started.append(
                    subprocess.Popen(
                        command,
                        env=env,
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE,
                        start_new_session=True,
                    )
                )
        except OSError:
            self.send(signal.SIGKILL)
            raise
        for i, process in enumerate(self.started):
            readers = [
                threading.Thread(target=self._read, args=(i, pipe, sink), daemon=True)
                for pipe, sink in ((process.stdout, out), (process.stderr, err))
            ]
            for reader in readers:
                reader.start()
            threading.Thread(target=self._wait, args=(i, readers), daemon=True).start()

    def _read(self, i: int, pipe: IO[bytes], sink: TextIO) -> None:
        for line in pipe:
            text = line.decode(errors="replace").rstrip("\r\n")
            with self._lock:
                self.last[i].append(text)
                try:
                    print(f"[{i:>{self._width}}] {text}", file=sink, flush=True)
                except BrokenPipeError:  # nobody reads: the processes go on
                    pass

    def _wait(self, i: int, readers: Sequence[threading.Thread]) -> None:
        self.started[i].wait()
        for reader in readers:
            reader.join(1)  # a child of the process may hold its output open
        self.ends.put(i)

    def send(self, number: int) -> None:
        """Sends a signal to all that run, and to what they have started."""
        for process in self.started:
            if process.poll() is None:
                try:
                    os.killpg(process.pid, number)
                except ProcessLookupError:  # it has just ended
                    pass

    def end(self, seconds: float, number: int = signal.SIGTERM) -> None:
        """Ends all: with a signal, and after some seconds without mercy."""
        self.send(number)
        limit = time.monotonic() + seconds
        for process in self.started:
            try:
                process.wait(max(0.0, limit - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.send(signal.SIGKILL)
                process.wait()


def described(code: int) -> str:
    """How a process ended."""
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with code {code}"


def run(found: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    """Runs the processes to their end; the exit code of the first that fails."""
    port = found.port or free_port()
    environments = [
        environment(os.environ, i, found.processes, port, found.devices, found.platform) for i in range(found.processes)
    ]
    say = lambda text: print(f"weft-run: {text}", file=err, flush=True)
    try:
        processes = Processes(command(found.program, found.args, found.module), environments, out, err)
    except OSError as e:
        say(
            f"{found.program!r} can't be started: {e.strerror}. Give a file that ends in .py, -m and a module, or a"
            " command that is in the PATH."
        )
        return 127
    stopped: list[int] = []

    def stop(number: int, frame: Any) -> None:
        stopped.append(number)
        processes.send(number if len(stopped) == 1 else signal.SIGKILL)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        left = found.processes
        told = 0.0
        while left:
            try:
                i = processes.ends.get(timeout=0.2)
            except queue.Empty:
                if stopped:
                    told = told or time.monotonic()
                    if time.monotonic() > told + found.grace:
                        processes.send(signal.SIGKILL)
                continue
            left -= 1
            code = processes.started[i].returncode
            if code and not stopped:
                others = f", and ends the other {left}" if left else ""
                lines = "".join(f"\n  {line}" for line in processes.last[i]) or " none."
                say(f"process {i} of {found.processes} {described(code)}{others}. Its last lines:{lines}")
                processes.end(found.grace)
                return code if code > 0 else 128 - code
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if stopped:
        return 128 + stopped[0]
    return 0


def free_port() -> int:
    """A port that is free now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    return run(_arguments(argv), sys.stdout, sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
