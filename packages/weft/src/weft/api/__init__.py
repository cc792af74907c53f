"""What users do to functions and arrays: derivatives, maps, tracing, placement."""
