"""Programs by content hash: checked once, compiled once for each device, shared by all sessions that send the same
bytes.
"""

from __future__ import annotations

import logging
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from weft.base import dtypes
from weft.base.avals import AbstractValue, ShapedArray, array_type
from weft.base.config import config, enable_x64
from weft.base.errors import BackendError
from weft.serialization import programs
from weft.core.jaxpr import ClosedJaxpr, Jaxpr, subjaxprs

# A program may use any primitive, whichever modules this process has loaded by itself.
from weft.export import (  # noqa: F401
    language as _language,
)
from weft.runtime import backend
from weft.runtime.backend import CompileOptions, Device
from weft.runtime.device import backend_of
from weft.runtime.partition import Partition
from weft.transforms.platforms import for_platform
from weft_remote import protocol as p
from weft_remote.errors import LimitError

from .. import cache
from .limits import MIB, Limits
from .shelf import Entry, Shelf
from .spread import Spread, place

SHORT_RUNS, SHORT_SECONDS = 3, 0.0005  # a program that takes less so many times is taken to do so again
log = logging.getLogger("weft.host")
K = TypeVar("K")
V = TypeVar("V")
# programs and compiled programs for the next session, and how long they are together when serialized
KEPT, KEPT_BYTES = 512, 32 * MIB


def _loops(jaxpr: Jaxpr) -> bool:
    """Whether values decide how long a program runs."""
    for eqn in jaxpr.eqns:
        carries = eqn.primitive.carries
        if carries is not None and carries.has_condition or any(_loops(sub) for sub in subjaxprs(eqn.params)):
            return True
    return False


def nbytes(aval: AbstractValue) -> int:
    """The bytes of an array; 0 for anything else."""
    return math.prod(aval.shape) * dtypes.itemsize(aval.dtype) if isinstance(aval, ShapedArray) else 0


class Executable:
    """A compiled program, and the information that a host needs to run it safely."""

    def __init__(
        self,
        compiled: backend.Executable,
        jaxpr: Jaxpr,
        place: Device | Partition,
        x64: bool,
        donated: tuple[bool, ...] = (),
        name: str = "",
        found: bool = False,
    ):
        self.name, self.found = name, found
        self.compiled, self.x64, self.donated = compiled, x64, donated
        self.reports = bool(jaxpr.effects)
        self.in_types = [(a.shape, a.dtype) for a in jaxpr.in_avals]
        self.out_avals = [array_type(a) for a in jaxpr.out_avals]
        self.devices: Sequence[Device]  # by turns those of the arguments, and of the results
        if not isinstance(place, Partition):
            self.devices = (place,)
        else:
            assert isinstance(compiled, Spread)
            self.devices = compiled.devices
            self.in_types, self.out_avals = compiled.in_types(), compiled.out_types()
            self.donated = tuple([d for d in donated for _ in self.devices])
        self.out_sizes = [nbytes(a) for a in self.out_avals]
        # a program of several hosts waits for the others
        alone = not isinstance(place, Partition) or len(self.devices) == len(place.devices)
        self.unbounded = _loops(jaxpr) or not alone
        self.short_runs = 0
        self.temp_bytes: int = compiled.memory_analysis().get("temp_size_in_bytes", 0)

    @property
    def is_short(self) -> bool:
        """Whether it has always been done almost at once, and can't but be so."""
        return self.short_runs >= SHORT_RUNS and not self.unbounded and not self.reports

    def took(self, seconds: float, done: bool) -> None:
        """Counts a run, and whether its results were there afterwards."""
        self.short_runs = self.short_runs + 1 if done and seconds < SHORT_SECONDS else 0

    def execute(self, args: Sequence[Any]) -> list[Any]:
        """Runs with the configuration that the program was traced with: a backend may interpret it only now."""
        if self.x64 == config.enable_x64:
            return self.compiled.execute(args)
        with enable_x64(self.x64):
            return self.compiled.execute(args)


class Kept(Generic[K, V]):
    """The most recently used programs, as far as there is room; for threads that share it."""

    def __init__(self) -> None:
        self.entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.size = 0
        self.lock = threading.Lock()

    def get(self, key: K) -> V | None:
        with self.lock:
            found = self.entries.get(key)
            if found is None:
                return None
            self.entries.move_to_end(key)
            return found[0]

    def keep(self, key: K, value: V, size: int) -> None:
        """`size` is the length of the serialized program: the memory that it takes grows with that."""
        with self.lock:
            if key not in self.entries:
                self.entries[key] = value, size
                self.size += size
            while len(self.entries) > KEPT or self.size > KEPT_BYTES:
                self.size -= self.entries.popitem(last=False)[1][1]


