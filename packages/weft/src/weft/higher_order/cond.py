"""cond and switch: run one of several programs, chosen by a traced integer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence, TypeVar

from ..base import dtypes, promotion
from ..base.avals import AbstractRef, physical, tangent_aval
from ..base.config import config
from ..core.carries import Carries, PROGRAM, REST, Runs
from ..core.effects import any_io
from ..core.interpret import interpret
from ..core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var, eval_jaxpr, subjaxprs
from ..core.memo import Memo
from ..core.primitive import Primitive, UndefinedPrimal, Zero
from ..core.shardings import placed_of
from ..core.wire import many, portable
from ..core.trace import Tracer, get_aval, is_array, is_array_like
from ..base.source_info import api_boundary
from ..base.errors import at_user_line, type_error
from ..primitives.elementwise import clamp, eq, ne, select_n_p
from ..primitives.linear import broadcast_in_dim, convert, stop_gradient_p, zeros
from ..primitives.positions import narrowed
from ..primitives.random_bits import random_wrap_p
from ..primitives.rules import scalar_like, shape_of
from ..transforms.batch import batch_jaxpr, to_front
from ..transforms.dce import dce_jaxpr
from ..transforms.discharge import hoist_refs
from ..transforms.jvp import is_concrete, jvp_jaxpr
from ..transforms.linearize import split_jaxpr
from ..transforms.stage import stage_closed
from ..transforms.transpose import transpose_jaxpr
from ..base.tree import tree_flatten, tree_unflatten
from .call import collective_names
from .common import close, describe_mismatch, reorder, trace_open, widen

if TYPE_CHECKING:
    from ..base.annotations import PyTree
    from ..base.avals import AbstractValue, ShapedArray
    from ..core.jaxpr import Jaxpr
    from ..core.trace import Axis
    from ..core.types import Dims, Params, Value
    from ..transforms.linearize import PartialTrace
    from ..base.array import ArrayLike

_T = TypeVar("_T")

cond_p = Primitive("cond", multiple_results=True, wire=portable(branches=many(PROGRAM)).and_tokens())


def _bind_cond(index: Value, *args: Value, branches: Sequence[ClosedJaxpr]) -> list[Any]:
    branches, refs = hoist_refs(*branches)  # of a custom derivative's rule that closes over them
    return cond_p.bind(index, *refs, *args, branches=tuple(branches))


def _cond_abstract(
    index: Value, *avals: AbstractValue, branches: Sequence[ClosedJaxpr], **_: Any
) -> list[AbstractValue]:
    if index.shape or index.dtype != dtypes.int32:
        raise type_error(f"cond's index must be an int32 scalar, got {index}.")
    return list(branches[0].out_avals)


def _cond_reference(index: Value, *args: Value, branches: Sequence[ClosedJaxpr], **_: Any) -> list[Any]:
    return interpret(branches[min(max(int(index), 0), len(branches) - 1)], args)


def _cond_jvp(
    primals: Sequence[Value], tangents: Sequence[Value], *, branches: Sequence[ClosedJaxpr]
) -> tuple[Any, Any]:
    index, *args = primals
    nonzero = [type(t) is not Zero for t in tangents[1:]]
    out_nz = [False] * len(branches[0].out_avals)
    for b in branches:
        out_nz = [a or c for a, c in zip(out_nz, jvp_jaxpr(b, nonzero)[1])]
    both = tuple(jvp_jaxpr(b, nonzero, out_nz)[0] for b in branches)
    outs = _bind_cond(index, *args, *[t for t in tangents[1:] if type(t) is not Zero], branches=both)
    n = len(out_nz)
    ts = iter(outs[n:])
    return outs[:n], [next(ts) if nz else Zero(tangent_aval(get_aval(o))) for o, nz in zip(outs[:n], out_nz)]


# by name: most programs have no references, and pages fetch their module when it is first imported
_WRITING = ("swap", "addupdate", "free_ref")


def _writes(jaxpr: Jaxpr) -> bool:
    """Whether a program writes to references that it is given."""
    given = {v for v in (*jaxpr.constvars, *jaxpr.invars) if type(v.aval) is AbstractRef}
    for eqn in jaxpr.eqns:
        if not given.isdisjoint(a for a in eqn.invars if type(a) is Var):
            if eqn.primitive.name in _WRITING or any(map(_writes, subjaxprs(eqn.params))):
                return True
    return False


def _cond_batch(axis: Axis, args: Sequence[Value], dims: Dims, *, branches: Sequence[ClosedJaxpr]) -> tuple[Any, Any]:
    index, *ops = args
    batched = [d is not None for d in dims[1:]]
    ops = [x if d is None else to_front(axis, x, d) for x, d in zip(ops, dims[1:])]
    if dims[0] is not None:  # elements choose differently: compute all, select
        if any(any_io(b.effects) for b in branches):
            raise NotImplementedError(
                at_user_line(
                    "IO effect not supported in vmap-of-cond: where elements choose differently all branches run, and"
                    " the callback would be called for elements that do not choose its branch. Use lax.map over the"
                    " elements."
                )
            )
        if any(_writes(b.jaxpr) for b in branches):
            raise NotImplementedError(
                at_user_line(
                    "State effect not supported in vmap-of-cond: where elements choose differently all branches run,"
                    " and each would write to the reference. Choose the value with weft.numpy.where, and write that."
                )
            )
        index = to_front(axis, index, dims[0])
        masked = [
            b and not isinstance(get_aval(x), AbstractRef) and dtypes.is_inexact(get_aval(x).dtype)
            for x, b in zip(ops, batched)
        ]
        which = ne(index, scalar_like(index, 0))
        if len(branches) != 2:
            index = which = clamp(scalar_like(index, 0), index, scalar_like(index, len(branches) - 1))
        results = []
        for k, b in enumerate(branches):
            # derivatives of a branch at operands for which another branch is chosen may be infinite: they must not
            # reach those operands, even multiplied by 0
            mine = which if k and len(branches) == 2 else eq(index, scalar_like(index, k))
            chosen = [
                select_n_p.bind(broadcast_in_dim(mine, shape_of(x), (0,)), stop_gradient_p.bind(x), x) if m else x
                for x, m in zip(ops, masked)
            ]
            new, _ = batch_jaxpr(b, axis, batched, True)
            results.append(eval_jaxpr(new.jaxpr, new.consts, *chosen))
        outs = [select_n_p.bind(broadcast_in_dim(which, shape_of(cases[0]), (0,)), *cases) for cases in zip(*results)]
        return outs, [0] * len(outs)
    out_b = [False] * len(branches[0].out_avals)
    for b in branches:
        out_b = [a or c for a, c in zip(out_b, batch_jaxpr(b, axis, batched)[1])]
    wide = tuple(batch_jaxpr(b, axis, batched, out_b)[0] for b in branches)
    return _bind_cond(index, *ops, branches=wide), [0 if b else None for b in out_b]


def _cond_partial_eval(trace: PartialTrace, args: tuple[Value, ...], params: Params) -> Any:
    branches = params["branches"]
    index, *ops = args
    if trace.is_unknown(index):
        return trace.staged.process(cond_p, args, params)
    unknown = [trace.is_unknown(x) for x in ops]
    out_u = [False] * len(branches[0].out_avals)
    for b in branches:
        out_u = [a or c for a, c in zip(out_u, split_jaxpr(b, unknown).out_unknown)]
    splits = [split_jaxpr(b, unknown, out_u) for b in branches]
    known_ops, unknown_ops = [x for x, u in zip(ops, unknown) if not u], [x for x, u in zip(ops, unknown) if u]
    # the values of references that linear programs need have been read
    values = [j for j, x in enumerate(known_ops) if type(get_aval(x)) is not AbstractRef]
    # Every branch returns as many residuals as the branch with the most; branches share slots. Known operands are not
    # returned as residuals.
    own = [[i for i, (where, _) in enumerate(s.sources) if where != "arg"] for s in splits]
    slots, places = _slots([[s.staged.in_avals[i] for i in ids] for s, ids in zip(splits, own)])
    known_branches = [_known_branch(s, ids, at, slots) for s, ids, at in zip(splits, own, places)]
    staged_branches = [
        _staged_branch(
            s, ids, at, slots, values, [get_aval(known_ops[j]) for j in values], [get_aval(x) for x in unknown_ops]
        )
        for s, ids, at in zip(splits, own, places)
    ]
    outs = _bind_cond(index, *known_ops, branches=tuple(known_branches))
    n = len(outs) - len(slots)
    # a branch without unknown results may still write to references of tangents
    if not any(out_u) and not any(s.staged.effects for s in splits):
        return outs[:n]
    staged = trace.staged.process(
        cond_p, (index, *outs[n:], *[known_ops[j] for j in values], *unknown_ops), dict(branches=tuple(staged_branches))
    )
    known_iter, staged_iter = iter(outs[:n]), iter(staged)
    return [next(staged_iter) if u else next(known_iter) for u in out_u]


def _known_branch(split: Any, own: Any, places: Any, slots: Any) -> ClosedJaxpr:
    def run(*args: Value) -> list[Any]:
        outs = eval_jaxpr(split.known.jaxpr, split.known.consts, *args)
        n = len(outs) - split.num_handed_over
        mine = split.residuals(args, outs[:n], outs[n:])
        return [*outs[:n], *_placed([mine[i] for i in own], places, slots)]

    return stage_closed(run, split.known.in_avals)


def _staged_branch(
    split: Any,
    own: Any,
    places: Any,
    slots: Any,
    values: Sequence[Value],
    known_avals: Sequence[AbstractValue],
    unknown_avals: Sequence[AbstractValue],
) -> ClosedJaxpr:
    def run(*args: Value) -> list[Any]:
        handed, known, unknown = (
            args[: len(slots)],
            args[len(slots) : len(slots) + len(known_avals)],
            args[len(slots) + len(known_avals) :],
        )
        mine, held = {i: handed[at] for i, at in zip(own, places)}, dict(zip(values, known))
        residuals = [mine[i] if i in mine else held[j] for i, (_, j) in enumerate(split.sources)]
        return eval_jaxpr(split.staged.jaxpr, split.staged.consts, *residuals, *unknown)

    return stage_closed(run, [*slots, *known_avals, *unknown_avals])


def _cond_transpose(
    cts: Sequence[Value], index: Value, *args: Value, branches: Sequence[ClosedJaxpr]
) -> list[Value | None]:
    linear = [type(x) is UndefinedPrimal for x in args]
    nonzero = [type(ct) is not Zero for ct in cts]
    back = tuple(transpose_jaxpr(b, linear, nonzero) for b in branches)
    outs = iter(
        _bind_cond(
            index,
            *[x for x, lin in zip(args, linear) if not lin],
            *[ct for ct in cts if type(ct) is not Zero],
            branches=back,
        )
    )
    return [None, *[next(outs) if lin else None for lin in linear]]


def _cond_dce(used_outputs: Sequence[bool], eqn: JaxprEqn) -> JaxprEqn | None:
    branches = eqn.params["branches"]
    used = [False] * len(branches[0].in_avals)
    for b in branches:
        used = [a or c for a, c in zip(used, dce_jaxpr(b.jaxpr, used_outputs)[1])]
    new = tuple(ClosedJaxpr(dce_jaxpr(b.jaxpr, used_outputs, used)[0], b.consts) for b in branches)
    return eqn.replace(
        invars=[eqn.invars[0], *[a for a, u in zip(eqn.invars[1:], used) if u]],
        outvars=[v for v, u in zip(eqn.outvars, used_outputs) if u],
        params=dict(eqn.params, branches=new),
    )


def _cond_split_for_remat(eqn: JaxprEqn, split: Callable[..., Any]) -> tuple[Any, Any, Any]:
    parts = [split(b) for b in eqn.params["branches"]]
    slots, places = _slots([[(v.aval, answer) for v, answer in p.saved.items()] for p in parts])
    handed, avals, k = [Var(a) for a, _ in slots], eqn.params["branches"][0].in_avals, len(slots)

    def forward(part: Any, mine: Any) -> ClosedJaxpr:
        def run(*args: Value) -> list[Any]:
            outs = eval_jaxpr(part.forward.jaxpr, part.forward.consts, *args)
            n = len(outs) - len(mine)
            return [*outs[:n], *_placed(outs[n:], mine, [a for a, _ in slots])]

        return stage_closed(run, avals)

    def recompute(part: Any, mine: Any) -> ClosedJaxpr:
        return stage_closed(
            lambda *args: eval_jaxpr(
                part.recompute.jaxpr, part.recompute.consts, *args[: -k or None], *[args[len(avals) + i] for i in mine]
            ),
            [*avals, *[a for a, _ in slots]],
        )

    first = eqn.replace(
        outvars=[*eqn.outvars, *handed], params=dict(eqn.params, branches=tuple(map(forward, parts, places)))
    )
    second = eqn.replace(
        invars=[*eqn.invars, *handed], params=dict(eqn.params, branches=tuple(map(recompute, parts, places)))
    )
    return {v: answer for v, (_, answer) in zip(handed, slots)}, [first], second


def _slots(branches: Sequence[Sequence[Any]]) -> tuple[list[Any], list[Any]]:
    """The fewest slots that hold the residuals of any branch, where residuals of equal types share slots: the slots,
    and the slot of each branch's residuals.
    """
    slots: list[Any] = []
    places = []
    for kinds in branches:
        free, mine = list(range(len(slots))), []
        for kind in kinds:
            i = next((i for i in free if slots[i] == kind), None)
            if i is None:
                i = len(slots)
                slots.append(kind)
            else:
                free.remove(i)
            mine.append(i)
        places.append(mine)
    return slots, places


def _placed(values: Sequence[Any], places: Sequence[int], avals: Sequence[Any]) -> list[Any]:
    """One branch's values in their slots, and zeros in the others."""
    mine = dict(zip(places, values))
    return [mine[i] if i in mine else _stand_in(a) for i, a in enumerate(avals)]


