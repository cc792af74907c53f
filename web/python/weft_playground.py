"""Runs the playground's programs: called by the page's worker, never by users."""

import ast
import gc
import json
import linecache
import sys
import time
import traceback
import types

from pyodide.code import CodeRunner
from pyodide.ffi import JsException, can_run_sync

FILENAME = "program.py"

_session = None  # of the host in use


def warm_up() -> str:
    """Imports the language, so that the first run does not wait for it; returns a JSON description of what there is."""
    import weft
    import weft.numpy  # noqa: F401

    _report_timings()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)
    python = ".".join(map(str, sys.version_info[:3]))
    return json.dumps({"python": python, "weft": getattr(weft, "__version__", ""), "canWait": can_run_sync()})


def _report_timings() -> None:
    """Tells the page how long tracing and compiling take; what happens within a trace belongs to it."""
    try:
        from weft import monitoring
    except ImportError:
        return
    import _weft_page

    phases = {monitoring.TRACE: "trace", monitoring.COMPILE: "compile"}
    inner: list[tuple[float, str, float]] = []  # what has ended and may lie within a trace that has not

    def listen(event: str, seconds: float, **_) -> None:
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


def _choose_backend(name: str, url: str, token: str) -> None:
    """Makes `name` the platform of the next program, connecting to the host first if it is "remote"."""
    global _session
    import weft

    if name == "remote" and not _connected(url, token):
        import weft.remote

        if _session is not None:
            _session.close()
            _session = None
        _session = weft.remote.connect(url, token=token)
    weft.config.update("jax_platforms", name)


def _connected(url: str, token: str) -> bool:
    return _session is not None and _session.failure is None and (_session.url, _session.token) == (url, token)


def _only_user_frames(error: traceback.TracebackException) -> None:
    """Drops every frame that is not the program's, along the whole chain of causes."""
    seen = set()
    pending = [error]
    while pending:
        item = pending.pop()
        if item is None or id(item) in seen:
            continue
        seen.add(id(item))
        item.stack = traceback.StackSummary.from_list([frame for frame in item.stack if frame.filename == FILENAME])
        pending += [item.__cause__, item.__context__, *(item.exceptions or [])]


def _from_first_user_frame(error: traceback.TracebackException) -> None:
    """Drops the page's own frames, which come before the program's first."""
    frames = list(error.stack)
    first = next((i for i, frame in enumerate(frames) if frame.filename == FILENAME), len(frames))
    error.stack = traceback.StackSummary.from_list(frames[first:])


def describe_error(error: BaseException) -> dict:
    """What the page shows of an exception: type, message, the user's line, and the traceback short and in full."""
    short = traceback.TracebackException.from_exception(error)
    line = next((frame.lineno for frame in reversed(short.stack) if frame.filename == FILENAME), None)
    info = getattr(error, "source_info", None)  # of an operation that failed elsewhere, or later
    if getattr(info, "file", None) == FILENAME:
        line = info.line
    column = None
    if isinstance(error, SyntaxError) and error.filename == FILENAME:
        line, column = error.lineno, error.offset
    _only_user_frames(short)
    full = traceback.TracebackException.from_exception(error)
    _from_first_user_frame(full)
    short_text, full_text = "".join(short.format()), "".join(full.format())
    return {
        # An error of the page's JavaScript side carries its own name.
        "type": error.name if isinstance(error, JsException) else type(error).__name__,
        "message": error.message if isinstance(error, JsException) else str(error),
        "line": line,
        "column": column,
        "short": short_text,
        "full": full_text if full_text != short_text else None,
    }


async def run(source: str, backend: str, url: str, token: str) -> str:
    """Runs a program as `__main__` and returns a JSON description of how it ended.

    The value of a last expression is printed, as an interactive interpreter does.
    """
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    linecache.cache[FILENAME] = (len(source), None, source.splitlines(keepends=True), FILENAME)
    outcome: dict = {"status": "ok"}
    try:
        _choose_backend(backend, url, token)
        runner = CodeRunner(source, filename=FILENAME, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        value = await runner.compile().run_async(module.__dict__)
        if value is not None:
            print(repr(value))
    except KeyboardInterrupt:
        outcome = {"status": "stopped"}
    except SystemExit as error:
        if error.code not in (None, 0):
            outcome = {"status": "error", "error": describe_error(error)}
    except BaseException as error:
        outcome = {"status": "error", "error": describe_error(error)}
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    module.__dict__.clear()
    gc.collect()
    return json.dumps(outcome)
