"""Functions whose author says what each device computes of arrays over several devices, and how these are divided."""

from __future__ import annotations

import inspect
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..base.errors import UnexpectedTracerError, at_user_line
from ..base.tree import tree_flatten, tree_unflatten
from ..core.trace import Tracer, get_aval
from ..higher_order.custom_partitioning import Partitioning, custom_partitioning_p as custom_partitioning_p
from ..higher_order.sharding_rule import (
    BATCHING as BATCHING,
    ArrayMapping as ArrayMapping,
    CompoundFactor as CompoundFactor,
    SdyShardingRule as SdyShardingRule,
    parse_rule,
)
from ..lax.common import operand
from ..transforms.stage import stage_closed

if TYPE_CHECKING:
    from ..base.tree import PyTreeDef
    from ..core.types import Value

__all__ = [
    "BATCHING",
    "ArrayMapping",
    "CompoundFactor",
    "SdyShardingRule",
    "custom_partitioning",
    "custom_partitioning_p",
]


class custom_partitioning:
    """A function whose program on several devices its author writes: `def_partition` says what each of them computes,
    and how arrays are divided.

    On one device, inside of `shard_map`, and on backends whose programs run on one device, it is the function itself.

    Args:
        fun: function of pytrees of arrays of any dtypes and shapes, and of static arguments.
        static_argnums: positions of the static arguments, which must hash; rules get them first.

    Raises:
        ValueError: at a call, if `def_partition` has not been called.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.experimental.custom_partitioning import custom_partitioning
        >>> @custom_partitioning
        ... def rows_fft(x):
        ...     return jnp.fft.fft(x)
        >>> def partition(mesh, arg_shapes, result_shape):
        ...     rows = weft.NamedSharding(mesh, weft.P(arg_shapes[0].sharding.spec[0], None))
        ...     return mesh, jnp.fft.fft, rows, (rows,)
        >>> rows_fft.def_partition(partition, sharding_rule="i j -> i j", need_replication_factors=("j",))
        >>> weft.jit(rows_fft)(jnp.ones((8, 4))).shape
        (8, 4)
    """

    def __init__(self, fun: Callable[..., Any], static_argnums: Sequence[int] | int = ()):
        update_wrapper(self, fun)
        self.fun = fun
        self.static_argnums = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
        self.rules: tuple[Any, ...] | None = None

    def def_partition(
        self,
        partition: Callable[..., Any],
        infer_sharding_from_operands: Callable[..., Any] | None = None,
        propagate_user_sharding: Callable[..., Any] | None = None,
        decode_shardings: bool = True,
        sharding_rule: str | SdyShardingRule | Callable[..., Any] | None = None,
        *,
        reduction_factors: Sequence[str] = (),
        need_replication_factors: Sequence[str] = (),
        permutation_factors: Sequence[str] = (),
        **factor_sizes: int,
    ) -> None:
        """Says how the function runs on several devices.

        Args:
            partition: function `(*static, mesh, arg_shapes, result_shape) -> (mesh, fun, result_shardings,
                arg_shardings)`. The shapes are pytrees of `ShapeDtypeStruct`s as the function's arguments and results,
                with the shardings that the compiler would choose; `fun` computes a device's part of the results from
                its part of the arguments, and may use collectives over the axes of the mesh.
            infer_sharding_from_operands: for another partitioner than the one that XLA has; give `sharding_rule`.
            propagate_user_sharding: likewise.
            decode_shardings: bool; if False, `partition` gets XLA's own descriptions of shardings.
            sharding_rule: how axes correspond: text such as 'i j, j k -> i k', a `SdyShardingRule`, or a function
                `(*static, mesh, arg_shapes, result_shape)` that returns one of these.
            reduction_factors, need_replication_factors, permutation_factors: names of axes of the rule's text over
                which the function sums, which are not divided, and along which elements move.
            factor_sizes: sizes of the factors of compound axes.

        Raises:
            ValueError: for a rule that can't be read.
        """
        kinds = {
            "reduction_factors": tuple(reduction_factors),
            "need_replication_factors": tuple(need_replication_factors),
            "permutation_factors": tuple(permutation_factors),
        }
        rule = sharding_rule
        if isinstance(rule, str):
            rule = parse_rule(rule, **kinds, **factor_sizes)
        elif any(kinds.values()) or factor_sizes:
            raise ValueError("kinds and sizes of factors belong to a rule that is text; SdyShardingRule takes its own.")
        asks = rule is None and not (infer_sharding_from_operands is None and propagate_user_sharding is None)
        self.rules = (partition, decode_shardings, rule, asks)

    def __call__(self, *args: Value, **kwargs: Value) -> Any:
        name = getattr(self.fun, "__name__", "custom_partitioning")
        if self.rules is None:
            raise ValueError(
                at_user_line(
                    f"custom_partitioning: nobody has said how {name} is divided. Call {name}.def_partition(…) first."
                )
            )
        if kwargs:
            bound = inspect.signature(self.fun).bind(*args, **kwargs)
            bound.apply_defaults()
            if bound.kwargs:
                raise TypeError(
                    at_user_line(
                        f"custom_partitioning: {name} has arguments without a position ({', '.join(bound.kwargs)});"
                        " rules know arguments by position."
                    )
                )
            args = bound.args
        static = {k % len(args) for k in self.static_argnums} if args else set()
        fixed = {k: args[k] for k in static}
        flat, tree = tree_flatten(tuple([x for k, x in enumerate(args) if k not in static]))
        values = [operand(name, x) for x in flat]

        box: list[PyTreeDef] = []

        def function(*xs: Value) -> list[Value]:
            rest = iter(tree_unflatten(tree, xs))
            leaves, out_tree = tree_flatten(
                self.fun(*[fixed[k] if k in fixed else next(rest) for k in range(len(args))])
            )
            box.append(out_tree)
            return leaves

        call = stage_closed(function, [get_aval(x) for x in values], f"the function {name}")
        if any(isinstance(c, Tracer) for c in call.consts):
            raise UnexpectedTracerError(
                at_user_line(
                    f"custom_partitioning: {name} closes over a traced value. Give it to the function as an argument:"
                    " it has to be divided like the others."
                )
            )
        how = Partitioning(name, tuple(fixed[k] for k in sorted(fixed)), tree, box[0], *self.rules)
        outs = custom_partitioning_p.bind(*values, call=call, how=how)
        return tree_unflatten(box[0], outs)


def __dir__() -> list[str]:
    return list(__all__)
