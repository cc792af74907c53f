/** The sites that cells of this page use: each is opened once, and runs all of its cells on one interpreter. */
import { VERSION, type Cells, type SiteFile, type SiteScript } from "./contract.js";

export interface Site {
  cells: Cells;
  styles: CSSStyleSheet;
}

const open = new Map<string, Promise<Site>>();

async function get(url: string): Promise<Response> {
  const response = await fetch(url).catch((error: unknown) => {
    const elsewhere = new URL(url).origin !== location.origin;
    const hint = elsewhere ? "; the server must send Access-Control-Allow-Origin" : "";
    throw new Error(`${url} can't be fetched (${(error as Error).message})${hint}.`);
  });
  if (!response.ok) throw new Error(`${url} can't be fetched: the server answered ${response.status}.`);
  return response;
}

async function load(base: string, forgotten: () => void): Promise<Site> {
  const address = `${base}site.json`;
  const text = await (await get(address)).text();
  let site: SiteFile;
  try {
    site = JSON.parse(text) as SiteFile;
  } catch {
    throw new Error(
      `${address} is not the description of a weft site. Give the site's folder in the attribute "site".`,
    );
  }
  if (site.cell?.version !== VERSION) {
    const theirs = site.cell ? `version ${site.cell.version}` : "none";
    throw new Error(
      `The site at ${base} has ${theirs} of what this element needs, which is version ${VERSION}. ` +
        "Take weft-cell.js and the site from the same release.",
    );
  }
  const [script, css] = await Promise.all([
    import(/* @vite-ignore */ /* webpackIgnore: true */ new URL(site.cell.script, base).href) as Promise<SiteScript>,
    get(new URL(site.cell.styles, base).href).then((response) => response.text()),
  ]);
  const styles = new CSSStyleSheet();
  styles.replaceSync(css);
  return { cells: script.open(base, site, forgotten), styles };
}

/** The site at an address, opened with the first call; a call that failed is tried again by the next. */
export function siteAt(base: string, forgotten: () => void): Promise<Site> {
  const found = open.get(base);
  if (found) return found;
  const opening = load(base, forgotten).catch((error: unknown) => {
    open.delete(base);
    throw error;
  });
  open.set(base, opening);
  return opening;
}
