"""jax.extend.backend and jax._src.xla_bridge: the available backends."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from ..base.annotations import override
from ..base.host import np
from ..runtime.device import (
    default_device,
    devices,
    forget_backend,
    get_backend as _get_backend,
    known_backends,
    register_backend,
)
from ..runtime.environment import live_arrays
from ..runtime.jit import clear_caches as clear_in_memory_compilation_cache
from ..runtime.processes import (
    device_count as device_count,
    local_device_count as local_device_count,
    process_count as process_count,
    process_index as process_index,
)
from ..version import __version__


class Client:
    """A backend as libraries know jax's clients: its platform and its devices. What else they ask is the backend's."""

    def __init__(self, backend: Any, platform: str):
        self._backend, self.platform = backend, platform

    @property
    def platform_version(self) -> str:
        return f"weft {__version__} ({self._backend.name})"

    runtime_type = property(lambda self: self._backend.name)

    def devices(self) -> list:
        return list(devices(self.platform))

    local_devices = devices

    def device_count(self) -> int:
        return device_count(self.platform)

    def local_device_count(self) -> int:
        return local_device_count(self.platform)

    def process_index(self) -> int:
        return process_index(self.platform)

    host_id = task_id = process_index

    def live_arrays(self) -> list:
        return live_arrays(self.platform)

    @override
    def __eq__(self, other):
        return isinstance(other, Client) and (self._backend, self.platform) == (other._backend, other.platform)

    @override
    def __hash__(self):
        return hash((id(self._backend), self.platform))

    def __getattr__(self, name: str):
        return getattr(self._backend, name)


def get_backend(platform: str | None = None) -> Client:
    """The backend of a platform; without one, of the default platform."""
    backend, found = _get_backend(platform)
    return Client(backend, found)


def backends() -> dict:
    """The backends in use so far, by their platforms."""
    return {platform: Client(b, platform) for b in known_backends() for platform in b.platforms}


def backend_xla_version(platform: str | None = None) -> int | None:
    """The version of XLA in a plugin of PJRT; None, as jaxlib's own clients say none."""
    return None


def get_compile_options(
    num_replicas: int,
    num_partitions: int,
    device_assignment: Any = None,
    env_options_overrides: dict[str, str] | None = None,
    fdo_profile: bytes | None = None,
    detailed_logging: bool = True,
    backend: Any = None,
) -> Any:
    """XLA's options for compiling a program over replicas and partitions; `device_assignment` says on which devices."""
    client = importlib.import_module("jaxlib.xla_client")
    options = client.CompileOptions()
    options.num_replicas, options.num_partitions = num_replicas, num_partitions
    build = options.executable_build_options
    build.num_replicas, build.num_partitions = num_replicas, num_partitions
    if fdo_profile is not None:
        build.fdo_profile = fdo_profile
    if device_assignment is not None:
        ids = [[d if isinstance(d, int) else d.id for d in row] for row in _rows(device_assignment, num_partitions)]
        if len(ids) != num_replicas or any(len(row) != num_partitions for row in ids):
            raise ValueError(
                f"device_assignment must have {num_replicas} rows of {num_partitions} devices, got"
                f" {[len(row) for row in ids]}."
            )
        options.device_assignment = client.DeviceAssignment.create(np.array(ids, "int32"))
    options.env_option_overrides = list((env_options_overrides or {}).items())
    return options


def _rows(assignment: Any, partitions: int) -> list:
    flat = list(np.array(assignment, object).ravel())
    return [flat[i : i + partitions] for i in range(0, len(flat), partitions)]


_caches: list = []


def register_backend_cache(cache: Any, for_what: str) -> None:
    """Registers a cache, which `clear_backends` empties: an object with `cache_clear()`."""
    _caches.append((cache, for_what))


def clear_backends() -> None:
    """Drops all backends and compiled programs. The next operation makes the ones that it needs again."""
    clear_in_memory_compilation_cache()
    for cache, _ in _caches:
        cache.cache_clear()
    for b in known_backends():
        forget_backend(b)


def register_backend_factory(
    name: str,
    factory,
    *,
    priority: int = 0,
    fail_quietly: bool = True,
    experimental: bool = False,
    make_topology: Any = None,
    c_api: Any = None,
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
    if name == "ifrt_proxy":
        return importlib.import_module("jaxlib._jax").ifrt_proxy
    if name in ("xla_client", "jaxlib"):
        return importlib.import_module("jaxlib" if name == "jaxlib" else "jaxlib.xla_client")
    if name in ("DeviceList", "ifrt_programs"):
        return getattr(importlib.import_module("jaxlib._jax"), name)
    if name == "self":
        return sys.modules[__name__]
    if name == "xla_extension":
        return importlib.import_module("jaxlib._jax")
    raise AttributeError(
        f"module 'jax.extend.backend' has no attribute {name!r}: weft, which replaces jax here, does not have it."
    )


__all__ = [
    "backend_xla_version",
    "backends",
    "clear_backends",
    "clear_in_memory_compilation_cache",
    "device_count",
    "devices",
    "get_backend",
    "get_compile_options",
    "get_default_device",
    "local_device_count",
    "process_count",
    "process_index",
    "register_backend_cache",
    "register_backend_factory",
]
