"""Convolutions of any dimension numbers, and reductions over windows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..tree import Value
from ..types import MOST, Type
from .family import Family

if TYPE_CHECKING:
    from ..maker import Maker


def covered(n: int, size: int, low: int, high: int, stride: int, base: int, dilation: int) -> int:
    """How many windows there are along an axis."""
    padded = (max(n - 1, 0) * base + 1 if n else 0) + low + high
    span = (size - 1) * dilation + 1
    return max(0, (padded - span) // stride + 1) if padded >= span else 0


def convolution(m: Maker) -> None:
    """With padding that may be negative, strides, dilations and groups."""
    spatial = m.rng.choice((0, 1, 1, 1, 2, 2, 3))
    groups, batches = (m.rng.choice((1, 2, 3)), 1) if m.chance(0.4) else (1, m.rng.choice((1, 1, 1, 2)))
    batch, channels = m.rng.choice((1, 2, 3)) * batches, m.rng.choice((1, 2, 3)) * groups
    features = m.rng.choice((1, 2, 4)) * groups * batches
    sizes = [m.rng.choice((1, 2, 3, 4, 5, 7, 9)) for _ in range(spatial)]
    kernel = [m.rng.choice((1, 2, 3, 4)) for _ in range(spatial)]
    strides, base, dilation = [[m.rng.choice((1, 1, 1, 2, 3)) for _ in range(spatial)] for _ in range(3)]
    padding = [(m.rng.choice((0, 0, 1, 2, -1)), m.rng.choice((0, 0, 1, 2, -1))) for _ in range(spatial)]
    padding = [p if max(n - 1, 0) * b + 1 + sum(p) >= 0 else (0, 0) for p, n, b in zip(padding, sizes, base)]
    out = [covered(n, k, *p, s, b, d) for n, k, p, s, b, d in zip(sizes, kernel, padding, strides, base, dilation)]
    shapes = [(batch, channels, *sizes), (features, channels // groups, *kernel), (batch // batches, features, *out)]
    if max(map(math.prod, shapes)) > 2 * MOST:
        return
    orders = [m.rng.sample(range(spatial + 2), spatial + 2) for _ in shapes]
    arranged = [tuple(shape[order.index(d)] for d in range(spatial + 2)) for shape, order in zip(shapes, orders)]
    dtype = m.rng.choice([d for d in m.palette.of_kinds("fciu")] + [m.palette.float] * 3)
    x = m.within(m.as_type(m.value("fiu"), Type(dtype, arranged[0])), 4.0)
    w = m.within(m.as_type(m.value("fiu"), Type(dtype, arranged[1])), 4.0)
    # orders[k][d] says where the axis d of the standard order lies
    numbers = f"lax.ConvDimensionNumbers({tuple(orders[0])}, {tuple(orders[1])}, {tuple(orders[2])})"
    text = (
        f"lax.conv_general_dilated({{0}}, {{1}}, {tuple(strides)}, {padding}, {tuple(base)}, {tuple(dilation)},"
        f" {numbers}, {groups}, {batches})"
    )
    terms = max(1, math.prod(kernel) * channels)
    m.emit(text, x, w, type=Type(dtype, arranged[2]), bound=x.bound * w.bound * terms * 1.1)


def transposed(m: Maker) -> None:
    n, size, stride = m.rng.randint(1, 5), m.rng.randint(1, 4), m.rng.randint(1, 3)
    x = m.within(m.as_type(m.value("f"), Type(m.palette.float, (1, n, 2))), 4.0)
    w = m.within(m.as_type(m.value("f"), Type(m.palette.float, (size, 2, 3))), 4.0)
    out = n * stride + max(size - stride, 0)
    text = f"lax.conv_transpose({{0}}, {{1}}, ({stride},), 'VALID')"
    m.emit(text, x, w, type=x.type.shaped(1, out, 3), bound=x.bound * w.bound * 2 * size)


def window(m: Maker, v: Value) -> tuple[str, tuple[int, ...], int] | None:
    """(arguments, shape of the result, elements of a window)."""
    size, strides, base, dilation, padding, shape = [], [], [], [], [], []
    wide = (1, 1, 1, 2) if m.chance(0.5) else (1,)
    for n in v.type.shape:
        plain = m.chance(0.3)
        size.append(1 if plain else m.rng.choice((1, 2, 3, 4)))
        strides.append(1 if plain else m.rng.choice((1, 1, 2, 3)))
        base.append(1 if plain else m.rng.choice(wide))
        dilation.append(1 if plain else m.rng.choice(wide))
        pad = (0, 0) if plain else (m.rng.choice((0, 0, 1, 2, -1)), m.rng.choice((0, 0, 1, 2, -1)))
        padding.append(pad if (max(n - 1, 0) * base[-1] + 1 if n else 0) + sum(pad) >= 0 else (0, 0))
        shape.append(covered(n, size[-1], *padding[-1], strides[-1], base[-1], dilation[-1]))
    if math.prod(shape) > 2 * MOST:
        return None
    text = f"{tuple(size)}, {tuple(strides)}, {padding}, {tuple(base)}, {tuple(dilation)}"
    return text, tuple(shape), math.prod(size)


def reduce_window(m: Maker) -> None:
    v = m.value("fffiucb", least=1, most=60)
    made = window(m, v)
    if made is None:
        return
    text, shape, count = made
    type = v.type.shaped(*shape)
    if v.type.kind == "b":
        op, start = m.rng.choice([("or", "False"), ("and", "True")])
        m.emit(f"lax.reduce_window({{0}}, {start}, lax.bitwise_{op}, {text})", v, type=type)
        return
    op = m.rng.choice(["add", "mul", "max", "min"])
    v = m.within(v, 1.0 if op == "mul" else 16.0)
    if op == "mul" or v.type.kind == "c" and op != "add":
        v = m.still(v)
    start = {"add": "0", "mul": "1", "max": "-9", "min": "9"}[op]
    if v.type.kind in "fc" and op in ("max", "min") and (v.type.kind == "c" or m.chance(0.5)):
        start = "-np.inf" if op == "max" else "np.inf"
    elif v.type.kind == "f" and op in ("max", "min"):
        v = m.still(v)  # from another beginning it has no derivative
    if start == "-9" and v.type.kind == "u":
        start = "0"
    bound = v.bound * count * 1.1 if op == "add" else 17.0
    whole = f"lax.reduce_window({{0}}, jnp.asarray({start}, {v.type.dtype!r}), lax.{op}, {text})"
    if "inf" in start:  # windows of nothing
        if v.type.kind == "f":
            whole = whole.replace(f"jnp.asarray({start}, {v.type.dtype!r})", start)
        whole, bound = f"jnp.nan_to_num({whole}, posinf=9.0, neginf=-9.0)", max(bound, 9.0)
    m.emit(whole, v, type=type, bound=bound)


def patches(m: Maker) -> None:
    n, k = m.rng.randint(2, 6), m.rng.randint(1, 3)
    if k > n:
        return
    x = m.within(m.as_type(m.value("f"), Type(m.palette.float, (2, 2, n))), 4.0)
    m.emit(
        f"lax.conv_general_dilated_patches({{0}}, ({k},), (1,), 'VALID')",
        x,
        type=x.type.shaped(2, 2 * k, n - k + 1),
        bound=x.bound,
    )


FAMILIES = {
    "convolution": Family(convolution, 1.2, finite=True),
    "transposed_convolution": Family(transposed, 0.2, finite=True),
    "reduce_window": Family(reduce_window, 1.2),
    "patches": Family(patches, 0.15),
}
