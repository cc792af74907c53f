"""Element types, by jax.dtypes's names."""

from typing import TYPE_CHECKING as _TYPE_CHECKING, Any as _Any

from .base import dtypes as _dtypes
from .base.dtypes import (
    bfloat16 as bfloat16,
    canonicalize_dtype as canonicalize_dtype,
    extended as extended,
    float0 as float0,
    issubdtype as issubdtype,
    itemsize_bits as itemsize_bits,
    prng_key as prng_key,
    scalar_type_of as scalar_type_of,
)
from .base.limits import finfo as finfo, iinfo as iinfo
from .base.promotion import result_type as result_type
from .base.errors import (
    TypePromotionError as TypePromotionError,
)

if not _TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts every name

    def __getattr__(name: str) -> _Any:
        if name == "KeyDType":  # as keys pickled before the type moved name it (decision 028)
            return _dtypes.KeyDType
        raise AttributeError(f"module 'weft.dtypes' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return [name for name in globals() if not name.startswith("_")]
