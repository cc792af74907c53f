"""The events of tracing and compiling."""

import pytest

import weft
from weft.base.monitoring import MISS, TRANSFER
from weft import lax
from weft.base import monitoring


PHASES = [monitoring.TRACE, monitoring.LOWER, monitoring.COMPILE]


@pytest.fixture
def events():
    seen = []
    monitoring.register_event_duration_secs_listener(lambda event, seconds, **_: seen.append((event, seconds)))
    yield seen
    monitoring.clear_event_listeners()


def test_one_trace_and_one_compilation_for_each_type(events):
    f = weft.jit(lambda x: lax.mul(x, x))
    f(2.0), f(3.0)
    assert [event for event, _ in events] == PHASES
    f(2)
    assert [event for event, _ in events] == PHASES * 2
    assert all(seconds > 0 for _, seconds in events)


def test_a_trace_within_a_trace_ends_first_and_is_part_of_it(events):
    inner = weft.jit(lambda x: lax.sin(x))
    weft.jit(lambda x: inner(lax.mul(x, x)))(2.0)
    (_, short), (_, long), *_ = events
    assert [e for e, _ in events] == [monitoring.TRACE] + PHASES
    assert short <= long


def test_a_failed_trace_is_not_told(events):
    with pytest.raises(ZeroDivisionError):
        weft.jit(lambda x: x / (1 // 0))(1.0)
    assert events == []


def test_a_phase_is_told_to_listeners_of_all_kinds():
    seen = []
    kinds = {
        "event": lambda event, **about: seen.append(("event", event, about)),
        "scalar": lambda event, value, **about: seen.append(("scalar", event, about)),
        "event_duration_secs": lambda event, value, **about: seen.append(("duration", event, about)),
        "event_time_span": lambda event, start, end, **about: seen.append(("span", event, about, end >= start)),
    }
    for kind, listener in kinds.items():
        getattr(monitoring, f"register_{kind}_listener")(listener)

    @weft.jit
    def double(x):
        return lax.add(x, x)

    double(2.0)
    about = {"fun_name": "double"}
    phases = [each for each in seen if each[1].startswith("/jax/")]
    assert phases[:3] == [
        ("scalar", monitoring.TRACE, about),
        ("duration", monitoring.TRACE, about),
        ("span", monitoring.TRACE, about, True),
    ]
    assert {e[2]["fun_name"] for e in phases[3:]} == {"jit(double)"}
    (why,) = [about for kind, event, about, *_ in seen if event == MISS]
    assert (why["fun_name"], why["phase"], why["why"]) == ("double", "traced", "the first call")
    assert {"to": "device", "bytes": 4} in [about for kind, event, about, *_ in seen if event == TRANSFER]
    seen.clear()
    monitoring.record_event("/x", a=1)
    monitoring.record_scalar("/y", 2)
    assert seen == [("event", "/x", {"a": 1}), ("scalar", "/y", {})]
    for kind, listener in kinds.items():
        unregister = getattr(monitoring, f"unregister_{kind.removesuffix('_secs')}_listener")
        unregister(listener)
        with pytest.raises(ValueError, match="not registered"):
            unregister(listener)
    monitoring.record_event("/x")
    assert len(seen) == 2


def test_log_compiles_names_the_function_its_types_the_phases_and_the_line(caplog):
    def scale(x):
        return lax.mul(x, x)

    with weft.log_compiles():
        weft.jit(scale)(2.0)
    text = caplog.text
    for part in (
        "Finished tracing scale in",
        "Compiling jit(scale) for",
        "['f32[]']",
        "Finished lowering jit(scale)",
        "Finished compiling jit(scale)",
        "test_monitoring.py",
    ):
        assert part in text, part
