"""Reductions, windows and cumulative operations."""

from __future__ import annotations

from weft.base import dtypes, limits
from weft.base.avals import shaped
from weft.base.errors import BackendError
from weft.base.limits import highest, lowest
from weft.core.memo import inner_jaxprs, memoized
from weft.primitives.window import dilated

from .elementwise import larger
from .registry import rule, stored

# How two elements are combined, and the identity.
_MONOIDS = {
    "sum": ("stablehlo.add", lambda dt: 0),
    "prod": ("stablehlo.multiply", lambda dt: 1),
    "max": ("stablehlo.maximum", lowest),
    "min": ("stablehlo.minimum", highest),
    "and": (
        "stablehlo.and",
        lambda dt: True if dtypes.is_bool(dt) else -1 if dtypes.is_signed(dt) else int(limits.iinfo(dt).max),
    ),
    "or": ("stablehlo.or", lambda dt: 0),
    "xor": ("stablehlo.xor", lambda dt: 0),
}


def combine(b, op: str, p, q, dtype):
    """One of the operations above, on two scalars. Extrema of complex numbers are composed of several."""
    if dtypes.is_complex(dtype) and op in ("stablehlo.maximum", "stablehlo.minimum"):
        return larger(b, p, q, shaped((), dtype), "GT" if op == "stablehlo.maximum" else "LT")
    return b.op(op, [p, q], b.tensor((), dtype))


def reduce_with(b, x, aval, axes, op: str, identity):
    """`x` reduced over `axes` by one operation."""
    dt = aval.dtype
    scalar = b.tensor((), dt)
    out = b.tensor([n for d, n in enumerate(aval.shape) if d not in axes], dt)
    return b.ops(
        "stablehlo.reduce",
        [x, b.splat(identity, dt)],
        [out],
        {"dimensions": b.i64s(sorted(axes))},
        [([scalar, scalar], lambda p, q: [combine(b, op, p, q, dt)])],
    )[0]


def factors(b, xs, avals) -> list:
    """`xs` as operands of a product. XLA's compiler for the CPU may multiply in another order, also what made the
    factors: of `prod(x * c)` it makes `prod(x) * c**n`, which overflows where the factors are near 1. The choice
    between equals hides what they are made of.
    """
    return [
        b.select(b.compare("NE", x, x, a), b.splat(float("nan"), a.dtype, a.shape), x, a.shape, a.dtype)
        if dtypes.is_inexact(a.dtype)
        else x
        for x, a in zip(xs, avals)
    ]


@memoized
def multiplies(jaxpr) -> bool:
    here = any(eqn.primitive.name in ("mul", "square", "integer_pow") for eqn in jaxpr.eqns)
    return here or any(map(multiplies, inner_jaxprs(jaxpr)))


def _reduction(op, identity):
    def lower(b, ins, outs, x, *, axes, out_sharding=None):
        if not axes:
            return x
        if op == "stablehlo.multiply":
            (x,) = factors(b, [x], ins)
        return reduce_with(b, x, ins[0], axes, op, identity(ins[0].dtype))

    return lower


for _name, _monoid in _MONOIDS.items():
    rule("reduce_" + _name)(_reduction(*_monoid))


def combined(b, name: str, jaxpr, args) -> list:
    """The program that combines two elements. XLA would end the process if it called a Python function."""
    before = len(b.callbacks)
    made = b.inline(jaxpr, args)
    if len(b.callbacks) > before:
        raise BackendError(
            f"XLA can't call a Python function from the function given to {name}. Compute it with weft's operations,"
            f" or take the elements one by one (weft.lax.scan).\n  at {b.loc}"
        )
    return made


@rule("reduce")
def _reduce(b, ins, outs, *operands, jaxpr, dimensions, computation=None):
    n = len(operands) // 2
    if not dimensions:
        return list(operands[:n])
    if multiplies(jaxpr.jaxpr):
        operands = (*factors(b, operands[:n], ins), *operands[n:])
    kinds = [a.dtype for a in ins[:n]]
    inside = [stored(dt) for dt in kinds] if len(set(kinds)) > 1 else kinds
    to = lambda values, shapes, old, new: [
        v if p == q else b.convert(v, shape, q) for v, shape, p, q in zip(values, shapes, old, new)
    ]
    made = b.ops(
        "stablehlo.reduce",
        to(operands, [a.shape for a in ins], kinds * 2, inside * 2),
        [b.tensor(a.shape, dt) for a, dt in zip(outs, inside)],
        {"dimensions": b.i64s(sorted(dimensions))},
        [
            (
                [b.tensor((), dt) for dt in inside] * 2,
                lambda *args: to(
                    combined(b, "reduce", jaxpr, to(args, [()] * 2 * n, inside * 2, kinds * 2)), [()] * n, kinds, inside
                ),
            )
        ],
    )
    return to(made, [a.shape for a in outs], inside, kinds)


