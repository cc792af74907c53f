import base from "./playwright.config";
export default { ...base, globalSetup: undefined, workers: 1, outputDir: "../build/e2e/results-fig" };
