"""Looking at how a value lies over devices, also inside compiled programs, where the compiler chooses."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..core import effects
from ..core.primitive import Primitive, unsupported

if TYPE_CHECKING:
    from ..core.trace import Axis
    from ..core.types import Dims, Value

inspect_sharding_p = Primitive("inspect_sharding", multiple_results=True)
_DEBUG = frozenset([effects.debug])


def _jvp(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[Any, Any]:
    inspect_sharding_p.bind(*primals, **params)
    return [], []


def _batch(axis: Axis, args: Sequence[Value], dims: Dims, **params: Any) -> tuple[Any, Any]:
    inspect_sharding_p.bind(*args, **params)      # of the whole batch
    return [], []


inspect_sharding_p.cache = None      # functions must not be kept alive by a cache of types
inspect_sharding_p.abstract = lambda aval, *, callback: []
inspect_sharding_p.effects = lambda params: _DEBUG
inspect_sharding_p.transpose = unsupported("inspect_sharding computes nothing, so there is nothing to transpose")
inspect_sharding_p.jvp, inspect_sharding_p.batch = _jvp, _batch
inspect_sharding_p.reference = lambda x, *, callback: []      # a host value lies nowhere
