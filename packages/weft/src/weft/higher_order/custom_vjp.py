"""custom_vjp: functions whose reverse-mode derivative the user gives by a forward and a backward rule."""

from __future__ import annotations

from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Callable, Concatenate, Generic, ParamSpec, Sequence, overload

from ..base.annotations import Args, Function, Result, like, override
from ..base import dtypes
from ..base.avals import ShapedArray, tangent_aval
from ..core.carries import Carries, Runs
from ..core.jaxpr import ClosedJaxpr, JaxprEqn, Var, eval_jaxpr
from ..core.primitive import AsDecomposed, Primitive, Zero, unsupported
from ..core.shardings import with_axis
from ..core.wire import IS_OPENED
from ..core.trace import get_aval, is_array_like
from ..base.errors import at_user_line
from ..primitives.linear import broadcast_to_axis, convert, moveaxis, reduce_sum, scalar_as_array
from ..transforms.batch import batch_flat, batch_jaxpr, to_front
from ..transforms.jvp import instantiate, jvp_jaxpr
from ..transforms.stage import consts_as_args, stage
from ..base.tree import broadcast_prefix, tree_flatten, tree_map, tree_unflatten
from ..base.registration import register_pytree_node
from .call import collective_names
from .custom_jvp import (
    Rule,
    SymbolicZero,
    axis_names_of,
    batched_call,
    bound_method,
    call,
    check_results,
    closed_over_error,
    effects_of,
    element_zero,
    for_rule,
    is_float0,
    is_zero,
    name_of,
    resolve,
    shown,
    static_positions,
    zero_tangent,
)

if TYPE_CHECKING:
    from ..base.annotations import PyTree
    from ..base.avals import AbstractValue
    from ..core.jaxpr import Atom
    from ..core.trace import Axis
    from ..core.types import Dims, Params, Value
    from ..transforms.linearize import PartialTrace
    from ..transforms.stage import JaxprTrace
    from ..base.tree import PyTreeDef

_Q = ParamSpec("_Q")

custom_vjp_call_p = Primitive("custom_vjp_call", multiple_results=True, wire=IS_OPENED)
custom_lin_p = Primitive("custom_lin", multiple_results=True, wire=IS_OPENED)


class CustomVJPPrimal:
    """An argument as a forward rule with `symbolic_zeros=True` sees it: its value, and whether it is differentiated."""

    __slots__ = ("value", "perturbed")

    def __init__(self, value: Any, perturbed: bool):
        self.value, self.perturbed = value, perturbed

    @override
    def __repr__(self) -> str:
        return f"CustomVJPPrimal(value={self.value!r}, perturbed={self.perturbed})"


def custom_vjp_primal_tree_values(tree: PyTree) -> Any:
    """The values in a pytree of `CustomVJPPrimal`.

    Args:
        tree: the pytree that a rule `fwd` gets with `symbolic_zeros=True`.

    Returns:
        a pytree of arrays of any shapes and dtypes.

    Example:
        >>> import weft
        >>> from weft.custom_derivatives import CustomVJPPrimal, custom_vjp_primal_tree_values
        >>> custom_vjp_primal_tree_values({"x": CustomVJPPrimal(2.0, True)})
        {'x': 2.0}
    """
    return tree_map(lambda p: p.value, tree, is_leaf=lambda x: type(x) is CustomVJPPrimal)


def zero_from_primal(val: PyTree, symbolic_zeros: bool = False) -> Any:
    """Cotangents of zero for values.

    Args:
        val: a pytree of arrays of any shapes and dtypes.
        symbolic_zeros: whether the result has `SymbolicZero` objects in place of arrays; bool.

    Returns:
        a pytree of zeros of the same shapes and of the dtypes of cotangents: float0 for integers and booleans, the
        same otherwise.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.custom_derivatives import zero_from_primal
        >>> zero_from_primal({"w": jnp.ones(2)})
        {'w': Array([0., 0.], dtype=float32)}
    """
    return tree_map(
        lambda x: SymbolicZero.from_primal_value(x) if symbolic_zeros else scalar_as_array(zero_tangent(x)), val
    )


