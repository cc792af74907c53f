/**
 * Buffers in one linear memory: 64-byte aligned, small ones by size class, large ones best fit.
 *
 * Small buffers (up to SMALL bytes) are cut from slabs and keep to their class. Large ones come from a list of free
 * blocks, sorted by address, whose neighbours are merged when one is freed, so that a long run does not fragment the
 * memory.
 */
import { WeftMemoryError, WeftRuntimeError } from "./errors.js";
import type { LinearMemory } from "./memory.js";

const ALIGN = 64;
const SMALL = 8192;
const SLAB = 65536;
const PAGE = 65536;

export interface MemoryStats {
  /** Bytes in live buffers, rounded up as they are allocated. */
  allocated: number;
  /** The largest `allocated` so far, or since `resetPeak`. */
  peak: number;
  /** Bytes of the memory that are in no live buffer. */
  free: number;
}

interface Block {
  start: number;
  size: number;
}

function roundUp(value: number, multiple: number): number {
  return Math.ceil(value / multiple) * multiple;
}

/** The room that a request of `bytes` takes: 64-byte steps to 1 KiB, then four classes for each power of two. */
export function sizeClass(bytes: number): number {
  const size = Math.max(ALIGN, roundUp(bytes, ALIGN));
  if (size <= 1024) return size;
  if (size > SMALL) return size;
  return roundUp(size, 2 ** (Math.floor(Math.log2(size - 1)) - 2));
}

export class Allocator {
  private readonly small = new Map<number, number[]>();
  private readonly sizes = new Map<number, number>();
  private readonly free_: Block[] = [];
  private allocated = 0;
  private peak = 0;

  /** `base` bytes at the beginning of the memory stay untouched, so that address 0 is never a buffer. */
  constructor(
    private readonly memory: LinearMemory,
    base = ALIGN,
  ) {
    this.release(base, memory.buffer.byteLength - base);
  }

  alloc(bytes: number): number {
    if (!Number.isSafeInteger(bytes) || bytes < 0) {
      throw new WeftRuntimeError(`alloc(${bytes}): a buffer's size is a whole number of bytes, 0 or more`);
    }
    const size = sizeClass(bytes);
    const ptr = size <= SMALL ? this.takeSmall(size) : this.takeLarge(size);
    this.sizes.set(ptr, size);
    this.allocated += size;
    this.peak = Math.max(this.peak, this.allocated);
    return ptr;
  }

  free(ptr: number): void {
    const size = this.sizes.get(ptr);
    if (size === undefined) {
      throw new WeftRuntimeError(
        `free(${ptr}): no buffer is allocated there; it was freed already, or never allocated`,
      );
    }
    this.sizes.delete(ptr);
    this.allocated -= size;
    if (size <= SMALL) this.small.get(size)!.push(ptr);
    else this.release(ptr, size);
  }

  /** The room of a live buffer, or undefined. */
  size(ptr: number): number | undefined {
    return this.sizes.get(ptr);
  }

  stats(): MemoryStats {
    return { allocated: this.allocated, peak: this.peak, free: this.memory.buffer.byteLength - this.allocated };
  }

  resetPeak(): void {
    this.peak = this.allocated;
  }

  private takeSmall(size: number): number {
    let list = this.small.get(size);
    if (!list) this.small.set(size, (list = []));
    const ptr = list.pop();
    if (ptr !== undefined) return ptr;
    const slab = this.takeLarge(SLAB);
    for (let at = slab + SLAB - (SLAB % size) - size; at > slab; at -= size) list.push(at);
    return slab;
  }

  private takeLarge(size: number): number {
    let best = -1;
    for (let i = 0; i < this.free_.length; i++) {
      const room = this.free_[i]!.size;
      if (room >= size && (best < 0 || room < this.free_[best]!.size)) best = i;
    }
    if (best < 0) {
      this.grow(size);
      return this.takeLarge(size);
    }
    const block = this.free_[best]!;
    const ptr = block.start;
    block.start += size;
    block.size -= size;
    if (block.size === 0) this.free_.splice(best, 1);
    return ptr;
  }

  private release(start: number, size: number): void {
    let low = 0;
    let high = this.free_.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.free_[middle]!.start < start) low = middle + 1;
      else high = middle;
    }
    const before = this.free_[low - 1];
    const after = this.free_[low];
    const joinsBefore = before !== undefined && before.start + before.size === start;
    const joinsAfter = after !== undefined && start + size === after.start;
    if (joinsBefore) {
      before.size += size + (joinsAfter ? after.size : 0);
      if (joinsAfter) this.free_.splice(low, 1);
    } else if (joinsAfter) {
      after.start = start;
      after.size += size;
    } else {
      this.free_.splice(low, 0, { start, size });
    }
  }

  /** Makes a free block of at least `size` at the end of the memory; grows by a quarter at once where it can. */
  private grow(size: number): void {
    const end = this.memory.buffer.byteLength;
    const last = this.free_.at(-1);
    const atEnd = last && last.start + last.size === end ? last.size : 0;
    const need = Math.ceil((size - atEnd) / PAGE);
    const pages = end / PAGE;
    const generous = Math.min(Math.max(need, Math.ceil(pages / 4)), this.memory.maximum - pages);
    for (const delta of new Set([generous, need])) {
      if (delta < need) continue;
      try {
        this.memory.grow(delta);
      } catch {
        continue;
      }
      this.release(end, delta * PAGE);
      return;
    }
    const { allocated } = this.stats();
    const limit =
      need > this.memory.maximum - pages
        ? `this memory ends at ${this.memory.maximum / 16384} GiB`
        : "the engine refused to grow the memory";
    throw new WeftMemoryError(
      `out of device memory: ${size} bytes asked for, ${allocated} in use; ${limit}. ` +
        "Delete arrays that are no longer needed, donate inputs, or use smaller batches",
    );
  }
}
