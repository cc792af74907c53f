"""xla_metadata_value: a value, with words for the compiler about the operation that makes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..core.primitive import Primitive, unsupported
from ..core.shardings import same
from ..core.wire import stays

if TYPE_CHECKING:
    from ..core.trace import Axis
    from ..core.types import Dims, Value

xla_metadata_value_p = Primitive(
    "xla_metadata_value", basic=False, wire=stays("words for one compiler mean nothing to another")
)


def _jvp(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[Value, Value]:
    """Its words are about the value, not about the derivative."""
    return xla_metadata_value_p.bind(*primals, **params), tangents[0]


def _batch(axis: Axis, args: Sequence[Value], dims: Dims, *, xla_metadata_kvs: Any) -> tuple[Value, Any]:
    return xla_metadata_value_p.bind(args[0], xla_metadata_kvs=xla_metadata_kvs), dims[0]


xla_metadata_value_p.abstract = lambda x, *, xla_metadata_kvs: x
xla_metadata_value_p.reference = lambda x, *, xla_metadata_kvs: x
xla_metadata_value_p.decompose = lambda x, *, xla_metadata_kvs: x
xla_metadata_value_p.jvp, xla_metadata_value_p.batch = _jvp, _batch
xla_metadata_value_p.transpose = unsupported("xla_metadata_value stands in no derivative, so it has no transpose.")
xla_metadata_value_p.shard, xla_metadata_value_p.linear_in_sums = same, True
