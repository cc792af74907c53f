/** The extent of each kind of mark on the axes, and its shapes. */
import { colourAt, isLight, rgbOf, table, type Theme } from "./colours.js";
import { rings } from "./contours.js";
import { linePath, type Projection, type View } from "./geometry.js";
import { drawDots, drawRaster, mapRange, shareOf, type Edges, type Raster, type Sheets } from "./rasters.js";
import { format, fromScale, isEmpty, onScale, rangeOf, union, type Range } from "./scales.js";
import type { Axis, Bar, Contour, HeatMap, Image, Mark, Numbers, PanelSpec, Quiver, Scatter } from "./spec.js";
import { FONT_SIZE, textWidth } from "./text.js";

export interface Style {
  stroke?: string;
  fill?: string;
  lineWidth?: number;
  lineDash?: number[];
  opacity?: number;
}

/** Shapes in pixels. Points are pairs of coordinates; pairs of NaN part lines. */
export type Shape =
  | { type: "lines"; points: Float64Array; closed: boolean; style: Style }
  | { type: "dots"; points: Float64Array; radius: number; style: Style }
  | { type: "picture"; canvas: HTMLCanvasElement }
  | { type: "text"; x: number; y: number; text: string; fill: string; size: number };

/**
 * Drawing options of a mark that are not part of its description: its colour, the number of dots for each pixel, and
 * canvases for pictures.
 */
export interface Paint {
  colour: string;
  theme: Theme;
  ratio: number;
  sheets: Sheets;
}

/** The extent of a mark. A tight mark fills the axes to their ends; the low end of a mark from zero is the axis. */
export interface Cover {
  x: Range;
  y: Range;
  tight: boolean;
  fromZero: boolean;
}

/** More points than this are drawn pixel by pixel. */
const MOST_DOTS = 20_000;

type Scale = Axis["scale"];

const dashes: Record<string, number[]> = { solid: [], dashed: [6, 4], dotted: [1.5, 3] };

/** The edges of cells from their centres, halfway between; on a log axis halfway between the logarithms. */
function cellEdges({ data }: Numbers, scale: Scale): { at: Float64Array } {
  const count = data.length;
  const place = (k: number) => onScale(scale, data[k] ?? 1);
  const at = new Float64Array(count + 1);
  for (let k = 1; k < count; k++) at[k] = (place(k - 1) + place(k)) / 2;
  at[0] = count < 2 ? place(0) - 0.5 : 2 * place(0) - at[1]!;
  at[count] = count < 2 ? place(0) + 0.5 : 2 * place(count - 1) - at[count - 1]!;
  return { at: at.map((each) => fromScale(scale, each)) };
}

/** A picture's cells: for an image between the edges of its extent, for a heat map around its positions. */
export function rasterOf(mark: Image | HeatMap, xscale: Scale, yscale: Scale): Raster {
  if (mark.kind === "heatmap") {
    return { pixels: mark.z, columns: cellEdges(mark.x, xscale), rows: cellEdges(mark.y, yscale), map: mark.map };
  }
  const [left, right, bottom, top] = mark.extent;
  const [rows = 0, columns = 0] = mark.pixels.shape;
  const [from, to] = mark.origin === "upper" ? [top, bottom] : [bottom, top];
  return {
    pixels: mark.pixels,
    columns: { from: left, to: right, count: columns },
    rows: { from, to, count: rows },
    map: mark.map,
  };
}

const endsOf = (edges: Edges): number[] => ("at" in edges ? [edges.at[0]!, edges.at.at(-1)!] : [edges.from, edges.to]);

/** Where bars begin and end: bars of several marks are side by side around their positions. */
export function barEdges({ x, width, slot: [at, count] }: Bar): [number, number][] {
  const places = [...new Set(x.data as Iterable<number>)].filter(Number.isFinite).sort((a, b) => a - b);
  const apart = places.slice(1).reduce((least, place, k) => Math.min(least, place - places[k]!), Infinity);
  const each = (width * (Number.isFinite(apart) ? apart : 1)) / count;
  return Array.from(x.data, (place) => {
    const left = place + each * (at - count / 2);
    return [left, left + each];
  });
}

const both = (a: ArrayLike<number>, b: ArrayLike<number>, scale: "linear" | "log") =>
  union(rangeOf(a, scale), rangeOf(b, scale));

