"""One row for each operation: sample arguments, and what holds of it. Tests of values, derivatives, batching and
backends run over the rows.

A row's arguments are specs: 'f32[3,4]' (random normal), with a range ('f32[3]:0.1..0.9'), 'i32[3]:0..5', 'bool[3]';
anything that is no string stands for itself (a static argument, closed over).
"""

from __future__ import annotations

import random
import re
import zlib
from typing import Any, Callable, NamedTuple

from weft import lax
from weft.base.host import from_flat
from weft.base import dtypes

from catalogue_collective import rows as collective_rows
from catalogue_lax import rows as lax_rows
from catalogue_parts import rows as part_rows
from catalogue_rules import rows as rule_rows
from catalogue_special import rows as special_rows

DTYPES = {
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "f64": "float64",
    "i32": "int32",
    "u32": "uint32",
    "u8": "uint8",
    "i8": "int8",
    "bool": "bool",
    "c64": "complex64",
    "i2": "int2",
    "i4": "int4",
    "u2": "uint2",
    "u4": "uint4",
    "f4": "float4_e2m1fn",
    "f8e3": "float8_e3m4",
    "f8e4": "float8_e4m3",
    "f8e4fn": "float8_e4m3fn",
    "f8e4b11": "float8_e4m3b11fnuz",
    "f8e4nz": "float8_e4m3fnuz",
    "f8e5": "float8_e5m2",
    "f8e5nz": "float8_e5m2fnuz",
    "f8e8": "float8_e8m0fnu",
}


class Row(NamedTuple):
    """One operation on one choice of arguments."""

    name: str
    fun: Callable
    args: tuple  # specs
    grad: bool = True  # differentiable in its float arguments
    rtol: float = 2e-5

    @property
    def id(self) -> str:
        return f"{self.name}({', '.join(self.args)})"

    def sample(self) -> list:
        """Host arrays for the arguments, the same at every call."""
        rng = random.Random(zlib.crc32(self.id.encode()))
        return [sample(spec, rng) for spec in self.args]


def sample(spec: str, rng: random.Random):
    kind, sizes, low, high = re.fullmatch(r"(\w+)\[([\d,]*)\](?::(-?[\d.]+?)\.\.(-?[\d.]+))?", spec).groups()
    shape = tuple(int(n) for n in sizes.split(",") if n)
    count = 1
    for n in shape:
        count *= n
    if kind == "bool":
        values: list[Any] = [rng.random() < 0.5 for _ in range(count)]
    elif kind[0] in "iu":
        values = [rng.randint(int(low or (-9 if kind[0] == "i" else 0)), int(high or 9)) for _ in range(count)]
    elif kind == "c64":
        values = [complex(rng.gauss(0, 1), rng.gauss(0, 1)) for _ in range(count)]
    else:
        values = [rng.uniform(float(low), float(high)) if low else rng.gauss(0, 1) for _ in range(count)]
    return from_flat(values, shape, dtypes.dtype(DTYPES[kind]))


def _neumann(a, b):
    """The solution of x + a P x = b, where P reverses, by its series."""
    x = b
    for _ in range(16):
        x = b - a * lax.rev(x, (0,))
    return x


