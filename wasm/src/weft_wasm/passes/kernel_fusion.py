"""Joins adjacent kernels that process the same rows: data that one has read or written is still in the cache when the
next one uses it.

A kernel that is one parallel loop uses a buffer by rows if all its indices are row * size + something below size. Two
such kernels may run row by row if every buffer that one of them writes and the other uses is used by the same rows in
both. An array that is used only row by row shrinks to one row.

After scheduling, products of batches and adjacent kernels are joined in the same way, with matrices, or blocks of their
rows, instead of rows: attention computes the scores of a block of queries, their softmax and the weighted values
together before the next block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace

from weft_wasm.ir.affine import distinct, linear
from weft_wasm.ir.nodes import (
    ITEMSIZE,
    Assign,
    Buffer,
    Call,
    Const,
    Declare,
    Expr,
    For,
    If,
    Instance,
    Kernel,
    Let,
    Load,
    Program,
    Stmt,
    Store,
    Switch,
    Var,
    While,
    i32,
)
from weft_wasm.ir.instances import Run, Touched, given, model_of
from weft_wasm.ir.traversal import blocks, expressions, substitute, touched, walk, walk_expr
from weft_wasm.ir.rewriting import expanded, fresh, map_blocks, rewrite

ROW_BYTES = 64 << 10  # of all rows in use at a time: they must stay in the nearest caches
BATCH_BYTES = 4 << 20  # of all matrices, likewise in the farther ones
WORTH = 128 << 10  # bytes that two kernels must share to become one
SHORTEST = 16  # elements of a row that is worth keeping

# two kernels as one; None if they can't be joined, or it would not pay
Join = Callable[[Kernel, Kernel, dict[Buffer, Buffer]], Kernel | None]


@dataclass(slots=True)
class BufferUse:
    """How a kernel uses a buffer: the elements of a row, or None if it is not used by rows."""

    row: int | None
    base: frozenset[tuple[Expr, int]] = frozenset()  # a loop-invariant term of the index
    written: bool = False


def fuse_kernels(program: Program) -> Program:
    """The program with adjacent kernels joined where that pays."""

    def finish(kernel: Kernel) -> Kernel:
        (loop,) = _loops(kernel.body, 1)
        return replace(kernel, body=[replace(loop, body=_reduced_as_written(loop.body))])

    return _fused(program, _joined, finish)


def _fused(program: Program, join: Join, finish: Callable[[Kernel], Kernel] = lambda kernel: kernel) -> Program:
    """The program with neighbours joined. finish: the last step for kernels that were made so."""
    neighbours = _Neighbours({program.outputs[k]: program.inputs[j] for k, j in program.donated.items()}, join)
    return _with_rows(program, map_blocks(program.body, neighbours.block), neighbours.made, finish)


def _with_rows(program: Program, body: list[Stmt], made: list[Run], finish: Callable[[Kernel], Kernel]) -> Program:
    """The program with a new body, where temps that only one of the kernels in `made` uses become private rows of
    it.
    """
    candidates: dict[Kernel, dict[Buffer, Buffer]] = {}
    for kernel in dict.fromkeys(map(model_of, made)):
        uses = _uses(kernel, scheduled=True) or {}
        rows = {b: _as_row(kernel, b, use) for b, use in uses.items() if b.role not in ("constant", "private")}
        candidates[kernel] = {b: row for b, row in rows.items() if row is not None}
    found = {
        s: {at: row for b, row in candidates[model_of(s)].items() if (at := given(s, b)).role == "temp"} for s in made
    }
    users = {b: 0 for own in found.values() for b in own}
    used = Touched()
    for s in _leaves(body) if users else ():
        groups = used.of(s) if type(s) is Kernel or type(s) is Instance else touched([s])
        for b in users.keys() & {b for group in groups for b in group}:
            users[b] += 1
    rows_of: dict[Buffer, Buffer] = {}
    pairs: dict[Kernel, list[tuple[Buffer, Buffer]]] = {}
    finished: dict[tuple[Kernel, frozenset[tuple[Buffer, Buffer]]], Kernel] = {}
    instead: dict[Stmt, Stmt] = {}
    for s, own in found.items():
        model = model_of(s)
        own = {b: row for b, row in own.items() if users[b] == 1}
        if len(own) > 1 and model not in pairs:
            pairs[model] = in_place_pairs(model)
        own = _shared_rows(own, [(given(s, old), given(s, new)) for old, new in pairs.get(model, ())])
        formal = {b: own[at] for b in candidates[model] if (at := given(s, b)) in own}
        key = model, frozenset(formal.items())
        if key not in finished:
            finished[key] = finish(_on_private_rows(model, formal))
        kernel = finished[key]
        if type(s) is Kernel:
            instead[s] = kernel
        else:  # with rows of its own, since kernels that are joined later must not meet in them
            copies = {row: Buffer(row.name, row.dtype, row.shape, "private") for row in formal.values()}
            own = {b: copies[row] for b, row in own.items()}
            rest = {b: at for b, at in s.buffers.items() if b not in formal}
            instead[s] = replace(s, kernel=kernel, buffers=rest | copies)
        rows_of |= own
    body = map_blocks(body, lambda block: [instead.get(s, s) for s in block]) if instead else body
    return replace(program, body=body, temps=list(dict.fromkeys(rows_of.get(b, b) for b in program.temps)))


def _shared_rows(own: dict[Buffer, Buffer], pairs: list[tuple[Buffer, Buffer]]) -> dict[Buffer, Buffer]:
    """The private rows of temps, where one takes over that of another which it may overwrite."""
    given_away: set[Buffer] = set()
    for new in own:
        old = next(
            (old for old in own if (old, new) in pairs and old.dtype == new.dtype and old not in given_away), None
        )
        if old is not None:
            given_away.add(old)
            own = {b: own[old] if row is own[new] else row for b, row in own.items()}
    return own


def _leaves(body: list[Stmt]) -> Iterator[Stmt]:
    """Kernels and other statements with an effect of their own, in all blocks of the program level."""
    for s in body:
        match s:
            case For() | While() | If() | Switch():
                yield from (Let(Var("", e.dtype), e) for e in expressions(s))
                for block in blocks(s):
                    yield from _leaves(block)
            case _:
                yield s


class _Neighbours:
    """Joins adjacent kernels, and those like them in the same way. `made` gets the new ones."""

    def __init__(self, storage: dict[Buffer, Buffer], join: Join):
        self.storage, self.join, self.used = storage, join, Touched()
        self.made: list[Run] = []
        # by the two kernels and which of their buffers are the same: the result, and the buffers that it was made of
        self.known: dict[Hashable, tuple[Kernel, list[Buffer]] | None] = {}

    def block(self, body: list[Stmt]) -> list[Stmt]:
        """One block with adjacent kernels joined."""
        out: list[Stmt] = []
        for s in body:
            last = out[-1] if out else None
            joined = self.both(last, s) if isinstance(last, Run) and isinstance(s, Run) else None
            if joined is None:
                out.append(s)
                continue
            if self.made and self.made[-1] is last:
                self.made.pop()
            self.made.append(joined)
            out[-1] = joined
        return out

    def both(self, first: Run, second: Run) -> Run | None:
        """Both as one; None if they can't be joined, or it would not pay."""
        buffers = [b for s in (first, second) for group in self.used.of(s) for b in group]
        numbers: dict[Buffer, int] = {}
        same = [numbers.setdefault(b, len(numbers)) for group in (buffers, map(self.at, buffers)) for b in group]
        key = model_of(first), model_of(second), tuple(same)
        if key not in self.known:
            a, b = (expanded(s) if type(s) is Instance else s for s in (first, second))
            made = self.join(a, b, self.storage)
            self.known[key] = None if made is None else (made, buffers)
            return made
        found = self.known[key]
        if found is None:
            return None
        kernel, instead_of = found
        return Instance(first.name, kernel, dict(zip(instead_of, buffers)))

    def at(self, b: Buffer) -> Buffer:
        """The buffer whose storage another uses."""
        return self.storage.get(b, b)


