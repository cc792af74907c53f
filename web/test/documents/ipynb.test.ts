import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { fromIpynb, ipynbName, toIpynb } from "../../src/documents/ipynb.js";
import { commentMagics } from "../../src/documents/magics.js";
import { LIMITS, newDocument } from "../../src/documents/model.js";
import { documents, said, source } from "./arbitrary.js";

interface Parts {
  cells?: unknown;
  metadata?: unknown;
  nbformat?: unknown;
  nbformat_minor?: unknown;
}

const notebook = (parts: Parts = {}) =>
  JSON.stringify({ cells: [], metadata: {}, nbformat: 4, nbformat_minor: 5, ...parts });
const code = (...sources: unknown[]) =>
  sources.map((each) => ({ cell_type: "code", metadata: {}, source: each, outputs: [], execution_count: null }));
const read = (text: string) => fromIpynb(text, "a.ipynb");

test("every document comes back, ids too", () => {
  fc.assert(
    fc.property(documents, (document) => {
      // Lines of IPython's are no Python, and become comments.
      const cells = document.cells.map((cell) =>
        cell.kind === "code" ? { ...cell, source: commentMagics(cell.source).source } : cell,
      );
      const again = fromIpynb(toIpynb(document), ipynbName(document)).document;
      assert.deepEqual(again.cells, cells);
      assert.deepEqual(said(again), said({ ...document, cells }));
    }),
    { numRuns: 2000 },
  );
});

test("what is written is nbformat 4.5", () => {
  const document = newDocument({
    title: "Digits",
    form: "notebook",
    cells: [
      { id: "a", kind: "markdown", source: "# Title\n\ntext" },
      { id: "b", kind: "code", source: "x\n" },
      { id: "c", kind: "code", source: "" },
    ],
  });
  const outputs = new Map([
    [
      "b",
      [
        { type: "stream", name: "stdout", text: "one\ntwo" } as const,
        {
          type: "display",
          data: { "text/plain": "a\nb", "image/png": "iVBO", "application/json": { x: [1] } },
        } as const,
        { type: "error", name: "ValueError", message: "bad", traceback: "line 1\nValueError: bad" } as const,
      ],
    ],
  ]);
  assert.deepEqual(JSON.parse(toIpynb(document, outputs)), {
    cells: [
      { cell_type: "markdown", id: "a", metadata: {}, source: ["# Title\n", "\n", "text"] },
      {
        cell_type: "code",
        execution_count: null,
        id: "b",
        metadata: {},
        outputs: [
          { name: "stdout", output_type: "stream", text: ["one\n", "two"] },
          {
            data: { "text/plain": ["a\n", "b"], "image/png": "iVBO", "application/json": { x: [1] } },
            metadata: {},
            output_type: "display_data",
          },
          { ename: "ValueError", evalue: "bad", output_type: "error", traceback: ["line 1", "ValueError: bad"] },
        ],
        source: ["x\n"],
      },
      { cell_type: "code", execution_count: null, id: "c", metadata: {}, outputs: [], source: [] },
    ],
    metadata: {
      kernelspec: { display_name: "Python 3", language: "python", name: "python3" },
      language_info: { name: "python" },
      title: "Digits",
      weft: { form: "notebook", backend: "wasm", x64: false },
    },
    nbformat: 4,
    nbformat_minor: 5,
  });
});

test("notebooks of formats 4.0 to 4.5 are read: without ids, sources as text or lines, raw cells", () => {
  for (let minor = 0; minor <= 5; minor++) {
    const { document, notices } = read(
      notebook({
        nbformat_minor: minor,
        cells: [
          { cell_type: "markdown", metadata: {}, source: ["# A\n", "b"] },
          { cell_type: "raw", metadata: {}, source: "raw text" },
          { cell_type: "code", metadata: { collapsed: true }, source: "x = 1", outputs: [{ any: "thing" }] },
        ],
      }),
    );
    assert.deepEqual(notices, []);
    assert.equal(document.title, "a");
    assert.deepEqual(
      document.cells.map(({ kind, source }) => [kind, source]),
      [
        ["markdown", "# A\nb"],
        ["markdown", "raw text"],
        ["code", "x = 1"],
      ],
    );
    assert.equal(new Set(document.cells.map(({ id }) => id)).size, 3);
  }
});

test("ids that are no ids, or are there twice, are replaced", () => {
  const cells = ["ok", "ok", "a b", "", 7, "x".repeat(65)].map((id) => ({ cell_type: "markdown", id, source: "" }));
  const ids = read(notebook({ cells })).document.cells.map(({ id }) => id);
  assert.equal(ids[0], "ok");
  assert.equal(new Set(ids).size, 6);
  assert.ok(ids.every((id) => /^[\w-]{1,64}$/.test(id)));
});

