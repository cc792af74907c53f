"""Finds tests that can't fail: assertions that are constant, tests without one, failures that are swallowed, loops over
nothing.

`findings(path)` parses a file of tests, and the files that it imports helpers from; nothing is imported or run.
"""

from __future__ import annotations

import ast
import functools
import pathlib
from collections.abc import Iterator

TESTS = pathlib.Path(__file__).resolve().parents[1]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# true as long as nobody calls them
METHODS = {"all", "any", "startswith", "endswith", "issubset", "is_ready", "is_deleted", "exists", "is_file", "has_vjp"}
BROAD = {"Exception", "BaseException", "AssertionError", None}


class Module:
    """A parsed file: its functions by name, and where the names that it imports come from."""

    def __init__(self, path: pathlib.Path):
        self.path, self.tree = path, ast.parse(path.read_text(), str(path))
        self.functions: dict[str, list[ast.AST]] = {}
        # name -> (module, name there; None for the module itself)
        self.imports: dict[str, tuple[str, str | None]] = {}
        self.values: dict[str, ast.expr] = {}  # what is bound to a name at the top
        for node in ast.walk(self.tree):
            if isinstance(node, FUNCTIONS):
                self.functions.setdefault(node.name, []).append(node)
            elif isinstance(node, ast.ClassDef):  # called, it runs its methods
                self.functions.setdefault(node.name, []).append(node)
            elif isinstance(node, ast.ImportFrom):
                self.imports.update(
                    {a.asname or a.name: (("." * node.level) + (node.module or ""), a.name) for a in node.names}
                )
            elif isinstance(node, ast.Import):
                self.imports.update({a.asname or a.name.split(".")[0]: (a.name, None) for a in node.names})
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self.functions.setdefault(target.id, []).append(node.value)
        self.values = bound(self.tree.body)

    def file_of(self, name: str) -> pathlib.Path | None:
        """The file of a module of tests, found where pytest puts it on the path."""
        level = len(name) - len(name.lstrip("."))
        parts = name.lstrip(".").split(".")
        here = self.path.parent
        for base in (
            ([here] if level <= 1 else [here.parent])
            if level
            else [here, TESTS, *sorted(p for p in TESTS.iterdir() if p.is_dir())]
        ):
            for found in (base.joinpath(*parts).with_suffix(".py"), base.joinpath(*parts) / "__init__.py"):
                if found.is_file():
                    return found
        return None


def bound(body: list[ast.stmt]) -> dict[str, ast.expr]:
    """What statements bind to names."""
    return {t.id: s.value for s in body if isinstance(s, ast.Assign) for t in s.targets if isinstance(t, ast.Name)}


@functools.cache
def module(path: pathlib.Path) -> Module:
    return Module(path)


def name_of(node: ast.AST) -> str:
    """`a.b.c` of a chain of attributes."""
    if isinstance(node, ast.Attribute):
        return f"{name_of(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


# assertions -----------------------------------------------------------------------------------------------------------


def always(test: ast.expr) -> bool:
    """Whether an expression is true whatever happens."""
    match test:
        case ast.Constant():
            return bool(test.value)
        case ast.Tuple() | ast.List() | ast.Set():
            return any(not isinstance(e, ast.Starred) for e in test.elts)
        case ast.Dict():
            return bool(test.keys)
        case ast.JoinedStr():
            return any(isinstance(v, ast.Constant) and v.value for v in test.values)
        case ast.Lambda() | ast.GeneratorExp():
            return True
        case ast.BoolOp(op=ast.Or()):
            return any(map(always, test.values))
        case ast.BoolOp(op=ast.And()):
            return all(map(always, test.values))
        case ast.UnaryOp(op=ast.Not()):
            return never(test.operand)
        case ast.IfExp():
            return always(test.body) and always(test.orelse)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            if same(left, right):
                return isinstance(op, (ast.Eq, ast.Is, ast.LtE, ast.GtE))
            if isinstance(left, ast.Call) and name_of(left.func) == "len" and isinstance(right, ast.Constant):
                return isinstance(op, ast.GtE) and right.value == 0 or isinstance(op, ast.Gt) and right.value == -1
            return all(isinstance(e, ast.Constant) for e in (left, right)) and not isinstance(
                op, (ast.NotEq, ast.IsNot)
            )
    return False


