/** What the editors know of modules: fetched once, and again where that failed. */
import { loadIndex, type LanguageIndex } from "../editor/index.js";
import { site } from "./first.js";

let known: Promise<LanguageIndex> | null = null;

export function index(): Promise<LanguageIndex> {
  const { index: parts, sources } = site.language;
  const at = (url: string): string => new URL(url, document.baseURI).href;
  known ??= loadIndex(parts.map(at), at(sources)).catch((error: unknown) => {
    known = null;
    throw error;
  });
  return known;
}
