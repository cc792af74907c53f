"""Primitives: an operation and all that it means, in one object.

    abstract(*avals, **params) -> aval                            what the result is, or an error that names the shapes
    reference(*arrays, **params) -> array                         its value, in plain NumPy; the oracle
    jvp(primals, tangents, **params) -> (out, out_tangent)        the derivative; tangents may be `Zero`
    transpose(ct, *args, **params) -> [ct of each arg or None]    args that are linear are `UndefinedPrimal`
    batch(axis, args, dims, **params) -> (out, out_dim)           dims hold an axis or None (not batched)
    partial_eval(trace, args, params) -> outs                     for primitives that carry jaxprs, see transforms.linearize
    decompose(*args, **params) -> out                             the same in simpler primitives, for backends
    impl(*args, **params)                                         how the eager trace runs it, where that is not "compile it"

A primitive with `multiple_results` takes and returns lists where one with a single result has a value.
"""
from __future__ import annotations

from typing import Any, Callable

from ..annotations import override
from ..errors import at_user_line
from ..avals import AbstractValue
from .trace import current_trace

registry: dict[str, "Primitive"] = {}
param_types: dict[str, type] = {}     # classes of parameters that serialized programs name

RULES = ("abstract", "reference", "jvp", "transpose", "batch")


def param_type(cls: type) -> type:
    """Class decorator: an Enum or NamedTuple that parameters of primitives may hold; its name is part of the serialized form."""
    if param_types.setdefault(cls.__name__, cls) is not cls:
        raise ValueError(f"there is a parameter type {cls.__name__!r} already")
    return cls


class Unsupported:
    """A rule that can't exist, and why."""
    def __init__(self, why: str):
        self.why = why

    def __call__(self, *args, **params):
        raise NotImplementedError(at_user_line(self.why))


def unsupported(why: str) -> Unsupported:
    return Unsupported(why)


class Primitive:
    """One operation of the language. Making one adds it to `registry`, by name, unless it is `foreign`: a library's own."""

    def __init__(self, name: str, *, multiple_results: bool = False, hidden: tuple = (), basic: bool = True, foreign: bool = False):
        self.name, self.multiple_results, self.basic, self.foreign = name, multiple_results, basic, foreign
        self.hidden = hidden              # parameters that jaxprs don't show while they are None or False
        self.abstract: Callable | None = None
        self.reference: Callable | None = None
        self.jvp: Callable | None = None
        self.transpose: Callable | None = None
        self.batch: Callable | None = None
        self.partial_eval: Callable | None = None
        self.dce: Callable | None = None
        self.hand_over: Callable | None = None    # (eqn, apart) -> ..., what checkpoint policies save inside it, see control.saving
        self.function_form: str | None = None     # the parameter that may hold a Python function, which may close over tracers
        self.decompose: Callable | None = None
        self.impl: Callable | None = None
        self.stage: Callable | None = None        # (trace, args, params) -> outs, where staging is more than recording
        self.effects: Callable | None = None      # params -> frozenset of effects, for primitives that have some
        self.discharge: Callable | None = None    # (eqn, values) -> (outs, {reference: new value}), see transforms.discharge
        self.show: Callable | None = None         # (eqn, name of an atom, binder of a variable) -> text, where a jaxpr shows it in a way of its own
        self.makes_reference = False              # transformations apply their rules to it, whatever its arguments
        self.axis_names: Callable | None = None   # params -> names of mapped axes it communicates over
        self.vary: Callable | None = None         # (params, vma of each operand) -> vma of each result, where it is not their union
        self.binds: Callable | None = None        # params -> the mapped axes (`Axis`) that are in scope in its jaxprs
        self.on_raw: Callable | None = None       # (key dtype, *raw args, **params): primitives of random keys, on raw keys
        self.lowerings: dict = {}                 # platform, or None for all -> XLA's rule, where it comes with the primitive (weft.compat.mlir)
        self.cache: dict | None = {}              # (avals, params) -> abstract result; None where it depends on more than these
        if foreign:
            return
        if name in registry:
            raise ValueError(f"there is a primitive {name!r} already")
        registry[name] = self

    def bind(self, *args, **params):
        """Applies the primitive under the current trace."""
        return current_trace().process(self, args, params)

    def abstract_eval(self, avals: tuple, params: dict) -> Any:
        """The aval (or list of avals) of the result; remembered, since programs repeat themselves."""
        cache = self.cache
        if cache is None:
            return self.abstract(*avals, **params)
        try:
            key = (avals, *params, *params.values())      # names too: not every caller has them in one order
            found = cache.get(key)
        except TypeError:      # an unhashable parameter
            return self.abstract(*avals, **params)
        if found is None:
            found = cache[key] = self.abstract(*avals, **params)
            if len(cache) > 10_000:
                cache.clear()
        return found

    @override
    def __repr__(self):
        return self.name


class Zero:
    """A tangent or cotangent that is known to be zero, and so is never computed with."""
    __slots__ = ("aval",)

    def __init__(self, aval: AbstractValue):
        self.aval = aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)

    @override
    def __repr__(self):
        return f"Zero({self.aval})"


class UndefinedPrimal:
    """The place of a linear argument while a program is transposed: only its aval is known."""
    __slots__ = ("aval",)

    def __init__(self, aval: AbstractValue):
        self.aval = aval

    @override
    def __repr__(self):
        return f"UndefinedPrimal({self.aval})"


def is_undefined_primal(x) -> bool:
    return type(x) is UndefinedPrimal
