"""Programs of complex numbers as programs of real ones: each complex array is two planes, its real and its imaginary
parts.

In memory a complex array has the host's format, pairs (re, im): an argument float[…, 2], which the program splits at
its beginning; results are combined in the same way (docs/decisions/015). A rule of `COMPLEX_RULES` takes an equation's
parameters and its operands, which are `Pair`s if they are complex, and uses weft's own primitives. Operations without a
rule that have a decomposition are decomposed first.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Callable, NamedTuple, Sequence, TypeGuard

from weft.base import dtypes
from weft.base.avals import AbstractValue, ShapedArray, shaped
from weft.core.carries import Carries, Runs
from weft.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, TypedScalar, eval_equations, subjaxprs
from weft.core.memo import memoized, memoized_closed
from weft.core.primitive import Unsupported, registry
from weft.higher_order.while_loop import fori_loop
from weft.core.trace import get_aval, is_array
from weft.base.errors import BackendError
from weft.base.host import from_bytes, to_bytes
from weft.primitives import elementwise as ew, transcendental as fn
from weft.primitives.dot import dot_general_p, factor_dtype
from weft.primitives.elementwise import abs_, add, and_, div, eq, ge, gt, is_finite, lt, mul, ne, neg, or_, select, sub
from weft.primitives.gather import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers, gather
from weft.primitives.linear import broadcast_in_dim, convert, expand_dims, full, reshape, transpose
from weft.primitives.rules import dtype_of, scalar_of, shape_of
from weft.primitives.shape import concatenate, iota, slice_
from weft.transforms.dce import live
from weft.transforms.stage import decomposition, stage_closed

from weft_wasm.lower.types import LoweringError, array_type, dtypes_in

Real = Any  # an array of real numbers, as the current trace has it


class Pair(NamedTuple):
    """A complex array: two real arrays of its shape."""

    re: Real
    im: Real


Number = Any  # a Pair or a Real
Rule = Callable[..., Any]  # (equation, *operands) -> result, or a list where the primitive has several
Function = Callable[[Pair], Number]


IDENTITIES = frozenset(("copy_p", "copy", "stop_gradient", "name", "device_put"))
COMPLEX_RULES: dict[str, Rule] = {}
# Operations that move, add and select elements act on each plane; real operands serve both planes.
PLANEWISE = (
    "add",
    "add_any",
    "sub",
    "neg",
    "reshape",
    "broadcast_in_dim",
    "transpose",
    "squeeze",
    "slice",
    "rev",
    "dynamic_slice",
    "dynamic_update_slice",
    "concatenate",
    "pad",
    "select_n",
    "reduce_sum",
    "cumsum",
    "scatter",
    "scatter-add",
    "scatter-sub",
    "reduce_precision",
    "reduce_window_sum",
    "split",
    "unstack",
    "stack",
    "tile",
    "optimization_barrier",
)


def rule(*names: str) -> Callable[[Rule], Rule]:
    def register(f: Rule) -> Rule:
        for name in names:
            COMPLEX_RULES[name] = f
        return f

    return register


# ---- programs


def is_complex(aval: AbstractValue) -> TypeGuard[ShapedArray]:
    return isinstance(aval, ShapedArray) and dtypes.is_complex(aval.dtype)


def has_complex(jaxpr: Jaxpr) -> bool:
    """Whether a complex number occurs anywhere in a jaxpr."""
    return any(map(dtypes.is_complex, dtypes_in(jaxpr)))


def real_program(jaxpr: Jaxpr) -> Jaxpr | ClosedJaxpr:
    """A jaxpr without constvars with its complex arguments and results as pairs in a last axis of 2; the jaxpr
    itself if there are none.
    """
    return _real_program(jaxpr) if has_complex(jaxpr) else jaxpr


@memoized
def _real_program(jaxpr: Jaxpr) -> ClosedJaxpr:
    return stage_closed(
        lambda *xs: [joined(o) for o in run(jaxpr, (), [apart(x, array_type(v)) for x, v in zip(xs, jaxpr.invars)])],
        [stored(array_type(v)) for v in jaxpr.invars],
    )


def planes(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same program with two real arguments for each complex one, and two results for each complex result."""
    return _planes(closed) if has_complex(closed.jaxpr) else closed


