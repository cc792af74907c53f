"""Elements that are found by numbers: slices that move, gather and scatter in all modes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..tree import Value
from ..types import MOST, Type
from .family import Family

if TYPE_CHECKING:
    from ..maker import Maker

ANY = "fffiubcqs"
KNOWN = "fffiubc"


def starts(m: Maker, count: int) -> list[Value]:
    """Indices of one dtype."""
    first = m.index()
    return [first, *[m.as_dtype(m.index(), first.type.dtype) for _ in range(count - 1)]][:count]


def names(values: list[Value], first: int) -> str:
    return "".join(f"{{{k + first}}}, " for k in range(len(values)))


def dynamic_slice(m: Maker) -> None:
    v = m.value(ANY, least=1)
    if m.chance(0.4):
        axis = m.rng.randrange(v.type.rank)
        if v.type.shape[axis] == 0:
            return
        shape = v.type.shape[:axis] + v.type.shape[axis + 1 :]
        m.emit(
            f"lax.dynamic_index_in_dim({{0}}, {{1}}, {axis}, False)",
            v,
            m.index(),
            type=v.type.shaped(*shape),
            bound=v.bound,
        )
        return
    index = starts(m, v.type.rank)
    shape = tuple(m.rng.randint(1, n) if n and m.chance(0.95) else 0 for n in v.type.shape)
    m.emit(
        f"lax.dynamic_slice({{0}}, ({names(index, 1)}), {shape})", v, *index, type=v.type.shaped(*shape), bound=v.bound
    )


def dynamic_update(m: Maker) -> None:
    v = m.value(ANY, least=1)
    shape = tuple(m.rng.randint(1, n) if n else 0 for n in v.type.shape)
    if m.chance(0.3) and v.type.shape[0]:
        shape = (1, *v.type.shape[1:])
    found = m.maybe(
        v.type.kind,
        lambda t: (
            t.dtype == v.type.dtype and t.rank == v.type.rank and all(a <= b for a, b in zip(t.shape, v.type.shape))
        ),
    )
    update = found if found is not None and found is not v and m.chance(0.5) else m.like(v, v.type.shaped(*shape))
    index = starts(m, v.type.rank)
    m.emit(
        f"lax.dynamic_update_slice({{0}}, {{1}}, ({names(index, 2)}))",
        v,
        update,
        *index,
        type=v.type,
        bound=max(v.bound, update.bound),
    )


@dataclass(frozen=True)
class Window:
    """How slices of an array correspond to indices: the numbers of both gather and scatter."""

    offset: tuple[int, ...]
    collapsed: tuple[int, ...]
    index_map: tuple[int, ...]
    batching: tuple[int, ...]  # axes of the operand
    indices_batching: tuple[int, ...]  # axes of the indices
    sizes: tuple[int, ...]
    indices: tuple[int, ...]  # shape of the indices, without the last axis
    shape: tuple[int, ...]  # shape of what is gathered


def window(m: Maker, v: Value, batch: tuple[int, ...] | None = None) -> Window | None:
    """None where one can't be had."""
    dims = list(range(v.type.rank))
    batching = [d for d in dims if m.chance(0.15) and v.type.shape[d]] if batch is None else []
    index_map = [d for d in m.rng.sample(dims, len(dims)) if d not in batching and m.chance(0.6)]
    sizes, collapsed = [], []
    for d, n in enumerate(v.type.shape):
        size = 1 if d in batching else m.rng.randint(min(1, n), n) if d in index_map and m.chance(0.5) else n
        if d in index_map and n and m.chance(0.6):
            size = 1
        if size == 1 and d not in batching and m.chance(0.7):
            collapsed.append(d)
        sizes.append(size)
    more = (
        [m.rng.choice((1, 2, 3, 4, 0 if m.chance(0.1) else 2)) for _ in range(m.rng.choice((0, 1, 1, 2)))]
        if batch is None
        else list(batch)
    )
    places = [v.type.shape[d] for d in batching]
    indices = [*more, *places]
    where = list(range(len(more), len(indices)))
    offset_sizes = [n for d, n in enumerate(sizes) if d not in collapsed and d not in batching]
    rank = len(indices) + len(offset_sizes)
    offset = tuple(sorted(m.rng.sample(range(rank), len(offset_sizes))))
    of_batch, of_offset = iter(indices), iter(offset_sizes)
    shape = tuple(next(of_offset) if d in offset else next(of_batch) for d in range(rank))
    if math.prod(shape) > 2 * MOST or rank > 7:
        return None
    return Window(
        offset, tuple(collapsed), tuple(index_map), tuple(batching), tuple(where), tuple(sizes), tuple(indices), shape
    )


