"""How the primitives that carry jaxprs discharge references, and how reads and writes at batched places are batched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..core.jaxpr import ClosedJaxpr, eval_jaxpr
from ..core.trace import get_aval
from ..core.shardings import without_axis
from ..base.errors import at_user_line
from ..primitives.linear import add_any, broadcast_to_axis, moveaxis
from ..primitives.references import addupdate_p, get_p, read, result_shape, swap_p, whole, write
from ..transforms.batch import batch_flat, to_front
from ..transforms.discharge import discharged_function, is_ref, unique_refs
from ..transforms.stage import consts_as_args, stage_closed
from .call import jit_p
from .cond import cond_p
from .custom_jvp import custom_jvp_call_p
from .custom_vjp import custom_vjp_call_p
from .scan import as_constants, scan_p
from .while_loop import while_p
from .remat import remat_p
from .shard_map import bind_shard_map, scope, shard_map_p

if TYPE_CHECKING:
    from ..core.jaxpr import JaxprEqn
    from ..core.trace import Axis
    from ..core.types import Dims, Value


def _split(atoms: Sequence[Any], values: Sequence[Any], refs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The values of `refs`, and the values that are not references."""
    held = dict(zip(atoms, values))
    return [held[r] for r in refs], [v for a, v in zip(atoms, values) if not is_ref(a)]


def _avals(values: Sequence[Any]) -> list[Any]:
    return [get_aval(v) for v in values]


def _staged(fun: Callable[..., Any], n: int, avals: Sequence[Any]) -> ClosedJaxpr:
    """`fun(held, others)` as a jaxpr of flat arguments, of which the first `n` are the values of references."""
    return stage_closed(lambda *xs: [x for part in fun(xs[:n], xs[n:]) for x in part], avals)


def _parts(
    atoms: Sequence[Any], values: Sequence[Any], *closeds: ClosedJaxpr
) -> tuple[list[Any], list[Any], list[Any]]:
    """The references among atoms, their values followed by the other values, and programs of these."""
    refs = unique_refs(atoms)
    held, others = _split(atoms, values, refs)
    inputs = [*held, *others]
    return (
        refs,
        inputs,
        [_staged(discharged_function(closed, atoms, refs), len(refs), _avals(inputs)) for closed in closeds],
    )


def _results(eqn: JaxprEqn, outs: Sequence[Any], refs: Sequence[Any]) -> tuple[Sequence[Any], dict[Any, Any]]:
    n = len(eqn.outvars)
    return outs[:n], dict(zip(refs, outs[n:]))


def _without_reads(n: int, refs: Sequence[Any], closeds: Sequence[ClosedJaxpr]) -> tuple[list[ClosedJaxpr], list[Any]]:
    """Programs of `n` results, that do not return the values of references which none of them changes, and the
    references whose values they return.
    """
    changed = [any(c.jaxpr.outvars[n + i] is not c.jaxpr.invars[i] for c in closeds) for i in range(len(refs))]
    kept = [*range(n), *[n + i for i, c in enumerate(changed) if c]]
    programs = [ClosedJaxpr(c.jaxpr.replace(outvars=[c.jaxpr.outvars[k] for k in kept]), c.consts) for c in closeds]
    return programs if not all(changed) else list(closeds), [r for r, c in zip(refs, changed) if c]


def _jit(eqn: JaxprEqn, values: Sequence[Value]) -> tuple[Sequence[Any], dict[Any, Any]]:
    refs, inputs, programs = _parts(eqn.invars, values, eqn.params["jaxpr"])
    (closed,), written = _without_reads(len(eqn.outvars), refs, programs)
    params = dict(eqn.params, jaxpr=closed, donated_invars=(False,) * len(inputs))
    return _results(eqn, jit_p.bind(*inputs, **params), written)


