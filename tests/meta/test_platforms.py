"""tests/platforms.py: what a machine lacks is skipped and named, what is required fails, and a broken backend fails
whatever it raises.
"""

import importlib.metadata
import os
import pathlib
import subprocess
import sys

import platforms
import pytest

TESTS = pathlib.Path(__file__).parents[1]
BODY = """
import platforms, pytest, weft
from weft.errors import BackendError
from weft.runtime.device import register_backend

%s

@pytest.fixture(params=platforms.under_test("cpu", "wasm"))
def platform(request):
    with platforms.on(request.param):
        yield request.param

def test_sums(platform):
    assert float(weft.numpy.arange(4.).sum()) == 6
"""
LACKS = 'platforms._NEEDS["wasm"] = lambda: "wasmtime is not installed"'
BREAKS = 'def broken():\n    raise BackendError("it does not work")\nregister_backend(broken, "wasm")'


def outcome(folder, setting: str = "", **env: str) -> tuple[int, str]:
    """(exit status, output) of pytest over a module of one test on two platforms."""
    (folder / "test_it.py").write_text(BODY % setting)
    inherited = {
        k: v for k, v in os.environ.items() if k not in ("CI", "WEFT_TEST_PLATFORMS", "WEFT_REQUIRE_PLATFORMS")
    }
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "--override-ini=addopts=",
            "-p",
            "no:cacheprovider",
            "-p",
            "platforms",
            "--rootdir",
            str(folder),
            str(folder),
        ],
        capture_output=True,
        text=True,
        env={
            **inherited,
            "PYTHONPATH": os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]),
            **env,
        },
        cwd=folder,
    )
    return done.returncode, done.stdout + done.stderr


def test_what_works_passes_and_what_is_left_out_is_named(tmp_path):
    assert (code := outcome(tmp_path, WEFT_TEST_PLATFORMS="cpu"))[0] == 0, code
    assert "LEFT OUT wasm: not in WEFT_TEST_PLATFORMS" in code[1] and "1 passed" in code[1]


def test_what_the_machine_lacks_is_skipped_and_named(tmp_path):
    code, text = outcome(tmp_path, LACKS)
    assert code == 0 and "1 passed, 1 skipped" in text, text
    assert "SKIPPED wasm: wasmtime is not installed [1 tests or modules]" in text


@pytest.mark.parametrize("env", [{"CI": "true"}, {"WEFT_REQUIRE_PLATFORMS": "wasm"}])
def test_what_is_required_fails_where_it_lacks(tmp_path, env):
    code, text = outcome(tmp_path, LACKS, **env)
    assert code == 1 and "wasm is required" in text and "wasmtime is not installed" in text, text


def test_a_broken_backend_fails(tmp_path):
    code, text = outcome(tmp_path, BREAKS)
    assert code == 1 and "1 passed, 1 error" in text and "it does not work" in text, text


def test_what_is_required_must_be_under_test(tmp_path):
    code, text = outcome(tmp_path, CI="true", WEFT_TEST_PLATFORMS="cpu")
    assert code == pytest.ExitCode.USAGE_ERROR and "wasm, webgpu, remote: required" in text, text


def test_all_of_our_backends_are_among_them():
    offered = importlib.metadata.entry_points(group="weft.backends")
    # of these there is no virtual one
    ours = {e.name for e in offered if e.dist.name.startswith("weft")} - {"tpu", "cuda"}
    assert {"cpu", "wasm", "webgpu", "remote"} <= ours
    assert ours <= set(platforms.ALL)
