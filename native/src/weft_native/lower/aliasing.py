"""Updates that read the array that they change.

XLA's CPU compiler writes an update into the array itself if nothing reads the array later. Readers within the fusion of
the update it finds only if they read the array as the update has it: not if the update is of `v.reshape(4, 3)` and
reads `v`. They then read what the update has written. So such an array is made by something that is no mere reshape.
"""

from __future__ import annotations

import math

from jaxlib.mlir import ir
from weft.base import dtypes
from weft.base.avals import shaped
from weft.core.memo import inner_jaxprs, memoized

# What XLA may see through where it changes no number of elements.
_VIEWS = frozenset(
    "stablehlo." + name
    for name in (
        "bitcast_convert broadcast_in_dim concatenate convert dynamic_slice optimization_barrier pad reshape reverse"
        " slice transpose"
    ).split()
)
_UPDATES = ("dynamic_update_slice", "scatter")


def apart(b, x, update, aval):
    """`x`, of which `update` reads no view."""
    source = _source(b, x)
    if source == x or not math.prod(aval.shape) or not _reads(update, source):
        return x
    first = b.op(
        "stablehlo.slice",
        [x],
        b.tensor((1,) * len(aval.shape), aval.dtype),
        {
            name: b.i64s([n] * len(aval.shape))
            for name, n in (("start_indices", 0), ("limit_indices", 1), ("strides", 1))
        },
    )
    dtype = aval.dtype
    first = b.reshape(first, (), dtype)
    if dtypes.is_complex(dtype):
        dtype = dtypes.real_of(dtype)
        first = b.op("stablehlo.real", [first], b.tensor((), dtype))
    if dtype != dtypes.int32:
        first = b.convert(first, (), dtypes.int32)
    integer = shaped((), dtypes.int32)
    odd = b.op("stablehlo.or", [first, b.splat(1, dtypes.int32)], b.type(integer))
    boolean = b.compare("NE", odd, b.splat(0, dtypes.int32), integer)  # it holds, which XLA does not find out
    held = b.broadcast(boolean, [], aval.shape, dtypes.bool_)
    return b.select(held, x, b.splat(0, aval.dtype, aval.shape), aval.shape, aval.dtype)


def updates_a_view(b, jaxpr, args) -> bool:
    """Whether a function that may update an argument is given a view: only inlined it is seen what else reads it."""
    return any(_source(b, x) != x for x in args) and _updates(jaxpr)


@memoized
def _updates(jaxpr) -> bool:
    return any(eqn.primitive.name.startswith(_UPDATES) for eqn in jaxpr.eqns) or any(map(_updates, inner_jaxprs(jaxpr)))


def _source(b, x):
    """The value of which `x` is a view, maybe x itself."""
    while True:
        behind = None if isinstance(x, ir.BlockArgument) else _behind(b, x)
        if behind is None:
            return x
        x = behind


def _behind(b, x):
    """What the operation that makes `x` is given, if it makes a view of it."""
    op = x.owner
    if op.name in _VIEWS:
        return next((v for v in op.operands if _elements(v) == _elements(x)), None)
    if op.name != "func.call":
        return None
    symbol, result = ir.FlatSymbolRefAttr(op.attributes["callee"]).value, [*op.results].index(x)
    if (symbol, result) not in b.views:
        body = _function(b, symbol).regions[0].blocks[0].operations
        found = _source(b, body[len(body) - 1].operands[result])
        b.views[symbol, result] = found.arg_number if isinstance(found, ir.BlockArgument) else None
    argument = b.views[symbol, result]
    return None if argument is None else op.operands[argument]


def _elements(value) -> int:
    kind = ir.RankedTensorType(value.type)
    return math.prod(kind.shape)


def _function(b, symbol: str):
    for op in b.module.body.operations:
        if ir.StringAttr(op.attributes["sym_name"]).value == symbol:
            return op
    raise AssertionError(f"a call of {symbol}, which the module does not have")


def _reads(value, source) -> bool:
    """Whether a value is computed from another, or from one like it, which XLA makes the same."""
    kinds: dict[tuple, int] = {}
    numbers: dict[ir.Value, int] = {}
    read = _slice(value)
    for v in (source, *read):
        _number(v, kinds, numbers)
    return any(numbers[v] == numbers[source] for v in read)


def _operands(value) -> list:
    """What the operation that makes a value reads, in its regions too."""
    if isinstance(value, ir.BlockArgument):
        return []
    ops, found = [value.owner], []
    while ops:
        op = ops.pop()
        found += op.operands
        ops += [inner.operation for region in op.regions for block in region.blocks for inner in block.operations]
    return found


def _slice(value) -> set:
    """A value, and all that it is computed from."""
    todo, seen = [value], set()
    while todo:
        value = todo.pop()
        if value not in seen:
            seen.add(value)
            todo += _operands(value)
    return seen


def _number(value, kinds: dict[tuple, int], numbers: dict[ir.Value, int]) -> None:
    """Numbers a value and what it is computed from: equal operations of equally numbered values have one number."""
    todo = [value]
    while todo:
        value = todo[-1]
        if value in numbers:
            todo.pop()
            continue
        open_ = [v for v in _operands(value) if v not in numbers]
        if open_ and not isinstance(value, ir.BlockArgument) and not len(value.owner.regions):
            todo += open_
            continue
        todo.pop()
        if isinstance(value, ir.BlockArgument) or len(value.owner.regions):
            kind: tuple = (value,)
        else:
            op = value.owner
            kind = (op.name, _attributes(op), tuple(numbers[v] for v in op.operands), value.result_number, value.type)
        numbers[value] = kinds.setdefault(kind, len(kinds))


def _attributes(op):
    """What tells operations of one name and the same operands apart."""
    if op.name == "stablehlo.constant" and isinstance(ir.RankedTensorType(op.result.type).element_type, ir.ComplexType):
        # MLIR's bindings don't give out dense complex elements. Long constants count as equal, which is safe.
        return op.get_asm(use_local_scope=True, large_elements_limit=1000).partition("=")[2]
    return tuple((name, op.attributes[name]) for name in op.attributes)
