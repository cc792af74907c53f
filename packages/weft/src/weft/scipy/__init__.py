"""weft.scipy: functions of SciPy, in modules that load when they are first used."""

from importlib import import_module as _import_module
from importlib.util import find_spec as _find_spec

_MODULES = (
    "cluster",
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "sparse",
    "spatial",
    "special",
    "stats",
)


def __getattr__(name: str):
    if name in _MODULES and _find_spec(f"{__name__}.{name}") is not None:
        return _import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'weft.scipy' has no attribute {name!r}")


def __dir__():
    return [name for name in _MODULES if _find_spec(f"{__name__}.{name}") is not None]
