"""Two caches of compiled programs. One in memory has the last ones of this process: a function that is traced again,
as those of a loop that is not jitted are in each call, is not compiled again. The persistent one has programs in the
folder `jax_compilation_cache_dir`, found again by later processes.

A file holds a header (the kind of file, the key, how long the program took to compile, the length and a checksum of the
rest) and the executable as XLA writes it. XLA trusts its input, so a file is checked before XLA reads any of it. A file
that is truncated, damaged or foreign is not used, with a warning. Whoever can write to the folder can run code in the
processes that read it: do not share it.
"""

from __future__ import annotations

import collections
import hashlib
import io
import itertools
import os
import pathlib
import platform
import re
import struct
import sys
import tempfile
import time
from functools import lru_cache
from threading import Thread
from typing import Any, Callable, NamedTuple, Sequence

import jaxlib._jax as _jax
from jaxlib import xla_client as xc
from weft.base import monitoring
from weft.base.config import config
from weft.base.errors import BackendError, warn

from . import compat

_HEADER = struct.Struct("<8s32sdQ32s")  # magic, key, seconds to compile, length and SHA-256 of the executable
_MAGIC = b"weftxla1"
_SUFFIX = "-cache"
_LEVELS = {"UNKNOWN": 0, "O0": 9, "O1": 15, "O2": 19, "O3": 23}  # XLA's numbers of its levels of effort
_dumped = itertools.count()
_RECENT = 256  # programs in memory
_recent: collections.OrderedDict[tuple[int, bytes], Any] = collections.OrderedDict()  # the last used one stands last
# what compiling passes to Python: for the next program it would be other functions
_ASKS_PYTHON = (b"InspectSharding", b"CustomSPMDPartitioning")


def compile_module(client, lowered, devices: Sequence, options, callbacks: Sequence, name: str):
    """A loaded executable: from a cache if it is there, else compiled, and stored there if the options say so.

    Programs that call Python functions are never stored: which ones they call is not part of them.
    """
    _configure(options)
    if config.dump_ir_to:
        _dump(lowered, name)
    program = b"" if callbacks else _program(lowered)
    if callbacks or any(word in program for word in _ASKS_PYTHON):
        return compat.compile_module(client, lowered.module, devices, options, callbacks)
    key = _key(client, program, devices, options)
    folder = config.compilation_cache_dir
    if not folder or not config.enable_compilation_cache or config.compilation_cache_max_size == 0:
        return _compiled(client, lowered, devices, options, key)
    monitoring.record_event("/jax/compilation_cache/compile_requests_use_cache")
    monitoring.record_event("/jax/compilation_cache/compile_requests_use_cache")
    path = pathlib.Path(folder) / f"{_file_name(name)}-{key.hex()}{_SUFFIX}"
    begin = time.perf_counter()
    stored, loaded = _read_ahead(path, devices, options) or _read_now(client, path, key, devices, options)
    if loaded is not None and not config.compilation_cache_check_contents:
        seconds = time.perf_counter() - begin
        _took(devices[0].platform, path, stored)
        monitoring.record_event("/jax/compilation_cache/cache_hits")
        monitoring.record_event_duration_secs("/jax/compilation_cache/compile_time_saved_sec", stored - seconds)
        monitoring.record_event_duration_secs("/jax/compilation_cache/cache_retrieval_time_sec", seconds)
        return loaded
    monitoring.record_event("/jax/compilation_cache/cache_misses")
    begin = time.perf_counter()
    compiled = _compiled(client, lowered, devices, options, key)
    seconds = time.perf_counter() - begin
    if loaded is not None:
        if _text(loaded) != _text(compiled):
            warn(
                f"the program in {path} differs from what XLA compiles now; its key misses something that it"
                " depends on."
            )
    elif seconds >= config.persistent_cache_min_compile_time_secs:
        _write(path, key, seconds, compiled)
        _took(devices[0].platform, path, seconds)
    return compiled


def _compiled(client, lowered, devices: Sequence, options, key: bytes):
    """A loaded executable of a program that calls no Python: one in memory, else a new one."""
    found = _recent.pop((id(client), key), None)
    if found is None or config.compilation_cache_check_contents:
        found = compat.compile_module(client, lowered.module, devices, options)
    _recent[id(client), key] = found
    if len(_recent) > _RECENT:
        _recent.popitem(last=False)
    return found


def forget() -> None:
    """Drops the programs in memory."""
    _recent.clear()


