"""Special functions, total orders, pieces of lax that few programs use, named axes, and references."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..types import Type
from .family import Family

if TYPE_CHECKING:
    from ..maker import Maker

# of a number from 1/2 to 4.5
ONE = [
    ("lax.bessel_i0e({0})", 1.0),
    ("lax.bessel_i1e({0})", 1.0),
    ("lax.polygamma(jnp.full_like({0}, 1.0), {0})", 5.0),
    ("lax.zeta(jnp.full_like({0}, 2.5), {0})", 8.0),
    ("lax.betainc(jnp.full_like({0}, 1.5), jnp.full_like({0}, 3.0), {0} * 0.2)", 1.0),
    ("lax.igamma(jnp.full_like({0}, 1.5), {0})", 1.0),
    ("lax.igammac(jnp.full_like({0}, 1.5), {0})", 1.0),
]
TWO = [
    ("lax.igamma({0}, {1})", 1.0),
    ("lax.igammac({0}, {1})", 1.0),
    ("lax.igamma_grad_a({0}, {1})", 4.0),
    ("lax.random_gamma_grad({0}, {1})", 8.0),
    ("lax.betainc({0}, {1}, {0} * 0.2)", 1.0),
    ("lax.zeta({0} + 1.0, {1})", 30.0),
]


def special(m: Maker) -> None:
    v = m.value("f", most=24)
    v = m.above(v if v.type.dtype in ("float32", "float64") else m.as_dtype(v, "float32"))
    if m.chance(0.5):
        text, bound = m.rng.choice(ONE)
        m.emit(text, v, type=v.type, bound=bound)
    else:
        v = m.still(v)
        text, bound = m.rng.choice(TWO)
        m.emit(text, v, m.still(m.above(m.like(v))), type=v.type, bound=bound)


def total_order(m: Maker) -> None:
    v = m.value("fi")
    m.emit(
        f"lax.{m.rng.choice(['eq_to', 'lt_to', 'le_to'])}_p.bind({{0}}, {{1}})", v, m.like(v), type=v.type.of("bool")
    )


def approximate(m: Maker) -> None:
    v = m.value("f", least=1)
    n = v.type.shape[-1]
    if n == 0 or v.type.dtype not in ("float32", "bfloat16", "float16"):
        return
    k = m.rng.randint(1, min(n, 3))
    shape = (*v.type.shape[:-1], k)
    m.emit(f"lax.approx_{m.rng.choice(['max', 'min'])}_k({{0}}, {k})[0]", v, type=v.type.shaped(*shape), bound=v.bound)


def ragged(m: Maker) -> None:
    """A product whose rows belong to groups of sizes that the program computes."""
    rows, inner, columns = m.rng.randint(1, 6), m.rng.randint(1, 4), m.rng.randint(1, 3)
    x = m.within(m.as_type(m.value("f"), Type("float32", (rows, inner))), 4.0)
    w = m.within(m.as_type(m.value("f"), Type("float32", (3, inner, columns))), 4.0)
    sizes = m.as_type(m.value("iu"), Type("int32", (3,)))
    sizes = m.emit(f"jnp.minimum({{0}} & 3, {rows // 3})", sizes, type=sizes.type)
    m.emit("lax.ragged_dot({0}, {1}, {2})", x, w, sizes, type=Type("float32", (rows, columns)), bound=16.0 * inner)


def apply_at(m: Maker) -> None:
    """A function of the elements at some places."""
    v = m.within(m.value("f", least=1), 2.0)
    n = v.type.shape[0]
    if n == 0:
        return
    rows = m.rng.sample(range(n), m.rng.randint(1, min(n, 3)))
    window = tuple(range(1, v.type.rank))
    numbers = f"lax.ScatterDimensionNumbers({window}, (0,), (0,))"
    m.emit(
        f"lax.scatter_apply({{0}}, np.array({[[r] for r in rows]}), lambda x: x * x + 0.5, {numbers}, "
        f"update_shape={(len(rows), *v.type.shape[1:])}, unique_indices=True)",
        v,
        type=v.type,
        bound=5.0,
    )


def scaled(m: Maker) -> None:
    x = m.within(m.as_type(m.value("f"), Type("float32", (2, 6))), 4.0)
    w = m.within(m.as_type(m.value("f"), Type("float32", (6, 3))), 4.0)
    s = m.within(m.as_type(m.value("f"), Type("float32", (2, 3))), 2.0)
    text = "lax.scaled_dot({0}, {1}, lhs_scale={2}, preferred_element_type='float32')"
    m.emit(text, x, w, s, type=Type("float32", (2, 3)), bound=200.0)


def staged(m: Maker) -> None:
    """What changes nothing, or only where it runs."""
    v = m.within(m.value("fiu"), 4.0)
    texts = [
        "lax.stage({0})",
        "lax.platform_dependent({0}, tpu=lambda x: x * 0, default=lambda x: x + x)",
        "lax.empty({shape}, {dtype}) * 0 + {0}",
        "{0} + lax.shape_as_value(({n},)).astype({dtype})[0]",
        "weft.ad_checkpoint.checkpoint_name({0}, 'kept')",
        "weft.device_put({0})",
    ]
    text = (
        m.rng.choice(texts)
        .replace("{shape}", str(v.type.shape))
        .replace("{dtype}", repr(v.type.dtype))
        .replace("{n}", "3")
    )
    m.emit(text, v, type=v.type, bound=v.bound * 2 + 3)


def solver(m: Maker) -> None:
    """Solutions of equations that are given as functions."""
    v = m.within(m.as_dtype(m.value("f", most=24), "float32"), 2.0)
    d = m.above(m.like(v))
    if m.chance(0.6):
        text = "lax.custom_linear_solve(lambda x: {0} * x, {1}, lambda _, b: b / {0}, symmetric=True)"
        m.emit(text, d, v, type=v.type, bound=4.0)
    else:
        text = (
            "lax.custom_root(lambda x: x * x - {0}, {0} * 0.0 + 1.0, lambda f, x: lax.fori_loop(0, 8, lambda _, x: x -"
            " f(x) / (2.0 * x), x), lambda g, y: y / g(jnp.ones_like(y)))"
        )
        m.emit(text, d, type=d.type, bound=4.0)


def named_axis(m: Maker) -> None:
    """Communication between the members of a mapped axis."""
    v = m.within(m.value("fffi", least=1), 4.0)
    n = v.type.shape[0]
    if n == 0 or v.type.size > 60:
        return
    whole = (
        [f"lax.{name}(x, 'i')" for name in ("psum", "pmean", "pmax", "pmin")]
        if v.type.kind == "f"
        else ["lax.psum(x, 'i')", "lax.pmax(x, 'i')"]
    )
    shift = [(k, (k + 1) % n) for k in range(n)]
    same = [
        *whole,
        f"lax.ppermute(x, 'i', {shift[: m.rng.randint(0, n)]})",
        f"lax.pshuffle(x, 'i', {m.rng.sample(range(n), n)})",
        f"lax.pbroadcast(x, 'i', {m.rng.randrange(n)})",
        "x * lax.axis_index('i').astype(x.dtype)",
        "x - lax.axis_size('i')",
    ]
    text, type = m.rng.choice(same), v.type
    if m.chance(0.25):
        text, type = "lax.all_gather(x, 'i')", v.type.shaped(n, *v.type.shape)
    elif v.type.rank > 1 and v.type.shape[1] == n and m.chance(0.6):
        text = m.rng.choice(["lax.all_to_all(x, 'i', 0, 0)", "lax.psum_scatter(x, 'i')"])
        type = v.type if "all_to_all" in text else v.type.shaped(n, *v.type.shape[2:])
    still = "pmax" in text or "pmin" in text
    if type.size > 240:
        return
    m.emit(
        f"weft.vmap(lambda x: {text}, axis_name='i')({{0}})",
        m.still(v) if still else v,
        type=type,
        bound=v.bound * max(n, 2) + n,
    )


def mutable(m: Maker) -> None:
    """A reference that a loop reads and writes."""
    v = m.within(m.value("ffi", least=1), 2.0)
    n = v.type.shape[0]
    if n == 0 or "reverse" in m.taken and v.type.kind == "f":
        return
    change = m.rng.choice(
        [
            f"ref.__setitem__(k, ref[{n} - 1 - k] * 2)",
            "ref.__setitem__(..., ref[...] + ref[k])",
            "ref.__setitem__(k, ref[k] - ref[0])",
        ]
    )
    m.emit(f"with_ref({{0}}, {min(n, 5)}, lambda ref, k: {change})", v, type=v.type, bound=2.0 * 2.0 ** min(n, 5))


def room(m: Maker) -> None:
    """References that begin empty, are added to, and end."""
    v = m.within(m.value("ffi", least=1), 4.0)
    w = m.within(m.like(v), 4.0)
    if v.type.shape[0] and m.chance(0.6):
        k = m.rng.randrange(v.type.shape[0])
        m.emit(f"added_at({{0}}, {k}, {{1}}[{k}])", v, w, type=v.type, bound=v.bound + w.bound)
    else:
        m.emit("through_a_room({0})", v, type=v.type, bound=v.bound)


FAMILIES = {
    "special": Family(special, 0.7, finite=True),
    "total_order": Family(total_order, 0.2),
    "approximate": Family(approximate, 0.2, finite=True),
    "ragged": Family(ragged, 0.2, finite=True),
    "apply_at": Family(apply_at, 0.2),
    "scaled": Family(scaled, 0.1, finite=True),
    "staged": Family(staged, 0.4),
    "solver": Family(solver, 0.2, finite=True),
    "named_axis": Family(named_axis, 0.5),
    "mutable": Family(mutable, 0.3),
    "room": Family(room, 0.3),
}
