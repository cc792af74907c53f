"""Jaxprs: typed programs as lists of equations. The one thing that crosses a boundary in weft."""
from __future__ import annotations

from typing import Any, Callable, Iterable, Sequence

from ..annotations import override
from .. import dtypes
from ..avals import AbstractValue, ShapedArray
from ..host import pack, round_narrow, unpack
from ..source_info import UNKNOWN, SourceInfo


class Var:
    """A variable of a jaxpr; its identity is its name."""
    __slots__ = ("aval",)

    def __init__(self, aval: AbstractValue):
        self.aval = aval

    @override
    def __repr__(self):
        return f"Var(id={id(self)}):{self.aval.str_short()}"


class DropVar(Var):
    """An equation's result that nothing uses."""
    __slots__ = ()

    @override
    def __repr__(self):
        return "_"


class Literal:
    """A Python scalar in a jaxpr, already rounded to its aval's dtype."""
    __slots__ = ("val", "aval", "_hash")

    def __init__(self, val, aval: ShapedArray):
        self.val, self.aval, self._hash = val, aval, None

    @property
    def hash(self):
        return hash(self)

    @override
    def __eq__(self, other):
        return type(other) is Literal and self.aval == other.aval and \
            (self.val == other.val and repr(self.val) == repr(other.val) or self.val != self.val and other.val != other.val)

    @override
    def __hash__(self):
        if self._hash is None:
            self._hash = hash((repr(self.val), self.aval))
        return self._hash

    @override
    def __repr__(self):
        return f"{self.val}:{self.aval.str_short()}"


Atom = Var | Literal


def _wrapped(value: int, dt) -> int:
    """An integer as one of fewer than 8 bits."""
    bits = dtypes.bits(dt)
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtypes.is_signed(dt) and value >> (bits - 1) else value


def round_scalar(value, dt):
    """A Python scalar as dtype `dt` holds it."""
    kind = dtypes.kind(dt)
    if kind == "b":
        return bool(value)
    if kind in "iu":
        return unpack(pack([int(value)], dt.name), dt.name)[0] if dtypes.bits(dt) >= 8 else _wrapped(int(value), dt)
    if kind == "c":
        return unpack(pack([complex(value)], dt.name), dt.name)[0]
    if dt == dtypes.float64:
        return float(value)
    return unpack(pack([float(value)], dt.name), dt.name)[0] if dtypes.bits(dt) >= 16 else round_narrow(float(value), dt)


class JaxprEqn:
    """`outvars = primitive[params] invars`, with its effects and the user's line it came from."""
    __slots__ = ("invars", "outvars", "primitive", "params", "effects", "source_info")

    def __init__(self, invars, outvars, primitive, params, effects=frozenset(), source_info: SourceInfo = UNKNOWN):
        self.invars, self.outvars, self.primitive, self.params = invars, outvars, primitive, params
        self.effects, self.source_info = effects, source_info

    def replace(self, **kw) -> "JaxprEqn":
        return JaxprEqn(*[kw.get(name, getattr(self, name)) for name in JaxprEqn.__slots__])

    @override
    def __repr__(self):
        return show_eqn(self)


class Jaxpr:
    """A program: constvars and invars in, equations in order, outvars out."""
    __slots__ = ("constvars", "invars", "outvars", "eqns", "effects", "debug_info", "cache", "__weakref__")

    def __init__(self, constvars: Sequence[Var], invars: Sequence[Var], outvars: Sequence[Atom],
                 eqns: Sequence[JaxprEqn], effects: frozenset = frozenset(), debug_info: Any = None):
        self.constvars, self.invars, self.outvars, self.eqns = list(constvars), list(invars), list(outvars), list(eqns)
        self.effects, self.debug_info = effects, debug_info
        self.cache: dict = {}    # what has been derived from this jaxpr: its jvp, its batched form, executables

    @property
    def in_avals(self) -> list:
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list:
        return [v.aval for v in self.outvars]

    def replace(self, **kw) -> "Jaxpr":
        names = ("constvars", "invars", "outvars", "eqns", "effects", "debug_info")
        return Jaxpr(*[kw.get(name, getattr(self, name)) for name in names])

    @override
    def __repr__(self):
        return show_jaxpr(self)

    def pretty_print(self, **kw) -> str:
        return show_jaxpr(self, **kw)


