"""The permitted values of each attribute of the loop IR.

Types are those of the declarations in ir.py. RANGES has the permitted ints and WORDS the permitted strings. If an
attribute has no entry there, or a declaration can't be interpreted here, importing this module fails, so no node and no
attribute goes unchecked. `check_attributes` is the first half of the verifier: the second half relies on every
attribute.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Collection
from types import GenericAlias, NoneType, UnionType
from typing import Any, NoReturn, Union, get_args, get_origin, get_type_hints

from weft_wasm.ir import nodes
from weft_wasm.ir.checks import BOOL, NAME, NONE, Check, brief, either, ints, is_name, pairs, several, words
from weft_wasm.ir.nodes import Buffer, Expr, Kernel, Load, Program, Stmt
from weft_wasm.ir.traversal import operands

VECTOR_COUNTS = (0, 1, 2, 4, 8)
MOST_NESTING = 128  # of statements in each other
MOST_DEPTH = 200  # of operations in each other
MOST_STATEMENTS = 1 << 20  # of a program, those that stand in several places counted in each
INT32 = range(-(1 << 31), 1 << 31)
NATURAL = range(1 << 31)
POSITIVE = range(1, 1 << 31)

# The permitted values of an int; for a dict of ints, those of its keys and of its values.
RANGES: dict[str, Collection[int]] = {
    "Buffer.shape": range(1 << 63),
    "Buffer.size": NATURAL,
    "Buffer.nbytes": range(8 << 31),
    "For.extent": INT32,
    "For.vector": VECTOR_COUNTS,
    "For.unroll": POSITIVE,
    "For.tasks": NATURAL,
    "Kernel.depth": range(1, MOST_NESTING + 1),
    "Copy.count": NATURAL,
    "Copy.dst_index": NATURAL,
    "Copy.src_index": NATURAL,
    "Fail.code": POSITIVE,
    "HostCall.number": NATURAL,
    "Program.donated": NATURAL,
    "Program.errors": POSITIVE,
}
# The element types that artifacts name, and the dtype in which a buffer holds them: formats that the loop IR doesn't
# have as bytes, complex numbers as pairs.
LABELS = {
    **{dtype: dtype for dtype in nodes.ITEMSIZE},
    "c64": "f32",
    "c128": "f64",
    **dict.fromkeys(
        (
            "i2",
            "u2",
            "i4",
            "u4",
            "f4e2m1fn",
            "f8e3m4",
            "f8e4m3",
            "f8e4m3fn",
            "f8e4m3b11fnuz",
            "f8e4m3fnuz",
            "f8e5m2",
            "f8e5m2fnuz",
            "f8e8m0fnu",
        ),
        "u8",
    ),
}
# The permitted values of a str; None: it is a name.
WORDS: dict[str, Collection[str] | None] = {
    **{
        f"{kind}.dtype": nodes.ITEMSIZE
        for kind in (
            "Buffer",
            "Const",
            "Var",
            "Local",
            "Load",
            "Unary",
            "Binary",
            "Select",
            "Convert",
            "Bitcast",
            "MulAdd",
            "Call",
        )
    },
    **dict.fromkeys(("Buffer.name", "Var.name", "Local.name", "Kernel.name", "Instance.name", "Program.name"), None),
    "Buffer.role": nodes.ROLES,
    "Buffer.label": LABELS,
    "Unary.op": nodes.UNARY_OPS,
    "Binary.op": nodes.BINARY_OPS,
    "Compare.op": nodes.COMPARE_OPS,
    "Call.fn": nodes.MATH_UNARY | nodes.MATH_LARGE | nodes.MATH_BINARY,
    "For.kind": nodes.LOOP_KINDS,
}


class VerifyError(ValueError):
    """A loop-IR program breaks a rule of docs/loop-ir.md. The message names the kernel, the loops around, the statement
    and the rule; the pass that built the statement is at fault.
    """


def attributes(kind: type) -> dict[str, Any]:
    """The attributes of a kind of node, and their declared types: fields of a dataclass; else slots, declared in the
    class or as arguments.
    """
    own = get_type_hints(kind)
    if dataclasses.is_dataclass(kind):
        return {field.name: own[field.name] for field in dataclasses.fields(kind)}
    given = {**get_type_hints(vars(kind)["__init__"]), **own}
    several = {p.name for p in inspect.signature(kind).parameters.values() if p.kind is p.VAR_POSITIONAL}
    return {
        name: GenericAlias(tuple, (given.get(name), ...)) if name in several else given.get(name)
        for name in vars(kind)["__slots__"]
    }


def _kinds(kinds: tuple[type, ...]) -> Check:
    names = (
        "an expression"
        if set(kinds) == set(get_args(Expr))
        else "a statement"
        if set(kinds) == set(get_args(Stmt))
        else f"a {kinds[0].__name__}"
    )
    known = frozenset(kinds)
    return Check(lambda x: type(x) in known, names)


_NODES = {*get_args(Expr), *get_args(Stmt), Buffer}
_PLAIN: dict[Any, Check] = {bool: BOOL, bytes: Check(lambda x: type(x) is bytes, "bytes"), NoneType: NONE}
_CODE = ints(RANGES["Program.errors"])
# Attributes whose type alone does not determine the permitted values.
_OPEN = {
    "Const.value": Check(lambda x: isinstance(x, (bool, int, float)), "a bool, an int or a float"),
    "Program.errors": Check(
        lambda x: type(x) is dict and all(map(_CODE.holds, x)) and all(isinstance(text, str) for text in x.values()),
        "a dict from codes to texts",
    ),
    "Program.calls": Check(
        lambda x: type(x) is list and all(hasattr(c, "ins") and hasattr(c, "outs") for c in x),
        "a list, each with ins and outs",
    ),
}


def check_of(name: str, declared: Any) -> Check:
    """The check of an attribute, by its name (`For.unroll`) and its declared type. Raises TypeError if there is
    none.
    """
    if name in _OPEN:
        return _OPEN[name]
    origin, inside = get_origin(declared), get_args(declared)
    if origin in (Union, UnionType):
        nodes = tuple(t for t in inside if t in _NODES)
        return either([*([_kinds(nodes)] if nodes else []), *(check_of(name, t) for t in inside if t not in _NODES)])
    if origin in (list, tuple):
        return several(origin, check_of(name, inside[0]), 64 if name == "Buffer.shape" else None)
    if origin is dict:
        return pairs(check_of(name, inside[0]), check_of(name, inside[1]))
    if declared in _NODES:
        return _kinds((declared,))
    if declared is int and name in RANGES:
        return ints(RANGES[name])
    if declared is str and name in WORDS:
        return NAME if (values := WORDS[name]) is None else words(values)
    if declared in _PLAIN:
        return _PLAIN[declared]
    raise TypeError(f"there is no rule for the values of {name}, declared {declared}")


CHECKS: dict[type, list[tuple[str, Check]]] = {
    kind: [(name, check_of(f"{kind.__name__}.{name}", declared)) for name, declared in attributes(kind).items()]
    for kind in (*_NODES, Program)
}
_EXPRESSIONS = frozenset(get_args(Expr))
_STATEMENTS = frozenset(get_args(Stmt))
_UNCHECKED = 0  # depth of a node whose operands are being looked at


def check_attributes(program: Program) -> None:
    """Raises VerifyError for the first attribute with a value that is not permitted, and for nodes that contain
    themselves or are nested too deeply.
    """
    _Walk(program).run()


class _Walk:
    def __init__(self, program: Program):
        self.program = program
        self.path: list[str] = []
        self.depths: dict[Expr, int] = {}
        self.buffers: set[Buffer] = set()
        self.models: set[Kernel] = set()
        self.statements = 0

    def fail(self, message: str) -> NoReturn:
        name = getattr(self.program, "name", None)
        known = name if isinstance(name, str) and is_name(name) else "(a program)"
        raise VerifyError(f"{', '.join([known, *(self.path or ['program'])])}: {message}")

    def attributes(self, x: object, at: Callable[[], str] | str = "") -> None:
        """Checks the attributes of a node; `at` says where it is."""
        for name, check in CHECKS[type(x)]:
            try:
                value = getattr(x, name)
            except AttributeError:
                self.fail(f"{_place(at)}{type(x).__name__} has no {name}")
            if not check.holds(value):
                self.fail(f"{_place(at)}{name} of {_named(x)} must be {check.wanted}; got {brief(value)}")

    def run(self) -> None:
        p = self.program
        if type(p) is not Program:
            raise VerifyError(f"a Program is verified; got {brief(p)}")
        self.attributes(p)
        for group in ("inputs", "outputs", "temps", "constants"):
            for k, b in enumerate(getattr(p, group)):
                self.buffer(b, f"{group}[{k}]: ")
        self.block("body", p.body)

    def buffer(self, b: Buffer, at: Callable[[], str] | str = "") -> None:
        if b not in self.buffers:
            self.attributes(b, at)
            if b.size != math.prod(b.shape) or b.nbytes != b.size * nodes.ITEMSIZE[b.dtype]:
                self.fail(f"{_place(at)}buffer {b!r} is said to have {b.size} elements in {b.nbytes} bytes")
            self.buffers.add(b)

    def block(self, name: str, body: list[Stmt]) -> None:
        if len(self.path) >= MOST_NESTING:
            self.path[3:] = ["…"]
            self.fail(f"statements nest more than {MOST_NESTING} deep")
        for k, s in enumerate(body):
            self.statements += 1
            if self.statements > MOST_STATEMENTS:
                self.fail(f"the program has more than {MOST_STATEMENTS} statements")
            self.path.append(f"{name}[{k}]")
            self.statement(s)
            self.path.pop()

    def statement(self, s: Stmt) -> None:
        self.attributes(s)
        for name, _ in CHECKS[type(s)]:
            value = getattr(s, name)
            if type(value) is Buffer:
                self.buffer(value, f"{name}: ")
            elif type(value) in _EXPRESSIONS:
                self.expression(value, name)
            elif type(value) is list and value:
                self.several(s, name, value)
            elif type(value) is Kernel:
                self.model(value)
            elif type(value) is dict:
                for b in (*value, *value.values()):
                    self.buffer(b, f"{name}: ")

    def model(self, kernel: Kernel) -> None:
        """The kernel of an instance; it is looked at once."""
        if kernel not in self.models:
            self.models.add(kernel)
            self.block("kernel", [kernel])

    def several(self, s: Stmt, name: str, values: list[Any]) -> None:
        """A list of a statement: buffers, statements, or blocks of them."""
        if type(values[0]) is Buffer:
            for k, b in enumerate(values):
                self.buffer(b, f"{name}[{k}]: ")
            return
        plain = self.path[-1]
        self.path[-1] = f"{plain} ({_named(s)})"
        if type(values[0]) in _STATEMENTS:
            self.block(name, values)
        else:
            for k, block in enumerate(values):
                self.block(f"{name}[{k}]", block)
        self.path[-1] = plain

    def expression(self, root: Expr, at: str) -> None:
        """Every node that was not seen before; nodes that contain themselves are found by those on the way to them."""
        depths = self.depths
        if root in depths:
            return
        pending: list[tuple[Expr, bool]] = [(root, False)]
        above: dict[Expr, tuple[Expr, int]] = {}  # of which operand a node was found first, for the path
        place = lambda e: lambda: f"{at}{_path_in(e, root, above)}: "  # noqa: E731
        while pending:
            e, done = pending.pop()
            if done:
                depths[e] = deep = 1 + max((depths[x] for x in operands(e)), default=0)
                if deep > MOST_DEPTH:
                    self.fail(f"{at}: operations nest more than {MOST_DEPTH} deep")
                continue
            if e in depths:
                continue
            self.attributes(e, place(e))
            if type(e) is Load:
                self.buffer(e.buffer, place(e))
            inner = operands(e)
            if not inner:
                depths[e] = 1
                continue
            depths[e] = _UNCHECKED
            pending.append((e, True))
            for k, x in enumerate(inner):
                known = depths.get(x)
                if known is None:
                    above.setdefault(x, (e, k))
                    pending.append((x, False))
                elif known == _UNCHECKED:
                    self.fail(f"{_place(place(e))}a {type(e).__name__} contains itself")


def _place(at: Callable[[], str] | str) -> str:
    return at if isinstance(at, str) else at()


def _named(x: object) -> str:
    """A node in an error message."""
    kind = type(x).__name__
    name = getattr(x, "name", None)
    if isinstance(x, nodes.For):
        name = getattr(x.var, "name", None)
    return f"{kind} {name}" if is_name(name) and name else f"a {kind}"


def _path_in(e: Expr, root: Expr, above: dict[Expr, tuple[Expr, int]]) -> str:
    """Where a node is in an expression, by the names of attributes."""
    words: list[str] = []
    while e is not root:
        e, k = above[e]
        names = [name for name, declared in CHECKS[type(e)] if declared.wanted == "an expression" or name == "args"]
        words.append(f"args[{k}]" if names == ["args"] else names[k])
    return "".join(f".{word}" for word in reversed(words))


__all__ = [
    "CHECKS",
    "LABELS",
    "MOST_DEPTH",
    "MOST_NESTING",
    "MOST_STATEMENTS",
    "VECTOR_COUNTS",
    "VerifyError",
    "attributes",
    "check_attributes",
    "check_of",
]
