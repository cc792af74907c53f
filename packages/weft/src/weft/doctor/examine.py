"""Looks at everything, and has each platform make the calculation."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ..runtime.device import known_platforms
from . import findings
from .findings import GOOD, MISSING, WRONG, Finding
from .machine import Here, Machine

MARK = "weft.doctor: "  # as in calculation.py, which only the process that calculates loads
SECONDS = 90.0  # for one platform: compilers of a cold machine take up to half a minute
INSTALL = {
    "cpu": "pip install weft-native",
    "cuda": 'pip install "weft[cuda13]"',
    "tpu": 'pip install "weft[tpu]"',
    "wasm": 'pip install "weft[wasm]"',
    "webgpu": 'pip install "weft[webgpu]"',
    "remote": "pip install weft-remote",
    "reference": "pip install numpy",
}
OURS = tuple(INSTALL)
# Errors of the calculation that say that something is not there, and is not broken.
NOT_THERE = {"NoAdapterError": "apt-get install libvulkan1 mesa-vulkan-drivers, or the GPU's Vulkan driver"}


class Examination(NamedTuple):
    """All that was found."""

    software: list[Finding]
    devices: list[Finding]
    platforms: list[Finding]

    def faults(self, required: Iterable[str] = ()) -> list[str]:
        """What makes the machine unfit: what is wrong, platforms of `required` that do not compute, or that none
        does.

        Example:
            >>> from weft.doctor import Examination, Finding
            >>> Examination([], [], [Finding("cpu", "ok", "computes")]).faults(["cuda"])
            ['cuda is required and does not compute']
        """
        everything = [*self.software, *self.devices, *self.platforms]
        found = [f"{f.name}: {f.text}" for f in everything if f.state == WRONG]
        computing = {f.name for f in self.platforms if f.state == GOOD}
        found += [f"{name} is required and does not compute" for name in required if name not in computing]
        return found if found or computing else ["no platform computes"]


def examine(
    machine: Machine | None = None,
    *,
    only: Iterable[str] = (),
    host: str | None = None,
    seconds: float = SECONDS,
    on_finding: Callable[[str, Finding], None] = lambda part, finding: None,
) -> Examination:
    """Looks at the software and the devices of a machine, and makes a small calculation on each platform: each in a
    process of its own, so that one that crashes or hangs does not end the examination.

    Args:
        machine: what is examined; None: this machine.
        only: names of platforms, such as "cuda"; empty: all.
        host: str | None: the address of an accelerator host, whose token is in the environment as WEFT_HOST_TOKEN;
            None starts a host on this machine for the calculation.
        seconds: float: the time that a platform has for it.
        on_finding: called with the part ("software", "devices" or "platforms") and each finding as it is made.

    Returns:
        `Examination`, with a list of findings for each part. A finding has a name, a state ("ok", "missing" or
        "wrong"), a text, and a remedy where there is one.

    Example:
        >>> from weft.doctor import examine
        >>> examine(only=["reference"]).platforms[0].state
        'ok'
    """
    box: Machine = Here() if machine is None else machine
    wanted = tuple(only)
    made = Examination([], [], [])

    def note(part: str, found: Iterable[Finding]) -> None:
        for finding in found:
            getattr(made, part).append(finding)
            on_finding(part, finding)

    note("software", findings.software(box))
    for look, platforms in (
        (findings.cuda, ("cuda",)),
        (findings.tpu, ("tpu",)),
        (findings.kernels, ("wasm", "webgpu")),
        (findings.host, ("remote",)),
    ):
        if (not wanted or set(wanted) & set(platforms)) and not (
            box.system == "emscripten" and platforms[0] in ("cuda", "tpu")
        ):
            note("devices", look(box))
    known = known_platforms()
    for platform in wanted or [*OURS, *[p for p in known if p not in OURS]]:
        note("platforms", [_platform(box, platform, known, host, seconds)])
    return made


def _platform(machine: Machine, platform: str, known: list[str], host: str | None, seconds: float) -> Finding:
    """What became of the calculation on a platform."""
    if platform not in known:
        return Finding(platform, MISSING, "no installed package has this backend", INSTALL.get(platform, ""))
    reason = _lacking(machine, platform, host)
    if reason is not None:
        return Finding(platform, MISSING, reason, INSTALL.get(platform, "") if "install" in reason else "")
    arguments = [platform, *([host] if host and platform == "remote" else [])]
    ran = machine.run(machine.executable, "-m", "weft.doctor.calculation", *arguments, seconds=seconds)
    if ran is None:
        return Finding(platform, MISSING, f"{machine.executable} can't be started, so nothing was calculated")
    if ran.status is None:
        return Finding(
            platform,
            WRONG,
            f"no result in {seconds:.0f} s; the process was ended{_last_line(ran.err)}",
            f"see whether other processes hold the device, or give it longer: --seconds {2 * seconds:.0f}",
        )
    lines = [line for line in ran.out.splitlines() if line.startswith(MARK)]
    if not lines:
        return Finding(platform, WRONG, f"the process ended {_how(ran.status)} without a result{_last_line(ran.err)}")
    return _result(platform, json.loads(lines[-1].removeprefix(MARK)))


def _result(platform: str, result: dict[str, Any]) -> Finding:
    if "failed" in result:
        kind, message = result["failed"], result["message"]
        if kind in NOT_THERE:
            return Finding(platform, MISSING, message, NOT_THERE[kind])
        return Finding(platform, WRONG, f"{kind}: {message}")
    count = result["devices"]
    return Finding(
        platform,
        GOOD,
        f"{count} device{'s' * (count != 1)} ({result['kind']}), the calculation is right to {result['error']:.0e},"
        f" first {_time(result['first'])}, again {_time(result['again'])}",
    )


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1e3:.1f} ms"


def _lacking(machine: Machine, platform: str, host: str | None) -> str | None:
    """Why there is no point in trying a platform."""
    needs = {
        "cpu": ("jaxlib",),
        "cuda": ("jaxlib",),
        "tpu": ("jaxlib", "libtpu"),
        "wasm": () if machine.system == "emscripten" else ("wasmtime",),
        "webgpu": () if machine.system == "emscripten" else ("wgpu",),
        "remote": ("websockets",) if host else ("websockets", "jaxlib", "aiohttp"),
        "reference": ("numpy",),
    }
    absent = [module for module in needs.get(platform, ()) if not machine.has(module)]
    if absent:
        return f"{', '.join(absent)} is not installed"
    if platform == "cuda":
        if not any(machine.has(f"jax_plugins.xla_cuda{major}") for major in ("13", "12")):
            return "no plugin for CUDA is installed"
        if not findings.nvidia(machine).gpus:
            return "there is no NVIDIA GPU"
    return None


def _how(status: int) -> str:
    if status >= 0:
        return f"with status {status}"
    try:
        return f"by signal {signal.Signals(-status).name}"
    except ValueError:
        return f"by signal {-status}"


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"; its last words: {lines[-1][:300]}" if lines else ""
