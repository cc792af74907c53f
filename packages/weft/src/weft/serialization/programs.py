"""The bytes of a jaxpr: a versioned, explicit, deterministic format, so that equal programs have equal bytes and one
hash.

    magic "weft" 0x00, version, flags (bit 0: traced with 64-bit types)
    strings    count, then (length, UTF-8)
    avals      count, then 1 kind: 0 array (dtype: string, weak: byte, rank, sizes), 1 token, 2 array with symbolic
    sizes (the same, but
               each size 2 * integer, or 2 * string + 1 for an expression); only `weft.export` writes and reads these
    lines      count, then (file: string, line, function: string, scopes: strings)
    jaxprs     count, then each after those that it carries; the last is the program:
               avals of arguments, equations (primitive: string, operands, params by name, results, effects, line),
               results, effects

Integers are variable-length; strings, avals, lines and jaxprs are named by their number. An operand is 2 * variable, or
1 and a literal. Variables are numbered in order of definition. The reader trusts nothing; what it returns has passed
the verifier.
"""

from __future__ import annotations

import enum
import hashlib
from typing import TYPE_CHECKING, Any, Hashable, NamedTuple, Sequence

from ..base import dtypes
from ..base.avals import AbstractToken, ShapedArray, SymbolicSize, countable, physical, shaped, token
from ..base.config import config, enable_x64
from ..base.errors import VerificationError
from ..base.source_info import UNKNOWN, SourceInfo
from .binary import DeserializationError, Reader, Writer, printable
from ..symbolic.parser import parse_dimension
from ..symbolic.scope import SymbolicScope
from ..core.effects import Effect, debug, io, ordered_debug, ordered_io
from ..core.jaxpr import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var, round_scalar, subjaxprs
from .parameters import check_parameters, why_refused
from .portable import NotPortable, check_operands
from ..core.primitive import registry
from ..core.wire import param_types
from ..core.verify import verify

if TYPE_CHECKING:
    from typing_extensions import Buffer
    from ..base.avals import AbstractValue, Size
    from ..core.jaxpr import Atom
    from ..base.dtypes import ElementType

MAGIC, VERSION = b"weft\x00", 1
# the only effects that a program from outside may have: those of debug_report and remote_callback
EFFECTS = frozenset([debug, ordered_debug, io, ordered_io])


class Limits(NamedTuple):
    """The limits of a reader. `equations` counts the equations of a carried jaxpr once for each time that it is
    carried, and for each copy that a loop unrolls to.
    """

    size: int = 64 << 20  # bytes
    equations: int = 1_000_000
    depth: int = 48  # jaxprs inside jaxprs
    nesting: int = 16  # tuples inside tuples
    rank: int = 64
    array_bytes: int = 1 << 46  # of one value


DEFAULT_LIMITS = Limits()


class Program(NamedTuple):
    """A jaxpr from bytes."""

    jaxpr: Jaxpr
    x64: bool  # whether it was traced with 64-bit types, and so must be compiled with them
    files: frozenset[str] = frozenset()  # of the lines of source code


class RecordedLine(SourceInfo):
    """A user's line as it was written down in another process."""

    __slots__ = ()

    def __init__(self, file: str, line: int, function: str, names: tuple[Any, ...] = ()):
        super().__init__((file, function), line, names)

    file = property(lambda self: self.code[0])
    function = property(lambda self: self.code[1])
    line = property(lambda self: self.lasti)


def content_hash(data: Buffer) -> bytes:
    """The 32 bytes by which a serialized program is known."""
    return hashlib.sha256(data).digest()


# Tags of parameters.
(
    _NONE,
    _FALSE,
    _TRUE,
    _INT,
    _FLOAT,
    _COMPLEX,
    _STR,
    _BYTES,
    _TUPLE,
    _LIST,
    _DTYPE,
    _ENUM,
    _NAMED,
    _CLOSED,
    _JAXPR,
    _DIM,
) = range(16)


class _Table:
    """Things numbered in order of first use."""

    def __init__(self) -> None:
        self.numbers: dict[Any, Any] = {}

    def __call__(self, item: Hashable) -> int:
        return self.numbers.setdefault(item, len(self.numbers))


