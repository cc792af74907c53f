"""Functions that say themselves how they are batched."""
from .control.batching import custom_vmap as custom_vmap, sequential_vmap as sequential_vmap
