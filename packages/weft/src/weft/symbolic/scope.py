"""Scopes of symbolic dimensions, and shapes in them, as users write both: `symbolic_shape("b, 2*n", constraints=…)`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..base import source_info
from ..base.annotations import override
from .bounds import bounds
from .dims import ONE, Dim, Factor, from_coefficients, live_scopes, operation, operations, promises
from .parser import parse_constraint, parse_shape

if TYPE_CHECKING:
    from ..core.types import Size
    from .bounds import Interval
    from .dims import Monomial


class SymbolicScope:
    """The constraints that the dimension variables of a program share. Expressions of different scopes can't be
    mixed.

    Args:
        constraints_str: strings such as "a >= 4", "a <= 2*b", "mod(a, 2) == 0".

    Raises:
        ValueError: for a string that is not a constraint, or one that can't hold.

    Example:
        >>> from weft import export
        >>> scope = export.SymbolicScope(["a >= 4"])
        >>> a, = export.symbolic_shape("a", scope=scope)
        >>> a >= 3
        True
    """

    def __init__(self, constraints_str: Iterable[str] = ()):
        if isinstance(constraints_str, str) or not all(isinstance(c, str) for c in constraints_str):
            raise ValueError(f"The symbolic constraints should be a sequence of strings. Got {constraints_str!r}")
        live_scopes.add(self)
        self.texts: list[str] = []
        self.positive: list[Dim] = []  # expressions that are >= 0
        # (text, expression, operator): a condition on a call's sizes, expression >= 0 or == 0
        self.checks: list[tuple[str, Dim, str]] = []
        # monomial -> (k, expression): k * monomial == expression
        self.rules: dict[Monomial, tuple[int, Size]] = {}
        self.known_bounds: dict[Dim, Interval] = {}  # expression -> (lower, upper): derived bounds
        info = source_info.current(2)
        self.place = f"{info.file}:{info.line} ({info.function})"
        for text in constraints_str:
            self.constrain(text)

    def variable(self, name: str) -> Size:
        """The variable of a name in this scope."""
        return from_coefficients({((Factor(name), 1),): 1}, self)

    def bounds(self, x: Size) -> Interval:
        """(lower, upper) of an expression over all values of its variables; infinite where unknown."""
        return bounds(x)

    def constrain(self, text: str) -> None:
        """Adds a constraint; see the class."""
        left, op, right = parse_constraint(text, self)
        if op == "<=":
            left, right = right, left
        difference = left - right
        if not isinstance(difference, Dim):
            if difference < 0 or difference and op == "==":
                raise ValueError(f"Unsatisfiable explicit constraint: {text}")
            return
        self.texts.append(text.strip())
        self.checks.append((text.strip(), difference, op))
        self.known_bounds.clear()
        if op == "==":
            self._equate(left, right, text)
        else:
            self.positive.append(difference)
        for f in sorted(operations(difference), key=lambda f: f.key):
            self.positive += promises(f, self)
        self.known_bounds.clear()
        for name in sorted(difference.variables()):
            low, high = self.bounds(self.variable(name))
            if low > high:
                raise ValueError(f"Unsatisfiable constraints: {', '.join(self.texts)} leave no value for {name}.")

    def _equate(self, left: Size, right: Size, text: str) -> None:
        if not isinstance(left, Dim) or len(left.terms) != 1 or left.terms[0][0] == ONE:
            raise ValueError(
                f"Invalid equality constraint: {text}. The left-hand side must be one term, such as 'a', '2*a' or"
                " 'mod(a, 2)'."
            )
        monomial, coefficient = left.terms[0]
        if coefficient < 0:
            right, coefficient = -right, -coefficient
        self.positive += [d for d in (left - right, right - left) if isinstance(d, Dim)]
        self.rules[monomial] = coefficient, right
        (factor, n), *others = monomial
        # then the division has no remainder
        if not others and n == 1 and factor.name == "mod" and right == 0 and coefficient == 1:
            a, b = factor.operands
            quotient = operation("floordiv", a, b, self)
            whole = quotient * b
            if isinstance(whole, Dim) and len(whole.terms) == 1:
                self.rules[whole.terms[0][0]] = whole.terms[0][1], a

    @override
    def __repr__(self) -> str:
        known = " with constraints:" + "".join(f"\n  {c}" for c in self.texts) if self.texts else ""
        return f"{id(self)} created at {self.place}{known}"


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> tuple[Any, ...]:
    """Makes a shape with symbolic dimensions from text.

    Args:
        shape_spec: str: dimensions separated by commas: integers, variables, sums and products of them with `+`, `-`,
            `*`, `^`, and `floordiv(a, b)`, `mod(a, b)`, `max(a, b)`, `min(a, b)`. `_` stands for the size of `like` at
            that place, and a final `...` for all remaining ones. None means `...`.
        constraints: sequence of strings that hold for the variables, such as "b >= 4", "a <= 2*b" or "mod(n, 2) == 0".
        scope: `SymbolicScope` of the variables; None for a new one with `constraints`.
        like: the shape that fills `_` and `...`.

    Returns:
        a tuple of integers and symbolic dimensions.

    Raises:
        ValueError: for text that is not a shape; the message has the place.

    Example:
        >>> from weft import export
        >>> export.symbolic_shape("b, 2*n + 1, _", constraints=["b >= 4"], like=(None, None, 7))
        (b, 2*n + 1, 7)
    """
    if shape_spec is not None and not isinstance(shape_spec, str):
        raise ValueError(f"polymorphic shape spec should be None or a string. Found {shape_spec!r}.")
    if scope is not None and constraints:
        raise ValueError("Cannot specify both a `scope` and `constraints`.")
    return parse_shape(
        "..." if shape_spec is None else shape_spec, SymbolicScope(constraints) if scope is None else scope, like
    )
