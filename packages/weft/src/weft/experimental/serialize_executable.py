"""Compiled programs as bytes, to be loaded by another process.

The bytes hold the program, as `weft.export` writes it, with what it was compiled by. The process that loads them
compiles it, or finds it in the persistent compile
cache: so they work on every backend and hold no machine code that would have to be trusted.
"""

from __future__ import annotations

import json
from typing import Any, Sequence

from .. import export
from ..base.avals import ShapeDtypeStruct
from ..export.exported import _from_traced
from ..runtime.aot import Compiled
from ..runtime.device import devices
from ..runtime.jit import jit
from ..base.tree import tree_structure

__all__ = ["deserialize_and_load", "serialize"]


def serialize(compiled: Compiled) -> tuple[bytes, Any, Any]:
    """Writes a compiled program as bytes.

    Args:
        compiled: a compiled program, as `weft.jit(f).lower(…).compile()` returns it.

    Returns:
        (bytes, in_tree, out_tree): the program, and the structures of its arguments and results.
        `deserialize_and_load` takes all three. The caller keeps the structures, for example with pickle.

    Raises:
        ValueError: `compiled` is not a compiled program, or was compiled for several devices.
        NotPortable: the program has callbacks or other effects.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.experimental import serialize_executable
        >>> compiled = weft.jit(lambda x: x + 1).lower(jnp.zeros(2)).compile()
        >>> serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled))(jnp.zeros(2))
        Array([1., 1.], dtype=float32)
    """
    if not isinstance(compiled, Compiled):
        raise ValueError(
            "serialize takes a compiled program, as weft.jit(f).lower(…).compile() gives it, got"
            f" {type(compiled).__name__}."
        )
    jitted = compiled.lowered.traced_call.jitted
    if any(s is not None for given in compiled.lowered.traced_call.shardings if given is not None for s in given):
        raise ValueError(
            f"serialize: {jitted.name} has in_shardings or out_shardings; programs over several devices can't be"
            " written."
        )
    closed = compiled.closed
    in_tree, out_tree = [tree_structure((tuple([0] * len(avals)), {})) for avals in (closed.in_avals, closed.out_avals)]
    program = _from_traced(
        jitted.name,
        closed,
        in_tree,
        out_tree,
        (export.default_export_platform(),),
        (export.DisabledSafetyCheck.platform(),),
    )
    head = {
        "name": jitted.name,
        "donated": list(compiled.lowered.donated),
        "keep_unused": bool(jitted.keep_unused),
        "options": [list(pair) for pair in compiled.options],
    }
    return json.dumps(head).encode() + b"\n" + bytes(program.serialize()), compiled.in_tree, compiled.out_tree


def deserialize_and_load(
    serialized: bytes,
    in_tree: Any,
    out_tree: Any,
    backend: str | None = None,
    execution_devices: Sequence | None = None,
) -> Compiled:
    """Loads a compiled program that `serialize` has written.

    Args:
        serialized: the bytes.
        in_tree, out_tree: the structures that `serialize` returned with them.
        backend: the name of a platform whose first device runs the program; str. By default the default device
            does.
        execution_devices: a sequence with the one device that runs the program.

    Returns:
        a `weft.stages.Compiled`, which takes and returns arrays of the shapes and dtypes that the program was
        compiled for.

    Raises:
        ValueError: `serialize` did not write these bytes, or `execution_devices` does not have exactly one device.
        DeserializationError: the bytes are damaged.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.experimental import serialize_executable
        >>> written = serialize_executable.serialize(weft.jit(lambda x: 2 * x).lower(jnp.zeros(2)).compile())
        >>> double = serialize_executable.deserialize_and_load(*written, execution_devices=weft.devices()[:1])
        >>> double(jnp.ones(2))
        Array([2., 2.], dtype=float32)
    """
    head, newline, blob = bytes(serialized).partition(b"\n")
    try:
        fields = json.loads(head)
    except ValueError:
        fields = None
    if not newline or not isinstance(fields, dict):
        raise ValueError(
            "deserialize_and_load: weft.experimental.serialize_executable.serialize did not write these bytes."
        )
    if execution_devices is not None and len(execution_devices) != 1:
        raise ValueError(
            f"deserialize_and_load: the program is for one device, got {len(execution_devices)} in execution_devices."
        )
    exported = export.deserialize(bytearray(blob))
    function = lambda *leaves: exported.call(*leaves)
    function.__name__ = fields["name"]
    jitted = jit(
        function,
        donate_argnums=tuple(i for i, given in enumerate(fields["donated"]) if given),
        keep_unused=fields["keep_unused"],
        compiler_options={key: value for key, value in fields["options"]} or None,
    )
    traced = jitted.trace(*[ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in exported.in_avals])
    traced.in_tree, traced.out_tree = in_tree, out_tree
    device = (
        list(execution_devices)
        if execution_devices is not None
        else devices(backend)[:1]
        if backend is not None
        else None
    )
    return traced.lower().compile(device_assignment=device)


def __dir__() -> list[str]:
    return sorted(__all__)
