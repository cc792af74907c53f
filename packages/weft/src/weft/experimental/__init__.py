"""What may still change: checkify, io_callback. Modules of jax.experimental that weft does not have say at import
why not, and what to use.
"""

import sys
from importlib.abc import MetaPathFinder
from types import ModuleType

from ..base.annotations import override
from ..effects.callback import io_callback as io_callback
from . import checkify

_TPU = (
    "it writes kernels of TPUs and GPUs through Mosaic and Triton, which are no part of weft. Write the function with"
    " weft.numpy: each backend fuses it; weft.ffi calls kernels that are compiled elsewhere"
)
_HOSTS = (
    "it moves work between processes of one program, and weft's programs run in one. Run the function itself; weft-host"
    " runs programs on another machine"
)
_HINTS = "it tells XLA's scheduler what no other backend has. Leave it out: it changes no value"
_STORE = (
    "it writes TensorStore's files, and weft does not depend on TensorStore. Use"
    " weft.experimental.array_serialization.pytree_serialization"
)
# module -> why it is not there, and what to do instead
ABSENT = {
    "pallas": _TPU,
    "mosaic": _TPU,
    "custom_partitioning": (
        "it registers Python code that XLA's partitioner calls. Use weft.shard_map, which says what each device"
        " computes"
    ),
    "colocated_python": _HOSTS,
    "transfer": _HOSTS,
    "compute_on": _HINTS,
    "control_deps": _HINTS,
    "fused": _HINTS,
    "scheduling_groups": _HINTS,
    "xla_metadata": _HINTS,
    "shard_alike": (
        "weft has no shardings that are left to the compiler. Give both arrays one with"
        " weft.lax.with_sharding_constraint"
    ),
    "buffer_callback": (
        "it gives a callback the device's own buffers. Use weft.pure_callback or weft.experimental.io_callback, whose"
        " functions take arrays of the host"
    ),
    "profiler": "it reads XLA's own profiles. Use weft.profiler, which writes traces",
    "roofline": "it knows TPUs alone. Use weft.jit(f).lower(…).compile().cost_analysis()",
    "source_mapper": (
        "it maps the passes of XLA. Use weft.jit(f).lower(…).as_text(debug_info=True), which has the lines"
    ),
    "jax2tf": "it calls TensorFlow, which weft does not depend on. Write programs to files with weft.export",
    "array_serialization.serialization": _STORE,
    "array_serialization.tensorstore_impl": _STORE,
}


class _Absent(MetaPathFinder):
    """Asked last, where nobody has found the module."""

    @override
    def find_spec(self, fullname, path=None, target=None):
        package, parent, name = (*fullname.split(".", 2), "", "")[:3]
        if name in ABSENT and parent == "experimental" and package in ("weft", "jax"):
            raise ModuleNotFoundError(f"{fullname} is not in weft: {ABSENT[name]}.", name=fullname)
        return None


def __getattr__(name: str):
    raise AttributeError(
        f"module 'weft.experimental' has no attribute {name!r}" + (f": {ABSENT[name]}." if name in ABSENT else "")
    )


def __dir__() -> list[str]:
    loaded = [name for name, value in globals().items() if isinstance(value, ModuleType) and name != "sys"]
    return sorted([*loaded, "io_callback"])


sys.meta_path.append(_Absent())
