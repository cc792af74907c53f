"""The promotion of element types, by the type promotion table of JAX's documentation."""

from __future__ import annotations

from functools import lru_cache, cache
from typing import TYPE_CHECKING, Any

from .config import config
from .errors import at_user_line, type_error, TypePromotionError
from .dtypes import ElementType, Typed, _NARROWEST, _by_name, _typed, canonicalize, float0, is_key, kind, name

if TYPE_CHECKING:
    pass


# Promotion. A node of the lattice is a dtype or one of the weak types i*, f*, c* (Python's int, float, complex). The
# edges follow the type promotion table of JAX's documentation.
_EDGES = {
    "b1": ["i*"],
    "i*": ["u1", "i1"],
    "u1": ["i2", "u2"],
    "u2": ["i4", "u4"],
    "u4": ["i8", "u8"],
    "i1": ["i2"],
    "i2": ["i4"],
    "i4": ["i8"],
    "i8": ["f*"],
    "u8": ["f*"],
    "f*": ["c*", "f2", "bf"],
    "bf": ["f4"],
    "f2": ["f4"],
    "f4": ["f8", "c4"],
    "f8": ["c8"],
    "c*": ["c4"],
    "c4": ["c8"],
    "c8": [],
}
_EDGES |= {name: [] for name in _NARROWEST}
_EDGES["i*"] += [name for name, kind in _NARROWEST.items() if kind != "f"]
_EDGES["f*"] += [name for name, kind in _NARROWEST.items() if kind == "f"]
_SHORT = {
    **{name: name for name in _NARROWEST},
    "b1": "bool",
    "u1": "uint8",
    "u2": "uint16",
    "u4": "uint32",
    "u8": "uint64",
    "i1": "int8",
    "i2": "int16",
    "i4": "int32",
    "i8": "int64",
    "bf": "bfloat16",
    "f2": "float16",
    "f4": "float32",
    "f8": "float64",
    "c4": "complex64",
    "c8": "complex128",
}
_WEAK = {"i": "i*", "u": "i*", "f": "f*", "c": "c*", "b": "b1"}
_WEAK_DTYPE = {"i*": "int64", "f*": "float64", "c*": "complex128"}
_long = {_by_name[v]: k for k, v in _SHORT.items()}


def _upper_bounds(node: str) -> frozenset[str]:
    found, todo = {node}, [node]
    while todo:
        for succ in _EDGES[todo.pop()]:
            if succ not in found:
                found.add(succ)
                todo.append(succ)
    return frozenset(found)


_upper = {node: _upper_bounds(node) for node in _EDGES}


@cache
def _join(nodes: frozenset[str]) -> str:
    common = frozenset.intersection(*(_upper[n] for n in nodes))
    for candidate in common:
        if common <= _upper[candidate]:
            return candidate
    names = ", ".join(sorted(_SHORT.get(n) or {"i*": "int", "f*": "float", "c*": "complex"}[n] for n in nodes))
    raise TypePromotionError(
        f"the dtypes {names} have no implicit promotion path: none of them can"
        f" represent the values of all others. Convert explicitly: x.astype(…)."
    )


def _node(dt: ElementType, weak: bool) -> str:
    if weak:
        return _WEAK[kind(dt)]
    try:
        return _long[dt]
    except KeyError:
        if is_key(dt):
            raise type_error(
                f"an array of random keys ({name(dt)}) takes part in no arithmetic. Draw numbers with it, as by"
                " weft.random.uniform(key), or take its words: weft.random.key_data(key)."
            ) from None
        if dt == float0:
            raise type_error(
                "an array of float0, the derivative of integers, takes part in no arithmetic. If you did not expect"
                " one, differentiate in arguments that are floats."
            ) from None
        raise TypePromotionError(
            at_user_line(f"dtype {name(dt)} takes part in no implicit promotion. Convert it first: x.astype(…).")
        ) from None


@lru_cache(maxsize=4096)
def _promote(pairs: tuple[Typed, ...], mode: str) -> Typed:
    """The join of (dtype, weak) pairs: (dtype, weak), not yet canonical."""
    first = pairs[0]
    if all(p[0] == first[0] for p in pairs):
        return first[0], all(p[1] for p in pairs)
    if mode == "strict":
        strong = {dt for dt, weak in pairs if not weak}
        if len(strong) > 1:
            raise TypePromotionError(
                at_user_line(
                    f"dtypes {', '.join(sorted(name(d) for d in strong))} do not promote to one another:"
                    " numpy_dtype_promotion is 'strict'. Convert one of them explicitly with astype."
                )
            )
        if len(strong) == 1:
            want = next(iter(strong))
            joined = _join(frozenset(_node(*p) for p in pairs))
            if joined != _node(want, False):
                raise TypePromotionError(
                    f"a weakly typed scalar would promote {name(want)} to {_SHORT.get(joined, joined)}:"
                    " numpy_dtype_promotion is 'strict'. Convert it explicitly with astype."
                )
            return want, False
    if all(weak for _, weak in pairs):
        return _by_name[_SHORT[_join(frozenset(_node(dt, False) for dt, _ in pairs))]], True
    joined = _join(frozenset(_node(*p) for p in pairs))
    if joined in _WEAK_DTYPE:
        return _by_name[_WEAK_DTYPE[joined]], True
    return _by_name[_SHORT[joined]], False


def promote(*pairs: Typed) -> Typed:
    """(dtype, weak) of the join of `(dtype, weak)` pairs, canonical."""
    dt, weak = _promote(pairs, config.numpy_dtype_promotion)
    return canonicalize(dt), weak


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """The dtype that arrays, numbers and dtypes promote to.

    Args:
        *args: arrays of any shapes, numbers, and dtypes or their names; at least one.
        return_weak_type_flag: whether the second result is returned too; bool.

    Returns:
        dtype; with the flag (dtype, bool), where the bool tells whether the type is weak, as that of Python
        numbers.

    Raises:
        ValueError: there are no arguments.
        TypeError: an argument has no dtype, or the dtypes have no common one.

    Example:
        >>> import weft
        >>> weft.dtypes.result_type(1, 2.0, return_weak_type_flag=True)
        (dtype('float32'), True)
    """
    if not args:
        raise ValueError("result_type needs at least one array or dtype.")
    dt, weak = promote(*[_typed(a) for a in args])
    return (dt, weak) if return_weak_type_flag else dt
