"""Kernels over references (pallas_call): loops over the grid around the kernel's own program.

References are blocks of arrays, read and written in place. Along an axis of the grid where the index maps show that
points write different blocks, iterations are independent: a parallel loop of the program level, which
`passes/grids.py` makes one kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft.core.carries import Runs
from weft.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, subjaxprs
from weft.base import dtypes
from weft.higher_order.pallas_call import Block, Call, call_of

from weft_wasm.ir import nodes
from weft_wasm.ir.nodes import Binary, Const, Expr, For, Stmt, Var
from weft_wasm.lower import fuse, graph, points
from weft_wasm.lower.blocks import choose, trailing
from weft_wasm.lower.callbacks import NAMES as CALLBACKS
from weft_wasm.lower.complexes import planes
from weft_wasm.lower.control import body_of, place_of_operand
from weft_wasm.lower.graph import Builder, Graph, Value
from weft_wasm.lower.loop_nests import GraphLowering, Place, Reader, opaque, wrap
from weft_wasm.lower.types import array_type, constant, storage_dtype

graph.known.add("pallas_call")
Range = tuple[int, int]


@graph.rewrite("pallas_call")
def as_loop(b: Builder, eqn: JaxprEqn, ins: list[Value]) -> list[Value] | None:
    """Calls that are no kernels of their own: those that are to be loops, that do nothing, or that write to their
    operands.
    """
    call = call_of(eqn.params)
    if eqn.params["interpret"] or 0 in call.grid or any(call.kernel.written[: call.inputs]):
        return b.decompose(eqn, ins)
    avals = [array_type(a) for a in eqn.invars]
    kinds = [(a.shape, storage_dtype(a.dtype, "pallas_call", eqn.source_info)) for a in map(array_type, eqn.outvars)]
    return b.add("pallas_call", ins, kinds, dict(eqn.params, avals=tuple(avals)), eqn.source_info)


@opaque("pallas_call")
def emit_call(body: GraphLowering, node: graph.Node) -> list[Stmt]:
    call = call_of(node.params)
    if body.module.plain:
        places = [place_of_operand(body, x) for x in node.inputs]
        axes = [] if calls_host(call.kernel.closed.jaxpr) else parallel_axes(call)  # a callback is called at each point
        made = planes(points.program(call, axes, node.params["avals"]))
        return body_of(body, made, node.inputs, places, [body.places[v] for v in node.outputs])
    return _Grid(body, node, call).emit()


def calls_host(jaxpr: Jaxpr) -> bool:
    """Whether there are callbacks in a program, or in one inside it."""
    return any(eqn.primitive.name in CALLBACKS or any(map(calls_host, subjaxprs(eqn.params))) for eqn in jaxpr.eqns)


class _Grid:
    """Emits one call."""

    def __init__(self, body: GraphLowering, node: graph.Node, call: Call):
        self.body, self.node, self.call = body, node, call
        self.vars = [Var(f"g{axis}") for axis in range(len(call.grid))]
        self.ids: list[Expr] = [Const(0, "i32") if n == 1 else v for n, v in zip(call.grid, self.vars)]
        self.ranges: dict[Expr, Range] = {v: (0, n - 1) for n, v in zip(call.grid, self.vars)}
        first = len(call.grid) - call.kernel.axes
        closed = planes(call.kernel.on_values)
        known: dict[int, nodes.Number] = {k: 0 for k, n in enumerate(call.grid[first:]) if n == 1}
        known |= {call.kernel.axes + k: x.constant for k, x in enumerate(node.inputs) if x.constant is not None}
        self.graph = graph.build(closed.jaxpr, closed.consts, known)
        self.scalars = dict(zip(self.graph.inputs, self.ids[first:]))
        self.refs = self.graph.inputs[call.kernel.axes :]
        self.parallel = parallel_axes(call)
        self.sequential = [k for k, n in enumerate(call.grid) if n > 1 and k not in self.parallel]

    def emit(self) -> list[Stmt]:
        call, body, inputs = self.call, self.body, self.call.inputs
        arrays = [*[body.place_of(x) for x in self.node.inputs], *[body.places[v] for v in self.node.outputs]]
        before: list[Stmt] = []
        first: list[Stmt] = []  # of each point of the parallel axes
        around: tuple[list[Stmt], list[Stmt]] = ([], [])  # before and after each point
        where: dict[Value, Place] = {}
        targets: list[Place | None] = []
        aliases = {j: i for i, j in call.aliases}
        for k, ref in enumerate(self.refs):
            out = self.graph.outputs[k]
            if k >= len(arrays):  # scratch memory
                place = body.new_place(ref)
                first += self.filled(place, ref)
            else:
                array = arrays[k]
                if array is None:  # one number everywhere, which the graph knows, or the index of a loop outside
                    known = body.scalars.get(self.node.inputs[k])
                    if known is not None:
                        self.scalars[ref] = known
                    targets.append(None)
                    continue
                if k >= inputs and k - inputs in aliases:
                    before += body.fill(self.node.inputs[aliases[k - inputs]], array)
                elif k >= inputs and not self.overwritten(k):
                    before += self.filled(array, self.node.outputs[k - inputs])
                place = self.block(array, k)
                if place.steps is not None and not self.usable(k):
                    held, place = place, body.new_place(ref)
                    around[0].extend(body.copied(place, held, ref.size))
                    if k >= inputs:
                        around[1].extend(body.copied(held, place, ref.size))
            where[ref] = place
            targets.append(None if k < inputs or out is ref else place)
        module = body.module
        module.depth += 1
        point = GraphLowering(module, self.graph, where, targets, self.scalars).emit()
        module.depth -= 1
        statements = [*around[0], *point, *around[1]]
        for axis in reversed(self.sequential):
            statements = [For(self.vars[axis], call.grid[axis], statements)]
        statements = [*first, *statements]
        for axis in reversed(self.parallel):
            statements = [For(self.vars[axis], call.grid[axis], statements, "parallel")]
        return [*before, *statements]

    def filled(self, place: Place, v: Value) -> list[Stmt]:
        """Memory as it is before it is written."""
        if not v.size:
            return []
        value = float("nan") if v.dtype[0] in "fb" and v.dtype != "bool" else nodes.int_range(v.dtype)[0]
        loops, blocks = self.body.nest(choose(v.size, place.splits))
        return [self.body.kernel("fill", wrap(loops, [place.store(blocks, constant(value, v.dtype))]))]

    # ---- blocks

    def index(self, block: Block) -> list[Expr]:
        """The number of the block along each axis."""
        known: dict[int, nodes.Number] = {k: 0 for k, n in enumerate(self.call.grid) if n == 1}
        maps = graph.build(block.index.jaxpr, block.index.consts, known)
        lowering = GraphLowering(
            self.body.module, maps, {}, [None] * len(maps.outputs), dict(zip(maps.inputs, self.ids))
        )
        self.body.module.plans.pop()
        reader = Reader(lowering)
        return [reader.element(v, ()) for v in maps.outputs]

    def block(self, array: Place, k: int) -> Place:
        """The block of an array at the point of the grid."""
        v = self.node.inputs[k] if k < self.call.inputs else self.node.outputs[k - self.call.inputs]
        block, offset = self.call.blocks[k], array.offset or Const(0, "i32")
        if block.sizes == v.shape:
            return array
        assert array.steps is None
        runs: list[tuple[int, int]] = []
        for d, index, n, stride in zip(block.dims, self.index(block), v.shape, trailing(v.shape)):
            low, high = self.bounds(index)
            if low >= 0 and high * d.step <= n - d.size:
                offset = nodes.add(offset, nodes.mul(index, d.step * stride))
            else:
                start = nodes.clamp(0, nodes.mul(index, d.step), n - d.size)
                offset = nodes.add(offset, nodes.mul(start, stride))
            if d.size > 1 and runs and runs[-1][1] == d.size * stride:
                runs[-1] = (runs[-1][0] * d.size, stride)
            elif d.size > 1:
                runs.append((d.size, stride))
        dense = not runs or (len(runs) == 1 and runs[0][1] == 1)
        return Place(array.buffer, offset, None if dense else tuple(runs))

    def bounds(self, e: Expr) -> Range:
        """Between which numbers an index of blocks lies."""
        if type(e) is Const:
            return nodes.whole(e), nodes.whole(e)
        found = self.ranges.get(e)
        if found is not None:
            return found
        if type(e) is Binary and e.op in ("add", "sub", "mul", "min", "max"):
            (a, b), (c, d) = self.bounds(e.a), self.bounds(e.b)
            if e.op == "add":
                return a + c, b + d
            if e.op == "sub":
                return a - d, b - c
            if e.op == "mul":
                ends = (a * c, a * d, b * c, b * d)
                return min(ends), max(ends)
            return (min(a, c), min(b, d)) if e.op == "min" else (max(a, c), max(b, d))
        return -(1 << 31), (1 << 31) - 1

    def usable(self, k: int) -> bool:
        """Whether the kernel uses a reference element by element, so that its block need not be copied."""
        return by_elements(self.graph, self.refs[k]) and made_by_elements(self.graph.outputs[k])

    def overwritten(self, k: int) -> bool:
        """Whether the points write all of a result, and read nothing of what it held."""
        ref, block = self.refs[k], self.call.blocks[k]
        if any(reaches(self.graph.outputs[j], ref) for j in range(len(self.refs))):
            return False
        shape = self.node.outputs[k - self.call.inputs].shape
        axes = own_axes(block, self.call.grid)
        return all(
            d.size == n or (axis is not None and self.call.grid[axis] * d.step == n)
            for d, n, axis in zip(block.dims, shape, axes)
        )


# what kernels use ----------------------------------------------------------------------------------------------------

_ELEMENTS = (fuse.EXPRESSION, fuse.REDUCE)


def by_elements(g: Graph, v: Value) -> bool:
    """Whether the users of an argument ask for single elements of it, wherever they lie."""
    return all(_asks_elements(node, j) for node, j in v.users)


def _asks_elements(node: graph.Node, j: int) -> bool:
    if node.op == "cond" and j:
        for branch in node.params["branches"]:
            inner = graph.build(branch.jaxpr, branch.consts)
            if not by_elements(inner, inner.inputs[j - 1]) or not all(map(made_by_elements, inner.outputs)):
                return False
        return True
    return fuse.kind_of(node) in _ELEMENTS or node.op in ("dot_general", "dynamic_update_slice")


def made_by_elements(v: Value) -> bool:
    """Whether a result is stored element by element."""
    node = v.node
    if node is None:
        return True
    if node.op == "cond":
        return all(
            all(map(made_by_elements, graph.build(branch.jaxpr, branch.consts).outputs))
            for branch in node.params["branches"]
        )
    return fuse.kind_of(node) in _ELEMENTS or node.op in ("dot_general", "dynamic_update_slice")


def reaches(v: Value, source: Value) -> bool:
    """Whether a value is computed from another one."""
    seen: set[Value] = set()
    stack = [v]
    while stack:
        x = stack.pop()
        if x is source:
            return True
        if x not in seen and x.node is not None:
            seen.add(x)
            stack += x.node.inputs
    return False


# axes ----------------------------------------------------------------------------------------------------------------


def own_axes(block: Block, grid: Sequence[int]) -> list[int | None]:
    """For each axis of the blocks: the axis of the grid whose index is the number of the block, if there is one."""
    jaxpr = block.index.jaxpr
    places = {v: k for k, v in enumerate(jaxpr.invars)}
    return [None if type(a) is Literal else places.get(a) for a in jaxpr.outvars]


def parallel_axes(call: Call) -> list[int]:
    """The axes of the grid along which points may run at once: they write different blocks, and leave each other
    nothing in scratch memory.
    """
    found: list[int] = []
    blocks = list(zip(call.blocks[call.inputs :], call.out_avals))
    for axis, n in enumerate(call.grid):
        inside = [
            any(
                own == axis and d.step >= d.size and n * d.step <= size
                for own, d, size in zip(own_axes(block, call.grid), block.dims, aval.shape)
            )
            for block, aval in blocks
        ]
        if n > 1 and all(inside):
            found.append(axis)
    if call.scratch and found:
        first = len(call.grid) - call.kernel.axes
        said = [k for k in found if k < first or call.kernel.parallel[k - first]]
        return found if not keeps_scratch(call, found) else said
    return found


def keeps_scratch(call: Call, parallel: Sequence[int]) -> bool:
    """Whether what scratch memory held before the first of the points that run one after another has an effect."""
    first = len(call.grid) - call.kernel.axes
    known: dict[Any, nodes.Number] = {}
    jaxpr = call.kernel.on_values.jaxpr
    for k, v in enumerate(jaxpr.invars[: call.kernel.axes]):
        if first + k not in parallel:
            known[v] = 0
    refs = jaxpr.invars[call.kernel.axes :]
    scratch = set(refs[len(call.blocks) :])
    return any(scratch & used for used in dependencies(jaxpr, known))


_FOLDED: dict[str, Callable[..., int]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "convert_element_type": lambda a: int(a),
}


def dependencies(jaxpr: Jaxpr, known: Mapping[Any, nodes.Number]) -> list[set[Any]]:
    """The arguments that each result depends on, where some scalars are known integers."""
    numbers: dict[Any, nodes.Number] = dict(known)
    needs: dict[Any, set[Any]] = {v: {v} for v in (*jaxpr.invars, *jaxpr.constvars)}

    def of(a: Any) -> set[Any]:
        return set() if type(a) is Literal else needs[a]

    def number(a: Any) -> nodes.Number | None:
        return a.val if type(a) is Literal and not a.aval.shape else None if type(a) is Literal else numbers.get(a)

    for eqn in jaxpr.eqns:
        values = [number(a) for a in eqn.invars]
        whole = [int(v) for v in values if isinstance(v, int)]
        fold = _FOLDED.get(eqn.primitive.name)
        if fold is not None and len(whole) == len(values) and dtypes.is_int(_kind(eqn.outvars[0])):
            numbers[eqn.outvars[0]] = int(fold(*whole))
        inner, operands = None, eqn.invars
        carries = eqn.primitive.carries
        if carries is not None:
            called = carries.call(eqn.params, eqn.invars)
            if called is not None:
                inner, operands = called
            elif carries.runs is Runs.CHOSEN and isinstance(values[0], int):
                program = carries.chosen(eqn.params, eqn.invars, int(values[0]))
                inner, operands = program.closed, program.arguments(eqn.invars)
        if isinstance(inner, ClosedJaxpr):
            given = {v: n for v, a in zip(inner.jaxpr.invars, operands) if (n := number(a)) is not None}
            by_arg = dict(zip(inner.jaxpr.invars, operands))
            found = [set().union(*[of(by_arg[v]) for v in s if v in by_arg]) for s in dependencies(inner.jaxpr, given)]
            needs.update(zip(eqn.outvars, found))
        else:
            everything = set().union(*map(of, eqn.invars))
            needs.update(dict.fromkeys(eqn.outvars, everything))
    return [of(a) for a in jaxpr.outvars]


def _kind(v: Any) -> Any:
    kind = v.aval.dtype
    return kind if not dtypes.is_bool(kind) else dtypes.dtype("int32")
