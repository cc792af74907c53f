"""The reference interpreter: a trace that applies the primitives' reference rules to NumPy arrays. The oracle of
every backend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..base import dtypes
from ..base.annotations import override
from ..base.avals import AbstractToken, keeping_64_bits, shaped
from ..base.errors import BackendError
from ..base.host import np
from .jaxpr import ClosedJaxpr, Jaxpr, TypedScalar, eval_jaxpr
from .primitive import Missing, Primitive, Unsupported
from .trace import Trace, current_trace, get_aval, is_array, tracing

if TYPE_CHECKING:
    from ..base.avals import AbstractValue
    from .types import Params, Value


class ReferenceTrace(Trace):
    """Computes each primitive by its reference rule. A primitive without one, such as a library's own, is computed by
    its decomposition.
    """

    @override
    def process(self, primitive: Primitive, args: tuple[Value, ...], params: Params) -> Any:
        if isinstance(primitive.reference, Unsupported):
            if primitive.decompose is None:
                why = (
                    "it has no reference rule and no decomposition"
                    if isinstance(primitive.reference, Missing)
                    else primitive.reference.why
                )
                raise BackendError(f"the reference interpreter can't run {primitive.name}: {why}.")
            with keeping_64_bits([_aval(x) for x in args]):
                out = primitive.decompose(*args, **params)
            return list(out) if primitive.multiple_results else out
        out = primitive.reference(*[_array(x) for x in args], **params)
        avals = primitive.abstract_eval(tuple([_aval(x) for x in args]), params)
        return (
            [_checked(primitive, o, a) for o, a in zip(out, avals)]
            if primitive.multiple_results
            else _checked(primitive, out, avals)
        )


def _aval(x: Value) -> AbstractValue:
    """The exact type of a value. NumPy arrays come from the program here, so that they keep 64-bit types, which arrays
    from users would lose.
    """
    return shaped(x.shape, dtypes.host_dtype(x)) if isinstance(x, (np.ndarray, np.generic)) else get_aval(x)


def _array(x: Value) -> Any:
    aval = _aval(x)
    if isinstance(aval, AbstractToken):
        return x
    return np.asarray(x.val if type(x) is TypedScalar else x._host() if is_array(x) else x, aval.dtype)


def _checked(primitive: Primitive, out: Any, aval: AbstractValue) -> Any:
    if isinstance(aval, AbstractToken):
        return out
    out = np.asarray(out.val if type(out) is TypedScalar else out, aval.dtype)
    assert out.shape == aval.shape, f"the reference rule of {primitive} gives shape {out.shape} where {aval} is derived"
    return out


_trace = ReferenceTrace()


def interpret(jaxpr: Jaxpr | ClosedJaxpr, args: Sequence[Value]) -> list[Any]:
    """The results of a jaxpr (closed, or without constvars) for NumPy arguments.

    A jaxpr inside another is interpreted by the trace that interprets the other, which may be a ReferenceTrace of
    another kind.
    """
    closed = jaxpr if isinstance(jaxpr, ClosedJaxpr) else ClosedJaxpr(jaxpr, [])
    trace = current_trace()
    with tracing(trace if isinstance(trace, ReferenceTrace) else _trace):
        return [_array(x) for x in eval_jaxpr(closed.jaxpr, closed.consts, *args)]