test("IPython's lines become comments, Python's don't", () => {
  for (const [before, after] of [
    ["%matplotlib inline\nx", "# %matplotlib inline\nx"],
    ["!pip install optax", "!pip install optax"],
    ["x\n  %pip install -q a b", "x\n  %pip install -q a b"],
    ["!pip list", "# !pip list"],
    ["if x:\n    !ls", "if x:\n    pass  # !ls"],
    ["!pip install a \\\n  b\nx", "# !pip install a \\\n#   b\nx"],
    ["files = !ls\nt = %timeit -o f()", "# files = !ls\n# t = %timeit -o f()"],
    ["?print\nx.y?\nx??", "# ?print\n# x.y?\n# x??"],
    ["%%time\nx = 1", "# %%time\nx = 1"],
    ["\n%%bash\necho 'a\n\nls", "\n# %%bash\n# echo 'a\n\n# ls"],
    // Python.
    ["x = a \\\n%b", "x = a \\\n%b"],
    ["x = (a\n%b)", "x = (a\n%b)"],
    ['s = """\n!not\n%this\n"""', 's = """\n!not\n%this\n"""'],
    ["s = '''it''' # \"\"\"\n%x", "s = '''it''' # \"\"\"\n# %x"],
    ["s = 'a\\'b'\n%x", "s = 'a\\'b'\n# %x"],
    ["s = 'never closed\n%x", "s = 'never closed\n# %x"],
    ['!echo "it\'s"\n%x', '# !echo "it\'s"\n# %x'],
    ["x % y\na != b\nprint('why?')", "x % y\na != b\nprint('why?')"],
    ["# what?", "# what?"],
    ["a = b % c", "a = b % c"],
  ] as const) {
    assert.equal(commentMagics(before).source, after);
  }
  fc.assert(
    fc.property(source, (each) => {
      const once = commentMagics(each).source;
      assert.deepEqual(commentMagics(once), { source: once, found: [] });
    }),
    { numRuns: 2000 },
  );
});

test("what was changed is said, with cell and line, and not without end", () => {
  const { notices } = read(
    notebook({
      metadata: { kernelspec: { language: "R" } },
      cells: [
        ...code("x\n%matplotlib inline", "!pip install optax", "%pip list"),
        { cell_type: "markdown", source: "", attachments: { "a.png": {}, "b.png": {} } },
      ],
    }),
  );
  assert.deepEqual(notices, [
    "This notebook is written in R. This page runs Python.",
    "Cell 1, line 2: “%matplotlib inline” is now a comment. This page runs Python without IPython's commands.",
    "Cell 3, line 1: “%pip list” is now a comment. Packages are loaded when they are imported.",
    "Images attached to cells are left out: 2.",
  ]);
  const many = read(notebook({ cells: code("%a\n".repeat(100)) })).notices;
  assert.equal(many.length, 21);
  assert.equal(many.at(-1), "And 80 more like these.");
});

test("what is no notebook is refused, with the place and the cause", () => {
  const cell = (parts: object) => notebook({ cells: [...code("x"), { cell_type: "code", source: "", ...parts }] });
  for (const [text, message] of [
    ["", /a\.ipynb is not JSON, so it is no notebook/],
    ['{"cells": [', /not JSON/],
    ["null", /a\.ipynb must be an object/],
    ["[]", /a\.ipynb must be an object/],
    ["{}", /no notebook: nbformat must be a whole number/],
    [notebook({ nbformat: "4" }), /nbformat must be a whole number/],
    [notebook({ nbformat: 3 }), /old notebook format 3; .* Open it in Jupyter and save it/],
    [notebook({ nbformat: 5 }), /notebook format 5; this page reads format 4/],
    [notebook({ nbformat_minor: null }), /nbformat_minor must be/],
    [notebook({ metadata: [] }), /metadata must be an object/],
    [notebook({ cells: {} }), /cells must be a list/],
    [notebook({ cells: Array(LIMITS.cells + 1).fill(0) }), /cells has 10001 items/],
    [notebook({ cells: [7] }), /cells\[0\] must be an object/],
    [cell({ cell_type: "heading" }), /cells\[1\]\.cell_type must be one of "code", "markdown", "raw"/],
    [cell({ source: 7 }), /cells\[1\]\.source must be text/],
    [cell({ source: ["a", 7] }), /cells\[1\]\.source\[1\] must be text/],
    [cell({ attachments: 7 }), /cells\[1\]\.attachments must be an object/],
    [notebook({ metadata: { weft: 7 } }), /metadata\.weft must be an object/],
    [notebook({ metadata: { weft: { backend: "cuda" } } }), /metadata\.weft\.backend must be one of/],
    [notebook({ metadata: { weft: { form: "script" } } }), /must be one cell of code/],
    [notebook({ cells: code("x".repeat(LIMITS.characters + 1)) }), /a\.ipynb has 16777217 characters/],
    ["[".repeat(200_000), /not JSON/],
  ] as const) {
    assert.throws(() => read(text), { name: "DocumentError", message });
  }
});
