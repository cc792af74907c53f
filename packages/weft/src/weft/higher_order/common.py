"""Shared by loops and conditionals: tracing their functions, and checking that types agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..base import promotion
from ..base.config import config
from ..base.avals import AbstractRef, AbstractValue, array_aval
from ..core.jaxpr import ClosedJaxpr, Jaxpr, eval_jaxpr
from ..core.memo import Memo, memoized
from ..core.shardings import placed_of
from ..core.trace import Tracer, axis_env, get_aval
from ..core.traces import traces_of
from ..base.errors import at_user_line
from ..primitives.collective import pvary_p
from ..primitives.linear import convert
from ..transforms.stage import consts_as_args, stage, stage_closed
from ..transforms.varying_axes import vma_of
from ..base.tree import PyTreeDef, keystr, tree_flatten, tree_flatten_with_path

if TYPE_CHECKING:
    from ..base.annotations import PyTree
    from ..core.types import Value


def trace_open(
    fun: Callable[..., Any],
    in_tree: PyTreeDef,
    avals: Sequence[AbstractValue],
    what: str,
    of: Callable[..., Any] | None = None,
) -> tuple[Jaxpr, list[Any], PyTreeDef]:
    """Traces `fun(*unflattened)`: a jaxpr whose constants lead its arguments, those constants, and the result's
    structure.

    A function that was traced for such arguments is not traced again, unless it closes over tracers. `of` is the user's
    function where `fun` is made of it alone, anew for each call.
    """
    known = traces_of(of or fun, (what, of is None))
    key = in_tree, tuple(avals), config.trace_context(), axis_env()
    found = known.get(key)
    if found is None:
        found = _trace_open(fun, in_tree, avals, what)
        if not any([isinstance(c, Tracer) for c in found[1]]):
            known[key] = found
    jaxpr, consts, tree = found
    return jaxpr, list(consts), tree


def _trace_open(
    fun: Callable[..., Any], in_tree: PyTreeDef, avals: Sequence[AbstractValue], what: str
) -> tuple[Jaxpr, list[Any], PyTreeDef]:
    box: list[Any] = []

    def flat(*xs: Value) -> list[Value]:
        leaves, tree = tree_flatten(fun(*in_tree.unflatten(xs)))
        box.append(tree)
        return leaves

    jaxpr, consts = stage(flat, avals, what)
    return consts_as_args(jaxpr), consts, box[0]


@memoized
def close(jaxpr: Jaxpr) -> ClosedJaxpr:
    """A jaxpr without constants as a closed one, the same each time: what was derived and compiled is found again."""
    return ClosedJaxpr(jaxpr, [])


_SELECTIONS: Memo[tuple[tuple[int, ...], tuple[int, ...]], Jaxpr] = Memo()


def selection(jaxpr: Jaxpr, ins: Sequence[int], outs: Sequence[int] | None = None) -> Jaxpr:
    """The same program with some of its arguments and results, in another order; the same each time."""
    key = tuple(ins), tuple(range(len(jaxpr.outvars)) if outs is None else outs)
    if key == (tuple(range(len(jaxpr.invars))), tuple(range(len(jaxpr.outvars)))):
        return jaxpr
    table = _SELECTIONS.of(jaxpr)
    if key not in table:
        table[key] = jaxpr.replace(invars=[jaxpr.invars[i] for i in key[0]], outvars=[jaxpr.outvars[i] for i in key[1]])
    return table[key]


def reorder(closed: ClosedJaxpr, ins: Sequence[int], outs: Sequence[int] | None = None) -> ClosedJaxpr:
    """The same program with its arguments (and results) in another order."""
    jaxpr = selection(closed.jaxpr, ins, outs)
    return ClosedJaxpr(jaxpr, closed.consts) if closed.consts else close(jaxpr)


def describe_mismatch(
    tree: PyTree, have: Sequence[Any], want: Sequence[Any], have_tree: PyTreeDef, want_tree: PyTreeDef
) -> str | None:
    """A description of how two carries differ, with the path of the first difference; None if shapes, dtypes
    and shardings agree.
    """
    if have_tree != want_tree:
        return f"the structure is {have_tree} where {want_tree} is expected"
    paths = [keystr(p) for p, _ in tree_flatten_with_path(tree)[0]]
    for path, a, b in zip(paths, have, want):
        if a.shape != b.shape or a.dtype != b.dtype or placed_of(a) != placed_of(b):
            return (
                f"the value{' at ' + path if path else ''} has type {a.str_short()} where {b.str_short()} is expected"
            )
    return None


def strengthen(
    values: Sequence[Any], avals: Sequence[AbstractValue], outs: Sequence[AbstractValue]
) -> tuple[list[Any], list[Any], bool]:
    """Initial values, converted where they are weakly typed and the body returns a strong type: (values, avals, whether
    any changed).
    """
    new_values, new_avals, changed = [], [], False
    for v, a, o in zip(values, avals, outs):
        # 1.0 does not become an integer
        if (
            a.weak_type
            and (not o.weak_type or a.dtype != o.dtype)
            and a.shape == o.shape
            and promotion.promote((a.dtype, True), (o.dtype, o.weak_type))[0] == o.dtype
        ):
            v, a, changed = (
                convert(v, o.dtype, o.weak_type),
                array_aval(a).update(dtype=o.dtype, weak_type=o.weak_type),
                True,
            )
        elif vma_of(o) - vma_of(a):  # the same everywhere at first, and then not
            v, changed = pvary_p.bind(v, axes=tuple(sorted(vma_of(o) - vma_of(a), key=str))), True
        new_values.append(v)
        new_avals.append(a)
    return new_values, new_avals, changed


def avals_of(values: Sequence[Any]) -> list[AbstractValue]:
    return [get_aval(v) for v in values]


def _widened(x: Value, where: frozenset[Any]) -> Value:
    """An operand of a choice that differs along the axes `where`, as a value that differs along them."""
    aval = get_aval(x)
    if where <= vma_of(aval):
        return x
    if isinstance(aval, AbstractRef):
        raise ValueError(
            at_user_line(
                f"cond: the choice differs between devices (along {', '.join(map(repr, sorted(where, key=str)))}), and"
                f" the reference of type {aval.str_short()} that its branches take is the same on all. Cut the"
                " reference too, in shard_map's in_specs, or read it before the choice."
            )
        )
    return pvary_p.bind(x, axes=tuple(sorted(where, key=str)))


def widen(
    index: Value, operands: Sequence[Any], branches: Sequence[ClosedJaxpr]
) -> tuple[Sequence[Any], Sequence[Any]]:
    """Operands and branches of a cond whose choice may differ between devices (see `transforms.varying_axes`): operands
    vary then too, so that devices which take different branches need not communicate in them to add up cotangents.
    """
    where = vma_of(get_aval(index))
    if not where:
        return operands, branches
    wide = [_widened(x, where) for x in operands]
    avals = avals_of(wide)
    return wide, [stage_closed(lambda *xs, b=b: eval_jaxpr(b.jaxpr, b.consts, *xs), avals) for b in branches]
