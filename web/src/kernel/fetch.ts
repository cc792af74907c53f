/**
 * The `fetch` of Pyodide's loader in our bundle (the build injects it), which can say how far its downloads have come,
 * and that one failed: the loader itself would wait without end.
 */

export interface Watcher {
  /** A part of a download has arrived. */
  bytes?(count: number): void;
  failed(message: string): void;
}

const ask = globalThis.fetch.bind(globalThis);
let watcher: Watcher | null = null;

/** Reports downloads to a watcher from now on; null ends that. */
export function watchDownloads(next: Watcher | null): void {
  watcher = next;
}

export async function fetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const name = String(input instanceof Request ? input.url : input).replace(/.*\//, "");
  const broken = (error: unknown): void => watcher?.failed(`${name} could not be loaded (${(error as Error).message})`);
  const response = await ask(input, init).catch((error: unknown) => {
    broken(error);
    throw error;
  });
  if (!response.ok) watcher?.failed(`${name} could not be loaded: the server answered ${response.status}`);
  // A copy is counted: only the browser's own response lets it keep compiled WebAssembly for the next visit.
  if (watcher?.bytes && response.body) void count(response.clone().body!).catch(broken);
  return response;
}

async function count(body: ReadableStream<Uint8Array>): Promise<void> {
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    watcher?.bytes?.(value.byteLength);
  }
}
