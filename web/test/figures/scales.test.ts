import fc from "fast-check";
import assert from "node:assert/strict";
import { test } from "node:test";
import { format, padded, rangeOf, ticks } from "../../src/figures/scales.js";

const texts = (low: number, high: number, count = 6, scale: "linear" | "log" = "linear") =>
  ticks(scale, { low, high }, count).map(({ text }) => text);

test("ticks are round numbers, written as briefly as they can be", () => {
  assert.deepEqual(texts(0, 1), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
  assert.deepEqual(texts(-3, 97, 5), ["0", "20", "40", "60", "80"]);
  assert.deepEqual(texts(0, 5e-7, 3), ["0", "2×10⁻⁷", "4×10⁻⁷"]);
  assert.deepEqual(texts(-1e300, 1e300, 3), ["−10³⁰⁰", "0", "10³⁰⁰"]);
  assert.deepEqual(texts(1e6, 1e6 + 1e-3, 3), ["1000000.0000", "1000000.0005", "1000000.0010"]);
});

test("an axis has more than one tick, where it may have two", () => {
  assert.deepEqual(texts(-4.3, 4.3, 4), ["−4", "−2", "0", "2", "4"]);
  assert.deepEqual(texts(0.2, 1.9, 2), ["0.5", "1.0", "1.5"]);
  assert.deepEqual(texts(-4.3, 4.3, 2), ["0"]); // five would be too many
});

test("ticks of a log axis are powers of ten, or round numbers where it is short", () => {
  assert.deepEqual(texts(-2, 3, 8, "log"), ["0.01", "0.1", "1", "10", "100", "1000"]);
  assert.deepEqual(texts(-12, 12, 5, "log"), ["10⁻¹⁰", "10⁻⁵", "1", "10⁵", "10¹⁰"]);
  assert.deepEqual(texts(Math.log10(2), Math.log10(8), 5, "log"), ["2", "3", "5"]);
  assert.deepEqual(texts(Math.log10(102), Math.log10(118), 4, "log"), ["105", "110", "115"]);
});

test("ticks of any range lie in it, in order, and differ", () => {
  const number = fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e150, max: 1e150 });
  fc.assert(
    fc.property(number, number, fc.integer({ min: 2, max: 12 }), (a, b, count) => {
      const { low, high } = padded({ low: Math.min(a, b), high: Math.max(a, b) }, 0.05);
      const found = ticks("linear", { low, high }, count);
      const little = (high - low) * 1e-6;
      assert.ok(found.length >= 1 && found.length <= count + 2);
      found.forEach(({ at }, k) => {
        assert.ok(at >= low - little && at <= high + little);
        if (k > 0) assert.ok(at > found[k - 1]!.at);
      });
      // as long as floating point can tell them apart
      if ((high - low) / Math.max(Math.abs(low), Math.abs(high)) > 1e-9) {
        assert.equal(new Set(found.map(({ text }) => text)).size, found.length);
      }
    }),
  );
});

test("a range leaves out what is not finite, and on a log axis what is not above zero", () => {
  assert.deepEqual(rangeOf([NaN, -Infinity, 3, 1, Infinity]), { low: 1, high: 3 });
  assert.deepEqual(rangeOf([-1, 0, 10, 1000], "log"), { low: 1, high: 3 });
  assert.deepEqual(padded(rangeOf([]), 0.1), { low: 0, high: 1 });
  assert.deepEqual(padded(rangeOf([5]), 0.1), { low: 4.5, high: 5.5 });
  assert.deepEqual(padded(rangeOf([0]), 0.1), { low: -1, high: 1 });
});

test("numbers are written for people", () => {
  assert.deepEqual(
    [0, 1.5, -2, 1e7, 1.2345e-9, NaN, Infinity, 123456].map((value) => format(value)),
    ["0", "1.5", "−2", "10⁷", "1.2345×10⁻⁹", "NaN", "∞", "123460"],
  );
});
