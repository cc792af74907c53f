"""Traces. The current trace decides what `bind` does. There are no levels, and there is no global stack.

A transformation makes a trace that holds its parent, runs the function with that trace current, and evaluates the
rules it applies under the parent.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, TypeAlias

from ..base.scoped import scoped
from ..base.annotations import override
from ..base import dtypes
from ..base.avals import AbstractValue, ShapeDtypeStruct, ShapedArray, SymbolicSize, scalar_aval, shaped
from ..base.errors import UnexpectedTracerError, at_user_line
from ..base.host import HostArray, has_numpy, np
from ..base.late_numpy import when_numpy_comes
from ..base.mesh import type_of_sharding
from .scalars import TypedScalar

if TYPE_CHECKING:
    from .types import ElementType, Params, Shape, Size, Value

Operation: TypeAlias = Any  # a `Primitive`, whose module is above this one


class Trace:
    """Base of traces. `process` gives the result of a primitive for arguments of which some may be this trace's
    tracers.
    """

    closed = False  # whether the function has returned that was being traced

    @property
    def main(self) -> Trace:  # libraries compare these
        return self

    def process(self, primitive: Operation, args: tuple[Value, ...], params: Params) -> Any:
        raise NotImplementedError


class InnerTrace(Trace):
    """Base of traces inside another trace, which executes the operations of their rules."""

    parent: Trace

    def pass_on(self, primitive: Operation, args: tuple[Value, ...], params: Params) -> Any:
        """The result of a primitive that does not concern this trace: its parent's."""
        with tracing(self.parent):
            return self.parent.process(primitive, args, params)


class PairTrace(InnerTrace):
    """Base of traces whose values are pairs: with a tangent, with a batch axis."""

    def split(self, x: Value) -> tuple[Value, Any]:
        """The parts of a value, which may belong to another trace."""
        raise NotImplementedError

    def join(self, first: Value, second: Any) -> Value:
        """The value of a pair: the first if the second is trivial."""
        raise NotImplementedError

    def by_rule(
        self, rule: Callable[..., tuple[Any, Any]], primitive: Operation, args: tuple[Value, ...], params: Params
    ) -> Any:
        """The result by `rule(firsts, seconds, **params)`, which runs under the parent."""
        pairs = [self.split(x) for x in args]
        with tracing(self.parent):
            firsts, seconds = rule([a for a, _ in pairs], [b for _, b in pairs], **params)
        return (
            [self.join(a, b) for a, b in zip(firsts, seconds)]
            if primitive.multiple_results
            else self.join(firsts, seconds)
        )


class Tracer:
    """A value that stands for an array while a function is traced. The array library installs its operators and
    methods.
    """

    __slots__ = ("_trace", "__weakref__")
    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]

    _trace: Trace

    @property
    def aval(self) -> AbstractValue:
        raise NotImplementedError

    @property
    def shape(self) -> Shape:
        return self.aval.shape

    @property
    def dtype(self) -> ElementType:
        return self.aval.dtype

    @property
    def weak_type(self) -> bool:
        return self.aval.weak_type

    @property
    def ndim(self) -> int:
        return len(self.aval.shape)

    @property
    def size(self) -> Size:
        return self.aval.size

    @property
    def nbytes(self) -> Size:
        return self.aval.size * dtypes.itemsize(self.aval.dtype)

    @property
    def is_fully_addressable(self) -> bool:
        return True


def _no_runtime(primitive: Operation, args: tuple[Value, ...], params: Params) -> Any:
    raise RuntimeError(f"{primitive.name} can't run: weft.runtime, which runs primitives, has not been imported.")


class EvalTrace(Trace):
    """The root: runs primitives on concrete arrays, as the runtime says (`run_with`)."""

    def __init__(self) -> None:
        self._run: Callable[[Operation, tuple[Value, ...], Params], Any] = _no_runtime

    def run_with(self, run: Callable[[Operation, tuple[Value, ...], Params], Any]) -> None:
        """Has `run(primitive, args, params)` compute the results of primitives from now on."""
        self._run = run

    @override
    def process(self, primitive: Operation, args: tuple[Value, ...], params: Params) -> Any:
        for x in args:
            if isinstance(x, Tracer):
                raise leaked(x)
        run = self._run  # apart from its call, which is faster so
        return run(primitive, args, params)


def leaked(tracer: Tracer) -> UnexpectedTracerError:
    where = getattr(tracer, "origin", None)
    return UnexpectedTracerError(
        f"a traced value of type {tracer.aval.str_short()} is used after the function that was being traced has"
        f" returned{f'; it was made at {where}' if where else ''}. It was kept in a global, an attribute or a closure:"
        " return it from the traced function instead."
        f"{'' if where else ' With JAX_CHECK_TRACER_LEAKS=1, the error says where it was made.'}"
    )


root = EvalTrace()
_current: ContextVar[Trace] = ContextVar("trace", default=root)
current_trace = _current.get
_watchers: list[Callable[[bool], None]] = []


def watch(callback: Callable[[bool], None]) -> None:
    """Registers `callback(trace is root)`, which is called in the thread in which the current trace changes. A backend
    uses it whose cached calls do not run Python.
    """
    _watchers.append(callback)


def _notify(is_root: bool) -> None:
    for callback in _watchers:
        callback(is_root)


