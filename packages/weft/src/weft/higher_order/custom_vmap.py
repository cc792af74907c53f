"""custom_vmap: functions whose batching the user gives by a rule."""

from __future__ import annotations

from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..base import dtypes
from ..base.avals import tangent_aval
from ..core.carries import Carries, Runs
from ..core.jaxpr import eval_jaxpr
from ..core.primitive import AsDecomposed, Primitive, Zero, unsupported
from ..core.wire import IS_OPENED
from ..core.trace import get_aval
from ..base.errors import at_user_line
from ..primitives.linear import broadcast_to_axis
from ..base.source_info import api_boundary
from ..transforms.batch import batch_jaxpr, to_front
from ..transforms.jvp import instantiate, jvp_flat, jvp_jaxpr
from ..transforms.stage import hoist_tracers, stage
from ..base.tree import tree_flatten, tree_structure, tree_unflatten, treedef_tuple
from .call import collective_names
from .custom_jvp import Rule, bound_method, name_of, resolve
from .prefix import map_

if TYPE_CHECKING:
    from ..core.jaxpr import ClosedJaxpr
    from ..core.trace import Axis
    from ..core.types import Dims, Params, Value
    from ..transforms.linearize import PartialTrace
    from ..base.tree import PyTreeDef

custom_vmap_call_p = Primitive("custom_vmap_call", multiple_results=True, wire=IS_OPENED)

# `rule(axis_size, in_batched, *args) -> (outs, out_batched)` is flat; `in_tree` and `out_tree` are the structures of
# the user's function.


def _batch(
    axis: Axis,
    args: Sequence[Value],
    dims: Dims,
    *,
    call: ClosedJaxpr,
    rule: Callable[..., Any],
    in_tree: PyTreeDef,
    out_tree: PyTreeDef,
) -> tuple[Any, Any]:
    if all(d is None for d in dims):  # here only for a collective over the axis
        new, out_batched = batch_jaxpr(call, axis, [False] * len(args))
        return eval_jaxpr(new.jaxpr, new.consts, *args), [0 if b else None for b in out_batched]
    args = [x if d is None else to_front(axis, x, d) for x, d in zip(args, dims)]
    outs, out_batched = rule(axis.size, tuple(d is not None for d in dims), *args)
    return outs, [0 if b else None for b in out_batched]


def _jvp(
    primals: Sequence[Value],
    tangents: Sequence[Value],
    *,
    call: ClosedJaxpr,
    rule: Callable[..., Any],
    in_tree: PyTreeDef,
    out_tree: PyTreeDef,
) -> tuple[Any, Any]:
    """The derivative is a call with a batching rule too: the derivative of the rule."""
    n, n_out = len(primals), len(call.out_avals)
    live = [i for i, t in enumerate(tangents) if not (type(t) is Zero and t.aval.dtype == dtypes.float0)]
    nonzeros = [i in live for i in range(n)]
    out_live = [tangent_aval(a).dtype != dtypes.float0 for a in call.out_avals]
    both, _ = jvp_jaxpr(call, nonzeros, out_live)

    def rule_jvp(axis_size: int, in_batched: Sequence[bool], *xs: Value) -> tuple[Any, Any]:
        primal_b, tangent_b = in_batched[:n], dict(zip(live, in_batched[n:]))
        primals, tangents = list(xs[:n]), dict(zip(live, xs[n:]))
        batched = [b or tangent_b.get(i, False) for i, b in enumerate(primal_b)]
        spread = lambda x, have, want: x if have or not want else broadcast(x, axis_size)
        primals = [spread(x, have, want) for x, have, want in zip(primals, primal_b, batched)]
        ts = [
            spread(tangents[i], tangent_b[i], batched[i]) if i in tangents else Zero(tangent_aval(get_aval(primals[i])))
            for i in range(n)
        ]
        box: list[Any] = []

        def run(*ys: Value) -> Any:
            outs, out_batched = rule(axis_size, tuple(batched), *ys)
            box.append(out_batched)
            return outs

        outs, out_ts = jvp_flat(run, primals, ts)
        kept = [instantiate(t) for t, keep in zip(out_ts, out_live) if keep]
        return [*outs, *kept], [*box[0], *[b for b, keep in zip(box[0], out_live) if keep]]

    pair_in = treedef_tuple([in_tree, _of_leaves(in_tree, live, n)])
    pair_out = treedef_tuple([out_tree, _of_leaves(out_tree, [i for i, keep in enumerate(out_live) if keep], n_out)])
    outs = custom_vmap_call_p.bind(
        *primals,
        *[instantiate(tangents[i]) for i in live],
        call=both,
        rule=Rule(f"jvp_of_{rule.__name__}", rule_jvp),
        in_tree=pair_in,
        out_tree=pair_out,
    )
    ts = iter(outs[n_out:])
    return outs[:n_out], [next(ts) if keep else Zero(tangent_aval(a)) for a, keep in zip(call.out_avals, out_live)]