@memoized_closed
def _planes(closed: ClosedJaxpr) -> ClosedJaxpr:
    avals = [real for a in closed.in_avals for real in reals(a)]

    def program(*xs: Real) -> list[Real]:
        rest = iter(xs)
        args = [Pair(next(rest), next(rest)) if is_complex(a) else next(rest) for a in closed.in_avals]
        return flat(run(closed.jaxpr, [apart_constant(c) for c in closed.consts], args))

    return stage_closed(program, avals)


def reals(aval: AbstractValue) -> list[AbstractValue]:
    """The avals of the arrays that represent one of this aval."""
    return [shaped(aval.shape, dtypes.real_of(aval.dtype))] * 2 if is_complex(aval) else [aval]


def stored(aval: ShapedArray) -> ShapedArray:
    """The aval of an array in its memory format."""
    return shaped((*aval.shape, 2), dtypes.real_of(aval.dtype)) if is_complex(aval) else aval


def apart(x: Real, aval: ShapedArray) -> Number:
    if not is_complex(aval):
        return x
    shape, n = aval.shape, len(aval.shape)
    return Pair(*[reshape(slice_(x, (*[0] * n, k), (*shape, k + 1)), shape) for k in (0, 1)])


def joined(x: Number) -> Real:
    """The array in memory of a Pair."""
    if type(x) is not Pair:
        return x
    n = len(shape_of(x.re))
    return concatenate([expand_dims(v, (n,)) for v in x], n)


def apart_constant(x: Any) -> Number:
    aval = get_aval(x)
    if not is_complex(aval):
        return x
    host = x._host() if is_array(x) else x
    return apart(from_bytes(bytes(to_bytes(host)), (*aval.shape, 2), dtypes.real_of(aval.dtype)), aval)


def flat(values: Sequence[Number]) -> list[Real]:
    return [x for v in values for x in (v if type(v) is Pair else (v,))]


def grouped(values: Sequence[Real], avals: Sequence[AbstractValue]) -> list[Number]:
    """The inverse of `flat`."""
    rest = iter(values)
    return [Pair(next(rest), next(rest)) if is_complex(a) else next(rest) for a in avals]


def literal(a: Literal) -> Number:
    if not is_complex(a.aval):
        return TypedScalar(a.val, a.aval)
    real = dtypes.real_of(a.aval.dtype)
    return Pair(scalar_of(complex(a.val).real, real), scalar_of(complex(a.val).imag, real))


def run(jaxpr: Jaxpr, consts: Sequence[Number], args: Sequence[Number]) -> list[Number]:
    """The results of a jaxpr on Pairs and real arrays, by the current trace."""
    return eval_equations(live(jaxpr), consts, args, equation, literal=literal)


def equation(eqn: JaxprEqn, ins: list[Number]) -> list[Number]:
    primitive, params = eqn.primitive, eqn.params
    name = primitive.name
    carries = primitive.carries
    called = None if carries is None else carries.call(params, ins)
    if called is not None:
        closed, args = called
        return run(closed.jaxpr, [apart_constant(c) for c in closed.consts], args)
    if name in IDENTITIES:
        return ins
    special = None if primitive.foreign else COMPLEX_RULES.get(name)
    if carries is not None and carries.runs in (Runs.CHOSEN, Runs.REPEATED):
        special = partial(in_planes, carries)
    mixed = any(type(x) is Pair for x in ins) or any([is_complex(v.aval) for v in eqn.outvars])
    if not mixed and not any(has_complex(sub) for sub in subjaxprs(params)):
        outs = primitive.bind(*ins, **params)
        return outs if primitive.multiple_results else [outs]
    if special is not None:
        if isinstance(params.get("accuracy"), fn.Tolerance):
            raise LoweringError(
                f"{name}: the wasm and webgpu backends promise no {params['accuracy']} for complex numbers. Leave"
                f" accuracy out, or use the cpu backend. At {eqn.source_info}"
            )
        outs = special(eqn, *ins)
        outs = outs if primitive.multiple_results else [outs]
        if any((type(o) is Pair) != is_complex(v.aval) for o, v in zip(outs, eqn.outvars)):
            raise BackendError(
                f"{name} of complex numbers has results of other types than it says. This is a bug of the compiler;"
                f" please report the program. At {eqn.source_info}"
            )
        return outs
    rule = primitive.decompose
    if rule is None or isinstance(rule, Unsupported):
        kinds = ", ".join(a.aval.str_short() for a in eqn.invars)
        raise LoweringError(
            f"the wasm and webgpu backends can't compile {name} of ({kinds}): it has no rule for complex numbers. Use"
            f" the cpu backend for it. At {eqn.source_info}"
        )
    closed = decomposition(primitive, rule, [a.aval for a in eqn.invars], params)
    return run(closed.jaxpr, [apart_constant(c) for c in closed.consts], ins)


