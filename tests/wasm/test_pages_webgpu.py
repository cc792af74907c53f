"""Programs for pages with WebGPU: what `export.web` writes for it and what it refuses. Node has no WebGPU, so that
programs run on WebAssembly here; e2e/ has them on WebGPU in Chromium.
"""

import json
import shutil
import subprocess
import warnings

import numpy as np
import pytest
from platforms import need
import weft
import weft.numpy as jnp
from weft import export, lax
from weft.errors import BackendError
from weft.serialization.portable import NotPortable
from weft_wasm.artifact import Artifact

NODE = shutil.which("node")


def spec(*shape, dtype="float32"):
    return weft.ShapeDtypeStruct(shape, dtype)


def scale(x):
    return {"twice": 2 * x, "sum": x.sum()}


def node(folder, body: str):
    """What a body of JavaScript returns; `caught` is the message of a promise that fails."""
    need("node")
    prelude = 'const caught = (promise) => promise.then(() => "nothing", String);\n'
    show = "(k, v) => (ArrayBuffer.isView(v) ? Array.from(v) : v)"
    script = (
        f"{prelude}const result = await (async () => {{ {body} }})();\nconsole.log(JSON.stringify(result, {show}));"
    )
    (folder / "test.mjs").write_text(script)
    done = subprocess.run([NODE, "test.mjs"], cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def names(files):
    return sorted(p.name for p in files)


def test_the_files_of_each_target(tmp_path):
    w = np.ones(3, "float32")
    common = ["f.d.ts", "f.html", "f.js", "package.json", "weft-page.js", "weft.d.ts"]
    gpu = ["f.webgpu.weft", "weft-gpu.d.ts", "weft-gpu.js"]
    made = {
        target: names(export.web(lambda x: x + w, spec(3), path=tmp_path / target, name="f", target=target))
        for target in ("wasm", "webgpu", "auto")
    }
    assert made["wasm"] == sorted([*common, "f.bin", "f.wasm", "weft.js"])
    assert made["webgpu"] == sorted([*common, *gpu, "f.webgpu.bin"])
    assert made["auto"] == sorted([*common, *gpu, "f.bin", "f.wasm"])  # both take the same arrays
    assert names(export.web(lambda x: x + w, spec(3), path=tmp_path / "default", name="f")) == made["wasm"]
    program = Artifact.from_bytes((tmp_path / "auto/f.webgpu.weft").read_bytes())
    assert program.kind == "webgpu" and [i["bytes"] for i in program.metadata["inputs"]] == [12, 12]


def test_a_new_target_leaves_nothing_of_the_old_one(tmp_path):
    w = np.ones(3, "float32")
    for target, gone in (("auto", ()), ("webgpu", ("f.wasm", "f.bin")), ("wasm", ("f.webgpu.weft", "f.webgpu.bin"))):
        export.web(lambda x: x + w, spec(3), path=tmp_path, name="f", target=target)
        assert not any((tmp_path / name).exists() for name in gone), target


def test_branches_by_platform_have_their_own_arrays(tmp_path):
    here, there = np.float32([1, 2, 3]), np.float32([10, 20, 30])

    def f(x):
        return lax.platform_dependent(x, webgpu=lambda x: x + there, default=lambda x: x + here)

    files = names(export.web(f, spec(3), path=tmp_path, target="auto"))
    data = {name: (tmp_path / name).read_bytes() for name in files if name.endswith(".bin")}
    assert data == {"f.bin": here.tobytes(), "f.webgpu.bin": there.tobytes()}


def test_without_an_adapter_it_runs_on_webassembly_and_says_why(tmp_path):
    export.web(scale, spec(3), path=tmp_path, target="auto")
    export.web(scale, spec(3), path=tmp_path, target="webgpu", name="alone")
    export.web(scale, spec(3), path=tmp_path / "wasm")
    got = node(
        tmp_path,
        """
        const { load } = await import("./scale.js"), { load: alone } = await import("./alone.js");
        const f = await load(), plain = await (await import("./wasm/scale.js")).load();
        const x = Float32Array.of(1, 2, 3), state = await f.onDevice(x);
        return [
          [f.backend, f.reason, await f(x), await f.read(state), f.name],
          [plain.backend, plain.reason, plain(x)],
          [await caught(load({ backend: "webgpu" })), await caught(alone()), await caught(alone({ backend: "wasm" }))],
          [await caught(f(new Float32Array(2))), await caught(load({ backend: "gpu" }))],
        ];
    """,
    )
    value = {"twice": [2, 4, 6], "sum": 6}
    why = "there is no WebGPU here (navigator.gpu is missing)"
    assert got[0] == ["wasm", why, value, value, "scale"]
    assert got[1] == ["wasm", "it was exported for WebAssembly alone", value]
    assert got[2] == [
        f'WeftRuntimeError: scale does not run on WebGPU: {why}; load it with backend: "auto", which falls back to'
        " WebAssembly",
        f"WeftRuntimeError: alone does not run on WebGPU: {why}; use a browser and a machine that have it, or export"
        ' the program with target="auto"',
        'WeftRuntimeError: alone was exported for WebGPU alone; load it with backend: "auto"',
    ]
    assert got[3] == [
        "TypeError: scale: x must be a Float32Array of length 3 for float32[3]; got a Float32Array of length 2",
        'TypeError: backend must be "auto", "webgpu" or "wasm"; got gpu',
    ]


def test_the_runtime_of_a_package_runs_all_exports(tmp_path):
    """`loadAsync` of weft-gpu.js, which npm has too, on an export for WebAssembly; `load` refuses one for WebGPU."""
    export.web(scale, spec(3), path=tmp_path)
    export.web(scale, spec(3), path=tmp_path, target="webgpu", name="alone")
    got = node(
        tmp_path,
        """
        const { load, loadAsync } = await import("./weft-gpu.js"), x = Float32Array.of(1, 2, 3);
        const scale = await import("./scale.js"), alone = await import("./alone.js");
        const f = await loadAsync(scale.signature, scale.files);
        return [f.backend, f.reason, await f(x), (await load(scale.signature, scale.files))(x).sum,
          await caught(load(alone.signature, alone.files))];
    """,
    )
    assert got[:4] == ["wasm", "it was exported for WebAssembly alone", {"twice": [2, 4, 6], "sum": 6}, 6]
    assert "alone was exported for WebGPU alone; load it with loadAsync" in got[4]


def wide(x):
    return jnp.cumsum(x.astype("float64")).astype("float32")


def test_what_webgpu_cant_compile_is_named(tmp_path):
    told = r"x has dtype float64 \(f64\[2\]\), which WebGPU devices do not have: convert to a 32-bit dtype"
    with weft.enable_x64(True):
        with pytest.raises(BackendError, match=rf"double \(<lambda>\) can't be exported for WebGPU: {told}") as error:
            export.web(lambda x: x * 2, spec(2, dtype="float64"), path=tmp_path / "a", name="double", target="webgpu")
        assert "With target='auto' the page runs it on WebAssembly." in str(error.value)
        with pytest.raises(BackendError, match=r"dtype float64 .* At .*test_pages_webgpu\.py:\d+"):
            export.web(wide, spec(2), path=tmp_path / "a", target="webgpu")
        w = np.ones(2)
        with pytest.raises(BackendError, match="an array that it closes over has dtype float64"):
            export.web(lambda x: x + w, spec(2, dtype="float64"), path=tmp_path / "a", target="webgpu")
    assert not (tmp_path / "a").exists()


def test_auto_remarks_on_what_webgpu_cant_compile(tmp_path):
    with weft.enable_x64(True), pytest.warns(UserWarning, match=r"(?s)wide will run on WebAssembly alone.*At ") as told:
        export.web(wide, spec(2), path=tmp_path, target="auto")
    assert told[0].filename == __file__
    script = (tmp_path / "wide.js").read_text()
    assert "which WebGPU devices do not have" in script
    assert __file__ not in script and "test_pages" not in script  # a page does not show the author's folders
    got = node(
        tmp_path,
        """
        const { load } = await import("./wide.js"), f = await load();
        return [f.backend, f.reason, await f(Float32Array.of(1, 2)), await caught(load({ backend: "webgpu" }))];
    """,
    )
    assert got[0] == "wasm" and got[2] == [1, 3]
    cause = "convert_element_type has dtype float64 (f64[2]), which WebGPU devices do not have"
    assert got[1] == cause and f"wide does not run on WebGPU: {cause}; load it with" in got[3]


def test_a_program_that_both_compile_is_exported_without_a_word(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert export.web(scale, spec(3), path=tmp_path, target="auto")


@pytest.mark.parametrize("target", ["webgpu", "auto"])
def test_calls_of_python_are_refused(tmp_path, target):
    def calling(x):
        return weft.pure_callback(np.sin, spec(3), x)

    with pytest.raises(NotPortable, match="pure_callback calls a Python function"):
        export.web(calling, spec(3), path=tmp_path / "a", target=target)
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("target", ["gpu", None, "", 3])
def test_targets(tmp_path, target):
    with pytest.raises(ValueError, match=f"target must be one of 'wasm', 'webgpu', 'auto'; got {target!r}"):
        export.web(scale, spec(3), path=tmp_path / "a", target=target)


def test_the_declarations_say_that_results_are_promises(tmp_path):
    export.web(scale, spec(3), path=tmp_path, target="auto")
    types = (tmp_path / "scale.d.ts").read_text()
    assert "load(options?: AsyncLoadOptions): Promise<AsyncProgram<Arguments, Result>>" in types
    assert 'from "./weft-gpu.js"' in types and 'from "./weft.js"' not in types
    export.web(scale, spec(3), path=tmp_path, target="wasm")
    types = (tmp_path / "scale.d.ts").read_text()
    assert "load(options?: LoadOptions): Promise<Program<Arguments, Result>>" in types and "Async" not in types
    assert 'from "./weft.js"' in types and 'from "./weft-gpu.js"' not in types
