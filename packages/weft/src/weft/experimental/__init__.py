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
    "it writes kernels of TPUs and GPUs through Mosaic and Triton, which are no part of weft. Write the kernel with the"
    " names of weft.experimental.pallas itself, scratch memory as pl.ANY(shape, dtype): each backend compiles it;"
    " weft.ffi calls kernels that are compiled elsewhere"
)
_HOSTS = (
    "it moves work between processes of one program, and weft's programs run in one. Run the function itself; weft-host"
    " runs programs on another machine"
)
_HINTS = "it tells XLA's scheduler what no other backend has. Leave it out: it changes no value"
_STORE = (
    "it writes TensorStore's files, and weft does not depend on TensorStore. Use"
    " weft.experimental.checkpoints, which keeps the parts of arrays over devices"
)
# module -> why it is not there, and what to do instead
ABSENT = {
    "mosaic": _TPU,
    "transfer": _HOSTS,
    "control_deps": _HINTS,
    "fused": _HINTS,
    "profiler": "it reads XLA's own profiles. Use weft.profiler, which writes traces",
    "roofline": "it knows TPUs alone. Use weft.jit(f).lower(…).compile().cost_analysis()",
    "source_mapper": (
        "it maps the passes of XLA. Use weft.jit(f).lower(…).as_text(debug_info=True), which has the lines"
    ),
    "jax2tf": "it calls TensorFlow, which weft does not depend on. Write programs to files with weft.export",
    "array_serialization.tensorstore_impl": _STORE,
}


# modules of kernels for certain devices
KERNELS = [f"pallas.{name}" for name in ("tpu", "tpu_sc", "triton", "gpu", "mosaic_gpu", "fuser", "ops")]


class _Absent(MetaPathFinder):
    """Asked last, where nobody has found the module."""

    @override
    def find_spec(self, fullname, path=None, target=None):
        package, parent, name = (*fullname.split(".", 2), "", "")[:3]
        if name in KERNELS and parent == "experimental" and package in ("weft", "jax"):
            # no ModuleNotFoundError: `from … import` would say nothing but that there is no such name
            raise ImportError(f"{fullname} is not in weft: {_TPU}.", name=fullname)
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