# the call ------------------------------------------------------------------------------------------------------------

# Flat rules: fwd(perturbed, *primals) -> (residuals, results); bwd(*residuals, *cotangents) -> cotangents, None for
# zero.


def _stage(trace: JaxprTrace, args: Sequence[Value], params: Params) -> Any:
    form = params["call_jaxpr"]
    if isinstance(form, ClosedJaxpr):
        return trace.record(custom_vjp_call_p, args, params)
    jaxpr, consts = stage(form, [get_aval(x) for x in args], params["name"])
    n, fwd, bwd = len(consts), params["fwd"], params["bwd"]
    if n:
        fwd = Rule(fwd.__name__, lambda perturbed, *xs, fwd=fwd: fwd(perturbed[n:], *xs[n:]))
        bwd = Rule(bwd.__name__, lambda *xs, bwd=bwd: [None] * n + list(bwd(*xs)))
    return trace.record(
        custom_vjp_call_p,
        [*consts, *args],
        dict(params, call_jaxpr=ClosedJaxpr(consts_as_args(jaxpr), []), fwd=fwd, bwd=bwd, num_consts=n),
    )


def _jvp(
    primals: Sequence[Value],
    tangents: Sequence[Value],
    *,
    call_jaxpr: ClosedJaxpr,
    fwd: Callable[..., Any],
    bwd: Callable[..., Any],
    name: str,
    num_consts: int,
    symbolic_zeros: bool,
    optimize_remat: bool,
) -> tuple[Any, Any]:
    perturbed = tuple([type(t) is not Zero for t in tangents])
    if not any(perturbed):
        outs = custom_vjp_call_p.bind(
            *primals,
            call_jaxpr=call_jaxpr,
            fwd=fwd,
            bwd=bwd,
            name=name,
            num_consts=num_consts,
            symbolic_zeros=symbolic_zeros,
            optimize_remat=optimize_remat,
        )
        return outs, [Zero(tangent_aval(get_aval(o))) for o in outs]
    if any(perturbed[:num_consts]):
        raise closed_over_error("custom_vjp", name)
    if optimize_remat:
        res, outs = _bind_remat_opt(primals, call_jaxpr, fwd, perturbed, name)
    else:
        res, outs = fwd(perturbed, *map(scalar_as_array, primals))
    check_results(outs, call_jaxpr, "fwd", name)
    out_avals = [tangent_aval(get_aval(o)) for o in outs]
    in_zeros = tuple(
        [
            not p if symbolic_zeros else type(t) is Zero and t.aval.dtype == dtypes.float0
            for p, t in zip(perturbed, tangents)
        ]
    )
    ts = [instantiate(t) for t, zero in zip(tangents, in_zeros) if not zero]
    out_ts = custom_lin_p.bind(
        *res,
        *ts,
        num_res=len(res),
        bwd=bwd,
        out_avals=tuple(out_avals),
        in_zeros=in_zeros,
        name=name,
        symbolic_zeros=symbolic_zeros,
    )
    return outs, [Zero(a) if a.dtype == dtypes.float0 else t for a, t in zip(out_avals, out_ts)]


def _batch(
    axis: Axis,
    args: Sequence[Value],
    dims: Dims,
    *,
    call_jaxpr: ClosedJaxpr,
    fwd: Callable[..., Any],
    bwd: Callable[..., Any],
    **params: Any,
) -> tuple[Any, Any]:
    def batched_fwd(perturbed: Sequence[bool], *xs: Value) -> tuple[Any, Any]:
        box = []

        def flat(*ys: Value) -> list[Any]:
            res, outs = fwd(perturbed, *ys)
            box.append(len(res))
            return [*res, *outs]

        outs, out_dims = batch_flat(flat, axis, xs, dims)
        outs = [to_front(axis, x, d) for x, d in zip(outs, out_dims)]
        return outs[: box[0]], outs[box[0] :]

    def all_batched_bwd(*xs: Value) -> list[Any]:  # all residuals and cotangents are batched along axis 0
        return _batched_bwd(bwd, axis, len(xs), dims)(*xs)

    outs = custom_vjp_call_p.bind(
        *args,
        call_jaxpr=batched_call(call_jaxpr, axis, dims),
        fwd=Rule(fwd.__name__, batched_fwd),
        bwd=Rule(bwd.__name__, all_batched_bwd),
        **params,
    )
    return outs, [0] * len(outs)


