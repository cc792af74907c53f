"""Functions of pytrees as functions of flat lists: shared by all public transformations."""

from __future__ import annotations

from typing import Any, Callable, Sequence

from ..base import dtypes
from ..core.jaxpr import TypedScalar
from ..core.trace import as_operand, get_aval, is_array_like
from ..base.errors import at_user_line
from ..base.host import is_host_array
from ..primitives.linear import full
from ..runtime.dispatch import put
from ..base.tree import tree_flatten, tree_unflatten


def name_of(fun) -> str:
    return getattr(fun, "__name__", type(fun).__name__)


def check_callable(fun) -> None:
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun!r}.")


def flat_function(fun: Callable, in_tree) -> tuple[Callable, list]:
    """`fun(*args)` on flat arguments and results, and the box into which each call puts its result's structure."""
    box: list = []

    def flat(*xs):
        leaves, tree = tree_flatten(fun(*in_tree.unflatten(xs)))
        box.append(tree)
        return leaves

    return flat, box


class Aux:
    """The structure of a function's auxiliary output; leaves that are not arrays are part of it."""

    __slots__ = ("tree", "fixed")

    def __init__(self, tree, fixed: dict):
        self.tree, self.fixed = tree, fixed

    def unflatten(self, arrays: Sequence):
        rest = iter([as_given(x) for x in arrays])
        return tree_unflatten(
            self.tree, [self.fixed[i] if i in self.fixed else next(rest) for i in range(self.tree.num_leaves)]
        )


def flat_function_with_aux(fun: Callable, in_tree) -> tuple[Callable, list]:
    """The same for a function that returns (out, aux): arrays in aux follow the result's leaves, and the box gets
    (tree, Aux).
    """
    box: list = []

    def flat(*xs):
        pair = fun(*in_tree.unflatten(xs))
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(
                at_user_line(
                    "has_aux=True: the function returns a pair (value, aux), and this one returned"
                    f" {type(pair).__name__}. Return such a pair, or leave has_aux out."
                )
            )
        leaves, tree = tree_flatten(pair[0])
        aux, aux_tree = tree_flatten(pair[1])
        fixed = {i: x for i, x in enumerate(aux) if not is_array_like(x)}
        box.append((tree, Aux(aux_tree, fixed)))
        return [*leaves, *[x for i, x in enumerate(aux) if i not in fixed]]

    return flat, box


def as_arrays(leaves: Sequence, who: str, instead: str = "Name the arguments to differentiate by in argnums") -> list:
    """The leaves, each of which must be an array or a number."""
    for x in leaves:
        if not is_array_like(x):
            raise TypeError(
                at_user_line(
                    f"{who}: argument {x!r} of type {type(x).__name__} is not an array or a number. {instead}, or bind"
                    " this one with functools.partial."
                )
            )
    return [as_operand(x) for x in leaves]


def as_given(x) -> Any:
    """A result for the user that may be what the function returned: Python's numbers and NumPy's arrays stay so."""
    return as_result(x) if type(x) is TypedScalar else x


def as_result(x) -> Any:
    """A result for the user: an array, never a host scalar of ours."""
    if type(x) is TypedScalar or dtypes.is_python_scalar(x):
        aval = get_aval(x)
        return full((), x.val if type(x) is TypedScalar else x, aval.dtype, aval.weak_type)
    return put(x) if is_host_array(x) else x
