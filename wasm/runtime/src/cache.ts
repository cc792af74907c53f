/**
 * Compiled programs that later visits find again: bytes by a key that contains everything they depend on. All are in
 * memory, so that a compiler that can't wait gets them at once; IndexedDB keeps them. It is only a cache: a failure has
 * the same effect as an empty cache.
 */
const STORES = { programs: "programs", used: "used" } as const;
const VERSION = 1;

function done<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

async function database(name: string): Promise<IDBDatabase> {
  const request = indexedDB.open(name, VERSION);
  request.onupgradeneeded = () => Object.values(STORES).forEach((store) => request.result.createObjectStore(store));
  const opened = await done(request);
  opened.onversionchange = () => opened.close(); // another tab deletes it
  return opened;
}

export class ProgramCache {
  private constructor(
    private readonly base: IDBDatabase,
    private readonly programs: Map<string, Uint8Array>,
    private room: number,
  ) {}

  /**
   * Reads the stored programs, at most `limit` bytes; the least recently used ones are deleted. Null if there is no
   * IndexedDB.
   */
  static async open(limit = 32e6, name = "weft-programs"): Promise<ProgramCache | null> {
    try {
      const base = await database(name);
      const reading = base.transaction(Object.values(STORES));
      const [keys, values, names, times] = await Promise.all([
        done(reading.objectStore(STORES.programs).getAllKeys()),
        done(reading.objectStore(STORES.programs).getAll()),
        done(reading.objectStore(STORES.used).getAllKeys()),
        done(reading.objectStore(STORES.used).getAll()),
      ]);
      const used = new Map(names.map((key, i) => [key, times[i] as number]));
      const found = keys.map((key, i) => ({ key: String(key), bytes: values[i] as unknown, time: used.get(key) ?? 0 }));
      const cache = new ProgramCache(base, new Map(), limit);
      for (const { key, bytes } of found.sort((a, b) => b.time - a.time)) {
        if (bytes instanceof Uint8Array && bytes.length <= cache.room) cache.keep(key, bytes);
        else cache.write((store) => store.delete(key));
      }
      return cache;
    } catch {
      return null;
    }
  }

  get(key: string): Uint8Array | undefined {
    const found = this.programs.get(key);
    if (found) this.write((store) => store.name === STORES.used && store.put(Date.now(), key));
    return found;
  }

  /** Keeps a copy of the bytes, if there is room; the next `open` makes some. */
  put(key: string, bytes: Uint8Array): void {
    const own = bytes.slice();
    if (own.length <= this.room && !this.programs.has(key)) this.keep(key, own);
    this.write((store) => store.put(store.name === STORES.used ? Date.now() : own, key));
  }

  /** Forgets a program whose bytes turned out to be invalid. */
  delete(key: string): void {
    this.room += this.programs.get(key)?.length ?? 0;
    this.programs.delete(key);
    this.write((store) => store.delete(key));
  }

  private keep(key: string, bytes: Uint8Array): void {
    this.programs.set(key, bytes);
    this.room -= bytes.length;
  }

  /** Does something to both stores, some time soon. */
  private write(change: (store: IDBObjectStore) => unknown): void {
    try {
      const writing = this.base.transaction(Object.values(STORES), "readwrite");
      writing.onabort = (event) => event.preventDefault(); // no room on the disk, for instance
      for (const store of Object.values(STORES)) change(writing.objectStore(store));
    } catch {
      // the database was closed, or deleted
    }
  }
}
