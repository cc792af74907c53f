"""Programs for pages without Python: the files that `weft.export.web` writes into a folder.

`name.wasm` is the module, with its metadata and constants in custom sections; `name.relaxed.wasm` the same for engines
with relaxed SIMD, where that differs; `name.bin` the arrays that the function closes over; `name.webgpu.weft` the
program for WebGPU; `name.js` and `name.d.ts` what a page imports; `weft.js`, or `weft-gpu.js` for programs with a
WebGPU form, what runs all programs of a folder. These are made of wasm/runtime by `make web`.
"""

from __future__ import annotations

import hashlib
import json
import re
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, Sequence

from weft.core.jaxpr import Jaxpr
from weft.serialization.portable import NotPortable

from weft_wasm.artifact import Artifact
from weft_wasm.compile import compile_program
from weft_wasm.binary.encode import custom_section
from weft_wasm.lower.program import lower
from weft_wasm.page.types import declarations

BASELINE = frozenset(("simd128",))
RELAXED = BASELINE | {"relaxed-simd"}
SHARED = ("weft.js", "weft.d.ts", "weft-page.js")
SHARED_GPU = ("weft-gpu.js", "weft-gpu.d.ts", "weft.d.ts", "weft-page.js")  # weft-gpu.js has all of weft.js
# the files that the signature and the runtime name, by their endings
ENDINGS = {
    "wasm": "wasm",
    "relaxed": "relaxed.wasm",
    "data": "bin",
    "webgpu": "webgpu.weft",
    "webgpuData": "webgpu.bin",
    "host": "weft",
}


def write_page(
    folder: str,
    wasm: tuple[Jaxpr, Sequence[bytes]] | None,
    webgpu: tuple[Artifact, Sequence[bytes]] | str | None,
    donated: Sequence[bool],
    signature: dict[str, Any],
    notes: Sequence[str],
    page: dict[str, Any],
    host: bytes | None = None,
) -> list[Path]:
    """Compiles a program, and writes all files into a folder, which is made if need be; returns their paths.

    wasm: a jaxpr, and the values of its leading arguments; None to leave WebAssembly out. webgpu: the same of a program
        that is compiled, or why it can't be; None to leave WebGPU out.
    donated: of the other arguments. signature: "name", "args", "result", "inputs", "outputs" as page/weft.d.ts says.
    notes: what the declarations say of each input and output. page: "title", "description" and "remarks" of the page.
    host: the program for accelerator hosts.
    """
    name = signature["name"]
    artifacts: dict[str, Artifact] = {}
    arrays: dict[str, Sequence[bytes]] = {}
    if wasm is not None:
        jaxpr, arrays["data"] = wasm
        kept = (False,) * len(arrays["data"]) + tuple(donated)
        artifacts["wasm"], relaxed = [_compile(jaxpr, name, kept, features) for features in (BASELINE, RELAXED)]
        if (relaxed.code, relaxed.constants) != (artifacts["wasm"].code, artifacts["wasm"].constants):
            artifacts["relaxed"] = relaxed
    if isinstance(webgpu, tuple):
        artifacts["webgpu"], arrays["webgpuData"] = webgpu
        _refuse_calls(name, artifacts["webgpu"].metadata.get("calls", ()))
    data = {key: joined for key, values in arrays.items() if (joined := b"".join(values))}
    digest = hashlib.blake2b(
        b"".join([*[a.to_bytes() for a in artifacts.values()], *data.values(), json.dumps(signature).encode()]),
        digest_size=8,
    ).hexdigest()
    contents = data | {k: a.to_bytes() if k == "webgpu" else module(a, digest) for k, a in artifacts.items()}
    if host is not None:
        contents["host"] = host
    places = {key: f"{name}.{ENDINGS[key]}" for key in ENDINGS if key in contents}
    if data.get("data") == data.get("webgpuData") and data:
        places["webgpuData"] = places["data"]
    made = {places[key]: contents[key] for key in places}
    sizes = {key: [len(x) for x in values] for key, values in arrays.items()}
    signature = {
        "name": name,
        "id": digest,
        **signature,
        "donated": [i for i, d in enumerate(donated) if d],
        "constants": sizes.get("data", []),
        **({"webgpu": {"refused": webgpu}} if isinstance(webgpu, str) else {}),
        **({"webgpu": {"constants": sizes["webgpuData"]}} if "webgpu" in artifacts else {}),
        "sha256": {key: hashlib.sha256(contents[key]).hexdigest() for key in places},
    }
    both = webgpu is not None
    texts = {
        f"{name}.js": _SCRIPT.format(
            name=name,
            signature=_literal(signature),
            files="".join(f'  {k}: new URL("./{v}", import.meta.url),\n' for k, v in places.items()),
            runtime="weft-gpu" if both else "weft",
            load="loadAsync" if both else "load",
        ),
        f"{name}.d.ts": declarations(signature, notes),
        f"{name}.html": _page(name, page),
        **{shared: _own(shared) for shared in (SHARED_GPU if both else SHARED)},
    }
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    if not (target / "package.json").exists():  # Node and bundlers check the format of .js files
        texts["package.json"] = '{ "type": "module" }\n'
    for ending in ENDINGS.values():
        (target / f"{name}.{ending}").unlink(missing_ok=True)
    made |= {file: text.encode() for file, text in texts.items()}
    for file, content in made.items():
        (target / file).write_bytes(content)
    return [target / file for file in sorted(made)]


def _compile(jaxpr: Jaxpr, name: str, donated: Sequence[bool], features: frozenset[str]) -> Artifact:
    program, _ = lower(jaxpr, name, donated, features)
    _refuse_calls(name, sorted({c.name for c in program.calls}))
    return compile_program(program, features)


def _refuse_calls(name: str, calls: Sequence[Any]) -> None:
    if calls:
        raise NotPortable(
            f"{name} calls Python ({', '.join(map(str, calls))}), which a page without Python does not have; leave the"
            " calls out of the exported function."
        )


def module(artifact: Artifact, digest: str) -> bytes:
    """The artifact as one module: its metadata and constants are custom sections."""
    meta = json.dumps({**artifact.metadata, "id": digest}, separators=(",", ":")).encode()
    return (
        artifact.code
        + custom_section("weft.metadata", meta)
        + (custom_section("weft.constants", artifact.constants) if artifact.constants else b"")
    )


def _page(name: str, page: dict[str, Any]) -> str:
    """The page to try the program."""
    data = json.dumps({"name": name, "remarks": page["remarks"]}).replace("<", "\\u003c")
    about = f"<p>{escape(page['description'])}</p>" if page["description"] else ""
    parts = {"TITLE": escape(page["title"]), "DESCRIPTION": about, "NAME": name, "DATA": data}
    return re.sub("|".join(parts), lambda match: parts[match[0]], _own("demo.html"))


def _own(file: str) -> str:
    return (files("weft_wasm.page") / file).read_text(encoding="utf-8")


def _literal(signature: dict[str, Any]) -> str:
    """The signature as JavaScript, a line for each entry."""
    return "{\n" + "".join(f"  {key}: {json.dumps(value)},\n" for key, value in signature.items()) + "}"


_SCRIPT = """// Written by weft.export.web. {name}.d.ts has the types, {runtime}.js runs the program.
import {{ {load} as loadProgram }} from "./{runtime}.js";

export {{ Device }} from "./{runtime}.js";

export const signature = {signature};

export const files = {{
{files}}};

/** Fetches and compiles the program: `const {name} = await load();` */
export const load = (options) => loadProgram(signature, files, options);
export default load;
"""
