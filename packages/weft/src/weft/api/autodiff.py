"""The derivatives that users ask for: grad, jvp, vjp, linearize, Jacobians."""

from __future__ import annotations

from operator import index
from functools import partial
from typing import Any, Callable, Hashable, Literal, Sequence, TypeVar, overload

from ..base.annotations import Args, Function, PyTree, Result, like
from ..typing import Array
from ..base import dtypes
from ..base.avals import array_aval, shaped, tangent_aval
from ..higher_order.custom_jvp import is_float0, type_of, unlike
from ..core.jaxpr import TypedScalar, eval_jaxpr, round_scalar
from ..core.primitive import UndefinedPrimal, Zero
from ..core.trace import Tracer, get_aval
from ..base.errors import at_user_line
from .functions import as_arrays, check_callable, flat_function, flat_function_with_aux, name_of, as_given, as_result
from ..primitives.elementwise import eq
from ..primitives.linear import convert, reshape, zeros
from ..primitives.shape import iota
from .pullback import VJP
from ..runtime.jit import abstractify, jit
from ..base.source_info import api_boundary
from ..transforms.jvp import instantiate, jvp_flat
from ..transforms.linearize import linearize_flat
from ..transforms.stage import stage
from ..transforms.transpose import backward_pass
from ..base.tree import tree_flatten, tree_leaves, tree_map, tree_structure, tree_unflatten
from ..base.registration import Partial
from .vmap import vmap

_S = TypeVar("_S")


# reverse mode --------------------------------------------------------------------------------------------------------


def _no_reduce_axes(reduce_axes, who: str) -> None:
    if reduce_axes:
        raise NotImplementedError(
            f"the reduce_axes argument to {who} was removed: sum over the axes with psum inside the function."
        )


def _pull_back(jaxpr, in_avals, out_nonzeros, out_avals, consts, cts: Sequence) -> list:
    """Cotangents of all arguments from cotangents of all results."""
    live = [ct for ct, nz in zip(cts, out_nonzeros) if nz]
    linear = [UndefinedPrimal(v.aval) for v in jaxpr.invars]
    back = iter(backward_pass(jaxpr, consts, linear, live))
    return [
        dtypes.float0_zeros(a.shape) if tangent_aval(a).dtype == dtypes.float0 else as_result(instantiate(next(back)))
        for a in in_avals
    ]


def _vjp_flat(flat: Callable, leaves: Sequence):
    outs, nonzeros, jaxpr, consts = linearize_flat(flat, leaves)
    in_avals, out_avals = [get_aval(x) for x in leaves], [get_aval(x) for x in outs]
    return outs, partial(_pull_back, jaxpr, in_avals, nonzeros, out_avals), consts


