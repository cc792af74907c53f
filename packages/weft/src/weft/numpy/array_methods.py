"""The operators, methods and properties of arrays, written once and installed on tracers and every array class."""

from __future__ import annotations

from functools import partial
from operator import index
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, NoReturn

from ..base import dtypes
from ..core.shardings import placed_of
from ..core.trace import Tracer, aval_of, is_array
from ..base.layout import Format, Layout
from ..base.errors import (
    ConcretizationTypeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    at_user_line,
)
from ..base.hooks import Hook
from ..base.host import from_bytes, np, to_bytes
from ..primitives import elementwise as el
from ..runtime import dispatch
from ..runtime.partition import off_mesh, spread_of
from ..runtime.refs import Parts, parts_of
from ..runtime.array import install_methods, numpy_value
from ..transforms.stage import concretization_error
from . import (
    comparisons,
    complex_parts,
    creation,
    cumulative,
    diagonals,
    indexing,
    joining,
    products,
    reductions,
    rounding,
    selecting,
    shapes,
    sorting,
    taking,
    ufuncs,
    updates,
)
from .printing import repr_text, str_text

if TYPE_CHECKING:
    from ..base.avals import AbstractValue
    from ..core.types import Value
    from ..base.dtypes import DTypeLike
    from ..runtime.array import Array
    from ..typing import OutSharding, Placement


def _is_operand(x: object) -> bool:
    return (
        isinstance(x, Tracer)
        or type(x) in aval_of
        or hasattr(x, "__jax_array__")
        or any(b in aval_of for b in type(x).__mro__[:-1])
    )


def _operator(function: Callable[..., Any], reflected: bool = False) -> Callable[..., Any]:
    if reflected:

        def method(self: Value, other: object) -> Any:
            return function(other, self) if _is_operand(other) else NotImplemented

    else:

        def method(self: Value, other: object) -> Any:
            return function(self, other) if _is_operand(other) else NotImplemented

    method.__name__ = f"__{function.__name__}__"
    return method


def _power(self: Value, other: Any, modulo: object = None) -> Value:
    if modulo is not None:
        raise TypeError("pow with a modulus is not supported on arrays; use jnp.remainder(jnp.power(x, y), m).")
    return ufuncs.power(self, other) if _is_operand(other) else NotImplemented


_BINARY = {
    "add": ufuncs.add,
    "sub": ufuncs.subtract,
    "mul": ufuncs.multiply,
    "truediv": ufuncs.divide,
    "floordiv": ufuncs.floor_divide,
    "mod": ufuncs.remainder,
    "divmod": ufuncs.divmod,
    "and": ufuncs.bitwise_and,
    "or": ufuncs.bitwise_or,
    "xor": ufuncs.bitwise_xor,
    "lshift": ufuncs.left_shift,
    "rshift": ufuncs.right_shift,
    "matmul": products.matmul,
}
_COMPARE = {
    "eq": comparisons.equal,
    "ne": comparisons.not_equal,
    "lt": comparisons.less,
    "le": comparisons.less_equal,
    "gt": comparisons.greater,
    "ge": comparisons.greater_equal,
}


def _concrete(self: Value, error: type[Any], what: str) -> Any:
    """The host value of an array; the given error for a tracer."""
    if isinstance(self, Tracer):
        raise error(concretization_error(self, what))
    return self._host()


def _scalar(self: Value, error: type[Any], what: str) -> Value:
    value = _concrete(self, error, what)
    if self.shape:
        raise TypeError(f"Only scalar arrays can be converted to Python scalars; got an array of shape {self.shape}.")
    return value.tolist()


def __bool__(self: Value) -> bool:
    value = _concrete(
        self,
        TracerBoolConversionError,
        "a Python bool was needed (in an if, while, and, or, not); use weft.lax.cond, weft.lax.while_loop or"
        " weft.numpy.where",
    )
    if self.size == 0:
        raise ValueError(
            "The truth value of an empty array is ambiguous. Use `array.size > 0` to check that an array is not empty."
        )
    if self.size > 1:
        raise ValueError(
            at_user_line("The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()")
        )
    return bool(_first(value.tolist()))


def _first(nested: Any) -> Value:
    while isinstance(nested, list):
        nested = nested[0]
    return nested


def __float__(self: Value) -> float:
    return float(
        _scalar(
            self,
            ConcretizationTypeError,
            "float() was called; use x.astype(float) to change the dtype, or mark the argument static",
        )
    )