def _batched_bwd(bwd: Callable[..., Any], axis: Axis, n_res: int, in_dims: Dims) -> Callable[..., Any]:
    """`bwd` for batched residuals and cotangents. The cotangent of an argument without a batch axis is summed over the
    axis, and that of another argument is batched like the argument.
    """

    def run(*xs: Value) -> list[Any]:
        given = [element_zero(axis, x, True) for x in xs]
        dims = [None if is_float0(x) or is_zero(x) else 0 for x in given]
        outs, out_dims = batch_flat(lambda *ys: [nothing if y is None else y for y in bwd(*ys)], axis, given, dims)
        results: list[Any] = []
        for x, d, want in zip(outs, out_dims, in_dims):
            if x is nothing or is_zero(x) or is_float0(x):
                results.append(None)
            elif want is not None:
                results.append(moveaxis(to_front(axis, x, d), 0, want))
            else:
                results.append(
                    reduce_sum(broadcast_to_axis(x, axis.size, axis.placed) if d is None else moveaxis(x, d, 0), (0,))
                )
        return results

    return run


class _Nothing:
    """Represents None among the flat results of a batched bwd."""


nothing = _Nothing()


def _with_state(params: Params, n: int, run: Callable[..., Any]) -> Params:
    fwd, bwd, n_out = params["fwd"], params["bwd"], len(params["call_jaxpr"].out_avals)

    def stateful_fwd(perturbed: Sequence[bool], *xs: Value) -> tuple[Any, Any]:
        sizes: list[int] = []

        def flat(*ys: Value) -> list[Any]:
            res, outs = fwd(perturbed[n:], *ys)
            sizes.append(len(res))
            return [*res, *outs]

        state, outs = run(flat, xs[:n], xs[n:])
        return outs[: sizes[0]], [*state, *outs[sizes[0] :]]

    def stateful_bwd(*xs: Value) -> list[Any]:  # residuals, then the cotangents of the state and of the results
        n_res = len(xs) - n - n_out
        return [None] * n + list(bwd(*xs[:n_res], *xs[n_res + n :]))

    return dict(params, fwd=Rule("fwd", stateful_fwd), bwd=Rule("bwd", stateful_bwd))


custom_vjp_call_p.with_state = _with_state
custom_vjp_call_p.shown = shown
custom_vjp_call_p.carries = Carries(Runs.ONCE, {"call_jaxpr": ("operands",)})
custom_vjp_call_p.abstract = lambda *avals, call_jaxpr, **_: list(call_jaxpr.out_avals)
custom_vjp_call_p.effects = lambda params: effects_of(params["call_jaxpr"])
custom_vjp_call_p.axis_names = lambda params: axis_names_of(params["call_jaxpr"])
custom_vjp_call_p.impl = lambda *args, call_jaxpr, **_: call(call_jaxpr, args)
custom_vjp_call_p.function_form = "call_jaxpr"
custom_vjp_call_p.transpose = unsupported(
    "a custom_vjp function is not known to be linear; its bwd differentiates it (weft.vjp, weft.grad)"
)
custom_vjp_call_p.stage, custom_vjp_call_p.jvp, custom_vjp_call_p.batch = _stage, _jvp, _batch
custom_vjp_call_p.decompose = lambda *args, call_jaxpr, **_: eval_jaxpr(call_jaxpr.jaxpr, call_jaxpr.consts, *args)
custom_vjp_call_p.reference = AsDecomposed(custom_vjp_call_p)


