import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { LinearMemory } from "../src/memory.js";
import { sha256 } from "../src/sha256.js";
import { packArtifact, parseArtifact, WasmDevice, WeftProgramError, WeftRuntimeError } from "../src/index.js";
import * as programs from "./programs.js";

async function deviceWith(values: number[][]): Promise<{ device: WasmDevice; ptrs: number[] }> {
  const device = await WasmDevice.create();
  const ptrs = values.map((row) => {
    const ptr = device.alloc(4 * row.length);
    device.write(ptr, new Uint8Array(Float32Array.from(row).buffer));
    return ptr;
  });
  return { device, ptrs };
}

function floats(device: WasmDevice, ptr: number, count = 4): number[] {
  return Array.from(new Float32Array(device.view(ptr, 4 * count).slice().buffer));
}

test("a program reads its input and writes a fresh output", async () => {
  const { device, ptrs } = await deviceWith([[1, 2, 3, 4]]);
  const id = device.load(programs.addOne);
  const [out] = device.run(id, ptrs);
  assert.deepEqual(floats(device, out!), [2, 3, 4, 5]);
  assert.deepEqual(floats(device, ptrs[0]!), [1, 2, 3, 4]);
  assert.notEqual(out, ptrs[0]);
});

test("several outputs come in order, and scratch is given back", async () => {
  const { device, ptrs } = await deviceWith([
    [1, 2, 3, 4],
    [5, 6, 7, 8],
  ]);
  const id = device.load(programs.sumAndProduct);
  const before = device.stats().allocated;
  const first = device.entry(id)(...ptrs);
  const [sum, product] = device.results(id);
  assert.equal(first, sum);
  assert.deepEqual(floats(device, sum!), [6, 8, 10, 12]);
  assert.deepEqual(floats(device, product!), [5, 12, 21, 32]);
  assert.equal(device.stats().allocated, before + 128);
});

test("a few bytes are fetched into a place that stays", async () => {
  const { device, ptrs } = await deviceWith([[1, 2, 3, 4]]);
  const { small } = device;
  device.fetch(ptrs[0]!, 16);
  assert.deepEqual(Array.from(new Float32Array(small.buffer, 0, 4)), [1, 2, 3, 4]);
  assert.throws(() => device.fetch(ptrs[0]!, 128), /the buffer has 64 bytes/);
  assert.equal(device.small, small);
});

test("constants are found through the table", async () => {
  const { device, ptrs } = await deviceWith([[1, 2, 3, 4]]);
  const [out] = device.run(device.load(programs.addConstant), ptrs);
  assert.deepEqual(floats(device, out!), [11, 22, 33, 44]);
});

test("a donated input's memory becomes the output that aliases it", async () => {
  const { device, ptrs } = await deviceWith([[1, 2, 3, 4]]);
  const id = device.load(programs.addOne);
  const before = device.stats().allocated;
  const [out] = device.run(id, ptrs, [0]);
  assert.equal(out, ptrs[0]);
  assert.deepEqual(floats(device, out!), [2, 3, 4, 5]);
  assert.equal(device.stats().allocated, before);
});

test("a donated input that no output takes is freed", async () => {
  const { device, ptrs } = await deviceWith([
    [1, 2, 3, 4],
    [5, 6, 7, 8],
  ]);
  const id = device.load(programs.sumAndProduct);
  device.run(id, ptrs, [1]);
  assert.throws(() => device.view(ptrs[1]!, 16), /no buffer is allocated/);
  assert.throws(() => device.fetch(ptrs[1]!, 16), /no buffer is allocated/);
  assert.deepEqual(floats(device, ptrs[0]!), [1, 2, 3, 4]);
});

test("donating a buffer that is given twice is refused and consumes nothing", async () => {
  const { device, ptrs } = await deviceWith([[1, 2, 3, 4]]);
  const id = device.load(programs.sumAndProduct);
  assert.throws(() => device.run(id, [ptrs[0]!, ptrs[0]!], [0]), /also given as another input/);
  assert.deepEqual(floats(device, ptrs[0]!), [1, 2, 3, 4]);
});

test("an error code becomes the message of the metadata, and nothing leaks", async () => {
  const { device, ptrs } = await deviceWith([[1, 2, 3, 4]]);
  const id = device.load(programs.failing);
  const before = device.stats().allocated;
  assert.throws(
    () => device.run(id, ptrs),
    (error) => error instanceof WeftProgramError && error.code === 7 && error.message === "index out of range",
  );
  assert.equal(device.stats().allocated, before);
});

