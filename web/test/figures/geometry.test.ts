import fc from "fast-check";
import assert from "node:assert/strict";
import { test } from "node:test";
import { rings } from "../../src/figures/contours.js";
import { isSorted, linePath, lowerBound, Projection, type View } from "../../src/figures/geometry.js";

const WIDTH = 100;

/** A panel of 100 by 100 pixels. */
function view(x: [number, number], y: [number, number], scale: "linear" | "log" = "linear"): View {
  return {
    x: new Projection("linear", { low: x[0], high: x[1] }, 0, WIDTH),
    y: new Projection(scale, { low: y[0], high: y[1] }, WIDTH, 0),
    area: { x: 0, y: 0, width: WIDTH, height: WIDTH },
  };
}

/** The lines of a path. */
function parts(points: Float64Array): [number, number][][] {
  const found: [number, number][][] = [[]];
  for (let k = 0; k < points.length; k += 2) {
    if (Number.isNaN(points[k]!)) found.push([]);
    else found.at(-1)!.push([points[k]!, points[k + 1]!]);
  }
  return found.filter((part) => part.length > 0);
}

test("a line goes through all of few points, in their order", () => {
  const { points } = linePath([5, 1, 3], [0, 10, 5], view([0, 10], [0, 10]));
  assert.deepEqual(parts(points), [
    [
      [50, 100],
      [10, 0],
      [30, 50],
    ],
  ]);
});

test("what is not finite is a gap, and a point without neighbours stands alone", () => {
  const y = [1, 2, NaN, 3, Infinity, 4, 5, -Infinity];
  const { points, alone } = linePath([0, 1, 2, 3, 4, 5, 6, 7], y, view([0, 10], [0, 10]));
  assert.deepEqual(
    parts(points).map((part) => part.length),
    [2, 2],
  );
  assert.deepEqual([...alone], [30, 70]);
});

test("a log axis has no points at or below zero", () => {
  const { points } = linePath([0, 1, 2, 3, 4], [1, 10, 0, 10, 100], view([0, 10], [0, 2], "log"));
  assert.deepEqual(parts(points), [
    [
      [0, 100],
      [10, 50],
    ],
    [
      [30, 50],
      [40, 0],
    ],
  ]);
});

test("of many points those that stand out are kept, and gaps are", () => {
  const value = fc.oneof(
    { weight: 20, arbitrary: fc.double({ min: 0, max: 10, noNaN: true }) },
    { weight: 1, arbitrary: fc.constant(NaN) },
  );
  fc.assert(
    fc.property(fc.array(value, { minLength: 2000, maxLength: 3000 }), (y) => {
      const x = y.map((_, k) => k);
      const { points, alone } = linePath(x, y, view([0, y.length], [0, 10]));
      const all = [...parts(points).flat(), ...parts(alone).flat()];
      const finite = y.filter((v) => !Number.isNaN(v));
      const heights = all.map(([, py]) => py);
      assert.ok(Math.abs(Math.max(...heights) - (100 - 10 * Math.min(...finite))) < 1e-9);
      assert.ok(Math.abs(Math.min(...heights) - (100 - 10 * Math.max(...finite))) < 1e-9);
      // no line bridges a gap
      const gaps = y.flatMap((v, k) => (Number.isNaN(v) ? [(k * WIDTH) / y.length] : []));
      for (const part of parts(points)) {
        for (let k = 1; k < part.length; k++) {
          const [[from], [to]] = [part[k - 1]!, part[k]!];
          assert.ok(!gaps.some((gap) => gap > from && gap < to), `a line from ${from} to ${to}`);
        }
      }
    }),
    { numRuns: 30 },
  );
});

test("many points on a curve that returns are kept in their order", () => {
  const t = Array.from({ length: 50_000 }, (_, k) => (2 * Math.PI * k) / 49_999);
  const { points } = linePath(t.map(Math.cos), t.map(Math.sin), view([-1, 1], [-1, 1]));
  const [line] = parts(points);
  assert.ok(line!.length < 2000);
  for (const [px, py] of line!) assert.ok(Math.abs(Math.hypot(px - 50, py - 50) - 50) < 1e-6);
  assert.deepEqual(line![0]!.map(Math.round), line!.at(-1)!.map(Math.round));
});

test("far outside a line is cut off where it was heading", () => {
  const { points } = linePath([0, 1e12], [0, 1e12], view([0, 10], [0, 10]));
  const [[start, end]] = parts(points) as [[[number, number], [number, number]]];
  assert.deepEqual(start, [0, 100]);
  assert.ok(end[0] < 30_000 && Math.abs(end[0] + end[1] - 100) < 1e-6);
});

test("sorted numbers are recognised and searched", () => {
  assert.equal(isSorted([1, 1, 2]), true);
  assert.equal(isSorted([1, NaN, 2]), false);
  assert.equal(isSorted([2, 1]), false);
  assert.equal(isSorted([]), true);
  assert.equal(lowerBound([1, 3, 5], 3), 1);
  assert.equal(lowerBound([1, 3, 5], 6), 3);
});

test("rings close around what reaches the level, and around what does not", () => {
  const size = 21;
  const z = Float64Array.from({ length: size * size }, (_, k) =>
    Math.hypot((k % size) - 10, Math.floor(k / size) - 10),
  );
  const inside = rings(z, size, size, 5);
  assert.equal(inside.length, 2); // around the hole, and along the border of the grid
  const hole = inside.find(({ border }) => !border.some(Boolean))!;
  hole.x.forEach((x, k) => assert.ok(Math.abs(Math.hypot(x - 10, hole.y[k]! - 10) - 5) < 0.05));
});

test("rings of any grid are closed, and enclose what is at or above the level", () => {
  const value = fc.oneof(fc.integer({ min: 0, max: 4 }), fc.constant(NaN));
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 6 }),
      fc.array(value, { minLength: 6, maxLength: 36 }),
      (columns, numbers) => {
        const rows = Math.floor(numbers.length / columns);
        const found = rings(numbers, columns, rows, 1.5);
        // by the sum of the angles that all rings make around a place a little off each corner of the grid
        for (let k = 0; k < rows * columns; k++) {
          const [cx, cy] = [(k % columns) + 1e-7, Math.floor(k / columns) + 1.3e-7];
          let turns = 0;
          for (const { x, y } of found) {
            x.forEach((ax, i) => {
              const [bx, by] = [x[(i + 1) % x.length]!, y[(i + 1) % x.length]!];
              const [ux, uy, vx, vy] = [ax - cx, y[i]! - cy, bx - cx, by - cy];
              turns += Math.atan2(ux * vy - uy * vx, ux * vx + uy * vy) / (2 * Math.PI);
            });
          }
          const interior = k % columns < columns - 1 && k % columns > 0 && k >= columns && k < (rows - 1) * columns;
          const around = [-1, 1, -columns, columns, -columns - 1, 1 - columns, columns - 1, columns + 1];
          // beside NaN the ring runs through the corner itself
          if (!interior || around.some((step) => Number.isNaN(numbers[k + step]!))) continue;
          assert.equal(Math.round(turns) + 0, numbers[k]! >= 1.5 ? 1 : 0);
        }
      },
    ),
    { numRuns: 300 },
  );
});
