/** The documentation beside the site: where it begins, and which errors have a page in it. */

export interface Manual {
  /** The address of its first page. */
  home: string;
  /** The addresses of pages by the classes of errors, named with their modules. */
  errors: ReadonlyMap<string, string>;
}

let site: string | null = null;
let found: Promise<Manual | null> | null = null;

/** Says where the site lies. Nothing is fetched until somebody asks. */
export function useManual(base: string): void {
  site = base;
  found = null;
}

/** The documentation, or null if the site was built without it: `make site` replaces the empty list of `make web`. */
export function manual(): Promise<Manual | null> {
  if (site === null) return Promise.resolve(null);
  const base = new URL("docs/", site);
  found ??= fetch(new URL("errors.json", base))
    .then((response): Promise<Record<string, string>> => (response.ok ? response.json() : Promise.resolve({})))
    .then((pages) => {
      const errors = new Map(Object.entries(pages).map(([name, page]) => [name, new URL(page, base).href]));
      return errors.size ? { home: new URL("index.html", base).href, errors } : null;
    })
    .catch(() => {
      found = null; // without a connection: the next one who asks tries again
      return null;
    });
  return found;
}
