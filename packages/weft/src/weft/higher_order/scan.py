"""scan: a loop over the slices of arrays, with a carry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence, TypeVar

from ..base import dtypes
from ..base.avals import AbstractRef, SymbolicSize, as_size, tangent_aval
from ..base.config import config
from ..symbolic.dims import max_dim
from ..core.carries import Carries, Counted, PROGRAM, REST, Runs
from ..core.interpret import interpret
from ..core.jaxpr import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var, eval_jaxpr
from ..core.primitive import Primitive, UndefinedPrimal, Zero
from ..core.shardings import parts_of, with_axis, without_axis
from ..core.wire import COUNT, FLAG, INTEGER, SIZE, either, portable
from ..core.trace import Tracer, as_operand, get_aval, is_array, is_array_like, tracing
from ..base.source_info import api_boundary
from ..base.errors import ConcretizationTypeError, at_user_line, type_error
from ..base.host import np
from ..primitives.dynamic_slice import dynamic_slice_p
from ..primitives.linear import add_any, convert, expand_dims, moveaxis, squeeze, zeros
from ..primitives.rules import scalar_like, shape_of
from ..primitives.shape import concatenate, iota, slice_
from ..transforms.batch import batch_jaxpr, to_front
from ..transforms.dce import dce_jaxpr
from ..transforms.discharge import hoist_refs
from ..transforms.jvp import instantiate, jvp_jaxpr
from ..transforms.linearize import split_jaxpr, transpose_known_first
from ..transforms.stage import JaxprTrace
from ..transforms.transpose import backward_pass
from ..base.tree import tree_flatten, tree_leaves, tree_structure, tree_unflatten
from .call import collective_names, jit_p
from .common import avals_of, close, describe_mismatch, reorder, selection, strengthen, trace_open
from .inline import inlined, without_calls


if TYPE_CHECKING:
    from ..base.annotations import PyTree
    from ..base.avals import AbstractValue, Size
    from ..core.trace import Axis
    from ..core.types import Dims, Params, Value
    from ..transforms.linearize import PartialTrace
    from ..base.tree import PyTreeDef

_C = TypeVar("_C")
_X = TypeVar("_X")
_Y = TypeVar("_Y")


scan_p = Primitive(
    "scan",
    multiple_results=True,
    wire=portable(
        jaxpr=PROGRAM,
        length=SIZE,
        reverse=FLAG,
        unroll=either(INTEGER, FLAG),
        num_consts=COUNT,
        num_carry=COUNT,
    ).and_tokens(),
)


def _split3(values: Sequence[Any], num_consts: int, num_carry: int) -> tuple[Any, Any, Any]:
    values = list(values)
    return values[:num_consts], values[num_consts : num_consts + num_carry], values[num_consts + num_carry :]


def _bind_scan(*args: Value, jaxpr: ClosedJaxpr, num_consts: int, **params: Any) -> list[Any]:
    (jaxpr,), refs = hoist_refs(jaxpr)  # of a custom derivative's rule that closes over them
    return scan_p.bind(*refs, *args, jaxpr=jaxpr, num_consts=len(refs) + num_consts, **params)


def _scan_abstract(
    *avals: AbstractValue, jaxpr: ClosedJaxpr, length: Size, reverse: bool, unroll: int, num_consts: int, num_carry: int
) -> list[AbstractValue]:
    ys = [with_axis(a, length) for a in jaxpr.out_avals[num_carry:]]
    return [*jaxpr.out_avals[:num_carry], *ys]


def _scan_reference(
    *args: Value, jaxpr: ClosedJaxpr, length: Size, reverse: bool, unroll: int, num_consts: int, num_carry: int
) -> list[Any]:
    consts, carry, xs = _split3(args, num_consts, num_carry)
    rows: list[Any] = []  # not as long as the scan before it has run: a stranger's may say any length
    for i in reversed(range(length)) if reverse else range(length):
        out = interpret(jaxpr, [*consts, *carry, *[x[i] for x in xs]])
        carry = out[:num_carry]
        rows.append(out[num_carry:])
    if reverse:
        rows.reverse()
    ys = [
        np.stack([r[k] for r in rows]) if length else np.zeros((0, *a.shape), a.dtype)
        for k, a in enumerate(jaxpr.out_avals[num_carry:])
    ]
    return [*carry, *ys]


def _scan_jvp(
    primals: Sequence[Value],
    tangents: Sequence[Value],
    *,
    jaxpr: ClosedJaxpr,
    length: Size,
    reverse: bool,
    unroll: int,
    num_consts: int,
    num_carry: int,
) -> tuple[Any, Any]:
    nonzero = [type(t) is not Zero for t in tangents]
    const_nz, carry_nz, xs_nz = _split3(nonzero, num_consts, num_carry)
    num_ys = len(jaxpr.out_avals) - num_carry
    for _ in range(num_carry + 1):
        both, out_nz = jvp_jaxpr(jaxpr, [*const_nz, *carry_nz, *xs_nz], [*carry_nz, *[False] * num_ys])
        grown = [a or b for a, b in zip(carry_nz, out_nz[:num_carry])]
        if grown == carry_nz:
            break
        carry_nz = grown
    carry_t = [instantiate(t) if nz else t for t, nz in zip(tangents[num_consts : num_consts + num_carry], carry_nz)]
    const_t = [t for t in tangents[:num_consts] if type(t) is not Zero]
    carry_t = [t for t, nz in zip(carry_t, carry_nz) if nz]
    xs_t = [t for t in tangents[num_consts + num_carry :] if type(t) is not Zero]
    consts, carry, xs = _split3(primals, num_consts, num_carry)
    n_in, ct = len(jaxpr.in_avals), len(const_t)
    index = range(n_in + ct + len(carry_t) + len(xs_t))
    c, k, x = _split3(index[:n_in], num_consts, num_carry)
    dc, dk, dx = _split3(index[n_in:], ct, len(carry_t))
    n_out, live = len(jaxpr.out_avals), sum(out_nz[:num_carry])
    outs_index = range(n_out + sum(out_nz))
    order = [
        *outs_index[:num_carry],
        *outs_index[n_out : n_out + live],
        *outs_index[num_carry:n_out],
        *outs_index[n_out + live :],
    ]
    body = reorder(both, [*c, *dc, *k, *dk, *x, *dx], order)
    outs = _bind_scan(
        *consts,
        *const_t,
        *carry,
        *carry_t,
        *xs,
        *xs_t,
        jaxpr=body,
        length=length,
        reverse=reverse,
        unroll=unroll,
        num_consts=num_consts + ct,
        num_carry=num_carry + len(carry_t),
    )
    carry_out, carry_t_out = outs[:num_carry], outs[num_carry : num_carry + live]
    ys, ys_t = outs[num_carry + live : num_carry + live + num_ys], outs[num_carry + live + num_ys :]
    results = [*carry_out, *ys]
    ts = iter([*carry_t_out, *ys_t])
    return results, [next(ts) if nz else Zero(tangent_aval(get_aval(r))) for r, nz in zip(results, out_nz)]


def _scan_batch(
    axis: Axis,
    args: Sequence[Value],
    dims: Dims,
    *,
    jaxpr: ClosedJaxpr,
    length: Size,
    reverse: bool,
    unroll: int,
    num_consts: int,
    num_carry: int,
) -> tuple[Any, Any]:
    batched = [d is not None for d in dims]
    const_b, carry_b, xs_b = _split3(batched, num_consts, num_carry)
    num_ys = len(jaxpr.out_avals) - num_carry
    for _ in range(num_carry + 1):
        body, out_b = batch_jaxpr(jaxpr, axis, [*const_b, *carry_b, *xs_b], [*carry_b, *[False] * num_ys])
        grown = [a or b for a, b in zip(carry_b, out_b[:num_carry])]
        if grown == carry_b:
            break
        carry_b = grown
    consts, carry, xs = _split3(args, num_consts, num_carry)
    dc, dk, dx = _split3(dims, num_consts, num_carry)
    consts = [x if d is None else moveaxis(x, d, 0) for x, d in zip(consts, dc)]
    carry = [to_front(axis, x, d) if b else x for x, d, b in zip(carry, dk, carry_b)]
    xs = [x if d is None else moveaxis(x, d, 1) for x, d in zip(xs, dx)]
    outs = _bind_scan(
        *consts,
        *carry,
        *xs,
        jaxpr=body,
        length=length,
        reverse=reverse,
        unroll=unroll,
        num_consts=num_consts,
        num_carry=num_carry,
    )
    return outs, [(0 if i < num_carry else 1) if b else None for i, b in enumerate(out_b)]


def _scan_partial_eval(trace: PartialTrace, args: tuple[Value, ...], params: Params) -> Any:
    jaxpr, num_consts, num_carry = params["jaxpr"], params["num_consts"], params["num_carry"]
    unknown = [trace.is_unknown(x) for x in args]
    const_u, carry_u, xs_u = _split3(unknown, num_consts, num_carry)
    num_ys = len(jaxpr.out_avals) - num_carry
    for _ in range(num_carry + 1):
        split = split_jaxpr(jaxpr, [*const_u, *carry_u, *xs_u], [*carry_u, *[False] * num_ys])
        grown = [a or b for a, b in zip(carry_u, split.out_unknown[:num_carry])]
        if grown == carry_u:
            break
        carry_u = grown
    consts, carry, xs = _split3(args, num_consts, num_carry)
    known = lambda values, flags: [v for v, u in zip(values, flags) if not u]
    held = lambda values, flags: [v for v, u in zip(values, flags) if u]
    k_consts, k_carry, k_xs = known(consts, const_u), known(carry, carry_u), known(xs, xs_u)
    # A residual that is a constant of the loop, or follows from its constants, is returned once; any other residual is
    # saved for each iteration.
    body, n_known = split.known, len(split.known.out_avals) - split.num_handed_over
    residuals_of = lambda jaxpr: split.residuals(jaxpr.invars, jaxpr.outvars[:n_known], jaxpr.outvars[n_known:])
    prefix, fixed_vars = _loop_invariant(body.jaxpr, len(k_consts))
    if _hidden_in_calls(body.jaxpr, residuals_of(body.jaxpr), fixed_vars):
        body = without_calls(body)
        prefix, fixed_vars = _loop_invariant(body.jaxpr, len(k_consts))
    atoms = residuals_of(body.jaxpr)
    invariant = [type(a) is Literal or a in fixed_vars for a in atoms]
    varying = [a for a, inv in zip(atoms, invariant) if not inv]
    given = dict(zip(body.jaxpr.invars[len(k_consts) + len(k_carry) :], k_xs))  # residuals that are stacked already
    results = dict(zip(body.jaxpr.outvars[len(k_carry) : n_known], range(len(k_carry), n_known)))
    saved = [a for a in dict.fromkeys(varying) if a not in given and a not in results]
    body = ClosedJaxpr(body.jaxpr.replace(outvars=[*body.jaxpr.outvars[:n_known], *saved]), body.consts)
    loop = dict(length=params["length"], reverse=params["reverse"], unroll=params["unroll"])
    outs = _bind_scan(*k_consts, *k_carry, *k_xs, jaxpr=body, num_consts=len(k_consts), num_carry=len(k_carry), **loop)
    known_outs = outs[:n_known]
    stacked = {**{a: outs[i] for a, i in results.items()}, **given, **dict(zip(saved, outs[n_known:]))}
    if not any(split.out_unknown) and not split.staged.effects:
        return known_outs
    first, _ = dce_jaxpr(
        prefix.replace(outvars=[a for a, inv in zip(atoms, invariant) if inv]), [True] * sum(invariant), True
    )
    fixed = eval_jaxpr(first, body.consts, *k_consts)
    n_res = len(split.sources)
    inv_pos = [i for i, inv in enumerate(invariant) if inv]
    res_pos = [i for i, inv in enumerate(invariant) if not inv]
    nc, nk = sum(const_u), sum(carry_u)
    rest = range(n_res, len(split.staged.in_avals))
    staged_body = reorder(split.staged, [*inv_pos, *rest[: nc + nk], *rest[nc + nk :], *res_pos])
    inputs = [*fixed, *held(consts, const_u), *held(carry, carry_u), *held(xs, xs_u), *[stacked[a] for a in varying]]
    staged = trace.staged.process(
        scan_p, tuple(inputs), dict(jaxpr=staged_body, num_consts=len(fixed) + nc, num_carry=nk, **loop)
    )
    known_iter, staged_iter = iter(known_outs), iter(staged)
    return [next(staged_iter) if u else next(known_iter) for u in split.out_unknown]


def _loop_invariant(jaxpr: Jaxpr, num_consts: int) -> tuple[Jaxpr, set[Any]]:
    """The equations of a loop's body that depend on its constants alone, as a jaxpr of these, and all variables that
    do.
    """
    fixed: set[Any] = {*jaxpr.constvars, *jaxpr.invars[:num_consts]}
    eqns = []
    for eqn in jaxpr.eqns:
        if not eqn.effects and all(type(a) is Literal or a in fixed for a in eqn.invars):
            eqns.append(eqn)
            fixed.update(eqn.outvars)
    return Jaxpr(jaxpr.constvars, jaxpr.invars[:num_consts], [], eqns), fixed


def _hidden_in_calls(jaxpr: Jaxpr, residuals: Sequence[Any], fixed: set[Any]) -> bool:
    """Whether a residual may follow from constants alone, although it is the result of a call that also takes changing
    values.
    """
    wanted = {a for a in residuals if type(a) is not Literal and a not in fixed}
    return any(
        e.primitive is jit_p
        and any(v in wanted for v in e.outvars)
        and any(type(a) is not Literal and a in fixed for a in e.invars)
        for e in jaxpr.eqns
    )


def _scan_transpose(
    cts: Sequence[Value],
    *args: Value,
    jaxpr: ClosedJaxpr,
    length: Size,
    reverse: bool,
    unroll: int,
    num_consts: int,
    num_carry: int,
) -> list[Value | None]:
    linear = [type(x) is UndefinedPrimal for x in args]
    const_l, carry_l, xs_l = _split3(linear, num_consts, num_carry)
    # a counter, for example: run the nonlinear part first
    if not all(lin or dtypes.is_inexact(a.dtype) for lin, a in zip(carry_l, jaxpr.out_avals)):
        params = dict(
            jaxpr=jaxpr, length=length, reverse=reverse, unroll=unroll, num_consts=num_consts, num_carry=num_carry
        )
        return transpose_known_first(scan_p, cts, args, params)
    consts, carry, xs = _split3(args, num_consts, num_carry)
    res_consts, res_xs = [x for x, lin in zip(consts, const_l) if not lin], [x for x, lin in zip(xs, xs_l) if not lin]
    lin_const_avals = [tangent_aval(x.aval) for x, lin in zip(consts, const_l) if lin]
    ct_carry = [instantiate(ct) for ct in cts[:num_carry]]
    ys_nz = [type(ct) is not Zero for ct in cts[num_carry:]]
    ct_ys = [ct for ct in cts[num_carry:] if type(ct) is not Zero]
    ct_consts = [zeros(a) for a in lin_const_avals]
    n_rc, n_cc, n_k = len(res_consts), len(ct_consts), len(ct_carry)

    trace = JaxprTrace("a transposed loop")
    body_avals = jaxpr.in_avals
    c_avals, k_avals, x_avals = _split3(body_avals, num_consts, num_carry)
    rc = [trace.new_arg(a) for a, lin in zip(c_avals, const_l) if not lin]
    acc = [trace.new_arg(a) for a in lin_const_avals]
    ck = [trace.new_arg(tangent_aval(a)) for a in jaxpr.out_avals[:num_carry]]
    cy = [
        trace.new_arg(tangent_aval(a)) if nz else Zero(tangent_aval(a))
        for a, nz in zip(jaxpr.out_avals[num_carry:], ys_nz)
    ]
    rx = [trace.new_arg(a) for a, lin in zip(x_avals, xs_l) if not lin]
    rc_i, rx_i = iter(rc), iter(rx)
    operands = [
        *[UndefinedPrimal(a) if lin else next(rc_i) for a, lin in zip(c_avals, const_l)],
        *[UndefinedPrimal(a) for a in k_avals],
        *[UndefinedPrimal(a) if lin else next(rx_i) for a, lin in zip(x_avals, xs_l)],
    ]
    with tracing(trace):
        back = backward_pass(jaxpr.jaxpr, jaxpr.consts, operands, [*ck, *cy])
        back_c, back_k, back_x = _split3(back, num_consts, num_carry)
        new = [ct for ct, lin in zip(back_c, const_l) if lin]
        acc_out = [a if type(ct) is Zero else add_any(a, ct) for a, ct in zip(acc, new)]
        outs = [
            *acc_out,
            *[instantiate(ct) for ct in back_k],
            *[instantiate(ct) for ct, lin in zip(back_x, xs_l) if lin],
        ]
    body = ClosedJaxpr(*trace.finish(outs))
    results = _bind_scan(
        *res_consts,
        *ct_consts,
        *ct_carry,
        *ct_ys,
        *res_xs,
        jaxpr=body,
        length=length,
        reverse=not reverse,
        unroll=unroll,
        num_consts=n_rc,
        num_carry=n_cc + n_k,
    )
    out_c, out_k, out_x = iter(results[:n_cc]), iter(results[n_cc : n_cc + n_k]), iter(results[n_cc + n_k :])
    return [
        *[next(out_c) if lin else None for lin in const_l],
        *[ct if lin else None for ct, lin in zip(out_k, carry_l)],
        *[next(out_x) if lin else None for lin in xs_l],
    ]


def _scan_dce(used_outputs: Sequence[bool], eqn: JaxprEqn) -> JaxprEqn | None:
    closed, num_consts, num_carry = eqn.params["jaxpr"], eqn.params["num_consts"], eqn.params["num_carry"]
    used_carry, used_ys = list(used_outputs[:num_carry]), list(used_outputs[num_carry:])
    while True:
        jaxpr, used_in = dce_jaxpr(closed.jaxpr, [*used_carry, *used_ys])
        grown = [a or b for a, b in zip(used_carry, used_in[num_consts : num_consts + num_carry])]
        if grown == used_carry:
            break
        used_carry = grown
    used_in = [*used_in[:num_consts], *used_carry, *used_in[num_consts + num_carry :]]
    jaxpr, _ = dce_jaxpr(closed.jaxpr, [*used_carry, *used_ys], used_in)
    keep = [*used_carry, *used_ys]
    params = dict(
        eqn.params,
        jaxpr=ClosedJaxpr(jaxpr, closed.consts),
        num_consts=sum(used_in[:num_consts]),
        num_carry=sum(used_carry),
    )
    return eqn.replace(
        invars=[a for a, u in zip(eqn.invars, used_in) if u],
        outvars=[v for v, u in zip(eqn.outvars, keep) if u],
        params=params,
    )


def _scan_split_for_remat(eqn: JaxprEqn, split: Callable[..., Any]) -> tuple[Any, Any, Any]:
    """Values saved in each iteration are stacked; values that follow from the loop's constants are saved once."""
    n, params = eqn.params["num_consts"], eqn.params
    forward, recompute, saved = split(params["jaxpr"])
    body, n_out, m = forward.jaxpr, len(eqn.outvars), len(eqn.invars)
    prefix, fixed = _loop_invariant(body, n)
    once, each = (
        [v for v in saved if v in fixed and not body.constvars],
        [v for v in saved if v not in fixed or body.constvars],
    )
    before, outside = inlined(dce_jaxpr(prefix.replace(outvars=once), [True] * len(once), True)[0], eqn.invars[:n])
    stacked = [Var(with_axis(v.aval, params["length"])) for v in each]
    inside = [e for e in body.eqns if not (e.outvars and all(v in once or type(v) is DropVar for v in e.outvars))]
    forward = forward.replace(
        jaxpr=body.replace(
            invars=[*body.invars[:n], *once, *body.invars[n:]], eqns=inside, outvars=[*body.outvars[:n_out], *each]
        )
    )
    where = dict(zip(saved, range(m, m + len(saved))))
    recompute = reorder(recompute, [*range(n), *[where[v] for v in once], *range(n, m), *[where[v] for v in each]])
    invars = [*eqn.invars[:n], *outside, *eqn.invars[n:]]
    first = eqn.replace(
        invars=invars, outvars=[*eqn.outvars, *stacked], params=dict(params, jaxpr=forward, num_consts=n + len(once))
    )
    second = eqn.replace(invars=[*invars, *stacked], params=dict(params, jaxpr=recompute, num_consts=n + len(once)))
    return (
        {new: saved[v] for v, new in zip([*once, *each], [*outside, *stacked])},
        [*before, _scan_dce([True] * len(first.outvars), first)],
        second,
    )


