"""Memories of devices, for `weft.device_put`.

Example:
    >>> import weft, weft.numpy as jnp
    >>> weft.device_put(jnp.ones(3), weft.memory.Space.Host).sharding.memory_kind
    'pinned_host'
"""

from .base.memory import MemorySpace as Space

__all__ = ["Space"]


def __dir__() -> list[str]:
    return list(__all__)
