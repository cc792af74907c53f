"""The errors of the language. Each class's docstring is its help page: what causes it, an example, and what to do
instead.
"""

from typing import Any

from .base import errors as _errors
from .base.errors import (
    AxisError as AxisError,
    BackendError as BackendError,
    ConcretizationTypeError as ConcretizationTypeError,
    InconclusiveDimensionOperation as InconclusiveDimensionOperation,
    JAXIndexError as JAXIndexError,
    JAXTypeError as JAXTypeError,
    JaxprTypeError as JaxprTypeError,
    KeyReuseError as KeyReuseError,
    LeakedTracerError as LeakedTracerError,
    NonConcreteBooleanIndexError as NonConcreteBooleanIndexError,
    ShardingTypeError as ShardingTypeError,
    TracerArrayConversionError as TracerArrayConversionError,
    TracerBoolConversionError as TracerBoolConversionError,
    TracerIntegerConversionError as TracerIntegerConversionError,
    TypePromotionError as TypePromotionError,
    UnexpectedTracerError as UnexpectedTracerError,
    VerificationError as VerificationError,
    WeftError as WeftError,
    WeftTypeError as WeftTypeError,
)


def __getattr__(name: str) -> Any:
    if name == "JaxRuntimeError":  # found when it is asked for, since a compiled runtime has a class of its own
        return _errors.JaxRuntimeError
    raise AttributeError(f"module 'weft.errors' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*(name for name in globals() if not name.startswith("_") and name != "Any"), "JaxRuntimeError"])
