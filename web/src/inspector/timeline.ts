/** When a run traced, compiled, ran and copied: a lane for each, zoomed by the wheel and moved by dragging. */
import { milliseconds } from "../numbers.js";
import { create } from "../elements.js";
import { sentence } from "./dom.js";
import type { Event, Lane, Timeline } from "./model.js";

const LANES: { lane: Lane; title: string; colour: string }[] = [
  { lane: "trace", title: "Trace", colour: "--syntax-keyword" },
  { lane: "compile", title: "Compile", colour: "--thread" },
  { lane: "run", title: "Run", colour: "--accent" },
  { lane: "transfer", title: "Transfer", colour: "--good" },
];
const ROW = 22;
const LEFT = 66;
const AXIS = 18;
const HINT = matchMedia("(hover: none)").matches
  ? "Tap an event. Two fingers zoom."
  : "Point at an event. The wheel zooms.";
const HEIGHT = LANES.length * ROW + AXIS;

export class TimelineView {
  readonly element = create("div", "timeline");
  private readonly canvas = create("canvas", "");
  private readonly detail = create("p", "detail");
  private data: Timeline = { events: [], length: 0, dropped: 0, untimed: 0 };
  private from = 0;
  private to = 1;
  /** Where the pointers that press are: one moves the section that is shown, two fingers zoom it. */
  private readonly pressed = new Map<number, number>();
  private chosen = -1;
  private readonly observer = new ResizeObserver(() => this.draw());

