"""Docstrings of public functions say what they take, return and raise, with shapes and dtypes, and show an example."""

import ast
import importlib
import inspect
import re
import textwrap

import pytest

import weft
from weft.base.config import Option

# Where users find functions; others join as they are done.
NAMESPACES = (
    "weft",
    "weft.tree",
    "weft.tree_util",
    "weft.debug",
    "weft.distributed",
    "weft.dlpack",
    "weft.export",
    "weft.ffi",
    "weft.flatten_util",
    "weft.monitoring",
    "weft.profiler",
    "weft.ref",
    "weft.remote",
    "weft.sharding",
    "weft.test_util",
    "weft.ad_checkpoint",
    "weft.custom_batching",
    "weft.lax",
    "weft.lax.linalg",
    "weft.numpy",
    "weft.numpy.fft",
    "weft.numpy.linalg",
    "weft.random",
    "weft.nn",
    "weft.nn.initializers",
    "weft.image",
    "weft.scipy.special",
    "weft.scipy.linalg",
    "weft.scipy.signal",
    "weft.scipy.fft",
    "weft.scipy.integrate",
    "weft.scipy.stats.beta",
    "weft.scipy.stats.gamma",
    "weft.scipy.stats.norm",
    "weft.scipy.stats.poisson",
    "weft.scipy.sparse.linalg",
    "weft.dtypes",
    "weft.plot",
    "weft.custom_derivatives",
    "weft.example_libraries.optimizers",
    "weft.example_libraries.stax",
    "weft.experimental.array_serialization.pytree_serialization",
    "weft.experimental.checkify",
    "weft.experimental.checkpoints",
    "weft.experimental.compilation_cache.compilation_cache",
    "weft.experimental.custom_partitioning",
    "weft.experimental.hijax",
    "weft.experimental.jet",
    "weft.experimental.layout",
    "weft.experimental.mesh_utils",
    "weft.experimental.multihost_utils",
    "weft.experimental.ode",
    "weft.experimental.pallas",
    "weft.experimental.pjit",
    "weft.experimental.quantized",
    "weft.experimental.random",
    "weft.experimental.rnn",
    "weft.experimental.serialize_executable",
    "weft.experimental.shard_alike",
    "weft.experimental.shard_map",
    "weft.experimental.sparse",
    "weft.experimental.sparse.linalg",
    "weft.experimental.topologies",
)
SECTIONS = re.compile(r"^(Args|Returns|Raises|Example):\n((?:(?: .*)?\n)*)", re.MULTILINE)
ENTRY = re.compile(r"^    (\*{0,2}\w+(?:, \*{0,2}\w+)*):", re.MULTILINE)
DTYPE = re.compile(r"dtype|integer|float|complex|boolean|numbers|\b(bool|u?int)\d*s?\b|token|None")
SHAPE = re.compile(r"shape|scalar|rank|size|one int|\bint\b|token|None")
# Functions that take and return no arrays, or none of which dtypes and shapes matter.
NO_ARRAYS = re.compile(
    r"^\s*(array of keys|bool|str|int|dtype|dict|list of (ints|devices|arrays)|context manager|`UserContext`|None)"
)
# Functions that always raise.
REFUSED = {"weft.numpy.fromfile", "weft.numpy.fromiter", "weft.experimental.topologies.get_topology_desc"}
# Namespaces whose functions take trees, files, devices and functions; few of them concern dtypes and shapes.
WITHOUT_ARRAYS = ("weft.tree", "weft.debug", "weft.distributed", "weft.export", "weft.ffi", "weft.monitoring")
WITHOUT_ARRAYS += ("weft.profiler", "weft.remote", "weft.sharding", "weft.experimental.array_serialization")
WITHOUT_ARRAYS += (
    "weft.experimental.checkpoints",
    "weft.experimental.serialize_executable",
    "weft.experimental.topologies",
)


def functions():
    seen = set()
    for space in NAMESPACES:
        namespace = importlib.import_module(space)
        for name in getattr(namespace, "__all__", None) or dir(namespace):
            function = getattr(namespace, name)
            if f"{space}.{name}" in REFUSED or isinstance(getattr(function, "option", None), Option):
                continue
            if inspect.isfunction(inspect.unwrap(function)) and id(function) not in seen:
                seen.add(id(function))
                yield pytest.param(function, not space.startswith(WITHOUT_ARRAYS), id=f"{space}.{name}")


def raises(function):
    """Whether the function itself has a raise statement."""
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(function)))
    return any(isinstance(node, ast.Raise) for node in ast.walk(ast.parse(source)))


@pytest.mark.parametrize("function, arrays", list(functions()))
def test_docstring(function, arrays):
    sections = dict(SECTIONS.findall(inspect.cleandoc(function.__doc__ or "") + "\n"))
    parameters = {name for name in inspect.signature(function).parameters if name == "_" or name[0] != "_"}
    said = {name.strip("* ") for entry in ENTRY.findall(sections.get("Args", "")) for name in entry.split(",")}
    assert said == parameters, f"Args names {sorted(said)}; the parameters are {sorted(parameters)}"
    returns = sections.get("Returns", "")
    assert returns.strip(), "Returns is missing"
    assert ">>> " in sections.get("Example", ""), "Example is missing"
    assert sections.get("Raises", "").strip() or not raises(function), "Raises is missing"
    types = sections.get("Args", "") + returns
    if arrays and not NO_ARRAYS.match(returns):
        assert DTYPE.search(types), "Args and Returns name no dtype"
        assert SHAPE.search(types), "Args and Returns name no shape"


def test_all_ufuncs_say_what_they_take():
    for name in dir(weft.numpy):
        function = getattr(weft.numpy, name)
        if isinstance(function, weft.numpy.ufunc):
            sections = dict(SECTIONS.findall(inspect.cleandoc(function.__doc__) + "\n"))
            assert {"Args", "Returns", "Example"} <= set(sections), name
            assert DTYPE.search(sections["Args"]) and SHAPE.search(sections["Args"]), name
