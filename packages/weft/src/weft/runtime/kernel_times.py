"""How long each kernel of a program takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..base.annotations import Args
from ..base.errors import BackendError, at_user_line
from .device import backend_of
from .jit import jit


class KernelTime(NamedTuple):
    """The time that a program spent in one kernel: its name, the seconds in all, and how often it ran."""

    name: str
    seconds: float
    calls: int


def kernel_times(fun: Callable[Args, Any], *args: Args.args, **kwargs: Args.kwargs) -> list[KernelTime]:
    """How long each kernel of a compiled function takes, for one call on these arguments.

    The function is compiled with a clock around each kernel, and called twice; the second call is measured. It has the
    kernels that `jit` gives it; `weft.jit(fun).lower(*args).compile().as_text()` shows what they compute. Loops between
    kernels count each time that a kernel runs. On WebGPU the program waits for each kernel, so that a time includes
    what submitting and waiting cost, up to a millisecond.

    Args:
        fun: a function, or one made by `jit`.
        *args: its arguments: arrays of any shape and dtype, or trees of them. None is donated.
        **kwargs: its keyword arguments.

    Returns:
        A KernelTime for each kernel that ran, the longest first.

    Raises:
        BackendError: on a backend that does not time kernels. On XLA, `weft.profiler.trace` gives the times of
            operations.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> with weft.default_device(weft.devices("wasm")[0]):
        ...     times = weft.profiler.kernel_times(lambda x: jnp.sin(x) @ x, jnp.ones((64, 64)))
        >>> all(t.seconds > 0 and t.calls == 1 for t in times)
        True
    """
    lowered = jit(lambda *args, **kwargs: fun(*args, **kwargs)).lower(*args, **kwargs)
    backend = backend_of(lowered.device)
    if not backend.capabilities.times_kernels:
        raise BackendError(
            at_user_line(
                f"the {backend.name} backend does not time kernels. Use weft.profiler.trace there, or run on 'wasm' or"
                " 'webgpu'."
            )
        )
    compiled = lowered.compile({"kernel_times": True})
    timer = compiled.executable.timer
    compiled(*args, **kwargs)  # the first run also touches memory for the first time
    timer.clear()
    compiled(*args, **kwargs)
    return [KernelTime(*row) for row in timer.rows()]
