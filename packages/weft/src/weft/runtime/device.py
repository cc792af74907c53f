"""Finding backends and devices."""
from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from ..config import config
from ..errors import BackendError, at_user_line
from ..source_info import register_exclusion

GROUP = "weft.backends"
# The order in which the default platform is looked for.
PREFERENCE = ("tpu", "cuda", "cpu", "wasm", "webgpu", "reference")
ALIASES = {"gpu": "cuda", "xla": "cpu"}
# entry-point name -> platforms, so that finding a platform loads one backend and not all of them
KNOWN = {"xla": ("tpu", "cuda", "cpu"), "wasm": ("wasm",), "webgpu": ("webgpu",), "remote": ("remote",), "reference": ("reference",)}

# array class -> its backend's way to run one primitive, for the backends that have one
eager: dict[type, Any] = {}
_factories: dict[str, Any] = {}     # registered by hand: reference, tests, the page
_backends: dict[str, Any] = {}      # instances by name


def register_backend(name: str, factory, platforms: tuple | None = None) -> None:
    """Makes a backend known without an entry point. `factory` takes no arguments."""
    _factories[name] = factory
    _backends.pop(name, None)
    if platforms is not None:
        KNOWN[name] = tuple(platforms)


def _entry_points() -> dict:
    metadata = import_module("importlib.metadata")      # 15 ms that a program may never need
    return {e.name: e for e in metadata.entry_points(group=GROUP)}


def backend_class(name: str):
    """The class that an entry point names; BackendError with the reason if it can't be had."""
    entry = _entry_points().get(name)
    if entry is None:
        have = ", ".join(sorted({*_factories, *_entry_points()})) or "none"
        raise BackendError(f"no backend {name!r} is installed (installed: {have}). Install the package that brings it, for example weft-native for xla.")
    try:
        return entry.load()
    except ImportError as e:
        raise BackendError(f"backend {name!r} can't be loaded: {e}. Install what it needs, or choose another platform with weft.config.update('jax_platforms', …).") from e


def backend_named(name: str):
    """The backend instance of an entry-point name; BackendError with the reason if it can't be had."""
    if name not in _backends:
        factory = _factories.get(name) or backend_class(name)
        backend = _backends[name] = factory()
        home = getattr(import_module(type(backend).__module__), "__file__", None)
        if home:      # its frames are not the user's
            register_exclusion(os.path.dirname(os.path.abspath(home)) + os.sep)
        if hasattr(backend, "apply"):
            eager[backend.array_type] = backend.apply
    return _backends[name]


def known_backends() -> list:
    """The backends that were asked for a device so far."""
    return list(_backends.values())


def forget_backend(name: str) -> None:
    """Lets go of a backend; the next look for one of its devices makes it again."""
    gone = _backends.pop(name, None)
    if hasattr(gone, "array_type"):
        eager.pop(gone.array_type, None)
    forget_default()


def _names_for(platform: str) -> list[str]:
    return [name for name, platforms in KNOWN.items() if platform in platforms]


def get_backend(platform: str | None = None):
    """(backend, platform) for a platform name, or the default one."""
    if platform is not None and not isinstance(platform, str):
        return platform, platform.platforms[0]
    if platform is None:
        platform = default_platform()
    if platform == "gpu":
        platform = "cuda"
    names = _names_for(platform)
    if not names:
        raise BackendError(at_user_line(f"unknown platform {platform!r}; platforms are {', '.join(p for ps in KNOWN.values() for p in ps)}."))
    return backend_named(names[0]), platform


_default: dict = {}     # the configured platforms -> the platform found for them


def default_platform() -> str:
    """The first platform of `jax_platforms` (or of the order of preference) that has a device."""
    wanted = config.platforms or config.platform_name
    if wanted in _default:
        return _default[wanted]
    candidates = [ALIASES.get(p.strip(), p.strip()) for p in wanted.split(",") if p.strip()] or list(PREFERENCE)
    reasons = []
    for platform in candidates:
        try:
            names = _names_for(platform)
            if not names:
                raise BackendError(at_user_line(f"unknown platform {platform!r}; platforms are {', '.join(p for ps in KNOWN.values() for p in ps)}."))
            if backend_named(names[0]).devices(platform):
                _default[wanted] = platform
                return platform
            reasons.append(f"{platform}: no device")
        except BackendError as e:
            reasons.append(f"{platform}: {e}")
    raise BackendError("no device was found. " + " | ".join(reasons))


def forget_default() -> None:
    _default.clear()


config.listen(lambda name: forget_default() if name in ("platforms", "platform_name") else None)


def devices(backend: str | None = None) -> list:
    """All devices of a platform (default: the default platform).

    Example:
        >>> import weft
        >>> len(weft.devices()) >= 1
        True
    """
    found, platform = get_backend(backend)
    return list(found.devices(platform))


def first_device():
    """The first device of the default platform that is this process's."""
    found, platform = get_backend()
    known = found.devices(platform)
    ask = getattr(found, "process_index", None)
    if ask is None or known[0].process_index == ask(platform):
        return known[0]
    here = ask(platform)
    return next(d for d in known if d.process_index == here)


def default_device():
    """The device on which uncommitted values live: `jax_default_device`, or the first of the default platform."""
    chosen = config.default_device
    if chosen is None:
        return first_device()
    return devices(chosen)[0] if isinstance(chosen, str) else chosen


def backend_of(device):
    """The backend to which a device belongs."""
    owner = getattr(device, "backend", None)
    return owner if owner is not None else get_backend(device.platform)[0]
