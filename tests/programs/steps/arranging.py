"""Steps that move elements: shapes and layouts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..tree import Value
from ..types import MOST, Type
from .family import Family

if TYPE_CHECKING:
    from ..maker import Maker

ANY = "fffiubcqs"
KNOWN = "fffiubc"  # without types of a few bits


def transpose(m: Maker) -> None:
    v = m.value(ANY, least=2 if m.chance(0.9) else 0)
    order = m.rng.sample(range(v.type.rank), v.type.rank)
    m.emit(
        f"lax.transpose({{0}}, {tuple(order)})", v, type=v.type.shaped(*[v.type.shape[d] for d in order]), bound=v.bound
    )


def reshape(m: Maker) -> None:
    v = m.value(ANY)
    dims = list(v.type.shape)
    while len(dims) < 5 and m.chance(0.4):
        dims.insert(m.rng.randint(0, len(dims)), 1)
    for _ in range(3):
        if len(dims) >= 2 and m.chance(0.6):
            k = m.rng.randrange(len(dims) - 1)
            dims[k : k + 2] = [dims[k] * dims[k + 1]]
        elif dims:
            k = m.rng.randrange(len(dims))
            factors = [f for f in range(2, dims[k]) if dims[k] % f == 0]
            if factors:
                f = m.rng.choice(factors)
                dims[k : k + 1] = [f, dims[k] // f]
    m.emit(f"lax.reshape({{0}}, {tuple(dims)})", v, type=v.type.shaped(*dims), bound=v.bound)


def axes_of_one(m: Maker) -> None:
    """Axes of one element that come and go."""
    v = m.value(ANY)
    ones = [d for d, n in enumerate(v.type.shape) if n == 1]
    if ones and m.chance(0.6):
        gone = sorted(m.rng.sample(ones, m.rng.randint(1, len(ones))))
        m.emit(
            f"lax.squeeze({{0}}, {tuple(gone)})",
            v,
            type=v.type.shaped(*[n for d, n in enumerate(v.type.shape) if d not in gone]),
            bound=v.bound,
        )
    else:
        at = m.rng.randint(0, v.type.rank)
        m.emit(
            f"lax.expand_dims({{0}}, ({at},))",
            v,
            type=v.type.shaped(*v.type.shape[:at], 1, *v.type.shape[at:]),
            bound=v.bound,
        )


def reverse(m: Maker) -> None:
    v = m.value(ANY, least=1)
    dims = sorted(m.rng.sample(range(v.type.rank), m.rng.randint(1, v.type.rank)))
    m.emit(f"lax.rev({{0}}, {tuple(dims)})", v, type=v.type, bound=v.bound)


def slices(m: Maker) -> None:
    v = m.value(ANY, least=1)
    start = [m.rng.randint(0, n) if m.chance(0.15) else m.rng.randint(0, n // 2) for n in v.type.shape]
    limit = [m.rng.randint(a, n) if m.chance(0.3) else n for a, n in zip(start, v.type.shape)]
    step = [m.rng.choice((1, 1, 2, 3)) for _ in start]
    shape = [max(0, -(-(b - a) // c)) for a, b, c in zip(start, limit, step)]
    m.emit(
        f"lax.slice({{0}}, {tuple(start)}, {tuple(limit)}, {tuple(step)})", v, type=v.type.shaped(*shape), bound=v.bound
    )


def stepping(m: Maker) -> None:
    """Slices as NumPy writes them."""
    v = m.value(KNOWN, least=1)
    n = v.type.shape[0]
    text, first = m.rng.choice(
        [("::-1", n), ("::2", -(-n // 2)), ("1:", max(n - 1, 0)), (":-1", max(n - 1, 0)), ("::-2", -(-n // 2))]
    )
    if v.type.rank > 1 and m.chance(0.5):
        m.emit(f"{{0}}[{text}, ..., None]", v, type=v.type.shaped(first, *v.type.shape[1:], 1), bound=v.bound)
    else:
        m.emit(f"{{0}}[{text}]", v, type=v.type.shaped(first, *v.type.shape[1:]), bound=v.bound)


def pad(m: Maker) -> None:
    v = m.value(KNOWN, least=1, most=40)
    config, shape = [], []
    for n in v.type.shape:
        low, high, inner = (
            (m.rng.choice((0, 0, 1, 2, -1)), m.rng.choice((0, 0, 1, -1)), m.rng.choice((0, 0, 1)) if n else 0)
            if m.chance(0.6)
            else (0, 0, 0)
        )
        size = n + low + high + inner * max(n - 1, 0)
        if size < 0:
            low, high, size = 0, 0, n + inner * max(n - 1, 0)
        config.append((low, high, inner))
        shape.append(size)
    if math.prod(shape) > 3 * MOST:
        return
    filler = m.rng.choice(["0", "1"]) if v.type.kind != "b" else "True"
    fill = m.maybe(v.type.kind, lambda t: t.shape == () and t.dtype == v.type.dtype) if m.chance(0.4) else None
    type = v.type.shaped(*shape)
    if fill is None:
        m.emit(
            f"lax.pad({{0}}, jnp.asarray({filler}, {v.type.dtype!r}), {config})", v, type=type, bound=max(v.bound, 1.0)
        )
    else:
        m.emit(f"lax.pad({{0}}, {{1}}, {config})", v, fill, type=type, bound=max(v.bound, fill.bound))


def broadcast(m: Maker) -> None:
    v = m.value(ANY, most=24)
    shape = list(v.type.shape)
    sizes = [n if n != 1 or m.chance(0.5) else m.rng.randint(1, 4) for n in shape]
    dims = list(range(len(sizes)))
    while len(sizes) < 5 and m.chance(0.5) and math.prod(sizes) <= 40:
        at = m.rng.randint(0, len(sizes))
        sizes.insert(at, m.rng.choice((1, 2, 3, 0) if m.chance(0.1) else (1, 2, 3)))
        dims = [d + 1 if d >= at else d for d in dims]
    m.emit(f"lax.broadcast_in_dim({{0}}, {tuple(sizes)}, {tuple(dims)})", v, type=v.type.shaped(*sizes), bound=v.bound)


def concatenate(m: Maker) -> None:
    v = m.value(KNOWN, least=1, most=60)
    axis = m.rng.randrange(v.type.rank)
    parts = [v]
    for _ in range(m.rng.randint(1, 3)):
        near = m.maybe(
            v.type.kind,
            lambda t: (
                t.dtype == v.type.dtype
                and t.rank == v.type.rank
                and all(a == b for d, (a, b) in enumerate(zip(t.shape, v.type.shape)) if d != axis)
            ),
        )
        parts.append(near if near is not None and near.type.size <= 60 else v)
    size = sum(p.type.shape[axis] for p in parts)
    shape = [size if d == axis else n for d, n in enumerate(v.type.shape)]
    m.emit(
        f"lax.concatenate([{listed(parts)}], {axis})",
        *parts,
        type=v.type.shaped(*shape),
        bound=max(p.bound for p in parts),
    )


def listed(values: list[Value], first: int = 0) -> str:
    return ", ".join(f"{{{k + first}}}" for k in range(len(values)))


def stack(m: Maker) -> None:
    v = m.value(ANY, most=40)
    parts = [v, *[m.like(v) for _ in range(m.rng.randint(0, 2))]]
    at = m.rng.randint(0, v.type.rank)
    shape = (*v.type.shape[:at], len(parts), *v.type.shape[at:])
    m.emit(
        f"{m.rng.choice(['lax', 'jnp'])}.stack([{listed(parts)}], {at})",
        *parts,
        type=v.type.shaped(*shape),
        bound=max(p.bound for p in parts),
    )


def unstack(m: Maker) -> None:
    v = m.value(KNOWN, least=1)
    axis = m.rng.randrange(v.type.rank)
    n = v.type.shape[axis]
    rest = v.type.shaped(*v.type.shape[:axis], *v.type.shape[axis + 1 :])
    if 2 <= n <= 4:
        m.emit_all(f"lax.unstack({{0}}, {axis})", v, types=[rest] * n, bounds=[v.bound] * n)
    else:
        cut = sorted([0, n, *[m.rng.randint(0, n) for _ in range(m.rng.randint(1, 2))]])
        sizes = [b - a for a, b in zip(cut, cut[1:])]
        parts = [v.type.shaped(*v.type.shape[:axis], k, *v.type.shape[axis + 1 :]) for k in sizes]
        m.emit_all(f"lax.split({{0}}, {tuple(sizes)}, {axis})", v, types=parts, bounds=[v.bound] * len(parts))


def repeat(m: Maker) -> None:
    v = m.value(ANY, least=1, most=40)
    axis, times = m.rng.randrange(v.type.rank), m.rng.randint(1, 3)
    shape = [n * times if d == axis else n for d, n in enumerate(v.type.shape)]
    if m.chance(0.5):
        reps = tuple(times if d == axis else 1 for d in range(v.type.rank))
        m.emit(f"lax.tile({{0}}, {reps})", v, type=v.type.shaped(*shape), bound=v.bound)
    else:
        m.emit(f"jnp.repeat({{0}}, {times}, {axis})", v, type=v.type.shaped(*shape), bound=v.bound)


def roll(m: Maker) -> None:
    v = m.value(KNOWN, least=1)
    axis = m.rng.randrange(v.type.rank)
    if m.chance(0.5) or v.type.shape[axis] == 0:
        m.emit(f"jnp.roll({{0}}, {m.rng.randint(-2, 5)}, {axis})", v, type=v.type, bound=v.bound)
    else:
        m.emit(f"jnp.roll({{0}}, {{1}}.astype('int32') & 7, {axis})", v, m.index(), type=v.type, bound=v.bound)


def made_of_nothing(m: Maker) -> None:
    """Constants, and numbers that count."""
    dtype = m.rng.choice(m.palette.of_kinds("fiuc"))
    shape = m.rng.choice(m.palette.shapes)
    type = Type(dtype, shape)
    if shape and m.chance(0.5):
        axis = m.rng.randrange(len(shape))
        # a dtype of eight bits holds numbers up to 127
        m.emit(f"lax.broadcasted_iota({dtype!r}, {shape}, {axis})", type=type, bound=float(max(shape)))
    elif m.chance(0.5):
        m.emit(f"jnp.full({shape}, {m.rng.choice((0, 1, 3))}, {dtype!r})", type=type, bound=3.0)
    else:
        numbers = [m.rng.randint(0, 5) for _ in range(type.size)]
        m.emit(f"jnp.asarray(np.array({numbers}).reshape({shape}), {dtype!r})", type=type, bound=5.0)


def unchanged(m: Maker) -> None:
    v = m.value(ANY)
    text = m.rng.choice(["jnp.copy({0})", "lax.optimization_barrier({0})", "lax.stop_gradient({0})"])
    m.emit(text, v, type=v.type, bound=v.bound)


def triangle(m: Maker) -> None:
    v = m.value(KNOWN, least=2)
    if 0 in v.type.shape:
        return
    m.emit(
        m.rng.choice(
            [
                f"jnp.tril({{0}}, {m.rng.randint(-1, 1)})",
                f"jnp.triu({{0}}, {m.rng.randint(-1, 1)})",
                "jnp.swapaxes({0}, -1, -2)",
                "jnp.flip({0}, -1)",
            ][:2]
        ),
        v,
        type=v.type,
        bound=v.bound,
    )


LONG = [
    "lax.sort({0})",
    "lax.rev({0}, (0,))",
    "lax.cumsum({0}, 0)",
    "lax.cummax({0}, 0)",
    "lax.cummin({0}, 0, True)",
    "jnp.roll({0}, 7)",
    "lax.sort(({0}, {0}), num_keys=2)[1]",
]
EIGHT = "{0}[:, None] * jnp.arange(8, dtype={0}.dtype)"
# and the shapes of their results
SUMS = {
    "lax.reduce_sum(lax.rev({0}, (0,)), (0,))": (),
    "lax.reduce_sum({0} * {0}, (0,))": (),
    f"lax.reduce_sum({EIGHT}, (0,))": (8,),
}


def long(m: Maker) -> None:
    """Arrays of some hundred elements, of which few remain."""
    v = m.within(m.value("ffiu", most=24), 1.0)
    n = m.rng.choice((40, 64, 100, 129, 200, 300))
    v = m.as_shape(v, (n,))
    text, step = m.rng.choice([*LONG, *SUMS]), m.rng.choice((17, 23, 31))
    if text in SUMS:
        m.emit(text, v, type=v.type.shaped(*SUMS[text]), bound=8.0 * n)
        return
    bound = v.bound * n if "cumsum" in text else v.bound
    m.emit(f"{text}[::{step}]", v, type=v.type.shaped(-(-n // step)), bound=bound)


FAMILIES = {
    "transpose": Family(transpose, 2),
    "reshape": Family(reshape, 2),
    "axes_of_one": Family(axes_of_one, 1),
    "reverse": Family(reverse, 1),
    "slices": Family(slices, 2),
    "stepping": Family(stepping, 1),
    "pad": Family(pad, 1.5),
    "broadcast": Family(broadcast, 2),
    "concatenate": Family(concatenate, 1.5),
    "stack": Family(stack, 1.5),
    "unstack": Family(unstack, 1),
    "repeat": Family(repeat, 1),
    "roll": Family(roll, 1),
    "made_of_nothing": Family(made_of_nothing, 1),
    "unchanged": Family(unchanged, 0.7),
    "triangle": Family(triangle, 0.5),
    "long": Family(long, 0.5),
}
