"""The inspector's answers: what a run compiled, when, why, and into what."""

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import weft
import weft.numpy as jnp
from weft.base import monitoring
from weft.runtime.observers import observers

sys.path.append(str(Path(__file__).parents[2] / "web/python"))
import weft_inspect  # noqa: E402
import weft_record  # noqa: E402

PROGRAM = """
    import weft, weft.numpy as jnp

    @weft.jit
    def softmax(x):
        z = jnp.exp(x)
        return z / z.sum()

    for n in 3, 3, 5:
        y = softmax(jnp.ones(n))
    y.tolist()
"""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch):
    """Runs a program on Wasm as the page does; returns what asks the inspector."""
    notes = weft_record.Notes()
    for module in (weft_record, weft_inspect):
        monkeypatch.setattr(module, "notes", notes)
    spans, events, watching = list(monitoring._spans), list(monitoring._events), list(observers)
    notes.install()

    def ask(topic: str, **about: Any) -> Any:
        return json.loads(weft_inspect.answer(topic, json.dumps(about)))

    def run(source: str, fresh: bool = True, module: dict[str, Any] | None = None, is_open: bool = False):
        notes.begin(fresh, is_open)
        names = {} if module is None else module
        with weft.default_device(weft.devices("wasm")[0]):
            exec(compile(textwrap.dedent(source), "program.py", "exec"), names)
        notes.end()
        return ask

    yield run
    monitoring._spans[:], monitoring._events[:], observers[:] = spans, events, watching


def named(ask, name: str) -> list[dict[str, Any]]:
    return [each for each in ask("programs")["programs"] if each["name"] == name]


def test_each_program_is_listed_with_its_line_types_and_calls(run):
    ask = run(PROGRAM)
    first, second = named(ask, "softmax")
    assert (first["signature"], second["signature"]) == ("(f32[3]) → f32[3]", "(f32[5]) → f32[5]")
    assert (first["calls"], second["calls"]) == (2, 1) and first["seconds"] > 0
    assert (first["file"], first["line"]) == ("program.py", 10) and first["backend"] == "wasm"
    assert first["kind"] == "function" and first["phases"].keys() >= {"trace", "compile", "load"}
    assert 0 < first["phases"]["load"] < first["phases"]["compile"]
    kinds = [each["kind"] for each in ask("programs")["programs"]]
    assert kinds == sorted(kinds, key="function operation".split().index)


def test_why_it_was_compiled_again(run):
    ask = run(PROGRAM)
    first, second = [ask("program", id=each["id"]) for each in named(ask, "softmax")]
    assert first["why"] == [{"phase": "traced", "where": "program.py:10 (<module>)", "why": "the first call"}]
    assert second["why"][0]["why"] == "the shape of x changed: it is f32[5] and was f32[3]"
    assert first["memory"]["argument_size_in_bytes"] == 12


def test_a_jaxpr_is_that_of_make_jaxpr_and_its_lines_are_the_users(run):
    ask = run(PROGRAM)
    answer = ask("text", id=named(ask, "softmax")[0]["id"], stage="jaxpr")
    names: dict[str, Any] = {}
    exec(compile(textwrap.dedent(PROGRAM), "program.py", "exec"), names)
    assert answer["text"] == str(weft.make_jaxpr(names["softmax"].__wrapped__)(jnp.ones(3)))
    of = dict(zip([line.strip().partition(" = ")[2].partition(" ")[0] for line in answer["text"].split("\n")],
                  answer["lines"], strict=True))  # fmt: skip
    assert of["exp"] == ["program.py", 6] and of["div"] == ["program.py", 7]
    assert answer["lines"][0] is None and len(answer["lines"]) == len(answer["text"].split("\n"))


