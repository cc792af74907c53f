"""Finding backends and devices."""

from __future__ import annotations

import os
import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any, Callable

from ..base.config import config
from ..base.devices import addressable
from ..base.errors import BackendError, at_user_line, load_runtime_with
from ..base.source_info import register_exclusion
from ..core.traces import forget_traces
from .backend import Device, MEMBERS

if TYPE_CHECKING:
    from .backend import Backend
    from .partition import Where
    from importlib.metadata import EntryPoint

# each entry point is named after a platform, so that looking for one platform loads no other backend
GROUP = "weft.backends"
# The order in which the default platform is chosen. Other platforms are used only if an argument, a device or
# `jax_platforms` names them.
PREFERENCE = ("tpu", "cuda", "cpu", "wasm", "webgpu", "reference")
ALIASES = {"gpu": "cuda", "xla": "cpu"}

# array class -> its backend's function that runs one primitive, for the backends that have one
eager: dict[type[Any], Any] = {}
_factories: dict[str, Callable[[], Any]] = {}  # by platform; registered by hand: reference, tests
_entries: dict[str, EntryPoint] = {}  # by platform; as last read
_made: dict[Callable[[], Any], Any] = {}  # factory -> the backend: one instance for all its platforms
_making = threading.RLock()  # a factory may look for devices itself
_backends: dict[str, Any] = {}  # platform -> backend, for the platforms that were looked for


def register_backend(factory: Callable[[], Any], *platforms: str) -> None:
    """Registers a backend without an entry point. `factory` takes no arguments and is called when one of the platforms
    is first used.
    """
    for platform in platforms:
        _factories[platform] = factory
        gone = _backends.pop(platform, None)
        if gone is not None and gone not in _backends.values():
            forget_backend(gone)


def _read_entries() -> None:
    """Reads the entry points of installed packages. Raises BackendError if two offer different backends for one
    platform.
    """
    metadata = import_module("importlib.metadata")  # 15 ms that a program may never need
    found: dict[str, EntryPoint] = {}
    for entry in metadata.entry_points(group=GROUP):
        other = found.setdefault(entry.name, entry)
        if other.value != entry.value:
            raise BackendError(
                f"two installed packages have a backend for the platform {entry.name!r}: {_origin(other)} and"
                f" {_origin(entry)}. Uninstall one of them."
            )
    _entries.clear()
    _entries.update(found)


def _origin(entry: EntryPoint) -> str:
    return f"{entry.value} of {entry.dist.name}" if entry.dist is not None else entry.value


def known_platforms() -> list[str]:
    """The platforms of all installed or registered backends, with or without devices; the preferred ones first."""
    _read_entries()
    names = {*_factories, *_entries}
    return [*[p for p in PREFERENCE if p in names], *sorted(names.difference(PREFERENCE))]


def backend_class(platform: str) -> Any:
    """The class that a platform's entry point names; BackendError with the reason if it can't be had."""
    if platform not in _entries:
        _read_entries()
    if platform not in _entries:
        raise BackendError(
            at_user_line(
                f"unknown platform {platform!r}; platforms are {', '.join(known_platforms())}. Others come with the"
                " package that has their backend: weft-native has that for cpu, cuda and tpu."
            )
        )
    try:
        return _entries[platform].load()
    except ImportError as e:
        raise BackendError(
            f"the backend of platform {platform!r} can't be loaded: {e}. Install what it needs, or choose another"
            " platform with weft.config.update('jax_platforms', …)."
        ) from e


def _load_compiled_runtime() -> None:
    try:
        backend_class("cpu")
    except BackendError:  # it isn't installed, or can't be used in this process
        pass


load_runtime_with(_load_compiled_runtime)


def backend_for(platform: str) -> Any:
    """The backend of a platform, made on the first look; BackendError with the reason if it can't be had."""
    if platform in _backends:
        return _backends[platform]
    with _making:
        factory = _factories.get(platform) or backend_class(platform)
        if factory not in _made:
            _made[factory] = _welcome(factory())
        backend = _made[factory]
        if platform not in backend.platforms:
            raise BackendError(
                f"{_origin(_entries[platform]) if platform in _entries else factory} is registered for the platform"
                f" {platform!r}, but the backend {backend.name!r} has the platforms {', '.join(backend.platforms)}."
                " Name its entry points after these."
            )
        _backends[platform] = backend
        return backend