@overload
def vjp(
    fun: Callable[..., Result], *primals: PyTree, has_aux: Literal[False] = False, reduce_axes: Sequence[Hashable] = ()
) -> tuple[Result, Callable[..., Any]]: ...
@overload
def vjp(
    fun: Callable[..., tuple[Result, _S]],
    *primals: PyTree,
    has_aux: Literal[True],
    reduce_axes: Sequence[Hashable] = (),
) -> tuple[Result, Callable[..., Any], _S]: ...
@overload
def vjp(fun: Callable[..., Any], *primals: PyTree, has_aux: bool, reduce_axes: Sequence[Hashable] = ()) -> Any: ...
@api_boundary
def vjp(fun: Callable[..., Any], *primals: PyTree, has_aux: bool = False, reduce_axes: Sequence[Hashable] = ()) -> Any:
    """The value of `fun`, and the function from cotangents of its result to cotangents of its arguments.

    Args:
        fun: function of pytrees of arrays, of any dtype and shape.
        *primals: pytrees of arrays: the arguments of `fun`.
        has_aux: bool: `fun` returns a pair, the second part of which is returned unchanged.
        reduce_axes: (), the only value that is taken.

    Returns:
        (out, vjp_fun), or (out, vjp_fun, aux) with `has_aux`. vjp_fun is a `VJP`. It takes a cotangent of the dtypes
        and shapes of `out`, and returns a tuple with a cotangent for each primal.

    Raises:
        TypeError: for arguments that are not arrays.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> y, pull = weft.vjp(lambda x: x ** 2, 3.0)
        >>> pull(1.0)
        (Array(6., dtype=float32, weak_type=True),)
    """
    check_callable(fun)
    _no_reduce_axes(reduce_axes, "vjp")
    leaves, in_tree = tree_flatten(primals)
    leaves = as_arrays(leaves, "vjp")
    flat, box = (flat_function_with_aux if has_aux else flat_function)(fun, in_tree)
    outs, pull, consts = _vjp_flat(flat, leaves)
    out_tree, aux = box[-1] if has_aux else (box[-1], None)
    main = outs[: out_tree.num_leaves]
    avals = [get_aval(x) for x in main]
    pull_main = (
        pull
        if len(main) == len(outs)
        else partial(_pull_main, pull, len(main), [get_aval(x) for x in outs[len(main) :]])
    )
    fun_vjp = VJP(pull_main, in_tree, out_tree, avals, consts)
    out = tree_unflatten(out_tree, [as_given(x) for x in main])
    return (out, fun_vjp, aux.unflatten(outs[len(main) :])) if aux is not None else (out, fun_vjp)


def _pull_main(pull, n: int, aux_avals, consts, cts):
    return pull(consts, [*cts, *[Zero(tangent_aval(a)) for a in aux_avals]])


def _check_input(x, who: str, holomorphic: bool, allow_int: bool = False, real: bool = False) -> None:
    """Raises TypeError for an argument that can't be differentiated with respect to; `real` refuses complex ones
    too.
    """
    dt = get_aval(x).dtype
    if holomorphic and not dtypes.is_complex(dt):
        raise TypeError(f"{who} with holomorphic=True requires inputs with complex dtype, but got {dtypes.name(dt)}.")
    if holomorphic:
        return
    if real and not dtypes.is_float(dt):
        raise TypeError(
            at_user_line(
                f"{who} requires real-valued inputs: one has dtype {dtypes.name(dt)}. Convert it to a float"
                " (x.astype('float32')); for a holomorphic function of complex numbers pass holomorphic=True, and for"
                " any other use weft.jvp."
            )
        )
    if dt == dtypes.float0:
        raise TypeError(
            at_user_line(
                f"{who} requires numerical-valued inputs: one has dtype float0, which holds nothing. Leave that"
                " argument out of argnums."
            )
        )
    if not allow_int and not dtypes.is_inexact(dt):
        raise TypeError(
            at_user_line(
                f"{who} requires real- or complex-valued inputs: one has dtype {dtypes.name(dt)}. Convert it to a float"
                " (x.astype('float32')), or pass allow_int=True: the derivative in it is then an array of zeros of"
                " dtype float0."
            )
        )


def _check_output(aval, who: str, holomorphic: bool) -> None:
    if holomorphic and not dtypes.is_complex(aval.dtype):
        raise TypeError(
            f"{who} with holomorphic=True requires outputs with complex dtype, but got {dtypes.name(aval.dtype)}."
        )
    if not holomorphic and not dtypes.is_float(aval.dtype):
        how = (
            "Pass holomorphic=True if the function is holomorphic, return its real part or its magnitude, or use"
            " weft.vjp."
            if dtypes.is_complex(aval.dtype)
            else "An integer has no derivative: return the value before it is rounded or compared."
        )
        raise TypeError(
            at_user_line(
                f"{who} requires real-valued outputs: the function returned one of dtype {dtypes.name(aval.dtype)}."
                f" {how}"
            )
        )


