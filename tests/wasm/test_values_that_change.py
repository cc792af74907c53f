"""What a lowering may take to stay as it is, in functions where it changes: Wasm computes what the reference rules
do, also where arguments are donated.
"""

import pytest
import wasm_harness
from changing_functions import CASES
from weft import tree


@pytest.mark.parametrize("donated", [False, True], ids=["kept", "donated"])
@pytest.mark.parametrize("name", CASES)
def test_wasm(name, donated):
    fun, args = CASES[name]
    wasm_harness.check(lambda *xs: tree.leaves(fun(*xs)), *args, donated=(donated,) * len(args))
