"""Primitives that carry programs: control flow, custom rules, checkpoints, maps over devices."""
