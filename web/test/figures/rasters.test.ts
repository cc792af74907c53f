import fc from "fast-check";
import assert from "node:assert/strict";
import { test } from "node:test";
import { drawCells, type Raster } from "../../src/figures/rasters.js";

const SAMPLES = 3;

/** Samples of pixels that go along cells in order, from before the first to behind the last, which is none. */
function samples(pixels: number, cells: number, first: number, span: number): Int32Array {
  return Int32Array.from({ length: pixels * SAMPLES }, (_, k) => {
    const at = Math.floor(first + ((k + 0.5) / (pixels * SAMPLES)) * span);
    return at >= 0 && at < cells ? at : -1;
  });
}

const picture = fc
  .record({
    rows: fc.integer({ min: 1, max: 6 }),
    columns: fc.integer({ min: 1, max: 6 }),
    channels: fc.constantFrom(3, 4),
  })
  .chain(({ rows, columns, channels }) =>
    fc.record({
      data: fc.uint8Array({ minLength: rows * columns * channels, maxLength: rows * columns * channels }),
      shape: fc.constant([rows, columns, channels]),
      pixels: fc.tuple(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 9 })),
      first: fc.double({ min: -1, max: 2, noNaN: true }),
      span: fc.double({ min: 0.5, max: 9, noNaN: true }),
      falls: fc.boolean(), // an axis that is turned over
    }),
  );

test("a pixel is the mean of its samples, weighted by their opacity", () => {
  fc.assert(
    fc.property(picture, ({ data, shape, pixels: [width, height], first, span, falls }) => {
      const [rows, columns, channels] = shape as [number, number, number];
      const raster = { pixels: { data, shape }, columns: null, rows: null, map: null } as unknown as Raster;
      const across = samples(width, columns, first, span);
      const down = samples(height, rows, first, span);
      if (falls) down.reverse();
      const words = new Uint32Array(width * height);
      drawCells(raster, across, down, words);
      const bytes = new Uint8Array(words.buffer);
      for (let y = 0; y < height; y++) {
        for (let x = 0; x < width; x++) {
          const sums = [0, 0, 0, 0];
          for (const i of down.slice(y * SAMPLES, (y + 1) * SAMPLES)) {
            for (const j of across.slice(x * SAMPLES, (x + 1) * SAMPLES)) {
              if (i < 0 || j < 0) continue;
              const at = (i * columns + j) * channels;
              const opacity = channels === 4 ? data[at + 3]! : 255;
              for (let k = 0; k < 3; k++) sums[k]! += data[at + k]! * opacity;
              sums[3]! += opacity;
            }
          }
          const got = bytes.slice(4 * (y * width + x), 4 * (y * width + x) + 4);
          assert.ok(Math.abs(got[3]! - sums[3]! / SAMPLES ** 2) <= 0.51);
          for (let k = 0; k < 3 && got[3]; k++) assert.ok(Math.abs(got[k]! - sums[k]! / sums[3]!) <= 0.51);
        }
      }
    }),
    { numRuns: 500 },
  );
});

test("numbers have the colours of their map, its ends beyond it, and NaN none", () => {
  const map = { name: "gray", vmin: 0, vmax: 10, bar: false };
  const data = new Float32Array([0, 10, 5, -Infinity, Infinity, NaN]);
  const raster = { pixels: { data, shape: [1, 6] }, columns: null, rows: null, map } as unknown as Raster;
  const each = Int32Array.from({ length: 6 * SAMPLES }, (_, k) => Math.floor(k / SAMPLES));
  const words = new Uint32Array(6);
  drawCells(raster, each, new Int32Array(SAMPLES), words);
  const bytes = new Uint8Array(words.buffer);
  const pixels = Array.from({ length: 6 }, (_, k) => [...bytes.slice(4 * k, 4 * k + 4)]);
  const [low, high, middle, below, above, nothing] = pixels;
  assert.deepEqual(
    [low, high],
    [
      [0, 0, 0, 255],
      [255, 255, 255, 255],
    ],
  );
  assert.equal(middle![0], 128);
  assert.deepEqual([below, above, nothing![3]], [low, high, 0]);
});
