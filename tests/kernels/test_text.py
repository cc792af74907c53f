"""The loop IR as text."""

from weft_wasm.ir import nodes
from weft_wasm.ir.nodes import Buffer, For, Kernel, Program, Store, Var
from weft_wasm.ir.text import describe, show


def squares(times: int) -> Program:
    x, out, i = Buffer("x", "f32", (4,), "input"), Buffer("out", "f32", (4,), "output"), Var("i")
    value = x[i]
    for _ in range(times):
        value = value * value + 1.0
    return Program("squares", [x], [out], [], [Kernel("k", [For(i, 4, [Store(out, i, value)], "parallel")])])


def test_what_is_shared_is_written_once():
    text = describe(squares(60))
    assert (
        len(text.splitlines()) == 63 and "%58 = ((%57 * %57) + 1.0)" in text and "out[i] = ((%58 * %58) + 1.0)" in text
    )


def test_small_operands_are_written_where_they_are():
    x = Buffer("x", "f32", (4,), "input")
    assert show(nodes.maximum(x[0] * 2.0, x[1])) == "max((x[0] * 2.0), x[1])"
    assert "out[i] = ((x[i] * x[i]) + 1.0)" in describe(squares(1))


def test_what_index_and_value_share_is_written_once():
    out, i = Buffer("out", "i32", (12,), "output"), Var("i")
    both = i * i + i
    text = describe(Program("p", [], [out], [], [Kernel("k", [For(i, 3, [Store(out, both, both * 3)], "parallel")])]))
    assert text.count("(i * i)") == 1 and "] = (%0 * 3)" in text, text


def test_the_text_of_an_expression_is_what_a_debugger_shows():
    e = Buffer("x", "f32", (4,), "input")[Var("i")] + 1.0
    assert repr(e) == show(e) == "(x[i] + 1.0)"


def test_the_text_of_what_is_shared_without_end_has_one():
    e = Buffer("x", "f32", (8,), "input")[Var("i")]
    for _ in range(100):
        e = e + e
    assert "…" in show(e) and len(show(e)) < 200_000 and repr(e) == show(e)
