"""custom_jvp, custom_vjp and checkpoint: functions whose derivatives the user shapes."""
from __future__ import annotations

from functools import update_wrapper
from inspect import signature
from typing import Any, Callable, Sequence

from .. import dtypes
from ..avals import ShapedArray, shaped, tangent_aval
from ..core.effects import any_io
from ..core.jaxpr import ClosedJaxpr, DropVar, Jaxpr, Literal, eval_jaxpr
from ..core.primitive import Primitive, UndefinedPrimal, Zero
from ..core.trace import get_aval
from ..errors import at_user_line
from ..host import np
from ..ops.linear import broadcast_to_axis, convert, moveaxis, reduce_sum, settled, zeros
from ..transforms.batch import batch_flat, batch_jaxpr, to_front
from ..transforms.dce import dce_jaxpr
from ..transforms.jvp import instantiate, jvp_jaxpr
from ..transforms.linearize import split_jaxpr
from ..transforms.stage import consts_as_args, hoist_tracers, stage
from ..transforms.transpose import transpose_jaxpr
from ..tree import tree_flatten, tree_map, tree_unflatten

# custom_jvp ----------------------------------------------------------------------------------------------------------

custom_jvp_call_p = Primitive("custom_jvp_call", multiple_results=True)


def _call(call, args) -> list:
    """Runs the function form (a callable) or the staged form (a closed jaxpr) of a custom call."""
    return eval_jaxpr(call.jaxpr, call.consts, *args) if isinstance(call, ClosedJaxpr) else call(*map(settled, args))


def effects_of(call) -> frozenset:
    """The effects of a custom call's staged form; its function form is never recorded."""
    return call.effects if isinstance(call, ClosedJaxpr) else frozenset()


def _batched_call(call, axis, dims):
    """`call` on batched arguments, with all results batched along axis 0."""
    def batched(*args):
        outs, out_dims = batch_flat(lambda *xs: _call(call, xs), axis, args, dims)
        return [to_front(axis, x, d) for x, d in zip(outs, out_dims)]
    return batched


class _Rule:
    """A flat derivative rule as a parameter of an equation; equal only to itself, shown by its name."""
    def __init__(self, name: str, fun: Callable):
        self.__name__, self.fun = name, fun

    def __call__(self, *args):
        return self.fun(*args)