/** The extent of a mark on axes of these scales. */
export function cover(mark: Mark, { x, y }: PanelSpec): Cover {
  const plain = { tight: false, fromZero: false };
  const zero = { low: 0, high: y.scale === "log" ? -Infinity : 0 };
  const fromZero = (range: Range) => (y.scale === "log" ? range : union(range, zero));
  switch (mark.kind) {
    case "line":
    case "scatter": {
      return { x: rangeOf(mark.x.data, x.scale), y: rangeOf(mark.y.data, y.scale), ...plain };
    }
    case "band":
      return { x: rangeOf(mark.x.data, x.scale), y: both(mark.low.data, mark.high.data, y.scale), ...plain };
    case "bar": {
      const edges = rangeOf(barEdges(mark).flat(), x.scale);
      return { x: edges, y: fromZero(rangeOf(mark.height.data, y.scale)), tight: false, fromZero: true };
    }
    case "histogram": {
      const heights = fromZero(rangeOf(mark.heights.data, y.scale));
      return { x: rangeOf(mark.edges.data, x.scale), y: heights, tight: false, fromZero: true };
    }
    case "image":
    case "heatmap": {
      const { columns, rows } = rasterOf(mark, x.scale, y.scale);
      return { x: rangeOf(endsOf(columns), x.scale), y: rangeOf(endsOf(rows), y.scale), tight: true, fromZero: false };
    }
    case "contour":
      return { x: rangeOf(mark.x.data, x.scale), y: rangeOf(mark.y.data, y.scale), tight: true, fromZero: false };
    case "quiver": {
      const tips = (from: Numbers, by: Numbers) => Float64Array.from(from.data, (v, k) => v + by.data[k]! / mark.scale);
      return {
        x: both(mark.x.data, tips(mark.x, mark.u), x.scale),
        y: both(mark.y.data, tips(mark.y, mark.v), y.scale),
        ...plain,
      };
    }
  }
}

/** How many finite points a log axis can't show. */
export function lostOnLog(mark: Mark, { x, y }: PanelSpec): number {
  if (x.scale === "linear" && y.scale === "linear") return 0;
  const [across, up] =
    mark.kind === "bar"
      ? [mark.x, mark.height]
      : mark.kind === "line" || mark.kind === "scatter"
        ? [mark.x, mark.y]
        : [];
  if (!across || !up) return 0;
  let lost = 0;
  for (let k = 0; k < up.data.length; k++) {
    const [a, b] = [across.data[k]!, up.data[k]!];
    if (!Number.isFinite(a) || !Number.isFinite(b)) continue;
    if ((x.scale === "log" && a <= 0) || (y.scale === "log" && b <= 0)) lost++;
  }
  return lost;
}

/** Rectangles as closed lines. */
class Rectangles {
  private readonly corners: number[] = [];

  add(left: number, right: number, top: number, bottom: number): void {
    if (![left, right, top, bottom].every(Number.isFinite)) return;
    this.corners.push(left, top, right, top, right, bottom, left, bottom, NaN, NaN);
  }

  shape(style: Style): Shape {
    return { type: "lines", points: Float64Array.from(this.corners), closed: true, style };
  }
}

/** The pixel where bars begin: zero, or on a log axis its lower end. */
function baseline({ y, area }: View): number {
  const end = y.from > y.to ? area.y + area.height : area.y;
  return y.scale === "log" ? end : Math.min(Math.max(y.pixel(0), area.y - 1e4), area.y + area.height + 1e4);
}

