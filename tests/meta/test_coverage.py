"""docs/coverage.md is current, and what it has to say is good: `make coverage` writes it, `python tools/coverage.py
NAME` explains a line of it.
"""

import importlib.util
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEAST = 0.98  # of all names, present and with jax's parameters

# Functions of lax that no row of the catalogue can cover, and why. They are tested elsewhere.
ROWLESS = {
    "they take and give Python values, not arrays": (
        "broadcast_shapes",
        "conv_dimension_numbers",
        "conv_general_permutations",
        "conv_general_shape_tuple",
        "conv_shape_tuple",
        "conv_transpose_shape_tuple",
        "padtype_to_pads",
        "reduce_window_shape_tuple",
        "dtype",
    ),
    "they need several devices": ("precv", "psend", "ragged_all_to_all"),
}
# Functions that no test can name, and why.
UNTESTABLE: dict = {}


@pytest.fixture(scope="module")
def coverage():
    spec = importlib.util.spec_from_file_location("coverage_page", ROOT / "tools" / "coverage.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def entries(coverage):
    return coverage.entries()


def test_the_page_is_current(coverage, entries):
    assert coverage.PAGE.read_text() == coverage.page(entries), "docs/coverage.md is stale: run `make coverage`"


def test_almost_every_name_is_there_with_jax_s_parameters(entries):
    wrong = [
        (
            f"{e.module}.{e.name}"
            if not e.present
            else f"{e.module}.{e.name}({', '.join(e.parameters[0])}) for ({', '.join(e.parameters[1])})"
        )
        for e in entries
        if not e.complete
    ]
    assert len(wrong) <= (1 - LEAST) * len(entries), (
        f"{len(wrong)} of {len(entries)} names are missing or have other parameters: {'; '.join(wrong)}"
    )


def test_every_operation_has_a_row(coverage, entries):
    excused = {name for names in ROWLESS.values() for name in names}
    of_lax = [e for e in entries if e.module in coverage.OPERATIONS and e.kind == "function" and e.present]
    without = [f"{e.module}.{e.name}" for e in of_lax if not e.rows and e.name not in excused]
    assert not without, f"no row of the operation catalogue calls {', '.join(without)}"
    needless = [e.name for e in of_lax if e.rows and e.name in excused]
    assert not needless, f"{', '.join(needless)} have rows now: take them off ROWLESS"


def test_every_function_is_tested_somewhere(entries):
    excused = {name for names in UNTESTABLE.values() for name in names}
    without = [
        f"{e.module}.{e.name}"
        for e in entries
        if e.kind == "function" and e.present and not e.rows and not e.files and e.name not in excused
    ]
    assert not without, f"no row, test file or example names {', '.join(without)}"
