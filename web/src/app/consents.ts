/** What the reader has let each document of this browser install: no link and no file carries it to somebody else. */
import type { Wanted } from "../kernel/protocol.js";
import { nameOf, type Consents } from "../notebook/consents.js";
import { settings } from "./settings.js";

const MOST_DOCUMENTS = 200;

/** Names by document, the last used at the end. */
type Given = [document: string, names: string[]][];

function read(): Given {
  try {
    const found: unknown = JSON.parse(settings.get("packages") ?? "[]");
    return Array.isArray(found) ? found.filter((entry) => Array.isArray(entry) && Array.isArray(entry[1])) : [];
  } catch {
    return [];
  }
}

export class DocumentConsents implements Consents {
  constructor(private readonly document: () => string) {}

  has(wanted: Wanted): boolean {
    const mine = read().find(([id]) => id === this.document());
    return mine?.[1].includes(nameOf(wanted)) ?? false;
  }

  add(wanted: readonly Wanted[]): void {
    const all = read();
    const id = this.document();
    const before = all.find(([other]) => other === id)?.[1] ?? [];
    const names = [...new Set([...before, ...wanted.map(nameOf)])];
    const others = all.filter(([other]) => other !== id).slice(1 - MOST_DOCUMENTS);
    settings.set("packages", JSON.stringify([...others, [id, names]]));
  }
}
