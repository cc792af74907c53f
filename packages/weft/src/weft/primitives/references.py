"""Mutable references: primitives that make, read and write a memory cell. They are removed before a program is compiled
(`transforms/discharge.py`): the program passes the values of references along.

A part of a reference is a parameter `index` with one entry for each axis: ("at", i) a number, ("slice", start, size,
stride), ("array",). A number or start that is None, and each array, is an operand. In the result, axes of numbers and
arrays come first, as if they were one index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..base import dtypes
from ..base.avals import AbstractRef, array_aval, shaped, tangent_aval
from ..core.effects import touches
from ..core.jaxpr import TypedScalar
from ..core.primitive import Primitive, Zero, unsupported
from ..core.wire import TAKES_REFERENCES
from ..core.trace import get_aval
from ..base.errors import at_user_line, type_error
from .collective import pvary_p
from .elementwise import add, lt, mul, select
from .gather import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers, gather
from .dynamic_slice import dynamic_slice_p, dynamic_update_slice_p
from .scatter import scatter_p
from .linear import add_any, broadcast_in_dim, broadcast_to_axis, convert, full, moveaxis, reshape, squeeze, zeros
from .rules import scalar_like, shape_of
from .shape import iota, slice_

if TYPE_CHECKING:
    from ..core.primitive import DischargeRule
    from ..base.avals import AbstractValue, ShapedArray
    from ..core.jaxpr import JaxprEqn
    from ..core.trace import Axis
    from ..core.types import Dims, Params, Size, Value

_EFFECTS = frozenset([touches])

new_ref_p = Primitive("new_ref", wire=TAKES_REFERENCES)
empty_ref_p = Primitive("empty_ref", wire=TAKES_REFERENCES)
get_p = Primitive("get", wire=TAKES_REFERENCES)
swap_p = Primitive("swap", wire=TAKES_REFERENCES)
addupdate_p = Primitive("addupdate", multiple_results=True, wire=TAKES_REFERENCES)
freeze_p = Primitive("freeze", wire=TAKES_REFERENCES)
free_ref_p = Primitive("free_ref", multiple_results=True, wire=TAKES_REFERENCES)
PRIMITIVES = (new_ref_p, empty_ref_p, get_p, swap_p, addupdate_p, freeze_p, free_ref_p)


def whole(shape: Sequence[int]) -> tuple[Any, ...]:
    """The index of everything."""
    return tuple(("slice", 0, n, 1) for n in shape)


def result_shape(index: tuple[Any, ...], operands: Sequence[Any]) -> tuple[Any, ...]:
    """The shape of the part that an index selects."""
    rest, lead = iter(operands), ()
    for entry in index:
        if entry[0] == "array" or entry[1] is None:
            shape = next(rest).shape
            lead = shape if len(shape) > len(lead) else lead
    return (*lead, *[entry[2] for entry in index if entry[0] == "slice"])


# values --------------------------------------------------------------------------------------------------------------


def _starts(index: Value, shape: Sequence[Size], operands: Value) -> list[Any]:
    """Where the window begins on each axis; numbers below 0 count from the end."""
    rest, starts = iter(operands), []
    for entry, n in zip(index, shape):
        start = entry[1]
        if start is None:
            start = convert(next(rest), dtypes.int32)
            start = select(lt(start, scalar_like(start, 0)), add(start, scalar_like(start, n)), start)
        starts.append(start)
    return starts


def _is_window(index: Value) -> bool:
    return all(entry[0] != "array" for entry in index)


def read(x: Value, index: tuple[Any, ...], operands: Sequence[Any] = ()) -> Value:
    """The elements of an array at an index."""
    shape = shape_of(x)
    if index == whole(shape):
        return x
    if not _is_window(index):
        flat, positions = _flat_positions(x, index, operands)
        numbers = GatherDimensionNumbers((), (0,), (0,))
        picked = gather(flat, reshape(positions, (*shape_of(positions), 1)), numbers, (1,), mode=GatherScatterMode.CLIP)
        return picked
    spans = [1 if e[0] == "at" else (e[2] - 1) * e[3] + 1 if e[2] else 0 for e in index]
    strides = [1 if e[0] == "at" else e[3] for e in index]
    starts = _starts(index, shape, operands)
    if not operands:
        out = slice_(
            x,
            tuple(starts),
            tuple(s + n for s, n in zip(starts, spans)),
            tuple(strides) if any(s != 1 for s in strides) else None,
        )
    else:
        out = dynamic_slice_p.bind(x, *_typed(starts), slice_sizes=tuple(spans))
        if any(s != 1 for s in strides):
            out = slice_(out, (0,) * len(spans), tuple(spans), tuple(strides))
    return squeeze(out, tuple(d for d, e in enumerate(index) if e[0] == "at"))


def write(x: Value, index: tuple[Any, ...], operands: Sequence[Any], value: Value) -> Value:
    """The array with `value` at an index."""
    shape = shape_of(x)
    if index == whole(shape):
        aval = get_aval(x)
        return value if get_aval(value).weak_type == aval.weak_type else convert(value, aval.dtype, aval.weak_type)
    if _is_window(index) and all(e[0] == "at" or e[3] == 1 for e in index):
        sizes = tuple(1 if e[0] == "at" else e[2] for e in index)
        return dynamic_update_slice_p.bind(x, reshape(value, sizes), *_typed(_starts(index, shape, operands)))
    flat, positions = _flat_positions(x, index, operands)
    numbers = ScatterDimensionNumbers((), (0,), (0,))
    out = scatter_p.bind(
        flat,
        reshape(positions, (*shape_of(positions), 1)),
        value,
        dimension_numbers=numbers,
        indices_are_sorted=False,
        unique_indices=False,
        mode=GatherScatterMode.FILL_OR_DROP,
        update_jaxpr=None,
        update_consts=(),
    )
    return reshape(out, shape)


def _typed(starts: Sequence[Value]) -> list[Any]:
    like = next((s for s in starts if not isinstance(s, int)), None)
    if like is None:
        return [scalar_like(_INT32, s) for s in starts]
    return [scalar_like(like, s) if isinstance(s, int) else s for s in starts]


_INT32 = TypedScalar(0, shaped((), dtypes.int32))


def _flat_positions(x: Value, index: Value, operands: Value) -> tuple[Value, Value]:
    """`x` as a vector, and the positions in it of the selected elements."""
    shape = shape_of(x)
    total = result_shape(index, [get_aval(o) for o in operands])
    lead = len(total) - sum(e[0] == "slice" for e in index)
    rest, position, axis, stride = iter(operands), None, lead, 1
    strides: list[int] = []
    for n in reversed(shape):
        strides.insert(0, stride)
        stride *= n
    for entry, n, step in zip(index, shape, strides):
        if entry[0] == "slice":
            at = iota(dtypes.int32, (entry[2],), 0)
            at = mul(at, scalar_like(at, entry[3])) if entry[3] != 1 else at
            start = scalar_like(at, entry[1]) if entry[1] is not None else convert(next(rest), dtypes.int32)
            dims: tuple[int, ...] = (axis,)
            at, axis = add(at, start), axis + 1
        else:
            at = (
                convert(next(rest), dtypes.int32)
                if entry[0] == "array" or entry[1] is None
                else scalar_like(_INT32, entry[1])
            )
            at = select(lt(at, scalar_like(at, 0)), add(at, scalar_like(at, n)), at)
            rank = len(shape_of(at))
            dims = tuple(range(lead - rank, lead))
        at = broadcast_in_dim(mul(at, scalar_like(at, step)), total, dims)
        position = at if position is None else add(position, at)
    return reshape(x, (stride,)), position


# rules ---------------------------------------------------------------------------------------------------------------


def _inner(name: str, ref: AbstractValue) -> ShapedArray:
    if not isinstance(ref, AbstractRef):
        raise type_error(
            f"{name} takes a mutable reference, got an array of type {ref.str_short()}. Make one with weft.new_ref(x)."
        )
    return ref.inner


def _new_ref_abstract(x: AbstractValue, *, kind: Any, memory_space: Any) -> AbstractRef:
    if isinstance(x, AbstractRef):
        raise type_error(
            f"new_ref takes an array, got a reference of type {x.str_short()}. Read it first: new_ref(ref[...])."
        )
    return AbstractRef(array_aval(x))


def _get_abstract(ref: AbstractValue, *operands: Any, index: Value) -> ShapedArray:
    inner = _inner("get", ref)
    return shaped(result_shape(index, operands), inner.dtype, inner.weak_type)


def check_value(name: str, ref: Value, value: Value, operands: Value, index: Value) -> None:
    """Raises an error that says why a value can't be written to a place."""
    inner, want = _inner(name, ref), result_shape(index, operands)
    if value.vma - inner.vma:
        raise ValueError(
            at_user_line(
                f"{name}: a value that differs between devices (along"
                f" {', '.join(map(repr, sorted(value.vma - inner.vma, key=str)))}) is written to {ref.str_short()},"
                " which is the same on all. Cut the reference too, in shard_map's in_specs, or reduce the value first."
            )
        )
    if value.shape != want:
        raise ValueError(
            at_user_line(
                f"{name}: the value's shape {value.shape} is not the shape {want} of the place in {ref.str_short()}"
                " that it is written to."
            )
        )
    if value.dtype != inner.dtype:
        raise ValueError(
            at_user_line(
                f"{name}: a value of dtype {dtypes.name(value.dtype)} can't be written to {ref.str_short()}. Convert"
                " it: value.astype(ref.dtype)."
            )
        )


