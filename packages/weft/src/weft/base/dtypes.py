"""Element types: their names, kinds and sizes, and the dtypes of values.

A dtype is a `numpy.dtype` where NumPy is there and an equal-looking `DType` where it is not. Code asks this module
(`kind`, `bits`, `is_float`, …) and never the object, because NumPy's `kind` is wrong for the ml_dtypes.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Callable, Protocol, TypeAlias, TypeGuard, runtime_checkable

from .annotations import override
from .config import config
from .errors import at_user_line
from .hooks import Hook
from .host import HostArray, has_numpy, late, late_dtypes, np

if TYPE_CHECKING:
    from .array import Array

# name: (kind, bits); kinds: b bool, i signed, u unsigned, f float, c complex, k opaque (random keys), 0 float0
_TABLE = {
    "bool": ("b", 8),
    "int1": ("i", 1),
    "int2": ("i", 2),
    "int4": ("i", 4),
    "int8": ("i", 8),
    "int16": ("i", 16),
    "int32": ("i", 32),
    "int64": ("i", 64),
    "uint1": ("u", 1),
    "uint2": ("u", 2),
    "uint4": ("u", 4),
    "uint8": ("u", 8),
    "uint16": ("u", 16),
    "uint32": ("u", 32),
    "uint64": ("u", 64),
    "float4_e2m1fn": ("f", 4),
    "float6_e2m3fn": ("f", 6),
    "float6_e3m2fn": ("f", 6),
    "float8_e3m4": ("f", 8),
    "float8_e4m3": ("f", 8),
    "float8_e4m3fn": ("f", 8),
    "float8_e5m2": ("f", 8),
    "float8_e4m3b11fnuz": ("f", 8),
    "float8_e4m3fnuz": ("f", 8),
    "float8_e5m2fnuz": ("f", 8),
    "float8_e8m0fnu": ("f", 8),
    "bfloat16": ("f", 16),
    "float16": ("f", 16),
    "float32": ("f", 32),
    "float64": ("f", 64),
    "complex64": ("c", 64),
    "complex128": ("c", 128),
}
NAMES = frozenset(_TABLE)  # of all dtypes of arrays; keys are stored as arrays of uint32
# the narrowest types, which promote only with bool and Python scalars and, if they are floats, with integers
_NARROWEST = {name: kind for name, (kind, bits) in _TABLE.items() if bits < 8 or kind == "f" and bits == 8}
_ML = (*_NARROWEST, "bfloat16")


class DType:
    """A dtype where NumPy is absent, with the attributes of `numpy.dtype` that programs read."""

    __slots__ = ("name", "kind", "itemsize")

    def __init__(self, name: str, kind: str, bits: int):
        self.name, self.kind, self.itemsize = name, kind, max(1, bits // 8)

    @property
    def type(self) -> Any:
        return _scalar_types[self.name]

    @property
    def dtype(self) -> Any:
        """NumPy's dtype of this name, where NumPy has come: so NumPy takes this one for a dtype."""
        if not late:
            raise AttributeError("dtype")
        return late[0].dtype(self.name)

    @override
    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        try:
            return dtype(other) is self
        except TypeError:
            return False

    @override
    def __hash__(self) -> int:
        return hash(self.name)

    @override
    def __repr__(self) -> str:
        return f"dtype('{self.name}')"

    @override
    def __str__(self) -> str:
        return self.name

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return (dtype, (self.name,))


class ExtendedDType:
    """Base of dtypes whose elements are not numbers. Random keys are the only kind."""

    kind = "k"
    name: str
    itemsize: int


class KeyDType(ExtendedDType):
    """The dtype of new-style random keys: an implementation tag and the shape of the raw uint32 key behind each."""

    __slots__ = ("impl", "name", "key_shape", "itemsize")

    def __init__(self, impl: str, tag: str, key_shape: tuple[int, ...]):
        self.impl, self.name, self.key_shape, self.itemsize = impl, f"key<{tag}>", key_shape, 4 * key_shape[0]

    @property
    def type(self) -> type[prng_key]:
        return prng_key

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyDType) and self.impl == other.impl

    @override
    def __hash__(self) -> int:
        return hash(("key", self.impl))

    @override
    def __repr__(self) -> str:
        return self.name


