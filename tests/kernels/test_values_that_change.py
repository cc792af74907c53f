"""What a compiler may take to stay as it is, in programs where it changes: Wasm computes what the interpreter does."""

import pytest
from changing_programs import CASES, check
from kernel_harness import RELAXED, run_wasm

FEATURES = {"scalar": (), "simd128": ("simd128",), "relaxed": RELAXED}


@pytest.mark.parametrize("schedule", [True, False], ids=["scheduled", "as written"])
@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("name", CASES)
def test_wasm(name, features, schedule):
    check(name, lambda program, *inputs: run_wasm(program, *inputs, features=FEATURES[features], schedule=schedule))
