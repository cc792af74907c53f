"""Sizes that are not known yet: expressions over them, their bounds, their text, and programs for given sizes."""
