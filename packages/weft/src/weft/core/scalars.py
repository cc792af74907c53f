"""Python scalars with a dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from ..base.annotations import override
from ..base.avals import ShapedArray

if TYPE_CHECKING:
    from ..base.dtypes import ElementType


@final
class TypedScalar:
    """A Python scalar with a dtype: the value of a strongly typed literal when a jaxpr is evaluated."""

    __slots__ = ("val", "aval")

    def __init__(self, val: Any, aval: ShapedArray):
        self.val, self.aval = val, aval

    @property
    def shape(self) -> tuple[()]:
        return ()

    @property
    def ndim(self) -> int:
        return 0

    @property
    def dtype(self) -> ElementType:
        return self.aval.dtype

    @property
    def weak_type(self) -> bool:
        return self.aval.weak_type

    @override
    def __repr__(self) -> str:
        return f"{self.val}:{self.aval.str_short()}"
