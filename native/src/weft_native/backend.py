"""The XLA backend: devices, arrays and a compiler, on jaxlib alone."""

from __future__ import annotations

import atexit
from typing import Any, Callable, Sequence

from . import bootstrap  # noqa: F401  isort: skip  first: it sets up what C++ reads when it loads

import numpy as np
import jaxlib._jax as _jax
from jaxlib import xla_client as xc
from weft.base.avals import ShapedArray, array_type, physical
from weft.base.config import config, default_device
from weft.core import trace
from weft.core.jaxpr import ClosedJaxpr, Jaxpr, TypedScalar
from weft.base.dtypes import NAMES, name as name_of
from weft.base.errors import BackendError, at_user_line
from weft.base.monitoring import COMPILE, LOWER, timed
from weft.runtime import device as runtime_device
from weft.runtime.array import KeyArray
from weft.runtime.backend import Capabilities, CompileOptions, FastCall, Stored
from weft.runtime.effects import effects_barrier
from weft.runtime.guards import explained
from weft.runtime.jit import clear_caches
from weft.runtime.partition import Partition, place_in_force
from weft.base.layout import Layout
from weft.base.memory import DEVICE
from weft.base.mesh import Sharding, SingleDeviceSharding

from . import arrays, cache, cluster, compat, dispatch, executable, operators, profile
from . import sharding as placing
from .arrays import ArrayImpl
from .client import PLATFORMS, client_for, compile_options, forget_clients


def _lowering():
    """The module that lowers programs. MLIR's bindings, which it loads, take 40 ms: not before the first program."""
    from .lower import module

    return module


Device = _jax.Device
_chosen_device = default_device.option.get
_ONE_DEVICE = xc.SingleDeviceSharding
_ONLY_DURING_CALL = xc.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL


