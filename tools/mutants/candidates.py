"""Faults that could stand in a source file: each is a small edit that a test ought to notice.

The operators are those of the literature (swapped operands, comparisons, off by one, dropped conditions and statements)
and those of this code's own mistakes: an override that overrides nothing, an invalidation left out, a wrong dtype or
axis. Messages, annotations, docstrings, assertions and what shows an object are left alone.
"""

from __future__ import annotations

import ast
import collections
from dataclasses import dataclass, replace
from typing import Iterable, Iterator

SWAPPED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.MatMult, ast.LShift, ast.RShift, ast.Pow)
ARITHMETIC = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.FloorDiv: "*",
    ast.Div: "*",
    ast.LShift: ">>",
    ast.RShift: "<<",
    ast.BitAnd: "|",
    ast.BitOr: "&",
}
COMPARISONS = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
DTYPES = {
    "i32": "u32",
    "u32": "i32",
    "f32": "f64",
    "f64": "f32",
    "i64": "i32",
    "u8": "i8",
    "i8": "u8",
    "u16": "i16",
    "i16": "u16",
    "bool": "u8",
    "float32": "float16",
    "int32": "uint32",
    "uint32": "int32",
    "float64": "float32",
    "int64": "int32",
    "uint8": "int8",
    "bfloat16": "float16",
    "float16": "bfloat16",
    "complex64": "complex128",
}
AXES = {"axis", "axes", "dim", "dimension", "dimensions", "num_consts", "num_carry", "in_axis", "out_axis"}
SILENT = {"__repr__", "__str__", "__format__", "_repr_html_", "_ipython_display_"}
BASES_WITHOUT_OVERRIDES = {"NamedTuple", "Enum", "Protocol", "Exception", "object", "Generic", "IntEnum"}


@dataclass(frozen=True)
class Mutant:
    """Bytes `start` to `end` of a file replaced. `mark` is where its reach is recorded: an expression's span, or a
    statement's start.
    """

    file: str
    line: int
    function: str
    operator: str
    start: int
    end: int
    original: str
    replacement: str
    mark: tuple[int, int]
    in_statement: bool
    nth: int = 1  # of those that read the same in one function

    @property
    def edit(self) -> str:
        """File, function, operator and what is written instead of what."""
        return f"{self.file}::{self.function} {self.operator}: {self.original!r} -> {self.replacement!r}"

    @property
    def key(self) -> str:
        """What names it as long as the code around it moves."""
        return self.edit if self.nth == 1 else f"{self.edit} #{self.nth}"

    def apply(self, data: bytes) -> bytes:
        return data[: self.start] + self.replacement.encode() + data[self.end :]


class _Source:
    """Byte offsets of nodes."""

    def __init__(self, text: str):
        self.data = text.encode()
        self.lines = [0]
        for line in self.data.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))

    def start(self, node) -> int:
        return self.lines[node.lineno - 1] + node.col_offset

    def end(self, node) -> int:
        return self.lines[node.end_lineno - 1] + node.end_col_offset

    def text(self, node) -> str:
        return self.data[self.start(node) : self.end(node)].decode()

    def indent(self, node) -> str | None:
        """The white space before a statement; None if it shares its line with another."""
        before = self.data[self.lines[node.lineno - 1] : self.start(node)]
        return before.decode() if not before.strip() else None


