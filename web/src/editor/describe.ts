/** Draws the information about a name: its signature, its docstring, its value after a run. */
import { pythonLanguage } from "@codemirror/lang-python";
import { highlightCode } from "@lezer/highlight";
import { create } from "../elements.js";
import { parseDocstring, type Block } from "./docstring.js";
import type { Parameter } from "./signature.js";
import { colours } from "./theme.js";

export interface Description {
  /** The name under which it is used. */
  name: string;
  kind: string;
  signature: string;
  doc: string;
  /** After a run: `f32[3,4]`, or the value of a number. */
  value?: string;
}

/** Python in colours. */
export function code(text: string): DocumentFragment {
  const made = document.createDocumentFragment();
  highlightCode(
    text,
    pythonLanguage.parser.parse(text),
    colours,
    (part, classes) => made.append(classes ? create("span", classes, part) : part),
    () => made.append("\n"),
  );
  return made;
}

/** A signature with colours; the parameter that is being typed is highlighted. */
export function signatureElement(name: string, signature: string, current: Parameter | null = null): HTMLElement {
  const made = create("div", "weft-signature");
  if (!current) {
    made.append(code(name + signature));
    return made;
  }
  made.append(
    create("span", "weft-callee", name),
    signature.slice(0, current.from),
    create("b", "weft-current", signature.slice(current.from, current.to)),
    signature.slice(current.to),
  );
  return made;
}

/** Text with `code` in it. */
export function inline(text: string): DocumentFragment {
  const made = document.createDocumentFragment();
  text.split(/(``.+?``|`[^`]+`)/).forEach((part, i) => {
    if (part !== "") made.append(i % 2 ? create("code", "", part.replace(/^`+|`+$/g, "")) : part);
  });
  return made;
}

function doctest(text: string): HTMLElement {
  const made = create("pre", "weft-example");
  text.split("\n").forEach((line, i) => {
    const [, prompt = "", rest = line] = /^(>>> ?|\.\.\. ?)(.*)$/.exec(line) ?? [];
    if (i > 0) made.append("\n");
    if (prompt) made.append(create("span", "weft-prompt", prompt), code(rest));
    else made.append(line);
  });
  return made;
}

function block(part: Block): HTMLElement {
  switch (part.kind) {
    case "heading":
      return create("h4", "", part.text);
    case "code":
      return /^>>> /.test(part.text) ? doctest(part.text) : create("pre", "weft-example", part.text);
    case "items": {
      const named = part.items.some(({ name }) => name);
      const items = part.items.flatMap(({ name, text }) =>
        named
          ? [create("dt", "", create("code", "", name)), create("dd", "", inline(text))]
          : [create("li", "", inline(text))],
      );
      return create(named ? "dl" : "ul", "", ...items);
    }
    default:
      return create("p", "", inline(part.text));
  }
}

export function docElement(doc: string): HTMLElement {
  return create("div", "weft-doc", ...parseDocstring(doc).map(block));
}

/** All of it, as hover and completion show it. */
export function descriptionElement({ name, kind, signature, doc, value }: Description): HTMLElement {
  const made = create("div", "weft-description");
  const head = signature ? signatureElement(name, signature) : create("div", "weft-signature", code(name));
  if (kind) head.prepend(create("span", "weft-kind", kind), " ");
  if (value) head.append(create("span", "weft-value", `: ${value}`));
  made.append(head);
  if (doc) made.append(docElement(doc));
  return made;
}