def _welcome(backend: Any) -> Any:
    """Checks a new backend. Frames of its package are hidden from errors from now on."""
    lacking = [name for name in MEMBERS if name not in dir(backend)]
    if lacking:
        raise BackendError(
            f"{type(backend).__module__}.{type(backend).__qualname__} is not a backend, because it lacks"
            f" {', '.join(lacking)}. weft.runtime.backend.Backend says what these are."
        )
    module = import_module(type(backend).__module__.partition(".")[0])
    if module.__name__ != "__main__" and module.__file__:  # a package's folder, or the module alone
        path = os.path.abspath(module.__file__)
        register_exclusion(os.path.dirname(path) + os.sep if module.__package__ else path)
    own = backend.capabilities
    if own.apply is not None:
        eager[own.array_type] = own.apply
    return backend


def known_backends() -> list[Any]:
    """The backends that were asked for a device so far."""
    return list(_made.values())


def forget_backend(backend: Any) -> None:
    """Forgets a backend; it is made again when one of its devices is next used."""
    for factory in [f for f, made in _made.items() if made is backend]:
        del _made[factory]
    for platform in [p for p, made in _backends.items() if made is backend]:
        del _backends[platform]
    own = backend.capabilities
    if own.apply is not None and eager.get(own.array_type) == own.apply:
        del eager[own.array_type]
    forget_default()


def get_backend(platform: str | None = None) -> tuple[Backend, str]:
    """(backend, platform) for a platform name, or the default one."""
    if platform is not None and not isinstance(platform, str):
        return platform, platform.platforms[0]
    name = default_platform() if platform is None else ALIASES.get(platform, platform)
    return backend_for(name), name


_default: dict[Any, Any] = {}  # the configured platforms -> the platform found for them


def default_platform() -> str:
    """The platform of the default device: the first that has a device, of those that `jax_platforms` names, or, if it
    names none, in the order of preference.

    Returns:
        str.

    Raises:
        BackendError: if no platform has a device. The message gives the reason for each.

    Example:
        >>> import weft
        >>> weft.default_backend()
        'cpu'
    """
    wanted = config.platforms or config.platform_name
    if wanted in _default:
        return _default[wanted]
    candidates = [ALIASES.get(p.strip(), p.strip()) for p in wanted.split(",") if p.strip()] or list(PREFERENCE)
    reasons = []
    for platform in candidates:
        try:
            if backend_for(platform).devices(platform):
                _default[wanted] = platform
                return platform
            reasons.append(f"{platform}: no device")
        except BackendError as e:
            reasons.append(f"{platform}: {e}")
    raise BackendError("no device was found. " + " | ".join(reasons))


def forget_default() -> None:
    """Has the default platform be found anew, and functions be traced anew: they may ask which devices there are."""
    _default.clear()
    forget_traces()


config.listen(lambda name: forget_default() if name in ("platforms", "platform_name") else None)


def devices(backend: str | None = None) -> list[Device]:
    """All devices of a platform (default: the default platform).

    Args:
        backend: name of a platform, such as 'cpu'; None for the default one.

    Returns:
        list of devices.

    Raises:
        BackendError: if the platform is not there.

    Example:
        >>> import weft
        >>> len(weft.devices()) >= 1
        True
    """
    found, platform = get_backend(backend)
    return list(found.devices(platform))


def first_device() -> Device:
    """The first device of the default platform that is this process's."""
    found, platform = get_backend()
    known = found.devices(platform)
    here = found.capabilities.process_index(platform)
    return next(d for d in known if d.process_index == here)


def default_device() -> Device:
    """The device on which uncommitted values live: `jax_default_device`, or the first of the default platform."""
    chosen = config.default_device
    if chosen is None:
        return first_device()
    return addressable(devices(chosen))[0] if isinstance(chosen, str) else chosen


def backend_of(device: Where) -> Backend:
    """The backend to which a device belongs."""
    return device.backend
