"""Jaxprs: typed programs as lists of equations. Everything that crosses a boundary in weft is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterable, Sequence, TypeAlias, final

from ..base.annotations import override
from ..base import dtypes
from ..base.avals import AbstractValue, ShapedArray, scalar_aval
from ..base.hooks import Hook
from ..base.host import pack, round_narrow, unpack
from ..base.source_info import UNKNOWN, SourceInfo
from .scalars import TypedScalar as TypedScalar

if TYPE_CHECKING:
    from .effects import Effect
    from .primitive import Primitive
    from .types import ElementType, Params, Value


class Var:
    """A variable of a jaxpr; its identity is its name."""

    __slots__ = ("aval",)

    def __init__(self, aval: AbstractValue):
        self.aval = aval

    @override
    def __repr__(self) -> str:
        return f"Var(id={id(self)}):{self.aval.str_short(short_dtypes=False)}"


@final
class DropVar(Var):
    """An equation's result that nothing uses."""

    __slots__ = ()

    @override
    def __repr__(self) -> str:
        return "_"


@final
class Literal:
    """A Python scalar in a jaxpr, already rounded to its aval's dtype."""

    __slots__ = ("val", "aval", "_hash")

    def __init__(self, val: Any, aval: ShapedArray):
        self.val, self.aval = val, aval
        self._hash: int | None = None

    @property
    def hash(self) -> int:
        return hash(self)

    @override
    def __eq__(self, other: object) -> bool:
        return (
            type(other) is Literal
            and self.aval == other.aval
            and (
                self.val == other.val
                and repr(self.val) == repr(other.val)
                or self.val != self.val
                and other.val != other.val
            )
        )

    @override
    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((repr(self.val), self.aval))
        return self._hash

    @override
    def __repr__(self) -> str:
        return f"{self.val}:{self.aval.str_short()}"


Atom: TypeAlias = Var | Literal


def _wrapped(value: int, dt: ElementType) -> int:
    """Wraps an integer to fewer than 8 bits."""
    bits = dtypes.bits(dt)
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtypes.is_signed(dt) and value >> (bits - 1) else value


def round_scalar(value: Any, dt: ElementType) -> bool | int | float | complex:
    """A Python scalar as dtype `dt` holds it."""
    kind = dtypes.kind(dt)
    if kind == "b":
        return bool(value)
    number = int(value) if kind in "iu" else complex(value) if kind == "c" else float(value)
    if dt == dtypes.float64:
        return number
    if isinstance(number, int) and dtypes.bits(dt) < 8:
        return _wrapped(number, dt)
    if isinstance(number, float) and dtypes.bits(dt) < 16:
        return round_narrow(number, dt)
    stored: int | float | complex
    (stored,) = unpack(pack([number], dt.name), dt.name)
    return stored


class JaxprEqn:
    """`outvars = primitive[params] invars`, with its effects and the user's line it came from."""

    __slots__ = ("invars", "outvars", "primitive", "params", "effects", "source_info")

    def __init__(
        self,
        invars: Sequence[Atom],
        outvars: Sequence[Var],
        primitive: Primitive,
        params: Params,
        effects: frozenset[Effect] = frozenset(),
        source_info: SourceInfo = UNKNOWN,
    ):
        self.invars, self.outvars, self.primitive, self.params = invars, outvars, primitive, params
        self.effects, self.source_info = effects, source_info

    def replace(self, **kw: Any) -> "JaxprEqn":
        return JaxprEqn(*[kw.get(name, getattr(self, name)) for name in JaxprEqn.__slots__])

    @override
    def __repr__(self) -> str:
        return show_eqn(self)


