"""What a number of users needs: hosts, processors, memory, proxies. A simulation with the figures of docs/scaling.md.

    python bench/scaling.py [--users 10 1000 100000] [--cores 16] [--memory 64] [--think 20] [--work 0.3] …
    python bench/scaling.py measure

The first finds how many sessions a host can have, and then simulates all hosts at once, of which one fails. Prints a
table. The second prints what a session takes of this machine, and what HAProxy adds: the defaults of the first.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import math
import os
import pathlib
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import simpy
import weft
import weft.remote


@dataclass(frozen=True)
class Load:
    """What users do, which nothing here measures."""

    share: float = 0.1  # of all users who are connected in the busiest hour
    think: float = 20.0  # seconds between the answer to one run of a program and the next run
    stay: float = 1800.0  # seconds for which one is connected
    work: float = 0.3  # mean seconds of one core that a run computes; its logarithm is normal
    spread: float = 1.5  # standard deviation of that logarithm
    calls: float = 20.0  # of a run, whose costs at the host come to its work
    fresh: float = 0.1  # of runs, whose program is new
    arrays: float = 256.0  # MiB that a session holds
    requests: float = 30.0  # seconds between two requests of a user of published programs


@dataclass(frozen=True)
class Machine:
    """A host, and what it was measured to take; see `measure` and docs/scaling.md."""

    cores: int = 16
    memory: float = 64.0  # GiB
    begin: float = 0.12  # seconds of a core in which a session begins
    process: float = 33.0  # MiB of a session's process
    call: float = 200e-6  # seconds of a core that a call takes beside its work
    compile: float = 0.065  # seconds of a core for a small new program
    proxied: float = 40e-6  # seconds of a core of the proxy that a call and its answer take
    answers: float = 250.0  # requests a second that one core answers, in batches


LATE = 0.1  # seconds for which a run in a hundred may wait for a core
FILL = 0.7  # of what a host answers in batches, which it is given
GRACE = 3.0  # seconds until the client of a killed host knows, and connects again
CONNECTIONS = 20000  # of one proxy, as deploy/haproxy.cfg allows


class Host:
    """One of those in a simulation."""

    def __init__(self, clock: simpy.Environment, cores: int):
        self.cores, self.sessions, self.up = simpy.Resource(clock, cores), 0, True


class Result(NamedTuple):
    """What users have seen."""

    waits: np.ndarray  # (when a run was asked for, the seconds that it waited), one row each
    lost: int  # sessions, with a host that failed
    uneven: float  # the most sessions that one host had while all were there, over the mean
    busy: float  # cores of all hosts, on average


def simulate(
    load: Load, machine: Machine, users: int, hosts: int, seconds: float, fails: float | None = None, seed: int = 0
) -> Result:
    """Users who are all connected, on hosts that get sessions by least connections. At `fails` seconds one ends."""
    clock, random = simpy.Environment(), np.random.default_rng(seed)
    all_hosts = [Host(clock, machine.cores) for _ in range(hosts)]
    waits: list[tuple[float, float]] = []
    lost = 0
    most = spent = 0.0
    mean = math.log(load.work) - load.spread**2 / 2

    def computing(host: Host, work: float) -> Iterator[Any]:
        nonlocal spent
        asked = clock.now
        with host.cores.request() as turn:
            yield turn
            waits.append((asked, clock.now - asked))
            yield clock.timeout(work)
            spent += work

    def user() -> Iterator[Any]:
        nonlocal lost, most
        yield clock.timeout(random.uniform(0, load.think))
        left = random.uniform(0, load.stay)  # as if it had gone on for long
        while True:
            host = min((h for h in all_hosts if h.up), key=lambda h: h.sessions)
            host.sessions += 1
            if all(h.up for h in all_hosts) and clock.now > load.think:  # all users have come
                most = max(most, host.sessions * hosts / users)
            until = clock.now + left
            yield from computing(host, machine.begin)
            while host.up and clock.now < until:
                yield clock.timeout(random.exponential(load.think))
                if host.up:
                    work = random.lognormal(mean, load.spread) + load.calls * machine.call
                    yield from computing(host, work + machine.compile * (random.random() < load.fresh))
            host.sessions -= 1
            if not host.up:
                lost += 1
                yield clock.timeout(random.uniform(0, GRACE))
            left = random.exponential(load.stay)

    def failing() -> Iterator[Any]:
        yield clock.timeout(fails)
        all_hosts[0].up = False

    for _ in range(users):
        clock.process(user())
    if fails is not None:
        clock.process(failing())
    clock.run(seconds)
    return Result(np.array(waits), lost, most, spent / seconds)


def late(result: Result, since: float, until: float = math.inf) -> float:
    """The wait that one run in a hundred exceeds, of those that were asked for in some time."""
    at, waited = result.waits.T
    return float(np.percentile(waited[(at >= since) & (at < until)], 99))


def sessions_of(load: Load, machine: Machine) -> tuple[int, str]:
    """How many sessions one host can have, and what bounds them."""
    room = int(0.9 * machine.memory * 1024 / (machine.process + load.arrays))
    low, high = 1, room + 1
    while high - low > max(1, low // 50):
        middle = (low + high) // 2
        fits = late(simulate(load, machine, middle, 1, 1500), 300) <= LATE
        low, high = (middle, high) if fits else (low, middle)
    return low, "memory" if high > room else "processors"


class Plan(NamedTuple):
    """What some users need."""

    users: int
    connected: int
    hosts: int
    spare: int
    usual: float  # the wait that one run in a hundred exceeds
    failed: float  # in the two minutes after one host has failed
    lost: int
    uneven: float
    requests: float  # a second, for published programs
    answering: int  # hosts for them
    proxies: int
    proxying: float  # cores of them all, for the calls of sessions


def plan(load: Load, machine: Machine, users: int, most: int) -> Plan:
    """Hosts for some users, and one to spare; what becomes of them if that many are there and one fails."""
    connected = max(1, round(users * load.share))
    needed = math.ceil(connected / most)
    result = simulate(load, machine, connected, needed + 1, 1200, fails=900)
    asked = users * load.share / load.requests
    answering = math.ceil(asked / (FILL * machine.answers * machine.cores))
    proxies = math.ceil(2 * connected / CONNECTIONS)  # users of sessions, and as many of published programs
    usual, failed = late(result, 300, 900), late(result, 900, 1020)
    proxying = connected * load.calls / load.think * machine.proxied
    seen = (usual, failed, result.lost, result.uneven)
    return Plan(users, connected, needed, 1, *seen, asked, answering + 1, proxies + 1, proxying)


# what this machine takes ----------------------------------------------------------------------------------------------


def ticks(process: int) -> float:
    """The processor's seconds of a process and of those that it has started."""
    total = 0.0
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        with open(f"/proc/{process}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        total = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        for child in children(process):
            total += ticks(child)
    return total


def children(process: int) -> list[int]:
    with open(f"/proc/{process}/task/{process}/children") as file:
        return [int(word) for word in file.read().split()]


def shares(process: int) -> float:
    """The MiB of a process and of those that it has started, each page that several have counted in parts."""
    with open(f"/proc/{process}/smaps_rollup") as file:
        (own,) = [int(line.split()[1]) for line in file if line.startswith("Pss:")]
    return own / 1024 + sum(shares(child) for child in children(process))


def measure(count: int = 16, calls: int = 2000) -> None:
    """Prints the figures of `Machine`, and what HAProxy adds to them."""
    sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "tests" / part) for part in ("", "remote")]
    from balanced import TLS, Balanced
    from hosts import run_host

    with contextlib.ExitStack() as stack:
        folders = [pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(3)]
        options = ("--platform", "cpu", "--sessions", "1000")
        host, other = (
            stack.enter_context(run_host(folder, "--name", name, *options))
            for folder, name in zip(folders, ("host-1", "host-2"))
        )
        process = host.process.pid
        first = host.connect()
        first.ping()
        time.sleep(2)  # the spare processes are there
        memory, spent, began = shares(process), ticks(process), time.perf_counter()
        sessions = [host.connect() for _ in range(count)]
        seconds = (time.perf_counter() - began) / count
        step = weft.jit(lambda x: x * 0.5 + 1)
        for session in sessions:
            float(step(weft.device_put(np.ones(1000, np.float32), session.devices()[0]).sum()))
        print(f"a session begins in              {1e3 * seconds:8.1f} ms")
        time.sleep(2)
        print(f"its process's part of a core     {1e3 * (ticks(process) - spent) / count:8.1f} ms")
        print(f"its process's part of the memory {(shares(process) - memory) / count:8.1f} MiB")
        os.environ["SSL_CERT_FILE"] = str(TLS / "certificate.pem")
        balanced = Balanced(folders[2], {"host-1": host.port, "host-2": other.port})
        stack.enter_context(balanced.running())
        through = balanced.connect()
        hosts = {"host-1": process, "host-2": other.process.pid}
        for name, session, computes in [
            ("directly", first, process),
            ("by TLS and HAProxy", through, hosts[through.welcome.id.partition("_")[0]]),
        ]:
            x = weft.device_put(np.ones(10, np.float32), session.devices()[0])
            float(step(x)[0])
            spent, proxied, began = ticks(computes), ticks(balanced.process.pid), time.perf_counter()
            for _ in range(calls):
                step(x).block_until_ready()
            took = (time.perf_counter() - began) / calls
            print(f"a call and its answer, {name}: {1e6 * took:.0f} µs; of a core", end=" ")
            print(f"{1e6 * (ticks(computes) - spent) / calls:.0f} µs at the host,", end=" ")
            print(f"{1e6 * (ticks(balanced.process.pid) - proxied) / calls:.0f} µs in the proxy")
        for session in (first, through, *sessions):
            session.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("plan", "measure"), default="plan")
    parser.add_argument("--users", type=int, nargs="+", default=[10, 1000, 100000])
    fields = [*dataclasses.fields(Load), *dataclasses.fields(Machine)]
    for f in fields:
        parser.add_argument(f"--{f.name}", type=type(f.default), default=f.default, metavar="N")
    options = vars(parser.parse_args())
    if options["what"] == "measure":
        measure()
        return
    load, machine = (kind(**{f.name: options[f.name] for f in dataclasses.fields(kind)}) for kind in (Load, Machine))
    most, bound = sessions_of(load, machine)
    busy = simulate(load, machine, most, 1, 1500).busy
    print(f"A host of {machine.cores} cores and {machine.memory:g} GiB has {most} sessions at most, for its {bound}.")
    print(f"They keep {busy:.1f} of the cores busy.\n")
    print("| users | connected | hosts | p99 of waits (s) | after one failed (s) | sessions lost | most/mean |", end="")
    print(" requests/s | hosts for them | proxies | their cores |")
    print("|---" * 11 + "|")
    for users in options["users"]:
        p = plan(load, machine, users, most)
        print(
            f"| {p.users:,} | {p.connected:,} | {p.hosts} + {p.spare} | {p.usual:.3f} | {p.failed:.3f} | {p.lost:,} |"
            f" {p.uneven:.2f} | {p.requests:.1f} | {p.answering - 1} + 1 | {p.proxies - 1} + 1 | {p.proxying:.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
