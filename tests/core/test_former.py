"""What earlier releases wrote is read and run by this one. Each folder of tests/data/former is named after the commit
whose code wrote it, by tests/data/make_former.py; 20ae99f0 is the last one before the modules moved to their rooms.
"""

import json
import pathlib
import pickle
import shutil
import subprocess

import numpy as np
import pytest
import weft
import weft.numpy as jnp
from platforms import need, on, under_test
from weft import export
from weft.core.interpret import interpret
from weft.export import language  # noqa: F401  a reader knows all primitives
from weft.serialization import programs
from weft.tree_util import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey
from weft_wasm.artifact import Artifact, ArtifactError
from weft_wasm.runtimes.desktop import DesktopRuntime

FOLDERS = sorted((pathlib.Path(__file__).parents[1] / "data" / "former").iterdir())
NAMES = ("layers", "loops", "transforms", "integers")
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
ARGUMENTS = {name: X for name in NAMES} | {"integers": np.arange(6, dtype=np.int32)}


@pytest.fixture(params=FOLDERS, ids=lambda folder: folder.name)
def former(request):
    return request.param


def wanted(former, name):
    return json.loads((former / "want.json").read_text())[name]


def check(got, want, rtol=1e-5, tied=False):
    """`tied`: the second row of "layers" is of equal elements but for roundings, which differ between processors; any
    of them may be its largest.
    """
    assert len(got) == len(want)
    for g, w in zip(got, want):
        if tied and np.ndim(w) == 1 and np.asarray(g).dtype.kind == "i":
            g, w = np.delete(np.asarray(g), 1), np.delete(w, 1)
        np.testing.assert_allclose(np.asarray(g).astype(np.float64), w, rtol=rtol, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_programs_of_the_wire(former, name):
    data = (former / f"{name}.jaxpr").read_bytes()
    with np.load(former / f"{name}.npz") as consts:
        args = [*consts.values(), ARGUMENTS[name]]
    program = programs.deserialize(data)
    check(interpret(program.jaxpr, args), wanted(former, name), tied=name == "layers")
    assert programs.deserialize(programs.serialize(program.jaxpr)).jaxpr.in_avals == program.jaxpr.in_avals


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("platform", under_test())
def test_exported_programs(former, platform, name):
    exported = export.deserialize((former / f"{name}.exported").read_bytes())
    with on(platform):
        check(weft.jit(exported.call)(jnp.asarray(ARGUMENTS[name])), wanted(former, name), tied=name == "layers")


def test_an_exported_program_of_any_size_with_its_derivative(former):
    exported = export.deserialize((former / "gradient.exported").read_bytes())
    check([exported.call(X), weft.grad(exported.call)(jnp.asarray(X))], wanted(former, "gradient"))


def test_pickles(former):
    found = pickle.loads((former / "arrays.pickle").read_bytes())
    np.testing.assert_array_equal(found["float32"], X)
    assert found["bfloat16"].dtype == jnp.bfloat16 and found["int4"].dtype == jnp.int4
    np.testing.assert_array_equal(np.asarray(found["int4"]).astype(int), [0, 1, 2, 3])
    np.testing.assert_array_equal(weft.random.key_data(found["key"]), weft.random.key_data(weft.random.key(3)))
    np.testing.assert_array_equal(found["tree"][0]["w"], np.ones(3))
    assert found["tree"][1][0] == 2 and found["tree"][1][1] is None
    assert found["structure"] == weft.tree.structure({"a": [1, (2, None)]})
    assert found["path"] == (DictKey("a"), SequenceKey(1), GetAttrKey("b"), FlattenedIndexKey(0))
    assert found["partial"](0) == 1 and found["spec"] == weft.P("x", None)
    assert found["struct"] == weft.ShapeDtypeStruct((2, 3), "float32")


def test_artifacts(former):
    """Files of artifacts, as the cache and programs for pages hold them."""
    artifact = Artifact.from_bytes((former / "scaled.weft").read_bytes())
    need("wasm")
    runtime = DesktopRuntime()
    handle = runtime.alloc(X.nbytes)
    runtime.write(handle, X.tobytes())
    (out,) = runtime.load(artifact)([handle])
    check([np.frombuffer(runtime.read(out, X.nbytes), np.float32).reshape(X.shape)], [np.tanh(X) * 2])


def test_an_artifact_of_version_1_says_what_to_do(former):
    """It has no checksum, so nobody could tell a damaged one from a sound one."""
    data = (former / "scaled.weft").read_bytes()
    with pytest.raises(ArtifactError, match="of version 1, this runtime reads version 2: compile the program again"):
        Artifact.from_bytes(b"weft\x01" + data[5:])


def test_a_program_for_pages_runs_beside_the_module_of_this_release(tmp_path, former):
    """A folder's programs share weft.js, which the last export replaces."""
    need("node")
    export.web(lambda x: x + 1, X, path=tmp_path, name="another")
    for path in (former / "page").iterdir():
        shutil.copy(path, tmp_path)
    numbers = ", ".join(map(repr, X.ravel().tolist()))
    (tmp_path / "run.mjs").write_text(
        f"""
        import {{ load }} from "./scaled.js";
        import {{ load as other }} from "./another.js";
        const x = Float32Array.of({numbers});
        console.log(JSON.stringify([Array.from((await load())(x)), Array.from((await other())(x))]));
        """
    )
    done = subprocess.run(
        [shutil.which("node"), "run.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    check(json.loads(done.stdout), [(np.tanh(X) * 2).ravel(), (X + 1).ravel()])
