"""Code that nothing uses: functions, classes, methods, attributes, parameters.   make lint

vulture finds what no source names. What users name instead is found here: the names of public modules, of the classes
in them, and of their parameters. What remains for a reason that neither can see stands in dead_code.toml; a line there
that is not needed any more is a mistake too. Tests do not count: what they alone use is dead.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import json
import pathlib
import pkgutil
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from types import ModuleType, SimpleNamespace

import vulture

import weft
from weft import compat

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ("packages", "native/src", "wasm/src", "web/python", "tools", "bench", "examples")
EXCEPTIONS = ROOT / "tools" / "dead_code.toml"
# Decorators that put a function into a table, which is where it is used.
REGISTERING = (
    "@elementwise*",
    "@expression*",
    "@implements*",
    "@lower*",
    "@opaque*",
    "@register*",
    "@rewrites*",
    "@graph.rewrite*",
)
REGISTERING += ("@*.def*", "@*rule*", "@override")  # the base class calls methods that override
REGISTERING += ("@pl.*",)  # in a kernel: it runs where it stands
REGISTERING += ("@interact*",)  # in a document: it runs whenever a widget changes


def public_modules() -> Iterator[ModuleType]:
    """The modules that users import: jax's names for them, the root's, and those that stand for jax's own inside."""
    names = json.loads((ROOT / "tests" / "meta" / "names.json").read_text())
    found = {name.replace("jax", "weft", 1) for name in names if name.split(".")[0] == "jax"}
    found |= {f"weft.{m.name}" for m in pkgutil.iter_modules(weft.__path__) if not m.name.startswith("_")}
    found |= {f"weft.{place}" for place in compat.MODULES.values()}
    found.add("weft.higher_order.policies")  # weft.checkpoint_policies
    for package in ("weft.compat", "weft.experimental", "weft.scipy", "weft.example_libraries"):
        found |= {m.name for m in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}.")}
    for name in sorted(found):
        yield importlib.import_module(name)


def names_of(value: object) -> Iterator[str]:
    """The names that whoever has a public function or class may write."""
    if inspect.isclass(value) and value.__module__.startswith("weft"):
        for base in value.__mro__:
            if base.__module__.startswith("weft"):
                yield from vars(base)
                yield from getattr(base, "__annotations__", ())
                for member in vars(base).values():
                    yield from names_of(getattr(member, "__func__", member))
    elif isinstance(value, SimpleNamespace):
        yield from vars(value)
    elif inspect.isfunction(value):
        yield from inspect.signature(value).parameters


def public_names() -> set[str]:
    found: set[str] = set()
    for module in public_modules():
        for name in dir(module):
            if not name.startswith("_"):
                found.update((name, *names_of(getattr(module, name))))
    for distribution in importlib.metadata.distributions():
        if (distribution.name or "").startswith("weft"):
            found.update(point.value.rpartition(":")[2] for point in distribution.entry_points)
    return {name for name in found if not name.startswith("_") or name.endswith("__")}


def main() -> int:
    kept = {name: why for table in tomllib.loads(EXCEPTIONS.read_text()).values() for name, why in table.items()}
    finder = vulture.Vulture(ignore_decorators=list(REGISTERING))
    finder.scavenge([str(ROOT / source) for source in SOURCES])
    public, needed, dead = public_names(), set(), []
    for item in finder.get_unused_code():
        exceptions = {name for name in kept if fnmatchcase(item.name, name)}
        needed |= exceptions
        if exceptions:
            continue
        if item.name not in public:
            place = pathlib.Path(item.filename).relative_to(ROOT)
            dead.append(f"{place}:{item.first_lineno}: nothing uses the {item.typ} {item.name}")
    dead += [f"tools/dead_code.toml: {name} needs no exception any more" for name in sorted(set(kept) - needed)]
    print(*dead, sep="\n", end="\n" * bool(dead))
    return bool(dead)


if __name__ == "__main__":
    sys.exit(main())
