"""pallas_call: a kernel over references, run once for each point of a grid on blocks of its operands.

The kernel is a jaxpr of grid indices and references: to a block of each operand, to a block of each result, to scratch
memory. What it means is a loop over the grid that is written in ordinary operations (`over_grid`); backends may compile
the kernel itself.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Callable, Mapping, NamedTuple, Sequence, final

from ..base import dtypes, limits
from ..base.annotations import override
from ..base.avals import AbstractRef, array_aval, reshaped, shaped, tangent_aval
from ..base.errors import at_user_line
from ..core.jaxpr import ClosedJaxpr, Held, TypedScalar, eval_jaxpr
from ..core.primitive import AsDecomposed, Primitive, Zero, unsupported
from ..core.trace import get_aval
from ..core.wire import IS_OPENED
from ..primitives.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p
from ..primitives.elementwise import mul
from ..primitives.linear import broadcast_to_axis, full, moveaxis, reshape, zeros
from ..primitives.rules import scalar_like
from ..transforms.discharge import discharge
from ..transforms.jvp import jvp_jaxpr
from ..transforms.physical import lower_types
from ..transforms.stage import stage_closed
from .common import reorder
from .scan import scan

if TYPE_CHECKING:
    from ..base.avals import AbstractValue, ShapedArray
    from ..core.trace import Axis
    from ..core.types import Dims, Params, Value
    from ..transforms.linearize import PartialTrace

INDEX = shaped((), dtypes.int32)


class Dim(NamedTuple):
    """One axis of a block: `size` elements, at a multiple of `step`; `squeezed` axes have size 1, and the kernel does
    not see them.
    """

    size: int
    step: int
    squeezed: bool = False


@final
class Block:
    """How an array is cut into blocks: `index` maps the grid's indices to the block's, in steps of each axis."""

    def __init__(self, dims: tuple[Dim, ...], index: ClosedJaxpr):
        self.dims, self.index = dims, index

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple([d.size for d in self.dims])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of what the kernel sees."""
        return tuple([d.size for d in self.dims if not d.squeezed])

    @override
    def __repr__(self) -> str:
        return f"Block({', '.join('squeezed' if d.squeezed else str(d.size) for d in self.dims)})"


@final
class Kernel(Held):
    """A kernel: a jaxpr of `axes` indices of the grid (its last ones: earlier ones are mapped axes), and of references
    to blocks of the operands, of the results, and to scratch memory.

    parallel: by axis, whether the user says that points along it may run in any order.
    """

    def __init__(self, name: str, closed: ClosedJaxpr, axes: int, parallel: tuple[bool, ...]):
        self.name, self.closed, self.axes, self.parallel = name, closed, axes, parallel

    @override
    def holding(self, closed: ClosedJaxpr) -> Kernel:
        return Kernel(self.name, closed, self.axes, self.parallel)

    @functools.cached_property
    def refs(self) -> list[ShapedArray]:
        """What the references are to."""
        return [array_aval(a.inner) for a in self.closed.in_avals[self.axes :] if isinstance(a, AbstractRef)]

    @functools.cached_property
    def on_values(self) -> ClosedJaxpr:
        """(indices, values of the references) -> their values after the kernel has run. Random keys are words in it."""
        return lower_types(discharge(self.closed))

    @functools.cached_property
    def written(self) -> list[bool]:
        """Which references the kernel may write to."""
        jaxpr = self.on_values.jaxpr
        return [a is not b for a, b in zip(jaxpr.invars[self.axes :], jaxpr.outvars)]

    @override
    def __repr__(self) -> str:
        return str(self.closed.jaxpr)


pallas_call_p = Primitive("pallas_call", multiple_results=True, basic=False, wire=IS_OPENED)


def uninitialised(aval: AbstractValue) -> Value:
    """What memory holds before it is written: NaN, or the least value of the type."""
    aval = array_aval(aval)
    kind = aval.dtype
    return full(aval.shape, float("nan") if dtypes.is_inexact(kind) else limits.lowest(kind), kind)


# blocks --------------------------------------------------------------------------------------------------------------


def starts_of(block: Block, ids: Sequence[Value]) -> list[Value]:
    """Where the block of a point of the grid begins, on each axis."""
    found = eval_jaxpr(block.index.jaxpr, block.index.consts, *ids)
    return [i if d.step == 1 else mul(i, scalar_like(i, d.step)) for i, d in zip(found, block.dims)]


def _is_all(block: Block, x: Value) -> bool:
    return block.sizes == tuple(get_aval(x).shape)


def read_block(x: Value, block: Block, ids: Sequence[Value]) -> Value:
    """The block of an array at a point of the grid."""
    if not _is_all(block, x):
        x = dynamic_slice_p.bind(x, *starts_of(block, ids), slice_sizes=block.sizes)
    return reshape(x, block.shape)


