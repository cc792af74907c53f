"""Run-time errors as values: `checkify(f)` returns an error beside the result, and works under jit, vmap, grad and in
loops.

A function is traced; its program is then run with a state (has anything failed, what, with which values) that goes
through every call, loop and branch.
"""

from __future__ import annotations

import itertools
from functools import wraps
from typing import Any, Callable, NamedTuple, Sequence

from ..base.annotations import override
from ..base import dtypes
from .. import numpy as jnp
from ..base.avals import array_aval, shaped
from ..higher_order.common import reorder
from ..core.carries import CARRY, Carries
from ..core.effects import Effect
from ..core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, TypedScalar, eval_equations
from ..core.primitive import AsDecomposed, Primitive, unsupported
from ..core.wire import stays
from ..core.trace import Tracer, get_aval, is_array, is_array_like
from ..base.host import HostArray, np
from ..primitives.linear import convert, zeros
from ..base.source_info import current
from ..transforms.batch import to_front
from ..transforms.stage import hoist_tracers, stage, stage_closed
from ..base.tree import tree_flatten, tree_unflatten
from ..base.registration import register_pytree_node

__all__ = [
    "DivisionByZeroError",
    "Error",
    "ErrorCategory",
    "FailedCheckError",
    "Failure",
    "JaxException",
    "JaxRuntimeError",
    "NaNError",
    "OOBError",
    "all_checks",
    "automatic_checks",
    "check",
    "check_error",
    "check_p",
    "checkify",
    "debug_check",
    "div_checks",
    "float_checks",
    "index_checks",
    "init_error",
    "nan_checks",
    "user_checks",
]


class JaxRuntimeError(ValueError):
    """What `Error.throw` raises: a check failed while a program ran. The message says which, with the values it was
    given, and its line.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.experimental import checkify
        >>> def root(x):
        ...     checkify.check(x >= 0, "{x} has no real root", x=x)
        ...     return jnp.sqrt(x)
        >>> error, _ = weft.jit(checkify.checkify(root))(-1.0)
        >>> error.throw()  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft.experimental.checkify.JaxRuntimeError: -1.0 has no real root
    """


class JaxException(Exception):
    """Base of the kinds of failures: what `Error.get_exception` returns, and the cause of a `JaxRuntimeError`.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import checkify
        >>> error, _ = checkify.checkify(jnp.log, errors=checkify.nan_checks)(-1.0)
        >>> isinstance(error.get_exception(), checkify.JaxException)
        True
    """


class FailedCheckError(JaxException):
    """A condition given to `check` was false.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import checkify
        >>> def f(x):
        ...     checkify.check(x > 0, "x must be positive")
        ...     return x
        >>> type(checkify.checkify(f)(-1.0)[0].get_exception()).__name__
        'FailedCheckError'
    """


class NaNError(JaxException):
    """An operation gave a NaN.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import checkify
        >>> type(checkify.checkify(jnp.log, errors=checkify.nan_checks)(-1.0)[0].get_exception()).__name__
        'NaNError'
    """


class DivisionByZeroError(JaxException):
    """A denominator was zero.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import checkify
        >>> checked = checkify.checkify(lambda x: 1 / x, errors=checkify.div_checks)
        >>> type(checked(0.0)[0].get_exception()).__name__
        'DivisionByZeroError'
    """


class OOBError(JaxException):
    """An index was out of bounds.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import checkify
        >>> checked = checkify.checkify(lambda x, i: x[i], errors=checkify.index_checks)
        >>> type(checked(jnp.ones(3), 5)[0].get_exception()).__name__
        'OOBError'
    """


ErrorCategory = type[JaxException]
user_checks = frozenset({FailedCheckError})
nan_checks = frozenset({NaNError})
index_checks = frozenset({OOBError})
div_checks = frozenset({DivisionByZeroError})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks

# Operations that can make a NaN; all others only hand on what they get.
_NAN_MAKERS = frozenset(
    """
        acos acosh add add_any asin asinh atan atan2 atanh cos cosh cumlogsumexp cumprod cumsum digamma div dot_general
        erf_inv exp exp2 expm1 fft igamma igammac igamma_grad_a integer_pow lgamma log log1p logistic mul polygamma pow
        psum random_gamma_grad reduce reduce_prod reduce_sum reduce_window reduce_window_sum regularized_incomplete_beta
        rem rsqrt scatter-add scatter_add scatter-mul scatter_mul sin sinh sqrt cbrt sub tan tanh zeta
        conv_general_dilated cholesky lu qr eigh svd triangular_solve bessel_i0e bessel_i1e
    """.split()
)
_codes = itertools.count(1)
_int32 = lambda value: TypedScalar(value, shaped((), dtypes.int32))
_LATE = 0  # the code of what fails in the rule of a custom derivative


