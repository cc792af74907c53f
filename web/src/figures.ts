/** Figures above the output: live curves, lines, points, matrices. One figure for each label. */
import type { PlotKind } from "@weft/runtime";
import uPlot from "uplot";

interface Figure {
  element: HTMLElement;
  note: HTMLElement;
  kind: PlotKind | "live";
  x: number[];
  y: number[];
  chart: uPlot | null;
  dirty: boolean;
}

const HEIGHT = 190;

export class Figures {
  private readonly figures = new Map<string, Figure>();
  private frame = 0;
  private readonly resize: ResizeObserver;

  constructor(private readonly parent: HTMLElement) {
    this.resize = new ResizeObserver(() => {
      for (const { chart, element } of this.figures.values()) {
        if (chart && chart.width !== element.clientWidth) chart.setSize({ width: element.clientWidth, height: HEIGHT });
      }
    });
  }

  clear(): void {
    for (const { chart } of this.figures.values()) chart?.destroy();
    this.figures.clear();
    this.resize.disconnect();
    this.parent.replaceChildren();
  }

  /** Appends one point to a live curve. */
  live(label: string, x: number, y: number): void {
    const figure = this.figure(label, "live");
    // A curve that starts again (a second training run) begins anew.
    if (figure.x.length && x <= figure.x.at(-1)!) {
      figure.x = [];
      figure.y = [];
    }
    figure.x.push(x);
    figure.y.push(y);
    this.redraw(figure);
  }

  plot(kind: PlotKind, label: string, x: Float64Array, y: Float64Array): void {
    const figure = this.figure(label, kind);
    if (kind === "image") {
      drawMatrix(figure.element, x[0] ?? 0, x[1] ?? 0, y);
      return;
    }
    const order = Array.from(x.keys()).sort((i, j) => x[i]! - x[j]!);
    figure.x = order.map((i) => x[i]!);
    figure.y = order.map((i) => y[i]!);
    this.redraw(figure);
  }

  /** Draws again in the colours of the theme. */
  recolour(): void {
    for (const figure of this.figures.values()) {
      figure.chart?.destroy();
      figure.chart = null;
      if (figure.kind !== "image") this.redraw(figure);
    }
  }

  private figure(label: string, kind: Figure["kind"]): Figure {
    const known = this.figures.get(label);
    if (known?.kind === kind) return known;
    known?.chart?.destroy();
    const element = document.createElement("figure");
    element.className = kind === "live" ? "figure wide" : "figure";
    const caption = document.createElement("figcaption");
    const name = document.createElement("b");
    name.textContent = label;
    const note = document.createElement("span");
    caption.append(name, note);
    element.append(caption);
    if (known) known.element.replaceWith(element);
    else this.parent.append(element);
    this.resize.observe(element);
    const figure: Figure = { element, note, kind, x: [], y: [], chart: null, dirty: false };
    this.figures.set(label, figure);
    return figure;
  }

  private redraw(figure: Figure): void {
    figure.dirty = true;
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      for (const each of this.figures.values()) if (each.dirty) draw(each);
    });
  }
}

function draw(figure: Figure): void {
  figure.dirty = false;
  const last = figure.y.at(-1);
  if (figure.kind === "live" && last !== undefined) figure.note.textContent = `${format(last)} at ${format(figure.x.at(-1)!)}`;
  const data: uPlot.AlignedData = [figure.x, figure.y.map((value) => (Number.isFinite(value) ? value : null))];
  if (figure.chart) figure.chart.setData(data);
  else figure.chart = new uPlot(options(figure), data, figure.element);
}

function options({ kind, element }: Figure): uPlot.Options {
  const style = getComputedStyle(element);
  const colour = (name: string) => resolve(style.getPropertyValue(name), element);
  const axis: uPlot.Axis = {
    stroke: colour("--dim"),
    font: "12px system-ui, sans-serif",
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
    gap: 6,
  };
  const line = colour(kind === "live" ? "--thread" : "--accent");
  return {
    width: element.clientWidth || 400,
    height: HEIGHT,
    padding: [8, 12, 0, 0],
    cursor: { y: false, drag: { setScale: false } },
    legend: { show: false },
    scales: { x: { time: false } },
    axes: [{ ...axis, size: 28 }, { ...axis, size: 54, values: (_, ticks) => ticks.map(format) }],
    series: [
      {},
      kind === "scatter"
        ? { stroke: line, paths: () => null, points: { show: true, size: 5, fill: line, width: 0 } }
        : { stroke: line, width: 2, points: { show: false } },
    ],
  };
}

/** light-dark() and variables resolved to a plain colour, which a canvas needs. */
function resolve(value: string, parent: HTMLElement): string {
  const probe = document.createElement("i");
  probe.style.color = value;
  parent.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

function format(value: number): string {
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e5 || size < 1e-3 ? value.toExponential(1) : String(Number(value.toPrecision(4)));
}

// Dark indigo over rose to pale yellow; lightness rises evenly, so it also reads in grey.
const RAMP = [[20, 18, 52], [72, 44, 120], [142, 60, 132], [206, 88, 108], [243, 145, 96], [252, 210, 140], [252, 248, 214]] as const;

function ramp(t: number): readonly [number, number, number] {
  const at = Math.min(Math.max(t, 0), 1) * (RAMP.length - 1);
  const low = Math.min(Math.floor(at), RAMP.length - 2);
  const [a, b] = [RAMP[low]!, RAMP[low + 1]!];
  const mix = (i: 0 | 1 | 2) => a[i] + (b[i] - a[i]) * (at - low);
  return [mix(0), mix(1), mix(2)];
}

function drawMatrix(element: HTMLElement, rows: number, columns: number, values: Float64Array): void {
  let canvas = element.querySelector("canvas");
  if (!canvas) {
    canvas = document.createElement("canvas");
    canvas.className = "matrix";
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `${rows} by ${columns} matrix`);
    element.append(canvas);
  }
  canvas.width = columns;
  canvas.height = rows;
  const finite = values.filter(Number.isFinite);
  const low = finite.reduce((a, b) => Math.min(a, b), Infinity);
  const high = finite.reduce((a, b) => Math.max(a, b), -Infinity);
  const pixels = new ImageData(Math.max(columns, 1), Math.max(rows, 1));
  values.forEach((value, i) => {
    const [r, g, b] = Number.isFinite(value) ? ramp(high > low ? (value - low) / (high - low) : 0.5) : [128, 128, 128];
    pixels.data.set([r, g, b, 255], 4 * i);
  });
  canvas.getContext("2d")!.putImageData(pixels, 0, 0);
  const note = element.querySelector("figcaption span");
  if (note) note.textContent = finite.length ? `${format(low)} to ${format(high)}` : "";
}
