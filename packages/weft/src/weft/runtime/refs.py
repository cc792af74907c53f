"""Mutable references outside of programs: a cell that holds an array. `weft/api/refs.py` has the functions for
users.
"""

from __future__ import annotations

from ..base.annotations import override
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, NoReturn

from ..base.avals import AbstractRef, array_aval
from ..core.trace import Tracer, add_type, get_aval

if TYPE_CHECKING:
    from .array import Array


class Parts(NamedTuple):
    """How parts of a reference are read, written, named and added to."""

    get: Callable[..., Any]
    set: Callable[..., None]
    at: Callable[..., Any]
    add: Callable[..., None]


# By the type of the abstract value, for references and tracers of them.
parts_of: dict[type, Parts] = {}


def add_parts(kind: type, parts: Parts) -> None:
    """Sets how parts of values with abstract values of a class are accessed; `weft/api/refs.py` does so for
    references.
    """
    parts_of[kind] = parts


class _RefMeta(type):
    @override
    def __instancecheck__(cls, instance: object) -> bool:
        return (
            type.__instancecheck__(cls, instance) or isinstance(instance, Tracer) and type(instance.aval) is AbstractRef
        )


class Ref(metaclass=_RefMeta):
    """A mutable reference to an array: `ref[...]` reads it, `ref[...] = x` writes to it. Made by `weft.new_ref`.

    References of programs that are traced are instances too. A reference can be an argument of a jitted function, or be
    closed over, but not be returned.
    """

    __slots__ = ("value", "__weakref__")
    __hash__ = object.__hash__

    def __init__(self, value: Array):
        self.value = value

    aval = property(lambda self: AbstractRef(array_aval(get_aval(self.value))))
    shape = property(lambda self: self.value.shape)
    dtype = property(lambda self: self.value.dtype)
    ndim = property(lambda self: self.value.ndim)
    size = property(lambda self: self.value.size)
    weak_type = property(lambda self: self.value.weak_type)
    sharding = property(lambda self: self.value.sharding)

    at = property(lambda self: parts_of[AbstractRef].at(self))

    def __getitem__(self, idx: Any, /) -> Any:
        return parts_of[AbstractRef].get(self, idx)

    def __setitem__(self, idx: Any, value: Any, /) -> None:
        parts_of[AbstractRef].set(self, idx, value)

    def addupdate(self, x: Any, idx: Any = ()) -> None:
        """Adds `x` to the reference at `idx`, or to all of it without an index."""
        parts_of[AbstractRef].add(self, x, idx)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a reference to a scalar")
        return self.shape[0]

    def __iter__(self) -> NoReturn:
        raise TypeError("a mutable reference can't be iterated over. Iterate over what it holds: ref[...].")

    @override
    def __repr__(self) -> str:
        return "Ref" + repr(self.value).removeprefix("Array")


add_type(Ref, lambda ref: ref.aval)
