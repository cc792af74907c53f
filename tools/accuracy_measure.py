"""Measures the errors of functions on every backend and in real jax, and saves them for tools/accuracy.py."""

from __future__ import annotations

import functools
import hashlib
import json
import multiprocessing
import os
import pathlib
import subprocess
import tempfile
import time
import types
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from typing import Any, NamedTuple

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())  # wgpu warns without it
import weft  # noqa: E402
from weft_wasm.backends.wasm import WasmBackend  # noqa: E402
from weft_wasm.runtimes.desktop import DesktopRuntime  # noqa: E402

from accuracy_cases import CASES, KINDS, Arrays, Case, Complex, Pointwise, Whole, arguments, evaluate  # noqa: E402
from accuracy_cases import kinds_of, load, plane, points  # noqa: E402
from accuracy_cases import save as save_arrays  # noqa: E402
from accuracy_errors import Found, at, error_of, worst, worst_complex  # noqa: E402
from accuracy_exact import reference  # noqa: E402

JAX = "jax 0.10.2"
PLATFORMS = {"XLA": "cpu", "Wasm": "wasm", "Wasm, plain SIMD": "wasm", "WebGPU": "webgpu"}
COLUMNS = (*PLATFORMS, JAX)
SAVED = ROOT / "build" / "accuracy"
AT_ONCE = 6  # functions for each process of jax


class Cell(NamedTuple):
    """What was measured of a function in one dtype on one backend.

    special: what it gives at zeros, infinities and NaN. arguments, sources: digests of what the cell depends on."""

    error: float
    where: str
    special: dict[str, str]
    arguments: str
    sources: str
    seconds: float


# what a cell depends on ----------------------------------------------------------------------------------------------


def digest(*parts: bytes | str) -> str:
    made = hashlib.sha256()
    for part in parts:
        made.update(part.encode() if isinstance(part, str) else part)
        made.update(b"\0")
    return made.hexdigest()[:16]


def _code(value: Any) -> str:
    """A function's code as text that is the same in every process."""
    if not isinstance(value, types.CodeType):
        return repr(value)
    return f"{value.co_code!r} {value.co_names} {[_code(c) for c in value.co_consts]}"


def digest_of(case: Case, given: dict[str, Arrays]) -> str:
    path = case.path if isinstance(case.path, str) else _code(case.path.__code__)
    return digest(path, *[p for call, args in given.items() for x in args for p in (call, str(x.shape), x.tobytes())])


@functools.cache
def sources(column: str) -> str:
    """A digest of the sources that decide what a column computes."""
    if column == JAX:
        return JAX
    folders = ("packages/weft/src", "native/src" if column == "XLA" else "wasm/src")
    files = sorted(p for folder in folders for p in (ROOT / folder).rglob("*.py"))
    return digest(*[p.read_bytes() for p in files])


# measuring -----------------------------------------------------------------------------------------------------------


def calls(case: Case, kind: str) -> dict[str, Arrays]:
    """name of a call -> arguments. Elementwise functions have one."""
    if isinstance(case, Whole):
        return arguments(case, KINDS[kind])
    return {"points": points(case, KINDS[kind]) if isinstance(case, Pointwise) else plane(case, KINDS[kind])}


def columns_of(kind: str) -> list[str]:
    """The columns of a dtype: WebGPU has no float64."""
    return [c for c in COLUMNS if kind != "f64" or c != "WebGPU"]


@functools.cache
def device_of(column: str) -> Any:
    if column != "Wasm, plain SIMD":
        return weft.devices(PLATFORMS[column])[0]
    runtime = DesktopRuntime()
    runtime.features = ("simd128",)
    return WasmBackend(runtime).devices()[0]


def on_weft(name: str, args: Arrays, device: Any) -> Arrays:
    double = args[0].real.dtype == np.float64
    with weft.default_device(device), weft.enable_x64(double), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return evaluate(name, weft, args)


def on_jax(wanted: Sequence[tuple[str, str]]) -> dict[tuple[str, str, str], Arrays]:
    """(function, dtype, call) -> results of real jax, for functions and dtypes."""
    python = os.environ.get("WEFT_ORACLE_PYTHON", str(ROOT / "build/oracle/bin/python"))
    found: dict[tuple[str, str, str], Arrays] = {}
    with tempfile.TemporaryDirectory() as folder:
        inputs, results = pathlib.Path(folder, "inputs.npz"), pathlib.Path(folder, "results.npz")
        given = {
            f"{name}/{kind}/{call}/{k}": x
            for name, kind in wanted
            for call, args in calls(CASES[name], kind).items()
            for k, x in enumerate(args)
        }
        save_arrays(str(inputs), given)
        subprocess.run([python, str(ROOT / "tools/accuracy_cases.py"), str(inputs), str(results)], check=True)
        for key, x in load(str(results)).items():
            name, kind, call, _ = key.split("/")
            found.setdefault((name, kind, call), []).append(x)
    return found


