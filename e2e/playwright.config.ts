import { defineConfig } from "@playwright/test";
import { findBrowser } from "../tools/find-browser.mjs";
import { FLAGS, WEBGPU } from "./launch.mjs";

const executablePath = await findBrowser();
const launch = (...args: string[]) => ({ launchOptions: { executablePath, args: [...FLAGS, ...args] } });

export default defineConfig({
  testDir: "tests",
  outputDir: "../build/e2e/results",
  globalSetup: "./setup.ts",
  timeout: 60_000,
  expect: { timeout: 20_000 },
  workers: 1,
  forbidOnly: true,
  reporter: [["list"]],
  use: { headless: true, viewport: { width: 1280, height: 800 }, screenshot: "only-on-failure" },
  projects: [
    { name: "chromium", testIgnore: /webgpu/, use: launch() },
    { name: "webgpu", testMatch: /webgpu/, use: launch(WEBGPU) },
  ],
});
