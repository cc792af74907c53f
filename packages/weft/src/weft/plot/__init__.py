"""weft.plot: figures, drawn by the page of the playground, or by matplotlib where it is installed.

    from weft import plot

    plot.line(x, y, label="fit", title="a wave", xlabel="seconds")   # into the current figure
    plot.scatter(x, data, label="data")                             # into the same one
    plot.show()                                                     # the next function begins another

    plot.curve("loss", step, loss)                                  # one more point of a live curve

    fig = plot.figure(columns=2)                                    # panels side by side
    fig.panel(title="height").image(z)
    fig.panel(title="levels").contour(x, y, z)
    fig.save("hills.svg")

    plot.audio(samples, rate=44100)                                 # a sound, as the last value of a cell

Arrays of weft and NumPy, lists, and pytrees of these are taken alike.
"""

from typing import TYPE_CHECKING

from ..base.lazy import LazyNames as _LazyNames
from .display import flush, set_renderer

if TYPE_CHECKING:  # loaded on first use
    from .current import *
    from .figures import Figure
    from .panels import Panel
    from .sound import Sound, audio

_lazy = _LazyNames(
    globals(),
    {
        "current": ("band bar contour curve figure heatmap histogram image line panel quiver scatter show"),
        "figures": "Figure",
        "panels": "Panel",
        "sound": "Sound audio",
    },
)

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts every name
    __all__ = ["flush", "set_renderer", *_lazy.names()]

    __getattr__ = _lazy.find

    def __dir__():
        return sorted({*globals(), *__all__} - {"TYPE_CHECKING"})
