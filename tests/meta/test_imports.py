"""Imports run one way, and none of the core's hides in a function."""
import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2] / "packages" / "weft" / "src" / "weft"
# A module may import from its own layer and from those before it.
LAYERS = [["annotations", "errors", "source_info", "host", "config", "dtypes", "avals", "tree", "mesh"], ["core"], ["ops"], ["transforms"], ["control"],
          ["runtime"], ["lax"], ["numpy"], ["random", "nn", "scipy", "image", "functions", "vectorizing", "autodiff", "api"]]
RANK = {name: i for i, names in enumerate(LAYERS) for name in names}
# `transforms` needs only the structural linear primitives of `ops`.
NARROW = {"transforms": {"ops.linear"}}
CORE = {"core", "ops", "transforms", "control", "runtime"} | set(LAYERS[0])


def modules():
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        yield path, parts


def imported(tree, parts, is_package):
    """(dotted name inside weft, whether inside a function) of each import that runs; what stands under TYPE_CHECKING does not."""
    typing = {child for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" for part in node.body
              for child in ast.walk(part)}
    functions = {child for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) for child in ast.walk(node)}
    for node in ast.walk(tree):
        if node in typing:
            continue
        if isinstance(node, ast.ImportFrom) and node.level:
            base = list(parts if is_package else parts[:-1])
            base = base[: len(base) - (node.level - 1)]
            head = [*base, *(node.module.split(".") if node.module else [])]
            names = [".".join(head)] if node.module else [".".join([*head, alias.name]) for alias in node.names]
            for name in names:
                yield name, node in functions
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
            for name in names:
                if name and name.startswith("weft."):
                    yield name.removeprefix("weft."), node in functions


@pytest.mark.parametrize("path,parts", [pytest.param(p, q, id="/".join(q)) for p, q in modules()])
def test_imports_run_one_way(path, parts):
    is_package = parts[-1] == "__init__"
    parts = parts[:-1] if is_package else parts
    layer = parts[0] if parts else ""
    if layer not in RANK:
        return      # the root module, as_jax, lazily loaded families
    for name, in_function in imported(ast.parse(path.read_text()), parts, is_package):
        other = name.split(".")[0]
        if layer in CORE:
            assert not in_function, f"{'.'.join(parts)} imports {name} inside a function"
        if other in RANK:
            assert RANK[other] <= RANK[layer], f"{'.'.join(parts)} imports {name}, which comes after it"
            if other != layer and other == "ops" and layer in NARROW:
                assert name in NARROW[layer], f"{'.'.join(parts)} imports {name}; only {NARROW[layer]} is allowed"


def test_no_file_is_too_long():
    for path, parts in modules():
        lines = path.read_text().count("\n")
        assert lines <= 800, f"{'/'.join(parts)} has {lines} lines; split it along what it is about"
