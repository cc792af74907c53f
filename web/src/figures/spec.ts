/**
 * A figure as `weft.plot` describes it, read from data that anybody may have written: whatever is not as it should be
 * is refused with a message before anything is drawn.
 */

export const LIMITS = { panels: 64, marks: 1_000, names: 10_000, text: 10_000, cells: 40_000_000, annotations: 4_000 };

export class SpecError extends Error {
  override name = "SpecError";
}

/** A dense array of any dtype: numbers by position, row by row. */
export interface Numbers {
  data: Float64Array | Float32Array | Int32Array | Uint32Array | Int16Array | Uint16Array | Int8Array | Uint8Array;
  shape: number[];
}

export interface Axis {
  label: string;
  scale: "linear" | "log";
  limits: [number, number] | null;
}

interface Common {
  label: string;
}

export interface Line extends Common {
  kind: "line";
  x: Numbers;
  y: Numbers;
  color: string | null;
  width: number;
  style: "solid" | "dashed" | "dotted";
  markers: boolean;
  /** A live curve that has grown long keeps one of this many points. */
  every: number;
}

export interface Scatter extends Common {
  kind: "scatter";
  x: Numbers;
  y: Numbers;
  color: string | null;
  size: number;
  values: Numbers | null;
  map: ColourMap | null;
}

export interface Bar extends Common {
  kind: "bar";
  x: Numbers;
  height: Numbers;
  names: string[] | null;
  color: string | null;
  width: number;
  slot: [number, number];
}

export interface Histogram extends Common {
  kind: "histogram";
  edges: Numbers;
  heights: Numbers;
  color: string | null;
  density: boolean;
  dropped: number;
}

export interface Band extends Common {
  kind: "band";
  x: Numbers;
  low: Numbers;
  high: Numbers;
  color: string | null;
}

export interface ColourMap {
  name: string;
  vmin: number | null;
  vmax: number | null;
  bar: boolean;
}

export interface Image extends Common {
  kind: "image";
  pixels: Numbers;
  origin: "upper" | "lower";
  /** Left, right, bottom and top on the axes. */
  extent: [number, number, number, number];
  map: ColourMap | null;
}

export interface HeatMap extends Common {
  kind: "heatmap";
  z: Numbers;
  x: Numbers;
  y: Numbers;
  xnames: string[] | null;
  ynames: string[] | null;
  origin: "upper" | "lower";
  annotate: boolean;
  map: ColourMap;
}

export interface Contour extends Common {
  kind: "contour";
  x: Numbers;
  y: Numbers;
  z: Numbers;
  levels: Numbers;
  filled: boolean;
  color: string | null;
  map: ColourMap;
}

export interface Quiver extends Common {
  kind: "quiver";
  x: Numbers;
  y: Numbers;
  u: Numbers;
  v: Numbers;
  scale: number;
  color: string | null;
}

export type Mark = Line | Scatter | Bar | Histogram | Band | Image | HeatMap | Contour | Quiver;

export interface PanelSpec {
  title: string;
  x: Axis;
  y: Axis;
  aspect: "auto" | "equal";
  marks: Mark[];
}

export interface Figure {
  title: string;
  columns: number | null;
  height: number;
  panels: PanelSpec[];
}

/** New points of a live curve. */
export interface Points {
  panel: number;
  mark: number;
  x: Numbers;
  y: Numbers;
}

/** The description before it is checked: JSON. */
export type FigureSpec = Record<string, unknown>;