def _swap_abstract(ref: AbstractValue, value: ShapedArray, *operands: Any, index: Value) -> ShapedArray:
    check_value("swap", ref, value, operands, index)
    return shaped(value.shape, value.dtype, _inner("swap", ref).weak_type)


def _addupdate_abstract(ref: AbstractValue, value: ShapedArray, *operands: Any, index: Value) -> list[ShapedArray]:
    check_value("addupdate", ref, value, operands, index)
    return []


def _zeros(aval: AbstractValue) -> Value:
    vma = array_aval(aval).vma
    return pvary_p.bind(zeros(aval), axes=tuple(sorted(vma, key=str))) if vma else zeros(aval)


def _new_ref_jvp(
    primals: Sequence[Value], tangents: Sequence[Value], *, kind: Any, memory_space: Any
) -> tuple[Value, Value]:
    # "tangent" marks the references of the current derivative; those of earlier derivatives are ordinary here
    out = new_ref_p.bind(*primals, kind=None if kind == "tangent" else kind, memory_space=memory_space)
    (t,) = tangents
    if tangent_aval(get_aval(primals[0])).dtype == dtypes.float0:
        return out, Zero(tangent_aval(get_aval(out)))
    return out, new_ref_p.bind(_zeros(t.aval) if type(t) is Zero else t, kind="tangent", memory_space=memory_space)


