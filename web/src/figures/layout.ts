/** The places of all parts of a panel: axes with their ranges and ticks, colour bars, and the area between. */
import type { Theme } from "./colours.js";
import { Projection, type Rectangle, type View } from "./geometry.js";
import { cover, levelColours } from "./marks.js";
import { mapRange } from "./rasters.js";
import { EMPTY, format, onScale, padded, ticks, union, type Range, type Tick } from "./scales.js";
import type { Axis, ColourMap, Contour, Mark, PanelSpec } from "./spec.js";
import { FONT_SIZE, LINE_HEIGHT, shorten, textWidth, wrap } from "./text.js";

/** The part of a panel that is shown, on the scales of its axes. */
export interface Window {
  x: Range;
  y: Range;
}

export interface Bar {
  map: string;
  area: Rectangle;
  range: Range;
  ticks: Tick[];
  /** Its plain colours from below; null for all of the map. */
  steps: string[] | null;
}

export interface AxisName {
  lines: string[];
  gap: number;
}

export interface Layout {
  view: View;
  /** Whether the y axis grows downwards. */
  inverted: { x: boolean; y: boolean };
  xticks: Tick[];
  yticks: Tick[];
  /** Whether the labels along x are upright, as they have no room beside each other. */
  isUpright: boolean;
  /** Whether ticks have names, which no lines go up from. */
  isNamed: { x: boolean; y: boolean };
  /** The lines of the names of the axes, and how far these are from it. */
  names: { x: AxisName; y: AxisName };
  /** Whether the axes are drawn; a single picture has none. */
  axes: boolean;
  bars: Bar[];
}

/** The range of an axis without zooming: the limits of the description, or all marks and a little more. */
function wholeRange(axis: Axis, covers: { range: Range; tight: boolean; fromZero: boolean }[]): Range {
  if (axis.limits) {
    const [a, b] = axis.limits.map((limit) => onScale(axis.scale, limit)) as [number, number];
    if (Number.isFinite(a) && Number.isFinite(b)) return { low: Math.min(a, b), high: Math.max(a, b) };
  }
  const range = covers.reduce((all, each) => union(all, each.range), EMPTY);
  // a picture fills its axes, unless something beside it does not
  const pictures = covers.reduce((all, each) => (each.tight ? union(all, each.range) : all), EMPTY);
  const tight = pictures.low === range.low && pictures.high === range.high;
  const wide = padded(range, tight ? 0 : 0.045);
  if (axis.scale === "linear" && covers.some((each) => each.fromZero)) {
    if (range.low === 0) wide.low = 0;
    if (range.high === 0) wide.high = 0;
  }
  return wide;
}

/** The whole of a panel as its axes show it. */
export function wholeWindow(spec: PanelSpec, marks: readonly Mark[]): Window {
  const covers = marks.map((mark) => cover(mark, spec));
  return {
    x: wholeRange(
      spec.x,
      covers.map(({ x, tight }) => ({ range: x, tight, fromZero: false })),
    ),
    y: wholeRange(
      spec.y,
      covers.map(({ y, tight, fromZero }) => ({ range: y, tight, fromZero })),
    ),
  };
}

/** Ticks at places with names. */
function namedTicks(marks: readonly Mark[], axis: "x" | "y"): Tick[] | null {
  for (const mark of marks) {
    const names =
      mark.kind === "bar" && axis === "x" ? mark.names : mark.kind === "heatmap" ? mark[`${axis}names`] : null;
    if (names && "x" in mark) {
      const places = axis === "x" ? mark.x.data : mark.kind === "heatmap" ? mark.y.data : mark.x.data;
      return names.map((text, k) => ({ at: places[k]!, text }));
    }
  }
  return null;
}

/** Whether rows are counted from the top: in pictures, as in matrices. */
function isInverted(marks: readonly Mark[], axis: "x" | "y", limits: [number, number] | null): boolean {
  const downwards = marks.some(
    (mark) =>
      (mark.kind === "image" && (axis === "y" ? mark.extent[2] > mark.extent[3] : mark.extent[0] > mark.extent[1])) ||
      (mark.kind === "heatmap" && axis === "y" && mark.origin === "upper"),
  );
  return limits ? limits[0] > limits[1] : downwards;
}

