"""Abstract values: what is known about an array while a program is traced."""

from __future__ import annotations

import math
from functools import lru_cache
from operator import index
from typing import TYPE_CHECKING, Any, ContextManager, Iterable, TypeAlias, final

from .annotations import override
from . import dtypes
from .config import config, enable_x64
from .errors import BackendError, at_user_line, type_error
from .mesh import (
    AbstractMesh,
    NamedSharding,
    P,
    Sharding,
    canonical_sharding,
    get_abstract_mesh,
    type_of_sharding,
)

if TYPE_CHECKING:
    from .array import ArrayLike
    from .layout import Format

_SHORT = {"bool": "bool", "bfloat16": "bf16", "float0": "float0"}


def short_name(dt: dtypes.ElementType) -> str:
    """`f32`, `i32`, `bf16`, `key<fry>`: the dtype as jaxprs print it."""
    name = dtypes.name(dt)
    if name in _SHORT or dtypes.is_key(dt):
        return _SHORT.get(name, name)
    return name.replace("complex", "c").replace("float", "f").replace("uint", "u").replace("int", "i")


Size: TypeAlias = int | Any  # an integer, or a symbolic dimension, which computes like one
Shape: TypeAlias = tuple[Size, ...]


class AbstractValue:
    """Base of abstract values, which have the attributes of arrays that programs read. An effect token has only a
    shape.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def shape(self) -> Shape: ...
        @property
        def dtype(self) -> dtypes.ElementType: ...
        @property
        def weak_type(self) -> bool: ...
        @property
        def ndim(self) -> int: ...
        @property
        def size(self) -> Size: ...
        def str_short(self, short_dtypes: bool = True) -> str: ...


class SymbolicSize:
    """Base of sizes that a program leaves open; see `weft.symbolic.dims`."""

    __slots__ = ()

    @property
    def value_aval(self) -> ShapedArray:
        """The type of the size as a number."""
        raise NotImplementedError


def as_size(n: Any) -> Size:
    """A size: an integer, or a symbolic dimension as it is."""
    return n if type(n) is int or isinstance(n, SymbolicSize) else int(index(n))


@lru_cache
def _unsharded(ndim: int, mesh: AbstractMesh) -> NamedSharding:
    return NamedSharding(mesh, P(*[None] * ndim))


class ShapedArray(AbstractValue):
    """A shape, a dtype and whether the type is weak (came from a Python scalar and yields to others in promotion).

    `vma` names the axes of devices along which the value may vary, inside a shard_map that checks it. `placed` is how
    the value is divided along explicit axes of a mesh, or None if it is not.
    """

    __slots__ = ("shape", "dtype", "weak_type", "vma", "placed", "_hash", "__weakref__")

    def __init__(
        self,
        shape: Iterable[Any],
        dtype: Any,
        weak_type: bool = False,
        sharding: Any = None,
        vma: Iterable[Any] = frozenset(),
        memory_space: Any = None,
    ):
        # plain integers only: equal avals are shared, and 2.0 or True would be found again where 2 or 1 is meant
        self.shape: Shape = tuple([n if type(n) is int else as_size(n) for n in shape])
        self.dtype: dtypes.ElementType = dtypes.dtype(dtype)
        self.weak_type: bool = weak_type
        self.vma: frozenset[Any] = vma if type(vma) is frozenset else frozenset(vma)
        self.placed: NamedSharding | None = sharding and type_of_sharding(sharding, len(self.shape))
        if self.placed is not None:
            self.placed.shard_shape(self.shape)
        self._hash: int | None = None

    @property
    @override
    def ndim(self) -> int:
        return len(self.shape)

    @property
    @override
    def size(self) -> Size:
        size: Size = 1
        for n in self.shape:
            size *= n
        return size

    @property
    def sharding(self) -> NamedSharding:
        """How the value is divided along explicit axes of a mesh."""
        return self.placed or _unsharded(len(self.shape), get_abstract_mesh())

    @override
    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(other) is ShapedArray
            and self.shape == other.shape
            and self.dtype == other.dtype
            and self.weak_type == other.weak_type
            and self.vma == other.vma
            and self.placed == other.placed
        )

    @override
    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.shape, self.dtype, self.weak_type, self.vma, self.placed))
        return self._hash

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return shaped, (self.shape, self.dtype, self.weak_type, self.vma, self.placed)

    def update(
        self,
        shape: Iterable[Size] | None = None,
        dtype: dtypes.ElementType | None = None,
        weak_type: bool | None = None,
        vma: frozenset[Any] | None = None,
        sharding: NamedSharding | None = None,
    ) -> "ShapedArray":
        """A copy with other parts. One with another shape is not divided, unless `sharding` is given."""
        return shaped(
            self.shape if shape is None else tuple(shape),
            self.dtype if dtype is None else dtype,
            self.weak_type if weak_type is None else weak_type,
            self.vma if vma is None else vma,
            self.placed if sharding is None and shape is None else sharding,
        )

    def strip_weak_type(self) -> "ShapedArray":
        return self.update(weak_type=False) if self.weak_type else self

    def without_sharding(self) -> ShapedArray:
        """The same type for a value that is not divided."""
        return self if self.placed is None else shaped(self.shape, self.dtype, self.weak_type, self.vma)

    def to_tangent_aval(self) -> ShapedArray:
        return self if dtypes.is_inexact(self.dtype) else self.update(dtype=dtypes.float0, weak_type=False)

    @override
    def str_short(self, short_dtypes: bool = True) -> str:
        name = short_name(self.dtype) if short_dtypes else dtypes.name(self.dtype)
        return f"{name}[{','.join(self._sizes())}]{self._marks()}"

    def _sizes(self) -> list[str]:
        """The sizes, and the axes of the mesh that divide them: `8@x`."""
        sizes = [str(n) for n in self.shape]
        if self.placed is None:
            return sizes
        named = [f"({','.join(map(str, p))})" if isinstance(p, tuple) else p for p in self.placed.spec]
        return [n if p is None else f"{n}@{p}" for n, p in zip(sizes, named)]

    def _marks(self) -> str:
        """The axes along which the value varies, is unreduced or reduced: `{V:x}`."""
        spec = self.placed.spec if self.placed is not None else P()
        marks = [("V", self.vma), ("U", spec.unreduced), ("R", spec.reduced)]
        text = ",".join(f"{mark}:{_listed(axes)}" for mark, axes in marks if axes)
        return f"{{{text}}}" if text else ""

    @override
    def __str__(self) -> str:
        return ("~" if self.weak_type else "") + self.str_short(short_dtypes=False)

    @override
    def __format__(self, spec: str) -> str:
        """The name in error messages. `str` marks a weak type with ~, as jax does, which readers of a message may not
        know.
        """
        return format(("weakly typed " if self.weak_type else "") + self.str_short(short_dtypes=False), spec)

    @override
    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({dtypes.name(self.dtype)}[{','.join(self._sizes())}]{self._marks()}{weak})"


def _listed(axes: Iterable[Any]) -> str:
    names = sorted(map(str, axes))
    return names[0] if len(names) == 1 else f"({','.join(names)})"


def array_type(aval: AbstractValue) -> ShapedArray:
    """Narrows the type of an array. Raises BackendError for other types, such as that of a token, which are not
    stored.
    """
    if not isinstance(aval, ShapedArray):
        raise BackendError(
            f"a value of type {aval} is not an array, and can't be an argument or a result of a compiled program."
        )
    return aval


@final
class AbstractRef(AbstractValue):
    """The type of mutable references to an array of type `inner`."""

    __slots__ = ("inner", "memory_space", "kind")

    def __init__(self, inner_aval: ShapedArray, memory_space: Any = None, kind: Any = None):
        self.inner, self.memory_space, self.kind = inner_aval, memory_space, kind

    @property
    def inner_aval(self) -> ShapedArray:
        return self.inner

    @property
    @override
    def shape(self) -> Shape:
        return self.inner.shape

    @property
    @override
    def dtype(self) -> dtypes.ElementType:
        return self.inner.dtype

    @property
    @override
    def weak_type(self) -> bool:
        return self.inner.weak_type

    @property
    @override
    def ndim(self) -> int:
        return self.inner.ndim

    @property
    @override
    def size(self) -> Size:
        return self.inner.size

    @override
    def __eq__(self, other: object) -> bool:
        return type(other) is AbstractRef and self.inner == other.inner

    @override
    def __hash__(self) -> int:
        return hash((AbstractRef, self.inner))

    @override
    def str_short(self, short_dtypes: bool = True) -> str:
        return f"Ref{{{self.inner.str_short(short_dtypes)}}}"

    @override
    def __str__(self) -> str:
        return f"Ref{{{self.inner}}}"

    @override
    def __repr__(self) -> str:
        return f"AbstractRef({self.inner})"


def array_aval(aval: AbstractValue) -> ShapedArray:
    """Narrows the type of an array; raises TypeError for the type of a reference or a token."""
    if isinstance(aval, ShapedArray):
        return aval
    raise type_error(
        f"an array is needed here, and this is of type"
        f" {aval.str_short(short_dtypes=False)}. If it is a reference, pass its value (ref[...])."
    )


def reshaped(aval: AbstractValue, shape: Iterable[Size]) -> AbstractValue:
    """The same type with another shape."""
    return (
        AbstractRef(aval.inner.update(shape=shape))
        if isinstance(aval, AbstractRef)
        else array_aval(aval).update(shape=shape)
    )


class AbstractToken(AbstractValue):
    """The type of the tokens that order effects."""

    __slots__ = ()
    shape, weak_type = (), False

    @override
    def str_short(self, short_dtypes: bool = True) -> str:
        return "Tok"

    __repr__ = __str__ = str_short


token = AbstractToken()


@lru_cache(maxsize=65536)
def shaped(
    shape: Shape,
    dtype: dtypes.ElementType,
    weak_type: bool = False,
    vma: frozenset[Any] = frozenset(),
    sharding: NamedSharding | None = None,
) -> ShapedArray:
    """The aval of a shape and dtype. Equal avals are one object, so comparing them is cheap."""
    return ShapedArray(shape, dtype, weak_type, sharding, vma)


def countable(shape: Shape, dtype: dtypes.ElementType) -> bool:
    """Whether 63 bits count an array's bytes, and would if none of its sizes were zero: strides and layouts are
    products of the others.
    """
    sizes = [n for n in shape if type(n) is int and n]
    return math.prod(sizes) * max(1, dtypes.itemsize(dtype)) < 1 << 63


def keeping_64_bits(avals: Iterable[AbstractValue]) -> ContextManager[None]:
    """Turns 64-bit types on if one of `avals` has one: a program that was traced without them may still be called with
    such arrays.
    """
    return enable_x64(config.enable_x64 or any([isinstance(a, ShapedArray) and dtypes.is_wide(a.dtype) for a in avals]))


@lru_cache(maxsize=65536)
def tangent_aval(aval: AbstractValue) -> AbstractValue:
    """The aval of tangents and cotangents: the same for floats and complex numbers, float0 for all else."""
    if isinstance(aval, AbstractRef):
        return AbstractRef(aval.inner.to_tangent_aval())
    return array_aval(aval).to_tangent_aval()


def physical(aval: AbstractValue) -> AbstractValue:
    """The aval of the stored array: random keys become arrays of uint32 with a trailing axis, and float0, which has no
    data, becomes bool.
    """
    if isinstance(aval, ShapedArray):
        if dtypes.is_key(aval.dtype):
            return shaped((*aval.shape, *aval.dtype.key_shape), dtypes.uint32, False, aval.vma)
        if aval.dtype == dtypes.float0:
            return aval.update(dtype=dtypes.bool_)
    return aval


_scalar_avals: dict[tuple[type[Any], bool], ShapedArray] = {}


def scalar_aval(value: Any) -> ShapedArray:
    """The weakly typed aval of a Python scalar."""
    key = (type(value), config.enable_x64)
    try:
        return _scalar_avals[key]
    except KeyError:
        aval = _scalar_avals[key] = shaped((), dtypes.python_scalar_dtype(value), type(value) is not bool)
        return aval


def check_range(name: str, value: int) -> None:
    """OverflowError for a Python int beyond the integers that are on (32 bits, or 64)."""
    if value.bit_length() > 31 and not -(top := 1 << dtypes.bits(scalar_aval(value).dtype) - 1) <= value < top:
        raise OverflowError(
            at_user_line(
                f"{name}: the Python integer {value} does not fit {dtypes.name(scalar_aval(value).dtype)}. Give a"
                " float, or an array of a wider dtype, or turn 64-bit types on with"
                " weft.config.update('jax_enable_x64', True)."
            )
        )


class ShapeDtypeStruct:
    """A shape and a dtype that stand for an array: `eval_shape` returns it and `lower` takes it. It is immutable and
    hashable.

    Args:
        sharding: how the array lies over devices: a `Sharding`, a `PartitionSpec` for the mesh that is set, or a
            `Format` that has one.
        weak_type: the type came from a Python number, and yields to others in promotion.
        manual_axis_type, is_ref: left at their defaults; weft has no such types here.

    Raises:
        ValueError: for a dtype of None, for what is no sharding, and for what weft has no types for.

    Example:
        >>> import weft
        >>> weft.ShapeDtypeStruct((2, 3), "float32")
        ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    __slots__ = ("shape", "dtype", "weak_type", "_sharding")
    shape: Shape
    dtype: dtypes.ElementType
    weak_type: bool
    _sharding: Sharding | P | None

    def __init__(
        self,
        shape: Iterable[Size],
        dtype: dtypes.DTypeLike,
        *,
        sharding: Sharding | P | Format | None = None,
        weak_type: bool = False,
        manual_axis_type: None = None,
        is_ref: bool = False,
    ):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct needs a dtype; got None.")
        if manual_axis_type is not None:
            raise ValueError(
                "ShapeDtypeStruct: weft says of values inside shard_map only along which axes they vary. Leave"
                " manual_axis_type out."
            )
        if is_ref:
            raise ValueError(
                "ShapeDtypeStruct: weft has no shapes that stand for references. Trace with a reference instead:"
                " weft.new_ref(weft.numpy.zeros(shape))."
            )
        # of a Format
        where = (
            sharding
            if sharding is None or isinstance(sharding, (Sharding, P))
            else getattr(sharding, "sharding", sharding)
        )
        if where is not None and not isinstance(where, (Sharding, P)):
            raise ValueError(
                f"ShapeDtypeStruct: sharding must be a weft.sharding.Sharding, a weft.P or a Format, got {where!r} of"
                f" type {type(where).__name__}."
            )
        for name, value in zip(self.__slots__, (tuple(shape), dtypes.dtype(dtype), weak_type, where)):
            object.__setattr__(self, name, value)

    @override
    def __setattr__(self, name: str, value: Any) -> None:
        raise RuntimeError(
            f"Cannot reassign attributes ({name}) of immutable ShapeDtypeStruct objects; make another with its method"
            " update."
        )

    @classmethod
    def like(cls, x: ArrayLike | ShapeDtypeStruct) -> ShapeDtypeStruct:
        """A `ShapeDtypeStruct` of the type of `x`, an array or a number, and of its sharding if it is committed to
        devices.

        Example:
            >>> import weft, weft.numpy as jnp
            >>> weft.ShapeDtypeStruct.like(jnp.zeros((2, 3)))
            ShapeDtypeStruct(shape=(2, 3), dtype=float32)
        """
        if dtypes.is_python_scalar(x):
            return cls((), scalar_aval(x).dtype, weak_type=scalar_aval(x).weak_type)
        if not hasattr(x, "shape") or not hasattr(x, "dtype") or isinstance(getattr(x, "aval", None), AbstractRef):
            raise type_error(f"ShapeDtypeStruct.like takes an array or a number, got a {type(x).__name__}.")
        given: Any = x
        where = getattr(given, "sharding", None)
        if where is not None and not isinstance(x, ShapeDtypeStruct) and not given.committed:
            where = None
        if isinstance(where, NamedSharding) and where.mesh.empty:
            where = None
        return cls(x.shape, dtypes.canonicalize(x.dtype), sharding=where, weak_type=getattr(x, "weak_type", False))

    @property
    def sharding(self) -> Sharding | None:
        """The sharding of the array, or None if it is not given."""
        where = self._sharding
        return canonical_sharding(where) if isinstance(where, P) else where

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> Size:
        size: Size = 1
        for n in self.shape:
            size *= n
        return size

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and (self.shape, self.dtype, self.weak_type, self._sharding) == (
            other.shape,
            other.dtype,
            other.weak_type,
            other._sharding,
        )

    @override
    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.weak_type))

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return _struct, (self.shape, self.dtype, self._sharding, self.weak_type)

    def update(self, **kwargs: Any) -> ShapeDtypeStruct:
        """The same with other arguments of the constructor."""
        return ShapeDtypeStruct(
            **{
                "shape": self.shape,
                "dtype": self.dtype,
                "sharding": self._sharding,
                "weak_type": self.weak_type,
                **kwargs,
            }
        )

    @override
    def __repr__(self) -> str:
        where = f", sharding={self.sharding}" if self.sharding is not None else ""
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={dtypes.name(self.dtype)}{where}{weak})"


def struct_of(aval: AbstractValue) -> ShapeDtypeStruct:
    """What stands for an array of a type, also in where types say that it is divided."""
    typed = aval.inner if isinstance(aval, AbstractRef) else aval
    sharding = typed.sharding if isinstance(typed, ShapedArray) and typed.sharding.mesh.explicit_axes else None
    return ShapeDtypeStruct(aval.shape, aval.dtype, sharding=sharding, weak_type=aval.weak_type)


def _struct(shape: Shape, dtype: dtypes.ElementType, sharding: Any, weak_type: bool) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(shape, dtype, sharding=sharding, weak_type=weak_type)
