import { defineConfig } from "@playwright/test";
import { findBrowser } from "../tools/find-browser.mjs";
import type { Options } from "./fixtures/site.js";
import { FLAGS, WEBGPU } from "./launch.mjs";

const executablePath = await findBrowser();
const launch = (...args: string[]) => ({ launchOptions: { executablePath, args: [...FLAGS, ...args] } });

export default defineConfig<object, Options>({
  testDir: "tests",
  outputDir: "../build/e2e/results",
  globalSetup: "./setup.ts",
  timeout: 120_000,
  expect: { timeout: 40_000 },
  workers: 2,
  forbidOnly: true,
  reporter: [["list"]],
  use: { headless: true, viewport: { width: 1280, height: 800 }, screenshot: "only-on-failure" },
  projects: [
    {
      name: "page",
      testMatch: /(playground|editor|runtime|exported|figures|cell|embed)\.spec/,
      use: launch(),
    },
    {
      // Readers who come again: the service worker answers, and the browser has compiled Python. A test that answers
      // requests itself, or counts them, stands in a file of the other projects.
      name: "page-again",
      testMatch: /(documents|runs|notebook|widgets|touch|keys)\.spec/,
      use: { ...launch(), withServiceWorker: true },
    },
    { name: "page-webgpu", testMatch: /\/(webgpu|exported-webgpu)\.spec/, use: launch(WEBGPU) },
    {
      name: "weft",
      testMatch: [
        /\/(packages|micropip|cache|sites|exports|visit|language)\.spec/,
        /\/(everybody|offline|docs|host-sites|admin)\.spec/,
      ],
      use: launch(),
    },
    {
      name: "weft-again",
      testMatch: /\/(weft|gallery|plot|stop|intelligence|media|inspector|acceptance)\.spec/,
      use: { ...launch(), withServiceWorker: true },
    },
    { name: "weft-webgpu", testMatch: /(weft|inspector)-webgpu\.spec/, use: launch(WEBGPU) },
  ],
});
