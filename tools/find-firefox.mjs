#!/usr/bin/env node
// Prints the path of a Firefox: one that is there, else with --install Debian's package when root.
//
//   node tools/find-firefox.mjs [--install]
//
// WEFT_FIREFOX names one to use.
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { fileURLToPath } from "node:url";

const PLACES = [
  "/usr/lib/firefox-esr/firefox-esr",
  "/usr/lib/firefox/firefox",
  "/usr/bin/firefox-esr",
  "/usr/bin/firefox",
  "/snap/bin/firefox",
  "/Applications/Firefox.app/Contents/MacOS/firefox",
];

export const MISSING =
  "no Firefox is installed; install one (Debian: apt install firefox-esr) or name it in WEFT_FIREFOX";

/** The path of a Firefox, or null. */
export function findFirefox() {
  const named = process.env.WEFT_FIREFOX;
  if (named && !fs.existsSync(named)) throw new Error(`WEFT_FIREFOX names ${named}, which does not exist`);
  return named ?? PLACES.find((place) => fs.existsSync(place)) ?? null;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const installs = process.argv.includes("--install") && process.getuid?.() === 0 && fs.existsSync("/usr/bin/apt-get");
  if (!findFirefox() && installs) {
    // The output goes to stderr: stdout carries the path alone.
    for (const args of [
      ["update", "-q"],
      ["install", "-q", "-y", "--no-install-recommends", "firefox-esr"],
    ])
      spawnSync("apt-get", args, { stdio: ["ignore", 2, 2] });
  }
  const found = findFirefox();
  console.log(found ?? MISSING);
  process.exitCode = found ? 0 : 1;
}