class Failure(NamedTuple):
    """What one place of a program can fail with."""

    kind: ErrorCategory
    text: str  # the message, or its format
    tree: Any  # the structure of (args, kwargs) of the format; None where the text is all
    source: Any

    def message(self, payload: Sequence) -> str:
        if self.kind is OOBError:
            index, axis, size = payload[0].tolist()
            return f"{self.text}: index {index} is out of bounds for axis {axis} with size {size}. "
        if self.tree is None:
            return self.text
        args, kwargs = tree_unflatten(self.tree, payload)
        return f"{self.text.format(*args, **kwargs)} (`check` failed)"


class Error:
    """What went wrong first, if anything; a pytree, so that it is returned from compiled functions. Made by
    `checkify`.
    """

    def __init__(self, pred, code, payloads: Sequence, slots: tuple, failures: tuple):
        self._pred, self._code, self._payloads = pred, code, payloads  # whether; which; arrays of each slot
        self._slots, self._failures = slots, failures  # the avals of each slot; (code, its slot, Failure)

    def _messages(self) -> list[tuple[str, ErrorCategory, Any]]:
        known = {code: (slot, failure) for code, slot, failure in self._failures}
        found: list[tuple[str, ErrorCategory, Any]] = []
        for at in itertools.product(*map(range, getattr(self._pred, "shape", ()))):
            if not _element(self._pred, at):
                continue
            prefix = f"at mapped index {', '.join(map(str, at))}: " if at else ""
            entry = known.get(int(_element(self._code, at)))
            if entry is None:
                found.append(
                    (
                        prefix + "a check failed in the derivative rule of a custom_jvp or custom_vjp function",
                        FailedCheckError,
                        None,
                    )
                )
                continue
            slot, failure = entry
            arrays = self._payloads[slot] if slot is not None else []
            found.append((prefix + failure.message([_element(x, at) for x in arrays]), failure.kind, failure.source))
        return found

    def get(self) -> str | None:
        """The message of what failed.

        Returns:
            None if nothing failed; otherwise a str, with a line for each failing element of a mapped function.
        """
        return "\n".join(text for text, _, _ in self._messages()) or None

    def get_exception(self) -> JaxException | None:
        """What failed first, as an instance of its kind, or None if nothing failed.

        Returns:
            a `FailedCheckError`, `NaNError`, `OOBError` or `DivisionByZeroError` with the message.

        Example:
            >>> import weft
            >>> from weft.experimental import checkify
            >>> err, _ = checkify.checkify(lambda x: 1 / x, checkify.div_checks)(0.0)
            >>> err.get_exception()
            DivisionByZeroError('division by zero')
        """
        messages = self._messages()
        return messages[0][1](messages[0][0]) if messages else None

    def throw(self) -> None:
        """Raises the error if there is one: a `JaxRuntimeError` with the message and its line, caused by what
        `get_exception` returns.
        """
        messages = self._messages()
        if messages:
            first, kind, source = messages[0]
            line = f"\n  at {source}" if source is not None and source.code is not None else ""
            raise JaxRuntimeError("\n".join(text for text, _, _ in messages) + line) from kind(first)

    @override
    def __repr__(self):
        return f"Error({self.get()})" if not isinstance(self._pred, Tracer) else "Error(<traced>)"


def _element(x, at: tuple):
    """An element or a slice of a concrete array, as the host has it: a scalar is a number that every format takes."""
    host = x._host() if is_array(x) else x
    if dtypes.is_python_scalar(host):
        return host
    if not isinstance(host, HostArray):
        return np.asarray(host)[at]
    return x[at] if len(host.shape) > len(at) else x[at].tolist() if at else host.tolist()


register_pytree_node(
    Error, lambda e: ((e._pred, e._code, e._payloads), (e._slots, e._failures)), lambda aux, xs: Error(*xs, *aux)
)


