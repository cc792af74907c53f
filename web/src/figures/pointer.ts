/** The pointer and the keys on a panel: they read values, zoom and move. */
import { create } from "../elements.js";
import type { View } from "./geometry.js";
import { zoomed, type Window } from "./layout.js";
import { read, type Reading } from "./marks.js";
import type { Scene } from "./panel.js";

/** The parts of a panel that the pointer uses. */
export interface Target {
  scene(): Scene;
  view(): View;
  window(): Window;
  /** Shows a part, or everything again. */
  show(window: Window | null): void;
}

/** A reading further away than this, in pixels, is about something else. */
const NEAR = 36;
/** A move by fewer pixels than this is a click. */
const LEAST_DRAG = 5;

/** Puts the pointer and the keys on an element that a panel fills. */
export class Pointer {
  private readonly tip = create("div", "figure-tip");
  private readonly dot = create("div", "figure-dot");
  private readonly box = create("div", "figure-box");
  private from: [number, number] | null = null;
  private readonly listening = new AbortController();

  constructor(
    private readonly element: HTMLElement,
    private readonly target: Target,
  ) {
    for (const part of [this.tip, this.dot, this.box]) part.hidden = true;
    element.append(this.box, this.dot, this.tip);
    const on = <K extends keyof HTMLElementEventMap>(name: K, listener: (event: HTMLElementEventMap[K]) => void) =>
      element.addEventListener(name, listener, { signal: this.listening.signal, passive: false });
    on("pointermove", (event) => this.move(event));
    on("pointerdown", (event) => this.down(event));
    on("pointerup", (event) => this.up(event));
    on("pointercancel", () => this.cancel());
    on("pointerleave", () => this.hide());
    on("dblclick", () => target.show(null));
    on("wheel", (event) => this.wheel(event));
    on("keydown", (event) => this.key(event));
  }

  dispose(): void {
    this.listening.abort();
    for (const part of [this.tip, this.dot, this.box]) part.remove();
  }

  hide(): void {
    this.tip.hidden = this.dot.hidden = true;
  }

  private cancel(): void {
    this.from = null;
    this.box.hidden = true;
  }

  private place(event: MouseEvent): [number, number] {
    const { left, top } = this.element.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  }

  private isInside([x, y]: [number, number]): boolean {
    const { area } = this.target.view();
    return x >= area.x && x <= area.x + area.width && y >= area.y && y <= area.y + area.height;
  }

  private move(event: PointerEvent): void {
    const at = this.place(event);
    if (this.from) return this.drag(at);
    this.element.style.cursor = this.isInside(at) ? "crosshair" : "";
    if (this.isInside(at)) this.say(at);
    else this.hide();
  }

  /** Shows the nearest mark; for lines, the values of all of them at one x. */
  private say(at: [number, number]): void {
    const scene = this.target.scene();
    const view = this.target.view();
    const found = scene.marks
      .map((mark) => ({ mark, reading: read(mark, view, ...at) }))
      .filter((each): each is { mark: (typeof each)["mark"]; reading: Reading } => each.reading !== null)
      .sort((a, b) => a.reading.distance - b.reading.distance);
    const [first] = found;
    if (!first || first.reading.distance > NEAR) return this.hide();
    this.tip.replaceChildren();
    const { at: place, rows } = first.reading;
    if (first.mark.label) {
      const name = create("b", "", first.mark.label);
      name.style.setProperty("--key", scene.colourOf(first.mark));
      this.tip.append(name);
    }
    for (const [name, value] of rows) {
      const row = create("div", "");
      row.append(create("span", "", name), create("span", "", value));
      this.tip.append(row);
    }
    this.tip.hidden = false;
    this.dot.hidden = place === null;
    const [x, y] = place ?? at;
    if (place) {
      this.dot.style.transform = `translate(${x}px, ${y}px)`;
      this.dot.style.setProperty("--key", scene.colourOf(first.mark));
    }
    const { offsetWidth: width, offsetHeight: height } = this.tip;
    const { clientWidth, clientHeight } = this.element;
    const left = x + 14 + width <= clientWidth ? x + 14 : Math.max(x - 14 - width, 0);
    const top = Math.min(Math.max(y - height / 2, 0), Math.max(clientHeight - height, 0));
    this.tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  }

