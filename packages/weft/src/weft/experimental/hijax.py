"""jax.experimental.hijax: operations on values that aren't arrays. They run at once; programs hold arrays alone, so
they can't be traced.
"""

from __future__ import annotations

from typing import Any, Callable

from ..base.annotations import override
from ..base.avals import AbstractRef as AbstractRef, AbstractValue as AbstractValue, ShapedArray as ShapedArray
from ..core.primitive import Zero as Zero, is_undefined_primal as is_undefined_primal
from ..core.trace import Tracer, add_type, current_trace, root
from ..base.errors import at_user_line
from ..transforms.jvp import instantiate
from ..compat.core import Primitive

__all__ = [
    "AbstractRef",
    "AbstractValue",
    "AvalMutableQDD",
    "AvalQDD",
    "HiPrimitive",
    "HiType",
    "MutableHiType",
    "ShapedArray",
    "VJPHiPrimitive",
    "Zero",
    "aval_method",
    "aval_property",
    "control_flow_allowed_effects",
    "instantiate_zeros",
    "is_undefined_primal",
    "register_hitype",
]


class HiType(AbstractValue):
    """Base of the types of such values."""

    has_qdd = False


class MutableHiType(HiType):
    """Base of the types of those whose contents change."""

    has_qdd = True


class HiPrimitive(Primitive):
    """Base of operations on such values. Subclasses define `impl`; the other rules are for tracing, which is
    refused.
    """

    def __init__(self, name: str):
        own = {rule: getattr(type(self), rule) for rule in ("multiple_results",) if rule in type(self).__dict__}
        super().__init__(name)
        for rule in ("impl", "abstract", "jvp", "batch", "transpose"):
            if hasattr(type(self), rule):
                self.__dict__.pop(rule, None)
        self.multiple_results = own.get("multiple_results", False)

    @override
    def bind(self, *args, **params):
        if current_trace() is not root or any(isinstance(x, Tracer) for x in args):
            raise NotImplementedError(
                at_user_line(
                    f"{self.name} works on values that aren't arrays, and weft's programs hold arrays alone: it runs"
                    " outside of jit, grad and vmap only. Pass the arrays inside the value to the transformed function"
                    " (for flax.nnx: leave hijax variables off)."
                )
            )
        if self.impl is None:
            raise NotImplementedError(f"{type(self).__name__} defines no impl, the method that computes the operation.")
        return self.impl(*args, **params)


class VJPHiPrimitive(HiPrimitive):
    """The same for operations with a derivative."""


class AvalQDD(tuple):
    """A type and what is known of the contents."""

    def __new__(cls, aval, qdd):
        return super().__new__(cls, (aval, qdd))

    aval = property(lambda self: self[0])
    qdd = property(lambda self: self[1])


class AvalMutableQDD(AvalQDD):
    mutable_qdd = property(lambda self: self[1])


class _Allowed:
    """Kinds of effects that control flow may have."""

    def __init__(self):
        self._types: set = set()

    def add_type(self, effect_type: type) -> None:
        self._types.add(effect_type)

    def contains(self, effect) -> bool:
        return isinstance(effect, tuple(self._types))


control_flow_allowed_effects = _Allowed()


def register_hitype(cls: type, typeof: Callable) -> None:
    """Registers the function that returns the type of an instance of a class.

    Args:
        cls: the class of the values.
        typeof: a function from a value to its `HiType`.

    Returns:
        None

    Example:
        >>> import weft
        >>> from weft.experimental import hijax
        >>> class Box:
        ...     def __init__(self, x):
        ...         self.x = x
        >>> class BoxType(hijax.HiType):
        ...     pass
        >>> hijax.register_hitype(Box, lambda box: BoxType())
        >>> type(weft.typeof(Box(1))).__name__
        'BoxType'
    """
    add_type(cls, typeof)


def instantiate_zeros(x) -> Any:
    """Makes an array of a symbolic zero.

    Args:
        x: a `Zero`, or a value of any shape and dtype.

    Returns:
        an array of zeros of the shape and dtype of a `Zero`; other values are returned as they are.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import hijax
        >>> hijax.instantiate_zeros(jnp.ones(2))
        Array([1., 1.], dtype=float32)
    """
    return instantiate(x)


class aval_property(property):
    """A property of a type that values of the type have too."""


class aval_method:
    """A method of a type that values of the type have too."""

    def __init__(self, fun: Callable):
        self.fun = fun

    def __get__(self, instance, owner=None):
        return self if instance is None else self.fun.__get__(instance, owner)


def __dir__() -> list[str]:
    return sorted(__all__)