function drawScatter(mark: Scatter, view: View, { colour, ratio, theme }: Paint): Shape[] {
  const { area } = view;
  const [radius, kept, indices] = [mark.size / 2, [] as number[], [] as number[]];
  for (let k = 0; k < mark.x.data.length; k++) {
    const [x, y] = [view.x.pixel(mark.x.data[k]!), view.y.pixel(mark.y.data[k]!)];
    const [dx, dy] = [x - area.x, y - area.y];
    // false for NaN too
    if (dx >= -radius && dx <= area.width + radius && dy >= -radius && dy <= area.height + radius) {
      kept.push(x, y);
      indices.push(k);
    }
  }
  const points = Float64Array.from(kept);
  const { values, map } = mark;
  const shares = values && map ? sharesOf(values, mapRange(map, values.data), indices) : null;
  if (indices.length > MOST_DOTS) {
    const plain = rgbOf(colour);
    const colours = map ? table(map.name) : null;
    const colourOf = (k: number) => {
      const share = shares?.[k];
      if (share === undefined || !colours) return plain;
      const at = 3 * Math.round(255 * (share || 0));
      return [colours[at]!, colours[at + 1]!, colours[at + 2]!] as const;
    };
    return [{ type: "picture", canvas: drawDots(points, radius, view, ratio, colourOf) }];
  }
  if (!shares || !map) return [{ type: "dots", points, radius, style: { fill: colour, opacity: 0.85 } }];
  // points of one colour of the map make one shape
  const groups = new Map<number, number[]>();
  shares.forEach((share, k) => {
    if (Number.isNaN(share)) return;
    const step = Math.round(share * 63);
    if (!groups.has(step)) groups.set(step, []);
    groups.get(step)!.push(points[2 * k]!, points[2 * k + 1]!);
  });
  return [...groups].map(([step, group]) => ({
    type: "dots",
    points: Float64Array.from(group),
    radius,
    // an end of the map may have the page's own colour
    style: { fill: colourAt(map.name, step / 63), opacity: 0.9, stroke: theme.dim, lineWidth: 0.5 },
  }));
}

const sharesOf = ({ data }: Numbers, range: Range, indices: number[]): number[] =>
  indices.map((k) => shareOf(range, data[k]!));

function drawBand(mark: Extract<Mark, { kind: "band" }>, view: View, { colour }: Paint): Shape[] {
  const outline: number[] = [];
  let begin = 0;
  const finish = (end: number): void => {
    for (let k = begin; k < end; k++) outline.push(view.x.pixel(mark.x.data[k]!), view.y.pixel(mark.high.data[k]!));
    for (let k = end - 1; k >= begin; k--) outline.push(view.x.pixel(mark.x.data[k]!), view.y.pixel(mark.low.data[k]!));
    if (end > begin) outline.push(NaN, NaN);
  };
  for (let k = 0; k <= mark.x.data.length; k++) {
    const places = k < mark.x.data.length && [
      view.x.pixel(mark.x.data[k]!),
      view.y.pixel(mark.low.data[k]!),
      view.y.pixel(mark.high.data[k]!),
    ];
    if (places && places.every(Number.isFinite)) continue;
    finish(k);
    begin = k + 1;
  }
  return [{ type: "lines", points: Float64Array.from(outline), closed: true, style: { fill: colour, opacity: 0.22 } }];
}

/** The place between the columns or rows of a grid. */
function between({ data }: Numbers, at: number): number {
  const low = Math.min(Math.max(Math.floor(at), 0), data.length - 1);
  const next = Math.min(low + 1, data.length - 1);
  return data[low]! + (data[next]! - data[low]!) * (at - low);
}

/** The k-th of evenly spaced shares of a map, or of a part of it. */
const levelShare = (k: number, count: number, [low, high]: readonly [number, number] = [0, 1]): number =>
  low + (high - low) * (count > 1 ? k / (count - 1) : 0.5);

/** The colours of a contour plot: of its lines, or where it is filled of the areas below, between and above them. */
export function levelColours({ levels, map, filled, color }: Contour, theme: Theme): string[] {
  const count = levels.data.length + (filled ? 1 : 0);
  const part = filled ? undefined : theme.legible;
  return Array.from({ length: count }, (_, k) => color ?? colourAt(map.name, levelShare(k, count, part)));
}

