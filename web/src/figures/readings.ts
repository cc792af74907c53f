/** The values of a figure as text: of the mark under the pointer, and of one item after the other for the keys. */
import { isSorted, lowerBound, type View } from "./geometry.js";
import { barEdges, rasterOf } from "./marks.js";
import { indexAt, type Edges } from "./rasters.js";
import { format } from "./scales.js";
import type { Contour, HeatMap, Image, Mark } from "./spec.js";

export interface Reading {
  /** The pixel that it is about. */
  at: [number, number];
  /** Whether that is a point of the figure, and not a place in an area. */
  point: boolean;
  rows: [name: string, value: string][];
}

/** A reading, and its distance from the pointer in pixels. */
export type Found = Reading & { distance: number };

export type Direction = "left" | "right" | "up" | "down";

const SIGNS: Record<Direction, readonly [number, number]> = {
  left: [-1, 0],
  right: [1, 0],
  up: [0, -1],
  down: [0, 1],
};

/** The index of the point nearest to a pixel. */
function nearest(x: ArrayLike<number>, y: ArrayLike<number>, view: View, px: number, py: number): [number, number] {
  let [found, least] = [-1, Infinity];
  let [from, to] = [0, x.length];
  if (isSorted(x)) {
    const ends = [view.x.value(px - 60), view.x.value(px + 60)];
    [from, to] = [lowerBound(x, Math.min(...ends)), lowerBound(x, Math.max(...ends))];
    if (from === to) [from, to] = [Math.max(from - 1, 0), Math.min(to + 1, x.length)];
  }
  for (let k = from; k < to; k++) {
    const distance = Math.hypot(view.x.pixel(x[k]!) - px, view.y.pixel(y[k]!) - py);
    if (distance < least) [found, least] = [k, distance];
  }
  return [found, least];
}

const vector = (...values: number[]): string => `(${values.map((v) => format(v)).join(", ")})`;

/** How many items a mark has, which keys go through. */
export function countOf(mark: Mark): number {
  switch (mark.kind) {
    case "histogram":
      return mark.heights.data.length;
    case "image":
      return (mark.pixels.shape[0] ?? 0) * (mark.pixels.shape[1] ?? 0);
    case "heatmap":
    case "contour":
      return mark.z.data.length;
    default:
      return mark.x.data.length;
  }
}

/** The middle of a column or row. */
function middle(edges: Edges, k: number): number {
  if ("at" in edges) return (edges.at[k]! + edges.at[k + 1]!) / 2;
  return edges.from + ((k + 0.5) / edges.count) * (edges.to - edges.from);
}

/** The pixel of each item; NaN where it has none. */
function placer(mark: Mark, view: View): (k: number) => [number, number] {
  const at = (x: number, y: number): [number, number] => [view.x.pixel(x), view.y.pixel(y)];
  switch (mark.kind) {
    case "line":
    case "scatter":
    case "quiver":
      return (k) => at(mark.x.data[k]!, mark.y.data[k]!);
    case "band":
      return (k) => at(mark.x.data[k]!, (mark.low.data[k]! + mark.high.data[k]!) / 2);
    case "bar": {
      const edges = barEdges(mark);
      return (k) => at((edges[k]![0] + edges[k]![1]) / 2, mark.height.data[k]!);
    }
    case "histogram": {
      const edges = mark.edges.data;
      return (k) => {
        const [x, y] = at((edges[k]! + edges[k + 1]!) / 2, mark.heights.data[k]!);
        return [x, Number.isFinite(y) ? y : view.area.y + view.area.height]; // an empty bin of a log axis
      };
    }
    case "image":
    case "heatmap": {
      const { columns, rows, pixels } = rasterOf(mark, view.x.scale, view.y.scale);
      const width = pixels.shape[1] ?? 1;
      return (k) => at(middle(columns, k % width), middle(rows, Math.floor(k / width)));
    }
    case "contour": {
      const width = mark.x.data.length;
      return (k) => at(mark.x.data[k % width]!, mark.y.data[Math.floor(k / width)]!);
    }
  }
}

function rowsOf(mark: Mark, k: number): Reading["rows"] {
  switch (mark.kind) {
    case "line":
    case "scatter":
    case "quiver": {
      const rows: Reading["rows"] = [
        ["x", format(mark.x.data[k]!, 6)],
        ["y", format(mark.y.data[k]!, 6)],
      ];
      if (mark.kind === "scatter" && mark.values) rows.push(["value", format(mark.values.data[k]!, 6)]);
      if (mark.kind === "quiver") rows.push(["arrow", vector(mark.u.data[k]!, mark.v.data[k]!)]);
      return rows;
    }
    case "band":
      return [
        ["x", format(mark.x.data[k]!, 6)],
        ["from", format(mark.low.data[k]!)],
        ["to", format(mark.high.data[k]!)],
      ];
    case "bar":
      return [
        ["at", mark.names?.[k] ?? format(mark.x.data[k]!, 6)],
        ["height", format(mark.height.data[k]!, 6)],
      ];
    case "histogram":
      return [
        ["from", format(mark.edges.data[k]!)],
        ["to", format(mark.edges.data[k + 1]!)],
        [mark.density ? "density" : "count", format(mark.heights.data[k]!, 6)],
      ];
    case "image":
    case "heatmap":
      return rowsOfCell(mark, k);
    case "contour": {
      const width = mark.x.data.length;
      return contourRows(mark.x.data[k % width]!, mark.y.data[Math.floor(k / width)]!, mark.z.data[k]!);
    }
  }
}