# ---- both planes alike


def planewise(eqn: JaxprEqn, *xs: Number) -> Number:
    params = eqn.params
    if "update_jaxpr" in params:
        params = dict(params, update_jaxpr=None)
    outs = [eqn.primitive.bind(*[x[k] if type(x) is Pair else x for x in xs], **params) for k in (0, 1)]
    return [Pair(*o) for o in zip(*outs)] if eqn.primitive.multiple_results else Pair(*outs)


for _name in PLANEWISE:
    COMPLEX_RULES[_name] = planewise


@rule("gather")
def _gather(eqn: JaxprEqn, x: Pair, indices: Real) -> Pair:
    fill = eqn.params["fill_value"]
    value = complex(math.nan, 0.0) if fill is None else complex(fill)
    return Pair(
        *[eqn.primitive.bind(v, indices, **dict(eqn.params, fill_value=f)) for v, f in zip(x, (value.real, value.imag))]
    )


def scattered(combine: Callable[[Pair, Pair], Pair], eqn: JaxprEqn, x: Pair, indices: Real, updates: Pair) -> Pair:
    """One window after the other is read, combined and written, since indices may repeat."""
    p = eqn.params
    dn = p["dimension_numbers"]
    if dn.operand_batching_dims:  # the place along them is an index like others
        if dtypes.bits(dtype_of(indices)) < 32:
            indices = convert(indices, dtypes.int32)
        along = [iota(dtype_of(indices), (*shape_of(indices)[:-1], 1), d) for d in dn.scatter_indices_batching_dims]
        indices = concatenate([indices, *along], len(shape_of(indices)) - 1)
        dn = ScatterDimensionNumbers(
            dn.update_window_dims,
            tuple(sorted((*dn.inserted_window_dims, *dn.operand_batching_dims))),
            (*dn.scatter_dims_to_operand_dims, *dn.operand_batching_dims),
        )
    shape = shape_of(updates.re)
    order = [*[d for d in range(len(shape)) if d not in dn.update_window_dims], *dn.update_window_dims]
    window = tuple(shape[d] for d in dn.update_window_dims)
    depth = shape_of(indices)[-1]
    count = math.prod(shape_of(indices)[:-1])
    updates = Pair(*[reshape(transpose(u, tuple(order)), (count, *window)) for u in updates])
    indices = reshape(indices, (count, depth))
    whole = [d for d in range(len(shape_of(x.re))) if d not in dn.inserted_window_dims]
    sizes = tuple(window[whole.index(d)] if d in whole else 1 for d in range(len(shape_of(x.re))))
    own = tuple(range(1, len(window) + 1))
    read = GatherDimensionNumbers(own, dn.inserted_window_dims, dn.scatter_dims_to_operand_dims)
    params = dict(p, dimension_numbers=dn._replace(update_window_dims=own), update_jaxpr=None)
    row = lambda v, k: registry["dynamic_slice"].bind(
        v, k, *[0] * (len(shape_of(v)) - 1), slice_sizes=(1, *shape_of(v)[1:])
    )

    def step(k: Real, planes: Sequence[Real]) -> tuple[Real, ...]:
        at = row(indices, k)
        here = Pair(*[gather(v, at, read, sizes, mode=GatherScatterMode.CLIP) for v in planes])
        there = combine(here, Pair(*[row(u, k) for u in updates]))
        return tuple([registry["scatter"].bind(v, at, t, **params) for v, t in zip(planes, there)])

    return Pair(*fori_loop(0, count, step, tuple(x))) if count and 0 not in (*window, *shape_of(x.re)) else x


COMPLEX_RULES["bitcast_convert_type"] = lambda eqn, x: x  # to the same dtype: there is no other complex dtype


# ---- loops and choices, sort


def in_planes(carries: Carries, eqn: JaxprEqn, *xs: Number) -> list[Number]:
    """A loop or a choice whose programs take and give planes."""
    groups = {name: flat(part) for name, part in carries.split(eqn.params, xs).items()}
    params = carries.with_jaxprs(carries.regrouped(eqn.params, groups), map(planes, carries.jaxprs(eqn.params)))
    outs = eqn.primitive.bind(*[x for part in groups.values() for x in part], **params)
    return grouped(outs, [v.aval for v in eqn.outvars])


