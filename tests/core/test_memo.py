"""Programs that are derived from another are derived once, for its own constants."""

import numpy as np

import weft
import weft.numpy as jnp
from weft.core.jaxpr import ClosedJaxpr
from weft.core.memo import Memo, memoized, memoized_closed


def scaled() -> ClosedJaxpr:
    """The program x * scale, whose only constant is the scale."""
    scale = jnp.float32(1)
    closed = weft.make_jaxpr(lambda x: x * scale)(jnp.float32(1))
    assert len(closed.consts) == 1
    return closed


def test_a_function_of_a_jaxpr_is_computed_once_for_each():
    seen = []
    count = memoized(lambda jaxpr: seen.append(jaxpr) or None)  # None is a result too
    one, other = scaled().jaxpr, scaled().jaxpr
    assert count(one) is count(one) is count(other) is None
    assert seen == [one, other]


def test_a_function_of_a_closed_jaxpr_is_computed_for_other_constants_and_arguments():
    seen = []

    @memoized_closed
    def label(closed, text="none"):
        seen.append(text)
        return f"{text} {closed.consts[0]}"

    closed = scaled()
    two = closed.replace(consts=[2.0])
    assert [label(closed, "a"), label(closed, "a"), label(closed, text="b"), label(two, "a"), label(two)] == [
        "a 1.0",
        "a 1.0",
        "b 1.0",
        "a 2.0",
        "none 2.0",
    ]
    assert seen == ["a", "b", "a", "none"]


def test_constants_whose_place_in_memory_is_used_again_are_other_constants():
    jaxpr = scaled().jaxpr
    read = memoized_closed(lambda closed: float(closed.consts[0]))
    # each constant is freed before the next is made, which then gets its id, unless the table keeps it
    assert [read(ClosedJaxpr(jaxpr, [np.float32(k)])) for k in range(8)] == [*range(8)]


def test_tables_are_apart():
    one, other, jaxpr = Memo(), Memo(), scaled().jaxpr
    one.of(jaxpr)["a"] = 1
    assert (one.of(jaxpr), other.of(jaxpr), one.of(scaled().jaxpr)) == ({"a": 1}, {}, {})
