"""Reading symbolic shapes: `"b, 2*n + 1, floordiv(n, 2), _, ..."`, and constraints: `"mod(n, 2) == 0"`.

    shape      = [ "(" ] dimension { "," dimension } [ "," ] [ "..." ] [ ")" ]
    dimension  = "_" | expression
    expression = [ "-" ] term { ( "+" | "-" ) term }
    term       = factor { "*" factor }
    factor     = ( NUMBER | [ "-" ] NUMBER | NAME | OPERATION "(" expression "," expression ")" ) [ "^" NUMBER ]

Nothing is evaluated but sums and products of dimensions; how deep and how large an expression may be is limited.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from .dims import OPERATIONS, operate

if TYPE_CHECKING:
    from ..core.types import Shape, Size
    from .dims import Scope

_TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z][A-Za-z0-9_]*|_[A-Za-z0-9_]+)|(\.\.\.|.))", re.S)
_DEPTH, _DIGITS, _POWER, _LENGTH = 30, 20, 64, 4000


class _Parser:
    def __init__(self, text: str, scope: Scope, like: Sequence[Any] | None = None, whole: str | None = None):
        self.text, self.scope, self.like, self.whole = text, scope, like, text if whole is None else whole
        self.tokens: list[tuple[str, str, int]] = []  # (kind, text, position)
        self.at, self.dimension, self.depth = 0, 0, 0
        position, end = 0, len(text.rstrip())
        while position < end:
            match = _TOKEN.match(text, position)
            assert match is not None  # its last alternative takes any character
            kind = "number" if match[1] else "name" if match[2] else match[3]
            self.tokens.append((kind, match[match.lastindex or 0], match.start(match.lastindex or 0)))
            position = match.end()
        self.tokens.append(("end", "", len(text)))

    def fail(self, problem: str) -> NoReturn:
        position = self.tokens[self.at][2]
        raise ValueError(
            f"syntax error in symbolic shape '{self.whole}' in dimension {self.dimension}: {problem}. "
            f"Parsed '{self.text[:position]}', remaining '{self.text[position:]}'."
        )

    def peek(self) -> str:
        return self.tokens[self.at][0]

    def take(self, *kinds: str) -> str:
        kind, text, _ = self.tokens[self.at]
        if kind not in kinds:
            self.fail(
                f"expected {' or '.join(map(repr, kinds))}, found {text!r}"
                if text
                else f"expected {' or '.join(map(repr, kinds))}, found the end"
            )
        self.at += 1
        return text

    def shape(self) -> Shape:
        sizes: list[Any] = []
        closing = "end"
        if self.peek() == "(":
            self.take("(")
            closing = ")"
        while self.peek() != closing:
            if self.peek() == "...":
                self.need_like("...")
                while len(sizes) < len(self.like or ()):
                    self.dimension = len(sizes)
                    sizes.append(self.known(len(sizes)))
                self.take("...")
                break
            self.dimension = len(sizes)
            if self.peek() == "_":
                self.need_like("_")
                sizes.append(self.known(len(sizes)))
                self.take("_")
            else:
                sizes.append(self.expression())
                self.compare(sizes[-1])
            if self.peek() != closing:
                self.take(",", closing)
        self.take(closing)
        if closing == ")":
            self.take("end")
        return tuple(sizes)

    def need_like(self, what: str) -> None:
        if self.like is None:
            self.fail(f"the spec contains {what}, but no 'like' shape was given")

    def known(self, i: int) -> Size:
        if self.like is None or i >= len(self.like):
            self.fail(f"there is no dimension {i} in like={self.like}")
        if self.like[i] is None:
            self.fail(f"a placeholder refers to an unknown dimension of like={self.like}")
        return self.like[i]

    def compare(self, size: Size) -> None:
        i = self.dimension
        if (
            isinstance(self.like, (list, tuple))
            and i < len(self.like)
            and type(size) is int
            and type(self.like[i]) is int
            and size != self.like[i] >= 0
        ):
            self.fail(f"the size {size} differs from the known dimension of like={self.like}")

    def expression(self) -> Any:
        self.depth += 1
        if self.depth > _DEPTH:
            self.fail(f"operations are nested more than {_DEPTH} deep")
        sign = -1 if self.peek() == "-" and self.take("-") else 1
        total = sign * self.term()
        while self.peek() in ("+", "-"):
            sign = 1 if self.take("+", "-") == "+" else -1
            total = total + sign * self.term()
        self.depth -= 1
        return total

    def term(self) -> Any:
        result = self.factor()
        while self.peek() == "*":
            self.take("*")
            result = result * self.factor()
        return result

    def factor(self) -> Any:
        if self.peek() == "-":
            self.take("-")
            return -self.number()
        if self.peek() == "number":
            base: Any = self.number()
        else:
            name = self.take("name", "number", "-")
            if name in OPERATIONS and self.peek() == "(":
                self.take("(")
                a = self.expression()
                self.take(",")
                b = self.expression()
                self.take(")")
                try:
                    base = operate(name, a, b)
                except ZeroDivisionError:
                    self.fail("division by zero")
            else:
                base = self.scope.variable(name)
        if self.peek() == "^":
            self.take("^")
            power = self.number()
            if power > _POWER:
                self.fail(f"the exponent {power} is more than {_POWER}")
            return base**power
        return base

    def number(self) -> int:
        text = self.take("number")
        if len(text) > _DIGITS:
            self.fail(f"a number has more than {_DIGITS} digits")
        return int(text)


def parse_shape(text: str, scope: Scope, like: Sequence[int | None] | None) -> Shape:
    """A shape; `like` fills `_` and `...`."""
    return _Parser(text, scope, like).shape()


def parse_dimension(text: str, scope: Scope) -> Size:
    """One expression, as `str(dim)` writes it; ValueError for other text."""
    if len(text) > _LENGTH:
        raise ValueError(f"an expression of {len(text)} characters is longer than {_LENGTH}")
    parser = _Parser(text, scope)
    result = parser.expression()
    parser.take("end")
    return result


def parse_constraint(text: str, scope: Scope) -> tuple[Any, ...]:
    """(left, one of "==", ">=", "<=", right)."""
    for op in ("==", ">=", "<="):
        if op in text:
            left, right = text.split(op, 1)
            sides = []
            for side in (left, right):
                parser = _Parser(side, scope, whole=text)
                sides.append(parser.expression())
                parser.take("end")
            return sides[0], op, sides[1]
    raise ValueError(f"Constraint parsing error: {text!r} must contain one of '==', '>=' or '<='.")