def never(test: ast.expr) -> bool:
    """Whether an expression is false whatever happens."""
    match test:
        case ast.Constant():
            return not test.value
        case ast.Tuple() | ast.List() | ast.Set():
            return not test.elts
        case ast.BoolOp(op=ast.Or()):
            return all(map(never, test.values))
        case ast.BoolOp(op=ast.And()):
            return any(map(never, test.values))
        case ast.UnaryOp(op=ast.Not()):
            return always(test.operand)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if same(left, right):
            return isinstance(op, (ast.NotEq, ast.IsNot, ast.Lt, ast.Gt))
    return False


def same(a: ast.expr, b: ast.expr) -> bool:
    """Whether two expressions are one value; of calls each may give another."""
    return ast.dump(a) == ast.dump(b) and not any(
        isinstance(n, (ast.Call, ast.Await, ast.NamedExpr)) for n in ast.walk(a)
    )


def uncalled(home: Module, test: ast.expr) -> bool:
    """Whether an expression is a function that somebody forgot to call."""
    if isinstance(test, ast.BoolOp):
        return any(uncalled(home, v) for v in test.values)
    if isinstance(test, ast.UnaryOp):
        return uncalled(home, test.operand)
    return (
        isinstance(test, ast.Attribute)
        and test.attr in METHODS
        or isinstance(test, ast.Name)
        and test.id in bound_functions(home)
    )


def bound_functions(home: Module) -> set[str]:
    return {n.name for n in home.tree.body if isinstance(n, FUNCTIONS)}


def asserts_itself(node: ast.AST) -> bool:
    """Whether a statement or expression is an assertion: `assert`, `pytest.raises`, `np.testing.assert_…`, a program
    that must succeed.
    """
    if isinstance(node, ast.Assert):
        return True
    if isinstance(node, ast.Raise):
        return (
            node.exc is not None
            and name_of(node.exc.func if isinstance(node.exc, ast.Call) else node.exc) == "AssertionError"
        )
    if not isinstance(node, ast.Call):
        return False
    last = name_of(node.func).rpartition(".")[2] or (node.func.attr if isinstance(node.func, ast.Attribute) else "")
    return (
        last in ("raises", "warns", "fail", "check_returncode", "check_call", "check_output", "expect")
        or last.startswith("assert")
        or any(k.arg == "check" and isinstance(k.value, ast.Constant) and k.value.value is True for k in node.keywords)
    )


