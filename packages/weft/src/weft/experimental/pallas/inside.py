"""What kernels are written with, beside the operations of `weft.numpy`."""

from __future__ import annotations

from typing import Any, Callable, Sequence, TypeVar

from ... import lax
from ... import numpy as jnp
from ...api.refs import Ref, RefView, Slice, freeze, new_ref
from ...base.errors import at_user_line
from ...effects import debug
from ...core.trace import Tracer
from ...base.tree import tree_map
from ...higher_order.pallas_call import uninitialised
from ...typing import Array, ArrayLike
from .specs import MemoryRef

_T = TypeVar("_T")


def when(condition: ArrayLike, /) -> Callable[[Callable[[], None]], None]:
    """Decorator: runs a function of no arguments now, if a condition holds.

    Args:
        condition: bool, or scalar array of bool or int.

    Returns:
        decorator, which returns None.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.experimental import pallas as pl
        >>> def total(x_ref, o_ref):
        ...     @pl.when(pl.program_id(0) == 0)
        ...     def _():
        ...         o_ref[...] = jnp.zeros_like(o_ref)
        ...     o_ref[...] += jnp.sum(x_ref[...], keepdims=True)
        >>> pl.pallas_call(total, weft.ShapeDtypeStruct((1,), jnp.float32), grid=4,
        ...                in_specs=[pl.BlockSpec((2,), lambda i: i)])(jnp.arange(8.0))
        Array([28.], dtype=float32)
    """

    def decorator(f: Callable[[], None]) -> None:
        if isinstance(condition, bool):
            if condition:
                f()
        else:
            lax.cond(condition, f, lambda: None)

    return decorator


