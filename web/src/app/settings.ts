/** The reader's settings, stored if the browser permits it; the page works without them. */

export type Key = "theme" | "backend" | "host" | "token" | "document" | "visited" | "packages";

/** A token is a secret: it lives as long as the tab. Which document is open may differ from tab to tab. */
const IN_TAB: ReadonlySet<Key> = new Set(["token", "document"]);

function place(key: Key): Storage {
  return IN_TAB.has(key) ? sessionStorage : localStorage;
}

export const settings = {
  get(key: Key): string | null {
    try {
      return place(key).getItem(`weft:${key}`);
    } catch {
      return null;
    }
  },
  set(key: Key, value: string): void {
    try {
      place(key).setItem(`weft:${key}`, value);
    } catch {
      // Private windows may refuse.
    }
  },
};