class Asserting:
    """Which functions assert something, themselves or through what they call."""

    def __init__(self):
        self.known: dict[tuple[pathlib.Path, int], bool] = {}

    def function(self, home: Module, node: ast.AST) -> bool:
        key = (home.path, id(node))
        if key not in self.known:
            self.known[key] = False  # one that calls itself asserts nothing by that
            self.known[key] = any(self.node(home, n) for n in ast.walk(node))
        return self.known[key]

    def node(self, home: Module, node: ast.AST) -> bool:
        if asserts_itself(node):
            return True
        if isinstance(node, ast.Raise) and node.exc is not None:  # an error of the tests' own
            return self.is_class(home, name_of(node.exc.func if isinstance(node.exc, ast.Call) else node.exc))
        if isinstance(node, ast.Call):
            # a function that is handed over is called by somebody
            called = [node.func, *node.args, *[k.value for k in node.keywords]]
            return any(self.name(home, name_of(c)) for c in called)
        if isinstance(node, ast.withitem):
            return self.name(home, name_of(node.context_expr))
        return False

    @staticmethod
    def is_class(home: Module, name: str) -> bool:
        """Whether a name is that of a class that some test file defines."""
        if any(isinstance(f, ast.ClassDef) for f in home.functions.get(name, ())):
            return True
        there, original = home.imports.get(name, ("", None))
        path = home.file_of(there) if there else None
        return path is not None and any(
            isinstance(f, ast.ClassDef) for f in module(path).functions.get(original or "", ())
        )

    def name(self, home: Module, name: str) -> bool:
        if not name:
            return False
        first, _, rest = name.partition(".")
        last = name.rpartition(".")[2]
        if first in ("self", "cls") or not rest:
            if any(self.function(home, f) for f in home.functions.get(last, ())):
                return True
        if first in home.imports:
            there, original = home.imports[first]
            if original is not None and rest:  # from package import module, or a class's method
                full_name = f"{there}.{original}" if there.strip(".") else there + original
                path = home.file_of(full_name) or home.file_of(there)
                wanted = last
            else:
                path, wanted = home.file_of(there), last if rest else original
            if path is not None and wanted is not None and path != home.path:
                other = module(path)
                return any(self.function(other, f) for f in other.functions.get(wanted, ())) or (
                    wanted not in other.functions and self.name(other, wanted)
                )
        elif rest:  # a method of some object
            return any(self.function(home, f) for f in home.functions.get(last, ()))
        return False

    def fixtures(self, home: Module, test: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        """Whether a fixture that a test names asserts something, when it ends perhaps."""
        homes = [home, *[module(p) for p in (home.path.parent / "conftest.py", TESTS / "conftest.py") if p.is_file()]]
        return any(self.name(h, arg.arg) for arg in test.args.args for h in homes)


# loops ----------------------------------------------------------------------------------------------------------------


def may_be_empty(home: Module, it: ast.expr, local: dict[str, ast.expr] | None = None, depth: int = 0) -> bool:
    """Whether nothing says that there is something to go through."""
    if depth > 8:
        return True
    local = {} if local is None else local
    empty = lambda e: may_be_empty(home, e, local, depth + 1)
    match it:
        case ast.List() | ast.Tuple() | ast.Set():
            return not any(not isinstance(e, ast.Starred) or not empty(e.value) for e in it.elts)
        case ast.Dict():
            return not it.keys
        case ast.Constant():
            return not (isinstance(it.value, (str, bytes)) and it.value)
        case ast.BinOp(op=ast.Add()):
            return empty(it.left) and empty(it.right)
        case ast.BinOp(op=ast.Mult()):
            return empty(it.left) and empty(it.right)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return any(g.ifs or empty(g.iter) for g in it.generators)
        case ast.IfExp():
            return empty(it.body) or empty(it.orelse)
        case ast.Name() if it.id in local:
            return empty(local[it.id])
        case ast.Name() if it.id in home.values:
            return empty(home.values[it.id])
        case ast.Name() if it.id in home.imports:
            there, original = home.imports[it.id]
            path = home.file_of(there)
            if path is None or original is None:
                return False  # of the package: its tables have entries
            return original not in module(path).values or may_be_empty(
                module(path), module(path).values[original], None, depth + 1
            )
        case ast.Attribute():
            return False
        case ast.Subscript():
            return isinstance(it.slice, ast.Slice) and empty(it.value)
        case ast.Call():
            return call_may_be_empty(it, empty)
    return True


def call_may_be_empty(it: ast.Call, empty) -> bool:
    last = name_of(it.func).rpartition(".")[2] or (it.func.attr if isinstance(it.func, ast.Attribute) else "")
    if last == "range":
        return any(isinstance(a, ast.Constant) and a.value == 0 for a in it.args[-1:]) if len(it.args) == 1 else False
    if last in ("zip", "product"):
        return (all if any(k.arg == "strict" for k in it.keywords) else any)(map(empty, it.args))
    if last in (
        "enumerate",
        "sorted",
        "reversed",
        "list",
        "tuple",
        "set",
        "dict",
        "iter",
        "chain",
        "permutations",
        "combinations",
        "accumulate",
        "pairwise",
    ):
        return all(map(empty, it.args[:1]))
    if last == "map":
        return all(map(empty, it.args[1:]))
    if last in ("items", "keys", "values", "split", "splitlines", "copy") and isinstance(it.func, ast.Attribute):
        return empty(it.func.value)
    return last in (
        "filter",
        "findall",
        "finditer",
        "glob",
        "rglob",
        "iterdir",
        "walk",
        "subjaxprs",
        "leaves",
        "receive",
    )


def only_in_loops(home: Module, asserting: Asserting, test: ast.AST) -> ast.For | None:
    """The loop that holds all assertions of a test, and may be one over nothing."""
    local = bound([s for s in ast.walk(test) if isinstance(s, ast.Assign)])
    outside: list[bool] = []
    loops: list[ast.For] = []

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.For):
            visit(node.iter)
            if any(asserting.node(home, n) for b in node.body for n in ast.walk(b)):
                if may_be_empty(home, node.iter, local):
                    loops.append(node)
                else:
                    for b in (*node.body, *node.orelse):
                        visit(b)
            return
        if asserting.node(home, node):
            outside.append(True)
        for child in ast.iter_child_nodes(node):
            visit(child)

    for statement in test.body:
        visit(statement)
    return loops[0] if loops and not outside else None


