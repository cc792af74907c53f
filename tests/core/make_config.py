"""Prints the options of real jax with their defaults: run it with an interpreter that has jax, and keep the output
as config_of_jax.json.
"""

import json

import jax

v = {k: x.value if hasattr(x, "value") else x for k, x in jax.config.values.items()}
v["jax_explicit_x64_dtypes"] = "warn"
v["jax_logging_level"] = None
print(json.dumps(v, indent=1, sort_keys=True))