class _Serializer:
    def __init__(self, lines: bool = True):
        self.with_lines = lines
        self.strings, self.avals, self.lines = _Table(), _Table(), _Table()
        self.jaxprs: dict[Jaxpr, int] = {}
        self.body = Writer()

    def finish(self) -> bytes:
        out = Writer()
        out.data += MAGIC
        out.byte(VERSION)
        out.byte(1 if config.enable_x64 else 0)
        avals, lines = Writer(), Writer()
        for kind, *rest in self.avals.numbers:
            avals.byte(kind)
            if kind == 0:
                name, weak, shape = rest
                avals.unsigned(self.strings(name))
                avals.byte(weak)
                avals.unsigned(len(shape))
                for n in shape:
                    avals.unsigned(n)
            elif kind == 2:
                name, weak, shape = rest
                write_shape(avals, self.strings(name), weak, shape, self.strings)
        for file, line, function, names in self.lines.numbers:
            for n in (self.strings(file), line, self.strings(function), len(names), *map(self.strings, names)):
                lines.unsigned(n)
        out.unsigned(len(self.strings.numbers))
        for s in self.strings.numbers:
            out.string(s)
        out.unsigned(len(self.avals.numbers))
        out.data += avals.data
        out.unsigned(len(self.lines.numbers))
        out.data += lines.data
        out.unsigned(len(self.jaxprs))
        out.data += self.body.data
        return bytes(out.data)

    def aval(self, aval: AbstractValue) -> int:
        if isinstance(aval, AbstractToken):
            return self.avals((1,))
        if physical(aval) is not aval:
            raise NotPortable(
                f"a value of type {aval.str_short()} can leave the process only in"
                f" its stored form; see weft.transforms.physical.lower_types"
            )
        if any([isinstance(n, SymbolicSize) for n in aval.shape]):
            return self.avals((2, dtypes.name(aval.dtype), int(aval.weak_type), tuple(aval.shape)))
        return self.avals((0, dtypes.name(aval.dtype), int(aval.weak_type), tuple(aval.shape)))

    def line(self, info: SourceInfo) -> int:
        return (
            0
            if info.code is None or not self.with_lines
            else 1 + self.lines((info.file, info.line, info.function, tuple(info.names)))
        )

    def jaxpr(self, jaxpr: Jaxpr) -> int:
        """The number of a jaxpr; it and all that it carries are written at the first time."""
        if jaxpr in self.jaxprs:
            return self.jaxprs[jaxpr]
        for eqn in jaxpr.eqns:
            for sub in subjaxprs({key: eqn.params[key] for key in sorted(eqn.params)}):
                self.jaxpr(sub)
        if jaxpr.constvars:
            raise NotPortable("a program with constants inside can't be written; see weft.transforms.portable")
        w = Writer()
        numbers: dict[Any, Any] = {}
        w.unsigned(len(jaxpr.invars))
        for var in jaxpr.invars:
            numbers[var] = len(numbers)
            w.unsigned(self.aval(var.aval))
        w.unsigned(len(jaxpr.eqns))
        for eqn in jaxpr.eqns:
            self.equation(w, eqn, numbers)
        self.atoms(w, jaxpr.outvars, numbers)
        w.unsigned(0)
        self.body.data += w.data
        number = self.jaxprs[jaxpr] = len(self.jaxprs)
        return number

    def equation(self, w: Writer, eqn: JaxprEqn, numbers: dict[Any, Any]) -> None:
        self.check(eqn)
        w.unsigned(self.strings(eqn.primitive.name))
        self.atoms(w, eqn.invars, numbers)
        w.unsigned(len(eqn.params))
        for key in sorted(eqn.params):
            w.unsigned(self.strings(key))
            try:
                self.value(w, eqn.params[key])
            except NotPortable as e:
                raise NotPortable(
                    f"{eqn.primitive.name} can't leave the process: its parameter {key!r} {e}\n  at {eqn.source_info}"
                ) from None
        w.unsigned(len(eqn.outvars))
        for var in eqn.outvars:
            w.unsigned(self.aval(var.aval) << 1 | (type(var) is DropVar))
            if type(var) is not DropVar:
                numbers[var] = len(numbers)
        w.unsigned(0)  # effects: its primitive tells a reader which it has
        w.unsigned(self.line(eqn.source_info))

    def check(self, eqn: JaxprEqn) -> None:
        """Raises NotPortable for a program that no reader would accept."""
        if not eqn.effects <= EFFECTS:
            raise NotPortable(
                f"{eqn.primitive.name} has the effect {', '.join(sorted(map(str, eqn.effects)))}, which a program"
                " outside of its process can't have. Return the value instead, or leave the call out.\n  at"
                f" {eqn.source_info}"
            )
        why = why_refused(eqn.primitive)
        if why is not None:
            raise NotPortable(f"{eqn.primitive.name} can't leave the process: {why}.\n  at {eqn.source_info}")

    def atoms(self, w: Writer, atoms: Sequence[Atom], numbers: dict[Any, Any]) -> None:
        w.unsigned(len(atoms))
        for a in atoms:
            if type(a) is Literal:
                w.unsigned(1)
                w.unsigned(self.aval(a.aval))
                self.value(w, a.val)
            else:
                w.unsigned(numbers[a] << 1)

    def value(self, w: Writer, value: Any) -> None:
        kind = type(value)
        if value is None:
            w.byte(_NONE)
        elif kind is bool:
            w.byte(_TRUE if value else _FALSE)
        elif kind is int:
            w.byte(_INT)
            w.signed(value)
        elif kind is float:
            w.byte(_FLOAT)
            w.float64(value)
        elif kind is complex:
            w.byte(_COMPLEX)
            w.float64(value.real)
            w.float64(value.imag)
        elif kind is str:
            w.byte(_STR)
            w.unsigned(self.strings(value))
        elif kind is bytes:
            w.byte(_BYTES)
            w.bytes(value)
        elif isinstance(value, enum.Enum) or isinstance(value, tuple) and hasattr(kind, "_fields"):
            self.known(w, value, kind)
        elif kind is tuple or kind is list:
            w.byte(_TUPLE if kind is tuple else _LIST)
            w.unsigned(len(value))
            for item in value:
                self.value(w, item)
        elif isinstance(value, ClosedJaxpr):
            if value.consts:
                raise NotPortable("holds constants; see weft.transforms.portable")
            w.byte(_CLOSED)
            w.unsigned(self.jaxpr(value.jaxpr))
        elif isinstance(value, Jaxpr):
            w.byte(_JAXPR)
            w.unsigned(self.jaxpr(value))
        elif isinstance(value, SymbolicSize):
            w.byte(_DIM)
            w.unsigned(self.strings(str(value)))
        else:
            self.other(w, value)

    def known(self, w: Writer, value: Any, kind: type[Any]) -> None:
        if param_types.get(kind.__name__) is not kind:
            raise NotPortable(
                f"holds a {kind.__name__}, which is not part of the format (weft.core.wire.param_type makes it so)"
            )
        if isinstance(value, enum.Enum):
            w.byte(_ENUM)
            w.unsigned(self.strings(kind.__name__))
            w.unsigned(self.strings(value.name))
            return
        w.byte(_NAMED)
        w.unsigned(self.strings(kind.__name__))
        w.unsigned(len(value))
        for item in value:
            self.value(w, item)

    def other(self, w: Writer, value: Any) -> None:
        """A dtype, or a scalar of NumPy."""
        if isinstance(value, dtypes.ExtendedDType) or isinstance(value, type(dtypes.float0)) and value == dtypes.float0:
            raise NotPortable("is a dtype that is not stored; see weft.transforms.physical.lower_types")
        if hasattr(value, "item") and getattr(value, "shape", None) == () and dtypes.is_python_scalar(value.item()):
            self.value(w, value.item())
            return
        try:
            name = dtypes.name(dtypes.dtype(value)) if not callable(value) or isinstance(value, type) else None
        except TypeError:
            name = None
        if name is None:
            raise NotPortable(f"is a {type(value).__name__} ({str(value)[:60]})")
        w.byte(_DTYPE)
        w.unsigned(self.strings(name))


