"""Groups of operations that XLA is to schedule together."""

from __future__ import annotations

from functools import wraps
from typing import Any, Callable, TypeVar

from .xla_metadata import set_xla_metadata

__all__ = ["scheduling_group", "xla_metadata_call"]

_F = TypeVar("_F", bound=Callable[..., Any])


def scheduling_group(name: str) -> Callable[[_F], _F]:
    """Decorator of functions whose operations XLA is to schedule together, as one group of that name.

    Args:
        name: str.

    Returns:
        decorator; the function's results are the same.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.experimental.scheduling_groups import scheduling_group
        >>> @weft.jit
        ... @scheduling_group("loads")
        ... def f(x):
        ...     return jnp.sin(x) * 2
        >>> f(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return lambda f: xla_metadata_call(f, scheduling_group=name)


def xla_metadata_call(f: Callable[..., Any] | None = None, **meta: Any) -> Any:
    """A function whose operations all have certain attributes in XLA's programs; see `set_xla_metadata`.

    Args:
        f: function of anything; None for a decorator.
        **meta: attributes by name, each a str, a bool or a number.

    Returns:
        function like f, with the same results; or a decorator.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.experimental.scheduling_groups import xla_metadata_call
        >>> weft.jit(xla_metadata_call(jnp.cos, part="encoder"))(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    if f is None:
        return lambda g: xla_metadata_call(g, **meta)

    @wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        with set_xla_metadata(**meta):
            return f(*args, **kwargs)

    return call


def __dir__() -> list[str]:
    return list(__all__)
