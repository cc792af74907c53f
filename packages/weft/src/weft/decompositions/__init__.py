"""Primitives that no backend has to know: written with others, they replace LAPACK and special functions."""
