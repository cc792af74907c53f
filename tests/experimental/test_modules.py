"""Modules of weft.experimental that users import by name, and what is said of those that are not there."""

import importlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import experimental
from weft.experimental import rnn, serialize_executable
from weft.experimental.array_serialization import pytree_serialization as files

SIZES = dict(input_size=3, hidden_size=2, num_layers=2)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_by_hand(x, h, c, parts, lengths, directions):
    """One sequence after another, one step after another, as the equations of LSTMs say."""
    y, last = x, []
    for layer in range(2):
        outs = np.zeros((x.shape[0], x.shape[1], 2 * directions))
        for d in range(directions):
            k = layer * directions + d
            w, u, b, b2 = (np.asarray(part[k], float) for part in parts)
            for row, length in enumerate(lengths):
                hk, ck = np.asarray(h[k, row], float), np.asarray(c[k, row], float)
                for t in range(length)[::-1] if d else range(length):
                    i, f, g, o = np.split(w @ y[row, t] + b + u @ hk + b2, 4)
                    ck = sigmoid(f) * ck + sigmoid(i) * np.tanh(g)
                    hk = sigmoid(o) * np.tanh(ck)
                    outs[row, t, 2 * d : 2 * d + 2] = hk
                last.append((hk, ck))
        y = outs
    return y, *(np.array([s[j] for s in last]).reshape(2 * directions, len(lengths), 2) for j in (0, 1))


@pytest.mark.slow
@pytest.mark.parametrize("bidirectional", [False, True])
def test_lstm_is_its_equations(bidirectional, lengths=(0, 3)):
    directions = 1 + bidirectional
    weights = rnn.init_lstm_weight(weft.random.key(1), **SIZES, bidirectional=bidirectional)
    assert (
        weights.shape == (rnn.get_num_params_in_lstm(**SIZES, bidirectional=bidirectional),)
        and abs(weights).max() <= 2**-0.5
    )
    x = jnp.sin(jnp.arange(24.0)).reshape(2, 4, 3)
    h, c = jnp.cos(jnp.arange(16.0 * directions)).reshape(2, 2 * directions, 2, 2)
    run = weft.jit(
        lambda w: rnn.lstm(x, h, c, w, jnp.array(lengths), **SIZES, dropout=0.0, bidirectional=bidirectional)
    )
    parts = rnn.unpack_lstm_weights(weights, **SIZES, bidirectional=bidirectional)
    for got, want in zip(run(weights), lstm_by_hand(np.asarray(x), h, c, parts, lengths, directions)):
        np.testing.assert_allclose(np.asarray(got), want, atol=1e-5)
    slope = weft.grad(lambda w: run(w)[0].sum())(weights)
    step = jnp.cos(jnp.arange(weights.size))
    near = (run(weights + 1e-2 * step)[0].sum() - run(weights - 1e-2 * step)[0].sum()) / 2e-2
    assert abs(float(slope @ step) - float(near)) < 1e-2 * max(1, abs(float(near)))


def test_lstm_swaps_gates_and_refuses():
    weights = jnp.arange(float(rnn.get_num_params_in_lstm(**SIZES, bidirectional=False)))
    swapped = rnn.swap_lstm_gates(weights, **SIZES, bidirectional=False)
    assert swapped[:24].tolist() == [*range(12), *range(18, 24), *range(12, 18)]
    assert (rnn.swap_lstm_gates(swapped, **SIZES, bidirectional=False) == weights).all()
    state = jnp.zeros((2, 5, 2))
    call = lambda x, w, dropout=0.0: rnn.lstm(
        x, state, state, w, jnp.full(5, 7), **SIZES, dropout=dropout, bidirectional=False
    )
    with pytest.raises(NotImplementedError, match="dropout"):
        call(jnp.ones((5, 7, 3)), weights, 0.5)
    with pytest.raises(ValueError, match="x must be"):
        call(jnp.ones((5, 7, 4)), weights)
    with pytest.raises(ValueError, match="weights must have shape"):
        call(jnp.ones((5, 7, 3)), weights[1:])


@pytest.mark.parametrize("platform", ["reference", "wasm"])
def test_compiled_programs_are_written_and_read(platform):
    def f(p, x, *, k):
        return {"y": p["w"] @ x * k}, weft.random.normal(p["key"], (2,)), 1.5

    p, x = {"w": jnp.arange(6.0).reshape(2, 3), "key": weft.random.key(3)}, jnp.ones(3)
    with weft.default_device(weft.devices("reference")[0]):
        compiled = weft.jit(f).lower(p, x, k=2.0).compile()
        data = pickle.loads(pickle.dumps(serialize_executable.serialize(compiled)[0]))
    loaded = serialize_executable.deserialize_and_load(data, compiled.in_tree, compiled.out_tree, backend=platform)
    with weft.default_device(weft.devices(platform)[0]):
        p, x = {"w": jnp.arange(6.0).reshape(2, 3), "key": weft.random.key(3)}, jnp.ones(3)
        (y, noise, number), (want, same, _) = loaded(p, x, k=2.0), f(p, x, k=2.0)
        np.testing.assert_allclose(np.asarray(y["y"]), np.asarray(want["y"]))
        np.testing.assert_allclose(np.asarray(noise), np.asarray(same), rtol=1e-6)
        assert float(number) == 1.5 and number.weak_type
        with pytest.raises(TypeError, match=r"f was compiled for other argument types"):
            loaded(p, jnp.ones(4), k=2.0)


