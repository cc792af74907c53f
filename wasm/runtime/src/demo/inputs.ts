/** Fields for the inputs of a program, by type: switches, sliders, numbers, text, pictures, files. */
import type { TypedArray } from "../../../src/weft_wasm/page/weft.js";
import { button, dropped, make } from "./dom.js";
import { parseNumbers, readNumbers } from "./files.js";
import { drawing, image } from "./pictures.js";
import { arrayOf, classOf, frameOf, isWhole, picture, type Slot } from "./tree.js";

export interface Field {
  element: HTMLElement;
  /** The array for the program; throws what is wrong with what was typed. */
  value(): TypedArray;
}

type Make = (slot: Slot, changed: () => void) => Field;

/** Arrays of at most so many numbers can be typed. */
const MOST_TYPED = 256;
/** The largest side of a grey picture that is drawn by hand. */
const MOST_DRAWN = 64;
const MOST_DRAWN_RATIO = 4;

const checkbox: Make = (slot, changed) => {
  const input = make("input", { type: "checkbox", ariaLabel: slot.path });
  input.addEventListener("change", changed);
  return { element: input, value: () => arrayOf(slot, [Number(input.checked)]) };
};

const slider: Make = (slot, changed) => {
  const [low, high, given] = slot.range ?? [0, 1, null];
  const whole = isWhole(slot.spec);
  const step = given ?? (whole ? 1 : (high - low) / 200);
  const digits = whole ? 0 : Math.min(6, Math.max(0, Math.ceil(-Math.log10(step))));
  const input = make("input", { type: "range", min: String(low), max: String(high), step: String(step) });
  input.ariaLabel = slot.path;
  input.value = String((low + high) / 2);
  const shown = make("output", { textContent: input.valueAsNumber.toFixed(digits) });
  input.addEventListener("input", () => {
    shown.textContent = input.valueAsNumber.toFixed(digits);
    changed();
  });
  const element = make("div", { className: "row" }, input, shown);
  return { element, value: () => arrayOf(slot, [input.valueAsNumber]) };
};

const number: Make = (slot, changed) => {
  const step = isWhole(slot.spec) ? "1" : "any";
  const input = make("input", { type: "number", step, value: "0", ariaLabel: slot.path });
  input.addEventListener("input", changed);
  const value = (): TypedArray => {
    if (!Number.isFinite(input.valueAsNumber)) throw new RangeError(`${slot.path} takes a number.`);
    return arrayOf(slot, [input.valueAsNumber]);
  };
  return { element: input, value };
};

/** Text as numbers: places in the labels, if they are a vocabulary of characters, and else bytes of UTF-8. */
const text: Make = (slot, changed) => {
  const input = make("textarea", { rows: 4, spellcheck: false, ariaLabel: slot.path });
  const places = slot.labels && new Map(slot.labels.map((label, k) => [label, k]));
  input.value = slot.labels?.slice(0, Math.min(8, slot.length)).join("") ?? "Hello";
  const note = make("p", { className: "note" });
  const place = (character: string): number => {
    const found = places!.get(character);
    if (found === undefined) throw new RangeError(`${slot.path} has no “${character}” in its vocabulary.`);
    return found;
  };
  const codes = (): number[] => (places ? [...input.value].map(place) : [...new TextEncoder().encode(input.value)]);
  const count = (): void => {
    const { length } = places ? [...input.value] : new TextEncoder().encode(input.value);
    const cut = length > slot.length ? "; the rest is cut off" : "";
    note.textContent = `${Math.min(length, slot.length)} of ${slot.length}${cut}`;
  };
  input.addEventListener("input", () => {
    count();
    changed();
  });
  count();
  const value = (): TypedArray => {
    const numbers = new Array<number>(slot.length).fill(0);
    for (const [k, code] of codes().slice(0, slot.length).entries()) numbers[k] = code;
    return arrayOf(slot, numbers);
  };
  return { element: make("div", {}, input, note), value };
};

