"""Information about this process: live arrays, versions, devices."""

from __future__ import annotations

import gc
import importlib.metadata
import os
import platform as _machine
import sys

from .array import Array
from .device import get_backend
from ..version import __version__


def live_arrays(platform: str | None = None) -> list[Array]:
    """The arrays of a platform (default: the default one) that are not deleted, to find out which arrays fill a
    device's memory.

    Args:
        platform: name of a platform, such as 'cpu'; None for the default one.

    Returns:
        list of arrays, of any dtype and shape.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> x = jnp.arange(12345)
        >>> any(y.shape == (12345,) for y in weft.live_arrays())
        True
    """
    backend, name = get_backend(platform)
    own = backend.capabilities
    if own.live_arrays is not None:
        return own.live_arrays(name)
    return [
        x for x in gc.get_objects() if type(x) is own.array_type and not x.is_deleted() and x.device.platform == name
    ]


def print_environment_info(return_string: bool = False) -> str | None:
    """Prints, or returns, the information that a report of a problem needs: versions, devices, the machine and XLA's
    flags.

    Args:
        return_string: bool.

    Returns:
        str with `return_string`, else None.

    Example:
        >>> import weft
        >>> weft.print_environment_info(return_string=True).splitlines()[0].startswith("weft:")
        True
    """

    def version(package: str) -> str:
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            return "not installed"

    backend, name = get_backend()
    found = backend.devices(name)
    lines = [
        f"weft:   {__version__}",
        f"jaxlib: {version('jaxlib')}",
        f"numpy:  {version('numpy')}",
        f"python: {sys.version}",
        f"device info: {found[0].device_kind}-{len(found)}, {len(found)} local devices",
        f"platform: {_machine.platform()}",
        *[
            f"{variable}={os.environ[variable]}"
            for variable in ("XLA_FLAGS", "LIBTPU_INIT_ARGS")
            if variable in os.environ
        ],
    ]
    text = "\n".join(lines)
    if return_string:
        return text
    print(text)
    return None
