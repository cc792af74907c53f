/** What readers have let documents install from the package index. */
import type { Wanted } from "../kernel/protocol.js";

export interface Consents {
  has(wanted: Wanted): boolean;
  add(wanted: readonly Wanted[]): void;
}

export const nameOf = ({ name, from }: Wanted): string => `${name} ${from}`;

/** For as long as the page is open. */
export class PageConsents implements Consents {
  private readonly given = new Set<string>();

  has(wanted: Wanted): boolean {
    return this.given.has(nameOf(wanted));
  }

  add(wanted: readonly Wanted[]): void {
    for (const each of wanted) this.given.add(nameOf(each));
  }
}
