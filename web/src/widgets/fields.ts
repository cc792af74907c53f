/** Widgets whose value is a number, a text, a choice, a file. */
import { create } from "../elements.js";
import type { Event } from "./sender.js";

/** Python's description of a widget. */
export interface Description {
  kind: string;
  name: string;
  label: string;
  value: unknown;
  [option: string]: unknown;
}

export interface Field {
  element: HTMLElement;
  /** Shows another value, which Python has set. */
  set?(description: Description): void;
  dispose?(): void;
}

export type Send = (event: Event) => void;
export type MakeField = (description: Description, send: Send) => Field;

function labelled(label: string, control: HTMLElement, ...more: HTMLElement[]): HTMLElement {
  return create("label", { className: "widget" }, create("span", { textContent: label }), control, ...more);
}

/** A number in as many digits as its step has. */
function shown(value: number, step: number): string {
  const digits = Math.min(6, Math.max(0, Math.ceil(-Math.log10(step))));
  return value.toFixed(digits);
}

const slider: MakeField = (description, send) => {
  const { low, high, step } = description as unknown as { low: number; high: number; step: number };
  const value = create("output", { textContent: shown(Number(description.value), step) });
  const input = create("input", { type: "range", min: String(low), max: String(high), step: String(step) });
  input.value = String(description.value);
  input.addEventListener("input", () => {
    value.textContent = shown(input.valueAsNumber, step);
    send({ event: { value: input.valueAsNumber } });
  });
  return {
    element: labelled(description.label, input, value),
    set(next) {
      input.value = String(next.value);
      value.textContent = shown(Number(next.value), step);
    },
  };
};

const number: MakeField = (description, send) => {
  const whole = description["whole"] === true;
  const input = create("input", { type: "number", step: String(description["step"] ?? "any") });
  input.value = String(description.value);
  input.addEventListener("input", () => {
    const value = input.valueAsNumber;
    if (Number.isFinite(value)) send({ event: { value: whole ? Math.round(value) : value } });
  });
  return { element: labelled(description.label, input), set: (next) => (input.value = String(next.value)) };
};

const select: MakeField = (description, send) => {
  const input = create("select");
  (description["options"] as string[]).forEach((text, k) => input.append(new Option(text, String(k))));
  input.selectedIndex = Number(description["index"] ?? 0);
  input.addEventListener("change", () => send({ event: { value: input.selectedIndex } }));
  return { element: labelled(description.label, input) };
};

const checkbox: MakeField = (description, send) => {
  const input = create("input", { type: "checkbox", checked: description.value === true });
  input.addEventListener("change", () => send({ event: { value: input.checked } }));
  return { element: labelled(description.label, input), set: (next) => (input.checked = next.value === true) };
};

const button: MakeField = (description, send) => {
  let presses = Number(description.value);
  const element = create("button", { type: "button", textContent: description.label });
  element.addEventListener("click", () => send({ event: { value: ++presses } }));
  return { element: create("div", { className: "widget" }, element) };
};

const text: MakeField = (description, send) => {
  const lines = Number(description["lines"] ?? 1);
  const input = lines > 1 ? create("textarea", { rows: lines }) : create("input", { type: "text" });
  input.value = String(description.value);
  input.addEventListener("input", () => send({ event: { value: input.value } }));
  return { element: labelled(description.label, input), set: (next) => (input.value = String(next.value)) };
};

const colour: MakeField = (description, send) => {
  const input = create("input", { type: "color", value: String(description.value) });
  input.addEventListener("input", () => send({ event: { value: input.value } }));
  return { element: labelled(description.label, input), set: (next) => (input.value = String(next.value)) };
};

const file: MakeField = (description, send) => {
  const input = create("input", { type: "file", accept: String(description["accept"] ?? "") });
  input.addEventListener("change", async () => {
    const chosen = input.files?.[0];
    if (chosen) send({ event: { file: chosen.name }, buffers: [await chosen.arrayBuffer()] });
  });
  return { element: labelled(description.label, input) };
};

export const FIELDS: Record<string, MakeField> = { slider, number, select, checkbox, button, text, colour, file };
