"""How the axes of a function's arrays correspond, in the notation of Einstein summation: 'i j, j k -> i k'."""

from __future__ import annotations

import math
import re
from typing import Any, Sequence

from ..base.annotations import override

BATCHING = "…"
_AXIS = re.compile(r"[a-zA-Z]\w*")
_TOKEN = re.compile(r"\s*(\.\.\.\w*|…\w*|\(|\)|[a-zA-Z]\w*|\S)")


class CompoundFactor(tuple[str, ...]):
    """An axis that is several factors, the first running slowest.

    Example:
        >>> from weft.experimental.custom_partitioning import CompoundFactor
        >>> CompoundFactor("i", "j")
        ('i', 'j')
    """

    def __new__(cls, *factors: str) -> CompoundFactor:
        if len(factors) < 2:
            raise ValueError(f"a compound factor has at least two factors, got {factors}.")
        return super().__new__(cls, factors)


class ArrayMapping(tuple[Any, ...]):
    """The axes of one array: names of factors, compound factors, and leading axes (`BATCHING`) whose number is open.

    Example:
        >>> from weft.experimental.custom_partitioning import ArrayMapping, BATCHING
        >>> ArrayMapping(BATCHING, "i")
        ('…', 'i')
    """

    def __new__(cls, *axes: str | CompoundFactor) -> ArrayMapping:
        for k, axis in enumerate(axes):
            if isinstance(axis, CompoundFactor):
                continue
            if not isinstance(axis, str) or not (axis.startswith(BATCHING) or _AXIS.fullmatch(axis)):
                raise ValueError(
                    f"an axis is a name of letters and digits, a CompoundFactor or BATCHING, got {axis!r}."
                )
            if axis.startswith(BATCHING) and k:
                raise ValueError(f"{axis!r} stands for leading axes, and is at position {k}.")
        return super().__new__(cls, axes)


class SdyShardingRule:
    """How the axes of a function's arrays correspond: axes of one factor are divided in the same way.

    Args:
        operand_mappings: for each array that the function takes, an `ArrayMapping`.
        result_mappings: for each array that it returns.
        reduction_factors: names of factors over which the function sums.
        need_replication_factors: names of factors that are not divided.
        permutation_factors: names of factors along which the function moves elements.
        factor_sizes: sizes of the factors of compound axes, by name.

    Example:
        >>> from weft.experimental.custom_partitioning import ArrayMapping, SdyShardingRule
        >>> SdyShardingRule((ArrayMapping("i", "j"),), (ArrayMapping("i"),))
        SdyShardingRule((('i', 'j'),), (('i',),), {})
    """

    def __init__(
        self,
        operand_mappings: Sequence[ArrayMapping],
        result_mappings: Sequence[ArrayMapping],
        *,
        reduction_factors: Sequence[str] = (),
        need_replication_factors: Sequence[str] = (),
        permutation_factors: Sequence[str] = (),
        **factor_sizes: int,
    ):
        self.operand_mappings, self.result_mappings = tuple(operand_mappings), tuple(result_mappings)
        self.factor_sizes = factor_sizes
        self.kinds: dict[str, tuple[str, ...]] = {
            "reduction": tuple(reduction_factors),
            "need_replication": tuple(need_replication_factors),
            "permutation": tuple(permutation_factors),
        }
        known = {f for mapping in (*self.operand_mappings, *self.result_mappings) for a in mapping for f in _factors(a)}
        for what, names in (*self.kinds.items(), ("the sizes of", tuple(factor_sizes))):
            for name in names:
                if name not in known:
                    raise ValueError(f"the sharding rule has no factor {name!r}, which {what} factors name.")
        ways = [name for names in self.kinds.values() for name in names]
        for name in ways:
            if ways.count(name) > 1:
                raise ValueError(f"a factor is of one kind, and {name!r} is named twice.")

    def _key(self) -> tuple[Any, ...]:
        kinds, sizes = tuple(self.kinds.items()), tuple(sorted(self.factor_sizes.items()))
        return self.operand_mappings, self.result_mappings, kinds, sizes

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, SdyShardingRule) and self._key() == other._key()

    @override
    def __hash__(self) -> int:
        return hash(self._key())

    @override
    def __repr__(self) -> str:
        return f"SdyShardingRule({self.operand_mappings}, {self.result_mappings}, {self.factor_sizes})"


