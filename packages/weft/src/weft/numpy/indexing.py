"""Indexing: `x[…]` and `x.at[…]`. An index is parsed into a plan, and a plan becomes slices, a gather or a scatter.

Indices out of bounds never fail: reads are moved to the nearest element (or filled, mode="fill"), updates are dropped.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base import dtypes
from ..base.avals import SymbolicSize, as_size, check_range
from ..symbolic.dims import max_dim, min_dim
from ..core.trace import Tracer, aval_of, get_aval
from ..base.errors import NonConcreteBooleanIndexError, at_user_line
from ..base.host import is_host_array
from ..primitives import elementwise as el
from ..primitives import dynamic_slice, gather
from ..primitives import linear
from ..primitives.gather import GatherDimensionNumbers, GatherScatterMode
from ..primitives.positions import narrowed, wrap_index
from ..primitives.rules import dtype_of, scalar_like, scalar_of, shape_of
from ..primitives.shape import concatenate, iota, rev, slice_
from ..typing import Mode
from .creation import array, asarray
from .util import broadcast_shapes, flat_host, on_device, operand

if TYPE_CHECKING:
    from ..core.types import Size, Value
    from ..base.dtypes import ElementType


class Window(NamedTuple):
    """A slice with step 1: `size` elements from `start`, which may be traced."""

    start: int
    size: int


class Strided(NamedTuple):
    """A slice with another step."""

    start: int
    size: int
    step: int


class Picked(NamedTuple):
    """An integer index, or an array of them."""

    index: Any


def _is_array(x: Value) -> bool:
    return isinstance(x, Tracer) or type(x) in aval_of and not dtypes.is_python_scalar(x)


def _nonzero(mask: Value) -> list[Any]:
    """The positions of the true elements of a concrete mask: one list for each axis."""
    shape, values = shape_of(mask), flat_host(mask)
    found: list[Any] = [[] for _ in shape]
    for flat, value in enumerate(values):
        if value:
            for d in reversed(range(len(shape))):
                flat, i = divmod(flat, shape[d])
                found[d].append(i)
    return found


def _expand_mask(mask: Value, axis: int, shape: tuple[Any, ...]) -> list[Any]:
    mask_shape = shape_of(mask)
    if isinstance(mask, Tracer):
        raise NonConcreteBooleanIndexError(
            at_user_line(
                f"a boolean index must be concrete, got a traced mask {get_aval(mask)}: the number of elements it"
                " selects is not known while tracing. Use weft.numpy.where(mask, x, other), or x.at[mask].set(value)"
                " with a scalar value."
            )
        )
    for d, n in enumerate(mask_shape):
        if axis + d >= len(shape) or shape[axis + d] != n:
            raise IndexError(
                f"boolean index did not match shape of indexed array in index {axis}: got {mask_shape}, expected "
                f"{list(shape[axis : axis + len(mask_shape)])}."
            )
    return [Picked(array(rows, dtypes.int32)) for rows in _nonzero(mask)]


def _entries(idx: Any, shape: tuple[Any, ...]) -> list[Any]:
    """The index as one entry for each axis of the array (and None for each new axis), in order."""
    if not isinstance(idx, tuple):
        if isinstance(idx, list):
            raise TypeError(
                at_user_line(
                    "a list can't be an index: use a tuple (x[1, 2]) for one index of each axis, or an array"
                    " (x[jnp.array([1, 2])]) to pick several."
                )
            )
        idx = (idx,)
    idx = [
        asarray(i) if isinstance(i, (list, tuple)) else i.__jax_array__() if hasattr(i, "__jax_array__") else i
        for i in idx
    ]
    used = sum(_consumes(i) for i in idx)
    if sum(i is Ellipsis for i in idx) > 1:
        raise IndexError("an index can only have a single ellipsis ('...').")
    if used > len(shape):
        raise IndexError(
            at_user_line(
                f"Too many indices: array is {len(shape)}-dimensional, but {used} were indexed. Leave indices out, or"
                " add an axis with x[:, None]."
            )
        )
    fill = [slice(None)] * (len(shape) - used)
    at = next((k for k, i in enumerate(idx) if i is Ellipsis), None)
    idx = [*idx, *fill] if at is None else [*idx[:at], *fill, *idx[at + 1 :]]
    out: list[Any] = []
    axis = 0
    for position, i in enumerate(idx):
        if i is None:
            out.append(None)
            continue
        if isinstance(i, slice):
            out.append(_slice(i, shape[axis], position))
            axis += 1
            continue
        i = _integer(i, position)
        if dtypes.is_bool(get_aval(i).dtype):
            out += _expand_mask(i, axis, shape)
            axis += len(shape_of(i))
            continue
        out.append(Picked(i))
        axis += 1
    return out


def bool_index(i: object) -> bool:
    """A scalar boolean array as a Python bool; a traced one can't be an index."""
    if isinstance(i, Tracer):
        raise NonConcreteBooleanIndexError(
            "a traced boolean scalar can't be an index: the result's size would not be known. Use weft.numpy.where."
        )
    return bool(flat_host(i)[0])