def _get_jvp(primals: Sequence[Value], tangents: Sequence[Value], *, index: Value) -> tuple[Value, Value]:
    out = get_p.bind(*primals, index=index)
    t = tangents[0]
    return out, Zero(tangent_aval(get_aval(out))) if type(t) is Zero else get_p.bind(t, *primals[1:], index=index)


def _tracked(name: str, tangents: Sequence[Value], ref: Value) -> bool:
    """Whether the tangents of the reference's value are stored; an error if they would be lost."""
    if type(tangents[0]) is not Zero:
        return True
    if type(tangents[1]) is not Zero:
        raise ValueError(
            at_user_line(
                f"{name}: a value that depends on the differentiated variables is written"
                f" to a reference of type {get_aval(ref).str_short()} that does not. Make the reference an argument of"
                " the differentiated function, or make it inside."
            )
        )
    return False


def _swap_jvp(primals: Sequence[Value], tangents: Sequence[Value], *, index: Value) -> tuple[Value, Value]:
    out = swap_p.bind(*primals, index=index)
    if not _tracked("set or swap", tangents, primals[0]):
        return out, Zero(tangent_aval(get_aval(out)))
    t = zeros(tangents[1].aval) if type(tangents[1]) is Zero else tangents[1]
    return out, swap_p.bind(tangents[0], t, *primals[2:], index=index)


