/**
 * Figures above the output: live curves, lines, points, matrices.
 *
 * A label names a figure, or, written "figure: series", one of several series in it; what has a label already is
 * replaced.
 */
import type { PlotKind } from "@weft/runtime";
import uPlot from "uplot";
import { drawMatrix } from "./matrix.js";
import { format } from "./numbers.js";

interface Series {
  kind: "line" | "scatter" | "live";
  x: number[];
  y: number[];
}

interface Chart {
  element: HTMLElement;
  note: HTMLElement;
  series: Map<string, Series>;
  plot: uPlot | null;
  /** What the plot was made for; another set of series needs another plot. */
  shape: string;
  dirty: boolean;
}

const HEIGHT = 190;
const COLOURS = ["--accent", "--thread", "--good", "--syntax-keyword", "--dim"];

export class Figures {
  private readonly charts = new Map<string, Chart>();
  private readonly matrices = new Map<string, HTMLElement>();
  private frame = 0;
  private readonly resize: ResizeObserver;

  constructor(private readonly parent: HTMLElement) {
    this.resize = new ResizeObserver(() => {
      for (const { plot, element } of this.charts.values()) {
        if (plot && plot.width !== element.clientWidth) plot.setSize({ width: element.clientWidth, height: HEIGHT });
      }
    });
  }

  clear(): void {
    for (const { plot } of this.charts.values()) plot?.destroy();
    this.charts.clear();
    this.matrices.clear();
    this.resize.disconnect();
    this.parent.replaceChildren();
  }

  /** Appends one point to a live curve. */
  live(label: string, x: number, y: number): void {
    const [title, name] = split(label);
    const chart = this.chart(title, "live");
    let series = chart.series.get(name);
    // A curve that starts again (a second training run) begins anew.
    if (series?.kind !== "live" || x < (series.x.at(-1) ?? -Infinity)) {
      series = { kind: "live", x: [], y: [] };
      chart.series.set(name, series);
    }
    if (x === series.x.at(-1)) {
      series.x.pop();
      series.y.pop();
    }
    series.x.push(x);
    series.y.push(y);
    this.redraw(chart);
  }

  plot(kind: PlotKind, label: string, x: Float64Array, y: Float64Array): void {
    if (kind === "image") {
      let element = this.matrices.get(label);
      if (!element) this.matrices.set(label, (element = this.figure(label, false)));
      drawMatrix(element, x[0] ?? 0, x[1] ?? 0, y);
      return;
    }
    const [title, name] = split(label);
    const chart = this.chart(title, kind);
    const order = Array.from(x.keys()).sort((i, j) => x[i]! - x[j]!);
    chart.series.set(name, { kind, x: order.map((i) => x[i]!), y: order.map((i) => y[i]!) });
    this.redraw(chart);
  }

  /** Draws again in the colours of the theme. */
  recolour(): void {
    for (const chart of this.charts.values()) {
      chart.shape = "";
      this.redraw(chart);
    }
  }

  private chart(title: string, kind: Series["kind"]): Chart {
    let chart = this.charts.get(title);
    if (!chart) {
      const element = this.figure(title, kind === "live");
      const note = element.querySelector<HTMLElement>("figcaption span")!;
      chart = { element, note, series: new Map(), plot: null, shape: "", dirty: false };
      this.charts.set(title, chart);
      this.resize.observe(element);
    }
    return chart;
  }

  private figure(title: string, wide: boolean): HTMLElement {
    const element = document.createElement("figure");
    element.className = wide ? "figure wide" : "figure";
    const caption = document.createElement("figcaption");
    const name = document.createElement("b");
    name.textContent = title;
    caption.append(name, document.createElement("span"));
    element.append(caption);
    this.parent.append(element);
    return element;
  }

  private redraw(chart: Chart): void {
    chart.dirty = true;
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      for (const each of this.charts.values()) if (each.dirty) draw(each);
    });
  }
}