test("a trap is a program error, and a donated input survives it", async () => {
  const { device, ptrs } = await deviceWith([[1, 2, 3, 4]]);
  const id = device.load(programs.trapping);
  const before = device.stats().allocated;
  assert.throws(
    () => device.run(id, ptrs, [0]),
    (error) => error instanceof WeftProgramError && error.code === 0,
  );
  assert.equal(device.stats().allocated, before);
  assert.deepEqual(floats(device, ptrs[0]!), [1, 2, 3, 4]);
});

test("a program that overflows the stack ends as one that trapped", async () => {
  const { device, ptrs } = await deviceWith([[1, 2, 3, 4]]);
  const id = device.load(programs.recursive);
  assert.throws(
    () => device.run(id, ptrs),
    (error) => error instanceof WeftProgramError && /test trapped: .*stack/.test(error.message),
  );
  assert.deepEqual(floats(device, ptrs[0]!), [1, 2, 3, 4]);
});

test("inputs are checked: count, life, size", async () => {
  const { device, ptrs } = await deviceWith([[1, 2, 3, 4]]);
  const id = device.load(programs.addOne);
  assert.throws(() => device.run(id, []), /takes 1 inputs, 0 given/);
  assert.throws(() => device.run(id, [12345]), /not an allocated buffer/);
  device.free(ptrs[0]!);
  assert.throws(() => device.run(id, ptrs), /deleted or donated/);
  const wide = programs.artifact(
    programs.metadata(1, [], { inputs: [{ dtype: "f32", shape: [64], bytes: 256 }] }),
    programs.module(programs.i32Const(0)),
  );
  const small = device.alloc(4);
  assert.throws(() => device.run(device.load(wide), [small]), /has 64 bytes, not 256/);
});

test("unload gives everything back and ends the entries made before", async () => {
  const { device, ptrs } = await deviceWith([[1, 2, 3, 4]]);
  const before = device.stats().allocated;
  const id = device.load(programs.addConstant);
  const entry = device.entry(id);
  device.unload(id);
  assert.equal(device.stats().allocated, before);
  assert.throws(() => entry(ptrs[0]!), /has been unloaded/);
  assert.throws(() => device.unload(id), /no program/);
});

test("growth of the memory between calls does not disturb an entry", async () => {
  const { device, ptrs } = await deviceWith([[1, 2, 3, 4]]);
  const entry = device.entry(device.load(programs.addOne));
  entry(ptrs[0]!);
  device.alloc(64 * 2 ** 20);
  assert.deepEqual(floats(device, entry(ptrs[0]!)), [2, 3, 4, 5]);
});

