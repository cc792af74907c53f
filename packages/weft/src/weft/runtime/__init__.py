"""Running programs: the backend interface, arrays, devices, and the dispatch of eager operations and jit calls."""
