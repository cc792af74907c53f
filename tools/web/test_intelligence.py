"""The editor's questions about a program's values: what is answered, and that nothing of the program runs for it."""

import json
import sys
import textwrap
import types
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[2] / "web/python"))
import weft_intelligence  # noqa: E402


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch):
    """Runs a program as `__main__`; returns what asks about it."""

    def of(source: str):
        module = types.ModuleType("__main__")
        monkeypatch.setitem(sys.modules, "__main__", module)
        exec(compile(textwrap.dedent(source), "program.py", "exec"), vars(module))

        def ask(topic: str, path: str = "", **more: Any) -> Any:
            steps = [{"name": part} if i == 0 else step(part) for i, part in enumerate(filter(None, path.split(".")))]
            return json.loads(weft_intelligence.answer(topic, json.dumps({"path": steps, **more}), vars(module)))

        def step(part: str) -> dict[str, Any]:
            return {"item": json.loads(part[1:-1])} if part.startswith("[") else {"attr": part}

        return ask

    return of


def test_shapes_of_arrays_trees_and_numbers(ask):
    shapes = ask("""
        import weft, weft.numpy as jnp
        from typing import NamedTuple
        from dataclasses import dataclass

        class Pair(NamedTuple):
            w: object
            b: object

        @dataclass
        class State:
            step: int
            params: dict

        x = jnp.ones((3, 4))
        key = weft.random.key(0)
        params = {"w": jnp.zeros((784, 10)), "b": [jnp.zeros(10, jnp.int32), 2.5]}
        pair = Pair(x, None)
        state = State(3, {"w": x})
        many = [x] * 100
        n, name, long = 3, "weft", "a" * 1000
        nothing = ()
        def f(): pass
    """)("shapes")
    assert shapes == {
        "x": "f32[3,4]",
        "key": "key<fry>[]",
        "params": "{'w': f32[784,10], 'b': [i32[10], 2.5]}",
        "pair": "Pair(w=f32[3,4], b=None)",
        "state": "State(step=3, params={'w': f32[3,4]})",
        "many": "list of 100 f32[3,4]",
        "n": "3",
        "name": "'weft'",
        "long": "str of 1000 characters",
        "nothing": "()",
    }


def test_shapes_of_chosen_names_alone(ask):
    assert ask("a = 1\nb = 2\n")("shapes", names=["b", "missing"]) == {"b": "2"}


def test_a_tree_that_holds_itself_ends(ask):
    assert len(ask("a = {}\na['a'] = a\nb = [1, 2]\nb[0] = b\n")("shapes")["a"]) < 100


def test_members_of_modules_classes_and_objects(ask):
    question = ask("""
        import math
        class Layer:
            "A layer."
            size = 3
            def __init__(self): self.weights = [1, 2]
            def apply(self, x, scale: float = 1.0): "Applies it."
        layer = Layer()
    """)
    members = {entry["name"]: entry for entry in question("complete", "layer")["names"]}
    assert members["apply"]["kind"] == "method"
    assert members["weights"] == {"name": "weights", "kind": "variable", "value": "[1, 2]"}
    assert "sin" in {entry["name"] for entry in question("complete", "math")["names"]}
    described = question("hover", "layer.apply")
    assert described == {
        "name": "apply",
        "kind": "method",
        "doc": "Applies it.",
        "signature": "(x, scale: float = 1.0)",
    }
    assert question("hover", "Layer")["signature"] == "()"
    assert question("hover", "Layer")["doc"] == "A layer."
    assert {entry["name"] for entry in question("complete")["names"]} == {"math", "Layer", "layer"}


def test_keys_of_dictionaries(ask):
    question = ask("params = {'w': 1, 'bias': [7, {'x': 2}], 3: 4}\n")
    assert question("complete", "params")["keys"] == ["w", "bias"]
    assert question("hover", 'params.["bias"].[1].["x"]')["value"] == "2"
    assert question("hover", 'params.["no"]') is None


