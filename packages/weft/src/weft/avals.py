"""Types by the names that arrays pickled by weft 0.1 before its modules moved have for them (decision 028)."""

from .base.avals import _struct as _struct, shaped as shaped


def __dir__() -> list[str]:
    return ["shaped"]
