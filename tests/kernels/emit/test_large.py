"""Functions of large numbers: those that the package carries are those that the emitter makes."""

import pytest
from weft_wasm.emit_wasm.large import large_code, make_large_code
from weft_wasm.emit_wasm.large_data import PREPARED
from weft_wasm.ir.nodes import MATH_LARGE


def test_what_engines_use_is_prepared():
    forms = [(dtype, 0, False) for dtype in ("f32", "f64")]
    forms += [(dtype, lanes, relaxed) for dtype, lanes in (("f32", 4), ("f64", 2)) for relaxed in (False, True)]
    assert set(PREPARED) == set(forms)
    assert all(set(sizes) == MATH_LARGE for sizes, _ in PREPARED.values())


@pytest.mark.parametrize("form", PREPARED, ids=str)
@pytest.mark.parametrize("name", sorted(MATH_LARGE))
def test_the_emitter_makes_the_same(name, form):
    assert large_code(name, *form) == make_large_code(name, *form), "run `python tools/large_functions.py`"


def test_other_forms_are_made():
    types, code = large_code("sin_large", "f32", 2, False)
    assert types and code