scan_p.carries = Carries(
    Runs.REPEATED,
    {"jaxpr": ("consts", "carry", "rows")},
    {"consts": "num_consts", "carry": "num_carry", "rows": REST},
    counted=Counted("length", "reverse", "unroll"),
    extensible=True,
    titles={"jaxpr": "scan body"},
)
scan_p.split_for_remat = _scan_split_for_remat
scan_p.abstract, scan_p.reference, scan_p.jvp, scan_p.batch = _scan_abstract, _scan_reference, _scan_jvp, _scan_batch
scan_p.partial_eval, scan_p.transpose, scan_p.dce = _scan_partial_eval, _scan_transpose, _scan_dce
scan_p.effects = lambda params: params["jaxpr"].effects
scan_p.axis_names = lambda params: collective_names(params["jaxpr"])


@api_boundary
def scan(
    f: Callable[[_C, _X], tuple[_C, _Y]],
    init: _C,
    xs: _X | None = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[_C, _Y]:
    """Runs `carry, y = f(carry, x)` over the leading axis of `xs`: the last carry and the stacked ys.

    Args:
        f: function of (carry, slice of xs); the carry it returns has the structure, shapes and dtypes of `init`.
        init: pytree of arrays.
        xs: pytree of arrays with one leading size, or None with `length`.
        length: the number of iterations, where `xs` does not say it.
        reverse: run from the last element to the first.
        unroll: iterations for each step of the compiled loop; True unrolls all.

    Returns:
        (carry, ys): the carry has the structure, dtypes and shapes of `init`; ys those of the second result of f, with
        the leading size in front.

    Raises:
        TypeError: for a carry that changes its type. ValueError: for leading sizes that differ.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.lax.scan(lambda c, x: (c + x, c * x), 0., jnp.arange(4.))
        (Array(6., dtype=float32), Array([0., 0., 2., 9.], dtype=float32))
    """
    if not callable(f):
        raise TypeError(f"lax.scan: f argument should be a callable, got {type(f).__name__}.")
    return _scan("scan", f, init, xs, length, reverse, unroll)


def _over_references(
    f: Callable[..., Any], xs: Sequence[Any], xs_tree: Any, avals: Sequence[Any]
) -> tuple[Callable[..., Any], Any]:
    """A body and an `xs` for a scan over mutable references: iteration i is given the part `ref.at[i]` of each."""
    at = [i for i, a in enumerate(avals) if type(a) is AbstractRef]
    if any(not avals[i].shape for i in at):
        raise ValueError("scan got a mutable reference with no leading axis to scan over.")
    sizes = {avals[i].shape[0] for i in at}
    if len(sizes) > 1:
        raise ValueError(f"scan got references of different leading sizes: {sorted(sizes)}.")

    def body(carry: Any, given: Any) -> Any:
        i, rest = given
        left = iter(rest)
        return f(carry, xs_tree.unflatten([x.at[i] if k in at else next(left) for k, x in enumerate(xs)]))

    return body, (iota(dtypes.int32, (sizes.pop(),), 0), [x for k, x in enumerate(xs) if k not in at])


def _scan(
    who: str,
    f: Callable[..., Any],
    init: PyTree,
    xs: PyTree,
    length: Size | None,
    reverse: bool,
    unroll: int | bool,
    of: Callable[..., Any] | None = None,
) -> tuple[Any, Any]:
    """`scan`, for the function that errors name; `of` as for `trace_open`."""
    xs_flat, xs_tree = tree_flatten(xs)
    xs_flat = [_as_array(x, "lax.scan") for x in xs_flat]
    init_flat, init_tree = tree_flatten(init)
    init_flat = [_as_array(x, "lax.scan") for x in init_flat]
    xs_avals = avals_of(xs_flat)
    if any(type(a) is AbstractRef for a in xs_avals):
        over = _over_references(f, xs_flat, xs_tree, xs_avals)
        return _scan(who, over[0], init, over[1], length, reverse, unroll)
    if any(not a.shape for a in xs_avals):
        raise ValueError(
            "scan got value with no leading axis to scan over: "
            + ", ".join(a.str_short() for a in xs_avals if not a.shape)
        )
    length = _common_length(length, xs_avals)
    if config.disable_jit:
        return _scan_in_python(f, init, xs_flat, xs_tree, length, reverse)
    for a in xs_avals:
        if parts_of(a)[0] is not None:
            raise ValueError(
                at_user_line(
                    f"{who} goes through the leading axis of xs, which must be whole, and that of {a.str_short()} is"
                    " divided. Gather it first, with weft.sharding.reshard(x, weft.P(None, …))."
                )
            )
    x_avals = [without_axis(a) for a in xs_avals]
    in_tree = tree_structure(
        (init_tree.unflatten([0] * init_tree.num_leaves), xs_tree.unflatten([0] * xs_tree.num_leaves))
    )
    for _ in range(3):
        carry_avals = avals_of(init_flat)
        jaxpr, consts, out_tree = trace_open(
            f, in_tree, [*carry_avals, *x_avals], f"the body of {who}, {getattr(f, '__name__', 'f')}", of
        )
        children = out_tree.children()
        if out_tree.node is not tuple or len(children) != 2:
            raise TypeError(
                at_user_line(
                    f"scan body output must be a pair (carry, y), got {out_tree}. Return None as y if there is nothing"
                    " to stack."
                )
            )
        carry_tree, ys_tree = children
        num_carry = init_tree.num_leaves
        outs = jaxpr.out_avals[: carry_tree.num_leaves]
        init_flat, _, changed = (
            strengthen(init_flat, carry_avals, outs) if carry_tree == init_tree else (init_flat, None, False)
        )
        if not changed:
            break
    if not isinstance(unroll, (bool, int)) or unroll < 0:
        raise ValueError("`unroll` must be a `bool` or a non-negative `int`.")
    problem = describe_mismatch(init, outs, avals_of(init_flat), carry_tree, init_tree)
    if problem:
        raise type_error(
            f"{who} body function carry input and carry output must have equal types; in the carry that f returns"
            f" {problem}. Return what has the type of the initial carry, or give an initial carry of the type that f"
            " returns."
        )
    length_ = max_dim(length, 0)
    if isinstance(length_, SymbolicSize) and unroll is True:
        raise ValueError(
            f"scan can't unroll a loop of the symbolic length '{length_}'; give a number of iterations as `unroll`."
        )
    steps = (length_ if unroll is True else 1 if unroll is False else unroll) or 1
    same = _unchanged(jaxpr.outvars[:num_carry], jaxpr.invars[len(consts) :], init_flat)
    jaxpr, consts, carry = as_constants(jaxpr, consts, init_flat, same)
    results = iter(
        _bind_scan(
            *consts,
            *carry,
            *xs_flat,
            jaxpr=close(jaxpr),
            length=length_,
            reverse=bool(reverse),
            unroll=steps,
            num_consts=len(consts),
            num_carry=len(carry),
        )
    )
    last = [x if i in same else next(results) for i, x in enumerate(init_flat)]
    return tree_unflatten(carry_tree, last), tree_unflatten(ys_tree, list(results))


def _common_length(length: Size | None, xs_avals: Sequence[AbstractValue]) -> Size:
    """The number of iterations, from what the caller says and from the leading axes of what is scanned."""
    lengths = {a.shape[0] for a in xs_avals}
    if length is not None:
        try:
            length = as_size(length)
        except TypeError as e:
            raise ConcretizationTypeError(
                f"scan's length must be a concrete integer, got {length!r}. Use while_loop for a length that is traced."
            ) from e
        if any(n != length for n in lengths):
            raise ValueError(
                at_user_line(
                    f"scan: length={length} disagrees with xs, whose leading axes have size"
                    f" {', '.join(map(str, sorted(lengths)))}. Leave length out, or cut xs to that length."
                )
            )
        return length
    if not lengths:
        raise ValueError("scan got no values to scan over and `length` not provided.")
    if len(lengths) > 1:
        raise ValueError(
            at_user_line(
                f"scan got values with different leading axis sizes: {', '.join(str(a.shape[0]) for a in xs_avals)}."
                " All leaves of xs are scanned together: cut them to one length."
            )
        )
    return lengths.pop()


def _unchanged(outvars: Sequence[Any], invars: Sequence[Any], values: Sequence[Any]) -> set[int]:
    """The positions of a carry's arrays that a body returns unchanged."""
    return {
        i
        for i, (out, var, x) in enumerate(zip(outvars, invars, values))
        if out is var and (isinstance(x, Tracer) or is_array(x))
    }


def as_constants(
    jaxpr: Jaxpr, consts: Sequence[Any], carry: Sequence[Any], same: set[int], returns_carry: bool = True
) -> tuple[Jaxpr, list[Any], list[Any]]:
    """A loop's jaxpr with parts of the carry, which do not change, as constants of it: the jaxpr, its constants, the
    carry that is left. returns_carry: its first results are the carry.
    """
    if not same:
        return jaxpr, list(consts), list(carry)
    n, m = len(consts), len(carry)
    order = [
        *range(n),
        *[n + i for i in sorted(same)],
        *[n + i for i in range(m) if i not in same],
        *range(n + m, len(jaxpr.invars)),
    ]
    outs = [i for i in range(len(jaxpr.outvars)) if i not in same or not returns_carry]
    return (
        selection(jaxpr, order, outs),
        [*consts, *[carry[i] for i in sorted(same)]],
        [x for i, x in enumerate(carry) if i not in same],
    )


def _as_array(x: Value, who: str) -> Value:
    if not is_array_like(x):
        raise TypeError(f"{who} takes arrays; got a value of type {type(x).__name__}: {x!r}.")
    return as_operand(x)


def row(x: Value, i: Value) -> Value:
    """`x[i]` along the first axis, for a host integer or a traced scalar."""
    shape = shape_of(x)
    if isinstance(i, int):
        return squeeze(slice_(x, (i,) + (0,) * (len(shape) - 1), (i + 1, *shape[1:])), (0,))
    start = convert(i, dtypes.int32)
    return squeeze(
        dynamic_slice_p.bind(x, start, *[scalar_like(start, 0)] * (len(shape) - 1), slice_sizes=(1, *shape[1:])), (0,)
    )


def _scan_in_python(
    f: Callable[..., Any], init: PyTree, xs_flat: Sequence[Value], xs_tree: PyTreeDef, length: Size, reverse: bool
) -> tuple[Any, Any]:
    carry, ys = init, []
    for i in reversed(range(length)) if reverse else range(length):
        carry, y = f(carry, xs_tree.unflatten([row(x, i) for x in xs_flat]))
        ys.append(y)
    if reverse:
        ys.reverse()
    if not ys:
        raise ValueError("zero-length scan is not supported in disable_jit() mode because the output type is unknown.")
    leaves = [tree_leaves(y) for y in ys]
    stacked = [concatenate([expand_dims(col, (0,)) for col in cols], 0) for cols in zip(*leaves)]
    return carry, tree_structure(ys[0]).unflatten(stacked)
