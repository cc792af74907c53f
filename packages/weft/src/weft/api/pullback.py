"""The result of `weft.vjp`: the function from cotangents of results to cotangents of arguments."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Callable, Sequence

from ..base.annotations import override
from ..base import dtypes
from ..base.avals import AbstractRef, tangent_aval
from ..higher_order.custom_jvp import type_of, unlike
from ..core.primitive import Zero
from ..core.trace import get_aval
from ..base.errors import at_user_line
from ..base.tree import tree_flatten
from ..base.registration import register_pytree_node


class GradValue:
    """Asks `VJP.with_refs` for an argument's cotangent as a value, as does anything that is neither a reference nor
    `DontWant`.
    """

    @override
    def __repr__(self):
        return f"{type(self).__name__}()"


class DontWant(GradValue):
    """Asks `VJP.with_refs` for no cotangent of an argument."""


class DidntWant(GradValue):
    """Represents, in the result, the cotangent of an argument for which none was requested."""


class GradRef(GradValue):
    """Represents, in the result, a cotangent that was added to a reference."""


ad = SimpleNamespace(GradValue=GradValue, DontWant=DontWant, DidntWant=DidntWant, GradRef=GradRef)


class VJP:
    """The function from a cotangent of a function's result to a tuple of cotangents of its arguments. A pytree, whose
    leaves are the residuals.

    Example:
        >>> import weft
        >>> _, pull = weft.vjp(lambda x, y: x * y, 2.0, 3.0)
        >>> pull(1.0)
        (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """

    __slots__ = ("pull", "in_tree", "out_tree", "out_avals", "opaque_residuals")

    def __init__(self, pull: Callable, in_tree, out_tree, out_avals: Sequence, residuals: Sequence):
        # pull: (residuals, cotangents) -> cotangents
        self.pull, self.in_tree, self.out_tree, self.out_avals = pull, in_tree, out_tree, out_avals
        self.opaque_residuals = list(residuals)

    def _cotangents(self, ct) -> list:
        return self.pull(self.opaque_residuals, _checked(ct, self.out_tree, self.out_avals))

    def __call__(self, ct) -> tuple:
        return self.in_tree.unflatten(self._cotangents(ct))

    def with_refs(self, *wanted: Any) -> Callable:
        """The same function, which adds cotangents to references: gradients of many calls accumulate in place.

        Args:
            wanted: for each argument, as a pytree of its structure: a reference of the shape and dtype of the
                cotangent, to which that is added; `weft.ad.DontWant()`; or anything else, for the cotangent as a value.
                None at all: values.

        Returns:
            the cotangents, with `weft.ad.GradRef()` and `weft.ad.DidntWant()` where there is no value.

        Raises:
            ValueError: for another structure.

        Example:
            >>> import weft
            >>> total = weft.new_ref(10.0)
            >>> _, pull = weft.vjp(lambda x, y: x * y, 2.0, 3.0)
            >>> pull.with_refs(total, weft.ad.DontWant())(1.0)
            (GradRef(), DidntWant())
            >>> total[...]
            Array(13., dtype=float32, weak_type=True)
        """
        places, tree = tree_flatten(wanted)
        if not wanted:
            return self
        if tree != self.in_tree:
            raise ValueError(
                at_user_line(
                    "with_refs takes a reference, weft.ad.DontWant() or weft.ad.GradValue() for each argument that vjp"
                    f" was given, in their structure {self.in_tree}; got {tree}."
                )
            )

        def call(ct) -> tuple:
            return self.in_tree.unflatten([_delivered(x, place) for x, place in zip(self._cotangents(ct), places)])

        return call

    @override
    def __repr__(self):
        return f"VJP(in_tree={self.in_tree}, out_tree={self.out_tree}, opaque_residuals={self.opaque_residuals})"


def _delivered(ct, place):
    if isinstance(place, DontWant):
        return DidntWant()
    if isinstance(getattr(place, "aval", None), AbstractRef):
        place.addupdate(ct)
        return GradRef()
    return ct


register_pytree_node(
    VJP,
    lambda v: (tuple(v.opaque_residuals), (v.pull, v.in_tree, v.out_tree, v.out_avals)),
    lambda aux, residuals: VJP(*(*aux, residuals)),
)


def _checked(ct, out_tree, out_avals) -> list:
    """The leaves of a cotangent, which has to be of the type of the result."""
    leaves, tree = tree_flatten(ct)
    if tree != out_tree:
        raise ValueError(
            at_user_line(
                f"unexpected tree structure of argument to vjp function: got {tree}, but expected to match {out_tree}. "
                "Give a cotangent for each output, in the same structure."
            )
        )
    checked: list = []
    for x, aval in zip(leaves, out_avals):
        want = tangent_aval(aval)
        # cotangents of integers and booleans carry no information, whatever their dtype
        if get_aval(x).shape != want.shape if want.dtype == dtypes.float0 else unlike(x, want):
            raise ValueError(
                at_user_line(
                    "the function that vjp returned takes cotangents of the types of the results: for a result of type"
                    f" {aval.str_short(short_dtypes=False)} one of type {want.str_short(short_dtypes=False)}, and got"
                    f" {type_of(x)}."
                )
            )
        checked.append(Zero(want) if want.dtype == dtypes.float0 else x)
    return checked
