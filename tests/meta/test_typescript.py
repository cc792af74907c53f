"""TypeScript is checked strictly: no project of `npm run typecheck` asks for less than tsconfig.base.json does.
tools/test/typecheck.test.mjs says that every file is in one.
"""

import json
import os
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
STRICT = ("strict", "noUncheckedIndexedAccess", "noImplicitOverride", "noFallthroughCasesInSwitch", "isolatedModules")
FREE = {"lib", "types", "allowJs", "checkJs"}  # what a project may say of itself
PROJECTS = re.findall(r"tsc -p (\S+)", json.loads((ROOT / "package.json").read_text())["scripts"]["typecheck"])


def config(project: str) -> dict:
    return json.loads((ROOT / project / "tsconfig.json").read_text())


def files(ending: str) -> list[str]:
    """Those of the repository, without what is installed or built."""
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [f for f in folders if not f.startswith(".") and f not in ("node_modules", "build", "dist")]
        found += [os.path.relpath(os.path.join(folder, name), ROOT) for name in names if name.endswith(ending)]
    return found


def test_the_base_is_strict():
    options = json.loads((ROOT / "tsconfig.base.json").read_text())["compilerOptions"]
    assert all(options[name] is True for name in STRICT)


def test_no_project_asks_for_less():
    found = {path.removesuffix("/tsconfig.json") for path in files("tsconfig.json")}
    assert found == set(PROJECTS), "run each tsconfig.json in `npm run typecheck`"
    for project in PROJECTS:
        said = config(project)
        base = (ROOT / project / said["extends"]).resolve()
        parents = [ROOT / "tsconfig.base.json", *[ROOT / p / "tsconfig.json" for p in PROJECTS if p != project]]
        assert base in parents and set(said["compilerOptions"]) <= FREE, project


def test_nothing_is_left_unchecked():
    """No comment silences the compiler; programs in strings may say that an error must come."""
    marks = re.compile(r"^\s*(//|/\*)\s*@ts-(ignore|nocheck|expect-error)", re.M)
    scripts = files(".ts")
    assert len(scripts) > 40 and not [f for f in scripts if marks.search((ROOT / f).read_text())]