def _rows():
    unary = {
        "neg": "",
        "sign": "",
        "floor": "",
        "ceil": "",
        "exp": "",
        "exp2": "",
        "log": ":0.2..3",
        "expm1": "",
        "log1p": ":-0.5..3",
        "tanh": "",
        "logistic": "",
        "sin": "",
        "cos": "",
        "tan": ":-1..1",
        "asin": ":-0.9..0.9",
        "acos": ":-0.9..0.9",
        "atan": "",
        "sinh": "",
        "cosh": "",
        "asinh": "",
        "acosh": ":1.2..3",
        "atanh": ":-0.9..0.9",
        "sqrt": ":0.2..3",
        "rsqrt": ":0.2..3",
        "cbrt": ":0.2..3",
        "erf": "",
        "erfc": "",
        "erf_inv": ":-0.9..0.9",
        "lgamma": ":0.5..4",
        "square": "",
        "abs": "",
        "is_finite": "",
    }
    for name, domain in unary.items():
        for shape in ("[]", "[3]", "[2,3]"):
            yield Row(name, getattr(lax, name), (f"f32{shape}{domain}",), grad=name not in ("is_finite",), rtol=5e-5)
    yield Row("digamma", lax.digamma, ("f32[4]:0.5..4",), grad=False, rtol=1e-4)
    for name in ("exp", "log", "sin", "tanh", "sqrt"):
        yield Row(name, getattr(lax, name), ("bf16[5]:0.3..2",), grad=False, rtol=2e-2)
        yield Row(name, getattr(lax, name), ("f16[5]:0.3..2",), grad=False, rtol=3e-3)
    for name in ("neg", "sign", "abs", "square", "bitwise_not", "population_count", "clz"):
        yield Row(name, getattr(lax, name), ("i32[2,3]",), grad=False)
    yield Row("bitwise_not", lax.bitwise_not, ("bool[3]",), grad=False)
    for mode in (0, 1):
        yield Row(f"round{mode}", lambda x, mode=mode: lax.round(x, mode), ("f32[6]",))
    for name in ("add", "sub", "mul", "max", "min", "atan2"):
        for a, b in (("f32[3]", "f32[3]"), ("f32[2,3]", "f32[]"), ("f32[2,1]", "f32[1,3]"), ("f32[]", "f32[4]")):
            yield Row(name, getattr(lax, name), (a, b))
    for a, b in (("f32[3]", "f32[3]:0.5..2"), ("f32[2,3]", "f32[]:0.5..2"), ("f32[]", "f32[2,3]:0.5..2")):
        yield Row("div", lax.div, (a, b))
        yield Row("rem", lax.rem, (a, b))
    yield Row("pow", lax.pow, ("f32[3]:0.2..2", "f32[3]"), rtol=5e-5)
    yield Row("nextafter", lax.nextafter, ("f32[3]", "f32[3]"), grad=False)
    for name in (
        "add",
        "sub",
        "mul",
        "div",
        "rem",
        "max",
        "min",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
    ):
        yield Row(name, getattr(lax, name), ("i32[2,3]", "i32[2,3]:1..7"), grad=False)
        yield Row(name, getattr(lax, name), ("u8[4]", "u8[4]:1..7"), grad=False)
    for name in ("shift_left", "shift_right_logical", "shift_right_arithmetic"):
        yield Row(name, getattr(lax, name), ("i32[5]", "i32[5]:0..40"), grad=False)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        yield Row(name, getattr(lax, name), ("f32[2,3]", "f32[]"), grad=False)
    for n in (-2, -1, 0, 2, 3, 5):
        yield Row(f"integer_pow{n}", lambda x, n=n: lax.integer_pow(x, n), ("f32[3]:0.5..2",), rtol=5e-5)
    yield Row("select_n", lambda p, x, y: lax.select_n(p, x, y), ("bool[2,3]", "f32[2,3]", "f32[2,3]"))
    yield Row("select_n", lambda p, x, y: lax.select_n(p, x, y), ("bool[]", "f32[2,3]", "f32[2,3]"))
    yield Row("select_n3", lambda p, *xs: lax.select_n(p, *xs), ("i32[4]:0..2", "f32[4]", "f32[4]", "f32[4]"))
    yield Row("clamp", lax.clamp, ("f32[]:-1..-0.5", "f32[5]", "f32[]:0.5..1"))
    yield Row("clamp", lax.clamp, ("f32[5]:-1..-0.5", "f32[5]", "f32[5]:0.5..1"))
    for old in ("f32", "i32", "u8", "bool", "f16", "bf16"):
        for new in ("float32", "int32", "uint8", "bool", "float16", "bfloat16"):
            yield Row(
                f"convert_{new}",
                lambda x, new=new: lax.convert_element_type(x, new),
                (f"{old}[4]" + (":0..9" if old in ("f32", "f16", "bf16") else ""),),
                grad=False,
            )
    yield Row("bitcast", lambda x: lax.bitcast_convert_type(x, "int32"), ("f32[3]",), grad=False)
    yield Row("bitcast8", lambda x: lax.bitcast_convert_type(x, "uint8"), ("f32[3]",), grad=False)
    yield Row("bitcast_to_itself", lambda x: lax.bitcast_convert_type(x, x.dtype), ("bool[3]",), grad=False)
    yield Row("bitcast_complex", lambda x: lax.bitcast_convert_type(x, x.dtype), ("c64[3]",), grad=False)
    yield Row("reduce_precision", lambda x: lax.reduce_precision(x, 5, 7), ("f32[5]",), grad=False)
    yield Row("complex", lax.complex, ("f32[3]", "f32[3]"), grad=False)
    for name in ("real", "imag", "conj", "abs", "neg", "exp"):
        yield Row(name, getattr(lax, name), ("c64[3]",), grad=False, rtol=5e-5)
    for name in ("mul", "atan2", "max", "min"):
        yield Row(name, getattr(lax, name), ("c64[3]", "c64[3]"), grad=False, rtol=5e-5)
    yield Row("clamp", lax.clamp, ("c64[]:-1..-0.5", "c64[5]", "c64[]:0.5..1"), grad=False)
    # structure
    yield Row("broadcast_in_dim", lambda x: lax.broadcast_in_dim(x, (2, 3, 4), (1,)), ("f32[3]",))
    yield Row("broadcast_in_dim1", lambda x: lax.broadcast_in_dim(x, (3, 4), (0, 1)), ("f32[3,1]",))
    yield Row("reshape", lambda x: lax.reshape(x, (3, 4)), ("f32[2,6]",))
    yield Row("transpose", lambda x: lax.transpose(x, (2, 0, 1)), ("f32[2,3,4]",))
    yield Row("squeeze", lambda x: lax.squeeze(x, (0, 2)), ("f32[1,3,1]",))
    yield Row("rev", lambda x: lax.rev(x, (0, 1)), ("f32[2,3]",))
    yield Row("slice", lambda x: lax.slice(x, (1, 0), (4, 5), (2, 3)), ("f32[5,6]",))
    for config in (((1, 2, 0), (0, 0, 1)), ((-1, 1, 0), (2, -1, 1))):
        yield Row(f"pad{config}", lambda x, v, config=config: lax.pad(x, v, config), ("f32[3,4]", "f32[]"))
    yield Row("concatenate", lambda *xs: lax.concatenate(xs, 1), ("f32[2,3]", "f32[2,1]", "f32[2,4]"))
    yield Row("dynamic_slice", lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 3)), ("f32[5,4]", "i32[]:-9..9"))
    yield Row(
        "dynamic_update_slice",
        lambda x, u, i: lax.dynamic_update_slice(x, u, (i, 1)),
        ("f32[5,4]", "f32[2,3]", "i32[]:-9..9"),
    )
    for mode in ("clip", "fill"):
        numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
        yield Row(
            f"gather_{mode}",
            lambda x, i, mode=mode, numbers=numbers: lax.gather(x, i, numbers, (1, 3), mode=mode, fill_value=0),
            ("f32[4,3]", "i32[5,1]:-2..5"),
        )
        window = lax.GatherDimensionNumbers((1, 2), (), (0, 1))
        yield Row(
            f"gather_window_{mode}",
            lambda x, i, mode=mode, window=window: lax.gather(x, i, window, (2, 2), mode=mode, fill_value=0),
            ("f32[4,3]", "i32[5,2]:-1..4"),
        )
    for name in ("scatter_add", "scatter_mul", "scatter_min", "scatter_max", "scatter"):
        numbers = lax.ScatterDimensionNumbers((1,), (0,), (0,))
        yield Row(
            name,
            lambda x, u, f=getattr(lax, name), numbers=numbers: f(
                x, _constant([[3], [0], [9]]), u, numbers, unique_indices=True
            ),
            ("f32[4,3]", "f32[3,3]"),
        )
    for name in ("scatter_min", "scatter_max"):
        yield Row(
            name,
            lambda x, u, f=getattr(lax, name): f(
                x, _constant([[1], [1], [2]]), u, lax.ScatterDimensionNumbers((), (0,), (0,))
            ),
            ("c64[4]", "c64[3]"),
            grad=False,
        )
    yield Row(
        "scatter_add_twice",
        lambda x, u: lax.scatter_add(x, _constant([[1], [1], [2]]), u, lax.ScatterDimensionNumbers((), (0,), (0,))),
        ("f32[4]", "f32[3]"),
    )
    # reductions
    for name in ("reduce_sum", "reduce_max", "reduce_min", "reduce_prod"):
        for axes in ((0,), (1,), (0, 2), ()):
            yield Row(
                f"{name}{axes}", lambda x, f=getattr(lax, name), axes=axes: f(x, axes), ("f32[2,3,4]",), rtol=5e-5
            )
        yield Row(name, lambda x, f=getattr(lax, name): f(x, (1,)), ("i32[2,3]",), grad=False)
    for name in ("reduce_and", "reduce_or", "reduce_xor"):
        yield Row(name, lambda x, f=getattr(lax, name): f(x, (1,)), ("bool[2,3]",), grad=False)
        yield Row(name, lambda x, f=getattr(lax, name): f(x, (0,)), ("i32[4,3]",), grad=False)
    for name in ("argmax", "argmin"):
        yield Row(name, lambda x, f=getattr(lax, name): f(x, 1, "int32"), ("f32[3,5]",), grad=False)
        yield Row(name, lambda x, f=getattr(lax, name): f(x, 0, "int32"), ("i32[6]:0..2",), grad=False)
    for name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"):
        for reverse in (False, True):
            yield Row(
                f"{name}{reverse}",
                lambda x, f=getattr(lax, name), reverse=reverse: f(x, 1, reverse),
                ("f32[2,5]",),
                rtol=5e-5,
            )
    yield Row("cumlogsumexp_complex", lambda x: lax.cumlogsumexp(x, 1), ("c64[2,5]",), grad=False, rtol=5e-5)
    yield Row("sort", lambda x: lax.sort(x, 1), ("f32[2,5]",))
    yield Row("sort_key_val", lambda k, v: lax.sort_key_val(k, v, 0)[1], ("i32[6]:0..3", "f32[6]"))
    yield Row("top_k", lambda x: lax.top_k(x, 3)[0], ("f32[2,5]",))
    yield Row("top_k_index", lambda x: lax.top_k(x, 3)[1], ("i32[2,5]:0..2",), grad=False)
    # products
    for x, y, numbers in (
        ("f32[3]", "f32[3]", (((0,), (0,)), ((), ()))),
        ("f32[2,3]", "f32[3,4]", (((1,), (0,)), ((), ()))),
        ("f32[2,3,4]", "f32[2,4,5]", (((2,), (1,)), ((0,), (0,)))),
        ("f32[3,2]", "f32[4,3]", (((0,), (1,)), ((), ()))),
        ("f32[2,3,4]", "f32[4,3,2]", (((1, 2), (1, 0)), ((0,), (2,)))),
        ("f32[2]", "f32[3]", (((), ()), ((), ()))),
    ):
        yield Row(
            f"dot_general{numbers}", lambda x, y, numbers=numbers: lax.dot_general(x, y, numbers), (x, y), rtol=5e-5
        )
    yield Row("dot_int", lax.dot, ("i32[2,3]", "i32[3,2]"), grad=False)
    # factors of two dtypes: each becomes the result's first
    for x, y, kind in (
        ("f16", "i8", "int32"),
        ("f16", "f32", "int32"),
        ("i8", "f32", "uint8"),
        ("f32", "c64", "int32"),
        ("i32", "c64", "float32"),
        ("f32", "i8", "bool"),
        ("bool", "f16", "float32"),
    ):
        yield Row(
            f"dot_{x}_{y}_{kind}",
            lambda x, y, kind=kind: lax.dot(x, y, preferred_element_type=kind),
            (f"{x}[2,3]", f"{y}[3,2]"),
            grad=False,
            rtol=1e-3,
        )
    yield Row("dot_bf16", lax.dot, ("bf16[2,3]", "bf16[3,2]"), grad=False, rtol=3e-2)
    yield from _linalg_rows()
    yield from special_rows(Row)
    yield from collective_rows(Row)
    yield from _convolutions()
    yield from lax_rows(Row)
    yield from part_rows(Row)
    yield from rule_rows(Row)
    # control flow
    yield Row("cond", lambda p, x: lax.cond(p, lambda v: lax.sin(v), lambda v: v * v, x), ("bool[]", "f32[3]"))
    yield Row("switch", lambda i, x: lax.switch(i, [lax.sin, lax.cos, lax.exp], x), ("i32[]:0..2", "f32[3]"))
    yield Row(
        "custom_linear_solve",
        lambda d, b: lax.custom_linear_solve(lambda x: d * x, b, lambda _, b: b / d, symmetric=True),
        ("f32[3]:0.5..2", "f32[3]"),
    )
    yield Row(
        "custom_linear_solve2",
        lambda a, b: lax.custom_linear_solve(
            lambda x: x + a * lax.rev(x, (0,)), b, lambda _, b: _neumann(a, b), lambda _, b: _neumann(a, b)
        ),
        ("f32[]:0.1..0.3", "f32[3]"),
        rtol=1e-4,
    )
    yield Row(
        "custom_root",
        lambda a: lax.custom_root(
            lambda x: x * x - a,
            a * 0.0 + 1.0,
            lambda f, x: lax.fori_loop(0, 12, lambda _, x: x - f(x) / (2.0 * x), x),
            lambda g, y: y / g(lax.full_like(y, 1.0)),
        ),
        ("f32[3]:0.5..4",),
        rtol=5e-5,
    )
    yield Row(
        "scan", lambda c, x: lax.scan(lambda c, v: (c * 0.5 + v, lax.sin(c)), c, x)[1], ("f32[]", "f32[5]"), rtol=5e-5
    )
    yield Row("fori_loop", lambda x: lax.fori_loop(0, 4, lambda i, v: v * 0.5 + lax.cos(v), x), ("f32[3]",), rtol=5e-5)
    yield Row(
        "while_loop",
        lambda x: lax.while_loop(lambda v: lax.lt(v, 100.0), lambda v: v * 2.0 + 1.0, x),
        ("f32[]:0.5..2",),
        grad=False,
    )


