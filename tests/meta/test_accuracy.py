"""docs/accuracy.md says what is so: it has every function and backend, and a few rows are measured again, at fewer points."""
import pathlib
import re
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from platforms import need, under_test

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import accuracy  # noqa: E402
from accuracy_cases import CASES, Pointwise, points  # noqa: E402

TITLES = {"float32": "f32", "float64": "f64"}
SLACK = 0.25      # ulp or eps beyond what the page says: processors fuse other multiplications and additions


def stated() -> dict[tuple[str, str], dict[str, float]]:
    """(function, dtype) -> the error that the page states for each column; infinite for what it only says is far off."""
    found, kind, columns = {}, "", []
    for line in accuracy.PAGE.read_text().split("\n## Zeros")[0].splitlines():
        if line.startswith("#"):
            kind = next((TITLES[t] for t in TITLES if line.endswith(t)), kind)
        elif line.startswith("| function"):
            columns = [c.strip() for c in line.split("|")[2:-1:2]]
        elif line.startswith("|") and not line.startswith("|-"):
            name, *cells = [c.strip() for c in line.split("|")[1:-1]]
            found[name, kind] = {c: float("inf") if e.startswith(">") else float(e) for c, e in zip(columns, cells[::2]) if e != "–"}
    return found


PAGE = stated()


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_it_has_every_function_on_every_backend(kind):
    columns = {"XLA", "Wasm", "jax"} | ({"WebGPU"} if kind == "f32" else set())
    assert {name: set(cells) for (name, k), cells in PAGE.items() if k == kind} == dict.fromkeys(CASES, columns)


@pytest.mark.parametrize("platform", under_test(*accuracy.PLATFORMS))
@pytest.mark.parametrize("name", ["exp", "sin", "log1p", "erf", "div", "atan2", "sum", "softmax", "dot", "fft", "cholesky", "qr"])
def test_its_bounds_hold(name, platform):
    need(platform)
    for kind in ("f32", "f64") if platform != "webgpu" else ("f32",):
        case, bound = CASES[name], PAGE[name, kind][accuracy.PLATFORMS[platform]] * 1.05 + SLACK
        if isinstance(case, Pointwise):
            args = [x[::31] for x in points(case, accuracy.KINDS[kind])]
            with ThreadPoolExecutor() as pool:
                want = accuracy.reference(case, args, pool)
            error = accuracy.worst(case, args, accuracy.on_weft(name, args, platform)[0], want)
            assert error.error <= bound, (kind, error)
        else:
            for call, args in accuracy.calls(case, kind).items():
                if max(x.size for x in args) <= 100_000:
                    assert accuracy.error_of(case, args, accuracy.on_weft(name, args, platform)) <= bound, (kind, call)


def test_errors_are_measured_right():
    """By hand: an ulp of 1 is 2^-23; flushing to zero is no error, another number in its place is one."""
    import numpy as np
    one = np.float32([1, 1, 1e-40, 1e-40, np.inf, np.nan])
    got = np.float32([1 + 2**-23, 1 + 2**-22, 0, 1, np.inf, np.nan])
    errors = accuracy.ulps(got, one.astype(np.float64))
    assert errors[:3].tolist() == [1, 2, 0] and errors[3] > accuracy.FAR and errors[4:].tolist() == [0, 0]
    assert np.isinf(accuracy.ulps(np.float32([np.nan]), np.array([1.0])))
    assert re.fullmatch(r"> 10⁹", accuracy.shown(2e9)) and accuracy.shown(0.5) == "0.5"
