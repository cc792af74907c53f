import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { fromHtml, htmlName, toHtml } from "../../src/documents/html.js";
import { newCell, newDocument } from "../../src/documents/model.js";
import { DARK_SVG, type Output } from "../../src/documents/outputs.js";
import { fromFragment } from "../../src/documents/share.js";
import { documents, said, text } from "./arbitrary.js";
import { tagsOf } from "./safe_html.js";

const BASE = "https://play.example/weft/?x=1#old";

const shown = async (source: string, outputs: Output[], kind: "code" | "markdown" = "code") => {
  const cell = newCell(kind, source);
  const document = newDocument({ title: "Digits", form: "notebook", cells: [cell] });
  return toHtml(document, new Map([[cell.id, outputs]]), BASE);
};
const display = (data: Record<string, unknown>): Output => ({ type: "display", data });

/** Fails if the file could run a script or ask for anything. */
function harmless(html: string): string {
  const allowed =
    /^(?:html|head|meta|title|style|body|header|main|div|h[1-6]|p|pre|code|span|a|img|picture|source|iframe|script)$/;
  const markdown = /^(?:ul|ol|li|blockquote|em|strong|s|br|hr|table|thead|tbody|tr|th|td)$/;
  const math = /^(?:math|semantics|annotation|m[a-z]+|none)$/;
  for (const { name, attributes } of tagsOf(html)) {
    assert.ok(allowed.test(name) || markdown.test(name) || math.test(name), `<${name}>`);
    for (const [key, value] of attributes) {
      assert.doesNotMatch(key, /^on/);
      if (key === "src" || key === "srcset") assert.match(value, /^data:image\//);
      if (key === "href") assert.match(value, /^(?:https?:|mailto:|#)/);
    }
    if (name === "script") assert.equal(attributes.get("type"), "application/vnd.weft.document+json");
    if (name === "iframe") assert.equal(attributes.get("sandbox"), "");
  }
  assert.match(
    html,
    /<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; /,
  );
  return html;
}

test("the playground opens the file again", async () => {
  await fc.assert(
    fc.asyncProperty(documents, async (document) => {
      const file = harmless(await toHtml(document, new Map(), BASE));
      assert.deepEqual(said(fromHtml(file, "a.html")!), said(document));
    }),
    { numRuns: 300 },
  );
});

test("the button leads to the playground with the document in its fragment", async () => {
  const html = await shown("import jax", []);
  const href = /<a class="open" href="([^"]+)"/.exec(html)![1]!;
  const url = new URL(href);
  assert.equal(url.origin + url.pathname + url.search, "https://play.example/weft/?x=1");
  assert.equal((await fromFragment(url.hash))!.cells[0]!.source, "import jax");
});

test("a document that is too large for a link says how to open it", async () => {
  const noise = Buffer.from(Uint8Array.from({ length: 1_000_000 }, () => Math.random() * 256)).toString("base64");
  const html = harmless(await shown(`x = "${noise}"`, []));
  assert.match(html, /To run it, open this file in the <a href="https:\/\/play\.example\/weft\/\?x=1"/);
});

test("a playground in a file, or at no address, gets no link", async () => {
  const document = newDocument();
  assert.doesNotMatch(await toHtml(document, new Map(), "file:///tmp/index.html"), /<a /);
  assert.doesNotMatch(await toHtml(document, new Map(), "javascript:alert(1)"), /<a /);
  await assert.rejects(toHtml(document, new Map(), "nowhere"), { name: "DocumentError", message: /is no address/ });
});

test("sources are coloured, Markdown is rendered, formulas have their styles", async () => {
  const code = harmless(await shown("def f(x):\n    return x < 'a'", []));
  assert.match(code, /<span class="tok-keyword">def<\/span>/);
  assert.match(code, /<span class="tok-operator">&lt;<\/span>/);
  assert.doesNotMatch(code, /tml-right/);
  assert.match(code, /<h1>Digits<\/h1>/);
  const text = harmless(await shown("# My title\n\n$x^2$", [], "markdown"));
  assert.match(text, /<math/);
  assert.match(text, /\.tml-right/);
  assert.doesNotMatch(text, /<h1>Digits<\/h1>/);
});

test("each kind of output", async () => {
  const cases: [Output, RegExp][] = [
    [
      { type: "stream", name: "stdout", text: "a < b\n10%\r50%\r100%\r\nred \x1b[31mx\x1b[0m" },
      /<pre class="stdout">a &lt; b\n100%\nred x<\/pre>/,
    ],
    [{ type: "stream", name: "stderr", text: "warn" }, /<pre class="stderr">warn<\/pre>/],
    [
      { type: "error", name: "ValueError", message: "<b>", traceback: "" },
      /<pre class="error">ValueError: &lt;b&gt;<\/pre>/,
    ],
    [{ type: "error", name: "E", message: "m", traceback: "line 3\nE: m" }, /<pre class="error">line 3\nE: m<\/pre>/],
    [display({ "text/plain": "a\nb" }), /<pre class="value">a\nb<\/pre>/],
    [
      display({ "text/plain": "Figure", "image/png": "iVBO\nRw0=" }),
      /<img src="data:image\/png;base64,iVBORw0=" alt="Figure">/,
    ],
    [display({ "image/png": '"><script>', "text/plain": "bad" }), /<pre class="value">bad<\/pre>/],
    [
      display({ "image/svg+xml": "<svg/>" }),
      /<p class="figure light"><img src="data:image\/svg\+xml,%3Csvg%2F%3E" alt="Figure">/,
    ],
    [
      display({ "image/svg+xml": "<svg/>", [DARK_SVG]: "<svg d/>" }),
      /<source media="\(prefers-color-scheme: dark\)" srcset="data:image\/svg\+xml,%3Csvg%20d%2F%3E">/,
    ],
    [
      display({ "text/html": "<table><tr><td>1</table>", "text/plain": "t" }),
      /<iframe sandbox="" title="t" style="height: [\d.]+em" srcdoc="[^"]*&lt;td&gt;1/,
    ],
    [display({ "text/markdown": "**b**" }), /<strong>b<\/strong>/],
    [display({ "text/latex": "$x^2$" }), /<math[^>]*display="block"/],
    [
      display({ "application/json": { a: "<" } }),
      /<pre class="value">{\n {2}&quot;a&quot;: &quot;&lt;&quot;\n}<\/pre>/,
    ],
    [display({ "application/vnd.weft.array+json": {}, "text/plain": "Array" }), /<pre class="value">Array<\/pre>/],
    [display({}), /<div class="output">/],
  ];
  for (const [output, expected] of cases.slice(0, -1)) assert.match(harmless(await shown("x", [output])), expected);
  assert.doesNotMatch(harmless(await shown("x", [display({})])), /<div class="output">/);
});