if TYPE_CHECKING or has_numpy:
    from numpy import (
        character as character,
        complexfloating as complexfloating,
        flexible as flexible,
        floating as floating,
        generic as generic,
        inexact as inexact,
        integer as integer,
        number as number,
        object_ as object_,
        signedinteger as signedinteger,
        unsignedinteger as unsignedinteger,
    )
    from numpy.exceptions import ComplexWarning as ComplexWarning
else:

    class _Abstract(type):
        def __repr__(cls) -> str:
            return cls.__name__

    class generic(metaclass=_Abstract):
        """Root of the abstract dtype classes that `issubdtype` knows, as in NumPy."""

    class number(generic):
        pass

    class integer(number):
        pass

    class signedinteger(integer):
        pass

    class unsignedinteger(integer):
        pass

    class inexact(number):
        pass

    class floating(inexact):
        pass

    class complexfloating(inexact):
        pass

    class flexible(generic):
        pass

    class character(flexible):
        pass

    class object_(generic):
        pass

    class ComplexWarning(RuntimeWarning):
        """A conversion to a real dtype discards the imaginary part of a complex number."""


class extended(generic):
    """Abstract class of dtypes whose elements are not numbers."""


class prng_key(extended):
    """Abstract class of random-key dtypes: `issubdtype(key.dtype, prng_key)`."""


# The dtype of an array: NumPy's where that is installed, else a `DType`; a `KeyDType` for random keys, which `is_key`
# recognises.
ElementType: TypeAlias = "np.dtype[Any] | Any"


@runtime_checkable
class SupportsDType(Protocol):
    """An object with a dtype."""

    @property
    def dtype(self) -> Any: ...


# What functions accept as a dtype: a name, a type such as `float` or `weft.numpy.float32`, a dtype, or an object that
# has one.
DTypeLike: TypeAlias = "str | type[Any] | np.dtype[Any] | SupportsDType | ExtendedDType"
Typed: TypeAlias = "tuple[ElementType, bool]"  # a dtype, and whether it is weak

_by_name: dict[str, ElementType] = {}
_info: dict[ElementType, tuple[str, int]] = {}
float0: ElementType
if has_numpy:
    import ml_dtypes

    for _name, _entry in _TABLE.items():
        _by_name[_name] = np.dtype(getattr(ml_dtypes, _name) if _name in _ML else _name)
    float0 = np.dtype([("float0", np.void, 0)])
else:
    for _name, _entry in _TABLE.items():
        _by_name[_name] = DType(_name, *_entry)
    float0 = DType("float0", "V", 0)
for _name, _entry in _TABLE.items():
    _info[_by_name[_name]] = _entry
_info[float0] = ("0", 0)

bool_ = _by_name["bool"]
int32, int64, uint8, uint32 = _by_name["int32"], _by_name["int64"], _by_name["uint8"], _by_name["uint32"]
float16, float32, float64 = _by_name["float16"], _by_name["float32"], _by_name["float64"]
complex64, complex128 = _by_name["complex64"], _by_name["complex128"]

_python = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}
_aliases = {
    "float": "float64",
    "int": "int64",
    "complex": "complex128",
    "bool_": "bool",
    "f4": "float32",
    "f8": "float64",
    "i4": "int32",
    "i8": "int64",
    "u4": "uint32",
    "i1": "int8",
    "u1": "uint8",
    "f2": "float16",
}


class _ScalarType(type):
    """The metaclass of `weft.numpy.float32` and its siblings: a type that equals its dtype and makes arrays."""

    dtype: ElementType
    make: Callable[[Any, ElementType], Any]

    @override
    def __call__(cls, x: Any) -> Array:
        if isinstance(x, str):  # as Python's own types read it
            x = scalar_type_of(cls.dtype)(x)
        return cls.make(x, cls.dtype)

    @override
    def __eq__(cls, other: object) -> bool:
        return cls is other or (not isinstance(other, _ScalarType) and other is not None and _same(cls.dtype, other))

    @override
    def __ne__(cls, other: object) -> bool:
        return not cls == other

    @override
    def __hash__(cls) -> int:
        return hash(cls.dtype)

    @override
    def __instancecheck__(cls, instance: object) -> bool:
        return has_numpy and isinstance(instance, cls.dtype.type)

    @override
    def __repr__(cls) -> str:
        return f"<class 'weft.numpy.{cls.dtype.name}'>"


def _same(mine: ElementType, other: Any) -> bool:
    try:
        return mine == dtype(other)
    except TypeError:
        return False


