/** HTML that shows a document in another page: in a frame, or as cells of that page. */
import type { Document } from "../documents/model.js";
import { renderMarkdown } from "../documents/markdown.js";
import { toFragment } from "../documents/share.js";

export interface EmbedOptions {
  run: boolean;
  hideCode: boolean;
  theme: "auto" | "light" | "dark";
}

const escape = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
const attribute = (text: string): string => escape(text).replaceAll('"', "&quot;");

/** @param site the address of the playground, with a slash at its end. */
export async function frameOf(document: Document, site: string, options: EmbedOptions): Promise<string> {
  const { run, hideCode, theme } = options;
  const parts = ["embed", run && "run", theme !== "auto" && `theme=${theme}`, hideCode && "hide=code"].filter(Boolean);
  const address = `${site}?${parts.join("&")}${await toFragment(document)}`;
  return (
    `<iframe src="${attribute(address)}" title="${attribute(document.title)}" ` +
    'width="100%" height="520" style="border: 0; border-radius: 10px" loading="lazy"></iframe>'
  );
}

/** Cells, with what Markdown says between them. */
export async function cellsOf(document: Document, site: string, options: EmbedOptions): Promise<string> {
  const { run, hideCode, theme } = options;
  const { backend, x64 } = document.options;
  const flags = [
    backend === "webgpu" && 'backend="webgpu"',
    x64 && "x64",
    run && "autorun",
    hideCode && "hidden-code",
    theme !== "auto" && `theme="${theme}"`,
  ].filter(Boolean);
  const tag = ["<weft-cell", ...flags].join(" ");
  const parts = await Promise.all(
    document.cells.map(async ({ kind, source }) =>
      kind === "markdown" ? renderMarkdown(source) : `${tag}><pre>\n${escape(source.trimEnd())}\n</pre></weft-cell>`,
    ),
  );
  return [`<script type="module" src="${site}weft-cell.js"></script>`, ...parts].join("\n");
}
