"""Programs for pages without Python: a folder with WebAssembly, WebGPU kernels, an ES module and its types."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from ..base import dtypes
from ..base.avals import AbstractValue, ShapeDtypeStruct, ShapedArray, physical
from ..base.config import enable_x64
from ..base.errors import BackendError, warn
from ..base.monitoring import record_event
from ..core.jaxpr import ClosedJaxpr, eval_jaxpr
from ..primitives.linear import convert
from ..runtime.device import backend_class
from ..runtime.dispatch import program_for
from ..runtime.jit import jit
from ..base.source_info import api_boundary
from ..base.tree import DictKey, GetAttrKey, PyTreeDef, keyed_children, tree_structure
from .artifact import CONVENTIONS, constant_bytes
from .exported import Exported, export_traced
from .remarks import Labels, Ranges, paths, remarks

if TYPE_CHECKING:
    from ..base.annotations import PyTree
    from ..core.types import Value

# The event of an export that has been written: "program", and the paths of its "files", one in each line.
WRITTEN = "/weft/export/web"

Target = Literal["wasm", "webgpu", "auto"]
TARGETS = get_args(Target)

_NAME = re.compile(r"[A-Za-z_$][\w$]*", re.ASCII)
_TYPED = (
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float32",
    "float64",
    "complex64",
    "complex128",
)


@api_boundary
def web(
    fun: Callable[..., Any] | Exported,
    /,
    *args: PyTree,
    path: str | os.PathLike[str],
    target: Target = "wasm",
    host: bool = False,
    name: str | None = None,
    title: str | None = None,
    description: str = "",
    about: Mapping[str, str] | None = None,
    labels: Labels | None = None,
    ranges: Ranges | None = None,
    forms: Mapping[str, str] | None = None,
) -> list[Path]:
    """Compiles a function to WebAssembly or WebGPU and writes all files that a page needs to call it without Python.

    The folder then holds `name.wasm` (and `name.relaxed.wasm` for engines with relaxed SIMD), `name.bin` with the
    arrays that the function closes over, the ES module `name.js` with its types `name.d.ts`, a page to try it,
    `name.html`, and `weft.js`, which all programs of a folder share. It depends on nothing outside. In JavaScript:

        import { load } from "./name.js";
        const f = await load();
        const y = f(x);             // typed arrays in and out; f.onDevice(x) leaves the results on the device, for
        loops

    With the target "auto", the folder also holds the program for WebGPU, `name.webgpu.weft`, and `weft-gpu.js` in place
    of `weft.js`. `load` takes WebGPU where the browser has an adapter for it and the device accepts the program, and
    WebAssembly elsewhere, also for the calls after a device is lost. `f.backend` is the one that runs ("webgpu" or
    "wasm") and `f.reason` says why. All calls then give promises, since a page can't wait for a GPU: `await f(x)`,
    which is right for every target.

    With `host`, the folder also holds `name.weft`, the program for accelerator hosts (`weft-host`). The npm package
    `@weft/runtime` runs it there, or in the page, whichever takes less time.

    Every argument is an input of the program. Arrays that `fun` closes over, also through `functools.partial`, are part
    of the export: `web(partial(predict, params), x, path=…)`. Dicts, named tuples and dataclasses become objects, lists
    and tuples become arrays, None becomes null, and arrays without axes become numbers (booleans, or bigints for 64
    bits). Complex arrays are interleaved. A dtype for which JavaScript has no typed array uses the nearest wider one:
    Float32Array for bfloat16, float16 and float8, Int8Array and Uint8Array for int4 and uint4 and narrower integers,
    Uint32Array for the words of a random key. Arguments that a jitted `fun` donates are consumed if they are on the
    device.

    The page `name.html` has a field for each input and draws the results. It chooses by shape and dtype, unless the
    options say otherwise. They name inputs and outputs by their paths, as JavaScript writes them: `"x"`, `"params.w"`,
    `"result"`, `"result.logits"`, `"result[0]"`.

    Args:
        fun: a function of pytrees of arrays, jitted or not, or an `Exported`.
        *args: arrays or `ShapeDtypeStruct`s; only their shapes and dtypes count. None for an `Exported`.
        path: the folder. It is made if need be; files of an earlier export of that name are replaced.
        target: "wasm"; "webgpu", which has nothing to fall back to; or "auto", for both. A program that can't be
            compiled for WebGPU (64-bit numbers) runs on WebAssembly for "auto", with a warning here.
        host: whether to write the program for accelerator hosts too.
        name: of the program and its files, an identifier of JavaScript; the function's name if None ("program" for a
            lambda).
        title: of the page; the program's name if None.
        description: a sentence or two below the title.
        about: what an input or output is, by path.
        labels: the names of classes, for outputs of scores (bars, the largest first) and for outputs of class numbers:
            a sequence for all outputs that it fits, or sequences by path. For an input or output of the form "text",
            the characters of its vocabulary.
        ranges: (low, high) or (low, high, step) by path: of a slider, of random numbers, and of the numbers that stand
            for black and white in a picture (0 and 1, or 0 and 255 for whole numbers, if left out).
        forms: "slider", "number" or "checkbox" for arrays without axes; "drawing", "image", "text" or "numbers" for
            others, by path. "text" is UTF-8 in whole numbers, filled up with zeros. "drawing" and "image" also suit
            square pictures in one axis.

    Returns:
        the paths of the files.

    Raises:
        NotPortable: for programs that call Python (callbacks, debug.print); the message has the line.
        ValueError: for symbolic shapes, for invalid names, and for options of the page that name no input or output,
            or do not suit it.
        BackendError: if the compiler (weft-wasm) is not installed; for the target "webgpu", if the program can't be
            compiled for it.

    Example:
        >>> import tempfile, weft, weft.numpy as jnp
        >>> from weft import export
        >>> def scale(x): return {"twice": 2 * x, "sum": x.sum()}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [p.name for p in export.web(scale, weft.ShapeDtypeStruct((3,), jnp.float32), path=folder)]
        ['package.json', 'scale.d.ts', 'scale.html', 'scale.js', 'scale.wasm', 'weft-page.js', 'weft.d.ts', 'weft.js']
    """
    if target not in TARGETS:
        raise ValueError(f"target must be one of {', '.join(map(repr, TARGETS))}; got {target!r}.")
    if isinstance(fun, Exported):
        if args:
            raise ValueError(
                f"{fun.fun_name} is exported, so its arguments' types are known; give web no arguments beside it."
            )
        exported, donated, fixed = fun, (False,) * len(fun.in_avals), None
    else:
        jitted: Any = fun if hasattr(fun, "trace") else jit(fun)
        traced = jitted.trace(*args)
        exported, donated, fixed = (
            export_traced(traced, ("wasm", "webgpu") if target == "auto" else (target,)),
            traced.donated,
            getattr(jitted, "static_argnums", ()),
        )
    name = _name_of(fun) if name is None else name
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name.lower() == "weft":
        raise ValueError(
            f"name must be an identifier of JavaScript other than weft, since files are called by it; got {name!r}."
        )
    told = name if exported.fun_name == name else f"{name} ({exported.fun_name})"
    if exported._scope is not None:
        raise ValueError(
            f"{told} has symbolic sizes ({', '.join(sorted(exported._variables))}), and a program of a page has"
            " numbers: give ShapeDtypeStructs with numbers, and export once for each size, under different names."
        )
    arguments, keywords = exported.in_tree.children()
    if keywords.num_leaves:
        raise ValueError(
            f"{told} takes keyword arguments, which JavaScript does not have; bind them with functools.partial, or make"
            " them positional."
        )
    if any(a.dtype == dtypes.float0 for a in (*exported.in_avals, *exported.out_avals)):
        raise ValueError(
            f"{told} takes or returns arrays of dtype float0, which have no elements to store; leave them out."
        )
    inputs, outputs = [[_edge(a) for a in avals] for avals in (exported.in_avals, exported.out_avals)]
    with enable_x64(exported._x64):
        closed = _with_edges(exported._closed, inputs, outputs)
        trees = _tree(arguments, told)
        names = _argument_names(fun, fixed, len(trees))
        signature = {
            "name": name,
            "args": [{"name": n, "tree": t} for n, t in zip(names, trees)],
            "result": _tree(exported.out_tree, told),
            "inputs": [_spec(a) for a in inputs],
            "outputs": [_spec(a) for a in outputs],
        }
        notes = [_note(a, e) for a, e in zip((*exported.in_avals, *exported.out_avals), (*inputs, *outputs))]
        page = {
            "title": name if title is None else title,
            "description": description,
            "remarks": remarks(signature, about, labels, ranges, forms),
        }
        writer, webgpu, wasm = backend_class("wasm"), None, None
        if target != "wasm":
            webgpu = _for_webgpu(closed, told, signature, target)
        if target != "webgpu":
            program, consts = program_for(closed, "wasm", writer.branches_of)
            wasm = program, [constant_bytes(c) for c in consts]
        remote = _for_hosts(name, closed, exported._x64) if host else None
        files: list[Path] = writer.write_page(os.fspath(path), wasm, webgpu, donated, signature, notes, page, remote)
    record_event(WRITTEN, program=name, files="\n".join(map(str, files)))
    return files


def _for_webgpu(
    closed: ClosedJaxpr, told: str, signature: Mapping[str, Any], target: Target
) -> tuple[Any, list[bytes]] | str:
    """The program compiled for WebGPU, and the values of its leading arguments; or why it can't be, if `target` leaves
    it another way to run.
    """
    given = {i: p for a in signature["args"] for p, i in paths(a["name"], a["tree"]).items()}
    try:
        program, consts = program_for(closed, "webgpu")
        arguments = [*("an array that it closes over" for _ in consts), *(given[i] for i in sorted(given))]
        compiled = backend_class("webgpu").page_program(program, signature["name"], arguments)
    except (BackendError, NotImplementedError) as e:
        if target == "auto":
            warn(f"{told} will run on WebAssembly alone, since it can't be compiled for WebGPU: {e}")
            return str(e.args[0])  # without the advice, which is for authors
        raise BackendError(
            f"{told} can't be exported for WebGPU: {e}\nWith target='auto' the page runs it on WebAssembly."
        ) from None
    return compiled, [constant_bytes(c) for c in consts]


def _for_hosts(name: str, closed: ClosedJaxpr, x64: bool) -> bytes:
    """The program as a file for accelerator hosts: a function of its arrays, whose structure the signature has."""
    inputs, outputs = tuple(closed.in_avals), tuple(closed.out_avals)
    flat = Exported(
        fun_name=name,
        in_tree=tree_structure(((0,) * len(inputs), {})),
        in_avals=inputs,
        out_tree=tree_structure((0,) * len(outputs)),
        out_avals=outputs,
        platforms=("remote",),
        disabled_safety_checks=(),
        calling_convention_version=CONVENTIONS[-1],
        module_kept_var_idx=tuple(range(len(inputs))),
        closed=closed,
        scope=None,
        x64=x64,
        get_vjp=None,
    )
    return bytes(flat.serialize())


def _plain(fun: Any) -> Any:
    """The function that was jitted, or `fun` itself."""
    return fun.fun if hasattr(fun, "trace") and hasattr(fun, "fun") else fun


def _name_of(fun: Callable[..., Any] | Exported) -> str:
    if isinstance(fun, Exported):
        found = fun.fun_name
    else:
        fun = _plain(fun)
        while isinstance(fun, partial):
            fun = fun.func
        found = getattr(fun, "__name__", type(fun).__name__)
    return found if _NAME.fullmatch(found) else "program"


def _argument_names(fun: Callable[..., Any] | Exported, fixed: Sequence[int] | None, count: int) -> list[str]:
    """The names of the function's arguments that are not static, as far as it has names for them."""
    names: list[str] = []
    if fixed is not None:
        try:
            parameters = inspect.signature(_plain(fun)).parameters.values()
            names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        except (TypeError, ValueError):  # a callable that doesn't say
            pass
        names = [n for i, n in enumerate(names) if i not in fixed]
    return [names[i] if i < len(names) else f"arg{i}" for i in range(count)]