def _consumes(i: Any) -> int:
    if i is None or i is Ellipsis or isinstance(i, bool):
        return 0
    if _is_array(i) and dtypes.is_bool(get_aval(i).dtype):
        return len(shape_of(i))
    return 1


def _integer(i: Any, position: int) -> Any:
    if isinstance(i, str):
        raise TypeError(f"arrays can't be indexed by a string; got idx={i!r}.")
    if not _is_array(i):
        try:
            i = operator.index(i)
            check_range("indexing", i)
            return i
        except TypeError:
            if isinstance(i, float):
                raise TypeError(
                    at_user_line(
                        f"Indexer must have integer or boolean type, got a float at position {position}: {i!r}."
                    )
                ) from None
            kind = TypeError if isinstance(i, (complex, bytes, range)) else IndexError
            raise kind(
                at_user_line(
                    f"arrays can't be indexed by a value of type {type(i).__name__} (position {position}): use"
                    " integers, slices, arrays of integers or booleans, None or an ellipsis."
                )
            ) from None
    dt = get_aval(i).dtype
    if not dtypes.is_int(dt) and not dtypes.is_bool(dt):
        raise TypeError(
            f"Indexer must have integer or boolean type, got indexer with type {dtypes.name(dt)} at position"
            f" {position}."
        )
    if is_host_array(i) and not shape_of(i) and not dtypes.is_bool(dt):
        return int(flat_host(i)[0])
    return i


def _slice(i: slice, n: Size, position: int) -> Window | Strided:
    bounds = []
    for bound in (i.start, i.stop, i.step):
        if isinstance(bound, Tracer):
            raise IndexError(
                at_user_line(
                    f"Slice entries must be static integers. Got slice({i.start}, {i.stop}, {i.step}) at position"
                    f" {position}. Use weft.lax.dynamic_slice for a start that is traced."
                )
            )
        try:
            bounds.append(bound if bound is None else as_size(bound))
        except TypeError:
            raise (ValueError if getattr(bound, "shape", ()) not in ((), (1,)) else TypeError)(
                f"slice indices must be integers or None, got {bound!r} at position {position}."
            ) from None
    if any([isinstance(v, SymbolicSize) for v in (*bounds, n)]):
        return _symbolic_slice(*(*bounds, n))
    start, stop, step = slice(*bounds).indices(n)
    size = len(range(start, stop, step))
    return Window(start if size else 0, size) if step == 1 else Strided(start, size, step)


