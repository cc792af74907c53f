"""Mutable references: `ref = weft.new_ref(x)`, `ref[i]`, `ref[i] = y`, in programs and outside of them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Sequence

from ..typing import Array, ArrayLike
from ..base.annotations import override
from ..base import dtypes
from .. import numpy as jnp
from ..base.avals import AbstractRef as AbstractRef, ShapeDtypeStruct, array_aval, shaped
from ..higher_order import refs as _rules  # noqa: F401  rules of the primitives that carry jaxprs
from ..core.trace import Tracer, get_aval, is_array, is_array_like
from ..base.registration import register_pytree_node
from ..base.errors import NonConcreteBooleanIndexError, at_user_line
from ..base.host import has_numpy, np
from ..primitives import references
from ..runtime.dispatch import put
from ..runtime.refs import Parts, Ref as Ref, add_parts

__all__ = ["AbstractRef", "Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set", "swap"]


def new_ref(init_val: ArrayLike, *, memory_space: None = None, kind: str | None = None) -> Ref:
    """A new mutable reference that holds `init_val`, an array or a number.

    Programs under jit, grad, vmap and in loops may read and write it. Writes to references that a function closes over
    are seen outside.

    Args:
        init_val: array or number, of any dtype and shape.
        memory_space: None, the only value that is taken: references are in the device's own memory.
        kind: str: a note that jaxprs show.

    Returns:
        `Ref` to an array of the dtype and shape of `init_val`.

    Raises:
        TypeError: for a value that is neither an array nor a number.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> total = weft.new_ref(jnp.zeros(2))
        >>> @weft.jit
        ... def count(x):
        ...     total[...] += x
        >>> count(3.0); count(4.0); total[0]
        Array(7., dtype=float32)
    """
    _own_memory(memory_space)
    if kind is not None and not isinstance(kind, str):
        raise TypeError(f"new_ref: kind must be a string or None, got {kind!r}.")
    if not is_array_like(init_val) or isinstance(init_val, Ref):
        raise TypeError(
            at_user_line(
                f"new_ref takes an array or a number; got a {type(init_val).__name__}. For a pytree, make a reference"
                " for each leaf with weft.tree.map."
            )
        )
    return references.new_ref_p.bind(init_val, kind=kind, memory_space=None)


def empty_ref(ty: ShapeDtypeStruct | Array, memory_space: None = None) -> Ref:
    """A reference to new memory, which holds zeros until it is written.

    Args:
        ty: `ShapeDtypeStruct` or array: its dtype and shape.
        memory_space: None, the device's own memory.

    Returns:
        `Ref` to an array of that dtype and shape.

    Raises:
        TypeError: if `ty` has no shape or no dtype.
        ValueError: for a `memory_space`.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> ref = weft.empty_ref(weft.ShapeDtypeStruct((2,), jnp.float32))
        >>> ref[0] = 3.0
        >>> ref[...]
        Array([3., 0.], dtype=float32)
    """
    _own_memory(memory_space)
    if not hasattr(ty, "shape") or not hasattr(ty, "dtype"):
        raise TypeError(f"empty_ref takes a weft.ShapeDtypeStruct; got a {type(ty).__name__}.")
    return references.empty_ref_p.bind(ty=shaped(tuple(ty.shape), dtypes.canonicalize(ty.dtype)), memory_space=None)


def _own_memory(space) -> None:
    if space is not None:
        raise ValueError(f"references live in the device's own memory; got memory_space={space!r}. Leave it out.")


def freeze(ref: Ref) -> Array:
    """The array that a reference holds. The reference can't be used afterwards.

    Args:
        ref: `Ref`, to an array of any dtype and shape.

    Returns:
        array of the dtype and shape of what the reference holds.

    Example:
        >>> import weft
        >>> weft.freeze(weft.new_ref(3.0))
        Array(3., dtype=float32, weak_type=True)
    """
    return references.freeze_p.bind(_checked(ref, "freeze"))


def free_ref(ref: Ref) -> None:
    """Declares that a reference is not used any more.

    Args:
        ref: `Ref`, to an array of any dtype and shape.

    Returns:
        None.

    Example:
        >>> import weft
        >>> weft.free_ref(weft.new_ref(3.0))
    """
    references.free_ref_p.bind(_checked(ref, "free_ref"))


def get(ref: Ref | RefView, idx: Any = None):
    """Reads a reference, as `ref[idx]` does.

    Args:
        ref: `Ref` to an array of any dtype and shape, or a part of it (`ref.at[…]`).
        idx: index, or a tuple of them: ints, slices, `weft.ds(start, size)`, integer arrays; None reads everything.

    Returns:
        array of the reference's dtype, of the shape that indexing an array gives.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.ref.get(weft.new_ref(jnp.arange(3)), 1)
        Array(1, dtype=int32)
    """
    ref, index, operands, within = _target(ref, idx, "get")
    held = references.get_p.bind(ref, *operands, index=index)
    return held if within is None else references.read(held, *within)


def swap(ref: Ref | RefView, idx: Any, value: Any, _function_name: str = "ref_swap"):
    """Writes a value to a reference and returns what was there before.

    Args:
        ref: `Ref` to an array of any dtype and shape, or a part of it (`ref.at[…]`).
        idx: index, as for `get`.
        value: array of the reference's dtype and of the shape of `ref[idx]`.

    Returns:
        array: `ref[idx]` before the write, of that dtype and shape.

    Raises:
        ValueError: for a value of another dtype or shape.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.ref.swap(weft.new_ref(jnp.arange(3)), 1, 7)
        Array(1, dtype=int32)
    """
    ref, index, operands, within = _target(ref, idx, _function_name)
    value = jnp.asarray(value) if isinstance(value, (list, tuple)) else value
    if within is None:
        return references.swap_p.bind(ref, value, *operands, index=index)
    held = references.get_p.bind(ref, *operands, index=index)
    references.check_value(
        _function_name,
        AbstractRef(array_aval(get_aval(held))),
        get_aval(value),
        [get_aval(o) for o in within[1]],
        within[0],
    )
    references.swap_p.bind(ref, references.write(held, within[0], within[1], value), *operands, index=index)
    return references.read(held, *within)


def set(ref: Ref | RefView, idx: Any, value: Any) -> None:
    """Writes a value to a reference, as `ref[idx] = value` does.

    Args:
        ref: `Ref` to an array of any dtype and shape, or a part of it (`ref.at[…]`).
        idx: index, as for `get`.
        value: array of the reference's dtype and of the shape of `ref[idx]`.

    Returns:
        None.

    Raises:
        ValueError: for a value of another dtype or shape.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> ref = weft.new_ref(jnp.arange(3))
        >>> weft.ref.set(ref, 0, 5)
        >>> ref[...]
        Array([5, 1, 2], dtype=int32)
    """
    swap(ref, idx, value, _function_name="ref_set")


def addupdate(ref: Ref | RefView, idx: Any, x: Any) -> None:
    """Adds a value to a reference in one operation, as `ref[idx] += x` does.

    Args:
        ref: `Ref` to an array of any dtype and shape, or a part of it (`ref.at[…]`).
        idx: index, as for `get`.
        x: array of the reference's dtype and of the shape of `ref[idx]`.

    Returns:
        None.

    Raises:
        ValueError: for a value of another dtype or shape.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> ref = weft.new_ref(jnp.arange(3))
        >>> weft.ref.addupdate(ref, 0, 5)
        >>> ref[...]
        Array([5, 1, 2], dtype=int32)
    """
    base, index, operands, within = _target(ref, idx, "addupdate")
    if within is not None:
        return set(ref, idx, get(ref, idx) + x)
    references.addupdate_p.bind(base, x, *operands, index=index)


class OutsideOfReference(ValueError):
    """An index that names what a reference does not have. `what` says which, `ref` is the reference or a part of it."""

    def __init__(self, what: str, axis: int, size: int):
        self.what, self.axis = what, axis
        self.text = f"out of bounds: {what} on axis {axis} of size {size}."
        super().__init__(at_user_line(self.text))
        self.ref: Any = None


def _target(ref, idx, name: str) -> tuple:
    """Resolves an index of a reference, or of a part of one: the reference, the index in it, and its operands; and, if
    the part is selected by arrays, the index within the part and its operands.
    """
    try:
        index, operands = _place(ref.shape if isinstance(ref, RefView) else _checked(ref, name).shape, idx)
    except OutsideOfReference as e:
        e.ref = ref
        raise
    if not isinstance(ref, RefView):
        return (ref, index, operands, None)
    if any(entry[0] == "array" for entry in ref.index):
        return ref.ref, ref.index, ref.operands, None if index == references.whole(ref.shape) else (index, operands)
    return (ref.ref, *_composed(ref.index, ref.operands, ref.shape, index, operands), None)


def _composed(
    outer: tuple, outer_operands: Sequence, shape: tuple, inner: tuple, inner_operands: Sequence
) -> tuple[tuple, list]:
    """The index of the elements that `inner` selects from the part, of the given shape, that `outer` selects with
    numbers and slices.
    """
    starts, steps, sizes = iter(outer_operands), iter(inner), iter(shape)
    given, index, operands = iter(inner_operands), [], []
    for entry in outer:
        start = next(starts) if entry[1] is None else entry[1]
        if entry[0] == "slice":
            (kind, *rest), n = next(steps), next(sizes)
            at = next(given) if kind == "array" or rest[0] is None else rest[0]
            if not isinstance(at, int):
                at = jnp.where(at < 0, at + n, at)  # from the end of the part
            start = start + entry[3] * at
            entry = (
                (kind,)
                if kind == "array"
                else (kind, None)
                if kind == "at"
                else (kind, None, rest[1], entry[3] * rest[2])
            )
        if isinstance(start, int):
            entry = (entry[0], start, *entry[2:])
        else:
            operands.append(start)
        index.append(entry)
    return tuple(index), operands


class Places:
    """`ref.at`: index it to name a part of a reference.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> ref = weft.new_ref(jnp.zeros((2, 3)))
        >>> row = ref.at[1]
        >>> row[1:] = jnp.ones(2)
        >>> row[...], ref[0, 1]
        (Array([0., 1., 1.], dtype=float32), Array(0., dtype=float32))
    """

    __slots__ = ("ref",)

    def __init__(self, ref):
        self.ref = ref

    def __getitem__(self, idx) -> "RefView":
        ref, index, operands, within = _target(self.ref, idx, "at")
        if within is not None:
            raise TypeError(
                at_user_line(
                    "ref.at: this part was selected by an integer array, so a part"
                    " of it can't be written separately. Index it instead: part[...]."
                )
            )
        return RefView(ref, index, operands)


class RefView:
    """A part of a reference, which is read and written like a reference, and is an argument of functions like one. It
    is a pytree: of the reference, and of the indices that are arrays.
    """

    __slots__ = ("ref", "index", "operands")

    def __init__(self, ref, index: tuple, operands: Sequence):
        self.ref, self.index, self.operands = ref, index, operands

    @property
    def shape(self) -> tuple:
        return references.result_shape(self.index, [get_aval(o) for o in self.operands])

    dtype = property(lambda self: self.ref.dtype)
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))
    at = property(Places)

    def __getitem__(self, idx: Any) -> Any:
        return get(self, idx)

    def __setitem__(self, idx: Any, value: Any) -> None:
        set(self, idx, value)

    def addupdate(self, x: Any, idx: Any = ()) -> None:
        """Adds `x` to this part at `idx`, or to all of it without an index."""
        addupdate(self, idx, x)

    @override
    def __repr__(self):
        return f"RefView({dtypes.name(self.dtype)}[{','.join(map(str, self.shape))}] of {self.ref!r})"


def _flat_view(view: RefView) -> tuple:
    return (view.ref, *view.operands), (view.index, getattr(view.ref, "shape", None))


def _view_of(about: tuple, leaves: Sequence) -> RefView:
    index, shape = about
    ref, *operands = leaves
    have = getattr(ref, "shape", None)
    if have is not None and shape is not None and tuple(have) != tuple(shape):
        raise ValueError(
            at_user_line(
                f"a part of a mutable reference of shape {tuple(shape)} was mapped or scanned over, which leaves a"
                f" reference of shape {tuple(have)}. Map over the reference, and take the part inside."
            )
        )
    return RefView(ref, index, operands)


register_pytree_node(RefView, _flat_view, _view_of)


def _checked(ref, name: str):
    if not isinstance(ref, Ref):
        raise TypeError(
            at_user_line(
                f"{name} takes a mutable reference; got a {type(ref).__name__}. Make one with weft.new_ref(x)."
            )
        )
    return ref


# indices -------------------------------------------------------------------------------------------------------------


class Slice(NamedTuple):
    """A slice whose start may be traced: `ds(start, size)`."""

    start: Any
    size: int
    stride: int = 1


def ds(start: ArrayLike | slice, size: int | None = None, stride: int | None = None) -> slice | Slice:
    """A slice for indexing references, whose start may be traced. `ds(size)` starts at 0.

    Args:
        start: int or scalar array of integers. If it is the only argument, it is the size.
        size: int, how many elements.
        stride: int, the distance of elements; None for 1.

    Returns:
        slice, or `Slice` for a traced start.

    Raises:
        TypeError: for a traced size.
        ValueError: for a stride below 1.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.jit(lambda i: weft.new_ref(jnp.arange(9))[weft.ds(i, 2)])(3)
        Array([3, 4], dtype=int32)
    """
    if start is None:
        return slice(None)
    if size is None:
        start, size = 0, start
    if isinstance(size, Tracer):
        raise TypeError("ds: the size must be a number, it gives the shape of the result; got a traced value.")
    if stride is not None and stride < 1:
        raise ValueError(f"ds: the stride must be positive, got {stride}.")
    return Slice(start, int(size), 1 if stride is None else stride)


def _place(shape: tuple, idx) -> tuple[tuple, list]:
    """The index of a primitive: one entry for each axis, and the operands."""
    given = (...,) if idx is None else idx if isinstance(idx, tuple) and not isinstance(idx, Slice) else (idx,)
    given = _without_masks(given)
    if sum(e is Ellipsis for e in given) > 1:
        raise IndexError("an index of a reference can have one ellipsis ('...') only.")
    if any(e is Ellipsis for e in given):
        at = next(i for i, e in enumerate(given) if e is Ellipsis)
        given = (*given[:at], *[slice(None)] * (len(shape) - len(given) + 1), *given[at + 1 :])
    if len(given) > len(shape):
        raise ValueError(at_user_line(f"too many indices for a reference of shape {shape}: got {len(given)}."))
    given = (*given, *[slice(None)] * (len(shape) - len(given)))
    operands: list = []
    return tuple([_entry(e, n, d, operands) for d, (e, n) in enumerate(zip(given, shape))]), operands


def _entry(e, n: int, axis: int, operands: list) -> tuple:
    if isinstance(e, slice):
        if any(isinstance(v, Tracer) for v in (e.start, e.stop, e.step)):
            raise TypeError(
                at_user_line(
                    "a slice of a reference needs numbers; for a start that is traced use weft.ds(start, size)."
                )
            )
        if e.step is not None and e.step < 1:
            raise ValueError(at_user_line(f"slices of references need a positive step, got {e.step}."))
        start, stop, step = e.indices(n)
        return ("slice", start, max(0, -(-(stop - start) // step)), step)
    if isinstance(e, Slice):
        if isinstance(e.start, int) or has_numpy and isinstance(e.start, np.integer):
            if not 0 <= int(e.start) <= int(e.start) + (e.size - 1) * e.stride + 1 <= n:
                raise OutsideOfReference(str(e), axis, n)
            return ("slice", int(e.start), e.size, e.stride)
        operands.append(e.start)
        return ("slice", None, e.size, e.stride)
    if isinstance(e, list):
        e = jnp.asarray(e)
    if isinstance(e, bool) or not is_array_like(e) or not dtypes.is_int(get_aval(e).dtype):
        raise TypeError(
            at_user_line(
                f"references are indexed with integers, slices and integer arrays; got {e!r} of type"
                f" {type(e).__name__}."
            )
        )
    if isinstance(e, int) or has_numpy and isinstance(e, np.integer):
        if not -n <= e < n:
            raise OutsideOfReference(f"index {e}", axis, n)
        return ("at", int(e) % n)
    operands.append(e)
    return ("array",) if get_aval(e).shape else ("at", None)


def _without_masks(given: tuple) -> tuple:
    """Boolean arrays as the positions where they are true."""
    out: list = []
    for e in given:
        if is_array_like(e) and getattr(e, "shape", ()) != () and dtypes.is_bool(get_aval(e).dtype):
            if isinstance(e, Tracer):
                raise NonConcreteBooleanIndexError(
                    at_user_line(
                        "a reference is indexed with a traced boolean array: how many elements that picks is not known."
                    )
                )
            out += jnp.nonzero(e)
        else:
            out.append(e)
    return tuple(out)


# outside of programs -------------------------------------------------------------------------------------------------


def _held(x, aval=None):
    """A value as a reference keeps it: an array, of the same weak type as before."""
    return (
        jnp.asarray(x)
        if isinstance(x, (int, float, complex))
        else x
        if is_array(x) or isinstance(x, Tracer)
        else put(x)
    )


def _swap(ref, value, *operands, index):
    references.swap_p.abstract(get_aval(ref), get_aval(value), *map(get_aval, operands), index=index)
    old = references.read(ref.value, index, operands)
    ref.value = _held(references.write(ref.value, index, operands, value))
    return old


def _addupdate(ref, value, *operands, index):
    references.addupdate_p.abstract(get_aval(ref), get_aval(value), *map(get_aval, operands), index=index)
    ref.value = _held(
        references.write(ref.value, index, operands, jnp.add(references.read(ref.value, index, operands), value))
    )
    return []


references.new_ref_p.add_rules(impl=lambda x, *, kind, memory_space: Ref(_held(x)))
references.empty_ref_p.add_rules(impl=lambda *, ty, memory_space: Ref(jnp.zeros(ty.shape, ty.dtype)))
references.get_p.add_rules(impl=lambda ref, *operands, index: references.read(ref.value, index, operands))
references.swap_p.add_rules(impl=_swap)
references.addupdate_p.add_rules(impl=_addupdate)
references.freeze_p.add_rules(impl=lambda ref: ref.value)
references.free_ref_p.add_rules(impl=lambda ref: [])


add_parts(AbstractRef, Parts(get, set, Places, lambda ref, x, idx=(): addupdate(ref, idx, x)))