def _joined(first: Kernel, second: Kernel, storage: dict[Buffer, Buffer]) -> Kernel | None:
    """Both kernels as one; None if they can't be joined, or it would not pay."""
    if first.plain or second.plain or not _may_join(first, second, storage, ROW_BYTES):
        return None
    (loop,), (more,) = _loops(first.body, 1), _loops(second.body, 1)
    return Kernel(first.name, [replace(loop, body=[*loop.body, *fresh(more.body, {more.var: loop.var})])])


def _reduced_as_written(body: list[Stmt]) -> list[Stmt]:
    """Statements in which a loop that reduces, element by element, what the preceding loop has written does so in that
    same loop.
    """
    out: list[Stmt] = []
    for s in body:
        if type(s) is For and s.kind == "reduce":
            at = len(out)
            while at and type(begun := out[at - 1]) is Declare and type(begun.init) is Const:
                at -= 1
            both = _both(out[at - 1], s) if at else None
            if both is not None:
                del out[at - 1]
                s = both
        out.append(s)
    return out


def _both(first: Stmt, second: For) -> For | None:
    """A loop that writes and one that reduces the written values as one; None if they can't be joined, or if the first
    computes many functions, whose constants leave no registers for sums.
    """
    if (
        type(first) is not For
        or first.kind != "parallel"
        or type(first.extent) is not int
        or first.extent != second.extent
    ):
        return None
    if any(type(s) not in (Let, Store) for s in first.body) or any(type(s) not in (Let, Assign) for s in second.body):
        return None
    nodes = [node for s in first.body for e in expressions(s) for node in walk_expr(e)]
    written = {s.buffer: s for s in first.body if type(s) is Store}
    if any(type(node) is Call or type(node) is Load and node.buffer in written for node in nodes):
        return None
    values = {s: Var("value", s.buffer.dtype) for s in written.values()}
    body: list[Stmt] = []
    for s in first.body:
        body += (
            [Let(values[s], s.value), Store(s.buffer, s.index, values[s])] if type(s) is Store and s in values else [s]
        )
    reduced = fresh(second.body, {second.var: first.var})
    mapping: dict[Expr, Expr] = {}
    for node in (node for s in reduced for e in expressions(s) for node in walk_expr(e)):
        if type(node) is Load and node.buffer in written:
            store = written[node.buffer]
            if linear(node.index) != linear(store.index):
                return None
            mapping[node] = values[store]
    return For(first.var, first.extent, [*body, *rewrite(reduced, mapping)], "reduce") if mapping else None


