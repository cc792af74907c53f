"""The page's lock file: what it says of wheels, and what it refuses."""

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("make_lock.py")


def wheel(
    folder: Path, name: str, *requires: str, version: str = "1.0", modules: tuple[str, ...] | None = None
) -> Path:
    """A wheel with empty modules and the given requirements."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    lines = [
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}",
        *(f"Requires-Dist: {text}" for text in requires),
    ]
    with zipfile.ZipFile(path, "w") as archive:
        for module in modules or (f"{name}/__init__.pyc",):
            archive.writestr(module, "")
        archive.writestr(f"{name}-{version}.dist-info/METADATA", "\n".join(lines) + "\n")
    return path


@pytest.fixture
def make(tmp_path: Path):
    """Runs the script over tmp_path/wheels; returns the process and the lock, if one was written."""
    pyodide = tmp_path / "pyodide"
    pyodide.mkdir()
    (pyodide / "package.json").write_text('{"version": "314.0.7"}')
    info = {"abi_version": "2026_0", "arch": "wasm32", "platform": "emscripten_5_0_3", "python": "3.14.2"}
    (pyodide / "pyodide-lock.json").write_text(json.dumps({"info": info, "packages": {"unknown": {"surprise": 1}}}))

    def run():
        out = tmp_path / "lock.json"
        command = [
            sys.executable,
            str(SCRIPT),
            "--pyodide",
            str(pyodide),
            "--wheels",
            str(tmp_path / "wheels"),
            "--out",
            str(out),
        ]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        return process, json.loads(out.read_text()) if out.exists() else None

    return run


def test_entries_name_file_hash_and_imports(make, tmp_path):
    path = wheel(tmp_path / "wheels/abc123", "weft", modules=("weft/__init__.pyc", "weft/api/tracing.pyc", "single.py"))
    process, lock = make()
    assert process.returncode == 0, process.stderr
    entry = lock["packages"]["weft"]
    assert entry["file_name"] == "abc123/weft-1.0-py3-none-any.whl"
    assert entry["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert entry["imports"] == ["single", "weft"]
    assert lock["info"]["python"] == "3.14.2"
    assert lock["info"]["version"] == "314.0.7"


def test_dependencies_follow_the_markers_of_a_page(make, tmp_path):
    wheel(
        tmp_path / "wheels",
        "weft",
        "weft-native; sys_platform != 'emscripten'",
        "Weft.Wasm>=1",
        "numpy; extra == 'numpy'",
    )
    wheel(tmp_path / "wheels", "weft_wasm")
    process, lock = make()
    assert process.returncode == 0, process.stderr
    assert lock["packages"]["weft"]["depends"] == ["weft-wasm"]


def test_packages_that_need_each_other_do_not_wait_for_each_other(make, tmp_path):
    wheel(tmp_path / "wheels", "weft", "weft-wasm", "weft-remote")
    wheel(tmp_path / "wheels", "weft_wasm", "weft", "weft-remote")
    wheel(tmp_path / "wheels", "weft_remote", "weft-wasm", "weft-remote")
    process, lock = make()
    assert process.returncode == 0, process.stderr
    waiting = {name: set(entry["depends"]) for name, entry in lock["packages"].items()}
    assert any(waiting.values())
    while waiting:
        free = {name for name, needed in waiting.items() if not needed & waiting.keys()}
        assert free, f"a cycle is left: {waiting}"
        waiting = {name: needed for name, needed in waiting.items() if name not in free}


def test_a_missing_dependency_is_named(make, tmp_path):
    wheel(tmp_path / "wheels", "weft", "absent>=2")
    process, lock = make()
    assert process.returncode == 1
    assert "weft needs absent" in process.stderr
    assert lock is None


def test_two_wheels_of_one_project_are_refused(make, tmp_path):
    wheel(tmp_path / "wheels/a", "weft")
    wheel(tmp_path / "wheels/b", "weft", version="2.0")
    process, lock = make()
    assert process.returncode == 1
    assert "two wheels of weft" in process.stderr
    assert lock is None