@rule("sort")
def _sort(eqn: JaxprEqn, *xs: Number) -> list[Number]:
    """Complex keys are sorted by their real parts, then by their imaginary ones."""
    keys = eqn.params["num_keys"]
    outs = eqn.primitive.bind(*flat(xs), **dict(eqn.params, num_keys=len(flat(xs[:keys]))))
    return grouped(outs, [v.aval for v in eqn.outvars])


# ---- products


def times(x: Number, y: Number, product: Callable[[Real, Real], Real]) -> Pair:
    """The bilinear `product` of Pairs or real arrays."""
    if type(x) is not Pair:
        return Pair(product(x, y.re), product(x, y.im))
    if type(y) is not Pair:
        return Pair(product(x.re, y), product(x.im, y))
    return Pair(sub(product(x.re, y.re), product(x.im, y.im)), add(product(x.re, y.im), product(x.im, y.re)))


@rule("dot_general", "conv_general_dilated")
def _bilinear(eqn: JaxprEqn, x: Number, y: Number) -> Number:
    """The requested result may be real although an operand is complex, as the derivative with respect to a real operand
    is, and the other way round.
    """
    kind = eqn.params.get("preferred_element_type")
    params = dict(
        eqn.params,
        preferred_element_type=dtypes.real_of(kind) if kind is not None and dtypes.is_complex(kind) else kind,
    )
    product = lambda a, b: eqn.primitive.bind(a, b, **params)
    out = eqn.outvars[0].aval
    if eqn.primitive is dot_general_p and not is_complex(out):
        a, b = (v.aval.dtype for v in eqn.invars)
        first = factor_dtype(a, b, out.dtype, eqn.params["precision"])
        if first is not None:  # converted, a complex factor is its real part
            return product(*[convert(v.re if type(v) is Pair else v, first) for v in (x, y)])
    if type(x) is not Pair and type(y) is not Pair:
        real = product(x, y)
        return Pair(real, like(real, 0.0))
    made = times(x, y, product)
    return made if is_complex(out) else made.re


def spread(x: Number, shape: tuple[int, ...]) -> Number:
    """Operands of elementwise operations in one shape."""
    if type(x) is Pair:
        return Pair(spread(x.re, shape), spread(x.im, shape))
    have = shape_of(x)
    if have == shape:
        return x
    return broadcast_in_dim(x, shape, tuple(range(len(shape))) if have else ())


def multiply(x: Pair, y: Pair) -> Pair:
    return times(x, y, mul)


def divide(x: Pair, y: Pair) -> Pair:
    """Smith's division, with the denominator rotated so that its larger part is the real one; infinite and zero
    operands are treated as in C.
    """
    a, b, c, d = *x, *y
    turn = lt(abs_(c), abs_(d))
    a1, b1, c1, d1 = select(turn, b, a), select(turn, neg(a), b), select(turn, d, c), select(turn, neg(c), d)
    r = div(d1, c1)
    scale = add(c1, mul(d1, r))
    re, im = div(add(a1, mul(b1, r)), scale), div(sub(b1, mul(a1, r)), scale)
    zero, inf = full(shape_of(re), 0.0, dtype_of(re)), full(shape_of(re), math.inf, dtype_of(re))
    # the result of C99 if the rule gives NaN for both parts
    nothing = and_(eq(c, zero), eq(d, zero))
    endless = lambda u, v: or_(eq(abs_(u), inf), eq(abs_(v), inf))
    finite = lambda u, v: and_(is_finite(u), is_finite(v))
    lost = and_(ne(re, re), ne(im, im))
    unit = lambda u: copy_sign(select(eq(abs_(u), inf), full(shape_of(re), 1.0, dtype_of(re)), zero), u)
    big = and_(endless(a, b), finite(c, d))
    small = and_(endless(c, d), finite(a, b))
    a2, b2, c2, d2 = (
        select(big, unit(a), a),
        select(big, unit(b), b),
        select(small, unit(c), c),
        select(small, unit(d), d),
    )
    factor = select(small, zero, inf)
    pole = copy_sign(inf, c)
    re2 = select(nothing, mul(pole, a), mul(factor, add(mul(a2, c2), mul(b2, d2))))
    im2 = select(nothing, mul(pole, b), mul(factor, sub(mul(b2, c2), mul(a2, d2))))
    mend = and_(lost, or_(nothing, or_(big, small)))
    return Pair(select(mend, re2, re), select(mend, im2, im))


