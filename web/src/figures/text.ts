/** Text in as much room as there is: measured, shortened, or in several lines. */
import type { Theme } from "./colours.js";

export const FONT_SIZE = 12;
export const LINE_HEIGHT = 15;
const context = new OffscreenCanvas(1, 1).getContext("2d")!;

export function textWidth(text: string, theme: Theme, weight = ""): number {
  context.font = `${weight} ${FONT_SIZE}px ${theme.font}`;
  return context.measureText(text).width;
}

/** A text that is too wide, with an ellipsis in the place of its end, or of its middle. */
export function shorten(text: string, width: number, theme: Theme, where: "end" | "middle" = "end"): string {
  if (textWidth(text, theme) <= width) return text;
  const cut = (kept: number): string => {
    const behind = where === "middle" ? Math.floor(kept / 2) : 0;
    return `${text.slice(0, kept - behind).trimEnd()}…${behind ? text.slice(-behind).trimStart() : ""}`;
  };
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (textWidth(cut(middle), theme) <= width) low = middle;
    else high = middle - 1;
  }
  return cut(low);
}

/** A text in at most two lines. */
export function wrap(text: string, width: number, theme: Theme): string[] {
  if (!text) return [];
  const words = text.split(/\s+/);
  let count = words.length;
  while (count > 1 && textWidth(words.slice(0, count).join(" "), theme) > width) count--;
  const rest = words.slice(count).join(" ");
  return [words.slice(0, count).join(" "), ...(rest ? [rest] : [])].map((line) => shorten(line, width, theme));
}