def _remat(eqn: JaxprEqn, values: Sequence[Value]) -> tuple[Sequence[Any], dict[Any, Any]]:
    refs, inputs, (closed,) = _parts(eqn.invars, values, ClosedJaxpr(eqn.params["jaxpr"], []))
    return _results(
        eqn, remat_p.bind(*closed.consts, *inputs, **dict(eqn.params, jaxpr=consts_as_args(closed.jaxpr))), refs
    )


def _cond(eqn: JaxprEqn, values: Sequence[Value]) -> tuple[Sequence[Any], dict[Any, Any]]:
    refs, inputs, programs = _parts(eqn.invars[1:], values[1:], *eqn.params["branches"])
    branches, written = _without_reads(len(eqn.outvars), refs, programs)
    return _results(eqn, cond_p.bind(values[0], *inputs, **dict(eqn.params, branches=tuple(branches))), written)


def _custom(eqn: JaxprEqn, values: Sequence[Value]) -> tuple[Sequence[Any], dict[Any, Any]]:
    """The derivatives have been taken, so a function with rules from users is reduced to the function."""
    refs, inputs, (closed,) = _parts(eqn.invars, values, eqn.params["call_jaxpr"])
    return _results(eqn, eval_jaxpr(closed.jaxpr, closed.consts, *inputs), refs)


def _shard_map(eqn: JaxprEqn, values: Sequence[Value]) -> tuple[Sequence[Any], dict[Any, Any]]:
    """A reference is sharded as its spec says, before and after."""
    p, atoms = eqn.params, eqn.invars
    specs: dict[Any, Any] = {}
    for atom, spec in zip(atoms, p["in_specs"]):
        if is_ref(atom) and specs.setdefault(atom, spec) != spec:
            raise ValueError(
                f"shard_map: one mutable reference is passed with two specs, {specs[atom]} and {spec} (at"
                f" {eqn.source_info})."
            )
    refs = unique_refs(atoms)
    held, others = _split(atoms, values, refs)
    local = {a: v.aval.inner if is_ref(v) else v.aval for a, v in zip(atoms, p["jaxpr"].jaxpr.invars)}
    rest = [(v.aval, s) for a, v, s in zip(atoms, p["jaxpr"].jaxpr.invars, p["in_specs"]) if not is_ref(a)]
    with scope(p["mesh"], p["newly_manual_axes"], p["check_vma"]):
        closed = _staged(
            discharged_function(p["jaxpr"], atoms, refs),
            len(refs),
            [*[local[r] for r in refs], *[aval for aval, _ in rest]],
        )
    outs = bind_shard_map(
        [*held, *others],
        closed,
        p["mesh"],
        [*[specs[r] for r in refs], *[s for _, s in rest]],
        [*p["out_specs"], *[specs[r] for r in refs]],
        p["check_vma"],
        p["newly_manual_axes"],
    )
    return _results(eqn, outs, refs)


def _scan(eqn: JaxprEqn, values: Sequence[Value]) -> tuple[Any, Any]:
    p, atoms = eqn.params, eqn.invars
    k, m = p["num_consts"], p["num_consts"] + p["num_carry"]
    if any(map(is_ref, atoms[k:])):
        raise ValueError(
            f"scan: a mutable reference can't be part of the carry or of xs (at {eqn.source_info}). Let the body close"
            " over it."
        )
    refs = unique_refs(atoms)
    held, others = _split(atoms, values, refs)
    consts = k - sum(map(is_ref, atoms[:k]))
    fun = discharged_function(p["jaxpr"], atoms, refs)
    body = lambda *xs: _scan_step(fun, xs, consts, len(refs))
    rows = [without_axis(a) for a in _avals(values[m:])]
    closed = stage_closed(body, _avals([*others[:consts], *held, *values[k:m]]) + rows)
    read = _only_read(closed, refs, consts)
    jaxpr, fixed, carry = as_constants(closed.jaxpr, others[:consts], [*held, *values[k:m]], read)
    outs = scan_p.bind(
        *fixed,
        *carry,
        *values[m:],
        **dict(p, jaxpr=ClosedJaxpr(jaxpr, closed.consts), num_consts=len(fixed), num_carry=len(carry)),
    )
    written = [r for i, r in enumerate(refs) if i not in read]
    return outs[len(written) :], dict(zip(written, outs[: len(written)]))


