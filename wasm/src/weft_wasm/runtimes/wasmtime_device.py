"""Runs Wasm artifacts in Python, under wasmtime: memory, allocator, load, run. Needs no NumPy."""

from __future__ import annotations

import atexit
import ctypes
import threading
import weakref
from dataclasses import dataclass
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeVar

import wasmtime

from weft_wasm.artifact import Artifact, ArtifactError
from weft_wasm.binary.encode import POLL
from weft_wasm.ir.addresses import LIMIT, LIMIT_64, STOP
from weft_wasm.runtimes import interrupts
from weft_wasm.runtimes.memory import FIRST, Allocator, DeviceMemoryError, Turns, exclusive

if TYPE_CHECKING:
    from typing_extensions import Buffer

PAGE = 65536
STALE = 1000  # programs that were unloaded and still take memory, at least, when the store is renewed
HOST_FAILED = -1  # a program's code where a function of the host raised


_Export = TypeVar("_Export")


class ProgramError(RuntimeError):
    """A program ended with one of its error codes, or trapped.

    Programs that weft compiles of yours have no error codes: they are of programs that somebody wrote in the loop IR.
    A trap is a mistake of the compiler, or of such a program; `WEFT_VERIFY_JAXPRS=1` checks what is compiled.

    Example:
        >>> from weft_wasm.compile import compile_program
        >>> from weft_wasm.ir.nodes import Fail, Program
        >>> from weft_wasm.runtimes.wasmtime_device import WasmtimeDevice
        >>> program = Program("root", [], [], [], [Fail(7)], errors={7: "the argument is negative"})
        >>> device = WasmtimeDevice()
        >>> device.run(device.load(compile_program(program)), [])  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft_wasm.runtimes.wasmtime_device.ProgramError: root ended with error 7: the argument is negative
    """


@dataclass(slots=True)
class Loaded:
    """An artifact in a device: its entry point in the device's store of that number, and the address of its
    constants (0: none).
    """

    artifact: Artifact
    module: wasmtime.Module
    functions: Sequence[Callable[[list[int]], None]]
    main: wasmtime.Func
    store: int
    constants: int
    input_bytes: list[int]
    outputs: list[tuple[int, int | None]]
    scratch: int
    polls: bool  # whether it looks while it runs, so that it can be ended


