"""Where an element is: blocks, and the views that map them.

The position of an element in a row-major array is written as *blocks*: (extent, i32 expression) pairs from outer to
inner whose extents multiply to the array's size. One block is a flat index, one block for each axis a multi-index, and
anything between. Loops are chosen so that views need no division: `splits` says between which elements a value wants
block boundaries. A split is a count of elements: the product of the extents inside it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Sequence

from weft_wasm.ir.nodes import Const, Expr, add, div, i32, mul, rem

Blocks = tuple[tuple[int, Expr], ...]
Shape = tuple[int, ...]
ZERO = Const(0, "i32")
Splits = frozenset[int]
NONE: Splits = frozenset()


def linear(blocks: Blocks) -> Expr:
    """The flat index."""
    total: Expr = ZERO
    stride = 1
    for extent, e in reversed(blocks):
        total = add(mul(e, stride), total)
        stride *= extent
    return total


def regroup(blocks: Blocks, sizes: Sequence[int]) -> list[Blocks]:
    """The blocks of consecutive parts of the given sizes. Blocks that straddle a border are divided."""
    parts: list[Blocks] = [()] * len(sizes)
    stack = list(blocks)
    for d in range(len(sizes) - 1, -1, -1):
        n, have = sizes[d], 1
        part: list[tuple[int, Expr]] = []
        while have < n:
            extent, e = stack.pop()
            need = n // have
            if need % extent == 0:
                part.append((extent, e))
                have *= extent
            elif extent % need == 0:
                part.append((need, rem(e, need)))
                stack.append((extent // need, div(e, need)))
                have = n
            else:
                return _by_division(blocks, sizes)
        if n > 1:
            part.reverse()
            parts[d] = tuple(part)
    return parts


def _by_division(blocks: Blocks, sizes: Sequence[int]) -> list[Blocks]:
    flat = linear(blocks)
    parts: list[Blocks] = []
    stride = math.prod(sizes)
    for n in sizes:
        stride //= n
        parts.append(((n, rem(div(flat, stride), n)),) if n > 1 else ())
    return parts


def choose(size: int, splits: Splits) -> list[int]:
    """Extents of loops over an array: a boundary at every split that nests with the larger ones."""
    extents, rest = [], size
    for s in sorted(splits, reverse=True):
        if 1 < s < rest and rest % s == 0:
            extents.append(rest // s)
            rest = s
    if rest > 1:
        extents.append(rest)
    return extents


@dataclass(slots=True)
class Source:
    """One run of axes of a view's operand: part `part` of the result, as e · scale + offset."""

    size: int  # elements along the run in the operand
    part: int
    scale: int = 1
    offset: int = 0

    @property
    def plain(self) -> bool:
        return self.scale == 1 and self.offset == 0


@dataclass(slots=True)
class View:
    """The element of an operand that a result's element is: the result in parts of `sizes`, the operand in runs,
    outer to inner.
    """

    sizes: list[int]
    sources: list[Source]
    identity: bool = False

    def apply(self, blocks: Blocks) -> Blocks:
        """Blocks of the result → blocks of the operand."""
        if self.identity:
            return blocks
        parts = regroup(blocks, self.sizes)
        out: list[tuple[int, Expr]] = []
        for s in self.sources:
            if s.plain and s.size == self.sizes[s.part]:
                out += parts[s.part]
            else:
                out.append((s.size, add(mul(linear(parts[s.part]), s.scale), i32(s.offset))))
        return tuple(out)

    def splits(self, inner: Splits) -> Splits:
        """The splits that the result requires, given those of the operand."""
        if self.identity:
            return inner
        out: set[int] = set()
        edges: list[int] = []
        edge = 1
        for n in reversed(self.sizes):
            edges.append(edge)
            out.add(edge)
            edge *= n
        edges.reverse()
        if inner:
            strides = trailing([s.size for s in self.sources])
            for p in inner:
                for s, stride in zip(self.sources, strides):
                    if stride <= p < stride * s.size:
                        if s.plain and p % stride == 0:
                            out.add(p // stride * edges[s.part])
                        break
        out.discard(1)
        return frozenset(out)


def trailing(sizes: Sequence[int]) -> list[int]:
    """For each size the product of those after it."""
    out, step = [], 1
    for n in reversed(sizes):
        out.append(step)
        step *= n
    out.reverse()
    return out


IDENTITY = View([], [], True)


def merge(sizes: list[int], sources: list[Source | None]) -> View:
    """A view from one entry for each axis of the result: `sources[d]` reads axis d (None: the operand does not have
    it), in the operand's order of axes. Adjacent axes that stay adjacent become one part.
    """
    parts: list[int] = []
    out: list[Source] = []
    previous: str | None = None
    for n, s in zip(sizes, sources):
        if n == 1 and (s is None or s.size == 1):
            continue
        kind = "none" if s is None else "plain" if s.plain and s.size == n else "moved"
        if kind != "moved" and kind == previous:
            parts[-1] *= n
            if s is not None:
                out[-1].size *= n
            continue
        if s is not None:
            out.append(Source(s.size, len(parts), s.scale, s.offset))
        parts.append(n)
        previous = kind
    if not parts or (len(parts) == len(out) == 1 and out[0].plain and out[0].size == parts[0]):
        return IDENTITY
    return View(parts, out)


def broadcast_view(shape: Shape, operand: Shape, dims: Sequence[int]) -> View:
    """result[i…] = operand[i_dims…]; axes of size 1 in the operand are repeated."""
    sources: list[Source | None] = [None] * len(shape)
    for n, d in zip(operand, dims):
        if n != 1:
            sources[d] = Source(n, d)
    return merge(list(shape), sources)


def transpose_view(shape: Shape, permutation: Sequence[int]) -> View:
    """result axis d is operand axis permutation[d]."""
    parts: list[int] = []
    starts: list[tuple[int, int]] = []  # (operand axis, part)
    last = -2
    for n, axis in zip(shape, permutation):
        if n == 1:
            continue
        if parts and all_ones(shape, permutation, last, axis):
            parts[-1] *= n
        else:
            starts.append((axis, len(parts)))
            parts.append(n)
        last = axis
    if len(parts) <= 1:
        return IDENTITY
    return View(parts, [Source(parts[part], part) for _, part in sorted(starts)])


def all_ones(shape: Shape, permutation: Sequence[int], a: int, b: int) -> bool:
    """Whether operand axis b follows axis a with nothing but axes of size 1 between."""
    if b <= a:
        return False
    sizes = {axis: n for n, axis in zip(shape, permutation)}
    return all(sizes[k] == 1 for k in range(a + 1, b))


def slice_view(shape: Shape, operand: Shape, starts: Sequence[int], steps: Sequence[int]) -> View:
    """result[i…] = operand[start + i · step …]."""
    return merge(list(shape), [Source(n, d, k, a) for d, (n, a, k) in enumerate(zip(operand, starts, steps))])
