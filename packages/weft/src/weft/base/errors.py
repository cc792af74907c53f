"""The errors of the language. Each class's docstring is its help page: the cause, an example, and a remedy."""

from __future__ import annotations

import sys
import warnings
from typing import Any, Callable

from . import source_info


class WeftError(Exception):
    """Base of the errors that name the user's own line."""


class WeftTypeError(WeftError, TypeError):
    """An argument has a type, shape or dtype that the operation does not take.

    The message names the operation, the arguments and your line. Change the argument there, or convert it first
    (`astype`, `reshape`).

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.lax.add(jnp.ones(3), jnp.ones(4))  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft.errors.WeftTypeError: add: the shapes (3,) and (4,) differ
        >>> weft.lax.add(jnp.ones(3), jnp.ones(4)[:3])
        Array([2., 2., 2.], dtype=float32)
    """


class TypePromotionError(ValueError):
    """Two dtypes have no common dtype to which they promote implicitly.

    This happens under `numpy_dtype_promotion('strict')`, and for dtypes that never promote: float8, 4-bit integers,
    random keys. Convert one side with `x.astype(dtype)`.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> with weft.numpy_dtype_promotion("strict"):
        ...     jnp.ones(2) + jnp.arange(2)  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft.errors.TypePromotionError: …
        >>> with weft.numpy_dtype_promotion("strict"):
        ...     jnp.ones(2) + jnp.arange(2).astype(jnp.float32)
        Array([1., 2.], dtype=float32)
    """


class JAXTypeError(TypeError):
    """Base of the errors about operations that a traced value does not support."""


class JAXIndexError(IndexError):
    """Base of the errors about indexing with traced values."""


class AxisError(ValueError, IndexError):
    """An axis that the array does not have. It is a ValueError and an IndexError, as NumPy's error of this name is.

    Axes count from 0, or from the end with negative numbers: look at `x.shape`.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.sum(jnp.ones((2, 3)), axis=2)  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft.errors.AxisError: …
    """


class ConcretizationTypeError(JAXTypeError):
    """A traced value was used where its number is needed while a program is being traced, when only its shape and dtype
    exist.

    Under `jit`, mark the argument static (`static_argnums`, `static_argnames`), or compute without the number
    (`weft.lax.cond`, `weft.numpy.where`, a mask). A shape must be made of static numbers: derive it from `x.shape`, not
    from values.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.jit(lambda n: jnp.zeros(n))(3)  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft.errors.ConcretizationTypeError: …
        >>> weft.jit(lambda n: jnp.zeros(n), static_argnums=0)(3)
        Array([0., 0., 0.], dtype=float32)
    """


class TracerBoolConversionError(ConcretizationTypeError):
    """`if`, `while`, `and`, `or`, `not` or `assert` met a traced value, whose truth is not known while tracing.

    Use `weft.lax.cond`, `weft.lax.while_loop`, `weft.numpy.where` or `weft.numpy.logical_and`, or mark the argument
    static.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.jit(lambda x: x if x > 0 else -x)(-1.0)  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft.errors.TracerBoolConversionError: …
        >>> weft.jit(lambda x: jnp.where(x > 0, x, -x))(-1.0)
        Array(1., dtype=float32, weak_type=True)
    """


class TracerIntegerConversionError(ConcretizationTypeError):
    """A traced value was used as a Python integer: an index into a list, the end of a `range`, a shape.

    Mark the argument static, index a `weft.numpy` array instead of a list, or loop with `weft.lax.fori_loop`.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> table = [10, 20, 30]
        >>> weft.jit(lambda i: table[i])(1)  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft.errors.TracerIntegerConversionError: …
        >>> weft.jit(lambda i: jnp.array(table)[i])(1)
        Array(20, dtype=int32)
    """


class TracerArrayConversionError(JAXTypeError):
    """NumPy, or another library that reads memory, was given a traced value, which has no memory.

    Use the function of the same name in `weft.numpy`, or call the library while the program runs, with
    `weft.pure_callback`.

    Example:
        >>> import weft, weft.numpy as jnp, numpy as np
        >>> weft.jit(lambda x: np.sin(x))(0.0)  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft.errors.TracerArrayConversionError: …
        >>> weft.jit(lambda x: jnp.sin(x))(0.0)
        Array(0., dtype=float32, weak_type=True)
    """


class NonConcreteBooleanIndexError(JAXIndexError):
    """A traced boolean mask was used as an index, so the result's size is not known while tracing.

    Use `weft.numpy.where(mask, x, fill)`, `x.at[mask].set(v)`, or `weft.numpy.nonzero(mask, size=n)`.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.jit(lambda x: x[x > 1].sum())(jnp.arange(4))  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft.errors.NonConcreteBooleanIndexError: …
        >>> weft.jit(lambda x: jnp.where(x > 1, x, 0).sum())(jnp.arange(4))
        Array(5, dtype=int32)
    """


