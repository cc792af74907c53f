"""call_exported: an exported program inside another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..core.carries import Carries, Runs
from ..core.jaxpr import eval_jaxpr
from ..core.primitive import AsDecomposed, Primitive, unsupported
from ..core.wire import IS_OPENED
from ..transforms.batch import batch_jaxpr, to_front

if TYPE_CHECKING:
    from ..core.jaxpr import ClosedJaxpr
    from ..core.trace import Axis
    from ..core.types import Dims, Value

call_exported_p = Primitive("call_exported", multiple_results=True, wire=IS_OPENED)


def _batch(
    axis: Axis, args: Sequence[Value], dims: Dims, *, jaxpr: ClosedJaxpr, name: str, platforms: tuple[str, ...] | None
) -> tuple[Any, Any]:
    new, batched = batch_jaxpr(jaxpr, axis, [d is not None for d in dims])
    outs = call_exported_p.bind(
        *[x if d is None else to_front(axis, x, d) for x, d in zip(args, dims)],
        jaxpr=new,
        name=name,
        platforms=platforms,
    )
    return outs, [0 if b else None for b in batched]


call_exported_p.carries = Carries(Runs.ONCE, {"jaxpr": ("operands",)})
call_exported_p.abstract = lambda *avals, jaxpr, **_: list(jaxpr.out_avals)
call_exported_p.decompose = lambda *args, jaxpr, **_: eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args)
call_exported_p.reference = AsDecomposed(call_exported_p)
call_exported_p.only_on = lambda params: None if params["platforms"] is None else (params["name"], params["platforms"])
call_exported_p.batch = _batch
call_exported_p.jvp = unsupported(
    "an exported program has a derivative in reverse mode alone (weft.grad, weft.vjp), if it was written with one"
)
call_exported_p.transpose = unsupported("an exported program is not known to be linear")
