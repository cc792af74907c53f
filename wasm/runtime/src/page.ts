/** The object that Python imports as `_weft_page`; web/CONTRACT.md describes it. */
import { ProgramCache } from "./cache.js";
import { GpuDevice } from "./gpu_device.js";
import { Socket } from "./socket.js";
import { isolatedHere, threadsHere } from "./threads.js";
import { WasmDevice } from "./wasm_device.js";

/**
 * What a page does with timings; how many threads programs get (by default all that are available); whether addresses
 * have 64 bits. Each may be left out.
 */
export interface PageHooks {
  threads?: number;
  memory64?: boolean;
  timing?(phase: string, ms: number): void;
}

/** The device that a page has, and how it gets a new one in place of one that is lost: whether there is one then. */
interface WithGpu {
  gpu: GpuDevice | null;
  renewGpu(): Promise<boolean>;
}

async function renewGpu(this: Page): Promise<boolean> {
  if (this.gpu?.lost === null) return true;
  const found = await GpuDevice.create(this.device, this.gpu);
  if (found) this.gpu = found;
  return found !== null;
}

export interface Page extends Required<Omit<PageHooks, "threads" | "memory64">>, WithGpu {
  version: 1;
  features: readonly string[];
  device: WasmDevice;
  cache: ProgramCache | null;
  open(url: string, ...protocols: string[]): Promise<Socket>;
}

const nothing = (): void => {};

export async function createPage(hooks: PageHooks = {}): Promise<Page> {
  const { threads = threadsHere(), memory64 = false } = hooks;
  const device = await WasmDevice.create({ threads, memory64, shared: isolatedHere() });
  const [cache, gpu] = await Promise.all([ProgramCache.open(), GpuDevice.create(device)]);
  return {
    version: 1,
    features: device.features,
    device,
    gpu,
    cache,
    renewGpu,
    open: (url, ...protocols) => Socket.open(url, ...protocols),
    timing: hooks.timing ?? nothing,
  };
}
