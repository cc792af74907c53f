"""weft: JAX for everywhere. One program, traced once, runs on XLA, as WebAssembly, on WebGPU and on a remote host.

Example:
    >>> import weft, weft.numpy as jnp
    >>> weft.grad(lambda x: jnp.sum(x ** 2))(jnp.arange(3.))
    Array([0., 2., 4.], dtype=float32)
"""

from __future__ import annotations

from functools import partial as _partial
from typing import TYPE_CHECKING

from .base.collector import paused as _paused

with _paused():  # what modules make stays; the collector would look through all of it dozens of times
    from .numpy import array_methods as _array_methods

from . import errors
from .api.tracing import (
    block_until_ready as block_until_ready,
    closure_convert as closure_convert,
    copy_to_host_async as copy_to_host_async,
    device_get as device_get,
    device_put as device_put,
    ensure_compile_time_eval as ensure_compile_time_eval,
    eval_shape as eval_shape,
    grad as grad,
    fwd_and_bwd as fwd_and_bwd,
    hessian as hessian,
    jacfwd as jacfwd,
    jacobian as jacobian,
    jacrev as jacrev,
    jvp as jvp,
    linear_transpose as linear_transpose,
    linearize as linearize,
    make_jaxpr as make_jaxpr,
    named_call as named_call,
    value_and_grad as value_and_grad,
    vjp as vjp,
    vmap as vmap,
)
from .base.avals import ShapeDtypeStruct as ShapeDtypeStruct
from .base.config import (
    check_tracer_leaks as check_tracer_leaks,
    config as config,
    debug_infs as debug_infs,
    debug_nans as debug_nans,
    default_device as default_device,
    default_matmul_precision as default_matmul_precision,
    default_prng_impl as default_prng_impl,
    disable_jit as disable_jit,
    enable_custom_prng as enable_custom_prng,
    enable_checks as enable_checks,
    enable_x64 as enable_x64,
    explain_cache_misses as explain_cache_misses,
    auto_pcast as auto_pcast,
    debug_key_reuse as debug_key_reuse,
    jax2tf_associative_scan_reductions as jax2tf_associative_scan_reductions,
    remove_size_one_mesh_axis_from_type as remove_size_one_mesh_axis_from_type,
    softmax_custom_jvp as softmax_custom_jvp,
    allow_f16_reductions as allow_f16_reductions,
    array_garbage_collection_guard as array_garbage_collection_guard,
    legacy_prng_key as legacy_prng_key,
    no_execution as no_execution,
    no_tracing as no_tracing,
    thread_guard as thread_guard,
    transfer_guard as transfer_guard,
    transfer_guard_device_to_device as transfer_guard_device_to_device,
    transfer_guard_device_to_host as transfer_guard_device_to_host,
    transfer_guard_host_to_device as transfer_guard_host_to_device,
    log_compiles as log_compiles,
    make_user_context as make_user_context,
    numpy_dtype_promotion as numpy_dtype_promotion,
    numpy_rank_promotion as numpy_rank_promotion,
    threefry_partitionable as threefry_partitionable,
)
from .higher_order import policies as _policies
from .effects.callback import pure_callback as pure_callback
from .higher_order.custom_jvp import custom_jvp as custom_jvp
from .higher_order.custom_vjp import custom_gradient as custom_gradient, custom_vjp as custom_vjp
from .higher_order.remat import checkpoint as checkpoint
from . import core
from .core.trace import get_aval as _get_aval
from .base.dtypes import float0 as float0
from .base.lazy import LazyNames as _LazyNames
from .api.pullback import ad as ad
from .runtime import reference as _reference
from .runtime.array import Array as Array
from .runtime.device import default_platform as _default_platform, devices as devices
from .runtime.backend import Device as Device
from .runtime.effects import effects_barrier as effects_barrier
from .runtime.jit import clear_caches as clear_caches, jit as jit
from .runtime.processes import (
    device_count as device_count,
    host_count as host_count,
    host_id as host_id,
    host_ids as host_ids,
    local_device_count as local_device_count,
    local_devices as local_devices,
    process_count as process_count,
    process_index as process_index,
    process_indices as process_indices,
)
from .base.source_info import filter_uncaught as _filter_uncaught, named_scope as named_scope
from . import tree
from .base.tree import tree_map as tree_map

from .version import __version__ as __version__, __version_info__ as __version_info__

if TYPE_CHECKING:  # loaded on first use
    from . import (
        ad_checkpoint,
        custom_batching,
        custom_derivatives,
        debug,
        distributed,
        dlpack,
        dtypes,
        example_libraries,
        experimental,
        export,
        ffi,
        flatten_util,
        image,
        lax,
        memory,
        monitoring,
        nn,
        numpy,
        ops,
        plot,
        profiler,
        random,
        ref,
        remote,
        scipy,
        sharding,
        stages,
        tree_util,
        typing,
    )
    from .api.computation import xla_computation as xla_computation
    from .runtime.environment import live_arrays as live_arrays, print_environment_info as print_environment_info
    from .base.mesh import NamedSharding as NamedSharding, P as P, set_mesh as set_mesh
    from .base.shard import Shard as Shard
    from .api.parallel import (
        device_put_replicated as device_put_replicated,
        device_put_sharded as device_put_sharded,
        make_mesh as make_mesh,
        pmap as pmap,
        shard_map as shard_map,
        smap as smap,
    )
    from .api.explicit import reshard as reshard
    from .api.parts import (
        make_array_from_callback as make_array_from_callback,
        make_array_from_process_local_data as make_array_from_process_local_data,
        make_array_from_single_device_arrays as make_array_from_single_device_arrays,
    )
    from .api.refs import (
        Ref as Ref,
        ds as ds,
        empty_ref as empty_ref,
        free_ref as free_ref,
        freeze as freeze,
        new_ref as new_ref,
    )

default_backend = _default_platform
checkpoint_policies = _policies
typeof = _get_aval
remat = checkpoint
checking_leaks = _partial(check_tracer_leaks, True)
_filter_uncaught()

# Modules, and names of modules, that load when they are first used.
_lazy = _LazyNames(
    globals(),
    {
        "api.refs": "Ref new_ref empty_ref free_ref freeze ds",
        "api.parallel": ("pmap shard_map smap make_mesh device_put_sharded device_put_replicated"),
        "api.explicit": "reshard",
        "api.parts": (
            "make_array_from_callback make_array_from_single_device_arrays make_array_from_process_local_data"
        ),
        "base.mesh": "P NamedSharding set_mesh",
        "base.shard": "Shard",
        "api.computation": "xla_computation",
        "runtime.environment": "live_arrays print_environment_info",
    },
    modules=(
        "lax numpy random nn plot scipy example_libraries tree_util flatten_util typing version ref ffi distributed"
        " dlpack memory monitoring image remote debug experimental export stages sharding profiler"
        " custom_batching custom_derivatives ad_checkpoint ops dtypes"
    ),
)

# Modules that are no part of what users see; Python binds them here when it loads them.
_ROOMS = (
    "api base compat decompositions effects higher_order primitives runtime serialization symbolic testing transforms"
    " avals mesh"
).split()

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts every name
    __getattr__ = _lazy.find

    def __dir__():
        public = {name for name in globals() if name[0] != "_"} - {"TYPE_CHECKING", "annotations", *_ROOMS}
        return sorted({*public, *_lazy.names(), "__version__", "__version_info__"})
