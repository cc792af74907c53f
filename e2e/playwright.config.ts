import { defineConfig } from "@playwright/test";
import { findBrowser } from "../tools/find-browser.mjs";
import { FLAGS, WEBGPU } from "./launch.mjs";

const executablePath = await findBrowser();
const launch = (...args: string[]) => ({ launchOptions: { executablePath, args: [...FLAGS, ...args] } });

export default defineConfig({
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
      testMatch:
        /(playground|editor|documents|runs|notebook|widgets|runtime|exported|figures|touch|keys|cell|embed)\.spec/,
      use: launch(),
    },
    { name: "page-webgpu", testMatch: /\/(webgpu|exported-webgpu)\.spec/, use: launch(WEBGPU) },
    {
      name: "weft",
      testMatch: [
        /\/(weft|gallery|plot|packages|micropip|cache|sites|exports|visit|stop|language)\.spec/,
        /\/(intelligence|everybody|media|offline|inspector|docs|host-sites|admin|acceptance)\.spec/,
      ],
      use: launch(),
    },
    { name: "weft-webgpu", testMatch: /(weft|inspector)-webgpu\.spec/, use: launch(WEBGPU) },
  ],
});
