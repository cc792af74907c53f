"""The public transformations, and functions that inspect, move and wait for values."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Callable, Hashable, Iterator, Literal, Sequence, overload

from ..typing import Array, ArrayLike, Placement, Tree
from ..base.annotations import Args, Function, PyTree, Result, like, override
from .autodiff import (
    closure_convert as closure_convert,
    fwd_and_bwd as fwd_and_bwd,
    grad as grad,
    hessian as hessian,
    jacfwd as jacfwd,
    jacobian as jacobian,
    jacrev as jacrev,
    jvp as jvp,
    linear_transpose as linear_transpose,
    linearize as linearize,
    value_and_grad as value_and_grad,
    vjp as vjp,
)
from ..base.avals import struct_of
from ..base.config import config
from ..base.host import late, to_numpy
from ..base.layout import Format, Layout
from ..base.memory import MemorySpace
from ..core.jaxpr import ClosedJaxpr
from ..core.trace import Axis, InnerTrace, Trace, Tracer, current_trace, is_array, mapped_axes, root, tracing
from .functions import check_callable, name_of
from ..primitives.placement import constrain, layout_constraint_p, reshard, to_memory_p, transfer_p
from ..runtime.device import backend_of
from ..runtime.dispatch import in_layout, in_memory, move
from ..runtime.gather import check_same, spans_processes
from ..runtime.jit import abstractify, check_result
from ..base.mesh import NamedSharding, P, PartitionSpec, canonical_sharding, has_several_devices
from ..runtime.guards import explicit
from ..base.source_info import api_boundary, named_scope
from ..transforms.stage import stage
from ..base.tree import PyTreeDef, broadcast_prefix, keystr, tree_flatten, tree_flatten_with_path, tree_leaves, tree_map
from .vmap import vmap as vmap

# looking at programs -------------------------------------------------------------------------------------------------


def _traced(fun: Callable, args: tuple, kwargs: dict, static: dict) -> tuple[ClosedJaxpr, PyTreeDef]:
    """The jaxpr of a call, and the structure of its result."""
    leaves, tree = tree_flatten(([a for i, a in enumerate(args) if i not in static], kwargs))
    avals = []
    for x, (path, _) in zip(
        leaves, tree_flatten_with_path((args, kwargs) if not static else tree.unflatten(leaves))[0]
    ):
        try:
            avals.append(abstractify(x))
        except TypeError as e:
            raise TypeError(
                f"Error interpreting argument to {fun} as an abstract array. The problematic value is of type {type(x)}"
                f" and was passed to the function at path {keystr(path)}. Name it in static_argnums if it is not an"
                " array."
            ) from e
    box: list = []

    def flat(*xs):
        inner, kw = tree.unflatten(xs)
        rest = iter(inner)
        out = fun(*[static[i] if i in static else next(rest) for i in range(len(args))], **kw)
        out_leaves, out_tree = tree_flatten(out)
        box.append(out_tree)
        for x, (path, _) in zip(out_leaves, tree_flatten_with_path(out)[0]):
            check_result(x, name_of(fun), path)
        return out_leaves

    return ClosedJaxpr(*stage(flat, avals, f"the function {name_of(fun)}")), box[0]


def _shapes(closed: ClosedJaxpr, tree: PyTreeDef):
    return tree.unflatten([struct_of(a) for a in closed.out_avals])


@overload
def make_jaxpr(
    fun: Callable[Args, Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Hashable, int]] | None = None,
    return_shape: Literal[False] = False,
) -> Function[Args, ClosedJaxpr]: ...
@overload
def make_jaxpr(
    fun: Callable[Args, Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Hashable, int]] | None = None,
    *,
    return_shape: Literal[True],
) -> Function[Args, tuple[ClosedJaxpr, Any]]: ...
def make_jaxpr(
    fun: Callable[Args, Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Hashable, int]] | None = None,
    return_shape: bool = False,
) -> Function[Args, Any]:
    """A function that returns the jaxpr of `fun` for its arguments (arrays or ShapeDtypeStructs).

    Args:
        fun: function of pytrees of arrays, of any dtype and shape.
        static_argnums: arguments that are Python values, part of the program; they must hash.
        axis_env: pairs (name, size) of mapped axes that collectives in `fun` refer to.
        return_shape: return also the shapes and dtypes of the results.

    Returns:
        function of the same arguments that returns a `ClosedJaxpr`, whose variables have dtypes and shapes.

    Raises:
        ValueError: when it is called, for static arguments that are not there or not hashable.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.make_jaxpr(lambda x: jnp.sin(jnp.cos(x)))(3.0)
        { lambda ; a:f32[]. let b:f32[] = cos a; c:f32[] = sin b in (c,) }
    """
    check_callable(fun)
    nums = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)

    @like(fun)
    @api_boundary
    def make_jaxpr_f(*args, **kwargs):
        static = {}
        for n in nums:
            if not -len(args) <= n < len(args):
                raise ValueError(
                    f"make_jaxpr of {name_of(fun)} has static_argnums={nums}, but the call has only {len(args)}"
                    " positional arguments."
                )
            try:
                hash(args[n])
            except TypeError as e:
                raise ValueError(
                    f"Non-hashable static arguments are not supported: argument {n} of {name_of(fun)} is a"
                    f" {type(args[n]).__name__}."
                ) from e
            static[n % len(args)] = args[n]
        with mapped_axes(*[Axis(n, s) for n, s in axis_env or ()]):
            closed, tree = _traced(fun, args, kwargs, static)
        return (closed, _shapes(closed, tree)) if return_shape else closed

    make_jaxpr_f.__name__ = f"make_jaxpr({name_of(fun)})"
    return make_jaxpr_f


@api_boundary
def eval_shape(fun: Callable[..., Any], *args: PyTree, **kwargs: PyTree) -> Any:
    """The shapes and dtypes of the results of `fun`, without computing them. Arguments need only `.shape` and `.dtype`.

    Args:
        fun: function of pytrees of arrays, of any dtype and shape.
        *args: pytrees of arrays, or of `ShapeDtypeStruct`s: only shape and dtype are read.
        **kwargs: likewise, by name.

    Returns:
        pytree of `ShapeDtypeStruct`s, with the shape and dtype of each result.

    Raises:
        TypeError: for arguments that are no arrays, and what `fun` raises.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.eval_shape(jnp.dot, weft.ShapeDtypeStruct((2, 3), "float32"), weft.ShapeDtypeStruct((3, 4), "float32"))
        ShapeDtypeStruct(shape=(2, 4), dtype=float32)
    """
    check_callable(fun)
    return _shapes(*_traced(fun, args, kwargs, {}))


# moving and waiting --------------------------------------------------------------------------------------------------


@overload
def device_put(
    x: ArrayLike,
    device: Placement | PartitionSpec | PyTree = None,
    *,
    src: Placement | PyTree = None,
    donate: bool | PyTree = False,
    may_alias: bool | None | PyTree = None,
) -> Array: ...
@overload
def device_put(
    x: PyTree,
    device: Placement | PartitionSpec | PyTree = None,
    *,
    src: Placement | PyTree = None,
    donate: bool | PyTree = False,
    may_alias: bool | None | PyTree = None,
) -> Any: ...
def device_put(
    x: PyTree,
    device: Placement | PartitionSpec | PyTree = None,
    *,
    src: Placement | PyTree = None,
    donate: bool | PyTree = False,
    may_alias: bool | None | PyTree = None,
) -> Any:
    """`x` (a pytree) as arrays on `device`, committed to it; without a device, on the default one and uncommitted.

    Args:
        x: pytree of arrays, of any dtype and shape.
        device: a device, a sharding, a `weft.P` (which refers to the mesh that is set), a `weft.memory.Space`, a
            `weft.experimental.layout.Format`, or a pytree prefix of these.
        src: where the values come from; to there the cotangents go back.
        donate: the array's memory may be taken; `x` is then deleted.
        may_alias: False asks for memory of its own; True and None allow the array to share it.

    Returns:
        pytree like x, its arrays of the same dtypes and shapes on `device`.

    Raises:
        ValueError: if an axis can't be cut evenly, if both `donate` and `may_alias` are True, or if processes pass
            different values for devices of all of them.

    Example:
        >>> import weft
        >>> weft.device_put([1.0, 2.0])
        [Array(1., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True)]
    """
    leaves, tree = tree_flatten(x)
    with explicit():
        return _put_all(x, leaves, tree, device, src, donate, may_alias)


def _put_all(x, leaves, tree, device, src, donate, may_alias):
    wanted, from_, given, shared = (
        _prefix(n, v, x) for n, v in (("device", device), ("src", src), ("donate", donate), ("may_alias", may_alias))
    )
    return tree.unflatten([_put(*leaf) for leaf in zip(leaves, wanted, from_, given, shared)])


def _prefix(name: str, prefix, x) -> list:
    try:
        return broadcast_prefix(prefix, x)
    except ValueError as e:
        raise ValueError(
            f"device_put: {name} must be a single value, or a pytree prefix of the value that is put: {e}"
        ) from e


def _put(v, where, src, donate, may_alias):
    if donate and may_alias:
        raise ValueError("may_alias and donate cannot be True at the same time.")
    if isinstance(where, P) and config.context_mesh is None:
        raise ValueError(
            f"device_put to {where} needs a mesh: set one with weft.set_mesh(mesh), or give a weft.NamedSharding."
        )
    layout = kind = None
    if isinstance(where, Format):
        layout, where = where.layout, where.sharding
    if isinstance(where, MemorySpace):
        kind, where = where.kind, None
    where = canonical_sharding(where)
    if current_trace() is not root or isinstance(v, Tracer):
        return _put_in_program(v, where, src, kind, layout)
    if kind is not None:
        where = in_memory(v, kind)
    if spans_processes(where):
        check_same(v, where)
    moved = move(v, where, may_alias is False, bool(donate))
    return in_layout(moved, layout) if isinstance(layout, Layout) else moved


def _put_in_program(v, where, src, kind, layout):
    """`device_put` while a program is traced: to a device or a sharding, to a kind of memory, and in a layout."""
    kind = kind or getattr(where, "_memory_kind", None)
    if isinstance(where, NamedSharding) and where.mesh.explicit_axes:
        v = reshard(v, where)
    elif has_several_devices(where):
        v = constrain(v, where)
    elif where is not None:
        v = transfer_p.bind(v, devices=(where,), srcs=(src,))[0]
    if kind is not None:
        v = to_memory_p.bind(v, memory=kind)
    return layout_constraint_p.bind(v, layout=layout) if isinstance(layout, Layout) else v


def copy_to_host_async(x: Tree) -> Tree:
    """Starts copying the arrays of a pytree to the host, so that `device_get` need not wait as long later; returns `x`.

    Args:
        x: pytree of arrays, of any dtype and shape.

    Returns:
        x itself, its arrays of the same dtypes and shapes.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.copy_to_host_async([jnp.ones(2), 3])
        [Array([1., 1.], dtype=float32), 3]
    """
    for leaf in tree_leaves(x):
        start = getattr(leaf, "copy_to_host_async", None)
        if start is not None:
            start()
    return x


def device_get(x: PyTree) -> Any:
    """`x` (a pytree) with its arrays copied to the host as NumPy arrays (without NumPy: as nested lists).

    Args:
        x: pytree of arrays, of any dtype and shape.

    Returns:
        pytree of `numpy.ndarray`s, of the same dtypes and shapes.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.device_get(jnp.arange(3)).tolist()
        [0, 1, 2]
    """
    with explicit():
        return _get_all(x)


def _get_all(x):
    together: dict = {}  # if reading takes a round trip, one is enough for all
    for v in tree_leaves(x):
        fetch = backend_of(v.device).capabilities.prefetch if is_array(v) else None
        if fetch is not None:
            together.setdefault(fetch, []).append(v)
    for fetch, arrays in together.items():
        fetch(*arrays)
    return tree_map(lambda v: (to_numpy(v._host()) if late else v._host()) if is_array(v) else v, x)


def block_until_ready(x: Tree) -> Tree:
    """Waits until all arrays in the pytree `x` are computed, and returns it.

    Args:
        x: pytree of arrays, of any dtype and shape.

    Returns:
        x itself, its arrays of the same dtypes and shapes.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.block_until_ready({"a": jnp.ones(2)})
        {'a': Array([1., 1.], dtype=float32)}
    """
    for v in tree_leaves(x):
        if hasattr(v, "block_until_ready"):
            v.block_until_ready()
    return x


class _NowWherePossible(InnerTrace):
    """Runs operations that do not depend on a tracer at once, and leaves the others to the trace around it."""

    def __init__(self, parent: Trace):
        self.parent = parent

    @override
    def process(self, primitive, args: tuple, params: dict):
        if any(isinstance(x, Tracer) for x in args):
            return self.pass_on(primitive, args, params)
        with tracing(root):
            return root.process(primitive, args, params)


@contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Context manager in whose block operations on concrete values run at once, even while a function is being traced.
    Python can branch on their results.

    Returns:
        context manager.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> @weft.jit
        ... def f(x):
        ...     with weft.ensure_compile_time_eval():
        ...         return x if jnp.arange(3).sum() == 3 else -x
        >>> f(1.0)
        Array(1., dtype=float32, weak_type=True)
    """
    with tracing(_NowWherePossible(current_trace())):
        yield


def named_call(fun: Callable[Args, Result], *, name: str | None = None) -> Function[Args, Result]:
    """A function like `fun`, whose operations are in a named scope.

    Args:
        fun: function of pytrees of arrays, of any dtype and shape.
        name: str; None for that of `fun`.

    Returns:
        function of the same arguments and results.

    Example:
        >>> import weft
        >>> weft.named_call(lambda x: x + 1, name="increment")(2)
        3
    """
    from_name = name or name_of(fun)

    @like(fun)
    def call(*args, **kwargs):
        with named_scope(from_name):
            return fun(*args, **kwargs)

    return call
