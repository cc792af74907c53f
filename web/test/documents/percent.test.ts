import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { DocumentError, LIMITS, newCell, newDocument } from "../../src/documents/model.js";
import { fromPercent, percentName, toPercent } from "../../src/documents/percent.js";
import { documents, said } from "./arbitrary.js";

const notebook = (...cells: [kind: "code" | "markdown", source: string][]) =>
  newDocument({ title: "Digits", form: "notebook", cells: cells.map(([kind, source]) => newCell(kind, source)) });
const read = (text: string, name = "file.py") => said(fromPercent(text, name));
const sources = (text: string) => read(text).cells.map((cell) => `${cell.kind}: ${cell.source}`);

test("every document comes back as it was, and its file doesn't change", () => {
  fc.assert(
    fc.property(documents, (document) => {
      const file = toPercent(document);
      const again = fromPercent(file, percentName(document));
      assert.deepEqual(said(again), said(document));
      assert.equal(toPercent(again), file);
    }),
    { numRuns: 5000 },
  );
});

test("the file is UTF-8 without loss", () => {
  fc.assert(
    fc.property(documents, (document) => {
      const file = toPercent(document);
      const bytes = new TextDecoder("utf-8", { ignoreBOM: true }).decode(new TextEncoder().encode(file));
      assert.equal(bytes, file);
    }),
  );
});

test("a notebook's file is what other editors read", () => {
  const file = toPercent(notebook(["markdown", "# Title\n\nText."], ["code", "import jax"], ["code", "x = 1\nx"]));
  assert.equal(
    file,
    `# ---
# title: "Digits"
# weft:
#   form: notebook
#   backend: wasm
#   x64: false
# ---

# %% [markdown]
# # Title
#
# Text.

# %%
import jax

# %%
x = 1
x
`,
  );
});

test("a script is its own text, unless that would be read as something else", () => {
  const script = (source: string, parts = {}) =>
    toPercent(newDocument({ title: "Digits", cells: [newCell("code", source)], ...parts }));
  assert.equal(script("import jax\n"), "import jax\n");
  assert.equal(script("a\r\nb"), "a\r\nb");
  assert.match(script('s = """\n# %%\n"""'), /^# ---\n[^]*form: script\n[^]*# ---\n\ns = """\n# %%\n"""$/);
  assert.match(script("x", { options: { backend: "webgpu", x64: true } }), /backend: webgpu\n# {3}x64: true\n/);
  assert.match(script("x", { title: "a/b" }), /^# ---\n# title: "a\/b"\n/);
});

test("Jupytext's files are read: header, titles, metadata, Markdown as comments or as a string", () => {
  const file = `# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
# title: 'It''s here'
# ---

# %% [markdown] tags=["intro", "a b"]
# # Heading
#
# text

# %% [md]
"""
Quoted
"""

# %% Load the data {"collapsed": true}
import jax


# %% id="abc" editable=true
# %% [raw]
# plain
#%%
last = 1`;
  const document = read(file);
  assert.equal(document.title, "It's here");
  assert.equal(document.form, "notebook");
  assert.deepEqual(
    document.cells.map((cell) => [cell.kind, cell.source]),
    [
      ["markdown", "# Heading\n\ntext"],
      ["markdown", "Quoted"],
      ["code", "# Load the data\nimport jax"],
      ["code", ""],
      ["markdown", "plain"],
      ["code", "last = 1"],
    ],
  );
});

test("what stands before the first cell is a cell", () => {
  assert.deepEqual(sources("import jax\n\n# %%\nx"), ["code: import jax", "code: x"]);
  assert.deepEqual(sources("\n\n# %%\nx"), ["code: x"]);
});

test("a file of another system is read: CRLF, a byte order mark, no last line break", () => {
  assert.deepEqual(sources("\uFEFF# %% [markdown]\r\n# # A\r\n# b\r\n\r\n# %%\r\nx\r\ny"), [
    "markdown: # A\nb",
    "code: x\ny",
  ]);
});

test("magics of Jupytext and indented markers start no cell", () => {
  assert.equal(read("# %%time\nx").form, "script");
  assert.equal(read("def f():\n    # %% not here\n    pass").form, "script");
});

test("a count of lines that an edit has made wrong is not believed", () => {
  const file = toPercent(notebook(["code", 's = """\n# %% no cell\n"""'], ["code", "x"]));
  assert.deepEqual(sources(file), ['code: s = """\n# %% no cell\n"""', "code: x"]);
  const edited = file.replace('"""\n\n', '"""\nprint(s)\n\n');
  assert.deepEqual(sources(edited), ['code: s = """', 'code: # no cell\n"""\nprint(s)', "code: x"]);
  assert.deepEqual(sources(file.trimEnd()), ['code: s = """\n# %% no cell\n"""', "code: x"]);
});

test("bad files are refused with the place and the cause", () => {
  const header = (line: string) => `# ---\n# weft:\n#   ${line}\n# ---\n\nx`;
  const refuse = (text: string, message: RegExp) =>
    assert.throws(() => read(text, "a.py"), { name: "DocumentError", message });
  refuse(header("backend: cuda"), /^the header of a\.py\.backend must be one of "wasm", "webgpu", "remote"/);
  refuse(header("x64: maybe"), /x64 must be true or false/);
  refuse(header("form: poem"), /form must be one of "script", "notebook"/);
  refuse("x".repeat(LIMITS.characters + 1), /a\.py has 16777217 characters; at most 16777216/);
  refuse("# %%\n".repeat(LIMITS.cells + 1), /more than 10000 cells/);
  assert.ok(new DocumentError("x") instanceof Error);
});

test("files that were made to take long are read at once", { timeout: 20_000 }, () => {
  const long = 1_000_000;
  for (const piece of [" ", "a=1 ", '"""', "{", "[", "\n", "#", "# ---\n", "\r\n", "\\"]) {
    const text = piece.repeat(long / piece.length);
    read(`# %% ${text}`);
    read(`# %% [markdown]\n${text}x`);
    read(`# ---\n# weft:\n# title: ${text}\n# ---\n${text}`);
  }
});
