"""All points of the parallel axes of a grid at once: for WebGPU, where one invocation computes one element. The axes
become axes of the arrays, by the batching rules of what the kernel does; the other axes stay loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.base import dtypes
from weft.base.avals import ShapedArray
from weft.core.jaxpr import ClosedJaxpr, eval_jaxpr
from weft.core.trace import Axis
from weft.higher_order.pallas_call import INDEX, Block, Call, over_grid
from weft.primitives.linear import moveaxis, reshape
from weft.primitives.rules import scalar_like
from weft.primitives.shape import iota
from weft.transforms.batch import batch_flat, to_front
from weft.transforms.dce import dce_jaxpr
from weft.transforms.stage import stage_closed


class _Split:
    """An array cut along some axes of the grid: `axes`, in their order, each along an axis `dims` of the array."""

    def __init__(self, block: Block, shape: Sequence[int], grid: Sequence[int], among: Sequence[int]):
        self.block, self.shape = block, tuple(shape)
        self.cut: dict[int, tuple[int, int]] = {}  # axis of the array -> (axis of the grid, points along it)
        jaxpr = block.index.jaxpr
        for axis in among:
            at = [d for d, a in enumerate(jaxpr.outvars) if a is jaxpr.invars[axis]]
            others = jaxpr.replace(outvars=[a for d, a in enumerate(jaxpr.outvars) if d not in at])
            _, used = dce_jaxpr(others, [True] * len(others.outvars))
            if len(at) == 1 and not used[axis] and grid[axis] * block.dims[at[0]].size == shape[at[0]]:
                self.cut[at[0]] = (axis, grid[axis])
        self.axes = [axis for axis in among if any(axis == a for a, _ in self.cut.values())]

    def inside(self) -> Block:
        """The blocks of one part."""

        def index(*ids: Any) -> list[Any]:
            found = eval_jaxpr(self.block.index.jaxpr, self.block.index.consts, *ids)
            return [scalar_like(ids[0], 0) if d in self.cut else i for d, i in enumerate(found)]

        count = len(self.block.index.in_avals)
        return Block(self.block.dims, stage_closed(index, [INDEX] * count, "an index map")) if self.cut else self.block

    def apart(self, x: Any) -> Any:
        """The array with its cut axes first, in the order of `axes`."""
        sizes: list[int] = []
        places: dict[int, int] = {}
        for d, n in enumerate(self.shape):
            if d in self.cut:
                axis, points = self.cut[d]
                places[axis] = len(sizes)
                sizes += [points, n // points]
            else:
                sizes.append(n)
        x = reshape(x, sizes)
        for axis in reversed(self.axes):
            at = places[axis]
            x = moveaxis(x, at, 0)
            places = {a: p + (p < at) for a, p in places.items()}
        return x

    def together(self, x: Any) -> Any:
        """The array again."""
        order = list(self.axes)
        for d in sorted(self.cut):
            axis, _ = self.cut[d]
            at = order.index(axis)
            left = len(order) - 1
            # the axes before it in the array are back in their places
            x = moveaxis(x, at, left + d + sum(1 for e in self.cut if e < d))
            order.pop(at)
        return reshape(x, self.shape)


def program(call: Call, parallel: Sequence[int], avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """The call as a program of ordinary operations, which computes the points of these axes at once, or of those along
    which all results are cut; for operands of these types.
    """
    shapes = [a.shape for a in (*avals, *call.out_avals)]
    outs = range(call.inputs, len(call.blocks))
    axes = list(parallel)
    while True:
        splits = [_Split(b, s, call.grid, axes) for b, s in zip(call.blocks, shapes)]
        left = [a for a in axes if all(a in splits[k].axes for k in outs)]
        if left == axes:
            break
        axes = left
    inner = call._replace(blocks=tuple([s.inside() for s in splits]))
    rest = [k for k in range(len(call.grid)) if k not in axes]

    def run(*operands: Any) -> list[Any]:
        state = call.initial(operands)
        arrays = [splits[k].apart(x) for k, x in enumerate(operands)]
        results = [splits[call.inputs + j].apart(x) for j, x in enumerate(state[: len(outs)])]
        scratch = state[len(outs) :]

        def point(*values: Any) -> list[Any]:
            ids = dict(zip(axes, values[: len(axes)]))
            given = values[len(axes) : len(axes) + call.inputs]
            now = values[len(axes) + call.inputs :]
            return over_grid(call.grid, rest, ids, now, lambda i, s: inner.point(i, given, s))[: len(outs)]

        fun = point
        for axis in reversed(axes):
            fun = _mapped(fun, axis, call.grid[axis], axes, [*splits[: call.inputs], *[splits[k] for k in outs]])
        numbers = [iota(dtypes.int32, (call.grid[a],), 0) for a in axes]
        found = fun(*numbers, *arrays, *results, *scratch)
        return [splits[k].together(x) for k, x in zip(outs, found)]

    return stage_closed(run, avals, call.kernel.name)


def _mapped(fun: Any, axis: int, size: int, axes: Sequence[int], splits: Sequence[_Split]) -> Any:
    """The function of arrays that are cut along one more axis, their first one."""

    def mapped(*values: Any) -> list[Any]:
        n = len(axes)
        dims: list[int | None] = [0 if a == axis else None for a in axes]
        dims += [0 if axis in s.axes else None for s in splits]
        dims += [None] * (len(values) - n - len(splits))
        where = Axis(None, size)
        found, at = batch_flat(fun, where, values, dims)
        return [to_front(where, x, d) for x, d in zip(found, at)]

    return mapped
