"""The folder of the persistent compile cache.

XLA's compiled programs are kept there and found again by later processes. Whoever can write to the folder can run code
in the processes that read it: share it with nobody else.
"""

from __future__ import annotations

import os

from ...base.config import config


def set_cache_dir(path: str | os.PathLike) -> None:
    """Keeps compiled programs in `path` from now on, as `config.update("jax_compilation_cache_dir", path)` does.

    Example:
        >>> import tempfile, weft
        >>> from weft.experimental.compilation_cache import compilation_cache
        >>> compilation_cache.set_cache_dir(tempfile.mkdtemp())
        >>> weft.config.update("jax_compilation_cache_dir", None)
    """
    config.update("jax_compilation_cache_dir", os.fspath(path))


def reset_cache() -> None:
    """For programs written for jax, which opens its cache once: here the options are read at each compilation, and
    nothing has to be closed.
    """
