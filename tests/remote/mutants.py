"""Programs changed in their structure, as bytes: what somebody could send who knows the format.

`Source.of(jaxpr)` takes a program apart (`program_parts.py`); `mutate` changes some of the parts; `write`
makes bytes of what came out, with nothing checked. Half of the mutants are `retyped`: their results get the types that
the primitives derive, so that it is for the primitives' rules to refuse them, or to be right.
"""

from __future__ import annotations

import copy
import dataclasses
import random
from collections.abc import Callable
from typing import Any

from weft.base import dtypes
from weft.core.jaxpr import round_scalar
from weft.core.primitive import registry
from weft.core.wire import param_types
from declared import PORTABLE
from program_parts import Body, Carried, DType, Equation, Known, Name, Number, Type, Wrong, _type, bodies, retype, write

# what is changed ------------------------------------------------------------------------------------------------------

DTYPES = (
    "float32 int32 bool uint8 float16 bfloat16 int8 uint32 complex64 float64 int64 uint64 complex128 int16 uint16 int4"
    " uint4 int2 uint2 float8_e4m3fn float8_e5m2 float8_e8m0fnu float4_e2m1fn float0"
).split()
SIZES = (0, 1, 2, 3, 4, 5, 7)
HUGE = (
    1 << 31,
    (1 << 31) - 1,
    (1 << 62) + 1,
    (1 << 63) - 1,
    1 << 63,
    (1 << 64) - 1,
    1 << 40,
    -(1 << 63),
    -(1 << 64),
    65537,
)
STRINGS = (
    "",
    "float32",
    "key<fry>",
    "object",
    "/etc/passwd",
    "add",
    "jit",
    "device",
    "x" * 300,
    "\ud800",
    "default",
    "ffi_call",
    'a"}{',
)
PRIMITIVES = sorted(PORTABLE)


