"""Equal groups are lowered once. The layers of a network, and the updates of its parameters, are the same kernels on
other buffers: the second of them becomes an `Instance` of the first one's kernels, and so they are scheduled and
emitted once as well.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Protocol

from weft.core.primitive import exact
from weft_wasm.ir.nodes import Buffer, Expr, Instance, Kernel, Stmt
from weft_wasm.ir.traversal import touched
from weft_wasm.lower import fuse
from weft_wasm.lower.graph import Node, Value


class PlaceLike(Protocol):
    """Where a value is: `Place`."""

    @property
    def buffer(self) -> Buffer: ...

    @property
    def offset(self) -> Expr | None: ...


class ModuleLike(Protocol):
    """What a module gives out: `Module`."""

    temps: list[Buffer]
    count: int


class LoweringLike(Protocol):
    """The lowering of the graph around a group: `GraphLowering`."""

    @property
    def module(self) -> ModuleLike: ...

    @property
    def plan(self) -> fuse.FusionPlan: ...

    @property
    def places(self) -> Mapping[Value, PlaceLike]: ...

    @property
    def scalars(self) -> Mapping[Value, Expr]: ...

    def computed(self, group: fuse.Group) -> list[Stmt]: ...


class _Particular(Exception):
    """A group depends on where it stands."""


class _Description:
    """A group in words: the same for groups whose kernels differ in their buffers alone. `buffers` are those, in the
    order in which the group uses them.

    The words tell everything that `GraphLowering.computed` asks of a group: its operations, what is stored, what is
    used several times, and which values are in one buffer.
    """

    def __init__(self, body: LoweringLike, group: fuse.Group):
        self.body, self.members = body, set(group.members)
        self.words: list[Hashable] = [group.kind, group.size, group.splits]
        self.buffers: dict[Buffer, int] = {}
        self.values: dict[Value, int] = {}
        self.nodes: dict[Node, int] = {}
        for v in group.members:
            self.words += (self.value(v), v in body.plan.stored, bool(v.users))

    def value(self, v: Value) -> int:
        """The number of a value, which is described where it is new."""
        known = self.values.get(v)
        if known is not None:
            return known
        if v in self.body.scalars:
            raise _Particular
        place = self.body.places.get(v)
        if v.constant is not None:
            self.words += ("constant", repr(v.constant), v.dtype, v.shape)
        elif v.data is not None:
            self.words.append(v)
        elif v.node is not None and (place is None or v in self.members):
            self.words += (self.node(v.node), v.slot, len(v.users) > 1)
        else:
            self.words += ("operand", v.dtype, v.shape)
        if place is not None and v.constant is None and v.data is None:
            self.words.append(self.buffer(place))
        number = self.values[v] = len(self.values)
        return number

    def node(self, node: Node) -> int:
        known = self.nodes.get(node)
        if known is not None:
            return known
        inputs = tuple([self.value(x) for x in node.inputs])
        self.words += (node.op, inputs, tuple(exact(node.params)), tuple([(o.dtype, o.shape) for o in node.outputs]))
        number = self.nodes[node] = len(self.nodes)
        return number

    def buffer(self, place: PlaceLike) -> int:
        if place.offset is not None:
            raise _Particular
        b = place.buffer
        known = self.buffers.get(b)
        if known is None:
            known = self.buffers[b] = len(self.buffers)
            self.words += (b.label, b.size, b.role == "constant")
        return known


def describe(body: LoweringLike, group: fuse.Group) -> tuple[Hashable, list[Buffer]] | None:
    """(a key, the buffers) of a group: groups with one key have the same kernels on other buffers. None for groups of
    which that can't be said: opaque operations, and those that use the variables of loops around them.
    """
    if group.kind == "opaque" or (group.kind == "dot" and group.origin.op != "dot_general"):
        return None
    try:
        found = _Description(body, group)
        key = tuple(found.words)
        hash(key)
    except (_Particular, TypeError):  # TypeError: a parameter that doesn't hash
        return None
    return key, list(found.buffers)


class _Lowered:
    """What a group became.

    statements: its kernels. buffers: its own, in the order of its description. temps: that its kernels need besides.
    begin, end: the numbers of the module's names.
    """

    def __init__(self, statements: list[Stmt], buffers: list[Buffer], temps: list[Buffer], begin: int, end: int):
        self.statements, self.buffers, self.temps, self.begin, self.end = statements, buffers, temps, begin, end

    @functools.cached_property
    def kernels(self) -> list[Kernel] | None:
        """The kernels that instances may be of; None where there is something else, or they use other buffers too."""
        kernels = [s for s in self.statements if type(s) is Kernel and not s.workgroup]
        known = {*self.buffers, *self.temps}
        own = all(b in known or b.role == "constant" for used in touched(kernels) for b in used)
        return kernels if own and len(kernels) == len(self.statements) else None


class Reuse:
    """The groups of one program that were lowered so far."""

    def __init__(self) -> None:
        self.known: dict[Hashable, _Lowered] = {}

    def kernels(self, body: LoweringLike, group: fuse.Group) -> Sequence[Stmt]:
        """The kernels of a group, or instances of those of an equal one."""
        found = describe(body, group)
        if found is None:
            return body.computed(group)
        key, buffers = found
        module, known = body.module, self.known.get(key)
        if known is not None and known.kernels is not None:
            return self._again(module, known, known.kernels, buffers)
        temps, begin = len(module.temps), module.count
        statements = body.computed(group)
        self.known[key] = _Lowered(statements, buffers, module.temps[temps:], begin, module.count)
        return statements

    @staticmethod
    def _again(module: ModuleLike, known: _Lowered, kernels: list[Kernel], buffers: list[Buffer]) -> list[Stmt]:
        later = module.count - known.begin
        module.count += known.end - known.begin
        given = dict(zip(known.buffers, buffers))
        for b in known.temps:
            given[b] = Buffer(_numbered(b.name, later), b.dtype, b.shape, b.role, label=b.label)
            module.temps.append(given[b])
        return [Instance(_numbered(kernel.name, later), kernel, given) for kernel in kernels]


def _numbered(name: str, later: int) -> str:
    """The name that a module would have given so many names later."""
    return re.sub(r"\d+", lambda number: str(int(number[0]) + later), name, count=1)
