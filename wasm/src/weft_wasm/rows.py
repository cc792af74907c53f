"""Neighbouring kernels that go over the same rows become one: what one has read or written is still in the cache when the next comes to it.

A kernel that is one parallel loop uses a buffer by rows if all its indices are row * size + something below size. Two such kernels may run row by row if
whatever one of them writes and the other touches is used by the same rows in both. An array that nobody sees but row by row shrinks to one row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from weft_wasm.affine import linear
from weft_wasm.ir import ITEMSIZE, Buffer, Expr, For, If, Kernel, Let, Load, Program, Store, Switch, Var, While, expressions, i32, substitute, touched, walk, walk_expr
from weft_wasm.rewriting import fresh, map_blocks, rewrite

ROW_BYTES = 64 << 10  # of all rows in use at a time: they must stay in the nearest caches
BATCH_BYTES = 4 << 20  # of all matrices, likewise in the farther ones
WORTH = 128 << 10  # bytes that two kernels must share to become one
SHORTEST = 16  # elements of a row that is worth keeping


@dataclass(slots=True)
class Use:
    """How a kernel uses a buffer: the elements of a row, or None where it is not used by rows."""

    row: int | None
    base: frozenset = frozenset()  # what is added to the index and does not change within the kernel
    written: bool = False


def merge(program: Program) -> Program:
    """The program with neighbouring kernels made one where that pays."""
    storage = {program.outputs[k]: program.inputs[j] for k, j in program.donated.items()}
    made: list[Kernel] = []
    body = map_blocks(program.body, lambda block: _neighbours(block, storage, made, _joined))
    users: dict[Buffer, list] = {}
    for s in _leaves(body):
        for b in {b for group in touched([s]) for b in group}:
            users.setdefault(b, []).append(s)
    rows = {b: row for kernel in made for b in program.temps if users.get(b) == [kernel] and (row := _as_row(kernel, b))}
    return replace(program, body=body, temps=[rows.get(b, b) for b in program.temps])


def _leaves(body: list) -> Iterator:
    """Kernels and whatever else does something by itself, in all blocks of the program level."""
    for s in body:
        match s:
            case For() | While() | If() | Switch():
                yield from (Let(Var("", e.dtype), e) for e in expressions(s))
                yield from _leaves([*s.cond, *s.body] if type(s) is While else s.body if type(s) is For else [*s.then, *s.orelse] if type(s) is If
                                   else [x for b in s.branches for x in b])  # fmt: skip
            case _:
                yield s


def _neighbours(body: list, storage: dict[Buffer, Buffer], made: list[Kernel], join: Callable) -> list:
    """One block with kernels made one that stand beside each other; `made` gets them."""
    out: list = []
    for s in body:
        joined = join(out[-1], s, storage) if out and type(s) is type(out[-1]) is Kernel else None
        if joined is None:
            out.append(s)
            continue
        if made and made[-1] is out[-1]:
            made.pop()
        made.append(joined)
        out[-1] = joined
    return out


def _joined(first: Kernel, second: Kernel, storage: dict[Buffer, Buffer]) -> Kernel | None:
    """Both kernels as one, or None where they can't be, or it would not pay."""
    if first.plain or second.plain or not _may_join(first, second, storage, ROW_BYTES):
        return None
    loop, more = first.body[0], second.body[0]
    return Kernel(first.name, [replace(loop, body=[*loop.body, *fresh(more.body, {more.var: loop.var})])])


