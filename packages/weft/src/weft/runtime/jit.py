"""jit: tracing once for each type of arguments, and calling the compiled program afterwards."""

from __future__ import annotations

import inspect
from functools import update_wrapper
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Concatenate,
    Generic,
    Iterator,
    NamedTuple,
    ParamSpec,
    Protocol,
    Sequence,
    overload,
)
from weakref import WeakSet

from ..base.annotations import Args, PyTree, Result, override
from ..base import dtypes
from ..base.avals import AbstractValue, check_range, shaped
from ..base.config import config
from ..base.devices import addressable
from ..higher_order.call import bind_jit
from ..core.jaxpr import ClosedJaxpr
from ..core.trace import Tracer, array_types, axis_env, current_trace, get_aval, root
from ..core.traces import forget_traces, traces_of
from ..base.errors import at_user_line
from ..base.mesh import Mesh, placing
from ..primitives.placement import constrain
from ..base.source_info import hide_internal_frames
from ..base.monitoring import TRACE, timed
from ..transforms.discharge import has_refs
from ..transforms.stage import hoist_tracers, stage
from ..transforms.valueless import has_valueless
from ..base.tree import (
    PyTreeDef,
    arrays_call,
    keystr,
    tree_flatten,
    tree_leaves,
    tree_flatten_with_path,
    tree_unflatten,
)
from . import aot
from .aot import TracedCall, option_pairs
from .array import BufferArray
from .backend import nothing
from .backend import Device
from .device import devices, get_backend, known_backends
from .dispatch import device_of, executable_for, forget_operations, run_jaxpr
from .explain import Explanation, History
from .guards import check_execution, check_tracing, explained
from . import eager as _eager  # noqa: F401  has the root trace run primitives
from . import key_reuse
from .nans import check_program, watching
from .partition import flat_shardings, place_of

if TYPE_CHECKING:
    from ..core.types import Value
    from ..base.mesh import PartitionSpec, Sharding

_Q = ParamSpec("_Q")


class Prepared(NamedTuple):
    """The information with which a backend's fast path runs the same call again: results are `out_tree` over the
    executable's results.
    """

    executable: Any
    consts: list[Any]  # arrays that lead the executable's arguments
    closed: ClosedJaxpr
    out_tree: PyTreeDef
    device: Any


def _as_tuple(x: Value) -> tuple[Any, ...]:
    return () if x is None else (x,) if isinstance(x, (int, str)) else tuple(x)