def init_error() -> Error:
    """An error that says that nothing has failed.

    Returns:
        an `Error`, a pytree whose first leaf is a boolean scalar.

    Example:
        >>> from weft.experimental import checkify
        >>> print(checkify.init_error().get())
        None
    """
    return Error(jnp.zeros((), bool), jnp.zeros((), "int32"), (), (), ())


# check ---------------------------------------------------------------------------------------------------------------

_effect = Effect("Error")
check_p = Primitive(
    "check",
    multiple_results=True,
    hidden=("slots", "failures"),
    wire=stays(
        "its message is built in this process; weft.experimental.checkify.checkify makes it a result of the program"
    ),
)
check_p.cache = None


def _split_slots(slots: tuple, payload: Sequence) -> list[list]:
    rest = iter(payload)
    return [[next(rest) for _ in slot] for slot in slots]


def _check_impl(failed, code, *payload, slots, failures, debug):
    if not debug:
        host = lambda x: x.val if type(x) is TypedScalar else x
        Error(host(failed), host(code), _split_slots(slots, list(map(host, payload))), slots, failures).throw()
    return []


def _check_decompose(failed, code, *payload, slots, failures, debug):
    if not debug:
        raise ValueError(
            f"the check {failures[0][2].text!r} at {failures[0][2].source} is in a program (of jit, scan or the like)"
            " that"
            f" was not functionalized, so its error can't leave the program. Wrap the outermost function: err, out ="
            " checkify.checkify(f)(…), and then err.throw()."
        )
    return []


def _check_jvp(primals, tangents, **params):
    check_p.bind(*primals, **params)
    return [], []


def _check_batch(axis, args, dims, **params):
    check_p.bind(*[to_front(axis, x, d) for x, d in zip(args, dims)], **params)
    return [], []


check_p.abstract = lambda *avals, **_: []
check_p.impl, check_p.decompose, check_p.jvp, check_p.batch = _check_impl, _check_decompose, _check_jvp, _check_batch
check_p.reference = AsDecomposed(check_p)
check_p.transpose = unsupported("a check is not linear")
check_p.effects = lambda params: frozenset([_effect])


def check(pred, msg: str, *fmt_args, debug: bool = False, **fmt_kwargs) -> None:
    """Fails with a message if a condition is false.

    With known values it raises at once. A function that is compiled or mapped must be wrapped by `checkify`, which
    returns the error.

    Args:
        pred: the condition; a boolean scalar.
        msg: the message, with places for `str.format`.
        *fmt_args: values for the places: pytrees of arrays of any shapes and dtypes.
        debug: whether the check is left out where the function is not wrapped by `checkify`.
        **fmt_kwargs: values for the places that have a name.

    Returns:
        None

    Raises:
        JaxRuntimeError: the condition is known to be false.
        TypeError: `pred` is not a boolean scalar, or a value is not a pytree of arrays.
        ValueError: the check is in a compiled function that is not wrapped by `checkify`.

    Example:
        >>> import weft
        >>> from weft.experimental import checkify
        >>> def f(x):
        ...     checkify.check(x > 0, "{x} must be positive", x=x)
        ...     return weft.lax.log(x)
        >>> err, out = weft.jit(checkify.checkify(f))(-1.0)
        >>> err.get()
        '-1.0 must be positive (`check` failed)'
    """
    aval = get_aval(pred)
    if aval.shape or not dtypes.is_bool(aval.dtype):
        raise TypeError(f"check takes a boolean scalar as `pred`; got {aval.str_short()}.")
    leaves, tree = tree_flatten((fmt_args, fmt_kwargs))
    for x in leaves:
        if not is_array_like(x):
            raise TypeError(
                f"Formatting arguments to checkify.check need to be PyTrees of arrays, but got {x} of type {type(x)}."
            )
    msg.format(*fmt_args, **fmt_kwargs) if not leaves else None  # an error in the text is said here
    avals = tuple([array_aval(get_aval(x)).strip_weak_type() for x in leaves])
    code = next(_codes)
    failures = ((code, 0, Failure(FailedCheckError, msg, tree, current(2))),)
    check_p.bind(jnp.logical_not(pred), _int32(code), *leaves, slots=(avals,), failures=failures, debug=bool(debug))


