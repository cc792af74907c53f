import assert from "node:assert/strict";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { STOP } from "../src/memory.js";
import { CONTROL_BYTES, ThreadPool } from "../src/threads.js";
import { WasmDevice } from "../src/wasm_device.js";
import { parts } from "../src/wasm_module.js";
import { artifact, i32Const, metadata, module } from "./programs.js";

/** What the compiler puts into loops: a trap unless the word is 0. */
const poll = [...i32Const(STOP), 0xfe, 0x10, 2, 0, 0x04, 0x40, 0x00, 0x0b];
/** A loop that only a stop ends; its output may take the input's memory. */
const endless = shareable([0], [0x03, 0x40, ...poll, 0x0c, 0, 0x0b, ...i32Const(0)]);
const polling = shareable([null], [...poll, ...i32Const(0)]);
const trapping = shareable([null], [0x00]);

/** A program of one input that says where its bytes say what its memory is, as compiled ones do. */
function shareable(outputs: (number | null)[], body: number[]): Uint8Array {
  const code = module(body);
  return artifact(metadata(1, outputs, { memory: parts(code).memory }), code);
}

/** Stores 1 to the word from another thread, after a while, until it is told to end. */
function stopper(view: Int32Array): Worker {
  const text = `
    const { workerData, parentPort } = require("node:worker_threads");
    setTimeout(() => Atomics.store(workerData, 0, 1), 100);
    parentPort.on("message", () => process.exit());`;
  return new Worker(text, { eval: true, workerData: view });
}

test("another thread ends a loop that never would", { timeout: 20_000 }, async () => {
  const device = await WasmDevice.create({ shared: true });
  const [program, next] = [device.load(endless), device.load(polling)];
  const input = device.alloc(16);
  const before = device.stats().allocated;
  for (const donated of [[], [0]]) {
    const other = stopper(device.interruptView()!);
    assert.throws(() => device.run(program, [input], donated), {
      name: "WeftInterrupted",
      message: "program test was stopped",
    });
    await other.terminate();
    // Nothing is left over, the donated input is the caller's, and the word is 0 again.
    assert.deepEqual([device.stats().allocated, device.interrupted], [before, false]);
    assert.equal(device.view(input, 16).length, 16);
    device.free(device.run(next, [input])[0]!);
  }
});

test("growth of the memory leaves the word where it is", async () => {
  const device = await WasmDevice.create({ shared: true });
  const view = device.interruptView()!;
  device.alloc(1 << 24);
  Atomics.store(view, 0, 1);
  assert.equal(device.interrupted, true);
  assert.throws(() => device.run(device.load(polling), [device.alloc(16)]), { name: "WeftInterrupted" });
});

test("a stop of an earlier run is forgotten when the next one begins", async () => {
  const device = await WasmDevice.create({ shared: true });
  Atomics.store(device.interruptView()!, 0, 1);
  device.clearInterrupt();
  assert.equal(device.run(device.load(polling), [device.alloc(16)]).length, 1);
});

test("without shared memory nobody can stop a program, and programs run all the same", async () => {
  const device = await WasmDevice.create();
  device.clearInterrupt();
  assert.deepEqual([device.interruptView(), device.interrupted], [null, false]);
  assert.equal(device.run(device.load(polling), [device.alloc(16)]).length, 1);
});

test("a trap that nobody asked for is still a bug of the compiler", async () => {
  const device = await WasmDevice.create({ shared: true });
  assert.throws(() => device.run(device.load(trapping), [device.alloc(16)]), { name: "WeftProgramError", code: 0 });
});

test("threads that share a loop take no further pieces of it", () => {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
  const stop = new Int32Array(memory.buffer, STOP, 1);
  const pool = new ThreadPool(memory, CONTROL_BYTES, 1);
  const done: number[] = [];
  const task = (_frame: unknown, _thread: number, begin: number): void => {
    done.push(begin);
    if (begin === 4) Atomics.store(stop, 0, 1);
  };
  const program = { number: 1, code: 0, length: 0, tasks: [task] };
  assert.throws(() => pool.run(program, 0, 0, 100, 4), { name: "WeftInterrupted" });
  assert.deepEqual(done, [0, 4]);
  Atomics.store(stop, 0, 0);
  pool.run(program, 0, 0, 4, 4);
  assert.deepEqual(done, [0, 4, 0]);
});
