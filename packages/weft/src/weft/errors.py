"""The errors of the language. Each class's docstring is its help page."""
from __future__ import annotations

from . import source_info


class WeftError(Exception):
    """Base of the errors that name the user's own line."""


class WeftTypeError(WeftError, TypeError):
    """An argument has a type, shape or dtype that the operation does not take. The message names the operation,
    the arguments and your line; change the argument there, or convert it first (`astype`, `reshape`)."""


class TypePromotionError(ValueError):
    """Two dtypes do not promote to a common one implicitly: under `numpy_dtype_promotion('strict')`, or because one of
    them (a float8, a 4-bit integer, a random key) never does. Convert one side with `x.astype(dtype)`."""


class JAXTypeError(TypeError):
    """Base of the errors about what a traced value can't do."""


class JAXIndexError(IndexError):
    """Base of the errors about indexing with traced values."""


class ConcretizationTypeError(JAXTypeError):
    """A traced value was used where its number is needed while a program is being traced, when only its shape and dtype exist.

    Under `jit`, mark the argument static (`static_argnums`), or compute without the number (`weft.lax.cond`,
    `weft.numpy.where`, a mask). A shape must be made of static numbers: derive it from `x.shape`, not from values.
    """


class TracerBoolConversionError(ConcretizationTypeError):
    """`if`, `while`, `and`, `or` or `not` met a traced value. Use `weft.lax.cond`, `weft.lax.while_loop`, `weft.numpy.where`
    or `weft.numpy.logical_and`, or mark the argument static."""


class TracerIntegerConversionError(JAXTypeError):
    """A traced value was used as a Python integer: an index into a list, a `range`, a shape. Mark the argument static,
    or index a `weft.numpy` array instead of a list."""


class TracerArrayConversionError(JAXTypeError):
    """NumPy was given a traced value. Use the function of the same name in `weft.numpy`, or `weft.pure_callback`."""


class NonConcreteBooleanIndexError(JAXIndexError):
    """A traced boolean mask was used as an index, so the result's size is not known while tracing. Use
    `weft.numpy.where(mask, x, fill)` or `x.at[mask].set(v)`, or `weft.numpy.nonzero(mask, size=n)`."""


class InconclusiveDimensionOperation(Exception):
    """A question about a symbolic dimension (is `b >= 4`? what integer is `b`?) has different answers for different sizes, so a program that must
    serve them all can't be traced. Add constraints to `symbolic_shape`, use `weft.core.max_dim`/`min_dim`, or compute with the size as an array."""


class UnexpectedTracerError(JAXTypeError):
    """A traced value outlived the function that was being traced (it was stored in a global, an attribute or a closure)
    and was used afterwards. Return it from the function instead."""


class KeyReuseError(RuntimeError):
    """A random key was consumed twice. Split it first: `key, sub = weft.random.split(key)`."""


class JaxRuntimeError(RuntimeError):
    """A compiled program failed while it ran."""


class BackendError(RuntimeError):
    """A backend is missing, or can't compile or run a program; the message names the cause and the next step."""


class VerificationError(WeftError):
    """A jaxpr is malformed: a variable is used before it is defined, or a type does not follow from its operands."""


def at_user_line(message: str) -> str:
    """`message` with the user's own line below it."""
    info = source_info.current(2)
    return f"{message}\n  at {info}" if info.code is not None else message


def type_error(message: str) -> WeftTypeError:
    """A `WeftTypeError` that names the user's line."""
    return WeftTypeError(at_user_line(message))
