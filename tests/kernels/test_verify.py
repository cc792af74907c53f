"""The verifier rejects malformed programs and says what is wrong."""

import dataclasses

import pytest
from weft_wasm.ir import nodes
from weft_wasm.compile import compile_program
from weft_wasm.ir.nodes import (
    Assign,
    Barrier,
    Binary,
    Bitcast,
    Buffer,
    Call,
    Compare,
    Const,
    Convert,
    Copy,
    Declare,
    Fail,
    For,
    If,
    Kernel,
    Let,
    Load,
    Local,
    MulAdd,
    Poll,
    Program,
    Select,
    Store,
    Unary,
    Var,
    While,
    f32,
    i32,
)
from weft_wasm.ir.verify import VerifyError, verify
from weft_wasm.passes import pipeline
from weft_wasm.passes.pipeline import Pass, run_passes, verifying

X = Buffer("x", "f32", (8,), "input")
OUT = Buffer("out", "f32", (8,), "output")
OTHER = Buffer("other", "f32", (8,), "temp")
I, J, V = Var("i"), Var("j"), Var("v", "f32")
ACC, L = Local("acc", "f32"), Local("l", "f32")


def inside(*body, **options):
    return Program("p", [X], [OUT], [], [Kernel("k", list(body))], **options)


def loop(*body, kind="parallel", **schedule):
    return inside(For(I, 8, list(body), kind, **schedule))


def tampered(thing, **attributes):
    """Something whose attributes were changed after it was made."""
    for name, value in attributes.items():
        setattr(thing, name, value)
    return thing


def rows(body, plain=(), parts=()):
    """A kernel over 8 rows that has been scheduled, and what it was."""
    return Program("p", [X], [OUT], [OTHER], [Kernel("k", list(body), plain=list(plain), parts=list(parts))])


