"""Buffer planning: temps of a program share one arena by liveness (`liveness.py`)."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from weft.base.annotations import override

from weft_wasm.passes import kernel_fusion
from weft_wasm.ir.affine import Linear, distinct, linear
from weft_wasm.ir.nodes import ITEMSIZE, Buffer, Expr, For, Kernel, Let, Load, Program, Store, Var, padded
from weft_wasm.ir.instances import Touched, given, model_of, runs
from weft_wasm.ir.traversal import expressions, walk_expr
from weft_wasm.passes.liveness import lifetimes


class Slot(NamedTuple):
    """The place of a temporary buffer: bytes from `offset` on, from the statement `first` of the program to `last`."""

    name: str
    type: str
    nbytes: int
    offset: int
    first: int
    last: int

    @override
    def __str__(self) -> str:
        used = f"used from step {self.first} to {self.last}"
        return f"{self.name}: {self.type}, {self.nbytes} bytes at {self.offset}, {used}"

    @classmethod
    def of(cls, b: Buffer, offset: int, life: tuple[int, int]) -> Slot:
        return cls(b.name, f"{b.label}[{','.join(map(str, b.shape))}]", b.nbytes, offset, *life)


@dataclass(slots=True)
class MemoryPlan:
    """offsets: byte offset of each temp (and workgroup buffer) in the arena; size: bytes of the arena; lives: (first,
    last) use.
    private: byte offset of each private buffer in a thread's own area; private_size: bytes of that. alone: temps for
    which the arena has no room, the largest first.
    """

    offsets: dict[Buffer, int]
    size: int
    lives: dict[Buffer, tuple[int, int]]
    private: dict[Buffer, int]
    private_size: int
    alone: list[Buffer]

    def overlap(self, a: Buffer, b: Buffer) -> bool:
        """Whether two different arena buffers share bytes."""
        if a not in self.offsets or b not in self.offsets:
            return False
        x, y = self.offsets[a], self.offsets[b]
        return x < y + b.nbytes and y < x + a.nbytes

    def slots(self) -> list[Slot]:
        """The places of temps, by offset and first use."""
        found = [Slot.of(b, self.offsets[b], life) for b, life in self.lives.items() if b in self.offsets]
        return sorted(found, key=lambda slot: (slot.offset, slot.first))


def in_place_pairs(kernel: Kernel) -> list[tuple[Buffer, Buffer]]:
    """(read, written) buffers of a kernel where the written one may take the storage of the read one.

    This holds in one nest of parallel loops in which both are used only at one index, which differs in each iteration,
    and all reads come before the first write.
    """
    body = kernel.body
    extents: dict[Var, int | Expr] = {}
    while len(body) == 1 and type(outer := body[0]) is For and outer.kind == "parallel":
        extents[outer.var] = outer.extent
        body = outer.body
    if body is kernel.body or any(type(s) not in (Let, Store) for s in body):
        return []
    used: dict[Buffer, list[Linear]] = {}  # the linear forms of a buffer's indices
    last_read: dict[Buffer, int] = {}
    first_write: dict[Buffer, int] = {}
    for k, s in enumerate(body):
        for e in expressions(s):
            for node in walk_expr(e):
                if type(node) is Load:
                    used.setdefault(node.buffer, []).append(linear(node.index))
                    last_read[node.buffer] = k
        if type(s) is Store:
            used.setdefault(s.buffer, []).append(linear(s.index))
            first_write.setdefault(s.buffer, k)
    pairs: list[tuple[Buffer, Buffer]] = []
    bound = {s.var for s in body if type(s) is Let}
    for new, write in first_write.items():
        if not distinct(used[new][0][0], extents, bound):
            continue
        for old, read in last_read.items():
            fits = old not in first_write and new.nbytes <= old.nbytes and ITEMSIZE[new.dtype] == ITEMSIZE[old.dtype]
            if fits and read <= write and all(form == used[new][0] for form in used[new] + used[old]):
                pairs.append((old, new))
    return pairs


def plan(program: Program, limit: int | None = None) -> MemoryPlan:
    """Places all temps in one arena, or as many of the smaller ones as fit into an arena of so many bytes."""
    lives = lifetimes(program)
    partners = _partners(program, lives)
    temps = sorted(lives, key=lambda b: (-b.nbytes, lives[b]))
    offsets, size = _place(temps, lives, partners)
    apart = 0  # how many, of the largest, leave the arena
    if limit is not None and size > limit:
        too_few, apart = 0, len(temps)
        offsets, size = {}, 0
        while apart - too_few > 1:
            middle = (too_few + apart) // 2
            placed = _place(temps[middle:], lives, partners)
            if placed[1] > limit:
                too_few = middle
            else:
                apart, (offsets, size) = middle, placed
    return MemoryPlan(offsets, size, lives, *private_areas(program), temps[:apart])


def _partners(program: Program, lives: dict[Buffer, tuple[int, int]]) -> dict[Buffer, list[Buffer]]:
    """For each temp those whose storage it may take over, from the kernel that reads them last and writes it first."""
    partners: dict[Buffer, list[Buffer]] = {}
    pairs: dict[Kernel, list[tuple[Buffer, Buffer]]] = {}
    for s in runs(program.body):
        kernel = model_of(s)
        if kernel not in pairs:
            pairs[kernel] = list(dict.fromkeys((*in_place_pairs(kernel), *kernel_fusion.in_place_pairs(kernel))))
        for read, written in pairs[kernel]:
            old, new = given(s, read), given(s, written)
            if old in lives and new in lives and lives[old][1] == lives[new][0]:
                partners.setdefault(new, []).append(old)
    return partners


def _place(
    temps: Sequence[Buffer], lives: dict[Buffer, tuple[int, int]], partners: dict[Buffer, list[Buffer]]
) -> tuple[dict[Buffer, int], int]:
    """(offsets, bytes in all): each at the lowest offset where no buffer alive at the same time is."""
    offsets: dict[Buffer, int] = {}
    placed: list[tuple[int, int, int, int]] = []  # offset, end, first, last
    size = 0
    for buffer in temps:
        first, last = lives[buffer]
        need = padded(buffer.nbytes)
        busy = [(offset, end) for offset, end, f, l in placed if f <= last and first <= l]  # sorted by offset
        at = _take_over(partners.get(buffer, ()), offsets, busy, need)
        if at is None:
            at = 0
            for offset, end in busy:
                if offset >= at + need:
                    break
                at = max(at, end)
        offsets[buffer] = at
        insort(placed, (at, at + need, first, last))
        size = max(size, at + need)
    return offsets, size


def private_areas(program: Program) -> tuple[dict[Buffer, int], int]:
    """(offsets, bytes) of the private buffers: kernels use one area after another; the buffers of one kernel have
    separate areas.
    """
    used = Touched()
    together: dict[Buffer, set[Buffer]] = {}  # in order of first use
    for own in dict.fromkeys(
        tuple(dict.fromkeys(b for group in used.of(s) for b in group if b.role == "private"))
        for s in runs(program.body)
    ):
        for buffer in own:
            together.setdefault(buffer, set()).update(own)
    offsets: dict[Buffer, int] = {}
    size = 0
    for buffer, others in together.items():
        at, need = 0, padded(buffer.nbytes)
        for start, end in sorted((offsets[b], offsets[b] + padded(b.nbytes)) for b in others if b in offsets):
            if start >= at + need:
                break
            at = max(at, end)
        offsets[buffer] = at
        size = max(size, at + need)
    return offsets, size


def _take_over(
    partners: Sequence[Buffer], offsets: dict[Buffer, int], busy: list[tuple[int, int]], need: int
) -> int | None:
    """The offset of a buffer that ends where this one begins, if nothing else is alive there."""
    for old in partners:
        at = offsets.get(old)
        if at is not None and sum(offset < at + need and at < end for offset, end in busy) == 1:
            return at
    return None
