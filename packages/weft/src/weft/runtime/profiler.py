"""Profiles: what a program does and for how long, written for TensorBoard, XProf and Perfetto.

On XLA the profile is the runtime's own, with every operation, the names of jitted functions and named scopes. On the
backends written in Python it is a trace of weft's own phases (tracing, lowering, compiling) and of your annotations, in
the same place and in Chrome's format.

Example:
    >>> import weft, weft.numpy as jnp, tempfile, pathlib
    >>> folder = tempfile.mkdtemp()
    >>> with weft.profiler.trace(folder):
    ...     y = weft.jit(jnp.sin)(jnp.ones(100)).block_until_ready()
    >>> len(list(pathlib.Path(folder).rglob("*.trace.json.gz")))
    1
"""

from __future__ import annotations

import gzip
import http.server
import json
import os
import pathlib
import platform as _machine
import shutil
import threading
import time
from contextlib import contextmanager
from functools import wraps
from typing import Any, Callable, Iterator, Self

from ..base.annotations import Args, Result, override
from ..base import monitoring
from ..base.errors import BackendError, at_user_line
from .device import backend_for, get_backend, known_backends

_lock = threading.Lock()
_state: dict[str, Any] = {"session": None, "server": None}


def class_of_xla(name: str) -> Any:
    """One of XLA's classes that read profiles. Raises AttributeError if XLA is not installed."""
    try:
        return getattr(_profiler_of_xla(), name)
    except BackendError as e:
        raise AttributeError(f"weft.profiler.{name} is XLA's: {e}") from None


class _PlainProfileSession:
    """A trace of weft's phases and of annotations, for backends that have no profiler."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        monitoring.register_event_time_span_listener(self.span)

    def span(self, event: str, start: float, end: float, **about: Any) -> None:
        name = f"{event.rsplit('/', 1)[-1].removesuffix('_duration')} {about.get('fun_name', '')}".strip()
        self.add(name, start, end, about)

    def add(self, name: str, start: float, end: float, about: dict[str, Any]) -> None:
        self.events.append(
            {
                "name": name,
                "ph": "X",
                "pid": os.getpid(),
                "tid": threading.get_ident() % 2**31,
                "ts": start * 1e6,
                "dur": (end - start) * 1e6,
                "args": {k: v if isinstance(v, (int, float)) else str(v) for k, v in about.items()},
            }
        )

    def stop(self, folder: str) -> None:
        monitoring.unregister_event_time_span_listener(self.span)
        place = pathlib.Path(folder) / "plugins" / "profile" / time.strftime("%Y_%m_%d_%H_%M_%S")
        place.mkdir(parents=True, exist_ok=True)
        with gzip.open(place / f"{_machine.node() or 'host'}.trace.json.gz", "wt") as file:
            json.dump({"displayTimeUnit": "ns", "traceEvents": self.events}, file)


def start_trace(
    log_dir: os.PathLike[str] | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: Any = None,
) -> None:
    """Starts a profile of this process, which `stop_trace` writes under `log_dir`/plugins/profile.

    Args:
        log_dir: the folder; TensorBoard opens it.
        create_perfetto_link: bool: at the end, print a link that opens this trace in Perfetto, and wait until it is
            used.
        create_perfetto_trace: bool: also write `perfetto_trace.json.gz`, which https://ui.perfetto.dev opens.
        profiler_options: `ProfileOptions`, or None (XLA only).

    Returns:
        None.

    Raises:
        RuntimeError: if a profile is being taken already.
        BackendError: for `profiler_options` on a backend other than XLA.

    Example:
        >>> import weft, tempfile
        >>> weft.profiler.start_trace(tempfile.mkdtemp())
        >>> weft.profiler.stop_trace()
    """
    with _lock:
        if _state["session"] is not None:
            raise RuntimeError(
                at_user_line(
                    "Profile has already been started. Only one profile may be run at a time: stop it with"
                    " weft.profiler.stop_trace()."
                )
            )
        backend = get_backend()[0]
        own = backend.capabilities.profiler
        if own is None and profiler_options is not None:
            raise BackendError(
                at_user_line(f"profiler_options are XLA's; the backend {backend.name!r} takes none. Leave them out.")
            )
        session = own.ProfileSession(profiler_options) if own is not None else _PlainProfileSession()
        _state["session"] = (
            session,
            os.fspath(log_dir),
            create_perfetto_trace or create_perfetto_link,
            create_perfetto_link,
        )


def stop_trace() -> None:
    """Ends the profile that `start_trace` began, and writes it.

    Returns:
        None.

    Raises:
        RuntimeError: if no profile was started.

    Example:
        >>> import weft, tempfile
        >>> weft.profiler.start_trace(tempfile.mkdtemp())
        >>> weft.profiler.stop_trace()
    """
    with _lock:
        if _state["session"] is None:
            raise RuntimeError(at_user_line("No profile started: call weft.profiler.start_trace(folder) first."))
        session, folder, perfetto, link = _state["session"]
        _state["session"] = None
        session.stop(folder)
    if perfetto:
        newest = max(pathlib.Path(folder).glob("plugins/profile/*/*.trace.json.gz"), key=lambda p: p.stat().st_mtime_ns)
        path = newest.parent / "perfetto_trace.json.gz"
        shutil.copyfile(newest, path)  # Chrome's format, which Perfetto reads
        if link:
            _serve_once(path)


def _serve_once(path: pathlib.Path) -> None:
    """Hands a file to ui.perfetto.dev, which asks for it on this machine."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            data = path.read_bytes()
            self.send_response(200)
            self.send_header("Access-Control-Allow-Origin", "https://ui.perfetto.dev")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        @override
        def log_message(self, *_: Any) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 9001), Handler) as server:
        print(f"Open URL in browser: https://ui.perfetto.dev/#!/?url=http://127.0.0.1:{server.server_port}/{path.name}")
        server.handle_request()


