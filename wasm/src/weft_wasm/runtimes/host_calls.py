"""Performing the host calls of programs: Python functions on arrays, whose arguments and results are passed as
bytes.
"""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Sequence

from weft.base import errors
from weft.base.host import from_bytes, to_bytes
from weft.runtime.effects import call_host, host_results

from weft_wasm.lower.types import Callback
from weft_wasm.runtimes.interface import WasmRuntime

if TYPE_CHECKING:
    from weft.runtime.partition import Where


def perform(call: Callback, device: Where, arguments: Sequence[bytes]) -> list[bytes]:
    """Calls the function on arrays, given and returned as their bytes."""
    values = [from_bytes(data, a.shape, a.dtype) for data, a in zip(arguments, call.ins)]
    try:
        if call.name == "debug_callback":
            call_host(call.callback, values, call.ins, device)
            return []
        results = host_results(call.name, call.callback, call.outs, values, call.ins, device)
    except Exception as e:  # of the class by which libraries know errors of programs, as on XLA
        raise errors.JaxRuntimeError("".join(traceback.format_exception_only(e)).strip()) from e
    return [bytes(to_bytes(x)) for x in results]


def perform_at(call: Callback, runtime: WasmRuntime, device: Where, addresses: Sequence[int]) -> None:
    """The same on arrays at the first addresses; its results are written to the others."""
    arguments = [bytes(runtime.peek(p, a.size * a.dtype.itemsize)) for p, a in zip(addresses, call.ins)]
    for pointer, data in zip(addresses[len(call.ins) :], perform(call, device, arguments)):
        runtime.poke(pointer, data)
