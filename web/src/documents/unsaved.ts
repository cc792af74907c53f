/**
 * Edits that a page had not saved when it was closed.
 *
 * A database may not finish what a closing page asks of it; `localStorage` writes at once. Each tab has its own keys.
 */
import { checkDocument, fieldsOf } from "./model.js";
import type { Document } from "./model.js";

const PREFIX = "weft:unsaved:";
/** The place where versions without a library stored the only program. */
const EARLIER = "weft:source";

/** The browser's storage, or null where it is blocked: then even to look at it fails. */
export function localStorageOrNull(): Storage | null {
  try {
    return globalThis.localStorage ?? null;
  } catch {
    return null;
  }
}

export interface Unsaved {
  key: string;
  document: Document;
  /** The revision in the library that the edits were made on. */
  revision: number;
}

export class UnsavedEdits {
  constructor(
    private readonly tab: string,
    private readonly storage: Storage | null = localStorageOrNull(),
  ) {}

  private attempt<T>(what: (storage: Storage) => T, otherwise: T): T {
    if (!this.storage) return otherwise;
    try {
      return what(this.storage);
    } catch {
      // Blocked or full: the library's database has been asked too.
      return otherwise;
    }
  }

  /** Keeps a document; false if the browser refuses. */
  keep(document: Document, revision: number): boolean {
    const value = JSON.stringify({ document, revision });
    return this.attempt((storage) => (storage.setItem(`${PREFIX}${this.tab}:${document.id}`, value), true), false);
  }

  /** Forgets this tab's unsaved state of a document: the library has it. */
  clear(id: string): void {
    this.forget(`${PREFIX}${this.tab}:${id}`);
  }

  forget(key: string): void {
    this.attempt((storage) => storage.removeItem(key), undefined);
  }

  /** The stored edits, valid or (as keys) damaged. */
  found(): { sound: Unsaved[]; damaged: string[] } {
    const keys = this.attempt(
      (storage) => Array.from({ length: storage.length }, (_, index) => storage.key(index) ?? ""),
      [],
    ).filter((key) => key.startsWith(PREFIX));
    const [sound, damaged]: [Unsaved[], string[]] = [[], []];
    for (const key of keys) {
      try {
        const { document, revision } = fieldsOf(JSON.parse(this.storage!.getItem(key)!), "unsaved edit");
        sound.push({ key, document: checkDocument(document), revision: Number(revision) || 0 });
      } catch {
        damaged.push(key);
      }
    }
    return { sound, damaged };
  }

  /** The program of a version without a library. */
  earlier(): string | null {
    return this.attempt((storage) => storage.getItem(EARLIER), null);
  }

  forgetEarlier(): void {
    this.forget(EARLIER);
  }

  /** True once in the life of this browser's profile, as far as it can remember. */
  first(what: string): boolean {
    return this.attempt((storage) => {
      if (storage.getItem(`weft:${what}`) !== null) return false;
      storage.setItem(`weft:${what}`, "yes");
      return true;
    }, false);
  }
}
