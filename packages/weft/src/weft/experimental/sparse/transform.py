"""sparsify: functions of arrays on sparse arrays. A trace applies a rule to each primitive of which an argument is
sparse.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Iterable, Sequence

from ...base.annotations import override
from ... import lax, numpy as jnp
from ...base.avals import shaped
from ...core.carries import CARRY, ROWS, Carries, Program, Runs
from ...core.jaxpr import ClosedJaxpr, Jaxpr, eval_jaxpr
from ...core.memo import memoized
from ...core.primitive import Primitive
from ...core.wire import stays
from ...core.trace import InnerTrace, Trace, Tracer, current_trace, get_aval, tracing
from ...higher_order.call import jit_p
from ...primitives.linear import scalar_as_array
from ...runtime.jit import jit
from ...base.source_info import api_boundary
from ...transforms.stage import stage
from ...base.tree import tree_flatten, tree_unflatten
from . import bcoo_shape as shapes
from .base import JAXSparse, inside, sparsified, spread
from .bcoo import BCOO, bcoo_sum_duplicates, bcoo_transpose
from .bcoo_dot import bcoo_dot_general
from .bcsr import BCSR

# What `todense` of a function that is sparsified binds: on dense arrays it does nothing.
todense_p = Primitive("todense", wire=stays("it works on sparse arrays, which leave the process as their parts"))
todense_p.abstract = lambda x: shaped(x.shape, x.dtype, x.weak_type)
todense_p.reference = todense_p.decompose = todense_p.impl = lambda x: x
todense_p.jvp = lambda primals, tangents: (todense_p.bind(primals[0]), tangents[0])
todense_p.transpose = lambda ct, x: [ct]
todense_p.batch = lambda axis, args, dims: (todense_p.bind(args[0]), dims[0])


class SparseTracer(Tracer):
    """A sparse array while a function is sparsified."""

    __slots__ = ("spvalue",)

    def __init__(self, trace: "SparseTrace", *, spvalue: JAXSparse):
        self._trace, self.spvalue = trace, spvalue

    @override
    @property
    def aval(self):
        return shaped(self.spvalue.shape, self.spvalue.dtype)

    @override
    def __repr__(self):
        return f"SparseTracer({self.spvalue!r})"


class SparseTrace(InnerTrace):
    """Applies the rules of primitives with sparse arguments, evaluated under the parent."""

    def __init__(self, parent: Trace):
        self.parent, self.closed = parent, False

    def value(self, x):
        return x.spvalue if type(x) is SparseTracer and x._trace is self else x

    def wrap(self, x):
        return SparseTracer(self, spvalue=x) if isinstance(x, JAXSparse) else x

    @override
    def process(self, primitive: Primitive, args: tuple, params: dict):
        carried = _carried(primitive)  # what it carries may close over sparse arrays
        if carried is None and not any(type(x) is SparseTracer and x._trace is self for x in args):
            return args[0] if primitive is todense_p else self.pass_on(primitive, args, params)
        values = [self.value(x) for x in args]
        with tracing(self.parent):
            if not any(isinstance(x, JAXSparse) for x in values):
                return self.parent.process(primitive, args, params)
            rule = carried or _RULES.get(primitive.name)
            if rule is None:
                raise NotImplementedError(
                    f"sparsify: the sparse rule for {primitive.name} is not implemented, since its result would be"
                    " dense or it needs all elements. Convert its arguments with sparse.todense, if that is what you"
                    " want."
                )
            values = [
                x.to_bcoo() if isinstance(x, BCSR) else x if isinstance(x, JAXSparse) else scalar_as_array(x)
                for x in values
            ]
            if any(isinstance(x, JAXSparse) and not isinstance(x, BCOO) for x in values):
                raise NotImplementedError(
                    f"sparsify: {primitive.name} takes BCOO and BCSR arrays, got"
                    f" {', '.join(type(x).__name__ for x in values)}."
                )
            out = rule(*values, **params)
        return [self.wrap(x) for x in out] if primitive.multiple_results else self.wrap(out)


def _run(fun: Callable, values: Sequence) -> list:
    """The flat function on sparse and dense values."""
    trace = SparseTrace(current_trace())
    args = [trace.wrap(x) for x in values]
    with tracing(trace):
        outs = [trace.value(x) for x in fun(*args)]
    trace.closed = True
    return outs


def _is_sparse(x) -> bool:
    return isinstance(x, JAXSparse)


@sparsified.define
def sparsify(f: Callable, use_tracer: bool = False) -> Callable:
    """Makes a function take sparse arrays (BCOO or BCSR) among its arguments.

    Results stay sparse as long as zeros stay zeros. An operation without a sparse rule raises; `todense` inside `f`
    makes an array dense.

    Args:
        f: a function of pytrees of arrays of any shapes and dtypes.
        use_tracer: whether `f` itself runs on tracers, so that it sees the values of dense arrays. Otherwise the
            program runs that `f` is traced to.

    Returns:
        a function of the same arguments, of which some may be sparse.

    Raises:
        NotImplementedError: an operation has no sparse rule.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import sparse
        >>> sparse.sparsify(lambda a, b: jnp.sin(a) @ b)(sparse.eye(2), jnp.ones(2)).round(3)
        Array([0.841, 0.841], dtype=float32)
    """

    @functools.wraps(f)
    @api_boundary
    def wrapped(*args, **kwargs):
        leaves, tree = tree_flatten((args, kwargs), is_leaf=_is_sparse)
        box: list = []

        def flat(*xs):
            inner, kw = tree_unflatten(tree, xs)
            out, out_tree = tree_flatten(f(*inner, **kw))
            box.append(out_tree)
            return out

        run = flat
        if not use_tracer:
            jaxpr, consts = stage(
                flat,
                [shaped(x.shape, x.dtype) if _is_sparse(x) else get_aval(x) for x in leaves],
                "a sparsified function",
            )
            run = lambda *xs: eval_jaxpr(jaxpr, consts, *xs)
        outs = _run(run, leaves)
        return tree_unflatten(box[0], [x if _is_sparse(x) else jnp.asarray(scalar_as_array(x)) for x in outs])

    return wrapped


# Rules ---------------------------------------------------------------------------------------------------------------


def _sparse_data(mat: BCOO, data) -> BCOO:
    return mat._with(data, mat.indices, indices_sorted=mat.indices_sorted, unique_indices=mat.unique_indices)


def _elementwise(primitive, linear: bool):
    def rule(x, **params):
        if not linear and not x.unique_indices:  # elements at one index count as their sum
            x = bcoo_sum_duplicates(x, x.nse)
        return _sparse_data(x, primitive.bind(x.data, **params))

    return rule


def _integer_pow(x, *, y):
    if y <= 0:
        raise NotImplementedError(
            f"sparsify: integer_pow with the exponent {y} would result in a dense array; use sparse.todense."
        )
    return _elementwise(lax.integer_pow_p, y == 1)(x, y=y)


def _mul(x, y):
    if isinstance(x, BCOO) and isinstance(y, BCOO):
        return shapes.bcoo_multiply_sparse(x, y)
    x, y = (x, y) if isinstance(x, BCOO) else (y, x)
    data = shapes.bcoo_multiply_dense(x, y)
    return _sparse_data(x, data)


def _div(x, y):
    if isinstance(y, BCOO):
        raise NotImplementedError(
            "sparsify: division by a sparse array would result in a dense one; use sparse.todense."
        )
    if not jnp.ndim(y):
        return _sparse_data(x, x.data / y)
    good = inside(x._full()[1], x._sparse)
    at = shapes._values_at(x, jnp.broadcast_to(y, x.shape))
    return _sparse_data(x, x._full()[0] / jnp.where(spread(good, at), at, jnp.ones((), at.dtype)))


def _add(x, y):
    if isinstance(x, BCOO) and isinstance(y, BCOO):
        shape = jnp.broadcast_shapes(x.shape, y.shape)
        x, y = (
            (
                m
                if m.shape == shape
                else shapes.bcoo_broadcast_in_dim(m, shape=shape, broadcast_dimensions=tuple(range(m.ndim)))
            )
            for m in (x, y)
        )
        if (x.n_batch, x.n_dense) != (y.n_batch, y.n_dense):
            raise NotImplementedError(
                "sparsify: addition of sparse arrays with different numbers of batch and dense axes; change one with"
                " update_layout."
            )
        if x.indices is y.indices:
            return _sparse_data(x, x.data + y.data)
        n = x.n_batch
        (a, p), (b, q) = x._full(), y._full()
        return BCOO((jnp.concatenate([a, b], n), jnp.concatenate([p, q], n)), shape=shape)
    x, y = (x, y) if isinstance(x, BCOO) else (y, x)
    if jnp.shape(y) != x.shape:
        raise NotImplementedError(
            f"sparsify: the sum of a sparse array of shape {x.shape} and a dense one of shape {jnp.shape(y)} would be a"
            " larger dense array; use sparse.todense."
        )
    return x.todense() + y


def _sub(x, y):
    if isinstance(y, BCOO):
        return _add(x, _sparse_data(y, -y.data))
    return _add(x, -y)


def _dot(x, y, *, dimension_numbers, precision, preferred_element_type, out_sharding):
    return bcoo_dot_general(
        x, y, dimension_numbers=dimension_numbers, precision=precision, preferred_element_type=preferred_element_type
    )


def _reduce_sum(x, *, axes, out_sharding=None):
    out = shapes.bcoo_reduce_sum(x, axes=axes)
    return out if out.shape else out.todense()


def _concatenate(*xs, dimension):
    return shapes.bcoo_concatenate(xs, dimension=dimension)


def _stack(*xs, axis):
    wide = []
    for x in xs:
        if not isinstance(x, BCOO):
            raise ValueError("sparsify: stack takes sparse arrays only, or dense ones only.")
        places = [d for d in range(x.ndim + 1) if d != axis]
        wide.append(
            shapes.bcoo_broadcast_in_dim(x, shape=(*x.shape[:axis], 1, *x.shape[axis:]), broadcast_dimensions=places)
        )
    return shapes.bcoo_concatenate(wide, dimension=axis)


def _split(x, *, sizes, axis):
    out, start = [], 0
    for size in sizes:
        cut = lambda a, b: [b if k == axis else a[k] for k in range(x.ndim)]
        out.append(
            shapes.bcoo_slice(x, start_indices=cut([0] * x.ndim, start), limit_indices=cut(x.shape, start + size))
        )
        start += size
    return out


def _unstack(x, *, axis):
    return [shapes.bcoo_squeeze(part, dimensions=[axis]) for part in _split(x, sizes=[1] * x.shape[axis], axis=axis)]


def _gather(x, indices, *, dimension_numbers, slice_sizes, indices_are_sorted, unique_indices, mode, fill_value):
    return shapes.bcoo_gather(
        x,
        indices,
        dimension_numbers,
        slice_sizes,
        unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted,
        mode=mode,
        fill_value=fill_value,
    )


def _body(closed: ClosedJaxpr) -> Callable:
    """A jaxpr as a function of sparse and dense values."""
    return lambda *xs: _run(lambda *inner: eval_jaxpr(closed.jaxpr, closed.consts, *inner), xs)


def _plain(xs) -> tuple:
    """Values without promises about their indices, so that loops and branches give one type."""
    return tuple(
        BCOO((x.data, x.indices), shape=x.shape) if isinstance(x, BCOO) else jnp.asarray(scalar_as_array(x)) for x in xs
    )


def _carried(primitive: Primitive) -> Callable[..., Any] | None:
    """The rule of a primitive that carries programs, by how it runs them."""
    carries = primitive.carries
    if primitive is jit_p:
        return _jit
    if carries is None or carries.runs in (Runs.COMBINING, Runs.ON_PARTS):
        return None
    if carries.runs is Runs.ONCE:
        evaluate = primitive.impl or primitive.decompose
        assert evaluate is not None, primitive
        return lambda *args, **params: _run(lambda *xs: evaluate(*xs, **params), args)
    rule = _choice if carries.runs is Runs.CHOSEN else _while if carries.has_condition else _scan
    return functools.partial(rule, primitive, carries)


def _while(primitive: Primitive, carries: Carries, *args, **params):
    at = carries.split(params, range(len(args)))[CARRY]
    cond, body = carries.programs(params, len(args))

    def run(program: Program, carry: Iterable) -> list:
        values = [*args]
        for i, x in zip(at, carry):
            values[i] = x
        return _body(program.closed)(*program.arguments(values))

    start = _plain([args[i] for i in at])
    return list(lax.while_loop(lambda c: run(cond, c)[0], lambda c: _plain(run(body, c)), start))


def _scan(primitive: Primitive, carries: Carries, *args, **params):
    groups, counted = carries.split(params, args), carries.counted
    assert counted is not None
    carry, rows = _plain(groups[CARRY]), groups[ROWS]
    if any(isinstance(x, BCOO) for x in rows):
        raise NotImplementedError(
            f"sparsify: {primitive.name} over the rows of a sparse array; use a fori_loop and dynamic_slice, or vmap"
            " over a batch axis."
        )
    (program,), n = carries.programs(params, len(args)), len(carry)
    consts = program.arguments(args)[: len(program.operands) - n - program.rows]
    body = _body(program.closed)

    def step(carry, x):
        out = body(*consts, *carry, *x)
        return _plain(out[:n]), _plain(out[n:])

    length, reverse, unroll = (params[key] for key in counted)
    carry, ys = lax.scan(step, carry, tuple(rows), length, reverse, unroll)
    return [*carry, *ys]


def _choice(primitive: Primitive, carries: Carries, *args, **params):
    if isinstance(args[0], BCOO):
        raise NotImplementedError(f"sparsify: the index of {primitive.name} must be dense; use sparse.todense.")
    programs = carries.programs(params, len(args))
    branches = [lambda *xs, b=p.closed: _plain(_body(b)(*xs)) for p in programs]
    return list(lax.switch(args[0], branches, *programs[0].arguments(args)))


def _jit(*args, jaxpr, **params):
    return _sparsified(jaxpr.jaxpr)(jaxpr.consts, *args)


@memoized
def _sparsified(jaxpr: Jaxpr) -> Callable[..., Any]:
    """A program on sparse arrays; its constants are arguments, so that programs that differ in them alone share it."""
    return jit(lambda consts, *xs: _run(lambda *inner: eval_jaxpr(jaxpr, consts, *inner), xs))


_ZERO_TO_ZERO = """
    abs asin asinh atan atanh bessel_i1e cbrt ceil convert_element_type erf erf_inv expm1 floor log1p reduce_precision
    round sign sin sinh sqrt square tan tanh
