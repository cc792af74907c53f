/**
 * Draws a figure of `weft.plot` into an element. ECharts, which draws it, is loaded when the first figure is shown;
 * until then the element keeps the room that it will take.
 */
import { button, create } from "../elements.js";
import type { ECharts } from "echarts/core";
import { readTheme } from "./colours.js";
import type { View } from "./geometry.js";
import type { Layout, Window } from "./layout.js";
import { say } from "./marks.js";
import { exported, option, Scene, type Charts } from "./panel.js";
import { Pointer } from "./pointer.js";
import { Sheets } from "./rasters.js";
import { readSpec, SpecError, type Figure, type FigureSpec, type Numbers, type Points } from "./spec.js";

export { SpecError, type FigureSpec } from "./spec.js";

let charts: Promise<Charts> | null = null;

/** The chunk with ECharts; a load that failed is tried again the next time. */
function load(): Promise<Charts> {
  charts ??= import("./charts.js").catch((error: unknown) => {
    charts = null;
    throw error;
  });
  return charts;
}

const labelled = (text: string, title: string, press: () => void): HTMLButtonElement =>
  button(text, press, { title, ariaLabel: title });

/** Appends numbers in place, in memory that doubles as it fills. */
function grow(numbers: Numbers, more: Numbers, capacity: Map<Numbers, Float64Array>): void {
  const length = numbers.data.length + more.data.length;
  let room = capacity.get(numbers);
  if (!room || room.length < length) {
    room = new Float64Array(Math.max(2 * length, 1024));
    room.set(numbers.data);
    capacity.set(numbers, room);
  }
  room.set(more.data, numbers.data.length);
  numbers.data = room.subarray(0, length);
  numbers.shape = [length];
}

const KEYS =
  "Arrow keys go from value to value, Page Up and Page Down to another series. " +
  "Plus and minus zoom, Shift with an arrow key moves, 0 shows all.";

/** One panel on the page. */
class PanelView {
  readonly element = create("section", "figure-panel");
  private readonly heading = create("div", "figure-name");
  private readonly legend = create("div", "figure-legend");
  private readonly plot = create("div", "figure-plot");
  private readonly canvas = create("div");
  private readonly note = create("p", "figure-note");
  private readonly sheets = new Sheets();
  private pointer: Pointer | null = null;
  private chart: ECharts | null = null;
  private scene: Scene | null = null;
  private layout: Layout | null = null;
  readonly hidden = new Set<string>();
  window: Window | null = null;

  constructor(private readonly changed: () => void) {
    this.legend.setAttribute("role", "group");
    this.legend.setAttribute("aria-label", "Series");
    this.plot.tabIndex = 0;
    this.plot.setAttribute("role", "application"); // a screen reader hands on its keys
    this.plot.setAttribute("aria-roledescription", "figure");
    this.plot.setAttribute("aria-description", KEYS);
    this.plot.append(this.canvas);
    this.element.append(this.heading, this.legend, this.plot, this.note);
  }

  /** The room for the panel, before it is drawn. */
  reserve(height: number): void {
    this.plot.style.height = `${height}px`;
  }

  /**
   * Everything except the chart: it is there before the library that draws is loaded, so that the page does not
   * move then.
   */
  prepare(scene: Scene): void {
    this.scene = scene;
    this.heading.textContent = scene.spec.title;
    this.heading.hidden = !scene.spec.title;
    this.drawLegend(scene);
    const { clientWidth: width, clientHeight: height } = this.plot;
    const measured = scene.isAnnotated && width >= 20 && height >= 20;
    const view = measured ? scene.place(this.window, { width, height, top: 0, ratio: 1 }).view : null;
    const notes = scene.notes(view).join("; ");
    this.note.textContent = notes;
    this.note.hidden = !notes;
    this.plot.setAttribute("aria-label", describePanel(scene));
  }