def _only_read(body: ClosedJaxpr, refs: Sequence[Any], first: int) -> set[int]:
    """The references, by number, whose values a loop's body, which takes them from argument `first` on, returns
    unchanged.
    """
    jaxpr = body.jaxpr
    return {i for i in range(len(refs)) if jaxpr.outvars[i] is jaxpr.invars[first + i]}


def _scan_step(fun: Callable[..., Any], xs: Sequence[Value], consts: int, n: int) -> list[Any]:
    outs, held = fun(xs[consts : consts + n], [*xs[:consts], *xs[consts + n :]])
    return [*held, *outs]


def _while(eqn: JaxprEqn, values: Sequence[Value]) -> tuple[Any, Any]:
    p, atoms = eqn.params, eqn.invars
    a, b = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    if any(map(is_ref, atoms[b:])):
        raise ValueError(
            f"while_loop: a mutable reference can't be part of the carry (at {eqn.source_info}). Let the body close"
            " over it."
        )
    refs = unique_refs(atoms)
    held, _ = _split(atoms, values, refs)
    n, carry = len(refs), values[b:]
    cond_consts, body_consts = [
        [v for x, v in zip(atoms[i:j], values[i:j]) if not is_ref(x)] for i, j in ((0, a), (a, b))
    ]
    test = discharged_function(p["cond_jaxpr"], [*atoms[:a], *atoms[b:]], refs)
    step = discharged_function(p["body_jaxpr"], atoms[a:], refs)

    def cond(*xs: Value) -> list[Any]:
        c = len(cond_consts)
        given = xs[c : c + n]
        (out,), after = test(given, [*xs[:c], *xs[c + n :]])
        if any(x is not y for x, y in zip(after, given)):
            raise ValueError(
                f"while_loop: the condition writes to a mutable reference (at {eqn.source_info}). Write in the body."
            )
        return [out]

    def body(*xs: Value) -> list[Any]:
        c = len(body_consts)
        outs, after = step(xs[c : c + n], [*xs[:c], *xs[c + n :]])
        return [*after, *outs]

    loop = _avals([*held, *carry])
    whole = stage_closed(body, _avals(body_consts) + loop)
    asked = stage_closed(cond, _avals(cond_consts) + loop)
    read = _only_read(whole, refs, len(body_consts))
    everything = [*held, *carry]
    body_jaxpr, body_fixed, rest = as_constants(whole.jaxpr, body_consts, everything, read)
    # the condition returns no carry
    cond_jaxpr, cond_fixed, _ = as_constants(asked.jaxpr, cond_consts, everything, read, returns_carry=False)
    outs = while_p.bind(
        *cond_fixed,
        *body_fixed,
        *rest,
        **dict(
            p,
            cond_jaxpr=ClosedJaxpr(cond_jaxpr, asked.consts),
            cond_nconsts=len(cond_fixed),
            body_jaxpr=ClosedJaxpr(body_jaxpr, whole.consts),
            body_nconsts=len(body_fixed),
        ),
    )
    written = [r for i, r in enumerate(refs) if i not in read]
    return outs[len(written) :], dict(zip(written, outs[: len(written)]))


for _p, _rule in (
    (jit_p, _jit),
    (remat_p, _remat),
    (scan_p, _scan),
    (while_p, _while),
    (cond_p, _cond),
    (custom_jvp_call_p, _custom),
    (custom_vjp_call_p, _custom),
    (shard_map_p, _shard_map),
):
    _p.add_rules(discharge=_rule)

# batching ------------------------------------------------------------------------------------------------------------