test("damaged artifacts are refused with the reason", async () => {
  const device = await WasmDevice.create();
  const refused = (bytes: Uint8Array, pattern: RegExp) =>
    assert.throws(
      () => device.load(bytes),
      (error) => error instanceof WeftRuntimeError && pattern.test(error.message),
    );
  const { addOne } = programs;
  refused(new Uint8Array(3), /fewer than its header/);
  refused(addOne.slice(0, -1), /truncated artifact: its header says/);
  const changed = (at: number, byte: number) => addOne.map((old, k) => (k === at ? byte : old));
  refused(changed(0, 0), /magic/);
  refused(changed(4, 1), /artifact of version 1, this runtime reads version 2; compile the program again/);
  for (const at of [8, 40, 52, addOne.length - 1])
    refused(changed(at, addOne[at]! ^ 1), at === 40 ? /truncated/ : /damaged artifact: .*checksum/);
  const otherSum = changed(8, addOne[8]! ^ 1); // who has made it has just computed the sum; all else is checked
  const id = device.load(otherSum, undefined, true);
  assert.deepEqual(device.metadata(id), parseArtifact(addOne).metadata);
  device.unload(id);
  assert.throws(() => device.load(addOne.slice(0, -1), undefined, true), /truncated/);
  const { code } = parseArtifact(addOne);
  const pack = (inputs: number, outputs: (number | null)[], more: object = {}, bytes = code) =>
    packArtifact(programs.metadata(inputs, outputs, more), bytes);
  refused(pack(1, [5]), /artifact test: outputs\[0\].alias names input 5, which does not exist. Compile/);
  refused(pack(1, [65536]), /outputs\[0\].alias must be null or an int from 0 to 65535; got 65536/);
  refused(pack(1, [0, 0]), /outputs\[0\] and outputs\[1\] both have alias 0/);
  refused(pack(1, [0], { abi: 2 }), /abi must be 1, which this runtime has; got 2/);
  refused(
    pack(1, [0], { inputs: [{ dtype: "f32", shape: [5], bytes: 16 }] }),
    /inputs\[0\].bytes must be 20 for f32\[5\]; got 16/,
  );
  for (const [dtype, bytes] of Object.entries({ u8: 1, i16: 2, f32: 4, f64: 8 }))
    refused(
      pack(1, [0], { inputs: [{ dtype, shape: [5], bytes: 16 }] }),
      new RegExp(`inputs\\[0\\].bytes must be ${5 * bytes} for ${dtype}\\[5\\]; got 16`),
    );
  for (const [features, room] of [
    [[], 2 ** 32],
    [["memory64"], 2 ** 34],
  ] as const) {
    const [large, most] = [room + 1, new RegExp(`must be at most ${room}, the size of a memory; got ${room + 1}`)];
    refused(pack(1, [0], { features, inputs: [{ dtype: "u8", shape: [large], bytes: large }] }), most);
    refused(pack(1, [0], { features, scratch: large }), most);
  }
  refused(
    pack(1, [0], { tasks: { count: 1, private: 0 } }),
    /tasks.count must be 0, as many as the module exports; got 1/,
  );
  refused(pack(1, [0], { memory: 3 }), /memory must be 32, the byte of the module/);
  refused(pack(1, [0], { shapes: [] }), /the metadata has "shapes", which is not a known member/);
  refused(pack(1, [0], {}, code.slice(0, 30)), /its code is not a module of this ABI: it breaks off/);
  refused(
    pack(
      1,
      [0],
      {},
      code.map((byte, k) => (k === 36 ? 0xff : byte)),
    ),
    /is not a module of this ABI/,
  );
  refused(pack(1, [0], { scratch: 64 }), /scratch must be 0, as its code says; got 64/);
  refused(pack(2, [0]), /inputs must be \[16\], as its code says; got \[16,16\]/);
  refused(
    packArtifact(programs.metadata(1, [0]), programs.module(programs.i32Const(0))),
    /its code does not say what it takes and gives/,
  );
  refused(programs.needingThreads, /uses threads, which this engine lacks/);
  const plan = new TextEncoder().encode('{"kernels":[],"buffers":[],"steps":[]}');
  refused(pack(0, [], { kind: "webgpu" }, plan), /compiled for webgpu/);
  assert.equal(device.stats().allocated, 0);
});

test("modules ask for nothing but what programs are given", async () => {
  const device = await WasmDevice.create();
  const { code } = parseArtifact(programs.addOne);
  const with_ = (section: number[], at = code.length) =>
    packArtifact(programs.metadata(1, [0]), Uint8Array.of(...code.slice(0, at), ...section, ...code.slice(at)));
  const refused = (bytes: Uint8Array, pattern: RegExp) => assert.throws(() => device.load(bytes), pattern);
  refused(with_([5, 4, 1, 1, 0, 1]), /it has memories, which no program has/);
  refused(with_([8, 1, 0]), /it has a start, which no program has/);
  refused(with_([11, 1, 0]), /it has data, which no program has/);
  refused(with_([6, 6, 1, 0x7f, 1, 0x41, 2, 0x0b]), /globals other than the number of threads/);
  refused(with_([7, 1, 0]), /it has section 7 twice/);
});

test("addresses that modules give have no sign", () => {
  const memory = new LinearMemory(false, 1, false);
  assert.deepEqual([memory.unsigned(64), memory.unsigned(-64)], [64, 2 ** 32 - 64]);
});

test("the checksum is SHA-256", () => {
  const hex = (bytes: Uint8Array) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  for (const length of [0, 1, 55, 56, 63, 64, 65, 119, 120, 1000, 100_003]) {
    const data = Uint8Array.from({ length }, (_, k) => (k * 7 + length) & 255);
    assert.equal(hex(sha256(data)), createHash("sha256").update(data).digest("hex"));
  }
});
