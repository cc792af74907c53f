"""matplotlib's backend in a page: `show()` shows all open figures beside the program, and closes them.

The page sets MPLBACKEND to it. Figures that are open when a run ends are shown then, as notebooks do.
"""

from typing import Any

from matplotlib._pylab_helpers import Gcf
from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg

import weft_display


class FigureManager(FigureManagerBase):
    """A figure that no window shows."""

    @classmethod
    def pyplot_show(cls, *, block: bool | None = None) -> None:
        show(block=block)

    def show(self) -> None:
        """Shows this figure, which stays open."""
        weft_display.display(self.canvas.figure)


class FigureCanvas(FigureCanvasAgg):
    """Draws into memory."""

    manager_class: Any = FigureManager


def show(*, block: bool | None = None) -> None:
    """Shows all open figures that have something on them, in the order of their numbers, and closes all."""
    managers = Gcf.get_all_fig_managers()
    try:
        for manager in managers:
            if manager.canvas.figure.get_axes() or manager.canvas.figure.texts:
                weft_display.display(manager.canvas.figure)
    finally:
        Gcf.destroy_all()