def _may_join(first: Kernel, second: Kernel, storage: dict[Buffer, Buffer], most: int, scheduled: bool = False) -> bool:
    """Whether iterations of the two may take turns and it pays: they share much, and no more than `most` bytes are
    in use at a time.
    """
    a, b = _uses(first, scheduled), _uses(second, scheduled)
    if a is None or b is None or _counts(first) != _counts(second):
        return False
    shared = 0
    for x, use in a.items():
        for y, other in b.items():
            if storage.get(x, x) is not storage.get(y, y):
                continue
            alike = (
                use.row is not None
                and use.row == other.row
                and use.base == other.base
                and (x is y or ITEMSIZE[x.dtype] == ITEMSIZE[y.dtype])
            )
            if (use.written or other.written) and not alike:
                return False
            if alike and use.row is not None and use.row >= SHORTEST:
                shared += math.prod(_counts(first)) * use.row * ITEMSIZE[x.dtype]
    at_a_time = sum(use.row * ITEMSIZE[x.dtype] for x, use in (a | b).items() if use.row)
    return shared >= WORTH and at_a_time <= most


def fuse_batches(program: Program) -> Program:
    """The scheduled program with products of batches and adjacent kernels over the same batch joined: the results for a
    matrix, or a block of its rows, are still in the cache when the next kernel uses them.
    """
    return _fused(program, _with_product)


def _with_product(first: Kernel, second: Kernel, storage: dict[Buffer, Buffer]) -> Kernel | None:
    """Both kernels as one over the batch of the product that one of them is, and over its blocks of rows if possible;
    None if they can't be joined, or it would not pay.
    """
    product = first if first.plain else second
    if not product.plain:
        return None
    for depth in range(product.depth, 0, -1):
        counts = _counts(product)[:depth]
        a, b = (_split(kernel, counts) for kernel in (first, second))
        if a is not None and b is not None and _may_join(a, b, storage, BATCH_BYTES, scheduled=True):
            body, plain = (_in_turn(x, y, depth) for x, y in ((a.body, b.body), (a.plain or a.body, b.plain or b.body)))
            _loops(body, 1)[0].tasks = 1
            return Kernel(
                first.name,
                body,
                plain=plain,
                depth=depth,
                parts=[*(first.parts or [first]), *(second.parts or [second])],
            )
    return None


def _in_turn(body: list[Stmt], more: list[Stmt], depth: int) -> list[Stmt]:
    """Two nests of `depth` loops as one. The statements of the second before an inner loop come before those of the
    first: they pack values that do not depend on the row.
    """
    (loop,), (second,), before, others = _loops(body, 1), _loops(more, 1), body[:-1], more[:-1]
    inner = fresh(second.body, {second.var: loop.var})
    inner = [*loop.body, *inner] if depth == 1 else _in_turn(loop.body, inner, depth - 1)
    return [
        *before,
        *others,
        For(loop.var, loop.extent, inner, loop.kind if loop.kind == second.kind else "sequential"),
    ]


