/** Results, drawn by type: numbers, bars, pictures, text, tables. */
import type { Leaf, TypedArray } from "../../../src/weft_wasm/page/weft.js";
import { brief, button, context2d, download, make } from "./dom.js";
import { writeNpy } from "./files.js";
import { frameOf, picture, typeOf, type Slot } from "./tree.js";

const MOST_BARS = 40;
/** Of those with labels, which are sorted. */
const SHOWN_BARS = 12;
const TABLE = { rows: 40, columns: 16 };

type Numbers = ArrayLike<number>;

function numbersOf(array: TypedArray): Numbers {
  const big = array instanceof BigInt64Array || array instanceof BigUint64Array;
  return big ? Array.from(array, Number) : array;
}

/** Bars from zero; those with labels in the order of their values, the largest first. */
function bars({ labels }: Slot, numbers: Numbers): HTMLElement {
  const rows = Array.from(numbers, (value, k) => ({ value, label: labels?.[k] ?? String(k) }));
  if (labels) rows.sort((a, b) => b.value - a.value);
  const shown = labels ? rows.slice(0, SHOWN_BARS) : rows;
  const values = shown.map(({ value }) => value).filter(Number.isFinite);
  const [low, high, largest] = [Math.min(0, ...values), Math.max(0, ...values), Math.max(...values)];
  const percent = (value: number): string => `${(100 * value) / (high - low || 1)}%`;
  const list = make("ol", { className: "bars" });
  for (const { value, label } of shown) {
    const bar = make("span", { className: value === largest ? "bar best" : "bar" });
    if (Number.isFinite(value)) {
      bar.style.marginInlineStart = percent(Math.min(value, 0) - low);
      bar.style.width = percent(Math.abs(value));
    }
    const name = make("span", { className: "label", textContent: label });
    const track = make("span", { className: "track" }, bar);
    list.append(make("li", {}, name, track, make("output", { textContent: brief(value) })));
  }
  const more = rows.length - shown.length;
  return make("div", {}, list, ...(more ? [make("p", { className: "note", textContent: `and ${more} more` })] : []));
}

/** The numbers that are black and white: the exporter's, 0 and 1, 0 and 255, or the smallest and the largest. */
function extent({ range, spec }: Slot, numbers: Numbers): [number, number] {
  if (range) return [range[0], range[1]];
  if (spec.dtype === "uint8") return [0, 255];
  let [low, high] = [Infinity, -Infinity];
  for (let k = 0; k < numbers.length; k++) [low, high] = [Math.min(low, numbers[k]!), Math.max(high, numbers[k]!)];
  return low >= 0 && high <= 1 ? [0, 1] : [low, high];
}

function drawn(slot: Slot, numbers: Numbers): HTMLElement {
  const { width, height, channels, first } = frameOf(slot.spec)!;
  const [low, high] = extent(slot, numbers);
  const pixels = new ImageData(width, height);
  const part = (at: number, c: number): number => {
    const value = numbers[first ? c * width * height + at : at * channels + c]!;
    return (255 * (value - low)) / (high - low || 1);
  };
  for (let at = 0; at < width * height; at++) {
    const grey = channels === 1;
    for (let c = 0; c < 3; c++) pixels.data[4 * at + c] = part(at, grey ? 0 : c);
    pixels.data[4 * at + 3] = channels === 4 ? part(at, 3) : 255;
  }
  const canvas = make("canvas", { width, height, className: "picture" });
  canvas.setAttribute("role", "img");
  canvas.ariaLabel = `${slot.path}: a picture of ${width} × ${height}`;
  context2d(canvas).putImageData(pixels, 0, 0);
  return canvas;
}

function written({ labels }: Slot, numbers: Numbers): HTMLElement {
  const codes = Array.from(numbers);
  const end = codes.indexOf(0);
  const text = labels
    ? codes.map((code) => labels[code] ?? "\ufffd").join("")
    : new TextDecoder().decode(Uint8Array.from(end < 0 ? codes : codes.slice(0, end)));
  return make("p", { className: "written", textContent: text });
}

function table({ spec }: Slot, numbers: Numbers): HTMLElement {
  const columns = spec.shape.at(-1)!;
  const rows = numbers.length / columns;
  const element = make("table");
  for (let row = 0; row < Math.min(rows, TABLE.rows); row++) {
    const line = make("tr", {}, make("th", { textContent: String(row) }));
    for (let column = 0; column < Math.min(columns, TABLE.columns); column++)
      line.append(make("td", { textContent: brief(numbers[row * columns + column]!) }));
    if (columns > TABLE.columns) line.append(make("td", { textContent: "…" }));
    element.append(line);
  }
  const more =
    rows > TABLE.rows ? [make("p", { className: "note", textContent: `and ${rows - TABLE.rows} more rows` })] : [];
  return make("div", { className: "scrolls" }, element, ...more);
}

function many(numbers: Numbers): HTMLElement {
  let [low, high, sum] = [Infinity, -Infinity, 0];
  for (let k = 0; k < numbers.length; k++) {
    const value = numbers[k]!;
    [low, high, sum] = [Math.min(low, value), Math.max(high, value), sum + value];
  }
  const first = Array.from({ length: Math.min(numbers.length, 24) }, (_, k) => brief(numbers[k]!)).join("  ");
  const summary = `from ${brief(low)} to ${brief(high)}, mean ${brief(sum / numbers.length)}`;
  const text = make("p", { className: "written", textContent: first + (numbers.length > 24 ? "  …" : "") });
  return make("div", {}, text, make("p", { className: "note", textContent: summary }));
}

/** Labels in the place of whole numbers, such as the class of each row. */
function named({ labels }: Slot, numbers: Numbers): HTMLElement {
  const names = Array.from(numbers, (k) => labels![k] ?? String(k));
  const text = names.slice(0, 200).join(", ") + (names.length > 200 ? ", …" : "");
  return make("p", { className: "written", textContent: text });
}

function body(slot: Slot, leaf: Leaf): HTMLElement {
  const { spec, labels, form } = slot;
  if (!ArrayBuffer.isView(leaf)) {
    const plain = typeof leaf === "boolean" ? String(leaf) : brief(leaf);
    return make("p", { className: "number", textContent: labels?.[Number(leaf)] ?? plain });
  }
  const numbers = numbersOf(leaf);
  if (numbers.length === 0) return make("p", { className: "note", textContent: "no elements" });
  if (form === "text") return written(slot, numbers);
  if (form === "numbers") return many(numbers);
  if (form === "image" ? frameOf(spec) : picture(spec) && !labels) return drawn(slot, numbers);
  const last = spec.shape.at(-1) ?? 0;
  if (labels && labels.length !== last && /int/.test(spec.dtype)) return named(slot, numbers);
  const isRow = spec.shape.length > 0 && last === numbers.length;
  if (isRow && (labels || (numbers.length > 1 && numbers.length <= MOST_BARS))) return bars(slot, numbers);
  return spec.shape.length >= 2 && last <= TABLE.columns ? table(slot, numbers) : many(numbers);
}

/** What a result looks like. */
export function result(slot: Slot, leaf: Leaf): HTMLElement {
  const type = make("code", { className: "type", textContent: typeOf(slot.spec) });
  const head = make("header", {}, make("h2", { textContent: slot.path.replace(/^result\./, "") }), type);
  if (ArrayBuffer.isView(leaf))
    head.append(button(".npy", () => download(`${slot.path}.npy`, writeNpy(slot, leaf as TypedArray))));
  const about = slot.about ? [make("p", { className: "about", textContent: slot.about })] : [];
  return make("section", { className: "result" }, head, ...about, body(slot, leaf));
}