test("nothing that a program or a document says can act", async () => {
  const evil = fc.oneof(
    text,
    fc.constantFrom(
      ...["</script><script>alert(1)</script>", "<!--", "-->", "<![CDATA[", '"><img src=x onerror=alert(1)>', "'"],
      ...[
        "</pre>",
        "</iframe>",
        "</style>",
        "<svg onload=alert(1)>",
        "javascript:alert(1)",
        "&quot;",
        "\x1b[31m",
        "\r",
      ],
    ),
  );
  const string = fc.array(evil, { maxLength: 4 }).map((parts) => parts.join(""));
  const types = ["text/plain", "text/html", "text/markdown", "text/latex", "image/png", "image/svg+xml", DARK_SVG];
  const output: fc.Arbitrary<Output> = fc.oneof(
    fc
      .dictionary(fc.constantFrom(...types, "application/json"), fc.oneof(string, fc.jsonValue()), {
        noNullPrototype: true,
      })
      .map(display),
    string.map((each): Output => ({ type: "stream", name: "stderr", text: each })),
    string.map((each): Output => ({ type: "error", name: each, message: each, traceback: each })),
  );
  await fc.assert(
    fc.asyncProperty(string, string, string, fc.array(output, { maxLength: 3 }), async (title, code, note, outputs) => {
      const cells = [newCell("markdown", note), newCell("code", code)];
      const document = newDocument({ title: title || "x", form: "notebook", cells });
      const file = harmless(await toHtml(document, new Map([[cells[1]!.id, outputs]]), BASE));
      assert.deepEqual(
        fromHtml(file, "a.html")!.cells.map(({ source }) => source),
        [note, code],
      );
    }),
    { numRuns: 1000 },
  );
});

test("other HTML files hold no document, and a damaged one says so", async () => {
  assert.equal(fromHtml("<!doctype html><p>hello", "a.html"), null);
  const file = await shown("x", []);
  const place = file.indexOf("<script type");
  const refuse = (text: string, message: RegExp) =>
    assert.throws(() => fromHtml(text, "a.html"), { name: "DocumentError", message });
  refuse(file.slice(0, place + 80), /a\.html ends within the document/);
  refuse(file.replace('"notebook"', '"poem"'), /the document in a\.html\.form must be one of/);
  refuse(file.replace('{"title"', "{title"), /the document in a\.html must be JSON/);
});

test("the file's name comes from the title", () => {
  assert.equal(htmlName(newDocument({ title: "a/b: c?" })), "a b c.html");
});
