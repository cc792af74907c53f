"""jax.core, jax.extend.core and jax._src.core: programs, traces and primitives by the names that libraries know them
by.
"""

from __future__ import annotations

import functools
import weakref
from contextlib import contextmanager
from typing import Any, Callable, Iterator

from ..base.annotations import override
from ..base import dtypes
from ..api.tracing import ensure_compile_time_eval as ensure_compile_time_eval
from ..base.avals import (  # noqa: F401
    AbstractRef as AbstractRef,
    AbstractToken as AbstractToken,
    AbstractValue as AbstractValue,
    ShapedArray as ShapedArray,
    physical as physical_aval,
    reshaped,
    tangent_aval,
    token as abstract_token,
)
from ..core import primitive as language
from ..symbolic.dims import (
    is_constant_shape as is_constant_shape,
    is_symbolic_dim,
    max_dim as max_dim,
    min_dim as min_dim,
)
from ..core.effects import Effect as Effect
from ..core.jaxpr import (
    Atom as Atom,
    ClosedJaxpr as ClosedJaxpr,
    DropVar as DropVar,
    Jaxpr as Jaxpr,
    JaxprEqn as JaxprEqn,
    Literal as Literal,
    Var as Var,
    eval_jaxpr as eval_jaxpr,
    jaxpr_as_fun as jaxpr_as_fun,
    subjaxprs as jaxprs_in_params,
)
from ..core.primitive import RULE_NAMES, Missing, Unsupported
from ..core.trace import (
    InnerTrace,
    Trace as Trace,
    Tracer as Tracer,
    aval_of,
    axis_env,
    current_trace,
    get_aval as get_aval,
    is_array_like,
    root,
    tracing,
)
from ..core.shardings import with_axis, without_axis
from ..core.verify import verify as check_jaxpr  # noqa: F401
from ..base.errors import ConcretizationTypeError, InconclusiveDimensionOperation as InconclusiveDimensionOperation
from ..runtime.dispatch import apply_by_compiling
from ..base.source_info import UNKNOWN
from ..transforms.batch import BatchTrace
from ..transforms.jvp import is_concrete as is_concrete
from ..transforms.stage import JaxprTrace, concretization_error
from ..transforms.tokens import Token as Token
from ..base.tree import registry as node_types
from . import primitives as primitives
from .foreign import (
    CallPrimitive as CallPrimitive,
    Primitive as Primitive,
    call as call,
    call_p as call_p,
    closed_call_p as closed_call_p,
)

__path__: list = []  # libraries look for jax.extend.core.primitives here
Value, ParamDict, Effects, OutputType = Any, dict, frozenset, Any
no_effects: frozenset = frozenset()
call_impl: Callable = lambda f, *args, **params: f.call_wrapped(*args, **params)
pytype_aval_mappings = aval_of
valid_jaxtype = is_array_like
trace_ctx = None


class JaxprTypeError(TypeError):
    """A program whose types don't fit; `check_jaxpr` says where."""


class RuleTable:
    """One kind of rule, as the dictionary by primitives that libraries know. The rules themselves are attributes of the
    primitives.

    `to_own(rule)` and `from_own(primitive)` change between jax's calling convention and ours.
    """

    def __init__(self, attribute: str, to_own: Callable | None = None, from_own: Callable | None = None):
        self._attribute, self._to_own, self._from_own = attribute, to_own, from_own
        self._given: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # primitive -> the rule as it was given

    def __setitem__(self, primitive, rule: Callable) -> None:
        self._given[primitive] = rule
        setattr(primitive, self._attribute, rule if self._to_own is None else self._to_own(rule))

    def __contains__(self, primitive) -> bool:
        rule = getattr(primitive, self._attribute, None)
        return rule is not None and not isinstance(rule, Unsupported)

    def __getitem__(self, primitive) -> Callable:
        if primitive not in self:
            raise KeyError(primitive)
        if primitive in self._given:
            return self._given[primitive]
        return getattr(primitive, self._attribute) if self._from_own is None else self._from_own(primitive)

    def get(self, primitive, default=None):
        return self[primitive] if primitive in self else default

    def setdefault(self, primitive, rule: Callable) -> Callable:
        if primitive not in self:
            self[primitive] = rule
        return self[primitive]

    def __delitem__(self, primitive) -> None:
        if primitive not in self:
            raise KeyError(primitive)
        self._given.pop(primitive, None)
        setattr(
            primitive,
            self._attribute,
            Missing(primitive.name, self._attribute) if self._attribute in RULE_NAMES else None,
        )

    def pop(self, primitive, *default):
        if primitive not in self and default:
            return default[0]
        rule = self[primitive]
        del self[primitive]
        return rule

    def update(self, other) -> None:
        for primitive, rule in dict(other).items():
            self[primitive] = rule

    def __iter__(self) -> Iterator:
        return iter([p for p in {*language.registry.values(), *self._given} if p in self])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def keys(self):
        return list(self)

    def values(self):
        return [self[p] for p in self]

    def items(self):
        return [(p, self[p]) for p in self]


def apply_primitive(primitive, *args, **params):
    """Compiles a primitive as a program of one equation, and runs that."""
    return apply_by_compiling(primitive, args, params)


# traces -------------------------------------------------------------------------------------------------------------