def __int__(self: Value) -> int:
    return int(
        _scalar(
            self,
            ConcretizationTypeError,
            "int() was called; use x.astype(int) to change the dtype, or mark the argument static",
        )
    )


def __complex__(self: Value) -> complex:
    return complex(
        _scalar(self, ConcretizationTypeError, "complex() was called; use x.astype(complex) to change the dtype")
    )


def __index__(self: Value) -> int:
    value = _concrete(
        self,
        TracerIntegerConversionError,
        "a Python integer was needed (an index, a range, a size); mark the argument static (static_argnames), loop with"
        " weft.lax.fori_loop, or index a weft.numpy array",
    )
    if self.shape or not dtypes.is_int(self.dtype):
        raise TypeError("Only integer scalar arrays can be converted to a scalar index.")
    return value.tolist()


def __array__(self: Value, dtype: Any = None, copy: bool | None = None, context: Any = None) -> np.ndarray[Any, Any]:
    if isinstance(self, Tracer):
        raise TracerArrayConversionError(
            concretization_error(
                self, "a NumPy array was needed; use the weft.numpy function of the same name, or weft.pure_callback"
            )
        )
    value = numpy_value(self)
    if dtype is not None and value.dtype != dtype:
        return value.astype(dtype)
    return value.copy() if copy else value


def __len__(self: Value) -> int:
    if not self.shape:
        raise TypeError("len() of unsized object")
    return self.shape[0]


def __iter__(self: Value) -> Iterator[Any]:
    if not self.shape:
        raise TypeError("iteration over a 0-d array")
    n, where = self.shape[0], spread_of(self)
    rows = _rows(self, range(n), where is not None and not where.is_fully_replicated)
    return iter([*rows]) if n <= 64 else rows


def _rows(x: Value, order: Iterable[int], divided: bool) -> Iterator[Any]:
    """The rows of an array. One that is divided over devices is taken to the first of them; what other processes have
    of it can't be moved.
    """
    if not divided or not x.is_fully_addressable:
        yield from (x[i] for i in order)
        return
    x = dispatch.on_first_device(x)
    for i in order:
        with off_mesh():  # of which the first device is one
            row = x[i]
        yield row


def __reversed__(self: Value) -> Iterator[Any]:
    if not self.shape:
        raise TypeError("reversed() of a 0-d array")
    divided = is_array(self) and placed_of(self.aval) is not None  # rows of other arrays stay on all devices
    return iter([*_rows(self, reversed(range(self.shape[0])), divided)])


def __contains__(self: Value, item: Value) -> bool:
    if getattr(item, "shape", ()):
        raise ValueError(f"`in` asks for one element, got an array of shape {item.shape}.")
    return bool(reductions.any(comparisons.equal(self, item)))


def _parts(self: Value) -> Parts | None:
    return parts_of.get(type(self.aval)) if isinstance(self, Tracer) else None


def __getitem__(self: Value, idx: Any) -> Value:
    if parts := _parts(self):
        return parts.get(self, idx)
    return indexing.take_index(self, idx)


def __setitem__(self: Value, idx: Any, value: Value) -> None:
    if parts := _parts(self):
        return parts.set(self, idx, value)
    raise TypeError(
        at_user_line(
            "arrays are immutable, so an item can't be assigned. Instead of x[idx] = y use x = x.at[idx].set(y)."
        )
    )


def _at(self: Value) -> Any:
    if parts := _parts(self):
        return parts.at(self)
    return updates.IndexUpdateHelper(self)


def __delitem__(self: Value, idx: Any) -> NoReturn:
    raise AttributeError("arrays are immutable, so an item can't be deleted. Use jnp.delete(x, idx).")


def __repr__(self: Value) -> str:
    if isinstance(self, Tracer):
        return f"Tracer({self.aval.str_short(short_dtypes=False)})"
    if self.is_deleted():
        return f"Array(<deleted>, shape={self.shape}, dtype={dtypes.name(self.dtype)})"
    if not self._is_readable:
        return f"Array(shape={self.shape}, dtype={dtypes.name(self.dtype)})"
    return repr_text(self._host().tolist(), self.shape, self.dtype, self.weak_type)


def __str__(self: Value) -> str:
    return (
        repr(self)
        if isinstance(self, Tracer) or not self._is_readable
        else str_text(self._host().tolist(), self.shape, self.dtype)
    )


