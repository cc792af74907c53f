"""jit as a primitive: a call of a jaxpr that is compiled as one program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..base.avals import tangent_aval
from ..core.carries import Carries, PROGRAM, Runs
from ..core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, eval_jaxpr
from ..core.memo import Memo, memoized
from ..core.primitive import AsDecomposed, Primitive, UndefinedPrimal, Zero
from ..core.wire import FLAG, TEXT, many, portable
from ..transforms.batch import batch_jaxpr, to_front
from ..transforms.dce import dce_jaxpr
from ..transforms.discharge import hoist_refs
from ..transforms.jvp import jvp_jaxpr
from ..transforms.linearize import split_jaxpr
from ..transforms.transpose import transpose_jaxpr

if TYPE_CHECKING:
    from ..core.trace import Axis
    from ..core.types import Dims, Params, Value
    from ..transforms.linearize import PartialTrace
    from ..transforms.stage import JaxprTrace

jit_p = Primitive(
    "jit",
    multiple_results=True,
    wire=portable(jaxpr=PROGRAM, name=TEXT, donated_invars=many(FLAG), keep_unused=FLAG, inline=FLAG).and_tokens(),
)
_PRUNED: Memo[tuple[bool, ...], tuple[Jaxpr, list[bool]]] = Memo()  # by the results that are used


def bind_jit(
    closed: ClosedJaxpr,
    args: Sequence[Any],
    name: str,
    inline: bool = False,
    keep_unused: bool = False,
    donated: tuple[bool, ...] | None = None,
) -> list[Any]:
    """Calls a closed jaxpr as one program under the current trace."""
    (closed,), refs = hoist_refs(closed)  # writes to them belong to the outer program
    args, donated = [*refs, *args], donated and (*[False] * len(refs), *donated)
    return jit_p.bind(
        *args,
        jaxpr=closed,
        name=name,
        donated_invars=tuple(donated or (False,) * len(args)),
        keep_unused=keep_unused,
        inline=inline,
    )


def _stage(trace: JaxprTrace, args: Sequence[Value], params: Params) -> Any:
    if params["inline"]:
        return eval_jaxpr(params["jaxpr"].jaxpr, params["jaxpr"].consts, *args)
    return trace.record(jit_p, args, params)


def _jvp(
    primals: Sequence[Value],
    tangents: Sequence[Value],
    *,
    jaxpr: ClosedJaxpr,
    name: str,
    donated_invars: tuple[bool, ...],
    keep_unused: bool,
    inline: bool,
) -> tuple[Any, Any]:
    nonzeros = [type(t) is not Zero for t in tangents]
    both, out_nonzeros = jvp_jaxpr(jaxpr, nonzeros)
    outs = bind_jit(both, [*primals, *[t for t in tangents if type(t) is not Zero]], name, inline, keep_unused)
    n = len(out_nonzeros)
    live = iter(outs[n:])
    return outs[:n], [next(live) if nz else Zero(tangent_aval(a)) for nz, a in zip(out_nonzeros, jaxpr.out_avals)]


def _partial_eval(trace: PartialTrace, args: tuple[Value, ...], params: Params) -> Any:
    unknown = [trace.is_unknown(x) for x in args]
    split = split_jaxpr(params["jaxpr"], unknown)
    known_args = [x for x, u in zip(args, unknown) if not u]
    outs = bind_jit(split.known, known_args, params["name"], params["inline"], params["keep_unused"])
    n = len(outs) - split.num_handed_over
    residuals = split.residuals(known_args, outs[:n], outs[n:])
    inputs = [*residuals, *[x for x, u in zip(args, unknown) if u]]
    staged = (
        trace.staged.process(
            jit_p,
            tuple(inputs),
            dict(
                jaxpr=split.staged,
                name=params["name"],
                donated_invars=(False,) * len(inputs),
                keep_unused=params["keep_unused"],
                inline=params["inline"],
            ),
        )
        if any(split.out_unknown) or split.staged.effects
        else []
    )
    known_outs, staged_outs = iter(outs[:n]), iter(staged)
    return [next(staged_outs) if u else next(known_outs) for u in split.out_unknown]


def _transpose(
    cts: Sequence[Value],
    *args: Value,
    jaxpr: ClosedJaxpr,
    name: str,
    donated_invars: tuple[bool, ...],
    keep_unused: bool,
    inline: bool,
) -> list[Value | None]:
    linear = [type(x) is UndefinedPrimal for x in args]
    nonzero = [type(ct) is not Zero for ct in cts]
    back = transpose_jaxpr(jaxpr, linear, nonzero)
    outs = iter(
        bind_jit(
            back,
            [*[x for x, lin in zip(args, linear) if not lin], *[ct for ct in cts if type(ct) is not Zero]],
            name,
            inline,
            keep_unused,
        )
    )
    return [next(outs) if lin else None for lin in linear]


def _batch(
    axis: Axis,
    args: Sequence[Value],
    dims: Dims,
    *,
    jaxpr: ClosedJaxpr,
    name: str,
    donated_invars: tuple[bool, ...],
    keep_unused: bool,
    inline: bool,
) -> tuple[Any, Any]:
    batched = [d is not None for d in dims]
    new, out_batched = batch_jaxpr(jaxpr, axis, batched)
    outs = bind_jit(
        new, [x if d is None else to_front(axis, x, d) for x, d in zip(args, dims)], name, inline, keep_unused
    )
    return outs, [0 if b else None for b in out_batched]


def _dce(used_outputs: Sequence[bool], eqn: JaxprEqn) -> JaxprEqn | None:
    closed: ClosedJaxpr = eqn.params["jaxpr"]
    # equations that share a jaxpr still share one afterwards
    key, pruned = tuple(used_outputs), _PRUNED.of(closed.jaxpr)
    if key not in pruned:
        pruned[key] = dce_jaxpr(closed.jaxpr, used_outputs)
    jaxpr, used_inputs = pruned[key]
    params = dict(
        eqn.params,
        jaxpr=ClosedJaxpr(jaxpr, closed.consts),
        donated_invars=tuple(d for d, u in zip(eqn.params["donated_invars"], used_inputs) if u),
    )
    return eqn.replace(
        invars=[a for a, u in zip(eqn.invars, used_inputs) if u],
        outvars=[v for v, u in zip(eqn.outvars, used_outputs) if u],
        params=params,
    )


def collective_names(*closeds: ClosedJaxpr) -> frozenset[Any]:
    """The named axes over which jaxprs communicate."""
    return frozenset().union(*[_axis_names(closed.jaxpr) for closed in closeds])


@memoized
def _axis_names(jaxpr: Jaxpr) -> frozenset[Any]:
    found: set[Any] = set()
    for eqn in jaxpr.eqns:
        if eqn.primitive.axis_names is not None:
            found.update(eqn.primitive.axis_names(eqn.params))
    return frozenset(found)


def _shown(params: Params) -> list[tuple[str, object]]:
    donated = params["donated_invars"]
    return [(k, params[k]) for k in ("name", "jaxpr")] + ([("donated_invars", donated)] if any(donated) else [])


jit_p.shown = _shown
jit_p.carries = Carries(
    Runs.ONCE, {"jaxpr": ("operands",)}, each={"donated_invars": False}, extensible=True, callee="name"
)
jit_p.abstract = lambda *avals, jaxpr, **_: list(jaxpr.out_avals)
jit_p.effects = lambda params: params["jaxpr"].effects
jit_p.axis_names = lambda params: collective_names(params["jaxpr"])
jit_p.stage, jit_p.jvp, jit_p.partial_eval, jit_p.transpose, jit_p.batch, jit_p.dce = (
    _stage,
    _jvp,
    _partial_eval,
    _transpose,
    _batch,
    _dce,
)
jit_p.decompose = lambda *args, jaxpr, **_: eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args)
jit_p.reference = AsDecomposed(jit_p)