class Programs:
    """The programs of a host.

    Args:
        limits: of a session.
        shelf: where executables are found that were stored; None if none are.
    """

    def __init__(self, limits: Limits, shelf: Shelf | None = None):
        self.limits, self.shelf = limits, shelf
        self.format_limits = programs.Limits(
            limits.program_bytes, limits.equations, array_bytes=max(limits.session_bytes, 1)
        )
        self.checked: Kept[bytes, programs.Program] = Kept()
        self.compiled: Kept[tuple[Any, ...], Executable] = Kept()
        self.compiling = threading.Lock()  # lowering keeps state of the process

    def check(self, digest: bytes, data: bytes | bytearray) -> programs.Program:
        """The program of these bytes. Raises DeserializationError if they are not a program, LimitError if it needs too
        much.
        """
        found = self.checked.get(digest)
        if found is None:
            found = programs.deserialize(data, self.format_limits)
            self._check_sizes(found.jaxpr, set())
            self.checked.keep(digest, found, len(data))
        return found

    def _check_sizes(self, jaxpr: Jaxpr, seen: set[Jaxpr]) -> None:
        if jaxpr in seen:
            return
        seen.add(jaxpr)
        for eqn in jaxpr.eqns:
            size = sum(nbytes(v.aval) for v in eqn.outvars)
            if size > self.limits.session_bytes:
                raise LimitError(
                    f"{eqn.primitive.name} gives {size} bytes, of which a session here may have"
                    f" {self.limits.session_bytes}.\n  at {eqn.source_info}"
                )
            for sub in subjaxprs(eqn.params):
                self._check_sizes(sub, seen)

    def compile(
        self,
        digest: bytes,
        program: programs.Program,
        size: int,
        device: Device | Partition,
        name: str = "",
        donated: tuple[bool, ...] = (),
        begin: Callable[[], None] = lambda: None,
        reporting: Callable[[Jaxpr], Jaxpr] = lambda jaxpr: jaxpr,
        entry: Entry | None = None,
    ) -> Executable:
        """A program of `size` bytes compiled for a device, or for several; `begin()` is called when its turn has come.
        A program that reports is compiled for its session alone, which `reporting` puts into it. Others may be stored,
        and found by `entry`.
        """
        if program.jaxpr.effects:
            with self.compiling:
                begin()
                return self._compiled(program, reporting(program.jaxpr), device, name, donated)
        key = (digest, device, donated)
        found = self.compiled.get(key)
        if found is not None:
            return found
        with self.compiling:
            begin()
            found = self.compiled.get(key)  # another session may have been first
            if found is None:
                found = self._compiled(program, program.jaxpr, device, name, donated, entry)
                self.compiled.keep(key, found, size)
            return found

    def _compiled(
        self,
        program: programs.Program,
        jaxpr: Jaxpr,
        device: Device | Partition,
        name: str,
        donated: tuple[bool, ...],
        entry: Entry | None = None,
    ) -> Executable:
        log.info("compiling %s (%d equations)", name, len(jaxpr.eqns))
        backend, options = backend_of(device), CompileOptions(name, donated)
        store, found = backend.capabilities.stored, False
        with enable_x64(program.x64):
            chosen = for_platform(ClosedJaxpr(jaxpr, []), device.platform).jaxpr
            if self.shelf is None or entry is None or store is None:
                compiled = backend.compile(chosen, device, options)
                cache.forget()  # how many programs of others stay in memory is counted here
            else:
                made = self.shelf.compile(entry, lambda data: store(chosen, device, options, data))
                compiled, found = made.executable, made.found
            if isinstance(device, Partition):
                compiled = Spread(compiled, jaxpr, device)
        return Executable(compiled, program.jaxpr, device, program.x64, donated, name, found)

    def dumped(self, m: p.Compile | p.CompileSpread, data: bytes, devices: Sequence[Device]) -> bytes:
        """An executable to be stored, of the program of these bytes. Raises BackendError if it can't be."""
        program = self.check(m.program, data)
        device = place(m, program.jaxpr, devices)
        store, made = backend_of(device).capabilities.stored, None
        if store is not None and not program.jaxpr.effects:
            with enable_x64(program.x64):
                chosen = for_platform(ClosedJaxpr(program.jaxpr, []), device.platform).jaxpr
                made = store(chosen, device, CompileOptions(m.name, m.donated), None)
        if made is None or made.dump is None:
            raise BackendError(f"executables of {m.name!r} can't be stored.")
        return made.dump()