def __format__(self: Value, spec: str) -> str:
    if isinstance(self, Tracer):
        if spec:
            raise TypeError(concretization_error(self, f"the format {spec!r} was asked for; use weft.debug.print"))
        return str(self)
    if self.shape and spec:
        raise TypeError(
            f"an array of shape {self.shape} takes no format {spec!r}; format its elements, or set"
            " weft.numpy.set_printoptions."
        )
    return format(self._host().tolist(), spec) if spec else str(self)


def tolist(self: Value) -> Any:
    """The elements as nested Python lists (a number for rank 0)."""
    return _concrete(self, ConcretizationTypeError, "tolist() was called").tolist()


def item(self: Value, *args: Value) -> Any:
    """One element as a Python number."""
    value = _concrete(self, ConcretizationTypeError, "item() was called")
    if args:
        args = args[0] if len(args) == 1 and isinstance(args[0], tuple) else args
        sizes = (self.size,) if len(args) == 1 else self.shape
        if len(args) == len(sizes) and not all(-n <= index(i) < n for i, n in zip(args, sizes)):
            raise IndexError(f"item: the index {args} is out of bounds for shape {self.shape}.")
        picked = self.reshape(-1)[args[0]] if len(args) == 1 else self[tuple(args)]
        return picked._host().tolist()
    if self.size != 1:
        raise ValueError("can only convert an array of size 1 to a Python scalar")
    return _first(value.tolist())


def astype(self: Value, dtype: DTypeLike | None, copy: bool = False, device: Placement = None) -> Array:
    """The array with another dtype."""
    return shapes.astype(self, dtype, copy=copy, device=device)


def reshape(
    self: Value, *args: Value, order: str = "C", copy: bool | None = None, out_sharding: OutSharding = None
) -> Array:
    """The same elements with another shape."""
    return shapes.reshape(self, args[0] if len(args) == 1 else args, order, copy=copy, out_sharding=out_sharding)


def transpose(self: Value, *args: Value) -> Array:
    """The array with its axes in another order (reversed by default)."""
    return shapes.transpose(
        self,
        (
            None
            if not args or args == (None,)
            else args[0]
            if len(args) == 1 and isinstance(args[0], (list, tuple))
            else args
        ),
    )


def view(self: Value, dtype: DTypeLike | None = None, type: Any = None) -> Array:
    """The same bytes as another dtype."""
    if type is not None:
        raise NotImplementedError("view with a type is not supported; give a dtype.")
    return shapes.view(self, dtype)


def copy(self: Value) -> Array:
    """A copy."""
    return creation.array(self, copy=True)


def __reduce__(self: Value) -> str | tuple[Any, ...]:
    """Pickles hold the value and the type. A loaded array is uncommitted, on the default device."""
    return _loaded, (
        bytes(to_bytes(_concrete(self, ConcretizationTypeError, "a traced value can't be pickled"))),
        self.aval,
    )


def _loaded(data: bytes, aval: AbstractValue) -> Value:
    return dispatch.put(from_bytes(data, aval.shape, aval.dtype), aval)


def _rounded(self: Value, ndigits: int | None = None) -> Value:
    """round(x) gives integers, as for Python's numbers; round(x, n) has the dtype of x."""
    return shapes.astype(rounding.round(self), int) if ndigits is None else rounding.round(self, ndigits)


def tobytes(self: Value, order: str = "C") -> bytes:
    """The bytes of the elements, in rows."""
    return bytes(to_bytes(_concrete(self if order != "F" else self.T, ConcretizationTypeError, "tobytes() was called")))


def byteswap(self: Value) -> Array:
    """The elements with their bytes in reverse order."""
    if dtypes.is_complex(self.dtype):
        return el.complex_(byteswap(self.real), byteswap(self.imag))
    if self.itemsize == 1:
        return self
    return shapes.view(shapes.flip(shapes.view(self[..., None], "uint8"), -1), self.dtype)[..., 0]


def clip(self: Value, min: Value = None, max: Value = None) -> Array:
    """The array limited to [min, max]."""
    return ufuncs.clip(self, min, max)


def to_device(self: Value, device: Placement, *, stream: None = None) -> Array:
    """The array on another device."""
    if stream is not None:
        raise NotImplementedError(f"to_device: streams are not supported, got stream={stream!r}; leave it out.")
    return creation.array(self, copy=False, device=device)


