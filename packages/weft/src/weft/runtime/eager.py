"""What the root trace does with a primitive: runs it, and looks at its results or at its keys where the debugging
options ask for that.
"""

from __future__ import annotations

from ..base.config import config
from ..core.trace import root
from . import key_reuse, nans
from .dispatch import run_primitive

# Each looks at more than the one before, and reads at each call whether its thread's options ask for that.
_RUNNERS = (run_primitive, nans.run_checked, key_reuse.run_watched)
_chosen = 0


def _choose(name: str) -> None:
    """Puts a runner that looks in place when its option is turned on for the first time."""
    global _chosen
    if name.startswith("debug_"):
        _chosen = max(_chosen, 2 if key_reuse.watching() else 1 if nans.watching() else 0)
        root.run_with(_RUNNERS[_chosen])


config.listen(_choose)
_choose("debug_")
