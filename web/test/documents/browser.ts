/** What the library needs of a browser, under Node, and ways to break it. */
import "fake-indexeddb/auto";
import { IDBFactory, IDBObjectStore } from "fake-indexeddb";
import type { TestContext } from "node:test";
import { Library } from "../../src/documents/library.js";

/** `localStorage` with room for so many characters. */
export class FakeStorage implements Storage {
  private readonly items = new Map<string, string>();
  constructor(private readonly room = 5_000_000) {}
  get length(): number {
    return this.items.size;
  }
  clear(): void {
    this.items.clear();
  }
  getItem(key: string): string | null {
    return this.items.get(key) ?? null;
  }
  key(index: number): string | null {
    return [...this.items.keys()][index] ?? null;
  }
  removeItem(key: string): void {
    this.items.delete(key);
  }
  setItem(key: string, value: string): void {
    const used = [...this.items].reduce((sum, [name, text]) => sum + name.length + text.length, 0);
    if (used + value.length > this.room) throw new DOMException("full", "QuotaExceededError");
    this.items.set(key, value);
  }
}

const globals = globalThis as unknown as Record<string, unknown>;

/** A browser with nothing stored. Its tabs are closed at the end of the test. */
export class FakeBrowser {
  storage = new FakeStorage();
  time = Date.UTC(2026, 0, 1);
  private readonly tabs: Library[] = [];

  constructor(private readonly context: TestContext) {
    globals["indexedDB"] = new IDBFactory();
    this.setStorage(this.storage);
    context.after(() => this.tabs.forEach((tab) => tab.close()));
  }

  setStorage(storage: FakeStorage): void {
    this.storage = storage;
    globals["localStorage"] = storage;
  }

  async tab(): Promise<Library> {
    const library = await Library.open(() => this.time);
    this.tabs.push(library);
    return library;
  }

  /** Reads or writes a record as if there were no library. */
  async raw(
    mode: IDBTransactionMode,
    act: (records: IDBObjectStore, snapshots: IDBObjectStore) => void,
  ): Promise<void> {
    const database = await new Promise<IDBDatabase>((resolve, reject) => {
      const request = indexedDB.open("weft-library");
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error!);
    });
    const transaction = database.transaction(["documents", "snapshots"], mode);
    const store = (name: string) => transaction.objectStore(name) as unknown as IDBObjectStore;
    act(store("documents"), store("snapshots"));
    await new Promise((resolve) => (transaction.oncomplete = resolve));
    database.close();
  }

  /** No database: `indexedDB` gives this instead of one. */
  withoutDatabase(open: unknown): void {
    const before = globals["indexedDB"];
    globals["indexedDB"] = open === undefined ? undefined : { open };
    this.context.after(() => (globals["indexedDB"] = before));
  }

  /** The disk refuses writes while `full()` is true. */
  disk(full: () => boolean): void {
    const real = IDBObjectStore.prototype.put;
    this.context.after(() => (IDBObjectStore.prototype.put = real));
    IDBObjectStore.prototype.put = function (this: IDBObjectStore, ...given: Parameters<typeof real>) {
      if (full()) throw new DOMException("No room.", "QuotaExceededError");
      return real.apply(this, given);
    };
  }
}

/** Waits until messages between tabs have arrived. */
export async function until(holds: () => boolean): Promise<void> {
  for (let tries = 0; !holds(); tries++) {
    if (tries > 1000) throw new Error("It never came to hold.");
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
