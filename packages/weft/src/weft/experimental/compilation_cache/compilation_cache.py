"""The folder of the persistent compile cache.

XLA's compiled programs are kept there and found again by later processes. Whoever can write to the folder can run code
in the processes that read it: share it with nobody else.
"""

from __future__ import annotations

import os

from ...base.config import config


def set_cache_dir(path: str | os.PathLike) -> None:
    """Keeps compiled programs in a folder from now on, as `config.update("jax_compilation_cache_dir", path)` does.

    Args:
        path: the folder, which is made if it does not exist; str or path.

    Returns:
        None

    Example:
        >>> import tempfile, weft
        >>> from weft.experimental.compilation_cache import compilation_cache
        >>> compilation_cache.set_cache_dir(tempfile.mkdtemp())
        >>> weft.config.update("jax_compilation_cache_dir", None)
    """
    config.update("jax_compilation_cache_dir", os.fspath(path))


def reset_cache() -> None:
    """Does nothing. JAX opens its cache once, and programs written for it call this function to open it again. weft
    reads the options at each compilation.

    Returns:
        None

    Example:
        >>> from weft.experimental.compilation_cache import compilation_cache
        >>> compilation_cache.reset_cache()
    """
