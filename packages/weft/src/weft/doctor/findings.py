"""What is installed on a machine and what its hardware is, without loading any of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from .machine import Machine

# `missing` is no fault: a machine need not have a GPU. `wrong` is there and can't be used.
GOOD, MISSING, WRONG = "ok", "missing", "wrong"
OLDEST_PYTHON = (3, 11)
# libtpu's release for each release of jaxlib, as jax's own distribution names them.
LIBTPU: dict[tuple[int, ...], str] = {(0, 10): "0.0.42", (0, 11): "0.0.48", (0, 12): "0.0.50"}
# The oldest driver with which programs of a CUDA release run on Linux: NVIDIA's table of CUDA compatibility.
DRIVERS = {"13": 580, "12": 525}


class Finding(NamedTuple):
    """One thing that was looked at."""

    name: str
    state: str  # GOOD, MISSING or WRONG
    text: str
    remedy: str = ""  # what to do: mostly a command


def numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, for comparisons."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def software(machine: Machine) -> Iterator[Finding]:
    """Python, and the packages on which weft's backends stand."""
    old = numbers(machine.python)[:2] < OLDEST_PYTHON
    yield Finding(
        "Python",
        WRONG if old else GOOD,
        f"{machine.python} ({machine.system}, {machine.processor}, {machine.cores} cores) at {machine.executable}",
        "install Python 3.11 or later" if old else "",
    )
    for name in ("weft", "weft-native", "weft-wasm", "weft-remote"):
        if name == "weft-native" and machine.system == "emscripten":
            continue
        found = machine.version(name)
        yield _package(name, found, f'pip install "{name}"')
    if machine.system == "emscripten":
        return
    yield _package("jaxlib", machine.version("jaxlib"), "pip install weft-native")
    for name in ("numpy", "ml_dtypes", "scipy"):
        yield _package(name, machine.version(name), f"pip install {name}")


def _package(name: str, version: str | None, command: str) -> Finding:
    if version is None:
        return Finding(name, MISSING, "not installed", command)
    return Finding(name, GOOD, version)


# NVIDIA --------------------------------------------------------------------------------------------------------------


class Nvidia(NamedTuple):
    """The GPUs of a machine and their driver."""

    gpus: tuple[str, ...]
    driver: str | None


def nvidia(machine: Machine) -> Nvidia:
    """Asks `nvidia-smi`, and the driver's files where there is no such program."""
    ran = machine.run(
        "nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader,nounits", seconds=20
    )
    rows = (
        [[cell.strip() for cell in line.split(",")] for line in ran.out.splitlines()] if ran and not ran.status else []
    )
    rows = [row for row in rows if len(row) == 3]
    if rows:
        return Nvidia(tuple(f"{name}, {memory} MiB" for name, memory, _ in rows), rows[0][2])
    told = re.search(r"Kernel Module\D*?(\d+(?:\.\d+)+)", machine.read("/proc/driver/nvidia/version") or "")
    names = [
        found[1].strip()
        for path in machine.matching("/proc/driver/nvidia/gpus/*/information")
        if (found := re.search(r"Model:(.*)", machine.read(path) or ""))
    ]
    devices = machine.matching("/dev/nvidia[0-9]*")
    return Nvidia(tuple(names) or tuple(devices), told[1] if told else None)


def cuda(machine: Machine) -> Iterator[Finding]:
    """NVIDIA's GPU, its driver, jaxlib's plugin for CUDA, and CUDA's libraries."""
    found, jaxlib = nvidia(machine), machine.version("jaxlib")
    plugins = {major: machine.version(f"jax-cuda{major}-plugin") for major in ("13", "12")}
    major = next((m for m, version in plugins.items() if version is not None), None)
    if not found.gpus:
        in_container = " In a container, start it with `--gpus all`." if major is not None else ""
        yield Finding("NVIDIA GPU", MISSING, f"none: no answer of nvidia-smi, and no /dev/nvidia0.{in_container}")
    else:
        yield Finding("NVIDIA GPU", GOOD, "; ".join(found.gpus))
        yield _driver(found.driver, major)
    if major is None:
        wanted = "12" if found.driver and numbers(found.driver)[0] < DRIVERS["13"] else "13"
        where = "" if found.gpus else "on a machine with an NVIDIA GPU: "
        yield Finding("CUDA plugin", MISSING, "not installed", f'{where}pip install "weft[cuda{wanted}]"')
        return
    yield from _plugin(machine, major, str(plugins[major]), jaxlib)


def _driver(driver: str | None, major: str | None) -> Finding:
    if driver is None:
        return Finding(
            "NVIDIA driver", WRONG, "the GPU is there, its driver does not answer", "install NVIDIA's driver"
        )
    needed = DRIVERS[major or "12"]
    if numbers(driver)[0] >= needed:
        return Finding("NVIDIA driver", GOOD, driver)
    remedy = f"update NVIDIA's driver to {needed} or later"
    if major == "13" and numbers(driver)[0] >= DRIVERS["12"]:
        remedy += ', or pip uninstall jax-cuda13-plugin jax-cuda13-pjrt && pip install "weft[cuda12]"'
    return Finding("NVIDIA driver", WRONG, f"{driver}, and CUDA {major or '12'} needs {needed} or later", remedy)