def _counts(kernel: Kernel) -> list[int]:
    """The extents of the loops over rows."""
    return [loop.count for loop in _loops(kernel.plain or kernel.body, kernel.depth)]


def _loops(body: list[Stmt], depth: int) -> list[For]:
    """The loops over rows, from the outermost on: each is the last statement in the surrounding one."""
    loops: list[For] = []
    while len(loops) < depth:
        loop = body[-1]
        if type(loop) is not For:
            raise TypeError(f"{depth} loops over rows are only {len(loops)}")
        loops.append(loop)
        body = loop.body
    return loops


def _split(kernel: Kernel, counts: list[int]) -> Kernel | None:
    """A kernel whose outermost loops have `counts` iterations, its own divided into that many runs; None if that is
    impossible.
    """
    loop = kernel.body[0] if len(kernel.body) == 1 else None
    if type(loop) is not For or loop.kind != "parallel" or type(loop.extent) is not int:
        return None
    if _counts(kernel)[: len(counts)] == counts:
        return replace(kernel, depth=len(counts))
    total = math.prod(counts)
    if kernel.plain or loop.extent % total:
        return None
    row, outer = Var(loop.var.name), [Var(f"{loop.var.name}.{level}") for level in range(len(counts))]
    number: Expr = i32(0)
    for var, count in zip(outer, counts):
        number = number * count + var
    each = loop.extent // total
    body: list[Stmt] = [replace(loop, var=row, extent=each, body=fresh(loop.body, {loop.var: number * each + row}))]
    for var, count in zip(reversed(outer), reversed(counts)):
        body = [For(var, count, body, "parallel")]
    return Kernel(kernel.name, body, depth=len(counts))


def in_place_pairs(kernel: Kernel) -> list[tuple[Buffer, Buffer]]:
    """(read, written) buffers of a kernel over rows where the written one may take the storage of the read one: a row
    of the former is written after that of the latter has been read for the last time.
    """
    uses = _uses(kernel, scheduled=True)
    if uses is None:
        return []
    if kernel.parts:
        uses_of = [{b for group in touched(part.plain or part.body) for b in group} for part in kernel.parts]
        return [
            (old, new)
            for k, part in enumerate(kernel.parts)
            for old, new in in_place_pairs(part)
            if old in uses
            and new in uses
            and uses[old].row is not None
            and (uses[old].row, uses[old].base) == (uses[new].row, uses[new].base)
            and not any(new in used for used in uses_of[:k])
            and not any(old in used for used in uses_of[k + 1 :])
        ]
    statements = _loops(kernel.body, 1)[0].body
    steps = [touched([s]) for s in statements]
    pairs: list[tuple[Buffer, Buffer]] = []
    for new, use in uses.items():
        if use.written and use.row is not None:
            first = next(k for k, (_, writes) in enumerate(steps) if new in writes)
            for old, other in uses.items():
                same = (
                    other.row == use.row
                    and other.base == use.base
                    and not other.written
                    and ITEMSIZE[old.dtype] == ITEMSIZE[new.dtype]
                )
                last = max((k for k, (reads, _) in enumerate(steps) if old in reads), default=-1)
                if (
                    same
                    and new.nbytes <= old.nbytes
                    and (last < first or last == first and _elementwise(statements[first], old, new))
                ):
                    pairs.append((old, new))
    return pairs


def _elementwise(s: Stmt, old: Buffer, new: Buffer) -> bool:
    """Whether a statement is a loop that writes each element of one buffer after it has read the same one, and no
    other, of another.
    """
    if type(s) is not For or s.kind != "parallel" or any(type(x) not in (Let, Store) for x in s.body):
        return False
    stores = [x for x in s.body if type(x) is Store and x.buffer is new]
    loads = [
        node
        for x in s.body
        for e in expressions(x)
        for node in walk_expr(e)
        if type(node) is Load and node.buffer is old
    ]
    if len(stores) != 1 or s.body[-1] is not stores[0]:
        return False
    form = linear(stores[0].index)
    bound = {x.var for x in s.body if type(x) is Let}
    return distinct(form[0], {s.var: s.extent}, bound) and all(linear(node.index) == form for node in loads)


