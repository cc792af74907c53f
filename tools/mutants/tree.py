"""Copies of the repository in which faults are put, and how its tests are run there."""

from __future__ import annotations

import compileall
import os
import pathlib
import re
import shutil
import subprocess
import sys

from candidates import Mutant

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SOURCES = ("packages/weft/src", "packages/weft-remote/src", "native/src", "wasm/src")
UNTRACKED = ("examples/digits/digits.bin",)  # made by the Makefile, read by tests


def copy(to: pathlib.Path) -> pathlib.Path:
    """A copy of all files as they are now, but those that git ignores."""
    shutil.rmtree(to, ignore_errors=True)
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout.split("\0")
    for name in [*names, *UNTRACKED]:
        source = ROOT / name
        if name and source.is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, to / name)
    (to / "build").mkdir(exist_ok=True)
    for built in ("build/site", "build/wheels"):  # made by the Makefile; tests of the page read them
        if (ROOT / built).exists():
            (to / built).symlink_to(ROOT / built)
    link_modules(ROOT / "node_modules", to / "node_modules", to)
    compile_sources(to)
    return to


def compile_sources(tree: pathlib.Path) -> None:
    """Spares the many processes that tests start most of the compiling: none of them may write bytecode itself, which
    could be that of a fault.
    """
    for source in SOURCES:
        compileall.compile_dir(tree / source, quiet=2)


def link_modules(modules: pathlib.Path, to: pathlib.Path, tree: pathlib.Path) -> None:
    """The packages that npm has installed; those that are parts of this repository are the tree's own, else its
    tests would test the repository.
    """
    to.mkdir()
    for package in modules.iterdir() if modules.exists() else ():
        real = package.resolve()
        if package.name.startswith("@"):
            link_modules(package, to / package.name, tree)
        else:
            (to / package.name).symlink_to(package if modules in real.parents else tree / real.relative_to(ROOT))


def node(tree: pathlib.Path, timeout: float, log: pathlib.Path) -> int:
    """Runs the tests of the page's runtime: under Node, then in Chromium; -9 where they did not end in time."""
    tests = (
        "for part in exported gpu page; do npm run --silent build:$part -w @weft/runtime || exit; done && npm test"
        " --silent -w @weft/runtime && cd e2e && npx playwright test runtime exported webgpu --workers=1 -x"
        " --project=page --project=page-webgpu"
    )
    with open(log, "w") as out:
        process = subprocess.Popen(
            ["sh", "-c", tests],
            cwd=tree,
            env={**environment(tree), "PYTHON": sys.executable},
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return -9


def environment(tree: pathlib.Path, **more: str) -> dict[str, str]:
    """Where Python finds the copy's packages before those that are installed, and the recorder of what is reached."""
    path = [str(HERE / "recording"), *[str(tree / s) for s in SOURCES], os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(p for p in path if p),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        **more,
    }


def pytest(
    tree: pathlib.Path, arguments: list[str], timeout: float | None = None, log: pathlib.Path | None = None, **more: str
) -> int:
    """Runs tests in a copy, with XLA's optimiser if all of them need it; -9 where they did not end in time."""
    folders = re.search(r"^OPTIMISED := (.*)", (ROOT / "Makefile").read_text(), re.M)
    named = [a for a in arguments if a.startswith("tests/")]
    if folders and named and all(a.startswith(tuple(folders[1].split())) for a in named):
        more = {"XLA_FLAGS": "", **more}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "mutant_plugin", *arguments]
    with open(log or os.devnull, "w") as out:
        process = subprocess.Popen(
            command,
            cwd=tree,
            env=environment(tree, **more),
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return -9


def marked(data: bytes, mutants: list[tuple[int, Mutant]]) -> bytes:
    """A file that records when the place of each of its mutants is reached."""
    for k, m in sorted(mutants, key=lambda pair: -pair[1].mark[0]):
        start, end = m.mark
        if m.in_statement:
            line = data.rfind(b"\n", 0, start) + 1
            before = data[line:start]
            separator = b"\n" + before if not before.strip() else b"; "
            data = data[:start] + b"_weft_reach(%d)" % k + separator + data[start:]
        else:
            data = data[:start] + b"(_weft_reach(%d) or (" % k + data[start:end] + b"))" + data[end:]
    return data


def put(tree: pathlib.Path, file: str, data: bytes) -> None:
    """Writes a source file, and makes sure that no bytecode of what it was is left."""
    path = tree / file
    path.write_bytes(data)
    for old in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
        old.unlink()
