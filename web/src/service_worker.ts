/**
 * Lets the playground work without a network from the second visit on, and adds the headers of cross-origin isolation
 * where a host can't send them, so that Stop can interrupt Python and programs may use threads.
 *
 * The build names this site's version and its files (`virtual:files`). A new version is installed as a whole or not at
 * all, beside the old one, and takes its place when no page of the old one is open. The entry page is kept with its own
 * version's files alone; all files that it names are named by their content, so versions can't mix.
 */
import files from "virtual:files";

const scope = self as unknown as ServiceWorkerGlobalScope;
const { version, boot, named } = files as FileLists;

interface FileLists {
  /** A name for these files. */
  version: string;
  /** What the entry page and Python need to start, the page itself as "". */
  boot: string[];
  /** All files that are named by their content. */
  named: string[];
}

/** What this version needs to start. */
const BOOT = `weft-boot-${version}`;
/** Files named by their content that somebody has used. */
const USED = "weft-used";
/** Pages of the site besides the entry page, as they were when last seen. */
const PAGES = "weft-pages";

const ISOLATION = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
  "Cross-Origin-Resource-Policy": "same-origin",
};

/** The path of an address below the site, without its question; null outside. */
function pathOf(address: string): string | null {
  const { origin, pathname } = new URL(address);
  const base = new URL(scope.registration.scope);
  if (origin !== base.origin || !pathname.startsWith(base.pathname)) return null;
  return decodeURIComponent(pathname.slice(base.pathname.length)).replace(/^index\.html$/, "");
}

const addressOf = (path: string): string => new URL(path, scope.registration.scope).href;

/** Files that an earlier visit has fetched come from the browser's own cache; the entry page must be the newest. */
async function install(): Promise<void> {
  const cache = await caches.open(BOOT);
  const requests = boot.map((path) => new Request(addressOf(path), path === "" ? { cache: "no-cache" } : {}));
  try {
    await cache.addAll(requests);
  } catch (error) {
    await caches.delete(BOOT);
    throw error;
  }
}

async function activate(): Promise<void> {
  const mine = new Set([BOOT, USED, PAGES]);
  const old = (await caches.keys()).filter((name) => name.startsWith("weft-boot-") && !mine.has(name));
  await Promise.all(old.map((name) => caches.delete(name)));
  const used = await caches.open(USED);
  const here = new Set(named);
  const gone = (await used.keys()).filter(({ url }) => !here.has(pathOf(url) ?? ""));
  await Promise.all(gone.map((request) => used.delete(request)));
  await scope.clients.claim();
}

const fileNames = new Set(named);
const bootNames = new Set(boot);

/** Keeps a copy of a response that is whole, beside the page's own use of it. */
async function keep(name: string, address: string, response: Response): Promise<void> {
  const cache = await caches.open(name);
  if (name === USED && (await cache.match(address))) return; // its name says that it is the same
  await cache.put(address, response);
}

/** From the network or the browser's own cache, and from what was kept if neither has it. */
async function answer(event: FetchEvent, path: string): Promise<Response> {
  const { request } = event;
  const address = addressOf(path);
  try {
    const response = await fetch(request);
    // A server that is being replaced must not take away what is here.
    if (response.status >= 500) return (await kept(path)) ?? response;
    if (response.status === 200 && !bootNames.has(path)) {
      const store = fileNames.has(path) ? USED : PAGES;
      // A full disk is no reason to fail.
      event.waitUntil(keep(store, address, response.clone()).catch(() => undefined));
    }
    return response;
  } catch (error) {
    const found = await kept(path);
    if (found) return found;
    throw error;
  }
}

/** A folder's page may be asked for with or without its file name. */
async function kept(path: string): Promise<Response | undefined> {
  const names = path.endsWith("/") ? [path, `${path}index.html`] : [path];
  const stores = bootNames.has(path) ? [BOOT] : [USED, PAGES];
  for (const store of stores) {
    for (const name of names) {
      const found = await (await caches.open(store)).match(addressOf(name));
      if (found) return found;
    }
  }
  return undefined;
}

/** The browser's own response, unless it is of a document or a worker and lacks the headers. */
function isolated(request: Request, response: Response): Response {
  const isScope = ["document", "iframe", "frame", "worker"].includes(request.destination);
  if (!isScope || response.status === 0 || response.headers.has("Cross-Origin-Embedder-Policy")) return response;
  const headers = new Headers(response.headers);
  for (const [name, value] of Object.entries(ISOLATION)) headers.set(name, value);
  const body = [101, 204, 205, 304].includes(response.status) ? null : response.body;
  return new Response(body, { status: response.status, statusText: response.statusText, headers });
}

scope.addEventListener("install", (event) => event.waitUntil(install()));
scope.addEventListener("activate", (event) => event.waitUntil(activate()));
scope.addEventListener("fetch", (event) => {
  const { request } = event;
  const path = pathOf(request.url);
  if (path === null || request.method !== "GET" || request.headers.has("Range")) return;
  event.respondWith(answer(event, path).then((response) => isolated(request, response)));
});
