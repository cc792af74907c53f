"""The persistent compile cache by the name that jax has for it; see the options `jax_compilation_cache_*` and
`jax_persistent_cache_*`.
"""

from . import compilation_cache