def write_block(x: Value, block: Block, ids: Sequence[Value], value: Value) -> Value:
    """The array with another block at a point of the grid."""
    value = reshape(value, block.sizes)
    return value if _is_all(block, x) else dynamic_update_slice_p.bind(x, value, *starts_of(block, ids))


class Call(NamedTuple):
    """The parameters of a call, with what follows from them."""

    kernel: Kernel
    grid: tuple[int, ...]
    blocks: tuple[Block, ...]  # of the operands, then of the results
    out_avals: tuple[ShapedArray, ...]
    aliases: tuple[tuple[int, int], ...]

    @property
    def inputs(self) -> int:
        return len(self.blocks) - len(self.out_avals)

    @property
    def scratch(self) -> list[ShapedArray]:
        return self.kernel.refs[len(self.blocks) :]

    @property
    def kept(self) -> list[int]:
        """The references that a point of the grid leaves to the next: results, scratch memory, and operands that the
        kernel writes to.
        """
        return [k for k, w in enumerate(self.kernel.written) if w or k >= self.inputs]

    def initial(self, operands: Sequence[Value]) -> list[Value]:
        """What they hold at first."""
        given = {j: operands[i] for i, j in self.aliases}
        new = [given[j] if j in given else uninitialised(a) for j, a in enumerate(self.out_avals)]
        everything = [*operands, *new, *map(uninitialised, self.scratch)]
        return [everything[k] for k in self.kept]

    def with_new_scratch(self, state: Sequence[Value]) -> list[Value]:
        """The state as the points of another member of the mapped axes find it: members are calls of their own."""
        new = dict(zip(range(len(self.blocks), len(self.kernel.refs)), map(uninitialised, self.scratch)))
        return [new.get(k, v) for k, v in zip(self.kept, state)]

    def point(self, ids: Sequence[Value], operands: Sequence[Value], state: Sequence[Value]) -> list[Value]:
        """One point of the grid: the state after it. The state is of all that is `kept`."""
        kept = self.kept
        held: dict[int, Value] = dict(enumerate(operands)) | dict(zip(kept, state))
        values = [
            read_block(held[k], self.blocks[k], ids) if k < len(self.blocks) else held[k]
            for k in range(len(self.kernel.refs))
        ]
        closed = self.kernel.on_values
        after = eval_jaxpr(closed.jaxpr, closed.consts, *ids[len(ids) - self.kernel.axes :], *values)
        return [
            held[k]
            if not self.kernel.written[k]
            else write_block(held[k], self.blocks[k], ids, after[k])
            if k < len(self.blocks)
            else after[k]
            for k in kept
        ]

    def results(self, state: Sequence[Value]) -> list[Value]:
        held = dict(zip(self.kept, state))
        return [held[self.inputs + j] for j in range(len(self.out_avals))]


def call_of(params: Params) -> Call:
    return Call(*[params[name] for name in Call._fields])


def over_grid(
    grid: Sequence[int],
    axes: Sequence[int],
    ids: Mapping[int, Value],
    state: Sequence[Value],
    point: Callable[[Sequence[Value], Sequence[Value]], Sequence[Value]],
) -> list[Value]:
    """Loops over some axes of a grid, the last one innermost. point(indices, state): the new state. ids: the indices
    of the other axes.
    """
    if not axes:
        return list(point([ids[k] for k in range(len(grid))], state))
    (axis, *inner) = axes
    if grid[axis] == 1:
        return over_grid(grid, inner, {**ids, axis: TypedScalar(0, INDEX)}, state, point)

    def step(carry: tuple[Any, ...], _: None) -> tuple[tuple[Any, ...], None]:
        i, *now = carry
        after = over_grid(grid, inner, {**ids, axis: i}, now, point)
        return (i + 1, *after), None

    (_, *out), _ = scan(step, (zeros(INDEX), *state), None, length=grid[axis])
    return out


def _loop(*operands: Value, interpret: bool, **params: Any) -> list[Value]:
    """What a call means."""
    call = call_of(params)
    state = call.initial(operands)
    mapped, axes = range(len(call.grid) - call.kernel.axes), range(len(call.grid) - call.kernel.axes, len(call.grid))

    def member(ids: Sequence[Value], state: Sequence[Value]) -> list[Value]:
        state = call.with_new_scratch(state) if mapped else state
        return over_grid(call.grid, axes, dict(enumerate(ids)), state, lambda ids, now: call.point(ids, operands, now))

    if 0 not in call.grid:
        state = over_grid(call.grid[: len(mapped)], mapped, {}, state, member)
    return call.results(state)


# rules ---------------------------------------------------------------------------------------------------------------


