/** The pointer and the keys on a panel: they read values, zoom and move. */
import { create } from "../elements.js";
import type { View } from "./geometry.js";
import { zoomed } from "./layout.js";
import {
  firstItem,
  itemAt,
  lastItem,
  read,
  readItem,
  step,
  type Direction,
  type Found,
  type Reading,
} from "./readings.js";
import type { Mark } from "./spec.js";
import { Tip } from "./tip.js";
import { Touches, type Target } from "./touch.js";

/** The value that is shown: of what is at a pixel, or of the item to which the keys have led. */
type Shown = { at: readonly [number, number]; by: "finger" | "other" } | { series: number; item: number };

/** A reading further away than this, in pixels, is about something else. */
const NEAR = 36;
/** A move by fewer pixels than this is a click. */
const LEAST_DRAG = 5;

const DIRECTIONS: Record<string, Direction | undefined> = {
  ArrowLeft: "left",
  ArrowRight: "right",
  ArrowUp: "up",
  ArrowDown: "down",
};

/** Puts the pointer, fingers and the keys on an element that a panel fills. */
export class Pointer {
  private readonly tip: Tip;
  private readonly box = create("div", "figure-box");
  private from: [number, number] | null = null;
  private shown: Shown | null = null;
  private readonly listening = new AbortController();

  constructor(
    private readonly element: HTMLElement,
    private readonly target: Target,
  ) {
    this.box.hidden = true;
    element.append(this.box);
    this.tip = new Tip(element);
    const { signal } = this.listening;
    const on = <K extends keyof HTMLElementEventMap>(name: K, listener: (event: HTMLElementEventMap[K]) => void) =>
      element.addEventListener(name, listener, { signal, passive: false });
    // fingers are followed by their own events, which can keep the page from scrolling
    const unlessFinger = (listener: (event: PointerEvent) => void) => (event: PointerEvent) => {
      if (event.pointerType !== "touch") listener(event);
    };
    on(
      "pointermove",
      unlessFinger((event) => this.move(event)),
    );
    on(
      "pointerdown",
      unlessFinger((event) => this.down(event)),
    );
    on(
      "pointerup",
      unlessFinger((event) => this.up(event)),
    );
    on(
      "pointercancel",
      unlessFinger(() => this.cancel()),
    );
    on(
      "pointerleave",
      unlessFinger(() => this.leave()),
    );
    on("blur", () => this.hide());
    on("dblclick", () => target.show(null));
    on("wheel", (event) => this.wheel(event));
    on("keydown", (event) => this.key(event));
    new Touches(
      element,
      target,
      (at) => this.say({ at, by: "finger" }),
      () => this.hide(),
      signal,
    );
  }

  dispose(): void {
    this.listening.abort();
    this.tip.dispose();
    this.box.remove();
  }

  hide(): void {
    this.shown = null;
    this.tip.hide();
  }

  /** After the panel was drawn: the value that is shown is now elsewhere, or another one. */
  drawn(): void {
    if (this.shown) this.say(this.shown);
  }

  private cancel(): void {
    this.from = null;
    this.box.hidden = true;
  }

  private leave(): void {
    if (this.shown && "at" in this.shown) this.hide();
  }

  private place(event: MouseEvent): [number, number] {
    const { left, top } = this.element.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  }

  private isInside([x, y]: readonly [number, number]): boolean {
    const { area } = this.target.view();
    return x >= area.x && x <= area.x + area.width && y >= area.y && y <= area.y + area.height;
  }

  private move(event: PointerEvent): void {
    const at = this.place(event);
    if (this.from) return this.drag(at);
    this.element.style.cursor = this.isInside(at) ? "crosshair" : "";
    if (this.isInside(at)) this.say({ at, by: "other" });
    else this.leave();
  }

  /** What is near a pixel: the nearest mark. */
  private nearest(at: readonly [number, number]): { mark: Mark; reading: Found } | null {
    const view = this.target.view();
    const [first] = this.target
      .scene()
      .marks.map((mark) => ({ mark, reading: read(mark, view, at[0], at[1]) }))
      .filter((each): each is { mark: Mark; reading: Found } => each.reading !== null)
      .sort((a, b) => a.reading.distance - b.reading.distance);
    return first && first.reading.distance <= NEAR ? first : null;
  }

  private say(shown: Shown): void {
    const scene = this.target.scene();
    if ("at" in shown) {
      const found = this.isInside(shown.at) ? this.nearest(shown.at) : null;
      if (!found) return this.hide();
      this.tip.show(scene, found.mark, found.reading, shown.by);
    } else {
      const found = this.find(shown);
      if (!found) return this.hide();
      this.tip.show(scene, found.mark, found.reading, "other");
    }
    this.shown = shown;
  }

