"""Kernels of one's own: functions over references to blocks of arrays, run once for each point of a grid.

What kernels of TPUs and GPUs need beyond that (Mosaic's and Triton's memory, semaphores and transfers between devices)
is not in weft, and says so where it is asked for.
"""

from __future__ import annotations

from ...api.refs import Slice as Slice, ds as ds
from ...higher_order.pallas_call import pallas_call_p as pallas_call_p
from .call import num_programs as num_programs, pallas_call as pallas_call, program_id as program_id
from .inside import (
    broadcast_to as broadcast_to,
    debug_print as debug_print,
    load as load,
    loop as loop,
    multiple_of as multiple_of,
    reciprocal as reciprocal,
    run_scoped as run_scoped,
    run_state as run_state,
    store as store,
    when as when,
    with_scoped as with_scoped,
)
from .sizes import (
    align_to as align_to,
    cdiv as cdiv,
    empty as empty,
    empty_like as empty_like,
    empty_ref_like as empty_ref_like,
    estimate_cost as estimate_cost,
    next_power_of_2 as next_power_of_2,
    strides_from_shape as strides_from_shape,
)
from .specs import (
    ANY as ANY,
    BlockDim as BlockDim,
    Blocked as Blocked,
    BlockSpec as BlockSpec,
    Buffered as Buffered,
    CompilerParams as CompilerParams,
    CostEstimate as CostEstimate,
    Element as Element,
    GridSpec as GridSpec,
    MemoryRef as MemoryRef,
    MemorySpace as MemorySpace,
    Squeezed as Squeezed,
    no_block_spec as no_block_spec,
    squeezed as squeezed,
)

dslice = ds

_DEVICES = "it moves data between devices. Leave it to weft.shard_map, around pallas_call"
_MESH = "it describes kernels of TPUs and GPUs by a mesh of their cores. Use pallas_call with a grid"
_MEMORY = "it names memory of TPUs and GPUs. Leave it out: weft's backends choose where memory is; scratch is pl.ANY"
_MOSAIC = "it belongs to Mosaic, the compiler for TPUs and GPUs. Leave it out"
_CHECKS = "kernels have no checks that can be switched. Use weft.experimental.checkify around pallas_call"
# name -> why it is not there, and what to do instead
ABSENT = {
    **dict.fromkeys(("semaphore", "semaphore_read", "semaphore_signal", "semaphore_wait", "DeviceIdType"), _DEVICES),
    **dict.fromkeys(("core_map", "kernel", "get_global"), _MESH),
    **dict.fromkeys(("HOST", "BoundedSlice", "Indirect", "RevisitMode"), _MEMORY),
    **dict.fromkeys(("delay", "lower_as_mlir", "pallas_export_experimental"), _MOSAIC),
    **dict.fromkeys(("debug_check", "enable_debug_checks", "enable_poison_buffers"), _CHECKS),
    "select_ref": "it picks a reference while a kernel runs. Use pl.when for each, or one reference with one more axis",
    "PrefetchScalarGridSpec": (
        "it puts scalars where TPUs read them before a block is fetched. Pass them as operands, and read whole arrays"
        " in the kernel: ref[pl.ds(start, n)]"
    ),
}


def __getattr__(name: str):
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}" + (f": {ABSENT[name]}." if name in ABSENT else "")
    )


def __dir__() -> list[str]:
    hidden = ("annotations", "ABSENT", "call", "inside", "sizes", "specs")
    return sorted([name for name in globals() if name[0] != "_" and name not in hidden])