def _inserted(index: Value, dim: int, size: int, operands: Sequence[Value]) -> tuple[tuple[Any, ...], int]:
    """An index of the batched array, and the position of the batch axis in the result; for places that are the same in
    all elements.
    """
    wider = (*index[:dim], ("slice", 0, size, 1), *index[dim:])
    lead = len(result_shape(index, [get_aval(o) for o in operands])) - sum(e[0] == "slice" for e in index)
    return wider, lead + sum(e[0] == "slice" for e in index[:dim])


def _unbatched(name: str, ref: Any) -> Exception:
    return ValueError(
        at_user_line(
            f"{name}: a vmapped value is written to a reference of type {get_aval(ref).str_short()} that is not. "
            "Make the reference an argument of the vmapped function, or make it inside."
        )
    )


def _at_places(axis: Axis, fun: Callable[..., Any], index: Value, values: Sequence[Value], dims: Dims) -> Value:
    """`fun(x, index, operands…)` for each element, with results batched along axis 0."""
    (out,), (dim,) = batch_flat(lambda *xs: [fun(*xs)], axis, values, dims)
    return to_front(axis, out, dim)


def _get_batch(axis: Axis, args: Sequence[Value], dims: Dims, *, index: Value) -> tuple[Any, Any]:
    ref, *operands = args
    if dims[0] is not None and all(d is None for d in dims[1:]):
        wider, dim = _inserted(index, dims[0], axis.size, operands)
        return get_p.bind(ref, *operands, index=wider), dim
    value = get_p.bind(ref, index=whole(get_aval(ref).shape))
    return _at_places(axis, lambda x, *ops: read(x, index, ops), index, [value, *operands], dims), 0


def _swap_batch(axis: Axis, args: Sequence[Value], dims: Dims, *, index: Value) -> tuple[Any, Any]:
    ref, value, *operands = args
    if dims[0] is None:
        raise _unbatched("set or swap", ref)
    if all(d is None for d in dims[2:]):
        wider, dim = _inserted(index, dims[0], axis.size, operands)
        value = (
            moveaxis(broadcast_to_axis(value, axis.size), 0, dim) if dims[1] is None else moveaxis(value, dims[1], dim)
        )
        return swap_p.bind(ref, value, *operands, index=wider), dim
    everything = whole(get_aval(ref).shape)
    old = get_p.bind(ref, index=everything)
    new = _at_places(axis, lambda x, v, *ops: write(x, index, ops, v), index, [old, value, *operands], dims)
    swap_p.bind(ref, moveaxis(new, 0, dims[0]), index=everything)
    return _at_places(axis, lambda x, *ops: read(x, index, ops), index, [old, *operands], [dims[0], *dims[2:]]), 0


def _addupdate_batch(axis: Axis, args: Sequence[Value], dims: Dims, *, index: Value) -> tuple[Any, Any]:
    ref, value, *operands = args
    if dims[0] is None:
        raise _unbatched("addupdate", ref)
    if all(d is None for d in dims[2:]):
        wider, dim = _inserted(index, dims[0], axis.size, operands)
        value = (
            moveaxis(broadcast_to_axis(value, axis.size), 0, dim) if dims[1] is None else moveaxis(value, dims[1], dim)
        )
        return addupdate_p.bind(ref, value, *operands, index=wider), []
    everything = whole(get_aval(ref).shape)
    old = get_p.bind(ref, index=everything)
    new = _at_places(
        axis,
        lambda x, v, *ops: write(x, index, ops, add_any(read(x, index, ops), v)),
        index,
        [old, value, *operands],
        dims,
    )
    swap_p.bind(ref, moveaxis(new, 0, dims[0]), index=everything)
    return [], []


get_p.add_rules(batch=_get_batch)
swap_p.add_rules(batch=_swap_batch)
addupdate_p.add_rules(batch=_addupdate_batch)
