"""Looking into programs while they run: `print`, `callback` and `breakpoint`, which work under jit, vmap, grad and in loops."""
from __future__ import annotations

import builtins
import inspect
import pdb
import string
import sys
from typing import Any, Callable

from . import dtypes
from .control.callback import debug_callback, host_function
from .core.effects import DebugEffect as DebugEffect, OrderedDebugEffect as OrderedDebugEffect
from .errors import at_user_line
from .host import HostArray
from .source_info import is_internal
from .tree import tree_map


class _Formatter(string.Formatter):
    """Formats, and refuses keyword arguments that the text does not mention."""

    def check_unused_args(self, used_args, args, kwargs):
        unused = [k for k in kwargs if k not in used_args]
        if unused:
            raise ValueError(f"Unused keyword arguments to `weft.debug.print`: {unused}. You may be passing an f-string "
                             "(i.e, `f\"{x}\"`) into `weft.debug.print` and instead should pass in a regular string.")


class _Anything:
    """Takes every format specification; stands for values that are not known yet."""

    def __format__(self, spec):
        return ""

    def __getattr__(self, name):
        return self

    def __getitem__(self, index):
        return self


class _Print:
    """What a program calls to print: equal for equal texts, so that programs are found again."""
    __slots__ = ("fmt", "__name__")

    def __init__(self, fmt: str):
        self.fmt, self.__name__ = fmt, "print"

    def __call__(self, *args, **kwargs):
        args, kwargs = tree_map(_shown, (args, kwargs))
        sys.stdout.write(_Formatter().format(self.fmt, *args, **kwargs) + "\n")
        sys.stdout.flush()

    def __eq__(self, other):
        return type(other) is _Print and self.fmt == other.fmt

    def __hash__(self):
        return hash(self.fmt)


def _shown(x):
    """An array as the host's; a scalar as a number, so that format specifications such as {:.3f} apply."""
    if not hasattr(x, "_host") or dtypes.is_key(x.dtype):
        return x
    value = x._host()
    if isinstance(value, HostArray):
        return x if value.shape else value.tolist()
    return value[()]


def print(fmt: str, *args: Any, ordered: bool = False, partitioned: bool = False, skip_format_check: bool = False, **kwargs: Any) -> None:
    """Prints values while a program runs; `fmt` is a text for `str.format`, never an f-string.

    Args:
        fmt: the text, with `{}` or `{name}` where values belong.
        ordered: prints appear in the order of the program.
        skip_format_check: don't look for arguments that `fmt` does not mention.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.jit(lambda x: weft.debug.print("sum {s:.1f} of {x}", s=jnp.sum(x), x=x))(jnp.arange(3.)); weft.effects_barrier()
        sum 3.0 of [0. 1. 2.]
    """
    if not isinstance(fmt, str):
        raise TypeError(f"debug.print takes a format string first; got {type(fmt).__name__}. Write debug.print(\"{{}}\", value).")
    if not skip_format_check:
        some = _Anything()
        try:
            _Formatter().format(fmt, *[some] * len(args), **dict.fromkeys(kwargs, some))
        except (ValueError, LookupError) as e:
            raise type(e)(at_user_line(str(e) if isinstance(e, ValueError) else f"debug.print: the text {fmt!r} mentions {e}, which is not given")) from None
    debug_callback(_Print(fmt), *args, ordered=ordered, partitioned=partitioned, **kwargs)


def log(fmt: str, *args: Any, ordered: bool = False, partitioned: bool = False, skip_format_check: bool = False, **kwargs: Any) -> None:
    """`print`, to the same place."""
    print(fmt, *args, ordered=ordered, partitioned=partitioned, skip_format_check=skip_format_check, **kwargs)


def callback(callback: Callable, *args: Any, ordered: bool = False, partitioned: bool = False, **kwargs: Any) -> None:
    """Calls a Python function with values while a program runs; its result is ignored.

    Arguments that are no arrays are passed on as they are. Under grad it is called with primal values, under vmap once for each element.

    Args:
        callback: the function.
        ordered: calls happen in the order of the program.

    Example:
        >>> import weft
        >>> seen = []
        >>> weft.grad(lambda x: (weft.debug.callback(lambda v: seen.append(float(v)), x), x * x)[1])(3.0)
        Array(6., dtype=float32, weak_type=True)
        >>> seen
        [3.0]
    """
    debug_callback(callback, *args, ordered=ordered, partitioned=partitioned, **kwargs)


def breakpoint(*, backend: str | None = None, filter_frames: bool = True, num_frames: int | None = None, ordered: bool = False, token=None,
               **kwargs: Any) -> None:
    """Stops in Python's debugger while the program runs, with the local variables of the calling functions that are arrays.

    At the prompt, the innermost function's variables have their names; `frames` lists those of all callers, `c` goes on.

    Args:
        backend: None or "cli": Python's pdb on the console, the one there is.
        filter_frames: leave weft's own frames out.
        num_frames: how many callers to keep.
        ordered: breakpoints happen in the order of the program.

    Example:
        >>> import weft
        >>> weft.jit(lambda x: x)(1)     # with weft.debug.breakpoint() before it, this would wait for a command
        Array(1, dtype=int32, weak_type=True)
    """
    if backend not in (None, "cli"):
        raise ValueError(f"debug.breakpoint has the backend 'cli' only; got {backend!r}.")
    frames = []
    for info in inspect.stack(context=0)[1:]:
        if not (filter_frames and is_internal(info.frame.f_code)):
            frames.append((f"{info.filename}:{info.lineno} ({info.function})", dict(info.frame.f_locals)))
    frames = frames[:num_frames]
    variables = [{k: v for k, v in found.items() if _passable(v)} for _, found in frames[:1]]
    debug_callback(_Stop(tuple(where for where, _ in frames)), *variables, ordered=ordered)


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
        builtins.print(f"weft.debug.breakpoint at {self.frames[0] if self.frames else '<unknown>'}; variables: {', '.join(variables or ()) or 'none'}")
        scope = dict(variables or {}, frames=self.frames)
        console = pdb.Pdb(nosigint=True)
        console.prompt = "(weftdb) "
        console.run("pass  # the program waits here; 'p name' shows a variable, 'c' goes on", scope, scope)