const contourRows = (x: number, y: number, value: number): Reading["rows"] => [
  ["x", format(x)],
  ["y", format(y)],
  ["value", format(value)],
];

function rowsOfCell(mark: Image | HeatMap, k: number): Reading["rows"] {
  const { data, shape } = mark.kind === "image" ? mark.pixels : mark.z;
  const [, width = 1, channels = 1] = shape;
  const [i, j] = [Math.floor(k / width), k % width];
  const values = Array.from({ length: channels }, (_, channel) => data[k * channels + channel]!);
  const named = mark.kind === "heatmap" ? mark : null;
  const across: [string, string] =
    named && !named.xnames && named.origin === "lower"
      ? ["x", format(named.x.data[j]!)]
      : ["column", named?.xnames?.[j] ?? String(j)];
  const down: [string, string] =
    named && !named.ynames && named.origin === "lower"
      ? ["y", format(named.y.data[i]!)]
      : ["row", named?.ynames?.[i] ?? String(i)];
  const value = channels === 1 ? format(values[0]!, 6) : vector(...values);
  return [down, across, [channels === 1 ? "value" : channels === 3 ? "RGB" : "RGBA", value]];
}

/** What a mark says of one of its items; null for an item that has no place on the axes. */
export function readItem(mark: Mark, view: View, k: number): Reading | null {
  if (!(k >= 0 && k < countOf(mark))) return null;
  const at = placer(mark, view)(k);
  return at.every(Number.isFinite) ? { at, point: true, rows: rowsOf(mark, k) } : null;
}

/** A mark's description of a position in its panel, if it has something near it. */
export function read(mark: Mark, view: View, px: number, py: number): Found | null {
  const [x, y] = [view.x.value(px), view.y.value(py)];
  const area = (k: number, distance: number): Found | null =>
    k < 0 ? null : { at: [px, py], point: false, distance, rows: rowsOf(mark, k) };
  switch (mark.kind) {
    case "line":
    case "scatter":
    case "quiver": {
      const [k, distance] = nearest(mark.x.data, mark.y.data, view, px, py);
      const item = readItem(mark, view, k);
      return item && { ...item, distance };
    }
    case "band": {
      const [k, distance] = nearest(mark.x.data, mark.low.data, view, px, view.y.pixel(mark.low.data[0] ?? 0));
      if (k < 0 || distance > 40) return null;
      const [low, high] = [mark.low.data[k]!, mark.high.data[k]!];
      return area(k, y >= Math.min(low, high) && y <= Math.max(low, high) ? 20 : Infinity);
    }
    case "bar":
      return area(
        barEdges(mark).findIndex(([left, right]) => x >= left && x <= right),
        10,
      );
    case "histogram": {
      const edges = mark.edges.data;
      const k = Math.min(lowerBound(edges, x) - 1, mark.heights.data.length - 1);
      return x <= edges[edges.length - 1]! ? area(k, 10) : null;
    }
    case "image":
    case "heatmap":
      return area(cellAt(mark, view, px, py), 30);
    case "contour": {
      const value = interpolate(mark, x, y);
      if (Number.isNaN(value)) return null;
      return { at: [px, py], point: false, distance: 30, rows: contourRows(x, y, value) };
    }
  }
}

function interpolate({ x, y, z }: Contour, atX: number, atY: number): number {
  const [columns, rows] = [x.data.length, y.data.length];
  const [j, i] = [lowerBound(x.data, atX) - 1, lowerBound(y.data, atY) - 1];
  if (j < 0 || i < 0 || j >= columns - 1 || i >= rows - 1) return NaN;
  const u = (atX - x.data[j]!) / (x.data[j + 1]! - x.data[j]!);
  const v = (atY - y.data[i]!) / (y.data[i + 1]! - y.data[i]!);
  const at = (down: number, across: number) => z.data[(i + down) * columns + j + across]!;
  return (1 - v) * ((1 - u) * at(0, 0) + u * at(0, 1)) + v * ((1 - u) * at(1, 0) + u * at(1, 1));
}

/** The first item from `from` on, in steps of `by`, that has a place on the axes; null if there is none. */
function nextPlaced(mark: Mark, view: View, from: number, by: number): number | null {
  const [place, count] = [placer(mark, view), countOf(mark)];
  for (let k = from; k >= 0 && k < count; k += by) if (place(k).every(Number.isFinite)) return k;
  return null;
}

export const firstItem = (mark: Mark, view: View): number | null => nextPlaced(mark, view, 0, 1);
export const lastItem = (mark: Mark, view: View): number | null => nextPlaced(mark, view, countOf(mark) - 1, -1);

