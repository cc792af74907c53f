"""linear_call: a linear function whose transpose the user gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..base.avals import tangent_aval
from ..core.carries import REST, Carries, Runs
from ..core.jaxpr import ClosedJaxpr, eval_jaxpr
from ..core.primitive import AsDecomposed, Primitive, UndefinedPrimal, Zero
from ..core.wire import IS_OPENED
from ..core.trace import get_aval
from ..base.errors import at_user_line
from ..base.source_info import api_boundary
from ..transforms.batch import batch_jaxpr, to_front
from ..transforms.jvp import instantiate
from ..transforms.stage import hoist_tracers, stage
from ..base.tree import tree_flatten, tree_unflatten
from .call import collective_names
from .common import avals_of
from .custom_jvp import name_of

if TYPE_CHECKING:
    from ..core.trace import Axis
    from ..core.types import Dims, Value
    from ..base.tree import PyTreeDef

linear_call_p = Primitive("linear_call", multiple_results=True, wire=IS_OPENED)

# Operands: the closed-over values of both functions, the residuals (num_res counts both), the linear arguments.


def _jvp(primals: Sequence[Value], tangents: Sequence[Value], *, num_res: int, **params: Any) -> tuple[Any, Any]:
    if any(type(t) is not Zero for t in tangents[:num_res]):
        raise TypeError(
            at_user_line(
                "linear_call can't be differentiated with respect to its residual_args (or what its functions close"
                " over): it says only how the function depends on linear_args. Use custom_jvp or custom_vjp for the"
                " other derivative."
            )
        )
    outs = linear_call_p.bind(*primals, num_res=num_res, **params)
    ts = linear_call_p.bind(*primals[:num_res], *map(instantiate, tangents[num_res:]), num_res=num_res, **params)
    return outs, ts


def _transpose(
    cts: Sequence[Value], *args: Value, callee: Callable[..., Any], transpose: Callable[..., Any], num_res: int
) -> list[Value | None]:
    if any(type(x) is UndefinedPrimal for x in args[:num_res]):
        raise NotImplementedError(
            "linear_call is linear in its linear_args only; it can't be transposed with respect to residual_args."
        )
    back = linear_call_p.bind(
        *args[:num_res], *map(instantiate, cts), callee=transpose, transpose=callee, num_res=num_res
    )
    return [*[None] * num_res, *back]


def _batch(
    axis: Axis,
    args: Sequence[Value],
    dims: Dims,
    *,
    callee: Callable[..., Any],
    transpose: Callable[..., Any],
    num_res: int,
) -> tuple[Any, Any]:
    res = [x if d is None else to_front(axis, x, d) for x, d in zip(args[:num_res], dims)]
    linear = [to_front(axis, x, d) for x, d in zip(args[num_res:], dims[num_res:])]
    flags = [d is not None for d in dims[:num_res]]
    batched = lambda jaxpr: batch_jaxpr(jaxpr, axis, [*flags, *[True] * (len(jaxpr.in_avals) - num_res)], True)[0]
    outs = linear_call_p.bind(*res, *linear, callee=batched(callee), transpose=batched(transpose), num_res=num_res)
    return outs, [0] * len(outs)


linear_call_p.carries = Carries(
    Runs.ONCE,
    {"callee": ("residuals", "linear")},
    {"residuals": "num_res", "linear": REST},
    aside=("transpose",),
)
linear_call_p.abstract = lambda *avals, callee, **_: list(callee.out_avals)
linear_call_p.effects = lambda params: params["callee"].effects
linear_call_p.axis_names = lambda params: collective_names(params["callee"], params["transpose"])
linear_call_p.decompose = lambda *args, callee, **_: eval_jaxpr(callee.jaxpr, callee.consts, *args)
linear_call_p.impl = linear_call_p.decompose
linear_call_p.reference = AsDecomposed(linear_call_p)
linear_call_p.jvp, linear_call_p.transpose, linear_call_p.batch = _jvp, _transpose, _batch


@api_boundary
def linear_call(
    fun: Callable[..., Any], fun_transpose: Callable[..., Any], residual_args: Any, linear_args: Any
) -> Any:
    """Calls `fun(residual_args, linear_args)`, which is linear in its second argument, and has a transpose that you
    define.

    Args:
        fun: function of two pytrees of arrays, of any dtype and shape.
        fun_transpose: function (residual_args, cotangent of the result) -> cotangent of `linear_args`.
        residual_args: pytree of arrays, the first argument.
        linear_args: pytree of arrays, the second argument.

    Returns:
        the result of `fun`.

    Raises:
        TypeError: if the transpose's results are not like `linear_args`, and for derivatives with respect to
            `residual_args`.

    Example:
        >>> import weft
        >>> from weft.custom_derivatives import linear_call
        >>> f = lambda x: linear_call(lambda r, x: x / r, lambda r, t: t / r, 4., x)
        >>> weft.linear_transpose(f, 1.0)(2.0)
        (Array(0.5, dtype=float32, weak_type=True),)
    """
    res, res_tree = tree_flatten(residual_args)
    linear, linear_tree = tree_flatten(linear_args)
    trees: list[Any] = []

    def flat(f: Callable[..., Any], tree: PyTreeDef) -> Callable[..., Any]:
        def run(*xs: Value) -> Any:
            out, out_tree = tree_flatten(
                f(tree_unflatten(res_tree, xs[: len(res)]), tree_unflatten(tree, xs[len(res) :]))
            )
            trees.append(out_tree)
            return out

        return run

    linear_avals = avals_of(linear)
    jaxpr, outer = hoist_tracers(*stage(flat(fun, linear_tree), [*avals_of(res), *linear_avals], name_of(fun)))
    ct_avals = [tangent_aval(a) for a in jaxpr.out_avals]
    back, back_outer = hoist_tracers(
        *stage(flat(fun_transpose, trees[0]), [*avals_of(res), *ct_avals], name_of(fun_transpose))
    )
    if trees[1] != linear_tree:
        raise TypeError(
            f"transpose output pytree structure must match that of linear inputs, got output structure {trees[1]} and"
            f" input structure {linear_tree}."
        )
    for have, want in zip(back.out_avals, linear_avals):
        if have.shape != want.shape or have.dtype != want.dtype:
            raise TypeError(
                f"transpose output types must match those of linear inputs, got {have.str_short()} for an input of type"
                f" {want.str_short()}."
            )
    n, m = len(outer), len(back_outer)
    shared = [*outer, *back_outer, *res]
    jaxpr = _taking(jaxpr, [*range(n), *range(n + m, len(shared))], [get_aval(x) for x in shared])
    back = _taking(back, [*range(n, len(shared))], [get_aval(x) for x in shared])
    outs = linear_call_p.bind(*shared, *linear, callee=jaxpr, transpose=back, num_res=len(shared))
    return tree_unflatten(trees[0], outs)


def _taking(closed: ClosedJaxpr, used: list[int], shared: Any) -> ClosedJaxpr:
    """The program with all that is shared as its leading arguments, of which it uses some."""
    if len(used) == len(shared):
        return closed
    n = len(used)
    return ClosedJaxpr(
        *stage(
            lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *[xs[i] for i in used], *xs[len(shared) :]),
            [*shared, *closed.in_avals[n:]],
        )
    )
