/** The outputs of a run below a cell, in the form in which files store them. */
import type { Cell } from "./model.js";

/** Data of a figure besides its SVG: the same for a dark page. */
export const DARK_SVG = "image/svg+xml;theme=dark";

export type Output =
  | { type: "stream"; name: "stdout" | "stderr"; text: string }
  | { type: "error"; name: string; message: string; traceback: string }
  /** A value by MIME type, as in Jupyter: text, base64 of images, JSON of `…json` types. */
  | { type: "display"; data: Record<string, unknown> };

/** The outputs of each cell, by the cell's id. */
export type Outputs = ReadonlyMap<Cell["id"], readonly Output[]>;
