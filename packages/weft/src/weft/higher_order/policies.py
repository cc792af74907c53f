"""Checkpoint policies: which results may be saved, or moved to another memory, instead of being computed again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Sequence

from ..base.annotations import override

if TYPE_CHECKING:
    from ..core.primitive import Primitive
    from ..core.types import Params, Value


class _Verdict:
    """The verdict of a policy on a result."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    @override
    def __repr__(self) -> str:
        return self.name


Saveable = _Verdict("Saveable")  # keep it
Recompute = _Verdict("Recompute")  # compute it again


class Offloadable(NamedTuple):
    """Keep it in the memory `dst` of its device and fetch it back to `src` when it is needed."""

    src: Any
    dst: Any


def everything_saveable(*_: object, **__: Any) -> bool:
    """Keep everything: checkpoint then changes nothing."""
    return True


def nothing_saveable(*_: object, **__: Any) -> bool:
    """Save nothing, as checkpoint does without a policy."""
    return False


def dots_saveable(prim: Primitive, *args: Value, **params: Any) -> bool:
    """Keep the results of matrix products and convolutions."""
    return prim.name in ("dot_general", "conv_general_dilated")


checkpoint_dots = dots_saveable


def dots_with_no_batch_dims_saveable(prim: Primitive, *args: Value, **params: Any) -> bool:
    """Keep the results of matrix products without batch dimensions."""
    return prim.name == "dot_general" and not any(params["dimension_numbers"][1])


checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable


def offload_dot_with_no_batch_dims(offload_src: Any, offload_dst: Any) -> Callable[..., Any]:
    """Move the results of matrix products without batch dimensions to another memory, such as "pinned_host"."""

    def policy(prim: Primitive, *args: Value, **params: Any) -> Any:
        return (
            Offloadable(offload_src, offload_dst)
            if dots_with_no_batch_dims_saveable(prim, *args, **params)
            else Recompute
        )

    return policy


def _names(prim: Primitive, params: Params) -> str | None:
    return params["name"] if prim.name == "name" else None


def save_anything_except_these_names(*names_not_to_save: str) -> Callable[..., Any]:
    """Keep everything but values named so by checkpoint_name."""
    refused = frozenset(names_not_to_save)

    def policy(prim: Primitive, *args: Value, **params: Any) -> Any:
        return _names(prim, params) not in refused

    return policy


def save_any_names_but_these(*names_not_to_save: str) -> Callable[..., Any]:
    """Keep values named by checkpoint_name, but not these."""
    refused = frozenset(names_not_to_save)

    def policy(prim: Primitive, *args: Value, **params: Any) -> Any:
        return prim.name == "name" and params["name"] not in refused

    return policy


def save_only_these_names(*names_which_can_be_saved: str) -> Callable[..., Any]:
    """Keep only values named so by checkpoint_name."""
    kept = frozenset(names_which_can_be_saved)

    def policy(prim: Primitive, *args: Value, **params: Any) -> Any:
        return _names(prim, params) in kept

    return policy


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Sequence[str],
    names_which_can_be_offloaded: Sequence[str],
    offload_src: Any,
    offload_dst: Any,
) -> Callable[..., Any]:
    """Keep values named so by checkpoint_name, and move others to another memory, such as "pinned_host"."""
    kept, moved = frozenset(names_which_can_be_saved), frozenset(names_which_can_be_offloaded)
    if kept & moved:
        raise ValueError(
            "save_and_offload_only_these_names: a value is either saved or offloaded. names_which_can_be_saved and"
            f" names_which_can_be_offloaded both have {sorted(kept & moved)}."
        )

    def policy(prim: Primitive, *args: Value, **params: Any) -> Any:
        name = _names(prim, params)
        return Offloadable(offload_src, offload_dst) if name in moved else Saveable if name in kept else Recompute

    return policy


def save_from_both_policies(policy_1: Callable[..., Any], policy_2: Callable[..., Any]) -> Callable[..., Any]:
    """Save the results that either policy saves. Policies that move values to another memory can't be combined in this
    way.
    """

    def policy(prim: Primitive, *args: Value, **params: Any) -> Any:
        answers = policy_1(prim, *args, **params), policy_2(prim, *args, **params)
        if any(isinstance(a, Offloadable) for a in answers):
            raise ValueError("save_from_both_policies takes policies that save or compute again; one of them offloads.")
        return any(a is True or a is Saveable for a in answers)

    return policy