def side(x: Real, y: Real) -> Real:
    """|x|, negative if y < 0: -0 is on the upper side of a branch cut, as in XLA."""
    x = abs_(x)
    return select(lt(y, like(y, 0.0)), neg(x), x)


def copy_sign(x: Real, y: Real) -> Real:
    """x ≥ 0 with the sign bit of y."""
    word = dtypes.dtype("int32" if dtypes.name(dtype_of(y)) == "float32" else "int64")
    negative = lt(registry["bitcast_convert_type"].bind(y, new_dtype=word), full(shape_of(y), 0, word))
    return select(negative, neg(x), x)


def _same_shape(f: Callable[..., Number]) -> Rule:
    """A rule of operands that are broadcast to the result's shape."""

    def call(eqn: JaxprEqn, *xs: Number) -> Number:
        shape = array_type(eqn.outvars[0]).shape
        return f(*[spread(x, shape) for x in xs])

    return call


COMPLEX_RULES["mul"], COMPLEX_RULES["div"] = _same_shape(multiply), _same_shape(divide)


# ---- parts


COMPLEX_RULES["real"] = lambda eqn, x: x.re
COMPLEX_RULES["imag"] = lambda eqn, x: x.im
COMPLEX_RULES["complex"] = lambda eqn, re, im: Pair(*[spread(v, array_type(eqn.outvars[0]).shape) for v in (re, im)])


@rule("conj")
def _conj(eqn: JaxprEqn, x: Number) -> Pair:
    return Pair(x.re, neg(x.im)) if type(x) is Pair else Pair(x, full(shape_of(x), -0.0, dtype_of(x)))


@rule("convert_element_type")
def _convert(eqn: JaxprEqn, x: Number) -> Number:
    new = eqn.params["new_dtype"]
    if dtypes.is_complex(new):
        real = dtypes.real_of(new)
        return (
            Pair(*[convert(v, real) for v in x])
            if type(x) is Pair
            else Pair(convert(x, real), full(shape_of(x), 0.0, real))
        )
    if dtypes.name(new) == "bool":
        return or_(*[ne(v, full(shape_of(v), 0.0, dtype_of(v))) for v in x])
    return convert(x.re, new)


@rule("iota")
def _iota(eqn: JaxprEqn) -> Pair:
    real = dtypes.real_of(eqn.params["dtype"])
    return Pair(eqn.primitive.bind(**dict(eqn.params, dtype=real)), full(eqn.params["shape"], 0.0, real))


COMPLEX_RULES["eq"] = _same_shape(lambda x, y: and_(eq(x.re, y.re), eq(x.im, y.im)))
COMPLEX_RULES["ne"] = _same_shape(lambda x, y: or_(ne(x.re, y.re), ne(x.im, y.im)))


def extremum(before: Callable[[Real, Real], Real]) -> Callable[[Pair, Pair], Pair]:
    def pick(x: Pair, y: Pair) -> Pair:
        """The first of two numbers in the order of real parts, then imaginary parts; a number with NaN comes before all
        others.
        """
        first = or_(before(x.re, y.re), and_(eq(x.re, y.re), before(x.im, y.im)))
        first = or_(first, or_(ne(x.re, x.re), ne(x.im, x.im)))
        return Pair(select(first, x.re, y.re), select(first, x.im, y.im))

    return pick


COMPLEX_RULES["max"], COMPLEX_RULES["min"] = _same_shape(extremum(gt)), _same_shape(extremum(lt))
for _name, _combine in (("scatter-mul", multiply), ("scatter-max", extremum(gt)), ("scatter-min", extremum(lt))):
    COMPLEX_RULES[_name] = partial(scattered, _combine)


def _clamped(low: Pair, x: Pair, high: Pair) -> Pair:
    """By real parts alone: decision 027."""
    below = ge(low.re, x.re)
    x = Pair(select(below, low.re, x.re), select(below, low.im, x.im))
    within = ge(high.re, x.re)
    return Pair(select(within, x.re, high.re), select(within, x.im, high.im))


COMPLEX_RULES["clamp"] = _same_shape(_clamped)