def _jvp(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[list[Value], list[Value]]:
    call = call_of(params)
    if call.aliases:
        raise NotImplementedError(
            at_user_line(
                f"pallas_call: the kernel {call.kernel.name} has no derivative, because an operand shares the memory of"
                " a result. Leave input_output_aliases out where it is differentiated."
            )
        )
    kernel, n, m = call.kernel, call.inputs, len(call.out_avals)
    smooth = [dtypes.is_inexact(a.dtype) for a in kernel.refs]
    given = [type(t) is not Zero for t in tangents]
    nonzero = [*given, *smooth[n:]]
    both, _ = jvp_jaxpr(kernel.closed, [*[False] * kernel.axes, *nonzero])
    size = len(nonzero)
    places = iter(range(size, size + sum(nonzero)))
    tangent_of = {k: next(places) for k, nz in enumerate(nonzero) if nz}
    groups = (range(n), range(n, n + m), range(n + m, size))
    order = [k for group in groups for k in (*group, *[tangent_of[g] for g in group if g in tangent_of])]
    closed = reorder(both, [*range(kernel.axes), *[kernel.axes + k for k in order]])
    new_kernel = kernel.holding(closed)
    with_tangents = lambda part: [b for k, b in zip(part, [call.blocks[k] for k in part]) if k in tangent_of]
    blocks = (*call.blocks[:n], *with_tangents(range(n)), *call.blocks[n:], *with_tangents(range(n, n + m)))
    out_ts = [tangent_aval(a) for a, s in zip(call.out_avals, smooth[n:]) if s]
    outs = pallas_call_p.bind(
        *primals,
        *[t for t in tangents if type(t) is not Zero],
        **dict(params, kernel=new_kernel, blocks=blocks, out_avals=(*call.out_avals, *map(array_aval, out_ts))),
    )
    rest = iter(outs[m:])
    return outs[:m], [next(rest) if s else Zero(tangent_aval(get_aval(o))) for o, s in zip(outs[:m], smooth[n : n + m])]


def _partial_eval(trace: PartialTrace, args: tuple[Value, ...], params: Params) -> Any:
    if not any(trace.is_unknown(x) for x in args):
        return trace.pass_on(pallas_call_p, args, params)
    raise ValueError(
        at_user_line(
            f"pallas_call: the kernel {params['kernel'].name} has no derivative in reverse mode: what a kernel writes"
            " over can't be recomputed backwards. Give the function one with weft.custom_vjp, whose backward pass may"
            " call another kernel; forward mode works (weft.jvp, weft.jacfwd)."
        )
    )


def _batch(axis: Axis, args: Sequence[Value], dims: Dims, **params: Any) -> tuple[list[Value], list[int]]:
    """The mapped axis becomes the first axis of the grid; the kernel does not see it."""
    call = call_of(params)
    args, dims = list(args), list(dims)
    for i, _ in call.aliases:
        if dims[i] is None:
            args[i], dims[i] = broadcast_to_axis(args[i], axis.size), 0
    for i, _ in call.aliases:  # they are stored alike
        args[i], dims[i] = moveaxis(args[i], dims[i], 0), 0
    grid = (axis.size, *call.grid)
    where = [*dims, *[0] * len(call.out_avals)]
    blocks = tuple([_mapped(b, d, len(grid)) for b, d in zip(call.blocks, where)])
    outs = [reshaped(a, (axis.size, *a.shape)) for a in call.out_avals]
    results = pallas_call_p.bind(
        *args, **dict(params, grid=grid, blocks=blocks, out_avals=tuple(map(array_aval, outs)))
    )
    return results, [0] * len(outs)


def _mapped(block: Block, dim: int | None, axes: int) -> Block:
    """The block for a grid with one more axis in front, and an array with one more axis, if `dim` says where."""

    def index(first: Value, *ids: Value) -> list[Value]:
        found = eval_jaxpr(block.index.jaxpr, block.index.consts, *ids)
        return found if dim is None else [*found[:dim], first, *found[dim:]]

    dims = block.dims if dim is None else (*block.dims[:dim], Dim(1, 1, True), *block.dims[dim:])
    return Block(dims, stage_closed(index, [INDEX] * axes, "an index map"))


pallas_call_p.abstract = lambda *avals, out_avals, **params: list(out_avals)
pallas_call_p.decompose = _loop
pallas_call_p.reference = AsDecomposed(pallas_call_p)
pallas_call_p.jvp, pallas_call_p.batch, pallas_call_p.partial_eval = _jvp, _batch, _partial_eval
pallas_call_p.transpose = unsupported(
    "pallas_call can't be transposed: a kernel writes over its memory, and no kernel of it backwards is known. Give the"
    " function a derivative with weft.custom_vjp.",
    ValueError,
)
pallas_call_p.shown = lambda params: [
    ("blocks", params["blocks"]),
    ("grid", params["grid"]),
    *([("input_output_aliases", params["aliases"])] if params["aliases"] else []),
    ("jaxpr", params["kernel"].closed.jaxpr),
    ("name", params["kernel"].name),
]


def call_kernel(operands: Sequence[Value], call: Call, interpret: bool) -> list[Value]:
    """Runs a kernel. One that prints or has other effects is its loop over the grid."""
    params = dict(call._asdict(), interpret=interpret)
    effects = call.kernel.on_values.jaxpr.effects
    return _loop(*operands, **params) if effects else pallas_call_p.bind(*operands, **params)
