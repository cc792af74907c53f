"""Graphs as loop IR: storage for stored values, a kernel for each group.

`GraphLowering` emits one graph (a program, or the body of a loop or branch). Opaque nodes are emitted by the functions
that families put into `OPAQUE`.
"""

from __future__ import annotations

import math
from typing import Any, Callable, NamedTuple, Sequence, TypeVar

from weft.base import source_info
from weft.base.errors import BackendError

from weft_wasm.ir import nodes, traversal
from weft_wasm.ir.affine import linear as affine
from weft_wasm.ir.nodes import (
    Assign,
    Binary,
    Buffer,
    Copy,
    Declare,
    Expr,
    For,
    Kernel,
    Let,
    Load,
    Local,
    MulAdd,
    Stmt,
    Store,
    Var,
)
from weft_wasm.lower import elementwise, fuse, reductions, views
from weft_wasm.ir.addresses import LIMIT_64, WIDER, most_bytes
from weft_wasm.lower.blocks import NONE, ZERO, Blocks, Shape, Splits, choose, linear, regroup, trailing
from weft_wasm.lower.formats import EXACT, KEEPS
from weft_wasm.lower.reuse import Reuse
from weft_wasm.lower.graph import Graph, Node, Value, carry_of
from weft_wasm.lower.types import Callback, LoweringError, constant, memory_dtype, narrow, rounded_to_storage, widen

# The emitters of opaque operations and of products: (body, node or group) -> statements.
OPAQUE: dict[str, Callable[[GraphLowering, Any], list[Stmt]]] = {}
BIG_ARRAY = 1 << 14  # from this size on, transposing loops are tiled
TILES = (16, 8, 10, 12, 6, 4)


class Place(NamedTuple):
    """Storage of a value: `size` elements of a buffer from `offset` (an i32 expression of program-level loop
    variables). They lie one behind the other, unless `steps` has the size and the stride of each of their axes: then
    they are a block of an array, which only operations that ask for single elements may use.
    """

    buffer: Buffer
    offset: Expr | None = None
    steps: tuple[tuple[int, int], ...] | None = None

    def at(self, blocks: Blocks) -> Expr:
        if self.steps is None:
            index = linear(blocks)
        else:
            index = ZERO
            for part, (_, stride) in zip(regroup(blocks, [n for n, _ in self.steps]), self.steps):
                index = nodes.add(index, nodes.mul(linear(part), stride))
        return index if self.offset is None else nodes.add(self.offset, index)

    @property
    def splits(self) -> Splits:
        """Where loops over its elements should be split."""
        return frozenset(trailing([n for n, _ in self.steps])[:-1]) if self.steps is not None else NONE

    def load(self, blocks: Blocks) -> Expr:
        return widen(Load(self.buffer, self.at(blocks)), self.buffer.label)

    def store(self, blocks: Blocks, value: Expr) -> Store:
        return Store(self.buffer, self.at(blocks), narrow(value, self.buffer.label))

    def copy(self, source: Place, count: int) -> Copy:
        """`count` elements of another place put here."""
        return Copy(self.buffer, source.buffer, count, self.offset or 0, source.offset or 0)


