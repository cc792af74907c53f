"""The transformations that users call: grad, vmap and the rest of the root namespace."""
from __future__ import annotations

from functools import wraps
from typing import Any, Callable, Sequence

from . import dtypes
from .avals import ShapeDtypeStruct, tangent_aval
from .core.jaxpr import ClosedJaxpr, TypedScalar, eval_jaxpr, round_scalar
from .core.primitive import UndefinedPrimal, Zero
from .core.trace import Axis, get_aval, is_array_like, mapped_axes, root, tracing
from .host import is_host_array, np
from .ops.elementwise import eq
from .ops.linear import convert, full, moveaxis, zeros
from .ops.linear import reshape as _reshape
from .ops.shape import iota
from .runtime.device import backend_of
from .runtime.dispatch import put, to_backend
from .runtime.jit import abstractify
from .source_info import api_boundary, named_scope
from .transforms.batch import batch_flat, to_front
from .transforms.jvp import instantiate, jvp_flat
from .transforms.linearize import linearize_flat
from .transforms.stage import stage
from .transforms.transpose import backward_pass
from .tree import Partial, broadcast_prefix, keystr, tree_flatten, tree_flatten_with_path, tree_leaves, tree_map, tree_structure, tree_unflatten


def _name(fun) -> str:
    return getattr(fun, "__name__", type(fun).__name__)


def _check_callable(fun) -> None:
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun!r}.")


def _flat(fun: Callable, in_tree) -> tuple[Callable, list]:
    """`fun(*args)` on flat arguments and results, and the box into which each call puts its result's structure."""
    box: list = []

    def flat(*xs):
        leaves, tree = tree_flatten(fun(*in_tree.unflatten(xs)))
        box.append(tree)
        return leaves
    return flat, box


def _flat_aux(fun: Callable, in_tree) -> tuple[Callable, list]:
    """The same for a function that returns (out, aux): aux leaves follow the result's."""
    box: list = []

    def flat(*xs):
        pair = fun(*in_tree.unflatten(xs))
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(f"expected function with aux output to return a two-element tuple, but got type {type(pair)}.")
        leaves, tree = tree_flatten(pair[0])
        aux, aux_tree = tree_flatten(pair[1])
        box.append((tree, aux_tree))
        return [*leaves, *aux]
    return flat, box


def _as_arrays(leaves: Sequence, who: str) -> list:
    for x in leaves:
        if not is_array_like(x):
            raise TypeError(f"{who}: argument {x!r} of type {type(x).__name__} is not an array or a number.")
    return [x.__jax_array__() if hasattr(x, "__jax_array__") and not hasattr(x, "aval") else x for x in leaves]


class _Bound:
    """A function with leading arguments that are not arrays; `functools.partial` would merge with the `Partial` around it."""
    __slots__ = ("fun", "args")

    def __init__(self, fun: Callable, *args):
        self.fun, self.args = fun, args

    def __call__(self, *more):
        return self.fun(*self.args, *more)


# reverse mode --------------------------------------------------------------------------------------------------------


def _float0_array(aval):
    if np is not None:
        return np.zeros(aval.shape, dtypes.float0)
    return Zero(tangent_aval(aval))


def _pull_back(jaxpr, in_avals, out_nonzeros, out_avals, consts, cts: Sequence) -> list:
    """Cotangents of all arguments from cotangents of all results."""
    live = [ct for ct, nz in zip(cts, out_nonzeros) if nz]
    linear = [UndefinedPrimal(v.aval) for v in jaxpr.invars]
    back = iter(backward_pass(jaxpr, consts, linear, live))
    return [_float0_array(a) if tangent_aval(a).dtype == dtypes.float0 else _settled(instantiate(next(back))) for a in in_avals]


def _vjp_flat(flat: Callable, leaves: Sequence):
    outs, nonzeros, jaxpr, consts = linearize_flat(flat, leaves)
    in_avals, out_avals = [get_aval(x) for x in leaves], [get_aval(x) for x in outs]
    return outs, _Bound(_pull_back, jaxpr, in_avals, nonzeros, out_avals), consts


