"""The errors of the language. Each class's docstring is its help page: the cause, an example, and a remedy."""

from __future__ import annotations

import sys
import warnings
from typing import Any, Callable

from . import source_info


class WeftError(Exception):
    """Base of the errors that name the user's own line.

    You meet its subclasses. Catch this one to handle all mistakes that weft itself finds in a program:

    Example:
        >>> import weft, weft.numpy as jnp
        >>> try:
        ...     weft.lax.add(jnp.ones(3), jnp.ones(4))
        ... except weft.errors.WeftError as error:
        ...     print(type(error).__name__)
        WeftTypeError
    """


class WeftTypeError(WeftError, TypeError):
    """An argument has a type, shape or dtype that the operation does not take.

    The message names the operation, the types of the arguments and your line. It is raised while a function is traced,
    so a compiled function with such a mistake never runs. Print `x.shape` and `x.dtype` of the arguments there; under
    `jit` they are known too. Then take the part that was meant, or convert it (`astype`, `reshape`).

    Example:
        >>> import weft, weft.numpy as jnp
        >>> a, b = jnp.ones(3), jnp.ones(4)
        >>> weft.lax.add(a, b)  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft.errors.WeftTypeError: add: the shapes (3,) and (4,) differ
        >>> print(a.shape, b.shape)
        (3,) (4,)
        >>> weft.lax.add(a, b[:3])
        Array([2., 2., 2.], dtype=float32)

    Functions of `weft.lax` don't broadcast and don't promote dtypes. Those of `weft.numpy` do, as in NumPy:

        >>> jnp.add(jnp.ones((2, 1)), jnp.ones(3)).shape
        (2, 3)
    """


class TypePromotionError(ValueError):
    """Two dtypes have no common dtype to which they promote implicitly.

    This happens under `numpy_dtype_promotion('strict')`, and for dtypes that never promote: float8, 4-bit integers,
    random keys. Convert one side with `x.astype(dtype)`. Python numbers may always be mixed with arrays.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> with weft.numpy_dtype_promotion("strict"):
        ...     jnp.ones(2) + jnp.arange(2)  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft.errors.TypePromotionError: …
        >>> with weft.numpy_dtype_promotion("strict"):
        ...     jnp.ones(2) + jnp.arange(2).astype(jnp.float32) + 1
        Array([2., 3.], dtype=float32)
    """


class JAXTypeError(TypeError):
    """Base of the errors about operations that a traced value does not support.

    While a function is traced, its arguments are tracers: they have a shape and a dtype, and no value. Whatever needs
    the value raises a subclass of this, whose page has remedies: for `if` and `while`, for indices and shapes, for
    NumPy, for tracers that were kept.

    Example:
        >>> import weft
        >>> try:
        ...     weft.jit(lambda x: float(x))(1.0)
        ... except weft.errors.JAXTypeError as error:
        ...     print(type(error).__name__)
        ConcretizationTypeError
    """


class JAXIndexError(IndexError):
    """Base of the errors about indexing with traced values.

    Its only subclass is that of boolean masks under `jit`, `NonConcreteBooleanIndexError`. Whole numbers may be traced:

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.jit(lambda x, i: x[i])(jnp.arange(4), 2)
        Array(2, dtype=int32)
    """


class AxisError(ValueError, IndexError):
    """An axis that the array does not have. It is a ValueError and an IndexError, as NumPy's error of this name is.

    Axes count from 0, or from the end with negative numbers, so an array of two axes has 0 and 1, or -2 and -1. Look at
    `x.shape`. Under `vmap` the mapped axis is hidden: a function sees one axis less than the whole array has.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> x = jnp.ones((2, 3))
        >>> jnp.sum(x, axis=2)  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft.errors.AxisError: …
        >>> jnp.sum(x, axis=-1)
        Array([3., 3.], dtype=float32)
        >>> weft.vmap(lambda row: jnp.sum(row, axis=0))(x)
        Array([3., 3.], dtype=float32)
    """


class ConcretizationTypeError(JAXTypeError):
    """A traced value was used where its number is needed while a program is being traced, when only its shape and dtype
    exist.

    A shape must be made of numbers that are known then. Mark the argument that it comes from as static
    (`static_argnums`, `static_argnames`), or derive it from `x.shape`, which is known. `int(x)`, `float(x)` and
    `x.item()` need a value too: compute with the array itself instead, or convert outside of the compiled function.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.jit(lambda n: jnp.zeros(n))(3)  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft.errors.ConcretizationTypeError: …
        >>> weft.jit(lambda n: jnp.zeros(n), static_argnums=0)(3)
        Array([0., 0., 0.], dtype=float32)
        >>> weft.jit(lambda x: jnp.zeros(x.shape[0]))(jnp.arange(3))
        Array([0., 0., 0.], dtype=float32)

    If a size depends on data, choose a largest size, and mask what is beyond:

        >>> weft.jit(lambda x, n: jnp.where(jnp.arange(4) < n, x, 0))(jnp.ones(4), 2)
        Array([1., 1., 0., 0.], dtype=float32)
    """