# its linear part -----------------------------------------------------------------------------------------------------


def _lin_transpose(
    cts: Sequence[Value],
    *args: Value,
    num_res: int,
    bwd: Callable[..., Any],
    out_avals: Sequence[AbstractValue],
    in_zeros: Sequence[bool],
    name: str,
    symbolic_zeros: bool,
) -> list[Value | None]:
    res = args[:num_res]
    back = bwd(*map(scalar_as_array, res), *[for_rule(ct, symbolic_zeros) for ct in cts])
    back = [ct for ct, zero in zip(back, in_zeros) if not zero]
    return [
        *[None] * num_res,
        *[ct if ct is None else _as_cotangent(ct, x.aval) for ct, x in zip(back, args[num_res:])],
    ]


def _as_cotangent(ct: Value, aval: ShapedArray) -> Value | None:
    if is_zero(ct) or is_float0(ct):
        return None
    return convert(ct, aval.dtype, aval.weak_type) if get_aval(ct).dtype != aval.dtype else ct


def _check_cotangent(ct: Value, aval: ShapedArray, rule: str, fun: str) -> None:
    """Raises unless a rule's cotangent has the shape of the argument. Narrower and wider floats are converted, but a
    complex number is not converted to a real one.
    """
    if ct is None:
        return
    if not is_zero(ct) and not is_array_like(ct):
        raise TypeError(
            at_user_line(
                f"Custom VJP bwd rule {rule} of {fun} gives a {type(ct).__name__} as the cotangent of an argument of"
                f" type {aval}; give an array, or None for zero."
            )
        )
    have = ct.aval if is_zero(ct) else get_aval(ct)
    if have.shape != aval.shape or dtypes.is_complex(have.dtype) and dtypes.is_float(aval.dtype):
        what = "the shapes must be equal" if have.shape != aval.shape else "take its real part"
        raise ValueError(
            at_user_line(
                f"Custom VJP bwd rule {rule} of {fun} gives a cotangent of type {have.str_short()} for an argument of"
                f" type {aval.str_short()}; {what}."
            )
        )


_forward_mode_error = unsupported(
    "can't apply forward-mode differentiation (jvp) to a custom_vjp function: {name}. Define it with custom_jvp, or use"
    " reverse mode (grad, vjp).",
    TypeError,
)


def _lin_batch(
    axis: Axis,
    args: Sequence[Value],
    dims: Dims,
    *,
    num_res: int,
    bwd: Callable[..., Any],
    out_avals: Sequence[AbstractValue],
    in_zeros: Sequence[bool],
    name: str,
    symbolic_zeros: bool,
) -> tuple[Any, Any]:
    args = [to_front(axis, x, d) for x, d in zip(args, dims)]
    batched = _batched_bwd(bwd, axis, num_res, [0] * len(in_zeros))
    avals = tuple(with_axis(a, axis.size, 0, axis.placed) for a in out_avals)
    outs = custom_lin_p.bind(
        *args,
        num_res=num_res,
        bwd=Rule(bwd.__name__, batched),
        out_avals=avals,
        in_zeros=in_zeros,
        name=name,
        symbolic_zeros=symbolic_zeros,
    )
    return outs, [0] * len(outs)


custom_lin_p.shown = lambda params: [
    (k, list(params[k]) if k == "in_zeros" else params[k]) for k in ("bwd", "in_zeros", "num_res", "symbolic_zeros")
]
custom_lin_p.abstract = lambda *avals, out_avals, **_: list(out_avals)
custom_lin_p.impl = custom_lin_p.decompose = custom_lin_p.jvp = _forward_mode_error
custom_lin_p.reference = unsupported(
    "the derivative of a custom_vjp function is known in reverse only: custom_lin is transposed before a program runs"
)
custom_lin_p.transpose, custom_lin_p.batch, custom_lin_p.in_reverse_only = _lin_transpose, _lin_batch, True


# forward rules that need not run -------------------------------------------------------------------------------------

