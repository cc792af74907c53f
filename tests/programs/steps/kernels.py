"""Kernels over references, of blocks that lie next to each other, overlap, or reach beyond the end of an array."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..tree import Block, Value
from ..types import Type
from .control import bounds, operands, row
from .family import Family

if TYPE_CHECKING:
    from ..maker import Maker, Result

IDS = "abcd"  # what index maps call the indices of the grid
ID = Type("int32", ())
MOST = 60  # elements of a block
# Control flow that is put into kernels, besides what their functions hold anyway.
INSIDE = ("scan", "while", "fori", "cond", "switch", "map", "jit", "layers", "custom_jvp")


@dataclass(frozen=True)
class Cut:
    """How an array is cut into blocks: `text` are the arguments of its BlockSpec, `shape` is what a kernel sees."""

    text: str
    shape: tuple[int, ...]
    padded: bool = False  # whether blocks reach beyond the array
    whole: bool = False  # whether each of its elements is in the block of some point, of a result


def spec(dims: list[str], indices: list[str], axes: int) -> str:
    """dims, indices: for each axis, the entry of a block's shape and the number of a block."""
    tuple_of = lambda parts: f"({''.join(f'{p}, ' for p in parts)})"
    return f"({tuple_of(dims)}, lambda {', '.join(IDS[:axes])}: {tuple_of(indices)})"


def any_cut(m: Maker, type: Type, grid: tuple[int, ...]) -> Cut:
    """Blocks of any sizes at any places: what lies outside is moved inside."""
    if m.chance(0.25):
        return Cut("()", type.shape)
    dims, indices, shape, padded = [], [], [], False
    for n in type.shape:
        way = m.rng.random() if n else 0.0
        if way < 0.35:
            dims.append(str(max(n, 1)))
            indices.append("0")
            shape.append(n)
        elif way < 0.5:
            dims.append("None")
            indices.append(index(m, grid))
        elif way < 0.85:
            size = m.rng.choice([k for k in range(1, n + 1) if m.chance(0.2) or n % k == 0])
            padded |= n % size != 0
            dims.append(str(size))
            indices.append(index(m, grid))
            shape.append(size)
        else:
            size, padding = m.rng.randint(1, n), m.rng.choice(((), (), (1, 0), (0, 2)))
            padded |= padding != ()
            dims.append(f"element({', '.join(map(str, (size, *padding)))})")
            indices.append(index(m, grid))
            shape.append(size)
    return Cut(spec(dims, indices, len(grid)), tuple(shape), padded)


def index(m: Maker, grid: tuple[int, ...]) -> str:
    """The number of a block."""
    if not grid:
        return m.rng.choice(("0", "1"))
    k, other = m.rng.randrange(len(grid)), m.rng.randrange(len(grid))
    i, n = IDS[k], grid[k]
    plain = [i] * 5
    return m.rng.choice(
        [
            *plain,
            "0",
            f"{n - 1} - {i}",
            f"{i} + 1",
            f"{i} - 1",
            f"{i} * 2",
            f"{i} // 2",
            f"{i} % 2",
            f"{i} + {IDS[other]}",
            f"{i} * {IDS[other]}",
            f"jnp.minimum({i}, 1)",
            f"jnp.maximum({i} - 1, 0)",
            f"jnp.clip({i} - 1, 0, 2)",
            f"({i} + {IDS[other]}) % {max(n, 1)}",
        ]
    )


def own_blocks(m: Maker, dtype: str, grid: tuple[int, ...], among: list[int]) -> tuple[Type, Cut]:
    """A result of which points along some axes of the grid each write a part, and the others all of it; now and then
    more than they write, or less.
    """
    parts: list[tuple[str, str, int, int, int]] = []  # entry, index, elements, of a block, missing
    for axis in among:
        size = m.rng.choice((1, 1, 2, 3))
        missing = m.rng.randrange(size) if m.chance(0.3) else -size if m.chance(0.15) else 0
        gone = size == 1 and m.chance(0.5)
        parts.append(("None" if gone else str(size), IDS[axis], max(grid[axis], 1) * size - missing, size, missing))
    for _ in range(m.rng.choice((0, 1, 1, 2))):
        n = m.rng.choice((1, 2, 3, 4)) if m.chance(0.95) else 0
        parts.append((str(max(n, 1)), "0", n, n, 0))
    m.rng.shuffle(parts)
    seen = tuple(size for entry, _, _, size, _ in parts if entry != "None")
    text = spec([p[0] for p in parts], [p[1] for p in parts], len(grid))
    whole = 0 not in grid and all(missing >= 0 for *_, missing in parts)
    return Type(dtype, tuple(p[2] for p in parts)), Cut(text, seen, whole=whole)