function random(slot: Slot): TypedArray {
  const { spec, labels, length } = slot;
  const whole = isWhole(spec);
  const highest = labels ? labels.length - 1 : spec.dtype === "bool" || !whole ? 1 : 9;
  const [low, high] = slot.range ?? [0, highest];
  const one = (): number => {
    const value = low + Math.random() * (high - low);
    return whole ? Math.round(value) : Math.round(1000 * value) / 1000;
  };
  return arrayOf(slot, Array.from({ length }, one));
}

/** Numbers as text; a matrix that is narrow in the lines of its rows. */
function rowsOf({ spec }: Slot, array: TypedArray): string {
  const words = Array.from(array as ArrayLike<number | bigint>, (x) => String(Number(Number(x).toPrecision(6))));
  const last = spec.shape.at(-1) ?? 1;
  if (spec.shape.length < 2 || last > 10) return words.join(", ");
  const rows = Array.from({ length: words.length / last }, (_, k) => words.slice(k * last, (k + 1) * last));
  return rows.map((row) => row.join(", ")).join("\n");
}

/** Numbers to type where they are few, and else random ones or those of a file. */
const numbers: Make = (slot, changed) => {
  const typed = slot.length <= MOST_TYPED;
  const area = make("textarea", { rows: Math.min(8, Math.ceil(slot.length / 8) + 1), spellcheck: false });
  area.ariaLabel = slot.path;
  const note = make("p", { className: "note" });
  let held = random(slot);
  const set = (array: TypedArray, from: string): void => {
    held = array;
    if (typed) area.value = rowsOf(slot, array);
    note.textContent = typed ? from : `${slot.length.toLocaleString("en")} numbers, ${from}`;
  };
  const take = async (file: File | undefined): Promise<void> => {
    if (!file) return;
    try {
      set(arrayOf(slot, await readNumbers(file)), `from ${file.name}`);
      changed();
    } catch (error) {
      note.textContent = (error as Error).message;
    }
  };
  const put = (make_: () => TypedArray, from: string) => () => {
    set(make_(), from);
    changed();
  };
  const file = make("input", { type: "file", accept: ".npy,.json,.csv,.txt", hidden: true });
  file.addEventListener("change", () => void take(file.files?.[0]));
  const zeros = (): TypedArray => new (classOf(slot.spec))(slot.length);
  const actions = make(
    "div",
    { className: "row" },
    button(
      "Random",
      put(() => random(slot), "random"),
    ),
    button("Zeros", put(zeros, "all zero")),
    button("File…", () => file.click()),
    file,
    note,
  );
  const element = make("div", { className: "drop" }, ...(typed ? [area] : []), actions);
  dropped(element, (each) => void take(each));
  area.addEventListener("input", changed);
  set(held, "random; a .npy or .json file can be dropped");
  return { element, value: () => (typed ? arrayOf(slot, parseNumbers(area.value)) : held) };
};

const FORMS: Record<string, Make> = { checkbox, slider, number, text, drawing, image, numbers };

/** The form of an input: what the exporter chose, or what its type suggests. */
export function formOf(slot: Slot): string {
  const { spec, form, range } = slot;
  if (form === "drawing" || form === "image") return frameOf(spec) ? form : "numbers";
  if (form) return form;
  if (spec.shape.length === 0 && !spec.dtype.startsWith("complex"))
    return spec.dtype === "bool" ? "checkbox" : range ? "slider" : "number";
  const pixels = picture(spec);
  if (!pixels) return "numbers";
  const [short, long] = [pixels.width, pixels.height].sort((a, b) => a - b) as [number, number];
  if (pixels.channels > 1) return "image";
  if (long > MOST_DRAWN_RATIO * short) return "numbers"; // rather rows of features
  return long <= MOST_DRAWN ? "drawing" : "image";
}

export function field(slot: Slot, changed: () => void): Field {
  return FORMS[formOf(slot)]!(slot, changed);
}