class Finder(ast.NodeVisitor):
    """Collects the mutants of one file."""

    def __init__(self, file: str, text: str):
        self.file, self.source = file, _Source(text)
        self.found: list[Mutant] = []
        self.functions: list[str] = []
        self.visit(ast.parse(text))

    # recording --------------------------------------------------------------------------------------------------------

    def expression(self, node: ast.expr, operator: str, replacement: str, whole: ast.expr | None = None) -> None:
        s, whole = self.source, whole or node
        self._add(node, operator, s.start(node), s.end(node), replacement, (s.start(whole), s.end(whole)), False)

    def statement(
        self, node: ast.stmt, operator: str, start: int, end: int, replacement: str, mark: int | None = None
    ) -> None:
        mark = self.source.start(node) if mark is None else mark
        self._add(node, operator, start, end, replacement, (mark, mark), True)

    def _add(
        self, node, operator: str, start: int, end: int, replacement: str, mark: tuple[int, int], in_statement: bool
    ) -> None:
        if self.functions:  # what runs at import is the same for all tests
            original = self.source.data[start:end].decode()
            self.found.append(
                Mutant(
                    self.file,
                    node.lineno,
                    ".".join(self.functions),
                    operator,
                    start,
                    end,
                    original,
                    replacement,
                    mark,
                    in_statement,
                )
            )

    # what is left alone -----------------------------------------------------------------------------------------------

    def visit_Raise(self, node):
        pass

    def visit_Assert(self, node):
        pass

    def visit_JoinedStr(self, node):
        pass

    def visit_Import(self, node):
        pass

    def visit_ImportFrom(self, node):
        pass

    def visit_match_case(self, node: ast.match_case) -> None:
        for s in node.body:
            self.visit(s)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    # definitions ------------------------------------------------------------------------------------------------------

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        bases = {
            b.attr if isinstance(b, ast.Attribute) else getattr(b, "id", "") for b in node.bases
        } - BASES_WITHOUT_OVERRIDES
        self.functions.append(node.name)
        for item in node.body:
            marked = isinstance(item, ast.FunctionDef) and any(
                getattr(d, "id", "") == "override" for d in item.decorator_list
            )
            if isinstance(item, ast.FunctionDef) and (marked or bases and not item.name.startswith("__")):
                at = self.source.lines[item.lineno - 1] + item.col_offset + len("def ")
                first = item.body[1] if len(item.body) > 1 and ast.get_docstring(item) is not None else item.body[0]
                self.statement(
                    item,
                    "override renamed",
                    at,
                    at + len(item.name.encode()),
                    item.name + "_renamed",
                    self.source.start(first),
                )
            self.visit(item)
        self.functions.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name in SILENT:
            return
        self.functions.append(node.name)
        for default in [*node.args.defaults, *[d for d in node.args.kw_defaults if d is not None]]:
            if isinstance(default, ast.Constant) and type(default.value) is bool and len(self.functions) > 1:
                self.visit(default)
        body = node.body[1:] if ast.get_docstring(node) is not None else node.body
        if len(body) > 2 and not any(isinstance(s, (ast.Return, ast.FunctionDef, ast.Raise)) for s in body[-1:]):
            self._early(body[-1], "return")
        for s in body:
            self.visit(s)
        self.functions.pop()

    visit_AsyncFunctionDef = visit_FunctionDef  # type: ignore[assignment]

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.functions.append("<lambda>")
        self.visit(node.body)
        self.functions.pop()

    # statements -------------------------------------------------------------------------------------------------------

    def _early(self, node: ast.stmt, word: str) -> None:
        indent = self.source.indent(node)
        if indent is not None:
            at = self.source.start(node)
            self.statement(node, "early return", at, at, f"{word}\n{indent}")

    def _left_out(self, node: ast.stmt) -> None:
        self.statement(node, "statement left out", self.source.start(node), self.source.end(node), "pass")

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            name = getattr(node.value.func, "attr", getattr(node.value.func, "id", ""))
            if name in ("warning", "info", "debug", "exception", "print"):
                return
            self._left_out(node)
        self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        if all(isinstance(t, (ast.Attribute, ast.Subscript)) for t in node.targets):
            self._left_out(node)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._left_out(node)
        self.visit(node.value)

    def visit_Delete(self, node: ast.Delete) -> None:
        self._left_out(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_For(self, node: ast.For) -> None:
        if not isinstance(node.body[-1], (ast.Return, ast.Break, ast.Continue, ast.Raise)):
            indent, at = self.source.indent(node.body[-1]), self.source.end(node.body[-1])
            if indent is not None:
                self.statement(node, "early return", at, at, f"\n{indent}break", self.source.start(node.body[0]))
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if getattr(node.test, "id", "") == "TYPE_CHECKING":
            return
        if not all(isinstance(s, ast.Raise) for s in node.body):
            self._condition(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        if not isinstance(node.test, ast.Constant):
            self.expression(node.test, "condition dropped", "False")
        self.generic_visit(node)

    # expressions ------------------------------------------------------------------------------------------------------

    def _condition(self, test: ast.expr) -> None:
        self.expression(test, "condition dropped", "True")
        self.expression(test, "condition dropped", "False")

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._condition(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self.expression(test, "condition dropped", "True")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for dropped in node.values:
            kept = [f"({self.source.text(v)})" for v in node.values if v is not dropped]
            self.expression(
                node, "condition dropped", "(" + (" and " if isinstance(node.op, ast.And) else " or ").join(kept) + ")"
            )
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.USub):
            self.expression(node, "sign turned", f"({self.source.text(node.operand)})")
        elif isinstance(node.op, ast.Not):
            self.expression(node, "condition dropped", f"({self.source.text(node.operand)})")
        if not isinstance(node.operand, ast.Constant):
            self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        left, right, kind = self.source.text(node.left), self.source.text(node.right), type(node.op)
        if isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
            return  # a text
        between = self.source.data[self.source.end(node.left) : self.source.start(node.right)].decode()
        if isinstance(node.op, SWAPPED):
            self.expression(node, "operands swapped", f"(({right}) {_symbol(node.op)} ({left}))")
        if kind in ARITHMETIC and not ({"(", ")"} & set(between)):
            self.expression(node, "operator changed", f"(({left}) {ARITHMETIC[kind]} ({right}))")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        if len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
            left, right = self.source.text(node.left), self.source.text(node.comparators[0])
            self.expression(node, "comparison changed", f"(({left}) {COMPARISONS[type(node.ops[0])]} ({right}))")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name.endswith("Error") or name in ("at_user_line", "unsupported", "getattr", "isinstance", "hasattr"):
            return
        first = node.args[:2]
        if (
            len(first) == 2
            and not any(isinstance(a, ast.Starred) for a in first)
            and self.source.text(first[0]) != self.source.text(first[1])
        ):
            start, end = self.source.start(first[0]), self.source.end(first[1])
            middle = self.source.data[self.source.end(first[0]) : self.source.start(first[1])].decode()
            swapped = self.source.text(first[1]) + middle + self.source.text(first[0])
            self._add(
                node, "operands swapped", start, end, swapped, (self.source.start(node), self.source.end(node)), False
            )
        for keyword in node.keywords:
            if keyword.arg in AXES and not isinstance(keyword.value, (ast.Tuple, ast.List)):
                self.expression(keyword.value, "wrong axis", f"(({self.source.text(keyword.value)}) + 1)")
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.slice, ast.Constant) and type(node.slice.value) is int:
            self.expression(node.slice, "off by one", str(node.slice.value + 1), node)
            return self.visit(node.value)
        self.generic_visit(node)

    def visit_Slice(self, node: ast.Slice) -> None:
        for bound in (node.lower, node.upper):
            if bound is not None:
                self.expression(bound, "off by one", f"(({self.source.text(bound)}) + 1)")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if type(node.value) is bool:
            self.expression(node, "condition dropped", str(not node.value))
        elif type(node.value) is int:
            self.expression(node, "off by one", str(node.value + 1))
        elif type(node.value) is str and node.value in DTYPES:
            self.expression(node, "wrong dtype", repr(DTYPES[node.value]))

    def visit_Tuple(self, node: ast.Tuple) -> None:
        if not isinstance(node.ctx, ast.Store):
            self.generic_visit(node)


def told_apart(mutants: Iterable[Mutant]) -> Iterator[Mutant]:
    """The same mutants; those that read the same are counted through, so that each has a key of its own."""
    seen: collections.Counter[str] = collections.Counter()
    for m in mutants:
        seen[m.edit] += 1
        yield replace(m, nth=seen[m.edit])


def _symbol(op: ast.operator) -> str:
    return {
        ast.Sub: "-",
        ast.Div: "/",
        ast.FloorDiv: "//",
        ast.Mod: "%",
        ast.MatMult: "@",
        ast.LShift: "<<",
        ast.RShift: ">>",
        ast.Pow: "**",
    }[type(op)]


def parses(m: Mutant, data: bytes) -> bool:
    try:
        compile(m.apply(data), m.file, "exec")
    except SyntaxError:
        return False
    return True
