"""The backend interface. A package offers a backend through the entry-point group `weft.backends`: for each of its
platforms an entry point that has the platform's name and names a class with no required arguments, which is
instantiated when a platform is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Protocol, Sequence

from ..base.devices import Device as Device
from ..base.avals import ShapedArray
from ..core.jaxpr import ClosedJaxpr, Jaxpr
from ..base.dtypes import NAMES
from ..base.mesh import Sharding
from .array import BufferArray

if TYPE_CHECKING:
    from types import ModuleType

    from ..base.layout import Layout
    from ..core.primitive import Primitive


class CompileOptions(NamedTuple):
    """Everything that a compilation depends on besides the program and its devices."""

    name: str = "main"  # shows in compiled text and profiles
    donated: tuple[Any, ...] = ()  # for each argument, whether its buffer may be reused
    options: tuple[Any, ...] = ()  # (name, value) pairs for the backend's compiler


class Executable(Protocol):
    """A compiled program."""

    def execute(self, args: Sequence[Any]) -> list[Any]:
        """Runs on arrays of this backend (of exactly the compiled avals) and returns arrays at once; the computation
        may still be running. Results are committed if an argument is. Several threads may call it at a time.
        """

    def as_text(self, stage: str | None = None) -> str:
        """The compiled program as text. `stage` chooses one of the backend's forms; an unknown one raises
        ValueError.
        """

    def cost_analysis(self) -> dict[Any, Any]: ...
    def memory_analysis(self) -> dict[Any, Any]: ...


class Stored(NamedTuple):
    """A compiled program that can be stored; see `Capabilities.stored`."""

    executable: Executable
    found: bool  # it was made from what was stored
    dump: Callable[[], bytes] | None  # what to store, where it was compiled; None if it can't be stored


class Store(Protocol):
    """Compiles programs whose executables somebody else stores; see `Capabilities.stored`."""

    def __call__(self, jaxpr: Jaxpr, device: Any, options: CompileOptions, data: bytes | None) -> Stored:
        """As `compile`, but from `data`, which an earlier `dump` gave, if that is for this program, compiler and
        machine. Data that others can change must be checked before: it becomes code.
        """


class FastCall(NamedTuple):
    """How a backend runs the calls of one jitted function."""

    call: Callable[..., Any]
    forget: Callable[[], None]  # its state from earlier calls


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
        """`dialect` chooses one of the backend's forms; an unknown one raises ValueError. `debug_info` adds the lines
        of the user's code.
        """


class Profiler(Protocol):
    """A profiler of a backend; see `Capabilities.profiler`. `weft.profiler` uses it instead of its own clock."""

    @property
    def ProfileSession(self) -> Callable[..., Any]:
        """ProfileSession(options) begins a profile; its `stop(folder)` ends and writes it."""

    @property
    def annotation(self) -> Callable[..., Any]:
        """annotation(name, **metadata): a context manager around operations that profiles show under this name."""

    @property
    def start_server(self) -> Callable[[int], Any]:
        """Serves profiles at a port."""

    @property
    def register_subprocess(self) -> Callable[[int, int], Callable[[], None]]:
        """(process, port) of another process to include; returns a function that undoes this."""

    def memory_profile(self, platform: str) -> bytes:
        """The contents of the devices' memory, in the format of the program `pprof`."""


class Xla(Protocol):
    """Functions that only XLA has; see `Capabilities.xla`."""

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
        """A program lowered for a platform that need not be available: StableHLO text, and a function that returns a
        portable artifact of it as bytes.
        """


def nothing() -> None:
    """Default for backends that store nothing: there is nothing to forget."""