class Module:
    """Shared by all bodies of a program: temps, constants, names, features of the target."""

    def __init__(self, features: frozenset[str] = frozenset(), plain: bool = False):
        self.features, self.plain = features, plain
        self.reuse = None if plain else Reuse()
        self.temps: list[Buffer] = []
        self.constants: dict[bytes, Buffer] = {}
        self.calls: list[Callback] = []  # the host functions that the program calls
        self.plans: list[tuple[int, fuse.FusionPlan]] = []  # (depth, fuse.FusionPlan), for reading
        self.depth = 0
        self.count = 0

    def name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def check_size(self, v: Value) -> None:
        """LoweringError for an array that the memory can't hold."""
        count, nbytes = math.prod(v.shape), math.prod(v.shape) * nodes.ITEMSIZE[memory_dtype(v.dtype)]
        most = most_bytes(self.features)
        if not self.plain and (count >= nodes.MOST_ELEMENTS or nbytes >= most):
            who = "an argument" if v.node is None else v.node.op
            info = None if v.node is None else v.node.info
            where = source_info.current() if info is None or info is source_info.UNKNOWN else info
            wider = f", or {WIDER}" if count < nodes.MOST_ELEMENTS and nbytes < LIMIT_64 else ""
            raise LoweringError(
                f"{who} is {v.dtype}[{','.join(map(str, v.shape))}], {nbytes} bytes: here WebAssembly addresses"
                f" {most >> 30} GiB, and indexes up to 2^31 elements of an array. Compute in parts (weft.lax.map with"
                f" batch_size), or use the cpu backend{wider}. At {where}"
            )

    def temp(self, dtype: str, shape: Sequence[int], prefix: str = "t") -> Buffer:
        buffer = Buffer(self.name(prefix), memory_dtype(dtype), shape, label=dtype)
        self.temps.append(buffer)
        return buffer

    def constant(self, v: Value) -> Buffer:
        """The buffer of a constant array."""
        if v.data is None:
            raise TypeError(f"{v!r} is no constant array")
        return self.table(v.dtype, v.data)

    def table(self, dtype: str, data: bytes) -> Buffer:
        """A constant buffer; equal bytes share one."""
        key = dtype.encode() + b":" + data
        found = self.constants.get(key)
        if found is None:
            kind = memory_dtype(dtype)
            found = self.constants[key] = Buffer(
                self.name("c"), kind, (len(data) // nodes.ITEMSIZE[kind],), "constant", data, dtype
            )
        return found


Memo = dict[tuple[Value, Blocks], Expr]
State = tuple[list[Stmt] | None, Memo, tuple[list[Stmt] | None, Memo] | None]  # of a Reader


class Reader:
    """Elements of values as expressions. `lets`, where given, receives bindings of what several statements share.

    In an inner loop (`inner` … `leave`) bindings go into the loop and end with it. Values that are read at `home`,
    where the kernel's own loops are, are bound before the loop, from bindings outside it only.
    """

    def __init__(self, body: GraphLowering, lets: list[Stmt] | None = None, home: Blocks | None = None):
        self.body, self.places = body, body.places
        self.memo: Memo = {}
        self.home, self.lets = home, lets
        # in an inner loop: (lets, memo) of the surrounding code
        self.outside: tuple[list[Stmt] | None, Memo] | None = None
        self.bound = 0

    def remember(self, v: Value, blocks: Blocks, e: Expr) -> None:
        self.memo[v, blocks] = e

    def element(self, v: Value, blocks: Blocks) -> Expr:
        if v.constant is not None:
            return constant(v.constant, v.dtype)
        if not v.size:  # it is in a loop that never runs, for which no indices can be made
            return constant(0, v.dtype)
        key = (v, blocks)
        e = self.memo.get(key)
        if e is not None:
            return e
        if self.outside is not None and blocks == self.home and self.lets is not None:
            inside = self.lets, self.memo, self.outside
            (self.lets, self.memo), self.outside = self.outside, None
            e = self.element(v, blocks)
            self.lets, self.memo, self.outside = inside
            self.memo[key] = e
            return e
        place = self.body.place_of(v)
        if place is not None:
            e = place.load(blocks)
            shared = False
        elif v in self.body.scalars:
            e, shared = self.body.scalars[v], False
        else:
            e = self.compute(v, blocks)
            shared = len(v.users) > 1 and v.origin.op not in views.VIEWS
        if shared and self.lets is not None and type(e) not in (nodes.Const, Var, Local):
            self.bound += 1
            var = Var(f"x{self.bound}", e.dtype)
            self.lets.append(Let(var, e))
            e = var
        self.memo[key] = e
        return e

    def compute(self, v: Value, blocks: Blocks) -> Expr:
        """The element of an expression from its operands', whether or not it is stored."""
        node = v.origin
        op = node.op
        rule = elementwise.ELEMENT_RULES.get(op)
        if rule is not None:
            size = v.size
            args = [
                self.element(
                    x, blocks if x.size == size else () if x.size == 1 else views.operand_view(node, j).apply(blocks)
                )
                for j, x in enumerate(node.inputs)
            ]
            e = rule(node, args)
            return (
                e if op in KEEPS or op in EXACT and v.dtype in nodes.STORAGE_FLOATS else rounded_to_storage(e, v.dtype)
            )
        if op in views.VIEWS:
            return self.element(node.inputs[0], views.view_of(node).apply(blocks))
        found = views.ELEMENTS.get(op)
        if found is None:
            raise BackendError(
                f"{op} is read before it is computed. This is a bug of the compiler; please report the program."
            )
        return found(self, node, v.slot, blocks)

    def inner(self, statements: list[Stmt]) -> State:
        """Begins an inner loop whose body is `statements`; give the result to `leave`."""
        state = self.lets, self.memo, self.outside
        self.outside = self.lets, self.memo
        self.lets, self.memo = statements if self.lets is not None else None, dict(self.memo)
        return state

    def leave(self, state: State) -> None:
        self.lets, self.memo, self.outside = state


class _Run(NamedTuple):
    """Adjacent axes of an operand that are all reduced, or all kept; `inside`: the stride of one step along them, in
    elements.
    """

    size: int
    reduced: bool
    inside: int


class GraphLowering:
    """Emits one graph.

    places: storage of the graph's inputs. targets: storage for each output (None: it is not used).
    scalars: inputs that are expressions of program-level loop variables. An input whose storage is also a target is
        read before that is written.
    """

    def __init__(
        self,
        module: Module,
        graph: Graph,
        places: dict[Value, Place],
        targets: Sequence[Place | None],
        scalars: dict[Value, Expr] | None = None,
    ):
        self.module, self.graph, self.places, self.targets, self.scalars = (
            module,
            graph,
            dict(places),
            list(targets),
            scalars or {},
        )
        blocks = [*self.places.items(), *[(v, t) for v, t in zip(graph.outputs, self.targets) if t is not None]]
        self.planner = fuse.Planner(
            graph, apart=not module.plain, blocks={v: p.splits for v, p in blocks if p.steps is not None}
        )
        self.plan = self.planner.plan()
        module.plans.append((module.depth, self.plan))

    # ---- places

    def place_of(self, v: Value) -> Place | None:
        place = self.places.get(v)
        if place is None and v.data is not None:
            place = self.places[v] = Place(self.module.constant(v))
        return place

    def placed(self, v: Value) -> Place:
        """The storage of a value, which must have one."""
        place = self.place_of(v)
        if place is None:
            raise BackendError(
                f"{v!r} is read before it is stored. This is a bug of the compiler; please report the program."
            )
        return place

    def scalar(self, v: Value) -> Expr | None:
        """The value of an operand that is a host scalar or an expression of loop variables."""
        return constant(v.constant, v.dtype) if v.constant is not None and not v.shape else self.scalars.get(v)

    def new_place(self, v: Value) -> Place:
        self.module.check_size(v)
        return Place(self.module.temp(v.dtype, v.shape))

    def assign_places(self) -> None:
        """Targets for outputs where nothing is overwritten too early, the result's storage for operands updated in
        place, temps.
        """
        graph, plan = self.graph, self.plan
        self.olds: dict[Place, Value] = {}
        for x in graph.inputs:
            place = self.places.get(x)
            if place is not None:
                self.olds[place] = x
        # arguments that are results are copied to their targets first, if that overwrites nothing
        kept = {p.buffer for p in self.olds}
        self.early = {
            k: t
            for k, (v, t) in enumerate(zip(graph.outputs, self.targets))
            if t is not None and v.node is None and v in self.places and t != self.places[v] and t.buffer not in kept
        }
        taken: set[Value] = set()
        for v, target in zip(graph.outputs, self.targets):
            if (
                target is not None
                and v.node is not None
                and v not in taken
                and v in plan.where
                and self.may_write(v, target)
            ):
                self.places[v] = target
                taken.add(v)
        for group in reversed(plan.groups):
            if group.kind != "opaque":
                continue
            for v in group.members:
                if v not in self.places:
                    self.places[v] = self.new_place(v)
            for slot, j in self.in_place(group.origin):
                x = group.origin.inputs[j]
                place = self.places[group.members[slot]]
                # whatever computes x may need its elements one behind the other
                if x not in self.places and place.steps is None and self.dies_at(x, group.origin, j):
                    self.places[x] = place
        for v in plan.stored:
            if v not in self.places:
                self.places[v] = self.new_place(v)
        for group in plan.groups:
            if group.kind == "dot" and group.members[0] not in self.places and len(group.members) == 1:
                self.places[group.members[0]] = self.new_place(group.members[0])

    @staticmethod
    def in_place(node: Node) -> list[tuple[int, int]]:
        """(result, operand) pairs that may share storage."""
        if node.op in fuse.IN_PLACE:
            return [(0, 0)]
        return branch_pairs(node) if node.op == "cond" else list(enumerate(carry_of(node)))

    def dies_at(self, x: Value, node: Node, j: int) -> bool:
        """Whether a computed value is used for the last time as operand j of an opaque node, and so may give its
        storage away.
        """
        if x.node is None or x not in self.plan.where or x in self.planner.outputs or node.inputs.count(x) != 1:
            return False
        here = self.plan.where[node.outputs[0]]
        if self.plan.where[x] >= here or (fuse.kind_of(x.node) == fuse.EXPRESSION and x not in self.plan.stored):
            return False
        # the operands that are expressions must not read it either
        if any(x in self.planner.leaves(y) for k, y in enumerate(node.inputs) if k != j):
            return False
        return all(k <= here for k, _ in self.plan.readers.get(x, ()))

    def may_write(self, v: Value, target: Place) -> bool:
        """Whether v may be computed right into target although that holds an input which is read as well."""
        old = self.olds.get(target)
        if old is None:
            return True
        if any(x is old and k not in self.early for k, x in enumerate(self.graph.outputs)) and old is not v:
            return False
        writer, exempt = self.first_writer(v, old)
        for k, same in self.plan.readers.get(old, ()):
            if k > writer or (k == writer and not same and not exempt):
                return False
        return True

    def first_writer(self, v: Value, old: Value) -> tuple[int, bool]:
        """(the first group that writes to the storage of v, whether it reads only `old` there, as the operand that it
        updates in place).
        """
        index = self.plan.where[v]
        for slot, j in self.in_place(v.origin) if self.plan.groups[index].kind == "opaque" else ():
            if slot == v.slot:
                x = v.origin.inputs[j]
                if x is old:
                    others = any(x in self.planner.leaves(y) for k, y in enumerate(v.origin.inputs) if k != j)
                    return index, not others
                if self.dies_at(x, v.origin, j):
                    return self.first_writer(x, old)
        return index, False

    # ---- emission

    def emit(self) -> list[Stmt]:
        """The statements of the whole graph. After them, every output is in its target, if it has one."""
        self.assign_places()
        out: list[Stmt] = []
        for k, target in self.early.items():
            out += self.fill(self.graph.outputs[k], target)
        for group in self.plan.groups:
            if group.kind == "opaque":
                emitter = OPAQUE.get(group.origin.op)
                if emitter is None:
                    raise BackendError(f"{group.origin.op} has no kernel. At {group.origin.info}")
                out += self.counted(group, emitter(self, group.origin))
            elif group.size:
                out += self.module.reuse.kernels(self, group) if self.module.reuse else self.computed(group)
        return out + self.deliver()

    def computed(self, group: fuse.Group) -> list[Stmt]:
        """The kernels of a product, or of elementwise members and reductions."""
        return self.counted(group, self.dot(group) if group.kind == "dot" else self.loops(group))

    @staticmethod
    def counted(group: fuse.Group, statements: list[Stmt]) -> list[Stmt]:
        """LoweringError where a loop is longer than an index can count: of an array that is never stored, or of a
        program.
        """
        for s in traversal.walk(statements):
            if type(s) is For and type(s.extent) is int and s.extent >= nodes.MOST_ELEMENTS:
                node = group.members[-1].origin if group.node is None else group.node
                raise LoweringError(
                    f"{node.op} is a loop of {s.extent} iterations; here WebAssembly and WebGPU count up to 2^31 - 1."
                    " Compute in parts (weft.lax.map with batch_size, or a loop in a loop), or use the cpu backend. At"
                    f" {node.info}"
                )
        return statements

    def dot(self, group: fuse.Group) -> list[Stmt]:
        return OPAQUE[group.origin.op](self, group)

    def deliver(self) -> list[Stmt]:
        """Puts outputs that are not in their targets there: all are read before any is written over."""
        moves = [
            (v, t)
            for k, (v, t) in enumerate(zip(self.graph.outputs, self.targets))
            if t is not None and k not in self.early and self.places.get(v) != t and v.size
        ]
        overwritten = {t.buffer for _, t in moves}
        out: list[Stmt] = []
        first: list[Stmt] = []
        for v, target in moves:
            place = self.place_of(v)
            if place is not None and place.buffer in overwritten and len(moves) > 1 and place in self.olds:
                spare = self.new_place(v)
                first += self.fill(v, spare)
                out += self.copied(target, spare, v.size)
            else:
                out += self.fill(v, target)
        return first + out

    def fill(self, v: Value, place: Place) -> list[Stmt]:
        """Statements that put v into a place."""
        have = self.place_of(v)
        if have == place or v.size == 0:
            return []
        if have is not None and have.steps is None and place.steps is None:
            return [place.copy(have, v.size)]
        statements: list[Stmt] = []
        loops, blocks = self.nest(choose(v.size, self.planner.splits(v) | place.splits))
        reader = Reader(self)
        statements.append(place.store(blocks, reader.element(v, blocks)))
        return [self.kernel("fill", wrap(loops, statements))]

    def copied(self, target: Place, source: Place, count: int) -> list[Stmt]:
        """Statements that put elements of a place into another one."""
        if not count:
            return []
        if target.steps is None and source.steps is None:
            return [target.copy(source, count)]
        loops, blocks = self.nest(choose(count, target.splits | source.splits))
        return [self.kernel("copy", wrap(loops, [target.store(blocks, source.load(blocks))]))]

    def kernel(self, what: str, body: list[Stmt]) -> Kernel:
        return Kernel(self.module.name(f"{what}_"), body)

    @staticmethod
    def nest(extents: Sequence[int]) -> tuple[list[tuple[Var, int]], Blocks]:
        """Fresh loop variables, and the blocks they make."""
        loops = [(Var("ijklmnopq"[min(d, 8)]), n) for d, n in enumerate(extents)]
        return loops, tuple((n, v) for v, n in loops)

    def loops(self, group: fuse.Group) -> list[Stmt]:
        """The kernel of elementwise members and reductions."""
        loops, blocks = self.nest(choose(group.size, group.splits))
        body = self.members(group, blocks)
        if group.kind == "loop" and group.size >= BIG_ARRAY and len(loops) > 1:
            tiled = tile(loops, blocks, body)
            if tiled is not None:
                outer, inner, blocks = tiled
                body = wrap(outer, wrap(inner[:1], wrap(inner[1:], self.members(group, blocks))))
                return [self.kernel("loop", [unrolled(s) if type(s) is For else s for s in body])]
        return [self.kernel("reduce" if group.kind == "reduce" else "loop", wrap(loops, body))]

    def members(self, group: fuse.Group, blocks: Blocks) -> list[Stmt]:
        """The statements that compute the members of a group at one element."""
        body: list[Stmt] = []
        several = len(group.members) > 1
        reader = Reader(self, body if several else None, blocks)
        members, stored = group.members, self.plan.stored
        written = {self.places[v].buffer for v in members if v in self.places}
        late = several and any(
            self.places[x].buffer in written for x in group.reads if x in self.places and x not in members
        )
        stores: list[Stmt] = []
        done: set[Value] = set()
        for v in members:
            if v in done:
                continue
            if v.origin.op in reductions.REDUCERS:
                alike = [
                    u
                    for u in members
                    if u not in done
                    and u.origin.op in reductions.REDUCERS
                    and u.origin.inputs[0].shape == v.origin.inputs[0].shape
                    and u.origin.params["axes"] == v.origin.params["axes"]
                ]
                done.update(alike)
                self.reduce(alike, blocks, reader, body)
                for u in alike:
                    if u in stored:
                        stores.append(self.places[u].store(blocks, reader.memo[u, blocks]))
            else:
                e = reader.compute(v, blocks)
                if several and (v.users or late) and type(e) not in (nodes.Const, Var):
                    var = Var(f"y{len(reader.memo)}", e.dtype)
                    body.append(Let(var, e))
                    e = var
                reader.remember(v, blocks, e)
                if v in stored:
                    stores.append(self.places[v].store(blocks, e))
            if not late:
                body += stores
                stores = []
        body += stores
        return body

    def reduce(self, members: list[Value], blocks: Blocks, reader: Reader, body: list[Stmt]) -> None:
        """Loops that accumulate reductions over the same axes; their results are the accumulators."""
        node = members[0].origin
        x, axes = node.inputs[0], node.params["axes"]
        runs: list[_Run] = []
        inside = x.size
        for d, n in enumerate(x.shape):
            inside = inside // n if n else 0
            reduced = d in axes
            if runs and runs[-1].reduced == reduced:
                runs[-1] = _Run(runs[-1].size * n, reduced, inside)
            else:
                runs.append(_Run(n, reduced, inside))
        kept = regroup(blocks, [run.size for run in runs if not run.reduced])
        wanted: Splits = frozenset().union(*[self.planner.splits(v.origin.inputs[0]) for v in members])
        loops: list[tuple[Var, int]] = []
        at: list[tuple[int, Expr]] = []
        for n, reduced, inside in runs:
            if not reduced:
                at += kept.pop(0)
            else:
                splits = frozenset(
                    [p // inside for p in wanted if inside and inside <= p < inside * n and p % inside == 0]
                )
                here = [(Var("rstuvw"[min(len(loops), 5)]), e) for e in choose(n, splits)]
                loops += here
                at += [(e, v) for v, e in here]
        accumulators = []
        for v in members:
            initial, _ = reductions.REDUCERS[v.origin.op]
            value = initial(v.dtype)
            acc = Local(f"acc{len(body)}", value.dtype)
            body.append(Declare(acc, value))
            accumulators.append(acc)
            reader.remember(v, blocks, rounded_to_storage(acc, v.dtype))
        if x.size == 0:
            return
        steps: list[Stmt] = []
        state = reader.inner(steps)
        where = tuple(at)
        for v, acc in zip(members, accumulators):
            e = reader.element(v.origin.inputs[0], where)
            if v.origin.op == "reduce_sum" and type(e) is Binary and e.op == "mul" and acc.dtype in nodes.FLOATS:
                steps.append(Assign(acc, MulAdd(e.a, e.b, acc)))
            else:
                steps.append(Assign(acc, reductions.REDUCERS[v.origin.op][1](acc, e)))
        reader.leave(state)
        body += wrap(loops, steps, "reduce")


Loops = Sequence[tuple[Var, int]]


def tile(loops: Loops, blocks: Blocks, body: list[Stmt]) -> tuple[Loops, Loops, Blocks] | None:
    """(outer loops, two inner loops, blocks) for a nest that walks one array along its rows and another along its
    columns; else None.
    """
    fast, last = loops[-1]
    other: Var | None = None
    rows = False
    seen: set[Expr] = set()
    for s in traversal.walk(body):
        indices = [
            node.index for e in traversal.expressions(s) for node in traversal.walk_expr(e, seen) if type(node) is Load
        ]
        for index in [*indices, *([s.index] if type(s) is Store else [])]:
            terms, _ = affine(index)
            if any(type(t) is not Var for t in terms):
                return None
            rows = rows or terms.get(fast) == 1
            if terms.get(fast, 0) > 8:
                other = next((v for v, _ in loops[:-1] if terms.get(v) == 1), other)
    if other is None or not rows:
        return None
    sizes = {v: next((t for t in TILES if n % t == 0), None) for v, n in ((other, dict(loops)[other]), (fast, last))}
    if None in sizes.values():
        return None
    outer: list[tuple[Var, int]] = []
    inner: list[tuple[Var, int]] = []
    where: list[tuple[int, Expr]] = []
    for (v, n), (extent, _) in zip(loops, blocks):
        size = sizes.get(v)
        if size is None:
            outer.append((v, n))
            where.append((extent, v))
        else:
            o, i = Var(f"{v.name}.o"), Var(v.name)
            outer.append((o, n // size))
            inner.append((i, size))
            where.append((extent, nodes.add(nodes.mul(o, size), i)))
    return outer, inner, tuple(where)


def unrolled(loop: For) -> For:
    """The nest with its innermost loop written out."""
    inner = loop.body[0]
    if type(inner) is For and loop.body == [inner]:
        loop.body = [unrolled(inner)]
    else:
        loop.unroll = loop.count
    return loop


def branch_pairs(node: Node) -> list[tuple[int, int]]:
    """Results of a cond that some branch hands through from an operand: storing them there saves that branch a copy."""
    pairs = node.cache.get("pairs")
    if pairs is None:
        pairs, taken = [], set()
        for k, v in enumerate(node.outputs):
            for closed in node.params["branches"]:
                jaxpr = closed.jaxpr
                j = next((j for j, x in enumerate(jaxpr.invars) if jaxpr.outvars[k] is x), None)
                if j is not None and j not in taken and node.inputs[j + 1].constant is None:
                    pairs.append((v.slot, j + 1))
                    taken.add(j)
                    break
        node.cache["pairs"] = pairs
    return pairs


def wrap(loops: Sequence[tuple[Var, int]], body: list[Stmt], kind: str = "parallel") -> list[Stmt]:
    """body inside loops, the first outermost."""
    for var, n in reversed(loops):
        body = [For(var, n, body, kind)]
    return body


def row_of(place: Place, index: Expr, shape: Shape) -> Place:
    """The place of row `index` of an array."""
    step = nodes.mul(index, math.prod(shape))
    return Place(place.buffer, step if place.offset is None else nodes.add(place.offset, step))


_Emitter = TypeVar("_Emitter", bound=Callable[[GraphLowering, Any], list[Stmt]])


def opaque(*names: str) -> Callable[[_Emitter], _Emitter]:
    """Registers the emitter of operations: (body, node or group) → statements."""

    def register(f: _Emitter) -> _Emitter:
        for name in names:
            OPAQUE[name] = f
        return f

    return register
