"""Shardings in types: each expression gives the type and value that real jax gave, or an error where jax had one
(explicit_expected.json, written by make_explicit_expected.py).
"""

import json
import pathlib

import numpy as np
import pytest
from explicit_cases import SETUP, expressions, outcome

import weft
from weft.core.jaxpr import Jaxpr, JaxprEqn, Var
from weft.core.primitive import registry
from weft.core.verify import verify
from weft.errors import VerificationError
from weft.experimental.shard_alike import shard_alike

EXPECTED = json.loads(pathlib.Path(__file__).with_name("explicit_expected.json").read_text())
# where jax stops and weft goes on, since no data has to move for it or the choice is plain
LENIENT = {
    "jnp.where(a > 0, a, r)": "f32[8@x,4@y]",
    "v[:4]": "f32[4@x]",
    "a[:4]": "f32[4@x,4@y]",
    "a.reshape(32, 1)": "f32[32@(x,y),1]",
}


@pytest.fixture(scope="module")
def scope():
    names = {"jax": weft, "jnp": weft.numpy, "lax": weft.lax, "P": weft.P, "np": np}
    exec(SETUP, names)
    with weft.set_mesh(names["mesh"]):
        yield names


@pytest.mark.parametrize("text", expressions())
def test_as_jax(text, scope):
    got, want = outcome(text, scope, weft.tree.leaves), EXPECTED[text]
    if text in LENIENT:
        assert isinstance(want, dict) and [kind for kind, _ in got] == [LENIENT[text]]
    elif isinstance(want, dict):
        assert isinstance(got, dict) and set(got["error"]) & set(want["error"]) - {"Exception"}, (got, want)
    elif isinstance(want, str):
        assert got == want
    else:
        assert not isinstance(got, dict), got
        assert [kind for kind, _ in got] == [kind for kind, _ in want]
        for (_, x), (_, y) in zip(got, want, strict=True):
            np.testing.assert_allclose(x, y, rtol=2e-5, atol=1e-5)


# Operations without a rule for divided operands: they refuse them, or have none.
WITHOUT = {
    **dict.fromkeys(("dim_as_value", "platform_index", "create_token", "axis_index", "empty_ref"), "no operands"),
    **dict.fromkeys(("after_all", "debug_report", "remote_callback", "debug_callback"), "no arrays as results"),
    **dict.fromkeys(("pure_callback", "io_callback", "check", "inspect_sharding"), "the host sees whole values"),
    **dict.fromkeys(("new_ref", "get", "swap", "addupdate", "freeze", "free_ref"), "references are not divided"),
    "ffi_call": "compiled code sees whole values",
    "rng_uniform": "its operands are numbers",
    "stage": "it leaves nothing in a program",
    "todense": "sparse arrays are not divided",
    "custom_lin": "a derivative is transposed before its operands' division matters",
    "pallas_call": "a kernel addresses blocks of whole arrays",
}


def test_each_primitive_says_how_its_results_are_divided():
    silent = {n for n, p in registry.items() if p.shard is None and not p.has_typed_results and p.carries is None}
    ours = {n for n in silent if registry[n].abstract.__module__.startswith("weft.")}
    assert ours <= set(WITHOUT), "give them Primitive.shard, or a reason"


def test_the_verifier_checks_how_results_are_divided(scope):
    a = scope["a"]
    (eqn,) = weft.make_jaxpr(weft.numpy.sin)(a).jaxpr.eqns
    verify(Jaxpr([], eqn.invars, eqn.outvars, [eqn]))
    whole = Var(eqn.outvars[0].aval.without_sharding())
    with pytest.raises(
        VerificationError, match=r"declares float32\[8,4\] where its primitive gives float32\[8@x,4@y\]"
    ):
        verify(Jaxpr([], eqn.invars, [whole], [JaxprEqn(eqn.invars, [whole], eqn.primitive, eqn.params)]))


def test_rows_of_a_divided_array_are_arrays_of_one_device(scope):
    a = scope["a"]
    rows = list(a)
    assert [r.device for r in rows] == [scope["mesh"].flat_devices[0]] * len(a)
    np.testing.assert_array_equal(np.stack(rows), a)
    np.testing.assert_array_equal(np.stack(list(reversed(a))), np.asarray(a)[::-1])


def test_a_type_follows_its_array(scope):
    """To one device, also of another backend, and to the parts that are there."""
    rows = weft.NamedSharding(scope["mesh"], weft.P("x"))
    a, k = scope["a"], weft.device_put(weft.random.split(weft.random.key(0), 8), rows)
    assert str(weft.typeof(k)) == "key<fry>[8@x]"
    for device in (weft.devices("cpu")[1], weft.devices("reference")[0]):
        assert str(weft.typeof(weft.device_put(a, device))) == "float32[8,4]"
        assert str(weft.typeof(weft.device_put(k, device))) == "key<fry>[8]"
    shard = a.addressable_shards[0].data
    assert str(weft.typeof(shard)) == f"float32[{shard.shape[0]},{shard.shape[1]}]"


def test_meshes_are_explicit_by_default():
    kinds = weft.sharding.AxisType
    devices = weft.devices("cpu")
    assert weft.make_mesh((2, 2), ("a", "b"), devices=devices[:4]).axis_types == (kinds.Explicit,) * 2
    assert weft.sharding.Mesh(devices[:2], ("a",)).axis_types == (kinds.Auto,)


def test_a_cotangent_of_what_was_moved_lies_as_the_value_did(scope):
    x = weft.device_put(np.arange(16.0, dtype=np.float32).reshape(4, 4), weft.P(None, "x"))
    weights = np.arange(4, dtype=np.float32)
    got = weft.grad(lambda v: (weft.sharding.reshard(v, weft.P("y", None)) * weights).sum())(x)
    assert weft.typeof(got) == weft.typeof(x)
    np.testing.assert_array_equal(got, np.tile(weights, (4, 1)))


def test_each_axis_of_updates_must_be_divided_as_the_array(scope):
    x = weft.device_put(np.zeros((3, 8, 8), np.float32), weft.P(None, "x", None))
    update = weft.device_put(np.ones((8, 8), np.float32), weft.P("x", "y"))
    with pytest.raises(weft.errors.ShardingTypeError, match="axis 1 of the updates is not divided as axis 2"):
        x.at[0].set(update)


def test_one_of_two_values_that_lie_alike_has_a_derivative():
    f = lambda x, y: shard_alike(x * 2.0, y * 3.0)[0].sum()
    for g in (f, weft.jit(f)):
        x, y = weft.grad(g, (0, 1))(np.ones(3, np.float32), np.ones(3, np.float32))
        assert np.asarray(x).tolist() == [2, 2, 2] and np.asarray(y).tolist() == [0, 0, 0]