def loop(
    lower: Any,
    upper: Any,
    *,
    init_carry: Any = None,
    step: Any = 1,
    unroll: int | bool | None = None,
) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: runs a function of an index now, for each index from `lower` on below `upper`.

    Args:
        lower: int or scalar array of int.
        upper: int or scalar array of int.
        init_carry: pytree of arrays; if it is given, the function takes a carry after the index, and returns the next
            one.
        step: int, positive.
        unroll: int or bool, as for `weft.lax.fori_loop`.

    Returns:
        decorator, which returns the last carry, or None.

    Raises:
        ValueError: for a step that is not a positive int.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.experimental import pallas as pl
        >>> def kernel(x_ref, o_ref):
        ...     @pl.loop(0, 4)
        ...     def _(i):
        ...         o_ref[i] = 2 * x_ref[i]
        >>> pl.pallas_call(kernel, weft.ShapeDtypeStruct((4,), jnp.int32))(jnp.arange(4))
        Array([0, 2, 4, 6], dtype=int32)
    """
    if isinstance(step, Tracer) or not isinstance(step, int) or step < 1:
        raise ValueError(at_user_line(f"pl.loop: the step is {step!r}. Give a positive int."))

    def decorator(body: Callable[..., Any]) -> Any:
        def at(k: Any, carry: Any) -> Any:
            out = body(lower + k * step) if init_carry is None else body(lower + k * step, carry)
            return out if init_carry is not None else None

        many = (upper - lower + step - 1) // step if step != 1 else upper - lower
        return lax.fori_loop(0, many, at, init_carry, unroll=unroll)

    return decorator


# memory --------------------------------------------------------------------------------------------------------------


class _Lanes:
    """The part of a reference that an index names, where starts that are traced may lie so that it reaches beyond the
    end: what is beyond is masked off. Such axes are read one window within bounds, which is moved.
    """

    def __init__(self, ref: Ref | RefView, idx: Any, who: str):
        given = idx if isinstance(idx, tuple) and not isinstance(idx, Slice) else (idx,)
        if any(e is Ellipsis for e in given):
            at = next(i for i, e in enumerate(given) if e is Ellipsis)
            given = (*given[:at], *[slice(None)] * (len(ref.shape) - len(given) + 1), *given[at + 1 :])
        if len(given) > len(ref.shape):
            raise ValueError(at_user_line(f"{who}: {len(given)} indices for a reference of shape {tuple(ref.shape)}."))
        self.ref, self.index = ref, []
        self.moved: list[tuple[int, int, Any]] = []  # axis of the part, size, how far its window begins before it
        axis = 0
        for e, n in zip(given, ref.shape):
            if isinstance(e, Slice) and (isinstance(e.start, Tracer) or e.start + e.size > n):
                if e.stride != 1:
                    raise ValueError(at_user_line(f"{who}: {e} has a stride, which masked parts can't have."))
                width = min(e.size, n)
                start = jnp.clip(jnp.asarray(e.start, jnp.int32), 0, n - width)
                self.moved.append((axis, e.size, e.start - start))
                e = Slice(start, width)
            self.index.append(e)
            axis += 1 if isinstance(e, (slice, Slice)) or len(getattr(e, "shape", ())) else 0

    def window(self) -> Array:
        return self.ref[tuple(self.index)]

    def _wide(self, window: Array) -> Array:
        behind = {axis: size for axis, size, _ in self.moved}
        width = [(0, behind.get(axis, 0), 0) for axis in range(window.ndim)]
        return lax.pad(window, jnp.zeros((), window.dtype), width)

    def read(self) -> Array:
        x = self.window()
        if not self.moved:
            return x
        x = self._wide(x)
        for axis, size, shift in self.moved:
            x = lax.dynamic_slice_in_dim(x, shift, size, axis)
        return x

    def write(self, value: Array) -> None:
        if self.moved:
            window = self.window()
            starts = [jnp.int32(0)] * window.ndim
            for axis, _, shift in self.moved:
                starts[axis] = shift
            value = lax.slice(
                lax.dynamic_update_slice(self._wide(window), value, starts), [0] * window.ndim, window.shape
            )
        self.ref[tuple(self.index)] = value


def load(ref: Ref | RefView, idx: Any = ..., *, mask: ArrayLike | None = None, other: ArrayLike | None = None) -> Array:
    """Reads a part of a reference, with a value of one's own where a mask is false.

    Args:
        ref: reference to an array of any dtype and shape, or a part of it (`ref.at[…]`).
        idx: index, or a tuple of them: ints, slices, `pl.ds(start, size)`, integer arrays. With a mask, a `pl.ds` may
            reach beyond the end of the reference.
        mask: array of bool that broadcasts to the shape of the part; None for everywhere.
        other: array or number, what elements have where the mask is false; None for 0.

    Returns:
        array of the reference's dtype and of the shape of the part.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.experimental import pallas as pl
        >>> def kernel(x_ref, o_ref):
        ...     at = 4 * pl.program_id(0)
        ...     x = pl.load(x_ref, pl.ds(at, 4), mask=at + jnp.arange(4) < 6, other=-1)
        ...     o_ref[pl.ds(at, 4)] = x
        >>> pl.pallas_call(kernel, weft.ShapeDtypeStruct((8,), jnp.int32), grid=2)(jnp.arange(6))
        Array([ 0,  1,  2,  3,  4,  5, -1, -1], dtype=int32)
    """
    if mask is None:
        return ref[idx]
    x = _Lanes(ref, idx, "pl.load").read()
    return jnp.where(mask, x, jnp.asarray(0 if other is None else other, x.dtype))


def store(ref: Ref | RefView, idx: Any, val: ArrayLike, *, mask: ArrayLike | None = None) -> None:
    """Writes to a part of a reference, only where a mask is true.

    Args:
        ref: reference to an array of any dtype and shape, or a part of it (`ref.at[…]`).
        idx: index, or a tuple of them: ints, slices, `pl.ds(start, size)`, integer arrays. With a mask, a `pl.ds` may
            reach beyond the end of the reference.
        val: array or number that broadcasts to the shape of the part.
        mask: array of bool that broadcasts to the shape of the part; None for everywhere.

    Returns:
        None.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.experimental import pallas as pl
        >>> def kernel(x_ref, o_ref):
        ...     o_ref[...] = jnp.zeros_like(o_ref)
        ...     pl.store(o_ref, ..., x_ref[...], mask=x_ref[...] > 1)
        >>> pl.pallas_call(kernel, weft.ShapeDtypeStruct((4,), jnp.int32))(jnp.arange(4))
        Array([0, 0, 2, 3], dtype=int32)
    """
    if mask is None:
        ref[idx] = val
        return
    lanes = _Lanes(ref, idx, "pl.store")
    old = lanes.read()
    lanes.write(jnp.where(mask, jnp.asarray(val, old.dtype), old))


def run_scoped(f: Callable[..., _T], *types: Any, collective_axes: Any = (), **kw_types: Any) -> _T:
    """Runs a function with references to new scratch memory, which is gone afterwards.

    Args:
        f: function of references.
        *types: pytrees of `pl.ANY(shape, dtype)`.
        collective_axes: (), since memory is not shared between points of the grid.
        **kw_types: the same, for keyword arguments of f.

    Returns:
        what f returns, which must not be a reference.

    Raises:
        ValueError: for `collective_axes`.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.experimental import pallas as pl
        >>> def kernel(x_ref, o_ref):
        ...     def body(twice_ref):
        ...         twice_ref[...] = 2 * x_ref[...]
        ...         o_ref[...] = twice_ref[...] + 1
        ...     pl.run_scoped(body, pl.ANY((4,), jnp.int32))
        >>> pl.pallas_call(kernel, weft.ShapeDtypeStruct((4,), jnp.int32))(jnp.arange(4))
        Array([1, 3, 5, 7], dtype=int32)
    """
    if collective_axes:
        raise ValueError(
            at_user_line(
                f"run_scoped: collective_axes={collective_axes!r} asks for memory that points of the grid share. Write"
                " to a result, or to scratch_shapes, which stay from point to point."
            )
        )
    made = lambda tree: tree_map(_new, tree, is_leaf=lambda x: isinstance(x, MemoryRef))
    return f(*made(types), **made(kw_types))


def _new(kind: Any) -> Ref:
    if not isinstance(kind, MemoryRef):
        raise TypeError(at_user_line(f"run_scoped takes pl.ANY(shape, dtype) for each reference; got {kind!r}."))
    return new_ref(uninitialised(kind.inner_aval))


def run_state(f: Callable[[Any], None]) -> Callable[[Any], Any]:
    """A function that writes to references, as a function from what they hold before to what they hold afterwards.

    Args:
        f: function of a pytree of references.

    Returns:
        function of a pytree of arrays, of any dtype and shape; it returns the same structure, dtypes and shapes.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import pallas as pl
        >>> def double(ref):
        ...     ref[...] = 2 * ref[...]
        >>> pl.run_state(double)(jnp.arange(3))
        Array([0, 2, 4], dtype=int32)
    """

    def call(values: Any) -> Any:
        refs = tree_map(lambda x: new_ref(jnp.asarray(x)), values)
        f(refs)
        return tree_map(freeze, refs, is_leaf=lambda x: isinstance(x, Ref))

    return call


def with_scoped(*types: Any, collective_axes: Any = (), **kw_types: Any) -> Callable[[Callable[..., Any]], Any]:
    """`run_scoped` as a decorator: the function runs where it is defined.

    Args:
        *types: pytrees of `pl.ANY(shape, dtype)`.
        collective_axes: ().
        **kw_types: the same, for keyword arguments of the function.

    Returns:
        decorator, which returns what the function returns.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.experimental import pallas as pl
        >>> def kernel(x_ref, o_ref):
        ...     @pl.with_scoped(pl.ANY((4,), jnp.int32))
        ...     def _(own_ref):
        ...         own_ref[...] = x_ref[...]
        ...         o_ref[...] = own_ref[::1]
        >>> pl.pallas_call(kernel, weft.ShapeDtypeStruct((4,), jnp.int32))(jnp.arange(4))
        Array([0, 1, 2, 3], dtype=int32)
    """
    return lambda f: run_scoped(f, *types, collective_axes=collective_axes, **kw_types)


def debug_print(fmt: str, *args: ArrayLike) -> None:
    """Prints values while a kernel runs, once for each point of the grid.

    Args:
        fmt: str for `str.format`, with `{}` where values belong.
        *args: arrays of any dtype and shape.

    Returns:
        None.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.experimental import pallas as pl
        >>> def kernel(x_ref, o_ref):
        ...     pl.debug_print("it begins with {}", x_ref[0])
        ...     o_ref[...] = x_ref[...]
        >>> y = pl.pallas_call(kernel, weft.ShapeDtypeStruct((2,), jnp.int32))(jnp.arange(2)); weft.effects_barrier()
        it begins with 0
    """
    debug.print(fmt, *args)


def broadcast_to(a: ArrayLike, shape: Sequence[int]) -> Array:
    """An array repeated to a shape; `weft.numpy.broadcast_to`.

    Args:
        a: array of any dtype.
        shape: sequence of ints.

    Returns:
        array of the dtype of `a`, of that shape.

    Example:
        >>> from weft.experimental import pallas as pl
        >>> pl.broadcast_to(3, (2,))
        Array([3, 3], dtype=int32, weak_type=True)
    """
    return jnp.broadcast_to(a, tuple(shape))


def reciprocal(x: ArrayLike, *, approx: bool = False, full_range: bool = True) -> Array:
    """1 / x.

    Args:
        x: array of floats, of any shape.
        approx: bool: whether an approximation would do; weft's backends divide.
        full_range: bool: has no effect.

    Returns:
        array of the dtype and shape of `x`.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import pallas as pl
        >>> pl.reciprocal(jnp.float32(4))
        Array(0.25, dtype=float32)
    """
    return jnp.reciprocal(x)


def multiple_of(x: Any, values: int | Sequence[int]) -> Any:
    """`x`, with the promise that it is a multiple of `values`, which changes no value.

    Args:
        x: int or array of integers.
        values: int, or a sequence of ints.

    Returns:
        `x`

    Example:
        >>> from weft.experimental import pallas as pl
        >>> pl.multiple_of(256, 128)
        256
    """
    return x