class Slot:
    """The place of one program that somebody else keeps: `data` is what is there, if anything; compiling says what of
    it was used, and what to put there.
    """

    def __init__(self, data: bytes | None):
        self.data = data
        self.found = False
        self.dump: Callable[[], bytes] | None = None


def compile_into(slot: Slot, client, lowered, devices: Sequence, options, callbacks: Sequence):
    """A loaded executable: from the slot if what is there is for this program, compiler and machine, else compiled.

    The data must be what `dump` gave: XLA trusts its input.
    """
    _configure(options)
    program = b"" if callbacks else _program(lowered)
    if callbacks or any(word in program for word in _ASKS_PYTHON):  # as in `compile_module`
        return compat.compile_module(client, lowered.module, devices, options, callbacks)
    key = _key(client, program, devices, options)
    if slot.data is not None and slot.data[: len(key)] == key:
        try:
            loaded = client.deserialize_executable(slot.data[len(key) :], xc.DeviceList(tuple(devices)), options)
            slot.found = True
            return loaded
        except (_jax.JaxRuntimeError, ValueError) as e:
            warn(f"XLA does not take a program that was stored: {e}. It is compiled instead, and stored again.")
    compiled = compat.compile_module(client, lowered.module, devices, options, callbacks)

    def dump() -> bytes:
        try:
            return key + compiled.serialize()
        except (_jax.JaxRuntimeError, AttributeError, ValueError) as e:
            raise BackendError(f"XLA can't store this program: {e}") from e

    slot.dump = dump
    return compiled


def _configure(options) -> None:
    """Options for XLA's compiler from the configuration; options of the call itself take precedence."""
    build, fresh = options.executable_build_options, xc.CompileOptions().executable_build_options
    for name, known in (
        ("exec_time_optimization_effort", 0.0),
        ("memory_fitting_effort", 0.0),
        ("optimization_level", "UNKNOWN"),
        ("memory_fitting_level", "O2"),
    ):
        value = config.read(name)
        if value != known and hasattr(build, name) and getattr(build, name) == getattr(fresh, name):
            setattr(build, name, _LEVELS[value] if isinstance(value, str) else value)
    if config.disable_most_optimizations:
        build.debug_options.xla_backend_optimization_level = 0
        build.debug_options.xla_llvm_disable_expensive_passes = True


def _dump(lowered, name: str) -> None:
    """Writes a program's StableHLO into the folder `jax_dump_ir_to`."""
    folder = pathlib.Path(config.dump_ir_to)
    folder.mkdir(parents=True, exist_ok=True)
    with lowered.home.context:
        text = getattr(lowered.module, "operation", lowered.module).get_asm(enable_debug_info=True)
    (folder / f"weft_ir{next(_dumped)}_{_file_name(name)}_compile.mlir").write_text(text)


def _file_name(name: str) -> str:
    return "jit_" + re.sub(r"[^\w.]", "_", name)[:80]


def _text(loaded) -> str:
    return "\n".join(m.to_string() for m in loaded.hlo_modules())


# keys ----------------------------------------------------------------------------------------------------------------


def _key(client, program: bytes, devices: Sequence, options) -> bytes:
    """A hash of all that a compiled program depends on."""
    digest = hashlib.sha256()
    for part in (
        _MAGIC,
        program,
        options.SerializeAsString(),
        xc.__name__.encode(),
        ".".join(map(str, compat.RELEASE)).encode(),
        client.platform.encode(),
        client.platform_version.encode(),
        processor().encode(),
        _flags().encode(),
        "|".join(f"{d.id} {d.device_kind}" for d in devices).encode(),
    ):
        digest.update(struct.pack("<Q", len(part)))
        digest.update(part)
    return digest.digest()


def _program(lowered) -> bytes:
    """The module's bytecode, without the lines and names it came from unless they are asked for."""
    if config.compilation_cache_include_metadata_in_key:
        return bytecode(lowered.module)
    from jaxlib.mlir.passmanager import PassManager  # MLIR's bindings load with the first program

    with lowered.home.context:
        plain = lowered.module.operation.clone()
        PassManager.parse("builtin.module(strip-debuginfo)").run(plain)
        return bytecode(plain)


def bytecode(module) -> bytes:
    """A module in MLIR's binary form."""
    buffer = io.BytesIO()
    getattr(module, "operation", module).write_bytecode(buffer)
    return buffer.getvalue()


