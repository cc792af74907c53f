/** Runs the document on each backend and compares: times, and the numbers that it shows. */
import { format, milliseconds } from "../numbers.js";
import { button, create } from "../elements.js";
import { sentence, table, whileBusy } from "./dom.js";
import type { Measured, Surroundings } from "./model.js";

const NUMBER = /(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?(?![\w.])|(?<![\w.])[-+]?(?:nan|inf)\b/gi;

/** The numbers in a text, in order. */
export function numbersIn(text: string): number[] {
  return [...text.matchAll(NUMBER)].map(([each]) => {
    const word = each.toLowerCase().replace("+", each.includes("e") ? "+" : "");
    if (word.endsWith("inf")) return word.startsWith("-") ? -Infinity : Infinity;
    return word.endsWith("nan") ? NaN : Number(word);
  });
}

/** The largest difference between the numbers of two texts, or how their numbers don't correspond. */
export function difference(a: string, b: string): string {
  const [left, right] = [numbersIn(a), numbersIn(b)];
  if (left.length !== right.length) return `${right.length} numbers, not ${left.length}`;
  if (!left.length) return "no numbers";
  let most = 0;
  for (const [k, x] of left.entries()) {
    const y = right[k]!;
    if (Object.is(x, y) || x === y) continue;
    if (!Number.isFinite(x) || !Number.isFinite(y)) return `${x} became ${y}`;
    most = Math.max(most, Math.abs(x - y));
  }
  return most === 0 ? "none" : format(most);
}

export class CompareView {
  readonly element = create("div", "compare");
  private readonly result = create("div", "");
  private readonly start = button("Compare backends", () => void whileBusy(this.start, () => this.run()));

  constructor(private readonly around: Surroundings) {
    this.result.setAttribute("aria-live", "polite");
    this.result.append(
      sentence("Runs the document twice on each backend. Numbers that it prints are compared with those of Wasm."),
    );
    this.element.append(this.start, this.result);
  }

  private async run(): Promise<void> {
    const rows: string[][] = [];
    let reference: Measured | null = null;
    try {
      for (const { backend, name, missing } of this.around.backends()) {
        if (missing) {
          rows.push([name, missing, "", "", ""]);
          this.show(rows);
          continue;
        }
        this.show([...rows, [name, "running …", "", "", ""]]);
        const first = await this.around.measure(backend);
        if (first.status !== "ok") {
          rows.push([name, first.status === "stopped" ? "was stopped" : first.message, "", "", ""]);
          if (first.status === "stopped") break;
          continue;
        }
        const second = await this.around.measure(backend);
        const same =
          reference === null
            ? backend === "wasm"
              ? "it is the reference"
              : "Wasm failed"
            : difference(reference.text, second.text);
        if (backend === "wasm") reference = second;
        const times = [first.runMs, second.runMs, first.compileMs].map(milliseconds);
        rows.push([name, ...times, same]);
        this.show(rows);
      }
    } finally {
      this.show(rows);
    }
  }

  private show(rows: string[][]): void {
    const head = ["Backend", "First run", "Second run", "Compiling", "Largest difference"];
    this.result.replaceChildren(table(head, rows, "The document on each backend"));
  }
}
