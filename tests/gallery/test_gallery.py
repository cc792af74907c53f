"""The documents of the gallery run to their ends, and compute what they say they do."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
GALLERY = EXAMPLES / "gallery"
ENTRIES = json.loads((GALLERY / "gallery.json").read_text())
NAMES = [entry["file"].removesuffix(".py") for entry in ENTRIES]

# By document: variables that it computes, and what must hold of them.
FIGURES = {
    "draw_a_digit": {"accuracy": lambda share: share > 0.95},
    "convolution": {"accuracy": lambda share: share > 0.96, "weights": lambda count: count == 3670},
    "transformer": {"final_loss": lambda loss: loss < 0.3, "share": lambda share: share > 0.7},
    "diffusion": {
        "made": lambda distance: distance < 0.06,
        "covered": lambda distance: distance < 0.06,
        "true": lambda distance: distance < 0.03,
    },
    "neural_ode": {"error_seen": lambda error: error < 0.1, "error_unseen": lambda error: error < 0.25},
    "pinn": {"error": lambda error: error < 0.03},
    "cartpole": {"upright": lambda share: share > 0.95, "first": lambda seconds: seconds < 2},
    "big_model": {
        "counted": lambda ratios: all(abs(ratio - 1) < 1e-6 for ratio in ratios),
        "speeds": lambda speeds: min(speeds) > 0,
        "difference": lambda difference: difference < 1e-3,
    },
    "gaussian_process": {
        "inside": lambda share: share > 0.9,
        "learned": lambda of: 0.06 < of["noise"] < 0.15 and 0.3 < of["length"] < 0.8,
    },
    "hmc": {
        "error": lambda error: error < 0.15,
        "accepted": lambda share: 0.6 < share < 0.95,
        "r_hat": lambda ratios: all(ratio < 1.05 for ratio in ratios),
        "at_31": lambda chance: chance > 0.9,
    },
    "nbody": {
        "drift": lambda drift: drift < 0.02,
        "waver": lambda waver: waver < 0.1,
        "momentum": lambda change: change < 1e-4,
    },
    "reaction_diffusion": {"covered": lambda shares: all(0.05 < share < 0.7 for share in shares)},
    "mandelbrot": {"area": lambda area: 1.5 < area < 1.62},
    "ray_marcher": {"unit": lambda error: error < 1e-4, "error": lambda error: error < 1e-3},
    "filters": {
        "light_lost": lambda share: share < 0.01,
        "plain_edges": lambda edge: edge < 1e-6,
        "softer": lambda share: 0.1 < share < 0.95,
    },
    "sound": {
        "measured": lambda hertz: abs(hertz - 220.5) <= 2,
        "seconds": lambda seconds: 14 < seconds < 15,
    },
}

RUN = """
import json, runpy, sys
import weft.as_jax
found = runpy.run_path(sys.argv[1], run_name="__main__")
values = {name: found[name] for name in sys.argv[2:]}
print(json.dumps(values, default=lambda x: x.tolist()))
"""


def cells(name):
    """Kind and lines of each cell."""
    found = []
    for line in (GALLERY / f"{name}.py").read_text().splitlines():
        if line.startswith("# %%"):
            found.append((line == "# %% [markdown]", []))
        else:
            found[-1][1].append(line)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_runs_to_its_end(name):
    command = [sys.executable, "-c", RUN, str(GALLERY / f"{name}.py"), *FIGURES[name]]
    environment = {**os.environ, "MPLBACKEND": "agg"}
    run = subprocess.run(command, cwd=EXAMPLES / "digits", env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    values = json.loads(run.stdout.splitlines()[-1])
    assert {key: value for key, value in values.items() if not FIGURES[name][key](value)} == {}


def test_a_model_is_handed_to_a_host(tmp_path):
    """The document on offloading, with the address of a host on this machine, computes there what it does here."""
    command = [sys.executable, "-m", "weft_native.host", "--port", "0", "--token=sesame"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as host:
        try:
            address = next(found[0] for line in host.stdout if (found := re.search(r"ws://[\w.:\[\]]+", line)))
            text = (GALLERY / "big_model.py").read_text()
            named = text.replace('ADDRESS, TOKEN = "", ""', f'ADDRESS, TOKEN = "{address}", "sesame"')
            assert named != text
            (tmp_path / "big_model.py").write_text(named)
            command = [sys.executable, "-c", RUN, str(tmp_path / "big_model.py"), "difference"]
            run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "MPLBACKEND": "agg"})
        finally:
            host.terminate()
    assert run.returncode == 0, run.stderr
    *said, values = run.stdout.splitlines()
    assert "results differ by" in said[-1] and json.loads(values)["difference"] < 1e-3


@pytest.mark.parametrize("name", NAMES)
def test_reads_as_an_essay(name):
    found = cells(name)
    assert sum(len(lines) + 1 for _, lines in found) <= 220
    (first_is_text, first), (last_is_text, last) = found[0], found[-1]
    assert first_is_text and first[0].startswith("# # "), "a document begins with its title"
    assert last_is_text and last[0] == "# ## Try next", "and ends with what to try next"
    assert any("http" in line for is_text, lines in found if is_text for line in lines), "it names no source"
    assert any("$" in line for is_text, lines in found if is_text for line in lines), "it has no formula"
    for is_text, lines in found:
        assert is_text or len("\n".join(lines).strip().splitlines()) <= 32, f"a long cell: {lines[0] or lines[1]}"


def test_the_list_is_complete():
    assert sorted(entry["file"] for entry in ENTRIES) == sorted(path.name for path in GALLERY.glob("*.py"))
    for entry in ENTRIES:
        title = cells(entry["file"].removesuffix(".py"))[0][1][0]
        assert title == f"# # {entry['title']}"
        assert entry["description"].endswith(".") and entry["tags"] and 2 <= entry["minutes"] <= 15
        assert (GALLERY / entry["thumbnail"]).stat().st_size <= 12_000
