import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { mathStyles, renderMarkdown } from "../../src/documents/markdown.js";
import { source } from "./arbitrary.js";
import { tagsOf } from "./safe_html.js";

const TAGS = new Set(
  (
    "p h1 h2 h3 h4 h5 h6 ul ol li blockquote pre code em strong s a img br hr table thead tbody tr th td span " +
    "math semantics annotation mrow mi mn mo mtext mspace mfrac msqrt mroot msub msup msubsup munder mover munderover " +
    "mtable mtr mtd mstyle mpadded mphantom menclose merror mmultiscripts none mprescripts ms"
  ).split(" "),
);

/** Fails if the HTML can do more than be read and followed. */
function safe(html: string): string {
  for (const { name, attributes } of tagsOf(html)) {
    assert.ok(TAGS.has(name), `<${name}> in ${html}`);
    for (const [key, value] of attributes) {
      assert.doesNotMatch(key, /^on/, html);
      if (key === "href") assert.match(value, /^(?:https?:\/\/|mailto:|#)/i, html);
      else if (key === "src") assert.match(value, /^data:image\/(?:png|jpeg|gif|webp);base64,/i, html);
      else if (key === "style") assert.doesNotMatch(value, /url|expression|position:\s*fixed|@import/i, html);
      else assert.doesNotMatch(value, /^\s*javascript:/i, html);
    }
  }
  return html;
}

test("CommonMark, tables and code", async () => {
  const html = safe(
    await renderMarkdown("# Title\n\nSome *text*, ~~no~~ https://a.b\n\n|a|b|\n|-|-|\n|1|2|\n\n```\na < b\n```"),
  );
  assert.match(html, /<h1 id="heading-title">Title<\/h1>/);
  assert.match(html, /<em>text<\/em>, <s>no<\/s>/);
  assert.match(html, /<a href="https:\/\/a\.b" target="_blank" rel="noopener noreferrer">/);
  assert.match(html, /<td>2<\/td>/);
  assert.match(html, /<pre><code>a &lt; b\n<\/code><\/pre>/);
});

test("Python in a fence has colours", async () => {
  const html = safe(await renderMarkdown("```python\ndef f(x): # <b>\n    return 'é'\n```"));
  assert.match(html, /<span class="tok-keyword">def<\/span>/);
  assert.match(html, /# &lt;b&gt;/);
});

test("formulas become MathML", async () => {
  for (const [text, display] of [
    ["a $x^2$ b", false],
    ["a \\(x^2\\) b", false],
    ["a $$x^2$$ b", true],
    ["$$\nx^2\n$$", true],
    ["$$x^2$$", true],
    ["\\[\nx^2\n\n\\]", true],
    ["- $$\n  x^2\n  $$", true],
    ["> $$x^2\n> $$", true],
  ] as const) {
    const html = safe(await renderMarkdown(text));
    assert.match(html, /<msup[^>]*><mi>x<\/mi><mn[^>]*>2<\/mn><\/msup>/, text);
    assert.equal(/<math[^>]* display="block"/.test(html), display, text);
    assert.match(html, /<annotation encoding="application\/x-tex">x\^2<\/annotation>/, text);
  }
  const html = safe(await renderMarkdown("$$\n\\begin{aligned} a &= b \\\\ &< c \\end{aligned}\n$$\n\nafter"));
  assert.match(html, /<mtable/);
  assert.match(html, /<p>after<\/p>/);
});

test("dollars that are no formula stay", async () => {
  for (const text of [
    "$5 and $6",
    "a $ b $ c",
    "\\$x\\$",
    "`$x$`",
    "$",
    "$$",
    "$$ $$",
    "$x",
    "a$$",
    "costs 5$.",
    "\\\\(x\\\\)",
  ]) {
    assert.doesNotMatch(safe(await renderMarkdown(text)), /<math/, text);
  }
  assert.match(await renderMarkdown("it is \\$5"), /it is \$5/);
});

test("a macro holds for the formulas after it, in the same text only", async () => {
  assert.match(await renderMarkdown("$\\gdef\\R{\\mathbb{R}}$ and $\\R$"), /ℝ/);
  assert.doesNotMatch(await renderMarkdown("$\\R$"), /<math[^]*math-error/);
});

test("a formula that can't be set is shown as it was typed, with the reason", async () => {
  const html = safe(await renderMarkdown('text $\\frac{a$ and $\\href{javascript:alert(1)}{"x"}$ more'));
  assert.match(html, /<code class="math-error" title="[^"]+">\\frac{a<\/code>/);
  assert.match(html, /more/);
});

test("headings have names that links reach, apart from the page's", async () => {
  const html = safe(await renderMarkdown("# Usage\n# Usage\n# Über *uns*!\n\n[up](#usage) [doc](#doc=1.abc)"));
  assert.match(html, /id="heading-usage"[^]*id="heading-usage-1"[^]*id="heading-über-uns"/);
  assert.match(html, /<a href="#heading-usage">up<\/a>/);
  assert.match(html, /<a href="#doc=1.abc">doc<\/a>/);
});

test("images that the text holds are shown; those of the network are links", async () => {
  const png = "data:image/png;base64,iVBORw0KGgo=";
  assert.match(safe(await renderMarkdown(`![alt](${png})`)), /<img src="data:image\/png;base64,[^"]*" alt="alt">/);
  const html = safe(await renderMarkdown('![a "picture"](https://a.b/c.png "t")'));
  assert.doesNotMatch(html, /<img/);
  assert.match(html, /<a href="https:\/\/a\.b\/c\.png"[^>]*>a &quot;picture&quot;<\/a>/);
  assert.doesNotMatch(safe(await renderMarkdown(`[x](${png})`)), /href="data:/);
});

const HOSTILE = [
  "<script>alert(1)</script>",
  "<img src=x onerror=alert(1)>",
  "[x](javascript:alert(1))",
  "[x](JaVaScRiPt:alert(1))",
  "[x](java&#115;cript:alert(1))",
  "[x](vbscript:x)",
  "[x](data:text/html;base64,PHNjcmlwdD4=)",
  "[x](file:///etc/passwd)",
  "[x](//evil.example)",
  "![x](javascript:alert(1))",
  "![x](data:image/svg+xml;base64,PHN2Zz4=)",
  "<javascript:alert(1)>",
  '[x](https://a "onclick=\\"alert(1)")',
  "[a]: javascript:alert(1)\n\n[a]",
  '```"onload="x\n</code><script>\n```',
  "$\\href{javascript:alert(1)}{x}$",
  "$\\href{https://evil.example}{x}$",
  "$\\includegraphics{https://evil.example/x.png}$",
  "$\\text{<script>alert(1)</script>}$",
  '$\\style{position:fixed}{x}$ $\\class{a" onload="x}{x}$ $\\id{run}{x}$ $\\data{a=b}{x}$',
  "$\\color{red;background:url(https://evil.example)}x$",
  '$\\textcolor{#fff"onclick="x}{x}$',
  "$\\unicode{x3C}script$ $\\char60 script$",
  "$\\url{javascript:alert(1)}$",
  '$\\tag{"><img src=x>} x$',
  '$\\begin{array}{"><script>}x\\end{array}$',
  '$\\rule[1em" onload="x]{1em}{1em}$',
  '# " onclick="x',
  "&lt;script&gt;",
  "<!-- x --> <![CDATA[ x ]]> <?php ?>",
];

test("no text becomes more than text and links", async () => {
  for (const text of HOSTILE) safe(await renderMarkdown(text));
  const piece = fc.oneof(source, fc.constantFrom(...HOSTILE, "$", "$$", "\\(", "\\[", "`", "[", "](", "|", "> ", "- "));
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 6 }), async (pieces) => {
      safe(await renderMarkdown(pieces.join("")));
    }),
    { numRuns: 1500 },
  );
});

test("texts that were made to take long are shown", { timeout: 60_000 }, async () => {
  const long = 100_000;
  for (const piece of [
    "$",
    "$a ",
    "$$\n",
    "$$a\n",
    "\\(",
    "\\[",
    "\\[a\n",
    "$\\frac{",
    "[",
    "![",
    "*a_",
    "`a",
    "<",
    "> ",
    "- ",
    "\\",
  ]) {
    safe(await renderMarkdown(piece.repeat(long / piece.length)));
  }
  for (const tex of [
    "\\def\\a{\\a\\a}\\a",
    "{".repeat(10_000),
    "\\frac{".repeat(3000),
    "x^{".repeat(3000),
    "\\rule{9999em}{9999em}",
  ]) {
    safe(await renderMarkdown(`$${tex}$`));
  }
  assert.match(await renderMarkdown(`${"<b>".repeat(200_000)}`), /^<pre>&lt;b&gt;/);
});

test("the styles of formulas load nothing", async () => {
  const styles = await mathStyles();
  assert.match(styles, /\.tml-right/);
  assert.doesNotMatch(styles, /@import|@font-face/);
  assert.doesNotMatch(styles.replace(/url\("data:image\/svg\+xml,[^"]*"\)/g, ""), /url\(/);
});
