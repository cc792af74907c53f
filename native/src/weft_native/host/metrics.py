"""What a host counts, for Prometheus. Labels are names that the host knows: words of clients have no bound."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from weft_remote import errors

from .control import Totals
from .counts import check

disable_created_metrics()  # when each counter was made is of no use to anybody, and a third of the text
CONTENT_TYPE = CONTENT_TYPE_LATEST
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
WAITS = (1, 5, 10, 30, 60, 300, 900, 3600, 14400)  # seconds
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
OTHER = "other"


class Metrics:
    """The metrics of one host."""

    def __init__(self) -> None:
        self.registry = r = CollectorRegistry()
        counter = lambda name, text, *labels: Counter(f"weft_host_{name}", text, labels, registry=r)
        gauge = lambda name, text: Gauge(f"weft_host_{name}", text, registry=r)
        self.sessions = gauge("sessions", "Sessions that are open")
        self.sessions_allowed = gauge("sessions_allowed", "Sessions that may be open at one time")
        self.waiting = gauge("clients_waiting", "Clients that wait for a session, since the host is full")
        self.waiting_allowed = gauge("clients_waiting_allowed", "Clients that may wait for a new session at one time")
        self.memory = gauge("memory_bytes", "Bytes of arrays and programs that all sessions hold")
        self.memory_granted = gauge("memory_granted_bytes", "Bytes that the workers may use now")
        self.memory_allowed = gauge("memory_allowed_bytes", "Bytes that all sessions together may use")
        self.queued = gauge("operations_queued", "Operations that came and have not begun")
        self.workers = gauge("workers", "Processes that have sessions or wait for one")
        self.draining = gauge("draining", "1 while the host takes no new sessions because it is about to stop")
        self.begun: Counter = counter("sessions_begun", "Sessions that have begun")
        self.ended: Counter = counter("sessions_ended", "Sessions that have ended, by the class of the error", "reason")
        self.refusals: Counter = counter("refusals", "Clients that were refused before they were let in", "cause")
        self.started: Counter = counter("workers_started", "Workers that were started")
        self.died: Counter = counter("workers_died", "Workers that were killed or crashed", "how")
        self.calls: Counter = counter("calls", "Calls of compiled programs in sessions")
        self.compilations: Counter = counter("compilations", "Compilations in sessions")
        self.compiling: Counter = counter("compilation_seconds", "Seconds that compilations took")
        self.processor: Counter = counter("processor_seconds", "Seconds of processor time of the processes of sessions")
        self.received: Counter = counter("received_bytes", "Bytes from clients of sessions")
        self.sent: Counter = counter("sent_bytes", "Bytes to clients of sessions")
        self.executable_hits: Counter = counter("executable_hits", "Compilations whose executable was on disk")
        self.executable_misses: Counter = counter("executable_misses", "Compilations whose executable was not there")
        self.executables_stored: Counter = counter(
            "executables_stored", "Executables that were put on disk, or could not be", "well"
        )
        self.executable_bytes = gauge("executable_bytes", "Bytes of executables on disk")
        self.requests: Counter = counter("requests", "Requests for programs by name", "program", "version", "status")
        self.request_seconds = Histogram(
            "weft_host_request_seconds", "Time to answer a request", ("program", "version"), registry=r, buckets=SECONDS
        )
        self.waiting_seconds = Histogram(
            "weft_host_waiting_seconds", "Time that clients waited for a session", ("end",), registry=r, buckets=WAITS
        )
        self.batch_size = Histogram(
            "weft_host_batch_size", "Requests of one call", ("program", "version"), registry=r, buckets=SIZES
        )

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        return generate_latest(self.registry)

    def end(self, reason: str) -> None:
        """A session has ended; the reason may be a worker's word."""
        self.ended.labels(reason if reason == "closed" or errors.is_known(reason) else OTHER).inc()

    def add(self, before: Totals, after: Totals) -> None:
        """What a session has done between two reports. Raises BackendError for what it can't have done."""
        check(before, after)
        self.calls.inc(after.calls - before.calls)
        self.compilations.inc(after.compilations - before.compilations)
        self.compiling.inc((after.compiling_us - before.compiling_us) / 1e6)
        self.received.inc(after.received - before.received)
        self.sent.inc(after.sent - before.sent)

    def answered(self, program: str, version: int, status: int, seconds: float) -> None:
        """A request for a program; "" and 0 stand for one that there is not."""
        self.requests.labels(program, str(version), str(status)).inc()
        self.request_seconds.labels(program, str(version)).observe(seconds)

    def sizes(self, program: str, version: int) -> Callable[[int], None]:
        """To be called with the number of requests of each call of a program."""
        return self.batch_size.labels(program, str(version)).observe