class tracing:
    """Makes `trace` the current trace inside the block."""

    __slots__ = ("_token", "_trace", "_was_root")

    def __init__(self, trace: Trace):
        self._trace = trace

    def __enter__(self) -> None:
        self._token = token = _current.set(self._trace)
        self._was_root = token.old_value is root or token.old_value is Token.MISSING
        if (self._trace is root) is not self._was_root:
            _notify(self._trace is root)

    def __exit__(self, *error: object) -> None:
        left_root = _current.get() is root
        _current.reset(self._token)
        if left_root is not self._was_root:
            _notify(not left_root)


class Axis(NamedTuple):
    """A mapped axis: its name (None when anonymous) and size."""

    name: Any
    size: int
    manual: bool = False  # its members are devices (pmap, shard_map)
    checked: bool = False  # types say whether values differ between them (shard_map's check_vma)
    spmd: tuple[Any, ...] = ()  # the mesh axes along which the members are placed (vmap's spmd_axis_name)
    placed: Any = None  # how types say that the axis is divided, as the sharding of an array of one axis


_axes: ContextVar[tuple[Axis, ...]] = ContextVar("axes", default=())


def mapped_axes(*axes: Axis) -> scoped[tuple[Axis, ...]]:
    """Context manager: brings named axes into scope for collectives."""
    return scoped(_axes, (*_axes.get(), *(a for a in axes if a.name is not None)))


def axis_env() -> tuple[Axis, ...]:
    return _axes.get()


def axis_size_of(name: Any) -> int:
    axis: Axis
    for axis in reversed(_axes.get()):
        if axis.name == name:
            return axis.size
    known = ", ".join(repr(a.name) for a in _axes.get()) or "none"
    raise NameError(
        at_user_line(
            f"unbound axis name: {name!r}. Axes in scope: {known}. Bind it with vmap(…, axis_name={name!r}), pmap or"
            " shard_map."
        )
    )


# How to find the aval of a value, by its Python type.
aval_of: dict[type[Any], Callable[[Any], AbstractValue]] = {
    bool: scalar_aval,
    int: scalar_aval,
    float: scalar_aval,
    complex: scalar_aval,
}


def add_type(cls: type[Any], aval: Callable[[Any], AbstractValue]) -> None:
    """Registers the values of a class with `get_aval`: `aval(value)` is the type of a value."""
    aval_of[cls] = aval


def get_aval(x: object) -> AbstractValue:
    """The abstract value of an array, a tracer, a Python scalar or a host array.

    Args:
        x: array, tracer, number or host array, of any dtype and shape.

    Returns:
        `AbstractValue`, with its dtype and shape.

    Raises:
        TypeError: for any other value.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.typeof(jnp.ones((2, 3)))
        ShapedArray(float32[2,3])
    """
    handler = aval_of.get(type(x))
    if handler is not None:
        return handler(x)
    if isinstance(x, Tracer):
        return x.aval
    for base in type(x).__mro__[1:]:
        if base in aval_of:
            return aval_of[base](x)
    if isinstance(x, SymbolicSize):
        return x.value_aval
    if hasattr(x, "__jax_array__"):
        return get_aval(x.__jax_array__())
    raise TypeError(
        at_user_line(
            f"a value of type {type(x).__module__}.{type(x).__qualname__} is not an array or a number that weft can"
            f" compute with: {str(x)[:80]!s}. Convert it to one, or leave it out."
        )
    )


array_types: set[type[Any]] = set()  # the classes of arrays that hold values on a device


def is_array(x: Any) -> bool:
    """Whether `x` is an array on a device: no tracer, and no array of the host."""
    return type(x) in array_types


def as_operand(x: Any) -> Any:
    """What an object of another library stands for, which may be a tracer; every other value as it is."""
    if isinstance(x, Tracer) or is_array(x) or not hasattr(x, "__jax_array__"):
        return x
    return as_operand(x.__jax_array__())


def is_array_like(x: object) -> bool:
    """Whether a value can be an argument of a primitive."""
    return (
        isinstance(x, Tracer)
        or type(x) in aval_of
        or any(b in aval_of for b in type(x).__mro__)
        or hasattr(x, "__jax_array__")
    )


def host_aval(x: Any) -> ShapedArray:
    dt = dtypes.canonicalize(dtypes.host_dtype(x)) if x.dtype != dtypes.float0 else dtypes.float0
    return shaped(tuple(x.shape), dt)


aval_of[HostArray] = host_aval
aval_of[TypedScalar] = lambda x: x.aval
# where no value is needed
aval_of[ShapeDtypeStruct] = lambda x: shaped(
    x.shape, x.dtype, x.weak_type, frozenset(), type_of_sharding(x._sharding, len(x.shape))
)
if not has_numpy:
    when_numpy_comes(lambda numpy: aval_of.update({numpy.ndarray: host_aval, numpy.generic: host_aval}))
if has_numpy:
    aval_of[np.ndarray] = host_aval
    aval_of[np.generic] = host_aval
    for _t in (
        np.bool_,
        np.int8,
        np.int16,
        np.int32,
        np.int64,
        np.uint8,
        np.uint16,
        np.uint32,
        np.uint64,
        np.float16,
        np.float32,
        np.float64,
        np.complex64,
        np.complex128,
    ):
        aval_of[_t] = host_aval