class TraceTag:
    """Tells the tracers of one use of a transformation from those of another."""

    @override
    def __hash__(self):
        return hash(TraceTag)

    @override
    def __eq__(self, other):
        return isinstance(other, TraceTag)


class OpaqueTraceState:
    """Which trace was current: equal states mean that values of one may be used in the other."""

    __slots__ = ("_trace",)

    def __init__(self, trace: Trace):
        self._trace = weakref.ref(trace)

    @override
    def __eq__(self, other):
        return isinstance(other, OpaqueTraceState) and self._trace() is other._trace() and self._trace() is not None

    @override
    def __hash__(self):
        return hash(id(self._trace()))

    @override
    def __repr__(self):
        return f"OpaqueTraceState({type(self._trace()).__name__})"


def get_opaque_trace_state(convention: str | None = None) -> OpaqueTraceState:
    return OpaqueTraceState(current_trace())


def find_top_trace(_=None) -> Trace:
    """The current trace."""
    return current_trace()


def trace_state_clean() -> bool:
    """Whether no function is being traced or mapped."""
    return current_trace() is root and not axis_env()


@contextmanager
def take_current_trace():
    """The current trace, which is not the current one inside the block."""
    trace = current_trace()
    with tracing(root):
        yield trace


@contextmanager
def set_current_trace(trace: Trace, check_leaks: bool = False):
    """Makes a trace the current one inside the block."""
    with tracing(root if trace is None else trace):
        yield


def eval_context():
    """A block in which operations run at once."""
    return tracing(root)


def _enclosing() -> Iterator[Trace]:
    trace = current_trace()
    yield trace
    while isinstance(trace, InnerTrace):
        trace = trace.parent
        yield trace


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    return any(isinstance(t, JaxprTrace) for t in _enclosing())


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    return any(isinstance(t, BatchTrace) for t in _enclosing())


def unsafe_get_axis_names_DO_NOT_USE() -> list:
    return [axis.name for axis in axis_env()]


def nonempty_axis_env_DO_NOT_USE() -> bool:
    return bool(axis_env())


class _NodeTypes:
    """The classes whose instances are nodes of pytrees, as the dictionary that libraries read."""

    _own = (tuple, list, dict, type(None))

    def __contains__(self, cls) -> bool:
        return cls in self._own or cls in node_types

    def __iter__(self) -> Iterator:
        return iter([*self._own, *node_types])

    def __len__(self) -> int:
        return len(self._own) + len(node_types)


_registry = _NodeTypes()


# types and programs -------------------------------------------------------------------------------------------------


def mapped_aval(size, axis: int | None, aval):
    """The type of one element along an axis of size `size`; without an axis, the type itself."""
    if axis is None:
        return aval
    assert aval.shape[axis] == size, (aval, axis, size)
    axis %= len(aval.shape)
    return without_axis(aval, axis)


def unmapped_aval(size, axis: int | None, aval, explicit_mesh_axis=None):
    """The type of `size` values stacked along a new axis; without an axis, the type itself."""
    return aval if axis is None else with_axis(aval, size, axis)


def primal_dtype_to_tangent_dtype(primal_dtype):
    return tangent_aval(ShapedArray((), primal_dtype)).dtype


def supports_inf(dtype) -> bool:
    """Whether a dtype of floating-point numbers has an infinity."""
    return not dtypes.name(dtypes.dtype(dtype)).endswith(("fn", "fnuz"))


def is_constant_dim(d) -> bool:
    return not is_symbolic_dim(d)


def concrete_or_error(force, val, context: str = ""):
    """`force(val)`, or ConcretizationTypeError where the value is not known yet."""
    if isinstance(val, Tracer):
        raise ConcretizationTypeError(concretization_error(val, context or "A concrete value is needed here"))
    return val if force is None else force(val)


def gensym() -> Callable:
    return lambda aval: Var(aval)


def new_jaxpr_eqn(invars, outvars, primitive, params, effects=no_effects, source_info=None, ctx=None) -> JaxprEqn:
    return JaxprEqn(list(invars), list(outvars), primitive, dict(params), frozenset(effects), source_info or UNKNOWN)


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """The programs inside the equations of a program."""
    for eqn in jaxpr.eqns:
        yield from jaxprs_in_params(eqn.params)


def traverse_jaxpr_params(f: Callable, params: dict) -> dict:
    """`f` of each parameter that is a program, by name."""
    return {name: f(p) for name, p in params.items() if isinstance(p, (Jaxpr, ClosedJaxpr))}


class DebugInfo:
    """The name of a traced function, for messages."""

    def __init__(self, traced_for: str, func_src_info: str, arg_names=None, result_paths=None):
        self.traced_for, self.func_src_info, self.arg_names, self.result_paths = (
            traced_for,
            func_src_info,
            arg_names,
            result_paths,
        )

    @property
    def func_name(self) -> str:
        return self.func_src_info.split(" ")[0]

    @override
    def __repr__(self):
        return f"{self.func_src_info} (for {self.traced_for})"


@functools.cache
def _array_types() -> tuple:
    return tuple(t for t in aval_of if t not in (bool, int, float, complex))


def __getattr__(name: str):
    if name == "array_types":
        return set(_array_types())
    raise AttributeError(
        f"module 'jax.core' has no attribute {name!r}: weft, which replaces jax here, does not have it."
    )


float0 = dtypes.float0
