import assert from "node:assert/strict";
import test from "node:test";
import { bindingAt, visibleAt } from "../../src/editor/scopes.js";
import { program } from "./program.js";

/** The names that a program uses and does not bind. */
const free = (text: string): string[] => program(text).names.free.map(({ name }) => name);

/** A program with `|` before a name: where that name is bound and used, as line:column. */
function places(marked: string): string[] {
  const pos = marked.indexOf("|");
  const text = marked.replace("|", "");
  const binding = bindingAt(program(text).names, pos);
  const all = [...(binding?.definitions ?? []), ...(binding?.uses ?? [])].map(({ from }) => from);
  return [...new Set(all)]
    .sort((a, b) => a - b)
    .map((from) => {
      const lines = text.slice(0, from).split("\n");
      return `${lines.length}:${lines.at(-1)!.length}`;
    });
}

for (const [what, text, expected] of [
  ["assignment", "a = b\na", ["b"]],
  ["unpacking", "a, (b, *c), [d] = x\na, b, c, d", ["x"]],
  ["targets that bind nothing", "a.b = 1\nc[d] = 2", ["a", "c", "d"]],
  ["augmented assignment", "x += 1", ["x"]],
  ["annotations", "x: int = y\nz: t\nz", ["int", "y", "t"]],
  ["imports", "import a.b, c as d\nfrom e import f as g, h\na, d, g, h, c, f, b", ["c", "f", "b"]],
  ["relative imports", "from . import a\nfrom ..b import (c as d,\n e)\na, d, e", []],
  ["functions", "def f(a, /, b=u, *c, d: v, **e) -> w:\n    return a, b, c, d, e, f\na", ["u", "v", "w", "a"]],
  ["lambdas", "lambda a, *b, c=d: (a, b, c, e)", ["d", "e"]],
  ["classes", "class A(B, metaclass=M):\n    x = 1\n    y = x\n    def f(self): return x\nA", ["B", "M", "x"]],
  ["a class body that shadows", "import s\nclass A:\n    t = s.x\n    def s(self): pass", []],
  ["comprehensions", "[x for x in y if x for z in x]\nx, z", ["y", "x", "z"]],
  [
    "the first iterable of a comprehension in a class",
    "class A:\n    n = 3\n    a = [i for i in n]\n    b = [n for i in n]",
    ["n"],
  ],
  ["generators as arguments", "sum(x * k for x in y)", ["sum", "k", "y"]],
  ["assignment expressions", "if (n := f()): n\n[y for x in z if (y := x)]\ny", ["f", "z"]],
  ["assignment expressions as arguments", "print(m := 1)\nm", ["print"]],
  ["keyword arguments", "f(a=b)", ["f", "b"]],
  ["loops", "for i, (a, *b) in c:\n    i, a, b\nelse: d", ["c", "d"]],
  ["with", "with a as b, c() as d:\n    b, d", ["a", "c"]],
  ["exceptions", "try: a\nexcept (B, C) as e: e\nfinally: d", ["a", "B", "C", "d"]],
  ["a caught NameError", "try:\n    unicode\nexcept NameError:\n    unicode = str", ["NameError", "str"]],
  ["global", "def f():\n    global x\n    x = 1\nx", []],
  ["nonlocal", "def f():\n    y = 1\n    def g():\n        nonlocal y\n        y = 2\n    return y", []],
  [
    "match",
    "match p:\n    case A(x=1, y=b) as q: b, q\n    case {'k': v, **rest}: v, rest\n    case [h, *t] | m.N: h, t",
    ["p", "A", "m"],
  ],
  ["decorators", "@a.b(c)\ndef f(): pass", ["a", "c"]],
  ["type parameters", "def f[T: B](x: T) -> T: T\nclass C[U]: U\ntype X[V] = V\nT, X", ["B", "T"]],
  ["format strings", 'f"{x!r:{y}} {z=}"', ["x", "y", "z"]],
  ["deletion", "x = 1\ndel x", []],
  ["await at the top", "await x\nasync for i in y: i\nasync with z as w: w", ["x", "y", "z"]],
  ["attributes", "a.b.c(d).e", ["a", "d"]],
] as [string, string, string[]][])
  test(`names that ${what} leaves free`, () => assert.deepEqual(free(text), expected));

test("a name that its own body binds later is early, in functions it is not", () => {
  const { free: found } = program("print(x)\nx = 1\ndef f(): return y\ny = 2\nfor i in z: w; w = 1\n").names;
  assert.deepEqual(
    found.map(({ name, early }) => [name, early]),
    [
      ["print", false],
      ["x", true],
      ["z", false],
    ],
  );
});

test("annotations are read late", () => assert.deepEqual(free("def f(a: B) -> B: pass\nclass B: pass"), []));

test("what stands in statements that can't be read is doubtful, not free", () => {
  const { names } = program("with open(a) as (b, c):\n    pass\nb\n");
  assert.ok(names.doubtful.has("b"));
  assert.deepEqual(
    names.free.map(({ name }) => name).filter((name) => name !== "b"),
    [],
  );
});

for (const [what, marked, expected] of [
  ["a parameter, not the global", "x = 1\ndef f(|x):\n    return x\nx", ["2:6", "3:11"]],
  ["the global, not the parameter", "|x = 1\ndef f(x): return x\nx, f(x=2)", ["1:0", "3:0"]],
  ["a loop variable", "for |i in a:\n    i\ni", ["1:4", "2:4", "3:0"]],
  ["through a closure", "def f():\n    |n = 1\n    def g(): return n\n    return n", ["2:4", "3:20", "4:11"]],
  ["through global", "|n = 1\ndef f():\n    global n\n    n = 2", ["1:0", "3:11", "4:4"]],
  ["a comprehension's own", "x = 1\n[|x for x in y]\nx", ["2:1", "2:7"]],
  ["in format strings", 'a = 1\nf"{|a}"', ["1:0", "2:3"]],
  ["not attributes", "a = b.a\n|a.a", ["1:0", "2:0"]],
] as [string, string, string[]][])
  test(`a name's places: ${what}`, () => assert.deepEqual(places(marked), expected));

test("code sees names from inside out, and none of a class around a method", () => {
  const text = "a = 1\nclass C:\n    b = 2\n    def f(self, d):\n        e = 3\n        pass\n";
  const names = [...visibleAt(program(text).names, text.indexOf("pass")).keys()];
  assert.deepEqual(names, ["self", "d", "e", "a", "C"]);
});