remat_opt_p = Primitive("remat_opt", multiple_results=True, wire=IS_OPENED)


def _bind_remat_opt(
    primals: Sequence[Value], form: Any, fwd: Callable[..., Any], perturbed: Sequence[bool], name: str
) -> tuple[Any, Any]:
    """The forward rule as one equation, which dead-code elimination turns back into the function if no residual is used
    (as when a checkpoint computes the forward pass again). Residuals that are arguments are passed through, not
    computed.
    """
    avals = [get_aval(x) for x in primals]
    box: list[Any] = []

    def flat(*xs: Value) -> list[Any]:
        res, outs = fwd(perturbed, *map(scalar_as_array, xs))
        box.append(len(res))
        return [*res, *outs]

    jaxpr, consts = stage(flat, avals, f"the forward rule of {name}")
    fun_jaxpr, fun_consts = stage(lambda *xs: call(form, xs), avals, name)
    n, opened = box[0], consts_as_args(jaxpr)
    operands = [*consts, *fun_consts, *primals]
    at: dict[Atom, int] = {v: i for i, v in enumerate(opened.invars)}
    own = [i for i, v in enumerate(opened.outvars[:n]) if v not in at]
    # both take the constants of both
    unused = [Var(v.aval) for v in fun_jaxpr.constvars]
    whole = opened.replace(
        invars=[*jaxpr.constvars, *unused, *jaxpr.invars],
        outvars=[*[opened.outvars[i] for i in own], *opened.outvars[n:]],
    )
    plain = fun_jaxpr.replace(
        constvars=[], invars=[*[Var(v.aval) for v in jaxpr.constvars], *fun_jaxpr.constvars, *fun_jaxpr.invars]
    )
    outs = remat_opt_p.bind(
        *operands,
        fwd_jaxpr=ClosedJaxpr(whole, []),
        fun_jaxpr=ClosedJaxpr(plain, []),
        num_consts=len(consts) + len(fun_consts),
        num_res=len(own),
    )
    values = [*consts, *primals]
    computed = iter(outs)
    mine = {i: next(computed) for i in own}
    res = [mine[i] if i in mine else values[at[opened.outvars[i]]] for i in range(n)]
    return res, list(computed)


def _opt_jvp(
    primals: Sequence[Value],
    tangents: Sequence[Value],
    *,
    fwd_jaxpr: ClosedJaxpr,
    fun_jaxpr: ClosedJaxpr,
    num_consts: int,
    num_res: int,
) -> tuple[Any, Any]:
    nonzeros = [type(t) is not Zero for t in tangents]
    n_out = len(fwd_jaxpr.out_avals) - num_res
    both, out_nz = jvp_jaxpr(fwd_jaxpr, nonzeros, [False] * num_res + [True] * n_out)
    res_nz = sum(out_nz[:num_res])
    n = len(out_nz)
    live = [i for i, nz in enumerate(out_nz) if nz]
    order = [*range(num_res), *range(n, n + res_nz), *range(num_res, n), *range(n + res_nz, n + len(live))]
    both = ClosedJaxpr(both.jaxpr.replace(outvars=[both.jaxpr.outvars[i] for i in order]), both.consts)
    fun, _ = jvp_jaxpr(fun_jaxpr, nonzeros, out_nz[num_res:])
    outs = remat_opt_p.bind(
        *primals,
        *[t for t in tangents if type(t) is not Zero],
        fwd_jaxpr=both,
        fun_jaxpr=fun,
        num_consts=num_consts,
        num_res=num_res + res_nz,
    )
    res, res_t = outs[:num_res], outs[num_res : num_res + res_nz]
    rest = outs[num_res + res_nz :]
    ts = iter([*res_t, *rest[n_out:]])
    results = [*res, *rest[:n_out]]
    return results, [next(ts) if nz else Zero(tangent_aval(get_aval(o))) for o, nz in zip(results, out_nz)]