"""
_LINEAR = "conj copy imag neg real stop_gradient"
_RULES: dict[str, Callable[..., Any]] = {
    **{
        name: _elementwise(getattr(lax, f"{name}_p"), linear)
        for names, linear in ((_ZERO_TO_ZERO, False), (_LINEAR, True))
        for name in names.split()
    },
    "integer_pow": _integer_pow,
    "mul": _mul,
    "div": _div,
    "add": _add,
    "add_any": _add,
    "sub": _sub,
    "dot_general": _dot,
    "reduce_sum": _reduce_sum,
    "transpose": lambda x, *, permutation: bcoo_transpose(x, permutation=permutation),
    "reshape": lambda x, *, new_sizes, dimensions, sharding: shapes.bcoo_reshape(x, new_sizes=new_sizes),
    "squeeze": lambda x, *, dimensions: shapes.bcoo_squeeze(x, dimensions=dimensions),
    "broadcast_in_dim": lambda x, *, shape, broadcast_dimensions, sharding: shapes.bcoo_broadcast_in_dim(
        x, shape=shape, broadcast_dimensions=broadcast_dimensions
    ),
    "slice": lambda x, **params: shapes.bcoo_slice(x, **params),
    "dynamic_slice": lambda x, *starts, slice_sizes: shapes.bcoo_dynamic_slice(x, starts, slice_sizes),
    "rev": lambda x, *, dimensions: shapes.bcoo_rev(x, dimensions),
    "conv_general_dilated": lambda x, y, **params: shapes.bcoo_conv_general_dilated(
        x, y, **_convolution(x, y, **params)
    ),
    "concatenate": _concatenate,
    "stack": _stack,
    "split": _split,
    "unstack": _unstack,
    "gather": _gather,
    "todense": lambda x: x.todense(),
    "name": lambda x, *, name: x,
}


def _convolution(x, y, *, dimension_numbers, **params) -> dict:
    """The parameters of the primitive as those of `bcoo_conv_general_dilated`."""
    if any(tuple(spec) != tuple(range(len(x.shape))) for spec in dimension_numbers):
        raise NotImplementedError("sparsify: convolutions of sparse arrays have the axes (N, C, spatial).")
    keep = (
        "window_strides",
        "padding",
        "lhs_dilation",
        "rhs_dilation",
        "feature_group_count",
        "batch_group_count",
        "precision",
        "preferred_element_type",
    )
    return {k: v for k, v in params.items() if k in keep}