  private down(event: PointerEvent): void {
    const at = this.place(event);
    // a finger scrolls the page
    if (event.button !== 0 || event.pointerType === "touch" || !this.isInside(at)) return;
    this.from = at;
    this.element.setPointerCapture(event.pointerId);
    this.hide();
  }

  /**
   * The part of the panel between two positions of the pointer; a flat or narrow one means the whole width or
   * height.
   */
  private selected([x0, y0]: [number, number], [x1, y1]: [number, number]): [number, number, number, number] {
    const { area } = this.target.view();
    const [right, bottom] = [area.x + area.width, area.y + area.height];
    let [left, top] = [Math.max(Math.min(x0, x1), area.x), Math.max(Math.min(y0, y1), area.y)];
    let [width, height] = [Math.min(Math.max(x0, x1), right) - left, Math.min(Math.max(y0, y1), bottom) - top];
    if (height < 0.2 * width && height < 24) [top, height] = [area.y, area.height];
    else if (width < 0.2 * height && width < 24) [left, width] = [area.x, area.width];
    return [left, top, width, height];
  }

  private drag(at: [number, number]): void {
    const [left, top, width, height] = this.selected(this.from!, at);
    this.box.hidden = Math.hypot(at[0] - this.from![0], at[1] - this.from![1]) < LEAST_DRAG;
    Object.assign(this.box.style, {
      transform: `translate(${left}px, ${top}px)`,
      width: `${width}px`,
      height: `${height}px`,
    });
  }

  private up(event: PointerEvent): void {
    const { from } = this;
    if (!from) return;
    const at = this.place(event);
    this.cancel();
    if (Math.hypot(at[0] - from[0], at[1] - from[1]) < LEAST_DRAG) return;
    const [left, top, width, height] = this.selected(from, at);
    const { x, y } = this.target.view();
    const range = (a: number, b: number) => ({ low: Math.min(a, b), high: Math.max(a, b) });
    const window = {
      x: range(x.place(left), x.place(left + width)),
      y: range(y.place(top), y.place(top + height)),
    };
    if (window.x.high > window.x.low && window.y.high > window.y.low) this.target.show(window);
  }

  /** The wheel zooms once the panel has been clicked, or with Ctrl, so that a page of figures can still be scrolled. */
  private wheel(event: WheelEvent): void {
    const at = this.place(event);
    const active = event.ctrlKey || event.metaKey || this.element.matches(":focus");
    if (!active || !this.isInside(at)) return;
    event.preventDefault();
    this.zoom(Math.exp(Math.sign(event.deltaY) * Math.min(Math.abs(event.deltaY), 100) * 0.002), at);
    this.hide();
  }

  private zoom(factor: number, at: [number, number]): void {
    const view = this.target.view();
    const { x, y } = this.target.window();
    this.target.show({ x: zoomed(x, view.x.place(at[0]), factor), y: zoomed(y, view.y.place(at[1]), factor) });
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { area, x, y } = this.target.view();
    const middle: [number, number] = [area.x + area.width / 2, area.y + area.height / 2];
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (step) {
      const place = (axis: View["x"], from: number, to: number) => {
        const [a, b] = [axis.place(from), axis.place(to)];
        return { low: Math.min(a, b), high: Math.max(a, b) };
      };
      const [dx, dy] = [step[0]! * area.width * 0.1, step[1]! * area.height * 0.1];
      this.target.show({
        x: place(x, area.x + dx, area.x + area.width + dx),
        y: place(y, area.y + dy, area.y + area.height + dy),
      });
    } else if (event.key === "+" || event.key === "=") this.zoom(0.8, middle);
    else if (event.key === "-") this.zoom(1.25, middle);
    else if (event.key === "0" || event.key === "Escape") this.target.show(null);
    else return;
    event.preventDefault();
    this.hide();
  }
}
