// The comparison with the peers: its table, its verdicts, its checks of results, and the models it writes.
import assert from "node:assert/strict";
import fs from "node:fs";
import { test } from "node:test";
import { graph, model, scalar, types, whole } from "../../bench/browser/peers/onnx.mjs";
import { difference, least } from "../../bench/browser/peers/page.mjs";
import { WORKLOADS, best, chosen, figure, problems, table, verdict } from "../../bench/browser/peers/table.mjs";
import { transposed } from "../../bench/browser/peers/worker.mjs";

test("Python has every workload of the table", () => {
  for (const file of ["workloads.py", "reference.py"]) {
    const source = fs.readFileSync(new URL(`../../bench/browser/peers/${file}`, import.meta.url), "utf8");
    for (const name of Object.keys(WORKLOADS))
      assert.ok(
        source.includes(`"${name}"`) || (name.startsWith("matmul_") && source.includes(name.slice(7))),
        `${file}: ${name}`,
      );
  }
});

test("workloads are chosen by name", () => {
  assert.deepEqual(chosen("sort, fft"), ["sort", "fft"]);
  assert.equal(chosen(undefined).length, 25);
  assert.throws(() => chosen("sort,sorted"), /no workload sorted; there are matmul_256/);
});

test("the best peer is the fastest of those that measured, and never weft", () => {
  assert.deepEqual(best({ "jax-js": 3, ort: 2, weft: 1, numpy: 0.1 }), { name: "ort", ms: 2 });
  assert.equal(best({ weft: 1 }), null);
});

test("verdicts follow the share asked of the best peer's time", () => {
  /**
   * @type {(weft: number, options?: import("../../bench/browser/peers/table.mjs").Circumstances) => ReturnType<typeof
   * verdict>}
   */
  const sort = (weft, options) => verdict("sort", { "jax-js": 100, weft }, options);
  assert.deepEqual(sort(50), { ratio: 0.5, asked: "≤ 0.50", met: true });
  assert.equal(sort(51).met, false);
  assert.deepEqual(sort(99, { threads: 2 }), { ratio: 0.99, asked: "< 1", met: true });
  assert.equal(verdict("cumsum", { tfjs: 2, weft: 2 }).met, false);
  assert.equal(verdict("sort", { "jax-js": 100 }).met, null);
});

test("tiny calls have limits of their own", () => {
  assert.equal(verdict("eager", { tfjs: 0.005, weft: 0.059 }).met, true);
  assert.equal(verdict("eager", { tfjs: 0.005, weft: 0.061 }).met, false);
  assert.deepEqual(verdict("jit", { weft: 0.0157 }, { emptyMs: 0.001 }), {
    ratio: null,
    asked: "≤ 16.0 µs",
    met: true,
  });
  assert.equal(verdict("jit", { weft: 0.0157 }, { emptyMs: null }).met, null);
});

test("figures have three digits", () => {
  assert.deepEqual([1234.5, 99.96, 1.2345, 0.012345, undefined].map(figure), ["1235", "100", "1.23", "0.0123", "–"]);
});

test("the table hides nothing", () => {
  const results = {
    matmul_512: {
      times: { "jax-js": 8, tfjs: 10, weft: 4, numpy: 2.5, xla: 2 },
      problems: { tfjs: "off by 1", ort: "no kernel" },
    },
    scan: { times: { "jax-js": 500, weft: 10 }, problems: {} },
  };
  const lines = table(results).split("\n");
  assert.equal(lines.length, 4);
  assert.equal(new Set(lines.map((line) => [...line].length)).size, 1);
  const [head = "", , matmul = "", scan = ""] = lines;
  /** @param {string} line */
  const cells = (line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim());
  assert.deepEqual(cells(head).slice(0, 6), ["workload", "unit", "jax-js", "tfjs", "ort", "weft"]);
  assert.deepEqual(cells(matmul), [
    "matmul 512",
    "ms",
    "8.00",
    "10.0!",
    "error",
    "4.00",
    "0.500",
    "≤ 0.67",
    "yes",
    "67.1 GFLOP/s",
    "2.50",
    "2.00",
  ]);
  assert.deepEqual(cells(scan).slice(1, 9), ["µs a step", "50.0", "–", "–", "1.00", "0.0200", "≤ 0.25", "yes"]);
  assert.deepEqual(problems(results), ["tfjs, matmul 512: off by 1", "ort, matmul 512: no kernel"]);
});

