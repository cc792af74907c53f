"""The backend interface. A package offers one through the entry-point group `weft.backends`: for each of its platforms
an entry point that has the platform's name and names a class with no required arguments, which is instantiated on the
first look for one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Protocol, Sequence

from ..base.devices import Device as Device
from ..base.avals import ShapedArray
from ..core.jaxpr import ClosedJaxpr, Jaxpr
from ..base.dtypes import NAMES
from ..base.mesh import Sharding
from .array import BufferArray

if TYPE_CHECKING:
    from types import ModuleType

    from ..core.primitive import Primitive


class CompileOptions(NamedTuple):
    """What a compilation depends on besides the program and its devices."""

    name: str = "main"  # shows in compiled text and profiles
    donated: tuple[Any, ...] = ()  # for each argument, whether its buffer may be reused
    options: tuple[Any, ...] = ()  # (name, value) pairs for the backend's compiler


class Executable(Protocol):
    """A compiled program."""

    def execute(self, args: Sequence[Any]) -> list[Any]:
        """Runs on arrays of this backend (of exactly the compiled avals) and returns arrays at once; work may go on
        behind them. Results are committed where an argument is. Several threads may call it at a time.
        """

    def as_text(self, stage: str | None = None) -> str:
        """The compiled program for reading; `stage` picks one of the backend's own forms, an unknown one raises
        ValueError.
        """

    def cost_analysis(self) -> dict[Any, Any]: ...
    def memory_analysis(self) -> dict[Any, Any]: ...


class FastCall(NamedTuple):
    """How a backend runs the calls of one jitted function."""

    call: Callable[..., Any]
    forget: Callable[[], None]  # what it has kept of earlier calls


class Jit(Protocol):
    """A backend's own way to run jitted functions; see `Capabilities.jit`."""

    def __call__(
        self,
        fun: Callable[..., Any],
        miss: Callable[..., Any],
        static_argnums: tuple[Any, ...],
        static_argnames: tuple[Any, ...],
        name: str,
    ) -> FastCall:
        """Its `call` runs cached executables with little Python and calls `miss(*args, **kwargs)` for everything
        else.
        """


class ShowLowered(Protocol):
    """A program before it is compiled, as text; see `Capabilities.lowered_text`."""

    def __call__(
        self,
        jaxpr: Jaxpr,
        device: Any,
        options: CompileOptions,
        dialect: str | None = None,
        *,
        debug_info: bool = False,
    ) -> str:
        """`dialect` picks one of the backend's own forms, an unknown one raises ValueError; `debug_info` adds the
        user's lines.
        """


class Profiler(Protocol):
    """A profiler that sees into a backend; see `Capabilities.profiler`. What `weft.profiler` makes traces with
    instead of its own clock.
    """

    @property
    def ProfileSession(self) -> Callable[..., Any]:
        """ProfileSession(options) begins a profile; its `stop(folder)` ends and writes it."""

    @property
    def annotation(self) -> Callable[..., Any]:
        """annotation(name, **metadata): a context manager around what shows under this name."""

    @property
    def start_server(self) -> Callable[[int], Any]:
        """Serves profiles at a port."""

    @property
    def register_subprocess(self) -> Callable[[int, int], Callable[[], None]]:
        """(process, port) of another process to include; returns what ends that."""

    def memory_profile(self, platform: str) -> bytes:
        """What lies in the devices' memory, as the program `pprof` reads it."""


class Xla(Protocol):
    """What belongs to XLA alone; see `Capabilities.xla`."""

    @property
    def foreign(self) -> ModuleType:
        """Behind `weft.ffi`."""

    @property
    def cluster(self) -> ModuleType:
        """Behind `weft.distributed`."""

    def lowered_ir(self, jaxpr: Jaxpr, device: Any, options: CompileOptions, dialect: str | None = None) -> Any:
        """A program before it is compiled: an ir.Module (None or "stablehlo") or an XlaComputation ("hlo")."""

    def computation(
        self,
        closed: ClosedJaxpr,
        name: str,
        platform: str,
        axes: Sequence[Any],
        donated: Sequence[bool],
        tuple_args: bool,
    ) -> Any:
        """A closed jaxpr as an XlaComputation called `name`, whose named axes are replicas."""

    def portable_module(self, jaxpr: Jaxpr, name: str, platform: str) -> tuple[str, Callable[[], bytes]]:
        """A program lowered for a platform that need not be here: StableHLO text, and what makes the bytes of a
        portable artifact of it.
        """


