/** Starts Python in a worker. */
import type { BootMessage, FromWorker, SiteData } from "./protocol.js";
import { Signals } from "./signals.js";

export interface Booting {
  worker: Worker;
  signals: Signals | null;
  /** Messages of the worker from before there was a listener; later ones are not kept. */
  early(): FromWorker[];
}

export interface BootOptions extends Pick<BootMessage, "threads" | "memory64" | "report" | "isolating"> {
  site: SiteData;
  /** The address of the site, with a slash at its end. */
  base: string;
}

/**
 * A worker that runs the site's script. A browser refuses a worker from another origin; there, a script of this page
 * imports the site's.
 */
function spawn(script: string): Worker {
  const named: WorkerOptions = { type: "module", name: "weft-python" };
  if (new URL(script).origin === location.origin) return new Worker(script, named);
  const source = `import ${JSON.stringify(script)};`;
  // Never revoked: the worker may fetch its script at any time from now on, and the text is short.
  return new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })), named);
}

export function bootWorker({ site, base, threads = 0, ...more }: BootOptions): Booting {
  const signals = Signals.create();
  const worker = spawn(new URL(site.worker, base).href);
  const said: FromWorker[] = [];
  const note = ({ data }: MessageEvent<FromWorker>): void => void said.push(data);
  worker.addEventListener("message", note);
  const message: BootMessage = { type: "boot", site, base, signals: signals && signals.shared, ...more };
  if (threads === 1 || (threads > 1 && signals)) message.threads = threads;
  worker.postMessage(message);
  const early = (): FromWorker[] => {
    worker.removeEventListener("message", note);
    return said.splice(0);
  };
  return { worker, signals, early };
}
