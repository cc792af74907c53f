/** Starts Python in a worker. */
import siteData from "virtual:site";
import type { BootMessage, FromWorker, SiteData } from "./protocol.js";

export const site = siteData as SiteData;

/** A booting worker; `early` holds what it said before anyone listened. */
export interface Booting {
  worker: Worker;
  interrupt: Uint8Array | null;
  early: MessageEvent<FromWorker>[];
}

export function bootWorker(): Booting {
  const shared = crossOriginIsolated ? new SharedArrayBuffer(1) : null;
  const worker = new Worker(site.worker, { type: "module", name: "weft-python" });
  const early: Booting["early"] = [];
  worker.addEventListener("message", (event: MessageEvent<FromWorker>) => early.push(event));
  const message: BootMessage = { type: "boot", site, base: new URL("./", location.href).href, interrupt: shared };
  const asked = new URLSearchParams(location.search);
  const threads = Number(asked.get("threads")); // ?threads=1: none but Python's own
  if (threads === 1 || (threads > 1 && shared)) message.threads = threads;
  if (asked.get("memory64") === "1") message.memory64 = true; // more than 4 GiB, slower
  worker.postMessage(message);
  return { worker, interrupt: shared && new Uint8Array(shared), early };
}

/** The page's first: it boots while the rest of the page is read. */
export const firstWorker = bootWorker();