def _may_join(first: Kernel, second: Kernel, storage: dict[Buffer, Buffer], most: int, scheduled: bool = False) -> bool:
    """Whether iterations of the two may take turns and it pays: they share much, and no more than `most` bytes are in use at a time."""
    a, b = _uses(first, scheduled), _uses(second, scheduled)
    if a is None or b is None or first.body[0].extent != second.body[0].extent:
        return False
    shared = 0
    for x, use in a.items():
        for y, other in b.items():
            if storage.get(x, x) is not storage.get(y, y):
                continue
            alike = use.row is not None and use.row == other.row and use.base == other.base and (x is y or ITEMSIZE[x.dtype] == ITEMSIZE[y.dtype])
            if (use.written or other.written) and not alike:
                return False
            if alike and use.row >= SHORTEST:
                shared += first.body[0].extent * use.row * ITEMSIZE[x.dtype]
    at_a_time = sum(use.row * ITEMSIZE[x.dtype] for x, use in (a | b).items() if use.row)
    return shared >= WORTH and at_a_time <= most


def by_batches(program: Program) -> Program:
    """The scheduled program with products of batches and their neighbours made one that go over the same batch: what one has made of a matrix is still in
    the cache when the next comes to it."""
    storage = {program.outputs[k]: program.inputs[j] for k, j in program.donated.items()}
    return replace(program, body=map_blocks(program.body, lambda block: _neighbours(block, storage, [], _with_product)))


def _with_product(first: Kernel, second: Kernel, storage: dict[Buffer, Buffer]) -> Kernel | None:
    """Both kernels as one over the batch of the product that one of them is, or None where they can't be, or it would not pay."""
    product = first if first.plain else second
    if not product.plain:
        return None
    a, b = (_split(kernel, product.body[0].extent) for kernel in (first, second))
    if a is None or b is None or not _may_join(a, b, storage, BATCH_BYTES, scheduled=True):
        return None
    nests = []
    for x, y in ((a.body, b.body), (a.plain or a.body, b.plain or b.body)):
        loop, more = x[0], y[0]
        nests.append([For(loop.var, loop.extent, [*loop.body, *fresh(more.body, {more.var: loop.var})], "parallel", tasks=1)])
    return Kernel(first.name, nests[0], plain=nests[1], parts=[*(first.parts or [first]), *(second.parts or [second])])


def _split(kernel: Kernel, count: int) -> Kernel | None:
    """A kernel whose outermost loop has `count` iterations, its own cut in as many runs; None where it can't be."""
    loop = kernel.body[0] if len(kernel.body) == 1 else None
    if type(loop) is not For or loop.kind != "parallel" or type(loop.extent) is not int or loop.extent % count:
        return None
    if loop.extent == count:
        return kernel
    if kernel.plain:
        return None
    batch, row, each = Var(f"{loop.var.name}.b"), Var(loop.var.name), loop.extent // count
    return Kernel(kernel.name, [For(batch, count, [replace(loop, var=row, extent=each, body=fresh(loop.body, {loop.var: batch * each + row}))], "parallel")])


def in_place_pairs(kernel: Kernel) -> set[tuple[Buffer, Buffer]]:
    """(read, written) buffers of a kernel that goes over rows of which the written one may take the storage of the read one: a row of the one is written
    after that of the other has been read for the last time."""
    uses = _uses(kernel, scheduled=True)
    if uses is None:
        return set()
    if kernel.parts:
        uses_of = [{b for group in touched(part.plain or part.body) for b in group} for part in kernel.parts]
        return {
            (old, new)
            for k, part in enumerate(kernel.parts)
            for old, new in in_place_pairs(part)
            if uses[old].row is not None and (uses[old].row, uses[old].base) == (uses[new].row, uses[new].base)
            and not any(new in used for used in uses_of[:k]) and not any(old in used for used in uses_of[k + 1 :])
        }  # fmt: skip
    steps = [touched([s]) for s in kernel.body[0].body]
    pairs = set()
    for new, use in uses.items():
        if use.written and use.row is not None:
            first = next(k for k, (_, writes) in enumerate(steps) if new in writes)
            for old, other in uses.items():
                same = other.row == use.row and other.base == use.base and not other.written and ITEMSIZE[old.dtype] == ITEMSIZE[new.dtype]
                if same and new.nbytes <= old.nbytes and all(k < first for k, (reads, _) in enumerate(steps) if old in reads):
                    pairs.add((old, new))
    return pairs