class TracerBoolConversionError(ConcretizationTypeError):
    """`if`, `while`, `and`, `or`, `not` or `assert` met a traced value, whose truth is not known while tracing.

    To choose between values, use `weft.numpy.where`; between computations, `weft.lax.cond`. Loops that depend on values
    are `weft.lax.while_loop`. Combine conditions with `&`, `|` and `~`, in parentheses. If the argument is a setting,
    mark it static, and `if` works.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.jit(lambda x: x if x > 0 else -x)(-1.0)  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft.errors.TracerBoolConversionError: …
        >>> weft.jit(lambda x: jnp.where(x > 0, x, -x))(-1.0)
        Array(1., dtype=float32, weak_type=True)
        >>> weft.jit(lambda x: weft.lax.cond(x > 0, jnp.sqrt, lambda x: 0.0, x))(4.0)
        Array(2., dtype=float32, weak_type=True)
        >>> weft.jit(lambda x, double: 2 * x if double else x, static_argnames="double")(1.0, double=True)
        Array(2., dtype=float32, weak_type=True)

    `assert` is `weft.experimental.checkify.check` inside of compiled functions. A comparison chain such as `0 < x < 1`
    contains an `and`:

        >>> weft.jit(lambda x: (0 < x) & (x < 1))(jnp.float32(0.5))
        Array(True, dtype=bool)
    """


class TracerIntegerConversionError(ConcretizationTypeError):
    """A traced value was used as a Python integer: an index into a list, the end of a `range`, a shape.

    Index a `weft.numpy` array instead of a list; loop with `weft.lax.fori_loop` instead of `range`; choose among
    functions with `weft.lax.switch`. If the number is a setting, mark the argument static.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> table = [10, 20, 30]
        >>> weft.jit(lambda i: table[i])(1)  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft.errors.TracerIntegerConversionError: …
        >>> weft.jit(lambda i: jnp.array(table)[i])(1)
        Array(20, dtype=int32)
        >>> weft.jit(lambda n: weft.lax.fori_loop(0, n, lambda i, total: total + i, 0))(5)
        Array(10, dtype=int32, weak_type=True)
        >>> weft.jit(lambda i: weft.lax.switch(i, [jnp.sin, jnp.cos], 0.0))(1)
        Array(1., dtype=float32, weak_type=True)
    """


class TracerArrayConversionError(JAXTypeError):
    """NumPy, or another library that reads memory, was given a traced value, which has no memory.

    Use the function of the same name in `weft.numpy`. If there is none, call the library while the program runs, with
    `weft.pure_callback`, and say what it returns. Arrays that are constants may be NumPy's: only traced values can't.

    Example:
        >>> import weft, weft.numpy as jnp, numpy as np
        >>> weft.jit(lambda x: np.sin(x))(0.0)  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft.errors.TracerArrayConversionError: …
        >>> weft.jit(lambda x: jnp.sin(x))(0.0)
        Array(0., dtype=float32, weak_type=True)
        >>> like = weft.ShapeDtypeStruct((3,), jnp.float32)
        >>> weft.jit(lambda x: weft.pure_callback(np.sort, like, x))(jnp.array([3.0, 1.0, 2.0]))
        Array([1., 2., 3.], dtype=float32)
    """


class NonConcreteBooleanIndexError(JAXIndexError):
    """A traced boolean mask was used as an index, so the result's size is not known while tracing.

    Keep the size: give what is masked out a value that does no harm, with `weft.numpy.where(mask, x, fill)`, or pass
    `where=mask` to a reduction. Elements are replaced by `where` too. If you need the selected elements themselves, say
    how many there are at most: `weft.numpy.nonzero(mask, size=n)`.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.jit(lambda x: x[x > 1].sum())(jnp.arange(4))  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft.errors.NonConcreteBooleanIndexError: …
        >>> weft.jit(lambda x: jnp.where(x > 1, x, 0).sum())(jnp.arange(4))
        Array(5, dtype=int32)
        >>> weft.jit(lambda x: x.mean(where=x > 1))(jnp.arange(4.0))
        Array(2.5, dtype=float32)
        >>> weft.jit(lambda x: jnp.nonzero(x > 1, size=3, fill_value=-1)[0])(jnp.arange(4))
        Array([ 2,  3, -1], dtype=int32)
    """