test("least times and differences", () => {
  assert.equal(least([5, 1, 9]), 1);
  /** @param {number[]} values */
  const floats = (...values) => Float32Array.of(...values);
  assert.equal(difference([floats(1, -10)], [floats(1.001, -10)], 1e-3), null);
  /** @type {(results: Float32Array[], expected: Float32Array[], tolerance: number) => string} */
  const wrong = (...settings) => difference(...settings) ?? "nothing";
  assert.match(wrong([floats(1, -10)], [floats(1.1, -10)], 1e-3), /result 0 is off by 1\.00e-1 of 10\.0/);
  assert.match(wrong([floats(NaN, 1)], [floats(0, 1)], 1), /off by NaN/);
  assert.match(wrong([floats(1, NaN, 1)], [floats(1, 0, 1)], 1), /off by NaN/);
  assert.match(wrong([floats(1)], [floats(1, 2)], 1), /1 values instead of 2/);
  assert.match(wrong([], [floats(1)], 1), /0 results instead of 1/);
});

test("axes are reordered", () => {
  const x = { data: Float32Array.from({ length: 24 }, (_, i) => i), shape: [2, 3, 4] };
  const y = transposed(x, [2, 0, 1]);
  assert.deepEqual(y.shape, [4, 2, 3]);
  assert.equal(y.data[3 * 6 + 1 * 3 + 2], 1 * 12 + 2 * 4 + 3);
  assert.deepEqual(transposed(y, [1, 2, 0]), x);
});

/**
 * The fields of a protocol-buffer message: [[number, value], …], with bytes for what has a length.
 * @param {Uint8Array} bytes
 * @returns {[number, any][]}
 */
function fields(bytes) {
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = BigInt(bytes[at++] ?? 0);
      value |= (byte & 127n) << shift;
      if (byte < 128n) return value;
    }
  };
  /** @type {[number, bigint | Uint8Array][]} */
  const found = [];
  while (at < bytes.length) {
    const key = Number(varint());
    const number = key >> 3;
    const kind = key & 7;
    if (kind === 0) found.push([number, varint()]);
    else {
      const length = kind === 5 ? 4 : Number(varint());
      found.push([number, bytes.subarray(at, (at += length))]);
    }
  }
  assert.equal(at, bytes.length);
  return found;
}
/** @type {(bytes: Uint8Array, number: number) => any[]} */
const all = (bytes, number) =>
  fields(bytes)
    .filter(([n]) => n === number)
    .map(([, value]) => value);
/** @param {Uint8Array} bytes */
const text = (bytes) => new TextDecoder().decode(bytes);

test("a model has its graph, constants and attributes", () => {
  const inner = graph({ inputs: { i: { shape: [], type: types.INT64 } }, outputs: {}, nodes: [] });
  const bytes = model({
    inputs: { a: [300, 2] },
    outputs: { out: null },
    nodes: [
      ["Gemm", "a w", "h", { alpha: { float: 0.5 }, transB: -1, mode: "x", perm: [1, 0] }],
      ["Loop", "n h", "out", { body: { graph: inner } }],
    ],
    constants: {
      w: { data: Float32Array.of(1, 2), shape: [2, 1] },
      n: whole(-3),
      s: scalar(4),
      b: { data: [true], shape: [] },
    },
  });
  assert.deepEqual(all(bytes, 1), [8n]);
  assert.deepEqual(all(all(bytes, 8)[0], 2), [17n]);
  const [body] = all(bytes, 7);
  const [gemm, loop] = all(body, 1);
  assert.deepEqual(
    [all(gemm, 1).map(text), all(gemm, 2).map(text), all(gemm, 4).map(text)],
    [["a", "w"], ["h"], ["Gemm"]],
  );
  const [alpha, transB, mode, perm] = all(gemm, 5);
  assert.equal(new DataView(all(alpha, 2)[0].slice().buffer).getFloat32(0, true), 0.5);
  assert.deepEqual([all(transB, 3), all(transB, 20)], [[2n ** 64n - 1n], [2n]]);
  assert.deepEqual([text(all(mode, 4)[0]), all(mode, 20)], ["x", [3n]]);
  assert.deepEqual([all(perm, 8), all(perm, 20)], [[1n, 0n], [7n]]);
  assert.deepEqual(all(all(loop, 5)[0], 6)[0], inner);
  const constants = Object.fromEntries(all(body, 5).map((bytes) => [text(all(bytes, 8)[0]), bytes]));
  assert.deepEqual([all(constants.w, 1), all(constants.w, 2)], [[2n, 1n], [1n]]);
  assert.deepEqual([...new Float32Array(all(constants.w, 9)[0].slice().buffer)], [1, 2]);
  assert.deepEqual([...new BigInt64Array(all(constants.n, 9)[0].slice().buffer)], [-3n]);
  assert.deepEqual([all(constants.s, 1), all(constants.b, 2)], [[], [9n]]);
  const [input] = all(body, 11);
  const shape = all(all(all(input, 2)[0], 1)[0], 2)[0];
  assert.deepEqual(
    all(shape, 1).map((dim) => all(dim, 1)[0]),
    [300n, 2n],
  );
  const output = all(all(all(all(body, 12)[0], 2)[0], 1)[0], 2);
  assert.deepEqual(output, [], "a shape left open");
});
