"""debug_nans and debug_infs: results are checked, and the operation that made a NaN or an infinity is named with the
user's line.
"""

from __future__ import annotations

import math
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..base.scoped import scoped
from ..base import dtypes
from ..base.config import debug_infs, debug_nans
from ..core.carries import CARRY, Carries, Counted, Runs
from ..core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, TypedScalar, eval_equations
from ..core.trace import Tracer, current_trace, is_array, root
from ..base.errors import at_user_line
from ..base.host import HostArray, flat_list, np
from ..transforms.batch import BatchTracer
from .array import KeyArray
from .dispatch import run_primitive

if TYPE_CHECKING:
    from ..core.primitive import Primitive
    from ..core.types import Params, Value

_nans, _infs = debug_nans.option, debug_infs.option


_replaying: ContextVar[bool] = ContextVar("replaying", default=False)


def bad_value(values: Sequence[Any]) -> str | None:
    """ "nan" or "inf" if the options check for it and a value has one; None otherwise."""
    nans, infs = _nans.get(), _infs.get()
    for x in values:
        if isinstance(x, KeyArray) or not is_array(x) or not dtypes.is_inexact(x.dtype):
            continue
        host = x._host()
        if isinstance(host, HostArray):
            parts = [p for v in flat_list(host) for p in ((v.real, v.imag) if isinstance(v, complex) else (v,))]
            if nans and any(map(math.isnan, parts)):
                return "nan"
            if infs and any(map(math.isinf, parts)):
                return "inf"
        else:
            if nans and np.any(np.isnan(host)):
                return "nan"
            if infs and np.any(np.isinf(host)):
                return "inf"
    return None


def watching() -> bool:
    """Whether this thread looks at results."""
    return _nans.get() or _infs.get()


def run_checked(primitive: Primitive, args: tuple[Any, ...], params: dict[Any, Any]) -> Any:
    """`run_primitive` that checks results if an option requires it."""
    if not watching() or _replaying.get():
        return run_primitive(primitive, args, params)
    if "donated_invars" in params:  # the arguments are needed again where a result is bad
        params = dict(params, donated_invars=(False,) * len(args))
    out = run_primitive(primitive, args, params)
    bad = bad_value(out if primitive.multiple_results else [out])
    if bad is not None:
        _Replay().step(primitive, params, list(args))
        raise FloatingPointError(at_user_line(f"invalid value ({bad}) encountered in {primitive.name}"))
    return out


def check_program(closed: ClosedJaxpr, args: Sequence[Any], outs: Sequence[Any], name: str) -> None:
    """Raises FloatingPointError if a program's results are bad, with the operation and the line where that began."""
    bad = bad_value(outs)
    if bad is not None:
        _Replay().run(closed.jaxpr, closed.consts, args)
        raise FloatingPointError(
            at_user_line(
                f"invalid value ({bad}) encountered in the compiled function {name}, but in none of its operations when"
                " they run one by one: the compiler has computed them in another order or precision."
            )
        )


class _Replay:
    """Runs programs operation by operation, into calls, loops and branches, and raises at the first bad result."""

    def run(self, jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        return eval_equations(jaxpr, consts, args, self.equation)

    def equation(self, eqn: JaxprEqn, args: list[Any]) -> Sequence[Any]:
        if eqn.effects and not eqn.outvars:  # it has printed already
            return []
        outs = self.step(eqn.primitive, eqn.params, args)
        if outs is not None:
            return outs
        inside = current_trace() is not root  # in a shard_map: the devices' values are batched
        out = (
            eqn.primitive.bind(*args, **eqn.params) if inside else run_primitive(eqn.primitive, tuple(args), eqn.params)
        )
        outs = out if eqn.primitive.multiple_results else [out]
        bad = bad_value([_batch_of(o) for o in outs])
        if bad is not None:
            raise FloatingPointError(
                f"invalid value ({bad}) encountered in {eqn.primitive.name}\n  at {eqn.source_info}"
            )
        return outs

    def step(self, primitive: Primitive, params: dict[Any, Any], args: list[Any]) -> list[Any] | None:
        """The results of a primitive that carries programs; None for any other."""
        carries = primitive.carries
        if carries is None:
            return None
        if carries.runs is Runs.ONCE:
            called = carries.call(params, args)
            return None if called is None else self.closed(*called)
        if carries.counted is not None:
            self.counted(carries, carries.counted, params, args)
            return None
        on_parts = carries.on_parts
        if on_parts is not None:  # results are those of the program itself, which are sharded over the devices
            run = lambda jaxpr, consts, *values: self.run(jaxpr, consts, values)
            self.watched(lambda: on_parts(*args, **params, evaluate=run))
        elif not any(isinstance(x, Tracer) for x in args):  # devices may choose differently
            if carries.runs is Runs.CHOSEN:
                branch = carries.chosen(params, args, _int(args[0]))
                return self.closed(branch.closed, branch.arguments(args))
            if carries.has_condition:
                return self.conditional(carries, params, args)
        return None

    def watched(self, run: Callable[..., Any]) -> None:
        """Runs primitives that check results themselves, without checking the operations that they consist of."""
        with scoped(_replaying, True):
            run()

    def closed(self, program: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
        return self.run(program.jaxpr, program.consts, args)

    def conditional(self, carries: Carries, params: Params, args: Sequence[Any]) -> list[Any]:
        """A loop that runs for as long as its first program gives true."""
        args, at = list(args), carries.split(params, range(len(args)))[CARRY]
        test, body = carries.programs(params, len(args))
        while _int(self.closed(test.closed, test.arguments(args))[0]):
            for i, x in zip(at, self.closed(body.closed, body.arguments(args))):
                args[i] = x
        return [args[i] for i in at]

    def counted(self, carries: Carries, counted: Counted, params: Params, args: Sequence[Any]) -> None:
        """Iteration by iteration. The results are not used if no iteration raises: each was valid by itself."""
        args, at = list(args), carries.split(params, range(len(args)))[CARRY]
        (body,) = carries.programs(params, len(args))
        whole = len(body.operands) - body.rows
        rounds = range(params[counted.length])
        for k in reversed(rounds) if params[counted.reverse] else rounds:
            values = body.arguments(args)
            outs = self.closed(body.closed, [*values[:whole], *[x[k] for x in values[whole:]]])
            for i, x in zip(at, outs):
                args[i] = x


def _batch_of(x: Value) -> Any:
    """The values of all elements under the batch axes of a traced value."""
    while type(x) is BatchTracer:
        x = x.val
    return x


def _int(x: Value) -> int:
    return int(x.val if type(x) is TypedScalar else x)
