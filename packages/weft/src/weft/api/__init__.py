"""Functions that users apply to functions and arrays: derivatives, maps, tracing, placement."""