/** Whether a panel is a picture and nothing else, which needs no axes. */
function isPicture(spec: PanelSpec): boolean {
  const { marks, x, y } = spec;
  return (
    marks.length > 0 && marks.every((mark) => mark.kind === "image") && spec.aspect === "equal" && !x.label && !y.label
  );
}

/** The subject of a colour bar: the levels of a contour plot, or a range of numbers. */
interface Coloured {
  map: ColourMap;
  contour: Contour | null;
  range: Range | null;
}

function coloured(marks: readonly Mark[]): Coloured[] {
  return marks.flatMap((mark): Coloured[] => {
    if (!("map" in mark) || !mark.map?.bar) return [];
    if (mark.kind === "contour") {
      const shown = mark.color === null && mark.levels.data.length > 0;
      return shown ? [{ map: mark.map, contour: mark, range: null }] : [];
    }
    const data = mark.kind === "image" ? mark.pixels.data : mark.kind === "heatmap" ? mark.z.data : mark.values?.data;
    return data ? [{ map: mark.map, contour: null, range: mapRange(mark.map, data) }] : [];
  });
}

const BAR_WIDTH = 12;
const BETWEEN_BARS = 20; // of bars above each other
const MOST_FOR_BARS = 0.3; // of the room of a panel

/**
 * The colour bars of a panel, and the room that they take: beside each other, or above each other where a narrow panel
 * would have little left for what it shows. Their areas begin at 0.
 */
function placeBars(marks: readonly Mark[], theme: Theme, height: number, room: number): { bars: Bar[]; width: number } {
  const all = coloured(marks);
  const found = barsInRow(all, theme, height);
  if (all.length < 2 || found.width <= MOST_FOR_BARS * room) return found;
  const each = Math.max((height - BETWEEN_BARS * (all.length - 1)) / all.length, 10);
  const alone = all.map((one) => barsInRow([one], theme, each));
  return {
    bars: alone.flatMap(({ bars }, k) =>
      bars.map((bar) => ({ ...bar, area: { ...bar.area, y: k * (each + BETWEEN_BARS) } })),
    ),
    width: Math.max(...alone.map(({ width }) => width)),
  };
}

function barsInRow(wanted: readonly Coloured[], theme: Theme, height: number): { bars: Bar[]; width: number } {
  const bars: Bar[] = [];
  let width = 0;
  for (const { map, contour, range } of wanted) {
    let [steps, all, marked]: [string[] | null, Range, Tick[]] = [null, { low: 0, high: 1 }, []];
    if (contour) {
      // a step for each line, named in its middle, or for each area, named at its edge
      steps = levelColours(contour, theme);
      const { data } = contour.levels;
      const every = Math.ceil(data.length / Math.max(Math.floor(height / 16), 1));
      const shift = contour.filled ? 1 : 0.5;
      marked = Array.from(data, (level, k) => ({ at: (k + shift) / steps!.length, text: format(level, 4) }));
      marked = marked.filter((_, k) => k % every === 0);
    } else if (range) {
      all = range.high > range.low ? range : padded(range, 0);
      marked = ticks("linear", all, Math.max(Math.floor(height / 45), 2));
    }
    const labels = Math.max(0, ...marked.map(({ text }) => textWidth(text, theme)));
    bars.push({
      map: map.name,
      area: { x: width + 14, y: 0, width: BAR_WIDTH, height },
      range: all,
      ticks: marked,
      steps,
    });
    width += 14 + BAR_WIDTH + 6 + Math.ceil(labels);
  }
  return { bars, width };
}