@contextmanager
def trace(
    log_dir: os.PathLike[str] | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: Any = None,
) -> Iterator[None]:
    """Context manager that profiles its block: `start_trace` before, `stop_trace` after.

    Args:
        log_dir: the folder; TensorBoard opens it.
        create_perfetto_link: bool: as for `start_trace`.
        create_perfetto_trace: bool: as for `start_trace`.
        profiler_options: `ProfileOptions`, or None (XLA only).

    Returns:
        context manager.

    Raises:
        RuntimeError: if a profile is being taken already.

    Example:
        >>> import weft, weft.numpy as jnp, tempfile
        >>> with weft.profiler.trace(tempfile.mkdtemp()):
        ...     y = weft.jit(jnp.sin)(jnp.ones(3)).block_until_ready()
    """
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


class TraceAnnotation:
    """Context manager whose block appears in profiles under a name, with `metadata` beside it.

    Example:
        >>> import weft
        >>> with weft.profiler.TraceAnnotation("load", batch=3):
        ...     pass
    """

    def __init__(self, name: str, **metadata: Any):
        self.name, self.metadata = name, metadata
        self._inner: list[Any] = []

    def __enter__(self) -> Self:
        self._inner = [
            p.annotation(self.name, **self.metadata)
            for p in (b.capabilities.profiler for b in known_backends())
            if p is not None
        ]
        for inner in self._inner:
            inner.__enter__()
        self._start = time.time()
        return self

    def __exit__(self, *error: Any) -> None:
        running = _state["session"]
        if running is not None and isinstance(running[0], _PlainProfileSession):
            running[0].add(self.name, self._start, time.time(), self.metadata)
        for inner in reversed(self._inner):
            inner.__exit__(*error)
        self._inner = []


class StepTraceAnnotation(TraceAnnotation):
    """Context manager for one step of training, numbered by `step_num`; profilers group events by steps.

    Example:
        >>> import weft
        >>> for i in range(2):
        ...     with weft.profiler.StepTraceAnnotation("train", step_num=i):
        ...         pass
    """

    def __init__(self, name: str, **kwargs: Any):
        super().__init__(name, _r=1, **kwargs)