def __array_namespace__(self: Value, *, api_version: str | None = None) -> Any:
    """The module weft.numpy, which follows the array API standard from 2022.12 to 2025.12; ValueError for another
    version.
    """
    if api_version not in (None, "2022.12", "2023.12", "2024.12", "2025.12"):
        raise ValueError(
            f"__array_namespace__: api_version {api_version!r} is not available; weft.numpy follows 2022.12 to 2025.12."
        )
    return namespace()


# The module weft.numpy, which defines this.
namespace: Hook[[], Any] = Hook("the namespace of arrays")


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Value, *args: Value, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.__name__, method.__doc__ = function.__name__, function.__doc__
    setattr(method, "__wrapped__", function)  # noqa: B010  # its parameters are the method's
    return method


def compress(
    self: Value, condition: Value, axis: Any = None, *, out: Value = None, size: Any = None, fill_value: Value = 0
) -> Array:
    """The slices along an axis (elements of the flattened array by default) where `condition` is true."""
    return selecting.compress(condition, self, axis, out=out, size=size, fill_value=fill_value)


def flatten(self: Value, order: str = "C", *, out_sharding: OutSharding = None) -> Array:
    """The elements in one row."""
    return shapes.ravel(self, order, out_sharding=out_sharding)


def addressable_data(self: Value, index: int) -> Array:
    """The part of the array that lies on the device of that number among those that have parts."""
    return self.addressable_shards[index].data


def _format(self: Value) -> Format:
    """The order of the array's axes in memory, and its sharding."""
    return Format(Layout(tuple(range(self.ndim)), ()), self.sharding)


def _methods() -> dict[str, Any]:
    table: dict[str, Any] = {}
    for name, operation in _BINARY.items():
        table[f"__{name}__"], table[f"__r{name}__"] = _operator(operation), _operator(operation, True)
    for name, operation in _COMPARE.items():
        table[f"__{name}__"] = _operator(operation)
    table["__pow__"], table["__rpow__"] = _power, _operator(ufuncs.power, True)
    table.update(
        __neg__=lambda self: ufuncs.negative(self),
        __pos__=lambda self: ufuncs.positive(self),
        __abs__=lambda self: ufuncs.abs(self),
        __invert__=lambda self: ufuncs.invert(self),
        __round__=_rounded,
    )
    table["__hash__"], table["format"] = None, property(_format)
    table["__copy__"], table["__deepcopy__"] = copy, lambda self, memo: copy(self)
    plain: tuple[Callable[..., Any], ...] = (
        __bool__,
        __float__,
        __int__,
        __complex__,
        __index__,
        __array__,
        __len__,
        __iter__,
        __reversed__,
        __contains__,
        __getitem__,
        __setitem__,
        __delitem__,
        __repr__,
        __str__,
        __format__,
        __array_namespace__,
        __reduce__,
        tolist,
        item,
        astype,
        reshape,
        transpose,
        view,
        copy,
        clip,
        to_device,
        byteswap,
        tobytes,
        compress,
        flatten,
        addressable_data,
    )
    table.update({function.__name__: function for function in plain})
    for module, names in (
        (reductions, "all any argmax argmin max mean min prod ptp std sum var"),
        (cumulative, "cumprod cumsum"),
        (shapes, "ravel squeeze swapaxes"),
        (joining, "repeat"),
        (complex_parts, "conj conjugate"),
        (rounding, "round"),
        (products, "dot"),
        (sorting, "argsort sort searchsorted argpartition partition"),
        (selecting, "nonzero"),
        (taking, "choose take"),
        (diagonals, "diagonal trace"),
    ):
        for name in names.split():
            table[name] = _method(getattr(module, name))
    table.update(
        T=property(lambda self: shapes.transpose(self)),
        mT=property(lambda self: shapes.matrix_transpose(self)),
        real=property(lambda self: complex_parts.real(self)),
        imag=property(lambda self: complex_parts.imag(self)),
        at=property(_at),
        itemsize=property(lambda self: dtypes.itemsize(self.dtype)),
    )
    return table


def _addupdate(self: Value) -> Callable[..., Any]:
    parts = _parts(self)
    if parts is None:
        raise AttributeError(f"{type(self).__name__!r} object has no attribute 'addupdate'")
    return partial(parts.add, self)


install_methods(_methods())
install_methods({"addupdate": property(_addupdate)}, of_tracers_alone=True)