def _scalar_type(name: str) -> _ScalarType:
    return _ScalarType(
        name,
        (),
        {
            "dtype": _by_name[name],
            "make": staticmethod(lambda value, dt: make_array(value, dt)),
            "__module__": "weft.numpy",
            "__doc__": f"The dtype {name}; called with a value, an array of it.",
        },
    )


names = tuple(_TABLE)
_scalar_types = {name: _scalar_type(name) for name in _TABLE}
bfloat16 = _by_name["bfloat16"].type if has_numpy else _scalar_types["bfloat16"]  # a class, for isinstance


# An array of a value; `weft.numpy` defines it.
make_array: Hook[[Any, ElementType], Any] = Hook("making an array by calling a dtype")


def scalar_type(name: str) -> _ScalarType:
    """`weft.numpy.float32` and so on: the callable type of dtype `name`."""
    return _scalar_types[name]


@cache
def _dtype(spec: Any) -> ElementType:
    if isinstance(spec, type) and spec in _python:
        return _by_name[_python[spec]]
    if isinstance(spec, str):
        name = _aliases.get(spec, spec)
        if name in _by_name:
            return _by_name[name]
    if has_numpy:
        try:
            result = np.dtype(spec)
        except TypeError:
            result = None
        if result is not None and (result in _info):
            return result
    elif late:  # names of its types and dtypes are ours
        try:
            name = late[0].dtype(spec).name
        except TypeError:
            name = ""
        if name in _by_name:
            return _by_name[name]
    raise TypeError(
        at_user_line(
            f"{spec!r} is not a dtype that arrays can have. Use a name such as 'float32' or weft.numpy.float32."
        )
    )


def dtype(spec: Any) -> ElementType:
    """The dtype that `spec` names (a dtype, a scalar type, a name, a Python type), not yet canonical."""
    if isinstance(spec, (ExtendedDType, DType)):
        return spec
    if isinstance(spec, _ScalarType):  # its equality calls this function, so it must not become a key of the cache
        return spec.dtype
    try:
        return _dtype(spec)
    except TypeError:
        inner = getattr(spec, "dtype", None)
        if inner is not None and inner is not spec and not isinstance(spec, type):
            return dtype(inner)
        raise


_as_dtype = dtype  # for functions with a parameter of that name
_NARROW = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}
_narrow = {_by_name[a]: _by_name[b] for a, b in _NARROW.items()}


def is_wide(dt: ElementType) -> bool:
    """Whether arrays have a dtype only where `jax_enable_x64` is on, or where they were given."""
    return dt in _narrow


def canonicalize(spec: Any) -> ElementType:
    """The dtype that arrays get for `spec`: 64-bit types become 32-bit types unless `jax_enable_x64` is on."""
    dt = dtype(spec)
    return dt if config.enable_x64 else _narrow.get(dt, dt)


def canonicalize_dtype(dtype: DTypeLike, allow_extended_dtype: bool = False) -> ElementType:
    """The dtype that arrays get for a dtype: 64-bit types become 32-bit types unless `jax_enable_x64` is on.

    Args:
        dtype: a dtype, its name, or a Python or NumPy type.
        allow_extended_dtype: whether dtypes of random keys are let through; bool.

    Returns:
        dtype

    Raises:
        TypeError: arrays can't have this dtype.
        ValueError: it is a dtype of random keys, and these are not allowed.

    Example:
        >>> import weft
        >>> weft.dtypes.canonicalize_dtype(bool)
        dtype('bool')
    """
    if isinstance(dtype, ExtendedDType) and not allow_extended_dtype:
        raise ValueError(
            f"canonicalize_dtype got the extended dtype {dtype}; pass allow_extended_dtype=True to let it through."
        )
    return canonicalize(dtype)


def kind(dt: ElementType) -> str:
    return dt.kind if isinstance(dt, ExtendedDType) else _info[dt][0]


def bits(dt: ElementType) -> int:
    return _info[dt][1]


def itemsize(dt: ElementType) -> int:
    """Bytes of one element as it is stored."""
    return dt.itemsize


def float0_zeros(shape: Any) -> Any:
    """The host array of a shape that holds nothing."""
    return np.zeros(shape, float0) if has_numpy else HostArray(shape, float0, b"")


def name(dt: ElementType) -> str:
    return "float0" if dt == float0 else dt.name


def is_bool(dt: ElementType) -> bool:
    return kind(dt) == "b"


def is_int(dt: ElementType) -> bool:
    return kind(dt) in "iu"


