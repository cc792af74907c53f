/** The site that this page is a part of, and its first worker: it boots while the rest of the page is read. */
import siteData from "virtual:site";
import { bootWorker, type Booting } from "../kernel/boot.js";
import type { SiteData } from "../kernel/protocol.js";

export const site = siteData as SiteData;

const asked = new URLSearchParams(location.search);

/**
 * Whether the page shows one document in a frame of another page. There may be many such frames, so none boots
 * before the reader asks.
 */
export const isEmbedded = asked.has("embed");

/** Whether Python has been ready here before, so that the browser may have kept its files. */
function visitedBefore(): boolean {
  try {
    return localStorage.getItem("weft:visited") !== null;
  } catch {
    return false;
  }
}

export function boot(): Booting {
  return bootWorker({
    site,
    base: new URL("./", location.href).href,
    threads: Number(asked.get("threads")), // ?threads=1: only Python's own thread
    ...(asked.get("memory64") === "1" && { memory64: true }), // more than 4 GiB, slower
    ...(!visitedBefore() && { report: true }),
    ...(!isEmbedded && { isolating: true }),
  });
}

export const firstWorker = isEmbedded ? null : boot();