def _positions(fun: Callable[..., Any], nums: Any, names: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Argument numbers and names; what is not given follows from the other by the function's signature."""
    both = nums is not None and names is not None
    nums, names = _as_tuple(nums), _as_tuple(names)
    if not nums and not names:
        return nums, names
    try:
        params = list(inspect.signature(fun).parameters.values())
    except (ValueError, TypeError):
        return nums, names
    positional = [p.name for p in params if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    has_var = any(p.kind is p.VAR_POSITIONAL for p in params)
    for n in nums:
        if not has_var and not -len(positional) <= n < len(positional):
            raise ValueError(
                at_user_line(
                    f"static_argnums={nums} count further than the function, which only accepts {len(positional)}"
                    " positional arguments. They count from 0; or name them in static_argnames."
                )
            )
    known = {p.name for p in params}
    if not any(p.kind is p.VAR_KEYWORD for p in params):
        for name in names:
            if name not in known:
                raise ValueError(
                    at_user_line(
                        f"static_argnames: the function has no argument {name!r}; its arguments are {sorted(known)}."
                    )
                )
    if both:
        return nums, names
    more_names = [
        positional[n]
        for n in nums
        if -len(positional) <= n < len(positional) and params[n].kind is not inspect.Parameter.POSITIONAL_ONLY
    ]
    more_nums = [positional.index(n) for n in names if n in positional]
    return tuple(dict.fromkeys([*nums, *more_nums])), tuple(dict.fromkeys([*names, *more_names]))


def _parameters(fun: Callable[..., Any]) -> list[str]:
    try:
        return list(inspect.signature(fun).parameters)
    except (ValueError, TypeError):
        return []


# every jitted function, to choose their dispatch again when the platform changes
_instances: WeakSet[Any] = WeakSet()


def _choose_again(option: str) -> None:
    if option == "platforms":
        for jitted in list(_instances):
            jitted.dispatch = jitted.first_call


config.listen(_choose_again)


class JitFunction(Generic[Args, Result]):
    """A function that is traced once for each type of its arguments and runs compiled. Made by `weft.jit`."""

    # `dispatch`, which every call reads, is found faster in a slot than in a dictionary that also holds the attributes
    # of `fun`.
    __slots__ = ("dispatch", "__dict__", "__weakref__")

    def __init__(
        self,
        fun: Callable[Args, Result],
        static_argnums: Any = (),
        static_argnames: Any = (),
        donate_argnums: Any = (),
        donate_argnames: Any = (),
        keep_unused: bool = False,
        inline: bool = False,
        device: Device | None = None,
        backend: str | None = None,
        in_shardings: Any = None,
        out_shardings: Any = None,
        compiler_options: Any = None,
    ):
        if not callable(fun):
            raise TypeError(
                at_user_line(
                    f"Expected a callable value, got {fun!r}. Give jit the function itself, not what it returns."
                )
            )
        if inspect.isgeneratorfunction(fun):
            raise TypeError(
                at_user_line(
                    f"Expected a function, got a generator function: {getattr(fun, '__qualname__', fun)}. Return an"
                    " array, or a list of what it yields."
                )
            )
        update_wrapper(self, fun)
        self.fun, self.name = fun, getattr(fun, "__name__", type(fun).__name__)
        self.static_argnums, self.static_argnames = _positions(fun, static_argnums, static_argnames)
        self.donate_argnums, self.donate_argnames = _positions(fun, donate_argnums, donate_argnames)
        if set(self.donate_argnums) & set(self.static_argnums):
            raise ValueError(
                f"static_argnums {self.static_argnums} and donate_argnums {self.donate_argnums} cannot intersect."
            )
        self.keep_unused, self.inline, self.device, self.backend = keep_unused, inline, device, backend
        self.in_shardings, self.out_shardings = in_shardings, out_shardings
        self.compiler_options = option_pairs(compiler_options)
        self.cache: dict[Any, Any] = traces_of(fun, ("jit", device, backend))
        self.again: dict[int, Prepared] = {}  # by the id of a closed jaxpr: how backends in Python run it once more
        self.history = History(self.name)
        self.dispatch: Callable[..., Any] = self.first_call
        self.forget_calls: Callable[[], None] = nothing
        _instances.add(self)

    def __call__(self, *args: Args.args, **kwargs: Args.kwargs) -> Result:
        try:
            # ** would copy an empty dictionary
            return self.dispatch(*args, **kwargs) if kwargs else self.dispatch(*args)
        except Exception as e:
            if isinstance(e, ValueError) and str(e).startswith("Non-hashable static"):
                self.split(args, kwargs)  # raises an error that names the argument
            hide_internal_frames(e)
            told = explained(e, lambda: self.named_arrays(args, kwargs))
            if told is not e:
                raise told from None
            raise

    def named_arrays(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """(name, array) of the arguments of a call, and of the arrays that the function closes over."""
        named = [
            (f"the argument {n}", x)
            for n, x in zip(
                self.arg_names(args, kwargs, self.static_argnums), tree_leaves(self.split(args, kwargs)[:2])
            )
        ]
        return named + [
            (f"an array that {self.name} closes over,", x)
            for traced in self.cache.values()
            for x in traced.jaxpr.consts
        ]

    if TYPE_CHECKING:

        @overload
        def __get__(self, obj: None, objtype: Any = None) -> JitFunction[Args, Result]: ...
        @overload
        def __get__(
            self: JitFunction[Concatenate[Any, _Q], Result], obj: object, objtype: Any = None
        ) -> BoundJit[_Q, Result]: ...
        def __get__(self, obj: object, objtype: Any = None) -> Any: ...

    else:

        def __get__(self, obj, objtype=None):
            return self if obj is None else BoundJit(self, obj)

    @override
    def __repr__(self) -> str:
        return f"<jitted {self.fun!r}>"

    def first_call(self, *args: Value, **kwargs: Any) -> Any:
        """Chooses how calls are dispatched: by the default backend's fast path if it has one."""
        if self.device is None and self.backend is None:
            fast = get_backend()[0].capabilities.jit
            if fast is not None:
                self.dispatch, self.forget_calls = fast(
                    self.fun, self.run, self.static_argnums, self.static_argnames, self.name
                )
                return self.dispatch(*args, **kwargs)
        self.dispatch = self.python_call
        return self.dispatch(*args, **kwargs)

    def python_call(self, *args: Value, **kwargs: Any) -> Any:
        return self.run(*args, **kwargs)[0]

    def run(self, *args: Value, **kwargs: Any) -> tuple[Any, Prepared | None]:
        """The result, and the data with which a fast path computes it again (None if only this function can)."""
        if config.disable_jit:
            return self.fun(*args, **kwargs), None
        leaves, traced = self.traced(args, kwargs)
        closed, out_tree, outer = traced
        known = self.again.get(id(closed))
        if known is not None and self.may_repeat(known, leaves):
            check_execution(self.name)
            return tree_unflatten(out_tree, known.executable.execute([*known.consts, *leaves])), known
        donated = self.donated(args, kwargs) if self.donate_argnums or self.donate_argnames else ()
        ins, out_places = (
            self.shardings(args, kwargs, traced)
            if self.in_shardings is not None or self.out_shardings is not None
            else (None, None)
        )
        if outer or current_trace() is not root or any([isinstance(x, Tracer) for x in leaves]):
            if self.compiler_options:
                raise ValueError(
                    at_user_line(
                        f"`compiler_options` can only be passed to top-level `jit`: {self.name} has"
                        f" {dict(self.compiler_options)} and is called inside another function that is traced. Give"
                        " them to the outermost jit."
                    )
                )
            if ins is not None:
                leaves = [constrain(x, s) for x, s in zip(leaves, ins)]
            outs = bind_jit(
                closed,
                [*outer, *leaves],
                self.name,
                self.inline,
                self.keep_unused,
                (False,) * len(outer) + donated if donated else None,
            )
            if out_places is not None:
                outs = [constrain(x, s) for x, s in zip(outs, out_places)]
            return tree_unflatten(out_tree, outs), None
        device = place_of(closed, leaves, self.chosen_device(leaves), ins, out_places)
        self.history.compiled(closed, device, donated)
        if key_reuse.watching():
            run = lambda: run_jaxpr(closed, leaves, self.name, donated, device, self.keep_unused, self.compiler_options)
            return tree_unflatten(out_tree, key_reuse.run_program(closed, leaves, self.name, run)), None
        if watching():  # in Python at each call; the arguments are needed again where a result is bad
            outs = run_jaxpr(closed, leaves, self.name, (), device, self.keep_unused, self.compiler_options)
            check_program(closed, leaves, outs, self.name)
            return tree_unflatten(out_tree, outs), None
        outs = run_jaxpr(closed, leaves, self.name, donated, device, self.keep_unused, self.compiler_options)
        result = tree_unflatten(out_tree, outs)
        if closed.effects or has_valueless(closed) or has_refs(closed.jaxpr):
            return result, None
        executable, consts = executable_for(
            closed, device, self.name, donated if any(donated) else (), self.keep_unused, self.compiler_options
        )
        prepared = Prepared(executable, consts, closed, out_tree, device)
        if not donated and ins is None and all([type(x) is BufferArray for x in outs]):
            self.again[id(closed)] = prepared
        return result, prepared

    def may_repeat(self, known: Prepared, leaves: Sequence[Value]) -> bool:
        """Whether a call on these arrays is only to execute what a call before it has."""
        device = known.device
        return (
            all([type(x) is BufferArray and x.device_ is device for x in leaves])
            and current_trace() is root
            and self.chosen_device(leaves) is device
            and not (key_reuse.watching() or watching())
        )

    def shardings(self, args: tuple[Any, ...], kwargs: dict[str, Any], traced: TracedCall) -> tuple[Any, ...]:
        """The requested shardings of the dynamic leaves and of the results; None for those without a request."""
        dynamic, dynamic_kw, _ = self.split(args, kwargs)
        if dynamic_kw and self.in_shardings is not None:
            raise ValueError(
                f"{self.name}: in_shardings are those of positional arguments; give {', '.join(dynamic_kw)} by"
                " position."
            )
        ins = flat_shardings("in_shardings", self.in_shardings, dynamic)
        outs = flat_shardings(
            "out_shardings", self.out_shardings, tree_unflatten(traced.out_tree, [0] * traced.out_tree.num_leaves)
        )
        return ins, outs

    def check_place(self) -> None:
        """Raises ValueError where both the mesh that is set and an option say where programs run."""
        if isinstance(placing.get(), Mesh) and (self.device is not None or self.backend is not None):
            raise ValueError(
                at_user_line(
                    f"{self.name}: the mesh that is set, {placing.get()}, says where programs run, and so do device="
                    " and backend= of jit. Leave these out, or call the function outside of set_mesh."
                )
            )

    def chosen_device(self, leaves: Sequence[Value]) -> Any:
        if self.device is not None:
            return self.device
        if self.backend is not None:
            return addressable(devices(self.backend))[0]
        return device_of(leaves)

    def split(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[Any, Any], tuple[Any, ...]]:
        """(dynamic arguments, dynamic keyword arguments, key of the static ones)."""
        if not self.static_argnums and not self.static_argnames:
            return args, kwargs, ()
        n = len(args)
        static = {i if i >= 0 else n + i for i in self.static_argnums if -n <= i < n}
        key = (*[(i, args[i]) for i in sorted(static)], *[(k, kwargs[k]) for k in self.static_argnames if k in kwargs])
        for where, value in key:
            try:
                hash(value)
            except TypeError as e:
                raise ValueError(
                    at_user_line(
                        f"Non-hashable static arguments are not supported: the argument {where!r} of {self.name} is a"
                        f" {type(value).__name__}. Pass something that hashes (a tuple, a frozen dataclass), or make it"
                        " a traced argument."
                    )
                ) from e
        dynamic = tuple([x for i, x in enumerate(args) if i not in static])
        return (
            dynamic,
            {k: v for k, v in kwargs.items() if k not in self.static_argnames},
            tuple((k, type(v), v) for k, v in key),
        )

    def donated(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """For each dynamic leaf whether its buffer is given away."""
        static = {i % len(args) for i in self.static_argnums if -len(args) <= i < len(args)} if args else set()
        nums = {i % len(args) for i in self.donate_argnums if -len(args) <= i < len(args)} if args else set()
        flags: list[Any] = []
        for i, x in enumerate(args):
            if i not in static:
                flags += [i in nums] * len(tree_flatten(x)[0])
        rest = {k: v for k, v in kwargs.items() if k not in self.static_argnames}
        for k in sorted(rest):
            flags += [k in self.donate_argnames] * len(tree_flatten(rest[k])[0])
        return tuple(flags)

    def traced(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], TracedCall]:
        """The dynamic leaves and the traced function for their types."""
        dynamic, dynamic_kw, static = self.split(args, kwargs)
        if not dynamic_kw and all([type(x) in array_types for x in dynamic]):
            leaves, tree = list(dynamic), arrays_call(len(dynamic))  # most calls that take no time
        else:
            leaves, tree = tree_flatten((dynamic, dynamic_kw))
        try:
            avals = tuple([get_aval(x) for x in leaves])
        except TypeError:
            avals = tuple(self.avals_with_paths(dynamic, dynamic_kw))
        for x in leaves:
            if type(x) is int:
                check_range(self.name, x)
        return leaves, self.trace_avals(args, kwargs, tree, avals, static)

    def trace_avals(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        tree: PyTreeDef,
        avals: Sequence[AbstractValue],
        static: tuple[Any, ...],
    ) -> TracedCall:
        key = (static, tree, avals, config.trace_context(), axis_env())
        found = self.cache.get(key)
        if found is not None:
            return found
        self.check_place()
        fixed = {k: v for k, _, v in static if isinstance(k, int)}
        fixed_kw = {k: v for k, _, v in static if isinstance(k, str)}
        box: list[Any] = []

        def flat(*xs: Value) -> list[Value]:
            positional, kw = tree.unflatten(xs)
            rest = iter(positional)
            out = self.fun(*[fixed[i] if i in fixed else next(rest) for i in range(len(args))], **kw, **fixed_kw)
            out_leaves, out_tree = tree_flatten(out)
            box.append(out_tree)
            for x, (path, _) in zip(out_leaves, tree_flatten_with_path(out)[0]):
                check_result(x, self.name, path)
            return out_leaves

        paths = self.arg_names(args, kwargs, fixed)
        self.history.traced(self.fun, key, paths, _parameters(self.fun))
        check_tracing(self.name, self.history.latest())
        with timed(TRACE, self.name):
            jaxpr, consts = stage(flat, avals, f"the function {self.name}", paths)
            closed, outer = hoist_tracers(jaxpr, consts)
        if key_reuse.watching():
            key_reuse.check_program(closed)
        result = TracedCall(closed, box[0], tuple(outer))
        if not outer:
            self.cache[key] = result
        return result

    def arg_names(self, args: tuple[Any, ...], kwargs: dict[str, Any], fixed: Any) -> list[str]:
        """The path of each dynamic leaf in the call, such as `params['w'][0]`."""
        names = _parameters(self.fun)
        out = []
        for i, x in enumerate(args):
            if i not in fixed:
                head = names[i] if i < len(names) else f"args[{i}]"
                out += [head + keystr(p) for p, _ in tree_flatten_with_path(x)[0]]
        for k in sorted(k for k in kwargs if k not in self.static_argnames):
            out += [k + keystr(p) for p, _ in tree_flatten_with_path(kwargs[k])[0]]
        return out

    def avals_with_paths(self, dynamic: Any, dynamic_kw: Any) -> Iterator[AbstractValue]:
        for path, x in tree_flatten_with_path((dynamic, dynamic_kw))[0]:
            try:
                yield get_aval(x)
            except TypeError as e:
                positional = [n for i, n in enumerate(_parameters(self.fun)) if i not in self.static_argnums]
                i = getattr(path[1], "idx", None)
                head = (
                    str(getattr(path[1], "key", "?"))
                    if i is None
                    else positional[i]
                    if i < len(positional)
                    else f"args[{i}]"
                )
                raise TypeError(
                    at_user_line(
                        f"the argument {head}{keystr(path[2:])} of {self.name} has type"
                        f" {type(x).__module__}.{type(x).__qualname__}, which is not an array or a number. Register its"
                        " class as a pytree, or name the argument in static_argnums/static_argnames if it hashes."
                    )
                ) from e

    # ahead of time

    def trace(self, *args: PyTree, **kwargs: PyTree) -> aot.Traced:
        """Traces for arguments (arrays or ShapeDtypeStructs) without running anything."""
        dynamic, dynamic_kw, static = self.split(args, kwargs)
        leaves, tree = tree_flatten((dynamic, dynamic_kw))
        avals = tuple(abstractify(x) for x in leaves)
        donated = self.donated(args, kwargs) if self.donate_argnums or self.donate_argnames else (False,) * len(leaves)
        traced = self.trace_avals(args, kwargs, tree, avals, static)
        asked = (
            self.shardings(args, kwargs, traced)
            if self.in_shardings is not None or self.out_shardings is not None
            else (None, None)
        )
        fixed = {k for k, _, _ in static if isinstance(k, int)}
        return aot.Traced(self, traced, tree, donated, leaves, asked, self.arg_names(args, kwargs, fixed))

    def lower(self, *args: PyTree, **kwargs: PyTree) -> aot.Lowered:
        """Traces and lowers for arguments (arrays or ShapeDtypeStructs): `.as_text()`, `.compile()`."""
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: PyTree, **kwargs: PyTree) -> Any:
        """The shapes and dtypes of the results, without computing them."""
        return self.trace(*args, **kwargs).out_info

    def clear_cache(self) -> None:
        """Forgets all that was traced and compiled."""
        self.cache.clear()
        self.again.clear()
        self.history.forget()
        self.forget_calls()  # the fast path's data may outlive it
        self.dispatch, self.forget_calls = self.first_call, nothing

    def explain(self) -> Explanation:
        """Why calls were traced or compiled: for each call that was in no cache, its line and how it differed from
        earlier calls.

        Example:
            >>> import weft, weft.numpy as jnp
            >>> f = weft.jit(lambda x: x * 2)
            >>> _ = f(jnp.ones(3)), f(jnp.ones(4))
            >>> print(f.explain()[1].why[0])
            the shape of x changed: it is f32[4] and was f32[3]
        """
        return self.history.explanation()

    def _cache_size(self) -> int:
        return len(self.cache)


def forget_calls() -> None:
    """Has each function and operation look its program up when it is next called, since `execute` of an executable is
    another now.
    """
    for jitted in list(_instances):
        jitted.again.clear()
        jitted.forget_calls()
    for backend in known_backends():
        backend.capabilities.forget_calls()


def clear_caches() -> None:
    """Forgets all that was traced and compiled, in this process.

    Returns:
        None.

    Example:
        >>> import weft
        >>> f = weft.jit(lambda x: x + 1)
        >>> _ = f(1); weft.clear_caches(); f._cache_size()
        0
    """
    for jitted in list(_instances):
        jitted.clear_cache()
    forget_traces()
    forget_operations()
    for backend in known_backends():
        backend.capabilities.forget_calls()
        backend.capabilities.forget_programs()


def check_result(x: Value, name: str, path: Any) -> None:
    try:
        get_aval(x)
    except TypeError as e:
        where = f" at output path {keystr(path)}" if path else ""
        raise TypeError(
            at_user_line(
                f"function {name} traced for jit returned a value of type"
                f" {type(x).__module__}.{type(x).__qualname__}{where}, which is not a valid JAX type. Return arrays or"
                " numbers, in pytrees."
            )
        ) from e


class BoundJit(Generic[Args, Result]):
    """A jitted method bound to its object."""

    def __init__(self, jitted: JitFunction[Concatenate[Any, Args], Result], obj: object):
        self.jitted, self.obj = jitted, obj
        update_wrapper(self, jitted.fun)

    def __call__(self, *args: Args.args, **kwargs: Args.kwargs) -> Result:
        return self.jitted(self.obj, *args, **kwargs)

    def lower(self, *args: PyTree, **kwargs: PyTree) -> aot.Lowered:
        return self.jitted.lower(self.obj, *args, **kwargs)

    def trace(self, *args: PyTree, **kwargs: PyTree) -> aot.Traced:
        return self.jitted.trace(self.obj, *args, **kwargs)

    def eval_shape(self, *args: PyTree, **kwargs: PyTree) -> Any:
        return self.jitted.eval_shape(self.obj, *args, **kwargs)

    def explain(self) -> Explanation:
        return self.jitted.explain()


def abstractify(x: Value) -> AbstractValue:
    """The aval of an array or of anything with a shape and a dtype."""
    try:
        return get_aval(x)
    except TypeError:
        if hasattr(x, "shape") and hasattr(x, "dtype"):
            return shaped(tuple(x.shape), dtypes.canonicalize(x.dtype), getattr(x, "weak_type", False))
        raise


class Jit(Protocol):
    """The result of `jit` with options only: a function that jits another."""

    def __call__(self, fun: Callable[Args, Result], /) -> JitFunction[Args, Result]: ...


@overload
def jit(
    fun: Callable[Args, Result],
    /,
    *,
    in_shardings: Sharding | PartitionSpec | PyTree = None,
    out_shardings: Sharding | PartitionSpec | PyTree = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    device: Device | None = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
) -> JitFunction[Args, Result]: ...
@overload
def jit(
    fun: None = None,
    /,
    *,
    in_shardings: Sharding | PartitionSpec | PyTree = None,
    out_shardings: Sharding | PartitionSpec | PyTree = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    device: Device | None = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
) -> Jit: ...
def jit(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    in_shardings: Sharding | PartitionSpec | PyTree = None,
    out_shardings: Sharding | PartitionSpec | PyTree = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    device: Device | None = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
) -> Any:
    """Compiles `fun`: it is traced once for each type of its arguments, and runs as one program afterwards.

    Args:
        fun: a pure function of pytrees of arrays.
        in_shardings, out_shardings: how positional arguments and results lie over the devices of a mesh; pytree
            prefixes of shardings.
        static_argnums, static_argnames: arguments that are Python values, part of the program; they must hash.
        donate_argnums, donate_argnames: arguments whose memory the program may reuse; they are deleted by the call.
        keep_unused: keep arguments that the program does not use.
        device, backend: where to run, instead of with the arguments.
        inline: write the program in place when called while tracing, instead of as one `jit` equation.
        compiler_options: options of the backend's compiler by name; on XLA its flags, such as
            {"xla_cpu_enable_fast_math": True}.

    Returns:
        function of the same arguments that returns pytrees of arrays, of the dtypes and shapes that `fun` gives; with
        the methods `trace`, `lower` and `clear_cache`.

    Raises:
        TypeError: for arguments that are not arrays.
        ValueError: for static arguments that are not hashable.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.jit(lambda x: x * 2)(jnp.arange(3))
        Array([0, 2, 4], dtype=int32)
    """
    if fun is None:
        return lambda f: jit(
            f,
            in_shardings=in_shardings,
            out_shardings=out_shardings,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
            keep_unused=keep_unused,
            device=device,
            backend=backend,
            inline=inline,
            compiler_options=compiler_options,
        )
    return JitFunction(
        fun,
        static_argnums,
        static_argnames,
        donate_argnums,
        donate_argnames,
        keep_unused,
        inline,
        device,
        backend,
        in_shardings,
        out_shardings,
        compiler_options,
    )


@overload
def inner_jit(
    fun: Callable[Args, Result],
    *,
    name: str | None = None,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    inline: bool = False,
) -> JitFunction[Args, Result]: ...
@overload
def inner_jit(
    fun: None = None,
    *,
    name: str | None = None,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    inline: bool = False,
) -> Jit: ...
def inner_jit(
    fun: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    inline: bool = False,
) -> Any:
    """`jit` for functions of the library itself, with the name that jaxprs show."""
    if fun is None:
        return lambda f: inner_jit(
            f, name=name, static_argnums=static_argnums, static_argnames=static_argnames, inline=inline
        )
    jitted = JitFunction(fun, static_argnums, static_argnames, inline=inline)
    jitted.name = name or jitted.name
    return jitted
