"""checkpoint: functions whose intermediate values are computed again in the backward pass, except those that a policy
saves.
"""

from __future__ import annotations

from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Callable, Sequence, overload

from ..base.annotations import Args, Decorator, Function, Result
from ..base.avals import tangent_aval
from ..core.carries import Carries, OPEN_PROGRAM, Runs
from ..core.effects import any_io
from ..core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, TypedScalar, Var, eval_jaxpr
from ..core.primitive import AsDecomposed, Primitive, UndefinedPrimal, Zero
from ..core.shardings import same
from ..core.wire import FLAG, NOTHING, TEXT, either, many, portable
from ..core.trace import get_aval
from ..base.errors import at_user_line
from ..primitives.placement import to_memory_p
from ..primitives.linear import full
from ..base.source_info import api_boundary
from ..transforms.batch import batch_jaxpr, to_front
from ..transforms.dce import dce_jaxpr
from ..transforms.jvp import jvp_jaxpr
from ..transforms.linearize import split_jaxpr
from ..transforms.stage import consts_as_args, hoist_tracers, stage
from ..transforms.transpose import transpose_jaxpr
from ..base.tree import broadcast_prefix, tree_flatten, tree_map, tree_unflatten
from .call import bind_jit, collective_names
from .custom_jvp import name_of
from .inline import without_calls
from ..primitives.inspection import without_inspections
from .policies import Offloadable
from .remat_split import equations, with_outer_policy

if TYPE_CHECKING:
    from ..core.jaxpr import Atom
    from ..core.trace import Axis
    from ..core.types import Dims, Params, Value
    from ..transforms.linearize import PartialTrace
    from ..base.tree import PyTreeDef
    from ..base.annotations import Tree

remat_p = Primitive(
    "remat2",
    multiple_results=True,
    wire=portable(
        jaxpr=OPEN_PROGRAM, prevent_cse=either(FLAG, many(FLAG)), differentiated=FLAG, policy=NOTHING
    ).and_tokens(),
)


def _closed(jaxpr: Jaxpr) -> ClosedJaxpr:
    return ClosedJaxpr(jaxpr, [])


def _open(closed: ClosedJaxpr) -> Jaxpr:
    """A jaxpr without constants that does the same."""
    return stage(lambda *xs: bind_jit(closed, xs, "checkpoint"), closed.in_avals)[0] if closed.consts else closed.jaxpr


def _protected(params: dict[Any, Any], *groups: Any) -> dict[Any, Any]:
    """The parameters for other operands: each group is a number of new operands, or positions of old ones.
    `prevent_cse` may hold a flag for each operand: whether to hide it from the compiler.
    """
    flags = params["prevent_cse"]
    if isinstance(flags, bool):
        return params
    return dict(
        params,
        prevent_cse=tuple([f for g in groups for f in ([True] * g if isinstance(g, int) else [flags[i] for i in g])]),
    )


def _jvp(primals: Sequence[Value], tangents: Sequence[Value], *, jaxpr: Jaxpr, **params: Any) -> tuple[Any, Any]:
    nonzeros = [type(t) is not Zero for t in tangents]
    both, out_nz = jvp_jaxpr(_closed(jaxpr), nonzeros)
    params = _protected(params, len(both.consts), range(len(primals)), [i for i, nz in enumerate(nonzeros) if nz])
    outs = remat_p.bind(
        *both.consts,
        *primals,
        *[t for t in tangents if type(t) is not Zero],
        jaxpr=consts_as_args(both.jaxpr),
        **params,
    )
    n = len(out_nz)
    live = iter(outs[n:])
    return outs[:n], [next(live) if nz else Zero(tangent_aval(a)) for nz, a in zip(out_nz, jaxpr.out_avals)]