def debug_check(pred, msg: str, *fmt_args, **fmt_kwargs) -> None:
    """`check` that does nothing where the function is not wrapped by `checkify`.

    Args:
        pred, msg: as for `check`: a boolean scalar and a str.
        *fmt_args, **fmt_kwargs: as for `check`.

    Returns:
        None

    Raises:
        TypeError: `pred` is not a boolean scalar, or a value is not a pytree of arrays.

    Example:
        >>> import weft
        >>> from weft.experimental import checkify
        >>> def f(x):
        ...     checkify.debug_check(x > 0, "{x} must be positive", x=x)
        ...     return 2 * x
        >>> float(weft.jit(f)(-1.0))
        -2.0
        >>> weft.jit(checkify.checkify(f))(-1.0)[0].get()
        '-1.0 must be positive (`check` failed)'
    """
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def check_error(error: Error) -> None:
    """Raises the error of a function that `checkify` has wrapped.

    Inside of another such function, the error becomes part of the one that is returned there.

    Args:
        error: the `Error`; of one call, not of a mapped function.

    Returns:
        None

    Raises:
        JaxRuntimeError: the error says that something failed.
        ValueError: `error` is not an `Error`, or is one of a mapped function.

    Example:
        >>> from weft.experimental import checkify
        >>> err, y = checkify.checkify(lambda x: 1 / x, checkify.div_checks)(2.0)
        >>> checkify.check_error(err)
    """
    if not isinstance(error, Error):
        raise ValueError(f"check_error takes an Error, as checkify returns it; got {type(error).__name__}.")
    if get_aval(error._pred).shape:
        raise ValueError(
            "check_error takes the error of one call; this one comes out of vmap. Reduce it first, or throw it."
        )
    if error._failures:
        check_p.bind(
            error._pred,
            error._code,
            *[x for slot in error._payloads for x in slot],
            slots=error._slots,
            failures=error._failures,
            debug=False,
        )


# running a program with the state ------------------------------------------------------------------------------------


class _State(NamedTuple):
    """Whether anything failed, the code of the first failure, and the values that its message shows, by their types."""

    failed: Any
    code: Any
    payloads: tuple  # of lists, one for each slot

    def flat(self) -> list:
        return [self.failed, self.code, *[x for slot in self.payloads for x in slot]]