@lru_cache(maxsize=1)
def processor() -> str:
    """The machine's processor and its features: code compiled for one may not run on another."""
    try:
        with open("/proc/cpuinfo") as file:
            lines = file.read().partition("\n\n")[0].splitlines()
        found = [
            line for line in lines if line.startswith(("vendor_id", "model name", "flags", "Features", "CPU part"))
        ]
    except OSError:
        found = []
    return "\n".join([platform.machine(), platform.processor(), platform.system(), *found])


def _flags() -> str:
    """XLA's environment, without the options that only say where it writes dumps."""
    words = [w for name in ("XLA_FLAGS", "LIBTPU_INIT_ARGS") for w in os.environ.get(name, "").split()]
    return " ".join(sorted(w for w in words if not w.startswith("--xla_dump")))


# reading ahead -------------------------------------------------------------------------------------------------------

# XLA takes longer to read a large program than tracing and lowering take. So reading begins on a thread before it is
# certain which program is needed: when a device is first requested, with the slowest program of the last run of this
# script; when a function is about to be traced, with the last program of a function of its name. A wrong guess is
# dropped.
_WORTH = 1 << 20  # bytes: smaller programs are read in less time than this takes
_ahead: dict[pathlib.Path, "_Ahead"] = {}
# by note: the seconds that the slowest program of this process took to compile
_slowest: dict[pathlib.Path, float] = {}


class _Ahead(NamedTuple):
    """A program that is being read."""

    device: Any
    options: bytes
    thread: Thread
    found: list  # when the thread has ended: the seconds that it took to compile, and the executable; or nothing


def read_ahead(device, options, name: str) -> None:
    """Starts to read the last program of the function of this name, whose first call on `device` is about to be
    traced.
    """
    folder, prefix = config.compilation_cache_dir, _file_name(name) + "-"
    try:
        with os.scandir(folder) as entries:
            found = [
                (e.stat().st_mtime_ns, e.path)
                for e in entries
                if e.name.startswith(prefix)
                and len(e.name) == len(prefix) + 64 + len(_SUFFIX)
                and e.stat().st_size >= _WORTH
            ]
    except OSError:  # no folder yet, or a file that another process has evicted
        return
    if found:
        _start(pathlib.Path(max(found)[1]), device, options)


def read_ahead_for_script(device, options: Callable) -> None:
    """Starts to read the slowest program that this script ran last time on this platform, when it is first called."""
    note = _note(device.platform)
    if note is None or note in _slowest:
        return
    _slowest[note] = 0.0
    try:
        name = os.fsdecode(note.read_bytes())
        path = note.parent / name
        if re.fullmatch(rf"jit_[\w.]+-[0-9a-f]{{64}}{_SUFFIX}", name) and path.stat().st_size >= _WORTH:
            _start(path, device, options([device]))
    except OSError:
        pass


@lru_cache
def _mark(platform: str, script: str) -> str:
    return hashlib.sha256(f"{platform} {os.path.abspath(script)}".encode()).hexdigest()[:32]


def _note(platform: str) -> pathlib.Path | None:
    """The file that names the slowest program of this script."""
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    return pathlib.Path(config.compilation_cache_dir) / f"script-{_mark(platform, script)}" if script else None


def _took(platform: str, path: pathlib.Path, seconds: float) -> None:
    """Records that a program of this script took `seconds` to compile, now or when it was stored."""
    note = _note(platform)
    if note is None or seconds <= _slowest.get(note, 0.0):
        return
    _slowest[note] = seconds
    try:
        if not note.exists() or note.read_bytes() != path.name.encode():
            _replace(note, path.name.encode())
    except OSError:
        pass  # a later process begins to read later


def _start(path: pathlib.Path, device, options) -> None:
    if path in _ahead or not config.enable_compilation_cache or config.compilation_cache_check_contents:
        return
    _configure(options)
    result: list = []

    def read():
        try:
            data = path.read_bytes()
            if _damage(data, bytes.fromhex(path.name[-64 - len(_SUFFIX) : -len(_SUFFIX)])) is None:
                loaded = device.client.deserialize_executable(data[_HEADER.size :], xc.DeviceList((device,)), options)
                result.extend((_HEADER.unpack_from(data)[2], loaded))
        except (OSError, ValueError, _jax.JaxRuntimeError):
            pass  # read again where it is needed, and said there

    thread = Thread(target=read, name=f"weft reads {path.name}")
    _ahead[path] = _Ahead(device, options.SerializeAsString(), thread, result)
    thread.start()