class UnexpectedTracerError(JAXTypeError):
    """A traced value outlived the function that was being traced, and was used afterwards.

    It was stored in a global, an attribute, a list or a closure while the function was traced. Return it from the
    function instead. To find the place, trace with `weft.checking_leaks()`.

    Example:
        >>> import weft
        >>> kept = []
        >>> weft.jit(lambda x: kept.append(x))(1.0)
        >>> kept[0] + 1  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft.errors.UnexpectedTracerError: …
        >>> weft.jit(lambda x: (None, x))(1.0)[1] + 1
        Array(2., dtype=float32, weak_type=True)
    """


class LeakedTracerError(UnexpectedTracerError):
    """Under `weft.checking_leaks()`, a traced value was still referenced after its trace had ended.

    The message says where the value was made, and which object refers to it. Return the value from the traced function
    instead of storing it.

    Example:
        >>> import weft
        >>> kept = []
        >>> with weft.checking_leaks():
        ...     weft.jit(lambda x: kept.append(x + 1))(1.0)  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft.errors.LeakedTracerError: …
    """


class KeyReuseError(JAXTypeError):
    """A random key was consumed twice, which gives the same numbers twice. Split it first.

    Example:
        >>> import weft
        >>> key, first, second = weft.random.split(weft.random.key(0), 3)
        >>> bool(weft.random.normal(first) == weft.random.normal(second))
        False
    """


class InconclusiveDimensionOperation(Exception):
    """A question about symbolic dimensions (of `weft.export.symbolic_shape`) has no single answer.

    Add your knowledge as a constraint to the symbolic scope (`constraints=["n >= 4"]`), or write the function without
    the comparison.

    Example:
        >>> import weft
        >>> from weft import export
        >>> n, = export.symbolic_shape("n")
        >>> bool(n >= 4)  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft.errors.InconclusiveDimensionOperation: …
        >>> n, = export.symbolic_shape("n", constraints=["n >= 4"])
        >>> bool(n >= 4)
        True
    """


class JaxprTypeError(TypeError):
    """A jaxpr is malformed. Programs that weft traces never are, but a jaxpr may be that was built by hand or by a
    transformation outside of weft.

    `weft.config.update("jax_enable_checks", True)` checks each jaxpr when it is made, so that the error appears where
    the jaxpr is built.
    """


class VerificationError(WeftError, JaxprTypeError):
    """A jaxpr is malformed: a variable is used before it is defined, or a type does not follow from its operands."""


class OwnRuntimeError(RuntimeError):
    """A compiled program failed while it ran, or the device refused to run it.

    The message is the runtime's, and includes the error of a callback. If a device's memory is exhausted, donate
    arguments (`donate_argnums`) or recompute (`weft.checkpoint`). If a transfer was disallowed, move the array with
    `weft.device_put` first.
    """


# used if no compiled runtime has a class of its own
OwnRuntimeError.__name__ = OwnRuntimeError.__qualname__ = "JaxRuntimeError"


class BackendError(RuntimeError):
    """A backend is missing, or can't compile or run a program; the message names the cause and the next step.

    Example:
        >>> import weft
        >>> weft.devices("abacus")  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft.errors.BackendError: unknown platform 'abacus'
        >>> len(weft.devices("reference"))
        1
    """


def at_user_line(message: str) -> str:
    """`message` with the user's own line below it."""
    info = source_info.to_blame(2)
    line = f"\n  at {info}"
    # a module that the message quotes may have named it
    return message if info.code is None or line in message else message + line


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns of the user's own line: the innermost frame that is not ours."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and source_info.is_internal(frame.f_code):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def type_error(message: str) -> WeftTypeError:
    """A `WeftTypeError` that names the user's line."""
    return WeftTypeError(at_user_line(message))


_runtime_error: type[Exception] | None = None
_load_runtime: Callable[[], None] = lambda: None


def runtime_raises(error: type[Exception]) -> None:
    """Makes the error class of a backend's compiled runtime the class `JaxRuntimeError`."""
    global _runtime_error
    _runtime_error = error


def load_runtime_with(load: Callable[[], None]) -> None:
    """Sets the function that loads the backend whose runtime may raise a class of its own: whoever asks for
    `JaxRuntimeError` wants to catch that class.
    """
    global _load_runtime
    _load_runtime = load


def __getattr__(name: str) -> Any:
    if name != "JaxRuntimeError":
        raise AttributeError(f"module 'weft.errors' has no attribute {name!r}")
    if _runtime_error is None:
        _load_runtime()
    return globals().setdefault(name, _runtime_error or OwnRuntimeError)


for _error in [
    value
    for value in globals().values()
    if isinstance(value, type) and issubclass(value, Exception) and value.__module__ == __name__
]:
    _error.__module__ = "weft.errors"  # the module from which users import it, and which tracebacks show