def _addupdate_jvp(primals: Sequence[Value], tangents: Sequence[Value], *, index: Value) -> tuple[Value, Value]:
    addupdate_p.bind(*primals, index=index)
    if _tracked("addupdate", tangents, primals[0]) and type(tangents[1]) is not Zero:
        addupdate_p.bind(tangents[0], tangents[1], *primals[2:], index=index)
    return [], []


def _freeze_jvp(primals: Sequence[Value], tangents: Sequence[Value]) -> tuple[Value, Value]:
    out = freeze_p.bind(*primals)
    return out, Zero(tangent_aval(get_aval(out))) if type(tangents[0]) is Zero else freeze_p.bind(tangents[0])


def _free_jvp(primals: Sequence[Value], tangents: Sequence[Value]) -> tuple[Value, Value]:
    free_ref_p.bind(*primals)
    if type(tangents[0]) is not Zero:
        free_ref_p.bind(tangents[0])
    return [], []


def _empty_ref_jvp(
    primals: Sequence[Value], tangents: Sequence[Value], *, ty: Any, memory_space: Any
) -> tuple[Value, Value]:
    out = empty_ref_p.bind(ty=ty, memory_space=memory_space)
    t = tangent_aval(ty)
    return out, (
        Zero(AbstractRef(array_aval(t)))
        if t.dtype == dtypes.float0
        else new_ref_p.bind(zeros(t), kind="tangent", memory_space=memory_space)
    )


def _new_ref_partial_eval(trace: Any, args: tuple[Value, ...], params: Params) -> Value:
    """A reference of tangents belongs to the linear program, even if it begins with zeros that are known."""
    if params["kind"] == "tangent" or trace.is_unknown(args[0]):
        return trace.staged.process(new_ref_p, args, params)
    return trace.pass_on(new_ref_p, args, params)


def _new_ref_batch(axis: Axis, args: Sequence[Value], dims: Dims, *, kind: Any, memory_space: Any) -> tuple[Value, Any]:
    # later writes may be batched, so the reference is batched
    x = broadcast_to_axis(args[0], axis.size) if dims[0] is None else moveaxis(args[0], dims[0], 0)
    return new_ref_p.bind(x, kind=kind, memory_space=memory_space), 0


def _empty_ref_batch(axis: Axis, args: Sequence[Value], dims: Dims, *, ty: Any, memory_space: Any) -> tuple[Value, Any]:
    return empty_ref_p.bind(ty=shaped((axis.size, *ty.shape), ty.dtype, ty.weak_type), memory_space=memory_space), 0


def _discharge(on_value: Callable[..., tuple[Sequence[Value], Value]]) -> DischargeRule:
    """The rule of a primitive that reads or writes: `on_value` (value, *operands, **params) -> (results, new value)."""

    def rule(eqn: JaxprEqn, values: Sequence[Value]) -> tuple[Sequence[Value], dict[Any, Value]]:
        outs, new = on_value(*values, **eqn.params)
        return outs, {eqn.invars[0]: new}

    return rule


