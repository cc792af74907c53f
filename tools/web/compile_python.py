"""Turns the Python sources in zip files and wheels into bytecode. Runs inside Pyodide, whose bytecode a page needs.

A page that finds bytecode starts five times faster than one that compiles; sources stay out of the result, so that
they are neither downloaded nor compared. `compile_archive` is called from compile_python.mjs.
"""

import ast
import zipfile
from collections.abc import Sequence
from fnmatch import fnmatchcase
from importlib._bootstrap_external import _code_to_hash_pyc

# Zip entries carry a date; a fixed one makes equal inputs give equal archives.
DATE = (2020, 1, 1, 0, 0, 0)


def compile_module(name: str, tree: ast.Module, prefix: str, optimize: int) -> bytes:
    """The .pyc of one module, never compared with a source file (unchecked hash)."""
    code = compile(tree, prefix + name, "exec", dont_inherit=True, optimize=optimize)
    return bytes(_code_to_hash_pyc(code, b"\0" * 8, False))


def take_docstrings(tree: ast.Module, mark: str, texts: list[str]) -> None:
    """Moves every docstring to the end of `texts`; in its place stands `mark`, with its number there.

    A mark, and not nothing, because programs make docstrings from docstrings: web/python/weft_docstrings.py.
    """
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            match node.body:
                case [ast.Expr(value=ast.Constant(value=str() as text) as constant), *_]:
                    constant.value = mark.format(len(texts))
                    texts.append(without_indentation(text))


def without_indentation(text: str) -> str:
    """The docstring as Python's compiler keeps it."""
    module = ast.Module([ast.Expr(ast.Constant(text))], [])
    names: dict[str, str] = {}
    exec(compile(ast.fix_missing_locations(module), "docstring", "exec"), names)
    return names["__doc__"]


def module_name(name: str) -> str:
    """The module whose source or bytecode an archive keeps as `name`."""
    return name.removesuffix("c").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def comes_later(name: str, later: Sequence[str]) -> bool:
    """Whether a pattern of `later` names the module of the file `name`, or a package it lies in."""
    parts = module_name(name).split(".")
    packages = [".".join(parts[: end + 1]) for end in range(len(parts))]
    return any(fnmatchcase(package, pattern) for package in packages for pattern in later)


def compile_archive(
    source: str, target: str, later_target: str, prefix: str, optimize: int, later: Sequence[str], mark: str = ""
) -> tuple[int, list[str], list[str]]:
    """Rewrites the archive `source` as two: `later_target` holds what patterns of `later` name, `target` the rest.

    `prefix` goes before the file names that tracebacks show. A wheel's RECORD lists the files of both, without
    their hashes, which no compression makes smaller. If `mark` is
    given, it stands for docstrings in both, with a number in place of its braces.

    Returns:
        How many modules were compiled, the names of those in `later_target`, and the docstrings that marks stand for.
    """
    modules, later_modules = 0, []
    texts: list[str] = []
    record, record_name = [], None
    with (
        zipfile.ZipFile(source) as old,
        zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as first,
        zipfile.ZipFile(later_target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as rest,
    ):
        for name in sorted(old.namelist()):
            if name.endswith("/") or "__pycache__" in name:
                continue
            if name.endswith(".dist-info/RECORD"):
                record_name = name
                continue
            data = old.read(name)
            new = rest if comes_later(name, later) else first
            if name.endswith(".py"):
                if new is rest:
                    later_modules.append(module_name(name))
                tree = ast.parse(data)
                if mark:
                    take_docstrings(tree, mark, texts)
                data = compile_module(name, tree, prefix, optimize)
                name += "c"
                modules += 1
            record.append(f"{name},,\n")
            new.writestr(zipfile.ZipInfo(name, DATE), data, zipfile.ZIP_DEFLATED)
        if record_name:
            text = "".join(record) + f"{record_name},,\n"
            first.writestr(zipfile.ZipInfo(record_name, DATE), text, zipfile.ZIP_DEFLATED)
    return modules, later_modules, texts
