"""Checkpoint policies: which results may be kept instead of being computed again."""
from __future__ import annotations


def everything_saveable(prim, *_, **__) -> bool:
    """Keep everything: checkpoint then changes nothing."""
    return True


def nothing_saveable(prim, *_, **__) -> bool:
    """Keep nothing; what checkpoint does without a policy."""
    return False


def dots_saveable(prim, *_, **__) -> bool:
    """Keep the results of matrix products and convolutions."""
    return prim.name in ("dot_general", "conv_general_dilated")


checkpoint_dots = dots_saveable


def dots_with_no_batch_dims_saveable(prim, *_, **params) -> bool:
    """Keep the results of matrix products without batch dimensions."""
    return prim.name == "dot_general" and not any(params["dimension_numbers"][1])


checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable


def save_anything_except_these_names(*names_not_to_save: str):
    """Keep everything but values named so by checkpoint_name."""
    refused = frozenset(names_not_to_save)
    return lambda prim, *_, **params: not (prim.name == "name" and params["name"] in refused)


def save_any_names_but_these(*names_not_to_save: str):
    """Keep values named by checkpoint_name, but not these."""
    refused = frozenset(names_not_to_save)
    return lambda prim, *_, **params: prim.name == "name" and params["name"] not in refused


def save_only_these_names(*names_which_can_be_saved: str):
    """Keep only values named so by checkpoint_name."""
    kept = frozenset(names_which_can_be_saved)
    return lambda prim, *_, **params: prim.name == "name" and params["name"] in kept


def save_from_both_policies(policy_1, policy_2):
    """Keep what either policy keeps."""
    return lambda prim, *args, **params: policy_1(prim, *args, **params) or policy_2(prim, *args, **params)