class ClosedJaxpr:
    """A jaxpr and the values of its constvars."""
    __slots__ = ("jaxpr", "consts", "__weakref__")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any] = ()):
        assert len(jaxpr.constvars) == len(consts)
        self.jaxpr, self.consts = jaxpr, list(consts)

    in_avals = property(lambda self: self.jaxpr.in_avals)
    out_avals = property(lambda self: self.jaxpr.out_avals)
    eqns = property(lambda self: self.jaxpr.eqns)
    effects = property(lambda self: self.jaxpr.effects)
    literals = property(lambda self: self.consts)

    def replace(self, *, jaxpr=None, consts=None) -> "ClosedJaxpr":
        return ClosedJaxpr(jaxpr or self.jaxpr, self.consts if consts is None else consts)

    @override
    def __repr__(self):
        return show_jaxpr(self.jaxpr)

    def pretty_print(self, **kw) -> str:
        return show_jaxpr(self.jaxpr, **kw)


# The pretty printer needs nothing of ours but these classes; it puts its two functions here.
show_jaxpr: Any = None
show_eqn: Any = None


def subjaxprs(params: dict) -> Iterable[Jaxpr]:
    """The jaxprs among an equation's parameters, in tuples too."""
    for value in params.values():
        yield from _jaxprs_in(value)


def _jaxprs_in(value):
    if isinstance(value, Jaxpr):
        yield value
    elif isinstance(value, ClosedJaxpr):
        yield value.jaxpr
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _jaxprs_in(item)


def map_jaxprs(value: Any, f: Callable[[ClosedJaxpr], ClosedJaxpr]) -> Any:
    """A parameter with `f` applied to the jaxprs in it."""
    if isinstance(value, ClosedJaxpr):
        return f(value)
    if isinstance(value, Jaxpr):
        return f(ClosedJaxpr(value, [])).jaxpr
    if isinstance(value, tuple) and value and isinstance(value[0], ClosedJaxpr):
        return type(value)(*map(f, value)) if hasattr(value, "_fields") else tuple(map(f, value))
    return value


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence, *args) -> list:
    """Runs a jaxpr's equations one by one through `bind`, under whatever trace is current."""
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, consts))
    env.update(zip(jaxpr.invars, args))

    def read(atom):
        return env[atom] if type(atom) is not Literal else (atom.val if atom.aval.weak_type else TypedScalar(atom.val, atom.aval))
    last_use = _last_uses(jaxpr)
    for i, eqn in enumerate(jaxpr.eqns):
        out = eqn.primitive.bind(*[read(a) for a in eqn.invars], **eqn.params)
        if eqn.primitive.multiple_results:
            env.update(zip(eqn.outvars, out))
        else:
            env[eqn.outvars[0]] = out
        for var in last_use.get(i, ()):
            env.pop(var, None)
    return [read(v) for v in jaxpr.outvars]


def _last_uses(jaxpr: Jaxpr) -> dict[int, list]:
    """equation index -> variables that nothing later reads; kept, so that loops of evaluation pay for it once."""
    if "last_uses" not in jaxpr.cache:
        last: dict[Var, int] = {}
        for i, eqn in enumerate(jaxpr.eqns):
            for atom in eqn.invars:
                if type(atom) is not Literal:
                    last[atom] = i
        for atom in jaxpr.outvars:
            last.pop(atom, None) if type(atom) is not Literal else None
        result: dict[int, list] = {}
        for var, i in last.items():
            result.setdefault(i, []).append(var)
        jaxpr.cache["last_uses"] = result
    return jaxpr.cache["last_uses"]


class TypedScalar:
    """A Python scalar that carries a dtype of its own: what a strongly typed literal becomes when a jaxpr is evaluated."""
    __slots__ = ("val", "aval")

    def __init__(self, val, aval: ShapedArray):
        self.val, self.aval = val, aval

    shape = property(lambda self: ())
    ndim = property(lambda self: 0)
    dtype = property(lambda self: self.aval.dtype)
    weak_type = property(lambda self: self.aval.weak_type)

    @override
    def __repr__(self):
        return f"{self.val}:{self.aval.str_short()}"


def jaxpr_as_fun(closed: ClosedJaxpr) -> Callable:
    """A Python function (flat arguments, a list of results) that evaluates the closed jaxpr."""
    return lambda *args: eval_jaxpr(closed.jaxpr, closed.consts, *args)
