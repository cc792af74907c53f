"""What programs whose values change are written with, and the table that they are put into."""

import numpy as np
from weft_wasm.ir.nodes import (
    Buffer,
    For,
    Kernel,
    Program,
    Store,
    Var,
)


Case = tuple[Program, list[np.ndarray]] | tuple[Program, list[np.ndarray], list[np.ndarray]]
CASES: dict[str, Case] = {}


def case(f):
    """Registers the program that f returns, with the arrays it runs on."""
    CASES[f.__name__] = f()
    return f


def ints(name: str, *shape: int, role: str = "input") -> Buffer:
    return Buffer(name, "i32", shape, role)


def floats(name: str, *shape: int, role: str = "input") -> Buffer:
    return Buffer(name, "f32", shape, role)


def each(n: int, body, kind: str = "parallel", **schedule) -> For:
    """A loop; `body(i)` gives its statements."""
    i = Var("i")
    return For(i, n, body(i), kind, **schedule)


def elementwise(name: str, out: Buffer, value) -> Kernel:
    """out[i] = value(i)"""
    return Kernel(name, [each(out.size, lambda i: [Store(out, i, value(i))])])
