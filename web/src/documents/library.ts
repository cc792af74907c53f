/**
 * The documents of this browser: kept by themselves, with their history, shared by all tabs.
 *
 * No save loses what somebody typed. A save on top of what another tab has written is kept as a copy. What the browser
 * refuses to store stays in memory, and is tried again with the next save; a notice says so.
 */
import { readArchive, writeArchive } from "./archive.js";
import { compress, decompress } from "./compression.js";
import { SNAPSHOT_MS, thin } from "./history.js";
import { checkDocument, contentOf, DocumentError, fromContent, LIMITS, newCell, newDocument, newId } from "./model.js";
import type { Document } from "./model.js";
import { DatabaseStore, MemoryStore } from "./store.js";
import type { Change, Snapshot, Store, StoredDocument } from "./store.js";
import { UnsavedEdits } from "./unsaved.js";

/** The entry of a document in a list of documents. */
export interface Entry {
  id: string;
  title: string;
  form: Document["form"];
  /** When its content last changed, in milliseconds since 1970. */
  changed: number;
  /** The first words of it. */
  snippet: string;
  origin: string | null;
  revision: number;
  /** Its record can't be read; `open` tries its history. */
  damaged: boolean;
}

/** A document as it was opened or saved; the next save names its revision. */
export interface Opened {
  document: Document;
  revision: number;
  changed: number;
  /** The record is damaged; this is its newest sound snapshot, of this time. */
  repairedFrom?: number;
}

export type Saved =
  | { outcome: "saved"; revision: number }
  /** The browser refused; the text is in memory only, and a notice has said so. */
  | { outcome: "kept"; revision: number }
  /** Another tab has changed the document meanwhile; this text is now a separate document. */
  | { outcome: "conflict"; copy: Opened };

export interface Notice {
  /** `memory`: no database; `full`, `refused`: a save failed; `trimmed`: history went for room; the rest as named. */
  kind: "memory" | "full" | "refused" | "trimmed" | "recovered" | "adopted" | "damaged";
  message: string;
}

export type LibraryEvent =
  /** A document was made, changed, deleted or brought back; a clean editor in another tab opens it again. */
  { type: "changed"; id: string; revision: number; byOtherTab: boolean } | { type: "notice"; notice: Notice };

const TRASH_MS = 7 * 24 * 3600 * 1000;
/** JSON of a document at its limits. */
const SNAPSHOT_BYTES = 8 * LIMITS.characters;
const FORMAT = "deflate";

