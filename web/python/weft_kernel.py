"""Runs programs for the page: called by its worker, never by users."""

import ast
import asyncio
import gc
import linecache
import os
import signal
import sys
import time
import traceback
import types
from json import dumps, loads  # imported by themselves, since a program may patch its json
from typing import Any

from pyodide.code import CodeRunner
from pyodide.ffi import JsException, can_run_sync

import weft_display
import weft_jax
import weft_packages
import weft_record
import weft_state

_session = None  # of the host in use
_modules: dict[str, types.ModuleType] = {}  # the __main__ of each session since the last fresh run
_task: asyncio.Task | None = None  # the program, while it runs
_stopped = False  # whether the page has asked for the end of this run
_files: set[str] = set()  # the file names of the sources that this program is made of


def warm_up() -> str:
    """Imports the language, so that the first run does not wait for it; returns a JSON description of what there is."""
    import weft
    import weft.numpy  # noqa: F401

    _report_timings()
    _offer_exports()
    _take_notes()
    weft_display.install()
    weft_jax.install()
    time.sleep = _sleep
    signal.signal(signal.SIGINT, _interrupted)
    os.environ["MPLBACKEND"] = "module://weft_matplotlib"
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)
    python = ".".join(map(str, sys.version_info[:3]))
    weft_state.remember()
    gc.freeze()  # a collection at the start of each run then looks only at objects of programs
    return dumps({"python": python, "weft": getattr(weft, "__version__", ""), "canWait": can_run_sync()})


def _interrupted(number: int, frame: types.FrameType | None) -> None:
    """Ends the program. Where the event loop runs something of its own, while the program waits, the interrupt is kept
    for later: a callback that did not end would leave the program waiting for ever.
    """
    while frame is not None:
        if frame.f_code.co_filename in _files:
            raise KeyboardInterrupt
        frame = frame.f_back
    if _task is not None:
        import _weft_page

        _weft_page.interruptAgain()


_sleep_blind = time.sleep


def _sleep(seconds: float, /) -> None:
    """Sleeps as time.sleep does, in parts, between which it can be stopped."""
    end = time.monotonic() + seconds
    _sleep_blind(min(seconds, 0.05))
    while not _stopped and (left := end - time.monotonic()) > 0:
        _sleep_blind(min(left, 0.05))
    if _stopped:
        raise KeyboardInterrupt


def _report_timings() -> None:
    """Tells the page how long tracing and compiling take; what happens within a trace belongs to it."""
    try:
        from weft.base import monitoring
    except ImportError:
        return
    import _weft_page

    phases = {monitoring.TRACE: "trace", monitoring.COMPILE: "compile"}
    inner: list[tuple[float, str, float]] = []  # spans that have ended, and may lie within a trace that has not

    def listen(event: str, seconds: float, **_) -> None:
        if event == monitoring.ON_HOST:  # beside what this program does meanwhile
            _weft_page.timing("host", 1e3 * seconds)
            return
        phase = phases.get(event)
        if phase is None:
            return
        start = time.perf_counter() - seconds
        while inner and inner[-1][0] >= start:
            _, earlier, spent = inner.pop()
            _weft_page.timing(earlier, -1e3 * spent)
        inner.append((start, phase, seconds))
        _weft_page.timing(phase, 1e3 * seconds)

    monitoring.register_event_duration_secs_listener(listen)


def _offer_exports() -> None:
    """Offers each program that `weft.export.web` writes as one file: a page's folders end with it."""
    try:
        from weft import monitoring
    except ImportError:
        return

    def listen(event: str, **kwargs: Any) -> None:
        if event == "/weft/export/web":
            weft_display.offer_zip(str(kwargs["program"]), str(kwargs["files"]).splitlines())

    monitoring.register_event_listener(listen)


def _take_notes() -> None:
    """Notes what programs compile and run, for the inspector."""
    try:
        import weft.runtime.observers  # noqa: F401
    except ImportError:
        return
    weft_record.notes.install()


def _choose(backend: str, url: str, token: str, x64: bool) -> None:
    """Makes `backend` the platform of the next program, connecting to the host first if it is "remote"."""
    global _session
    import weft

    if backend == "remote" and not _connected(url, token):
        import _weft_page
        import weft.remote

        started = time.perf_counter()
        if _session is not None:
            _session.close()
            _session = None
        _session = weft.remote.connect(url, token=token)
        _weft_page.timing("connect", 1e3 * (time.perf_counter() - started))
    weft.config.update("jax_platforms", backend)
    if x64 != bool(weft.config.values.get("jax_enable_x64")):
        weft.config.update("jax_enable_x64", x64)


def _connected(url: str, token: str) -> bool:
    return _session is not None and _session.failure is None and (_session.url, _session.token) == (url, token)


def _only_user_frames(error: traceback.TracebackException) -> None:
    """Drops every frame outside of the program, along the whole chain of causes."""
    seen = set()
    pending = [error]
    while pending:
        item = pending.pop()
        if item is None or id(item) in seen:
            continue
        seen.add(id(item))
        item.stack = traceback.StackSummary.from_list([frame for frame in item.stack if frame.filename in _files])
        pending += [item.__cause__, item.__context__, *(item.exceptions or [])]


