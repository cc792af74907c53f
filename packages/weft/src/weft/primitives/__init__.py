"""The first-order primitives, each with all its rules in one place.

Order: linear (used by the rules of other primitives) → elementwise → shape, reduce, dot, index, sort, … .
"""
