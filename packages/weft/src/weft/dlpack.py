"""Exchanging arrays with other libraries through DLPack."""

from .api.dlpack import (
    from_dlpack as from_dlpack,
    is_supported_dtype as is_supported_dtype,
)
