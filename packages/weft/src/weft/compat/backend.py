"""jax.extend.backend and jax._src.xla_bridge: the available backends."""

from __future__ import annotations

import importlib

from ..runtime.device import (
    default_device,
    devices,
    forget_backend,
    get_backend as _get_backend,
    known_backends,
    register_backend,
)
from ..runtime.jit import clear_caches as clear_in_memory_compilation_cache
from ..runtime.processes import (
    device_count as device_count,
    local_device_count as local_device_count,
    process_count as process_count,
    process_index as process_index,
)


def get_backend(platform: str | None = None):
    """The backend of a platform; without one, of the default platform."""
    return _get_backend(platform)[0]


def backends() -> dict:
    """The backends in use so far, by their platforms."""
    return {platform: b for b in known_backends() for platform in b.platforms}


def clear_backends() -> None:
    """Drops all backends and compiled programs. The next operation makes the ones that it needs again."""
    clear_in_memory_compilation_cache()
    for b in known_backends():
        forget_backend(b)


def register_backend_factory(
    name: str, factory, *, priority: int = 0, fail_quietly: bool = True, experimental: bool = False, **_
) -> None:
    """Registers a backend: `factory()` makes it. runtime/backend.py describes what it must have."""
    register_backend(factory, name)


def get_default_device():
    return default_device()


def _version() -> tuple:
    return tuple(int(n) for n in importlib.import_module("importlib.metadata").version("jaxlib").split(".")[:3])


def __getattr__(name: str):
    if name == "_backends":
        return backends()
    if name == "version":
        return _version()
    if name == "version_text":
        return ".".join(map(str, _version()))
    if name in ("xla_client", "jaxlib"):
        return importlib.import_module("jaxlib" if name == "jaxlib" else "jaxlib.xla_client")
    if name == "xla_extension":
        return importlib.import_module("jaxlib._jax")
    raise AttributeError(
        f"module 'jax.extend.backend' has no attribute {name!r}: weft, which replaces jax here, does not have it."
    )


__all__ = [
    "backends",
    "clear_backends",
    "clear_in_memory_compilation_cache",
    "device_count",
    "devices",
    "get_backend",
    "get_default_device",
    "local_device_count",
    "process_count",
    "process_index",
    "register_backend_factory",
]
