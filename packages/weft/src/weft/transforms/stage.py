"""Staging: running a function on tracers that record each primitive as an equation of a jaxpr."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..base.annotations import override
from ..base import dtypes, source_info
from ..base.avals import AbstractRef, AbstractValue, SymbolicSize, keeping_64_bits, scalar_aval
from ..base.config import config
from ..symbolic.dims import dim_as_value_p
from ..core.leaks import check_leaks
from ..core.jaxpr import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, TypedScalar, Var, eval_jaxpr, round_scalar
from ..core.memo import memoized
from ..core.primitive import Primitive
from ..core.trace import Trace, Tracer, as_operand, aval_of, get_aval, host_aval, leaked, tracing
from ..core.verify import verify
from ..base.errors import at_user_line
from ..base.host import HostArray, converted, is_host_array
from .varying_axes import checks_varying_axes, with_varying_axes

if TYPE_CHECKING:
    from ..core.jaxpr import Atom
    from ..core.types import Params, Value


class JaxprTracer(Tracer):
    """A variable of the jaxpr that is being recorded."""

    __slots__ = ("_var", "origin")  # `var` is a method of arrays

    def __init__(self, trace: "JaxprTrace", var: Atom, origin: source_info.SourceInfo | None = None):
        self._trace, self._var, self.origin = trace, var, origin

    @override
    @property
    def aval(self) -> AbstractValue:
        return self._var.aval

    @override
    def __repr__(self) -> str:
        return f"JitTracer({self._var.aval.str_short(short_dtypes=False)})"


class JaxprTrace(Trace):
    """Records equations. Values that are not its own tracers become literals (scalars) or constants of the jaxpr."""

    def __init__(self, what: str = "a traced function"):
        self.what = what
        self.invars: list[Var] = []
        self.eqns: list[JaxprEqn] = []
        self.effects: set[Any] = set()
        # id(value) -> (constvar, the value with the constvar's dtype)
        self.constants: dict[int, tuple[Var, Any]] = {}
        self.kept: list[Any] = []  # these values, which keep their ids
        self.closed, self.typed = False, checks_varying_axes()
        self.arg_names: dict[Atom, str] = {}

    def new_arg(self, aval: AbstractValue, name: str | None = None) -> JaxprTracer:
        var = Var(aval)
        self.invars.append(var)
        if name is not None:
            self.arg_names[var] = name
        return JaxprTracer(self, var)

    def atom(self, x: Value) -> Atom:
        """The variable or literal of this jaxpr that represents `x`."""
        x = x if type(x) in aval_of or isinstance(x, SymbolicSize) else as_operand(x)
        if type(x) is JaxprTracer and x._trace is self:
            if self.closed:
                raise leaked(x)
            return x._var
        known = self.constants.get(id(x))
        if known is not None:
            return known[0]
        if isinstance(x, Tracer):
            if getattr(x._trace, "closed", False):
                raise leaked(x)
        else:
            literal = as_literal(x)
            if literal is not None:
                return literal
            if isinstance(x, SymbolicSize):
                return self.process(dim_as_value_p, (), {"dim": x})._var
        var = Var(self.type_of(x))
        self.constants[id(x)] = (var, converted(x, var.aval.dtype) if is_host_array(x) else x)
        self.kept.append(x)
        return var

    def type_of(self, x: Value) -> AbstractValue:
        """The type that a constant has in the jaxpr."""
        return get_aval(x)

    @override
    def process(self, primitive: Primitive, args: tuple[Value, ...], params: Params) -> Any:
        if primitive.stage is not None:
            return primitive.stage(self, args, params)
        return self.record(primitive, args, params)

    def record(self, primitive: Primitive, args: Sequence[Value], params: Params) -> Any:
        """Adds the equation `primitive[params] args` and returns tracers of its results."""
        invars = [
            x._var if type(x) is JaxprTracer and x._trace is self and not self.closed else self.atom(x) for x in args
        ]
        out = primitive.abstract_eval(tuple([a.aval for a in invars]), params)
        if self.typed:
            out = with_varying_axes(
                primitive, params, [a.aval for a in invars], out if primitive.multiple_results else [out]
            )
            out = out if primitive.multiple_results else out[0]
        outvars = [Var(a) for a in out] if primitive.multiple_results else [Var(out)]
        effects = frozenset() if primitive.effects is None else primitive.effects(params)
        info = source_info.current(3)
        self.eqns.append(JaxprEqn(invars, outvars, primitive, params, effects, info))
        if effects:
            self.effects |= effects
        if primitive.multiple_results:
            return [JaxprTracer(self, v, info) for v in outvars]
        return JaxprTracer(self, outvars[0], info)

    def finish(self, outs: Sequence[Any]) -> tuple[Jaxpr, list[Any]]:
        """The jaxpr that computes `outs`, and the values of its constants."""
        outvars = [self.atom(x) for x in outs]
        for i, v in enumerate(outvars):
            if type(v.aval) is AbstractRef:
                raise ValueError(
                    at_user_line(
                        f"{self.what} returned a mutable reference of type {v.aval.str_short(False)} (result {i}), but"
                        " references can't be returned. Return what it holds: ref[...]."
                    )
                )
        self.closed = True
        constvars = [var for var, _ in self.constants.values()]
        _mark_unused(self.eqns, outvars)
        jaxpr = Jaxpr(constvars, self.invars, outvars, self.eqns, frozenset(self.effects), self.what)
        if config.verify_jaxprs or config.enable_checks:
            verify(jaxpr)
        return jaxpr, [value for _, value in self.constants.values()]


def _mark_unused(eqns: list[JaxprEqn], outvars: list[Any]) -> None:
    used = {a for eqn in eqns for a in eqn.invars if type(a) is not Literal}
    used.update(a for a in outvars if type(a) is not Literal)
    for eqn in eqns:
        if any(v not in used for v in eqn.outvars):
            eqn.outvars = [v if v in used else DropVar(v.aval) for v in eqn.outvars]


def as_literal(x: Value) -> Literal | None:
    """A scalar known to the host as a literal; None for every other value."""
    if type(x) is TypedScalar:
        return Literal(x.val, x.aval)
    if dtypes.is_python_scalar(x):
        aval = scalar_aval(x)
        return Literal(round_scalar(x, aval.dtype), aval)
    if is_host_array(x) and tuple(x.shape) == () and x.dtype != dtypes.float0:
        aval = host_aval(x)
        value = x.tolist() if isinstance(x, HostArray) else x.item()
        return Literal(round_scalar(value, aval.dtype), aval)
    return None


def stage(
    fun: Callable[..., Any],
    avals: Sequence[AbstractValue],
    what: str = "a traced function",
    arg_names: Sequence[str] | None = None,
) -> tuple[Jaxpr, list[Any]]:
    """Traces `fun` (flat arguments, flat results) for arguments of the given avals: the jaxpr and its constants'
    values.
    """
    trace = JaxprTrace(what)
    args = [trace.new_arg(a, arg_names[i] if arg_names else None) for i, a in enumerate(avals)]
    with tracing(trace):
        outs = fun(*args)
    jaxpr, consts = trace.finish(outs)
    del args, outs
    check_leaks(trace, what)
    return jaxpr, consts


def stage_closed(
    fun: Callable[..., Any], avals: Sequence[AbstractValue], what: str = "a traced function"
) -> ClosedJaxpr:
    return ClosedJaxpr(*stage(fun, avals, what))


def decomposition(
    primitive: Primitive, rule: Callable[..., Any], avals: Sequence[AbstractValue], params: dict[str, Any]
) -> ClosedJaxpr:
    """The decomposition of a primitive by its `rule`, for operands of these types. 64-bit types are kept."""

    def run(*args: Value) -> list[Value]:
        out = rule(*args, **params)
        return list(out) if primitive.multiple_results else [out]

    with keeping_64_bits(avals):
        return stage_closed(run, avals, primitive.name)


def hoist_tracers(jaxpr: Jaxpr, consts: Sequence[Value]) -> tuple[ClosedJaxpr, list[Any]]:
    """Constants that are tracers of an outer trace become leading arguments: (closed jaxpr, those tracers)."""
    outer = [(v, c) for v, c in zip(jaxpr.constvars, consts) if isinstance(c, Tracer)]
    if not outer:
        return ClosedJaxpr(jaxpr, consts), []
    kept = [(v, c) for v, c in zip(jaxpr.constvars, consts) if not isinstance(c, Tracer)]
    moved = jaxpr.replace(constvars=[v for v, _ in kept], invars=[v for v, _ in outer] + jaxpr.invars)
    return ClosedJaxpr(moved, [c for _, c in kept]), [c for _, c in outer]


@memoized
def consts_as_args(jaxpr: Jaxpr) -> Jaxpr:
    """The same program with its constants as leading arguments."""
    return jaxpr.replace(constvars=[], invars=jaxpr.constvars + jaxpr.invars)


def inline_call(closed: ClosedJaxpr, args: Sequence[Value]) -> list[Any]:
    """Evaluates a closed jaxpr under the current trace, as if its equations had been written in place."""
    return eval_jaxpr(closed.jaxpr, closed.consts, *args)


def concretization_error(tracer: Tracer, what: str) -> str:
    """The message for a traced value that is used as a number. `what` names the purpose and, after a semicolon, the
    remedy.
    """
    trace = tracer._trace
    need, _, cure = what.partition("; ")
    lines = [
        f"{need}, but its value is not known while {getattr(trace, 'what', 'a function')} is traced: "
        f"it is a traced array of type {tracer.aval.str_short(short_dtypes=False)}."
    ]
    origin = getattr(tracer, "origin", None)
    name = (
        trace.arg_names.get(tracer._var) if isinstance(trace, JaxprTrace) and isinstance(tracer, JaxprTracer) else None
    )
    if name:
        lines.append(f"It is the argument {name}.")
    elif origin is not None:
        lines.append(f"It was computed at {origin}.")
    if cure:
        lines.append(f"{cure[0].upper()}{cure[1:]}.")
    return at_user_line("\n".join(lines))