  draw(library: Charts, scene: Scene, ratio: number): void {
    this.prepare(scene);
    const { clientWidth: width, clientHeight: height } = this.plot;
    if (width < 20 || height < 20) return;
    this.layout = scene.place(this.window, { width, height, top: 0, ratio });
    this.chart ??= library.init(this.canvas, null, { renderer: "canvas", width, height, devicePixelRatio: ratio });
    if (this.chart.getWidth() !== width || this.chart.getHeight() !== height) this.chart.resize({ width, height });
    this.sheets.begin();
    const shown = this.window ?? scene.whole();
    this.chart.setOption(option(scene, this.layout, shown, ratio, this.sheets), { notMerge: true });
    this.pointer ??= this.point();
    this.pointer.drawn();
  }

  private point(): Pointer {
    return new Pointer(this.plot, {
      scene: () => this.scene!,
      view: (): View => this.layout!.view,
      window: () => this.window ?? this.scene!.whole(),
      isZoomed: () => this.window !== null,
      show: (window) => {
        this.window = window;
        this.changed();
      },
    });
  }

  /**
   * Buttons that switch series on and off; they are kept as long as the series are the same, so that they keep the
   * focus.
   */
  private drawLegend({ entries, hidden }: Scene): void {
    const wanted = entries.map(({ label }) => label);
    const there = [...this.legend.children] as HTMLButtonElement[];
    this.legend.hidden = wanted.length === 0;
    if (there.map((each) => each.dataset["label"]).join("\0") !== wanted.join("\0")) {
      this.legend.replaceChildren(
        ...wanted.map((label) => {
          const made = labelled(label, `Show or hide ${label}`, () => {
            if (!this.hidden.delete(label)) this.hidden.add(label);
            this.changed();
          });
          made.dataset["label"] = label;
          made.replaceChildren(create("span", "", label));
          return made;
        }),
      );
    }
    entries.forEach(({ label, colour }, k) => {
      const each = this.legend.children[k] as HTMLButtonElement;
      each.style.setProperty("--key", colour);
      each.setAttribute("aria-pressed", String(!hidden.has(label)));
    });
  }

  /** The panel as a chart outside of the page; its width is the page's, or one that suits a file if it has none. */
  export(library: Charts, form: "canvas" | "svg", ratio: number) {
    const size = { width: Math.max(this.plot.clientWidth, 320), height: Math.max(this.plot.clientHeight, 120) };
    return { ...exported(library, this.scene!, this.window, size, form, ratio), width: size.width };
  }

  dispose(): void {
    this.pointer?.dispose();
    this.chart?.dispose();
    this.element.remove();
  }
}

function describePanel({ spec, marks }: Scene): string {
  const axes = [spec.x.label && `x: ${spec.x.label}`, spec.y.label && `y: ${spec.y.label}`].filter(Boolean).join(", ");
  const shown = marks.slice(0, 12).map(say);
  const more = marks.length > shown.length ? [`and ${marks.length - shown.length} more`] : [];
  return [spec.title, axes, ...shown, ...more].filter(Boolean).join("; ");
}

/** A figure in an element of the page. */
export class FigureView {
  private readonly root = create("figure", "weft-figure");
  private readonly title = create("b");
  private readonly reset: HTMLButtonElement;
  private readonly grid = create("div", "figure-grid");
  private readonly failure = create("p", "figure-failure");
  private readonly views: PanelView[] = [];
  private readonly sizes: ResizeObserver;
  private readonly capacity = new Map<Numbers, Float64Array>();
  private figure: Figure | null = null;
  private frame = 0;
  private disposed = false;
  private drawing: Promise<void> = Promise.resolve();

  constructor(host: HTMLElement) {
    const file = (text: string, title: string, make: () => Promise<Blob>) =>
      labelled(
        text,
        title,
        () =>
          void make().then(
            (blob) => this.download(blob),
            (error: unknown) => this.fail(error),
          ),
      );
    this.reset = labelled("Reset", "Show the whole figure again", () => this.showAll());
    this.reset.hidden = true;
    const tools = create(
      "div",
      "figure-tools",
      "",
      this.reset,
      file("PNG", "Save the figure as PNG", () => this.png()),
      file("SVG", "Save the figure as SVG", async () => new Blob([await this.svg()], { type: "image/svg+xml" })),
    );
    this.failure.hidden = true;
    this.failure.setAttribute("role", "alert");
    this.root.append(create("figcaption", "", "", this.title, tools), this.failure, this.grid);
    host.append(this.root);
    this.sizes = new ResizeObserver(() => this.resize());
    this.sizes.observe(this.root);
  }

