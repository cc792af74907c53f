"""Answers the editor's questions about what a program has made: names, signatures, docstrings, shapes, places.

Questions come while one types, so answering must change nothing: no property, `__getattr__`, `__dir__` or `__repr__`
of a program's own classes runs. Attributes are read from modules, from classes, and from the dictionaries and slots of
objects; of arrays also shape and dtype, which they have without computing.

A question is a topic and JSON; what can't be found is null. Most name a value by `path`, a list of steps:
`{"name": "params"}`, then `{"attr": "w"}` or `{"item": "w"}`.

- complete: {"path"} -> {"names": [{"name", "kind", "signature"?, "value"?}], "keys": [str]}; an empty path means the
  program's own names.
- hover: {"path"} -> {"name", "kind", "signature", "doc", "value"?, "origin"?}
- signature: {"path"} -> {"name", "signature", "doc", "origin"?}
- definition: {"path"} -> {"module", "line", "text"?}; without text for modules of the language, which is bytecode here.
- shapes: {"names"?} -> {name: "f32[3,4]"}
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import types
from functools import partial
from typing import Any

import weft
from weft_docstrings import MARK
from weft_signatures import signature_of

LIMIT = 2000  # names in one answer
WIDTH = 60  # characters of a value
SOURCE_LIMIT = 1 << 20  # characters of a source file
SCALARS = (bool, int, float, complex, type(None))
FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.MethodWrapperType)
FUNCTIONS += (types.MethodDescriptorType, types.WrapperDescriptorType, partial)
ARRAY_ATTRIBUTES = {"shape", "dtype", "ndim", "size", "nbytes", "itemsize", "weak_type"}
_mark = re.compile(re.escape(MARK).replace(r"\{\}", r"\d+"))


class Unknown(Exception):
    """The value does not exist, or it can't be read without running code."""


class Computed:
    """A property, whose value is not computed here: what is known of it."""

    def __init__(self, descriptor: Any):
        self.descriptor = descriptor


def answer(topic: str, about: str, names: dict[str, Any]) -> str:
    """The answer to a question about a program's names; both in JSON. Never raises for what a program holds."""
    topics = {"complete": complete, "hover": hover, "signature": signature, "definition": definition, "shapes": shapes}
    asked = json.loads(about)
    try:
        return json.dumps(topics[topic](asked, names))
    except Unknown:
        return "null"


# ---- Finding values ----


def find(path: list[dict[str, Any]], names: dict[str, Any]) -> Any:
    first, *rest = path
    if (name := first.get("name")) not in names:
        raise Unknown
    value = names[name]
    for step in rest:
        value = attribute(value, step["attr"]) if "attr" in step else item(value, step["item"])
    return value


def attribute(value: Any, name: str) -> Any:
    """An attribute, if it can be had without running code of the program."""
    if is_a(value, types.ModuleType):
        try:
            return getattr(value, name)
        except Exception:  # a module that computes its names may fail in any way
            raise Unknown from None
    if is_array(value) and name in ARRAY_ATTRIBUTES:
        return getattr(value, name)
    if is_a(value, Computed):
        raise Unknown
    try:
        found = inspect.getattr_static(value, name)
    except AttributeError:
        raise Unknown from None
    if is_a(found, staticmethod):
        return found.__func__
    if is_a(found, classmethod):
        return types.MethodType(found.__func__, value if is_a(value, type) else type(value))
    if is_a(value, type):
        return found
    if is_a(found, types.FunctionType):
        return types.MethodType(found, value)
    if is_a(found, types.MemberDescriptorType) or type(found).__name__ == "_tuplegetter":
        try:
            return found.__get__(value)
        except AttributeError:  # an empty slot
            raise Unknown from None
    if not is_a(found, type) and inspect.getattr_static(type(found), "__get__", None) is not None:
        return Computed(found)
    return found


def item(value: Any, key: str | int) -> Any:
    if type(value) not in (dict, list, tuple):  # other types may run code of their own
        raise Unknown
    try:
        return value[key]
    except (LookupError, TypeError):
        raise Unknown from None


def is_a(value: Any, kinds: type | tuple[type, ...]) -> bool:
    """As `isinstance`, without asking the object for its class."""
    return issubclass(type(value), kinds)


def is_array(value: Any) -> bool:
    return is_a(value, weft.Array)