def write_shape(w: Writer, dtype: int, weak: int, shape: tuple[Any, ...], strings: _Table) -> None:
    """An array type whose sizes may be symbolic, by the number of its dtype's name."""
    w.unsigned(dtype)
    w.byte(weak)
    w.unsigned(len(shape))
    for n in shape:
        w.unsigned(strings(str(n)) << 1 | 1 if isinstance(n, SymbolicSize) else n << 1)


def serialize(jaxpr: Jaxpr, lines: bool = True) -> bytes:
    """The bytes of a portable jaxpr (see `weft.transforms.portable`); without `lines`, equal programs have equal bytes
    wherever they were written.

    Raises:
        NotPortable: for a parameter that can't be serialized; the message has the user's line.

    Example:
        >>> import weft
        >>> from weft.serialization.programs import deserialize, serialize
        >>> jaxpr = weft.make_jaxpr(lambda x: x + 1)(2.0).jaxpr
        >>> deserialize(serialize(jaxpr)).jaxpr
        { lambda ; a:f32[]. let b:f32[] = add a 1.0:f32[] in (b,) }
    """
    writer = _Serializer(lines)
    writer.jaxpr(jaxpr)
    return writer.finish()


def deserialize(data: Buffer, limits: Limits = DEFAULT_LIMITS, scope: SymbolicScope | None = None) -> Program:
    """The program that `serialize` wrote, checked by the verifier. Without a `scope` it may have no symbolic
    dimensions.

    Raises:
        DeserializationError: for any bytes that are not a program.
    """
    reader = Reader(data)
    if reader.left() > limits.size:
        reader.fail(f"a program of {reader.left()} bytes exceeds the limit of {limits.size}")
    try:
        return _Deserializer(reader, limits, scope).program()
    except DeserializationError:
        raise
    except VerificationError as e:
        raise DeserializationError(f"the program is not well-formed: {e}", reader.at) from e
    except Exception as e:  # a check of ours failed on these bytes before it could raise a proper error
        raise DeserializationError(f"not a program: {type(e).__name__}: {e}", reader.at) from e