def _from_first_user_frame(error: traceback.TracebackException) -> None:
    """Drops the page's own frames, which come before the program's first."""
    frames = list(error.stack)
    first = next((i for i, frame in enumerate(frames) if frame.filename in _files), len(frames))
    error.stack = traceback.StackSummary.from_list(frames[first:])


def describe_error(error: BaseException, filename: str) -> dict:
    """The parts of an exception that the page shows: type, class, message, the line of `filename`, and the traceback
    short and in full.
    """
    short = traceback.TracebackException.from_exception(error)
    line = next((frame.lineno for frame in reversed(short.stack) if frame.filename == filename), None)
    info = getattr(error, "source_info", None)  # set by an operation that failed elsewhere, or later
    if getattr(info, "file", None) == filename:
        line = info.line
    column = None
    if isinstance(error, SyntaxError) and error.filename == filename:
        line, column = error.lineno, error.offset
    _only_user_frames(short)
    full = traceback.TracebackException.from_exception(error)
    _from_first_user_frame(full)
    short_text, full_text = "".join(short.format()), "".join(full.format())
    return {
        # An error of the page's JavaScript side carries its own name.
        "type": error.name if isinstance(error, JsException) else type(error).__name__,
        "class": f"{type(error).__module__}.{type(error).__qualname__}",  # by which the documentation knows it
        "message": error.message if isinstance(error, JsException) else str(error),
        "line": line,
        "column": column,
        "short": short_text,
        "full": full_text if full_text != short_text else None,
    }


def _begin(fresh: bool, session: str) -> types.ModuleType:
    """The module that the next run executes in: that of its session, or a new one. A fresh run ends all sessions, and
    finds the state that Python had when it was ready.
    """
    if fresh or not _modules:
        for module in _modules.values():
            module.__dict__.clear()
        _modules.clear()
        weft_state.restore(_files)
        weft_display.forget()
        _files.clear()
        gc.collect()
    if session not in _modules:
        _modules[session] = types.ModuleType("__main__")
    sys.modules["__main__"] = _modules[session]
    return _modules[session]


async def _run(source: str, filename: str, results: str, module: types.ModuleType) -> BaseException | None:
    """Runs a program; returns how it ended. Nothing is raised: the event loop would take an interrupt for its own."""
    try:
        source, _ = weft_packages.without_pip(source, filename)
        runner = CodeRunner(source, filename=filename, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        value = await runner.compile().run_async(module.__dict__)
        if value is not None:
            module.__dict__["_"] = value
            if results == "rich":
                weft_display.display(value)
            elif not weft_display.shows_itself(value):
                print(repr(value))
        if _session is not None:
            await _session.reported()
    except BaseException as error:
        return error
    return None


async def execute(request: str) -> str:
    """Runs the source of a request (JSON, `ExecuteMessage` of protocol.ts) as `__main__`.

    Returns:
        How it ended, as JSON (`Outcome`). The value of a last expression is shown, as an interactive interpreter does.
    """
    global _task, _stopped
    asked: dict[str, Any] = loads(request)
    source, filename, options = asked["source"], asked["filename"], asked["options"]
    outcome: dict = {"status": "ok"}
    _stopped = False
    try:
        weft_record.notes.begin(asked["fresh"], asked["options"].get("inspected", False))
        module = _begin(asked["fresh"], asked["session"])
        _files.add(filename)
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        _choose(options["backend"], options["url"], options["token"], options["x64"])
        _task = asyncio.ensure_future(_run(source, filename, asked["results"], module))
        outcome = _outcome(await _task, filename)
    except BaseException as error:
        outcome = _outcome(error, filename)
    finally:
        _task, _stopped = None, False  # handlers of widgets run on
        weft_record.notes.end()
        _finish()
    return dumps(outcome)


def _outcome(error: BaseException | None, filename: str) -> dict:
    ended = error is None or isinstance(error, SystemExit) and error.code in (None, 0)
    if ended:
        return {"status": "ok"}
    if isinstance(error, KeyboardInterrupt) or _stopped and isinstance(error, asyncio.CancelledError):
        return {"status": "stopped"}
    return {"status": "error", "error": describe_error(error, filename)}


def _finish() -> None:
    """Ends tasks that the program left running, and shows pending output."""
    try:
        plot = sys.modules.get("weft.plot")
        if plot is not None:
            plot.flush()
        figures: Any = sys.modules.get("weft_matplotlib")
        if figures is not None:
            figures.show()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def cancel() -> None:
    """Ends a program that awaits something: called by the worker when the page stops it, while Python is suspended. One
    that waits within a function is interrupted when it goes on.
    """
    global _stopped
    _stopped = True
    if _task is not None:
        _task.cancel()


def answer(topic: str, about: str, session: str) -> str:
    """Answers a question of the editor about the programs of a session, in JSON."""
    import weft_intelligence

    return weft_intelligence.answer(topic, about, _modules[session].__dict__ if session in _modules else {})


def inspect(topic: str, about: str) -> str:
    """Answers a question of the inspector about the last run, in JSON. It may wait for a device."""
    import weft_inspect

    return weft_inspect.answer(topic, about)