class Jaxpr:
    """A program: constvars and invars in, equations in order, outvars out."""

    __slots__ = (
        "constvars",
        "invars",
        "outvars",
        "eqns",
        "effects",
        "debug_info",
        "derived",
        "last_uses",
        "__weakref__",
    )

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Atom],
        eqns: Sequence[JaxprEqn],
        effects: frozenset[Effect] = frozenset(),
        debug_info: Any = None,
    ):
        self.constvars, self.invars, self.outvars, self.eqns = list(constvars), list(invars), list(outvars), list(eqns)
        self.effects, self.debug_info = effects, debug_info
        self.derived: dict[Any, Any] = {}  # see core.memo
        self.last_uses: dict[int, list[Atom]] | None = None  # see _last_uses

    @property
    def in_avals(self) -> list[AbstractValue]:
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[AbstractValue]:
        return [v.aval for v in self.outvars]

    def replace(self, **kw: Any) -> "Jaxpr":
        names = ("constvars", "invars", "outvars", "eqns", "effects", "debug_info")
        return Jaxpr(*[kw.get(name, getattr(self, name)) for name in names])

    @override
    def __repr__(self) -> str:
        return show_jaxpr(self)

    def pretty_print(self, **kw: Any) -> str:
        return show_jaxpr(self)


class ClosedJaxpr:
    """A jaxpr and the values of its constvars."""

    __slots__ = ("jaxpr", "consts", "__weakref__")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Value] = ()):
        assert len(jaxpr.constvars) == len(consts)
        self.jaxpr, self.consts = jaxpr, list(consts)

    @property
    def in_avals(self) -> list[AbstractValue]:
        return self.jaxpr.in_avals

    @property
    def out_avals(self) -> list[AbstractValue]:
        return self.jaxpr.out_avals

    @property
    def eqns(self) -> list[JaxprEqn]:
        return self.jaxpr.eqns

    @property
    def constvars(self) -> list[Var]:
        return self.jaxpr.constvars

    @property
    def invars(self) -> list[Var]:
        return self.jaxpr.invars

    @property
    def outvars(self) -> list[Atom]:
        return self.jaxpr.outvars

    @property
    def debug_info(self) -> Any:
        return self.jaxpr.debug_info

    def map_jaxpr(self, f: Callable[[Jaxpr], Jaxpr]) -> ClosedJaxpr:
        """The program `f(self.jaxpr)` over the same constants."""
        return ClosedJaxpr(f(self.jaxpr), self.consts)

    @property
    def effects(self) -> frozenset[Effect]:
        return self.jaxpr.effects

    @property
    def literals(self) -> list[Any]:
        return self.consts

    def replace(self, *, jaxpr: Jaxpr | None = None, consts: Sequence[Value] | None = None) -> "ClosedJaxpr":
        return ClosedJaxpr(jaxpr or self.jaxpr, self.consts if consts is None else consts)

    @override
    def __repr__(self) -> str:
        return show_jaxpr(self.jaxpr)

    def pretty_print(self, **kw: Any) -> str:
        return show_jaxpr(self.jaxpr)


class Held:
    """A parameter around a program that its equation does not run on its operands, as a kernel's runs on references:
    `subjaxprs` and `map_jaxprs` pass it by.
    """

    closed: ClosedJaxpr

    def holding(self, closed: ClosedJaxpr) -> Held:
        """The same around another program."""
        raise NotImplementedError(type(self).__name__)


# `weft.core.pretty` defines these: the printer needs the classes above.
show_jaxpr: Hook[[Jaxpr], str] = Hook("printing a jaxpr")
show_eqn: Hook[[JaxprEqn], str] = Hook("printing an equation")


def subjaxprs(params: Params) -> list[Jaxpr]:
    """The jaxprs among an equation's parameters, in tuples too."""
    return _jaxprs_in(params.values())


def _jaxprs_in(values: Iterable[Any]) -> list[Jaxpr]:
    found: list[Jaxpr] = []
    _add_jaxprs(values, found)
    return found


def _add_jaxprs(values: Iterable[Any], found: list[Jaxpr]) -> None:
    for value in values:
        if isinstance(value, (tuple, list)):
            _add_jaxprs(value, found)
        elif isinstance(value, ClosedJaxpr):
            found.append(value.jaxpr)
        elif isinstance(value, Jaxpr):
            found.append(value)