def _stand_in(aval: ShapedArray) -> Any:
    """Zeros of any type that a value can have, keys and float0 too."""
    if aval.dtype == dtypes.float0:
        return dtypes.float0_zeros(aval.shape)
    return random_wrap_p.bind(zeros(physical(aval)), impl=aval.dtype) if dtypes.is_key(aval.dtype) else zeros(aval)


cond_p.carries = Carries(Runs.CHOSEN, {"branches": ("operands",)}, {"index": 1, "operands": REST}, extensible=True)
cond_p.split_for_remat = _cond_split_for_remat
cond_p.abstract, cond_p.reference, cond_p.jvp, cond_p.batch = _cond_abstract, _cond_reference, _cond_jvp, _cond_batch
cond_p.partial_eval, cond_p.transpose, cond_p.dce = _cond_partial_eval, _cond_transpose, _cond_dce
cond_p.effects = lambda params: frozenset().union(*[b.effects for b in params["branches"]])
cond_p.axis_names = lambda params: collective_names(*params["branches"])


NO_OPERAND = object()  # None is an operand like any other value


@api_boundary
def switch(
    index: ArrayLike, branches: Sequence[Callable[..., _T]], *operands: PyTree, operand: PyTree = NO_OPERAND
) -> _T:
    """Calls `branches[index](*operands)`; the index is clamped to the branches there are.

    All branches take the same operands and return pytrees of one structure, shapes and dtypes.

    Args:
        index: integer scalar.
        branches: sequence of functions of the operands, whose results have one structure, the same dtypes and shapes.
        *operands: pytrees of arrays, of any dtype and shape.
        operand: as the only one of `operands`, by its old name.

    Returns:
        pytree of the dtypes and shapes that the branches return.

    Raises:
        TypeError: for an index that is no integer scalar, and branches whose results differ. ValueError: without
            branches.

    Example:
        >>> import weft
        >>> weft.lax.switch(1, [lambda x: x + 1, lambda x: x * 10], 3.0)
        Array(30., dtype=float32, weak_type=True)
    """
    operands = _operands("switch", operands, operand)
    branches = list(branches)
    if not branches:
        raise ValueError(at_user_line("Empty branch sequence: switch needs at least one branch."))
    if not all(map(callable, branches)):
        raise TypeError("lax.switch: branches argument should be a sequence of callables.")
    if not is_array_like(index) or get_aval(index).shape or not dtypes.is_int(get_aval(index).dtype):
        raise TypeError(f"Index type must be an integer scalar, got {index!r}.")
    if len(branches) == 1:
        return branches[0](*operands)
    which: Any = index
    if config.disable_jit and is_concrete(which):
        return branches[min(max(int(which), 0), len(branches) - 1)](*operands)
    which = narrowed(index, dtypes.int32)
    which = clamp(scalar_like(which, 0), which, scalar_like(which, len(branches) - 1))
    return choose(which, branches, operands, "switch")


