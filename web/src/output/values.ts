/** Values by MIME type, each in the form that shows it best. */
import { ARRAY, FIGURE, FILE, TREE, WIDGET, type Bundle } from "../kernel/protocol.js";

/** Shows one kind of value. `show` is called again when a value with the same name replaces it. */
export interface Renderer {
  element: HTMLElement;
  show(data: unknown, buffers: ArrayBuffer[], run: number): void | Promise<void>;
  /** The value as SVG for a file, in the colours of a light or a dark page. */
  svg?(dark: boolean): Promise<string>;
  dispose?(): void;
}

export type Make = () => Renderer;

interface ArrayData {
  dtype: string;
  shape: number[];
  text: string;
}

interface TreeData {
  type: string;
  leaves: { path: string; dtype?: string; shape?: number[]; text?: string }[];
  more: number;
}

function create<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className: string,
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  element.className = className;
  element.append(...children);
  return element;
}

/** A renderer that builds its contents anew each time. */
function simple(className: string, build: (data: unknown) => (Node | string)[]): Make {
  return () => {
    const element = create("div", className);
    return { element, show: (data) => element.replaceChildren(...build(data)) };
  };
}

const type = (dtype: string, shape: number[]): string => `${dtype}[${shape.join(", ")}]`;

function array(data: unknown): Node[] {
  const { dtype, shape, text } = data as ArrayData;
  return [create("div", "type", type(dtype, shape)), create("pre", "", text)];
}

function tree(data: unknown): Node[] {
  const { type: name, leaves, more } = data as TreeData;
  const rows = leaves.map(({ path, dtype, shape, text }) =>
    create(
      "tr",
      "",
      create("th", "", path || "value"),
      create("td", "type", dtype !== undefined && shape ? type(dtype, shape) : ""),
      create("td", "", text ?? ""),
    ),
  );
  const table = create("table", "", ...rows);
  return [create("div", "type", name), table, ...(more ? [create("div", "note", `and ${more} more leaves`)] : [])];
}

/**
 * HTML of a program, in a frame that runs no scripts and reaches nothing: a link to a document must not be able to act
 * as the page.
 */
const html: Make = () => {
  const frame = create("iframe", "");
  // The page may measure it; without allow-scripts nothing in it runs.
  frame.setAttribute("sandbox", "allow-same-origin");
  frame.title = "HTML that the program shows";
  const fit = (): void => {
    const body = frame.contentDocument?.documentElement;
    if (body) frame.style.height = `${Math.min(body.scrollHeight + 2, 1200)}px`;
  };
  frame.addEventListener("load", fit);
  const element = create("div", "html", frame);
  return {
    element,
    async show(data) {
      const { default: purify } = await import("dompurify");
      const safe = purify.sanitize(text(data), { FORBID_TAGS: ["form", "input", "button", "iframe", "link", "meta"] });
      const style = getComputedStyle(element);
      frame.srcdoc =
        `<!doctype html><meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; ` +
        `style-src 'unsafe-inline'"><style>body { margin: 0; font: 14px/1.45 system-ui, sans-serif; ` +
        `color: ${style.color}; } table { border-collapse: collapse; } td, th { padding: 3px 9px; text-align: right; ` +
        `border-bottom: 1px solid color-mix(in srgb, currentColor 18%, transparent); }</style>${safe}`;
    },
  };
};

const image = (mime: string, encoded: boolean): Make =>
  simple("image", (data) => {
    const picture = create("img", "");
    // As an image, SVG runs no scripts.
    picture.src = encoded ? `data:${mime};base64,${text(data)}` : `data:${mime},${encodeURIComponent(text(data))}`;
    picture.alt = "Picture that the program shows";
    return [picture];
  });

interface FileData {
  name: string;
  type: string;
  about: string;
}

/** A file that the program gives to the reader. */
const file: Make = () => {
  const element = create("div", "file");
  return {
    element,
    show(data, [buffer]) {
      const { name, type: mime, about } = data as FileData;
      const size = `${Math.max(1, Math.round(buffer!.byteLength / 1000)).toLocaleString("en")} kB`;
      const save = create("button", "", `Download ${name}`);
      save.type = "button";
      save.addEventListener("click", () => {
        const link = create("a", "");
        link.href = URL.createObjectURL(new Blob([buffer!], { type: mime }));
        link.download = name;
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
      });
      element.replaceChildren(save, create("span", "note", `${size}: ${about}`));
    },
  };
};

/** Text as bundles have it: whole, or as a list of lines, as files of notebooks do. */
export function text(data: unknown): string {
  return Array.isArray(data) ? data.join("") : String(data);
}

const audio = (mime: string): Make =>
  simple("audio", (data) => {
    const player = create("audio", "");
    Object.assign(player, { controls: true, src: `data:${mime};base64,${text(data)}` });
    player.setAttribute("aria-label", "Sound that the program shows");
    return [player];
  });

const plain = simple("plain", (data) => [create("pre", "", text(data))]);

/** By MIME type, the best first. `register` adds renderers of other folders. */
const makers = new Map<string, Make>([
  [ARRAY, simple("value", array)],
  [TREE, simple("value", tree)],
  [FILE, file],
  ["text/html", html],
  ["image/svg+xml", image("image/svg+xml", false)],
  ["image/png", image("image/png", true)],
  ["image/jpeg", image("image/jpeg", true)],
  ["audio/wav", audio("audio/wav")],
]);

const ORDER = [
  WIDGET,
  FIGURE,
  ARRAY,
  TREE,
  FILE,
  "audio/wav",
  "text/html",
  "image/svg+xml",
  "image/png",
  "image/jpeg",
  "text/markdown",
  "text/latex",
];

export function register(mime: string, make: Make): void {
  makers.set(mime, make);
}

/** The type under which a bundle is shown, and its renderer. */
export function choose(bundle: Bundle): { mime: string; make: Make } {
  const mime = ORDER.find((each) => each in bundle.data && makers.has(each));
  return mime ? { mime, make: makers.get(mime)! } : { mime: "text/plain", make: plain };
}