/** "figure: series" as its two parts; a bare label is both. */
function split(label: string): [string, string] {
  const at = label.indexOf(": ");
  return at > 0 ? [label.slice(0, at), label.slice(at + 2)] : [label, ""];
}

function draw(chart: Chart): void {
  chart.dirty = false;
  const series = [...chart.series];
  const shape = JSON.stringify(series.map(([name, { kind }]) => [name, kind]));
  const data = align(series.map(([, each]) => each));
  if (chart.plot && chart.shape === shape) {
    chart.plot.setData(data);
  } else {
    chart.plot?.destroy();
    chart.plot = new uPlot(options(chart), data, chart.element);
    chart.shape = shape;
  }
  describe(chart, series);
}

/**
 * The columns of all series over one x, as uPlot wants them. Every point keeps a row of its own, so that points of
 * equal x stay apart; the gaps that this leaves are spanned by lines.
 */
function align(series: Series[]): uPlot.AlignedData {
  const finite = (value: number) => (Number.isFinite(value) ? value : null);
  if (series.length === 1) return [series[0]!.x, series[0]!.y.map(finite)];
  const rows = series.flatMap(({ x, y }, column) => x.map((at, i) => ({ at, column, value: finite(y[i]!) })));
  rows.sort((a, b) => a.at - b.at);
  const columns = series.map((_, column) => rows.map((row) => (row.column === column ? row.value : null)));
  return [rows.map((row) => row.at), ...columns];
}

/** The caption's right side: the names of several series in their colours, or the last point of a live curve. */
function describe({ note, element }: Chart, series: [string, Series][]): void {
  const spoken = series.map(([name, { x, y }]) =>
    x.length ? `${name || "curve"}, ${x.length} points, the last ${format(y.at(-1)!)} at ${format(x.at(-1)!)}` : name,
  );
  element.querySelector(".uplot")?.setAttribute("role", "img");
  element.querySelector(".uplot")?.setAttribute("aria-label", spoken.join("; "));
  const [first] = series;
  const only = series.length === 1 && first?.[1].kind === "live" ? first[1] : null;
  if (only) {
    note.textContent = `${format(only.y.at(-1)!)} at ${format(only.x.at(-1)!)}`;
    return;
  }
  note.replaceChildren(
    ...series
      .filter(([name]) => name)
      .map(([name], i) => {
        const key = document.createElement("span");
        key.className = "key";
        key.style.setProperty("--key", `var(${COLOURS[i % COLOURS.length]!})`);
        key.textContent = name;
        return key;
      }),
  );
}

function options({ series, element }: Chart): uPlot.Options {
  const colour = (name: string) => resolve(name, element);
  const axis: uPlot.Axis = {
    stroke: colour("--dim"),
    font: "12px system-ui, sans-serif",
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
    gap: 6,
  };
  return {
    width: element.clientWidth || 400,
    height: HEIGHT,
    padding: [8, 24, 0, 0], // half of the last label stands right of the axis
    cursor: { y: false, drag: { setScale: false } },
    legend: { show: false },
    scales: { x: { time: false } },
    axes: [
      { ...axis, size: 28, values: (_, ticks) => ticks.map(format) },
      { ...axis, size: 54, values: (_, ticks) => ticks.map(format) },
    ],
    series: [
      {},
      ...[...series.values()].map(({ kind }, i): uPlot.Series => {
        const single = series.size === 1 && kind === "live";
        const stroke = colour(single ? "--thread" : COLOURS[i % COLOURS.length]!);
        return kind === "scatter"
          ? { stroke, paths: () => null, points: { show: true, size: 5, fill: stroke, width: 0 } }
          : { stroke, width: 2, spanGaps: true, points: { show: false } };
      }),
    ],
  };
}

/** A colour variable as the plain colour that a canvas needs. */
function resolve(variable: string, parent: HTMLElement): string {
  const probe = document.createElement("i");
  probe.style.color = `var(${variable})`;
  parent.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}