def operands_of(m: Maker) -> list[Value]:
    """Up to two arrays, and now and then one that has one number everywhere."""
    xs = operands(m, 0 if m.chance(0.05) else m.rng.choice((1, 2)), "fffiubc", MOST)
    if m.chance(0.15):
        type = Type(m.palette.float, m.rng.choice(m.palette.shapes))
        xs.append(m.emit(f"jnp.full({type.shape}, 1.5, {type.dtype!r})", type=type, bound=1.5))
    return xs


def results_of(m: Maker, grid: tuple[int, ...], sums: bool) -> list[tuple[Type, Cut]]:
    """One result or two, of which points along some axes of the grid write different parts; not along the last one,
    over which sums go.
    """
    axes = range(len(grid) - sums)
    among = sorted(m.rng.sample(axes, m.rng.randint(min(len(axes), 1), len(axes))))
    kinds = m.palette.of_kinds("fiuc" if sums else "fiubc")
    outs = [own_blocks(m, m.rng.choice(kinds), grid, among) for _ in range(m.rng.choice((1, 1, 2)))]
    if m.chance(0.2):
        k = m.rng.randrange(len(outs))
        outs[k] = (outs[k][0], any_cut(m, outs[k][0], grid))
    return outs


def kernel(m: Maker) -> None:
    """One function of the blocks, used in one of several ways. It has no derivative in reverse, and none at all where
    a result begins as an operand.
    """
    grid = tuple(m.rng.choice((1, 2, 2, 3, 4)) for _ in range(m.rng.choice((0, 1, 1, 1, 2, 2, 3))))
    if m.chance(0.02):
        grid = (*grid, 0)
    adding = ["added_up", "added_apart"] if grid else []
    way = m.rng.choice(["stored"] * 3 + adding + ["handed_on", "stored_if", "by_blocks_of_one", "repeated"])
    sums, more = way in adding, ""
    xs = operands_of(m)
    ins = [any_cut(m, v.type, grid) for v in xs]
    outs = results_of(m, grid, sums)
    if xs and m.chance(0.2) and xs[0].type.kind in ("fiuc" if sums else "fiubc"):
        outs[0] = (xs[0].type, replace(ins[0], whole=not ins[0].padded))
        more += ", input_output_aliases={{0: 0}}"
    if any(t.size > 2 * MOST for t in (*[t for t, _ in outs], *[v.type for v in xs])):
        return
    if more or "reverse" in m.taken or "linearize" in m.path:
        xs = [m.still(v) for v in xs]
    given = [v.type.shaped(*c.shape) for v, c in zip(xs, ins)]
    ids = [ID] * len(grid)
    if way == "by_blocks_of_one":
        n = (*outs[0][1].shape, 0)[0]
        if n == 0:
            return
        outs = [(t, c) for t, c in outs if c.shape[:1] == (n,)]
        given = [t.shaped(*t.shape[1:]) if t.shape[:1] == (n,) else t for t in given]
        ids.append(ID)
    kept = [t.shaped(*c.shape) for t, c in outs]
    state = kept if way in ("handed_on", "repeated") else []
    results: list[Result] = [t.shaped(*t.shape[1:]) if way == "by_blocks_of_one" else t for t in kept]
    if way == "stored_if":
        results.append(lambda child: child.flag())
    if way == "added_apart" and m.chance(0.5):
        more += f", parallel={('parallel',) * (len(grid) - 1) + ('arbitrary',)}"
    if m.chance(0.1):
        more += ", interpret=True"
    if any(c.padded for c in ins):
        more += ", loose=True"
    body = of_blocks(m, [*given, *state, *ids], results)
    rooms = kept if way in ("added_apart", "handed_on") else []
    parts = (
        *(of_types([*given, *state, *ids]), row(0, len(xs)), of_types([t for t, _ in outs]), str(grid)),
        *(f"[{', '.join(c.text for c in cuts)}]" for cuts in (ins, [c for _, c in outs])),
        of_types(rooms),
    )
    text = f"over_grid({way}, {{f0}}, {', '.join(parts)}{more})"
    if way == "stored_if" or not all(c.whole for _, c in outs):
        text = f"[numbers(y) for y in {text}]"
    found, times = [t for t, _ in outs], max(grid[-1], 1) if sums else 1
    m.emit_all(text, *xs, types=found, bounds=[b * times for b in bounds(found)], blocks=[body])


def of_types(given: list[Type]) -> str:
    return f"[{', '.join(f'({t.shape}, {t.dtype!r})' for t in given)}]"


def of_blocks(m: Maker, given: list[Type], results: list[Result]) -> Block:
    """A function that sees what it is given and nothing else."""
    kept, m.nest = m.nest, (m.rng.choice(INSIDE),) if m.chance(0.4) else ()
    m.control = "kernel"
    body = m.block(given, results, gives=(len(results),), outer=(), taken=m.taken - {"reverse"}, most=2)
    m.control, m.nest = "", kept
    return body


FAMILIES = {"kernel": Family(kernel, 0.5)}