def indices_for(m: Maker, w: Window, v: Value, mode: str) -> Value:
    shape = (*w.indices, len(w.index_map))
    index = m.as_shape(m.index(shape) if m.chance(0.5) else m.value("iu"), shape)
    if mode == "promise_in_bounds":
        last = [min(v.type.shape[d] - w.sizes[d], 7) for d in w.index_map]
        index = m.emit(
            f"jnp.minimum({{0}} & 7, jnp.asarray(np.array({last}, int), {index.type.dtype!r}))", index, type=index.type
        )
    return index


def gather(m: Maker) -> None:
    v = m.value(KNOWN, least=1)
    w = window(m, v)
    if w is None:
        return
    mode = m.rng.choice(["clip", "fill", "promise_in_bounds"])
    index = indices_for(m, w, v, mode)
    numbers = (
        f"lax.GatherDimensionNumbers({w.offset}, {w.collapsed}, {w.index_map}, {w.batching}, {w.indices_batching})"
    )
    more = (
        f", fill_value={m.rng.choice(['0', '1'])}"
        if mode == "fill" and v.type.kind != "b"
        else ", fill_value=True"
        if mode == "fill"
        else ""
    )
    m.emit(
        f"lax.gather({{0}}, {{1}}, {numbers}, {w.sizes}, mode={mode!r}{more})",
        v,
        index,
        type=v.type.shaped(*w.shape),
        bound=max(v.bound, 1.0),
    )


