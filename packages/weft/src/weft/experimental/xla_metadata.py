"""Words for XLA about operations: the frontend attributes of its programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..base.source_info import XLA_METADATA, named_scope
from ..base.tree import tree_map
from ..core.trace import Tracer
from ..lax.common import operand
from ..primitives.metadata import xla_metadata_value_p

__all__ = ["set_xla_metadata"]


def set_xla_metadata(x: Any = None, **metadata: Any) -> Any:
    """Tells XLA something about operations. It reads some attributes (`_xla_…`) and passes others on to tools;
    they never change values, and mean nothing to other backends.

    Args:
        x: None, for a context manager, also a decorator of functions, for all operations that are traced in it; or a
            pytree of arrays, for the operations that make these.
        **metadata: attributes by name: a str, or a bool or number, which is written as one. None leaves an attribute of
            an outer block out.

    Returns:
        context manager; or `x`, for arrays.

    Raises:
        TypeError: for a value of another type.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.experimental.xla_metadata import set_xla_metadata
        >>> @weft.jit
        ... def f(x):
        ...     with set_xla_metadata(part="encoder"):
        ...         y = jnp.sin(x)
        ...     return set_xla_metadata(2 * y, part="decoder")
        >>> f(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    words = {name: _word(name, value) for name, value in metadata.items()}
    if x is None:
        return _scope(json.dumps(words))
    kept = tuple([(name, word) for name, word in words.items() if word is not None])
    mark = lambda v: xla_metadata_value_p.bind(v, xla_metadata_kvs=kept) if isinstance(v, Tracer) else v
    return tree_map(lambda v: mark(operand("set_xla_metadata", v)), x)


@contextmanager
def _scope(words: str) -> Iterator[None]:
    with named_scope(XLA_METADATA + words):
        yield


def _word(name: str, value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (bool, int, float)):
        return str(value).lower() if isinstance(value, bool) else str(value)
    raise TypeError(f"set_xla_metadata takes a str, a bool or a number for each attribute; got {value!r} for {name!r}.")


def __dir__() -> list[str]:
    return list(__all__)
