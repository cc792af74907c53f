/** GPU buffers by handle, reused by exact size. */
import type { MemoryStats } from "./allocator.js";
import { WeftRuntimeError } from "./errors.js";

const ALIGN = 64;
/** Up to this many bytes of free buffers are kept; further ones are destroyed. */
const KEEP = 256 * 2 ** 20;

interface Slot {
  buffer: GPUBuffer;
  size: number;
  /** Asynchronous runs that still use it; a freed slot returns to the pool when there are no more. */
  holds: number;
  freed: boolean;
}

export class GpuBuffers {
  private readonly slots = new Map<number, Slot>();
  private readonly pool = new Map<number, GPUBuffer[]>();
  private readonly numbers = new WeakMap<GPUBuffer, number>();
  private created = 0;
  private allocated = 0;
  private peak = 0;
  private pooled = 0;

  private nextHandle: number;

  /** Handles begin with `first`. */
  constructor(
    private readonly device: GPUDevice,
    readonly first = 1,
  ) {
    this.nextHandle = first;
  }

  /** A handle that no buffer has had. */
  get next(): number {
    return this.nextHandle;
  }

  alloc(bytes: number): number {
    if (!Number.isSafeInteger(bytes) || bytes < 0) {
      throw new WeftRuntimeError(`alloc(${bytes}): a buffer's size is a whole number of bytes, 0 or more`);
    }
    const size = Math.max(ALIGN, Math.ceil(bytes / ALIGN) * ALIGN);
    const limit = Math.min(this.device.limits.maxBufferSize, this.device.limits.maxStorageBufferBindingSize);
    if (size > limit) {
      throw new WeftRuntimeError(
        `a buffer of ${bytes} bytes is larger than this WebGPU device allows (${limit}); ` +
          "split the array, or use the wasm backend",
      );
    }
    let buffer = this.pool.get(size)?.pop();
    if (buffer) this.pooled -= size;
    else {
      const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
      buffer = this.device.createBuffer({ size, usage });
      this.numbers.set(buffer, ++this.created);
    }
    const handle = this.nextHandle++;
    this.slots.set(handle, { buffer, size, holds: 0, freed: false });
    this.allocated += size;
    this.peak = Math.max(this.peak, this.allocated);
    return handle;
  }

  free(handle: number): void {
    const slot = this.slot(handle);
    slot.freed = true;
    if (slot.holds === 0) this.recycle(handle, slot);
  }

  /** Keeps the buffer's contents for a run that is still encoding, even if the handle is freed meanwhile. */
  hold(handle: number): void {
    this.slot(handle).holds++;
  }

  unhold(handle: number): void {
    const slot = this.slots.get(handle)!;
    if (--slot.holds === 0 && slot.freed) this.recycle(handle, slot);
  }

  get(handle: number): GPUBuffer {
    return this.slot(handle).buffer;
  }

  /** A number that no other buffer has had. */
  number(buffer: GPUBuffer): number {
    return this.numbers.get(buffer)!;
  }

  size(handle: number): number {
    return this.slot(handle).size;
  }

  stats(): MemoryStats {
    return { allocated: this.allocated, peak: this.peak, free: this.pooled };
  }

  private slot(handle: number): Slot {
    const slot = this.slots.get(handle);
    if (!slot || (slot.freed && slot.holds === 0)) {
      throw new WeftRuntimeError(`no WebGPU buffer ${handle}; was it deleted or donated?`);
    }
    return slot;
  }

  private recycle(handle: number, slot: Slot): void {
    this.slots.delete(handle);
    this.allocated -= slot.size;
    if (this.pooled + slot.size > KEEP) {
      slot.buffer.destroy();
      return;
    }
    const list = this.pool.get(slot.size);
    if (list) list.push(slot.buffer);
    else this.pool.set(slot.size, [slot.buffer]);
    this.pooled += slot.size;
  }
}
