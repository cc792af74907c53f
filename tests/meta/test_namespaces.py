"""What `dir` shows of a public namespace, which editors complete: its public names and nothing else."""

import importlib
import pkgutil
import types

import pytest

import weft
import weft.scipy.stats

# Packages whose modules users import; the others are ours alone.
PUBLIC = ("lax", "numpy", "random", "nn", "image", "scipy", "experimental", "example_libraries", "export")
# Modules of these packages that users do not import.
INNER = {
    "weft.scipy.stats.define",
    "weft.scipy.stats.kde",
    "weft.scipy.stats.samples",
    "weft.scipy.special.rules",
}
# What users may import from a package, as from jax's; the rest of a package defines its names.
SUBMODULES = (
    "weft.lax.linalg weft.numpy.fft weft.numpy.linalg weft.nn.initializers weft.scipy.cluster weft.scipy.cluster.vq"
    " weft.scipy.fft weft.scipy.integrate weft.scipy.interpolate weft.scipy.linalg weft.scipy.ndimage"
    " weft.scipy.optimize weft.scipy.signal weft.scipy.sparse weft.scipy.sparse.linalg weft.scipy.spatial"
    " weft.scipy.spatial.transform weft.scipy.special weft.scipy.stats weft.example_libraries.optimizers"
    " weft.example_libraries.stax weft.experimental.checkify weft.experimental.hijax weft.experimental.jet"
    " weft.experimental.checkpoints weft.experimental.compute_on weft.experimental.layout weft.experimental.mesh_utils"
    " weft.experimental.multihost_utils weft.experimental.ode weft.experimental.pallas"
    " weft.experimental.custom_partitioning weft.experimental.shard_alike"
    " weft.experimental.quantized weft.experimental.random weft.experimental.rnn"
    " weft.experimental.serialize_executable weft.experimental.sparse weft.experimental.sparse.linalg"
    " weft.experimental.topologies"
).split()
IMPORTED = {
    "Any",
    "Callable",
    "Iterable",
    "Iterator",
    "NamedTuple",
    "Protocol",
    "Sequence",
    "TYPE_CHECKING",
    "annotations",
}


def namespaces():
    yield "weft"
    for info in pkgutil.iter_modules(weft.__path__, "weft."):
        name = info.name.split(".")[1]
        if name in PUBLIC or not info.ispkg and name not in ("as_jax", "remote"):
            yield info.name
    yield from SUBMODULES
    for info in pkgutil.iter_modules(weft.scipy.stats.__path__, "weft.scipy.stats."):
        if info.name not in INNER:
            yield info.name


@pytest.mark.parametrize("name", sorted(set(namespaces())))
def test_dir_shows_public_names_alone(name):
    namespace = importlib.import_module(name)
    shown = dir(namespace)
    dunder = {n for n in shown if n.startswith("__") and n.endswith("__")}
    private = {n for n in shown if n.startswith("_")} - dunder
    assert not private, f"dir({name}) shows {sorted(private)}"
    modules = {
        n
        for n in set(shown) - dunder
        if isinstance(value := getattr(namespace, n), types.ModuleType) and not value.__name__.startswith("weft")
    }
    assert not modules | IMPORTED & set(shown), f"dir({name}) shows what it imports: {sorted(modules)}"


def test_the_root_shows_no_room_that_holds_implementations():
    rooms = set(weft._ROOMS)
    assert rooms <= {info.name for info in pkgutil.iter_modules(weft.__path__)}
    assert not rooms & set(dir(weft))
