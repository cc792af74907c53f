"""Reductions, and sums that run along an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..tree import Value
from ..types import Type
from .family import Family

if TYPE_CHECKING:
    from ..maker import Maker


def some_axes(m: Maker, v: Value, least: int = 0) -> tuple[int, ...]:
    return tuple(sorted(m.rng.sample(range(v.type.rank), m.rng.randint(min(least, v.type.rank), v.type.rank))))


def without(v: Value, axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n for d, n in enumerate(v.type.shape) if d not in axes)


def count(v: Value, axes: tuple[int, ...]) -> int:
    out = 1
    for d in axes:
        out *= v.type.shape[d]
    return out


def reduce(m: Maker) -> None:
    v = m.value("fffiucbqs", least=1 if m.chance(0.9) else 0)
    axes, kind = some_axes(m, v), v.type.kind
    if kind in "bq":
        names = ["reduce_max", "reduce_min"] * (count(v, axes) > 0) + ["reduce_and", "reduce_or"] * (kind == "b")
        if names:
            m.emit(f"lax.{m.rng.choice(names)}({{0}}, {axes})", v, type=v.type.shaped(*without(v, axes)))
        return
    if kind == "s":
        if count(v, axes):
            name = m.rng.choice(("reduce_max", "reduce_min"))
            m.emit(f"lax.{name}({{0}}, {axes})", v, type=v.type.shaped(*without(v, axes)), bound=v.bound)
        return
    names = ["reduce_sum", "reduce_prod", "reduce_max", "reduce_min"]
    names += ["reduce_and", "reduce_or", "reduce_xor"] * (kind in "iu")
    if kind == "c" or count(v, axes) == 0:
        names = names[:2]  # the largest of nothing is infinite
    name = m.rng.choice(names)
    bound = v.bound
    if name == "reduce_prod":
        v = m.within(v, 1.0)
        bound = 1.0
    elif name == "reduce_sum":
        v = m.within(v, 16.0)
        bound = v.bound * max(1, count(v, axes)) * 1.1
    m.emit(f"lax.{name}({{0}}, {axes})", v, type=v.type.shaped(*without(v, axes)), bound=bound)


def extremum(m: Maker) -> None:
    v = m.value("ffiub", least=1)
    axes = [d for d, n in enumerate(v.type.shape) if n]
    if not axes:
        return
    axis = m.rng.choice(axes)
    name, dtype = m.rng.choice(["argmax", "argmin"]), m.rng.choice([d for d in m.palette.of_kinds("iu")])
    m.emit(f"lax.{name}({{0}}, {axis}, {dtype!r})", v, type=Type(dtype, without(v, (axis,))))


def cumulative(m: Maker) -> None:
    v = m.value("fffiuc", least=1)
    axis, name = m.rng.randrange(v.type.rank), m.rng.choice(["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"])
    if name == "cumlogsumexp" and v.type.kind != "f" or name in ("cummax", "cummin") and v.type.kind == "c":
        name = "cumsum"
    v = m.within(v, {"cumprod": 1.0, "cumlogsumexp": 4.0}.get(name, 16.0))
    bound = v.bound * max(1, v.type.shape[axis]) * 1.1 if name == "cumsum" else max(v.bound, 4.0) + 5
    m.emit(f"lax.{name}({{0}}, {axis}, {m.chance(0.5)})", v, type=v.type, bound=bound)


def statistics(m: Maker) -> None:
    v = m.within(m.value("f", least=1), 4.0)
    axis = m.rng.randrange(v.type.rank)
    if v.type.shape[axis] == 0:
        return
    same = ["weft.nn.softmax({0}, {1})", "weft.nn.log_softmax({0}, {1})", "weft.nn.standardize({0}, {1})"]
    less = [
        "jnp.mean({0}, {1})",
        "jnp.var({0}, {1})",
        "weft.nn.logsumexp({0}, {1})",
        "jnp.ptp({0}, {1})",
        "jnp.median({0}, {1})",
    ]
    text = m.rng.choice(same + less)
    shape = v.type.shape if text in same else without(v, (axis,))
    m.emit(text.replace("{1}", str(axis)), v, type=v.type.shaped(*shape), bound=64.0)


def by_function(m: Maker) -> None:
    """A reduction with a function of its own, from what changes nothing: how often a platform takes in the beginning
    is its own affair.
    """
    v = m.still(m.value("fiu", least=1))
    axes = some_axes(m, v, 1)
    least, most = (
        ("-np.inf", "np.inf")
        if v.type.kind == "f"
        else (f"jnp.iinfo({v.type.dtype!r}).{end}" for end in ("min", "max"))
    )
    ways = [("lax.select(a > b, a, b)", least), ("lax.min(b, a)", most), ("a + b", "0")]
    if v.type.kind == "f":
        # Of a number and its negative the larger: a platform may take them in any order.
        ways.append(("lax.select((lax.abs(a) < lax.abs(b)) | ((lax.abs(a) == lax.abs(b)) & (a > b)), a, b)", most))
    text, start = m.rng.choice(ways)
    v = m.within(v, 16.0)
    whole = f"lax.reduce({{0}}, jnp.asarray({start}, {v.type.dtype!r}), lambda a, b: {text}, {axes})"
    if "inf" in start:
        whole = f"jnp.nan_to_num({whole}, posinf=9.0, neginf=-9.0)"
    m.emit(whole, v, type=v.type.shaped(*without(v, axes)), bound=max(9.0, v.bound * max(1, count(v, axes)) * 1.1))


def several_at_once(m: Maker) -> None:
    """A reduction of two arrays: the largest and its index."""
    v = m.still(m.value("fi", least=1))
    axis = m.rng.randrange(v.type.rank)
    i = m.emit(f"lax.broadcasted_iota('int32', {v.type.shape}, {axis})", type=v.type.of("int32"))
    pick = (
        "(lambda p: (lax.select(p, a[0], b[0]), lax.select(p, a[1], b[1])))((a[0] > b[0]) | ((a[0] == b[0]) & (a[1] <"
        " b[1])))"
    )
    low = "-np.inf" if v.type.kind == "f" else f"jnp.iinfo({v.type.dtype!r}).min"
    m.emit_all(
        f"lax.reduce(({{0}}, {{1}}), (jnp.asarray({low}, {v.type.dtype!r}), jnp.asarray(99, 'int32')), lambda a, b:"
        f" {pick}, ({axis},))",
        v,
        i,
        types=[v.type.shaped(*without(v, (axis,))), Type("int32", without(v, (axis,)))],
    )


FAMILIES = {
    "reduce": Family(reduce, 4),
    "extremum": Family(extremum, 1),
    "cumulative": Family(cumulative, 1.5),
    "statistics": Family(statistics, 0.7, finite=True),
    "by_function": Family(by_function, 0.4, finite=True),
    "several_at_once": Family(several_at_once, 0.3, finite=True),
}
