"""Notes of a run, for the page's inspector: each compiled program when it is made, and of each call its begin and end.
`weft_inspect` makes answers of them, between runs.
"""

from __future__ import annotations

import math
import time
import weakref
from collections import deque
from typing import Any, Callable

MOST_EVENTS = 10_000
MOST_PROGRAMS = 500
# Calls of a program that are timed while the inspector is closed; those after them cost nothing.
MOST_CLOSED = 64
# Programs are let go of together, at most this often in seconds: functions must then look them up again.
PAUSE = 0.25

_clock = time.perf_counter


class Record:
    """A compiled program, and the times of its calls in the last run."""

    def __init__(self, number: int, program: Any, phases: dict[str, float], why: list[dict[str, str]]):
        self.number, self.phases, self.why = number, phases, why
        self.calls, self.seconds = 0, 0.0
        self.is_all = True  # whether each call was timed, and not only the first ones
        self.last: list[weakref.ref[Any]] = []  # the arguments of the last timed call
        self.watched: weakref.ref[Watched] | None = None
        # The program leaves the device with the function that holds it, whatever is noted of it here: executables are
        # kept as long as their jaxpr lives, so this is another one.
        copy = type(program.closed)(program.closed.jaxpr.replace(), program.closed.consts)
        self.program = program._replace(closed=copy, executable=None)
        self._executable = weakref.ref(program.executable)

    @property
    def executable(self) -> Any:
        """The compiled program; compiled again if nothing has kept it."""
        from weft.runtime.dispatch import executable_for

        found = self._executable()
        if found is None:
            found = executable_for(self.program.closed, self.program.device, self.program.name)[0]
        return found

    @property
    def is_operation(self) -> bool:
        """Whether the program is a single operation that ran by itself."""
        eqns = self.program.closed.jaxpr.eqns
        return len(eqns) == 1 and eqns[0].primitive.name == self.program.name


class Watched:
    """An executable whose calls are counted and timed, until `release`. Otherwise it is as the executable itself."""

    def __init__(self, executable: Any, record: Record, notes: Notes):
        self._executable = executable
        run, clock, note, last = executable.execute, _clock, notes.calls.append, weakref.ref

        def timed(args: Any) -> Any:
            start = clock()
            outs = run(args)
            end = clock()
            record.calls += 1
            record.seconds += end - start
            record.last = [last(x) for x in args]
            note((record, start, end))
            if record.calls >= MOST_CLOSED and not notes.is_open:
                notes.let_go(self, record, end)
            return outs

        self._run, self._timed = run, timed
        self.execute = timed
        record.watched = weakref.ref(self)

    def watch(self) -> bool:
        """Times calls again; whether it did not."""
        was, self.execute = self.execute, self._timed
        return was is not self._timed

    def release(self) -> None:
        """Lets calls go to the executable itself, once `weft.runtime.jit.forget_calls` was called."""
        self.execute = self._run

    def __getattr__(self, name: str) -> Any:
        return getattr(self._executable, name)