ROWS = For(I, 8, [Store(OTHER, I, X[I]), Store(OUT, I, X[I])], "parallel")
BAD = {
    "a body of nothing": (rows([], [ROWS]), "its depth is 1, and 0 loops over rows are there"),
    "a part of nothing": (
        rows([ROWS], [], [Kernel("a", [], plain=[ROWS])]),
        "its depth is 1, and 0 loops over rows are there",
    ),
    "a temp left out": (
        rows([For(I, 8, [Store(OUT, I, X[I])], "parallel")], [ROWS]),
        "plain writes what its body does not: other",
    ),
    "an index that no number is": (
        inside(For(I, (1 << 31) - 1, [For(J, 8, [Store(OUT, I * 8 + J, f32(0.0))])])),
        "the index runs from 0 to 17179869175, outside",
    ),
    "size of a buffer": (
        Program("p", [tampered(Buffer("x", "f32", (8,), "input"), size=9)], [], [], []),
        "said to have 9 elements in 32 bytes",
    ),
    "bytes of a buffer": (
        Program("p", [tampered(Buffer("x", "f32", (8,), "input"), dtype="f64")], [], [], []),
        "said to have 8 elements in 32 bytes",
    ),
    "shape of a buffer": (
        Program("p", [Buffer("x", "f32", (-2, -4), "input")], [], [], []),
        r"p, program: inputs\[0\]: shape of Buffer x must be a tuple of at most 64, each an int from 0",
    ),
    "too large a buffer": (
        Program("p", [Buffer("x", "i8", (1 << 16, 1 << 15), "input")], [], [], []),
        r"size of Buffer x must be an int from 0 to 2147483647; got 2147483648",
    ),
    "outlined program loop": (
        Program("p", [X], [OUT], [], [For(I, 2, [], outline=True)]),
        "only a loop of a kernel can be outlined",
    ),
    "dtype of a sum": (
        loop(Store(OUT, I, tampered(Binary("add", I, I), dtype="f32"))),
        "what is computed of i32 is said to be f32 in",
    ),
    "dtype of a load": (
        loop(Store(OUT, I, tampered(Load(Buffer("n", "i32", (8,), "constant", bytes(32)), I), dtype="f32"))),
        "of i32 is said to be f32",
    ),
    "store to an input": (loop(Store(X, I, f32(0.0))), "read-only"),
    "unknown buffer": (loop(Store(OTHER, I, f32(0.0))), "not declared"),
    "load of an unknown buffer": (loop(Store(OUT, I, OTHER[I])), "not declared"),
    "unbound variable": (loop(Store(OUT, J, f32(0.0))), "j is used but not bound"),
    "out of scope": (inside(For(I, 2, [Let(V, f32(1.0))]), Store(OUT, i32(0), V)), "v is used but not bound"),
    "bound twice": (loop(For(I, 3, [])), "bound twice"),
    "wrong value dtype": (loop(Store(OUT, I, i32(1))), "the value is i32, must be f32"),
    "wrong index dtype": (loop(Store(OUT, Const(1, "i64"), f32(1.0))), "must be i32"),
    "load index dtype": (loop(Store(OUT, I, Load(X, f32(1.0)))), "index of dtype f32"),
    "mixed dtypes": (loop(Store(OUT, I, Binary("add", X[I], i32(1)))), "add of f32 and i32"),
    "unknown operation": (
        loop(Store(OUT, I, Binary("plus", X[I], X[I]))),
        "value: op of a Binary must be one of add, .*; got 'plus'",
    ),
    "unknown function": (
        loop(Store(OUT, I, Call("gamma", X[I]))),
        "value: fn of a Call must be one of .*; got 'gamma'",
    ),
    "function of an integer": (inside(Let(Var("a"), Call("exp", i32(1)))), "exp of"),
    "bitwise float": (loop(Store(OUT, I, Binary("and", X[I], X[I]))), "and of f32"),
    "not of a float": (loop(Store(OUT, I, Unary("not", X[I]))), "not of f32"),
    "muladd of ints": (inside(Let(J, MulAdd(i32(1), i32(1), i32(1)))), "muladd"),
    "arithmetic on bf16": (inside(Let(Var("a", "bf16"), Unary("neg", Convert(f32(1.0), "bf16")))), "neg of bf16"),
    "bf16 literal": (inside(Let(Var("a", "bf16"), Const(1.0, "bf16"))), "constant of dtype"),
    "literal beyond all floats": (
        inside(Let(Var("a", "f32"), Const(1 << 5000, "f32"))),
        "an int of 5001 bits is not of dtype f32",
    ),
    "literal beyond f32": (inside(Let(Var("a", "f32"), Const(1e300, "f32"))), "1e.300 is not of dtype f32"),
    "literal out of range": (inside(Let(Var("a", "u8"), Const(256, "u8"))), "not of dtype u8"),
    "bitcast of another size": (inside(Let(Var("a", "i64"), Bitcast(f32(1.0), "i64"))), "bitcast"),
    "condition": (loop(Store(OUT, I, Select(i32(1), X[I], X[I]))), "condition of dtype"),
    "compare": (loop(If(Compare("lt", I, f32(1.0)), [])), "lt of i32 and f32"),
    "if of an int": (loop(If(i32(1), [])), "must be bool"),
    "constant index": (inside(Store(OUT, i32(8), f32(0.0))), "outside out"),
    "constant load": (inside(Store(OUT, i32(0), X[-1])), "outside x"),
    "assign undeclared": (loop(Assign(ACC, f32(1.0))), "outside it"),
    "assign undeclared in sequence": (loop(Assign(ACC, f32(1.0)), kind="sequential"), "not declared here"),
    "race": (inside(Declare(ACC, f32(0.0)), For(I, 8, [Assign(ACC, ACC + X[I])], "parallel")), "declared outside it"),
    "not a reduction": (
        inside(Declare(ACC, f32(0.0)), For(I, 8, [Assign(ACC, X[I] - ACC)], "reduce")),
        "something else",
    ),
    "overwriting reduction": (
        inside(Declare(ACC, f32(0.0)), For(I, 8, [Assign(ACC, X[I])], "reduce")),
        "something else",
    ),
    "two operations": (
        inside(Declare(ACC, f32(0.0)), For(I, 8, [Assign(ACC, ACC + X[I]), Assign(ACC, ACC * X[I])], "reduce")),
        "something else",
    ),
    "accumulator read": (
        inside(Declare(ACC, f32(0.0)), For(I, 8, [Assign(ACC, ACC + X[I]), Store(OUT, I, ACC)], "reduce")),
        "reads its accumulator",
    ),
    "accumulator on both sides": (
        inside(Declare(ACC, f32(0.0)), For(I, 8, [Assign(ACC, ACC + ACC)], "reduce")),
        "reads its accumulator",
    ),
    "accumulator kept": (
        inside(
            Declare(ACC, f32(0.0)),
            For(I, 8, [Assign(ACC, ACC + X[I]), Declare(L, f32(0.0)), Assign(L, L + ACC)], "reduce"),
        ),
        "reads its accumulator",
    ),
    "accumulator copied": (
        inside(
            Declare(ACC, f32(0.0)),
            For(
                I,
                8,
                [Assign(ACC, ACC + X[I]), Declare(L, f32(0.0)), Assign(L, ACC * 2.0)],
                "reduce",
            ),
        ),
        "reads its accumulator",
    ),
    "outlined accumulator": (
        inside(Declare(ACC, f32(0.0)), For(I, 8, [Assign(ACC, ACC + X[I])], "reduce", outline=True)),
        "an outlined loop assigns",
    ),
    "vector and sequential": (loop(kind="sequential", vector=1), "only parallel and reduce"),
    "vector count": (
        loop(vector=3),
        r"body\[0\] .Kernel k., body\[0\]: vector of For i must be one of 0, 1, 2, 4, 8; got 3",
    ),
    "vector store to one place": (loop(Store(OUT, i32(0), X[I]), vector=1), "same element"),
    "vector test": (loop(If(Compare("lt", I, i32(3)), [Store(OUT, I, X[I])]), vector=1), "depends on the lane"),
    "vector extent": (loop(For(J, I, [Store(OUT, I, X[J])]), vector=1), "depends on the lane"),
    "vector let test": (
        loop(Let(V, X[I]), While([], Compare("lt", V, f32(1.0)), []), Store(OUT, I, V), vector=1),
        "depends on the lane",
    ),
    "vector barrier": (loop(Store(OUT, I, X[I]), Barrier(), vector=1), "barrier"),
    "vector poll": (loop(Store(OUT, I, X[I]), Poll(), vector=1), "a poll in a vector loop"),
    "vector reduce store": (loop(Store(OUT, 0 * I, X[I]), kind="reduce", vector=1), "same element"),
    "unknown kind": (loop(kind="simd"), "kind of For i must be one of parallel, reduce, sequential; got 'simd'"),
    "unroll": (loop(unroll=0), "unroll of For i must be an int from 1"),
    "statement in the program": (
        Program("p", [X], [OUT], [], [Store(OUT, i32(0), f32(0.0))]),
        "not a statement of the program level",
    ),
    "kernel in a kernel": (inside(Kernel("inner", [])), "not a statement of a kernel"),
    "reducing program loop": (Program("p", [X], [OUT], [], [For(I, 2, [], "reduce")]), "sequential or parallel"),
    "vector program loop": (Program("p", [X], [OUT], [], [For(I, 2, [], "parallel", vector=1)]), "has no lanes"),
    "copy too much": (Program("p", [X], [OUT], [], [Copy(OUT, X, 9)]), "exceed"),
    "copy to an input": (Program("p", [X], [OUT], [], [Copy(X, OUT, 1)]), "read-only"),
    "fail without text": (Program("p", [X], [OUT], [], [Fail(3)]), "no text"),
    "role": (Program("p", [OUT], [], [], []), "its role is output"),
    "twice": (Program("p", [X, X], [], [], []), "listed twice"),
    "constant without data": (
        Program("p", [], [], [], [], [Buffer("c", "f32", (2,), "constant", b"1234")]),
        "needs 8 bytes",
    ),
    "donation": (inside(donated={0: 1}), "don't exist"),
    "switch": (Program("p", [X], [OUT], [], [nodes.Switch(i32(0), [])]), "needs a branch"),
}