def parse_rule(text: str, **options: Any) -> SdyShardingRule:
    """A rule from text. Axes stand apart; several factors of one axis stand in parentheses; '...' are leading axes.
    Raises ValueError for what is none.
    """
    if text.count("->") != 1:
        raise ValueError(f"a sharding rule has one '->' between operands and results, got {text!r}.")
    sides = [[_mapping(part, text) for part in side.split(",")] for side in text.split("->")]
    return SdyShardingRule(*sides, **options)


def _mapping(part: str, text: str) -> ArrayMapping:
    axes: list[Any] = []
    group: list[str] | None = None
    for token in _TOKEN.findall(part):
        if token == "(" and group is None:
            group = []
        elif token == ")" and group is not None:
            axes.append(CompoundFactor(*group))
            group = None
        elif _AXIS.fullmatch(token):
            (axes if group is None else group).append(token)
        elif token.startswith(("...", BATCHING)) and group is None:
            axes.append(BATCHING + token.removeprefix("...").removeprefix(BATCHING))
        else:
            raise ValueError(f"can't read {token!r} in the sharding rule {text!r}.")
    if group is not None:
        raise ValueError(f"a parenthesis is left open in the sharding rule {text!r}.")
    return ArrayMapping(*axes)


def _factors(axis: str | CompoundFactor) -> tuple[str, ...]:
    return tuple(axis) if isinstance(axis, CompoundFactor) else (axis,)


def rule_text(rule: SdyShardingRule, operands: Sequence[tuple[int, ...]], results: Sequence[tuple[int, ...]]) -> str:
    """A rule for arrays of these shapes, as the compiler Shardy writes it. Raises ValueError where they don't fit."""
    sizes: dict[str, int] = dict(rule.factor_sizes)
    batches: dict[str, int] = {}
    sides = []
    for what, mappings, shapes in (
        ("operand", rule.operand_mappings, operands),
        ("result", rule.result_mappings, results),
    ):
        if len(mappings) != len(shapes):
            raise ValueError(f"the sharding rule has {len(mappings)} {what}s, and the function {len(shapes)}.")
        sides.append([_axes(m, s, f"{what} {k}", sizes, batches) for k, (m, s) in enumerate(zip(mappings, shapes))])
    symbols = {name: _symbol(k) for k, name in enumerate(dict.fromkeys(_all(sides)))}
    arrays = [
        "[" + ", ".join("".join(symbols[f] for f in axis) for axis in axes) + "]" for side in sides for axes in side
    ]
    n = len(operands)
    text = f"({', '.join(arrays[:n])})->({', '.join(arrays[n:])})"
    text += " {" + ", ".join(f"{symbols[f]}={sizes[f]}" for f in symbols) + "}"
    for kind, names in rule.kinds.items():
        if names:
            text += f" {kind}={{{', '.join(sorted((symbols[f] for f in names), key=list(symbols.values()).index))}}}"
    return f"#sdy.op_sharding_rule<{text}, custom>"


def _all(sides: Sequence[Any]) -> list[str]:
    return [f for side in sides for axes in side for axis in axes for f in axis]


def _symbol(k: int) -> str:
    return chr(ord("i") + k) if k < 18 else f"z_{k - 17}"


def _axes(
    mapping: ArrayMapping, shape: tuple[int, ...], where: str, sizes: dict[str, int], batches: dict[str, int]
) -> list[tuple[str, ...]]:
    """The factors of each axis of an array, whose sizes are noted."""
    axes = [_factors(a) for a in mapping]
    if mapping and isinstance(mapping[0], str) and mapping[0].startswith(BATCHING):
        count = len(shape) - len(axes) + 1
        if count != batches.setdefault(mapping[0], count) or count < 0:
            raise ValueError(f"{mapping[0]!r} stands for {batches[mapping[0]]} axes, and for {count} in {where}.")
        axes = [(f"{mapping[0]}{k}",) for k in range(count)] + axes[1:]
    if len(axes) != len(shape):
        raise ValueError(f"the sharding rule gives {where} {len(axes)} axes, and it has {len(shape)}: {shape}.")
    for factors, size in zip(axes, shape):
        open_ = [f for f in factors if f not in sizes]
        known = math.prod(sizes[f] for f in factors if f in sizes)
        if len(open_) > 1:
            raise ValueError(f"the sharding rule needs the sizes of the factors {', '.join(open_)}: {open_[0]}=….")
        if open_ and known and size % known == 0:
            sizes[open_[0]] = size // known
        elif open_ or known != size:
            raise ValueError(
                f"an axis of {where} has {size} elements, and its factors ({', '.join(factors)}) have {known}."
            )
    return axes
