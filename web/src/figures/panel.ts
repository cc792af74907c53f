/** A panel on the page: a chart, the pointer that reads and zooms it, and the same as a file. */
import type { EChartsCoreOption, ECharts } from "echarts/core";
import { seriesColour, type Theme } from "./colours.js";
import { place, wholeWindow, type Bar, type Layout, type Room, type Window } from "./layout.js";
import type { View } from "./geometry.js";
import { annotationSize, draw, lostOnLog, type Shape } from "./marks.js";
import { drawBar, Sheets } from "./rasters.js";
import type { Mark, PanelSpec } from "./spec.js";
import { FONT_SIZE, LINE_HEIGHT, textWidth } from "./text.js";

export type Charts = typeof import("./charts.js");

/** A name in the legend. */
export interface Entry {
  label: string;
  colour: string;
}

/**
 * The contents of a panel now: all marks except those that the reader has switched off, in the colours of the
 * theme.
 */
export class Scene {
  private readonly colours = new Map<Mark, string>();
  readonly entries: Entry[] = [];

  constructor(
    readonly spec: PanelSpec,
    readonly theme: Theme,
    readonly hidden: ReadonlySet<string>,
  ) {
    const byLabel = new Map<string, string>();
    let next = 0;
    for (const mark of spec.marks) {
      if (!("color" in mark)) continue;
      if (mark.kind === "contour") continue;
      const known = mark.label ? byLabel.get(mark.label) : undefined;
      const colour = mark.color === null && known ? known : seriesColour(theme, mark.color, next);
      if (known === undefined && mark.color === null) next++;
      this.colours.set(mark, colour);
      if (mark.label && known === undefined) {
        byLabel.set(mark.label, colour);
        this.entries.push({ label: mark.label, colour });
      }
    }
  }

  get marks(): Mark[] {
    return this.spec.marks.filter((mark) => !mark.label || !this.hidden.has(mark.label));
  }

  colourOf(mark: Mark): string {
    return this.colours.get(mark) ?? this.theme.series[0]!;
  }

  /** The whole range, without zooming. */
  whole(): Window {
    const shown = this.marks;
    return wholeWindow(this.spec, shown.length ? shown : this.spec.marks);
  }

  place(window: Window | null, room: Room): Layout {
    return place(this.spec, this.marks, window ?? this.whole(), this.theme, room);
  }

  /** Whether there are numbers to write into cells, which may not fit. */
  get isAnnotated(): boolean {
    return this.marks.some((mark) => mark.kind === "heatmap" && mark.annotate);
  }

  /** Remarks for the reader about what is not drawn, in a panel of this view. */
  notes(view: View | null): string[] {
    const { marks } = this;
    const lost = marks.reduce((sum, mark) => sum + lostOnLog(mark, this.spec), 0);
    const dropped = marks.reduce((sum, mark) => sum + (mark.kind === "histogram" ? mark.dropped : 0), 0);
    const every = Math.max(1, ...marks.map((mark) => (mark.kind === "line" ? mark.every : 1)));
    const isPlain = marks.some(
      (mark) => mark.kind === "heatmap" && mark.annotate && view && annotationSize(mark, view, this.theme) === null,
    );
    return [
      ...(lost ? [`${lost} ${lost > 1 ? "points are" : "point is"} not above 0, and not on a log axis`] : []),
      ...(dropped ? [`${dropped} ${dropped > 1 ? "values are" : "value is"} not finite, and not counted`] : []),
      ...(every > 1 ? [`1 of every ${every} points`] : []),
      ...(isPlain ? ["the cells are too small to write their numbers"] : []),
    ];
  }
}

type Element = Record<string, unknown>;

