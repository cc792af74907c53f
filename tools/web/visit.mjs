// Uses the playground as a person does, for demonstrations and benchmarks: opens it in Chromium, presses Run, waits.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { chromium } from "@playwright/test";
import { FLAGS, WEBGPU } from "../../e2e/launch.mjs";
import { findBrowser } from "../find-browser.mjs";
import { close, serve } from "./serve.mjs";

/**
 * @typedef {import("@playwright/test").BrowserContext} BrowserContext
 * @typedef {{ server: import("node:http").Server, url: string, context: BrowserContext }} Visit
 */

/**
 * Serves `folder` to a browser with a new profile while `use({server, url, context})` runs.
 * @template T
 * @param {string} folder
 * @param {(visit: Visit) => Promise<T>} use
 */
export async function withSite(folder, use, { webgpu = false, install = true } = {}) {
  if (!fs.existsSync(path.join(folder, "index.html")))
    throw new Error(`${folder} holds no site; build it with \`make web\``);
  const executablePath = await findBrowser({ install });
  const { server, url } = await serve(path.resolve(folder));
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), "weft-visit-"));
  let context = null;
  try {
    const args = webgpu ? [...FLAGS, WEBGPU] : FLAGS;
    context = await chromium.launchPersistentContext(profile, { executablePath, headless: true, args });
    return await use({ server, url, context });
  } finally {
    await context?.close();
    fs.rmSync(profile, { recursive: true, force: true });
    await close(server);
  }
}

/**
 * From now on, pages of `context` open with `program` and run it as soon as Run can be pressed.
 * @param {BrowserContext} context
 * @param {string} program
 */
export async function runAtOnce(context, program) {
  await context.addInitScript((source) => {
    try {
      localStorage.setItem("weft:source", source);
    } catch {
      return; // a blank page has no storage
    }
    document.addEventListener("DOMContentLoaded", () => {
      const run = document.getElementById("run");
      if (!(run instanceof HTMLButtonElement)) throw new Error("the page has no button to run programs");
      new MutationObserver((_, observer) => {
        if (run.disabled) return;
        observer.disconnect();
        run.click();
      }).observe(run, { attributes: true });
    });
    document.addEventListener("weft:done", (event) => {
      document.documentElement.dataset.outcome = /** @type {CustomEvent<string>} */ (event).detail;
    });
  }, program);
}

/**
 * Opens the page and waits for its program; returns {page, text}, or throws what the program reported.
 * @param {BrowserContext} context
 * @param {string} url
 */
export async function visitToEnd(context, url, timeout = 300_000) {
  const page = await context.newPage();
  await page.goto(url);
  const failed = "#state[data-state=error]";
  await page.waitForSelector(`html[data-outcome], ${failed}`, { state: "attached", timeout });
  const text = (await page.locator(".output").textContent()) ?? "";
  if (await page.locator(failed).count())
    throw new Error(text || (await page.locator("#state").textContent()) || "the page failed");
  return { page, text };
}

/**
 * A program that runs examples/digits/digits.py unchanged, as the module `digits`, and then `rest`.
 * @param {string} rest
 */
export function digitsProgram(rest) {
  const source = fs.readFileSync(new URL("../../examples/digits/digits.py", import.meta.url), "utf8");
  const literal = JSON.stringify(source); // also a literal of Python
  return `import sys, types
digits = types.ModuleType("digits")
exec(compile(${literal}, "digits.py", "exec"), digits.__dict__)
${rest}`;
}