def _arg_reduction(direction, start):
    """The first extremum by index; NaN wins over every number."""

    def lower(b, ins, outs, x, *, axes, index_dtype):
        (axis,), wanted = axes, index_dtype
        aval, index_dtype = ins[0].update(dtype=stored(ins[0].dtype)), stored(wanted)
        x = x if aval.dtype == ins[0].dtype else b.convert(x, aval.shape, aval.dtype)
        value, position = shaped((), aval.dtype), shaped((), index_dtype)
        vt, pt = b.type(value), b.type(position)

        def pick(v, i, w, j):
            better = b.compare(direction, v, w, value)
            if dtypes.is_float(aval.dtype):
                better = b.op("stablehlo.or", [better, b.compare("NE", v, v, value)], b.tensor((), dtypes.bool_))
                same = b.op(
                    "stablehlo.or",
                    [
                        b.compare("EQ", v, w, value),
                        b.op(
                            "stablehlo.and",
                            [b.compare("NE", v, v, value), b.compare("NE", w, w, value)],
                            b.tensor((), dtypes.bool_),
                        ),
                    ],
                    b.tensor((), dtypes.bool_),
                )
            else:
                same = b.compare("EQ", v, w, value)
            first = b.compare("LT", i, j, position)
            tie = b.op("stablehlo.and", [same, first], b.tensor((), dtypes.bool_))
            # the first of two NaNs is chosen: `better` alone would keep v whatever its index
            wins = b.select(same, tie, better, (), dtypes.bool_)
            return [b.select(better, v, w, (), aval.dtype), b.select(wins, i, j, (), index_dtype)]

        positions = b.iota(aval.shape, axis, index_dtype)
        types = [b.tensor(outs[0].shape, dt) for dt in (aval.dtype, index_dtype)]
        found = b.ops(
            "stablehlo.reduce",
            [x, positions, b.splat(start(aval.dtype), aval.dtype), b.splat(0, index_dtype)],
            types,
            {"dimensions": b.i64s([axis])},
            [([vt, pt, vt, pt], pick)],
        )[1]
        return found if index_dtype == wanted else b.convert(found, outs[0].shape, wanted)

    return lower


rule("argmax")(_arg_reduction("GT", lowest))
rule("argmin")(_arg_reduction("LT", highest))

# windows -------------------------------------------------------------------------------------------------------------


def _window_attributes(
    b, rank, window_dimensions, window_strides, padding, base_dilation=None, window_dilation=None
) -> dict:
    flat = [v for pair in padding for v in pair]
    return {
        "window_dimensions": b.i64s(window_dimensions),
        "window_strides": b.i64s(window_strides or (1,) * rank),
        "base_dilations": b.i64s(base_dilation or (1,) * rank),
        "window_dilations": b.i64s(window_dilation or (1,) * rank),
        "padding": b.pairs(flat),
    }


def _padded(b, xs, avals, starts, padding, base_dilation):
    """(The arrays with their starts in gaps and borders, their shape)"""
    config = [(lo, hi, gap - 1) for (lo, hi), gap in zip(padding, base_dilation)]
    shape = [dilated(n, gap) + lo + hi for n, gap, (lo, hi) in zip(avals[0].shape, base_dilation, padding)]
    return [b.pad(x, start, config, shape, a.dtype) for x, start, a in zip(xs, starts, avals)], shape


def _reduce_windows(
    b,
    xs,
    avals,
    starts,
    types,
    body,
    window_dimensions,
    window_strides,
    padding,
    base_dilation=None,
    window_dilation=None,
    counted=False,
):
    """Windows of one or more arrays of one shape, combined by `body` from `starts`; `counted` if padding counts, which
    XLA passes over.

    Padding that removes elements is applied before: XLA's simplifier ignores it if a window is one element, and ends
    the process.
    """
    rank = len(padding)
    edges = [p for pair in padding for p in pair]
    counted = counted and (any(edges) or any(gap > 1 for gap in base_dilation or ()))
    if counted or any(p < 0 for p in edges):
        xs, shape = _padded(b, xs, avals, starts, padding, base_dilation or (1,) * rank)
        if counted:  # else XLA's simplifier makes it the windows' own
            xs = b.ops("stablehlo.optimization_barrier", xs, [b.tensor(shape, a.dtype) for a in avals])
        padding, base_dilation = ((0, 0),) * rank, None
    scalars = [b.tensor((), a.dtype) for a in avals]
    return b.ops(
        "stablehlo.reduce_window",
        [*xs, *starts],
        types,
        _window_attributes(b, rank, window_dimensions, window_strides, padding, base_dilation, window_dilation),
        [(scalars * 2, body)],
    )