def _vjp_call(pull: Callable, in_tree, out_tree, out_avals, consts, ct):
    leaves, tree = tree_flatten(ct, is_leaf=None)
    if tree != out_tree:
        raise ValueError(f"unexpected tree structure of argument to vjp function: got {tree}, but expected to match {out_tree}.")
    checked = []
    for x, aval in zip(leaves, out_avals):
        want = tangent_aval(aval)
        if want.dtype == dtypes.float0:
            checked.append(Zero(want))
            continue
        have = get_aval(x)
        if have.shape != want.shape:
            raise ValueError(f"Shape of cotangent input to vjp pullback function {have.shape} must be the same as the shape of corresponding primal input {want.shape}.")
        if have.dtype != want.dtype and not have.weak_type and not dtypes.is_python_scalar(x):
            raise ValueError(f"unexpected JAX type (e.g. shape/dtype) for argument to vjp function: got {have.str_short()}, but expected {want.str_short()}.")
        checked.append(convert(x, want.dtype, want.weak_type) if have.dtype != want.dtype else x)
    return in_tree.unflatten(pull(consts, checked))


@api_boundary
def vjp(fun: Callable, *primals, has_aux: bool = False, reduce_axes=()):
    """The value of `fun` and the function from cotangents of its result to cotangents of its arguments.

    Returns: (out, vjp_fun), or (out, vjp_fun, aux) with `has_aux`. vjp_fun returns a tuple with one cotangent for each primal.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> y, pull = weft.vjp(lambda x: x ** 2, 3.0)
        >>> pull(1.0)
        (Array(6., dtype=float32, weak_type=True),)
    """
    _check_callable(fun)
    leaves, in_tree = tree_flatten(primals)
    leaves = _as_arrays(leaves, "vjp")
    flat, box = (_flat_aux if has_aux else _flat)(fun, in_tree)
    n_aux = 0
    outs, pull, consts = _vjp_flat(flat, leaves)
    out_tree = box[-1]
    aux = None
    if has_aux:
        out_tree, aux_tree = out_tree
        n_aux = aux_tree.num_leaves
        aux = tree_unflatten(aux_tree, outs[len(outs) - n_aux:])
    main = outs[:len(outs) - n_aux]
    avals = [get_aval(x) for x in main]
    pull_main = pull if not n_aux else _Bound(_pull_main, pull, len(main), [get_aval(x) for x in outs[len(main):]])
    fun_vjp = Partial(_Bound(_vjp_call, pull_main, in_tree, out_tree, avals), consts)
    out = tree_unflatten(out_tree, [_settled(x) for x in main])
    return (out, fun_vjp, aux) if has_aux else (out, fun_vjp)


def _pull_main(pull, n: int, aux_avals, consts, cts):
    return pull(consts, [*cts, *[Zero(tangent_aval(a)) for a in aux_avals]])


def _settled(x):
    """A result for the user: an array, never a host scalar of ours."""
    if type(x) is TypedScalar or dtypes.is_python_scalar(x):
        aval = get_aval(x)
        return full((), x.val if type(x) is TypedScalar else x, aval.dtype, aval.weak_type)
    return put(x) if is_host_array(x) else x


def _check_grad_input(x, who: str, holomorphic: bool, allow_int: bool) -> None:
    aval = get_aval(x)
    if dtypes.is_key(aval.dtype) or dtypes.is_int(aval.dtype) or dtypes.is_bool(aval.dtype):
        if not allow_int:
            raise TypeError(f"{who} requires real- or complex-valued inputs (input dtype that is a sub-dtype of inexact), but got {dtypes.name(aval.dtype)}. "
                            "If you want to use Boolean- or integer-valued inputs, use vjp or set allow_int to True.")
    elif dtypes.is_complex(aval.dtype) and not holomorphic:
        raise TypeError(f"{who} requires real-valued inputs (input dtype that is a sub-dtype of floating), but got {dtypes.name(aval.dtype)}. "
                        "For holomorphic differentiation, pass holomorphic=True. For differentiation of non-holomorphic functions involving complex inputs, use vjp directly.")
    elif holomorphic and not dtypes.is_complex(aval.dtype):
        raise TypeError(f"{who} with holomorphic=True requires inputs with complex dtype, but got {dtypes.name(aval.dtype)}.")