@api_boundary
def cond(
    pred: ArrayLike,
    true_fun: Callable[..., _T],
    false_fun: Callable[..., _T],
    *operands: PyTree,
    operand: PyTree = NO_OPERAND,
) -> _T:
    """`true_fun(*operands)` if `pred` else `false_fun(*operands)`; under `vmap` with a batched predicate both run and a
    select picks.

    Called as cond(pred, true_fun, false_fun, *operands), or in the old form cond(pred, true_operand, true_fun,
    false_operand, false_fun).

    Args:
        pred: array of one boolean or number, a scalar.
        true_fun: function of the operands.
        false_fun: function of the operands, whose results have the same structure, dtypes and shapes.
        *operands: pytrees of arrays, of any dtype and shape.
        operand: as the only one of `operands`, by its old name.

    Returns:
        pytree of the dtypes and shapes that both functions return.

    Raises:
        TypeError: if `pred` is no scalar, the functions are none, or their results have different types.

    Example:
        >>> import weft
        >>> weft.lax.cond(True, lambda x: x + 1, lambda x: x - 1, 5.0)
        Array(6., dtype=float32, weak_type=True)
    """
    if len(operands) == 2 and callable(false_fun) and callable(operands[1]) and not callable(true_fun):
        true_operand: Any = true_fun  # in the old form, operands are passed by position
        on_true, false_operand, on_false = false_fun, operands[0], operands[1]
        return cond(pred, lambda ops: on_true(ops[0]), lambda ops: on_false(ops[1]), (true_operand, false_operand))
    if not (callable(true_fun) and callable(false_fun)):
        raise TypeError("lax.cond: true_fun and false_fun arguments should be callable.")
    operands = _operands("cond", operands, operand)
    if not is_array_like(pred):
        raise TypeError(f"Pred must be a scalar of bool or number type, got {pred!r} of type {type(pred).__name__}.")
    aval = get_aval(pred)
    if aval.shape:
        raise TypeError(
            at_user_line(
                f"Pred must be a scalar, got {pred} of shape {aval.shape}. (Use weft.numpy.where to choose"
                " elementwise.)"
            )
        )
    if config.disable_jit and is_concrete(pred):
        return true_fun(*operands) if bool(pred) else false_fun(*operands)
    if not dtypes.is_bool(aval.dtype):
        pred = ne(pred, scalar_like(pred, 0))
    return choose(convert(pred, dtypes.int32), [false_fun, true_fun], operands, "cond", (1, 0))


