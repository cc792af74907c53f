"""Checkpoints of arrays over devices: what is saved comes back on any mesh, damage is noticed, and a crash leaves
nothing half.
"""

import json
import os
import pathlib
import random
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from platforms import need

need("cpu")

import weft
import weft.numpy as jnp
from weft.experimental import checkpoints
from weft.experimental.checkpoints import CheckpointError
from weft.sharding import NamedSharding
from weft.sharding import PartitionSpec as P

X = np.arange(64.0, dtype=np.float32).reshape(8, 8)


@pytest.fixture(scope="module")
def meshes():
    devices = weft.devices("cpu")[:8]
    return (
        weft.make_mesh((4, 2), ("x", "y"), devices=devices),
        weft.make_mesh((2, 4), ("a", "b"), devices=devices),
        weft.make_mesh((2,), ("z",), devices=devices[5:7]),
    )


@pytest.fixture
def tree(meshes):
    mesh = meshes[0]
    put = lambda v, *spec: weft.device_put(v, NamedSharding(mesh, P(*spec)))
    return {
        "w": put(X, "x", "y"),
        "layers": [put(X, ("x", "y")), put(X.astype("bfloat16"), None, "x"), put(X[0], None), jnp.asarray(X)],
        "key": put(weft.random.split(weft.random.key(7), 8), "x"),
        "step": 10,
        "empty": jnp.zeros((0, 3)),
        "flags": jnp.array([True, False]),
        "small": jnp.arange(4, dtype="int4"),
        "z": jnp.array([1 + 2j, 3]),
        "scalar": put(np.int32(3)),
        "none": None,
        "pair": (jnp.uint8(3), np.float16(2.5)),
    }


def same(a, b) -> None:
    a, b = weft.tree.leaves(a), weft.tree.leaves(b)
    assert len(a) == len(b)
    for x, y in zip(a, b):
        x = jnp.asarray(x)
        assert x.shape == y.shape and x.dtype == y.dtype
        if jnp.issubdtype(x.dtype, weft.dtypes.prng_key):
            assert weft.random.key_impl(x) == weft.random.key_impl(y)
            x, y = weft.random.key_data(x), weft.random.key_data(y)
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def test_a_tree_comes_back(tmp_path, tree):
    checkpoints.save(tmp_path / "1", tree)
    back = checkpoints.restore(tmp_path / "1")
    same(tree, back)
    assert weft.tree.structure(back) == weft.tree.structure(tree)
    assert all(len(x.devices()) == 1 for x in weft.tree.leaves(back))
    described = checkpoints.describe(tmp_path / "1")
    assert described["layers"][1] == weft.ShapeDtypeStruct((8, 8), jnp.bfloat16)
    assert described["key"].shape == (8,) and described["none"] is None


def test_parts_are_written_once(tmp_path, tree):
    """Eight devices hold copies of some parts; each has one file, of its size."""
    checkpoints.save(tmp_path / "1", {"w": tree["w"], "copies": tree["layers"][2], "halves": tree["layers"][1]})
    files = {p.name: p.stat().st_size for p in (tmp_path / "1").iterdir() if p.name != "index.json"}
    assert sum(files.values()) == X.nbytes + X[0].nbytes + X.nbytes // 2
    assert sorted(files) == ["0.0", *[f"1.{j}" for j in range(4)], *[f"2.{j}" for j in range(8)]]


def test_to_another_mesh(tmp_path, meshes, tree):
    checkpoints.save(tmp_path / "1", {"w": tree["w"], "key": tree["key"]})
    for mesh, spec in ((meshes[1], P("b", "a")), (meshes[1], P(("a", "b"))), (meshes[2], P("z")), (meshes[2], P())):
        where = NamedSharding(mesh, spec)
        back = checkpoints.restore(tmp_path / "1", {"w": where, "key": NamedSharding(mesh, P())})
        assert back["w"].sharding == where and back["w"].committed
        same({"w": tree["w"], "key": tree["key"]}, back)
    one = checkpoints.restore(tmp_path / "1", weft.devices("cpu")[3])
    assert one["w"].devices() == {weft.devices("cpu")[3]}
    host = NamedSharding(meshes[1], P("a"), memory_kind="pinned_host")
    assert checkpoints.restore(tmp_path / "1", {"w": host, "key": None})["w"].sharding == host


def test_like(tmp_path, meshes, tree):
    """A training loop restores into the structure and the shardings of its own state."""
    checkpoints.save(tmp_path / "1", {"w": tree["w"], "step": 3})
    where = NamedSharding(meshes[1], P("a"))
    like = {"w": weft.ShapeDtypeStruct((8, 8), jnp.float32, sharding=where), "step": jnp.int32(0)}
    back = checkpoints.restore(tmp_path / "1", like=like)
    assert back["w"].sharding == where and int(back["step"]) == 3
    with pytest.raises(ValueError, match=r"it has \['step'\] in addition, and lacks \['bias'\]"):
        checkpoints.restore(tmp_path / "1", like={"w": like["w"], "bias": like["step"]})
    with pytest.raises(ValueError, match=r"the array at \['w'\] of .* and `like` has float32\[4, 8\] there"):
        checkpoints.restore(tmp_path / "1", like={**like, "w": weft.ShapeDtypeStruct((4, 8), jnp.float32)})
    with pytest.raises(ValueError, match=r"the array at \['w'\]"):
        checkpoints.restore(tmp_path / "1", like={**like, "w": weft.ShapeDtypeStruct((8, 8), jnp.int32)})


