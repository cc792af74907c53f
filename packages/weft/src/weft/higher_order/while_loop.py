"""while_loop, and fori_loop, which is a scan where its bounds are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence, TypeVar

from ..base import dtypes, promotion
from ..base.avals import ShapedArray, SymbolicSize, tangent_aval
from ..base.config import config
from ..symbolic.dims import as_value, max_dim
from ..core.carries import Carries, PROGRAM, REST, Runs
from ..core.effects import any_io
from ..core.interpret import interpret
from ..core.jaxpr import ClosedJaxpr, Literal, eval_jaxpr
from ..core.primitive import Primitive, Zero, unsupported
from ..core.wire import COUNT, portable
from ..core.trace import get_aval, is_array, is_array_like, tracing
from ..base.source_info import api_boundary
from ..base.errors import at_user_line, type_error
from ..base.host import has_numpy, np
from ..primitives.elementwise import add, lt, select
from ..primitives.linear import broadcast_in_dim, convert, moveaxis
from ..primitives.reduce import reduce_or
from ..primitives.rules import scalar_like, shape_of
from ..transforms.batch import batch_jaxpr, to_front
from ..transforms.dce import dce_jaxpr
from ..transforms.discharge import hoist_refs
from ..transforms.jvp import instantiate, is_concrete, jvp_jaxpr
from ..transforms.linearize import split_jaxpr
from ..transforms.stage import JaxprTrace, stage
from ..base.tree import tree_flatten, tree_structure, tree_unflatten, treedef_is_leaf
from .call import collective_names
from .common import avals_of, close, describe_mismatch, reorder, selection, strengthen, trace_open
from .remat_split import recompute_whole
from .scan import _as_array, _scan, _split3, _unchanged, as_constants

if TYPE_CHECKING:
    from ..base.avals import AbstractValue
    from ..core.trace import Axis
    from ..core.types import Dims, Params, Value
    from ..transforms.linearize import PartialTrace
    from ..base.array import ArrayLike

_C = TypeVar("_C")


while_p = Primitive(
    "while",
    multiple_results=True,
    wire=portable(cond_jaxpr=PROGRAM, body_jaxpr=PROGRAM, cond_nconsts=COUNT, body_nconsts=COUNT).and_tokens(),
)


def _bind_while(
    *args: Value, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, cond_nconsts: int, body_nconsts: int
) -> list[Any]:
    (cond_jaxpr,), cond_refs = hoist_refs(cond_jaxpr)  # of a custom derivative's rule that closes over them
    (body_jaxpr,), body_refs = hoist_refs(body_jaxpr)
    cond_consts, body_consts, carry = _split3(args, cond_nconsts, body_nconsts)
    return while_p.bind(
        *cond_refs,
        *cond_consts,
        *body_refs,
        *body_consts,
        *carry,
        cond_jaxpr=cond_jaxpr,
        body_jaxpr=body_jaxpr,
        cond_nconsts=len(cond_refs) + cond_nconsts,
        body_nconsts=len(body_refs) + body_nconsts,
    )


def _while_abstract(
    *avals: AbstractValue, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, **_: Any
) -> list[AbstractValue]:
    if [(type(a), a.shape, a.dtype) for a in cond_jaxpr.out_avals] != [(ShapedArray, (), dtypes.bool_)]:
        given = ", ".join(a.str_short() for a in cond_jaxpr.out_avals)
        raise type_error(f"while's condition must give one boolean, got {given or 'nothing'}.")
    return list(body_jaxpr.out_avals)


def _while_reference(
    *args: Value, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, cond_nconsts: int, body_nconsts: int
) -> list[Any]:
    cond_consts, body_consts, carry = _split3(args, cond_nconsts, body_nconsts)
    while bool(interpret(cond_jaxpr, [*cond_consts, *carry])[0]):
        carry = interpret(body_jaxpr, [*body_consts, *carry])
    return carry


def _while_jvp(
    primals: Sequence[Value],
    tangents: Sequence[Value],
    *,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
) -> tuple[Any, Any]:
    nonzero = [type(t) is not Zero for t in tangents]
    _, const_nz, carry_nz = _split3(nonzero, cond_nconsts, body_nconsts)
    for _ in range(len(carry_nz) + 1):
        both, out_nz = jvp_jaxpr(body_jaxpr, [*const_nz, *carry_nz], carry_nz)
        grown = [a or b for a, b in zip(carry_nz, out_nz)]
        if grown == carry_nz:
            break
        carry_nz = grown
    cond_consts, body_consts, carry = _split3(primals, cond_nconsts, body_nconsts)
    _, const_t, carry_t = _split3(tangents, cond_nconsts, body_nconsts)
    const_t = [t for t in const_t if type(t) is not Zero]
    carry_t = [instantiate(t) for t, nz in zip(carry_t, carry_nz) if nz]
    n, m, k = body_nconsts, len(carry), len(const_t)
    body = reorder(
        both, [*range(n), *range(n + m, n + m + k), *range(n, n + m), *range(n + m + k, n + m + k + len(carry_t))]
    )
    cond = _ignore_trailing(cond_jaxpr, [get_aval(t) for t in carry_t])
    outs = _bind_while(
        *cond_consts,
        *body_consts,
        *const_t,
        *carry,
        *carry_t,
        cond_jaxpr=cond,
        body_jaxpr=body,
        cond_nconsts=cond_nconsts,
        body_nconsts=n + k,
    )
    ts = iter(outs[m:])
    return outs[:m], [next(ts) if nz else Zero(tangent_aval(get_aval(o))) for o, nz in zip(outs[:m], carry_nz)]


def _ignore_trailing(closed: ClosedJaxpr, avals: Sequence[AbstractValue]) -> ClosedJaxpr:
    """The same program with further arguments that it does not look at."""
    trace = JaxprTrace("a condition")
    args = [trace.new_arg(a) for a in [*closed.in_avals, *avals]]
    with tracing(trace):
        outs = eval_jaxpr(closed.jaxpr, closed.consts, *args[: len(closed.in_avals)])
    return ClosedJaxpr(*trace.finish(outs))


def _while_batch(
    axis: Axis,
    args: Sequence[Value],
    dims: Dims,
    *,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
) -> tuple[Any, Any]:
    batched = [d is not None for d in dims]
    cc_b, bc_b, carry_b = _split3(batched, cond_nconsts, body_nconsts)
    pred_b = False
    for _ in range(len(carry_b) + 2):
        body, out_b = batch_jaxpr(body_jaxpr, axis, [*bc_b, *carry_b], carry_b)
        cond, (new_pred_b,) = batch_jaxpr(cond_jaxpr, axis, [*cc_b, *carry_b])
        grown = [True] * len(carry_b) if new_pred_b else [a or b for a, b in zip(carry_b, out_b)]
        if grown == carry_b and new_pred_b == pred_b:
            break
        carry_b, pred_b = grown, new_pred_b
    cond_consts, body_consts, carry = _split3(args, cond_nconsts, body_nconsts)
    dcc, dbc, dk = _split3(dims, cond_nconsts, body_nconsts)
    cond_consts = [x if d is None else moveaxis(x, d, 0) for x, d in zip(cond_consts, dcc)]
    body_consts = [x if d is None else moveaxis(x, d, 0) for x, d in zip(body_consts, dbc)]
    carry = [to_front(axis, x, d) if b else x for x, d, b in zip(carry, dk, carry_b)]
    if pred_b:  # continue while any element does; elements that have finished keep their carry
        if any_io(body_jaxpr.effects | cond_jaxpr.effects):
            raise NotImplementedError(
                at_user_line(
                    "IO effect not supported in vmap of while_loop whose condition differs between elements: the"
                    " callback would be called for elements that are done. Use lax.map over the elements."
                )
            )
        n_cc, n_bc = len(cond_consts), len(body_consts)

        def any_goes_on(*xs: Value) -> list[Any]:
            (pred,) = eval_jaxpr(cond.jaxpr, cond.consts, *xs)
            return [reduce_or(pred, (0,))]

        def step(*xs: Value) -> list[Any]:
            ccs, bcs, old = _split3(xs, n_cc, n_bc)
            (pred,) = eval_jaxpr(cond.jaxpr, cond.consts, *ccs, *old)
            new = eval_jaxpr(body.jaxpr, body.consts, *bcs, *old)
            return [select(broadcast_in_dim(pred, shape_of(n), (0,)), n, o) for n, o in zip(new, old)]

        carry_avals, cc_avals, bc_avals = avals_of(carry), avals_of(cond_consts), avals_of(body_consts)
        whole_cond = ClosedJaxpr(*stage(any_goes_on, [*cc_avals, *carry_avals]))
        whole_body = ClosedJaxpr(*stage(step, [*cc_avals, *bc_avals, *carry_avals]))
        outs = _bind_while(
            *cond_consts,
            *cond_consts,
            *body_consts,
            *carry,
            cond_jaxpr=whole_cond,
            body_jaxpr=whole_body,
            cond_nconsts=n_cc,
            body_nconsts=n_cc + n_bc,
        )
        return outs, [0] * len(outs)
    outs = _bind_while(
        *cond_consts,
        *body_consts,
        *carry,
        cond_jaxpr=cond,
        body_jaxpr=body,
        cond_nconsts=cond_nconsts,
        body_nconsts=body_nconsts,
    )
    return outs, [0 if b else None for b in carry_b]


def _while_partial_eval(trace: PartialTrace, args: tuple[Value, ...], params: Params) -> Any:
    """Computes what does not depend on unknown values now, and stages the whole loop for the rest. The known part runs
    again then. This is correct, because a loop whose number of iterations is not known can't be transposed anyway.
    """
    n_cc, n_bc = params["cond_nconsts"], params["body_nconsts"]
    unknown = [trace.is_unknown(x) for x in args]
    cc_u, bc_u, carry_u = _split3(unknown, n_cc, n_bc)
    body, cond = params["body_jaxpr"], params["cond_jaxpr"]
    for _ in range(len(carry_u) + 1):
        split = split_jaxpr(body, [*bc_u, *carry_u], carry_u)
        grown = [a or b for a, b in zip(carry_u, split.out_unknown)]
        if grown == carry_u:
            break
        carry_u = grown
    cond_split = split_jaxpr(cond, [*cc_u, *carry_u])
    if cond_split.out_unknown[0] or all(carry_u):
        return trace.staged.process(while_p, args, params)
    cond_consts, body_consts, carry = _split3(args, n_cc, n_bc)
    known = lambda values, flags: [v for v, u in zip(values, flags) if not u]
    n_out = len(carry_u) - sum(carry_u)
    k_body, _ = dce_jaxpr(split.known.jaxpr, [True] * n_out + [False] * split.num_handed_over, True)
    k_cond = cond_split.known
    outs = iter(
        _bind_while(
            *known(cond_consts, cc_u),
            *known(body_consts, bc_u),
            *known(carry, carry_u),
            cond_jaxpr=k_cond,
            body_jaxpr=ClosedJaxpr(k_body, split.known.consts),
            cond_nconsts=n_cc - sum(cc_u),
            body_nconsts=n_bc - sum(bc_u),
        )
    )
    staged = trace.staged.process(while_p, args, params)
    return [s if u else next(outs) for s, u in zip(staged, carry_u)]


while_p.carries = Carries(
    Runs.REPEATED,
    {"cond_jaxpr": ("cond_consts", "carry"), "body_jaxpr": ("body_consts", "carry")},
    {"cond_consts": "cond_nconsts", "body_consts": "body_nconsts", "carry": REST},
    extensible=True,
    titles={"cond_jaxpr": "while_loop cond", "body_jaxpr": "while_loop body"},
)
while_p.abstract, while_p.reference, while_p.jvp, while_p.batch, while_p.partial_eval = (
    _while_abstract,
    _while_reference,
    _while_jvp,
    _while_batch,
    _while_partial_eval,
)
while_p.effects = lambda params: params["cond_jaxpr"].effects | params["body_jaxpr"].effects
while_p.axis_names = lambda params: collective_names(params["cond_jaxpr"], params["body_jaxpr"])


while_p.transpose = unsupported(
    "Reverse-mode differentiation does not work for while_loop, nor for fori_loop with traced bounds: the number of"
    " iterations, and so the memory for the way back, is not known. Use lax.scan, or fori_loop with bounds that are"
    " numbers.",
    ValueError,
)
while_p.split_for_remat = recompute_whole


@api_boundary
def while_loop(cond_fun: Callable[[_C], ArrayLike], body_fun: Callable[[_C], _C], init_val: _C) -> _C:
    """Runs `val = body_fun(val)` while `cond_fun(val)` is true; the last `val`.

    Both functions take the carry, and the body returns one: a pytree of fixed structure, shapes and dtypes. The loop
    can be differentiated only in forward mode.

    Args:
        cond_fun: function of the value that returns a scalar boolean.
        body_fun: function of the value that returns one of the same structure, dtypes and shapes.
        init_val: pytree of arrays, of any dtype and shape.

    Returns:
        pytree like init_val, of its dtypes and shapes.

    Raises:
        TypeError: for a condition that is no scalar boolean, and a body that returns other types.

    Example:
        >>> import weft
        >>> weft.lax.while_loop(lambda x: x < 100, lambda x: 2 * x, 3)
        Array(192, dtype=int32, weak_type=True)
    """
    if not (callable(body_fun) and callable(cond_fun)):
        raise TypeError("lax.while_loop: body_fun and cond_fun arguments should be callable.")
    return _while(cond_fun, body_fun, init_val, None)


def _while(cond_fun: Callable[..., Any], body_fun: Callable[..., Any], init_val: Any, of: Any) -> Any:
    """`while_loop`; `of` as for `trace_open`, of the body."""
    init, tree = tree_flatten(init_val)
    init = [_as_array(x, "lax.while_loop") for x in init]
    if config.disable_jit:
        val, go_on = init_val, cond_fun(init_val)
        while is_concrete(go_on):
            if not go_on:
                return val
            val = body_fun(val)
            # under vmap the condition may differ between elements: then it is staged after all
            go_on = cond_fun(val)
    in_tree = tree_structure((tree.unflatten([0] * tree.num_leaves),))
    for _ in range(3):
        avals = avals_of(init)
        body, body_consts, out_tree = trace_open(
            body_fun, in_tree, avals, f"the body of while_loop, {getattr(body_fun, '__name__', 'f')}", of
        )
        init, _, changed = strengthen(init, avals, body.out_avals) if out_tree == tree else (init, None, False)
        if not changed:
            break
    problem = describe_mismatch(init_val, body.out_avals, avals_of(init), out_tree, tree)
    if problem:
        raise type_error(
            "while_loop body function carry input and carry output must have equal types; in what body_fun returns"
            f" {problem}. Return what has the type of init_val."
        )
    cond, cond_consts, cond_tree = trace_open(
        cond_fun, in_tree, avals_of(init), f"the condition of while_loop, {getattr(cond_fun, '__name__', 'f')}"
    )
    if not treedef_is_leaf(cond_tree):
        raise type_error(f"cond_fun must return a boolean scalar, but got pytree {cond_tree}.")
    if cond.out_avals[0].shape or not dtypes.is_bool(cond.out_avals[0].dtype):
        raise type_error(
            f"cond_fun must return a boolean scalar, but got {', '.join(a.str_short() for a in cond.out_avals)}."
        )
    read = {a for eqn in cond.eqns for a in eqn.invars if type(a) is not Literal} | {
        a for a in cond.outvars if type(a) is not Literal
    }
    same = {
        i
        for i in _unchanged(body.outvars, body.invars[len(body_consts) :], init)
        if cond.invars[len(cond_consts) + i] not in read
    }
    cond = selection(cond, [i for i in range(len(cond.invars)) if i - len(cond_consts) not in same])
    body, body_consts, carry = as_constants(body, body_consts, init, same)
    outs = iter(
        _bind_while(
            *cond_consts,
            *body_consts,
            *carry,
            cond_jaxpr=close(cond),
            body_jaxpr=close(body),
            cond_nconsts=len(cond_consts),
            body_nconsts=len(body_consts),
        )
    )
    return tree_unflatten(tree, [x if i in same else next(outs) for i, x in enumerate(init)])


def _concrete_int(x: Value) -> Any:
    """The Python integer of a bound that is known while tracing, else None."""
    if isinstance(x, (int, SymbolicSize)) and not isinstance(x, bool):
        return x
    if is_array(x) and not get_aval(x).shape:
        return int(x)
    if has_numpy and isinstance(x, np.integer):
        return int(x)
    return None


@api_boundary
def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Callable[[Any, _C], _C],
    init_val: _C,
    *,
    unroll: int | bool | None = None,
) -> _C:
    """`val = body_fun(i, val)` for i from `lower` to `upper` - 1; the last `val`.

    With bounds known while tracing it is a `scan` (and so can be differentiated backwards), otherwise a `while_loop`.

    Args:
        lower: integer scalar: the first i.
        upper: integer scalar: the end, which is left out.
        body_fun: function of (i, value) that returns a value of the same structure, dtypes and shapes.
        init_val: pytree of arrays, of any dtype and shape.
        unroll: int or bool: how many iterations are written out at once; None for one.

    Returns:
        pytree like init_val, of its dtypes and shapes.

    Raises:
        TypeError: for bounds that are no integer scalars, and a body that returns other types.

    Example:
        >>> import weft
        >>> weft.lax.fori_loop(0, 5, lambda i, x: x + i, 0)
        Array(10, dtype=int32, weak_type=True)
    """
    if not callable(body_fun):
        raise TypeError("lax.fori_loop: body_fun argument should be callable.")
    for bound in (lower, upper):
        if not is_array_like(bound) or get_aval(bound).shape or not dtypes.is_int(get_aval(bound).dtype):
            raise TypeError(f"lower and upper arguments to fori_loop must be integer scalars, got {bound!r}.")
    a, b = get_aval(lower), get_aval(upper)
    if a.dtype != b.dtype and not a.weak_type and not b.weak_type:
        raise TypeError(
            f"lower and upper arguments to fori_loop must have equal types, got {dtypes.name(a.dtype)} and"
            f" {dtypes.name(b.dtype)}."
        )
    lo, hi = _concrete_int(lower), _concrete_int(upper)
    if lo is not None and hi is not None:

        def step(carry: Sequence[Value], _: object) -> tuple[Any, Any]:
            i, x = carry
            return (add(i, scalar_like(i, 1)), body_fun(i, x)), None

        if config.disable_jit and hi <= lo:
            return init_val
        first = lower if not isinstance(lower, (int, SymbolicSize)) else as_value(lo)
        steps = 1 if unroll is None else unroll
        (_, result), _ = _scan(
            "fori_loop", step, (first, init_val), None, max_dim(hi - lo, 0), False, steps, of=body_fun
        )
        return result
    if unroll is not None and unroll is not False and unroll != 1:
        raise ValueError("fori_loop can be unrolled only when its bounds are known while tracing.")
    lower, upper = _common_int(lower, upper)

    def body(val: Value) -> tuple[Any, Any, Any]:
        i, end, x = val
        return add(i, scalar_like(i, 1)), end, body_fun(i, x)

    return _while(_below, body, (lower, upper, init_val), body_fun)[2]


def _below(val: Value) -> Value:
    return lt(val[0], val[1])


def _common_int(a: Value, b: Value) -> tuple[Any, Any]:
    dt = promotion.promote((get_aval(a).dtype, get_aval(a).weak_type), (get_aval(b).dtype, get_aval(b).weak_type))[0]
    return convert(a, dt, get_aval(a).weak_type and get_aval(b).weak_type), convert(
        b, dt, get_aval(a).weak_type and get_aval(b).weak_type
    )