class UnexpectedTracerError(JAXTypeError):
    """A traced value outlived the function that was being traced, and was used afterwards.

    It was stored in a global, an attribute, a list or a closure while the function was traced. Return it from the
    function instead, also from the body of a `scan` or the branches of a `cond`. To find the place, trace with
    `weft.checking_leaks()`.

    Example:
        >>> import weft
        >>> kept = []
        >>> weft.jit(lambda x: kept.append(x))(1.0)
        >>> kept[0] + 1  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft.errors.UnexpectedTracerError: …
        >>> result, kept = weft.jit(lambda x: (2 * x, x))(1.0)
        >>> kept + 1
        Array(2., dtype=float32, weak_type=True)

    To look at a value while the program runs, use `weft.debug.print` or `weft.debug.callback`.
    """


class ShardingTypeError(WeftError):
    """The types of an operation's operands do not say how its result is divided along the explicit axes of a mesh.

    Either they contradict each other, or there are several results to choose from, or the obvious one would move data
    between devices, which a program with explicit axes does only where it says so. Say what the result shall be
    (`out_sharding=weft.P(…)`, where the function takes it), move an operand first (`weft.sharding.reshard`), or leave
    the choice to the compiler for a part of the program (`weft.sharding.auto_axes`).

    Example:
        >>> import weft
        >>> mesh = weft.sharding.AbstractMesh((2,), ("x",), axis_types=(weft.sharding.AxisType.Explicit,))
        >>> divided = weft.ShapeDtypeStruct((4, 4), "float32", sharding=weft.NamedSharding(mesh, weft.P("x")))
        >>> weft.eval_shape(lambda x: x + x.T, divided)  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft.errors.ShardingTypeError: add of operands float32[4@x,4], float32[4,4@x]: …
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
        >>> with weft.checking_leaks():
        ...     weft.jit(lambda x: x + 1)(1.0)
        Array(2., dtype=float32, weak_type=True)
    """


class KeyReuseError(JAXTypeError):
    """A random key was consumed twice, which gives the same numbers twice.

    weft checks it if `weft.debug_key_reuse(True)` is on. Split the key before its first use, and consume each part
    once. If the same numbers are meant, pass `weft.random.clone(key)`.

    Example:
        >>> import weft
        >>> key = weft.random.key(0)
        >>> with weft.debug_key_reuse(True):
        ...     weft.random.normal(key) - weft.random.normal(key)  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft.errors.KeyReuseError: …
        >>> first, second = weft.random.split(weft.random.key(0))
        >>> with weft.debug_key_reuse(True):
        ...     print(weft.random.normal(first) == weft.random.normal(second))
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
    the jaxpr is built. What you meet is its subclass `VerificationError`.

    Example:
        >>> import weft
        >>> from weft.core.verify import verify
        >>> closed = weft.make_jaxpr(lambda x: 2 * x + 1)(1.0)
        >>> try:
        ...     verify(closed.jaxpr.replace(eqns=closed.jaxpr.eqns[1:]))  # what they compute is missing
        ... except weft.errors.JaxprTypeError as error:
        ...     print(type(error).__name__)
        VerificationError
    """


class VerificationError(WeftError, JaxprTypeError):
    """A jaxpr is malformed: a variable is used before it is defined, or a type does not follow from its operands.

    The message has the equation. Let weft make jaxprs, by tracing (`weft.make_jaxpr`), or verify those that you build:

    Example:
        >>> import weft
        >>> from weft.core.verify import verify
        >>> closed = weft.make_jaxpr(lambda x: x + 1)(1.0)
        >>> verify(closed.jaxpr)
        >>> verify(closed.jaxpr.replace(eqns=[]))  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft.errors.VerificationError: …
    """


class OwnRuntimeError(RuntimeError):
    """A compiled program failed while it ran, or the device refused to run it.

    The message is the runtime's, and includes the error of a callback. If a device's memory is exhausted, donate
    arguments (`donate_argnums`) or recompute (`weft.checkpoint`). If a transfer was disallowed, move the array with
    `weft.device_put` first.

    Example:
        >>> import weft
        >>> import weft.numpy as jnp
        >>> def fail(x):
        ...     raise ValueError("not this one")
        >>> def program(x):
        ...     return weft.pure_callback(fail, weft.ShapeDtypeStruct((), jnp.float32), x)
        >>> try:
        ...     weft.block_until_ready(weft.jit(program)(1.0))
        ... except weft.errors.JaxRuntimeError as error:
        ...     print("not this one" in str(error))
        True
    """


# used if no compiled runtime has a class of its own
OwnRuntimeError.__name__ = OwnRuntimeError.__qualname__ = "JaxRuntimeError"


class BackendError(RuntimeError):
    """A backend is missing, or can't compile or run a program; the message names the cause and the next step.

    A platform may be unknown, its package not installed, its device not there; or a program uses a dtype or an
    operation that the backend lacks. `weft.devices()` shows what there is. Name the platforms that you want in the
    order of your preference, in `JAX_PLATFORMS` or `jax_platforms`.

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
    while frame.f_back is not None and source_info.is_internal(frame.f_code.co_filename):
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