  /** Draws a figure, or adds new data to an existing one. For an invalid figure, shows a message in its place. */
  update(spec: FigureSpec, buffers: ArrayBuffer[]): void {
    try {
      const found = readSpec(spec, buffers);
      if (Array.isArray(found)) this.grow(found);
      else this.set(found);
    } catch (error) {
      this.fail(error);
    }
  }

  /** Adds points to live curves: the same as `update` with a description that has them. */
  append(points: FigureSpec, buffers: ArrayBuffer[]): void {
    this.update(points, buffers);
  }

  private set(figure: Figure): void {
    this.failure.hidden = true;
    this.figure = figure;
    this.capacity.clear();
    this.title.textContent = figure.title;
    // small panels stand side by side on a phone too
    this.grid.style.setProperty("--least", `${Math.min(Math.max(1.25 * figure.height, 130), 240)}px`);
    if (figure.columns === null) this.grid.style.removeProperty("--columns");
    else this.grid.style.setProperty("--columns", String(figure.columns));
    this.grid.classList.toggle("one", figure.panels.length <= 1);
    while (this.views.length > figure.panels.length) this.views.pop()!.dispose();
    while (this.views.length < figure.panels.length) {
      const view = new PanelView(() => this.schedule());
      this.views.push(view);
      this.grid.append(view.element);
    }
    const theme = readTheme(this.root);
    this.views.forEach((view, k) => {
      view.reserve(figure.height);
      view.prepare(new Scene(figure.panels[k]!, theme, view.hidden));
    });
    this.root.setAttribute("aria-label", this.describe());
    this.schedule();
  }

  private grow(points: Points[]): void {
    for (const { panel, mark, x, y } of points) {
      const found = this.figure?.panels[panel]?.marks[mark];
      if (found?.kind !== "line")
        throw new SpecError("The figure can't be drawn: it has no curve that points are for.");
      grow(found.x, x, this.capacity);
      grow(found.y, y, this.capacity);
    }
    this.schedule();
  }

  private fail(error: unknown): void {
    this.failure.textContent = error instanceof Error ? error.message : String(error);
    this.failure.hidden = false;
  }

