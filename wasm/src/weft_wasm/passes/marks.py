"""Calls of the host before and after each kernel, for measuring how long kernels take."""

from __future__ import annotations

from dataclasses import dataclass, replace

from weft_wasm.ir.nodes import Buffer, Called, HostCall, Instance, Kernel, Program, Stmt
from weft_wasm.ir.rewriting import map_blocks


@dataclass(frozen=True)
class Mark:
    """A host call without data. On WebGPU it reads a word, so that it waits for what was queued before it."""

    name: str
    ins: tuple[object, ...] = ()
    outs: tuple[object, ...] = ()


def mark_kernels(program: Program, waits: bool) -> tuple[Program, list[str]]:
    """The program with marks, and the names of its kernels.

    The k-th of them stands between the calls len(program.calls) + 2 * k and the next. waits: the marks read a word.
    """
    table, word = Buffer("marks", "i32", (2,), "temp"), Buffer("mark", "i32", (1,), "temp")
    arguments = [word] if waits else []
    names: list[str] = []
    calls: list[Called] = [*program.calls]

    def marked(block: list[Stmt]) -> list[Stmt]:
        out: list[Stmt] = []
        for s in block:
            if type(s) is Kernel or type(s) is Instance:
                number = len(calls)
                calls.extend([Mark(s.name, (None,) * len(arguments))] * 2)
                names.append(s.name)
                out += [HostCall(number, table, arguments, []), s, HostCall(number + 1, table, arguments, [])]
            else:
                out.append(s)
        return out

    body = map_blocks(program.body, marked)
    temps = [*program.temps, table, *arguments]
    return replace(program, body=body, temps=temps, calls=calls), names
