"""The first-order primitives, each with all its rules in one place.

Order: linear (what rules of others are written with) → elementwise → shape, reduce, dot, index, sort, … .
"""