function snippetOf({ cells }: Document): string {
  const text = cells.map(({ source }) => source.slice(0, 1000)).join("\n");
  return text
    .replace(/^[#\s]+/gm, " ")
    .replace(/\s+/g, " ")
    .trim()
    .slice(0, 120);
}

function numberOf(value: unknown, name: string): number {
  const number = (value as Record<string, unknown> | null | undefined)?.[name];
  return typeof number === "number" && Number.isFinite(number) ? number : 0;
}

/** @throws DocumentError if the record is damaged. */
function checkStored(value: unknown): StoredDocument {
  const deleted = (value as { deleted?: unknown } | null)?.deleted;
  return {
    ...checkDocument(value, "record"),
    created: numberOf(value, "created"),
    changed: numberOf(value, "changed"),
    revision: numberOf(value, "revision"),
    deleted: typeof deleted === "number" ? deleted : null,
  };
}

function soundOrNull(value: unknown): StoredDocument | null {
  try {
    return checkStored(value);
  } catch {
    return null;
  }
}

function openedFrom({ created: _, changed, revision, deleted: __, ...document }: StoredDocument): Opened {
  return { document, revision, changed };
}

function whyNot(error: unknown): string {
  const name = error instanceof Error ? error.name : "";
  if (name === "VersionError") return "a newer version of this page has used it, so reload the page";
  if (name === "QuotaExceededError") return "its storage is full";
  if (name === "SecurityError" || name === "InvalidStateError")
    return "it doesn't allow storage, as in private windows";
  if (name === "ReferenceError" || name === "TypeError") return "it has no database";
  return error instanceof Error && error.message ? error.message.replace(/\.$/, "") : "it gives no reason";
}

export class Library {
  private readonly listeners = new Set<(event: LibraryEvent) => void>();
  /** Records that the browser refused to store. */
  private readonly kept = new Map<string, StoredDocument>();
  /** Runs of revisions that this tab alone has written: `from` was there before, `to` is its newest. */
  private readonly own = new Map<string, { from: number; to: number }>();
  private readonly channel: BroadcastChannel | null;
  private readonly memory: MemoryStore | null;
  /** Pending writes: saves take effect in the order in which they were requested. */
  private last: Promise<unknown> = Promise.resolve();
  /** Keys of recovered edits that no database has yet. */
  private readonly held: string[] = [];
  /** Messages from before there was a listener, and since. */
  readonly notices: Notice[] = [];

  private constructor(
    private readonly store: Store,
    private readonly unsaved: UnsavedEdits,
    private readonly now: () => number,
  ) {
    this.memory = store instanceof MemoryStore ? store : null;
    this.channel = this.memory || typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel("weft:library");
    this.channel?.addEventListener("message", ({ data }) => {
      const { id, revision } = data as { id: string; revision: number };
      this.emit({ type: "changed", id, revision, byOtherTab: true });
    });
  }

  /**
   * The library of this browser; one in memory, with a notice, where the browser keeps nothing.
   *
   * Edits that a closed page had not saved, and the program of earlier versions of the page, become documents.
   *
   * @param now The time in milliseconds since 1970.
   */
  static async open(now: () => number = Date.now): Promise<Library> {
    const unsaved = new UnsavedEdits(newId());
    let library: Library;
    try {
      library = new Library(await DatabaseStore.open(), unsaved, now);
      await library.purge().catch(() => {});
    } catch (error) {
      library = new Library(new MemoryStore(), unsaved, now);
      const message = `This browser does not keep documents: ${whyNot(error)}. Download what you want to keep.`;
      library.tell({ kind: "memory", message });
    }
    const recover = () => library.recover();
    // One tab at a time, so that two tabs that open at the same time do not both recover the same edit.
    await (globalThis.navigator?.locks?.request("weft:recover", recover) ?? recover());
    return library;
  }

  /** Whether documents outlive the page. */
  get persistent(): boolean {
    return this.memory === null;
  }

  /** Calls the listener with each event until the function that it returns is called. */
  subscribe(listener: (event: LibraryEvent) => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  close(): void {
    this.listeners.clear();
    this.channel?.close();
    this.store.close();
  }

  private emit(event: LibraryEvent): void {
    for (const listener of this.listeners) listener(event);
  }

  private tell(notice: Notice): void {
    this.notices.push(notice);
    this.emit({ type: "notice", notice });
  }

  private changed(id: string, revision: number): void {
    this.channel?.postMessage({ id, revision });
    this.emit({ type: "changed", id, revision, byOtherTab: false });
  }

  // ---- Reading ----

  /** All documents but deleted ones, the one that changed last first. */
  async list(): Promise<Entry[]> {
    const records = new Map<unknown, unknown>();
    for (const record of await this.readable()) records.set((record as { id?: unknown }).id, record);
    for (const [id, record] of this.kept) records.set(id, record);
    const entries = [...records].flatMap(([id, record]): Entry[] => {
      if (typeof id !== "string") return [];
      const sound = soundOrNull(record);
      if (sound?.deleted != null) return [];
      const times = { changed: numberOf(record, "changed"), revision: numberOf(record, "revision") };
      if (!sound) {
        const snippet = "This document is damaged. Opening it looks for a sound state in its history.";
        return [{ id, title: "Damaged document", form: "script", origin: null, snippet, damaged: true, ...times }];
      }
      const { title, form, origin } = sound;
      return [{ id, title, form, origin, snippet: snippetOf(sound), damaged: false, ...times }];
    });
    return entries.sort((a, b) => b.changed - a.changed);
  }

  private async readable(): Promise<unknown[]> {
    try {
      return await this.store.all();
    } catch (error) {
      const message = `The library can't be read: the browser refuses, because ${whyNot(error)}. Reload the page.`;
      if (!this.notices.some((notice) => notice.message === message)) this.tell({ kind: "refused", message });
      return [];
    }
  }

  /**
   * A document; if its record is damaged, as its newest sound snapshot has it.
   *
   * @throws DocumentError if there is none with this id, or it is damaged and has no sound snapshot.
   */
  async open(id: string): Promise<Opened> {
    const { stored, times } = this.kept.has(id)
      ? { stored: this.kept.get(id), times: [] }
      : await this.store.get(id).catch((error: unknown) => {
          throw new DocumentError(`This document can't be read, because ${whyNot(error)}.`, { cause: error });
        });
    const sound = soundOrNull(stored);
    if (stored === undefined || sound?.deleted != null) {
      throw new DocumentError("This document is not in the library: it was deleted.");
    }
    if (sound) return openedFrom(sound);
    for (const time of times.sort((a, b) => b - a)) {
      const document = await this.snapshot(id, time).catch(() => null);
      if (!document) continue;
      const message = `“${document.title}” was damaged on disk. This is its state of ${new Date(time).toLocaleString()}.`;
      this.tell({ kind: "damaged", message });
      return { document, revision: numberOf(stored, "revision"), changed: time, repairedFrom: time };
    }
    throw new DocumentError("This document is damaged on disk, and its history has no sound state.");
  }

  /** The copies of a link or an example, the most recently changed first. */
  async copiesOf(origin: string): Promise<Entry[]> {
    return (await this.list()).filter((entry) => entry.origin === origin);
  }

  // ---- Writing ----

  /** Makes a new document of this one, under another id if its own is taken. */
  async create(document: Document): Promise<Opened> {
    const time = this.now();
    const record = { ...document, created: time, changed: time, revision: 1, deleted: null };
    const stored = await this.write(record, (found) => {
      const free = found === undefined && !this.kept.has(document.id) ? record : { ...record, id: newId() };
      return { change: { put: [free] }, result: free };
    });
    if (stored) this.changed(stored.id, 1);
    return openedFrom(stored ?? this.kept.get(document.id)!);
  }

  /**
   * Saves a document that was opened or last saved at `revision`.
   *
   * Saves of one tab may overlap: each counts as made on top of the one before it. A document that was deleted
   * meanwhile comes back.
   *
   * @param keepBefore Whether the state before this change becomes a snapshot in any case.
   */
  save(document: Document, revision: number, keepBefore = false): Promise<Saved> {
    const saved = this.last.then(() => this.saveNext(document, revision, keepBefore));
    this.last = saved.catch(() => {});
    return saved;
  }

  private async saveNext(document: Document, revision: number, keepBefore: boolean): Promise<Saved> {
    const content = contentOf(document);
    const time = this.now();
    const record = { ...document, created: time, changed: time, revision: revision + 1, deleted: null };
    const snapshot = await this.snapshotBefore(document.id, content, keepBefore);
    type Result = { outcome: "same" | "saved" | "conflict"; record: StoredDocument };
    const result = await this.write<Result>(record, (found, times) => {
      const stored = soundOrNull(found);
      const current = numberOf(found, "revision");
      if (stored && stored.deleted === null && contentOf(stored) === content) {
        return { change: {}, result: { outcome: "same", record: stored } };
      }
      const own = this.own.get(document.id);
      const onTop = current === revision || (own?.to === current && own.from <= revision);
      if (stored && stored.deleted === null && !onTop) {
        const copy = { ...record, id: newId(), title: `${document.title} (conflicting copy)`, revision: 1 };
        return { change: { put: [copy] }, result: { outcome: "conflict", record: copy } };
      }
      const next = { ...record, created: stored?.created ?? time, revision: Math.max(current, revision) + 1 };
      const change: Change = { put: [next] };
      if (snapshot) {
        change.snapshots = [snapshot];
        change.drop = thin([...times, snapshot.time], time).map((old) => [document.id, old]);
      }
      return { change, result: { outcome: "saved", record: next } };
    });
    if (!result) return { outcome: "kept", revision };
    this.kept.delete(document.id);
    if (this.persistent) this.unsaved.clear(document.id);
    const { outcome, record: stored } = result;
    if (outcome === "same") return { outcome: "saved", revision: stored.revision };
    this.changed(stored.id, stored.revision);
    if (outcome === "conflict") return { outcome, copy: openedFrom(stored) };
    this.wrote(stored.id, stored.revision);
    return { outcome, revision: stored.revision };
  }

  /** Notes that this tab has written a revision on top of the previous one. */
  private wrote(id: string, revision: number): void {
    const own = this.own.get(id);
    if (own?.to === revision - 1) own.to = revision;
    else this.own.set(id, { from: revision - 1, to: revision });
  }

  /** Gives a document another title. */
  async rename(id: string, title: string): Promise<Opened> {
    const { document, revision } = await this.open(id);
    const saved = await this.save({ ...document, title }, revision);
    return saved.outcome === "conflict" ? saved.copy : this.open(id);
  }

  async duplicate(id: string): Promise<Opened> {
    const { document } = await this.open(id);
    return this.create({ ...document, id: newId(), title: `${document.title} (copy)` });
  }

  /** Deletes a document. `undelete` brings it back for a week, as long as there is room. */
  async remove(id: string): Promise<void> {
    this.unsaved.clear(id);
    await this.mark(id, this.now());
  }

  async undelete(id: string): Promise<void> {
    await this.mark(id, null);
  }

  private async mark(id: string, deleted: number | null): Promise<void> {
    const kept = this.kept.get(id);
    if (kept) this.kept.set(id, { ...kept, deleted });
    const change = this.store.change(id, (found) => {
      if (found === undefined) return { change: {}, result: 0 };
      const sound = soundOrNull(found);
      // A document that can't be read can't be restored.
      if (!sound) return { change: { purge: [id] }, result: numberOf(found, "revision") };
      const next = { ...sound, deleted, revision: sound.revision + 1 };
      return { change: { put: [next] }, result: next.revision };
    });
    const revision = await change.catch((error: unknown) => {
      throw new DocumentError(`The browser refuses the change, because ${whyNot(error)}.`, { cause: error });
    });
    if (revision) this.wrote(id, revision);
    this.changed(id, revision);
  }

  // ---- History ----

  /** The times of a document's snapshots, the newest first. */
  async history(id: string): Promise<number[]> {
    return (await this.store.get(id)).times.sort((a, b) => b - a);
  }

  /** A document as it was at a time of its history. */
  async snapshot(id: string, time: number): Promise<Document> {
    const found = await this.store.snapshot(id, time);
    if (!found) throw new DocumentError("This state is no longer in the history.");
    try {
      return { ...fromContent(await decompress(found.content, FORMAT, SNAPSHOT_BYTES)), id };
    } catch (error) {
      throw new DocumentError("This state of the history is damaged. Try one beside it.", { cause: error });
    }
  }

  /** Saves a document as it was at a time of its history; its state until now becomes a part of the history. */
  async restore(id: string, time: number, revision: number): Promise<Saved> {
    const { document } = await this.open(id);
    return this.save({ ...(await this.snapshot(id, time)), origin: document.origin }, revision, true);
  }

  /** The stored state of a document that is about to change, if it belongs into its history. */
  private async snapshotBefore(id: string, content: string, always: boolean): Promise<Snapshot | null> {
    try {
      const { stored, times } = await this.store.get(id);
      const before = soundOrNull(stored);
      if (!before || contentOf(before) === content || times.includes(before.changed)) return null;
      if (before.cells.every(({ source }) => source.trim() === "")) return null;
      const newest = times.length ? Math.max(...times) : -Infinity;
      // A snapshot from a clock that was ahead does not stop the history.
      if (!always && Math.abs(this.now() - newest) < SNAPSHOT_MS) return null;
      return { id, time: before.changed, content: await compress(contentOf(before), FORMAT) };
    } catch {
      // A history is worth having, but the save goes first.
      return null;
    }
  }

  // ---- Where the browser refuses ----

  /** Makes a change. If the browser refuses, keeps the record in memory, reports that, and returns null. */
  private async write<T extends object>(
    record: StoredDocument,
    decide: (stored: unknown, times: number[]) => { change: Change; result: T },
  ): Promise<T | null> {
    const attempt = async () => {
      const result = await this.store.change(record.id, decide);
      this.askForPersistence();
      return result;
    };
    try {
      return await attempt();
    } catch (error) {
      let reason = error;
      if (whyNot(error) === "its storage is full" && (await this.makeRoom())) {
        try {
          return await attempt();
        } catch (again) {
          reason = again;
        }
      }
      const first = !this.kept.has(record.id);
      // It keeps the revision on which it was made, so that a later save finds the changes of other tabs.
      this.kept.set(record.id, { ...record, revision: record.revision - 1 });
      const message =
        `“${record.title}” is not saved: the browser refuses, because ${whyNot(reason)}. ` +
        "It is kept while this tab is open; download it.";
      if (first) this.tell({ kind: whyNot(reason) === "its storage is full" ? "full" : "refused", message });
      return null;
    }
  }

  /** Drops deleted documents and the older half of all history; false if there was nothing to drop. */
  private async makeRoom(): Promise<boolean> {
    try {
      const purge = (await this.store.all()).map(soundOrNull).filter((each) => each?.deleted != null);
      const times = (await this.store.snapshots()).sort((a, b) => a[1] - b[1]);
      const drop = times.slice(0, Math.ceil(times.length / 2));
      if (purge.length + drop.length === 0) return false;
      const change = { purge: purge.map((each) => each!.id), drop };
      await this.store.change("", () => ({ change, result: null }));
    } catch {
      return false;
    }
    const message = "The browser's storage is full: deleted documents and the older half of the history had to go.";
    this.tell({ kind: "trimmed", message });
    return true;
  }

  private async purge(): Promise<void> {
    const old = this.now() - TRASH_MS;
    const purge = (await this.store.all()).map(soundOrNull).filter((each) => (each?.deleted ?? Infinity) < old);
    if (purge.length === 0) return;
    const change = { purge: purge.map((each) => each!.id) };
    await this.store.change("", () => ({ change, result: null }));
  }

  /** Asks the browser once not to evict the library when the disk is short. */
  private askForPersistence(): void {
    if (!this.persistent || !globalThis.navigator?.storage?.persist) return;
    if (this.unsaved.first("persist-asked")) void navigator.storage.persist().catch(() => false);
  }

  // ---- Pages that close ----

  /**
   * For `pagehide`: keeps at once what the database may not get to write, for the next visit.
   *
   * @param edited Documents with edits that no finished save has, and the revisions that they were made on.
   */
  hide(edited: { document: Document; revision: number }[]): void {
    const ids = new Set(edited.map(({ document }) => document.id));
    const records = this.memory ? this.memory.documents.values() : this.kept.values();
    let all = true;
    for (const record of records) {
      const { document, revision } = openedFrom(record);
      if (record.deleted !== null || ids.has(document.id)) continue;
      all = this.unsaved.keep(document, revision) && all;
    }
    for (const { document, revision } of edited) all = this.unsaved.keep(document, revision) && all;
    if (all) for (const key of this.held.splice(0)) this.unsaved.forget(key);
  }

  private async recover(): Promise<void> {
    const { sound, damaged } = this.unsaved.found();
    for (const { key, document, revision } of sound) {
      const before = await this.store.get(document.id).catch(() => null);
      const saved = await this.save(document, revision);
      if (saved.outcome !== "kept" && this.persistent) this.unsaved.forget(key);
      else this.held.push(key);
      const current = soundOrNull(before?.stored);
      if (current && contentOf(current) === contentOf(document)) continue;
      const where = saved.outcome === "conflict" ? `, as “${saved.copy.document.title}”` : "";
      this.tell({ kind: "recovered", message: `Your last edits of “${document.title}” were recovered${where}.` });
    }
    for (const key of damaged) {
      this.unsaved.forget(key);
      this.tell({ kind: "damaged", message: "An edit that was not saved could not be read again." });
    }
    const source = this.unsaved.earlier();
    if (source === null) return;
    if (source.trim() !== "") {
      const id = "earlier-program";
      const document = newDocument({ id, title: "My program", cells: [newCell("code", source)] });
      const before = await this.store.get(id).catch(() => null);
      if (before?.stored === undefined) await this.create(document);
      if (this.kept.has(id)) return;
      const message = "The program that you had here is now the document “My program” of your library.";
      this.tell({ kind: "adopted", message });
    }
    if (this.persistent) this.unsaved.forgetEarlier();
  }

  // ---- All at once ----

  /** All documents as one JSON text, for a file. Damaged ones are left out. */
  async exportAll(): Promise<string> {
    return writeArchive((await this.sound()).map(({ document }) => document));
  }

  private async sound(): Promise<Opened[]> {
    const opened = await Promise.all((await this.list()).map(({ id }) => this.open(id).catch(() => null)));
    return opened.filter((each) => each !== null);
  }

  /**
   * Adds the documents of a text that `exportAll` wrote, but those that the library has.
   *
   * @throws DocumentError if the text is none, before anything is added.
   */
  async importAll(text: string): Promise<{ added: Opened[]; skipped: number }> {
    const found = readArchive(text);
    const present = new Set((await this.sound()).map(({ document }) => contentOf(document)));
    const fresh = found.filter((document) => !present.has(contentOf(document)));
    const added: Opened[] = [];
    for (const document of fresh) added.push(await this.create(document));
    return { added, skipped: found.length - fresh.length };
  }
}
