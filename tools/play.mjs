#!/usr/bin/env node
// Serves the built playground and runs an accelerator host beside it, until Ctrl-C.
//
//   node tools/play.mjs [--site build/site] [--port 8000] [--host-port 8765] [--host-command "weft-host …"] [--no-host]
//
// In the host's command {port} and {token} are filled in; the token also stands in its environment as WEFT_HOST_TOKEN.
import { spawn } from "node:child_process";
import crypto from "node:crypto";
import net from "node:net";
import fs from "node:fs";
import { parseArgs } from "node:util";
import { close, serve } from "./web/serve.mjs";

const { values: options } = parseArgs({
  options: {
    site: { type: "string", default: "build/site" },
    port: { type: "string", default: "8000" },
    "host-port": { type: "string", default: "8765" },
    "host-command": { type: "string", default: ".venv/bin/weft-host --port {port} --token={token}" },
    "no-host": { type: "boolean", default: false },
  },
});
/** How long the host may take to answer, and to end. */
const START_MS = 30_000;
const END_MS = 4_000;

/**
 * The host's process, and why it ended once it has.
 * @typedef {{ child: import("node:child_process").ChildProcess, ended: Promise<string> }} Host
 */

/** @param {number} ms */
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** @param {unknown} error */
const said = (error) => (error instanceof Error ? error.message : String(error));

/** @param {string} message */
function fail(message) {
  console.error(`play: ${message}`);
  process.exitCode = 1;
}

/**
 * @param {number} port
 * @returns {Promise<boolean>}
 */
function answers(port) {
  return new Promise((resolve) => {
    const socket = net.connect({ port, host: "127.0.0.1" });
    socket.once("connect", () => resolve(true));
    socket.once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}

/**
 * Starts the host and resolves once its port answers; rejects if it ends before that.
 * @param {number} port
 * @param {string} token
 * @returns {Promise<Host>}
 */
async function startHost(port, token) {
  if (await answers(port)) throw new Error(`port ${port} is in use; choose another with HOST_PORT=… (--host-port)`);
  const [command = "", ...rest] = options["host-command"]
    .split(/\s+/)
    .filter(Boolean)
    .map((word) => word.replaceAll("{port}", String(port)).replaceAll("{token}", token));
  const child = spawn(command, rest, {
    stdio: /** @type {const} */ (["ignore", "inherit", "inherit"]),
    env: { ...process.env, WEFT_HOST_TOKEN: token },
  });
  /** @type {Promise<string>} */
  const ended = new Promise((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("exit", (code, signal) => resolve(`it ended with ${signal ?? `status ${code}`}`));
  });
  const host = { child, ended };
  const deadline = Date.now() + START_MS;
  while (Date.now() < deadline) {
    const early = await Promise.race([ended, answers(port).then((yes) => (yes ? true : pause(50)))]);
    if (early === true) return host;
    if (typeof early === "string") throw new Error(`the host did not start: ${early} (${command})`);
  }
  await stopHost(host);
  throw new Error(`the host did not answer on port ${port} within ${START_MS / 1000} s (${command})`);
}

/** @param {Host} host */
async function stopHost({ child, ended }) {
  child.kill("SIGINT");
  const timely = await Promise.race([ended.then(() => true), pause(END_MS)]);
  if (!timely) child.kill("SIGKILL");
  await ended;
}

async function main() {
  if (!fs.existsSync(options.site)) return fail(`${options.site} does not exist; build it with \`make web\``);
  const stop = new Promise((resolve) =>
    ["SIGINT", "SIGTERM", "SIGHUP"].forEach((signal) => process.on(signal, resolve)),
  );
  let stopping = false;
  void stop.then(() => (stopping = true));
  const hostPort = Number(options["host-port"]);
  const token = process.env.WEFT_HOST_TOKEN || crypto.randomBytes(16).toString("base64url");
  let site;
  try {
    site = await serve(options.site, { port: Number(options.port) });
  } catch (error) {
    return fail(
      error instanceof Error && "code" in error && error.code === "EADDRINUSE"
        ? `port ${options.port} is in use; choose another with PORT=… (--port)`
        : said(error),
    );
  }
  let host = null;
  try {
    if (!options["no-host"]) host = await startHost(hostPort, token);
  } catch (error) {
    await close(site.server);
    if (stopping) return console.log("Stopped."); // Ctrl-C reaches the host too
    return fail(said(error));
  }
  const address = `ws://127.0.0.1:${hostPort}`;
  const fragment = host ? `#${new URLSearchParams({ host: address, token })}` : "";
  console.log(`\n  playground  ${site.url}${fragment}`);
  if (host) console.log(`  host        ${address}   token ${token}`);
  console.log("\n  Ctrl-C stops both.\n");

  const why = await Promise.race([stop.then(() => null), ...(host ? [host.ended] : [])]);
  await close(site.server);
  if (why !== null) return fail(`the host stopped: ${why}`);
  if (host) await stopHost(host);
  console.log("Stopped.");
}

await main();
process.exit();
