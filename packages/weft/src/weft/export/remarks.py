"""What an exporter says of a program's inputs and outputs for the page that shows it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

FORMS = ("slider", "number", "checkbox", "text", "drawing", "image", "numbers")

Labels = Sequence[str] | Mapping[str, Sequence[str]]
Ranges = Mapping[str, Sequence[float]]


def paths(name: str, tree: Any) -> dict[str, int]:
    """The numbers of the leaves of a tree (as `pages.web` writes it) by their paths, as JavaScript writes these.

    >>> paths("params", {"w": 0, "layers": [1, None]})
    {'params.w': 0, 'params.layers[0]': 1}
    """
    if tree is None:
        return {}
    if isinstance(tree, int):
        return {name: tree}
    if isinstance(tree, dict):
        return {path: i for key, branch in tree.items() for path, i in paths(f"{name}.{key}", branch).items()}
    return {path: i for k, branch in enumerate(tree) for path, i in paths(f"{name}[{k}]", branch).items()}


def remarks(
    signature: Mapping[str, Any],
    about: Mapping[str, str] | None,
    labels: Labels | None,
    ranges: Ranges | None,
    forms: Mapping[str, str] | None,
) -> dict[str, dict[str, Any]]:
    """The remarks by path; ValueError for a path that the program does not have, and for what is no remark."""
    inputs = {p: signature["inputs"][i] for a in signature["args"] for p, i in paths(a["name"], a["tree"]).items()}
    outputs = {p: signature["outputs"][i] for p, i in paths("result", signature["result"]).items()}
    known = inputs | outputs
    found: dict[str, dict[str, Any]] = {}

    def note(option: str, key: str, given: Mapping[str, Any] | None, check: Any) -> None:
        for path, value in (given or {}).items():
            if path not in known:
                raise ValueError(
                    f"{option} names {path!r}, which {signature['name']} does not have; it has {', '.join(known)}."
                )
            found.setdefault(path, {})[key] = check(f"{option}[{path!r}]", value, known[path])

    note("about", "about", about, lambda where, value, spec: _text(where, value))
    if labels is not None and not isinstance(labels, Mapping):
        names = _names("labels", labels, {})
        fits = [p for p, s in outputs.items() if s["shape"] and s["shape"][-1] == len(names) or _whole(s)]
        if not fits:
            raise ValueError(
                f"labels has {len(names)} names, and no output of {signature['name']} has an axis of that length at its"
                " end, or whole numbers; name the output: labels={path: names}."
            )
        labels = dict.fromkeys(fits, names)
    note("labels", "labels", labels, _names)
    note("ranges", "range", ranges, _range)
    note("forms", "form", forms, _form)
    return found


def _text(where: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{where} must be text; got {value!r}.")
    return value


def _whole(spec: Mapping[str, Any]) -> bool:
    return str(spec["dtype"]).lstrip("u").startswith("int")


def _names(where: str, value: Any, spec: Mapping[str, Any]) -> list[str]:
    if not isinstance(value, Sequence) or not all(isinstance(name, str) for name in value) or not value:
        raise ValueError(f"{where} must be a sequence of names; got {value!r}.")
    return list(value)


def _range(where: str, value: Any, spec: Mapping[str, Any]) -> list[float | None]:
    numbers = list(value) if isinstance(value, Sequence) else []
    finite = all(isinstance(x, (int, float)) and math.isfinite(x) for x in numbers)
    if len(numbers) not in (2, 3) or not finite or numbers[0] >= numbers[1] or numbers[2:] and numbers[2] <= 0:
        raise ValueError(
            f"{where} must be (low, high) or (low, high, step) with low < high and step > 0; got {value!r}."
        )
    return [*numbers[:2], numbers[2] if len(numbers) == 3 else None]


def _form(where: str, value: Any, spec: Mapping[str, Any]) -> str:
    if value not in FORMS:
        raise ValueError(f"{where} must be one of {', '.join(FORMS)}; got {value!r}.")
    scalar = not spec["shape"]
    if scalar != (value in ("slider", "number", "checkbox")):
        kind = "an array without axes" if scalar else "an array with axes"
        raise ValueError(f"{where} is {value!r}, but {kind} stands there ({spec['dtype']}{spec['shape']}).")
    return str(value)
