// A static server for the built site: cross-origin isolation, compressed copies, long-lived caching of what is named
// by content.
import http from "node:http";
import sirv from "sirv";

const ISOLATION = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
  "Cross-Origin-Resource-Policy": "same-origin",
};

/** @param {string} path */
const hashed = (path) => /^\/(assets|pyodide|packages|later|data)\//.test(path);

/**
 * Serves `folder` on loopback; resolves to {server, url, log}. `log` collects the paths asked for.
 *
 * With `shared`, pages of other origins may read the files.
 * @param {string} folder
 */
export async function serve(folder, { port = 0, host = "127.0.0.1", isolated = true, shared = false } = {}) {
  /** @type {string[]} */
  const log = [];
  const files = sirv(folder, {
    brotli: true,
    etag: true,
    setHeaders(response, path) {
      response.setHeader("Cache-Control", hashed(path) ? "public, max-age=31536000, immutable" : "no-cache");
      if (shared) response.setHeader("Access-Control-Allow-Origin", "*");
      if (isolated) for (const [name, value] of Object.entries(ISOLATION)) response.setHeader(name, value);
    },
  });
  const server = http.createServer((request, response) => {
    log.push(request.url ?? "");
    files(request, response, () => {
      response.writeHead(404, { "Content-Type": "text/plain" });
      response.end("not found\n");
    });
  });
  await /** @type {Promise<void>} */ (
    new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, host, () => resolve());
    })
  );
  return { server, log, url: `http://${host}:${portOf(server)}/` };
}

/**
 * Counts what a server sends from now on, headers included: `bytes()` is the sum so far.
 * @param {import("node:net").Server} server
 */
export function countSent(server) {
  /** @type {import("node:net").Socket[]} */
  const sockets = [];
  server.on("connection", (socket) => sockets.push(socket));
  return { bytes: () => sockets.reduce((sum, socket) => sum + socket.bytesWritten, 0) };
}

/**
 * The port that a server listens on.
 * @param {import("node:net").Server} server
 */
export function portOf(server) {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server listens on no port");
  return address.port;
}

/** @param {http.Server} server */
export function close(server) {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(resolve));
}