def test_asynchronously(tmp_path, meshes):
    """The values are those at the call: the arrays may be donated or deleted before they are written."""
    step = weft.jit(lambda x: x + 1, donate_argnums=0)
    x, futures = weft.device_put(X, NamedSharding(meshes[0], P("x", "y"))), []
    for i in range(5):
        futures.append(checkpoints.save_async(tmp_path / str(i), {"x": x, "i": i}))
        x = step(x)
    x.delete()
    assert [f.result(60) for f in futures] == [None] * 5
    for i in range(5):
        np.testing.assert_array_equal(checkpoints.restore(tmp_path / str(i))["x"], X + i)


def test_failures_of_writing_are_told(tmp_path, monkeypatch):
    calls = []

    def broken(path, data):
        calls.append(path)
        if len(calls) > 2:
            raise OSError(28, "No space left on device")
        path.write_bytes(data)

    monkeypatch.setattr(checkpoints, "_to_disk", broken)
    tree = [jnp.ones(3)] * 5
    with pytest.raises(OSError, match="No space left"):
        checkpoints.save(tmp_path / "1", tree)
    with pytest.raises(OSError, match="No space left"):
        checkpoints.save_async(tmp_path / "1", tree).result(60)
    assert list(tmp_path.iterdir()) == []  # nothing is left


def test_a_crash_leaves_no_half(tmp_path):
    """The process is killed while it writes: under the name of the checkpoint is what was there before."""
    program = textwrap.dedent("""
        import os, signal, sys
        import numpy as np
        from weft.experimental import checkpoints
        at, folder, count = int(sys.argv[1]), sys.argv[2], 0
        write = checkpoints._to_disk
        def killed(path, data):
            global count
            if count == at:
                path.write_bytes(bytes(data)[:3])
                os.kill(os.getpid(), signal.SIGKILL)
            count += 1
            write(path, data)
        checkpoints._to_disk = killed
        checkpoints.save(folder + "/2", [np.zeros(4), np.ones(4)])
    """)
    checkpoints.save(tmp_path / "1", [jnp.ones(2)])
    for at in (0, 2):
        done = subprocess.run([sys.executable, "-c", program, str(at), str(tmp_path)], capture_output=True, timeout=300)
        assert done.returncode == -9, done.stderr
        assert not (tmp_path / "2").exists()
        np.testing.assert_array_equal(checkpoints.restore(tmp_path / "1")[0], np.ones(2))
    checkpoints.save(tmp_path / "2", [jnp.zeros(2)])  # what was left is in nobody's way