def _partial_eval(trace: PartialTrace, args: tuple[Value, ...], params: Params) -> Any:
    """Known results are computed now. The part of the known program that the rest needs is computed again later, except
    the results that the policy saves.
    """
    policy = params["policy"]
    unknown = [trace.is_unknown(x) for x in args]
    split = split_jaxpr(_closed(with_outer_policy(policy, params["jaxpr"])), unknown)
    known_closed = split.known if policy is None else without_calls(split.known)
    known, staged = known_closed.jaxpr, split.staged.jaxpr
    n_known = len(known.outvars) - split.num_handed_over
    residuals = split.residuals(known.invars, known.outvars[:n_known], known.outvars[n_known:])
    now, again, verdicts = equations(policy, known.eqns)
    again = without_inspections(known.replace(eqns=again))[0].eqns  # an inspected value is where it was
    moved = {v: verdict for v, verdict in verdicts.items() if isinstance(verdict, Offloadable)}
    known = known.replace(eqns=now)
    saved = [*verdicts]
    # the known part that must be computed again, then the staged part, as one program
    back = {v: Var(v.aval) for v in saved if v in moved}
    fetch = [JaxprEqn([back[v]], [v], to_memory_p, dict(memory=moved[v].src)) for v in back]
    swap: dict[Atom, Atom] = dict(zip(staged.invars, residuals))
    at: Callable[[Atom], Atom] = lambda atom: swap.get(atom, atom)
    later = [e.replace(invars=[at(a) for a in e.invars]) for e in staged.eqns]
    rest = staged.invars[len(residuals) :]
    whole = Jaxpr(
        [],
        [*[back.get(v, v) for v in saved], *known.constvars, *known.invars, *staged.constvars, *rest],
        [at(v) for v in staged.outvars],
        [*fetch, *again, *later],
        staged.effects | known.effects,
        params["jaxpr"].debug_info,
    )
    whole, used = dce_jaxpr(whole, [True] * len(whole.outvars))
    kept = [v for v, u in zip(saved, used) if u]
    first, _ = dce_jaxpr(known.replace(outvars=[*known.outvars[:n_known], *kept]), [True] * (n_known + len(kept)), True)
    known_args = [x for x, u in zip(args, unknown) if not u]
    outs = eval_jaxpr(first, known_closed.consts, *known_args)
    kept_values = [to_memory_p.bind(x, memory=moved[v].dst) if v in moved else x for v, x in zip(kept, outs[n_known:])]
    others = [*known_closed.consts, *known_args, *split.staged.consts, *[x for x, u in zip(args, unknown) if u]]
    inputs = [*kept_values, *[x for x, u in zip(others, used[len(saved) :]) if u]]
    places = [
        *[None] * len(known_closed.consts),
        *[i for i, u in enumerate(unknown) if not u],
        *[None] * len(split.staged.consts),
        *[i for i, u in enumerate(unknown) if u],
    ]
    left = [i for i, u in zip(places, used[len(saved) :]) if u]
    params = _protected(params, len(kept_values), *[1 if i is None else [i] for i in left])
    staged_outs = iter(
        trace.staged.process(remat_p, tuple(inputs), dict(params, jaxpr=whole, differentiated=True))
        if any(split.out_unknown) or split.staged.effects
        else []
    )
    known_outs = iter(outs[:n_known])
    return [next(staged_outs) if u else next(known_outs) for u in split.out_unknown]


def _transpose(cts: Sequence[Value], *args: Value, jaxpr: Jaxpr, **params: Any) -> list[Value | None]:
    linear = [type(x) is UndefinedPrimal for x in args]
    nonzero = [type(ct) is not Zero for ct in cts]
    back = transpose_jaxpr(_closed(jaxpr), linear, nonzero)
    inputs = [
        *back.consts,
        *[x for x, lin in zip(args, linear) if not lin],
        *[ct for ct in cts if type(ct) is not Zero],
    ]
    params = _protected(params, len(back.consts), [i for i, lin in enumerate(linear) if not lin], sum(nonzero))
    outs = iter(remat_p.bind(*inputs, jaxpr=consts_as_args(back.jaxpr), **params))
    return [next(outs) if lin else None for lin in linear]


def _batch(axis: Axis, args: Sequence[Value], dims: Dims, *, jaxpr: Jaxpr, **params: Any) -> tuple[Any, Any]:
    new, out_b = batch_jaxpr(_closed(jaxpr), axis, [d is not None for d in dims])
    params = _protected(params, len(new.consts), range(len(args)))
    outs = remat_p.bind(
        *new.consts,
        *[x if d is None else to_front(axis, x, d) for x, d in zip(args, dims)],
        jaxpr=consts_as_args(new.jaxpr),
        **params,
    )
    return outs, [0 if b else None for b in out_b]