def folded(eqn: JaxprEqn, x: Pair, combine: Callable[[Pair, Pair], Pair], empty: tuple[float, float]) -> Pair:
    """A reduction: halves the reduced axes again and again."""
    axes, shape = eqn.params["axes"], shape_of(x.re)
    kept = [d for d in range(len(shape)) if d not in axes]
    outer, n = tuple(shape[d] for d in kept), math.prod(shape[d] for d in axes)
    x = Pair(*[reshape(transpose(v, (*kept, *axes)), (*outer, n)) for v in x])
    cut = lambda x, a, b: Pair(*[slice_(v, (*[0] * len(outer), a), (*outer, b)) for v in x])
    if not n:
        return Pair(*[full(outer, value, dtype_of(x.re)) for value in empty])
    while n > 1:
        half = n // 2
        made = combine(cut(x, 0, half), cut(x, half, 2 * half))
        x = Pair(*[concatenate([m, v], len(outer)) for m, v in zip(made, cut(x, 2 * half, n))]) if n % 2 else made
        n -= half
    return Pair(*[reshape(v, outer) for v in x])


COMPLEX_RULES["reduce_prod"] = lambda eqn, x: folded(eqn, x, multiply, (1.0, 0.0))
COMPLEX_RULES["reduce_max"] = lambda eqn, x: folded(eqn, x, extremum(gt), (-math.inf, -math.inf))
COMPLEX_RULES["reduce_min"] = lambda eqn, x: folded(eqn, x, extremum(lt), (math.inf, math.inf))


# ---- functions (W. Kahan, "Branch cuts for complex elementary functions", 1987)


def like(x: Real, value: float) -> Real:
    return full(shape_of(x), value, dtype_of(x))


def absolute(x: Pair) -> Real:
    """The length of (re, im), without overflow."""
    a, b = abs_(x.re), abs_(x.im)
    large, small = ew.max_(a, b), ew.min_(a, b)
    ratio = select(eq(large, small), like(a, 1.0), div(small, large))
    length = mul(large, fn.sqrt(add(mul(ratio, ratio), like(a, 1.0))))
    return select(or_(eq(large, like(a, 0.0)), eq(large, like(a, math.inf))), large, length)


def logarithm(x: Pair) -> Pair:
    return Pair(log_length(x), fn.atan2(x.im, x.re))


def log_length(x: Pair) -> Real:
    """log |x|, exact also where |x| is near 1."""
    a, b = abs_(x.re), abs_(x.im)
    large, small = ew.max_(a, b), ew.min_(a, b)
    one, half = like(a, 1.0), like(a, 0.5)
    ratio = select(eq(large, small), one, div(small, large))
    far = add(fn.log(large), mul(half, fn.log1p(mul(ratio, ratio))))
    near = mul(half, fn.log1p(add(mul(sub(large, one), add(large, one)), mul(small, small))))
    out = select(and_(gt(large, half), lt(large, like(a, 1.5))), near, far)
    return select(eq(large, like(a, math.inf)), large, out)


def exponential(x: Pair, exp: Callable[[Real], Real] = fn.exp, angle: Real = None) -> Pair:
    size, y = exp(x.re), x.im if angle is None else angle
    half = exp(mul(x.re, like(y, 0.5)))
    large = gt(size, like(y, 1e38))  # where only the product with a small cosine is finite
    part = lambda t: select(large, mul(mul(half, t), half), mul(size, t))
    real = eq(y, like(y, 0.0))
    return Pair(select(real, size, part(fn.cos(y))), select(real, y, part(fn.sin(y))))


def root(x: Pair) -> Pair:
    a, b = abs_(x.re), abs_(x.im)
    large = ew.max_(a, b)
    zero, one = like(a, 0.0), like(a, 1.0)
    safe = select(or_(eq(large, zero), eq(large, like(a, math.inf))), one, large)
    p, q = div(a, safe), div(b, safe)
    t = mul(fn.sqrt(safe), fn.sqrt(mul(like(a, 0.5), add(p, fn.sqrt(add(mul(p, p), mul(q, q)))))))
    nothing = eq(large, zero)
    other = select(nothing, zero, div(mul(b, like(a, 0.5)), select(nothing, one, t)))
    right = ge(x.re, zero)
    re, im = select(right, t, other), select(right, other, t)
    re, im = select(nothing, zero, re), select(nothing, zero, im)
    inf = like(a, math.inf)
    tall, wide = eq(b, inf), eq(a, inf)
    re = select(tall, inf, select(and_(wide, eq(x.im, x.im)), select(right, inf, zero), re))
    im = select(tall, inf, select(and_(wide, eq(x.im, x.im)), select(right, zero, inf), im))
    return Pair(re, side(im, x.im))


