"""Temps that an iteration writes wholly before it reads them, and temps that it may read from the iteration before."""

import pytest
from weft_wasm.ir import nodes
from weft_wasm.ir.nodes import (
    Assign,
    Buffer,
    Copy,
    Declare,
    For,
    If,
    Kernel,
    Let,
    Local,
    Program,
    Store,
    Switch,
    Var,
    While,
    i32,
)
from weft_wasm.passes.liveness import lifetimes

N, M = 6, 4
X, OUT = Buffer("x", "i32", (N, M), "input"), Buffer("out", "i32", (N, M), "output")
T = Buffer("t", "i32", (N, M))
FLAG = Buffer("flag", "bool", ())
t, i, j, k, v = (Var(name) for name in ("step", "i", "j", "k", "v"))
AT = i * M + j


def nest(*body, outer=i, inner=j) -> list:
    return [
        For(outer, N if outer is i else M, [For(inner, M if inner is j else N, list(body), "parallel")], "parallel")
    ]


READ = Kernel("read", [For(k, N * M, [Store(OUT, k, T[k])], "parallel")])
ACC = Local("acc", "i32")

FILLS = {
    "a nest": [Kernel("k", nest(Store(T, AT, X[AT])))],
    "a nest inside out": [Kernel("k", nest(Store(T, AT, X[AT]), outer=j, inner=i))],
    "one loop": [Kernel("k", [For(k, N * M, [Store(T, k, X[k])])])],
    "two halves": [Kernel("k", [For(k, 10, [Store(T, k, X[k])]), For(j, 14, [Store(T, j + 10, X[j])])])],
    "neighbours": [Kernel("k", [For(k, 12, [Store(T, k * 2, X[k]), Store(T, k * 2 + 1, X[k])])])],
    "rows, each read when it is written": [
        Kernel(
            "k",
            [
                For(
                    i,
                    N,
                    [
                        For(j, M, [Store(T, AT, X[AT])]),
                        For(k, M, [Store(OUT, i * M + k, T[i * M + (M - 1)] + T[i * M + k])]),
                    ],
                )
            ],
        )
    ],
    "what the same iteration has written": [Kernel("k", nest(Store(T, AT, X[AT]), Store(OUT, AT, T[AT] + 1)))],
    "both branches": [If(FLAG[0], [Kernel("a", nest(Store(T, AT, X[AT])))], [Copy(T, X, N * M)])],
    "all branches": [Switch(i32(1), [[Copy(T, X, N * M)], [Copy(T, X, N * M)]])],
    "branches of a kernel": [
        Kernel("k", [If(nodes.lt(t, 2), nest(Store(T, AT, X[AT])), [For(k, N * M, [Store(T, k, i32(0))])])])
    ],
    "a copy": [Copy(T, X, N * M)],
    "a loop that runs": [For(v, 2, [Kernel("k", nest(Store(T, AT, X[AT] + v)))])],
    "the condition of a while": [While([Kernel("k", nest(Store(T, AT, X[AT])))], FLAG[0], [READ])],
    "several times": [Kernel("k", [For(v, 3, [For(k, N * M, [Store(T, k, X[k])])])])],
}

NEEDS = {
    "one element": [Kernel("k", [Store(T, t, X[t])])],
    "one row": [Kernel("k", [For(j, M, [Store(T, t * M + j, X[j])])])],
    "all but one": [Kernel("k", [For(k, N * M - 1, [Store(T, k, X[k])])])],
    "all but the first": [Kernel("k", [For(k, N * M - 1, [Store(T, k + 1, X[k])])])],
    "every other": [Kernel("k", [For(k, 12, [Store(T, k * 2, X[k])])])],
    "a sum": [Kernel("k", [For(k, N * M, [Store(T, k, T[k] + X[k])])])],
    "what comes after": [Kernel("k", nest(Store(T, AT, X[AT]), Store(OUT, AT, T[nodes.minimum(AT + 1, N * M - 1)])))],
    "the next row": [
        Kernel(
            "k",
            [
                For(
                    i,
                    N,
                    [
                        For(j, M, [Store(T, AT, X[AT])]),
                        For(k, M, [Store(OUT, i * M + k, T[nodes.minimum(i + 1, N - 1) * M + k])]),
                    ],
                )
            ],
        )
    ],
    "one branch": [If(FLAG[0], [Copy(T, X, N * M)])],
    "one branch of a kernel": [Kernel("k", [If(nodes.lt(t, 2), nest(Store(T, AT, X[AT])))])],
    "one branch of a switch": [Switch(i32(1), [[Copy(T, X, N * M)], [], [Copy(T, X, N * M)]])],
    "half a copy": [Copy(T, X, 10)],
    "a copy from a place on": [Copy(T, X, 10, 14)],
    "a loop that may not run": [For(v, X[0], [Kernel("k", nest(Store(T, AT, X[AT])))])],
    "a loop of a kernel that may not run": [Kernel("k", [For(v, X[0], nest(Store(T, AT, X[AT])))])],
    "a loop of unknown length": [Kernel("k", [For(k, X[0], [Store(T, k, X[k])])])],
    "the body of a while": [While([], FLAG[0], [Kernel("k", nest(Store(T, AT, X[AT])))])],
    "the body of a while of a kernel": [
        Kernel(
            "k", [Declare(ACC, i32(3)), While([], nodes.gt(ACC, 0), [Assign(ACC, ACC - 1), *nest(Store(T, AT, X[AT]))])]
        )
    ],
    "places from memory": [Kernel("k", [For(k, N * M, [Let(v, X[k]), Store(T, nodes.clamp(0, v, 23), X[k])])])],
    "read first": [READ, Copy(T, X, N * M)],
}


def lives_through(body: list) -> bool:
    """Whether T holds its content from one iteration of a loop with this body to the next, as the flag does that is
    set before the loop.
    """
    begin = Kernel("begin", [Store(FLAG, i32(0), nodes.gt(X[0], 0))])
    use = Kernel("use", [If(FLAG[0], [Store(OUT, i32(0), t)])])
    lives = lifetimes(Program("p", [X], [OUT], [T, FLAG], [begin, For(t, 5, [use, *body, READ])]))
    return lives[T][1] == lives[FLAG][1]


@pytest.mark.parametrize("case", FILLS)
def test_what_is_written_wholly_first_ends_with_the_iteration(case):
    assert not lives_through(FILLS[case])


@pytest.mark.parametrize("case", NEEDS)
def test_what_may_be_read_from_the_iteration_before_lives_on(case):
    assert lives_through(NEEDS[case])
