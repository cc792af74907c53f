"""platform_dependent of `weft.lax`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, TypeVar

from ..higher_order.cond import choose
from ..core.trace import current_trace
from ..runtime.jit import inner_jit
from ..base.source_info import api_boundary
from ..base.annotations import PyTree
from ..transforms.platforms import platform_index_p
from ..transforms.stage import JaxprTrace

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = ["platform_dependent"]

_T = TypeVar("_T")


@api_boundary
def platform_dependent(
    *args: PyTree, default: Callable[..., _T] | None = None, **per_platform: Callable[..., _T]
) -> _T:
    """Calls the function given for the platform that the program runs on.

    All functions are traced and give the same types; only the chosen one is compiled.

    Args:
        args: pytrees of arrays of any dtype, any shape: the arguments.
        default: function for all other platforms; None for none.
        per_platform: functions by the names of platforms: cpu=…, cuda=…, tpu=…, wasm=…, webgpu=….

    Returns:
        pytree of arrays, what the functions return: all have one structure, shapes and dtypes.

    Raises:
        NotImplementedError: when the program is compiled for a platform that has no function, and there is no default.
        TypeError: if there is no function, or their results have different types.

    Example:
        >>> import weft
        >>> float(weft.lax.platform_dependent(2.0, tpu=lambda x: x * 2, default=lambda x: x + 1))
        3.0
    """
    branches: dict[Any, Any] = {}
    for name, fun in per_platform.items():
        branches.setdefault(fun, []).append(name)
    platforms: list[Any] = [tuple(names) for names in branches.values()]
    funs = list(branches)
    if default is not None:
        platforms.append(None)
        funs.append(default)
    if not funs:
        raise TypeError("platform_dependent takes a function for at least one platform, or a default.")

    def call(*operands: Value) -> Any:
        return choose(platform_index_p.bind(platforms=tuple(platforms)), funs, operands, "platform_dependent")

    # the platform is known only when the program is compiled
    return call(*args) if isinstance(current_trace(), JaxprTrace) else inner_jit(call, name="platform_dependent")(*args)
