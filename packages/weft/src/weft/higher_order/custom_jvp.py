"""custom_jvp: functions whose derivative is defined by a user's rule; and code that all primitives with such rules
share.
"""

from __future__ import annotations

from functools import update_wrapper
from inspect import signature
from typing import TYPE_CHECKING, Any, Callable, Concatenate, Generic, ParamSpec, Sequence, TypeVar, overload

from ..base.annotations import override
from ..base import dtypes
from ..base.avals import AbstractValue, tangent_aval
from ..core.carries import Carries, Runs
from ..core.jaxpr import ClosedJaxpr, eval_jaxpr
from ..core.primitive import AsDecomposed, Primitive, Zero
from ..core.shardings import without_axis
from ..core.wire import IS_OPENED
from ..core.trace import get_aval
from ..base.errors import UnexpectedTracerError, at_user_line
from ..primitives.linear import scalar_as_array, zeros
from ..transforms.batch import batch_flat, to_front
from ..transforms.stage import consts_as_args, stage
from ..transforms.transpose import backward_pass
from ..base.tree import tree_flatten, tree_map, tree_unflatten
from .call import collective_names

if TYPE_CHECKING:
    from ..base.avals import AbstractValue
    from ..core.trace import Axis
    from ..core.types import Dims, Params, Value
    from ..transforms.stage import JaxprTrace

Args = ParamSpec("Args")
_Q = ParamSpec("_Q")
Result = TypeVar("Result")
custom_jvp_call_p = Primitive("custom_jvp_call", multiple_results=True, wire=IS_OPENED)


class Rule:
    """A flat derivative rule as a parameter of an equation; equal only to itself, shown by its name."""

    def __init__(self, name: str, fun: Callable[..., Any]):
        self.__name__, self.fun = name, fun

    def __call__(self, *args: Value) -> Any:
        return self.fun(*args)


class SymbolicZero:
    """A tangent or cotangent known to be zero, as rules with `symbolic_zeros=True` see it: a type without a value."""

    __slots__ = ("aval",)

    def __init__(self, aval: AbstractValue):
        self.aval = aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)
    weak_type = property(lambda self: self.aval.weak_type)

    @staticmethod
    def from_primal_value(val: Value) -> "SymbolicZero":
        """The zero tangent of a value."""
        return SymbolicZero(tangent_aval(get_aval(val)))

    @override
    def __repr__(self) -> str:
        return "SymbolicZero"


def call(form: Any, args: Sequence[Value]) -> list[Any]:
    """Runs the function form (a callable) or the staged form (a closed jaxpr) of a custom call."""
    return (
        eval_jaxpr(form.jaxpr, form.consts, *args)
        if isinstance(form, ClosedJaxpr)
        else form(*map(scalar_as_array, args))
    )


def effects_of(form: Any) -> frozenset[Any]:
    """The effects of a custom call's staged form; its function form is never recorded."""
    return form.effects if isinstance(form, ClosedJaxpr) else frozenset()


def axis_names_of(form: Any) -> frozenset[Any]:
    """The named axes over which a custom call's staged form communicates."""
    return collective_names(form) if isinstance(form, ClosedJaxpr) else frozenset()


def batched_call(form: Any, axis: Axis, dims: Dims) -> Callable[..., Any]:
    """A custom call's form on batched arguments, with all results batched along axis 0."""

    def batched(*args: Value) -> list[Any]:
        outs, out_dims = batch_flat(lambda *xs: call(form, xs), axis, args, dims)
        return [to_front(axis, x, d) for x, d in zip(outs, out_dims)]

    return batched


def closed_over_error(what: str, name: str) -> UnexpectedTracerError:
    return UnexpectedTracerError(
        at_user_line(
            f"Detected differentiation of the {what} function {name} with respect to a closed-over value. Its rule says"
            f" only how to differentiate with respect to its arguments: pass the closed-over value to {name} as an"
            " argument, and let the rule take it."
        )
    )


def is_zero(t: Value) -> bool:
    return type(t) is Zero or type(t) is SymbolicZero


def is_float0(x: Value) -> bool:
    return getattr(x, "dtype", None) == dtypes.float0


def unlike(t: Value, want: AbstractValue) -> str | None:
    """How a tangent or a cotangent differs from the required type: "dtype", "shape", or None if it does not."""
    have = t.aval if is_zero(t) else get_aval(t)
    return "dtype" if have.dtype != want.dtype else "shape" if have.shape != want.shape else None


def type_of(t: Value) -> str:
    """The type of a tangent or a cotangent, for messages."""
    return (t.aval if is_zero(t) else get_aval(t)).str_short(short_dtypes=False)


