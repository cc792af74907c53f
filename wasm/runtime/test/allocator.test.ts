import assert from "node:assert/strict";
import { test } from "node:test";
import { sizeClass } from "../src/allocator.js";
import { Allocator, WeftMemoryError, WeftRuntimeError } from "../src/index.js";
import { LinearMemory } from "../src/memory.js";

const memory = (initial = 2, maximum = 1024) => new LinearMemory(false, initial, false, maximum);

function random(seed: number): () => number {
  return () => (seed = (Math.imul(seed, 1103515245) + 12345) >>> 0) / 2 ** 32;
}

test("size classes are multiples of 64 that waste at most a quarter", () => {
  for (let bytes = 0; bytes < 20000; bytes++) {
    const size = sizeClass(bytes);
    assert.ok(size % 64 === 0 && size >= bytes && size >= 64);
    assert.ok(size < Math.max(64, bytes) * 1.25 + 64, `${bytes} takes ${size}`);
  }
});

test("live buffers never overlap, through ten thousand random calls", () => {
  const wasm = memory();
  const allocator = new Allocator(wasm);
  const next = random(7);
  const live: { ptr: number; bytes: number; tag: number }[] = [];
  const check = (buffer: (typeof live)[number]) => {
    const view = new Uint8Array(wasm.buffer, buffer.ptr, buffer.bytes);
    assert.ok(
      view.every((byte) => byte === buffer.tag),
      "a buffer was overwritten",
    );
  };
  for (let i = 0; i < 10000; i++) {
    if (live.length > 60 || (live.length && next() < 0.45)) {
      const [buffer] = live.splice(Math.floor(next() * live.length), 1);
      check(buffer!);
      allocator.free(buffer!.ptr);
    } else {
      const bytes = Math.floor(2 ** (next() * 17));
      const ptr = allocator.alloc(bytes);
      assert.equal(ptr % 64, 0);
      assert.ok(ptr > 0);
      const tag = i & 0xff;
      new Uint8Array(wasm.buffer, ptr, bytes).fill(tag);
      live.push({ ptr, bytes, tag });
    }
  }
  live.forEach(check);
  live.forEach(({ ptr }) => allocator.free(ptr));
  assert.equal(allocator.stats().allocated, 0);
});

test("freed neighbours are merged, so that one large buffer fits where several were", () => {
  const wasm = memory(2);
  const allocator = new Allocator(wasm);
  const parts = Array.from({ length: 8 }, () => allocator.alloc(2 ** 20));
  const size = wasm.buffer.byteLength;
  for (const i of [1, 3, 0, 2, 7, 5, 6, 4]) allocator.free(parts[i]!);
  const large = allocator.alloc(8 * 2 ** 20);
  assert.equal(large, parts[0]);
  assert.equal(wasm.buffer.byteLength, size);
});

test("a freed buffer of the same size is used again", () => {
  const allocator = new Allocator(memory());
  const first = allocator.alloc(100);
  allocator.free(first);
  assert.equal(allocator.alloc(120), first);
});

test("a memory that can't grow gives an error that says so, and goes on working", () => {
  const allocator = new Allocator(memory(2, 4));
  assert.throws(
    () => allocator.alloc(2 ** 20),
    (error) => error instanceof WeftMemoryError && /out of device memory/.test(error.message),
  );
  allocator.alloc(1000);
  const large = new Allocator(memory(2, 65536));
  assert.throws(() => large.alloc(2 ** 33), /ends at 4 GiB/);
});

test("a memory grows by no more than is missing where it can't grow by more", () => {
  const wasm = memory(2, 4);
  const ptr = new Allocator(wasm).alloc(4 * 65536 - 64); // all but the bytes at address 0
  assert.deepEqual([ptr, wasm.buffer.byteLength], [64, 4 * 65536]);
});

// The pages are reserved, not touched.
test("addresses above 2 GiB work", () => {
  const wasm = memory(2, 65536);
  const allocator = new Allocator(wasm);
  allocator.alloc(2 ** 31);
  const high = allocator.alloc(2 ** 20);
  assert.ok(high >= 2 ** 31);
  new Uint8Array(wasm.buffer, high, 4).set([1, 2, 3, 4]);
  allocator.free(high);
});

test("nonsense is refused", () => {
  const allocator = new Allocator(memory());
  for (const bytes of [-1, 1.5, NaN, Infinity]) assert.throws(() => allocator.alloc(bytes), WeftRuntimeError);
  const ptr = allocator.alloc(8);
  allocator.free(ptr);
  assert.throws(() => allocator.free(ptr), /freed already/);
});

test("the peak is the largest sum so far, and can be counted anew", () => {
  const allocator = new Allocator(memory(2));
  const kept = allocator.alloc(1024);
  allocator.free(allocator.alloc(4096));
  assert.equal(allocator.stats().peak, 5120);
  allocator.resetPeak();
  assert.equal(allocator.stats().peak, 1024);
  allocator.free(kept);
  assert.equal(allocator.stats().peak, 1024);
});
