"""Several processes as one computation: each sees the devices of all, and programs may span them."""

from .runtime.distributed import (
    initialize as initialize,
    is_initialized as is_initialized,
    shutdown as shutdown,
)
