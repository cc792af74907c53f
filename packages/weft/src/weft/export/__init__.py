"""Programs that leave the process: `export` traces a jitted function, `Exported.serialize` writes it down,
`deserialize` reads it anywhere.

The file contains weft's portable form (a verified jaxpr, not a compiled program), so that one file runs on XLA,
WebAssembly, WebGPU, the reference interpreter and a remote host. Shapes may be symbolic (`symbolic_shape`): the program
is specialised for the sizes of each call.

Example:
    >>> import weft, weft.numpy as jnp
    >>> from weft import export
    >>> spec = weft.ShapeDtypeStruct(export.symbolic_shape("b, 2"), jnp.float32)
    >>> exported = export.export(weft.jit(lambda x: x.sum(axis=0) / x.shape[0]))(spec)
    >>> data = exported.serialize()
    >>> export.deserialize(data).call(jnp.ones((3, 2)))
    Array([1., 1.], dtype=float32)
"""

from __future__ import annotations

from ..symbolic.dims import is_symbolic_dim as is_symbolic_dim
from ..symbolic.scope import SymbolicScope as SymbolicScope, symbolic_shape as symbolic_shape
from .exported import (
    DisabledSafetyCheck as DisabledSafetyCheck,
    Exported as Exported,
    default_export_platform as default_export_platform,
    deserialize as deserialize,
    export as export,
    maximum_supported_calling_convention_version as maximum_supported_calling_convention_version,
    minimum_supported_calling_convention_version as minimum_supported_calling_convention_version,
    symbolic_args_specs as symbolic_args_specs,
)
from .pages import web as web
from .trees import (
    register_namedtuple_serialization as register_namedtuple_serialization,
    register_pytree_node_serialization as register_pytree_node_serialization,
)

__all__ = [
    "DisabledSafetyCheck",
    "Exported",
    "SymbolicScope",
    "default_export_platform",
    "deserialize",
    "export",
    "is_symbolic_dim",
    "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version",
    "register_namedtuple_serialization",
    "register_pytree_node_serialization",
    "symbolic_args_specs",
    "symbolic_shape",
    "web",
]


def __dir__() -> list[str]:
    return sorted(__all__)