def broadcast(x: Value, size: int) -> Value:
    """`x` repeated along a new first axis."""
    return broadcast_to_axis(x, size)


def _of_leaves(tree: PyTreeDef, kept: Sequence[int], n: int) -> PyTreeDef:
    return tree_structure(tree_unflatten(tree, [0 if i in set(kept) else None for i in range(n)]))


def _partial_eval(trace: PartialTrace, args: tuple[Value, ...], params: Params) -> Any:
    if not any(trace.is_unknown(x) for x in args):
        return custom_vmap_call_p.bind(*args, **params)
    raise ValueError(
        at_user_line(
            "a function with a custom batching rule (custom_vmap, sequential_vmap) can't be differentiated"
            " in reverse mode, because its rule does not define the linear part. Take the gradient of its vmap instead"
            " of the vmap of its gradient, or give it a derivative with custom_vjp around it."
        )
    )


custom_vmap_call_p.carries = Carries(Runs.ONCE, {"call": ("operands",)})
custom_vmap_call_p.abstract = lambda *avals, call, **_: list(call.out_avals)
custom_vmap_call_p.effects = lambda params: params["call"].effects
custom_vmap_call_p.axis_names = lambda params: collective_names(params["call"])
custom_vmap_call_p.transpose = unsupported(
    "a function with a custom batching rule can't be transposed: the rule does not define its transpose"
)
custom_vmap_call_p.impl = lambda *args, call, **_: eval_jaxpr(call.jaxpr, call.consts, *args)
custom_vmap_call_p.decompose = custom_vmap_call_p.impl
custom_vmap_call_p.reference = AsDecomposed(custom_vmap_call_p)
custom_vmap_call_p.jvp, custom_vmap_call_p.batch, custom_vmap_call_p.partial_eval = _jvp, _batch, _partial_eval