def reciprocal(x: Pair) -> Pair:
    return divide(Pair(like(x.re, 1.0), like(x.re, 0.0)), x)


def power(x: Pair, y: Number) -> Pair:
    """exp(y log x); x ** 0 and 1 ** y are 1, and 0 ** y is 0 for positive y."""
    y = y if type(y) is Pair else Pair(convert(y, dtype_of(x.re)), like(x.re, 0.0))
    out = exponential(multiply(logarithm(x), y))
    zero, one = like(x.re, 0.0), like(x.re, 1.0)
    none = and_(eq(x.re, zero), eq(x.im, zero))
    still = or_(and_(eq(y.re, zero), eq(y.im, zero)), and_(eq(x.re, one), eq(x.im, zero)))
    none = and_(none, and_(gt(y.re, zero), eq(y.im, zero)))
    return Pair(select(still, one, select(none, zero, out.re)), select(or_(still, none), zero, out.im))


def scaled(x: Real, y: Real) -> Real:
    """The product x y; if x is zero, so is the product, even if y is infinite, with the product of the signs."""
    zero = like(x, 0.0)
    return select(eq(x, zero), select(eq(y, zero), mul(x, y), select(lt(y, zero), neg(x), x)), mul(x, y))


def hyperbolic_tangent(x: Pair) -> Pair:
    one, four = like(x.re, 1.0), like(x.re, 4.0)
    t, s = fn.tan(x.im), fn.sinh(x.re)
    beta = add(one, mul(t, t))
    scale = add(one, mul(beta, mul(s, s)))
    re, im = div(mul(mul(beta, fn.sqrt(add(one, mul(s, s)))), s), scale), div(t, scale)
    far = gt(abs_(x.re), like(x.re, 20.0))
    tail = mul(mul(four, mul(fn.sin(x.im), fn.cos(x.im))), fn.exp(mul(like(x.re, -2.0), abs_(x.re))))
    tail = select(
        eq(abs_(x.re), like(x.re, math.inf)),
        mul(like(x.re, 0.0), select(is_finite(x.im), fn.sin(mul(x.im, like(x.re, 2.0))), one)),
        tail,
    )
    return Pair(select(far, ew.sign(x.re), re), select(far, tail, im))


def turned(f: Callable[[Pair], Pair]) -> Callable[[Pair], Pair]:
    """z ↦ -i f(i z): trigonometric functions in terms of hyperbolic ones, and the other way round."""

    def call(x: Pair) -> Pair:
        out = f(Pair(neg(x.im), x.re))
        return Pair(out.im, neg(out.re))

    return call


def _around_one(x: Pair) -> tuple[Pair, Pair]:
    """(√(1 - x), √(1 + x))."""
    one = like(x.re, 1.0)
    return root(Pair(sub(one, x.re), neg(x.im))), root(Pair(add(one, x.re), x.im))


def arc_sine(x: Pair) -> Pair:
    a, b = _around_one(x)
    return Pair(fn.atan2(x.re, multiply(a, b).re), side(fn.asinh(multiply(Pair(a.re, neg(a.im)), b).im), x.im))


def arc_cosine(x: Pair) -> Pair:
    a, b = _around_one(x)
    return Pair(
        mul(like(x.re, 2.0), fn.atan2(a.re, b.re)), neg(side(fn.asinh(multiply(Pair(b.re, neg(b.im)), a).im), x.im))
    )


def hyperbolic_arc_cosine(x: Pair) -> Pair:
    one = like(x.re, 1.0)
    a, b = root(Pair(sub(x.re, one), x.im)), root(Pair(add(x.re, one), x.im))
    return Pair(fn.asinh(multiply(Pair(a.re, neg(a.im)), b).re), side(mul(like(x.re, 2.0), fn.atan2(a.im, b.re)), x.im))


