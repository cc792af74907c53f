"""Imports run one way: every module has a rank, no import runs up or in a circle, and none of the core's hides in a
function.
"""

import ast
import collections
import graphlib
import pathlib
import subprocess
import sys

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
        "plot",
        "widgets",
        "example_libraries",
        "experimental",
        "FACES",
        "as_jax",
        "doctor",
        "testing",
        "test_util",
    ],
    "weft_remote": [
        "errors",
        "codec",
        "protocol",
        "turn",
        "reports",
        "session",
        "deflate",
        "wire",
        "desktop",
        "page",
        "joined",
        "handles",
        "spread",
        "backend",
        "keep",
        "work",
        "line",
        "costs",
        "offloading",
        "",
    ],
    "weft_native": [
        "run",
        "compat",
        "watch",
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
Import = collections.namedtuple("Import", "module line deferred typing table")


def find_modules() -> dict[str, pathlib.Path]:
    found = {}
    for source in SOURCES:
        for path in sorted(source.rglob("*.py")):
            parts = path.relative_to(source).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = find_modules()


def lazy_modules(call: ast.Call) -> list[str]:
    """The modules, relative to the package, that a call of `LazyNames` names."""
    _, places, *rest = [*call.args, *[k.value for k in call.keywords]]
    return [*ast.literal_eval(places), *[name for modules in rest for name in ast.literal_eval(modules).split()]]


def imports(module: str) -> list[Import]:
    """What a module of ours imports of ours; the tables of `LazyNames` count too."""
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
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("LazyNames"):
            names = [".".join([*package, name]) for name in lazy_modules(node)]
        found += [
            Import(
                name,
                node.lineno,
                node in deferred or isinstance(node, ast.Call),
                node in typing,
                isinstance(node, ast.Call),
            )
            for name in names
            if name in MODULES and name != module
        ]
    if module == "weft.compat":  # which resolves names of jax by tables
        tables = {
            node.targets[0].id: ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("MODULES", "NAMES")
        }
        places = {
            group.split(":")[0].strip()
            for text in tables["NAMES"].values()
            for group in text.split(";")
            if ":" in group
        }
        places |= {f"weft.{place}" for place in tables["MODULES"].values()}
        found += [Import(name, 0, True, False, True) for name in sorted(places)]
    return found


IMPORTS = {module: imports(module) for module in MODULES}


def rank(module: str) -> tuple[str, int]:
    package, _, rest = module.partition(".")
    room = rest.split(".")[0]
    if module == "weft.compat":  # the tables of what stands for jax
        room = "as_jax"
    # what the room's own name hands to users
    elif package == "weft" and (room not in ROOMS["weft"] or rest == "core"):
        room = "FACES"
    return package, ROOMS[package].index(room)


@pytest.mark.parametrize("module", MODULES)
def test_imports_run_one_way(module):
    package, own = rank(module)
    for there, line, deferred, typing, _ in IMPORTS[module]:
        other, place = rank(there)
        assert other != package or place <= own or ROOMS[package][own] == "FACES" and typing, (
            f"{module}:{line} imports {there}, which stands above it"
        )
        assert not deferred or package != "weft" or ROOMS[package][own] not in CORE, (
            f"{module}:{line} imports {there} inside a function"
        )


# Imports inside functions, and why they do not stand at the top.
DEFERRED = {
    ("weft.as_jax", "weft.compat.standin"): "only installers ask for distributions",
    ("weft.export.artifact", "weft.export.language"): "loads all primitives, which only a reader of programs needs",
    ("weft.plot.figures", "weft.plot.native"): "needs matplotlib, which few machines have",
    ("weft.remote", "weft_remote"): "a package that need not be installed",
    ("weft_native.host.zygote", "weft_native.host.sandbox"): "Linux alone has what it uses",
    ("weft.widgets", "weft.numpy"): "only what a reader draws or photographs is an array",
    ("weft_native.backend", "weft_native.foreign"): "few programs call foreign functions",
    ("weft_native.backend", "weft_native.lower.module"): "MLIR's bindings take 40 ms to load",
    ("weft_native.executable", "weft_native.lower.builder"): "MLIR's bindings take 40 ms to load",
    ("weft_native.lower.collective", "weft.higher_order.shard_map"): "loaded where a program has such an equation",
    ("weft_wasm.backends.wasm", "weft_wasm.binary.text"): "only readers of programs ask for their text",
    ("weft_wasm.backends.wasm", "weft_wasm.page"): "only programs that are exported for pages need it",
    ("weft_wasm.backends.wasm", "weft_wasm.runtimes.desktop"): "needs wasmtime, which a page lacks",
    ("weft_wasm.backends.wasm", "weft_wasm.runtimes.page"): "needs the page's objects",
    ("weft_wasm.backends.webgpu", "weft_wasm.runtimes.page_gpu"): "needs the page's objects",
    ("weft_wasm.backends.webgpu", "weft_wasm.runtimes.wgpu_device"): "needs wgpu, which a page lacks",
}


def test_imports_inside_functions_have_reasons():
    found = {
        (module, i.module)
        for module in MODULES
        for i in IMPORTS[module]
        if i.deferred and not i.table and rank(module)[0] in ROOMS
    }
    assert found == set(DEFERRED)


def test_there_are_no_circles():
    """Imports for the type checker alone count too."""
    graph = {module: {i.module for i in IMPORTS[module]} for module in MODULES}
    # CycleError names the modules of a circle
    assert set(graphlib.TopologicalSorter(graph).static_order()) == set(MODULES)


def test_rooms_exist():
    """And every folder is one; only single modules in the root hand names to users."""
    for package, rooms in ROOMS.items():
        inside = {m.split(".")[1] for m in MODULES if m.startswith(f"{package}.")}
        folders = {m.split(".")[1] for m in MODULES if m.startswith(f"{package}.") and m.count(".") > 1}
        assert folders <= set(rooms)
        assert set(rooms) - {"FACES", ""} <= inside


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


# What imports modules by names that it is given, and why.
BY_NAME = {
    "weft.base.lazy": "the tables of lazy names, which count as imports here",
    "weft.as_jax": "modules of jax, and those of ours that stand for them, by the tables of weft.compat",
    "weft.compat": "its tables: modules of jax, and where their names stand",
    "weft.compat.backend": "jaxlib's modules",
    "weft.compat.mlir": "jaxlib's modules",
    "weft.runtime.device": "the package of a backend that has been loaded",
    "weft.testing.backend": "modules that the command line names",
    "weft_native.client": "jaxlib's modules and plug-ins",
}


@pytest.mark.parametrize("module", MODULES)
def test_no_module_of_ours_is_imported_by_a_string(module):
    found = []
    for node in ast.walk(ast.parse(MODULES[module].read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__"):
            name = node.args[0].value if isinstance(node.args[0], ast.Constant) else None
            if module not in BY_NAME if name is None else name.startswith((".", "weft")):
                found.append(f"{module}:{node.lineno} imports {ast.unparse(node.args[0])}")
    assert not found, f"{'; '.join(found)}: write an import, or a table of LazyNames"


# What belongs to others and is written to, and why.
WRITTEN = {
    ("weft.as_jax", "sys.modules"): "weft stands there for jax",
    ("weft.base.source_info", "sys.excepthook"): "Python's own hook for errors that nobody catches",
    ("weft_native.bootstrap", "sys.modules"): "what jaxlib's C++ imports of jax when it is loaded",
    ("weft_native.bootstrap", "xc.SingleDeviceSharding"): "jaxlib's C++ asks jax's Python for these methods",
    ("weft_native.sharding", "xc.NamedSharding"): "jaxlib's C++ asks jax's Python for these methods",
}


def written(module: str) -> list[tuple[int, str]]:
    """(line, what) of each assignment to an attribute or an item of what a module imports: patches of others."""
    tree = ast.parse(MODULES[module].read_text())
    imported = {
        alias.asname or alias.name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    for node in tree.body:  # loops over what is imported
        if isinstance(node, ast.For) and imported & {n.id for n in ast.walk(node.iter) if isinstance(n, ast.Name)}:
            imported |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
    found = []
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        if isinstance(node, (ast.Assign, ast.Delete)):
            targets = [t for target in node.targets for t in getattr(target, "elts", [target])]
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            targets = [node.target]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("setattr", "delattr"):
            targets = [ast.Attribute(node.args[0], "?")]
        for target in targets:
            owner: ast.expr = target
            while isinstance(owner, (ast.Attribute, ast.Subscript)):
                owner = owner.value
            if owner is not target and isinstance(owner, ast.Name) and owner.id in imported:
                found.append((node.lineno, ast.unparse(target)))
    return found


@pytest.mark.parametrize("module", MODULES)
def test_no_module_writes_to_what_is_another_s(module):
    for line, what in written(module):
        assert any(module == m and what.startswith(place) for m, place in WRITTEN), (
            f"{module}:{line} assigns to {what}, which is another module's: call a function of that module's, such as"
            " `Primitive.add_rules` or `Hook.define`"
        )


def test_nothing_is_listed_in_vain():
    assert {(m, p) for m, p in WRITTEN if any(what.startswith(p) for _, what in written(m))} == set(WRITTEN)
    assert set(BY_NAME) <= set(MODULES)


HEAVY = {
    "asyncio",
    "bz2",
    "difflib",
    "email",
    "http",
    "importlib.resources",
    "logging.config",
    "lzma",
    "pathlib",
    "random",
}
HEAVY |= {"shutil", "socket", "subprocess", "tempfile", "unittest", "urllib", "zipfile"}


def test_the_language_imports_nothing_heavy():
    """What `import weft` loads of the standard library, beyond what NumPy does, is small."""
    program = "import sys, numpy; before = set(sys.modules); import weft; print(*set(sys.modules) - before)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not HEAVY & set(loaded)
