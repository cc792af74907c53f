"""Which loops threads share.

A loop with `tasks=n` may be cut into runs of at least n iterations that threads take one after the other. What a program computes does not
depend on how many threads there are: the cuts of vector loops are made here, once. Sharing costs microseconds (a thread has to wake up), so
only loops that take much longer are marked, by an estimate of their time.
"""

from __future__ import annotations

from dataclasses import replace

from weft_wasm.ir import ITEMSIZE, Assign, Call, Declare, Expr, For, Let, Load, Program, Stmt, Store, Var, blocks, expressions, walk_expr
from weft_wasm.rewriting import fresh, map_kernels

WORTH = 150_000  # ns: a loop that takes less stays on one thread
GRAIN = 20_000  # ns: the shortest run of iterations that a thread takes at once
RUNS = 64  # and the most runs of one loop
UNIT = 64  # runs of vector loops are multiples of this many elements
NODE, CALL, BYTE = 0.25, 4.0, 0.06  # ns for a scalar operation, a function such as exp, a byte of memory
LANES = 3  # about how many times faster a vector loop is


def share(program: Program) -> Program:
    """The program with the loops marked that are worth sharing. Kernels with marked loops stay as they are."""
    return map_kernels(program, kernel_body)


def kernel_body(body: list[Stmt]) -> list[Stmt]:
    """The statements with every outermost loop shared that pays."""
    out: list[Stmt] = []
    for s in body:
        if type(s) is For and type(s.extent) is int and not s.tasks and cost([s]) >= WORTH:
            out += shared(s) if s.kind == "parallel" else [replace(s, body=kernel_body(s.body))]
        else:
            out.append(s)
    return out


def shared(s: For) -> list[Stmt]:
    """A parallel loop that takes long: it or a loop just inside it marked, or cut in two if its iterations run in lanes."""
    each = cost(s.body) / (LANES if s.vector else 1)
    extent = s.count
    if s.vector:
        size = max(1, -(-int(max(GRAIN / max(each, 1e-3), extent / RUNS)) // UNIT)) * UNIT
        count = extent // size
        if count < 2:
            return [s]
        outer, inner, rest = Var(f"{s.var.name}.o"), Var(s.var.name), Var(s.var.name)
        run = replace(s, var=inner, extent=size, body=fresh(s.body, {s.var: outer * size + inner}))
        cut: list[Stmt] = [For(outer, count, [run], "parallel", tasks=1)]
        if extent % size:
            cut.append(replace(s, var=rest, extent=extent % size, body=fresh(s.body, {s.var: rest + count * size})))
        return cut
    if extent < 4 and len(s.body) == 1 and type(s.body[0]) is For and each >= WORTH:
        return [replace(s, body=kernel_body(s.body))]
    return [replace(s, tasks=grain(extent, each))] if extent > 1 else [replace(s, body=kernel_body(s.body))]


def grain(extent: int, each: float) -> int:
    """How many iterations of `each` ns a thread takes at once."""
    return max(1, int(GRAIN / max(each, 1e-3)), extent // RUNS)


def cost(body: list[Stmt]) -> float:
    """An estimate of the time of statements, in ns. Loops of unknown extent count once, branches as the dearest."""
    total = 0.0
    seen: set[Expr] = set()
    for s in body:
        for e in expressions(s):
            total += sum(map(_node, walk_expr(e, seen)))
        if type(s) is Store:
            total += BYTE * ITEMSIZE[s.buffer.dtype]
        elif type(s) is For:
            inner = cost(s.body) * (s.extent if type(s.extent) is int else 1)
            total += inner / LANES if s.vector else inner
        elif type(s) not in (Let, Assign, Declare):
            total += max((cost(b) for b in blocks(s)), default=0.0)
    return total


def _node(e: Expr) -> float:
    if type(e) is Load:
        return NODE + BYTE * ITEMSIZE[e.dtype]
    return CALL if type(e) is Call else NODE
