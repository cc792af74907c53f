"""The inspection functions that the array API standard requires of a namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..base import dtypes
from ..runtime import device as _device

if TYPE_CHECKING:
    from ..typing import Placement

__all__ = ["__array_namespace_info__"]
_KINDS = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]


class __array_namespace_info__:
    """The namespace's capabilities, devices and dtypes, as the array API standard (2025.12) asks for them; 64-bit
    dtypes are there where they are turned on.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.__array_namespace_info__().default_dtypes()['real floating'] == jnp.float32
        True
    """

    def capabilities(self) -> dict[str, Any]:
        """The optional capabilities of the standard. Boolean masks and shapes that depend on data work eagerly, but not
        while a function is traced, so they are reported as missing.
        """
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> Any:
        """None: arrays are made on the default device of the configuration."""
        return None

    def devices(self) -> tuple[Any, ...]:
        """The values that functions take as `device`."""
        return (None, *_device.devices())

    def default_dtypes(self, *, device: Placement = None) -> dict[str, Any]:
        """The dtypes that numbers get, by kind."""
        return {
            kind: dtypes.canonicalize(dtypes.dtype(name))
            for kind, name in {
                "real floating": "float64",
                "complex floating": "complex128",
                "integral": "int64",
                "indexing": "int64",
            }.items()
        }

    def dtypes(self, *, device: Placement = None, kind: str | tuple[Any, ...] | None = None) -> dict[str, Any]:
        """The standard's dtypes by name: all, or those of a kind, or of several.

        Raises:
            ValueError: for an unknown kind.
        """
        kinds = tuple(_KINDS) if kind is None else kind if isinstance(kind, tuple) else (kind,)
        unknown = [k for k in kinds if not isinstance(k, str) or k not in _KINDS]
        if unknown:
            raise ValueError(
                f"__array_namespace_info__.dtypes: kind takes {', '.join(map(repr, _KINDS))} or a tuple of them, got"
                f" {unknown[0]!r}."
            )
        found = {name: dtypes.dtype(name) for k in kinds for name in _KINDS[k]}
        return {name: dt for name, dt in found.items() if dtypes.canonicalize(dt) == dt}
