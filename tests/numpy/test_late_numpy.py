"""NumPy that is imported after weft, as by a program in a page; and its arrays beside those of weft."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import weft
import weft.numpy as jnp
from platforms import need, on, under_test

need("wasm")

# What a page's first cell and the cells after it may do; each line is one case.
CASES = {
    "asarray": ("jnp.asarray(n)", "[0.0, 1.0, 2.0, 3.0]", "float32"),
    "of 64 bits": ("jnp.asarray(np.ones(2))", "[1.0, 1.0]", "float32"),
    "columns first": ("jnp.asarray(np.arange(6.0).reshape(2, 3).T)", "[[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]", "float32"),
    "backwards": ("jnp.asarray(n[::-1])", "[3.0, 2.0, 1.0, 0.0]", "float32"),
    "big endian": ("jnp.asarray(np.array([1, 2], '>i4'))", "[1, 2]", "int32"),
    "no axes": ("jnp.asarray(np.array(3))", "3", "int32"),
    "empty": ("jnp.asarray(np.zeros((0, 3)))", "[]", "float32"),
    "complex": ("jnp.asarray(np.array([1j])).imag", "[1.0]", "float32"),
    "a list of them": ("jnp.array([n, n]).sum(0)", "[0.0, 2.0, 4.0, 6.0]", "float32"),
    "a scalar": ("x + np.float32(2)", "[2.0, 3.0, 4.0, 5.0]", "float32"),
    "on the right": ("x + n", "[0.0, 2.0, 4.0, 6.0]", "float32"),
    "on the left": ("n + x", "[0.0, 2.0, 4.0, 6.0]", "float32"),
    "product": ("np.ones((2, 4), np.float32) @ x", "[6.0, 6.0]", "float32"),
    "jit": ("weft.jit(lambda v: v * 2)(n)", "[0.0, 2.0, 4.0, 6.0]", "float32"),
    "closed over": ("weft.jit(lambda v: v * n)(x)", "[0.0, 1.0, 4.0, 9.0]", "float32"),
    "device_put": ("weft.device_put(n, weft.devices()[0])", "[0.0, 1.0, 2.0, 3.0]", "float32"),
    "pmap": ("weft.pmap(lambda v: v * 2)(n[None])", "[[0.0, 2.0, 4.0, 6.0]]", "float32"),
    "grad": ("weft.grad(lambda v: (v**2).sum())(n)", "[0.0, 2.0, 4.0, 6.0]", "float32"),
    "scan": ("weft.lax.scan(lambda c, v: (c + v, c), np.float32(0), n)[1]", "[0.0, 0.0, 1.0, 3.0]", "float32"),
    "dtype": ("jnp.ones(2, np.int32).astype(np.dtype('float16'))", "[1.0, 1.0]", "float16"),
    "index": ("x[np.array([0, 2])]", "[0.0, 2.0]", "float32"),
    "mask": ("x[n > 1]", "[2.0, 3.0]", "float32"),
    "update": ("x.at[np.int64(0)].set(np.float32(5))", "[5.0, 1.0, 2.0, 3.0]", "float32"),
    "callback": (
        "weft.pure_callback(lambda v: np.asarray(v) * 2, weft.ShapeDtypeStruct((4,), 'float32'), x)",
        "[0.0, 2.0, 4.0, 6.0]",
        "float32",
    ),
    "to NumPy": ("np.asarray(x)", "[0.0, 1.0, 2.0, 3.0]", "float32"),
    "converted": ("np.asarray(x, dtype=np.int64)", "[0, 1, 2, 3]", "int64"),
    "its function": ("np.multiply(x, 2)", "[0.0, 2.0, 4.0, 6.0]", "float32"),
    "device_get": ("weft.device_get({'a': x})['a']", "[0.0, 1.0, 2.0, 3.0]", "float32"),
}


@pytest.fixture(scope="module")
def answers():
    lines = [f"show({name!r}, lambda: {text})" for name, (text, _, _) in CASES.items()]
    program = """
        import sys
        import weft, weft.numpy as jnp
        assert "numpy" not in sys.modules
        x = jnp.arange(4.0)
        import numpy as np
        assert type(np.__spec__.loader).__module__ != "weft.base.late_numpy"
        n = np.arange(4, dtype=np.float32)
        def show(name, f):
            try:
                value = f()
                print(name, type(value).__module__.split(".")[0], value.dtype, value.tolist(), sep="|")
            except Exception as e:
                print(name, "", type(e).__name__, e, sep="|")
    """
    env = {**os.environ, "WEFT_NUMPY": "0", "JAX_PLATFORMS": "wasm"}
    done = subprocess.run(
        [sys.executable, "-c", "\n".join([textwrap.dedent(program), *lines])], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return {line.split("|")[0]: line.split("|")[1:] for line in done.stdout.splitlines()}


@pytest.mark.parametrize("case", CASES)
def test_numpy_may_come_late(answers, case):
    module, dtype, value = answers[case]
    _, wanted, wanted_dtype = CASES[case]
    ours = case not in ("to NumPy", "converted", "its function", "device_get")
    assert (value, dtype, module.startswith("weft")) == (wanted, wanted_dtype, ours)


@pytest.mark.parametrize("platform", under_test())
def test_numpys_operators_leave_the_work_to_ours(platform):
    """As in JAX: the result is an array of the device."""
    with on(platform):
        x = jnp.arange(4.0)
        for y in (np.arange(4.0) + x, np.float32(2) * x, np.ones((2, 4), np.float32) @ x):
            assert isinstance(y, weft.Array)
