"""The page's Python of packages and of matplotlib's figures, run natively with a stand-in for the page."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PYTHON = Path(__file__).parents[2] / "web/python"

PAGE = f"""
import ast, sys, types
sys.path.insert(0, {str(PYTHON)!r})

shown = []
page = types.ModuleType("_weft_page")
page.display = lambda name, data, buffers, update: shown.append(data)
js = types.ModuleType("js")
js.Array = types.SimpleNamespace(new=list)
pyodide, code = types.ModuleType("pyodide"), types.ModuleType("pyodide.code")


def find_imports(source):
    tree = ast.parse(source)
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level]
    return sorted({{name.split(".")[0] for name in names}})


code.find_imports = find_imports
sys.modules |= {{"_weft_page": page, "js": js, "pyodide": pyodide, "pyodide.code": code}}
"""


def run(program: str, **environment: str) -> str:
    """What a program prints in a Python of its own, with the page's modules."""
    process = subprocess.run(
        [sys.executable, "-c", PAGE + program], capture_output=True, text=True, check=False, env=environment
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def examined(source: str, more: str = "") -> dict[str, list[str]]:
    program = f"import weft_packages\nweft_packages.install(['ssl'])\n{more}\nprint(weft_packages.examine({source!r}))"
    return json.loads(run(program))


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        ("import math\nimport email.message, json", ""),
        ("import jax.numpy as jnp, jaxlib", ""),
        ("import absent_one.part as a, absent_two; from absent_three import b", "absent_one absent_three absent_two"),
        ("try: import absent_one\nexcept ImportError: pass", "absent_one"),
        ("def f():\n    from absent_one.x import (\n        y,\n    )", "absent_one"),
        ("'''\nimport absent_one\n'''", ""),
        ("from . import absent_one", ""),
        ("open('absent_one.py', 'w').write('')\nimport absent_one", ""),
    ],
)
def test_what_a_program_lacks(source, missing):
    assert examined(source)["missing"] == missing.split()


def test_lines_of_pip_name_requirements_and_keep_their_place():
    source = "x = 1\n%pip install -q optax==0.2.8 'jax[cpu]' jaxlib>=0.4 # more\nif x:\n    !pip install a b\n"
    assert examined(source) == {"missing": [], "requirements": ["optax==0.2.8", "a", "b"]}
    out = run(f"import weft_packages\nprint(weft_packages.without_pip({source!r})[0])")
    assert out.split("\n")[:4] == [
        "x = 1",
        "pass  # %pip install -q optax==0.2.8 'jax[cpu]' jaxlib>=0.4 # more",
        "if x:",
        "    pass  # !pip install a b",
    ]
    in_string = "text = '''\n%pip install a\n'''"
    assert examined(in_string)["requirements"] == []


@pytest.mark.parametrize("line", ["%pip install -r all.txt", "!pip install git+https://a/b", "%pip install 'a"])
def test_lines_of_pip_that_a_page_can_not_do_are_errors_of_their_line(line):
    source = f"\n{line}"
    out = run(
        "import weft_packages\n"
        f"try: weft_packages.without_pip({source!r}, 'cell 2')\n"
        "except SyntaxError as error: print(error.filename, error.lineno, error.msg)"
    )
    assert out.startswith("cell 2 2 %pip install: ")


def test_a_reason_is_told_to_imports_and_not_to_those_who_only_ask():
    out = run(
        "import importlib.util, weft_packages\n"
        "weft_packages.install([])\n"
        "weft_packages.explain('absent_one', 'the index is closed')\n"
        "print(importlib.util.find_spec('absent_one'))\n"
        "try: import absent_one\n"
        "except ModuleNotFoundError as error: print(error.name, error)\n"
        "weft_packages.explain('absent_one', '')\n"
        "try: import absent_one\n"
        "except ModuleNotFoundError as error: print(error)\n"
    )
    assert out.split("\n")[:3] == [
        "None",
        "absent_one No module named 'absent_one': the index is closed",
        "No module named 'absent_one'",
    ]


def test_wheels_are_checked_before_they_are_unpacked():
    out = run(
        """
import io, zipfile, weft_packages
from weft_packages import check_wheel

def wheel(*names, size=1):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, b"0" * size)
    return file.getvalue()

good = "a-1.0-py3-none-any.whl"
info = "a-1.0.dist-info/METADATA"
weft_packages.MOST_WHEEL_BYTES = 2**20
print(check_wheel(good, wheel(info)) or "taken")
print(check_wheel("a-1.0-cp314-cp314-pyemscripten_2026_0_wasm32.whl", wheel(info)) or "taken")
for name in ("../a-1.0-py3-none-any.whl", "a.whl", "a-1.0-py3-none-any.whl/x", "a-1-py3-none-any.whl\\n", "a" * 500):
    print(check_wheel(name, wheel(info)))
print(check_wheel("a-1.0-cp314-cp314-win_amd64.whl", wheel(info)))
print(check_wheel(good, b"nothing"))
print(check_wheel(good, wheel(info, "../../etc/passwd")))
print(check_wheel(good, wheel(info, "/etc/passwd")))
print(check_wheel(good, wheel("a.py")))
print(check_wheel(good, wheel(info, "big", size=2**20)))
"""
    ).split("\n")
    assert out[:2] == ["taken"] * 2
    assert out[2:7] == ["its name is not that of a wheel, such as package-1.0-py3-none-any.whl"] * 5
    assert [line.split(";")[0].split(":")[0] for line in out[7:13]] == [
        "it is made for win_amd64",
        "it is damaged",
        "it has a file outside of its own folder",
        "it has a file outside of its own folder",
        "it has no .dist-info/METADATA",
        "unpacked it has more than 1 MiB",
    ]


def test_show_of_matplotlib_shows_open_figures_once_and_closes_them():
    pytest.importorskip("matplotlib")
    out = run(
        """
import base64, json
import matplotlib.pyplot as plt

print(plt.get_backend())
plt.plot([1, 2])
plt.figure(7).text(0.1, 0.1, "text alone")
plt.figure()  # nothing on it
plt.show()
print(len(shown), plt.get_fignums())
plt.show()
figure, _ = plt.subplots(figsize=(4, 3), dpi=100)
figure.show()
print(len(shown), plt.get_fignums())
png = base64.b64decode(json.loads(shown[0])["image/png"])
print(png[:4])
""",
        MPLBACKEND="module://weft_matplotlib",
        MPLCONFIGDIR="/tmp",
    ).split("\n")
    assert out[0] == "module://weft_matplotlib"
    assert out[1:4] == ["2 []", "3 [1]", "b'\\x89PNG'"]
