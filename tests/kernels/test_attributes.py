"""Every attribute of every node of the loop IR is checked: its type, and what it may be."""

import copy
from types import SimpleNamespace
from typing import get_args

import pytest
from weft_wasm.ir import attributes, nodes, traversal
from weft_wasm.ir.checks import brief
from weft_wasm.ir.attributes import CHECKS, MOST_DEPTH, MOST_NESTING, RANGES, WORDS, VerifyError
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
    Expr,
    Fail,
    For,
    HostCall,
    If,
    Instance,
    Kernel,
    Let,
    Local,
    MulAdd,
    Poll,
    Program,
    Select,
    Stmt,
    Store,
    Switch,
    Unary,
    Var,
    While,
    f32,
    i32,
)
from weft_wasm.ir.verify import MOST_COPIES, verify

KINDS = (*get_args(Expr), *get_args(Stmt), Buffer, Program)


def everything():
    """A program with every kind of node, and one of each kind."""
    x, out, flag, table = (
        Buffer("x", "f32", (8,), "input"),
        Buffer("out", "f32", (8,), "output"),
        Buffer("flag", "bool", ()),
        Buffer("table", "i32", (4,)),
    )
    y = Buffer("y", "f32", x.shape, "input")
    i, j, k, v, acc = Var("i"), Var("j"), Var("k"), Var("v", "f32"), Local("acc", "f32")
    value = MulAdd(
        Select(Compare("lt", x[i], f32(1.0)), Unary("neg", x[i]), Call("exp", x[i])),
        Bitcast(i, "f32"),
        Binary("add", v, Convert(i, "f32")),
    )
    body = [
        Let(v, f32(2.0)),
        Declare(acc, f32(0.0)),
        Barrier(),
        For(j, 8, [Assign(acc, acc + x[j])], "reduce"),
        For(i, 8, [Store(out, i, value)], "parallel", 1),
        If(
            Compare("lt", acc, f32(0.0)),
            [Store(out, i32(0), acc)],
            [Switch(Convert(acc, "i32"), [[], [Store(out, i32(1), acc)]])],
        ),
        While([], Const(False, "bool"), [Barrier()]),
        Poll(),
    ]
    kernel = Kernel("k", body)
    program = Program(
        "p",
        [x, y],
        [out],
        [flag, table],
        [
            kernel,
            Copy(out, x, 2),
            Kernel("flag", [Store(flag, i32(0), Const(True, "bool"))]),
            While([], flag[0], [For(k, 3, [If(flag[0], [Fail(1)])])]),
            HostCall(0, table, [x], [out]),
            Instance("again", kernel, {x: y}),
        ],
        errors={1: "it failed"},
        calls=[SimpleNamespace(ins=[0], outs=[0])],
    )
    nodes = {
        type(n): n
        for s in traversal.walk(program.body)
        for e in traversal.expressions(s)
        for n in traversal.walk_expr(e)
    }
    nodes |= {type(s): s for s in reversed(list(traversal.walk(program.body)))} | {
        Buffer: x,
        Program: program,
        Var: v,
        Local: acc,
    }
    return program, nodes


def junk(value):
    """What no attribute may be, and what this one may not: other types, numbers too small and too large, a word that
    is none.
    """
    yield from (
        object(),
        1.5 if not isinstance(value, float) else "1",
        [None],
        {None: None},
        "nonsense" if type(value) is not str else 3,
        b"x" if value is not None else 5,
    )
    if type(value) is int:
        yield from (True, -1 << 70, 1 << 70, -(1 << 31) - 1)
    if type(value) is bool:
        yield from (1, None)
    if type(value) is list:
        yield from (tuple(value), [*value, 3], [*value, Barrier] if value else [Barrier])