function element(shape: Shape, theme: Theme, layout: Layout): Element {
  switch (shape.type) {
    case "lines": {
      const { points, closed, style } = shape;
      const plain = { fill: "none", lineJoin: "round", lineCap: style.lineDash?.length ? "butt" : "round" };
      return { type: "weft-lines", shape: { points, closed }, style: { ...plain, ...style }, silent: true };
    }
    case "dots":
      return {
        type: "weft-dots",
        shape: { points: shape.points, radius: shape.radius },
        style: shape.style,
        silent: true,
      };
    case "picture": {
      const { area } = layout.view;
      return { type: "image", style: { image: shape.canvas, ...area }, silent: true };
    }
    case "text": {
      const { x, y, text, fill, size } = shape;
      const font = `${size}px ${theme.font}`;
      return {
        type: "text",
        style: { x, y, text, fill, font, align: "center", verticalAlign: "middle" },
        silent: true,
      };
    }
  }
}

/** A series of ECharts that draws shapes of ours. */
function custom(axis: number, at: Window, clip: boolean, children: () => Element[]): Element {
  return {
    type: "custom",
    coordinateSystem: "cartesian2d",
    xAxisIndex: axis,
    yAxisIndex: axis,
    data: [[at.x.low, at.y.low]],
    clip,
    silent: true,
    renderItem: () => ({ type: "group", children: children() }),
  };
}

function barOption(
  bar: Bar,
  index: number,
  theme: Theme,
  ratio: number,
): { axes: [Element, Element]; series: Element } {
  const texts = new Map(bar.ticks.map(({ at, text }) => [at, text]));
  const { x: left, y: top, width, height } = bar.area;
  const at = { x: { low: 0, high: 1 }, y: bar.range };
  const steps = (colours: string[]) =>
    colours.map((fill, k) => {
      const [from, to] = [k, k + 1].map((step) => Math.round(top + height * (1 - step / colours.length)));
      return { type: "rect", shape: { x: left, y: to, width, height: from! - to! }, style: { fill }, silent: true };
    });
  const picture = () => {
    const image = drawBar(bar.map, Math.max(Math.round(height * ratio), 2));
    return [{ type: "image", style: { image, x: left, y: top, width, height }, silent: true }];
  };
  const outline = { type: "rect", shape: { ...bar.area }, style: { fill: "none", stroke: theme.line }, silent: true };
  return {
    axes: [
      { type: "value", gridIndex: index, min: 0, max: 1, show: false },
      {
        type: "value",
        gridIndex: index,
        position: "right",
        min: bar.range.low,
        max: bar.range.high,
        axisLine: { show: false },
        axisTick: { show: false, customValues: bar.ticks.map((tick) => tick.at) },
        splitLine: { show: false },
        axisLabel: {
          customValues: bar.ticks.map((tick) => tick.at),
          formatter: (value: number) => texts.get(value) ?? "",
          color: theme.dim,
          fontSize: FONT_SIZE,
          fontFamily: theme.font,
          margin: 6,
        },
      },
    ],
    series: custom(index, at, false, () => [...(bar.steps ? steps(bar.steps) : picture()), outline]),
  };
}

/** The title, the legend and the notes, for a file that has no page around it. */
function header(scene: Scene, width: number, notes: string[]): { height: number; children: Element[] } {
  const { theme, spec, entries } = scene;
  const children: Element[] = [];
  let y = 0;
  const text = (x: number, content: string, fill: string, weight = "") =>
    children.push({
      type: "text",
      style: {
        x,
        y: y + 14,
        text: content,
        fill,
        font: `${weight} ${FONT_SIZE}px ${theme.font}`,
        verticalAlign: "middle",
      },
    });
  if (spec.title) {
    text(12, spec.title, theme.ink, "600");
    y += 22;
  }
  let x = 12;
  const shown = entries.filter(({ label }) => !scene.hidden.has(label));
  for (const { label, colour } of shown) {
    const wide = textWidth(label, theme) + 34;
    if (x > 12 && x + wide > width - 12) [x, y] = [12, y + 18];
    children.push({ type: "rect", shape: { x, y: y + 12, width: 12, height: 4, r: 2 }, style: { fill: colour } });
    text(x + 18, label, theme.dim);
    x += wide;
  }
  if (shown.length) y += 20;
  for (const note of notes) {
    text(12, note, theme.dim);
    y += 20;
  }
  return { height: y, children };
}

