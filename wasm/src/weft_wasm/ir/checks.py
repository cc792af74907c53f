"""Checks of values, with the words that describe them: for attributes of the loop IR and the contents of artifacts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

LONGEST_NAME = 1000


class Check(NamedTuple):
    """Whether a value is permitted, and a description of the permitted ones."""

    holds: Callable[[Any], bool]
    wanted: str


def ints(values: Collection[int]) -> Check:
    """One of some ints; True and False are not ints here."""
    said = (
        f"an int from {values[0]} to {values[-1]}"
        if isinstance(values, range)
        else f"one of {', '.join(map(str, values))}"
    )
    return Check(lambda x: type(x) is int and x in values, said)


def words(values: Collection[str]) -> Check:
    return Check(lambda x: isinstance(x, str) and x in values, f"one of {', '.join(sorted(values))}")


def is_name(x: object) -> bool:
    return isinstance(x, str) and len(x) <= LONGEST_NAME and x.isprintable()


NAME = Check(is_name, f"a text of at most {LONGEST_NAME} printable characters")
TEXT = Check(lambda x: isinstance(x, str), "a text")
BOOL = Check(lambda x: type(x) is bool, "True or False")
NONE = Check(lambda x: x is None, "None")


def several(form: type[Sequence[Any]], each: Check, most: int | None = None) -> Check:
    """A list or tuple, of at most so many."""
    return Check(
        lambda x: type(x) is form and (most is None or len(x) <= most) and all(map(each.holds, iter(x))),
        f"a {form.__name__}{f' of at most {most}' if most is not None else ''}, each {each.wanted}",
    )


def pairs(key: Check, value: Check) -> Check:
    """A dict."""
    return Check(
        lambda x: type(x) is dict and all(map(key.holds, x)) and all(map(value.holds, x.values())),
        f"a dict from {key.wanted} to {value.wanted}",
    )


def either(checks: Sequence[Check]) -> Check:
    if len(checks) == 1:
        return checks[0]
    return Check(lambda x: any(c.holds(x) for c in checks), " or ".join(c.wanted for c in checks))


def brief(x: object) -> str:
    """A value in an error message, in a few words."""
    if isinstance(x, int) and x.bit_length() > 200:
        return f"an int of {x.bit_length()} bits"
    if x is None or isinstance(x, (bool, int, float)):
        return repr(x)
    if isinstance(x, str):
        return repr(x if len(x) <= 40 else x[:40] + "…")
    if isinstance(x, (list, tuple, dict)):
        inner = (
            f" of {brief(next(iter(x)))}"
            if len(x) == 1 and not isinstance(next(iter(x)), (list, tuple, dict))
            else f" of {len(x)}"
        )
        return f"a {type(x).__name__}{inner}"
    return f"a {type(x).__name__}"
