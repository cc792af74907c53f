"""The classes of ahead-of-time compilation: `weft.jit(f)` is `Wrapped`, `.trace(…)` gives `Traced`, `.lower()` gives
`Lowered`, `.compile()` gives `Compiled`.

Example:
    >>> import weft
    >>> compiled = weft.jit(lambda x: x + 1).lower(2.0).compile()
    >>> isinstance(compiled, weft.stages.Compiled), float(compiled(2.0))
    (True, 3.0)
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from .runtime.aot import ArgInfo as ArgInfo, Compiled as Compiled, Lowered as Lowered, Traced as Traced

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"]

CompilerOptions = dict[str, str | bool]


@runtime_checkable
class Wrapped(Protocol):
    """A function that can be traced, lowered and compiled ahead of time, such as `weft.jit` returns."""

    def __call__(self, *args, **kwargs) -> Any:
        """Runs the function, compiled."""

    def trace(self, *args, **kwargs) -> Traced:
        """Traces for arguments (arrays or `ShapeDtypeStruct`s) without running anything."""

    def lower(self, *args, **kwargs) -> Lowered:
        """Traces and lowers for arguments."""


def __dir__() -> list[str]:
    return sorted(__all__)