def _plugin(machine: Machine, major: str, version: str, jaxlib: str | None) -> Iterator[Finding]:
    name, pjrt = f"jax-cuda{major}-plugin", machine.version(f"jax-cuda{major}-pjrt")
    command = f'pip install "{name}[with-cuda]=={jaxlib or version}"'
    if pjrt is None:
        yield Finding("CUDA plugin", WRONG, f"{name} {version} is installed without jax-cuda{major}-pjrt", command)
    elif jaxlib is not None and not numbers(version) == numbers(pjrt) == numbers(jaxlib):
        yield Finding(
            "CUDA plugin",
            WRONG,
            f"{name} {version} and jax-cuda{major}-pjrt {pjrt} do not belong to jaxlib {jaxlib}: all must be of one"
            " release",
            command,
        )
    else:
        yield Finding("CUDA plugin", GOOD, f"{name} {version}")
    suffix = "" if major == "13" else "-cu12"
    libraries = [
        f"nvidia-cublas{suffix}",
        f"nvidia-cusolver{suffix}",
        f"nvidia-cufft{suffix}",
        f"nvidia-cudnn-cu{major}",
    ]
    absent = [library for library in libraries if machine.version(library) is None]
    if absent and not machine.matching("/usr/local/cuda*/lib64/libcublas.so*"):
        yield Finding(
            "CUDA libraries", MISSING, f"{', '.join(absent)}: not installed by pip, nor in /usr/local", command
        )
    elif absent:
        yield Finding("CUDA libraries", GOOD, "those of /usr/local/cuda")
    else:
        yield Finding("CUDA libraries", GOOD, ", ".join(f"{name} {machine.version(name)}" for name in libraries))


# TPU -----------------------------------------------------------------------------------------------------------------

_GOOGLE = "0x1ae0"  # the vendor of TPUs on the PCI bus


def tpu(machine: Machine) -> Iterator[Finding]:
    """A TPU on the bus of this machine, and libtpu."""
    vendors = machine.matching("/sys/bus/pci/devices/*/vendor")
    chips = sum((machine.read(path) or "").strip() == _GOOGLE for path in vendors)
    present = bool(machine.matching("/dev/accel[0-9]*")) or chips > 0 and bool(machine.matching("/dev/vfio/[0-9]*"))
    yield Finding("TPU", GOOD, f"{chips or 1} chips") if present else Finding("TPU", MISSING, "none on this machine")
    version, jaxlib = machine.version("libtpu"), machine.version("jaxlib")
    wanted = LIBTPU.get(numbers(jaxlib or "")[:2])
    if version is None:
        where = "" if present else "on a machine with a TPU: "
        yield Finding("libtpu", MISSING, "not installed", where + 'pip install "weft[tpu]"')
    elif wanted is not None and numbers(version) != numbers(wanted):
        text = f"{version}, and {wanted}.* belongs to jaxlib {jaxlib}"
        yield Finding("libtpu", WRONG, text, f'pip install "libtpu=={wanted}.*"')
    else:
        yield Finding("libtpu", GOOD, version)


# the kernel compiler's runtimes, and hosts ---------------------------------------------------------------------------


def kernels(machine: Machine) -> Iterator[Finding]:
    """What runs WebAssembly and WebGPU outside of a page."""
    if machine.system == "emscripten":
        yield Finding("Wasm", GOOD, "the page's engine")
        return
    version = machine.version("wasmtime")
    yield _package("wasmtime", version, 'pip install "weft[wasm]"')
    yield _package("wgpu", machine.version("wgpu"), 'pip install "weft[webgpu]"')
    if machine.system == "linux":
        places = (
            "/usr/share/vulkan/icd.d/*.json",
            "/etc/vulkan/icd.d/*.json",
            "/usr/local/nvidia/share/vulkan/icd.d/*",
        )
        drivers = [
            path.rsplit("/", 1)[-1].removesuffix(".json") for place in places for path in machine.matching(place)
        ]
        named = machine.environment.get("VK_DRIVER_FILES", machine.environment.get("VK_ICD_FILENAMES", ""))
        drivers += [path.rsplit("/", 1)[-1].removesuffix(".json") for path in named.split(":") if path]
        yield (
            Finding("Vulkan drivers", GOOD, ", ".join(dict.fromkeys(drivers)))
            if drivers
            else Finding(
                "Vulkan drivers",
                MISSING,
                "none",
                "the GPU's driver, or: apt-get install libvulkan1 mesa-vulkan-drivers",
            )
        )


def host(machine: Machine) -> Iterator[Finding]:
    """What an accelerator host on this machine needs."""
    if machine.system == "emscripten":
        return
    absent = [name for name in ("aiohttp", "websockets", "limits", "prometheus_client") if not machine.has(name)]
    if absent:
        yield Finding("weft-host", MISSING, f"{', '.join(absent)}: not installed", "pip install weft-native")
    else:
        yield Finding("weft-host", GOOD, "can be started")
