"""Looking into programs while they run: `print`, `callback` and `breakpoint`, which work under jit, vmap, grad and
in loops.
"""

from __future__ import annotations

import builtins
import inspect
import logging
import pdb
import string
import sys
from typing import Any, Callable, Container, Mapping, Sequence, overload

from ..base.annotations import override
from ..base import dtypes
from .callback import bind_debug_callback, host_function
from ..primitives.inspection import inspect_sharding_p
from ..core.effects import DebugEffect as DebugEffect, OrderedDebugEffect as OrderedDebugEffect
from ..core.trace import is_array
from ..base.errors import at_user_line
from ..base.host import HostArray
from ..base.source_info import is_internal
from ..base.tree import tree_leaves, tree_map

_log = logging.getLogger("weft.debug")


class _Checker(string.Formatter):
    """Formats, and refuses arguments that the text does not mention."""

    @override
    def check_unused_args(
        self, used_args: Container[int | str], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        extra = [i for i in range(len(args)) if i not in used_args]
        if extra:
            raise ValueError(
                f"debug.print: the text has no place for the positional argument{'s' if len(extra) > 1 else ''}"
                f" {', '.join(map(str, extra))}. Write {{}} where each value belongs."
            )
        unused = [k for k in kwargs if k not in used_args]
        if unused:
            raise ValueError(
                f"debug.print: the text mentions no {', '.join(unused)}. If it is an f-string, its values were put in"
                " while the program was traced: leave the f away, and debug.print puts them in when it runs."
            )


class _Anything:
    """Stands for a value that is not known yet; takes every format specification."""

    @override
    def __format__(self, spec):
        return ""

    def __getattr__(self, name):
        return self

    def __getitem__(self, index):
        return self


class _Print:
    """The function that a program calls to print. Equal texts give equal objects, so that compiled programs are found
    in the cache.
    """

    __slots__ = ("fmt", "logged", "__name__")

    def __init__(self, fmt: str, logged: bool):
        self.fmt, self.logged, self.__name__ = fmt, logged, "print"

    def __call__(self, *args, **kwargs):
        args, kwargs = tree_map(_shown, (args, kwargs))
        text = self.fmt.format(*args, **kwargs)
        # unchecked, it may have no place for them
        if all(field is None for _, field, _, _ in string.Formatter().parse(self.fmt)):
            text = " ".join([text, *map(str, args)])
        if self.logged:
            _log.info("%s", text)
        else:
            sys.stdout.write(text + "\n")
            sys.stdout.flush()

    @override
    def __eq__(self, other):
        return type(other) is _Print and (self.fmt, self.logged) == (other.fmt, other.logged)

    @override
    def __hash__(self):
        return hash((self.fmt, self.logged))


def _shown(x):
    """An array as the host's; a scalar as a number, so that format specifications such as {:.3f} apply."""
    if not is_array(x) or dtypes.is_key(x.dtype):
        return x
    value = x._host()
    if isinstance(value, HostArray):
        return x if value.shape else value.tolist()
    return value[()]


@overload
def print(
    fmt: str,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = False,
    **kwargs: Any,
) -> None: ...
@overload
def print(
    *, ordered: bool = False, partitioned: bool = False, skip_format_check: bool = False, _use_logging: bool = False
) -> Callable[..., None]: ...
def print(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = False,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """Prints values while a program runs, also under jit, vmap, grad and in loops.

    Args:
        fmt: text for `str.format`, with `{}` or `{name}` where values belong; never an f-string. If it is None, the
            result is a function that takes it and the values, and prints with these options:
            `print(ordered=True)("{}", x)`.
        *args: pytrees of arrays, of any dtype and shape, and other values: for `{}`.
        ordered: bool: print in the order of the program.
        partitioned: bool: has no effect, because weft always prints whole values.
        skip_format_check: bool: do not look for values that `fmt` does not mention.
        **kwargs: pytrees of arrays and other values, for `{name}`.

    Returns:
        None, or a function if `fmt` is None.

    Raises:
        ValueError: for a value that `fmt` does not mention.
        IndexError, KeyError: for a place of `fmt` without a value.
        TypeError: if `fmt` is not a text.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> f = weft.jit(lambda x: weft.debug.print("sum {s:.1f} of {x}", s=jnp.sum(x), x=x))
        >>> f(jnp.arange(3.)); weft.effects_barrier()
        sum 3.0 of [0. 1. 2.]
    """
    if fmt is None:
        _no_values("debug.print", args, kwargs)
        return lambda fmt, *args, **kwargs: _print(
            fmt, args, kwargs, ordered, partitioned, skip_format_check, _use_logging
        )
    _print(fmt, args, kwargs, ordered, partitioned, skip_format_check, _use_logging)
    return None


def _no_values(name: str, args: tuple, kwargs: dict) -> None:
    if args or kwargs:
        values = ", ".join([*map(repr, args), *[f"{k}={v!r}" for k, v in kwargs.items()]])
        raise TypeError(
            at_user_line(
                f"{name} got the values {values} and nothing to do with them: give them to the function that it"
                f" returns, {name}(…)(…, {values})."
            )
        )


def _print(
    fmt: str, args: tuple, kwargs: dict, ordered: bool, partitioned: bool, skip_format_check: bool, logged: bool
) -> None:
    if not isinstance(fmt, str):
        raise TypeError(
            f'debug.print takes a format string first; got {type(fmt).__name__}. Write debug.print("{{}}", value).'
        )
    if not skip_format_check:
        some = _Anything()
        try:
            _Checker().format(fmt, *[some] * len(args), **dict.fromkeys(kwargs, some))
        except (ValueError, LookupError) as e:
            raise type(e)(
                at_user_line(
                    str(e)
                    if isinstance(e, ValueError)
                    else f"debug.print: the text {fmt!r} mentions {e}, which is not given"
                )
            ) from None
    bind_debug_callback(_Print(fmt, logged), args, kwargs, ordered, partitioned)


@overload
def log(
    fmt: str,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = True,
    **kwargs: Any,
) -> None: ...
@overload
def log(
    *, ordered: bool = False, partitioned: bool = False, skip_format_check: bool = False, _use_logging: bool = True
) -> Callable[..., None]: ...
def log(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = True,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """Writes values to the logger `weft.debug`, at the level INFO, while a program runs; otherwise like `print`.

    Args:
        fmt: text for `str.format`, or None, as for `print`.
        *args: pytrees of arrays, of any dtype and shape, and other values: for `{}`.
        ordered: bool: write in the order of the program.
        partitioned: bool: has no effect.
        skip_format_check: bool: do not look for values that `fmt` does not mention.
        **kwargs: pytrees of arrays and other values, for `{name}`.

    Returns:
        None, or a function if `fmt` is None.

    Raises:
        ValueError, IndexError, KeyError, TypeError: as `print`.

    Example:
        >>> import weft
        >>> weft.jit(lambda x: weft.debug.log("x is {}", x))(3)
    """
    if fmt is None:
        _no_values("debug.log", args, kwargs)
        return lambda fmt, *args, **kwargs: _print(
            fmt, args, kwargs, ordered, partitioned, skip_format_check, _use_logging
        )
    _print(fmt, args, kwargs, ordered, partitioned, skip_format_check, _use_logging)
    return None


@overload
def callback(
    callback: Callable[..., Any], *args: Any, ordered: bool = False, partitioned: bool = False, **kwargs: Any
) -> None: ...
@overload
def callback(*, ordered: bool = False, partitioned: bool = False) -> Callable[..., None]: ...
def callback(
    callback: Callable[..., Any] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """Calls a Python function with values while a program runs, and ignores its result.

    Arguments that are not arrays are passed unchanged. Under grad the function is called with primal values, under vmap
    once for each element.

    Args:
        callback: the function. If it is None, the result is a function that takes it and its arguments:
            `callback(ordered=True)(f, x)`. Keyword arguments that have the name of an option can only be passed this
            way.
        *args: pytrees of arrays, of any dtype and shape, and other values: the arguments of the function.
        ordered: bool: call in the order of the program.
        partitioned: bool: has no effect, because weft always passes whole values.
        **kwargs: keyword arguments of the function.

    Returns:
        None, or a function if `callback` is None.

    Example:
        >>> import weft
        >>> seen = []
        >>> weft.grad(lambda x: (weft.debug.callback(lambda v: seen.append(float(v)), x), x * x)[1])(3.0)
        Array(6., dtype=float32, weak_type=True)
        >>> seen
        [3.0]
    """
    if callback is None:
        _no_values("debug.callback", args, kwargs)
        return lambda callback, *args, **kwargs: bind_debug_callback(callback, args, kwargs, ordered, partitioned)
    bind_debug_callback(callback, args, kwargs, ordered, partitioned)
    return None


def breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token=None,
    **kwargs: Any,
) -> None:
    """Stops in Python's debugger while the program runs.

    At the prompt, the array variables of the innermost calling function have their names. `frames` lists where all
    callers are, and `c` continues.

    Args:
        backend: None or "cli": Python's pdb on the console, the only backend.
        filter_frames: bool: leave out weft's own frames.
        num_frames: int: how many callers to list; None for all.
        ordered: bool: breakpoints happen in the order of the program.
        token: None, the only value that is taken.
        **kwargs: ignored.

    Returns:
        None.

    Raises:
        ValueError: for another backend, and for a token.

    Example:
        >>> import weft
        >>> weft.jit(lambda x: x)(1)     # with weft.debug.breakpoint() before it, this would wait for a command
        Array(1, dtype=int32, weak_type=True)
    """
    if backend not in (None, "cli"):
        raise ValueError(f"debug.breakpoint has the backend 'cli' only; got {backend!r}.")
    if token is not None:
        raise ValueError(
            f"debug.breakpoint takes no token, got {token!r}; for breakpoints in the order of the program use"
            " ordered=True."
        )
    frames = []
    for info in inspect.stack(context=0)[1:]:
        if not (filter_frames and is_internal(info.frame.f_code.co_filename)):
            frames.append((f"{info.filename}:{info.lineno} ({info.function})", dict(info.frame.f_locals)))
    frames = frames[:num_frames]
    variables = [{k: v for k, v in found.items() if _passable(v)} for _, found in frames[:1]]
    bind_debug_callback(_Stop(tuple(where for where, _ in frames)), tuple(variables), {}, ordered, False)


def _passable(value) -> bool:
    try:
        host_function(_passable, (value,), {}, "debug.breakpoint")
        return True
    except TypeError:
        return False


class _Stop:
    """Starts the debugger at the place of a breakpoint."""

    def __init__(self, frames: tuple):
        self.frames, self.__name__ = frames, "breakpoint"

    def __call__(self, variables: dict | None = None):
        builtins.print(
            f"weft.debug.breakpoint at {self.frames[0] if self.frames else '<unknown>'}; variables:"
            f" {', '.join(variables or ()) or 'none'}"
        )
        scope = dict(variables or {}, frames=self.frames)
        console = pdb.Pdb(nosigint=True)
        console.prompt = "(weftdb) "
        console.run("pass  # the program waits here; 'p name' shows a variable, 'c' goes on", scope, scope)


def inspect_array_sharding(value: Any, *, callback: Callable) -> None:
    """Calls a function with the sharding of each array of a pytree: now, or, in a traced program, when it is compiled.

    Args:
        value: pytree of arrays, of any dtype and shape.
        callback: function of a `Sharding`.

    Returns:
        None.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> seen = []
        >>> weft.debug.inspect_array_sharding(jnp.ones(3), callback=seen.append)
        >>> seen[0].num_devices
        1
    """
    for x in tree_leaves(value):
        inspect_sharding_p.bind(x, callback=callback)


def visualize_array_sharding(arr: Any, **kwargs: Any) -> None:
    """Prints which device holds which part of an array, also inside a jitted function.

    Args:
        arr: array of any dtype, with one or two axes.
        **kwargs: keyword arguments of `visualize_sharding`.

    Returns:
        None.

    Raises:
        ValueError: for an array with another number of axes.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.debug.visualize_array_sharding(jnp.ones(3))
        ┌─────────┐
        │  CPU 0  │
        └─────────┘
    """
    shape = tuple(arr.shape)
    inspect_array_sharding(arr, callback=lambda sharding: visualize_sharding(shape, sharding, **kwargs))


def visualize_sharding(
    shape: Sequence[int],
    sharding: Any,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: Callable | None = None,
) -> None:
    """Prints which device holds which part of an array of a given shape.

    Args:
        shape: sequence of one or two ints.
        sharding: `Sharding`.
        use_color: bool: colour the parts, if the output is a terminal.
        scale: float: the width of the drawing, in characters for each element of the last axis.
        min_width: int: the least width of a part, in characters.
        max_width: int: the greatest width of the drawing, in characters.
        color_map: function from a float in [0, 1] to red, green and blue in [0, 1]; None for the default colours.

    Returns:
        None.

    Raises:
        ValueError: for a shape with another number of axes.

    Example:
        >>> import weft
        >>> weft.debug.visualize_sharding((4,), weft.sharding.SingleDeviceSharding(weft.devices("cpu")[0]))
        ┌─────────┐
        │  CPU 0  │
        └─────────┘
    """
    shape = tuple(shape)
    if not 1 <= len(shape) <= 2:
        raise ValueError(
            at_user_line(
                f"`visualize_sharding` only works for shapes with 1 and 2 dimensions; got {shape}. Reshape the array,"
                " or look at one index of it."
            )
        )
    holders: dict = {}  # (start of the rows, start of the columns) -> the numbers of its devices
    for device, parts in sharding.devices_indices_map(shape).items():
        starts = tuple((p.start or 0) for p in parts)
        holders.setdefault((0,) * (2 - len(starts)) + starts, []).append(device.id)
    rows, columns = (sorted({at[i] for at in holders}) for i in range(2))
    name = sharding.platform.upper()
    labels = {at: f"{name} {','.join(map(str, sorted(ids)))}" for at, ids in holders.items()}
    width = max(min_width, max(len(t) for t in labels.values()) + 2, int(shape[-1] * scale) // len(columns))
    width = max(min(width, max_width // len(columns)), max(len(t) for t in labels.values()))
    colours = sys.stdout.isatty() and use_color
    order = {at: i / max(len(labels) - 1, 1) for i, at in enumerate(sorted(labels))}

    def cell(at) -> str:
        text = labels[at].center(width)
        if not colours:
            return text
        red, green, blue = (
            int(255 * c)
            for c in (color_map(order[at])[:3] if color_map else (0.2 + 0.6 * order[at], 0.4, 0.8 - 0.6 * order[at]))
        )
        return f"\x1b[48;2;{red};{green};{blue}m{text}\x1b[0m"

    line = lambda left, middle, right: left + middle.join(["─" * width] * len(columns)) + right
    drawn = [f"│{'│'.join(cell((r, c)) for c in columns)}│" for r in rows]
    builtins.print(line("┌", "┬", "┐"), f"\n{line('├', '┼', '┤')}\n".join(drawn), line("└", "┴", "┘"), sep="\n")
