/** What a run showed below a cell, as files keep it. */
import type { Cell } from "./model.js";

/** What a figure may have beside its SVG: the same for a dark page. */
export const DARK_SVG = "image/svg+xml;theme=dark";

export type Output =
  | { type: "stream"; name: "stdout" | "stderr"; text: string }
  | { type: "error"; name: string; message: string; traceback: string }
  /** A value by MIME type, as in Jupyter: text, base64 of images, JSON of `…json` types. */
  | { type: "display"; data: Record<string, unknown> };

/** What each cell showed, by the cell's id. */
export type Outputs = ReadonlyMap<Cell["id"], readonly Output[]>;
