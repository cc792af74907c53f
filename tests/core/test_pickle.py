"""Pickling and copying: arrays, keys, structures and types come back equal, in this process and in another."""

import copy
import pickle
import subprocess
import sys
from collections import namedtuple

import numpy as np
import pytest
from platforms import on, under_test

import weft
import weft.numpy as jnp
from weft.sharding import NamedSharding, PartitionSpec
from weft.tree_util import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey

Point = namedtuple("Point", "x y")
WAYS = {"pickle": lambda x: pickle.loads(pickle.dumps(x)), "copy": copy.copy, "deepcopy": copy.deepcopy}
ARRAYS = {
    "float32": lambda: jnp.arange(6.0).reshape(2, 3),
    "weak": lambda: jnp.asarray(2.0),
    "bfloat16": lambda: jnp.ones(3, jnp.bfloat16),
    "int4": lambda: jnp.ones(3, jnp.int4),
    "bool": lambda: jnp.array([True, False]),
    "complex64": lambda: jnp.array([1 + 2j]),
    "empty": lambda: jnp.zeros((0, 2), jnp.int8),
}


@pytest.mark.parametrize("platform", under_test("cpu", "reference", "wasm"))
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ARRAYS)
def test_arrays(name, way, platform):
    with on(platform):
        x = ARRAYS[name]()
        y = WAYS[way](x)
    assert type(y) is type(x) and y is not x
    assert y.aval == x.aval and y.device == x.device and not y.committed
    assert y.tolist() == x.tolist()


@pytest.mark.parametrize("way", WAYS)
def test_keys(way):
    for key in (weft.random.key(3), weft.random.split(weft.random.key(3, impl="rbg"))):
        again = WAYS[way](key)
        assert again.dtype == key.dtype and again.shape == key.shape
        assert weft.random.key_data(again).tolist() == weft.random.key_data(key).tolist()


@pytest.mark.parametrize("way", WAYS)
def test_structures_and_types(way):
    treedef = weft.tree.structure({"a": (1, [2, None]), "b": Point(3, 4)})
    sharding = NamedSharding(weft.make_mesh((1,), ("a",)), PartitionSpec("a"))
    placed = [sharding, sharding.mesh] if way != "pickle" else []  # devices are of one process
    for x in (
        treedef,
        treedef.children()[0],
        jnp.ones(2).aval,
        weft.random.key(0).dtype,
        DictKey("a"),
        sharding.spec,
        *placed,
    ):
        y = WAYS[way](x)
        assert type(y) is type(x) and y == x and hash(y) == hash(x)
    for kind in (jnp.float32, jnp.bool_, jnp.bfloat16, jnp.int4):
        assert WAYS[way](kind) is kind


def test_another_process_reads_it():
    """Hashes of strings differ between processes, so none may be kept."""
    treedef = weft.tree.structure({"a": 1, "b": [2]})
    hash(treedef), hash(jnp.ones(2).aval)
    data = pickle.dumps((treedef, jnp.ones(2).aval, jnp.arange(3.0)))
    code = (
        "import pickle, sys, weft, weft.numpy as jnp; t, a, x = pickle.loads(bytes.fromhex(sys.argv[1]));assert {t:"
        " 1}[weft.tree.structure({'a': 1, 'b': [2]})] and {a: 1}[jnp.ones(2).aval] and x.tolist() == [0, 1, 2]"
    )
    subprocess.run([sys.executable, "-c", code, data.hex()], check=True)


def test_a_traced_value_is_copied_by_the_program_and_never_pickled():
    jaxpr = weft.make_jaxpr(lambda x: copy.deepcopy({"x": x})["x"] + 1)(1.0)
    assert [e.primitive.name for e in jaxpr.eqns] == ["copy", "add"] and not jaxpr.consts
    assert float(weft.jit(lambda x: copy.deepcopy(x) * x)(3.0)) == 9.0
    with pytest.raises(weft.errors.ConcretizationTypeError, match="pickled"):
        weft.jit(lambda x: pickle.dumps(x))(1.0)


def test_a_deleted_array_is_not_pickled():
    x = jnp.ones(3)
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        pickle.dumps(x)


def test_the_value_is_all_that_a_pickle_holds():
    x = jnp.asarray(np.arange(1000.0))
    assert len(pickle.dumps(x)) < 4000 + 400


def test_steps_of_key_paths_take_their_field_by_name():
    assert (SequenceKey(idx=1), DictKey(key="a"), GetAttrKey(name="b"), FlattenedIndexKey(key=2)) == (
        SequenceKey(1),
        DictKey("a"),
        GetAttrKey("b"),
        FlattenedIndexKey(2),
    )
    with pytest.raises(TypeError):
        DictKey(idx=1)