def check_results(outs: Sequence[Value], call_jaxpr: Any, rule: str, name: str) -> None:
    """TypeError unless the results that a rule gives are of the types of its function's, where that was traced."""
    if not isinstance(call_jaxpr, ClosedJaxpr):
        return
    have, want = ([(a.shape, a.dtype) for a in avals] for avals in (map(get_aval, outs), call_jaxpr.out_avals))
    if have != want:
        show = lambda avals: f"({', '.join([a.str_short(short_dtypes=False) for a in avals])})"
        raise TypeError(
            at_user_line(
                f"The {rule} rule of {name} gives results of types {show(map(get_aval, outs))}, and {name} itself"
                f" {show(call_jaxpr.out_avals)}. Give what the function gives."
            )
        )


def zero_tangent(out: Value) -> Value:
    """Zeros of the tangent type of a value, as an array."""
    aval = tangent_aval(get_aval(out))
    return dtypes.float0_zeros(aval.shape) if aval.dtype == dtypes.float0 else zeros(aval)


def for_rule(t: Value, symbolic: bool) -> Any:
    """A tangent or cotangent as a user's rule takes it."""
    if type(t) is Zero:
        return (
            SymbolicZero(t.aval)
            if symbolic
            else dtypes.float0_zeros(t.aval.shape)
            if t.aval.dtype == dtypes.float0
            else scalar_as_array(zeros(t.aval))
        )
    return scalar_as_array(t)


def element_zero(axis: Axis, t: Value, batched: bool) -> Any:
    """A zero tangent inside `vmap`, where it has the type of one element."""
    if not batched or type(t) is not SymbolicZero:
        return t
    return SymbolicZero(without_axis(t.aval))


