export { Allocator, type MemoryStats } from "./allocator.js";
export { ProgramCache } from "./cache.js";
export {
  packArtifact,
  parseArtifact,
  type Artifact,
} from "./container.js";
export type { BufferSpec, Metadata, OutputSpec } from "./contents.js";
export { WeftMemoryError, WeftProgramError, WeftRuntimeError } from "./errors.js";
export { detectFeatures } from "./features.js";
export { GpuDevice, type GpuEntry, type GpuLimits } from "./gpu_device.js";
export type { Plan, Step } from "./gpu_plan.js";
export { createPage, type Page, type PageHooks, type PlotKind } from "./page.js";
export { Socket, WeftConnectionError } from "./socket.js";
export { threadsHere, type Spawn } from "./threads.js";
export { WasmDevice, type Entry } from "./wasm_device.js";
