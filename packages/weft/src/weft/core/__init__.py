"""Primitives, traces and jaxprs: what every other part of weft is written against."""