/** A panel as ECharts takes it. */
export function option(
  scene: Scene,
  layout: Layout,
  window: Window,
  ratio: number,
  sheets: Sheets,
  above: Element[] = [],
): EChartsCoreOption {
  const { theme } = scene;
  const { view, axes, inverted } = layout;
  const axis = (name: "x" | "y"): Element => {
    const marked = name === "x" ? layout.xticks : layout.yticks;
    const texts = new Map(marked.map(({ at, text }) => [at, text]));
    const customValues = marked.map(({ at }) => at);
    const { lines, gap } = layout.names[name];
    return {
      type: "value",
      gridIndex: 0,
      show: axes,
      min: window[name].low,
      max: window[name].high,
      inverse: inverted[name],
      position: name === "x" ? "bottom" : "left",
      name: lines.join("\n"),
      nameLocation: "middle",
      nameGap: gap,
      nameTextStyle: { color: theme.ink, fontSize: FONT_SIZE, fontFamily: theme.font, lineHeight: LINE_HEIGHT },
      axisLine: { show: name === "x", onZero: false, lineStyle: { color: theme.line, width: 1 } },
      axisTick: { show: false, customValues },
      splitLine: { show: !layout.isNamed[name], lineStyle: { color: theme.line, width: 1 } },
      axisLabel: {
        customValues,
        formatter: (value: number) => texts.get(value) ?? "",
        color: theme.dim,
        fontSize: FONT_SIZE,
        fontFamily: theme.font,
        margin: 8,
        rotate: name === "x" && layout.isUpright ? 90 : 0,
        hideOverlap: !layout.isNamed[name],
      },
    };
  };
  const bars = layout.bars.map((bar, k) => barOption(bar, k + 1, theme, ratio));
  const grid = ({ x: left, y: top, width, height }: { x: number; y: number; width: number; height: number }) => ({
    left,
    top,
    width,
    height,
    outerBoundsMode: "none",
  });
  const paint = (mark: Mark) => ({ colour: scene.colourOf(mark), theme, ratio, sheets });
  const series = scene.marks.map((mark) =>
    custom(0, window, true, () => draw(mark, view, paint(mark)).map((shape) => element(shape, theme, layout))),
  );
  return {
    animation: false,
    grid: [grid(view.area), ...layout.bars.map((bar) => grid(bar.area))],
    xAxis: [axis("x"), ...bars.map((bar) => bar.axes[0])],
    yAxis: [axis("y"), ...bars.map((bar) => bar.axes[1])],
    series: [
      ...series,
      ...bars.map((bar) => bar.series),
      ...(above.length ? [custom(0, window, false, () => above)] : []),
    ],
  };
}

/** A panel as a picture or as SVG text, with its title and its legend. */
export function exported(
  charts: Charts,
  scene: Scene,
  window: Window | null,
  size: { width: number; height: number },
  form: "canvas" | "svg",
  ratio: number,
): { chart: ECharts; height: number } {
  const inside = scene.isAnnotated ? scene.place(window, { ...size, top: 0, ratio }).view : null;
  const above = header(scene, size.width, scene.notes(inside));
  const height = size.height + above.height;
  const layout = scene.place(window, { width: size.width, height, top: above.height, ratio });
  const host = form === "canvas" ? document.createElement("div") : null;
  const chart = charts.init(host, null, {
    renderer: form,
    ssr: form === "svg",
    width: size.width,
    height,
    ...(form === "canvas" ? { devicePixelRatio: ratio } : {}),
  });
  chart.setOption(option(scene, layout, window ?? scene.whole(), ratio, new Sheets(), above.children));
  return { chart, height };
}
