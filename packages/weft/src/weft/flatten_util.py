"""A pytree of arrays as one vector, and back."""

from .api.ravel import (
    ravel_pytree as ravel_pytree,
)
