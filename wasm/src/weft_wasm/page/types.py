"""The .d.ts of an exported program."""

from __future__ import annotations

import json
from typing import Any, Sequence

Tree = Any  # a number of an input or output, None, or a list or dict of trees

# dtype -> the typed array of its elements, and the type of an array without axes
ARRAYS = {
    "bool": ("Uint8Array", "boolean"),
    "int8": ("Int8Array", "number"),
    "uint8": ("Uint8Array", "number"),
    "int16": ("Int16Array", "number"),
    "uint16": ("Uint16Array", "number"),
    "int32": ("Int32Array", "number"),
    "uint32": ("Uint32Array", "number"),
    "int64": ("BigInt64Array", "bigint"),
    "uint64": ("BigUint64Array", "bigint"),
    "float32": ("Float32Array", "number"),
    "float64": ("Float64Array", "number"),
    "complex64": ("Float32Array", "Float32Array"),
    "complex128": ("Float64Array", "Float64Array"),
}


def declarations(signature: dict[str, Any], notes: Sequence[str]) -> str:
    """The text; notes: a remark on each input, then on each output."""
    inputs, outputs, count = signature["inputs"], signature["outputs"], len(signature["inputs"])
    args = "".join(
        f"{_comment(a['tree'], notes)}  {a['name']}: {_type(a['tree'], inputs, notes, 1)},\n" for a in signature["args"]
    )
    result = _type(signature["result"], outputs, notes[count:], 0)
    waits = "webgpu" in signature
    return _TEXT.format(
        name=signature["name"],
        options="AsyncLoadOptions" if waits else "LoadOptions",
        program="AsyncProgram" if waits else "Program",
        runtime="weft-gpu" if waits else "weft",
        args=args,
        result=_comment(signature["result"], notes[count:], "") + f"export type Result = {result};",
    )


def _comment(tree: Tree, notes: Sequence[str], indent: str = "  ") -> str:
    return f"{indent}/** {notes[tree]} */\n" if type(tree) is int else ""


def _type(tree: Tree, specs: Sequence[dict[str, Any]], notes: Sequence[str], depth: int) -> str:
    if tree is None:
        return "null"
    if type(tree) is int:
        return ARRAYS[specs[tree]["dtype"]][0 if specs[tree]["shape"] else 1]
    pad, outer = "  " * (depth + 1), "  " * depth
    items = list(tree.items()) if isinstance(tree, dict) else [("", t) for t in tree]
    if not items:
        return "Record<string, never>" if isinstance(tree, dict) else "[]"
    named = lambda k: json.dumps(k) + ": " if k != "" or isinstance(tree, dict) else ""
    rows = [f"{_comment(t, notes, pad)}{pad}{named(k)}{_type(t, specs, notes, depth + 1)}" for k, t in items]
    if isinstance(tree, dict):
        return "{\n" + "".join(f"{row};\n" for row in rows) + outer + "}"
    return "[\n" + "".join(f"{row},\n" for row in rows) + outer + "]"


_TEXT = """// Written by weft.export.web. Typed arrays hold the elements of an array in row-major order.
import type {{ {program}, Files, {options}, Signature }} from "./{runtime}.js";

export {{ Device }} from "./{runtime}.js";

export type Arguments = [
{args}];

{result}

export const signature: Signature;

/** The program's files, for a runtime that is not the one beside them: `load` of "@weft/runtime/exported". */
export const files: Files;

/** Fetches and compiles the program: `const {name} = await load();` */
export function load(options?: {options}): Promise<{program}<Arguments, Result>>;
export default load;
"""
