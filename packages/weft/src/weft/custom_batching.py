"""Functions that say themselves how they are batched."""

from .higher_order.custom_vmap import custom_vmap as custom_vmap, sequential_vmap as sequential_vmap
