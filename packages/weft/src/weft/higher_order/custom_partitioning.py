"""custom_partitioning: a function of arrays over devices whose author says what each device computes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, NamedTuple

from ..core.carries import Carries, Runs
from ..core.interpret import interpret
from ..core.jaxpr import ClosedJaxpr, eval_jaxpr
from ..core.primitive import Primitive, unsupported
from ..core.wire import param_type, stays
from .sharding_rule import SdyShardingRule

if TYPE_CHECKING:
    from ..base.tree import PyTreeDef
    from ..core.types import Value

custom_partitioning_p = Primitive(
    "custom_partitioning",
    multiple_results=True,
    basic=False,
    wire=stays("it calls Python code while it is compiled"),
)


@param_type
class Partitioning(NamedTuple):
    """What the author of a function has said of it, and the structure of one call."""

    name: str
    static_args: tuple[Any, ...]
    in_tree: PyTreeDef
    out_tree: PyTreeDef
    partition: Callable[..., Any]
    decode_shardings: bool
    rule: SdyShardingRule | Callable[..., Any] | None
    asks_callbacks: bool  # rules of propagation are functions, which the compiler doesn't call


def _run(*args: Value, call: ClosedJaxpr, how: Partitioning) -> list[Any]:
    return eval_jaxpr(call.jaxpr, call.consts, *args)


custom_partitioning_p.carries = Carries(Runs.ONCE, {"call": ("operands",)})
custom_partitioning_p.abstract = lambda *args, call, how: list(call.out_avals)
custom_partitioning_p.reference = lambda *args, call, how: interpret(call, args)
custom_partitioning_p.decompose, custom_partitioning_p.impl = _run, _run
custom_partitioning_p.jvp = unsupported(
    "custom_partitioning has no derivative: what each device computes is known of the function alone. Give it one with"
    " weft.custom_jvp or weft.custom_vjp around the call."
)
custom_partitioning_p.transpose = unsupported(
    "custom_partitioning can't be transposed: what each device computes is known of the function alone. Give it a"
    " transpose with weft.custom_derivatives.linear_call around the call."
)
custom_partitioning_p.batch = unsupported(
    "custom_partitioning can't be batched: what each device computes is known of the function alone. Give it a rule"
    " with weft.custom_batching.custom_vmap, or apply it to one element at a time with lax.map."
)