def _operands(who: str, operands: tuple[Any, ...], operand: PyTree) -> tuple[Any, ...]:
    """The operands, passed one by one or as `operand=`."""
    if operand is NO_OPERAND:
        return operands
    if operands:
        raise TypeError(
            f"lax.{who}: if operand= is given there are no positional operands, got operand={operand!r} and"
            f" {tuple(operands)!r}."
        )
    return (operand,)


def choose(
    index: Any,
    funs: Sequence[Callable[..., Any]],
    operands: Sequence[Any],
    who: str,
    order: Sequence[int] | None = None,
) -> Any:
    """Binds cond: `funs[index](*operands)` for an int32 scalar in range. `order` is that in which they are traced."""
    flat, tree = tree_flatten(tuple(operands))
    for x in flat:
        if not is_array_like(x):
            raise TypeError(f"lax.{who} operands must be arrays; got a value of type {type(x).__name__}: {x!r}.")
    avals = [get_aval(x) for x in flat]
    order = range(len(funs)) if order is None else order
    found = {
        i: trace_open(funs[i], tree, avals, f"a branch of {who}, {getattr(funs[i], '__name__', 'f')}") for i in order
    }
    traced = [found[i] for i in range(len(funs))]
    first_tree = traced[0][2]
    outs = [list(j.out_avals) for j, _, _ in traced]
    for i, (_, _, out_tree) in enumerate(traced[1:], 1):
        example = tree_unflatten(first_tree, outs[0]) if first_tree.num_leaves else first_tree.unflatten([])
        problem = describe_mismatch(example, outs[i], outs[0], out_tree, first_tree)
        if problem and not (out_tree == first_tree and _equal_but_for_weakness(outs[0], outs[i])):
            raise type_error(
                f"{who} branches must have equal output types: in the result of branch {i} {problem} (branch 0)."
            )
    strong = [_common(column) for column in zip(*outs)]
    consts: dict[int, Any] = {id(c): c for i in order for c in found[i][1]}
    place = {key: i for i, key in enumerate(consts)}
    shared, inputs = [get_aval(c) for c in consts.values()], [*consts.values(), *flat]
    branches = [
        _with_consts(jaxpr, tuple(place[id(c)] for c in cs), (*shared, *avals), len(shared), tuple(strong))
        for jaxpr, cs, _ in traced
    ]
    # what every branch hands on is no result of the choice
    handed = [_handed_on([b.jaxpr for b in branches], k, inputs) for k in range(len(strong))]
    chosen = [k for k, i in enumerate(handed) if i is None]
    left = [reorder(b, range(len(inputs)), chosen) for b in branches]
    values, wide = widen(index, inputs, left)
    results = iter(_bind_cond(index, *values, branches=tuple(wide)))
    return tree_unflatten(first_tree, [next(results) if i is None else inputs[i] for i in handed])


