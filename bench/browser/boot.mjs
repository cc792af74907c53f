// Navigation to the first result of `weft.numpy.arange(3) + 1` in Chromium, and the bytes transferred.
//
//   node bench/browser/boot.mjs [--site build/site] [--runs 5]
//
// Cold: a new profile. Warm: the next navigations of the same profile. The page is used as a person uses it: Run is
// pressed at once and waits for Python.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { chromium } from "@playwright/test";
import { FLAGS } from "../../e2e/launch.mjs";
import { findBrowser } from "../../tools/find-browser.mjs";
import { close, serve } from "../../tools/web/serve.mjs";

const { values: options } = parseArgs({
  options: { site: { type: "string", default: "build/site" }, runs: { type: "string", default: "5" } },
});
const PROGRAM = "import weft.numpy\nweft.numpy.arange(3) + 1";

const { server, url } = await serve(path.resolve(options.site));
const profile = fs.mkdtempSync(path.join(os.tmpdir(), "weft-boot-"));
const context = await chromium.launchPersistentContext(profile, {
  executablePath: await findBrowser(),
  headless: true,
  args: FLAGS,
});
await context.addInitScript((program) => {
  try {
    localStorage.setItem("weft:source", program);
  } catch {
    return; // a blank page has no storage
  }
  document.addEventListener("DOMContentLoaded", () => {
    const run = document.getElementById("run");
    new MutationObserver((_, observer) => {
      if (run.disabled) return;
      observer.disconnect();
      run.click();
    }).observe(run, { attributes: true });
  });
}, PROGRAM);

async function visit() {
  const page = await context.newPage();
  const network = await context.newCDPSession(page);
  await network.send("Network.enable");
  await page.goto(url);
  await page.waitForFunction(() => performance.getEntriesByName("weft:first-output").length > 0);
  const result = await page.evaluate(async () => {
    const at = (name) => performance.getEntriesByName(name)[0]?.startTime ?? NaN;
    await new Promise((resolve) => setTimeout(resolve, 100));
    return {
      ready: at("weft:ready"),
      first: at("weft:first-output"),
      text: document.getElementById("console").textContent,
      boot: document.getElementById("timings").textContent,
    };
  });
  await page.close();
  if (!result.text.includes("[1, 2, 3]")) throw new Error(`unexpected output: ${result.text}`);
  return result;
}

// Bytes as the server sent them: what caches answer costs nothing.
let sent = 0;
server.on("request", (request, response) => {
  response.on("finish", () => (sent += Number(response.getHeader("content-length") ?? 0)));
});

const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
const row = (name, visits, bytes) =>
  console.log(
    `${name.padEnd(6)} first result ${median(visits.map((v) => v.first))
      .toFixed(0)
      .padStart(5)} ms   ` +
      `Python ready ${median(visits.map((v) => v.ready))
        .toFixed(0)
        .padStart(5)} ms   transferred ${(bytes / 1e6).toFixed(2)} MB`,
  );
try {
  const cold = await visit();
  row("cold", [cold], sent);
  await visit(); // the engine caches compiled code on the second use
  sent = 0;
  const runs = Number(options.runs);
  const warm = [];
  for (let i = 0; i < runs; i++) warm.push(await visit());
  row("warm", warm, sent / runs);
  console.log(`       ${warm.map((v) => v.first.toFixed(0)).join(" ")} ms`);
} finally {
  await context.close();
  fs.rmSync(profile, { recursive: true, force: true });
  await close(server);
}