def only_in_handlers(home: Module, asserting: Asserting, test: ast.AST) -> bool:
    """Whether a test that meets no error asserts nothing."""
    handlers = [h for n in ast.walk(test) if isinstance(n, ast.Try) for h in n.handlers]
    inside = {id(n) for h in handlers for n in ast.walk(h)}
    fails = any(
        isinstance(n, ast.Raise) or isinstance(n, ast.Call) and name_of(n.func) == "pytest.fail"
        for h in handlers
        for n in ast.walk(h)
    )
    return (
        bool(inside) and not fails and not any(asserting.node(home, n) for n in ast.walk(test) if id(n) not in inside)
    )


# all together ---------------------------------------------------------------------------------------------------------


def tests_of(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, FUNCTIONS) and node.name.startswith("test_"):
            yield node
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from tests_of(node)


def findings(path: pathlib.Path) -> list[str]:
    """What is wrong in a file, as `line: what`."""
    home, found = module(path), []
    asserting = Asserting()
    for node in ast.walk(home.tree):
        if isinstance(node, ast.Assert) and (always(node.test) or uncalled(home, node.test)):
            found.append((node.lineno, "this assertion holds whatever happens"))
        if isinstance(node, ast.With):
            found += [
                (node.lineno, "a failure ends here, and nobody hears of it")
                for item in node.items
                if isinstance(item.context_expr, ast.Call)
                and name_of(item.context_expr.func).endswith("suppress")
                and {name_of(a) for a in item.context_expr.args} & BROAD
            ]
            found += [
                (node.lineno, "any error at all will do here")
                for item in node.items
                if isinstance(item.context_expr, ast.Call)
                and item.optional_vars is None
                and name_of(item.context_expr.func) == "pytest.raises"
                and not item.context_expr.keywords
                and {name_of(a) for a in item.context_expr.args} & {"Exception", "BaseException"}
            ]
        if (
            isinstance(node, ast.Call)
            and name_of(node.func).rpartition(".")[2].startswith("assert_")
            and len(node.args) >= 2
            and same(*node.args[:2])
        ):
            found.append((node.lineno, "this compares a value with itself"))
        if isinstance(node, ast.Try):
            found += swallowed(home, asserting, node)
    if path.name.startswith("test_"):
        for test in tests_of(home.tree):
            if not asserting.function(home, test) and not asserting.fixtures(home, test):
                found.append((test.lineno, f"{test.name} asserts nothing"))
            elif only_in_handlers(home, asserting, test):
                found.append(
                    (test.lineno, f"{test.name} asserts something only where an error comes; use pytest.raises")
                )
            elif (loop := only_in_loops(home, asserting, test)) is not None and not asserting.fixtures(home, test):
                found.append(
                    (
                        loop.lineno,
                        (
                            f"{test.name} asserts something only in this loop, and nothing says that there is anything"
                            " to go through"
                        ),
                    )
                )
    return [f"{line}: {what}" for line, what in sorted(found)]


def swallowed(home: Module, asserting: Asserting, node: ast.Try) -> Iterator[tuple[int, str]]:
    for handler in node.handlers:
        names = (
            [
                name_of(t).rpartition(".")[2]
                for t in (handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type])
            ]
            if handler.type is not None
            else [None]
        )
        does_nothing = all(
            isinstance(s, (ast.Pass, ast.Continue)) or isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)
            for s in handler.body
        )
        in_it = any(asserting.node(home, n) for s in node.body for n in ast.walk(s))
        if does_nothing and (set(names) & BROAD or in_it):
            yield handler.lineno, "a failure ends here, and nobody hears of it"
        if any(
            isinstance(n, ast.Call) and name_of(n.func) in ("pytest.skip", "skip")
            for s in handler.body
            for n in ast.walk(s)
        ):
            yield (
                handler.lineno,
                "a failure becomes a test that is skipped; ask for what is needed before (platforms.need)",
            )
