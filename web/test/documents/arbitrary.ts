/** Random documents, made to be hard to write down. */
import fc from "fast-check";
import { BACKENDS, newDocument, tidyTitle } from "../../src/documents/model.js";
import type { Cell, Document } from "../../src/documents/model.js";

/** Text without halves of surrogate pairs, which no file can hold. */
export const text = fc.string({ unit: "binary", maxLength: 30 });

const line = fc.oneof(
  text,
  fc.constantFrom(
    ...["", " ", "# %%", "#%%", "# %% [markdown]", "# %% lines=2", "# %% [markdown] lines=1", "# %% a title", "%%"],
    ...["# ---", "# weft:", "#   form: notebook", "# title: x", "# jupyter:", "#", "# ", "##", "import weft"],
    ...['s = """', '"""', "'''", "# %%\r", "x = 1\r", "\r", "🧵 = 'é'", "\uFEFF# %%", "  # %%", "%matplotlib inline"],
  ),
);

export const source = fc
  .tuple(fc.array(line, { maxLength: 8 }), fc.constantFrom("\n", "\n", "\r\n", "\r"))
  .map(([lines, end]) => lines.join(end));

const cell = fc.record({ kind: fc.constantFrom("code" as const, "markdown" as const), source });
const id = (index: number) => `cell-${index}`;
const identified = (cells: Omit<Cell, "id">[]): Cell[] => cells.map((each, index) => ({ id: id(index), ...each }));

export const documents: fc.Arbitrary<Document> = fc
  .record({
    title: fc.oneof(text, fc.constantFrom("Digits", "a/b", "x.py", '"quoted"', "# %%", "...", "null")).map(tidyTitle),
    options: fc.tuple(fc.constantFrom(...BACKENDS), fc.boolean()).map(([backend, x64]) => ({ backend, x64 })),
    content: fc.oneof(
      fc.record({ form: fc.constant("notebook" as const), cells: fc.array(cell, { maxLength: 6 }).map(identified) }),
      fc.record({
        form: fc.constant("script" as const),
        cells: source.map((each) => identified([{ kind: "code", source: each }])),
      }),
    ),
  })
  .map(({ title, options, content }) => newDocument({ title, options, ...content }));

/** What a document says, without the ids that name its parts. */
export function said({ title, form, options, cells }: Document) {
  return { title, form, options, cells: cells.map(({ kind, source }) => ({ kind, source })) };
}