def _uses(kernel: Kernel, scheduled: bool = False) -> dict[Buffer, BufferUse] | None:
    """How a kernel that is a loop over rows, and not `scheduled` yet, uses its buffers; None for other kernels."""
    body = kernel.plain or kernel.body
    if len(body) != 1 or kernel.workgroup or type(body[0]) is not For or body[0].kind != "parallel":
        return None
    loops = _loops(body, kernel.depth)
    if any(type(loop.extent) is not int for loop in loops) or math.prod(loop.count for loop in loops) < 2:
        return None
    extents: dict[Var, int] = {}
    unknown: set[Expr] = set()
    for s in walk([loops[0]]):
        if type(s) is For:
            if type(s.extent) is not int or not scheduled and (s.vector or s.unroll > 1 or s.outline or s.tasks):
                return None
            extents[s.var] = s.count
        elif type(s) is Let:
            unknown.add(s.var)
    for loop in loops:
        del extents[loop.var]
    if not extents:
        return None
    found: dict[Buffer, BufferUse] = {}
    seen: set[Expr] = set()
    for s in walk(loops[-1].body):
        accesses = [
            (node.buffer, node.index) for e in expressions(s) for node in walk_expr(e, seen) if type(node) is Load
        ]
        if type(s) is Store:
            accesses.append((s.buffer, s.index))
        for buffer, index in accesses:
            if buffer.role == "private":
                continue
            use = _row_of(*linear(index), loops, extents, unknown)
            if use is None:
                return None
            known = found.setdefault(buffer, use)
            if (known.row, known.base) != (use.row, use.base):
                known.row = None
        if type(s) is Store and s.buffer in found:
            found[s.buffer].written = True
    return found


def _row_of(
    terms: dict[Expr, int], const: int, loops: list[For], extents: dict[Var, int], unknown: set[Expr]
) -> BufferUse | None:
    """The use that an index makes; None where neighbouring rows lie side by side, which is better done many rows at
    a time.
    """
    size = step = terms.get(loops[-1].var, 0)
    inner = {t: c for t, c in terms.items() if t in extents}
    if abs(size) == 1 and inner:
        return None
    # rows continue from one iteration of an outer loop to the next
    for outer, loop in zip(loops[-2::-1], loops[::-1]):
        step *= loop.count
        if terms.get(outer.var, 0) != step:
            return BufferUse(None)
    base = {t: c for t, c in terms.items() if t not in extents and all(t is not loop.var for loop in loops)}
    if (
        size < 1
        or const < 0
        or any(type(t) is not Var or t in unknown for t in base)
        or any(c < 0 for c in inner.values())
    ):
        return BufferUse(None)
    last = const + sum(c * (extents[t] - 1) for t, c in inner.items())
    return BufferUse(size if last < size else None, frozenset(base.items()))


def _as_row(kernel: Kernel, buffer: Buffer, use: BufferUse) -> Buffer | None:
    """The private row that may take the place of a temp which `kernel` alone uses: each row is first of all written
    wholly.
    """
    if use.row is None or use.row < SHORTEST or use.base:
        return None
    block = _loops(kernel.plain or kernel.body, kernel.depth)[-1].body
    covered: list[tuple[Expr, int]] = []
    while True:
        first = next(s for s in block if buffer in [b for group in touched([s]) for b in group])
        if type(first) is not For or first.kind == "sequential":
            break
        covered.append((first.var, first.count))
        block = first.body
    if type(first) is not Store or first.buffer is not buffer or buffer in touched([first])[0]:
        return None
    terms, const = linear(first.index)
    step = 1
    for var, extent in sorted(covered, key=lambda loop: terms.get(loop[0], 0)):
        if terms.get(var, 0) != step and extent > 1:
            return None
        step *= extent
    return Buffer(buffer.name, buffer.dtype, (use.row,), "private") if step == use.row and not const else None


def _on_private_rows(kernel: Kernel, rows: dict[Buffer, Buffer]) -> Kernel:
    """The kernel with rows in the place of buffers."""
    body, plain = (_on_rows(statements, kernel.depth, rows) for statements in (kernel.body, kernel.plain))
    return replace(kernel, body=body, plain=plain)


def _on_rows(body: list[Stmt], depth: int, rows: dict[Buffer, Buffer]) -> list[Stmt]:
    """Statements that use rows in the place of buffers."""
    if not rows or not body:
        return body
    start: dict[Expr, Expr] = {loop.var: i32(0) for loop in _loops(body, depth)}
    mapping: dict[Expr, Expr] = {}
    seen: set[Expr] = set()
    for s in walk(body):
        for e in expressions(s):
            for node in walk_expr(e, seen):
                if type(node) is Load and node.buffer in rows:
                    mapping[node] = Load(rows[node.buffer], substitute(node.index, start))
    body = rewrite(body, mapping)
    for s in walk(body):
        if type(s) is Store and s.buffer in rows:
            s.buffer, s.index = rows[s.buffer], substitute(s.index, start)
    return body


__all__ = ["fuse_batches", "in_place_pairs", "fuse_kernels"]
