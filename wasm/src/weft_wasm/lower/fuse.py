"""Grouping into kernels: which values are stored, and which are computed together.

A value is an *expression* unless it is stored: its consumers compute it where they need it. `plan` decides by data: the
cost of computing it again, how many kernels use it, whether one of them needs it in memory. Stored values and
reductions are gathered into groups: a group is one loop nest over one index space, so values that its members share are
computed once and stay in registers.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from weft.base.annotations import override
from weft_wasm.lower import elementwise, reductions, views
from weft_wasm.lower.blocks import NONE, Splits, trailing
from weft_wasm.ir import nodes
from weft_wasm.lower.graph import Graph, Node, Value, carry_of
from weft_wasm.lower.formats import FORMATS
from weft_wasm.lower.types import scalar_dtype

DUPLICATE = 4  # an expression that costs more is stored rather than computed in two kernels
REPEAT = 3  # likewise for one whose elements are read several times
INLINE = 260  # an expression that costs more is cut
DEPTH = 170  # and where operations would nest deeper: with the place of what is loaded, no more than MOST_DEPTH
ROUNDING_COST, ROUNDING_DEPTH = 40, 24  # of floats of 4 and 8 bits, in these measures
MEMBERS = 24  # a group has at most so many stores
GROUP_COST = 500
FUNCTION = 24  # an operation that costs as much is an elementary function, whose constants fill the registers:
LARGE = 4096  # loops over so many elements compute one function each, if functions are to be apart
EPILOGUE = 16  # cost of operations that follow a matrix product in its kernel

Ends = tuple[Hashable, ...]  # where expressions end up: nodes, and descriptions of loops

EXPRESSION, REDUCE, DOT, OPAQUE = "expression", "reduce", "dot", "opaque"
PRODUCTS = ("dot_general", "convolution")
# Opaque operations whose first operand's storage may become the result's.
IN_PLACE = frozenset(("dynamic_update_slice", "scatter", "scatter-add", "scatter-mul", "scatter-min", "scatter-max"))
# Opaque operations that read operands from memory; the others read expressions.
FROM_MEMORY = frozenset(("scan", "while", "cond", "host_call", "pallas_call"))


def kind_of(node: Node) -> str:
    """The class of a node: how its result is computed."""
    op = node.op
    if op in elementwise.ELEMENT_RULES or op in views.VIEWS or op in views.ELEMENTS:
        return EXPRESSION
    return REDUCE if op in reductions.REDUCERS else DOT if op in PRODUCTS else OPAQUE


def depth_of(node: Node) -> int:
    """How many operations nest in the expression of a node, at most."""
    depth = elementwise.DEPTHS.get(node.op) or views.DEPTHS.get(node.op)
    own = elementwise.DEPTH if depth is None else depth(node)
    return own + ROUNDING_DEPTH * any(map(is_rounded, node.outputs))


def is_rounded(v: Value) -> bool:
    """Whether a value is a float of few bits, which is rounded after each operation by some 70 operations."""
    return v.dtype in FORMATS and scalar_dtype(v.dtype) in nodes.FLOATS


def is_function(node: Node) -> bool:
    """Whether a node is an elementary function."""
    return elementwise.COSTS.get(node.op, 0) >= FUNCTION


def update_chain(x: Value) -> list[Value]:
    """x and, if it is an update in place, the array that it updates, and so on."""
    chain = [x]
    while chain[-1].node is not None and chain[-1].node.op in IN_PLACE:
        chain.append(chain[-1].node.inputs[0])
    return chain


def updates_last(nodes: list[Node]) -> list[Node]:
    """The nodes in an order in which the readers of an array come before the updates of it, unless they need their
    result. Two rows that are computed from each other and stored one after the other then need no copy of the array.
    """
    last_read: dict[Value, int] = {}  # an expression reads its operands where it is used
    for k in range(len(nodes) - 1, -1, -1):
        node = nodes[k]
        last = max((last_read.get(v, k) for v in node.outputs), default=k) if kind_of(node) == EXPRESSION else k
        for x in node.inputs:
            last_read[x] = max(last, last_read.get(x, last))
    out: list[Node] = []
    held: list[Node] = []
    for k, node in enumerate(nodes):
        needed = [i for i, h in enumerate(held) if any(x.node is h for x in node.inputs)]
        if node.op in IN_PLACE and (needed or last_read[node.inputs[0]] > k):
            held.append(node)
            continue
        if needed:
            out += held[: needed[-1] + 1]
            del held[: needed[-1] + 1]
        out.append(node)
    return out + held


@dataclass(slots=True)
class Group:
    """Values computed in one loop nest over `size` elements; or one opaque node."""

    kind: str  # "loop", "reduce", "dot", "opaque"
    size: int
    members: list[Value]
    node: Node | None = None
    cost: int = 0
    splits: Splits = NONE
    functions: int = 0  # elementary ones
    # stored value → whether only at the element that is computed
    reads: dict[Value, bool] = field(default_factory=dict)

    @property
    def origin(self) -> Node:
        """The node of a product or an opaque operation."""
        if self.node is None:
            raise TypeError(f"a {self.kind} group is of no single node")
        return self.node


@dataclass(slots=True)
class FusionPlan:
    """stored: each stored value and why; groups in order; where: the group of each stored value."""

    stored: dict[Value, str]
    groups: list[Group]
    where: dict[Value, int]
    readers: dict[Value, list[tuple[int, bool]]]

    @override
    def __str__(self) -> str:
        names: dict[Value, str] = {}
        for g in self.groups:
            for v in g.members:
                names.setdefault(v, v.name or f"v{len(names)}")
        lines = []
        for k, g in enumerate(self.groups):
            what = g.node.op if g.kind in ("opaque", "dot") and g.node is not None else f"{g.size} elements"
            lines.append(f"group {k}: {g.kind} {what}, cost {g.cost}, splits {sorted(g.splits)}")
            for v in g.members:
                why = self.stored.get(v, "in registers")
                lines.append(f"  {names[v]}: {v.dtype}{list(v.shape)} = {v.origin.op}  ({why})")
            reads = [f"{names.get(v, v.name or 'constant')}{'' if same else '*'}" for v, same in g.reads.items()]
            if reads:
                lines.append(f"  reads {', '.join(reads)}")
        return "\n".join(lines)


class Planner:
    """Decides for one graph. apart: whether elementary functions of large arrays have loops of their own.
    blocks: for arguments and results whose elements do not lie one behind the other, where loops over them should be
    split.
    """

    def __init__(self, graph: Graph, apart: bool = False, blocks: dict[Value, Splits] | None = None):
        self.graph, self.apart, self.blocks = graph, apart, blocks or {}
        self.stored: dict[Value, str] = {}
        self.cost: dict[Value, int] = {}
        self.depth: dict[Value, int] = {}
        self.functions: dict[Value, int] = {}  # elementary ones that computing a value takes
        self.leaf_memo: dict[Value, dict[Value, bool]] = {}
        self.split_memo: dict[Value, Splits] = {}
        self.groups: list[Group] = []
        self.where: dict[Value, int] = {}
        self.outputs = {v for v in graph.outputs if v.node is not None}
        self.order: dict[Node, int] = {}
        self.updated: set[Value] = set()  # arrays that updates in place overwrite

    def plan(self) -> FusionPlan:
        sinks = self.sinks()
        nodes = updates_last(self.graph.nodes)
        self.order = {node: k for k, node in enumerate(nodes)}
        self.updated = {x for node in nodes if node.op in IN_PLACE for x in update_chain(node.inputs[0])}
        for node in nodes:
            if kind_of(node) == EXPRESSION:
                for v in node.outputs:
                    if v.users or v in self.outputs:
                        self.decide(node, v, sinks.get(v, ()))
            else:
                for v in node.outputs:
                    self.cost[v] = self.depth[v] = 0
                    if v in self.outputs:
                        self.stored[v] = "output"
        for node in nodes:
            self.place(node)
        readers: dict[Value, list[tuple[int, bool]]] = {}
        for k, g in enumerate(self.groups):
            for v, same in g.reads.items():
                readers.setdefault(v, []).append((k, same))
        for v, reads in readers.items():
            if v.node is not None and v not in self.stored and any(k != self.where[v] for k, _ in reads):
                self.stored[v] = "read by another kernel"
        return FusionPlan(self.stored, self.groups, self.where, readers)

    # ---- stored values

    def sinks(self) -> dict[Value, Ends]:
        """For each expression, up to two distinct places where it must end up: outputs of a size, and nodes that
        aren't expressions.
        """
        found: dict[Value, Ends] = {}

        def merge(v: Value, more: Ends) -> None:
            have = found.get(v, ())
            if len(have) < 2:
                for s in more:
                    if s not in have:
                        have = (*have, s)
                found[v] = have

        for v in self.outputs:
            merge(v, (("out", v.size),))
        for node in reversed(self.graph.nodes):
            kind = kind_of(node)
            ends: Ends
            if kind == EXPRESSION:
                ends = tuple({s: None for o in node.outputs for s in found.get(o, ())})
            elif kind == REDUCE:
                ends = (("reduce", node.inputs[0].shape, node.params["axes"]),)
            else:
                ends = (node,)
            for x in node.inputs:
                if x.constant is None:
                    merge(x, ends)
        return found

    def decide(self, node: Node, v: Value, sinks: Ends) -> None:
        own = elementwise.COSTS.get(node.op)
        if own is None:
            own = views.COSTS.get(node.op, 0)
        cost, depth, functions = own + ROUNDING_COST * is_rounded(v), 0, int(is_function(node))
        for x in node.inputs:
            if x.constant is None and x not in self.stored:
                cost += self.cost.get(x, 0)
                depth = max(depth, self.depth.get(x, 0))
                functions += self.functions.get(x, 0)
        self.cost[v], self.depth[v], self.functions[v] = cost, depth + depth_of(node), functions
        why = self.reason(v, cost, sinks)
        if why is not None:
            self.stored[v] = why

    def reason(self, v: Value, cost: int, sinks: Ends) -> str | None:
        if v in self.outputs:
            return "output"
        if len(sinks) > 1 and cost > DUPLICATE:
            return "wanted by two kernels"
        if cost > INLINE or self.depth[v] + max((depth_of(user) for user, _ in v.users), default=0) > DEPTH:
            return "too long for one kernel"
        if self.apart and self.functions[v] and v.size >= LARGE and any(is_function(user) for user, _ in v.users):
            return "argument of another function"
        if len(sinks) > 1 and len(v.users) > 1 and cost <= EPILOGUE and self.replaces_product(v):
            return "in place of a product"
        for user, j in v.users:
            op = user.op
            if op in FROM_MEMORY and not self.may_fill(user, j):
                return f"operand of {op}"
            if op == "convolution" and j == 0:
                return "its windows overlap"
            if cost > REPEAT and self.repeats(user, j, v):
                return f"read repeatedly by {op}"
            if op in IN_PLACE and j and self.overwritten(user, v):
                return f"read before {op} overwrites its source"
        return None

    def replaces_product(self, v: Value) -> bool:
        """Whether v is computed from a matrix product that nothing else uses, and from older values: its kernel then
        stores one or the other.
        """
        leaves = self.leaves(v)
        products = [
            x
            for x, same in leaves.items()
            if same and x.node is not None and kind_of(x.node) == DOT and x not in self.outputs
        ]
        if len(products) != 1 or products[0].size != v.size:
            return False
        x = products[0]
        while x is not v:
            if len(x.users) != 1:
                return False
            x = x.users[0][0].outputs[0]
        return all(
            y is products[0] or y.node is None or self.order[y.node] < self.order[products[0].origin] for y in leaves
        )

    def overwritten(self, user: Node, v: Value) -> bool:
        """Whether v reads the array that the update `user` overwrites, or a part of one that other updates do."""
        leaves = self.leaves(v)
        return not leaves.keys().isdisjoint(update_chain(user.inputs[0])) or any(
            2 * v.size <= x.size for x in leaves if x in self.updated
        )

    def may_fill(self, user: Node, j: int) -> bool:
        """Whether the operand is the initial value of a carry, which is computed into the carry's storage."""
        return j in carry_of(user)

    def repeats(self, user: Node, j: int, v: Value) -> bool:
        """Whether the node reads elements of its operand j more than once."""
        op = user.op
        if (
            op in PRODUCTS
            or op in ("argmax", "argmin", "gather")
            and (j or user.outputs[0].size > v.size or op != "gather")
        ):
            return True
        if op in ("dynamic_slice", "pad"):
            return j > 0
        if op in IN_PLACE:
            return j > 1 or (j == 1 and op != "dynamic_update_slice" and user.inputs[2].size > v.size)
        return kind_of(user) == EXPRESSION and user.outputs[0].size > v.size

    # ---- properties of expressions

    def leaves(self, v: Value) -> dict[Value, bool]:
        """The stored values that computing v reads, and whether only at v's own element."""
        if v.constant is not None:
            return {}
        if v.node is None or v in self.stored or kind_of(v.node) != EXPRESSION:
            return {v: True}
        found = self.leaf_memo.get(v)
        if found is None:
            found = self.leaf_memo[v] = self._leaves(v)
        return found

    def _leaves(self, v: Value) -> dict[Value, bool]:
        node = v.origin
        out: dict[Value, bool] = {}
        for x in node.inputs:
            if x.constant is not None:
                continue
            if node.op in elementwise.ELEMENT_RULES:
                same = x.size == v.size
            else:
                same = (
                    node.op in views.VIEWS
                    and views.view_of(node).identity
                    or node.op == "threefry2x32"
                    and x.size == v.size
                )
            for leaf, flag in self.leaves(x).items():
                out[leaf] = out.get(leaf, True) and flag and same
        return out

    def splits(self, v: Value) -> Splits:
        """Where loops over v should be split so that its expression needs no division."""
        if v.constant is not None or v.node is None or v in self.stored or kind_of(v.node) != EXPRESSION:
            return self.blocks.get(v, NONE)
        found = self.split_memo.get(v)
        if found is None:
            found = self.split_memo[v] = self.own_splits(v)
        return found

    def own_splits(self, v: Value) -> Splits:
        """Likewise, for computing v itself even if it is stored."""
        node = v.origin
        if node.op in elementwise.ELEMENT_RULES or node.op == "threefry2x32":
            out = NONE
            for j, x in enumerate(node.inputs):
                inner = self.splits(x)
                if x.size != v.size and x.size != 1:
                    inner = views.operand_view(node, j).splits(inner)
                if inner and x.size != 1:
                    out = out | inner
            return out
        if node.op in views.VIEWS:
            return views.view_of(node).splits(self.splits(node.inputs[0]))
        own = views.SPLITS[node.op](node)
        return own if own else self.splits(node.inputs[0]) if node.inputs and node.inputs[0].size == v.size else own

    def reduce_splits(self, v: Value) -> Splits:
        """The splits of a reduction's result: between runs of kept axes, and where its operand requires them."""
        x, axes = v.origin.inputs[0], v.origin.params["axes"]
        kept = [d for d in range(len(x.shape)) if d not in axes]
        wanted = self.splits(x)
        out: set[int] = set()
        inside = trailing(x.shape)
        strides = trailing(v.shape)
        for k, d in enumerate(kept):
            after = kept[k + 1] if k + 1 < len(kept) else None
            if after is not None and any(x.shape[e] != 1 for e in range(d + 1, after)):
                out.add(strides[k])
            for p in wanted:
                if inside[d] <= p < inside[d] * x.shape[d] and p % inside[d] == 0:
                    out.add(p // inside[d] * strides[k])
        out.discard(1)
        return frozenset(out)

    # ---- groups

    def place(self, node: Node) -> None:
        kind = kind_of(node)
        if kind == EXPRESSION:
            for v in node.outputs:
                if v in self.stored:
                    self.place_expression(v)
        elif kind == REDUCE:
            self.place_reduction(node)
        else:
            group = Group(
                "dot" if kind == DOT else "opaque",
                node.outputs[0].size if node.outputs else 0,
                list(node.outputs),
                node,
            )
            for x in node.inputs:
                for leaf in self.leaves(x):
                    group.reads[leaf] = False
            self.append(group)

    def append(self, group: Group) -> None:
        for v in group.members:
            self.where[v] = len(self.groups)
        self.groups.append(group)

    def join(self, index: int, v: Value, reads: dict[Value, bool], cost: int, splits: Splits, functions: int) -> None:
        group = self.groups[index]
        group.members.append(v)
        group.cost += cost
        group.functions += functions
        group.splits |= splits
        for leaf, same in reads.items():
            group.reads[leaf] = group.reads.get(leaf, True) and same
        self.where[v] = index

    def place_expression(self, v: Value) -> None:
        reads = self._leaves(v)  # v itself is stored, so it reads its operands
        cost, splits, functions = self.cost[v], self.own_splits(v) | self.blocks.get(v, NONE), self.functions[v]
        first, allowed = self.earliest(reads)
        own = self.groups[first] if first >= 0 else None
        if own is not None and allowed and self.fits(own, v, cost, reads, functions):
            self.join(first, v, reads, cost, splits, functions)
            return
        for index in range(len(self.groups) - 1, first, -1):
            group = self.groups[index]
            shares = v.size == 1 or any(leaf in group.reads and leaf.size > 1 for leaf in reads)
            if group.kind == "loop" and shares and self.fits(group, v, cost, reads, functions):
                self.join(index, v, reads, cost, splits, functions)
                return
        self.append(Group("loop", v.size, [v], None, cost, splits, functions, reads))

    def earliest(self, reads: dict[Value, bool]) -> tuple[int, bool]:
        """(the last group that computes something of reads, whether those are read at their own element only)."""
        first, allowed = -1, True
        for leaf, same in reads.items():
            index = self.where.get(leaf, -1)
            if index > first:
                first, allowed = index, same
            elif index == first:
                allowed = allowed and same
        return first, allowed

    def fits(self, group: Group, v: Value, cost: int, reads: dict[Value, bool], functions: int) -> bool:
        if self.apart and v.size >= LARGE and group.functions and functions:
            return False
        if (
            group.size != v.size
            or group.kind == "opaque"
            or len(group.members) >= MEMBERS
            or group.cost + cost > GROUP_COST
        ):
            return False
        if group.kind == "dot":
            return group.cost + cost <= EPILOGUE and len(group.members) < 3
        return True

    def place_reduction(self, node: Node) -> None:
        (v,) = node.outputs
        reads = dict.fromkeys(self.leaves(node.inputs[0]), False)
        cost, splits = self.cost.get(node.inputs[0], 0) + 1, self.reduce_splits(v) | self.blocks.get(v, NONE)
        functions = self.functions.get(node.inputs[0], 0) if node.inputs[0] not in self.stored else 0
        first, _ = self.earliest(reads)
        for index in range(len(self.groups) - 1, first, -1):
            group = self.groups[index]
            if (
                group.kind == "reduce"
                and self.fits(group, v, cost, reads, functions)
                and any(
                    m.origin.op in reductions.REDUCERS
                    and m.origin.inputs[0].shape == node.inputs[0].shape
                    and m.origin.params["axes"] == node.params["axes"]
                    and any(leaf in group.reads and leaf.size > 1 for leaf in reads)
                    for m in group.members
                )
            ):
                self.join(index, v, reads, cost, splits, functions)
                return
        self.append(Group("reduce", v.size, [v], None, cost, splits, functions, reads))
