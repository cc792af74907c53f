"""The garbage collector of cycles, which compilers let rest."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """No cycles are collected meanwhile. A compilation makes many objects that live until its end; the collector would
    look through all of them, and through everything else that is alive, again and again.

    Example:
        >>> import gc
        >>> with paused():
        ...     gc.isenabled()
        False
        >>> gc.isenabled()
        True
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