class Mutator:
    """Changes the parts of one program, the same for the same random numbers."""

    def __init__(self, rng: random.Random, body: Body):
        self.rng, self.body = rng, body
        self.header: bytes | None = None

    def mutate(self) -> None:
        rng = self.rng
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            kinds: list[tuple[int, Callable[[], None]]] = [
                (14, self.dtype_everywhere),
                (10, self.size_everywhere),
                (14, self.operand),
                (8, self.equations),
                (6, self.result),
                (22, self.parameter),
                (6, self.primitive),
                (5, self.nested),
                (5, self.literal),
                (6, self.one_type),
                (1, self.head),
                (1, self.deep),
                (2, self.interface),
            ]
            rng.choices([k for _, k in kinds], [w for w, _ in kinds])[0]()
        if rng.random() < 0.65:
            retype(self.body)

    # picking

    def any_body(self) -> Body:
        return self.rng.choice(list(bodies(self.body)))

    def any_equation(self) -> tuple[Body, int] | None:
        found = [(b, i) for b in bodies(self.body) for i in range(len(b.equations))]
        return self.rng.choice(found) if found else None

    def some_type(self, like: Type = ()) -> Type:
        rng = self.rng
        if rng.random() < 0.03:
            return ()
        name, weak, shape = like or ("float32", False, (3,))
        kind = rng.randrange(6)
        if kind <= 1:
            name = rng.choice(DTYPES)
        elif kind == 2:
            shape = tuple(rng.choice(SIZES) for _ in range(rng.randrange(5)))
        elif kind == 3 and shape:
            i = rng.randrange(len(shape))
            shape = (
                *shape[:i],
                rng.choice((*SIZES, shape[i] + 1, shape[i] - 1, *HUGE) if rng.random() < 0.3 else SIZES),
                *shape[i + 1 :],
            )
        elif kind == 4:
            weak = not weak
        else:
            shape = shape[1:] if rng.random() < 0.5 else (rng.choice(SIZES), *shape)
        if rng.random() < 0.01:
            shape = (1,) * 65
        return name, weak, shape

    # kinds of changes

    def dtype_everywhere(self) -> None:
        """One dtype for another wherever it stands."""
        rng = self.rng
        have = sorted({n.type[0] for b in bodies(self.body) for n in self.names(b) if n.type})
        if not have:
            return
        old, new = rng.choice(have), rng.choice(DTYPES)

        def swap(t: Type) -> Type:
            return (new, *t[1:]) if t and t[0] == old else t

        for b in bodies(self.body):
            for n in self.names(b):
                if type(n) is Number and n.type and n.type[0] == old:
                    n.value = as_dtype(n.value, new)
                n.type = swap(n.type)
            for eqn in b.equations:
                eqn.params = {
                    k: replaced(v, lambda x: DType(new) if type(x) is DType and x.name == old else x)
                    for k, v in eqn.params.items()
                }

    def size_everywhere(self) -> None:
        """One size for another in all types, and in parameters where the number stands."""
        rng = self.rng
        have = sorted({m for b in bodies(self.body) for n in self.names(b) if n.type for m in n.type[2]})
        if not have:
            return
        old, new = rng.choice(have), rng.choice(SIZES)
        everywhere = rng.random() < 0.7
        for b in bodies(self.body):
            for n in self.names(b):
                if n.type:
                    n.type = (*n.type[:2], tuple(new if m == old else m for m in n.type[2]))
            for eqn in b.equations:
                if everywhere:
                    eqn.params = {
                        k: (
                            replaced(v, lambda x: new if type(x) is int and x == old else x)
                            if type(v) is tuple or k in ("length", "k")
                            else v
                        )
                        for k, v in eqn.params.items()
                    }

    def names(self, body: Body) -> list:
        found = [*body.inputs, *[n for e in body.equations for n in (*e.operands, *e.results)], *body.results]
        return list({id(n): n for n in found if type(n) is not Wrong}.values())

    def operand(self) -> None:
        rng, place = self.rng, self.any_equation()
        if place is None:
            return
        body, i = place
        atoms = body.equations[i].operands if rng.random() < 0.9 else body.results
        before = [*body.inputs, *[n for e in body.equations[:i] for n in e.results if not n.dropped]]
        kind, at = rng.randrange(9), rng.randrange(len(atoms)) if atoms else 0
        if kind <= 3 and atoms and before:
            alike = [n for n in before if n.type == getattr(atoms[at], "type", None)]
            atoms[at] = rng.choice(alike if alike and rng.random() < 0.5 else before)
        elif kind == 4 and len(atoms) > 1:
            other = rng.randrange(len(atoms))
            atoms[at], atoms[other] = atoms[other], atoms[at]
        elif kind == 5 and atoms:
            del atoms[at]
        elif kind == 6:
            atoms.insert(at, rng.choice(before) if before else Number(("float32", False, ()), 1.0))
        elif kind == 7 and atoms:
            t = getattr(atoms[at], "type", ())
            atoms[at] = Number((t[0], t[1], ()) if t else ("float32", False, ()), self.some_value(0))
        elif atoms:
            everything = [*before, *[n for e in body.equations[i:] for n in e.results]]
            atoms[at] = rng.choice([Wrong(rng.choice((3, 5, 1 << 20, *HUGE))), *everything[-3:]])

    def equations(self) -> None:
        rng, place = self.rng, self.any_equation()
        if place is None:
            return
        body, i = place
        eqns, kind = body.equations, rng.randrange(4)
        if kind == 0:
            del eqns[i]
        elif kind == 1:
            again = (
                eqns[i]
                if rng.random() < 0.5
                else dataclasses.replace(eqns[i], results=[Name(n.type, n.dropped) for n in eqns[i].results])
            )
            eqns.insert(rng.randrange(i, len(eqns) + 1), again)
        elif kind == 2:
            j = rng.randrange(len(eqns))
            eqns[i], eqns[j] = eqns[j], eqns[i]
        else:
            j = min(len(eqns), i + rng.randrange(1, 4))
            del eqns[i:j]

    def result(self) -> None:
        rng, place = self.rng, self.any_equation()
        if place is None:
            return
        eqn = place[0].equations[place[1]]
        kind, at = rng.randrange(5), rng.randrange(len(eqn.results)) if eqn.results else 0
        if kind <= 1 and eqn.results:
            eqn.results[at].type = self.some_type(eqn.results[at].type)
        elif kind == 2 and eqn.results:
            eqn.results[at].dropped = not eqn.results[at].dropped
        elif kind == 3 and eqn.results:
            del eqn.results[at]
        else:
            eqn.results.insert(at, Name(self.some_type()))

    def parameter(self) -> None:
        rng = self.rng
        found = [e for b in bodies(self.body) for e in b.equations if e.params]
        if not found:
            return
        eqn = rng.choice(found)
        key, kind = rng.choice(sorted(eqn.params)), rng.random()
        if kind < 0.02:
            del eqn.params[key]
        elif kind < 0.04:
            eqn.params[rng.choice(("jaxpr", "callback", "", "shape", "zz"))] = self.some_value(0)
        elif kind < 0.08:
            eqn.params[key] = self.some_value(0)
        else:
            eqn.params[key] = self.changed(eqn.params[key])

    def changed(self, value):
        """A value with one place in it changed."""
        rng, kind = self.rng, type(value)
        if rng.random() < 0.02:
            return self.some_value(0)
        if kind is bool:
            return not value if rng.random() < 0.95 else int(value)
        if kind is int:
            return rng.choice(
                (
                    value + 1,
                    value - 1,
                    -value,
                    value + 2,
                    0,
                    1,
                    2,
                    3,
                    -1,
                    value * 2,
                    *(HUGE if rng.random() < 0.3 else ()),
                )
            )
        if kind in (float, complex):
            return rng.choice((-value, 0.0, -0.0, 1e300, float("inf"), float("nan"), 0.5, 1))
        if kind is str:
            return rng.choice((*STRINGS, "ge", "le", "float32"))
        if kind is DType:
            return DType(rng.choice((*DTYPES, "object")))
        if kind is Known and value.member is not None:
            members = list(param_types[value.cls].__members__) if value.cls in param_types else []
            return (
                Known(value.cls, rng.choice(members), [])
                if members and rng.random() < 0.95
                else Known(rng.choice(sorted(param_types)), rng.choice((*members, "X")), [])
            )
        if kind is Known:
            fields = list(value.fields)
            if rng.random() < 0.05:
                return Known(value.cls, None, fields[:-1])
            if fields:
                at = rng.randrange(len(fields))
                fields[at] = self.changed(fields[at])
            return Known(value.cls, None, fields)
        if kind is Carried:
            return (
                Carried(rng.choice(list(bodies(self.body))), value.closed)
                if rng.random() < 0.8
                else Carried(value.body, not value.closed)
            )
        if kind in (tuple, list):
            return self.changed_tuple(value)
        return self.some_value(0)

    def changed_tuple(self, value):
        rng, items, kind = self.rng, list(value), self.rng.randrange(12)
        at = rng.randrange(len(items)) if items else 0
        if kind <= 6 and items:
            items[at] = self.changed(items[at])
        elif kind == 7 and items:
            del items[at]
        elif kind == 8 and items:
            items.insert(at, items[at])
        elif kind == 9 and len(items) > 1:
            other = rng.randrange(len(items))
            items[at], items[other] = items[other], items[at]
        elif kind == 10:
            items.insert(at, rng.choice((0, 1, 2, -1, (0, 0))))
        elif rng.random() < 0.5:
            items = []
        elif rng.random() < 0.3:
            return list(value)
        return tuple(items) if type(value) is tuple else items

    def some_value(self, depth: int):
        rng = self.rng
        choices: list[Callable[[], Any]] = [
            lambda: None,
            lambda: rng.random() < 0.5,
            lambda: rng.choice((0, 1, -1, 2, 3, *HUGE)),
            lambda: rng.choice((0.0, 1.5, float("nan"), float("inf"), 1e308)),
            lambda: complex(1, float("nan")),
            lambda: rng.choice(STRINGS),
            lambda: b"\x00\xff",
            lambda: DType(rng.choice((*DTYPES, "object"))),
            lambda: tuple(self.some_value(depth + 1) for _ in range(rng.randrange(4))),
            lambda: [1],
            lambda: Carried(self.any_body(), rng.random() < 0.7),
            lambda: Known("GatherScatterMode", "CLIP", []),
            lambda: Known("GatherDimensionNumbers", None, [(0,), (0,), (0,), (), ()]),
        ]
        return choices[rng.randrange(2 if depth > 3 else 0, 8 if depth > 3 else len(choices))]()

    def primitive(self) -> None:
        """Another primitive, oftener one that takes as many operands and the same parameters."""
        rng, place = self.rng, self.any_equation()
        if place is None:
            return
        eqn = place[0].equations[place[1]]
        alike = [p for p in PRIMITIVES if PORTABLE[p].parameters.keys() == eqn.params.keys()] or PRIMITIVES
        eqn.primitive = rng.choice(alike if rng.random() < 0.8 else (*PRIMITIVES, *sorted(registry), "nothing"))

    def nested(self) -> None:
        """Cuts or exchanges programs that others carry."""
        rng = self.rng
        inner = [b for b in bodies(self.body) if b is not self.body]
        if not inner:
            return
        body, kind = rng.choice(inner), rng.randrange(5)
        if kind == 0:
            body.equations = body.equations[: rng.randrange(len(body.equations) + 1)]
        elif kind == 1:
            body.results = [*body.inputs[: len(body.results)]]
        elif kind == 2 and body.inputs:
            del body.inputs[rng.randrange(len(body.inputs))]
        elif kind == 3:
            body.inputs.insert(rng.randrange(len(body.inputs) + 1), Name(self.some_type()))
        elif body.results:
            rng.shuffle(body.results)

    def literal(self) -> None:
        rng = self.rng
        found = [a for b in bodies(self.body) for e in b.equations for a in e.operands if type(a) is Number]
        if not found:
            return
        number = rng.choice(found)
        kind = rng.randrange(4)
        if kind <= 1:
            number.value = self.changed(number.value)
        elif kind == 2:
            number.value = self.some_value(0)
        else:
            number.type = self.some_type(number.type)

    def one_type(self) -> None:
        """Another type for one argument."""
        body = self.body if self.rng.random() < 0.7 else self.any_body()
        if body.inputs:
            name = self.rng.choice(body.inputs)
            name.type = self.some_type(name.type)

    def interface(self) -> None:
        rng, body, kind = self.rng, self.any_body(), self.rng.randrange(4)
        if kind == 0 and body.inputs:
            del body.inputs[rng.randrange(len(body.inputs))]
        elif kind == 1:
            body.inputs.append(Name(self.some_type()))
        elif kind == 2 and body.inputs:
            body.results.append(rng.choice(body.inputs))
        elif body.results:
            del body.results[rng.randrange(len(body.results))]

    def head(self) -> None:
        rng, place = self.rng, self.any_equation()
        if rng.random() < 0.3 and place is not None:
            place[0].equations[place[1]].effects = rng.choice((1, 2, 1 << 30))
            return
        self.header = rng.choice(
            (
                b"weft\x00\x02\x00",
                b"weft\x00\x01\x02",
                b"weft\x00",
                b"",
                b"WEFT\x00\x01\x00",
                b"weft\x00\x01\x01",
                b"weft\x00\xff\x00",
            )
        )

    def deep(self) -> None:
        """Tuples in tuples, programs in programs."""
        rng, place = self.rng, self.any_equation()
        if place is not None and rng.random() < 0.5:
            eqn = place[0].equations[place[1]]
            value: Any = ()
            for _ in range(rng.choice((5, 16, 17, 300))):
                value = (value,)
            eqn.params[rng.choice((*eqn.params, "zz"))] = value
            return
        for _ in range(rng.choice((3, 46, 47, 48, 60))):
            inner = self.body
            inputs = [Name(n.type) for n in inner.inputs]
            results = [Name(_type(a) if type(a) is not Wrong else ()) for a in inner.results]
            call = Equation(
                "jit",
                list(inputs),
                {
                    "jaxpr": Carried(inner, True),
                    "name": "f",
                    "donated_invars": (False,) * len(inputs),
                    "keep_unused": False,
                    "inline": False,
                },
                list(results),
            )
            self.body = Body(inputs, [call], list(results))

    def constants(self) -> None:
        """Known values in the place of arguments: compilers compute with those themselves, and not always what a
        program would.
        """
        rng, body = self.rng, self.body
        for name in [n for n in body.inputs if n.type and n.type[0] in DTYPES and rng.random() < 0.7]:
            dtype, _, shape = name.type
            if shape and dtype != "bool" and rng.random() < 0.3:
                made = Equation(
                    "iota",
                    [],
                    {"dtype": DType(dtype), "shape": shape, "dimension": rng.randrange(len(shape)), "sharding": None},
                    [name],
                )
            else:
                number = Number(
                    (dtype, False, ()),
                    as_dtype(
                        rng.choice((0, 0, 1, 2, 3) if dtype.startswith("u") else (0, 0, -1, 1, 2, -0.0, 1.5)), dtype
                    ),
                )
                made = Equation(
                    "broadcast_in_dim", [number], {"shape": shape, "broadcast_dimensions": (), "sharding": None}, [name]
                )
            name.type = dtype, False, shape
            body.inputs.remove(name)
            body.equations.insert(0, made)


def replaced(value, change: Callable):
    """A value with each of its leaves changed."""
    if type(value) in (tuple, list):
        return type(value)([replaced(v, change) for v in value])
    if type(value) is Known and value.member is None:
        return Known(value.cls, None, [replaced(v, change) for v in value.fields])
    return change(value)


def as_dtype(value, name: str):
    """A literal's value as one of another dtype, where it can be one."""
    try:
        if name == "bool":
            return bool(value)
        if name.startswith(("int", "uint")):
            return (
                abs(int(value.real if isinstance(value, complex) else value)) & 1
                if name[-1] in "24"
                else int(value.real if isinstance(value, complex) else value)
            )
        return round_scalar(
            complex(value) if name.startswith("complex") else value.real if isinstance(value, complex) else value,
            dtypes.dtype(name),
        )
    except (TypeError, ValueError, OverflowError, AttributeError):
        return value


def mutant(seed: int, body: Body) -> bytes:
    """The bytes of a changed program."""
    rng = random.Random(seed)
    mutator = Mutator(rng, copy.deepcopy(body))
    mutator.mutate()
    if random.Random(~seed).random() < 0.25:
        mutator.constants()
    return write(mutator.body, rng.random() < 0.15, mutator.header)