class XlaBackend:
    """CPU, GPU and TPU through XLA."""

    name = "xla"
    platforms = PLATFORMS

    def __init__(self):
        Device.backend = property(lambda _: self)
        arrays.install()
        operators.install(self)
        self._shardings: dict = {}
        self._eager = dispatch.Eager(self)
        self.apply = self._eager.apply
        self.capabilities = Capabilities(
            dtypes=NAMES - {"int1", "uint1", "float6_e2m3fn", "float6_e3m2fn"},
            array_type=ArrayImpl,
            spread=self.join,
            transfer=self.put,
            relaid=self.relaid,
            live_arrays=self.live_arrays,
            memory_kinds=self.memory_kinds,
            guards_transfers=True,
            apply=self.apply,
            jit=self.jit,
            forget_programs=self.clear_caches,
            takes_compiler_options=True,
            stored=self.compile_stored,
            times_compilation=True,
            lowered_text=self.lowered_text,
            runtime_executable=lambda executable: executable.loaded,
            process_index=self.process_index,
            profiler=profile,
            xla=self,
        )
        self._first: Any = None  # the default device while no option names another
        dispatch.mirror_config()
        config.listen(self._config_changed)
        dispatch.mirror_trace(trace.current_trace() is trace.root)
        trace.watch(dispatch.mirror_trace)
        atexit.register(self.close)

    def clear_caches(self) -> None:
        """Forgets compiled programs, those of single operations, and the calls that C++ has cached."""
        cache.forget()
        self._eager.clear()
        _jax.PjitFunctionCache.clear_all()

    def close(self) -> None:
        """Drops all references to the clients when the process ends. A client waits for running computations, but one
        that still exists when Python ends is destroyed under its running threads.
        """
        effects_barrier()
        clear_caches()
        self._shardings.clear()
        self._first = None
        runtime_device.forget_backend(self)
        forget_clients()

    # devices --------------------------------------------------------------------------------------------------------

    def devices(self, platform: str | None = None) -> list:
        """The devices of a platform (default: the best available one). Raises BackendError, with the reason, if there
        are none.
        """
        if platform is not None:
            return self._devices("cuda" if platform == "gpu" else platform)
        reasons = []
        for candidate in self.platforms:
            try:
                return self._devices(candidate)
            except BackendError as e:
                reasons.append(f"{candidate}: {e}")
        raise BackendError("XLA has no device. " + " | ".join(reasons))

    def _devices(self, platform: str) -> list:
        client = client_for(platform)
        found = list(client.devices())
        if config.compilation_cache_dir and client.local_devices():
            cache.read_ahead_for_script(client.local_devices()[0], compile_options)
        return found

    def process_index(self, platform: str) -> int:
        """The number of this process among those that share the platform's devices."""
        return client_for("cuda" if platform == "gpu" else platform).process_index()

    @property
    def cluster(self):
        """The processes that compute together: the module behind `weft.distributed`."""
        return cluster

    @property
    def foreign(self):
        """Foreign functions: the module behind `weft.ffi`."""
        from . import foreign  # few programs call foreign functions

        return foreign

    def default_device(self):
        """Where uncommitted values live: `jax_default_device`, or the first device of the default platform."""
        if _chosen_device() is not None:
            return runtime_device.default_device()
        if self._first is None:
            self._first = runtime_device.default_device()
        return self._first

    def _config_changed(self, name: str) -> None:
        self._first = None
        dispatch.mirror_config()

    def memory_kinds(self, device) -> list[str]:
        """The kinds of memory that a device reaches."""
        return [memory.kind for memory in device.addressable_memories()]

    def live_arrays(self, platform: str) -> list:
        """The arrays of a platform that are not deleted."""
        return list(client_for(platform).live_arrays())

    def sharding(self, device):
        """The sharding of arrays on one device."""
        try:
            return self._shardings[device]
        except KeyError:
            made = self._shardings[device] = xc.SingleDeviceSharding(device)
            return made

    def placement(self, args: Sequence) -> tuple[Any, bool]:
        """(device, committed) of a computation on these arguments; a Sharding takes the place of the device if an
        argument is on several devices. Raises ValueError if arguments are committed to different devices.
        """
        found = None
        for x in args:
            if type(x) is ArrayImpl and x._committed:
                where = x.device
                if isinstance(where, Sharding):
                    if where.num_devices > 1:
                        return where, True
                    (where,) = where._devices()
                if found is None:
                    found = where
                elif where != found:
                    raise ValueError(
                        f"Received incompatible devices for jitted computation: arguments are committed to {found} and"
                        f" to {x.device}. Move one of them with weft.device_put."
                    )
        where = place_in_force(found) or found
        return (self.default_device(), False) if where is None else (where, True)

    # arrays ---------------------------------------------------------------------------------------------------------

    def put(self, value: Any, aval: ShapedArray, device, committed: bool):
        """A host array or scalar (or an array of another device) as an array on `device`, or on several as a
        Sharding says.
        """
        if type(value) is ArrayImpl and placing.is_whole_at(value, device):
            return ArrayImpl(aval, placing.to_xla(device), [value], committed or value._committed, _skip_checks=True)
        if placing.unusual and type(value) is ArrayImpl and not placing.layout_of(value).is_row_major:
            value = self.relaid(value, Layout(tuple(range(value.ndim))))  # XLA's copies take the order of axes as usual
        if isinstance(device, Sharding):
            return self._spread(value, aval, device, committed)
        if cluster.joined is not None:
            cluster.check_mine(device)
        if type(value) is ArrayImpl:
            return self._move(value, aval, device, committed)
        host = np.asarray(value.val if type(value) is TypedScalar else value, dtype=aval.dtype)
        try:
            return xc.batched_device_put(
                aval,
                self.sharding(device),
                [host],
                [device],
                committed,
                host_buffer_semantics=_ONLY_DURING_CALL,
                enable_x64=True,
            )
        except _jax.JaxRuntimeError as e:
            if name_of(aval.dtype) not in self.capabilities.dtypes:
                raise BackendError(
                    at_user_line(
                        f"XLA has no arrays of dtype {name_of(aval.dtype)}. Convert them to another dtype first"
                        " (x.astype(…)), or use the platform 'reference'."
                    )
                ) from None
            raise explained(e) from None

    def _spread(self, value, aval: ShapedArray, sharding: Sharding, committed: bool):
        """A value over the devices of a sharding. Data that is on these devices already is exchanged between them by a
        program.
        """
        value = value.val if type(value) is TypedScalar else value
        if type(value) is ArrayImpl and placing.differ_in_memory(value._sharding, placing.to_xla(sharding)):
            return placing.to_memory(value, sharding)
        if (
            type(value) is ArrayImpl
            and type(value._sharding) is not _ONE_DEVICE
            and sharding.num_devices > 1
            and value.sharding._devices() == sharding._devices()
        ):
            return dispatch.exchange(self, value, sharding)
        return placing.put(value, aval, sharding, True)

    def join(self, aval: ShapedArray, sharding: Sharding, parts: Sequence):
        """Arrays on the devices of a sharding, in their order, as the parts of one array."""
        return placing.join(aval, sharding, parts)

    def _move(self, array, aval: ShapedArray, device, committed: bool):
        if type(array._sharding) is not _ONE_DEVICE:
            return self.put(array._host(), aval, device, committed)
        if array.device.client is device.client:
            if array._sharding._memory_kind not in (None, DEVICE):  # the same buffer would do for C++
                array = placing.to_memory(array, SingleDeviceSharding(array.device, memory_kind=DEVICE))
            moved = xc.batched_copy_array_to_devices_with_sharding(
                [array], [xc.DeviceList((device,))], [self.sharding(device)], [xc.ArrayCopySemantics.REUSE_INPUT]
            )[0]
            return moved if moved._committed == committed else self._with(moved, committed)
        return self.put(array._host(), aval, device, committed)

    def relaid(self, array, layout: Layout):
        """An array with its axes in another order in memory."""
        return dispatch.relay(array, layout)

    def _with(self, array, committed: bool):
        """The same buffer, committed or not."""
        return ArrayImpl(array.aval, array._sharding, [array], committed, _skip_checks=True)

    def from_dlpack(self, value):
        """An array over the memory of another library's array, without a copy, through DLPack."""
        kind, index = value.__dlpack_device__()
        platform = {1: "cpu", 2: "cuda", 3: "cpu"}.get(int(kind))
        if platform is None:
            raise BackendError(
                f"the DLPack device type {kind} is not one of XLA's here; copy the array to the CPU first."
            )
        found = [d for d in self.devices(platform) if (d.local_hardware_id or 0) == index]
        if not found:
            raise BackendError(f"there is no {platform} device {index} for the array that was given through DLPack.")
        return compat.from_dlpack(value, found[0])

    def array(self, x, aval: ShapedArray, device):
        """`x` as an argument of a program on `device`."""
        if (
            type(x) is ArrayImpl
            and x.device == device
            and (x._sharding._memory_kind in (None, DEVICE) or isinstance(device, Sharding))
        ):
            return x
        if isinstance(x, KeyArray):
            x, aval = x.raw, array_type(physical(aval))
        return self.put(x, aval, device, False)

    def shard_arg(self, x, sharding, layout):
        """C++ calls this for an argument that it can't place by itself."""
        where = sharding._device if type(sharding) is _ONE_DEVICE else placing.from_xla(sharding)
        return self.put(x, array_type(trace.get_aval(x)), where, False)

    # programs -------------------------------------------------------------------------------------------------------

    def lower(self, jaxpr: Jaxpr, device, options: CompileOptions = CompileOptions()):
        """A jaxpr without constvars as a StableHLO module, not yet compiled."""
        spread, keep_unused = type(device) is Partition, ("keep_unused", True) in options.options
        return _lowering().lower(
            jaxpr,
            options.name,
            options.donated,
            keep_unused,
            device.platform,
            device if spread else None,
            device=None if spread else device,
        )

    def lowered_text(
        self, jaxpr: Jaxpr, device, options: CompileOptions, dialect: str | None = None, *, debug_info: bool = False
    ) -> str:
        """A program before it is compiled: as StableHLO (None or "stablehlo") or as HLO ("hlo"); `debug_info` adds
        the user's lines and scopes.
        """
        lowered = self.lower(jaxpr, device, options)
        with lowered.home.lock:
            return executable.module_text(lowered.module, dialect, debug_info)

    def lowered_ir(self, jaxpr: Jaxpr, device, options: CompileOptions, dialect: str | None = None):
        """A program before it is compiled: an ir.Module (None or "stablehlo") or an XlaComputation ("hlo")."""
        with _lowering().dialects() as home:
            home.give_away()  # the caller may look at the module in any thread
            return executable.module_ir(self.lower(jaxpr, device, options).module, dialect)

    def computation(
        self, closed: ClosedJaxpr, name: str, platform: str, axes: Sequence, donated: Sequence[bool], tuple_args: bool
    ):
        """A closed jaxpr as an XlaComputation called `name`, whose named axes are replicas."""
        with trace.mapped_axes(*axes):
            lowered = _lowering().lower(
                closed.jaxpr, name, donated, True, platform, axes=axes, symbol=name, consts=closed.consts
            )
        with lowered.home.lock:
            return executable.computation(lowered.module, tuple_args)

    def portable_module(self, jaxpr: Jaxpr, name: str, platform: str) -> tuple[str, Callable[[], bytes]]:
        """A program lowered for a platform that need not be available: StableHLO text, and a function that returns a
        portable artifact of it as bytes.
        """
        lowered = _lowering().lower(jaxpr, name, platform=platform)

        def artifact() -> bytes:
            with lowered.home.lock:
                return compat.portable_artifact(lowered.module)

        with lowered.home.lock:
            return executable.module_text(lowered.module), artifact

    def compile(self, jaxpr: Jaxpr, device, options: CompileOptions = CompileOptions()):
        """A jaxpr without constvars, compiled for one device, or for the devices of a Partition."""
        return self._compile(jaxpr, device, options)

    def compile_stored(self, jaxpr: Jaxpr, device, options: CompileOptions, data: bytes | None) -> Stored:
        """The same, from what was stored of it if that fits."""
        slot = cache.Slot(data)
        compiled = self._compile(jaxpr, device, options, slot)
        return Stored(compiled, slot.found, slot.dump)

    def _compile(self, jaxpr: Jaxpr, device, options: CompileOptions, slot: cache.Slot | None = None):
        pairs = {k: v for k, v in options.options if k != "keep_unused"}
        client = device.devices[0].client if type(device) is Partition else device.client
        with _lowering().dialects():
            with timed(LOWER, f"jit({options.name})"):
                lowered = self.lower(jaxpr, device, options)
            with timed(COMPILE, f"jit({options.name})"):
                return executable.compile_lowered(
                    client, jaxpr, lowered, device, options.name, tuple(pairs.items()), slot
                )

    def jit(
        self, fun: Callable, miss: Callable, static_argnums: Sequence[int], static_argnames: Sequence[str], name: str
    ) -> FastCall:
        """A callable that runs cached programs in C++."""
        return dispatch.jit(fun, miss, static_argnums, static_argnames, name, self.shard_arg, self._read_ahead)

    def _read_ahead(self, name: str) -> None:
        """A function is about to be traced for the first time: the compile cache may begin."""
        if config.compilation_cache_dir and trace.current_trace() is trace.root:
            device = self.default_device()
            cache.read_ahead(device, compile_options([device]), name)
