"""Element types, by jax.dtypes's names."""

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
