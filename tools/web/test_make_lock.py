"""The page's lock file: what it says of wheels, and what it refuses."""

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("make_lock.py")
INFO = {"abi_version": "2026_0", "arch": "wasm32", "platform": "emscripten_5_0_3", "python": "3.14.2"}


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
    (pyodide / "pyodide-lock.json").write_text(json.dumps({"info": INFO, "packages": {"unknown": {"surprise": 1}}}))

    def run(*more: str):
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
            *more,
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


def distribution(folder: Path, **packages: list[str]) -> Path:
    """A lock file of packages and their dependencies; their files are not there."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = {
        name: {
            "name": name,
            "version": "1.0",
            "file_name": f"{name}.whl",
            "install_dir": "site",
            "sha256": "0" * 64,
            "package_type": "package",
            "imports": [name],
            "depends": depends,
            "tool": {},
        }
        for name, depends in packages.items()
    }
    lock = folder / "pyodide-lock.json"
    lock.write_text(json.dumps({"packages": entries}))
    return lock


def test_bundled_wheels_may_need_the_distribution_and_what_weft_stands_for(make, tmp_path):
    wheel(tmp_path / "wheels", "weft")
    wheel(tmp_path / "bundled", "optax", "jax>=0.5", "jaxlib", "numpy", "absl-py")
    wheel(tmp_path / "bundled", "absl_py")
    lock_file = distribution(tmp_path / "pyodide", numpy=[], scipy=["numpy"], optax=[])
    lock_file.write_text(json.dumps(json.loads(lock_file.read_text()) | {"info": INFO}))
    process, lock = make("--bundled", str(tmp_path / "bundled"), "--distribution", "https://elsewhere/full/")
    assert process.returncode == 0, process.stderr
    entries = lock["packages"]
    assert entries["optax"]["depends"] == ["absl-py", "numpy"]
    assert entries["optax"]["file_name"] == "bundled/optax-1.0-py3-none-any.whl"  # not the distribution's
    assert entries["scipy"]["file_name"] == "https://elsewhere/full/scipy.whl"
    assert set(entries) == {"weft", "optax", "absl-py", "numpy", "scipy"}


def test_a_part_of_the_distribution_has_what_is_complete_in_it(make, tmp_path):
    wheel(tmp_path / "wheels", "weft")
    wheel(tmp_path / "bundled", "optax", "numpy")
    lock_file = distribution(tmp_path / "part", six=[], scipy=["numpy"], numpy=[])
    for name in ("six", "scipy"):
        (tmp_path / f"part/{name}.whl").touch()
    process, lock = make(
        "--bundled", str(tmp_path / "bundled"), "--distribution", "part-1/", "--distribution-lock", str(lock_file)
    )
    assert process.returncode == 0, process.stderr
    assert set(lock["packages"]) == {"weft", "optax", "six"}
    assert lock["packages"]["six"]["file_name"] == "part-1/six.whl"


def test_licences_of_wheels_are_collected_and_a_wheel_without_one_is_refused(tmp_path):
    path = wheel(tmp_path, "optax")
    command = [sys.executable, str(SCRIPT.with_name("wheel_licences.py")), str(tmp_path), str(tmp_path / "out")]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 1
    assert "optax-1.0-py3-none-any.whl has no licence text" in process.stderr
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("optax-1.0.dist-info/licenses/LICENSE", "Do as you like.")
    subprocess.run(command, check=True)
    assert (tmp_path / "out").read_text() == "optax 1.0\n\nDo as you like."
