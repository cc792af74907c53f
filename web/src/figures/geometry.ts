/** From data to pixels: the positions of values in a panel, and lines with no more points than can be seen. */
import { fromScale, onScale, type Range } from "./scales.js";
import type { Axis } from "./spec.js";

export interface Rectangle {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** One axis of a panel as it is shown: the range of its scale, along pixels from one place to another. */
export class Projection {
  private readonly factor: number;

  constructor(
    readonly scale: Axis["scale"],
    readonly range: Range,
    readonly from: number,
    readonly to: number,
  ) {
    this.factor = (to - from) / (range.high - range.low);
  }

  /** The pixel of a value; NaN for a value that the axis does not have. */
  pixel(value: number): number {
    return this.from + (onScale(this.scale, value) - this.range.low) * this.factor;
  }

  /** The value at a pixel. */
  value(pixel: number): number {
    return fromScale(this.scale, this.place(pixel));
  }

  /** The place on the scale at a pixel. */
  place(pixel: number): number {
    return this.range.low + (pixel - this.from) / this.factor;
  }
}

export interface View {
  x: Projection;
  y: Projection;
  area: Rectangle;
}

/** Whether numbers never decrease; false if one is not a number. */
export function isSorted(data: ArrayLike<number>): boolean {
  for (let i = 1; i < data.length; i++) if (!(data[i]! >= data[i - 1]!)) return false;
  return data.length === 0 || !Number.isNaN(data[0]!);
}

/** The index of the first of sorted numbers that is not below `value`. */
export function lowerBound(data: ArrayLike<number>, value: number): number {
  let [low, high] = [0, data.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (data[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Pairs of pixels; pairs of NaN separate one line from the next. */
class Path {
  private data = new Float64Array(256);
  private length = 0;
  /** Points without an adjacent point to be connected with. */
  readonly alone: number[] = [];
  private run = 0;

  push(x: number, y: number): void {
    if (this.length + 2 > this.data.length) {
      const larger = new Float64Array(2 * this.data.length);
      larger.set(this.data);
      this.data = larger;
    }
    this.data[this.length++] = x;
    this.data[this.length++] = y;
    this.run++;
  }

  end(): void {
    if (this.run === 0) return;
    if (this.run === 1) {
      this.alone.push(this.data[this.length - 2]!, this.data[this.length - 1]!);
      this.length -= 2;
    } else {
      this.push(NaN, NaN);
    }
    this.run = 0;
  }

  points(): Float64Array {
    return this.data.slice(0, this.length);
  }
}

export interface LinePath {
  /** Lines, parted by NaN. */
  points: Float64Array;
  /** Points between two gaps, which no line reaches. */
  alone: Float64Array;
}

/**
 * The line through points in the order in which they are given. What is not finite, or not on a log axis, is a gap.
 * Of many points whose x increases, those are kept in each column of pixels that enter it, leave it, and reach highest
 * and lowest; of others, those that lie at least half a pixel from the last.
 */
export function linePath(x: ArrayLike<number>, y: ArrayLike<number>, view: View): LinePath {
  const path = new Path();
  const { area } = view;
  const many = y.length > 4 * area.width;
  if (many && isSorted(x)) byColumns(x, y, view, path);
  else byDistance(x, y, view, path, many ? 0.5 : 0);
  return { points: withinReach(path.points(), area), alone: Float64Array.from(path.alone) };
}

function byDistance(x: ArrayLike<number>, y: ArrayLike<number>, view: View, path: Path, least: number): void {
  let [lastX, lastY, skipped] = [NaN, NaN, -1];
  const close = (i: number): void => {
    if (i >= 0) path.push(view.x.pixel(x[i]!), view.y.pixel(y[i]!));
  };
  for (let i = 0; i < y.length; i++) {
    const [px, py] = [view.x.pixel(x[i]!), view.y.pixel(y[i]!)];
    if (!Number.isFinite(px) || !Number.isFinite(py)) {
      close(skipped);
      path.end();
      [lastX, lastY, skipped] = [NaN, NaN, -1];
    } else if (Math.abs(px - lastX) < least && Math.abs(py - lastY) < least) {
      skipped = i;
    } else {
      path.push(px, py);
      [lastX, lastY, skipped] = [px, py, -1];
    }
  }
  close(skipped);
  path.end();
}

function byColumns(x: ArrayLike<number>, y: ArrayLike<number>, view: View, path: Path): void {
  const ends = [view.x.value(view.area.x), view.x.value(view.area.x + view.area.width)];
  const first = Math.max(lowerBound(x, Math.min(...ends)) - 1, 0);
  const last = Math.min(lowerBound(x, Math.max(...ends)) + 1, x.length);
  let column = NaN;
  let [enter, lowest, highest, leave] = [-1, -1, -1, -1];
  const emit = (): void => {
    if (enter < 0) return;
    const kept = lowest < highest ? [enter, lowest, highest, leave] : [enter, highest, lowest, leave];
    let before = -1;
    for (const i of kept) {
      if (i > before) path.push(view.x.pixel(x[i]!), view.y.pixel(y[i]!));
      before = Math.max(before, i);
    }
    enter = -1;
  };
  for (let i = first; i < last; i++) {
    const [px, value] = [view.x.pixel(x[i]!), y[i]!];
    if (!Number.isFinite(px) || !Number.isFinite(view.y.pixel(value))) {
      emit();
      path.end();
      continue;
    }
    const at = Math.floor(px);
    if (at !== column || enter < 0) {
      emit();
      column = at;
      enter = lowest = highest = i;
    }
    if (value < y[lowest]!) lowest = i;
    if (value > y[highest]!) highest = i;
    leave = i;
  }
  emit();
  path.end();
}

/** The distance from the panel, in pixels, up to which coordinates are exact enough for drawing. */
const REACH = 20_000;

/** The lines, clipped far outside of the panel: a canvas can't draw lines to points a billion pixels away. */
function withinReach(points: Float64Array, area: Rectangle): Float64Array {
  const [left, right] = [area.x - REACH, area.x + area.width + REACH];
  const [top, bottom] = [area.y - REACH, area.y + area.height + REACH];
  const inside = (x: number, y: number) => x >= left && x <= right && y >= top && y <= bottom;
  let far = false;
  for (let i = 0; i < points.length && !far; i += 2) {
    far = !Number.isNaN(points[i]!) && !inside(points[i]!, points[i + 1]!);
  }
  if (!far) return points;
  const kept: number[] = [];
  for (let i = 2; i < points.length; i += 2) {
    const [x, y] = [points[i - 2]!, points[i - 1]!];
    const [dx, dy] = [points[i]! - x, points[i + 1]! - y];
    if (Number.isNaN(dx)) continue;
    let [from, to] = [0, 1];
    for (const [step, room] of [
      [-dx, x - left],
      [dx, right - x],
      [-dy, y - top],
      [dy, bottom - y],
    ] as const) {
      if (step === 0 && room < 0) to = -1;
      else if (step < 0) from = Math.max(from, room / step);
      else if (step > 0) to = Math.min(to, room / step);
    }
    if (from <= to) kept.push(x + from * dx, y + from * dy, x + to * dx, y + to * dy, NaN, NaN);
  }
  return Float64Array.from(kept);
}