def _linalg_rows():
    linalg = lax.linalg
    spd = lambda x: (
        lax.dot_general(x, x, (((x.ndim - 1,), (x.ndim - 1,)), (tuple(range(x.ndim - 2)),) * 2))
        + 2.0 * _eye(x.shape[-1])
    )
    for shape in ("[1,1]", "[4,4]", "[2,3,3]"):
        yield Row("cholesky", lambda x: linalg.cholesky(spd(x)), (f"f32{shape}",), rtol=2e-4)
    for left in (False, True):
        for lower in (False, True):
            for transpose in (False, True):
                yield Row(
                    f"triangular_solve{left:d}{lower:d}{transpose:d}",
                    lambda a, b, left=left, lower=lower, transpose=transpose: linalg.triangular_solve(
                        a + 3.0 * _eye(3), b, left_side=left, lower=lower, transpose_a=transpose
                    ),
                    ("f32[3,3]", "f32[3,2]" if left else "f32[2,3]"),
                    rtol=2e-4,
                )
    yield Row(
        "triangular_solve_unit",
        lambda a, b: linalg.triangular_solve(a, b, left_side=True, lower=True, unit_diagonal=True),
        ("f32[2,3,3]", "f32[2,3,2]"),
        rtol=2e-4,
    )
    yield Row(
        "triangular_solve_c64",
        lambda a, b: linalg.triangular_solve(a + 3.0 * _eye(3), b, transpose_a=True, conjugate_a=True),
        ("c64[3,3]", "c64[2,3]"),
        grad=False,
        rtol=2e-4,
    )
    for shape in ("[3,3]", "[4,2]", "[2,4]", "[2,3,3]"):
        yield Row("lu", lambda x: linalg.lu(x + 3.0 * _eye(*x.shape[-2:]))[0], (f"f32{shape}",), rtol=2e-4)
        yield Row("lu_permutation", lambda x: linalg.lu(x)[2], (f"f32{shape}",), grad=False)
    yield Row(
        "lu_pivots_to_permutation", lambda p: linalg.lu_pivots_to_permutation(p, 5), ("i32[2,3]:2..4",), grad=False
    )
    for shape in ("[3,3]", "[4,2]", "[2,3,2]"):
        for part in (0, 1):
            yield Row(
                f"qr{part}",
                lambda x, part=part: linalg.qr(x + 3.0 * _eye(*x.shape[-2:]), full_matrices=False)[part],
                (f"f32{shape}",),
                rtol=2e-4,
            )
    yield Row("qr_full", lambda x: linalg.qr(x)[0], ("f32[4,2]",), grad=False, rtol=2e-4)
    yield Row("qr_c64", lambda x: linalg.qr(x)[1], ("c64[3,2]",), grad=False, rtol=2e-4)
    yield Row(
        "eigvals_abs",
        lambda x: lax.abs(linalg.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]).sum(-1),
        ("f32[2,3,3]",),
        rtol=2e-4,
    )
    yield Row("fft_real", lambda x: lax.real(lax.fft(x, "fft", (4,))), ("f32[2,4]",), rtol=2e-4)
    yield Row("fft", lambda x: lax.fft(x, "fft", (3, 4)), ("c64[2,3,4]",), grad=False, rtol=2e-4)
    yield Row("ifft", lambda x: lax.fft(x, "ifft", (5,)), ("c64[5]",), grad=False, rtol=2e-4)
    for n in (4, 5):
        yield Row(f"fft_rfft{n}", lambda x, n=n: _squares(lax.fft(x, "rfft", (n,))), (f"f32[2,{n}]",), rtol=2e-4)
        yield Row(
            f"fft_irfft{n}", lambda x, y, n=n: lax.fft(lax.complex(x, y), "irfft", (3, n)), ("f32[3,3]",) * 2, rtol=2e-4
        )
    for shape in ("[3,3]", "[2,4,4]"):
        yield Row("eigh_values", lambda x: linalg.eigh(x)[1], (f"f32{shape}",), rtol=2e-4)
        yield Row("eigh_projection", lambda x: _product(linalg.eigh(x)[0][..., :2]), (f"f32{shape}",), rtol=2e-4)
    yield Row("eigh_c64", lambda x: linalg.eigh(x)[1], ("c64[3,3]",), grad=False, rtol=2e-4)
    for shape in ("[3,3]", "[4,2]", "[2,2,3]"):
        yield Row("svd_values", lambda x: linalg.svd(x, compute_uv=False), (f"f32{shape}",), rtol=2e-4)
        yield Row(
            "svd_left", lambda x: _product(linalg.svd(x, full_matrices=False)[0][..., :1]), (f"f32{shape}",), rtol=2e-4
        )
    yield Row("hessenberg", lambda x: linalg.hessenberg(x)[0], ("f32[2,4,4]",), grad=False, rtol=2e-4)
    yield Row(
        "symmetric_product", lambda a, c: linalg.symmetric_product(a, c, alpha=2.0, beta=0.5), ("f32[3,2]", "f32[3,3]")
    )


