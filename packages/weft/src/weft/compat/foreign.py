"""Primitives that libraries define, with jax's ways of giving them rules."""

from __future__ import annotations

from typing import Callable, Sequence

from ..api.functions import as_result
from ..base.annotations import override
from ..core import primitive as language
from ..core.jaxpr import ClosedJaxpr, TypedScalar, eval_jaxpr
from ..core.primitive import unsupported
from ..core.trace import Trace, as_operand, current_trace, tracing


class _AnyPrimitive(type):
    """Makes weft's primitives instances of the class that libraries use."""

    @override
    def __instancecheck__(cls, x):
        return isinstance(x, language.Primitive) if cls is Primitive else type.__instancecheck__(cls, x)


class Primitive(language.Primitive, metaclass=_AnyPrimitive):
    """A primitive of a library's own: its rules are given one by one, in jax's conventions. No backend knows it by its
    name.

    Example:
        >>> import weft.compat.core as core
        >>> double_p = core.Primitive("double")
        >>> _ = double_p.def_impl(lambda x: 2 * x)
        >>> double_p.bind(3)
        6
    """

    call_primitive = map_primitive = skip_canonicalization = ref_primitive = ref_allocating = False
    is_effectful: Callable | None = None

    def __init__(self, name: str):
        super().__init__(name, basic=False, foreign=True)
        self.cache = None  # rules may depend on more than types and parameters
        self.impl = unsupported(
            f"Evaluation rule for {name!r} not implemented: give one with {name}_p.def_impl(function)."
        )
        self.abstract = unsupported(
            f"Abstract evaluation for {name!r} not implemented: give its rule with"
            f" {name}_p.def_abstract_eval(function)."
        )
        self.jvp = unsupported(
            f"Differentiation rule for {name!r} not implemented: put one in jax.interpreters.ad.primitive_jvps."
        )
        self.batch = unsupported(
            f"Batching rule for {name!r} not implemented: put one in jax.interpreters.batching.primitive_batchers."
        )
        self.transpose = unsupported(
            f"Transpose rule (for reverse-mode differentiation) for {name!r} not implemented: "
            "put one in jax.interpreters.ad.primitive_transposes."
        )

    @override
    def bind(self, *args, **params):
        return current_trace().process(self, tuple(_as_value(x) for x in args), params)

    def bind_with_trace(self, trace: Trace, args: Sequence, params: dict):
        with tracing(trace):
            return trace.process(self, tuple(args), params)

    def def_impl(self, impl: Callable) -> Callable:
        """Sets the function that runs when the primitive is applied to values outside of any transformation."""
        self.impl = lambda *args, **params: impl(
            *[as_result(x) if type(x) is TypedScalar else x for x in args], **params
        )
        return impl

    def def_abstract_eval(self, rule: Callable) -> Callable:
        """The avals of its results from those of its arguments."""
        self.abstract = rule
        return rule

    def def_effectful_abstract_eval(self, rule: Callable) -> Callable:
        """The same for a rule that returns (avals, effects)."""
        self.abstract = lambda *avals, **params: rule(*avals, **params)[0]

        def stage(trace, args, params):
            outs, eqn = trace.record(self, args, params), trace.eqns[-1]
            eqn.effects = frozenset(rule(*[a.aval for a in eqn.invars], **params)[1])
            trace.effects |= eqn.effects
            return outs

        self.stage = stage
        return rule

    def def_effectful_abstract_eval2(self, rule: Callable) -> Callable:
        """The same; jax's own primitives have the two."""
        return self.def_effectful_abstract_eval(rule)

    def def_bind_with_trace(self, bind_with_trace: Callable) -> Callable:
        """Sets what applies the primitive under a trace: `bind_with_trace(trace, args, params)`."""
        self.bind_with_trace = bind_with_trace  # type: ignore[method-assign]
        self.bind = lambda *args, **params: bind_with_trace(  # type: ignore[method-assign]
            current_trace(), tuple(_as_value(x) for x in args), params
        )
        return bind_with_trace

    def is_high(self, *avals, **params) -> bool:
        """Whether its types are defined in Python and must be lowered first; none of a library's are."""
        return False


def _as_value(x):
    return as_operand(x)


class CallPrimitive(Primitive):
    """A call of a Python function that records no equation: the function runs in place."""

    call_primitive = True

    def __init__(self, name: str):
        super().__init__(name)
        self.multiple_results = True

    @override
    def bind(self, *args, call_jaxpr=None, **params):
        if call_jaxpr is not None:
            return (
                eval_jaxpr(call_jaxpr.jaxpr, call_jaxpr.consts, *args)
                if isinstance(call_jaxpr, ClosedJaxpr)
                else eval_jaxpr(call_jaxpr, (), *args)
            )
        return args[0].call_wrapped(*args[1:])


call_p, closed_call_p = CallPrimitive("call"), CallPrimitive("closed_call")
call: Callable = call_p.bind