class WasmtimeDevice:
    """One linear memory and the programs loaded into it. Pointers are ints. threads: loops are cut as for that many
    threads, though one runs them all.
    limit: bytes. memory64: addresses have 64 bits, so that the memory can be larger than 4 GiB. patience: seconds after
        which a program that still runs is ended; without it, programs run as long as they like.

    >>> device = WasmtimeDevice()
    >>> p = device.alloc(8)
    >>> device.write(p, b"12345678")
    >>> device.read(p, 4)
    b'1234'
    >>> device.free(p)
    """

    # by whether addresses have 64 bits, and whether programs can be ended
    _engines: ClassVar[dict[tuple[bool, bool], wasmtime.Engine]] = {}
    # compiled modules of loaded programs by artifact hash, shared by devices
    _modules: ClassVar[weakref.WeakValueDictionary[tuple[str, bool], wasmtime.Module]] = weakref.WeakValueDictionary()

    def __init__(
        self, limit: int | None = None, threads: int = 1, memory64: bool = False, patience: float | None = None
    ):
        kind = (memory64, patience is not None)
        if kind not in self._engines:
            config = wasmtime.Config()
            config.cranelift_opt_level = "speed"
            config.epoch_interruption = patience is not None
            if memory64:
                config.memory_reservation = LIMIT_64  # of addresses, so that growth moves nothing
            self._engines[kind] = wasmtime.Engine(config)
        self.engine, self.patience = self._engines[kind], patience
        most = limit or (LIMIT_64 if memory64 else LIMIT)
        self.most_pages, self.memory64 = -(-most // PAGE), memory64  # a module can grow the memory too, no further
        self.word: type[ctypes.c_uint64] | type[ctypes.c_uint32] = ctypes.c_uint64 if memory64 else ctypes.c_uint32
        self.pointer = wasmtime.ValType.i64() if memory64 else wasmtime.ValType.i32()
        self.threads = threads
        self.raised: BaseException | None = None  # by a function of the host, for `run` to raise again
        # stores made, programs that are loaded, runs that have begun and not ended
        self.stores = self.live = self.running = 0
        self.stopped = False  # `stop` was called, and the program that runs has not ended yet
        self._new_store(1)
        self.allocator = Allocator(self._grow, limit=most)
        self.lock = Turns()  # neither a wasmtime.Store nor the memory in it is for several threads at once
        self.table, self.table_entries = self.alloc(256 * ctypes.sizeof(self.word)), 256
        self._own = self.allocator.allocated

    def _new_store(self, pages: int) -> None:
        """A store with its own memory. Modules stay in a store as long as it exists, so a device has one store after
        another.
        """
        self.store = wasmtime.Store(self.engine)
        # one for each loaded program; the default limit is 10,000 during a store's life
        self.store.set_limits(instances=1 << 30)
        self.memory = wasmtime.Memory(
            self.store, wasmtime.MemoryType(wasmtime.Limits(pages, self.most_pages), is_64=self.memory64)
        )
        self.base = ctypes.addressof(self.memory.data_ptr(self.store).contents)
        self.pages = pages
        self.stores, self.instances = self.stores + 1, 0

    def _renew_store(self) -> None:
        """Drops the code of unloaded programs, if it is most of the loaded code. The others get new instances when they
        next run.
        """
        if self.running or self.instances - self.live < max(STALE, self.live):
            return
        old, base, pages = (self.store, self.memory), self.base, self.pages  # the memory lives as long as its store
        self._new_store(pages)
        ctypes.memmove(self.base, base, pages * PAGE)
        del old

    @exclusive
    def alloc(self, nbytes: int) -> int:
        """The address of a new block. Raises DeviceMemoryError if there is no room."""
        return self.allocator.alloc(nbytes)

    @exclusive
    def free(self, pointer: int) -> None:
        """Frees a block. Raises ValueError for an address that is not that of a block."""
        self.allocator.free(pointer)

    def release(self, pointer: int) -> None:
        """Gives a block back at the next turn; for finalisers."""
        self.lock.later(self.free, pointer)

    def _grow(self, end: int) -> None:
        pages = -(-end // PAGE)
        if pages <= self.pages:
            return
        # ahead of need, so that many small allocations don't each grow
        for target in (min(self.most_pages, pages + self.pages // 2), pages):
            try:
                self.memory.grow(self.store, target - self.pages)
            except wasmtime.WasmtimeError:
                continue
            self.pages = target
            self.base = ctypes.addressof(self.memory.data_ptr(self.store).contents)
            return
        raise DeviceMemoryError(f"the system refused to grow the device memory to {pages * PAGE} bytes")

    @exclusive
    def write(self, pointer: int, data: Buffer) -> None:
        """Copies a bytes-like object (any C-contiguous buffer) to the device."""
        view = memoryview(data)
        if view.nbytes == 0:
            return
        view = view.cast("B") if view.format != "B" or view.ndim != 1 else view
        self._check(pointer, view.nbytes)
        if view.readonly:  # ctypes has no address of it; bytes passes its own, anything else is copied once more
            given = view.obj
            ctypes.memmove(
                self.base + pointer,
                given if type(given) is bytes and len(given) == len(view) else bytes(view),
                len(view),
            )
        else:
            ctypes.memmove(self.base + pointer, (ctypes.c_char * len(view)).from_buffer(view), len(view))

    @exclusive
    def read(self, pointer: int, nbytes: int) -> bytes:
        """A copy of device bytes."""
        self._check(pointer, nbytes)
        return ctypes.string_at(self.base + pointer, nbytes)

    def view(self, pointer: int, nbytes: int) -> memoryview:
        """Device bytes without a copy. Do not keep it: growth moves the memory."""
        self._check(pointer, nbytes)
        return memoryview((ctypes.c_ubyte * nbytes).from_address(self.base + pointer)).cast("B")

    def _check(self, pointer: int, nbytes: int) -> None:
        if pointer < 0 or nbytes < 0 or pointer + nbytes > self.pages * PAGE:
            raise ValueError(f"{nbytes} bytes at {pointer} are outside the device memory")

    @exclusive
    def load(self, artifact: Artifact | bytes, functions: Sequence[Callable[[list[int]], None]] = ()) -> Loaded:
        """Compiles (or finds) the module and copies the constants. functions: the host functions that the program
        calls, on the addresses of arrays.
        """
        if not isinstance(artifact, Artifact):
            artifact = Artifact.from_bytes(artifact)
        artifact.check()
        if artifact.kind != "wasm":
            raise ValueError(f"a {artifact.kind} artifact can't run under wasmtime; compile the program for wasm")
        calls = artifact.metadata.get("calls", ())
        if len(calls) != len(functions):
            raise ValueError(f"{artifact.name} calls {len(calls)} functions of the host, {len(functions)} are given")
        self._renew_store()
        key = artifact.hash, self.patience is not None
        module = self._modules.get(key)
        if module is None:
            try:
                module = self._modules[key] = wasmtime.Module(self.engine, artifact.code)
            except wasmtime.WasmtimeError as e:
                raise ArtifactError(
                    f"artifact {artifact.name}: its code is not a module that runs here: {str(e)[:300]}. Compile the"
                    " program again"
                ) from None
        main = self._instance(artifact, module, functions)
        constants = self.alloc(len(artifact.constants)) if artifact.constants else 0
        if constants:
            self.write(constants, artifact.constants)
        meta = artifact.metadata
        shared = meta.get("tasks")
        self.live += 1
        return Loaded(
            artifact,
            module,
            functions,
            main,
            self.stores,
            constants,
            [spec["bytes"] for spec in meta["inputs"]],
            [(spec["bytes"], spec.get("alias")) for spec in meta["outputs"]],
            meta["scratch"] + (self.threads - 1) * shared["private"] if shared else meta["scratch"],
            POLL in artifact.code,
        )

    def _instance(
        self, artifact: Artifact, module: wasmtime.Module, functions: Sequence[Callable[[list[int]], None]]
    ) -> wasmtime.Func:
        """The entry point of a new instance of a module."""
        tasks: list[wasmtime.Func] = []
        hosts: dict[str | None, Callable[[], wasmtime.Memory | wasmtime.Func]] = {
            "memory": lambda: self.memory,
            "call": lambda: self._host(artifact.name, artifact.metadata.get("calls", ()), functions),
            "share": lambda: self._share(artifact.name, tasks),
        }
        instance = wasmtime.Instance(self.store, module, [hosts[i.name]() for i in module.imports])
        self.instances += 1
        exports = instance.exports(self.store)
        shared = artifact.metadata.get("tasks")
        if shared:
            tasks += [_export(exports, f"task{k}", wasmtime.Func) for k in range(shared["count"])]
            _export(exports, "threads", wasmtime.Global).set_value(self.store, self.threads)
        return _export(exports, "main", wasmtime.Func)

    def _share(self, name: str, tasks: Sequence[wasmtime.Func]) -> wasmtime.Func:
        """The import that shares a loop's iterations among `threads`; here they take turns, and run the iterations
        backwards.
        """

        def share(number: int, frame: int, extent: int, grain: int) -> None:
            if not 0 <= number < len(tasks) or extent < 0 or grain < 1:
                raise ProgramError(
                    f"{name} shares loop {number} of {extent} by {grain}, which no program does: compile it again"
                )
            for k, begin in enumerate(reversed(range(0, extent, grain))):
                tasks[number](self.store, frame, k % self.threads, begin, min(begin + grain, extent))

        i32 = wasmtime.ValType.i32()
        return wasmtime.Func(self.store, wasmtime.FuncType([i32, self.pointer, i32, i32], []), share)

    def _host(
        self, name: str, counts: Sequence[int], functions: Sequence[Callable[[list[int]], None]]
    ) -> wasmtime.Func:
        """The import that calls functions; their exceptions are stored for `run`."""

        def call(number: int, table: int) -> int:
            table %= 1 << 8 * ctypes.sizeof(self.word)  # an i32 is signed here
            if not 0 <= number < len(counts) or table + ctypes.sizeof(self.word) * counts[number] > self.pages * PAGE:
                raise ProgramError(
                    f"{name} calls function {number} with a table at {table}, which no program does: compile it again"
                )
            try:
                functions[number](list((self.word * counts[number]).from_address(self.base + table)))
            except BaseException as e:
                self.raised = e
                return HOST_FAILED
            return 0

        i32 = wasmtime.ValType.i32()
        return wasmtime.Func(self.store, wasmtime.FuncType([i32, self.pointer], [i32]), call)

    def unload_later(self, loaded: Loaded) -> None:
        """Unloads a program at the next turn; for finalisers."""
        self.lock.later(self.unload, loaded)

    @exclusive
    def unload(self, loaded: Loaded) -> None:
        """Frees the constants. The code stays in the store until the device has a new one."""
        self.live -= 1
        if loaded.constants:
            self.free(loaded.constants)
            loaded.constants = 0

    @exclusive
    def run(self, loaded: Loaded, inputs: list[int], donated: frozenset[int] | set[int] = frozenset()) -> list[int]:
        """Runs the program; returns the pointers of fresh outputs, or of donated inputs that outputs took over.

        donated: indices of the inputs whose storage the caller gives up; those that no output uses are freed.
        """
        if len(inputs) != len(loaded.input_bytes):
            raise ValueError(f"{loaded.artifact.name} takes {len(loaded.input_bytes)} inputs, got {len(inputs)}")
        outputs: list[int] = []
        fresh: list[int] = []
        try:
            for nbytes, alias in loaded.outputs:
                if alias is not None and alias in donated:
                    outputs.append(inputs[alias])
                else:
                    outputs.append(self.alloc(nbytes))
                    fresh.append(outputs[-1])
            scratch = self.alloc(loaded.scratch) if loaded.scratch else 0
            table = [*inputs, *outputs, scratch, loaded.constants]
            if len(table) > self.table_entries:
                self.free(self.table)
                self.table_entries = 2 * len(table)
                self.table = self.alloc(ctypes.sizeof(self.word) * self.table_entries)
            (self.word * len(table)).from_address(self.base + self.table)[:] = table
            if loaded.store != self.stores:
                loaded.main, loaded.store = (
                    self._instance(loaded.artifact, loaded.module, loaded.functions),
                    self.stores,
                )
            self.running += 1
            try:
                code = self._call(loaded)
            except wasmtime.Trap as e:
                if self.stopped:
                    raise KeyboardInterrupt from None
                raise ProgramError(f"{loaded.artifact.name} trapped: {e}") from None
            finally:
                self.running -= 1
                self.stopped = False
                self._stop_word.value = 0
                if scratch:
                    self.free(scratch)
            if code == HOST_FAILED and self.raised is not None:
                raised, self.raised = self.raised, None
                raise raised
            if code:
                text = loaded.artifact.metadata["errors"].get(str(code), "no text for this code")
                raise ProgramError(f"{loaded.artifact.name} ended with error {code}: {text}")
        except BaseException:
            for pointer in fresh:
                self.free(pointer)
            raise
        for k in donated:
            if inputs[k] not in outputs:
                self.free(inputs[k])
        return outputs

    def stop(self) -> None:
        """Ends the program that runs, from another thread, where it next looks; `run` raises KeyboardInterrupt."""
        if self.running:
            # Said here too: a damaged program can write the word itself, and trap.
            self.stopped = True
            self._stop_word.value = 1

    @property
    def _stop_word(self) -> ctypes.c_uint32:
        return ctypes.c_uint32.from_address(self.base + STOP)

    def _call(self, loaded: Loaded) -> int:
        """Runs a program that the table is ready for; where there is a limit, until its time is up. Ctrl-C ends it."""
        main = loaded.main
        run: Callable[[], int] = lambda: main(self.store, self.table)
        if self.patience is None:
            return interrupts.until_one(self.stop, run) if loaded.polls and interrupts.come_here() else run()
        self.store.set_epoch_deadline(1)
        alarm = threading.Timer(self.patience, self.engine.increment_epoch)
        alarm.start()
        try:
            return run()
        finally:
            alarm.cancel()

    @exclusive
    def stats(self) -> dict[str, int]:
        """Bytes in use by arrays and constants, their peak, and bytes that can still be allocated."""
        a = self.allocator
        return {"allocated": a.allocated - self._own, "peak": a.peak - self._own, "free": a.limit - FIRST - a.allocated}


def _close_modules() -> None:
    """Closes the modules that are left: their finalisers fail when the interpreter has taken wasmtime apart."""
    modules = WasmtimeDevice._modules
    while modules:
        modules.popitem()[1].close()


atexit.register(_close_modules)


def _export(exports: Mapping[str, object], name: str, kind: type[_Export]) -> _Export:
    """An export of a module. `contents.py` has checked that the module has it."""
    found = exports[name]
    if not isinstance(found, kind):
        raise TypeError(f"the export {name} is {found!r}, not a {kind.__name__}")
    return found