  constructor() {
    const { canvas } = this;
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "application"); // a screen reader hands on its keys
    canvas.setAttribute("aria-roledescription", "timeline");
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.pressed.set(event.pointerId, event.offsetX);
      this.tellAt(event);
    });
    for (const name of ["pointerup", "pointercancel"] as const) {
      canvas.addEventListener(name, (event) => this.pressed.delete(event.pointerId));
    }
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("dblclick", () => this.show(this.data));
    canvas.addEventListener("keydown", (event) => this.key(event));
    this.detail.setAttribute("aria-live", "polite");
    this.observer.observe(this.element);
  }

  show(data: Timeline): void {
    this.data = data;
    // Importing and connecting come before the first event, and may take longer than all of them.
    const first = data.events[0]?.[2] ?? 0;
    const last = data.events.reduce((end, [, , start, duration]) => Math.max(end, start + duration), first + 0.001);
    this.from = first - 0.02 * (last - first);
    this.to = last + 0.02 * (last - first);
    this.chosen = -1;
    if (!data.events.length) {
      this.element.replaceChildren(sentence("The last run traced, compiled and ran nothing on a device."));
      return;
    }
    this.element.replaceChildren(this.canvas, this.detail);
    const counts = LANES.map(
      ({ lane, title }) => `${title} ${data.events.filter((event) => event[0] === lane).length}`,
    );
    this.canvas.setAttribute(
      "aria-label",
      `Timeline of ${milliseconds(data.length)}. Events: ${counts.join(", ")}. ` +
        "Left and right go from event to event, plus and minus zoom, Escape shows all.",
    );
    this.tell(-1);
    this.draw();
  }

  dispose(): void {
    this.observer.disconnect();
  }

  private get width(): number {
    return Math.max(this.element.clientWidth, 120);
  }

  private x(time: number): number {
    return LEFT + ((time - this.from) / (this.to - this.from)) * (this.width - LEFT - 6);
  }

  private time(x: number): number {
    return this.from + ((x - LEFT) / (this.width - LEFT - 6)) * (this.to - this.from);
  }

  private zoom(factor: number, around: number): void {
    const span = Math.max((this.to - this.from) * factor, 1e-3);
    const share = (around - this.from) / (this.to - this.from);
    this.from = around - share * span;
    this.to = this.from + span;
    this.draw();
  }

  private wheel(event: WheelEvent): void {
    event.preventDefault();
    this.zoom(Math.exp(event.deltaY / 400), this.time(event.offsetX));
  }

  private move(event: PointerEvent): void {
    const before = this.pressed.get(event.pointerId);
    if (before === undefined) return this.tellAt(event);
    const [other] = [...this.pressed].filter(([id]) => id !== event.pointerId);
    this.pressed.set(event.pointerId, event.offsetX);
    if (other) {
      const [was, is] = [before, event.offsetX].map((x) => Math.max(Math.abs(x - other[1]), 10)) as [number, number];
      return this.zoom(was / is, this.time(other[1]));
    }
    const by = ((event.offsetX - before) / (this.width - LEFT - 6)) * (this.to - this.from);
    this.from -= by;
    this.to -= by;
    this.draw();
  }

  private tellAt(event: PointerEvent): void {
    const row = Math.floor((event.offsetY - 2) / ROW);
    let best = -1;
    let least = 5; // pixels
    this.data.events.forEach((each, k) => {
      if (each[0] !== LANES[row]?.lane) return;
      const [left, right] = [this.x(each[2]), this.x(each[2] + each[3])];
      const away = Math.max(left - event.offsetX, event.offsetX - right, 0);
      if (away < least || (away === 0 && best >= 0 && each[3] <= this.data.events[best]![3]))
        [best, least] = [k, away || 1e-9];
    });
    this.tell(best);
  }

  private key(event: KeyboardEvent): void {
    const { events } = this.data;
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step) this.tell(Math.min(Math.max(this.chosen + step, 0), events.length - 1), true);
    else if (event.key === "+" || event.key === "-") {
      const at = events[this.chosen];
      this.zoom(event.key === "+" ? 0.6 : 1 / 0.6, at ? at[2] : (this.from + this.to) / 2);
    } else if (event.key === "Escape" && this.chosen >= 0) this.show(this.data);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  private tell(k: number, follow = false): void {
    const event = this.data.events[k];
    const { dropped, untimed } = this.data;
    const more =
      (dropped ? ` The first ${dropped.toLocaleString("en")} events are left out.` : "") +
      (untimed
        ? " Of programs that are called often it has the first calls; it has all if the inspector is open."
        : "");
    this.detail.textContent = event ? describe(event) : `${HINT}${more}`;
    if (k === this.chosen) return;
    this.chosen = k;
    if (event && follow && (event[2] < this.from || event[2] > this.to)) {
      const span = this.to - this.from;
      this.from = event[2] - span / 2;
      this.to = this.from + span;
    }
    this.draw();
  }

  /** Draws again: the size, the colours or the section have changed. */
  draw(): void {
    const { canvas, width } = this;
    const context = canvas.getContext("2d");
    if (!context || !canvas.isConnected) return;
    const ratio = devicePixelRatio;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(HEIGHT * ratio);
    canvas.style.height = `${HEIGHT}px`;
    context.scale(ratio, ratio);
    const colour = coloursOf(this.element);
    context.font = `12px ${getComputedStyle(this.element).fontFamily}`;
    context.textBaseline = "middle";
    LANES.forEach(({ title }, row) => {
      context.fillStyle = colour("--dim");
      context.fillText(title, 2, row * ROW + ROW / 2);
      context.fillStyle = colour("--line");
      context.fillRect(LEFT, row * ROW + ROW - 1, width - LEFT, 1);
    });
    context.save();
    context.beginPath();
    context.rect(LEFT, 0, width - LEFT, HEIGHT);
    context.clip();
    this.data.events.forEach((event, k) => this.bar(context, event, k === this.chosen, colour));
    this.axis(context, colour);
    context.restore();
  }

  private bar(
    context: CanvasRenderingContext2D,
    [lane, name, start, duration, detail]: Event,
    isChosen: boolean,
    colour: (name: string) => string,
  ): void {
    const row = LANES.findIndex((each) => each.lane === lane);
    const left = this.x(start);
    const size = Math.max(this.x(start + duration) - left, 1.5);
    if (left > this.width || left + size < LEFT) return;
    const top = row * ROW + (detail === "load" ? 10 : 3);
    const tall = detail === "load" ? 8 : ROW - 7;
    context.fillStyle = isChosen ? colour("--ink") : colour(LANES[row]!.colour);
    context.globalAlpha = isChosen ? 1 : 0.75;
    context.fillRect(left, top, size, tall);
    context.globalAlpha = 1;
    if (size < 30 || detail === "load") return;
    context.save();
    context.beginPath();
    context.rect(left, top, size - 3, tall);
    context.clip();
    context.fillStyle = colour("--paper");
    context.fillText(name, Math.max(left, LEFT) + 4, top + tall / 2 + 0.5);
    context.restore();
  }

  private axis(context: CanvasRenderingContext2D, colour: (name: string) => string): void {
    const rough = (this.to - this.from) / Math.max((this.width - LEFT) / 90, 1);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough)!;
    context.fillStyle = colour("--dim");
    for (let tick = Math.ceil(this.from / step) * step; tick <= this.to; tick += step) {
      context.fillRect(this.x(tick), LANES.length * ROW, 1, 4);
      const text = `${Number(tick.toPrecision(6))} ms`;
      const fits = this.x(tick) + 3 + context.measureText(text).width <= this.width;
      if (fits) context.fillText(text, this.x(tick) + 3, HEIGHT - AXIS / 2 + 1);
    }
  }
}

function describe([lane, name, start, duration, detail]: Event): string {
  const what =
    lane === "transfer"
      ? `Copy ${name}, ${detail}`
      : `${name}: ${lane === "run" ? `call of program ${detail}` : detail}`;
  return `${what}, ${milliseconds(duration)}, ${milliseconds(start)} after the start`;
}

/** The values of colour variables, which a canvas can't resolve. */
function coloursOf(element: HTMLElement): (name: string) => string {
  const probe = create("span", "");
  element.append(probe);
  const found = new Map<string, string>();
  for (const name of ["--dim", "--line", "--ink", "--paper", ...LANES.map(({ colour }) => colour)]) {
    probe.style.color = `var(${name})`;
    found.set(name, getComputedStyle(probe).color);
  }
  probe.remove();
  return (name) => found.get(name)!;
}
