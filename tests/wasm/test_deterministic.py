"""The compiler is a function of the program: the order of a set of objects, which their addresses decide, must not
reach the code.
"""

import os

import numpy as np
import pytest
import weft
import weft.numpy as jnp
from weft import lax
from weft.runtime.dispatch import program_for
from weft_wasm.compile import compile_program
from weft_wasm.emit_wgsl import compile_webgpu
from weft_wasm.lower.program import lower

PROGRAMS = {
    "complex functions": (lambda x, y: lax.atan2(x, y), [np.zeros(3, "complex64")] * 2),
    "decompositions": (jnp.linalg.svd, [np.zeros((2, 2, 3), "float32")]),
    "several sums in one loop": (lambda x: (x.sum(), (x * x).sum(), jnp.exp(x).sum()), [np.zeros(5000, "float32")]),
    "sums down columns": (lambda x: (x.mean(0), x.var(0)), [np.zeros((2000, 300), "float32")]),
    "loops": (
        lambda x: lax.scan(lambda c, y: ((c[1] + y, c[0] * y, c[2] - c[0]), c[0].sum()), (x[0], x[1], x[2]), x),
        [np.zeros((20, 6), "float32")],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_compiles_to_the_same_bytes_each_time(name):
    fun, args = PROGRAMS[name]
    found = set()
    elsewhere = []  # objects between those of one round and the next, so that addresses come in another order
    with weft.enable_x64(False):
        program, _ = program_for(weft.make_jaxpr(lambda *xs: weft.tree.leaves(fun(*xs)))(*args))
        for _ in range(12):
            elsewhere += [object() for _ in range(int.from_bytes(os.urandom(2), "big"))]
            wasm = compile_program(lower(program, "main", (), frozenset(("simd128",)))[0]).to_bytes()
            found.add((wasm, compile_webgpu(lower(program, "main", plain=True)[0]).to_bytes()))
    assert len(found) == 1
