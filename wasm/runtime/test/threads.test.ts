import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { CONTROL_BYTES, ThreadPool, type Spawn } from "../src/threads.js";

// The words of the pool that tests look at.
const [GATE, LEFT] = [32, 48];

/** Workers of Node, which start when they are told to. */
function later(): { start: () => Promise<unknown>; spawn: Spawn } {
  let begin: () => Worker;
  const spawn: Spawn = (source, message) => {
    let worker: Worker | undefined;
    begin = () => {
      const port = 'require("node:worker_threads").parentPort';
      const shim = `let onmessage; ${port}.on("message", (data) => onmessage({ data }));\n`;
      worker = new Worker(shim + source, { eval: true });
      worker.postMessage(message);
      return worker;
    };
    return () => void worker?.terminate();
  };
  return { start: async () => new Promise((resolve) => begin().once("online", resolve)), spawn };
}

test("a worker that comes when a loop is done takes no part in it", { timeout: 20_000 }, async () => {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
  const words = new Int32Array(memory.buffer, 0, CONTROL_BYTES / 4);
  const { start, spawn } = later();
  const pool = new ThreadPool(memory, 0, 2, spawn);
  try {
    const done: number[] = [];
    pool.run(
      { number: 1, code: 0, length: 0, tasks: [(_frame, _thread, begin, end) => void done.push(begin, end)] },
      0,
      64,
      10,
      4,
    );
    assert.deepEqual(done, [0, 4, 4, 8, 8, 10]);
    const closed = Atomics.load(words, GATE);
    await start();
    for (let ms = 0; ms < 10_000 && Atomics.load(words, GATE) === closed; ms++) await setTimeout(1);
    // It has looked whether it may come in.
    assert.deepEqual([pool.ready, Atomics.load(words, GATE)], [true, closed + 1]);
    await setTimeout(50);
    assert.equal(Atomics.load(words, LEFT), 0);
  } finally {
    pool.close(); // a worker that goes on would keep the process
  }
});

/** A module whose task0(frame, thread, begin, end) stores its thread at frame + 4·begin. */
const MARKS = Uint8Array.from([
  ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0], // the magic number and version
  ...[1, 8, 1, 0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 0], // type 0: four i32
  ...[2, 17, 1, 4, ...Buffer.from("weft"), 6, ...Buffer.from("memory"), 2, 3, 1, 1], // shared memory of a page
  ...[3, 2, 1, 0, 7, 9, 1, 5, ...Buffer.from("task0"), 0, 0], // the function and its name
  ...[10, 17, 1, 15, 0, 0x20, 0, 0x20, 2, 0x41, 2, 0x74, 0x6a, 0x20, 1, 0x36, 2, 0, 0x0b],
]);

test("a worker takes part in a loop, with the program that is in memory", { timeout: 20_000 }, async () => {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
  const [control, code, frame, extent] = [1024, 4096, 8192, 8];
  new Uint8Array(memory.buffer).set(MARKS, code);
  const marks = new Int32Array(memory.buffer, frame, extent);
  const { start, spawn } = later();
  const pool = new ThreadPool(memory, control, 2, spawn);
  try {
    await start();
    for (let ms = 0; ms < 10_000 && !pool.ready; ms++) await setTimeout(1);
    const [mine, until] = [Array<number>(), Date.now() + 10_000];
    const task = (_frame: unknown, thread: number, begin: number): void => {
      mine.push(thread, begin);
      while (Date.now() < until && !marks.some(Boolean)) Atomics.wait(marks, begin, 0, 1);
    };
    pool.run({ number: 1, code, length: MARKS.length, tasks: [task] }, 0, frame, extent, 1);
    assert.equal(mine[0], 0);
    assert.ok(marks.includes(1), "the worker has done none of it");
    assert.equal(mine.length / 2 + marks.filter(Boolean).length, extent);
  } finally {
    pool.close();
  }
});
