/**
 * Fingers on a panel: two zoom and move it, one moves it while it is zoomed and scrolls the page otherwise, a tap
 * reads a value, two taps show everything again.
 */
import type { View } from "./geometry.js";
import type { Window } from "./layout.js";
import type { Scene } from "./panel.js";
import type { Range } from "./scales.js";

/** The parts of a panel that the pointer and fingers use. */
export interface Target {
  scene(): Scene;
  view(): View;
  window(): Window;
  isZoomed(): boolean;
  /** Shows a part, or everything again. */
  show(window: Window | null): void;
}

type Place = readonly [number, number];

/** A finger that moves by more pixels than this, or stays for longer, does not tap. */
const TAP = { pixels: 10, milliseconds: 500 };
/** Two taps this close are one double tap. */
const DOUBLE = { pixels: 40, milliseconds: 350 };

/** Where a movement began; it begins anew whenever a finger comes or goes. */
interface Start {
  fingers: Place[];
  /** Labels may become wider in the movement, and the area of the panel narrower. */
  view: View;
  window: Window;
  whole: Window;
}

const middle = (fingers: readonly Place[], axis: 0 | 1): number =>
  fingers.reduce((sum, finger) => sum + finger[axis], 0) / fingers.length;

const apart = ([a, b]: readonly Place[]): number => (a && b ? Math.max(Math.hypot(a[0] - b[0], a[1] - b[1]), 10) : 1);

/** A range of another size in which a share of the old one is at a share of the new one, inside of the whole. */
export function moved(range: Range, whole: Range, factor: number, share: number, at: number): Range {
  const span = range.high - range.low;
  const least = Math.max(Math.abs(range.low), Math.abs(range.high), 1e-300) * 1e-10;
  const size = Math.min(Math.max(span * factor, Math.min(span, least)), whole.high - whole.low);
  const low = Math.min(Math.max(range.low + share * span - at * size, whole.low), whole.high - size);
  return size < whole.high - whole.low ? { low, high: low + size } : { ...whole };
}

const isWhole = (window: Window, whole: Window): boolean =>
  (["x", "y"] as const).every((axis) => window[axis].low === whole[axis].low && window[axis].high === whole[axis].high);

export class Touches {
  private start: Start | null = null;
  private tap: { at: Place; time: number } | null = null;
  private before: { at: Place; time: number } | null = null;

  constructor(
    private readonly element: HTMLElement,
    private readonly target: Target,
    private readonly tapped: (at: Place) => void,
    private readonly hide: () => void,
    signal: AbortSignal,
  ) {
    const on = (name: "touchstart" | "touchmove" | "touchend" | "touchcancel", listener: (event: TouchEvent) => void) =>
      element.addEventListener(name, listener, { signal, passive: false });
    on("touchstart", (event) => this.down(event));
    on("touchmove", (event) => this.move(event));
    on("touchend", (event) => this.up(event));
    on("touchcancel", () => this.cancel());
  }

  private fingers(event: TouchEvent): Place[] {
    const { left, top } = this.element.getBoundingClientRect();
    return [...event.targetTouches].slice(0, 2).map(({ clientX, clientY }) => [clientX - left, clientY - top] as const);
  }

  private begin(fingers: Place[]): void {
    const moves = fingers.length > 1 || (fingers.length === 1 && this.target.isZoomed());
    const { target } = this;
    this.start = moves
      ? { fingers, view: target.view(), window: target.window(), whole: target.scene().whole() }
      : null;
  }

  private down(event: TouchEvent): void {
    const fingers = this.fingers(event);
    this.tap = fingers.length === 1 ? { at: fingers[0]!, time: event.timeStamp } : null;
    if (fingers.length > 1) event.preventDefault(); // the page does not scroll with two fingers
    this.begin(fingers);
  }

  private move(event: TouchEvent): void {
    const fingers = this.fingers(event);
    const { tap, start } = this;
    if (tap && Math.hypot(fingers[0]![0] - tap.at[0], fingers[0]![1] - tap.at[1]) > TAP.pixels) this.tap = null;
    if (!start || start.fingers.length !== fingers.length) return;
    if (event.cancelable) event.preventDefault();
    if (this.tap) return;
    const view = this.target.view();
    const factor = apart(start.fingers) / apart(fingers);
    const along = (name: "x" | "y", axis: 0 | 1): Range => {
      const share = ({ from, to }: View["x"], at: readonly Place[]) => (middle(at, axis) - from) / (to - from);
      const [was, is] = [share(start.view[name], start.fingers), share(view[name], fingers)];
      return moved(start.window[name], start.whole[name], factor, was, is);
    };
    const window = { x: along("x", 0), y: along("y", 1) };
    this.hide();
    this.target.show(isWhole(window, start.whole) ? null : window);
  }

  private up(event: TouchEvent): void {
    const { tap, before } = this;
    this.begin(this.fingers(event));
    this.tap = null;
    if (!tap || event.timeStamp - tap.time > TAP.milliseconds) return;
    const isSecond =
      before !== null &&
      tap.time - before.time < DOUBLE.milliseconds &&
      Math.hypot(tap.at[0] - before.at[0], tap.at[1] - before.at[1]) < DOUBLE.pixels;
    this.before = isSecond ? null : tap;
    if (isSecond) {
      this.hide();
      this.target.show(null);
    } else {
      this.tapped(tap.at);
    }
  }

  private cancel(): void {
    this.start = this.tap = null;
  }
}