  /** Draws before the next picture of the screen, however often it is asked. */
  private schedule(): void {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.drawing = this.draw();
    });
  }

  private async draw(): Promise<void> {
    try {
      const library = await load();
      if (this.disposed) return;
      this.drawPanels(library);
    } catch (error) {
      this.fail(error);
    }
  }

  private drawPanels(library: Charts): void {
    const { figure } = this;
    if (!figure) return;
    const theme = readTheme(this.root);
    this.reset.hidden = this.views.every((view) => view.window === null);
    this.views.forEach((view, k) => {
      const scene = new Scene(figure.panels[k]!, theme, view.hidden);
      view.draw(library, scene, window.devicePixelRatio || 1);
    });
  }

  private showAll(): void {
    for (const view of this.views) view.window = null;
    this.schedule();
  }

  /** Resolves once all that was given is drawn. */
  async drawn(): Promise<void> {
    while (this.frame) await new Promise((resolve) => requestAnimationFrame(resolve));
    await this.drawing;
  }

  /** Draws again, in the colours that the page has now. */
  recolour(): void {
    this.schedule();
  }

  /** Draws again, in the size that the element has now; it also does by itself. */
  resize(): void {
    if (this.figure) this.schedule();
  }

  /** The figure as a picture, twice as fine as the page. */
  async png(): Promise<Blob> {
    const library = await this.ready();
    const ratio = 2;
    const canvas = document.createElement("canvas");
    const context = canvas.getContext("2d")!;
    const parts = this.views.map((view) => view.export(library, "canvas", ratio));
    const { places, width, height, top } = this.tile(parts);
    [canvas.width, canvas.height] = [width * ratio, height * ratio];
    const theme = readTheme(this.root);
    context.scale(ratio, ratio);
    context.fillStyle = theme.surface;
    context.fillRect(0, 0, width, height);
    if (top) {
      context.fillStyle = theme.ink;
      context.font = `600 14px ${theme.font}`;
      context.fillText(this.figure!.title, 12, 20);
    }
    parts.forEach(({ chart, width: wide, height: tall }, k) => {
      const [x, y] = places[k]!;
      context.drawImage(chart.renderToCanvas({ pixelRatio: ratio }), x, y, wide, tall);
      chart.dispose();
    });
    return new Promise((resolve, reject) =>
      canvas.toBlob(
        (blob) => (blob ? resolve(blob) : reject(new Error("The picture could not be made."))),
        "image/png",
      ),
    );
  }

  /** The figure as the text of an SVG file. */
  async svg(): Promise<string> {
    const library = await this.ready();
    const parts = this.views.map((view) => view.export(library, "svg", 2));
    const { places, width, height, top } = this.tile(parts);
    const theme = readTheme(this.root);
    const inner = parts.map(({ chart, width: wide, height: tall }, k) => {
      const [x, y] = places[k]!;
      const text = chart.renderToSVGString().replace(/^<svg /, `<svg x="${x}" y="${y}" `);
      chart.dispose();
      return text.replace(/(<svg [^>]*?) width="[\d.]+" height="[\d.]+"/, `$1 width="${wide}" height="${tall}"`);
    });
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    for (const [name, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}` })) {
      svg.setAttribute(name, String(value));
    }
    const back = document.createElementNS(svg.namespaceURI!, "rect");
    for (const [name, value] of Object.entries({ width, height, fill: theme.surface }))
      back.setAttribute(name, String(value));
    svg.append(back);
    if (top) {
      const text = document.createElementNS(svg.namespaceURI!, "text");
      const style = { x: 12, y: 20, fill: theme.ink, "font-family": theme.font, "font-size": 14, "font-weight": 600 };
      for (const [name, value] of Object.entries(style)) text.setAttribute(name, String(value));
      text.textContent = this.figure!.title;
      svg.append(text);
    }
    return new XMLSerializer().serializeToString(svg).replace("</svg>", `${inner.join("")}</svg>`);
  }

  /** The places of panels in a file: in as many columns as the page shows. */
  private tile(parts: { width: number; height: number }[]) {
    const tops = this.views.map((view) => Math.round(view.element.getBoundingClientRect().top));
    const columns = Math.max(tops.filter((top) => top === tops[0]).length, 1);
    const top = this.figure!.title ? 30 : 0;
    const places: [number, number][] = [];
    let [y, width] = [top, 0];
    for (let k = 0; k < parts.length; k += columns) {
      const row = parts.slice(k, k + columns);
      row.reduce((x, part) => (places.push([x, y]), x + part.width), 0);
      width = Math.max(
        width,
        row.reduce((sum, part) => sum + part.width, 0),
      );
      y += Math.max(...row.map((part) => part.height));
    }
    return { places, width: width || 320, height: y || 40, top };
  }

  private async ready(): Promise<Charts> {
    const library = await load();
    if (!this.figure) throw new SpecError("There is no figure to save.");
    // a request in the same moment as it is drawn
    if (this.frame) this.drawPanels(library);
    await this.drawn();
    return library;
  }

  private download(blob: Blob): void {
    const link = document.createElement("a");
    const name = (this.figure?.title || this.figure?.panels[0]?.title || "figure").replace(/[^\p{L}\p{N}]+/gu, "-");
    link.download = `${name.slice(0, 60)}.${blob.type === "image/png" ? "png" : "svg"}`;
    link.href = URL.createObjectURL(blob);
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  }

  /** The figure in a sentence. */
  describe(): string {
    if (!this.figure) return "An empty figure";
    const { title, panels } = this.figure;
    const shown = panels.map(({ title: name, marks }) =>
      [name, ...marks.slice(0, 12).map(say)].filter(Boolean).join("; "),
    );
    return [title, ...shown].filter(Boolean).join(". ") || "An empty figure";
  }

  dispose(): void {
    this.disposed = true;
    cancelAnimationFrame(this.frame);
    this.sizes.disconnect();
    for (const view of this.views) view.dispose();
    this.root.remove();
  }
}
