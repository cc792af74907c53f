/** Starts Python in a worker. */
import siteData from "virtual:site";
import type { BootMessage, FromWorker, SiteData } from "./protocol.js";
import { Signals } from "./signals.js";

export const site = siteData as SiteData;

/** A booting worker; `early` holds what it said before anyone listened. */
export interface Booting {
  worker: Worker;
  signals: Signals | null;
  early: MessageEvent<FromWorker>[];
}

/** Whether Python has been ready here before, so that the browser may have kept its files. */
function visitedBefore(): boolean {
  try {
    return localStorage.getItem("weft:visited") !== null;
  } catch {
    return false;
  }
}

export function bootWorker(): Booting {
  const signals = Signals.create();
  const worker = new Worker(site.worker, { type: "module", name: "weft-python" });
  const early: Booting["early"] = [];
  worker.addEventListener("message", (event: MessageEvent<FromWorker>) => early.push(event));
  const base = new URL("./", location.href).href;
  const message: BootMessage = { type: "boot", site, base, signals: signals && signals.shared };
  if (!visitedBefore()) message.report = true;
  const asked = new URLSearchParams(location.search);
  const threads = Number(asked.get("threads")); // ?threads=1: none but Python's own
  if (threads === 1 || (threads > 1 && signals)) message.threads = threads;
  if (asked.get("memory64") === "1") message.memory64 = true; // more than 4 GiB, slower
  worker.postMessage(message);
  return { worker, signals, early };
}

/** The page's first: it boots while the rest of the page is read. */
export const firstWorker = bootWorker();
