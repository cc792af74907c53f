"""The first program of the README runs to its end on the platforms of a desktop, and prints one number and no more."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
from platforms import need

README = (pathlib.Path(__file__).parents[2] / "README.md").read_text()


@pytest.mark.parametrize("platform", ["cpu", "wasm"])
def test_the_first_program(platform):
    need(platform)
    (program,) = re.findall(r"```python\n(import weft\n.*?)```", README, re.DOTALL)
    env = {**os.environ, "JAX_PLATFORMS": platform}
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=env)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert 0.018 < float(ran.stdout) < 0.019