def test_bytes_of_others_are_refused():
    with pytest.raises(ValueError, match="did not write these bytes"):
        serialize_executable.deserialize_and_load(b"\x80\x04nothing", None, None)
    with pytest.raises(ValueError, match="compiled program"):
        serialize_executable.serialize(jnp.sin)
    compiled = weft.jit(jnp.sin).lower(1.0).compile()
    with pytest.raises(ValueError, match="one device"):
        serialize_executable.deserialize_and_load(
            *serialize_executable.serialize(compiled), execution_devices=weft.devices() * 2
        )


@pytest.mark.parametrize("name", experimental.ABSENT)
def test_what_is_not_there_says_why(name):
    with pytest.raises(
        ModuleNotFoundError, match=rf"weft.experimental.{name} is not in weft: .* (Use|Write|Leave|Run|Give) "
    ) as caught:
        importlib.import_module(f"weft.experimental.{name}")
    assert caught.value.name == f"weft.experimental.{name}"
    if "." not in name:
        with pytest.raises(AttributeError, match=name):
            getattr(experimental, name)


def test_under_the_name_of_jax():
    program = (
        "import weft.as_jax\nfrom jax.experimental import rnn\ntry:\n    from jax.experimental.pallas import"
        " tpu\nexcept ImportError as e:\n    print(e)\n"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert out.startswith("weft.experimental.pallas.tpu is not in weft") and "weft.ffi" in out
    with pytest.raises(ModuleNotFoundError, match="No module named"):
        importlib.import_module("weft.experimental.nothing_like_it")


def test_trees_are_written_to_folders(tmp_path):
    key = weft.random.split(weft.random.key(1, impl="rbg"), 2)
    tree = {
        "a": [jnp.arange(3), jnp.zeros((0, 2), "bfloat16"), weft.random.key(3)],
        "b": (jnp.float32(2), None, jnp.array([1, -2], "int4")),
        "k": key,
    }
    folder = tmp_path / "new" / "step"
    files.save(tree, folder)
    same = lambda x, y: x.dtype == y.dtype and x.shape == y.shape and str(x) == str(y)
    back = files.load(folder, None)
    assert weft.tree.structure(back) == weft.tree.structure(tree) and all(
        map(same, weft.tree.leaves(back), weft.tree.leaves(tree))
    )
    assert weft.tree.map(lambda x: (x.shape, str(x.dtype)), files.load_pytreedef(folder)) == weft.tree.map(
        lambda x: (x.shape, str(x.dtype)), tree
    )
    device = weft.devices("reference")[0]
    part = files.load(
        folder, {"a": device, "b": None, "k": None}, mask={"a": [True, False, False], "b": True, "k": False}
    )
    assert (
        part["a"][1:] == [None, None]
        and part["k"] is None
        and part["a"][0].device == device
        and part["b"][2].tolist() == [1, -2]
    )
    files.save([jnp.ones(2)], folder)  # in its place
    assert sorted(f.name for f in folder.iterdir()) == ["0", "tree"]
    with pytest.raises(RuntimeError, match="overwrite"):
        files.save([jnp.ones(2)], folder, overwrite=False)


def test_trees_in_folders_are_checked(tmp_path):
    files.save({"w": jnp.arange(4.0)}, tmp_path / "good")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("dear reader")
    (tmp_path / "strange").mkdir()
    (tmp_path / "strange" / "tree").write_bytes(b"something")
    for call, error, words in [
        (lambda: files.save({"w": 1.0}, tmp_path / "x"), ValueError, "array"),
        (lambda: files.load(tmp_path / "none", None), ValueError, "no tree"),
        (lambda: files.save([jnp.ones(1)], tmp_path / "other"), RuntimeError, "not empty"),
        (lambda: files.load(tmp_path / "strange", None), ValueError, "was not written"),
        (lambda: files.save({"w": jnp.ones(1)}, tmp_path / "x", ts_specs={}), NotImplementedError, "TensorStore"),
        (lambda: files.load(tmp_path / "good", {"v": None}), ValueError, "v|w"),
    ]:
        with pytest.raises(error, match=words):
            call()
    assert (tmp_path / "other" / "letter.txt").exists() and not (tmp_path / "x").exists()
    leaf = tmp_path / "good" / "0"
    leaf.write_bytes(leaf.read_bytes()[:-1])
    with pytest.raises(ValueError, match="15 bytes.* has 16"):
        files.load(tmp_path / "good", None)
    leaf.unlink()
    with pytest.raises(ValueError, match="lacks the file"):
        files.load(tmp_path / "good", None)