const ARRAYS = {
  float64: Float64Array,
  float32: Float32Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int8: Int8Array,
  uint8: Uint8Array,
};
const MAPS = ["viridis", "magma", "inferno", "plasma", "gray", "coolwarm", "twilight"];
const COLOUR = /^(#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})|[a-z]{3,20}|C[0-9])$/;

/** Whether a colour is one of a theme's, or one that CSS has; outside of a page this is unknown. */
const isKnown = (colour: string): boolean =>
  colour.startsWith("C") || typeof CSS === "undefined" || CSS.supports("color", colour);

/**
 * Reads the entries of an object one by one; an entry that is missing or has another type is an error that names
 * its place.
 */
class Reader {
  constructor(
    private readonly entry: Record<string, unknown>,
    readonly where: string,
    private readonly buffers: ArrayBuffer[],
  ) {}

  fail(what: string): never {
    throw new SpecError(`The figure can't be drawn: ${this.where} ${what}.`);
  }

  private get(name: string): unknown {
    return Object.hasOwn(this.entry, name) ? this.entry[name] : undefined;
  }

  text(name: string): string {
    const value = this.get(name);
    if (typeof value !== "string" || value.length > LIMITS.text) this.fail(`has no text "${name}"`);
    return value;
  }

  number(name: string, low = -Infinity, high = Infinity): number {
    const value = this.get(name);
    if (typeof value !== "number" || !(value >= low && value <= high)) {
      this.fail(`has no number "${name}" from ${low} to ${high}`);
    }
    return value;
  }

  optionalNumber(name: string): number | null {
    const value = this.get(name);
    return value === null || value === undefined ? null : this.number(name, -Number.MAX_VALUE, Number.MAX_VALUE);
  }

  flag(name: string): boolean {
    const value = this.get(name);
    if (typeof value !== "boolean") this.fail(`does not say whether "${name}"`);
    return value;
  }

  choice<T extends string>(name: string, known: readonly T[]): T {
    const value = this.get(name);
    const found = known.find((each) => each === value);
    if (found === undefined) this.fail(`has another "${name}" than ${known.join(", ")}`);
    return found;
  }

  colour(name = "color"): string | null {
    const value = this.get(name);
    if (value === null || value === undefined) return null;
    if (typeof value !== "string" || !COLOUR.test(value) || !isKnown(value))
      this.fail(`has a "${name}" that is no colour`);
    return value;
  }

  names(name: string, count: number): string[] | null {
    const value = this.get(name);
    if (value === null || value === undefined) return null;
    if (!Array.isArray(value) || value.length !== count || value.length > LIMITS.names) {
      this.fail(`has not ${count} "${name}"`);
    }
    if (!value.every((each) => typeof each === "string" && each.length <= LIMITS.text)) {
      this.fail(`has "${name}" that are no texts`);
    }
    return value as string[];
  }

  reals(name: string, count: number): number[] {
    const value = this.get(name);
    if (!Array.isArray(value) || value.length !== count || !value.every(Number.isFinite)) {
      this.fail(`has not ${count} finite numbers "${name}"`);
    }
    return value as number[];
  }

  list(name: string, most: number): Reader[] {
    const value = this.get(name);
    if (!Array.isArray(value) || value.length > most) this.fail(`has no list "${name}" of at most ${most} entries`);
    return value.map((entry: unknown, k) => {
      if (!isObject(entry)) this.fail(`has a "${name}" that is no object`);
      return new Reader(entry, `${this.where === "it" ? "" : `${this.where}, `}${name} ${k + 1}`, this.buffers);
    });
  }

  inside(name: string): Reader {
    const value = this.get(name);
    if (!isObject(value)) this.fail(`has no object "${name}"`);
    return new Reader(value, `${this.where}, ${name}`, this.buffers);
  }

  has(name: string): boolean {
    return this.get(name) !== undefined && this.get(name) !== null;
  }

  /** An array of one of the ranks; a view of its buffer, or a copy if a view is impossible. */
  array(name: string, ...ranks: number[]): Numbers {
    const entry = this.inside(name);
    const kind = ARRAYS[entry.choice("dtype", Object.keys(ARRAYS) as (keyof typeof ARRAYS)[])];
    const shape = entry.get("shape");
    if (!Array.isArray(shape) || !ranks.includes(shape.length)) this.fail(`has another rank of "${name}"`);
    if (!shape.every((size) => Number.isInteger(size) && (size as number) >= 0)) this.fail(`has no shape of "${name}"`);
    const sizes = shape as number[];
    const buffer = this.buffers[entry.number("buffer", 0, this.buffers.length - 1)];
    if (buffer === undefined) this.fail(`refers to an array "${name}" that is not there`);
    const bytes = sizes.reduce((a, b) => a * b, 1) * kind.BYTES_PER_ELEMENT;
    if (buffer.byteLength !== bytes) {
      this.fail(`has ${buffer.byteLength} bytes of "${name}" where its shape takes ${bytes}`);
    }
    return { data: new kind(buffer), shape: sizes };
  }

  /** Arrays of rank 1 with as many numbers each. */
  columns<T extends string>(...names: T[]): Record<T, Numbers> {
    const found = names.map((name) => [name, this.array(name, 1)] as const);
    if (new Set(found.map(([, { data }]) => data.length)).size > 1) {
      this.fail(`has not as many numbers of ${names.join(", ")}`);
    }
    return Object.fromEntries(found) as Record<T, Numbers>;
  }

  map(): ColourMap {
    return {
      name: this.choice("cmap", MAPS),
      vmin: this.optionalNumber("vmin"),
      vmax: this.optionalNumber("vmax"),
      bar: this.flag("colorbar"),
    };
  }

  /** The positions of the columns and rows of a matrix. */
  grid(): { x: Numbers; y: Numbers; z: Numbers } {
    const [x, y, z] = [this.array("x", 1), this.array("y", 1), this.array("z", 2)];
    if (z.shape[0] !== y.data.length || z.shape[1] !== x.data.length) this.fail("has x and y that do not fit z");
    return { x, y, z };
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function readLimits(axis: Reader): [number, number] | null {
  if (!axis.has("limits")) return null;
  const [low, high] = axis.reals("limits", 2) as [number, number];
  if (low === high) axis.fail("has limits that are one number");
  return [low, high];
}

function readAxis(axis: Reader): Axis {
  return { label: axis.text("label"), scale: axis.choice("scale", ["linear", "log"]), limits: readLimits(axis) };
}

function readImage(mark: Reader, label: string): Image {
  const pixels = mark.array("pixels", 2, 3);
  const [rows = 0, columns = 0, channels] = pixels.shape;
  if (channels !== undefined && channels !== 3 && channels !== 4) mark.fail("is a picture of neither 3 nor 4 channels");
  if (rows * columns > LIMITS.cells) mark.fail(`has more than ${LIMITS.cells} pixels`);
  const extent = mark.reals("extent", 4) as [number, number, number, number];
  if (extent[0] === extent[1] || extent[2] === extent[3]) {
    if (rows * columns > 0) mark.fail("has an extent without an area");
  }
  const map = channels === undefined ? mark.map() : null;
  return { kind: "image", label, pixels, origin: mark.choice("origin", ["upper", "lower"]), extent, map };
}

function readMark(mark: Reader): Mark {
  const label = mark.text("label");
  const kind = mark.choice("kind", [
    "line",
    "scatter",
    "bar",
    "histogram",
    "band",
    "image",
    "heatmap",
    "contour",
    "quiver",
  ]);
  switch (kind) {
    case "line":
      return {
        kind,
        label,
        ...mark.columns("x", "y"),
        color: mark.colour(),
        width: mark.number("width", 0, 100),
        style: mark.choice("style", ["solid", "dashed", "dotted"]),
        markers: mark.flag("markers"),
        every: mark.has("every") ? mark.number("every", 1) : 1,
      };
    case "scatter": {
      const coloured = mark.has("values");
      const columns = coloured ? mark.columns("x", "y", "values") : { ...mark.columns("x", "y"), values: null };
      const size = mark.number("size", 0, 1000);
      return { kind, label, ...columns, color: mark.colour(), size, map: coloured ? mark.map() : null };
    }
    case "bar": {
      const columns = mark.columns("x", "height");
      const [at, count] = mark.reals("slot", 2) as [number, number];
      if (!(Number.isInteger(at) && Number.isInteger(count) && at >= 0 && at < count)) mark.fail("has no slot");
      const names = mark.names("names", columns.x.data.length);
      return {
        kind,
        label,
        ...columns,
        names,
        color: mark.colour(),
        width: mark.number("width", 0, 10),
        slot: [at, count],
      };
    }
    case "histogram": {
      const [edges, heights] = [mark.array("edges", 1), mark.array("heights", 1)];
      if (edges.data.length !== heights.data.length + 1) mark.fail("has not one edge more than heights");
      const density = mark.flag("density");
      return { kind, label, edges, heights, color: mark.colour(), density, dropped: mark.number("dropped", 0) };
    }
    case "band":
      return { kind, label, ...mark.columns("x", "low", "high"), color: mark.colour() };
    case "image":
      return readImage(mark, label);
    case "heatmap": {
      const grid = mark.grid();
      if (grid.z.data.length > LIMITS.cells) mark.fail(`has more than ${LIMITS.cells} cells`);
      const names = {
        xnames: mark.names("xnames", grid.x.data.length),
        ynames: mark.names("ynames", grid.y.data.length),
      };
      const origin = mark.choice("origin", ["upper", "lower"]);
      return { kind, label, ...grid, ...names, origin, annotate: mark.flag("annotate"), map: mark.map() };
    }
    case "contour": {
      const levels = mark.array("levels", 1);
      if (levels.data.length > 1000) mark.fail("has more than 1000 levels");
      return {
        kind,
        label,
        ...mark.grid(),
        levels,
        filled: mark.flag("filled"),
        color: mark.colour(),
        map: mark.map(),
      };
    }
    case "quiver": {
      const columns = mark.columns("x", "y", "u", "v");
      return { kind, label, ...columns, scale: mark.number("scale", Number.MIN_VALUE), color: mark.colour() };
    }
  }
}

function readPanel(panel: Reader): PanelSpec {
  return {
    title: panel.text("title"),
    x: readAxis(panel.inside("x")),
    y: readAxis(panel.inside("y")),
    aspect: panel.choice("aspect", ["auto", "equal"]),
    marks: panel.list("marks", LIMITS.marks).map(readMark),
  };
}

/** A whole figure, or the points that are added to one. */
export function readSpec(spec: unknown, buffers: ArrayBuffer[]): Figure | Points[] {
  if (!isObject(spec)) throw new SpecError("The figure can't be drawn: it is no description of one.");
  const reader = new Reader(spec, "it", buffers);
  if (reader.number("version") !== 1) reader.fail("was made for another version of the page; load the page again");
  if (reader.has("append")) {
    return reader.list("append", LIMITS.marks).map((entry) => ({
      panel: entry.number("panel", 0, LIMITS.panels),
      mark: entry.number("mark", 0, LIMITS.marks),
      ...entry.columns("x", "y"),
    }));
  }
  return {
    title: reader.text("title"),
    columns: reader.has("columns") ? reader.number("columns", 1, 12) : null,
    height: reader.number("height", 60, 4000),
    panels: reader.list("panels", LIMITS.panels).map(readPanel),
  };
}