class Notes:
    """The notes of the last run. Times are in seconds of `time.perf_counter`."""

    def __init__(self) -> None:
        self.installed = False
        self.is_open = False  # the inspector, which wants to know of each call
        self.began = self.ended = 0.0
        self._leaving: dict[Record, Watched] = {}  # those that `let_go` has yet to release
        self._left = -math.inf  # when it last did
        self.calls: deque[tuple[Record, float, float]] = deque(maxlen=MOST_EVENTS)
        # (lane, name, begin, end, detail)
        self.spans: deque[tuple[str, str, float, float, str]] = deque(maxlen=MOST_EVENTS)
        self.noted = 0  # spans since the run began
        self.programs: deque[Record] = deque(maxlen=MOST_PROGRAMS)  # of the last run, which it keeps
        self.known: weakref.WeakSet[Record] = weakref.WeakSet()  # and those that something else keeps
        self._made = 0
        self._traced: dict[str, float] = {}  # function -> seconds of its last trace, until its program is there
        self._phases: dict[str, float] = {}  # of the program that is being compiled
        self._why: dict[str, list[dict[str, str]]] = {}  # function -> why it was traced or compiled

    def install(self) -> None:
        """Registers the listeners."""
        from weft.base import monitoring, source_info
        from weft.runtime.observers import observers

        # This file's frames are not the program's: errors and names of lines look past them.
        source_info.register_exclusion(Watched.__init__.__code__.co_filename)

        phases = {monitoring.TRACE: "trace", monitoring.LOWER: "lower", monitoring.COMPILE: "compile"}
        phases[monitoring.LOAD] = "load"

        def listen(event: str, start: float, end: float, **about: Any) -> None:
            if event == monitoring.TRANSFER:
                self._note("transfer", f"to the {about['to']}", end - start, f"{about['bytes']:,} bytes")
            elif event == monitoring.ON_HOST:
                self._compiled_on_host(str(about.get("fun_name", "")), end - start)
            elif (phase := phases.get(event)) is not None:
                self._ended(phase, str(about.get("fun_name", "")), end - start)

        def missed(event: str, **about: Any) -> None:
            if event == monitoring.MISS:
                reasons = self._why.setdefault(about["fun_name"], [])
                reasons.append({name: about[name] for name in ("phase", "where", "why")})
                del reasons[:-MOST_PROGRAMS]

        monitoring.register_event_time_span_listener(listen)
        monitoring.register_event_listener(missed)
        observers.append(self._observe)
        self.installed = True

    def _note(self, lane: str, name: str, seconds: float, detail: str) -> None:
        # the events' own times may be as coarse as a millisecond
        end = _clock()
        self.noted += 1
        self.spans.append((lane, name, end - seconds, end, detail))

    def _ended(self, phase: str, name: str, seconds: float) -> None:
        if phase == "trace":
            self._traced[name] = seconds
        else:
            name = name.removeprefix("jit(").removesuffix(")")
            self._phases[phase] = self._phases.get(phase, 0.0) + seconds
        self._note("trace" if phase == "trace" else "compile", name, seconds, phase)

    def _compiled_on_host(self, name: str, seconds: float) -> None:
        """A host says so later, while the program goes on."""
        for record in self.programs:
            if record.program.name == name and "host" not in record.phases:
                record.phases["host"] = seconds
                break
        self._note("compile", name, seconds, "on the host")

    def _observe(self, program: Any) -> Watched:
        self._made += 1
        phases = {"trace": self._traced.pop(program.name, 0.0), **self._phases}
        self._phases.clear()
        record = Record(self._made, program, phases, self._why.get(program.name, [])[-1:])
        self.programs.append(record)
        self.known.add(record)
        return Watched(program.executable, record, self)

    def let_go(self, watched: Watched, record: Record, now: float) -> None:
        """Ends the watching of a program that was called often, and of those that wait for it."""
        self._leaving[record] = watched
        if now - self._left < PAUSE:
            return
        from weft.runtime.jit import forget_calls

        for each, leaving in self._leaving.items():
            each.is_all = False
            leaving.release()
        self._leaving.clear()
        self._left = now
        forget_calls()

    def _watch_again(self) -> None:
        """Watches the programs that were let go of, and are still there."""
        from weft.runtime.jit import forget_calls

        again = [record.watched() for record in self.known if record.watched is not None]
        if any([watched.watch() for watched in again if watched is not None]):
            forget_calls()

    def begin(self, fresh: bool, is_open: bool = False) -> None:
        """Called when a run begins. A fresh run forgets the ones before. While the inspector is open each call is
        timed, otherwise the first ones of each program.
        """
        if not self.installed:
            return
        self.is_open = is_open
        self._leaving.clear()
        self._watch_again()
        self._traced.clear()
        self._phases.clear()
        if fresh:
            from weft.runtime.explain import forget_functions

            forget_functions()
            self.programs.clear()
            self._why.clear()
        self.calls.clear()
        self.spans.clear()
        self.noted = 0
        for record in list(self.known):
            record.calls, record.seconds, record.is_all, record.last = 0, 0.0, True, []
        self.began = self.ended = _clock()

    def end(self) -> None:
        """Called when a run has ended."""
        self.ended = _clock()

    def kept(self) -> Callable[[], None]:
        """A function that removes the notes made from now on, since programs that answers compile and run do not belong
        to the run.
        """
        queues: tuple[deque[Any], ...] = (self.programs, self.calls, self.spans)
        before, noted = [list(queue) for queue in queues], self.noted
        counts = {record: (record.calls, record.seconds, record.is_all, record.last) for record in self.known}

        def restore() -> None:
            for queue, held in zip(queues, before):
                queue.clear()
                queue.extend(held)
            self.noted = noted
            for record in list(self.known):
                if record in counts:
                    record.calls, record.seconds, record.is_all, record.last = counts[record]
                else:
                    self.known.discard(record)

        return restore


notes = Notes()
