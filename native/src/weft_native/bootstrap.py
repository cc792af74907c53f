"""Sets up the parts that jaxlib's C++ needs before the first call, and would otherwise get from jax. Importing this
module does it once.

Real jax must not be imported in the same process: classes and configuration slots in C++ exist once for each
process.
"""

from __future__ import annotations

import gc
import os
import sys
import types

import numpy as np
import jaxlib.cpu_feature_guard as cpu_feature_guard

cpu_feature_guard.check_cpu_features()  # before the library, which would crash instead of naming the missing package

import jaxlib._jax as _jax  # noqa: E402
from jaxlib import xla_client as xc  # noqa: E402
from weft.base import avals, errors, source_info  # noqa: E402
from weft.core.trace import Tracer  # noqa: E402

from . import compat  # noqa: E402

Config = _jax.config.Config
UNSET = _jax.config.unset

# Thread-local values that C++ reads at each call. Cached programs with different jit keys are different.
enable_x64 = Config("enable_x64", False, include_in_jit_key=True, include_in_trace_context=True)
disable_jit = Config("disable_jit", False, include_in_jit_key=False, include_in_trace_context=False)
_post_hook = Config("post_hook", None, include_in_jit_key=False, include_in_trace_context=False)
# The rest of weft's configuration, as one value; and whether a transformation is tracing in this thread.
context = Config("weft_context", None, include_in_jit_key=True, include_in_trace_context=True)
tracing = Config("weft_tracing", False, include_in_jit_key=True, include_in_trace_context=True)

_REPLICATED = xc.HloSharding.replicate()
_LAZY = ("jax", "jax.core", "jax._src", "jax._src.named_sharding", "jax._src.sharding_impls")


class _OneDeviceMesh:
    """The part of a mesh that the single NamedSharding needs which is made during the setup."""

    axis_names = ("i",)
    size = 1

    def __init__(self, device):
        self.devices = np.array([device], dtype=object)
        self._internal_device_list = xc.DeviceList((device,))


def _prime(client) -> None:
    """Makes C++ execute its lazy imports of `jax.*` now, with substitutes, so that it never imports an installed
    jax.

    Two of the three are cached permanently. The third is tried for each array that is flattened, so it is made to fail
    fast.
    """
    device = client.local_devices()[0]
    saved = {name: m for name, m in sys.modules.items() if name == "jax" or name.startswith("jax.")}
    for name in saved:
        del sys.modules[name]

    def stand_in(name, **members):
        module = sys.modules[name] = types.ModuleType(name)
        module.__path__ = []
        module.__dict__.update(members)
        return module

    def single_device_sharding(device, memory_kind=None):
        return xc.SingleDeviceSharding(device, memory_kind=memory_kind)

    try:
        core = stand_in("jax.core", ShapedArray=avals.ShapedArray)
        named = stand_in("jax._src.named_sharding", check_pspec=lambda mesh, spec: None)
        impls = stand_in("jax._src.sharding_impls", make_single_device_sharding=single_device_sharding)
        stand_in("jax", core=core, _src=stand_in("jax._src", named_sharding=named, sharding_impls=impls))
        xc.NamedSharding(_OneDeviceMesh(device), ())
        zero = np.zeros((), np.float32)
        array = xc.batched_device_put(
            avals.shaped((), zero.dtype), xc.SingleDeviceSharding(device), [zero], [device], True
        )
        _ = array._arrays[0].aval
    finally:
        for name in _LAZY:
            sys.modules.pop(name, None)
        sys.modules.update(saved)
    sys.modules.setdefault("jax._src.sharding_impls", None)  # type: ignore[arg-type]


def _install() -> None:
    compat.check_release()
    source_info.register_exclusion(os.path.dirname(os.path.abspath(__file__)) + os.sep)
    if getattr(sys.modules.get("jax._src"), "__file__", None):  # the real package; `weft.as_jax` has no such file
        raise errors.BackendError(
            "jax is imported in this process, and weft's XLA backend can't share jaxlib's C++ state with it. "
            "Use one of the two in a process, or `import weft.as_jax` before anything imports jax."
        )
    _jax.jax_jit.set_enable_x64_state(enable_x64)
    _jax.jax_jit.set_disable_jit_state(disable_jit)
    _jax.jax_jit.set_post_hook_state(_post_hook)
    _jax.set_tracer_class(Tracer)
    xc.SingleDeviceSharding._to_xla_hlo_sharding = lambda self, ndim: _REPLICATED
    xc.SingleDeviceSharding.memory_kind = property(lambda self: self._memory_kind)
    xc.SingleDeviceSharding.device_set = property(lambda self: {self._device})
    gc.callbacks.append(lambda *_: _jax.collect_garbage())
    errors.runtime_raises(_jax.JaxRuntimeError)  # C++'s own class, whose bases can't be changed


_install()
_primed = False


def prime(client) -> None:
    """Primes C++ with the first client there is."""
    global _primed
    if not _primed:
        guard = _jax.guard_lib.thread_local_state()  # this array is not the user's
        before, guard.host_to_device = guard.host_to_device, _jax.guard_lib.TransferGuardLevel.ALLOW
        try:
            _prime(client)
        finally:
            guard.host_to_device = before
        _primed = True
