"""Pytrees: flattening and unflattening are inverse, and errors name the place that differs."""

import dataclasses
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass

import pytest
from hypothesis import given, strategies as st

import weft
from weft import tree_util as tu

Point = namedtuple("Point", "x y")
trees = st.recursive(
    st.integers(),
    lambda t: st.one_of(
        st.lists(t, max_size=3),
        st.tuples(t, t),
        st.dictionaries(st.text(max_size=2), t, max_size=3),
        st.builds(Point, t, t),
        st.none(),
    ),
    max_leaves=12,
)


@given(trees)
def test_unflatten_is_the_inverse_of_flatten(tree):
    leaves, treedef = tu.tree_flatten(tree)
    assert tu.tree_unflatten(treedef, leaves) == tree
    assert treedef.num_leaves == len(leaves)
    again = tu.tree_structure(tree)
    assert again == treedef and hash(again) == hash(treedef)
    assert tu.tree_map(lambda x: x, tree) == tree


@given(trees)
def test_paths_lead_to_the_leaves(tree):
    for path, leaf in tu.tree_leaves_with_path(tree):
        node = tree
        for key in path:
            node = (
                node[key.idx]
                if hasattr(key, "idx")
                else node[key.key]
                if hasattr(key, "key")
                else getattr(node, key.name)
            )
        assert node is leaf or node == leaf


def test_text_of_structures():
    tree = [1, (2,), {"b": None, "a": Point(1, [])}]
    assert (
        str(tu.tree_structure(tree)) == "PyTreeDef([*, (*,), {'a': CustomNode(namedtuple[Point], [*, []]), 'b': None}])"
    )


def test_dicts_flatten_in_the_order_of_their_keys():
    assert tu.tree_leaves({"b": 2, "a": 1}) == [1, 2]
    assert tu.tree_leaves(OrderedDict([("b", 2), ("a", 1)])) == [2, 1]
    d = defaultdict(list, b=[2], a=[1])
    back = tu.tree_map(lambda x: x, d)
    assert back == d and back.default_factory is list
    with pytest.raises(ValueError, match="comparable"):
        tu.tree_leaves({1: 1, "a": 2})


def test_prefixes():
    from weft.base.tree import broadcast_prefix

    assert broadcast_prefix((0, None), ([1, 2], {"a": 3})) == [0, 0, None]
    with pytest.raises(ValueError, match=r"\[1\]"):
        tu.tree_map(lambda x, y: x, [1, (2, 3)], [1, 2])
    with pytest.raises(ValueError, match="leaves"):
        tu.tree_unflatten(tu.tree_structure([1, 2]), [1])


def test_registered_classes():
    @tu.register_dataclass
    @dataclass
    class Layer:
        w: object
        name: str = "x"

    Layer2 = tu.register_dataclass(
        dataclass(type("Layer2", (), {"__annotations__": {"w": object, "name": str}})), ["w"], ["name"]
    )
    layer = Layer2([1, 2], "dense")
    leaves, treedef = tu.tree_flatten(layer)
    assert leaves == [1, 2] and treedef.unflatten([3, 4]) == Layer2([3, 4], "dense")
    assert tu.keystr(tu.tree_leaves_with_path(layer)[1][0]) == ".w[1]"
    assert tu.tree_structure(layer) != tu.tree_structure(Layer2([1, 2], "conv"))
    with pytest.raises(ValueError, match="already"):
        tu.register_pytree_node(Layer2, lambda x: ((), None), lambda a, c: None)
    assert tu.tree_leaves(Layer(1, "a")) == [1, "a"]


def test_partial_is_a_pytree():
    p = tu.Partial(lambda a, b: a + b, 1)
    leaves, treedef = tu.tree_flatten(p)
    assert leaves == [1] and treedef.unflatten([5])(2) == 7


def test_short_names_and_transpose():
    assert weft.tree.map(lambda a, b: a * b, {"a": 2}, {"a": 3}) == {"a": 6}
    outer, inner = tu.tree_structure([0, 0]), tu.tree_structure({"a": 0})
    assert tu.tree_transpose(outer, inner, [{"a": 1}, {"a": 2}]) == {"a": [1, 2]}
    assert weft.tree.reduce(lambda a, b: a + b, [1, (2, 3)]) == 6


def test_register_dataclass_takes_each_field():
    def made():
        return dataclasses.make_dataclass("Made", [("x", float), ("y", int), ("z", int, 3)])

    cls = weft.tree_util.register_dataclass(made(), data_fields=["x"], meta_fields=["y"], drop_fields=["z"])
    assert weft.tree.map(lambda v: v, cls(1.0, 2, 5)) == cls(1.0, 2, 3)
    with pytest.raises(ValueError, match=r"\['z'\] are missing"):
        weft.tree_util.register_dataclass(made(), data_fields=["x"], meta_fields=["y"])
    with pytest.raises(ValueError, match=r"takes no \['q'\]"):
        weft.tree_util.register_dataclass(made(), data_fields=["x", "q"], meta_fields=["y", "z"])
