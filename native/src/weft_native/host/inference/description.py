"""What a host says of its programs: their signatures, and OpenAPI."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft.base.tree import PyTreeDef

from .repository import Published
from .values import Leaf

NPZ = "application/x-npz"
TIMEOUT = "Request-Timeout"


def described(program: Published) -> dict[str, Any]:
    """A program's signature as JSON."""
    leaf = lambda x: {"path": x.path, "dtype": x.dtype, "shape": list(x.shape)}
    return {
        "name": program.name,
        "version": program.version,
        "function": program.signature.name,
        "inputs": [leaf(x) for x in program.signature.inputs],
        "outputs": [leaf(x) for x in program.signature.outputs],
    }


def openapi(programs: Iterable[Published], version: str) -> dict[str, Any]:
    """The OpenAPI document of all programs, in their newest versions."""
    newest = {p.name: p for p in programs}
    paths: dict[str, Any] = {
        "/v1/programs": {
            "get": {"summary": "The programs of this host", "responses": {"200": {"description": "their signatures"}}}
        }
    }
    for name, program in newest.items():
        paths[f"/v1/programs/{name}"] = {
            "get": {"summary": f"The signature of {name}", "responses": {"200": {"description": "the signature"}}},
            "post": _operation(program),
        }
    return {
        "openapi": "3.1.0",
        "info": {"title": "weft-host", "version": version},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
        "paths": paths,
    }


def _operation(program: Published) -> dict[str, Any]:
    signature = program.signature
    inputs = iter(signature.inputs)
    arguments, keywords = _schema(signature.arguments, inputs), _schema(signature.keywords, inputs)
    body: dict[str, Any] = {"type": "object", "additionalProperties": False, "properties": {}, "required": []}
    for name, tree, schema in (("args", signature.arguments, arguments), ("kwargs", signature.keywords, keywords)):
        if tree.nodes:
            body["properties"][name] = schema
            body["required"].append(name)
    result = {"type": "object", "properties": {"result": _schema(signature.result, iter(signature.outputs))}}
    files = {"schema": {"type": "string", "contentMediaType": NPZ}}
    failed = {"application/json": {"schema": {"type": "object", "properties": {"error": {"type": "string"}}}}}
    return {
        "summary": f"Runs {program.name}, version {program.version}",
        "operationId": program.name,
        "parameters": [
            {
                "name": TIMEOUT,
                "in": "header",
                "description": "seconds after which nobody waits for the result any more",
                "schema": {"type": "number", "exclusiveMinimum": 0},
            }
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}, NPZ: files}},
        "responses": {
            "200": {"description": "the result", "content": {"application/json": {"schema": result}, NPZ: files}},
            "default": {"description": "why there is none", "content": failed},
        },
    }


def _schema(tree: PyTreeDef, leaves: Any) -> dict[str, Any]:
    if tree.num_leaves == 1 and not tree.nodes:
        return _array(next(leaves))
    if tree.node is None:
        return {"type": "null"}
    parts = [_schema(node, leaves) for node in tree.nodes]
    if tree.node is dict:
        keys = [str(k) for k in tree.aux]
        return {"type": "object", "properties": dict(zip(keys, parts)), "required": keys, "additionalProperties": False}
    return {"type": "array", "prefixItems": parts, "minItems": len(parts), "maxItems": len(parts)}


def _array(leaf: Leaf) -> dict[str, Any]:
    kind = leaf.dtype.rstrip("0123456789")
    item: dict[str, Any] = {"type": "boolean" if kind == "bool" else "integer" if kind in ("int", "uint") else "number"}
    if item["type"] == "number":
        item = {"anyOf": [item, {"enum": ["NaN", "Infinity", "-Infinity"]}]}
    shape: tuple[int | str, ...] = (*leaf.shape, 2) if kind == "complex" else leaf.shape
    for n in reversed(shape):
        item = {"type": "array", "items": item, **({"minItems": n, "maxItems": n} if isinstance(n, int) else {})}
    return {**item, "description": str(leaf)}
