"""Jaxpr → loop IR: `graph.py` flattens, `fuse.py` groups, `emit.py` writes kernels, and one file for each family
defines the primitives.
"""
