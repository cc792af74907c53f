"""jax.interpreters.mlir: lowers a primitive to other primitives, on every backend, or to StableHLO, on XLA.

`register_lowering(p, lower_fun(f))` makes `f` the primitive's decomposition, which every backend uses. A rule that
builds operations itself, `rule(ctx, *values, **params)`, is for XLA alone: it runs with MLIR's context, location and
insertion point in force.
"""

from __future__ import annotations

import importlib
from contextvars import ContextVar
from typing import Any, Callable, Sequence

from ..base.scoped import scoped
from ..core.primitive import Primitive
from ..transforms.stage import stage_closed

_PLATFORMS = {"gpu": ("gpu", "cuda", "rocm"), "cuda": ("cuda", "gpu")}
_builder: ContextVar[Any] = ContextVar("builder")  # the builder of the module that is being lowered
# names that exist only where jaxlib is installed: its module and name
_NATIVE = {
    "ir": ("jaxlib.mlir.ir", None),
    "hlo": ("jaxlib.mlir.dialects.stablehlo", None),
    "chlo": ("jaxlib.mlir.dialects.chlo", None),
    "func": ("jaxlib.mlir.dialects.func", None),
    "sdy": ("jaxlib.mlir.dialects.sdy", None),
    "serialize_portable_artifact": ("jaxlib._jax.mlir", "serialize_portable_artifact"),
    "deserialize_portable_artifact": ("jaxlib._jax.mlir", "deserialize_portable_artifact"),
}


class ModuleContext:
    """The module that a rule adds to."""

    def __init__(self, builder):
        self._builder = builder
        self.platforms = (builder.platform,)

    context = property(lambda self: self._builder.home.context)
    module = property(lambda self: self._builder.module)
    ip = property(lambda self: self._builder.ip)

    def add_keepalive(self, value) -> None:
        """Keeps an object alive as long as the context of the program."""
        self._builder.home.kept.append(value)


class LoweringRuleContext:
    """Describes to a rule the equation that it lowers: the primitive, and the avals of its operands and results."""

    def __init__(self, builder, primitive, avals_in, avals_out):
        self.builder, self.primitive, self.avals_in, self.avals_out = builder, primitive, avals_in, avals_out
        self.module_context = ModuleContext(builder)

    platforms = property(lambda self: self.module_context.platforms)

    def replace(self, **kw) -> "LoweringRuleContext":
        """The same context with other avals, for a rule that calls another one."""
        return LoweringRuleContext(
            self.builder, *[kw.get(name, getattr(self, name)) for name in ("primitive", "avals_in", "avals_out")]
        )


class LoweredFunction:
    """A lowering rule that is a function of other primitives."""

    def __init__(self, fun: Callable, multiple_results: bool):
        self.fun, self.multiple_results = fun, multiple_results

    def __call__(self, ctx: LoweringRuleContext, *values, **params) -> list:
        def flat(*xs):
            out = self.fun(*xs, **params)
            return list(out) if self.multiple_results else [out]

        return ctx.builder.inline(
            stage_closed(flat, tuple(ctx.avals_in), getattr(self.fun, "__name__", "a rule")), values
        )


def lower_fun(fun: Callable, multiple_results: bool = True) -> LoweredFunction:
    """The lowering rule that a function is: it gets the operands and parameters, and returns the results (one, if
    not `multiple_results`).
    """
    return LoweredFunction(fun, multiple_results)


def _flat(values) -> list:
    """The values that a rule returned: values, operations, and sequences of these."""
    if hasattr(values, "results") and not hasattr(values, "type"):
        return list(values.results)
    if isinstance(values, (list, tuple)) or hasattr(values, "__getitem__"):
        return [v for part in values for v in _flat(part)]
    return [values]


def register_lowering(
    prim: Primitive, rule: Callable, platform: str | None = None, inline: bool = True, cacheable: bool = True
) -> Callable:
    """Gives a primitive its lowering rule, for one platform or, without one, for all that have no rule of their own."""
    if isinstance(rule, LoweredFunction):
        fun, many = rule.fun, prim.multiple_results

        def decompose(*args, **params):
            out = fun(*args, **params)
            return out if many == rule.multiple_results else list(out)[0] if rule.multiple_results else [out]

        if platform is None or prim.decompose is None and prim.foreign:
            prim.decompose = decompose

    def lower(b, ins, outs, *operands, **params):
        with scoped(_builder, b), b.ip, b.loc:
            made = _flat(rule(LoweringRuleContext(b, prim, list(ins), list(outs)), *operands, **params))
        if len(made) != len(outs):
            raise ValueError(f"the lowering rule of {prim.name} returned {len(made)} values for {len(outs)} results.")
        return made if prim.multiple_results else made[0]

    if not prim.foreign or platform is not None or not isinstance(rule, LoweredFunction):
        for name in (platform,) if platform is None else _PLATFORMS.get(platform, (platform,)):
            prim.lowerings[name] = lower
    return rule


def _current():
    try:
        return _builder.get()
    except LookupError:
        raise RuntimeError(
            "this needs a module that is being built: call it inside a lowering rule (register_lowering)."
        ) from None


def ir_constant(val, *, aval=None, const_lowering=None):
    """A constant of the program."""
    return _current().embed(val)


def aval_to_ir_types(ctx, aval) -> list:
    return [_current().type(aval)]


def aval_to_ir_type(ctx, aval):
    """The MLIR type of an aval."""
    return _current().type(aval)


def dtype_to_ir_type(dtype):
    """The MLIR type of one element."""
    return _current().element(dtype)


def i32_attr(i: int):
    return _current().int_attr(i, 32)


def i64_attr(i: int):
    return _current().int_attr(i, 64)


def dense_int_array(xs):
    return _current().i64s(xs)


def flatten_ir_values(xs) -> list:
    return _flat(list(xs))


def emit_python_callback(
    ctx: LoweringRuleContext,
    callback: Callable,
    token,
    operands: Sequence,
    operand_avals: Sequence,
    result_avals: Sequence,
    *,
    has_side_effect: bool,
    returns_token: bool = True,
    partitioned: bool = False,
    sharding=None,
) -> tuple:
    """A call of a Python function that takes NumPy arrays and returns a tuple of them: (results, the token, what to
    keep alive).
    """
    made = ctx.builder.call_python(
        "emit_python_callback",
        list(operand_avals),
        list(result_avals),
        list(operands),
        lambda device, *values: tuple(callback(*values)),
        False,
        has_side_effect,
    )
    return made, token, None


def __getattr__(name: str):
    if name in _NATIVE:
        module, attribute = _NATIVE[name]
        found = importlib.import_module(module)
        return found if attribute is None else getattr(found, attribute)
    raise AttributeError(
        f"module 'jax.interpreters.mlir' has no attribute {name!r}: weft, which replaces jax here, does not have it."
    )
