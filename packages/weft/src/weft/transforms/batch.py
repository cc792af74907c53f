"""Batching: from a function of one example to a function of a stack of examples."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..base.annotations import override
from ..core.leaks import check_leaks, watch_origins
from ..core.jaxpr import ClosedJaxpr, eval_jaxpr
from ..core.memo import memoized_closed
from ..core.primitive import Primitive
from ..core.shardings import with_axis, without_axis
from ..core.trace import Axis, PairTrace, Trace, Tracer, current_trace, get_aval, mapped_axes, tracing
from ..primitives.linear import broadcast_to_axis, moveaxis, scalar_as_array
from .stage import JaxprTrace

if TYPE_CHECKING:
    from ..base.avals import AbstractValue
    from ..core.types import Params, Value


class BatchTracer(Tracer):
    """An array with an axis that its aval does not have: the batch axis `dim` of `val`."""

    __slots__ = ("val", "dim", "_aval")

    def __init__(self, trace: "BatchTrace", val: Value, dim: int):
        self._trace, self.val, self.dim = trace, val, dim
        aval = get_aval(val)
        self._aval = without_axis(aval, dim)

    @override
    @property
    def aval(self) -> AbstractValue:
        return self._aval

    @override
    def __repr__(self) -> str:
        return (
            f"VmapTracer(aval={self._aval.str_short(short_dtypes=False)},"
            f" batched={get_aval(self.val).str_short(short_dtypes=False)})"
        )


class BatchTrace(PairTrace):
    """Applies batching rules, evaluated under the parent."""

    def __init__(self, parent: Trace, axis: Axis):
        self.parent, self.axis, self.closed = parent, axis, False

    # batching rules of functions get this trace instead of its axis: the functions may close over values of this very
    # trace
    @property
    def size(self) -> int:
        return self.axis.size

    @property
    def placed(self) -> Any:
        return self.axis.placed

    def closed_over_by(self, fun: Callable[..., Any], args: Sequence[Value]) -> bool:
        """Whether a function of values that are not batched gives some that are, because it closes over them."""
        parent, self.parent = self.parent, JaxprTrace("a function under vmap")
        try:
            with tracing(self):
                return any(type(x) is BatchTracer and x._trace is self for x in fun(*map(scalar_as_array, args)))
        except Exception:  # the actual call raises the error again
            return False
        finally:
            self.parent = parent

    @override
    def split(self, x: Value) -> tuple[Value, int | None]:
        """(value, batch axis or None)."""
        if type(x) is BatchTracer and x._trace is self:
            return x.val, x.dim
        return x, None

    @override
    def join(self, val: Value, dim: int | None) -> Value:
        return val if dim is None else BatchTracer(self, val, dim)

    @override
    def process(self, primitive: Primitive, args: tuple[Value, ...], params: Params) -> Any:
        form = params[primitive.function_form] if primitive.function_form is not None else None
        function = None if isinstance(form, ClosedJaxpr) else form
        mine = (
            primitive.axis_names is not None
            and self.axis.name is not None
            and self.axis.name in primitive.axis_names(params)
        )
        if not mine and not primitive.makes_reference:
            for x in args:
                if type(x) is BatchTracer and x._trace is self:
                    break
            else:
                if function is None or not self.closed_over_by(function, args):
                    return self.pass_on(primitive, args, params)
        axis: Any = self.axis if function is None else self
        return self.by_rule(partial(primitive.batch, axis), primitive, args, params)


def batch_flat(
    fun: Callable[..., Any], axis: Axis | BatchTrace, args: Sequence[Value], dims: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Runs `fun` (flat in, flat out) with each argument batched along its dim: (results, their dims or None)."""
    if isinstance(axis, BatchTrace):
        return _batch_again(axis, fun, args, dims)
    trace = BatchTrace(current_trace(), axis)
    watch_origins(trace)
    with tracing(trace), mapped_axes(axis):
        outs = fun(*[trace.join(x, d) for x, d in zip(args, dims)])
    pairs = [trace.split(x) for x in outs]
    trace.closed = True
    del outs
    check_leaks(trace, "a function under vmap")
    return [v for v, _ in pairs], [d for _, d in pairs]


def _batch_again(
    trace: BatchTrace, fun: Callable[..., Any], args: Sequence[Value], dims: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """The same under an existing trace. A trace that has ended, as the trace of the forward pass has in the backward
    pass, is open again meanwhile.
    """
    parent, trace.parent = trace.parent, current_trace()
    closed, trace.closed = trace.closed, False
    try:
        with tracing(trace), mapped_axes(trace.axis):
            pairs = [trace.split(x) for x in fun(*[trace.join(x, d) for x, d in zip(args, dims)])]
    finally:
        trace.parent, trace.closed = parent, closed
    return [v for v, _ in pairs], [d for _, d in pairs]


def to_front(axis: Axis, x: Value, dim: int | None) -> Value:
    """`x` with its batch axis first, or broadcast along a new first axis if it has no batch axis."""
    return broadcast_to_axis(x, axis.size, axis.placed) if dim is None else moveaxis(x, dim, 0)


def batch_jaxpr(
    closed: ClosedJaxpr, axis: Axis, batched: Sequence[bool], force_out: Sequence[bool] | bool = False
) -> tuple[ClosedJaxpr, list[bool]]:
    """The jaxpr for arguments batched along axis 0 if `batched` says so, and which results are batched (along
    axis 0).
    """
    if isinstance(force_out, bool):
        force_out = (force_out,) * len(closed.out_avals)
    return _batch_jaxpr(closed, axis, tuple(batched), tuple(force_out))


@memoized_closed
def _batch_jaxpr(
    closed: ClosedJaxpr, axis: Axis, batched: Sequence[bool], force_out: Sequence[bool]
) -> tuple[ClosedJaxpr, list[bool]]:
    trace = JaxprTrace("a batched function")
    args = [
        trace.new_arg(with_axis(a, axis.size, 0, axis.placed) if b else a) for a, b in zip(closed.in_avals, batched)
    ]
    with tracing(trace):
        outs, dims = batch_flat(
            lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs), axis, args, [0 if b else None for b in batched]
        )
        out_batched = [d is not None or force for d, force in zip(dims, force_out)]
        outs = [to_front(axis, x, d) if b else x for x, d, b in zip(outs, dims, out_batched)]
    jaxpr, consts = trace.finish(outs)
    return ClosedJaxpr(jaxpr, consts), out_batched
