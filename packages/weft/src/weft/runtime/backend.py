"""The backend interface. A package offers one through the entry-point group `weft.backends`: for each of its platforms an entry point
that has the platform's name and names a class with no required arguments, which is instantiated on the first look for one of them.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Protocol, Sequence, runtime_checkable

from ..avals import ShapedArray
from ..core.jaxpr import Jaxpr

if TYPE_CHECKING:
    from ..core.primitive import Primitive


class CompileOptions(NamedTuple):
    """What a compilation depends on besides the program and its devices."""
    name: str = "main"                      # shows in compiled text and profiles
    donated: tuple[Any, ...] = ()                     # for each argument, whether its buffer may be reused
    options: tuple[Any, ...] = ()                     # (name, value) pairs for the backend's compiler


@runtime_checkable
class Device(Protocol):
    """One device. `repr` and `str` are for people; devices of one backend differ in `id`."""
    id: int
    platform: str
    process_index: int
    device_kind: str


class Executable(Protocol):
    """A compiled program."""

    def execute(self, args: Sequence[Any]) -> list[Any]:
        """Runs on arrays of this backend (of exactly the compiled avals) and returns arrays at once; work may go on behind them."""

    def as_text(self, stage: str | None = None) -> str:
        """The compiled program for reading; `stage` picks one of the backend's own forms, an unknown one raises ValueError."""

    def cost_analysis(self) -> dict[Any, Any]: ...
    def memory_analysis(self) -> dict[Any, Any]: ...


class Backend(Protocol):
    """Devices, arrays and a compiler."""
    name: str                      # for people: "xla", "wasm", "webgpu", "remote", "reference"
    platforms: tuple[Any, ...]               # the platform names that its devices have, best first

    def devices(self, platform: str | None = None) -> list[Device]:
        """All devices, or those of one platform; raises BackendError when there are none, with the reason."""

    def put(self, value: Any, aval: ShapedArray, device: Device, committed: bool) -> Any:
        """A host array (see `weft.host`) as an array on `device`. The host memory may change afterwards."""

    def compile(self, jaxpr: Jaxpr, device: Device, options: CompileOptions) -> Executable:
        """Compiles a jaxpr without constvars (constants are leading arguments)."""


class FastPath(Protocol):
    """What a backend may offer beyond the interface, private to it: see `weft.runtime.dispatch`."""

    def jit(self, fun: Callable[..., Any], miss: Callable[..., Any], static_argnums: tuple[Any, ...],
            static_argnames: tuple[Any, ...], name: str) -> Callable[..., Any]:
        """A callable that runs cached executables without Python and calls `miss(*args, **kwargs)` for everything else."""

    def apply(self, primitive: Primitive, args: tuple[Any, ...], params: dict[Any, Any]) -> Any:
        """Runs one primitive eagerly on this backend's arrays and host scalars."""
