"""Operations on each element."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..tree import Value
from ..types import Type, complex_of, real_of
from .family import Family

if TYPE_CHECKING:
    from ..maker import Maker

# domain -> (expression, the largest result). Domains: any; two, one and half are bounds of the argument; above: 1/2 to
# 4.5.
FLOATS: dict[str, list[tuple[str, float]]] = {
    "any": [
        ("lax.sin({0})", 1),
        ("lax.cos({0})", 1),
        ("lax.tanh({0})", 1),
        ("lax.logistic({0})", 1),
        ("lax.erf({0})", 1),
        ("lax.erfc({0})", 2),
        ("weft.scipy.special.erfcx(abs({0}))", 1),
        ("lax.atan({0})", 1.6),
        ("lax.sign({0})", 1),
        ("jnp.clip({0}, -1.0, 1.5)", 1.5),
        ("jnp.sinc({0})", 1),
        ("weft.nn.sigmoid({0})", 1),
    ],
    "four": [
        ("lax.neg({0})", 4),
        ("lax.abs({0})", 4),
        ("lax.square({0})", 16),
        ("lax.asinh({0})", 4),
        ("lax.floor({0})", 4),
        ("lax.ceil({0})", 4),
        ("lax.round({0}, 0)", 4),
        ("lax.round({0}, 1)", 4),
        ("lax.integer_pow({0}, 3)", 64),
        ("lax.integer_pow({0}, 0)", 1),
        ("{0} ** 2", 16),
        ("weft.nn.relu({0})", 4),
        ("weft.nn.gelu({0})", 4),
        ("weft.nn.silu({0})", 4),
        ("{0} * 0.5 - 1.0", 3),
        ("{0} / 3.0", 2),
        ("{0} / 7.0 + 1.0", 2),
        ("jnp.nan_to_num({0})", 4),
        ("jnp.trunc({0})", 4),
        ("jnp.modf({0})[0]", 1),
        ("jnp.logaddexp({0}, 1.0)", 6),
        ("jnp.heaviside({0}, 0.5)", 1),
        ("weft.nn.elu({0})", 4),
    ],
    "two": [
        ("lax.exp({0})", 8),
        ("lax.exp2({0})", 4),
        ("lax.expm1({0})", 7),
        ("lax.sinh({0})", 4),
        ("lax.cosh({0})", 4),
        ("lax.integer_pow({0}, 5)", 32),
    ],
    "half": [
        ("lax.asin({0})", 1),
        ("lax.acos({0})", 2.1),
        ("lax.atanh({0})", 1),
        ("lax.tan({0})", 1),
        ("lax.erf_inv({0})", 1),
        ("lax.log1p({0})", 1),
    ],
    "above": [
        ("lax.sqrt({0})", 2.2),
        ("lax.rsqrt({0})", 1.5),
        ("lax.log({0})", 1.6),
        ("lax.cbrt({0})", 2),
        ("lax.lgamma({0})", 3),
        ("lax.digamma({0})", 2),
        ("lax.acosh({0} + 0.75)", 2.5),
        ("lax.integer_pow({0}, -2)", 4),
        ("1.0 / {0}", 2),
        ("lax.reciprocal({0})", 2),
        ("lax.log1p({0})", 2),
        ("{0} ** 0.5", 2.2),
    ],
}
COMPLEX = {
    "four": [
        ("lax.neg({0})", 4),
        ("lax.conj({0})", 4),
        ("{0} * 1j", 4),
        ("lax.square({0})", 16),
        ("lax.sign({0})", 1),
        ("lax.integer_pow({0}, 3)", 64),
    ],
    "two": [
        ("lax.exp({0})", 8),
        ("lax.sin({0})", 4),
        ("lax.cos({0})", 4),
        ("lax.sinh({0})", 4),
        ("lax.cosh({0})", 4),
        ("lax.expm1({0})", 8),
        ("lax.exp2({0})", 4),
    ],
    "half": [
        ("lax.tan({0})", 1),
        ("lax.tanh({0})", 1),
        ("lax.asin({0} + 0.0)", 1),
        ("lax.acos({0})", 3),
        ("lax.atan({0})", 1),
        ("lax.asinh({0})", 1),
        ("lax.atanh({0})", 1),
        ("lax.logistic({0})", 1),
        ("lax.log({0} + 2.0)", 2),
        ("lax.sqrt({0} + 1.5)", 2),
        ("lax.rsqrt({0} + 1.5)", 2),
        ("lax.log1p({0})", 2),
        ("lax.acosh({0} + 2.0)", 3),
        ("lax.integer_pow({0} + 1.5, -1)", 2),
        ("lax.pow({0} + 2.0, {0})", 8),
        ("1.0 / ({0} + 1.5)", 1),
    ],
}
INTEGERS = [
    "lax.neg({0})",
    "lax.abs({0})",
    "lax.sign({0})",
    "lax.bitwise_not({0})",
    "lax.population_count({0})",
    "lax.clz({0})",
    "lax.square({0})",
    "lax.integer_pow({0}, 3)",
    "{0} + 1",
    "{0} * 3",
    "{0} // 2",
    "{0} % 3",
    "-{0} - 1",
    "{0} & 5",
    "{0} >> 1",
    "{0} << 2",
    "jnp.clip({0}, 0, 5)",
]
FEW = [
    "lax.neg({0})",
    "lax.bitwise_not({0})",
    "lax.population_count({0})",
    "lax.clz({0})",
    "lax.sign({0})",
    "lax.abs({0})",
    "lax.square({0})",
]
LIMITS = {"four": 4.0, "two": 2.0, "half": 0.5}
PAIRS = ["lax.add({0}, {1})", "lax.sub({0}, {1})", "lax.mul({0}, {1})", "lax.max({0}, {1})", "lax.min({0}, {1})"]
BITS = ["lax.bitwise_and({0}, {1})", "lax.bitwise_or({0}, {1})", "lax.bitwise_xor({0}, {1})"]
SHIFTS = ["lax.shift_left({0}, {1})", "lax.shift_right_logical({0}, {1})", "lax.shift_right_arithmetic({0}, {1})"]
SIZES = {"float32": 4, "float64": 8, "float16": 2, "bfloat16": 2}  # bytes
COMPARISONS = [
    "lax.eq({0}, {1})",
    "lax.ne({0}, {1})",
    "lax.lt({0}, {1})",
    "lax.le({0}, {1})",
    "lax.gt({0}, {1})",
    "lax.ge({0}, {1})",
]


def unary(m: Maker) -> None:
    v = m.value("fffffffccciiuqb")
    kind = v.type.kind
    if kind == "b":
        m.emit("lax.bitwise_not({0})", v, type=v.type)
    elif kind in "iuq":
        texts = FEW if kind == "q" else INTEGERS
        m.emit(m.rng.choice([t for t in texts if "lax.abs" not in t or v.type.dtype.startswith("int")]), v, type=v.type)
    else:
        function(m, v, FLOATS if kind == "f" else COMPLEX)


def function(m: Maker, v: Value, table: dict[str, list[tuple[str, float]]]) -> None:
    domain, text, bound = m.rng.choice([(domain, *entry) for domain, entries in table.items() for entry in entries])
    m.emit(text, in_domain(m, v, domain), type=v.type, bound=bound)


def in_domain(m: Maker, v: Value, domain: str) -> Value:
    return m.above(v) if domain == "above" else m.within(v, LIMITS[domain]) if domain in LIMITS else v


def binary(m: Maker) -> None:
    v = m.value("ffffciiuqsb")
    w, kind = m.like(v), v.type.kind
    if kind == "b":
        m.emit(m.rng.choice(BITS + PAIRS[3:]), v, w, type=v.type)
    elif kind in "iuq":
        text = m.rng.choice(
            PAIRS
            + BITS
            + SHIFTS
            + ["lax.div({0}, {1})", "lax.rem({0}, {1})"]
            + ["{0} // ({1} | 1)", "{0} % ({1} | 1)"] * (kind in "iu")
            + ["lax.mulhi({0}, {1})"] * (v.type.dtype in ("int32", "uint32"))
            + ["{0} ** ({1} & 3)"] * (kind in "iu")
        )
        m.emit(text, v, w, type=v.type)
    elif kind == "s":
        v, w = m.within(v, 2.0), m.within(w, 2.0)
        m.emit(m.rng.choice([*PAIRS, "lax.nextafter({0}, {1})"]), v, w, type=v.type, bound=4.5)
    else:
        text, v, w, bound = pair_of_floats(m, v, w)
        m.emit(text, v, w, type=v.type, bound=bound)


def pair_of_floats(m: Maker, v: Value, w: Value) -> tuple[str, Value, Value, float]:
    op = m.rng.random()
    if op < 0.6:
        text = m.rng.choice(PAIRS)
        # which come first, by real and imaginary parts
        if v.type.kind == "c" and "lax.m" in text and "mul" not in text:
            v, w = m.still(v), m.still(w)
        if "mul" in text:
            v, w = m.within(v, 16.0), m.within(w, 16.0)
            return text, v, w, v.bound * w.bound * 1.01
        return text, v, w, (v.bound + w.bound) * 1.01
    if v.type.kind == "c":
        v = m.within(v, 2.0)
        if op < 0.8:
            return "lax.div({0}, {1} + 2.0)", v, m.within(w, 1.0), 4.0
        if op < 0.85:
            return "lax.atan2({0}, {1} + 3.0)", m.within(v, 1.0), m.within(w, 1.0), 3.2
        return "lax.mul({0}, lax.conj({1}))", v, m.within(w, 2.0), 8.0
    if op < 0.7:
        return "lax.div({0}, {1})", v, m.above(w), v.bound * 2.01
    if op < 0.75:
        return "lax.rem({0}, {1})", v, m.above(w), 4.6
    if op < 0.8:
        return "lax.pow({0}, {1})", m.above(v), m.within(w, 2.0), 21
    if op < 0.85:
        return "lax.atan2({0}, {1})", v, m.above(w), 3.2
    if op < 0.88:
        return "lax.nextafter({0}, {1})", m.still(v), m.still(w), v.bound * 1.01
    if op < 0.92:
        return "jnp.hypot({0}, {1})", m.within(v, 4.0), m.above(w), 10
    if op < 0.95:
        return "jnp.copysign({0}, {1})", m.within(v, 4.0), w, 4.0
    return "{0} - {1} * jnp.floor({0})", m.within(v, 4.0), m.within(w, 2.0), 16.0


def compare(m: Maker) -> None:
    v = m.value("ffiiubqsc")
    texts = COMPARISONS if v.type.kind != "c" else [*COMPARISONS[:2], "{0} < {1}", "{0} >= {1}"]
    m.emit(m.rng.choice(texts), v, m.like(v), type=v.type.of("bool"))


def classify(m: Maker) -> None:
    v = m.value("f")
    m.emit(
        m.rng.choice(["lax.is_finite({0})", "jnp.isnan({0})", "jnp.signbit({0})", "{0} < 0.5", "{0} == {0}"]),
        v,
        type=v.type.of("bool"),
    )


def select(m: Maker) -> None:
    v = m.value("fffiubcqs")
    w, way = m.like(v), m.rng.random()
    bound = max(v.bound, w.bound)
    if way < 0.6:
        which = m.like(v, v.type.of("bool")) if m.chance(0.7) else m.flag()
        m.emit(
            "lax.select_n({0}, {1}, {2})" if m.chance(0.5) else "jnp.where({0}, {2}, {1})",
            which,
            v,
            w,
            type=v.type,
            bound=bound,
        )
    elif way < 0.75:
        z, which = m.like(v), m.as_dtype(m.like(v, v.type.of(m.palette.int)), "int32")
        m.emit(
            "lax.select_n(jnp.clip({0}, 0, 2), {1}, {2}, {3})", which, v, w, z, type=v.type, bound=max(bound, z.bound)
        )
    elif v.type.kind in "fiub":
        m.emit(
            "lax.clamp(jnp.minimum({0}, {1}), {2}, jnp.maximum({0}, {1}))", v, w, m.like(v), type=v.type, bound=bound
        )
    else:
        m.emit("jnp.where({0} == {1}, {0}, {1})", v, w, type=v.type, bound=bound)


def broadcasting(m: Maker) -> None:
    """Operands of different shapes, or one number."""
    v = m.value("ffiuc", least=1)
    keep = [n if m.chance(0.5) else 1 for n in v.type.shape]
    shape = tuple(keep) if m.chance(0.6) else v.type.shape[m.rng.randint(1, v.type.rank) :]
    w = m.like(v, v.type.shaped(*shape))
    v, w = m.within(v, 16.0), m.within(w, 16.0)
    if v.type.kind == "f" and m.chance(0.2):
        m.emit("{0} / {1}", v, m.above(w), type=v.type, bound=2 * v.bound)
        return
    text = m.rng.choice(
        [
            "{0} + {1}",
            "{1} - {0}",
            "{0} * {1}",
            "jnp.maximum({0}, {1})" if v.type.kind != "c" else "{1} * {0} - {0}",
            "jnp.where({1} == 0, {0}, {1})",
        ]
    )
    m.emit(
        text,
        v,
        w,
        type=v.type,
        bound=2 * max(v.bound, w.bound, v.bound * w.bound, 1) if v.type.kind in "fc" else float("inf"),
    )


def to_dtype(m: Maker) -> None:
    v = m.value("fffiubcqs")
    if v.type.kind == "c" and m.chance(0.4):  # the real part, or whether there is anything
        dtype = m.rng.choice([real_of(v.type.dtype), "bool"])
        m.emit(f"{{0}}.astype({dtype!r})", v, type=v.type.of(dtype), bound=v.bound)
    else:
        m.as_dtype(v, m.rng.choice(m.palette.dtypes))


def bits(m: Maker) -> None:
    """The same bits as another type, or as their own; of narrow integers as wider ones."""
    v = m.still(m.value("fffiiiubcqs"))
    if v.type.kind in "bcqs" or m.chance(0.1):
        m.emit(f"lax.bitcast_convert_type({{0}}, {v.type.dtype!r})", v, type=v.type, bound=v.bound)
        return
    if v.type.rank < 6 and m.chance(0.3):
        size = m.rng.choice(
            [n for n in (2, 4, 8) if f"uint{8 * n}" in m.world.settings.dtypes and (n < 8 or m.world.x64)]
        )
        narrow = m.as_type(v, Type("uint8", (*v.type.shape, size)))
        m.emit(f"lax.bitcast_convert_type({{0}}, 'uint{8 * size}')", narrow, type=v.type.of(f"uint{8 * size}"))
        return
    size = SIZES.get(v.type.dtype) or v.type.bits() // 8
    names = [n for n in (f"int{8 * size}", f"uint{8 * size}", "uint8") if n in m.world.settings.dtypes]
    name = m.rng.choice(names)
    new = Type(name, v.type.shape).bits() // 8
    m.emit(
        f"lax.bitcast_convert_type({{0}}, {name!r})",
        v,
        type=Type(name, v.type.shape if size == new else (*v.type.shape, size // new)),
    )


ACCURATE = ["exp", "sin", "cos", "tanh", "tan", "logistic", "cbrt", "expm1"]
ACCURACY = [
    "lax.AccuracyMode.HIGHEST",
    "lax.AccuracyMode.DEFAULT",
    "lax.Tolerance(1e-3, 1e-3, 0)",
    "lax.Tolerance(0.0, 0.0, 1)",
    "lax.Tolerance(0.0, 1e-7, 0)",
]


def accurate(m: Maker) -> None:
    """Functions with a bound of their errors."""
    v = m.within(m.as_dtype(m.value("f"), "float32"), 0.5)
    m.emit(f"lax.{m.rng.choice(ACCURATE)}({{0}}, accuracy={m.rng.choice(ACCURACY)})", v, type=v.type, bound=2.0)


def powers_of_two(m: Maker) -> None:
    """By way of the format that has nothing else."""
    v = m.still(m.above(m.value("f")))
    m.emit(f"{{0}}.astype('float8_e8m0fnu').astype({v.type.dtype!r})", v, type=v.type, bound=8.0)


def rounded(m: Maker) -> None:
    v = m.value("f")
    exponent, mantissa = m.rng.choice([(8, 7), (5, 10), (8, 10), (5, 2), (8, 23)])
    v = m.within(v, 1000.0)
    m.emit(f"lax.reduce_precision({{0}}, {exponent}, {mantissa})", v, type=v.type, bound=v.bound * 1.3)


def complexes(m: Maker) -> None:
    """Complex numbers of their parts, and parts of them."""
    v = m.maybe("c")
    if not m.palette.of_kinds("c"):
        return
    if v is None or m.chance(0.3):
        x = m.as_dtype(m.value("f"), "float32" if m.palette.float not in ("float32", "float64") else m.palette.float)
        if complex_of(x.type.dtype) not in m.world.settings.dtypes:
            x = m.as_dtype(x, "float32")
        y = m.like(x)
        m.emit("lax.complex({0}, {1})", x, y, type=x.type.of(complex_of(x.type.dtype)), bound=x.bound + y.bound)
        return
    real = v.type.of(real_of(v.type.dtype))
    text = m.rng.choice(
        [
            "lax.real({0})",
            "lax.imag({0})",
            "lax.abs({0} + 2.0)",
            "jnp.angle({0} + 6.0)",
            "lax.real({0} * lax.conj({0}))",
        ]
    )
    v = m.within(v, 4.0)
    m.emit(text, v, type=real, bound=32.0 if "conj" in text else 7.0)


def complex_function(m: Maker) -> None:
    if m.palette.of_kinds("c"):
        function(m, m.value("c"), COMPLEX)


FAMILIES = {
    "unary": Family(unary, 5),
    "binary": Family(binary, 6),
    "compare": Family(compare, 1.5),
    "classify": Family(classify, 0.5),
    "select": Family(select, 2),
    "broadcasting": Family(broadcasting, 2),
    "to_dtype": Family(to_dtype, 2),
    "bits": Family(bits, 0.7),
    "rounded": Family(rounded, 0.3),
    "accurate": Family(accurate, 0.2, finite=True),
    "powers_of_two": Family(powers_of_two, 0.15, finite=True),
    "complexes": Family(complexes, 1),
    "complex_function": Family(complex_function, 0.7),
}