def _select_args(args: tuple, argnums) -> tuple[tuple, tuple]:
    nums = (argnums,) if isinstance(argnums, int) else tuple(index(n) for n in argnums)
    if not nums:
        raise ValueError("argnums must not be empty.")
    for n in nums:
        if not -len(args) <= n < len(args):
            raise TypeError(
                at_user_line(
                    f"argnums={argnums} names an argument that the call does not have: it passes {len(args)} by"
                    " position, and positions count from 0. Pass the one that is differentiated by position too."
                )
            )
    found = tuple(n % len(args) for n in nums)
    if len(set(found)) != len(found):
        raise ValueError(f"argnums={argnums} names an argument twice.")
    return found, tuple(args[n] for n in nums)


def _with_args(fun, args, kwargs, nums):
    def chosen(*values):
        full_args = list(args)
        for n, v in zip(nums, values):
            full_args[n] = v
        return fun(*full_args, **kwargs)

    return chosen


def value_and_grad(
    fun: Callable[Args, Result],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Hashable] = (),
) -> Function[Args, tuple[Result, Any]]:
    """A function that returns the value of `fun` and its gradient with respect to the arguments `argnums`.

    `fun` must return a scalar, or, with `has_aux`, a pair of a scalar and anything.

    Args:
        fun: function of pytrees of arrays, of any dtype and shape.
        argnums: int or sequence of ints: with respect to which arguments; a sequence gives a tuple.
        has_aux: bool: `fun` returns a pair, the second part of which is handed on as it is.
        holomorphic: bool: arguments and result are complex, and `fun` is holomorphic.
        allow_int: bool: take integers; their derivatives have the dtype float0.
        reduce_axes: (), the only value that is taken.

    Returns:
        function of the same arguments that returns (value, gradient): the gradient has the structure, dtypes and shapes
        of the arguments `argnums`.

    Raises:
        TypeError: when it is called, if `fun` returns no scalar, or for integer arguments unless `allow_int`.

    Example:
        >>> import weft
        >>> weft.value_and_grad(lambda x: x ** 2)(3.0)
        (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    check_callable(fun)
    _no_reduce_axes(reduce_axes, "grad")

    @like(fun)
    @api_boundary
    def value_and_grad_f(*args, **kwargs):
        nums, chosen = _select_args(args, argnums)
        leaves, in_tree = tree_flatten(chosen)
        leaves = as_arrays(leaves, "grad")
        for x in leaves:
            _check_input(x, "grad", holomorphic, allow_int)
        flat, box = (flat_function_with_aux if has_aux else flat_function)(_with_args(fun, args, kwargs, nums), in_tree)
        outs, pull, consts = _vjp_flat(flat, leaves)
        out_tree, aux = box[-1] if has_aux else (box[-1], None)
        _check_scalar(fun, outs[: out_tree.num_leaves], out_tree, holomorphic)
        value_aval = array_aval(get_aval(outs[0]))
        one = TypedScalar(round_scalar(1, value_aval.dtype), value_aval)
        grads = pull(consts, [one, *[Zero(tangent_aval(get_aval(x))) for x in outs[1:]]])
        result = in_tree.unflatten(grads)
        grad_value = result[0] if isinstance(argnums, int) else result
        value = tree_unflatten(out_tree, [as_given(outs[0])])
        if aux is None:
            return value, grad_value
        return (value, aux.unflatten(outs[1:])), grad_value

    return value_and_grad_f


def _check_scalar(fun, outs, out_tree, holomorphic: bool) -> None:
    if len(outs) != 1 or out_tree.num_nodes != 1:
        raise TypeError(
            at_user_line(
                f"Gradient only defined for scalar-output functions. Output was a pytree of structure {out_tree}."
                " Return one number (and the rest with has_aux=True), or use weft.jacrev."
            )
        )
    aval = get_aval(outs[0])
    if aval.shape:
        raise TypeError(
            at_user_line(
                f"Gradient only defined for scalar-output functions. Output had shape: {aval.shape}. Reduce it to a"
                " number, for example by weft.numpy.sum, or use weft.jacrev."
            )
        )
    _check_output(aval, "grad", holomorphic)


def grad(
    fun: Callable[Args, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Hashable] = (),
) -> Function[Args, Any]:
    """A function that returns the gradient of `fun`; with `has_aux`, (gradient, aux).

    Args:
        fun: function of pytrees of arrays, of any dtype and shape.
        argnums: int or sequence of ints: with respect to which arguments; a sequence gives a tuple.
        has_aux: bool: `fun` returns a pair, the second part of which is handed on as it is.
        holomorphic: bool: arguments and result are complex, and `fun` is holomorphic.
        allow_int: bool: take integers; their derivatives have the dtype float0.
        reduce_axes: (), the only value that is taken.

    Returns:
        function of the same arguments that returns a pytree like the arguments `argnums`, of their dtypes and shapes.

    Raises:
        TypeError: if `fun` returns no scalar, or for integer arguments unless `allow_int`.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.grad(jnp.tanh)(0.2)
        Array(0.961043, dtype=float32, weak_type=True)
    """
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)

    @like(fun)
    @api_boundary
    def grad_f(*args, **kwargs):
        if has_aux:
            (_, aux), g = both(*args, **kwargs)
            return g, aux
        return both(*args, **kwargs)[1]

    return grad_f


# forward mode --------------------------------------------------------------------------------------------------------


@overload
def jvp(
    fun: Callable[..., Result], primals: Sequence[PyTree], tangents: Sequence[PyTree], has_aux: Literal[False] = False
) -> tuple[Result, Result]: ...
@overload
def jvp(
    fun: Callable[..., tuple[Result, _S]], primals: Sequence[PyTree], tangents: Sequence[PyTree], has_aux: Literal[True]
) -> tuple[Result, Result, _S]: ...
@overload
def jvp(fun: Callable[..., Any], primals: Sequence[PyTree], tangents: Sequence[PyTree], has_aux: bool) -> Any: ...
@api_boundary
def jvp(fun: Callable[..., Any], primals: Sequence[PyTree], tangents: Sequence[PyTree], has_aux: bool = False) -> Any:
    """The value of `fun` at `primals` and its derivative along `tangents`: (out, out_tangent), with `has_aux` also aux.

    Args:
        fun: function of pytrees of arrays, of any dtype and shape.
        primals: sequence of pytrees of arrays: the arguments of `fun`.
        tangents: sequence of pytrees of arrays, of the dtypes and shapes of the primals; float0 for integers.
        has_aux: bool: `fun` returns a pair, the second part of which is handed on as it is.

    Returns:
        (out, out_tangent): pytrees of one structure, of the same dtypes and shapes.

    Raises:
        TypeError: if primals and tangents differ in structure or dtype.
        ValueError: if they differ in shape.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.jvp(jnp.sin, (0.0,), (1.0,))
        (Array(0., dtype=float32, weak_type=True), Array(1., dtype=float32, weak_type=True))
    """
    check_callable(fun)
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError(
            f"primal and tangent arguments to jvp must be tuples or lists; found {type(primals).__name__} and"
            f" {type(tangents).__name__}."
        )
    leaves, in_tree = tree_flatten(tuple(primals))
    t_leaves, t_tree = tree_flatten(tuple(tangents))
    if in_tree != t_tree or type(primals) is not type(tangents):
        raise TypeError(
            at_user_line(
                "jvp takes a tangent for each primal, in the same tree structure: the primals are"
                f" {tree_structure(primals)}, the tangents {tree_structure(tangents)}."
            )
        )
    leaves = as_arrays(leaves, "jvp")
    t_leaves = [_checked_tangent(p, t) for p, t in zip(leaves, t_leaves)]
    flat, box = (flat_function_with_aux if has_aux else flat_function)(fun, in_tree)
    outs, out_ts = jvp_flat(flat, leaves, t_leaves)
    out_tree, aux = box[-1] if has_aux else (box[-1], None)
    n = out_tree.num_leaves
    out = tree_unflatten(out_tree, [as_given(x) for x in outs[:n]])
    out_t = tree_unflatten(out_tree, [_tangent_result(t) for t in out_ts[:n]])
    return (out, out_t, aux.unflatten(outs[n:])) if aux is not None else (out, out_t)


def _tangent_result(t):
    if type(t) is Zero and t.aval.dtype == dtypes.float0:
        return dtypes.float0_zeros(t.aval.shape)
    return as_result(instantiate(t))


def _checked_tangent(primal, t):
    have, want = get_aval(primal), tangent_aval(get_aval(primal))
    wrong = unlike(t, want)
    if wrong == "dtype":
        raise TypeError(
            at_user_line(
                "primal and tangent arguments to jvp do not match; dtypes must be equal, or in case of int/bool primal"
                f" dtype the tangent dtype must be float0. Got primal dtype {dtypes.name(have.dtype)} and so expected"
                f" tangent dtype {dtypes.name(want.dtype)}, but got tangent dtype {dtypes.name(get_aval(t).dtype)}"
                " instead. Convert the tangent with astype."
            )
        )
    if wrong:
        raise ValueError(
            at_user_line(
                f"jvp called with different primal and tangent shapes; Got primal shape {want.shape} and tangent shape"
                f" as {get_aval(t).shape}. A tangent has the shape of its primal."
            )
        )
    return Zero(want) if want.dtype == dtypes.float0 else t


@overload
def linearize(
    fun: Callable[..., Result], *primals: PyTree, has_aux: Literal[False] = False
) -> tuple[Result, Callable[..., Result]]: ...
@overload
def linearize(
    fun: Callable[..., tuple[Result, _S]], *primals: PyTree, has_aux: Literal[True]
) -> tuple[Result, Callable[..., Result], _S]: ...
@overload
def linearize(fun: Callable[..., Any], *primals: PyTree, has_aux: bool) -> Any: ...
@api_boundary
def linearize(fun: Callable[..., Any], *primals: PyTree, has_aux: bool = False) -> Any:
    """The value of `fun` at `primals` and the linear function from tangents there to tangents of the result.

    Args:
        fun: function of pytrees of arrays, of any dtype and shape.
        *primals: pytrees of arrays: the arguments of `fun`.
        has_aux: bool: `fun` returns a pair, the second part of which is handed on as it is.

    Returns:
        (out, f_jvp): f_jvp takes tangents of the dtypes and shapes of the primals, and returns one of those of `out`.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> y, f_lin = weft.linearize(jnp.sin, 0.0)
        >>> f_lin(2.0)
        Array(2., dtype=float32, weak_type=True)
    """
    check_callable(fun)
    leaves, in_tree = tree_flatten(primals)
    leaves = as_arrays(leaves, "linearize")
    flat, box = (flat_function_with_aux if has_aux else flat_function)(fun, in_tree)
    outs, nonzeros, jaxpr, consts = linearize_flat(flat, leaves)
    out_tree, aux = box[-1] if has_aux else (box[-1], None)
    n = out_tree.num_leaves
    in_avals, out_avals = [get_aval(x) for x in leaves], [get_aval(x) for x in outs[:n]]
    lin = Partial(partial(_apply_linear, jaxpr, in_tree, out_tree, in_avals, out_avals, nonzeros), consts)
    out = tree_unflatten(out_tree, [as_given(x) for x in outs[:n]])
    return (out, lin, aux.unflatten(outs[n:])) if aux is not None else (out, lin)


def _apply_linear(jaxpr, in_tree, out_tree, in_avals, out_avals, nonzeros, consts, *tangents):
    leaves, tree = tree_flatten(tangents)
    if tree != in_tree:
        raise TypeError(
            f"unexpected tree structure of argument to the linearized function: expected {in_tree}, got {tree}."
        )
    live = []
    for t, a in zip(leaves, in_avals):
        want = tangent_aval(a)
        if unlike(t, want):
            raise ValueError(
                at_user_line(
                    "linearized function called on tangent values inconsistent with the original primal values: got"
                    f" tangent {type_of(t)} for primal {type_of(Zero(a))}, whose tangent type is {type_of(Zero(want))}."
                    " Convert it with astype."
                )
            )
        if want.dtype != dtypes.float0:
            live.append(t)
    outs = iter(eval_jaxpr(jaxpr, consts, *live))
    return tree_unflatten(
        out_tree,
        [as_result(next(outs)) if nz else _tangent_result(Zero(tangent_aval(a))) for a, nz in zip(out_avals, nonzeros)],
    )


@api_boundary
def linear_transpose(
    fun: Callable[..., Any], *primals: PyTree, reduce_axes: Sequence[Hashable] = ()
) -> Callable[[PyTree], tuple[Any, ...]]:
    """The transpose of a linear function: from cotangents of its result to cotangents of its arguments.

    `primals` need only shapes and dtypes.

    Args:
        fun: linear function of pytrees of arrays of floats or complex numbers.
        *primals: pytrees of arrays, or of `ShapeDtypeStruct`s: only shape and dtype are read.
        reduce_axes: (), the only value that is taken.

    Returns:
        function of a pytree like the result of `fun` that returns a tuple of pytrees, of the dtypes and shapes of the
        primals.

    Raises:
        TypeError: for a function that is not linear, or arguments of other dtypes.

    Example:
        >>> import weft
        >>> weft.linear_transpose(lambda x: 3 * x, 1.0)(2.0)
        (Array(6., dtype=float32, weak_type=True),)
    """
    _no_reduce_axes(reduce_axes, "linear_transpose")
    leaves, in_tree = tree_flatten(primals)
    avals = [abstractify(x) for x in leaves]
    flat, box = flat_function(fun, in_tree)
    jaxpr, consts = stage(flat, avals, f"the linear function {name_of(fun)}")
    out_tree, out_avals = box[-1], jaxpr.out_avals
    kinds = {dtypes.kind(a.dtype) for a in (*avals, *out_avals)}
    if not (kinds <= set("fc") or kinds <= set("iu")):
        raise TypeError(
            at_user_line(
                "linear_transpose takes functions from floats and complex numbers to such, or from integers to"
                f" integers; {name_of(fun)} goes from {', '.join(map(type_of, map(Zero, avals)))} to"
                f" {', '.join(map(type_of, map(Zero, out_avals)))}."
            )
        )

    def transposed(ct):
        cts, tree = tree_flatten(ct)
        if tree != out_tree:
            raise TypeError(f"cotangent tree does not match function output, expected {out_tree} but got {tree}.")
        if any(unlike(x, a) for x, a in zip(cts, out_avals)):
            raise TypeError(
                f"cotangent type does not match function output, expected {[a.str_short() for a in out_avals]} but got"
                f" {[get_aval(x).str_short() for x in cts]}."
            )
        back = backward_pass(jaxpr, consts, [UndefinedPrimal(a) for a in avals], cts)
        return in_tree.unflatten([as_result(instantiate(x)) for x in back])

    return transposed


def fwd_and_bwd(
    fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool = False, jitted: bool = True
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """`fun` as two functions: `fwd(*args) -> (out, residuals)` (with `has_aux` also aux) and `bwd(residuals, ct) ->
    cotangents` of the arguments `argnums`.

    Args:
        fun: function of pytrees of arrays, of any dtype and shape.
        argnums: int or sequence of ints: with respect to which arguments; a sequence gives a tuple.
        has_aux: bool: `fun` returns a pair, the second part of which is handed on as it is.
        jitted: bool: compile both functions.

    Returns:
        (fwd, bwd): two functions; cotangents have the dtypes and shapes of the arguments.

    Example:
        >>> import weft
        >>> fwd, bwd = weft.fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1))
        >>> out, residuals = fwd(2.0, 3.0)
        >>> bwd(residuals, 1.0)
        (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    check_callable(fun)

    def fwd(*args, **kwargs):
        nums, chosen = _select_args(args, argnums)
        return vjp(_with_args(fun, args, kwargs, nums), *chosen, has_aux=has_aux)

    def bwd(residuals, ct):
        return _pick(residuals(ct), argnums)

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)


