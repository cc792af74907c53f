"""Rewritten reduce loops stay reduce loops, also where what they accumulate becomes a constant that changes nothing."""

import pytest
from weft_wasm.emit_wgsl.legalize import Rewriter
from weft_wasm.ir.nodes import Assign, Binary, Buffer, Const, For, Load, Local, Var
from weft_wasm.ir.reductions import reductions
from weft_wasm.ir.rewriting import fresh, rewrite

CASES = [("add", 0), ("mul", 1), ("mul", 0)]


def loop(op: str) -> tuple[For, Local, Var]:
    acc, term, i = Local("acc", "i32"), Var("term", "i32"), Var("i")
    return For(i, 4, [Assign(acc, Binary(op, acc, term))], "reduce"), acc, term


@pytest.mark.parametrize("op, value", CASES)
@pytest.mark.parametrize("change", [rewrite, fresh])
def test_a_term_that_becomes_constant(change, op, value):
    s, acc, term = loop(op)
    (changed,) = change([s], {term: Const(value, "i32")})
    assert reductions(changed) == {acc: op}


@pytest.mark.parametrize("op, value", CASES)
def test_a_term_that_becomes_constant_on_other_buffers(op, value):
    s, acc, _ = loop(op)
    x, y = Buffer("x", "i32", (4,)), Buffer("y", "i32", (4,))
    term = (
        Binary("mul", Load(x, s.var), Const(0, "i32")) if value == 0 else Binary("div", Load(x, s.var), Const(1, "i32"))
    )
    s = For(s.var, 4, [Assign(acc, Binary(op, acc, term))], "reduce")
    (changed,) = Rewriter({x: y}).block([s])
    assert reductions(changed) == {acc: op}
