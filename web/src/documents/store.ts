/** The storage of the library's records: IndexedDB, or memory in a browser without it. It applies no rules. */
import { openDB } from "idb";
import type { DBSchema, IDBPDatabase } from "idb";
import type { Document } from "./model.js";

export interface StoredDocument extends Document {
  created: number;
  /** When its content last changed, in milliseconds since 1970. */
  changed: number;
  /** Increases with each change, in any tab. */
  revision: number;
  /** When it was deleted; it can be restored until it is purged. */
  deleted: number | null;
}

/** A document at some time: its content, compressed. */
export interface Snapshot {
  id: string;
  time: number;
  content: Uint8Array<ArrayBuffer>;
}

export interface Change {
  put?: StoredDocument[];
  snapshots?: Snapshot[];
  /** Snapshots to drop, by document and time. */
  drop?: [id: string, time: number][];
  /** Documents to drop with all their snapshots. */
  purge?: string[];
}

export interface Store {
  /** All documents. Records from a store are unchecked: they may be damaged. */
  all(): Promise<unknown[]>;
  get(id: string): Promise<{ stored: unknown; times: number[] }>;
  snapshot(id: string, time: number): Promise<Snapshot | undefined>;
  /** The document and time of every snapshot. */
  snapshots(): Promise<[id: string, time: number][]>;
  /** Reads a document and makes a change in one step, without interference from other tabs. */
  change<T>(id: string, decide: (stored: unknown, times: number[]) => { change: Change; result: T }): Promise<T>;
  close(): void;
}

interface Schema extends DBSchema {
  documents: { key: string; value: StoredDocument };
  snapshots: { key: [string, number]; value: Snapshot };
}

const NAME = "weft-library";
const VERSION = 1;
/** Some browsers never answer where storage is blocked or broken. */
const PATIENCE_MS = 5000;

const snapshotsOf = (id: string) => IDBKeyRange.bound([id], [id, []]);

export class DatabaseStore implements Store {
  private connection: Promise<IDBPDatabase<Schema>> | null = null;

  /** @throws DOMException, or another error of the browser, where there is no database to be had. */
  static async open(): Promise<DatabaseStore> {
    const store = new DatabaseStore();
    const connection = store.connect();
    let timer: ReturnType<typeof setTimeout>;
    const late = new Promise<never>((_, reject) => {
      const error = new DOMException("The browser's database does not answer.", "TimeoutError");
      timer = setTimeout(() => reject(error), PATIENCE_MS);
    });
    try {
      await Promise.race([connection, late]);
    } catch (error) {
      void connection.then((database) => database.close()).catch(() => {});
      throw error;
    } finally {
      clearTimeout(timer!);
    }
    return store;
  }

  /** The open database; it is opened again after the browser or another tab has closed it. */
  private connect(): Promise<IDBPDatabase<Schema>> {
    const lost = () => (this.connection = null);
    this.connection ??= openDB<Schema>(NAME, VERSION, {
      upgrade(database) {
        database.createObjectStore("documents", { keyPath: "id" });
        database.createObjectStore("snapshots", { keyPath: ["id", "time"] });
      },
      blocking: (_current, _blocked, event) => {
        // Another tab deletes the database, or has a newer version of this page.
        (event.target as IDBDatabase).close();
        lost();
      },
      terminated: lost,
    }).catch((error: unknown) => {
      lost();
      throw error;
    });
    return this.connection;
  }

  async all(): Promise<unknown[]> {
    return (await this.connect()).getAll("documents");
  }

  async get(id: string): Promise<{ stored: unknown; times: number[] }> {
    const transaction = (await this.connect()).transaction(["documents", "snapshots"]);
    const [stored, keys] = await Promise.all([
      transaction.objectStore("documents").get(id),
      transaction.objectStore("snapshots").getAllKeys(snapshotsOf(id)),
      transaction.done,
    ]);
    return { stored, times: keys.map(([, time]) => time) };
  }

  async snapshot(id: string, time: number): Promise<Snapshot | undefined> {
    return (await this.connect()).get("snapshots", [id, time]);
  }

  async snapshots(): Promise<[string, number][]> {
    return (await this.connect()).getAllKeys("snapshots");
  }

  async change<T>(id: string, decide: (stored: unknown, times: number[]) => { change: Change; result: T }) {
    const transaction = (await this.connect()).transaction(["documents", "snapshots"], "readwrite");
    const ended = transaction.done.then(
      () => null,
      (error: unknown) => error,
    );
    try {
      const documents = transaction.objectStore("documents");
      const snapshots = transaction.objectStore("snapshots");
      const [stored, keys] = await Promise.all([documents.get(id), snapshots.getAllKeys(snapshotsOf(id))]);
      const times = keys.map(([, time]) => time);
      const { change, result } = decide(stored, times);
      await Promise.all([
        ...(change.drop ?? []).map((key) => snapshots.delete(key)),
        ...(change.purge ?? []).flatMap((each) => [documents.delete(each), snapshots.delete(snapshotsOf(each))]),
        ...(change.put ?? []).map((each) => documents.put(each)),
        ...(change.snapshots ?? []).map((each) => snapshots.put(each)),
      ]);
      const error = await ended;
      if (error !== null) throw error;
      return result;
    } catch (error) {
      try {
        transaction.abort();
      } catch {
        // It has ended by itself.
      }
      // Where the disk is full a request says "aborted", and the transaction says why.
      const reason = await ended;
      throw reason instanceof DOMException && reason.name === "QuotaExceededError" ? reason : error;
    }
  }

  close(): void {
    void this.connection?.then((database) => database.close()).catch(() => {});
    this.connection = null;
  }
}

/** Records as long as the page is open. */
export class MemoryStore implements Store {
  readonly documents = new Map<string, StoredDocument>();
  private readonly kept = new Map<string, Snapshot>();
  private readonly key = (id: string, time: number) => `${id} ${time}`;

  all(): Promise<unknown[]> {
    return Promise.resolve([...this.documents.values()]);
  }

  get(id: string): Promise<{ stored: unknown; times: number[] }> {
    return Promise.resolve({ stored: this.documents.get(id), times: this.times(id) });
  }

  private times(id: string): number[] {
    return [...this.kept.values()].filter((each) => each.id === id).map(({ time }) => time);
  }

  snapshot(id: string, time: number): Promise<Snapshot | undefined> {
    return Promise.resolve(this.kept.get(this.key(id, time)));
  }

  snapshots(): Promise<[string, number][]> {
    return Promise.resolve([...this.kept.values()].map(({ id, time }) => [id, time]));
  }

  change<T>(id: string, decide: (stored: unknown, times: number[]) => { change: Change; result: T }): Promise<T> {
    const { change, result } = decide(this.documents.get(id), this.times(id));
    for (const [of, time] of change.drop ?? []) this.kept.delete(this.key(of, time));
    for (const each of change.purge ?? []) {
      this.documents.delete(each);
      for (const time of this.times(each)) this.kept.delete(this.key(each, time));
    }
    for (const each of change.put ?? []) this.documents.set(each.id, each);
    for (const each of change.snapshots ?? []) this.kept.set(this.key(each.id, each.time), each);
    return Promise.resolve(result);
  }

  close(): void {}
}
