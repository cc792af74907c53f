"""Universal functions: elementwise functions that also reduce, accumulate, and update in place."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, Callable, Generic, ParamSpec, Sequence, TypeVar

from ..base.annotations import override
from ..base import dtypes
from ..base.avals import ShapeDtypeStruct
from ..higher_order.scan import scan
from ..core.trace import get_aval
from ..lax.reductions import reduce_and, reduce_or, reduce_xor
from ..primitives import elementwise as el
from ..primitives import linear
from ..primitives.rules import dtype_of, shape_of
from ..primitives.shape import concatenate, iota, slice_
from ..runtime.jit import inner_jit
from ..typing import Array, ArrayLike, Axis, DTypeLike
from . import comparisons, elementary, reductions, cumulative, ufuncs
from .creation import asarray
from .indexing import take_index
from .shapes import ravel
from .updates import update_index
from .util import (
    asked_dtype,
    broadcast_shapes,
    broadcast_to,
    canonical_axes,
    canonical_axis,
    on_device,
    operand,
    promote_inexact,
    to_bool,
)
from .gufuncs import vectorize

if TYPE_CHECKING:
    from ..core.types import Value
    from ..base.dtypes import ElementType

__all__ = [
    "add",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "frompyfunc",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "subtract",
    "ufunc",
]
_P = ParamSpec("_P")
_R = TypeVar("_R")


class ufunc(Generic[_P, _R]):
    """A function of scalars that works on each element of arrays which broadcast, with the methods of NumPy's ufuncs.

    `nin` and `nout` say how many arrays it takes and returns, `identity` where its reductions start. Further arguments
    replace the generic methods by faster ones.

    Raises:
        TypeError: for numbers of arguments that are not integers.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.ufunc(lambda x, y: x + 2 * y, 2, 1, name="f").reduce(jnp.arange(4))
        Array(12, dtype=int32)
    """

    def __init__(
        self,
        func: Callable[_P, _R],
        /,
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        nargs: int | None = None,
        identity: ArrayLike | None = None,
        call: Callable[..., Any] | None = None,
        reduce: Callable[..., Any] | None = None,
        accumulate: Callable[..., Any] | None = None,
        at: Callable[..., Any] | None = None,
        reduceat: Callable[..., Any] | None = None,
    ):
        self.__doc__, self.__name__ = func.__doc__, name or func.__name__
        self.nin, self.nout = operator.index(nin), operator.index(nout)
        self.nargs, self.identity = operator.index(self.nin if nargs is None else nargs), identity
        self._call = call or _checked(self.__name__, inner_jit(vectorize(func), name="_call_vectorized"))
        self._methods = {"reduce": reduce, "accumulate": accumulate, "at": at, "reduceat": reduceat}
        self._key = (
            func,
            self.__name__,
            self.nin,
            self.nout,
            self.nargs,
            repr(identity),
            call,
            reduce,
            accumulate,
            at,
            reduceat,
        )

    @override
    def __hash__(self) -> int:
        return hash(self._key)

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, ufunc) and self._key == other._key

    @override
    def __repr__(self) -> str:
        return f"<jnp.ufunc '{self.__name__}'>"

    @override
    def __reduce__(self) -> str | tuple[Any, ...]:
        return (_by_name, (self.__name__,)) if _by_name(self.__name__) is self else super().__reduce__()

    if TYPE_CHECKING:

        def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...

    else:

        def __call__(self, *args, out: None = None, where: None = None):
            if out is not None or where is not None:
                self._refuse("__call__", out=out, where=where)
            return self._call(*args)

    def _refuse(self, method: str, **given: object) -> None:
        for name, value in given.items():
            if value is not None:
                raise NotImplementedError(
                    f"{self.__name__}.{method}: the argument {name!r} is not supported, since arrays are immutable; use"
                    " the result, and weft.numpy.where to choose between it and something else."
                )

    def _binary(self, method: str) -> None:
        if self.nin != 2:
            raise ValueError(f"{method} only supported for binary ufuncs; {self.__name__} takes {self.nin} arguments.")
        if self.nout != 1:
            raise ValueError(
                f"{method} only supported for functions returning a single value; {self.__name__} returns {self.nout}."
            )

    def _result_dtype(self, *args: Value) -> ElementType:
        """The dtype that the function gives for scalars of the arguments' dtypes."""
        scalars = [ShapeDtypeStruct((), get_aval(x).dtype, weak_type=get_aval(x).weak_type) for x in args]
        return inner_jit(lambda *xs: self._call(*xs)).eval_shape(*scalars).dtype

    def reduce(
        self,
        a: ArrayLike,
        axis: Axis = 0,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """The elements along an axis (None: all of them) joined from first to last.

        `initial` stands before the first; only elements where `where` is true take part.
        """
        self._binary("reduce")
        self._refuse("reduce", out=out)
        a, axis = operand(f"{self.__name__}.reduce", a), tuple(axis) if isinstance(axis, list) else axis
        if where is not None and initial is None and self.identity is None:
            raise ValueError(
                f"reduction operation '{self.__name__}' does not have an identity, so to use a where mask one has to"
                " specify 'initial'."
            )
        return _reduce(self, a, axis, asked_dtype("reduce", dtype), bool(keepdims), initial, where)

    def accumulate(self, a: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """The results of `reduce` for each number of leading elements along an axis."""
        self._binary("accumulate")
        self._refuse("accumulate", out=out)
        return _accumulate(self, operand(f"{self.__name__}.accumulate", a), axis, asked_dtype("accumulate", dtype))

    def at(self, a: ArrayLike, indices: Any, b: ArrayLike | None = None, /, *, inplace: bool = True) -> Array:
        """A new array in which the elements at `indices` are replaced by the function of them (and of `b`), in turn
        where indices repeat.

        Raises:
            NotImplementedError: without inplace=False, since arrays are immutable.
        """
        if inplace:
            raise NotImplementedError(
                f"{self.__name__}.at: arrays are immutable, so nothing can be changed in place. Call it with"
                " inplace=False and use its result."
            )
        name = f"{self.__name__}.at"
        rest = () if b is None else (operand(name, b),)
        return (self._methods["at"] or self._at)(on_device(operand(name, a)), indices, *rest)

    def reduceat(
        self, a: ArrayLike, indices: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None, out: None = None
    ) -> Array:
        """`reduce` over the slices that begin at each of `indices` and end before the next; one element where the
        next is not larger.
        """
        self._binary("reduceat")
        self._refuse("reduceat", out=out)
        name = f"{self.__name__}.reduceat"
        a, indices = on_device(operand(name, a)), on_device(operand(name, indices))
        if not isinstance(axis, int):
            raise ValueError(f"{name} requires a single integer axis, got {axis!r}.")
        if len(shape_of(indices)) != 1 or not shape_of(a):
            raise ValueError(
                f"{name}: indices must be one-dimensional and the array not a scalar, got shapes {shape_of(indices)}"
                f" and {shape_of(a)}."
            )
        if not dtypes.is_int(dtype_of(indices)):
            raise ValueError(f"{name}: indices must have an integer type, got {get_aval(indices)}.")
        return _reduceat(self, a, indices, canonical_axis(axis, len(shape_of(a))), asked_dtype("reduceat", dtype))

    def outer(self, A: ArrayLike, B: ArrayLike, /) -> Array:
        """The function of every pair of an element of A and one of B."""
        self._binary("outer")
        name = f"{self.__name__}.outer"
        return _outer(self, operand(name, A), operand(name, B))

    def _at(self, a: Value, indices: Any, *b: Value) -> Any:
        dt = self._result_dtype(a, *b)
        a, shape = linear.convert(a, dt), shape_of(a)
        indices = indices if isinstance(indices, tuple) else (indices,)
        flat = not all(
            dtypes.is_int(get_aval(operand("at", i)).dtype)
            for i in indices
            if not isinstance(i, slice) and i is not None and i is not Ellipsis
        )
        # one element after the other
        if flat or any(isinstance(i, slice) or i is None or i is Ellipsis for i in indices):
            size = math.prod(shape)
            places = take_index(
                linear.reshape(iota(dtypes.int32, (size,), 0), shape), indices, mode="fill", fill_value=size
            )
            b = tuple(broadcast_to(v, shape_of(places)) for v in b)
            return linear.reshape(self._at(ravel(a), places, *b), shape)
        if len(indices) > len(shape):
            raise IndexError(
                f"{self.__name__}.at: too many indices: the array has {len(shape)} axes, but {len(indices)} were"
                " indexed."
            )
        lead = broadcast_shapes([shape_of(asarray(i)) for i in indices])
        rows = tuple(ravel(broadcast_to(asarray(i), lead)) for i in indices)
        rest = shape[len(indices) :]
        n = math.prod(lead)
        values = tuple(linear.reshape(broadcast_to(v, (*lead, *rest)), (n, *rest)) for v in b)

        def step(x: Value, picked: Value) -> tuple[Any, None]:
            at, values = picked
            new = self._call(take_index(x, at, mode="fill"), *values)
            return update_index(x, at, linear.convert(new, dt), "set", mode="drop"), None

        return scan(step, a, (rows, values))[0]


def _by_name(name: str) -> Any:
    """JAX's own ufunc of that name, if there is one. Pickling and copying use it."""
    return globals().get(name)


def _checked(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: call(*[operand(name, x) for x in args])


def _own(self: Value, method: str, *args: Value, **keywords: Any) -> Any:
    """The method that replaces the generic one, if there is one."""
    own = self._methods[method]
    return NotImplemented if own is None else own(*args, **keywords, out=None)


def _head(a: Value, axis: int) -> tuple[Value, Value]:
    """The first slice along an axis, and the others with that axis in front."""
    a = linear.moveaxis(a, axis, 0)
    shape = shape_of(a)
    cut = lambda lo, hi: slice_(a, (lo, *[0] * (len(shape) - 1)), (hi, *shape[1:]))
    return linear.squeeze(cut(0, 1), (0,)), cut(1, shape[0])


@inner_jit(name="reduce", static_argnums=(0, 2, 3, 4))
def _reduce(
    self: Value, a: Value, axis: Any, dtype: ElementType, keepdims: bool, initial: Value, where: Value
) -> Value:
    rank = len(shape_of(a))
    if axis is not None:
        canonical_axes(axis, rank)
    if initial is not None and self._methods["reduce"] and shape_of(initial):
        raise ValueError(
            f"{self.__name__}.reduce: initial value must be a scalar. Got array of shape {shape_of(initial)}."
        )
    found = _own(self, "reduce", a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)
    if found is not NotImplemented:
        return found
    if isinstance(axis, tuple):
        raise NotImplementedError(
            f"{self.__name__}.reduce: a tuple of axes needs a function whose order does not matter; reduce one axis"
            " after another."
        )
    a = on_device(a)
    mask = None if where is None else broadcast_to(to_bool("reduce", where), shape_of(a))
    if axis is None:
        a, mask = ravel(a), None if mask is None else ravel(mask)
    at = 0 if axis is None else canonical_axis(axis, rank)
    size, start = shape_of(a)[at], self.identity if initial is None else initial
    dt = self._result_dtype(a, a) if dtype is None else dtype
    a = linear.convert(a, dt)
    shape = tuple(n for d, n in enumerate(shape_of(a)) if d != at)
    if start is not None:
        carry, rest = broadcast_to(linear.convert(operand("reduce", start), dt), shape), linear.moveaxis(a, at, 0)
    elif size == 0:
        raise ValueError(
            f"zero-size array to reduction operation {self.__name__} which has no identity; give it `initial`."
        )
    else:
        carry, rest = _head(a, at)

    def step(carry: Sequence[Value], picked: Value) -> tuple[Any, None]:
        x, keep = picked
        new = linear.convert(self._call(carry, x), dt)
        return new if keep is None else el.select_n_p.bind(keep, carry, new), None

    masks = None if mask is None else linear.moveaxis(mask, at, 0)
    out = scan(step, carry, (rest, masks))[0]
    return linear.expand_dims(out, tuple(range(rank)) if axis is None else (at,)) if keepdims else out


@inner_jit(name="accumulate", static_argnums=(0, 2, 3))
def _accumulate(self: Value, a: Value, axis: Any, dtype: ElementType) -> Value:
    if axis is not None and self._methods["accumulate"]:
        canonical_axis(axis, max(1, len(shape_of(a))))
    found = _own(self, "accumulate", a, axis=axis, dtype=dtype)
    if found is not NotImplemented:
        return found
    if axis is None or isinstance(axis, tuple):
        raise ValueError(f"{self.__name__}.accumulate does not allow multiple axes, got axis={axis}.")
    a, axis = on_device(a), canonical_axis(axis, len(shape_of(a)))
    dt = self._result_dtype(a, a) if dtype is None else dtype
    a = linear.convert(a, dt)
    if shape_of(a)[axis] == 0:
        return a

    def step(carry: Sequence[Value], x: Value) -> tuple[Value, Value]:
        new = linear.convert(self._call(carry, x), dt)
        return new, new

    first, rest = _head(a, axis)
    later = scan(step, first, rest)[1]
    return linear.moveaxis(concatenate([linear.expand_dims(first, (0,)), later], 0), 0, axis)


@inner_jit(name="reduceat", static_argnums=(0, 3, 4))
def _reduceat(self: Value, a: Value, indices: Any, axis: Any, dtype: ElementType) -> Value:
    found = _own(self, "reduceat", a, indices, axis=axis, dtype=dtype)
    if found is not NotImplemented:
        return found
    dt = self._result_dtype(a, a) if dtype is None else dtype
    rows = linear.moveaxis(linear.convert(a, dt), axis, 0)
    n, rank, (k,) = shape_of(rows)[0], len(shape_of(rows)), shape_of(indices)
    if k == 0:
        return linear.moveaxis(slice_(rows, (0,) * rank, (0, *shape_of(rows)[1:])), 0, axis)
    if n == 0:
        raise IndexError(
            f"{self.__name__}.reduceat: the axis {axis} of shape {shape_of(a)} is empty, so no index is in bounds."
        )
    indices = (
        el.select_n_p.bind(comparisons.less(indices, 0), indices, ufuncs.add(indices, n))
        if not dtypes.is_unsigned(dtype_of(indices))
        else indices
    )
    ends = concatenate([slice_(indices, (1,), (k,)), linear.full((1,), n, dtype_of(indices))], 0)

    def step(out: Value, picked: Value) -> tuple[Any, None]:
        x, i = picked
        inside = el.and_(comparisons.less(indices, i), comparisons.less(i, ends))
        new = linear.convert(self._call(out, linear.expand_dims(x, (0,))), dt)
        return el.select_n_p.bind(linear.broadcast_in_dim(inside, shape_of(out), (0,)), out, new), None

    first = take_index(rows, indices, mode="fill")
    out = scan(step, first, (rows, linear.convert(iota(dtypes.int32, (n,), 0), dtype_of(indices))))[0]
    return linear.moveaxis(out, 0, axis)


@inner_jit(name="outer", static_argnums=(0,))
def _outer(self: Value, a: Value, b: Value) -> Value:
    a, b = on_device(a), on_device(b)
    rank = len(shape_of(a))
    return self._call(
        linear.expand_dims(a, tuple(range(rank, rank + len(shape_of(b))))), linear.expand_dims(b, tuple(range(rank)))
    )


def frompyfunc(
    func: Callable[..., Any], /, nin: int, nout: int, *, identity: ArrayLike | None = None
) -> ufunc[..., Any]:
    """A `ufunc` of a function of `nin` scalars that returns `nout`.

    Args:
        func: function of scalars.
        nin: int, how many it takes.
        nout: int, how many it returns.
        identity: number that does not change the other operand, for reductions of nothing; None for none.

    Returns:
        `ufunc`, of arrays that broadcast to one shape.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.frompyfunc(lambda x, y: x + 2 * y, 2, 1).outer(jnp.arange(2), jnp.arange(2)).tolist()
        [[0, 2], [1, 3]]
    """
    return ufunc(func, nin, nout, identity=identity)


# JAX's own -----------------------------------------------------------------------------------------------------------


def _extremum(reduce: Callable[..., Any]) -> Callable[..., Any]:
    def run(a: Value, axis: Any, dtype: ElementType, out: Value, keepdims: bool, initial: Value, where: Value) -> Array:
        return reduce(a if dtype is None else linear.convert(a, dtype), axis, out, keepdims, initial, where)

    return run


def _truth(reduce: Callable[..., Any], join: Callable[..., Any]) -> Callable[..., Any]:
    def run(a: Value, axis: Any, dtype: ElementType, out: Value, keepdims: bool, initial: Value, where: Value) -> Array:
        found = reduce(a, axis, out, keepdims, where=where)
        found = found if initial is None else join(found, initial)
        return found if dtype is None else linear.convert(found, dtype)

    return run


def _bits(reduce: Callable[..., Any], join: Callable[..., Any], identity: int) -> Callable[..., Any]:
    def run(a: Value, axis: Any, dtype: ElementType, out: Value, keepdims: bool, initial: Value, where: Value) -> Array:
        a = on_device(a if dtype is None else linear.convert(a, dtype))
        if dtypes.is_inexact(dtype_of(a)):
            raise ValueError(f"{join.__name__}.reduce takes integers or booleans, got {get_aval(a)}.")
        axes = canonical_axes(axis, len(shape_of(a)))
        a = a if where is None else ufuncs.where_jit(to_bool("where", where), a, linear.convert(identity, dtype_of(a)))
        found = reduce(a, axes)
        found = linear.expand_dims(found, axes) if keepdims else found
        return found if initial is None else join(found, linear.convert(initial, dtype_of(a)))

    return run


_xor = _bits(reduce_xor, ufuncs.bitwise_xor, 0)


def _parity(a: Value, axis: Any, dtype: ElementType, out: Value, keepdims: bool, initial: Value, where: Value) -> Value:
    found = _xor(to_bool("logical_xor", a), axis, None, out, keepdims, initial, where)
    return found if dtype is None else linear.convert(found, dtype)


def _log_sum(base: float, join: Callable[..., Any]) -> Callable[..., Any]:
    """log(sum(base**x)), the largest power taken out."""
    scale = math.log(base)

    def run(a: Value, axis: Any, dtype: ElementType, out: Value, keepdims: bool, initial: Value, where: Value) -> Array:
        (a,) = promote_inexact(join.__name__, a if dtype is None else linear.convert(a, dtype))
        a = on_device(a)
        top = reductions.max(
            el.real(a) if dtypes.is_complex(dtype_of(a)) else a, axis, keepdims=True, initial=-math.inf, where=where
        )
        top = linear.stop_gradient_p.bind(ufuncs.where_jit(el.is_finite(top), top, 0.0))
        total = reductions.sum(
            elementary.exp(ufuncs.multiply(ufuncs.subtract(a, top), scale)), axis, keepdims=True, where=where
        )
        found = ufuncs.add(ufuncs.divide(elementary.log(total), scale), top)
        found = found if keepdims else linear.squeeze(found, canonical_axes(axis, len(shape_of(a))))
        return found if initial is None else join(found, initial)

    return run


def _update(how: str) -> Callable[..., Array]:
    def at(a: Value, indices: Any, b: Value) -> Array:
        return getattr(a.at[indices], how)(b)

    return at


def _of(
    function: Callable[_P, _R],
    identity: Any = None,
    reduce: Callable[..., Any] | None = None,
    accumulate: Callable[..., Any] | None = None,
    at: str | None = None,
    nin: int = 2,
) -> ufunc[_P, _R]:
    return ufunc(
        function,
        nin,
        1,
        identity=identity,
        call=function,
        reduce=reduce,
        accumulate=accumulate,
        at=None if at is None else _update(at),
    )


add = _of(ufuncs.add, 0, reductions.sum, cumulative.cumsum, "add")
subtract = _of(ufuncs.subtract, at="subtract")
multiply = _of(ufuncs.multiply, 1, reductions.prod, cumulative.cumprod, "multiply")
negative = _of(ufuncs.negative, nin=1)
maximum = _of(ufuncs.maximum, reduce=_extremum(reductions.max), at="max")
minimum = _of(ufuncs.minimum, reduce=_extremum(reductions.min), at="min")
bitwise_and = _of(ufuncs.bitwise_and, -1, _bits(reduce_and, ufuncs.bitwise_and, -1))
bitwise_or = _of(ufuncs.bitwise_or, 0, _bits(reduce_or, ufuncs.bitwise_or, 0))
bitwise_xor = _of(ufuncs.bitwise_xor, 0, _xor)
logical_and = _of(comparisons.logical_and, True, _truth(reductions.all, comparisons.logical_and))
logical_or = _of(comparisons.logical_or, False, _truth(reductions.any, comparisons.logical_or))
logical_xor = _of(comparisons.logical_xor, False, _parity)
logaddexp = _of(ufuncs.logaddexp, -math.inf, _log_sum(math.e, ufuncs.logaddexp))
logaddexp2 = _of(ufuncs.logaddexp2, -math.inf, _log_sum(2, ufuncs.logaddexp2))
