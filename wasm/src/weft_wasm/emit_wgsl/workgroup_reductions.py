"""A workgroup for each point of the grid: long reductions are shared out over its invocations and combined in workgroup
memory.

Every invocation runs the body. Bindings and locals are computed by all alike; a reduce loop is strided over the
invocations and its accumulators combined in a tree; a parallel loop is strided; single stores are left to the first
invocation. Between uses of storage that the body changes there is a barrier.
"""

from __future__ import annotations

import math

from weft_wasm.emit_wgsl.dispatches import Dispatch
from weft_wasm.emit_wgsl.shader import Shader
from weft_wasm.ir.nodes import Assign, Binary, Buffer, Const, Declare, Expr, For, If, Let, Local, Stmt, Store, Var
from weft_wasm.ir.traversal import touched, walk, written
from weft_wasm.ir.reductions import identity, reductions

LONG = 256  # terms from which a workgroup sums them
FEW = 1024  # points up to which that pays; with more, one invocation each keeps the device busy,
VERY_LONG = 8192  # unless a sum is so long that blocks are wanted for its rounding


def threads(d: Dispatch) -> int:
    """How many invocations share a point; 0 where the body does not allow it or it does not pay."""
    loops = [s for s in d.body if type(s) is For and s.kind == "reduce"]
    terms = max((trips(s) for s in loops), default=0)
    # each accumulator is combined by itself
    most = max((len(reductions(s)) for s in loops), default=0)
    if terms < LONG * max(most, 1) or (d.size > FEW and terms < VERY_LONG) or not all(_fits(s) for s in d.body):
        return 0
    return 64 if terms < 16 * LONG else 256


def trips(s: For) -> int:
    """Iterations of a perfect nest of loops of one kind; 0 if its outermost extent isn't known."""
    if isinstance(s.extent, Expr):
        return 0
    return s.extent * max((trips(x) for x in s.body if type(x) is For and x.kind == s.kind), default=1)


def _fits(s: Stmt) -> bool:
    match s:
        case Let() | Declare() | Assign() | Store():
            return True
        case For(kind="reduce"):
            return not isinstance(s.extent, Expr) and not any(type(x) is Store for x in walk(s.body))
        case For(kind="parallel"):
            return not isinstance(s.extent, Expr)
        case If():  # stores under a condition
            return all(type(x) in (Store, Let, Declare, If) for x in walk([*s.then, *s.orelse]))
    return False


def emit(shader: Shader, d: Dispatch, width: int) -> list[str]:
    """Writes the body; returns the declarations of workgroup memory."""
    shared: dict[str, str] = {}
    unsettled: list[Buffer] = []  # read or written since the last barrier
    changing = written(d.body)
    for s in d.body:
        used = [b for group in touched([s]) for b in group if any(shader.overlap(b, w) for w in changing)]
        if any(shader.overlap(a, b) for a in unsettled for b in used):
            shader.line("storageBarrier();")
            unsettled.clear()
        unsettled += used
        match s:
            case For(kind="reduce"):
                _reduce(shader, s, width, shared)
            case For():
                _strided(shader, s, width)
            case Store() | If():
                shader.line("if (lane == 0u) {")
                shader.depth += 1
                shader.block([s])
                shader.depth -= 1
                shader.line("}")
            case _:
                shader.block([s])
    return [f"var<workgroup> {name}: array<{kind}, {width}>;" for kind, name in shared.items()]


def _strided(shader: Shader, s: For, width: int) -> None:
    """A loop whose iterations the invocations divide among them; a perfect nest counts as one loop."""
    nest, body = [(s.var, s.count)], s.body
    while len(body) == 1 and type(body[0]) is For and body[0].kind == s.kind and not isinstance(body[0].extent, Expr):
        nest.append((body[0].var, body[0].extent))
        body = body[0].body
    total = math.prod(extent for _, extent in nest)
    flat, inner = Var("flat"), total
    lets: list[Stmt] = []
    for k, (var, extent) in enumerate(nest):
        inner //= max(extent, 1)
        part: Expr = flat if inner == 1 else Binary("div", flat, Const(inner, "i32"))
        lets.append(Let(var, Binary("rem", part, Const(extent, "i32")) if k else part))
    shader.loop(For(flat, total, [*lets, *body], s.kind), "i32(lane)", f"{width}i")


def _reduce(shader: Shader, s: For, width: int, shared: dict[str, str]) -> None:
    ops = reductions(s)
    for acc, op in ops.items():  # the current value counts once
        name = shader.env[acc]
        shader.line(f"{name} = select({shader.value(identity(op, acc.dtype))}, {name}, lane == 0u);")
    _strided(shader, s, width)
    for acc, op in ops.items():
        kind, name = shader.type(acc.dtype), shader.env[acc]
        cells = shared.setdefault(kind, f"shared_{kind}")
        a, b = Local("a", acc.dtype), Local("b", acc.dtype)
        shader.env[a], shader.env[b] = f"{cells}[lane]", f"{cells}[lane + half]"
        shader.line(f"{cells}[lane] = {name};")
        shader.line("workgroupBarrier();")
        shader.line(f"for (var half = {width // 2}u; half > 0u; half >>= 1u) {{")
        shader.depth += 1
        shader.line("if (lane < half) {")
        shader.depth += 1
        text = shader.value(Binary(op, a, b))
        shader.line(f"{cells}[lane] = {text};")
        shader.depth -= 1
        shader.line("}")
        shader.line("workgroupBarrier();")
        shader.depth -= 1
        shader.line("}")
        shader.line(f"{name} = {cells}[0];")
        shader.line("workgroupBarrier();")
