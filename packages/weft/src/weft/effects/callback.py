"""Calls from programs to Python functions of the host: debug_callback, pure_callback, io_callback.

`runtime/effects.py` calls the functions with concrete arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence, overload

from ..base.annotations import PyTree, override
from ..base import dtypes
from ..base.avals import shaped
from ..core import effects
from ..core.primitive import Primitive, unsupported
from ..core.wire import CALLS_PYTHON
from ..core.trace import as_operand, get_aval, is_array, is_array_like
from ..base.errors import at_user_line
from ..base.host import HostArray, adopted, from_flat, has_numpy, np, unpack
from ..primitives.linear import broadcast_to_axis, expand_dims, moveaxis
from ..primitives.random_bits import random_unwrap_p, random_wrap_p
from ..primitives.shape import concatenate
from ..transforms.batch import to_front
from ..base.tree import PyTreeDef, keystr, tree_flatten, tree_flatten_with_path, tree_unflatten
from ..higher_order.scan import row, scan

if TYPE_CHECKING:
    from ..base.avals import AbstractValue, ShapeDtypeStruct
    from ..core.trace import Axis
    from ..core.types import Dims, Params, Value
    from ..base.mesh import SingleDeviceSharding
    from ..base.array import Array

VMAP_METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")

debug_callback_p = Primitive("debug_callback", multiple_results=True, hidden=("partitioned",), wire=CALLS_PYTHON)
pure_callback_p = Primitive("pure_callback", multiple_results=True, hidden=("sharding",), wire=CALLS_PYTHON)
io_callback_p = Primitive("io_callback", multiple_results=True, hidden=("sharding",), wire=CALLS_PYTHON)


class HostFunction:
    """A user's function on flat arrays. Equal objects are equal parameters, so that compiled programs are found in the
    cache.
    """

    __slots__ = ("fun", "tree", "static", "keys", "result")

    def __init__(
        self,
        fun: Callable[..., Any],
        tree: PyTreeDef,
        static: tuple[Any, ...] = (),
        keys: tuple[Any, ...] = (),
        result: PyTreeDef | None = None,
    ):
        self.fun, self.tree, self.result = fun, tree, result
        self.static = static  # (position of a leaf, its value) of leaves that are not arrays
        self.keys = keys  # (position, dtype) of leaves that are random keys, which travel as words

    @property
    def name(self) -> str:
        return getattr(self.fun, "__name__", type(self.fun).__name__)

    def __call__(self, *arrays: Value) -> Any:
        """Calls the function with arrays in the places of the leaves that are arrays."""
        static, keys, rest = dict(self.static), dict(self.keys), iter(arrays)
        leaves = [static[i] if i in static else next(rest) for i in range(self.tree.num_leaves)]
        leaves = [random_wrap_p.bind(x, impl=keys[i]) if i in keys else x for i, x in enumerate(leaves)]
        args, kwargs = tree_unflatten(self.tree, leaves)
        return self.fun(*args, **kwargs)

    def _key(self) -> tuple[Any, Any, Any, Any, Any]:
        return self.fun, self.tree, self.static, self.keys, self.result

    @override
    def __eq__(self, other: object) -> bool:
        return type(other) is HostFunction and self._key() == other._key()

    @override
    def __hash__(self) -> int:
        try:
            return hash((self.fun, self.tree, self.static))
        except TypeError:  # a static argument that can't be hashed
            return hash(self.tree)

    @override
    def __repr__(self) -> str:
        return f"<{self.name}>"


def host_function(
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[Any, Any],
    who: str,
    static: bool = False,
    result: PyTreeDef | None = None,
) -> tuple[HostFunction, list[Any]]:
    """`fun` for arguments like these, and the flat arrays to call it with. An argument that is not an array is kept
    unchanged if `static`, and an error otherwise.
    """
    if not callable(fun):
        raise TypeError(f"{who} takes a function; got {type(fun).__name__}.")
    leaves, tree = tree_flatten((args, kwargs))
    fixed, keys, arrays = [], [], []
    for i, x in enumerate(leaves):
        if not is_array_like(x):
            if not static:
                path = keystr(tree_flatten_with_path((args, kwargs))[0][i][0])
                raise TypeError(
                    at_user_line(
                        f"{who} passes arrays to {getattr(fun, '__name__', 'the function')}; the argument at {path} is"
                        f" a {type(x).__name__}. Bind it with functools.partial."
                    )
                )
            fixed.append((i, x))
            continue
        x = as_operand(x)
        dt = get_aval(x).dtype
        if dtypes.is_key(dt):
            keys.append((i, dt))
            x = random_unwrap_p.bind(x)
        arrays.append(x)
    return HostFunction(fun, tree, tuple(fixed), tuple(keys), result), arrays


# batching ------------------------------------------------------------------------------------------------------------


def _one_by_one(
    primitive: Primitive, axis: Axis, args: Sequence[Value], dims: Dims, params: Params
) -> tuple[list[Any], list[Any]]:
    """Calls the function once for each element, in a loop."""
    fixed = list(args)
    batched = [moveaxis(x, d, 0) for x, d in zip(args, dims) if d is not None]

    def step(_: object, rows: Sequence[Value]) -> tuple[Any, Any]:
        rest = iter(rows)
        outs = primitive.bind(*[x if d is None else next(rest) for x, d in zip(fixed, dims)], **params)
        return (), tuple(outs)

    outs = scan(step, (), batched, length=axis.size)[1]
    return list(outs), [0] * len(outs)


def _unrolled(
    primitive: Primitive, axis: Axis, args: Sequence[Value], dims: Dims, params: Params
) -> tuple[list[Any], list[Any]]:
    """Calls the function once for each element, one after another."""
    args = [x if d is None else moveaxis(x, d, 0) for x, d in zip(args, dims)]
    results = [
        primitive.bind(*[x if d is None else row(x, i) for x, d in zip(args, dims)], **params) for i in range(axis.size)
    ]
    outs = [concatenate([expand_dims(x, (0,)) for x in column], 0) for column in zip(*results)]
    return outs, [0] * len(outs)


def _debug_batch(axis: Axis, args: Sequence[Value], dims: Dims, **params: Any) -> tuple[Any, Any]:
    return _unrolled(debug_callback_p, axis, args, dims, params)


def batch_by_method(
    primitive: Primitive, what: str, axis: Axis, args: Sequence[Value], dims: Dims, params: dict[Any, Any]
) -> tuple[list[Any], list[Any]]:
    """A call of external code, batched as its `vmap_method` says; `what` names it in an error."""
    vmap_method = params["vmap_method"]
    if vmap_method is None:
        raise NotImplementedError(
            at_user_line(
                f"{what} is batched by vmap and doesn't say how: pass vmap_method, one of"
                f" {', '.join(map(repr, VMAP_METHODS))} ('sequential' calls the function once for each element,"
                " 'broadcast_all' once with a leading axis)."
            )
        )
    if vmap_method == "sequential_unrolled" and axis.size:
        return _unrolled(primitive, axis, args, dims, params)
    if vmap_method in ("sequential", "sequential_unrolled"):
        return _one_by_one(primitive, axis, args, dims, params)
    if vmap_method == "broadcast_all":
        args = [to_front(axis, x, d) for x, d in zip(args, dims)]
    elif vmap_method == "expand_dims":
        args = [broadcast_to_axis(x, 1) if d is None else moveaxis(x, d, 0) for x, d in zip(args, dims)]
    else:
        args = [x if d is None else moveaxis(x, d, 0) for x, d in zip(args, dims)]
    avals = tuple([shaped((axis.size, *a.shape), a.dtype) for a in params["result_avals"]])
    return primitive.bind(*args, **dict(params, result_avals=avals)), [0] * len(avals)


def _pure_batch(axis: Axis, args: Sequence[Value], dims: Dims, **params: Any) -> tuple[Any, Any]:
    return batch_by_method(pure_callback_p, f"pure_callback of {params['callback'].name}", axis, args, dims, params)


def check_vmap_method(vmap_method: str | None) -> None:
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        raise ValueError(
            f"vmap_method must be None or one of {', '.join(map(repr, VMAP_METHODS))}; got {vmap_method!r}."
        )


def _io_batch(axis: Axis, args: Sequence[Value], dims: Dims, **params: Any) -> tuple[Any, Any]:
    if params["ordered"]:
        raise ValueError(
            at_user_line(
                "vmap of an ordered io_callback: the elements of a batch have no order. Use ordered=False, or lax.map"
                " over the elements."
            )
        )
    return _one_by_one(io_callback_p, axis, args, dims, params)


# the other rules -----------------------------------------------------------------------------------------------------


def _debug_jvp(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[Any, Any]:
    debug_callback_p.bind(*primals, **params)
    return [], []


def _no_jvp(what: str) -> Callable[..., Any]:
    def jvp(
        primals: Sequence[Value], tangents: Sequence[Value], *, callback: HostFunction, **params: Any
    ) -> tuple[Any, Any]:
        raise ValueError(
            at_user_line(
                f"{what} callbacks do not support JVP: {callback.name} is a Python function, whose derivative is not"
                " known. Please use `weft.custom_jvp` (or custom_vjp) to say what it is, or `weft.lax.stop_gradient`"
                " on its arguments."
            )
        )

    return jvp


for _p in (debug_callback_p, pure_callback_p, io_callback_p):
    _p.cache = None  # a cache of types must not keep functions alive
    _p.transpose = unsupported("a callback is not linear")
debug_callback_p.abstract = lambda *avals, **_: []
pure_callback_p.abstract = io_callback_p.abstract = lambda *avals, result_avals, **_: list(result_avals)
debug_callback_p.jvp, pure_callback_p.jvp, io_callback_p.jvp = _debug_jvp, _no_jvp("Pure"), _no_jvp("IO")
debug_callback_p.batch, pure_callback_p.batch, io_callback_p.batch = _debug_batch, _pure_batch, _io_batch
_DEBUG, _ORDERED_DEBUG = frozenset([effects.debug]), frozenset([effects.ordered_debug])
_IO, _ORDERED_IO = frozenset([effects.io]), frozenset([effects.ordered_io])
debug_callback_p.effects = lambda params: _ORDERED_DEBUG if params["effect"].ordered else _DEBUG
io_callback_p.effects = lambda params: _ORDERED_IO if params["ordered"] else _IO


# what users call -----------------------------------------------------------------------------------------------------


def result_avals_of(result_shape_dtypes: Any, who: str) -> tuple[tuple[Any, ...], PyTreeDef]:
    leaves, tree = tree_flatten(result_shape_dtypes)
    avals = []
    for x in leaves:
        if not hasattr(x, "shape") or not hasattr(x, "dtype"):
            if not is_array_like(x):
                raise TypeError(
                    at_user_line(
                        f"{who}: result_shape_dtypes must be a pytree of things with a shape and a dtype, such as "
                        f"weft.ShapeDtypeStruct; got a {type(x).__name__}."
                    )
                )
            x = get_aval(x)
        avals.append(shaped(tuple(x.shape), dtypes.canonicalize(dtypes.dtype(x.dtype))))
    return tuple(avals), tree


@overload
def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: ShapeDtypeStruct | Array,
    *args: PyTree,
    sharding: SingleDeviceSharding | None = None,
    vmap_method: str | None = None,
    **kwargs: PyTree,
) -> Array: ...
@overload
def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: PyTree,
    *args: PyTree,
    sharding: SingleDeviceSharding | None = None,
    vmap_method: str | None = None,
    **kwargs: PyTree,
) -> Any: ...
def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: PyTree,
    *args: PyTree,
    sharding: SingleDeviceSharding | None = None,
    vmap_method: str | None = None,
    **kwargs: PyTree,
) -> Any:
    """Calls a Python function without side effects from a program; it may be called any number of times, or not at all.

    Args:
        callback: gets arrays in the structure of `args` and `kwargs`, and returns host arrays of the types of
            `result_shape_dtypes`.
        result_shape_dtypes: pytree of `ShapeDtypeStruct`s.
        *args: pytrees of arrays, of any dtype and shape.
        sharding: where the callback runs on one of several devices; None for the first.
        vmap_method: how vmap calls it: "sequential" or "sequential_unrolled" (once for each element), "expand_dims" or
            "broadcast_all" (once, with a leading axis on all arguments, of size 1 or repeated where they have none),
            None (an error).
        **kwargs: pytrees of arrays by name.

    Returns:
        pytree of arrays, of the dtypes and shapes of `result_shape_dtypes`.

    Raises:
        NotImplementedError: under vmap without `vmap_method`.
        ValueError, TypeError: if the callback returns another shape or dtype; RuntimeError in a compiled program.

    Example:
        >>> import math, weft
        >>> f = lambda x: weft.pure_callback(lambda v: math.erf(v), weft.ShapeDtypeStruct((), "float32"), x)
        >>> weft.jit(f)(0.5)
        Array(0.5204999, dtype=float32)
    """
    check_vmap_method(vmap_method)
    avals, tree = result_avals_of(result_shape_dtypes, "pure_callback")
    fun, flat = host_function(callback, args, kwargs, "pure_callback", result=tree)
    return tree_unflatten(
        tree, pure_callback_p.bind(*flat, callback=fun, result_avals=avals, sharding=sharding, vmap_method=vmap_method)
    )


@overload
def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: ShapeDtypeStruct | Array,
    *args: PyTree,
    sharding: SingleDeviceSharding | None = None,
    ordered: bool = False,
    **kwargs: PyTree,
) -> Array: ...
@overload
def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: PyTree,
    *args: PyTree,
    sharding: SingleDeviceSharding | None = None,
    ordered: bool = False,
    **kwargs: PyTree,
) -> Any: ...
def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: PyTree,
    *args: PyTree,
    sharding: SingleDeviceSharding | None = None,
    ordered: bool = False,
    **kwargs: PyTree,
) -> Any:
    """Calls a Python function with side effects from a program, exactly as often as the program says.

    Args:
        callback: gets arrays in the structure of `args` and `kwargs`, and returns host arrays of the types of
            `result_shape_dtypes`.
        result_shape_dtypes: pytree of `ShapeDtypeStruct`s; None for a function without result.
        ordered: calls happen in the order of the program, over several programs too.

    Example:
        >>> import weft
        >>> seen = []
        >>> weft.jit(lambda x: weft.experimental.io_callback(lambda v: seen.append(float(v)), None, x))(2.0)
        >>> weft.effects_barrier(); seen
        [2.0]
    """
    avals, tree = result_avals_of(result_shape_dtypes, "io_callback")
    fun, flat = host_function(callback, args, kwargs, "io_callback", result=tree)
    return tree_unflatten(
        tree, io_callback_p.bind(*flat, callback=fun, result_avals=avals, sharding=sharding, ordered=bool(ordered))
    )


def bind_debug_callback(
    callback: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], ordered: bool, partitioned: bool
) -> None:
    """See `weft.debug.callback`."""
    fun, flat = host_function(callback, args, kwargs, "debug.callback", static=True)
    debug_callback_p.bind(
        *flat, callback=fun, effect=effects.ordered_debug if ordered else effects.debug, partitioned=bool(partitioned)
    )


def check_results(out: Any, callback: HostFunction, avals: Sequence[Any], who: str) -> list[Any]:
    """The result of a function as flat host arrays of exactly these avals; an error names the result that differs."""
    leaves, tree = tree_flatten(out)
    if callback.result is not None and tree != callback.result:
        raise TypeError(
            f"{who}: {callback.name} returned the structure {tree} where result_shape_dtypes says {callback.result}."
        )
    results: list[Any] = []
    for i, (x, aval) in enumerate(zip(leaves, avals)):
        x = x._host() if is_array(x) else x
        if not has_numpy:
            results.append(_without_numpy(x, aval, f"{who}: result {i} of {callback.name}"))
            continue
        x = np.asarray(x)
        if x.shape != aval.shape:
            raise ValueError(
                at_user_line(
                    f"{who}: result {i} of {callback.name} has shape {x.shape} where result_shape_dtypes says"
                    f" {aval.str_short()}. Return that, or correct result_shape_dtypes."
                )
            )
        if (
            dtypes.kind(aval.dtype) not in "fc"
            and x.dtype != aval.dtype
            and not np.can_cast(x.dtype, aval.dtype, "same_kind")
            or x.dtype.kind == "c"
            and not dtypes.is_complex(aval.dtype)
            or x.dtype.kind in "OSUMm"  # objects, texts, times
        ):
            raise TypeError(
                at_user_line(
                    f"{who}: result {i} of {callback.name} has dtype {x.dtype} where result_shape_dtypes says"
                    f" {aval.str_short()}. Return that, or correct result_shape_dtypes."
                )
            )
        results.append(np.ascontiguousarray(x, aval.dtype).reshape(aval.shape))
    return results


def _without_numpy(x: Value, aval: AbstractValue, what: str) -> HostArray:
    x = adopted(x)
    shape = x.shape if isinstance(x, HostArray) else ()
    if shape != aval.shape:
        raise ValueError(f"{what} has shape {shape} where result_shape_dtypes says {aval.str_short()}.")
    if not isinstance(x, HostArray) and not dtypes.is_python_scalar(x):
        raise TypeError(f"{what} is a {type(x).__name__}; without NumPy a callback returns numbers and weft's arrays.")
    return from_flat(unpack(x.data, x.dtype.name) if isinstance(x, HostArray) else [x], shape, aval.dtype)
