"""What a backend can do is declared (`weft.runtime.backend.Capabilities`), and nobody asks its objects whether they
have an attribute.
"""

import ast
import pathlib
import re

import pytest
from weft.runtime.backend import MEMBERS, Backend, Buffers, Capabilities, Device, Executable

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = sorted(
    p
    for folder in ("packages/weft/src", "packages/weft-remote/src", "native/src", "wasm/src")
    for p in (ROOT / folder).rglob("*.py")
)


def members(protocol) -> set[str]:
    return {*protocol.__annotations__, *[n for n in vars(protocol) if not n.startswith("_")]}


# `weft.core.trace.is_array` says what is an array. Files are asked whether they have a `read`, and everything has a
# name.
NAMES = {"backend", "committed", "is_deleted", "_host"}.union(
    {*Capabilities._fields, *members(Backend), *members(Device), *members(Executable), *members(Buffers)}
    - {"name", "id", "read"}
)


def probes(tree):
    """(line, text) of each question whether something has an attribute of a backend, a device or an executable."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("getattr", "hasattr")
            and len(node.args) >= 2
        ):
            name = node.args[1]
            if isinstance(name, ast.Constant) and name.value in NAMES:
                yield node.lineno, ast.unparse(node)


def test_nothing_is_found_by_probing():
    named = re.compile("|".join(f'"{name}"' for name in NAMES))  # only these files need to be parsed
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in SOURCES
        if named.search(source := path.read_text())
        for line, text in probes(ast.parse(source))
    ]
    assert not found, "declare it in weft.runtime.backend.Capabilities and ask there:\n" + "\n".join(found)


@pytest.mark.parametrize(
    "text",
    ["getattr(backend, 'jit', None)", "hasattr(x.device, 'backend')", "hasattr(exe, 'as_text')", "hasattr(b, 'put')"],
)
def test_probing_is_seen(text):
    assert [t for _, t in probes(ast.parse(text))] == [text]


def test_every_member_and_capability_is_explained():
    assert set(MEMBERS) == members(Backend)
    for name in Capabilities._fields:
        assert f"\n        {name}: " in Capabilities.__doc__, name
