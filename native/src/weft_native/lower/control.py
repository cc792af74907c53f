"""Primitives that carry programs: calls, loops, branches."""

from __future__ import annotations

from weft.base import dtypes
from weft.base.avals import shaped
from weft.core.effects import any_ordered
from weft.core.jaxpr import ClosedJaxpr

from .callback import token_type
from .registry import rule


def closed(jaxpr) -> ClosedJaxpr:
    return jaxpr if isinstance(jaxpr, ClosedJaxpr) else ClosedJaxpr(jaxpr, ())


@rule("jit")
def _jit(b, ins, outs, *args, jaxpr, name="call", inline=False, **params):
    program = closed(jaxpr)
    return b.inline(program, args) if inline or len(program.eqns) <= 1 else b.call(program, args, name)


@rule("remat2")
def _remat(b, ins, outs, *args, jaxpr, differentiated=False, prevent_cse=True, **params):
    flags = [prevent_cse] * len(args) if isinstance(prevent_cse, bool) else prevent_cse
    if differentiated and any(flags):
        # XLA must not recognise the recomputation as the same computation
        behind = [i for i, f in enumerate(flags) if f]
        made = b.ops("stablehlo.optimization_barrier", [args[i] for i in behind], [b.type(ins[i]) for i in behind])
        kept = dict(zip(behind, made))
        args = tuple([kept.get(i, x) for i, x in enumerate(args)])
    return b.inline(closed(jaxpr), args)


@rule("device_put")
def _to_memory(b, ins, outs, x, *, memory):
    return to_memory(b, x, memory)


def to_memory(b, x, memory: str):
    """A value in another memory of its device, for the compiler to move."""
    if b.platform == "cpu":  # all its memory is the host's
        return x
    return b.op(
        "stablehlo.custom_call",
        [x],
        x.type,
        {
            "call_target_name": b.attr('"annotate_device_placement"'),
            "backend_config": b.attr('""'),
            "has_side_effect": b.attr("true"),
            "mhlo.frontend_attributes": b.attr(f'{{_xla_buffer_placement = "{memory}"}}'),
        },
    )


# loops ---------------------------------------------------------------------------------------------------------------


def while_loop(b, types, start, test, body, ordered: bool = False) -> list:
    """`body` applied to values, as long as `test` says. The token of `ordered` callbacks in the body goes round with
    the values.
    """
    if ordered:

        def body_with_token(args):
            b.token = args[0]
            values = list(body(args[1:]))
            return [b.token, *values]

        b.token, *made = while_loop(
            b, [token_type(), *types], [b.token, *start], lambda args: test(args[1:]), body_with_token
        )
        return made
    return b.ops(
        "stablehlo.while",
        start,
        types,
        regions=[(types, lambda *args: [test(args)]), (types, lambda *args: body(args))],
    )


@rule("while")
def _while(b, ins, outs, *args, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts):
    cond_consts = args[:cond_nconsts]
    body_consts = args[cond_nconsts : cond_nconsts + body_nconsts]
    start = args[cond_nconsts + body_nconsts :]
    (which,) = cond_jaxpr.out_avals

    def test(carry):
        (going,) = b.inline(cond_jaxpr, [*cond_consts, *carry])
        if not which.shape:
            return going
        scalar = b.tensor((), dtypes.bool_)  # a batch continues while any of its members does
        return b.ops(
            "stablehlo.reduce",
            [going, b.splat(False, dtypes.bool_)],
            [scalar],
            {"dimensions": b.i64s(range(len(which.shape)))},
            [([scalar, scalar], lambda p, q: [b.op("stablehlo.or", [p, q], scalar)])],
        )[0]

    def body(carry):
        new = b.inline(body_jaxpr, [*body_consts, *carry])
        if not which.shape:
            return new
        (going,) = b.inline(cond_jaxpr, [*cond_consts, *carry])
        return [
            b.select(b.broadcast(going, range(len(which.shape)), a.shape, dtypes.bool_), n, old, a.shape, a.dtype)
            for n, old, a in zip(new, carry, outs)
        ]

    types = [b.type(a) for a in outs]
    if any_ordered(cond_jaxpr.effects):
        # A condition can't return a token, but a body can. So the condition is computed before the loop and at the end
        # of each body.
        def body_and_test(values):
            new = list(body(values[1:]))
            return [test(new), *new]

        flag = b.tensor((), dtypes.bool_)
        made = while_loop(b, [flag, *types], [test(start), *start], lambda values: values[0], body_and_test, True)
        return made[1:]
    return while_loop(b, types, start, test, body, any_ordered(body_jaxpr.effects))