function drawContour(mark: Contour, view: View, { theme }: Paint): Shape[] {
  const [rows = 0, columns = 0] = mark.z.shape;
  const shapes: Shape[] = [];
  const [levels, colours] = [mark.levels.data, levelColours(mark, theme)];
  const pixels = (ring: { x: number[]; y: number[] }) =>
    ring.x.map((at, k) => [view.x.pixel(between(mark.x, at)), view.y.pixel(between(mark.y, ring.y[k]!))] as const);
  const found = Array.from(levels, (level) => rings(mark.z.data, columns, rows, level));
  if (mark.filled) {
    // each area over the one below it, so that no seams show
    [rings(mark.z.data, columns, rows, -Infinity), ...found].forEach((area, k) => {
      const outline = area.flatMap((ring) => [...pixels(ring).flat(), NaN, NaN]);
      shapes.push({ type: "lines", points: Float64Array.from(outline), closed: true, style: { fill: colours[k]! } });
    });
  }
  found.forEach((all, k) => {
    const line: number[] = [];
    for (const ring of all) {
      const points = pixels(ring);
      points.push(points[0]!);
      const border = [...ring.border, ring.border[0]!];
      points.forEach(([x, y], i) => {
        if (border[i]) line.push(NaN, NaN);
        else line.push(x, y);
      });
      line.push(NaN, NaN);
    }
    const thin = { stroke: theme.surface, lineWidth: 0.75, opacity: 0.6 };
    const style = mark.filled ? thin : { stroke: colours[k]!, lineWidth: 1.75 };
    shapes.push({ type: "lines", points: Float64Array.from(line), closed: false, style });
  });
  return shapes;
}

function drawQuiver(mark: Quiver, view: View, { colour }: Paint): Shape[] {
  const [shafts, heads, dots]: [number[], number[], number[]] = [[], [], []];
  for (let k = 0; k < mark.x.data.length; k++) {
    const [x, y] = [mark.x.data[k]!, mark.y.data[k]!];
    const [x0, y0] = [view.x.pixel(x), view.y.pixel(y)];
    const [x1, y1] = [view.x.pixel(x + mark.u.data[k]! / mark.scale), view.y.pixel(y + mark.v.data[k]! / mark.scale)];
    if (![x0, y0, x1, y1].every(Number.isFinite)) continue;
    const length = Math.hypot(x1 - x0, y1 - y0);
    if (length < 0.5) {
      dots.push(x0, y0);
      continue;
    }
    const head = Math.min(7, 0.45 * length);
    const [ux, uy] = [(x1 - x0) / length, (y1 - y0) / length];
    const [bx, by] = [x1 - ux * head, y1 - uy * head];
    shafts.push(x0, y0, bx, by, NaN, NaN);
    const half = head * 0.42;
    heads.push(x1, y1, bx - uy * half, by + ux * half, bx + uy * half, by - ux * half, NaN, NaN);
  }
  return [
    { type: "lines", points: Float64Array.from(shafts), closed: false, style: { stroke: colour, lineWidth: 1.4 } },
    { type: "lines", points: Float64Array.from(heads), closed: true, style: { fill: colour } },
    { type: "dots", points: Float64Array.from(dots), radius: 1.2, style: { fill: colour } },
  ];
}

/** More cells than this have no numbers. */
const MOST_ANNOTATIONS = 4000;
/** Smaller numbers can't be read. */
const LEAST_FONT_SIZE = 8.5;

/** The size of the numbers in the cells of a heat map, as large as all of them fit; null if none is large enough. */
export function annotationSize(mark: HeatMap, view: View, theme: Theme): number | null {
  if (mark.z.data.length > MOST_ANNOTATIONS) return null;
  const least = (centres: Numbers, axis: Projection): number => {
    const edges = cellEdges(centres, axis.scale).at.map((edge) => axis.pixel(edge));
    return edges.slice(1).reduce((size, edge, k) => Math.min(size, Math.abs(edge - edges[k]!)), Infinity);
  };
  const [wide, tall] = [least(mark.x, view.x), least(mark.y, view.y)];
  const widest = Math.max(1, ...Array.from(mark.z.data, (value) => textWidth(format(value, 4), theme)));
  const size = FONT_SIZE * Math.min(1, (wide - 3) / widest, (tall - 2) / FONT_SIZE);
  return size >= LEAST_FONT_SIZE ? size : null;
}

