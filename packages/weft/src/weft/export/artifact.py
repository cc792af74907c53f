"""The file of an exported program.

    magic "weftexp" 0x00, version, SHA-256 of all that follows
    function's name, calling convention, flags (bit 0: traced with 64-bit types, bit 1: has symbolic dimensions, bit 2:
    a derivative follows) platforms, disabled checks: count, then strings
    constraints: count, then strings (with bit 1)
    structure of arguments, structure of results (see `trees`)
    types of arguments, types of results: count, then dtype (string), weak, rank, sizes (2 * integer, or 1 and an
    expression as string) kept arguments: count, then their numbers
    constants: count, then dtype, rank, sizes, bytes
    program: the bytes of `weft.serialization.programs`, constants being its leading arguments
    derivative: the same file again (with bit 2)

Nothing of a file is trusted: counts are checked before anything is made, nothing is unpickled or evaluated, and the
program passes the verifier.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any, Iterable, Protocol, Sequence

from ..base import dtypes
from ..base.avals import ShapedArray, SymbolicSize, countable, physical, shaped
from ..base.config import enable_x64
from ..serialization.binary import DeserializationError, Reader, Writer
from ..symbolic.parser import parse_dimension
from ..symbolic.scope import SymbolicScope
from ..core.jaxpr import ClosedJaxpr
from ..serialization.programs import DEFAULT_LIMITS
from ..serialization.programs import deserialize as read_program
from ..serialization.programs import serialize as write_program
from ..core.trace import get_aval, is_array
from ..base.host import foreign, from_bytes, is_host_array, to_bytes
from ..random.keys import key_dtype
from ..runtime.dispatch import host_array
from .trees import read_tree, write_tree

if TYPE_CHECKING:
    from ..base.tree import PyTreeDef
    from ..symbolic.dims import Scope
    from ..base.avals import AbstractValue
    from ..core.types import Value
    from ..base.dtypes import ElementType
    from ..base.host import HostArray

MAGIC, VERSION = b"weftexp\x00", 1
CONVENTIONS = (9, 10)  # JAX's calling conventions that files may name, oldest and newest
_ORDERS = 8  # derivatives of derivatives
_X64, _SYMBOLIC, _VJP = 1, 2, 4


class Exportable(Protocol):
    """The parts of an `Exported` that are written."""

    fun_name: str
    in_tree: PyTreeDef
    out_tree: PyTreeDef
    in_avals: tuple[Any, ...]
    out_avals: tuple[Any, ...]
    platforms: tuple[Any, ...]
    disabled_safety_checks: tuple[Any, ...]
    calling_convention_version: int
    module_kept_var_idx: tuple[Any, ...]
    _closed: ClosedJaxpr
    _scope: Scope | None
    _x64: bool

    def vjp(self) -> Any: ...


def serialize(exported: Exportable, vjp_order: int = 0) -> bytearray:
    """The bytes of an `Exported`, and of as many derivatives."""
    if vjp_order < 0 or vjp_order > _ORDERS:
        raise ValueError(f"vjp_order must lie between 0 and {_ORDERS}; got {vjp_order}.")
    w = Writer()
    w.string(exported.fun_name)
    w.unsigned(exported.calling_convention_version)
    closed, scope = exported._closed, exported._scope
    w.byte((_X64 if exported._x64 else 0) | (_SYMBOLIC if scope is not None else 0) | (_VJP if vjp_order else 0))
    _strings(w, exported.platforms)
    _strings(w, [str(c) for c in exported.disabled_safety_checks])
    if scope is not None:
        _strings(w, scope.texts)
    write_tree(w, exported.in_tree)
    write_tree(w, exported.out_tree)
    for avals in (exported.in_avals, exported.out_avals):
        w.unsigned(len(avals))
        for aval in avals:
            w.string(dtypes.name(aval.dtype))
            w.byte(int(aval.weak_type))
            w.unsigned(len(aval.shape))
            for n in aval.shape:
                if isinstance(n, SymbolicSize):
                    w.unsigned(1)
                    w.string(str(n))
                else:
                    w.unsigned(n << 1)
    w.unsigned(len(exported.module_kept_var_idx))
    for i in exported.module_kept_var_idx:
        w.unsigned(i)
    w.unsigned(len(closed.consts))
    with enable_x64(exported._x64):
        for c in closed.consts:
            aval = get_aval(c)
            w.string(dtypes.name(aval.dtype))
            w.unsigned(len(aval.shape))
            for n in aval.shape:
                w.unsigned(n)
            w.bytes(constant_bytes(c))
        w.bytes(
            write_program(closed.jaxpr.replace(constvars=[], invars=[*closed.jaxpr.constvars, *closed.jaxpr.invars]))
        )
    if vjp_order:
        w.bytes(serialize(exported.vjp(), vjp_order - 1))
    out = bytearray(MAGIC)
    out.append(VERSION)
    out += hashlib.sha256(w.data).digest()
    return out + w.data


def constant_bytes(x: Value) -> bytes:
    """The elements of an array in a program, on any device."""
    return bytes(to_bytes(x if is_host_array(x) else host_array(x._host() if is_array(x) else x, get_aval(x))))


def _strings(w: Writer, items: Any) -> None:
    w.unsigned(len(items))
    for s in items:
        w.string(s)


def deserialize(blob: Any) -> dict[Any, Any]:
    """The fields of the `Exported` that `serialize` wrote; "vjp" has the fields of its derivative, or None."""
    if not isinstance(blob, (bytes, bytearray, memoryview)):
        raise TypeError(f"deserialize takes the bytes that Exported.serialize returned; got {type(blob).__name__}.")
    from . import language  # noqa: F401  registers all primitives; a process that only writes programs does without

    return _read_file(Reader(blob), 0)


def _read_file(r: Reader, order: int) -> dict[Any, Any]:
    if bytes(r.view(min(len(MAGIC), r.left()))) != MAGIC:
        r.fail("these are not the bytes of an exported program", 0)
    version = r.byte()
    if version != VERSION:
        r.fail(
            f"the exported program has format {version}, this weft reads {VERSION}: use the same release to write and"
            " to read it"
        )
    digest = r.bytes(32)
    if hashlib.sha256(r.data[r.at :]).digest() != digest:
        r.fail("the exported program is damaged or incomplete: its check sum does not match. Export it again")
    try:
        return _File(r, order).read()
    except DeserializationError:
        raise
    except Exception as e:  # a check of ours failed on these bytes before it could raise a proper error
        raise DeserializationError(f"not an exported program: {type(e).__name__}: {e}", r.at) from e


def _types(avals: Iterable[AbstractValue]) -> list[Any]:
    return [(a.shape, a.dtype) for a in avals]


def _stored(avals: Sequence[AbstractValue]) -> list[Any]:
    """The types in a program for the types of a signature: raw keys, and no type for float0."""
    return _types(physical(a) for a in avals if a.dtype != dtypes.float0)


class _File:
    """Reads one file."""

    def __init__(self, r: Reader, order: int):
        self.r, self.order = r, order
        if order > _ORDERS:
            r.fail(f"there are more than {_ORDERS} orders of derivatives")

    def read(self) -> dict[Any, Any]:
        r = self.r
        name, convention, flags = r.string(), r.unsigned(1 << 16), r.byte()
        if not CONVENTIONS[0] <= convention <= CONVENTIONS[1]:
            r.fail(f"the calling convention {convention} is outside {CONVENTIONS[0]} … {CONVENTIONS[1]}")
        if flags > _X64 | _SYMBOLIC | _VJP:
            r.fail(f"unknown flags {flags}")
        platforms, checks = self.strings(), self.strings()
        if not platforms:
            r.fail("there is no platform")
        self.scope = None
        if flags & _SYMBOLIC:
            try:
                self.scope = SymbolicScope([c[:4000] for c in self.strings()])
            except (ValueError, RecursionError) as e:
                r.fail(f"a constraint can't be read: {e}")
        in_tree, out_tree = read_tree(r), read_tree(r)
        in_avals, out_avals = [tuple([self.aval() for _ in range(r.count())]) for _ in range(2)]
        kept = tuple([r.unsigned(max(len(in_avals) - 1, 0)) for _ in range(r.count(len(in_avals)))])
        consts = [self.constant() for _ in range(r.count())]
        start = r.at
        program, x64, _ = read_program(r.view(), DEFAULT_LIMITS, self.scope)
        if x64 != bool(flags & _X64):
            r.fail("the program and its file disagree about 64-bit types", start)
        n = len(consts)
        want = [*[(tuple(c.shape), dtypes.host_dtype(c)) for c in consts], *_stored(in_avals)]
        if _types(program.in_avals) != want or _types(program.out_avals) != _stored(out_avals):
            r.fail("the program's types are not those that the file declares", start)
        if in_tree.num_leaves != len(in_avals) or out_tree.num_leaves != len(out_avals):
            r.fail("the structures of arguments or results have other numbers of leaves than there are types", start)
        if (
            in_tree.node is not tuple
            or len(in_tree.nodes) != 2
            or in_tree.nodes[0].node is not tuple
            or in_tree.nodes[1].node is not dict
        ):
            r.fail("the structure of arguments is not that of a call", start)
        if program.effects:
            r.fail("an exported program has no effects", start)
        vjp = None
        if flags & _VJP:
            vjp = _read_file(Reader(r.view()), self.order + 1)
        r.finish()
        closed = ClosedJaxpr(program.replace(constvars=program.invars[:n], invars=program.invars[n:]), consts)
        return dict(
            fun_name=name,
            in_tree=in_tree,
            in_avals=in_avals,
            out_tree=out_tree,
            out_avals=out_avals,
            platforms=tuple(platforms),
            disabled_safety_checks=tuple(checks),
            calling_convention_version=convention,
            module_kept_var_idx=kept,
            closed=closed,
            scope=self.scope,
            x64=x64,
            vjp=vjp,
        )

    def strings(self) -> list[str]:
        return [self.r.string() for _ in range(self.r.count())]

    def dtype(self) -> ElementType:
        start, name = self.r.at, self.r.string()
        if name == "float0":
            return dtypes.float0
        if name.startswith("key<") and name.endswith(">"):
            try:
                return key_dtype(name[4:-1])
            except (ValueError, TypeError, KeyError):
                self.r.fail(f"there is no kind {name[:40]!r} of random keys", start)
        if name not in dtypes._TABLE:
            self.r.fail(f"there is no dtype {name[:40]!r}", start)
        return dtypes.dtype(name)

    def aval(self) -> ShapedArray:
        r, start = self.r, self.r.at
        dt, weak = self.dtype(), r.byte()
        if weak > 1:
            r.fail("a type is either weak or not", start)
        shape = []
        for _ in range(r.count(DEFAULT_LIMITS.rank)):
            n = r.unsigned()
            if n & 1:
                if n != 1 or self.scope is None:
                    r.fail("a size is malformed", start)
                text = r.string()
                try:
                    shape.append(parse_dimension(text, self.scope))
                except (ValueError, RecursionError) as e:
                    r.fail(f"{text[:60]!r} is not a dimension: {e}", start)
            else:
                shape.append(n >> 1)
        if math.prod([n for n in shape if type(n) is int]) > DEFAULT_LIMITS.array_bytes or not countable(
            tuple(shape), dt
        ):
            r.fail(f"an array of shape {tuple(shape)} is too large", start)
        return shaped(tuple(shape), dt, bool(weak))

    def constant(self) -> HostArray:
        r, start = self.r, self.r.at
        dt = self.dtype()
        if dt == dtypes.float0 or dtypes.is_key(dt):
            r.fail("a constant has numbers", start)
        shape = tuple([r.unsigned() for _ in range(r.count(DEFAULT_LIMITS.rank))])
        data = r.view()
        if math.prod(shape) * dtypes.itemsize(dt) != len(data):
            r.fail(f"a constant of shape {shape} and dtype {dtypes.name(dt)} has {len(data)} bytes", start)
        if not countable(shape, dt):
            r.fail(f"a constant of shape {shape} is too large, though it has no elements", start)
        wrong = foreign(bytes(data), dt)
        if wrong is not None:
            r.fail(f"a constant of dtype {dtypes.name(dt)} has an element of the bits {wrong:#x}", start)
        return from_bytes(bytes(data), shape, dt)