def _custom_jvp_stage(trace, args, params):
    call = params["call_jaxpr"]
    if isinstance(call, ClosedJaxpr):
        return trace.record(custom_jvp_call_p, args, params)
    jaxpr, consts = stage(call, [get_aval(x) for x in args], params["name"])
    n = len(consts)
    rule = params["jvp"]
    shifted = _Rule(rule.__name__, lambda *xs: rule(*xs[n:(len(xs)) // 2], *xs[len(xs) // 2 + n:])) if n else rule
    closed = ClosedJaxpr(consts_as_args(jaxpr), [])
    return trace.record(custom_jvp_call_p, [*consts, *args], dict(params, call_jaxpr=closed, jvp=shifted))


def _custom_jvp_jvp(primals, tangents, *, call_jaxpr, jvp, **_):
    ts = [_float0_zeros(t.aval) if type(t) is Zero and t.aval.dtype == dtypes.float0 else settled(instantiate(t)) for t in tangents]
    outs = jvp(*map(settled, primals), *ts)
    n = len(outs) // 2
    return list(outs[:n]), list(outs[n:])


def _float0_zeros(aval):
    return np.zeros(aval.shape, dtypes.float0) if np is not None else Zero(aval)


def _zero_tangent(out):
    aval = tangent_aval(get_aval(out))
    return _float0_zeros(aval) if aval.dtype == dtypes.float0 else zeros(aval)


def _custom_jvp_batch(axis, args, dims, *, call_jaxpr, jvp, **params):
    def batched_jvp(*xs):
        """Tangents of integers (float0) are not arrays that could carry a batch axis."""
        t_dims = [None if _is_float0(t) else d for t, d in zip(xs[len(dims):], dims)]
        outs, out_dims = batch_flat(jvp, axis, xs, [*dims, *t_dims])
        return [x if type(x) is Zero else to_front(axis, x, d) for x, d in zip(outs, out_dims)]
    outs = custom_jvp_call_p.bind(*args, call_jaxpr=_batched_call(call_jaxpr, axis, dims), jvp=_Rule(jvp.__name__, batched_jvp), **params)
    return outs, [0] * len(outs)


def _is_float0(x) -> bool:
    return getattr(x, "dtype", None) == dtypes.float0


custom_jvp_call_p.abstract = lambda *avals, call_jaxpr, **_: list(call_jaxpr.out_avals)
custom_jvp_call_p.effects = lambda params: effects_of(params["call_jaxpr"])
custom_jvp_call_p.impl = lambda *args, call_jaxpr, **_: _call(call_jaxpr, args)
custom_jvp_call_p.stage, custom_jvp_call_p.jvp, custom_jvp_call_p.batch = _custom_jvp_stage, _custom_jvp_jvp, _custom_jvp_batch
custom_jvp_call_p.decompose = lambda *args, call_jaxpr, **_: eval_jaxpr(call_jaxpr.jaxpr, call_jaxpr.consts, *args)


def _resolve(fun: Callable, args: tuple, kwargs: dict) -> tuple:
    """Keyword arguments and defaults in their positions."""
    if not kwargs and _has_no_defaults(fun, len(args)):
        return args
    try:
        bound = signature(fun).bind(*args, **kwargs)
    except ValueError:
        return args
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(f"{_name(fun)}: a function with custom derivatives takes no keyword-only arguments.")
    return bound.args


def _has_no_defaults(fun, n: int) -> bool:
    code = getattr(fun, "__code__", None)
    return code is not None and code.co_argcount == n


def _no_symbolic_zeros(asked: bool) -> None:
    if asked:
        raise ValueError("rules with symbolic_zeros=True are not available yet; leave it out, and zeros come as arrays.")


def _name(fun) -> str:
    return getattr(fun, "__name__", type(fun).__name__)


class custom_jvp:
    """A function whose derivative is given by a rule of its own.

    `defjvp(rule)` takes rule(primals, tangents) -> (primal_out, tangent_out); the tangent must be linear in the tangents.
    `nondiff_argnums` are passed to the rule as Python values before the two tuples.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> @weft.custom_jvp
        ... def f(x): return jnp.sin(x)
        >>> @f.defjvp
        ... def f_jvp(primals, tangents): return f(*primals), 2 * tangents[0]
        >>> weft.grad(f)(1.0)
        Array(2., dtype=float32, weak_type=True)
    """

    def __init__(self, fun: Callable, nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()):
        update_wrapper(self, fun)
        names = list(signature(fun).parameters) if nondiff_argnames else []
        self.fun, self.nondiff_argnums = fun, tuple(sorted({*nondiff_argnums, *[names.index(n) for n in nondiff_argnames]}))
        self.jvp: Callable | None = None
        self.symbolic_zeros = False

    def defjvp(self, jvp: Callable, symbolic_zeros: bool = False) -> Callable:
        """Sets the rule; usable as a decorator."""
        _no_symbolic_zeros(symbolic_zeros)
        self.jvp, self.symbolic_zeros = jvp, symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable | None) -> None:
        """Sets one rule for each argument: (tangent, result, *primals) -> its term of the result's tangent, or None for zero."""
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        def jvp(primals, tangents):
            out = self(*primals)
            terms = [rule(t, out, *primals) for rule, t in zip(jvps, tangents) if rule is not None and not _is_float0(t)]
            if not terms:
                return out, tree_map(_zero_tangent, out)
            total = terms[0]
            for term in terms[1:]:
                total = tree_map(lambda a, b: a + b, total, term)
            return out, total
        self.defjvp(jvp)

    def __get__(self, obj, objtype=None):
        return self if obj is None else _bound(self, obj)

    def __call__(self, *args, **kwargs):
        if self.jvp is None:
            raise AttributeError(f"No JVP defined for custom_jvp function {_name(self.fun)} using defjvp.")
        args = _resolve(self.fun, args, kwargs)
        static = {i % len(args): args[i] for i in self.nondiff_argnums}
        leaves, in_tree = tree_flatten(tuple(a for i, a in enumerate(args) if i not in static))
        box: list = []

        def put_back(dynamic):
            rest = iter(dynamic)
            return [static[i] if i in static else next(rest) for i in range(len(args))]

        def flat(*xs):
            out, tree = tree_flatten(self.fun(*put_back(in_tree.unflatten(xs))))
            box.append(tree)
            return out

        def flat_jvp(*xs):
            n = len(xs) // 2
            primals, tangents = in_tree.unflatten(xs[:n]), in_tree.unflatten(xs[n:])
            pair = self.jvp(*static.values(), primals, tangents)
            if not isinstance(pair, (list, tuple)) or len(pair) != 2:
                raise TypeError(f"Custom JVP rule {_name(self.jvp)} for function {_name(self.fun)} must produce a pair (primals_out, tangents_out), got {type(pair).__name__}.")
            outs, out_tree = tree_flatten(pair[0])
            out_ts, t_tree = tree_flatten(pair[1])
            if out_tree != t_tree:
                raise TypeError(f"Custom JVP rule {_name(self.jvp)} for function {_name(self.fun)} must produce primal and tangent outputs with equal "
                                f"container (pytree) structures, but got {out_tree} and {t_tree}.")
            box.append(out_tree)
            return [*outs, *[_as_tangent(o, t, _name(self.jvp), _name(self.fun)) for o, t in zip(outs, out_ts)]]
        outs = custom_jvp_call_p.bind(*leaves, call_jaxpr=flat, jvp=_Rule(_name(self.jvp), flat_jvp), name=_name(self), symbolic_zeros=self.symbolic_zeros)
        return tree_unflatten(box[-1], outs)


def _bound(custom, obj):
    def method(*args, **kwargs):
        return custom(obj, *args, **kwargs)
    return method


def _as_tangent(out, t, rule: str, fun: str):
    want = tangent_aval(get_aval(out))
    if type(t) is Zero or _is_float0(t) or want.dtype == dtypes.float0:
        return Zero(want)
    have = get_aval(t)
    if have.shape != want.shape or (have.dtype != want.dtype and not have.weak_type):
        raise TypeError(f"Custom JVP rule {rule} for function {fun} must produce primal and tangent outputs with corresponding shapes and dtypes, "
                        f"but got {get_aval(out).str_short()} and {have.str_short()}.")
    return convert(t, want.dtype, have.weak_type) if have.dtype != want.dtype else t


# custom_vjp ----------------------------------------------------------------------------------------------------------

custom_vjp_call_p = Primitive("custom_vjp_call", multiple_results=True)
custom_lin_p = Primitive("custom_lin", multiple_results=True)


def _custom_vjp_stage(trace, args, params):
    call = params["call_jaxpr"]
    if isinstance(call, ClosedJaxpr):
        return trace.record(custom_vjp_call_p, args, params)
    jaxpr, consts = stage(call, [get_aval(x) for x in args], params["name"])
    n, fwd, bwd = len(consts), params["fwd"], params["bwd"]
    if n:
        fwd = _Rule("fwd", lambda *xs, fwd=fwd: fwd(*xs[n:]))
        bwd = _Rule("bwd", lambda *xs, bwd=bwd: [None] * n + list(bwd(*xs)))
    return trace.record(custom_vjp_call_p, [*consts, *args],
                        dict(params, call_jaxpr=ClosedJaxpr(consts_as_args(jaxpr), []), fwd=fwd, bwd=bwd))


def _custom_vjp_jvp(primals, tangents, *, call_jaxpr, fwd, bwd, name, **_):
    res, outs = fwd(*map(settled, primals))
    out_avals = [tangent_aval(get_aval(o)) for o in outs]
    live = [not (type(t) is Zero and t.aval.dtype == dtypes.float0) for t in tangents]
    ts = [instantiate(t) for t, keep in zip(tangents, live) if keep]
    out_ts = custom_lin_p.bind(*res, *ts, num_res=len(res), bwd=bwd, out_avals=tuple(out_avals), live=tuple(live), name=name)
    return outs, [Zero(a) if a.dtype == dtypes.float0 else t for a, t in zip(out_avals, out_ts)]


def _custom_lin_transpose(cts, *args, num_res, bwd, out_avals, live, name):
    res = args[:num_res]
    back = bwd(*map(settled, res), *[_float0_zeros(ct.aval) if type(ct) is Zero and ct.aval.dtype == dtypes.float0 else settled(instantiate(ct)) for ct in cts])
    back = [ct for ct, keep in zip(back, live) if keep]
    return [*[None] * num_res, *[ct if ct is None else _as_cotangent(ct, x.aval, name) for ct, x in zip(back, args[num_res:])]]


def _as_cotangent(ct, aval: ShapedArray, name: str):
    if type(ct) is Zero or _is_float0(ct):
        return None
    have = get_aval(ct)
    if have.shape != aval.shape:
        raise ValueError(f"Custom VJP bwd rule of {name} must produce an output with the same shape as the args tuple of the primal function; "
                         f"it gives {have.str_short()} for an argument of type {aval.str_short()}.")
    return convert(ct, aval.dtype, aval.weak_type) if have.dtype != aval.dtype else ct


def _forward_mode_error(*args, name, **_):
    raise TypeError(f"can't apply forward-mode differentiation (jvp) to a custom_vjp function: {name}. Define it with custom_jvp, or use reverse mode (grad, vjp).")


def _custom_lin_batch(axis, args, dims, *, num_res, bwd, out_avals, live, name):
    args = [to_front(axis, x, d) for x, d in zip(args, dims)]
    batched = _batched_bwd(bwd, axis, [0] * num_res, [True] * (len(args) - num_res))
    avals = tuple(shaped((axis.size, *a.shape), a.dtype, a.weak_type) for a in out_avals)
    outs = custom_lin_p.bind(*args, num_res=num_res, bwd=_Rule("bwd", batched), out_avals=avals, live=live, name=name)
    return outs, [0] * len(outs)


def _batched_bwd(bwd, axis, res_dims, in_batched):
    """`bwd` for batched residuals and cotangents; the cotangent of an argument without batch axis is summed over it."""
    def run(*xs):
        dims = [*res_dims, *[None if _is_float0(x) else 0 for x in xs[len(res_dims):]]]
        outs, out_dims = batch_flat(lambda *ys: [None_ if y is None else y for y in bwd(*ys)], axis, xs, dims)
        results = []
        for x, d, batched in zip(outs, out_dims, [*in_batched, *[True] * len(outs)]):
            if x is None_ or type(x) is Zero or _is_float0(x):
                results.append(None)
            elif batched:
                results.append(to_front(axis, x, d))
            else:
                results.append(reduce_sum(broadcast_to_axis(x, axis.size) if d is None else moveaxis(x, d, 0), (0,)))
        return results
    return run


class _NoCotangent:
    """Stands for None among the flat results of a batched bwd."""


None_ = _NoCotangent()


def _custom_vjp_batch(axis, args, dims, *, call_jaxpr, fwd, bwd, **params):
    def batched_fwd(*xs):
        box = []

        def flat(*ys):
            res, outs = fwd(*ys)
            box.append(len(res))
            return [*res, *outs]
        outs, out_dims = batch_flat(flat, axis, xs, dims)
        outs = [to_front(axis, x, d) for x, d in zip(outs, out_dims)]
        return outs[:box[0]], outs[box[0]:]

    def batched_bwd(*xs):      # all residuals and cotangents are batched along axis 0
        return _batched_bwd(bwd, axis, [0] * len(xs), [d is not None for d in dims])(*xs)
    outs = custom_vjp_call_p.bind(*args, call_jaxpr=_batched_call(call_jaxpr, axis, dims), fwd=_Rule("fwd", batched_fwd),
                                  bwd=_Rule("bwd", batched_bwd), **params)
    return outs, [0] * len(outs)


custom_vjp_call_p.abstract = lambda *avals, call_jaxpr, **_: list(call_jaxpr.out_avals)
custom_vjp_call_p.effects = lambda params: effects_of(params["call_jaxpr"])
custom_vjp_call_p.impl = lambda *args, call_jaxpr, **_: _call(call_jaxpr, args)
custom_vjp_call_p.stage, custom_vjp_call_p.jvp, custom_vjp_call_p.batch = _custom_vjp_stage, _custom_vjp_jvp, _custom_vjp_batch
custom_vjp_call_p.decompose = lambda *args, call_jaxpr, **_: eval_jaxpr(call_jaxpr.jaxpr, call_jaxpr.consts, *args)
custom_lin_p.abstract = lambda *avals, out_avals, **_: list(out_avals)
custom_lin_p.impl, custom_lin_p.jvp = _forward_mode_error, lambda primals, tangents, **params: _forward_mode_error(**params)
custom_lin_p.decompose, custom_lin_p.transpose, custom_lin_p.batch = _forward_mode_error, _custom_lin_transpose, _custom_lin_batch


class custom_vjp:
    """A function whose reverse-mode derivative is given by rules of its own.

    `defvjp(fwd, bwd)`: fwd(*args) -> (out, residuals); bwd(residuals, ct) -> a tuple of cotangents, one for each differentiable
    argument, None for zero. `nondiff_argnums` go to fwd in their places and to bwd first, as Python values.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> @weft.custom_vjp
        ... def f(x): return jnp.sin(x)
        >>> f.defvjp(lambda x: (f(x), jnp.cos(x)), lambda cos_x, g: (3 * g * cos_x,))
        >>> weft.grad(f)(0.0)
        Array(3., dtype=float32, weak_type=True)
    """

    def __init__(self, fun: Callable, nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()):
        update_wrapper(self, fun)
        names = list(signature(fun).parameters) if nondiff_argnames else []
        self.fun, self.nondiff_argnums = fun, tuple(sorted({*nondiff_argnums, *[names.index(n) for n in nondiff_argnames]}))
        self.fwd: Callable | None = None
        self.bwd: Callable | None = None

    def defvjp(self, fwd: Callable, bwd: Callable, symbolic_zeros: bool = False, optimize_remat: bool = False) -> None:
        """Sets the forward and backward rules."""
        _no_symbolic_zeros(symbolic_zeros)
        self.fwd, self.bwd = fwd, bwd

    def __get__(self, obj, objtype=None):
        return self if obj is None else _bound(self, obj)

    def __call__(self, *args, **kwargs):
        if self.fwd is None or self.bwd is None:
            raise AttributeError(f"No VJP defined for custom_vjp function {_name(self.fun)} using defvjp.")
        args = _resolve(self.fun, args, kwargs)
        static = {i % len(args): args[i] for i in self.nondiff_argnums}
        dynamic = tuple(a for i, a in enumerate(args) if i not in static)
        leaves, in_tree = tree_flatten(dynamic)
        trees: dict[str, Any] = {}

        def put_back(values):
            rest = iter(values)
            return [static[i] if i in static else next(rest) for i in range(len(args))]

        def flat(*xs):
            out, trees["out"] = tree_flatten(self.fun(*put_back(in_tree.unflatten(xs))))
            return out

        def flat_fwd(*xs):
            pair = self.fwd(*put_back(in_tree.unflatten(xs)))
            if not isinstance(pair, (list, tuple)) or len(pair) != 2:
                raise TypeError(f"Custom VJP fwd rule {_name(self.fwd)} for function {_name(self.fun)} must produce a pair (out, residuals), got {type(pair).__name__}.")
            outs, trees["out"] = tree_flatten(pair[0])
            res, trees["res"] = tree_flatten(pair[1])
            return res, outs

        def flat_bwd(*xs):
            n = trees["res"].num_leaves
            cts = self.bwd(*static.values(), trees["res"].unflatten(xs[:n]), trees["out"].unflatten(xs[n:]))
            return _flat_cotangents(cts, in_tree, _name(self.bwd), _name(self.fun))
        outs = custom_vjp_call_p.bind(*leaves, call_jaxpr=flat, fwd=_Rule("fwd", flat_fwd), bwd=_Rule("bwd", flat_bwd), name=_name(self))
        return tree_unflatten(trees["out"], outs)


def _flat_cotangents(cts, in_tree, rule: str, fun: str) -> list:
    if isinstance(cts, list):
        cts = tuple(cts)
    n = len(in_tree.nodes)
    if not isinstance(cts, tuple) or len(cts) != n:
        raise TypeError(f"Custom VJP bwd rule {rule} for {fun} must produce a tuple of length equal to the number of its differentiable arguments, "
                        f"{n}, got {type(cts).__name__}{f' of length {len(cts)}' if isinstance(cts, tuple) else ''}.")
    flat: list = []
    for ct, sub in zip(cts, in_tree.nodes):
        if ct is None:
            flat.extend([None] * sub.num_leaves)
        else:
            try:
                leaves, tree = tree_flatten(ct, is_leaf=lambda x: x is None)
                flat.extend(leaves if tree == sub else sub.flatten_up_to(ct))
            except ValueError as e:
                raise TypeError(f"Custom VJP bwd rule {rule} for {fun} must produce outputs with the structure of its arguments: {e}") from e
    return flat


# checkpoint ----------------------------------------------------------------------------------------------------------

remat_p = Primitive("remat2", multiple_results=True)


def _remat_closed(jaxpr: Jaxpr) -> ClosedJaxpr:
    return ClosedJaxpr(jaxpr, [])


def _remat_jvp(primals, tangents, *, jaxpr, **params):
    nonzeros = [type(t) is not Zero for t in tangents]
    both, out_nz = jvp_jaxpr(_remat_closed(jaxpr), nonzeros)
    outs = remat_p.bind(*both.consts, *primals, *[t for t in tangents if type(t) is not Zero], jaxpr=consts_as_args(both.jaxpr), **params)
    n = len(out_nz)
    live = iter(outs[n:])
    return outs[:n], [next(live) if nz else Zero(tangent_aval(a)) for nz, a in zip(out_nz, jaxpr.out_avals)]


def _remat_partial_eval(trace, args, params):
    """Known results are computed now; what the rest needs of the known part is computed again later, but for what the policy saves."""
    policy = params["policy"]
    unknown = [trace.is_unknown(x) for x in args]
    split = split_jaxpr(_remat_closed(params["jaxpr"]), unknown)
    known, staged = split.known.jaxpr, split.staged.jaxpr
    n_known = len(known.outvars) - split.num_handed_over
    residuals = split.residuals(known.invars, known.outvars[:n_known], known.outvars[n_known:])
    saveable = {*known.constvars, *known.invars}
    for eqn in known.eqns:
        if policy is not None and policy(eqn.primitive, *[a.aval for a in eqn.invars], **eqn.params):
            saveable.update(eqn.outvars)
    saved = [v for e in known.eqns for v in e.outvars if v in saveable and type(v) is not DropVar]
    # the known part that must be computed again, then the staged part, as one program
    again = [e for e in known.eqns if not (e.outvars and all(v in saveable for v in e.outvars))]      # prints too
    swap = dict(zip(staged.invars, residuals))
    at = lambda atom: atom if type(atom) is Literal else swap.get(atom, atom)
    later = [e.replace(invars=[at(a) for a in e.invars]) for e in staged.eqns]
    rest = staged.invars[len(residuals):]
    whole = Jaxpr([], [*saved, *known.constvars, *known.invars, *staged.constvars, *rest], [at(v) for v in staged.outvars], [*again, *later],
                  staged.effects | known.effects, params["jaxpr"].debug_info)
    whole, used = dce_jaxpr(whole, [True] * len(whole.outvars))
    kept = [v for v, u in zip(saved, used) if u]
    first, _ = dce_jaxpr(known.replace(outvars=[*known.outvars[:n_known], *kept]), [True] * (n_known + len(kept)), True)
    known_args = [x for x, u in zip(args, unknown) if not u]
    outs = eval_jaxpr(first, split.known.consts, *known_args)
    others = [*split.known.consts, *known_args, *split.staged.consts, *[x for x, u in zip(args, unknown) if u]]
    inputs = [*outs[n_known:], *[x for x, u in zip(others, used[len(saved):]) if u]]
    staged_outs = iter(trace.staged.process(remat_p, tuple(inputs), dict(params, jaxpr=whole, differentiated=True)) if any(split.out_unknown) else [])
    known_outs = iter(outs[:n_known])
    return [next(staged_outs) if u else next(known_outs) for u in split.out_unknown]


def _remat_transpose(cts, *args, jaxpr, **params):
    linear = [type(x) is UndefinedPrimal for x in args]
    nonzero = [type(ct) is not Zero for ct in cts]
    back = transpose_jaxpr(_remat_closed(jaxpr), linear, nonzero)
    inputs = [*back.consts, *[x for x, lin in zip(args, linear) if not lin], *[ct for ct in cts if type(ct) is not Zero]]
    outs = iter(remat_p.bind(*inputs, jaxpr=consts_as_args(back.jaxpr), **params))
    return [next(outs) if lin else None for lin in linear]


def _remat_batch(axis, args, dims, *, jaxpr, **params):
    new, out_b = batch_jaxpr(_remat_closed(jaxpr), axis, [d is not None for d in dims])
    outs = remat_p.bind(*new.consts, *[x if d is None else to_front(axis, x, d) for x, d in zip(args, dims)], jaxpr=consts_as_args(new.jaxpr), **params)
    return outs, [0 if b else None for b in out_b]


remat_p.abstract = lambda *avals, jaxpr, **_: list(jaxpr.out_avals)
remat_p.impl = lambda *args, jaxpr, **_: eval_jaxpr(jaxpr, [], *args)
remat_p.jvp, remat_p.partial_eval, remat_p.transpose, remat_p.batch = _remat_jvp, _remat_partial_eval, _remat_transpose, _remat_batch
remat_p.effects = lambda params: params["jaxpr"].effects
remat_p.axis_names = lambda params: frozenset().union(*[e.primitive.axis_names(e.params) for e in params["jaxpr"].eqns if e.primitive.axis_names])
remat_p.decompose = lambda *args, jaxpr, **_: eval_jaxpr(jaxpr, [], *args)


def checkpoint(fun: Callable | None = None, *, prevent_cse: bool = True, policy: Callable | None = None, static_argnums: int | Sequence[int] = (), concrete: bool = False):
    """`fun` whose intermediate values are computed again on the way back instead of being kept.

    `policy(primitive, *avals, **params)` says which results may be kept all the same; see `weft.checkpoint_policies`.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.grad(weft.checkpoint(lambda x: jnp.sin(jnp.sin(x))))(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    if fun is None:
        return lambda f: checkpoint(f, prevent_cse=prevent_cse, policy=policy, static_argnums=static_argnums)
    argnums = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)

    def wrapped(*args, **kwargs):
        static = {i % len(args): args[i % len(args)] for i in argnums} if args else {}
        leaves, tree = tree_flatten(([a for i, a in enumerate(args) if i not in static], kwargs))
        box: list = []

        def flat(*xs):
            inner, kw = tree.unflatten(xs)
            rest = iter(inner)
            out, out_tree = tree_flatten(fun(*[static[i] if i in static else next(rest) for i in range(len(args))], **kw))
            box.append(out_tree)
            return out
        closed, outer = hoist_tracers(*stage(flat, [get_aval(x) for x in leaves], _name(fun)))
        if any_io(closed.effects):
            raise NotImplementedError(at_user_line("Effects not supported in `checkpoint`: a function with io_callback would be called again on the way back. "
                                                   "Call it outside of the checkpointed function."))
        outs = remat_p.bind(*closed.consts, *outer, *leaves, jaxpr=consts_as_args(closed.jaxpr), prevent_cse=prevent_cse, differentiated=False, policy=policy)
        return tree_unflatten(box[0], outs)
    update_wrapper(wrapped, fun)
    return wrapped