def _edge(aval: AbstractValue) -> AbstractValue:
    """The type of an argument or result in JavaScript: the nearest type that has typed arrays."""
    aval = physical(aval)
    name = dtypes.name(aval.dtype)
    if name in _TYPED:
        return aval
    wide = "float32" if dtypes.kind(aval.dtype) == "f" else "uint8" if name.startswith("u") else "int8"
    return ShapedArray(aval.shape, dtypes.dtype(wide))


def _with_edges(closed: ClosedJaxpr, inputs: Sequence[AbstractValue], outputs: Sequence[AbstractValue]) -> ClosedJaxpr:
    """The program on the types that JavaScript has."""
    have, give = closed.in_avals, closed.out_avals
    if all(a.dtype == b.dtype for a, b in zip((*have, *give), (*inputs, *outputs))):
        return closed

    def fun(*leaves: Value) -> Any:
        inner = [x if x.dtype == a.dtype else convert(x, a.dtype) for x, a in zip(leaves, have)]
        return [
            x if a.dtype == b.dtype else convert(x, b.dtype)
            for x, a, b in zip(eval_jaxpr(closed.jaxpr, closed.consts, *inner), give, outputs)
        ]

    return jit(fun).trace(*[ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in inputs]).jaxpr


def _spec(aval: AbstractValue) -> dict[Any, Any]:
    return {"dtype": dtypes.name(aval.dtype), "shape": list(aval.shape)}


