"""Programs taken apart into plain parts that may be anything, the types that fit them, and their bytes, with nothing
checked.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator
from typing import Any

import numpy as np
from weft.base import dtypes
from weft.base.avals import AbstractToken, AbstractValue, shaped, token
from weft.serialization import programs as s
from weft.serialization.binary import Writer
from weft.core.carries import Carries, Runs
from weft.core.jaxpr import ClosedJaxpr, DropVar, Jaxpr, Literal, Var
from weft.serialization.portable import NotPortable
from weft.core.primitive import registry
from weft.core.wire import param_types


Type = tuple  # ("float32", False, (2, 3)), or () for a token


@dataclasses.dataclass(eq=False)
class Name:
    """A variable, where it is defined and where it is used."""

    type: Type
    dropped: bool = False


@dataclasses.dataclass(eq=False)
class Number:
    """A literal."""

    type: Type
    value: Any


@dataclasses.dataclass(eq=False)
class Wrong:
    """An operand that is no variable: its number in the bytes."""

    number: int


@dataclasses.dataclass(eq=False)
class DType:
    name: str


@dataclasses.dataclass(eq=False)
class Known:
    """A value of a class of parameters: a member of an enumeration, or the fields of a record."""

    cls: str
    member: str | None
    fields: list


@dataclasses.dataclass(eq=False)
class Carried:
    """A program as a parameter."""

    body: "Body"
    closed: bool


@dataclasses.dataclass(eq=False)
class Equation:
    primitive: str
    operands: list
    params: dict
    results: list
    effects: int = 0


@dataclasses.dataclass(eq=False)
class Body:
    inputs: list
    equations: list
    results: list


class Source:
    """Takes jaxprs apart."""

    def __init__(self):
        self.bodies: dict = {}

    @staticmethod
    def of(jaxpr: Jaxpr) -> Body:
        return Source().body(jaxpr)

    def body(self, jaxpr: Jaxpr) -> Body:
        if jaxpr not in self.bodies:
            names: dict = {}

            def define(var: Var) -> Name:
                names[var] = Name(type_of(var.aval), type(var) is DropVar)
                return names[var]

            def read(atom):
                return Number(type_of(atom.aval), atom.val) if type(atom) is Literal else names[atom]

            inputs = [define(v) for v in jaxpr.invars]
            equations = [
                Equation(
                    e.primitive.name,
                    [read(a) for a in e.invars],
                    {k: self.value(v) for k, v in e.params.items()},
                    [define(v) for v in e.outvars],
                )
                for e in jaxpr.eqns
            ]
            self.bodies[jaxpr] = Body(inputs, equations, [read(a) for a in jaxpr.outvars])
        return self.bodies[jaxpr]

    def value(self, value):
        if isinstance(value, enum.Enum):
            return Known(type(value).__name__, value.name, [])
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return Known(type(value).__name__, None, [self.value(v) for v in value])
        if isinstance(value, (tuple, list)):
            return type(value)([self.value(v) for v in value])
        if isinstance(value, (ClosedJaxpr, Jaxpr)):
            return Carried(
                self.body(value.jaxpr if isinstance(value, ClosedJaxpr) else value), isinstance(value, ClosedJaxpr)
            )
        if value is None or type(value) in (bool, int, float, complex, str, bytes):
            return value
        if hasattr(value, "item") and getattr(value, "shape", None) == ():
            return value.item()
        if not isinstance(value, (np.dtype, type)):
            raise NotPortable(f"{value!r} stays in its process")
        return DType("float0" if value == dtypes.float0 else dtypes.name(dtypes.dtype(value)))


def type_of(aval: AbstractValue) -> Type:
    return () if isinstance(aval, AbstractToken) else (dtypes.name(aval.dtype), aval.weak_type, aval.shape)


def bodies(body: Body, seen: set | None = None) -> Iterator[Body]:
    """A program and all that it carries, each once."""
    seen = set() if seen is None else seen
    if id(body) in seen:
        return
    seen.add(id(body))
    yield body
    for eqn in body.equations:
        for carried in [v for v in leaves(eqn.params) if type(v) is Carried]:
            yield from bodies(carried.body, seen)


def leaves(value) -> Iterator:
    children = (
        value.values()
        if type(value) is dict
        else (
            value.fields
            if type(value) is Known and value.member is None
            else value
            if type(value) in (tuple, list)
            else None
        )
    )
    if children is None:
        yield value
        return
    for child in children:
        yield from leaves(child)


# their bytes ----------------------------------------------------------------------------------------------------------


class Careless:
    """Writes parts as they are."""

    def __init__(self):
        self.strings, self.types = s._Table(), s._Table()
        self.jaxprs, self.count, self.data = {}, 0, Writer()
        self.under_way: set = set()

    def number(self, w: Writer, n: int) -> None:
        """A number as a reader takes it: one below zero as what two's complement makes of it."""
        w.unsigned(n if n >= 0 else n & (1 << 64) - 1)

    def type(self, t: Type) -> int:
        return self.types(t)

    def body(self, body: Body) -> int:
        if id(body) in self.jaxprs:
            return self.jaxprs[id(body)]
        if id(body) in self.under_way:  # it carries itself: by the number that it will have
            return self.count + 1
        self.under_way.add(id(body))
        w, numbers = Writer(), {}
        for name in body.inputs:
            numbers[id(name)] = len(numbers)
        for eqn in body.equations:
            for name in eqn.results:
                if not name.dropped:
                    numbers.setdefault(id(name), len(numbers))
        w.unsigned(len(body.inputs))
        for name in body.inputs:
            w.unsigned(self.type(name.type))
        w.unsigned(len(body.equations))
        for eqn in body.equations:
            self.equation(w, eqn, numbers)
        self.atoms(w, body.results, numbers)
        w.unsigned(0)
        self.under_way.discard(id(body))
        self.data.data += w.data
        self.jaxprs[id(body)] = self.count
        self.count += 1
        return self.count - 1

    def equation(self, w: Writer, eqn: Equation, numbers: dict) -> None:
        w.unsigned(self.strings(eqn.primitive))
        self.atoms(w, eqn.operands, numbers)
        w.unsigned(len(eqn.params))
        for key in sorted(eqn.params):
            w.unsigned(self.strings(key))
            self.value(w, eqn.params[key])
        w.unsigned(len(eqn.results))
        for name in eqn.results:
            w.unsigned(self.type(name.type) << 1 | name.dropped)
        w.unsigned(eqn.effects)
        w.unsigned(1)  # the line

    def atoms(self, w: Writer, atoms: list, numbers: dict) -> None:
        w.unsigned(len(atoms))
        for a in atoms:
            if type(a) is Number:
                w.unsigned(1)
                w.unsigned(self.type(a.type))
                self.value(w, a.value)
            else:
                self.number(w, a.number if type(a) is Wrong else numbers.get(id(a), len(numbers) + 1) << 1)

    def value(self, w: Writer, value) -> None:
        kind = type(value)
        if value is None or kind is bool:
            w.byte({None: s._NONE, False: s._FALSE, True: s._TRUE}[value])
        elif kind is int:
            w.byte(s._INT)
            w.signed(value)
        elif kind is float:
            w.byte(s._FLOAT)
            w.float64(value)
        elif kind is complex:
            w.byte(s._COMPLEX)
            w.float64(value.real)
            w.float64(value.imag)
        elif kind is str:
            w.byte(s._STR)
            w.unsigned(self.strings(value))
        elif kind is bytes:
            w.byte(s._BYTES)
            w.bytes(value)
        elif kind is DType:
            w.byte(s._DTYPE)
            w.unsigned(self.strings(value.name))
        elif kind is Carried:
            w.byte(s._CLOSED if value.closed else s._JAXPR)
            w.unsigned(self.body(value.body))
        elif kind is Known:
            w.byte(s._NAMED if value.member is None else s._ENUM)
            w.unsigned(self.strings(value.cls))
            if value.member is None:
                w.unsigned(len(value.fields))
                for item in value.fields:
                    self.value(w, item)
            else:
                w.unsigned(self.strings(value.member))
        else:
            w.byte(s._TUPLE if kind is tuple else s._LIST)
            w.unsigned(len(value))
            for item in value:
                self.value(w, item)

    def finish(self, header: bytes) -> bytes:
        out, types = Writer(), Writer()
        line = [self.strings("/home/someone/client.py"), 7, self.strings("step"), 0]
        for t in self.types.numbers:
            types.byte(0 if t else 1)
            if t:
                name, weak, shape = t
                for n in (self.strings(name), bool(weak), len(shape), *shape):
                    self.number(types, int(n))
        out.data += header
        out.unsigned(len(self.strings.numbers))
        for text in self.strings.numbers:
            out.string(text)
        out.unsigned(len(self.types.numbers))
        out.data += types.data
        out.unsigned(1)
        for n in line:
            out.unsigned(n)
        out.unsigned(self.count)
        out.data += self.data.data
        return bytes(out.data)


