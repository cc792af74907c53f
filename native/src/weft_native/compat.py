"""The only module that depends on the version of jaxlib. Supported: 0.10.2, 0.11.2, 0.12.0.1.

`VERSION` is the number of the C++ interface (467 in 0.10.2, 505 in 0.12.0.1), which says more than the release does.
"""

from __future__ import annotations

import importlib
from typing import Any, Sequence

import jaxlib._jax as _jax
from jaxlib import version as _release
from jaxlib import xla_client
from weft.base.errors import BackendError

RELEASE: tuple[int, ...] = tuple(int(part) for part in _release.__version__.split(".")[:3] if part.isdigit())
xc = xla_client  # others import it from here
VERSION: int = xc._version
OLDEST, NEWEST = (0, 10, 2), (0, 13)

# From 0.11 on, result handlers check nothing in Python, and have lost the argument for this.
_HANDLER_ARGS: dict[str, Any] = {"_skip_checks": True} if RELEASE < (0, 11) else {}


def check_release(release: tuple[int, ...] = RELEASE) -> None:
    """Raises BackendError if the backend does not support this version of jaxlib."""
    if not OLDEST <= release < NEWEST:
        found = ".".join(map(str, release))
        raise BackendError(
            f"weft-native works with jaxlib 0.10.2 up to 0.12; jaxlib {found} is installed. "
            "Install one of those: pip install 'jaxlib>=0.10.2,<0.13'."
        )


def result_handler(aval, sharding, committed: bool):
    """The function that turns a result's buffers into an ArrayImpl."""
    return xc.array_result_handler(aval, sharding, committed, **_HANDLER_ARGS)


def to_numpy(array):
    """A single-device array's value as a NumPy array that does not refer to the array, but may share its memory. (It
    tries an import for each array, which takes time, and in which Ctrl-C is lost.)
    """
    return array._single_device_array_to_np_array_did_copy()[0]


def to_dlpack(array, stream=None):
    """A DLPack capsule over an array's buffer."""
    return _jax.buffer_to_dlpack_managed_tensor(array, stream=stream)


def from_dlpack(value, device):
    """An array over the memory behind an object with `__dlpack__`."""
    return _jax.dlpack_managed_tensor_to_buffer(value.__dlpack__(), device, None)


# What functions of users raised that XLA has called while it compiled: it reports their text alone.
failures: list[Exception] = []


def cause_of(error: Exception) -> Exception | None:
    """The exception of a user's function that XLA reports in an error, if it reports one."""
    found = next((f for f in failures if f"{type(f).__name__}: {f}" in str(error)), None)
    if found is not None:
        failures.remove(found)
    return found


def portable_artifact(module) -> bytes:
    """The bytes of a StableHLO module that later releases of XLA read too."""
    stablehlo = importlib.import_module("jaxlib.mlir.dialects.stablehlo")  # MLIR's bindings take 40 ms to load
    return _jax.mlir.serialize_portable_artifact(module, stablehlo.get_current_version(), use_mixed_serialization=False)


def compile_module(client, module, devices: Sequence, options, callbacks: Sequence = ()):
    """A loaded executable of an ir.Module."""
    devices = xc.DeviceList(tuple(devices))
    if callbacks:
        return client.compile_and_load(module, devices, options, list(callbacks))
    return client.compile_and_load(module, devices, options)