@pytest.mark.parametrize("case", BAD)
def test_rejects(case):
    program, message = BAD[case]
    with pytest.raises(VerifyError, match=message):
        verify(program)


def test_what_is_compiled_is_verified():
    with pytest.raises(VerifyError, match="read-only"):
        compile_program(BAD["copy to an input"][0])
    compile_program(inside())


def test_what_passes_change_is_verified():
    """A statement that a pass adds at the end, or leaves out there, as well; what no pass changes is verified once."""
    good, bad = inside(), BAD["copy to an input"][0]
    passed = lambda *programs: run_passes(
        [Pass(f"pass {k}", lambda _, made=made: made, "") for k, made in enumerate(programs)], good, verifying()
    )
    longer = dataclasses.replace(good, body=[*good.body, *bad.body])
    assert passed(good, good) is good
    for programs in ((longer,), (good, longer), (good, good, longer)):
        with pytest.raises(VerifyError, match=f"after pass {len(programs) - 1}: .*read-only"):
            passed(*programs)
    none = dataclasses.replace(good, body=[], calls=[object()])
    assert (
        not pipeline._same(good, none)
        and not pipeline._same(none, good)
        and pipeline._same(good, dataclasses.replace(good))
    )


def test_error_names_kernel_and_statement():
    with pytest.raises(VerifyError, match=r"p, kernel k, loop i: .*\n  in: x\[i\] = 0.0"):
        verify(BAD["store to an input"][0])


def test_accepts_the_examples():
    summed = inside(
        Declare(ACC, f32(0.0)),
        For(I, 8, [Assign(ACC, MulAdd(X[I], X[I], ACC))], "reduce", vector=2),
        Store(OUT, i32(0), ACC),
    )
    for program in (loop(Store(OUT, I, X[I]), vector=4), summed):
        assert verify(program) is None  # it raises what it finds
