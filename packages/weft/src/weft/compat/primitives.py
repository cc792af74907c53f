"""jax.extend.core.primitives: the language's primitives by jax's names."""

from __future__ import annotations

from .. import random as _random  # noqa: F401  its primitives enter the registry
from ..core.primitive import registry
from ..lax import linalg as _linalg, primitives as _own  # noqa: F401  more of them
from .foreign import Primitive, call_p as call_p, closed_call_p as closed_call_p
from ..primitives import references as _references  # noqa: F401  (registers get, swap and the like)

_NAMES = {
    "remat": "remat2",
    "add_jaxvals": "add_any",
    "get": "ref_get",
    "swap": "ref_swap",
    "stop_gradient": "stop_gradient",
    "linear_solve": "custom_linear_solve",
    "empty2": "empty_ref",
    **{f"scatter_{kind}": f"scatter-{kind}" for kind in ("add", "sub", "max", "min", "mul")},
}
# nothing binds it: the function `stop_gradient` gives a value without a tangent
stop_gradient_p = Primitive("stop_gradient")


def __getattr__(name: str):
    if name.endswith("_p"):
        base = _NAMES.get(name[:-2], name[:-2])
        if base in registry:
            return registry[base]
        if hasattr(_own, name):
            return getattr(_own, name)
    raise AttributeError(
        f"module 'jax.extend.core.primitives' has no attribute {name!r}: weft, which replaces jax here, has no such"
        " primitive."
    )


def __dir__():
    return sorted(
        {f"{name}_p" for name in registry if name.isidentifier()}
        | {f"{name}_p" for name, own in _NAMES.items() if own in registry}
        | {name for name in dir(_own) if name.endswith("_p")}
        | {"call_p", "closed_call_p", "stop_gradient_p"}
    )
