/** The dialog with the reader's documents, their history, and the examples. */
import type { Document } from "../documents/model.js";
import type { GalleryEntry } from "../kernel/protocol.js";
import { button, create } from "../elements.js";
import type { Examples } from "./examples.js";
import type { Entry, Shelf } from "./shelf.js";

export interface PanelOptions {
  shelf: Shelf;
  examples: Examples;
  open(document: Document): void;
  openExample(id: string): void;
}

function ago(time: number): string {
  const minutes = (Date.now() - time) / 60_000;
  const form = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
  if (minutes < 1) return "just now";
  if (minutes < 60) return form.format(-Math.round(minutes), "minute");
  if (minutes < 60 * 24) return form.format(-Math.round(minutes / 60), "hour");
  return form.format(-Math.round(minutes / 60 / 24), "day");
}

export class LibraryPanel {
  constructor(
    private readonly dialog: HTMLDialogElement,
    private readonly options: PanelOptions,
  ) {
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog) dialog.close(); // beside it
    });
  }

  show(): void {
    this.dialog.showModal();
    void this.fill();
  }

  private async fill(): Promise<void> {
    const { shelf, examples } = this.options;
    const title = create("h2", { id: "library-title", textContent: "Documents" });
    const close = button("×", () => this.dialog.close(), { className: "icon", ariaLabel: "Close" });
    const entries = await shelf.list();
    const own = entries.length
      ? create("ul", { className: "entries" }, ...entries.map((entry) => this.entry(entry)))
      : create("p", { className: "dim", textContent: "Nothing of your own yet. What you write is kept here." });
    const others = create(
      "ul",
      { className: "examples", id: "examples" },
      ...examples.programs.map((each) => create("li", {}, this.example(each))),
    );
    const gallery = create("section", { ariaLabel: "Gallery", id: "gallery" });
    for (const group of new Set(examples.gallery.map((each) => each.group))) {
      const members = examples.gallery.filter((each) => each.group === group);
      const items = members.map((each) => create("li", {}, this.picture(each)));
      gallery.append(create("h3", { textContent: group }), create("ul", { className: "examples" }, ...items));
    }
    this.dialog.replaceChildren(
      create("header", {}, title, close),
      create("section", { ariaLabel: "Your documents" }, create("h3", { textContent: "Yours" }), own),
      create("section", { ariaLabel: "Examples" }, create("h3", { textContent: "First steps" }), others),
      gallery,
    );
  }

  private example({ id, title, summary }: { id: string; title: string; summary: string }): HTMLButtonElement {
    const open = button("", () => {
      this.dialog.close();
      this.options.openExample(id);
    });
    open.append(create("b", { textContent: title }), create("span", { textContent: summary }));
    return open;
  }

  private picture(entry: GalleryEntry): HTMLButtonElement {
    const open = this.example(entry);
    open.className = "pictured";
    open.prepend(create("img", { src: entry.thumbnail, alt: "", loading: "lazy" }));
    open.append(create("small", { textContent: `${entry.minutes} min` }));
    return open;
  }

  private entry(entry: Entry): HTMLLIElement {
    const { shelf } = this.options;
    const open = button("", () => void this.openEntry(entry.id), { className: "open" });
    open.append(
      create("b", { textContent: entry.title }),
      create("span", { textContent: `${entry.form} · ${ago(entry.changed)}` }),
    );
    const after = (step: Promise<unknown>): void => void step.then(() => this.fill());
    return create(
      "li",
      {},
      open,
      button("History", () => void this.history(entry), { ariaLabel: `History of ${entry.title}` }),
      button("Copy", () => after(shelf.duplicate(entry.id)), { ariaLabel: `Copy ${entry.title}` }),
      button("Delete", () => after(shelf.remove(entry.id)), { ariaLabel: `Delete ${entry.title}` }),
    );
  }

  private async openEntry(id: string): Promise<void> {
    const document = await this.options.shelf.load(id);
    this.dialog.close();
    if (document) this.options.open(document);
  }

  private async history(entry: Entry): Promise<void> {
    const { shelf, open } = this.options;
    const times = await shelf.history(entry.id);
    const list = create(
      "ul",
      { className: "entries" },
      ...times.map((time) =>
        create(
          "li",
          {},
          create("span", { textContent: `${ago(time)} (${new Date(time).toLocaleString("en")})` }),
          button("Restore", async () => {
            const document = await shelf.restore(entry.id, time);
            this.dialog.close();
            if (document) open(document);
          }),
        ),
      ),
    );
    const title = create("h2", { id: "library-title", textContent: `History of ${entry.title}` });
    const empty = create("p", { className: "dim", textContent: "No earlier state is kept yet." });
    this.dialog.replaceChildren(
      create(
        "header",
        {},
        title,
        button("Back", () => void this.fill()),
      ),
      times.length ? list : empty,
    );
  }
}