def _opt_batch(
    axis: Axis, args: Sequence[Value], dims: Dims, *, fwd_jaxpr: ClosedJaxpr, fun_jaxpr: ClosedJaxpr, **params: Any
) -> tuple[Any, Any]:
    batched = [d is not None for d in dims]
    new, _ = batch_jaxpr(fwd_jaxpr, axis, batched, True)
    fun, _ = batch_jaxpr(fun_jaxpr, axis, batched, True)
    outs = remat_opt_p.bind(
        *[x if d is None else to_front(axis, x, d) for x, d in zip(args, dims)], fwd_jaxpr=new, fun_jaxpr=fun, **params
    )
    return outs, [0] * len(outs)


def _opt_dce(used_outputs: Sequence[bool], eqn: JaxprEqn) -> JaxprEqn | None:
    num_res, fun = eqn.params["num_res"], eqn.params["fun_jaxpr"]
    if any(used_outputs[:num_res]) or not num_res or eqn.effects or fun.effects:  # effects stay unchanged
        return eqn
    params = dict(eqn.params, fwd_jaxpr=fun, num_res=0)
    return eqn.replace(outvars=eqn.outvars[num_res:], params=params)


def _opt_partial_eval(trace: PartialTrace, args: tuple[Value, ...], params: Params) -> Any:
    """A second derivative differentiates the operations of the rule."""
    return eval_jaxpr(params["fwd_jaxpr"].jaxpr, params["fwd_jaxpr"].consts, *args)


remat_opt_p.carries = Carries(Runs.ONCE, {"fwd_jaxpr": ("operands",)}, aside=("fun_jaxpr",))
remat_opt_p.abstract = lambda *avals, fwd_jaxpr, **_: list(fwd_jaxpr.out_avals)
remat_opt_p.effects = lambda params: params["fwd_jaxpr"].effects
remat_opt_p.axis_names = lambda params: collective_names(params["fwd_jaxpr"])
remat_opt_p.impl = lambda *args, fwd_jaxpr, **_: eval_jaxpr(fwd_jaxpr.jaxpr, fwd_jaxpr.consts, *args)
remat_opt_p.decompose = remat_opt_p.impl
remat_opt_p.reference = AsDecomposed(remat_opt_p)
remat_opt_p.transpose = unsupported("the forward rule of a custom_vjp function is not known to be linear")
remat_opt_p.jvp, remat_opt_p.partial_eval, remat_opt_p.batch, remat_opt_p.dce = (
    _opt_jvp,
    _opt_partial_eval,
    _opt_batch,
    _opt_dce,
)


# the function --------------------------------------------------------------------------------------------------------


