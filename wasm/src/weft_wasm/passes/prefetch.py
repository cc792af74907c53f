"""Rows of large arrays fetched before their turn.

A kernel that processes each row several times waits for memory in its first pass and leaves memory idle in the others:
processors prefetch within a page, and a row is often as long as a page. So a later pass, the one that computes most,
also loads the next row. The loaded values are not used, but engines keep loads, since they might trap, and the
processor fetches their cache lines.
"""

from __future__ import annotations

from dataclasses import replace

from weft_wasm.ir.affine import linear
from weft_wasm.ir.nodes import ITEMSIZE, Buffer, Call, For, Let, Load, Program, Var, i32, minimum
from weft_wasm.ir.traversal import expressions, touched, walk, walk_expr
from weft_wasm.ir.rewriting import map_kernels

LARGE = 1 << 20  # bytes: smaller arrays stay in the second cache
# bytes of a row: shorter ones are fetched as one stream, and the beginning of longer ones would be evicted again
SHORT, LONG = 1 << 11, 1 << 15


def fetch_ahead(program: Program) -> Program:
    """The scheduled program with such loads. The storage of buffers must have been planned: the loads read rows that
    other iterations may overwrite.
    """
    return map_kernels(program, lambda body: [_rows(s) if type(s) is For and s.kind == "parallel" else s for s in body])


def _rows(rows: For) -> For:
    passes = [(k, s) for k, s in enumerate(rows.body) if type(s) is For]
    source = _source(rows, passes[0][1]) if type(rows.extent) is int and len(passes) > 1 else None
    if source is None:
        return rows
    x, row = source
    later = [(k, s) for k, s in passes[1:] if _in_lanes(s, row)]
    if not later:
        return rows
    k, loop = next(((k, s) for k, s in later if _calls(s)), later[-1])
    ahead = Load(x, minimum(rows.var + 1, i32(rows.count - 1)) * row + loop.var)
    return replace(
        rows,
        body=[*rows.body[:k], replace(loop, body=[Let(Var("ahead", x.dtype), ahead), *loop.body]), *rows.body[k + 1 :]],
    )


def _in_lanes(s: For, row: int) -> bool:
    """Whether a pass runs in lanes from one end of the row to the other."""
    return s.kind == "parallel" and s.vector > 0 and s.extent == row and not any(type(x) is For for x in s.body)


def _calls(s: For) -> bool:
    return any(type(node) is Call for x in s.body for e in expressions(x) for node in walk_expr(e))


def _source(rows: For, first: For) -> tuple[Buffer, int] | None:
    """(array, elements of a row) that the first pass reads row by row from memory; None if there is no such array, or
    several.
    """
    found: set[tuple[Buffer, int]] = set()
    written = touched([rows])[1]
    for s in walk([first]):
        for e in expressions(s):
            for node in walk_expr(e):
                if (
                    type(node) is Load
                    and node.buffer.role != "private"
                    and node.buffer.nbytes >= LARGE
                    and node.buffer not in written
                ):
                    terms, const = linear(node.index)
                    row = terms.get(rows.var, 0)
                    whole = row * rows.count == node.buffer.size and not const
                    if whole and ITEMSIZE[node.dtype] == 4 and SHORT <= 4 * row <= LONG:
                        found.add((node.buffer, row))
    return found.pop() if len(found) == 1 else None