class _Checks:
    """The places of one program that can fail, and how they are checked."""

    def __init__(self, errors: frozenset, slots: tuple = (), late: bool = False):
        self.errors, self.late = errors, late
        self.slots: list[tuple] = list(slots)
        self.codes: dict = {}  # (equation, kind) -> code
        self.failures: dict = {}  # code -> (slot, Failure)
        self.alive: list = []  # equations, so that their ids stay theirs

    # what can fail

    def slot(self, avals: tuple) -> int:
        if avals not in self.slots:
            self.slots.append(avals)
        return self.slots.index(avals)

    def collect(self, jaxpr: Jaxpr) -> None:
        """Takes note of the values that the messages of a program show."""
        for eqn in jaxpr.eqns:
            if eqn.primitive is check_p and FailedCheckError in self.errors:
                for slot in eqn.params["slots"]:
                    self.slot(slot)
            elif OOBError in self.errors and _is_indexing(eqn):
                self.slot(_OOB_SLOT)
            for sub in _programs(eqn):
                self.collect(sub)

    def can_fail(self, jaxpr: Jaxpr) -> bool:
        return any(
            eqn.primitive is check_p
            or NaNError in self.errors
            and _makes_nans(eqn)
            or DivisionByZeroError in self.errors
            and eqn.primitive.name == "div"
            or OOBError in self.errors
            and _is_indexing(eqn)
            or any(map(self.can_fail, _programs(eqn)))
            for eqn in jaxpr.eqns
        )

    # the state

    def start(self) -> _State:
        return _State(
            jnp.zeros((), bool), jnp.zeros((), "int32"), tuple([[zeros(a) for a in slot] for slot in self.slots])
        )

    def unflat(self, values: Sequence) -> _State:
        return _State(values[0], values[1], tuple(_split_slots(tuple(self.slots), values[2:])))

    @property
    def size(self) -> int:
        return 2 + sum(map(len, self.slots))

    def fail(
        self, state: _State, eqn: JaxprEqn, kind: ErrorCategory, failed, text: str, payload: tuple | None = None
    ) -> _State:
        """The state after a place of the program was checked; the first failure stays."""
        if self.late:
            return self.merge(state, failed, _int32(_LATE), {})
        key = (id(eqn), kind)
        if key not in self.codes:
            self.codes[key] = next(_codes)
            self.alive.append(eqn)
            self.failures[self.codes[key]] = (
                None if payload is None else self.slot(_OOB_SLOT),
                Failure(kind, text, None, eqn.source_info),
            )
        return self.merge(state, failed, _int32(self.codes[key]), {} if payload is None else {_OOB_SLOT: payload})

    def merge(self, state: _State, failed, code, payload: dict) -> _State:
        new = jnp.logical_and(failed, jnp.logical_not(state.failed))
        pick = lambda x, old: jnp.where(new, convert(x, get_aval(old).dtype), old)
        slots = [
            [pick(x, old) for x, old in zip(payload[slot], olds)] if slot in payload else olds
            for slot, olds in zip(self.slots, state.payloads)
        ]
        return _State(jnp.logical_or(state.failed, failed), pick(code, state.code), tuple(slots))

    def user_check(self, state: _State, failed, code, *payload, slots, failures, debug) -> _State:
        if FailedCheckError not in self.errors:
            return state
        values = _split_slots(slots, payload)
        rank = len(get_aval(failed).shape)
        if rank:  # a check under vmap: the first element that fails
            first = jnp.argmax(jnp.ravel(failed))
            values = [
                [jnp.reshape(x, (-1, *a.shape))[first] for x, a in zip(group, slot)]
                for group, slot in zip(values, slots)
            ]
            code, failed = jnp.ravel(jnp.broadcast_to(code, failed.shape))[first], jnp.any(failed)
        if self.late:
            return self.merge(state, failed, _int32(_LATE), {})
        for number, slot, failure in failures:
            self.failures[number] = (None if slot is None else self.slot(slots[slot]), failure)
        return self.merge(state, failed, code, dict(zip(slots, values)))

    # programs

    def discharge(self, closed: ClosedJaxpr) -> ClosedJaxpr:
        """The program (state, arguments) -> (state, results)."""

        def run(*xs):
            state, outs = self.run(closed.jaxpr, closed.consts, self.unflat(xs[: self.size]), xs[self.size :])
            return [*state.flat(), *outs]

        return stage_closed(run, [*[get_aval(x) for x in self.start().flat()], *closed.in_avals], "a checked function")

    def rule(self, fun: Callable, state: Sequence | None, args: Sequence) -> tuple[list, list]:
        """Runs a user's rule. What fails in it is told without its text: it is traced when programs are staged."""
        traced = ClosedJaxpr(*stage(fun, [get_aval(x) for x in args], "the rule of a custom derivative"))
        late = _Checks(self.errors, tuple(self.slots), late=True)
        before = late.start() if state is None else self.unflat(state)
        after, outs = late.run(traced.jaxpr, traced.consts, before, args)
        return after.flat(), outs

    def run(self, jaxpr: Jaxpr, consts: Sequence, state: _State, args: Sequence) -> tuple[_State, list]:
        """Runs a program with the state."""

        def apply(eqn: JaxprEqn, values: list) -> list:
            nonlocal state
            state, outs = self.equation(eqn, state, values)
            return outs

        outs = eval_equations(jaxpr, consts, args, apply)
        return state, outs

    def equation(self, eqn: JaxprEqn, state: _State, args: list) -> tuple[_State, list]:
        primitive = eqn.primitive
        if primitive is check_p:
            return self.user_check(state, *args, **eqn.params), []
        carries = primitive.carries
        if carries is not None and any(map(self.can_fail, _programs(eqn))):
            outs = _threaded(self, carries, eqn, state.flat(), args)
            return self.unflat(outs[: self.size]), outs[self.size :]
        out = primitive.bind(*args, **eqn.params)
        outs = out if primitive.multiple_results else [out]
        if OOBError in self.errors and _is_indexing(eqn):
            where, shape = _out_of_bounds(eqn, args), get_aval(args[0]).shape
            if where is not None:
                state = self.fail(
                    state, eqn, OOBError, where[0], f"out-of-bounds indexing for array of shape {shape}", (where[1],)
                )
        if DivisionByZeroError in self.errors and primitive.name == "div":
            state = self.fail(state, eqn, DivisionByZeroError, jnp.any(jnp.equal(args[1], 0)), "division by zero")
        if NaNError in self.errors and _makes_nans(eqn):
            bad = [jnp.any(jnp.isnan(x)) for x in outs if dtypes.is_inexact(get_aval(x).dtype)]
            failed = bad[0]
            for more in bad[1:]:
                failed = jnp.logical_or(failed, more)
            state = self.fail(state, eqn, NaNError, failed, f"nan generated by primitive: {primitive.name}.")
        return state, list(outs)


