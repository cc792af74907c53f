#!/usr/bin/env node
// Prints the path of a Chromium: one that is there, else Playwright's (downloaded), else Debian's package when root.
//
//   node tools/find-browser.mjs [--no-install]
//
// WEFT_CHROMIUM names one to use. Playwright's headless shell is not looked for: it has no WebGPU.
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { createRequire } from "node:module";

// Debian's /usr/bin/chromium is a script that adds flags of its own; the program itself comes first.
const PLACES = [
  "/usr/lib/chromium/chromium",
  "/usr/lib/chromium-browser/chromium-browser",
  "/opt/google/chrome/chrome",
  "/usr/bin/google-chrome",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
];

const require = createRequire(import.meta.url);

async function playwrightBrowser() {
  const { chromium } = await import("@playwright/test");
  return chromium.executablePath();
}

/** @param {string} file */
const works = (file) => Boolean(file) && fs.existsSync(file);

/**
 * @param {string} command
 * @param {string[]} args
 */
function attempt(command, args) {
  // The output goes to stderr: stdout carries the path alone.
  return spawnSync(command, args, { stdio: ["ignore", 2, 2] }).status === 0;
}

/** The path of a Chromium, or an error that says what was tried. */
export async function findBrowser({ install = true } = {}) {
  const named = process.env.WEFT_CHROMIUM;
  if (named) {
    if (works(named)) return named;
    throw new Error(`WEFT_CHROMIUM names ${named}, which does not exist`);
  }
  const found = [...PLACES, await playwrightBrowser()].find(works);
  if (found) return found;
  if (install) {
    const cli = path.join(path.dirname(require.resolve("@playwright/test/package.json")), "cli.js");
    if (attempt(process.execPath, [cli, "install", "chromium"]) && works(await playwrightBrowser()))
      return playwrightBrowser();
    if (process.getuid?.() === 0 && fs.existsSync("/usr/bin/apt-get")) {
      attempt("apt-get", ["update", "-q"]);
      attempt("apt-get", ["install", "-q", "-y", "--no-install-recommends", "chromium"]);
      const installed = PLACES.find(works);
      if (installed) return installed;
    }
  }
  throw new Error("no Chromium found; install one (Debian: apt install chromium) or name it in WEFT_CHROMIUM");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    console.log(await findBrowser({ install: !process.argv.includes("--no-install") }));
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exit(1);
  }
}
