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

/** Writes red, green, blue and opacity of one cell. */
type Sample = (row: number, column: number, into: Float64Array) => void;

function sampler({ pixels: { data, shape }, map }: Raster): Sample {
  const [, width = 0, channels] = shape;
  if (map) {
    const [range, colours] = [mapRange(map, data), table(map.name)];
    return (row, column, into) => {
      const share = shareOf(range, data[row * width + column]!);
      if (Number.isNaN(share)) return void into.fill(0);
      const at = 3 * Math.round(255 * share);
      into[0] = colours[at]!;
      into[1] = colours[at + 1]!;
      into[2] = colours[at + 2]!;
      into[3] = 255;
    };
  }
  const factor = data instanceof Uint8Array ? 1 : 255;
  return (row, column, into) => {
    const at = (row * width + column) * channels!;
    for (let k = 0; k < 4; k++) into[k] = k < channels! ? Math.min(Math.max(data[at + k]! * factor || 0, 0), 255) : 255;
  };
}

/** The part of a picture that a panel shows, a pixel for each of the screen; null where nothing can be seen. */
export function drawRaster(raster: Raster, view: View, ratio: number): HTMLCanvasElement | null {
  const { area } = view;
  const [width, height] = [Math.round(area.width * ratio), Math.round(area.height * ratio)];
  if (width < 1 || height < 1) return null;
  const columns = lookup(raster.columns, view.x, area.x, area.width, width);
  const rows = lookup(raster.rows, view.y, area.y, area.height, height);
  const image = new ImageData(width, height);
  const [sample, one, sum] = [sampler(raster), new Float64Array(4), new Float64Array(4)];
  // A pixel of the screen inside one cell needs one sample; equal rows of such pixels are copied.
  const single = (found: Int32Array, k: number) => found[k * SAMPLES] === found[k * SAMPLES + SAMPLES - 1];
  for (let y = 0; y < height; y++) {
    const whole = single(rows, y);
    const target = y * width * 4;
    if (whole && y > 0 && single(rows, y - 1) && rows[y * SAMPLES] === rows[(y - 1) * SAMPLES]) {
      image.data.copyWithin(target, target - width * 4, target);
      continue;
    }
    for (let x = 0; x < width; x++) {
      const [down, across] = [whole ? 1 : SAMPLES, single(columns, x) ? 1 : SAMPLES];
      let opacity = 0;
      sum.fill(0);
      for (let i = 0; i < down; i++) {
        for (let j = 0; j < across; j++) {
          const [row, column] = [rows[y * SAMPLES + i]!, columns[x * SAMPLES + j]!];
          if (row < 0 || column < 0) continue;
          sample(row, column, one);
          for (let k = 0; k < 3; k++) sum[k]! += one[k]! * one[3]!;
          opacity += one[3]!;
        }
      }
      const at = target + 4 * x;
      for (let k = 0; k < 3; k++) image.data[at + k] = opacity ? Math.round(sum[k]! / opacity) : 0;
      image.data[at + 3] = Math.round(opacity / (down * across));
    }
  }
  return toCanvas(image);
}

function toCanvas(image: ImageData): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = image.width;
  canvas.height = image.height;
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
    const word = ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
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