def _programs(eqn: JaxprEqn) -> list[Jaxpr]:
    """The programs of an equation through which the state goes."""
    carries = eqn.primitive.carries
    if carries is None or not carries.extensible and eqn.primitive.with_state is None:
        return []
    return [closed.jaxpr for closed in carries.jaxprs(eqn.params)]


def _makes_nans(eqn: JaxprEqn) -> bool:
    return eqn.primitive.name in _NAN_MAKERS and any(dtypes.is_inexact(v.aval.dtype) for v in eqn.outvars)


def _is_indexing(eqn: JaxprEqn) -> bool:
    name = eqn.primitive.name
    return name in ("gather", "dynamic_slice", "dynamic_update_slice") or name.startswith("scatter")


_OOB_SLOT = (shaped((3,), dtypes.int32),)  # index, axis, size


def _out_of_bounds(eqn: JaxprEqn, args: list):
    """(whether an index is out of bounds, [index, axis, size] of the first that is); None where there is no index."""
    shape = get_aval(args[0]).shape
    if eqn.primitive.name.startswith("dynamic"):
        sizes = eqn.params["slice_sizes"] if eqn.primitive.name == "dynamic_slice" else get_aval(args[1]).shape
        starts = args[1:] if eqn.primitive.name == "dynamic_slice" else args[2:]
        if not starts:
            return None
        index, axes = jnp.stack([convert(s, dtypes.int32) for s in starts]), list(range(len(shape)))
    else:
        dn = eqn.params["dimension_numbers"]
        if eqn.primitive.name == "gather":
            axes, sizes = list(dn.start_index_map), eqn.params["slice_sizes"]
        else:
            axes = list(dn.scatter_dims_to_operand_dims)
            windows = iter([get_aval(args[2]).shape[d] for d in dn.update_window_dims])
            sizes = [
                1 if d in dn.inserted_window_dims or d in dn.operand_batching_dims else next(windows)
                for d in range(len(shape))
            ]
        index = args[1]
        if not axes or 0 in get_aval(index).shape:
            return None
        index = jnp.reshape(convert(index, dtypes.int32), (-1, len(axes)))
    bounds = jnp.array([shape[d] - sizes[d] for d in axes], "int32")
    bad = jnp.ravel(
        jnp.logical_or(
            jnp.less(index, 0),
            jnp.greater(index, bounds.reshape((1,) * (len(get_aval(index).shape) - 1) + bounds.shape)),
        )
    )
    first = jnp.argmax(bad)
    which = first % len(axes)
    values = [
        jnp.ravel(index)[first],
        jnp.array(axes, "int32")[which],
        jnp.array([shape[d] for d in axes], "int32")[which],
    ]
    return jnp.any(bad), jnp.stack([convert(v, dtypes.int32) for v in values])


# primitives that carry programs --------------------------------------------------------------------------------------


def _threaded(checks: _Checks, carries: Carries, eqn: JaxprEqn, state: list, args: list) -> list:
    """The equation with the state among its operands and results: a loop carries it, elsewhere it leads."""
    primitive, params = eqn.primitive, eqn.params
    if carries.has_condition:
        return _while(checks, carries, eqn, state, args)
    n, jaxprs = len(state), []
    for program in carries.programs(params, len(args)):
        closed = checks.discharge(program.closed)
        if carries.counted is not None:
            at = len(program.operands) - program.rows - carries.sizes(params, len(args))[CARRY]
            closed = reorder(closed, [*range(n, n + at), *range(n), *range(n + at, len(closed.in_avals))])
        jaxprs.append(closed)
    leading = {CARRY: state} if carries.counted is not None else {groups[0]: state for groups in carries.takes.values()}
    if primitive.with_state is not None:
        params = primitive.with_state(params, n, checks.rule)
    params, operands = carries.rebuilt(*carries.insert(params, args, leading), jaxprs)
    return primitive.bind(*operands, **params)


