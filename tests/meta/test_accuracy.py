"""docs/accuracy.md is correct: it has every function and backend, and some of its rows are measured again."""

import pathlib
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from platforms import need, under_test

import weft
from weft.core.primitive import registry

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))  # last: coverage.py is there, too
import accuracy_errors as errors  # noqa: E402
import accuracy_measure as measure  # noqa: E402
import accuracy_page as page  # noqa: E402
from accuracy_cases import CASES, KINDS, PARTS, Complex, Pointwise, Whole, function, is_slow, kinds_of  # noqa: E402
from accuracy_exact import EXACT, reference  # noqa: E402

SLACK = 0.25  # ulp or eps beyond what the page says: processors fuse other multiplications and additions
# Elementwise primitives whose results are never rounded: there is nothing to measure.
NOT_ROUNDED = {
    "is_finite eq ne lt le gt ge eq_to lt_to le_to": "a boolean is right or wrong",
    "not and or xor shift_left shift_right_logical shift_right_arithmetic population_count clz mulhi": "of integers",
    "complex real imag": "parts are moved",
}


def stated():
    """(function, dtype) -> column -> (the error as the page shows it, where it occurs), and the remark."""
    cells, remarks, kind, columns = {}, {}, "", []
    for line in page.PAGE.read_text().split(page.ODD)[0].splitlines():
        if line.startswith("### "):
            kind = next(k for k, dtype in KINDS.items() if line.endswith(f" {dtype.__name__}"))
        elif line.startswith("| function"):
            columns = [c.strip() for c in line.split("|")[2:-1]]
        elif line.startswith("|") and not line.startswith("| ---"):
            name, *values = [c.strip() for c in line.split("|")[1:-1]]
            if columns[-1] == "remark":
                cells[name, kind] = {c: (v, "") for c, v in zip(columns, values[:-1])}
                remarks[name, kind] = values[-1]
            else:
                for column, where in zip([c.removesuffix(", at") for c in columns], values):
                    cells[name, kind][column] = cells[name, kind][column][0], where
    return cells, remarks


CELLS, REMARKS = stated()


def bound(shown):
    """What an error may be where the page shows this."""
    return float("inf") if shown.startswith(">") else float(shown) * 1.05 + SLACK


@pytest.mark.parametrize("kind", KINDS)
def test_it_has_every_function_on_every_backend(kind):
    columns = set(measure.columns_of(kind))
    expected = {name: columns for name, case in CASES.items() if kind in kinds_of(case)}
    assert {name: set(cells) for (name, k), cells in CELLS.items() if k == kind} == expected
    for (name, k), cells in CELLS.items():
        assert all(where and (where != "–" or float(shown) == 0) for shown, where in cells.values()), (name, k)


def test_every_elementwise_primitive_has_a_row():
    """As the operation that a row's function ends with; none is left out but for a reason."""
    # a rule that can't be has no such name
    elementwise = {
        name for name, p in registry.items() if getattr(p.abstract, "__qualname__", "").startswith("_elementwise.")
    }
    assert len(elementwise) > 70
    measured = set()
    for case in CASES.values():
        if not isinstance(case, Whole):
            kind = PARTS[np.float32] if isinstance(case, Complex) else np.float32
            jaxpr = weft.make_jaxpr(function(case.name, weft))(*[np.ones(2, kind)] * case.arity).jaxpr
            measured.add(jaxpr.eqns[-1].primitive.name)
    excused = {name for names in NOT_ROUNDED for name in names.split()}
    assert elementwise - measured == excused


def test_remarks_stand_where_rows_need_them_and_nowhere_else():
    number = lambda shown: float("inf") if shown.startswith(">") else float(shown)  # noqa: E731
    found = {row: {column: number(shown) for column, (shown, _) in cells.items()} for row, cells in CELLS.items()}
    needed = {row for row, errors in found.items() if page.remarkable(CASES[row[0]], errors)}
    assert {row for row, remark in REMARKS.items() if remark} == needed


def remeasured(case, call, args, column):
    """The largest error at these arguments, on this machine."""
    with ThreadPoolExecutor(1) as pool:
        want = None if isinstance(case, Whole) else reference(case, args, pool)
    results = measure.on_weft(case.name, args, measure.device_of(column))
    return measure.found_by(case, {call: args}, {call: results}, want)


@pytest.mark.parametrize("column", [c for c, platform in measure.PLATFORMS.items() if platform in under_test()])
@pytest.mark.parametrize(
    "name", ["exp", "log1p", "erf_inv", "div", "atan2", "complex log", "sum", "softmax", "dot", "fft", "cholesky"]
)
def test_its_bounds_hold(name, column):
    """Where the page says that the error is largest; of elementwise functions at some other points as well."""
    need(measure.PLATFORMS[column])
    case = CASES[name]
    for kind in kinds_of(case):
        if column not in CELLS[name, kind]:
            continue
        shown, where = CELLS[name, kind][column]
        calls = measure.calls(case, kind)
        if isinstance(case, Whole):
            chosen = {where: calls[where]}
        else:
            dtype = calls["points"][0].dtype.type
            recorded = [dtype(complex(v) if isinstance(case, Complex) else float(v)) for v in where.split(", ")]
            some = slice(None, None, 301 if isinstance(case, Pointwise) and is_slow(case, KINDS[kind]) else 61)
            chosen = {"points": [np.append(x[some], np.full(64, v, dtype)) for x, v in zip(calls["points"], recorded)]}
        for call, args in chosen.items():
            found = remeasured(case, call, args, column)
            assert found.error <= bound(shown), (kind, call, found)


def test_errors_are_measured_right():
    """By hand: an ulp of 1 is 2⁻²³; flushing to zero is no error, another number in its place is one."""
    want = np.array([1, 1, 1e-40, 1e-40, np.inf, np.nan])
    got = np.array([1 + 2**-23, 1 + 2**-22, 0, 1, np.inf, np.nan], np.float32)
    found = errors.ulps(got, want)
    assert found[:3].tolist() == [1, 2, 0] and found[3] > errors.FAR and found[4:].tolist() == [0, 0]
    assert np.isinf(errors.ulps(np.float32([np.nan]), np.array([1.0]))).all()
    case, args = CASES["square"], [np.float32([3, 5, 7])]
    assert errors.worst(case, args, np.float32([9, 25 + 2**-18, 49]), np.array([9.0, 25, 49])) == (2, "5.0")
    assert EXACT["square"](3) == 9 and page.shown(2e9) == "> 10⁹" and page.shown(0.5) == "0.5"
