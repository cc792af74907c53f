"""What libraries take from jax beyond its public modules, backed by weft's own objects.

`weft.as_jax` finds `jax.x` here first: MODULES says where modules of jax stand, NAMES which names small ones have. A
module of jax that is in neither is weft's module of that name. Nothing else in weft imports this package.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from ..base.annotations import override

# module of jax -> module of weft
MODULES = {
    "core": "compat.core",
    "extend.core": "compat.core",
    "_src.core": "compat.core",
    "extend.core.primitives": "compat.primitives",
    "interpreters.ad": "compat.ad",
    "_src.interpreters.ad": "compat.ad",
    "interpreters.batching": "compat.batching",
    "_src.interpreters.batching": "compat.batching",
    "interpreters.mlir": "compat.mlir",
    "_src.interpreters.mlir": "compat.mlir",
    "interpreters.partial_eval": "compat.partial_eval",
    "_src.interpreters.partial_eval": "compat.partial_eval",
    "extend.linear_util": "compat.linear_util",
    "_src.linear_util": "compat.linear_util",
    "linear_util": "compat.linear_util",
    "extend.source_info_util": "compat.source_info_util",
    "_src.source_info_util": "compat.source_info_util",
    "_src.traceback_util": "compat.traceback_util",
    "api_util": "compat.api_util",
    "_src.api_util": "compat.api_util",
    "extend.backend": "compat.backend",
    "extend.sharding": "compat.sharding",
    "_src.xla_bridge": "compat.backend",
    "lib.xla_bridge": "compat.backend",
    "_src.api": "api.tracing",
    "_src.config": "base.config",
    "_src.dtypes": "base.dtypes",
    "_src.mesh": "base.mesh",
    "_src.hijax": "experimental.hijax",
    "_src.checkify": "experimental.checkify",
    "_src.prng": "compat.random",
    "extend.random": "compat.random",
    "_src.shard_map": "experimental.shard_map",
}

# module of jax -> its names and their places: "name" in the module at the start of the line, or "name=other" if it is
# called `other` there
NAMES = {
    "_src.ad_util": (
        "weft.compat.ad: Zero instantiate add_jaxvals zeros_like_aval; weft.compat.primitives: stop_gradient_p"
        " add_jaxvals_p"
    ),
    "_src.callback": (
        "weft.effects.callback: io_callback_p pure_callback_p; weft: pure_callback; weft.effects.callback: io_callback"
    ),
    # what orbax loads: of one process
    "_src.distributed": "weft.compat.hosts: global_state",
    "experimental.colocated_python": (
        "weft.experimental.colocated_python: colocated_cpu_devices colocated_python colocated_python_class"
    ),
    "experimental.colocated_python.func": "",
    "experimental.colocated_python.serialization": "weft.compat.backend: DeviceList xb=self",
    "extend.ifrt_programs": "weft.compat.backend: ifrt_programs",
    "_src.compiler": "weft.runtime.aot: Compiled",
    "_src.dtypes": (
        "weft.compat.core: supports_inf; weft.base.limits: finfo iinfo; weft.base.promotion: result_type;"
        " weft.base.errors: TypePromotionError"
    ),
    "_src.dispatch": (
        "weft.runtime.effects: wait_for_tokens=effects_barrier; weft.runtime.dispatch:"
        " apply_primitive=apply_by_compiling"
    ),
    "_src.interpreters.xla": "weft.core.trace: canonicalize_dtype_handlers=aval_of; weft.compat.core: apply_primitive",
    "_src.lib": "weft.compat.backend: xla_client xla_extension jaxlib; weft.compat.backend: version",
    "_src.lib.mlir": "weft.compat.mlir: ir",
    "_src.lib.mlir.dialects": "weft.compat.mlir: hlo chlo func sdy",
    "_src.literals": "weft.core.jaxpr: TypedNdArray=TypedScalar",
    "_src.mesh": "weft.base.mesh: Mesh AbstractMesh",
    "_src.sharding_impls": "weft.base.mesh: NamedSharding SingleDeviceSharding PartitionSpec=P",
    "_src.state.types": "weft.base.avals: AbstractRef",
    "_src.tree_util": "weft.compat.core: _registry; weft.compat.api_util: prefix_errors",
    "_src.util": "weft.compat.api_util: safe_map safe_zip unzip2 split_list partition_list merge_lists",
    "extend.mlir": "weft.compat.mlir: deserialize_portable_artifact serialize_portable_artifact ir",
    "extend.mlir.ir": "",
    "extend.mlir.dialects": "weft.compat.mlir: stablehlo=hlo chlo func sdy",
    "extend.xla": "weft.compat.backend: xla_client",
    "interpreters.pxla": "",
    "interpreters.xla": (
        "weft.core.trace: canonicalize_dtype_handlers=aval_of pytype_aval_mappings=aval_of; weft.compat.core:"
        " apply_primitive"
    ),
    "lib": "weft.compat.backend: version=version_text __version__=version_text",
    "lib.xla_client": "weft.compat.backend: xla_client",
    "lib.xla_extension": "weft.errors: XlaRuntimeError=JaxRuntimeError",
}
# modules of jax that only hold others
PACKAGES = {"_src", "_src.interpreters", "_src.state", "extend", "interpreters"}


class Named(ModuleType):
    """A module whose names are defined elsewhere. Each is found when it is first used. With `weft`, the names of that
    module are there too.
    """

    def __init__(self, name: str, table: str, behind: str | None):
        super().__init__(name, f"{name}: names of weft under jax's")
        self.__path__: list = []
        self._behind = behind
        self._places = {}
        for group in filter(None, map(str.strip, table.split(";"))):
            place, _, names = group.partition(":")
            for entry in names.split():
                shown, _, own = entry.partition("=")
                self._places[shown] = place, own or shown

    @override
    def __getattr__(self, name: str):
        if name in self._places:
            place, own = self._places[name]
            return getattr(importlib.import_module(place), own)
        try:
            if self._behind is not None:
                return getattr(importlib.import_module(self._behind), name)
            return (
                importlib.import_module(f"{self.__name__}.{name}")
                if not name.startswith("__")
                else object.__getattribute__(self, name)
            )
        except (AttributeError, ModuleNotFoundError):
            raise AttributeError(
                f"module {self.__name__!r} has no attribute {name!r}: weft, which replaces jax here, does not have it."
            ) from None

    @override
    def __dir__(self):
        inner = {
            name.rpartition(".")[2]
            for name in (*MODULES, *NAMES, *PACKAGES)
            if f"jax.{name}".rpartition(".")[0] == self.__name__
        }
        behind = dir(importlib.import_module(self._behind)) if self._behind is not None else []
        return sorted({*self.__dict__, *self._places, *behind, *inner})
