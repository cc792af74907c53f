"""What is told about tracing and compiling."""
import pytest

import weft
from weft import lax, monitoring


@pytest.fixture
def events():
    seen = []
    monitoring.register_event_duration_secs_listener(lambda event, seconds, **_: seen.append((event, seconds)))
    yield seen
    monitoring.clear_event_listeners()


def test_one_trace_and_one_compilation_for_each_type(events):
    f = weft.jit(lambda x: lax.mul(x, x))
    f(2.0), f(3.0)
    assert [event for event, _ in events] == [monitoring.TRACE, monitoring.COMPILE]
    f(2)
    assert [event for event, _ in events] == [monitoring.TRACE, monitoring.COMPILE] * 2
    assert all(seconds > 0 for _, seconds in events)


def test_a_trace_within_a_trace_ends_first_and_is_part_of_it(events):
    inner = weft.jit(lambda x: lax.sin(x))
    weft.jit(lambda x: inner(lax.mul(x, x)))(2.0)
    (first, short), (second, long), (third, _) = events
    assert (first, second, third) == (monitoring.TRACE, monitoring.TRACE, monitoring.COMPILE)
    assert short <= long


def test_a_failed_trace_is_not_told(events):
    with pytest.raises(ZeroDivisionError):
        weft.jit(lambda x: x / (1 // 0))(1.0)
    assert events == []