def write(body: Body, x64: bool = False, header: bytes | None = None) -> bytes:
    writer = Careless()
    writer.body(body)
    return writer.finish(s.MAGIC + bytes([s.VERSION, x64]) if header is None else header)


# types that fit -------------------------------------------------------------------------------------------------------


class _No(Exception):
    """The parts make no jaxpr."""


def _real(value):
    """A parameter as an equation holds it."""
    kind = type(value)
    if kind is DType:
        if value.name != "float0" and value.name not in dtypes._TABLE:
            raise _No
        return dtypes.float0 if value.name == "float0" else dtypes.dtype(value.name)
    if kind is Known:
        cls = param_types.get(value.cls)
        if cls is None or (value.member is not None) != issubclass(cls, enum.Enum):
            raise _No
        return cls[value.member] if value.member is not None else cls(*map(_real, value.fields))
    if kind is Carried:
        jaxpr = _jaxpr(value.body)
        return ClosedJaxpr(jaxpr, []) if value.closed else jaxpr
    return kind([_real(v) for v in value]) if kind in (tuple, list) else value


def _aval(t: Type) -> AbstractValue:
    if not t:
        return token
    name, weak, shape = t
    if name != "float0" and name not in dtypes._TABLE or any(n < 0 for n in shape):
        raise _No
    return shaped(shape, dtypes.float0 if name == "float0" else dtypes.dtype(name), weak)