def test_what_the_language_defines_is_named_for_its_index(ask):
    question = ask("import weft.numpy as jnp\nfrom weft import vmap as v\ns = jnp.sum\n")
    assert question("hover", "s")["origin"] == {"module": "weft.numpy.reductions", "name": "sum"}
    assert question("definition", "v")["module"] == "weft.api.vmap"
    assert question("signature", "s")["signature"].startswith("(a: ArrayLike, axis: Axis = None")


def test_a_function_that_was_transformed_keeps_its_signature(ask):
    question = ask("""
        import weft
        @weft.jit
        def step(params, x, rate=0.1):
            "One step."
            return params
        gradient = weft.grad(step)
    """)
    for name in ("step", "gradient"):
        assert question("signature", name)["signature"].startswith("(params, x, rate=0.1)"), name
    assert question("hover", "step")["doc"] == "One step."


def test_sources_of_other_modules_are_read(ask, tmp_path, monkeypatch):
    (tmp_path / "helper_of_tests.py").write_text("import os\n\nclass A:\n    pass\n\ndef f():\n    return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    question = ask("import helper_of_tests\nfrom helper_of_tests import A, f\n")
    found = question("definition", "f")
    assert (found["module"], found["line"]) == ("helper_of_tests", 6)
    assert found["text"].startswith("import os")
    assert question("definition", "A")["line"] == 3
    assert question("definition", "helper_of_tests")["line"] == 1
    sys.modules.pop("helper_of_tests")


HOSTILE = """
    ran = []

    class Meta(type):
        def __dir__(cls): ran.append("Meta.__dir__")
        def __getattr__(cls, name): ran.append("Meta.__getattr__"); raise AttributeError(name)

    class Hostile(metaclass=Meta):
        slot = 1
        def __getattribute__(self, name): ran.append(f"__getattribute__ {name}"); return object()
        def __getattr__(self, name): ran.append("__getattr__")
        def __dir__(self): ran.append("__dir__"); return []
        def __repr__(self): ran.append("__repr__"); return ""
        def __eq__(self, other): ran.append("__eq__")
        def __hash__(self): return 1
        def __len__(self): ran.append("__len__"); return 1
        def __iter__(self): ran.append("__iter__")
        def __getitem__(self, key): ran.append("__getitem__")
        def __bool__(self): ran.append("__bool__")
        @property
        def computed(self): ran.append("computed")
        @property
        def __class__(self): ran.append("__class__"); return int
        @property
        def __doc__(self): ran.append("__doc__")

    class Rows(dict):
        def items(self): ran.append("items"); return []
        def __getitem__(self, key): ran.append("Rows")

    x = Hostile()
    inside = {"x": x, "list": [x, (x,)]}
    rows = Rows(a=1)
    def f(a=x, b: x = 3) -> x: pass
    class Late:
        def __call__(self, a, b=x): pass
    late = Late()
"""


@pytest.mark.parametrize("topic", ["complete", "hover", "signature", "definition", "shapes"])
@pytest.mark.parametrize(
    "path", ["", "x", "x.computed", "x.slot", "x.missing", "inside", 'inside.["x"]', "rows", 'rows.["a"]', "f", "late"]
)
def test_nothing_of_the_program_runs(ask, topic, path):
    if path or topic in ("complete", "shapes"):
        question = ask(HOSTILE)
        question(topic, path)
        assert sys.modules["__main__"].ran == []


def test_defaults_and_annotations_are_not_printed(ask):
    assert ask(HOSTILE)("hover", "f")["signature"] == "(a=..., b: Hostile = 3) -> Hostile"


def test_a_question_about_nothing_is_answered_by_null(ask):
    question = ask("a = 1\n")
    for topic in ("complete", "hover", "signature", "definition"):
        assert question(topic, "missing") is None
        assert question(topic, "a.b.c") is None