def _note(aval: AbstractValue, edge: AbstractValue) -> str:
    own, shown = [f"{dtypes.name(a.dtype)}[{','.join(map(str, a.shape))}]" for a in (aval, edge)]
    return (
        shown
        + (", real and imaginary parts in turn" if shown.startswith("complex") else "")
        + (f" for {own}" if own != shown else "")
    )


def _tree(tree: PyTreeDef, told: str) -> Any:
    """A structure as JSON: objects and arrays with the numbers of leaves in them."""
    return _json(tree.unflatten([_Slot(i) for i in range(tree.num_leaves)]), told)


class _Slot:
    """Represents a leaf."""

    def __init__(self, index: int):
        self.index = index


def _json(x: Value, told: str) -> Any:
    if x is None:
        return None
    if type(x) is _Slot:
        return x.index
    children = keyed_children(x)
    if not any(isinstance(k, (DictKey, GetAttrKey)) for k, _ in children):
        return {} if isinstance(x, dict) else [_json(c, told) for _, c in children]
    keys = [k.key if isinstance(k, DictKey) else k.name for k, _ in children]
    for key in keys:
        if not isinstance(key, (str, int)) or key == "__proto__":
            raise ValueError(
                f"{told} has a dict with the key {key!r}, which can't name a property of a JavaScript object; use"
                " strings or whole numbers."
            )
    return {str(key): _json(c, told) for key, (_, c) in zip(keys, children)}