def test_there_is_a_sample_of_each_kind_and_each_is_good():
    program, nodes = everything()
    verify(program)
    assert set(nodes) == set(KINDS) == set(CHECKS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_attribute_is_checked(kind):
    program, nodes = everything()
    node = nodes[kind]
    stored = list(kind.__slots__)
    assert [name for name, _ in CHECKS[kind]] == stored
    for name in stored:
        old = getattr(node, name)
        for new in junk(old):
            if (
                kind is Const
                and name == "value"
                and isinstance(new, (bool, int, float))
                or name == "name"
                and new == "nonsense"
                or name == "data"
                and new == b"x"
            ):
                continue  # which depends on the dtype, or is one
            setattr(node, name, new)
            with pytest.raises(VerifyError, match=rf"(?s){name}.* must be .*; got ") as refused:
                verify(program)
            assert len(str(refused.value).splitlines()) <= 10
        delattr(node, name)
        with pytest.raises(VerifyError, match=f"has no {name}"):
            verify(program)
        setattr(node, name, old)
    verify(program)


def test_somebody_has_said_what_every_attribute_may_be():
    """A new attribute without an entry, or of a type that nobody knows, fails at once; entries of attributes that
    are gone do here.
    """
    for declared in (int, str, float, set[int], complex):
        with pytest.raises(TypeError, match="there is no rule for the values of For.speed, declared"):
            attributes.check_of("For.speed", declared)
    known = {f"{kind.__name__}.{name}" for kind in KINDS for name, _ in CHECKS[kind]}
    assert {*RANGES, *WORDS, *attributes._OPEN} <= known


PLACES = {
    "an operand": (
        lambda p, n: setattr(n[Binary].b, "x", None),
        (
            r"p, body\[0\] \(Kernel k\), body\[4\] \(For i\), body\[0\]: value\.c\.b: x of a Convert must be an"
            r" expression; got None"
        ),
    ),
    "an argument": (
        lambda p, n: setattr(n[Call], "args", (n[Call], None)),
        r"value\.a\.b: args of a Call must be a tuple, each an expression; got a tuple of 2",
    ),
    "a branch": (
        lambda p, n: setattr(n[Switch].branches[1][0], "value", 3),
        (
            r"body\[5\] \(a If\), orelse\[0\] \(a Switch\), branches\[1\]\[0\]: value of a Store must be an expression;"
            r" got 3"
        ),
    ),
    "a part": (
        lambda p, n: n[Kernel].parts.append(Kernel("part", [None])),
        r"body\[0\] \(Kernel k\), parts\[0\]: body of Kernel part must be a list, each a statement; got a list of None",
    ),
    "a buffer": (
        lambda p, n: setattr(n[HostCall].results[0], "dtype", "f8"),
        r"p, program: outputs\[0\]: dtype of Buffer out must be one of",
    ),
    "an undeclared buffer": (
        lambda p, n: setattr(n[Copy], "src", Buffer("s", "f32", (1 << 31,))),
        r"body\[1\]: src: size of Buffer s must be",
    ),
    "a name": (
        lambda p, n: setattr(n[Var], "name", "\ud800"),
        r"body\[0\]: var: name of a Var must be a text of at most 1000 printable characters; got ",
    ),
    "an expression in itself": (
        lambda p, n: setattr(n[Unary], "x", n[MulAdd]),
        r"body\[0\]: value\.a\.a\.?: a Unary contains itself",
    ),
    "a block in itself": (lambda p, n: n[If].then.append(n[If]), rf"statements nest more than {MOST_NESTING} deep"),
}


@pytest.mark.parametrize("case", PLACES)
def test_errors_name_the_place(case):
    program, nodes = everything()
    damage, message = PLACES[case]
    damage(program, nodes)
    with pytest.raises(VerifyError, match=message):
        verify(program)


def chain(n):
    x, out, i = Buffer("x", "f32", (8,), "input"), Buffer("out", "f32", (8,), "output"), Var("i")
    value = x[i]
    for _ in range(n):
        value = value + value
    return Program("deep", [x], [out], [], [Kernel("k", [For(i, 8, [Store(out, i, value)], "parallel")])])


def nest(n, wide=1):
    out, test = Buffer("out", "f32", (8,), "output"), nodes.lt(i32(0), 1)
    body = [For(i := Var("i"), 8, [Store(out, i, f32(0.0))], "parallel")]
    for _ in range(n):
        body = [If(test, body)] * wide
    return Program("nest", [], [out], [], [Kernel("k", body)])


@pytest.mark.parametrize("make,most", [(chain, MOST_DEPTH - 2), (nest, MOST_NESTING - 3)])
def test_what_nests_as_deeply_as_it_may_can_be_compiled(make, most):
    """Whatever walks programs, recursively, must reach the bottom of them."""
    for features in ((), ("simd128",)):
        compile_program(make(most), features)
    with pytest.raises(VerifyError, match="nest more than"):
        verify(make(most + 1))


def test_programs_that_grow_when_they_are_written_down_are_refused(monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(VerifyError, match="more than 1000 statements"):
        patch.setattr(attributes, "MOST_STATEMENTS", 1000)
        verify(nest(100, wide=2))
    x, out, names = (
        Buffer("x", "f32", (1 << 20,), "input"),
        Buffer("out", "f32", (1 << 20,), "output"),
        [Var(n) for n in "abcd"],
    )
    body = [Store(out, names[0], x[names[0]])]
    for var in names:
        body = [For(var, 32, body, unroll=32)]
    with pytest.raises(
        VerifyError,
        match=(
            f"p, kernel k, loop d, loop c, loop b, loop a: unrolled loops make more than {MOST_COPIES} statements of"
            " the program"
        ),
    ):
        verify(Program("p", [x], [out], [], [Kernel("k", body)]))


def test_messages_stay_short():
    program = chain(60)
    last = program.body[0].body[0].body[0]
    last.value = copy.copy(last.value)
    last.value.dtype = "f64"
    with pytest.raises(VerifyError) as refused:
        verify(program)
    assert len(str(refused.value)) < 1500 and all(len(line) < 500 for line in str(refused.value).splitlines())


def test_values_are_shown_in_a_few_words():
    assert brief((1 << 200) - 1) == repr((1 << 200) - 1) and brief(1 << 200) == "an int of 201 bits"