def _stage(trace: JaxprTrace, args: Sequence[Value], params: Params) -> Any:
    form = params["call_jaxpr"]
    if isinstance(form, ClosedJaxpr):
        return trace.record(custom_jvp_call_p, args, params)
    jaxpr, consts = stage(form, [get_aval(x) for x in args], params["name"])
    n, rule = len(consts), params["jvp"]
    shifted = Rule(rule.__name__, lambda *xs: rule(*xs[n : len(xs) // 2], *xs[len(xs) // 2 + n :])) if n else rule
    closed = ClosedJaxpr(consts_as_args(jaxpr), [])
    return trace.record(custom_jvp_call_p, [*consts, *args], dict(params, call_jaxpr=closed, jvp=shifted, num_consts=n))


def _jvp(
    primals: Sequence[Value],
    tangents: Sequence[Value],
    *,
    call_jaxpr: ClosedJaxpr,
    jvp: Callable[..., Any],
    name: str,
    num_consts: int,
    symbolic_zeros: bool,
) -> tuple[Any, Any]:
    if any(type(t) is not Zero for t in tangents[:num_consts]):
        raise closed_over_error("custom_jvp", name)
    outs = jvp(*map(scalar_as_array, primals), *[for_rule(t, symbolic_zeros) for t in tangents])
    n = len(outs) // 2
    check_results(outs[:n], call_jaxpr, "jvp", name)
    return list(outs[:n]), list(outs[n:])


def _batch(
    axis: Axis, args: Sequence[Value], dims: Dims, *, call_jaxpr: ClosedJaxpr, jvp: Callable[..., Any], **params: Any
) -> tuple[Any, Any]:
    def batched_jvp(*xs: Value) -> list[Any]:
        """Tangents that are zero or of integers (float0) are not arrays that could carry a batch axis."""
        n = len(dims)
        args = [to_front(axis, x, d) if d is not None else x for x, d in zip(xs[:n], dims)]
        ts = [
            (
                to_front(axis, t, d)
                if d is not None and not is_float0(t) and not is_zero(t)
                else element_zero(axis, t, d is not None)
            )
            for t, d in zip(xs[n:], dims)
        ]
        arg_dims = [None if d is None else 0 for d in dims]
        t_dims = [None if is_float0(t) or is_zero(t) else d for t, d in zip(ts, arg_dims)]
        outs, out_dims = batch_flat(jvp, axis, [*args, *ts], [*arg_dims, *t_dims])
        return [x if is_zero(x) else to_front(axis, x, d) for x, d in zip(outs, out_dims)]

    outs = custom_jvp_call_p.bind(
        *args, call_jaxpr=batched_call(call_jaxpr, axis, dims), jvp=Rule(jvp.__name__, batched_jvp), **params
    )
    return outs, [0] * len(outs)


custom_jvp_call_p.transpose = lambda cts, *args, call_jaxpr, **_: backward_pass(
    call_jaxpr.jaxpr, call_jaxpr.consts, args, cts
)


def shown(params: Params) -> list[tuple[str, object]]:
    """The parameters of a custom call that jaxprs show."""
    return [(k, params[k]) for k in ("name", "bwd", "call_jaxpr", "fwd", "jvp", "symbolic_zeros") if k in params]


def _with_state(params: Params, n: int, run: Callable[..., Any]) -> Params:
    rule, m = params["jvp"], len(params["call_jaxpr"].in_avals)

    def jvp(*xs: Value) -> list[Any]:
        state, outs = run(rule, None, [*xs[n : n + m], *xs[2 * n + m :]])
        half = len(outs) // 2
        return [*state, *outs[:half], *map(zero_tangent, state), *outs[half:]]

    return dict(params, jvp=Rule("jvp", jvp))


custom_jvp_call_p.with_state = _with_state
custom_jvp_call_p.shown = shown
custom_jvp_call_p.carries = Carries(Runs.ONCE, {"call_jaxpr": ("operands",)})
custom_jvp_call_p.abstract = lambda *avals, call_jaxpr, **_: list(call_jaxpr.out_avals)
custom_jvp_call_p.effects = lambda params: effects_of(params["call_jaxpr"])
custom_jvp_call_p.axis_names = lambda params: axis_names_of(params["call_jaxpr"])
custom_jvp_call_p.impl = lambda *args, call_jaxpr, **_: call(call_jaxpr, args)
custom_jvp_call_p.function_form = "call_jaxpr"
custom_jvp_call_p.stage, custom_jvp_call_p.jvp, custom_jvp_call_p.batch = _stage, _jvp, _batch
custom_jvp_call_p.decompose = lambda *args, call_jaxpr, **_: eval_jaxpr(call_jaxpr.jaxpr, call_jaxpr.consts, *args)
custom_jvp_call_p.reference = AsDecomposed(custom_jvp_call_p)


def bind_custom_jvp(
    args: Sequence[Any], fun: Callable[..., Any], rule: Callable[..., Any], name: str, symbolic_zeros: bool = False
) -> list[Any]:
    """Calls the flat function `fun`, whose derivative is the flat `rule(*primals, *tangents) -> [*outs,
    *out_tangents]`.
    """
    return custom_jvp_call_p.bind(
        *args, call_jaxpr=fun, jvp=rule, name=name, num_consts=0, symbolic_zeros=symbolic_zeros
    )


def resolve(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[Any, Any]) -> tuple[Any, ...]:
    """Keyword arguments and defaults in their positions."""
    if not kwargs and _has_no_defaults(fun, len(args)):
        return args
    try:
        bound = signature(fun).bind(*args, **kwargs)
    except ValueError:
        return args
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(f"{name_of(fun)}: a function with custom rules takes no keyword-only arguments.")
    return bound.args


def _has_no_defaults(fun: Callable[..., Any], n: int) -> bool:
    code = getattr(fun, "__code__", None)
    return code is not None and code.co_argcount == n


def name_of(fun: Callable[..., Any]) -> str:
    return getattr(fun, "__name__", type(fun).__name__)


def static_positions(fun: Callable[..., Any], nums: Sequence[int], names: Sequence[str]) -> tuple[int, ...]:
    """The positions of arguments that are not differentiated, by number and by name."""
    known = list(signature(fun).parameters) if names else []
    for n in names:
        if n not in known:
            raise ValueError(f"nondiff_argnames: {name_of(fun)} has no argument {n!r}; it takes {', '.join(known)}.")
    return tuple(sorted({*nums, *[known.index(n) for n in names]}))


class custom_jvp(Generic[Args, Result]):
    """A function whose derivative is defined by a rule.

    `defjvp(rule)` takes rule(primals, tangents) -> (primal_out, tangent_out); the result's tangent must be linear in
    the tangents. `nondiff_argnums` (or `nondiff_argnames`) are passed to the rule as Python values before the two
    tuples. With `symbolic_zeros=True`, zero tangents are passed as `weft.custom_derivatives.SymbolicZero`.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> @weft.custom_jvp
        ... def f(x): return jnp.sin(x)
        >>> @f.defjvp
        ... def f_jvp(primals, tangents): return f(*primals), 2 * tangents[0]
        >>> weft.grad(f)(1.0)
        Array(2., dtype=float32, weak_type=True)
    """

    __name__: str

    def __init__(
        self, fun: Callable[Args, Result], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()
    ):
        update_wrapper(self, fun)
        self.fun: Callable[..., Any] = fun
        self.nondiff_argnums = static_positions(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Sets the rule; usable as a decorator."""
        self.jvp, self.symbolic_zeros = jvp, symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Sets one rule for each argument: (tangent, result, *primals) -> its term of the result's tangent, or None for
        zero.
        """
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        function: Callable[..., Any] = self

        def jvp(primals: Sequence[Value], tangents: Sequence[Value]) -> tuple[Any, Any]:
            out = function(*primals)
            terms = [rule(t, out, *primals) for rule, t in zip(jvps, tangents) if rule is not None and not is_float0(t)]
            if not terms:
                return out, tree_map(zero_tangent, out)
            total = terms[0]
            for term in terms[1:]:
                total = tree_map(lambda a, b: a + b, total, term)
            return out, total

        self.defjvp(jvp)

    if TYPE_CHECKING:

        @overload
        def __get__(self, obj: None, objtype: Any = None) -> custom_jvp[Args, Result]: ...
        @overload
        def __get__(
            self: custom_jvp[Concatenate[Any, _Q], Result], obj: object, objtype: Any = None
        ) -> Callable[_Q, Result]: ...
        def __get__(self, obj: object, objtype: Any = None) -> Any: ...

    else:

        def __get__(self, obj: object, objtype: type[Any] | None = None) -> Any:
            return self if obj is None else bound_method(self, obj)

    def __call__(self, *given: Args.args, **kwargs: Args.kwargs) -> Result:
        jvp = self.jvp
        if jvp is None:
            raise AttributeError(
                at_user_line(
                    f"No JVP defined for custom_jvp function {name_of(self.fun)} using defjvp. Give it its rule:"
                    " f.defjvp(rule) with rule(primals, tangents)."
                )
            )
        args = resolve(self.fun, given, kwargs)
        static = {i % len(args): args[i] for i in self.nondiff_argnums}
        leaves, in_tree = tree_flatten(tuple(a for i, a in enumerate(args) if i not in static))
        box: list[Any] = []

        def put_back(dynamic: Any) -> list[Any]:
            rest = iter(dynamic)
            return [static[i] if i in static else next(rest) for i in range(len(args))]

        def flat(*xs: Value) -> list[Value]:
            out, tree = tree_flatten(self.fun(*put_back(in_tree.unflatten(xs))))
            box.append(tree)
            return out

        def flat_jvp(*xs: Value) -> list[Any]:
            n = len(xs) // 2
            primals, tangents = in_tree.unflatten(xs[:n]), in_tree.unflatten(xs[n:])
            pair = jvp(*static.values(), primals, tangents)
            rule, fun = name_of(jvp), name_of(self.fun)
            if not isinstance(pair, (list, tuple)) or len(pair) != 2:
                raise TypeError(
                    at_user_line(
                        f"Custom JVP rule {rule} for function {fun} returns (results, tangents of the results), and"
                        f" this one returned {type(pair).__name__}."
                    )
                )
            outs, out_tree = tree_flatten(pair[0])
            out_ts, t_tree = tree_flatten(pair[1])
            if out_tree != t_tree:
                raise TypeError(
                    f"Custom JVP rule {rule} for function {fun} must produce tangents in the structure of its results:"
                    f" these are {out_tree}, the tangents {t_tree}."
                )
            box.append(out_tree)
            return [*outs, *[_as_tangent(o, t, rule, fun) for o, t in zip(outs, out_ts)]]

        outs = bind_custom_jvp(leaves, flat, Rule(name_of(jvp), flat_jvp), name_of(self), self.symbolic_zeros)
        return tree_unflatten(box[-1], outs)


def bound_method(custom: Any, obj: object) -> Callable[..., Any]:
    """`custom` as a method of `obj`."""

    def method(*args: Value, **kwargs: Any) -> Any:
        return custom(obj, *args, **kwargs)

    return method


def _as_tangent(out: Value, t: Value, rule: str, fun: str) -> Value | Zero:
    want = tangent_aval(get_aval(out))
    if unlike(t, want):
        raise TypeError(
            at_user_line(
                f"Custom JVP rule {rule} for function {fun} must produce primal and tangent outputs with corresponding"
                f" shapes and dtypes. A result of type {type_of(out)} has a tangent of type"
                f" {want.str_short(short_dtypes=False)}, and the rule gives {type_of(t)}."
            )
        )
    return Zero(want) if is_zero(t) or want.dtype == dtypes.float0 else t
