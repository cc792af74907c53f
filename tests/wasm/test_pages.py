"""Programs for pages without Python: what `export.web` writes, called by JavaScript under Node. e2e/ has the same in
Chromium.
"""

import dataclasses
import functools
import json
import shutil
import subprocess
from typing import NamedTuple

import numpy as np
import pytest
from platforms import need
import weft
import weft.numpy as jnp
from weft import export
from weft.serialization.portable import NotPortable
from weft_wasm.backends.wasm import WasmBackend

NODE = shutil.which("node")
F = jnp.float32

# Typed arrays are printed as lists, 64-bit integers as strings; `caught` is the message of what a function throws.
PRELUDE = """
import { %(names)s } from "./%(module)s.js";
const numbers = (v) => Array.from(v, (x) => typeof x === "bigint" ? String(x) : x);
const show = (key, v) =>
  ArrayBuffer.isView(v) ? { [v.constructor.name]: numbers(v) } : typeof v === "bigint" ? String(v) + "n" : v;
const caught = (f) => { try { f(); } catch (error) { return `${error.name}: ${error.message}`; } };
const f = await load();
const result = await (async () => { %(body)s })();
console.log(JSON.stringify(result, show));
"""


@pytest.fixture(autouse=True, scope="module")
def _node():
    need("node")