def _window_reduction(op, identity):
    def lower(b, ins, outs, x, **window):
        dt = ins[0].dtype
        return _reduce_windows(
            b,
            [x],
            ins,
            [b.splat(identity(dt), dt)],
            [b.type(outs[0])],
            lambda p, q: [combine(b, op, p, q, dt)],
            **window,
        )[0]

    return lower


for _name in ("sum", "max", "min"):
    rule("reduce_window_" + _name)(_window_reduction(*_MONOIDS[_name]))


@rule("reduce_window")
def _reduce_window(b, ins, outs, *operands, jaxpr, consts=(), **window):
    n = len(operands) // 2
    return _reduce_windows(
        b,
        factors(b, operands[:n], ins) if multiplies(jaxpr.jaxpr) else operands[:n],  # XLA may make a reduction of it
        ins[:n],
        operands[n:],
        [b.type(a) for a in outs],
        lambda *args: combined(b, "reduce_window", jaxpr, args),
        **window,
        counted=True,
    )


@rule("select_and_gather_add")
def _select_and_gather_add(b, ins, outs, tangents, operand, *, select_prim, **window):
    """Windows of three: each tangent goes with its element, and the first of equal elements wins. The third says that
    this is an element, and not where a window starts, which wins against none.
    """
    aval, carried, flag = shaped((), ins[1].dtype), shaped((), ins[0].dtype), shaped((), dtypes.bool_)
    worst = (lowest if select_prim == "ge" else highest)(aval.dtype)
    starts = [b.splat(worst, aval.dtype), b.splat(0, carried.dtype), b.splat(False, flag.dtype)]
    window, avals = dict(window), [ins[1], ins[0]]
    xs, shape = _padded(b, [operand, tangents], avals, starts, window.pop("padding"), window.pop("base_dilation"))

    def pick(x, s, f, y, t, g):
        wins = b.op("stablehlo.and", [b.compare(select_prim.upper(), x, y, aval), f], b.type(flag))
        return [
            b.select(wins, x, y, (), aval.dtype),
            b.select(wins, s, t, (), carried.dtype),
            b.op("stablehlo.or", [f, g], b.type(flag)),
        ]

    return _reduce_windows(
        b,
        [*xs, b.splat(True, flag.dtype, shape)],
        [*avals, flag],
        starts,
        [b.tensor(outs[0].shape, a.dtype) for a in (aval, carried, flag)],
        pick,
        **window,
        padding=((0, 0),) * len(shape),
    )[1]


@rule("select_and_scatter_add")
def _select_and_scatter_add(b, ins, outs, source, operand, *, select_prim, window_dimensions, window_strides, padding):
    """With the padding applied before and taken off after: where XLA pads, not the first of equal elements wins."""
    dt, rank = ins[1].dtype, len(padding)
    aval, scalar = shaped((), dt), b.tensor((), dt)
    worst = (lowest if select_prim == "ge" else highest)(dt)
    wide = [n + lo + hi for n, (lo, hi) in zip(ins[1].shape, padding)]
    operand = b.pad(operand, b.splat(worst, dt), [(lo, hi, 0) for lo, hi in padding], wide, dt)
    attributes = _window_attributes(b, rank, window_dimensions, window_strides, ((0, 0),) * rank)
    made = b.ops(
        "stablehlo.select_and_scatter",
        [operand, source, b.splat(0, dt)],
        [b.tensor(wide, dt)],
        {k: attributes[k] for k in ("window_dimensions", "window_strides", "padding")},
        [
            ([scalar, scalar], lambda p, q: [b.compare(select_prim.upper(), p, q, aval)]),
            ([scalar, scalar], lambda p, q: [b.op("stablehlo.add", [p, q], scalar)]),
        ],
    )[0]
    return b.pad(made, b.splat(0, dt), [(-lo, -hi, 0) for lo, hi in padding], outs[0].shape, dt)


# cumulative ----------------------------------------------------------------------------------------------------------


def _cumulative(op, identity):
    """A window over all previous elements, which XLA splits into steps itself: ten times as fast as a prefix in log2(n)
    steps.
    """

    def lower(b, ins, outs, x, *, axis, reverse):
        aval = outs[0]
        shape, dt, n = aval.shape, aval.dtype, aval.shape[axis]
        if n == 0 or aval.size == 0:
            return x
        before = (0, n - 1) if reverse else (n - 1, 0)
        padding = [before if d == axis else (0, 0) for d in range(len(shape))]
        window = [n if d == axis else 1 for d in range(len(shape))]
        return _reduce_windows(
            b,
            factors(b, [x], ins) if op == "stablehlo.multiply" else [x],
            ins,
            [b.splat(identity(dt), dt)],
            [b.type(aval)],
            lambda p, q: [combine(b, op, p, q, dt)],
            window,
            None,
            padding,
        )[0]

    return lower


for _name in ("sum", "prod", "max", "min"):
    rule("cum" + _name)(_cumulative(*_MONOIDS[_name]))