def found_by(case: Case, given: dict[str, Arrays], results: dict[str, Arrays], want: np.ndarray | None) -> Found:
    """The largest error of one column's results. want: the exact values of an elementwise function."""
    if isinstance(case, Whole):
        errors = [Found(error_of(case, args, results[call]), call) for call, args in given.items()]
        return max(errors, key=lambda found: found.error)
    assert want is not None
    measure = worst_complex if isinstance(case, Complex) else functools.partial(worst, case)
    return measure(given["points"], results["points"][0], want)


def special(args: Arrays, got: np.ndarray) -> dict[str, str]:
    """The results where an argument is zero, infinite or NaN."""
    odd = np.flatnonzero(np.logical_or.reduce([~np.isfinite(x) | (x == 0) for x in args]))
    return {at(args, k): f"{float(got[k]):.4g}" for k in odd}


def measured(case: Case, kind: str, columns: Sequence[str], jax: dict, pool: Executor) -> dict[str, Cell]:
    """The cells of a row that these columns are for."""
    given = calls(case, kind)
    want = None if isinstance(case, Whole) else reference(case, given["points"], pool)
    cells = {}
    for column in columns:
        start = time.perf_counter()
        if column == JAX:
            results = {call: jax[case.name, kind, call] for call in given}
        else:
            results = {call: on_weft(case.name, args, device_of(column)) for call, args in given.items()}
        seconds = time.perf_counter() - start
        odd = special(given["points"], results["points"][0]) if isinstance(case, Pointwise) else {}
        error, where = found_by(case, given, results, want)
        cells[column] = Cell(error, where, odd, digest_of(case, given), sources(column), round(seconds, 2))
    return cells


# what is saved -------------------------------------------------------------------------------------------------------


def _file(name: str, kind: str) -> pathlib.Path:
    return SAVED / f"{name.replace(' ', '_')}.{kind}.json"


def saved(name: str, kind: str) -> dict[str, Cell]:
    file = _file(name, kind)
    return {c: Cell(**cell) for c, cell in json.loads(file.read_text()).items()} if file.exists() else {}


def save(name: str, kind: str, cells: dict[str, Cell]) -> None:
    """Saves the file as a whole: an interruption never leaves half of it."""
    SAVED.mkdir(parents=True, exist_ok=True)
    draft = SAVED / f"{os.getpid()}.draft"
    draft.write_text(json.dumps({c: cell._asdict() for c, cell in cells.items()}, indent=1, ensure_ascii=False))
    draft.replace(_file(name, kind))


def stale(case: Case, kind: str) -> list[str]:
    """The columns without a cell for the current arguments and sources."""
    have, arguments = saved(case.name, kind), digest_of(case, calls(case, kind))
    current = {c for c, cell in have.items() if (cell.arguments, cell.sources) == (arguments, sources(c))}
    return [c for c in columns_of(kind) if c not in current]


def work(names: Sequence[str], again: bool) -> Iterator[tuple[str, str, list[str]]]:
    for name in names:
        for kind in kinds_of(CASES[name]):
            columns = columns_of(kind) if again else stale(CASES[name], kind)
            if columns:
                yield name, kind, columns


def measure(names: Sequence[str], again: bool) -> None:
    """Measures and saves; with `again` also cells that are saved already."""
    jobs = list(work(names, again))
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        for start in range(0, len(jobs), AT_ONCE):
            some = jobs[start : start + AT_ONCE]
            wanted = [(name, kind) for name, kind, columns in some if JAX in columns]
            jax = on_jax(wanted) if wanted else {}
            for k, (name, kind, columns) in enumerate(some, start + 1):
                cells = measured(CASES[name], kind, columns, jax, pool)
                save(name, kind, saved(name, kind) | cells)
                shown = [f"{c} {cell.error:.3g} ({cell.where}) {cell.seconds:.1f} s" for c, cell in cells.items()]
                print(f"{k}/{len(jobs)} {name} {kind}:", "; ".join(shown), flush=True)
