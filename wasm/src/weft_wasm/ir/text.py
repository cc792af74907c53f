"""The loop IR as text. Each statement is a line; values that it uses several times have separate lines before it (`%0 =
…`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Never

from weft_wasm.ir.nodes import (
    Assign,
    Barrier,
    Binary,
    Bitcast,
    Call,
    Compare,
    Const,
    Convert,
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
    Local,
    MulAdd,
    Node,
    Poll,
    Program,
    Select,
    Stmt,
    Store,
    Switch,
    Unary,
    Var,
    While,
    shown,
)
from weft_wasm.ir.traversal import expressions, operands, walk_expr

_SYMBOL = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "rem": "%",
    "and": "&",
    "or": "|",
    "xor": "^",
    "shl": "<<",
    "shr": ">>",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
}


def unknown(x: Never) -> str:
    """The text of a value that is not part of the IR, for messages about malformed programs."""
    return repr(x)


MOST = 10_000  # nodes of one expression that are written out: written out, what is shared grows without end


def show(e: Expr | int, names: dict[Expr, str] | None = None) -> str:
    """An expression as text; nodes in `names` by their names, and dots for what is beyond the first `MOST`."""
    known = names or {}
    left = MOST

    def text(e: Expr | int) -> str:
        nonlocal left
        left -= 1
        if left < 0:
            return "…"
        return known[e] if isinstance(e, Node) and e in known else form(e)

    def form(e: Expr | int) -> str:
        match e:
            case int():
                return str(e)
            case Const():
                return str(e.value)
            case Var() | Local():
                return e.name
            case Load():
                return f"{e.buffer.name}[{text(e.index)}]"
            case Unary():
                return f"{e.op}({text(e.x)})"
            case Binary() | Compare():
                if e.op in _SYMBOL:
                    return f"({text(e.a)} {_SYMBOL[e.op]} {text(e.b)})"
                return f"{e.op}({text(e.a)}, {text(e.b)})"
            case Select():
                return f"select({text(e.cond)}, {text(e.a)}, {text(e.b)})"
            case Convert():
                return f"{e.dtype}({text(e.x)})"
            case Bitcast():
                return f"bitcast_{e.dtype}({text(e.x)})"
            case MulAdd():
                return f"muladd({text(e.a)}, {text(e.b)}, {text(e.c)})"
            case Call():
                return f"{e.fn}({', '.join(map(text, e.args))})"
            case _:
                return unknown(e)

    return text(e)


def _shared(s: Stmt) -> tuple[dict[Expr, str], list[str]]:
    """Names for the nodes that a statement refers to several times and that are more than a leaf or an access, and
    their lines.
    """
    uses: dict[Expr, int] = {}
    nodes: list[Expr] = []
    seen: set[Expr] = set()
    for e in expressions(s):
        uses[e] = uses.get(e, 0) + 1
        for node in walk_expr(e, seen):
            nodes.append(node)
            for x in operands(node):
                uses[x] = uses.get(x, 0) + 1
    large: dict[Expr, bool] = {}  # whether its text is longer than a word
    for node in nodes:
        large[node] = any(operands(x) for x in operands(node)) and not (type(node) is Load and not large[node.index])
    names: dict[Expr, str] = {}
    lines = []
    for node in nodes:
        if uses[node] > 1 and large[node]:
            line = show(node, names)
            names[node] = f"%{len(names)}"
            lines.append(f"{names[node]} = {line}")
    return names, lines


def lines(body: Sequence[Stmt], depth: int) -> Iterator[str]:
    pad = "  " * depth
    for s in body:
        names, named = _shared(s)
        yield from (f"{pad}{line}" for line in named)
        text = functools.partial(show, names=names)
        match s:
            case For():
                how = "".join(
                    f" {name}={n}"
                    for name, n, default in (("vector", s.vector, 0), ("unroll", s.unroll, 1), ("tasks", s.tasks, 0))
                    if n > default
                )
                yield f"{pad}{s.kind} {s.var.name} < {text(s.extent)}{how}"
                yield from lines(s.body, depth + 1)
            case While():
                yield f"{pad}while"
                yield from lines(s.cond, depth + 2)
                yield f"{pad}  test {text(s.test)}"
                yield from lines(s.body, depth + 1)
            case If():
                yield f"{pad}if {text(s.test)}"
                yield from lines(s.then, depth + 1)
                if s.orelse:
                    yield f"{pad}else"
                    yield from lines(s.orelse, depth + 1)
            case Switch():
                yield f"{pad}switch {text(s.index)}"
                for k, branch in enumerate(s.branches):
                    yield f"{pad}case {k}"
                    yield from lines(branch, depth + 1)
            case Let():
                yield f"{pad}let {s.var.name}: {s.var.dtype} = {text(s.value)}"
            case Declare():
                yield f"{pad}local {s.local.name}: {s.local.dtype} = {text(s.init)}"
            case Assign():
                yield f"{pad}{s.local.name} = {text(s.value)}"
            case Store():
                yield f"{pad}{s.buffer.name}[{text(s.index)}] = {text(s.value)}"
            case Kernel():
                yield f"{pad}kernel {s.name}"
                for b in s.workgroup:
                    yield f"{pad}  workgroup {b!r}"
                yield from lines(s.body, depth + 1)
            case Instance():
                pairs = [f"{new.name} for {old.name}" for old, new in s.buffers.items()]
                yield f"{pad}kernel {s.name} = {s.kernel.name} with {', '.join(pairs) or 'its own buffers'}"
            case Copy():
                yield f"{pad}copy {s.count} of {s.src.name}[{text(s.src_index)}:] to {s.dst.name}[{text(s.dst_index)}:]"
            case Barrier():
                yield f"{pad}barrier"
            case Poll():
                yield f"{pad}poll"
            case HostCall():
                yield (
                    f"{pad}call {s.number}({', '.join(b.name for b in s.arguments)}) ->"
                    f" ({', '.join(b.name for b in s.results)})"
                )
            case Fail():
                yield f"{pad}fail {s.code}"
            case _:
                yield f"{pad}{unknown(s)}"


def describe(program: Program) -> str:
    """The program as text."""
    names = [", ".join(map(repr, group)) for group in (program.inputs, program.outputs)]
    head = [f"program {program.name}({names[0]}) -> ({names[1]})"]
    head += [f"  temp {b!r}" for b in program.temps] + [f"  constant {b!r}" for b in program.constants]
    return "\n".join(head + list(lines(program.body, 1)))


shown.register(Node, show)
shown.register(Program, describe)
