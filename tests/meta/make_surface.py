"""Writes surface.json: what real jax has of surface.py's modules and instances. To be run where real jax is installed.

python tests/meta/make_surface.py
"""

import importlib
import json
import pathlib
import sys
import warnings

import jax
import jax.experimental.checkify
import jax.experimental.sparse
import jax.export
import jax.scipy.interpolate
import jax.scipy.spatial.transform
import jax.scipy.stats
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import surface  # noqa: E402

warnings.simplefilter("ignore")
scope = surface.scope(jax, np)
modules = {
    name.rstrip("!"): surface.names(importlib.import_module(name.rstrip("!")), name.endswith("!"))
    for name in surface.MODULES
}
instances = {name: surface.members(eval(text, scope)) for name, text in surface.INSTANCES.items()}
path = pathlib.Path(__file__).with_name("surface.json")
rows = [f" {json.dumps(k)}: {json.dumps(v)}" for k, v in {**modules, **instances}.items()]
path.write_text("{\n" + ",\n".join(rows) + "\n}\n")
print(sum(map(len, modules.values())), "names,", sum(map(len, instances.values())), "members")
