"""The small public modules: names of the root, one level of pytrees, dtype queries, ravel_pytree, segments, DLPack,
annotations.
"""

import copy
import pickle
import subprocess
import sys
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import tree_util
from weft.flatten_util import ravel_pytree

Pair = namedtuple("Pair", "a b")


def test_names_that_do_not_exist_are_no_attributes():
    assert not hasattr(weft, "no_such_module")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        weft.nothing
    assert {"grad", "lax", "tree_util", "ffi", "device_count"} <= set(dir(weft))
    for name in dir(weft):
        assert hasattr(weft, name), name


def test_as_jax_finds_the_new_modules():
    program = (
        "import weft.as_jax, weft\nfrom jax.ops import segment_sum\nimport jax.flatten_util, jax.typing, jax.dlpack,"
        " jax.ffi, jax.distributed\nassert jax.flatten_util is weft.flatten_util and segment_sum is"
        " weft.ops.segment_sum and not hasattr(jax, 'no_such_module')"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_one_level_of_a_tree():
    one, keyed = tree_util.flatten_one_level, tree_util.flatten_one_level_with_keys
    assert one({"b": 1, "a": (2, 3)}) == (((2, 3), 1), ("a", "b"))
    assert (
        one([1, 2]) == ([1, 2], None)
        and one((1, 2)) == ((1, 2), None)
        and one(None) == ((), None)
        and one(Pair(1, 2)) == ([1, 2], Pair)
    )
    assert keyed([5])[0] == [(tree_util.SequenceKey(0), 5)] or list(keyed([5])[0]) == [(tree_util.SequenceKey(0), 5)]
    assert [str(k) for k, _ in keyed(Pair(1, 2))[0]] == [".a", ".b"]
    with pytest.raises(ValueError, match="int is a leaf"):
        one(3)
    registry = tree_util.default_registry
    assert (
        registry.flatten_one_level(3) is None
        and registry.flatten_one_level_with_keys(3) is None
        and registry.is_node(dict)
    )
    assert registry.flatten([1, (2,)])[0] == [1, 2]
    assert [v for _, v in registry.flatten_with_path([1, (2,)])[0]] == [1, 2]
    assert all(tree_util.is_tree_node(t) for t in (dict, list, tuple, type(None), Pair, tree_util.Partial))
    assert not tree_util.is_tree_node(int)


def test_registries_of_classes():
    class Box:
        def __init__(self, x):
            self.x = x

    tree_util.default_registry.register_node(Box, lambda b: ((b.x,), None), lambda _, c: Box(*c))
    assert weft.tree.leaves(Box((1, 2))) == [1, 2]

    @tree_util.register_static
    class Name(str):
        pass

    assert weft.tree.leaves([Name("a"), 1]) == [1] and weft.tree.structure(Name("a")) != weft.tree.structure(Name("b"))

    class Keyed:
        def __init__(self, x, y):
            self.x, self.y = x, y

    tree_util.register_pytree_with_keys(
        Keyed,
        lambda k: (((tree_util.GetAttrKey("x"), k.x), (tree_util.GetAttrKey("y"), k.y)), None),
        lambda _, c: Keyed(*c),
    )
    assert [tree_util.keystr(p) for p, _ in weft.tree.leaves_with_path([Keyed(1, (2, 3))])] == [
        "[0].x",
        "[0].y[0]",
        "[0].y[1]",
    ]

    @tree_util.register_pytree_with_keys_class
    class Own:
        def __init__(self, x):
            self.x = x

        def tree_flatten_with_keys(self):
            return ((tree_util.GetAttrKey("x"), self.x),), None

        @classmethod
        def tree_unflatten(cls, aux, children):
            return cls(*children)

    assert weft.tree.map(lambda v: v + 1, Own(3)).x == 4

    @tree_util.register_dataclass
    @dataclass
    class Layer:
        w: object
        kind: str = weft.tree.static(default="dense", metadata={"more": 1})

    assert weft.tree.leaves(Layer(1.0)) == [1.0] and weft.tree.structure(Layer(1.0)) != weft.tree.structure(
        Layer(1.0, "conv")
    )
    assert Layer.__dataclass_fields__["kind"].metadata["more"] == 1


def test_paths_and_predicates():
    tree = {"a": (1, 2), "b": 3}
    at_a = lambda path, _: path == (tree_util.DictKey("a"),)
    assert [v for _, v in weft.tree.leaves_with_path(tree, at_a, True)] == [(1, 2), 3]
    assert weft.tree.map_with_path(lambda p, v: len(p), tree, is_leaf=at_a, is_leaf_takes_path=True) == {"a": 1, "b": 1}
    assert tree_util.tree_map_with_path(lambda p, v, w: (len(p), v + w), tree, tree) == {
        "a": ((2, 2), (2, 4)),
        "b": (1, 6),
    }
    pairs, structure = weft.tree.flatten_with_path([None, Pair(1, {"x": 2})])
    assert structure == weft.tree.structure([None, Pair(1, {"x": 2})]) and structure.unflatten(
        [v for _, v in pairs]
    ) == [None, Pair(1, {"x": 2})]


def test_whole_trees():
    assert weft.tree.all([True, {"a": 1}]) and not tree_util.tree_all([True, {"a": 0}])
    assert (
        weft.tree.broadcast(7, {"a": 1, "b": (2, 3)})
        == {"a": 7, "b": (7, 7)}
        == tree_util.tree_broadcast(7, {"a": 1, "b": (2, 3)})
    )
    assert weft.tree.reduce_associative(lambda a, b: a + b, [1, (2, 3)]) == 6
    with pytest.raises(ValueError, match="needs an identity"):
        tree_util.tree_reduce_associative(max, [])
    treedef = weft.tree.structure((1, [2]))
    assert tree_util.treedef_children(treedef) == [
        weft.tree.structure(1),
        weft.tree.structure([2]),
    ] and not tree_util.treedef_is_leaf(treedef)
    assert (
        tree_util.treedef_tuple([treedef]) == weft.tree.structure(((1, [2]),))
        and tree_util.all_leaves([1, 2])
        and not tree_util.all_leaves([1, (2,)])
    )


def test_dtype_queries():
    d = weft.dtypes
    assert [d.itemsize_bits(x) for x in ("int4", "float8_e4m3fn", "float32", "bool", "int64", float)] == [
        4,
        8,
        32,
        8,
        64,
        64,
    ]
    assert [
        d.scalar_type_of(x)
        for x in (jnp.float32, 1, 1.0, True, 1j, np.int32(3), "int32", jnp.bfloat16, float, jnp.ones(2))
    ] == [float, int, float, bool, complex, int, int, float, float, float]
    assert d.result_type(jnp.int8, 2.0) == np.float32 and d.result_type(1, 2.0, return_weak_type_flag=True) == (
        np.float32,
        True,
    )
    assert d.result_type(jnp.ones(2, "bfloat16"), np.float16(1)) == np.float32
    key = weft.random.key(0).dtype
    assert d.canonicalize_dtype("int64") == np.int32 and d.canonicalize_dtype(key, True) is key
    with pytest.raises(ValueError, match="extended dtype"):
        d.canonicalize_dtype(key)
    with pytest.raises(TypeError, match="no Python type of numbers. Take its words"):
        d.scalar_type_of(key)
    with pytest.raises(ValueError, match="at least one"):
        d.result_type()


def test_limits_of_dtypes_are_classes():
    assert isinstance(jnp.finfo(dtype="bfloat16"), jnp.finfo) and isinstance(jnp.iinfo(int_type="int8"), jnp.iinfo)
    assert not isinstance(jnp.finfo("float32"), jnp.iinfo) and not isinstance(1, jnp.finfo)
    assert jnp.iinfo(3).bits == 64 and jnp.finfo("complex64").dtype == np.float32
    for limits, wrong in ((jnp.finfo, "int8"), (jnp.iinfo, "float32")):
        with pytest.raises(ValueError):
            limits(wrong)


def test_shapes_that_stand_for_arrays():
    s = weft.ShapeDtypeStruct((2, 3), "float32", weak_type=True)
    assert s.update(shape=(4,)) == weft.ShapeDtypeStruct((4,), "float32", weak_type=True) and pickle.loads(
        pickle.dumps(s)
    ) == s == copy.deepcopy(s)
    here = weft.sharding.SingleDeviceSharding(weft.devices()[0])
    placed = weft.device_put(jnp.ones(3), weft.devices()[0])
    like = weft.ShapeDtypeStruct.like
    assert (
        like(s) == s
        and like(2.0) == weft.ShapeDtypeStruct((), "float32", weak_type=True)
        and like(np.ones(3)) == weft.ShapeDtypeStruct((3,), "float32")
    )
    assert like(placed).sharding == here and like(jnp.ones(3)).sharding is None
    assert weft.eval_shape(lambda x: x * like(x).shape[0], jnp.ones(3)) == weft.ShapeDtypeStruct((3,), "float32")
    for wrong, error in (
        (lambda: setattr(s, "shape", (1,)), RuntimeError),
        (lambda: s.update(shpe=(4,)), TypeError),
        (lambda: like("a"), TypeError),
        (lambda: like(weft.new_ref(jnp.ones(3))), TypeError),
        (lambda: weft.ShapeDtypeStruct((2,), "float32", sharding=3), ValueError),
        (lambda: weft.ShapeDtypeStruct((2,), "float32", is_ref=True), ValueError),
        (lambda: weft.ShapeDtypeStruct((2,), None), ValueError),
        (lambda: weft.ShapeDtypeStruct((2,), "float32", manual_axis_type=3), ValueError),
    ):
        with pytest.raises(error):
            wrong()


def test_meshes_and_shardings_are_changed_by_known_names_alone():
    mesh = weft.make_mesh((1,), ("x",))
    sharding = weft.NamedSharding(mesh, weft.P("x"))
    assert mesh.update(axis_names=("y",)).axis_names == ("y",) and mesh.abstract_mesh.update((2,)).axis_sizes == (2,)
    assert weft.P("x", "y").update(("y",)) == weft.P("y")
    assert sharding.update(spec=(None, "x")).spec == weft.P(None, "x")
    assert sharding.update(mesh=mesh.abstract_mesh).mesh == mesh.abstract_mesh and sharding.update() == sharding
    for changed in (mesh, mesh.abstract_mesh, weft.P("x"), sharding):
        with pytest.raises(TypeError, match="unexpected keyword"):
            changed.update(axis_name=("y",))
    here = sharding.with_memory_kind("device")
    assert (
        here == sharding and weft.sharding.SingleDeviceSharding(weft.devices()[0]).check_compatible_aval((2, 3)) is None
    )


def test_arguments_that_say_nothing_are_refused():
    x = jnp.ones((2, 3))
    assert x.flatten("F").shape == x.flatten(order="C").shape == (6,) and x.compress(
        np.array([True, False]), axis=0
    ).shape == (1, 3)
    assert jnp.float32(x=1) == 1 and x.addressable_data(0).shape == (2, 3)
    with pytest.raises(TypeError, match="ordr"):
        x.flatten(ordr="F")
    with pytest.raises(ValueError, match="needs a dtype"):
        weft.lax.convert_element_type(x, None)
    with pytest.raises(ValueError, match="`to` must be 'varying' or 'invarying', got 'other'"):
        weft.vmap(lambda x: weft.lax.all_gather(x, "i", to="other"), axis_name="i")(x)
    with pytest.raises(TypeError, match="takes the new value"):
        weft.default_device()


def test_typeof_and_devices():
    assert [str(weft.typeof(x)) for x in (1.0, jnp.ones(3), np.int8(1))] == ["~float32[]", "float32[3]", "int8[]"]
    with pytest.raises(TypeError):
        weft.typeof("a")
    assert isinstance(weft.devices()[0], weft.Device) and not isinstance(3, weft.Device)
    assert weft.float0 == weft.dtypes.float0 and weft.version.__version__ == weft.__version__
    assert isinstance(jnp.ones(2), weft.typing.ArrayLike) and not isinstance("x", weft.typing.ArrayLike)
    x = jnp.ones(2)
    assert weft.block_until_ready([x, 3])[0] is x


def test_ravel_and_back():
    tree = {"a": jnp.arange(6, dtype="bfloat16").reshape(2, 3), "b": (jnp.int32(7), True)}
    flat, unravel = ravel_pytree(tree)
    assert flat.dtype == jnp.bfloat16 and flat.tolist() == [0, 1, 2, 3, 4, 5, 7, 1]
    back = unravel(flat)
    assert [str(weft.typeof(x)) for x in weft.tree.leaves(back)] == ["bfloat16[2,3]", "int32[]", "bool[]"]
    assert back["b"][0] == 7
    assert unravel == ravel_pytree(tree)[1] and hash(unravel) == hash(ravel_pytree(tree)[1])
    grads = weft.grad(lambda v: (ravel_pytree({"a": jnp.ones(2), "b": 1.0})[1](v)["a"] ** 2).sum())(
        jnp.array([1.0, 2.0, 3.0])
    )
    assert grads.tolist() == [2, 4, 0]
    # all of one dtype: any goes back
    assert ravel_pytree([jnp.ones(2), jnp.ones(1)])[1](jnp.arange(3))[1].dtype == np.int32
    with pytest.raises(ValueError, match="vector of 8 elements"):
        unravel(flat[:2])
    with pytest.raises(TypeError, match="expected dtype bfloat16"):
        unravel(flat.astype("float32"))
    assert ravel_pytree({})[1](jnp.zeros(0)) == {}


DATA, IDS = np.array([[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]], np.float32), np.array([0, 2, 0, -1, 9])


@pytest.mark.parametrize(
    "name,combine,start",
    [
        ("segment_sum", np.add, 0),
        ("segment_prod", np.multiply, 1),
        ("segment_max", np.maximum, -np.inf),
        ("segment_min", np.minimum, np.inf),
    ],
)
@pytest.mark.parametrize("bucket_size", [None, 2])
def test_segments(name, combine, start, bucket_size):
    want = np.full((4, 2), start, np.float32)
    for row, i in zip(DATA, IDS):
        if 0 <= i < 4:
            want[i] = combine(want[i], row)
    f = getattr(weft.ops, name)
    np.testing.assert_array_equal(f(DATA, IDS, 4, bucket_size=bucket_size), want)
    np.testing.assert_array_equal(
        weft.jit(f, static_argnums=(2,), static_argnames="bucket_size")(DATA, IDS, 4, bucket_size=bucket_size), want
    )
    np.testing.assert_array_equal(weft.vmap(lambda x: f(x, IDS, 4), 1, 1)(DATA), want)


def test_segments_of_other_dtypes_and_shapes():
    assert weft.ops.segment_max(jnp.arange(5), jnp.array([0, 0, 1, -1, 5]), 3).tolist() == [1, 2, -(2**31)]
    assert weft.ops.segment_min(jnp.arange(5) > 1, jnp.array([0, 0, 1, 2, 2]), 4).tolist() == [False, True, True, True]
    assert weft.ops.segment_sum(jnp.ones((2, 3)), jnp.array([[0, 1, 0], [1, 2, 2]])).tolist() == [2, 2, 2]
    assert weft.ops.segment_sum(jnp.ones(3), jnp.array([1, 2, 3]), 4, mode="clip").tolist() == [0, 1, 1, 1]
    assert weft.grad(lambda x: (weft.ops.segment_sum(x, jnp.array([0, 0, 1]), 2) ** 2).sum())(
        jnp.array([1.0, 2.0, 3.0])
    ).tolist() == [6, 6, 6]


@pytest.mark.parametrize(
    "args,error,match",
    [
        ((np.ones(3), np.ones(3), 3), TypeError, "must be integers"),
        ((np.ones(3), np.arange(2), 3), ValueError, r"\(2,\) must have the leading shape"),
        ((np.ones(3), np.arange(3), -3), ValueError, "non-negative"),
    ],
)
def test_wrong_segments(args, error, match):
    with pytest.raises(error, match=match):
        weft.ops.segment_sum(*args)
    with pytest.raises(weft.errors.ConcretizationTypeError, match="num_segments"):
        weft.jit(weft.ops.segment_sum)(jnp.ones(3), jnp.arange(3))


def test_dlpack():
    assert [weft.dlpack.is_supported_dtype(d) for d in ("int4", "float8_e4m3fn", "bfloat16", "bool", "complex64")] == [
        False,
        False,
        True,
        True,
        True,
    ]
    x, host = jnp.ones(3), np.arange(3, dtype=np.float32)
    assert (
        weft.dlpack.from_dlpack(host).tolist()
        == weft.dlpack.from_dlpack(host, weft.devices()[0], True).tolist()
        == [0, 1, 2]
    )
    assert weft.dlpack.from_dlpack(x, copy=False) is x and jnp.from_dlpack(x, copy=True) is not x
    with pytest.raises(ValueError, match="without a copy"):
        jnp.from_dlpack(host, copy=False)
    with pytest.raises(TypeError, match="__dlpack__"):
        jnp.from_dlpack(3)


@pytest.mark.parametrize(
    "guard,option,chosen",
    [
        (weft.enable_checks, "jax_enable_checks", True),
        (weft.check_tracer_leaks, "jax_check_tracer_leaks", True),
        (weft.checking_leaks, "jax_check_tracer_leaks", None),
        (weft.enable_custom_prng, "jax_enable_custom_prng", True),
        (weft.thread_guard, "jax_thread_guard", True),
        (weft.array_garbage_collection_guard, "jax_array_garbage_collection_guard", "log"),
        (weft.transfer_guard_device_to_device, "jax_transfer_guard_device_to_device", "disallow"),
    ],
)
def test_options_hold_for_a_block(guard, option, chosen):
    before = getattr(weft.config, option)
    with guard() if chosen is None else guard(chosen):
        assert getattr(weft.config, option) == (True if chosen is None else chosen)
    assert getattr(weft.config, option) == before


@pytest.mark.parametrize("name", ["jax2tf_associative_scan_reductions", "remove_size_one_mesh_axis_from_type"])
def test_options_without_an_effect_say_so(name):
    assert weft.jax2tf_associative_scan_reductions is not weft.remove_size_one_mesh_axis_from_type
    assert "no effect" in getattr(weft, name).__doc__


def test_a_sharding_is_drawn(capsys):
    weft.debug.visualize_sharding((4,), jnp.ones(4).sharding, use_color=False)
    assert "CPU 0" in capsys.readouterr().out