def _split_for_remat(eqn: JaxprEqn, split: Callable[..., Any]) -> tuple[Any, Any, Any]:
    forward, recompute, saved = split(_closed(eqn.params["jaxpr"]))
    handed = {v: Var(v.aval) for v in saved}
    first = eqn.replace(outvars=[*eqn.outvars, *handed.values()], params=dict(eqn.params, jaxpr=_open(forward)))
    second = eqn.replace(
        invars=[*eqn.invars, *handed.values()],
        params=dict(_protected(eqn.params, range(len(eqn.invars)), len(handed)), jaxpr=_open(recompute)),
    )
    return {handed[v]: answer for v, answer in saved.items()}, [first], second


def _dce(used_outputs: Sequence[bool], eqn: JaxprEqn) -> JaxprEqn | None:
    jaxpr, used = dce_jaxpr(eqn.params["jaxpr"], used_outputs)
    if not jaxpr.eqns and not any(used_outputs):
        return None
    return eqn.replace(
        invars=[a for a, u in zip(eqn.invars, used) if u],
        outvars=[v for v, u in zip(eqn.outvars, used_outputs) if u],
        params=dict(_protected(eqn.params, [i for i, u in enumerate(used) if u]), jaxpr=jaxpr),
    )


remat_p.carries = Carries(
    Runs.ONCE, {"jaxpr": ("operands",)}, each={"prevent_cse": True}, extensible=True, policy="policy"
)
remat_p.abstract = lambda *avals, jaxpr, **_: list(jaxpr.out_avals)
remat_p.impl = lambda *args, jaxpr, **_: eval_jaxpr(jaxpr, [], *args)
remat_p.jvp, remat_p.partial_eval, remat_p.transpose, remat_p.batch, remat_p.dce = (
    _jvp,
    _partial_eval,
    _transpose,
    _batch,
    _dce,
)
remat_p.split_for_remat = _split_for_remat
remat_p.effects = lambda params: params["jaxpr"].effects
remat_p.axis_names = lambda params: collective_names(_closed(params["jaxpr"]))
remat_p.decompose = lambda *args, jaxpr, **_: eval_jaxpr(jaxpr, [], *args)
remat_p.reference = AsDecomposed(remat_p)


