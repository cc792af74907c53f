"""Products of any dimension numbers and odd sizes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..tree import Value
from ..types import Type, real_of
from .family import Family

if TYPE_CHECKING:
    from ..maker import Maker

SIZES, WEIGHTS = (0, 1, 2, 3, 4, 5, 7, 8, 9, 17, 33), (0.3, 3, 5, 5, 4, 3, 2, 2, 2, 1, 0.5)


def sizes(m: Maker, count: int) -> list[int]:
    return m.rng.choices(SIZES, WEIGHTS, k=count)


def operand(m: Maker, dtype: str, groups: list[list[int]]) -> tuple[Value, list[list[int]]]:
    """A value whose axes are those of the groups in any order; and where the axes of each group are."""
    axes = [(g, k) for g, group in enumerate(groups) for k in range(len(group))]
    m.rng.shuffle(axes)
    places = [[axes.index((g, k)) for k in range(len(group))] for g, group in enumerate(groups)]
    return m.as_type(
        m.value("fiu" if m.chance(0.9) else "fiubc"), Type(dtype, tuple(groups[g][k] for g, k in axes))
    ), places


def dot_general(m: Maker) -> None:
    dtype = m.rng.choice([d for d in m.palette.of_kinds("fciu")] + [m.palette.float] * 3)
    if m.chance(0.03):
        dtype = "bool"
    batch, contracted = sizes(m, m.rng.choice((0, 0, 1, 1, 2))), sizes(m, m.rng.choice((1, 1, 1, 0, 2)))
    left, right = sizes(m, m.rng.choice((0, 1, 1, 2))), sizes(m, m.rng.choice((0, 1, 1, 2)))
    if (
        max(
            math.prod(batch + contracted + left), math.prod(batch + contracted + right), math.prod(batch + left + right)
        )
        > 400
    ):
        return
    x, (b1, c1, free1) = operand(m, dtype, [batch, contracted, left])
    y, (b2, c2, free2) = operand(m, dtype, [batch, contracted, right])
    if x.type.kind == "c" and m.chance(0.3):
        y = m.emit("lax.real({0})", y, type=y.type.of(real_of(dtype)), bound=y.bound)
    if x.type.kind == "c" and m.chance(0.2) and y.type.kind == "c":
        x = m.emit("lax.imag({0})", x, type=x.type.of(real_of(dtype)), bound=x.bound)
    shape = (*batch, *[x.type.shape[d] for d in sorted(free1)], *[y.type.shape[d] for d in sorted(free2)])
    x, y = m.within(x, 4.0), m.within(y, 4.0)
    wider = {
        "int8": ["int32", "float32"],
        "uint8": ["int32", "uint32"],
        "bfloat16": ["float32"],
        "float16": ["float32"],
        "int16": ["int32"],
    }.get(dtype, [])
    wider = [w for w in wider if w in m.world.settings.dtypes]
    prefer = m.rng.choice(wider) if wider and m.chance(0.5) else dtype
    if dtype in ("complex64", "complex128") and m.chance(0.2):
        prefer = real_of(dtype)
    more = f", preferred_element_type={prefer!r}" if prefer != dtype else m.rng.choice(["", ", precision='highest'"])
    m.emit(
        f"lax.dot_general({{0}}, {{1}}, (({c1}, {c2}), ({b1}, {b2})){more})",
        x,
        y,
        type=Type(prefer, shape),
        bound=x.bound * y.bound * max(1, math.prod(contracted)) * 1.1,
    )


def sugar(m: Maker) -> None:
    v = m.within(m.value("fic", most=40), 4.0)
    flat = v.type.size
    w = m.within(m.like(v), 4.0)
    way = m.rng.random()
    if way < 0.3:
        m.emit(
            "jnp.vdot({0}, {1})" if m.chance(0.5) else "jnp.dot(jnp.ravel({0}), jnp.ravel({1}))",
            v,
            w,
            type=v.type.shaped(),
            bound=v.bound * w.bound * max(1, flat),
        )
    elif way < 0.6:
        m.emit(
            "jnp.outer(jnp.ravel({0})[:7], jnp.ravel({1})[:5])",
            v,
            w,
            type=v.type.shaped(min(flat, 7), min(flat, 5)),
            bound=v.bound * w.bound,
        )
    elif v.type.rank >= 2:
        n = v.type.shape[-2]
        m.emit(
            "jnp.einsum('...ij,...kj->...ik', {0}, {1})",
            v,
            w,
            type=v.type.shaped(*v.type.shape[:-1], n),
            bound=v.bound * w.bound * max(1, v.type.shape[-1]),
        )
    else:
        m.emit(
            "jnp.einsum('i,j->ji', jnp.ravel({0})[:5], jnp.ravel({1})[:4])",
            v,
            w,
            type=v.type.shaped(min(flat, 4), min(flat, 5)),
            bound=v.bound * w.bound,
        )


def square(m: Maker) -> None:
    """Larger products of odd sizes."""
    rows, inner, columns = [m.rng.choice((3, 5, 8, 11, 16, 19, 24, 31)) for _ in range(3)]
    v = m.within(m.as_type(m.value("f"), Type(m.palette.float, (rows, inner))), 2.0)
    w = m.within(m.as_type(m.value("f"), Type(m.palette.float, (inner, columns))), 2.0)
    out = m.emit("{0} @ {1}", v, w, type=v.type.shaped(rows, columns), bound=4.0 * inner)
    axis = m.rng.randint(0, 1)
    m.emit(
        f"lax.{m.rng.choice(['reduce_max', 'reduce_sum'])}({{0}}, ({axis},))",
        out,
        type=v.type.shaped(rows if axis else columns),
        bound=4.0 * inner * 32,
    )


def by_algorithm(m: Maker) -> None:
    """A product of small integers, which floats of any type sum up without rounding."""
    n, k, dtype = m.rng.randint(1, 4), m.rng.randint(1, 9), m.rng.choice(m.palette.of_kinds("iub"))
    v, w = m.as_type(m.value("iu"), Type(dtype, (n, k))), m.as_type(m.value("iu"), Type(dtype, (k, 2)))
    if dtype != "bool":
        v, w = (m.emit("{0} & 3", x, type=x.type) for x in (v, w))
    how = m.rng.choice(("F32_F32_F32", "F16_F16_F16", "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6"))
    m.emit(
        f"lax.dot_general({{0}}, {{1}}, (((1,), (0,)), ((), ())), precision=lax.DotAlgorithmPreset.{how})",
        v,
        w,
        type=v.type.shaped(n, 2),
    )


def wide_product(m: Maker) -> None:
    """Summed in float64, whatever its operands are."""
    n, k = m.rng.randint(1, 4), m.rng.randint(1, 9)
    v = m.within(m.as_type(m.value("f"), Type("float32", (n, k))), 4.0)
    w = m.within(m.as_type(m.value("f"), Type("float32", (k, 2))), 4.0)
    how = "precision=lax.DotAlgorithmPreset.F64_F64_F64"
    m.emit(
        f"lax.dot_general({{0}}, {{1}}, (((1,), (0,)), ((), ())), {how})",
        v,
        w,
        type=v.type.shaped(n, 2),
        bound=16.0 * k,
    )


def attention(m: Maker) -> None:
    """A product with weights that come to one in each row."""
    if m.chance(0.4):  # of several heads
        heads, n, width = m.rng.choice((4, 5)), m.rng.choice((4, 5, 8, 16)), m.rng.choice((4, 6, 8))
        q, k, v = (m.within(m.as_type(m.value("f"), Type(m.palette.float, (heads, n, width))), 2.0) for _ in range(3))
        text = "weft.nn.softmax({0} @ jnp.swapaxes({1}, 1, 2) * 0.25) @ {2}"
        m.emit(text, q, k, v, type=v.type, bound=2.1)
        return
    batch, (rows, keys, width) = sizes(m, m.rng.choice((0, 0, 1))), sizes(m, 3)
    if keys * max(math.prod(batch) * rows, width) > 200:
        return
    scores = m.within(m.as_type(m.value("f"), Type(m.palette.float, (*batch, rows, keys))), 4.0)
    v = m.within(m.as_type(m.value("f"), Type(m.palette.float, (*batch, keys, width))), 4.0)
    m.emit("weft.nn.softmax({0}) @ {1}", scores, v, type=v.type.shaped(*batch, rows, width), bound=4.2)


FAMILIES = {
    "dot_general": Family(dot_general, 2.5, finite=True),
    "sugar": Family(sugar, 0.8, finite=True),
    "square": Family(square, 0.4, finite=True),
    "attention": Family(attention, 0.4, finite=True),
    "by_algorithm": Family(by_algorithm, 0.2),
    "wide_product": Family(wide_product, 0.1, finite=True),
}