class custom_vmap:
    """A function whose behaviour under `vmap` is given by a rule.

    `def_vmap(rule)` takes rule(axis_size, in_batched, *args) -> (out, out_batched). Batched arguments have the batch
    axis first. `in_batched` is a list with a pytree of booleans for each argument; `out_batched` is one pytree of
    booleans for the result.

    Raises:
        AttributeError: if it is called without a rule.
        ValueError: if the rule's results do not have the structure of the function's.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.custom_batching import custom_vmap
        >>> @custom_vmap
        ... def f(x): return x + 1
        >>> @f.def_vmap
        ... def rule(axis_size, in_batched, x): return x + 100, in_batched[0]
        >>> f(jnp.zeros(2)), weft.vmap(f)(jnp.zeros(2))
        (Array([1., 1.], dtype=float32), Array([100., 100.], dtype=float32))
    """

    def __init__(self, fun: Callable[..., Any]):
        update_wrapper(self, fun)
        self.fun = fun
        self.vmap_rule: Callable[..., Any] | None = None

    def def_vmap(self, vmap_rule: Callable[..., Any]) -> Callable[..., Any]:
        """Sets the rule; usable as a decorator."""
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __get__(self, obj: object, objtype: type[Any] | None = None) -> Any:
        return self if obj is None else bound_method(self, obj)

    @api_boundary
    def __call__(self, *args: Value, **kwargs: Any) -> Any:
        user_rule = self.vmap_rule
        if user_rule is None:
            raise AttributeError(
                f"No batching rule defined for custom_vmap function {name_of(self.fun)} using def_vmap."
            )
        args = resolve(self.fun, args, kwargs)
        leaves, in_tree = tree_flatten(args)
        box: list[Any] = []

        def flat(*xs: Value) -> list[Value]:
            out, tree = tree_flatten(self.fun(*in_tree.unflatten(xs)))
            box.append(tree)
            return out

        closed, outer = hoist_tracers(*stage(flat, [get_aval(x) for x in leaves], f"the function {name_of(self.fun)}"))
        n, out_tree = len(outer), box[0]
        rule = Rule(name_of(user_rule), self._flat_rule(user_rule, in_tree, out_tree, n))
        whole_tree = treedef_tuple([tree_structure([0] * n), in_tree])
        outs = custom_vmap_call_p.bind(*outer, *leaves, call=closed, rule=rule, in_tree=whole_tree, out_tree=out_tree)
        return tree_unflatten(out_tree, outs)

    def _flat_rule(
        self, user_rule: Callable[..., Any], in_tree: PyTreeDef, out_tree: PyTreeDef, n: int
    ) -> Callable[..., Any]:
        name = name_of(user_rule)

        def flat_rule(axis_size: int, in_batched: Sequence[bool], *xs: Value) -> tuple[Any, Any]:
            if any(in_batched[:n]):
                raise ValueError(
                    at_user_line(
                        f"the custom_vmap function {name_of(self.fun)} closes over a value that is mapped, which its"
                        f" rule {name} knows nothing of: pass the value as an argument."
                    )
                )
            flags = list(in_tree.unflatten(in_batched[n:]))
            result = user_rule(axis_size, flags, *in_tree.unflatten(xs[n:]))
            if not isinstance(result, (tuple, list)) or len(result) != 2:
                raise ValueError(
                    f"the custom vmap rule ({name}) must return a pair (output, output batching specification), got"
                    f" {type(result).__name__}."
                )
            outs, tree = tree_flatten(result[0])
            out_flags, flags_tree = tree_flatten(result[1])
            if tree != flags_tree:
                raise ValueError(
                    f"structure of output value and output batching specification returned by custom vmap rule ({name})"
                    f" do not match.\nOutput values: {tree}\nBatching spec: {flags_tree}"
                )
            if tree != out_tree:
                raise ValueError(
                    f"structure of output returned by custom vmap rule ({name}) does not match that of original"
                    f" custom-vmapped function.\nOriginal output: {out_tree}\nRule output: {tree}"
                )
            for x, batched in zip(outs, out_flags):
                shape = get_aval(x).shape
                if batched and shape[:1] != (axis_size,):
                    raise ValueError(
                        f"the custom vmap rule ({name}) says that an output of shape {shape} is batched; its first axis"
                        f" must have size {axis_size}."
                    )
            return outs, out_flags

        return flat_rule


def sequential_vmap(f: Callable[..., Any]) -> custom_vmap:
    """A function like `f`, which vmap calls for one element after another (`lax.map`) instead of for all at once.

    Args:
        f: function of pytrees of arrays, of any dtype and shape.

    Returns:
        `custom_vmap`: function of the same arguments and results.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.custom_batching import sequential_vmap
        >>> weft.vmap(sequential_vmap(lambda x: x * 2))(jnp.arange(3.))
        Array([0., 2., 4.], dtype=float32)
    """
    mapped = custom_vmap(f)

    @mapped.def_vmap
    def rule(axis_size: int, in_batched: Sequence[bool], *args: Value) -> tuple[Any, Any]:
        leaves, tree = tree_flatten(args)
        flags = tree_flatten(tuple(in_batched))[0]

        def one(moving: Any) -> Any:
            rest = iter(moving)
            return mapped(*tree_unflatten(tree, [next(rest) if b else x for x, b in zip(leaves, flags)]))

        out = map_(one, [x for x, b in zip(leaves, flags) if b])
        return out, tree_unflatten(tree_structure(out), [True] * tree_structure(out).num_leaves)

    return mapped
