"""Imports run one way: every module has a rank, no import runs up or in a circle, and none of the core's hides in a
function.
"""

import ast
import collections
import graphlib
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = [ROOT / "packages/weft/src", ROOT / "packages/weft-remote/src", ROOT / "native/src", ROOT / "wasm/src"]
# The rooms of each package from the ground up; a module may import from its own and from those before it. What stands
# in the root of `weft` hands names to users.
ROOMS = {
    "weft": [
        "version",
        "base",
        "core",
        "symbolic",
        "serialization",
        "primitives",
        "transforms",
        "higher_order",
        "effects",
        "decompositions",
        "runtime",
        "typing",
        "lax",
        "numpy",
        "api",
        "random",
        "image",
        "scipy",
        "export",
        "compat",
        "nn",
        "example_libraries",
        "experimental",
        "FACES",
        "testing",
        "test_util",
    ],
    "weft_remote": ["errors", "protocol", "session", "desktop", "page", "backend", ""],
    "weft_native": [
        "compat",
        "cluster",
        "cache",
        "bootstrap",
        "sharding",
        "client",
        "profile",
        "lower",
        "foreign",
        "arrays",
        "executable",
        "dispatch",
        "operators",
        "backend",
        "host",
        "",
    ],
    "weft_wasm": [
        "binary",
        "ir",
        "passes",
        "routines",
        "elementary",
        "contents",
        "artifact",
        "interpreter",
        "emit_wasm",
        "emit_wgsl",
        "compile",
        "lower",
        "runtimes",
        "page",
        "backends",
        "",
    ],
}
# Imports for the type checker alone that run up.
FOR_TYPES = {
    ("weft.base.avals", "weft.experimental.layout"),
    ("weft.base.avals", "weft.typing"),
    ("weft.base.mesh", "weft.runtime.array"),
    ("weft.base.dtypes", "weft.runtime.array"),
    ("weft.base.mesh", "weft.runtime.backend"),
    ("weft.core.primitive", "weft.transforms.linearize"),
    ("weft.core.primitive", "weft.transforms.stage"),
    ("weft.effects.callback", "weft.runtime.array"),
    ("weft.higher_order.cond", "weft.typing"),
    ("weft.higher_order.while_loop", "weft.typing"),
    ("weft.higher_order.remat", "weft.typing"),
    ("weft.primitives.references", "weft.transforms.linearize"),
    ("weft_remote.session", "weft_remote.backend"),
}
CORE = {
    "base",
    "core",
    "symbolic",
    "serialization",
    "primitives",
    "transforms",
    "higher_order",
    "effects",
    "decompositions",
    "runtime",
}
Import = collections.namedtuple("Import", "module line deferred typing")


def find_modules() -> dict[str, pathlib.Path]:
    found = {}
    for source in SOURCES:
        for path in sorted(source.rglob("*.py")):
            parts = path.relative_to(source).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = find_modules()


def imports(module: str) -> list[Import]:
    """What a module of ours imports of ours; strings that `import_module` is given count too."""
    path = MODULES[module]
    tree = ast.parse(path.read_text())
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    inside = lambda nodes: {child for node in nodes for child in ast.walk(node)}
    typing = inside(
        b for n in ast.walk(tree) if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING" for b in n.body
    )
    deferred = inside(n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)))
    found = []
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.ImportFrom):
            base = (
                ".".join([*package[: len(package) - node.level + 1], *([node.module] if node.module else [])])
                if node.level
                else node.module
            )
            names = [f"{base}.{a.name}" if f"{base}.{a.name}" in MODULES else base for a in node.names]
        elif isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif (
            isinstance(node, ast.Call)
            and ast.unparse(node.func).endswith("import_module")
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            names = [node.args[0].value]
        found += [
            Import(name, node.lineno, node in deferred, node in typing)
            for name in names
            if name in MODULES and name != module
        ]
    return found


IMPORTS = {module: imports(module) for module in MODULES}


def rank(module: str) -> tuple[str, int]:
    package, _, rest = module.partition(".")
    room = rest.split(".")[0]
    # what the room's own name hands to users
    if package == "weft" and (room not in ROOMS["weft"] or rest == "core"):
        room = "FACES"
    return package, ROOMS[package].index(room)


@pytest.mark.parametrize("module", MODULES)
def test_imports_run_one_way(module):
    package, own = rank(module)
    for there, line, deferred, typing in IMPORTS[module]:
        other, place = rank(there)
        assert (
            other != package
            or place <= own
            or typing
            and (module, there) in FOR_TYPES
            or ROOMS[package][own] == "FACES"
            and typing
        ), f"{module}:{line} imports {there}, which stands above it"
        assert not deferred or package != "weft" or module.split(".")[1] not in CORE, (
            f"{module}:{line} imports {there} inside a function"
        )


def test_no_imports_for_types_are_listed_in_vain():
    assert {(m, i.module) for m in MODULES for i in IMPORTS[m] if i.typing} >= FOR_TYPES


def test_there_are_no_circles():
    graph = {module: {i.module for i in IMPORTS[module] if not i.typing} for module in MODULES}
    # CycleError names the modules of a circle
    assert set(graphlib.TopologicalSorter(graph).static_order()) == set(MODULES)


def test_rooms_exist():
    assert set(ROOMS["weft"]) - {"FACES"} == {
        m.split(".")[1] for m in MODULES if m.startswith("weft.") and m.split(".")[1] in ROOMS["weft"]
    }


@pytest.mark.parametrize("module", MODULES)
def test_no_file_is_too_long(module):
    lines = MODULES[module].read_text().count("\n")
    assert lines <= 800, f"{module} has {lines} lines; split it along what it is about"


def test_programs_that_come_as_bytes_may_use_all_of_the_language():
    rooms = ("primitives", "higher_order", "effects", "decompositions", "lax")
    loaded = {i.module for i in IMPORTS["weft.export.language"]}
    assert loaded == {m for m in MODULES if m.startswith(tuple(f"weft.{room}." for room in rooms))} - {
        "weft.effects.debug"
    }
