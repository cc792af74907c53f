"""Programs of loop IR damaged in one or two places: in any attribute of a statement, an expression, a buffer, or the
program.
"""

from __future__ import annotations

import copy
import pickle
import random
from typing import Any

from weft_wasm.ir import nodes, traversal
from weft_wasm.ir.attributes import CHECKS, WORDS
from weft_wasm.ir.nodes import Buffer, Const, Expr, Local, Program, Stmt, Var

NUMBERS = [0, 1, 2, 3, 4, 7, 8, 16, 64, -1, -7, (1 << 31) - 1, 1 << 31, -(1 << 31), 1 << 70]
JUNK = [
    None,
    1.5,
    float("nan"),
    True,
    "x",
    b"x",
    (),
    [],
    {},
    object(),
    1 << 5000,
    "\ud800",
    "x" * 5000,
    int,
    [None],
    [[]],
    {1: 1},
]
LEAST = 0.12  # how often a value is replaced by what can't be one


class Mutator:
    """Damages a copy of a program. `what` says how."""

    def __init__(self, program: Program, seed: int):
        self.rng = random.Random(seed)
        self.program: Program = pickle.loads(pickle.dumps(program))
        p = self.program
        self.statements: list[Stmt] = [
            s
            for outer in traversal.walk(p.body)
            for s in (outer, *(traversal.walk([*outer.plain, *outer.parts]) if type(outer) is nodes.Kernel else ()))
        ]
        models = dict.fromkeys(s.kernel for s in self.statements if type(s) is nodes.Instance)
        self.statements += traversal.walk([kernel for kernel in models if kernel not in self.statements])
        seen: set[Expr] = set()
        self.nodes: list[Expr] = [
            node for s in self.statements for e in traversal.expressions(s) for node in traversal.walk_expr(e, seen)
        ]
        self.buffers: list[Buffer] = list(dict.fromkeys([*p.inputs, *p.outputs, *p.temps, *traversal.constants_of(p)]))
        for node in self.nodes:
            for found in ("_loaded", "_below", "_linear"):  # what has been found out of it so far
                if hasattr(node, found):
                    delattr(node, found)
        self.names: list[Expr] = [n for n in self.nodes if type(n) in (Var, Local)] or [Var("none")]
        self.what = "; ".join(self.damage() for _ in range(self.rng.choice((1, 1, 1, 2))))

    def damage(self) -> str:
        groups: list[list[Any]] = [self.statements, self.nodes, self.buffers, [self.program]]
        target = self.rng.choice(self.rng.choices(groups, [9, 12, 2, 1])[0] or self.statements)
        if not CHECKS[type(target)]:
            return "nothing"
        name = self.rng.choice(CHECKS[type(target)])[0]
        where = f"{type(target).__name__}.{name}"
        if not hasattr(target, name):
            return f"{where} is gone already"
        old = getattr(target, name)
        if self.rng.random() < LEAST or not whole(old):
            if self.rng.random() < 0.1:
                delattr(target, name)
                return f"{where} deleted"
            new = self.rng.choice(JUNK)
        else:
            new = self.other(where, old)
        setattr(target, name, new)
        return f"{where}: {shortly(old)} became {shortly(new)}"

    def other(self, where: str, old: Any) -> Any:
        """Another value for an attribute, of the same kind mostly."""
        pick = self.rng.choice
        if isinstance(old, bool):
            return not old
        if isinstance(old, int):
            return pick([old + 1, old - 1, 2 * old, old // 2, pick(NUMBERS)])
        if isinstance(old, float):
            return pick([-old, old + 1, 0.0, float("inf"), 1e300])
        if isinstance(old, str):
            words = WORDS.get(where)
            return pick(sorted(words)) if words else pick(["", "é" * 40, "a b\n\"'\\", "main", old[::-1]])
        if isinstance(old, (Var, Local)) and where.split(".")[0] in ("For", "Let", "Declare", "Assign"):
            return pick(
                [
                    pick([n for n in self.names if type(n) is type(old)] or [old]),
                    pick(self.names),
                    type(old)("stranger", old.dtype),
                ]
            )
        if isinstance(old, nodes.Node):
            return self.expression(old)
        if isinstance(old, Buffer):
            return pick(
                [
                    pick([b for b in self.buffers if alike(b, old)]),
                    pick(self.buffers),
                    Buffer("stranger", old.dtype, old.shape, old.role),
                ]
            )
        if isinstance(old, list):
            return self.several(list(old))
        if isinstance(old, tuple):
            return pick(
                [
                    (),
                    old[:-1],
                    old[::-1],
                    (*old, 2),
                    (*old, *old[:1]),
                    (0, *old[1:]),
                    (pick(NUMBERS), *old[1:]),
                    (*old[1:], pick(self.nodes or [3])),
                ]
            )
        if isinstance(old, dict):
            return {**old, pick(NUMBERS): pick([*NUMBERS, "text"])} if self.rng.random() < 0.8 else {}
        if old is None or isinstance(old, bytes):
            return pick([None, b"", (old or b"") + b"1", (old or b"")[:-1], bytes(len(old or b"")), bytes(32)])
        raise TypeError(f"no way is defined to damage {where}: {old!r}")

    def expression(self, old: Any) -> Any:
        pick = self.rng.choice
        same = [n for n in self.nodes if alike(n, old)]
        choice = self.rng.randrange(6)
        if choice < 2:
            return pick(same or [old])
        if choice == 2:
            return pick(self.nodes)
        if choice == 3 and old.dtype in nodes.INTEGERS | nodes.FLOATS:
            return nodes.Binary(pick(["add", "sub", "mul", "min", "max"]), old, pick(same or [old]))
        if choice == 4:
            return Const(pick([0, 1, 7, -1, 99]), pick(["i32", old.dtype]))
        return pick([pick(same or [old]), pick(self.names), pick(NUMBERS)])

    def several(self, items: list[Any]) -> list[Any]:
        """A list of statements, blocks or buffers, damaged."""
        pick, at = self.rng.choice, self.rng.randrange(len(items) + 1)
        choice = self.rng.randrange(9)
        if choice < 2 and items:
            items.pop(min(at, len(items) - 1))
        elif choice < 4 and items:
            items.insert(at, pick(items))
        elif choice == 4 and len(items) > 1:
            items.reverse()
        elif choice == 5 and len(items) > 1:
            k = min(at, len(items) - 2)
            items[k], items[k + 1] = items[k + 1], items[k]
        elif choice == 6:
            items.insert(
                at, copy.copy(pick(self.buffers if items and isinstance(items[0], Buffer) else self.statements))
            )
        elif choice == 7:
            items.insert(at, pick([None, 3, "x", [], pick(self.buffers), pick(self.statements)]))
        else:
            items.clear()
        return items


def whole(x: Any) -> bool:
    """Whether a value is of a kind that a program holds, and was not damaged before."""
    if isinstance(x, (nodes.Node, Buffer)):
        return isinstance(getattr(x, "dtype", None), str) and all(hasattr(x, name) for name, *_ in CHECKS[type(x)])
    return x is None or isinstance(x, (bool, int, float, str, bytes, list, tuple, dict))


def alike(a: Any, b: Any) -> bool:
    """Whether two nodes or buffers have one dtype; one damaged before may have none."""
    return getattr(a, "dtype", None) == getattr(b, "dtype", None)


def shortly(x: Any) -> str:
    """A value of a damaged program in a few words, whatever it is."""
    try:
        text = repr(x)
    except Exception as e:
        text = f"a {type(x).__name__} ({type(e).__name__})"
    return " ".join(text.split())[:120]