def attributes(value: Any) -> list[str]:
    """The names of attributes, without asking the object."""
    if is_a(value, types.ModuleType):
        return list(dir(value))
    if is_a(value, type):
        return sorted({name for base in value.__mro__ for name in vars(base)})
    own = [base for base in type(value).__mro__ if base is not object]
    found = {name for base in own for name in vars(base)}
    instance = instance_dictionary(value)
    return sorted(found | set(instance))


def instance_dictionary(value: Any) -> dict[str, Any]:
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return found if type(found) is dict else {}


# ---- Describing values ----


def kind_of(value: Any) -> str:
    if is_a(value, types.ModuleType):
        return "module"
    if is_a(value, type):
        return "class"
    if is_a(value, types.MethodType):
        return "method"
    if is_a(value, Computed):
        return "property"
    return "function" if is_function(value) else "variable"


def is_function(value: Any) -> bool:
    """A function, or an object of the language or of functools that stands for one."""
    if is_a(value, FUNCTIONS):
        return True
    return type(value).__module__.partition(".")[0] in ("weft", "functools") and callable(value)


def signature_text(value: Any) -> str:
    """The signature, or an empty text if there is none."""
    if not is_a(value, type) and not is_function(value):
        call = inspect.getattr_static(type(value), "__call__", None)
        if not is_a(call, types.FunctionType):
            return ""
        value = types.MethodType(call, value)
    try:
        return signature_of(value) or ""
    except Exception:  # the metaclass of a program, or the result of a decorator
        return ""


def docstring_of(value: Any) -> str:
    """The object's own docstring: not that of its class, nor one that is not loaded."""
    if is_a(value, Computed):
        value = value.descriptor
    described = is_a(value, (type, types.ModuleType, property)) or is_function(value)
    text = getattr(value, "__doc__", None) if described else None
    return inspect.cleandoc(text) if isinstance(text, str) and not _mark.search(text) else ""


def origin_of(value: Any) -> dict[str, str] | None:
    """The module and name under which the index of the language has it."""
    bare = unwrapped(value)
    module, name = getattr(bare, "__module__", None), getattr(bare, "__qualname__", None)
    own = isinstance(module, str) and isinstance(name, str) and module.partition(".")[0] == "weft"
    return {"module": module, "name": name} if own else None


def unwrapped(value: Any) -> Any:
    """The function inside of decorators."""
    value = getattr(value, "__func__", value)
    try:
        return inspect.unwrap(value)
    except ValueError:  # an object that wraps itself
        return value


def summary(value: Any, depth: int = 0) -> str:
    """What a value is, in a line: `f32[3,4]` for arrays, their trees with all of them, numbers and strings as they
    are, of others the class.
    """
    if is_array(value):
        try:
            return value.aval.str_short(short_dtypes=True)
        except Exception:  # the array is deleted, or its computation failed
            return type(value).__name__
    kind = type(value)
    if kind in SCALARS:
        return repr(value) if kind is not int or abs(value) < 10**20 else "int"
    if kind is str:
        return repr(value) if len(value) <= WIDTH else f"str of {len(value)} characters"
    if kind in (list, tuple, dict, set):
        return _container(value, depth)
    if (fields := fields_of(value)) is not None and depth < 3:
        inside = ", ".join(f"{name}={summary(entry, depth + 1)}" for name, entry in fields[:6])
        return _cut(f"{kind.__name__}({inside}{', …' if len(fields) > 6 else ''})")
    numpy = sys.modules.get("numpy")
    if numpy is not None and kind is numpy.ndarray:
        return f"numpy {value.dtype}[{','.join(map(str, value.shape))}]"
    return kind.__name__


def _container(value: Any, depth: int) -> str:
    left, right = {list: "[]", tuple: "()", dict: "{}", set: "{}"}[type(value)]
    if depth >= 3 or not value:
        return f"{left}{right}" if not value else f"{type(value).__name__} of {len(value)}"
    if isinstance(value, dict):
        parts = [f"{summary(key, 3)}: {summary(entry, depth + 1)}" for key, entry in list(value.items())[:6]]
    else:
        parts = [summary(entry, depth + 1) for entry in list(value)[:6]]
        if len(set(parts)) == 1 and len(value) > 3:
            return f"{type(value).__name__} of {len(value)} {parts[0]}"
    more = ", …" if len(value) > 6 else ""
    return _cut(f"{left}{', '.join(parts)}{more}{right}")


