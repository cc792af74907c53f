/**
 * Markdown with math as HTML that is safe to put into the page.
 *
 * HTML in Markdown is text. Links lead to the web, to a mail address or within the page. Images are those that the
 * text itself holds; others are links, so that no document tells anybody who reads it. The parser, math and the
 * highlighter are loaded when a text needs them.
 */
import type { MarkdownIt, Token } from "markdown-it";
import type Temml from "temml";
import { BLOCK, INLINE, mathRules } from "./math_rules.js";

/** More is shown as it was typed. */
const CHARACTERS = 500_000;
const FORMULA_CHARACTERS = 20_000;

const LINK = /^(?:https?:\/\/|mailto:|#)/i;
const IMAGE = /^data:image\/(?:png|jpeg|gif|webp);base64,/i;

/** The libraries that a text needs while it is rendered. */
interface Tools {
  temml: typeof Temml | null;
  python: ((source: string) => string) | null;
  /** Macros that a formula defines for those after it. */
  macros: Record<string, unknown>;
}

function escapeText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

function formula(source: string, displayMode: boolean, { temml, macros }: Tools): string {
  const failed = (why: string) =>
    `<code class="math-error" title="${escapeText(why.slice(0, 300))}">${escapeText(source)}</code>`;
  if (source.length > FORMULA_CHARACTERS) return failed("This formula is too long to be set.");
  const limits = { trust: false, maxSize: [50, 500] as [number, number], maxExpand: 1000 };
  try {
    // Limits for macros that expand without end; nesting without end exceeds the stack.
    return temml!.renderToString(source, { displayMode, throwOnError: true, annotate: true, macros, ...limits });
  } catch (error) {
    return failed(error instanceof Error ? error.message.replace(/^ParseError:\s*/, "") : "This is no formula.");
  }
}

function slug(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replace(/\s+/g, "-");
}

/** Names of headings, apart from the page's own, so that `#usage` leads to "Usage". */
function nameHeadings(tokens: Token[]): void {
  const taken = new Map<string, number>();
  for (const [index, token] of tokens.entries()) {
    if (token.type !== "heading_open") continue;
    const name = slug(tokens[index + 1]?.content ?? "");
    const count = taken.get(name) ?? 0;
    taken.set(name, count + 1);
    if (name) token.attrSet("id", `heading-${name}${count ? `-${count}` : ""}`);
  }
}

function toolsOf(env: Record<string, unknown> | undefined): Tools {
  return env!["tools"] as Tools;
}

function addRules(markdown: MarkdownIt): void {
  markdown.use(mathRules);
  markdown.validateLink = (url) => LINK.test(url) || IMAGE.test(url);
  const { rules } = markdown.renderer;
  rules[INLINE] = (tokens, index, _options, env) => formula(tokens[index]!.content, false, toolsOf(env));
  rules[BLOCK] = (tokens, index, _options, env) => `${formula(tokens[index]!.content, true, toolsOf(env))}\n`;
  rules["link_open"] = (tokens, index, options, _env, self) => {
    const token = tokens[index]!;
    const href = String(token.attrGet("href") ?? "");
    if (IMAGE.test(href)) token.attrSet("href", "#");
    else if (/^#[\w%-]+$/.test(href)) token.attrSet("href", `#heading-${href.slice(1)}`);
    else if (!href.startsWith("#")) {
      token.attrSet("target", "_blank");
      token.attrSet("rel", "noopener noreferrer");
    }
    return self.renderToken(tokens, index, options);
  };
  const image = rules["image"]!;
  rules["image"] = (tokens, index, options, env, self) => {
    const token = tokens[index]!;
    const src = String(token.attrGet("src") ?? "");
    if (IMAGE.test(src)) return image(tokens, index, options, env, self);
    const label = escapeText(token.content || src);
    return `<a href="${escapeText(src)}" target="_blank" rel="noopener noreferrer">${label}</a>`;
  };
  rules["fence"] = (tokens, index, _options, env) => {
    const { info, content } = tokens[index]!;
    const { python } = toolsOf(env);
    const code = python && isPython(info) ? python(content) : escapeText(content);
    return `<pre><code>${code}</code></pre>\n`;
  };
}

function isPython(info: string): boolean {
  return /^(?:python3?|py)\b/i.test(info.trim());
}

let parser: Promise<MarkdownIt> | null = null;

async function load(): Promise<MarkdownIt> {
  const { default: create } = await import("markdown-it");
  const markdown = create({ html: false, linkify: true });
  addRules(markdown);
  return markdown;
}

/** The text as HTML. Formulas need the styles of `mathStyles`. */
export async function renderMarkdown(source: string): Promise<string> {
  if (source.length > CHARACTERS) return `<pre>${escapeText(source)}</pre>`;
  // A failed download is tried again with the next text.
  parser ??= load().catch((error: unknown) => {
    parser = null;
    throw error;
  });
  const markdown = await parser;
  const tools: Tools = { temml: null, python: null, macros: {} };
  const env = { tools };
  const tokens = markdown.parse(source, env);
  nameHeadings(tokens);
  const all = tokens.flatMap((token) => [token, ...(token.children ?? [])]);
  if (all.some(({ type }) => type === INLINE || type === BLOCK)) tools.temml = (await import("temml")).default;
  if (all.some(({ type, info }) => type === "fence" && isPython(info))) {
    tools.python = (await import("./highlight.js")).highlightPython;
  }
  return markdown.renderer.render(tokens, markdown.options, env);
}

/** Fonts for math of Windows, macOS, TeX and Linux: roots and brackets only stretch in one of these. */
const MATH_FONTS = [
  ...["Cambria Math", "STIX Two Math", "Latin Modern Math", "Libertinus Math", "TeX Gyre Termes Math", "XITS Math"],
  ...["DejaVu Math TeX Gyre", "Noto Sans Math"],
];

/** The styles of formulas. They load nothing: the font for script capitals is left to the system too. */
export async function mathStyles(): Promise<string> {
  const { default: styles } = await import("temml/dist/Temml-Local.css", { with: { type: "text" } });
  const family = MATH_FONTS.map((name) => `"${name}"`).join(", ");
  return `${styles.replace(/@font-face\s*\{[^}]*\}/g, "")}\nmath { font-family: ${family}, math; }\n`;
}
