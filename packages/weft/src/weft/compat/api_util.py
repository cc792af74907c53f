"""jax.api_util: functions of pytrees as functions of flat lists."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Sequence

from ..core.trace import get_aval as shaped_abstractify  # noqa: F401
from ..api.functions import name_of
from ..base.tree import (
    broadcast_prefix,
    flatten_one_level_with_keys,
    keyed_children,
    keystr,
    tree_flatten,
    tree_structure,
    tree_unflatten,
    treedef_is_leaf,
)
from .core import DebugInfo
from .linear_util import WrappedFun, transformation_with_aux


def safe_zip(*sequences: Iterable) -> list[tuple]:
    """`zip` of sequences that must have one length."""
    return list(zip(*sequences, strict=True))


def safe_map(f: Callable, *sequences: Iterable) -> list:
    """`map` over sequences that must have one length."""
    return [f(*xs) for xs in safe_zip(*sequences)]


def unzip2(pairs: Iterable) -> tuple[tuple, tuple]:
    firsts, seconds = [], []
    for x, y in pairs:
        firsts.append(x)
        seconds.append(y)
    return tuple(firsts), tuple(seconds)


def split_list(items: Sequence, sizes: Sequence[int]) -> list[list]:
    """The list in pieces of these sizes, and the rest."""
    pieces, rest = [], list(items)
    for n in sizes:
        pieces.append(rest[:n])
        rest = rest[n:]
    return [*pieces, rest]


def partition_list(which: Sequence[bool], items: Sequence) -> tuple[list, list]:
    """(those where `which` is False, those where it is True)."""
    return [x for w, x in safe_zip(which, items) if not w], [x for w, x in safe_zip(which, items) if w]


def merge_lists(which: Sequence[bool], where_false: Sequence, where_true: Sequence) -> list:
    """The list that `partition_list` has split."""
    no, yes = iter(where_false), iter(where_true)
    return [next(yes) if w else next(no) for w in which]


@transformation_with_aux
def flatten_fun(in_tree, *args_flat):
    """A function of (args, kwargs) as one of their leaves; the side result is the structure of what it returns."""
    args, kwargs = tree_unflatten(in_tree, args_flat)
    yield tree_flatten((yield args, kwargs))


@transformation_with_aux
def flatten_fun_nokwargs(in_tree, *args_flat):
    """The same for a function of positional arguments alone."""
    yield tree_flatten((yield tuple(tree_unflatten(in_tree, args_flat)), {}))


def argnums_partial(
    f: WrappedFun, dyn_argnums, args: Sequence, require_static_args_hashable: bool = True
) -> tuple[WrappedFun, tuple]:
    """The function of some positional arguments, with the others fixed, and the values of those."""
    wanted = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)
    wanted = tuple(i % len(args) for i in wanted)
    fixed = {i: x for i, x in enumerate(args) if i not in wanted}
    if require_static_args_hashable:
        for i, x in fixed.items():
            try:
                hash(x)
            except TypeError:
                raise ValueError(
                    f"Non-hashable static arguments are used in a jax transformation: argument {i} is a"
                    f" {type(x).__name__}."
                ) from None

    def partly(call, static, store, *dynamic, **kwargs):
        values = fixed | dict(zip(wanted, dynamic))
        return call(*[values[i] for i in range(len(args))], **kwargs)

    return f.wrap(partly, (), None), tuple(args[i] for i in wanted)


def prefix_errors(prefix_tree, full_tree, is_leaf: Callable | None = None) -> list[Callable[[str], ValueError]]:
    """Where a pytree is no prefix of another: for each place a function from the pytree's name to an error about it."""
    found: list[Callable[[str], ValueError]] = []

    def compare(prefix, full, path: tuple) -> None:
        if treedef_is_leaf(tree_structure(prefix, is_leaf)):
            return
        (mine, data), theirs = flatten_one_level_with_keys(prefix), keyed_children(full)
        keys = [key for key, _ in mine]
        if type(prefix) is not type(full) or theirs is None or [key for key, _ in theirs] != keys:
            reason = f"it has {tree_structure(prefix)} where the value has {tree_structure(full)}"
        elif flatten_one_level_with_keys(full)[1] != data:
            reason = f"both have a {type(full).__name__} there, with different data beside its children"
        else:
            for (key, a), (_, b) in zip(mine, theirs):
                compare(a, b, (*path, key))
            return
        found.append(lambda name: ValueError(f"{name}{keystr(path)} is no prefix of the value: {reason}"))

    compare(prefix_tree, full_tree, ())
    return found


def flatten_axes(name: str, treedef, axis_tree, *, kws: bool = False, tupled_args: bool = False) -> list:
    """The axes of each leaf from a pytree prefix; None is an axis too."""
    whole = tree_unflatten(treedef, [object()] * treedef.num_leaves)
    try:
        return broadcast_prefix(axis_tree, whole, is_leaf=lambda x: x is None)
    except ValueError as e:
        raise ValueError(f"{name} must be a tree prefix of the value that it is for: {e}") from e


def debug_info(
    traced_for: str,
    fun: Callable,
    args: Sequence[Any],
    kwargs: dict,
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    **_,
) -> DebugInfo:
    """Names of a function that is to be traced, for messages."""
    code = getattr(fun, "__code__", None)
    where = f" at {code.co_filename}:{code.co_firstlineno}" if code is not None else ""
    return DebugInfo(traced_for, f"{name_of(fun)}{where}")


def rebase_donate_argnums(donate_argnums, static_argnums) -> tuple[int, ...]:
    """Donated positions counted among the arguments that are not static."""
    static = sorted(set(static_argnums))
    if set(donate_argnums) & set(static):
        raise ValueError(
            f"static_argnums {tuple(static)} and donate_argnums {tuple(donate_argnums)} name the same argument."
        )
    return tuple(sorted(d - sum(s < d for s in static) for d in donate_argnums))
