"""The reference backend: a slow and obvious interpreter on NumPy, the oracle of the other backends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..base.annotations import override
from ..base.avals import ShapedArray, array_aval
from ..core.interpret import interpret
from ..core.jaxpr import Jaxpr
from ..base.errors import BackendError
from ..base.host import np, require_numpy
from .array import BufferArray
from .backend import Capabilities, CompileOptions
from .device import register_backend

if TYPE_CHECKING:
    from ..core.types import Value
    from .backend import Backend
    from .partition import Where


class ReferenceDevice:
    """The one device of the reference backend."""

    id, platform, process_index, device_kind = 0, "reference", 0, "NumPy"

    def __init__(self, backend: Backend):
        self.backend = backend

    @override
    def __repr__(self) -> str:
        return "ReferenceDevice(id=0)"


class ReferenceBackend:
    """Evaluates jaxprs equation by equation with the primitives' reference rules."""

    name, capabilities = "reference", Capabilities(branches_of=("cpu",))
    platforms: tuple[str, ...] = ("reference",)

    def __init__(self) -> None:
        require_numpy("the reference backend")
        self._devices = [ReferenceDevice(self)]

    def devices(self, platform: str | None = None) -> list[Any]:
        if platform not in (None, *self.platforms):
            raise BackendError(f"the {self.name} backend has no devices of platform {platform!r}.")
        return self._devices

    def put(self, value: Value, aval: ShapedArray, device: Any, committed: bool) -> BufferArray:
        return BufferArray(aval, np.array(value, aval.dtype), device, committed)

    def read(self, handle: Any, nbytes: int) -> Any:
        return np.ascontiguousarray(handle)

    def release(self, handle: Any) -> None:
        pass

    def is_ready(self, handle: Any) -> bool:
        return True

    def wait(self, handle: Any) -> None:
        pass

    def compile(self, jaxpr: Jaxpr, device: Where, options: CompileOptions) -> "ReferenceExecutable":
        return ReferenceExecutable(self, jaxpr, device)


class ReferenceExecutable:
    """A jaxpr, run by the interpreter."""

    def __init__(self, backend: ReferenceBackend, jaxpr: Jaxpr, device: Where):
        self.backend, self.jaxpr, self.device = backend, jaxpr, device

    def execute(self, args: Sequence[BufferArray]) -> list[BufferArray]:
        outs = interpret(self.jaxpr, [x._live() for x in args])
        committed = any(x.committed for x in args)
        return [BufferArray(array_aval(v.aval), o, self.device, committed) for v, o in zip(self.jaxpr.outvars, outs)]

    def as_text(self, stage: str | None = None) -> str:
        if stage not in (None, "jaxpr"):
            raise ValueError(f"the reference backend shows programs as 'jaxpr' only, not {stage!r}.")
        return str(self.jaxpr)

    def cost_analysis(self) -> dict[Any, Any]:
        return {}

    def memory_analysis(self) -> dict[Any, Any]:
        return {}


register_backend(ReferenceBackend, "reference")