def _read_ahead(path: pathlib.Path, devices: Sequence, options) -> tuple[float, Any] | None:
    """(seconds that it took to compile, executable), if this program has been read ahead; other guesses for its
    function are dropped.
    """
    function = path.name[: -64 - len(_SUFFIX)]
    for other in [p for p in tuple(_ahead) if p != path and p.name.startswith(function)]:
        _ahead.pop(other, None)
    ahead = _ahead.pop(path, None)
    if ahead is None or [ahead.device] != list(devices) or ahead.options != options.SerializeAsString():
        return None
    ahead.thread.join()
    return tuple(ahead.found) or None


def _read_now(client, path: pathlib.Path, key: bytes, devices: Sequence, options) -> tuple[float, Any]:
    """(seconds that it took to compile, executable); the executable is None if it can't be had."""
    stored = _read(path, key)
    return (stored[1], _load(client, stored[0], devices, options, path)) if stored is not None else (0.0, None)


# files ---------------------------------------------------------------------------------------------------------------


def _problem(message: str, cause: Exception | None = None) -> None:
    """Warns that the cache does not help, or raises where that is asked for."""
    if config.raise_persistent_cache_errors:
        raise BackendError(message) from cause
    warn(message)


def _read(path: pathlib.Path, key: bytes) -> tuple[bytes, float] | None:
    """(executable, seconds that it took to compile) of a file that is whole and for this key."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as e:
        _problem(f"the compile cache's file {path} can't be read ({e}); the program is compiled instead.", e)
        return None
    reason = _damage(data, key)
    if reason:
        _problem(
            f"the compile cache's file {path} is ignored: {reason}. The program is compiled instead and replaces it; "
            "see what else writes to the folder."
        )
        return None
    try:
        os.utime(path)  # the most recently used file is evicted last
    except OSError:
        pass
    return data[_HEADER.size :], _HEADER.unpack_from(data)[2]


def _damage(data: bytes, key: bytes) -> str | None:
    """A description of the fault in a file's bytes; None if they are valid."""
    if len(data) < _HEADER.size:
        return f"it has {len(data)} bytes, fewer than its header"
    magic, own_key, _, length, checksum = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        return "it is not a file of this cache, or it is one of another version"
    if own_key != key:
        return "it is another program's"
    if len(data) - _HEADER.size != length:
        return f"it should hold {length} bytes after its header and has {len(data) - _HEADER.size}"
    if hashlib.sha256(memoryview(data)[_HEADER.size :]).digest() != checksum:
        return "its checksum is wrong"
    return None


def _load(client, data: bytes, devices: Sequence, options, path) -> Any:
    try:
        return client.deserialize_executable(data, xc.DeviceList(tuple(devices)), options)
    except (_jax.JaxRuntimeError, ValueError) as e:
        return _problem(
            f"XLA does not take the program in the compile cache's file {path}: {e}. It is compiled instead.", e
        )


def _write(path: pathlib.Path, key: bytes, seconds: float, compiled) -> None:
    try:
        data = compiled.serialize()
    except (_jax.JaxRuntimeError, AttributeError, ValueError) as e:
        return _problem(f"the program {path.name} can't be kept in the compile cache: {e}", e)
    if len(data) < config.persistent_cache_min_entry_size_bytes:
        return
    limit = config.compilation_cache_max_size
    size = _HEADER.size + len(data)
    if limit >= 0 and size > limit:
        return _problem(
            f"the program {path.name} takes {size} bytes and is not kept: jax_compilation_cache_max_size is {limit}."
        )
    header = _HEADER.pack(_MAGIC, key, seconds, len(data), hashlib.sha256(data).digest())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if limit >= 0:
            _evict(path.parent, limit - size, path)
        _replace(path, header, data)
    except OSError as e:
        _problem(
            f"the compile cache can't write to {path.parent} ({e}); choose another folder with"
            " jax_compilation_cache_dir.",
            e,
        )


def _replace(path: pathlib.Path, *parts: bytes) -> None:
    """Writes a file completely or not at all, even if others write it at the same time."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".weft-", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(parts)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _evict(folder: pathlib.Path, room: int, keep: pathlib.Path) -> None:
    """Deletes the least recently used files until the cache takes at most `room` bytes."""
    found = []
    for file in folder.glob("*" + _SUFFIX):
        try:
            stat = file.stat()
        except OSError:  # another process has evicted it
            continue
        if file != keep:
            found.append((stat.st_mtime_ns, stat.st_size, file))
    total = sum(size for _, size, _ in found)
    for _, size, file in sorted(found):
        if total <= room:
            return
        file.unlink(missing_ok=True)
        total -= size