new_ref_p.abstract, get_p.abstract, swap_p.abstract, addupdate_p.abstract = (
    _new_ref_abstract,
    _get_abstract,
    _swap_abstract,
    _addupdate_abstract,
)
empty_ref_p.abstract = lambda *, ty, memory_space: AbstractRef(ty)
freeze_p.abstract = lambda ref: _inner("freeze", ref)
free_ref_p.abstract = lambda ref: [] if _inner("free_ref", ref) else []
new_ref_p.jvp, get_p.jvp, swap_p.jvp, addupdate_p.jvp = _new_ref_jvp, _get_jvp, _swap_jvp, _addupdate_jvp
freeze_p.jvp, free_ref_p.jvp = _freeze_jvp, _free_jvp
empty_ref_p.jvp, new_ref_p.partial_eval = _empty_ref_jvp, _new_ref_partial_eval
empty_ref_p.partial_eval = lambda trace, args, params: trace.pass_on(empty_ref_p, args, params)
new_ref_p.batch, empty_ref_p.batch = _new_ref_batch, _empty_ref_batch
freeze_p.batch = lambda axis, args, dims: (freeze_p.bind(*args), dims[0])
free_ref_p.batch = lambda axis, args, dims: (free_ref_p.bind(*args), ())
new_ref_p.makes_reference = empty_ref_p.makes_reference = True
for _p in PRIMITIVES:
    _p.effects = lambda params: _EFFECTS
    _p.reference = unsupported("references are discharged before a program runs")
    _p.transpose = unsupported("references are discharged before a program is transposed")

new_ref_p.discharge = lambda eqn, values: ([values[0]], {})
empty_ref_p.discharge = lambda eqn, values: ([full(eqn.params["ty"].shape, 0, eqn.params["ty"].dtype)], {})
get_p.discharge = _discharge(lambda x, *operands, index: ([read(x, index, operands)], x))
swap_p.discharge = _discharge(
    lambda x, value, *operands, index: ([read(x, index, operands)], write(x, index, operands, value))
)
addupdate_p.discharge = _discharge(
    lambda x, value, *operands, index: ([], write(x, index, operands, add_any(read(x, index, operands), value)))
)
freeze_p.discharge = _discharge(lambda x: ([x], x))
free_ref_p.discharge = _discharge(lambda x: ([], x))


# how jaxprs show them ------------------------------------------------------------------------------------------------


def _place(eqn: JaxprEqn, name: Callable[[Any], str], first: int) -> str:
    """`a[0,i:i+2]`: the reference and the index, whose operands begin at argument `first`."""
    rest, shape, parts = iter(eqn.invars[first:]), eqn.invars[0].aval.shape, []
    for entry, n in zip(eqn.params["index"], shape):
        if entry[0] == "array":
            parts.append(name(next(rest)))
            continue
        start = name(next(rest)) if entry[1] is None else entry[1]
        if entry[0] == "at":
            parts.append(str(start))
            continue
        size, stride = entry[2:]
        end = f"{start}+{size * stride}" if entry[1] is None else start + (size - 1) * stride + 1 if size else start
        text = f"{'' if start == 0 else start}:{'' if end == n else end}"
        parts.append(text if stride == 1 else f"{text}:{stride}")
    everything = eqn.params["index"] == whole(shape)
    return f"{name(eqn.invars[0])}[{'...' if everything else ','.join(parts)}]"


def _show_swap(eqn: JaxprEqn, name: Callable[[Any], str], bind: Callable[[Any], str]) -> str:
    place, value = _place(eqn, name, 2), name(eqn.invars[1])
    return (
        f"{place} <- {value}" if name(eqn.outvars[0]) == "_" else f"{bind(eqn.outvars[0])}, {place} <- {place}, {value}"
    )


get_p.show = lambda eqn, name, bind: f"{bind(eqn.outvars[0])} <- {_place(eqn, name, 1)}"
swap_p.show = _show_swap
addupdate_p.show = lambda eqn, name, bind: f"{_place(eqn, name, 2)} += {name(eqn.invars[1])}"
