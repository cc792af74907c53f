"""The primitives by the names under which jax.lax exports them: `weft.lax.add_p` and so on."""

from __future__ import annotations

from ..higher_order import composite, solve, window  # noqa: F401  their primitives enter the registry
from ..core.primitive import Primitive, registry
from ..primitives import collective, conv, fft, generator, ragged, sort, special  # noqa: F401

# names that differ
_NAMES = {
    "linear_solve": "custom_linear_solve",
    "scatter_add": "scatter-add",
    "scatter_max": "scatter-max",
    "scatter_min": "scatter-min",
    "scatter_mul": "scatter-mul",
    "scatter_sub": "scatter-sub",
}


def __getattr__(name: str) -> Primitive:
    """The primitive that `name`, as of `add_p`, stands for."""
    base = name.removesuffix("_p")
    found = registry.get(_NAMES.get(base, base)) if base != name else None
    if found is None:
        raise AttributeError(f"module 'weft.lax.primitives' has no attribute {name!r}")
    return found