# jacobians -----------------------------------------------------------------------------------------------------------


def _basis(aval):
    """The unit vectors of arrays of an aval, stacked."""
    n = aval.size
    rows, columns = iota(dtypes.int32, (n, n), 0), iota(dtypes.int32, (n, n), 1)
    return reshape(convert(eq(rows, columns), aval.dtype, aval.weak_type), (n, *aval.shape))


def jacfwd(
    fun: Callable[Args, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Function[Args, Any]:
    """The Jacobian of `fun`, column by column in forward mode: good for few inputs.

    Args:
        fun: function of pytrees of arrays, of any dtype and shape.
        argnums: int or sequence of ints: with respect to which arguments; a sequence gives a tuple.
        has_aux: bool: `fun` returns a pair, the second part of which is handed on as it is.
        holomorphic: bool: arguments and result are complex, and `fun` is holomorphic.

    Returns:
        function of the same arguments that returns a pytree of arrays: the shape of each is that of the result, then
        that of the argument.

    Raises:
        TypeError: for arguments of another dtype than floats, or complex numbers if `holomorphic`.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.jacfwd(lambda x: x ** 2)(jnp.array([1., 2.]))
        Array([[2., 0.],
               [0., 4.]], dtype=float32)
    """
    check_callable(fun)

    def jacobian(*args, **kwargs):
        nums, chosen = _select_args(args, argnums)
        leaves, in_tree = tree_flatten(chosen)
        leaves = as_arrays(leaves, "jacfwd")
        for x in leaves:
            _check_input(x, "jacfwd", holomorphic, real=not holomorphic)
        f = _with_args(fun, args, kwargs, nums)
        avals = [get_aval(x) for x in leaves]

        def push(*ts):
            result = jvp(f, chosen, in_tree.unflatten(ts), has_aux=has_aux)
            if holomorphic:
                for y in tree_leaves(result[0]):
                    _check_output(get_aval(y), "jacfwd", holomorphic)
            return (_as_numbers(result[1]), result[2]) if has_aux else _as_numbers(result[1])

        columns: list = []
        aux = None
        for i, a in enumerate(avals):
            one_at_a_time = lambda t, i=i: push(*[t if j == i else zeros(b) for j, b in enumerate(avals)])
            out = vmap(one_at_a_time, out_axes=(-1, None) if has_aux else -1)(_basis(a))
            if has_aux:
                out, aux = out
            columns.append(tree_map(lambda y, a=a: reshape(y, (*get_aval(y).shape[:-1], *a.shape)), out))
        out_tree = tree_structure(columns[0])
        per_out = list(zip(*[tree_leaves(c) for c in columns]))
        result = out_tree.unflatten([_pick(in_tree.unflatten(list(row)), argnums) for row in per_out])
        return (result, aux) if has_aux else result

    return like(fun)(api_boundary(jacobian))


def _as_numbers(tree):
    """A pytree of tangents in which float0 tangents, which arrays can't hold, are replaced by zeros of int32."""
    return tree_map(lambda t: zeros(shaped(t.shape, dtypes.int32)) if is_float0(t) else t, tree)


def jacrev(
    fun: Callable[Args, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Function[Args, Any]:
    """The Jacobian of `fun`, row by row in reverse mode: good for few outputs.

    Args:
        fun: function of pytrees of arrays, of any dtype and shape.
        argnums: int or sequence of ints: with respect to which arguments; a sequence gives a tuple.
        has_aux: bool: `fun` returns a pair, the second part of which is handed on as it is.
        holomorphic: bool: arguments and result are complex, and `fun` is holomorphic.
        allow_int: bool: take integers; their derivatives have the dtype float0.

    Returns:
        function of the same arguments that returns a pytree of arrays: the shape of each is that of the result, then
        that of the argument.

    Raises:
        TypeError: for arguments of another dtype than floats, or complex numbers if `holomorphic`.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.jacrev(lambda x: (x ** 2).sum())(jnp.array([1., 2.]))
        Array([2., 4.], dtype=float32)
    """
    check_callable(fun)

    def jacobian(*args, **kwargs):
        nums, chosen = _select_args(args, argnums)
        for x in as_arrays(tree_leaves(chosen), "jacrev"):
            _check_input(x, "jacrev", holomorphic, allow_int)
        result = vjp(_with_args(fun, args, kwargs, nums), *chosen, has_aux=has_aux)
        out, pull = result[:2]
        leaves, out_tree = tree_flatten(out)
        avals = [get_aval(x) for x in leaves]
        for a in avals:
            _check_output(a, "jacrev", holomorphic)
        rows = []
        for i, a in enumerate(avals):
            pull_one = lambda ct, i=i: _as_numbers(
                pull(out_tree.unflatten([ct if j == i else zeros(b) for j, b in enumerate(avals)]))
            )
            back = vmap(pull_one)(_basis(a))
            rows.append(tree_map(lambda y, a=a: reshape(y, (*a.shape, *get_aval(y).shape[1:])), back))
        jac = out_tree.unflatten([_pick(row, argnums) for row in rows])
        return (jac, result[2]) if has_aux else jac

    return like(fun)(api_boundary(jacobian))


def _pick(values: tuple, argnums):
    return values[0] if isinstance(argnums, int) else tuple(values)


jacobian = jacrev


def hessian(
    fun: Callable[Args, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Function[Args, Any]:
    """The matrix (or tree of arrays) of second derivatives.

    Args:
        fun: function of pytrees of arrays, of any dtype and shape.
        argnums: int or sequence of ints: with respect to which arguments; a sequence gives a tuple.
        has_aux: bool: `fun` returns a pair, the second part of which is handed on as it is.
        holomorphic: bool: arguments and result are complex, and `fun` is holomorphic.

    Returns:
        function of the same arguments that returns a pytree of arrays: the shape of each is that of the result, then
        those of two arguments.

    Raises:
        TypeError: for arguments of another dtype than floats, or complex numbers if `holomorphic`.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.hessian(lambda x: (x ** 3).sum())(jnp.array([1., 2.]))
        Array([[ 6.,  0.],
               [ 0., 12.]], dtype=float32)
    """
    return jacfwd(
        jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic),
        argnums,
        has_aux=has_aux,
        holomorphic=holomorphic,
    )


# closures -------------------------------------------------------------------------------------------------------------


def closure_convert(fun: Callable[..., Any], *example_args: PyTree) -> tuple[Callable[..., Any], list[Array]]:
    """Makes the traced float arrays that a function closes over explicit arguments.

    Args:
        fun: function of pytrees of arrays, of any dtype and shape.
        *example_args: pytrees of arrays, or of `ShapeDtypeStruct`s: only shape and dtype are read.

    Returns:
        (converted, values): a function of the arguments followed by the values, and a list of arrays of floats.

    Raises:
        TypeError: the function that is returned is called with arguments of another structure.

    Example:
        >>> import weft
        >>> f, extra = weft.closure_convert(lambda x: x + 1, 2.0)
        >>> f(2.0, *extra)
        Array(3., dtype=float32, weak_type=True)
    """
    leaves, in_tree = tree_flatten(example_args)
    flat, box = flat_function(fun, in_tree)
    jaxpr, consts = stage(flat, [get_aval(x) for x in leaves], name_of(fun))
    from_outside = [i for i, c in enumerate(consts) if isinstance(c, Tracer) and dtypes.is_inexact(get_aval(c).dtype)]
    hoisted = [consts[i] for i in from_outside]

    def converted(*args):
        given, extra = args[: len(example_args)], list(args[len(example_args) :])
        values = list(consts)
        for i, v in zip(from_outside, extra):
            values[i] = v
        xs, tree = tree_flatten(tuple(given))
        if tree != in_tree:
            raise TypeError(f"the converted function takes arguments of structure {in_tree}, got {tree}.")
        return tree_unflatten(box[-1], [as_given(x) for x in eval_jaxpr(jaxpr, values, *xs)])

    return converted, hoisted
