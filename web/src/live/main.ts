/**
 * Cells of other people's pages: what a site gives to `<weft-cell>` (cell/src/contract.ts). One interpreter runs all of
 * a page's cells; it starts with the first Run.
 */
import type { Cells, CellHost, LiveCell, SiteFile } from "@weft/cell/contract";
import { newCell, newDocument } from "../documents/model.js";
import { toFragment } from "../documents/share.js";
import { loadIndex, type LanguageIndex } from "../editor/index.js";
import { bootWorker } from "../kernel/boot.js";
import type { SiteData } from "../kernel/protocol.js";
import { Python } from "../kernel/python.js";
import { PageConsents } from "../notebook/consents.js";
import { useRenderers } from "../notebook/renderers.js";
import { View, type Surroundings } from "./view.js";
import { onColours } from "../output/colours.js";
import { useManual } from "../output/manual.js";

class PageCells implements Cells, Surroundings {
  private started: Python | null = null;
  private known: Promise<LanguageIndex> | null = null;
  private readonly views = new Set<View>();
  private readonly counts = new Map<string, number>();
  private hasRun = false;
  readonly consents = new PageConsents();

  constructor(
    private readonly base: string,
    private readonly site: SiteData,
    private readonly forgotten: () => void,
  ) {
    useRenderers(() => this.python(), onColours);
    useManual(base);
  }

  attach(host: CellHost): LiveCell {
    const view = new View(host, this);
    this.views.add(view);
    return {
      run: () => view.run(),
      write: (code) => view.write(code),
      focus: () => view.focus(),
      link: () => this.link(host, view.text),
      dispose: () => {
        this.views.delete(view);
        view.dispose();
      },
    };
  }

  stop(): void {
    this.started?.stop();
  }

  restart(): void {
    this.started?.restart();
  }

  python(): Python {
    this.started ??= new Python(() => bootWorker({ site: this.site, base: this.base, report: true }), {
      ready: () => undefined,
      failed: (message) => this.fail(message),
      progress: (what, loaded, total) => this.progress(what, loaded, total),
      file: () => undefined,
      restarted: () => {
        this.hasRun = false;
        this.counts.clear();
        this.forgotten();
      },
    });
    return this.started;
  }

  get ready(): Python | null {
    return this.started?.info ? this.started : null;
  }

  /** A run's number in its session, and whether it is the first of all. */
  count(session: string): { number: number; fresh: boolean } {
    const number = (this.counts.get(session) ?? 0) + 1;
    this.counts.set(session, number);
    const fresh = !this.hasRun;
    this.hasRun = true;
    return { number, fresh };
  }

  index(): Promise<LanguageIndex> {
    const { index, sources } = this.site.language;
    const at = (url: string): string => new URL(url, this.base).href;
    this.known ??= loadIndex(index.map(at), at(sources)).catch((error: unknown) => {
      this.known = null;
      throw error;
    });
    return this.known;
  }

  /** The views of a session in the order of the page, which the elements know. */
  inSession(host: CellHost): View[] {
    const places = host.neighbours().map(({ source }) => source);
    return [...this.views]
      .filter((view) => places.includes(view.place))
      .sort((a, b) => places.indexOf(a.place) - places.indexOf(b.place));
  }

  private async link({ backend, x64 }: CellHost, code: string): Promise<string> {
    const options = { backend, x64 };
    const document = newDocument({ title: "Example", cells: [newCell("code", code)], options });
    return this.base + (await toFragment(document));
  }

  private progress(what: string, loaded: number, total: number): void {
    const share = total > 0 ? ` ${Math.min(99, Math.round((100 * loaded) / total))} %` : "";
    for (const view of this.views) view.progress(`${what}${share}`);
  }

  private fail(message: string): void {
    for (const view of this.views) view.fail(`Python did not start: ${message}. Press Run to try again.`);
    const failed = this.started;
    this.started = null;
    failed?.stop();
    failed?.dispose();
  }
}

export function open(base: string, site: SiteFile, forgotten: () => void): Cells {
  return new PageCells(base, site as unknown as SiteData, forgotten);
}
