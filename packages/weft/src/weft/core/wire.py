"""What a program from outside may contain of a primitive. Each primitive declares it as `Primitive.wire`, where it is
defined.

Bytes from a client or a file name primitives. Those that are `portable` are accepted, with exactly the parameters that
they declare, each of the declared kind. So the rules of a primitive can rely on their parameters, as they do when a
function binds it. A primitive that `stays` gives the reason. One that declares nothing is refused too, so a new
primitive is refused until someone has decided. tests/remote/wire.txt lists all declarations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from ..base import dtypes
from ..base.avals import SymbolicSize

T = TypeVar("T")

param_types: dict[str, type[Any]] = {}  # classes of parameters that serialized programs name


def param_type(cls: type[T]) -> type[T]:
    """Class decorator: an Enum or NamedTuple that parameters of primitives may hold; its name is part of the
    serialized form.
    """
    if param_types.setdefault(cls.__name__, cls) is not cls:
        raise ValueError(f"there is a parameter type {cls.__name__!r} already")
    return cls


class Kind(NamedTuple):
    """The kind of a parameter: a description in words, and a check."""

    words: str
    holds: Callable[[Any], bool]
    required: bool = True


class Wire(NamedTuple):
    """The declaration of a primitive: the kinds of its parameters, or the reason why no program from outside may
    contain it.
    """

    parameters: Mapping[str, Kind] | None = None
    tokens: bool = False
    why_not: str | None = None

    def and_tokens(self) -> Wire:
        """The same of a primitive that takes order tokens beside arrays."""
        return self._replace(tokens=True)


def portable(**parameters: Kind) -> Wire:
    """A program from outside may hold the primitive, with these parameters, each of its kind."""
    return Wire(parameters)


def stays(why: str) -> Wire:
    """No program from outside may hold the primitive."""
    return Wire(why_not=why)


UNDECIDED = stays("no decision has been made yet that it may")

# Reasons that primitives of several families have.
CALLS_PYTHON = stays("it calls a Python function, which exists in one process only")
COMMUNICATES = stays(
    "it talks to other members of a mapped axis, and a program that leaves the process runs on one device"
)
IS_OPENED = stays("transformations see it; before a program leaves, what it calls stands in its place")
NAMES_DEVICES = stays("it names devices of this process")
TAKES_KEYS = stays("it works on random keys, which leave the process as their words")
TAKES_REFERENCES = stays("it works on a mutable reference; a compiled program has values alone")


def _integer(value: Any) -> bool:
    return type(value) is int and -1 << 63 <= value < 1 << 63


def _dtype(value: Any) -> bool:
    try:
        return value is dtypes.dtype(dtypes.name(value))
    except (TypeError, AttributeError, KeyError):
        return False


INTEGER = Kind("an integer of 64 bits", _integer)
COUNT = Kind("an integer that is not negative", lambda v: _integer(v) and v >= 0)
SIZE = Kind("a size", lambda v: _integer(v) or isinstance(v, SymbolicSize))
FLAG = Kind("a bool", lambda v: type(v) is bool)
FINITE = Kind("a finite number", lambda v: type(v) in (int, float) and math.isfinite(v))
SCALAR = Kind("a number", lambda v: type(v) in (int, float, complex, bool))
TEXT = Kind("a string", lambda v: type(v) is str)
FALSE = Kind("False", lambda v: v is False)
NOTHING = Kind("None", lambda v: v is None)
DTYPE = Kind("a dtype of numbers", _dtype)


def either(*kinds: Kind) -> Kind:
    """A value of one of several kinds."""
    return Kind(" or ".join(k.words for k in kinds), lambda v: any([k.holds(v) for k in kinds]))


def many(kind: Kind) -> Kind:
    """A tuple of any length."""
    return Kind(f"a tuple, each entry {kind.words}", lambda v: type(v) is tuple and all([kind.holds(x) for x in v]))


def row(*kinds: Kind) -> Kind:
    """A tuple with an entry of each kind."""
    return Kind(
        f"a tuple of {len(kinds)}: {', '.join(k.words for k in kinds)}",
        lambda v: type(v) is tuple and len(v) == len(kinds) and all([k.holds(x) for k, x in zip(kinds, v)]),
    )


def member(name: str) -> Kind:
    """A member of an enumeration that is a `param_type`."""
    return Kind(f"a {name}", lambda v: type(v) is param_types.get(name))


def record(name: str, *kinds: Kind) -> Kind:
    """A named tuple that is a `param_type`, with fields of these kinds."""
    return Kind(
        f"a {name} of {', '.join(k.words for k in kinds)}",
        lambda v: type(v) is param_types.get(name) and all([k.holds(x) for k, x in zip(kinds, v)]),
    )


def word(*words: str) -> Kind:
    """One of a few strings."""
    return Kind(f"one of {', '.join(map(repr, words))}", lambda v: type(v) is str and v in words)


def optional(kind: Kind) -> Kind:
    """A parameter that may be missing."""
    return kind._replace(required=False)


AXES = many(INTEGER)
SIZES = many(SIZE)
PAIRS = many(row(SIZE, SIZE))
DTYPE_OR_NONE = either(NOTHING, DTYPE)