def map_jaxprs(value: Any, f: Callable[[ClosedJaxpr], ClosedJaxpr]) -> Any:
    """A parameter with `f` applied to the jaxprs in it, in tuples too."""
    if isinstance(value, ClosedJaxpr):
        return f(value)
    if isinstance(value, Jaxpr):
        return f(ClosedJaxpr(value, [])).jaxpr
    if isinstance(value, (tuple, list)) and _jaxprs_in(value):
        mapped = [map_jaxprs(v, f) for v in value]
        return value._make(mapped) if isinstance(value, tuple) and hasattr(value, "_make") else type(value)(mapped)
    return value


def literal_value(literal: Literal) -> Any:
    """A literal as an operand: a Python scalar where that has its type, else a `TypedScalar`."""
    aval = literal.aval
    return literal.val if aval.weak_type and aval == scalar_aval(literal.val) else TypedScalar(literal.val, aval)


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Value], *args: Value) -> list[Value]:
    """Runs a jaxpr's equations one by one through `bind`, under the current trace."""
    return eval_equations(jaxpr, consts, args, bind_equation)


def bind_equation(eqn: JaxprEqn, values: Sequence[Value]) -> Sequence[Value]:
    """The results of an equation for operands with these values, by `bind`."""
    out = eqn.primitive.bind(*values, **eqn.params)
    return out if eqn.primitive.multiple_results else (out,)


def eval_equations(
    jaxpr: Jaxpr,
    consts: Sequence[Any],
    args: Sequence[Any],
    apply: Callable[[JaxprEqn, list[Any]], Sequence[Any]],
    *,
    literal: Callable[[Literal], Any] = literal_value,
    env: dict[Atom, Any] | None = None,
) -> list[Any]:
    """Runs a jaxpr's equations one by one: `apply` gives the results of an equation for the values of its operands.

    Args:
        jaxpr: the program.
        consts: the values of its constvars.
        args: the values of its arguments.
        apply: (equation, values of its operands) -> values of its results.
        literal: the value of a literal.
        env: a dict that keeps the value of every variable, for an `apply` that reads or changes some; None to drop
            each after its last use.

    Returns:
        the values of the results.
    """
    last_use = _last_uses(jaxpr) if env is None else {}
    env = {} if env is None else env
    env.update(zip(jaxpr.constvars, consts))
    env.update(zip(jaxpr.invars, args))
    for i, eqn in enumerate(jaxpr.eqns):
        values = [literal(a) if type(a) is Literal else env[a] for a in eqn.invars]
        env.update(zip(eqn.outvars, apply(eqn, values)))
        for var in last_use.get(i, ()):
            env.pop(var, None)
    return [literal(a) if type(a) is Literal else env[a] for a in jaxpr.outvars]


def _last_uses(jaxpr: Jaxpr) -> dict[int, list[Atom]]:
    """equation index -> variables that no later equation reads. It is cached, because loops evaluate a jaxpr
    repeatedly.
    """
    if jaxpr.last_uses is None:
        last: dict[Atom, int] = {}
        for i, eqn in enumerate(jaxpr.eqns):
            for atom in eqn.invars:
                if type(atom) is not Literal:
                    last[atom] = i
        for atom in jaxpr.outvars:
            last.pop(atom, None)
        result: dict[int, list[Atom]] = {}
        for var, i in last.items():
            result.setdefault(i, []).append(var)
        jaxpr.last_uses = result
    return jaxpr.last_uses


def jaxpr_as_fun(closed: ClosedJaxpr) -> Callable[..., list[Value]]:
    """A Python function (flat arguments, a list of results) that evaluates the closed jaxpr."""
    return lambda *args: eval_jaxpr(closed.jaxpr, closed.consts, *args)
