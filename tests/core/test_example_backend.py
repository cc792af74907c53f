"""Backends of other packages, as docs/backends.md tells: the example and the guide's smallest one are installed,
found, and pass the conformance suite.
"""

import os
import pathlib
import re
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "backends.md").read_text()
TINY, USE = re.findall(r"```python\n(.*?)```", GUIDE, re.S)
PYPROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "tiny"
version = "1.0"

%s
[tool.hatch.build.targets.wheel]
packages = ["tiny.py"]
"""


def build(project: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """A folder with the wheel of a project unpacked in it, as pip leaves it."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "wheel")],
        cwd=project,
        check=True,
        capture_output=True,
    )
    (wheel,) = (folder / "wheel").glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    return build(ROOT / "examples" / "backend", tmp_path_factory.mktemp("example"))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    (folder / "tiny.py").write_text(TINY)
    (folder / "pyproject.toml").write_text(PYPROJECT % re.search(r"```toml\n(.*?)```", GUIDE, re.S)[1])
    return build(folder, folder)


def run(site: pathlib.Path, *args: str, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, *args], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(site), **env}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_example_passes(example):
    assert re.fullmatch(
        r"numpy: \d{3} passed, 0 failed, \d+ left out, .*\n", run(example, "-m", "weft.testing.backend", "numpy")
    )


def test_the_smallest_passes(tiny):
    assert re.fullmatch(
        r"tiny: \d{3} passed, 0 failed, \d+ left out, .*\n", run(tiny, "-m", "weft.testing.backend", "tiny", "--quick")
    )


def test_the_guide_s_ways_to_use_it(tiny):
    assert (
        run(
            tiny,
            "-c",
            USE + "\nprint(x.devices() == (x + 1).devices(), f(1.0).device.platform, jnp.ones(2).device.platform)",
        )
        == "True tiny tiny\n"
    )
    assert (
        run(
            tiny, "-c", "import weft; print(weft.default_backend(), weft.jit(lambda x: x + 1)(2))", JAX_PLATFORMS="tiny"
        )
        == "tiny 3\n"
    )


def test_a_program_on_the_example(example):
    """Training, a loop and a random draw; and what was compiled, as text."""
    program = """
import weft, weft.numpy as jnp
x, y = weft.random.normal(weft.random.key(0), (50, 3)), jnp.arange(50.0) % 2
loss = lambda w: jnp.mean((jnp.tanh(x @ w) - y) ** 2)
step = weft.jit(lambda w: w - 0.1 * weft.grad(loss)(w))
w = weft.lax.fori_loop(0, 20, lambda _, w: step(w), jnp.zeros(3))
print(w.devices(), float(loss(w)) < float(loss(jnp.zeros(3))))
print(weft.jit(lambda x: jnp.sin(x) * 2).lower(1.0).compile().as_text())
try:
    weft.jit(lambda x: x.astype("bfloat16"))(jnp.ones(2))
except weft.errors.BackendError as e:
    print(e)
"""
    out = run(example, "-c", program, JAX_PLATFORMS="numpy")
    assert out.startswith(
        "{NumpyDevice(id=0)} True\ndef program(v0):  # <lambda>\n    v1 = np.sin(v0)\n    v2 = v1 * c1\n    return"
        " [v2]\n"
    )
    assert "the numpy backend has no arrays of dtype bfloat16" in out and "<string>:10" in out


def test_the_example_is_about_as_long_as_the_guide_says():
    lines = len((ROOT / "examples/backend/src/weft_numpy/__init__.py").read_text().splitlines())
    assert abs(lines - int(re.search(r"of about (\d+) lines", GUIDE)[1])) <= 20


def test_the_guide_names_what_there_is():

    from weft.runtime.backend import Capabilities

    fields = set(Capabilities._fields)
    table = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", GUIDE, re.M)
    named = {name for cell in table for name in re.findall(r"`(\w+)`", cell)}
    assert named and named <= fields