@rule("scan")
def _scan(b, ins, outs, *args, jaxpr, length, reverse, num_consts, num_carry, unroll=1, **params):
    consts, carry, xs = (
        args[:num_consts],
        list(args[num_consts : num_consts + num_carry]),
        args[num_consts + num_carry :],
    )
    x_avals = ins[num_consts + num_carry :]
    y_avals = outs[num_carry:]
    counter = shaped((), dtypes.int32 if length < 1 << 31 else dtypes.int64)
    step_count = b.tensor((), counter.dtype)

    def index(value):
        return b.splat(value, counter.dtype) if isinstance(value, int) else value

    def row(x, aval, i):
        """Row `i` (a number or a value) of `x`."""
        tail = aval.shape[1:]
        if isinstance(i, int):
            cut = b.op(
                "stablehlo.slice",
                [x],
                b.tensor((1, *tail), aval.dtype),
                {
                    "start_indices": b.i64s([i] + [0] * len(tail)),
                    "limit_indices": b.i64s([i + 1, *tail]),
                    "strides": b.i64s([1] * (1 + len(tail))),
                },
            )
        else:
            zero = b.splat(0, counter.dtype)
            cut = b.op(
                "stablehlo.dynamic_slice",
                [x, i, *[zero] * len(tail)],
                b.tensor((1, *tail), aval.dtype),
                {"slice_sizes": b.i64s((1, *tail))},
            )
        return b.reshape(cut, tail, aval.dtype)

    def put(ys, y, aval, i):
        zero = b.splat(0, counter.dtype)
        widened = b.reshape(y, (1, *aval.shape[1:]), aval.dtype)
        return b.op(
            "stablehlo.dynamic_update_slice",
            [ys, widened, index(i), *[zero] * (len(aval.shape) - 1)],
            b.tensor(aval.shape, aval.dtype),
        )

    def step(i, carry, ys):
        """One iteration: the new carry and results."""
        if reverse:
            i = (
                length - 1 - i
                if isinstance(i, int)
                else b.op("stablehlo.subtract", [b.splat(length - 1, counter.dtype), i], step_count)
            )
        made = b.inline(jaxpr, [*consts, *carry, *[row(x, a, i) for x, a in zip(xs, x_avals)]])
        return made[:num_carry], [put(buffer, y, a, i) for buffer, y, a in zip(ys, made[num_carry:], y_avals)]

    ys = [b.splat(0, a.dtype, a.shape) for a in y_avals]
    unroll = length if unroll is True else max(1, int(unroll))
    rounds = length // unroll if unroll < length else 0
    if rounds:
        types = [step_count, *[b.type(a) for a in outs]]

        def test(args):
            return b.compare("LT", args[0], b.splat(rounds * unroll, counter.dtype), counter)

        def body(args):
            i, carry, ys = args[0], list(args[1 : 1 + num_carry]), list(args[1 + num_carry :])
            for _ in range(unroll):
                carry, ys = step(i, carry, ys)
                i = b.op("stablehlo.add", [i, b.splat(1, counter.dtype)], step_count)
            return [i, *carry, *ys]

        _, *made = while_loop(
            b, types, [b.splat(0, counter.dtype), *carry, *ys], test, body, any_ordered(jaxpr.effects)
        )
        carry, ys = made[:num_carry], made[num_carry:]
    for i in range(rounds * unroll, length):  # the remaining iterations, or all of them if the loop is fully unrolled
        carry, ys = step(i, carry, ys)
    return [*carry, *ys]


@rule("cond")
def _cond(b, ins, outs, index, *args, branches, **params):
    if len(branches) == 1:
        return b.inline(branches[0], args)
    if dtypes.is_bool(ins[0].dtype):
        index = b.convert(index, (), dtypes.int32)
    # An index out of bounds takes the last branch in XLA; the language clamps it, which differs below zero.
    top = b.splat(len(branches) - 1, dtypes.int32)
    index = b.op("stablehlo.clamp", [b.splat(0, dtypes.int32), index, top], b.tensor((), dtypes.int32))
    types = [b.type(a) for a in outs]
    if any(any_ordered(branch.effects) for branch in branches):
        before = b.token

        def with_token(branch):
            b.token = before
            values = b.inline(branch, args)
            return [b.token, *values]

        b.token, *made = b.ops(
            "stablehlo.case",
            [index],
            [token_type(), *types],
            regions=[([], lambda branch=branch: with_token(branch)) for branch in branches],
        )
        return made
    return b.ops(
        "stablehlo.case",
        [index],
        types,
        regions=[([], lambda branch=branch: b.inline(branch, args)) for branch in branches],
    )