def hyperbolic_arc_tangent(x: Pair) -> Pair:
    one, a = like(x.re, 1.0), abs_(x.re)
    gap, square = sub(one, a), mul(x.im, x.im)
    re = mul(like(a, 0.25), fn.log1p(div(mul(like(a, 4.0), a), add(mul(gap, gap), square))))
    im = mul(like(a, 0.5), fn.atan2(mul(like(a, 2.0), x.im), sub(mul(gap, add(one, a)), square)))
    # far away 1 / x, and a quarter turn
    b = abs_(x.im)
    large, small = ew.max_(a, b), ew.min_(a, b)
    endless = eq(large, like(a, math.inf))
    ratio = select(or_(endless, eq(large, like(a, 0.0))), like(a, 0.0), div(small, large))
    tail = lambda part: div(select(endless, like(a, 0.0), div(part, large)), mul(large, add(one, mul(ratio, ratio))))
    far = gt(large, like(a, 1e10))
    return Pair(
        copy_sign(select(far, tail(a), re), x.re), side(select(far, sub(like(a, math.pi / 2), tail(b)), im), x.im)
    )


def log_one_plus(x: Pair) -> Pair:
    one = like(x.re, 1.0)
    moved = Pair(add(one, x.re), x.im)
    near = mul(like(x.re, 0.5), fn.log1p(add(mul(x.re, add(like(x.re, 2.0), x.re)), mul(x.im, x.im))))
    small = lt(ew.max_(abs_(x.re), abs_(x.im)), like(x.re, 0.5))
    return Pair(select(small, near, log_length(moved)), fn.atan2(x.im, moved.re))


def exponential_minus_one(x: Pair) -> Pair:
    half = fn.sin(mul(x.im, like(x.im, 0.5)))
    whole = exponential(x)
    near = sub(mul(fn.expm1(x.re), fn.cos(x.im)), mul(like(x.im, 2.0), mul(half, half)))
    return Pair(select(lt(abs_(x.re), like(x.re, 1.0)), near, sub(whole.re, like(x.re, 1.0))), whole.im)


def direction(x: Pair) -> Pair:
    """x / |x|; 0 of 0."""
    length = absolute(x)
    nothing = eq(length, like(length, 0.0))
    safe = select(nothing, like(length, 1.0), length)
    return Pair(*[select(nothing, like(v, 0.0), div(v, safe)) for v in x])


_FUNCTIONS: dict[str, Function] = {
    "abs": absolute,
    "log": logarithm,
    "exp": exponential,
    "sqrt": root,
    "rsqrt": lambda x: reciprocal(root(x)),
    "exp2": lambda x: exponential(x, fn.exp2, mul(x.im, like(x.im, math.log(2)))),
    "square": lambda x: Pair(mul(sub(x.re, x.im), add(x.re, x.im)), mul(like(x.re, 2.0), mul(x.re, x.im))),
    "sin": lambda x: Pair(scaled(fn.sin(x.re), fn.cosh(x.im)), scaled(fn.sinh(x.im), fn.cos(x.re))),
    "cos": lambda x: Pair(mul(fn.cos(x.re), fn.cosh(x.im)), neg(scaled(fn.sin(x.re), fn.sinh(x.im)))),
    "sinh": lambda x: Pair(scaled(fn.sinh(x.re), fn.cos(x.im)), scaled(fn.sin(x.im), fn.cosh(x.re))),
    "cosh": lambda x: Pair(mul(fn.cosh(x.re), fn.cos(x.im)), scaled(fn.sin(x.im), fn.sinh(x.re))),
    "tanh": hyperbolic_tangent,
    "tan": turned(hyperbolic_tangent),
    "asin": arc_sine,
    "acos": arc_cosine,
    "asinh": turned(arc_sine),
    "acosh": hyperbolic_arc_cosine,
    "atanh": hyperbolic_arc_tangent,
    "atan": turned(hyperbolic_arc_tangent),
    "log1p": log_one_plus,
    "expm1": exponential_minus_one,
    "sign": direction,
    "logistic": lambda x: reciprocal(
        (lambda e: Pair(add(e.re, like(e.re, 1.0)), e.im))(exponential(Pair(neg(x.re), neg(x.im))))
    ),
}


def _of_one(f: Function) -> Rule:
    return lambda eqn, x: f(x)


COMPLEX_RULES.update((name, _of_one(f)) for name, f in _FUNCTIONS.items())
COMPLEX_RULES["pow"] = _same_shape(power)


def angle(y: Pair, x: Pair) -> Pair:
    """-i log((x + iy) / √(x² + y²))."""
    a, b = multiply(x, x), multiply(y, y)
    turn = logarithm(divide(Pair(sub(x.re, y.im), add(x.im, y.re)), root(Pair(add(a.re, b.re), add(a.im, b.im)))))
    return Pair(turn.im, neg(turn.re))


COMPLEX_RULES["atan2"] = _same_shape(angle)
