"""Programs by content hash: checked once, compiled once for each device, shared by all sessions that send the same bytes."""
from __future__ import annotations

import importlib
import logging
import math
import pkgutil
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from weft import control, dtypes, ops
from weft.avals import ShapedArray
from weft.config import config, enable_x64
from weft.core import serialize
from weft.core.jaxpr import Jaxpr, subjaxprs
from weft.runtime.backend import CompileOptions
from weft.runtime.device import backend_of
from weft_remote.errors import LimitError

from .limits import Limits

log = logging.getLogger("weft.host")
# A program may use any primitive of the language, and parameters of weft.lax, whichever modules this process has loaded by itself.
for _package in (ops, control):
    for _module in pkgutil.iter_modules(_package.__path__, _package.__name__ + "."):
        importlib.import_module(_module.name)
importlib.import_module("weft.lax")
PROGRAMS, EXECUTABLES = 1024, 512      # kept for the next session


def nbytes(aval) -> int:
    """Bytes of an array; what is no array has none."""
    return math.prod(aval.shape) * dtypes.itemsize(aval.dtype) if isinstance(aval, ShapedArray) else 0


class Executable:
    """A compiled program, and what a host must know to run it safely."""

    def __init__(self, compiled: Any, jaxpr: Jaxpr, device, x64: bool):
        self.compiled, self.device, self.x64 = compiled, device, x64
        self.in_types = [(a.shape, a.dtype) for a in jaxpr.in_avals]
        self.out_avals = list(jaxpr.out_avals)
        self.out_bytes = sum(map(nbytes, self.out_avals))
        self.temp_bytes = compiled.memory_analysis().get("temp_size_in_bytes", 0)

    def execute(self, args: list) -> list:
        """Runs with the configuration that the program was traced with: a backend may interpret it only now."""
        if self.x64 == config.enable_x64:
            return self.compiled.execute(args)
        with enable_x64(self.x64):
            return self.compiled.execute(args)


class Programs:
    """The programs of a host."""

    def __init__(self, limits: Limits):
        self.limits = limits
        self.format_limits = serialize.Limits(limits.program_bytes, limits.equations, array_bytes=max(limits.session_bytes, 1))
        self.checked: OrderedDict[bytes, serialize.Program] = OrderedDict()
        self.compiled: OrderedDict[tuple, Executable] = OrderedDict()
        self.lock = threading.Lock()               # of the two caches
        self.compiling = threading.Lock()          # lowering keeps state of the process

    def check(self, digest: bytes, data) -> serialize.Program:
        """The program of these bytes; DeserializationError if they are none, LimitError if it needs too much."""
        with self.lock:
            found = self.checked.get(digest)
        if found is None:
            found = serialize.deserialize(data, self.format_limits)
            self._check_sizes(found.jaxpr, set())
            with self.lock:
                self.checked[digest] = found
                while len(self.checked) > PROGRAMS:
                    self.checked.popitem(last=False)
        return found

    def _check_sizes(self, jaxpr: Jaxpr, seen: set) -> None:
        if jaxpr in seen:
            return
        seen.add(jaxpr)
        for eqn in jaxpr.eqns:
            size = sum(nbytes(v.aval) for v in eqn.outvars)
            if size > self.limits.session_bytes:
                raise LimitError(f"{eqn.primitive.name} gives {size} bytes, of which a session here may have {self.limits.session_bytes}.\n  at {eqn.source_info}")
            for sub in subjaxprs(eqn.params):
                self._check_sizes(sub, seen)

    def compile(self, digest: bytes, program: serialize.Program, device, name: str, donated: tuple, begin: Callable = lambda: None) -> Executable:
        """A program compiled for a device; `begin()` is called when its turn has come."""
        key = (digest, device, donated)
        with self.lock:
            if key in self.compiled:
                self.compiled.move_to_end(key)
                return self.compiled[key]
        with self.compiling:
            begin()
            with self.lock:      # another session may have been first
                if key in self.compiled:
                    return self.compiled[key]
            log.info("compiling %s (%d equations)", name, len(program.jaxpr.eqns))
            with enable_x64(program.x64):
                compiled = backend_of(device).compile(program.jaxpr, device, CompileOptions(name, donated))
            made = Executable(compiled, program.jaxpr, device, program.x64)
            with self.lock:
                self.compiled[key] = made
                while len(self.compiled) > EXECUTABLES:
                    self.compiled.popitem(last=False)
            return made