def test_texts_of_each_stage(run):
    ask = run(PROGRAM)
    program = ask("program", id=named(ask, "softmax")[0]["id"])
    texts = {stage: ask("text", id=program["id"], stage=stage) for stage in program["stages"]}
    assert "group 0" in texts["groups"]["text"] and texts["ir"]["text"].startswith("program softmax")
    assert texts["wat"]["text"].startswith("(module") and "XLA" in texts["stablehlo"]["problem"]
    assert [slot["name"] for slot in texts["plan"]["slots"]] == [
        line.partition(":")[0] for line in texts["plan"]["text"].split("\n")
    ]


def test_the_timeline_has_all_lanes_in_order_within_the_run(run):
    answer = run(PROGRAM)("timeline")
    events = answer["events"]
    assert {lane for lane, *_ in events} == {"trace", "compile", "run", "transfer"}
    assert [event[2] for event in events] == sorted(event[2] for event in events) and answer["dropped"] == 0
    assert all(0 <= start and start + length <= answer["length"] + 1 for _, _, start, length, _ in events)
    assert [name for lane, name, *_ in events if lane == "run"].count("softmax") == 3
    assert ["to the host", "20 bytes"] in [[name, detail] for lane, name, _, _, detail in events if lane == "transfer"]


OFTEN = """
    import weft, weft.numpy as jnp
    f = weft.jit(lambda x: x + 1)
    x = jnp.ones(2)
    for _ in range(10_050):
        x = f(x)
"""


def test_a_timeline_of_many_calls_keeps_the_last(run):
    ask = run(OFTEN, is_open=True)
    answer = ask("timeline")
    assert len(answer["events"]) == weft_record.MOST_EVENTS and answer["dropped"] >= 50 and answer["untimed"] == 0
    found = named(ask, "<lambda>")[0]
    assert found["calls"] == 10_050 and found["all"]