def node(folder, module: str, body: str, names: str = "load", flags=()):
    """What a body of JavaScript returns in which `f` is the loaded program."""
    (folder / "test.mjs").write_text(PRELUDE % {"module": module, "body": body, "names": names})
    done = subprocess.run([NODE, *flags, "test.mjs"], cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def spec(*shape, dtype="float32"):
    return weft.ShapeDtypeStruct(shape, dtype)


def test_a_trained_function_is_its_parameters_and_inputs(tmp_path):
    params = {"w": np.linspace(-1, 1, 12, dtype="float32").reshape(4, 3), "b": np.float32([1, 2, 3])}

    def predict(params, x):
        return jnp.tanh(x @ params["w"] + params["b"])

    files = export.web(functools.partial(predict, params), spec(2, 4), path=tmp_path / "site")
    assert {p.name for p in files} >= {
        "predict.wasm",
        "predict.bin",
        "predict.js",
        "predict.d.ts",
        "predict.html",
        "weft.js",
        "weft.d.ts",
        "package.json",
    }
    assert (tmp_path / "site/predict.bin").stat().st_size == 4 * 15
    x = np.linspace(0, 1, 8, dtype="float32").reshape(2, 4)
    got = node(tmp_path / "site", "predict", f"return [f.name, f(Float32Array.of({', '.join(map(str, x.ravel()))}))];")
    np.testing.assert_allclose(got[1]["Float32Array"], np.tanh(x @ params["w"] + params["b"]).ravel(), rtol=2e-6)
    assert got[0] == "predict"


class Pair(NamedTuple):
    first: object
    second: object


@functools.partial(weft.tree_util.register_dataclass, data_fields=["mean", "count"], meta_fields=["unit"])
@dataclasses.dataclass
class Summary:
    mean: object
    count: object
    unit: str = "m"


def test_structures(tmp_path):
    def mixed(tree, pair, nothing):
        a, (b, c) = tree["a"], tree["list"]
        return {
            "sums": [a + b, c * pair.first],
            "by number": {7: Summary(a.mean(), jnp.int32(a.size))},
            "nothing": nothing,
            "odd key": Pair((), {}),
        }

    example = ({"a": spec(2), "list": [spec(2), (spec())]}, Pair(spec(dtype="float64"), spec(1, dtype="int16")), None)
    export.web(mixed, *example, path=tmp_path)
    got = node(
        tmp_path,
        "mixed",
        "return f({ a: Float32Array.of(1, 2), list: [Float32Array.of(3, 4), 5] }, { first: 2, second: Int16Array.of(1)"
        " }, null);",
    )
    assert got == {
        "by number": {"7": {"count": 2, "mean": 1.5}},
        "nothing": None,
        "odd key": {"first": [], "second": {}},
        "sums": [{"Float32Array": [4, 6]}, 10],
    }
    types = (tmp_path / "mixed.d.ts").read_text()
    for part in (
        "pair: {",
        '"second": Int16Array;',
        "nothing: null,",
        '"odd key": {',
        "/** float32[2] */",
        '"count": number;',
        "/** int16[1] */",
    ):
        assert part in types, (part, types)


@pytest.mark.parametrize(
    "dtype, array, values",
    [
        ("bool", "Uint8Array", [1, 0, 1]),
        ("int8", "Int8Array", [-128, 1, 127]),
        ("uint8", "Uint8Array", [0, 1, 255]),
        ("int16", "Int16Array", [-32768, 1, 32767]),
        ("uint16", "Uint16Array", [0, 1, 65535]),
        ("int32", "Int32Array", [-(2**31), 1, 2**31 - 1]),
        ("uint32", "Uint32Array", [0, 1, 2**32 - 1]),
        ("int64", "BigInt64Array", [-(2**63), 1, 2**63 - 1]),
        ("uint64", "BigUint64Array", [0, 1, 2**64 - 1]),
        ("float32", "Float32Array", [-1.5, 0, 3.25]),
        ("float64", "Float64Array", [0.1, 1e300, -2]),
        ("complex64", "Float32Array", [1, 2, 3, 4, 5, 6]),
        ("complex128", "Float64Array", [1, 2, 3, 4, 5, 6]),
        ("bfloat16", "Float32Array", [1, -2.5, 384]),
        ("float16", "Float32Array", [0.5, 65504, -1]),
        ("float8_e4m3fn", "Float32Array", [0.5, 448, -1]),
        ("int4", "Int8Array", [-8, 0, 7]),
        ("uint4", "Uint8Array", [0, 3, 15]),
    ],
)
def test_dtypes(tmp_path, dtype, array, values):
    """Each goes in and comes out again, with something computed between."""
    export.web(lambda x: (x[::-1], x), spec(3, dtype=dtype), path=tmp_path, name="turn")
    numbers = ", ".join(f"{v}n" if "Big" in array else str(v) for v in values)
    turned = values[4:] + values[2:4] + values[:2] if "complex" in dtype else values[::-1]
    shown = [str(v) if "Big" in array else v for v in turned], [str(v) if "Big" in array else v for v in values]
    assert node(tmp_path, "turn", f"return f({array}.of({numbers}));") == [{array: shown[0]}, {array: shown[1]}]
    note = {
        "bfloat16": "float32[3] for bfloat16[3]",
        "int4": "int8[3] for int4[3]",
        "complex64": "complex64[3], real and imaginary parts in turn",
    }
    assert f"/** {note.get(dtype, '')}" in (tmp_path / "turn.d.ts").read_text()


def test_narrow_floats_are_rounded_as_they_go_in(tmp_path):
    x = np.float32([1.00390625, 3.14159, 1e-3])
    export.web(lambda x: x * 2, spec(3, dtype="bfloat16"), path=tmp_path, name="double")
    got = node(tmp_path, "double", f"return f(Float32Array.of({', '.join(map(str, x))}));")
    assert got["Float32Array"] == (jnp.asarray(x, jnp.bfloat16) * 2).astype(F).tolist()


def test_values_without_axes_and_random_keys(tmp_path):
    def draw(key, n, flag, big, z):
        return (
            weft.random.uniform(key, (2,), F) * n,
            ~flag,
            big * 2,
            z * 1j,
            weft.random.key_data(weft.random.fold_in(key, 1)),
            weft.random.fold_in(key, 2),
        )

    key = weft.random.key(7)
    export.web(
        draw, key, spec(dtype="int32"), spec(dtype="bool"), spec(dtype="int64"), spec(dtype="complex64"), path=tmp_path
    )
    words = ", ".join(map(str, np.asarray(weft.random.key_data(key)).tolist()))
    got = node(tmp_path, "draw", f"return f(Uint32Array.of({words}), 3, true, 2n ** 40n, Float32Array.of(1, 2));")
    want = draw(key, 3, np.bool_(True), 2**40, np.complex64(1 + 2j))
    assert got[0] == {"Float32Array": want[0].tolist()} and got[1:4] == [False, f"{2**41}n", {"Float32Array": [-2, 1]}]
    assert got[4] == {"Uint32Array": want[4].tolist()} and got[5] == {
        "Uint32Array": weft.random.key_data(want[5]).tolist()
    }


def test_state_stays_on_the_device_and_is_consumed(tmp_path):
    @functools.partial(weft.jit, donate_argnums=0)
    def step(state, x):
        return {"w": state["w"] * 0.5 + x, "t": state["t"] + 1}, jnp.sum(state["w"])

    export.web(step, {"w": spec(1000), "t": spec(dtype="int32")}, spec(1000), path=tmp_path)
    export.web(lambda w: w[0], spec(1000), path=tmp_path, name="first")
    got = node(
        tmp_path,
        "step",
        """
        const device = await Device.create(), f = await load({ device }), first = await loadFirst({ device });
        const before = device.stats().allocated;
        let [state, x] = f.put({ w: new Float32Array(1000), t: 0 }, new Float32Array(1000).fill(1)), sum;
        const old = state.w;
        for (let i = 0; i < 50; i++) { [state, sum] = f.onDevice(state, x); if (i < 49) sum.free(); }
        const head = first(state.w), again = caught(() => f(old)), freed = caught(() => old.read());
        const stale = caught(() => f({ w: old, t: 1 }, x));
        const values = f.read({ sum, t: state.t, shape: state.w.shape, dtype: state.w.dtype });
        [state.w, state.t, x, sum].forEach((array) => (array.free(), array.free()));
        const left = device.stats().allocated - before;
        f.unload(); first.unload();
        const unloaded = caught(() => f({ w: new Float32Array(1000), t: 0 }, new Float32Array(1000)));
        return [head, values, freed, stale, left, device.stats().allocated, unloaded];
    """,
        'load } from "./step.js"; import { load as loadFirst } from "./first.js"; import { Device',
    )[0:]
    assert got[0] == 2 and got[1] == {"sum": pytest.approx(2000), "t": 50, "shape": [1000], "dtype": "float32"}
    assert "was freed, or donated to an earlier call" in got[2] and "step: state.w was freed, or donated" in got[3]
    assert got[4:6] == [0, 0] and "has been unloaded" in got[6]


def test_calls_do_not_leak(tmp_path):
    export.web(lambda x: (x + 1, x.sum()), spec(500), path=tmp_path, name="f")
    got = node(
        tmp_path,
        "f",
        """
        const device = await Device.create(), g = await load({ device }), x = new Float32Array(500);
        const before = device.stats().allocated;
        for (let i = 0; i < 2000; i++) { g(x); try { g(x, x); } catch {} try { g(new Float32Array(501)); } catch {} }
        return [device.stats().allocated - before, device.stats().peak - before < 10000];
    """,
        'load } from "./f.js"; import { Device',
    )
    assert got == [0, True]


def test_arrays_that_nobody_holds_are_freed(tmp_path):
    export.web(lambda x: x + 1, spec(5000), path=tmp_path, name="f")
    got = node(
        tmp_path,
        "f",
        """
        const device = await Device.create(), g = await load({ device }), x = new Float32Array(5000);
        const before = device.stats().allocated;
        for (let i = 0; i < 100; i++) g.onDevice(x);
        const held = device.stats().allocated - before;
        for (let i = 0; i < 50 && device.stats().allocated > before; i++) {
          gc();
          await new Promise((resolve) => setTimeout(resolve, 10));
        }
        return [held, device.stats().allocated - before];
    """,
        'load } from "./f.js"; import { Device',
        flags=["--expose-gc"],
    )
    assert got[0] >= 100 * 20000 and got[1] == 0


def test_nothing_in_and_nothing_out(tmp_path):
    export.web(lambda: jnp.arange(3, dtype="int32"), path=tmp_path, name="f")
    assert node(tmp_path, "f", "return [f(), caught(() => f(1))];") == [
        {"Int32Array": [0, 1, 2]},
        "TypeError: f takes 0 arguments (); got 1",
    ]
    export.web(lambda x, y: (x[:0], x.sum(), ()), spec(0, 3), spec(2), path=tmp_path, name="g")  # y is not used
    assert node(tmp_path, "g", "return f(new Float32Array(0), new Float32Array(2));") == [{"Float32Array": []}, 0, []]
    export.web(lambda x: (), spec(2), path=tmp_path, name="h")
    assert node(tmp_path, "h", "return [f(new Float32Array(2)), caught(() => f(new Float32Array(1)))];")[0] == []


def test_a_result_that_is_an_argument_or_given_twice(tmp_path):
    @functools.partial(weft.jit, donate_argnums=0)
    def f(x, y):
        s = x + y
        return x, s, s, y

    export.web(f, spec(2), spec(2), path=tmp_path)
    got = node(
        tmp_path,
        "f",
        """
        const [x, y] = f.put(Float32Array.of(1, 2), Float32Array.of(3, 4)), out = f.onDevice(x, y), read = f.read(out);
        out.forEach((array) => array.free());
        return [read, y.read(), f(Float32Array.of(1, 2), Float32Array.of(3, 4))];
    """,
    )
    want = [{"Float32Array": v} for v in ([1, 2], [4, 6], [4, 6], [3, 4])]
    assert got == [want, {"Float32Array": [3, 4]}, want]


class Model:
    """A callable object, as libraries of networks have them."""

    def __init__(self):
        self.fun = jnp.ones(3, "float32")

    def __call__(self, x):
        return x + self.fun

    def forward(self, x):
        return x - self.fun


def test_objects_and_methods(tmp_path):
    export.web(Model(), spec(3), path=tmp_path)
    export.web(weft.jit(Model().forward), spec(3), path=tmp_path)
    assert node(tmp_path, "Model", "return [f.signature.args[0].name, f(Float32Array.of(1, 2, 3))];") == [
        "x",
        {"Float32Array": [2, 3, 4]},
    ]
    assert node(tmp_path, "forward", "return f(Float32Array.of(1, 2, 3));") == {"Float32Array": [0, 1, 2]}


BAD = {
    "f()": "TypeError: f takes 2 arguments (params, x); got 0",
    "f(p, x, x)": "TypeError: f takes 2 arguments (params, x); got 3",
    "f(p, new Float64Array(4))": (
        "TypeError: f: x must be a Float32Array of length 4 for float32[2,2]; got a Float64Array of length 4"
    ),
    "f(p, new Float32Array(5))": (
        "TypeError: f: x must be a Float32Array of length 4 for float32[2,2]; got a Float32Array of length 5"
    ),
    "f(p, [1, 2, 3, 4])": "f: x must be a Float32Array of length 4 for float32[2,2]; got an array of 4",
    "f(p, undefined)": "got undefined",
    "f({ w: p.w }, x)": "TypeError: f: params must be an object with n, w; got an object with w",
    "f({ ...p, v: 1 }, x)": "f: params must be an object with n, w; got an object with w, n, v",
    "f([p.w, p.n], x)": "f: params must be an object with n, w; got an array of 2",
    "f({ w: [undefined], n: 1 }, x)": "f: params.w[0] must be a Float32Array of length 2 for float32[2]; got undefined",
    "f({ w: [], n: 1 }, x)": "f: params.w must be an array of 1; got an array of 0",
    "f({ ...p, n: 1.5 }, x)": "f: params.n must be int32 (the number does not fit); got number 1.5",
    "f({ ...p, n: 2 ** 31 }, x)": "f: params.n must be int32 (the number does not fit); got number 2147483648",
    "f({ ...p, n: 1n }, x)": "f: params.n must be a number, or an Int32Array of length 1 for int32[]; got bigint 1",
    "f({ ...p, n: '1' }, x)": "got string 1",
    "f(p, f.put(p, x)[0].w[0])": (
        "f: x must be a Float32Array of length 4 for float32[2,2]; got a device array float32[2]"
    ),
}


def test_bad_input_is_named(tmp_path):
    def f(params, x):
        return x @ params["w"][0] + params["n"]

    export.web(f, {"w": [spec(2)], "n": spec(dtype="int32")}, spec(2, 2), path=tmp_path)
    body = "const x = Float32Array.of(1, 2, 3, 4), p = { w: [Float32Array.of(1, 1)], n: 1 };\n"
    got = node(tmp_path, "f", f"{body}return [{', '.join(f'caught(() => {call})' for call in BAD)}, f(p, x)];")
    assert got.pop() == {"Float32Array": [4, 8]}
    for (call, want), message in zip(BAD.items(), got):
        assert message and want in message, (call, message)


def load_fails(folder, before: str = "") -> str:
    script = (
        f'{before} const {{ load }} = await import("./f.js"); await load().then(() => console.log("loaded"), (error) =>'
        " console.log(String(error)));"
    )
    return subprocess.run(
        [NODE, "--input-type=module", "-e", script], cwd=folder, capture_output=True, text=True
    ).stdout


def test_damaged_and_mixed_exports_are_refused(tmp_path):
    w = np.ones(3, "float32")
    export.web(lambda x: x + w, spec(3), path=tmp_path / "a", name="f")
    export.web(lambda x: x - w, spec(3), path=tmp_path / "b", name="f")
    for kind in ("wasm", "relaxed.wasm"):
        if (tmp_path / "a" / f"f.{kind}").exists():
            shutil.copy(tmp_path / "b" / f"f.{kind}", tmp_path / "a" / f"f.{kind}")
    assert "WeftRuntimeError: the .wasm file of f is not of the same export as its module" in load_fails(tmp_path / "a")
    (tmp_path / "b" / "f.bin").write_bytes(b"\0" * 8)
    assert "the .bin file of f is not of the same export as its module, or was damaged" in load_fails(tmp_path / "b")


@pytest.mark.parametrize(
    "before", ["", "delete globalThis.crypto;"], ids=["digests of the engine", "digests of our own"]
)
def test_a_bit_that_turned_is_noticed(tmp_path, before):
    w = np.ones(3, "float32")
    files = export.web(lambda x: x + w, spec(3), path=tmp_path, name="f")
    assert load_fails(tmp_path, before) == "loaded\n"
    used = [p for p in files if p.name == "f.bin" or p.suffix == ".wasm"]
    assert len(used) >= 2
    for place in (0, 9, -1):
        for kind in ("bin", "wasm"):
            good = {p: p.read_bytes() for p in used if p.suffix[1:] == kind}
            for path, data in good.items():
                damaged = bytearray(data)
                damaged[place] ^= 4
                path.write_bytes(damaged)
            assert (
                f"WeftRuntimeError: the .{kind} file of f is not of the same export as its module, or was damaged; copy"
                " all files" in load_fails(tmp_path, before)
            )
            for path, data in good.items():
                path.write_bytes(data)


def test_engines_without_relaxed_vectors_take_the_other_module(tmp_path):
    export.web(lambda a, b: a @ b, spec(64, 64), spec(64, 64), path=tmp_path, name="dot")
    assert (tmp_path / "dot.relaxed.wasm").exists()
    got = node(
        tmp_path,
        "dot",
        """
        const { readFile } = await import("node:fs/promises"), taken = [];
        const fetch = (url) => (taken.push(url.pathname.split("/").pop()), readFile(url));
        const plain = await Device.create(), device = Object.create(plain, { features: { value: ["simd128"] } });
        const x = Float32Array.from({ length: 4096 }, (_, i) => Math.sin(i));
        const a = (await load({ fetch }))(x, x), b = (await load({ fetch, device }))(x, x);
        return [taken, Math.max(...a.map((v, i) => Math.abs(v - b[i]))), plain.features];
    """,
        'load } from "./dot.js"; import { Device',
    )
    assert got[0] == ["dot.relaxed.wasm" if "relaxed-simd" in got[2] else "dot.wasm", "dot.wasm"] and got[1] < 1e-4
    export.web(lambda a: a + 1, spec(3), path=tmp_path, name="dot")  # what the earlier export left goes away
    assert not (tmp_path / "dot.relaxed.wasm").exists()


def test_an_exported_program_and_one_with_64_bits(tmp_path):
    exported = export.export(weft.jit(lambda x: jnp.cumsum(x)))(spec(3, dtype="float64"))
    with weft.enable_x64(False):
        export.web(exported, path=tmp_path, name="total")
    assert node(tmp_path, "total", "return f(Float64Array.of(0.1, 0.2, 0.3));") == {
        "Float64Array": np.cumsum([0.1, 0.2, 0.3]).tolist()
    }


def test_static_arguments(tmp_path):
    @functools.partial(weft.jit, static_argnums=0)
    def power(n, base, x):
        return base + x**n

    export.web(power, 3, spec(), spec(2), path=tmp_path)
    assert "base: number,\n" in (tmp_path / "power.d.ts").read_text()
    assert node(tmp_path, "power", "return f(1, Float32Array.of(2, 3));") == {"Float32Array": [9, 28]}


def printing(x):
    weft.debug.print("{x}", x=x)
    return x


def calling(x):
    return weft.pure_callback(np.sin, spec(3), x)


@pytest.mark.parametrize(
    "fun, args, error, told",
    [
        (printing, (spec(3),), NotPortable, r"printing can't be exported: debug_callback.*test_pages.py"),
        (lambda x: weft.lax.fori_loop(0, 3, lambda i, c: printing(c), x), (spec(3),), NotPortable, r"test_pages.py"),
        (calling, (spec(3),), NotPortable, r"pure_callback calls a Python function.*test_pages.py"),
        (
            lambda x: x,
            (weft.ShapeDtypeStruct(export.symbolic_shape("n, 2"), "float32"),),
            ValueError,
            r"symbolic sizes \(n\).*ShapeDtypeStructs with numbers",
        ),
        (lambda x: x[(1, 2)], ({(1, 2): spec(3)},), ValueError, r"the key \(1, 2\), which can't name a property"),
        (
            export.export(weft.jit(lambda x, *, scale: x * scale))(spec(3), scale=2.0),
            (),
            ValueError,
            "takes keyword arguments",
        ),
        (
            export.export(weft.jit(lambda x: x))(1.0),
            (spec(3),),
            ValueError,
            "is exported, so its arguments' types are known",
        ),
        (3, (), TypeError, "Expected a callable"),
        (lambda x: x, ("text",), TypeError, "str"),
    ],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_what_cant_be_exported(tmp_path, fun, args, error, told):
    with pytest.raises(error, match=f"(?s){told}"):
        export.web(fun, *args, path=tmp_path / "site")
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize("name", ["weft", "Weft", "a b", "../x", "", "1a", 3])
def test_names(tmp_path, name):
    with pytest.raises(ValueError, match="name must be an identifier of JavaScript"):
        export.web(lambda x: x, spec(3), path=tmp_path, name=name)
    export.web(lambda x: x, spec(3), path=tmp_path)
    assert (tmp_path / "program.wasm").exists()


def test_the_writer_refuses_calls_of_python(tmp_path):
    jaxpr = weft.make_jaxpr(calling)(np.ones(3, "float32")).jaxpr
    with pytest.raises(
        NotPortable, match=r"f calls Python \(pure_callback\), which a page without Python does not have"
    ):
        WasmBackend.write_page(
            str(tmp_path / "site"), (jaxpr, []), None, (False,), {"name": "f", "inputs": [], "outputs": []}, [], {}
        )
    assert not (tmp_path / "site").exists()
