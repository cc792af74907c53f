/** The box on a panel that says what is at a place, with a dot on it, and the same as text for a screen reader. */
import { create } from "../elements.js";
import type { Scene } from "./panel.js";
import type { Reading } from "./readings.js";
import type { Mark } from "./spec.js";

/** How far the box is from its place, in pixels: beside it, or above a finger. */
const BESIDE = 14;
const ABOVE = 34;

export class Tip {
  private readonly box = create("div", "figure-tip");
  private readonly dot = create("div", "figure-dot");
  private readonly spoken = create("div", "figure-spoken");

  constructor(private readonly element: HTMLElement) {
    this.spoken.setAttribute("role", "status");
    for (const part of [this.box, this.dot]) {
      part.hidden = true;
      part.setAttribute("aria-hidden", "true");
    }
    element.append(this.dot, this.box, this.spoken);
  }

  get isShown(): boolean {
    return !this.box.hidden;
  }

  show(scene: Scene, mark: Mark, { at: [x, y], point, rows }: Reading, by: "finger" | "other"): void {
    const { box, dot, element } = this;
    box.replaceChildren();
    if (mark.label) {
      const name = create("b", "", mark.label);
      name.style.setProperty("--key", scene.colourOf(mark));
      box.append(name);
    }
    for (const [name, value] of rows) {
      const row = create("div", "");
      row.append(create("span", "", name), create("span", "", value));
      box.append(row);
    }
    box.hidden = false;
    dot.hidden = !point;
    dot.style.transform = `translate(${x}px, ${y}px)`;
    dot.style.setProperty("--key", scene.colourOf(mark));
    const { offsetWidth: width, offsetHeight: height } = box;
    const { clientWidth, clientHeight } = element;
    let left = x + BESIDE + width <= clientWidth ? x + BESIDE : Math.max(x - BESIDE - width, 0);
    let top = y - height / 2;
    if (by === "finger" && y - ABOVE - height >= 0) [left, top] = [x - width / 2, y - ABOVE - height];
    left = Math.min(Math.max(left, 0), Math.max(clientWidth - width, 0));
    top = Math.min(Math.max(top, 0), Math.max(clientHeight - height, 0));
    box.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  }

  /** Has a screen reader say what is shown. */
  speak(mark: Mark, { rows }: Reading): void {
    const said = rows.map(([name, value]) => `${name} ${value}`).join(", ");
    this.spoken.textContent = mark.label ? `${mark.label}: ${said}` : said;
  }

  hide(): void {
    this.box.hidden = this.dot.hidden = true;
  }

  dispose(): void {
    for (const part of [this.box, this.dot, this.spoken]) part.remove();
  }
}