def _jaxpr(body: Body) -> Jaxpr:
    """The types of a program's arguments and results; what is between does not matter to who carries it."""
    return Jaxpr([], [Var(_aval(n.type)) for n in body.inputs], [Var(_aval(_type(n))) for n in body.results], [])


def _type(atom) -> Type:
    if type(atom) is Wrong:
        raise _No
    return atom.type


def retype(body: Body, done: dict[int, list[Type]] | None = None) -> None:
    """Gives all results the types that the primitives derive, as far as they derive any. Of a program that several
    equations carry, the types are derived again where its arguments have others.
    """
    done = {} if done is None else done
    given = [name.type for name in body.inputs]
    if done.get(id(body)) == given:
        return
    done[id(body)] = given
    for eqn in body.equations:
        outs = _derived(eqn, done)
        for name, aval in zip(eqn.results, outs):
            name.type = type_of(aval)
        if outs:
            eqn.results[len(outs) :] = []
            eqn.results += [Name(type_of(a)) for a in outs[len(eqn.results) :]]


def _derived(eqn: Equation, done: dict[int, list[Type]]) -> list:
    """The types of an equation's results; none where its primitive refuses it, which is for the reader to tell."""
    try:
        primitive = registry[eqn.primitive]
        avals = [_aval(_type(a)) for a in eqn.operands]
        if primitive.carries is not None:
            _pass_on(eqn, primitive.carries, avals, done)
        out = primitive.abstract(*avals, **{k: _real(v) for k, v in eqn.params.items()})
    except Exception:
        return []
    return list(out) if primitive.multiple_results else [out]


def _pass_on(eqn: Equation, carries: Carries, avals: list, done: dict[int, list[Type]]) -> None:
    """Gives programs that an equation carries the types of its operands."""
    values = {key: eqn.params[key] for key in carries.takes}
    carried = {key: v if type(v) is tuple else (v,) for key, v in values.items()}
    if carries.runs is Runs.COMBINING:
        half = len(avals) // 2
        scalar = [type_of(a.update(shape=())) for a in avals[:half]]
        for subs in carried.values():
            for sub in subs:
                for name, t in zip(sub.body.inputs, scalar * 2):
                    name.type = t
                retype(sub.body, done)
        return
    if any(n < 0 for n in carries.sizes(eqn.params, len(avals)).values()):
        raise ValueError("it counts operands that are not there")
    for key, (operands, rows) in carries.places(eqn.params, len(avals)).items():
        for sub in carried[key]:
            for k, (name, place) in enumerate(zip(sub.body.inputs, operands)):
                t = type_of(avals[place])
                name.type = (*t[:2], t[2][1:]) if k >= len(operands) - rows else t
            retype(sub.body, done)
