"""The platforms under test, and what becomes of those that this machine lacks.

Tests ask here and nowhere else. Whether a machine lacks something is found out without asking weft: a backend that is
there and does not work fails its tests. What is lacking is skipped, and pytest's summary names it with the reason;
where it is required, it fails.

WEFT_TEST_PLATFORMS     names the platforms under test, separated by commas (default: all of ours)
WEFT_REQUIRE_PLATFORMS  names what must be there (default: nothing; with CI=true everything in `REQUIRED_IN_CI`)
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import pathlib
import shutil
import sys
import tempfile
from collections.abc import Iterator

import pytest

import weft

SERVERS = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"])  # where programs of servers are
ALL = ("cpu", "reference", "wasm", "webgpu", "remote")
REQUIRED_IN_CI = ("cpu", "wasm", "webgpu", "remote", "node", "cc", "haproxy")
# starts the reason of every test that is skipped here; the summary is made of them
LACKING = "not on this machine: "


def _names(variable: str, default: tuple[str, ...]) -> tuple[str, ...]:
    value = os.environ.get(variable)
    return default if value is None else tuple(name.strip() for name in value.split(",") if name.strip())


def chosen() -> tuple[str, ...]:
    """The platforms under test, whether they are here or not."""
    return _names("WEFT_TEST_PLATFORMS", ALL)


def required() -> tuple[str, ...]:
    """What may not be lacking."""
    in_ci = os.environ.get("CI", "").lower() in ("1", "true")
    return _names("WEFT_REQUIRE_PLATFORMS", REQUIRED_IN_CI if in_ci else ())


def under_test(*among: str) -> list[str]:
    """The platforms under test, of those that a test is for (default: of all). For `pytest.mark.parametrize` and the
    params of fixtures.

    Example:
        @pytest.mark.parametrize("platform", under_test("cpu", "wasm"))
        def test_something(platform):
            with on(platform):
                ...
    """
    return [name for name in chosen() if not among or name in among]


def _module(name: str, why: str) -> str | None:
    return None if importlib.util.find_spec(name) is not None else f"{why} is not installed"


def _program(*names: str) -> str | None:
    return None if any(map(shutil.which, names)) else f"there is no program {' or '.join(names)}"


def _adapter() -> str | None:
    """Whether there is a GPU, or a driver that plays one; OpenGL's compute kernels are wrong."""
    reason = _module("wgpu", "wgpu")
    if reason is not None:
        return reason
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())  # wgpu complains without
    import wgpu

    try:
        adapter = wgpu.gpu.request_adapter_sync(power_preference="high-performance")
    except (RuntimeError, OSError) as e:
        return f"there is no WebGPU adapter ({e}); `make vulkan` installs a software one"
    return (
        "the only WebGPU adapter is OpenGL's; `make vulkan` installs a software one"
        if adapter.info["backend_type"].startswith("OpenGL")
        else None
    )


_NEEDS = {
    "cpu": lambda: _module("jaxlib", "jaxlib"),
    "reference": lambda: None,
    "wasm": lambda: _module("wasmtime", "wasmtime"),
    "webgpu": _adapter,
    "remote": lambda: _module("jaxlib", "jaxlib (the host runs on it)") or _module("websockets", "websockets"),
    "node": lambda: _program("node"),
    "cc": lambda: _program("cc", "gcc", "clang"),
    "haproxy": lambda: (
        None
        if shutil.which("haproxy", path=SERVERS)
        else "there is no program haproxy; `make haproxy` installs Debian's"
    ),
    "oracle": lambda: (
        None
        if os.environ.get("WEFT_ORACLE_PYTHON")
        else "WEFT_ORACLE_PYTHON names no Python with jax (`make test-oracle`)"
    ),
}


@functools.cache
def lack(name: str) -> str | None:
    """Why this machine can't have a platform or a tool of `_NEEDS`, or None. Of platforms that are not ours nothing
    is known: they have to work.
    """
    return _NEEDS.get(name, lambda: None)()


def need(*names: str) -> None:
    """Skips the test, or the module at import, where the machine lacks one of these; fails it where that is
    required.
    """
    for name in names:
        reason = lack(name)
        if reason is not None and name in required():
            pytest.fail(f"{name} is required (CI, WEFT_REQUIRE_PLATFORMS) and {LACKING}{reason}", pytrace=False)
        if reason is not None:
            pytest.skip(f"{LACKING}{name}: {reason}", allow_module_level=True)


_until_the_end = contextlib.ExitStack()  # not atexit: workers of pytest-xdist leave without it


def first_device(name: str):
    """The first device of a platform; for "remote" one of a host on this machine, which lives as long as the
    process.
    """
    need(name)
    if name == "remote":
        _host()
    return weft.devices(name)[0]


@contextlib.contextmanager
def on(name: str) -> Iterator:
    """Uncommitted values live on a platform's first device inside the block."""
    device = first_device(name)
    with weft.default_device(device):
        yield device


@functools.cache
def _host() -> None:
    """A host of its own for this process, on the CPU, with a session that stays open."""
    sys.path.append(str(pathlib.Path(__file__).parent / "remote"))
    import hosts

    folder = pathlib.Path(_until_the_end.enter_context(tempfile.TemporaryDirectory()))
    # its one session sends the programs of all tests of this process
    host = _until_the_end.enter_context(hosts.run_host(folder, "--platform", "cpu", "--programs", "100000"))
    _until_the_end.enter_context(host.connect())


# hooks of pytest, for tests/conftest.py -------------------------------------------------------------------------------


def pytest_configure() -> None:
    """Refuses a choice in which something is required that is not under test, and so could not fail."""
    left_out = [name for name in required() if name in ALL and name not in chosen()]
    if left_out:
        raise pytest.UsageError(
            f"{', '.join(left_out)}: required (CI, WEFT_REQUIRE_PLATFORMS) but not among"
            f" WEFT_TEST_PLATFORMS={','.join(chosen())}. Add them there, or name what is required in"
            " WEFT_REQUIRE_PLATFORMS."
        )


def pytest_unconfigure() -> None:
    """Ends the host."""
    _until_the_end.close()


def pytest_terminal_summary(terminalreporter) -> None:
    """Says what this run has not seen, and why."""
    counts: dict[str, int] = {}
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if LACKING in reason:
            what = reason.split(LACKING, 1)[1]
            counts[what] = counts.get(what, 0) + 1
    lines = [f"SKIPPED {what} [{n} tests or modules]" for what, n in sorted(counts.items())]
    lines += [f"LEFT OUT {name}: not in WEFT_TEST_PLATFORMS" for name in ALL if name not in chosen()]
    if lines:
        terminalreporter.section("platforms that this run has not seen")
        for line in lines:
            terminalreporter.line(line)
