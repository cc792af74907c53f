// `make play`: what it prints, how it stops, and what it says when it can't start.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { portOf } from "../web/serve.mjs";

const script = fileURLToPath(new URL("../play.mjs", import.meta.url));
let folder = "";

// A host that writes its arguments, listens, and ends on SIGINT.
const HOST = `
const [port, token, notes] = process.argv.slice(2);
require("node:fs").writeFileSync(notes, token + " " + process.env.WEFT_HOST_TOKEN);
const server = require("node:net").createServer((socket) => socket.end()).listen(Number(port), "127.0.0.1");
process.on("SIGINT", () => { require("node:fs").appendFileSync(notes, " ended"); process.exit(0); });
`;

before(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "weft-play-"));
  fs.mkdirSync(path.join(folder, "site/assets"), { recursive: true });
  fs.writeFileSync(path.join(folder, "site/index.html"), "<!doctype html><title>site</title>");
  fs.writeFileSync(path.join(folder, "site/assets/a-HASH.js"), "1");
  fs.writeFileSync(path.join(folder, "host.cjs"), HOST);
});
after(() => fs.rmSync(folder, { recursive: true, force: true }));

async function freePort() {
  const server = net.createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const port = portOf(server);
  await new Promise((resolve) => server.close(resolve));
  return String(port);
}

/** @param {string[]} args */
function play(...args) {
  const child = spawn(process.execPath, [script, "--site", path.join(folder, "site"), ...args]);
  const ended = new Promise((resolve) => child.once("exit", (code) => resolve(code)));
  const state = {
    child,
    text: "",
    ended,
    /** @param {RegExp} pattern */
    async says(pattern) {
      while (!pattern.test(state.text)) {
        const over = await Promise.race([ended.then(() => true), new Promise((resolve) => setTimeout(resolve, 20))]);
        if (over) assert.match(state.text, pattern);
      }
    },
  };
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (state.text += data));
  return state;
}

test("prints both addresses, serves with isolation, and stops both on Ctrl-C", async () => {
  const [port, hostPort] = [await freePort(), await freePort()];
  const notes = path.join(folder, "notes");
  const command = `${process.execPath} ${path.join(folder, "host.cjs")} {port} {token} ${notes}`;
  const running = play("--port", port, "--host-port", hostPort, "--host-command", command);
  await running.says(/Ctrl-C stops both/);
  const token = /token (\S+)/.exec(running.text)?.[1];
  assert.ok(running.text.includes(`http://127.0.0.1:${port}/#`));
  assert.ok(running.text.includes(`ws://127.0.0.1:${hostPort}`));

  const page = await fetch(`http://127.0.0.1:${port}/`);
  assert.equal(page.headers.get("cross-origin-opener-policy"), "same-origin");
  assert.equal(page.headers.get("cross-origin-embedder-policy"), "require-corp");
  assert.equal(page.headers.get("cache-control"), "no-cache");
  const asset = await fetch(`http://127.0.0.1:${port}/assets/a-HASH.js`);
  assert.match(asset.headers.get("cache-control") ?? "", /immutable/);
  assert.equal((await fetch(`http://127.0.0.1:${port}/../host.cjs`)).status, 404);

  running.child.kill("SIGINT");
  assert.equal(await running.ended, 0);
  assert.equal(fs.readFileSync(notes, "utf8"), `${token} ${token} ended`);
  await assert.rejects(fetch(`http://127.0.0.1:${port}/`));
});

test("a port in use, a host that does not start, and a missing site are told apart", async () => {
  const taken = net.createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => taken.once("listening", resolve));
  const port = String(portOf(taken));
  /** @type {[string[], RegExp][]} */
  const cases = [
    [["--port", port, "--no-host"], /port \d+ is in use; choose another with PORT=/],
    [["--port", await freePort(), "--host-port", port], /port \d+ is in use; choose another with HOST_PORT=/],
    [
      ["--port", await freePort(), "--host-port", await freePort(), "--host-command", "no-such-command"],
      /did not start.*ENOENT/,
    ],
    [
      ["--port", await freePort(), "--host-port", await freePort(), "--host-command", `${process.execPath} -e 0`],
      /ended with status 0/,
    ],
    [["--site", path.join(folder, "nowhere")], /does not exist; build it/],
  ];
  for (const [args, pattern] of cases) {
    const running = play(...args);
    assert.equal(await running.ended, 1, running.text);
    assert.match(running.text, pattern);
  }
  await new Promise((resolve) => taken.close(resolve));
});