def _symbolic_slice(start: Any, stop: Any, step: Any, n: Size) -> Window | Strided:
    """The same for a bound or an axis of symbolic size. Positions are clamped as for numbers."""
    step = 1 if step is None else step
    if isinstance(step, SymbolicSize) or step == 0:
        raise ValueError(f"the step of a slice must be an integer other than zero, got {step}.")
    least, most = (0, n) if step > 0 else (-1, n - 1)
    place = lambda v, default: default if v is None else min_dim(most, max_dim(v + n if v < 0 else v, least))
    start, stop = place(start, least if step > 0 else most), place(stop, most if step > 0 else least)
    size = max_dim((stop - start + step - 1) // step if step > 0 else (start - stop - step - 1) // -step, 0)
    return Window(start, size) if step == 1 else Strided(start, size, step)


class IndexPlan(NamedTuple):
    """What an index does: see `_plan`."""

    indices: Any  # integers (*batch, len(axes)), or None where nothing is gathered
    axes: tuple[Any, ...]  # the operand axis of each entry of the last axis of `indices`
    collapsed: tuple[Any, ...]  # operand axes of which one element is taken
    sizes: tuple[Any, ...]  # the slice taken along each operand axis
    offset: tuple[Any, ...]  # which result axes (without new ones) are windows
    shape: tuple[Any, ...]  # the result's shape, without new axes
    new_axes: tuple[Any, ...]  # positions of new axes in the result
    static: bool  # every index is a concrete number


def _plan(entries: list[Any], shape: tuple[Any, ...], wrap: bool = True) -> IndexPlan:
    """The gather (or scatter) that an index stands for.

    Result axes are, in order, windows, strided slices and the broadcast axes of picked arrays; the latter stand where
    the first picked index stood, or in front if picked indices were not next to each other.
    """
    picked = [k for k, e in enumerate(entries) if isinstance(e, Picked)]
    group = (
        broadcast_shapes([shape_of(entries[k].index) if not isinstance(entries[k].index, int) else () for k in picked])
        if picked
        else ()
    )
    together = not picked or picked[-1] - picked[0] + 1 == len(picked)
    slots: list[Any] = []  # ("w" | "s" | "p" | "n", axis, size)
    if picked and not together:
        slots += [("p", j, n) for j, n in enumerate(group)]
    axis = 0
    sizes, starts = list(shape), {}
    for k, e in enumerate(entries):
        if e is None:
            slots.append(("n", None, 1))
            continue
        if isinstance(e, Picked):
            if together and k == picked[0]:
                slots += [("p", j, n) for j, n in enumerate(group)]
            starts[axis], sizes[axis] = e.index, 1
        elif isinstance(e, Window):
            slots.append(("w", axis, e.size))
            if e.size != shape[axis]:
                starts[axis] = e.start
            sizes[axis] = e.size
        else:
            slots.append(("s", axis, e.size))
            starts[axis], sizes[axis] = e, 1
        axis += 1
    real = [s for s in slots if s[0] != "n"]
    batch = [s for s in real if s[0] != "w"]
    batch_shape = tuple(n for _, _, n in batch)
    dt = _index_dtype(starts.values(), shape)
    columns = []
    for d, start in starts.items():
        if isinstance(start, Strided):
            at = next(p for p, s in enumerate(batch) if s[0] == "s" and s[1] == d)
            steps = iota(dt, (start.size,), 0)
            steps = el.add(el.mul(steps, scalar_like(steps, start.step)), scalar_like(steps, start.start))
            columns.append(linear.broadcast_in_dim(steps, batch_shape, (at,)))
        elif isinstance(start, (int, SymbolicSize)):
            start = _from_the_front(start, shape[d]) if wrap else start
            columns.append(linear.full(batch_shape, start, dt) if batch_shape else scalar_of(start, dt))
        else:
            positions = [p for p, s in enumerate(batch) if s[0] == "p"]
            index = narrowed(wrap_index(start, shape[d]) if wrap else start, dt)
            mine = shape_of(index)
            wide = positions[len(positions) - len(mine) :]
            squeezed = tuple(n if batch_shape[p] == n else 1 for n, p in zip(mine, wide))
            columns.append(linear.broadcast_in_dim(linear.reshape(index, squeezed), batch_shape, wide))
    nb = len(batch_shape)
    columns = [linear.broadcast_in_dim(c, (*batch_shape, 1), tuple(range(nb))) for c in columns]
    collapsed = tuple(d for d, s in starts.items() if not any(kind == "w" and a == d for kind, a, _ in real))
    return IndexPlan(
        concatenate(columns, nb) if columns else None,
        tuple(starts),
        collapsed,
        tuple(sizes),
        tuple(p for p, s in enumerate(real) if s[0] == "w"),
        tuple(n for _, _, n in real),
        tuple(p for p, s in enumerate(slots) if s[0] == "n"),
        all(isinstance(s, (int, SymbolicSize, Strided)) for s in starts.values()),
    )


def _from_the_front(position: Size, size: Size) -> Size:
    return position + size if position < 0 else position


def _index_dtype(starts: Value, shape: tuple[Size, ...]) -> ElementType:
    wide = any(not isinstance(s, (int, SymbolicSize, Strided)) and dtypes.bits(get_aval(s).dtype) == 64 for s in starts)
    return (
        dtypes.int64
        if wide
        or any(not isinstance(n, SymbolicSize) and n > 2**31 - 1 for n in shape)
        and dtypes.canonicalize(int) == dtypes.int64
        else dtypes.int32
    )


def _with_new_axes(x: Value, plan: IndexPlan) -> Value:
    return linear.expand_dims(x, plan.new_axes) if plan.new_axes else x


def _static_slices(x: Value, entries: list[Any]) -> Value:
    """The result of an index made of numbers and slices alone: one slice, a squeeze, a reversal."""
    shape = shape_of(x)
    lo, hi, step, drop, reverse, axis = [], [], [], [], [], 0
    for e in entries:
        if e is None:
            continue
        n = shape[axis]
        if isinstance(e, Picked):
            i = min_dim(max_dim(e.index + n if e.index < 0 else e.index, 0), n - 1)
            lo.append(i)
            hi.append(i + 1)
            step.append(1)
            drop.append(axis)
        elif isinstance(e, Window):
            lo.append(e.start)
            hi.append(e.start + e.size)
            step.append(1)
        elif e.step > 0 or not e.size:
            lo.append(e.start if e.size else 0)
            hi.append(min_dim(n, e.start + e.size * e.step) if e.size else 0)
            step.append(abs(e.step))
        else:
            last = e.start + (e.size - 1) * e.step
            lo.append(last)
            hi.append(e.start + 1)
            step.append(-e.step)
            reverse.append(axis)
        axis += 1
    x = slice_(x, lo, hi, step) if shape else x
    x = linear.squeeze(rev(x, reverse), drop) if drop else rev(x, reverse)
    result, kept = [], 0
    for e in entries:
        if e is None:
            result.append(kept)
        if not isinstance(e, Picked):
            kept += 1
    return linear.expand_dims(x, tuple(result)) if result else on_device(x)


def _dynamic(x: Value, entries: list[Any]) -> Value:
    """The result of an index made of scalars and windows of which some are traced: one dynamic slice."""
    shape = shape_of(x)
    real = [e for e in entries if e is not None]
    dt = _index_dtype([e.index for e in real if isinstance(e, Picked)], shape)
    starts, sizes, drop = [], [], []
    for d, e in enumerate(real):
        if isinstance(e, Picked):
            i = e.index
            starts.append(
                scalar_of(i + shape[d] if i < 0 else i, dt)
                if isinstance(i, int)
                else narrowed(wrap_index(i, shape[d]), dt)
            )
            sizes.append(1)
            drop.append(d)
        else:
            starts.append(scalar_of(e.start, dt))
            sizes.append(e.size)
    out = linear.squeeze(dynamic_slice.dynamic_slice_p.bind(x, *starts, slice_sizes=tuple(sizes)), drop)
    new, kept = [], 0
    for e in entries:
        if e is None:
            new.append(kept)
        kept += not isinstance(e, Picked)
    return linear.expand_dims(out, tuple(new)) if new else out


def _without_bools(x: Value, idx: Any) -> tuple[Any, ...]:
    """`x` with an axis of size 1 for every boolean scalar in the index, and the index with arrays of one position,
    or none, for them.
    """
    items = idx if isinstance(idx, tuple) else (idx,)
    items = tuple(
        bool_index(i) if _is_array(i) and get_aval(i).shape == () and dtypes.is_bool(get_aval(i).dtype) else i
        for i in items
    )
    if not any(isinstance(i, bool) for i in items):
        return x, items if isinstance(idx, tuple) else idx, ()
    rank, before = len(shape_of(x)), 0
    axes: list[Any] = []
    out: list[Any] = []
    for k, i in enumerate(items):
        if i is Ellipsis:
            before = rank - sum(_consumes(j) for j in items[k + 1 :])
        elif isinstance(i, bool):
            axes.append(before + len(axes))
            out.append(array([0] if i else [], dtypes.int32))
            continue
        else:
            before += _consumes(i)
        out.append(i)
    return linear.expand_dims(x, tuple(axes)), tuple(out), tuple(axes)


def take_index(
    x: Value,
    idx: Any,
    mode: Mode = None,
    fill_value: Value = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    wrap: bool = True,
) -> Value:
    """`x[idx]`."""
    x, idx, _ = _without_bools(operand("indexing", x), idx)
    shape = shape_of(x)
    entries = _entries(idx, shape)
    real = [e for e in entries if e is not None]
    if fill_value is not None:
        operand("x.at[…].get, fill_value", fill_value)
    mode_ = None if mode is None else GatherScatterMode.from_any(mode)
    inside = mode_ != GatherScatterMode.FILL_OR_DROP or all(
        not isinstance(e, Picked) or isinstance(e.index, int) and (-shape[d] if wrap else 0) <= e.index < shape[d]
        for d, e in enumerate(real)
    )
    if inside and all(not isinstance(e, Picked) or isinstance(e.index, int) and shape[d] for d, e in enumerate(real)):
        return _static_slices(x, entries)
    scalars = all(
        isinstance(e, Window)
        or isinstance(e, Picked)
        and (isinstance(e.index, int) or not shape_of(e.index))
        and shape[d]
        for d, e in enumerate(real)
    )
    if scalars and mode_ != GatherScatterMode.FILL_OR_DROP and wrap:
        return _dynamic(x, entries)
    plan = _plan(entries, shape, wrap)
    if mode_ is None:
        mode_ = GatherScatterMode.PROMISE_IN_BOUNDS
    if plan.indices is None:
        return _with_new_axes(on_device(x), plan)
    if any(shape[d] == 0 for d in plan.collapsed):
        if 0 not in plan.shape and mode_ != GatherScatterMode.FILL_OR_DROP:
            raise (IndexError if plan.static else TypeError)(
                f"cannot read an element from an array of shape {shape}: an axis that is indexed is empty."
            )
        value = gather.gather_fill(dtype_of(x), fill_value)
        return _with_new_axes(linear.full(plan.shape, value, dtype_of(x)), plan)
    numbers = GatherDimensionNumbers(plan.offset, plan.collapsed, plan.axes)
    if mode_ == GatherScatterMode.FILL_OR_DROP and fill_value is None:
        fill_value = gather.gather_fill(dtype_of(x), None)
    out = gather.gather(
        x,
        plan.indices,
        numbers,
        plan.sizes,
        mode=mode_,
        fill_value=fill_value,
        indices_are_sorted=indices_are_sorted or plan.static and not _has_strides(real),
        unique_indices=unique_indices or plan.static,
    )
    return _with_new_axes(out, plan)


def _has_strides(entries: Any) -> bool:
    return any(isinstance(e, Strided) for e in entries)