def test_after_the_first_calls_nothing_is_between_while_the_inspector_is_closed(run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(weft_record, "PAUSE", 0.0)
    module: dict[str, Any] = {}
    ask = run(OFTEN, module=module)
    found = named(ask, "<lambda>")[0]
    assert found["calls"] == weft_record.MOST_CLOSED and not found["all"]
    assert ask("timeline")["untimed"] == 1
    # what a call reaches is the executable's own method
    reached = set()
    with weft.default_device(weft.devices("wasm")[0]):
        sys.setprofile(lambda frame, event, _: reached.add(frame.f_code.co_filename))
        module["f"](module["x"])
        sys.setprofile(None)
    assert weft_record.__file__ not in reached and any("weft_wasm" in file for file in reached)
    # the next run counts again, also the calls of functions that are there already
    run("for _ in range(3):\n    x = f(x)", fresh=False, module=module)
    found = named(ask, "<lambda>")[0]
    assert found["calls"] == 3 and found["all"]
    run("for _ in range(300):\n    x = f(x) + 1", fresh=False, module=module, is_open=True)
    assert [each["calls"] for each in ask("programs")["programs"]][:2] == [300, 300]


def test_programs_that_are_called_often_are_let_go_of_together(run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(weft_record, "PAUSE", 3600.0)
    ask = run("""
        import weft, weft.numpy as jnp
        f, g = weft.jit(lambda x: x + 1), weft.jit(lambda x: x * 2)
        x = jnp.ones(2)
        for _ in range(300):
            x = g(f(x))
    """)
    # letting go of the second waits: all functions look their programs up again after it
    assert [each["calls"] for each in named(ask, "<lambda>")] == [weft_record.MOST_CLOSED, 300]


def test_kernels_are_timed_without_changing_what_is_known(run):
    ask = run(PROGRAM)
    before = ask("programs"), ask("timeline")
    found = ask("kernels", id=named(ask, "softmax")[0]["id"])["kernels"]
    assert found and all(seconds > 0 and calls == 1 for _, seconds, calls in found)
    assert (ask("programs"), ask("timeline")) == before


def test_kernels_run_on_the_arguments_of_the_last_call(run, monkeypatch: pytest.MonkeyPatch):
    module: dict[str, Any] = {}
    given: list[Any] = []
    monkeypatch.setattr(weft.profiler, "kernel_times", lambda function, *args: given.append(args) or [])
    source = """
        import weft, weft.numpy as jnp
        step = weft.jit(lambda w, key: w * weft.random.uniform(key, (3,)) + 2)
        w, key = jnp.arange(3.0), weft.random.key(7)
        for _ in range(2):
            before, w = w, step(w, key)
    """
    ask = run(source, module=module)
    number = named(ask, "<lambda>")[0]["id"]

    def timed() -> str:
        return ask("kernels", id=number)["arguments"]

    assert timed() == "Its arguments were those of the last timed call."
    assert given[-1][0] is module["before"]
    assert weft.random.key_data(given[-1][1]).tolist() == weft.random.key_data(module["key"]).tolist()
    module["before"].delete()
    assert timed().startswith("1 of its 2 arguments were those of the last timed call.")
    assert given[-1][0].tolist() == [1, 1, 1]
    del module["key"], module["before"]
    given.clear()
    assert timed() == "The arguments of its calls are no longer there: ones stood for them."
    assert weft.random.key_data(given[-1][1]).shape == (2,)


def test_kernels_of_a_program_with_keys_are_timed(run):
    ask = run("import weft\nf = weft.jit(lambda k: weft.random.normal(k, (64,)))\nf(weft.random.key(0))")
    answer = ask("kernels", id=named(ask, "<lambda>")[0]["id"])
    assert answer["kernels"] and answer["arguments"].startswith("The arguments")


def test_devices_say_what_they_hold(run):
    module: dict[str, Any] = {}
    ask = run("import weft.numpy as jnp\nx = jnp.ones(1000)", module=module)
    facts = next(dict(each["facts"]) for each in ask("devices")["devices"] if each["name"] == "wasm")
    assert int(facts["Memory in use"].removesuffix(" bytes").replace(",", "")) >= 4000
    assert (
        "bytes" in facts["Arrays alive"]
        and facts["Programs can be stopped"] == "yes"
        and facts["Threads"] == str(weft.devices("wasm")[0].threads)
    )


def test_a_backend_without_devices_says_why_and_others_are_listed(run, monkeypatch: pytest.MonkeyPatch):
    from weft.runtime import device

    class Gone:
        name = "elsewhere"

        def devices(self) -> list[Any]:
            raise weft.errors.BackendError("this process is not connected to a host")

    ask = run("import weft.numpy as jnp\nx = jnp.ones(3)")
    known = device.known_backends()
    monkeypatch.setattr(device, "known_backends", lambda: [Gone(), *known])
    found = {each["name"]: each["facts"] for each in ask("devices")["devices"]}
    assert found["elsewhere"] == [["No devices", "this process is not connected to a host"]] and "wasm" in found


def test_a_fresh_run_forgets_and_another_goes_on(run):
    module: dict[str, Any] = {}
    ask = run(PROGRAM, module=module)
    run("softmax(jnp.ones(3))", fresh=False, module=module)
    assert [each["calls"] for each in named(ask, "softmax")] == [1, 0]
    gone = named(ask, "softmax")[0]["id"]
    module.clear()
    run("1 + 1")
    assert named(ask, "softmax") == [] and ask("timeline")["events"] == []
    assert "Choose a program of the list" in ask("program", id=gone)["problem"]


def test_functions_that_were_compiled_before_count_in_a_fresh_run(run):
    module: dict[str, Any] = {}
    ask = run(PROGRAM, module=module)
    run("y = softmax(jnp.ones(3))", module=module)
    assert [each["calls"] for each in named(ask, "softmax")] == [1]


def test_a_failed_run_shows_what_it_did(run):
    with pytest.raises(ZeroDivisionError):
        run(PROGRAM + "\n    1 / 0")
    answer = json.loads(weft_inspect.answer("programs", "{}"))
    assert [each["name"] for each in answer["programs"]].count("softmax") == 2


def test_what_a_compiler_cannot_show_is_a_sentence(run):
    ask = run(PROGRAM)
    problem = ask("text", id=named(ask, "softmax")[0]["id"], stage="wgsl")["problem"]
    assert "shows programs as" in problem
