"""The execution of primitives by the root trace. It checks results and keys if the debugging options require it."""

from __future__ import annotations

from ..base.config import config
from ..core.trace import root
from . import key_reuse, nans
from .dispatch import run_primitive

# Each checks more than the previous one, and at each call reads whether the options of its thread require it.
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