def nothing() -> None:
    """What is forgotten where nothing was kept."""


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What a backend offers beyond `devices`, `put` and `compile`. The core asks here and nowhere else, and does
    without what is not there, so `Capabilities()` is that of a complete backend.

    Arrays
        dtypes: the names of the dtypes that its arrays and programs have. Others are refused, with a BackendError that
            names them.
        array_type: the class of its arrays. One of its own lets the core find `apply` by an array's class.
        spread: `(aval, sharding, parts)` gives an array over the devices of a sharding, from its parts in their order.
            With it, arrays lie on several devices and `compile` takes a `Partition` where a device stands otherwise;
            without it, programs run on one device.
        transfer: `(array, aval, where, committed)` gives one of its arrays on another of its devices, or as a sharding
            says, not through the host.
        prefetch: fetches many arrays at once, where reading one takes a round trip.
        live_arrays: its arrays of a platform that are not deleted; default: the objects of `array_type` that Python
            knows.
        memory_kinds: the kinds of memory that a device has, the usual one first.
        guards_transfers: it looks after the transfer guards (`weft.transfer_guard`) itself.

    Programs
        lacks: the primitives that it has no programs with. They are refused when a program is compiled, with a
            BackendError that names them; all others it lowers itself, or by their decomposition.
        apply: `(primitive, args, params)` runs one primitive eagerly on its arrays and host scalars; default: as a
            program of one equation.
        jit: runs calls that it has seen before with little Python.
        forget_programs: lets go of compiled programs, for `weft.clear_caches`.
        takes_compiler_options: `compile` takes options by name.
        times_compilation: it records lowering and compiling in `weft.monitoring` itself.
        lowered_text: shows programs before they are compiled; default: as jaxprs.
        runtime_executable: what `Compiled.runtime_executable()` gives for one of its executables.

    Platforms
        branches_of: the platforms whose branch of `platform_dependent` its devices run where a program has none for
            theirs, and no default.
        host_platform: the platform of the machine behind a device; programs exported for that one run here too.
        process_index: the number of this process among those that share a platform's devices.

    Others
        profiler: a profiler that sees into it.
        xla: what belongs to XLA alone.
    """

    dtypes: frozenset[str] = NAMES
    array_type: type[Any] = BufferArray
    spread: Callable[[ShapedArray, Sharding, Sequence[Any]], Any] | None = None
    transfer: Callable[[Any, ShapedArray, Any, bool], Any] | None = None
    prefetch: Callable[..., None] | None = None
    live_arrays: Callable[[str], list[Any]] | None = None
    memory_kinds: Callable[[Any], Sequence[str]] = lambda device: ("device",)
    guards_transfers: bool = False
    lacks: frozenset[str] = frozenset()
    apply: Callable[[Primitive, tuple[Any, ...], dict[str, Any]], Any] | None = None
    jit: Jit | None = None
    forget_programs: Callable[[], None] = nothing
    takes_compiler_options: bool = False
    times_compilation: bool = False
    lowered_text: ShowLowered | None = None
    runtime_executable: Callable[[Any], Any] = lambda executable: executable
    branches_of: tuple[str, ...] = ()
    host_platform: Callable[[Any], str] | None = None
    process_index: Callable[[str], int] = lambda platform: 0
    profiler: Profiler | None = None
    xla: Xla | None = None


class Backend(Protocol):
    """Devices, arrays and a compiler."""

    name: str  # for people: "xla", "wasm", "webgpu", "remote", "reference"
    platforms: tuple[str, ...]  # the platform names that its devices have, best first
    capabilities: Capabilities

    def devices(self, platform: str | None = None) -> list[Any]:
        """All devices, or those of one platform; raises BackendError when there are none, with the reason."""

    def put(self, value: Any, aval: ShapedArray, device: Any, committed: bool) -> Any:
        """A host array (see `weft.host`) as an array on `device`. The host memory may change afterwards."""

    def compile(self, jaxpr: Jaxpr, device: Any, options: CompileOptions) -> Any:
        """Compiles a jaxpr without constvars (constants are leading arguments)."""


MEMBERS = ("name", "platforms", "capabilities", "devices", "put", "compile")  # of every Backend


class Buffers(Protocol):
    """What a `BufferArray` asks of its backend about its handle."""

    def read(self, handle: Any, nbytes: int) -> Any:
        """The bytes of an array, row by row; waits for them if it must."""

    def release(self, handle: Any) -> None:
        """Frees the memory. Called once for each handle, perhaps in another thread, or while the interpreter shuts
        down.
        """

    def is_ready(self, handle: Any) -> bool:
        """Whether the array is computed."""

    def wait(self, handle: Any) -> None:
        """Returns when it is."""
