// What a small call on a host takes from a page, beside an echo of as many bytes over a bare websocket, in Chromium.
//
//   node bench/browser/remote.mjs [--python .venv/bin/python]
//
// Prints microseconds, the least of several runs. The echo is answered by the Python library on which the host stands.
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { chromium } from "@playwright/test";
import { FLAGS } from "../../e2e/launch.mjs";
import { findBrowser } from "../../tools/find-browser.mjs";
import { close, serve } from "../../tools/web/serve.mjs";

const { values: options } = parseArgs({ options: { python: { type: "string", default: ".venv/bin/python" } } });
const PROGRAM = `
import sys, numpy as np, weft
from weft import export
step = lambda x: x * 0.5 + 1
open(sys.argv[1], "wb").write(export.export(weft.jit(step))(np.zeros(8, np.float32)).serialize())
`;
const ECHO = `
import asyncio
from websockets.asyncio.server import serve

async def echo(socket):
    async for message in socket:
        await socket.send(message)

async def main():
    async with serve(echo, "127.0.0.1", 0, compression=None) as server:
        print(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
        await asyncio.Future()

asyncio.run(main())
`;

/**
 * In the page.
 * @param {{ echo: string, host: string }} where
 */
async function measure({ echo, host }) {
  /** @type {(work: () => Promise<unknown>) => Promise<number>} */
  const least = async (work) => {
    let best = Infinity;
    for (let i = 0; i < 200; i++) await work();
    for (let run = 0; run < 7; run++) {
      const began = performance.now();
      for (let i = 0; i < 300; i++) await work();
      best = Math.min(best, (performance.now() - began) / 300);
    }
    return best * 1000;
  };
  const socket = new WebSocket(echo);
  socket.binaryType = "arraybuffer";
  await new Promise((resolve) => (socket.onopen = resolve));
  const bytes = new Uint8Array(64);
  const bare = await least(
    () =>
      new Promise((resolve) => {
        socket.onmessage = resolve;
        socket.send(bytes);
      }),
  );
  const url = "./host.js"; // beside the page
  const { connect } = await import(new URL(url, location.href).href);
  const session = await connect(host, { token: "bench" });
  const step = await session.load(new Uint8Array(await (await fetch("step.weft")).arrayBuffer()));
  const x = new Float32Array(8);
  const call = await least(() => step(x));
  const [held] = await step.put(x);
  const resident = await least(() => step(held));
  session.close();
  socket.close();
  return { bare, call, resident };
}

/**
 * The first line of a process that goes on.
 * @param {string[]} args
 * @returns {Promise<[import("node:child_process").ChildProcess, string]>}
 */
async function started(args) {
  const child = spawn(options.python, args, { stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: child.stdout })) return [child, line];
  throw new Error(`${args.join(" ")} says nothing`);
}

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "weft-"));
execFileSync(options.python, ["-c", PROGRAM, path.join(folder, "step.weft")]);
execFileSync("npm", ["run", "--silent", "build", "-w", "@weft/runtime"]);
for (const file of fs.readdirSync("wasm/runtime/dist").filter((name) => name.endsWith(".js")))
  fs.copyFileSync(path.join("wasm/runtime/dist", file), path.join(folder, file));
fs.writeFileSync(path.join(folder, "blank.html"), "<!doctype html><title>blank</title>");
const { server, url } = await serve(folder, { isolated: false });
const origin = new URL(url).origin;
const [echo, address] = await started(["-c", ECHO]);
const command = ["-m", "weft_native.host", "--port", "0", "--token", "bench", "--platform", "cpu"];
const [host, said] = await started([...command, "--allow-origin", origin]);
const browser = await chromium.launch({ executablePath: await findBrowser(), headless: true, args: FLAGS });
try {
  const page = await browser.newPage();
  await page.goto(new URL("blank.html", url).href);
  const found = await page.evaluate(measure, {
    echo: address,
    host: /** @type {string} */ (/ws:\/\/\S+/.exec(said)?.[0]),
  });
  const { bare, call, resident } = found;
  console.log(`bare echo                        ${bare.toFixed(0).padStart(8)} us`);
  /** @type {(name: string, took: number) => void} */
  const print = (name, took) =>
    console.log(`${name.padEnd(33)}${took.toFixed(0).padStart(8)} us, ${(took / bare).toFixed(2)} times the echo`);
  print("call with an array of the page's", call);
  print("call on an array of the host's", resident);
} finally {
  await browser.close();
  await close(server);
  host.kill();
  echo.kill();
  fs.rmSync(folder, { recursive: true });
}
