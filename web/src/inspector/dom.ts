/** Elements, and numbers as the inspector shows them. */
import { create } from "../elements.js";
import { milliseconds } from "../numbers.js";

/** A sentence in the place of something. */
export const sentence = (text: string): HTMLElement => create("p", "note", text);

export function table(head: string[], rows: (Node | string)[][], label: string): HTMLTableElement {
  const element = create("table", "");
  element.setAttribute("aria-label", label);
  if (head.length) {
    const cells = head.map((text) => Object.assign(create("th", "", text), { scope: "col" }));
    element.append(create("thead", "", create("tr", "", ...cells)));
  }
  const body = rows.map(([first, ...rest]) => {
    const th = Object.assign(create("th", "", first ?? ""), { scope: "row" });
    return create("tr", "", th, ...rest.map((cell) => create("td", "", cell)));
  });
  element.append(create("tbody", "", ...body));
  return element;
}

export function seconds(value: number): string {
  return value < 1e-3 ? `${(1e6 * value).toFixed(1)} µs` : milliseconds(1e3 * value);
}

export function bytes(value: number): string {
  if (value < 1 << 10) return `${value} bytes`;
  const unit = value < 1 << 20 ? ["KiB", 10] : value < 1 << 30 ? ["MiB", 20] : ["GiB", 30];
  return `${(value / 2 ** Number(unit[1])).toPrecision(3)} ${unit[0]}`;
}

/** Runs what a button starts, once at a time. The button keeps the focus, which one that is disabled would lose. */
export async function whileBusy(start: HTMLButtonElement, work: () => Promise<void>): Promise<void> {
  if (start.ariaDisabled === "true") return;
  start.ariaDisabled = "true";
  try {
    await work();
  } finally {
    start.ariaDisabled = "false";
  }
}