@overload
def checkpoint(
    fun: Callable[Args, Result],
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Callable[..., Any] | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    concrete: None = None,
) -> Function[Args, Result]: ...
@overload
def checkpoint(
    fun: None = None,
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Callable[..., Any] | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    concrete: None = None,
) -> Decorator: ...
@api_boundary
def checkpoint(
    fun: Callable[..., Any] | None = None,
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Callable[..., Any] | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    concrete: Any = None,
) -> Any:
    """A function like `fun` whose intermediate values are computed again in the backward pass instead of being saved.

    Args:
        fun: function of pytrees of arrays, of any dtype and shape.
        prevent_cse: bool: keep the compiler from merging the second computation with the first; may be False inside
            `scan`. A sequence sets it for each argument.
        policy: function (primitive, *avals, **params) -> bool: which results to save; see `weft.checkpoint_policies`.
            None saves no results.
        static_argnums: int or sequence of ints: arguments that are Python values and are not traced.
        static_argnames: str or sequence of strings: keyword arguments that are.
        concrete: None; False is taken too.

    Returns:
        function of the same arguments and results, of the same dtypes and shapes.

    Raises:
        NotImplementedError: for `concrete=True`, and for a function that calls `io_callback`.
        TypeError: if `fun` is not a function.
        ValueError: when it is called without an argument that `static_argnums` names.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.grad(weft.checkpoint(lambda x: jnp.sin(jnp.sin(x))))(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    if concrete is not None:
        raise NotImplementedError(
            "checkpoint takes no `concrete` any more: name the arguments that must be Python values in static_argnums."
        )
    if fun is None:
        return lambda f: checkpoint(
            f, prevent_cse=prevent_cse, policy=policy, static_argnums=static_argnums, static_argnames=static_argnames
        )
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun!r}.")
    argnums = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    argnames = {static_argnames} if isinstance(static_argnames, str) else set(static_argnames)

    @api_boundary
    def wrapped(*args: Value, **kwargs: Any) -> Any:
        for i in argnums:
            if not -len(args) <= i < len(args):
                raise ValueError(
                    f"the static_argnums {argnums} of checkpoint name an argument that the call of {name_of(fun)} with"
                    f" {len(args)} positional arguments lacks."
                )
        static = {i % len(args): args[i] for i in argnums}
        static_kw = {k: v for k, v in kwargs.items() if k in argnames}
        leaves, tree = tree_flatten(
            ([a for i, a in enumerate(args) if i not in static], {k: v for k, v in kwargs.items() if k not in argnames})
        )
        box: list[Any] = []

        def flat(*xs: Value) -> list[Value]:
            inner, kw = tree.unflatten(xs)
            rest = iter(inner)
            out, out_tree = tree_flatten(
                fun(*[static[i] if i in static else next(rest) for i in range(len(args))], **kw, **static_kw)
            )
            box.append(out_tree)
            return out

        closed, outer = hoist_tracers(
            *stage(flat, [get_aval(x) for x in leaves], f"the checkpointed function {name_of(fun)}")
        )
        if any_io(closed.effects):
            raise NotImplementedError(
                at_user_line(
                    "checkpoint: effects of io_callback are not supported in the function, since it runs again on the"
                    " way back and would call it twice. Call it outside of the checkpointed function."
                )
            )
        flags = (
            prevent_cse
            if isinstance(prevent_cse, bool)
            else (*[True] * (len(closed.consts) + len(outer)), *_flags_of_leaves(prevent_cse, tree, leaves))
        )
        outs = remat_p.bind(
            *closed.consts,
            *outer,
            *leaves,
            jaxpr=consts_as_args(closed.jaxpr),
            prevent_cse=flags,
            differentiated=False,
            policy=policy,
        )
        # a number that the function made is Python's, or an array where Python has no such type
        outs = [full((), x.val, x.aval.dtype, x.aval.weak_type) if type(x) is TypedScalar else x for x in outs]
        return tree_unflatten(box[0], outs)

    update_wrapper(wrapped, fun)
    return wrapped


def _flags_of_leaves(prevent_cse: Sequence[bool], tree: PyTreeDef, leaves: Sequence[Any]) -> list[Any]:
    """A flag for each leaf from one for each positional argument; leaves of keyword arguments are protected."""
    args, kwargs = tree.unflatten(leaves)
    try:
        return [*broadcast_prefix(list(prevent_cse), args), *[True] * len(tree_flatten(kwargs)[0])]
    except ValueError as e:
        raise ValueError(
            "checkpoint's prevent_cse must be a bool, or have one for each argument (a tree prefix of them); got"
            f" {prevent_cse}: {e}"
        ) from e


# names, and memories -------------------------------------------------------------------------------------------------

name_p = Primitive("name", wire=portable(name=TEXT))
name_p.abstract = lambda x, *, name: x
name_p.reference = lambda x, *, name: x
name_p.decompose = name_p.impl = lambda x, *, name: x
# the tangent is another value
name_p.jvp = lambda primals, tangents, *, name: (name_p.bind(primals[0], name=name), tangents[0])
name_p.transpose = lambda ct, x, *, name: [ct]
name_p.shard, name_p.linear_in_sums = same, True
name_p.batch = lambda axis, args, dims, *, name: (name_p.bind(args[0], name=name), dims[0])


def checkpoint_name(x: Tree, name: str) -> Tree:
    """Names a value, so that the policies of `checkpoint` can refer to it.

    Args:
        x: pytree of arrays, of any dtype and shape.
        name: str.

    Returns:
        pytree like `x`, of the same dtypes and shapes.

    Raises:
        TypeError: if `name` is not a string.

    Example:
        >>> import weft
        >>> from weft.ad_checkpoint import checkpoint_name
        >>> checkpoint_name(2.0, "two")
        2.0
    """
    if not isinstance(name, str):
        raise TypeError(f"checkpoint_name takes a string as its name, got {name!r}.")
    return tree_map(lambda leaf: name_p.bind(leaf, name=name), x)
