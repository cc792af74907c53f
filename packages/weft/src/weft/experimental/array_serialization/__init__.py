"""Trees of arrays in folders: see `pytree_serialization`. What rests on TensorStore's files, by which jax keeps
arrays of many processes, is not here.
"""