def _while(checks: _Checks, carries: Carries, eqn: JaxprEqn, state: list, args: list) -> list:
    """The condition gives nothing but whether to go on: it is checked before the loop and after each iteration."""
    params, n = eqn.params, len(state)
    carry = carries.split(params, args)[CARRY]
    test, loop = carries.programs(params, len(args))
    cc, bc = len(test.operands) - len(carry), len(loop.operands) - len(carry)
    cond_consts, body_consts = test.arguments(args)[:cc], loop.arguments(args)[:bc]
    cond, body = test.closed, loop.closed
    avals = lambda xs: [get_aval(x) for x in xs]
    checked = checks.can_fail(cond.jaxpr)
    if checked:
        found, _ = checks.run(cond.jaxpr, cond.consts, checks.unflat(state), [*cond_consts, *carry])
        state = found.flat()

    def goes_on(*xs):
        return checks.run(cond.jaxpr, cond.consts, checks.start(), [*xs[:cc], *xs[cc + n :]])[1]

    def step(*xs):  # the constants of both, the state, the carry
        s, rest = checks.unflat(xs[cc + bc : cc + bc + n]), xs[cc + bc + n :]
        s, new = checks.run(body.jaxpr, body.consts, s, [*xs[cc : cc + bc], *rest])
        if checked:
            s, _ = checks.run(cond.jaxpr, cond.consts, s, [*xs[:cc], *new])
        return [*s.flat(), *new]

    new_cond = stage_closed(goes_on, avals([*cond_consts, *state, *carry]), "a checked condition")
    new_body = stage_closed(step, avals([*cond_consts, *body_consts, *state, *carry]), "a checked loop")
    _, (first, *_) = carries.takes.values()
    params, operands = carries.insert(params, args, {first: cond_consts, CARRY: state})
    return eqn.primitive.bind(*operands, **carries.with_jaxprs(params, [new_cond, new_body]))


def checkify(f: Callable, errors: frozenset = user_checks) -> Callable[..., tuple[Error, Any]]:
    """Makes a function that returns an error beside its result, instead of raising it. It can be compiled, mapped and
    differentiated.

    Args:
        f: a function of pytrees of arrays of any shapes and dtypes.
        errors: what is checked: `user_checks` (calls of `check`), `nan_checks`, `div_checks`, `float_checks` (both
            of these), `index_checks`, `automatic_checks` (all but the calls of `check`) or `all_checks`. `|` unites
            such sets.

    Returns:
        a function of the same arguments that returns (error, result). `error` is an `Error`: `error.get()` is its
        message, and `error.throw()` raises it.

    Raises:
        TypeError: `f` is not a function.
        ValueError: `errors` has kinds of errors that do not exist.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.experimental import checkify
        >>> err, out = weft.jit(checkify.checkify(lambda x, i: jnp.log(x)[i], checkify.all_checks))(jnp.ones(3), 5)
        >>> err.get()
        'out-of-bounds indexing for array of shape (3,): index 5 is out of bounds for axis 0 with size 3. '
    """
    if not callable(f):
        raise TypeError(f"checkify takes a function; got {type(f).__name__}. Call checkify(f)(…), not checkify(f(…)).")
    errors = frozenset(errors)
    if not errors <= all_checks:
        raise ValueError(
            f"checkify: unknown kinds of errors: {', '.join(sorted(str(e) for e in errors - all_checks))}. Use the sets"
            " of weft.experimental.checkify."
        )

    @wraps(f)
    def checked(*args, **kwargs):
        leaves, tree = tree_flatten((args, kwargs))
        dynamic = [i for i, x in enumerate(leaves) if is_array_like(x)]
        box: list = []

        def flat(*xs):
            values = list(leaves)
            for i, x in zip(dynamic, xs):
                values[i] = x
            inner, kw = tree_unflatten(tree, values)
            outs, out_tree = tree_flatten(f(*inner, **kw))
            box.append(out_tree)
            return outs

        values = [leaves[i] for i in dynamic]
        closed, outer = hoist_tracers(
            *stage(flat, [get_aval(x) for x in values], f"the function {getattr(f, '__name__', 'f')}")
        )
        checks = _Checks(errors)
        checks.collect(closed.jaxpr)
        state, outs = checks.run(closed.jaxpr, closed.consts, checks.start(), [*outer, *values])
        failures = tuple((code, slot, failure) for code, (slot, failure) in checks.failures.items())
        error = Error(state.failed, state.code, state.payloads, tuple(checks.slots), failures)
        return error, tree_unflatten(box[0], [jnp.asarray(x) for x in outs])

    return checked


def __dir__() -> list[str]:
    return sorted(__all__)
