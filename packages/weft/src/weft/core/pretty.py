"""Printing jaxprs in JAX's format."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Iterable, Sequence

from ..base import dtypes
from . import jaxpr as _jaxpr
from .jaxpr import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var, subjaxprs

if TYPE_CHECKING:
    from .jaxpr import Atom
    from .types import Value

WIDTH = 80
_MARK = 0xF0000  # with marks, the character of this number + k begins the text of equation k
_marks = re.compile("[\U000f0000-\U000ffffd]")


def var_name(index: int) -> str:
    """a … z, ba, bb, …: numbers in base 26 with letters for digits."""
    name = ""
    while True:
        index, digit = divmod(index, 26)
        name = chr(97 + digit) + name
        if not index:
            return name


class _Names:
    """Names by order of first appearance, over a jaxpr and all that it contains."""

    def __init__(self, unused: frozenset[Any] = frozenset()):
        self.of: dict[Var, str] = {}
        self.unused = unused  # variables that print as _: results of the outermost jaxpr that are not used, as in JAX
        self.shared: dict[Jaxpr, str] = {}
        self.marked: list[JaxprEqn] | None = None  # equations whose text begins with a mark, in the order of marks

    def mark(self, eqn: JaxprEqn) -> str:
        """What the text of an equation begins with."""
        if self.marked is None or len(self.marked) > 0xFFFD:
            return ""
        self.marked.append(eqn)
        return chr(_MARK + len(self.marked) - 1)

    def width(self, text: str) -> int:
        """The number of characters that a text has without marks."""
        return len(text) if self.marked is None else len(_marks.sub("", text))

    def __call__(self, atom: Atom) -> str:
        if type(atom) is Literal:
            return f"{atom.val}:{atom.aval.str_short()}"
        if atom in self.unused:
            return "_"
        if atom not in self.of:
            self.of[atom] = var_name(len(set(self.of.values())))
        return self.of[atom]


def _binder(names: _Names, var: Var) -> str:
    return f"{names(var)}:{var.aval.str_short()}"


def _filled(texts: Iterable[str], column: int, indent: int) -> str:
    """Texts side by side; the first begins at `column`. A line that becomes too long continues on the next one,
    indented by `indent`.
    """
    out = ""
    for text in texts:
        if out and column >= WIDTH:
            out, column = f"{out}\n{' ' * indent}", indent
        elif out:
            out, column = out + " ", column + 1
        out, column = out + text, column + len(text)
    return out


def _value(names: _Names, value: Value, indent: int, column: int) -> str:
    if isinstance(value, ClosedJaxpr):
        value = value.jaxpr
    if isinstance(value, Jaxpr):
        return names.shared[value] if value in names.shared else _block(value, names, indent, column)
    if hasattr(value, "_fields") and any(isinstance(v, (Jaxpr, ClosedJaxpr)) for v in value):
        return f"{type(value).__name__}({', '.join(f'{k}={v}' for k, v in zip(value._fields, value))})"
    if isinstance(value, tuple) and value and all(isinstance(v, (Jaxpr, ClosedJaxpr)) for v in value):
        pad = " " * (indent + 2)
        flat = f"({' '.join(_value(names, v, indent + 2, 0) for v in value)})"
        if "\n" not in flat and names.width(flat) + column <= WIDTH:
            return flat
        return "(\n" + "".join(f"{pad}{_value(names, v, indent + 2, indent + 2)}\n" for v in value) + " " * indent + ")"
    if isinstance(value, dtypes.ExtendedDType):
        return value.name.removeprefix("key<").removesuffix(">")
    if hasattr(value, "itemsize") and hasattr(value, "kind") and hasattr(value, "name"):
        return dtypes.name(value)
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)
    return str(value)


def _shown_params(eqn: JaxprEqn) -> Sequence[tuple[str, object]]:
    prim, params = eqn.primitive, eqn.params
    pairs = sorted(params.items()) if prim.shown is None else prim.shown(params)
    return [(k, v) for k, v in pairs if not (k in prim.hidden and v in (None, False, ()))]


def _callee(eqn: JaxprEqn) -> str | None:
    """The name of the function that an equation calls, where it shows that it does."""
    carries = eqn.primitive.carries
    return None if carries is None or carries.callee is None else eqn.params[carries.callee]


def _eqn(eqn: JaxprEqn, names: _Names, indent: int) -> str:
    if eqn.primitive.show is not None:
        return eqn.primitive.show(eqn, names, lambda v: _binder(names, v))
    outs = _filled([_binder(names, v) for v in eqn.outvars], indent, indent + 2)
    if _callee(eqn) is not None:  # an inner jaxpr that is printed here speaks of the outer variables
        (inner,) = subjaxprs(eqn.params)
        if inner not in names.shared:
            for mine, theirs in [*zip(inner.invars, eqn.invars), *zip(inner.outvars, eqn.outvars)]:
                if type(mine) is Var and type(theirs) is Var and mine not in names.of and theirs in names.of:
                    names.of[mine] = names.of[theirs]
    head = f"{outs} = {eqn.primitive.name}" if eqn.outvars else eqn.primitive.name
    shown = [(k, _value(names, v, indent + 2, indent + 3 + len(k))) for k, v in _shown_params(eqn)]
    args = [names(a) for a in eqn.invars]
    after = lambda text, start: (
        f"{text} {_filled(args, start + names.width(text.rpartition(chr(10))[2]) + 1, indent + 2)}"
    )
    if not shown:
        return after(head, 0 if "\n" in head else indent)
    flat = f"{head}[{' '.join(f'{k}={v}' for k, v in shown)}]"
    if "\n" not in flat and names.width(flat) + indent <= WIDTH:
        return after(flat, 0 if "\n" in flat else indent)
    pad = " " * (indent + 2)
    return after(f"{head}[\n" + "".join(f"{pad}{k}={v}\n" for k, v in shown) + " " * indent + "]", 0)


def _block(jaxpr: Jaxpr, names: _Names, indent: int, column: int) -> str:
    """A jaxpr whose further lines are indented by `indent` and whose first begins at `column`."""
    consts = _filled([_binder(names, v) for v in jaxpr.constvars], column + len("{ lambda "), indent + 4)
    head = f"{{ lambda {consts}; "
    start = len(head.rpartition("\n")[2]) + (0 if "\n" in head else column)
    head += f"{_filled([_binder(names, v) for v in jaxpr.invars], start, indent + 4)}. let"
    inner = indent + 4
    eqns = [names.mark(e) + _eqn(e, names, inner) for e in jaxpr.eqns]
    outs = ", ".join(names(v) for v in jaxpr.outvars)
    tail = f"in ({outs}{',' if len(jaxpr.outvars) == 1 else ''}) }}"
    flat = f"{head} {'; '.join(eqns)} {tail}"
    if "\n" not in flat and names.width(flat) + column <= WIDTH:
        return flat
    pad = " " * inner
    return head + "\n" + "".join(f"{pad}{e}\n" for e in eqns) + " " * (indent + 2) + tail


def _count_calls(jaxpr: Jaxpr, counts: Counter[Any], order: list[Any]) -> None:
    for eqn in jaxpr.eqns:
        for sub in subjaxprs(eqn.params):
            counts[sub] += 1
            if counts[sub] == 1:
                _count_calls(sub, counts, order)
                order.append((sub, _callee(eqn) or "jaxpr"))


@_jaxpr.show_jaxpr.define
def show_jaxpr(jaxpr: Jaxpr) -> str:
    """The text of a jaxpr; functions that are long or called more than once are printed once, in front."""
    return _show(jaxpr, _outermost(jaxpr))


def jaxpr_lines(jaxpr: Jaxpr) -> list[tuple[str, JaxprEqn | None]]:
    """The lines of a jaxpr's text, each with the equation that it belongs to: the first of those that begin there."""
    names = _outermost(jaxpr)
    names.marked = []
    found: list[tuple[str, JaxprEqn | None]] = []
    begun: dict[int, JaxprEqn] = {}  # by indentation
    for line in _show(jaxpr, names).split("\n"):
        text = _marks.sub("", line)
        indent = len(text) - len(text.lstrip())
        eqn: JaxprEqn | None = None
        if mark := _marks.search(line):
            eqn = names.marked[ord(mark[0]) - _MARK]
            if line[indent] == mark[0]:
                begun[indent] = eqn
        elif not text.startswith(("in (", "let ", "{ lambda "), indent):  # a parameter, or an end
            eqn = begun.get(max((k for k in begun if k <= indent), default=-1))
        found.append((text, eqn))
    return found


def _outermost(jaxpr: Jaxpr) -> _Names:
    return _Names(frozenset(v for eqn in jaxpr.eqns for v in eqn.outvars if type(v) is DropVar))


def _show(jaxpr: Jaxpr, names: _Names) -> str:
    counts: Counter[Any] = Counter()
    order: list[Any] = []
    _count_calls(jaxpr, counts, order)
    text, used = "", set()
    for sub, name in order:
        if counts[sub] > 1 or len(sub.eqns) > 10:  # long ones are easier to tell apart on separate lines
            unique, i = name, 1
            while unique in used:
                unique, i = f"{name}{i}", i + 1
            used.add(unique)
            body = _block(sub, names, 0, 0)
            names.shared[sub] = unique
            text += f"let {unique} = {body} in\n"
    return text + _block(jaxpr, names, 0, 0)


@_jaxpr.show_eqn.define
def show_eqn(eqn: JaxprEqn) -> str:
    return _eqn(eqn, _Names(frozenset(v for v in eqn.outvars if type(v) is DropVar)), 0)
