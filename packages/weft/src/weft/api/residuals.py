"""Choosing and listing the values that `checkpoint` saves."""

from __future__ import annotations

from inspect import Parameter, signature
from typing import Callable

from ..higher_order import policies as checkpoint_policies
from ..higher_order.policies import Offloadable as Offloadable, Recompute as Recompute, Saveable as Saveable
from ..higher_order.remat import checkpoint_name as checkpoint_name
from ..core.jaxpr import Literal
from ..core.trace import get_aval
from .tracing import vjp
from ..base.avals import AbstractValue
from ..transforms.stage import stage
from ..base.tree import keystr, tree_flatten, tree_flatten_with_path, tree_leaves

__all__ = ["Offloadable", "Recompute", "Saveable", "checkpoint_name", "checkpoint_policies", "print_saved_residuals"]


def saved_residuals(f: Callable, *args, **kwargs) -> list[tuple[AbstractValue, str]]:
    """The types of the values that reverse mode saves of `f`, each with its origin."""
    leaves, tree = tree_flatten((args, kwargs))
    box: list = []

    def flat(*xs):
        inner, kw = tree.unflatten(xs)
        _, pull = vjp(lambda *ys: tree_leaves(f(*ys, **kw)), *inner)
        kept = tree_leaves(pull)
        box.append(len(kept))
        return kept

    jaxpr, _ = stage(flat, [get_aval(x) for x in leaves], "a function whose residuals are listed")
    paths = [keystr(p[1:]) for p, _ in tree_flatten_with_path((args, kwargs))[0]]
    names = _argument_names(f, args, kwargs)
    made = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    found: list[tuple[AbstractValue, str]] = []
    seen = set()
    for atom in jaxpr.outvars:
        if type(atom) is Literal:
            found.append((atom.aval, f"a literal with value {atom.val}"))
            continue
        if atom in seen:
            continue
        seen.add(atom)
        if atom in jaxpr.invars:
            i = [*jaxpr.invars].index(atom)
            found.append((atom.aval, f"from the argument {names[i] if names else paths[i]}"))
        elif atom in jaxpr.constvars:
            found.append((atom.aval, "from a constant"))
        else:
            eqn = made[atom]
            what = (
                f"named '{eqn.params['name']}'" if eqn.primitive.name == "name" else f"output of {eqn.primitive.name}"
            )
            if eqn.primitive.carries is not None and eqn.primitive.carries.callee is not None:
                what = f"output of jitted function '{eqn.params[eqn.primitive.carries.callee]}'"
            found.append((atom.aval, f"{what} from {eqn.source_info}"))
    return found


def _argument_names(f: Callable, args: tuple, kwargs: dict) -> list[str] | None:
    """The path of each leaf of the arguments, with the parameter names of `f`; None if it has no signature."""
    try:
        bound = signature(f).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return None
    names: dict = {}
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        for path, _ in tree_flatten_with_path(value)[0]:
            names.setdefault(name if kind is not Parameter.VAR_KEYWORD else "", []).append(
                f"{path[0].key}{keystr(path[1:])}" if kind is Parameter.VAR_KEYWORD else f"{name}{keystr(path)}"
            )
    positional = [n for k, group in names.items() if k not in kwargs and k for n in group]
    keyword = [
        n for k in sorted(kwargs) for n in ([f"{k}{keystr(path)}" for path, _ in tree_flatten_with_path(kwargs[k])[0]])
    ]
    return [*positional, *keyword]


def print_saved_residuals(f: Callable, *args, **kwargs) -> None:
    """Prints the type and the origin of each value that reverse mode saves for the backward pass of `f`.

    Args:
        f: function of pytrees of arrays, of any dtype and shape.
        *args: its arguments.
        **kwargs: its keyword arguments.

    Returns:
        None.

    Example:
        >>> import weft
        >>> from weft.ad_checkpoint import print_saved_residuals
        >>> print_saved_residuals(weft.checkpoint(lambda x: x * x * x), 2.0)
        f32[] from the argument x
    """
    for aval, where in saved_residuals(f, *args, **kwargs):
        print(f"{aval.str_short()} {where}")