class custom_vjp(Generic[Args, Result]):
    """A function whose reverse-mode derivative is defined by rules.

    `defvjp(fwd, bwd)`: fwd(*args) -> (out, residuals); bwd(residuals, ct) -> a tuple of cotangents, one for each
    differentiable argument, None for zero. `nondiff_argnums` are passed to fwd in their positions and to bwd first, as
    Python values.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> @weft.custom_vjp
        ... def f(x): return jnp.sin(x)
        >>> f.defvjp(lambda x: (f(x), jnp.cos(x)), lambda cos_x, g: (3 * g * cos_x,))
        >>> weft.grad(f)(0.0)
        Array(3., dtype=float32, weak_type=True)
    """

    def __init__(
        self, fun: Callable[Args, Result], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()
    ):
        update_wrapper(self, fun)
        self.fun: Callable[..., Any] = fun
        self.nondiff_argnums = static_positions(fun, nondiff_argnums, nondiff_argnames)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        self.symbolic_zeros = self.optimize_remat = False

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Sets the forward and backward rules.

        With `symbolic_zeros`, fwd gets each array as a `CustomVJPPrimal`, and bwd may get cotangents as `SymbolicZero`.
        With `optimize_remat`, a checkpoint that needs no residual of fwd runs the function instead of fwd, unless one
        of them has effects; fwd must then be traceable.
        """
        if symbolic_zeros and optimize_remat:
            raise NotImplementedError(
                "optimize_remat for custom_vjp does not support symbolic zeros: choose one of the two."
            )
        self.fwd, self.bwd, self.symbolic_zeros, self.optimize_remat = fwd, bwd, symbolic_zeros, optimize_remat

    if TYPE_CHECKING:

        @overload
        def __get__(self, obj: None, objtype: Any = None) -> custom_vjp[Args, Result]: ...
        @overload
        def __get__(
            self: custom_vjp[Concatenate[Any, _Q], Result], obj: object, objtype: Any = None
        ) -> Callable[_Q, Result]: ...
        def __get__(self, obj: object, objtype: Any = None) -> Any: ...

    else:

        def __get__(self, obj: object, objtype: type[Any] | None = None) -> Any:
            return self if obj is None else bound_method(self, obj)

    def __call__(self, *given: Args.args, **kwargs: Args.kwargs) -> Result:
        fwd, bwd = self.fwd, self.bwd
        if fwd is None or bwd is None:
            raise AttributeError(
                at_user_line(
                    f"No VJP defined for custom_vjp function {name_of(self.fun)} using defvjp. Give it both rules:"
                    " f.defvjp(forward, backward)."
                )
            )
        args = resolve(self.fun, given, kwargs)
        static = {i % len(args): args[i] for i in self.nondiff_argnums}
        dynamic = tuple(a for i, a in enumerate(args) if i not in static)
        leaves, in_tree = tree_flatten(dynamic)
        trees: dict[str, Any] = {}

        def put_back(values: Sequence[Value]) -> list[Any]:
            rest = iter(values)
            return [static[i] if i in static else next(rest) for i in range(len(args))]

        def flat(*xs: Value) -> list[Value]:
            out, trees["out"] = tree_flatten(self.fun(*put_back(in_tree.unflatten(xs))))
            return out

        def flat_fwd(perturbed: Sequence[bool], *xs: Value) -> tuple[Any, Any]:
            trees["in"] = [get_aval(x) for x in xs]
            given = [CustomVJPPrimal(x, p) for x, p in zip(xs, perturbed)] if self.symbolic_zeros else xs
            pair = fwd(*put_back(in_tree.unflatten(given)))
            if not isinstance(pair, (list, tuple)) or len(pair) != 2:
                raise TypeError(
                    at_user_line(
                        f"Custom VJP fwd rule {name_of(fwd)} for function {name_of(self.fun)} returns (result,"
                        f" residuals), and this one returned {type(pair).__name__}."
                    )
                )
            outs, trees["out"] = tree_flatten(pair[0])
            res, trees["res"] = tree_flatten(pair[1])
            # bwd may branch on values known while tracing
            trees["known"] = {i: x for i, x in enumerate(res) if type(x) is bool}
            return [x for i, x in enumerate(res) if i not in trees["known"]], outs

        def flat_bwd(*xs: Value) -> list[Any]:
            known, rest = trees["known"], iter(xs)
            res = [known[i] if i in known else next(rest) for i in range(trees["res"].num_leaves)]
            cts = bwd(*static.values(), trees["res"].unflatten(res), trees["out"].unflatten(list(rest)))
            flat = _flat_cotangents(cts, in_tree, name_of(bwd), name_of(self.fun))
            for ct, aval in zip(flat, trees["in"]):
                _check_cotangent(ct, aval, name_of(bwd), name_of(self.fun))
            return flat

        outs = custom_vjp_call_p.bind(
            *leaves,
            call_jaxpr=flat,
            fwd=Rule(name_of(fwd), flat_fwd),
            bwd=Rule(name_of(bwd), flat_bwd),
            name=name_of(self),
            num_consts=0,
            symbolic_zeros=self.symbolic_zeros,
            optimize_remat=self.optimize_remat,
        )
        return tree_unflatten(trees["out"], outs)


def _matched(ct: Any, structure: PyTreeDef) -> list[Any]:
    """The cotangent of each leaf of an argument: a leaf stands for all below it, and what is an array for the library
    that made it stands for a leaf.
    """
    leaves, tree = tree_flatten(ct, is_leaf=lambda x: x is None)
    if tree == structure:
        return leaves
    try:
        return broadcast_prefix(ct, structure.unflatten([0] * structure.num_leaves))
    except ValueError:
        mine = structure.flatten_up_to(ct)
        if any(x is not None and not is_zero(x) and not is_array_like(x) for x in mine):
            raise ValueError(f"it gives {tree} for an argument of structure {structure}") from None
        return mine


def _flat_cotangents(cts: Sequence[Value], in_tree: PyTreeDef, rule: str, fun: str) -> list[Any]:
    if isinstance(cts, list):
        cts = tuple(cts)
    n = len(in_tree.nodes)
    if not isinstance(cts, tuple) or len(cts) != n:
        raise TypeError(
            at_user_line(
                f"Custom VJP bwd rule {rule} for {fun} returns a tuple with a cotangent for each of the {n} arguments"
                " that are differentiated, and this one returned a"
                f" {type(cts).__name__}{f' of length {len(cts)}' if isinstance(cts, tuple) else ''}."
            )
        )
    flat: list[Any] = []
    for ct, sub in zip(cts, in_tree.nodes):
        if ct is None:
            flat.extend([None] * sub.num_leaves)
        else:
            try:
                flat.extend(_matched(ct, sub))
            except ValueError as e:
                raise TypeError(
                    f"Custom VJP bwd rule {rule} for {fun} gives a cotangent of another structure than the"
                    f" argument's: {e}"
                ) from e
    return flat


def custom_gradient(fun: Callable[Args, tuple[Result, Any]]) -> Function[Args, Result]:
    """A decorator for functions that return their value together with their pullback: fun(*args) -> (out, ct ->
    cotangents).

    The pullback returns a tuple with a cotangent for each argument, or a single cotangent if there is one argument.

    Args:
        fun: function that returns (out, pullback).

    Returns:
        function of the same arguments that returns `out`, pytrees of arrays of any dtype and shape.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> @weft.custom_gradient
        ... def f(x): return x ** 2, lambda g: (10 * g * x,)
        >>> weft.grad(f)(3.0)
        Array(30., dtype=float32, weak_type=True)
    """
    function: Callable[..., Any] = fun

    def plain(*args: Value, **kwargs: Any) -> Any:
        return function(*args, **kwargs)[0]

    update_wrapper(plain, fun)
    wrapped = custom_vjp(plain)

    def fwd(*args: Value) -> tuple[Any, Any]:
        out, pullback = function(*args)
        leaves, tree = tree_flatten(out)
        box: list[Any] = []

        def flat(*cts: Value) -> list[Value]:
            back = pullback(tree_unflatten(tree, cts))
            back = tuple(back) if isinstance(back, (tuple, list)) else (back,)
            xs, box_tree = tree_flatten(back)
            box.append(box_tree)
            return xs

        jaxpr, consts = stage(flat, [tangent_aval(get_aval(x)) for x in leaves], f"the pullback of {name_of(fun)}")
        return out, _Pullback(consts, (jaxpr, box[0]))

    def bwd(saved: Any, ct: Value) -> Any:
        jaxpr, tree = saved.program
        return tree_unflatten(tree, [scalar_as_array(x) for x in eval_jaxpr(jaxpr, saved.consts, *tree_flatten(ct)[0])])

    wrapped.defvjp(fwd, bwd)

    @like(fun)
    def wrapped_fun(*args: Value, **kwargs: Any) -> Any:
        return wrapped(*resolve(fun, args, kwargs))

    return wrapped_fun


class _Pullback:
    """A traced pullback: a pytree of the values that it closes over."""

    __slots__ = ("consts", "program")

    def __init__(self, consts: Sequence[Value], program: Any):
        self.consts, self.program = consts, program


register_pytree_node(
    _Pullback, lambda p: (tuple(p.consts), p.program), lambda program, consts: _Pullback(consts, program)
)
