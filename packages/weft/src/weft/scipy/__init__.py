"""weft.scipy: functions of SciPy, in modules that load when they are first used."""

from ..base.lazy import LazyNames as _LazyNames

_lazy = _LazyNames(
    globals(),
    {},
    modules="cluster fft integrate interpolate linalg ndimage optimize signal sparse spatial special stats",
)
__getattr__ = _lazy.find


def __dir__():
    return _lazy.names()
