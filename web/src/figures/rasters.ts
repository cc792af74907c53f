/** Pictures of numbers, pixel by pixel of the screen. */
import { table } from "./colours.js";
import type { Projection, View } from "./geometry.js";
import { isEmpty, rangeOf, type Range } from "./scales.js";
import type { ColourMap, Numbers } from "./spec.js";

/** Where a picture's columns or rows begin and end on an axis: between two places in equal parts, or at each edge. */
export type Edges = { from: number; to: number; count: number } | { at: Float64Array };

export interface Raster {
  pixels: Numbers;
  columns: Edges;
  rows: Edges;
  map: ColourMap | null;
}

/** The numbers at the two ends of a colour map. */
export function mapRange(map: ColourMap, data: ArrayLike<number>): Range {
  const found = map.vmin === null || map.vmax === null ? rangeOf(data) : { low: map.vmin, high: map.vmax };
  const { low, high } = isEmpty(found) ? { low: 0, high: 1 } : found;
  return { low: map.vmin ?? low, high: map.vmax ?? high };
}

/** The share of a map, from 0 to 1, of a number; NaN for NaN. */
export function shareOf({ low, high }: Range, value: number): number {
  if (high === low) return value === low ? 0.5 : value < low ? 0 : value > low ? 1 : NaN;
  return Math.min(Math.max((value - low) / (high - low), 0), 1);
}