def test_what_is_there_is_not_overwritten(tmp_path):
    checkpoints.save(tmp_path / "1", jnp.ones(2))
    with pytest.raises(FileExistsError, match="overwrite is False"):
        checkpoints.save(tmp_path / "1", jnp.zeros(2))
    checkpoints.save(tmp_path / "1", jnp.zeros(3), overwrite=True)
    assert checkpoints.restore(tmp_path / "1").shape == (3,)
    assert [p.name for p in tmp_path.iterdir()] == ["1"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis").write_text("…")
    with pytest.raises(FileExistsError, match="no checkpoint"):
        checkpoints.save_async(tmp_path / "mine", jnp.zeros(3), overwrite=True)
    with pytest.raises(FileNotFoundError):
        checkpoints.save(tmp_path / "no" / "parent", jnp.zeros(3))


def test_two_writers_of_one_name(tmp_path):
    """One of them has it, whole."""
    errors = []

    def write(value):
        try:
            checkpoints.save(tmp_path / "1", [jnp.full(1000, value)] * 20)
        except OSError as e:
            errors.append(e)

    threads = [threading.Thread(target=write, args=(float(i),)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(errors) == 3
    values = {float(x[0]) for x in checkpoints.restore(tmp_path / "1")}
    assert len(values) == 1 and [p.name for p in tmp_path.iterdir()] == ["1"]


def test_leaves_that_are_no_arrays(tmp_path):
    with pytest.raises(ValueError, match=r"the one at \['name'\] is a str"):
        checkpoints.save(tmp_path / "1", {"name": "adam"})
    assert not list(tmp_path.iterdir())


# damage and strangers ------------------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path, meshes) -> pathlib.Path:
    where = NamedSharding(meshes[0], P("x", "y"))
    checkpoints.save(tmp_path / "1", {"w": weft.device_put(X, where), "b": jnp.arange(3)})
    return tmp_path / "1"


def test_every_flipped_byte_is_noticed(saved):
    """In the index and in each part."""
    rng = random.Random(0)
    for file in sorted(saved.iterdir()):
        data = file.read_bytes()
        for _ in range(20):
            changed = bytearray(data)
            at = rng.randrange(len(data))
            changed[at] ^= 1 << rng.randrange(8)
            file.write_bytes(changed)
            try:
                back = checkpoints.restore(saved)
            except CheckpointError:
                continue
            # the only changes without a meaning are those of JSON's own text
            assert file.name == "index.json"
            np.testing.assert_array_equal(back["w"], X)
        file.write_bytes(data)
    np.testing.assert_array_equal(checkpoints.restore(saved)["w"], X)


def test_lengths_and_missing_files(saved):
    part = saved / "1.3"
    data = part.read_bytes()
    for wrong in (b"", data[:-1], data + b"\0"):
        part.write_bytes(wrong)
        with pytest.raises(CheckpointError, match=r"1\.3 has \d+ bytes, where 32 are right"):
            checkpoints.restore(saved)
    part.unlink()
    with pytest.raises(FileNotFoundError, match=r"1\.3 is missing"):
        checkpoints.restore(saved)
    os.symlink("/etc/hostname", part)
    with pytest.raises(CheckpointError, match=r"1\.3 can't be read"):
        checkpoints.restore(saved)
    with pytest.raises(FileNotFoundError, match="is no checkpoint"):
        checkpoints.restore(saved.parent)


def forged(folder: pathlib.Path, change) -> None:
    """An index that a stranger has changed, with its right checksum."""
    index = json.loads((folder / "index.json").read_text())
    index.pop("sha256")
    change(index)
    (folder / "index.json").write_text(json.dumps({**index, "sha256": checkpoints._digest(index)}))


@pytest.mark.parametrize(
    "change,why",
    [
        (lambda i: i.update(version=2), "version 2"),
        (lambda i: i.update(format="zip"), "its format is 'zip'"),
        (lambda i: i.update(leaves=i["leaves"][:1]), "has 2 leaves, and 1 are described"),
        (lambda i: i.update(leaves=7), "damaged"),
        (lambda i: i.update(structure="!"), "damaged"),
        (lambda i: i.update(structure="AAAA"), "damaged"),
        (lambda i: i["leaves"][1].update(shape=[1 << 40, 1 << 40]), "do not cover it"),
        (lambda i: i["leaves"][1].update(shape=[1 << 60]), "no shape"),
        (lambda i: i["leaves"][1].update(shape=[-8, 8]), "no shape"),
        (lambda i: i["leaves"][1].update(shape=[8.0, 8]), "no shape"),
        (lambda i: i["leaves"][1].update(shape=[1] * 65), "no shape"),
        (lambda i: i["leaves"][1].update(dtype="object"), "damaged"),
        (lambda i: i["leaves"][1].update(path=3), "no path"),
        (lambda i: i["leaves"][1].update(key="dice"), "damaged"),
        (lambda i: i["leaves"][1].update(parts=[]), "no parts"),
        (lambda i: i["leaves"][1]["parts"].pop(), "do not cover it"),
        (lambda i: i["leaves"][1]["parts"][0].update(start=[2, 0]), "overlap"),
        (lambda i: i["leaves"][1]["parts"][0].update(start=[1, 0]), "overlap"),
        (lambda i: i["leaves"][1]["parts"][0].update(start=[80, 0]), "overlap"),
        (lambda i: i["leaves"][1]["parts"][0].update(shape=[4, 4]), "differ in shape"),
        (lambda i: i["leaves"][1]["parts"][0].update(start=[0]), "another rank"),
        (lambda i: i["leaves"][1]["parts"][0].update(sha256="0" * 64), "another checksum"),
        (lambda i: i["leaves"][1].pop("parts"), "damaged"),
    ],
)
def test_forged_indices(saved, change, why):
    forged(saved, change)
    with pytest.raises(CheckpointError, match=why):
        checkpoints.restore(saved)


def test_sizes_are_limited_before_anything_is_read(saved):
    with pytest.raises(ValueError, match=r"have 268 bytes, and max_bytes is 100"):
        checkpoints.restore(saved, max_bytes=100)
    assert checkpoints.restore(saved, max_bytes=268)["b"].shape == (3,)
    forged(
        saved,
        lambda i: i["leaves"][0].update(shape=[1 << 40], parts=[{"start": [0], "shape": [1 << 40], "sha256": ""}]),
    )
    with pytest.raises(CheckpointError, match=r"0\.0 has 12 bytes, where 4,398,046,511,104 are right"):
        checkpoints.restore(saved)  # no memory was taken for it


def test_an_index_as_large_as_a_disk(saved):
    with open(saved / "index.json", "wb") as file:
        file.truncate((256 << 20) + 1)  # a file of holes
    with pytest.raises(CheckpointError, match="at most 268,435,456 are right"):
        checkpoints.restore(saved)


def test_deep_json(saved):
    (saved / "index.json").write_text("[" * 100_000)
    with pytest.raises(CheckpointError, match="damaged"):
        checkpoints.restore(saved)
