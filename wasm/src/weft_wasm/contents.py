"""The permitted contents of an artifact (docs/artifact.md): its metadata, its module or plan, and that these agree. The
page's runtime has the same rules (`contents.ts`).
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from weft_wasm.ir.attributes import LABELS
from weft_wasm.ir.checks import NAME, NONE, TEXT, Check, brief, either, ints, several, words
from weft_wasm.ir.nodes import ITEMSIZE
from weft_wasm.binary.decode import ModuleError, parts

ABI_VERSION = 1
KINDS = ("wasm", "webgpu")
WORD = 4  # bytes, of which buffers of a WebGPU device have a multiple
MOST_ARRAYS = 1 << 16  # inputs, or outputs
MOST_STEPS = 1 << 20  # of a plan
MOST_NESTING = 128  # of its steps
MOST_COUNTED = 1 << 24  # iterations of a loop whose counter is asked for: they are written down before it runs
LARGEST = 1 << 53  # integers that JavaScript distinguishes from the next ones
SIZE, COUNT = ints(range(LARGEST)), ints(range(MOST_ARRAYS))
ROOM = {False: 1 << 32, True: 1 << 34}  # bytes of a memory, by whether its addresses have 64 bits

_SPEC = {"dtype": words(LABELS), "shape": several(list, SIZE, 64), "bytes": SIZE}
_ARRAYS = Check(lambda x: type(x) is list and len(x) <= MOST_ARRAYS, f"a list of at most {MOST_ARRAYS}")
_METADATA = {
    "abi": ints((ABI_VERSION,)),
    "kind": words(KINDS),
    "name": NAME,
    "inputs": _ARRAYS,
    "outputs": _ARRAYS,
    "scratch": SIZE,
    "features": several(list, NAME, 100),
    "errors": Check(lambda x: type(x) is dict, "an object"),
}
_OPTIONAL = {"calls": several(list, COUNT, MOST_ARRAYS), "id": NAME}
_OPTIONAL_WASM = {"memory": SIZE, "tasks": Check(lambda x: type(x) is dict, "an object")}
_ALIAS = either([NONE, COUNT])
_STEPS: dict[str, dict[str, Check]] = {
    "dispatch": {"kernel": COUNT, "bind": several(list, COUNT, 100), "groups": several(list, ints(range(1 << 32)), 3)},
    "copy": {"src": COUNT, "dst": COUNT, "bytes": SIZE},
    "loop": {"count": ints(range(1 << 31)), "body": _ARRAYS, "counter": either([NONE, COUNT])},
    "while": {"cond": _ARRAYS, "flag": COUNT, "body": _ARRAYS},
    "switch": {"index": COUNT, "branches": several(list, _ARRAYS, MOST_ARRAYS)},
    "call": {"number": COUNT, "arguments": _ARRAYS, "results": _ARRAYS},
}
_BINDING = re.compile(r"@binding\([ \t\n]*[0-9]+[ \t\n]*\)")
_BOOL = Check(lambda x: type(x) is bool, "true or false")
_OPTIONAL_OF_STEPS = {
    "copy": {"srcOffset": SIZE, "dstOffset": SIZE},
    "while": {"gated": _BOOL},
    "switch": {"gated": _BOOL},
}


_NOT_GATED = "is gated, and has a step that copies, or waits for a value"


def _launchable(steps: list[Any]) -> bool:
    """Whether steps are kernels alone, which can test for themselves whether they shall run."""
    return all(
        _launchable(s["body"]) if s["op"] == "loop" else s["op"] == "dispatch" or s.get("gated") and s["op"] == "switch"
        for s in steps
    )


def _waits(steps: list[Any]) -> bool:
    """Whether running these steps requires that a value is read back first."""
    return any(
        _waits(s["body"])
        if s["op"] == "loop"
        else s["op"] in ("while", "call") or s["op"] == "switch" and not s.get("gated")
        for s in steps
    )


class ArtifactError(ValueError):
    """The bytes are not a weft artifact of a version that this runtime knows, or are damaged. Compile the program again
    with this version of weft.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft_wasm.artifact import Artifact
        >>> Artifact.from_bytes(b"something else")  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft_wasm.contents.ArtifactError: not a weft artifact of version 2: …
        >>> compiled = weft.jit(jnp.sin, backend="wasm").lower(jnp.ones(3)).compile()
        >>> Artifact.from_bytes(compiled.executable.as_bytes()).name
        'sin'
    """


def abi_of(metadata: dict[str, Any], constants: int) -> dict[str, Any]:
    """The module's own description of its arguments and results, so that it is not run with the metadata of another
    module.
    """
    return {
        "inputs": [spec["bytes"] for spec in metadata["inputs"]],
        "outputs": [[spec["bytes"], spec["alias"]] for spec in metadata["outputs"]],
        "scratch": metadata["scratch"],
        "private": metadata["tasks"]["private"] if "tasks" in metadata else 0,
        "calls": metadata.get("calls", []),
        "constants": constants,
    }


def check_contents(metadata: Any, code: bytes, constants: bytes) -> None:
    """Raises ArtifactError, which names the place, if the parts of an artifact have contents that are not permitted."""
    _Contents(metadata, code, constants).run()


class _Contents:
    def __init__(self, metadata: Any, code: bytes, constants: bytes):
        self.metadata, self.code, self.constants = metadata, code, constants

    def fail(self, message: str) -> NoReturn:
        name = self.metadata.get("name") if isinstance(self.metadata, dict) else None
        raise ArtifactError(
            f"artifact {name if NAME.holds(name) else '(without a name)'}: {message}. Compile the program again"
        )

    def fields(self, x: Any, place: str, required: dict[str, Check], optional: dict[str, Check]) -> None:
        """Checks an object: its required and its optional members; others are refused."""
        if type(x) is not dict:
            self.fail(f"{place or 'the metadata'} must be an object; got {brief(x)}")
        within = f"{place}." if place else ""
        for key, check in required.items():
            if key not in x:
                self.fail(f"{within}{key} is missing")
            if not check.holds(x[key]):
                self.fail(f"{within}{key} must be {check.wanted}; got {brief(x[key])}")
        for key, value in x.items():
            if key in required:
                continue
            if key not in optional:
                self.fail(f"{place or 'the metadata'} has {brief(key)}, which is not a known member")
            if not optional[key].holds(value):
                self.fail(f"{within}{key} must be {optional[key].wanted}; got {brief(value)}")

    def run(self) -> None:
        m = self.metadata
        if type(m) is dict and m.get("abi") != ABI_VERSION:
            self.fail(f"abi must be {ABI_VERSION}, which this runtime has; got {brief(m.get('abi'))}")
        wasm = type(m) is dict and m.get("kind") == "wasm"
        self.fields(m, "", _METADATA, _OPTIONAL | _OPTIONAL_WASM if wasm else _OPTIONAL)
        for key, text in m["errors"].items():
            if not (key.isascii() and key.isdigit() and len(key) < 11 and TEXT.holds(text)):
                self.fail(f"errors must have texts by numbers; got {brief(key)}: {brief(text)}")
        room = ROOM["memory64" in m["features"]] if wasm else LARGEST
        for group in ("inputs", "outputs"):
            for k, spec in enumerate(m[group]):
                self.array(spec, f"{group}[{k}]", wasm, room)
        if m["scratch"] > room:
            self.fail(f"scratch must be at most {room}, the size of a memory; got {m['scratch']}")
        self.aliases(wasm)
        if wasm:
            self.module()
        else:
            self.plan()

    def array(self, spec: Any, place: str, wasm: bool, room: int) -> None:
        self.fields(spec, place, _SPEC | ({"alias": _ALIAS} if place[0] == "o" else {}), {})
        dtype, shape = spec["dtype"], spec["shape"]
        if dtype in ("c64", "c128") and shape[-1:] != [2]:
            self.fail(f"{place}.shape of {dtype} must end with 2; got {shape}")
        bytes = math.prod(shape) * ITEMSIZE[LABELS[dtype]]
        if not wasm:
            bytes = -(-bytes // WORD) * WORD
        if spec["bytes"] != bytes:
            self.fail(f"{place}.bytes must be {bytes} for {dtype}{shape}; got {spec['bytes']}")
        if spec["bytes"] > room:
            self.fail(f"{place}.bytes must be at most {room}, the size of a memory; got {spec['bytes']}")

    def aliases(self, wasm: bool) -> None:
        inputs, taken = self.metadata["inputs"], dict[int, int]()
        for k, spec in enumerate(self.metadata["outputs"]):
            alias = spec["alias"]
            if alias is None:
                continue
            if not wasm or alias >= len(inputs):
                self.fail(
                    f"outputs[{k}].alias names input {alias}, which does not exist"
                    if wasm
                    else f"outputs[{k}].alias must be null in a plan; got {alias}"
                )
            if inputs[alias]["bytes"] != spec["bytes"]:
                self.fail(
                    f"outputs[{k}].alias names input {alias}, which has {inputs[alias]['bytes']} bytes, not"
                    f" {spec['bytes']}"
                )
            if alias in taken:
                self.fail(f"outputs[{taken[alias]}] and outputs[{k}] both have alias {alias}")
            taken[alias] = k

    def module(self) -> None:
        """The module matches the metadata, and asks nothing else of its host."""
        m = self.metadata
        tasks = m.get("tasks", {"count": 0, "private": 0})
        self.fields(tasks, "tasks", {"count": COUNT, "private": ints(range(ROOM[True]))}, {})
        try:
            found = parts(self.code)
        except ModuleError as e:
            self.fail(f"its code is not a module of this ABI: {e}")
        wide = "memory64" in m["features"]
        if found.wide != wide:
            self.fail(
                f"features says addresses have {64 if wide else 32} bits; those of its module have"
                f" {64 if found.wide else 32}"
            )
        if m.get("memory", found.memory) != found.memory:
            self.fail(
                f"memory must be {found.memory}, the byte of the module that says what its memory is; got {m['memory']}"
            )
        if ("call" in found.imports) != bool(m.get("calls")):
            self.fail("calls and the module's import of call must both be there, or neither")
        if tasks["count"] != found.tasks:
            self.fail(f"tasks.count must be {found.tasks}, as many as the module exports; got {tasks['count']}")
        try:
            said = json_of(found.abi or b"")
        except ValueError:
            said = None
        if type(said) is not dict:
            self.fail("its code does not say what it takes and gives, in a section weft.abi")
        for key, own in abi_of(m, len(self.constants)).items():
            if said.get(key) != own:
                self.fail(
                    f"{key} must be {json.dumps(said.get(key))[:200]}, as its code says; got {json.dumps(own)[:200]}"
                )

    # ---- plans

    def plan(self) -> None:
        try:
            plan = json_of(self.code)
        except ValueError as e:
            self.fail(f"its plan is not JSON: {e}")
        self.fields(plan, "plan", dict.fromkeys(("kernels", "buffers", "steps"), _ARRAYS), {})
        for k, kernel in enumerate(plan["kernels"]):
            self.fields(kernel, f"kernels[{k}]", {"wgsl": TEXT, "entry": NAME}, {})
        made: set[tuple[str, int]] = set()
        for k, buffer in enumerate(plan["buffers"]):
            self.buffer(buffer, f"buffers[{k}]", made)
        for role in ("input", "output"):
            count = sum(which == role for which, _ in made)
            if count != len(self.metadata[f"{role}s"]):
                self.fail(f"its plan has {count} of {len(self.metadata[f'{role}s'])} {role}s")
        temps = sum(b["bytes"] for b in plan["buffers"] if b["role"] == "temp")
        if temps != self.metadata["scratch"]:
            self.fail(f"scratch must be {temps}, the bytes of its plan's temps; got {self.metadata['scratch']}")
        self.left, self.sizes = MOST_STEPS, [b["bytes"] for b in plan["buffers"]]
        self.bindings = [len(_BINDING.findall(kernel["wgsl"])) for kernel in plan["kernels"]]
        self.steps(plan["steps"], "steps", 0)

    def buffer(self, buffer: Any, place: str, made: set[tuple[str, int]]) -> None:
        self.fields(
            buffer,
            place,
            {"bytes": SIZE, "role": words(("input", "output", "temp", "constant")), "index": COUNT},
            {"offset": SIZE},
        )
        role, index, size = buffer["role"], buffer["index"], buffer["bytes"]
        if role in ("input", "output"):
            specs = self.metadata[f"{role}s"]
            if index >= len(specs) or specs[index]["bytes"] != size:
                self.fail(f"{place} is {role} {index} of {size} bytes, which the metadata doesn't have")
            if (role, index) in made:
                self.fail(f"{place} is {role} {index}, which another buffer is")
            made.add((role, index))
        if role == "constant" and (
            "offset" not in buffer or buffer["offset"] % WORD or buffer["offset"] + size > len(self.constants)
        ):
            self.fail(
                f"{place} must lie in the {len(self.constants)} bytes of constants; got {size} at"
                f" {brief(buffer.get('offset'))}"
            )

    def number(self, k: int, place: str) -> None:
        if k >= len(self.sizes):
            self.fail(f"{place} names buffer {k} of {len(self.sizes)}")

    def steps(self, steps: list[Any], place: str, depth: int) -> None:
        if depth > MOST_NESTING:
            self.fail(f"steps of its plan nest more than {MOST_NESTING} deep")
        for k, step in enumerate(steps):
            self.left -= 1
            if self.left < 0:
                self.fail(f"its plan has more than {MOST_STEPS} steps")
            self.step(step, f"{place}[{k}]", depth)

    def step(self, step: Any, at: str, depth: int) -> None:
        op = step.get("op") if type(step) is dict else None
        if not isinstance(op, str) or op not in _STEPS:
            self.fail(f"{at}.op must be one of {', '.join(sorted(_STEPS))}; got {brief(op)}")
        self.fields(step, at, {"op": TEXT, **_STEPS[op]}, _OPTIONAL_OF_STEPS.get(op, {}))
        match op:
            case "dispatch":
                if step["kernel"] >= len(self.bindings):
                    self.fail(f"{at}.kernel names kernel {step['kernel']} of {len(self.bindings)}")
                for j, b in enumerate(step["bind"]):
                    self.number(b, f"{at}.bind[{j}]")
                if len(step["bind"]) != self.bindings[step["kernel"]] or len({*step["bind"]}) != len(step["bind"]):
                    self.fail(
                        f"{at}.bind must be {self.bindings[step['kernel']]} buffers, each another, as kernel"
                        f" {step['kernel']} has bindings; got {len(step['bind'])}"
                    )
                if len(step["groups"]) != 3:
                    self.fail(f"{at}.groups must be three numbers; got {len(step['groups'])}")
            case "copy":
                self.number(step["src"], f"{at}.src")
                self.number(step["dst"], f"{at}.dst")
                if step["src"] == step["dst"]:
                    self.fail(f"{at} copies within buffer {step['src']}, which a device can't")
                for name in ("src", "dst"):
                    offset = step.get(f"{name}Offset", 0)
                    if offset % WORD or step["bytes"] % WORD or offset + step["bytes"] > self.sizes[step[name]]:
                        self.fail(
                            f"{at} copies {step['bytes']} bytes at {offset} of buffer {step[name]}, which has"
                            f" {self.sizes[step[name]]}"
                        )
            case "loop":
                if step["counter"] is not None:
                    self.word(step["counter"], f"{at}.counter")
                    if step["count"] > MOST_COUNTED:
                        self.fail(
                            f"{at}.count must be at most {MOST_COUNTED} where a counter is asked for; got"
                            f" {step['count']}"
                        )
                self.steps(step["body"], f"{at}.body", depth + 1)
            case "while":
                self.word(step["flag"], f"{at}.flag")
                self.steps(step["cond"], f"{at}.cond", depth + 1)
                self.steps(step["body"], f"{at}.body", depth + 1)
                if step.get("gated") and (_waits(step["cond"]) or not _launchable(step["body"])):
                    self.fail(f"{at} {_NOT_GATED}")
            case "switch":
                self.word(step["index"], f"{at}.index")
                if not step["branches"]:
                    self.fail(f"{at}.branches must have one")
                for j, branch in enumerate(step["branches"]):
                    self.steps(branch, f"{at}.branches[{j}]", depth + 1)
                if step.get("gated") and not all(map(_launchable, step["branches"])):
                    self.fail(f"{at} {_NOT_GATED}")
            case "call":
                calls = self.metadata.get("calls", [])
                if (
                    step["number"] >= len(calls)
                    or len(step["arguments"]) + len(step["results"]) != calls[step["number"]]
                ):
                    self.fail(
                        f"{at} calls function {step['number']} with {len(step['arguments']) + len(step['results'])}"
                        " arrays, which the metadata doesn't have"
                    )
                for group in ("arguments", "results"):
                    for j, place in enumerate(step[group]):
                        self.place(place, f"{at}.{group}[{j}]")

    def word(self, k: int, place: str) -> None:
        self.number(k, place)
        if self.sizes[k] < WORD:
            self.fail(f"{place} names buffer {k}, which holds no number")

    def place(self, place: Any, at: str) -> None:
        self.fields(place, at, {"buffer": COUNT, "offset": SIZE, "bytes": SIZE}, {})
        self.number(place["buffer"], f"{at}.buffer")
        size = self.sizes[place["buffer"]]
        if place["offset"] % WORD or place["bytes"] % WORD or place["offset"] + place["bytes"] > size:
            self.fail(
                f"{at} is {place['bytes']} bytes at {place['offset']} of buffer {place['buffer']}, which has {size}"
            )


def json_of(data: bytes) -> Any:
    """Parses JSON as JavaScript does. Raises ValueError for other text."""

    def constant(word: str) -> NoReturn:
        raise ValueError(f"{word} is not a number of JSON")

    try:
        return json.loads(data.decode(), parse_constant=constant)
    except RecursionError:
        raise ValueError("it nests too deeply") from None


__all__ = ["ABI_VERSION", "ArtifactError", "abi_of", "check_contents", "json_of"]