/** The column or row at a value, or -1. */
export function indexAt(edges: Edges, value: number): number {
  if ("at" in edges) {
    const { at } = edges;
    const up = at[at.length - 1]! > at[0]!;
    for (let low = 0, high = at.length - 2; low <= high;) {
      const middle = (low + high) >> 1;
      const [a, b] = up ? [at[middle]!, at[middle + 1]!] : [at[middle + 1]!, at[middle]!];
      if (value >= a && value <= b) return middle;
      if (value > b === up) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }
  const index = Math.floor(((value - edges.from) / (edges.to - edges.from)) * edges.count);
  return index >= 0 && index < edges.count ? index : -1;
}

/** How many samples of a picture, along one axis, are averaged for a pixel of the screen that holds several. */
const SAMPLES = 3;

/** For `count` pixels of the screen from a place on, `SAMPLES` indices each. */
function lookup(edges: Edges, axis: Projection, from: number, size: number, count: number): Int32Array {
  const found = new Int32Array(count * SAMPLES);
  for (let k = 0; k < found.length; k++) {
    found[k] = indexAt(
      edges,
      axis.value(from + ((Math.floor(k / SAMPLES) + ((k % SAMPLES) + 0.5) / SAMPLES) / count) * size),
    );
  }
  return found;
}

/** Red, green, blue and opacity in a word, as images have them. */
const packed = (r: number, g: number, b: number, opacity: number): number =>
  ((opacity << 24) | (b << 16) | (g << 8) | r) >>> 0;

/** The colour of a cell, from its number. */
function colourOfCell({ pixels: { data, shape }, map }: Raster): (cell: number) => number {
  if (map) {
    const [{ low, high }, colours] = [mapRange(map, data), table(map.name)];
    const words = new Uint32Array(257); // the last is the colour of NaN, which has none
    for (let k = 0; k < 256; k++) words[k] = packed(colours[3 * k]!, colours[3 * k + 1]!, colours[3 * k + 2]!, 255);
    if (high === low) {
      return (cell) => {
        const share = shareOf({ low, high }, data[cell]!);
        return words[Number.isNaN(share) ? 256 : Math.round(255 * share)]!;
      };
    }
    const scale = 255 / (high - low);
    return (cell) => {
      const at = (data[cell]! - low) * scale;
      return words[at >= 0 ? (at < 255 ? Math.round(at) : 255) : at < 0 ? 0 : 256]!;
    };
  }
  const channels = shape[2]!;
  if (data instanceof Uint8Array) {
    return (cell) => {
      const at = cell * channels;
      return packed(data[at]!, data[at + 1]!, data[at + 2]!, channels === 4 ? data[at + 3]! : 255);
    };
  }
  const byte = (value: number): number => Math.round(Math.min(Math.max(255 * value || 0, 0), 255));
  return (cell) => {
    const at = cell * channels;
    const opacity = channels === 4 ? byte(data[at + 3]!) : 255;
    return packed(byte(data[at]!), byte(data[at + 1]!), byte(data[at + 2]!), opacity);
  };
}

/** The colours of cells that are seen by several pixels are computed once. */
function memoized(colourOf: (cell: number) => number, cells: number, pixels: number): (cell: number) => number {
  if (2 * cells > pixels) return colourOf;
  const all = new Uint32Array(cells);
  for (let cell = 0; cell < cells; cell++) all[cell] = colourOf(cell);
  return (cell) => all[cell]!;
}

/** The part of a picture that a panel shows, a pixel for each of the screen; null where nothing can be seen. */
export function drawRaster(raster: Raster, view: View, ratio: number, sheets: Sheets): HTMLCanvasElement | null {
  const { area } = view;
  const [width, height] = [Math.round(area.width * ratio), Math.round(area.height * ratio)];
  if (width < 1 || height < 1) return null;
  const columns = lookup(raster.columns, view.x, area.x, area.width, width);
  const rows = lookup(raster.rows, view.y, area.y, area.height, height);
  const image = new ImageData(width, height);
  drawCells(raster, columns, rows, new Uint32Array(image.data.buffer));
  return toCanvas(image, sheets.next());
}

/**
 * Fills the pixels of an image, whose columns and rows have these samples each: a pixel is their mean. Pixels of one
 * row of cells are averaged along it once, for all rows of pixels that have samples there.
 */
export function drawCells(raster: Raster, columns: Int32Array, rows: Int32Array, words: Uint32Array): void {
  const [width, height] = [columns.length / SAMPLES, rows.length / SAMPLES];
  const stride = raster.pixels.shape[1] ?? 0;
  const colourOf = memoized(colourOfCell(raster), (raster.pixels.shape[0] ?? 0) * stride, words.length);
  // of each pixel red, green and blue times opacity, and opacity, summed over the samples along x
  const lines = Array.from({ length: SAMPLES }, () => ({ row: -2, sums: new Float32Array(4 * width) }));
  let oldest = 0;

  const lineOf = (row: number): Float32Array => {
    for (const line of lines) if (line.row === row) return line.sums;
    const line = lines[oldest]!;
    oldest = (oldest + 1) % SAMPLES;
    line.row = row;
    const { sums } = line;
    for (let x = 0, at = 0; x < width; x++, at += 4) {
      let r = 0;
      let g = 0;
      let b = 0;
      let opacity = 0;
      let before = -1;
      let word = 0;
      for (let j = x * SAMPLES; j < (x + 1) * SAMPLES && row >= 0; j++) {
        const column = columns[j]!;
        if (column < 0) continue;
        if (column !== before) word = colourOf(row * stride + column);
        before = column;
        const weight = word >>> 24;
        r += (word & 255) * weight;
        g += ((word >>> 8) & 255) * weight;
        b += ((word >>> 16) & 255) * weight;
        opacity += weight;
      }
      sums[at] = r;
      sums[at + 1] = g;
      sums[at + 2] = b;
      sums[at + 3] = opacity;
    }
    return sums;
  };

  for (let y = 0; y < height; y++) {
    const target = y * width;
    const at = y * SAMPLES;
    let same = y > 0;
    for (let i = 0; i < SAMPLES && same; i++) same = rows[at + i] === rows[at + i - SAMPLES];
    if (same) {
      words.copyWithin(target, target - width, target);
      continue;
    }
    const [a, b, c] = [lineOf(rows[at]!), lineOf(rows[at + 1]!), lineOf(rows[at + 2]!)];
    for (let x = 0, k = 0; x < width; x++, k += 4) {
      const opacity = a[k + 3]! + b[k + 3]! + c[k + 3]!;
      if (opacity === 0) continue;
      const share = 1 / opacity;
      const red = ((a[k]! + b[k]! + c[k]!) * share + 0.5) | 0;
      const green = ((a[k + 1]! + b[k + 1]! + c[k + 1]!) * share + 0.5) | 0;
      const blue = ((a[k + 2]! + b[k + 2]! + c[k + 2]!) * share + 0.5) | 0;
      words[target + x] = packed(red, green, blue, Math.round(opacity / (SAMPLES * SAMPLES)));
    }
  }
}

/** Canvases for the pictures of a panel, used again in its next drawing: a new one for each frame takes its time. */
export class Sheets {
  private readonly canvases: HTMLCanvasElement[] = [];
  private used = 0;

  /** The panel is drawn anew. */
  begin(): void {
    this.used = 0;
  }

  next(): HTMLCanvasElement {
    return (this.canvases[this.used++] ??= document.createElement("canvas"));
  }
}

function toCanvas(image: ImageData, canvas = document.createElement("canvas")): HTMLCanvasElement {
  if (canvas.width !== image.width) canvas.width = image.width;
  if (canvas.height !== image.height) canvas.height = image.height;
  canvas.getContext("2d")!.putImageData(image, 0, 0);
  return canvas;
}

/** Points too many for a path, as discs on a canvas of the panel's size; `colourOf` gives the colour of each. */
export function drawDots(
  points: Float64Array,
  radius: number,
  view: View,
  ratio: number,
  colourOf: (k: number) => readonly [number, number, number],
): HTMLCanvasElement {
  const { area } = view;
  const [width, height] = [Math.max(Math.round(area.width * ratio), 1), Math.max(Math.round(area.height * ratio), 1)];
  const image = new ImageData(width, height);
  const words = new Uint32Array(image.data.buffer);
  const reach = Math.max(radius * ratio, 0.5);
  const offsets: [number, number][] = [];
  for (let dy = -Math.ceil(reach); dy <= reach; dy++) {
    for (let dx = -Math.ceil(reach); dx <= reach; dx++) if (dx * dx + dy * dy <= reach * reach) offsets.push([dx, dy]);
  }
  for (let k = 0; 2 * k < points.length; k++) {
    const x = Math.round((points[2 * k]! - area.x) * ratio - 0.5);
    const y = Math.round((points[2 * k + 1]! - area.y) * ratio - 0.5);
    const [r, g, b] = colourOf(k);
    const word = packed(r, g, b, 255);
    for (const [dx, dy] of offsets) {
      if (x + dx >= 0 && x + dx < width && y + dy >= 0 && y + dy < height) words[(y + dy) * width + x + dx] = word;
    }
  }
  return toCanvas(image);
}

/** The colours of a map from top to bottom. */
export function drawBar(name: string, height: number): HTMLCanvasElement {
  const [image, colours] = [new ImageData(1, height), table(name)];
  for (let y = 0; y < height; y++) {
    const at = 3 * Math.round(255 * (1 - (y + 0.5) / height));
    image.data.set([colours[at]!, colours[at + 1]!, colours[at + 2]!, 255], 4 * y);
  }
  return toCanvas(image);
}
