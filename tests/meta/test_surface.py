"""The public names of smaller modules, and the members of instances, are those of real jax (surface.json, written by
make_surface.py), but for those that absent.json lists: a name that disappears fails, and one that is there now too.

    python tests/meta/test_surface.py       writes absent.json
"""

import json
import pathlib
import pkgutil
import sys
import types

import numpy as np
import pytest

from weft import compat

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
import surface  # noqa: E402

RECORDED = json.loads((HERE / "surface.json").read_text())
# Whose members programs use. Those of the others are mostly what jax's own traces ask of them.
PLAIN = (
    "Array Array.at Array.at[0] Device ShapeDtypeStruct NamedSharding SingleDeviceSharding Mesh PartitionSpec Shard jit"
    " Traced Lowered Compiled custom_jvp custom_vjp custom_vmap Partial Exported finfo iinfo ufunc Ref BCOO BCSR"
).split()


def module(name: str) -> types.ModuleType | None:
    """What stands for a module of jax where weft replaces it; None for nothing."""
    short = name.removeprefix("jax.")
    for path in (compat.MODULES.get(short), None if short in compat.NAMES else short):
        if path is not None:
            try:
                found = pkgutil.resolve_name(f"weft.{path}:")  # the names are surface.json's
            except ImportError:
                continue
            return compat.Named(name, compat.NAMES[short], f"weft.{path}") if short in compat.NAMES else found
    return compat.Named(name, compat.NAMES[short], None) if short in compat.NAMES else None


def has(owner: object, name: str) -> bool:
    try:
        getattr(owner, name)
    except AttributeError:
        return False
    except Exception:  # it is there, and has nothing to say of this instance
        return True
    return True


def absent() -> dict[str, list[str]]:
    """What weft lacks, by module and instance."""
    # what another test may have imported
    import weft.as_jax  # noqa: F401
    import weft.experimental.checkify
    import weft.experimental.compilation_cache.compilation_cache
    import weft.experimental.shard_map
    import weft.experimental.sparse.util
    import weft.export
    import weft.random.gammas
    import weft.scipy.interpolate
    import weft.scipy.stats  # noqa: F401

    scope = surface.scope(weft, np)
    found = {}
    for name, wanted in RECORDED.items():
        owner = eval(surface.INSTANCES[name], scope) if name in surface.INSTANCES else module(name)
        missing = [n for n in wanted if owner is None or not has(owner, n)]
        if missing:
            found[name] = missing
    return found


@pytest.fixture(scope="module")
def lacking():
    return absent()


def test_nothing_else_is_absent(lacking):
    known = json.loads((HERE / "absent.json").read_text())
    new = {k: sorted(set(v) - set(known.get(k, ()))) for k, v in lacking.items()}
    new = {k: v for k, v in new.items() if v}
    assert not new, f"these were there: {new}"
    there = {k: sorted(set(v) - set(lacking.get(k, ()))) for k, v in known.items()}
    there = {k: v for k, v in there.items() if v}
    assert not there, f"these are there now: run python tests/meta/test_surface.py: {there}"


def test_members_that_programs_use_are_there(lacking):
    wanted = sum(len(RECORDED[name]) for name in PLAIN)
    missing = sum(len(lacking.get(name, ())) for name in PLAIN)
    assert missing <= 0.05 * wanted, {name: lacking[name] for name in PLAIN if name in lacking}


if __name__ == "__main__":
    found = absent()
    rows = [f" {json.dumps(k)}: {json.dumps(v)}" for k, v in found.items()]
    (HERE / "absent.json").write_text("{\n" + ",\n".join(rows) + "\n}\n")
    for what, keys in (
        ("names", [k for k in RECORDED if k not in surface.INSTANCES]),
        ("members", list(surface.INSTANCES)),
    ):
        total, missing = sum(len(RECORDED[k]) for k in keys), sum(len(found.get(k, ())) for k in keys)
        print(f"{total - missing} of {total} {what}")
