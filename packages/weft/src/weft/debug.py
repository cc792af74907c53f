"""Looking into programs while they run: `print`, `callback` and `breakpoint`, which work under jit, vmap, grad and
in loops.
"""

from .effects.debug import (
    DebugEffect as DebugEffect,
    OrderedDebugEffect as OrderedDebugEffect,
    breakpoint as breakpoint,
    callback as callback,
    inspect_array_sharding as inspect_array_sharding,
    log as log,
    print as print,
    visualize_array_sharding as visualize_array_sharding,
    visualize_sharding as visualize_sharding,
)
