import { defineConfig } from "@playwright/test";
import { findFirefox, MISSING } from "../../tools/find-firefox.mjs";

if (!findFirefox()) console.log(`The tests in Firefox are skipped: ${MISSING}.`);

export default defineConfig({
  testDir: ".",
  outputDir: "../../build/e2e/firefox",
  timeout: 120_000,
  expect: { timeout: 30_000 },
  workers: 1,
  forbidOnly: true,
  reporter: [["list"]],
  projects: [{ name: "firefox" }],
});