def _copies(length: Size, unroll: int | bool) -> int:
    """How many copies of a loop's program are compiled."""
    if isinstance(length, SymbolicSize):
        if unroll is True:
            raise VerificationError(f"scan can't unroll a loop of the symbolic length {str(length)[:80]!r}")
        return max(1, unroll)
    steps = length if unroll is True else max(1, unroll)
    return max(1, length) if steps >= length else steps + length % steps


class _Deserializer:
    def __init__(self, reader: Reader, limits: Limits, scope: SymbolicScope | None = None):
        self.r, self.limits, self.scope = reader, limits, scope
        self.dims: dict[str, Any] = {}
        # with its depth and the number of its equations, including those of carried jaxprs
        self.jaxprs: list[tuple[Jaxpr, int, int]] = []
        self.used: set[int] = set()

    def program(self) -> Program:
        r = self.r
        if bytes(r.view(min(len(MAGIC), r.left()))) != MAGIC:
            r.fail("this is no weft program", 0)
        version = r.byte()
        if version != VERSION:
            r.fail(f"the program has format {version}, this weft reads {VERSION}: use the same release on both sides")
        flags = r.byte()
        if flags > 1:
            r.fail(f"unknown flags {flags}")
        with enable_x64(bool(flags)):
            self.strings = [r.string() for _ in range(r.count())]
            self.avals = [self.aval() for _ in range(r.count())]
            self.lines = [self.line() for _ in range(r.count())]
            for _ in range(r.count()):
                self.jaxprs.append(self.jaxpr())
            r.finish()
            if not self.jaxprs:
                r.fail("there is no program")
            if len(self.used) != len(self.jaxprs) - 1:
                r.fail("a jaxpr is carried by no other")
            program = self.jaxprs[-1][0]
            verify(program)
            if not all([isinstance(a.aval, ShapedArray) for a in (*program.invars, *program.outvars)]):
                r.fail("a program takes and gives arrays")
        return Program(program, bool(flags), frozenset([line.file for line in self.lines]))

    def string(self) -> str:
        return self.strings[self.r.index(self.strings)]

    def dtype(self) -> ElementType:
        start, name = self.r.at, self.string()
        if name not in dtypes._TABLE:
            self.r.fail(f"there is no dtype {name!r}", start)
        return dtypes.dtype(name)

    def aval(self) -> AbstractValue:
        r, start = self.r, self.r.at
        kind = r.byte()
        if kind == 1:
            return token
        if kind not in (0, 2):
            r.fail(f"there is no kind {kind} of types", start)
        dt, weak = self.dtype(), r.byte()
        if weak > 1:
            r.fail("a type is either weak or not", start)
        shape = tuple([self.size() if kind else r.unsigned() for _ in range(r.count(self.limits.rank))])
        size = max(1, dtypes.itemsize(dt))
        for n in shape:
            if isinstance(n, SymbolicSize):
                continue
            size *= n
            if n > self.limits.array_bytes or size > self.limits.array_bytes:
                r.fail(f"an array of shape {shape} exceeds the limit of {self.limits.array_bytes} bytes", start)
        if not countable(shape, dt):
            r.fail(
                f"an array of shape {shape} and dtype {dtypes.name(dt)} is too large: its sizes that are not zero make"
                " more than 2^63 bytes",
                start,
            )
        return shaped(shape, dt, bool(weak))

    def size(self) -> Size:
        start, n = self.r.at, self.r.unsigned()
        if not n & 1:
            return n >> 1
        if n >> 1 >= len(self.strings):
            self.r.fail(f"there is no string {n >> 1}", start)
        return self.dim(self.strings[n >> 1])

    def dim(self, text: str) -> Size:
        """Reads a dimension from text. Only the canonical text of a dimension is accepted."""
        if self.scope is None:
            self.r.fail(
                f"the program has the symbolic dimension {text[:40]!r}; it must be specialised for sizes before it is"
                " sent"
            )
        if text not in self.dims:
            try:
                made = parse_dimension(text, self.scope)
            except (ValueError, RecursionError) as e:
                self.r.fail(f"{text[:60]!r} is not a dimension: {e}")
            if not isinstance(made, SymbolicSize):
                self.r.fail(f"{text[:60]!r} is not symbolic")
            self.dims[text] = made
        return self.dims[text]

    def line(self) -> SourceInfo:
        file, line, function = printable(self.string()), self.r.unsigned(1 << 31), printable(self.string())
        return RecordedLine(file, line, function, tuple([printable(self.string()) for _ in range(self.r.count())]))

    def jaxpr(self) -> tuple[Jaxpr, int, int]:
        r, start = self.r, self.r.at
        vars_: list[Var] = []
        for _ in range(r.count()):
            vars_.append(Var(self.avals[r.index(self.avals)]))
        invars = list(vars_)
        self.depth, self.equations = 1, 0
        eqns = []
        for _ in range(r.count()):
            eqns.append(self.equation(vars_))
            if self.equations > self.limits.equations:
                r.fail(f"a program of {self.equations} equations exceeds the limit of {self.limits.equations}", start)
        outvars = self.atoms(vars_)
        self.no_effects()
        effects = frozenset[Effect]().union(*[e.effects for e in eqns])
        return Jaxpr([], invars, outvars, eqns, effects), self.depth, self.equations

    def equation(self, vars_: list[Any]) -> JaxprEqn:
        r, start = self.r, self.r.at
        name = self.string()
        primitive = registry.get(name)
        if primitive is None:
            r.fail(f"there is no primitive {name!r}", start)
        self.equations += 1
        invars = self.atoms(vars_)
        params: dict[str, Any] = {}
        last, before = "", self.equations
        for _ in range(r.count()):
            key = self.string()
            if key <= last:
                r.fail(f"the parameters of {name} are not in order")
            last = key
            params[key] = self.value(0)
        outvars: list[Var] = []
        for _ in range(r.count()):
            at, n = r.at, r.unsigned()
            if n >> 1 >= len(self.avals):
                r.fail(f"there is no type {n >> 1}", at)
            outvars.append((DropVar if n & 1 else Var)(self.avals[n >> 1]))
        vars_ += [v for v in outvars if type(v) is Var]
        self.no_effects()
        line = r.unsigned(len(self.lines))
        eqn = JaxprEqn(invars, outvars, primitive, params, frozenset(), self.lines[line - 1] if line else UNKNOWN)
        try:
            check_parameters(eqn)
            if primitive.effects is not None:
                eqn = eqn.replace(effects=primitive.effects(params))
            inner = frozenset[Effect]().union(*[j.effects for j in subjaxprs(params)])
            if not inner <= eqn.effects <= EFFECTS:
                raise VerificationError(f"{name} has effects, or carries some, that no program from outside has there")
            carries = primitive.carries
            if carries is not None:
                check_operands(eqn)
            if carries is not None and carries.counted is not None:  # copies are made only when it is compiled
                length, unroll = params[carries.counted.length], params[carries.counted.unroll]
                self.equations += (_copies(length, unroll) - 1) * max(1, self.equations - before)
        except Exception as e:
            raise DeserializationError(f"{eqn.source_info}: {e}", start) from e
        return eqn

    def atoms(self, vars_: list[Any]) -> list[Any]:
        r = self.r
        atoms = []
        for _ in range(r.count()):
            start, n = r.at, r.unsigned()
            if n == 1:
                atoms.append(self.literal())
            elif n & 1 or n >> 1 >= len(vars_):
                r.fail(f"a variable is used before it is defined ({n >> 1})", start)
            else:
                atoms.append(vars_[n >> 1])
        return atoms

    def literal(self) -> Literal:
        r, start = self.r, self.r.at
        aval, value = self.avals[r.index(self.avals)], self.value(0)
        if type(aval) is not ShapedArray or aval.shape:
            r.fail("a literal is a scalar", start)
        dt = aval.dtype
        kind = dtypes.kind(dt)
        fits = {
            "b": (bool,),
            "i": (int, bool),
            "u": (int, bool),
            "f": (float, int, bool),
            "c": (complex, float, int, bool),
        }.get(kind, ())
        if type(value) not in fits:
            r.fail(f"a literal of type {aval} can't be {type(value).__name__}", start)
        if kind in "iu":
            bits = dtypes.bits(dt)
            low, high = (0, (1 << bits) - 1) if kind == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)
            if not low <= value <= high:
                r.fail(f"{value} is no {dt.name}", start)
        elif kind in "fc":
            if type(value) is int and not -(1 << 63) <= value < 1 << 63:  # NumPy makes no bfloat16 of it
                r.fail(f"{value} is an integer of more than 64 bits in the place of a {dt.name}", start)
            rounded = round_scalar(value, dt)
            if repr(rounded) != repr(type(rounded)(value)):
                r.fail(f"{value} is no {dt.name}; the nearest is {rounded}", start)
        return Literal(value, aval)

    def no_effects(self) -> None:
        start = self.r.at
        if self.r.count():
            self.r.fail("a program from outside has no effects", start)

    def value(self, depth: int) -> Any:
        r, start = self.r, self.r.at
        if depth > self.limits.nesting:
            r.fail("a parameter is nested too deeply", start)
        tag = r.byte()
        if tag == _NONE:
            return None
        if tag in (_FALSE, _TRUE):
            return tag == _TRUE
        if tag == _INT:
            return r.signed()
        if tag == _FLOAT:
            return r.float64()
        if tag == _COMPLEX:
            return complex(r.float64(), r.float64())
        if tag == _STR:
            return self.string()
        if tag == _BYTES:
            return r.bytes()
        if tag in (_TUPLE, _LIST):
            items = [self.value(depth + 1) for _ in range(r.count())]
            return tuple(items) if tag == _TUPLE else items
        if tag == _DTYPE:
            return self.dtype()
        if tag in (_ENUM, _NAMED):
            return self.known(tag, depth)
        if tag in (_CLOSED, _JAXPR):
            jaxpr = self.carried()
            return ClosedJaxpr(jaxpr, []) if tag == _CLOSED else jaxpr
        if tag == _DIM:
            return self.dim(self.string())
        r.fail(f"there is no kind {tag} of parameters", start)

    def known(self, tag: int, depth: int) -> Any:
        r, start = self.r, self.r.at
        cls = param_types.get(self.string())
        if cls is None or issubclass(cls, enum.Enum) != (tag == _ENUM):
            r.fail("a parameter has an unknown class", start)
        if tag == _ENUM:
            name = self.string()
            if name not in cls.__members__:
                r.fail(f"{cls.__name__} has no member {name!r}", start)
            return cls.__members__[name]
        items = [self.value(depth + 1) for _ in range(r.count())]
        if len(items) != len(cls._fields):
            r.fail(f"{cls.__name__} has {len(cls._fields)} fields", start)
        return cls(*items)

    def carried(self) -> Jaxpr:
        start, number = self.r.at, self.r.index(self.jaxprs)
        jaxpr, depth, size = self.jaxprs[number]
        self.used.add(number)
        self.depth, self.equations = max(self.depth, depth + 1), self.equations + size
        if self.depth > self.limits.depth:
            self.r.fail(f"jaxprs are nested more than {self.limits.depth} deep", start)
        if self.equations > self.limits.equations:
            self.r.fail(f"a program of {self.equations} equations exceeds the limit of {self.limits.equations}", start)
        return jaxpr