def _uses(kernel: Kernel, scheduled: bool = False) -> dict[Buffer, Use] | None:
    """How a kernel that is a loop over rows, and not `scheduled` yet, uses its buffers; None if it is none."""
    body = kernel.plain or kernel.body
    if len(body) != 1 or kernel.workgroup:
        return None
    loop = body[0]
    if type(loop) is not For or loop.kind != "parallel" or type(loop.extent) is not int or loop.extent < 2:
        return None
    extents: dict[Var, int] = {}
    unknown: set[Expr] = set()
    for s in walk([loop]):
        if type(s) is For:
            if type(s.extent) is not int or not scheduled and (s.vector or s.unroll > 1 or s.outline or s.tasks):
                return None
            extents[s.var] = s.extent
        elif type(s) is Let:
            unknown.add(s.var)
    if len(extents) == 1:
        return None
    found: dict[Buffer, Use] = {}
    seen: set[Expr] = set()
    forms: dict = {}
    for s in walk(loop.body):
        accesses = [(node.buffer, node.index) for e in expressions(s) for node in walk_expr(e, seen) if type(node) is Load]
        if type(s) is Store:
            accesses.append((s.buffer, s.index))
        for buffer, index in accesses:
            if buffer.role == "private":
                continue
            use = _row_of(*linear(index, forms), loop.var, extents, unknown)
            if use is None:
                return None
            known = found.setdefault(buffer, use)
            if (known.row, known.base) != (use.row, use.base):
                known.row = None
        if type(s) is Store and s.buffer in found:
            found[s.buffer].written = True
    return found


def _row_of(terms: dict[Expr, int], const: int, row: Var, extents: dict[Var, int], unknown: set[Expr]) -> Use | None:
    """The use that an index makes; None where neighbouring rows lie side by side, which is better done many rows at a time."""
    size = terms.get(row, 0)
    inner = {t: c for t, c in terms.items() if t in extents and t is not row}
    if abs(size) == 1 and inner:
        return None
    base = {t: c for t, c in terms.items() if t not in extents}
    if size < 1 or const < 0 or any(type(t) is not Var or t in unknown for t in base) or any(c < 0 for c in inner.values()):
        return Use(None)
    last = const + sum(c * (extents[t] - 1) for t, c in inner.items())
    return Use(size if last < size else None, frozenset(base.items()))


def _as_row(kernel: Kernel, buffer: Buffer) -> Buffer | None:
    """The private row that takes the place of a temp which `kernel` alone uses, if each row is first of all written wholly; the kernel is rewritten."""
    loop = kernel.body[0]
    use = _uses(kernel)[buffer]
    if use.row is None or use.row < SHORTEST or use.base:
        return None
    first = next(s for s in loop.body if buffer in [b for group in touched([s]) for b in group])
    covered: list[tuple[Var, int]] = []
    while type(first) is For and first.kind == "parallel" and len(first.body) == 1:
        covered.append((first.var, first.extent))
        first = first.body[0]
    if type(first) is not Store or first.buffer is not buffer or buffer in touched([first])[0]:
        return None
    step, (terms, const) = 1, linear(first.index, {})
    for var, extent in reversed(covered):
        if terms.get(var) != step and extent > 1:
            return None
        step *= extent
    if step != use.row or const:
        return None
    row = Buffer(buffer.name, buffer.dtype, (use.row,), "private")
    start: dict[Expr, Expr] = {loop.var: i32(0)}
    mapping: dict[Expr, Expr] = {}
    for s in walk(loop.body):
        for e in expressions(s):
            for node in walk_expr(e):
                if type(node) is Load and node.buffer is buffer:
                    mapping[node] = Load(row, substitute(node.index, start))
    kernel.body = [replace(loop, body=rewrite(loop.body, mapping))]
    for s in walk(kernel.body):
        if type(s) is Store and s.buffer is buffer:
            s.buffer, s.index = row, substitute(s.index, start)
    return row


__all__ = ["merge"]
