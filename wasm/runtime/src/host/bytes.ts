/** Bytes as weft writes them: whole numbers at 7 bits a byte, and lengths before what has one. */

/** Bytes that are not what they should be. */
export class WeftFormatError extends Error {
  override readonly name = "WeftFormatError";
  constructor(message: string, at: number) {
    super(`${message} (at byte ${at})`);
  }
}

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

export class Writer {
  private data = new Uint8Array(256);
  private size = 0;

  byte(value: number): void {
    this.room(1);
    this.data[this.size++] = value;
  }

  unsigned(value: number): void {
    if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`${value} is no number of the protocol`);
    this.room(8);
    while (value > 0x7f) {
      this.data[this.size++] = (value % 0x80) | 0x80;
      value = Math.floor(value / 0x80);
    }
    this.data[this.size++] = value;
  }

  bytes(value: Uint8Array): void {
    this.unsigned(value.length);
    this.room(value.length);
    this.data.set(value, this.size);
    this.size += value.length;
  }

  string(value: string): void {
    this.bytes(encoder.encode(value));
  }

  finish(): Uint8Array {
    return this.data.slice(0, this.size);
  }

  private room(more: number): void {
    if (this.size + more <= this.data.length) return;
    const grown = new Uint8Array(Math.max(2 * this.data.length, this.size + more));
    grown.set(this.data);
    this.data = grown;
  }
}

/** Reads what nobody has checked: every length is compared with the bytes that are left before anything is made. */
export class Reader {
  at = 0;

  constructor(readonly data: Uint8Array) {}

  fail(message: string, at = this.at): never {
    throw new WeftFormatError(message, at);
  }

  get left(): number {
    return this.data.length - this.at;
  }

  byte(): number {
    if (this.left < 1) this.fail("the data ends where a byte is expected");
    return this.data[this.at++]!;
  }

  bool(): boolean {
    const start = this.at;
    const value = this.byte();
    if (value > 1) this.fail("a truth value is 0 or 1", start);
    return value === 1;
  }

  unsigned(limit = Number.MAX_SAFE_INTEGER): number {
    const start = this.at;
    let value = 0;
    for (let scale = 1; ; scale *= 0x80) {
      const byte = this.byte();
      value += (byte & 0x7f) * scale;
      if (value > limit) this.fail(`a number is more than ${limit}`, start);
      if (byte < 0x80) return value;
      if (scale > 2 ** 49) this.fail("a number is too long", start);
    }
  }

  /** How many items follow, of a byte each at least. */
  count(limit = Number.MAX_SAFE_INTEGER): number {
    const start = this.at;
    const value = this.unsigned();
    if (value > Math.min(this.left, limit))
      this.fail(`${value} items are announced, ${this.left} bytes are left`, start);
    return value;
  }

  /** The next bytes, without a copy. */
  bytes(size = this.count()): Uint8Array {
    if (size > this.left) this.fail(`${size} bytes are announced, ${this.left} are left`);
    this.at += size;
    return this.data.subarray(this.at - size, this.at);
  }

  string(): string {
    const start = this.at;
    try {
      return decoder.decode(this.bytes());
    } catch (error) {
      if (error instanceof WeftFormatError) throw error;
      return this.fail("a text is not UTF-8", start);
    }
  }

  list<T>(read: () => T, limit?: number): T[] {
    return Array.from({ length: this.count(limit) }, read);
  }

  finish(): void {
    if (this.left) this.fail(`${this.left} bytes follow the end`);
  }
}