def _squares(z):
    return lax.real(z) * 2.0 - lax.imag(z)


def _product(v):
    batch = tuple(range(v.ndim - 2))
    return lax.dot_general(v, v, (((v.ndim - 1,), (v.ndim - 1,)), (batch, batch)))


def _eye(m, n=None):
    n = m if n is None else n
    rows, columns = [lax.broadcasted_iota("int32", (m, n), d) for d in (0, 1)]
    return lax.convert_element_type(lax.eq(rows, columns), "float32")


def _convolutions():
    """Convolutions (operand, kernel, keywords) and windows (shape, keywords)."""
    for x, k, keywords in (
        ("f32[2,3,7]", "f32[4,3,3]", dict(window_strides=(2,), padding="SAME")),
        ("f32[1,2,5,6]", "f32[3,2,2,3]", dict(window_strides=(1, 2), padding=[(1, 0), (-1, 2)])),
        (
            "f32[2,5,4,3]",
            "f32[2,3,3,2]",
            dict(window_strides=(1, 1), padding="VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")),
        ),
        (
            "f32[2,4,6]",
            "f32[6,2,3]",
            dict(window_strides=(1,), padding=[(2, 1)], feature_group_count=2, rhs_dilation=(2,)),
        ),
        ("f32[4,3,6]", "f32[4,3,2]", dict(window_strides=(2,), padding=[(0, 1)], batch_group_count=2)),
        ("f32[1,2,4]", "f32[3,2,3]", dict(window_strides=(2,), padding=[(1, 2)], lhs_dilation=(3,), rhs_dilation=(2,))),
        ("f32[3,5]", "f32[2,5]", dict(window_strides=(), padding=[])),
        ("f32[1,1,80]", "f32[1,1,40]", dict(window_strides=(1,), padding="VALID")),
    ):
        yield Row(
            f"conv_general_dilated{keywords}",
            lambda x, k, keywords=keywords: lax.conv_general_dilated(x, k, **keywords),
            (x, k),
            rtol=1e-4,
        )
    yield Row(
        "conv_transpose",
        lambda x, k: lax.conv_transpose(x, k, (2, 1), "SAME"),
        ("f32[1,3,2,2]", "f32[3,2,2,3]"),
        rtol=1e-4,
    )
    yield Row(
        "conv_patches",
        lambda x: lax.conv_general_dilated_patches(x, (2, 3), (2, 1), [(1, 0), (0, -1)]),
        ("f32[2,2,4,5]",),
    )
    yield Row(
        "conv_local",
        lambda x, k: lax.conv_general_dilated_local(x, k, (2,), "VALID", (3,)),
        ("f32[2,2,7]", "f32[4,6,3]"),
        rtol=1e-4,
    )
    yield Row("conv_int", lambda x, k: lax.conv(x, k, (1,), "SAME"), ("i32[1,2,5]", "i32[2,2,3]"), grad=False)
    yield Row(
        "conv_bf16", lambda x, k: lax.conv(x, k, (1,), "SAME"), ("bf16[1,2,5]", "bf16[2,2,3]"), grad=False, rtol=3e-2
    )
    yield Row(
        "conv_wider",
        lambda x, k: lax.conv(x, k, (1,), "SAME", preferred_element_type="float32"),
        ("bf16[1,2,5]", "bf16[2,2,3]"),
        grad=False,
        rtol=1e-4,
    )
    lowest, highest = float("-inf"), float("inf")
    for name, combine, init in (
        ("sum", lax.add, 0.0),
        ("max", lax.max, lowest),
        ("min", lax.min, highest),
        ("mul", lax.mul, 1.0),
    ):
        for x, keywords in (
            ("f32[2,6,5]", dict(window_dimensions=(1, 2, 3), window_strides=(1, 2, 1), padding="SAME")),
            ("f32[7,4]", dict(window_dimensions=(3, 2), window_strides=(2, 1), padding=[(2, 1), (-1, 1)])),
            (
                "f32[5,4]",
                dict(window_dimensions=(2, 2), base_dilation=(2, 1), window_dilation=(1, 3), padding=[(1, 1), (0, 2)]),
            ),
            ("f32[90]:0.9..1.1" if name == "mul" else "f32[90]", dict(window_dimensions=(40,), window_strides=(3,))),
        ):
            yield Row(
                f"reduce_window_{name}{keywords}",
                lambda x, combine=combine, init=init, keywords=keywords: lax.reduce_window(
                    x, init, combine, **keywords
                ),
                (x,),
                rtol=1e-4,
            )
    yield Row(
        "reduce_window_init", lambda x, init: lax.reduce_window(x, init, lax.mul, (2,), (2,)), ("f32[5]", "f32[]")
    )
    yield Row(
        "reduce_window_int",
        lambda x: lax.reduce_window(x, -(2**31), lax.max, (2,), (1,), "SAME"),
        ("i32[7]",),
        grad=False,
    )


def _constant(nested):
    flat = [v for row in nested for v in row]
    return from_flat(flat, (len(nested), len(nested[0])), dtypes.int32)


ROWS = list(_rows())


def needs_numpy(row: Row) -> bool:
    """Whether a row has arrays of a dtype that host arrays have with NumPy alone: those of fewer than 8 bits, and
    float8.
    """
    return row.name.startswith("narrow") or any(spec[:2] in ("i2", "u2", "i4", "u4", "f4", "f8") for spec in row.args)