def annotate_function(
    func: Callable[Args, Result], name: str | None = None, **decorator_kwargs: Any
) -> Callable[Args, Result]:
    """A function like `func` whose calls appear in profiles.

    Args:
        func: the function.
        name: the name in profiles; None for that of the function.
        **decorator_kwargs: metadata that profiles show beside the name.

    Returns:
        function.

    Example:
        >>> import weft
        >>> @weft.profiler.annotate_function
        ... def load(): return 3
        >>> load()
        3
    """
    shown = str(name or getattr(func, "__qualname__", None) or getattr(func, "__name__", "function"))

    @wraps(func)
    def annotated(*args: Args.args, **kwargs: Args.kwargs) -> Result:
        with TraceAnnotation(shown, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated


def _xla(what: str) -> Any:
    backend = get_backend()[0]
    if backend.capabilities.profiler is None:
        raise BackendError(
            at_user_line(
                f"{what} is XLA's, and the default backend is {backend.name!r}. Choose it with"
                " weft.config.update('jax_platforms', 'cpu'), or take a trace with weft.profiler.trace, which works"
                " everywhere."
            )
        )
    return backend.capabilities.profiler


def _profiler_of_xla() -> Any:
    """XLA's profiler, whichever backend is the default. Raises BackendError if XLA is not installed."""
    return backend_for("cpu").capabilities.profiler


def start_server(port: int, requires_backend: bool = True) -> Any:
    """Starts a server through which TensorBoard and XProf profile this process. Anybody who can reach the port can do
    so.

    Args:
        port: int: the port.
        requires_backend: bool: refuse if XLA is not the default backend.

    Returns:
        the server, which runs until `stop_server`.

    Raises:
        ValueError: if a server is running already.
        BackendError: if XLA is not installed, or not the default backend and `requires_backend`.

    Example:
        >>> import weft
        >>> weft.profiler.start_server(9012)                            # doctest: +SKIP
    """
    with _lock:
        if _state["server"] is not None:
            raise ValueError(
                at_user_line(
                    "Only one profiler server can be active at a time: stop it with weft.profiler.stop_server()."
                )
            )
        profiler = _xla("the profiler server") if requires_backend else _profiler_of_xla()
        _state["server"] = profiler.start_server(port)
        return _state["server"]


def stop_server() -> None:
    """Ends the server that `start_server` started.

    Returns:
        None.

    Raises:
        ValueError: if no server is running.

    Example:
        >>> import weft
        >>> weft.profiler.stop_server()
        Traceback (most recent call last):
        ...
        ValueError: No active profiler server: start one with weft.profiler.start_server(port)...
    """
    with _lock:
        if _state["server"] is None:
            raise ValueError(
                at_user_line("No active profiler server: start one with weft.profiler.start_server(port).")
            )
        _state["server"] = None


def register_subprocess(pid: int, port: int) -> Callable[[], None]:
    """Includes another process in the profiles that the server takes.

    Args:
        pid: int: the number of the process.
        port: int: the port on which that process runs a profiler server.

    Returns:
        function without arguments that undoes this.

    Raises:
        BackendError: if XLA is not the default backend.

    Example:
        >>> import weft
        >>> forget = weft.profiler.register_subprocess(1234, 9013)      # doctest: +SKIP
    """
    return _xla("register_subprocess").register_subprocess(pid, port)


def device_memory_profile(backend: str | None = None) -> bytes:
    """A profile of the devices' memory for the program `pprof`: which arrays they hold, and, if the option
    JAX_ARRAY_TRACEBACKS=1 was set, where these were made.

    Args:
        backend: name of a platform; None for the default.

    Returns:
        bytes of the profile.

    Raises:
        BackendError: for a backend without such profiles; only XLA has them.

    Example:
        >>> import weft
        >>> len(weft.profiler.device_memory_profile("cpu")) > 0
        True
    """
    found, platform = get_backend(backend)
    if found.capabilities.profiler is None:
        raise BackendError(
            at_user_line(f"the backend {found.name!r} has no memory profile; weft.live_arrays() lists the arrays.")
        )
    return found.capabilities.profiler.memory_profile(platform)


def save_device_memory_profile(filename: os.PathLike[str] | str, backend: str | None = None) -> None:
    """Writes `device_memory_profile` to a file.

    Args:
        filename: path of the file.
        backend: name of a platform; None for the default.

    Returns:
        None.

    Raises:
        BackendError: for a backend without such profiles.

    Example:
        >>> import os, tempfile, weft
        >>> path = os.path.join(tempfile.mkdtemp(), "memory.prof")
        >>> weft.profiler.save_device_memory_profile(path, "cpu")
        >>> os.path.getsize(path) > 0
        True
    """
    pathlib.Path(filename).write_bytes(device_memory_profile(backend))
