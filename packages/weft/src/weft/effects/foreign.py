"""ffi_call: a call of a compiled function that was registered with XLA under a name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..base.annotations import override
from ..core import effects
from ..core.primitive import Primitive, unsupported
from ..core.wire import stays
from ..base.errors import at_user_line
from .callback import batch_by_method

if TYPE_CHECKING:
    from ..core.trace import Axis
    from ..core.types import Dims, Value

ffi_call_p = Primitive(
    "ffi_call",
    multiple_results=True,
    wire=stays("it calls compiled code by its name, and says itself which results that writes"),
)
_EFFECTS: frozenset[Any] = frozenset([effects.io])
_NONE: frozenset[Any] = frozenset()


class Attribute:
    """A NumPy array as a parameter: compared and hashed by its contents."""

    __slots__ = ("value",)

    def __init__(self, value: Value):
        self.value = value

    def _key(self) -> tuple[Any, Any, Any]:
        return str(self.value.dtype), self.value.shape, self.value.tobytes()

    @override
    def __eq__(self, other: object) -> bool:
        return type(other) is Attribute and self._key() == other._key()

    @override
    def __hash__(self) -> int:
        return hash(self._key())

    @override
    def __repr__(self) -> str:
        return f"Attribute({self.value.tolist()}, {self.value.dtype})"


def _batch(axis: Axis, args: Sequence[Value], dims: Dims, **params: Any) -> tuple[Any, Any]:
    if params["vmap_method"] not in (None, "sequential", "sequential_unrolled"):
        leading = lambda layouts, more: tuple(
            (*[n + 1 for n in layout], 0) if m else layout for layout, m in zip(layouts, more)
        )
        stays = params["vmap_method"] == "legacy_vectorized"
        params = dict(
            params,
            input_layouts=leading(params["input_layouts"], [d is not None or not stays for d in dims]),
            output_layouts=leading(params["output_layouts"], [True] * len(params["output_layouts"])),
        )
    return batch_by_method(ffi_call_p, f"the foreign function {params['target_name']!r}", axis, args, dims, params)


def _jvp(primals: Sequence[Value], tangents: Sequence[Value], *, target_name: str, **_: Any) -> tuple[Any, Any]:
    raise ValueError(
        at_user_line(
            f"The FFI call to {target_name!r} cannot be differentiated: its derivative is not known. Use"
            " weft.custom_jvp or weft.custom_vjp to say what it is, or weft.lax.stop_gradient on its arguments."
        )
    )


ffi_call_p.abstract = lambda *avals, result_avals, **_: list(result_avals)
ffi_call_p.effects = lambda params: _EFFECTS if params["has_side_effect"] else _NONE
ffi_call_p.jvp, ffi_call_p.batch = _jvp, _batch
ffi_call_p.transpose = unsupported("a foreign function is not known to be linear")
ffi_call_p.reference = unsupported("a foreign function is compiled code, which only XLA can call")
