"""Updates of parts of arrays: `x.at[…].set(y)` and its kin. An index becomes a slice to write, a mask or a scatter.

Updates out of bounds are dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ..base.annotations import override
from ..base import dtypes
from ..higher_order.while_loop import while_loop
from ..core.trace import Tracer, get_aval
from ..base.errors import at_user_line, warn
from ..lax import indexing as lax_index
from ..primitives import elementwise as el
from ..primitives import linear
from ..primitives.gather import ScatterDimensionNumbers
from ..primitives.reduce import reduce_max
from ..primitives.rules import dtype_of, scalar_like, shape_of
from ..typing import Array, ArrayLike, Mode, OutSharding
from .creation import asarray
from .indexing import _entries, _has_strides, _is_array, _plan, _without_bools, take_index
from .ufuncs import divide, power
from .util import broadcast_to, flat_host, laid_out, on_device, operand, result_dtype

if TYPE_CHECKING:
    from ..core.types import Value


_SCATTER: dict[str, Callable[..., Any]] = {
    "set": lax_index.scatter,
    "add": lax_index.scatter_add,
    "multiply": lax_index.scatter_mul,
    "min": lax_index.scatter_min,
    "max": lax_index.scatter_max,
}
_MASKED: dict[str, Callable[..., Any]] = {
    "set": lambda x, y: y,
    "add": el.add,
    "multiply": el.mul,
    "min": el.min_,
    "max": el.max_,
}


def _traced_mask(idx: Any, x: Value, y: Value) -> Value | None:
    """The mask, where an index is one traced boolean array over leading axes and the update a scalar."""
    mask = idx[0] if isinstance(idx, tuple) and len(idx) == 1 else idx
    if (
        isinstance(mask, Tracer)
        and dtypes.is_bool(get_aval(mask).dtype)
        and shape_of(mask)
        and not shape_of(y)
        and shape_of(x)[: len(shape_of(mask))] == shape_of(mask)
    ):
        return mask
    return None


def update_index(
    x: Value,
    idx: Any,
    y: Value,
    how: str,
    mode: Mode = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    wrap: bool = True,
) -> Value:
    """`x.at[idx].<how>(y)`."""
    if y is None:
        raise ValueError(f"x.at[…].{how}: None is not a value for an update.")
    x, y = (
        on_device(operand("indexed update", x)),
        operand("indexed update", y if not isinstance(y, (list, tuple)) else asarray(y)),
    )
    aval = get_aval(x)
    if dtypes.is_key(aval.dtype) and (how != "set" or get_aval(y).dtype != aval.dtype):
        raise TypeError(f"x.at[…].{how}: random keys ({get_aval(x)}) can only be set, and to keys; got {get_aval(y)}.")
    computed, _ = result_dtype(x, y)
    if how in ("add", "multiply") and dtypes.is_bool(computed):
        raise TypeError(
            at_user_line(
                f"x.at[…].{how} does not take booleans; use .max (or) or .min (and), or convert the array with"
                " astype(int)."
            )
        )
    if computed != aval.dtype and not (how == "set" and dtypes.is_complex(computed)):
        if not (dtypes.is_int(computed) and dtypes.is_int(aval.dtype)):
            warn(
                f"an update of dtype {dtypes.name(computed)} is rounded to the array's dtype {dtypes.name(aval.dtype)};"
                " convert one of them with astype.",
                FutureWarning,
            )
    if dtypes.is_complex(computed) and not dtypes.is_complex(aval.dtype):
        y, computed = el.real(linear.convert(y, computed)), aval.dtype
    work = linear.convert(x, computed) if computed != aval.dtype else x
    y = linear.convert(y, computed)
    work, idx, added = _without_bools(work, idx)
    out = _scatter(work, idx, y, how, mode, indices_are_sorted, unique_indices, wrap)
    out = linear.squeeze(out, added) if added else out
    return linear.convert(out, aval.dtype, aval.weak_type)


def _scatter(
    x: Value, idx: Any, y: Value, how: str, mode: Mode, indices_are_sorted: bool, unique_indices: bool, wrap: bool
) -> Value:
    shape = shape_of(x)
    mask = _traced_mask(idx, x, y)
    if mask is not None:
        wide = linear.broadcast_in_dim(mask, shape, tuple(range(len(shape_of(mask)))))
        return el.select_n_p.bind(wide, x, broadcast_to(_MASKED[how](x, y), shape))
    entries = _entries(idx, shape)
    plan = _plan(entries, shape, wrap)
    full_shape = list(plan.shape)
    for p in plan.new_axes:
        full_shape.insert(p, 1)
    mine = shape_of(y)
    extra = len(mine) - len(full_shape)
    if extra > 0 and all(n == 1 for n in mine[:extra]):
        y = linear.squeeze(y, tuple(range(extra)))
    y = broadcast_to(y, tuple(full_shape))
    y = linear.squeeze(y, plan.new_axes) if plan.new_axes else y
    if plan.indices is None:
        return broadcast_to(_MASKED[how](x, y), shape)
    if 0 in plan.shape:
        return x
    if 0 in shape:
        if plan.static and any(shape[d] == 0 for d in plan.collapsed):
            raise IndexError(f"x.at[…]: an index of an axis without elements; the array has shape {shape}.")
        return x
    numbers = ScatterDimensionNumbers(plan.offset, plan.collapsed, plan.axes)
    return _SCATTER[how](
        x,
        plan.indices,
        y,
        numbers,
        mode=mode,
        indices_are_sorted=indices_are_sorted or plan.static and not _has_strides(entries),
        unique_indices=unique_indices or plan.static,
    )


class IndexUpdateHelper:
    """`x.at`: index it to name places, then call a method to get a new array with those places changed.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.arange(3).at[1].set(9)
        Array([0, 9, 2], dtype=int32)
    """

    __slots__ = ("array",)

    def __init__(self, array: Any):
        self.array = array

    def __getitem__(self, index: Any) -> "IndexUpdateRef":
        return IndexUpdateRef(self.array, index)

    @override
    def __repr__(self) -> str:
        return f"_IndexUpdateHelper({self.array!r})"


class IndexUpdateRef:
    """`x.at[idx]`: places of an array. Each method returns a new array (`get` returns the elements)."""

    __slots__ = ("array", "index")

    def __init__(self, array: Any, index: Any):
        self.array, self.index = array, index

    @override
    def __repr__(self) -> str:
        return f"_IndexUpdateRef({self.array!r}, {self.index!r})"

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        fill_value: ArrayLike | None = None,
        out_sharding: OutSharding = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The elements; with mode="fill", `fill_value` for indices out of bounds."""
        return laid_out(
            "x.at[…].get",
            lambda: take_index(
                self.array, self.index, mode, fill_value, indices_are_sorted, unique_indices, wrap_negative_indices
            ),
            out_sharding,
        )

    def apply(
        self,
        func: Callable[[Any], Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The elementwise function `func` applied to the places, as often as each occurs in the index."""
        keywords = (mode, indices_are_sorted, unique_indices, wrap_negative_indices)
        here = take_index(self.array, self.index, mode or "fill", None, *keywords[1:])
        out = update_index(self.array, self.index, linear.convert(func(here), dtype_of(self.array)), "set", *keywords)
        if unique_indices or not any(
            _is_array(i) for i in (self.index if isinstance(self.index, tuple) else (self.index,))
        ):
            return out
        # func is applied k times at an index that occurs k times
        times = update_index(linear.full(shape_of(out), 0, dtypes.int32), self.index, 1, "add", *keywords)
        again = lambda k, x: el.select_n_p.bind(
            el.gt(times, broadcast_to(scalar_like(times, k) if isinstance(k, int) else k, shape_of(x))),
            x,
            linear.convert(func(x), dtype_of(x)),
        )
        if isinstance(times, Tracer):
            most = reduce_max(times, tuple(range(len(shape_of(times)))))
            return while_loop(
                lambda state: el.lt(state[0], most),
                lambda state: (el.add(state[0], scalar_like(state[0], 1)), again(*state)),
                (linear.full((), 1, dtypes.int32), out),
            )[1]
        for k in range(1, max(flat_host(times), default=0)):
            out = again(k, out)
        return out

    def divide(self, values: ArrayLike, *, out_sharding: OutSharding = None, **keywords: Any) -> Array:
        """The places divided by `values`."""
        ones = linear.full(shape_of(self.array), 1, dtype_of(self.array), get_aval(self.array).weak_type)
        return laid_out(
            "x.at[…].divide", lambda: divide(self.array, ones.at[self.index].multiply(values, **keywords)), out_sharding
        )

    def power(self, values: ArrayLike, *, out_sharding: OutSharding = None, **keywords: Any) -> Array:
        """The places raised to the power `values`."""
        dt = dtypes.int32 if dtypes.is_int(get_aval(operand("power", values)).dtype) else dtype_of(self.array)
        ones = linear.full(shape_of(self.array), 1, dt)
        return laid_out(
            "x.at[…].power", lambda: power(self.array, ones.at[self.index].multiply(values, **keywords)), out_sharding
        )

    def _updated(
        self,
        how: str,
        values: ArrayLike,
        mode: Mode,
        indices_are_sorted: bool,
        unique_indices: bool,
        wrap_negative_indices: bool,
        out_sharding: OutSharding,
    ) -> Value:
        return laid_out(
            f"x.at[…].{how}",
            lambda: update_index(
                self.array, self.index, values, how, mode, indices_are_sorted, unique_indices, wrap_negative_indices
            ),
            out_sharding,
        )

    def set(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        out_sharding: OutSharding = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """A new array with the places set to `values`."""
        return self._updated(
            "set", values, mode, indices_are_sorted, unique_indices, wrap_negative_indices, out_sharding
        )

    def add(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        out_sharding: OutSharding = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """A new array with the places increased by `values`."""
        return self._updated(
            "add", values, mode, indices_are_sorted, unique_indices, wrap_negative_indices, out_sharding
        )

    def subtract(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        out_sharding: OutSharding = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """A new array with `values` subtracted at the places."""
        less = el.neg(operand("subtract", values))
        return self._updated("add", less, mode, indices_are_sorted, unique_indices, wrap_negative_indices, out_sharding)

    def multiply(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        out_sharding: OutSharding = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """A new array with the places multiplied by `values`."""
        return self._updated(
            "multiply", values, mode, indices_are_sorted, unique_indices, wrap_negative_indices, out_sharding
        )

    def min(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        out_sharding: OutSharding = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """A new array with the places lowered to at most `values`."""
        return self._updated(
            "min", values, mode, indices_are_sorted, unique_indices, wrap_negative_indices, out_sharding
        )

    def max(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        out_sharding: OutSharding = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """A new array with the places raised to at least `values`."""
        return self._updated(
            "max", values, mode, indices_are_sorted, unique_indices, wrap_negative_indices, out_sharding
        )

    sub = subtract
    mul = multiply