def _handed_on(branches: Sequence[Jaxpr], result: int, inputs: Sequence[Value]) -> int | None:
    """The operand that is this result of every branch; None if there is none. (A value of the host becomes an array as
    a result.)
    """
    places: set[int | None] = set()
    for branch in branches:
        out = branch.outvars[result]
        places.add(branch.invars.index(out) if isinstance(out, Var) and out in branch.invars else None)
    i = places.pop()
    if places or i is None or isinstance(branches[0].invars[i].aval, AbstractRef):
        return None
    return i if isinstance(inputs[i], Tracer) or is_array(inputs[i]) else None


def _equal_but_for_weakness(a: Value, b: Value) -> bool:
    return all(x.shape == y.shape and x.dtype == y.dtype and placed_of(x) == placed_of(y) for x, y in zip(a, b))


def _common(column: Any) -> tuple[Any, Any]:
    dt, weak = (
        promotion.promote(*[(a.dtype, a.weak_type) for a in column])
        if len({(a.dtype, a.weak_type) for a in column}) > 1
        else (column[0].dtype, column[0].weak_type)
    )
    return dt, weak


_SHARED: Memo[Any, ClosedJaxpr] = Memo()


def _with_consts(
    jaxpr: Jaxpr, places: tuple[int, ...], avals: tuple[AbstractValue, ...], shared: int, strong: tuple[Any, ...]
) -> ClosedJaxpr:
    """A branch that takes the constants of all branches, its own at `places`, and gives results of the common types."""
    same = all((a.dtype, a.weak_type) == s for a, s in zip(jaxpr.out_avals, strong))
    if same and places == tuple(range(shared)):
        return close(jaxpr)

    def run(*args: Value) -> list[Any]:
        outs = eval_jaxpr(jaxpr, [], *[args[i] for i in places], *args[shared:])
        return [convert(o, dt, weak) for o, (dt, weak) in zip(outs, strong)]

    table, key = _SHARED.of(jaxpr), (places, avals, shared, strong)
    if key not in table:
        table[key] = stage_closed(run, avals)
    return table[key]
