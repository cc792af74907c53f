"""A jaxpr as a flat graph: calls inlined, equal nodes shared, scalars folded, dead nodes dropped.

A `Value` is an array: an argument, a constant, or a result of a `Node`. Nodes are in an order in which operands come
first. Control flow keeps its jaxprs; their bodies become separate graphs when they are emitted.
"""

from __future__ import annotations

import math
import operator
import struct
from typing import Any, Callable, Hashable, Sequence, TypeVar

from weft.base.annotations import override
from weft.base.config import config
from weft.core.carries import CARRY, Carries, Runs
from weft.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from weft.core.primitive import Unsupported, exact, registry
from weft.core.trace import is_array
from weft.base.host import to_bytes
from weft.transforms.dce import live
from weft.transforms.stage import decomposition

from weft_wasm.ir import nodes
from weft_wasm.lower.blocks import Shape
from weft_wasm.lower.complexes import IDENTITIES, planes
from weft_wasm.lower.formats import FORMATS
from weft_wasm.lower.types import LoweringError, array_type, scalar_dtype, storage_dtype


class Value:
    """An array of a graph. `constant` is a host scalar that all its elements equal, if known; `data` the bytes of a
    constant array.
    """

    __slots__ = ("shape", "dtype", "size", "node", "slot", "constant", "data", "users", "name")

    def __init__(
        self,
        shape: Shape,
        dtype: str,
        node: Node | None = None,
        slot: int = 0,
        constant: nodes.Number | None = None,
        name: str = "",
    ):
        self.shape, self.dtype, self.node, self.slot, self.constant, self.name = (
            shape,
            dtype,
            node,
            slot,
            constant,
            name,
        )
        self.size = math.prod(shape)
        self.data: bytes | None = None
        self.users: list[tuple[Node, int]] = []

    @property
    def origin(self) -> Node:
        """The node of a value that is known to be computed."""
        if self.node is None:
            raise TypeError(f"{self!r} is an argument or a constant")
        return self.node

    @override
    def __repr__(self) -> str:
        return f"{self.name or 'v'}:{self.dtype}[{','.join(map(str, self.shape))}]"


class Node:
    """One operation. `info` is the user's line; `cache` holds what lowering derives from the node (its view, its
    costs).
    """

    __slots__ = ("op", "params", "inputs", "outputs", "info", "index", "cache", "effect")

    def __init__(self, op: str, params: dict[str, Any], inputs: list[Value], info: Any = None, effect: bool = False):
        self.effect = effect  # it does something besides: never dropped, never shared
        self.op, self.params, self.inputs, self.info = op, params, inputs, info
        self.outputs: list[Value] = []
        self.index = -1
        self.cache: dict[Hashable, Any] = {}

    @override
    def __repr__(self) -> str:
        return f"{' '.join(map(repr, self.outputs))} = {self.op} {' '.join(map(repr, self.inputs))}"


def carry_of(node: Node) -> list[int]:
    """Which operands of a loop its iterations replace."""
    primitive = registry.get(node.op)
    carries: Carries | None = None if primitive is None else primitive.carries
    if carries is None or carries.runs is not Runs.REPEATED:
        return []
    return carries.split(node.params, range(len(node.inputs)))[CARRY]


class Graph:
    """nodes in order; inputs and outputs (an output may be an input, a constant, or appear twice)."""

    def __init__(self, inputs: list[Value], outputs: list[Value], nodes: list[Node]):
        self.inputs, self.outputs, self.nodes = inputs, outputs, nodes


# Primitives that a graph holds; everything else is inlined or decomposed. The families fill it.
known: set[str] = set()
# they have no effect here, where programs run one operation after the other
TOKENS = frozenset(("create_token", "after_all"))
EFFECTS = frozenset(("debug_callback", "io_callback", "host_call", "check"))  # may have some
_FOLD: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "add_any": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "neg": operator.neg,
    "max": max,
    "min": min,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
_decomposed: dict[tuple[Any, ...], ClosedJaxpr] = {}  # (primitive, avals, configuration, parameters) -> closed jaxpr
_F32 = struct.Struct("<f")


