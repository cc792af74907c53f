/** What runs the programs that weft.export.web writes for WebGPU: types of weft-gpu.js. */
import type { AsyncLoadOptions, AsyncProgram, Files, Signature } from "./weft.js";

export * from "./weft.js";

/** Used by the modules that weft.export.web writes. */
export function loadAsync<Arguments extends unknown[], Result>(
  signature: Signature,
  files: Files,
  options?: AsyncLoadOptions,
): Promise<AsyncProgram<Arguments, Result>>;
