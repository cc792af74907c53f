/** A WebAssembly memory whose addresses have 32 or 64 bits; to JavaScript both are numbers. */

/** Address of the word that ends a program where it next looks; below all buffers. */
export const STOP = 8;

const PAGES_32 = 1 << 16; // of 64 KiB
const PAGES_64 = 1 << 18; // engines give no more

/** An address as a module's functions take it. */
export type Address = number | bigint;

export class LinearMemory {
  readonly memory: WebAssembly.Memory;
  /** Bytes of an address in a table. */
  readonly addressBytes: number;
  private words: Uint32Array;

  constructor(
    readonly wide: boolean,
    initial: number,
    readonly shared: boolean,
    /** Pages that it can have at most. */
    readonly maximum = wide ? PAGES_64 : PAGES_32,
  ) {
    this.addressBytes = wide ? 8 : 4;
    const limits = wide
      ? { address: "i64", initial: BigInt(initial), maximum: BigInt(maximum), shared }
      : { initial, maximum, shared };
    this.memory = new WebAssembly.Memory(limits as WebAssembly.MemoryDescriptor);
    this.words = new Uint32Array(this.memory.buffer);
  }

  get buffer(): ArrayBuffer {
    return this.memory.buffer as ArrayBuffer;
  }

  grow(pages: number): void {
    this.memory.grow(this.address(pages) as number);
  }

  /** A number as the module's functions take an address. */
  address(ptr: number): Address {
    return this.wide ? BigInt(ptr) : ptr;
  }

  /** An address returned by a module's function, as a number: an i32 is signed here. */
  unsigned(address: Address): number {
    const value = Number(address);
    return value >= 0 ? value : value + (this.wide ? 2 ** 64 : 2 ** 32);
  }

  /** Writes address number `k` of a table. */
  put(table: number, k: number, ptr: number): void {
    // Growth has detached the old view.
    if (this.words.buffer !== this.memory.buffer) this.words = new Uint32Array(this.memory.buffer);
    if (!this.wide) {
      this.words[table / 4 + k] = ptr;
      return;
    }
    this.words[table / 4 + 2 * k] = ptr % 2 ** 32;
    this.words[table / 4 + 2 * k + 1] = Math.floor(ptr / 2 ** 32);
  }

  /** The first `count` addresses of a table. */
  addresses(table: number, count: number): Float64Array | Uint32Array {
    const words = new Uint32Array(this.memory.buffer, table, (count * this.addressBytes) / 4);
    return this.wide
      ? Float64Array.from({ length: count }, (_, k) => words[2 * k]! + words[2 * k + 1]! * 2 ** 32)
      : words.slice();
  }
}