def _select_args(args: tuple, argnums) -> tuple[tuple, tuple]:
    nums = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    if not nums:
        raise ValueError("argnums must not be empty.")
    for n in nums:
        if not -len(args) <= n < len(args):
            raise ValueError(f"differentiating with respect to argnums={argnums} requires at least {(n + 1) if n >= 0 else -n} positional arguments to be passed by the "
                             f"caller, but got only {len(args)} positional arguments.")
    return tuple(n % len(args) for n in nums), tuple(args[n] for n in nums)


def _with_args(fun, args, kwargs, nums):
    def chosen(*values):
        full_args = list(args)
        for n, v in zip(nums, values):
            full_args[n] = v
        return fun(*full_args, **kwargs)
    return chosen


def value_and_grad(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False, allow_int: bool = False, reduce_axes=()):
    """A function that returns the value of `fun` and its gradient with respect to the arguments `argnums`.

    `fun` must return a scalar (with `has_aux`, a pair of a scalar and anything). Raises TypeError otherwise, and for integer arguments unless `allow_int`.

    Example:
        >>> import weft
        >>> weft.value_and_grad(lambda x: x ** 2)(3.0)
        (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    _check_callable(fun)

    @wraps(fun)
    @api_boundary
    def value_and_grad_f(*args, **kwargs):
        nums, chosen = _select_args(args, argnums)
        leaves, in_tree = tree_flatten(chosen)
        leaves = _as_arrays(leaves, "grad")
        for x in leaves:
            _check_grad_input(x, "grad", holomorphic, allow_int)
        flat, box = (_flat_aux if has_aux else _flat)(_with_args(fun, args, kwargs, nums), in_tree)
        outs, pull, consts = _vjp_flat(flat, leaves)
        out_tree, aux_tree = box[-1] if has_aux else (box[-1], None)
        _check_scalar(fun, outs[:out_tree.num_leaves], out_tree, holomorphic)
        value_aval = get_aval(outs[0])
        one = TypedScalar(round_scalar(1, value_aval.dtype), value_aval)
        grads = pull(consts, [one, *[Zero(tangent_aval(get_aval(x))) for x in outs[1:]]])
        result = in_tree.unflatten(grads)
        grad_value = result[0] if isinstance(argnums, int) else result
        value = tree_unflatten(out_tree, [_settled(outs[0])])
        if not has_aux:
            return value, grad_value
        return (value, tree_unflatten(aux_tree, [_settled(x) for x in outs[1:]])), grad_value
    return value_and_grad_f


def _check_scalar(fun, outs, out_tree, holomorphic: bool) -> None:
    if len(outs) != 1 or out_tree.num_nodes != 1:
        raise TypeError(f"Gradient only defined for scalar-output functions. Output was a pytree of structure {out_tree}.")
    aval = get_aval(outs[0])
    if aval.shape:
        raise TypeError(f"Gradient only defined for scalar-output functions. Output had shape: {aval.shape}.")
    if holomorphic and not dtypes.is_complex(aval.dtype):
        raise TypeError(f"grad with holomorphic=True requires outputs with complex dtype, but got {dtypes.name(aval.dtype)}.")
    if not holomorphic and not dtypes.is_float(aval.dtype):
        raise TypeError(f"grad requires real-valued outputs (output dtype that is a sub-dtype of floating), but got {dtypes.name(aval.dtype)}. "
                        "For holomorphic differentiation, pass holomorphic=True.")


def grad(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False, allow_int: bool = False, reduce_axes=()):
    """A function that returns the gradient of `fun`; with `has_aux`, (gradient, aux).

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.grad(jnp.tanh)(0.2)
        Array(0.961043, dtype=float32, weak_type=True)
    """
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int)

    @wraps(fun)
    @api_boundary
    def grad_f(*args, **kwargs):
        if has_aux:
            (_, aux), g = both(*args, **kwargs)
            return g, aux
        return both(*args, **kwargs)[1]
    return grad_f


# forward mode --------------------------------------------------------------------------------------------------------


@api_boundary
def jvp(fun: Callable, primals: Sequence, tangents: Sequence, has_aux: bool = False):
    """The value of `fun` at `primals` and its derivative along `tangents`: (out, out_tangent), with `has_aux` also aux.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.jvp(jnp.sin, (0.0,), (1.0,))
        (Array(0., dtype=float32, weak_type=True), Array(1., dtype=float32, weak_type=True))
    """
    _check_callable(fun)
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError(f"primal and tangent arguments to jvp must be tuples or lists; found {type(primals).__name__} and {type(tangents).__name__}.")
    leaves, in_tree = tree_flatten(tuple(primals))
    t_leaves, t_tree = tree_flatten(tuple(tangents))
    if in_tree != t_tree:
        raise TypeError(f"primal and tangent arguments to jvp must have the same tree structure; primals have tree structure {in_tree} whereas tangents have tree structure {t_tree}.")
    leaves = _as_arrays(leaves, "jvp")
    t_leaves = [_checked_tangent(p, t) for p, t in zip(leaves, t_leaves)]
    flat, box = (_flat_aux if has_aux else _flat)(fun, in_tree)
    outs, out_ts = jvp_flat(flat, leaves, t_leaves)
    out_tree, aux_tree = box[-1] if has_aux else (box[-1], None)
    n = out_tree.num_leaves
    out = tree_unflatten(out_tree, [_settled(x) for x in outs[:n]])
    out_t = tree_unflatten(out_tree, [_settled_tangent(t) for t in out_ts[:n]])
    return (out, out_t, tree_unflatten(aux_tree, [_settled(x) for x in outs[n:]])) if has_aux else (out, out_t)


def _settled_tangent(t):
    if type(t) is Zero and t.aval.dtype == dtypes.float0:
        return _float0_array(t.aval)
    return _settled(instantiate(t))


def _checked_tangent(primal, t):
    want = tangent_aval(get_aval(primal))
    if getattr(t, "dtype", None) == dtypes.float0:
        return Zero(want)
    have = get_aval(t)
    if want.dtype == dtypes.float0:
        raise TypeError(f"primal and tangent arguments to jvp do not match; dtypes must be equal, or in case of int/bool primal dtype the tangent dtype must be float0. "
                        f"Got primal dtype {dtypes.name(get_aval(primal).dtype)} and so expected tangent dtype float0, but got tangent dtype {dtypes.name(have.dtype)} instead.")
    if have.dtype != want.dtype and not (have.weak_type and dtypes.is_python_scalar(t)):
        raise TypeError(f"primal and tangent arguments to jvp do not match; dtypes must be equal. Got primal dtype {dtypes.name(want.dtype)} and tangent dtype {dtypes.name(have.dtype)}.")
    if have.shape != want.shape:
        raise ValueError(f"jvp called with different primal and tangent shapes; Got primal shape {want.shape} and tangent shape as {have.shape}.")
    return convert(t, want.dtype, want.weak_type) if have.dtype != want.dtype else t


@api_boundary
def linearize(fun: Callable, *primals, has_aux: bool = False):
    """The value of `fun` at `primals` and the linear function from tangents there to tangents of the result.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> y, f_lin = weft.linearize(jnp.sin, 0.0)
        >>> f_lin(2.0)
        Array(2., dtype=float32, weak_type=True)
    """
    _check_callable(fun)
    leaves, in_tree = tree_flatten(primals)
    leaves = _as_arrays(leaves, "linearize")
    flat, box = (_flat_aux if has_aux else _flat)(fun, in_tree)
    outs, nonzeros, jaxpr, consts = linearize_flat(flat, leaves)
    out_tree, aux_tree = box[-1] if has_aux else (box[-1], None)
    n = out_tree.num_leaves
    in_avals, out_avals = [get_aval(x) for x in leaves], [get_aval(x) for x in outs[:n]]
    lin = Partial(_Bound(_apply_linear, jaxpr, in_tree, out_tree, in_avals, out_avals, nonzeros), consts)
    out = tree_unflatten(out_tree, [_settled(x) for x in outs[:n]])
    return (out, lin, tree_unflatten(aux_tree, [_settled(x) for x in outs[n:]])) if has_aux else (out, lin)


def _apply_linear(jaxpr, in_tree, out_tree, in_avals, out_avals, nonzeros, consts, *tangents):
    leaves, tree = tree_flatten(tangents)
    if tree != in_tree:
        raise ValueError(f"unexpected tree structure of argument to the linearized function: got {tree}, but expected to match {in_tree}.")
    live = [convert(t, a.dtype, a.weak_type) if get_aval(t).dtype != a.dtype else t
            for t, a in zip(leaves, in_avals) if tangent_aval(a).dtype != dtypes.float0]
    for t, a in zip(leaves, in_avals):
        if getattr(t, "shape", ()) != a.shape and get_aval(t).shape != a.shape:
            raise ValueError(f"linearized function called on tangent values inconsistent with the original primal values: got tangent {get_aval(t).str_short()} for primal {a.str_short()}.")
    outs = iter(eval_jaxpr(jaxpr, consts, *live))
    return tree_unflatten(out_tree, [_settled(next(outs)) if nz else _settled_tangent(Zero(tangent_aval(a))) for a, nz in zip(out_avals, nonzeros)])


@api_boundary
def linear_transpose(fun: Callable, *primals, reduce_axes=()):
    """The transpose of a linear function: from cotangents of its result to cotangents of its arguments.

    `primals` need only shapes and dtypes.

    Example:
        >>> import weft
        >>> weft.linear_transpose(lambda x: 3 * x, 1.0)(2.0)
        (Array(6., dtype=float32, weak_type=True),)
    """
    leaves, in_tree = tree_flatten(primals)
    avals = [abstractify(x) for x in leaves]
    flat, box = _flat(fun, in_tree)
    jaxpr, consts = stage(flat, avals, f"the linear function {_name(fun)}")
    out_tree, out_avals = box[-1], jaxpr.out_avals

    def transposed(ct):
        cts, tree = tree_flatten(ct)
        if tree != out_tree:
            raise TypeError(f"cotangent tree does not match function output, expected {out_tree} but got {tree}.")
        cts = [convert(x, a.dtype, a.weak_type) if get_aval(x).dtype != a.dtype and get_aval(x).weak_type else x for x, a in zip(cts, out_avals)]
        if any(get_aval(x).shape != a.shape or get_aval(x).dtype != a.dtype for x, a in zip(cts, out_avals)):
            raise TypeError(f"cotangent type does not match function output, expected {[a.str_short() for a in out_avals]} but got {[get_aval(x).str_short() for x in cts]}.")
        back = backward_pass(jaxpr, consts, [UndefinedPrimal(a) for a in avals], cts)
        return in_tree.unflatten([_settled(instantiate(x)) for x in back])
    return transposed


# jacobians -----------------------------------------------------------------------------------------------------------


def _basis(aval):
    """The unit vectors of arrays of an aval, stacked."""
    n = aval.size
    rows, columns = iota(dtypes.int32, (n, n), 0), iota(dtypes.int32, (n, n), 1)
    return _reshape(convert(eq(rows, columns), aval.dtype, aval.weak_type), (n, *aval.shape))


def jacfwd(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False):
    """The Jacobian of `fun`, column by column in forward mode: good for few inputs.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.jacfwd(lambda x: x ** 2)(jnp.array([1., 2.]))
        Array([[2., 0.],
               [0., 4.]], dtype=float32)
    """
    def jacobian(*args, **kwargs):
        nums, chosen = _select_args(args, argnums)
        leaves, in_tree = tree_flatten(chosen)
        for x in leaves:
            _check_grad_input(x, "jacfwd", holomorphic, False)
        f = _with_args(fun, args, kwargs, nums)
        avals = [get_aval(x) for x in leaves]
        aux_box: list = []

        def push(*ts):
            result = jvp(f, chosen, in_tree.unflatten(ts), has_aux=has_aux)
            if has_aux:
                aux_box.append(result[2])
                return result[1], result[2]
            return result[1]
        columns: list = []
        aux = None
        for i, a in enumerate(avals):
            one_at_a_time = lambda t, i=i: push(*[t if j == i else zeros(b) for j, b in enumerate(avals)])
            out = vmap(one_at_a_time, out_axes=(-1, None) if has_aux else -1)(_basis(a))
            if has_aux:
                out, aux = out
            columns.append(tree_map(lambda y, a=a: _reshape(y, (*get_aval(y).shape[:-1], *a.shape)), out))
        out_tree = tree_structure(columns[0])
        per_out = list(zip(*[tree_leaves(c) for c in columns]))
        result = out_tree.unflatten([_pick(in_tree.unflatten(list(row)), argnums) for row in per_out])
        return (result, aux) if has_aux else result
    return wraps(fun)(api_boundary(jacobian))


def jacrev(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False, allow_int: bool = False):
    """The Jacobian of `fun`, row by row in reverse mode: good for few outputs.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.jacrev(lambda x: (x ** 2).sum())(jnp.array([1., 2.]))
        Array([2., 4.], dtype=float32)
    """
    def jacobian(*args, **kwargs):
        nums, chosen = _select_args(args, argnums)
        for x in tree_leaves(chosen):
            _check_grad_input(x, "jacrev", holomorphic, allow_int)
        result = vjp(_with_args(fun, args, kwargs, nums), *chosen, has_aux=has_aux)
        out, pull = result[:2]
        leaves, out_tree = tree_flatten(out)
        avals = [get_aval(x) for x in leaves]
        rows = []
        for i, a in enumerate(avals):
            pull_one = lambda ct, i=i: pull(out_tree.unflatten([ct if j == i else zeros(b) for j, b in enumerate(avals)]))
            back = vmap(pull_one)(_basis(a))
            rows.append(tree_map(lambda y, a=a: _reshape(y, (*a.shape, *get_aval(y).shape[1:])), back))
        jac = out_tree.unflatten([_pick(row, argnums) for row in rows])
        return (jac, result[2]) if has_aux else jac
    return wraps(fun)(api_boundary(jacobian))


def _pick(values: tuple, argnums):
    return values[0] if isinstance(argnums, int) else tuple(values)


jacobian = jacrev


def hessian(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False):
    """The matrix (or tree of arrays) of second derivatives.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.hessian(lambda x: (x ** 3).sum())(jnp.array([1., 2.]))
        Array([[ 6.,  0.],
               [ 0., 12.]], dtype=float32)
    """
    return jacfwd(jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic), argnums, has_aux=has_aux, holomorphic=holomorphic)


# batching ------------------------------------------------------------------------------------------------------------


def vmap(fun: Callable, in_axes: Any = 0, out_axes: Any = 0, axis_name=None, axis_size: int | None = None, spmd_axis_name=None):
    """`fun` over an additional axis of its arguments.

    Args:
        in_axes: for each argument the axis to map over, or None for none; a pytree prefix of the arguments.
        out_axes: where the mapped axis goes in the results; a pytree prefix of them.
        axis_name: a name by which collectives inside refer to the axis.
        axis_size: its size, where no argument says it.

    Raises: ValueError for axes that do not exist or whose sizes differ.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.vmap(jnp.dot, in_axes=(0, None))(jnp.ones((3, 2)), jnp.ones(2))
        Array([2., 2., 2.], dtype=float32)
    """
    _check_callable(fun)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not all(isinstance(a, int) or a is None for a in tree_leaves(in_axes, is_leaf=lambda x: x is None)) or isinstance(in_axes, bool):
        raise TypeError(f"vmap in_axes must be an int, None, or a (potentially nested) container with those leaves, got {in_axes}.")

    @wraps(fun)
    @api_boundary
    def vmap_f(*args, **kwargs):
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(f"vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional arguments passed to the function, "
                             f"but got {len(in_axes)=}, {len(args)=}.")
        leaves, in_tree = tree_flatten((args, kwargs))
        leaves = _as_arrays(leaves, "vmap")
        try:
            dims = broadcast_prefix((in_axes, 0), (args, kwargs))
        except ValueError as e:
            raise ValueError(f"vmap in_axes specification must be a tree prefix of the corresponding value, got specification {in_axes} for {in_tree.children()[0]}: {e}") from e
        dims = [_checked_axis(d, x, i) for i, (d, x) in enumerate(zip(dims, leaves))]
        size = _mapped_size(leaves, dims, axis_size, (args, kwargs))
        flat, box = _flat(lambda a, k: fun(*a, **k), in_tree)
        axis = Axis(axis_name, size)
        outs, out_dims = batch_flat(flat, axis, leaves, dims)
        out_tree = box[-1]
        try:
            wanted = broadcast_prefix(out_axes, out_tree.unflatten(outs))
        except ValueError as e:
            raise ValueError(f"vmap out_axes specification must be a tree prefix of the corresponding value, got specification {out_axes} for value of structure {out_tree}.") from e
        return tree_unflatten(out_tree, [_place(axis, x, d, want) for x, d, want in zip(outs, out_dims, wanted)])
    return vmap_f


def _checked_axis(dim, x, i: int):
    if dim is None:
        return None
    rank = len(get_aval(x).shape)
    if not -rank <= dim < rank:
        raise ValueError(f"vmap was requested to map its argument along axis {dim}, which implies that its rank should be at least {dim + 1 if dim >= 0 else -dim}, "
                         f"but is only {rank} (its shape is {get_aval(x).shape}).")
    return dim % rank


def _mapped_size(leaves, dims, axis_size, tree) -> int:
    sizes = {get_aval(x).shape[d] for x, d in zip(leaves, dims) if d is not None}
    if axis_size is not None:
        sizes.add(axis_size)
    if not sizes:
        raise ValueError("vmap must have at least one non-None value in in_axes")
    if len(sizes) > 1:
        paths = [keystr(p[1:]) for p, _ in tree_flatten_with_path(tree)[0]]
        what = "; ".join(f"argument {p} of shape {get_aval(x).shape} has size {get_aval(x).shape[d]} along axis {d}" for p, x, d in zip(paths, leaves, dims) if d is not None)
        raise ValueError(f"vmap got inconsistent sizes for array axes to be mapped: {what}{f'; axis_size is {axis_size}' if axis_size is not None else ''}.")
    return sizes.pop()


def _place(axis, x, dim, want):
    if want is None:
        if dim is not None:
            raise ValueError(f"vmap has mapped output but out_axes is None: an output of type {get_aval(x).str_short()} depends on mapped arguments.")
        return _settled(x)
    x = to_front(axis, x, dim)
    rank = len(get_aval(x).shape)
    if not -rank <= want < rank:
        raise ValueError(f"out_axes {want} is out of range for an output of rank {rank}.")
    return moveaxis(x, 0, want % rank)


# looking at programs -------------------------------------------------------------------------------------------------


def make_jaxpr(fun: Callable, static_argnums: int | Sequence[int] = (), axis_env: Sequence | None = None, return_shape: bool = False, abstracted_axes=None):
    """A function that returns the jaxpr of `fun` for its arguments (arrays or ShapeDtypeStructs).

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.make_jaxpr(lambda x: jnp.sin(jnp.cos(x)))(3.0)
        { lambda ; a:f32[]. let b:f32[] = cos a; c:f32[] = sin b in (c,) }
    """
    _check_callable(fun)
    nums = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)

    @wraps(fun)
    @api_boundary
    def make_jaxpr_f(*args, **kwargs):
        static = {n % len(args): args[n] for n in nums}
        leaves, tree = tree_flatten(([a for i, a in enumerate(args) if i not in static], kwargs))
        avals = [abstractify(x) for x in leaves]
        box: list = []

        def flat(*xs):
            inner, kw = tree.unflatten(xs)
            rest = iter(inner)
            out, out_tree = tree_flatten(fun(*[static[i] if i in static else next(rest) for i in range(len(args))], **kw))
            box.append(out_tree)
            return out
        with mapped_axes(*[Axis(n, s) for n, s in (axis_env or ())]):
            closed = ClosedJaxpr(*stage(flat, avals, _name(fun)))
        if return_shape:
            return closed, box[0].unflatten([ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in closed.out_avals])
        return closed
    return make_jaxpr_f


@api_boundary
def eval_shape(fun: Callable, *args, **kwargs):
    """The shapes and dtypes of the results of `fun`, without computing them. Arguments need only `.shape` and `.dtype`.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.eval_shape(jnp.dot, weft.ShapeDtypeStruct((2, 3), "float32"), weft.ShapeDtypeStruct((3, 4), "float32"))
        ShapeDtypeStruct(shape=(2, 4), dtype=float32)
    """
    leaves, tree = tree_flatten((args, kwargs))
    box: list = []

    def flat(*xs):
        a, kw = tree.unflatten(xs)
        out, out_tree = tree_flatten(fun(*a, **kw))
        box.append(out_tree)
        return out
    jaxpr, _ = stage(flat, [abstractify(x) for x in leaves], _name(fun))
    return box[0].unflatten([ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in jaxpr.out_avals])


def closure_convert(fun: Callable, *example_args):
    """`fun` with the traced values it closes over as explicit arguments: (converted, those values).

    Example:
        >>> import weft
        >>> f, extra = weft.closure_convert(lambda x: x + 1, 2.0)
        >>> f(2.0, *extra)
        Array(3., dtype=float32, weak_type=True)
    """
    leaves, in_tree = tree_flatten(example_args)
    flat, box = _flat(fun, in_tree)
    jaxpr, consts = stage(flat, [get_aval(x) for x in leaves], _name(fun))
    from_outside = [i for i, c in enumerate(consts) if dtypes.is_inexact(get_aval(c).dtype)]
    hoisted = [consts[i] for i in from_outside]

    def converted(*args):
        given, extra = args[:len(example_args)], list(args[len(example_args):])
        values = list(consts)
        for i, v in zip(from_outside, extra):
            values[i] = v
        xs, tree = tree_flatten(tuple(given))
        if tree != in_tree:
            raise TypeError(f"the converted function takes arguments of structure {in_tree}, got {tree}.")
        return tree_unflatten(box[-1], [_settled(x) for x in eval_jaxpr(jaxpr, values, *xs)])
    return converted, hoisted


# moving and waiting --------------------------------------------------------------------------------------------------


def device_put(x, device=None, *, src=None, donate: bool = False, may_alias=None):
    """`x` (a pytree) as arrays on `device`, committed to it; without a device, on the default one and uncommitted.

    Example:
        >>> import weft
        >>> weft.device_put([1.0, 2.0])
        [Array(1., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True)]
    """
    def move(v):
        if hasattr(v, "_trace"):
            return v
        aval = get_aval(v)
        if hasattr(v, "committed"):
            if device is None:
                return v
            moved = to_backend(v, aval, device)
            return moved if moved is v and v.committed else backend_of(device).put(v._host(), aval, device, True)
        return put(v, aval, device)
    return tree_map(move, x)


def copy_to_host_async(x):
    """Starts copying the arrays of a pytree to the host, so that `device_get` need not wait as long later; returns `x`.

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


def device_get(x):
    """`x` (a pytree) with its arrays copied to the host as NumPy arrays (without NumPy: as nested lists).

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.device_get(jnp.arange(3)).tolist()
        [0, 1, 2]
    """
    together: dict = {}      # where reading takes a round trip, one is enough
    for v in tree_leaves(x):
        backend = getattr(getattr(v, "device", None), "backend", None)
        if hasattr(backend, "prefetch"):
            together.setdefault(id(backend), (backend, []))[1].append(v)
    for backend, arrays in together.values():
        backend.prefetch(*arrays)
    return tree_map(lambda v: v._host() if hasattr(v, "_host") else v, x)


def block_until_ready(x):
    """Waits until all arrays in the pytree `x` are computed, and returns it."""
    for v in tree_leaves(x):
        if hasattr(v, "block_until_ready"):
            v.block_until_ready()
    return x


def ensure_compile_time_eval():
    """Inside the block, operations on concrete values run at once even while a function is being traced."""
    return tracing(root)


def named_call(fun: Callable, *, name: str | None = None):
    """`fun` under a named scope."""
    from_name = name or _name(fun)

    @wraps(fun)
    def call(*args, **kwargs):
        with named_scope(from_name):
            return fun(*args, **kwargs)
    return call