/** Units of the same length along both axes, in as much of the area as possible. */
function equalArea(area: Rectangle, window: Window, picture: { columns: number; ratio: number } | null): Rectangle {
  const [across, up] = [window.x.high - window.x.low, window.y.high - window.y.low];
  let unit = Math.min(area.width / across, area.height / up);
  if (picture) {
    // pixels of a picture that is enlarged take a whole number of the screen's, unless it would become much smaller
    const each = (unit * across * picture.ratio) / picture.columns;
    const whole = Math.floor(each + 1e-9);
    if (whole >= 0.8 * each) unit *= whole / each;
  }
  const [width, height] = [across * unit, up * unit];
  const snap = (v: number) => (picture ? Math.round(v * picture.ratio) / picture.ratio : v);
  return { x: snap(area.x + (area.width - width) / 2), y: snap(area.y + (area.height - height) / 2), width, height };
}

export interface Room {
  width: number;
  height: number;
  /** Free space at the top, for a title. */
  top: number;
  ratio: number;
}

const widest = (labels: readonly Tick[], theme: Theme): number =>
  Math.max(0, ...labels.map(({ text }) => textWidth(text, theme)));

/** The room beside and below the area of a panel, and what is written there. */
interface Margins {
  left: number;
  right: number;
  bottom: number;
  xticks: Tick[];
  yticks: Tick[];
  isUpright: boolean;
  names: Layout["names"];
  bars: Bar[];
}

/** The labels of names along x: all beside each other, or else upright, and then as many as there is room for. */
function placeNames(named: Tick[], window: Range, theme: Theme, width: number, most: number) {
  const apart = named.slice(1).reduce((least, { at }, k) => Math.min(least, Math.abs(at - named[k]!.at)), Infinity);
  const each = Math.min((width * apart) / (window.high - window.low), width);
  if (widest(named, theme) + 8 <= each || named.length < 2) {
    return {
      xticks: named.map(({ at, text }) => ({ at, text: shorten(text, each, theme, "middle") })),
      isUpright: false,
    };
  }
  const every = Math.ceil((FONT_SIZE + 2) / each);
  const xticks = named
    .filter((_, k) => k % every === 0)
    .map(({ at, text }) => ({ at, text: shorten(text, most, theme, "middle") }));
  return { xticks, isUpright: true };
}

function margins(spec: PanelSpec, marks: readonly Mark[], window: Window, theme: Theme, room: Room): Margins {
  const named = { x: namedTicks(marks, "x"), y: namedTicks(marks, "y") };
  const xname = wrap(spec.x.label, room.width - 70, theme);
  const below = LINE_HEIGHT * xname.length + (xname.length ? 3 : 0);
  /** All but the room below, for an area of this height. */
  const beside = (height: number) => {
    const all = named.y?.map(({ at, text }) => ({ at, text: shorten(text, 0.3 * room.width, theme, "middle") }));
    const count = Math.max(Math.floor(height / 40), 2);
    const yticks = inside(all ?? ticks(spec.y.scale, window.y, count), window.y);
    const yname = wrap(spec.y.label, height, theme);
    const labels = Math.ceil(widest(yticks, theme));
    const left = labels + 12 + LINE_HEIGHT * yname.length + (yname.length ? 5 : 0);
    const { bars, width } = placeBars(marks, theme, height, room.width);
    return { yticks, left, right: 14 + width, bars, y: { lines: yname, gap: labels + 16 } };
  };
  const height = Math.max(room.height - room.top - 8 - 26 - below, 10);
  let { yticks, left, right, bars, y } = beside(height);
  const span = (axis: Range) => axis.high - axis.low;
  const most = spec.aspect === "equal" ? (height * span(window.x)) / span(window.y) : Infinity;
  const width = Math.max(Math.min(room.width - left - right, most), 10);
  const { xticks, isUpright } = named.x
    ? placeNames(inside(named.x, window.x), window.x, theme, width, Math.min(120, 0.4 * room.height))
    : { xticks: inside(fittingTicks(spec.x, window.x, theme, width), window.x), isUpright: false };
  const labels = isUpright ? Math.ceil(widest(xticks, theme)) + 14 : 26;
  if (isUpright) ({ yticks, left, right, bars, y } = beside(Math.max(height - labels + 26, 10)));
  // half of the last label may stand out
  const last = xticks.at(-1);
  if (last && !isUpright && !isInverted(marks, "x", spec.x.limits)) {
    const rest = (width * (window.x.high - last.at)) / (window.x.high - window.x.low);
    right = Math.max(right, Math.ceil(textWidth(last.text, theme) / 2 - rest) + 2);
  }
  const names = { x: { lines: xname, gap: labels + 2 }, y };
  return { left, right, bottom: labels + below, xticks, yticks, isUpright, names, bars };
}