def scatter(m: Maker) -> None:
    v = m.value("fffiuc", least=1)
    op = m.rng.choice(
        ["scatter_add", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max", "scatter"]
    )
    if v.type.kind == "c" and op in ("scatter_min", "scatter_max"):
        op = "scatter_add"
    once = op == "scatter" or op == "scatter_mul" and bool(m.taken)
    w = window(m, v, batch=() if once else None)
    # of several updates without an index XLA takes the last one on a CPU, real jax too
    if w is None or not w.index_map and math.prod(w.indices) > 1:
        return
    mode = m.rng.choice(["clip", "drop", "promise_in_bounds"])
    index, unique = indices_for(m, w, v, mode), ", unique_indices=True" if once else ""
    update = m.like(v, v.type.shaped(*w.shape))
    if op == "scatter_mul":
        v, update = m.within(v, 4.0), m.within(update, 1.0)
        bound = 4.0
    else:
        v, update = m.within(v, 16.0), m.within(update, 16.0)
        bound = (
            v.bound + update.bound * max(1, math.prod(w.indices))
            if op in ("scatter_add", "scatter_sub")
            else max(v.bound, update.bound)
        )
    if op in ("scatter_min", "scatter_max"):
        v, update = m.still(v), m.still(update)
    numbers = (
        f"lax.ScatterDimensionNumbers({w.offset}, {w.collapsed}, {w.index_map}, {w.batching}, {w.indices_batching})"
    )
    m.emit(
        f"lax.{op}({{0}}, {{1}}, {{2}}, {numbers}, mode={mode!r}{unique})",
        v,
        index,
        update,
        type=v.type,
        bound=bound * 1.05,
    )


def take(m: Maker) -> None:
    v = m.value(KNOWN, least=1)
    axis = m.rng.randrange(v.type.rank)
    if v.type.shape[axis] == 0:
        return
    index = m.as_shape(m.index(), m.rng.choice([(), (2,), (3,), (2, 2)]))
    shape = v.type.shape[:axis] + index.type.shape + v.type.shape[axis + 1 :]
    if math.prod(shape) > 2 * MOST:
        return
    mode = m.rng.choice(["clip", "fill", "wrap"])
    fill = ", fill_value=0" if mode == "fill" and v.type.kind != "b" else ", fill_value=False" if mode == "fill" else ""
    if v.type.rank + index.type.rank < 7:
        m.emit(
            f"jnp.take({{0}}, {{1}}, axis={axis}, mode={mode!r}{fill})",
            v,
            index,
            type=v.type.shaped(*shape),
            bound=v.bound,
        )


def at(m: Maker) -> None:
    """What NumPy's users write."""
    v = m.value("fffiu", least=1)
    if v.type.shape[0] == 0:
        return
    op = m.rng.choice(["add", "multiply", "min", "max", "set"])
    mode = m.rng.choice(["", ", mode='drop'", ", mode='clip'"])
    single = op == "set" or op == "multiply" or m.chance(0.5)
    index = m.as_shape(m.index(), () if single else (3,))
    v = m.within(v, 4.0)
    rest = v.type.shape[1:] if single else (3, *v.type.shape[1:])
    update = m.within(m.like(v, v.type.shaped(*(rest if m.chance(0.6) else ()))), 1.0 if op == "multiply" else 4.0)
    if op in ("min", "max"):
        v, update = m.still(v), m.still(update)
    m.emit(
        f"{{0}}.at[{{1}}].{op}({{2}}{mode}{', unique_indices=True' if single and op == 'multiply' else ''})",
        v,
        index,
        update,
        type=v.type,
        bound=v.bound + 3 * update.bound,
    )


def along(m: Maker) -> None:
    v = m.value("ffiu", least=1)
    axis = m.rng.randrange(v.type.rank)
    if 0 in v.type.shape:
        return
    index = m.like(v, v.type.of("int32"))
    index = m.emit(f"{{0}} % {v.type.shape[axis]}", index, type=index.type)
    m.emit(f"jnp.take_along_axis({{0}}, {{1}}, {axis})", v, index, type=v.type, bound=v.bound)


def unique_rows(m: Maker) -> None:
    """Many rows set at once, none of them twice."""
    v = m.value("fffiub", least=1)
    n = v.type.shape[0]
    count = m.rng.randint(0 if m.chance(0.1) else min(n, 1), n)
    rows = m.rng.sample(range(n), count)
    update = m.like(v, v.type.shaped(count, *v.type.shape[1:]))
    m.emit(
        f"{{0}}.at[np.array({rows}, int)].set({{1}}, unique_indices=True)",
        v,
        update,
        type=v.type,
        bound=max(v.bound, update.bound),
    )


def one_hot(m: Maker) -> None:
    index, n = m.index() if m.chance(0.5) else m.value("iu", most=20), m.rng.randint(1, 6)
    m.emit(
        f"weft.nn.one_hot({{0}}, {n}, dtype={m.palette.float!r})",
        index,
        type=Type(m.palette.float, (*index.type.shape, n)),
        bound=1.0,
    )


def multiplied(m: Maker) -> None:
    """Places of each row, which may be the same ones, several times multiplied."""
    v = m.still(m.within(m.value("fcc", least=2), 2.0))
    rows, columns, *rest = v.type.shape
    if not v.type.size or v.type.rank > 5:
        return
    count = m.rng.randint(1, 3)
    small = [d for d in ("int8", "uint8", "int16") if d in m.world.settings.dtypes]
    index = m.as_type(m.index(), Type(m.rng.choice([*m.palette.of_kinds("iu"), *small]), (rows, count)))
    factors = m.still(m.within(m.like(v, v.type.shaped(rows, count, *rest)), 1.5))
    text = "weft.vmap(lambda x, i, u: x.at[i].multiply(u))({0}, {1}, {2})"
    m.emit(text, v, index, factors, type=v.type, bound=2.0 * 1.5**count)


FAMILIES = {
    "multiplied": Family(multiplied, 0.3),
    "dynamic_slice": Family(dynamic_slice, 2.5),
    "dynamic_update": Family(dynamic_update, 2.5),
    "gather": Family(gather, 3),
    "scatter": Family(scatter, 3),
    "take": Family(take, 1),
    "at": Family(at, 1.5),
    "along": Family(along, 0.5),
    "unique_rows": Family(unique_rows, 0.5),
    "one_hot": Family(one_hot, 0.3),
}
