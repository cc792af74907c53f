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
