"""The interface of a family of steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..maker import Maker


class Family(NamedTuple):
    """make adds a step to what a maker makes; weight: how often that is wanted; finite: what infinities give is not
    said; portable: it can leave the process.
    """

    make: Callable[[Maker], object]
    weight: float = 1.0
    finite: bool = False
    portable: bool = True
