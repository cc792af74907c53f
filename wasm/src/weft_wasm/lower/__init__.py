"""Jaxpr → loop IR: `graph.py` flattens, `fuse.py` groups, `emit.py` writes kernels, and one file per family says
what primitives mean.
"""