/** The item of a mark that is nearest to a pixel; of a picture the cell there, or its first. */
export function itemAt(mark: Mark, view: View, px: number, py: number): number | null {
  if (mark.kind === "image" || mark.kind === "heatmap") {
    const cell = cellAt(mark, view, px, py);
    return cell < 0 ? firstItem(mark, view) : cell;
  }
  const [place, count] = [placer(mark, view), countOf(mark)];
  let [found, least]: [number | null, number] = [null, Infinity];
  for (let k = 0; k < count; k++) {
    const [x, y] = place(k);
    const distance = Math.hypot(x - px, y - py);
    if (distance < least) [found, least] = [k, distance];
  }
  return found;
}

/** The cell of a picture at a pixel, or -1. */
function cellAt(mark: Image | HeatMap, view: View, px: number, py: number): number {
  const { pixels, columns, rows } = rasterOf(mark, view.x.scale, view.y.scale);
  const [i, j] = [indexAt(rows, view.y.value(py)), indexAt(columns, view.x.value(px))];
  return i < 0 || j < 0 ? -1 : i * (pixels.shape[1] ?? 1) + j;
}

/** The item that a key leads to: null where the mark has none in that direction, or is only gone through sideways. */
export function step(mark: Mark, view: View, from: number, direction: Direction): number | null {
  const [dx, dy] = SIGNS[direction];
  switch (mark.kind) {
    case "line":
    case "band":
    case "bar":
    case "histogram":
      return dx === 0 ? null : along(mark, view, from, dx);
    case "scatter":
      return inOrder(mark, view, from, dx || dy, dx ? 0 : 1);
    case "quiver":
      return towards(mark, view, from, dx, dy);
    case "image":
    case "heatmap":
    case "contour":
      return toCell(mark, view, from, dx, dy);
  }
}

/** Along a line, in the order of its points; of very many only those that can be told apart on the screen. */
function along(mark: Mark, view: View, from: number, sign: number): number | null {
  const [first, last] = [firstItem(mark, view), lastItem(mark, view)];
  if (first === null || last === null) return null;
  const place = placer(mark, view);
  const by = place(last)[0] < place(first)[0] ? -sign : sign;
  const next = nextPlaced(mark, view, from + by, by);
  const count = countOf(mark);
  if (next === null || count <= 4 * view.area.width) return next;
  const [x, y] = place(from);
  for (let k = next; k >= 0 && k < count; k += by) {
    const [px, py] = place(k);
    if (Math.abs(px - x) >= 1 || Math.abs(py - y) >= 1) return k; // false for NaN
  }
  return next;
}

/** The next point along an axis (0 for x), of points at one place the next in their order: each is reached. */
function inOrder(mark: Mark, view: View, from: number, sign: number, axis: 0 | 1): number | null {
  const [place, count] = [placer(mark, view), countOf(mark)];
  const start = place(from)[axis];
  let [found, least]: [number | null, number] = [null, Infinity];
  for (let k = 0; k < count; k++) {
    const pixel = place(k);
    if (k === from || !pixel.every(Number.isFinite)) continue;
    const away = sign * (pixel[axis] - start);
    const isAfter = away > 0 || (away === 0 && sign * (k - from) > 0);
    const isNearer = away < least || (away === least && sign < 0);
    if (isAfter && isNearer) [found, least] = [k, away];
  }
  return found;
}

/** The nearest point in a direction, give or take 45 degrees. */
function towards(mark: Mark, view: View, from: number, dx: number, dy: number): number | null {
  const [place, count] = [placer(mark, view), countOf(mark)];
  const [x, y] = place(from);
  let [found, least]: [number | null, number] = [null, Infinity];
  for (let k = 0; k < count; k++) {
    const [px, py] = place(k);
    const ahead = (px - x) * dx + (py - y) * dy;
    const aside = Math.abs((px - x) * dy) + Math.abs((py - y) * dx);
    if (ahead > 0 && aside <= ahead && ahead + aside < least) [found, least] = [k, ahead + aside];
  }
  return found;
}

/** A cell of a picture is at least this large, or a key goes over several. */
const LEAST_STEP = 4;

function toCell(mark: Image | HeatMap | Contour, view: View, from: number, dx: number, dy: number): number | null {
  const { shape } = mark.kind === "image" ? mark.pixels : mark.z;
  const [rows = 0, columns = 0] = shape;
  const [i, j] = [Math.floor(from / columns), from % columns];
  const [count, index, stride, axis] = dx ? [columns, j, 1, 0 as const] : [rows, i, columns, 1 as const];
  if (count < 2) return null;
  const [place, ahead] = [placer(mark, view), index + 1 < count];
  const neighbour = place(ahead ? from + stride : from - stride)[axis];
  const size = (neighbour - place(from)[axis]) * (ahead ? 1 : -1);
  const cells = Math.max(Math.round(LEAST_STEP / Math.abs(size)), 1);
  const to = Math.min(Math.max(index + cells * (dx || dy) * Math.sign(size), 0), count - 1);
  return to === index || !Number.isFinite(size) ? null : from + (to - index) * stride;
}