def _cut(text: str) -> str:
    return text if len(text) <= 4 * WIDTH else text[: 4 * WIDTH - 1] + "…"


def fields_of(value: Any) -> list[tuple[str, Any]] | None:
    """The fields of a named tuple or a dataclass."""
    kind = type(value)
    if issubclass(kind, tuple) and isinstance(names := vars(kind).get("_fields"), tuple):
        return list(zip(names, tuple.__iter__(value)))
    if isinstance(fields := vars(kind).get("__dataclass_fields__"), dict):
        held = instance_dictionary(value)
        return [(name, held[name]) for name in fields if name in held]
    return None


def describe(value: Any, name: str) -> dict[str, Any]:
    kind = kind_of(value)
    found = {"name": name, "kind": "" if kind == "variable" else kind, "doc": docstring_of(value)}
    found["signature"] = "" if kind in ("module", "property") else signature_text(value)
    if kind == "variable":
        found["value"] = summary(value)
    if kind not in ("variable", "module", "property") and (origin := origin_of(value)):
        found["origin"] = origin
    return found


# ---- The topics ----


def complete(asked: dict[str, Any], names: dict[str, Any]) -> dict[str, Any]:
    if not asked["path"]:
        return {"names": [brief(name, value) for name, value in list(names.items())[:LIMIT] if name[:2] != "__"]}
    value = find(asked["path"], names)
    found = []
    for name in attributes(value):
        if name.startswith("_"):
            continue
        try:  # a module's names that are not loaded yet stay so
            held = vars(value)[name] if is_a(value, types.ModuleType) else attribute(value, name)
        except (KeyError, Unknown):
            found.append({"name": name, "kind": "variable"})
        else:
            found.append(brief(name, held))
    keys = [key for key in value if isinstance(key, str)] if type(value) is dict else []
    return {"names": found[:LIMIT], "keys": keys[:LIMIT]}


def brief(name: str, value: Any) -> dict[str, Any]:
    kind = kind_of(value)
    found = {"name": name, "kind": kind}
    if kind == "variable":
        found["value"] = summary(value, 2)
    return found


def last_name(path: list[dict[str, Any]]) -> str:
    return str(next(iter(path[-1].values())))


def hover(asked: dict[str, Any], names: dict[str, Any]) -> dict[str, Any]:
    return describe(find(asked["path"], names), last_name(asked["path"]))


def signature(asked: dict[str, Any], names: dict[str, Any]) -> dict[str, Any]:
    found = describe(find(asked["path"], names), last_name(asked["path"]))
    if not found["signature"]:
        raise Unknown
    return found


def definition(asked: dict[str, Any], names: dict[str, Any]) -> dict[str, Any]:
    value = find(asked["path"], names)
    if is_a(value, types.ModuleType):
        return place(value.__name__, 1)
    if not is_a(value, type) and not is_function(value):
        raise Unknown
    bare = unwrapped(value)
    module = getattr(bare, "__module__", None)
    if not isinstance(module, str) or not is_a(bare, (type, types.FunctionType)):
        raise Unknown
    if is_a(bare, types.FunctionType):
        return place(module, bare.__code__.co_firstlineno)
    found = place(module, 1)
    if text := found.get("text"):
        pattern = re.compile(rf"^\s*class {re.escape(bare.__name__)}\b", re.MULTILINE)
        if at := pattern.search(text):
            found["line"] = text.count("\n", 0, at.end()) + 1
    return found


def place(module: str, line: int) -> dict[str, Any]:
    if module == "__main__":
        raise Unknown
    if module.partition(".")[0] == "weft":
        return {"module": module, "line": line}
    file = getattr(sys.modules.get(module), "__file__", None)
    if not isinstance(file, str) or not file.endswith(".py"):
        raise Unknown
    try:
        with open(file, encoding="utf-8") as source:
            return {"module": module, "line": line, "text": source.read(SOURCE_LIMIT)}
    except (OSError, UnicodeDecodeError):
        raise Unknown from None


def shapes(asked: dict[str, Any], names: dict[str, Any]) -> dict[str, str]:
    wanted = asked.get("names") or [name for name in names if not name.startswith("_")]
    return {
        name: summary(names[name]) for name in wanted[:LIMIT] if name in names and kind_of(names[name]) == "variable"
    }
