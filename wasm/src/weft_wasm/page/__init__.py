"""Programs for pages without Python: the files that `weft.export.web` writes into a folder.

`name.wasm` is the module, with its metadata and constants in custom sections; `name.relaxed.wasm` the same for engines
with relaxed SIMD, where that differs; `name.bin` the arrays that the function closes over; `name.js` and `name.d.ts`
what a page imports; `weft.js`, made of wasm/runtime by `npm run build -w @weft/runtime`, what runs all programs of a
folder.
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


def write_page(
    folder: str,
    jaxpr: Jaxpr,
    constants: Sequence[bytes],
    donated: Sequence[bool],
    signature: dict[str, Any],
    notes: Sequence[str],
    page: dict[str, Any],
) -> list[Path]:
    """Compiles a program, and writes all files into a folder, which is made if need be; returns their paths.

    constants: the values of the jaxpr's leading arguments. donated: of the others. signature: "name", "args", "result",
        "inputs", "outputs" as page/weft.d.ts says.
    notes: what the declarations say of each input and output. page: "title", "description" and "remarks" of the page.
    """
    artifacts = [
        _compile(jaxpr, signature["name"], (False,) * len(constants) + tuple(donated), f) for f in (BASELINE, RELAXED)
    ]
    if artifacts[0].code == artifacts[1].code and artifacts[0].constants == artifacts[1].constants:
        artifacts.pop()
    name, data = signature["name"], b"".join(constants)
    digest = hashlib.blake2b(
        b"".join([*[a.to_bytes() for a in artifacts], data, json.dumps(signature).encode()]), digest_size=8
    ).hexdigest()
    signature = {
        "name": name,
        "id": digest,
        **signature,
        "donated": [i for i, d in enumerate(donated) if d],
        "constants": [len(c) for c in constants],
    }
    made = {f"{name}{kind}.wasm": module(a, digest) for kind, a in zip(("", ".relaxed"), artifacts)}
    places = {"wasm": f"{name}.wasm"} | ({"relaxed": f"{name}.relaxed.wasm"} if len(artifacts) > 1 else {})
    if data:
        made[f"{name}.bin"], places["data"] = data, f"{name}.bin"
    signature["sha256"] = {k: hashlib.sha256(made[file]).hexdigest() for k, file in places.items()}
    texts = {}
    texts[f"{name}.js"] = _SCRIPT.format(
        name=name,
        signature=_literal(signature),
        files="".join(f'  {k}: new URL("./{v}", import.meta.url),\n' for k, v in places.items()),
    )
    texts[f"{name}.d.ts"] = declarations(signature, notes)
    texts[f"{name}.html"] = _page(name, page)
    texts |= {shared: _own(shared) for shared in SHARED}
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    if not (target / "package.json").exists():  # Node and bundlers check the format of .js files
        texts["package.json"] = '{ "type": "module" }\n'
    for stale in (f"{name}.relaxed.wasm", f"{name}.bin"):
        (target / stale).unlink(missing_ok=True)
    made |= {file: text.encode() for file, text in texts.items()}
    for file, content in made.items():
        (target / file).write_bytes(content)
    return [target / file for file in sorted(made)]


def _compile(jaxpr: Jaxpr, name: str, donated: Sequence[bool], features: frozenset[str]) -> Artifact:
    program, _ = lower(jaxpr, name, donated, features)
    if program.calls:
        raise NotPortable(
            f"{name} calls Python ({', '.join(sorted({c.name for c in program.calls}))}), which a page without Python"
            f" does not have; leave the calls out of the exported function."
        )
    return compile_program(program, features)


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


_SCRIPT = """// Written by weft.export.web. {name}.d.ts has the types, weft.js runs the program.
import {{ load as loadProgram }} from "./weft.js";

export {{ Device }} from "./weft.js";

export const signature = {signature};

export const files = {{
{files}}};

/** Fetches and compiles the program: `const {name} = await load();` */
export const load = (options) => loadProgram(signature, files, options);
export default load;
"""