  /** An item, if it is there and its series is not switched off. */
  private find({ series, item }: { series: number; item: number }): { mark: Mark; reading: Reading } | null {
    const scene = this.target.scene();
    const mark = scene.spec.marks[series];
    const reading = mark && scene.marks.includes(mark) ? readItem(mark, this.target.view(), item) : null;
    return mark && reading ? { mark, reading } : null;
  }

  private down(event: PointerEvent): void {
    const at = this.place(event);
    if (event.button !== 0 || !this.isInside(at)) return;
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
  }

  private zoom(factor: number, at: readonly [number, number]): void {
    const view = this.target.view();
    const { x, y } = this.target.window();
    this.target.show({ x: zoomed(x, view.x.place(at[0]), factor), y: zoomed(y, view.y.place(at[1]), factor) });
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const direction = DIRECTIONS[event.key];
    if (direction && event.shiftKey) this.pan(direction);
    else if (direction) this.walk(direction);
    else if (event.key === "Home" || event.key === "End") this.toEnd(event.key === "End");
    else if (event.key === "PageUp" || event.key === "PageDown") this.toSeries(event.key === "PageUp" ? -1 : 1);
    else if (event.key === "+" || event.key === "=") this.zoom(0.8, this.centre());
    else if (event.key === "-") this.zoom(1.25, this.centre());
    else if (event.key === "0" || event.key === "Escape") {
      if (event.key === "Escape") this.hide();
      this.target.show(null);
    } else return;
    event.preventDefault();
  }

  /** The item to which the keys have led, if it is still there. */
  private cursor(): { mark: Mark; item: number; reading: Reading } | null {
    const { shown } = this;
    if (!shown || "at" in shown) return null;
    const found = this.find(shown);
    return found && { ...found, item: shown.item };
  }

  /** Where the keys zoom: at the value that they have led to, or in the middle. */
  private centre(): readonly [number, number] {
    const at = this.cursor()?.reading.at;
    const { area } = this.target.view();
    return at && this.isInside(at) ? at : [area.x + area.width / 2, area.y + area.height / 2];
  }

  private pan(direction: Direction, share = 0.1): void {
    const { area, x, y } = this.target.view();
    const [dx, dy] = {
      left: [-share * area.width, 0],
      right: [share * area.width, 0],
      up: [0, -share * area.height],
      down: [0, share * area.height],
    }[direction] as [number, number];
    this.shift(x, y, dx, dy);
  }

  /** Moves the window by pixels. */
  private shift(x: View["x"], y: View["y"], dx: number, dy: number): void {
    const { area } = this.target.view();
    const place = (axis: View["x"], from: number, to: number) => {
      const [a, b] = [axis.place(from), axis.place(to)];
      return { low: Math.min(a, b), high: Math.max(a, b) };
    };
    this.target.show({
      x: place(x, area.x + dx, area.x + area.width + dx),
      y: place(y, area.y + dy, area.y + area.height + dy),
    });
  }

  /** The arrow keys: to the next value, or where a series has none in that direction to the next series. */
  private walk(direction: Direction): void {
    const cursor = this.cursor();
    if (!cursor) return this.toFirst();
    const item = step(cursor.mark, this.target.view(), cursor.item, direction);
    const isSideways = ["line", "band", "bar", "histogram"].includes(cursor.mark.kind);
    if (item !== null) this.goto(cursor.mark, item);
    else if (isSideways && (direction === "up" || direction === "down")) this.toSeries(direction === "up" ? -1 : 1);
  }

  private toFirst(): void {
    const view = this.target.view();
    for (const mark of this.target.scene().marks) {
      const item = firstItem(mark, view);
      if (item !== null) return this.goto(mark, item);
    }
  }

  private toEnd(last: boolean): void {
    const cursor = this.cursor();
    if (!cursor) return this.toFirst();
    const item = (last ? lastItem : firstItem)(cursor.mark, this.target.view());
    if (item !== null) this.goto(cursor.mark, item);
  }

  /** To the value of another series that is nearest. */
  private toSeries(by: number): void {
    const cursor = this.cursor();
    if (!cursor) return this.toFirst();
    const { marks } = this.target.scene();
    for (let k = marks.indexOf(cursor.mark) + by; k >= 0 && k < marks.length; k += by) {
      const item = itemAt(marks[k]!, this.target.view(), ...cursor.reading.at);
      if (item !== null) return this.goto(marks[k]!, item);
    }
  }

  private goto(mark: Mark, item: number): void {
    const view = this.target.view();
    const reading = readItem(mark, view, item)!;
    this.say({ series: this.target.scene().spec.marks.indexOf(mark), item });
    this.tip.speak(mark, reading);
    const { area } = view;
    const beyond = (at: number, from: number, size: number) =>
      at >= from && at <= from + size ? 0 : at - from - size / 2;
    const [dx, dy] = [beyond(reading.at[0], area.x, area.width), beyond(reading.at[1], area.y, area.height)];
    if (dx || dy) this.shift(view.x, view.y, dx, dy); // into view
  }
}
