/**
 * The open document's place in the library: loads, autosaves, and says what happened.
 *
 * What a link or an example shows is a loose document until the reader changes it; then it becomes a document of the
 * library. So looking leaves nothing behind, and nobody's own text is ever written over.
 */
import { Library, type Entry, type Opened } from "../documents/library.js";
import type { Document } from "../documents/model.js";
import { fromFragment, toFragment } from "../documents/share.js";
import type { Notices } from "./notices.js";
import { settings } from "./settings.js";

export type { Entry };

const SAVE_AFTER_MS = 400;

/** The part of the page that shows the open document. */
interface Page {
  show(document: Document): void;
  /** The open document has another title. */
  retitle(): void;
}

const said = (error: unknown): string => (error instanceof Error ? error.message : String(error));

export class Shelf {
  private document: Document | null = null;
  /** The revisions of documents of the library in this tab; a loose document has none. */
  private readonly revisions = new WeakMap<Document, number>();
  /** Documents with edits that no finished save has, and how many. */
  private readonly edits = new Map<Document, number>();
  private timer: ReturnType<typeof setTimeout> | null = null;
  private saving: Promise<void> = Promise.resolve();

  private constructor(
    private readonly library: Library,
    private readonly notices: Notices,
    private readonly page: Page,
    private readonly example: (id: string) => Promise<Document | null>,
  ) {
    for (const { message } of library.notices) notices.show(message);
    library.subscribe((event) => {
      if (event.type === "notice") return notices.show(event.notice.message);
      if (!this.document || event.id !== this.document.id) return;
      if (event.byOtherTab) void this.changedElsewhere();
      // Deleting a document and bringing it back count as changes too.
      else if (this.revisions.has(this.document)) this.revisions.set(this.document, event.revision);
    });
    window.addEventListener("pagehide", () => {
      const edited = [...this.edits.keys()];
      library.hide(edited.map((document) => ({ document, revision: this.revisions.get(document) ?? 0 })));
    });
    // A page that is restored from the browser's cache has missed the changes of other tabs.
    window.addEventListener("pageshow", ({ persisted }) => persisted && void this.changedElsewhere());
    // A tab in the background may be ended without further notice.
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) void this.save();
    });
  }

  /** @param example gives the example of a name. */
  static async open(notices: Notices, page: Page, example: (id: string) => Promise<Document | null>): Promise<Shelf> {
    return new Shelf(await Library.open(), notices, page, example);
  }

  /**
   * The document that the page begins with: that of the link in its address, the one that this tab had open, the one
   * that changed last, or `otherwise`.
   */
  async first(last: string | null, otherwise: () => Document): Promise<Document> {
    const linked = await this.fromLink(location.hash);
    if (linked) return linked;
    const entries = await this.list();
    const recent = entries.some(({ id }) => id === last) ? last : entries[0]?.id;
    const kept = recent ? await this.load(recent) : null;
    return kept ?? this.loose(otherwise());
  }

  /** Shows the document of a link that was put into the address of an open page. */
  async openLink(hash: string): Promise<void> {
    await this.save();
    const linked = await this.fromLink(hash);
    if (linked) this.page.show(linked);
  }

  /** Shows a document that is not in the library: it will be, once the reader changes it. */
  loose(document: Document): Document {
    void this.save();
    this.document = document;
    if (document.origin) void this.offerCopy(document.origin);
    return document;
  }

  /** Whether the library has the document that is open. */
  isKept(document: Document): boolean {
    return this.revisions.has(document);
  }

  /** Adds a document to the library. */
  async adopt(document: Document): Promise<Document> {
    await this.save();
    return this.begin(await this.library.create(document));
  }

  /** Continues with a document of the library. */
  private begin({ document, revision }: Opened): Document {
    this.document = document;
    this.revisions.set(document, revision);
    return document;
  }

  async load(id: string): Promise<Document | null> {
    await this.save();
    try {
      return this.begin(await this.library.open(id));
    } catch (error) {
      this.fail(error);
      return null;
    }
  }

  /** The reader has changed the open document. */
  changed(document: Document): void {
    this.document = document;
    this.edits.set(document, (this.edits.get(document) ?? 0) + 1);
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.save(), SAVE_AFTER_MS);
    // From now on a reload opens the reader's document, not the link again.
    if (/^#(doc|code|example)=/.test(location.hash))
      history.replaceState(null, "", location.pathname + location.search);
    settings.set("document", document.id);
  }

  /** Saves pending changes now. */
  save(): Promise<void> {
    if (this.timer !== null) {
      clearTimeout(this.timer);
      this.timer = null;
      const { document } = this;
      if (document) this.saving = this.saving.then(() => this.write(document)).catch((error) => this.fail(error));
    }
    return this.saving;
  }

  /** A link that holds the document, or null if it can't be made, which a notice explains. */
  async link(document: Document): Promise<string | null> {
    try {
      return await toFragment(document);
    } catch (error) {
      this.fail(error);
      return null;
    }
  }

  list(): Promise<Entry[]> {
    return this.library.list();
  }

  async duplicate(id: string): Promise<void> {
    await this.save();
    await this.library.duplicate(id);
  }

  async remove(id: string): Promise<void> {
    await this.save();
    // The open document stays open; the next change saves it again.
    await this.library.remove(id);
    this.notices.show("The document was deleted.", { text: "Undo", run: () => void this.library.undelete(id) }, 20_000);
  }

  history(id: string): Promise<number[]> {
    return this.library.history(id);
  }

  async restore(id: string, time: number): Promise<Document | null> {
    await this.save();
    try {
      const { revision } = await this.library.open(id);
      await this.library.restore(id, time, revision);
    } catch (error) {
      this.fail(error);
      return null;
    }
    return this.load(id);
  }

  async importAll(text: string): Promise<{ added: number; skipped: number }> {
    const { added, skipped } = await this.library.importAll(text);
    return { added: added.length, skipped };
  }

  exportAll(): Promise<string> {
    return this.library.exportAll();
  }

  private async write(document: Document): Promise<void> {
    const edits = this.edits.get(document);
    const revision = this.revisions.get(document);
    if (revision === undefined) {
      const opened = await this.library.create(document);
      // The page keeps its own object, which the reader may have changed meanwhile.
      document.id = opened.document.id;
      this.revisions.set(document, opened.revision);
    } else {
      const saved = await this.library.save(document, revision);
      if (saved.outcome === "conflict") this.goOnWith(saved.copy, document);
      else this.revisions.set(document, saved.revision);
    }
    if (this.edits.get(document) === edits) this.edits.delete(document);
    if (this.document === document) settings.set("document", document.id);
  }

  /** Another tab has saved the document too: the open document becomes the copy that the library made of it. */
  private goOnWith(copy: Opened, document: Document): void {
    const other = document.id;
    document.id = copy.document.id;
    document.title = copy.document.title;
    this.revisions.set(document, copy.revision);
    if (this.document === document) this.page.retitle();
    const text = "Another tab changed this document too. What you wrote here is now a document of its own.";
    const open = async (): Promise<void> => {
      const theirs = await this.load(other);
      if (theirs) this.page.show(theirs);
    };
    this.notices.show(text, { text: "Open the other", run: () => void open() });
  }

  /** Another tab saved the open document: shows its text, unless there are edits here, which then become a copy. */
  private async changedElsewhere(): Promise<void> {
    const { document } = this;
    if (!document || !this.revisions.has(document)) return;
    await this.saving;
    const opened = await this.library.open(document.id).catch(() => null);
    if (this.document !== document || this.edits.has(document)) return;
    if (opened?.revision === this.revisions.get(document)) return;
    if (opened) this.page.show(this.begin(opened));
    const text = opened
      ? "Another tab changed this document; this is its text now."
      : "Another tab deleted this document. It comes back when you change it.";
    this.notices.show(text, undefined, 6000);
  }

  private async fromLink(hash: string): Promise<Document | null> {
    try {
      const name = /^#example=([\w-]{1,80})$/.exec(hash)?.[1];
      const linked = name === undefined ? await fromFragment(hash) : await this.example(name);
      if (name !== undefined && !linked) this.notices.show(`This page has no example of the name “${name}”.`);
      return linked && this.loose(linked);
    } catch (error) {
      this.fail(error);
      return null;
    }
  }

  /** Tells the reader that there is a copy of this link or example already. */
  private async offerCopy(origin: string): Promise<void> {
    const [copy] = await this.library.copiesOf(origin);
    if (!copy) return;
    const open = async (): Promise<void> => {
      const document = await this.load(copy.id);
      if (document) this.page.show(document);
    };
    const text = `You have changed this before: “${copy.title}” is in your documents.`;
    this.notices.show(text, { text: "Open it", run: () => void open() }, 20_000);
  }

  private fail(error: unknown): void {
    this.notices.show(said(error));
  }
}
