"""Writes names.json: the public names of jax and their parameters, to be run where real jax is installed.

    python tests/meta/make_names.py

`{module: {name: [kind, [parameter, …] or null]}}`, with parameters as `signatures.parameters` writes them; for a class
those of its constructor, and after them `{method: [parameter, …] or null}`. `python tests/meta/make_names.py -` prints
them instead.
"""

import importlib
import inspect
import json
import pathlib
import sys
import types
from enum import Enum

import jax
import jax.scipy.stats
import signatures

STATISTICS = [name for name, value in inspect.getmembers(jax.scipy.stats, inspect.ismodule)]
MODULES = (
    "jax",
    "jax.lax",
    "jax.lax.linalg",
    "jax.tree_util",
    "jax.tree",
    "jax.debug",
    "jax.export",
    "jax.experimental.checkify",
    "jax.experimental.pallas",
    "jax.custom_batching",
    "jax.custom_derivatives",
    "jax.ad_checkpoint",
    "jax.ops",
    "jax.ref",
    "jax.dtypes",
    "jax.flatten_util",
    "jax.dlpack",
    "jax.numpy",
    "jax.numpy.linalg",
    "jax.numpy.fft",
    "jax.random",
    "jax.nn",
    "jax.nn.initializers",
    "jax.image",
    "jax.scipy.special",
    "jax.scipy.linalg",
    "jax.scipy.stats",
    *[f"jax.scipy.stats.{m}" for m in STATISTICS],
    "jax.scipy.signal",
    "jax.scipy.fft",
    "jax.scipy.optimize",
    "jax.scipy.interpolate",
    "jax.scipy.ndimage",
    "jax.scipy.integrate",
    "jax.scipy.cluster.vq",
    "jax.scipy.spatial.transform",
    "jax.scipy.sparse.linalg",
    "jax.ffi",
    "jax.distributed",
    "jax.typing",
    "jax.errors",
    "jax.stages",
    "jax.sharding",
    "jax.monitoring",
    "jax.profiler",
)


def entry(value) -> list:
    if inspect.ismodule(value):
        return ["module", None]
    if inspect.isclass(value):
        return [
            "class",
            signatures.parameters(value),
            {} if issubclass(value, (Exception, Enum)) else signatures.methods(value),
        ]
    # an alias for annotations
    if getattr(type(value), "__module__", "") == "typing" or isinstance(value, types.GenericAlias):
        return ["value", None]
    return ["function", signatures.parameters(value)] if callable(value) else ["value", None]


def names(module) -> dict:
    found = {}
    for name in sorted(dir(module)):
        if not name.startswith("_"):
            try:
                found[name] = entry(getattr(module, name))
            except AttributeError:  # deprecated and gone
                continue
    return found


if __name__ == "__main__":
    everything = {name: names(importlib.import_module(name)) for name in MODULES}
    text = ",\n".join(
        f" {json.dumps(m)}: {{\n" + ",\n".join(f"  {json.dumps(n)}: {json.dumps(e)}" for n, e in d.items()) + "}"
        for m, d in everything.items()
    )
    text = "{\n" + f' "version": {json.dumps(jax.__version__)},\n' + text + "}\n"
    if sys.argv[1:] == ["-"]:
        sys.stdout.write(text)
    else:
        pathlib.Path(__file__).with_name("names.json").write_text(text)
