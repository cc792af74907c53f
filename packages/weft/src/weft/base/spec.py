"""Specs: which axes of a mesh cut which axes of an array.

Example:
    >>> import weft
    >>> weft.P("x", None)
    P('x', None)
"""

from __future__ import annotations

from typing import Any, Collection, Hashable, Iterable, Iterator, Sequence

from .annotations import override


class _Unconstrained:
    @override
    def __repr__(self) -> str:
        return "UNCONSTRAINED"


def _axes(what: str, axes: Iterable[Hashable]) -> frozenset[Hashable]:
    """The mesh axes that the argument `what` names."""
    if not isinstance(axes, (set, frozenset)):
        raise TypeError(f"PartitionSpec: {what} must be a set of axis names, such as {{'x'}}; got {axes!r}.")
    if None in axes:
        raise ValueError(f"PartitionSpec: {what} must hold names of mesh axes, and not None; got {set(axes)}.")
    return frozenset(axes)


class PartitionSpec:
    """How the axes of an array are cut: for each one, the name of a mesh axis, a tuple of names, or None for an axis
    that stays whole. Axes beyond the last entry stay whole too.

    Args:
        partitions: entries, one for each axis.
        unreduced: set of mesh axes along which each device holds a term; the array is the sum of these.
        reduced: set of mesh axes along which the array has copies, whose cotangents are summed later: the cotangent of
            such an array is unreduced along them.

    Raises:
        TypeError: if `unreduced` or `reduced` is not a set.
        ValueError: if a mesh axis is named twice.

    Example:
        >>> import weft
        >>> weft.P("x", None)
        P('x', None)
    """

    __slots__ = ("partitions", "unreduced", "reduced")
    UNCONSTRAINED = _Unconstrained()

    def __init__(
        self,
        *partitions: Hashable | Sequence[Hashable],
        unreduced: Iterable[Hashable] = frozenset(),
        reduced: Iterable[Hashable] = frozenset(),
    ):
        self.partitions = tuple([_entry(p) for p in partitions])
        self.unreduced = _axes("unreduced", unreduced) if unreduced else frozenset()
        self.reduced = _axes("reduced", reduced) if reduced else frozenset()
        names = [a for p in self.partitions for a in axes_of(p)]
        if len(set(names)) != len(names):
            raise ValueError(f"a mesh axis may cut one axis of an array only; {self} names one twice.")
        for what, axes in (("unreduced", self.unreduced), ("reduced", self.reduced)):
            if axes.intersection(names):
                raise ValueError(f"an axis that cuts the array can't be {what} too; {self} names one twice.")
        if self.unreduced & self.reduced:
            raise ValueError(f"an axis can't be both unreduced and reduced; {self} names one twice.")

    def __len__(self) -> int:
        return len(self.partitions)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.partitions)

    def __getitem__(self, i: Any) -> Any:
        return self.partitions[i]

    def _joined(self, first: Iterable[Any], second: Iterable[Any], other: Any) -> PartitionSpec:
        of = lambda name: getattr(self, name) | getattr(other, name, frozenset())
        return PartitionSpec(*first, *second, unreduced=of("unreduced"), reduced=of("reduced"))

    def __add__(self, other: Iterable[Any]) -> PartitionSpec:
        return self._joined(self.partitions, other, other)

    def __radd__(self, other: Iterable[Any]) -> PartitionSpec:
        return self._joined(other, self.partitions, other)

    def index(self, value: Any) -> int:
        """The position of an entry. Raises ValueError if it does not occur."""
        return self.partitions.index(value)

    def count(self, value: Any) -> int:
        """How often an entry occurs."""
        return self.partitions.count(value)

    def update(
        self,
        partitions: Sequence[Hashable | Sequence[Hashable]] | None = None,
        unreduced: Iterable[Hashable] | None = None,
        reduced: Iterable[Hashable] | None = None,
    ) -> PartitionSpec:
        """A copy with other entries or other axes that are (un)reduced."""
        return PartitionSpec(
            *(self.partitions if partitions is None else partitions),
            unreduced=self.unreduced if unreduced is None else unreduced,
            reduced=self.reduced if reduced is None else reduced,
        )

    @property
    def _key(self) -> tuple[Any, ...]:
        return self.partitions, self.unreduced, self.reduced

    @override
    def __eq__(self, other: object) -> bool:
        if isinstance(other, tuple):
            return self._key == (other, frozenset(), frozenset())
        return isinstance(other, PartitionSpec) and self._key == other._key

    @override
    def __hash__(self) -> int:
        # a tuple of the same entries is equal
        return hash(self.partitions)

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return _spec, self._key

    @override
    def __repr__(self) -> str:
        parts = [repr(p) for p in self.partitions]
        text = ", ".join(parts) + ("," if len(parts) == 1 else "")
        for name, axes in (("unreduced", self.unreduced), ("reduced", self.reduced)):
            if axes:
                named = f"{name}={{{', '.join(sorted(map(repr, axes)))}}}"
                text = f"{text.rstrip(',')}, {named}" if text else named
        return f"P({text})"

    __str__ = __repr__


P = PartitionSpec


def _spec(partitions: tuple[Any, ...], unreduced: Collection[Any], reduced: Collection[Any]) -> PartitionSpec:
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)


def _entry(part: Any) -> Any:
    """An entry in its one form: a tuple of one name is this name, an empty tuple None."""
    if isinstance(part, (list, tuple)):
        return part[0] if len(part) == 1 else tuple(part) or None
    return part


def axes_of(part: Any) -> tuple[Any, ...]:
    """The mesh axes that one entry of a PartitionSpec names."""
    if part is None or part is PartitionSpec.UNCONSTRAINED:
        return ()
    return part if isinstance(part, tuple) else (part,)


def named_axes(spec: PartitionSpec) -> list[Any]:
    """The mesh axes that cut an array, in order."""
    return [a for part in spec.partitions for a in axes_of(part)]
