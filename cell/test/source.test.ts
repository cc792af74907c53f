import assert from "node:assert/strict";
import { test } from "node:test";
import { dedent, pieces } from "../src/source.js";

test("text of an element loses the page's indentation, and nothing of its own", () => {
  assert.equal(dedent("\n    for i in x:\n        print(i)\n\n    done()\n  "), "for i in x:\n    print(i)\n\ndone()");
  assert.equal(dedent("a = 1\r\n  b = 2  \r\n"), "a = 1\n  b = 2");
  assert.equal(dedent("\ta\n\t\tb"), "a\n\tb");
  assert.equal(dedent("  a\n\tb"), "  a\n\tb"); // tabs and spaces share nothing
  assert.equal(dedent(" \n\n"), "");
});

const kinds = (code: string) =>
  pieces(code)
    .filter(({ kind }) => kind)
    .map(({ kind, text }) => `${kind} ${text}`);

test("pieces are the whole text, in colours", () => {
  const code = 'def f(x):  # "twice"\n    return 2.5e3 * x + len(f"""a\nb""") if x else \'it\\\'s\'\n';
  assert.equal(
    pieces(code)
      .map(({ text }) => text)
      .join(""),
    code,
  );
  assert.deepEqual(kinds(code), [
    "keyword def",
    "definition f",
    'comment # "twice"',
    "keyword return",
    "number 2.5e3",
    "name len",
    'string f"""a\nb"""',
    "keyword if",
    "keyword else",
    "string 'it\\'s'",
  ]);
});

test("names that begin with a keyword, and strings without end", () => {
  assert.deepEqual(kinds("format = island2"), []);
  assert.deepEqual(kinds('x = "open\ny = 1'), ['string "open', "number 1"]);
});
