"""Symbolic dimensions: sizes that a program leaves open, as polynomials over variables, `floordiv`, `mod`, `max` and
`min`.

A `Dim` is a sum of monomials with integer coefficients. They are sorted, so that equal expressions have one form; a
constant is a plain int. Variables stand for integers of at least 1. Every expression belongs to a `Scope`, whose
constraints help to decide comparisons.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeAlias
from weakref import WeakSet

from ..base.annotations import override
from ..base.avals import SymbolicSize, shaped
from ..base.dtypes import python_scalar_dtype
from ..base.errors import InconclusiveDimensionOperation
from ..core.primitive import Primitive, unsupported
from ..core.wire import SIZE, portable

if TYPE_CHECKING:
    from ..base.avals import ShapedArray
    from ..core.types import ElementType, Size, Value

MAX_TERMS = 500  # of one expression: products of sums grow fast, and a file may contain any expression
MAX_SIZE = 100_000  # of one expression, in the measure that orders them

# dim_as_value: a size as a number ------------------------------------------------------------------------------------

dim_as_value_p = Primitive("dim_as_value", wire=portable(dim=SIZE))
dim_as_value_p.cache = None  # the dtype depends on enable_x64


def _value_aval() -> ShapedArray:
    return shaped((), python_scalar_dtype(0), True)


dim_as_value_p.abstract = lambda *, dim: _value_aval()
dim_as_value_p.jvp = dim_as_value_p.batch = unsupported(
    "a symbolic size has no arguments, so no transformation meets it"
)
dim_as_value_p.reference = unsupported(
    "a symbolic size has no number before the program is specialised: call it through weft.export"
)


def _no_value(*, dim: Any) -> NoReturn:
    raise InconclusiveDimensionOperation(
        f"the symbolic dimension '{dim}' has no value outside a traced program. Trace the function that uses it"
        " (weft.export.export, weft.eval_shape, weft.make_jaxpr) with an argument that has this dimension."
    )


dim_as_value_p.impl = _no_value

# scopes --------------------------------------------------------------------------------------------------------------


class Scope(Protocol):
    """The part of a `weft.symbolic.scope.SymbolicScope` that expressions use."""

    texts: list[str]  # the constraints
    place: str  # where it was made
    positive: list[Dim]  # expressions that are >= 0
    # (text, expression, operator): a condition on a call's sizes, expression >= 0 or == 0
    checks: list[tuple[str, Dim, str]]
    rules: dict[Monomial, tuple[int, Size]]  # monomial -> (k, expression): k * monomial == expression
    known_bounds: dict[Dim, tuple[float, float]]  # results derived from expressions

    def variable(self, name: str) -> Size:
        """The variable of a name in this scope."""

    def bounds(self, x: Size) -> tuple[float, float]:
        """(lower, upper) of an expression over all values of its variables; infinite where unknown."""


# while there are no symbolic dimensions, no program needs to be searched for them
live_scopes: WeakSet[Any] = WeakSet()

# expressions ---------------------------------------------------------------------------------------------------------

OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "max": max,
    "min": min,
}


class Factor:
    """A variable (no operands), or an operation on two expressions."""

    __slots__ = ("name", "operands", "key", "_hash")

    def __init__(self, name: str, operands: tuple[Size, ...] = ()):
        self.name, self.operands = name, operands
        keys = tuple(map(_key_of, operands))
        self.key = 1 + sum(k[0] for k in keys), name, keys
        self._hash = hash(self.key)

    @override
    def __eq__(self, other: object) -> bool:
        return self is other or type(other) is Factor and self.key == other.key

    @override
    def __hash__(self) -> int:
        return self._hash

    @override
    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(_text, self.operands))})" if self.operands else self.name


def _text(x: Any) -> str:
    return f"- {-x}" if type(x) is int and x < 0 else str(x)


# A monomial is a tuple of (factor, exponent), greatest factor first; () is the constant monomial.
Monomial: TypeAlias = "tuple[tuple[Factor, int], ...]"  # factors and their powers
ONE: Monomial = ()


def _monomial_key(monomial: Monomial) -> tuple[Any, ...]:
    return sum(n * f.key[0] + 1 for f, n in monomial), tuple((f.key, n) for f, n in monomial)


def _key_of(x: Any) -> tuple[Any, ...]:
    return x.key if isinstance(x, Dim) else (1, (((0, ()), x),))


def _times(a: Monomial, b: Monomial) -> Monomial:
    """The product of two monomials."""
    if not a or not b:
        return a or b
    powers = dict(a)
    for f, n in b:
        powers[f] = powers.get(f, 0) + n
    return tuple(sorted(powers.items(), key=lambda item: item[0].key, reverse=True))


class Dim(SymbolicSize):
    """A symbolic dimension. Made by `weft.export.symbolic_shape` and by arithmetic on others.

    Arithmetic with integers and dimensions gives dimensions, or an int if all symbols cancel. With arrays and floats it
    gives arrays, which requires that a function is being traced. `==` holds if both are the same expression. `<`, `<=`,
    `>` and `>=` are decided from the constraints, or raise `InconclusiveDimensionOperation`.
    """

    __slots__ = ("terms", "scope", "key", "_hash")
    __array_priority__ = 1000
    __array_ufunc__ = None  # so that NumPy leaves `array + dim` to us

    def __init__(self, terms: tuple[tuple[Monomial, int], ...], scope: Scope):
        self.terms, self.scope = terms, scope
        self.key = (
            sum(abs(c) * _monomial_key(m)[0] + 1 for m, c in terms),
            tuple((_monomial_key(m), c) for m, c in terms),
        )
        self._hash = hash((self.terms, id(scope)))
        if len(terms) > MAX_TERMS or self.key[0] > MAX_SIZE:
            raise ValueError(
                f"a symbolic dimension of {len(terms)} terms is too large to work with; the limit is {MAX_TERMS} terms"
                " of moderate size. Give the product a name, as a new dimension variable with a constraint."
            )

    # what it is

    def variables(self) -> frozenset[str]:
        """The names of the variables that occur in it."""
        found: set[str] = set()
        for monomial, _ in self.terms:
            for f, _ in monomial:
                (
                    found.update(*[x.variables() for x in f.operands if isinstance(x, Dim)])
                    if f.operands
                    else found.add(f.name)
                )
        return frozenset(found)

    def substitute(self, values: dict[str, Any]) -> Any:
        """The expression with integers, or dimensions of one other scope, in place of its variables."""
        total: Any = 0
        for monomial, coefficient in self.terms:
            product: Any = coefficient
            for f, n in monomial:
                if f.operands:
                    a, b = [x.substitute(values) if isinstance(x, Dim) else x for x in f.operands]
                    product = product * operate(f.name, a, b) ** n
                else:
                    product = product * values[f.name] ** n
            total = total + product
        return total

    @override
    def __str__(self) -> str:
        text = ""
        for monomial, coefficient in self.terms:
            text += (" - " if coefficient < 0 else " + ") if text else ("- " if coefficient < 0 else "")
            factors = "*".join(str(f) if n == 1 else f"{f}^{n}" for f, n in reversed(monomial))
            size = abs(coefficient)
            text += str(size) if not monomial else factors if size == 1 else f"{size}*{factors}"
        return text

    __repr__ = __str__

    @override
    def __eq__(self, other: object) -> bool:
        return self is other or isinstance(other, Dim) and self.scope is other.scope and self.terms == other.terms

    @override
    def __hash__(self) -> int:
        return self._hash

    def __int__(self) -> int:
        raise inconclusive(self, f"Symbolic dimension '{self}' used in a context that requires a constant")

    # arithmetic

    def __add__(self, other: Any) -> Size:
        return _arithmetic(operator.add, self, other, add)

    def __radd__(self, other: Any) -> Size:
        return _arithmetic(operator.add, other, self, add)

    def __sub__(self, other: Any) -> Size:
        return _arithmetic(operator.sub, self, other, lambda a, b: add(a, b, -1))

    def __rsub__(self, other: Any) -> Size:
        return _arithmetic(operator.sub, other, self, lambda a, b: add(a, b, -1))

    def __neg__(self) -> Size:
        return multiply(self, -1)

    def __mul__(self, other: Any) -> Size:
        return _arithmetic(operator.mul, self, other, multiply)

    def __rmul__(self, other: Any) -> Size:
        return _arithmetic(operator.mul, other, self, multiply)

    def __pow__(self, power: Any, modulo: None = None) -> Size:
        try:
            power = operator.index(power)
        except TypeError:
            if isinstance(power, float):
                raise ValueError(
                    f"Symbolic dimension cannot be raised to non-integer powers: '{self}' ** '{power}'."
                ) from None
            return as_value(self) ** as_value(power)
        if power < 0:
            raise ValueError(f"Symbolic dimension cannot be raised to negative powers: '{self}' ** '{power}'.")
        result: Any = 1
        for _ in range(power):  # stops at the limit of an expression's size
            result = result * self
        return result

    def __rpow__(self, other: Any) -> Size:
        return other ** as_value(self)

    def __floordiv__(self, other: Any) -> Size:
        return _arithmetic(operator.floordiv, self, other, lambda a, b: divide(a, b)[0])

    def __rfloordiv__(self, other: Any) -> Size:
        return _arithmetic(operator.floordiv, other, self, lambda a, b: divide(a, b)[0])

    def __mod__(self, other: Any) -> Size:
        return _arithmetic(operator.mod, self, other, lambda a, b: divide(a, b)[1])

    def __rmod__(self, other: Any) -> Size:
        return _arithmetic(operator.mod, other, self, lambda a, b: divide(a, b)[1])

    def __divmod__(self, other: Any) -> Size:
        return _arithmetic(divmod, self, other, divide)

    def __rdivmod__(self, other: Any) -> Size:
        return _arithmetic(divmod, other, self, divide)

    def __truediv__(self, other: Any) -> Size:
        return as_value(self) / as_value(other)

    def __rtruediv__(self, other: Any) -> Size:
        return as_value(other) / as_value(self)

    # comparisons

    def __ge__(self, other: Any) -> bool:
        return _compare(self, other, ">=")

    def __le__(self, other: Any) -> bool:
        return _compare(self, other, "<=")

    def __gt__(self, other: Any) -> bool:
        return _compare(self, other, ">")

    def __lt__(self, other: Any) -> bool:
        return _compare(self, other, "<")

    # as an array

    def dimension_as_value(self) -> Value:
        """The size as a traced integer."""
        return dim_as_value_p.bind(dim=self)

    __jax_array__ = dimension_as_value

    @override
    @property
    def value_aval(self) -> ShapedArray:
        """The aval of the size as a value."""
        return _value_aval()

    def __array__(self, dtype: ElementType | None = None, copy: Any = None) -> None:
        _no_value(dim=self)


def as_value(x: Any) -> Value:
    """A size as an operand of computations. An integer stays unchanged."""
    return x.dimension_as_value() if isinstance(x, Dim) else x


def is_symbolic_dim(p: Any) -> bool:
    """Whether `p` is a symbolic dimension and not an integer.

    Args:
        p: an entry of a shape.

    Returns:
        bool.

    Example:
        >>> from weft import export
        >>> export.is_symbolic_dim(export.symbolic_shape("b")[0]), export.is_symbolic_dim(3)
        (True, False)
    """
    return isinstance(p, Dim)


def is_constant_shape(shape: Iterable[Size]) -> bool:
    """Whether all sizes are integers."""
    return not any([isinstance(n, Dim) for n in shape])


def _size(x: Any) -> Size:
    """An operand of integer arithmetic, or None: the other operand is then an array or a float."""
    if isinstance(x, Dim) or type(x) is int:
        return x
    if getattr(x, "shape", None) == () and hasattr(x, "aval") or isinstance(x, (float, complex)):
        return None
    try:
        return operator.index(x)
    except TypeError:
        return None


def _arithmetic(op: Callable[..., Any], a: Any, b: Any, exact: Callable[..., Any]) -> Size:
    x, y = _size(a), _size(b)
    if x is None or y is None:
        other = b if isinstance(a, Dim) else a
        if not (isinstance(other, (float, complex)) or hasattr(other, "dtype")):
            return NotImplemented
        return op(as_value(a), as_value(b))
    return exact(x, y)


def scope_of(a: Any, b: Any, doing: str = "an operation on dimensions") -> Scope:
    """The scope of two operands, of which at least one is symbolic."""
    if not isinstance(a, Dim):
        return b.scope
    if isinstance(b, Dim) and a.scope is not b.scope:
        raise ValueError(
            f"Invalid mixing of symbolic scopes in {doing}: '{a}' has the scope {a.scope}\nand '{b}' has the scope"
            f" {b.scope}.\nMake all shapes of a program in one scope: pass scope=… to symbolic_shape."
        )
    return a.scope


def _coefficients(x: Any, factor: int = 1) -> dict[Monomial, int]:
    return {m: c * factor for m, c in x.terms} if isinstance(x, Dim) else {ONE: x * factor}


def from_coefficients(coefficients: dict[Monomial, int], scope: Scope) -> Size:
    """The expression with these coefficients, after the scope's equations are applied: a Dim, or an int."""
    rules = scope.rules
    if rules:
        changed: dict[Any, Any] = {}
        for m, c in coefficients.items():
            rule = rules.get(m)
            if rule is not None and c % rule[0] == 0:
                for n, d in _coefficients(rule[1], c // rule[0]).items():
                    changed[n] = changed.get(n, 0) + d
            else:
                changed[m] = changed.get(m, 0) + c
        coefficients = changed
    terms = [(m, c) for m, c in coefficients.items() if c]
    if not terms:
        return 0
    if len(terms) == 1 and terms[0][0] == ONE:
        return terms[0][1]
    return Dim(tuple(sorted(terms, key=lambda t: _monomial_key(t[0]), reverse=True)), scope)


def add(a: Size, b: Size, sign: int = 1) -> Size:
    """a + sign * b."""
    if not isinstance(a, Dim) and not isinstance(b, Dim):
        return a + sign * b
    coefficients = _coefficients(a)
    for m, c in _coefficients(b, sign).items():
        coefficients[m] = coefficients.get(m, 0) + c
    return from_coefficients(coefficients, scope_of(a, b, "a sum"))


def multiply(a: Size, b: Size) -> Size:
    if not isinstance(a, Dim) and not isinstance(b, Dim):
        return a * b
    scope = scope_of(a, b, "a product")
    result: dict[Any, Any] = {}
    for m, c in _coefficients(a).items():
        for n, d in _coefficients(b).items():
            product = _times(m, n)
            result[product] = result.get(product, 0) + c * d
        if len(result) > MAX_TERMS:
            raise ValueError(
                f"a product of symbolic dimensions has more than {MAX_TERMS} terms. Give it a name, as"
                f" a new dimension variable."
            )
    return from_coefficients(result, scope)


def divide(a: Size, b: Size) -> tuple[Size, Size]:
    """(floor of a / b, remainder): by long division if that leaves integer coefficients, else as `floordiv(a, b)` and
    `mod(a, b)`.
    """
    if not isinstance(a, Dim) and not isinstance(b, Dim):
        return divmod(a, b)
    if b == 0:
        raise ZeroDivisionError("integer division or modulo by zero")
    scope = scope_of(a, b, "a division")
    quotient, rest = 0, a
    lead, lead_coefficient = b.terms[0] if isinstance(b, Dim) else (ONE, b)
    while rest != 0:
        monomial, coefficient = rest.terms[0] if isinstance(rest, Dim) else (ONE, rest)
        if monomial == ONE and lead == ONE:
            q, r = divmod(rest, b)
            return quotient + q, r
        part = _over(monomial, lead)
        if part is None or coefficient % lead_coefficient:
            break
        step = from_coefficients({part: coefficient // lead_coefficient}, scope)
        quotient, rest = quotient + step, rest - step * b
    else:
        return quotient, 0
    return operation("floordiv", a, b, scope), operation("mod", a, b, scope)


def _over(a: Monomial, b: Monomial) -> Monomial | None:
    """The monomial a / b; None if that is not a monomial."""
    powers = dict(a)
    for f, n in b:
        if powers.get(f, 0) < n:
            return None
        powers[f] -= n
    return tuple((f, n) for f, n in powers.items() if n)


def operation(name: str, a: Size, b: Size, scope: Scope) -> Size:
    """An expression that consists of one operation, such as `floordiv(a, b)`."""
    return from_coefficients({((Factor(name, (a, b)), 1),): 1}, scope)


def max_dim(a: Size, b: Size) -> Size:
    """The greater of two sizes. `max(a, b)` stays in the expression if the constraints do not decide which it is.

    Example:
        >>> from weft import core, export
        >>> b, = export.symbolic_shape("b")
        >>> core.max_dim(b, b - 1), core.max_dim(b, 4)
        (b, max(b, 4))
    """
    return _choose("max", a, b)


def min_dim(a: Size, b: Size) -> Size:
    """The smaller of two sizes. `min(a, b)` stays in the expression if the constraints do not decide which it is.

    Example:
        >>> from weft import core
        >>> core.min_dim(2, 3)
        2
    """
    return _choose("min", a, b)


def _choose(name: str, a: Size, b: Size) -> Size:
    if not isinstance(a, Dim) and not isinstance(b, Dim):
        return OPERATIONS[name](operator.index(a), operator.index(b))
    a, b = [x if isinstance(x, Dim) else operator.index(x) for x in (a, b)]
    scope = scope_of(a, b, f"a {name}imum")
    low, high = scope.bounds(a - b)
    if low >= 0:
        return a if name == "max" else b
    if high <= 0:
        return b if name == "max" else a
    return operation(name, a, b, scope)


def promises(f: Factor, scope: Scope) -> list[Dim]:
    """Properties of an operation: expressions in its operands that are >= 0."""
    if not f.operands:
        return []
    a, b = f.operands
    me = from_coefficients({((f, 1),): 1}, scope)
    if f.name == "max":
        found = [me - a, me - b]
    elif f.name == "min":
        found = [a - me, b - me]
    elif scope.bounds(b)[0] > 0:
        rest = a - me * b if f.name == "floordiv" else me
        found = [rest, b - 1 - rest]
    else:
        found = []
    return [p for p in found if isinstance(p, Dim)]


def operations(x: Any) -> set[Factor]:
    """The operations in an expression, those inside others too."""
    found: set[Factor] = set()
    for monomial, _ in x.terms if isinstance(x, Dim) else ():
        for f, _ in monomial:
            if f.operands:
                found.add(f)
                found.update(*map(operations, f.operands))
    return found


def operate(name: str, a: Size, b: Size) -> Size:
    """An operation by its name in expressions."""
    if name == "floordiv":
        return a // b
    return a % b if name == "mod" else _choose(name, a, b)


def product(sizes: Iterable[Any]) -> Any:
    """The product of sizes."""
    result: Any = 1
    for n in sizes:
        result = result * n
    return result


# comparisons ---------------------------------------------------------------------------------------------------------

_SWAPPED = {">=": False, "<": False, "<=": True, ">": True}


def _compare(a: Dim, b: Any, op: str) -> bool:
    other = _size(b)
    if other is None:
        return (
            NotImplemented
            if not hasattr(b, "dtype") and not isinstance(b, float)
            else {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}[op](as_value(a), b)
        )
    if isinstance(other, Dim):
        scope_of(a, other, f"the comparison '{a}' {op} '{other}'")
    low, high = a.scope.bounds(other - a if _SWAPPED[op] else a - other)  # is it >= 0?
    if low < 0 <= high:
        raise inconclusive(a, f"Symbolic dimension comparison '{a}' {op} '{other}' is inconclusive.")
    return (low >= 0) is (op in (">=", "<="))


def inconclusive(dim: Dim, what: str) -> InconclusiveDimensionOperation:
    """The error, with the known facts and a remedy."""
    known = "".join(f"\n  {c}" for c in dim.scope.texts)
    more = f"\nIts scope, created at {dim.scope.place}, has the constraints:{known}" if known else ""
    return InconclusiveDimensionOperation(
        f"{what}{more}\nThe answer depends on the values of {', '.join(sorted(dim.variables()))}, which are known only"
        ' when the program is called. Say more about them with constraints=["…"] of symbolic_shape (such as "a >='
        ' 4", "mod(a, 2) == 0"), use weft.core.max_dim or min_dim, or compute with the size as an array.'
    )
