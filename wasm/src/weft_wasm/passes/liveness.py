"""The lifetimes of a program's temps.

Time is the order of the program-level statements; a kernel is one point. A temp lives from its first use to its last.
In a loop it lives through the whole loop if it is used outside as well, or if an iteration may read values that another
one has written: `needed` proves for the others that all values read were written before in the same iteration.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from weft_wasm.ir.affine import Linear, linear
from weft_wasm.ir.nodes import (
    Assign,
    Buffer,
    Copy,
    Declare,
    Expr,
    Fail,
    For,
    HostCall,
    If,
    Instance,
    Kernel,
    Let,
    Load,
    Poll,
    Program,
    Stmt,
    Store,
    Switch,
    While,
)
from weft_wasm.ir.instances import Run, Touched, given, model_of
from weft_wasm.ir.traversal import blocks, effects, expressions, loaded, touched, walk, walk_expr

PLANNED = ("temp", "workgroup")


def lifetimes(program: Program) -> dict[Buffer, tuple[int, int]]:
    """(first, last) point at which each temp and workgroup buffer must hold its content."""
    lives: dict[Buffer, tuple[int, int]] = {}
    loops: list[tuple[int, int]] = []  # (start, end), inner ones first
    used = Touched()
    summaries = _Summaries(used)
    clock = 0

    def use(buffers: Iterable[Buffer]) -> None:
        for b in buffers:
            if b.role in PLANNED:
                first, _ = lives.get(b, (clock, clock))
                lives[b] = (first, clock)

    def use_expressions(s: Stmt) -> None:
        for e in expressions(s):
            use(loaded(e))

    def visit(body: list[Stmt]) -> None:
        nonlocal clock
        for s in body:
            clock += 1
            match s:
                case For() | While():
                    loop(s)
                case If() | Switch():
                    use_expressions(s)
                    for block in blocks(s):
                        visit(block)
                    clock += 1
                case Kernel() | Instance():
                    reads, writes = used.of(s)
                    use((*writes, *reads, *model_of(s).workgroup))
                case Copy() | HostCall() | Fail() | Poll():
                    use_expressions(s)
                    use([b for group in effects(s) for b in group])
                case _:
                    raise TypeError(f"{type(s).__name__} is not a statement of the program level")

    def loop(s: For | While) -> None:
        nonlocal clock
        if isinstance(s, For):
            use_expressions(s)
        start, before = clock, set(lives)
        if isinstance(s, While):
            visit(s.cond)
            clock += 1
            use_expressions(s)
        visit(s.body)
        clock += 1
        needed = summaries.iteration(s)
        for b, (first, last) in list(lives.items()):
            if last > start and (b in before or b in needed):
                lives[b] = (min(first, start), clock)
        loops.append((start, clock))

    visit(program.body)
    for start, end in loops:
        for b, (first, last) in lives.items():
            if start < first <= end < last:
                lives[b] = (start, last)
    return lives


class _Summaries:
    """The temps that statements need, and those that they fill: write completely, in every execution. Kernels are
    analysed once.
    """

    def __init__(self, used: Touched) -> None:
        self.used = used
        self.kernels: dict[tuple[Kernel, Buffer], tuple[bool, bool]] = {}  # (fills, may read) by kernel and buffer

    def iteration(self, s: For | While) -> set[Buffer]:
        """The temps of which one iteration of a loop may read values from before it."""
        filled: set[Buffer] = set()
        needs: set[Buffer] = set()
        if isinstance(s, While):
            needs |= self.block(s.cond, filled) | _unfilled(s, filled)
        return needs | self.block(s.body, filled)

    def block(self, body: list[Stmt], filled: set[Buffer]) -> set[Buffer]:
        """The temps that statements need in this order, if some buffers are filled already; adds those that they
        fill.
        """
        needs: set[Buffer] = set()
        for s in body:
            if not isinstance(s, While):
                needs |= _unfilled(s, filled)
            match s:
                case Kernel() | Instance():
                    reads, fills = self.kernel(s)
                    needs |= reads - filled
                    filled |= fills
                case For():
                    inside = set(filled)
                    needs |= self.block(s.body, inside)
                    if type(s.extent) is int and s.extent > 0:
                        filled |= inside
                case While():
                    needs |= self.block(s.cond, filled) | _unfilled(s, filled)
                    needs |= self.block(s.body, set(filled))
                case If() | Switch():
                    ends = []
                    for branch in blocks(s):
                        ends.append(set(filled))
                        needs |= self.block(branch, ends[-1])
                    filled |= set.intersection(*ends)
                case Copy():
                    needs |= {s.src} - filled
                    if s.count == s.dst.size and s.dst_index == 0:
                        filled.add(s.dst)
                case HostCall():
                    needs |= set(s.arguments) - filled
                    filled |= {s.table, *s.results}
                case Fail() | Poll():
                    pass
                case _:
                    raise TypeError(f"{type(s).__name__} is not a statement of the program level")
        return needs

    def kernel(self, s: Run) -> tuple[set[Buffer], set[Buffer]]:
        """(temps of which a kernel may read values from before it, temps that it fills)."""
        kernel = model_of(s)
        needs: set[Buffer] = set()
        fills: set[Buffer] = set()
        for b in dict.fromkeys(b for group in self.used.model(kernel) for b in group):
            at = given(s, b)
            if at.role == "temp":
                key = kernel, b
                if key not in self.kernels:
                    self.kernels[key] = _Scan(b).kernel(kernel)
                whole, exposed = self.kernels[key]
                if whole:
                    fills.add(at)
                if exposed:
                    needs.add(at)
        return needs, fills


def _unfilled(s: Stmt, filled: set[Buffer]) -> set[Buffer]:
    """The buffers that are not filled and that the expressions of a statement read."""
    return {b for e in expressions(s) for b in loaded(e)} - filled


@dataclass(slots=True)
class _Part:
    """The elements Σ terms + start … + size of a buffer, for the current values of the surrounding loops; the first
    `done` of them are written.
    """

    terms: dict[Expr, int]
    start: int
    size: int
    done: int = 0


class _Scan:
    """Walks through a kernel and tracks which elements of one buffer have been written."""

    def __init__(self, buffer: Buffer):
        self.buffer = buffer
        self.extents: dict[Expr, int] = {}  # of the loops around
        self.parts = [_Part({}, 0, buffer.size)]
        self.exposed = False

    def kernel(self, kernel: Kernel) -> tuple[bool, bool]:
        """(whether it writes the whole buffer in every execution; whether it may read an element before it has written
        it).
        """
        self.block(kernel.body)
        return self.parts[0].done == self.buffer.size, self.exposed

    def block(self, body: list[Stmt]) -> None:
        part = self.parts[-1]
        for s in body:
            if not any(self.buffer in group for group in touched([s])):
                continue
            match s:
                case While():
                    self.block(s.cond)
                    self.read(s)
                    done = part.done
                    self.block(s.body)
                    part.done = done
                case For():
                    self.read(s)
                    self.loop(s)
                case If() | Switch():
                    self.read(s)
                    done, ends = part.done, []
                    for branch in blocks(s):
                        part.done = done
                        self.block(branch)
                        ends.append(part.done)
                    part.done = min(ends)
                case Store():
                    self.read(s)
                    terms, const = linear(s.index)
                    part.done += s.buffer is self.buffer and terms == part.terms and const == part.start + part.done
                case Let() | Declare() | Assign():
                    self.read(s)
                case _:
                    raise TypeError(f"{type(s).__name__} is not a statement of a kernel that touches buffers")

    def loop(self, s: For) -> None:
        if type(s.extent) is not int:
            done = self.parts[-1].done
            self.block(s.body)
            self.parts[-1].done = done
        elif s.extent > 0 and not self.nest(s):
            self.extents[s.var] = s.extent
            self.slices(s, s.extent)
            del self.extents[s.var]

    def nest(self, s: For) -> bool:
        """Loops around stores alone, in any order: whether they write one contiguous run of elements."""
        extents: dict[Expr, int] = {}
        body: list[Stmt] = [s]
        while len(body) == 1 and isinstance(inner := body[0], For) and type(inner.extent) is int:
            extents[inner.var], body = inner.extent, inner.body
        if any(
            isinstance(x, For | While | If | Switch) and any(self.buffer in group for group in touched([x]))
            for x in body
        ):
            return False
        part = self.parts[-1]
        stores = [linear(x.index) for x in body if isinstance(x, Store) and x.buffer is self.buffer]
        run = _run(stores, extents, part)
        if not run:
            return False
        self.extents |= extents
        written: list[Linear] = []
        for x in body:
            self.read(x, written)
            if isinstance(x, Store) and x.buffer is self.buffer:
                written.append(linear(x.index))
        for var in extents:
            del self.extents[var]
        part.done += run
        return True

    def slices(self, s: For, extent: int) -> None:
        """A loop in which each iteration may write its own slice."""
        part = self.parts[-1]
        step = next(
            (
                linear(x.index)[0].get(s.var, 0)
                for x in walk(s.body)
                if isinstance(x, Store) and x.buffer is self.buffer
            ),
            0,
        )
        if step <= 0:
            self.block(s.body)
            return
        inner = _Part({**part.terms, s.var: step}, part.start + part.done, step)
        self.parts.append(inner)
        self.block(s.body)
        self.parts.pop()
        if inner.done == step:
            part.done += extent * step

    def read(self, s: Stmt, written: Sequence[Linear] = ()) -> None:
        """Notes whether a statement itself loads an element that may not have been written; the same iteration has
        `written` some.
        """
        for e in expressions(s):
            if self.buffer in loaded(e):
                for node in walk_expr(e):
                    if isinstance(node, Load) and node.buffer is self.buffer:
                        form = linear(node.index)
                        self.exposed |= form not in written and not any(self.within(form, part) for part in self.parts)

    def within(self, form: Linear, part: _Part) -> bool:
        """Whether an index is in the written elements of a part."""
        if part.done == self.buffer.size:
            return True
        terms, low = form
        low -= part.start
        high = low
        for t, c in terms.items():
            if t in part.terms:
                continue
            if t not in self.extents:
                return False
            last = c * (self.extents[t] - 1)
            low, high = low + min(last, 0), high + max(last, 0)
        return low >= 0 and high < part.done and all(terms.get(t) == c for t, c in part.terms.items())


def _run(stores: list[Linear], extents: dict[Expr, int], part: _Part) -> int:
    """How many elements the stores in a nest of loops write contiguously from the end of a part's written elements; 0
    for other stores.
    """
    if not stores or any(terms != stores[0][0] for terms, _ in stores):
        return 0
    terms = dict(stores[0][0])
    if any(terms.pop(t, 0) != c for t, c in part.terms.items()) or any(t not in extents for t in terms):
        return 0
    if sorted(const for _, const in stores) != [part.start + part.done + k for k in range(len(stores))]:
        return 0
    size = len(stores)
    for t, c in sorted(terms.items(), key=lambda item: item[1]):
        if extents[t] <= 0 or c != size and extents[t] > 1:
            return 0
        size *= extents[t]
    return size if all(n > 0 for n in extents.values()) else 0