class Capabilities(NamedTuple):
    """The capabilities of a backend beyond `devices`, `put` and `compile`. The core reads only this object, and works
    without the capabilities that are not there: `Capabilities()` is valid for a complete backend.

    Arrays
        dtypes: the names of the dtypes of its arrays and programs. Others are refused, with a BackendError that names
            them.
        array_type: the class of its arrays. If no other backend uses it, the core finds `apply` by an array's class.
        spread: `(aval, sharding, parts)` returns an array over the devices of a sharding, from its parts in order.
            With it, arrays may be on several devices, and `compile` takes a `Partition` as well as a device. Without
            it, programs run on one device.
        transfer: `(array, aval, where, committed)` returns one of its arrays on another of its devices, or with a
            sharding, without a copy through the host.
        relaid: `(array, layout)` returns an array with its axes in another order in memory, where that can differ.
        prefetch: fetches many arrays at once, for a backend where reading one takes a round trip.
        live_arrays: its arrays of a platform that are not deleted; default: the objects of `array_type` that Python
            knows.
        memory_kinds: the kinds of memory of a device, the default kind first.
        guards_transfers: it applies the transfer guards (`weft.transfer_guard`) itself.

    Programs
        lacks: the primitives that its programs can't contain. They are refused when a program is compiled, with a
            BackendError that names them. It lowers all others directly, or by their decomposition.
        apply: `(primitive, args, params)` runs one primitive eagerly on its arrays and host scalars; default: as a
            program of one equation.
        jit: repeats earlier calls with little Python.
        forget_calls: drops the programs that it finds for single operations by itself, which it then looks up again.
        forget_programs: drops compiled programs, for `weft.clear_caches`.
        takes_compiler_options: `compile` takes options by name.
        times_kernels: `compile` takes the option `kernel_times` and gives an executable whose `timer` has `clear()` and
            `rows()`: (name, seconds, calls) of each kernel that ran.
        stored: compiles a program, or makes it from what was stored of it.
        times_compilation: it records lowering and compiling in `weft.monitoring` itself.
        lowered_text: returns the text of programs before they are compiled; default: that of jaxprs.
        runtime_executable: the result of `Compiled.runtime_executable()` for one of its executables.

    Platforms
        branches_of: the platforms whose branch of `platform_dependent` its devices run, for a program without a branch
            for their own platform and without a default.
        host_platform: the platform of the machine behind a device; programs exported for that platform run here too.
        process_index: the number of this process among those that share a platform's devices.

    Others
        facts: what people may want to know of a device, as names and values: threads, limits, how far away it is.
        profiler: its profiler.
        xla: functions that only XLA has.
    """

    dtypes: frozenset[str] = NAMES
    array_type: type[Any] = BufferArray
    spread: Callable[[ShapedArray, Sharding, Sequence[Any]], Any] | None = None
    transfer: Callable[[Any, ShapedArray, Any, bool], Any] | None = None
    relaid: Callable[[Any, Layout], Any] | None = None
    prefetch: Callable[..., None] | None = None
    live_arrays: Callable[[str], list[Any]] | None = None
    memory_kinds: Callable[[Any], Sequence[str]] = lambda device: ("device",)
    guards_transfers: bool = False
    lacks: frozenset[str] = frozenset()
    apply: Callable[[Primitive, tuple[Any, ...], dict[str, Any]], Any] | None = None
    jit: Jit | None = None
    forget_calls: Callable[[], None] = nothing
    forget_programs: Callable[[], None] = nothing
    takes_compiler_options: bool = False
    times_kernels: bool = False
    stored: Store | None = None
    times_compilation: bool = False
    lowered_text: ShowLowered | None = None
    runtime_executable: Callable[[Any], Any] = lambda executable: executable
    branches_of: tuple[str, ...] = ()
    host_platform: Callable[[Any], str] | None = None
    process_index: Callable[[str], int] = lambda platform: 0
    facts: Callable[[Any], Sequence[tuple[str, str]]] = lambda device: ()
    profiler: Profiler | None = None
    xla: Xla | None = None


class Backend(Protocol):
    """Devices, arrays and a compiler."""

    name: str  # for people: "xla", "wasm", "webgpu", "remote", "reference"
    platforms: tuple[str, ...]  # the platform names that its devices have, best first
    capabilities: Capabilities

    def devices(self, platform: str | None = None) -> list[Any]:
        """All devices, or those of one platform. Raises BackendError, with the reason, if there are none."""

    def put(self, value: Any, aval: ShapedArray, device: Any, committed: bool) -> Any:
        """A host array (see `weft.host`) as an array on `device`. The host memory may change afterwards."""

    def compile(self, jaxpr: Jaxpr, device: Any, options: CompileOptions) -> Any:
        """Compiles a jaxpr without constvars (constants are leading arguments)."""


MEMBERS = ("name", "platforms", "capabilities", "devices", "put", "compile")  # of every Backend


class Buffers(Protocol):
    """The methods of a backend that a `BufferArray` calls with its handle."""

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
