"""Small programs that a backend must run as the reference rules say: at least one for each primitive, and ways to
put them together.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import Any, Callable, NamedTuple

import weft
import weft.numpy as jnp
from weft.base import dtypes
from weft import lax
from weft.base.host import np, require_numpy
from weft.experimental.custom_partitioning import custom_partitioning
from weft.scipy import special

KINDS = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "c64": "complex64",
    "c128": "complex128",
    "bool": "bool",
    **{f"{k[0]}{bits}": f"{k}{bits}" for k in ("int", "uint") for bits in (8, 16, 32, 64)},
}
# How far a result may be from the reference's, relative to it and absolutely, by its dtype.
TOLERANCE = {
    "float16": 4e-3,
    "bfloat16": 3e-2,
    "float32": 5e-5,
    "complex64": 1e-4,
    "float64": 1e-11,
    "complex128": 1e-11,
}


class Case(NamedTuple):
    """A program, and specs of its arguments: 'f32[2,3]' (normal numbers), 'f32[3]:0.5..2' (from a range),
    'i32[3]:0..5', 'bool[3]'.
    """

    name: str  # begins with the name of the primitive under test
    fun: Callable[..., Any]
    args: tuple[str, ...]
    looser: float = 1  # the tolerance, times this

    @property
    def primitive(self) -> str:
        return self.name.split()[0]

    @property
    def id(self) -> str:
        return f"{self.name}({', '.join(self.args)})"

    def dtypes(self) -> set[str]:
        """The dtypes of the arguments."""
        return {KINDS[spec.split("[")[0]] for spec in self.args}

    def sample(self) -> list[Any]:
        """NumPy arrays for the arguments, the same at each call."""
        rng = require_numpy("a conformance test").random.default_rng(zlib.crc32(self.id.encode()))
        return [sample(spec, rng) for spec in self.args]


def sample(spec: str, rng: Any) -> Any:
    """A NumPy array as a spec says."""
    found = re.fullmatch(r"(\w+)\[([\d,]*)\](?::(-?[\d.]+?)\.\.(-?[\d.]+))?", spec)
    assert found is not None, spec
    kind, sizes, low, high = found.groups()
    shape, dtype = tuple(int(n) for n in sizes.split(",") if n), dtypes.dtype(KINDS[kind])
    if kind == "bool":
        return rng.random(shape) < 0.5
    if kind[0] in "iu":
        return rng.integers(int(low or (-9 if kind[0] == "i" else 0)), int(high or 9) + 1, shape).astype(dtype)
    values = rng.uniform(float(low), float(high), shape) if low else rng.normal(size=shape)
    return np.asarray(values + 1j * rng.normal(size=shape) if kind[0] == "c" else values).astype(dtype)


def cases() -> list[Case]:
    """All cases, by their unique names."""
    made: dict[str, int] = {}
    found = []
    for case in (
        *elementwise(),
        *structure(),
        *reductions(),
        *products(),
        *control(),
        *randomness(),
        *decompositions(),
        *derived(),
    ):
        number = made[case.id] = made.get(case.id, 0) + 1
        found.append(case if number == 1 else case._replace(name=f"{case.name} {number}"))
    return found


def elementwise() -> Iterator[Case]:
    everywhere, positive = "", ":0.2..3"
    domains = {
        **dict.fromkeys(
            "neg sign floor ceil exp exp2 expm1 tanh logistic sin cos atan sinh cosh asinh erf erfc square abs"
            " is_finite".split(),
            everywhere,
        ),
        **dict.fromkeys("log sqrt rsqrt cbrt lgamma digamma".split(), positive),
        "log1p": ":-0.5..3",
        "tan": ":-1..1",
        "asin": ":-0.9..0.9",
        "acos": ":-0.9..0.9",
        "atanh": ":-0.9..0.9",
        "erf_inv": ":-0.9..0.9",
        "acosh": ":1.2..3",
        "bessel_i0e": ":-9..9",
        "bessel_i1e": ":-9..9",
    }
    for name, domain in domains.items():
        for kind in ("f32[2,3]", "f32[]", "f64[5]", "f16[7]", "bf16[3]"):
            yield Case(name, getattr(lax, name), (kind + domain,), 4)
    for kind in ("f32[2,3]", "f64[5]"):
        yield Case("erfcx", special.erfcx, (kind + ":-1..3",), 4)
    for name in ("sin", "exp", "log", "sqrt", "tanh", "neg", "conj", "real", "imag", "abs", "sign"):
        for kind in ("c64[4]", "c128[2,2]"):
            yield Case(name, getattr(lax, name), (kind,), 4)
    for name in ("add", "sub", "mul", "max", "min"):
        for kind in KINDS:
            for shapes in ((f"{kind}[2,3]", f"{kind}[2,3]"), (f"{kind}[3]", f"{kind}[]")):
                if kind != "bool" or name in ("max", "min"):
                    yield Case(name, getattr(lax, name), shapes)
    for name in ("div", "rem"):
        for kind in ("f32", "f64", "f16", "i8", "i32", "i64", "u8", "u32"):
            yield Case(name, getattr(lax, name), (f"{kind}[2,3]", f"{kind}[2,3]:1..7"))
    for name in ("and", "or", "xor"):
        for kind in ("bool", "i8", "u16", "i32", "u64"):
            yield Case(name, getattr(lax, f"bitwise_{name}"), (f"{kind}[2,3]", f"{kind}[2,3]"))
    for kind in ("bool", "i8", "u32", "i64"):
        yield Case("not", lax.bitwise_not, (f"{kind}[5]",))
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        for kind in ("f32", "i32", "u8", "bf16", "f64", "i64"):
            yield Case(name, getattr(lax, name), (f"{kind}[7]:0..2", f"{kind}[7]:0..2"))
    for name in ("eq_to", "lt_to", "le_to"):
        yield Case(name, lambda x, y, p=getattr(lax, f"{name}_p"): p.bind(x / 0 * lax.sign(y), y), ("f32[6]", "f32[6]"))
    for name in ("shift_left", "shift_right_logical", "shift_right_arithmetic"):
        for kind in ("i32[6]", "u8[6]", "i16[6]", "u64[6]"):
            yield Case(name, getattr(lax, name), (kind, f"{kind}:0..40"))
    for name in ("population_count", "clz"):
        for kind in ("i8[5]", "u16[5]", "i32[5]", "u64[5]"):
            yield Case(name, getattr(lax, name), (kind,))
    yield Case("mulhi", lax.mulhi, ("i32[5]:-1000000000..1000000000",) * 2)
    for kind in ("f32", "f64"):
        yield Case("pow", lax.pow, (f"{kind}[5]:0.2..2", f"{kind}[5]"))
        yield Case("atan2", lax.atan2, (f"{kind}[5]", f"{kind}[5]"))
        yield Case("nextafter", lax.nextafter, (f"{kind}[5]", f"{kind}[5]"))
        for n in (-2, 0, 3):
            yield Case("integer_pow", lambda x, n=n: lax.integer_pow(x, n), (f"{kind}[4]:0.5..2",))
        for mode in (0, 1):
            yield Case("round", lambda x, mode=mode: lax.round(x * 4, mode), (f"{kind}[9]",))
    yield Case("complex", lax.complex, ("f32[3]", "f32[3]"))
    yield Case("clamp", lax.clamp, ("f32[]:-1..-0.5", "f32[5]", "f32[]:0.5..1"))
    yield Case("select_n", lambda p, x, y: lax.select_n(p, x, y), ("bool[2,3]", "f32[2,3]", "f32[2,3]"))
    yield Case("select_n", lambda p, *xs: lax.select_n(p, *xs), ("i32[4]:0..2", *["i8[4]"] * 3))
    yield Case("reduce_precision", lambda x: lax.reduce_precision(x, 5, 7), ("f32[9]",))
    for old in KINDS:
        for new in KINDS.values():
            if KINDS[old] != new and (old[0] != "c" or new[0] == "c"):
                yield Case(
                    "convert_element_type", lambda x, new=new: lax.convert_element_type(x, new), (f"{old}[3]:0..9",)
                )
    yield Case("bitcast_convert_type", lambda x: lax.bitcast_convert_type(x, "int32"), ("f32[3]",))
    yield Case("bitcast_convert_type", lambda x: lax.bitcast_convert_type(x, "uint8"), ("f32[3]",))
    yield Case("igamma", lax.igamma, ("f32[6]:0.3..3", "f32[6]:0.2..9"), 4)
    yield Case("igammac", lax.igammac, ("f32[6]:0.3..3", "f32[6]:0.2..9"), 4)
    yield Case("igamma_grad_a", lax.igamma_grad_a, ("f32[6]:0.3..9", "f32[6]:0.2..9"), 8)
    yield Case("regularized_incomplete_beta", lax.betainc, ("f32[5]:0.2..8", "f32[5]:0.2..8", "f32[5]:0.01..0.99"), 8)
    yield Case("zeta", lax.zeta, ("f32[5]:1.5..6", "f32[5]:0.5..3"), 4)
    yield Case("polygamma", lambda x: lax.polygamma(lax.full_like(x, 1), x), ("f32[5]:1..4",), 8)


def structure() -> Iterator[Case]:
    for kind in ("f32", "i8", "bool", "f64", "c64", "bf16", "i64"):
        yield Case("broadcast_in_dim", lambda x: lax.broadcast_in_dim(x, (2, 3, 4), (1,)), (f"{kind}[3]",))
        yield Case("reshape", lambda x: lax.reshape(x, (3, 4)), (f"{kind}[2,6]",))
        yield Case("transpose", lambda x: lax.transpose(x, (2, 0, 1)), (f"{kind}[2,3,4]",))
        yield Case("slice", lambda x: lax.slice(x, (1, 0), (4, 5), (2, 3)), (f"{kind}[5,6]",))
        yield Case("rev", lambda x: lax.rev(x, (0, 1)), (f"{kind}[2,3]",))
        yield Case("concatenate", lambda *xs: lax.concatenate(xs, 1), (f"{kind}[2,3]", f"{kind}[2,1]", f"{kind}[2,0]"))
        yield Case("pad", lambda x, v: lax.pad(x, v, ((1, 2, 0), (-1, 1, 1))), (f"{kind}[3,4]", f"{kind}[]"))
        yield Case("dynamic_slice", lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 3)), (f"{kind}[5,4]", "i32[]:-9..9"))
        yield Case(
            "dynamic_update_slice",
            lambda x, u, i: lax.dynamic_update_slice(x, u, (i, 1)),
            (f"{kind}[5,4]", f"{kind}[2,3]", "i32[]:-9..9"),
        )
    yield Case("squeeze", lambda x: lax.squeeze(x, (0, 2)), ("f32[1,3,1]",))
    yield Case("iota", lambda x: lax.broadcasted_iota("int32", (3, 4), 1) + x, ("i32[]",))
    yield Case("split", lambda x: lax.split(x, (1, 0, 3), 1), ("f32[2,4]",))
    yield Case("unstack", lambda x: lax.unstack(x, -1), ("f32[2,3]",))
    yield Case("stack", lambda x, y: lax.stack([x, y, x], 1), ("f32[2,3]", "f32[2,3]"))
    yield Case("tile", lambda x: lax.tile(x, (2, 1, 3)), ("f32[2,3,2]",))
    yield Case("copy", jnp.copy, ("f32[3]",))
    yield Case("stop_gradient", lambda x: lax.stop_gradient(x) * 2, ("f32[3]",))
    yield Case("optimization_barrier", lambda x, y: lax.optimization_barrier((x * y, x)), ("f32[3]", "f32[3]"))
    rows = lax.GatherDimensionNumbers((1,), (0,), (0,))
    for mode in ("clip", "fill"):
        yield Case(
            "gather",
            lambda x, i, mode=mode: lax.gather(x, i, rows, (1, 3), mode=mode, fill_value=7),
            ("f32[4,3]", "i32[5,1]:-2..6"),
        )
    for name in ("scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-min", "scatter-max"):
        for kind in ("f32", "i32", "f64"):  # the positions differ, and one is out of bounds
            yield Case(
                name,
                lambda x, u, f=getattr(lax, name.replace("-", "_")): f(
                    x, np.array([[3], [0], [9]], np.int32), u, lax.ScatterDimensionNumbers((1,), (0,), (0,))
                ),
                (f"{kind}[4,3]", f"{kind}[3,3]"),
            )
    yield Case("scatter-add twice", lambda x, i, u: x.at[i].add(u), ("i32[4]", "i32[9]:0..3", "i32[9]"))
    for shape in ("[0]", "[2,0,3]"):
        yield Case("add of nothing", lambda x: (x + 1, x.sum(), jnp.sort(x), x.reshape(-1)), (f"f32{shape}",))
    yield Case("transpose of rank 6", lambda x: lax.transpose(x, (5, 0, 3, 1, 4, 2)) * 2, ("f32[2,1,3,2,2,3]",))


def reductions() -> Iterator[Case]:
    for name in ("reduce_sum", "reduce_max", "reduce_min", "reduce_prod"):
        for kind in ("f32", "i32", "f64", "bf16", "u8"):
            for axes in ((0,), (0, 2), (0, 1, 2)):
                yield Case(name, lambda x, f=getattr(lax, name), axes=axes: f(x, axes), (f"{kind}[2,3,4]:1..2",))
    for name in ("reduce_and", "reduce_or", "reduce_xor"):
        for kind in ("bool", "i32"):
            yield Case(name, lambda x, f=getattr(lax, name): f(x, (1,)), (f"{kind}[4,3]",))
    for name in ("argmax", "argmin"):
        for kind in ("f32[3,5]", "i32[4,6]:0..2"):
            yield Case(name, lambda x, f=getattr(lax, name): f(x, 1, "int32"), (kind,))
    for name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"):
        for reverse in (False, True):
            yield Case(name, lambda x, f=getattr(lax, name), reverse=reverse: f(x, 1, reverse), ("f32[2,5]",))
    yield Case("reduce", lambda x: lax.reduce(x, np.float32(0), lambda a, b: a + b + a * b, (1,)), ("f32[2,5]",))
    yield Case("sort", lambda x: lax.sort(x, 1), ("f32[2,5]",))
    yield Case("sort", lambda k, v, w: lax.sort((k, v, w), 0, num_keys=2), ("i32[7]:0..2", "f32[7]", "i8[7]"))
    yield Case("top_k", lambda x: lax.top_k(x, 3), ("f32[2,5]",))
    yield Case("approx_top_k", lambda x: lax.approx_max_k(x, 2)[0], ("f32[3,5]",))
    for name, combine, start in (
        ("sum", lax.add, 0.0),
        ("max", lax.max, -float("inf")),
        ("min", lax.min, float("inf")),
    ):
        yield Case(
            f"reduce_window_{name}",
            lambda x, combine=combine, start=start: lax.reduce_window(
                x, start, combine, (3, 2), (2, 1), [(2, 1), (-1, 1)]
            ),
            ("f32[7,4]",),
        )
    yield Case("reduce_window", lambda x: lax.reduce_window(x, 1.0, lax.mul, (2,), (1,), "SAME"), ("f32[5]",))


def products() -> Iterator[Case]:
    for kind in ("f32", "f64", "bf16", "i32", "c64"):
        for x, y, numbers in (
            ("[3]", "[3]", (((0,), (0,)), ((), ()))),
            ("[5,7]", "[7,3]", (((1,), (0,)), ((), ()))),
            ("[2,3,4]", "[4,3,2]", (((1, 2), (1, 0)), ((0,), (2,)))),
            ("[2]", "[3]", (((), ()), ((), ()))),
        ):
            yield Case(
                "dot_general", lambda x, y, numbers=numbers: lax.dot_general(x, y, numbers), (kind + x, kind + y), 2
            )
    yield Case("dot_general of odd sizes", lambda x, y: x @ y, ("f32[33,65]", "f32[65,19]"), 4)
    for x, k, keywords in (
        ("f32[2,3,7]", "f32[4,3,3]", {"window_strides": (2,), "padding": "SAME"}),
        (
            "f32[2,5,4,3]",
            "f32[2,3,3,2]",
            {"window_strides": (1, 1), "padding": "VALID", "dimension_numbers": ("NHWC", "HWIO", "NHWC")},
        ),
        (
            "f32[2,4,6]",
            "f32[6,2,3]",
            {"window_strides": (1,), "padding": [(2, 1)], "feature_group_count": 2, "rhs_dilation": (2,)},
        ),
    ):
        yield Case(
            "conv_general_dilated",
            lambda x, k, keywords=keywords: lax.conv_general_dilated(x, k, **keywords),
            (x, k),
            2,
        )
    yield Case(
        "ragged_dot_general",
        lambda x, y: lax.ragged_dot(x, y, np.array([2, 1, 2], np.int32)),
        ("f32[5,3]", "f32[3,3,2]"),
        2,
    )
    for kind, sizes in (("fft", (5,)), ("ifft", (3, 4)), ("rfft", (6,)), ("irfft", (6,))):
        arg = (
            "f32[2,6]"
            if kind == "rfft"
            else "c64[2,4]"
            if kind == "irfft"
            else "c64[3,4]"
            if len(sizes) == 2
            else "c64[2,5]"
        )
        yield Case("fft", lambda x, kind=kind, sizes=sizes: lax.fft(x, kind, sizes), (arg,), 4)


def control() -> Iterator[Case]:
    yield Case("cond", lambda p, x: lax.cond(p, jnp.sin, lambda v: v * v, x), ("bool[]", "f32[3]"))
    yield Case("cond of three", lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.exp], x), ("i32[]:-3..5", "f32[3]"))
    yield Case(
        "scan", lambda c, x: lax.scan(lambda c, v: (c * 0.5 + v, jnp.sin(c)), c, x, reverse=True), ("f32[]", "f32[5]")
    )
    yield Case(
        "scan that swaps", lambda a, b: lax.fori_loop(0, 5, lambda i, s: (s[1], s[0] + i), (a, b)), ("f32[3]", "f32[3]")
    )
    yield Case("scan of no step", lambda c, x: lax.scan(lambda c, v: (c + v, c), c, x), ("f32[2]", "f32[0,2]"))
    yield Case(
        "while",
        lambda x: lax.while_loop(lambda s: s[0] < 100, lambda s: (s[0] * 2 + 1, s[1] + 1), (x, 0)),
        ("f32[]:0.5..2",),
    )
    yield Case("while in scan", _nested, ("i32[]:1..3", "i32[4]:2..5"))
    by_rows = weft.vmap(lambda x: lax.while_loop(lambda v: v < 50, lambda v: v * 2 + 1, x))
    yield Case("while by rows", by_rows, ("f32[6]:0.5..30",))
    yield Case(
        "scan that writes", lambda x: lax.fori_loop(0, 3, lambda i, v: v.at[i].set(v[i + 1] * 2), x), ("f32[5]",)
    )
    yield Case("jit in jit", lambda x: weft.jit(lambda v: weft.jit(jnp.sin)(v) * 2)(x) + 1, ("f32[3]",))
    yield Case(
        "custom_linear_solve",
        lambda d, b: lax.custom_linear_solve(lambda x: d * x, b, lambda _, b: b / d, symmetric=True),
        ("f32[3]:0.5..2", "f32[3]"),
    )


def _nested(c: Any, xs: Any) -> Any:
    """A loop in a loop whose bound and number of iterations are carried."""

    def body(c: Any, x: Any) -> Any:
        def more(s: Any) -> Any:
            n = s[1] + 1
            return n < x, n, s[2] + n

        _, n, t = lax.while_loop(lambda s: s[0], more, (jnp.bool_(True), jnp.int32(0), c))
        return t, n

    return lax.scan(body, c, xs)


def randomness() -> Iterator[Case]:
    random = weft.random
    draw = lambda seed: random.wrap_key_data(jnp.stack([seed, seed + 1]))
    yield Case("random_wrap", lambda s: random.key_data(random.clone(draw(s))), ("u32[]",))
    yield Case("random_seed", lambda s: random.key_data(random.key(s)), ("u32[]",))
    for shape in ((), (5,), (2, 3)):
        yield Case("random_bits", lambda s, shape=shape: random.bits(draw(s), shape), ("u32[]",))
    yield Case("random_split", lambda s: random.key_data(random.split(draw(s), 3)), ("u32[]",))
    yield Case("random_fold_in", lambda s, i: random.uniform(random.fold_in(draw(s), i), (2, 3)), ("u32[]", "i32[]"))
    yield Case("random_bits of normal numbers", lambda s: random.normal(draw(s), (9,)), ("u32[]",), 4)
    yield Case("random_gamma", lambda s, a: random.gamma(draw(s), a), ("u32[]", "f32[4]:0.3..9"), 8)
    yield Case("rng_bit_generator", lambda s: lax.rng_bit_generator(jnp.stack([s, s, s, s]), (3,)), ("u32[]",))


def decompositions() -> Iterator[Case]:
    linalg, eye = lax.linalg, np.eye(3, dtype=np.float32)
    yield Case("cholesky", lambda x: linalg.cholesky(x @ x.mT + 2 * eye), ("f32[2,3,3]",), 4)
    yield Case(
        "triangular_solve",
        lambda a, b: linalg.triangular_solve(a + 3 * eye, b, left_side=True, lower=True),
        ("f32[3,3]", "f32[3,2]"),
        4,
    )
    yield Case("lu", lambda x: linalg.lu(x + 3 * eye), ("f32[3,3]",), 4)
    yield Case("qr", lambda x: jnp.abs(linalg.qr(x, full_matrices=False)[1]), ("f32[4,3]",), 4)
    yield Case(
        "qr of pivots",
        lambda x: jnp.abs(linalg.qr(x * np.asarray([1, 9, 3], np.float32), full_matrices=False, pivoting=True)[1]),
        ("f32[4,3]",),
        8,
    )
    yield Case("lu_pivots_to_permutation", lambda p: linalg.lu_pivots_to_permutation(p, 5), ("i32[2,3]:2..4",))
    yield Case("householder_product", linalg.householder_product, ("f32[2,4,3]:-0.4..0.4", "f32[2,2]"), 4)
    yield Case("ormqr", linalg.ormqr, ("f32[2,4,3]:-0.4..0.4", "f32[2,3]", "f32[2,4,2]"), 4)
    yield Case("cholesky_update", linalg.cholesky_update, ("f32[4,4]:0.5..2", "f32[4]"), 4)
    yield Case("hessenberg", lambda x: linalg.hessenberg(x)[0], ("f32[2,4,4]",), 8)
    yield Case("tridiagonal", lambda x: linalg.tridiagonal(x)[1], ("f32[2,4,4]",), 16)
    yield Case(
        "symmetric_product", lambda a, c: linalg.symmetric_product(a, c, alpha=2.0, beta=0.5), ("f32[3,2]", "f32[3,3]")
    )
    yield Case(
        "eig",
        lambda x: jnp.abs(linalg.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]).sum(-1),
        ("f32[2,3,3]",),
        8,
    )
    yield Case("schur", _schur_product, ("f32[2,3,3]",), 16)
    yield Case("eigh", lambda x: linalg.eigh(x)[1], ("f32[2,3,3]",), 8)
    yield Case("svd", lambda x: linalg.svd(x, compute_uv=False), ("f32[3,2]",), 8)
    yield Case(
        "tridiagonal_solve",
        lambda dl, d, du, b: linalg.tridiagonal_solve(dl, d + 4, du, b),
        (*("f32[5]:-1..1",) * 3, "f32[5,2]"),
        4,
    )


def _writes(x: Any) -> Any:
    ref = weft.new_ref(x)
    ref[1] = ref[0] * 2
    ref[...] += 1
    return weft.freeze(ref)


def _schur_product(x: Any) -> Any:
    t, z = lax.linalg.schur(x)
    return z @ t @ z.mT


def derived() -> Iterator[Case]:
    """Programs that the transformations derive from others."""

    @weft.custom_jvp
    def cube(x: Any) -> Any:
        return x**3

    @weft.custom_vjp
    def twice(x: Any) -> Any:
        return x * 2

    wave = weft.custom_batching.custom_vmap(lambda x: jnp.sin(x))
    wave.def_vmap(lambda size, batched, x: (jnp.sin(x), batched[0]))
    cube.defjvps(lambda t, out, x: 3 * x * x * t)
    twice.defvjp(lambda x: (x * 2, None), lambda _, ct: (ct * 2,))
    yield Case("custom_jvp_call", cube, ("f32[3]",))
    yield Case("custom_vjp_call", twice, ("f32[3]",))
    yield Case("custom_vmap_call", wave, ("f32[3]",))
    yield Case(
        "linear_call",
        lambda r, x: weft.custom_derivatives.linear_call(lambda r, x: x * r, lambda r, ct: ct * r, r, x),
        ("f32[3]", "f32[3]"),
    )
    yield Case("new_ref", _writes, ("f32[3]",))
    yield Case("remat2", lambda x: weft.checkpoint(jnp.sin)(x) * 2, ("f32[3]",))
    yield Case("name", lambda x: weft.ad_checkpoint.checkpoint_name(x * 2, "doubled") + 1, ("f32[3]",))
    yield Case("composite", lambda x: lax.composite(lambda v: jnp.sin(v) + 1, "my.sin")(x), ("f32[3]",))
    halved = custom_partitioning(lambda x: jnp.sin(x) / 2)
    halved.def_partition(lambda *given: None, sharding_rule="i -> i")  # which programs of several devices need
    yield Case("custom_partitioning", halved, ("f32[3]",))
    yield Case("platform_index", lambda x: lax.platform_dependent(x, tpu=jnp.cos, default=jnp.sin), ("f32[3]",))
    pooled = lambda x: (lax.reduce_window(x, -jnp.inf, lax.max, (2,), (2,), "VALID") ** 2).sum()
    yield Case("select_and_scatter_add", weft.grad(pooled), ("f32[6]",))
    yield Case("select_and_gather_add", weft.jacfwd(pooled), ("f32[6]",))
    net = lambda w, b, x: jnp.tanh(x @ w + b).sum()
    yield Case("dot_general differentiated", weft.grad(net, argnums=(0, 1)), ("f32[3,4]", "f32[4]", "f32[5,3]"), 4)
    yield Case("dot_general by rows", weft.vmap(net, in_axes=(None, 0, 1)), ("f32[3,4]", "f32[6,4]", "f32[5,6,3]"), 4)
    yield Case(
        "scan differentiated",
        weft.grad(lambda c, x: lax.scan(lambda c, v: (jnp.sin(c) * v, c), c, x)[0]),
        ("f32[]", "f32[4]"),
        4,
    )
    yield Case(
        "select_n for cond by rows", weft.vmap(lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x)), ("bool[4]", "f32[4]")
    )
    yield Case("sin twice", weft.hessian(lambda x: jnp.sin(x).prod()), ("f32[3]",), 4)
    yield Case("exp of a softmax", weft.jacfwd(weft.nn.softmax), ("f32[4]",), 4)