def is_signed(dt: ElementType) -> bool:
    return kind(dt) == "i"


def is_unsigned(dt: ElementType) -> bool:
    return kind(dt) == "u"


def is_float(dt: ElementType) -> bool:
    return kind(dt) == "f"


def is_complex(dt: ElementType) -> bool:
    return kind(dt) == "c"


def is_inexact(dt: ElementType) -> bool:
    return kind(dt) in "fc"


def is_key(dt: ElementType) -> TypeGuard[KeyDType]:
    return isinstance(dt, KeyDType)


def real_of(dt: ElementType) -> ElementType:
    """The dtype of the real part of complex dtype `dt`."""
    return float32 if dt == complex64 else float64


def complex_of(dt: ElementType) -> ElementType:
    """The complex dtype whose parts have dtype `dt`."""
    return complex128 if dt == float64 else complex64


_ABSTRACT = {
    "b": (),
    "i": (signedinteger, integer, number),
    "u": (unsignedinteger, integer, number),
    "f": (floating, inexact, number),
    "c": (complexfloating, inexact, number),
    "k": (prng_key, extended),
}


def issubdtype(a: Any, b: Any) -> bool:
    """Whether a dtype is of a kind, as `numpy.issubdtype` tells for the dtypes that NumPy has.

    Args:
        a: a dtype, its name, or an abstract class.
        b: a dtype, or an abstract class such as `weft.numpy.integer`.

    Returns:
        bool

    Raises:
        TypeError: `a` or `b` is no dtype that arrays can have.

    Example:
        >>> import weft
        >>> weft.dtypes.issubdtype(weft.dtypes.bfloat16, weft.numpy.floating)
        True
    """
    if isinstance(a, type) and not isinstance(a, _ScalarType) and a not in _python and a not in _concrete_types():
        return isinstance(b, type) and issubclass(a, b)
    a = dtype(a)
    if b is generic:
        return True
    if isinstance(b, type) and not isinstance(b, _ScalarType) and b not in _python and b not in _concrete_types():
        return b in _ABSTRACT[kind(a)]
    if isinstance(b, ExtendedDType) or isinstance(a, ExtendedDType):
        return a == b
    return a == dtype(b)


@cache
def _concrete_types() -> frozenset[type[Any]]:
    return frozenset(dt.type for dt in _by_name.values()) if has_numpy else frozenset()


def is_python_scalar(x: object) -> bool:
    return type(x) in _python


def python_scalar_dtype(x: bool | int | float | complex) -> ElementType:
    """The canonical dtype that a Python scalar has by itself."""
    return canonicalize(_python[type(x)])


def _typed(x: Any) -> Typed:
    """(dtype, weak) of an array, a number, a dtype or a Python type."""
    if isinstance(x, type) and x in _python or is_python_scalar(x):
        x = x if isinstance(x, type) else type(x)
        return canonicalize(x), x is not bool
    if hasattr(x, "dtype") and hasattr(x, "shape"):
        return canonicalize(x.dtype), getattr(x, "weak_type", False)
    return canonicalize(x), False


def itemsize_bits(dtype: DTypeLike) -> int:
    """How many bits an element has: 4 for int4; 8 for bool.

    Args:
        dtype: a dtype of numbers, or its name.

    Returns:
        int

    Raises:
        TypeError: arrays can't have this dtype.

    Example:
        >>> import weft
        >>> weft.dtypes.itemsize_bits("int4")
        4
    """
    return bits(_as_dtype(dtype))


def scalar_type_of(x: Any) -> type[bool | int | float | complex]:
    """The Python type that corresponds to a dtype.

    Args:
        x: an array of numbers of any shape, a number, or a dtype.

    Returns:
        `bool`, `int`, `float` or `complex`, whichever matches the dtype.

    Raises:
        TypeError: `x` has no dtype, or one of random keys, which are no numbers.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.dtypes.scalar_type_of(jnp.ones(2, "uint8"))
        <class 'int'>
    """
    dt = _typed(x)[0]
    found = {"b": bool, "i": int, "u": int, "f": float, "c": complex}.get(kind(dt))
    if found is None:
        raise TypeError(f"{name(dt)} has no Python type of numbers. Take its words: weft.random.key_data(keys).")
    return found


late_dtypes.define(dtype)


def host_dtype(value: Any) -> ElementType:
    """The dtype of a host array."""
    return value.dtype if isinstance(value, HostArray) else dtype(value.dtype)
