// How the tests and benchmarks start Chromium: quiet, offline, and with the rights a container gives.
export const FLAGS = [
  "--no-sandbox",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-dev-shm-usage",
];

/** Gives headless Chromium its software WebGPU adapter. */
export const WEBGPU = "--enable-unsafe-webgpu";
