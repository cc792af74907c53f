"""jax.extend.sharding: XLA's own descriptions of how arrays lie over devices, as bytes and as jaxlib's objects."""

from __future__ import annotations

import importlib
from typing import Any


def _hlo() -> Any:
    try:
        return importlib.import_module("jaxlib._hlo")
    except ImportError as e:
        raise ImportError(f"jax.extend.sharding is about XLA's shardings, and needs jaxlib: {e}") from e


def get_op_sharding_from_serialized_proto(sharding: bytes) -> Any:
    """XLA's OpSharding from its bytes."""
    found = _hlo().OpSharding()
    found.ParseFromString(sharding)
    return found


def get_hlo_sharding_from_serialized_proto(sharding: bytes) -> Any:
    """XLA's HloSharding from the bytes of an OpSharding."""
    return _hlo().HloSharding.from_proto(get_op_sharding_from_serialized_proto(sharding))


def get_serialized_proto_from_hlo_sharding(sharding: Any) -> bytes:
    """The bytes of the OpSharding that is an HloSharding."""
    return sharding.to_proto().SerializeToString()


def __getattr__(name: str) -> Any:
    if name == "GSPMDSharding":
        return importlib.import_module("jaxlib._jax").GSPMDSharding
    raise AttributeError(
        f"module 'jax.extend.sharding' has no attribute {name!r}: weft, which replaces jax here, does not have it."
    )


__all__ = [
    "get_hlo_sharding_from_serialized_proto",
    "get_op_sharding_from_serialized_proto",
    "get_serialized_proto_from_hlo_sharding",
]


def __dir__() -> list[str]:
    return sorted([*__all__, "GSPMDSharding"])