class Builder:
    """Builds one graph."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.interned: dict[tuple[Any, ...], list[Value]] = {}
        self.constants: dict[Hashable, Value] = {}
        self.kept_alive: list[Any] = []

    # ---- leaves

    def literal(self, value: nodes.Number, shape: Shape, dtype: str) -> Value:
        """A value whose elements all equal one host scalar."""
        key = (shape, dtype, repr(value))
        found = self.constants.get(key)
        if found is None:
            found = self.constants[key] = Value(shape, dtype, constant=value)
        return found

    def array(self, x: Any) -> Value:
        """A concrete array (a constant of an inner jaxpr)."""
        found = self.constants.get(id(x))
        if found is None:
            host = x._host() if is_array(x) else x
            if not hasattr(host, "dtype"):
                raise LoweringError(f"a constant of type {type(x).__name__} can't be part of a compiled program.")
            found = Value(tuple(host.shape), storage_dtype(host.dtype, "a constant"))
            found.data = bytes(to_bytes(host))
            self.constants[id(x)] = found
            self.kept_alive.append(x)
        return found

    # ---- nodes

    def add(
        self,
        op: str,
        inputs: Sequence[Value],
        shapes: Sequence[tuple[Shape, str]],
        params: dict[str, Any] | None = None,
        info: Any = None,
        effect: bool = False,
    ) -> list[Value]:
        """The results of a node, shared with an equal one."""
        params = params or {}
        # shapes too: a reshape has no parameters
        key: tuple[Any, ...] | None = None if effect else (op, *inputs, *shapes, *exact(params))
        try:
            found = None if key is None else self.interned.get(key)
        except TypeError:  # a parameter that doesn't hash
            key = found = None
        if found is not None:
            return found
        node = Node(op, params, list(inputs), info, effect)
        node.outputs = [Value(shape, dtype, node, k) for k, (shape, dtype) in enumerate(shapes)]
        self.nodes.append(node)
        if key is not None:
            self.interned[key] = node.outputs
        return node.outputs

    def reshape(self, x: Value, shape: Shape) -> Value:
        while x.node is not None and x.node.op == "reshape":
            x = x.node.inputs[0]
        if x.shape == shape:
            return x
        if x.constant is not None:
            return self.literal(x.constant, shape, x.dtype)
        return self.add("reshape", [x], [(shape, x.dtype)])[0]

    def transpose(self, x: Value, permutation: tuple[int, ...]) -> Value:
        if x.node is not None and x.node.op == "transpose":
            inner = x.node.params["permutation"]
            x, permutation = x.node.inputs[0], tuple(inner[d] for d in permutation)
        if permutation == tuple(range(len(permutation))):
            return x
        shape = tuple(x.shape[d] for d in permutation)
        if x.constant is not None:
            return self.literal(x.constant, shape, x.dtype)
        return self.add("transpose", [x], [(shape, x.dtype)], {"permutation": permutation})[0]

    def jaxpr(self, jaxpr: Jaxpr, args: Sequence[Value], consts: Sequence[Any] = ()) -> list[Value]:
        """The results of a jaxpr, its equations written into this graph."""
        env: dict[Any, Value] = dict(zip(jaxpr.invars, args))
        for v, c in zip(jaxpr.constvars, consts):
            env[v] = self.array(c)
        for eqn in live(jaxpr).eqns:
            if eqn.primitive.name in TOKENS:
                continue
            ins = [env[a] if type(a) is not Literal else self.known(a, eqn) for a in eqn.invars]
            for v, o in zip(eqn.outvars, self.equation(eqn, ins)):
                env[v] = o
        return [env[a] if type(a) is not Literal else self.known(a) for a in jaxpr.outvars]

    def known(self, a: Literal, eqn: JaxprEqn | None = None) -> Value:
        who, where = ("a literal", "") if eqn is None else (eqn.primitive.name, eqn.source_info)
        return self.literal(a.val, a.aval.shape, storage_dtype(a.aval.dtype, who, where))

    def closed(self, closed: ClosedJaxpr, args: Sequence[Value]) -> list[Value]:
        return self.jaxpr(closed.jaxpr, args, closed.consts)

    def equation(self, eqn: JaxprEqn, ins: list[Value]) -> list[Value]:
        primitive, params = eqn.primitive, eqn.params
        name = primitive.name
        called = None if primitive.carries is None else primitive.carries.call(params, ins)
        if called is not None:
            return self.closed(*called)
        if primitive.foreign:
            return self.decompose(eqn, ins)
        if name in IDENTITIES:
            return ins
        if name == "dce_sink":  # it has kept the equations that it depends on in the jaxpr; nothing is computed from it
            return []
        if eqn.effects and primitive.carries is None and name not in EFFECTS:
            raise LoweringError(
                f"{name} has effects ({', '.join(map(str, eqn.effects))}), which compiled wasm and webgpu programs"
                f" can't perform; call it outside of jit, or use the cpu backend. At {eqn.source_info}"
            )
        special = rewrites.get(name)
        if special is not None:
            outs = special(self, eqn, ins)
            if outs is not None:
                return outs
        if name not in known:
            return self.decompose(eqn, ins)
        shapes = [(a.shape, storage_dtype(a.dtype, name, eqn.source_info)) for a in map(array_type, eqn.outvars)]
        if name in _FOLD and all(x.constant is not None for x in ins):
            folded = self.fold(name, ins, *shapes[0])
            if folded is not None:
                return [folded]
        return self.add(name, ins, shapes, params, eqn.source_info, bool(eqn.effects))

    def decompose(self, eqn: JaxprEqn, ins: list[Value]) -> list[Value]:
        primitive, params = eqn.primitive, eqn.params
        rule = primitive.decompose
        if rule is None or isinstance(rule, Unsupported):
            for v in eqn.outvars:  # a dtype that can't be stored is the better explanation
                storage_dtype(array_type(v).dtype, primitive.name, eqn.source_info)
            kinds = ", ".join(a.aval.str_short() for a in eqn.invars)
            raise LoweringError(
                f"the wasm and webgpu backends can't compile the primitive {primitive.name} of ({kinds}): it has no"
                f" kernel and no decomposition. Use the cpu backend for it. At {eqn.source_info}"
            )
        avals = tuple([a.aval for a in eqn.invars])
        key, hashable = (primitive, avals, config.trace_context(), *exact(params)), True
        try:
            closed = _decomposed.get(key)
        except TypeError:
            closed, hashable = None, False
        if closed is None:
            closed = planes(decomposition(primitive, rule, avals, params))
            if hashable:
                _decomposed[key] = closed
        return self.closed(closed, ins)

    def fold(self, name: str, ins: list[Value], shape: Shape, dtype: str) -> Value | None:
        """Arithmetic on known scalars; None if the host's arithmetic may differ from the device's."""
        values = [x.constant for x in ins]
        kind = ins[0].dtype
        if (
            kind in ("f16", "bf16")
            or kind in FORMATS
            or any(isinstance(v, float) and not math.isfinite(v) for v in values)
        ):
            return None
        result = _FOLD[name](*values)
        if dtype == "f32":
            result = round_f32(result)
        elif dtype in nodes.INTEGERS:
            result = nodes.wrap(int(result), dtype)
        if isinstance(result, float) and not math.isfinite(result):
            return None
        return self.literal(result, shape, dtype)


def round_f32(x: float) -> float:
    """The f32 nearest to x."""
    try:
        (value,) = _F32.unpack(_F32.pack(x))
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, x)


def _broadcast(b: Builder, eqn: JaxprEqn, ins: list[Value]) -> list[Value] | None:
    (x,) = ins
    shape = eqn.params["shape"]
    if x.constant is not None:
        return [b.literal(x.constant, shape, x.dtype)]
    if x.size == math.prod(shape):
        return [b.reshape(x, shape)]
    return None


def _transpose(b: Builder, eqn: JaxprEqn, ins: list[Value]) -> list[Value] | None:
    return [b.transpose(ins[0], eqn.params["permutation"])]


def _same_order(b: Builder, eqn: JaxprEqn, ins: list[Value]) -> list[Value] | None:
    return [b.reshape(ins[0], array_type(eqn.outvars[0]).shape)]


def _convert(b: Builder, eqn: JaxprEqn, ins: list[Value]) -> list[Value] | None:
    (x,) = ins
    new = storage_dtype(eqn.params["new_dtype"], "convert_element_type", eqn.source_info)
    if new == x.dtype:
        return [x]
    if x.constant is None or new in ("f16", "bf16") or new in FORMATS:
        return None
    v = x.constant
    if new == "bool":
        return [b.literal(bool(v), x.shape, new)]
    if new in nodes.INTEGERS:
        return [b.literal(nodes.wrap(int(v), new), x.shape, new)] if not isinstance(v, float) else None
    return [b.literal(round_f32(float(v)) if new == "f32" else float(v), x.shape, new)]


def _sort(b: Builder, eqn: JaxprEqn, ins: list[Value]) -> list[Value] | None:
    """A sort along the last axis of [batch, n], between transposes where it is another axis."""
    d, rank = eqn.params["dimension"], len(ins[0].shape)
    wide = [scalar_dtype(x.dtype) if x.dtype in FORMATS else x.dtype for x in ins]
    narrow = [x.dtype for x in ins]
    ins = [x if w == x.dtype else b.add("convert_element_type", [x], [(x.shape, w)])[0] for x, w in zip(ins, wide)]
    order = (*[k for k in range(rank) if k != d], d)
    back = tuple(sorted(range(rank), key=order.__getitem__))
    ins = [b.transpose(x, order) for x in ins]
    shape = ins[0].shape
    outs = b.add("sort", ins, [(shape, x.dtype) for x in ins], {"num_keys": eqn.params["num_keys"]}, eqn.source_info)
    outs = [o if o.dtype == n else b.add("convert_element_type", [o], [(o.shape, n)])[0] for o, n in zip(outs, narrow)]
    return [b.transpose(o, back) for o in outs]


def _one_times(b: Builder, eqn: JaxprEqn, ins: list[Value]) -> list[Value] | None:
    x, y = ins
    for one, other in ((x, y), (y, x)):
        if one.constant is not None and one.constant == 1 and other.shape == array_type(eqn.outvars[0]).shape:
            return [other]
    return None


def _of_single(b: Builder, eqn: JaxprEqn, ins: list[Value]) -> list[Value] | None:
    """A reduction over axes of size 1 moves nothing."""
    (x,) = ins
    shape = array_type(eqn.outvars[0]).shape
    return [b.reshape(x, shape)] if x.size == math.prod(shape) and x.size else None


Rewrite = Callable[[Builder, JaxprEqn, list[Value]], list[Value] | None]  # None: keep the node
rewrites: dict[str, Rewrite] = {
    **dict.fromkeys(
        ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_and", "reduce_or", "reduce_xor"), _of_single
    ),
    "broadcast_in_dim": _broadcast,
    "transpose": _transpose,
    "reshape": _same_order,
    "squeeze": _same_order,
    "expand_dims": _same_order,
    "convert_element_type": _convert,
    "sort": _sort,
    "mul": _one_times,
}
_Rewriter = TypeVar("_Rewriter", bound=Rewrite)


def rewrite(*names: str) -> Callable[[_Rewriter], _Rewriter]:
    """Registers how the primitives `names` become nodes."""

    def register(f: _Rewriter) -> _Rewriter:
        rewrites.update(dict.fromkeys(names, f))
        return f

    return register


def build(
    jaxpr: Jaxpr,
    consts: Sequence[Any] = (),
    substitutes: dict[int, nodes.Number] | None = None,
    adjust: Callable[[list[Value], list[Value]], list[Value]] | None = None,
) -> Graph:
    """The graph of a jaxpr.

    substitutes: by position, the values of arguments whose elements all equal a known one (constants of an outer
    graph). adjust(inputs, outputs): other outputs, chosen before unused nodes are dropped.
    """
    b = Builder()
    substitutes = substitutes or {}
    inputs = [
        Value(a.shape, storage_dtype(a.dtype, f"argument {k}"), name=f"arg{k}")
        for k, a in enumerate(map(array_type, jaxpr.invars))
    ]
    args = []
    for k, x in enumerate(inputs):
        value = substitutes.get(k)
        args.append(x if value is None else b.literal(value, x.shape, x.dtype))
    outputs = b.jaxpr(jaxpr, args, consts)
    if adjust is not None:
        outputs = adjust(inputs, outputs)
    nodes = without_dead(b.nodes, outputs)
    for rule in (_swapped_product, _divided_product):
        new = [rule(node, outputs) for node in nodes]
        if any(new):
            nodes = without_dead([n for node, instead in zip(nodes, new) for n in instead or (node,)], outputs)
    return Graph(inputs, outputs, nodes)


def without_dead(nodes: list[Node], outputs: list[Value]) -> list[Node]:
    """The nodes that outputs depend on, numbered, with the users of every value."""
    needed = {v.node for v in outputs if v.node is not None} | {node for node in nodes if node.effect}
    kept = []
    for node in reversed(nodes):
        for x in (*node.inputs, *node.outputs):
            x.users = []
        if node in needed:
            kept.append(node)
            needed.update([x.node for x in node.inputs if x.node is not None])
    kept.reverse()
    for k, node in enumerate(kept):
        node.index = k
        for j, x in enumerate(node.inputs):
            x.users.append((node, j))
    return kept


def _swapped_product(node: Node, outputs: list[Value]) -> list[Node] | None:
    """A matrix product whose only use is its transpose is computed transposed: (x y)ᵀ = yᵀ xᵀ, and operands may be
    in any order.
    """
    x = node.inputs[0] if node.op == "transpose" else None
    product = x.node if x is not None else None
    if x is None or product is None or product.op != "dot_general" or len(x.users) != 1 or x in outputs:
        return None
    a, b = product.inputs
    (ac, bc), (ab, bb) = product.params["dimension_numbers"]
    rows = len(a.shape) - len(ac) - len(ab)
    rank, batch = len(x.shape), len(ab)
    if node.params["permutation"] != (*range(batch), *range(batch + rows, rank), *range(batch, batch + rows)):
        return None
    node.op, node.inputs, node.info, node.cache = "dot_general", [b, a], product.info, {}
    node.params = dict(product.params, dimension_numbers=((bc, ac), (bb, ab)))
    return [node]


def _divided_product(node: Node, outputs: list[Value]) -> list[Node] | None:
    """In a product with weights, as in attention, the product is divided instead of the weights if there are more of
    these: (e/s) v = (e v)/s with one s for each row.
    """
    if node.op != "dot_general":
        return None
    for j, weights in enumerate(node.inputs):
        contracted, batch = (sides[j] for sides in node.params["dimension_numbers"])
        if (
            not _is_softmax(weights, contracted)
            or len(weights.users) != 1
            or weights in outputs
            or batch != tuple(range(len(batch)))
        ):
            continue
        (out,), (exponentials, divisor) = node.outputs, weights.origin.inputs
        if weights.size <= out.size or weights.dtype != out.dtype or out.dtype not in nodes.FLOATS:
            continue
        free = [n for d, n in enumerate(divisor.shape) if d not in (*batch, *contracted)]
        others = (1,) * (len(out.shape) - len(batch) - len(free))
        product, spread = (
            Node("dot_general", node.params, list(node.inputs), node.info),
            Node("reshape", {}, [divisor], node.info),
        )
        product.inputs[j] = exponentials
        product.outputs = [Value(out.shape, out.dtype, product)]
        spread.outputs = [
            Value((*out.shape[: len(batch)], *((*free, *others) if j == 0 else (*others, *free))), out.dtype, spread)
        ]
        node.op, node.params, node.inputs, node.cache = "div", {}, [product.outputs[0], spread.outputs[0]], {}
        return [product, spread, node]
    return None


def _is_softmax(x: Value, axes: Sequence[int]) -> bool:
    """Whether x is e/s with one s along axes, where e = exp(y - max y) is 1 at most: sums of products with e do not
    overflow before sums of the other factors do.
    """
    e, s = _operands(x, "div")
    y, top = _operands(_operands(e, "exp")[0], "sub")
    if (
        e is None
        or s is None
        or y is None
        or top is None
        or e.shape != x.shape
        or len(s.shape) != len(x.shape)
        or any(s.shape[d] != 1 for d in axes)
    ):
        return False
    peak: Value | None = top
    # its maximum with -inf
    while peak is not None and peak.node is not None and peak.node.op in ("reshape", "max"):
        peak = next((v for v in peak.node.inputs if v.constant is None), None)
    if peak is None or _operands(peak, "reduce_max")[0] is not y:
        return False
    return top.shape == tuple(1 if d in peak.origin.params["axes"] else n for d, n in enumerate(y.shape))


def _operands(x: Value | None, op: str) -> Sequence[Value | None]:
    """The operands of the operation that computes x; none if that is another operation."""
    return x.node.inputs if x is not None and x.node is not None and x.node.op == op else (None, None)
