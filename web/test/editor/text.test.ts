/** Signatures and docstrings as text. */
import assert from "node:assert/strict";
import test from "node:test";
import { parameterDoc, parseDocstring, summaryOf } from "../../src/editor/docstring.js";
import { currentParameter, parseSignature } from "../../src/editor/signature.js";

const signature = parseSignature(
  "(a: dict[str, int], b: str = 'x, (y', /, c=[1, 2], *args: int, d: Callable[[int], str] = f, e, **rest) " +
    "-> tuple[A, B]",
);

test("a signature's parameters", () => {
  assert.deepEqual(
    signature.parameters.map(({ name, star, positional, keyword, optional }) => [
      name,
      star,
      positional,
      keyword,
      optional,
    ]),
    [
      ["a", "", true, false, false],
      ["b", "", true, false, true],
      ["c", "", true, true, true],
      ["args", "*", true, false, true],
      ["d", "", false, true, true],
      ["e", "", false, true, false],
      ["rest", "**", false, false, true],
    ],
  );
  assert.equal(signature.returns, "tuple[A, B]");
  for (const { text, from, to } of signature.parameters) assert.equal(signature.text.slice(from, to), text);
});

test("the parameter that an argument goes to", () => {
  const at = (position: number, keyword: string | null = null) => currentParameter(signature, position, keyword)?.name;
  assert.deepEqual(
    [0, 2, 3, 9].map((position) => at(position)),
    ["a", "c", "args", "args"],
  );
  assert.equal(at(1, "e"), "e");
  assert.equal(at(1, "a"), "rest"); // positional only
  assert.equal(currentParameter(parseSignature("(x)"), 1, null), null);
  assert.equal(currentParameter(parseSignature("()"), 0, null), null);
});

const doc = `The sum over \`axis\`,
in one line.

Args:
    axis: an axis,
        or several.
    lower, upper: the limits. Both count.
    **options: more.

Raises: ValueError for an axis out of bounds.

- one
- two
  and more

    literal = 1

Example:
    >>> f(1)
    2

    >>> g()
`;

test("a docstring's blocks", () => {
  assert.deepEqual(parseDocstring(doc), [
    { kind: "paragraph", text: "The sum over `axis`, in one line." },
    { kind: "heading", text: "Args" },
    {
      kind: "items",
      items: [
        { name: "axis", text: "an axis, or several." },
        { name: "lower, upper", text: "the limits. Both count." },
        { name: "**options", text: "more." },
      ],
    },
    { kind: "heading", text: "Raises" },
    { kind: "paragraph", text: "ValueError for an axis out of bounds." },
    {
      kind: "items",
      items: [
        { name: "", text: "one" },
        { name: "", text: "two and more" },
      ],
    },
    { kind: "code", text: "literal = 1" },
    { kind: "heading", text: "Example" },
    { kind: "code", text: ">>> f(1)\n2" },
    { kind: "code", text: ">>> g()" },
  ]);
  assert.equal(summaryOf(doc), "The sum over `axis`, in one line.");
});

test("what a docstring says of a parameter", () => {
  assert.equal(parameterDoc(doc, "axis"), "an axis, or several.");
  assert.equal(parameterDoc(doc, "upper"), "the limits. Both count.");
  assert.equal(parameterDoc(doc, "options"), "more.");
  assert.equal(parameterDoc(doc, "one"), "");
});

test("headings that are underlined, as other libraries have them", () => {
  assert.deepEqual(parseDocstring("A.\n\nParameters\n----------\nx : int\n    The x.\n").slice(1, 2), [
    { kind: "heading", text: "Parameters" },
  ]);
});

test("an empty docstring", () => assert.deepEqual(parseDocstring(""), []));
