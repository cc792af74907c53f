import assert from "node:assert/strict";
import { test } from "node:test";
import { GpuBuffers } from "../src/gpu_buffers.js";

Object.assign(globalThis, { GPUBufferUsage: { STORAGE: 1, COPY_SRC: 2, COPY_DST: 4 } });

/** Buffers of a device that has memory for nothing but their sizes. */
function buffers(): { made: { size: number; destroyed: boolean }[]; all: GpuBuffers } {
  const made: { size: number; destroyed: boolean }[] = [];
  const createBuffer = ({ size }: { size: number }) => {
    const buffer = { size, destroyed: false, destroy: () => void (buffer.destroyed = true) };
    made.push(buffer);
    return buffer;
  };
  const limits = { maxBufferSize: 2 ** 30, maxStorageBufferBindingSize: 2 ** 30 };
  return { made, all: new GpuBuffers({ limits, createBuffer } as unknown as GPUDevice) };
}

test("a buffer that is freed while a run holds it stays until the run lets go", () => {
  const { made, all } = buffers();
  const handle = all.alloc(100);
  all.hold(handle);
  all.hold(handle);
  all.free(handle);
  assert.equal(all.get(handle), made[0]);
  all.unhold(handle);
  assert.deepEqual(all.stats(), { allocated: 128, peak: 128, free: 0 });
  all.unhold(handle);
  assert.throws(() => all.get(handle), /no WebGPU buffer 1; was it deleted or donated/);
  assert.deepEqual(all.stats(), { allocated: 0, peak: 128, free: 128 });
});

test("freed buffers are used again by size, and destroyed beyond what is kept", () => {
  const { made, all } = buffers();
  const [small, large] = [all.alloc(64), all.alloc(2 ** 28)];
  all.free(small);
  all.free(large);
  assert.deepEqual(
    made.map(({ destroyed }) => destroyed),
    [false, true],
  );
  assert.equal(all.get(all.alloc(1)), made[0]);
  assert.deepEqual(all.stats(), { allocated: 64, peak: 64 + 2 ** 28, free: 0 });
});

test("a buffer keeps its number when it is used again, and no other has it", () => {
  const { made, all } = buffers();
  const [first, second] = [all.alloc(64), all.alloc(64)].map((handle) => [handle, all.get(handle)] as const);
  assert.notEqual(all.number(first![1]), all.number(second![1]));
  const before = all.number(first![1]);
  all.free(first![0]);
  const again = all.get(all.alloc(64));
  assert.equal(again, made[0]);
  assert.equal(all.number(again), before);
});