function drawPicture(mark: Image | HeatMap, view: View, { ratio, theme, sheets }: Paint): Shape[] {
  const canvas = drawRaster(rasterOf(mark, view.x.scale, view.y.scale), view, ratio, sheets);
  const shapes: Shape[] = canvas ? [{ type: "picture", canvas }] : [];
  if (mark.kind !== "heatmap" || !mark.annotate) return shapes;
  const size = annotationSize(mark, view, theme);
  if (size === null) return shapes;
  const range = mapRange(mark.map, mark.z.data);
  const columns = mark.x.data.length;
  mark.z.data.forEach((value: number, k: number) => {
    const share = shareOf(range, value);
    const [x, y] = [view.x.pixel(mark.x.data[k % columns]!), view.y.pixel(mark.y.data[Math.floor(k / columns)]!)];
    const fill = isLight(mark.map.name, share) ? "#16181d" : "#ffffff";
    if (!Number.isNaN(share)) shapes.push({ type: "text", x, y, text: format(value, 4), fill, size });
  });
  return shapes;
}

/** The shapes of a mark in a panel. */
export function draw(mark: Mark, view: View, paint: Paint): Shape[] {
  const { colour } = paint;
  switch (mark.kind) {
    case "line": {
      const { points, alone } = linePath(mark.x.data, mark.y.data, view);
      const style = { stroke: colour, lineWidth: mark.width, lineDash: dashes[mark.style]! };
      const shapes: Shape[] = [{ type: "lines", points, closed: false, style }];
      const radius = Math.max(mark.width * 1.3, 2.5);
      if (mark.markers) {
        const marked = { ...mark, kind: "scatter" as const, size: 3 * mark.width, values: null, map: null };
        shapes.push(...drawScatter(marked, view, paint));
      } else if (alone.length) {
        shapes.push({ type: "dots", points: alone, radius, style: { fill: colour } });
      }
      return shapes;
    }
    case "scatter":
      return drawScatter(mark, view, paint);
    case "band":
      return drawBand(mark, view, paint);
    case "bar": {
      const [bars, base] = [new Rectangles(), baseline(view)];
      barEdges(mark).forEach(([left, right], k) =>
        bars.add(view.x.pixel(left) + 0.5, view.x.pixel(right) - 0.5, view.y.pixel(mark.height.data[k]!), base),
      );
      return [bars.shape({ fill: colour, opacity: 0.9 })];
    }
    case "histogram": {
      const [bars, base] = [new Rectangles(), baseline(view)];
      mark.heights.data.forEach((height: number, k: number) => {
        const [left, right] = [view.x.pixel(mark.edges.data[k]!), view.x.pixel(mark.edges.data[k + 1]!)];
        const gap = right - left > 3 ? 0.5 : 0;
        if (height !== 0) bars.add(left + gap, right - gap, view.y.pixel(height), base);
      });
      return [bars.shape({ fill: colour, opacity: 0.75 })];
    }
    case "image":
    case "heatmap":
      return drawPicture(mark, view, paint);
    case "contour":
      return drawContour(mark, view, paint);
    case "quiver":
      return drawQuiver(mark, view, paint);
  }
}

/** In a sentence, for those who don't see it. */
export function say(mark: Mark): string {
  const named = mark.label ? ` "${mark.label}"` : "";
  const span = (data: ArrayLike<number>): string => {
    const range = rangeOf(data);
    return isEmpty(range) ? "no finite numbers" : `from ${format(range.low)} to ${format(range.high)}`;
  };
  switch (mark.kind) {
    case "line":
    case "scatter": {
      const what = mark.kind === "line" ? "line" : "points";
      const { data } = mark.y;
      const last = data.length
        ? `, the last ${format(data[data.length - 1]!)} at ${format(mark.x.data[data.length - 1]!)}`
        : "";
      return `${what}${named}: ${data.length} points, ${span(data)}${last}`;
    }
    case "bar":
      return `bars${named}: ${mark.height.data.length}, ${span(mark.height.data)}`;
    case "histogram":
      return `histogram${named}: ${mark.heights.data.length} bins ${span(mark.edges.data)}`;
    case "band":
      return `band${named} from ${span(mark.low.data)} up to ${span(mark.high.data)}`;
    case "image": {
      const [rows, columns, channels] = mark.pixels.shape;
      return `picture of ${rows} rows and ${columns} columns${channels ? "" : `, ${span(mark.pixels.data)}`}`;
    }
    case "heatmap":
      return `heat map of ${mark.z.shape.join(" by ")} cells, ${span(mark.z.data)}`;
    case "contour":
      return `contour lines of ${mark.levels.data.length} levels, ${span(mark.levels.data)}`;
    case "quiver":
      return `${mark.u.data.length} arrows${named}`;
  }
}