/** Places a panel in a room, showing the window of its axes. */
export function place(spec: PanelSpec, marks: readonly Mark[], window: Window, theme: Theme, room: Room): Layout {
  const picture = isPicture({ ...spec, marks: [...marks] });
  const found = margins(spec, marks, window, theme, room);
  const [left, bottom, top] = picture ? [4, 4, room.top + 8] : [found.left, found.bottom, room.top + 8];
  const height = Math.max(room.height - top - bottom, 10);
  const { bars, width: beside } = picture
    ? placeBars(marks, theme, height, room.width)
    : { bars: found.bars, width: 0 };
  const right = picture ? 4 + beside : found.right;
  let area: Rectangle = { x: left, y: top, width: Math.max(room.width - left - right, 10), height };
  if (spec.aspect === "equal") {
    const image = picture ? marks.find((mark) => mark.kind === "image") : undefined;
    const columns = image?.kind === "image" ? (image.pixels.shape[1] ?? 1) : 1;
    area = equalArea(area, window, image ? { columns, ratio: room.ratio } : null);
  }
  const inverted = { x: isInverted(marks, "x", spec.x.limits), y: isInverted(marks, "y", spec.y.limits) };
  const [start, end] = [area.x, area.x + area.width];
  const [above, below] = [area.y, area.y + area.height];
  const view: View = {
    x: new Projection(spec.x.scale, window.x, ...(inverted.x ? ([end, start] as const) : ([start, end] as const))),
    y: new Projection(spec.y.scale, window.y, ...(inverted.y ? ([above, below] as const) : ([below, above] as const))),
    area,
  };
  const scale = area.height / height; // units of the same length may need less height
  const placed = bars.map((bar) => ({
    ...bar,
    area: { ...bar.area, x: end + bar.area.x, y: area.y + scale * bar.area.y, height: scale * bar.area.height },
  }));
  const { yticks, isUpright, names } = found;
  const isNamed = { x: namedTicks(marks, "x") !== null, y: namedTicks(marks, "y") !== null };
  // an area that became narrower, as its units are the same along both axes, has fewer labels
  const xticks = isNamed.x ? found.xticks : inside(fittingTicks(spec.x, window.x, theme, area.width), window.x);
  return { view, inverted, xticks, yticks, isUpright, isNamed, names, axes: !picture, bars: placed };
}

/** The ticks in a range; a tick that is just outside because of rounding is moved to its end. */
function inside(all: Tick[], { low, high }: Range): Tick[] {
  const little = (high - low) * 1e-9;
  return all
    .filter(({ at }) => at >= low - little && at <= high + little)
    .map(({ at, text }) => ({ at: Math.min(Math.max(at, low), high), text }));
}

/** As many ticks along x as their labels leave room for. */
function fittingTicks(axis: Axis, range: Range, theme: Theme, width: number): Tick[] {
  for (let count = Math.max(Math.floor(width / (width > 260 ? 60 : 46)), 2); count > 1; count--) {
    const found = ticks(axis.scale, range, count);
    const needed = found.reduce((sum, { text }) => sum + textWidth(text, theme) + 16, 0);
    if (needed <= width * 1.1) return found;
  }
  return ticks(axis.scale, range, 1);
}

/** A window moved and scaled around a position, never narrower than floating point can resolve. */
export function zoomed({ low, high }: Range, around: number, factor: number): Range {
  const range = { low: around + (low - around) * factor, high: around + (high - around) * factor };
  const least = Math.max(Math.abs(range.low), Math.abs(range.high), 1e-300) * 1e-10;
  return range.high - range.low > least && Number.isFinite(range.high - range.low) ? range : { low, high };
}
